-- SPDX-License-Identifier: MIT
--
-- What jobs.py uses: lazy, Cartesian, shared and covering families, tensors, an agreed policy, a query.
return recipe {
  params = { tp = 2, fail = false },
  agreed = { same = "world" },
  policy = {
    same = function(_, q) return q.value end,
    here = function(s) return { rank = s.rank, tp = s.tp.ranks } end,
  },
  queries = { tp_rank = function(s) return s.tp.position end },
  build = function(world, p)
    if p.fail then error "asked to fail" end
    local t = topology(world)
    t.grid = grid(world, "tp-dp", { tp = p.tp, dp = fill })
    t.tp = t.grid "tp"
    t.dp = t.grid "dp"
    t.again = t.tp:twin()
    t.all = t.grid:cartesian { "tp", "dp", periods = { tp = true } }
    t.alone = t.grid()
    t.ring = t.all:pairs "wrap"
    t.later = t.dp:with { lazy = true, unique = true }
    t.w = tensor { over = t.grid, type = "f32", axes = { { "row", 12 }, { "column", 8 } },
      cut = { row = "dp", column = "tp" } }
    return t
  end,
}
