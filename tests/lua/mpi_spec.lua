-- SPDX-License-Identifier: MIT
--
-- The command and stock Lua under mpirun: three systems become communicators, and when ranks disagree
-- all return an error.

local support = dofile("tests/lua/support.lua")
local launch = support.launch

local systems = {
  { "picotron", { [1] = "", [2] = "tp=2", [4] = "tp=2 cp=2", [8] = "tp=2 cp=2 pp=2", [16] = "tp=2 cp=2 pp=2 dp=2" } },
  { "megatron_deepspeed",
    { [1] = "", [2] = "sp=2 use_fp8=true", [4] = "tp=2 use_distributed_optimizer=true", [8] = "tp=2 pp=2 use_fp8=true",
      [16] = "tp=2 pp=4 vpp=2 split=1" } },
  { "examples/moe.lua",
    { [1] = "", [2] = "ep=2", [4] = "tp=2 pp=2", [8] = "tp=2 pp=2 ep=2", [16] = "tp=2 cp=2 pp=2 ep=4 etp=2" } },
}

describe("moongrid run", function()
  for _, system in ipairs(systems) do
    for _, ranks in ipairs { 1, 2, 4, 8, 16 } do
      local args = system[2][ranks]
      local all = ranks == 1 and "1 rank" or ("all %d ranks"):format(ranks)
      it(("proves every communicator of %s %s on %s"):format(system[1], args, all), function()
        local out, err, code = launch(ranks, ("build/moongrid run %s %s"):format(system[1], args))
        assert.equal("", err)
        assert.equal(0, code)
        assert.truthy(out:find("\nproved +every communicator on " .. all), out)
      end)
    end
  end

  it("runs a recipe that adds a group to another", function()
    local out, _, code = launch(8, "build/moongrid run examples/custom_group.lua tp=2 pp=2")
    assert.equal(0, code)
    assert.truthy(out:find("\nmuon +2 +4 +{0,1,2,3}%s+own\n"))
  end)

  it("runs a recipe that adds three groups to megatron", function()
    local out, _, code = launch(8, "build/moongrid run examples/compose.lua tp=2 gtp=2 gpus_per_node=4")
    assert.equal(0, code)
    assert.truthy(out:find("\ntp_remat +2 +4 +{0,1,2,3}%s+shared with mp\n"), out)
    assert.truthy(out:find("\nleaders +1 +2 +{0,4}%s+shared with dp_cp\n"), out)
    assert.truthy(out:find("\nleader_ring +1 +2 +{0,4}%s+shared with dp_cp\n"), out) -- a ring of two is one pair
    assert.truthy(out:find("\nnode +2 +4 +{0,1,2,3}%s+shared with mp\n"), out)
  end)

  it("runs pieces of a group, and a family that only answers", function()
    local out, _, code = launch(8, "build/moongrid run examples/dynamic_context.lua tp=1 pieces=5,3")
    assert.equal(0, code)
    assert.truthy(out:find("\ndp_cp +1 +8 +{0,1,2,3,4,5,6,7}%s+own\n"), out)
    assert.truthy(out:find("\npieces +2 +<=5 +{0,1,2,3,4}%s+own\n"), out)
    assert.truthy(out:find("\nloss +1 +8 +{0,1,2,3,4,5,6,7}%s+none made, backend=none\n"), out)
    assert.truthy(out:find("(16 memberships, mpi)", 1, true), out) -- two communicators of each rank
  end)

  it("runs two windows of one world", function()
    local out, _, code = launch(12, "build/moongrid run examples/encoder_decoder.lua")
    assert.equal(0, code)
    assert.truthy(out:find("\npp +4 +3 +{0,4,8}%s+own\n"), out)
    assert.truthy(out:find("\nembedding +4 +2 +{0,4}%s+own\n"))
  end)

  it("proves Cartesian topologies, and measures an all-to-all", function()
    local out, err, code = launch(8, "build/moongrid run examples/ports/heat.lua --bandwidth")
    assert.equal("", err)
    assert.equal(0, code)
    assert.truthy(out:find("\nproved +every communicator on all 8 ranks"), out)
    assert.truthy(out:find("\ncart +8 +mpi +[%d.]+ +[%d.]+ +[%d.]+ +[%d.]+\n"), out)
  end)

  it("proves Cartesian topologies over a world in another order", function()
    local recipe = support.file [[return recipe { build = function(world)
      local g = grid(world:order { 7, 2, 5, 0, 3, 6, 1, 4 }, "x-y-z", { x = 2, y = 2, z = 2 })
      local t = topology(world)
      t.cube = g:cartesian { periods = { y = true } }
      t.face = g:cartesian { "z", "x" }
      return t
    end }]]
    local out, err, code = launch(8, "build/moongrid run " .. recipe)
    assert.equal("", err)
    assert.equal(0, code)
    assert.truthy(out:find("\ncube +1 +8 +{7,2,5,0,3,6,1,4}%s+own, cartesian{x:2 y:2:periodic z:2}\n"), out)
    assert.truthy(out:find("\nproved +every communicator on all 8 ranks"), out)
  end)

  it("prints JSON from rank 0 alone", function()
    local out, _, code = launch(4, "build/moongrid run picotron tp=2 --json")
    assert.equal(0, code)
    assert.equal(4, require("dkjson").decode(out).world)
  end)

  it("makes every rank exit 5 when an argument differs on one", function()
    local _, err, code = launch(3, "build/moongrid run picotron tp=1 : -n 1 build/moongrid run picotron tp=2")
    assert.equal("moongrid: [rank 0/4] ranks do not have the same plan: rank 3 has \"family tp: (2:1) x (2:2)\", "
      .. "rank 0 has \"family tp: (1) x (4:1)\"; rank 3 has \"param tp_size = 2\", rank 0 has \"param tp_size = 1\"; "
      .. "differing from rank 0: 3\n", err)
    assert.equal(5, code)
  end)

  it("makes every rank exit 5 when an argument differs that changes no group", function()
    local _, err, code = launch(1, "build/moongrid run megatron_deepspeed pp=4 : -n 3 "
      .. "build/moongrid run megatron_deepspeed pp=4 vpp=2")
    assert.equal("moongrid: [rank 0/4] ranks do not have the same plan: rank 0 has "
      .. "\"param use_fp8 = false\", rank 1 has \"param virtual_pipeline_model_parallel_size = 2\"; "
      .. "differing from rank 1: 0\n", err)
    assert.equal(5, code)
  end)

  it("makes every rank exit 5 when the recipe differs", function()
    local other = support.file('return recipe { build = function(world) return topology(world) end }')
    local _, err, code = launch(3, "build/moongrid run picotron : -n 1 build/moongrid run " .. other)
    assert.truthy(err:find("^moongrid: %[rank 0/4%] ranks do not have the same plan: rank 3 has \"nothing\""), err)
    assert.equal(5, code)
  end)

  it("makes every rank exit 5 when one has no plan", function()
    local _, err, code = launch(3, "build/moongrid run picotron : -n 1 build/moongrid run picotron tp=3")
    assert.equal("moongrid: [rank 0/4] ranks do not have the same plan: rank 3 has none "
      .. "(picotron:39: tp 3 does not divide the 4 ranks; nearest: tp 2 or 4, or a world of 3 or 6 ranks)\n", err)
    assert.equal(5, code)
  end)

  it("gives the recipe's own refusal when all ranks have it", function()
    local _, err, code = launch(4, "build/moongrid run picotron tp=3")
    assert.equal("moongrid: [rank 0/4] picotron:39: tp 3 does not divide the 4 ranks; nearest: tp 2 or 4, or a world of 3 or 6 ranks\n", err)
    assert.equal(1, code)
  end)

  it("refuses a launcher with another number of ranks than --world", function()
    local _, err, code = launch(4, "build/moongrid run picotron --world 8")
    assert.equal("moongrid: [rank 0/4] --world 8 was asked for, the launcher started 4 ranks\n", err)
    assert.equal(2, code)
  end)
end)

