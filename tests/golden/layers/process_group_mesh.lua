-- SPDX-License-Identifier: MIT
--
-- ColossalAI's ProcessGroupMesh on moongrid, for stock Lua: its operations under its names, on
-- rules instead of rank lists. Axes, coordinates and indices count from 0, the last axis varies
-- fastest. The original creates groups at once; here they are collected in a topology, whose plan
-- shares equal groups and becomes real communicators:
--
--   local ProcessGroupMesh = require "layers.process_group_mesh"
--   local mesh = ProcessGroupMesh.new(job.world, { 2, 4, 2 })         -- dp, pp, tp
--   local pp = mesh:create_group_along_axis(1)
--   local ends = mesh:create_group_along_axis(1, { 0, 3 })            -- first and last stage
--   local state = assert(job:materialize(mg.plan(mesh:topology())))
--   print(state.axis_1.position, state[mesh:name(ends)])                  -- nil between the ends
--
-- There is no current rank: every rank makes the same calls, and questions name the rank.

local mg = require "moongrid"
local layer = require "layers.layer"

local refuse, attempt, list, shown = layer.refuse, layer.attempt, layer.list, layer.shown

---@class moongrid.ProcessGroupMesh
---@field shape integer[] sizes of the axes, the last varies fastest
local ProcessGroupMesh = {}
ProcessGroupMesh.__index = ProcessGroupMesh

-- Return a sorted copy of a list of different integers from 0 to below n.
local function indices_below(n, what, value)
  local sorted, seen = list(what, value, "a list of integers"), {}
  for _, index in ipairs(sorted) do
    if math.type(index) ~= "integer" or index < 0 or index >= n then
      refuse("%s holds %s; it takes integers from 0 to %d", what, math.type(index) and index or type(index), n - 1)
    end
    if seen[index] then refuse("%s holds %d twice; name it once, ranks are in a group once", what, index) end
    seen[index] = true
  end
  table.sort(sorted)
  return sorted
end

local function axis_name(axis) return "axis_" .. axis end

