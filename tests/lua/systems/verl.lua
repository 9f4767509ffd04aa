-- SPDX-License-Identifier: MIT
--
-- Cases of the recipe verl for systems_spec.lua, which explains the fields.

return {
  refused = {
    { "an unknown role", { role = "critic" }, "role 'critic' is unknown; actor, rollout, ref, actor_rollout, actor_rollout_ref would do",
      would = { { role = "actor" }, { role = "ref" } } },
    { "shards of no rank", { fsdp_size = 0 }, "fsdp_size is 0; a size, or -1 for all ranks, would do", would = { { fsdp_size = -1 } } },
    { "shards that do not divide", { fsdp = 3 }, words = { "fsdp 3 does not divide the 8 ranks" }, would = { { fsdp = 2 }, { fsdp = 4 } } },
    { "sequences that do not divide", { sp = 3 }, words = { "sp 3 does not divide the 8 ranks" }, would = { { sp = 2 } } },
    { "a rollout that does not divide", { tp = 3 }, words = { "infer_tp 3 does not divide the 8 ranks" }, would = { { tp = 4 } } },
  },
  layouts = { { fsdp = 4, sp = 2 }, {}, { tp = 4, rollout_dp_size = 2 }, { role = "rollout", pp = 2 }, { role = "ref", fsdp = 2 },
              { role = "actor", sp = 8 } },
  values = {
    fsdp_size = { 2 }, ulysses_sequence_parallel_size = { 2 }, tensor_model_parallel_size = { 4 }, data_parallel_size = { 2 },
    pipeline_model_parallel_size = { 2 },
  },
}
