-- torchtitan's ParallelDims: a dense grid (tp, cp, dp_shard, dp_replicate, pp) and a grid for the
-- experts, in which ep and efsdp replace tp, cp and dp_shard. An axis is a family; a
-- mesh of several axes is a nested list, its first axis outermost.
-- Source: pytorch/torchtitan, torchtitan/distributed/parallel_dims.py; version main (the default): at commit b5bcd76c;
-- version 0.3.0: the release, which has the backend full_dtensor: dp_shard and cp are axes of their own, without dp.
-- Not as there: nothing known.
-- Recorded: 51 cases of 1 to 32 ranks, 10 of them refused: tests/golden/torchtitan.json.

-- The meshes of several axes that exist, slowest axis first as in DeviceMesh.
local meshes = {
  { "pp", "batch", "cp", "tp" }, -- data loading
  { "pp", "dp_replicate", "dp_shard", "cp", "tp" },
  { "pp", "dp_replicate", "fsdp", "tp" },
  { "pp", "dp", "cp", "tp" },
  { "pp", "dp_replicate", "efsdp", "ep" },
}

-- Return whether an axis is enabled. An axis of one rank is disabled, except dp_shard, fsdp, and efsdp with experts;
-- efsdp is disabled without experts.
local function enabled(s, axis, p)
  if axis == "efsdp" then return p.ep > 1 end
  return axis == "dp_shard" or axis == "fsdp" or s[axis].size > 1
end

-- Return whether the axes are in this mesh, in the same order.
local function holds(mesh, axes)
  local found = 0
  for _, axis in ipairs(mesh) do
    if axis == axes[found + 1] then found = found + 1 end
  end
  return found == #axes and found > 0
end

-- Return the mesh of axes[i], axes[i + 1], ... that contains a rank.
local function mesh_through(plan, axes, i, rank)
  if i > #axes then return rank end
  local family, mesh = plan:family(axes[i]), {}
  for k, other in ipairs(family:ranks(family:locate(rank))) do mesh[k] = mesh_through(plan, axes, i + 1, other) end
  return mesh
end

-- Return the first rank of the mesh of some axes that contains this one: position 0 along each.
local function origin(plan, axes, rank)
  for _, axis in ipairs(axes) do
    local family = plan:family(axis)
    rank = family:ranks(family:locate(rank))[1]
  end
  return rank
end

-- Return the axes of a mesh, and the first axis that is disabled. Refuse an unknown axis.
local function axes_of(s, q, p)
  local axes = type(q.dims) == "table" and q.dims or { q.dims }
  for _, axis in ipairs(axes) do
    if not enabled(s, axis, p) then return axes, axis end
  end
  return axes
end

local function get_optional_mesh(s, q, p)
  local axes, off = axes_of(s, q, p)
  if off then return nil end
  local known, would_do = #axes == 1, {}
  for i, mesh in ipairs(meshes) do
    known = known or holds(mesh, axes)
    would_do[i] = table.concat(mesh, "-")
  end
  if not known then
    error(string.format("dims '%s' are in no mesh together, in this order; axes of one of %s would do",
      table.concat(axes, "-"), table.concat(would_do, ", ")))
  end
  return mesh_through(s.plan, axes, 1, origin(s.plan, axes, s.rank))
end

local function mesh_dim(q) return q.mesh_dim or error "mesh_dim is missing; an axis such as tp would do" end

-- Return the family of an axis, for get_mesh(axis).get_group(), or nil if the axis is disabled.
local function mesh_group(s, q, p)
  if type(q.dims) ~= "string" then
    error "dims of a group is one axis, such as \"tp\"; a mesh of several has no group"
  end
  if enabled(s, q.dims, p) then return q.dims end
end

