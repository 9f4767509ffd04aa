-- SPDX-License-Identifier: MIT
--
-- tree.lua - turn a tree of computers, with switches, blocks or cliques above them, into the levels of a machine. In
-- this file a computer is a host, since a node is a node of the tree. A level is a height in the tree. A host that is
-- attached higher than others has its own domain at each level between. Places are in the order of the tree; ranks go
-- to the hosts in the order in which the file lists them.

local file = ...

local NAMES = 1 << 18 -- the lists of a text may have this many names, and one more for each byte of the text
local LEVELS = 13     -- the most levels above a host

local Tree = {}
Tree.__index = Tree

-- Return an empty tree, whose nodes are numbers. `above` is the word for the node above a host.
local function new(above)
  return setmetatable({ above = above, n = 0, nhosts = 0, named = 0, host = {}, switch = {}, hosts = {}, name = {},
    line = {}, parent = {}, slots = {}, out = {}, notes = {}, own = {} }, Tree)
end

-- Return the node of a host (kind "host") or of a switch, block or clique ("switch"); add it if it is not there.
-- `plain` is true if the name has only letters, digits and _.-, so that it needs no check.
function Tree:node(kind, name, where, plain)
  local of = self[kind]
  local i = of[name]
  if i then return i end
  if not plain and name:find "[^%w_.-]" then file.check("the name of a " .. kind, name, where) end
  i = self.n + 1
  self.n, self.name[i], self.line[i], of[name] = i, name, where, i
  if kind == "host" then
    self.nhosts = self.nhosts + 1
    self.hosts[self.nhosts] = i
  end
  return i
end

local function shown(name) return #name > 60 and name:sub(1, 60) .. "..." or name end

-- Return a position as words: "line 3" or "items[3]".
local function place(where) return type(where) == "number" and "line " .. where or tostring(where) end

-- Add a host, which must not be there yet, and return its node. Ranks go to hosts in the order of these calls. `slots`
-- and `parent` may be nil.
function Tree:add(name, where, slots, parent)
  local i = self.host[name]
  if i then file.fault(where, "host '%s' is there twice, first in %s", shown(name), place(self.line[i])) end
  i = self:node("host", name, where)
  self.slots[i], self.parent[i], self.ordered = slots, parent, true
  return i
end

-- Return the number of slots, 0 to 65536, in a text.
function Tree.count(text, where)
  local n = text:find "^%d+$" and #text < 10 and tonumber(text)
  if not n then file.fault(where, "'%s' is not a number of slots", shown(text)) end
  if n > 65536 then file.fault(where, "a host has at most 65536 slots, not %d", n) end
  return n
end

function Tree:below(i, parent, where)
  local known = self.parent[i]
  if known and known ~= parent then
    file.fault(where, "%s '%s' is below %s '%s', and below '%s' already", self.host[self.name[i]] == i and "host"
      or self.above, shown(self.name[i]), self.above, shown(self.name[parent]), shown(self.name[known]))
  end
  self.parent[i] = parent
end

-- Return the node of a switch or block that the file describes at `where`. Refuse a second description.
function Tree:describe(name, where)
  local i = self:node("switch", name, where)
  if self.own[i] then
    file.fault(where, "%s '%s' is there twice, first in %s", self.above, shown(name), place(self.line[i]))
  end
  self.own[i], self.line[i] = true, where
  return i
end

-- Attach the hosts or switches (`kind`) of a list of names below a switch.
function Tree:put(kind, list, parent, where)
  self:names(list, where, function(name, plain)
    self:below(self:node(kind, name, where, plain), parent, where)
  end)
end

-- Refuse a switch that is named below another switch and is not described by an `entry` ("line") of its own.
function Tree:whole(entry)
  for i = 1, self.n do
    if self.switch[self.name[i]] == i and not self.own[i] then
      file.fault(self.line[i], "%s '%s' is named here and has no %s of its own: the file may be cut short", self.above,
        shown(self.name[i]), entry)
    end
  end
end

-- ------------------------------------------------------------------------------------------------------- lists

