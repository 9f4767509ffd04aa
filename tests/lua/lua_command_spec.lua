-- SPDX-License-Identifier: MIT
--
-- Properties of every subcommand in lua/command: it reports a lack of memory, reads its Lua only from the intended
-- places, prints in one order in every process, and refuses words in a wrong order.

local support = dofile "tests/lua/support.lua"
local run, refuses = support.run, support.refuses

local lines = { "why megatron --world 8 0 1 --json", "recipes picotron --json", "recipes", "why picotron --world 8 0 9", "--help",
                "lose llama --world 8 tp=2 --ranks 2,3 --json", "machine dgx-h100 --json",
                "step megatron --world 8 pp=2 --machine dgx-h100 --json",
                "move examples/fsdp_tp.lua --world 8 vs tp=4 fsdp=false --json --list" }

describe("without memory", function()
  local folder = run "mktemp -d":gsub("\n", "")
  setup(function()
    local _, err, code = run(("cc -shared -fPIC -O1 -o %s/starve.so tests/c/starve.c"):format(folder))
    assert.equal(0, code, err)
  end)
  teardown(function() run("rm -r " .. folder) end)

  -- MOONGRID_STARVE=1: at every allocation up to 5,000, instead of some
  local step = os.getenv "MOONGRID_STARVE" and 1 or 97
  for _, all in ipairs { "", "STARVE_ALL=1 " } do
    it("any subcommand says so in one line and ends with 3, or succeeds " .. all, function()
      for i, line in ipairs(lines) do
        local out, err, code = run(([[
          build/moongrid %s > %s/right 2> %s/message; right=$?
          for ((n = %d; n < 5000; n += %d)); do
            env %sSTARVE=$n LD_PRELOAD=%s/starve.so build/moongrid %s > %s/out 2> %s/err; code=$?
            if [ $code = $right ]; then cmp %s/right %s/out && cmp %s/message %s/err && continue; fi
            [ $code = 3 ] && [ "$(cat %s/err)" = 'moongrid: out of memory' ] || echo "$n $code $(cat %s/err)"
          done]]):gsub("%%s/", (folder:gsub("%%", "%%%%")) .. "/"):format(line, 7 * i, step, all, line))
        assert.equal("", err)
        assert.equal("", out)
        assert.equal(0, code, line)
      end
    end)
  end
end)

describe("MOONGRID_LUA", function()
  local folder = run "mktemp -d":gsub("\n", "")
  teardown(function() run("rm -r " .. folder) end)

  it("has the files of a source tree read instead of those built in, by a binary in its build tree alone", function()
    run(("cp -r lua %s; sed -i 's/what two ranks have/what both have/' %s/lua/command/why.lua; cp build/moongrid %s"):format(
      folder, folder, folder))
    assert.truthy((run(("MOONGRID_LUA=%s/lua build/moongrid --help"):format(folder))):find("what both have", 1, true))
    assert.falsy((run(("MOONGRID_LUA=%s/lua %s/moongrid --help"):format(folder, folder))):find("what both have", 1, true))
    assert.same({ run "build/moongrid --help" }, { run "MOONGRID_LUA= build/moongrid --help" })
    local _, err, code = run(("MOONGRID_LUA=%s/none build/moongrid --help"):format(folder))
    assert.equal(("moongrid: cannot open %s/none/command/base/main.lua: No such file or directory\n"):format(folder), err)
    assert.equal(1, code)
  end)

  it("is not LUA_PATH, which the command does not heed", function()
    support.write(folder .. "/moongrid.lua", "error 'no'")
    local _, err, code = run(("LUA_PATH='%s/?.lua' LUA_PATH_5_4='%s/?.lua' LUA_INIT='error(1)' build/moongrid recipes"):format(
      folder, folder))
    assert.equal("", err)
    assert.equal(0, code)
  end)
end)

describe("the order of output", function()
  it("is the same in every process", function()
    for _, line in ipairs(lines) do
      local first = run("build/moongrid " .. line)
      for _ = 1, 5 do assert.equal(first, (run("build/moongrid " .. line))) end
    end
  end)
end)

describe("words in another order", function()
  for line, message in pairs {
    ["picotron why --world 8 0 1"] = "unknown command 'picotron'; the command goes first: moongrid why picotron --world 8 0 1",
    ["examples/moe.lua plan --world 8"] = "unknown command 'examples/moe.lua'; the command goes first: "
      .. "moongrid plan examples/moe.lua --world 8",
    ["plan picotron 8"] = "argument '8' is not of the form NAME=VALUE, and the recipe is 'picotron'; "
      .. "the number of ranks is --world 8",
    ["why 0 3 picotron --world 8"] = "the recipe goes before '0': moongrid why picotron 0 3 --world 8",
    ["why 0 3 a.lua"] = "the recipe goes before '0': moongrid why a.lua 0 3",
    ["machine node:2 gpu:8"] = "machine takes no argument 'gpu:8'; quotes make one word: moongrid machine \"node:2 gpu:8\"",
    ["tp=2 plan picotron"] = "unknown command 'tp=2'; the command goes first: moongrid plan tp=2 picotron",
  } do
    it("gets the line to type: " .. line, function() refuses(line, 2, "moongrid: " .. message) end)
  end

  it("is not what a mistyped command has", function()
    for line, near in pairs { ["doctr machine"] = "doctor", ["whi why picotron"] = "why" } do
      local _, err, code = run("build/moongrid " .. line)
      assert.truthy(err:find(("unknown command '%s'; nearest is '%s' ("):format(line:match "%a+", near), 1, true), err)
      assert.equal(2, code)
    end
  end)

  it("is allowed after the subcommand", function()
    local right = run "build/moongrid why picotron --world 16 tp=2 0 1 --json"
    for _, line in ipairs { "why --world 16 picotron 0 tp=2 1 --json", "why --json tp=2 picotron 0 1 --world=16" } do
      assert.equal(right, (run("build/moongrid " .. line)))
    end
  end)
end)
