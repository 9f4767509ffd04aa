-- DeepSpeed's groups.py and parallel_state_sp.py. Each of their functions that makes groups has a parameter here; if it
-- is given, the groups are made. Experts: the ranks of a pipeline stage are taken in one of three orders and cut into
-- expert groups. Ranks at equal positions of these groups have the same experts. A lane has the ranks with one
-- tensor-parallel coordinate:
--
--   consecutive           0 1 2 3 ...          no tensor parallelism, or mp_mode sp, or folded
--   lane after lane       0 2 4 .. 1 3 5 ..    tensor parallelism of the dense layers only
--   each lane by itself   0 2 4 .. | 1 3 5 ..  tensor parallelism of the experts as well
--
-- Source: deepspeedai/DeepSpeed at commit edaa7221, deepspeed/utils/groups.py,
-- deepspeed/module_inject/auto_ep_folding.py, deepspeed/runtime/sequence_parallel/parallel_state_sp.py.
-- As in the source: a folding spec may have only etp_size 1.
-- Not as there: sizes that leave ranks out, or that DeepSpeed cuts to the world, are refused; the source rank of every
-- group, also of a strided one, is its first rank; a member's position is that in DeepSpeed's list, which torch sorts;
-- groups that are requested twice are made once; model_parallel_size_ and tensor_model_parallel_size must be equal.
-- Recorded: 90 cases of 1 to 64 ranks, 16 of them refused: tests/golden/deepspeed_groups.json.

local arithmetic = ...

local function refuse(...) error(string.format(...), 2) end

-- Check a folding spec: it repeats other parameters, and must agree with them.
local function check_folding(world, p)
  local sizes = p.expert_parallel_size_ or {}
  local size = sizes[1] or false -- the size of all expert groups; false if there are none, or their sizes differ
  for _, ep in ipairs(sizes) do size = ep == size and ep end
  local expected = { world_size = #world, pp_size = p.pp_size, tp_size = p.mp_size, ep_size = size, etp_size = 1,
                     mp_mode = p.mp_mode }
  for name, value in pairs(p.folding_spec or {}) do
    local want = expected[name]
    if want == nil then
      refuse("folding_spec: unknown '%s'; known: world_size, pp_size, tp_size, ep_size, etp_size, mp_mode", name)
    end
    if not want or value ~= want then
      refuse("folding_spec: %s is %s, which contradicts the other parameters; %s", name, tostring(value),
        want and want .. " would do" or "leave it out")
    end
  end
end

-- Return the ranks of each stage, or of each lane of a stage, in the order in which experts are placed on them.
local function expert_ranks(world, p)
  local g = grid(world, "mp-dp-pp", { mp = p.mp_size, pp = p.pp_size, dp = fill })
  if p.enable_expert_tensor_parallelism then return g:along { "dp", index = { "mp", "pp" } } end
  if p.mp_size > 1 and p.use_data_before_expert_parallel_ then
    refuse("use_data_before_expert_parallel_ excludes mp_size %d without enable_expert_tensor_parallelism; "
      .. "mp_size 1 would do", p.mp_size)
  end
  return p.mp_mode == "tp" and not p.folding_spec and g:ordered("dp", "mp") or g("mp", "dp")
end

