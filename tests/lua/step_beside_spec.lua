-- SPDX-License-Identifier: MIT
--
-- What stands beside a step's verdict: memory of random programs, executed here with their loops unrolled; random
-- messages, of which the nth sent and the nth received must be alike; families that share communicators; traces.

local support = dofile "tests/lua/support.lua"
local json = require "dkjson"
local mg = require "moongrid"

local seed = tonumber(os.getenv "MOONGRID_SEED") or 20261129
local cases = tonumber(os.getenv "MOONGRID_CASES") or 1000

-- Return the step of a recipe with the text of a step, for families given as Lua text of their lists of groups.
local function step_of(families, text, world)
  local lines = { "return recipe { idle = 'allow', build = function(world) local t = topology(world)" }
  for _, name in ipairs { "a", "b", "c" } do
    local groups = families[name]
    lines[#lines + 1] = groups and ("t.%s = world:table({ %s }, 'partial')"):format(name, groups)
  end
  lines[#lines + 1] = "return t end, step = function(s)\n" .. text .. "\nend }"
  local file = support.file(table.concat(lines, " "), ".lua")
  local step = mg.load(file):plan(world):step()
  os.remove(file)
  return step
end

describe("memory", function()
  -- A random list of { "alloc", name, bytes }, { "free", name }, { "mark", name }, { "loop", times, list }.
  local function random_list(depth, names)
    local list = {}
    for i = 1, math.random(1, 5) do
      local kind, name = math.random(10), "m" .. math.random(names)
      list[i] = kind <= 4 and { "alloc", name, math.random(0, 30) } or kind <= 7 and { "free", name }
        or (kind == 8 or depth == 3) and { "mark", "k" .. math.random(3) }
        or { "loop", math.random(1, 7), random_list(depth + 1, names) }
    end
    return list
  end

  local function code_of(list)
    local lines = {}
    for i, o in ipairs(list) do
      lines[i] = o[1] == "alloc" and ("s:alloc('%s', %d)"):format(o[2], o[3])
        or o[1] == "loop" and ("s:loop(%d, function() %s end)"):format(o[2], code_of(o[3])) or ("s:%s '%s'"):format(o[1], o[2])
    end
    return table.concat(lines, " ")
  end

  local function execute(list, m)
    for _, o in ipairs(list) do
      local name = o[2]
      if o[1] == "mark" then m.at = name end
      for _ = 1, o[1] == "loop" and o[2] or 0 do execute(o[3], m) end
      if o[1] == "free" then m.held[name] = m.held[name] - math.min(m.last[name], m.held[name]) end
      if o[1] == "alloc" then
        m.held[name], m.last[name] = (m.held[name] or 0) + o[3], o[3]
        local sum, by = 0, {}
        for k, bytes in pairs(m.held) do
          sum = sum + bytes
          if bytes > 0 then by[k] = bytes end
        end
        if sum > m.most.peak then m.most = { peak = sum, at = m.at, rank = 0, by = by } end
      end
    end
  end

  it("in loops is that of the loops unrolled", function()
    math.randomseed(seed)
    for case = 1, cases do
      local list, names = {}, math.random(5) == 1 and 70 or 4
      for i = 1, names do list[i] = { "alloc", "m" .. i, math.random(0, 30) } end -- nothing is freed that was never held
      for i = names, 2, -1 do
        local k = math.random(i)
        list[i], list[k] = list[k], list[i]
      end
      table.move(random_list(0, names), 1, 5, names + 1, list)
      local m = { held = {}, last = {}, at = "", most = { peak = 0, at = "", rank = -1, by = {} } }
      execute(list, m)
      local text = code_of(list)
      assert.same(m.most, step_of({}, text, 2):sums().memory, ("seed %d, case %d: %s"):format(seed, case, text))
    end
  end)
end)

describe("messages", function()
  it("of a proved step are alike, the nth sent and the nth received", function()
    math.randomseed(seed)
    local proved, mismatch = 0, 0
    for case = 1, cases do
      local lines, sent = { [0] = {}, {} }, { [0] = {}, {} } -- sent[side]: the bytes of the messages from rank 0 to 1
      for side = 0, 1 do
        for i = 1, math.random(2, 3) do
          local parts, on = {}, ("s:on '%s'"):format(({ "main", "u" })[math.random(2)])
          for k = 1, math.random(2) do
            local bytes = math.random(2)
            parts[k] = side == 0 and ("%s:send(s.a, 1, %d)"):format(on, bytes) or ("%s:recv(s.a, 0, %d)"):format(on, bytes)
            table.insert(sent[side], bytes)
          end
          lines[side][i] = ("%s:group(function() %s end)"):format(on, table.concat(parts, " "))
        end
      end
      local text = ("if s.a.position == 0 then %s else %s end"):format(table.concat(lines[0], " "), table.concat(lines[1], " "))
      local step = step_of({ a = "{ 0, 1 }" }, text, 2)
      for _, rules in ipairs { "nccl", "mpi" } do
        local is, verdict = step:prove(rules)
        local alike = table.concat(sent[0]) == table.concat(sent[1])
        local what = ("seed %d, case %d, %s: %s"):format(seed, case, rules, text)
        if is or verdict == "hazard" then assert.is_true(alike, what) end
        proved, mismatch = proved + (is and 1 or 0), mismatch + (verdict == "mismatch" and 1 or 0)
      end
    end
    assert.is_true(proved >= cases // 100 and mismatch >= cases // 10)
  end)

  it("of a rank to itself that differ are both named", function()
    local step = step_of({ a = "{ 0 }, { 1 }" }, "s:group(function() s:send(s.a, 0, 1)\ns:recv(s.a, 0, 2) end)", 2)
    local _, verdict, told = step:prove()
    assert.same({ "mismatch", "rank 0 (a 0) is in send(a to 0) of 1 bytes line 2, and rank 0 (a 0) in recv(a from 0) of 2 bytes line 3" },
      { verdict, told })
  end)

  it("that nobody receives do not wait, if they are eager", function()
    local step = step_of({ a = "{ 0, 1 }" }, "if s.a.position == 0 then s:send(s.a, 1, 8) end", 2)
    local is, verdict, told = step:prove("mpi", 8)
    assert.same({ false, "unmatched", "rank 0 (a 0) makes send(a to 1) line 2, and nobody receives it" }, { is, verdict, told })
  end)

  it("take equally long whoever comes last", function()
    local seconds = {}
    for late = 0, 1 do
      local step = step_of({ a = "{ 0, 1 }" }, ("if s.a.position == %d then s:compute { seconds = 1 } end "):format(late)
        .. "if s.a.position == 0 then s:send(s.a, 1, 1e9) else s:recv(s.a, 0, 1e9) end", 2)
      for i, efficiency in ipairs { { send = { ["*"] = { { 1, 0.5 } } } }, { recv = { ["*"] = { { 1, 0.5 } } } } } do
        seconds[2 * late + i] = step:price { machine = "node:1[50GB/s] gpu:2[10GB/s]", costs = { efficiency = efficiency } }.seconds
      end
    end
    for _, s in ipairs(seconds) do assert.near(1.2, s, 1e-4) end
  end)

  it("are in a trace on threads of their own, if more than eight move at once", function()
    local file = support.file [[return recipe { build = function(world) local t = topology(world)
      t.a = grid(world, "a", { a = fill }) "a" return t end, step = function(s) s:group(function()
      for i = 0, 7 do if i ~= s.a.position then s:send(s.a, i, 1e6 * (1 + i)) s:recv(s.a, i, 1e6 * (1 + s.a.position)) end end end) end }]]
    local name = os.tmpname() .. ".json"
    local _, err, code = support.run(("build/moongrid step %s --world 8 --machine dgx-h100 -o %s"):format(file, name))
    assert.same({ "", 0 }, { err, code })
    local until_of, slices = {}, 0
    for _, e in ipairs(json.decode(support.read(name)).traceEvents) do
      if e.ph == "X" then
        local thread = e.pid .. " " .. e.tid
        assert.is_true(e.ts >= (until_of[thread] or 0))
        until_of[thread], slices = e.ts + e.dur, slices + 1
      end
    end
    assert.equal(8 * 14, slices)
    os.remove(name)
    os.remove(file)
  end)
end)

describe("families", function()
  it("of equal groups are one communicator, whatever other families send messages", function()
    for _, c in ipairs { "{ 0, 1 }", "{ 0, 1 }, { 2 }", "{ 1, 2 }", "{ 0 }, { 1, 2 }", "{ 0, 2 }, { 1 }", "{ 0, 1, 2 }" } do
      for _, first in ipairs { "a", "b" } do
        local step = step_of({ a = "{ 0, 1, 2 }", b = "{ 0, 1, 2 }", c = c }, ([[
          if s.%s.position == 0 then s:on 'v':all_reduce(s.b, 8) s:on 'u':all_reduce(s.a, 80)
          else s:on 'u':all_reduce(s.a, 80) s:on 'v':all_reduce(s.b, 8) end
          local g = s.c
          if g and g.size > 1 then if g.position == 0 then s:send(g, 1, 8) elseif g.position == 1 then s:recv(g, 0, 8) end end]]):format(first), 3)
        assert.equal("mismatch", (select(2, step:prove())), c)
      end
    end
  end)

  it("are not assumed to fit on a GPU together, if the rank is alone in a group", function()
    local text = "if s.b then s:on 'u':all_gather(s.b, 7) end if s.a%s then s:all_reduce(s.a, 7) end"
    local families = { a = "{ 0, 1 }, { 2 }", b = "{ 0, 1, 2 }" }
    assert.same({ true }, { step_of(families, text:format " and s.a.size == 1", 3):prove() })
    local _, assumes = step_of(families, text:format "", 3):prove()
    table.sort(assumes[1])
    assert.same({ { "a", "b" } }, assumes)
  end)
end)
