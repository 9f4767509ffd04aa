-- SPDX-License-Identifier: MIT
--
-- Lua is moongrid's alone: programs with a Lua of their own, of any version, and recipes in one process; programs
-- without; what loads and unloads libmoongrid; the Lua module in interpreters of other versions.

local support = dofile "tests/lua/support.lua"
local run = support.run

local function has(command) return select(3, run(command)) == 0 end

local stage = run "mktemp -d":gsub("\n", "")
local root = run "pwd":gsub("\n", "")

-- Compile tests/hosts/host.c with these words; the path of the program.
local n = 0
local function host(words)
  n = n + 1
  local path = ("%s/host%d"):format(stage, n)
  local _, err, code = run(("cc -Wall -Werror -Isrc tests/hosts/host.c -o %s %s -ldl"):format(path, words))
  assert.equal(0, code, err)
  return path
end

local linked = ("-Lbuild -lmoongrid -Wl,-rpath,%s/build"):format(root)

-- Every host has the plan that the command prints, and leaves by exit code 0.
local planned
local function answer(out)
  if not planned then
    local plan = run "build/moongrid plan megatron tp=2 pp=2 --world 16"
    planned = assert(plan:match "digest +(%x+)", plan)
  end
  return (out:gsub(planned .. " rank 1 \n", "<plan>\n"))
end

teardown(function() run("rm -rf " .. stage) end)

describe("a host with a Lua of its own", function()
  for _, lua in ipairs {
    { name = "lua5.1", says = "Lua 5.1", static = "liblua5.1.a" },
    { name = "lua5.3", says = "Lua 5.3", static = "liblua5.3.a" },
    { name = "lua5.4", says = "Lua 5.4", static = "liblua5.4.a" },
    { name = "luajit", says = "Lua 5.1", static = "libluajit-5.1.a" },
  } do
    local says = lua.says .. " 266682"
    local flags = ("-DWITH_LUA $(pkg-config --cflags %s) "):format(lua.name)
    local ways = {
      shared = ("$(pkg-config --libs %s) "):format(lua.name),
      -- all of it, and its names are seen by every library
      static = ("-Wl,--whole-archive -l:%s -Wl,--no-whole-archive -Wl,-E -lm "):format(lua.static),
    }
    for way, libs in pairs(ways) do
      it(("plans beside %s, %s"):format(lua.name, way), function()
        if not has("pkg-config --exists " .. lua.name) then return pending("no " .. lua.name .. " here") end
        local wanted = ("before: %s\nwhat speaks Lua is here: 0\n<plan>\nafter: %s\n"):format(says, says)
        for _, order in ipairs { libs .. linked, linked .. " " .. libs } do
          local out, err, code = run(host(flags .. order))
          assert.equal(wanted, answer(out), err)
          assert.equal(0, code)
        end
      end)

      it(("loads moongrid beside %s, %s, 50 times"):format(lua.name, way), function()
        if not has("pkg-config --exists " .. lua.name) then return pending("no " .. lua.name .. " here") end
        local program = host(flags .. "-DLOADED " .. libs)
        for _, how in ipairs { "local", "global" } do
          local out, err, code = run(("%s %s/build/libmoongrid.so 50 %s"):format(program, root, how))
          assert.equal(0, code, out .. err)
          local first, last = out:match "files: (%d+).*files: (%d+)"
          assert.equal(first, last)
          assert.equal(50, select(2, answer(out):gsub("<plan>", "")))
          assert.truthy(out:find("after: " .. says, 1, true), out)
        end
      end)
    end
  end
end)

