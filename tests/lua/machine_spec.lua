-- SPDX-License-Identifier: MIT
--
-- Machines in recipes and on the command line: families of domains, laws, and which of their facts the digest covers.

local support = dofile "tests/lua/support.lua"
local moongrid = require "moongrid"
local run, file = support.run, support.file

local function moongrid_(line) return run("build/moongrid " .. line) end

local laws = [[
return recipe {
  machine = "node:4 gpu:8 rail = gpu",
  params = { tp = 8, order = "tp-dp", which = "" },
  build = function(world, p)
    local g = grid(world, p.order, { tp = p.tp, dp = fill })
    local t = topology(world)
    t.tp, t.dp = g "tp", g "dp"
    if p.which == "within" then within(t.tp, machine.node) end
    if p.which == "aligned" then aligned(t.dp, machine.rail) end
    if p.which == "spread" then spread(t.dp, machine.node) end
    if p.which == "family" then t.node = machine.node end
    if p.which == "has" then t.x = machine:has "rack" and g "tp" or g "dp" end
    return t
  end,
}
]]

describe("a machine", function()
  local path
  before_each(function() path = file(laws) end)

  local function plan(words) return moongrid_("plan " .. path .. " " .. words) end

  local function refuses(words, code, message)
    local out, err, status = plan(words)
    assert.are.equal("moongrid: " .. message .. "\n", (err:gsub(path:gsub("%p", "%%%0"), "r.lua")))
    assert.are.same({ "", code }, { out, status })
  end

  it("makes laws hold, which plan and check list", function()
    for which, law in pairs { within = "within(tp, machine.node)", aligned = "aligned(dp, machine.rail)",
                              spread = "spread(dp, machine.node)" } do
      local out = plan("--world 32 which=" .. which)
      assert.is_truthy(out:find("\nmachine        node:4 gpu:8 rail = gpu\nlaws           " .. law .. " held\n", 1, true), out)
      out = moongrid_("check " .. path .. " --world 16,32 which=" .. which)
      assert.is_truthy(out:find("\n" .. law .. " +held\n") or out:find("\n" .. law .. " ", 1, true), out)
    end
  end)

  it("refuses a law with the first group, how many break it, and what would do", function()
    refuses("--world 32 which=within order=dp-tp", 1, "r.lua:8: within(a, machine.node): 4 of 4 groups of the family "
      .. "cross: the first is group 0: its rank 0 is in node 0 and rank 8 in node 1; its members are 4 apart: put "
      .. "its dims first in the order of the grid")
    refuses("--world 32 which=within tp=16", 1, "r.lua:8: within(a, machine.node): 2 of 2 groups of the family cross: the "
      .. "first is group 0: its rank 0 is in node 0 and rank 8 in node 1; the largest node has 8 places, so use groups of at "
      .. "most 8")
    refuses("--world 30 which=within tp=6", 1, "r.lua:8: within(a, machine.node): 2 of 5 groups of the family cross: the "
      .. "first is group 1: its rank 6 is in node 0 and rank 8 in node 1; groups of 6 do not divide the 8 places of a "
      .. "node: use groups of 4 or 8")
    refuses("--world 24 which=within tp=6", 1, "r.lua:8: within(a, machine.node): 2 of 4 groups of the family cross: the "
      .. "first is group 1: its rank 6 is in node 0 and rank 8 in node 1; groups of 6 do not divide the 8 places of a "
      .. "node: use groups of 4 or 8, or leave 2 places of each idle")
    refuses("--world 30 which=aligned tp=6", 1, "r.lua:9: aligned(a, machine.rail): 6 of 6 groups of the family are not "
      .. "aligned: the first is group 0: its rank 0 in node 0 is on rail 0, and its rank 12 in node 1 is on rail 4; "
      .. "put its members whole nodes apart: the sizes of the dims before its own then multiply to a multiple of the "
      .. "places of a node")
    refuses("--world 32 which=spread tp=4", 1, "r.lua:10: spread(a, machine.node): 4 of 4 groups of the family are not "
      .. "spread: the first is group 0: its ranks 0 and 4 are both in node 0; there are 4 nodes, so use groups of at "
      .. "most 4")
    refuses("--world 16 which=spread tp=2", 1, "r.lua:10: spread(a, machine.node): 2 of 2 groups of the family are not "
      .. "spread: the first is group 0: its ranks 0 and 2 are both in node 0; there are 4 nodes, so use groups of at "
      .. "most 4")
  end)

  it("is part of the digest if the recipe reads it, and only then", function()
    local function digest(words) return plan(words):match "\ndigest +(%x+)" end
    local other = " --machine 'node:4 gpu:8 rail = gpu / 2'"
    assert.are.equal(digest "--world 32", digest("--world 32" .. other))
    for _, which in ipairs { "family", "has" } do
      local with = "--world 32 which=" .. which
      assert.is_truthy(digest(with))
      assert.are_not.equal(digest(with), digest(with .. other))
    end
  end)

  it("is that of the command line, else that of the recipe", function()
    local out = plan "--world 16 which=family --machine dgx-h100"
    assert.is_truthy(out:find("\nmachine        node:%*%[400GB/s%] gpu:8%[450GB/s%] rail = gpu%[50GB/s%]\n"), out)
    refuses("--world 40", 1, "r.lua:1: a world of 40 ranks does not fit the machine, which has 32 places")
    refuses("--world 40 --machine 'node:2 gpu:8'", 1, "r.lua:1: a world of 40 ranks does not fit the machine, which has "
      .. "16 places")
    assert.is_truthy(plan("--world 40 --machine 8"))
  end)

  it("is in a saved plan", function()
    local saved = file(plan "--world 32 which=within --rules")
    local out = moongrid_("plan " .. saved)
    assert.are.equal(plan("--world 32 which=within"):match "\ndigest +(%x+)", out:match "\ndigest +(%x+)")
    out = moongrid_("check " .. saved .. " --law 'spread(dp, machine.node)'")
    assert.is_truthy(out:find "\nspread%(dp, machine.node%) +held\n", out)
  end)

  it("is named in refusals of the command line", function()
    refuses("--world 32 --machine 'node:4 gpus'", 2, "machine 'node:4 gpus': it ends where ':' and a number, as in node:4, "
      .. "is expected")
    local _, err, status = moongrid_ "check picotron --world 8 --law 'within(tp, machine.node)'"
    assert.are.same({ "moongrid: law within(tp, machine.node) needs a machine: --machine FILE, TEXT or PRESET, or machine = "
      .. "in the recipe\n", 2 }, { err, status })
    _, err, status = moongrid_ "check picotron --world 8 --machine 4 --law 'wihtin(tp, machine.node)'"
    assert.are.same({ "moongrid: unknown law 'wihtin'; nearest is 'within' (within, aligned, spread)\n", 1 },
      { err, status })
    _, err, status = moongrid_ "check picotron --world 8 --machine 4 --law 'within(tp, machine.nodes)'"
    assert.are.same({ "moongrid: law within(tp, machine.nodes): unknown level of the machine 'nodes'; nearest "
      .. "is 'node' (node, gpu)\n", 1 }, { err, status })
    _, err, status = moongrid_ "check picotron --world 8 --machine 4 --law 'aligned(tp, machine.node)'"
    assert.are.same({ "moongrid: law aligned(tp, machine.node): aligned needs domains that cross levels, as "
      .. "rail = gpu makes them; node is a level\n", 1 }, { err, status })
  end)
end)

