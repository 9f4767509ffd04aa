-- DeepSpeed's ParallelState (pull request 7726): a dense and an expert grid over the same ranks,
-- Ulysses sequence parallelism as a dim of its own, all-to-all groups by node. Each instance
-- (actor, critic) is a plan of its own.
-- Source: deepspeedai/DeepSpeed, pull request 7726 at commit 5fbbb014, deepspeed/utils/parallel_state.py and
-- parallel_state_wrappers.py.
-- Not as there: orders in which experts cross pipeline stages, sp together with ep, and nodes of which the last one is
-- smaller are refused; the source rank of every group, also of a strided one, is its first rank; groups of backends
-- other than NCCL have members; the keys of a config are read at its top level; an instance without a name answers
-- queries, and a second instance of the same name is a plan of its own.
-- Recorded: 87 cases of 1 to 32 ranks, 18 of them refused: tests/golden/deepspeed_pr7726.json.

local arithmetic = ...
local gcd = arithmetic.gcd

local function refuse(...) error(string.format(...), 2) end

-- Call fn. If it raises an error, put the name of the parameter before the message.
local function blame(parameter, fn, ...)
  local ok, value = pcall(fn, ...)
  if ok then return value end
  refuse("%s: %s", parameter, table.concat(string.split(value, ": "), ": ", 2)) -- without its position
end

local function shown(value)
  if type(value) ~= "table" then return tostring(value) end
  local items = {}
  for i, item in ipairs(value) do items[i] = tostring(item) end
  return "{" .. table.concat(items, ",") .. "}"
end

-- Kind, name, default, documentation, alias. A config uses the same names.
local arguments = {
  { "size", "tensor_model_parallel_size", 1, "tensor-parallel size of the dense layers", "tp" },
  { "size", "pipeline_model_parallel_size", 1, "pipeline stages", "pp" },
  { "size", "virtual_pipeline_model_parallel_size", nil, "virtual stages per rank; needs 2 stages or more", "vpp" },
  { "text", "pipeline_model_parallel_comm_backend", nil, "backend of pp: nccl, or ucc, here the job's own backend" },
  { "size", "context_parallel_size", 1, "context-parallel size; needs cp in the order", "cp" },
  { "size", "sequence_parallel_size", 1, "Ulysses size; needs sp in the order, excludes tp, pp, ep", "sp" },
  { "list", "hierarchical_context_parallel_sizes", nil, "levels of cp, innermost first", "hcp" },
  { "size", "expert_model_parallel_size", 1, "expert-parallel size", "ep" },
  { "size", "expert_tensor_parallel_size", nil, "tensor-parallel size of the experts; default tp", "etp" },
  { "size", "num_distributed_optimizer_instances", 1, "optimizer instances, each with all shards", "instances" },
  { "text", "order", "tp-ep-dp-pp", "dims of both grids, fastest first" },
  { "list", "get_embedding_ranks", { 0, -1 }, "stages of the embedding groups" },
  { "list", "get_position_embedding_ranks", { 0 }, "stages of the position-embedding groups" },
  { "flag", "create_gloo_process_groups", false, "twins of the data-parallel groups on the CPU (MPI)" },
  { "size", "device_count", nil, "devices per node; makes the all-to-all groups", "devices_per_node" },
  { "number", "distributed_timeout_minutes", nil, "minutes to create a group; default: the backend's" },
  { "names", "high_priority_stream_groups", nil, "families with high-priority streams, [\"tp\",\"dp\"]" },
  { "table", "nccl_communicator_config", nil, "fields of ncclConfig_t by family: {\"tp\":{\"max_ctas\":8}}" },
  { "file", "nccl_communicator_config_path", nil, "the same from a YAML file" },
}

-- Declare the arguments as parameters of a recipe: with their defaults, or all optional.
local function declared(with_defaults)
  local params = {}
  for _, a in ipairs(arguments) do
    local kind, name, default, doc, alias = a[1], a[2], a[3], a[4], a[5]
    if not with_defaults and default ~= nil then
      doc = doc .. "; default " .. (type(default) == "table" and table.concat(default, ",") or tostring(default))
    end
    params[name] = param[kind](with_defaults and default or nil, doc, alias)
  end
  return params
