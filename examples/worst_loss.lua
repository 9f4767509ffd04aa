-- SPDX-License-Identifier: MIT
--
-- Find, for each level of a machine, the domain whose loss costs a job most: the most bytes without a copy or, if these
-- are equal, the most bytes to move. Print also the first tensor of which one domain has all copies of some part.
--
--     lua5.4 examples/worst_loss.lua RECIPE WORLD MACHINE [NAME=VALUE ...]

local mg = require "moongrid"

local recipe_name, world, machine = ...
assert(machine, "worst_loss.lua RECIPE WORLD MACHINE [NAME=VALUE ...]")
world, machine = math.tointeger(tonumber(world)), mg.open_machine(machine)
local recipe = mg.load(recipe_name)
recipe:on(machine)
local plan = recipe:plan(world, { select(4, ...) })
local losses = plan:losses()

for _, level in ipairs(machine:levels()) do
  local domains, worst = machine:family(level.name, world), nil
  for domain = 0, domains.count > 1 and domains.count - 1 or -1 do
    local sums = losses:sums(domains:ranks(domain))
    if not worst or sums.missing > worst.missing or sums.missing == worst.missing and sums.moved > worst.moved then
      worst = sums
      worst.domain = domain
    end
  end
  if worst then
    print(("%s %d: %s to %d ranks, %d bytes moved, %d without a copy"):format(level.name, worst.domain, worst.how,
                                                                              worst.layout, worst.moved, worst.missing))
  end
  for _, tensor in ipairs(plan.tensors) do
    local domain, rank = plan:together(tensor, domains)
    if domain and domains.count > 1 then
      print(("  %s %d has all %d copies of some of %s"):format(level.name, domain, #plan:holders(tensor, rank), tensor))
      break
    end
  end
end
