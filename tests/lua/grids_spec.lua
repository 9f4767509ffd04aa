-- SPDX-License-Identifier: MIT
--
-- Worlds in another order, grids made from grids, and a grid as one rank sees it: results, and the whole message
-- of each refusal. A case is one line of a program "v.lua", as in vocabulary_spec.

local mg = require "moongrid"
local support = dofile "tests/lua/support.lua"

-- g is tp 2 (fastest) x dp 4 x pp 2 over ranks 0..15; down and odd are orders of 8 ranks; s is rank 9
local function scene()
  local w = mg.world(16)
  local g = mg.grid(w, "tp-dp-pp", { tp = 2, dp = 4, pp = 2 })
  local down = mg.world(8):order { 7, 6, 5, 4, 3, 2, 1, 0 }
  local odd = mg.world(8):order { 1, 3, 5, 7 }
  local back = mg.grid(down, "tp-dp", { tp = 2, dp = mg.fill })
  local T = mg.topology(w)
  T.mesh, T.stage, T.tp = g, g:at { pp = 1 }, g "tp"
  return { mg = mg, w = w, v = mg.world(8), g = g, down = down, odd = odd, back = back, fill = mg.fill,
                        grid = mg.grid, s = mg.plan(T):dry(9), text = tostring }
end

local cases = assert(loadfile("tests/lua/cases.lua", "t", _ENV))()(scene) -- with busted's names
local gives, refuses = cases.gives, cases.refuses

