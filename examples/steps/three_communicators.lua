-- Three communicators at once, each on a stream of its own, launched in another order on every rank of a group.
-- Reported as rccl#2191 and pytorch#175145. `fixed=true`: one order on all ranks.
return recipe {
  params = { fixed = false },
  build = function(world)
    local g = grid(world, "tp-cp-dp", { tp = 2, cp = 2, dp = fill })
    local t = topology(world)
    t.tp_cp, t.cp_dp, t.tp_dp = g("tp", "cp"), g("cp", "dp"), g("tp", "dp")
    return t
  end,
  step = function(s, p)
    local calls = {
      function() s:on("a"):all_reduce(s.tp_cp, 1 << 20) end,
      function() s:on("b"):all_reduce(s.cp_dp, 1 << 20) end,
      function() s:on("c"):all_reduce(s.tp_dp, 1 << 20) end,
    }
    local from = p.fixed and 0 or s.tp_cp.position
    for i = 0, 2 do calls[(from + i) % 3 + 1]() end
    s:wait "a"
    s:wait "b"
    s:wait "c"
  end,
}
