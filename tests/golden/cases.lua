-- SPDX-License-Identifier: MIT
--
-- cases.lua: compares one recorded case with moongrid: groups in the recorded order with the
-- recorded order inside, getters of each recorded rank, refusals. adapter.lua explains how the table
-- of a system is read.

local json = require "dkjson"

local M = {}
local null = json.null

-- A JSON file, nil if there is none; nulls are kept.
function M.read(path)
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
  for key in pairs(a) do
    if not same(a[key], b[key]) then return false end
  end
  for key in pairs(b) do
    if a[key] == nil and not none(b[key]) then return false end
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

-- "pass", "fail" or "skip"; why, when it failed; the job, when it passed and was not refused.
function M.check(system, case, deviation)
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
  return problem and "fail" or "pass", problem, not problem and job or nil
end

-- The tables of a folder: name of the system -> file, in the order of the names.
function M.tables(dir)
  local names, list = {}, io.popen("LC_ALL=C ls '" .. dir:gsub("'", "'\\''") .. "'")
  for name in list:lines() do
    local key = name:match("^(.*)%.json$")
    if key and key ~= "deviations" then names[#names + 1] = key end
  end
  list:close()
  return names
end

return M
