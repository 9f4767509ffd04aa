-- optimum-habana's parallel state: the groups of Megatron-DeepSpeed, with getters of its own, a training mode
-- and setters.
-- Source: huggingface/optimum-habana; version 1.21.2 (the default): optimum/habana/distributed/parallel_state.py, the
-- same file since 1.16.0; version f3e24ce9: optimum/habana/parallel_state.py at this commit, before the file moved.
-- Version f3e24ce9 does not keep the sequence-parallel size of initialize_model_parallel, so in evaluation the size is
-- 1.
-- Not as there: sizes and split ranks below 0 are refused, and so is a size of 0 in a setter; a second state is a plan
-- of its own.
-- Recorded: 79 cases of 1 to 96 ranks, 15 of them refused: tests/golden/optimum_habana.json.

local groups = recipe "megatron_deepspeed"

-- Return a field of this rank's group, or nil before the initialization, when there is no group.
local function held(s, p, family, field)
  if p.initialize then return s[family][field] end
end

local function holds(family, field)
  return function(s, _, p) return held(s, p, family, field) end
end

-- Return the ranks of an embedding group, which every rank of its pipeline knows.
local function of_pipeline(family)
  return function(s, _, p)
    if p.initialize then return s.plan:family(family):ranks(s.pp.index) end
  end
end

local function initialized(_, _, p) return p.initialize end

-- Initialization switches to training; before it the answer is false.
local function is_training(_, _, p, set)
  if set.training == nil then return p.initialize end
  return set.training
end

-- Return the size that a setter gave; else, since 1.16.0, that of the initialization; else 1 in evaluation, where every
-- rank is its own sequence group; else the group's. The group itself does not change.
local function sequence_size(s, q, p, set)
  if set.sequence_parallel_world_size then return set.sequence_parallel_world_size end
  local kept = p.initialize and p.version ~= "f3e24ce9" and not set.sequence_parallel_world_size_none
  if kept then return p.sequence_parallel_size end
  if not is_training(s, q, p, set) then return 1 end
  return held(s, p, "sp", "size")
end

local function sequence_rank(s, q, p, set)
  if set.sequence_parallel_rank then return set.sequence_parallel_rank end
  if not is_training(s, q, p, set) then return 0 end
  return held(s, p, "sp", "position")
end

local function sequence_data_size(s, _, p, set)
  return set.sequence_data_parallel_world_size or held(s, p, "sp_dp", "size")
end

local function sequence_data_rank(s, _, p, set)
  return set.sequence_data_parallel_rank or held(s, p, "sp_dp", "position")
end

return recipe {
  doc = "optimum-habana's parallel state: Megatron-DeepSpeed's groups, training and evaluation mode",
  params = {
    version = param.text("1.21.2", "of optimum-habana: 1.21.2 or f3e24ce9"),
    tensor_model_parallel_size = param.size(1, "tensor-parallel size", "tp"),
    pipeline_model_parallel_size = param.size(1, "pipeline stages", "pp"),
    sequence_parallel_size = param.size(1, "Ulysses sequence-parallel size; excludes tp and pp", "sp"),
    virtual_pipeline_model_parallel_size = param.size(nil, "virtual stages per rank; needs 3 stages or more", "vpp"),
    pipeline_model_parallel_split_rank = param.integer(nil, "first stage of the decoder", "split"),
    use_fp8 = param.flag(false, "make the amax groups of FP8 training"),
    use_distributed_optimizer = param.flag(false, "make twins of the data-parallel groups on the CPU (MPI)"),
    initialize = param.flag(true, "false: make no groups; queries answer as before the initialization"),
  },
  settings = {
    training = param.flag(nil, "true: set_training_mode, false: set_eval_mode; left out: true, once there are groups"),
    sequence_parallel_world_size = param.size(nil, "instead of the group's size", "sp_world_size"),
    sequence_parallel_world_size_none = param.flag(false, "set_sequence_parallel_world_size(None) was called (1.21.2)"),
    sequence_parallel_rank = param.index(nil, "instead of this rank's position in the group", "sp_rank"),
    sequence_data_parallel_world_size = param.size(nil, "instead of the group's size", "sdp_world_size"),
    sequence_data_parallel_rank = param.index(nil, "instead of this rank's position in the group", "sdp_rank"),
  },
  build = function(world, p)
    if p.version ~= "1.21.2" and p.version ~= "f3e24ce9" then
      error("version '" .. p.version .. "' is unknown; '1.21.2' or 'f3e24ce9' would do")
    end
    if not p.initialize then return topology(world) end
    local sizes = {}
    for name, value in pairs(p) do sizes[name] = value end
    sizes.version, sizes.initialize, sizes.use_fp8 = nil, nil, false
    local t = groups.build(world, sizes)
    if p.use_fp8 then -- blocks of consecutive ranks; with sequence parallelism they are not tp x dp
      t.amax = grid(world, "block-rest", { block = t.tp.size * t.dp.size, rest = fill }) "block"
    end
    return t
  end,
  queries = {
    is_unitialized = function(_, _, p) return not p.initialize end, -- the file's spelling
    is_training_mode = is_training,
    model_parallel_is_initialized = initialized,
    sequence_parallel_is_initialized = initialized,
    sequence_data_parallel_is_initialized = initialized,
    amax_reduction_is_initialized = function(_, _, p) return p.initialize and p.use_fp8 end,
    model_parallel_world_size = function() return nil end, -- the file never gives it a value
    model_parallel_rank = function() return 0 end,
    model_parallel_group = holds("mp", "ranks"),
    sequence_parallel_world_size = sequence_size,
    sequence_parallel_rank = sequence_rank,
    sequence_parallel_src_rank = function(s, q, p, set)
      local size = sequence_size(s, q, p, set)
      return size and s.rank // size * size
    end,
    sequence_parallel_group = holds("sp", "ranks"),
    sequence_data_parallel_world_size = sequence_data_size,
    sequence_data_parallel_rank = sequence_data_rank,
    sequence_data_parallel_group = holds("sp_dp", "ranks"),
    -- gradients are averaged over sequence parts as well: sp x dp, not the replicas of one part
    data_parallel_world_size = sequence_data_size,
    data_parallel_group = holds("sp_dp", "ranks"),
    data_parallel_global_ranks = holds("dp", "ranks"),
    pipeline_global_ranks = holds("pp", "ranks"),
    embedding_global_ranks = of_pipeline "embd",
    position_embedding_global_ranks = of_pipeline "pos_embd",
    virtual_pipeline_model_parallel_world_size = function(_, _, p) return p.virtual_pipeline_model_parallel_size end,
    -- the file sets it to 0 if there are virtual stages, and never changes it
    virtual_pipeline_model_parallel_rank = function(_, _, p) return p.virtual_pipeline_model_parallel_size and 0 end,
    pipeline_model_parallel_split_rank = function(_, _, p) return p.pipeline_model_parallel_split_rank end,
  },
  getters = {
    get_model_parallel_group = "mp",
    get_sequence_parallel_group = "sp",
    get_sequence_data_parallel_group = "sp_dp",
    get_data_parallel_group = "sp_dp", -- as data_parallel_world_size
  },
  families = { dp_gloo = "use_distributed_optimizer", amax = "use_fp8", ["*"] = "initialize" },
}
