-- SPDX-License-Identifier: MIT
--
-- The cookbook: its layouts are short, hold at several sizes, and look as its README shows them. The examples of verbs
-- in lua/moongrid/meta*.lua and lua/README.md make the groups that are written there.

local mg = require "moongrid"
local support = dofile "tests/lua/support.lua"
local run, read = support.run, support.read

local readme = read "examples/cookbook/README.md"

describe("the cookbook", function()
  local layouts = {}
  local fitting = { -- worlds where not any multiple fits: one by the list of stages; replicas that the encoder's divide
    ["asymmetric_stages.lua"] = "16", ["bridge.lua"] = "12,20,36",
  }
  for path in io.popen("ls examples/cookbook/*.lua"):lines() do layouts[#layouts + 1] = path end

  it("has twelve layouts", function() assert.are.equal(12, #layouts) end)

  for _, path in ipairs(layouts) do
    local name = path:match "([^/]+)$"

    it(name .. " is shorter than 25 lines", function()
      local _, lines = read(path):gsub("\n", "")
      assert.is_true(lines < 25, lines .. " lines")
    end)

    it(name .. " looks as the README says", function()
      local drawn = 0
      for line, picture in readme:gmatch("```\nmoongrid (draw " .. path:gsub("%p", "%%%0") .. "[^\n]*)\n\n(.-)```") do
        local out, err, code = run("LC_ALL=C.UTF-8 build/moongrid " .. line)
        assert.are.same({ picture, "", 0 }, { out, err, code })
        drawn = drawn + 1
      end
      assert.are.equal(1, drawn)
      assert.is_truthy(readme:find(("[%s](%s)"):format(name, name), 1, true))
    end)

    it(name .. " holds at its size and at larger ones, and leaves no rank out silently", function()
      local world, args = readme:match(path:gsub("%p", "%%%0") .. " %-%-world (%d+)([^\n]*)")
      local worlds = fitting[name] or ("%d,%d,%d"):format(world, 2 * world, 8 * world)
      local out, err, code = run(("build/moongrid check %s --world %s%s"):format(path, worlds, args))
      assert.are.same({ 0, "" }, { code, err }, out)
    end)
  end

  it("has all spare ranks of a node in standby", function()
    local standby = mg.load("examples/cookbook/spares.lua"):plan(8, { spare = 2, tp = 2 }):family "standby"
    assert.same({ { 2, 3 }, { 6, 7 } }, { standby:ranks(0), standby:ranks(1) })
  end)

  it("refuses a world that the stages leave ranks of", function()
    local _, err, code = run "build/moongrid plan examples/cookbook/asymmetric_stages.lua --world 20"
    assert.are.same({ 1, "moongrid: examples/cookbook/asymmetric_stages.lua:14: covers: rank 16 is in no group\n" },
      { code, err })
  end)
end)

describe("the verbs", function()
  local world = mg.world(8)
  local env = setmetatable({ world = world, grid = mg.grid, fill = mg.fill, union = mg.union, zip = mg.zip, closure = mg.closure,
    g = mg.grid(world, "tp-dp-pp", { tp = 2, dp = 2, pp = 2 }), low = mg.grid(world:window(0, 4), "x-y", { x = 2, y = 2 }),
    high = mg.grid(world:window(4), "x-y", { x = 2, y = 2 }) }, { __index = _G })
  local said, makes = {}, {}

  for _, one in ipairs(dofile "scripts/make/annotations.lua".examples()) do
    local code, groups = one.code, one.groups
    said[#said + 1], makes[code] = code, groups
    it(code, function()
      local family, got = assert(load("return " .. code, "=verb", "t", env))(), {}
      for _, ranks in pairs(family) do got[#got + 1] = "{" .. table.concat(ranks, ",") .. "}" end
      assert.are.equal(groups, table.concat(got, " "))
    end)
  end

  it("on the page make what their annotations say", function()
    local page, n = read("lua/README.md"):match "\n## Verbs\n(.-)\n## ", 0
    for code, groups in page:gmatch "\n| `([^`]*)` | `([^`]*)` |" do
      n = n + 1
      assert.are.equal(groups, makes[code], code)
    end
    assert.is_true(n > 5)
  end)

  it("are all there: every operation that makes a family of another", function()
    local all = table.concat(said, "\n")
    for _, name in ipairs { "pick", "split", "levels", "segments", "renumber", "bundle", "pairs", "neighbours", "without", "map",
      "where", "groups", "at", "ordered", "unflatten", "flatten", "order", "modes", "table" } do
      assert.is_truthy(all:find(":" .. name, 1, true), name)
    end
    for _, name in ipairs { "union", "zip" } do assert.is_truthy(all:find(name .. "(", 1, true), name) end
  end)
end)
