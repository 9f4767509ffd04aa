-- SPDX-License-Identifier: MIT
--
-- The vocabulary in stock Lua: results of every method, field and operator, and the whole message of each refusal.
-- A case is one line of a program "v.lua", which sees what scene.lua returns.

local support = dofile "tests/lua/support.lua"
local mg = require "moongrid"

local scene = dofile "tests/lua/scene.lua"

-- what makes d1 to dn, names of dims
local function many_dims(n) return ("local d, s = {}, { more = 1 } for i = 1, %d do d[i] = 'd' .. i s['d' .. i] = 1 end "):format(n) end

local cases = assert(loadfile("tests/lua/cases.lua", "t", _ENV))()(scene) -- with busted's names
local gives, refuses = cases.gives, cases.refuses

describe("World", function()
  gives {
    { "text(w), #w, w.size, w.offset", "World of 8 ranks", 8, 8, 0 },
    { "w == mg.world(8), w == mg.world(9), w == w:window(0)", true, false, true },
    { "text(w:window(2, 4)), text(w:window(6))", "World of 8 ranks, window 2..5", "World of 8 ranks, window 6..7" },
    { "#w:window(2, 4), w:window(2, 4).size, w:window(2, 4).offset", 4, 4, 2 },
    { "text(w:window(2, 6):window(1, 2))", "World of 8 ranks, window 3..4" },
    { "mg.world(2147483647).size", 2147483647 },
    { "text(w:table { {0,1}, {2,3}, {4,5}, {6,7} })", "Family of 4 groups of 2: (2:1) x (4:2)" },
    { "text(w:table { {0,1}, {3,2}, {4,5}, {6,7} })", "Family of 4 groups of 2: {0,1}{3,2}{4,5}{6,7}" },
    { "w:table({ {0,3} }, 'partial').coverage, w:table({ {0,1}, {1,2} }, 'cover').coverage", "partial", "cover" },
    { "w:window(2, 2):table({ {3,2} }):ranks(0)", { 3, 2 } },
    { "text(w:table '[[0, 1], [2, 3], [4, 5], [6, 7]]')", "Family of 4 groups of 2: (2:1) x (4:2)" },
    { "text(w:table '[0, 1]\\n[2, 3]\\n[4, 5]\\n[6, 7,]\\n')", "Family of 4 groups of 2: (2:1) x (4:2)" },
    { "text(w:table '[[0 2 4 6]\\n [1 3 5 7]]')", "Family of 2 groups of 4: (4:2) x (2:1)" },
    { "text(w:table 'tensor([[0, 2, 4, 6], [1, 3, 5, 7]])')", "Family of 2 groups of 4: (4:2) x (2:1)" },
    { "text(w:table '[list(range(0, 8, 2)), range(7, -1, -2)]')", "Family of 2 groups of 4: {0,2,4,6}{7,5,3,1}" },
    { "text(w:table '[(0, 3), range(1, 3), (7, 6, 5, 4)]')", "Family of 3 groups of up to 4: {0,3}{1,2}{7,6,5,4}" },
    { "text(w:table('[0, 1, 2]', 'partial'))", "Family of 1 group of 3: (3:1) x (1)" },
    { "getmetatable(w), getmetatable(g), getmetatable(tp), getmetatable(p), getmetatable(s), getmetatable(s.tp)",
      false, false, false, false, false, false },
  }
  refuses {
    { "mg.world(0)", "a world has 1 to 2147483647 ranks, not 0" },
    { "mg.world(-1)", "a world has 1 to 2147483647 ranks, not -1" },
    { "mg.world(2147483648)", "a world has 1 to 2147483647 ranks, not 2147483648" },
    { "mg.world('8')", "bad argument #1 to 'world' (number expected, got string)" },
    { "mg.world('x')", "bad argument #1 to 'world' (number expected, got string)" },
    { "mg.world()", "bad argument #1 to 'world' (number expected, got no value)" },
    { "mg.world(1.5)", "bad argument #1 to 'world' (number has no integer representation)" },
    { "w:window(8)", "window offset 8 is outside the 8 ranks (0 to 7)" },
    { "w:window(-1)", "window offset -1 is outside the 8 ranks (0 to 7)" },
    { "w:window(2, 7)", "a window from 2 has 1 to 6 ranks, not 7" },
    { "w:window(2, 0)", "a window from 2 has 1 to 6 ranks, not 0" },
    { "w:window()", "bad argument #1 to 'window' (number expected, got no value)" },
    { "w.window(5)", "bad argument #1 to 'window' (moongrid.World expected, got number)" },
    { "local _ = w.sise", "unknown field of a World 'sise'; nearest is 'size' (size, offset, window, order, table, rank, modes)" },
    { "w.size = 3", "a World cannot be changed" },
    { "local _ = w // 2", "a World is not a number; world.size is its number of ranks" },
    { "local _ = w > 8", "a World is not a number; world.size is its number of ranks" },
    { "w:table { {0,1}, {1,2} }", "rank 1 is in groups 0 and 1 of the table; declare a 'cover' if that is meant" },
    { "w:table({ {0,1}, {2,2} }, 'partial')", "rank 2 occurs twice in group 1 of the table" },
    { "w:table { {0,1} }", "rank 2 is in no group of the table; declare it 'partial' if that is meant" },
    { "w:table({ {0,8} }, 'partial')", "rank 8 of group 0 is out of range; ranks are 0 to 7" },
    { "w:table({ {0,-1} }, 'partial')", "rank -1 of group 0 is out of range; ranks are 0 to 7" },
    { "w:window(2, 2):table({ {0} }, 'partial')", "rank 0 of group 0 is out of range; ranks are 2 to 3" },
    { "w:table({ {0,'a'} })", "group 0 of the table holds a string, not a rank" },
    { "w:table { {0}, 5 }", "group 1 of the table is a number, not a list of ranks" },
    { "w:table {}", "a table has one group or more" },
    { "w:table({ {0}, {} }, 'partial')", "group 1 of the table is empty" },
    { "w:table({ {0} }, 'partal')", "unknown kind of table 'partal'; nearest is 'partial' (partition, partial, cover)" },
    { "w:table({ {0} }, 'parted')", "unknown kind of table 'parted'; known: partition, partial, cover" },
    { "w:table(5)", "bad argument #1 to 'table' (a table such as { { 0, 1 }, { 2, 3 } } expected, got number)" },
    { "w:table ''", "a table has one group or more" },
    { "w:table '0, 1\\n2'", "line 1 of the lists: '[' expected at '0, 1\n2'" },
    { "w:table '0, 1'", "rank 2 is in no group of the table; declare it 'partial' if that is meant" },
    { "w:table '[[0, 1],\\n [2, x]]'", "line 2 of the lists: a rank expected at 'x]]'" },
    { "w:table '[[0, 1.5]]'", "line 1 of the lists: a rank expected at '1.5]]'" },
    { "w:table '[[0, 1]'", "line 1 of the lists: the end of a list expected at the end" },
    { "w:table '[range(9)]'", "line 1 of the lists: a range within the world expected at ')]'" },
    { "w:table '[range(0, 9, 0)]'", "line 1 of the lists: a step other than 0 of range expected at ')]'" },
    { "w:table '[[[0, [1]]]]'", "line 1 of the lists: a rank expected at '[1]]]]'" },
    { "w:table(('list('):rep(5))", "line 1 of the lists: a rank expected at '('" },
    { "w:table '[[0, 9]]'", "rank 9 of group 0 is out of range; ranks are 0 to 7" },
    { "w:table({ {0,1 << 31} }, 'partial')", "rank 2147483648 of group 0 is out of range; ranks are 0 to 7" },
    { "w:order { 0, 1 << 31 }", "rank 2147483648 at position 1 of the order is out of range; ranks are 0 to 7" },
  }
end)

