-- SPDX-License-Identifier: MIT
--
-- Recovery over NCCL, on the stand-in libraries (tests/nccl/standin), without a GPU: the host gives the lost ranks. Tests with
-- killed ranks, under Open MPI 5: scripts/test, and tests/nccl/survivors.sh on NCCL's own host code.

local support = dofile "tests/lua/support.lua"

local TAG = os.tmpname():match "[%w]+$" -- names our objects in shared memory, since other tests may run on this machine

-- out, err, code of a command on 8 ranks over the stand-in, with `env` in front.
local function on(command, env)
  support.run("rm -f /dev/shm/mg-standin-" .. TAG .. "-*")
  return support.run(("export LUA_CPATH_5_4='build/?.so;;'; LD_LIBRARY_PATH=build/standin STANDIN_TAG=%s STANDIN_DEADLINE=30 %s "
    .. "scripts/launch 8 %s"):format(TAG, env or "", command))
end

-- Check that the stand-in reports no abort that harms NCCL.
local function clean(err) assert.falsy(err:find("memory that it has freed", 1, true), err) end

describe("survivors, over NCCL", function()
  if not support.exists "build/standin/libnccl.so.2" then return pending "no headers of NCCL, or of CUDA" end

  local shrunk, failed = "SHRUNK=%d", "STANDIN_FAIL_INIT=4:%d" -- rank 4 makes 3 for each of two states, then those of the test
  local cases = { -- words, tests, environment
    { "between", 6, shrunk:format(0) },
    { "between blocks", 6, shrunk:format(0) },
    { "between shrink", 6, shrunk:format(12) },
    { "between shrink blocks", 6, shrunk:format(12) },
    { "fresh shrink", 6, shrunk:format(12) },
    { "between unlike shrink", 3 },
    -- an error stays with a communicator, so NCCL cannot shrink it
    { "running", 7, shrunk:format(0) },
    { "running shrink", 8, shrunk:format(6) .. " BECAUSE='the old communicator has an error: remote process exited'" },
    { "running shrink blocks", 8, shrunk:format(6) .. " BECAUSE='the old communicator has an error: remote process exited'" },
  }
  for _, blocks in ipairs { "", " blocks" } do
    -- ncclCommShrink fails on one rank: all members make the communicator again
    cases[#cases + 1] = { "between shrink" .. blocks, 7, failed:format(7) .. " SHRUNK=6 BECAUSE='rank 4 gave up'" }
    cases[#cases + 1] = { "between shrink" .. blocks, 7, failed:format(8) .. " SHRUNK=9 BECAUSE='rank 4 gave up'" }
    -- a creation fails: all get an error, and recover once more from the old state
    cases[#cases + 1] = { "between shrink" .. blocks, 8, failed:format(9) .. " SHRUNK=0 FAILS='rank 4: nccl: creation for train/tp[2]: '" }
    cases[#cases + 1] = { "between" .. blocks, 8, failed:format(7) .. " SHRUNK=0 FAILS='rank 4: nccl: creation for train/'" }
  end
  -- the notice that ncclCommShrink failed overtakes the vote before it
  cases[#cases + 1] = { "between shrink", 7, "SLOW=2:3 " .. failed:format(7) .. " SHRUNK=6 BECAUSE='rank 4 gave up'" }
  for _, case in ipairs(cases) do
    it(case[1] .. " " .. (case[3] or ""), function()
      local out, err = on("build/tests/nccl/survivors list " .. case[1], case[3])
      assert.truthy(out:find(("1..%d\n"):format(case[2]), 1, true), out .. err)
      assert.falsy(out:find "not ok", out .. err)
      clean(err)
    end)
  end

  -- The even ranks take the odd ones for lost, and the reverse; each half goes on over its own communicator.
  for all, rest in pairs { ["mg.mpi { timeout = 20 }"] = "mpi", ["mg.nccl { timeout = 20 }"] = "mg.nccl { carrier = mpi }" } do
    it("in Lua, with a job and a list: " .. all, function()
      local recipe = support.file [[return recipe { build = function(world)
        local t = topology(world)
        t.g = grid(world, "dp", { dp = fill })
        t.dp = t.g "dp"
        t.w = tensor { over = "g", axes = { { "row", 24 } }, type = "f32" }
        return t end }]]
      local script = support.file(([[
        local mg = require "moongrid"
        local _, comm = ...
        local mpi, all = assert(mg.mpi(comm)), assert(%s)
        local rest, lost = assert(%s), {}
        local state = assert(all:materialize(mg.load %q:plan(all.world), "train"))
        assert(state:prove())
        for rank = 1 - state.rank %% 2, 7, 2 do lost[#lost + 1] = rank end
        local none, message, status = state:recover { job = rest, lost = { lost[1] } }
        assert(not none and message:find "this rank is rank %%d of 4 in the backend of the survivors; after the loss of rank %%d the old rank %%d must be rank %%d of 7")
        local next, loss, move, job = assert(state:recover { job = rest, lost = lost, name = "next", nccl_shrink = true })
        assert(next:settle(move:prove(job)))
        assert(loss.how == "shrink" and job.world == 4 and next.dp.size == 4 and next:prove() == 1)
        print(status, table.concat(loss.lost, ","), next.rank, next:least(next.rank + 3))
        state:close() next:close()
        local t = mg.topology(mg.world(4))
        t.tp = mg.grid(mg.world(4), "tp", { tp = 4 }) "tp"
        local plan = mg.plan(t)
        return plan, assert(mpi:materialize(plan, "own"))
      ]]):format(all, rest, recipe))
      local out, err, code = on("build/tests/lua_host " .. script)
      os.remove(script)
      os.remove(recipe)
      assert.equal(0, code, out .. err)
      for rank = 0, 7 do
        local line = ("100\t%s\t%d\t3\n"):format(rank % 2 == 0 and "1,3,5,7" or "0,2,4,6", rank // 2)
        assert.truthy(out:find(line, 1, true), line .. out)
      end
      clean(err)
    end)
  end
end)
