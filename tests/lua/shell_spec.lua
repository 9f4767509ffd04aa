-- SPDX-License-Identifier: MIT
--
-- moongrid shell: lines in a pipe, and a terminal with its history and completion.

local support = dofile "tests/lua/support.lua"
local run = support.run

local function shell(lines, rest)
  return run(("printf %%s '%s' | build/moongrid shell %s"):format(lines:gsub("'", "'\\''"), rest or "picotron --world 8 tp=2"))
end

-- What these lines print, the last line break left out.
local function prints(lines, expected, rest)
  local out, err, code = shell(lines, rest)
  assert.equal("", err)
  assert.equal(expected .. (expected == "" and "" or "\n"), out)
  assert.equal(0, code)
end

describe("shell in a pipe", function()
  it("prints families with their groups, and lists of them no longer than a screen", function()
    prints("tp\n", "Family of 4 groups of 2: (2:1) x (4:2)\n   0  { 0, 1 }\n   1  { 2, 3 }\n   2  { 4, 5 }\n   3  { 6, 7 }")
    local out = shell("tp\n", "picotron --world 4096")
    assert.truthy(out:find("\n  15  { 15 }\n      ... 4080 more\n", 1, true), out)
    out = shell("dp\n", "picotron --world 4096")
    assert.truthy(out:find("\n   0  { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, ... 4080 more }\n", 1, true), out)
  end)

  it("has what the recipe made, the words of recipes, and names that were assigned", function()
    prints("t.dp == dp, world, p.tp_size, #grid(world, 'a', { a = fill })\n", "true\nWorld of 8 ranks\n2\n8")
    prints("x = tp:pick(0)\nx.count, nil, 1\n", "4\nnil\n1")
    prints("x = { a = 1, ['b c'] = { true, 'q' } }\nx\n", '{ a = 1, ["b c"] = { true, "q" } }')
    prints("print(1, { 2 }, 'a')\n'text'\n\n-- nothing\nlocal z = 1\n", '1  { 2 }  a\ntext')
  end)

  it("shows the parameters that have a value", function()
    prints("p\n", "{ tp_size = 2, cp_size = 1, pp_size = 1 }")
  end)

  it("helps and ends, however that is typed", function()
    for _, line in ipairs { "help", "?", ":help", " help() ", ":?" } do
      local out, err, code = shell(line .. "\n")
      assert.same({ "", 0 }, { err, code })
      assert.truthy(out:find("\nreload ", 1, true), line)
    end
    assert.same({ run "build/moongrid help why" }, { shell ":help why\n" })
    for _, line in ipairs { "exit", "quit", "exit()", ":quit" } do
      assert.same({ "4\n", "", 0 }, { shell("tp.count\n" .. line .. "\nnope\n") }, line)
    end
  end)

  it("reads a recipe again, with names of its own", function()
    local text = "return recipe { build = function(w) local t = topology(w) t.%s = w:table { { 0, 1 } } return t end }"
    local file, out = support.file(text:format "old"), support.file ""
    local to = io.popen(("build/moongrid shell %s --world 2 >%s 2>&1"):format(file, out), "w")
    to:write "x = old.size\nx\n"
    to:flush()
    for _ = 1, 400 do
      if support.read(out) ~= "" then break end
      run "sleep 0.05"
    end
    support.write(file, text:format "new")
    to:write "reload\nnew.size\nx\n"
    to:close()
    assert.equal("2\n2\nmoongrid: unknown name 'x'\n", support.read(out))
  end)

  it("waits for the end of what is unfinished", function()
    prints("for i = 1, 2 do\n  print(i)\nend\n", "1\n2")
    prints("s = function()\nreturn 7\nend\ns()\n", "7")
  end)

  for lines, message in pairs {
    ["tpp"] = "unknown name 'tpp'; nearest is 'tp'",
    ["zzz"] = "unknown name 'zzz'",
    ["x = = 1"] = "unexpected symbol near '='",
    ["t.tp:pikc(0)"] = "unknown field of a Family 'pikc'; nearest is 'pick' (count, size, largest, coverage, low, high, pick, bundle, "
      .. "pairs, neighbours, map, without, lists, twin, with, ranks, locate, member, modes, groups, explain, split, levels, "
      .. "segments, renumber, where)",
    ["error 'no'"] = "no",
    ["os.time()"] = "unknown name 'os'; a recipe sees no clock, environment or files; whoever plans gives it parameters",
    ["len(tp)"] = "unknown name 'len'; #x is the length of a list or text, #family the number of its groups",
    ["def f(x):"] = "syntax error near 'f'; write local function f(x) return x end",
    ["while true do end"] = "the recipe runs for more than 200000000 instructions",
    ["for i = 1, 2 do"] = "the last lines are unfinished: for i = 1, 2 do",
  } do
    it("ends at a mistake: " .. lines, function()
      local out, err, code = shell(lines .. "\n" .. (lines:find "do$" and "" or "print 'on'\n"))
      assert.equal("moongrid: " .. message .. "\n", err)
      assert.equal("", out)
      assert.equal(lines:find "^while" and 3 or lines:find "do$" and 2 or 1, code)
    end)
  end

  it("takes subcommands for its recipe, world and arguments", function()
    for line, command in pairs {
      [":why 0 4"] = "why %s 0 4",
      ["  :draw --family tp,dp "] = "draw %s --family tp,dp",
      [":ask --rank 3 tp_rank"] = "ask %s --rank 3 tp_rank",
      [":diff vs tp=4"] = "diff %s vs tp=4",
    } do
      local out, err, code = shell(line .. "\n")
      assert.same({ run("build/moongrid " .. command:format "picotron --world 8 tp=2") }, { out, err, code })
    end
    local out, err, code = shell "tp.count\n:why 3 3\n7\n"
    assert.same({ "4\n", "moongrid: both ranks are 3; two different ranks are needed\n", 1 }, { out, err, code })
    for line, message in pairs {
      [":"] = "a colon takes a subcommand of moongrid for this recipe, as :why 0 1",
      [":shell"] = "this is a shell already",
      [":why " .. ("1 "):rep(64)] = "a line has at most 64 words",
    } do
      out, err, code = shell(line .. "\n")
      assert.same({ "", "moongrid: " .. message .. "\n", 2 }, { out, err, code })
    end
    err = select(2, shell ":whi 0 1\n")
    assert.truthy(err:find("^moongrid: unknown command 'whi'; nearest is 'why' "), err)
  end)

  it("refuses what has no lines or no recipe", function()
    local saved = support.file ""
    run("build/moongrid plan picotron --world 8 --rules >" .. saved)
    for line, message in pairs {
      ["shell"] = "shell needs a recipe: a file, or one that 'moongrid recipes' lists",
      ["shell picotron"] = "shell needs --world N, the number of ranks",
      ["shell - --world 8"] = "shell reads its lines from standard input; write the recipe to a file",
      ["shell " .. saved .. " --world 8"] = saved .. " is a saved plan, which has no queries and policies; shell needs the recipe",
    } do
      local _, err, code = run("build/moongrid " .. line)
      assert.equal("moongrid: " .. message .. "\n", err)
      assert.equal(line:find(saved, 1, true) and 1 or 2, code)
    end
  end)
end)