describe("Grid", function()
  gives {
    { "text(mg.grid(w, 'tp-dp', { tp = 2, dp = mg.fill }))", "Grid tp 2 x dp 4 over ranks 0..7" },
    { "text(mg.grid(w, { 'dp', 'tp' }, { tp = 2, dp = 4 }))", "Grid dp 4 x tp 2 over ranks 0..7" },
    { "text(mg.grid(w, 'tp-cp-dp', { tp = 2, dp = 4, ep = 1, aa = 1 }))",
      "Grid tp 2 x cp 1 x dp 4 x aa 1 x ep 1 over ranks 0..7" },
    { "text(mg.grid(w:window(2, 4), 'tp', { tp = mg.fill }))", "Grid tp 4 over ranks 2..5" },
    { "text(mg.grid(mg.world(1), {}, {}))", "Grid 1 over ranks 0..0" },
    { "#g, g.tp, g.pp", 8, 2, 2 },
    { "g == mg.grid(w, 'tp-dp-pp', { tp = 2, dp = 2, pp = mg.fill })", true },
    { "g == mg.grid(w, 'tp-pp-dp', { tp = 2, dp = 2, pp = 2 })", false },
    { "g 'tp':ranks(1), g 'dp':ranks(1), g 'pp':ranks(1)", { 2, 3 }, { 1, 3 }, { 1, 5 } },
    { "g('dp', 'tp'):ranks(1), g:along('dp', 'tp'):ranks(1)", { 4, 5, 6, 7 }, { 4, 5, 6, 7 } },
    { "g:ordered('dp', 'tp'):ranks(1)", { 4, 6, 5, 7 } },
    { "#g(), #g('tp', 'dp', 'pp')", 8, 1 },
    { "g:along { 'tp', index = { 'pp', 'dp' } }:ranks(1), g:along { 'tp', index = 'pp-dp' }:ranks(1)", { 4, 5 }, { 4, 5 } },
    { "g:coord(5, 'tp'), g:coord(5, 'dp'), g:coord(5, 'pp'), g:coord(8, 'tp'), g:coord(-1, 'tp')", 1, 0, 1, n = 6 },
    { "g:coords(6), g:coords(8)", { tp = 0, dp = 1, pp = 1 } },
    { "g:rank { tp = 1, pp = 1 }, g:rank {}, g:rank { tp = 1, dp = 1, pp = 1 }", 5, 0, 7 },
    { "g:dims()", { { "tp", 2 }, { "dp", 2 }, { "pp", 2 } } },
  }
  refuses {
    { "mg.grid(w, 'tp-dp', { tp = 3, dp = mg.fill })",
      "tp 3 does not divide the 8 ranks; nearest: tp 2 or 4, or a world of 6 or 9 ranks" },
    { "mg.grid(w, 'tp-dp', { tp = 3, dp = 2 })", "tp 3 x dp 2 = 6 does not make the 8 ranks; nearest: tp 4, or a world of 6 ranks" },
    { "mg.grid(w:window(2, 4), 'tp', { tp = 3 })",
      "tp 3 does not make the 4 ranks of the window; nearest: tp 4, or a window of 3 ranks" },
    { "mg.grid(w, 'tp-dp', { tp = 0, dp = mg.fill })", "dim 'tp' has size 0; sizes are 1 to 2147483647" },
    { "mg.grid(w, 'tp', { tp = 1 << 40 })", "dim 'tp' has size 1099511627776; sizes are 1 to 2147483647" },
    { "mg.grid(w, 'tp', { tp = '8' })", "the size of dim 'tp' is a string, not an integer or fill" },
    { "mg.grid(w, 'tp', { tp = 8.0 })", "the size of dim 'tp' is 8, a float, not an integer or fill; a // b and math.floor(x) are integers" },
    { "mg.grid(w, 'tp-dp', { tp = mg.fill, dp = mg.fill })",
      "dims 'tp' and 'dp' are both to be inferred; only one can be" },
    { "mg.grid(w, 'tp-dp', { tp = 2, pd = 4 })",
      [[dim 'pd' of size 4 is not in the order "tp-dp"; nearest is 'dp' (tp, dp)]] },
    { "mg.grid(w, { 'tp', 'dp' }, { tp = 2, pd = 4 })", "dim 'pd' of size 4 is not in the order; nearest is 'dp' (tp, dp)" },
    { "mg.grid(w, 'tp', { dp = mg.fill })",
      [[dim 'dp' is to be inferred but is not in the order "tp"; known: tp]] },
    { "mg.grid(w, 'tp-dp-tp', { tp = 2, dp = 2 })", "dim 'tp' occurs twice in the grid" },
    { "mg.grid(w, 'tp--dp', {})", "order 'tp--dp' has an empty name" },
    { "mg.grid(w, '', {})", "the order is empty" },
    { "mg.grid(w, 'tp,dp', { tp = 2, dp = 4 })", "order 'tp,dp': a - stands between names, as in \"tp-dp\"" },
    { "mg.grid(w, 'tp dp', { tp = 2, dp = 4 })", "order 'tp dp': a - stands between names, as in \"tp-dp\"" },
    { "g(nil)", "argument 1 is nil, not the name of a dim" },
    { "g('tp', 5)", "argument 2 is a number, not the name of a dim" },
    { "g:ordered('tp', nil)", "argument 2 is nil, not the name of a dim" },
    { "g 'tp-dp'", "'tp-dp' is not a dim name; give several as separate arguments: (\"tp\", \"dp\")" },
    { "g 'tp,dp'", "'tp,dp' is not a dim name; give several as separate arguments: (\"tp\", \"dp\")" },
    { "mg.grid(w, { 'tp', 5 }, {})", "dim 2 of the order is a number, not a name" },
    { "mg.grid(w, true, {})", "bad argument #2 to 'grid' (order such as \"tp-dp\" expected, got boolean)" },
    { "mg.grid(w, 'tp')", "bad argument #3 to 'grid' (a table such as { tp = 2, dp = fill } expected, got no value)" },
    { "mg.grid(8, 'tp', {})", "bad argument #1 to 'grid' (a World, not the number 8: mg.world(8) makes one, build is given one)" },
    { "mg.grid(w, 'tp', { 8 })", "each size needs a name as its key, not a number" },
    { "mg.grid(w, '2p', { ['2p'] = 8 })",
      "'2p' is not a dim name (a letter or _, then letters, digits or _; at most 31)" },
    { "local x = 2147483647 mg.grid(w, 'a-b-c', { a = x, b = x, c = x })",
      "the product of the sizes overflows 64 bits at dim 'c'" },
    { "local _ = g.tpp", "unknown dim 'tpp'; nearest is 'tp' (tp, dp, pp)" },
    { "local _ = g[1]", "a Grid is not a list; write for _, dim in ipairs(grid:dims()) do; dim[1] is its name, dim[2] its size" },
    { "g.tp = 4", "a Grid cannot be changed" },
    { "g 'xp'", "unknown dim 'xp'; known: tp, dp, pp" },
    { "g('tp', 'tp')", "dim 'tp' is named twice" },
    { "g('tp', 'dp', 'pp', 'tp')", "4 dims asked of a grid that has 3" },
    { "g:along { 'tp', index = { 'dp' } }", "dim 'pp' of size 2 is neither inside nor in the index" },
    { "g:along { 'tp', index = { 'tp', 'pp' } }", "dim 'tp' is named twice" },
    { "g:along { 'tp', idx = { 'pp', 'dp' } }", "unknown option 'idx'; nearest is 'index' (index)" },
    { "g:coord(5, 'xp')", "unknown dim 'xp'; known: tp, dp, pp" },
    { "g:coord(5)", "bad argument #2 to 'coord' (string expected, got no value)" },
    { "g:coords('a')", "bad argument #1 to 'coords' (number expected, got string)" },
    { "g:rank { tp = 2 }", "coordinate 2 of dim 'tp' is out of range (0 to 1)" },
    { "g:rank { tp = -1 }", "coordinate -1 of dim 'tp' is out of range (0 to 1)" },
    { "g:rank { tq = 1 }", "unknown dim 'tq'; nearest is 'tp' (tp, dp, pp)" },
    { "g:rank { 1 }", "each dim needs a name as its key, not a number" },
    { "g:rank(5)", "bad argument #1 to 'rank' (a table such as { pp = 0 } expected, got number)" },
    { many_dims(65) .. "g(table.unpack(d))", "a grid has at most 64 dims" },
    { many_dims(65) .. "g:flatten('x', table.unpack(d))", "a grid has at most 64 dims" },
    { many_dims(65) .. "s.more = nil mg.grid(w, table.concat(d, '-'), s)", "a grid has at most 64 dims" },
    { many_dims(64) .. "mg.grid(w, table.concat(d, '-'), s)", "a grid has at most 64 dims" },
    { "g.along(w)", "bad argument #1 to 'along' (moongrid.Grid expected, got moongrid.World)" },
  }
end)

