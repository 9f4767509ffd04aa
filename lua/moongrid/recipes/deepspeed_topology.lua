-- DeepSpeed's ProcessTopology (any named axes, the last one fastest), and the groups that its
-- PipelineParallelGrid makes of the axes pipe, data and model.
-- Source: deepspeedai/DeepSpeed at commit edaa7221, deepspeed/runtime/pipe/topology.py.
-- Not as there: nothing known.
-- Recorded: 49 cases of 1 to 64 ranks, 7 of them refused: tests/golden/deepspeed_topology.json.

local function refuse(...) error(string.format(...), 2) end

local named = {
  PipeDataParallelTopology = { "pipe", "data" },
  PipeModelDataParallelTopology = { "pipe", "data", "model" },
}

-- Return the sizes of pipe and data if no topology is given: they get the prime factors of the world in turn.
local function by_prime_factors(n)
  local sizes, turn, prime = { 1, 1 }, 1, 2
  while n > 1 do
    if prime * prime > n then prime = n end
    if n % prime == 0 then
      sizes[turn], n, turn = sizes[turn] * prime, n // prime, 3 - turn
    else
      prime = prime + 1
    end
  end
  return sizes
end

-- Return the given parameters of DeepSpeed's own topologies, each with its value: "num_pp 4".
local function named_params(p)
  local said = {}
  for _, name in ipairs { "topology", "num_pp", "num_mp", "num_dp" } do
    if p[name] then said[#said + 1] = name .. " " .. p[name] end
  end
  return said
end

-- Return the parameters axes and dims.
local function given_axes(p)
  local axes, dims, other = p.axes, p.dims, named_params(p)
  if other[1] then
    refuse("axes and dims already give the topology; leave out %s, or axes and dims", table.concat(other, ", "))
  end
  if not axes then refuse "axes is missing; names such as pipe-data-model would do" end
  if not dims or #dims ~= #axes then
    refuse("dims has %d sizes for the %d axes %s; a size for each would do", dims and #dims or 0, #axes,
      table.concat(axes, "-"))
  end
  return axes, dims
end

-- Return the axes and sizes of one of DeepSpeed's own topologies. Without num_dp, data takes the ranks that remain.
local function named_axes(p)
  local class = p.topology or p.num_mp and "PipeModelDataParallelTopology" or "PipeDataParallelTopology"
  local axes = named[class]
  if not axes then
    refuse("topology '%s' is unknown; PipeDataParallelTopology or PipeModelDataParallelTopology would do", class)
  end
  if p.num_mp and #axes == 2 then
    refuse("num_mp %d: topology %s has no model axis; PipeModelDataParallelTopology would do", p.num_mp, class)
  end
  return axes, { p.num_pp or 1, p.num_dp or fill, p.num_mp or 1 }
end

local function axes_of(world, p)
  if p.axes or p.dims then return given_axes(p) end
  if named_params(p)[1] then return named_axes(p) end
  return named.PipeDataParallelTopology, by_prime_factors(#world)
end

local function sizes_of(axes, dims)
  local sizes = {}
  for i, axis in ipairs(axes) do
    if dims[i] ~= fill and dims[i] < 1 then refuse("dims: axis '%s' has size %d; 1 or more would do", axis, dims[i]) end
    sizes[axis] = dims[i]
  end
  return sizes
end

-- Queries ---------------------------------------------------------------------

local function topo(s) return s.plan:grid "topo" end

local function lists(family)
  local groups = {}
  for g, ranks in pairs(family) do groups[g + 1] = ranks end
  return groups
end

-- Return the axes, slowest first as DeepSpeed names them.
local function axis_names(s)
  local names, dims = {}, topo(s):dims()
  for i = #dims, 1, -1 do names[#names + 1] = dims[i][1] end
  return names
end

-- Return all ranks that have some coordinates, whatever their coordinates on other axes.
local function filter_match(s, coords)
  local fixed = {}
  for axis in pairs(coords) do fixed[#fixed + 1] = axis end
  local family = topo(s):except(table.unpack(fixed))
  return family:ranks(family:locate(topo(s):rank(coords)))
end

-- Return the groups along an axis, nil if there is no such axis.
local function along(s, axis)
  for _, name in ipairs(axis_names(s)) do
    if name == axis then return topo(s):along(axis) end
  end
end

local function axis_comm_lists(s, axis)
  local family = along(s, axis)
  return family and lists(family) or {}
end

local function rank_repr(s, q)
  local omit, parts = {}, {}
  for _, axis in ipairs(q.omit_axes or { "data", "pipe" }) do omit[axis] = true end
  for _, axis in ipairs(axis_names(s)) do
    if not omit[axis] then
      parts[#parts + 1] = string.format("%s%s%02d", axis, q.inner_sep or "_", s.topo[axis])
    end
  end
  return table.concat(parts, q.outer_sep or "-")
end

-- Return a required argument of a query.
local function needs(q, name, example)
  if q[name] == nil then refuse("%s is missing; a %s would do", name, example) end
  return q[name]
end

local queries = {
  axis_names = axis_names,
  dim = function(s, q)
    local family = along(s, q.axis)
    return family and family.size or 0
  end,
  coord = function(s)
    local coord = axis_names(s)
    for i, axis in ipairs(coord) do coord[i] = s.topo[axis] end
    return coord
  end,
  rank = function(s, q) return topo(s):rank(q) end,
  rank_repr = rank_repr,
  filter_match = filter_match,
  axis_comm_lists = function(s, q) return axis_comm_lists(s, q.axis) end,
  axis_list = function(s, q)
    return filter_match(s, { [needs(q, "axis", "name such as pipe")] = needs(q, "idx", "coordinate such as 0") })
  end,
  stage_id = function(s) return s.topo.pipe end,
  data_parallel_id = function(s) return s.topo.data end,
  is_first_stage = function(s) return s.topo.pipe == 0 end,
  is_last_stage = function(s) return s.topo.pipe == topo(s).pipe - 1 end,
  stage_to_global = function(s, q) -- the rank of a stage whose other coordinates are this rank's, unless q has them
    local coords = topo(s):coords(s.rank)
    for axis, asked in pairs(q) do coords[axis == "stage_id" and "pipe" or axis] = asked end
    return topo(s):rank(coords)
  end,
  dp_groups = function(s) return axis_comm_lists(s, "data") end,
  pipe_groups = function(s) return axis_comm_lists(s, "pipe") end,
  model_groups = function(s) return s.slice.size > 1 and axis_comm_lists(s, "model") or nil end,
  p2p_groups = function(s) -- for each rank its pair with the rank in the next stage; stage 0 follows the last stage
    local pp, buddies = s.plan:family "pp", {}
    for _, line in pairs(pp) do
      for i, rank in ipairs(line) do buddies[rank + 1] = { rank, line[i % #line + 1] } end
    end
    return buddies
  end,
}
for getter, family in pairs {
  pipe_parallel = "pp", data_parallel = "dp", slice_parallel = "slice", model_parallel = "ds_model",
} do
  queries[getter .. "_rank"] = function(s) return s[family].position end
  queries[getter .. "_world_size"] = function(s) return s[family].size end
end

return recipe {
  doc = "DeepSpeed's ProcessTopology and PipelineParallelGrid: named axes, the last one fastest",
  params = {
    axes = param.names(nil, "names of the axes, slowest first: pipe-data-model"),
    dims = param.list(nil, "size of each axis"),
    topology = param.text(nil, "instead of axes: PipeDataParallelTopology or PipeModelDataParallelTopology"),
    num_pp = param.size(nil, "pipeline stages of the topology (1)", "pp"),
    num_mp = param.size(nil, "model-parallel size of the topology (1)", "mp", "tp"),
    num_dp = param.size(nil, "data-parallel size of the topology; left out, it takes the ranks that remain", "dp"),
    grid = param.flag(true, "make groups; false: only the grid, for questions about coordinates"),
  },
  build = function(world, p)
    local axes, dims = axes_of(world, p)
    local sizes, t = sizes_of(axes, dims), topology(world)
    local g = grid(world, axes, sizes, "slowest first")
    t.topo = g
    if not p.grid then return t end

    local missing, said = {}, table.concat(axes, "-")
    for _, axis in ipairs { "pipe", "data" } do
      if not sizes[axis] then missing[#missing + 1] = axis end
    end
    if missing[1] then
      refuse("axes %s: the groups of a pipeline need axis '%s'; '%s-%s' would do, with %s 1, or grid=false", said,
        table.concat(missing, "' and '"), table.concat(missing, "-"), said, missing[2] and "their sizes" or "its size")
    end
    t.ds_model = g:except "data" -- a group has all ranks that work on the same data
    t.dp = g "data"
    t.pp = g "pipe"
    t.slice = sizes.model and g "model" or g() -- tensor parallelism; without it each rank is a group
    return t
  end,
  queries = queries,
  getters = {
    get_pipe_parallel_group = "pp", get_data_parallel_group = "dp", get_model_parallel_group = "ds_model",
    get_slice_parallel_group = "slice",
  },
  families = { ["*"] = "grid" },
  arguments = { "..." }, -- coordinates go by the names of the axes
}
