-- SPDX-License-Identifier: MIT
--
-- Families made from families by coordinate and index: the groups at some coordinates, zips that are spread, bundles of unions,
-- pairs without doubles. A case is one line of a program "v.lua", which sees:

local mg = require "moongrid"

-- ranks 0..15 as tp 2 (fastest) x dp 4 x pp 2, and two windows of 8: tp 2 in the lower half, tp 4 in the upper
local function scene()
  local w = mg.world(16)
  local g = mg.grid(w, "tp-dp-pp", { tp = 2, dp = 4, pp = 2 })
  local low = mg.grid(w:window(0, 8), "tp-dp", { tp = 2, dp = mg.fill })
  local high = mg.grid(w:window(8), "tp-dp", { tp = 4, dp = mg.fill })
  return { mg = mg, w = w, g = g, tp = g "tp", low = low, high = high, u = mg.union(low "tp", high "tp"), text = tostring,
           mixed = mg.grid(w:order { 3, 0, 1, 2, 7, 5, 6, 4 }, "x-y", { x = 4, y = 2 }) }
end

local cases = assert(loadfile("tests/lua/cases.lua", "t", _ENV))()(scene) -- with busted's names
local gives, refuses = cases.gives, cases.refuses

-- every group of a family in one line
local listed = "(function(f) local o = {} for _, r in pairs(f) do o[#o + 1] = table.concat(r, ',') end "
  .. "return table.concat(o, ' ') end)"

describe("where", function()
  gives {
    { "text(tp:where { pp = 1 }), tp:where { pp = 1 } == g:at { pp = 1 } 'tp'", "Family of 4 groups of 2: (2:1) x (4:2) + 8", true },
    { "text(tp:where { pp = 1, dp = 2 }), tp:where { dp = 3 } == g:at { dp = 3 } 'tp'", "Family of 1 group of 2: (2:1) x (1) + 12", true },
    { "tp:where { pp = -1 } == tp:where { pp = 1 }, g:at { dp = -4 } 'tp' == g:at { dp = 0 } 'tp'", true, true },
    { listed .. "(tp:where(function(ranks) return ranks[1] % 8 == 2 end))", "2,3 10,11" },
    { listed .. "(tp:where(function(_, group) return group > 5 end)), text(tp:where(function() return true end) == tp)",
      "12,13 14,15", "true" },
    { listed .. "(g 'pp':pairs():where(function(r) return r[1] < 2 end))", "0,8 1,9" },
    { listed .. "(u:where(function(r) return #r == 2 and r[2] % 4 == 3 end))", "2,3 6,7" },
    { "(g 'tp':where(function(r) return r[1] > 3 end)):where { pp = 1 }:ranks(0)", { 8, 9 } }, -- of the same grid
    { "tp:where {} == tp, tp:where { pp = 0 }:where { dp = 1 }:ranks(0), tp:where({ pp = 0 }).coverage", true, { 2, 3 }, "partial" },
    { listed .. "(g('tp', 'dp'):split(4):where { pp = 1 })", "8,9,10,11 12,13,14,15" },
    { listed .. "(g 'dp':pick(0, -1):where { tp = 1 }), " .. listed .. "(g 'dp':pairs():where { tp = 0, pp = 1 })", "1,7 9,15",
      "8,10 10,12 12,14" },
    { listed .. "(g 'pp':pick(0):where { pp = 0, tp = 1 })", "1 3 5 7" }, -- one rank of each: all of it is there
    { listed .. "(tp:twin():where { dp = 0 }), " .. listed .. "(tp:lists():where { dp = 0 })", "0,1 8,9", "0,1 8,9" },
    { listed .. "(tp:map(function(r) return { r[2], r[1] } end):where { dp = 0 })", "1,0 9,8" },
    { listed .. "(u:where(low, { dp = 1 })), " .. listed .. "(u:where(g, { pp = 0 }))", "2,3", "0,1 2,3 4,5 6,7" },
    { listed .. "(tp:where(high, { dp = 1 })), " .. listed .. "(mg.zip(tp:pick(0), tp:pick(1)):where(g, { pp = 1, dp = 0 }))",
      "12,13 14,15", "8,9" },
    { listed .. "(mixed 'x':where { y = 1 }), " .. listed .. "(mixed 'y':where { x = 0 })", "7,5,6,4", "3,7" },
    { "mg.grid(mg.world(1 << 30), 'tp-dp-pp', { tp = 8, pp = 16, dp = mg.fill }) 'tp':where { pp = 15 }.count", 1 << 23 },
    { "(function() local t = mg.topology(w) t.tp = tp:with { timeout = 5 }:where { pp = 0 } t.a = t.tp:where { dp = 1 } "
      .. "return mg.plan(t):text() end)()", "moongrid 1\nworld 16\nfamily tp: (2:1) x (4:2)\nfamily a: (2:1) x (1) + 2\n" },
  }
  refuses {
    { "g 'pp':where { pp = 0 }", "where: no group has all its ranks at pp 0; pp varies inside the groups" },
    { "tp:where { pp = 1 }:where { pp = 0, dp = 2 }", "where: no group has all its ranks at dp 2, pp 0" },
    { "tp:where(low, { dp = 0 }):where(high, {})", "where: no group has all its ranks in the grid" },
    { "tp:where { pp = 2 }", "coordinate 2 of dim 'pp' is out of range (0 to 1)" },
    { "tp:where { pp = -3 }", "coordinate -3 of dim 'pp' is out of range (0 to 1)" },
    { "g:rank { pp = -1 }", "coordinate -1 of dim 'pp' is out of range (0 to 1)" }, -- the rank before the first is none
    { "tp:where(function() end)", "where: the function is true for none of the 8 groups" },
    { "tp:where(function() return 1 end)", "where: the function gave a number for group 0, not true or false" },
    { "tp:where(function() error('no') end)", "no" },
    { "tp:where { pq = 0 }", "unknown dim 'pq'; nearest is 'pp' (tp, dp, pp)" },
    { "tp:where { 0 }", "each dim needs a name as its key, not a number" },
    { "tp:where { pp = '0' }", "the coordinate of dim 'pp' is a string, not an integer" },
    { "tp:where()", "bad argument #1 to 'where' (a table such as { pp = 0 } expected, got no value)" },
    { "tp:where(g)", "bad argument #2 to 'where' (a table such as { pp = 0 } expected, got no value)" },
    { "tp:where(w, {})", "bad argument #1 to 'where' (a table such as { pp = 0 } expected, got moongrid.World)" },
    { "tp:where(mg.grid(mg.world(8), 'x', { x = 8 }), { x = 0 })",
      "where: the family is of a world of 16 ranks, the grid of 8" },
    { "u:where { dp = 1 }", "where: the family was not made from one grid; give the grid of the coordinates, too: where(g, { pp = 0 })" },
    { "w:table { { 0, 1 } }:where { dp = 1 }", "rank 2 is in no group of the table; declare it 'partial' if that is meant" },
    { "w:table({ { 0, 1 } }, 'partial'):where { dp = 1 }",
      "where: the family was not made from one grid; give the grid of the coordinates, too: where(g, { pp = 0 })" },
  }
end)

