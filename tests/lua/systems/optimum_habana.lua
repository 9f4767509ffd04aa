-- SPDX-License-Identifier: MIT
--
-- What systems_spec.lua tries on the recipe optimum_habana; it tells what the fields are.

local groups = "megatron_deepspeed"

return {
  refused = {
    { "an unknown version", { version = "1.15.0" }, "version '1.15.0' is unknown; '1.21.2' or 'f3e24ce9' would do",
      would = { { version = "1.21.2" }, { version = "f3e24ce9" } } },
    { "sequence and pipeline parallelism", { sp = 2, pp = 2 }, "sequence parallelism (sp 2) excludes tensor and pipeline "
      .. "parallelism (tp 1, pp 2); set tp and pp to 1, or sp to 1", at = groups, would = { { tp = 1, pp = 1 }, { sp = 1 } } },
    { "a negative split", { split = -1, pp = 4 }, "pipeline_model_parallel_split_rank is a stage from 0 to 3, not -1",
      at = groups, would = { { split = 0 }, { split = 3 } } },
    { "interleaving of 2 stages", { vpp = 2, pp = 2 }, words = { "vpp 2", "not 2", "nearest is pp 4" }, at = groups,
      would = { { pp = 4 } } },
    { "a size that does not divide", { sp = 3 }, "sp 3 does not divide the 8 ranks; nearest: sp 2 or 4, or a world of 6 or 9 ranks",
      at = groups },
  },
  layouts = { { tp = 2, pp = 4, vpp = 2, split = 2 }, {}, { tp = 4 }, { sp = 4 }, { sp = 8, use_fp8 = true },
              { tp = 2, pp = 2, use_fp8 = true }, { sp = 2, use_fp8 = true, use_distributed_optimizer = true },
              { initialize = false } },
  silent = { "model_parallel_world_size" }, -- the file never gives it a value
  values = { tensor_model_parallel_size = { 2 }, pipeline_model_parallel_size = { 2 }, sequence_parallel_size = { 2 },
             virtual_pipeline_model_parallel_size = { 2, { pp = 4 } }, pipeline_model_parallel_split_rank = { 1, { pp = 2 } } },
}
