-- SPDX-License-Identifier: MIT
--
-- The recorded calls through the recipe, then once more through layers/jax_mesh.lua, which must make
-- the same of them. The layer is compared here.

local adapter = require "adapter"
local json = require "dkjson"
local mesh_utils = require "layers.jax_mesh"
local mg = require "moongrid"

local recipe = mg.load "jax_mesh"

-- The table has a column for each attribute; the parameter has a record for each device.
local function records(columns)
  local list = {}
  for i = 1, columns.count do
    list[i] = { platform = columns.platform, device_kind = columns.device_kind }
    for name, column in pairs(columns) do
      if type(column) == "table" then list[i][name] = column[i] end
    end
  end
  return list
end

local function family_of(kind) return (kind:gsub("%+", "_")) end

-- The same mesh by the layer.
local function layer(case, devices)
  local options = {}
  for name, value in pairs(case.args) do options[name] = value end
  options.version = case.version or "0.10.2"
  for _, name in ipairs { "call", "mesh_shape", "dcn_mesh_shape", "devices", "groups" } do options[name] = nil end
  if case.args.dcn_mesh_shape then
    return mesh_utils.create_hybrid_device_mesh(case.world, case.args.mesh_shape, case.args.dcn_mesh_shape, devices,
      options)
  end
  return mesh_utils.create_device_mesh(case.world, case.args.mesh_shape, devices, options)
end

local function check(what, got, want)
  assert(json.encode(got) == json.encode(want), ("%s is %s"):format(what, json.encode(got)))
end

local function check_layer(job, case, devices)
  local mesh = layer(case, devices)
  check("device_order of the layer", mesh:device_order(), case.lists.device_order)
  check("shape of the layer", mesh.shape, case.lists.shape)
  for i, rank in ipairs(case.ranks.rank) do
    check("coordinate by the layer", mesh:coordinate(rank), case.ranks.coordinate[i])
  end
  for kind in pairs(case.groups) do
    local axes = {}
    for axis in kind:gmatch "[^+]+" do axes[#axes + 1] = axis end
    mg.same(job.plan:family(family_of(kind)), mesh:group(axes))
  end
  assert(#mesh:topology() == #job.plan, "the layer has other groups in its topology")
end

-- What the grid of the plan says of every rank, by itself and as a state's mesh.
local function check_grid(job, case)
  local grid = job.plan:grid "mesh"
  local dims = grid:dims()
  for i, rank in ipairs(case.ranks.rank) do
    local state <close> = job.plan:dry(rank)
    local coords, by_axis, sizes = {}, {}, {}
    for axis = #dims, 1, -1 do
      coords[#coords + 1] = grid:coord(rank, dims[axis][1])
      by_axis[#by_axis + 1] = state.mesh[dims[axis][1]]
      sizes[#sizes + 1] = dims[axis][2]
    end
    check("coordinate of the grid", coords, case.ranks.coordinate[i])
    check("coordinate of the state's mesh", by_axis, case.ranks.coordinate[i])
    check("sizes of the grid", sizes, case.lists.shape)
    check("position in the mesh", case.lists.device_order[state.mesh.position + 1], rank)
  end
end

local function open(case)
  local args = {}
  for name, value in pairs(case.args) do args[name] = value end
  args.call, args.devices, args.version = nil, records(args.devices), case.version or "0.10.2"
  local job = adapter.job({ kinds = family_of }, { recipe = recipe, world = case.world })
  job:initialize(args)
  job.plan:rehearse()
  check_layer(job, case, args.devices)
  check_grid(job, case)
  return job
end

return { open = open, free = function() return true end } -- nothing is created