local fields = "(count, size, largest, coverage, low, high, pick, bundle, pairs, neighbours, map, without, lists, twin, with, "
  .. "ranks, locate, member, modes, groups, explain, split, levels, segments, renumber, where)"

-- every group of a family in one line
local listed = "(function(f) local o = {} for _, r in pairs(f) do o[#o + 1] = table.concat(r, ',') end "
  .. "return table.concat(o, ' ') end)"

describe("Family", function()
  gives {
    { "tp.count, tp.size, tp.coverage, #tp, text(tp)", 4, 2, "partition", 4, "Family of 4 groups of 2: (2:1) x (4:2)" },
    { "tp == g 'tp', tp == g 'dp', tp == four", true, false, false },
    { listed .. "(tp), " .. listed .. "(g 'pp')", "0,1 2,3 4,5 6,7", "0,4 1,5 2,6 3,7" },
    { "(function() local o = {} for i, r in tp:groups() do o[i + 1] = r[1] end return o end)()", { 0, 2, 4, 6 } },
    { "tp:ranks(0), tp:ranks(3)", { 0, 1 }, { 6, 7 } },
    { "text(all:ranks(0)), text(tp:ranks(1)), type(tp:ranks(1)), text(s.tp.ranks)", "{0, 1, 2, 3, 4, 5, 6, 7}",
      "{2, 3}", "table", "{4, 5}" },
    { "(function() local l = tp:ranks(0) l[1], l[3] = 'x', {} return (text(l):gsub('0x%x+', '')) end)()", "{x, 1, table: }" },
    { "#text(mg.grid(mg.world(4096), 'a', { a = 4096 })('a'):ranks(0)), text(mg.grid(mg.world(65), 'a', { a = 65 })('a'):ranks(0))"
      .. ":sub(-14)", 129, ", 31, ..., 64}" },
    { "tp:locate(5)", 2, 1 },
    { "tp:locate(5, 1), four:pick(0):locate(5)", nil, n = 2 },
    { "four:pairs():locate(5, 0)", 3, 1 },
    { "four:pairs():locate(5, 1)", 4, 0 },
    { "select('#', four:pairs():locate(5, 2))", 0 },
    { "text((all:split(2))), text((select(2, all:split(2))))", "Family of 4 groups of 2: (2:1) x (4:2)",
      "Family of 2 groups of 4: (4:2) x (2:1)" },
    { "select('#', all:levels { 2, 2, 2 }), (select(3, all:levels { 2, 2, 2 })):ranks(0)", 3, { 0, 4 } },
    { "four:pick(0, -1):ranks(1), four:pick { 2, 1 }:ranks(0), four:pick(0, 0, -4):ranks(0)", { 4, 7 }, { 2, 1 }, { 0 } },
    { "four:pick(0, -1).coverage, four:pick(0, -1) == four:pick(function(n) return 0, n - 1 end)", "partial", true },
    { "four:pick(function(n) return { n - 1 } end):ranks(0)", { 3 } },
    { "tp:bundle(2):ranks(1), g 'pp':bundle(2):ranks(0)", { 4, 5, 6, 7 }, { 0, 4, 1, 5 } },
    { listed .. "(four:pairs()), " .. listed .. "(four:pairs('wrap'))", "0,1 1,2 2,3 4,5 5,6 6,7",
      "0,1 1,2 2,3 3,0 4,5 5,6 6,7 7,4" },
    { "four:pairs(true) == four:pairs { wrap = true }, four:pairs('wrap').coverage", true, "cover" },
    { listed .. "(four:neighbours(2))", "0,2 1,3 4,6 5,7" },
    { "#g():pairs(), text(g():pairs())", 0, "Family of 0 groups of 0: neighbours(1) of [(1) x (8:1)] (no groups)" },
    { listed .. "(tp:map(function(r) return { r[2], r[1] } end))", "1,0 3,2 5,4 7,6" },
    { listed .. "(tp:map(function(r, group) return { r[1 + group % 2] } end))", "0 3 4 7" },
    { listed .. "(four:without { 6, 1, 1 }), " .. listed .. "(four:without { 7, 6, 5, 4 })", "0,2,3 4,5,7", "0,1,2,3" },
    { "text(tp:without { 4, 5, 6, 7 }), tp:without({}) == tp", "Family of 2 groups of 2: (2:1) x (2:2)", true },
    { listed .. "(four:pairs():without { 1 }), four:pairs():without({ 1 }).coverage", "0 2 2,3 4,5 5,6 6,7", "cover" },
    { "#all:without { 0, 1, 2, 3, 4, 5, 6, 7 }, tp:pick(0):without({ 1 }) == tp:pick(0)", 0, true },
    { "text(tp:lists()), tp:lists() == tp", "Family of 4 groups of 2: {0,1}{2,3}{4,5}{6,7}", true },
    { "tp:twin() == tp, tp:with { timeout = 5, nccl = { max_ctas = 4, blocking = true } } == tp", true, true },
    { "mg.union(tp:pick(0), tp:pick(1)).count, mg.zip(tp:pick(0), tp:pick(1)) == tp", 8, true },
    { "(function(a, b) return text(mg.union(a, b)), mg.union(a, b).size end)(mg.grid(w:window(0, 4), 'x', { x = 4 }) 'x', "
      .. "mg.grid(w:window(4), 'x-y', { x = 2, y = 2 }) 'x')",
      "Family of 3 groups of up to 4: union[(4:1) x (1) | (2:1) x (2:2) + 4]", nil, n = 3 },
    { listed .. "(mg.zip(tp:pick(0), tp:pick(1)):pick(1, 0))", "1,0 3,2 5,4 7,6" },
    { "select('#', mg.same(tp, g 'tp')), select('#', mg.same(tp, tp:twin()))", 0, 0 },
  }
  refuses {
    { "local _ = tp.cuont", "unknown field of a Family 'cuont'; nearest is 'count' " .. fields },
    { "local _ = tp[1]", "a Family is not a list; write for group, ranks in pairs(family) do; family:ranks(0) is the first group" },
    { "tp.x = 5", "a Family cannot be changed" },
    { "tp()", "attempt to call a moongrid.Family value (global 'tp')" },
    { "local _ = tp < tp", "attempt to compare two moongrid.Family values" },
    { "tp:ranks(4)", "group 4 is out of range (0 to 3)" },
    { "tp:ranks(-1)", "group -1 is out of range (0 to 3)" },
    { "tp:ranks()", "bad argument #1 to 'ranks' (number expected, got no value)" },
    { "tp:locate(8)", "rank 8 is out of range (0 to 7)" },
    { "tp:locate(-1)", "rank -1 is out of range (0 to 7)" },
    { "all:split(3)", "split(3) of groups of 8: 3 does not divide 8; sizes that do: 1, 2, 4, 8" },
    { "all:split(0)", "split(0): the size is 1 or more" },
    { "all:split('2')", "bad argument #1 to 'split' (number expected, got string)" },
    { "all:split('a')", "bad argument #1 to 'split' (number expected, got string)" },
    { "mg.grid(mg.world(12), 'x-y-z', { x = 3, y = 2, z = 2 })('x', 'z'):split(2)",
      "split(2) of groups of 6: 2 does not meet mode (3:1) of (3:1)(2:6); sizes that do: 1, 3, 6" },
    { "all:split(3, { tabel = true })", "unknown option 'tabel'; nearest is 'table' (by, table)" },
    { "four:pairs():split(1)", 'split: the groups share ranks; world:table(lists, "cover") holds such groups, listed one by one' },
    { "all:levels { 2, 3 }", "levels: the sizes multiply to 6, the groups have 8; nearest: 2, 4" },
    { "all:levels { 3, 3 }", "levels: the sizes multiply to 9, the groups have 8; nearest: 2, 4" },
    { "mg.union(tp:pick(0):where { pp = 0 }, four:where { pp = 1 }):levels { 2 }", "levels: the groups must have one size; their sizes vary, up to 4" },
    { "all:levels {}", "levels: give sizes with the product 8, the group size" },
    { "all:levels { 0, 8 }", "levels: size 0 of level 0 does not fit" },
    { "all:levels { 2, 'x' }", "element 2 of the list is a string, not an integer" },
    { "all:levels(5)", "bad argument #1 to 'levels' (a table such as { 2, 4 } expected, got number)" },
    { "four:pick(4)", "pick of position 4: groups of 4 have positions 0 to 3, or -1 to -4 from the end" },
    { "four:pick(-5)", "pick of position -5: groups of 4 have positions 0 to 3, or -1 to -4 from the end" },
    { "four:pick()", "pick: name at least one position of groups of 4" },
    { "four:pick {}", "pick: name at least one position of groups of 4" },
    { "four:pick(1, '2')", "bad argument #2 to 'pick' (number expected, got string)" },
    { "tp:bundle('2')", "bad argument #1 to 'bundle' (number expected, got string)" },
    { "w:window(0, '4')", "bad argument #2 to 'window' (number expected, got string)" },
    { "four:pick(1, 'x')", "bad argument #2 to 'pick' (number expected, got string)" },
    { "four:pick { 1, 'x' }", "element 2 of the list is a string, not an integer" },
    { "four:pick(function() end)", "pick: name at least one position of groups of 4" },
    { "four:pick(function() return 'x' end)", "pick: the function gave a string, not positions" },
    { "four:pick(function() error 'mine' end)", "mine" },
    { "tp:bundle(3)", "bundle(3): the number of groups, 4, is not a multiple of it; nearest: 2 or 4" },
    { "tp:bundle(9)", "bundle(9): the number of groups, 4, is not a multiple of it; nearest: 4" },
    { "tp:bundle(0)", "bundle(0): the number of groups is 1 or more" },
    { "four:pairs():bundle(2)", 'bundle: the groups share ranks; world:table(lists, "cover") holds such groups, listed one by one' },
    { "four:pairs 'warp'", "unknown option 'warp'; nearest is 'wrap' (wrap)" },
    { "four:pairs { wrp = 1 }", "unknown option 'wrp'; nearest is 'wrap' (wrap)" },
    { "four:pairs { wrpa = true }", "unknown option 'wrpa'; nearest is 'wrap' (wrap)" },
    { "four:neighbours(1, 'wrp')", "unknown option 'wrp'; nearest is 'wrap' (wrap)" },
    { "four:neighbours(4)", "neighbours(4): the step is 1 to 3 in groups of 4" },
    { "four:neighbours(0)", "neighbours(0): the step is 1 to 3 in groups of 4" },
    { "four:pairs():pairs()", 'neighbours: the groups share ranks already; world:table(lists, "cover") holds such groups, listed one by one' },
    { "tp:map(function() return { 0 } end)",
      "rank 0 is in groups 0 and 1; groups must be disjoint" },
    { "tp:map(function() return {} end)", "group 0 of the table is empty" },
    { "tp:map(function() return 5 end)", "map: the function gave a number, not a list of ranks" },
    { "tp:map(function() return { 8 } end)", "rank 8 of group 0 is out of range; ranks are 0 to 7" },
    { "tp:map(function() return { -1 } end)", "map: element 1 of group 0 is not a rank" },
    { "tp:map(function() error 'mine' end)", "mine" },
    { "tp:map()", "bad argument #1 to 'map' (function expected, got no value)" },
    { "tp:without { 8 }", "without: rank 8 is out of range; ranks are 0 to 7" },
    { "tp:without { 3, -1 }", "without: rank -1 is out of range; ranks are 0 to 7" },
    { "tp:without { 3, 'x' }", "element 2 of the list is a string, not an integer" },
    { "tp:without(3)", "bad argument #1 to 'without' (a table such as { 3, 7 } expected, got number)" },
    { "mg.union(tp, tp)", "union: rank 0 is in families 1 and 2; world:table(lists, \"cover\") holds such groups, listed one by one" },
    { "mg.union()", "a union of no families" },
    { "mg.union(5)", "bad argument #1 to 'union' (moongrid.Family expected, got number)" },
    { "mg.union(tp, small 'x')", "union: families of worlds of 8 and 4 ranks" },
    { "mg.zip(tp, four)", "zip: 4 groups and 2 groups; the numbers must be equal (bundle, split or spread one side)" },
    { "mg.zip(tp, tp)", "zip: rank 0 is in families 1 and 2; world:table(lists, \"cover\") holds such groups, listed one by one" },
    { "mg.zip()", "a zip of no families" },
    { "mg.same(tp, g 'dp')", "the families are not the same: position 1 of group 0 is rank 1 in (2:1) x (4:2) and rank 2 "
      .. "in (2:2) x (2:1)(2:4)" },
    { "mg.same(tp, four)", "the families are not the same: 4 groups (2:1) x (4:2), 2 groups (4:1) x (2:4)" },
    { "mg.same(w:table { {0,1}, {2,3}, {4,5}, {6,7} }, w:table { {0,1,2}, {3}, {4,5}, {6,7} })",
      "the families are not the same: group 0 has 2 ranks in (2:1) x (4:2) and 3 in {0,1,2}{3}{4,5}{6,7}" },
    { "mg.within(tp, small 'x')", "within: the families are of worlds of 8 and 4 ranks" },
    { "mg.same(tp)", "bad argument #2 to 'same' (moongrid.Family expected, got no value)" },
  }
end)

