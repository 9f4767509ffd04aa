-- Your own groups on top of a known layout, a bundled recipe.
--
--   moongrid plan examples/custom_group.lua --world 8 tp=2 pp=2

return recipe {
  base = "megatron_deepspeed", -- this recipe inherits its parameters, families and queries
  params = { leaders = param.flag(true, "a ring of the first ranks of all model replicas") },
  build = function(_, p, t) -- t is the base's topology
    t.muon = t.grid("tp", "dp") -- whole layers for an optimizer that needs full matrices
    if p.leaders then t.leaders = t.mp:pick(0):bundle(t.mp.count) end
    return t
  end,
}
