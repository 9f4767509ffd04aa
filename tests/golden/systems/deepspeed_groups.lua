-- SPDX-License-Identifier: MIT
--
-- Each recorded call makes a plan of its own; kinds and getters are those of all of them. A kind
-- that exists already must be the same.
local adapter = require "adapter"
local json = require "dkjson"
local mg = require "moongrid"

local prefixed = { dp = "data_parallel_group", mp = "model_parallel_group" }
local kinds = { -- family -> recorded kind
  dp = prefixed.dp, mp = prefixed.mp, tp = "tensor_model_parallel_group", sp = "sequence_parallel_group",
  sp_dp = "sequence_data_parallel_group", world_group = "world_group",
  zero_param_intra = "zero_param_intra_parallel_group",
}

local function same(args) return args end

-- Arguments of a call -> parameters of the recipe.
local calls = {
  _create_expert_and_data_parallel = function(args)
    args.pp_size = args.pp_size or args.mpu and args.mpu.pp
    args.expert_parallel_size_, args.folding_spec = { args.expert_parallel_size_ }, args.folding
    args.mpu, args.folding = nil, nil
    return args
  end,
  _create_expert_data_and_model_parallel = function(args)
    args.mp_size, args.pp_size, args.enable_expert_tensor_parallelism = args.mpu.tp, args.mpu.pp, true
    args.expert_parallel_size_, args.mpu = { args.expert_parallel_size_ }, nil
    return args
  end,
  _create_zero_param_parallel_group = same,
  _get_local_all_to_all_group = same,
  _init_tp_mesh_device = function(args)
    args.debug_detail = nil -- changes how torch creates groups, not which
    return args
  end,
  _init_tp_groups_with_new_group = same,
  _create_model_parallel = same,
  _clone_world_group = function() return { clone_world_group = true } end,
  initialize_sequence_parallel = same,
  initialize = function() error("initialize is deprecated; _create_expert_and_data_parallel would do", 0) end,
}

-- Recorded kind -> { family, one of its groups or nil: all }.
local function kinds_of(plan, call)
  local found = {}
  for name, family in pairs(plan) do
    local scope = name:match("^all_to_all_(%a+)$")
    for g = 0, scope and #family - 1 or -1 do
      found[("all_to_all_group[%s_%d]"):format(scope, g)] = { family, g, plan = plan, name = name }
    end
    local data, size = name:match("^e(d?)p_(size_%d+)$")
    local kind = size and ("expert_%sparallel_group[ep_%s]"):format(data == "d" and "data_" or "", size) or kinds[name]
    if call == "_create_model_parallel" and prefixed[name] then kind = "returned:" .. kind end
    if not scope then found[kind or "family " .. name] = { family, plan = plan, name = name } end
  end
  return found
end

local Job = {}
Job.__index = Job

function Job:call(from)
  local args = {}
  for key, value in pairs(from) do
    if value ~= json.null and key ~= "call" then args[key] = value end
  end
  local translate = calls[from.call] or error(("unknown call '%s'"):format(from.call), 0)
  local plan = self.recipe:plan(self.world, translate(args))
  for kind, what in pairs(kinds_of(plan, from.call)) do
    local old = self.all[kind]
    if old and old[1] ~= what[1] then
      error(("%s exists with another layout; the sizes it was made with would do"):format(kind), 0)
    end
    self.all[kind] = what
  end
  table.insert(self.made, plan)
end

function Job:plans() return self.made end

function Job:kinds()
  local set = {}
  for kind in pairs(self.all) do set[kind] = true end
  return set
end

function Job:groups(kind)
  local what, groups = self.all[kind], {}
  if not what then return nil end
  if what[2] then return { what[1]:ranks(what[2]) } end
  for g, ranks in what[1]:groups() do groups[g + 1] = ranks end
  return groups
end

function Job:about(kind)
  local what = self.all[kind]
  return what and adapter.about(what.plan, what.name)
end

-- The latest call that knows an answer gives it; the largest expert size is that of all calls.
function Job:ask(column, rank)
  local getter, args = adapter.query(column)
  if not self.queries[getter] then error("unknown query '" .. getter .. "'", 0) end
  args.group_name = column:match("%((ep_size_%d+)%)$")
  local best, size
  for _, plan in ipairs(self.made) do
    local ok, answer = pcall(self.recipe.ask, self.recipe, plan:dry(rank), getter, args)
    local n = getter == "max_expert_size_name" and ok and answer and tonumber(answer:match("%d+$"))
    if ok and answer ~= nil and not (n and size and n < size) then best, size = answer, n end
  end
  return best
end

return {
  open = function(case)
    local job = setmetatable({ recipe = mg.load "deepspeed_moe", world = case.world, all = {}, made = {} }, Job)
    job.queries = {}
    for _, name in ipairs(job.recipe:info().queries) do job.queries[name] = true end
    for _, args in ipairs { case.args, table.unpack(case["then"] or {}) } do job:call(args) end
    return job
  end,
}
