-- Your own groups on top of Megatron's, without patching a framework.
--
--   moongrid plan examples/compose.lua --world 16 tp=2 gtp=2 pp=2 gpus_per_node=4
--   mpirun -n 16 moongrid run examples/compose.lua tp=2 gtp=2 pp=2 gpus_per_node=4
--
-- `t` is Megatron's topology: t.dense and t.expert are its grids, t.mp, t.dp_cp, ... its
-- families. Every parameter of Megatron is a parameter here.

return recipe {
  doc = "Megatron with families of your own",
  base = "megatron",
  params = { gpus_per_node = param.size(8, "ranks of one node, which have consecutive numbers") },
  build = function(world, p, t)
    -- One group over two dims, tp and gtp_remat, for an optimizer that needs whole weights (Muon).
    t.tp_remat = t.dense("tp", "gtp_remat")

    -- The first ranks of all groups of mp as one group, and a ring over it: a group for each pair of neighbours.
    t.leaders = t.mp:pick(0):bundle(t.mp.count)
    t.leader_ring = t.leaders:pairs "wrap"

    -- The ranks of a node, from another grid over the same world.
    t.node = grid(world, "gpu-node", { gpu = p.gpus_per_node, node = fill }) "gpu"
    return t
  end,
}
