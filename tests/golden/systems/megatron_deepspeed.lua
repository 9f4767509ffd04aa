-- SPDX-License-Identifier: MIT
return {
  recipe = "megatron_deepspeed",
  kinds = {
    tensor_model_parallel_group = "tp", pipeline_model_parallel_group = "pp", data_parallel_group = "dp",
    data_parallel_group_gloo = "dp_gloo", sequence_parallel_group = "sp", sequence_data_parallel_group = "sp_dp",
    model_parallel_group = "mp", embedding_group = "embd", position_embedding_group = "pos_embd",
    amax_reduction_group = "amax",
  },
}
