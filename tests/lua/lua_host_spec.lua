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
  os.remove(path)
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
    ["mg.mpi(123456)"] = "the parent is no communicator",
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

  it("names the line of a script that fails", function()
    local _, err = on(2, "local job = ...\nlocal t = require 'moongrid'.topology(job.world)")
    assert.truthy(err:find(":2: bad argument #1 to 'topology' (a World, not the number 1: mg.world(1) makes one", 1, true), err)
  end)
end)
