-- A torus of three dims, and the neighbours of a rank along each of them.
return recipe {
  params = { x = 4, y = 2 },
  build = function(world, p)
    local g = grid(world, "x-y-z", { x = p.x, y = p.y, z = fill })
    local t = topology(world)
    t.torus = g
    for _, dim in ipairs { "x", "y", "z" } do t[dim] = g(dim):pairs "wrap" end
    t.plane = g:cartesian { "x", "y", periods = { x = true, y = true } }    -- MPI_Cart_shift works on it
    return t
  end,
}
