-- SPDX-License-Identifier: MIT
--
-- cases.lua: compares one recorded case with moongrid: groups in the recorded order with the
-- recorded order inside, getters of each recorded rank, recorded lists, which kinds share a communicator, their
-- backends and options, how many groups are made, refusals. adapter.lua explains how the table of a system is read.
-- Of a refused case only that it is refused counts: its message is the system's, and so is how far it came.

local json = require "dkjson"

local M = {}
local null = json.null

-- A JSON file, nil if there is none; nulls are kept. With world: without the cases that do not have this world, each of
-- which is a line.
function M.read(path, world)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read("a")
  file:close()
  if world then
    local wanted = '"world": ?' .. world .. "[,}]"
    text = text:gsub('\n{"id"[^\n]*', function(case) return not case:find(wanted) and "" or nil end)
    text = text:gsub(",%s*%]}%s*$", "]}")
  end
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

-- What the case must give once the deviations are applied. same_as, backend, options and counts: as recorded, but for
-- kinds whose groups are others.
function M.expectation(case, deviation)
  local want = { groups = {}, ranks = {}, drop = set_of(deviation.drop), drop_ranks = set_of(deviation.drop_ranks) }
  want.world, want.deviates = case.world, deviation.expect ~= nil
  want.skip = deviation.expect == "skip"
  want.refused = deviation.expect == "refuse" or (case.error ~= nil and deviation.expect ~= "correct")
  want.error_by_rank = case.error_by_rank
  for kind, groups in pairs(case.groups or {}) do want.groups[kind] = groups end
  for kind, groups in pairs(deviation.groups or {}) do want.groups[kind] = #groups > 0 and groups or nil end
  for column, values in pairs(case.ranks or {}) do want.ranks[column] = values end
  for column, values in pairs(deviation.ranks or {}) do want.ranks[column] = values end
  if case.error then return want end
  want.recorded, want.lists = case.groups, case.lists or {}
  want.others = case.same_as or {} -- kinds that make nothing
  want.same_as, want.backend, want.options = {}, case.backend or {}, case.options or {}
  for kind, earlier in pairs(case.same_as or {}) do want.same_as[kind] = earlier end
  for kind in pairs(deviation.groups or {}) do want.same_as[kind] = nil end
  want.counts = { created = case.created, distinct = case.distinct, joined = case.joined }
  want.unheld = case.unheld or {}
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

-- Recorded lists are the same on every rank: rank 0 answers.
local function check_lists(job, want)
  for name, value in pairs(want.lists) do
    local ok, got = pcall(job.list, job, name, value)
    if not ok then return ("list %s: %s"):format(name, tostring(got)) end
    if not same(got, value) then return ("list %s is %s instead of %s"):format(name, show(got), show(value)) end
  end
end

-- Kinds on the CPU are those of gloo, and no others. How the system names the backend of the others is its adapter's.
-- Groups of one rank have no communicator, so no options.
local function check_options(job, want, system, case)
  for kind in pairs(want.recorded) do
    local about = want.groups[kind] and not want.drop[kind] and job:about(kind)
    if about then
      local backend, named = about.options:find("backend=mpi", 1, true) and "gloo" or nil, system.backend
      if type(named) == "function" then
        backend = named(case, kind, backend, job)
      else
        backend = backend or named
      end
      if backend ~= want.backend[kind] then
        return ("backend of %s is %s instead of %s"):format(kind, show(backend), show(want.backend[kind]))
      end
      local urgent = about.options:find("high_priority", 1, true) and { is_high_priority_stream = true } or nil
      if about.id ~= "none" and not same(urgent, want.options[kind]) then
        return ("options of %s are %s instead of %s"):format(kind, show(urgent), show(want.options[kind]))
      end
    end
  end
  for _, named in ipairs { want.backend, want.options } do
    for kind in pairs(named) do
      if not want.recorded[kind] then return "nothing is recorded of '" .. kind .. "', which has backend or options" end
    end
  end
end

