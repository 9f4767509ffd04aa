-- SPDX-License-Identifier: MIT
--
-- Steps that ranks execute: run --steps, state:run_step, traces, and calls that do not end.

local support = dofile "tests/lua/support.lua"
local json = require "dkjson"
local recipe = dofile("tests/lua/step_recipe.lua").recipe
local run = support.run

describe("run --steps", function()
  local file

  before_each(function()
    file = recipe [[s:loop(p.n, function() s:all_reduce(s.tp, 4096) end)
      s:sendrecv(s.dp, s.dp:next(true), s.dp:prev(true), 64)]]
  end)

  it("executes the step on every rank, and measures it", function()
    local out, err, code = run(("scripts/launch 8 build/moongrid run %s --steps 3 --json"):format(file))
    assert.equal(0, code, err)
    local all = json.decode(out)
    assert.same({ 3, 8, 1 }, { all.steps, all.ranks, all.scale })
    assert.same({ 24, 24 }, { all.families.tp.calls, all.families.tp.planned_calls })
    assert.same({ 16, 16, 1024 }, { all.families.dp.calls, all.families.dp.planned_calls, all.families.dp.bytes })
    assert.is_true(all.families.tp.worst >= all.families.tp.seconds and all.families.tp.worst_rank < 8)
  end)

  it("executes an all-to-all of unequal parts", function()
    local own = recipe [[local list = {}
      for i = 1, s.dp.size do list[i] = 1000 * i * (s.dp.position + 1) end
      s:loop(p.n, function() s:all_to_all(s.dp, s.tp.position == 0 and list or 4000) s:all_reduce(s.tp, 64) end)
      s:all_to_all(s.tp, 1 << 20)]]
    local out, err, code = run(("scripts/launch 8 build/moongrid run %s pp=1 --steps 2 --json"):format(own))
    assert.equal(0, code, err)
    local all = json.decode(out)
    assert.same({ 24, 24, 3 * (4 * 4000 + 100000) }, { all.families.dp.calls, all.families.dp.planned_calls, all.families.dp.bytes })
    os.remove(own)
  end)

  it("writes what each rank did, as a trace", function()
    local trace = os.tmpname()
    local out, err, code = run(("scripts/launch 8 build/moongrid run %s --steps 2 -o %s"):format(file, trace))
    assert.equal(0, code, err)
    assert.truthy(out:find("trace          " .. trace .. ", of the last step: opens in Perfetto", 1, true), out)
    local calls, names = {}, {}
    for _, e in ipairs(json.decode(support.read(trace)).traceEvents) do
      if e.ph == "X" then
        calls[e.cat] = (calls[e.cat] or 0) + 1
        assert.is_true(e.dur >= 0 and e.ts >= 0 and e.pid < 8)
        assert.equal(e.cat == "tp" and 8 or 9, e.args.line)
        assert.equal(e.cat == "tp" and 4096 or 2 * 64, e.args.bytes)
        assert.truthy(e.name:find(e.cat == "tp" and "^all_reduce%(tp%) of 4 KiB, line 8$" or "^sendrecv: send%(dp to %d%), recv%(dp from %d%), line 9$"), e.name)
      elseif e.name == "process_name" then
        names[#names + 1] = e.args.name
      end
    end
    assert.same({ tp = 24, dp = 8 }, calls)
    assert.equal(8, #names)
    assert.truthy(names[4]:find "^rank 3: ", names[4])
    os.remove(trace)
    local _, why, failed = run(("scripts/launch 2 build/moongrid run %s tp=1 pp=1 --steps 1 -o /nowhere/trace"):format(file))
    assert.equal(3, failed)
    assert.truthy(why:find("rank 0: cannot write /nowhere/trace: No such file or directory", 1, true), why)
  end)

  it("has what was planned beside it, on a machine", function()
    local trace = os.tmpname()
    local command = ("scripts/launch 8 build/moongrid run %s --steps 2 --machine 'node:2[50GB/s] gpu:4[100GB/s]'"):format(file)
    local out, err, code = run(command .. " --json -o " .. trace)
    assert.equal(0, code, err)
    local all = json.decode(out)
    local price = json.decode((run(("build/moongrid step %s --world 8 --rules mpi --machine 'node:2[50GB/s] gpu:4[100GB/s]' --json"):format(file))))
    assert.near(price.seconds, all.planned, 1e-12)
    assert.near(price.families.tp.seconds, all.families.tp.planned_seconds, 1e-12)
    local planned, names, is_planned = 0, {}, {}
    local events = json.decode(support.read(trace)).traceEvents
    for _, e in ipairs(events) do
      if e.name == "thread_name" then is_planned[e.pid .. " " .. e.tid] = e.args.name:find "planned" end
      if e.name == "thread_name" and e.pid == 3 then names[#names + 1] = e.args.name end
    end
    for _, e in ipairs(events) do
      if e.ph == "X" and e.name ~= "waits" and is_planned[e.pid .. " " .. e.tid] then planned = planned + 1 end
    end
    assert.same({ 8 * (3 + 2), "main", "main, planned" }, { planned, names[1], names[2] }) -- a sendrecv travels both ways
    os.remove(trace)
  end)

  it("is state:run_step, and state:step in Lua", function()
    local computes = support.file [[return function(s)
      s:compute { flops = 1e6 } s:all_reduce(s.tp, 8) s:compute { flops = 1e6 } end]]
    local script = support.file(([[
      local mg = require "moongrid"
      local job = assert(mg.mpi())
      local recipe = mg.load "%s"
      local plan = recipe:plan(job.world, { tp = 2, pp = 1, n = 5 })
      local state = assert(job:materialize(plan))
      assert(state:step().digest == plan:step().digest)
      local got = state:run_step { steps = 2, scale = 0.5, compute = "sleep" }
      assert(got.families.tp.calls == 20 and got.families.tp.planned_calls == 20 and got.steps == 2 and got.scale == 0.5)
      assert(got.ranks == 4 and got.families.dp.planned_bytes == 512 and got.worst >= got.seconds)
      -- computes by a function; what each rank did
      local worked = 0
      local function work(flops) worked = worked + flops return flops end
      local _, timeline = state:run_step { file = "%s", compute = work, timeline = true }
      assert(worked == 2e6)
      assert((timeline ~= nil) == (job.rank == 0))
      if timeline then
        assert(#timeline == 3 * job.world and not timeline.cut and #timeline.types == job.world and timeline:type(3) == 4)
        local type, stream, entry, began, moved, ended, by = timeline:span(1)
        assert(type == 1 and stream == 1 and entry == 1 and began == moved and ended >= began and not by)
        assert(timeline:seconds(1, 1) == 0)
      end
      local function refused(message, options)
        local ok, told = pcall(state.run_step, state, options)
        assert(not ok and told:gsub("^.-:%%d+: ", "") == message, told)
      end
      refused("unknown option of run_step 'step'; nearest is 'steps' (steps, scale, compute, timeout, unproved, timeline, file)", { step = 3 })
      refused("run_step: steps is a number above 0, not -3", { steps = -3 })
      refused("run_step: steps is a whole number, not 2.5", { steps = 2.5 })
      refused("run_step: scale is a number above 0, not a string", { scale = "1" })
      refused("run_step: compute is \"sleep\" or a function, not 'now'", { compute = "now" })
      refused("run_step: compute is \"sleep\" or a function, not a boolean", { compute = true })
      local done, why, status = state:run_step { file = "/nowhere.lua" }
      assert(not done and why == "rank 0: cannot open /nowhere.lua: No such file or directory" and status // 100 == 1, why)
      -- ranks whose steps differ
      local path = os.tmpname()
      local own = assert(io.open(path, "w"))
      own:write(("return function(s) s:all_reduce(s.tp, %%d) end"):format(job.rank == 2 and 16 or 8))
      own:close()
      local ok, told = state:step(path)
      assert(not ok and told:find "ranks differ: rank 0 has the step %%x+, rank 2 has the step %%x+", told)
      os.remove(path)
      local other = assert(job:materialize(mg.plan(mg.topology(mg.world(job.world)))))
      ok, told = pcall(other.step, other)
      assert(not ok and told:find("the state has no recipe, and so no step: recipe:plan(...) makes a plan with its recipe", 1, true), told)
      other:close()
      state:close()
      job:close()
      print "good"]]):format(file, computes))
    local out, err, code = run(("LUA_CPATH_5_4='build/?.so;;' scripts/launch 4 lua5.4 %s"):format(script))
    assert.equal(0, code, err)
    assert.equal(4, select(2, out:gsub("good", "")), out)
  end)

  it("tells all ranks what a function of one raises, and the job goes on", function()
    local script = support.file(([[
      local mg = require "moongrid"
      local job = assert(mg.mpi())
      local plan = mg.load "%s":plan(job.world, { tp = 2, pp = 1 })
      local state = assert(job:materialize(plan))
      local function work(flops)
        if job.rank == 2 then error("it burns", 0) end
        return job.rank == 1 and 0 or flops
      end
      local function raises(flops) return job.rank == 2 and error {} or flops end
      for _, compute in ipairs { work, raises } do
        local _, told = state:run_step { compute = compute }
        io.stderr:write("told " .. told .. "\n")
      end
      assert(state:prove())
      state:close()
      job:close()]]):format(recipe "s:compute { flops = 1e6 } s:all_reduce(s.dp, 8)"))
    local _, err, code = run(("LUA_CPATH_5_4='build/?.so;;' scripts/launch 4 lua5.4 %s"):format(script))
    local _, many = err:gsub("told rank 1: run_step: compute returns how many flops it has done, more than 0\n", "")
    local _, tables = err:gsub("told rank 2: run_step: compute raises an error that is a table\n", "")
    assert.same({ 4, 4, 0 }, { many, tables, code }, err)
  end)

  it("refuses what is not proved, and with --unproved names the call that does not end", function()
    local _, err, code = run "scripts/launch 4 build/moongrid run examples/steps/family_order.lua --steps 1"
    assert.equal(1, code)
    assert.truthy(err:find("the step is not proved under the rules of MPI (cycle), --unproved runs it: rank 0 (dp 0, node 0) waits in "
      .. "reduce_scatter(dp) line 15 for rank 2", 1, true), err)
    _, err, code = run "scripts/launch 4 build/moongrid run examples/steps/family_order.lua --steps 1 --unproved --timeout 2"
    assert.equal(4, code)
    assert.truthy(err:find("after 2 seconds the members of run/[a-z]+%[%d%] had not met, and nothing moved: rank %d in "
      .. "[a-z_]+%([a-z]+%) examples/steps/family_order.lua:%d+ of the step"), err)
  end)

  it("lets the others name rank 0, which is stopped", function()
    local out, line = os.tmpname(), ("exec build/moongrid run %s --steps 10000000 --timeout 5"):format(file)
    local _, err, code = run(("scripts/launch 4 sh -c '[ ${PMIX_RANK:-$PMI_RANK} = 0 ] || %s; (for i in $(seq 500); do "
      .. "grep -q proved %s && kill -STOP $$ && break; sleep 0.1; done) & %s >%s'"):format(line, out, line, out))
    os.remove(out)
    assert.equal(4, code, err)
    assert.truthy(err:find("[rank 1/4] after 5 seconds not all ranks had come: rank 0 is not there, in call 4 over all ranks: "
      .. "execute a step", 1, true), err)
  end)

  it("refuses bad options", function()
    for arguments, message in pairs {
      ["--steps 0"] = "--steps is an integer from 1 to 2147483647, not '0'",
      ["--steps 1 --scale 0"] = "--scale is a number above 0, as 0.01, not '0'",
      ["--steps 1 --compute now"] = "--compute is sleep or gemm, not 'now'",
    } do
      local _, err, code = run(("scripts/launch 1 build/moongrid run %s tp=1 pp=1 %s"):format(file, arguments))
      assert.equal(2, code, arguments)
      assert.truthy(err:find(message, 1, true), err)
    end
  end)
end)
