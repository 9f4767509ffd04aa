-- SPDX-License-Identifier: MIT
--
-- torch's DeviceMesh on moongrid, for stock Lua: its operations under its names, on rules instead of rank
-- lists. torch creates groups at once; here they are collected in a topology, whose plan shares equal groups
-- and becomes real communicators:
--
--   local DeviceMesh = require "layers.device_mesh"
--   local mesh = DeviceMesh.init_device_mesh(job.world, { 2, 2, 2 }, { mesh_dim_names = { "dp", "cp", "tp" } })
--   local fsdp = mesh("dp", "cp"):_flatten "fsdp"             -- mesh["dp", "cp"]._flatten("fsdp")
--   local state = assert(job:materialize(mg.plan(mesh:topology())))
--   print(state.mesh_tp.position, state[fsdp:name()].size)        -- state.mesh_tp is nil on a rank outside the mesh
--
-- The world replaces torch's device type; keyword arguments are a table, the last argument. There is no current rank:
-- all ranks make the same calls, and a question names the rank. Groups keep the order of the mesh: a rank's number in a
-- group is its coordinate, also where torch without `preserve_rank_order` orders members of a permuted mesh by rank.

local layer = require "layers.layer"
local MeshLayout = require "layers.mesh_layout"
local MeshRoot = require "layers.mesh_root"

local refuse, attempt, list, shown = layer.refuse, layer.attempt, layer.list, layer.shown

---@class moongrid.DeviceMesh
---@overload fun(...: string): moongrid.DeviceMesh
---@field shape integer[] sizes of the dims, the last varies fastest
---@field ndim integer number of dims
---@field mesh_dim_names? string[] names of the dims; nil if they have none
---@field _layout moongrid.MeshLayout[] for each dim, over the places in the mesh's list of ranks
local DeviceMesh = {}
DeviceMesh.__index = DeviceMesh

---Options of groups: a backend, options for `Family:with`, or `{ backend, options }`. Backends are "nccl", "mpi",
---"gloo" (the same as "mpi": groups on the CPU) and "fake" (the same as "none": groups without communicators).
---torch's names of options are accepted, too: is_high_priority_stream, config.
---@alias moongrid.DeviceMesh.Backend string|moongrid.Options|{ [1]: string, [2]: moongrid.Options }

---@class moongrid.DeviceMesh.Keywords
---@field mesh_dim_names? string[] one for each dim, each once
---@field backend_override? table<string|integer, moongrid.DeviceMesh.Backend> by name of a dim, or its number from 0

-- Arguments ---------------------------------------------------------------------

-- Refuse unknown keyword arguments; none given is an empty table.
local function keywords(given, ...)
  given = given or {}
  layer.check("the last argument", given, "table", "a table of keyword arguments")
  for name in pairs(given) do
    local known = false
    for _, word in ipairs { ... } do known = known or word == name end
    if not known then refuse("unknown argument '%s'; here are %s", shown(name), table.concat({ ... }, ", ")) end
  end
  return given
end

-- Check the names of ndim dims and return a copy; nil if there are none.
local function check_names(names, ndim)
  if names == nil then return nil end
  names = list("mesh_dim_names", names, "a list of names")
  if #names ~= ndim then refuse("%d mesh_dim_names for %d dims; give one name for each dim", #names, ndim) end
  local seen = {}
  for _, name in ipairs(names) do
    if type(name) ~= "string" or #name > 26 or not name:find "^[%a_][%w_]*$" then
      refuse("'%s' is not a dim name (a letter or _, then letters, digits or _; at most 26)", shown(name))
    end
    if seen[name] then refuse("dim '%s' occurs twice in a mesh; give one of them another name", name) end
    seen[name] = true
  end
  return names
end

local RENAMED = { is_high_priority_stream = "high_priority", config = "nccl" } -- torch's words for options

