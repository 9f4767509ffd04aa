-- SPDX-License-Identifier: MIT

local json = require "dkjson"
local adapter = require "adapter"

local kinds = {
  ds_model_proc_group = "ds_model", dp_proc_group = "dp", pp_proc_group = "pp", slice_proc_group = "slice",
}

local function ask(job, column, rank)
  if column == "rank_repr(omit_axes=[])" then return job:query(rank, "rank_repr", { omit_axes = {} }) end
  local stage = column:match("^stage_to_global%((%d+)%)$")
  if stage then return job:query(rank, "stage_to_global", { stage_id = math.tointeger(stage) }) end
  return job:query(rank, adapter.query(column))
end

-- What the project computes on every rank alike.
local function compare(job, want, name, args)
  local got = json.encode(job:query(0, name, args))
  assert(got == json.encode(want), ("%s(%s) is %s"):format(name, json.encode(args or {}), got))
end

local function check_lists(job, lists)
  for name, want in pairs(lists) do
    if name == "filter_match" then
      for _, match in ipairs(want) do compare(job, match[2], name, match[1]) end
    elseif name == "axis_comm_lists" then
      for axis, groups in pairs(want) do compare(job, groups, name, { axis = axis }) end
    elseif name == "axis_list(idx=0)" then
      for axis, ranks in pairs(want) do compare(job, ranks, "axis_list", { axis = axis, idx = 0 }) end
    else
      compare(job, want, name)
    end
  end
end

return {
  recipe = "deepspeed_topology",
  kinds = kinds,
  arguments = function(args)
    args.filter_match = nil -- which lists are recorded
    return args
  end,
  lists = check_lists,
  ask = ask,
}
