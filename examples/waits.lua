-- SPDX-License-Identifier: MIT
--
-- Print which ranks wait for which other ranks in the step of a recipe, and in which calls. Ranks of one type do the
-- same, so for each type of ranks it prints the three longest waits, and how often they occur.
--
--     lua5.4 examples/waits.lua RECIPE WORLD MACHINE [NAME=VALUE ...]

local mg = require "moongrid"

local MOST = 3 -- the number of waits to print for each type

-- Add up the waits of each type: one sum for each call and each type of ranks that this call waits for.
local function add_up(step, timeline, types)
  local found = {}
  for i = 1, #timeline do
    local type, _, number, began, from, _, by = timeline:span(i)
    if by then
      local call = step:entry(types[type].rank, number)
      local line = call.line and " line " .. call.line or ""
      local key = ("%s(%s)%s for rank %d"):format(call.operation, call.family, line, types[by].rank)
      local waits = found[type] or {}
      found[type], waits[key] = waits, waits[key] or { key = key, time = 0, times = 0 }
      waits[key].time, waits[key].times = waits[key].time + from - began, waits[key].times + 1
    end
  end
  return found
end

local function longest(waits)
  local list = {}
  for _, wait in pairs(waits) do list[#list + 1] = wait end
  table.sort(list, function(a, b)
    if a.time ~= b.time then return a.time > b.time end
    return a.key < b.key
  end)
  return list
end

local name, world, machine = ...
assert(machine, "waits.lua RECIPE WORLD MACHINE [NAME=VALUE ...]")
local step = mg.load(name):plan(math.tointeger(tonumber(world)), { select(4, ...) }):step()
print(step)
local proved, verdict, message = step:prove()
if not proved then print(verdict, message) os.exit(1) end
local price, timeline = step:price { machine = machine, timeline = 1000000 }
print(("%.3f ms on %s"):format(1e3 * price.seconds, price.machine))
local types = timeline.types
local found = add_up(step, timeline, types)
for i, type in ipairs(types) do
  if found[i] then
    print(("rank %d and %d others of its type"):format(type.rank, type.ranks - 1))
    for nth, wait in ipairs(longest(found[i])) do
      if nth > MOST then break end
      print(("  %8.3f ms, %d times, in %s"):format(wait.time / 1e9, wait.times, wait.key))
    end
  end
end
