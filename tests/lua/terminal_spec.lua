-- SPDX-License-Identifier: MIT
--
-- The command on a terminal of some width, which `script` plays: texts fit it, and what takes long says that it goes on.

local support = dofile "tests/lua/support.lua"
local run = support.run

-- What a command line writes to a terminal, as lines; a line that is begun anew is one more. The exit code.
local function on_terminal(columns, line)
  local out, _, code = run(("script -qec 'stty cols %d; %s' /dev/null"):format(columns, line))
  local lines = {}
  for text in out:gsub("\r\n", "\n"):gsub("\r", "\n"):gmatch "[^\n]+" do lines[#lines + 1] = text end
  return lines, code
end

local function words_of(text)
  local words = {}
  for word in text:gmatch "%S+" do words[#words + 1] = word end
  return words
end

describe("recipes and explain on a terminal", function()
  for _, line in ipairs { "recipes", "recipes megatron", "recipes torchtitan", "recipes optimum_habana",
    "explain --color never examples/moe.lua --world 16", "explain --color never megatron --world 64 tp=2" } do
    it("fit 70 columns, and lose no word: " .. line, function()
      local wide = words_of(table.concat((on_terminal(400, "build/moongrid " .. line)), "\n"))
      local lines, code = on_terminal(70, "build/moongrid " .. line)
      for _, text in ipairs(lines) do assert.is_true(#text <= 70, text) end
      if line:find "^recipes" then assert.are.same(wide, words_of(table.concat(lines, "\n"))) end
      assert.are.equal(0, code)
      assert.is_true(#wide > 50)
    end)
  end

  it("put what does not fit below the column, or where that is narrow, below the line", function()
    local list = table.concat((on_terminal(64, "build/moongrid recipes")), "\n")
    assert.truthy(("\n" .. list):find("\npicotron                 picotron's ProcessGroupManager: tensor,\n"
      .. (" "):rep(25) .. "context, pipeline, data\n", 1, true), list)
    local one = table.concat((on_terminal(80, "build/moongrid recipes picotron")), "\n")
    assert.truthy(one:find("\n  tp_size                              size     1\n      tensor-parallel size (also tp)\n", 1, true), one)
    one = table.concat((on_terminal(120, "build/moongrid recipes picotron")), "\n")
    assert.truthy(one:find("\n  tp_size                              size     1                  tensor-parallel size (also tp)\n",
      1, true), one)
  end)

  it("are 80 columns in a pipe; a getter stays in one line, for grep", function()
    for _, name in ipairs { "recipes", "recipes megatron", "explain megatron --world 64 tp=2" } do
      for text in run("build/moongrid " .. name):gmatch "[^\n]+" do assert.is_true(#text <= 80, text) end
    end
    assert.truthy(run "build/moongrid recipes megatron --getters":find(
      "(partial_data_parallel=true, with_context_parallel=true, with_gtp_remat=false) -> intra_dp_cp\n", 1, true))
  end)
end)

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
    local lines = on_terminal(40, "build/moongrid plan megatron --world 1048576 --json >/dev/null")
    local seen = 0
    for _, text in ipairs(lines) do
      text = text:gsub("\27%[K", "")
      if text:find "^moongrid: writing the groups of 1048576" then seen = seen + 1 end
      assert.is_true(#text <= 39, text)
    end
    assert.is_true(seen >= 1, table.concat(lines, "\n"))
  end)

  it("is silent in a pipe, and what is quick on a terminal", function()
    local out, err = run(long)
    assert.are.same({ "", false }, { err, out:find("\27", 1, true) ~= nil })
    assert.are.equal(1, #(on_terminal(80, "build/moongrid check picotron --world 8")))
    for _, text in ipairs((on_terminal(80, "build/moongrid check picotron --world 8,16"))) do assert.falsy(text:find "\27") end
  end)
end)

describe("moongrid(1)", function()
  local function shown(by) return run("make -s man && " .. by) end

  it("has no mistake that man or mandoc know, and 80 columns", function()
    if run "command -v man mandoc" == "" then return pending "neither man nor mandoc is here" end
    assert.are.same({ "", "" }, { shown "! command -v man >/dev/null || man --warnings -l build/man/moongrid.1 2>&1 >/dev/null",
      (shown "! command -v mandoc >/dev/null || mandoc -T lint build/man/moongrid.1") })
    local text = shown "(MANWIDTH=80 man -l build/man/moongrid.1 2>/dev/null || mandoc -T ascii build/man/moongrid.1) | col -bx"
    for line in text:gmatch "[^\n]+" do assert.is_true(require("utf8").len(line) <= 80, line) end
    assert.truthy(text:find("\nEXAMPLES\n", 1, true))
    assert.truthy(text:find("\n       moongrid run RECIPE [NAME=VALUE ...]\n", 1, true))
  end)
end)
