-- SPDX-License-Identifier: MIT
--
-- jax_mesh, a layer over moongrid for stock Lua: every refusal in its text is provoked and compared whole, with the
-- position of the caller; groups and their order are those of the original.

package.path = "tests/golden/?.lua;lua/?.lua;" .. package.path

local mg = require "moongrid"
local mesh_utils = require "layers.jax_mesh"

local layers = assert(loadfile("tests/lua/layers.lua", "t", _ENV))() -- with busted's names
local messages, groups = layers.messages, layers.groups

describe("jax_mesh", function()
  local pod = "local devices = {} for i = 0, 7 do devices[i + 1] = { device_kind = 'TPU v5p', coords = { i % 2, i // 2 % 2, i // 4 } } end "

  messages("jax_mesh.lua", pod .. "local m = J.create_device_mesh(8, { 2, 4 }, devices, { axis_names = { 'data', 'model' } }) ", {
    { "a world that is none", "J.create_device_mesh('x', { 8 })", "world is string; it is a World or the number of ranks",
      would = { "J.create_device_mesh(8, { 8 })", "J.create_device_mesh(mg.world(8), { 8 })" } },
    { "a shape of another world (jx-006)", "J.create_device_mesh(8, { 3, 4 }, nil, { axis_names = { 'a', 'b' } })",
      "create_device_mesh: b 4 x a 3 = 12 does not make the 8 ranks; nearest: a 2, or a world of 12 ranks",
      would = { "J.create_device_mesh(8, { 2, 4 })", "J.create_device_mesh(12, { 3, 4 })" } },
    { "a shape that is none", "J.create_device_mesh(8, 'x')", "create_device_mesh: parameter 'mesh_shape' is a list of integers (0,-1), not 'x'" },
    { "fewer devices than ranks (jx-035)", "J.create_device_mesh(16, { 16 }, devices)",
      "create_device_mesh: devices has 8 records for the 16 ranks; a list with a record for each rank would do" },
    { "an unknown option", "J.create_device_mesh(8, { 8 }, nil, { axis_name = { 'a' } })",
      "unknown option 'axis_name'; create_device_mesh takes axis_names, contiguous_submeshes, allow_split_physical_axes, version",
      would = { "J.create_device_mesh(8, { 8 }, nil, { axis_names = { 'a' } })" } },
    { "an option of the other call", "J.create_device_mesh(8, { 8 }, devices, { process_is_granule = true })",
      "unknown option 'process_is_granule'; create_device_mesh takes axis_names, contiguous_submeshes, allow_split_physical_axes, version",
      would = { "J.create_hybrid_device_mesh(8, { 8 }, { 1 }, devices, { process_is_granule = true })" } },
    { "an option without a name", "J.create_device_mesh(8, { 8 }, nil, { true })", words = { "unknown option '1'" } },
    { "options that are none", "J.create_device_mesh(8, { 8 }, nil, 5)", "options is number; it takes a table by name" },
    { "contiguous submeshes of slices", "J.create_hybrid_device_mesh(8, { 8 }, { 1 }, devices, { contiguous_submeshes = true })",
      "unknown option 'contiguous_submeshes'; create_hybrid_device_mesh takes axis_names, process_is_granule, "
      .. "should_sort_granules_by_key, allow_split_physical_axes, version" },
    { "devices without slices (jx-044)", "J.create_hybrid_device_mesh(8, { 4 }, { 2 }, devices)",
      "create_hybrid_device_mesh: device 0 has no slice_index; process_is_granule=true would do" },
    { "slices that are left out", "J.create_hybrid_device_mesh(8, { 8 }, nil, devices)",
      "dcn_mesh_shape is nil; it takes the slices along each axis" },
    { "an axis that is not there", "m:family 'tp'", words = { "axes: ", "'tp'" }, would = { "m:family 'model'" } },
    { "an axis twice", "m:group { 'data', 'data' }", words = { "axes: ", "'data'" } },
    { "an axis that is a number", "m:group { 5 }", words = { "axes: " }, never = { "bad argument" } },
    { "axes that are not a list", "m:group(5)", "axes is number; it takes a name or a list of names", would = { "m:group 'data'" } },
    { "groups along no axis", "m:group {}", words = { "'' is not a family name" } },
    { "the coordinate of nobody", "m:coordinate()", "rank is nil; say which rank of the world asks", would = { "m:coordinate(0)" } },
    { "a topology that has the names", "m:group 'data' m:topology(m:topology())",
      words = { "choose another prefix", "'data'" }, would = { "m:group 'data' m:topology(m:topology(), 'second_')" } },
    { "a topology of another world", "m:group 'data' m:topology(mg.topology(mg.world(4)))", words = { "8 ranks", "4" },
      never = { "choose another prefix" } },
  })

  -- TPU v5p in a cube of 2 x 2 x 2, which it has a ring through
  local function cube()
    local devices = {}
    for i = 0, 7 do devices[i + 1] = { device_kind = "TPU v5p", coords = { i % 2, i // 2 % 2, i // 4 } } end
    return mesh_utils.create_device_mesh(8, { 2, 4 }, devices, { axis_names = { "data", "model" } })
  end

  it("puts devices in order (jx-019)", function()
    local mesh = cube()
    assert.are.same({ 0, 1, 3, 2, 6, 7, 5, 4 }, mesh:device_order())
    assert.are.same({ { 0, 1, 3, 2 }, { 6, 7, 5, 4 } }, groups(mesh:family "model"))
    assert.are.same({ { 0, 6, 1, 7, 3, 5, 2, 4 } }, groups(mesh:family { "model", "data" }))
    assert.are.equal(8, #mesh:family {})
    for place, rank in ipairs(mesh:device_order()) do
      assert.are.same({ (place - 1) // 4, (place - 1) % 4 }, mesh:coordinate(rank))
    end
    assert.is_nil(mesh:coordinate(8))
    assert.is_nil(mesh:coordinate(-1))
  end)

  it("leaves a cube of TPU v5 lite as it lies, x slowest, whatever the shape", function()
    local devices = {}
    for i = 0, 7 do devices[i + 1] = { device_kind = "TPU v5 lite", coords = { i % 2, i // 2 % 2, i // 4 } } end
    for _, shape in ipairs { { 8 }, { 4, 2 }, { 2, 4 } } do
      assert.are.same({ 0, 4, 2, 6, 1, 5, 3, 7 }, mesh_utils.create_device_mesh(8, shape, devices):device_order())
    end
  end)

  it("has rings from chip to chip, and home", function()
    local function distance(a, b)
      local steps = 0
      for i = 1, 3 do steps = steps + math.abs(a[i] - b[i]) end
      return steps
    end
    for _, box in ipairs { { "TPU v4 lite", 2, 2 }, { "TPU v5 lite", 2, 2 }, { "TPU v6 lite", 4, 2 }, { "TPU v5 lite", 4, 4 } } do
      local kind, x, y = table.unpack(box)
      local devices = {}
      for i = 0, x * y - 1 do devices[i + 1] = { device_kind = kind, coords = { i % x, i // x, 0 } } end
      local order = mesh_utils.create_device_mesh(x * y, { x * y }, devices):device_order()
      for i, rank in ipairs(order) do
        local next_ = order[i % #order + 1]
        assert.are.equal(1, distance(devices[rank + 1].coords, devices[next_ + 1].coords), kind .. " " .. rank)
      end
    end
  end)

  it("collects groups, which a state answers to", function()
    local mesh = cube()
    local model = mesh:group "model"
    mesh:group { "data", "model" }
    assert.are.equal(model, mesh:group { "model" })
    local plan = mg.plan(mesh:topology())
    assert.are.same({ "model", "data_model" }, plan.families)
    assert.are.same({ 6, 7, 5, 4 }, plan:dry(5).model.ranks)
    assert.are.equal(2, plan:dry(5).model.position)
    plan:rehearse()
  end)

  it("in a window names ranks of the world", function()
    local devices = {}
    for i = 0, 3 do devices[i + 1] = { device_kind = "TPU v4 lite", coords = { i % 2, i // 2, 0 } } end
    local mesh = mesh_utils.create_device_mesh(mg.world(8):window(4, 4), { 2, -1 }, devices)
    assert.are.same({ 4, 5, 7, 6 }, mesh:device_order())
    assert.are.same({ { 4, 7 }, { 5, 6 } }, groups(mesh:family "axis_0"))
    assert.are.same({ 1, 1 }, mesh:coordinate(6))
    assert.is_nil(mesh:coordinate(3))
  end)

  it("of a million ranks in order are rules", function()
    local start = os.clock()
    local mesh = mesh_utils.create_device_mesh(1 << 20, { -1, 16 })
    assert.are.same({ 65535, 15 }, mesh:coordinate((1 << 20) - 1))
    mesh:group "axis_0"
    mg.plan(mesh:topology())
    assert.is_true(os.clock() - start < 0.5)
  end)
end)