describe("stock Lua under mpirun", function()
  it("asks what the job runs on", function()
    local script = support.file [[
      local job <close> = assert(require "moongrid".mpi())
      local machine, boots = job:machine()
      print(machine:text(), #boots, machine:json():find '"name": "gpu"' ~= nil)
    ]]
    local out = support.run("scripts/launch 2 env LUA_CPATH_5_4=build/?.so lua5.4 " .. script)
    assert.equal(("node:1 gpu:2\t1\ttrue\n"):rep(2), out)
    os.remove(script)
  end)

  it("opens MPI with a deadline and a thread level, and refuses other options", function()
    local script = support.file [[
      local mg = require "moongrid"
      print(select(2, pcall(mg.mpi, { timeuot = 3 })))
      print(select(2, pcall(mg.mpi, { threads = "multi" })))
      print(select(2, pcall(mg.pmix, { threads = "any" })))
      local job = assert(mg.mpi { timeout = 2, threads = "serialized" })
      print("of " .. job.world)
      job:barrier()
      if job.rank == 0 then
        local _, message, status, missing = job:barrier()
        print(message)
        print("missing", status, missing.n, missing.ranks[1], missing.seconds, missing.call)
      else os.execute "sleep 4" end
      os.exit(true)
    ]]
    local out = support.run("scripts/launch 2 env LUA_CPATH_5_4=build/?.so lua5.4 " .. script)
    assert.truthy(out:find("unknown option of mpi 'timeuot'; nearest is 'timeout' (timeout, threads, on_deadline, "
      .. "communicators, comm)", 1, true), out)
    assert.truthy(out:find("unknown level of threads 'multi'; nearest is 'multiple' ", 1, true), out)
    assert.truthy(out:find("unknown option of pmix 'threads'; known: timeout", 1, true), out)
    assert.truthy(out:find("of 2", 1, true), out) -- launchers may write the lines of ranks into each other
    assert.truthy(out:find("after 2 seconds not all ranks had come: rank 1 is not there", 1, true), out)
    assert.truthy(out:find("missing\t403\t1\t1\t2.0\t", 1, true), out)
  end)

  it("makes every rank exit 5 when the length of a table with gaps differs, and names the family", function()
    -- Lua's hashes begin with a seed of each process. 24 lengths of two values each: two ranks agree once in 10^7 runs.
    local recipe = support.file [[return recipe { build = function(world)
      local t = topology(world)
      for k = 1, 24 do
        local a = {}
        for i = 1, 20 do a["n" .. k .. "_" .. i] = i end
        for i = 1, 20 do a["n" .. k .. "_" .. i] = nil end
        for i = 1, 19 do a[i] = i end
        for i = 3, 17, 2 do a[i] = nil end
        for i = 1, 5 do a["m" .. k .. i] = 1 end
        a[19] = nil
        t["f" .. k] = world:table(#a == 16 and { { 0, 1 } } or { { 1, 0 } })
      end
      return t
    end }]]
    local _, err, code = launch(2, "build/moongrid run " .. recipe)
    assert.equal(5, code)
    assert.truthy(err:find '^moongrid: %[rank 0/2%] ranks do not have the same plan: rank 1 has "family f%d+: ', err)
  end)

  it("has two states with different layouts, which share and end on their own", function()
    local out, _, code = launch(8, "env LUA_CPATH_5_4=build/?.so lua5.4 examples/actor_critic.lua")
    assert.equal(0, code)
    assert.truthy(out:find("^actor +tp 2 x pp 2 x dp 2: %d+ communicators for %d+ groups on rank 0\n"), out)
    local shared = tonumber(out:match("\ntogether they hold %d+ communicators, (%d+) of them shared\n"))
    assert.truthy(shared > 0)
    assert.truthy(out:find("\n0 communicators are left\n$"))
  end)

  it("gives an error for a communicator before MPI_Init", function()
    local lines = 'local mg = require "moongrid" for _, c in ipairs { 0, 1, 2, 5 } do print(select(2, mg.mpi(c))) end'
    local out, err = support.run(('LUA_CPATH_5_4="build/?.so;;" lua5.4 -e \'%s\''):format(lines))
    local _, told = out:gsub("mpi: [^\n]+\n", "")
    assert.equal(4, told, out .. err)
  end)

  it("waits for everybody, and gives everybody what one rank has", function()
    local script = support.file [[
      local mg = require "moongrid"
      local job = assert(mg.mpi())
      assert(job:barrier() == true)
      local value = { seed = 12, list = { 1.5, 2, "x\0y" }, on = true, off = {} }
      local got = job:broadcast(job.rank == 2 and value or nil, 2)
      assert(got.seed == 12 and math.type(got.seed) == "integer" and got.on == true and #got.off == 0)
      assert(#got.list == 3 and got.list[1] == 1.5 and math.type(got.list[2]) == "integer" and got.list[3] == "x\0y")
      assert(job:broadcast(job.rank == 0 and 0.1 + 0.2 or print) == 0.1 + 0.2)
      assert(select("#", job:broadcast(nil)) == 1 and job:broadcast(false, 1) == false)

      local t = mg.topology(mg.world(job.world))
      t.all = mg.grid(mg.world(job.world), "a", { a = mg.fill }) "a"
      t.later = t.all:twin():with { lazy = true }
      local state = assert(job:materialize(mg.plan(t)))
      local b, small = state.all:buffer(3, "int64"):set(job.rank), state.all:buffer(2, "int64")
      assert(job:broadcast(b, 3) == b and b:get()[1] == 3 and b:get()[3] == 3)

      local function refused(message, status, ...) -- the same on all ranks, and the job goes on
        local nothing, told, code = job:broadcast(...)
        assert(nothing == nil and told == message and code == status, tostring(told))
        assert(job:barrier())
      end
      refused("rank 0: a broadcast is of a Buffer or a plain value, not of a function", 102, print)
      refused("rank 1: a broadcast is of a Buffer or a plain value, not of a number", 102, 0/0, 1)
      refused("rank 1: the root broadcasts a Buffer, this rank has none", 100, job.rank == 0 and b or 5)
      refused("rank 3: the root broadcasts a value, this rank has a Buffer", 100, job.rank == 3 and b or 5)
      refused("rank 1: the root broadcasts 3 int64, this rank has a Buffer of 2 int64", 100, job.rank == 0 and b or small)
      local ok
      local _, told = pcall(job.broadcast, job, 1, 4)
      assert(told:find("rank 4 is out of range; ranks are 0 to 3", 1, true), told)
      _, told = pcall(state.all.all_to_all, state.all, b, state.all:buffer(3, "int64"))
      assert(told:find("the buffer has 3 elements, 4 are needed", 1, true), told)
      local five = state.all:buffer(5)
      _, told = pcall(state.all.all_to_all, state.all, five, state.all:buffer(5))
      assert(told:find("the buffer has 5 elements, which 4 members do not share equally", 1, true), told)
      _, told = pcall(state.all.all_to_all, state.all, five, five)
      assert(told:find("an all-to-all needs two buffers", 1, true), told)
      local function raises(message, method, ...)
        local ok, said = pcall(state.all[method], state.all, ...)
        assert(not ok and said:find(message, 1, true), said)
      end
      local other = assert(job:materialize(mg.plan(t), "other"))
      raises("a buffer has 1 to 2^40 elements, not 0", "buffer", 0)
      raises("one buffer has elements of type int64, the other of float", "allgather", b, state.all:buffer(20))
      raises("sendrecv of nothing: give a buffer and a position to send, to receive, or both", "sendrecv")
      raises("buffers of 5 and of 3 elements", "sendrecv", five, 0, state.all:buffer(3), 0)
      raises("position 4 is out of range; the group has positions 0 to 3", "broadcast", b, 4)
      ok, told = pcall(five.get, five, 6)
      assert(not ok and told:find("6 elements of a buffer of 5", 1, true), told)
      ok, told = pcall(five.set, five, { 1, 2, 3, 4, 5, 6 })
      assert(not ok and told:find("6 values for a buffer of 5", 1, true), told)
      assert(#five == 5 and tostring(five) == "Buffer of 5 float for mpi", tostring(five))
      five:close()
      assert(tostring(five) == "Buffer (closed)")
      ok, told = pcall(five.get, five)
      assert(not ok and told:find("the buffer is closed", 1, true), told)
      assert(tostring(job) == ("Job: rank %d of 4"):format(job.rank), tostring(job))
      local second = assert(mg.mpi())
      local apart = assert(second:materialize(mg.plan(t), "apart"))
      raises("the buffer is for another job or backend (mpi); make it with group:buffer of this group", "allreduce", apart.all:buffer(1))
      local nothing, lazy = state.later:barrier()
      assert(nothing == nil and lazy == "later is lazy and not created yet; state:create, in C mgrid_state_create, makes it", lazy)
      apart:close()
      second:close()
      other:close()
      state:close()
      if job.rank == 0 then print("fine") end
      job:close()
      assert(tostring(job) == "Job (closed)" and not pcall(job.barrier, job))
    ]]
    local out, err, code = launch(4, "env LUA_CPATH=build/?.so lua5.4 " .. script)
    assert.equal("fine\n", out, err)
    assert.equal(0, code)
  end)

  it("settles, agrees on a plan, and says what each rank brings", function()
    local script = support.file [[
      local mg = require "moongrid"
      local job = assert(mg.mpi())
      local w = mg.world(job.world)
      local function plan(tp)
        local t = mg.topology(w)
        t.tp = mg.grid(w, "tp-dp", { tp = tp, dp = job.world // tp }) "tp"
        return mg.plan(t)
      end
      local function told(status, message, nothing, said, code)
        assert(nothing == nil and code == status and said:find(message, 1, true), tostring(said) .. " " .. tostring(code))
      end
      assert(job:barrier "one" and job:settle() and job:settle(true) and job.machine_ranks == nil)
      told(500, "rank 0 is in early, rank 3 is in late", job:barrier(job.rank == 3 and "late" or "early"))
      told(300, "rank 2: no room", job:settle(job.rank ~= 2, "no room", 300))
      told(100, "rank 1: this rank could not do its part", job:settle(job.rank ~= 1))
      local ok, message = pcall(job.settle, job, nil, "x", 0)
      assert(not ok and message:find("settle: 0 is not the status of an error", 1, true), message)
      assert(job:agree("go", plan(2)) == true)
      told(500, "rank 3", job:agree("go", plan(job.rank == 3 and 4 or 2)))
      told(500, "ranks do not have the same plan: rank 1 has none (it has no recipe)", job:agree("go", job.rank ~= 1 and plan(2) or nil, "it has no recipe", 200))
      told(100, "all alike", job:agree("go", nil, "all alike"))
      local same = assert(mg.auto { carrier = job })
      assert(same.backend == "mpi" and same.rank == job.rank)
      same:close()
      local state = assert(job:materialize(plan(2)))
      assert(state.tp.backend == "mpi" and plan(2):dry(0).tp.backend == "")
      assert(mg.open_machine "node:2 gpu:2":meets(job)) -- one host is a trial of any machine
      local begun = mg.now()
      assert(mg.now() >= begun)
      state:close()
      if job.rank == 0 then print "fine" end
      job:close()
    ]]
    local out, err, code = launch(4, "env LUA_CPATH=build/?.so lua5.4 " .. script)
    assert.equal("fine\n", out, err)
    assert.equal(0, code)
  end)

  it("materializes, asks, proves and closes", function()
    local script = support.file [[
      local mg = require "moongrid"
      local job = assert(mg.mpi())
      local world = mg.world(job.world)
      local g = mg.grid(world, "tp-dp", { tp = 2, dp = mg.fill })
      local t = mg.topology(world)
      t.tp, t.dp = g "tp", g "dp"
      local plan = mg.plan(t)
      local actor = assert(job:materialize(plan, "actor"))
      local critic = assert(job:materialize(mg.load("picotron"):plan(job.world, { tp = 4 }), "critic"))
      assert(actor.tp.position == job.rank % 2 and actor.tp.size == 2 and #actor.dp == 2)
      assert(critic.tp.size == 4 and critic.tp:next("wrap") == (job.rank + 1) % 4)
      assert(critic.cp.size == 1)
      local ones = actor.tp:buffer(2):set(1)
      local found, told = pcall(function() return ones.sett end)
      assert(not found and told:find("unknown field of a Buffer 'sett'; nearest is 'set' (set, get, close)", 1, true), told)
      ones:close()
      actor:close()
      assert(not pcall(function() return actor.tp end))
      assert(assert(critic:prove()) == 1)
      local nothing, message, status = job:materialize(mg.plan(mg.topology(mg.world(3))))
      assert(nothing == nil and message == "the plan is for 3 ranks, the communicator has 4" and status == 100)
      if job.rank == 0 then print("fine") end
      critic:close()
      job:close()
    ]]
    local out, _, code = launch(4, "env LUA_CPATH_5_4=build/?.so lua5.4 " .. script)
    assert.equal("fine\n", out)
    assert.equal(0, code)
  end)

  it("collectives take the position of a member or its rank in the world, and no rank for a position", function()
    local script = support.file [[
      local mg = require "moongrid"
      local job = assert(mg.mpi())
      local g = mg.grid(mg.world(job.world), "a-b", { a = 2, b = 2 })
      local t = mg.topology(mg.world(job.world))
      t.b = g "b"                                       -- {0, 2} and {1, 3}
      local state = assert(job:materialize(mg.plan(t)))
      local last = state.b.last                         -- 2 or 3, at position 1
      local b = state.b:buffer(1, "int32"):set { job.rank }
      assert(state.b:broadcast(b, { rank = last }) and b:get()[1] == last)
      assert(state.b:broadcast(b:set { job.rank }, 1) and b:get()[1] == last)
      local into = state.b:buffer(1, "int32")
      local other = state.b:at(1 - state.b:position_of(job.rank))
      assert(state.b:sendrecv(b:set { job.rank }, { rank = other }, into, { rank = other }) and into:get()[1] == other)
      for member, wanted in pairs {
        [last] = ("position %d is out of range; the group has positions 0 to 1; { rank = %d } is in it"):format(last, last),
        [9] = "position 9 is out of range; the group has positions 0 to 1",
        [{ rank = 9 }] = ("rank 9 is not in this group of b, from rank %d to rank %d"):format(state.b.first, last),
        [{ rank = 1.5 }] = "a member is a position, or { rank = r } with a rank of the world",
        [{}] = "a member is a position, or { rank = r } with a rank of the world",
        [{ rnak = 1 }] = "unknown word for a member 'rnak'; nearest is 'rank' (rank)",
      } do
        local ok, message = pcall(state.b.broadcast, state.b, b, member)
        assert(not ok and message:gsub("^[^ ]*:%d+: ", "") == wanted, message)
      end
      if job.rank == 0 then print("fine") end
      state:close()
      job:close()
    ]]
    local out, err, code = support.run("scripts/launch 4 env LUA_CPATH_5_4=build/?.so lua5.4 " .. script)
    assert.equal("fine\n", out, err)
    assert.equal(0, code)
  end)

  -- What rank 3 of 4 does in place of the others (RUN: what they do); their deadline; the launcher's exit code, and what
  -- is said then. Launchers may end a job themselves in which one rank has ended; MPICH's does by signals, then its code is
  -- a signal's.
  local ENDED = "the launcher ends the job, while this rank was in: the start of the job; another rank has died or failed, "
    .. "which the launcher names"
  local KILLED = "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)"
  local LATE = "after 2 seconds the job has not started: some rank is late, stopped or dead, or was not started as this one"
  for name, row in pairs {
    ["another backend"] = { "exec RUN --backend mpi", 20, { [5] = "ranks make unlike calls: rank 0 is in run --backend auto "
      .. "--timeout 20, rank 3 is in run --backend mpi --timeout 20; all ranks must make the same calls in the same order" } },
    ["another option"] = { "exec RUN --bandwidth", 20, { [5] = "ranks make unlike calls: rank 0 is in run --backend auto "
      .. "--timeout 20, rank 3 is in run --backend auto --timeout 20 --bandwidth; all ranks must make the same calls in the same order" } },
    ["another carrier"] = { "exec RUN --backend pmix", 2, { [4] = LATE, [1] = LATE, [9] = LATE,
      [14] = ENDED, [139] = "PMIX ERROR: " } }, -- Open MPI 5 aborts in MPI_Init, or its mpirun crashes
    ["nothing"] = { "exec build/moongrid --version", 2, { [4] = { LATE, ENDED }, [0] = ENDED, [1] = { LATE, ENDED }, [9] = LATE } },
    ["a nap"] = { "exec sleep 30", 2, { [4] = LATE, [1] = LATE, [9] = LATE } },
    ["its death"] = { "kill -9 $$", 2, { [137] = ENDED, [9] = KILLED, [255] = "" } }, -- 255: at times MPICH's says nothing
  } do
    it("tells in time when one rank's job is " .. name, function()
      local started, run = os.time(), "build/moongrid run picotron tp=2 --timeout " .. row[2]
      local out, err, code = launch(3, ("%s : -n 1 bash -c '%s'"):format(run, (row[1]:gsub("RUN", run)))) -- rank 3 of 4
      local said, wanted = out .. err, row[3][code]
      assert.truthy(wanted, code .. said)
      if type(wanted) == "string" then wanted = { wanted } end
      assert.truthy(said:find(wanted[1], 1, true) or wanted[2] and said:find(wanted[2], 1, true), said)
      assert.is_true(os.time() - started < 12)
    end)
  end

  it("a limit of communicators is told on all ranks before the first is made, also where few are near it", function()
    local script = support.file [[
      local mg = require "moongrid"
      local job = assert(mg.mpi { communicators = 20, on_deadline = "abort" })
      local g = mg.grid(mg.world(job.world), "a", { a = job.world })
      local function plan(n, few)
        local t = mg.topology(mg.world(job.world))
        for i = 1, n do
          local f = few and g "a":pick { 0, 1 } or g "a"
          t["f" .. i] = f:with { unique = true }
        end
        return mg.plan(t)
      end
      for _ = 1, 3 do
        local first = assert(job:materialize(plan(15, true), "few")) -- on ranks 0 and 1
        local second, message, status = job:materialize(plan(10), "all")
        assert(not second and status == 500, status) -- ranks 2 and 3 have room
        assert(message:find("ranks do not have the same plan: rank 0 and others has none (mpi: this rank has 15 communicators "
          .. "and needs 10 more; MPI numbers at most 20 of ours; free a state first, or share groups)", 1, true)
          or message:find("mpi: this rank has 15", 1, true), message)
        first:close()
        second = assert(job:materialize(plan(20), "all"))
        assert(second:prove() == 20)
        second:close()
      end
      if job.rank == 0 then print("fine") end
      job:close()
    ]]
    local out, err, code = support.run("scripts/launch 4 env LUA_CPATH_5_4=build/?.so lua5.4 " .. script)
    assert.equal("fine\n", out, err)
    assert.equal(0, code)
  end)

  it("the example of a trainer that exists gets its MPI_Comm", function()
    local out, err, code = support.run "scripts/launch 4 build/tests/multi_gpu mpi tp=2"
    assert.equal(0, code, err)
    assert.equal("rank 0 of 4 is 0 of 2 in dp, and has an MPI_Comm\n", out)
    out, err, code = support.run "scripts/launch 4 build/tests/multi_gpu mpi tp=3"
    assert.equal("", out)
    assert.equal(1, code)
    assert.truthy(err:find("multi_gpu: picotron:39: tp 3 does not divide the 4 ranks", 1, true), err)
  end)
end)

describe("another MPI", function()
  local run = support.run

  it("as a launcher, for which MPI ends the process in MPI_Init, is told after that", function()
    local source = support.file "#include <stdlib.h>\nint MPI_Init_thread(void);\nint MPI_Init_thread(void) { exit(15); }\n"
    local library = os.tmpname()
    local _, failed, made = run(("cc -fPIC -shared -x c %s -o %s"):format(source, library))
    assert.equal(0, made, failed)
    local _, err, code = run(("env PMI_RANK=0 PMI_SIZE=2 LD_PRELOAD=%s build/moongrid run picotron"):format(library))
    os.remove(library)
    assert.equal(15, code)
    assert.equal("moongrid: [rank 0/2] MPI has ended this process in the start of the job; its own message says why; it was started by "
      .. "a launcher with PMI (MPICH's mpirun, srun --mpi=pmi2), which must belong to the MPI that moongrid was built with\n", err)
  end)

  it("as a launcher, which MPI knows nothing of, is told by its environment", function()
    local as_srun = "SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0 "
    local out, err, code = run(as_srun .. "build/moongrid run examples/moe.lua --backend mpi")
    assert.equal("", out)
    assert.equal(4, code)
    assert.truthy(err:find("^moongrid: %[rank 0/4%] mpi: srun started 4 processes, and the MPI of this one, %S[^\n]+, knows of "
      .. "itself alone: start it by that library's own mpirun, or by srun %-%-mpi=pmix or %-%-mpi=pmi2, or build moongrid "
      .. "with the launcher's MPI\n$"), err)
    out = run(as_srun .. "build/moongrid doctor")
    assert.truthy(out:find "\nlauncher +yes +rank 0 of 4\n", out)
  end)

  local is_mpich = (run "ldd build/libmoongrid_mpi.so"):find "libmpic?h?%.so%.12" ~= nil

  it("as a launcher is told of a duplicate of the world, and not of who needs to be alone", function()
    local source, program = support.file [[
#include <moongrid_mpi.h>
#include <stdio.h>
static void try(MPI_Comm comm) {
  mgrid_error    e = MGRID_ERROR_INIT;
  mgrid_backend *b = mgrid_mpi_backend(comm, NULL, &e);
  printf("%d %s\n", b != NULL, e.message);
  mgrid_backend_free(b);
}
int main(int argc, char **argv) {
  MPI_Comm twin;
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &twin);
  try(twin), try(MPI_COMM_SELF);
  MPI_Comm_free(&twin);
  MPI_Finalize();
}
]], os.tmpname()
    local _, failed, made = run(("cc -w -x c -Isrc %s -x none -o %s -Lbuild -lmoongrid_mpi -lmoongrid -Wl,-rpath,$PWD/build "
      .. "$(pkg-config --cflags --libs $(scripts/mpi --module))"):format(source, program))
    assert.equal(0, made, failed)
    local out = run("SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0 " .. program)
    os.remove(program)
    local wanted = "^0 mpi: srun started 4 processes, and the MPI of this one, [^\n]+, knows of itself alone: [^\n]+\n1 \n$"
    assert.truthy(out:find(wanted), out)
  end)

  -- MPICH 5 would end the process in MPI_Init, MPICH 4 would be alone
  for by, row in pairs {
    ["srun"] = { "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 ", "2 processes", ", or by srun --mpi=pmi2", "0/2" },
    ["a launcher with PMIx"] = { "", "this process", "", "0/1" },
  } do
    (is_mpich and it or pending)("as a launcher that an MPICH does not speak to is told before MPI begins: " .. by, function()
      local out, err, code = run(row[1] .. "PMIX_RANK=0 build/moongrid run picotron --backend mpi")
      assert.equal("", out)
      assert.equal(4, code)
      assert.equal(("moongrid: [rank %s] mpi: %s started %s, and the MPI of this one, MPICH N, knows of itself alone: start it by "
        .. "that library's own mpirun%s, or build moongrid with the launcher's MPI\n"):format(row[4], by, row[2], row[3]),
        (err:gsub("MPICH [%d.]+", "MPICH N")))
    end)
  end

  it("as that of the program is refused, by both their names", function()
    local ours = run "ldd build/libmoongrid_mpi.so | sed -nE 's/.*libmpi(ch)?\\.so[.0-9]* => ([^ ]+).*/\\2/p'":gsub("\n", "")
    local other
    for name, mpicc in run "scripts/mpi --list":gmatch "(%S+) (/[^\n]+)" do -- Open MPI 4 and 5 are one library to a program
      local open = (run("strings " .. ours .. " | grep -m 1 -o 'Open MPI v'")) ~= ""
      if open ~= (name:find "^openmpi" ~= nil) then other = mpicc end
    end
    if not other then return pending "no second MPI here (scripts/mpi --list)" end
    local program = os.tmpname()
    local source = program .. ".c"
    support.write(source, [[
#include <mpi.h>
#include <moongrid.h>
#include <stdio.h>
int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  MPI_Init(&argc, &argv);
  mgrid_backend *b = mgrid_backend_open("mpi", NULL, &e);
  printf("%d %s\n", b == NULL, e.message);
  MPI_Finalize();
}
]])
    local _, err, code = run(("%s -w -Isrc %s -o %s -Lbuild -lmoongrid -Wl,-rpath,$PWD/build"):format(other, source, program))
    assert.equal(0, code, err)
    local out = run(program)
    assert.truthy(out:find "^1 mpi: this backend was built with [^\n]+, and the program has loaded [^\n]+; build moongrid with "
      and out:find "Open MPI" and out:find "MPICH", out)
    os.remove(program)
    os.remove(source)
  end)
end)