end

local known = { "tp", "sp", "cp", "ep", "dp", "pp" }

-- Return an order with the missing names in front. pp comes last.
local function whole(names, missing)
  local order, pp = {}, ""
  for _, list in ipairs { missing, names } do
    for _, name in ipairs(list) do
      if name == "pp" then pp = "-pp" else order[#order + 1] = name end
    end
  end
  return table.concat(order, "-") .. pp
end

-- Return the names of an order. Upper and lower case are equal; a missing name of size 1 is added at the end.
local function order_of(text, sizes)
  local names, seen, missing = string.split(string.lower(text), "-"), {}, {}
  for _, name in ipairs(names) do
    if not sizes[name] then refuse("order '%s': unknown dim '%s'; known: %s", text, name, table.concat(known, ", ")) end
    if seen[name] then refuse("order '%s': dim '%s' occurs twice; name each once", text, name) end
    seen[name] = true
  end
  for _, name in ipairs(known) do
    if not seen[name] and sizes[name] > 1 then missing[#missing + 1] = name end
  end
  if #missing > 0 then
    refuse("order '%s' lacks dim '%s' of size %d, whose place is never guessed; '%s' would do", text, missing[1],
      sizes[missing[1]], whole(names, missing))
  end
  for _, name in ipairs(known) do
    if not seen[name] then names[#names + 1] = name end
  end
  return names
end

local function check_stages(name, list, pp)
  if #list == 0 then refuse("%s is empty; a list of stages such as {0,-1} would do", name) end
  for _, stage in ipairs(list) do
    if stage < -pp or stage >= pp then refuse("%s: %d is not a stage; 0 to %d would do, or -1", name, stage, pp - 1) end
  end
end

local function seconds(minutes)
  local most = 1e9 // 60
  if minutes and not (minutes > 0 and minutes <= most) then
    refuse("distributed_timeout_minutes is more than 0 and at most %d, not %s", most, tostring(minutes))
  end
  return minutes and 60 * minutes
end

local function check(p, etp)
  local tp, pp, sp = p.tensor_model_parallel_size, p.pipeline_model_parallel_size, p.sequence_parallel_size
  local cp, levels, backend = p.context_parallel_size, p.hierarchical_context_parallel_sizes,
    p.pipeline_model_parallel_comm_backend
  if sp > 1 and math.max(tp, pp, p.expert_model_parallel_size, etp) > 1 then
    refuse("sequence_parallel_size %d excludes tensor, pipeline and expert parallelism (tp %d, pp %d, ep %d, etp %d); "
      .. "set those to 1, or sp to 1", sp, tp, pp, p.expert_model_parallel_size, etp)
  end
  if backend and backend ~= "nccl" and backend ~= "ucc" then
    refuse("pipeline_model_parallel_comm_backend '%s' is not supported; 'nccl' or 'ucc' would do", backend)
  end
  if levels and (#levels == 0 or not arithmetic.multiply_to(cp, levels)) then
    refuse("hierarchical_context_parallel_sizes %s: sizes that multiply to context_parallel_size %d would do, "
      .. "such as {%d}", shown(levels), cp, cp)
  end
  for _, name in ipairs { "get_embedding_ranks", "get_position_embedding_ranks" } do check_stages(name, p[name], pp) end
end

-- Refuse interleaving with one stage. The message suggests a number of stages that divides `ranks`.
local function check_virtual(p, ranks)
  local vpp = p.virtual_pipeline_model_parallel_size
  if vpp and p.pipeline_model_parallel_size == 1 then
    local nearest = p.sequence_parallel_size == 1 and arithmetic.nearest(1, ranks)
    refuse("virtual_pipeline_model_parallel_size %d needs more than 1 pipeline stage; %s", vpp,
      nearest and "nearest is pp " .. nearest or "leave it out")
  end
end

-- Return a family with the NCCL options that a config has under the family's name. is_high_priority_stream is torch's.
local function with_nccl(family, name, fields)
  if fields == nil then return family end
  if type(fields) ~= "table" then
    refuse("nccl_communicator_config has %s for '%s'; a table such as {\"max_ctas\":8} would do",
      tostring(fields), name)
  end
  local urgent = fields.is_high_priority_stream
  if urgent ~= nil and type(urgent) ~= "boolean" then
    refuse("nccl_communicator_config for '%s': is_high_priority_stream is %s; true or false would do", name,
      shown(urgent))
  end
  local choice = { nccl = {}, high_priority = urgent }
  for field, value in pairs(fields) do
    if field ~= "is_high_priority_stream" then choice.nccl[field] = value end
  end
  return blame("nccl_communicator_config for '" .. name .. "'", family.with, family, choice)
end

-- Return the NCCL options by family, given as a table or in a file.
local function nccl_config(p)
  local given, of_file = p.nccl_communicator_config, p.nccl_communicator_config_path
  if given and of_file then
    refuse "nccl_communicator_config and nccl_communicator_config_path are both given; one of them would do"
  end
  return given or of_file or {}
end

local layout = recipe {
  params = declared(true),
  build = function(world, p)
    local tp, pp, sp = p.tensor_model_parallel_size, p.pipeline_model_parallel_size, p.sequence_parallel_size
    local cp, ep, n = p.context_parallel_size, p.expert_model_parallel_size, p.num_distributed_optimizer_instances
    local etp = p.expert_tensor_parallel_size or tp
    check(p, etp)

    local dp = #world // math.min(1.0 * tp * sp * cp * pp, 1.0 * etp * ep * pp) -- the larger dp of the two grids
    local order = order_of(p.order, { tp = math.max(tp, etp), sp = sp, cp = cp, ep = ep, dp = dp, pp = pp })
    local dense = grid(world, order, { tp = tp, sp = sp, cp = cp, pp = pp, dp = fill })
    for i, name in ipairs(order) do order[i] = name == "tp" and "etp" or name end
    local expert = grid(world, order, { etp = etp, ep = ep, pp = pp, dp = fill })
    check_virtual(p, gcd(dense.dp, expert.dp) // n)
    local dp_cp, ep_dp = dense("dp", "cp"), expert "dp"
    if dense "pp" ~= expert "pp" and (ep > 1 or etp ~= tp) then -- without experts no group of experts crosses stages
      refuse("order '%s' gives dense and expert layers different pipeline groups, so experts would cross stages; "
        .. "an order that ends in pp would do", p.order)
    end

    local common = gcd(dp_cp.size, ep_dp.size)
    if common % n ~= 0 then
      refuse("num_distributed_optimizer_instances %d does not divide the data-parallel sizes (dense %d, expert %d); "
        .. "%s would do", n, dp_cp.size, ep_dp.size, arithmetic.nearest(n, common))
    end
    local fits, intra, inter = pcall(dp_cp.split, dp_cp, dp_cp.size // n) -- a refused split counts as a different cut
    local intra_ep, inter_ep = ep_dp:split(ep_dp.size // n)
    -- Shifted copies of one group cover the ranks in only one way, so it is enough to compare group 0.
    if not fits or table.concat(inter:ranks(0), ",") ~= table.concat(inter_ep:ranks(0), ",") then
      refuse("order '%s' gives dense and expert layers different ranks in each of %d optimizer instances; "
        .. "num_distributed_optimizer_instances 1, or dp last but for pp, would do", p.order, n)
    end

    local t, timeout = topology(world), seconds(p.distributed_timeout_minutes)
    local urgent, high, nccl = p.high_priority_stream_groups or {}, {}, nccl_config(p)
    for _, name in ipairs(urgent) do high[name] = true end
    local function add(name, family)
      t[name] = with_nccl(family:with { timeout = timeout, high_priority = high[name] }, name, nccl[name])
    end
    local function add_data(name, family)
      add(name, family)
      if p.create_gloo_process_groups then add(name .. "_gloo", family:with { backend = "mpi" }) end
    end
    add_data("dp_cp", dp_cp)
    add_data("intra_dp_cp", intra) -- with one instance it has the communicators of dp_cp
    add_data("dp", dense "dp")
    add("cp", dense "cp")
    local levels = p.hierarchical_context_parallel_sizes
    for i, level in ipairs(levels and { dense "cp":levels(levels) } or {}) do add("hcp_" .. i - 1, level) end
    add("mp", dense("tp", "pp"))
    add("tp", dense "tp")
    add("pp", p.pipeline_model_parallel_comm_backend == "nccl" and dense "pp":with { backend = "nccl" } or dense "pp")
    add("embd", dense "pp":pick(p.get_embedding_ranks))
    add("pos_embd", dense "pp":pick(p.get_position_embedding_ranks))
    add("tp_dp_cp", dense("tp", "dp", "cp"))
    add("tp_dp", dense("tp", "dp"))
    add("tp_cp", dense("tp", "cp"))
    add("ep", expert "ep")
    add("ep_tp", expert "etp")
    add("tp_ep_mp", expert("etp", "ep"))
    add("tp_ep_pp", expert("etp", "ep", "pp"))
    add_data("ep_dp", ep_dp)
    add_data("intra_ep_dp", intra_ep)
    if n > 1 then add("inter_ep_dp", inter_ep) end
    add("intra_dist_opt", t.tp_ep_pp:bundle(t.tp_ep_pp.count // n)) -- ranks do not ascend: one pipeline after the other
    add("sp", dense "sp") -- without sp: groups of one rank; then sp_dp has the groups of dp
    add("sp_dp", dense("sp", "dp"))
    if p.device_count then
      local nodes = grid(world, "device_count-node", { device_count = math.min(p.device_count, #world), node = fill })
      add("all_to_all_local", nodes "device_count")
      if nodes.node > 1 then add("all_to_all_global", nodes "node") end
    end
    local function family(name) return t[name] end -- raises if there is none
    for name in pairs(high) do blame("high_priority_stream_groups", family, name) end
    for name in pairs(nccl) do blame("nccl_communicator_config", family, name) end
    t.dense = dense -- after the families: a grid has no options
    t.expert = expert
    return t
  end,
}

local function refuse_context_parallel(given)
  for name, none in pairs { context_parallel_size = 1, hierarchical_context_parallel_sizes = false } do
    local value = given[name]
    if value ~= nil and tonumber(value) ~= none then
      refuse("with a config there is no context parallelism (%s %s); leave out its sizes, or "
        .. "the config", name, shown(value))
    end
  end
end

-- An argument overrides the config, the config the default. The tensor-parallel size has a second key.
local function settings(p)
  if p.from_config and not p.config then
    refuse "from_config is true, but there is no config; a DeepSpeed config, or the path of one, would do"
  end
  local config, given = p.config or {}, {}
  local section, same = config.tensor_parallel, config.tensor_model_parallel_size
  if section ~= nil and type(section) ~= "table" then
    refuse("config: tensor_parallel is %s, not a table; {\"autotp_size\":2} would do", tostring(section))
  end
  if config.parallelism ~= nil then
    refuse("config: section 'parallelism' is of an earlier revision, and nothing reads it; put its keys at the "
      .. "top level")
  end
  local autotp = section and section.autotp_size
  if autotp ~= nil and (math.type(autotp) ~= "integer" or autotp < 1) then
    refuse("config: tensor_parallel.autotp_size is %s; an integer of 1 or more would do", shown(autotp))
  end
  if autotp ~= nil and same ~= nil and autotp ~= same then
    refuse("config: tensor_parallel.autotp_size is %s, but tensor_model_parallel_size is %s; one of them would do",
      tostring(autotp), tostring(same))
  end
  for _, a in ipairs(arguments) do
    local name = a[2]
    given[name] = p[name]
    if given[name] == nil then given[name] = config[name] end
    if given[name] == nil and name == "tensor_model_parallel_size" then given[name] = autotp end
  end
  if p.config then refuse_context_parallel(given) end
  return given
end

local function data_parallel(_, q)
  if q.partial_data_parallel and not q.with_context_parallel then
    error("partial_data_parallel needs with_context_parallel; there are no groups without it")
  end
  return q.partial_data_parallel and "intra_dp_cp" or q.with_context_parallel and "dp_cp" or "dp"
end

local function expert_data_parallel(_, q) return q.partial_expert_data_parallel and "intra_ep_dp" or "ep_dp" end

-- Return the requested virtual stage, if the question is about virtual stages.
local function virtual_stage(q, p)
  local vpp = p.virtual_pipeline_model_parallel_size
  if vpp and q.vp_stage >= vpp then
    refuse("vp_stage is a virtual stage from 0 to %d, not %d", vpp - 1, q.vp_stage)
  end
  if vpp and not q.ignore_virtual then return q.vp_stage end
end

local queries = {
  tensor_model_parallel_src_rank = function(s, _, _, set)
    return set.mpu_tensor_model_parallel_rank and s.rank - set.mpu_tensor_model_parallel_rank or s.tp.first
  end,
  data_parallel_group_ranks = function(s) return s.dp.ranks end,
  pipeline_model_parallel_first_rank = function(s) return s.pp.first end,
  pipeline_model_parallel_last_rank = function(s) return s.pp.last end,
  pipeline_model_parallel_next_rank = function(s) return s.pp:next("wrap") end,
  pipeline_model_parallel_prev_rank = function(s) return s.pp:prev("wrap") end,
  virtual_pipeline_model_parallel_world_size = function(_, _, p) return p.virtual_pipeline_model_parallel_size end,
  virtual_pipeline_model_parallel_rank = function(_, q, p)
    virtual_stage(q, p) -- refuses a stage that does not exist
    return p.virtual_pipeline_model_parallel_size and q.vp_stage
  end,
  is_pipeline_first_stage = function(s, q, p) return s.pp.position == 0 and (virtual_stage(q, p) or 0) == 0 end,
  is_pipeline_last_stage = function(s, q, p)
    local virtual = virtual_stage(q, p)
    return s.pp.position == s.pp.size - 1 and (not virtual or virtual == p.virtual_pipeline_model_parallel_size - 1)
  end,
}
-- Values that functions such as `set_tensor_model_parallel_rank` set: mpu_NAME replaces the group's own value.
local settings_of_mpu, set_by_mpu = {}, {}
for _, kind in ipairs { "tensor_model", "pipeline_model", "data", "expert_model", "expert_tensor" } do
  local rank, size = kind .. "_parallel_rank", kind .. "_parallel_world_size"
  settings_of_mpu["mpu_" .. rank] = param.index(nil, "instead of this rank's position in the group", rank)
  settings_of_mpu["mpu_" .. size] = param.size(nil, "instead of the group's size", size)
  set_by_mpu[kind .. "_parallel"] = true
end

-- Define the queries NAME_rank and NAME_world_size for a group. Set values of `mpu` replace the group's own.
local function ask_of(name, mpu, group)
  local function asked(what, field)
    queries[name .. what] = function(s, q, _, set)
      local given = set_by_mpu[mpu] and set["mpu_" .. mpu .. what]
      return given or group(s, q)[field]
    end
  end
  asked("_rank", "position")
  asked("_world_size", "size")
end

for name, group in pairs {
  tensor_model_parallel = function(s) return s.tp end,
  pipeline_model_parallel = function(s) return s.pp end,
  context_parallel = function(s) return s.cp end,
  data_parallel = function(s, q) return s[data_parallel(s, q)] end,
  sequence_parallel = function(s) return s.sp end,
  expert_model_parallel = function(s) return s.ep end,
  expert_tensor_parallel = function(s) return s.ep_tp end,
  expert_data_parallel = function(s, q) return s[expert_data_parallel(s, q)] end,
} do
  ask_of(name, name, group)
end
-- model_parallel is DeepSpeed's name for tensor parallelism. With sequence parallelism there is no such group, so the
-- answers are rank 0 of 1, whatever a trainer has set.
ask_of("model_parallel", "tensor_model_parallel", function(s) return s.tp end)
for what, alone in pairs { _rank = 0, _world_size = 1 } do
  local query = queries["model_parallel" .. what]
  queries["model_parallel" .. what] = function(s, q, p, set) return s.sp.size > 1 and alone or query(s, q, p, set) end
end
-- The lists of ranks that ParallelState keeps; nil on a rank outside of the group.
for name, family in pairs {
  pipeline_global_ranks = "pp", embedding_global_ranks = "embd", position_embedding_global_ranks = "pos_embd",
  tensor_model_parallel_global_ranks = "tp", model_parallel_global_ranks = "mp", context_parallel_global_ranks = "cp",
  data_parallel_global_ranks = "dp", data_parallel_global_ranks_with_cp = "dp_cp",
} do
  queries[name] = function(s) return s:has(family) and s[family] and s[family].ranks end
end
-- Without sequence parallelism these answers are those of data parallelism, with the values that a trainer has set.
for _, name in ipairs { "sequence_data_parallel", "sequence_and_data_parallel" } do
  for _, what in ipairs { "_rank", "_world_size" } do
    queries[name .. what] = function(s, q, p, set)
      if s.sp.size == 1 then return queries["data_parallel" .. what](s, q, p, set) end
      return what == "_rank" and s.sp_dp.position or s.sp_dp.size
    end
  end
end
queries.is_initialized = function() return true end -- a state always has groups

local params = declared(false)
params.config = param.file(nil, "a DeepSpeed config, or the path of its file; other parameters take precedence over it")
params.from_config = param.flag(false, "true: a config must be given")

return recipe {
  doc = "DeepSpeed's ParallelState: dense and expert grids, Ulysses, start from a config",
  params = params,
  rest = "config", -- a file of parameters may be a DeepSpeed config
  build = function(world, p) return layout.build(world, settings(p)) end,
  settings = settings_of_mpu,
  queries = queries,
  getters = {
    get_model_parallel_group = "mp",
    get_tensor_model_parallel_group = "tp",
    get_pipeline_model_parallel_group = "pp",
    get_data_parallel_group = data_parallel,
    get_context_parallel_group = "cp",
    get_sequence_parallel_group = function(_, _, p) return (settings(p).sequence_parallel_size or 1) > 1 and "sp" end,
    get_sequence_and_data_parallel_group = "sp_dp",
    get_sequence_data_parallel_group = "sp_dp", -- without sequence parallelism the family is dp
    get_embedding_group = "embd",
    get_tensor_and_data_parallel_group = function(_, q) return q.with_context_parallel and "tp_dp_cp" or "tp_dp" end,
    get_tensor_and_context_parallel_group = "tp_cp",
    get_expert_model_parallel_group = "ep",
    get_expert_tensor_parallel_group = "ep_tp",
    get_expert_data_parallel_group = expert_data_parallel,
    get_all_to_all_groups = function(_, q) return q.between_nodes and "all_to_all_global" or "all_to_all_local" end,
  },
  families = {
    ["*_gloo"] = "create_gloo_process_groups",
    ["hcp_*"] = "hierarchical_context_parallel_sizes; hcp_0 is the innermost level",
    inter_ep_dp = "num_distributed_optimizer_instances above 1",
    all_to_all_local = "device_count",
    all_to_all_global = "device_count, and more nodes than one",
  },
  arguments = {
    check_initialized = param.flag(true, "false: return nil if there is no such group"),
    with_context_parallel = param.flag(false, "the group that also has the ranks of context parallelism"),
    partial_data_parallel = param.flag(false, "the group of one optimizer instance; needs with_context_parallel"),
    partial_expert_data_parallel = param.flag(false, "the same for experts"),
    between_nodes = param.flag(false, "the all-to-all group of devices with one index on all nodes, not of a node"),
    ignore_virtual = param.flag(true, "false: only the first and the last virtual stage count"),
    vp_stage = param.index(0, "virtual stage of this rank"),
  },
}
