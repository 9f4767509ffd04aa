-- SPDX-License-Identifier: MIT
--
-- Families that are used at the same time, in recipes and from stock Lua: refusals, word by word and at the recipe's
-- line; bases; the answers of a state. tests/c/test_concurrent.c tests what these lists mean for a plan.

local mg = require "moongrid"
local recipes = assert(loadfile("tests/lua/recipes.lua", "t", _ENV))() -- with busted's names
local recipe, write, plain = recipes.recipe, recipes.write, recipes.plain

-- A recipe with families tp, dp and ep, of which the last two are equal. `fields` begins on line 1.
local function layout(fields, more)
  return "return recipe { " .. fields .. [[, params = { tp = 2 }, build = function(world, p)
    local g = grid(world, "tp-dp", { tp = p.tp, dp = fill })
    local t = topology(world)
    t.tp = g "tp"
    t.dp = g "dp"
    t.ep = g "dp"
    ]] .. (more or "") .. [[

    return t
  end }]]
end

describe("concurrent families in a recipe", function()
  local kind = "concurrent is a list of families' names, or a list of such lists; this "
  local order = "concurrent: 'dp' is before 'ep' in this list, but after it by earlier lists"
  recipes.refuses {
    { "a name that the topology lacks", layout 'concurrent = { "dp", "epp" }',
      "r.lua:1: concurrent: unknown family 'epp'; nearest is 'ep' (tp, dp, ep)" },
    { "a name in the second list", layout 'concurrent = { { "dp", "ep" }, { "dp", "x" } }',
      "r.lua:1: concurrent: unknown family 'x'; known: tp, dp, ep" },
    { "a name twice", layout 'concurrent = { "dp", "ep", "dp" }', "r.lua:1: concurrent: family 'dp' is in the list twice" },
    { "a list of one", layout 'concurrent = { "dp" }', "r.lua:1: concurrent: a list has two families or more, not 1" },
    { "an empty list in a list", layout 'concurrent = { {} }',
      "r.lua:1: concurrent: a list has two families or more, not 0" },
    { "two orders", layout 'concurrent = { { "ep", "dp" }, { "dp", "ep" } }', "r.lua:1: " .. order },
    { "a text", layout 'concurrent = "dp,ep"', "r.lua:1: field 'concurrent' of a recipe is a table, not a string" },
    { "a number in a list", layout 'concurrent = { "dp", 3 }', "r.lua:1: " .. kind .. "has a number in it" },
    { "a number alone", layout 'concurrent = { 3 }', "r.lua:1: " .. kind .. "has a number in it" },
    { "lists and names", layout 'concurrent = { { "dp", "ep" }, "tp" }', "r.lua:1: " .. kind .. "has a string in it" },
    { "names and lists", layout 'concurrent = { "tp", { "dp", "ep" } }', "r.lua:1: " .. kind .. "has a table in it" },
    { "names as keys", layout 'concurrent = { dp = "ep" }', "r.lua:1: " .. kind .. "has names for its values, or gaps" },
    { "a name of a grid", layout('concurrent = { "dp", "g" }', 't.g = g'),
      "r.lua:1: concurrent: unknown family 'g'; known: tp, dp, ep" },
    { "a family in its build", layout('doc = ""', 'concurrent(t, { "dp", "eq" })'),
      "r.lua:7: concurrent: unknown family 'eq'; nearest is 'ep' (tp, dp, ep)" },
    { "names in its build", layout('doc = ""', 'concurrent(t, "dp", "ep")'),
      "r.lua:7: concurrent takes a list of names: concurrent(t, { \"dp\", ... })" },
    { "a number in its build", layout('doc = ""', 'concurrent(t, 5, "ep")'), "r.lua:7: " .. kind .. "is a number" },
    { "an order against that of its build", layout('concurrent = { "dp", "ep" }', 'concurrent(t, { "ep", "dp" })'),
      "r.lua:1: " .. order },
  }

  it("share nothing, and are launched in the order of the list", function()
    local r = recipe(layout 'concurrent = { "ep", "dp" }')
    local plan = r:plan(8)
    assert.is_nil(plan:shares "ep")
    assert.equal(3, plan:counts(0).communicators)
    assert.truthy(plan:text():find("\nconcurrent ep dp\n", 1, true))
    local state = plan:dry(3)
    assert.same({ 0, 2, 1 }, { state.tp.launch_order, state.dp.launch_order, state.ep.launch_order })
    assert.equal("dp", recipe(layout 'doc = "without"'):plan(8):shares "ep")
    assert.equal("dp", recipe(layout "concurrent = {}"):plan(8):shares "ep")
    assert.not_equal(plan.digest, recipe(layout 'concurrent = { "dp", "ep" }'):plan(8).digest)
  end)

  it("may be several lists, and depend on parameters", function()
    local two = recipe(layout 'concurrent = { { "tp", "dp" }, { "tp", "ep" } }'):plan(8)
    assert.equal("dp", two:shares "ep")
    local r = recipe(layout('doc = ""', 'if p.tp > 1 then concurrent(t, { { "dp", "ep" } }) end'))
    assert.is_nil(r:plan(8):shares "ep")
    assert.equal("dp", r:plan(8, { tp = 1 }):shares "ep")
  end)

  it("come along from the base, without what is taken out", function()
    write("base.lua", layout 'concurrent = { "dp", "ep" }')
    assert.is_nil(recipe 'return recipe { base = "base.lua" }':plan(8):shares "ep")
    local more = recipe 'return recipe { base = "base.lua", concurrent = { "tp", "dp" } }':plan(8)
    assert.truthy(more:text():find("\nconcurrent dp ep\nconcurrent tp dp\n", 1, true))
    local less = recipe [[return recipe { base = "base.lua", build = function(world, p, t)
      t.grads = t.ep
      t.ep = nil
      return t
    end }]]:plan(8)
    assert.equal("dp", less:shares "grads")
    assert.is_nil(less:text():find("concurrent", 1, true))
  end)

  it("of a bundled recipe are named on top of it", function()
    local r = recipe 'return recipe { base = "megatron", concurrent = { "dp_cp", "ep" } }'
    local plan, plain_plan = r:plan(16, { tp = 2, ep = 8 }), mg.load("megatron"):plan(16, { tp = 2, ep = 8 })
    assert.truthy(plain_plan:counts(0).communicators <= plan:counts(0).communicators)
    local ok, message = pcall(function() return r:plan(16, { ep = 8, no_such = 1 }) end)
    assert.is_false(ok)
    assert.is_nil(plain(message):find("concurrent", 1, true))
  end)
end)

describe("moongrid.concurrent", function()
  it("is the same for topologies made without a recipe", function()
    local world = mg.world(8)
    local g, t = mg.grid(world, "a-b", { a = 2, b = 4 }), mg.topology(world)
    t.a, t.b = g "a", g "b"
    t.c = g "b"
    mg.concurrent(t, { "b", "c" })
    assert.is_nil(mg.plan(t):shares "c")
    local ok, message = pcall(mg.concurrent, t, { "c", "b" })
    assert.is_false(ok)
    assert.truthy(message:find("concurrent: 'c' is before 'b' in this list, but after it by earlier lists", 1, true), message)
    ok, message = pcall(mg.concurrent, g, { "c", "b" })
    assert.is_false(ok)
    assert.truthy(message:find("moongrid.Topology expected", 1, true), message)
  end)
end)
