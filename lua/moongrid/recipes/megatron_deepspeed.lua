-- Megatron-DeepSpeed's parallel state: tensor or Ulysses sequence parallel innermost, then
-- data, then pipeline.
-- Source: HabanaAI/Megatron-DeepSpeed at commit 891d6db9, megatron/core/parallel_state.py.
-- Not as there: with tp 1, too, the amax groups are tensor x data parallel, not blocks of neighbours; a split rank
-- below 0 is refused; a state that was destroyed leaves nothing behind, and a second state is a plan of its own.
-- Recorded: 86 cases of 1 to 64 ranks, 15 of them refused: tests/golden/megatron_deepspeed.json.

local arithmetic = ...

-- Return the virtual stage that the question is about, or nil if it is not about virtual stages. With virtual stages
-- only the first (last) one of a rank counts as first (last).
local function virtual_rank(q, p)
  local vpp = p.virtual_pipeline_model_parallel_size
  if vpp and q.virtual_rank >= vpp then
    error(string.format("virtual_rank is a virtual stage from 0 to %d, not %d", vpp - 1, q.virtual_rank))
  end
  if vpp and not q.ignore_virtual then return q.virtual_rank end
end

local function is_first_stage(s, q, p) return (virtual_rank(q, p) or 0) == 0 and s.pp.position == 0 end

local function is_last_stage(s, q, p)
  local v = virtual_rank(q, p)
  return (not v or v == p.virtual_pipeline_model_parallel_size - 1) and s.pp.position == s.pp.size - 1
end

-- Return whether a stage is of the encoder. Stages from the split on are of the decoder.
local function before_split(s, stage, p)
  local split = p.pipeline_model_parallel_split_rank
  return s.pp.size == 1 or not split or stage < split
end

local function after_split(s, stage, p)
  local split = p.pipeline_model_parallel_split_rank
  return s.pp.size == 1 or not split or stage >= split
end

local queries = {
  pipeline_model_parallel_first_rank = function(s) return s.pp.first end,
  pipeline_model_parallel_last_rank = function(s) return s.pp.last end,
  pipeline_model_parallel_next_rank = function(s) return s.pp:next("wrap") end,
  pipeline_model_parallel_prev_rank = function(s) return s.pp:prev("wrap") end,
  pipeline_model_parallel_split_rank = function(_, _, p) return p.pipeline_model_parallel_split_rank end,
  virtual_pipeline_model_parallel_rank = function(_, q, p) return virtual_rank(q, p) end,
  virtual_pipeline_model_parallel_world_size = function(_, _, p) return p.virtual_pipeline_model_parallel_size end,
  tensor_model_parallel_src_rank = function(s) return s.tp.first end,
  data_parallel_src_rank = function(s) return s.dp.first end,
  sequence_parallel_src_rank = function(s) return s.sp.first end,
  model_parallel_rank = function(s) return s.pp.size == 1 and s.tp.position or nil end, -- only without pp
  model_parallel_world_size = function(s) return s.pp.size == 1 and s.tp.size or nil end,
  is_pipeline_first_stage = is_first_stage,
  is_pipeline_last_stage = is_last_stage,
  is_pipeline_stage_before_split = function(s, _, p) return before_split(s, s.pp.position, p) end,
  is_pipeline_stage_after_split = function(s, _, p) return after_split(s, s.pp.position, p) end,
  is_pipeline_stage_at_split = function(s, _, p)
    return before_split(s, s.pp.position, p) and after_split(s, s.pp.position + 1, p)
  end,
  is_rank_in_embedding_group = function(s, q, p)
    if not s.embd then return false end
    if q.ignore_virtual then return true end
    if s.rank == s.embd.first then return is_first_stage(s, q, p) end
    if s.rank == s.embd.last then return is_last_stage(s, q, p) end
    return true
  end,
  is_rank_in_position_embedding_group = function(s) return s.pos_embd ~= nil end,
}
for getter, family in pairs {
  tensor_model_parallel = "tp", pipeline_model_parallel = "pp", data_parallel = "dp", sequence_parallel = "sp",
  sequence_data_parallel = "sp_dp",
} do
  queries[getter .. "_rank"] = function(s) return s[family].position end
  queries[getter .. "_world_size"] = function(s) return s[family].size end
