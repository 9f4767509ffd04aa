-- SPDX-License-Identifier: MIT
--
-- What Lua programs that plan for others ask of the module: recipes from text, with what they print, parameters as typed,
-- saved plans, machines, and the status of what was refused. The command asks for nothing else.

local support = dofile "tests/lua/support.lua"
local run = support.run
local mg = require "moongrid"

-- refused(STATUS, MESSAGE, f, ...): f raises this message, and the module knows its status.
local function refused(status, message, f, ...)
  local ok, raised = pcall(f, ...)
  assert.falsy(ok)
  assert.truthy(raised:find(message, 1, true), raised)
  assert.equal(status, mg.status(raised))
end

local noisy = [[
print("loaded")
return recipe { params = { tp = 1 }, build = function(world, p) print("tp", p.tp)
  local t = topology(world)
  t.tp = grid(world, "tp-dp", { tp = p.tp, dp = fill }) "tp"
  return t
end }]]

describe("moongrid.load", function()
  it("takes a text, and gives what the recipe prints to a function", function()
    local said = {}
    local recipe = mg.load("noisy", { text = noisy, log = function(message) said[#said + 1] = message end })
    assert.equal(8, recipe:plan(8, { tp = 2 }).world)
    assert.same({ "noisy:1: loaded", "noisy:2: tp 2" }, said)
  end)

  it("goes on where that function fails, also in a coroutine", function()
    local recipe = coroutine.wrap(function() return mg.load("noisy", { text = noisy, log = function() error "no" end }) end)()
    assert.equal(8, coroutine.wrap(function() return recipe:plan(8) end)().world)
  end)

  it("refuses options that it does not know, and those of another type", function()
    refused(101, "unknown option of load 'txt'; nearest is 'text'", mg.load, "x", { txt = "" })
    assert.has_error(function() mg.load("x", { log = 1 }) end)
    assert.has_error(function() mg.load("x", 1) end)
  end)
end)

describe("recipe:plan", function()
  local recipe = mg.load "picotron"
  it("takes texts as typed, over a file", function()
    local file = support.file "return { tp = 4, pp = 2 }"
    assert.equal(recipe:plan(16, { tp = 2 }).digest, recipe:plan(16, { "tp=2" }).digest)
    assert.equal(recipe:plan(16, { tp = 2, pp = 2 }).digest, recipe:plan(16, { "tp=2" }, file).digest)
    assert.equal(recipe:plan(16, { tp = 4, pp = 2 }).digest, recipe:plan(16, nil, file).digest)
  end)

  it("refuses what is no such text, names beside texts, and files that are not there", function()
    refused(200, "parameter 'tp' is given twice", recipe.plan, recipe, 8, { "tp=2", "tp=4" })
    refused(200, "argument 'tp' is not of the form NAME=VALUE", recipe.plan, recipe, 8, { "tp" })
    refused(101, "unknown parameter that is no text NAME=VALUE 'pp'", recipe.plan, recipe, 8, { "tp=2", pp = 2 })
    refused(101, "unknown parameter that is no text NAME=VALUE 'pp'", recipe.plan, recipe, 8, { pp = 2 }, "/dev/null")
    assert.has_error(function() recipe:plan(8, 1, "/dev/null") end)
    refused(100, "cannot open /no/such: ", recipe.plan, recipe, 8, {}, "/no/such")
    assert.has_error(function() recipe:plan(8, { {} }) end)
  end)
end)

describe("a saved plan", function()
  local plan = mg.load "picotron":plan(16, { tp = 2 })
  it("is read back from a file or a text", function()
    local path = support.file(run "build/moongrid plan picotron --world 16 tp=2 --rules")
    assert.is_true(mg.is_saved(path))
    assert.equal(plan.digest, mg.saved(path).digest)
    assert.equal(plan.digest, mg.saved("x", plan:json()).digest)
    assert.is_true(mg.is_saved("x", plan:json()))
  end)

  it("is no recipe, and refused if it is broken", function()
    assert.is_false(mg.is_saved "examples/moe.lua")
    assert.is_false(mg.is_saved "/no/such")
    assert.is_false(mg.is_saved("x", noisy))
    refused(100, "cannot open /no/such: ", mg.saved, "/no/such")
    local ok, message = pcall(mg.saved, "x", plan:json():sub(1, -20))
    assert.falsy(ok)
    assert.equal(1, mg.status(message) // 100)
  end)
end)

describe("a machine", function()
  local machine = mg.open_machine "node:2[100GB/s] gpu:4 rail = gpu"
  it("says where a rank is", function()
    assert.same({ { level = "node", domain = 1, crossing = false, text = "node 1", link = "[100GB/s]" },
                  { level = "gpu", domain = 6, crossing = false, text = "gpu 6", link = "" },
                  { level = "rail", domain = 2, crossing = true, text = "", link = "" } }, machine:where(6))
    refused(103, "the machine has no rank 8", machine.where, machine, 8)
    refused(103, "the machine has no rank -1", machine.where, machine, -1)
    assert.equal(99, mg.open_machine "8":where(99)[2].domain)
    assert.same({ 4, 16 }, { machine:node_size(), mg.open_machine "node:2 gpu:8 core:2":node_size() })
  end)

  it("fits a world or not", function()
    machine:fits(8)
    local ok, message = pcall(machine.fits, machine, 9)
    assert.falsy(ok)
    assert.equal(1, mg.status(message) // 100)
  end)

  it("is that of a recipe from then on", function()
    local recipe = mg.load("asks", { text = "return recipe { build = function(world) local t = topology(world) "
      .. "t.node = machine.node return t end }" })
    recipe:on(machine)
    assert.equal(4, recipe:plan(8):family "node".size)
    recipe:on(nil)
    refused(100, "there is no machine", recipe.plan, recipe, 8)
    assert.has_error(function() recipe:on(8) end)
  end)
end)

describe("moongrid.status", function()
  it("knows only the last message that was raised", function()
    local _, first = pcall(mg.load, "picotrn")
    local _, last = pcall(mg.open_machine, "nothing")
    assert.is_nil(mg.status(first))
    assert.equal(101, mg.status(last))
    assert.is_nil(mg.status "another")
    assert.is_nil(mg.status {})
    assert.has_error(function() mg.status() end)
  end)
end)

describe("examples/planner.lua", function()
  local planner = "LUA_CPATH_5_4='build/?.so;;' lua5.4 examples/planner.lua "
  it("plans a recipe or a saved plan for a machine", function()
    local out, err, code = run(planner .. "picotron 4 'node:2 gpu:2' tp=2")
    assert.equal("", err)
    assert.equal(0, code)
    assert.equal("\n0\tnode=0 gpu=0\n1\tnode=0 gpu=1\n2\tnode=1 gpu=2\n3\tnode=1 gpu=3\n", out:match "^%x+(.*)")
    local path = support.file(run "build/moongrid plan picotron --world 4 tp=2 --rules")
    assert.equal(out, (run(planner .. path .. " 4 'node:2 gpu:2'")))
  end)

  it("ends with the exit code of the command", function()
    for words, code in pairs { ["picotron 4 2 tp=3"] = 1, ["picotron 4 2 tp"] = 2, ["nothing 4 2"] = 1, ["picotron"] = 2 } do
      assert.equal(code, select(3, run(planner .. words)), words)
    end
  end)
end)
