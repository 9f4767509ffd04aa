-- SPDX-License-Identifier: MIT
--
-- The layout of joining.c: weights are cut over tp, with as many copies over dp as the ranks allow.

return recipe {
  doc = "Weights cut over tp, and as many copies as there are ranks for",
  params = { tp = 2, rows = 64, columns = 32 },
  build = function(world, p)
    local g = grid(world, "tp-dp", { tp = p.tp, dp = fill })
    local t = topology(world)
    t.grid = g t.dp = g "dp" t.tp = g "tp"
    t.w = tensor { axes = { { "rows", p.rows }, { "columns", p.columns } }, type = "f64", cut = { rows = "tp" } }
    return t
  end,
}
