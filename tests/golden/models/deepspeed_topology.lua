-- SPDX-License-Identifier: MIT
--
-- DeepSpeed's PipelineParallelGrid on a ProcessTopology: axes slowest first, lists along each.

local ranks = require "models.ranks"

local function draw()
  local world = math.random(32)
  local axes = { "pipe", "data", "model", "x" }
  for i = #axes, 2, -1 do
    local j = math.random(i)
    axes[i], axes[j] = axes[j], axes[i]
  end
  for _ = 1, math.random(3) - 1 do table.remove(axes) end
  return world, { axes = table.concat(axes, "-"), dims = { ranks.product(world, #axes) } }
end

local function families(world, p)
  local order, sizes, others, i = {}, {}, {}, 0
  for axis in p.axes:gmatch "%a+" do
    i = i + 1
    sizes[axis] = p.dims[i]
    table.insert(order, 1, axis)
    if axis ~= "data" then others[#others + 1] = axis end
  end
  if not sizes.pipe or not sizes.data then return nil, "no pipe or no data" end
  local alone = {}
  for rank = 0, world - 1 do alone[rank + 1] = { rank } end
  return {
    ds_model = ranks.groups(order, sizes, table.unpack(others)), dp = ranks.groups(order, sizes, "data"),
    pp = ranks.groups(order, sizes, "pipe"), slice = sizes.model and ranks.groups(order, sizes, "model") or alone,
  }
end

return { draw = draw, families = families }
