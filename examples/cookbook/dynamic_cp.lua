-- Context parallelism whose size follows the lengths of the sequences: a family for each of the sizes 2, 4, ... to cp.
return recipe {
  params = { tp = 2, cp = param.size(4, "ranks of the longest sequence") },
  build = function(world, p)
    local g = grid(world, "tp-cp-dp", { tp = p.tp, cp = p.cp, dp = fill })
    local t, size = topology(world), 2
    t.mesh = g
    t.tp = g "tp"
    while size < p.cp do
      t["cp" .. size] = (g "cp":split(size)):with { lazy = true }    -- created at first use
      size = size * 2
    end
    t["cp" .. p.cp] = g "cp"
    t.dp_cp = g("dp", "cp")
    return t
  end,
}
