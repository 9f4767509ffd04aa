-- JAX's mesh_utils, create_device_mesh and create_hybrid_device_mesh: named axes over devices, in an order
-- that suits the network between them. Axes are slowest first; most data is sent along the last one.
-- The id of a device is its rank. An order is the list of devices that fills the mesh, last axis fastest:
--
--   rings     small boxes of some kinds of TPU: neighbours in the order are neighbours in the box
--   torus     other TPUs: an axis of the mesh gets axes of the torus, or factors of them where that is allowed
--   slices    or processes: each is ordered by itself; along each axis of the mesh they follow each other
--
-- GPUs are ordered by id, CPUs keep the order of the list.
-- Source: jax-ml/jax, jax/_src/mesh_utils.py of the releases 0.12.0.1 (the default) and 0.10.2, parameter `version`:
-- before 0.12 the kinds "TPU v5" and "TPU v5e" had no rings, and the cores of a TPU7 were an axis like any other.
-- custom_mesh and optimize_mesh_for_tpu_v6e: AI-Hypercomputer/maxtext at commit e591f30c,
-- src/maxtext/utils/max_utils.py (create_custom_device_mesh, reshape_mesh_to_rings, optimize_mesh_for_tpu_v6e).
-- Not as there: MaxText ignores a custom_mesh in one slice whose axes are whole; here it is refused. JAX 0.10.2 forgets
-- prime factors of some sizes (14 = 2 x 7), and fails.
-- Recorded: 53 cases of 1 to 64 ranks, 9 of them refused: tests/golden/jax_mesh.json.
-- Recorded: nothing. MaxText's rings follow its source; a second program agrees on random devices:
-- tests/golden/models/jax_mesh.lua.

local arithmetic, piece = ...
local machine, maxtext = piece "devices", piece "maxtext"
local devices_of, extent, box_of, steps = machine.devices_of, machine.extent, machine.box_of, machine.steps

local function refuse(...) error(string.format(...), 2) end

local function reversed(list)
  local back = {}
  for i = #list, 1, -1 do back[#back + 1] = list[i] end
  return back
end

