-- SPDX-License-Identifier: MIT
--
-- Recipes run in moongrid's own Lua: beside a program's Lua of any version in one process, in programs without Lua, and
-- in programs that load and unload libmoongrid. The Lua module in interpreters of other versions.

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

-- The archives, as moongrid_static.pc has them: what speaks Lua has a Lua of its own in it.
local archives = "-Wl,-u,mgrid_lua_entry build/libmoongrid_lua.a build/libmoongrid.a "
  .. "$(pkg-config --libs yaml-0.1 expat jansson libxxhash) -lm"
local linked = ("-Lbuild -lmoongrid -Wl,-rpath,%s/build"):format(root)

-- A shared library of the archives, as a plugin links them.
local function of_archives()
  local path = stage .. "/libmoongrid_of_archives.so"
  local _, err, code = run(("cc -shared -o %s -Wl,-z,text -Wl,--whole-archive build/libmoongrid.a -Wl,--no-whole-archive %s -ldl")
    :format(path, archives))
  assert.equal(0, code, err)
  return path
end

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
        for _, order in ipairs { libs .. linked, linked .. " " .. libs, libs .. archives, archives .. " " .. libs } do
          local out, err, code = run(host(flags .. order))
          assert.equal(wanted, answer(out), err)
          assert.equal(0, code)
        end
      end)

      it(("plans or is refused beside %s, %s, under a sanitizer"):format(lua.name, way), function()
        if not has("pkg-config --exists " .. lua.name) then return pending("no " .. lua.name .. " here") end
        local function with(words)
          return run("ASAN_OPTIONS=detect_leaks=0 " .. host("-fsanitize=address " .. flags .. libs .. words))
        end
        local out, err = with(archives)
        assert.truthy(answer(out):find("<plan>\nafter: " .. says, 1, true), err)
        out, err = with(linked)
        local refused = "recipes need Lua 5.4, and lua_newstate is that of"
        assert.truthy(answer(out):find("<plan>\nafter: " .. says, 1, true) or out:find(refused, 1, true), out .. err)
      end)

      it(("loads moongrid beside %s, %s, 50 times"):format(lua.name, way), function()
        if not has("pkg-config --exists " .. lua.name) then return pending("no " .. lua.name .. " here") end
        local program = host(flags .. "-DLOADED " .. libs)
        for _, how in ipairs { "local", "global" } do
          for _, library in ipairs { root .. "/build/libmoongrid.so", of_archives() } do
            local out, err, code = run(("%s %s 50 %s"):format(program, library, how))
            assert.equal(0, code, out .. err)
            local first, last = out:match "files: (%d+).*files: (%d+)"
            assert.equal(first, last)
            assert.equal(50, select(2, answer(out):gsub("<plan>", "")))
            assert.truthy(out:find("after: " .. says, 1, true), out)
          end
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
    local out, err = run(host(archives))
    assert.equal("what speaks Lua is here: 0\n<plan>\n", answer(out), err)
    local program = host "build/libmoongrid.a $(pkg-config --libs jansson libxxhash) -lm" -- then the library is loaded, from where the loader looks
    out, err = run(("LD_LIBRARY_PATH=%s/build %s"):format(root, program))
    assert.equal("what speaks Lua is here: 0\n<plan>\n", answer(out), err)
    out = run(program)
    assert.truthy(out:find("what recipes need is not here: libmoongrid.so." .. support.interface .. ": cannot open", 1, true), out)
  end)
end)

describe("a host that gives scripts of its own the module", function()
  local source = stage .. "/scripts"

  it("links what speaks Lua, and makes runtimes too", function()
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
        mgrid_runtime_load(rt, "picotron", NULL, 0, &e);
        mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 0, NULL, &e);
        printf("%d families %s\n", (int)mgrid_plan_nfamilies(p), e.message);
        mgrid_plan_free(p);
        mgrid_runtime_free(rt);
        return 0;
      }]]
    file:close()
    for _, words in ipairs { ("-Lbuild -lmoongrid_lua -lmoongrid -Wl,-rpath,%s/build"):format(root), archives } do
      local _, err, code = run(("cc -Wall -Werror -Isrc $(pkg-config --cflags lua5.4) %s.c -o %s %s $(pkg-config --libs lua5.4)")
        :format(source, source, words))
      assert.equal(0, code, err)
      local out
      out, err, code = run(source)
      assert.equal("Lua 5.4\t1\n7 families \n", out, err)
      assert.equal(0, code)
    end
  end)

  for _, other in ipairs { "lua5.1", "lua5.3", "luajit" } do
    it("does not link the archive with " .. other, function()
      if not has("pkg-config --exists " .. other) then return pending("no " .. other .. " here") end
      local file = assert(io.open(source .. ".c", "w"))
      file:write "#include <moongrid_lua.h>\nint main(int n, char **v) { return v[n] ? mgrid_lua_open((void *)v) : 0; }\n"
      file:close()
      local _, err, code = run(("cc -Isrc %s.c -o %s $(pkg-config --libs %s) %s"):format(source, source, other, archives))
      assert.equal(1, code)
      assert.truthy(err:find("undefined reference to `lua_newuserdatauv'", 1, true), err)
    end)
  end
