-- SPDX-License-Identifier: MIT
--
-- Words that replace code which recipes wrote by hand: grids with the slowest dim first, all dims but some, grids
-- without dims of size 1, groups counted by their first members, closures, twins with options, all groups of a rank.
-- A case is one line of a program "v.lua", which sees:

local mg = require "moongrid"

-- ranks 0..11 as a 2 (fastest) x b 3 x c 2
local function scene()
  local w = mg.world(12)
  local g = mg.grid(w, "a-b-c", { a = 2, b = 3, c = 2 })
  return { mg = mg, w = w, g = g, grid = mg.grid, fill = mg.fill, closure = mg.closure, text = tostring, big = mg.world(1 << 30) }
end

local cases = assert(loadfile("tests/lua/cases.lua", "t", _ENV))()(scene) -- with busted's names
local gives, refuses = cases.gives, cases.refuses

-- every group of a family in one line
local listed = "(function(f) local o = {} for _, r in pairs(f) do o[#o + 1] = table.concat(r, ',') end "
  .. "return table.concat(o, ' ') end)"

describe("grid with the slowest dim first", function()
  gives {
    { "text(grid(w, 'c-b-a', { a = 2, b = 3, c = 2 }, 'slowest first'))", "Grid a 2 x b 3 x c 2 over ranks 0..11" },
    { "grid(w, { 'c', 'b', 'a' }, { a = 2, b = fill, c = 2 }, 'slowest first') == g, grid(w, 'a-b-c', { a = 2, b = 3, c = 2 }, nil) == g",
      true, true },
    { "text(grid(w, 'c-a', { a = 2, c = 6, x = 1 }, 'slowest first'))", "Grid a 2 x c 6 x x 1 over ranks 0..11" },
    { "text(grid(w:order { 3, 2, 1, 0 }, 'c-a', { a = 2, c = 2 }, 'slowest first') 'a')", "Family of 2 groups of 2: {3,2}{1,0}" },
  }
  refuses {
    { "grid(w, 'a-b', { a = 2, b = fill }, 'slowest')", "unknown option 'slowest'; known: slowest first" },
    { "grid(w, 'a-b', { a = 2, b = fill }, true)", "bad argument #4 to 'grid' (string expected, got boolean)" },
    { "grid(w, 'a-b', { a = 5, b = fill }, 'slowest first')", "a 5 does not divide the 12 ranks; nearest: a 4 or 6, or a world of 10 or 15 ranks" },
  }
end)

describe("except", function()
  gives {
    { "g:except 'a' == g('b', 'c'), g:except('a', 'c') == g 'b', g:except('c', 'a') == g 'b'", true, true, true },
    { "text(g:except()), g:except('a', 'b', 'c') == g()", "Family of 1 group of 12: (12:1) x (1)", true },
    { listed .. "(g:at({ c = 1 }):except 'b')", "6,7 8,9 10,11" },
    { "g:except('a'):where { a = 1 }:ranks(0)", { 1, 3, 5, 7, 9, 11 } },
  }
  refuses {
    { "g:except 'd'", "unknown dim 'd'; known: a, b, c" },
    { "g:except 'a-b'", "'a-b' is not a dim name; give several as separate arguments: (\"tp\", \"dp\")" },
    { "g:except('a', 'a')", "dim 'a' is named twice" },
    { "g:except { 'a' }", "argument 1 is a table, not the name of a dim" },
    { "g:exept 'a'", "unknown dim 'exept'; known: a, b, c" },
  }
end)

describe("squeeze", function()
  gives {
    { "text(grid(w, 'a-x-c-y', { a = 2, c = 6 }):squeeze()), text(grid(w, 'a-x-c-y', { a = 2, c = 6 }):squeeze 'y')",
      "Grid a 2 x c 6 over ranks 0..11", "Grid a 2 x x 1 x c 6 over ranks 0..11" },
    { "g:squeeze() == g, g:squeeze('a', 'b') == g, grid(w, 'a-x-b-c', { a = 2, b = 3, c = 2 }):squeeze 'x' == g", true, true, true },
    { "text(grid(mg.world(1), 'a', {}):squeeze())", "Grid 1 over ranks 0..0" },
    { "text(grid(w:order { 3, 2, 1, 0 }, 'x-a', { a = fill }):squeeze())", "Grid a 4 over ranks 3,2,1,0" },
  }
  refuses {
    { "g:squeeze 'd'", "unknown dim 'd'; known: a, b, c" },
    { "g:squeeze(1)", "argument 1 is a number, not the name of a dim" },
  }
end)

