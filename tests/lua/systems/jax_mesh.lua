-- SPDX-License-Identifier: MIT
--
-- What systems_spec.lua tries on the recipe jax_mesh; it tells what the fields are.

local none = (...).none -- as an override: the parameter is left out

-- A record for each of n devices; `more(i)` has what they say besides.
local function devices(n, more)
  local list = {}
  for i = 0, n - 1 do
    list[i + 1] = more and more(i) or {}
    list[i + 1].id = list[i + 1].id or i
  end
  return list
end

-- Chips in a box of x times y times anything, of one kind.
local function chips(n, x, y, kind, step)
  return devices(n, function(i)
    return { device_kind = kind or "TPU v4", coords = { i % x * (step or 1), i // x % y, i // (x * y) } }
  end)
end

-- As `devices`, but the first record is another one.
local function first(record)
  local list = devices(8)
  list[1] = record
  return list
end

local function slices(sizes)
  local list = {}
  for slice, n in ipairs(sizes) do
    for _ = 1, n do list[#list + 1] = { slice_index = slice } end
  end
  return list
end

local halves = slices { 4, 4 }

return {
  refused = {
    { "an unknown version", { version = "0.11" }, "version '0.11' is unknown; '0.12.0.1' or '0.10.2' would do",
      would = { { version = "0.12.0.1" }, { version = "0.10.2" } } },
    { "another world (jx-006)", { mesh_shape = { 3, 4 }, axis_names = "a-b" },
      "b 4 x a 3 = 12 does not make the 8 ranks; nearest: a 2, or a world of 12 ranks", would = { { mesh_shape = { 2, 4 } } } },
    { "another world of slices (jx-045)", { mesh_shape = { 4, 2 }, dcn_mesh_shape = { 2, 1 }, devices = halves },
      words = { "axis_1 2 x axis_0 8 = 16 does not make the 8 ranks" }, would = { { mesh_shape = { 2, 2 } } } },
    { "two sizes to infer", { mesh_shape = { -1, -1 } }, words = { "'axis_1' and 'axis_0' are both to be inferred" },
      would = { { mesh_shape = { -1, 2 } } } },
    { "a size of 0", { mesh_shape = { 0, 8 } }, "mesh_shape: axis 'axis_0' has size 0; 1 or more, or -1 for what remains, would do",
      would = { { mesh_shape = { 1, 8 } }, { mesh_shape = { -1, 8 } } } },
    { "no axes", { mesh_shape = {} }, "mesh_shape is empty; a size for each axis would do", would = { { mesh_shape = none } } },
    { "fewer names than axes", { mesh_shape = { 2, 4 }, axis_names = "data" },
      "axis_names has 1 names for the 2 axes of mesh_shape; a name for each would do", would = { { axis_names = "data-model" } } },
    { "a name twice", { mesh_shape = { 2, 4 }, axis_names = { "data", "data" } }, "parameter 'axis_names' is a list of names, each once (tp-dp), not {data,data}",
      would = { { axis_names = { "data", "model" } } } },
    { "names that are none", { axis_names = 5 }, "parameter 'axis_names' is a list of names, each once (tp-dp), not 5",
      would = { { mesh_shape = { 2, 4 }, axis_names = "data-model" } } },
    { "a name that is none", { mesh_shape = { 8 }, axis_names = { 5 } }, "parameter 'axis_names' is a list of names, each once (tp-dp), not {5}" },
    { "a name with a blank", { axis_names = "a b" }, words = { "not 'a b'" } },
    { "groups that are none", { groups = 5 }, "groups is a number; data-model,model-data would do",
      would = { { mesh_shape = { 2, 4 }, axis_names = "data-model", groups = "data-model,model-data" } } },
    { "groups of numbers", { groups = { { 5 } } }, "groups holds a number; names such as data-model would do" },
    { "groups along an axis that is not there", { groups = "axis_0-axis_1" }, words = { "2 dims asked of a grid that has 1" } },
    { "groups along an axis of another name", { groups = "axis_1" }, words = { "unknown dim 'axis_1'; nearest is 'axis_0'" } },
    { "groups with the name of an axis", { groups = "axis_0" }, words = { "'axis_0' is in the topology already" } },

    { "an unknown custom mesh", { custom_mesh = "hybrid_ring_16x16" },
      "custom_mesh 'hybrid_ring_16x16' is unknown; 'hybrid_ring_64x4' or 'hybrid_ring_32x8' would do" },
    { "a custom mesh of ranks in order", { custom_mesh = "hybrid_ring_64x4" },
      "custom_mesh needs devices; a record for each rank would do" },
    { "a custom mesh that MaxText ignores", { custom_mesh = "hybrid_ring_64x4", devices = devices(8) },
      "custom_mesh: MaxText ignores it in one slice whose axes are whole; allow_split_physical_axes=true would do" },
    { "a custom mesh of other sizes", { custom_mesh = "hybrid_ring_64x4", mesh_shape = { 1, 32, 8 }, split = true,
                                        devices = chips(256, 16, 16, "TPU v5 lite") },
      "mesh_shape 1 x 32 x 8 is not that of custom_mesh hybrid_ring_64x4; 64, 4 and 1 in any order would do", world = 256,
      would = { { mesh_shape = { 1, 64, 4 } }, { mesh_shape = { 4, 1, 64 } } } },
    { "a custom mesh without a size of 1", { custom_mesh = "hybrid_ring_32x8", mesh_shape = { 32, 8 }, split = true,
                                             devices = chips(256, 16, 16, "TPU v5 lite") },
      "mesh_shape 32 x 8 is not that of custom_mesh hybrid_ring_32x8; 32, 8 and 1 in any order would do", world = 256,
      would = { { mesh_shape = { 32, 8, 1 } }, { mesh_shape = { 32, 1, 1, 8 } } } },

    { "devices that are not a list", { devices = "8" }, "devices has 0 records for the 8 ranks; a list with a record for each rank would do" },
    { "fewer devices than ranks (jx-035)", { devices = devices(4) },
      "devices has 4 records for the 8 ranks; a list with a record for each rank would do", would = { { devices = devices(8) } } },
    { "a device that is not a record", { devices = first(0) }, "devices: item 0 is a number; { id = 0 } would do",
      would = { { devices = first { id = 0 } } } },
    { "an unknown attribute", { devices = first { coord = { 0, 0, 0 } } },
      "devices: item 0 has 'coord'; id, platform, device_kind, coords, core_on_chip, process_index and slice_index are known" },
    { "two coordinates", { devices = first { coords = { 0, 0 } } },
      "devices: coords of item 0 is a table; a list of three integers would do" },
    { "coordinates between two", { devices = first { coords = { 0, 0.5, 0 } } },
      "devices: coords of item 0 is a table; a list of three integers would do" },
    { "a slice by name", { devices = first { slice_index = "a" } }, "devices: slice_index of item 0 is text; an integer would do" },
    { "an id outside", { devices = first { id = 8 } }, "devices: item 0 has id 8; 0 to 7 would do", would = { { devices = first { id = 0 } } } },
    { "a negative id", { devices = first { id = -1 } }, "devices: item 0 has id -1; 0 to 7 would do" },
    { "an id twice", { devices = first { id = 3 } }, "devices: items 0 and 3 have id 3; different ids would do" },

    { "a TPU without coordinates", { devices = devices(8, function() return { platform = "tpu" } end) },
      "device 0 is a TPU without coords; its x, y and z would do", would = { { devices = chips(8, 2, 2) } } },
    { "both cores of a chip that is one device", world = 2,
      params = { devices = devices(2, function(i) return { device_kind = "TPU v4", coords = { 0, 0, 0 }, core_on_chip = i } end) },
      message = "devices of kind 'TPU v4' are on 2 cores of a chip; a device for each chip, core_on_chip 0, would do",
      would = { { devices = chips(2, 2, 1) },
                { devices = devices(2, function(i) return { device_kind = "TPU v5p", coords = { 0, 0, 0 }, core_on_chip = i } end) } } },
    { "a box with holes (jx-036)", { devices = chips(8, 2, 2, nil, 2) },
      "8 devices do not fill their box of 3 x 2 x 2 chips with 1 core each; coords without a gap would do",
      would = { { devices = chips(8, 2, 2) } } },
    { "two devices in one place", { devices = (function()
        local list = chips(8, 2, 2)
        list[4].coords = { 0, 0, 0 }
        return list
      end)() }, "devices 0 and 3 are in one place; different coords would do" },
    { "coordinates at the ends of all integers", { devices = devices(8, function(i)
        return { coords = { i == 0 and math.mininteger or math.maxinteger, 0, 0 } }
      end) }, words = { "do not fill their box" } },
    { "an axis that is not a product of whole axes (jx-030)", { mesh_shape = { 8, 8 }, devices = chips(64, 4, 4) }, world = 64,
      message = "mesh_shape: axis 1 of size 8 is not a product of whole axes of the torus, of which 4 x 4 x 4 x 1 is free; "
        .. "allow_split_physical_axes=true would do", would = { { allow_split_physical_axes = true } } },
    { "one that is none of what others leave (jx-027)", { mesh_shape = { 2, 4, 8 }, devices = chips(64, 8, 4) }, world = 64,
      message = "mesh_shape: axis 1 of size 4 is not a product of whole axes of the torus, of which 8 x 1 x 1 x 1 is free; "
        .. "allow_split_physical_axes=true would do", would = { { allow_split_physical_axes = true } } },
    { "a mesh without contiguous submeshes (jx-034)", world = 16, params = { mesh_shape = { 4, 2, 2 }, devices = chips(16, 2, 2),
                                                                             contiguous_submeshes = true },
      message = "mesh_shape 4 x 2 x 2 has no contiguous submeshes on a torus of 2 x 2 x 4; mesh_shape 4 x 4 would do",
      would = { { mesh_shape = { 4, 4 } }, { mesh_shape = { 4, 1, 4 } }, { contiguous_submeshes = false } } },
    { "a torus without contiguous submeshes", { mesh_shape = { 2, 4 }, devices = chips(8, 2, 2), contiguous_submeshes = true },
      "mesh_shape 2 x 4 has no contiguous submeshes on a torus of 2 x 2 x 2; contiguous_submeshes=false would do",
      would = { { contiguous_submeshes = false } } },

    { "slices without devices", { dcn_mesh_shape = { 2 } }, "dcn_mesh_shape needs devices; a record for each rank would do",
      would = { { devices = halves } } },
    { "contiguous submeshes of slices", { dcn_mesh_shape = { 2 }, devices = halves, contiguous_submeshes = true },
      "contiguous_submeshes excludes dcn_mesh_shape; contiguous_submeshes=false would do", would = { { contiguous_submeshes = false } } },
    { "fewer sizes of slices than axes", { mesh_shape = { 2, 2 }, dcn_mesh_shape = { 2 }, devices = halves },
      "dcn_mesh_shape has 1 sizes for the 2 axes of mesh_shape; a size for each would do", would = { { dcn_mesh_shape = { 2, 1 } } } },
    { "no slices along an axis", { mesh_shape = { 2, 2 }, dcn_mesh_shape = { 2, 0 }, devices = halves },
      "dcn_mesh_shape: axis 'axis_1' has size 0; 1 or more would do", would = { { dcn_mesh_shape = { 2, 1 } } } },
    { "slices that do not divide what remains", { mesh_shape = { -1, 2 }, dcn_mesh_shape = { 3, 1 }, devices = halves },
      "dcn_mesh_shape: 3 does not divide the 4 ranks that remain for axis 'axis_0'; 2 or 4 would do" },
    { "another number of slices", { mesh_shape = { 2, 1 }, dcn_mesh_shape = { 4, 1 }, devices = halves },
      "dcn_mesh_shape 4 x 1 is for 4 slices or processes, and there are 2; sizes that multiply to 2 would do",
      would = { { mesh_shape = { 2, 2 }, dcn_mesh_shape = { 2, 1 } } } },
    { "slices of two sizes", { mesh_shape = { 2, 2 }, dcn_mesh_shape = { 2, 1 }, devices = slices { 4, 3, 0 } }, world = 7,
      words = { "does not make the 7 ranks" } },
    { "slices of two sizes, in all as many", { mesh_shape = { 2, 2 }, dcn_mesh_shape = { 2, 1 }, devices = slices { 5, 3 } },
      "mesh_shape 2 x 2 is for 4 devices, and slice or process 0 has 5; 4 in each would do", would = { { devices = halves } } },
    { "devices without slices (jx-044)", { dcn_mesh_shape = { 1 }, devices = devices(8) },
      "device 0 has no slice_index; process_is_granule=true would do", would = { { process_is_granule = true } } },

    { "a question about an axis that is none", ask = "axis_size", q = { axis_name = 5 },
      message = "axis_name is a number; names such as data-model would do" },
  },
  layouts = {
    { mesh_shape = { -1, 2 }, axis_names = "data-model", groups = "data-model,model-data" }, {}, { shape = { -1, 1, 4 } },
    { mesh_shape = { 2, 2, -1 }, axes = { "pp", "dp", "tp" }, groups = { { "pp", "tp" }, "dp-tp" } },
    { mesh_shape = { -1 }, axes = "all", split = true },
  },
  asks = { { {} }, axis_size = { {}, { axis_name = "data" }, { axis_name = { "model", "data" } } },
           axis_index = { {}, { axis_name = "model" }, { axis_name = "data-model" } } },
  values = { mesh_shape = { { 2, 4 } }, axis_names = { "data" }, dcn_mesh_shape = { { 1 }, { devices = slices { 8 } } },
             allow_split_physical_axes = { true } },
}
