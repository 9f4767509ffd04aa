-- SPDX-License-Identifier: MIT

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

-- What the project computes on every rank alike; the recorded list says for which arguments.
local function list(job, name, want)
  local got = {}
  if name == "filter_match" then
    for i, match in ipairs(want) do got[i] = { match[1], job:query(0, name, match[1]) } end
  elseif name == "axis_comm_lists" then
    for axis in pairs(want) do got[axis] = job:query(0, name, { axis = axis }) end
  elseif name == "axis_list(idx=0)" then
    for axis in pairs(want) do got[axis] = job:query(0, "axis_list", { axis = axis, idx = 0 }) end
  else
    return job:query(0, name)
  end
  return got
end

return {
  recipe = "deepspeed_topology",
  kinds = kinds,
  arguments = function(args)
    args.filter_match = nil -- which lists are recorded
    return args
  end,
  list = list,
  ask = ask,
}
