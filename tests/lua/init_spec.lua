-- SPDX-License-Identifier: MIT
--
-- moongrid init: the files that it writes work, and files that exist already stay.

local support = dofile "tests/lua/support.lua"
local run, read = support.run, support.read

local function empty() return run "mktemp -d":gsub("\n", "") end

describe("init", function()
  it("makes a folder with a recipe that plans, a setting of editors and all annotations", function()
    local folder = empty() .. "/a/b"
    local out, err, code = run("build/moongrid init " .. folder)
    local metas = run "ls lua/moongrid/meta*.lua | wc -l":gsub("%s", "")
    assert.equal("", err)
    assert.equal(0, code)
    assert.equal(("layout.lua      written\nlayout_spec.lua written\n.luarc.json     written\n.moongrid       written: %s files of annotations\n"
      .. "next: moongrid draw %s/layout.lua --world 8\n"):format(metas, folder), out)
    for name in run "ls lua/moongrid/meta*.lua":gmatch "([^/\n]+)\n" do
      assert.equal(read("lua/moongrid/" .. name), read(folder .. "/.moongrid/" .. name))
    end
    assert.equal(0, select(3, run(("build/moongrid check %s/layout.lua --world 8,64 tp=4 pp=2"):format(folder))))
    assert.equal(0, select(3, run(("jq -e '.[\"workspace.library\"] == [\".moongrid\"]' %s/.luarc.json || python3 -c "
      .. "'import json, sys; sys.exit(json.load(open(\"%s/.luarc.json\"))[\"workspace.library\"] != [\".moongrid\"])'"):format(folder, folder))))
    run("rm -r " .. folder)
  end)

  it("works here without a folder, keeps what is there, and renews the annotations", function()
    local folder, root = empty(), run "pwd":gsub("\n", "")
    run(("echo mine > %s/layout.lua; mkdir %s/.moongrid; echo old > %s/.moongrid/meta.lua"):format(folder, folder, folder))
    local out, err, code = run(("cd %s && %s/build/moongrid init"):format(folder, root))
    assert.equal("", err)
    assert.equal(0, code)
    assert.truthy(out:find("layout.lua      is there already, and stays\nlayout_spec.lua written\n.luarc.json     written\n", 1, true), out)
    assert.truthy(out:find("next: moongrid draw layout.lua --world 8\n", 1, true), out)
    assert.equal("mine\n", read(folder .. "/layout.lua"))
    assert.equal(read "lua/moongrid/meta.lua", read(folder .. "/.moongrid/meta.lua"))
    out = run(("cd %s && %s/build/moongrid init"):format(folder, root))
    assert.truthy(out:find('.luarc.json     is there already, and stays; "workspace.library" with ".moongrid" shows the annotations\n', 1, true), out)
    run("rm -r " .. folder)
  end)

  it("writes tests of the recipe that busted passes, and that fail where the recipe changes", function()
    local folder, root = empty(), run "pwd":gsub("\n", "")
    run("build/moongrid init " .. folder)
    local test = ("cd %s && LUA_CPATH_5_4='%s/build/?.so;;' busted --lua=lua5.4 -o TAP layout_spec.lua"):format(folder, root)
    local out, err, code = run(test)
    assert.equal(0, code, out .. err)
    assert.equal(5, select(2, out:gsub("ok %d", "")), out)
    for change, fails in pairs { ["s/tp-dp-pp/dp-tp-pp/"] = "has these groups", ["s/g .dp./g:at { pp = 0 } \"dp\"/"] = "keeps its laws",
      ["s/tp = p.tp, /tp = 4, /"] = "refuses a size" } do
      run(("sed -i.kept '%s' %s/layout.lua"):format(change, folder))
      out, err, code = run(test)
      assert.truthy(code > 0 and out:find("not ok %d+ %- layout.lua " .. fails), change .. out .. err)
      run(("cd %s && mv layout.lua.kept layout.lua"):format(folder))
    end
    run("rm -r " .. folder)
  end)

  it("writes a trainer in C that make builds and runs, beside its layout", function()
    if select(3, run "scripts/mpi --module") ~= 0 then return pending "no MPI here" end
    local folder, root = empty() .. "/job", run "pwd":gsub("\n", "")
    local out, err, code = run("build/moongrid init --c " .. folder)
    assert.equal(0, code, err)
    assert.truthy(out:find("\ntrainer.c       written\nMakefile        written\n", 1, true), out)
    local next_command = out:match "\nnext: ([^\n]*)\n$"
    assert.equal(("cd %s && make run"):format(folder), next_command)
    out, err, code = run(("PKG_CONFIG_PATH= PKG_CONFIG_LIBDIR= %s -s"):format(next_command))
    assert.truthy(code > 0 and out == "" and err:find("pkg-config finds no moongrid_mpi: run 'make install PREFIX=$HOME/moongrid' in the "
      .. "clone", 1, true), err)
    -- where it is installed, pkg-config says what this one says
    support.write(folder .. "/pkg", ("#!/bin/sh\ncase \"$*\" in\n'--exists moongrid_mpi') ;;\n'--cflags --libs moongrid_mpi')\n"
      .. "echo -I%s/src -L%s/build -Wl,-rpath,%s/build -lmoongrid_mpi -lmoongrid ;;\n*) exit 1 ;;\nesac\n"):gsub("%%s", root))
    out, err, code = run(("chmod +x %s/pkg; %s -s PKG=%s/pkg CFLAGS=-Werror"):format(folder, next_command, folder))
    assert.equal(0, code, err)
    local lines = {}
    for line in out:gmatch "[^\n]+" do lines[#lines + 1] = line end
    table.sort(lines)
    assert.same({ "rank 0: tp 0, dp 0, mean over dp 1", "rank 1: tp 1, dp 0, mean over dp 2",
      "rank 2: tp 0, dp 1, mean over dp 1", "rank 3: tp 1, dp 1, mean over dp 2" }, lines)
    out, err, code = run(("cd %s && %s/scripts/launch 4 ./trainer tp=3"):format(folder, root))
    assert.truthy(code > 0 and out:find "rank" == nil)
    assert.truthy(err:find("trainer: layout.lua:17: tp 3 does not divide the 4 ranks; nearest: tp 2 or 4", 1, true), err)
    assert.equal(1, select(2, err:gsub("trainer: ", ""))) -- of one rank
    run("rm -r " .. folder)
  end)

  for line, message in pairs {
    ["init a b"] = "init takes no argument 'b'",
    ["init --world 8"] = "unknown option '--world' of init; known: c, color, help",
    ["init /proc/nowhere"] = "cannot make /proc/nowhere: No such file or directory",
    ["init /dev/null/x"] = "cannot make /dev/null/x: Not a directory",
  } do
    it("refuses " .. line, function()
      local out, err, code = run("build/moongrid " .. line)
      assert.truthy(err:find("moongrid: " .. message, 1, true), err)
      assert.equal("", out)
      assert.equal(line:find "^init /" and 3 or 2, code)
    end)
  end

  it("is what the rock has for the Lua language server, as an addon", function()
    local folder = empty()
    local _, err, code = run(("make -s install-lua PREFIX=%s"):format(folder))
    assert.equal(0, code, err)
    local addon = folder .. "/share/lua/5.4/moongrid/addons/moongrid"
    assert.truthy(read(addon .. "/config.json"):find('"name": "moongrid"', 1, true))
    assert.equal(run "ls lua/moongrid/meta*.lua | xargs -n 1 basename", (run(("ls %s/library"):format(addon))))
    run("rm -r " .. folder)
  end)
end)