-- Read the ranges "1-3,07]" at a position. Return { { first, last, digits }, ... } and the position after the bracket,
-- or nil and the position of the wrong text.
local function ranges(list, at)
  local all = {}
  if not list:find("]", at, true) then return nil, at - 1 end
  repeat
    local low, behind = list:match("^(%d+)()", at)
    if not low or #low > 11 then return nil, at end
    local high, after = list:match("^%-(%d+)()", behind)
    high = tonumber(high or low)
    if #(tostring(high)) > 11 or high < tonumber(low) then return nil, behind end
    all[#all + 1] = { tonumber(low), high, #low }
    at = after or behind
    local ends = list:sub(at, at)
    if ends ~= "," and ends ~= "]" then return nil, at end
    at = at + 1
  until ends == "]"
  return all, at
end

-- Call each(name, plain) for all names of Slurm's "n[1-3,07],m[1-2]x[0-1]" (src/common/hostlist.c). `plain` is that of
-- Tree:node.
function Tree:names(list, where, each)
  local most, plain = NAMES + file.length, not list:find "[^%w_.,%[%]-]"
  local function expand(parts, k, name)
    local part = parts[k]
    if not part then
      if #name > 255 then file.limit(where, "the name '%s' has more than 255 bytes", shown(name)) end
      self.named = self.named + 1 + #name // 64 -- long names count more, because they take longer
      if self.named > most then
        file.limit(where, "the lists of names have more than %d names, the limit for %d bytes", most, file.length)
      end
      return each(name, plain)
    elseif type(part) == "string" then
      return expand(parts, k + 1, name .. part)
    end
    for _, range in ipairs(part) do
      local form = name .. "%0" .. range[3] .. "d"
      for i = range[1], range[2] do expand(parts, k + 1, form:format(i)) end
    end
  end
  local at = 1
  repeat
    local parts, bad = {}
    while true do
      local text, behind = list:match("^([^%s,%[%]%%]+)()", at)
      if text then parts[#parts + 1] = text end
      if list:sub(behind or at, behind or at) ~= "[" then
        bad = #parts == 0 or text and #parts > 1 -- no name, or text after the last bracket
        at = not bad and behind or at
        break
      end
      local all, next_at = ranges(list, (behind or at) + 1)
      parts[#parts + 1], at = all, next_at
      if not all then bad = true break end
    end
    local ends = list:sub(at, at)
    if bad or ends ~= "," and ends ~= "" then
      file.fault(where, "a list of names, as n[1-4,08],m1, expected, not '%s'", shown(list:sub(at)))
    end
    expand(parts, 1, "")
    at = at + 1
  until ends == ""
end

-- Let ranks go only to the hosts of a list, in the order of the list. `what` names the list in messages.
function Tree:order(list, where, what)
  local chosen, seen = {}, {}
  self:names(list, where, function(name)
    local i = self.host[name]
    if not i then file.fault(where, "%s has host '%s', which is not in the file", what, shown(name)) end
    if seen[i] then file.fault(where, "%s has host '%s' twice", what, shown(name)) end
    seen[i], chosen[#chosen + 1] = true, i
  end)
  self.chosen, self.ordered, self.ranks = chosen, true, nil
end

-- ---------------------------------------------------------------------------------------------------- the machine

-- Refuse the switch i, which is in a loop; the message shows the loop.
local function refuse_loop(t, i)
  local loop, at = { t.name[i] }, i
  repeat
    at = t.parent[at]
    loop[#loop + 1] = t.name[at]
  until at == i or #loop > 8
  file.fault(t.line[i], "%s '%s' is below itself: %s", t.above, shown(t.name[i]), table.concat(loop, " < "))
end

-- Refuse switches that are above themselves, also if no host is below them.
local function check_loops(t)
  local seen = {}
  for i = 1, t.n do
    local at = i
    while at and not seen[at] do
      seen[at] = i
      at = t.parent[at]
    end
    if at and seen[at] == i then refuse_loop(t, at) end
  end
end

-- Return a table of the heights of nodes, 0 for a host, and the largest height.
local function heights(t, hosts)
  local height, most, parent = {}, 0, t.parent
  for k = 1, #hosts do
    local at, h = hosts[k], 0
    height[at] = 0
    while parent[at] do
      at, h = parent[at], h + 1
      if h > LEVELS then
        while parent[at] do at, h = parent[at], h + 1 end
        file.limit(nil, "%d levels of %ses above a host are more than %d", h, t.above, LEVELS)
      end
      if (height[at] or 0) >= h then break end
      height[at] = h
    end
    if h > most then most = h end
  end
  return height, most
end

-- Return the nodes at the top, and the nodes below each node, in the order of the first host below them.
local function children_of(t, hosts)
  if not next(t.parent) then return hosts, {} end
  local children, roots, placed = {}, {}, {}
  for _, at in ipairs(hosts) do
    while true do
      local up = t.parent[at]
      local list = not up and roots or children[up]
      if not list then
        list = {}
        children[up] = list
      end
      list[#list + 1] = at
      if not up or placed[up] then break end
      placed[up], at = true, up
    end
  end
  return roots, children
end

-- Return the levels from the top, and the hosts in the order of places. A domain of a level is a node of this height;
-- or, without a name, a lower node whose parent is above this height.
local function levels_of(t, hosts)
  local height, top = heights(t, hosts)
  local domains, children = children_of(t, hosts)
  local levels, counts = {}, { #domains }
  for h = top, 0, -1 do
    local names, below, each, n = {}, {}, {}, 0
    for k, at in ipairs(domains) do
      local own = height[at] == h
      names[k] = own and t.name[at] ~= "" and t.name[at]
      if h > 0 then
        local list = own and children[at] or { at }
        each[k] = #list
        for i = 1, #list do below[n + i] = list[i] end
        n = n + #list
      end
    end
    local name = h == 0 and "node" or h == 1 and t.above or t.above .. h
    levels[#levels + 1] = { name = name, counts = counts, domains = names }
    if h > 0 then domains, counts = below, each end
  end
  return levels, domains
end

-- Return the place of each rank, or nil if ranks fill the places in order. t.ranks has the host of each rank, t.slot
-- the rank's place in the host; without t.slot the ranks of a host fill its places in order.
local function places(t, hosts, slots)
  local at, list, first = {}, {}, 0
  for k = 1, #hosts do at[hosts[k]], first = first, first + slots[k] end
  for r, i in ipairs(t.ranks) do
    if t.slot then
      list[r] = at[i] + t.slot[r]
    else
      list[r], at[i] = at[i], at[i] + 1
    end
  end
  for r = 1, #list do
    if list[r] ~= r - 1 then return list end
  end
end

-- Return the table of the machine. `nodes` is nil, or a text as in Tree:names: then ranks go only to these hosts, in
-- this order.
function Tree:machine(nodes)
  local notes, hosts = self.notes, self.hosts
  if nodes then self:order(nodes, nil, "nodes=") end
  if self.chosen then
    hosts = self.chosen
  elseif next(self.out) then
    hosts = {}
    for _, i in ipairs(self.hosts) do
      if self.out[i] then
        notes[#notes + 1] = ("host '%s' gets no ranks: %s"):format(self.name[i], self.out[i])
      else
        hosts[#hosts + 1] = i
      end
    end
  end
  if next(self.parent) then check_loops(self) end
  if #hosts == 0 then file.fault(nil, "there is no host in it%s", notes[1] and ": " .. notes[1] or "") end
  local levels, list = levels_of(self, hosts)
  local m = { levels = levels, node = #levels - 1, notes = notes }
  local slots, some = {}, false
  for k = 1, #list do
    local n = self.slots[list[k]]
    slots[k], some = n or 1, some or n
  end
  if some then levels[#levels + 1] = { name = "gpu", counts = slots } end
  if self.ranks then
    m.ranks = places(self, list, slots)
  elseif self.ordered then
    local at, plain, order = {}, true, {}
    for k = 1, #list do at[list[k]] = k - 1 end
    for k = 1, #hosts do order[k], plain = at[hosts[k]], plain and at[hosts[k]] == k - 1 end
    if not plain then m.hosts = order end
  end
  return m
end

return new
