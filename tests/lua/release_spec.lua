-- SPDX-License-Identifier: MIT
--
-- make dist: the tarball has every file of the project, and linked libraries are listed with their licences. make rock:
-- unpacked elsewhere it builds and passes tests without git; installed by LuaRocks, the module finds its libraries.

local support = dofile "tests/lua/support.lua"
local run = support.run

-- Not optimized, which takes half the time: the other tests use what is. The objects do not depend on where they are
-- compiled, so ccache may give those of another test.
local quick = "OPT=-O0 CCACHE_NOHASHDIR=1 "
local make = quick .. "make -s -j2 SAY= "

describe("make dist", function()
  local stage, name, tarball

  setup(function()
    stage = run "mktemp -d":gsub("\n", "")
    name = "moongrid-" .. support.version
    tarball = "build/dist/" .. name .. ".tar.gz"
    local out, err, code = run "make -s dist"
    assert.equal(0, code, err)
    assert.truthy(out:find(tarball .. "\n", 1, true), out)
  end)

  teardown(function() run("rm -rf " .. stage) end)

  it("packs every file once, in a folder with the version, and nothing that was built", function()
    local packed = run(("tar -tzf %s | sed 's,^%s/,,' | LC_ALL=C sort"):format(tarball, name))
    assert.equal(run "scripts/files | LC_ALL=C sort", packed)
    assert.truthy(packed:find "\nMakefile\n" and packed:find "^%.busted\n" and packed:find "\nsrc/moongrid.h\n")
    assert.is_nil(("\n" .. packed):find "\nbuild/" or packed:find "%.git/")
  end)

  it("gives the same bytes twice, whatever the clock and the mask say", function()
    local first = run("sha256sum < " .. tarball)
    run(("umask 077; SOURCE_DATE_EPOCH=$(tar -tvzf %s --full-time --utc | awk 'NR == 1 { print $4 \" \" $5 \" UTC\" }' "
      .. "| xargs -I{} date -d {} +%%s) scripts/release/dist %s"):format(tarball, support.version))
    assert.equal(first, run("sha256sum < " .. tarball))
  end)

  it("takes a wheel of these files, and leaves out by name one that is older", function()
    local wheel = name .. "-py3-none-manylinux_0_0_none.whl"
    run(("mkdir -p build/wheel; touch build/wheel/%s; scripts/release/sums %s"):format(wheel, support.version))
    assert.truthy(io.open("build/dist/SHA256SUMS"):read "a":find(wheel, 1, true))
    run("touch -d @0 build/wheel/" .. wheel)
    local _, err = run("scripts/release/sums " .. support.version)
    os.remove("build/wheel/" .. wheel)
    assert.truthy(err:find("sums: left out, made of older files: .*" .. wheel:gsub("%p", "%%%0")), err)
    assert.is_nil(io.open("build/dist/SHA256SUMS"):read "a":find(wheel, 1, true))
  end)

  it("lists the licences of what is linked, and of what is opened", function()
    local text = io.open(("build/dist/%s.spdx"):format(name)):read "a"
    assert.truthy(text:find "^SPDXVersion: SPDX%-2.3\nDataLicense: CC0%-1.0\n")
    local licences = {}
    for package, rest in text:gmatch "PackageName: (%S+)\n(.-PackageLicenseDeclared: [^\n]+)" do
      licences[package] = rest:match "PackageLicenseDeclared: (.+)"
      assert.truthy(text:find("SPDXRef-" .. package .. "\n", 1, true))
    end
    assert.equal("MIT", licences.moongrid)
    assert.equal("MIT", licences.Jansson)
    assert.equal("BSD-2-Clause", licences.xxHash)
    assert.equal("MIT", licences.Lua)
    assert.equal((run "build/moongrid doctor | sed -n 's/^mpi  *yes.*/yes/p'" ~= ""), (licences.OpenMPI or licences.MPICH) ~= nil)
    assert.truthy(text:find "\nRelationship: SPDXRef%-moongrid DYNAMIC_LINK SPDXRef%-Jansson\n")
  end)

  it("refuses to list a library whose licence nobody wrote down", function()
    run(("echo 'int strange(void) { return 1; }' > %s/strange.c; cc -shared -fPIC -Wl,-soname,libstrange.so.7 %s/strange.c -o %s/libstrange.so; "
      .. "echo 'int strange(void); int main(void) { return strange(); }' > %s/main.c; cc %s/main.c -L%s -lstrange -o %s/main")
      :format(stage, stage, stage, stage, stage, stage, stage))
    local out, err, code = run(("scripts/release/licences %s %s/main"):format(support.version, stage))
    assert.equal("", out)
    assert.equal("licences: linked, and without a licence in the table of scripts/release/licences: libstrange.so.7\n", err)
    assert.equal(1, code)
  end)
end)