local queries = {
  get_optional_mesh = get_optional_mesh,
  get_mesh = function(s, q, p)
    local _, off = axes_of(s, q, p)
    if off then error("axis '" .. off .. "' of this mesh is off: its size is 1, or efsdp without experts") end
    return get_optional_mesh(s, q, p)
  end,
  get_local_rank = function(s, q) return s[mesh_dim(q)].position end,
  size = function(s, q) return s[mesh_dim(q)].size end,
  enabled = function(s, q, p) return enabled(s, mesh_dim(q), p) end,
  one_dimensional = function(s, _, p) -- the axes that have meshes of more than one rank
    local axes = {}
    for _, axis in ipairs(s.plan.families) do
      if enabled(s, axis, p) and s[axis].size > 1 then axes[#axes + 1] = axis end
    end
    return axes
  end,
  dp_shard = function(s) return s.plan:grid "dense".dp_shard end,
  dp_enabled = function(s) return s.batch.size > 1 end,
  dp_cp_enabled = function(s) return s.loss.size > 1 end,
  fsdp_enabled = function(s) return s.plan:grid "dense".dp_shard * s.cp.size > 1 end,
  seq_len_divisor = function(s) return s.tp.size * 2 * s.cp.size end, -- load balancing takes two chunks per rank
}
for _, axis in ipairs { "cp", "tp", "pp", "ep" } do
  queries[axis .. "_enabled"] = function(s) return s[axis].size > 1 end
end

return recipe {
  doc = "torchtitan's ParallelDims: HSDP, context, tensor, pipeline; experts across all but pp",
  params = {
    dp_replicate = param.size(1, "copies of the sharded model"),
    dp_shard = param.integer(-1, "ranks that shard the parameters; -1: what the other sizes leave"),
    cp = param.size(1, "context-parallel size"),
    tp = param.size(1, "tensor-parallel size"),
    pp = param.size(1, "pipeline stages"),
    ep = param.size(1, "expert-parallel size; divides dp_shard x cp x tp"),
    spmd_backend = param.text("spmd_types", "spmd_types: axes dp and dp_shard; partial_dtensor: fsdp; full_dtensor "
      .. "(0.3.0): dp_shard"),
    version = param.text("main", "of torchtitan: main or 0.3.0"),
  },
  build = function(world, p)
    if p.dp_shard < 1 and p.dp_shard ~= -1 then
      error(string.format("dp_shard %d is neither a size nor -1 (what the other sizes leave); -1 would do", p.dp_shard))
    end
    if p.version ~= "main" and p.version ~= "0.3.0" then
      error("version '" .. p.version .. "' is unknown; 'main' or '0.3.0' would do")
    end
    local full = p.spmd_backend == "full_dtensor"
    if full and p.version ~= "0.3.0" then
      error("spmd_backend 'full_dtensor' is not in version main; 'spmd_types' or 'partial_dtensor' would do")
    end
    if not full and p.spmd_backend ~= "spmd_types" and p.spmd_backend ~= "partial_dtensor" then
      error("spmd_backend '" .. p.spmd_backend .. "' is unknown; 'spmd_types' or 'partial_dtensor' would do")
    end
    local dense = grid(world, "tp-cp-dp_shard-dp_replicate-pp", {
      tp = p.tp, cp = p.cp, dp_shard = p.dp_shard == -1 and fill or p.dp_shard,
      dp_replicate = p.dp_replicate, pp = p.pp,
    })
    local expert = grid(world, "ep-efsdp-dp_replicate-pp",
      { ep = p.ep, efsdp = fill, dp_replicate = p.dp_replicate, pp = p.pp })

    local t = topology(world)
    t.dense = dense
    t.expert = expert
    t.pp = dense "pp"
    t.batch = dense("dp_shard", "dp_replicate")
    t.loss = dense("cp", "dp_shard", "dp_replicate")
    t.dp_replicate = dense "dp_replicate"
    t.cp = dense "cp"
    t.tp = dense "tp"
    t.ep = expert "ep"
    t.efsdp = expert "efsdp":with { lazy = p.ep == 1 } -- not used without experts
    if p.spmd_backend == "spmd_types" then t.dp = t.batch end
    if p.spmd_backend == "partial_dtensor" then
      t.fsdp = dense("cp", "dp_shard")
    else
      t.dp_shard = dense "dp_shard"
    end
    return t
  end,
  queries = queries,
  getters = { get_mesh = mesh_group, get_optional_mesh = mesh_group }, -- of one axis: its group
  families = {
    dp = "spmd_backend spmd_types", dp_shard = "spmd_backend spmd_types or full_dtensor",
    fsdp = "spmd_backend partial_dtensor",
  },
  arguments = {
    check_initialized = param.flag(true, "false: return nil if the axis is disabled"),
    dims = param.any(nil, "axes of a mesh, slowest first; a single axis as text"),
    mesh_dim = param.text(nil, "an axis"),
  },
  step = steps.fsdp2(),
}
