-- SPDX-License-Identifier: MIT
--
-- The golden runner can fail: it notices a changed table.

local support = dofile("tests/lua/support.lua")
local run = support.run

-- One changed copy of the tables; `edit` is a sed command over one file.
local function tampered(file, edit)
  local dir = run("mktemp -d"):gsub("\n", "")
  run(("cp tests/golden/*.json %s && sed -i '%s' %s/%s"):format(dir, edit, dir, file))
  local out, _, code = run("scripts/golden " .. dir .. " " .. (file == "deviations.json" and "megatron_deepspeed" or file:match("^(.*)%.json$")))
  run("rm -r " .. dir)
  return out, code
end

describe("scripts/golden", function()
  it("notices an order inside a group", function()
    local out, code = tampered("picotron.json", '/"id":.*"pc-002"/s/"tp_group": *\\[\\[0, *1\\]\\]/"tp_group":[[1,0]]/')
    assert.truthy(out:find("FAIL picotron pc-002: tp_group: group 0 is [0,1] instead of [1,0]\n", 1, true), out)
    assert.truthy(out:find("\n57 passed, 1 failed\n$"))
    assert.equal(1, code)
  end)

  it("notices a getter", function()
    local out, code = tampered("picotron.json", '/"id":.*"pc-002"/s/"tp_rank": *\\[0, *1\\]/"tp_rank":[0,0]/')
    assert.truthy(out:find("FAIL picotron pc-002: tp_rank of rank 1 is 1 instead of 0\n", 1, true), out)
    assert.equal(1, code)
  end)

  it("notices a refusal that is not one, and the other way round", function()
    local out = tampered("picotron.json", '/"id":.*"pc-053"/s/"tp_size": *3/"tp_size":8/')
    assert.truthy(out:find("FAIL picotron pc-053: accepted, should be refused\n", 1, true), out)
    out = tampered("picotron.json", '/"id":.*"pc-002"/s/"dp_size": *1/"dp_size":3/')
    assert.truthy(out:find("FAIL picotron pc-002: picotron:39: tp 2 x dp 3 = 6 does not make the 2 ranks", 1, true), out)
  end)

  it("notices which operation was refused", function()
    local out = tampered("hyper_comm_grid.json", '/"hg-024"/s/"refused": *\\[\\[3/"refused":[[2/')
    assert.truthy(out:find("FAIL hyper_comm_grid hg-024: ", 1, true), out)
    assert.truthy(out:find("operation 2, get_pg, is recorded as refused, and may not fail", 1, true), out)
  end)

  it("obeys the deviations", function()
    local out = tampered("deviations.json", 's/"refuse"/"correct"/')
    assert.truthy(out:find("FAIL megatron_deepspeed md-063: ", 1, true), out)
  end)

  it("fails a case that nothing of ours can read, and says what it needs", function()
    local dir = run("mktemp -d"):gsub("\n", "")
    run(([[cp tests/golden/picotron.json tests/golden/deviations.json %s; echo '{"cases":[{"id":"x-1"}]}' > %s/nobody.json]]):format(dir, dir))
    local out, _, code = run("scripts/golden " .. dir)
    run("rm -r " .. dir)
    assert.truthy(out:find("FAIL nobody x-1: nothing of ours speaks for this system\n", 1, true))
    assert.truthy(out:find("\n58 passed, 1 failed\n$"))
    assert.equal(1, code)
    local _, err, usage = run "scripts/golden /nowhere"
    assert.truthy(err:find("^usage: "))
    assert.equal(2, usage)
  end)

  -- MOONGRID_DRAWS=1000: a longer search, with MOONGRID_SEED=n for other draws
  it("notices any expectation that changes by one", function()
    local draws, seed = os.getenv "MOONGRID_DRAWS" or "100", os.getenv "MOONGRID_SEED" or "41"
    local out = run(("LUA_CPATH_5_4='build/?.so;;' LUA_PATH_5_4='tests/golden/?.lua;lua/?.lua;;' lua5.4 "
      .. "tests/golden/draws.lua tests/golden %s %s"):format(draws, seed))
    assert.equal(("seed %s: %s of %s changes caught\n"):format(seed, draws, draws), out)
  end)
end)
