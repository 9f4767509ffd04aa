-- SPDX-License-Identifier: MIT
--
-- moongrid.pictures in a Lua that loads the module, and the functions that pictures need of it: members, modes,
-- parameters, creations, domains.

local support = dofile "tests/lua/support.lua"
local mg = require "moongrid"
local run = support.run

local megatron = mg.load "megatron"
local plan = megatron:plan(64, { tp = 2, pp = 4 })

describe("moongrid.pictures", function()
  it("draws what the command draws, to a sink or as a string", function()
    local line = "LC_ALL=C.UTF-8 build/moongrid draw megatron --world 64 tp=2 pp=4 "
    assert.equal((run(line)), mg.pictures.text(plan, { unicode = true }))
    assert.equal((run(line .. "--family tp,dp")), mg.pictures.text(plan, { families = { "tp", "dp" }, unicode = true }))
    assert.equal((run(line .. "--rank 5")), mg.pictures.text(plan, { all = true, rank = 5, unicode = true }))
    local machine = mg.open_machine "node:16 gpu:4"
    assert.equal((run(line .. "--machine 'node:16 gpu:4'")), mg.pictures.text(plan, { machine = machine, unicode = true }))
    local path = os.tmpname() .. ".svg"
    run(line .. "-o " .. path)
    local pieces = {}
    assert.is_nil(mg.pictures.svg(plan, { all = true }, function(piece) pieces[#pieces + 1] = piece end))
    assert.equal(support.read(path), table.concat(pieces))
    os.remove(path)
    assert.is_true(#pieces > 100)
    for _, piece in ipairs(pieces) do assert.is_true(#piece < 1 << 16) end
  end)

  it("explains what the command explains, and reads lines of a file only by a function", function()
    local line = "build/moongrid explain megatron --world 64 tp=2 pp=4 "
    local lined = mg.load("megatron", { lines = true }):plan(64, { tp = 2, pp = 4 })
    assert.equal((run(line)), mg.pictures.explain(lined))
    assert.equal((run(line .. "--family tp,dp")), mg.pictures.explain(lined, { families = { "tp", "dp" } }))
    assert.falsy(mg.pictures.explain(plan):find("made by", 1, true))
    local path = support.file "return recipe { build = function(w)\n  local t = topology(w)\n  t.all = grid(w, 'a', { a = fill }) 'a'\n  return t end }"
    local of_file = mg.load(path, { lines = true }):plan(8)
    assert.falsy(mg.pictures.explain(of_file):find("t.all", 1, true))
    local told = mg.pictures.explain(of_file, { read = function(file) return io.open(file):read "a" end })
    assert.truthy(told:find("t.all = grid(w", 1, true), told)
    os.remove(path)
  end)

  it("finds the column of wrong Lua in a long line for the playground", function()
    package.path = "lua/?.lua;" .. package.path
    local answer = require "pictures.playground"
    for _, before in ipairs { "", ("local %s = 1 "):format(("a"):rep(30)), ("local %s = 1 "):format(("a"):rep(80)) } do
      local code = before .. "t.x = = 1"
      local told = answer { name = "x.lua", world = 2, text = "return recipe { build = function(w)\n    " .. code .. " end }" }
      assert.equal(#code - 3, tonumber(told:match '"column":(%d+)'), told)
    end
  end)

  it("raises what a sink raises, and a family that is not there", function()
    local done, message = pcall(mg.pictures.svg, plan, { all = true }, function() error("full", 0) end)
    assert.same({ false, "full" }, { done, message })
    done, message = pcall(mg.pictures.text, plan, { families = { "tpp" } })
    assert.is_false(done)
    assert.truthy(message:find("unknown family 'tpp'; nearest is 'tp'", 1, true), message)
  end)

  it("refuses options that are none", function()
    for _, case in ipairs {
      { { famlies = { "tp" } }, "unknown option of a picture 'famlies'; nearest is 'families'", 101 },
      { { families = "tp" }, "option 'families' of a picture is a list of names, not a string", 102 },
      { { rank = 1.5 }, "option 'rank' of a picture is a rank, not 1.5", 102 },
      { { rank = 64 }, "rank 64 is out of range; ranks are 0 to 63", 103 },
      { { columns = "80" }, "option 'columns' of a picture is an integer, not a string", 102 },
      { { most = 0 }, "option 'most' of a picture is 1 or more, not 0", 103 },
      { { machine = "node:8" }, "option 'machine' of a picture is a machine, not a string", 102 },
    } do
      for _, how in ipairs { "text", "svg" } do
        local done, message = pcall(mg.pictures[how], plan, case[1])
        assert.is_false(done)
        assert.truthy(message:find(case[2], 1, true), message)
        assert.equal(case[3], mg.status(message))
      end
    end
    local done, message = pcall(mg.pictures.explain, plan, { all = true })
    assert.is_false(done)
    assert.truthy(message:find("unknown option of a report 'all'", 1, true), message)
    done, message = pcall(mg.pictures.page, { frames = { plan } }, print)
    assert.is_false(done)
    assert.truthy(message:find("a page needs the option 'recipe'", 1, true), message)
  end)

  it("writes a page of plans and refusals", function()
    local pieces = {}
    mg.pictures.page({ recipe = "a<b", axes = { { name = "tp", values = { "2", "3" } } },
                       frames = { plan, "tp 3 does not fit" } }, function(piece) pieces[#pieces + 1] = piece end)
    local page = table.concat(pieces)
    assert.truthy(page:find("<title>a&lt;b</title>", 1, true))
    assert.truthy(page:find('{"error":"tp 3 does not fit"}', 1, true))
    assert.truthy(page:find('"recipe":"a\\u003cb"', 1, true))
  end)

  it("says what dims mean that are named by families", function()
    local path = support.file [[return recipe { build = function(world)
      local t, g = topology(world), grid(world, "x-y", { x = 4, y = fill })
      t.rows, t.cols = g "x", g "y"
      return t end }]]
    local svg = mg.pictures.svg(mg.load(path):plan(16), { all = true })
    assert.truthy(svg:find("No grid has a name here: &quot;rows 1&quot; is position 1 of a group of rows.", 1, true))
    assert.falsy(mg.pictures.svg(plan, { all = true }):find("No grid has a name", 1, true))
  end)

  it("is used by the example", function()
    local folder = run("mktemp -d"):gsub("\n", "")
    local out, err, code = run(("LUA_CPATH='build/?.so' lua5.4 examples/pictures/each.lua megatron 16 %s tp=2"):format(folder))
    assert.same({ "", 0 }, { err, code })
    for family in out:gmatch "%S+" do
      assert.truthy(support.read(folder .. "/" .. family .. ".svg"):find('class="family">' .. family .. "<", 1, true))
    end
    assert.equal("gtp_remat\ndp_cp\nintra_dist_opt\nmp\n", out) -- tp has the groups of mp
    run("rm -rf " .. folder)
  end)

  it("leaves the host's require alone", function()
    local code = [[local mg = require "moongrid"; mg.pictures.text(mg.load "picotron":plan(4))
      for name in pairs(package.loaded) do assert(not name:find "^pictures") end assert(not pcall(require, "pictures.svg"))]]
    assert.same({ "", "", 0 }, { run(("LUA_CPATH='build/?.so' lua5.4 -e '%s'"):format(code:gsub("\n", " "))) })
  end)
end)

describe("what pictures ask of the module:", function()
  it("a member of a group, from both ends", function()
    for _, name in ipairs(plan.families) do
      local f = plan:family(name)
      local low, high, most = math.huge, -1, 0
      for group, ranks in f:groups() do
        for i, rank in ipairs(ranks) do
          assert.same({ rank, #ranks }, { f:member(group, i - 1) })
          assert.equal(rank, (f:member(group, i - 1 - #ranks)))
          low, high = math.min(low, rank), math.max(high, rank)
        end
        most = math.max(most, #ranks)
      end
      assert.same({ low, high, most }, { f.low, f.high, f.largest })
    end
    local tp, world = plan:family "tp", mg.world(8)
    assert.has_error(function() tp:member(32, 0) end, "group 32 is out of range; there are 32")
    assert.has_error(function() tp:member(0, 2) end, "position 2 is out of range; group 0 has 2 ranks")
    assert.has_error(function() tp:member(0, -3) end, "position -3 is out of range; group 0 has 2 ranks")
    local uneven = world:table({ { 5 }, { 1, 6, 3 } }, "partial")
    assert.same({ 3, 1, 6 }, { uneven.largest, uneven.low, uneven.high })
  end)

  it("the modes of a family, which make it again", function()
    local with = 0
    for _, name in ipairs(plan.families) do
      local f = plan:family(name)
      local modes = f:modes()
      if modes then
        assert.is_true(mg.world(64):modes(modes) == f, name)
        with = with + 1
      end
    end
    assert.is_true(with > 20)
    assert.is_nil(mg.world(8):table({ { 0, 3 }, { 1, 2, 5 } }, "partial"):modes())
  end)

  it("what a rank creates, in the order of its schedule", function()
    local moe = mg.load "examples/moe.lua":plan(16, { tp = 2, pp = 4 })
    for rank = 0, 15 do
      local lines, want = {}, {}
      for _, made in ipairs(moe:creates(rank)) do lines[#lines + 1] = ("%s[%d]"):format(made.family, made.group) end
      for line in moe:schedule(rank):gmatch "[^\n]+" do want[#want + 1] = line:match "^%s*%d+%s+(%S+)" end
      assert.same(want, lines)
    end
    assert.has_error(function() moe:creates(16) end)
  end)

  it("the domains of ranks, and how groups lie in them", function()
    local machine = mg.open_machine "rack:2 node:2,1 gpu:4,2,4 ranks = 2,3,0,1,4..9"
    for _, level in ipairs { "rack", "node", "gpu" } do
      local domains = machine:domains(level, 10)
      for rank = 0, 9 do
        for _, at in ipairs(machine:where(rank)) do
          if at.level == level then assert.equal(at.domain, domains[rank + 1]) end
        end
      end
    end
    local f, node, crossing = mg.world(10):table { { 0, 1 }, { 2, 4 }, { 3, 5 }, { 6, 7 }, { 8, 9 } }, machine:domains("node", 10), 0
    for _, ranks in f:groups() do crossing = crossing + (node[ranks[1] + 1] ~= node[ranks[2] + 1] and 1 or 0) end
    assert.same({ crossing, 5 - crossing }, { machine:counts(f, "node").crossing, machine:counts(f, "node").inside })
    assert.has_error(function() machine:domains("node", 11) end)
    assert.has_error(function() machine:domains("node", 0) end, "a world has 1 rank or more, not 0")
    assert.has_error(function() machine:domains("nod", 10) end, "unknown level of the machine 'nod'; nearest is 'node' (rack, node, gpu)")
  end)
end)
