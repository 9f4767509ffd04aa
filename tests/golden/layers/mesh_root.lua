-- SPDX-License-Identifier: MIT
--
-- Roots of layers.device_mesh: the data that all meshes made of one root share. Layouts have places; the root
-- knows the rank at each place, makes groups of layouts, and collects them in a topology.

local mg = require "moongrid"
local layer = require "layers.layer"

---@class moongrid.MeshRoot
---@field world moongrid.World of the ranks
---@field size integer number of places
---@field window? moongrid.World the places are its ranks, in order; nil: `lists` has them
---@field lists? moongrid.Family the ranks by place, a group for each mesh: one, or several made of groups
---@field members_only? boolean made of groups: ranks outside have no mesh
---@field mesh moongrid.DeviceMesh the root mesh, made of no other; its maker sets this
---@field flattened moongrid.DeviceMesh[] meshes that `_flatten` made, in that order
---@field collected moongrid.Topology
---@field groups_by_name table<string, moongrid.MeshRoot.Groups>
local MeshRoot = {}
MeshRoot.__index = MeshRoot

---Groups of a dim in the topology.
---@class moongrid.MeshRoot.Groups
---@field name string in the topology
---@field dim string
---@field family moongrid.Family with its options
---@field options string the options as text

---@param world moongrid.World
---@param fields table size, with window or lists
---@return moongrid.MeshRoot
function MeshRoot.new(world, fields)
  fields.world, fields.flattened, fields.groups_by_name, fields.collected = world, {}, {}, mg.topology(world)
  return setmetatable(fields, MeshRoot)
end

---Make a root of a list of ranks: a window if they are consecutive. O(ranks).
---@param world moongrid.World
---@param ranks integer[] at least one; refused if one is outside the world, or occurs twice
---@return moongrid.MeshRoot
function MeshRoot.of(world, ranks)
  local first, run = ranks[1], true
  for i, rank in ipairs(ranks) do run = run and math.type(rank) == "integer" and rank == first + i - 1 end
  if run and first >= world.offset and first + #ranks <= world.offset + world.size then
    return MeshRoot.new(world, { size = #ranks, window = world:window(first - world.offset, #ranks) })
  end
  local lists = layer.attempt("mesh", world.table, world, { ranks }, "partial")
  return MeshRoot.new(world, { size = #ranks, lists = lists })
end

---@param other moongrid.MeshRoot
---@return boolean # the same ranks in the same places
function MeshRoot:same_ranks(other)
  if self.window and other.window then
    return self.window.offset == other.window.offset and self.size == other.size
  end
  return self.lists ~= nil and self.lists == other.lists
end

---Return all groups of a layout: a rule over a window, explicit lists over others, O(ranks).
---@param layout moongrid.MeshLayout `check_orthogonal(size)` holds
---@return moongrid.Family # numbered by their first place, which ascends
function MeshRoot:groups(layout)
  if self.window then return layout:family(self.window) end
  local places, groups = layout:family(mg.world(self.size)), {}
  for _, ranks in pairs(self.lists) do
    for _, group in pairs(places) do
      for i, place in ipairs(group) do group[i] = ranks[place + 1] end
      groups[#groups + 1] = group
    end
  end
  return self.world:table(groups, "partial")
end

---Add groups to the topology, unless it has them under this name with these options.
---@param dim string
---@param family moongrid.Family with its options
---@param options string the options as text
---@return moongrid.MeshRoot.Groups
function MeshRoot:collect(dim, family, options)
  local base, n = "mesh_" .. dim, 0 -- as torch describes its groups
  local name = base
  while self.groups_by_name[name] do
    local known = self.groups_by_name[name]
    if known.dim == dim and known.family == family and known.options == options then return known end
    n = n + 1
    name = base .. "_" .. n
  end
  layer.add(self.collected, name, family, "give dim '" .. dim .. "' another name")
  self.groups_by_name[name] = { name = name, dim = dim, family = family, options = options }
  return self.groups_by_name[name]
end

return MeshRoot
