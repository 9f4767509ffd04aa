-- Grids made from other grids, for a launcher that places ranks on the nodes in turn (rank 0 on node 0, rank 1 on node
-- 1, ...), for hybrid sharding, and for a family over only the last pipeline stage.
--
--   moongrid plan examples/nodes.lua --world 32 tp=4 pp=2 shard=2 gpus_per_node=8
--   mpirun --map-by node -n 16 moongrid run examples/nodes.lua tp=2 pp=2 shard=2 gpus_per_node=4
--
-- All families follow rules, so they cost the same for two nodes and for a hundred thousand.

return recipe {
  doc = "tp inside nodes although ranks are placed on nodes in turn, hybrid sharding, and a group of one stage",
  params = {
    gpus_per_node = param.size(8, "ranks of one node"),
    tp = param.size(1, "tensor parallel"),
    pp = param.size(1, "pipeline stages"),
    shard = param.size(1, "ranks of dp that share one replica of the parameters"),
  },
  build = function(world, p)
    -- Put the ranks of a node next to each other, so that tp, the fastest dim, stays on a node.
    local placed = grid(world, "node-gpu", { gpu = p.gpus_per_node, node = fill })
    local by_node = world:order(placed:ordered("gpu", "node"))
    local g = grid(by_node, "tp-dp-pp", { tp = p.tp, pp = p.pp, dp = fill })

    local t = topology(world)
    t.mesh = g
    t.tp = g "tp"
    t.dp = g "dp"
    t.pp = g "pp"

    -- Hybrid sharding: dp becomes two dims. Ranks along `shard` have different shards, ranks along `rep` equal shards.
    local hybrid = g:unflatten("dp", { shard = p.shard, rep = fill })
    t.shard = hybrid "shard"
    t.rep = hybrid "rep"

    -- The ranks that compute the loss, as one group: those of the last stage.
    t.loss = g:at { pp = -1 }("tp", "dp")
    return t
  end,
}
