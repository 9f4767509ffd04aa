-- SPDX-License-Identifier: MIT
--
-- The recorded operations through layers/device_mesh.lua; groups are read from the plan of all topologies of the
-- job, each root's under the name of its mesh.

local mg = require "moongrid"
local adapter = require "adapter"
local DeviceMesh = require "layers.device_mesh"
local MeshLayout = require "layers.mesh_layout"

-- Keys of JSON are strings, numbers of dims among them.
local function overrides(given)
  if type(given) ~= "table" then return given end
  local by_dim = {}
  for dim, override in pairs(given) do by_dim[math.tointeger(tonumber(dim)) or dim] = override end
  return by_dim
end

local calls = {}

function calls.init_device_mesh(job, op)
  return DeviceMesh.init_device_mesh(job.world, op.mesh_shape,
    { mesh_dim_names = op.mesh_dim_names, backend_override = overrides(op.backend_override) })
end

-- A list of ranks, or the name of one.
local function rank_map(given, world)
  if given == nil or type(given) == "table" then return given end
  assert(given == "arange" or given == "reversed", "unknown _rank_map")
  local ranks = {}
  for i = 1, world do ranks[i] = given == "arange" and i - 1 or world - i end
  return ranks
end

function calls.DeviceMesh(job, op)
  local layouts
  for i, layout in ipairs(op._layout or {}) do
    layouts = layouts or {}
    layouts[i] = MeshLayout.new(layout[1], layout[2])
  end
  local map = rank_map(op._rank_map, job.world.size)
  return DeviceMesh.new(job.world, op.mesh, { mesh_dim_names = op.mesh_dim_names,
    preserve_rank_order = op.preserve_rank_order, _layout = layouts, _rank_map = map })
end

function calls.__getitem__(job, op)
  local names = type(op.mesh_dim_names) == "table" and op.mesh_dim_names or { op.mesh_dim_names }
  return job.meshes[op.on](table.unpack(names))
end

function calls._flatten(job, op) return job.meshes[op.on]:_flatten(op.mesh_dim_name, op.backend_override) end

function calls._unflatten(job, op)
  return job.meshes[op.on]:_unflatten(op.dim, op.mesh_sizes, op.mesh_dim_names, overrides(op.backend_override))
end

function calls._concatenate(job, op)
  local meshes = {}
  for i, name in ipairs(op.device_mesh_list) do meshes[i] = job.meshes[name] end
  return DeviceMesh._concatenate(meshes)
end

function calls.new_group(job, op)
  job.families[op.as] = job.world:table({ op.ranks }, "partial")
  job.kind_of[op.as] = "new_group:" .. table.concat(op.ranks, ",")
end

function calls.from_group(job, op)
  local function family(of) return job.families[of] or job.meshes[of[1]]:get_group(of[2]) end
  local group = op.group
  if type(group[1]) == "table" then
    group = {}
    for i, of in ipairs(op.group) do group[i] = family(of) end
  else
    group = family(group)
  end
  local mesh = DeviceMesh.from_group(group, job.world, op.mesh or job.meshes[op.mesh_of],
    { mesh_dim_names = op.mesh_dim_names })
  -- the group of `new_group` is in the topology as that of the mesh
  if job.kind_of[op.group] then job.kinds_of[job.kind_of[op.group]] = { mesh, 0 } end
  return mesh
end

function calls.get_group(job, op)
  job.kinds_of[("get:%s[%s]"):format(op.on, op.mesh_dim)] = { job.meshes[op.on], op.mesh_dim }
end

function calls._get_all_submeshes(job, op)
  local what = ("all_submeshes(%s,%s)"):format(op.on, op.mesh_dim_name)
  job.listed[what] = job.meshes[op.on]:_get_all_submeshes(op.mesh_dim_name)
end

local function text(list)
  if type(list) ~= "table" then return tostring(list) .. "," end
  return #list == 1 and list[1] .. "," or table.concat(list, ",")
end

local function pair(layout) return { layout.sizes, layout.strides } end

local function pairs_of(layouts)
  local list = {}
  for i, layout in ipairs(layouts) do list[i] = pair(layout) end
  return list
end

-- torch answers for a layout that overlaps as well, with sizes of 0, and so no group.
local function complement_is_none(recorded)
  for _, size in ipairs(recorded[1]) do
    if size == 0 then return true end
  end
  return false
end

