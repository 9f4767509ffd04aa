-- SPDX-License-Identifier: MIT
--
-- Every instance is a plan of its own, by name ("" is the unnamed one).
local adapter = require "adapter"
local json = require "dkjson"
local mg = require "moongrid"

local kinds = { -- family -> recorded kind
  dp_cp = "data_parallel_group_with_cp", intra_dp_cp = "intra_partial_data_parallel_group_with_cp",
  dp = "data_parallel_group", cp = "context_parallel_group", mp = "model_parallel_group",
  tp = "tensor_model_parallel_group", pp = "pipeline_model_parallel_group", embd = "embedding_group",
  pos_embd = "position_embedding_group", tp_dp_cp = "tensor_and_data_parallel_group_with_cp",
  tp_dp = "tensor_and_data_parallel_group", tp_cp = "tensor_and_context_parallel_group",
  ep = "expert_model_parallel_group", ep_tp = "expert_tensor_parallel_group",
  tp_ep_mp = "expert_tensor_and_model_parallel_group", tp_ep_pp = "expert_tensor_model_pipeline_parallel_group",
  ep_dp = "expert_data_parallel_group", intra_ep_dp = "intra_partial_expert_data_parallel_group",
  inter_ep_dp = "inter_partial_expert_data_parallel_group",
  intra_dist_opt = "intra_distributed_optimizer_instance_group",
  sp = "sequence_parallel_group", sp_dp = "sequence_and_data_parallel_group",
}

-- Recorded kind -> { family, one of its groups or nil: all }, of a plan. Without sequence parallelism DeepSpeed
-- makes no groups for it; the recipe has them, of one rank each and as dp.
local function kinds_of(plan, prefix)
  local found, unrecorded = {}, {}
  if plan:grid "dense".sp == 1 then
    assert(plan:family "sp".size == 1 and plan:family "sp_dp" == plan:family "dp")
    unrecorded.sp, unrecorded.sp_dp = true, true
  end
  for name, family in pairs(plan) do
    local scope = name:match("^all_to_all_(%a+)$")
    for g = 0, scope and #family - 1 or -1 do
      found[("%sall_to_all_groups[%s_%d]"):format(prefix, scope, g)] = { family, g, plan = plan, name = name }
    end
    local plain, gloo = name:match("^(.*)(_gloo)$")
    local level = name:match("^hcp_(%d+)$")
    local kind = kinds[plain or name] or level and ("hierarchical_context_parallel_groups[%s]"):format(level)
    if not scope and not unrecorded[name] then
      found[prefix .. (kind and kind .. (gloo or "") or "family " .. name)] = { family, plan = plan, name = name }
    end
  end
  return found
end

local function same_layout(a, b)
  if #a ~= #b then return false end
  for name, family in pairs(a) do
    local ok, other = pcall(b.family, b, name)
    if not ok or other ~= family then return false end
  end
  return true
end

local Job = {}
Job.__index = Job

function Job:initialize(name, from)
  local args = {}
  for key, value in pairs(from) do
    if value ~= json.null and key ~= "call" and key ~= "name" and key ~= "device_count" then args[key] = value end
  end
  args.from_config = from.call == "initialize_parallel_state_from_config" or nil
  if args.from_config then args.nccl_communicator_config_path = nil end -- DeepSpeed never opens it there
  local plan, old = self.recipe:plan(self.world, args), self.instances[name]
  if old and not same_layout(old.plan, plan) then
    error(("instance '%s' exists with another layout; another name, or the same sizes, would do"):format(name), 0)
  end
  self.last = old or { plan = plan, args = args, states = {} }
  self.instances[name] = self.last
end

function Job:all_kinds()
  if not self.prefixed then return kinds_of(self.last.plan, "") end
  local all = {}
  for name, instance in pairs(self.instances) do
    for kind, what in pairs(kinds_of(instance.plan, (name == "" and "default" or name) .. ":")) do all[kind] = what end
  end
  return all
end

function Job:plans()
  local plans = {}
  for _, instance in pairs(self.instances) do plans[#plans + 1] = instance.plan end
  table.sort(plans, function(a, b) return a.digest < b.digest end) -- the same order on every rank
  return plans
end

function Job:kinds()
  local set = {}
  for kind in pairs(self:all_kinds()) do set[kind] = true end
  return set
end

function Job:groups(kind)
  local what, groups = self:all_kinds()[kind], {}
  if not what then return nil end
  if what[2] then return { what[1]:ranks(what[2]) } end
  for g, ranks in what[1]:groups() do groups[g + 1] = ranks end
  return groups
end

function Job:about(kind)
  local what = self:all_kinds()[kind]
  return what and adapter.about(what.plan, what.name)
end

local unnamed = { None = "", outside = "", default = "" }

function Job:ask(column, rank)
  local instance = self.last
  local getter, name = column:match("^wrapper%.get_([%w_]+)%(name=(%w+)%)$")
  if not getter then name, getter = column:match("^(%w+):(.*)$") end
  if name then instance = self.instances[unnamed[name] or name] end
  if not instance then return nil end
  instance.states[rank] = instance.states[rank] or instance.plan:dry(rank)
  return self.recipe:ask(instance.states[rank], adapter.query(getter or column))
end

local function open(case)
  local job = setmetatable({ recipe = mg.load "deepspeed", world = case.world, instances = {} }, Job)
  local calls = { case.args, table.unpack(case["then"] or {}) }
  for _, args in ipairs(calls) do
    if args.call == "instances" then
      job.prefixed = true
      for _, pair in ipairs(args.instances) do job:initialize(pair[1] ~= json.null and pair[1] or "", pair[2]) end
    elseif args.call == "initialize_all_to_all_groups" then
      job.last.args.device_count = case.args.device_count
      job.last.plan = job.recipe:plan(case.world, job.last.args)
    elseif args.call == nil or args.call == "initialize_parallel_state_from_config" then
      job:initialize(args.name or "", args)
    else
      error(("unknown call '%s'"):format(args.call), 0)
    end
  end
  return job
end

return { open = open }
