-- SPDX-License-Identifier: MIT
--
-- infer.lua DIR [SYSTEM]: moongrid infer on the groups that the plan of every recorded case has, without their names.
-- Cases that are refused, or whose system has no recipe, do not count. A case is found if the first candidate, planned
-- again, has each group, and at most a tenth more than were given.

local adapter = require "adapter"
local cases = require "cases"
local json = require "dkjson"
local mg = require "moongrid"

local dir, only = arg[1], arg[2]
local deviations = cases.read(dir .. "/deviations.json") or {}

local function key_of(ranks)
  local sorted = table.move(ranks, 1, #ranks, 1, {})
  table.sort(sorted)
  return table.concat(sorted, ",")
end

-- Add the groups of a plan, each once; return how many are new.
local function add(plan, groups)
  local before = #groups
  for _, family in pairs(plan) do
    for _, ranks in family:groups() do
      local key = key_of(ranks)
      if not groups[key] then groups[key], groups[#groups + 1] = true, ranks end
    end
  end
  return #groups - before
end

local function infer(groups)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(json.encode(table.move(groups, 1, #groups, 1, {})))
  file:close()
  local started = mg.now()
  local out = io.popen("build/moongrid infer " .. path .. " --json"):read "a"
  local took = mg.now() - started
  os.remove(path)
  return json.decode(out), took
end

-- Check one case: whether its groups are found, a text, and the seconds; nil: it does not count.
local function check(system, case, deviation)
  local done, verdict, _, job = pcall(cases.check, system, case, deviation)
  if not done or verdict ~= "pass" or not job or not job.recipe then return nil end
  local groups = {}
  for _, plan in ipairs(job.plans and job:plans() or { job.plan }) do add(plan, groups) end
  if #groups == 0 then return nil end
  local answer, took = infer(groups)
  local first = assert(answer and answer.candidates[1], "no answer")
  local all = {}
  local n = add(mg.load(first.recipe):plan(answer.world, first.params), all)
  local left = 0
  for _, ranks in ipairs(groups) do left = left + (all[key_of(ranks)] and 0 or 1) end
  assert(left == #first.left, "what is left is wrong")
  local more = n - (#groups - left)
  return left == 0 and more <= #groups / 10, ("%d ranks, %d groups, %d left, %d more, by %s %s"):format(
    answer.world, #groups, left, more, first.recipe, json.encode(first.params)), took
end

local total = { n = 0, found = 0, most = 0 }
for _, key in ipairs(cases.tables(dir)) do
  local system, of = (not only or only == key) and adapter.of(key), { n = 0, found = 0, most = 0 }
  for _, case in ipairs(system and cases.read(dir .. "/" .. key .. ".json").cases or {}) do
    local found, words, took = check(system, case, (deviations[key] or {})[case.id] or {})
    for _, sums in ipairs(found ~= nil and { of, total } or {}) do
      sums.n, sums.found, sums.most = sums.n + 1, sums.found + (found and 1 or 0), math.max(sums.most, took)
    end
    if found == false then print(("NOT FOUND %s %s: %s"):format(key, case.id, words)) end
  end
  if of.n > 0 then print(("%-22s %d of %d found, at most %.2f s"):format(key, of.found, of.n, of.most)) end
end
print(("%d of %d found, %.1f %%, at most %.2f s"):format(total.found, total.n, 100 * total.found / total.n, total.most))
os.exit(total.found >= 0.95 * total.n and 0 or 1)