end

return recipe {
  doc = "Megatron-DeepSpeed's parallel state, with Ulysses sequence parallelism",
  params = {
    tensor_model_parallel_size = param.size(1, "tensor-parallel size", "tp"),
    pipeline_model_parallel_size = param.size(1, "pipeline stages", "pp"),
    sequence_parallel_size = param.size(1, "Ulysses sequence-parallel size; excludes tp and pp", "sp"),
    virtual_pipeline_model_parallel_size = param.size(nil, "virtual stages per rank; needs 3 stages or more", "vpp"),
    pipeline_model_parallel_split_rank = param.integer(nil, "first stage of the decoder", "split"),
    use_fp8 = param.flag(false, "make the amax groups of FP8 training"),
    use_distributed_optimizer = param.flag(false, "make twins of the data-parallel groups on the CPU (MPI)"),
  },
  build = function(world, p)
    local tp, pp, sp = p.tensor_model_parallel_size, p.pipeline_model_parallel_size, p.sequence_parallel_size
    local split = p.pipeline_model_parallel_split_rank
    if sp > 1 and (tp > 1 or pp > 1) then
      error(string.format("sequence parallelism (sp %d) excludes tensor and pipeline parallelism (tp %d, pp %d); "
        .. "set tp and pp to 1, or sp to 1", sp, tp, pp))
    end
    if p.virtual_pipeline_model_parallel_size and pp <= 2 then
      local nearest = sp == 1 and arithmetic.nearest(2, #world // tp, function(n) return n > 2 end)
      error(string.format("interleaved stages (vpp %d) need 3 pipeline stages or more, not %d; %s",
        p.virtual_pipeline_model_parallel_size, pp, nearest and "nearest is pp " .. nearest or "leave vpp out"))
    end
    if split and pp > 1 and (split < 0 or split >= pp) then
      error(string.format("pipeline_model_parallel_split_rank is a stage from 0 to %d, not %d", pp - 1, split))
    end
    if pp == 1 then split = nil end -- nothing to split

    local g = grid(world, "tp-sp-dp-pp", { tp = tp, sp = sp, pp = pp, dp = fill })
    local t = topology(world)
    t.grid = g
    t.dp = g "dp"
    if p.use_distributed_optimizer then t.dp_gloo = g "dp":with { backend = "mpi" } end
    t.sp = g "sp"
    t.sp_dp = g("sp", "dp") -- without sequence parallelism it has the communicators of dp
    t.mp = g("tp", "pp")
    t.tp = g "tp"
    t.pp = g "pp"
    t.embd = g "pp":pick(split and { 0, split, -1 } or { 0, -1 })
    t.pos_embd = g "pp":pick(split and { 0, split } or { 0 })
    if p.use_fp8 then t.amax = g("tp", "dp") end
    return t
  end,
  queries = queries,
  getters = {
    get_model_parallel_group = "mp",
    get_tensor_model_parallel_group = "tp",
    get_pipeline_model_parallel_group = "pp",
    get_sequence_parallel_group = "sp",
    get_sequence_data_parallel_group = "sp_dp",
    get_data_parallel_group = "dp",
    get_data_parallel_group_gloo = "dp_gloo",
    get_embedding_group = "embd",
    get_position_embedding_group = "pos_embd",
    get_amax_reduction_group = "amax",
  },
  families = { dp_gloo = "use_distributed_optimizer", amax = "use_fp8" },
  arguments = {
    check_initialized = param.flag(true, "false: return nil if there is no such group"),
    ignore_virtual = param.flag(false, "true: answer as if there were no virtual stages"),
    virtual_rank = param.index(0, "virtual stage of this rank"),
  },
}
