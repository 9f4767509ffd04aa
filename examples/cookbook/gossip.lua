-- Gossip instead of all-reduce: in round i a rank averages with the two ranks that are 2^i positions away.
return recipe {
  params = { tp = 1 },
  build = function(world, p)
    local g = grid(world, "tp-dp", { tp = p.tp, dp = fill })
    local t, step, round = topology(world), 1, 0
    t.tp = g "tp"
    while step < g.dp do
      t["round" .. round] = g "dp":neighbours(step, "wrap")
      step, round = 2 * step, round + 1
    end
    return t
  end,
}
