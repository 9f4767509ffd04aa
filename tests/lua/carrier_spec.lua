-- SPDX-License-Identifier: MIT
--
-- Jobs without MPI: over pmix under mpirun, on one machine and on one that mpirun takes for two; and over a host's own
-- carrier, the folder of examples/carrier.c, where no launcher ends the ranks of a failed job. NCCL is the stand-in
-- (tests/nccl/standin). Each carrier gets the same faults. tests/c/test_carrier.c tests the promises of a carrier
-- itself.

local support = dofile "tests/lua/support.lua"
local exists = support.exists

local pmix, nccl = exists "build/libmoongrid_pmix.so", exists "build/standin/libnccl.so.2"
local HERE = "export LUA_CPATH='build/?.so;;' LUA_PATH='lua/?.lua;;' LD_LIBRARY_PATH=build/standin STANDIN_DEADLINE=30 "
  .. "STANDIN_TAG=" .. support.tag .. "; "
local MOE = "examples/moe.lua tp=2 pp=2 ep=2"

local clean = support.clean

-- out, err, code of a command on `ranks` ranks under mpirun, with `env` in front
local function on(ranks, command, env)
  clean()
  return support.run(HERE .. ("%s scripts/launch %d %s"):format(env or "", ranks, command))
end

-- The command with its arguments after RANK, on rank `odd`: other, a line of the shell; else: the command itself.
local function but(odd, other, command)
  return ([[bash -c 'if [ $PMIX_RANK = %d ]; then %s; fi; exec %s']]):format(odd, other, command)
end

local function said(err) return err:match "moongrid: %[rank 0/%d+%] ([^\n]*)" or err end

