-- SPDX-License-Identifier: MIT
--
-- infer.lua DIR [SYSTEM] | random [RECIPE]: moongrid infer on the groups that the plan of every recorded case has,
-- without their names; or of random configurations of every bundled recipe, MOONGRID_DRAWS=n of each (10), with
-- MOONGRID_SEED=n for others. Cases that are refused, or whose system has no recipe, do not count. A case is found if
-- the first candidate, planned again, has each group, and at most a tenth more than were given. Times are of the
-- processor.

local adapter = require "adapter"
local cases = require "cases"
local draws = require "recipe_draws"
local json = require "dkjson"
local mg = require "moongrid"

local dir, only = arg[1], arg[2]
local LARGE <const> = 64 -- ranks; times of larger worlds are told apart

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

-- Return what the command answers, and the seconds of the processor that it took.
local function infer(groups, world)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(json.encode(table.move(groups, 1, #groups, 1, {})))
  file:close()
  local out = io.popen(("build/moongrid infer %s --json --world %d; times"):format(path, world)):read "a"
  os.remove(path)
  local took = 0
  for minutes, seconds in out:match "([^\n]*)\n*$":gmatch "(%d+)m([%d.]+)s" do took = took + 60 * minutes + seconds end
  return json.decode(out), took
end

-- Return whether groups are found, a text, and the seconds.
local function look(groups, world)
  local answer, took = infer(groups, world)
  local first, all, left = assert(answer and answer.candidates[1], "no answer"), {}, 0
  local n = add(mg.load(first.recipe):plan(answer.world, first.params), all)
  for _, ranks in ipairs(groups) do left = left + (all[key_of(ranks)] and 0 or 1) end
  assert(left == #first.left, "what is left is wrong")
  local more = n - (#groups - left)
  return left == 0 and more <= #groups / 10, ("%d ranks, %d groups, %d left, %d more, by %s %s"):format(
    answer.world, #groups, left, more, first.recipe, json.encode(first.params)), took
end

local total = { n = 0, found = 0, most = 0, large = 0 }

local function count(of, world, found, took)
  local what = world > LARGE and "large" or "most"
  of.n, of.found, of[what] = of.n + 1, of.found + (found and 1 or 0), math.max(of[what], took)
end

local function sums(of)
  return ("%d of %d found, at most %.2f s%s"):format(of.found, of.n, of.most,
    of.large > 0 and (", %.2f s at more than %d ranks"):format(of.large, LARGE) or "")
end

-- Look for the groups of some plans, and say so if they are not found.
local function try(of, name, plans)
  local groups = {}
  for _, plan in ipairs(plans) do add(plan, groups) end
  if #groups == 0 then return end
  local world = plans[1].world
  local found, words, took = look(groups, world)
  count(of, world, found, took)
  count(total, world, found, took)
  if not found then print(("NOT FOUND %s: %s"):format(name, words)) end
end

local function recorded(key, deviations)
  local system, of = adapter.of(key), { n = 0, found = 0, most = 0, large = 0 }
  for _, case in ipairs(system and cases.read(dir .. "/" .. key .. ".json").cases or {}) do
    local done, verdict, _, job = pcall(cases.check, system, case, deviations[case.id] or {})
    if done and verdict == "pass" and job and job.recipe then
      try(of, key .. " " .. case.id, job.plans and job:plans() or { job.plan })
    end
  end
  return of
end

local function random(recipe)
  local of = { n = 0, found = 0, most = 0, large = 0 }
  math.randomseed(tonumber(os.getenv "MOONGRID_SEED" or 41))
  for _ = 1, tonumber(os.getenv "MOONGRID_DRAWS" or 10) do
    local plan, words = draws(recipe)
    if plan then try(of, words, { plan }) end
  end
  return of
end

local deviations = dir ~= "random" and cases.read(dir .. "/deviations.json") or {}
for _, key in ipairs(dir == "random" and mg.recipes() or cases.tables(dir)) do
  if not only or only == key then
    local of = dir == "random" and random(key) or dir ~= "random" and recorded(key, deviations[key] or {})
    if of.n > 0 then print(("%-22s %s"):format(key, sums(of))) end
    io.stdout:flush()
  end
end
print(("%s, %.1f %%"):format(sums(total), 100 * total.found / total.n))
os.exit(total.found >= 0.95 * total.n and 0 or 1)
