-- SPDX-License-Identifier: MIT
--
-- A plane of x times y ranks, x periodic. Without a given x it is as square as possible, as MPI_Dims_create makes it.

return recipe {
  doc = "The Cartesian communicators of a solver on a cylinder",
  params = { x = param.size(nil, "ranks around the cylinder; left out: balanced") },
  build = function(world, p)
    local around = p.x or 1
    for n = 1, p.x and 0 or #world do -- MPI_Dims_create
      if n * n <= #world and #world % n == 0 then around = n end
    end
    local g = grid(world, "x-y", { x = around, y = fill })
    local t = topology(world)
    t.plane = g
    t.cart = g:cartesian { periods = { x = true } }       -- MPI_Cart_create
    t.ring = g:cartesian { "x", periods = { x = true } }  -- MPI_Cart_sub that keeps x
    t.line = g:cartesian { "y" }                          -- MPI_Cart_sub that keeps y
    return t
  end,
}
