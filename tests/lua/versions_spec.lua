-- SPDX-License-Identifier: MIT
--
-- Libraries of two versions: scripts/release/abi says what a release would break, and a backend's library of
-- another version is refused before anything in it is used.

local support = dofile "tests/lua/support.lua"
local run = support.run

local function here(command) return select(3, run("command -v " .. command)) == 0 end

-- A folder with files of these texts; its path.
local function folder(files)
  local path = run "mktemp -d":gsub("\n", "")
  for name, text in pairs(files) do
    run(("mkdir -p $(dirname %s/%s)"):format(path, name))
    local file = assert(io.open(path .. "/" .. name, "w"))
    file:write(text)
    file:close()
  end
  return path
end

-- A library of one function, whose struct has these fields, and scripts/release/abi beside it.
local function project(fields)
  local path = folder {
    ["src/moongrid.h"] = '#define MGRID_VERSION       "7.8.9"\ntypedef struct mgrid_thing { ' .. fields
      .. " } mgrid_thing;\nint mgrid_use(const mgrid_thing *thing);\n",
    ["src/use.c"] = '#include "moongrid.h"\nint mgrid_use(const mgrid_thing *thing) { return thing->a; }\n',
    ["Makefile"] = "build/libmoongrid.so: src/use.c src/moongrid.h\n"
      .. "\t@mkdir -p build\n\t@cc -g -fPIC -shared -Isrc src/use.c -o $@\n",
  }
  run(("mkdir -p %s/scripts/release && cp scripts/release/abi %s/scripts/release/ && cp scripts/help %s/scripts/"):format(path, path, path))
  return path
end

local function change(path, fields)
  run(("sed -i 's/{ .* }/{ %s }/' %s/src/moongrid.h && rm %s/build/*"):format(fields, path, path))
end

describe("scripts/release/abi", function()
  if not (here "abidw" and here "abidiff") then
    return it("says what it needs where that is not here", function()
      local _, err, code = run "scripts/release/abi"
      assert.equal("abi: abidw and abidiff are not here (Debian package abigail-tools)\n", err)
      assert.equal(2, code)
    end)
  end

  it("compares with what was recorded at a release", function()
    local path = project "int a, b;"
    local _, err, code = run(path .. "/scripts/release/abi")
    assert.equal("abi: no release is recorded yet (scripts/release/abi --record)\n", err)
    assert.equal(2, code)
    local out
    out, err, code = run(path .. "/scripts/release/abi --record")
    assert.equal(0, code, err)
    assert.equal("recorded libmoongrid.so\n", out)
    out, err, code = run(path .. "/scripts/release/abi")
    assert.equal(0, code, err)
    assert.equal("libmoongrid.so: as in 7.8.9\n", out)
    run("rm -r " .. path)
  end)

  it("tells of a header that breaks programs what has changed", function()
    local path = project "int a, b;"
    run(path .. "/scripts/release/abi --record")
    change(path, "long first; int a, b;")
    local out, err, code = run(path .. "/scripts/release/abi")
    assert.equal(1, code, err)
    assert.truthy(out:find "^libmoongrid.so: since 7.8.9\n", out)
    assert.truthy(out:find "struct mgrid_thing", out)
    assert.truthy(out:find "first", out)
    run("rm -r " .. path)
  end)

  it("lets a release have a function more", function()
    local path = project "int a, b;"
    run(path .. "/scripts/release/abi --record")
    run(([[cd %s && echo 'int mgrid_more(void);' >> src/moongrid.h && echo 'int mgrid_more(void) { return 1; }' >> src/use.c
      rm build/*]]):format(path))
    local out, err, code = run(path .. "/scripts/release/abi")
    assert.equal(0, code, err)
    assert.truthy(out:find("^libmoongrid.so: since 7.8.9\n") and out:find "mgrid_more", out)
    run("rm -r " .. path)
  end)

  it("says so where its tools are not here, and of another argument", function()
    local path = folder {}
    run(("for tool in bash dirname; do ln -s $(command -v $tool) %s/; done"):format(path))
    local _, err, code = run(("PATH=%s bash scripts/release/abi"):format(path))
    assert.equal("abi: abidw and abidiff are not here (Debian package abigail-tools)\n", err)
    assert.equal(2, code)
    run("rm -r " .. path)
  end)
end)

describe("a backend's library of another version", function()
  it("is refused by its number alone, with both versions", function()
    local path = folder { ["entry.c"] = "const int mgrid_mpi_entry[8] = { 0x6d000000 + 10203 };\n",
                          ["none.c"] = "const int mgrid_mpi_entry[8] = { 1 };\n" }
    local library = "libmoongrid_mpi.so." .. support.interface
    run(("cp build/moongrid %s/"):format(path))
    for source, says in pairs {
      entry = library .. " is of moongrid 1.2.3, this is " .. support.version .. "; install both from one version",
      none = library .. " is not of any moongrid",
    } do
      local _, failed, code = run(("cc -fPIC -shared %s/%s.c -o %s/%s"):format(path, source, path, library))
      assert.equal(0, code, failed)
      local out, err
      out, err, code = run(path .. "/moongrid run picotron --backend mpi")
      assert.equal(4, code, out .. err)
      assert.equal("moongrid: " .. says .. "\n", err)
    end
    run("rm -r " .. path)
  end)
end)

describe("libmoongrid_lua of another version", function()
  it("is refused with both versions, which the loader does not say", function()
    local lua, core = "libmoongrid_lua.so." .. support.interface, "libmoongrid.so." .. support.interface
    local path = folder {
      ["other.c"] = "int mgrid_inside(void);\nint mgrid_inside(void) { return 1; }\n",
      ["other.map"] = "mgrid_private_1.2.3 { global: mgrid_inside; };\n",
      ["lua.c"] = "int mgrid_inside(void);\nint (*const mgrid_lua_entry)(void) = mgrid_inside;\n",
      ["host.c"] = [[
#include <moongrid.h>
#include <stdio.h>
int main(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  int         made = mgrid_runtime_new(NULL, NULL, &e) != NULL;
  printf("%d %d %s\n", made, (int)e.status, e.message);
}
]],
    }
    local _, failed, code = run(([[set -e
      cp -a build/%s PATH/
      cc -w -Isrc PATH/host.c -o PATH/host PATH/%s
      mkdir PATH/1.2.3
      cc -fPIC -shared PATH/other.c -Wl,--version-script=PATH/other.map -Wl,-soname,%s -o PATH/1.2.3/%s
      cc -fPIC -shared PATH/lua.c PATH/1.2.3/%s -o PATH/%s]]):format(core, core, core, core, core, lua):gsub("PATH", path))
    assert.equal(0, code, failed)
    local out = run(("LD_LIBRARY_PATH=%s %s/host"):format(path, path))
    run("rm -r " .. path)
    assert.equal(("0 401 %s is of moongrid 1.2.3, this is %s; install both from one version\n"):format(lua, support.version), out)
  end)
end)