describe("over pmix", function()
  if not pmix then
    return it("says that it is not here", function()
      local out = support.run "build/moongrid doctor"
      assert.truthy(out:find("pmix +no +the pmix backend is not here: libmoongrid_pmix.so"), out)
    end)
  end

  it("doctor tells whether a launcher is there", function()
    local out = support.run "build/moongrid doctor"
    assert.truthy(out:find "pmix +yes +OpenPMIx [^\n]*; no launcher with PMIx started this process\n", out)
    out = support.launch(1, "build/moongrid doctor")
    assert.truthy(out:find "pmix +yes +OpenPMIx [^\n]*; its launcher started this process\n", out)
  end)

  it("without a launcher says how to start", function()
    local _, err, code = support.run "build/moongrid run picotron --backend pmix"
    assert.equal(4, code)
    assert.equal("moongrid: pmix: no launcher that speaks PMIx started this process (PMIx_Init: UNREACHABLE); start it by "
      .. "mpirun, prterun or srun --mpi=pmix\n", err)
  end)

  it("what cannot go together is refused", function()
    for line, message in pairs {
      ["--backend mpi --carrier pmix"] = "--carrier pmix is for nccl or rccl; --backend mpi has none",
      ["--backend pmix --carrier pmix"] = "--carrier pmix is for nccl or rccl; --backend pmix has none",
      ["--backend dry --carrier mpi"] = "--carrier mpi is for nccl or rccl; --backend dry has none",
      ["--backend nccl --carrier pmx"] = "unknown carrier 'pmx'; nearest is 'pmix' (mpi, pmix)",
      ["--carrier nccl"] = "unknown carrier 'nccl'; known: mpi, pmix",
    } do
      local _, err, code = support.run("build/moongrid run picotron " .. line)
      assert.equal(2, code)
      assert.truthy(err:find("moongrid: " .. message .. "\n", 1, true), err)
    end
  end)

  it("ranks agree and make nothing", function()
    local out, err, code = on(8, "build/moongrid run " .. MOE .. " --backend pmix")
    assert.equal(0, code, err)
    assert.truthy(out:find("\nagreed         all 8 ranks have the same plan; pmix makes no communicators\n", 1, true), out)
    assert.falsy(out:find "\nproved")
  end)

  it("a PMIx that keeps what it has read returns old values of no key", function()
    for _, backend in ipairs { "pmix", nccl and "nccl --carrier pmix" or nil } do
      local out, err, code = on(4, "build/moongrid run " .. MOE .. " --backend " .. backend, "PMIX_MCA_gds=hash")
      assert.equal(0, code, err)
      assert.truthy(out:find(backend == "pmix" and "\nagreed  " or "\nproved  ", 1, true), out)
    end
  end)

  it("no rank loads MPI", function()
    local loads = os.tmpname()
    for backend, wanted in pairs { ["pmix"] = false, ["mpi"] = true, ["nccl --carrier pmix"] = false } do
      if backend ~= "nccl --carrier pmix" or nccl then
        os.execute("rm -f " .. loads .. "*")
        local _, err, code = on(2, ("env LD_DEBUG=files LD_DEBUG_OUTPUT=%s build/moongrid run picotron --backend %s"):format(
          loads, backend))
        assert.equal(0, code, err)
        local files = support.run("cat " .. loads .. ".*")
        assert.truthy(files:find("file=build/moongrid", 1, true) or files:find("program: build/moongrid", 1, true), files)
        assert.equal(wanted, files:find("calling init: [^\n]*/libmpi%.so") ~= nil, backend)
        assert.equal(not wanted, files:find("calling init: [^\n]*/libmoongrid_pmix%.so") ~= nil, backend)
      end
    end
    os.execute("rm -f " .. loads .. "*")
  end)

  it("ranks that differ, or cannot plan, are told as over mpi", function()
    for _, other in ipairs { "examples/moe.lua", "picotron", "examples/moe.lua tp=3", "examples/nothing.lua" } do
      local lines = {}
      for _, backend in ipairs { "mpi", "pmix" } do
        local run = "build/moongrid run %s --backend " .. backend
        local _, err, code = on(8, but(3, "exec " .. run:format(other), run:format(MOE)))
        assert.equal(5, code, err)
        lines[#lines + 1] = said(err)
      end
      assert.truthy(lines[1]:find("^ranks do not have the same plan: rank 3 has "), lines[1])
      assert.equal(lines[1], lines[2])
    end
  end)

  it("a rank that never comes is named in time", function()
    local started = os.time()
    local _, err, code = on(8, but(5, "exec sleep 20", "build/moongrid run picotron --backend pmix --timeout 2"))
    assert.equal(4, code)
    assert.equal("after 2 seconds not all ranks had come: rank 5 is not there, in call 1 over all ranks: run --backend pmix "
      .. "--timeout 2", said(err))
    assert.is_true(os.time() - started < 15)
  end)

  it("a rank that is killed ends the job", function()
    local started = os.time()
    local _, _, code = on(8, but(5, "kill -9 $$", "build/moongrid run picotron --backend pmix --timeout 20"))
    assert.is_true(code ~= 0)
    assert.is_true(os.time() - started < 15)
  end)

  it("a Lua program joins twice at a time, and not again when it has left", function()
    local program = support.file [[
      local mg = require "moongrid"
      local outer = assert(mg.pmix())
      for life = 1, 3 do
        local job = assert(mg.pmix())
        local plan = mg.load("picotron"):plan(job.world, { tp = 2 })
        local state = assert(job:materialize(plan, "actor"))
        assert(state.tp.position == job.rank % 2 and job.backend == "pmix")
        local other = mg.load("picotron"):plan(job.world, { tp = job.rank == 1 and 4 or 2 })
        local none, message = job:materialize(other, "b")
        assert(not none and message:find("rank 1 has", 1, true), message)
        if job.rank == 0 then print("life " .. life) end
        state:close()
        job:close()
      end
      local rank = outer.rank
      outer:close()
      local _, message = mg.pmix()
      if rank == 0 then print(message) end]]
    local out, err, code = on(4, "lua5.4 " .. program)
    assert.equal("life 1\nlife 2\nlife 3\npmix: this process has left its job already, and cannot join it again; keep one "
      .. "backend open\n", out, err)
    assert.equal(0, code)
  end)

  if not nccl then return end

  it("NCCL's communicators are made, proved and destroyed, strictly", function()
    local out, err, code = on(16, "build/moongrid run megatron tp=2 cp=2 pp=2 ep=2 etp=2 --backend nccl --carrier pmix "
      .. "'*.backend=nccl'", "STANDIN_STRICT=1 STANDIN_DEVICES=16")
    assert.equal(0, code, err)
    assert.truthy(out:find("on all 16 ranks (", 1, true), out)
  end)

  it("a family that needs mpi is refused on all ranks", function()
    local _, err, code = on(4, "build/moongrid run megatron tp=2 --backend nccl --carrier pmix")
    assert.equal(1, code)
    assert.equal("run/dp_cp_gloo[0] needs the backend 'mpi', and the carrier of this job is pmix, without MPI; give its "
      .. "family backend = \"none\", or start the job over mpi", said(err))
    local out
    out, err, code = on(4, "build/moongrid run megatron tp=2 --backend nccl --carrier pmix '*.backend=nccl' tp.backend=none")
    assert.truthy(code == 0 and out:find("memberships, nccl)", 1, true), err)
  end)

  for fault, message in pairs {
    ["STANDIN_NO_DRIVER=1"] = "^rank 0: nccl: no CUDA driver on host ",
    ["NCCL_COMM_BLOCKING=0 STANDIN_FAIL_INIT=5:2"] = "^rank 5: nccl: creation for run/pp%[1%]: ",
    ["NCCL_COMM_BLOCKING=0 STANDIN_MISSING=3:2"] = "^rank [37]: nccl: run/pp%[3%] was not made within 3 seconds: ",
    ["STANDIN_ASYNC_ERROR=1:3"] = "^rank 1: nccl: ncclBroadcast for run/tp%[0%]: ",
  } do
    it("a fault is told in time: " .. fault, function()
      local started = os.time()
      local _, err, code = on(8, "build/moongrid run " .. MOE .. " --backend nccl --carrier pmix --timeout 3", fault)
      assert.equal(4, code, err)
      assert.truthy(said(err):find(message), err)
      assert.is_true(os.time() - started < 20)
    end)
  end

  it("between machines too, as far as one machine can play two", function()
    -- What mpirun calls instead of ssh: HOST COMMAND. Each of the two has a /tmp of its own, as machines have: daemons
    -- of one job that share a session directory remove it from under each other, and some job never ends.
    local folder = os.tmpname()
    local agent = folder .. "/agent"
    os.execute(("rm %s && mkdir -p %s/one %s/two"):format(folder, folder, folder))
    io.open(agent, "w"):write(('#!/bin/bash\nexport TMPDIR=%s/$1\nshift\nexec bash -c "$*"\n'):format(folder)):close()
    os.execute("chmod +x " .. agent)
    local out, err, code = on(8, "--host one:4,two:4 build/moongrid run " .. MOE .. " --backend nccl --carrier pmix",
      "STANDIN_STRICT=1 OMPI_MCA_plm_rsh_no_tree_spawn=1 OMPI_MCA_plm_rsh_agent=" .. agent)
    os.execute("rm -rf " .. folder) -- a daemon may be at it, too
    assert.equal(0, code, err)
    assert.truthy(out:find("on all 8 ranks (48 memberships, nccl)", 1, true), out)
  end)

  it("a Lua program has NCCL without MPI", function()
    local program = support.file [[
      local mg = require "moongrid"
      assert(select(2, pcall(mg.nccl, { carrier = "pmx" })):find("unknown carrier 'pmx'; nearest is 'pmix' (mpi, pmix)", 1, true))
      local job = assert(mg.nccl { carrier = "pmix" })
      local state = assert(job:materialize(mg.load("picotron"):plan(job.world, { tp = 2 }), "actor"))
      local sum = state.dp:buffer(1, "int64"):set(job.rank + 1)
      assert(state.dp:allreduce(sum))
      if job.rank == 0 then print(job.backend, sum:get()[1]) end
      for line in io.lines "/proc/self/maps" do assert(not line:find "libmpi%.so", line) end
      state:close()
      job:close()]]
    local out, err, code = on(4, "lua5.4 " .. program)
    assert.equal("nccl\t4\n", out, err)
    assert.equal(0, code)
  end)
end)

describe("over a host's own carrier", function()
  local folder

  before_each(function()
    folder = os.tmpname()
    os.execute(("rm -f %s && mkdir %s"):format(folder, folder))
    clean()
  end)
  after_each(function() os.execute("rm -r " .. folder) end)

  -- `ranks` processes that nobody watches; rank `odd` runs another command, or none. Lines of all, and seconds.
  local function host(ranks, arguments, env, odd, other)
    local lines = { HERE, "export CARRIER_TIMEOUT=3 ", env or "", "\n" }
    for r = 0, ranks - 1 do
      local command = ("build/tests/carrier %s %d %d %s"):format(folder, r, ranks, arguments)
      lines[#lines + 1] = ("(PMI_RANK=%d %s; echo code $?) 2>&1 | sed 's/^/%d: /' &\n"):format(r,
        r == odd and other or command, r)
    end
    local started = os.time()
    local out = support.run(table.concat(lines) .. "wait")
    return out, os.time() - started
  end

  local function count(out, pattern) return select(2, out:gsub(pattern, "")) end

  it("ranks agree; a store forgets what was read", function()
    local out = host(8, MOE)
    assert.equal(8, count(out, "%d: rank %d of 8: %d+ communicators, 0 proved, on carrier\n"), out)
    assert.equal(8, count(out, "code 0\n"), out)
    local left = support.run("ls " .. folder)
    assert.equal(8, count(left, "moongrid%.opened%.%d\n"))
    assert.equal(8, count(left, "\n"), left)
  end)

  it("a job that starts again in the same store is kept apart", function()
    for _ = 1, 2 do
      local out = host(4, "picotron tp=2")
      assert.equal(4, count(out, "code 0\n"), out)
    end
  end)

  it("ranks that differ, or cannot plan, are told on all", function()
    local other = ("build/tests/carrier %s 3 8 %s"):format(folder, "examples/moe.lua tp=3")
    local out = host(8, MOE, "", 3, other)
    assert.equal(7, count(out, "ranks do not have the same plan: rank 3 has none %(examples/moe.lua:18: tp 3 does not divide "
      .. "the 8 ranks; nearest: tp 2 or 4, or a world of 6 or 9 ranks %(while planning for 8 ranks%)%)\n%d: code 5\n"), out)
    os.execute(("rm %s/*"):format(folder))
    out = host(8, MOE, "", 3, other:gsub("tp=3", "tp=2"))
    assert.equal(8, count(out, "code 5\n"), out)
  end)

  it("a rank that never comes is named on all others", function()
    local out, seconds = host(8, MOE, "", 5, "true")
    assert.equal(7, count(out, "after 3 seconds not all ranks had come: rank 5 is not there, in call 1 over all ranks: "
      .. "materialize 'train' %(while creating the state%)\n%d: code 4\n"), out)
    assert.is_true(seconds < 15)
  end)

  if not nccl then return end

  it("NCCL's communicators are made, proved and destroyed, strictly", function()
    local out = host(8, "nccl " .. MOE, "STANDIN_STRICT=1")
    assert.equal(8, count(out, "%d: rank %d of 8: %d+ communicators, 6 proved, on nccl\n"), out)
    assert.equal(8, count(out, "code 0\n"), out)
  end)

  for fault, message in pairs {
    ["NCCL_COMM_BLOCKING=0 STANDIN_FAIL_INIT=5:2"] = "carrier: rank %d: rank 5: nccl: creation for train/pp%[1%]: ",
    ["NCCL_COMM_BLOCKING=0 STANDIN_MISSING=3:2"] = "carrier: rank %d: rank [37]: nccl: train/pp%[3%] was not made within 3 seconds: ",
    ["STANDIN_ASYNC_ERROR=1:3"] = "carrier: rank %d: rank 1: nccl: ncclBroadcast for train/tp%[0%]: ",
  } do
    it("a fault is told on all ranks in time: " .. fault, function()
      local out, seconds = host(8, "nccl " .. MOE, "STANDIN_X= " .. fault)
      assert.equal(8, count(out, message), out)
      assert.equal(8, count(out, "code 4\n"), out)
      assert.is_true(seconds < 20)
    end)
  end

  it("a rank that dies in a creation is named on all others", function()
    local out, seconds = host(8, "nccl " .. MOE, "NCCL_COMM_BLOCKING=0 STANDIN_DIE=2:1")
    -- 3 seconds for the creation, and 2 for ranks that are late; aborts follow the verdict
    assert.equal(7, count(out, "after 5 seconds not all ranks had come: rank 2 is not there"), out)
    -- a rank that waits for one of rank 2's groups until its own limit names the group; another may hear of it before
    assert.truthy(out:find("is not there, in call 1 over all ranks: materialize 'train'; and on rank %d nccl: train/%l+%[%d%] "
      .. "was not made within 3 seconds"), out)
    assert.equal(7, count(out, "code 4\n"), out)
    assert.is_true(seconds < 40)
  end)
end)
