-- ZeRO with a copy of the weights inside each node (hpZ): gradients are summed over dp, weights gathered inside a node.
return recipe {
  params = { tp = 2, node = param.size(8, "ranks of a node") },
  build = function(world, p)
    local g = grid(world, "tp-dp", { tp = p.tp, dp = fill })
    local t = topology(world)
    t.tp = g "tp"
    t.dp = g "dp"           -- shards gradients and optimizer
    local near, far = g "dp":split(p.node // p.tp)
    t.secondary = near      -- shards the copy
    t.across = far          -- the same shard of the copy on all nodes
    within(t.secondary, grid(world, "gpu-node", { gpu = p.node, node = fill }) "gpu")
    return t
  end,
}
