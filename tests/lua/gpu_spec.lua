-- SPDX-License-Identifier: MIT
--
-- scripts/gpu-test on the stand-in libraries. Its record has every check that was done, however the run ends; a check
-- that fails or hangs leaves the others their time.

local support = dofile "tests/lua/support.lua"

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

if not read "build/libmoongrid_nccl.so" or not read "build/standin/libnccl.so.2" then
  return describe("gpu-test", function() pending "no headers of NCCL" end)
end

local NAME = "moongrid NCCL stand-in (not NCCL, no GPU): "
local PACKAGE = "build/gpu-spec"

local folders = {}
local function folder()
  local path = (support.run "mktemp -d"):match "[^\n]+"
  folders[#folders + 1] = path
  return path
end

-- The only record in a folder, without the stand-in's name, which every line must begin with.
local function record(out)
  local paths = support.run("ls " .. out .. "/*.md")
  assert.equal(1, select(2, paths:gsub("\n", "")), paths)
  local lines = {}
  for line in (read(paths:match "[^\n]+")):gmatch "([^\n]*)\n" do
    assert.equal(NAME, line:sub(1, #NAME), line)
    lines[#lines + 1] = line:sub(#NAME + 1)
  end
  return table.concat(lines, "\n") .. "\n"
end

-- The verdicts that were printed: { { "pass", "the interface lo" }, ... }
local function printed(text)
  local list = {}
  for line in text:gmatch "[^\n]+" do
    local word, name = line:match("^" .. NAME:gsub("%p", "%%%0") .. "(%l%l%l%l)  (.-)  +%d+ s")
    if not word then word, name = line:match("^" .. NAME:gsub("%p", "%%%0") .. "(FAIL)  (.-)  +%d+ s") end
    if word == "pass" or word == "FAIL" then list[#list + 1] = { word, name } end
  end
  return list
end

local function sleep(seconds) os.execute("sleep " .. seconds) end

-- What a run has left running: processes with its mark in their environment.
local function left(pid)
  return (support.run(("grep -lz '^GPU_TEST_RUN=%s-' /proc/[0-9]*/environ 2>/dev/null || true"):format(pid)))
end

-- Begin a rehearsal; returns a table with its process, its folder, and what it has printed so far.
local function begin(words, env)
  local run = { out = folder() }
  run.said = run.out .. "/said"
  run.pid = (support.run(("%s scripts/gpu-test %s --rehearse -o %s %s >%s 2>&1 </dev/null & echo $!"):format(
    ("TMPDIR=%s GPU_SECONDS=12 %s"):format(run.out, env or ""), PACKAGE, run.out, words, run.said))):match "%d+"
  function run.text() return read(run.said) or "" end
  function run.alive() return (os.execute(("kill -0 %s 2>/dev/null"):format(run.pid))) == true end
  function run.await(what, seconds) -- until what() is true
    for _ = 1, seconds * 10 do
      if what() then return true end
      if not run.alive() and not what() then break end
      sleep(0.1)
    end
    return what()
  end
  function run.gone(seconds) -- until nothing of it runs
    for _ = 1, seconds * 5 do
      if not run.alive() and left(run.pid) == "" then
        support.run(("rm -f /dev/shm/mg-standin-g%s-*"):format(run.pid)) -- of processes that were killed
        return true
      end
      sleep(0.2)
    end
    return false, left(run.pid)
  end
  return run
end

setup(function()
  local _, err, code = support.run("scripts/gpu-test pack " .. PACKAGE)
  assert.equal(0, code, err)
end)

teardown(function()
  for _, path in ipairs(folders) do support.run("rm -rf " .. path) end
  support.run("rm -rf " .. PACKAGE)
end)

describe("gpu-test, killed", function()
  for _, moment in ipairs { 2, 6, 10 } do
    it(("by SIGKILL after %d checks has them all in its record"):format(moment), function()
      local run = begin ""
      assert.is_true(run.await(function() return #printed(run.text()) >= moment end, 60), run.text())
      os.execute("kill -KILL " .. run.pid)
      assert.is_true(run.gone(30), "something of it runs on")
      local done, text = printed(run.text()), record(run.out)
      assert.is_true(#done >= moment)
      for _, check in ipairs(done) do
        assert.truthy(text:find(("| %s | %s |"):format(check[1], check[2]), 1, true), check[2] .. "\n" .. text)
      end
      assert.truthy(text:find("\n**Not ended:** ", 1, true), text)
      assert.truthy(text:find("# A REHEARSAL WITHOUT A GPU: nothing below is a result of NCCL: ", 1, true), text)
    end)
  end

  it("by SIGTERM in a check says so, as a failure, and leaves nothing running", function()
    local run = begin("", "STANDIN_MISSING=1 STANDIN_DEADLINE=100 GPU_SECONDS=60")
    local name = "2 ranks, one plain communicator, no MPI"
    assert.is_true(run.await(function()
      return support.run("cat " .. run.out .. "/*.md"):find("running was: " .. name, 1, true) ~= nil
    end, 60), run.text())
    local started = os.time()
    os.execute("kill -TERM " .. run.pid)
    assert.is_true(run.gone(20), "something of it runs on")
    assert.is_true(os.time() - started < 12)
    local text = record(run.out)
    assert.truthy(text:find(("| **FAIL**: interrupted (SIGTERM) | %s |"):format(name), 1, true), text)
    assert.truthy(text:find(": 5 passed, 1 failed, 1 left out\n", 1, true), text)
    assert.truthy(text:find("| pass | one process: a communicator of one rank |", 1, true), text)
    assert.truthy(run.text():find "\n5 passed, 1 failed, 1 left out\n$", run.text())
  end)
end)

describe("gpu-test, when something is wrong", function()
  it("gives a check that hangs its limit, looks into it, and leaves out what stands on it", function()
    local run = begin("--part smoke --part run", "STANDIN_MISSING=1 STANDIN_DEADLINE=100 GPU_SECONDS=5")
    assert.is_true(run.gone(110), run.text())
    local text, name = record(run.out), "2 ranks, one plain communicator, no MPI"
    assert.truthy(text:find(("| **FAIL**: not done after 5 seconds | %s | "):format(name), 1, true), text)
    assert.truthy(text:find(("| left out: after the failure of: %s | a mixture of experts, 4 ranks |"):format(name), 1, true), text)
    assert.truthy(text:find("| pass | NCCL's own calls on communicators of one rank |", 1, true), text)
    for _, setting in ipairs { "NCCL_CUMEM_ENABLE=0", "NCCL_CUMEM_HOST_ENABLE=0", "NCCL_RUNTIME_CONNECT=0", "NCCL_PROTO=Simple",
      "NCCL_ALGO=Ring", "NCCL_RAS_ENABLE=0" } do
      assert.truthy(text:find(("| %s | not done after 5 seconds |"):format(setting), 1, true), text)
    end
    assert.truthy(text:find(": 9 passed, 1 failed, 10 left out\n", 1, true), text)
    local logs = support.run("cat " .. run.out .. "/*.log")
    assert.truthy(logs:find(("===== %s: once more with NCCL_DEBUG=INFO\n"):format(name), 1, true), logs)
    assert.truthy(select(2, logs:gsub("%-%-%- stack of thread %d+ of process %d+\n[^\n]*stacks%.so", "")) >= 2, logs)
    assert.truthy(logs:find("(ncclCommInitRankConfig+0x", 1, true), logs)
  end)

  it("goes on with the variant that mends it", function()
    local package = folder()
    support.run(("cp -r %s/. %s"):format(PACKAGE, package))
    local file = assert(io.open(package .. "/plain", "w")) -- fails but for NCCL_PROTO=Simple
    file:write('#!/bin/sh\n[ "$NCCL_PROTO" = Simple ] && echo "all ranks ended well"\n')
    file:close()
    local out = folder()
    support.run(("GPU_SECONDS=12 scripts/gpu-test %s --rehearse -o %s --part smoke"):format(package, out))
    local text = record(out)
    assert.truthy(text:find("\n| **FAIL**: exit code 1, not 0 | 2 ranks, one plain communicator, no MPI |", 1, true), text)
    assert.truthy(text:find("\n| NCCL_ALGO=Ring | exit code 1 | ", 1, true), text)
    assert.truthy(text:find("\n| NCCL_PROTO=Simple | **passes** | ", 1, true), text)
    assert.truthy(text:find("\n`NCCL_PROTO=Simple` mends '2 ranks, one plain communicator, no MPI', and is set in all that "
      .. "comes after it.\n", 1, true), text)
    assert.truthy(text:find("\n| pass | a mixture of experts, 2 ranks |", 1, true), text)
    assert.truthy(text:find("\n| pass | 4 ranks, one plain communicator, no MPI |", 1, true), text)
  end)

  it("lets MPI's messages go over tcp where shared memory fails, and still counts the failure", function()
    local package, out = folder(), folder()
    support.run(("cp -r %s/. %s && mv %s/usr/bin/mpirun %s/usr/bin/real"):format(PACKAGE, package, package, package))
    local file = assert(io.open(package .. "/usr/bin/mpirun", "w"))
    file:write('#!/bin/bash\n[ "$OMPI_MCA_btl" = self,tcp ] || exit 1\nexec -a "$0" "${0%/*}/real" "$@"\n')
    file:close()
    support.run(("scripts/gpu-test %s --rehearse -o %s --part smoke"):format(package, out))
    local text = record(out)
    assert.truthy(text:find("\n| **FAIL**: exit code 1, not 0 | Open MPI alone: 4 ranks |", 1, true), text)
    assert.truthy(text:find("\n| pass | Open MPI alone: 4 ranks, over tcp |", 1, true), text)
    assert.truthy(text:find("\n| pass | a mixture of experts, 2 ranks |", 1, true), text)
  end)

  it("leaves out what its time does not hold, and blames nothing else", function()
    local out = folder()
    local said = support.run(("GPU_TOTAL=1 scripts/gpu-test %s --rehearse -o %s --part smoke"):format(PACKAGE, out))
    local text = record(out)
    assert.truthy(text:find("| left out: the 1 seconds are over | one process: a communicator of one rank |", 1, true), text)
    assert.truthy(text:find("| left out: the 1 seconds are over | a mixture of experts, 2 ranks |", 1, true), text)
    assert.truthy(said:find "\n2 passed, 0 failed, 11 left out\n$", said)
  end)

  it("stops at an environment without a driver, and says what is missing", function()
    local out = folder()
    local said, _, code = support.run(("STANDIN_NO_DRIVER=1 scripts/gpu-test %s --rehearse -o %s"):format(PACKAGE, out))
    local text = record(out)
    assert.equal(1, code)
    assert.truthy(text:find("| **FAIL**: rank 0: cudaGetDeviceCount: cudaErrorInsufficientDriver (", 1, true), text)
    assert.truthy(text:find("| left out: no NCCL with a GPU here | one process: memory, there and back |", 1, true), text)
    assert.truthy(text:find("| pass | Open MPI alone: 4 ranks |", 1, true), text)
    assert.is_nil(text:find("| pass | moongrid", 1, true), text)
    assert.truthy(said:find "\n3 passed, 1 failed, %d%d left out\n$", said)
  end)

  it("leaves out what this machine could not build, with the cause", function()
    local package, out = folder(), folder()
    support.run(("cp -r %s/. %s && rm %s/measure %s/recover && printf 'measure\\tno C compiler (cc)\\n' >%s/missing"):format(
      PACKAGE, package, package, package, package))
    local said, _, code = support.run(("scripts/gpu-test %s --rehearse -o %s --part memory"):format(package, out))
    assert.equal(0, code, said)
    assert.truthy(record(out):find("| left out: no measure: no C compiler (cc) | memory of a communicator: 2 ranks |", 1, true),
      said)
  end)

  it("takes no other option, piece or number", function()
    for words, message in pairs {
      ["-o"] = "gpu-test: -o needs a value; --help says which\n",
      ["--part later"] = "gpu-test: no piece 'later'; the pieces are smoke run memory create refuse eight faults\n",
      ["--ranks 3"] = "gpu-test: --ranks takes 1, not '3': the pieces choose 2, 4 and 8 themselves\n",
      ["--ranks 1 --part run"] = "gpu-test: --ranks 1 is a piece of its own: no --part with it\n",
      ["--standin tests"] = "gpu-test: no stand-in libraries in 'tests'; tests/nccl/standin/build.sh makes them\n",
      ["--fast"] = "gpu-test: unknown option '--fast'; --help tells all\n",
    } do
      local _, err, code = support.run(("scripts/gpu-test %s %s"):format(PACKAGE, words))
      assert.equal(2, code)
      assert.equal(message, err)
    end
    local _, err, code = support.run(("GPU_TOTAL=9m scripts/gpu-test %s --rehearse"):format(PACKAGE))
    assert.equal(2, code)
    assert.equal("gpu-test: GPU_SECONDS, GPU_TOTAL and GPU_TURNS are whole numbers from 1, not '9m'\n", err)
    _, err, code = support.run "scripts/gpu-test tests"
    assert.equal(2, code)
    assert.equal("gpu-test: 'tests' is not a package; make one: scripts/gpu-test pack tests\n", err)
  end)
end)

describe("gpu-test, rehearsed", function()
  it("passes piece after piece, from a package with an MPI of its own, and keeps older records", function()
    local out = folder()
    for _, piece in ipairs { "smoke", "smoke", "run", "memory", "create", "refuse", "eight", "faults" } do
      local said, err, code = support.run(("GPU_TURNS=1 scripts/gpu-test %s --rehearse -o %s --part %s"):format(PACKAGE, out, piece))
      assert.equal(0, code, said .. err)
      assert.truthy(said:find "\n%d+ passed, 0 failed, 2 left out\n$", said)
    end
    local list = support.run(("cd %s && ls *.md *.log | sed 's/20[0-9-]*-//' | sort"):format(out))
    local want = {}
    for _, piece in ipairs { "create", "eight", "faults", "memory", "refuse", "run", "smoke-2", "smoke" } do
      want[#want + 1] = ("rehearsal-%s.log\nrehearsal-%s.md\n"):format(piece, piece)
    end
    assert.equal(table.concat(want), list)
    local memory = support.run(("cat %s/*memory.md"):format(out))
    assert.truthy(memory:find("| 2 | min_ctas=4 max_ctas=4 | 1 | 28.0 | 28.0 |", 1, true), memory)
    local create = support.run(("cat %s/*create.md"):format(out))
    assert.truthy(create:find("| 4 | **moongrid**: `mgrid_materialize` | 3.0 | ", 1, true), create)
    local faults = support.run(("cat %s/*faults.md"):format(out))
    assert.truthy(faults:find("kill -9 of a rank: revoke, shrink, go on | until NCCL tells an error, ms | ", 1, true), faults)
  end)

  it("needs neither a second rank nor a second process on the GPU with --ranks 1", function()
    local out = folder()
    local said, _, code = support.run(("scripts/gpu-test %s --rehearse -o %s --ranks 1"):format(PACKAGE, out))
    assert.equal(0, code, said)
    local text = record(out)
    assert.truthy(text:find("| pass | NCCL's own calls on communicators of one rank | ", 1, true), text)
    assert.truthy(text:find("| pass | moongrid with one rank | ", 1, true), text)
    assert.is_nil(text:find("-n [2-9]", 1), text)
    assert.truthy(text:find(": 10 passed, 0 failed, 1 left out\n", 1, true), text) -- the compute mode, without nvidia-smi
  end)
end)
