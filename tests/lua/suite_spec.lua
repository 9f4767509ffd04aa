-- SPDX-License-Identifier: MIT
--
-- The suite itself: parts and tests in C programs run by name, and an unknown name is an error, not an
-- empty suite that passes.

local support = dofile "tests/lua/support.lua"
local run = support.run

describe("scripts/test", function()
  it("lists its parts; fast ones need no sanitizer and at most 4 ranks", function()
    local list, _, code = run "scripts/test --list"
    local parts, fast = 0, 0
    for speed, name in list:gmatch "  ([%a-]) ([^\n]+)\n" do
      parts = parts + 1
      if speed == "F" or speed == "B" then
        fast = fast + 1
        assert.is_nil(name:find "San")
        assert.truthy(tonumber(name:match "(%d+) ranks" or 0) <= 4, name)
      end
    end
    assert.equal(0, code)
    assert.truthy(fast > 0 and parts > fast)
  end)

  it("runs the part of a name, after the build that it needs", function()
    local out, err, code = run "scripts/test --no-setup test_machine"
    assert.equal("", err)
    assert.truthy(out:find "^build +1 passed +0 failed +%d+ s\ntest_machine +%d+ passed +0 failed +%d+ s\n%d+ passed, 0 failed, %d+ skipped\n$", out)
    assert.equal(0, code)
  end)

  it("refuses a name that no part has, and an option that it has not", function()
    local _, err, code = run "scripts/test --no-setup test_machine nosuchpart"
    assert.truthy(err:find "^test: no part has 'nosuchpart' in its name; the parts are\n  F build\n")
    assert.equal(2, code)
    _, err, code = run "scripts/test --fats"
    assert.truthy(err:find("test: unknown option '--fats' (--covering FILE:LINE, --fast, --help, --list, --mpi NAME, --no-setup, --plain); "
      .. "the parts are\n", 1, true) == 1, err)
    assert.equal(2, code)
  end)
end)

-- A host of Lua: with a word, both chunks take the branch. The second one runs as a recipe does, with a hook of its own.
local lua_host = [[
#include <lauxlib.h>
#include <lua.h>
static int counted;
static void hook(lua_State *L, lua_Debug *ar) { counted += L && ar; }
static void run(const char *path, const char *chunk, int more, lua_Hook f) {
  lua_State *L = luaL_newstate();
  FILE *file = fopen(path, "r");
  char text[100] = "";
  size_t n = fread(text, 1, sizeof text, file);
  fclose(file);
  if (f) lua_sethook(L, f, LUA_MASKCOUNT, 1);
  luaL_loadbuffer(L, text, n, chunk);
  lua_pushboolean(L, more);
  lua_call(L, 1, 0);
  if (f) lua_sethook(L, NULL, 0, 0);
  lua_close(L);
}
int main(int n, char **v) {
  run("lua/command/b.lua", "=moongrid.command.b", v && n > 1, NULL);
  run("lua/prelude/b.lua", "=moongrid/b.lua", n > 1, hook);
  return counted < 2;
}
]]

