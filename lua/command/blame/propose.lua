-- SPDX-License-Identifier: MIT
--
-- propose: without --recipe, find a recipe that makes exactly the groups of the dumps. Many recipes make the same few
-- groups. So a recipe is rejected if it uses a name from torch's descriptions for other groups. If torch describes all
-- groups, and all names agree, the recipe's names are used for groups and ranks.

local job_of = require "command.blame.dumps"
local search = require "command.infer.recipe_search"

local SHARE <const>, WORLD <const> = 0.4, 64 -- share of the work that `moongrid infer` may do; largest world

-- Return torch's description of a group, or nil.
local function description(group)
  if group.desc ~= "undefined" and not job_of.is_world(group) then return group.desc end
end

-- Return the groups that the dumps list, with or without calls, and whether torch describes all of them. Return nil if
-- the dumps do not give the members of every group, or have no group of all ranks.
local function groups_of(job)
  local groups, whole, alone, described = {}, false, false, true
  for _, group in ipairs(job.order) do
    if not group.ranks and not job_of.is_world(group) then return end
  end
  for _, group in ipairs(job.listed) do
    local n = group.ranks and #group.ranks or 0
    if n > 0 then groups[#groups + 1] = group end
    whole, alone = whole or n == job.world, alone or n == 1
    described = described and (n < 2 or job_of.is_world(group) or description(group) ~= nil)
  end
  for rank = 0, job.world - 1 do -- add the group { rank } of each rank without a dump
    if alone and not job.ranks[rank] then groups[#groups + 1] = { ranks = { rank } } end
  end
  if whole then return groups, described end
end

-- Return how many groups are in the family that torch's description names. Return false if torch describes groups and
-- none is in such a family, or if such a family does not have the group.
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

-- Return { recipe, words, plan }, with the plan only if it names the groups as torch does; nil if no recipe fits.
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
