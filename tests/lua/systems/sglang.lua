-- SPDX-License-Identifier: MIT
--
-- Cases of the recipe sglang for systems_spec.lua, which explains the fields.

return {
  refused = {
    { "sizes that make another world (sg-013)", { tp = 8, pp = 2 }, "tp 8 x pp 2 = 16 does not make the 8 ranks; nearest: tp 4, or a world of 16 ranks",
      would = { { tp = 4 } } },
    { "decode context parallelism that does not divide (sg-033)", { tp = 8, dcp = 3 },
      "attn_dcp_size 3 does not divide tp_size 8; 2 or 4 would do", would = { { dcp = 2 }, { dcp = 4 } } },
    { "sizes of attention that do not divide", { tp = 8, attn_dp = 2, attn_cp = 3 },
      "attn_dp_size 2 x attn_cp_size 3 does not divide tp_size 8; attn_cp_size 2 or 4 would do",
      would = { { attn_cp = 2 }, { attn_cp = 4 } } },
    { "shared experts that do not divide", { tp = 8, shared_tp = 3 },
      "shared_experts_tp_size 3 does not divide attn_tp_size 8; 2 or 4 would do", would = { { shared_tp = 2 }, { shared_tp = 4 } } },
    { "a question without its group", ask = "rank_in_group", message = "group is missing; a family such as tp would do", at = "xdit" },
  },
  layouts = { { attn_dp = 2, ep = 4 }, {}, { pp = 2, attn_cp = 2, moe_dp = 2 }, { attn_dp = 4, ep = 2, moe_dp = 4 }, { dcp = 4, pp = 2 },
              { pdmux = true, attn_cp = 4 }, { attn_dp = 2, shared_tp = 2 }, { attn_dp = 2, pp = 2, shared_tp = 2 }, { pp = 8 } },
  asks = { { { group = "tp" }, { group = "attn_tp" } } },
  values = {
    tp_size = { 4, { pp = 2 } }, pp_size = { 2 }, attn_dp_size = { 2 }, attn_cp_size = { 2 }, attn_dcp_size = { 2 }, moe_ep_size = { 2 },
    moe_dp_size = { 2 }, shared_experts_tp_size = { 2 }, duplicate_tp_group = { true },
  },
}
