-- SPDX-License-Identifier: MIT
--
-- examples/joining.c: ranks join a job between two steps, started by the job or at a port, with each MPI library that
-- supports it. With ULFM a new rank replaces a lost one. src/survive/joining.md shows the output.

local support = dofile "tests/lua/support.lua"
local run, read = support.run, support.read
local recipe = "examples/joining.lua"

-- The sums of a job that never changes.
local function sum_of(step) return 64 * 32 * step * (23 * 24 // 2) // 24 end

-- Split the output into lines of steps, "4: 8 ranks, 0 of them spare", whose sums it checks, and other lines.
local function steps(out)
  local lines, done, others = {}, 0, {}
  for line in out:gmatch "[^\n]+" do
    local step, text, sum = line:match "^step +(%d+): (.*), sum (%d+)$"
    if step then
      done = done + 1
      assert.equal(done, tonumber(step), out)
      assert.equal(sum_of(done), tonumber(sum), out)
      lines[done] = text
    else
      others[#others + 1] = line
    end
  end
  assert.equal(12, done, out)
  return lines, others
end

local function lacks(library) return run("scripts/mpi --list"):match(library .. " %- ([^\n]*)") end

-- A command with this MPI library; "": that of the build.
local function with(library, line)
  return library == "" and "MPI_JOBS=several " .. line
    or ("MPI_JOBS=several scripts/mpi %s sh -c 'make -s build/tests/joining >&2 && %s'"):format(library, line)
end

describe("ranks that a job starts itself", function()
  for _, library in ipairs { "", "openmpi5", "mpich5" } do
    it("join it" .. (library ~= "" and " with " or "") .. library, function()
      local why = library ~= "" and lacks(library)
      if why then pending(why) return end
      local out, err, code = run(with(library, "scripts/launch 4 build/tests/joining spawn 8 " .. recipe))
      assert.equal(0, code, err)
      local lines, others = steps(out)
      assert.are.same({ "step  3: 8 ranks, 0 of them spare, all ranks are at step 3" }, others)
      assert.are.same({ "4 ranks, 0 of them spare", "8 ranks, 0 of them spare" }, { lines[3], lines[4] })
    end)
  end

  it("are spares where the layout has no use for them", function()
    local out, err, code = run(with("", "scripts/launch 4 build/tests/joining spawn 5 " .. recipe))
    assert.equal(0, code, err)
    assert.equal("5 ranks, 1 of them spare", steps(out)[4])
  end)

  it("take the places of lost ones", function()
    local why = lacks "openmpi5"
    if why then pending(why) return end
    local out, err, code = run([[JOINING_KILL=5 LAUNCH_OPTIONS="--with-ft ulfm" ]]
      .. with("openmpi5", "scripts/launch 4 build/tests/joining spawn 4 " .. recipe))
    assert.equal(0, code, err)
    steps(out)
    local shown = read "src/survive/joining.md":match "\n(step  3: 4 ranks.-)\n```"
    assert.truthy(shown and out:find(shown, 1, true), out)
  end)
end)

describe("ranks of a job of their own", function()
  local library = "mpich5" -- Open MPI needs a server for that (src/survive/joining.md)

  -- run the job that accepts, and the one that joins it
  local function both(args)
    local port = os.tmpname()
    os.remove(port)
    local out, err, code = run(with(library, ([[scripts/launch 4 build/tests/joining accept %s %s & job=$!
      scripts/launch 2 build/tests/joining connect %s %s %s || exit
      wait $job]]):format(port, recipe, port, recipe, args)))
    os.remove(port)
    assert.equal(0, code, err)
    return out, err
  end

  it("join another job at its port", function()
    local why = lacks(library)
    if why then pending(why) return end
    local lines = steps((both ""))
    assert.are.same({ "4 ranks, 0 of them spare", "6 ranks, 0 of them spare" }, { lines[1], lines[12] })
  end)

  it("are refused with other arguments, and the job goes on", function()
    local why = lacks(library)
    if why then pending(why) return end
    local out, err = both "tp=1"
    local message = 'ranks do not have the same plan: rank 4 has "family dp: (6:1) x (1)", rank 0 has "family dp: (3:2) x '
      .. '(2:1)"; rank 4 has "param tp = 1", rank 0 has "param tp = 2"; differing from rank 0: 4, 5'
    local lines, others = steps(out)
    assert.are.same({ "nobody joins: " .. message }, others)
    assert.equal("4 ranks, 0 of them spare", lines[12])
    assert.truthy(err:find("not let in: " .. message, 1, true), err)
  end)
end)

it("says how to call it", function()
  local _, err, code = run "build/tests/joining spawn 8"
  assert.are.same({ 2, "joining spawn N|accept FILE|connect FILE RECIPE [NAME=VALUE ...]" }, { code, (err:match "(joining [^\n]*)") })
end)