local function check_sharing(job, want)
  for kind, earlier in pairs(want.same_as) do
    local a = want.groups[kind] and job:about(kind) or nil
    local b = want.groups[earlier] and job:about(earlier) or nil
    if not want.recorded[earlier] then return ("%s is recorded as %s, which is not a kind"):format(kind, earlier) end
    if a and b and a.id ~= b.id then
      return ("%s is not the communicator of %s, but %s"):format(kind, earlier, a.id)
    end
    if (a == nil) ~= (b == nil) then return ("only one of %s and %s exists"):format(kind, earlier) end
  end
end

-- What the recorded groups, the checked ones of moongrid, add up to: each kind makes its own, but those that are
-- another's, and those that `system.free` knows as there already. (Not where some ranks failed: they made fewer.)
local function check_counts(want, system, case)
  if want.error_by_rank then return nil end
  local made, backends = {}, {}
  for kind, groups in pairs(want.recorded) do
    if not want.others[kind] and not (system.free and system.free(case, kind, groups)) then
      for _, ranks in ipairs(groups) do
        made[#made + 1] = ranks
        backends[#made] = want.backend[kind] or "nccl"
      end
    end
  end
  local listed = want.unheld.count == nil
  local created = #made + (listed and #want.unheld or want.unheld.count)
  if want.counts.created ~= created then
    return ("the groups are %d, and %s were created"):format(created, show(want.counts.created))
  end
  if not listed or not want.counts.distinct then return nil end
  local distinct, members, joined, most = {}, 0, {}, 0
  local function count(ranks, backend)
    local own = table.move(ranks, 1, #ranks, 1, {})
    table.sort(own)
    local key = backend .. ":" .. table.concat(own, ",")
    members, distinct[key] = members + (distinct[key] and 0 or 1), true
    for _, rank in ipairs(ranks) do
      joined[rank] = (joined[rank] or 0) + 1
      most = math.max(most, joined[rank])
    end
  end
  for i, ranks in ipairs(made) do count(ranks, backends[i]) end
  for _, ranks in ipairs(want.unheld) do count(ranks, system.unheld or "nccl") end
  if want.counts.joined ~= most then
    return ("a rank is in %d groups, not %s"):format(most, show(want.counts.joined))
  end
  if want.counts.distinct ~= members then
    return ("%d groups are different, not %s"):format(members, show(want.counts.distinct))
  end
end

-- Either every rank raised, or those that did not answer, and then the case deviates.
local function check_errors(want, case)
  local raised, answered = want.error_by_rank, set_of(want.ranks.rank)
  if not raised then return nil end
  local n = 0
  for rank in pairs(raised) do
    n = n + 1
    local number = math.tointeger(tonumber(rank))
    if not number or number < 0 or number >= want.world then return "rank " .. rank .. " raised, and is not there" end
    if answered[number] then return "rank " .. rank .. " raised, and has an answer" end
  end
  if case.error and n ~= want.world then return ("%d of the %d ranks raised"):format(n, want.world) end
  for i, created in ipairs(not case.error and case.created_by_rank or {}) do
    if (created < case.created) ~= (raised[tostring(i - 1)] ~= nil) then
      return ("rank %d made %d groups of %d, so it raised or did not"):format(i - 1, created, case.created)
    end
  end
  if not case.error and not want.deviates then return "some ranks raised: moongrid has no such plan" end
end

-- "pass" or "fail"; why, when it failed; the job, when it passed and was not refused.
function M.compare(system, case, want)
  local ok, job = pcall(system.open, case)
  local problem = check_errors(want, case)
  if problem then return "fail", problem end
  if want.refused then
    if ok then return "fail", "accepted, should be refused" end
    if type(job) ~= "string" or #job < 20 then return "fail", "refused without a clear message: " .. tostring(job) end
    return "pass"
  end
  if not ok then return "fail", tostring(job) end
  problem = check_groups(job, want) or check_columns(job, want)
  if want.recorded and not problem then
    problem = check_lists(job, want) or check_options(job, want, system, case) or check_sharing(job, want)
      or check_counts(want, system, case)
  end
  return problem and "fail" or "pass", problem, not problem and job or nil
end

-- The same of a case as it is recorded; "skip" where a deviation says so.
function M.check(system, case, deviation)
  local want = M.expectation(case, deviation)
  if want.skip then return "skip" end
  return M.compare(system, case, want)
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
