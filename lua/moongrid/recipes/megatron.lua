-- Megatron-core's parallel state: a dense grid and an expert grid over the same ranks, with the same pipeline
-- stages. The names of families are those of its ProcessGroupCollection. The folder megatron/ has the parts.
-- Source: NVIDIA/Megatron-LM, megatron/core/parallel_state.py of core 0.16.1, 0.17.1 and 0.19 (commit d98e8a64), and of
-- the development branch: parameter `version`, megatron/releases.lua. The groups of the open pull requests 6683, 6197,
-- 5318 and 5014 can be made with every version.
-- Not as there: orders with which the two grids would make different optimizer instances, and blocks of context
-- parallelism of which the last one is smaller, are refused; an all-gather twin has the members of its original; an
-- order with gtp_remat but without tp is accepted; use_sharp also finds groups that are made later; a state that was
-- destroyed leaves nothing behind.
-- Recorded: 159 cases of 1 to 64 ranks, 28 of them refused: tests/golden/megatron_core.json.
-- Recorded: 44 cases of 6 to 16 ranks, 3 of them refused: tests/golden/megatron_core_new.json.

local arithmetic, part = ...
local gcd = arithmetic.gcd
local releases, grids, options = part "releases", part "grids", part "options"

-- Return a list given as a table, or as text with commas.
local function list_of(value, name)
  if type(value) ~= "table" then return string.split(tostring(value), ",") end
  local n = 0
  for key in pairs(value) do
    n = n + 1
    if key ~= n then error(string.format("%s is a table with a key '%s'; a list would do", name, tostring(key))) end
  end
  return value
end

-- Return a family: the ranks of each pipeline group at some stages. `value` is a list of stages (a negative one counts
-- from the end) or "all".
local function stages(pp, value, name)
  if value == "all" then return pp end
  local list = {}
  for i, stage in ipairs(list_of(value, name)) do
    list[i] = math.tointeger(tonumber(stage))
    if not list[i] or list[i] < -pp.size or list[i] >= pp.size then
      error(string.format("%s has stage '%s'; with pp %d there are 0 to %d, or -1 to -%d from the end, or \"all\"",
        name, tostring(stage), pp.size, pp.size - 1, pp.size))
    end
  end
  if #list == 0 then error(name .. " is empty; a list of stages as 0,-1 would do, or \"all\"") end
  return pp:pick(list)
end

