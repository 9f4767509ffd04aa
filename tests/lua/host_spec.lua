-- SPDX-License-Identifier: MIT
--
-- The functions of the module for Lua programs that plan for others, such as the command: recipes from text, with their
-- printed lines, parameters as typed, saved plans, machines, and the status of a refusal. The command uses no other
-- functions.

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
    refused(101, "unknown parameter that is not text NAME=VALUE 'pp'", recipe.plan, recipe, 8, { "tp=2", pp = 2 })
    refused(102, "beside a file, parameters are a list of strings, as { \"tp=2\" }", recipe.plan, recipe, 8, { pp = 2 }, "/dev/null")
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

  it("is not a recipe, and refused if it is broken", function()
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
                  { level = "rail", domain = 2, crossing = true, text = "rail 2", link = "" } }, machine:where(6))
    assert.same({ name = "node", crossing = false, regular = true, domains = 2, places = 4, link = "[100GB/s]",
                  bandwidth = 100e9, latency = 0.0 }, machine:levels()[1])
    assert.same({ "rail", true, 4 }, { machine:levels()[3].name, machine:levels()[3].crossing, machine:levels()[3].domains })
    assert.is_nil(mg.open_machine("8"):levels()[1].domains) -- as many as the ranks need
    assert.equal("node:2[100GB/s] gpu:4 rail = gpu", machine:text())
    assert.equal(machine:text(), mg.open_machine(machine:text()):text())
    assert.same({}, machine:notes())
    for _, preset in ipairs(mg.presets()) do
      assert.equal(mg.open_machine(preset.name):text(), mg.open_machine(preset.text):text())
    end
    local nodes = machine:family("node", 6) -- a world that does not fill it
    assert.same({ 2, { 4, 5 } }, { nodes.count, nodes:ranks(1) })
    assert.same({ 2, 6 }, machine:family("rail", 8):ranks(2))
    refused(101, "unknown level of the machine 'nod'; nearest is 'node' (node, gpu, rail)", machine.family, machine, "nod", 8)
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

