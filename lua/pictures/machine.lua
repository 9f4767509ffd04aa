-- SPDX-License-Identifier: MIT
--
-- machine: where the ranks of a world run, for pictures. `levels` has the names of the levels, the farthest first,
-- without crossings such as rails; domains[l][rank] is the rank's domain of level l. A domain of the last level is the
-- place of one rank, so all functions here count only the levels before it.

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

return function(machine, world)
  local m = setmetatable({ machine = machine, levels = {}, domains = {}, reaches = {} }, Machine)
  for _, level in ipairs(machine:levels()) do
    if not level.crossing then
      local list = machine:domains(level.name, world)
      m.levels[#m.levels + 1], m.domains[#m.domains + 1] = level.name, table.move(list, 1, world, 0)
    end
  end
  return m
end
