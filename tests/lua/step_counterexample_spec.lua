-- SPDX-License-Identifier: MIT
--
-- A counterexample is true: random steps of 4 ranks are also run by a small simulation to where they halt. There each
-- rank of a counterexample must wait in the call that it names, and the rank that it waits for must be kept from its
-- part of that call by the call that the next entry names.

local support = dofile "tests/lua/support.lua"
local mg = require "moongrid"

local seed = tonumber(os.getenv "MOONGRID_SEED") or 20261129
local cases = tonumber(os.getenv "MOONGRID_CASES") or 1000
local x, y, all = { { 0, 1 }, { 2, 3 } }, { { 0, 2 }, { 1, 3 } }, { { 0, 1, 2, 3 } }
local families = { x = x, x2 = x, y = y, y2 = y, all = all, all2 = all }
-- A call is an all-reduce, or a send ">" or receive "<" between the two ranks of a group.
local calls, streams = { "x", "x2", "y", "y2", "all", "all2", "x>", "x<", "y2>", "y2<" }, { "main", "u", "v", "w" }
local mirror = { [">"] = "<", ["<"] = ">" }

local function any(list) return list[math.random(#list)] end
local function family_of(call) return (call:gsub("[<>]", "")) end

-- A random program, a list of { stream, call [, second call of a group] }, or { stream, waits = stream }, some of them in
-- `loop` { first, last, times }.
local function random_program()
  local list = {}
  for i = 1, math.random(3, 9) do
    local first, second = any(calls), math.random(2) == 1 and any(calls) or nil
    if second and family_of(first) == family_of(second) and first:sub(-1) .. second:sub(-1) ~= "><" then second = nil end
    list[i] = math.random(6) == 1 and { any(streams), waits = any(streams) } or { any(streams), first, second }
  end
  return list
end

local function with_loop(list)
  if math.random(3) == 1 then
    local from = math.random(#list)
    list.loop = { from, math.random(from, #list), math.random(2, 3) }
  end
  return list
end

-- What the other rank of each pair does: the same entries in another order, perhaps on other streams, or one less.
local function varied(program)
  local list = {}
  for i, o in ipairs(program) do
    local one = { math.random(2) == 1 and any(streams) or o[1], waits = o.waits }
    for k = 2, #o do one[k] = o[k]:gsub("[<>]", mirror) end
    table.insert(list, math.random(3) == 1 and math.random(i) or i, one)
  end
  if math.random(8) == 1 then table.remove(list, math.random(#list)) end
  return list
end

local function code_of_call(stream, call)
  local family, how = family_of(call), call:match "[<>]"
  local on = ("s:on '%s'"):format(stream)
  if not how then return ("%s:all_reduce(s.%s, 8)"):format(on, family) end
  return ("%s:%s(s.%s, 1 - s.%s.position, 8)"):format(on, how == ">" and "send" or "recv", family, family)
end

-- Return the lines of a program, and the list of its entries with their lines, loops unrolled. `at`: the first line.
local function code_of(program, at)
  local lines, list, loop = {}, {}, program.loop or { 0, 0, 0 }
  local line_of = {}
  for i, o in ipairs(program) do
    local made = {}
    for k = 2, #o do made[k - 1] = code_of_call(o[1], o[k]) end
    if i == loop[1] then lines[#lines + 1] = ("s:loop(%d, function()"):format(loop[3]) end
    lines[#lines + 1] = o.waits and ("s:on '%s':wait '%s'"):format(o[1], o.waits) or #o == 3
      and ("s:on '%s':group(function() %s end)"):format(o[1], table.concat(made, " ")) or made[1]
    line_of[i] = at + #lines - 1
    if i == loop[2] then lines[#lines + 1] = "end)" end
  end
  local function add(from, to)
    for i = from, to do
      local o = program[i]
      list[#list + 1] = { o[1], o[2], o[3], waits = o.waits, line = line_of[i] }
    end
  end
  if program.loop then
    add(1, loop[1] - 1)
    for _ = 1, loop[3] do add(loop[1], loop[2]) end
    add(loop[2] + 1, #program)
  else
    add(1, #program)
  end
  return table.concat(lines, "\n") .. "\n", list, at + #lines
end

-- Return the index of the nth entry with this call, or nil.
local function find(list, call, nth)
  for i, o in ipairs(list) do
    if o[2] == call or o[3] == call then
      nth = nth - 1
      if nth == 0 then return i end
    end
  end
end

-- Return the index of the entry of rank `other` that meets the call of entry i of `rank`, or nil: it is never made.
local function partner(lists, rank, i, call, other)
  if other == rank then return i end
  local nth = 0
  for k = 1, i do
    local o = lists[rank][k]
    if o[2] == call or o[3] == call then nth = nth + 1 end
  end
  return find(lists[other], (call:gsub("[<>]", mirror)), nth)
end

local function group_of(call, rank)
  for _, group in ipairs(families[family_of(call)]) do
    for _, r in ipairs(group) do
      if r == rank then return group end
    end
  end
end

-- Return for each entry the set of entries of the same rank that must end before it begins. `issued`: all earlier ones,
-- as with MPI, or on a GPU with room for one kernel that runs the calls in the order in which they are made.
local function befores(list, issued)
  local before = {}
  for i, o in ipairs(list) do
    local set = {}
    for k = 1, i - 1 do
      local p = list[k]
      local shares = issued or p[1] == o[1] or p[1] == o.waits
      for a = 2, #o do
        for b = 2, #p do shares = shares or family_of(o[a]) == family_of(p[b]) end
      end
      if shares then
        set[k] = true
        for earlier in pairs(before[k]) do set[earlier] = true end
      end
    end
    before[i] = set
  end
  return before
end

-- Run the lists of all ranks until nothing moves. Return begun[rank][i], ended[rank][i], before[rank][i], whether all end.
local function halt(lists, issued)
  local begun, ended, before = {}, {}, {}
  local whole
  for rank = 0, 3 do begun[rank], ended[rank], before[rank] = {}, {}, befores(lists[rank], issued) end
  local function meets(rank, i, call)
    for _, other in ipairs(call and group_of(call, rank) or {}) do
      local at = partner(lists, rank, i, call, other)
      if not at or not begun[other][at] then return false end
    end
    return true
  end
  repeat
    local moved = false
    whole = true
    for rank = 0, 3 do
      for i, o in ipairs(lists[rank]) do
        local free = not begun[rank][i]
        for k in pairs(free and before[rank][i] or {}) do free = free and ended[rank][k] end
        if free then begun[rank][i], moved = true, true end
        if begun[rank][i] and not ended[rank][i] and meets(rank, i, o[2]) and meets(rank, i, o[3]) then
          ended[rank][i], moved = true, true
        end
        whole = whole and ended[rank][i] or false
      end
    end
  until not moved
  return begun, ended, before, whole
end

-- Return the entry of a line that has begun and not ended.
local function waits_in(list, begun, ended, line)
  for i, o in ipairs(list) do
    if o.line == line and begun[i] and not ended[i] then return i end
  end
end

-- Return what is wrong with a counterexample, or nil.
local function fault_of(waiting, lists, issued)
  local begun, ended, before = halt(lists, issued)
  for n, w in ipairs(waiting) do
    if w.operation then
      local i = waits_in(lists[w.rank], begun[w.rank], ended[w.rank], w.line)
      if not i then return ("entry %d: rank %d does not wait there"):format(n, w.rank) end
      local how = w.operation == "send" and ">" or w.operation == "recv" and "<" or ""
      local to = w.waits_for -- nil in the last entry, if the rank before it waits for a call that is never made
      local at = to and partner(lists, w.rank, i, w.family .. how, to)
      if at and begun[to][at] then return ("entry %d: rank %d has begun the call"):format(n, to) end
      local by = waiting[n % #waiting + 1]
      local k = at and by.operation and waits_in(lists[to], begun[to], ended[to], by.line)
      if at and not (by.rank == to and before[to][at][k]) then
        return ("entry %d: the next one does not keep rank %d from the call"):format(n, to)
      end
    end
  end
end

it("names what keeps each rank from going on, in random steps", function()
  math.randomseed(seed)
  local n = { proved = 0, cycle = 0, unmatched = 0, hazard = 0 }
  for case = 1, cases do
    local one = random_program()
    local other = with_loop(varied(one))
    with_loop(one)
    local before = [[return recipe { idle = "allow", build = function(world)
      local g, t = grid(world, "x-y", { x = 2, y = 2 }), topology(world)
      t.x, t.y, t.all = g "x", g "y", g("x", "y")
      t.x2, t.y2, t.all2 = t.x:twin(), t.y:twin(), t.all:twin()
      return t
    end, step = function(s) if s.rank == 0 or s.rank == 3 then
]]
    local even, list, at = code_of(one, select(2, before:gsub("\n", "")) + 1)
    local odd, others = code_of(other, at + 1)
    local what = ("seed %d, case %d:\n%s-- ranks 1 and 2:\n%s"):format(seed, case, even, odd)
    local file = support.file(before .. even .. "else\n" .. odd .. "end end }", ".lua")
    local step, lists = mg.load(file):plan(4):step(), { [0] = list, others, others, list }
    for _, rules in ipairs { "nccl", "mpi" } do
      local proved, verdict, told, waiting = step:prove(rules)
      local _, _, _, ends = halt(lists, rules == "mpi")
      verdict = proved and "proved" or verdict
      n[verdict] = n[verdict] + 1
      assert.equal(ends, verdict == "proved" or verdict == "hazard", what .. rules .. ": " .. verdict)
      local fault = not proved and fault_of(waiting, lists, rules == "mpi" or verdict == "hazard")
      assert.is_falsy(fault, ("%s%s: %s\n%s"):format(what, rules, told, fault))
    end
    os.remove(file)
  end
  for verdict, many in pairs(n) do assert.is_true(many >= cases // 100, verdict .. " " .. many) end
end)
