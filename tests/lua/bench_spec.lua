-- SPDX-License-Identifier: MIT
--
-- The benchmark runs, prints its tables and writes JSON; planning takes no more instructions than
-- recorded. No test depends on a clock.

local json = require "dkjson"
local support = dofile "tests/lua/support.lua"
local run = support.run

local function has(command)
  local _, _, code = run("command -v " .. command)
  return code == 0
end

local function bench(parts)
  local file = os.tmpname()
  local out, err, code = run(("scripts/lab/bench %s --quick -o %s"):format(parts, file))
  local text = io.open(file):read "a"
  os.remove(file)
  assert.are.equal(0, code, err)
  return out, assert(json.decode(text))
end

describe("scripts/lab/bench", function()
  for part, rows in pairs {
    plan = { "recipe, world 64", "C, world 1048576" },
    moves = { "tp 8 pp 16 to tp 16 pp 8, world 1024" },
    enumerate = { "plain C loops", "mgrid_family_members" },
    questions = { "mgrid_group_position", "mgrid_state_group, last of 32", "state.tp.position" },
    policies = { "Lua's own call", "mgrid_policy_call and mgrid_policy_result", "policies.learning_rate, cosine",
      "a query of megatron, mgrid_runtime_ask" },
    start = { "libmoongrid.so, stripped", "libmoongrid_lua.so, stripped", "moongrid plan, 64 ranks", "a C host, no runtime" },
  } do
    it("measures " .. part, function()
      local out, result = bench(part)
      assert.is_true(result.quick)
      assert.is_truthy(result.date:match "^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%dZ$")
      for _, key in ipairs { "cpu", "cores", "kernel" } do assert.is_truthy(result.machine[key], key) end
      for _, key in ipairs { "moongrid", "compiler", "lua", "mpi" } do assert.is_truthy(result.versions[key], key) end
      local found = {}
      for _, t in ipairs(result.parts[part].tables) do
        for _, row in ipairs(t.rows) do
          found[row.name] = row
          assert.is_true(row.min <= row.median and row.median <= row.max, row.name)
          for _, baseline in ipairs(t.baselines) do assert.is_number(row.ratio[baseline]) end
        end
      end
      for _, name in ipairs(rows) do
        assert.is_truthy(found[name], name)
        assert.is_truthy(out:find(name, 1, true), name)
      end
    end)
  end

  it("has Python programs that find the modules of tests/torch", function()
    for _, name in ipairs { "dtensor.py", "torch_groups.py" } do
      local file = assert(io.open("scripts/lab/bench.d/" .. name))
      local levels = file:read "a":match 'parents%[(%d)%] / "tests" / "torch"'
      file:close()
      assert(io.open(("scripts/lab/bench.d/%stests/torch/processes.py"):format(("../"):rep(levels)))):close()
    end
  end)

  it("creates communicators in every way, and counts them", function()
    if not has "mpirun" then return pending "no MPI here" end
    local out, result = bench "create"
    assert.is_truthy(out:find("creating the communicators of 17 families, 8 ranks", 1, true))
    local calls, comms = {}, {}
    for _, p in ipairs(result.parts.create.values.points) do
      calls[p.layout .. " " .. p.way], comms[p.layout .. " " .. p.way] = p.calls, p.comms
    end
    assert.are.equal(6, comms["facts ours"])
    assert.are.equal(comms["facts ours"], comms["facts best"])
    assert.are.equal(63, calls["facts world"])
    assert.are.equal(17, calls["facts split"])
    assert.are.equal(17, comms["facts group"])
    for _, layout in ipairs { "facts", "megatron" } do
      for way in ("ours best world split group world_kind split_best by_size idup threads"):gmatch "[%a_]+" do
        assert.is_truthy(calls[layout .. " " .. way], layout .. " " .. way)
      end
    end
  end)

  it("counts process groups in torch", function()
    local out, result = bench "torch"
    local values = result.parts.torch.values
    if values and values.skipped then return pending(values.skipped) end
    assert.is_truthy(out:find("8 ranks on", 1, true))
    local groups = {}
    for _, row in ipairs(result.parts.torch.tables[1].rows) do groups[row.name] = row.groups end
    assert.are.equal(7, groups.moongrid)
    assert.are.equal(7, groups["moongrid's by new_group on all ranks"])
    assert.is_true(groups["Megatron-core's initialize_model_parallel"] >= 20)
  end)

  it("takes no more than 1.3 times the recorded instructions to plan", function()
    if not has "valgrind" then return pending "valgrind is not installed: instructions are not counted" end
    local file = assert(io.open "scripts/lab/bench.d/instructions.json")
    local recorded = assert(json.decode(file:read "a"))
    file:close()
    if recorded.lua ~= io.popen("lua5.4 -v"):read "l" then
      return pending("the counts were recorded with " .. recorded.lua) -- most of the work is in Lua
    end
    local _, result = bench "instructions"
    local counts = result.parts.instructions.values.counts
    for name, count in pairs(recorded.counts) do
      local bound = math.floor(recorded.bound * count)
      assert.is_true(counts[name] <= bound, ("%s: %d instructions, at most %d"):format(name, counts[name], bound))
    end
    assert.is_true(counts["c 1048576"] <= 1.2 * counts["c 64"], "planning costs by the size of the world")
  end)

  it("refuses a part that is not there", function()
    local _, err, code = run "scripts/lab/bench plann"
    assert.are.equal(2, code)
    assert.are.equal("bench: unknown part 'plann'; there are plan, instructions, moves, enumerate, create, torch, questions, policies, proofs, start, "
      .. "libraries, simulated, nccl, place, congestion, step, losses, playground, and --quick, --record, -o FILE\n", err)
  end)
end)

describe("scripts/lab/model", function()
  it("prints its assumptions and estimates, without measurements", function()
    local out, err, code = run "scripts/lab/model /nowhere.json"
    assert.are.equal(0, code, err)
    assert.is_truthy(out:find("not checked: /nowhere.json is not there", 1, true))
    assert.is_truthy(out:find("ring_step 5e-05", 1, true))
    assert.is_truthy(out:find("MPI, ranks +1024 +4096 +16384 +65536 +100352"))
    assert.is_truthy(out:find("Megatron's way: every group by everybody", 1, true))
  end)

  it("is fitted to what was measured", function()
    local file = os.tmpname()
    local points = {}
    for _, ranks in ipairs { 8, 16, 32 } do
      for way, ms in pairs { ours = 0.15, split = 0.5, world = 2.5 } do
        local growth = ranks * (way == "world" and ranks / 8 or 1)
        points[#points + 1] = { layout = "facts", ranks = ranks, way = way, min = ms * growth }
      end
    end
    support.write(file, json.encode {
      date = "today", machine = { cores = 2 }, parts = { create = { values = { points = points } } } })
    local text, err, code = run("scripts/lab/model " .. file)
    os.remove(file)
    assert.are.equal(0, code, err)
    assert.is_truthy(text:find("three numbers fitted", 1, true))
    assert.is_truthy(text:find("typical error %d"), text)
  end)
end)