describe("scripts/test --covering", function()
  local run_in = function(dir, line) return run(("cd %s && %s"):format(dir, line)) end
  local dir

  -- a tree with a file of C and two of Lua, which are compiled as COV=1 does, and two parts that reach different lines
  setup(function()
    dir = os.tmpname()
    os.remove(dir)
    os.execute("mkdir -p " .. dir)
    support.write(dir .. "/b.c", lua_host)
    local out, err, code = run(([[set -e; here=$PWD; cd %s
      mkdir -p scripts src build/covering/tree/src build/covering/parts
      cp $here/scripts/covering scripts/
      printf '%%s\n' 'int main(int n, char **v) {' '  if (n > 1)' '    return 0 * v[0][0];' '  return 0;' '}' '/* end */' > src/a.c
      cp src/a.c build/covering/tree/src/
      gcc -O0 -g --coverage -c src/a.c -o build/a.o && gcc --coverage build/a.o -o build/a
      mkdir -p lua/command lua/prelude build/covering/tree/lua
      printf '%%s\n' 'local more = ...' 'if more then' '  return 1' 'end' 'return 0' | tee lua/prelude/b.lua > lua/command/b.lua
      cp -r lua build/covering/tree/
      gcc $(pkg-config --cflags lua5.4) -DLINES='"build/lua.lines"' b.c $here/tests/lines.c -o build/b \
        -Wl,--wrap=luaL_newstate,--wrap=lua_sethook $(pkg-config --libs lua5.4)
      build/a && build/b && scripts/covering --record build/covering/parts "first: 1 rank"
      build/a more && build/b more && build/b more && scripts/covering --record build/covering/parts second/more
      touch build/covering/done]]):format(dir))
    assert.are.same({ "", "", 0 }, { out, err, code })
  end)
  teardown(function() os.execute("rm -r " .. dir) end)

  it("names the parts that reach a line", function()
    for line, parts in pairs { [2] = "first: 1 rank\nsecond/more\n", [3] = "second/more\n", [4] = "first: 1 rank\n" } do
      assert.are.same({ parts, "", 0 }, { run_in(dir, "scripts/covering src/a.c:" .. line) })
    end
  end)

  it("names those that reach a line of Lua", function()
    for _, file in ipairs { "lua/command/b.lua", "lua/prelude/b.lua" } do
      for line, parts in pairs { [2] = "first: 1 rank\nsecond/more\n", [3] = "second/more\n", [5] = "first: 1 rank\n" } do
        assert.are.same({ parts, "", 0 }, { run_in(dir, ("scripts/covering %s:%d"):format(file, line)) })
      end
    end
  end)

  it("says that none does, that the file is not what was recorded, and what a place is", function()
    assert.are.same({ "", "test: no quick part reaches src/a.c:6\n", 0 }, { run_in(dir, "scripts/covering src/a.c:6") })
    assert.are.same({ "first: 1 rank\n", "test: note: src/a.c has changed since the record, so lines may have moved; --again makes a "
      .. "new record\n", 0 }, { run_in(dir, "echo >> src/a.c; scripts/covering src/a.c:4") })
    for _, place in ipairs { "src/a.c", "src/a.c:0", "src/a.c:99", "src/b.c:1", "src/a.c:x" } do
      assert.are.same({ "", ("test: --covering wants FILE:LINE, an existing line of C or Lua, not '%s'\n"):format(place), 2 },
        { run_in(dir, "scripts/covering " .. place) })
    end
    local out, err, code = run "scripts/test --covering"
    assert.are.same({ "", 2 }, { out, code })
    assert.truthy(err:find("test: --covering wants FILE:LINE, such as src/plan/plan.c:100; the parts are\n", 1, true) == 1, err)
  end)

  it("is in the help", function()
    local out, err, code = run "scripts/test --help"
    assert.are.same({ "", 0 }, { err, code })
    for _, option in ipairs { "--fast", "--list", "--covering FILE:LINE", "--mpi NAME", "--plain", "--no-setup" } do
      assert.truthy(out:find(" " .. option .. " ", 1, true), option)
    end
    assert.truthy(out:find("--again: make a new record", 1, true))
    assert.falsy(out:find("#", 1, true))
  end)
end)

