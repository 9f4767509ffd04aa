-- Spare ranks on every node: the first ranks of a node train, the others wait to replace a lost one.
return recipe {
  params = { node = param.size(4, "ranks of a node"), spare = param.size(1, "spare ranks of a node"), tp = 3 },
  idle = "allow",
  build = function(world, p)
    local nodes = grid(world, "gpu-node", { gpu = p.node, node = fill })
    local working, waiting = {}, {}
    for i = 0, p.node - 1 do table.insert(i < p.node - p.spare and working or waiting, i) end
    local busy = nodes "gpu":pick(working)
    local g = grid(world:order(busy:bundle(busy.count)), "tp-dp", { tp = p.tp, dp = fill })
    local t = topology(world)
    t.tp = g "tp"
    t.dp = g "dp"
    t.standby = nodes "gpu":pick(waiting)    -- no communicators if a node has one spare rank
    return t
  end,
}
