-- SPDX-License-Identifier: MIT
--
-- Words that cut and number families, or make them from lists: the groups that they make, the rule that stays, and
-- the whole message of each refusal. A case is one line of a program "v.lua", which sees a world of 16 ranks:

local support = dofile "tests/lua/support.lua"
local mg = require "moongrid"

local function listed(f)
  local groups = {}
  for _, ranks in pairs(f) do groups[#groups + 1] = table.concat(ranks, ",") end
  return table.concat(groups, " ")
end

local function scene()
  local w = mg.world(16)
  local g = mg.grid(w, "a-b-c", { a = 2, b = 4, c = 2 })
  local t = mg.topology(w)
  t.eight = g("a", "b")
  return { mg = mg, fill = mg.fill, w = w, g = g, eight = g("a", "b"), b = g "b", t = t, text = tostring,
                        odd = g("a", "b"):pick(0, 1, 3, 4, 5, 7), listed = listed,
                        group = mg.plan(t):dry(13).eight }
end

local cases = assert(loadfile("tests/lua/cases.lua", "t", _ENV))()(scene) -- with busted's names
local gives, refuses = cases.gives, cases.refuses

describe("split", function()
  gives {
    { "text((eight:split(2, { by = 'row' })))", "Family of 8 groups of 2: (2:1) x (2:8)(4:2)" },
    { "listed((eight:split(4, { by = 'row' })))", "0,1,2,3 8,9,10,11 4,5,6,7 12,13,14,15" },
    { "listed((select(2, eight:split(4, { by = 'row' }))))", "0,4 8,12 1,5 9,13 2,6 10,14 3,7 11,15" },
    { "listed((odd:split(3)))", "0,1,3 4,5,7 8,9,11 12,13,15" },
    { "listed((select(2, odd:split(3))))", "0,4 1,5 3,7 8,12 9,13 11,15" },
    { "listed((odd:split(3, { by = 'row' })))", "0,1,3 8,9,11 4,5,7 12,13,15" },
    { "text((odd:split(3, { by = 'row' })))",
      "Family of 4 groups of 3: split(3 by row) of [pick{0,1,3,4,5,7} of (8:1) x (2:8)]" },
    { "listed(select(2, odd:levels { 3, 2 }))", "0,4 1,5 3,7 8,12 9,13 11,15" },
    { "odd:split(3):bundle(2) == odd, odd:split(6) == odd", true, true },
    { "listed(odd:bundle(2))", "0,1,3,4,5,7,8,9,11,12,13,15" },
    { "listed((mg.zip(b:pick(0), b:pick(2, 3)):split(1)))", "0 4 6 1 5 7 8 12 14 9 13 15" },
    { "listed(odd:split(3):pick(-1, 0))", "3,0 7,4 11,8 15,12" },
  }
  refuses {
    { "eight:split(2, { by = 'rows' })", "unknown order of pieces 'rows'; nearest is 'row' (row)" },
    { "eight:split(2, { by = 1 })", "unknown order of pieces '1'; known: row" },
    { "eight:split(2, 'row')", "bad argument #2 to 'split' (a table such as { by = \"row\" } expected, got string)" },
    { "eight:split(3, { by = 'row' })", "split(3) of groups of 8: 3 does not divide 8; sizes that do: 1, 2, 4, 8" },
    { "odd:split(4)", "split(4) of groups of 6: 4 does not divide 6; sizes that do: 1, 2, 3, 6" },
    { "eight:segments { 5, 3 }:split(1, { by = 'row' })", "split by row: the groups must have one size; their sizes vary, up to 5" },
    { "eight:segments { 5, 3 }:split(1)",
      "a split of a cut family needs explicit lists: call lists() first; its cost grows with the number of ranks" },
    { "eight:segments { 5, 3 }:bundle(3)", "bundle(3): the number of groups, 4, is not a multiple of it; nearest: 2 or 4" },
  }
end)

describe("segments", function()
  gives {
    { "listed(eight:segments { 5, 3 })", "0,1,2,3,4 5,6,7 8,9,10,11,12 13,14,15" },
    { "text(eight:segments { 5, 3 })", "Family of 4 groups of up to 5: segments{5,3} of [(8:1) x (2:8)]" },
    { "eight:segments { 5, 3 }.coverage, eight:segments { 5, fill } == eight:segments { 5, 3 }", "partition", true },
    { "text(eight:segments { 4, fill }), eight:segments { 8 } == eight", "Family of 4 groups of 4: (4:1) x (4:4)", true },
    { "listed(eight:segments { 5, 2, 1 }:pick(0))", "0 5 7 8 13 15" },
    { "listed(odd:segments { 1, fill, 2 })", "0 1,3,4 5,7 8 9,11,12 13,15" },
    { "eight:segments { 5, 3 }:bundle(2) == eight", true },
    { "eight:segments { 5, 3 }:locate(14)", 3, 1 },
    { "(function() t.dcp = eight:segments { 5, 3 } return mg.plan(t):counts().communicators end)()", 6 },
  }
  refuses {
    { "eight:segments { 5, 2 }", "segments: the sizes sum to 7, the groups have 8; a last size of 3 fits" },
    { "eight:segments { 5, 4 }", "segments: the sizes sum to 9, the groups have 8; a last size of 3 fits" },
    { "eight:segments { 8, fill }", "segments: the sizes sum to 8, which leaves nothing to fill of groups of 8" },
    { "eight:segments { fill, fill }", "segments: two sizes are fill; only one can be" },
    { "eight:segments {}", "segments: give sizes with the sum 8, the group size" },
    { "eight:segments { 8, 0 }", "element 2 of the list is 0; a size is 1 or more, or fill" },
    { "eight:segments { 9, -1 }", "element 2 of the list is -1; a size is 1 or more, or fill" },
    { "eight:segments { 5, '3' }", "element 2 of the list is a string, not an integer or fill" },
    { "eight:segments(5, 3)", "bad argument #1 to 'segments' (a table such as { 2, fill } expected, got number)" },
    { "b:pairs():segments { 1, 1 }", 'segments: the groups share ranks; world:table(lists, "cover") holds such groups, listed one by one' },
  }
end)

describe("renumber", function()
  gives {
    { "text(b), text(b:renumber { 0, 2, 1, 3 })", "Family of 4 groups of 4: (4:2) x (2:1)(2:8)",
      "Family of 4 groups of 4: (4:2) x (2:8)(2:1)" },
    { "b:renumber(function(i) return i // 2 + i % 2 * 2 end) == g:along { 'b', index = { 'c', 'a' } }", true },
    { "listed(eight:renumber { 1, 0 })", "8,9,10,11,12,13,14,15 0,1,2,3,4,5,6,7" },
    { "text(odd:renumber { 0, 1 }) == text(odd)", true },
    { "listed(mg.zip(b:pick(0), b:pick(1)):renumber { 3, 2, 1, 0 })", "9,11 8,10 1,3 0,2" },
    { "listed(eight:neighbours(4):renumber(function(i) return 7 - i end))", "11,15 10,14 9,13 8,12 3,7 2,6 1,5 0,4" },
  }
  refuses {
    { "b:renumber { 0, 1 }", "renumber: the list names 2, but there are 4 groups" },
    { "b:renumber { 0, 1, 2, 4 }", "renumber: group 4 is out of range (0 to 3)" },
    { "b:renumber { 0, 1, 2, -1 }", "renumber: group -1 is out of range (0 to 3)" },
    { "b:renumber { 0, 1, 2, 2 }", "renumber: group 2 is listed twice" },
    { "b:renumber { 0, 1, 2, 'x' }", "element 4 of the list is a string, not an integer" },
    { "b:renumber(function(i) return i // 2 end)", "renumber: group 0 is listed twice" },
    { "b:renumber(function() end)", "renumber: the function gave nil for group 0, not a group" },
    { "b:renumber(function() error 'mine' end)", "mine" },
    { "b:renumber(3)", "bad argument #1 to 'renumber' (a table such as { 1, 0 } expected, got number)" },
  }
end)

describe("modes", function()
  gives {
    { "listed(w:modes { inside = { { 2, 2 } }, index = { { 2, 1 }, { 4, 4 } } })", "0,2 1,3 4,6 5,7 8,10 9,11 12,14 13,15" },
    { "w:modes { inside = { { 2, 1 } }, index = { { 4, 2 } }, offset = 8 } == w:modes '(2:1) x (4:2) + 8'", true },
    { "w:modes { inside = { { 2, 1 }, { 4, 2 } }, index = { { 2, 8 } } } == eight", true },
    { "listed(w:modes '(2,4):(8,1)')", "0,8,1,9,2,10,3,11" },
    { "text(w:modes '((2,2),2):((1,4),2) x 2:8')", "Family of 2 groups of 8: (2:1)(2:4)(2:2) x (2:8)" },
    { "text(w:modes {}), #w:modes { index = { { 16, 1 } } }", "Family of 1 group of 1: (1) x (1)", 16 },
    { "text(w:modes '(3:2) x (2:3)')", "Family of 2 groups of 3: {0,2,4}{3,5,7}" },
    { "text(w:window(8):modes { inside = { { 2, 1 } }, index = { { 4, 2 } }, offset = 8 })",
      "Family of 4 groups of 2: (2:1) x (4:2) + 8" },
    { "(function() for _, f in ipairs { b, eight, g 'a', g 'c', g() } do "
      .. "if w:modes((text(f):match ': (.*)')) ~= f then return text(f) end end return 'all' end)()", "all" },
  }
  refuses {
    { "w:modes { inside = { { 2, 1 } }, index = { { 2, 1 } } }", "modes (2:1) x (2:1) overlap: 4 members, but only 3 ranks" },
    { "w:modes '(2:4) x (3:2)'", "modes (2:4) x (3:2) overlap: rank 4 is in groups 0 and 2; groups must be disjoint" },
    { "w:modes { inside = { { 32, 1 } } }", "modes (32:1) x (1): rank 31 is out of range; ranks are 0 to 15" },
    { "w:window(8):modes '(2:1)'", "modes (2:1) x (1): offset 0 is out of range; ranks are 8 to 15" },
    { "w:modes { inside = { { 0, 1 } } }", "inside mode 0 has size 0; sizes are 1 to 2147483647" },
    { "w:modes { index = { { 2, 0 } } }", "index mode 0 has stride 0; strides are 1 to 2147483647" },
    { "w:modes { inside = { { 2, 1.5 } } }", "modes: inside mode 0 is not {size, stride}" },
    { "w:modes { inside = { 2, 1 } }", "modes: inside mode 0 is not {size, stride}" },
    { "w:modes { inside = 2 }", "modes: 'inside' is a number, not a list of {size, stride}" },
    { "w:modes { inside = {}, idx = {} }", "unknown option 'idx'; nearest is 'index' (inside, index, offset)" },
    { "w:modes { offset = '8' }", "modes: the offset is a string, not an integer" },
    { "w:modes '(2:1) x (4:2'", "layout '(2:1) x (4:2' ends where ')' is expected" },
    { "w:modes '(2:1) and (4:2)'", "layout '(2:1) and (4:2)', character 7: 'x', '+' or the end expected, not 'and (4:2)'" },
    { "w:modes '(2,4):(8)'", "layout '(2,4):(8)': 2 sizes and 1 strides in '(2,4):(8)'" },
    { "w:modes(5)", "bad argument #1 to 'modes' (table or text expected, got number)" },
  }
end)

-- rank 13 is position 5 of the group 8 to 15
describe("Group:segment", function()
  local piece = "(function(s) return s.index, s.start, s.size, s.position, s.first, s.last, s.next, s.prev, s.ranks end)"
  gives {
    { piece .. "(group:segment { 5, 3 })", 1, 5, 3, 0, 13, 15, 14, 15, { 13, 14, 15 } },
    { piece .. "(group:segment { 1, fill })", 1, 1, 7, 4, 9, 15, 14, 12, { 9, 10, 11, 12, 13, 14, 15 } },
    { piece .. "(group:segment { 5, 1, 2 })", 1, 5, 1, 0, 13, 13, 13, 13, { 13 } },
    { "group:segment({ 8 }).ranks", { 8, 9, 10, 11, 12, 13, 14, 15 } },
  }
  refuses {
    { "group:segment { 5, 2 }", "segments: the sizes sum to 7, the groups have 8; a last size of 3 fits" },
    { "group:segment {}", "segments: give sizes with the sum 8, the group size" },
    { "group:segment { fill, fill }", "segments: two sizes are fill; only one can be" },
    { "group:segment { 8, 0 }", "element 2 of the list is 0; a size is 1 or more, or fill" },
    { "group:segment(8)", "bad argument #1 to 'segment' (a table such as { 2, fill } expected, got number)" },
  }

  it("answers policies", function()
    local recipe = mg.load "examples/dynamic_context.lua"
    local plan = recipe:plan(16, { tp = 2, pieces = { 5, 3 } })
    assert.are.same({ index = 1, position = 1, size = 3, next = 15, prev = 11 },
      recipe:call(plan:dry(13), "piece", { sizes = { 5, 3 } }))
    assert.are.same({ index = 0, position = 6, size = 8, next = 15, prev = 11 },
      recipe:call(plan:dry(13), "piece", { sizes = { 8 } }))
    local ok, message = pcall(recipe.call, recipe, plan:dry(13), "piece", { sizes = { 5, 2 } })
    assert.is_false(ok)
    assert.are.equal("examples/dynamic_context.lua:26: segments: the sizes sum to 7, the groups have 8; a last size of 3 fits",
      message)
  end)
end)

describe("backend none", function()
  local asked = "(function() t.x, t.y, t.z = b:with { backend = 'none' }, b, b:with { backend = 'none' } return mg.plan(t) end)()"
  gives {
    { asked .. ":text():match 'family x[^\\n]*'", "family x: (4:2) x (2:1)(2:8) backend=none" },
    { asked .. ":json():match '\"x\".-\"backend\": ?\"(%a+)\"'", "none" },
    { asked .. ":counts().communicators, " .. asked .. ":counts(3).communicators", 6, 2 },
    { "select('#', " .. asked .. ":shares 'y'), " .. asked .. ":shares 'y' == nil, " .. asked .. ":shares 'z' == nil", 1,
      true, true },
    { asked .. ":schedule():match '[^\\n]* x [^\\n]*'", "       x                backend none: no communicator" },
    { asked .. ":dry(5).x.ranks, " .. asked .. ":dry(5).x.position, " .. asked .. ":dry(5).ncomms", { 1, 3, 5, 7 }, 2, 2 },
  }
  refuses {
    { asked .. ":dry(5).x:barrier()", "x has no communicator: the backend of its family is 'none'" },
    { asked .. ":dry(5).x:buffer(4)", "x has no communicator: the backend of its family is 'none'" },
    { asked .. ":dry(5).x:allreduce(nil)", "x has no communicator: the backend of its family is 'none'" },
    { "b:with { backend = 'non' }", "unknown backend 'non'; nearest is 'none' ("
      .. table.concat(support.makers, ", ") .. ", none)" },
  }
end)

-- What becomes lists in the largest world is refused by the budget of a recipe before it takes memory; the rest is made.
describe("the budget", function()
  local world = 2147483640
  local function planned(body)
    local file = support.file("return recipe { build = function(world) local t = topology(world) "
      .. "local cp = grid(world, 'cp-dp', { cp = 8, dp = fill }) 'cp' t.x = " .. body .. " return t end }")
    local ok, plan = pcall(function() return mg.load(file):plan(world) end)
    return ok and plan:family "x" or (plan:gsub("^.-:1: ", ""))
  end
  for _, body in ipairs { "world:modes '(1000000000:2) x (2:3)'", "cp:renumber(function(i) return i end)",
    "cp:segments { 5, 3 }:pairs()", "cp:segments { 5, 3 }:split(1, { table = true })", "cp:pick(0, 1, 3):bundle(world.size // 8)" } do
    it("is spent by " .. body, function()
      assert.are.equal("the recipe runs for more than 200000000 instructions", planned(body))
    end)
  end
  for body, count in pairs { ["world:modes '(8:1) x (268435455:8)'"] = world // 8, ["cp:segments { 5, fill }"] = world // 4,
    ["(cp:pick(0, 1, 3, 4):split(2, { by = 'row' }))"] = world // 4, ["cp:segments { 5, 1, 2 }:pick(0)"] = world // 8 * 3 } do
    it("is enough for " .. body, function() assert.are.equal(count, planned(body).count) end)
  end
end)