describe("Cartesian families", function()
  gives {
    { "(function() t.c = g:cartesian { periods = { tp = true, pp = false } } return mg.plan(t):text() end)()",
      "moongrid 1\nworld 8\nfamily c: (8:1) x (1) cartesian{tp:2:periodic dp:2 pp:2}\n" },
    { "(function() t.c = g:cartesian { 'pp', 'tp' } return mg.plan(t):text() end)()", -- in the grid's order
      "moongrid 1\nworld 8\nfamily c: (2:1)(2:4) x (2:2) cartesian{tp:2 pp:2}\n" },
    { "(function() t.c = g:cartesian():with { unique = true } return mg.plan(t):text() end)()",
      "moongrid 1\nworld 8\nfamily c: (8:1) x (1) unique cartesian{tp:2 dp:2 pp:2}\n" },
    { "(function() t.c, t.d = g:cartesian(), all t.e = all:with { cartesian = 'tp:2, dp:2 pp:2' } local q = mg.plan(t) "
      .. "return q:shares 'c', q:shares 'd', q:shares 'e' end)()", nil, nil, "c" },
    { "g:cartesian() == all, g:cartesian { 'dp' } == g 'dp'", true, true },
    -- over a world in another order: position and coordinates are those of the grid, whatever the ranks
    { "(function() local o = mg.grid(w:order { 7, 2, 5, 0, 3, 6, 1, 4 }, 'x-y', { x = 4, y = 2 }) t.o = o "
      .. "t.c = o:cartesian { periods = { x = true } } local c = mg.plan(t):dry(0) "
      .. "return c.c.ranks, c.c.position, c.o.x, c.o.y, c.c:shift 'x' end)()", { 7, 2, 5, 0, 3, 6, 1, 4 }, 3, 3, 0, 2, 0 },
    { "mg.plan((function() t.c = g:cartesian { 'dp', 'tp', periods = { dp = true } } return t end)()):dry(2).c:shift 'dp'", 0, 0 },
    { "mg.plan((function() t.c = g:cartesian { 'dp', 'tp' } return t end)()):dry(2).c:shift 'dp'", 0, nil, n = 3 },
    { "mg.plan((function() t.c = g:cartesian { 'dp', 'tp' } return t end)()):dry(2).c:shift('dp', -1)", nil, 0, n = 3 },
    { "mg.plan((function() t.c = mg.grid(w, 'x-y', { x = 8 }):cartesian { 'y', periods = { y = true } } return t end)())"
      .. ":dry(2).c:shift('y', 5)", 0, 0 }, -- a group of one rank
  }
  refuses {
    { "g:cartesian { 'tpp' }", "unknown dim 'tpp'; nearest is 'tp' (tp, dp, pp)" },
    { "g:cartesian { 'tp', 'tp' }", "dim 'tp' is named twice" },
    { "g:cartesian { 'tp', 5 }", "dim 2 of the order is a number, not a name" },
    { "g:cartesian { 'tp', periods = { dp = true } }", "unknown periodic dim 'dp'; known: tp" },
    { "g:cartesian { period = {} }", "unknown option of a Cartesian family 'period'; nearest is 'periods' (periods)" },
    { "g:cartesian { periods = true }", "periods are a table such as { x = true }, not a boolean" },
    { "g:cartesian { periods = { 'tp' } }", "each periodic dim needs a name as its key, not a number" },
    { "g:cartesian { periods = { tp = 1 } }", "the period of dim 'tp' is a number, not true or false" },
    { "g:cartesian 'tp'", "bad argument #1 to 'cartesian' (a table such as { \"x\", \"y\" } expected, got string)" },
    { "mg.grid(mg.world(1), {}, {}):cartesian()", "a grid without dims has no Cartesian groups" },
    { "t.x = all:with { cartesian = 'a:3 b:2' }",
      "family 'x' has groups of 8 ranks, but its Cartesian shape a:3 b:2 has 6; nearest: a 4" },
    { "tp:with { cartesian = { 'tp' } }", "option 'cartesian' is text such as \"x:4:periodic y:2\", not a table" },
    { "tp:with { cartesian = 'tp:2:cyclic' }", "cartesian: dim 'tp' is 'cyclic'; known: periodic" },
    { "t.x = tp t.x = t.x:with { cartesian = 'a:4' }",
      "family 'x' has groups of 2 ranks, but its Cartesian shape a:4 has 4; nearest: a 2" },
    { "s.tp:shift 'tp'", "family 'tp' has no Cartesian shape: it lacks the option 'cartesian'" },
    { "mg.plan((function() t.c = g:cartesian() return t end)()):dry(2).c:shift 'xp'",
      "unknown dim 'xp'; known: tp, dp, pp" },
  }
end)

