-- SPDX-License-Identifier: MIT
--
-- Cases of the recipe megatron_bridge for systems_spec.lua, which explains the fields.

return {
  refused = {
    { "a size that does not divide", { tp = 3 }, words = { "tp 3 does not divide the 8 ranks" }, would = { { tp = 2 }, { tp = 4 } } },
    { "experts that do not divide", { tp = 2, pp = 2, ep = 8 }, words = { "ep 8 x pp 2 = 16 does not divide the 8 ranks" },
      would = { { ep = 4 } } },
    { "instances that do not divide", { tp = 2, instances = 3 },
      "num_distributed_optimizer_instances 3 does not divide the data-parallel size of experts, 4; 2 or 4 would do",
      would = { { instances = 2 }, { instances = 4 } } },
    { "instances that divide one model only", { vision = 2, instances = 3 }, "num_distributed_optimizer_instances 3 does not divide "
      .. "the common divisor of the data-parallel sizes of experts in both models, 2; 2 would do",
      would = { { instances = 2, vision = 2 } } },
    { "vision on all ranks", { vision = 8 }, "vision_world_size 8 leaves no rank of the 8 for the language model; 7 or less would do",
      would = { { vision = 7 } } },
  },
  layouts = { { tp = 2, pp = 2 }, {}, { ep = 4, instances = 2 }, { tp = 2, cp = 2, etp = 1, ep = 4 }, { vision = 4, vision_tp = 2, tp = 2 } },
  values = {
    tensor_model_parallel_size = { 2 }, pipeline_model_parallel_size = { 2 }, context_parallel_size = { 2 },
    expert_model_parallel_size = { 2 }, expert_tensor_parallel_size = { 2 }, num_distributed_optimizer_instances = { 2 },
    vision_world_size = { 4 }, vision_tensor_model_parallel_size = { 2, { vision = 4 } }, vision_pipeline_model_parallel_size = { 2, { vision = 4 } },
    vision_context_parallel_size = { 2, { vision = 4 } }, vision_expert_model_parallel_size = { 2, { vision = 4 } },
    vision_expert_tensor_parallel_size = { 2, { vision = 4 } },
  },
}