describe("groups", function()
  gives {
    { "text(tp:groups { 0, 3 }), text(tp:groups(1, 3, 5))", "Family of 2 groups of 2: (2:1) x (2:6)",
      "Family of 3 groups of 2: (2:1) x (3:4) + 2" },
    { "tp:groups(-1) == tp:groups { 7 }, tp:groups { 7, 6, 5, 4, 3, 2, 1, 0 } == tp:renumber { 7, 6, 5, 4, 3, 2, 1, 0 }", true,
      true },
    { listed .. "(tp:groups { 5, 0, 1 }), tp:groups { 5, 0, 1 }.coverage", "10,11 0,1 2,3", "partial" },
    { listed .. "(g 'pp':pairs():groups { -1, 0 }), " .. listed .. "(u:groups { 5, 0 })", "7,15 0,8", "12,13,14,15 0,1" },
    { listed .. "(mg.zip(tp:pick(0), tp:pick(1)):groups { 2, 4 }), tp:groups { 0, 4 }:where { pp = 1 }:ranks(0)", "4,5 8,9",
      { 8, 9 } },
    { "mg.grid(mg.world(1 << 30), 'a-b', { a = 1 << 27, b = mg.fill }) 'a':groups { 0, -1 }.size", 1 << 27 },
    { "(function() for group, ranks in tp:groups() do if group == 7 then return ranks end end end)()", { 14, 15 } },
  }

  refuses {
    { "tp:groups {}", "groups: name at least one of the 8 groups" },
    { "tp:groups { 0, 8 }", "groups: group 8 is out of range (0 to 7, or -1 to -8 from the end)" },
    { "tp:groups(-9)", "groups: group -9 is out of range (0 to 7, or -1 to -8 from the end)" },
    { "tp:groups { 3, 0, 3 }", "groups: group 3 is listed twice" },
    { "tp:groups { 7, -1 }", "groups: group 7 is listed twice" },
    { "tp:groups { 0, 1, 2, 3, 4, 5, 6, 7, 0 }", "groups: the list names 9, but there are 8 groups" },
    { "tp:groups { 'a' }", "element 1 of the list is a string, not an integer" },
    { "tp:groups(1.5)", "bad argument #1 to 'groups' (number has no integer representation)" },
    { "tp:groups(function() return true end)", "bad argument #1 to 'groups' (number expected, got function)" },
  }
end)

