-- Grids made from a grid: for a launcher that places ranks on the nodes in turn (rank 0 on node 0, rank 1 on node 1,
-- ...), with shards inside replicas, and a group of only the last pipeline stage.
--
--   moongrid plan examples/nodes.lua --world 32 tp=4 pp=2 shard=2 gpus_per_node=8
--   mpirun --map-by node -n 16 moongrid run examples/nodes.lua tp=2 pp=2 shard=2 gpus_per_node=4
--
-- All families follow rules, so they cost the same for two nodes and for a hundred thousand.

return recipe {
  doc = "Ranks that lie side by side on a node, hybrid sharding, and a group of one stage",
  params = {
    gpus_per_node = param.size(8, "ranks of one node"),
    tp = param.size(1, "tensor parallel"),
    pp = param.size(1, "pipeline stages"),
    shard = param.size(1, "ranks that a replica's parameters are sharded over"),
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

    -- Hybrid sharding: dp is split into shards of parameters and their replicas.
    local hybrid = g:unflatten("dp", { shard = p.shard, rep = fill })
    t.shard = hybrid "shard"
    t.rep = hybrid "rep"

    -- The ranks that compute the loss, as one group: those of the last stage.
    t.loss = g:at { pp = -1 }("tp", "dp")
    return t
  end,
}
