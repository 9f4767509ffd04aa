-- SPDX-License-Identifier: MIT
--
-- Commands that take long report their progress on a terminal, which `script` emulates.

local support = dofile "tests/lua/support.lua"
local run, on_terminal = support.run, support.on_terminal

describe("what takes more than a second", function()
  local long = "build/moongrid run megatron --world 1048576 --backend dry"

  it("says so on a terminal, on a line that is taken away", function()
    local lines, code = on_terminal(80, long)
    local seen = 0
    for _, text in ipairs(lines) do
      if text:find "^\27%[Kmoongrid: rehearsing 1048576 ranks, %d+ s$" then seen = seen + 1 end
    end
    assert.are.equal(0, code)
    assert.is_true(seen >= 1, table.concat(lines, "\n"))
    local last = 0
    for i, text in ipairs(lines) do last = text:find "rehearsing" and i or last end
    assert.truthy(lines[last + 1]:find "^\27%[K", lines[last + 1])
  end)

  it("tells how much is written, and goes in one line of a narrow terminal", function()
    local lines = on_terminal(40, "build/moongrid plan megatron --world 2097152 --json >/dev/null")
    local seen = 0
    for _, text in ipairs(lines) do
      text = text:gsub("\27%[K", "")
      if text:find "^moongrid: writing the groups of 2097152" then seen = seen + 1 end
      assert.is_true(#text <= 39, text)
    end
    assert.is_true(seen >= 1, table.concat(lines, "\n"))
  end)

  local recipe = support.file [[return recipe { params = { tp = 8 }, build = function(world, p)
    local t, g = topology(world), grid(world, "tp-dp", { tp = p.tp, dp = fill })
    t.g = g
    t.w = tensor { axes = { { "row", 4096 }, { "col", 4096 } }, type = "bf16", cut = { row = "tp" } }
    t.v = t.w
    return t
  end }]]
  local page = os.tmpname() .. ".html"
  teardown(function()
    os.remove(page)
  end)
  for line, what in pairs {
    ["move " .. recipe .. " --world 1048576 tp=8 vs tp=64"] = "planning the move of 1048576 ranks",
    ["move " .. recipe .. " --world 262144 tp=8 vs tp=64 --list >/dev/null"] = "writing the messages of 262144 ranks",
    ["draw examples/moe.lua --world 65536 tp=2 pp=2,4,8,16 -o " .. page] = "drawing the page",
    ["lose megatron --world 1048576 tp=8 --ranks 5"] = "planning for losses of 1048576 ranks",
  } do
    it("also of moongrid " .. line:match "^%l+" .. (line:find "list" and " --list" or ""), function()
      local lines, code = on_terminal(80, "build/moongrid " .. line)
      assert.are.equal(0, code)
      local all = table.concat(lines, "\n")
      assert.truthy(all:find("\27%[Kmoongrid: " .. what .. ", %d+ s"), all)
    end)
  end

  it("is silent in a pipe, and what is quick on a terminal", function()
    local out, err = run(long)
    assert.are.same({ "", false }, { err, out:find("\27", 1, true) ~= nil })
    assert.are.equal(3, #(on_terminal(80, "build/moongrid check picotron --world 8")))
    for _, text in ipairs((on_terminal(80, "build/moongrid check picotron --world 8,16"))) do assert.falsy(text:find "\27") end
  end)
end)
