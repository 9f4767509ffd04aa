-- SPDX-License-Identifier: MIT
--
-- Kinds are axes, which the families are named after.

local json = require "dkjson"

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

-- sizes, what is on, and the other properties: the same on every rank
local function check_lists(job, lists)
  for name, want in pairs(lists) do
    if name == "axes" then
      for axis, info in pairs(want) do
        local args = { mesh_dim = axis }
        assert(job:query(0, "size", args) == info.size, "size of axis " .. axis)
        if axis ~= "dp_shard" and axis ~= "efsdp" then assert((info.size > 1) == info.enabled) end
        assert(job:query(0, "enabled", args) == info.enabled, "axis " .. axis .. " is on or off")
      end
    else
      local got = job:query(0, name)
      assert(json.encode(got) == json.encode(want), name .. " is " .. json.encode(got))
    end
  end
end

return {
  recipe = "torchtitan",
  kinds = function(kind) return kind end,
  arguments = function(args)
    args.get_optional_mesh = nil -- which meshes are read back
    return args
  end,
  lists = check_lists,
  ask = ask,
}