describe("a plan", function()
  local recipe = mg.load("facts", { text = [[
    return recipe { params = { tp = 2, unread = 1, rate = 0.1 }, concurrent = { "dp", "none" }, build = function(world, p)
      local t, g = topology(world), grid(world, "tp-dp", { tp = p.tp, dp = fill })
      t.grid = g
      t.tp = g "tp"
      t.twin = g "tp"
      t.apart = g("tp"):with { unique = true, timeout = 5 }
      t.dp = g("dp"):pick(0, 1)
      t.none = g("tp"):with { backend = "none" }
      t.w = tensor { axes = { { "row", 64 } }, type = "u8", cut = { row = { "dp", cyclic = 4 } } }
      return t
    end }]] })
  local plan = recipe:plan(16, { "unread=3" })

  it("gives its texts in pieces to a function", function()
    for _, ask in ipairs { "json", "schedule" } do
      for _, rank in ipairs { false, 3 } do
        local pieces = {}
        assert.equal(0, select("#", plan[ask](plan, rank or nil, function(piece) pieces[#pieces + 1] = piece end)))
        assert.equal(plan[ask](plan, rank or nil), table.concat(pieces))
      end
    end
    for _, ask in ipairs { "text", "rules" } do
      local pieces = {}
      plan[ask](plan, function(piece) pieces[#pieces + 1] = piece end)
      assert.equal(plan[ask](plan), table.concat(pieces))
    end
    assert.equal(plan.digest, mg.saved("rules", plan:rules()).digest)
  end)

  it("raises what that function raises, and stops there", function()
    local calls, large = 0, mg.load "megatron":plan(1024)
    local ok, raised = pcall(large.json, large, nil, function() calls = calls + 1 error({ "mine" }) end)
    assert.falsy(ok)
    assert.same({ "mine" }, raised)
    assert.equal(1, calls)
    assert.has_error(function() plan:text "no function" end)
    refused(103, "rank 16 is out of range; ranks are 0 to 15", plan.json, plan, 16)
  end)

  it("has its parameters, and the families that are used at the same time", function()
    local by = {}
    for _, param in ipairs(plan.params) do by[param.name] = param end
    assert.same({ name = "unread", value = "3", short = "3", usual = false, unread = true }, by.unread)
    assert.is_true(by.tp.usual)
    assert.is_false(by.tp.unread)
    assert.equal("0.1", by.rate.short)
    assert.same({ { "dp", "none" } }, plan.concurrent)
    assert.same({}, plan.functions)
  end)

  it("tells what makes the communicators of a family", function()
    local tp, twin = plan:communicators "tp", plan:communicators "twin"
    assert.same({ true, true, 8, "", 0, false }, { tp.needed, tp.made, tp.own, tp.options, tp.singles, tp.twin })
    assert.same({ true, true, 0, "tp", "" }, { twin.needed, twin.made, twin.own, twin.shares, twin.options })
    assert.is_true(tp.created > 0 and tp.ring > 0)
    assert.is_true(plan:communicators("tp", { max_ctas = 1 }).created < tp.created)
    assert.equal("unique timeout_us=5000000", plan:communicators "apart".options)
    local none = plan:communicators "none"
    assert.same({ true, false, 0 }, { none.needed, none.made, none.own })
    assert.same({ 0, 0 }, { none.created, none.ring })
    refused(101, "unknown family 'tpp'; nearest is 'tp'", plan.communicators, plan, "tpp")
    assert.same({}, plan:leaders "tp")
    assert.same({ { family = "tp", groups = 8 } }, plan:leaders "twin")
    local sharing = plan:sharing()
    assert.same({ { "tp", "twin" } }, { sharing[1].families, sharing[2] and sharing[2].families })
    assert.is_true(sharing[1].created > 0)
  end)

  it("counts ranks in no group, and knows what a backend ignores", function()
    assert.same({ 0, "", false }, { plan:idle() })
    local some = mg.topology(mg.world(8))
    some.a = mg.world(8):table({ { 0, 1 }, { 4, 5 } }, "partial")
    assert.same({ 4, "2, 3, 6, 7", false }, { mg.plan(some):idle() })
    assert.same({ "high_priority of 1 family, timeout of 1 family", "mpi" }, { plan:unheeded "mpi" })
    assert.same({ "", "nccl" }, { plan:unheeded "nccl" })
    refused(101, "unknown backend 'mpj'", plan.unheeded, plan, "mpj")
  end)

  it("predicts what NCCL takes at a site", function()
    local usual, few = plan:resources(), plan:resources(nil, { max_ctas = 1 })
    assert.equal(8, usual.machine_ranks)
    assert.is_true(few.created < usual.created)
    assert.equal(0, plan:resources(0, { no_nvls = true }).nvls_slots)
    assert.truthy(plan:json(nil, nil, { machine_ranks = 4 }):find('"machine_ranks": 4', 1, true))
    refused(101, "unknown field of a site 'ranks'", plan.resources, plan, nil, { ranks = 8 })
    refused(103, "rank 16 is out of range", plan.resources, plan, 16)
  end)

  it("compares with another", function()
    local none = plan:diff(plan)
    assert.same({ false, {}, 1, 1 }, -- that of the family apart, which shares none
                { none.differ, none.changes, none.created, none.dropped })
    assert.equal("no difference", tostring(none):match "^[^\n]*")
    local other = recipe:plan(16, { "tp=4", "unread=3" })
    local diff, by = plan:diff(other, 5), {}
    for _, change in ipairs(diff.changes) do by[change.what .. " " .. change.name] = change end
    assert.is_true(diff.differ)
    assert.same({ kind = "~", what = "param", name = "tp", from = "2", to = "4" }, by["param tp"])
    assert.same({ size = 16, offset = 0, dims = { { "tp", 2 }, { "dp", 8 } } }, by["grid grid"].from)
    assert.same({ 8, 2, "unique timeout_us=5000000" },
                { by["family apart"].from.count, by["family apart"].from.size, by["family apart"].from.options })
    assert.equal(plan:counts(5).communicators, diff.kept + diff.dropped)
    assert.equal(other:counts(5).communicators, diff.kept + diff.created)
    assert.truthy(tostring(diff):find("rank 5 keeps", 1, true))
    local worlds = plan:diff(recipe:plan(32))
    assert.same({ kind = "~", what = "world", name = "size", from = 16, to = 32 }, worlds.changes[1])
    assert.is_nil(worlds.kept)
    refused(103, "rank 16 is out of range", plan.diff, plan, other, 16)
  end)

  it("has whole tensors, and as many runs of a part as are asked for", function()
    local whole = plan:tensor "w"
    assert.same({ { "row" }, 64, 8, 2, 0 }, { whole.axes, whole.bytes, whole.largest, whole.copies, whole.without })
    local part = plan:tensor("w", 0)
    assert.same({ { { 0, 4 }, { 32, 4 } } }, part.runs)
    assert.is_nil(part.nruns)
    part = plan:tensor("w", 0, 1)
    assert.same({ { { { 0, 4 } } }, { 2 } }, { part.runs, part.nruns })
  end)

  it("has members of its families without lists", function()
    local family = plan:family "tp"
    assert.same({ 2, 3, 3 }, { family.largest, family:member(1, 1), (family:member(1, -1)) })
    assert.same({ 2, 2 }, { family:member(1, 0) })
    refused(103, "position 2 is out of range", family.member, family, 0, 2)
    refused(103, "group 8 is out of range", family.member, family, 8, 0)
  end)

  it("checks laws of families and of a machine", function()
    local machine = mg.open_machine "node:8 gpu:2"
    assert.same({ true }, { plan:law "within(tp, tp)" })
    assert.is_false((plan:law "same(tp, dp)"))
    assert.same({ true }, { plan:law("within(tp, machine.node)", machine) })
    local held, why = plan:law("within(dp, machine.node)", machine)
    assert.is_false(held)
    assert.truthy(why:find "^law within%(dp, machine.node%) does not hold: ", why)
    refused(101, "unknown law 'withn'; nearest is 'within'", plan.law, plan, "withn(tp, dp)")
    refused(101, "law within(tq, dp): unknown family 'tq'", plan.law, plan, "within(tq, dp)")
    refused(102, "a law is within(a, b)", plan.law, plan, "within")
    refused(200, "law within(tp, machine.node) needs a machine", plan.law, plan, "within(tp, machine.node)")
  end)

  it("knows whether its recipe has a step", function()
    assert.is_false(plan:has_step())
    local picotron = mg.load "picotron":plan(8)
    assert.is_true(picotron:has_step())
    assert.is_false(mg.saved("saved", picotron:rules()):has_step())
    assert.is_false(mg.load "picotron":plan(1 << 27):has_step())
  end)

  it("has the rules of its families, in words", function()
    assert.same({ "(2:1) x (8:2)", "a group is 2 ranks, 1 apart; the groups begin at 8 places, 2 apart, from rank 0 on" },
                { plan:family("tp"):explain() })
  end)

  it("has the lines that made its families, if load was asked for them", function()
    local text = [[return recipe { build = function(world)
      local t, g = topology(world), grid(world, "tp-dp", { tp = 2, dp = fill })
      t.tp = g "tp"
      t.half = g "dp":split(2)
      return t
    end }]]
    local known = mg.load("known", { text = text, lines = true })
    for _, world in ipairs { 8, 16 } do
      local made = known:plan(world)
      assert.same({ { "known:3" }, { "known:4", "known:4" } }, { made:lines "tp", made:lines "half" })
    end
    assert.is_nil(mg.load("unknown", { text = text }):plan(8):lines "tp")
    refused(101, "unknown family 'tq'", plan.lines, plan, "tq")
  end)

  it("has the laws about the machine that it read", function()
    local laws = mg.load("laws", { text = [[return recipe { machine = "node:2 gpu:4", build = function(world)
      local t, g = topology(world), grid(world, "tp-dp", { tp = 4, dp = fill })
      t.tp = g "tp"
      within(t.tp, machine.node)
      return t
    end }]] })
    assert.same({ "within(tp, machine.node)" }, laws:plan(8).laws)
    assert.is_false(plan.laws)
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
    assert.truthy(err:find "^%d+ communicators of NCCL take %d+ bytes of a GPU\n", err)
    assert.truthy(err:find "\ntp: %(2:1%) x %(2:2%)  picotron:%d+; in a node\n", err)
    assert.truthy(err:find "\npp_dp: %(2:2%) x %(2:1%)  picotron:%d+; dp makes 2\n", err)
    assert.truthy(err:find("; in a node\n", 1, true), err)
    assert.truthy(err:find("\nthe step: proved\n", 1, true), err)
    assert.equal(0, code)
    assert.equal("\n0\tnode=0 gpu=0\n1\tnode=0 gpu=1\n2\tnode=1 gpu=2\n3\tnode=1 gpu=3\n", out:match "^%x+(.*)")
    local path = support.file(run "build/moongrid plan picotron --world 4 tp=2 --rules")
    assert.equal(out, (run(planner .. path .. " 4 'node:2 gpu:2'")))
    local _, changed = run("MOONGRID_WAS=" .. path .. " " .. planner .. "picotron 4 'node:2 gpu:2' tp=4")
    assert.truthy(changed:find("\n~ param    tp_size: 2 -> 4\n", 1, true), changed)
  end)

  it("ends with the exit code of the command", function()
    for words, code in pairs { ["picotron 4 2 tp=3"] = 1, ["picotron 4 2 tp"] = 2, ["nothing 4 2"] = 1, ["picotron"] = 2 } do
      assert.equal(code, select(3, run(planner .. words)), words)
    end
  end)
end)
