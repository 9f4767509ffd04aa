-- Megatron's getters. A rank outside the window gets no value, where Megatron raises; neither does a getter whose
-- groups the parameters do not ask for, or the version has not.

local part = select(2, ...)
local releases = part "releases"

-- This rank's group of a family that may not be there.
local function group_of(s, name)
  if s:has(name) then return s[name] end
end

local function ranks_of(group) return group and { group = group.ranks } end

local function with_remat(name, q, p)
  return q.with_gtp_remat ~= false and releases.has_remat(p) and name .. "_gtp_remat" or name
end

local function dp_of(s, q, p)
  if q.partial_data_parallel and not q.with_context_parallel then
    error("partial_data_parallel=true needs with_context_parallel=true: instances share dp x cp")
  end
  local name = not q.with_context_parallel and "dp" or q.partial_data_parallel and "intra_dp_cp" or "dp_cp"
  return s[with_remat(name, q, p)]
end

local function expt_dp_of(s, q, p)
  local name = q.partial_expert_data_parallel and "intra_expt_dp" or "expt_dp"
  return s[with_remat(name, q, p)]
end

-- With interleaving only the first (last) virtual stage of a rank is first (last).
local function is_first_stage(s, q, p)
  if not s.pp then return nil end
  local vpp = q.ignore_virtual == false and p.virtual_pipeline_model_parallel_size
  return s.pp.rank == 0 and (not vpp or (q.vp_stage or 0) == 0)
end

local function is_last_stage(s, q, p)
  if not s.pp then return nil end
  local vpp = q.ignore_virtual == false and p.virtual_pipeline_model_parallel_size
  return s.pp.rank == s.pp.size - 1 and (not vpp or (q.vp_stage or 0) == vpp - 1)
end

-- A block of dp x cp; that of all its ranks is dp x cp itself.
local function block_of(s, q, prefix)
  if s.dp_cp and q.group_size == s.dp_cp.size then return ranks_of(s.dp_cp) end
  return ranks_of(group_of(s, prefix .. tostring(q.group_size)))
end

local queries = {
  data_parallel_rank = function(s, q, p) return s.dp and dp_of(s, q, p).rank end,
  data_parallel_world_size = function(s, q, p) return s.dp and dp_of(s, q, p).size end,
  data_parallel_src_rank = function(s, q) return s.dp and s[q.with_context_parallel and "dp_cp" or "dp"].first end,
  expert_data_parallel_rank = function(s, q, p) return s.dp and expt_dp_of(s, q, p).rank end,
  expert_data_parallel_world_size = function(s, q, p) return s.dp and expt_dp_of(s, q, p).size end,
  pipeline_model_parallel_first_rank = function(s) return s.pp and s.pp.first end,
  pipeline_model_parallel_last_rank = function(s) return s.pp and s.pp.last end,
  pipeline_model_parallel_next_rank = function(s) return s.pp and s.pp:next("wrap") end,
  pipeline_model_parallel_prev_rank = function(s) return s.pp and s.pp:prev("wrap") end,
  virtual_pipeline_model_parallel_rank = function(_, q, p)
    return p.virtual_pipeline_model_parallel_size and (q.vp_stage or 0)
  end,
  virtual_pipeline_model_parallel_world_size = function(_, _, p) return p.virtual_pipeline_model_parallel_size end,
  is_pipeline_first_stage = is_first_stage,
  is_pipeline_last_stage = is_last_stage,
  is_rank_in_embedding_group = function(s, q, p)
    if not s.embd or q.ignore_virtual ~= false then return s.embd ~= nil end
    if s.rank == s.embd.first then return is_first_stage(s, q, p) end
    return s.rank ~= s.embd.last or is_last_stage(s, q, p)
  end,
  is_rank_in_position_embedding_group = function(s) return s.pos_embd ~= nil end,
  all_ranks = function(s, _, p)
    if not s.tp then return nil end
    local dp = dp_of(s, {}, p).rank
    if not releases.has_remat(p) then return table.concat({ s.tp.rank, dp, s.cp.rank, s.pp.rank, s.ep.rank }, "_") end
    return table.concat({ s.tp.rank, s.gtp_remat.rank, dp, s.cp.rank, s.pp.rank, s.ep.rank }, "_")
  end,
  has_separate_all_gather_group = function(s) return group_of(s, "dp_cp_ag") ~= nil end,
  inter_distributed_optimizer_instance_group = function(s)
    return ranks_of(group_of(s, "inter_dp_cp") or group_of(s, "inter_dist_opt"))
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
  local function of(s) return group_of(s, family) end
  queries[getter .. "_rank"] = function(s) return of(s) and of(s).rank end
  queries[getter .. "_world_size"] = function(s) return of(s) and of(s).size end
  queries[getter .. "_src_rank"] = function(s) return of(s) and of(s).first end
end

return queries
