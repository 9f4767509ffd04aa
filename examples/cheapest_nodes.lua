-- SPDX-License-Identifier: MIT
--
-- Compute what the groups of a plan send between the domains of a machine, and assign nodes to its ranks:
--
--     lua5.4 examples/cheapest_nodes.lua RECIPE WORLD MACHINE [NAME=VALUE ...]
--
-- For each level it prints the bytes that cross between domains and a lower bound of them for any order of the ranks;
-- then the domain that the most bytes leave, and the family that sends most. The assigned nodes follow in rank order.

local mg = require "moongrid"

local name, world, machine = ...
assert(machine, "cheapest_nodes.lua RECIPE WORLD MACHINE [NAME=VALUE ...]")
machine = mg.open_machine(machine)
local recipe = mg.load(name)
recipe:on(machine)
local plan = recipe:plan(math.tointeger(tonumber(world)), { select(4, ...) })
local traffic = plan.traffic or plan:step():traffic()

local function most(values)
  local key
  for other, value in pairs(values) do
    if not key or value > values[key] or value == values[key] and other < key then key = other end
  end
  return key
end

local cost = machine:cost(plan, traffic)
for _, level in ipairs(machine:levels()) do
  local bytes, leaving = machine:leaving(plan, level.name, traffic)
  local busiest = most(leaving)
  if cost.bytes[level.name] then
    print(("%s: %.4g bytes, at least %.4g"):format(level.name, cost.bytes[level.name], cost.bound[level.name]))
  end
  if busiest and leaving[busiest] > 0 then
    local domain = machine:domain_name(level.name, busiest - 1) or level.name .. " " .. busiest - 1
    print(("  %.4g bytes leave %s; %s sends most"):format(leaving[busiest], domain, (most(bytes))))
  end
end
print("NVLink connects each " .. machine:nvlink_level())

if machine:assignable(plan.world) then
  local found, last = machine:assign(plan, traffic), nil
  print(("on the nodes below %.4g bytes"):format(found:cost(plan, traffic).bytes[machine:levels()[1].name]))
  for rank = 0, plan.world - 1 do
    local _, node, _, called = found:seat(rank)
    if node ~= last then print(called or node) end
    last = node
  end
end
