-- SPDX-License-Identifier: MIT
--
-- 2DECOMP&FFT's grid: pencils of a box on rows x columns of ranks, columns fastest. Without given sizes it is as square
-- as possible, and has no more rows than columns. Each orientation of the pencils has its own periods.
--
--   moongrid draw examples/ports/decomp2d/decomp.lua --world 12

local function periods(row, col) return { periods = { row = row, col = col } } end

return recipe {
  doc = "Pencils on a grid of rows and columns",
  params = {
    p_row = param.size(nil, "rows, which cut x and y; left out: balanced"),
    p_col = param.size(nil, "columns, which cut y and z"),
    periodic_x = param.flag(false, "x is periodic"),
    periodic_y = param.flag(false, "y is periodic"),
    periodic_z = param.flag(false, "z is periodic"),
  },
  build = function(world, p)
    local rows, x, y, z = p.p_row, p.periodic_x, p.periodic_y, p.periodic_z
    for n = 1, not (rows or p.p_col) and #world or 0 do
      if n * n <= #world and #world % n == 0 then rows = n end
    end
    local g = grid(world, "col-row", { col = p.p_col or fill, row = rows or fill })
    local t = topology(world)
    t.cart_x, t.cart_y, t.cart_z = g:cartesian(periods(y, z)), g:cartesian(periods(x, z)), g:cartesian(periods(x, y))
    t.col, t.row = g:cartesian { "row" }, g:cartesian { "col" } -- as 2DECOMP&FFT: COMM_COL has the ranks of a column
    return t
  end,
}
