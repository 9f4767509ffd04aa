-- SPDX-License-Identifier: MIT
--
-- Every bundled recipe: each refusal in its text is provoked and compared whole, what a refusal
-- suggests is tried, and layouts are planned, played and asked.

local mg = require "moongrid"

local loaded = {}

local function recipe(name)
  loaded[name] = loaded[name] or mg.load(name)
  return loaded[name]
end

-- What a recipe says to parameters: nil where it takes them, else position and message. It stays
-- useful afterwards, so one of each will do.
local function refusal(name, params, world)
  local r = recipe(name)
  local ok, said = pcall(r.plan, r, world or 8, params)
  if ok then return nil end
  assert.is_string(said)
  local at, message = said:match "^([%w_]+:%d+): (.*)$"
  assert.is_truthy(at, "no position: " .. said)
  return message, at
end

-- The same for a question at rank 0.
local function query_refusal(name, case)
  local r = recipe(name)
  local ok, said = pcall(r.ask, r, r:plan(8, case.params or {}):dry(0), case.ask, case.q or {})
  if ok then return nil end
  local at, message = tostring(said):match "^([%w_]+:%d+): (.*)$"
  assert.is_truthy(at, "no position: " .. tostring(said))
  return message, at
end

local function provoke(name, case)
  if case.ask then return query_refusal(name, case) end
  return refusal(name, case.params, case.world)
end

local none = {} -- as an override: the parameter is left out

local function changed(params, overrides)
  local copy = {}
  for key, value in pairs(params) do copy[key] = value end
  for key, value in pairs(overrides) do
    if value == none then copy[key] = nil else copy[key] = value end
  end
  return copy
end

local function accepts(name, params, world)
  local message = refusal(name, params, world)
  assert.is_nil(message, message and ("a suggestion is refused: " .. message))
end

