-- SPDX-License-Identifier: MIT
--
-- run.lua DIR: the recorded cases of every SYSTEM.json in DIR against the bundled recipes:
-- groups in the recorded order with the recorded order inside, getters as queries over a
-- state of each recorded rank, refusals.

local json = require "dkjson"
local mg = require "moongrid"
local systems = require "systems"

local null = json.null

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read("a")
  file:close()
  local value, _, message = json.decode(text, 1, null)
  if value == nil then error(path .. ": " .. tostring(message), 0) end
  return value
end

-- A missing value: null, an error, or nothing at all.
local function none(value) return value == nil or value == null or type(value) == "table" and value.error ~= nil end

local function show(value)
  if none(value) then return "nothing" end
  return type(value) == "table" and json.encode(value) or tostring(value)
end

local function same(a, b)
  if none(a) or none(b) then return none(a) and none(b) end
  if type(a) ~= "table" or type(b) ~= "table" then return a == b end
  if #a ~= #b then return false end
  for i = 1, #a do
    if not same(a[i], b[i]) then return false end
  end
  return true
end

-- What the case must give once the deviations are applied: refused, groups, ranks, drops.
local function expectation(case, deviation)
  local want = { groups = {}, ranks = {}, drop = {}, drop_ranks = {} }
  if deviation.expect == "refuse" or (case.error and deviation.expect ~= "correct") then
    want.refused = true
    return want
  end
  if deviation.expect == "skip" then
    want.skip = true
    return want
  end
  for kind, groups in pairs(case.groups or {}) do want.groups[kind] = groups end
  for kind, groups in pairs(deviation.groups or {}) do want.groups[kind] = #groups > 0 and groups or nil end
  for column, values in pairs(case.ranks or {}) do want.ranks[column] = values end
  for column, values in pairs(deviation.ranks or {}) do want.ranks[column] = values end
  for _, kind in ipairs(deviation.drop or {}) do want.drop[kind] = true end
  for _, column in ipairs(deviation.drop_ranks or {}) do want.drop_ranks[column] = true end
  return want
end

-- The recorded calls, in order; what is left at the end is what the tables show.
local function perform(case, recipe)
  local plan
  local function initialize(args) plan = recipe:plan(case.world, args) end
  initialize(case.args)
  for _, call in ipairs(case["then"] or {}) do
    if call.call == "destroy_model_parallel" then
      plan = nil
    elseif call.call == "initialize_model_parallel" then
      local args = {}
      for key, value in pairs(call) do args[key] = key ~= "call" and value or nil end
      initialize(args)
    else
      error("unknown call '" .. tostring(call.call) .. "'", 0)
    end
  end
  return plan
end

local function check_groups(system, plan, want)
  local expected = {}
  for kind, groups in pairs(want.groups) do
    local name = system.kinds[kind]
    if not name then return "kind '" .. kind .. "' has no family" end
    expected[name] = true
    if not want.drop[kind] then
      local ok, family = pcall(plan and plan.family or error, plan, name)
      if not ok then return "no family '" .. name .. "' for kind '" .. kind .. "'" end
      if family.count ~= #groups then
        return ("%s: %d groups instead of %d"):format(kind, family.count, #groups)
      end
      for g, ranks in family:groups() do
        if not same(ranks, groups[g + 1]) then
          return ("%s: group %d is %s instead of %s"):format(kind, g, show(ranks), show(groups[g + 1]))
        end
      end
    end
  end
  for _, name in ipairs(plan and plan.families or {}) do
    if not expected[name] then return "family '" .. name .. "' is in no recorded kind" end
  end
end

local function check_columns(system, recipe, plan, want)
  local ranks = want.ranks.rank
  if not ranks then return next(want.ranks) and "no column 'rank'" or nil end
  local states = {}
  for i, rank in ipairs(ranks) do states[i] = plan and plan:dry(rank) end
  for column, values in pairs(want.ranks) do
    if column ~= "rank" and not want.drop_ranks[column] then
      local query, args = system.query(column)
      for i, rank in ipairs(ranks) do
        -- no state: the job has been destroyed, and there is nobody to ask
        local ok, got = pcall(recipe.ask, recipe, states[i], query, args)
        local value = values.error and null or values[i]
        if not ok and plan then return ("%s of rank %d: %s"):format(column, rank, got) end
        local answer = nil
        if ok then answer = got end
        if not same(answer, value) then
          return ("%s of rank %d is %s instead of %s"):format(column, rank, show(answer), show(value))
        end
      end
    end
  end
end

local function check(system, case, deviation)
  local want = expectation(case, deviation)
  if want.skip then return "skip" end
  local recipe = mg.load(system.recipe)
  local ok, plan = pcall(perform, case, recipe)
  if want.refused then
    if ok then return "fail", "accepted, should be refused" end
    if #plan < 20 then return "fail", "refused without a clear message: " .. plan end
    return "pass"
  end
  if not ok then return "fail", plan end
  local problem = check_groups(system, plan, want) or check_columns(system, recipe, plan, want)
  return problem and "fail" or "pass", problem
end

-- ------------------------------------------------------------------- all of DIR

local dir = arg[1]
local deviations = read(dir .. "/deviations.json") or {}
local total = { pass = 0, fail = 0, skip = 0 }
local list = io.popen("ls '" .. dir:gsub("'", "'\\''") .. "'")
for name in list:lines() do
  local key = name:match("^(.*)%.json$")
  if key and key ~= "deviations" then
    local table_ = read(dir .. "/" .. name)
    local system, count = systems[key], { pass = 0, fail = 0, skip = 0 }
    if not system then
      print(("%-22s %d cases not run: no bundled recipe speaks for this system"):format(key, #table_.cases))
    else
      for _, case in ipairs(table_.cases) do
        local done, verdict, problem = pcall(check, system, case, (deviations[key] or {})[case.id] or {})
        if not done then verdict, problem = "fail", verdict end -- a case that cannot be read
        count[verdict] = count[verdict] + 1
        if problem then print(("FAIL %s %s: %s"):format(key, case.id, problem)) end
      end
      print(("%-22s %d passed, %d failed, %d skipped by deviation"):format(key, count.pass, count.fail, count.skip))
    end
    for verdict, n in pairs(count) do total[verdict] = total[verdict] + n end
  end
end
list:close()
print(("%d passed, %d failed"):format(total.pass, total.fail))
os.exit(total.fail == 0 and total.pass > 0 and 0 or 1)
