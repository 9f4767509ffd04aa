-- SPDX-License-Identifier: MIT
--
-- draws.lua DIR COUNT SEED: change one expectation of a case by one, and see whether cases.lua notices, COUNT times.
-- Tables, cases and kinds of expectations are drawn evenly. Prints each change that it misses, and how many it caught.

local adapter = require "adapter"
local cases = require "cases"

local null = require("dkjson").null
local dir, count, seed = arg[1], tonumber(arg[2]), tonumber(arg[3])
math.randomseed(seed)

local function copy(value)
  if type(value) ~= "table" or value == null then return value end
  local own = {}
  for key, item in pairs(value) do own[key] = copy(item) end
  return own
end

local function keys_of(value, keep)
  local keys = {}
  for key in pairs(value) do
    if not keep or keep(key) then keys[#keys + 1] = key end
  end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  return keys
end

local function drawn(list) return list[math.random(#list)] end

-- A value that is another by one: a number, a truth, a text, or one inside a list or table.
local function other(value)
  if math.type(value) == "integer" then return value + (math.random(2) == 1 and 1 or -1) end
  if type(value) == "boolean" then return not value end
  if type(value) == "string" then return value .. "x" end
  if value == nil or value == null or value.error then return 0 end
  local keys = keys_of(value)
  if #keys == 0 then return { 0 } end
  local own, key = copy(value), drawn(keys)
  own[key] = other(own[key])
  return own
end

local kinds = {}

function kinds.refused(want)
  want.refused = not want.refused
  return "refused"
end

function kinds.groups(want)
  local kind = drawn(keys_of(want.groups, function(k) return not want.drop[k] end))
  if not kind then return nil end
  want.groups[kind] = copy(want.groups[kind])
  local groups = want.groups[kind]
  local g = math.random(#groups)
  local how = math.random(4)
  if how == 1 then
    table.remove(groups, g)
  elseif how == 2 and #groups[g] > 1 then
    local ranks = groups[g]
    ranks[1], ranks[#ranks] = ranks[#ranks], ranks[1]
  else
    groups[g] = other(groups[g])
  end
  return "groups of " .. kind
end

function kinds.ranks(want)
  local column = drawn(keys_of(want.ranks, function(k) return k ~= "rank" and not want.drop_ranks[k] end))
  local ranks = want.ranks.rank
  if not column then return nil end
  local values, at = want.ranks[column], math.random(#ranks)
  local own = {}
  for i = 1, #ranks do own[i] = values.error and null or copy(values[i]) end
  own[at] = other(own[at])
  want.ranks[column] = own
  return column .. " of rank " .. ranks[at]
end

function kinds.lists(want)
  local name = drawn(keys_of(want.lists))
  if not name then return nil end
  want.lists = copy(want.lists)
  want.lists[name] = other(want.lists[name])
  return "list " .. name
end

-- A kind becomes the communicator of one with other groups.
function kinds.same_as(want, job)
  local all = keys_of(want.recorded, function(k) return want.groups[k] and not want.drop[k] end)
  local kind, earlier = drawn(all), drawn(all)
  if not kind then return nil end
  local a, b = job:about(kind), job:about(earlier)
  if a.id == b.id then return nil end
  want.same_as = copy(want.same_as)
  want.same_as[kind] = earlier
  return kind .. " is " .. earlier
end

function kinds.backend(want)
  local kind = drawn(keys_of(want.recorded, function(k) return want.groups[k] and not want.drop[k] end))
  if not kind then return nil end
  want.backend = copy(want.backend)
  local now = want.backend[kind]
  want.backend[kind] = now ~= "gloo" and "gloo" or "nccl"
  return "backend of " .. kind
end

function kinds.options(want, job)
  local kind = drawn(keys_of(want.recorded, function(k)
    return want.groups[k] and not want.drop[k] and job:about(k).id ~= "none"
  end))
  if not kind then return nil end
  want.options = copy(want.options)
  want.options[kind] = not want.options[kind] and { is_high_priority_stream = true } or nil
  return "options of " .. kind
end

function kinds.counts(want)
  if want.error_by_rank then return nil end
  local whole = want.unheld.count == nil
  local name = drawn(keys_of(want.counts, function(k) return k == "created" or whole end))
  want.counts = copy(want.counts)
  want.counts[name] = other(want.counts[name])
  return name
end

function kinds.unheld(want)
  if want.error_by_rank then return nil end
  want.unheld = copy(want.unheld)
  if want.unheld.count then want.unheld.count = other(want.unheld.count) else table.insert(want.unheld, { 0 }) end
  return "unheld"
end

function kinds.error_by_rank(want)
  if not want.error_by_rank then return nil end
  want.error_by_rank = copy(want.error_by_rank)
  want.error_by_rank[drawn(keys_of(want.error_by_rank))] = nil
  return "error_by_rank"
end

local deviations = cases.read(dir .. "/deviations.json")
local names, tables = cases.tables(dir), {}
local order = keys_of(kinds)

-- Draw until there is such an expectation; return the case, what was changed, and whether that was noticed.
local function draw()
  while true do
    local key = drawn(names)
    tables[key] = tables[key] or cases.read(dir .. "/" .. key .. ".json").cases
    local case = drawn(tables[key])
    local deviation, system = (deviations[key] or {})[case.id] or {}, adapter.of(key)
    local want, kind = cases.expectation(case, deviation), drawn(order)
    local needs_job = kind == "same_as" or kind == "options"
    if not want.skip and (want.recorded and not want.refused or kind == "refused" or kind == "error_by_rank") then
      local what = kinds[kind](want, needs_job and system.open(case))
      if what then
        local verdict = cases.compare(system, case, want)
        return key .. " " .. case.id .. ": " .. what, verdict == "fail"
      end
    end
  end
end

local caught = 0
for _ = 1, count do
  local what, noticed = draw()
  if noticed then caught = caught + 1 else print("MISSED " .. what) end
end
print(("seed %d: %d of %d changes caught"):format(seed, caught, count))
os.exit(caught == count)
