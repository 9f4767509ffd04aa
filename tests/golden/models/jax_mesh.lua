-- SPDX-License-Identifier: MIT
--
-- MaxText's meshes of rings (custom_mesh), in slices of 16 x 16 TPUs, and its ring of a TPU v6e of 8 chips. What JAX
-- itself does is recorded in tests/golden/jax_mesh.json.

local ranks = require "models.ranks"
local shuffled = ranks.shuffled

-- Devices of slices of width x height, row by row, with ids in any order.
local function boxes(kind, width, height, slices)
  local list, ids = {}, {}
  for id = 0, width * height * #slices - 1 do ids[id + 1] = id end
  if math.random(3) > 1 then shuffled(ids) end
  for _, slice in ipairs(slices) do
    for i = 0, width * height - 1 do
      list[#list + 1] = { id = ids[#list + 1], device_kind = kind, coords = { i % width, i // width, 0 },
                          slice_index = slice }
    end
  end
  return list
end

local function draw()
  if math.random(4) > 1 then
    local wide = math.random(2) == 1
    local shape = { 8, 1 }
    if math.random(2) == 1 then shape = math.random(4) == 1 and { 2, 4 } or { 1, 8 } end
    return 8, {
      devices = boxes("TPU v6 lite", wide and 4 or 2, wide and 2 or 4, { 0 }), mesh_shape = shape,
      optimize_mesh_for_tpu_v6e = math.random(4) > 1, allow_split_physical_axes = math.random(4) == 1,
    }
  end
  local name, other = "hybrid_ring_64x4", "hybrid_ring_32x8"
  if math.random(2) == 1 then name, other = other, name end
  local sizes = (math.random(9) > 1 and name or other) == "hybrid_ring_64x4" and { 64, 4, 1 } or { 32, 8, 1 }
  if math.random(6) == 1 then sizes[3] = nil elseif math.random(4) == 1 then sizes[4] = 1 end
  local slices = shuffled(math.random(2) == 1 and { 0 } or { 0, 1 })
  local dcn = #slices > 1 and { 1, 1, 1, 1 } or nil
  for i = dcn and #sizes + 1 or 9, 4 do dcn[i] = nil end
  if dcn then dcn[math.random(#sizes)] = 2 end
  return 256 * #slices, {
    custom_mesh = name, devices = boxes(ranks.one_of { "TPU v5 lite", "TPU v6 lite" }, 16, 16, slices),
    mesh_shape = shuffled(sizes), dcn_mesh_shape = dcn, allow_split_physical_axes = math.random(5) > 1,
  }
end

-- The device of a slice at a place of the mesh: rings of `size` chips, two rows high, row of rings by row of rings.
local function of_rings(size, place)
  local ring, at, across = place // size, place % size, 32 // size
  local row, column = 2 * (ring // across), ring % across * (size // 2)
  if at < size // 2 then return row * 16 + column + at end
  return (row + 1) * 16 + column + size - 1 - at
end

-- The device at a place of the one ring: JAX's goes back through the second half; MaxText's turns that of 2 x 4 around.
local function of_one(p, place)
  local tall = p.devices[8].coords[1] == 1
  local turned = p.optimize_mesh_for_tpu_v6e and tall and not p.allow_split_physical_axes and p.mesh_shape[1] ~= 2
  return (place < 4 or turned) and place or 11 - place
end

local function families(world, p)
  local shape, dcn = p.mesh_shape, p.dcn_mesh_shape or {}
  local small = p.custom_mesh == "hybrid_ring_64x4" and 4 or 8
  if p.custom_mesh then
    local large, single = false, false
    for _, size in ipairs(shape) do large, single = large or size == 256 // small, single or size == 1 end
    if not large or not single then return nil, "the mesh has other sizes" end
    if world == 256 and not p.allow_split_physical_axes then return nil, "MaxText ignores it" end
  end
  local slices = {}
  for i = 1, world, 256 do slices[p.devices[i].slice_index] = i end
  -- the rank at a place of the mesh, from the coordinates along its axes: of the slice, and in it
  local function rank_at(at)
    local slice, place = 0, 0
    for axis, size in ipairs(shape) do
      slice = slice * (dcn[axis] or 1) + at["axis_" .. axis - 1] // size
      place = place * size + at["axis_" .. axis - 1] % size
    end
    place = p.custom_mesh and of_rings(small, place) or of_one(p, place)
    return p.devices[slices[slice] + place].id
  end
  local order, sizes, made = {}, {}, {}
  for axis, size in ipairs(shape) do
    table.insert(order, 1, "axis_" .. axis - 1) -- the last one fastest
    sizes[order[1]] = size * (dcn[axis] or 1)
  end
  for _, axis in ipairs(order) do
    made[axis] = ranks.groups(order, sizes, axis)
    for _, group in ipairs(made[axis]) do
      for i, rank in ipairs(group) do group[i] = rank_at(ranks.coords(order, sizes, rank)) end
    end
  end
  return made
end

return { draw = draw, families = families }
