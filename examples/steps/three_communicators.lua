-- Calls over three communicators at once, in several orders: rccl#2191, pytorch#175145. One order on all ranks (with
-- `ordered=true`) is not enough: streams start kernels in any order. With `fixed=true` a call waits for the one before.
return recipe {
  params = { fixed = false, ordered = false },
  build = function(world)
    local g = grid(world, "tp-cp-dp", { tp = 2, cp = 2, dp = fill })
    local t = topology(world)
    t.tp_dp = g("tp", "dp") t.cp_dp = g("cp", "dp") t.tp_cp = g("tp", "cp")
    return t
  end,
  step = function(s, p)
    local calls = {
      function() s:on("a"):all_reduce(s.tp_cp, 1 << 20) end,
      function() s:on("b"):all_reduce(s.cp_dp, 1 << 20) end,
      function() s:on("c"):all_reduce(s.tp_dp, 1 << 20) end,
    }
    local from, streams = (p.fixed or p.ordered) and 0 or s.tp_cp.position, { "a", "b", "c" }
    for i = 0, 2 do
      if p.fixed and i > 0 then s:on(streams[i + 1]):wait(streams[i]) end
      calls[(from + i) % 3 + 1]()
    end
    s:wait "a"
    s:wait "b"
    s:wait "c"
  end,
}
