-- Two ranks use two families in the opposite order: they hold a table that is sharded by rows, so they reduce over dp
-- before they exchange over node. Other ranks exchange first. Each of the two waits for ranks that wait for the other.
-- Reported as torchrec#4149: 62 ranks waited for 2. With `fixed=true` all ranks have one order.
return recipe {
  params = { local_size = 2, fixed = false },
  build = function(world, p)
    local g = grid(world, "node-dp", { node = p.local_size, dp = fill })
    local t = topology(world)
    t.dp = g "dp" t.node = g "node"
    return t
  end,
  step = function(s, p)
    local by_rows = s.dp.position == s.node.position and s.dp.position < 2
    if by_rows and not p.fixed then
      s:reduce_scatter(s.dp, 1 << 20)
      s:all_to_all(s.node, 1 << 20)
    else
      s:all_to_all(s.node, 1 << 20)
      s:reduce_scatter(s.dp, 1 << 20)
    end
  end,
}
