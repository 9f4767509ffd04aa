-- SPDX-License-Identifier: MIT
--
-- What the proof of a step assumes, against brute force: random programs of 4 ranks with up to 6 calls on two or three
-- streams. A GPU has room for one kernel, and the streams start theirs in any order that waits and events allow: if the
-- step is proved without an assumption, no such order of starts hangs; and the pairs of families that are assumed to fit
-- together are those whose calls nothing on the rank orders.

local support = dofile "tests/lua/support.lua"
local mg = require "moongrid"

local seed = tonumber(os.getenv "MOONGRID_SEED") or 20261129
local cases = tonumber(os.getenv "MOONGRID_CASES") or 1000
local families = { a = { { 0, 1 }, { 2, 3 } }, b = { { 0, 2 }, { 1, 3 } }, c = { { 0, 3 }, { 1, 2 } }, all = { { 0, 1, 2, 3 } } }
local names, streams = { "a", "b", "c", "all" }, { "main", "x", "y" }

-- A random program: { "call", family, stream }, { "wait", stream, stream waited for }, { "event", stream, number },
-- { "after", stream, number }, { "host", stream waited for }; in `loop` { first, last, times }.
local function random_program()
  local list, calls, nstreams, events = {}, 0, math.random(2, 3), {}
  local most = math.random(2, 6)
  while calls < most do
    local kind, stream = math.random(10), streams[math.random(nstreams)]
    if kind <= 5 then
      list[#list + 1] = { "call", names[math.random(4)], stream }
      calls = calls + 1
    elseif kind <= 7 then
      list[#list + 1] = { "wait", stream, streams[math.random(nstreams)] }
    elseif kind == 8 then
      events[#events + 1] = true
      list[#list + 1] = { "event", stream, #events }
    elseif kind == 9 and #events > 0 then
      list[#list + 1] = { "after", stream, math.random(#events) }
    elseif kind == 10 then
      list[#list + 1] = { "host", streams[math.random(nstreams)] }
    end
  end
  local loop
  if most <= 3 and math.random(2) == 1 then
    local from = math.random(#list)
    loop = { from, math.random(from, #list), 2 }
  end
  return { list = list, loop = loop }
end

-- The same calls in another order, or one call in another place: what ranks may differ in.
local function varied(program)
  local list = table.move(program.list, 1, #program.list, 1, {})
  local i = math.random(#list)
  local j = math.min(#list, i + 1)
  if list[i][1] == "call" and list[j][1] == "call" then list[i], list[j] = list[j], list[i] end
  return { list = list, loop = program.loop }
end

local function code_of(program)
  local lines = { "local e = {}" }
  for i, o in ipairs(program.list) do
    local on = ("s:on '%s'"):format(o[1] == "call" and o[3] or o[2])
    if o[2] == "main" or o[3] == "main" and o[1] == "call" then on = "s" end
    if program.loop and program.loop[1] == i then lines[#lines + 1] = ("s:loop(%d, function()"):format(program.loop[3]) end
    lines[#lines + 1] = o[1] == "call" and ("%s:all_reduce(s.%s, 8)"):format(on, o[2])
      or o[1] == "wait" and ("%s:wait '%s'"):format(on, o[3]) or o[1] == "event" and ("e[%d] = %s:event()"):format(o[3], on)
      or o[1] == "after" and ("%s:wait(e[%d])"):format(on, o[3]) or ("s:host_wait '%s'"):format(o[2])
    if program.loop and program.loop[2] == i then lines[#lines + 1] = "end)" end
  end
  return table.concat(lines, "\n")
end

-- The calls of a program, loops unrolled: { family, before = bits of the calls that are done before it }.
local function calls_of(program)
  local calls, known, recorded, over, host = {}, {}, {}, {}, 0
  for _, stream in ipairs(streams) do known[stream] = 0 end
  local function run(o)
    if o[1] == "call" then
      local family, stream = o[2], o[3]
      local before = known[stream] | host | (over[family] or 0)
      calls[#calls + 1] = { family = family, before = before }
      local all = before | 1 << (#calls - 1)
      known[stream], over[family] = all, all
    elseif o[1] == "wait" then
      known[o[2]] = known[o[2]] | known[o[3]]
    elseif o[1] == "event" then
      recorded[o[3]] = known[o[2]]
    elseif o[1] == "after" then
      known[o[2]] = known[o[2]] | (recorded[o[3]] or 0)
    else
      host = host | known[o[2]]
    end
  end
  local loop = program.loop or { 1, 0, 0 }
  for i = 1, loop[1] - 1 do run(program.list[i]) end
  for _ = 1, loop[3] do
    for i = loop[1], loop[2] do run(program.list[i]) end
  end
  for i = loop[2] + 1, #program.list do run(program.list[i]) end
  return calls
end

local function as_pair(a, b) return a < b and a .. " " .. b or b .. " " .. a end

-- The pairs of families with calls of which neither is before the other.
local function unordered(programs)
  local found = {}
  for _, calls in pairs(programs) do
    for i = 1, #calls do
      for j = i + 1, #calls do
        if calls[i].family ~= calls[j].family and calls[j].before >> (i - 1) & 1 == 0 then
          found[as_pair(calls[i].family, calls[j].family)] = true
        end
      end
    end
  end
  return found
end

-- Whether some order of starts hangs, one kernel at a time on each rank.
local function hangs(programs)
  local index = {} -- [rank][i]: which call of its family it is
  for rank = 0, 3 do
    local n = {}
    index[rank] = {}
    for i, call in ipairs(programs[rank]) do
      n[call.family] = (n[call.family] or 0) + 1
      index[rank][i] = n[call.family]
    end
  end
  local partners = {} -- [rank][i]: { rank, call }
  for rank = 0, 3 do
    partners[rank] = {}
    for i, call in ipairs(programs[rank]) do
      local list = {}
      for _, group in ipairs(families[call.family]) do
        local is_in = false
        for _, r in ipairs(group) do is_in = is_in or r == rank end
        for _, r in ipairs(is_in and group or {}) do
          local at = -1 -- never made
          for k, other in ipairs(programs[r]) do
            if other.family == call.family and index[r][k] == index[rank][i] then at = k end
          end
          list[#list + 1] = { r, at }
        end
      end
      partners[rank][i] = list
    end
  end
  local function is_done(state, rank, i)
    for _, p in ipairs(partners[rank][i]) do
      if p[2] < 0 or state >> (6 * p[1] + p[2] - 1) & 1 == 0 then return false end
    end
    return true
  end
  local seen = {}
  local function search(state)
    if seen[state] then return false end
    seen[state] = true
    local moved, all = false, true
    for rank = 0, 3 do
      local started, done = state >> 6 * rank & 63, 0
      for i = 1, #programs[rank] do
        if started >> (i - 1) & 1 == 1 and is_done(state, rank, i) then done = done | 1 << (i - 1) end
      end
      if done ~= (1 << #programs[rank]) - 1 then all = false end
      if done == started then -- the GPU is free
        for i, call in ipairs(programs[rank]) do
          if started >> (i - 1) & 1 == 0 and call.before & ~done == 0 then
            moved = true
            if search(state | 1 << (6 * rank + i - 1)) then return true end
          end
        end
      end
    end
    return not moved and not all
  end
  return search(0)
end

it("is what nothing orders, and without it no order of starts hangs, in 1,000 random programs", function()
  math.randomseed(seed)
  local n = { proved = 0, assumed = 0, needed = 0, refused = 0, hazard = 0 }
  for case = 1, cases do
    local one = random_program()
    local other = math.random(3) == 1 and varied(one) or one
    local file = support.file(([[return recipe { idle = "allow", build = function(world)
      local g, t = grid(world, "x-y", { x = 2, y = 2 }), topology(world)
      t.a, t.b, t.c, t.all = g "x", g "y", world:table { { 0, 3 }, { 1, 2 } }, g("x", "y")
      return t
    end, step = function(s) if s.all.position %% 2 == 0 then %s
    else %s
    end end }]]):format(code_of(one), code_of(other)), ".lua")
    local step = mg.load(file):plan(4):step()
    local proved, assumes = step:prove()
    local what = ("seed %d, case %d:\n%s\n-- odd ranks:\n%s\n"):format(seed, case, code_of(one), code_of(other))
    local programs = { [0] = calls_of(one), calls_of(other), calls_of(one), calls_of(other) }
    local bad = hangs(programs)
    if not proved then
      n.refused = n.refused + 1
      if assumes == "hazard" then n.hazard = n.hazard + 1 end
      assert.is_true(bad, what)
    elseif assumes then
      n.assumed = n.assumed + 1
      if bad then n.needed = n.needed + 1 end
      local pairs_of = {}
      for _, pair in ipairs(assumes) do pairs_of[as_pair(pair[1], pair[2])] = true end
      assert.same(unordered(programs), pairs_of, what)
    else
      n.proved = n.proved + 1
      assert.is_false(bad, what)
      assert.same({}, unordered(programs), what)
    end
    os.remove(file)
  end
  for what, many in pairs(n) do assert.is_true(many >= cases // 100, what .. " " .. many) end
end)

it("is an error above 256 pairs of families, never a part of them", function()
  local made, calls = {}, {}
  for i = 1, 24 do
    made[i] = ("t.f%d = %s"):format(i, i == 1 and "grid(world, 'x', { x = fill }) 'x'" or "t.f1:twin()")
    calls[i] = ("s:on 's%d':all_reduce(s.f%d, 8)"):format(i, i)
  end
  local file = support.file(([[return recipe { build = function(world) local t = topology(world) %s return t end,
    step = function(s) %s end }]]):format(table.concat(made, "\n"), table.concat(calls, "\n")), ".lua")
  local ok, message = pcall(function() return mg.load(file):plan(2):step():prove() end)
  assert.is_false(ok)
  assert.truthy(tostring(message):find("the proof would assume something about 276 pairs of families; 256 at most", 1, true), message)
  os.remove(file)
end)