describe("renumber by first members", function()
  gives {
    { "g 'a':renumber { 5, 4, 3, 2, 1, 0 }:renumber 'first' == g 'a', g 'a':renumber 'first' == g 'a'", true, true },
    { "text(g:along({ 'b', index = { 'c', 'a' } }):renumber 'first')", "Family of 4 groups of 3: (3:2) x (2:1)(2:6)" },
    { listed .. "(w:table({ { 5, 0 }, { 3, 1 }, { 2, 4, 6 } }, 'partial'):renumber 'first')", "2,4,6 3,1 5,0" },
    { listed .. "(g 'b':pairs():renumber { 7, 6, 5, 4, 3, 2, 1, 0 }:renumber 'first')", "0,2 1,3 2,4 3,5 6,8 7,9 8,10 9,11" },
    { "grid(big, 'a-b-c', { a = 2, b = 4, c = fill }):along({ 'b', index = { 'c', 'a' } }):renumber 'first'.count", 1 << 28 },
    { "g 'a':without({ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }):renumber('first').count", 0 },
  }
  refuses { { "g 'a':renumber 'fist'", "unknown order of groups 'fist'; nearest is 'first' (first)" } }
end)

describe("twin with options", function()
  gives {
    { "g 'a':twin { backend = 'mpi' } == g 'a'", true },
    { "(function() local t = mg.topology(w) t.a = g 'a' t.b = t.a:with { timeout = 5 }:twin { backend = 'mpi' } "
      .. "t.c = t.a:twin() return mg.plan(t):text() end)()",
      "moongrid 1\nworld 12\nfamily a: (2:1) x (6:2)\nfamily b: (2:1) x (6:2) unique timeout_us=5000000 backend=mpi\n"
      .. "family c: (2:1) x (6:2) unique\n" },
  }
  refuses {
    { "g 'a':twin { backnd = 'mpi' }", "unknown option 'backnd'; nearest is 'backend' (unique, first, lazy, high_priority, "
      .. "timeout, backend, nccl, cartesian, windows, device, parent, single)" },
    { "g 'a':twin 'mpi'", "bad argument #1 to 'twin' (a table such as { backend = \"mpi\" } expected, got string)" },
  }
end)

describe("locate of all groups", function()
  gives {
    { "g 'b':pairs():locate(2, 'all')", { { 0, 1 }, { 1, 0 } } },
    { "g 'b':locate(2, 'all'), g:at({ c = 1 }) 'a':locate(2, 'all')", { { 0, 1 } }, {} },
  }
  refuses {
    { "g 'b':locate(2, 'al')", "unknown option 'al'; nearest is 'all' (all)" },
    { "g 'b':locate(12, 'all')", "rank 12 is out of range (0 to 11)" },
  }
end)