describe("make rock", function()
  -- The tarball, unpacked elsewhere, is built once: by LuaRocks, and then by make for what is tested there.
  it("gives a rock with the tarball, which builds, passes tests and packs itself again without git", function()
    if select(3, run "command -v luarocks zip unzip") ~= 0 then return pending "no luarocks, zip or unzip here" end
    local out, err, code = run "make -s dist rock"
    local rock, name = ("build/dist/moongrid-%s-1.src.rock"):format(support.version), "moongrid-" .. support.version
    assert.equal(0, code, err)
    assert.truthy(out:find(rock .. "\n", 1, true), out)
    assert.equal(run(("sha256sum < build/dist/%s.tar.gz"):format(name)), (run(("unzip -p %s %s.tar.gz | sha256sum"):format(rock, name))))
    local root, stage = io.popen "pwd":read "l", run "mktemp -d":gsub("\n", "")
    local tree = stage .. "/tree"
    local luarocks = ("luarocks --lua-version=5.4 --tree %s "):format(tree)
    run(("mkdir %s/bin; printf '#!/bin/sh\\nexit 99\\n' > %s/bin/git; chmod +x %s/bin/git"):format(stage, stage, stage))
    out, err, code = run(("cd %s && luarocks --lua-version=5.4 unpack %s/%s"):format(stage, root, rock))
    assert.equal(0, code, out .. err)
    local there = ("cd %s/%s-1/%s && export PATH=%s/bin:$PATH && "):format(stage, name, name, stage)
    assert.equal(99, select(3, run(there .. "rm " .. name .. "-1.rockspec; git status"))) -- LuaRocks puts it there, too
    for _, line in ipairs { quick .. "MAKEFLAGS=-j2 " .. luarocks .. "make ../" .. name .. "-1.rockspec",
                            make .. "all build/tests/test_plan build/tests/test_operations", "build/tests/test_plan",
                            "build/tests/test_operations", "busted -o TAP tests/lua/recipe_spec.lua" } do
      out, err, code = run(there .. line)
      assert.equal(0, code, line .. "\n" .. out .. err)
    end
    assert.equal(run "build/moongrid plan megatron --world 64 --text", (run(there .. "build/moongrid plan megatron --world 64 --text")))
    assert.truthy(run(luarocks .. "list --porcelain"):find("^moongrid\t" .. support.version .. "%-1\tinstalled"))
    local from = ("eval \"$(%spath)\"; cd /; "):format(luarocks)
    out, err = run(from .. [[lua5.4 -e 'local m = require "moongrid"
      print(package.searchpath("moongrid", package.cpath), m._VERSION, #m.load("megatron"):plan(64, { tp = 4 }))']])
    assert.equal(("%s/lib/lua/5.4/moongrid.so\tmoongrid %s\t32\n"):format(tree, support.version), out, err)
    if run "ls build":find "libmoongrid_mpi" then
      out, err = run(from .. root .. [[/scripts/launch 2 lua5.4 -e 'local j = assert(require "moongrid".mpi())
        if j.rank == 0 then print(j.backend, j.world) end j:close()']])
      assert.equal("mpi\t2\n", out, err)
    end
    out, err, code = run(luarocks .. "remove moongrid")
    assert.equal(0, code, out .. err)
    assert.equal("", (run("find " .. tree .. " -name '*moongrid*'")))
    local list = "tar -tzf %s | LC_ALL=C sort"
    out, err, code = run(there .. "scripts/release/dist " .. support.version)
    assert.equal(0, code, out .. err)
    assert.equal(run(list:format("build/dist/" .. name .. ".tar.gz")), (run(there .. list:format("build/dist/" .. name .. ".tar.gz"))))
    run("rm -rf " .. stage)
  end)

  it("is refused under another Lua", function()
    if select(3, run "command -v luarocks zip unzip") ~= 0 then return pending "no luarocks, zip or unzip here" end
    local _, err, code = run(("luarocks --lua-version=5.3 --tree /nowhere install --deps-only build/dist/moongrid-%s-1.src.rock")
      :format(support.version))
    assert.truthy(code ~= 0 and err:find("lua >= 5.4", 1, true), err)
  end)
end)
