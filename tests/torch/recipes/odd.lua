-- Families of every kind that torch may find hard: ranks in unequal numbers of groups, an order that is not
-- ascending, covers, groups of other options, groups made later.
return recipe {
  params = { slow = 30.0 },
  build = function(world, p)
    local g = grid(world, "a-b", { a = 2, b = fill })
    local t = topology(world)
    t.mesh = g
    t.part = world:window(2, 4):table { { 2, 3, 4, 5 } }
    t.line = g "b":pairs()
    t.a = g "a"
    t.b = g "b":with { timeout = p.slow }
    t.again = g "b":with { timeout = p.slow }
    t.own = g "b":with { unique = true }
    t.turned = world:table { { 3, 0, 1, 2 }, { 7, 4, 5, 6 } }
    t.later = g("a", "b"):with { lazy = true }
    t.cpu = g "a":with { backend = "mpi", high_priority = true }
    t.single = g()
    t.some = grid(world:window(2, 6), "x-y", { x = 2, y = fill }) -- ranks 0 and 1 are outside
    t.x = t.some "x"
    t.y = t.some "y"
    return t
  end,
}
