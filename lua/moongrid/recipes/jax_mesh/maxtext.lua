-- MaxText's options that change JAX's order of a slice: custom_mesh and optimize_mesh_for_tpu_v6e.

local function refuse(...) error(string.format(...), 2) end

-- The width of a ring of a custom mesh; rings are 2 high, in a slice of 16 x 16.
local widths = { hybrid_ring_64x4 = 2, hybrid_ring_32x8 = 4 }

-- Refuse a custom mesh that MaxText refuses or ignores. `shape` is the mesh of a slice.
local function check(p, shape)
  local width = widths[p.custom_mesh]
  if not width then
    refuse("custom_mesh '%s' is unknown; 'hybrid_ring_64x4' or 'hybrid_ring_32x8' would do", p.custom_mesh)
  end
  if not p.devices then refuse "custom_mesh needs devices; a record for each rank would do" end
  if not p.dcn_mesh_shape and not p.allow_split_physical_axes then
    refuse "custom_mesh: MaxText ignores it in one slice whose axes are whole; allow_split_physical_axes=true would do"
  end
  local sizes = { [1] = 0, [2 * width] = 0, [128 // width] = 0 }
  for _, size in ipairs(shape) do sizes[size] = (sizes[size] or 9) + 1 end
  local ones = sizes[1]
  if ones == 0 or sizes[2 * width] ~= 1 or sizes[128 // width] ~= 1 or ones + 2 ~= #shape then
    refuse("mesh_shape %s is not that of custom_mesh %s; %d, %d and 1 in any order would do",
      table.concat(shape, " x "), p.custom_mesh, 128 // width, 2 * width)
  end
end

-- Return the places of a 16 x 16 mesh, ring by ring: each ring goes along a row and back along the next one.
local function rings(custom_mesh)
  local places, width = {}, widths[custom_mesh]
  for corner = 0, 255, 32 do
    for from = corner, corner + 15, width do
      for i = 0, width - 1 do places[#places + 1] = from + i end
      for i = width - 1, 0, -1 do places[#places + 1] = from + 16 + i end
    end
  end
  return places
end

-- Return whether optimize_mesh_for_tpu_v6e reverses the second half of the ring of these devices.
local function turns(p, kind, shape, low, high)
  if not p.optimize_mesh_for_tpu_v6e or p.dcn_mesh_shape or p.allow_split_physical_axes then return false end
  local whole = math.max(table.unpack(shape)) == 8
  return whole and kind == "TPU v6 lite" and high[1] - low[1] == 1 and high[2] - low[2] == 3 and high[3] == low[3]
end

return { check = check, rings = rings, turns = turns }