-- Convert one backend override to options for `Family:with`.
local function options_of(override)
  local backend, given, options = override, {}, {}
  if type(override) == "table" then
    backend, given = override[1], override[2] or {}
    if backend == nil then given = override end
  end
  layer.check("the options of a backend", given, "table", "a table")
  for name, value in pairs(given) do options[RENAMED[name] or name] = value end
  if backend == "fake" then
    options.backend = "none"
  elseif backend ~= nil then
    options.backend = layer.backend_of(backend)
  end
  return options
end

-- Return options for each dim.
local function overrides(given, names, ndim)
  local options, number_of = {}, {}
  layer.check("backend_override", given or {}, "table", "a table by dim")
  for i = 1, ndim do
    number_of[i - 1] = i
    if names then number_of[names[i]] = i end
  end
  for dim, override in pairs(given or {}) do
    local number = number_of[dim]
    if not number then
      refuse("backend_override has '%s'; it takes names of mesh_dim_names, or 0 to %d", shown(dim), ndim - 1)
    end
    if options[number] then
      refuse("backend_override has dim %d by name and by number; give one of them", number - 1)
    end
    options[number] = options_of(override)
  end
  return options
end

-- Return the ranks of a nested list, the last index fastest, and its shape.
local function unnested(mesh)
  local shape, ranks, inner = {}, {}, mesh
  layer.check("mesh", mesh, "table", "a list of ranks, nested for several dims")
  while type(inner) == "table" do
    layer.check_size(#inner, "mesh")
    shape[#shape + 1], inner = #inner, inner[1]
  end
  local function gather(part, depth)
    if (type(part) == "table" and #part or nil) ~= shape[depth] then
      refuse("mesh is ragged; lists of one depth are all as long as the first of them")
    end
    if not shape[depth] then ranks[#ranks + 1] = part end
    for i = 1, shape[depth] or 0 do gather(part[i], depth + 1) end
  end
  gather(mesh, 1)
  return ranks, shape
end

local function nested(ranks, shape)
  for i = #shape, 2, -1 do
    local rows = {}
    for first = 1, #ranks, shape[i] do rows[#rows + 1] = table.move(ranks, first, first + shape[i] - 1, 1, {}) end
    ranks = rows
  end
  return ranks
end

-- Return a layout for each size, the last one fastest.
local function row_major(shape)
  local layouts, stride = {}, 1
  for i = #shape, 1, -1 do
    layouts[i], stride = MeshLayout.new({ shape[i] }, { stride }), stride * shape[i]
  end
  return layouts
end

-- Meshes: dims over a root, each { name, layout, groups } -----------------------

local function new_mesh(root, dims)
  local self = { root = root, dims = dims, shape = {}, ndim = #dims, _layout = {} }
  if dims[1].name then self.mesh_dim_names = {} end
  for i, dim in ipairs(dims) do
    self.shape[i], self._layout[i] = dim.layout:numel(), dim.layout
    if dim.name then self.mesh_dim_names[i] = dim.name end
  end
  return setmetatable(self, DeviceMesh)
end

-- Make dims with new groups; the names are already checked. Collects nothing if the options are refused.
local function new_dims(root, layouts, names, backend_override)
  local options, families, dims = overrides(backend_override, names, #layouts), {}, {}
  for i, layout in ipairs(layouts) do
    families[i] = root:groups(layout)
    if options[i] then families[i] = attempt("backend_override", families[i].with, families[i], options[i]) end
  end
  for i, layout in ipairs(layouts) do
    local groups = root:collect(names and names[i] or "dim_" .. i - 1, families[i], layer.text(options[i] or {}))
    dims[i] = { name = names and names[i], layout = layout, groups = groups }
  end
  return dims
end

local function new_root_mesh(root, layouts, arguments)
  local names = check_names(arguments.mesh_dim_names, #layouts)
  root.mesh = new_mesh(root, new_dims(root, layouts, names, arguments.backend_override))
  return root.mesh
end

local function check_mesh(what, value)
  if getmetatable(value) ~= DeviceMesh then refuse("%s is %s; it takes a DeviceMesh", what, type(value)) end
  return value
end

-- Return the mesh's own dim of a name or, if `flattened`, one that `_flatten` made of its root.
local function dim_named(self, name, flattened)
  local names = {}
  local function find(mesh)
    for _, dim in ipairs(mesh.dims) do
      if dim.name == name then return dim end
      names[#names + 1] = dim.name
    end
  end
  local dim = find(self)
  for _, mesh in ipairs(flattened and self.root.flattened or {}) do dim = dim or find(mesh) end
  return dim or refuse("'%s' is not a dim of %s; there are %s", shown(name), self, table.concat(names, ", "))
end

local function dim_of(self, mesh_dim)
  if mesh_dim == nil and self.ndim == 1 then return self.dims[1] end
  if mesh_dim == nil then refuse("%s has %d dims; say which one", self, self.ndim) end
  if type(mesh_dim) == "string" and self.mesh_dim_names then return dim_named(self, mesh_dim, true) end
  return self.dims[math.type(mesh_dim) == "integer" and mesh_dim + 1]
    or refuse("%s is not a dim of %s; dims are 0 to %d", shown(mesh_dim), self, self.ndim - 1)
end

-- Return the groups of all dims together; each is the mesh of its ranks.
local function whole(self)
  self.submeshes = self.submeshes or self.root:groups(MeshLayout.join(self._layout))
  return self.submeshes
end

---Make a mesh over the first ranks of a world.
---@param world moongrid.World|integer or the number of its ranks
---@param mesh_shape integer[] sizes of the dims, each 1 or more; their product is at most the ranks
---@param arguments? moongrid.DeviceMesh.Keywords
---@return moongrid.DeviceMesh # refused where one of these does not hold
function DeviceMesh.init_device_mesh(world, mesh_shape, arguments)
  world, mesh_shape = layer.world_of(world), list("mesh_shape", mesh_shape, "a list of sizes")
  if #mesh_shape == 0 then refuse("mesh_shape is empty; it takes the size of each dim") end
  local size = 1
  for i, n in ipairs(mesh_shape) do
    layer.check_size(n, "dim " .. i - 1)
    if n > world.size // size then
      refuse("mesh_shape %s is larger than the world of %d ranks; make a size smaller or the world larger",
        table.concat(mesh_shape, " x "), world.size)
    end
    size = size * n
  end
  local root = MeshRoot.new(world, { size = size, window = world:window(0, size) })
  return new_root_mesh(root, row_major(mesh_shape), keywords(arguments, "mesh_dim_names", "backend_override"))
end

---Make a mesh over ranks in any order. Ranks that are not consecutive make explicit lists, O(ranks).
---@param world moongrid.World|integer or the number of its ranks
---@param mesh? integer[]|integer[][] ranks of the world, each at most once, nested for several dims; not with
--- `_layout`
---@param arguments? moongrid.DeviceMesh.Arguments
---@return moongrid.DeviceMesh
function DeviceMesh.new(world, mesh, arguments)
  world = layer.world_of(world)
  arguments = keywords(arguments, "mesh_dim_names", "backend_override", "preserve_rank_order", "_layout", "_rank_map")
  if arguments.preserve_rank_order == false then
    refuse("preserve_rank_order is false; groups keep the order of the mesh here, so leave it out or sort the mesh")
  end
  if (mesh == nil) == (arguments._layout == nil) then refuse("give either the ranks of a mesh, or _layout") end
  if mesh then
    local ranks, shape = unnested(mesh)
    return new_root_mesh(MeshRoot.of(world, ranks), row_major(shape), arguments)
  end
  local layouts, map = list("_layout", arguments._layout, "a list of layouts"), arguments._rank_map
  if #layouts == 0 then refuse("_layout is empty; it takes a layout for each dim") end
  for i, layout in ipairs(layouts) do
    if getmetatable(layout) ~= MeshLayout then layouts[i] = MeshLayout.new(layout) end
  end
  local root = map and MeshRoot.of(world, (unnested(map))) or MeshRoot.new(world, { size = world.size, window = world })
  MeshLayout.join(layouts):fill(root.size)
  return new_root_mesh(root, layouts, arguments)
end

---Arguments of `DeviceMesh.new`.
---@class moongrid.DeviceMesh.Arguments: moongrid.DeviceMesh.Keywords
---@field preserve_rank_order? true always so here
---@field _layout? (moongrid.MeshLayout|string)[] for each dim, over the places in `_rank_map`. Those that reach a
--- part of the places make several meshes: "(2):(4)" and "(2):(1)" over 8 places make 2 of 4 ranks
---@field _rank_map? integer[] ranks of the world by place; default: all

---Make meshes of existing groups, which become the groups of the dims: each group of a family is a mesh, or each of
---the meshes in `mesh`. A rank outside all groups has none.
---@param group moongrid.Family|moongrid.Family[] groups of equal size, no rank in two; or one family for each dim
---@param world moongrid.World|integer
---@param mesh? moongrid.DeviceMesh|integer[]|integer[][] for several families: a mesh whose dims have these groups
---@param arguments? { mesh_dim_names?: string[] }
---@return moongrid.DeviceMesh
function DeviceMesh.from_group(group, world, mesh, arguments)
  world, arguments = layer.world_of(world), keywords(arguments, "mesh_dim_names")
  local families = type(group) == "table" and list("group", group) or { group }
  for _, family in ipairs(families) do layer.check("group", family, "Family", "a family, or a list of them") end
  if mesh == nil and #families ~= 1 then
    refuse("%d families and no mesh; pass the mesh whose dims have these groups", #families)
  end
  local lists, shape = families[1], { families[1] and families[1].size }
  if mesh ~= nil then
    mesh = getmetatable(mesh) == DeviceMesh and mesh or DeviceMesh.new(world, mesh)
    if mesh.ndim ~= #families then
      refuse("%d families for a mesh of %d dims; pass one for each dim", #families, mesh.ndim)
    end
    for i, family in ipairs(families) do
      if mesh:get_group(i - 1) ~= family then
        refuse("dim %d of the mesh does not have these groups: %s, not %s", i - 1, mesh:get_group(i - 1), family)
      end
    end
    lists, shape = whole(mesh), mesh.shape
  end
  if not lists.size or lists.coverage == "cover" then
    refuse("groups of a mesh are of equal size and share no rank; these are not: %s", lists)
  end
  local names = check_names(arguments.mesh_dim_names, #families)
  local root, dims = MeshRoot.new(world, { size = lists.size, lists = lists, members_only = true }), {}
  for i, layout in ipairs(row_major(shape)) do
    local name = names and names[i]
    dims[i] = { name = name, layout = layout, groups = root:collect(name or "dim_" .. i - 1, families[i], "") }
  end
  root.mesh = new_mesh(root, dims)
  return root.mesh
end

---Return a slice, torch's `mesh["dp", "tp"]`: `mesh("dp", "tp")`, with the groups of its dims. Makes no groups.
---@param ... string names of dims, slow to fast; for a root mesh also those that `_flatten` made of it
---@return moongrid.DeviceMesh
function DeviceMesh:__call(...)
  if not self.mesh_dim_names then refuse("%s has no mesh_dim_names; slices are made by name", self) end
  local names, dims, layouts, own = { ... }, {}, {}, select("#", ...) == self.ndim
  if #names == 0 then
    refuse("a slice of %s without names; there are %s", self, table.concat(self.mesh_dim_names, ", "))
  end
  for i, name in ipairs(names) do
    dims[i] = dim_named(self, name, self == self.root.mesh)
    layouts[i], own = dims[i].layout, own and dims[i] == self.dims[i]
  end
  if own then return self end
  local joined = MeshLayout.join(layouts)
  check_names(names, #names)
  local text = table.concat(names, ", ")
  if not joined:check_orthogonal() then refuse("dims %s overlap; a slice has each rank once", text) end
  if #names > 1 and not joined:check_sorted() then
    refuse("dims %s are not slow to fast; write them in the mesh's order, or use _concatenate", text)
  end
  return new_mesh(self.root, dims)
end

---Merge all dims into one, with new groups, which the root mesh knows by name from then on. Returns the existing mesh
---for a name used before, and for a mesh of one dim under its own name. O(dims).
---@param mesh_dim_name? string default: the names joined by "_"
---@param backend_override? moongrid.DeviceMesh.Backend
---@return moongrid.DeviceMesh # of one dim
function DeviceMesh:_flatten(mesh_dim_name, backend_override)
  if not self.mesh_dim_names then refuse("%s has no mesh_dim_names; what is flattened has names", self) end
  local name = mesh_dim_name or table.concat(self.mesh_dim_names, "_")
  local root, layout, names = self.root, MeshLayout.join(self._layout), check_names({ name }, 1)
  local options = options_of(backend_override)
  if self.ndim == 1 and name == self.mesh_dim_names[1] then
    if next(options) then
      refuse("'%s' has its groups already; leave backend_override out, or choose another name", name)
    end
    return self
  end
  for _, taken in ipairs(root.mesh.mesh_dim_names or {}) do
    if taken == name then refuse("'%s' is a dim of %s already; choose another mesh_dim_name", name, root.mesh) end
  end
  for _, mesh in ipairs(root.flattened) do
    local dim = mesh.dims[1]
    if dim.name == name and (dim.layout ~= layout or dim.groups.options ~= layer.text(options)) then
      refuse("'%s' was flattened before, with layout %s and options %s; choose another mesh_dim_name", name,
        dim.layout, dim.groups.options)
    end
    if dim.name == name then return mesh end
  end
  local mesh = new_mesh(root, new_dims(root, { layout }, names, { [0] = backend_override }))
  root.flattened[#root.flattened + 1] = mesh
  return mesh
end

---Split one dim into several, with new groups; the other dims keep theirs. O(dims).
---@param dim integer|string its number from 0, or its name
---@param mesh_sizes integer[] slow to fast; their product is the size of the dim, and they meet the boundaries of
--- its layout
---@param mesh_dim_names? string[] one for each size, different from the other dims'; none if the mesh has no names
---@param backend_override? table<string|integer, moongrid.DeviceMesh.Backend> by new name, or number from 0
---@return moongrid.DeviceMesh
function DeviceMesh:_unflatten(dim, mesh_sizes, mesh_dim_names, backend_override)
  local old = dim_of(self, dim)
  mesh_sizes = list("mesh_sizes", mesh_sizes, "a list of sizes")
  local layouts, names = old.layout:composition(mesh_sizes), check_names(mesh_dim_names, #mesh_sizes)
  if (names ~= nil) ~= (self.mesh_dim_names ~= nil) and self.ndim > 1 then
    refuse("dims would have names in part; %s mesh_dim_names, as the other dims of %s", names and "leave out" or "give",
      self)
  end
  local all, dims = {}, {}
  for _, own in ipairs(self.dims) do
    local given = own == old and (names or {}) or { own.name }
    table.move(given, 1, #given, #all + 1, all)
  end
  check_names(all, #all)
  for _, own in ipairs(self.dims) do
    if own == old then
      table.move(new_dims(self.root, layouts, names, backend_override), 1, #layouts, #dims + 1, dims)
    else
      dims[#dims + 1] = own
    end
  end
  return new_mesh(self.root, dims)
end

---Combine the dims of several meshes over the same ranks into one mesh, in any order, with their groups.
---@param device_mesh_list moongrid.DeviceMesh[] with names, none twice; no rank twice in what they make
---@return moongrid.DeviceMesh # made of the first mesh's root, whose topology has all its groups
function DeviceMesh._concatenate(device_mesh_list)
  local meshes = list("device_mesh_list", device_mesh_list, "a list of meshes")
  local root, dims, names, layouts = check_mesh("device_mesh_list", meshes[1]).root, {}, {}, {}
  for _, mesh in ipairs(meshes) do
    check_mesh("device_mesh_list", mesh)
    if not mesh.mesh_dim_names then refuse("%s has no mesh_dim_names; what is concatenated has names", mesh) end
    if not root:same_ranks(mesh.root) then
      refuse("%s and %s are not over the same ranks in one order; make them of one mesh", meshes[1], mesh)
    end
    for _, dim in ipairs(mesh.dims) do
      dims[#dims + 1], names[#names + 1], layouts[#layouts + 1] = dim, dim.name, dim.layout
    end
  end
  check_names(names, #names)
  if not MeshLayout.join(layouts):check_orthogonal() then
    refuse("dims %s overlap; a mesh has each rank once", table.concat(names, ", "))
  end
  for i, dim in ipairs(dims) do
    local groups = root:collect(dim.name, dim.groups.family, dim.groups.options)
    dims[i] = { name = dim.name, layout = dim.layout, groups = groups }
  end
  return new_mesh(root, dims)
end

---@param mesh_dim? integer|string number from 0, or name, of a dim or of one that `_flatten` made; default: the only
---dim
---@return moongrid.Family # all groups of the dim, with their options
function DeviceMesh:get_group(mesh_dim) return dim_of(self, mesh_dim).groups.family end

---@return moongrid.Family[] # for each dim
function DeviceMesh:get_all_groups()
  local families = {}
  for i, dim in ipairs(self.dims) do families[i] = dim.groups.family end
  return families
end

---Return their name in the topology: "mesh_" and the dim's name, or "mesh_dim_" and its number; then "_1" and so on if
---meshes of one root have other groups of that name. `state[mesh:name "tp"]` is this rank's group.
---@param mesh_dim? integer|string as for `get_group`
---@return string
function DeviceMesh:name(mesh_dim) return dim_of(self, mesh_dim).groups.name end

---@param rank integer of the world
---@param mesh_dim? integer|string as for `get_group`
---@return integer? # number in its group, which is the coordinate; nil for a rank outside
function DeviceMesh:get_local_rank(rank, mesh_dim)
  layer.check_rank(rank)
  local groups = dim_of(self, mesh_dim).groups
  local _, position = attempt(groups.name, groups.family.locate, groups.family, rank)
  return position
end

---@param rank integer of the world
---@return integer[]? # for each dim from 0; nil for a rank outside
function DeviceMesh:get_coordinate(rank)
  local coordinate = {}
  for i = 1, self.ndim do coordinate[i] = self:get_local_rank(rank, i - 1) end
  return coordinate[1] and coordinate
end

---@param mesh_dim? integer|string as for `get_group`; default: all dims
---@return integer # ranks along the dim, or of the mesh
function DeviceMesh:size(mesh_dim)
  if mesh_dim == nil then return MeshLayout.join(self._layout):numel() end
  return dim_of(self, mesh_dim).layout:numel()
end

---Return the mesh that contains a rank, torch's tensor `mesh.mesh`. O(its ranks).
---@param rank? integer of the world; optional if the mesh is the same for all
---@return integer[]|integer[][]|nil # ranks, nested as `shape`; nil for a rank outside
function DeviceMesh:mesh(rank)
  local submeshes = whole(self)
  if submeshes.count == 1 and not self.root.members_only then return nested(submeshes:ranks(0), self.shape) end
  layer.check_rank(rank)
  local number = attempt("mesh", submeshes.locate, submeshes, rank)
  return number and nested(submeshes:ranks(number), self.shape)
end

---@param mesh_dim_name integer|string as for `get_group`
---@return integer[][] # the ranks of each group along a dim. O(ranks)
function DeviceMesh:_get_all_submeshes(mesh_dim_name)
  local lists = {}
  for group, ranks in pairs(self:get_group(mesh_dim_name)) do lists[group + 1] = ranks end
  return lists
end

---Return everything created for this mesh and all with the same root, in order of creation.
---@param into? moongrid.Topology to add to, for several roots in one job; default: a new one
---@param prefix? string put before each name
---@return moongrid.Topology
function DeviceMesh:topology(into, prefix)
  local topology, add = layer.topology(self.root.world, into, prefix)
  for name, family in pairs(self.root.collected) do add(name, family) end
  return topology
end

function DeviceMesh:__tostring()
  local dims = {}
  for i, dim in ipairs(self.dims) do dims[i] = (dim.name and dim.name .. "=" or "") .. self.shape[i] end
  return "DeviceMesh(" .. table.concat(dims, ", ") .. ")"
end

return DeviceMesh
