-- SPDX-License-Identifier: MIT
--
-- Cases of the recipe vllm for systems_spec.lua, which explains the fields.

return {
  refused = {
    { "a world that the sizes do not divide (vl-012)", { tp = 2, dp = 3 }, world = 13,
      words = { "does not divide the 13 ranks" } },
    { "decode context parallelism beyond the ranks of a stage", { tp = 4, dcp = 3 },
      "decode_context_model_parallel_size 3 does not divide pcp 1 x tp 4; 2 or 4 would do",
      would = { { dcp = 2 }, { dcp = 4 } } },
    { "decode context parallelism with nearer sizes than 1 and all", { tp = 12, dcp = 5 }, world = 12,
      message = "decode_context_model_parallel_size 5 does not divide pcp 1 x tp 12; 4 or 6 would do",
      would = { { dcp = 4 }, { dcp = 6 } } },
    { "Engram's groups that do not divide", { tp = 2, dp = 2, etp = 3 },
      "engram_tensor_parallel_size 3 does not divide tp 2 x dp 2; 2 or 4 would do", would = { { etp = 2 }, { etp = 4 } } },
    { "engines that share Engram's table and do not divide", { dp = 8, engram_dp = 3 },
      "engram_data_parallel_size 3 does not divide dp 8; 2 or 4 would do", would = { { engram_dp = 2 }, { engram_dp = 4 } } },
    { "more of them than there are", { dp = 2, engram_dp = 4 },
      "engram_data_parallel_size 4 does not divide dp 2; 2 would do", would = { { engram_dp = 2 } } },
    { "a question without its group", ask = "rank_in_group", message = "group is missing; a family such as tp would do", at = "xdit" },
  },
  layouts = { { tp = 2, dp = 2, pcp = 2 }, {}, { tp = 8, dcp = 4 }, { tp = 2, pp = 4, eplb = true }, { dp = 8, is_moe = false },
              { tp = 2, dp = 4, etp = 8 }, { dp = 4, engram_dp = 2 }, { dp = 4, engram_dp = 4 }, { pcp = 4, tp = 2, dcp = 8 } },
  asks = { { { group = "tp" }, { group = "ep" } }, get_dcp_world_size_and_rank = { {}, { enabled = false } } },
  values = {
    tensor_model_parallel_size = { 2 }, pipeline_model_parallel_size = { 2 }, prefill_context_model_parallel_size = { 2 },
    decode_context_model_parallel_size = { 2, { tp = 2 } }, data_parallel_size = { 2 }, is_moe = { false },
    enable_eplb = { true }, engram_tensor_parallel_size = { 4, { tp = 2, dp = 2 } },
    engram_data_parallel_size = { 2, { dp = 4 } },
  },
}