local function add_experts(t, world, p)
  local ranks = expert_ranks(world, p)
  local lanes = p.enable_expert_tensor_parallelism and p.mp_size or 1
  local made = {}
  if #p.expert_parallel_size_ == 0 then refuse("expert_parallel_size_ is an empty list; 1 would do") end
  for _, ep in ipairs(p.expert_parallel_size_) do
    grid(world, "ep-mp-edp-pp", { ep = ep, mp = lanes, pp = p.pp_size, edp = fill }) -- refuses sizes that do not fit
    local experts, data
    if p.use_data_before_expert_parallel_ then
      data, experts = ranks:split(ranks.size // ep)
    else
      experts, data = ranks:split(ep, { table = true }) -- without a rule if a group crosses lanes
    end
    if not made[ep] then
      made[ep] = true
      t["ep_size_" .. ep] = experts
      t["edp_size_" .. ep] = data
    end
  end
end

-- Return the name of the expert group that a query asks for.
local function name_of(q) return q.group_name or refuse "group_name is missing; a name such as ep_size_4 would do" end
local function expert_data_name(q) return "edp" .. string.sub(name_of(q), 3) end
local function experts(s, q) return s[name_of(q)] end
local function expert_data(s, q) return s[expert_data_name(q)] end
local function max_expert_size_name(p)
  return p.expert_parallel_size_ and "ep_size_" .. math.max(table.unpack(p.expert_parallel_size_))
end
local function model_parallel(s, _, p) return p.sequence_parallel_size and s.sp or s.mp end

local queries = {
  expert_parallel_src_rank = function(s, q) return experts(s, q).first end,
  expert_broadcast_src_rank = function(s, q) return expert_data(s, q).first end,
  max_expert_size_name = function(_, _, p) return max_expert_size_name(p) end,
  zero_param_intra_parallel_rank_in_mygroup = function(s) return s.zero_param_intra.position end,
  zero_param_intra_parallel_group_world_size = function(s) return s.zero_param_intra.size end,
  zero_param_parallel_is_initialized = function(_, _, p) return p.group_size ~= nil end,
  tensor_model_parallel_src_rank = function(s) return s.tp.first end,
}
for getter, group in pairs {
  expert_parallel = experts,
  expert_data_parallel = expert_data,
  tensor_model_parallel = function(s) return s.tp end,
  data_parallel = function(s) return s.dp end,
  model_parallel = model_parallel, -- with sequence parallelism answered by parallel_state_sp.py
  sequence_parallel = function(s) return s.sp end,
  sequence_data_parallel = function(s) return s.sp_dp end,
} do
  queries[getter .. "_rank"] = function(...) return group(...).position end
  queries[getter .. "_world_size"] = function(...) return group(...).size end
end

return recipe {
  doc = "DeepSpeed's groups.py: experts, hpZ, all-to-all, AutoTP and sequence-parallel groups",
  params = {
    expert_parallel_size_ = param.list(nil, "sizes of expert groups, such as 2,4: families ep_size_2, ...", "ep"),
    mp_size = param.size(1, "tensor- (or sequence-) parallel size of the dense layers", "mp"),
    pp_size = param.size(1, "pipeline stages", "pp"),
    mp_mode = param.text("tp", "whether mp_size is of tensor (tp) or sequence parallelism (sp)"),
    use_data_before_expert_parallel_ = param.flag(false, "neighbours share a data-parallel group, not an expert group"),
    enable_expert_tensor_parallelism = param.flag(false, "experts are cut by mp_size as well"),
    folding_spec = param.table(nil, "let expert groups cross lanes: {\"tp_size\":2,\"ep_size\":4,\"pp_size\":1}"),
    group_size = param.size(nil, "ranks of a ZeRO group of parameters", "zero_hpz_partition_size", "hpz"),
    device_count = param.size(nil, "devices per node; makes the all-to-all groups", "devices_per_node"),
    tensor_model_parallel_size = param.size(nil, "AutoTP size: families dp, mp, tp", "tp"),
    data_parallel_size = param.size(nil, "AutoTP's data-parallel size: world / tensor_model_parallel_size", "dp"),
    model_parallel_size_ = param.size(nil, "families dp and mp only"),
    sequence_parallel_size = param.size(nil, "Ulysses size, 2 or more: families sp, sp_dp", "sp"),
    clone_world_group = param.flag(false, "one group of all ranks"),
  },
  build = function(world, p)
    local t = topology(world)
    if p.mp_mode ~= "tp" and p.mp_mode ~= "sp" then refuse("mp_mode is '%s'; 'tp' or 'sp' would do", p.mp_mode) end
    if p.expert_parallel_size_ then add_experts(t, world, p) end
    check_folding(world, p)
    if p.group_size then
      t.zero_param_intra = grid(world, "group_size-rest", { group_size = p.group_size, rest = fill }) "group_size"
    end
    if p.device_count then
      local nodes = grid(world, "device_count-node", { device_count = math.min(p.device_count, #world), node = fill })
      t.all_to_all_local = nodes "device_count"
      if nodes.node > 1 then t.all_to_all_global = nodes "node" end
    end
    local tp = p.tensor_model_parallel_size or p.model_parallel_size_
    if p.data_parallel_size and not tp then
      local rest = grid(world, "tp-dp", { dp = p.data_parallel_size, tp = fill }) -- refuses a size that does not divide
      refuse("data_parallel_size %d needs tensor_model_parallel_size; %d would do", p.data_parallel_size, rest.tp)
    end
    if tp then
      if p.model_parallel_size_ and p.model_parallel_size_ ~= tp then
        refuse("model_parallel_size_ %d contradicts tensor_model_parallel_size %d; one of them would do",
          p.model_parallel_size_, tp)
      end
      local g = grid(world, "tp-dp", { tp = tp, dp = p.data_parallel_size or fill })
      t.dp = g "dp"
      t.mp = g "tp"
      if p.tensor_model_parallel_size then t.tp = g "tp" end -- it has the communicators of mp
    end
    if p.sequence_parallel_size == 1 then
      local near = arithmetic.nearest(1, #world)
      refuse("sequence_parallel_size 1 is not parallelism; %s", near and "nearest is " .. near or "leave it out")
    end
    if p.sequence_parallel_size then
      local g = grid(world, "sp-dp", { sp = p.sequence_parallel_size, dp = fill })
      t.sp = g "sp"
      t.sp_dp = g("sp", "dp") -- all ranks of the world, as in DeepSpeed
    end
    if p.clone_world_group then t.world_group = grid(world, "all", { all = fill }) "all" end
    return t
  end,
  queries = queries,
  getters = {
    get_tensor_model_parallel_group = "tp",
    get_model_parallel_group = "mp",
    get_data_parallel_group = "dp",
    get_sequence_parallel_group = "sp",
    get_sequence_data_parallel_group = "sp_dp",
    _get_expert_parallel_group = function(_, q) return name_of(q) end,
    _get_expert_data_parallel_group = function(_, q) return expert_data_name(q) end,
    _get_max_expert_parallel_group = function(_, _, p) return max_expert_size_name(p) end,
    _get_data_parallel_group = "world_group",
    _get_local_all_to_all_group = function(_, q)
      return q.between_nodes and "all_to_all_global" or "all_to_all_local"
    end,
    _get_sequence_parallel_group = "sp",
    _get_sequence_data_parallel_group = "sp_dp",
    _get_zero_param_intra_parallel_group = "zero_param_intra",
    _clone_world_group = "world_group",
  },
  families = {
    ["ep_size_*"] = "expert_parallel_size_, if expert groups have that size",
    ["edp_size_*"] = "expert_parallel_size_, if expert groups have that size",
    zero_param_intra = "group_size",
    all_to_all_local = "device_count",
    all_to_all_global = "device_count, and more nodes than one",
    dp = "tensor_model_parallel_size or model_parallel_size_",
    mp = "tensor_model_parallel_size or model_parallel_size_",
    tp = "tensor_model_parallel_size",
    sp = "sequence_parallel_size",
    sp_dp = "sequence_parallel_size",
    world_group = "clone_world_group",
  },
  arguments = {
    group_name = param.text(nil, "the family of expert groups: ep_size_4"),
    between_nodes = param.flag(false, "the all-to-all group of devices with one index on all nodes, not of a node"),
  },
}
