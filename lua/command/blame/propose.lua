-- SPDX-License-Identifier: MIT
--
-- propose: the recipe that makes the groups of the dumps and no others, where none is given. A few groups are those
-- of many recipes, so one that gives other groups the name by which torch describes some is none. Where torch
-- describes all, and no name differs, the recipe names groups and ranks.

local job_of = require "command.blame.dumps"
local search = require "command.infer.recipe_search"

local SHARE <const>, WORLD <const> = 0.4, 64 -- of the work of a search; of a larger job it takes longer

-- How torch describes a group; nil: it does not.
local function description(group)
  if group.desc ~= "undefined" and not job_of.is_world(group) then return group.desc end
end

-- The groups that the dumps tell, whether they made a call or not, and whether torch describes them all; nil: they do
-- not tell the members of all, or no group of all ranks.
local function groups_of(job)
  local groups, whole, alone, described = {}, false, false, true
  for _, group in ipairs(job.order) do
    if not group.ranks and not job_of.is_world(group) then return end
  end
  for _, group in ipairs(job.told) do
    local n = group.ranks and #group.ranks or 0
    if n > 0 then groups[#groups + 1] = group end
    whole, alone = whole or n == job.world, alone or n == 1
    described = described and (n < 2 or job_of.is_world(group) or description(group) ~= nil)
  end
  for rank = 0, job.world - 1 do -- a rank without a dump does not tell of its groups of itself alone
    if alone and not job.ranks[rank] then groups[#groups + 1] = { ranks = { rank } } end
  end
  if whole then return groups, described end
end

-- How many groups have a family with the name that torch gives them; false: none of those that torch describes, or a
-- family of such a name has others.
local function named(plan, groups)
  local n, some = 0, false
  for _, group in ipairs(groups) do
    local desc = description(group)
    some = some or desc ~= nil
    for _, name in ipairs(desc and plan.families or {}) do
      if job_of.alike(desc, name) then
        if not search.has(plan:family(name), group.ranks) then return false end
        n = n + 1
      end
    end
  end
  return (n > 0 or not some) and n
end

-- { recipe, words, plan }, the plan only where it names the groups as torch does; nil: there is none.
return function(job)
  if job.world > WORLD then return end
  local groups, described = groups_of(job)
  if not groups then return end
  local states = search.run(groups, job.world, SHARE, function(plan) return named(plan, groups) end)
  local best, most
  for _, state in ipairs(states) do
    local n = state.exact and named(state.plan, groups)
    if n and (not most or n > most) then best, most = state, n end
  end
  if not best then return end
  local words = ("%s --world %d%s"):format(best.r.name, job.world, best.words:sub(#best.r.name + 1))
  return { recipe = best.words, words = words, plan = described and most > 0 and best.plan or nil }
end