describe("the word machine", function()
  local function builds(body, world)
    local path = file("return recipe { build = function(world) local t = topology(world) " .. body .. " return t end }")
    local ok, result = pcall(function() return moongrid.load(path):plan(world or 8) end)
    return ok and result or result:gsub("^.-: ", "", 1)
  end

  it("raises where there is none", function()
    assert.are.equal("there is no machine: --machine FILE, TEXT or PRESET gives one, or machine = \"dgx-h100\" in the "
      .. "recipe, or machine(\"node:4 gpu:8\", world)", (builds "t.x = machine.node"))
  end)

  it("makes machines of its own", function()
    local p = builds("t.x = machine('rack:2 node:1,2 gpu:2 rail = gpu').rack; t.y = machine('node:* gpu:3').node", 6)
    assert.are.same({ { 0, 1 }, { 2, 3, 4, 5 } }, { p:family("x"):ranks(0), p:family("x"):ranks(1) })
  end)

  it("works on hosts, too", function()
    local m = moongrid.machine("node:* gpu:4 rail = gpu", moongrid.world(10))
    assert.are.equal("Machine node:* gpu:4 rail = gpu", tostring(m))
    assert.is_true(m:has "rail")
    assert.are.same({ { 0, 4, 8 }, { 2, 6 }, 4 }, { m.rail:ranks(0), m.rail:ranks(2), m.rail.count })
    assert.are.same({ 8, 9 }, m.node:ranks(2))
    assert.has_error(function() return m.nodes end)
    local g = moongrid.grid(moongrid.world(10), "a-b", { a = 2, b = moongrid.fill })
    assert.is_nil((moongrid.within(g "a", m.node)))
    assert.has_error(function() moongrid.spread(g "a", m.node) end)
  end)
end)

