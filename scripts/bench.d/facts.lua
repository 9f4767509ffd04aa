-- SPDX-License-Identifier: MIT
--
-- The 17 kinds of groups that the peers' creation was measured with, as a recipe: what the
-- benchmark hands to torch. layout.h has the same for C.
-- luacheck: read globals recipe grid topology fill

return recipe {
  build = function(world)
    local dense = grid(world, "tp-cp-dp-pp", { tp = 2, cp = 2, pp = 2, dp = fill })
    local expert = grid(world, "etp-ep-edp-pp", { etp = 2, ep = 2, pp = 2, edp = fill })
    local t = topology(world)
    t.tp, t.cp, t.pp, t.dp = dense "tp", dense "cp", dense "pp", dense "dp"
    t.dp_cp, t.tp_pp, t.tp_dp = dense("cp", "dp"), dense("tp", "pp"), dense("tp", "dp")
    t.tp_dp_cp, t.tp_cp = dense("tp", "cp", "dp"), dense("tp", "cp")
    t.emb, t.pos, t.amax = t.pp:pick(0, -1), t.pp:pick(0), dense("tp", "cp", "dp")
    t.ep, t.etp, t.ep_dp = expert "ep", expert "etp", expert "edp"
    t.tp_ep, t.tp_ep_pp = expert("etp", "ep"), expert("etp", "ep", "pp")
    return t
  end,
}
