-- SPDX-License-Identifier: MIT
--
-- The command on simulated ranks, by SimGrid's SMPI: scripts/lab/simulate. Skipped where it is not installed.

local support = dofile "tests/lua/support.lua"
local run = support.run

describe("scripts/lab/simulate", function()
  local lacks = select(3, run "command -v smpicc") ~= 0 and "no smpicc (Debian: libsimgrid-dev)"

  it("proves every communicator on simulated ranks of a fat tree, and tells the time of their messages", function()
    if lacks then return pending(lacks) end
    local out, err, code = run "scripts/lab/simulate 32 run megatron tp=4 pp=2"
    assert.equal(0, code, err)
    assert.truthy(out:find("\nproved         every communicator on all 32 ranks (", 1, true), out)
    local seconds = tonumber(err:match "simulated: ([%d.e-]+) s\n$")
    assert.is_true(seconds > 1e-4 and seconds < 0.01, err)
    local touched = run "make -n | head -1" -- its build is its own
    assert.equal("", touched)
  end)

  it("executes a step, in simulated time", function()
    if lacks then return pending(lacks) end
    local out, err, code = run "scripts/lab/simulate 16 run picotron tp=2 pp=2 layers=4 hidden=256 seq=512 vocab=2048 --steps 2 --json"
    assert.equal(0, code, err)
    local all = require("dkjson").decode(out)
    assert.same({ 8 * 8 * (15 + 16), 8 * 8 * (15 + 16), 256 }, { -- 8 ranks a stage, 8 microbatches
       all.families.tp.calls, all.families.tp.planned_calls, all.families.world_group.calls })
    -- a rank of cp_dp sends 1.5 times its 5 MiB of gradients, and its last link carries 12.5 GB/s
    assert.is_true(all.families.cp_dp.seconds > 7.5 * 2 ^ 20 / 12.5e9 and all.seconds > all.families.cp_dp.seconds and all.seconds < 1)
  end)

  it("tells once what is refused on every rank", function()
    if lacks then return pending(lacks) end
    local _, err, code = run "scripts/lab/simulate 6 run megatron tp=4"
    local refused = "moongrid: megatron.grids:44: tp 4 does not divide the 6 ranks; nearest: tp 3 or 6, or a world of 4 or 8 ranks\n"
    assert.equal(refused, (err:gsub("simulated: [^\n]+\n", "")))
    assert.is_true(code ~= 0)
  end)

  it("runs a C program as well, where a message takes what its links do", function()
    if lacks then return pending(lacks) end
    local out, err, code = run "scripts/lab/simulate 32 tests/mpi/simulated.c"
    assert.equal(0, code, err)
    assert.equal("rank 1: 1.01 us\nrank 16: 2.02 us\n", out)
    out, err, code = run "scripts/lab/simulate 32 tests/mpi/none.c"
    assert.equal("", out)
    assert.equal("simulate: no file 'tests/mpi/none.c'\n", err)
    assert.equal(2, code)
  end)

  it("needs ranks, and what they run", function()
    for line, said in pairs {
      ["run megatron"] = "simulate RANKS run RECIPE..., or RANKS FILE.c ARGUMENT...",
      ["4 plan megatron"] = "simulate RANKS run RECIPE..., or RANKS FILE.c ARGUMENT...",
      ["4 run -"] = "a recipe is a file here: standard input reaches rank 0 alone",
    } do
      local _, err, code = run("scripts/lab/simulate " .. line)
      assert.same({ "simulate: " .. said .. "\n", 2 }, { err, code })
    end
  end)
end)
