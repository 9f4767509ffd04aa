-- SPDX-License-Identifier: MIT
--
-- The 17 kinds of groups of the measurements of other systems, as a recipe: the benchmark's
-- input for torch. layout.h has the same for C.
-- luacheck: read globals recipe grid topology fill

return recipe {
  build = function(world)
    local dense = grid(world, "tp-cp-dp-pp", { tp = 2, cp = 2, pp = 2, dp = fill })
    local expert = grid(world, "etp-ep-edp-pp", { etp = 2, ep = 2, pp = 2, edp = fill })
    local t = topology(world)
    for _, dim in ipairs { "tp", "cp", "pp", "dp" } do t[dim] = dense(dim) end
    t.dp_cp = dense("cp", "dp")
    t.tp_pp = dense("tp", "pp")
    t.tp_dp = dense("tp", "dp")
    t.tp_dp_cp = dense("tp", "cp", "dp")
    t.tp_cp = dense("tp", "cp")
    t.emb = t.pp:pick(0, -1)
    t.pos = t.pp:pick(0)
    t.amax = dense("tp", "cp", "dp")
    t.ep = expert "ep"
    t.etp = expert "etp"
    t.ep_dp = expert "edp"
    t.tp_ep = expert("etp", "ep")
    t.tp_ep_pp = expert("etp", "ep", "pp")
    return t
  end,
}
