-- Ring attention in two levels: keys and values go around inside a node, and then to the next node.
return recipe {
  params = { inner = param.size(4, "ranks of a ring inside a node") },
  build = function(world, p)
    local g = grid(world, "inner-outer", { inner = p.inner, outer = fill })
    local t = topology(world)
    t.mesh = g
    t.inner_ring = g "inner":pairs "wrap"
    t.outer_ring = g "outer":pairs "wrap"
    t.sequence = g("inner", "outer")
    return t
  end,
}
