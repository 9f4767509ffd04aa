-- Megatron's getters of numbers, and the arguments of all getters. For a rank outside the window, and for groups that
-- do not exist with the parameters or in the version, the answer is nil, where Megatron raises an error.

local part = select(2, ...)
local releases, getters = part "releases", part "getters"

-- Return this rank's group of a family that may not exist.
local function group_of(s, name)
  if s:has(name) then return s[name] end
end

local function ranks_of(group) return group and { group = group.ranks } end

local function dp_of(s, q, p) return s[getters.data_parallel(s, q, p)] end
local function expt_dp_of(s, q, p) return s[getters.expert_data_parallel(s, q, p)] end

-- Return the requested virtual stage, if the question is about virtual stages.
local function virtual_stage(q, p)
  local vpp, stage = p.virtual_pipeline_model_parallel_size, q.vp_stage or 0
  if vpp and stage >= vpp then
    error(string.format("vp_stage is a virtual stage from 0 to %d, not %d", vpp - 1, stage))
  end
  if vpp and not q.ignore_virtual then return stage end
end

-- With interleaving only the first (last) virtual stage of a rank counts as first (last).
local function is_first_stage(s, q, p)
  local virtual = virtual_stage(q, p)
  return s.pp and s.pp.position == 0 and (virtual or 0) == 0
end

local function is_last_stage(s, q, p)
  local virtual = virtual_stage(q, p)
  return s.pp and s.pp.position == s.pp.size - 1
    and (not virtual or virtual == p.virtual_pipeline_model_parallel_size - 1)
end

-- Return the ranks of this rank's block of dp x cp. The block of all ranks is dp x cp itself.
local function block_of(s, q, prefix)
  if s.dp_cp and q.group_size == s.dp_cp.size then return ranks_of(s.dp_cp) end
  return ranks_of(group_of(s, prefix .. tostring(q.group_size)))
end

local queries = {
  model_size = steps.model_size, -- not a question of Megatron: parameters, those that a token uses, flops for a token
  data_parallel_rank = function(s, q, p) return s.dp and dp_of(s, q, p).position end,
  data_parallel_world_size = function(s, q, p) return s.dp and dp_of(s, q, p).size end,
  data_parallel_src_rank = function(s, q) return s.dp and s[q.with_context_parallel and "dp_cp" or "dp"].first end,
  expert_data_parallel_rank = function(s, q, p) return s.dp and expt_dp_of(s, q, p).position end,
  expert_data_parallel_world_size = function(s, q, p) return s.dp and expt_dp_of(s, q, p).size end,
  pipeline_model_parallel_first_rank = function(s) return s.pp and s.pp.first end,
  pipeline_model_parallel_last_rank = function(s) return s.pp and s.pp.last end,
  pipeline_model_parallel_next_rank = function(s) return s.pp and s.pp:next("wrap") end,
  pipeline_model_parallel_prev_rank = function(s) return s.pp and s.pp:prev("wrap") end,
  virtual_pipeline_model_parallel_rank = function(_, q, p)
    virtual_stage(q, p) -- refuses a stage that does not exist
    return p.virtual_pipeline_model_parallel_size and (q.vp_stage or 0)
  end,
  virtual_pipeline_model_parallel_world_size = function(_, _, p) return p.virtual_pipeline_model_parallel_size end,
  is_pipeline_first_stage = is_first_stage,
  is_pipeline_last_stage = is_last_stage,
  is_rank_in_embedding_group = function(s, q, p)
    if not s.embd or q.ignore_virtual then return s.embd ~= nil end
    if s.rank == s.embd.first then return is_first_stage(s, q, p) end
    return s.rank ~= s.embd.last or is_last_stage(s, q, p)
  end,
  is_rank_in_position_embedding_group = function(s) return s.pos_embd ~= nil end,
  all_ranks = function(s, _, p)
    if not s.tp then return nil end
    local positions = { s.tp.position, dp_of(s, { with_gtp_remat = true }, p).position, s.cp.position, s.pp.position,
      s.ep.position }
    if releases.has_remat(p) then table.insert(positions, 2, s.gtp_remat.position) end
    return table.concat(positions, "_")
  end,
  has_separate_all_gather_group = function(s) return group_of(s, "dp_cp_ag") ~= nil end,
  inter_distributed_optimizer_instance_group = function(s, q, p)
    return ranks_of(group_of(s, getters.between_instances(s, q, p)))
  end,
  loss_global_ranks = function(s)
    local loss = group_of(s, "loss")
    return loss and loss.ranks
  end,
  hybrid_data_context_parallel_groups = function(s, q) return block_of(s, q, "hybrid_dp_cp_") end,
  dynamic_data_context_parallel_groups = function(s, q) return block_of(s, q, "dynamic_dp_cp_") end,
}
for getter, family in pairs {
  tensor_model_parallel = "tp", pipeline_model_parallel = "pp", context_parallel = "cp", model_parallel = "mp",
  tensor_and_context_parallel = "tp_cp", gtp_weight_remat = "gtp_remat", expert_model_parallel = "ep",
  expert_tensor_parallel = "expt_tp", expert_tensor_and_model_parallel = "tp_ep",
  expert_gtp_weight_remat = "expt_gtp_remat",
} do
  local function group(s) return group_of(s, family) end
  queries[getter .. "_rank"] = function(s) return group(s) and group(s).position end
  queries[getter .. "_world_size"] = function(s) return group(s) and group(s).size end
  queries[getter .. "_src_rank"] = function(s) return group(s) and group(s).first end
end

local arguments = {
  check_initialized = param.flag(true, "false: return nil if there is no such group"),
  with_context_parallel = param.flag(false, "the group that also has the ranks of context parallelism"),
  with_gtp_remat = param.flag(true, "the group that also has the ranks of gtp_remat (version 0.19)"),
  with_egtp_remat = param.flag(false, "the group of experts that also has the ranks of gtp_remat"),
  partial_data_parallel = param.flag(false, "the group of one optimizer instance; needs with_context_parallel"),
  partial_expert_data_parallel = param.flag(false, "the same for experts"),
  tp_only_amax_red = param.flag(false, "the amax group without data parallelism"),
  group_size = param.size(nil, "ranks of a block of dp x cp"),
  level = param.index(0, "level of hierarchical context parallelism; 0 is the innermost"),
  ignore_virtual = param.flag(true, "false: only the first and the last virtual stage count"),
  vp_stage = param.index(nil, "virtual stage of this rank; left out, 0"),
}

return { queries = queries, arguments = arguments }