describe("a host without Lua", function()
  it("has none before it makes a runtime", function()
    local out, err = run(host(linked))
    assert.equal("what speaks Lua is here: 0\n<plan>\n", answer(out), err)
  end)

  it("may be built with a sanitizer, which forbids what others need", function()
    local out, err, code = run("ASAN_OPTIONS=detect_leaks=1 " .. host("-fsanitize=address " .. linked))
    assert.equal("what speaks Lua is here: 0\n<plan>\n", answer(out), err)
    assert.equal(0, code)
  end)

  it("is told which library is not here", function()
    local folder = run "mktemp -d":gsub("\n", "")
    run(("cp build/libmoongrid.so.* %s/"):format(folder))
    local out, _, code = run(("LD_LIBRARY_PATH=%s %s"):format(folder, host "-Lbuild -lmoongrid"))
    run("rm -r " .. folder)
    assert.equal(1, code)
    assert.truthy(out:find("rank -1 what recipes need is not here: libmoongrid_lua.so." .. support.interface
      .. ": cannot open shared object file", 1, true), out)
  end)

  it("may bring its own malloc, linked or preloaded", function()
    local out, err, code = run(host("tests/hosts/allocator.c -fno-builtin -Wl,-E " .. linked))
    assert.equal("", err)
    assert.equal("what speaks Lua is here: 0\n<plan>\n", answer(out))
    assert.equal(0, code)
    run(("cc -fPIC -shared -fno-builtin tests/hosts/allocator.c -o %s/allocator.so"):format(stage))
    out, err, code = run(("LD_PRELOAD=%s/allocator.so %s"):format(stage, host(linked)))
    assert.equal("", err)
    assert.equal("what speaks Lua is here: 0\n<plan>\n", answer(out))
    assert.equal(0, code)
  end)

  it("links the archives: with what speaks Lua, or without", function()
    local libs = "build/libmoongrid.a $(pkg-config --libs jansson libxxhash) -lm "
    local out, err = run(host("-Wl,-u,mgrid_lua_entry build/libmoongrid_lua.a " .. libs .. "$(pkg-config --libs lua5.4 yaml-0.1)"))
    assert.truthy(answer(out):find "<plan>\n$", err)
    local program = host(libs) -- then the library is loaded, from where the loader looks
    out, err = run(("LD_LIBRARY_PATH=%s/build %s"):format(root, program))
    assert.equal("what speaks Lua is here: 0\n<plan>\n", answer(out), err)
    out = run(program)
    assert.truthy(out:find("what recipes need is not here: libmoongrid.so." .. support.interface .. ": cannot open", 1, true), out)
  end)
end)

describe("a host that gives scripts of its own the module", function()
  it("links what speaks Lua, and makes runtimes too", function()
    local source = stage .. "/scripts"
    run("mkdir -p " .. stage)
    local file = assert(io.open(source .. ".c", "w"))
    file:write [[
      #include <lauxlib.h>
      #include <lualib.h>
      #include <moongrid_lua.h>
      #include <stdio.h>
      int main(void) {
        mgrid_error    e = MGRID_ERROR_INIT;
        mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
        lua_State     *L = luaL_newstate();
        luaL_openlibs(L);
        luaL_requiref(L, "moongrid", mgrid_lua_open, 0);
        if (luaL_dostring(L, "local mg = require 'moongrid'\n"
                             "print(_VERSION, mg.load('picotron'):plan(8, { tp = 2 }):dry(3).tp.position)"))
          puts(lua_tostring(L, -1));
        lua_close(L);
        mgrid_runtime_load(rt, "picotron", &e);
        mgrid_plan *p = mgrid_runtime_plan(rt, 8, 0, NULL, &e);
        printf("%d families %s\n", (int)mgrid_plan_nfamilies(p), e.message);
        mgrid_plan_free(p);
        mgrid_runtime_free(rt);
        return 0;
      }]]
    file:close()
    local _, err, code = run(("cc -Wall -Werror -Isrc $(pkg-config --cflags lua5.4) %s.c -o %s -Lbuild -lmoongrid_lua "
      .. "-lmoongrid -Wl,-rpath,%s/build $(pkg-config --libs lua5.4)"):format(source, source, root))
    assert.equal(0, code, err)
    local out
    out, err, code = run(source)
    assert.equal("Lua 5.4\t1\n7 families \n", out, err)
    assert.equal(0, code)
  end)
end)

describe("moongrid.so", function()
  local script = [[ -e 'package.cpath = "build/?.so" local ok, e = pcall(require, "moongrid") print(ok, ok and e._VERSION or e)']]

  it("has no Lua, but that of the interpreter", function()
    local out, err = run("lua5.4" .. script)
    assert.equal("true\tmoongrid " .. support.version .. "\n", out, err)
    assert.is_nil((run "ldd build/moongrid.so"):find "lua5")
    out, err = run [[LUA_CPATH_5_4='build/?.so' lua5.4 -e 'local plan = require "moongrid".load "megatron":plan(64, { tp = 4 })
      for line in io.lines "/proc/self/maps" do assert(not line:find "liblua5", line) end print(#plan)']]
    assert.equal("32\n", out, err)
  end)

  for _, other in ipairs { "lua5.1", "lua5.3", "luajit" } do
    it("says so in " .. other, function()
      if not has("command -v " .. other) then return pending("no " .. other .. " here") end
      local out, err = run(other .. script)
      local version = other == "luajit" and "Lua 5.1" or other:gsub("lua", "Lua ")
      assert.equal(("false\tmoongrid is built for Lua 5.4, and this is %s\n"):format(version), out, err)
    end)
  end
end)