describe("scripts/mpi", function()
  it("says of every library whether it is here, and refuses one that it does not know", function()
    local out, _, code = run "scripts/mpi --list"
    assert.equal(0, code)
    for _, name in ipairs { "openmpi4", "openmpi5", "mpich4", "mpich5" } do
      assert.truthy(("\n" .. out):find("\n" .. name .. " %S"), out)
    end
    local _, err, other = run "scripts/mpi mpitch true"
    assert.equal("mpi: no MPI library 'mpitch'; there are openmpi4 openmpi5 mpich4 mpich5, or the path of an mpicc\n", err)
    assert.equal(2, other)
    _, err, other = run "scripts/test --no-setup --mpi mpitch"
    assert.truthy(err:find "^test: no MPI library 'mpitch' %(all, or of openmpi4 openmpi5 mpich4 mpich5 %)", err)
    assert.equal(2, other)
  end)

  it("needs a name and a command, or a name for --install", function()
    for _, words in ipairs { "", "mpich4", "--install", "--instal mpich5" } do
      local _, err, code = run("scripts/mpi " .. words)
      assert.equal("mpi: usage: mpi NAME COMMAND..., --list, --install NAME or --module\n", err)
      assert.equal(2, code)
    end
  end)

  it("takes the mpirun beside an mpicc that is called as it is, and refuses an mpicc that has none", function()
    local out, err, code = run [[
      folder=$(mktemp -d)
      for name in mpirun mpirun.mpich mpicc.mpich mpicc.other; do printf '#!/bin/sh\n' > "$folder/$name"; done
      chmod +x "$folder"/*
      . scripts/mpi.d/libraries
      mpi_find "$folder/mpicc.mpich" none && echo "${run#$folder/}"
      scripts/mpi "$folder/mpicc.other" true 2>&1 | sed "s,$folder,FOLDER,"
      cd "$folder" && "$OLDPWD/scripts/mpi" ./mpirun true 2>&1 | sed "s,$folder,FOLDER,"
      rm -r "$folder"]]
    assert.equal("mpirun.mpich\nmpi: no mpicc 'FOLDER/mpicc.other' with its mpirun beside it\n"
      .. "mpi: no mpicc 'FOLDER/mpirun' with its mpirun beside it\n", out)
    assert.same({ "", 0 }, { err, code })
  end)

  it("a library that is not here is skipped in one line, and counted", function()
    local out, _, code = run "MPI_WITHOUT=mpich5 scripts/test --no-setup --mpi mpich5"
    assert.truthy(out:find "\nmpich5: build +skipped: %S[^\n]+\n", out)
    assert.truthy(out:find "\n1 passed, 0 failed, %d+ skipped\n$", out)
    assert.equal(0, code)
  end)
end)

describe("scripts/launch", function()
  it("needs a number of ranks and a command", function()
    for _, words in ipairs { "", "2", "0 true", "two true", "-1 true" } do
      local _, err, code = run("scripts/launch " .. words)
      assert.equal("launch: usage: launch N COMMAND..., with N of 1 or more\n", err)
      assert.equal(2, code)
    end
  end)

  it("ends with all its ranks at the Ctrl-C of a terminal, also where a script calls it", function()
    if select(3, run "scripts/mpi --module && command -v script") ~= 0 then return pending "no MPI here, or no 'script'" end
    local out, _, code = run [[
      folder=$(mktemp -d)
      cat > "$folder/rank" << 'END'
echo $$ > $(dirname "$0")/rank.$$
exec sleep 60
END
      ranks() { ls "$folder" | grep -c '^rank\.'; }
      { for _ in {1..100}; do [ "$(ranks)" = 4 ] && break; sleep 0.1; done; printf '\003'; sleep 5; } \
        | timeout 30 script -qec "bash -c 'scripts/launch 4 bash $folder/rank; true'" /dev/null > /dev/null
      for _ in {1..50}; do
        left=$(cat "$folder"/rank.* | while read -r pid; do [ ! -d /proc/$pid ] || echo $pid; done)
        [ -n "$left" ] || break
        sleep 0.1
      done
      echo "$(ranks) ranks, left: $left"
      [ -z "$left" ] || kill -KILL $left
      rm -r "$folder"]]
    assert.equal("4 ranks, left: \n", out)
    assert.equal(0, code)
  end)
end)

describe("scripts/lab/systems", function()
  it("lists its names, and refuses another", function()
    assert.equal("debian12\ndebian13\nubuntu22.04\nubuntu24.04\nubuntu26.04\narm64\nmusl\nhere\n", (run "scripts/lab/systems --list"))
    local _, err, code = run "scripts/lab/systems debian14"
    assert.equal("systems: no system 'debian14'; there are debian12 debian13 ubuntu22.04 ubuntu24.04 ubuntu26.04 arm64 musl here\n", err)
    assert.equal(2, code)
  end)

  it("says what is not here in a word", function()
    local out, _, code = run [[dir=$(mktemp -d); for tool in bash dirname sort cat; do ln -s $(command -v $tool) $dir/; done
      PATH=$dir bash scripts/lab/systems arm64; code=$?; rm -r "$dir"; exit $code]]
    assert.equal("1..0 # SKIP no 'aarch64-linux-gnu-gcc' (Debian: gcc-aarch64-linux-gnu, qemu-user-static)\n", out)
    assert.equal(77, code)
  end)
end)

describe("a C test program", function()
  -- What it prints; later releases of cmocka begin with a line that names the format.
  local function tap(arguments)
    local out, _, code = run("CMOCKA_MESSAGE_OUTPUT=TAP build/tests/test_plan " .. arguments)
    return (out:gsub("^TAP version 13\n", "")), code
  end

  it("runs one of its tests, or those like a pattern", function()
    local out, code = tap "test_digest"
    assert.equal("1..1\nok 1 - test_digest\n", out:match "^1.-\nok[^\n]*\n")
    assert.is_nil(out:find "\nok 2")
    assert.equal(0, code)
    out, code = tap "'test_dig*s'"
    assert.truthy(out:find "^1%.%.2\nok 1 %- test_digest_repeats\nok 2 %- test_digest_of_odd_values\n")
    assert.equal(0, code)
  end)

  it("refuses a name that no test of its has", function()
    local _, err, code = run "build/tests/test_machine test_nothing"
    assert.truthy(err:find "^build/tests/test_machine has no test 'test_nothing'; known:\n  test_%w+")
    assert.equal(2, code)
    _, err, code = run "build/tests/test_machine a b"
    assert.equal("build/tests/test_machine takes one name of a test, which may have * and ? in it\n", err)
    assert.equal(2, code)
  end)
end)

describe("scripts/mutants", function()
  -- The lines that these become, without the order.
  local function changes(name, lines)
    local path = support.write(os.tmpname() .. name, table.concat(lines, "\n") .. "\n")
    local out, list = run(("lua5.4 scripts/mutants.lua %s 1 100 1 2; rm %s"):format(path, path)), {}
    for text in out:gmatch "[^\n]+" do list[#list + 1] = text end
    table.sort(list)
    return list
  end

  it("changes one operator or constant of a line, not what is in a text or a comment", function()
    assert.are.same({
      '1\tif a == 1 and not b then f("x == 1") end -- 2 == 2',
      '1\tif a == 1 or b then f("x == 1") end -- 2 == 2',
      '1\tif a == 2 or not b then f("x == 1") end -- 2 == 2',
      '1\tif a ~= 1 or not b then f("x == 1") end -- 2 == 2',
      "2\tx1 = a + b * false",
      "2\tx1 = a + b + true",
      "2\tx1 = a - b * true",
    }, changes(".lua", { 'if a == 1 or not b then f("x == 1") end -- 2 == 2', "x1 = a + b * true", "local none = 1" }))
    assert.are.same({
      "1\tif (!a && b <= c->d) return 'x'; // 1",
      "1\tif (!a || b < c->d) return 'x'; // 1",
      "1\tif (a && b < c->d) return 'x'; // 1",
      "2\tfor (i = 0; i != n; i++) {} /* a && b */",
      "2\tfor (i = 1; i == n; i++) {} /* a && b */",
    }, changes(".c", { "if (!a && b < c->d) return 'x'; // 1", "for (i = 0; i == n; i++) {} /* a && b */" }))
  end)

  it("refuses what is not a place in a file", function()
    for _, words in ipairs { "", "src/none.c", "src/plan/diff.c:x", "src/plan/diff.c --count x", "src/plan/diff.c --seed" } do
      local out, err, code = run("scripts/mutants " .. words)
      assert.are.same({ "", 2 }, { out, code }, words)
      assert.truthy(err:find("^mutants: usage: mutants FILE%[:LINE%]"), err)
    end
  end)
end)
