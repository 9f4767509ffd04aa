-- SPDX-License-Identifier: MIT
--
-- moongrid init: what it writes works, and what is there stays.

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
    assert.equal(("layout.lua     written\n.luarc.json    written\n.moongrid      written: %s files of annotations\n"
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
    assert.truthy(out:find("layout.lua     is there already, and stays\n.luarc.json    written\n", 1, true), out)
    assert.truthy(out:find("next: moongrid draw layout.lua --world 8\n", 1, true), out)
    assert.equal("mine\n", read(folder .. "/layout.lua"))
    assert.equal(read "lua/moongrid/meta.lua", read(folder .. "/.moongrid/meta.lua"))
    out = run(("cd %s && %s/build/moongrid init"):format(folder, root))
    assert.truthy(out:find('.luarc.json    is there already, and stays; "workspace.library" with ".moongrid" shows the annotations\n', 1, true), out)
    run("rm -r " .. folder)
  end)

  for line, message in pairs {
    ["init a b"] = "init takes no argument 'b'",
    ["init --world 8"] = "unknown option '--world' of init; known: color, help",
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
