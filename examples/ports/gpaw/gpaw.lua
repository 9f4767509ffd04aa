-- The groups of GPAW, k-points x bands x domains: gpaw/mpi.py, Parallelization.build_communicators. `order` is GPAW's:
-- the ranks of its last letter are neighbours.
return recipe {
  doc = "GPAW: k-points x bands x domains",
  params = {
    kpt = param.size(1, "ranks over which k-points are distributed"),
    band = param.size(1, "ranks over which bands are distributed"),
    domain = param.size(1, "ranks over which the real-space grid is distributed"),
    order = param.text("kbd", "a permutation of k, b and d, the slowest first"),
  },
  build = function(world, p)
    local dims = { p.order:sub(3, 3), p.order:sub(2, 2), p.order:sub(1, 1) }
    local t = topology(world)
    t.grid = grid(world, dims, { k = p.kpt, b = p.band, d = p.domain })
    for _, name in ipairs { "k", "b", "d" } do t[name] = t.grid(name) end
    t.D = t.grid("k", "b") -- the ranks that have the same domain
    t.K = t.grid("b", "d") -- the ranks that have the same k-points
    return t
  end,
}