---Make a mesh over a whole world, or over a window of one.
---@param world moongrid.World|integer or the number of its ranks
---@param size integer[] sizes of the axes, each 1 or more; their product is the number of ranks.
--- One may be `mg.fill`: what the others leave over
---@return moongrid.ProcessGroupMesh # refused, with the nearest sizes, where they do not fit
function ProcessGroupMesh.new(world, size)
  world = layer.world_of(world)
  if type(size) ~= "table" or #size == 0 then refuse("size is not a list; it needs the size of each axis") end
  local self, order, sizes = setmetatable({ shape = {}, world = world }, ProcessGroupMesh), {}, {}
  for axis = #size - 1, 0, -1 do
    order[#order + 1], sizes[axis_name(axis)] = axis_name(axis), size[axis + 1]
  end
  self.grid = attempt("ProcessGroupMesh", mg.grid, world, order, sizes)
  for i = 1, #size do self.shape[i] = self.grid[axis_name(i - 1)] end
  self:destroy_mesh_process_groups()
  return self
end

-- Return axes, with an index list for each of them; a single axis may come without lists around both.
local function axes_and_lists(axis, indices)
  if type(axis) == "number" then axis, indices = { axis }, { indices } end
  axis = list("axis", axis, "a list of integers")
  indices = list("indices_at_axis", indices, "a list for each axis")
  if #indices ~= #axis then
    refuse("%d index lists for %d axes; give one list for each axis", #indices, #axis)
  end
  return axis, indices
end

-- Return the axes, ascending, and the index lists in the same order; no lists if they leave nothing out.
local function selection(self, axis, indices)
  if not indices then return indices_below(#self.shape, "axis", type(axis) == "number" and { axis } or axis) end
  axis, indices = axes_and_lists(axis, indices)
  local axes = indices_below(#self.shape, "axis", axis)
  local by_axis, lists, some = {}, {}, false
  for i, ax in ipairs(axis) do
    by_axis[ax] = indices_below(self.shape[ax + 1], "indices_at_axis of axis " .. ax, indices[i])
    if #by_axis[ax] == 0 then refuse("indices_at_axis of axis %d is empty; leave it out for all", ax) end
    some = some or #by_axis[ax] < self.shape[ax + 1]
  end
  for i, ax in ipairs(axes) do lists[i] = by_axis[ax] end
  return axes, some and lists or nil
end

-- Store the family, or return the stored one with these groups and this backend.
local function keep(self, family, name, whole, backend)
  backend = layer.backend_of(backend)
  for _, known in ipairs(self.created) do
    if known.family == family and known.backend == backend then return known.family end
  end
  if backend then family = family:with { backend = backend } end
  if not whole or backend then name = name .. "_n" .. #self.created end
  self.created[#self.created + 1] = { family = family, name = name, backend = backend }
  return family
end

---Create the groups along some axes: ranks of a group differ only in these coordinates. They ascend
---for any order of axes and indices. A second call returns the same groups. O(dims), with
---indices O(ranks of a group).
---@param axis integer|integer[] 0 to #shape - 1, each once; none: a group for each rank
---@param indices_at_axis? integer[]|integer[][] coordinates to keep, each once, at least one;
--- for a list of axes one list for each; default: all
---@param backend? "nccl"|"gloo"|"mpi" of these groups ("gloo" is the same as "mpi": groups on the CPU)
---@return moongrid.Family # all groups; `locate(rank)` is nil for a rank that is not selected
function ProcessGroupMesh:create_group_along_axis(axis, indices_at_axis, backend)
  local axes, indices = selection(self, axis, indices_at_axis)
  local dims, origin, inside = {}, {}, {}
  for i = 1, #self.shape do origin[i], inside[i] = 0, 1 end
  for i, ax in ipairs(axes) do dims[i], inside[ax + 1] = axis_name(ax), self.shape[ax + 1] end
  local family = self.grid:along(dims)
  if indices then
    local positions = self.get_coords_along_axis(origin, axes, indices)
    for i, coord in ipairs(positions) do positions[i] = self.ravel(coord, inside) end
    family = attempt("indices_at_axis", family.pick, family, positions)
  end
  local name = #axes > 8 and "axes" or "axis" .. (axes[1] and "_" or "") .. table.concat(axes, "_")
  return keep(self, family, name, not indices and #axes <= 8, backend)
end

---The same as `create_group_along_axis`: finds existing groups, creates others.
ProcessGroupMesh.get_group_along_axis = ProcessGroupMesh.create_group_along_axis

---Return the group of any ranks, in ascending order; creates it unless it exists. An explicit list, O(ranks).
---@param ranks_in_group integer[] ranks of the world, each once, at least one
---@param backend? "nccl"|"gloo"|"mpi"
---@return moongrid.Family # of one group
function ProcessGroupMesh:get_group(ranks_in_group, backend)
  local ranks = indices_below(self.world.offset + self.world.size, "ranks_in_group", ranks_in_group)
  local family = attempt("ranks_in_group", self.world.table, self.world, { ranks }, "partial")
  return keep(self, family, "ranks", false, backend)
end

---Return the name of groups in the topology, from the call that made them: axis_0, axis_0_2, with "_n" and
---a number if there are indices or a backend. `state[mesh:name(group)]` is this rank's group.
---@param group moongrid.Family made by this mesh; refused otherwise
---@return string
function ProcessGroupMesh:name(group)
  for _, known in ipairs(self.created) do
    if rawequal(known.family, group) then return known.name end
  end
  return refuse("%s was not created by this mesh, or destroyed; pass what its methods return", shown(group))
end

---Return the ranks of the group that contains a rank.
---@param group moongrid.Family made by this mesh; refused otherwise
---@param rank integer of the world
---@return integer[]? ranks nil for a rank in no group
function ProcessGroupMesh:get_ranks_in_group(group, rank)
  local name = self:name(group)
  layer.check_rank(rank)
  local number = attempt(name, group.locate, group, rank)
  return number and group:ranks(number)
end

---Return the coordinates that differ from a base along some axes, the last axis of the list fastest.
---@param base_coord integer[] a coordinate for each axis
---@param axis integer|integer[] from 0
---@param indices_at_axis integer[]|integer[][] for each axis of the list one list
---@return integer[][]
function ProcessGroupMesh.get_coords_along_axis(base_coord, axis, indices_at_axis)
  local axes, lists = axes_and_lists(axis, indices_at_axis)
  local coords = { list("base_coord", base_coord, "a list of integers") }
  indices_below(#base_coord, "axis", axes)
  for i, ax in ipairs(axes) do
    local indices, longer = list("indices_at_axis of axis " .. ax, lists[i], "a list of integers"), {}
    for _, coord in ipairs(coords) do
      for _, index in ipairs(indices) do
        local copy = table.move(coord, 1, #coord, 1, {})
        copy[ax + 1] = index
        longer[#longer + 1] = copy
      end
    end
    coords = longer
  end
  return coords
end

---@param rank integer of the world
---@param dim? integer axis, 0 to #shape - 1; default: all
---@return integer|integer[]|nil coordinate from 0, or one for each axis; nil for a rank outside
function ProcessGroupMesh:coordinate(rank, dim)
  layer.check_rank(rank)
  if dim then return self.grid:coord(rank, axis_name(indices_below(#self.shape, "dim", { dim })[1])) end
  local coord = {}
  for axis = 0, #self.shape - 1 do coord[axis + 1] = self.grid:coord(rank, axis_name(axis)) end
  return coord[1] and coord
end

---@param dim? integer axis, 0 to #shape - 1; default: all
---@return integer|integer[] size of that axis, or a copy of `shape`
function ProcessGroupMesh:size(dim)
  if not dim then return table.move(self.shape, 1, #self.shape, 1, {}) end
  return self.shape[indices_below(#self.shape, "dim", { dim })[1] + 1]
end

local function check_shape(shape)
  layer.check("shape", shape, "table", "a list of sizes")
  for i, size in ipairs(shape) do layer.check_size(size, "axis " .. i - 1 .. " of the shape") end
end

---@param coord integer[] a coordinate for each size
---@param shape integer[] sizes of 1 or more, the last varies fastest
---@param mode? "raise"|"wrap"|"clip" a coordinate outside 0 to size - 1 is refused (default), taken
--- modulo the size, or becomes the nearest
---@return integer rank from 0
function ProcessGroupMesh.ravel(coord, shape, mode)
  if mode and mode ~= "raise" and mode ~= "wrap" and mode ~= "clip" then
    refuse("mode is %s; it is raise, wrap or clip", shown(mode))
  end
  check_shape(shape)
  layer.check("coord", coord, "table", "a list of integers")
  if #coord ~= #shape then refuse("%d coordinates for %d axes; give one for each", #coord, #shape) end
  local rank = 0
  for i, size in ipairs(shape) do
    local value = coord[i]
    if math.type(value) ~= "integer" then
      refuse("coordinate %s of axis %d is not an integer; it is 0 to %d", shown(value), i - 1, size - 1)
    end
    if mode == "wrap" then value = value % size end
    if mode == "clip" then value = math.max(0, math.min(value, size - 1)) end
    if value < 0 or value >= size then
      refuse("coordinate %d of axis %d is not in 0 to %d; mode wrap or clip brings it there", value, i - 1, size - 1)
    end
    rank = rank * size + value
  end
  return rank
end

---@param rank integer from 0 to the product of the sizes - 1; refused otherwise
---@param shape integer[] sizes of 1 or more, the last varies fastest
---@return integer[] coord a coordinate for each size
function ProcessGroupMesh.unravel(rank, shape)
  if math.type(rank) ~= "integer" then refuse("rank is %s; it is an integer from 0", shown(rank)) end
  check_shape(shape)
  local coord, rest = {}, rank
  for i = #shape, 1, -1 do coord[i], rest = rest % shape[i], rest // shape[i] end
  if rest ~= 0 then refuse("rank %d is outside a mesh of %s", rank, table.concat(shape, " x ")) end
  return coord
end

---Return everything created, in that order, and the grid `mesh` (dims axis_0, axis_1, ...).
---@param into? moongrid.Topology to add to, for several meshes in one job; default: a new one
---@param prefix? string put before each name
---@return moongrid.Topology
function ProcessGroupMesh:topology(into, prefix)
  local topology, add = layer.topology(self.world, into, prefix)
  add("mesh", self.grid)
  for _, known in ipairs(self.created) do add(known.name, known.family) end
  return topology
end

---Forget all groups. Collective if a state is given.
---@param state? moongrid.State made of this mesh's topology, to close
function ProcessGroupMesh:destroy_mesh_process_groups(state)
  layer.close(state)
  self.created = {}
end

return ProcessGroupMesh
