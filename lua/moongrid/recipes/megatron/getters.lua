-- Megatron's getters of groups: the family of each, and the parameters with which each family exists.

local part = select(2, ...)
local releases = part "releases"

local function with_remat(family, q, p)
  return q.with_gtp_remat and releases.has_remat(p) and family .. "_gtp_remat" or family
end

local function data_parallel(_, q, p)
  if q.partial_data_parallel and not q.with_context_parallel then
    error("partial_data_parallel=true needs with_context_parallel=true: optimizer instances divide dp x cp, not dp")
  end
  local family = not q.with_context_parallel and "dp" or q.partial_data_parallel and "intra_dp_cp" or "dp_cp"
  return with_remat(family, q, p)
end

local function expert_data_parallel(_, q, p)
  return with_remat(q.partial_expert_data_parallel and "intra_expt_dp" or "expt_dp", q, p)
end

local function with_data(family)
  return function(_, q) return q.with_context_parallel and family .. "_cp" or family end
end

-- Return a getter of blocks of dp x cp with group_size ranks. A block with all ranks of dp x cp is dp_cp itself.
local function block(prefix)
  return function(s, q)
    if not q.group_size then error "group_size is missing; the number of ranks of a block, such as 2, would do" end
    return s.dp_cp and s.dp_cp.size == q.group_size and "dp_cp" or prefix .. q.group_size
  end
end

-- Dense layers and experts use the same groups between instances if they have the same number of instances.
local function between_instances(_, _, p)
  local n = p.num_distributed_optimizer_instances
  return n > 1 and n ~= (p.expert_num_distributed_optimizer_instances or n) and "inter_dp_cp" or "inter_dist_opt"
end

local getters = {
  get_model_parallel_group = "mp",
  get_tensor_model_parallel_group = "tp",
  get_gtp_weight_remat_group = "gtp_remat",
  get_pipeline_model_parallel_group = "pp",
  get_data_parallel_group = data_parallel,
  get_data_parallel_group_gloo = function(s, q)
    return data_parallel(s, { with_context_parallel = q.with_context_parallel,
      partial_data_parallel = q.partial_data_parallel }) .. "_gloo"
  end,
  get_context_parallel_group = "cp",
  get_hierarchical_context_parallel_groups = function(_, q) return "hcp_" .. q.level end, -- in Megatron a list
  get_hybrid_data_context_parallel_groups = block "hybrid_dp_cp_",
  get_dynamic_data_context_parallel_groups = block "dynamic_dp_cp_",
  get_embedding_group = "embd",
  get_position_embedding_group = "pos_embd",
  get_amax_reduction_group = function(s, q)
    if not q.tp_only_amax_red then return with_data "tp_dp"(s, q) end
    return q.with_context_parallel and "tp_cp" or "tp"
  end,
  get_tensor_and_data_parallel_group = with_data "tp_dp",
  get_tensor_and_context_parallel_group = "tp_cp",
  get_expert_gtp_weight_remat_group = "expt_gtp_remat",
  get_expert_model_parallel_group = "ep",
  get_expert_tensor_parallel_group = "expt_tp",
  get_expert_tensor_and_model_parallel_group = "tp_ep",
  get_expert_tensor_model_pipeline_parallel_group = function(_, q)
    return q.with_egtp_remat and "tp_ep_pp_with_egtp_remat" or "tp_ep_pp"
  end,
  get_expert_data_parallel_group = expert_data_parallel,
  get_expert_data_parallel_group_gloo = function(_, q)
    return q.partial_expert_data_parallel and "intra_expt_dp_gloo" or "expt_dp_gloo"
  end,
  get_intra_distributed_optimizer_instance_group = "intra_dist_opt",
  get_inter_distributed_optimizer_instance_group = between_instances,
}

local remat, gloo = "version 0.19", "create_gloo_process_groups and gtp_remat_size 1"
local all_gather = "create_all_gather_groups (in 0.16 and 0.17 create_all_gather_group)"
local families = {
  ["*gtp_remat"] = remat,
  ["*_gloo"] = gloo,
  expt_dp_gloo = gloo .. ", expert_gtp_remat_size 1",
  intra_expt_dp_gloo = gloo .. ", expert_gtp_remat_size 1",
  dp_cp_ag = all_gather,
  expt_dp_ag = all_gather .. ", for_expert_parallelism, and expert_model_parallel_size above 1",
  inter_dp_cp = "num_distributed_optimizer_instances above 1, and another number of instances for experts",
  inter_dist_opt = "num_distributed_optimizer_instances, or the number for experts, above 1",
  ["hcp_*"] = "hierarchical_context_parallel_sizes; hcp_0 is the innermost level",
  ["hybrid_dp_cp_*"] = "hybrid_context_parallel, if blocks have that number of ranks",
  ["dynamic_dp_cp_*"] = "dynamic_context_parallel, if blocks have that number of ranks",
  loss = "get_loss_ranks",
  tp_gtp_remat = "create_tp_gtp_remat_groups, tensor_model_parallel_size and gtp_remat_size above 1",
  expt_tp_gtp_remat = "create_tp_gtp_remat_groups, expert_tensor_parallel_size and expert_gtp_remat_size above 1",
  ["engram*"] = "engram_embedding_parallel_size",
}

return { getters = getters, families = families, data_parallel = data_parallel,
         expert_data_parallel = expert_data_parallel, between_instances = between_instances }
