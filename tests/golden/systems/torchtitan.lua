-- SPDX-License-Identifier: MIT
--
-- Kinds are axes, which the families are named after.

local function ask(job, column, rank)
  local axis = column:match("^rank in (.*)$")
  if axis then return job:query(rank, "get_local_rank", { mesh_dim = axis }) end
  local axes = {}
  for name in assert(column:match("^get_optional_mesh%((.*)%)$"), "unknown column"):gmatch("[%w_]+") do
    axes[#axes + 1] = name
  end
  if axes[1] == "nope" then -- no such axis: an error, as recorded
    local ok, message = pcall(job.query, job, rank, "get_optional_mesh", { dims = axes })
    assert(not ok and message:find("nope", 1, true), "axis 'nope' should be refused by name")
    return nil
  end
  return job:query(rank, "get_optional_mesh", { dims = axes })
end

-- Axes that are off have torch's backend "fake"; the loss is summed over a flattened mesh, which has the default one.
local function backend(_, axis, _, job)
  return axis ~= "loss" and not job:query(0, "enabled", { mesh_dim = axis }) and "fake" or nil
end

-- The axes with sizes and what is on; other properties are queries.
local function list(job, name, want)
  if name ~= "axes" then return job:query(0, name) end
  local axes = {}
  for axis in pairs(want) do
    local size, enabled = job:query(0, "size", { mesh_dim = axis }), job:query(0, "enabled", { mesh_dim = axis })
    axes[axis] = { size = size, enabled = enabled, backend = backend(nil, axis, nil, job) or "default" }
  end
  return axes
end

return {
  recipe = "torchtitan",
  kinds = function(kind) return kind end,
  arguments = function(args, case)
    args.get_optional_mesh = nil -- which meshes are read back
    args.version = case.version
    return args
  end,
  list = list,
  backend = backend,
  free = function(case, axis) return (case.backend or {})[axis] == "fake" end,
  ask = ask,
}