describe("moongrid machine and why", function()
  it("show a machine, and the presets", function()
    local out = moongrid_ 'machine --machine "rack:2 node:2,3[400GB/s,3us] gpu:4 rail = gpu"'
    assert.are.equal([[
machine        rack:2 node:2,3[400GB/s,3us] gpu:4 rail = gpu

level                 domains       places  link
rack                        2 <=        12
node                        5            4  [400GB/s,3us]
gpu                        20            1
rail                        4            5
]], out)
    local presets = require "dkjson".decode((moongrid_ "machine --json"))
    assert.is_truthy(presets["dgx-h100"].source:find("data sheet", 1, true))
    for _, preset in pairs(presets) do
      assert.is_truthy(moongrid_("machine --machine '" .. preset.text .. "'"):find("^machine "))
    end
    local saved = file((moongrid_ "machine --machine 'node:2[1us] gpu:3,2 ranks = 4,3' --json"))
    assert.are.equal("machine        node:2[1us] gpu:3,2 ranks = 4,3", (moongrid_("machine --machine " .. saved):match "[^\n]*"))
  end)

  it("take more words after a file, also if domains cross levels", function()
    local words = { "node:* gpu:8 rail = gpu", "node:* gpu:8 rail = gpu in node", "node:2 gpu:3,4 rail = gpu / 2",
                    "rack:2 node:2,1 gpu:2 rail = gpu in rack" }
    for _, text in ipairs(words) do
      local saved = file((moongrid_(("machine '%s' --json"):format(text))))
      for _, more in ipairs(text:find "*" and { "node:4", "core:2 node:3" } or { "core:2", "core:2 cache:3" }) do
        local number = more:match "node:%d"
        local whole = (number and text:gsub("node:%*", number) or text):gsub("rail", more:gsub(" ?node:%d", "") .. " rail")
        local file_, text_ = moongrid.open_machine(saved .. " " .. more), moongrid.open_machine(whole)
        assert.equal(text_:text(), file_:text())
        assert.same(text_:levels(), file_:levels())
        local places = 1
        while pcall(text_.fits, text_, places) do places = places + 1 end
        assert.has_error(function() file_:fits(places) end)
        for _, level in ipairs(text_:levels()) do
          assert.same(text_:domains(level.name, places - 1), file_:domains(level.name, places - 1))
        end
      end
    end
  end)

  it("say where two ranks run, and over which links they talk", function()
    local out = moongrid_ "why picotron --world 16 tp=4 0 5 --machine dgx-h100"
    assert.is_truthy(out:find("\nmachine        both in node 0; rank 0 in gpu 0, rank 5 in gpu 5; link of a gpu\n               [450GB/s]; on different rails, 0 and 5\n", 1, true), out)
    out = moongrid_ "why picotron --world 16 tp=4 0 8 --machine 'node:2 gpu:8 rail = gpu'"
    assert.is_truthy(out:find("\nmachine        rank 0 in node 0, rank 8 in node 1; on one rail, 0\n", 1, true), out)
    out = moongrid_ "why picotron --world 16 tp=4 0 8"
    assert.is_nil(out:find("machine", 1, true))
  end)
end)