describe("recipe:run and recipe:complete", function()
  local mg = require "moongrid"

  it("are about the last plan, and need one", function()
    local loaded = mg.load "picotron"
    assert.has_error(function() loaded:run "tp" end, "a prompt works on the last plan of the recipe, and there is none")
    assert.has_error(function() loaded:complete "t" end, "a prompt works on the last plan of the recipe, and there is none")
    loaded:plan(8, { tp = 2 })
    assert.equal("2", loaded:run "tp.size")
    assert.equal("", loaded:run "x = tp.size")
    assert.equal("2", loaded:run "x")
    loaded:plan(8, { tp = 4 })
    assert.equal("4\nnil", loaded:run "tp.size, nil")
    assert.equal("line:1: unknown name 'x'", select(2, pcall(loaded.run, loaded, "x")))
  end)

  it("tell what is unfinished from what has no answer, and give any text back", function()
    local loaded = mg.load "picotron"
    loaded:plan(2)
    assert.is_nil(loaded:run "for i = 1, 2 do")
    assert.equal("", loaded:run "")
    assert.equal("a\0\xff", loaded:run "'a\\0\\xff'")
    assert.has_error(function() loaded:run "\0" end)
  end)

  it("complete names, and what is inside", function()
    local loaded = mg.load "picotron"
    loaded:plan(2)
    assert.same({ "world", "world_group" }, loaded:complete "x = wor")
    assert.same({ "t.tp:ranks" }, loaded:complete "t.tp:ra")
    assert.same({}, loaded:complete "nope.")
  end)

  it("make a prompt in a program: examples/prompt.lua", function()
    local out, err, code = run "printf 'tp.size\nfor i = 1, 2 do\nprint(i) end\nnope\ntp:ra?\n' | LUA_CPATH_5_4='build/?.so;;' lua5.4 examples/prompt.lua picotron 4 tp=2"
    assert.same({ "2\n1\n2\nline:1: unknown name 'nope'\ntp:ranks\n", "", 0 }, { out, err, code })
  end)
end)

describe("shell at a terminal", function()
  local edits = select(3, run "ldconfig -p | grep -Eq 'libedit.so.2|libreadline.so.8'") == 0

  -- Type into a terminal, with an empty home; return what it shows, and the history.
  local function typed(keys)
    local home = run "mktemp -d":gsub("\n", "")
    local out = run(([[export HOME=%s XDG_STATE_HOME= TERM=xterm; (sleep 1; printf '%s'; sleep 1; printf '\004'; sleep 1) \
      | script -qec 'build/moongrid shell picotron --world 8 tp=2 --color never' /dev/null]]):format(home, keys))
    local history = support.exists(home .. "/.local/state/moongrid/shell") and support.read(home .. "/.local/state/moongrid/shell")
    run("rm -r " .. home)
    return out:gsub("\r", ""), history or ""
  end

  it("says what is there, goes on after a mistake, and keeps a history", function()
    local out, history = typed "nope\\ntp.count\\n"
    assert.truthy(out:find("picotron over 8 ranks: tp_size=2\nt is its topology, world its ranks, p its parameters;", 1, true), out)
    assert.truthy(out:find("moongrid: unknown name 'nope'\n", 1, true), out)
    assert.truthy(out:find("\n4\n", 1, true), out)
    if edits then assert.truthy(history:find("tp.count", 1, true), history) end
  end)

  it("completes names, and what families have", function()
    if not edits then return pending "neither libedit nor readline is here" end
    local out = typed "tp.cou\\t\\nwor\\t.si\\t\\nt.cp_d\\t:pic\\t(0).count\\n"
    for _, shown in ipairs { "\n4\n", "\n8\n", "\n2\n" } do assert.truthy(out:find(shown, 1, true), out) end
    assert.is_nil(out:find("moongrid:", 1, true), out)
  end)
end)