describe("zip, spread", function()
  gives {
    { listed .. "(mg.zip(high('tp', 'dp'), low 'tp', 'spread'))",
      "8,9,10,11,12,13,14,15,0,1 8,9,10,11,12,13,14,15,2,3 8,9,10,11,12,13,14,15,4,5 8,9,10,11,12,13,14,15,6,7" },
    { listed .. "(mg.zip(low 'tp', high 'tp', 'spread'))", "0,1,8,9,10,11 2,3,8,9,10,11 4,5,12,13,14,15 6,7,12,13,14,15" },
    { "mg.zip(low 'tp', high 'tp', 'spread').coverage, mg.zip(low 'tp', high 'tp', 'spread').size", "cover", 6 },
    { "mg.zip(tp:pick(0), tp:pick(1), 'spread') == tp, mg.zip(tp, 'spread') == tp", true, true },
    { "(function() local t = mg.topology(w) t.z = mg.zip(high('tp', 'dp'), low 'tp', 'spread') local p = mg.plan(t) "
      .. "local ok = p:rehearse() return ok, #p:dry(8):groups 'z', p:dry(3):groups 'z'[1].index end)()", 4, 4, 1 },
  }
  refuses {
    { "mg.zip(low 'tp', high 'tp')", "zip: 4 groups and 2 groups; the numbers must be equal (bundle, split or spread one side)" },
    { "mg.zip(low 'tp', high 'tp', 'spred')", "unknown option 'spred'; nearest is 'spread' (spread)" },
    { "mg.zip('spread')", "a zip of no families" },
    { "mg.zip('spread', tp)", "bad argument #1 to 'zip' (moongrid.Family expected, got string)" },
    { "mg.zip(tp, u, 'spread')", "zip: rank 0 is in families 1 and 2; world:table(lists, \"cover\") holds such groups, listed one by one" },
  }
end)

describe("bundle of a union", function()
  gives {
    { "#u, " .. listed .. "(u:pick(0):bundle(6)), " .. listed .. "(u:pick(0):bundle(3))", 6, "0,2,4,6,8,12", "0,2,4 6,8,12" },
    { "text(u:bundle(2)), u:bundle(6) == u:lists():bundle(6)",
      "Family of 3 groups of up to 8: union[(4:1) x (2:4) | (8:1) x (1) + 8]", true },
  }
  refuses {
    { "u:bundle(4)", "bundle(4): the number of groups, 6, is not a multiple of it; nearest: 3 or 6" },
    { "u:bundle(7)", "bundle(7): the number of groups, 6, is not a multiple of it; nearest: 6" },
  }
end)

describe("pairs of a ring", function()
  gives { -- a ring of two ranks is one pair, and half way around a ring lies the same rank on both sides
    { listed .. "(tp:pairs 'wrap')", "0,1 2,3 4,5 6,7 8,9 10,11 12,13 14,15" },
    { "tp:pairs 'wrap' == tp:pairs(), tp:pairs 'wrap' == tp, tp:pairs('wrap').coverage", true, true, "partition" },
    { listed .. "(low 'dp':neighbours(2, 'wrap')), low 'dp':neighbours(2, 'wrap') == low 'dp':neighbours(2)", "0,4 2,6 1,5 3,7", true },
    { listed .. "(low 'dp':pairs 'wrap')", "0,2 2,4 4,6 6,0 1,3 3,5 5,7 7,1" },
    { listed .. "(mg.zip(low 'tp':pick(0), high('tp', 'dp'):segments { 1, 3, 1, 3 }):pairs 'wrap')",
      "0,8 2,9 9,10 10,11 11,2 4,12 6,13 13,14 14,15 15,6" },
  }
end)
