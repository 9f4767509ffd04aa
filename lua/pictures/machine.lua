-- SPDX-License-Identifier: MIT
--
-- machine: where the ranks of a world run, for pictures. `levels` has the names of the levels, the farthest first,
-- without crossings such as rails; domains[l][rank] is the rank's domain of level l; first[l][domain] is the first
-- domain of level l inside a domain of the level before. A domain of the last level is the place of one rank, so all
-- functions here count only the levels before it.

local moongrid = require "moongrid"

local Machine = {}
Machine.__index = Machine

-- Return how many levels two ranks cross: with levels rack, node and gpu, 0 if they are in one node, 1 if they are in
-- two nodes of one rack, 2 if they are in two racks.
function Machine:reach(a, b)
  local far = #self.levels - 1
  for l = 1, far do
    if self.domains[l][a] ~= self.domains[l][b] then return far - l + 1 end
  end
  return 0
end

-- Return the largest number of levels that two ranks of a group cross.
function Machine:group_reach(family, group)
  local known = self.reaches[family]
  if not known then
    known = {}
    self.reaches[family] = known
  end
  if not known[group] then
    local ranks, most = family:ranks(group), 0
    for i = 2, #ranks do most = math.max(most, self:reach(ranks[1], ranks[i])) end
    known[group] = most
  end
  return known[group]
end

-- Return a text with the number of groups that cross each level, the nearest level first: "; 8 cross a node, 0 cross a
-- rack".
function Machine:crossings(family)
  local words = {}
  for l = #self.levels - 1, 1, -1 do
    local crossing = self.machine:counts(family, self.levels[l]).crossing
    words[#words + 1] = ("%d cross%s a %s"):format(crossing, crossing == 1 and "es" or "", self.levels[l])
  end
  return words[1] and "; " .. table.concat(words, ", ") or ""
end

-- Return the machine without its list of the places of ranks, and the number of its places up to the last rank.
local function without_list(machine, world)
  local text, places = machine:text():match "^(.-) ranks = ", world
  for rank = 0, text and world - 1 or -1 do places = math.max(places, machine:seat(rank) + 1) end
  return text and moongrid.open_machine(text) or machine, places
end

-- Return the first domain of a level, whose domains are `inner`, in each domain of `outer`.
local function firsts(outer, inner)
  local first = {}
  for place, domain in ipairs(inner) do
    local around = outer and outer[place] or 0
    first[around] = first[around] or domain
  end
  return first
end

return function(machine, world)
  local m = setmetatable({ machine = machine, levels = {}, domains = {}, first = {}, reaches = {} }, Machine)
  local plain, places = without_list(machine, world)
  local outer
  for _, level in ipairs(machine:levels()) do
    if not level.crossing then
      local inner = plain:domains(level.name, places)
      local own = plain == machine and inner or machine:domains(level.name, world)
      m.levels[#m.levels + 1], m.first[#m.first + 1], outer = level.name, firsts(outer, inner), inner
      m.domains[#m.domains + 1] = table.move(own, 1, world, 0, {})
    end
  end
  return m
end