describe("A World in another order", function()
  gives {
    { "text(down), #down, down.size, down:rank(0), down:rank(7)", "World of 8 ranks, order 7,6,5,4,3,2,1,0", 8, 8, 7, 0 },
    { "text(odd), #odd, odd:rank(3)", "World of 4 ranks, order (4:2) + 1", 4, 7 },
    { "v:rank(3), v:window(2):rank(3)", 3, 5 },
    { "text(v:order(function(p, n) return n - 1 - p end)), v:order(function(p, n) return n - 1 - p end) == down",
      "World of 8 ranks, order 7,6,5,4,3,2,1,0", true },
    { "text(v:order { 0, 2, 4, 6, 1, 3, 5, 7 })", "World of 8 ranks, order (4:2)(2:1)" },
    { "text(v:order(mg.grid(v, 'a-b', { a = 2, b = 4 }):ordered('b', 'a')))", "World of 8 ranks, order (4:2)(2:1)" },
    { "text(v:order { 2, 3, 4, 5 }), v:order { 2, 3, 4, 5 } == v:window(2, 4), v:order({ 2, 3 }).offset",
      "World of 8 ranks, window 2..5", true, 2 },
    { "v:order { 0, 1, 2, 3, 4, 5, 6, 7 } == v, down == v, odd == down, odd == v:order { 1, 3, 5, 7 }", true, false, false,
      true },
    { "down == mg.world(9):order { 7, 6, 5, 4, 3, 2, 1, 0 }, down == 5", false, false },
    { "text(down:window(2, 3)), text(odd:window(1)), text(v:order({ 6, 7, 4, 5 }):window(2))",
      "World of 3 ranks, order 5,4,3", "World of 3 ranks, order (3:2) + 3", "World of 8 ranks, window 4..5" },
    { "text(down:order { 0, 1, 2 }), text(odd:order { 7, 1 })", "World of 8 ranks, window 0..2",
      "World of 2 ranks, order 7,1" },
    { "text(v:window(2, 4):order(function(p) return 5 - p end))", "World of 4 ranks, order 5,4,3,2" },
    { "#text(mg.world(1000):order(function(p, n) return n - 1 - p end)) < 200", true },
    { "text(mg.grid(odd, 'x-y', { x = 2, y = 2 })), text(back)", "Grid x 2 x y 2 over ranks (4:2) + 1",
      "Grid tp 2 x dp 4 over ranks 7,6,5,4,3,2,1,0" },
    { "back:coord(7, 'tp'), back:coord(6, 'tp'), back:coord(0, 'dp'), back:coord(8, 'tp')", 0, 1, 3, n = 5 },
    { "back:coords(4), back:rank { tp = 1, dp = 1 }, back:rank {}", { tp = 1, dp = 1 }, 4, 7 },
    { "back 'tp':ranks(0), back 'dp':ranks(1), back:ordered('dp', 'tp'):ranks(0)", { 7, 6 }, { 6, 4, 2, 0 },
      { 7, 5, 3, 1, 6, 4, 2, 0 } },
    { "back:along { 'tp', index = 'dp' } == back 'tp', #back", true, 8 },
    { "grid(odd, 'x-y', { x = 2, y = 2 }):coords(2), grid(odd, 'x', { x = 4 }):coord(5, 'x')", nil, 2 },
    { "text(grid(odd, 'x-y', { x = 2, y = 2 }) 'x'), grid(odd, 'x', { x = 4 }) 'x'.coverage",
      "Family of 2 groups of 2: (2:2) x (2:4) + 1", "partial" },
    { "text(grid(v:order { 0, 2, 4, 6, 1, 3, 5, 7 }, 'a-b', { a = 4, b = 2 }) 'b')",
      "Family of 4 groups of 2: (2:1) x (4:2)" },
    { "grid(down, 'x', { x = 8 }) == grid(v, 'x', { x = 8 }), back == grid(down, 'tp-dp', { tp = 2, dp = 4 })", false, true },
    { "text(mg.topology(down)), #mg.grid(v:order { 5 }, 'x', { x = 1 })", "Topology of 0 families over 8 ranks", 1 },
  }
  refuses {
    { "v:order {}", "the order has no ranks; it needs 1 to 8" },
    { "v:order { 1, 2, 1 }", "rank 1 is at positions 0 and 2 of the order; each is there once" },
    { "v:order { 0, 8 }", "rank 8 at position 1 of the order is out of range; ranks are 0 to 7" },
    { "v:order { -1 }", "rank -1 at position 0 of the order is out of range; ranks are 0 to 7" },
    { "v:order { 1 << 40 }", "rank 1099511627776 at position 0 of the order is out of range; ranks are 0 to 7" },
    { "v:window(2, 4):order { 1 }", "rank 1 at position 0 of the order is out of range; ranks are 2 to 5" },
    { "odd:order { 3, 2 }", "rank 2 at position 1 of the order is not in this World, which has 4 of the ranks" },
    { "odd:order { 3, 0 }", "rank 0 at position 1 of the order is out of range; ranks are 1 to 7" },
    { "v:order { 0, 'a' }", "position 1 of the order holds a string, not a rank" },
    { "v:order { 0, 1.5 }", "position 1 of the order holds a number, not a rank" },
    { "v:order { { 0, 1 } }", "position 0 of the order holds a table, not a rank" },
    { "v:order '76'", "bad argument #1 to 'order' (list of ranks, function or family expected, got string)" },
    { "v:order()", "bad argument #1 to 'order' (list of ranks, function or family expected, got no value)" },
    { "v:order(function(p) return p < 3 and p or nil end)", "order: the function gave nil for position 3, not a rank" },
    { "v:order(function() return 4 end)", "rank 4 is at positions 0 and 1 of the order; each is there once" },
    { "v:order(function(p) return p + nil end)", "attempt to perform arithmetic on a nil value" },
    { "v:order(grid(v, 'a-b', { a = 2, b = 4 }) 'a')",
      "a grid needs a family of one group; this one has 4" },
    { "v:order(grid(w, 'a', { a = 16 }) 'a')", "the family is of a world of 16 ranks, and this one has 8" },
    { "v:window(0, 4):order(grid(v, 'a', { a = 8 }) 'a')", "the family has ranks 0 to 7; this World has 0 to 3" },
    { "local _ = down.offset", "a World in another order has no offset; world:rank(0) is its first rank" },
    { "down:rank(8)", "position 8 is out of range (0 to 7)" },
    { "down:rank(-1)", "position -1 is out of range (0 to 7)" },
    { "down:window(8)", "window offset 8 is outside the 8 ranks (0 to 7)" },
    { "odd:window(1, 4)", "a window from 1 has 1 to 3 ranks, not 4" },
    { "down:table { { 0 } }",
      "a table cannot use the order of this World; make the table of the world itself, \"partial\" if it leaves out ranks" },
    { "down:modes { inside = { { 2, 1 } } }", "modes cannot use the order of this World; take the modes of the world itself" },
    { "grid(odd, 'x-y', { x = 3, y = fill })",
      "x 3 does not divide the 4 ranks of the order; nearest: x 2 or 4, or an order of 3 or 6 ranks" },
    { "grid(odd, 'x', { x = 3 })", "x 3 does not make the 4 ranks of the order; nearest: x 4, or an order of 3 ranks" },
    { "mg.load('picotron'):plan(down)", "a recipe is planned for a world in its own order; a recipe on top of it may "
      .. "order the world that it gives to build" },
  }
end)

