-- SPDX-License-Identifier: MIT
--
-- The command on a terminal of some size, which `script` emulates: texts and pictures fit it. The manual pages.

local support = dofile "tests/lua/support.lua"
local run, on_terminal = support.run, support.on_terminal

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

  it("and so do the help of a command and the steps of a rank", function()
    for _, line in ipairs { "plan --help", "move --help", "doctor --help", "diff megatron --world 64 tp=2 vs tp=4",
      "diff megatron --world 64 tp=2 vs nanotron", "plan megatron --world 64 tp=2 pp=2 --rank 37" } do
      local lines = on_terminal(80, "build/moongrid " .. line)
      for _, text in ipairs(lines) do assert.is_true(#text <= 80, text) end
      assert.are.same(words_of(table.concat((on_terminal(400, "build/moongrid " .. line)), "\n"):gsub("{.-}", "")),
        words_of(table.concat(lines, "\n"):gsub("{.-}", "")))
    end
    assert.truthy(run "build/moongrid plan --help":find("NAME=VALUE overrides them\n", 1, true)) -- whole in a pipe
  end)

  it("put what does not fit below the column, or where that is narrow, below the line", function()
    local list = table.concat((on_terminal(64, "build/moongrid recipes")), "\n")
    assert.truthy(list:find("\n  picotron               picotron's ProcessGroupManager: tensor,\n"
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

describe("a picture on a terminal", function()
  local more = "more: | less -R, or -o FILE.txt, .svg, .html; a part: --family F,G, --rank R"

  it("is drawn in part where the screen is too small, and says how to see more", function()
    for _, line in ipairs { "megatron --world 1024 tp=8 pp=4 cp=2", "megatron --world 1024 tp=8 pp=4 --family pp,cp",
      "megatron --world 64 tp=2 --rank 37", "megatron --world 1048576 tp=8 pp=64", "picotron --world 16",
      "examples/encoder_decoder.lua --world 300" } do
      for _, size in ipairs { { 80, 24 }, { 100, 40 }, { 200, 50 } } do
        local text = run(("script -qec 'stty cols %d rows %d; build/moongrid draw --color never %s' /dev/null"):format(
          size[1], size[2], line)):gsub("\r", "")
        local n = 0
        for drawn in text:gmatch "([^\n]*)\n" do n = n + math.max(1, math.ceil(utf8.len(drawn) / size[1])) end
        assert.is_true(n < size[2], text)
        local whole = select(2, run("build/moongrid draw " .. line):gsub("\n", ""))
        if whole >= size[2] then
          assert.are.equal(more .. "\n", text:match "[^\n]*\n$", text)
          assert.is_true(n > size[2] / 3, text)
        end
      end
    end
  end)

  it("has the first and last coordinates, and a rank that was asked for", function()
    local text = table.concat((on_terminal(100, "build/moongrid draw --color never megatron --world 1024 tp=8 pp=4 cp=2", 40)), "\n")
    assert.truthy(text:find("\n  32 of 1024 ranks are drawn: tp 0 and 7 of 8, dp 0 and 15 of 16\n", 1, true), text)
    for _, rank in ipairs { 0, 7, 240, 512, 1023 } do assert.truthy(text:find("%f[%d]" .. rank .. "%f[%D]"), text) end
    assert.truthy(text:find("\n  ... 9 lines more\n" .. more, 1, true), text)
    text = table.concat((on_terminal(90, "build/moongrid draw --color never megatron --world 1024 tp=8 pp=4 --family dp --rank 515", 30)), "\n")
    assert.truthy(text:find("> 515", 1, true), text)
  end)

  it("is whole where it fits, and in a pipe", function()
    local line = "build/moongrid draw --color never examples/moe.lua --world 8 tp=2 pp=2"
    local whole = run("LC_ALL=C.UTF-8 " .. line)
    local seen = run(("LC_ALL=C.UTF-8 script -qec 'stty cols 80 rows 24; %s' /dev/null"):format(line)):gsub("\r", "")
    assert.are.equal(whole, seen)
    assert.is_true(select(2, run "build/moongrid draw megatron --world 1024 tp=8 pp=4 cp=2":gsub("\n", "")) > 400)
  end)
end)

describe("plan on a terminal and in a pipe", function()
  local cases = { "plan megatron --world 64 tp=2 cp=2", "plan megatron --world 64 tp=2 cp=2 --rank 5 --all",
    "plan megatron --world 4096 tp=8 --groups", "plan examples/moe.lua --world 1048576 tp=8 pp=8" }

  it("fits 80 columns, and loses no word in a pipe", function()
    for _, line in ipairs(cases) do
      local lines = on_terminal(80, "build/moongrid " .. line .. " --color never")
      for _, text in ipairs(lines) do assert.is_true(#text <= 80, text) end
      assert.are.same(words_of(table.concat(lines, "\n"):gsub("{.-}", "")), words_of(run("build/moongrid " .. line):gsub("{.-}", "")))
    end
  end)

  it("has a line for each family, each fact and each step in a pipe", function()
    local out = run "build/moongrid plan megatron --world 64 tp=8 pp=2"
    for _, line in ipairs { "\nintra_dp_cp_gloo +16 +4  {0,8,16,24} +shared with dp_cp_gloo, backend=mpi\n",
      "\nexpert +etp 8 x [^\n]* pp 2 over ranks 0..63\n", "\nGPU memory +with NCCL [^\n]* with their first use\n",
      "^megatron over 64 ranks: tensor_model_parallel_size=8 pipeline_model_parallel_size=2\n" } do
      assert.truthy(out:find(line), out)
    end
    out = run "build/moongrid plan megatron --world 64 tp=8 pp=2 --rank 3"
    assert.truthy(out:find "\n +5  pp%[3%] as 0 of 2, for: pp embd\n")
    assert.truthy(out:find "\n +0  dp_cp%[3%] as 0 of 4, for: [^\n]* intra_expt_dp_gtp_remat\n")
  end)
end)

describe("the manual page", function()
  local function shown(by) return run("make -s man && " .. by) end

  for section, line in pairs { "       moongrid run RECIPE [NAME=VALUE ...]", [3] = "       #include <moongrid.h>" } do
    local path = "build/man/moongrid." .. section

    it("moongrid(" .. section .. ") has no mistake that man or mandoc know, and 80 columns", function()
      local pages = 0
      for name, by in pairs { man = "man --warnings -l " .. path .. " 2>&1 >/dev/null", mandoc = "mandoc -T lint " .. path } do
        if run("command -v " .. name) ~= "" then
          assert.are.equal("", (shown(by)))
          local text = run(name == "man" and "MANWIDTH=80 man -l " .. path .. " | col -bx"
            or "mandoc -T utf8 -O width=78 " .. path .. " | col -bx")
          for long in text:gmatch "[^\n]+" do assert.is_true(require("utf8").len(long) <= 80, long) end
          for _, head in ipairs { "NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "SEE ALSO" } do
            assert.truthy(text:find("\n" .. head .. "\n", 1, true), head)
          end
          assert.truthy(text:find("\n" .. line .. "\n", 1, true), text:sub(1, 500))
          pages = pages + 1
        end
      end
      if pages == 0 then pending "neither man nor mandoc is here" end
    end)
  end

  it("moongrid(3) has every declaration and every word of the headers", function()
    if run "command -v man" == "" then return pending "man is not here" end
    local page = support.flat(shown "MANWIDTH=80 man -l build/man/moongrid.3 | col -bx")
    local functions, comments = 0, 0
    for header in run "ls src/moongrid*.h | grep -v _cpp":gmatch "[^\n]+" do -- the page is of C
      local text = "\n" .. support.read(header)
      for name in text:gmatch "[%s*](mgrid_%l[%w_]*)%(" do
        assert.truthy(page:find(name .. "(", 1, true), name)
        functions = functions + 1
      end
      local declarations = text:match 'extern "C" {(.*)'
      for comment in declarations:gmatch "\n/%* (.-) ?%*/" do
        local words = support.flat(comment:gsub("\n%*%*", "\n"))
        if not words:find "^%-%-%-" then
          assert.truthy(page:find(words, 1, true), words)
          comments = comments + 1
        end
      end
    end
    assert.is_true(functions > 200 and comments > 150, functions .. " functions, " .. comments .. " comments")
  end)
end)
