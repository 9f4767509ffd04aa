-- SPDX-License-Identifier: MIT
--
-- Cases of the recipe megatron_deepspeed for systems_spec.lua, which explains the fields.

return {
  refused = {
    { "sequence and tensor parallelism", { sp = 2, tp = 2 }, "sequence parallelism (sp 2) excludes tensor and pipeline "
      .. "parallelism (tp 2, pp 1); set tp and pp to 1, or sp to 1", would = { { tp = 1, pp = 1 }, { sp = 1 } } },
    { "a split after the last stage", { split = 2, pp = 2 },
      "pipeline_model_parallel_split_rank is a stage from 0 to 1, not 2", would = { { split = 0 }, { split = 1 } } },
    { "a split before the first stage", { split = -1, pp = 2 },
      "pipeline_model_parallel_split_rank is a stage from 0 to 1, not -1", would = { { split = 0 }, { split = 1 } } },
    { "interleaving of 2 stages", { vpp = 2, pp = 2 }, words = { "vpp 2", "3 pipeline stages", "not 2", "nearest is pp 4" },
      would = { { pp = 4 } } },
    { "a virtual stage that there is not", params = { vpp = 2, pp = 4 }, ask = "is_pipeline_last_stage",
      q = { virtual_rank = 2 }, message = "virtual_rank is a virtual stage from 0 to 1, not 2" },
    { "a question with an argument of another kind", ask = "is_pipeline_last_stage", q = { virtual_rank = -1 },
      message = "argument 'virtual_rank' is an index (an integer of 0 or more), not -1; nearest is 0" },
    { "a group that is not there", get = "get_amax_reduction_group",
      message = "getter 'get_amax_reduction_group': there is no family 'amax' in this plan; it is there with use_fp8" },
    { "a size that does not divide", { tp = 3 }, "tp 3 does not divide the 8 ranks; nearest: tp 2 or 4, or a world of 6 or 9 ranks" },
  },
  layouts = { { tp = 2, pp = 4, vpp = 2, split = 2 }, {}, { tp = 4 }, { sp = 4 }, { pp = 4, split = 1 },
              { tp = 2, pp = 2, use_fp8 = true }, { sp = 2, use_fp8 = true, use_distributed_optimizer = true } },
  asks = { { {}, { virtual_rank = 1 }, { virtual_rank = 0, ignore_virtual = true } } },
  values = { tensor_model_parallel_size = { 2 }, pipeline_model_parallel_size = { 2 }, sequence_parallel_size = { 2 },
             virtual_pipeline_model_parallel_size = { 2, { pp = 4 } }, pipeline_model_parallel_split_rank = { 1, { pp = 2 } } },
}