-- The lines of a recipe's text where it refuses.
local function refusing_lines(name)
  local lines, n = {}, 0
  for line in io.lines("lua/moongrid/recipes/" .. name .. ".lua") do
    n = n + 1
    local refuses = line:find '%f[%w_]error ?[("]' or line:find '%f[%w_]refuse ?[("]'
    if refuses and not line:find "local function refuse" and not line:find "^%s*%-%-" then lines[#lines + 1] = n end
  end
  return lines, n
end

-- Systems -------------------------------------------------------------------------
--
-- refused: { what, params, message, world = 8, would = { what the message suggests } }, or
--   { what, ask = query, q, message } for a question; `words` instead of a message: all of them
--   must be in it
-- layouts: fit any power of two from 8 on; the first is the typical one
-- asks: a query's arguments, several of them; `asks[1]` for all others
-- values: a parameter's value beside its default, and what it needs besides

local keys = "gtp_remat, dp_cp, intra_dp_cp, gtp_remat_dp, gtp_remat_dp_cp, dp, cp, hcp, mp, tp, pp, embd, pos_embd, tp_dp, "
  .. "tp_dp_cp, tp_cp, expt_gtp_remat, ep, ep_tp, tp_ep_mp, tp_ep_pp, tp_ep_gtp_remat_pp, ep_dp, intra_ep_dp, inter_ep_dp, "
  .. "ep_gtp_remat_dp, intra_dist_opt_instance"

local systems = {}

systems.picotron = {
  refused = {
    { "a size that does not divide", { tp = 3 }, "tp 3 does not divide the 8 ranks; nearest: tp 2 or 4, or a world of 6 or 9 ranks",
      would = { { tp = 2 }, { tp = 4 } } },
    { "sizes that make another world", { tp = 2, dp = 2 },
      "tp 2 x dp 2 = 4 does not make the 8 ranks; nearest: tp 4, or a world of 4 ranks", would = { { tp = 4 } } },
    { "a size larger than the world", { tp = 16 }, "tp 16 does not divide the 8 ranks; nearest: tp 8, or a world of 16 ranks",
      would = { { tp = 8 } } },
    { "a size of 1 that makes another world", { dp = 1 }, words = { "dp 1", "does not make the 8 ranks; nearest: tp 8" },
      would = { { tp = 8 } } },
  },
  layouts = { { tp_size = 2, pp_size = 2 }, {}, { tp_size = 8 }, { cp_size = 4 }, { pp_size = 4, cp_size = 2 },
              { tp_size = 2, cp_size = 2, pp_size = 2 } },
  values = { tp_size = { 2 }, cp_size = { 2 }, pp_size = { 2 }, dp_size = { 8 } },
}

systems.megatron_deepspeed = {
  refused = {
    { "sequence and tensor parallelism", { sp = 2, tp = 2 }, "sequence parallelism (sp 2) excludes tensor and pipeline "
      .. "parallelism (tp 2, pp 1); set tp and pp to 1, or sp to 1", would = { { tp = 1, pp = 1 }, { sp = 1 } } },
    { "a split after the last stage", { split = 2, pp = 2 },
      "pipeline_model_parallel_split_rank is a stage from 0 to 1, not 2", would = { { split = 0 }, { split = 1 } } },
    { "a split before the first stage", { split = -1, pp = 2 },
      "pipeline_model_parallel_split_rank is a stage from 0 to 1, not -1", would = { { split = 0 }, { split = 1 } } },
    { "interleaving of 2 stages", { vpp = 2, pp = 2 }, words = { "vpp 2", "3 pipeline stages", "not 2", "nearest is pp 4" },
      would = { { pp = 4 } } },
    { "a size that does not divide", { tp = 3 }, "tp 3 does not divide the 8 ranks; nearest: tp 2 or 4, or a world of 6 or 9 ranks" },
  },
  layouts = { { tp = 2, pp = 4, vpp = 2, split = 2 }, {}, { tp = 4 }, { sp = 4 }, { pp = 4, split = 1 },
              { tp = 2, pp = 2, use_fp8 = true }, { sp = 2, use_fp8 = true, use_distributed_optimizer = true } },
  asks = { { {}, { virtual_rank = 1 }, { virtual_rank = 0, ignore_virtual = true } } },
  values = { tensor_model_parallel_size = { 2 }, pipeline_model_parallel_size = { 2 }, sequence_parallel_size = { 2 },
             virtual_pipeline_model_parallel_size = { 2, { pp = 4 } }, pipeline_model_parallel_split_rank = { 1, { pp = 2 } } },
}

systems.megatron = {
  refused = {
    { "an unknown dim", { order = "tp-xx" },
      "order 'tp-xx' has 'xx', which is no dim; it takes each of tp, cp, ep, dp, pp once, as 'tp-cp-ep-dp-pp'",
      would = { { order = "tp-cp-ep-dp-pp" } } },
    { "a dim twice", { order = "tp-dp-TP" },
      "order 'tp-dp-TP' has 'tp' twice; it takes each of tp, cp, ep, dp, pp once, as 'tp-cp-ep-dp-pp'" },
    { "a dim without a place", { order = "tp-cp-ep-dp", pp = 2 },
      "order 'tp-cp-ep-dp' does not say where pp of size 2 goes; 'tp-cp-ep-dp-pp' would do",
      would = { { order = "tp-cp-ep-dp-pp" } } },
    { "an offset behind the world", { rank_offset = 8 }, "rank_offset is a rank from 0 to 7, not 8",
      would = { { rank_offset = 0 }, { rank_offset = 7 } } },
    { "a negative offset", { offset = -1 }, "rank_offset is a rank from 0 to 7, not -1" },
    { "a job larger than its window", { offset = 4, local_world_size = 8 },
      "local_world_size 8 is more than the 4 ranks from rank_offset 4 on; 4 would do",
      would = { { local_world_size = 4 } } },
    { "options of an unknown key", { nccl_communicator_config = { x = { max_ctas = 8 } } },
      "nccl_communicator_config names 'x', which is no key of groups; there are " .. keys },
    { "a priority of an unknown key", { high_priority_stream_groups = { "dp", "dpx" } },
      "high_priority_stream_groups names 'dpx', which is no key of groups; there are " .. keys,
      would = { { high_priority_stream_groups = { "dp" } } } },
    { "a priority of an unknown key as text", { high_priority_stream_groups = "dp,dpx" },
      "high_priority_stream_groups names 'dpx', which is no key of groups; there are " .. keys,
      would = { { high_priority_stream_groups = "dp" } } },
    { "priorities by name", { high_priority_stream_groups = { dp = true } }, words = { "high_priority_stream_groups", "dp" } },
    { "options that are no table", { nccl_communicator_config = { dp = 5 } }, words = { "nccl_communicator_config", "dp", "5" } },
    { "options with an unknown field", { nccl_communicator_config = { dp = { max_cta = 5 } } },
      words = { "nccl_communicator_config", "dp", "max_cta'", "max_ctas" } },
    { "a negative timeout", { distributed_timeout_minutes = -1 }, words = { "distributed_timeout_minutes", "-1" } },
    { "a timeout too long", { distributed_timeout_minutes = 1e9 }, words = { "distributed_timeout_minutes" } },
    { "SHARP of a group without SHARP", { sharp_enabled_group = "dp" }, "sharp_enabled_group 'dp' needs use_sharp=true",
      would = { { use_sharp = true } } },
    { "SHARP of another group", { sharp_enabled_group = "tp", use_sharp = true },
      "sharp_enabled_group is 'dp' or 'dp_replica', not 'tp'",
      would = { { sharp_enabled_group = "dp" }, { sharp_enabled_group = "dp_replica", instances = 2 } } },
    { "SHARP of another group, whether SHARP is on or not", { sharp_enabled_group = "tp" },
      "sharp_enabled_group is 'dp' or 'dp_replica', not 'tp'" },
    { "SHARP of replicas there are not", { sharp_enabled_group = "dp_replica", use_sharp = true },
      "sharp_enabled_group 'dp_replica' needs num_distributed_optimizer_instances of 2 or more, not 1",
      would = { { instances = 2 } } },
    { "a stage there is not", { get_embedding_ranks = { 0, 2 }, pp = 2 },
      "get_embedding_ranks has stage '2'; with pp 2 there are 0 to 1, or -1 to -2 from the end, or \"all\"",
      would = { { get_embedding_ranks = { 0, 1 } }, { get_embedding_ranks = { -1, -2 } }, { get_embedding_ranks = "all" } } },
    { "a stage before the first", { pos_embd = "-3", pp = 2 },
      "get_position_embedding_ranks has stage '-3'; with pp 2 there are 0 to 1, or -1 to -2 from the end, or \"all\"" },
    { "half a stage", { pos_embd = 0.5, pp = 2 },
      "get_position_embedding_ranks has stage '0.5'; with pp 2 there are 0 to 1, or -1 to -2 from the end, or \"all\"" },
    { "no stage at all", { embd = {}, pp = 2 },
      "get_embedding_ranks is empty; a list of stages as 0,-1 would do, or \"all\"",
      would = { { embd = "0,-1" }, { embd = "all" } } },
    { "instances that do not divide", { instances = 3 },
      "num_distributed_optimizer_instances 3 does not divide the 8 ranks of dp x cp; 1 would do", would = { { instances = 1 } } },
    { "instances that cut the experts' data", { instances = 4, ep = 4 },
      "num_distributed_optimizer_instances 4 does not divide the 2 ranks of expert data parallel; 2 would do",
      would = { { instances = 2 } } },
    { "instances with shared weights", { instances = 2, gtp = 2 }, "num_distributed_optimizer_instances 2 excludes "
      .. "gtp_remat_size 2 and expert_gtp_remat_size 1; set it to 1, or both of them", would = { { instances = 1 }, { gtp = 1 } } },
    { "instances with shared weights of experts", { instances = 2, egtp = 2 }, "num_distributed_optimizer_instances 2 "
      .. "excludes gtp_remat_size 1 and expert_gtp_remat_size 2; set it to 1, or both of them", would = { { egtp = 1 } } },
    { "instances that differ between the grids", { instances = 2, cp = 2, ep = 2, order = "dp-tp-cp-ep-pp" },
      "order 'dp-tp-cp-ep-pp' cuts other optimizer instances out of the dense grid than out of the expert grid; "
      .. "num_distributed_optimizer_instances 1 would do instead of 2", would = { { instances = 1 } } },
    { "blocks that leave ranks over", { hybrid_cp = true, pp = 2 }, "hybrid_context_parallel cuts the 10 ranks of dp x cp into "
      .. "blocks of 4, which leaves 2 over; 12 would do", world = 20 },
    { "interleaving of 1 stage", { vpp = 2 },
      "virtual_pipeline_model_parallel_size 2 needs 2 pipeline stages or more; pp 2 would do", would = { { pp = 2 } } },
    { "another backend of the pipeline", { pipeline_model_parallel_comm_backend = "gloo" },
      "pipeline_model_parallel_comm_backend is 'nccl' or 'ucc', not 'gloo'",
      would = { { pipeline_model_parallel_comm_backend = "nccl" }, { pipeline_model_parallel_comm_backend = "ucc" } } },
    { "stages inside other data (mc-076)", { order = "tp-pp-cp-ep-dp", pp = 2, cp = 2 },
      "order 'tp-pp-cp-ep-dp' does not end in pp, and the data-parallel sizes differ: dense 2, expert 4; "
      .. "an order that ends in pp would do", would = { { order = "tp-cp-ep-dp-pp" } } },
    { "stages that differ between the grids", { order = "cp-pp-ep-dp-tp", pp = 2, cp = 2, ep = 2 },
      "order 'cp-pp-ep-dp-tp' gives the dense and the expert grid different pipeline groups; "
      .. "an order that ends in pp would do", would = { { order = "cp-ep-dp-tp-pp" } } },
    { "levels that do not make cp", { hcp = { 2, 4 }, cp = 4 },
      "hierarchical_context_parallel_sizes 2,4 must be sizes that multiply to cp 4; 4 would do", would = { { hcp = { 4 } } } },
    { "levels of size 0", { hcp = { 4, 0 }, cp = 4 },
      "hierarchical_context_parallel_sizes 4,0 must be sizes that multiply to cp 4; 4 would do" },
    { "levels beyond 64 bits", { hcp = { 3, 6148914691236517206 }, cp = 2 }, words = { "hierarchical_context_parallel_sizes", "cp 2" } },
    { "a size that does not divide", { tp = 3 }, "tp 3 does not divide the 8 ranks; nearest: tp 2 or 4, or a world of 6 or 9 ranks" },
    { "experts that do not fit", { tp = 4, ep = 4 }, "etp 4 x ep 4 = 16 does not divide the 8 ranks; nearest: etp 2, or a world of 16 ranks",
      would = { { etp = 2 } } },
    { "a size that does not divide a window", { offset = 1, tp = 2 },
      "tp 2 does not divide the 7 ranks of the window; nearest: tp 1 or 7, or a window of 6 or 8 ranks", would = { { tp = 1 }, { tp = 7 } } },
    { "a partial question without context parallel", ask = "data_parallel_rank", q = { partial_data_parallel = true },
      message = "partial_data_parallel=true needs with_context_parallel=true: instances share dp x cp" },
  },
  layouts = { { tp = 2, pp = 2, vpp = 2, ep = 2, hybrid_cp = true, embd = "all" }, {}, { tp = 8, ag = true }, { cp = 4, hcp = { 2, 2 } },
              { ep = 4, instances = 2 }, { gtp = 2, egtp = 2, ag = true, for_expert_parallelism = true, ep = 2 },
              { order = "pp-tp-cp-ep-dp", pp = 2, cp = 2, ep = 2 }, { offset = 4, local_world_size = 4, tp = 2, pp = 2 } },
  asks = {
    { {}, { with_context_parallel = true, partial_data_parallel = true }, { with_gtp_remat = false },
      { partial_expert_data_parallel = true }, { ignore_virtual = false, vp_stage = 1 } },
    hybrid_data_context_parallel_groups = { { group_size = 2 }, { group_size = 5 }, {} },
  },
  values = { tensor_model_parallel_size = { 2 }, pipeline_model_parallel_size = { 2 }, use_sharp = { true },
             virtual_pipeline_model_parallel_size = { 2, { pp = 2 } }, context_parallel_size = { 2 },
             hierarchical_context_parallel_sizes = { { 2, 2 }, { cp = 4 } }, hybrid_context_parallel = { true },
             expert_model_parallel_size = { 2 }, expert_tensor_parallel_size = { 2 }, gtp_remat_size = { 2 },
             expert_gtp_remat_size = { 2 }, num_distributed_optimizer_instances = { 2 }, get_embedding_ranks = { { 0 } },
             get_position_embedding_ranks = { "all", { pp = 2 } }, create_gloo_process_groups = { false },
             create_all_gather_groups = { true }, rank_offset = { 4 } },
}

systems.deepspeed = {
  refused = {
    { "an unknown dim", { order = "tp-xx" }, "order 'tp-xx': unknown dim 'xx'; known: tp, sp, cp, ep, dp, pp" },
    { "a dim twice", { order = "tp-dp-TP" }, "order 'tp-dp-TP': dim 'tp' occurs twice; name each once" },
    { "sequence parallelism without a place (pr-070)", { sp = 2 }, "order 'tp-ep-dp-pp' lacks dim 'sp' of size 2, whose place is "
      .. "never guessed; 'sp-tp-ep-dp-pp' would do", would = { { order = "sp-tp-ep-dp-pp" } } },
    { "data without a place", { order = "tp-pp", tp = 2 }, "order 'tp-pp' lacks dim 'dp' of size 4, whose place is "
      .. "never guessed; 'dp-tp-pp' would do", would = { { order = "dp-tp-pp" } } },
    { "sequence and tensor parallelism", { sp = 2, tp = 2, order = "sp-tp-dp-pp" }, "sequence_parallel_size 2 excludes tensor, "
      .. "pipeline and expert parallelism (tp 2, pp 1, ep 1, etp 2); set those to 1, or sp to 1",
      would = { { tp = 1 }, { sp = 1 } } },
    { "sequence and expert parallelism (pr-036)", { sp = 2, ep = 2, order = "sp-ep-dp-pp" }, "sequence_parallel_size 2 excludes "
      .. "tensor, pipeline and expert parallelism (tp 1, pp 1, ep 2, etp 1); set those to 1, or sp to 1", would = { { ep = 1 } } },
    { "interleaving of 1 stage", { vpp = 2 },
      "virtual_pipeline_model_parallel_size 2 needs more than 1 pipeline stage; nearest is pp 2", would = { { pp = 2 } } },
    { "another backend of the pipeline", { pipeline_model_parallel_comm_backend = "gloo" },
      "pipeline_model_parallel_comm_backend 'gloo' is not supported; 'nccl' or 'ucc' would do",
      would = { { pipeline_model_parallel_comm_backend = "nccl" }, { pipeline_model_parallel_comm_backend = "ucc" } } },
    { "levels that do not make cp", { hcp = { 2, 4 }, cp = 4, order = "cp-dp" }, "hierarchical_context_parallel_sizes {2,4}: "
      .. "sizes that multiply to context_parallel_size 4 would do, such as {4}", would = { { hcp = { 4 } } } },
    { "no levels", { hcp = {} }, "hierarchical_context_parallel_sizes {}: sizes that multiply to context_parallel_size 1 "
      .. "would do, such as {1}", would = { { hcp = { 1 } } } },
    { "negative levels", { hcp = { -2, -2 }, cp = 4, order = "cp-dp" }, "hierarchical_context_parallel_sizes {-2,-2}: "
      .. "sizes that multiply to context_parallel_size 4 would do, such as {4}" },
    { "levels beyond 64 bits", { hcp = { 3, 6148914691236517206 }, cp = 2, order = "cp-dp" },
      words = { "hierarchical_context_parallel_sizes", "context_parallel_size 2" } },
    { "a stage there is not", { get_embedding_ranks = { 2 }, pp = 2 },
      "get_embedding_ranks: 2 is no stage; 0 to 1 would do, or -1",
      would = { { get_embedding_ranks = { 0, 1 } }, { get_embedding_ranks = { -1 } } } },
    { "a stage before the first", { get_position_embedding_ranks = { -3 }, pp = 2 },
      "get_position_embedding_ranks: -3 is no stage; 0 to 1 would do, or -1" },
    { "no stage at all", { get_embedding_ranks = {}, pp = 2 }, words = { "get_embedding_ranks", "would do" } },
    { "no stage of positions at all", { get_position_embedding_ranks = {}, pp = 2 }, words = { "get_position_embedding_ranks", "would do" } },
    { "a priority that is no list", { high_priority_stream_groups = "tp" },
      "high_priority_stream_groups is tp; a list such as [\"tp\"] would do", would = { { high_priority_stream_groups = { "tp" } } } },
    { "a priority of no family", { high_priority_stream_groups = { "tpx" } }, words = { "high_priority_stream_groups", "'tpx'", "'tp'" } },
    { "a priority of a grid", { high_priority_stream_groups = { "dense" } }, words = { "high_priority_stream_groups", "'dense'" } },
    { "priorities by name", { high_priority_stream_groups = { tp = true } }, words = { "high_priority_stream_groups" } },
    { "options of no family", { nccl_communicator_config = { tpx = { max_ctas = 8 } } },
      words = { "nccl_communicator_config", "'tpx'", "'tp'" } },
    { "options of a grid", { nccl_communicator_config = { dense = { max_ctas = 8 } } }, words = { "nccl_communicator_config", "'dense'" } },
    { "options that are no table", { nccl_communicator_config = { tp = 5 } }, words = { "nccl_communicator_config", "tp", "5" } },
    { "a negative timeout", { distributed_timeout_minutes = -1 }, words = { "distributed_timeout_minutes", "-1" } },
    { "stages that differ between the grids (pr-087)", { order = "tp-ep-pp-dp", pp = 2, ep = 2 }, "order 'tp-ep-pp-dp' gives "
      .. "dense and expert layers different pipeline groups, so experts would cross stages; an order that ends in pp would do",
      would = { { order = "tp-ep-dp-pp" } } },
    { "instances that do not divide", { instances = 4, ep = 4 }, "num_distributed_optimizer_instances 4 does not divide the "
      .. "data-parallel sizes (dense 8, expert 2); a divisor of 2 would do", would = { { instances = 2 }, { instances = 1 } } },
    { "instances that differ between the grids", { instances = 2, ep = 2, order = "tp-dp-ep-pp" }, "order 'tp-dp-ep-pp' gives "
      .. "dense and expert layers different ranks in each of 2 optimizer instances; num_distributed_optimizer_instances 1, "
      .. "or dp last but for pp, would do", would = { { instances = 1 }, { order = "tp-ep-dp-pp" } } },
    { "instances without a rule", { instances = 2, cp = 2, tp = 2, order = "dp-tp-cp-pp" }, "order 'dp-tp-cp-pp' gives "
      .. "dense and expert layers different ranks in each of 2 optimizer instances; num_distributed_optimizer_instances 1, "
      .. "or dp last but for pp, would do", would = { { instances = 1 }, { order = "tp-cp-dp-pp" } } },
    { "nodes that do not divide (pr-058)", { devices_per_node = 3 },
      "device_count 3 does not divide the 8 ranks; nearest: device_count 2 or 4, or a world of 6 or 9 ranks",
      would = { { devices_per_node = 2 }, { devices_per_node = 4 } } },
    { "a config whose section is no table", { config = { tensor_parallel = 5 } },
      "config: tensor_parallel is 5, no table; {\"autotp_size\":2} would do",
      would = { { config = { tensor_parallel = { autotp_size = 2 } } } } },
    { "a config that contradicts itself", { config = { tensor_parallel = { autotp_size = 2 }, tensor_model_parallel_size = 4 } },
      "config: tensor_parallel.autotp_size is 2, but tensor_model_parallel_size is 4; one of them would do",
      would = { { config = { tensor_parallel = { autotp_size = 2 } } }, { config = { tensor_model_parallel_size = 4 } } } },
    { "context parallelism from a config (pr-083)", { config = { context_parallel_size = 2, order = "cp-dp" } }, "config: there is no "
      .. "context parallelism from a config (context_parallel_size 2); leave out its sizes, or give arguments only",
      would = { { config = { order = "cp-dp" } }, { config = none, order = "cp-dp", cp = 2 } } },
    { "levels from a config", { config = { hierarchical_context_parallel_sizes = { 2 } } },
      words = { "config", "hierarchical_context_parallel_sizes" }, would = { { config = {} } } },
    { "a size of a config", { config = { tensor_parallel = { autotp_size = 0 } } },
      "parameter 'tensor_model_parallel_size' is a size (an integer of 1 or more), not 0; nearest is 1",
      would = { { config = { tensor_parallel = { autotp_size = 1 } } } } },
    { "a size that does not divide", { tp = 3 }, "tp 3 does not divide the 8 ranks; nearest: tp 2 or 4, or a world of 6 or 9 ranks" },
    { "a partial question without context parallel", ask = "data_parallel_rank", q = { partial_data_parallel = true },
      message = "partial_data_parallel needs with_context_parallel; there are no groups without it" },
  },
  layouts = { { tp = 2, pp = 2, ep = 2 }, {}, { sp = 4, order = "sp-dp-pp" }, { cp = 4, hcp = { 2, 2 }, order = "cp-tp-ep-dp-pp" },
              { ep = 4, instances = 2 }, { tp = 2, etp = 1, ep = 2, devices_per_node = 4 },
              { config = { tensor_parallel = { autotp_size = 2 } } } },
  asks = { { {}, { with_context_parallel = true, partial_data_parallel = true } } },
  values = { tensor_model_parallel_size = { 2 }, pipeline_model_parallel_size = { 2 }, context_parallel_size = { 2, { order = "cp-dp" } },
             virtual_pipeline_model_parallel_size = { 2, { pp = 2 } }, sequence_parallel_size = { 2, { order = "sp-dp" } },
             hierarchical_context_parallel_sizes = { { 2, 2 }, { cp = 4, order = "cp-dp" } }, expert_model_parallel_size = { 2 },
             expert_tensor_parallel_size = { 2 }, num_distributed_optimizer_instances = { 2 }, device_count = { 4 } },
}

systems.deepspeed_moe = {
  refused = {
    { "a folding spec with an unknown name", { ep = { 2 }, folding_spec = { x = 1 } },
      "folding_spec: unknown 'x'; known: world_size, pp_size, tp_size, ep_size, etp_size, mp_mode" },
    { "a folding spec that contradicts", { ep = { 2 }, folding_spec = { ep_size = 4 } },
      "folding_spec: ep_size is 4, which contradicts the other parameters; 2 would do",
      would = { { folding_spec = { ep_size = 2 } } } },
    { "a folding spec of another world", { ep = { 2 }, folding_spec = { world_size = 16 } },
      "folding_spec: world_size is 16, which contradicts the other parameters; 8 would do",
      would = { { folding_spec = { world_size = 8 } } } },
    { "an unknown folding spec without experts", { folding_spec = { x = 1 } }, words = { "folding_spec" } },
    { "another mode", { ep = { 2 }, mp_mode = "dp" }, "mp_mode is 'dp'; 'tp' or 'sp' would do",
      would = { { mp_mode = "tp" }, { mp_mode = "sp" } } },
    { "another mode without experts", { mp_mode = "dp" }, "mp_mode is 'dp'; 'tp' or 'sp' would do" },
    { "data before experts with tensor parallelism", { ep = { 2 }, mp = 2, use_data_before_expert_parallel_ = true },
      "use_data_before_expert_parallel_ excludes mp_size 2 without enable_expert_tensor_parallelism; mp_size 1 would do",
      would = { { mp = 1 }, { enable_expert_tensor_parallelism = true } } },
    { "no size of experts", { ep = {} }, "expert_parallel_size_ is an empty list; 1 would do", would = { { ep = { 1 } } } },
    { "experts that do not divide (dg-073)", { ep = { 2, 3 } }, "ep 3 does not divide the 8 ranks; nearest: ep 2 or 4, or a world of 6 or 9 ranks",
      would = { { ep = { 2, 4 } } } },
    { "experts of size 0", { ep = { 0 } }, "dim 'ep' has size 0; sizes are 1 to 2147483647" },
    { "experts larger than a stage", { ep = { 8 }, pp_size = 2 },
      "ep 8 x pp 2 = 16 does not divide the 8 ranks; nearest: ep 4, or a world of 16 ranks", would = { { ep = { 4 } } } },
    { "a mesh that does not divide (dg-086)", { ep = { 2 }, mp = 3 }, "mp 3 does not divide the 8 ranks; nearest: mp 2 or 4, or a world of 6 or 9 ranks",
      would = { { mp = 2 }, { mp = 4 } } },
    { "data alone", { data_parallel_size = 4 }, "data_parallel_size 4 needs tensor_model_parallel_size; 2 would do",
      would = { { tp = 2 } } },
    { "two sizes of one thing", { tp = 2, model_parallel_size_ = 4 },
      "model_parallel_size_ 4 contradicts tensor_model_parallel_size 2; one of them would do",
      would = { { model_parallel_size_ = none }, { tp = none } } },
    { "data that do not fit", { tp = 4, dp = 4 }, "tp 4 x dp 4 = 16 does not make the 8 ranks; nearest: tp 2, or a world of 16 ranks",
      would = { { tp = 2 } } },
    { "a question without its group", params = { ep = { 2 } }, ask = "expert_parallel_rank",
      message = "group_name is missing; a name such as ep_size_4 would do" },
    { "sequence parallelism of 1", { sp = 1 }, "sequence_parallel_size 1 is no parallelism; nearest is 2", would = { { sp = 2 } } },
    { "ZeRO groups larger than the world (dg-045)", { hpz = 16 },
      "group_size 16 does not divide the 8 ranks; nearest: group_size 8, or a world of 16 ranks", would = { { hpz = 8 } } },
    { "tensor parallelism larger than the world (dg-061)", { tp = 16 }, "tp 16 does not divide the 8 ranks; nearest: tp 8, or a world of 16 ranks",
      would = { { tp = 8 } } },
    { "nodes that do not divide (dg-052)", { device_count = 3 },
      "device_count 3 does not divide the 8 ranks; nearest: device_count 2 or 4, or a world of 6 or 9 ranks" },
  },
  layouts = { { ep = { 2, 4 }, mp = 2, sp = 2, tp = 2, hpz = 4, devices_per_node = 4, clone_world_group = true },
              {}, { ep = { 1, 2, 4, 8 } }, { ep = { 2 }, mp = 2, enable_expert_tensor_parallelism = true, pp_size = 2 },
              { ep = { 4 }, use_data_before_expert_parallel_ = true }, { ep = { 2 }, mp = 4, mp_mode = "sp" },
              { ep = { 4 }, mp = 2, folding_spec = { ep_size = 4, tp_size = 2 } }, { model_parallel_size_ = 4 } },
  asks = { { { group_name = "ep_size_2" } } },
  values = { expert_parallel_size_ = { { 2, 4 } }, mp_size = { 2, { ep = { 2 } } }, pp_size = { 2, { ep = { 2 } } },
             group_size = { 4 }, device_count = { 4 },
             tensor_model_parallel_size = { 2 }, data_parallel_size = { 4, { tp = 2 } }, sequence_parallel_size = { 2 } },
}

systems.deepspeed_topology = {
  refused = {
    { "two ways to say it", { axes = "pipe-data", dims = { 2, 4 }, num_pp = 4 }, words = { "axes", "dims", "num_pp 4" },
      would = { { num_pp = none }, { axes = none, dims = none } } },
    { "axes that are no names", { axes = 5, dims = { 8 } }, "axes is 5; names such as pipe-data-model would do",
      would = { { axes = "pipe-data-model", dims = { 2, 2, 2 } } } },
    { "axes that are a list of numbers", { axes = { 5 }, dims = { 8 } }, words = { "axes", "5" } },
    { "dims without axes", { dims = { 8 } }, "axes is nil; names such as pipe-data-model would do",
      would = { { axes = "pipe-data-model", dims = { 2, 2, 2 } } } },
    { "axes without dims", { axes = "pipe-data" }, "dims has 0 sizes for the 2 axes pipe-data; a size for each would do",
      would = { { dims = { 2, 4 } } } },
    { "more dims than axes", { axes = { "pipe", "data" }, dims = { 2, 2, 2 } },
      "dims has 3 sizes for the 2 axes pipe-data; a size for each would do", would = { { dims = { 2, 4 } } } },
    { "another topology", { topology = "PipeTopology" }, "topology 'PipeTopology' is unknown; PipeDataParallelTopology or "
      .. "PipeModelDataParallelTopology would do", would = { { topology = "PipeDataParallelTopology" },
                                                             { topology = "PipeModelDataParallelTopology" } } },
    { "a model axis of a topology without one", { topology = "PipeDataParallelTopology", num_mp = 2 },
      "num_mp 2: topology PipeDataParallelTopology has no model axis; PipeModelDataParallelTopology would do",
      would = { { topology = "PipeModelDataParallelTopology" } } },
    { "an axis twice", { axes = "pipe-data-pipe", dims = { 2, 2, 2 } }, "axes: 'pipe' occurs twice; name each axis once",
      would = { { axes = "pipe-data-model" } } },
    { "an axis of size 0 (dt-049)", { axes = "pipe-data-model", dims = { 2, 0, 2 } },
      "dims: axis 'data' has size 0; 1 or more would do" },
    { "no data (dt-044)", { axes = "pipe-model", dims = { 4, 2 } }, "axes pipe-model: the groups of a pipeline need axis 'data'; "
      .. "'data-pipe-model' would do, its size 1, or grid=false", would = { { axes = "data-pipe-model", dims = { 1, 4, 2 } }, { grid = false } } },
    { "another world (dt-045)", { axes = "pipe-data", dims = { 4, 3 } },
      "data 3 x pipe 4 = 12 does not make the 8 ranks; nearest: data 2, or a world of 12 ranks", would = { { dims = { 4, 2 } } } },
    { "another world of stages (dt-047)", { num_pp = 2, num_dp = 2 },
      "data 2 x pipe 2 = 4 does not make the 8 ranks; nearest: data 4, or a world of 4 ranks", would = { { num_dp = 4 } } },
    { "a question without its coordinate", ask = "axis_list", q = { axis = "data" },
      message = "idx is missing; a coordinate such as 0 would do" },
  },
  layouts = { { num_pp = 2, num_mp = 2 }, {}, { pp = 4 }, { topology = "PipeModelDataParallelTopology", tp = 4 }, { mp = 1, pp = 8 },
              { grid = false } },
  asks = { { { axis = "pipe", idx = 1 } }, rank = { { pipe = 1, data = 0, model = 1 } }, filter_match = { { pipe = 1 }, {} },
           stage_to_global = { { stage_id = 1 }, { stage_id = 0, data = 1 } }, rank_repr = { {}, { omit_axes = { "data" } } } },
  values = { num_pp = { 2 }, num_mp = { 2 }, num_dp = { 8 } },
}

systems.nanotron = {
  refused = {
    { "a question without its group", ask = "get_rank", message = "group is missing; a family such as tp would do" },
    { "expert parallelism (nt-040)", { ep = 2 }, "expert_parallel_size 2: nanotron's grid counts it, its size check does not, so "
      .. "no world would fit; 1 would do", would = { { ep = 1 } } },
    { "another backend (nt-045)", { backend = "gloo" }, "backend 'gloo': nanotron runs on nccl only; 'nccl' would do",
      would = { { backend = "nccl" } } },
    { "nodes that do not divide (nt-042)", { LOCAL_WORLD_SIZE = 3 },
      "local_world_size 3 does not divide the 8 ranks; nearest: local_world_size 2 or 4, or a world of 6 or 9 ranks",
      would = { { LOCAL_WORLD_SIZE = 2 }, { LOCAL_WORLD_SIZE = 4 } } },
    { "a world that is no multiple of 8 (nt-043)", {},
      "local_world_size 8 does not divide the 12 ranks; nearest: local_world_size 6 or 12, or a world of 8 or 16 ranks", world = 12,
      would = { { local_world_size = 6 }, { local_world_size = 12 } } },
    { "sizes that make another world", { tp = 3, dp = 2 }, "tp 3 x dp 2 = 6 does not make the 8 ranks; nearest: tp 4, or a world of 6 ranks",
      would = { { tp = 4 } } },
  },
  layouts = { { tp = 2, cp = 2, pp = 2 }, {}, { tp = 8 }, { pp = 4, LOCAL_WORLD_SIZE = 4 }, { cp = 4, tp = 2 }, { cp = 2, ep = 1 } },
  asks = { { {} }, get_rank = { { group = "tp" }, { group = "world_pg" }, { group = "tp_and_ep" } }, get_size = { { group = "local_pg" } },
           get_local_ranks = { {}, { world_rank = 7 } }, get_global_rank = { {}, { tp_rank = 1, pp_rank = 0 } } },
  values = { tensor_parallel_size = { 2 }, pipeline_parallel_size = { 2 }, data_parallel_size = { 4, { tp = 2 } },
             context_parallel_size = { 2 }, expert_parallel_size = { 1 }, local_world_size = { 4 } },
}

systems.torchtitan = {
  refused = {
    { "shards of size 0", { dp_shard = 0 }, words = { "dp_shard 0", "-1 would do" }, would = { { dp_shard = -1 } } },
    { "another backend", { spmd_backend = "dtensor" },
      "spmd_backend 'dtensor' is unknown; 'spmd_types' or 'partial_dtensor' would do",
      would = { { spmd_backend = "spmd_types" }, { spmd_backend = "partial_dtensor" } } },
    { "experts that do not divide (tt-037)", { ep = 3, tp = 2, dp_replicate = 2 },
      "ep 3 x dp_replicate 2 = 6 does not divide the 8 ranks; nearest: ep 2 or 4, or a world of 6 or 12 ranks", would = { { ep = 2 }, { ep = 4 } } },
    { "more experts than ranks", { ep = 16, pp = 2 }, "ep 16 x pp 2 = 32 does not divide the 8 ranks; nearest: ep 4, or a world of 32 ranks",
      would = { { ep = 4 } } },
    { "sizes that make another world", { dp_shard = 2, tp = 2 },
      "tp 2 x dp_shard 2 = 4 does not make the 8 ranks; nearest: tp 4, or a world of 4 ranks", would = { { tp = 4 } } },
    { "a mesh there is not", params = { cp = 2, tp = 2 }, ask = "get_optional_mesh", q = { dims = { "tp", "cp" } },
      message = "dims 'tp-cp' are in no mesh together, in this order; axes of one of pp-batch-cp-tp, "
        .. "pp-dp_replicate-dp_shard-cp-tp, pp-dp_replicate-fsdp-tp, pp-dp-cp-tp, pp-dp_replicate-efsdp-ep would do" },
    { "a question without its axis", ask = "size", message = "mesh_dim is missing; an axis such as tp would do" },
    { "the mesh of an axis that is off", params = { tp = 2 }, ask = "get_mesh", q = { dims = { "cp", "tp" } }, words = { "'cp'" } },
  },
  layouts = { { tp = 2, cp = 2, dp_replicate = 2 }, {}, { tp = 4, pp = 2 }, { dp_replicate = 2, ep = 4 },
              { ep = 8, spmd_backend = "partial_dtensor" }, { cp = 2, ep = 2, pp = 2, dp_shard = -1 } },
  asks = { { { mesh_dim = "tp", dims = { "cp", "tp" } }, { mesh_dim = "efsdp", dims = "tp" } } },
  values = {},
}

-- Kinds of values, and what none of a kind is.
local wrong = {
  size = { 0, "a size (an integer of 1 or more), not 0; nearest is 1" },
  integer = { "x", "an integer, not 'x'" },
  number = { "x", "a number, not 'x'" },
  flag = { "yes", "true or false, not 'yes'" },
  text = { 5, "text, not 5" },
  list = { "x", "a list of integers (0,-1), not 'x'" },
  table = { "x", "a table by name (JSON on a command line), not 'x'" },
}

local function shown(params)
  local words = {}
  for key, value in pairs(params) do
    words[#words + 1] = key .. "=" .. (type(value) == "table" and "{...}" or tostring(value))
  end
  table.sort(words)
  return "{" .. table.concat(words, " ") .. "}"
end

it("all bundled recipes are here", function()
  for _, name in ipairs(mg.recipes()) do assert.is_table(systems[name], name) end
end)

for _, name in ipairs(mg.recipes()) do
  local system = systems[name] or { refused = {}, layouts = {}, values = {} }

  describe(name .. " refuses", function()
    for _, case in ipairs(system.refused) do
      case.params, case.message = case.params or case[2], case.message or case[3]
      it(case[1], function()
        local message, at = provoke(name, case)
        assert.is_truthy(message, "accepted")
        assert.are.equal(name, at:match "^(.-):")
        if case.message then assert.are.equal(case.message, message) end
        for _, word in ipairs(case.words or {}) do
          assert.is_truthy(message:find(word, 1, true), ("'%s' lacks: %s"):format(message, word))
        end
      end)
      if case.would then
        it(case[1] .. ", and takes what it suggests", function()
          for _, overrides in ipairs(case.would) do accepts(name, changed(case.params, overrides), case.world) end
        end)
      end
    end

    it("in every place of its text that refuses", function()
      local provoked, missing = {}, {}
      for _, case in ipairs(system.refused) do
        local _, at = provoke(name, case)
        provoked[tonumber((at or ":0"):match ":(%d+)$")] = true
      end
      for _, line in ipairs((refusing_lines(name))) do
        if not provoked[line] then missing[#missing + 1] = line end
      end
      assert.are.equal("", table.concat(missing, ", "), "lines that no case provokes")
    end)

    it("values of another kind", function()
      local _, last = refusing_lines(name)
      for _, p in ipairs(recipe(name):info().params) do
        if p.kind ~= "any" then
          local message, at = refusal(name, { [p.name] = wrong[p.kind][1] })
          assert.are.equal(("parameter '%s' is %s"):format(p.name, wrong[p.kind][2]), message)
          assert.is_true(tonumber(at:match ":(%d+)$") <= last)
        end
      end
    end)
  end)

  describe(name, function()
    for _, params in ipairs(system.layouts) do
      it("plans " .. shown(params) .. " at once, for any world", function()
        local digests = {}
        for _, world in ipairs { 8, 64, 1024, 1048576 } do
          local start = os.clock()
          local plan = recipe(name):plan(world, params)
          assert.is_true(os.clock() - start < 0.5, world .. " ranks took long")
          assert.are.equal(world, plan.world)
          assert.is_nil(digests[plan.digest])
          digests[plan.digest] = true
        end
      end)

      it("plays " .. shown(params), function()
        for _, world in ipairs { 8, 64 } do
          local plan = recipe(name):plan(world, params)
          local communicators = plan:rehearse()
          assert.are.equal(plan:counts().communicators, communicators)
        end
      end)
    end

    it("has five layouts or more here", function() assert.is_true(#system.layouts >= 5) end)

    it("answers to every alias as to the name", function()
      local r = recipe(name)
      for _, p in ipairs(r:info().params) do
        local value = system.values[p.name]
        if p.aliases[1] then assert.is_table(value, "no value here for " .. p.name) end
        for _, alias in ipairs(p.aliases) do
          local base = value[2] or {}
          local by_name = r:plan(8, changed(base, { [p.name] = value[1] }))
          assert.are.equal(by_name.digest, r:plan(8, changed(base, { [alias] = value[1] })).digest, alias)
          if tostring(value[1]) ~= p.default then assert.are_not.equal(r:plan(8, base).digest, by_name.digest, alias) end
        end
      end
    end)

    it("answers every query on every rank", function()
      local r, asks, silent = recipe(name), system.asks or { { {} } }, {}
      for _, query in ipairs(r:info().queries) do silent[query] = true end
      for _, params in ipairs(system.layouts) do
        local typical = params == system.layouts[1]
        local plan = r:plan(8, params)
        for rank = 0, 7 do
          local state = plan:dry(rank)
          for _, query in ipairs(r:info().queries) do
            for _, q in ipairs(asks[query] or asks[1]) do
              local ok, answer = pcall(r.ask, r, state, query, q)
              if typical then assert.is_true(ok, ("%s of rank %d: %s"):format(query, rank, answer)) end
              if ok and answer ~= nil then silent[query] = nil end
            end
          end
        end
      end
      assert.is_nil(next(silent), "a query that never has an answer: " .. tostring(next(silent)))
    end)

    it("says what a question lacks", function()
      local r = recipe(name)
      local state = r:plan(8, system.layouts[1]):dry(0)
      for _, query in ipairs(r:info().queries) do
        local ok, said = pcall(r.ask, r, state, query, {})
        local own = ok or not (said:find("bad argument", 1, true) or said:find("attempt to", 1, true))
        assert.is_true(own, ("%s: %s"):format(query, said))
      end
    end)

    it("has ranks that are smaller than sizes", function()
      local r, asks, known = recipe(name), system.asks or { { {} } }, {}
      local plan = r:plan(8, system.layouts[1])
      for _, query in ipairs(r:info().queries) do known[query] = true end
      for rank = 0, 7 do
        local state = plan:dry(rank)
        for query in pairs(known) do
          local stem = query:match "^(.*)_rank$"
          if stem and known[stem .. "_world_size"] then
            for _, q in ipairs(asks[query] or asks[1]) do
              local at, size = r:ask(state, query, q), r:ask(state, stem .. "_world_size", q)
              if at then assert.is_true(at >= 0 and at < size, query) end
            end
          end
        end
      end
    end)
  end)
end

-- What refusals suggest, tried -------------------------------------------------------

-- Calls fn for every choice of one value for each name.
local function choices(domains, fn)
  local names = {}
  for key in pairs(domains) do names[#names + 1] = key end
  table.sort(names)
  local function choose(i, params)
    if i > #names then return fn(params) end
    for _, value in ipairs(domains[names[i]]) do choose(i + 1, changed(params, { [names[i]] = value })) end
  end
  choose(1, {})
end

-- A refusal that suggests a value by this pattern: the parameters with it are accepted.
local function suggests(name, params, world, pattern, with)
  local message = refusal(name, params, world)
  local found = message and message:match(pattern)
  if not found then return 0 end
  local again = refusal(name, changed(params, with(found)), world)
  assert.is_nil(again, ("%s at %d ranks: '%s', but then '%s'"):format(shown(params), world, message, again))
  return 1
end

describe("a suggestion", function()
  it("of a grid fits", function()
    local some = { 1, 2, 3, 5, 16 }
    local tried = 0
    for _, world in ipairs { 8, 12 } do
      choices({ tp = some, cp = some, pp = { 1, 2, 7 }, dp = { none, 1, 2, 6 } }, function(params)
        local message = refusal("picotron", params, world)
        if not message then return end
        local dim, sizes, worlds = message:match "nearest: (%w+) ([%d or]+), or a world of ([%d or]+) ranks$"
        if not dim then
          worlds = message:match "nearest: a world of ([%d or]+) ranks$" -- no size of one dim would do
          assert.is_truthy(worlds, message)
        end
        for size in (sizes or ""):gmatch "%d+" do
          accepts("picotron", changed(params, { [dim] = tonumber(size) }), world)
          tried = tried + 1
        end
        for other in worlds:gmatch "%d+" do
          accepts("picotron", params, tonumber(other))
          tried = tried + 1
        end
      end)
    end
    assert.is_true(tried > 500)
  end)

  for _, name in ipairs { "megatron", "deepspeed" } do
    it("of " .. name .. "'s order is whole", function()
      local tried = 0
      local orders = { "tp-dp-pp", "tp-pp", "dp-pp", "ep-dp-pp", "tp-dp", "dp", "cp-ep-pp", "pp" }
      choices({ order = orders, tp = { 1, 2 }, cp = { 1, 2 }, ep = { 1, 2 }, pp = { 1, 2 } }, function(params)
        tried = tried + suggests(name, params, 16, "'([%a-]+)' would do$", function(order) return { order = order } end)
      end)
      assert.is_true(tried > 50)
    end)
  end

  it("of megatron's optimizer instances fits dense and expert layers", function()
    local tried = 0
    for n = 2, 16 do
      choices({ tp = { 1, 2 }, cp = { 1, 2 }, ep = { 1, 2, 4 }, pp = { 1, 2 }, instances = { n } }, function(params)
        tried = tried + suggests("megatron", params, 8, " (%d+) would do$", function(x) return { instances = tonumber(x) } end)
      end)
    end
    assert.is_true(tried > 50)
  end)

  it("of deepspeed's optimizer instances fits dense and expert layers", function()
    local tried = 0
    for n = 2, 16 do
      choices({ tp = { 1, 2 }, ep = { 1, 2, 4 }, pp = { 1, 2 }, instances = { n } }, function(params)
        tried = tried + suggests("deepspeed", params, 8, "a divisor of (%d+) would do$",
          function(x) return { instances = tonumber(x) } end)
      end)
    end
    assert.is_true(tried > 50)
  end)

  it("of megatron's hybrid blocks is a size of dp x cp", function()
    for n = 1, 70 do
      local message = refusal("megatron", { hybrid_cp = true }, n)
      local would = message and message:match "; (%d+) would do$"
      if message then accepts("megatron", { hybrid_cp = true }, tonumber(would)) end
    end
  end)

  it("of megatron_deepspeed's stages divides the world", function()
    for _, world in ipairs { 8, 12, 16, 64 } do
      for _, pp in ipairs { 1, 2 } do
        local tried = suggests("megatron_deepspeed", { vpp = 2, pp = pp }, world, "pp (%d+)$", function(x) return { pp = tonumber(x) } end)
        assert.are.equal(1, tried)
      end
    end
  end)

  it("of torchtitan's experts divides them", function()
    local tried = 0
    for ep = 2, 20 do
      choices({ ep = { ep }, tp = { 1, 2, 3 }, cp = { 1, 2 }, dp_replicate = { 1, 2 }, pp = { 1, 2 } }, function(params)
        tried = tried + suggests("torchtitan", params, 24, "nearest: ep (%d+)", function(x) return { ep = tonumber(x) } end)
      end)
    end
    assert.is_true(tried > 100)
  end)

  it("of torchtitan's shards fits, each of them", function()
    for _, shard in ipairs { 0, -2, -8 } do
      for _, tp in ipairs { 1, 2, 8 } do
        local would = refusal("torchtitan", { dp_shard = shard, tp = tp }):match "; ([%d or-]+) would do$"
        for value in would:gmatch "-?%d+" do accepts("torchtitan", { dp_shard = tonumber(value), tp = tp }) end
      end
    end
  end)

  it("of deepspeed_moe's tensor-parallel size makes the world", function()
    for dp = 1, 16 do
      local message = refusal("deepspeed_moe", { data_parallel_size = dp })
      local tp = message:match "; (%d+) would do$" -- where dp divides the world
      local other = message:match "data_parallel_size (%d+) would do$" or message:match "nearest: dp (%d+)"
      assert.is_truthy(tp or other, message)
      accepts("deepspeed_moe", { data_parallel_size = other and tonumber(other) or dp, tp = tp and tonumber(tp) or 8 // other })
    end
  end)

  it("of deepspeed_moe's sequence-parallel size divides the world", function()
    for _, world in ipairs { 8, 9, 15 } do
      local tried = suggests("deepspeed_moe", { sp = 1 }, world, "nearest is (%d+)$", function(x) return { sp = tonumber(x) } end)
      assert.are.equal(1, tried)
    end
  end)

  it("of deepspeed_moe's folding spec agrees with every size of experts", function()
    local params = { ep = { 2, 4 }, folding_spec = { ep_size = 2 } }
    suggests("deepspeed_moe", params, 8, " (%d+) would do$", function(x) return { folding_spec = { ep_size = tonumber(x) } } end)
  end)

  it("of deepspeed_topology's axes is whole", function()
    for _, axes in ipairs { "a-b", "data-b", "pipe-b" } do
      local message = refusal("deepspeed_topology", { axes = axes, dims = { 2, 4 } })
      local whole = message:match "'([%a-]+)' would do"
      local dims = {}
      for axis in whole:gmatch "%a+" do dims[#dims + 1] = ({ [axes:match "^%a+"] = 2, [axes:match "%a+$"] = 4 })[axis] or 1 end
      accepts("deepspeed_topology", { axes = whole, dims = dims })
    end
  end)
end)