-- The layout and what is recorded of it, each entry as moongrid has it.
function calls._FlatLayout(job, op, lists)
  local sizes = type(op.shape) == "table" and op.shape or { op.shape }
  local layout = MeshLayout.new(sizes, op.stride)
  local what, want = ("layout (%s):"):format(text(sizes)), nil
  if op.stride then
    what = ("%s(%s)"):format(what, text(op.stride))
    want = lists[what]
    assert(tostring(MeshLayout.new(what:match "%S+$")) == tostring(layout), what)
  else -- the recorded name has the strides that torch took
    for name, recorded in pairs(lists) do
      if name:sub(1, #what) == what then what, want = name, recorded end
    end
  end
  assert(want, "nothing is recorded of " .. what)
  local got = {
    canonical = pair(layout), numel = layout:numel(), ranks = layout:all_ranks_from_zero(),
    sorted = layout:check_sorted(), orthogonal = layout:check_orthogonal(),
  }
  if op.compose then
    local done, parts = pcall(layout.composition, layout, op.compose)
    got[("composition(%s)"):format(text(op.compose))] = done and pairs_of(parts) or { error = parts }
  end
  for name, value in pairs(want) do
    local of, places = name:match "^(%l+_?%l+)%((%d+)%)$"
    places = math.tointeger(tonumber(places))
    if of == "complement" and complement_is_none(value) then
      assert(not pcall(layout.complement, layout, places), what .. " has no complement")
      got[name] = value
    elseif of == "complement" then
      got[name] = pair(layout:complement(places))
    elseif of == "global_ranks" then
      got[name] = #value > 0 and layout:global_ranks(places) or value
    end
  end
  job.listed[what] = got
end

-- "mesh.dp", "mesh.0" of a recorded column -> mesh, dim
local function dim_of(job, kind)
  local mesh, dim = kind:match "^([^.]*)%.(.*)$"
  return job.meshes[mesh], math.tointeger(tonumber(dim)) or dim
end

local function ask(job, column, rank)
  local what, of = column:match "^([%w_]+)%((.*)%)$"
  if what == "coordinate" then return job.meshes[of]:get_coordinate(rank) end
  if what == "mesh" then return job.meshes[of]:mesh(rank) end
  assert(what == "local_rank", "unknown column")
  local mesh, dim = dim_of(job, of)
  local position = mesh:get_local_rank(rank, dim)
  local group = job.plan:dry(rank)[job.names[of]]
  assert(position == (group and group.position))
  return position
end

-- The names in the plan: each root's own, after the name of its mesh.
local function look(job)
  local topology, prefixes = mg.topology(job.world), {}
  for _, as in ipairs(job.order) do
    local mesh = job.meshes[as]
    if not prefixes[mesh.root] then
      prefixes[mesh.root] = as .. "_"
      mesh:topology(topology, as .. "_")
    end
    for i, name in ipairs(mesh.mesh_dim_names or mesh.shape) do
      job.kinds_of[as .. "." .. (mesh.mesh_dim_names and name or i - 1)] = { mesh, i - 1 }
    end
    job.listed["shape(" .. as .. ")"], job.listed["names(" .. as .. ")"] = mesh.shape, mesh.mesh_dim_names
    job.listed["layout(" .. as .. ")"] = pairs_of(mesh._layout)
  end
  for kind, of in pairs(job.kinds_of) do job.names[kind] = prefixes[of[1].root] .. of[1]:name(of[2]) end
  job.plan = mg.plan(topology)
  job.plan:rehearse()
end

-- The backend that an operation gives to a dim of its mesh by name.
local function backend(case, kind, on_cpu)
  for _, op in ipairs(case.args.ops) do
    local dim = op.backend_override and kind:match("^" .. op.as .. "%.(.*)$")
    local named = op.backend_override
    if dim and type(named) == "table" then
      for i, name in ipairs(op.mesh_dim_names) do
        if name == dim then named = named[dim] or named[tostring(i - 1)] or named end
      end
    end
    if dim and named ~= op.backend_override then return type(named) == "table" and named[1] or named end
  end
  return on_cpu
end

-- A single group over the whole world, in its order, is the world's own, but for one of new_group.
local function free(case, kind, groups)
  if #groups > 1 or #groups[1] < case.world or kind:find "^new_group" then return false end
  for i, rank in ipairs(groups[1]) do
    if rank ~= i - 1 then return false end
  end
  return true
end

local function open(case)
  local names = {} -- recorded kind -> family in the plan
  local speaks = { kinds = names, ask = ask, list = function() end }
  local job = adapter.job(speaks, { names = names, world = mg.world(case.world) })
  job.meshes, job.order = {}, {} -- by the names that the operations give
  job.families, job.kind_of = {}, {} -- of new_group
  job.kinds_of = {} -- recorded kind -> mesh, dim
  adapter.perform(case.args.ops, case.lists or {}, function(op)
    local mesh = calls[op.call](job, op, case.lists or {})
    if getmetatable(mesh) == DeviceMesh then job.meshes[op.as], job.order[#job.order + 1] = mesh, op.as end
  end)
  job.listed.refused = (case.lists or {}).refused -- performed so
  look(job)
  return job
end

return { open = open, backend = backend, free = free }
