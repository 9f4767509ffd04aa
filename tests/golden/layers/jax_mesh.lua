-- SPDX-License-Identifier: MIT
--
-- JAX's mesh_utils on moongrid, for stock Lua: create_device_mesh and create_hybrid_device_mesh under their
-- names. The order of the devices is that of the bundled recipe `jax_mesh`; groups are
-- collected in a topology, whose plan becomes real communicators:
--
--   local mesh_utils = require "layers.jax_mesh"
--   local mesh = mesh_utils.create_device_mesh(job.world, { 2, 4 }, devices, { axis_names = { "data", "model" } })
--   mesh:group "model"
--   mesh:group { "data", "model" }
--   local state = assert(job:materialize(mg.plan(mesh:topology())))
--   print(state.model.position, state.data_model.size)
--
-- Axes are slowest first; most data is sent along the last one. There is no current rank: every rank makes the
-- same calls, and questions name the rank.

local mg = require "moongrid"
local layer = require "layers.layer"

local refuse, attempt, list, shown = layer.refuse, layer.attempt, layer.list, layer.shown

local recipe = mg.load "jax_mesh"

---A device as JAX lists it.
---@class moongrid.JaxDevice
---@field id? integer its rank, counted from the start of the world or window; default: its index in the list
---@field platform? string "tpu", "gpu" or "cpu"; default: tpu with coords, else cpu
---@field device_kind? string such as "TPU v4"
---@field coords? integer[] x, y and z; a TPU needs them
---@field core_on_chip? integer 0 by default
---@field process_index? integer 0 by default
---@field slice_index? integer

---@class moongrid.JaxMesh
---@field shape integer[] size of each axis, slowest first
---@field axis_names string[] of the axes, slowest first; their groups have these names as well
---@field grid moongrid.Grid the axes, fastest first, over the devices in their order
local JaxMesh = {}
JaxMesh.__index = JaxMesh

local function reversed(axes)
  local back = {}
  for i, axis in ipairs(axes) do back[#axes + 1 - i] = axis end
  return back
end

-- Make a mesh by the recipe; refuse options that the call does not have.
local function new(call, takes, world, params, options)
  world = layer.world_of(world)
  layer.check("options", options or {}, "table", "a table by name")
  for option, value in pairs(options or {}) do
    if not takes:find("%f[%w_]" .. shown(option) .. "%f[^%w_]") then
      refuse("unknown option '%s'; %s takes %s", shown(option), call, takes)
    end
    params[option] = value
  end
  local plan = attempt(call, recipe.plan, recipe, world.size, params)
  local first = plan:dry(0)
  local self = setmetatable({ axis_names = plan.families, shape = recipe:ask(first, "shape"), world = world }, JaxMesh)
  local sizes, ranks = {}, world
  for i, axis in ipairs(self.axis_names) do sizes[axis] = self.shape[i] end
  if params.devices then -- else they are in order
    local order = recipe:ask(first, "device_order")
    for i, id in ipairs(order) do order[i] = world:rank(id) end
    ranks = world:order(order)
  end
  self.grid = mg.grid(ranks, reversed(self.axis_names), sizes)
  self.collected = mg.topology(world)
  return self
end

local M = {}

---Make a mesh of the devices of one network, in an order that suits it.
---@param world moongrid.World|integer the devices, or their number
---@param mesh_shape integer[] size of each axis, slowest first; one may be -1: what remains
---@param devices? moongrid.JaxDevice[] one for each rank; default: the ranks in order
---@param options? { axis_names?: string[], contiguous_submeshes?: boolean, allow_split_physical_axes?: boolean,
---version?: string }
--- axis_names: default axis_0, axis_1, ...; contiguous_submeshes: keep devices of a process together, or
--- refuse; allow_split_physical_axes: several axes may share one of the torus
---@return moongrid.JaxMesh # refused where the devices do not fit
function M.create_device_mesh(world, mesh_shape, devices, options)
  return new("create_device_mesh", "axis_names, contiguous_submeshes, allow_split_physical_axes, version", world,
    { mesh_shape = mesh_shape, devices = devices }, options)
end

---Make a mesh of several slices, or processes: an axis is (slice, index inside).
---@param world moongrid.World|integer the devices, or their number
---@param mesh_shape integer[] size of each axis inside a slice, slowest first
---@param dcn_mesh_shape integer[] slices along each axis; as many sizes as in `mesh_shape`
---@param devices moongrid.JaxDevice[] one for each rank, with a slice_index unless process_is_granule
---@param options? { axis_names?: string[], process_is_granule?: boolean, should_sort_granules_by_key?: boolean,
--- allow_split_physical_axes?: boolean, version?: string } process_is_granule: processes, not slices;
--- should_sort_granules_by_key = false: in the order in which the devices list them
---@return moongrid.JaxMesh # refused where the devices do not fit
function M.create_hybrid_device_mesh(world, mesh_shape, dcn_mesh_shape, devices, options)
  layer.check("dcn_mesh_shape", dcn_mesh_shape, "table", "the slices along each axis")
  return new("create_hybrid_device_mesh",
    "axis_names, process_is_granule, should_sort_granules_by_key, allow_split_physical_axes, version", world,
    { mesh_shape = mesh_shape, dcn_mesh_shape = dcn_mesh_shape, devices = devices }, options)
end

---Return the mesh as a flat list. O(ranks).
---@return integer[] ranks the last axis fastest
function JaxMesh:device_order() return self:family(self.axis_names):ranks(0) end

---Return the groups along some axes, as rules if the order allows it; creates nothing. O(ranks) with devices.
---@param axes string|string[] names, each once, the first one slowest inside a group; none: a group for each rank
---@return moongrid.Family # numbered along the other axes, their last one fastest
function JaxMesh:family(axes)
  axes = type(axes) == "string" and { axes } or list("axes", axes, "a name or a list of names")
  return attempt("axes", self.grid.ordered, self.grid, reversed(axes))
end

---Create the groups along some axes: add them to the topology under the axes' names, joined by "_". A second call is
---harmless.
---@param axes string|string[] as for `family`, at least one
---@return moongrid.Family
function JaxMesh:group(axes)
  local family = self:family(axes)
  local name = type(axes) == "string" and axes or table.concat(axes, "_")
  for known in pairs(self.collected) do
    if known == name then return family end
  end
  layer.add(self.collected, name, family, "axes whose names make another name of a group would do")
  return family
end

---@param rank integer of the world; required
---@return integer[]? coordinate of its device, one for each axis; nil for a rank outside the mesh
function JaxMesh:coordinate(rank)
  layer.check_rank(rank)
  local coords = self.grid:coords(rank)
  if not coords then return nil end
  local coordinate = {}
  for i, axis in ipairs(self.axis_names) do coordinate[i] = coords[axis] end
  return coordinate
end

---Return everything created by `group`, in that order. It has no grid: ask the mesh for coordinates.
---@param into? moongrid.Topology to add to, for several meshes in one job; default: a new one
---@param prefix? string put before each name
---@return moongrid.Topology
function JaxMesh:topology(into, prefix)
  local topology, add = layer.topology(self.world, into, prefix)
  for name, family in pairs(self.collected) do add(name, family) end
  return topology
end

return M
