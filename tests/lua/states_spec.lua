-- SPDX-License-Identifier: MIT
--
-- Topologies, plans, states and groups in stock Lua, tested as vocabulary_spec tests worlds, grids and families.

local scene = dofile "tests/lua/scene.lua"
local cases = assert(loadfile("tests/lua/cases.lua", "t", _ENV))()(scene) -- with busted's names
local gives, refuses = cases.gives, cases.refuses

local families = [[

  tp                    4 groups of 2: (2:1) x (4:2)
  again                 4 groups of 2: (2:1) x (4:2)
  dp                    4 groups of 2: (2:2) x (2:1)(2:4)
  edge                  2 groups of 2: (2:5) x (2:2)
  ring                  8 groups of 2: neighbours(1, wrap) of [(2:1)(2:4) x...
  one                   8 groups of 1: (1) x (8:1)]]
local groups = [[

  tp                    position 1 of 2 in group 2
  again                 position 1 of 2 in group 2
  dp                    position 0 of 2 in group 3
  edge                  position 1 of 2 in group 0
  ring                  position 1 of 2 in group 2
  ring                  position 0 of 2 in group 3
  one                   position 0 of 1 in group 5]]

describe("Topology", function()
  gives {
    { "text(t), #t, text(T), #T", "Topology of 0 families over 8 ranks", 0,
      "Topology of 6 families over 8 ranks" .. families, 6 },
    { "(function() for i = 10, 30 do t['a' .. i] = i == 10 and "
      .. "mg.world(8):table({ { 0, 1, 2, 3, 4, 5, 7, 6 }, { 6, 0, 1, 2, 3, 4, 5 }, { 7, 5, 3, 1, 0, 2, 4 } }, 'cover') "
      .. "or tp end local lines = {} for line in text(t):gmatch '[^%c]+' do lines[#lines + 1] = line end "
      .. "return #lines, lines[2], #lines[2], lines[20], lines[21] end)()",
      21, "  a10                   3 groups of up to 8: {0,1,2,3,4,5,7,6}{6,0,1,2,3,4,...", 78,
      "  a28                   4 groups of 2: (2:1) x (4:2)", "  ... 2 more" },
    { "T.tp == tp, T.grid == g", true, true },
    { "T:has 'tp', T:has 'grid', T:has 'tpp', t:has 'tp'", true, true, false, false },
    { "(function() local o = {} for name in pairs(T) do o[#o + 1] = name end return o end)()",
      { "tp", "again", "dp", "edge", "ring", "one" } },
    { "(function() local x = ('x'):rep(31) t[x] = tp return t[x] == tp end)()", true },
  }
  refuses {
    { "t.has = tp", "'has' is a field or method of a State; give the family another name, such as 'has_group'" },
    { "t:has()", "bad argument #1 to 'has' (string expected, got no value)" },
    { "t.a = tp t.a = g 'dp'",
      "'a' is in the topology already, since v.lua:1; name yours otherwise, or assign nil first" },
    { "t.a = tp t.a = g 'tp'",
      "'a' is in the topology already, since v.lua:1; name yours otherwise, or assign nil first" },
    { "t.a = tp t.a = tp:twin()",
      "'a' is in the topology already, since v.lua:1; name yours otherwise, or assign nil first" },
    { "t.g = g t.g = tp", "'g' is in the topology already, since v.lua:1; name yours otherwise, or assign nil first" },
    { "t.g = g t.g = g", "'g' is in the topology already, since v.lua:1; name yours otherwise, or assign nil first" },
    { "t.a = tp t.a = nil return t.a", "unknown family 'a'; there are none" },
    { "t.a = tp t.a = nil t.a = nil", "'a' is assigned nothing (nil); a topology holds families, grids and tensors" },
    { "t.a = nil", "'a' is assigned nothing (nil); a topology holds families, grids and tensors" },
    { "t.a = {}", "'a' is assigned a table; a topology holds families, grids and tensors: world:table{ {0, 1}, {2, 3} } makes "
      .. "groups of lists" },
    { "t[1] = tp", "what a topology holds has a name as its key, not a number" },
    { "t['a b'] = tp", "'a b' is not a family name (a letter or _, then letters, digits or _; at most 31)" },
    { "t.x = small 'x'", "family 'x' is of a world of 4 ranks, the topology of 8" },
    { "t.x = small", "grid 'x' is of a world of 4 ranks, the topology of 8" },
    { "local _ = t.a", "unknown family 'a'; there are none" },
    { "local _ = T.tpp", "unknown family 'tpp'; nearest is 'tp' (tp, again, dp, edge, ring, one, grid)" },
    { "mg.topology(8)", "bad argument #1 to 'topology' (a World, not the number 8: mg.world(8) makes one, build is given one)" },
  }
end)

describe("Plan", function()
  local known = "(world, digest, families, grids, recipe, notes, params, functions, concurrent, tensors, machine, traffic, laws, spares, "
    .. "json, text, schedule, family, grid, counts, rehearse, check, law, shares, dry, why, rules, creates, communicators, "
    .. "leaders, lines, idle, ...)"
  gives {
    { "#p, p.world, p.recipe, p.families, p.grids", 6, 8, "", { "tp", "again", "dp", "edge", "ring", "one" }, { "grid" } },
    { "p.digest, text(p)", "193230719ef7fac32416da6d2de06b8c", "Plan of 6 families over 8 ranks, digest 19323071..." .. families },
    { "p == mg.plan(T), p == mg.plan(t), text(mg.plan(t))", true, false, "Plan of 0 families over 8 ranks, digest 2c566764..." },
    { "(function() local o = {} for n, f in pairs(p) do o[#o + 1] = n .. f.count end return o end)()",
      { "tp4", "again4", "dp4", "edge2", "ring8", "one8" } },
    { "p:family 'tp' == tp, p:grid 'grid' == g", true, true },
    { "p:counts()", { families = 6, groups = 22, singles = 8, communicators = 14 } },
    { "p:counts(5)", { families = 6, groups = 6, singles = 1, communicators = 4 } },
    { "p:rehearse()", 14, 28 },
    { "p:check()", 52, 14 },
    { "(function() local w = mg.world(2^21 | 0) local t = mg.topology(w) t.a = mg.grid(w, 'a', { a = mg.fill }) 'a' "
      .. "return mg.plan(t):check() end)()", 1024, nil, n = 3 },
    { "p:shares 'again', p:shares 'tp'", "tp", nil, n = 3 },
    { "p:text()", [[
moongrid 1
world 8
grid grid: tp 2 x dp 2 x pp 2 over ranks 0..7
family tp: (2:1) x (4:2)
family again: (2:1) x (4:2)
family dp: (2:2) x (2:1)(2:4)
family edge: (2:5) x (2:2)
family ring: neighbours(1, wrap) of [(2:1)(2:4) x (2:2)]
family one: (1) x (8:1)
]] },
    { "p:schedule(5)", [[
    0  tp[2] as 1 of 2, for: tp again ring
    1  dp[3] as 0 of 2, for: dp
    2  edge[0] as 1 of 2, for: edge
    3  ring[3] as 0 of 2, for: ring
]] },
    { "(p:schedule():match '^[^\\n]*')", "    0  tp               4 communicators at once, 2 ranks each" },
    { "(p:json():match '\"by_family\": (%b{})')", '{"tp": 4, "dp": 4, "edge": 2, "ring": 4}' },
    { "(p:json(5):match '\"edge\": (%b{})')", '{"index": 0, "position": 1, "size": 2, "communicator": 2, "launch_order": 3, "ranks": [0,5]}' },
  }
  refuses {
    { "local _ = p.digets", "unknown field of a Plan 'digets'; nearest is 'digest' " .. known },
    { "p.x = 5", "a Plan cannot be changed" },
    { "mg.plan(5)", "bad argument #1 to 'plan' (moongrid.Topology expected, got number)" },
    { "p:family 'xx'", "unknown family 'xx'; known: tp, again, dp, edge, ring, one" },
    { "p:grid 'gird'", "unknown grid 'gird'; nearest is 'grid' (grid)" },
    { "p:shares 'xx'", "unknown family 'xx'; known: tp, again, dp, edge, ring, one" },
    { "p:counts(8)", "rank 8 is out of range; ranks are 0 to 7" },
    { "p:counts(-1)", "rank -1 is out of range; ranks are 0 to 7" },
    { "p:json(8)", "rank 8 is out of range; ranks are 0 to 7" },
    { "p:json(-1)", "rank -1 is out of range; ranks are 0 to 7" },
    { "p:schedule(8)", "rank 8 is out of range; ranks are 0 to 7" },
    { "p:schedule(-7)", "rank -7 is out of range; ranks are 0 to 7" },
    { "p:schedule('x')", "bad argument #1 to 'schedule' (number expected, got string)" },
    { "p:dry(8)", "rank 8 is out of range in a world of 8" },
    { "p:dry(-1)", "rank -1 is out of range in a world of 8" },
    { "p:dry()", "bad argument #1 to 'dry' (number expected, got no value)" },
  }
end)

describe("State", function()
  gives {
    { "text(s), #s, s.rank, s.world", "State of rank 5 of 8: 7 groups, 4 communicators" .. groups, 7, 5, 8 },
    { "s.ncomms, s.ngroups, s.plan == p", 4, 7, true },
    { "text(s.tp), text(s.edge), text(s.one)", "Group tp[2]: 1 of 2", "Group edge[0]: 1 of 2", "Group one[5]: 0 of 1" },
    { "s.grid", { tp = 1, dp = 0, pp = 1 } },
    { "s:coord('grid', 'tp'), s:coord('grid', 'dp')", 1, 0 },
    { "s.machine.machines, s.machine.index, s.machine.local_size, s.machine.local_rank, s.machine.gpus, s.machine.gpu",
      1, 0, 8, 5, 0, nil, n = 7 },
    { "s.machine == s.machine, s.machine.cores >= s.machine.usable_cores, s.machine.memory > 0", true, true, true },
    { "(function() local o = {} for name in pairs(s.machine) do o[#o + 1] = name end return o end)()",
      { "name", "machines", "index", "local_size", "local_rank", "cores", "usable_cores", "memory", "gpus" } },
    { "#s:groups 'ring', s:groups 'ring'[1].ranks, s:groups 'ring'[2].ranks", 2, { 4, 5 }, { 5, 0 } },
    { "(function() T.lone = four:pick(0) local d = mg.plan(T):dry(5) return d.lone, d:groups 'lone' end)()", nil, {}, n = 3 },
    { "(function() T.lone = four:pick(0) local o = {} for name, group in pairs(mg.plan(T):dry(5)) do "
      .. "o[#o + 1] = name .. (group and group.index or '-') end return o end)()",
      { "tp2", "again2", "dp3", "edge0", "ring2", "one5", "lone-" } },
    { "s:prove()", 0 },
    { "s:create 'tp'", true },
    { "s:create 'xx'", nil, "rank 5: unknown family 'xx'; known: tp, again, dp, edge, ring, one", 101, n = 4 },
    { "(function() s:close() s:close() return text(s) end)()", "State (closed)" },
    { "(function() do local z <close> = s end return text(s) end)()", "State (closed)" },
    { "(function() local group = s.tp s:close() return text(group) end)()", "Group (closed)" },
    { "(function() local group = p:dry(5).tp collectgarbage() return group.ranks end)()", { 4, 5 } },
  }
  refuses {
    { "local _ = s.tpp", "unknown family 'tpp'; nearest is 'tp' (tp, again, dp, edge, ring, one)" },
    { "s.tp = 5", "a State cannot be changed" },
    { "local _ = s.machine.machins", "unknown field of the machine 'machins'; nearest is 'machines' (name, machines, index, local_size, "
      .. "local_rank, cores, usable_cores, memory, gpus, gpu)" },
    { "s.machine.machines = 2", "the machine cannot be changed" },
    { "s:close() return s.machine", "the state is closed" },
    { "s:groups 'x'", "unknown family 'x'; known: tp, again, dp, edge, ring, one" },
    { "s:groups()", "bad argument #1 to 'groups' (string expected, got no value)" },
    { "s:coord('gird', 'tp')", "unknown grid 'gird'; nearest is 'grid' (grid)" },
    { "s:coord('grid', 'tq')", "unknown dim 'tq'; nearest is 'tp' (tp, dp, pp)" },
    { "s:coord('grid')", "bad argument #2 to 'coord' (string expected, got no value)" },
    { "s:create()", "bad argument #1 to 'create' (string expected, got no value)" },
    { "s:close() return s.rank", "the state is closed" },
    { "s:close() return #s", "the state is closed" },
    { "s:close() return s:groups 'tp'", "the state is closed" },
    { "s:close() return pairs(s)", "the state is closed" },
    { "local group = s.tp s:close() return group.position", "the state of this group is closed" },
    { "local group = s.tp local rank = group.position s:close() return group.position", "the state of this group is closed" },
    { "local groups = s:groups 'tp' local size = groups[1].size s:close() return groups[1].size",
      "the state of this group is closed" },
    { "local rank = s.rank s:close() return s.rank", "the state is closed" },
    { "local group = s.tp s:close() return group:next()", "the state of this group is closed" },
  }
end)

describe("Group", function()
  gives {
    { "s.edge.position, s.edge.size, s.edge.index, #s.edge", 1, 2, 0, 2 },
    { "s.edge.first, s.edge.last, s.edge.ranks, s.edge.name", 0, 5, { 0, 5 }, "edge" },
    { "s.edge:next(), s.edge:next(false), s.edge:next 'wrap', s.edge:next(true), s.edge:next { wrap = true }", nil, nil, 0, 0, 0, n = 6 },
    { "s.edge:prev(), s.dp:prev(), s.dp:prev 'wrap', s.dp:next()", 0, nil, 7, 7, n = 5 },
    { "s.edge:at(0), s.edge:at(-1), s.edge:at(2), s.edge:at(-3)", 0, 5, nil, nil, n = 5 },
    { "s.edge:position_of(5), s.edge:position_of(0), s.edge:position_of(1)", 1, 0, nil, n = 4 },
    { "s.edge:contains(0), s.edge:contains(1), s.edge:contains(99), s.edge:contains(-1)", true, false, false, false },
    { "s.tp == s.again, s.tp == p:dry(5).tp, s.tp == p:dry(4).tp, s.tp == s.dp", true, true, false, false },
  }
  local known = "(position, size, index, first, last, ranks, name, backend, launch_order, next, prev, at, position_of, contains, shift, segment, "
    .. "window, device, buffer, allreduce, broadcast, allgather, reduce_scatter, all_to_all, sendrecv, barrier)"
  refuses {
    { "local _ = s.edge.rnak", "unknown field of a Group 'rnak'; nearest is 'ranks' " .. known },
    { "local _ = s.edge.comm", "unknown field of a Group 'comm'; known: " .. known:sub(2, -2) },
    { "s.tp.position = 5", "a Group cannot be changed" },
    { "s.edge:next 'warp'", "unknown option 'warp'; nearest is 'wrap' (wrap)" },
    { "s.edge:next { wrp = 1 }", "unknown option 'wrp'; nearest is 'wrap' (wrap)" },
    { "s.edge:prev { wrp = 1 }", "unknown option 'wrp'; nearest is 'wrap' (wrap)" },
    { "s.edge:next(1)", "bad argument #1 to 'next' (\"wrap\" expected, got number)" },
    { "s.edge:at('x')", "bad argument #1 to 'at' (number expected, got string)" },
    { "local _ = s.edge.rank", "a Group has no field 'rank'; `position` is the index of this rank in the group, and the `rank` of the state is its rank in the world" },
    { "s.edge:position_of()", "bad argument #1 to 'position_of' (number expected, got no value)" },
    { "s.tp.next()", "bad argument #1 to 'next' (moongrid.Group expected, got no value)" },
  }
end)
