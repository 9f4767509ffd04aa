-- SPDX-License-Identifier: MIT
--
-- Kinds are axes, which the families are named after. Recorded lists are compared here: the
-- runner does not.

local json = require "dkjson"
local mg = require "moongrid"

local Job = {}
Job.__index = Job

function Job:kinds()
  local set = {}
  for _, name in ipairs(self.plan.families) do set[name] = true end
  return set
end

function Job:groups(kind)
  if not self:kinds()[kind] then return nil end
  local groups = {}
  for g, ranks in self.plan:family(kind):groups() do groups[g + 1] = ranks end
  return groups
end

function Job:query(rank, name, args) return self.recipe:ask(self.plan:dry(rank), name, args) end

function Job:ask(column, rank)
  local axis = column:match("^rank in (.*)$")
  if axis then return self:query(rank, "get_local_rank", { mesh_dim = axis }) end
  local axes = {}
  for name in assert(column:match("^get_optional_mesh%((.*)%)$"), "unknown column"):gmatch("[%w_]+") do
    axes[#axes + 1] = name
  end
  if axes[1] == "nope" then -- no such axis: an error, as recorded
    local ok, message = pcall(self.query, self, rank, "get_optional_mesh", { dims = axes })
    assert(not ok and message:find("nope", 1, true), "axis 'nope' should be refused by name")
    return nil
  end
  return self:query(rank, "get_optional_mesh", { dims = axes })
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

local function open(case)
  local args = {}
  for name, value in pairs(case.args) do
    if name ~= "get_optional_mesh" then args[name] = value end -- which meshes are read back
  end
  local job = setmetatable({ recipe = mg.load "torchtitan" }, Job)
  job.plan = job.recipe:plan(case.world, args)
  check_lists(job, case.lists or {})
  return job
end

return { open = open }
