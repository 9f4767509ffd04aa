-- Megatron-core's parallel state: a dense and an expert grid over the same ranks that share their
-- pipeline stages. Source: NVIDIA/Megatron-LM, megatron/core/parallel_state.py; families are named
-- as in its ProcessGroupCollection.

local arithmetic = ...
local gcd = arithmetic.gcd

-- Grids and options -----------------------------------------------------------

local dims = { "tp", "cp", "ep", "dp", "pp" }
local is_dim = { tp = true, cp = true, ep = true, dp = true, pp = true }
local in_dense = { gtp_remat = "gtp_remat" } -- name in the order -> name of the dim, where they differ
local in_expert = { tp = "etp", dp = "edp", gtp_remat = "egtp_remat" }

-- An order from a list of names, with pp moved to the end.
local function order_of(list)
  local order = {}
  for _, name in ipairs(list) do
    if name ~= "pp" then order[#order + 1] = name end
  end
  return table.concat(order, "-") .. "-pp"
end

-- One of the two grids. Names of the order are compared whole and in any case; one that is not
-- written goes last and must have size 1. gtp_remat has its place right after `gtp_after`.
local function lay(window, order, sizes, gtp_after, names)
  local list, written = {}, {}
  for _, name in ipairs(string.split(string.lower(order), "-")) do
    if not is_dim[name] or written[name] then
      error(string.format("order '%s' has '%s'%s; it takes each of %s once, as 'tp-cp-ep-dp-pp'", order, name,
        written[name] and " twice" or ", which is no dim", table.concat(dims, ", ")))
    end
    written[name], list[#list + 1] = true, name
  end
  for _, name in ipairs(dims) do
    if not written[name] then list[#list + 1] = name end
  end
  local placed = {}
  for _, name in ipairs(list) do
    placed[#placed + 1] = names[name] or name
    if name == gtp_after then placed[#placed + 1] = names.gtp_remat end
  end
  local g = grid(window, placed, sizes)
  for _, name in ipairs(dims) do
    local dim = names[name] or name
    if not written[name] and g[dim] > 1 then
      error(string.format("order '%s' does not say where %s of size %d goes; '%s' would do",
        order, dim, g[dim], order_of(list)))
    end
  end
  return g
end

local function window_of(world, offset, size)
  if offset < 0 or offset >= world.size then
    error(string.format("rank_offset is a rank from 0 to %d, not %d", world.size - 1, offset))
  end
  if size and size > world.size - offset then
    error(string.format("local_world_size %d is more than the %d ranks from rank_offset %d on; %d would do",
      size, world.size - offset, offset, world.size - offset))
  end
  return world:window(offset, size)
end

-- A list as a table, or as text with commas.
local function list_of(value, name)
  if type(value) ~= "table" then return string.split(tostring(value), ",") end
  local n = 0
  for key in pairs(value) do
    n = n + 1
    if key ~= n then error(string.format("%s is a table with a key '%s'; a list would do", name, tostring(key))) end
  end
  return value
end

local function seconds(minutes)
  local most = 1e9 // 60
  if minutes and not (minutes > 0 and minutes <= most) then
    error(string.format("distributed_timeout_minutes is more than 0 and at most %d, not %s", most, tostring(minutes)))
  end
  return minutes and 60 * minutes
end

-- The NCCL options of a key, given to a family here so that an error can name the key.
local function nccl_of(family, key, fields)
  if type(fields) ~= "table" then
    error(string.format("nccl_communicator_config has %s for '%s'; a table such as {\"max_ctas\":8} would do",
      tostring(fields), key))
  end
  local ok, said = pcall(family.with, family, { nccl = fields })
  if not ok then
    local message = table.concat(string.split(said, ": "), ": ", 2) -- without its position
    error(string.format("nccl_communicator_config for '%s': %s", key, message))
  end
  return fields
end

-- Which group uses SHARP: "dp" (also by default) or "dp_replica".
local function check_sharp(sharp, p)
  if sharp and sharp ~= "dp" and sharp ~= "dp_replica" then
    error("sharp_enabled_group is 'dp' or 'dp_replica', not '" .. sharp .. "'")
  end
  if sharp and not p.use_sharp then error("sharp_enabled_group '" .. sharp .. "' needs use_sharp=true") end
  if sharp == "dp_replica" and p.num_distributed_optimizer_instances == 1 then
    error("sharp_enabled_group 'dp_replica' needs num_distributed_optimizer_instances of 2 or more, not 1")
  end
end

-- Megatron's keys of NCCL options; those of the expert families are not the families' names.
local keys = string.split("gtp_remat dp_cp intra_dp_cp gtp_remat_dp gtp_remat_dp_cp dp cp hcp mp tp pp embd pos_embd "
  .. "tp_dp tp_dp_cp tp_cp expt_gtp_remat ep ep_tp tp_ep_mp tp_ep_pp tp_ep_gtp_remat_pp ep_dp intra_ep_dp inter_ep_dp "
  .. "ep_gtp_remat_dp intra_dist_opt_instance", " ")

-- Map each key to the options of its families. `all`: any family, to check the options on.
local function options(all, p)
  local o, timeout = {}, seconds(p.distributed_timeout_minutes)
  for _, key in ipairs(keys) do o[key] = { timeout = timeout } end
  local function of(key, parameter)
    if o[key] then return o[key] end
    error(string.format("%s names '%s', which is no key of groups; there are %s", parameter, tostring(key),
      table.concat(keys, ", ")))
  end
  for key, fields in pairs(p.nccl_communicator_config) do
    of(key, "nccl_communicator_config").nccl = nccl_of(all, key, fields)
  end
  for _, key in ipairs(list_of(p.high_priority_stream_groups, "high_priority_stream_groups")) do
    of(key, "high_priority_stream_groups").high_priority = true
  end

  local sharp = p.sharp_enabled_group
  check_sharp(sharp, p)
  if p.use_sharp then -- the network serves one communicator, the first that is created
    local chosen, nccl = sharp == "dp_replica" and o.inter_ep_dp or o.dp_cp, { collnet_enable = true }
    for field, value in pairs(chosen.nccl or {}) do nccl[field] = value end
    chosen.first, chosen.nccl = true, nccl
  end
  return o
end

-- Families --------------------------------------------------------------------

-- The pipeline groups' ranks at some stages: a list of them (from the end if negative), or "all".
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

-- Cut the groups of a family into shards for n instances of the distributed optimizer; second,
-- what links the replicas of a shard. Nothing where no rule describes them.
local function shards_of(family, n)
  local ok, shards, replicas = pcall(family.split, family, family.size // n)
  if ok then return shards, replicas end
end

-- What n instances of the distributed optimizer need of both data-parallel sizes.
local function check_instances(p, dense, expert)
  local n, gtp, egtp = p.num_distributed_optimizer_instances, p.gtp_remat_size, p.expert_gtp_remat_size
  if n > 1 and gtp * egtp > 1 then
    error(string.format("num_distributed_optimizer_instances %d excludes gtp_remat_size %d and "
      .. "expert_gtp_remat_size %d; set it to 1, or both of them", n, gtp, egtp))
  end
  for _, data in ipairs { { dense, "dp x cp" }, { expert, "expert data parallel" } } do
    local size, what = data[1], data[2]
    if size % n ~= 0 then
      error(string.format("num_distributed_optimizer_instances %d does not divide the %d rank%s of %s; %d would do",
        n, size, size == 1 and "" or "s", what, gcd(gcd(n, dense), expert)))
    end
  end
end

-- Do two families link the same replicas? Shifts of one list tile a window in one way only, so
-- rules that agree on group 0 agree on all. Without a rule the strides differ inside a group.
local function same_replicas(a, b)
  local ranks = a and b:ranks(0) or {}
  for i, rank in ipairs(a and a:ranks(0) or { 0 }) do
    if rank ~= ranks[i] then return false end
  end
  return true
end

-- Blocks of 2, 4, ... ranks of a dp-cp group, for sequences of different lengths.
local function hybrid_sizes(n)
  local sizes, block = {}, 2
  while 2 * block <= n do
    sizes[#sizes + 1] = block
    block = 2 * block
  end
  local largest = sizes[#sizes] or 2
  if n % largest ~= 0 then
    error(string.format("hybrid_context_parallel cuts the %d ranks of dp x cp into blocks of %d, which leaves %d over; "
      .. "%d would do", n, largest, n % largest, n + largest - n % largest))
  end
  return sizes
end

local function check(p, dense, expert)
  local vpp, pp, backend = p.virtual_pipeline_model_parallel_size, dense.pp, p.pipeline_model_parallel_comm_backend
  if vpp and pp == 1 then
    local would = arithmetic.fewest_stages(gcd(dense.dp, expert.edp) // p.num_distributed_optimizer_instances)
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
  if dense "pp" ~= expert "pp" then
    error(string.format("order '%s' gives the dense and the expert grid different pipeline groups; "
      .. "an order that ends in pp would do", p.order))
  end
end

local function build(world, p)
  local tp, pp, cp, ep = p.tensor_model_parallel_size, p.pipeline_model_parallel_size, p.context_parallel_size,
    p.expert_model_parallel_size
  local gtp, egtp, n = p.gtp_remat_size, p.expert_gtp_remat_size, p.num_distributed_optimizer_instances
  local window = window_of(world, p.rank_offset, p.local_world_size)
  local all = grid(window, "all", { all = fill }) "all"
  local o = options(all, p)
  local dense = lay(window, p.order, { tp = tp, gtp_remat = gtp, cp = cp, pp = pp, dp = fill }, "tp", in_dense)
  local expert = lay(window, p.order, { etp = p.expert_tensor_parallel_size or tp, ep = ep, egtp_remat = egtp, pp = pp,
    edp = fill }, "ep", in_expert)
  check(p, dense, expert)

  local t = topology(world)
  t.dense = dense
  t.expert = expert

  -- Data parallel, with and without context parallel and weight rematerialization.
  t.gtp_remat = dense "gtp_remat":with(o.gtp_remat)
  t.dp_cp = dense("cp", "dp"):with(o.dp_cp)
  t.dp_cp_gtp_remat = gtp > 1 and dense("gtp_remat", "cp", "dp"):with(o.gtp_remat_dp_cp) or t.dp_cp
  t.dp = dense "dp":with(o.dp)
  t.dp_gtp_remat = gtp > 1 and dense("gtp_remat", "dp"):with(o.gtp_remat_dp) or t.dp
  t.expt_gtp_remat = expert "egtp_remat":with(o.expt_gtp_remat)
  t.expt_dp = expert "edp":with(o.ep_dp)
  t.expt_dp_gtp_remat = egtp > 1 and expert("egtp_remat", "edp"):with(o.ep_gtp_remat_dp) or t.expt_dp
  if p.create_all_gather_groups then -- so that all-gather and reduce-scatter run at the same time
    t.dp_cp_ag = t.dp_cp:twin()
    if p.for_expert_parallelism and ep > 1 then t.expt_dp_ag = t.expt_dp:twin() end
  end

  -- Instances of the distributed optimizer: shards inside an instance, replicas between them.
  check_instances(p, dense.cp * dense.dp, expert.edp)
  local shards, replicas = shards_of(dense("cp", "dp"), n)
  local expert_shards, expert_replicas = shards_of(expert "edp", n)
  if n > 1 then
    if not same_replicas(replicas, expert_replicas) then
      error(string.format("order '%s' cuts other optimizer instances out of the dense grid than out of the expert "
        .. "grid; num_distributed_optimizer_instances 1 would do instead of %d", p.order, n))
    end
    t.inter_dist_opt = expert_replicas:with(o.inter_ep_dp) -- links replicas of dense layers as well
  end
  t.intra_dp_cp = n > 1 and shards:with(o.intra_dp_cp) or t.dp_cp
  t.intra_dp_cp_gtp_remat = n > 1 and t.intra_dp_cp or t.dp_cp_gtp_remat
  t.intra_expt_dp = n > 1 and expert_shards:with(o.intra_ep_dp) or t.expt_dp
  t.intra_expt_dp_gtp_remat = n > 1 and t.intra_expt_dp or t.expt_dp_gtp_remat
  local model = expert("etp", "ep", "pp")
  t.intra_dist_opt = (gtp * egtp > 1 and all or model:bundle(model.count // n))
    :with(o.intra_dist_opt_instance)

  -- Communicators of the data-parallel groups on the CPU: gloo in Megatron.
  local on_cpu = { backend = "mpi", timeout = o.dp.timeout }
  if p.create_gloo_process_groups and gtp == 1 then
    t.dp_cp_gloo = dense("cp", "dp"):with(on_cpu)
    t.intra_dp_cp_gloo = shards:with(on_cpu)
    t.dp_gloo = dense "dp":with(on_cpu)
    if egtp == 1 then
      t.expt_dp_gloo = expert "edp":with(on_cpu)
      t.intra_expt_dp_gloo = expert_shards:with(on_cpu)
    end
  end

  -- Context parallel: hierarchical levels, innermost first, and hybrid blocks by their size.
  t.cp = dense "cp":with(o.cp)
  local levels = p.hierarchical_context_parallel_sizes
  if #levels > 0 and not arithmetic.multiply_to(cp, levels) then
    error(string.format("hierarchical_context_parallel_sizes %s must be sizes that multiply to cp %d; %d would do",
      table.concat(levels, ","), cp, cp))
  end
  for i, level in ipairs { dense "cp":levels(#levels > 0 and levels or { cp }) } do
    if #levels > 0 then t["hcp_" .. i - 1] = level:with(o.hcp) end
  end
  if p.hybrid_context_parallel then
    local data = dense("cp", "dp")
    for _, size in ipairs(hybrid_sizes(data.size)) do
      local blocks = data:split(size, { table = true }) -- lists if another dim lies between cp and dp
      t["hybrid_dp_cp_" .. size] = blocks:with(o.dp_cp)
    end
  end

  -- The model: tensor, pipeline, embeddings, and with data the groups of FP8's amax.
  local via = { nccl = "nccl", ucc = "mpi" } -- UCC is reached through MPI
  t.mp = dense("tp", "gtp_remat", "pp"):with(o.mp)
  t.tp = dense "tp":with(o.tp)
  t.pp = dense "pp":with(o.pp):with { backend = via[p.pipeline_model_parallel_comm_backend] }
  t.embd = stages(dense "pp", p.get_embedding_ranks, "get_embedding_ranks"):with(o.embd)
  t.pos_embd = stages(dense "pp", p.get_position_embedding_ranks, "get_position_embedding_ranks"):with(o.pos_embd)
  t.tp_dp_cp = dense("tp", "gtp_remat", "cp", "dp"):with(o.tp_dp_cp)
  t.tp_dp = dense("tp", "gtp_remat", "dp"):with(o.tp_dp)
  t.tp_cp = dense("tp", "cp"):with(o.tp_cp)

  -- Experts.
  t.ep = expert "ep":with(o.ep)
  t.expt_tp = expert "etp":with(o.ep_tp)
  t.tp_ep = expert("etp", "ep"):with(o.tp_ep_mp)
  t.tp_ep_pp = model:with(o.tp_ep_pp)
  t.tp_ep_pp_with_egtp_remat = expert("etp", "ep", "egtp_remat", "pp"):with(o.tp_ep_gtp_remat_pp)
  return t
end

-- Queries ---------------------------------------------------------------------
--
-- Megatron's getters. A rank outside the window gets no value, where Megatron raises.

local function dp_of(s, q)
  if q.partial_data_parallel and not q.with_context_parallel then
    error("partial_data_parallel=true needs with_context_parallel=true: instances share dp x cp")
  end
  local name = not q.with_context_parallel and "dp" or q.partial_data_parallel and "intra_dp_cp" or "dp_cp"
  return s[q.with_gtp_remat == false and name or name .. "_gtp_remat"]
end

local function expt_dp_of(s, q)
  local name = q.partial_expert_data_parallel and "intra_expt_dp" or "expt_dp"
  return s[q.with_gtp_remat == false and name or name .. "_gtp_remat"]
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

local queries = {
  data_parallel_rank = function(s, q) return s.dp and dp_of(s, q).rank end,
  data_parallel_world_size = function(s, q) return s.dp and dp_of(s, q).size end,
  data_parallel_src_rank = function(s, q) return s.dp and s[q.with_context_parallel and "dp_cp" or "dp"].first end,
  expert_data_parallel_rank = function(s, q) return s.dp and expt_dp_of(s, q).rank end,
  expert_data_parallel_world_size = function(s, q) return s.dp and expt_dp_of(s, q).size end,
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
  all_ranks = function(s)
    if not s.tp then return nil end
    local dp = s.dp_gtp_remat.rank
    return table.concat({ s.tp.rank, s.gtp_remat.rank, dp, s.cp.rank, s.pp.rank, s.ep.rank }, "_")
  end,
  hybrid_data_context_parallel_groups = function(s, q)
    if s.dp_cp and q.group_size == s.dp_cp.size then return { group = s.dp_cp.ranks } end
    local name = "hybrid_dp_cp_" .. tostring(q.group_size)
    if s:has(name) and s[name] then return { group = s[name].ranks } end
  end,
}
for getter, family in pairs {
  tensor_model_parallel = "tp", pipeline_model_parallel = "pp", context_parallel = "cp", model_parallel = "mp",
  tensor_and_context_parallel = "tp_cp", gtp_weight_remat = "gtp_remat", expert_model_parallel = "ep",
  expert_tensor_parallel = "expt_tp", expert_tensor_and_model_parallel = "tp_ep",
  expert_gtp_weight_remat = "expt_gtp_remat",
} do
  queries[getter .. "_rank"] = function(s) return s[family] and s[family].rank end
  queries[getter .. "_world_size"] = function(s) return s[family] and s[family].size end
  queries[getter .. "_src_rank"] = function(s) return s[family] and s[family].first end
end

return recipe {
  doc = "Megatron-core's parallel state: dense and expert grids, optimizer instances, every order",
  params = {
    tensor_model_parallel_size = param.size(1, "tensor-parallel size", "tp"),
    pipeline_model_parallel_size = param.size(1, "pipeline stages", "pp"),
    virtual_pipeline_model_parallel_size = param.size(nil, "virtual stages per rank; needs 2 stages or more", "vpp"),
    pipeline_model_parallel_comm_backend = param.text(nil, "nccl or ucc; left out, as the others"),
    use_sharp = param.flag(false, "let the network reduce for one family, which is created first", "sharp"),
    sharp_enabled_group = param.text(nil, "which: dp (dp x cp) or dp_replica (between instances)"),
    context_parallel_size = param.size(1, "context-parallel size", "cp"),
    hierarchical_context_parallel_sizes = param.list({}, "levels of cp, innermost first (2,4)", "hcp"),
    hybrid_context_parallel = param.flag(false, "also make blocks of 2, 4, ... ranks of dp x cp", "hybrid_cp"),
    expert_model_parallel_size = param.size(1, "expert-parallel size", "ep"),
    expert_tensor_parallel_size = param.size(nil, "tensor-parallel size of experts; left out, that of the rest", "etp"),
    gtp_remat_size = param.size(1, "ranks that share a weight and gather it when needed", "gtp"),
    expert_gtp_remat_size = param.size(1, "the same for experts", "egtp"),
    num_distributed_optimizer_instances = param.size(1, "replicas of the distributed optimizer", "instances"),
    order = param.text("tp-cp-ep-dp-pp", "dims fastest first; one of size 1 may be left out"),
    get_embedding_ranks = param.any({ 0, -1 }, "stages with word embeddings (0,-1 or all)", "embd"),
    get_position_embedding_ranks = param.any({ 0 }, "stages with position embeddings (0)", "pos_embd"),
    create_gloo_process_groups = param.flag(true, "make host (MPI) twins of the data-parallel groups", "gloo"),
    create_all_gather_groups = param.flag(false, "make twins of dp x cp for all-gather", "ag"),
    for_expert_parallelism = param.flag(false, "and of the experts' data-parallel groups, with ep above 1"),
    high_priority_stream_groups = param.any({}, "keys of groups with a stream of high priority (dp_cp,ep_dp)"),
    nccl_communicator_config = param.table({}, "NCCL options by key: {\"dp_cp\":{\"max_ctas\":16}}"),
    distributed_timeout_minutes = param.number(nil, "of a collective; left out, the backend's"),
    rank_offset = param.integer(0, "first rank of the job inside the world", "offset"),
    local_world_size = param.size(nil, "ranks of the job; left out, all that follow"),
  },
  build = build,
  queries = queries,
  arguments = { "with_context_parallel", "with_gtp_remat", "partial_data_parallel", "partial_expert_data_parallel",
    "ignore_virtual", "vp_stage", "group_size" },
}
