-- An all-to-all meets a reduce-scatter: the ranks of the last pipeline stage make another call for the experts than the
-- other ranks. Reported as Megatron-LM#5749. With `fixed=true` all ranks make the same call.
return recipe {
  params = { pp = 2, fixed = false },
  build = function(world, p)
    local g = grid(world, "ep-pp", { ep = fill, pp = p.pp })
    local t = topology(world)
    t.pp = g "pp" t.ep = g "ep"
    t.all = g("ep", "pp")
    return t
  end,
  step = function(s, p)
    if s.pp.position < s.pp.size - 1 or p.fixed then
      s:all_to_all(s.all, 1 << 20)
    else
      s:reduce_scatter(s.all, 1 << 20)
    end
  end,
}
