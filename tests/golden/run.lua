-- SPDX-License-Identifier: MIT
--
-- run.lua DIR [SYSTEM]: the recorded cases of every SYSTEM.json in DIR against what moongrid
-- makes of them: groups in the recorded order with the recorded order inside, getters of each
-- recorded rank, refusals. adapter.lua says how a system's table is read.

local json = require "dkjson"
local adapter = require "adapter"

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

local function set_of(list)
  local set = {}
  for _, name in ipairs(list or {}) do set[name] = true end
  return set
end

-- What the case must give once the deviations are applied: refused, groups, ranks, drops.
local function expectation(case, deviation)
  local want = { groups = {}, ranks = {}, drop = set_of(deviation.drop), drop_ranks = set_of(deviation.drop_ranks) }
  want.skip = deviation.expect == "skip"
  want.refused = deviation.expect == "refuse" or (case.error ~= nil and deviation.expect ~= "correct")
  for kind, groups in pairs(case.groups or {}) do want.groups[kind] = groups end
  for kind, groups in pairs(deviation.groups or {}) do want.groups[kind] = #groups > 0 and groups or nil end
  for column, values in pairs(case.ranks or {}) do want.ranks[column] = values end
  for column, values in pairs(deviation.ranks or {}) do want.ranks[column] = values end
  return want
end

local function check_groups(job, want)
  for kind, groups in pairs(want.groups) do
    if not want.drop[kind] then
      local got = job:groups(kind)
      if not got then return "no groups for kind '" .. kind .. "'" end
      if #got ~= #groups then return ("%s: %d groups instead of %d"):format(kind, #got, #groups) end
      for g = 1, #groups do
        if not same(got[g], groups[g]) then
          return ("%s: group %d is %s instead of %s"):format(kind, g - 1, show(got[g]), show(groups[g]))
        end
      end
    end
  end
  for kind in pairs(job:kinds(want.groups)) do
    if not want.groups[kind] and not want.drop[kind] then return "'" .. kind .. "' is in no recorded kind" end
  end
end

local function check_columns(job, want)
  local ranks = want.ranks.rank
  if not ranks then return next(want.ranks) and "no column 'rank'" or nil end
  for column, values in pairs(want.ranks) do
    if column ~= "rank" and not want.drop_ranks[column] then
      for i, rank in ipairs(ranks) do
        local value = values.error and null or values[i]
        local ok, got = pcall(job.ask, job, column, rank)
        if not ok then return ("%s of rank %d: %s"):format(column, rank, tostring(got)) end
        if not same(got, value) then
          return ("%s of rank %d is %s instead of %s"):format(column, rank, show(got), show(value))
        end
      end
    end
  end
end

local function check(system, case, deviation)
  local want = expectation(case, deviation)
  if want.skip then return "skip" end
  local ok, job = pcall(system.open, case)
  if want.refused then
    if ok then return "fail", "accepted, should be refused" end
    if type(job) ~= "string" or #job < 20 then return "fail", "refused without a clear message: " .. tostring(job) end
    return "pass"
  end
  if not ok then return "fail", tostring(job) end
  local problem = check_groups(job, want) or check_columns(job, want)
  return problem and "fail" or "pass", problem
end

-- ------------------------------------------------------------------- all of DIR

local dir, only = arg[1], arg[2]
local deviations = read(dir .. "/deviations.json") or {}
local total = { pass = 0, fail = 0, skip = 0 }
local list = io.popen("LC_ALL=C ls '" .. dir:gsub("'", "'\\''") .. "'")
for name in list:lines() do
  local key = name:match("^(.*)%.json$")
  if key and key ~= "deviations" and (not only or only == key) then
    local table_ = read(dir .. "/" .. name)
    local system, count = adapter.of(key), { pass = 0, fail = 0, skip = 0 }
    if not system then
      print(("%-22s %d cases not run: nothing of ours speaks for this system"):format(key, #table_.cases))
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