end)

describe("a host of C++", function()
  it("may throw in its functions, hooks and sinks", function()
    if not has "command -v c++" then return pending "no C++ compiler here" end
    local program = stage .. "/throws"
    local _, err, code = run(("c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -Isrc tests/hosts/throws.cc -o %s %s")
      :format(program, linked))
    assert.equal(0, code, err)
    local out
    out, err, code = run(program)
    assert.equal("layout:2: rack_of: an exception of the host: no rack\nout of memory\na plan\n"
      .. "the output could not be written\nan exception of the host: nothing to choose\nanother plan\n", out, err)
    assert.equal(0, code)
  end)
end)

-- The header without its macros and the library are all that they have.
describe("a host without a C compiler", function()
  local header = stage .. "/moongrid.h"

  setup(function()
    run(("mkdir -p %s/stubs && touch %s/stubs/stdbool.h %s/stubs/stddef.h %s/stubs/stdint.h"):format(stage, stage, stage, stage))
    local _, err, code = run(("cc -E -P -nostdinc -I%s/stubs -Isrc src/moongrid.h > %s"):format(stage, header))
    assert.equal(0, code, err)
  end)

  local python = os.getenv "MOONGRID_PYTHON" or "python3"
  for _, host_of in ipairs {
    { name = "LuaJIT", runs = "luajit tests/hosts/ffi.lua", needs = "command -v luajit" },
    { name = "cffi", runs = python .. " tests/hosts/cffi_host.py", needs = python .. " -c 'import cffi'" },
  } do
    it("calls by " .. host_of.name, function()
      if not has(host_of.needs) then return pending("no " .. host_of.name .. " here") end
      local out, err = run(("%s %s build/libmoongrid.so"):format(host_of.runs, header))
      assert.equal(support.version .. "\t\t2\t1\t3\n6\t\ntrue\t\n", out, err)
    end)
  end
end)

-- A program at a fixed address whose heap begins behind it, as Python often is: pointers are as small as offsets.
it("a host with its heap at low addresses gets the line of a refusal", function()
  local source = support.file [[
    #include <moongrid.h>
    #include <stdio.h>
    int main(void) {
      mgrid_error e = MGRID_ERROR_INIT;
      mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
      const char *tp = "tp=3";
      mgrid_runtime_load(rt, "picotron", NULL, 0, &e);
      mgrid_runtime_plan(rt, 8, NULL, 1, &tp, &e);
      printf("%s:%d\n", e.file, e.line);
      mgrid_runtime_free(rt);
      return 0;
    }]]
  local out, err = run(("cc -no-pie -x c %s -o %s/low -Isrc -Lbuild -lmoongrid -Wl,-rpath,%s/build && setarch -R %s/low")
    :format(source, stage, root, stage))
  assert.equal("picotron:39\n", out, err)
end)

describe("the archives", function()
  -- Names that another archive or library of a host may have, too: those of Lua are in all of its versions.
  it("show nothing but moongrid's names, and want no Lua for recipes", function()
    local members = run "ar t build/libmoongrid_lua.a"
    assert.equal("recipes.o\nmodule_of_host.o\n", members)
    run(("cd %s && ar x %s/build/libmoongrid_lua.a recipes.o"):format(stage, root))
    assert.equal("mgrid_lua_entry\n", (run(("nm -g --defined-only %s/recipes.o | awk '{ print $3 }'"):format(stage))))
    run(("cd %s && ar x %s/build/libmoongrid_lua.a module_of_host.o"):format(stage, root))
    local of_host = run(("nm -g --defined-only %s/module_of_host.o"):format(stage)) -- what a host with a Lua of its own calls
    for name in io.open "src/moongrid_lua.h":read("a"):gmatch "MGRID_API [^\n;(]-(mgrid_lua_[%l_]+)%(" do
      assert.truthy(of_host:find(" " .. name .. "\n", 1, true), name)
    end
    local wanted = run(("nm -u %s/recipes.o"):format(stage))
    assert.truthy(wanted:find "mgrid_plan_new")
    assert.is_nil(wanted:find "lua")
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