local function check(p, dense, expert, n, expert_n)
  local vpp, pp, backend = p.virtual_pipeline_model_parallel_size, dense.pp, p.pipeline_model_parallel_comm_backend
  if vpp and pp == 1 then
    local would = arithmetic.nearest(1, gcd(dense.dp, expert.edp) // (n // gcd(n, expert_n) * expert_n))
    error(string.format("virtual_pipeline_model_parallel_size %d needs 2 pipeline stages or more; %s", vpp,
      would and "pp " .. would .. " would do" or "leave it out"))
  end
  if backend and backend ~= "nccl" and backend ~= "ucc" then
    error(string.format("pipeline_model_parallel_comm_backend is 'nccl' or 'ucc', not '%s'", backend))
  end
  local order = string.lower(p.order)
  if pp > 1 and string.sub(order, -2) ~= "pp" and dense.dp ~= expert.edp then
    error(string.format("order '%s' does not end in pp, and the data-parallel sizes differ: dense %d, expert %d; "
      .. "an order that ends in pp would do", p.order, dense.dp, expert.edp))
  end
  grids.check_stages(p, dense, expert, "expert")
end

local function build(world, p)
  releases.check(p)
  local ep, gtp, egtp = p.expert_model_parallel_size, p.gtp_remat_size, p.expert_gtp_remat_size
  local n = p.num_distributed_optimizer_instances
  local expert_n = p.expert_num_distributed_optimizer_instances or n
  local remat = releases.has_remat(p)
  local window = grids.window(world, p.rank_offset, p.local_world_size)
  local all = grid(window, "all", { all = fill }) "all"
  local o = options(all, p, list_of(p.high_priority_stream_groups, "high_priority_stream_groups"))
  local dense, expert = grids.dense(window, p), grids.expert(window, p)
  check(p, dense, expert, n, expert_n)

  local t = topology(world)
  t.dense = dense
  t.expert = expert

  -- Data parallel, with and without context parallel and weight rematerialization.
  if remat then t.gtp_remat = dense "gtp_remat":with(o.gtp_remat) end
  t.dp_cp = dense("cp", "dp"):with(o.dp_cp)
  if remat then
    t.dp_cp_gtp_remat = gtp > 1 and dense("gtp_remat", "cp", "dp"):with(o.gtp_remat_dp_cp) or t.dp_cp
  end
  t.dp = dense "dp":with(o.dp)
  if remat then
    t.dp_gtp_remat = gtp > 1 and dense("gtp_remat", "dp"):with(o.gtp_remat_dp) or t.dp
    t.expt_gtp_remat = expert "egtp_remat":with(o.expt_gtp_remat)
  end
  t.expt_dp = expert "edp":with(o.ep_dp)
  if remat then
    t.expt_dp_gtp_remat = egtp > 1 and expert("egtp_remat", "edp"):with(o.ep_gtp_remat_dp) or t.expt_dp
  end
  if p.create_all_gather_groups or p.create_all_gather_group then
    t.dp_cp_ag = t.dp_cp:twin() -- all-gather and reduce-scatter may run at the same time
    if p.for_expert_parallelism and ep > 1 then t.expt_dp_ag = t.expt_dp:twin() end
  end

  -- Instances of the distributed optimizer: shards inside an instance, replicas between them.
  local shards, expert_shards, replicas, expert_replicas = dense("cp", "dp"), expert "edp"
  if n > 1 or expert_n > 1 then
    shards, expert_shards, replicas, expert_replicas = part "instances"(p, n, expert_n, shards, expert_shards)
  end
  if n > 1 and n ~= expert_n then t.inter_dp_cp = replicas:with(o.inter_dp_cp) end
  if expert_n > 1 then t.inter_dist_opt = expert_replicas:with(o.inter_ep_dp) end -- for dense layers if n is expert_n
  t.intra_dp_cp = n > 1 and shards:with(o.intra_dp_cp) or t.dp_cp
  if remat then t.intra_dp_cp_gtp_remat = n > 1 and t.intra_dp_cp or t.dp_cp_gtp_remat end
  t.intra_expt_dp = expert_n > 1 and expert_shards:with(o.intra_ep_dp) or t.expt_dp
  if remat then t.intra_expt_dp_gtp_remat = expert_n > 1 and t.intra_expt_dp or t.expt_dp_gtp_remat end
  local model = expert("etp", "ep", "pp")
  t.intra_dist_opt = (gtp * egtp > 1 and all or model:bundle(model.count // expert_n))
    :with(o.intra_dist_opt_instance)

  -- Communicators of the data-parallel groups on the CPU: gloo in Megatron.
  local on_cpu = p.create_gloo_process_groups and gtp == 1 and { backend = "mpi", timeout = o.dp.timeout }
  if on_cpu then
    t.dp_cp_gloo = dense("cp", "dp"):with(on_cpu)
    t.intra_dp_cp_gloo = shards:with(on_cpu)
    t.dp_gloo = dense "dp":with(on_cpu)
    if egtp == 1 then
      t.expt_dp_gloo = expert "edp":with(on_cpu)
      t.intra_expt_dp_gloo = expert_shards:with(on_cpu)
    end
  end

  -- Context parallel: hierarchical levels, innermost first, and blocks by their size.
  t.cp = dense "cp":with(o.cp)
  local levels = p.hierarchical_context_parallel_sizes
  if #levels > 0 then
    for i, level in ipairs(part "context".levels(dense "cp", levels)) do t["hcp_" .. i - 1] = level:with(o.hcp) end
  end
  local function add_blocks(name, least)
    for size, blocks in pairs(part "context".blocks(dense("cp", "dp"), least, name .. "_context_parallel")) do
      t[name .. "_dp_cp_" .. size] = blocks:with(o.dp_cp)
    end
  end
  if p.hybrid_context_parallel then add_blocks("hybrid", 2) end
  if p.dynamic_context_parallel then add_blocks("dynamic", p.min_dynamic_context_parallel_size) end

  -- Model parallel: tensor, pipeline, embeddings. Then, with data parallel, the groups that reduce FP8's amax.
  local via = { nccl = "nccl", ucc = "mpi" } -- UCC is reached through MPI
  t.mp = dense("tp", "gtp_remat", "pp"):with(o.mp)
  t.tp = dense "tp":with(o.tp)
  t.pp = dense "pp":with(o.pp):with { backend = via[p.pipeline_model_parallel_comm_backend] }
  -- With multi-token prediction and cp only ranks of the last stage use torch's default group, so it cannot be lazy:
  -- lazy creation is a call of all ranks.
  local shifts = (p.mtp_num_layers or 0) > 0 and dense.cp > 1
  if p.overlap_p2p and dense.pp == 2 or shifts then
    t.default_pg = all:with { lazy = not shifts } -- torch's default group
  end
  t.embd = stages(dense "pp", p.get_embedding_ranks, "get_embedding_ranks"):with(o.embd)
  t.pos_embd = stages(dense "pp", p.get_position_embedding_ranks, "get_position_embedding_ranks"):with(o.pos_embd)
  if p.get_loss_ranks then t.loss = stages(dense "pp", p.get_loss_ranks, "get_loss_ranks"):with(o.embd) end
  t.tp_dp_cp = dense("tp", "gtp_remat", "cp", "dp"):with(o.tp_dp_cp)
  t.tp_dp = dense("tp", "gtp_remat", "dp"):with(o.tp_dp)
  t.tp_cp = dense("tp", "cp"):with(o.tp_cp)

  -- Experts.
  t.ep = expert "ep":with(o.ep)
  t.expt_tp = expert "etp":with(o.ep_tp)
  t.tp_ep = expert("etp", "ep"):with(o.tp_ep_mp)
  t.tp_ep_pp = model:with(o.tp_ep_pp)
  if remat then t.tp_ep_pp_with_egtp_remat = expert("etp", "ep", "egtp_remat", "pp"):with(o.tp_ep_gtp_remat_pp) end

  -- The ranks that share a layer's weights, for an optimizer that needs whole weights (Muon).
  if p.create_tp_gtp_remat_groups then
    if dense.tp > 1 and gtp > 1 then t.tp_gtp_remat = dense("tp", "gtp_remat"):with(o.tp_gtp_remat) end
    if expert.etp > 1 and egtp > 1 then
      t.expt_tp_gtp_remat = expert("etp", "egtp_remat"):with(o.expt_tp_gtp_remat)
    end
  end
  if p.engram_embedding_parallel_size then part "engram"(t, window, p, o, on_cpu) end
  return t
end

return recipe {
  doc = "Megatron-core's parallel state: dense and expert grids, optimizer instances, every order",
  params = {
    version = param.text("0.19", "version of Megatron-core: 0.16, 0.17, 0.19 or dev"),
    tensor_model_parallel_size = param.size(1, "tensor-parallel size", "tp"),
    pipeline_model_parallel_size = param.size(1, "pipeline stages", "pp"),
    virtual_pipeline_model_parallel_size = param.size(nil, "virtual stages per rank; needs 2 stages or more", "vpp"),
    pipeline_model_parallel_comm_backend = param.text(nil, "nccl or ucc for pp; default: that of other families"),
    use_sharp = param.flag(false, "let the network reduce for one family, which is created first", "sharp"),
    sharp_enabled_group = param.text(nil, "family of sharp: dp (dp x cp) or dp_replica (between instances)"),
    context_parallel_size = param.size(1, "context-parallel size", "cp"),
    hierarchical_context_parallel_sizes = param.list({}, "levels of cp, innermost first (2,4)", "hcp"),
    hybrid_context_parallel = param.flag(false, "also make blocks of 2, 4, ... ranks of dp x cp", "hybrid_cp"),
    dynamic_context_parallel = param.flag(false, "also make blocks of 1, 2, 4, ... ranks (version dev)", "dynamic_cp"),
    min_dynamic_context_parallel_size = param.size(1, "ranks of the smallest block of dynamic_cp", "min_dynamic_cp"),
    expert_model_parallel_size = param.size(1, "expert-parallel size", "ep"),
    expert_tensor_parallel_size = param.size(nil, "tensor-parallel size of experts; default: tp", "etp"),
    gtp_remat_size = param.size(1, "ranks that share a weight and gather it when needed", "gtp"),
    expert_gtp_remat_size = param.size(1, "gtp for the weights of experts", "egtp"),
    num_distributed_optimizer_instances = param.size(1, "replicas of the distributed optimizer", "instances"),
    expert_num_distributed_optimizer_instances = param.size(nil, "for experts; default: instances", "expert_instances"),
    create_tp_gtp_remat_groups = param.flag(false, "join tp and gtp_remat where both are above 1, for Muon"),
    engram_embedding_parallel_size = param.size(nil, "ranks that share Engram's embeddings: a third grid", "engram"),
    order = param.text("tp-cp-ep-dp-pp", "dims fastest first; size 1 or gtp_remat may be left out"),
    get_embedding_ranks = param.any({ 0, -1 }, "stages with word embeddings (0,-1 or all)", "embd"),
    get_position_embedding_ranks = param.any({ 0 }, "stages with position embeddings (0)", "pos_embd"),
    get_loss_ranks = param.any(nil, "stages that compute the loss (-1); default: no family for them", "loss"),
    create_gloo_process_groups = param.flag(true, "make twins of the data-parallel groups on the CPU (MPI)", "gloo"),
    create_all_gather_groups = param.flag(false, "make twins of dp x cp for all-gather", "ag"),
    create_all_gather_group = param.flag(false, "ag in versions 0.16 and 0.17"),
    for_expert_parallelism = param.flag(false, "with ag, also make twins for experts if ep is above 1"),
    high_priority_stream_groups = param.any({}, "keys of groups with a stream of high priority (dp_cp,ep_dp)"),
    nccl_communicator_config = param.table({}, "NCCL options by key: {\"dp_cp\":{\"max_ctas\":16}}"),
    nccl_communicator_config_path = param.file(nil, "NCCL options by key in Megatron's YAML file"),
    distributed_timeout_minutes = param.number(nil, "minutes to create a group; default: the backend's"),
    rank_offset = param.integer(0, "first rank of the job inside the world", "offset"),
    local_world_size = param.size(nil, "ranks of the job; default: all from rank_offset on"),
  },
  build = build,
  queries = function() return part "queries".queries end,
  arguments = function() return part "queries".arguments end,
  getters = function() return part "getters".getters end,
  families = function() return part "getters".families end,
  step = steps.transformer(),
}