describe("closure", function()
  gives {
    { "text(closure(g 'a', g 'c')), closure(g 'a', g 'b', g 'c') == g:except()", "Family of 3 groups of 4: (2:1)(2:6) x (3:2)", true },
    { "closure(g('b', 'a')) == g('a', 'b'), closure(g 'a', g 'a':twin()) == g 'a'", true, true },
    { listed .. "(closure(w:table { { 0, 1, 2, 3 }, { 4, 5, 6, 7 }, { 8, 9, 10, 11 } }, w:modes '(6:1) x (2:6)'))",
      "0,1,2,3,4,5,6,7,8,9,10,11" },
    { listed .. "(closure(w:table({ { 9, 3 }, { 4, 7 } }, 'partial'), w:table({ { 7, 2, 9 }, { 5 } }, 'partial')))", "2,3,4,7,9 5" },
    { listed .. "(closure(g 'b':pairs()))", "0,2,4 1,3,5 6,8,10 7,9,11" },
    { "text(closure(g 'b':pairs 'wrap', g 'c'))", "Family of 2 groups of 6: (6:2) x (2:1)" },
    { "closure(grid(big, 'a-b-c', { a = 2, b = 4, c = fill }) 'a', grid(big, 'x-y', { x = 8, y = fill }):except 'y').count", 1 << 27 },
    { "closure(g 'a':without { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }).count", 0 },
  }
  refuses {
    { "closure()", "a closure of no families" },
    { "closure(g 'a', 5)", "bad argument #2 to 'closure' (moongrid.Family expected, got number)" },
    { "closure(g 'a', grid(mg.world(4), 'x', { x = 4 }) 'x')", "closure: families of worlds of 12 and 4 ranks" },
  }

  -- The closure by hand: merge any two groups that share a rank, until none do.
  local function by_hand(families)
    local groups = {}
    for _, family in ipairs(families) do
      for _, ranks in pairs(family) do
        local joined, apart = {}, {}
        for _, rank in ipairs(ranks) do joined[rank] = true end
        for _, group in ipairs(groups) do
          local meets = false
          for rank in pairs(group) do meets = meets or joined[rank] end
          if not meets then table.insert(apart, group) end
          for rank in pairs(meets and group or {}) do joined[rank] = true end
        end
        table.insert(apart, joined)
        groups = apart
      end
    end
    for i, group in ipairs(groups) do
      local ranks = {}
      for rank in pairs(group) do ranks[#ranks + 1] = rank end
      table.sort(ranks)
      groups[i] = ranks
    end
    table.sort(groups, function(a, b) return a[1] < b[1] end)
    for i, ranks in ipairs(groups) do groups[i] = table.concat(ranks, ",") end
    return table.concat(groups, " ")
  end

  it("is the closure by hand for 2,000 random pairs of families", function()
    local seed = tonumber(os.getenv "MOONGRID_SEED") or 41
    math.randomseed(seed)
    local function draw(n) return math.random(n) end
    local dims = { "a", "b", "c", "d" }

    -- Along some dims of a grid of random sizes, of the world or of a window.
    local function of_grid(world, size)
      local sizes, left, order, inside = {}, size, {}, {}
      for _, dim in ipairs(dims) do
        local fits = {}
        for k = 1, left do fits[#fits + 1] = left % k == 0 and k or nil end
        sizes[dim] = dim == "d" and left or fits[draw(#fits)]
        left = left // sizes[dim]
        table.insert(order, draw(#order + 1), dim)
        if draw(2) == 1 then inside[#inside + 1] = dim end
      end
      return mg.grid(world, order, sizes):ordered(table.unpack(inside))
    end

    -- The same, or its lists, pairs, some members, or groups of random ranks.
    local function family_of(world, size)
      local f, how = of_grid(world, size), draw(8)
      if how == 1 then return f:lists() end
      if how == 2 and f.size > 1 then return f:pairs() end
      if how == 3 then return f:pick(0, -1) end
      if how > 4 then return f end
      local lists, free = {}, {}
      for r = 0, size - 1 do table.insert(free, draw(#free + 1), r) end
      while #free > 0 and #lists < 4 do
        local list = {}
        for _ = 1, math.min(draw(4), #free) do list[#list + 1] = table.remove(free) end
        lists[#lists + 1] = list
      end
      return mg.world(size):table(lists, "partial")
    end

    local rules, sizes = 0, { 8, 12, 16, 24, 36, 48 }
    for case = 1, 2000 do
      local size = sizes[draw(#sizes)]
      local world = mg.world(size)
      local a, b = family_of(world, size), family_of(world, size)
      local made, said = mg.closure(a, b), {}
      for g, ranks in pairs(made) do said[g + 1] = table.concat(ranks, ",") end
      local about = ("MOONGRID_SEED=%d, case %d: closure(%s, %s)"):format(seed, case, tostring(a), tostring(b))
      assert.equal(by_hand { a, b }, table.concat(said, " "), about)
      assert.equal(made, mg.closure(b, a, made), about)
      if a:modes() and b:modes() and made:modes() then rules = rules + 1 end
    end
    assert.is_true(rules > 400, rules)
  end)
end)