describe("options", function()
  local names, makers = {}, table.concat(support.makers, ", ")
  for i, option in ipairs((mg.options())) do names[i] = option.name end
  gives {
    { "(function() t.x = tp:with { timeout = 2.5, lazy = true }:with { backend = 'mpi' } return mg.plan(t):text() end)()",
      "moongrid 1\nworld 8\nfamily x: (2:1) x (4:2) lazy timeout_us=2500000 backend=mpi\n" },
    { "(function() t.x = tp:with { nccl = { min_ctas = 2, blocking = false } } return mg.plan(t):text() end)()",
      "moongrid 1\nworld 8\nfamily x: (2:1) x (4:2) nccl{blocking=0 min_ctas=2}\n" },
    { "(function() t.x = tp t.y = tp:with { unique = true } t.z = tp:twin() local q = mg.plan(t) "
      .. "return q:shares 'y', q:shares 'z' end)()", nil, n = 3 },
    { "(function() t.x = tp t.y = tp:with { first = true } return mg.plan(t):shares 'x' end)()", "y" },
  }
  refuses {
    { "tp:with { timeuot = 5 }", "unknown option 'timeuot'; nearest is 'timeout' (" .. table.concat(names, ", ") .. ")" },
    { "tp:with { timeout = 0 }", "option 'timeout' is a number of seconds above 0, not 0" },
    { "tp:with { timeout = '5' }", "option 'timeout' is a number of seconds above 0, not a string" },
    { "tp:with { timeout = -1 }", "option 'timeout' is a number of seconds above 0, not -1" },
    { "tp:with { timeout = 2e9 }", "a timeout is 0 (the default) to 1e9 seconds, not 2e+09" },
    { "tp:with { unique = 1 }", "option 'unique' is true or false, not a number" },
    { "tp:with { lazy = true }:with { first = true }", "a family is 'first' or 'lazy', not both" },
    { "tp:with { backend = 'mpii' }", "unknown backend 'mpii'; nearest is 'mpi' (" .. makers .. ", none)" },
    { "tp:with { backend = 'ncclmpinccl' }", "unknown backend 'ncclmpinccl'; known: " .. makers .. ", none" },
    { "tp:with { backend = 5 }", ([[option 'backend' is "%s" or "none"]]):format(table.concat(support.makers, '" or "')) },
    { "tp:with { nccl = 5 }", "option 'nccl' is a number, not a table of fields" },
    { "tp:with { nccl = { max_ctas = 65 } }", "nccl field 'max_ctas' is 1 to 64, not '65'" },
    { "tp:with { nccl = { max_ctas = 'x' } }", "nccl field 'max_ctas' is 1 to 64, not 'x'" },
    { "tp:with { nccl = { 5 } }", "each nccl field needs a name as its key, not a number" },
    { "tp:with { nccl = { net_name = 'eth0 max_ctas=4' } }", -- must not become a second field
      "nccl field 'net_name' is text without blanks and commas, not 'eth0 max_ctas=4'" },
    { "tp:with { nccl = { net_name = 'eth0\\nmax_ctas=4' } }",
      "nccl field 'net_name' is text without blanks and commas, not 'eth0\\nmax_ctas=4'" },
    { "tp:with { nccl = { max_ctas = {} } }", "nccl field 'max_ctas' is a table" },
    { "tp:with { nccl = { net_name = ('x'):rep(64) } }", "nccl field 'net_name' has at most 63 characters" },
    { "local many = {} for i = 1, 17 do many['w' .. i] = 4096 end tp:with { windows = many }", "option 'windows' has at most 16 numbers" },
    { "tp:with { nccl = { max_ctas = 2, min_ctas = 4 } }",
      "nccl field 'min_ctas' is 4, above 'max_ctas', which is 2" },
    { "tp:with { 5 }", "each option needs a name as its key, not a number" },
    { "tp:with()", "bad argument #1 to 'with' (a table such as { timeout = 600 } expected, got no value)" },
  }
end)