describe("A plan of a grid in another order", function()
  local function plan(...)
    local world = mg.world(8)
    local t = mg.topology(world)
    t.mesh = mg.grid(world:order { ... }, "tp-dp", { tp = 2, dp = mg.fill })
    return mg.plan(t)
  end
  local down, swapped, up = plan(7, 6, 5, 4, 3, 2, 1, 0), plan(7, 6, 5, 4, 3, 2, 0, 1), plan(0, 1, 2, 3, 4, 5, 6, 7)

  it("has a digest of its own", function()
    assert.are_not.equal(down.digest, swapped.digest)
    assert.are_not.equal(down.digest, up.digest)
    assert.are_not.equal(plan(0, 2, 4, 6).digest, plan(1, 3, 5, 7).digest)
    assert.are.equal(down.digest, plan(7, 6, 5, 4, 3, 2, 1, 0).digest)
    assert.are.equal("moongrid 1\nworld 8\ngrid mesh: tp 2 x dp 4 over ranks 7,6,5,4,3,2,0,1\n", swapped:text())
  end)

  it("has the ranks in its JSON, and a rank's coordinates", function()
    assert.truthy(down:json():find('"mesh": {"size": 8, "ranks": [7,6,5,4,3,2,1,0], "dims": [["tp",2], ["dp",4]]}', 1, true))
    assert.truthy(plan(1, 3, 5, 7):json():find('"mesh": {"size": 4, "ranks": [1,3,5,7], "dims": [["tp",2], ["dp",2]]}', 1, true))
    assert.truthy(up:json():find('"mesh": {"offset": 0, "size": 8, "dims": [["tp",2], ["dp",4]]}', 1, true))
    assert.truthy(down:json(2):find('"mesh": {"size": 8, "coords": {"tp": 1, "dp": 2}}', 1, true))
    assert.truthy(plan(1, 3, 5, 7):json(2):find('"mesh": {"size": 4, "coords": {"tp": null, "dp": null}}', 1, true))
  end)

  it("is compared and shown by the command", function()
    local recipe = support.file [[
      return recipe { params = { swap = false }, build = function(world, p)
        local t = topology(world)
        t.mesh = grid(world:order(p.swap and { 3, 2, 0, 1 } or { 3, 2, 1, 0 }), "tp-dp", { tp = 2, dp = 2 })
        return t
      end }]]
    local function command(line)
      local pipe = assert(io.popen("build/moongrid " .. line:gsub("RECIPE", recipe) .. " 2>&1"))
      local said = pipe:read("a")
      pipe:close()
      return said
    end
    local diff = command "diff RECIPE --world 4 vs swap=true"
    assert.truthy(diff:find("~ grid     mesh: tp 2 x dp 2 over ranks 3,2,1,0 -> tp 2 x dp 2 over ranks 3,2,0,1\n", 1, true), diff)
    assert.truthy(command("plan RECIPE --world 4"):find("mesh           tp 2 x dp 2 over ranks 3,2,1,0\n", 1, true))
    assert.truthy(command("plan RECIPE --world 4 --rank 2"):find("\nmesh    tp 1, dp 0\n", 1, true))
  end)

  it("answers a rank's coordinates", function()
    for rank = 0, 7 do
      local state <close> = down:dry(rank)
      assert.are.equal((7 - rank) % 2, state:coord("mesh", "tp"))
      assert.are.equal((7 - rank) // 2, state.mesh.dp)
      assert.are.equal(7 - rank, state.mesh.position)
    end
    local outside <close> = plan(1, 3, 5, 7):dry(2)
    assert.is_nil(outside.mesh)
    assert.is_nil(outside:coord("mesh", "tp"))
  end)

  it("costs what it lists", function()
    local function loaded(size, body)
      local path = support.file(("return recipe { build = function(world) local t = topology(world) %s return t end }"):format(body))
      local ok, message = pcall(mg.load(path).plan, mg.load(path), size)
      return ok, not ok and (message:match "runs for more than %d+ instructions" or message:match "needs more than 64 MiB of memory")
    end
    local huge = 2146435072
    local turned = "local o = world:order(grid(world, 'a-b', { a = 1024, b = fill }):ordered('b', 'a')) "
      .. "local g = grid(o, 'x-y', { x = 1024, y = fill }) "
    assert.is_true(loaded(huge, turned .. "t.x = g 'x' t.part = g:at { x = 7 } 'y'"))
    assert.truthy(select(2, loaded(huge, "world:order(function(p) return p end)")))
    assert.truthy(select(2, loaded(huge, turned .. "o:window(1)")))
    assert.truthy(select(2, loaded(2097152 * 3, "local o = world:order(grid(world, 'a-b', { a = 3, b = fill }):ordered('b', 'a')) "
      .. "local g = grid(o, 'x-y', { x = 3, y = fill }) for i = 1, 100 do local _ = g 'x' end")))
  end)

  it("makes every bundled recipe in another order", function()
    for _, name in ipairs(mg.recipes()) do
      local sizes, written = support.fitting[name] or {}, ""
      for size, value in pairs(sizes) do written = size .. " = " .. value end
      local path = support.file(([[
        return recipe { build = function(world)
          return recipe %q.build(world:order(function(p, n) return n - 1 - p end), { %s })
        end }]]):format(name, written))
      local plain, turned = mg.load(name):plan(8, sizes), mg.load(path):plan(8)
      assert.are.same(plain.families, turned.families, name)
      for family, groups in pairs(plain) do
        for group, ranks in pairs(groups) do
          for i, rank in ipairs(ranks) do ranks[i] = 7 - rank end
          assert.are.same(ranks, turned:family(family):ranks(group), name)
        end
      end
    end
  end)

  it("keeps the ranks of a node side by side in an example, whatever their number", function()
    local params = { tp = 2, pp = 2, shard = 2, gpus_per_node = 4 }
    local small = mg.load("examples/nodes.lua"):plan(16, params)
    for family, groups in pairs { tp = { { 0, 4 }, { 8, 12 } }, dp = { { 0, 8, 1, 9 }, { 4, 12, 5, 13 } }, pp = { { 0, 2 }, { 4, 6 } },
                                  shard = { { 0, 8 }, { 4, 12 } }, rep = { { 0, 1 }, { 4, 5 } },
                                  loss = { { 2, 6, 10, 14, 3, 7, 11, 15 } } } do
      for group, ranks in ipairs(groups) do assert.are.same(ranks, small:family(family):ranks(group - 1), family) end
    end
    local huge = mg.load("examples/nodes.lua"):plan(2146435072, params)
    assert.are.equal("Family of 1 group of 1073217536: (4:536608768)(268304384:1) x (1) + 268304384", tostring(huge:family "loss"))
    local state <close> = huge:dry(2146435071)
    assert.are.same({ tp = 1, dp = 536608767, pp = 1 }, state.mesh)
  end)
end)

describe("A grid out of a grid", function()
  gives {
    { "text(g:unflatten('dp', 'shard-rep', { shard = 2, rep = fill }))", "Grid tp 2 x shard 2 x rep 2 x pp 2 over ranks 0..15" },
    { "text(g:unflatten('dp', { 'rep', 'shard' }, { shard = 4 }))", "Grid tp 2 x rep 1 x shard 4 x pp 2 over ranks 0..15" },
    { "text(g:unflatten('dp', { shard = 2, rep = fill })), text(g:unflatten('dp', { rep = 4, shard = fill }))",
      "Grid tp 2 x shard 2 x rep 2 x pp 2 over ranks 0..15", "Grid tp 2 x rep 4 x shard 1 x pp 2 over ranks 0..15" },
    { "g:unflatten('dp', 'a-b', { a = 2, b = 2 }):ordered('a', 'b') == g 'dp'", true },
    { "text(g:unflatten('dp', 'dp', { dp = fill })), g:unflatten('dp', 'dp', { dp = fill }) == g",
      "Grid tp 2 x dp 4 x pp 2 over ranks 0..15", true },
    { "text(back:unflatten('dp', 'a-b', { a = 2, b = 2 }))", "Grid tp 2 x a 2 x b 2 over ranks 7,6,5,4,3,2,1,0" },
    { "text(g:flatten('x', 'tp', 'dp')), text(g:flatten('x', 'pp', 'dp')), g:flatten('x', 'dp', 'tp') 'x' == g('tp', 'dp')",
      "Grid x 8 x pp 2 over ranks 0..15", "Grid tp 2 x x 8 over ranks 0..15", true },
    { "text(g:flatten('tp', 'dp', 'tp')), text(g:flatten('x', 'dp')), text(g:flatten('all', 'tp', 'dp', 'pp'))",
      "Grid tp 8 x pp 2 over ranks 0..15", "Grid tp 2 x x 4 x pp 2 over ranks 0..15", "Grid all 16 over ranks 0..15" },
    { "text(grid(w, 'tp-ep-dp', { tp = 4, dp = 4 }):flatten('x', 'tp', 'dp'))", "Grid x 16 x ep 1 over ranks 0..15" },
    { "text(g:rename { dp = 'data' }), text(g:rename { dp = 'tp', tp = 'dp' }), g:rename {} == g",
      "Grid tp 2 x data 4 x pp 2 over ranks 0..15", "Grid dp 2 x tp 4 x pp 2 over ranks 0..15", true },
    { "text(g:at { pp = 1 }), text(g:at { tp = 1 }), text(g:at { tp = 1, dp = 2, pp = 1 }), g:at {} == g",
      "Grid tp 2 x dp 4 over ranks 8..15", "Grid dp 4 x pp 2 over ranks (8:2) + 1", "Grid 1 over ranks 13..13", true },
    { "text(g:at { dp = 3 }), text(g:at { dp = 3 } 'pp'), g:at { dp = 3 }('pp').coverage",
      "Grid tp 2 x pp 2 over ranks (2:1)(2:8) + 6", "Family of 2 groups of 2: (2:8) x (2:1) + 6", "partial" },
    { "g:at { dp = 3 }:coords(14), g:at { dp = 3 }:coords(13), g:at { dp = 3 }:rank { pp = 1 }", { tp = 0, pp = 1 }, nil, 14 },
    { "text(back:at { tp = 1 }), back:at { tp = 1 } 'dp':ranks(0)", "Grid dp 4 over ranks 6,4,2,0", { 6, 4, 2, 0 } },
    { "text(g:at { pp = 1 }:at { tp = 0 }), g:at { pp = 1 }:at { tp = 0 } == g:at { tp = 0, pp = 1 }",
      "Grid dp 4 over ranks (4:2) + 8", true },
  }
  refuses {
    { "g:unflatten('dp', 'a-b', { a = 3, b = fill })", "a 3 does not divide dp 4; nearest: a 2 or 4, or dp 3 or 6" },
    { "g:unflatten('dp', 'a-b', { a = 2, b = 3 })", "a 2 x b 3 = 6 does not make dp 4; nearest: b 2, or dp 6" },
    { "g:unflatten('dp', 'a-b', { a = fill, b = fill })", "dims 'a' and 'b' are both to be inferred; only one can be" },
    { "g:unflatten('dp', 'tp-b', { tp = 2, b = 2 })", "dim 'tp' occurs twice in the grid" },
    { "g:unflatten('dp', 'a', { a = 2, b = 2 })", [[dim 'b' of size 2 is not in the order "a"; known: a]] },
    { "g:unflatten('ep', 'a', { a = 4 })", "unknown dim 'ep'; known: tp, dp, pp" },
    { "g:unflatten('dp', { shard = 2, rep = 2 })", "unflatten needs the order of the new dims, fastest first, as in "
      .. "(dim, \"rep-shard\", sizes); only two dims of which one is fill need no order" },
    { "g:unflatten('dp', { c = 2, a = fill, b = 1 })", "unflatten needs the order of the new dims, fastest first, as in "
      .. "(dim, \"a-b-c\", sizes); only two dims of which one is fill need no order" },
    { "g:unflatten('dp', {})", "unflatten needs the order of the new dims, fastest first, as in "
      .. "(dim, \"shard-rep\", sizes); only two dims of which one is fill need no order" },
    { "g:unflatten('dp', { 2, 2 })", "each size needs a name as its key, not a number" },
    { "g:unflatten('dp', 'a-b')", "bad argument #3 to 'unflatten' (a table such as { tp = 2, dp = fill } expected, got no value)" },
    { "g:unflatten('dp')", "bad argument #2 to 'unflatten' (order such as \"tp-dp\" expected, got no value)" },
    { "g:unflatten()", "bad argument #1 to 'unflatten' (string expected, got no value)" },
    { "g:flatten('x', 'tp', 'pp')", "dims 'tp' and 'pp' are not adjacent in tp-dp-pp; flatten 'dp' of size 4 with them, "
      .. "or make them adjacent in the order of the grid" },
    { "g:flatten('pp', 'tp', 'dp')", "dim 'pp' occurs twice in the grid" },
    { "g:flatten('x', 'tp', 'tp')", "dim 'tp' is named twice" },
    { "g:flatten('x', 'tp', 'dq')", "unknown dim 'dq'; nearest is 'dp' (tp, dp, pp)" },
    { "g:flatten('x')", "flatten: name one dim or more" },
    { "g:flatten('x y', 'tp')", "'x y' is not a dim name (a letter or _, then letters, digits or _; at most 31)" },
    { "g:flatten('x', { 'tp' })", "bad argument #2 to 'flatten' (string expected, got table)" },
    { "g:rename { dp = 'tp' }", "dim 'tp' occurs twice in the grid" },
    { "g:rename { dq = 'x' }", "unknown dim 'dq'; nearest is 'dp' (tp, dp, pp)" },
    { "g:rename { dp = 5 }", "the new name of dim 'dp' is a number, not a name" },
    { "local d = {} for i = 1, 65 do d[i] = 'd' .. i end s.mesh:submesh(table.unpack(d))", "a grid has at most 64 dims" },
    { "g:rename { dp = '' }", "'' is not a dim name (a letter or _, then letters, digits or _; at most 31)" },
    { "g:rename('dp')", "bad argument #1 to 'rename' (a table such as { dp = \"data\" } expected, got string)" },
    { "g:at { pp = 2 }", "coordinate 2 of dim 'pp' is out of range (0 to 1)" },
    { "g:at { pp = -3 }", "coordinate -3 of dim 'pp' is out of range (0 to 1)" },
    { "g:at { pp = 'a' }", "the coordinate of dim 'pp' is a string, not an integer" },
    { "g:at { ep = 0 }", "unknown dim 'ep'; known: tp, dp, pp" },
    { "g:at(0)", "bad argument #1 to 'at' (a table such as { pp = 0 } expected, got number)" },
  }
end)

describe("A grid as one rank sees it", function()
  gives {
    { "s.mesh.tp, s.mesh.dp, s.mesh.pp, s.mesh.position, s.mesh.size, s.mesh.shape", 1, 0, 1, 9, 16, { 2, 4, 2 } },
    { "(function() local o = {} for k, v in pairs(s.mesh) do o[#o + 1] = k .. v end table.sort(o) return o end)()",
      { "dp0", "pp1", "tp1" } },
    { "s.stage.position, s.stage.ranks, s.stage.grid == g:at { pp = 1 }", 1, { 8, 9, 10, 11, 12, 13, 14, 15 }, true },
    { "text(s.mesh:submesh('dp', 'tp'))", "Mesh tp 2 x dp 4 over ranks 8..15, at position 1" },
    { "s.mesh:submesh('pp', 'tp').ranks, s.mesh:submesh('tp', 'pp').ranks, s.mesh:submesh('tp', 'pp').position",
      { 0, 1, 8, 9 }, { 0, 1, 8, 9 }, 3 },
    { "s.mesh:submesh('dp').shape, s.mesh:submesh('dp').dp, s.mesh:submesh('dp').position, s.mesh:submesh('dp').ranks",
      { 4 }, 0, 0, { 9, 11, 13, 15 } },
    { "s.mesh:submesh('dp', 'pp'):submesh('pp').ranks, s.mesh:submesh().ranks", { 1, 9 }, { 9 } },
    { "s.mesh:submesh('tp', 'dp', 'pp').grid == g, text(s.mesh:submesh('dp').grid)", true, "Grid dp 4 over ranks (4:2) + 9" },
  }
  refuses {
    { "local _ = s.mesh.ep", "unknown dim 'ep'; known: tp, dp, pp" },
    { "local _ = s.mesh:submesh('dp').tp", "unknown dim 'tp'; known: dp" },
    { "s.mesh:submesh('dq')", "unknown dim 'dq'; nearest is 'dp' (tp, dp, pp)" },
    { "s.mesh:submesh('dp', 'dp')", "dim 'dp' is named twice" },
    { "s.mesh:submesh('tp', 'dp', 'pp', 'tp')", "4 dims asked of a grid that has 3" },
    { "s.mesh:submesh(5 > 4)", "bad argument #1 to 'submesh' (string expected, got boolean)" },
    { "s.mesh.submesh({}, 'dp')", "bad argument #1 to 'submesh' (moongrid.Mesh expected, got table)" },
    { "setmetatable(s.mesh, {})", "cannot change a protected metatable" },
  }

  it("has the group of each family along its dims", function()
    local world = mg.world(24)
    local t = mg.topology(world)
    local any = { 5, 17, 2, 23, 8, 14, 20, 11, 0, 9, 3, 6, 12, 15, 18, 21, 1, 22, 4, 7 }
    t.mesh = mg.grid(world:order(any), "a-b-c", { a = 2, b = 5, c = 2 })
    local dims = { { "a" }, { "b" }, { "c" }, { "a", "b" }, { "a", "c" }, { "b", "c" }, { "a", "b", "c" }, {} }
    for i, some in ipairs(dims) do t["f" .. i] = t.mesh(table.unpack(some)) end
    local plan = mg.plan(t)
    for rank = 0, 23 do
      local state <close> = plan:dry(rank)
      for i, some in ipairs(dims) do
        local group, mesh = state["f" .. i], state.mesh
        assert.are.equal(group == nil, mesh == nil)
        local slice = mesh and mesh:submesh(table.unpack(some))
        assert.are.same(group and group.ranks, slice and slice.ranks)
        assert.are.equal(group and group.position, slice and slice.position)
      end
    end
  end)

  it("outlives its state, and can be changed without changing the state", function()
    local state = scene().s
    local mesh = state.mesh
    mesh.tp = 7
    assert.are.equal(1, state.mesh.tp)
    state:close()
    assert.are.same({ 9, 11, 13, 15 }, mesh:submesh("dp").ranks)
  end)

  it("is read by policies and queries", function()
    local path = support.file [[
      return recipe {
        build = function(world)
          local t = topology(world)
          t.mesh = grid(world:order(function(p, n) return n - 1 - p end), "tp-dp", { tp = 2, dp = fill })
          return t
        end,
        queries = { coords = function(s) return s.mesh end,
                    row = function(s) return s.mesh:submesh("tp").ranks end },
      }]]
    local recipe = mg.load(path)
    local state <close> = recipe:plan(8):dry(4)
    assert.are.same({ tp = 1, dp = 1 }, recipe:ask(state, "coords"))
    assert.are.same({ 5, 4 }, recipe:ask(state, "row"))
  end)
end)
