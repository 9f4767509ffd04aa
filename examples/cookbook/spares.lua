-- Spare ranks on every node: the first ranks of a node train, the others wait to replace a lost one.
return recipe {
  params = { node = param.size(4, "ranks of a node"), spare = 1, tp = param.size(3, "ranks of a node that train") },
  idle = "allow",
  build = function(world, p)
    local nodes = grid(world, "gpu-node", { gpu = p.node, node = fill })
    local working = {}
    for i = 1, p.node - p.spare do working[i] = i - 1 end
    local busy = nodes "gpu":pick(working)
    local g = grid(world:order(busy:bundle(busy.count)), "tp-dp", { tp = p.tp, dp = fill })
    local t = topology(world)
    t.tp = g "tp"
    t.dp = g "dp"
    t.standby = nodes "gpu":pick(-p.spare)    -- groups of one rank, without communicators
    return t
  end,
}
