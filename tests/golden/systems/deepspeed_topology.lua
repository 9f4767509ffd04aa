-- SPDX-License-Identifier: MIT
--
-- Recorded lists are compared here: the runner does not.

local json = require "dkjson"
local adapter = require "adapter"
local mg = require "moongrid"

local kinds = {
  ds_model_proc_group = "ds_model", dp_proc_group = "dp", pp_proc_group = "pp", slice_proc_group = "slice",
}

local Job = {}
Job.__index = Job

function Job:kinds()
  local kind_of, set = {}, {}
  for kind, family in pairs(kinds) do kind_of[family] = kind end
  for _, family in ipairs(self.plan.families) do set[kind_of[family] or "family " .. family] = true end
  return set
end

function Job:groups(kind)
  if not self:kinds()[kind] then return nil end
  local groups = {}
  for g, ranks in self.plan:family(kinds[kind]):groups() do groups[g + 1] = ranks end
  return groups
end

function Job:query(rank, name, args) return self.recipe:ask(self.plan:dry(rank), name, args) end

function Job:ask(column, rank)
  if column == "rank_repr(omit_axes=[])" then return self:query(rank, "rank_repr", { omit_axes = {} }) end
  local stage = column:match("^stage_to_global%((%d+)%)$")
  if stage then return self:query(rank, "stage_to_global", { stage_id = math.tointeger(stage) }) end
  return self:query(rank, adapter.query(column))
end

-- What the project computes on every rank alike.
function Job:check(want, name, args)
  local got = json.encode(self:query(0, name, args))
  assert(got == json.encode(want), ("%s(%s) is %s"):format(name, json.encode(args or {}), got))
end

local function check_lists(job, lists)
  for name, want in pairs(lists) do
    if name == "filter_match" then
      for _, match in ipairs(want) do job:check(match[2], name, match[1]) end
    elseif name == "axis_comm_lists" then
      for axis, groups in pairs(want) do job:check(groups, name, { axis = axis }) end
    elseif name == "axis_list(idx=0)" then
      for axis, ranks in pairs(want) do job:check(ranks, "axis_list", { axis = axis, idx = 0 }) end
    else
      job:check(want, name)
    end
  end
end

local function open(case)
  local args = {}
  for name, value in pairs(case.args) do
    if name ~= "filter_match" then args[name] = value end -- which lists are recorded
  end
  local job = setmetatable({ recipe = mg.load "deepspeed_topology" }, Job)
  job.plan = job.recipe:plan(case.world, args)
  check_lists(job, case.lists or {})
  return job
end

return { open = open }