describe("module", function()
  local bundled = {}
  for path in io.popen("ls lua/moongrid/recipes/*.lua | LC_ALL=C sort"):lines() do
    bundled[#bundled + 1] = path:match "([^/]+)%.lua$"
  end
  gives {
    { "mg._VERSION, mg.recipes()", "moongrid " .. support.version, bundled },
    { "text(picotron), text(picotron:plan(8)):match '^%C*'", "Recipe", "Plan of 7 families over 8 ranks, digest 85f82f07..." },
    { "picotron:plan(8, { tp = 2 }) == picotron:plan(w, { tp_size = '2' }), picotron:plan(8).recipe", true, "picotron" },
    { "picotron:ask(picotron:plan(8, { tp = 2 }):dry(3), 'str')", "TP(2)-CP(1)-PP(1)-DP(4)-Rank(3)" },
    { "picotron:ask(picotron:plan(8, { tp = 2 }):dry(3), 'tp_group_ids', {})", { 2, 3 } },
  }
  local words = { "_VERSION", "aligned", "auto", "checkpoint", "closure", "concurrent", "covers", "disjoint", "fill", "flat", "grid",
    "is_saved", "load", "machine", "move", "moves", "now", "open_machine", "options", "pictures", "plan", "presets", "probe",
    "recipes", "relabel", "same", "saved", "spread", "status", "tensor", "topology", "union", "within", "world", "zip" }
  table.move(support.backends, 1, #support.backends, #words + 1, words) -- a function for each backend
  table.sort(words)
  for i = 33, #words do words[i] = i == 33 and "..." or nil end -- a message has no more
  refuses {
    { "local _ = mg.laod", "unknown field of moongrid 'laod'; nearest is 'load' (" .. table.concat(words, ", ") .. ")" },
    { "mg.load()", "bad argument #1 to 'load' (string expected, got no value)" },
    { "mg.load 'picotrn'", "no recipe 'picotrn': neither bundled nor a file; nearest is 'picotron' "
      .. "(" .. table.concat(bundled, ", ") .. ")" },
    { "mg.load 'nothere/x.lua'", "cannot open nothere/x.lua: No such file or directory, in "
      .. (support.run "pwd":gsub("\n", "")) },
    { "local _ = picotron.pln", "unknown field of a Recipe 'pln'; nearest is 'plan' (plan, ask, group, set, call, info, run, complete, on)" },
    { "picotron:plan()", "bad argument #1 to 'plan' (number expected, got no value)" },
    { "picotron:plan(0, {})", "a world has 1 to 2147483647 ranks, not 0" },
    { "picotron:plan(8, 5)", "parameters are a table such as { name = value }, with plain values" },
    { "picotron:plan(8, { 5 })", "argument '5' is not of the form NAME=VALUE" },
    { "picotron:plan(8, { tp = print })", "parameters are a table such as { name = value }, with plain values" },
    { "picotron:plan(w:window(0, 4), {})", "a recipe is planned for a whole world, not for a window of it" },
    { "picotron:ask(s)", "bad argument #2 to 'ask' (string expected, got no value)" },
    { "picotron:ask(5, 'str')", "bad argument #1 to 'ask' (moongrid.State expected, got number)" },
    { "picotron:ask(picotron:plan(8):dry(0), 'str', { print })", "arguments of a query are a table such as { name = value }, with plain values" },
    { "picotron:ask(picotron:plan(8):dry(0), 'str', { x = 1 / 0 })", "arguments of a query are a table such as { name = value }, with plain values" },
    { "picotron:ask(picotron:plan(8):dry(0), 'str', { x = '\\xff' })", "arguments of a query are a table such as { name = value }, with plain values" },
    { "picotron:plan(8, { tp = { 1, a = 2 } })", "parameters are a table such as { name = value }, with plain values" },
    { "picotron:ask(picotron:plan(8):dry(0), 'stt', {})", "unknown query 'stt'; nearest is 'str' (cp_dp_group_ids, cp_dp_world_size, "
      .. "cp_first_rank, cp_group_ids, cp_last_rank, cp_rank, cp_recv_rank, cp_send_rank, cp_world_size, dp_first_rank, "
      .. "dp_group_ids, dp_last_rank, dp_rank, dp_world_size, global_rank, local_rank, pp_first_rank, pp_group_ids, "
      .. "pp_is_first_stage, pp_is_last_stage, pp_last_rank, pp_next_rank, pp_prev_rank, pp_rank, pp_world_size, str, tp_first_rank, tp_group_ids, tp_last_rank, tp_rank, tp_world_size, world_size)" },
    { "s:close() picotron:ask(s, 'str', {})", "the state is closed" },
  }
end)

describe("A finalizer", function()
  it("that a program calls by hand, which takes the debug library, frees nothing", function()
    local g = mg.grid(mg.world(8), "x", { x = 8 })
    local free = debug.getmetatable(g).__gc
    free()
    free(nil)
    for _, value in ipairs { mg.fill, io.stdout, 5, "x", {} } do free(value) end
    assert.are.equal(8, #g)
    free(g)
    pcall(free, g)
    assert.are.equal(8, #g)
  end)

  it("and a debug hook frees what the collector finds", function()
    local alive = setmetatable({}, { __mode = "k" })
    debug.sethook(function() local _ = ("x"):rep(1000) .. #alive end, "", 1)
    for i = 1, 500 do alive[mg.grid(mg.world(8), "x", { x = 8 })] = i end
    debug.sethook()
    collectgarbage()
    collectgarbage() -- the first one ran the finalizers
    assert.is_nil((next(alive)))
  end)
end)
