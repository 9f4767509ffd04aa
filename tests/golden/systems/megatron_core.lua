-- SPDX-License-Identifier: MIT
local kinds = {
  gtp_weight_remat_group = "gtp_remat", tensor_model_parallel_group = "tp", pipeline_model_parallel_group = "pp",
  model_parallel_group = "mp", embedding_group = "embd", position_embedding_group = "pos_embd",
  data_parallel_group = "dp", data_parallel_group_gloo = "dp_gloo", data_parallel_group_with_gtp_remat = "dp_gtp_remat",
  data_parallel_group_with_cp = "dp_cp", data_parallel_group_with_cp_gloo = "dp_cp_gloo",
  data_parallel_group_with_cp_with_gtp_remat = "dp_cp_gtp_remat",
  intra_partial_data_parallel_group_with_cp = "intra_dp_cp",
  intra_partial_data_parallel_group_with_cp_gloo = "intra_dp_cp_gloo",
  intra_partial_data_parallel_group_with_cp_with_gtp_remat = "intra_dp_cp_gtp_remat",
  context_parallel_group = "cp", tensor_and_context_parallel_group = "tp_cp",
  tensor_and_data_parallel_group = "tp_dp", tensor_and_data_parallel_group_with_cp = "tp_dp_cp",
  expert_gtp_weight_remat_group = "expt_gtp_remat", expert_model_parallel_group = "ep",
  expert_tensor_parallel_group = "expt_tp", expert_tensor_and_model_parallel_group = "tp_ep",
  expert_tensor_model_pipeline_parallel_group = "tp_ep_pp",
  expert_tensor_model_pipeline_parallel_group_with_egtp = "tp_ep_pp_with_egtp_remat",
  expert_data_parallel_group = "expt_dp", expert_data_parallel_group_gloo = "expt_dp_gloo",
  expert_data_parallel_group_with_gtp_remat = "expt_dp_gtp_remat",
  intra_partial_expert_data_parallel_group = "intra_expt_dp",
  intra_partial_expert_data_parallel_group_gloo = "intra_expt_dp_gloo",
  intra_partial_expert_data_parallel_group_with_gtp_remat = "intra_expt_dp_gtp_remat",
  inter_partial_expert_data_parallel_group = "inter_dist_opt",
  intra_distributed_optimizer_instance_group = "intra_dist_opt",
  ["all_gather:dp_cp_ag_group"] = "dp_cp_ag", ["all_gather:expt_dp_ag_group"] = "expt_dp_ag",
}

return {
  recipe = "megatron",
  kinds = function(kind) -- the lists have a family per level or size
    local list, key = kind:match("^(%a+)_.*%[(%d+)%]$")
    if list then return (list == "hybrid" and "hybrid_dp_cp_" or "hcp_") .. key end
    return kinds[kind]
  end,
  backend = function(case, kind, backend) -- moongrid has another backend than the plan's for ucc: MPI
    local asked = case.args.pipeline_model_parallel_comm_backend
    return kind == "pipeline_model_parallel_group" and asked or backend
  end,
  unheld = "gloo", -- between optimizer instances
  calls = {
    initialize_model_parallel = function(job, args)
      job.args = args
      job:initialize(args)
    end,
    create_all_gather_groups = function(job, args) -- a plan has all its groups from the start
      for name, value in pairs(job.args) do args[name] = value end
      args.create_all_gather_groups = true
      job:initialize(args)
    end,
  },
}
