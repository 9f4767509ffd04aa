-- SPDX-License-Identifier: MIT
--
-- A step with one call of each kind, for tests/torch/checked.py.

return recipe {
  params = { tp = 2 },
  build = function(world, p)
    local g = grid(world, "tp-pp", { tp = p.tp, pp = fill })
    local t = topology(world)
    t.tp, t.pp = g "tp", g "pp"
    return t
  end,
  step = function(s)
    for _, operation in ipairs { "all_reduce", "all_gather", "reduce_scatter", "all_to_all" } do
      s[operation](s, s.tp, 64)
      s[operation](s, s.tp, 128)
    end
    for _, operation in ipairs { "broadcast", "reduce", "gather", "scatter" } do
      s[operation](s, s.pp, 64, { root = 1 })
    end
    s:barrier(s.pp)
    if s.pp.position == 0 then s:send(s.pp, 1, 32) else s:recv(s.pp, 0, 32) end
    s:sendrecv(s.pp, s.pp:next "wrap", s.pp:prev "wrap", 16)
    s:loop(2, function() s:all_reduce(s.tp, 8) end)
  end,
}