-- Replace each place by `count` places at distances of `step`: this adds an axis that varies fastest.
local function spread(places, count, step)
  local more = {}
  for _, place in ipairs(places) do
    for i = 0, count - 1 do more[#more + 1] = place + i * step end
  end
  return more
end

-- Rings ---------------------------------------------------------------------------

-- Return a ring through a box of even height: along its first row, back and forth through the other rows without their
-- first column, and back through this column. Places are numbered row by row; each has the same number of cores.
local function ring(width, height, cores)
  local places = {}
  for y = 0, height - 1 do
    for x = y == 0 and 0 or 1, width - 1 do
      places[#places + 1] = (y * width + (y % 2 == 0 and x or width - x)) * cores
    end
  end
  for y = height - 1, 1, -1 do places[#places + 1] = y * width * cores end
  return spread(places, cores, 1)
end

-- Return a ring through two boxes, one above the other: through the lower box, then backwards through the upper one.
local function double_ring(width, height)
  local places = ring(width, height, 1)
  for i = #places, 1, -1 do places[#places + 1] = places[i] + width * height end
  return places
end

-- Return the devices, in which each #places consecutive devices are in the order of `places`.
local function in_order(devices, places)
  local order = {}
  for from = 1, #devices, #places do
    for _, place in ipairs(places) do order[#order + 1] = devices[from + place] end
  end
  return order
end

-- Sort by coordinates, x fastest; also return the size of the box as text, counted from 0 as JAX does.
local function in_rows(devices)
  local sorted = table.pack(table.unpack(devices))
  local _, high = extent(devices)
  table.sort(sorted, function(a, b)
    for i = 3, 1, -1 do
      if a.coords[i] ~= b.coords[i] then return a.coords[i] < b.coords[i] end
    end
    return false
  end)
  return sorted, string.format("%d x %d x %d", high[1] + 1, high[2] + 1, high[3] + 1)
end

local function tray_of_cores(devices, shape)
  if #devices ~= 8 and shape[#shape] ~= 8 then return devices end
  return in_order(devices, ring(2, 2, 2))
end

local function tray_of_chips(devices) return #devices == 4 and in_order(devices, ring(2, 2, 1)) or nil end

local function flat_box(devices, shape)
  if #devices > 16 then return nil end
  local sorted, box = in_rows(devices)
  if #devices == 4 and box == "2 x 2 x 1" then return in_order(sorted, ring(2, 2, 1)) end
  if #devices == 8 and box == "2 x 2 x 2" then return (box_of(devices)) end
  if #devices == 8 then return in_order(sorted, ring(4, 2, 1)) end
  local one_axis = math.max(table.unpack(shape)) == #devices
  return #devices == 16 and box == "4 x 4 x 1" and one_axis and in_order(sorted, ring(4, 4, 1)) or nil
end

local function cube(devices)
  if #devices ~= 8 then return nil end
  local sorted, box = in_rows(devices)
  return box == "2 x 2 x 2" and in_order(sorted, double_ring(2, 2)) or nil
end

local function trays_above_each_other(devices)
  if #devices % 8 ~= 0 or #devices > 32 then return nil end
  local _, torus = box_of(devices)
  return torus[1].size <= 2 and torus[2].size <= 2 and in_order(devices, ring(2, 2, 2)) or nil
end

-- kind of device -> function(devices, shape of the mesh): their order, or nil if it has no ring
local rings = {
  ["TPU v2"] = tray_of_cores, ["TPU v3"] = tray_of_cores, ["TPU v4 lite"] = tray_of_chips,
  ["TPU v5 lite"] = flat_box, ["TPU v6 lite"] = flat_box, ["TPU v5p"] = cube,
  ["TPU7"] = trays_above_each_other, ["TPU7x"] = trays_above_each_other, ["TPU8i"] = tray_of_chips,
}

-- The torus -----------------------------------------------------------------------

-- Shapes (without sizes of 1) in which the devices of a process can be contiguous, by torus.
local contiguous = {
  ["2 x 2 x 1"] = { "2 x 2" }, ["2 x 2 x 4"] = { "4 x 4" }, ["4 x 4 x 4"] = { "16 x 4" },
  ["4 x 8 x 8"] = { "64 x 4", "4 x 64" }, ["8 x 8 x 8"] = { "64 x 8" }, ["8 x 16 x 16"] = { "256 x 8", "8 x 256" },
}

-- Return the torus for such a mesh. If y and z have equal sizes, they are swapped.
local function contiguous_torus(torus, shape)
  local x, y, z, core = table.unpack(torus)
  local said, sizes = string.format("%d x %d x %d", x.size, y.size, z.size), {}
  for _, size in ipairs(shape) do
    if size > 1 then sizes[#sizes + 1] = size end
  end
  local wanted, shapes = table.concat(sizes, " x "), core.size == 1 and contiguous[said] or {}
  for _, would in ipairs(shapes) do
    if would == wanted then return y.size == z.size and { x, z, y, core } or torus end
  end
  refuse("mesh_shape %s has no contiguous submeshes on a torus of %s; %s would do", wanted, said,
    shapes[1] and "mesh_shape " .. table.concat(shapes, " or ") or "contiguous_submeshes=false")
end

-- Return numbers by which cuts are compared, the most important first: ranks along whole axes of the torus; the number
-- of such axes; if axes differ in speed, the speed of the fastest axis of the cut, then of all its axes; ranks along
-- axes that earlier cuts use, too. An axis of size 1 counts only for the first cut.
local function merits(torus, free, cut)
  local whole, count, slowest, slow, in_use = 1, 0, 9, 0, 1
  for i, part in ipairs(cut) do
    if part == torus[i].size then whole = whole * part end
    if part == torus[i].size and part > 1 then count = count + 1 end
    if torus.slowness and (part > 1 or torus[i].size == 1 and free.untouched) then
      slowest, slow = math.min(slowest, torus.slowness[i]), slow + torus.slowness[i]
    end
    if free[i] < torus[i].size then in_use = in_use * part end
  end
  return { whole, count, -slowest, -slow, in_use }
end

local function better(a, b)
  for i = 1, #a do
    if a[i] ~= b[i] then return a[i] > b[i] end
  end
  return false
end

-- Cut an axis of the mesh out of the free part of the torus. Return the size that the cut takes of each axis of the
-- torus: all that is free or 1, or with `split` any divisor. Of equally good cuts, return the one that takes more of
-- the earlier axes; nil if no cut fits.
local function best_cut(torus, free, size, split)
  local best, best_merits, cut = nil, nil, {}
  local function try(i, rest)
    if i > #torus then
      local m = rest == 1 and merits(torus, free, cut)
      if m and (not best or better(m, best_merits)) then best, best_merits = table.pack(table.unpack(cut)), m end
      return
    end
    for part = free[i], 1, -1 do
      local allowed = split and free[i] % part == 0 or part == free[i] or part == 1
      if allowed and rest % part == 0 then
        cut[i] = part
        try(i + 1, rest // part)
      end
    end
  end
  try(1, size)
  return best
end

-- Cut the axes of the mesh, the last one first, and return the cut of each axis. If no cut fits an axis, return nil,
-- this axis, and the free sizes of the torus.
local function cuts_of(torus, shape, split)
  local free, cuts = { untouched = true }, {}
  for i, axis in ipairs(torus) do free[i] = axis.size end
  for axis = #shape, 1, -1 do
    local cut = best_cut(torus, free, shape[axis], split)
    if not cut then return nil, axis, free end
    for i, part in ipairs(cut) do free[i] = free[i] // part end
    cuts[axis], free.untouched = cut, false
  end
  return cuts
end

local function on_torus(devices, shape, p)
  local places, torus = box_of(devices)
  if p.contiguous_submeshes then torus = contiguous_torus(torus, shape) end
  if p.version ~= "0.10.2" and (places[1].kind == "TPU7" or places[1].kind == "TPU7x") then
    torus.slowness = { 1, 2, 3, 0 } -- of x, y, z and the cores of a chip
  end
  local cuts, axis, free = cuts_of(torus, shape, false)
  torus.slowness = nil -- does not count if axes are split
  if not cuts and not p.allow_split_physical_axes then
    refuse("mesh_shape: axis %d of size %d is not a product of whole axes of the torus, of which %s is free; "
      .. "allow_split_physical_axes=true would do", axis - 1, shape[axis], table.concat(free, " x "))
  end
  cuts = cuts or cuts_of(torus, shape, true)
  -- if several axes of the mesh share an axis of the torus, the later axes of the mesh get neighbours
  local flat, rest = { 0 }, {}
  for i, along in ipairs(torus) do rest[i] = along.size end
  for _, cut in ipairs(cuts) do
    for i, part in ipairs(cut) do
      rest[i] = rest[i] // part
      flat = spread(flat, part, torus[i].step * rest[i])
    end
  end
  return in_order(places, flat)
end

-- Slices, or processes ------------------------------------------------------------

local function ordered(devices, shape, p)
  local last = devices[#devices]
  if p.custom_mesh then
    local whole = { version = p.version, contiguous_submeshes = p.contiguous_submeshes }
    return in_order(ordered(devices, { 16, 16 }, whole), maxtext.rings(p.custom_mesh))
  end
  local order = rings[last.kind] and rings[last.kind](devices, shape)
  if order and #order == 8 and maxtext.turns(p, last.kind, shape, extent(devices)) then
    order = in_order(order, { 0, 1, 2, 3, 7, 6, 5, 4 })
  end
  if order or last.platform ~= "tpu" and last.platform ~= "gpu" then return order or devices end
  if last.platform == "tpu" then return on_torus(devices, shape, p) end
  table.sort(devices, function(a, b) return a.id < b.id end)
  return devices
end

-- Return a list of the devices of each slice or process.
local function granules_of(devices, p)
  local key, keys, members = p.process_is_granule and "process_index" or "slice_index", {}, {}
  for _, device in ipairs(devices) do
    local granule = device[key]
    if not granule then refuse("device %d has no slice_index; process_is_granule=true would do", device.id) end
    if not members[granule] then keys[#keys + 1], members[granule] = granule, {} end
    table.insert(members[granule], device)
  end
  if p.should_sort_granules_by_key then table.sort(keys) end
  for i, granule in ipairs(keys) do keys[i] = members[granule] end
  return keys
end

-- Return the ranks of the whole mesh as a flat list. Along each axis, the index inside a granule varies faster than the
-- granule.
local function order_of(devices, shape, dcn, p)
  local granules, all, flat = dcn and granules_of(devices, p) or { devices }, {}, { 0 }
  local inside, size = steps(shape)
  local outside, count = steps(dcn or {})
  if #granules ~= count then
    refuse("dcn_mesh_shape %s is for %d slices or processes, and there are %d; sizes that multiply to %d would do",
      table.concat(dcn, " x "), count, #granules, #granules)
  end
  for i, granule in ipairs(granules) do
    if #granule ~= size then
      refuse("mesh_shape %s is for %d devices, and slice or process %d has %d; %d in each would do",
        table.concat(shape, " x "), size, i - 1, #granule, size)
    end
    for _, device in ipairs(ordered(granule, shape, p)) do all[#all + 1] = device.rank end
  end
  for i = 1, #shape do
    if dcn then flat = spread(flat, dcn[i], outside[i] * size) end
    flat = spread(flat, shape[i], inside[i])
  end
  return in_order(all, flat)
end

-- Axes and groups -----------------------------------------------------------------

local function names_of(what, value)
  if type(value) == "string" then return string.split(value, "-") end
  if type(value) ~= "table" then refuse("%s is a %s; names such as data-model would do", what, type(value)) end
  for _, name in ipairs(value) do
    if type(name) ~= "string" then refuse("%s holds a %s; names such as data-model would do", what, type(name)) end
  end
  return value
end

local function axes_of(p)
  local shape = p.mesh_shape or { -1 }
  if p.axis_names then return p.axis_names, shape end
  local axes = {}
  for i = 1, #shape do axes[i] = "axis_" .. i - 1 end
  return axes, shape
end

-- Return the grid of the mesh over ranks in order, the size of each axis by name, and the sizes inside a granule.
local function grid_of(world, axes, shape, dcn)
  if #axes ~= #shape then
    refuse("axis_names has %d names for the %d axes of mesh_shape; a name for each would do", #axes, #shape)
  end
  if dcn and #dcn ~= #shape then
    refuse("dcn_mesh_shape has %d sizes for the %d axes of mesh_shape; a size for each would do", #dcn, #shape)
  end
  if #shape == 0 then refuse "mesh_shape is empty; a size for each axis would do" end
  local sizes, inside = {}, {}
  for i, axis in ipairs(axes) do
    local granules = dcn and dcn[i] or 1
    if granules < 1 then refuse("dcn_mesh_shape: axis '%s' has size %d; 1 or more would do", axis, granules) end
    if shape[i] < 1 and shape[i] ~= -1 then
      refuse("mesh_shape: axis '%s' has size %d; 1 or more, or -1 for what remains, would do", axis, shape[i])
    end
    sizes[axis] = shape[i] == -1 and fill or shape[i] * granules
  end
  local g = grid(world, axes, sizes, "slowest first")
  for i, axis in ipairs(axes) do
    local granules = dcn and dcn[i] or 1
    sizes[axis] = g[axis]
    inside[i] = g[axis] // granules
    if inside[i] * granules ~= g[axis] then
      refuse("dcn_mesh_shape: %d does not divide the %d ranks that remain for axis '%s'; %s would do", granules,
        g[axis], axis, arithmetic.nearest(granules, g[axis]))
    end
  end
  return g, sizes, inside
end

-- Queries -------------------------------------------------------------------------

-- Return the names of the requested axes, the slowest first; by default of all axes.
local function asked(q, p) return q.axis_name and names_of("axis_name", q.axis_name) or axes_of(p) end

local queries = {
  shape = function(s, _, p)
    local sizes = axes_of(p)
    for i, axis in ipairs(sizes) do sizes[i] = s.plan:family(axis).size end
    return sizes
  end,
  coordinate = function(s, _, p)
    local positions = axes_of(p)
    for i, axis in ipairs(positions) do
      if not s[axis] then return nil end
      positions[i] = s[axis].position
    end
    return positions
  end,
  device_order = function(s, _, p) -- a flat list: each axis replaces a rank by the rank's group along the axis
    local order
    for _, axis in ipairs((axes_of(p))) do
      local family, more = s.plan:family(axis), {}
      for _, first in ipairs(order or { family:ranks(0)[1] }) do
        for _, rank in ipairs(family:ranks(family:locate(first))) do more[#more + 1] = rank end
      end
      order = more
    end
    return order
  end,
  axis_size = function(s, q, p)
    local size = 1
    for _, axis in ipairs(asked(q, p)) do size = size * s.plan:family(axis).size end
    return size
  end,
  axis_index = function(s, q, p)
    local index = 0
    for _, axis in ipairs(asked(q, p)) do
      if not s[axis] then return nil end
      index = index * s[axis].size + s[axis].position
    end
    return index
  end,
}

return recipe {
  doc = "JAX's mesh_utils: a mesh over devices in an order that suits their network",
  params = {
    version = param.text("0.12.0.1", "of JAX: 0.12.0.1 or 0.10.2"),
    mesh_shape = param.list(nil, "size of each axis, slowest first; -1: what remains; left out: one axis", "shape"),
    axis_names = param.names(nil, "names of the axes: data-model; left out: axis_0, axis_1, ...", "axes"),
    groups = param.any(nil, "groups along several axes, the first one slowest: data-model,model-data"),
    devices = param.any(nil, "a record for each rank, as JAX lists its devices: id, platform, device_kind, coords, "
      .. "core_on_chip, process_index, slice_index; left out: ranks in order"),
    contiguous_submeshes = param.flag(false, "place the devices of a process side by side; few meshes allow it"),
    allow_split_physical_axes = param.flag(false, "several axes of the mesh may share an axis of the torus", "split"),
    dcn_mesh_shape = param.list(nil, "slices or processes along each axis; mesh_shape is of one of them", "dcn"),
    process_is_granule = param.flag(false, "dcn_mesh_shape counts processes, not slices"),
    custom_mesh = param.text(nil, "MaxText's rings in slices of 16 x 16: hybrid_ring_64x4 or hybrid_ring_32x8"),
    optimize_mesh_for_tpu_v6e = param.flag(false, "MaxText's other ring on the 2 x 4 chips of a TPU v6e"),
    should_sort_granules_by_key = param.flag(true, "order slices by their numbers; false: by their devices"),
  },
  build = function(world, p)
    if p.version ~= "0.12.0.1" and p.version ~= "0.10.2" then
      refuse("version '%s' is unknown; '0.12.0.1' or '0.10.2' would do", p.version)
    end
    local axes, shape = axes_of(p)
    local dcn = p.dcn_mesh_shape
    if dcn and not p.devices then refuse "dcn_mesh_shape needs devices; a record for each rank would do" end
    if dcn and p.contiguous_submeshes then
      refuse "contiguous_submeshes excludes dcn_mesh_shape; contiguous_submeshes=false would do"
    end
    local mesh, sizes, inside = grid_of(world, axes, shape, dcn)
    if p.custom_mesh then maxtext.check(p, inside) end
    if p.devices then
      local order = order_of(devices_of(world, p.devices, p), inside, dcn, p)
      mesh = grid(world:order(order), axes, sizes, "slowest first")
    end

    local t, taken = topology(world), {}
    for _, axis in ipairs(axes) do t[axis], taken[axis] = mesh(axis), true end
    local groups = p.groups or {}
    if type(groups) == "string" then groups = string.split(groups, ",") end
    if type(groups) ~= "table" then refuse("groups is a %s; data-model,model-data would do", type(groups)) end
    for _, group in ipairs(groups) do
      local names = names_of("groups", group)
      local name = table.concat(names, "_")
      t[name], taken[name] = mesh:ordered(reversed(names)), true
    end
    if not taken.mesh then t.mesh = mesh end
    return t
  end,
  queries = queries,
  arguments = { "axis_name" },
}
