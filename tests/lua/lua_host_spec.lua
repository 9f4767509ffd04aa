-- SPDX-License-Identifier: MIT
--
-- examples/lua_host.c: an MPI program that hands its backend and its communicator to scripts in a Lua of its own.

local support = dofile "tests/lua/support.lua"
local run = support.run

local program = "build/tests/lua_host"

-- Run a script on some ranks, half of them on each of two communicators.
local function on(ranks, text)
  local path = support.file(text)
  local out, err, code = run(("scripts/launch %d %s %s"):format(ranks, program, path))
  return out, err, code
end

local function sorted(out)
  local lines = {}
  for line in out:gmatch "[^\n]+" do lines[#lines + 1] = line end
  table.sort(lines)
  return table.concat(lines, "\n")
end

describe("a C program with a Lua of its own", function()
  it("runs the example", function()
    local out, err, code = run(("scripts/launch 8 %s examples/lua_host.lua"):format(program))
    assert.equal(0, code, err)
    local lines = { "family dp", "family dp", "family tp", "family tp" }
    for rank = 0, 7 do lines[#lines + 1] = ("rank %d: the ranks of its tp sum to %d"):format(rank, rank < 4 and 1 or 5) end
    assert.equal(table.concat(lines, "\n"), sorted(out))
  end)

  -- A script that opens a job with these words, and makes one family over it.
  local function opened(words)
    return ([[
      local mg = require "moongrid"
      local _, comm = ...
      local own = assert(%s)
      local t = mg.topology(mg.world(own.world))
      t.tp = mg.grid(mg.world(own.world), "tp", { tp = mg.fill }) "tp"
      local plan = mg.plan(t)
      local state = assert(own:materialize(plan, "own"))
      assert(state:prove() == 1)
      return plan, state
    ]]):format(words)
  end

  for _, words in ipairs { "mg.mpi(comm)", "mg.mpi { comm = comm, timeout = 60 }" } do
    it("lets a script open a job on its communicator: " .. words, function()
      local out, err, code = on(4, opened(words))
      assert.equal(0, code, err)
      local lines = { "family tp", "family tp" }
      for rank = 0, 3 do lines[#lines + 1] = ("rank %d: the ranks of its tp sum to 1"):format(rank) end
      assert.equal(table.concat(lines, "\n"), sorted(out))
    end)
  end

  for words, message in pairs {
    ["mg.mpi(123456)"] = "123456 is not a communicator of ",
    ["mg.mpi { comm = 1 << 40 }"] = "comm is the Fortran handle of a communicator (MPI_Comm_c2f), not 1099511627776",
    ["mg.mpi { com = comm }"] = "nearest is 'comm'",
    ["mg.mpi 'world'"] = "table expected",
  } do
    it("refuses " .. words, function()
      local _, err, code = on(2, opened(words))
      assert.equal(1, code)
      assert.truthy(err:find(message, 1, true), err)
    end)
  end

  -- The backend and the state stay as long as a script has them; what they need of MPI does not.
  it("whose MPI has ended, with a script that still has its objects", function()
    local source, built = os.tmpname(), os.tmpname()
    local file <close> = assert(io.open(source, "w"))
    file:write [[
      #include <moongrid_lua.h>
      #include <moongrid_mpi.h>
      #include <lauxlib.h>
      #include <lualib.h>
      #include <stdio.h>
      int main(int argc, char **argv) {
        mgrid_error e = MGRID_ERROR_INIT;
        MPI_Init(&argc, &argv);
        lua_State *L = luaL_newstate();
        luaL_openlibs(L);
        luaL_requiref(L, "moongrid", mgrid_lua_open, 0);
        lua_setglobal(L, "mg");
        mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
        mgrid_lua_push(L, "Job", b);
        lua_setglobal(L, "job");
        if (luaL_dostring(L, "local t = mg.topology(mg.world(job.world))"
                             "t.tp = mg.grid(mg.world(job.world), 'tp', { tp = mg.fill }) 'tp' plan = mg.plan(t)"
                             "state = assert(job:materialize(plan))")) return 2;
        mgrid_backend_free(b);
        MPI_Finalize();
        if (luaL_dostring(L, "print(job.rank, state.tp.size)"
                             "print(state:prove()) print(job:materialize(plan)) print(mg.mpi())"
                             "state:close() job:close() print(pcall(function() return state.tp end))")) {
          puts(lua_tostring(L, -1));
          return 3;
        }
        lua_close(L);
        return 0;
      }
    ]]
    file:flush()
    local _, err, code = run(([[cc -w -x c %s -o %s -Isrc $(pkg-config --cflags --libs "$(scripts/mpi --module)") ]]
      .. [[$(pkg-config --cflags lua5.4) -Lbuild -Wl,-rpath,build -lmoongrid_mpi -lmoongrid_lua -lmoongrid $(pkg-config --libs lua5.4)]])
      :format(source, built))
    assert.equal(0, code, err)
    local out
    out, err, code = run("scripts/launch 1 " .. built)
    os.remove(source)
    os.remove(built)
    local over = "nil\tmpi: MPI is finalized already\t200"
    assert.same({ 0, ("0\t1\n%s\n%s\n%s\nfalse\t"):format(over, over, over) },
      { code, (out:gsub("(\nfalse\t).*", "%1")) }, err)
    assert.truthy(out:find("the state is closed\n$"), out)
  end)

  it("names the line of a script that fails", function()
    local _, err = on(2, "local job = ...\nlocal t = require 'moongrid'.topology(job.world)")
    assert.truthy(err:find(":2: bad argument #1 to 'topology' (a World, not the number 1: mg.world(1) makes one", 1, true), err)
  end)
end)
