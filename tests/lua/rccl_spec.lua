-- SPDX-License-Identifier: MIT
--
-- The rccl backend, which is the nccl backend compiled for RCCL and HIP. Without ROCm it is compiled with substitutes
-- for their headers (tests/nccl/standin/rocm), and runs on the stand-in under RCCL's names: without RCCL, HIP or a GPU.

local support = dofile "tests/lua/support.lua"
local exists = support.exists

local built = exists "build/libmoongrid_rccl.so"
local library = built or exists(("build/tests/rccl/libmoongrid_rccl.so.%s"):format(support.interface))

local function on(ranks, command, env)
  return support.on_standin(ranks, command,
    "LD_LIBRARY_PATH=$PWD/build/standin:$PWD/build/tests/rccl MAKER=rccl " .. (env or ""))
end

local function doctor(env)
  local out = support.run(("LD_LIBRARY_PATH=$PWD/build/standin:$PWD/build/tests/rccl %s build/moongrid doctor"):format(env or ""))
  return out:match "rccl +([^\n]*)"
end

describe("without a ROCm", function()
  it("the refusal is that of nccl", function()
    local said = support.run "env -u LD_LIBRARY_PATH build/moongrid doctor":match "rccl +([^\n]*)"
    if said:find "^yes" then return pending "this machine has RCCL and a GPU" end
    assert.truthy(said:find(built and "^no +rccl: " or "^no +the rccl backend is not here: libmoongrid_rccl%.so"), said)
    local _, err, code = support.run "env -u LD_LIBRARY_PATH scripts/launch 2 build/moongrid run examples/moe.lua --backend rccl"
    assert.equal(4, code)
    assert.truthy(err:find(built and "rank 0: rccl: " or "rank 0: the rccl backend is not here: ", 1, true), err)
  end)
end)

if not library or not exists "build/standin/librccl.so.1" then return end

describe("on the stand-in under RCCL's names", function()
  teardown(support.clean)

  it("says what is here, and what is missing, in the words of HIP", function()
    local host = io.popen("hostname"):read "l"
    assert.truthy(doctor "STANDIN_DEVICES=8":find "^yes +RCCL 2%.%d+%.%d+ %(built with the headers of 2%.%d+%.%d+%), HIP 6%.3, driver 6%.3, 8 GPUs")
    assert.equal(("no   rccl: no GPU is visible on host %s (HIP_VISIBLE_DEVICES?); driver 6.3 and RCCL 2.27.7 are present"):format(host),
      doctor "STANDIN_DEVICES=0 STANDIN_NCCL_VERSION=22707")
    assert.equal(("no   rccl: no HIP driver on host %s (hipGetDeviceCount: hipErrorInsufficientDriver, driver version 0); RCCL 2.27.7 is present")
      :format(host), doctor "STANDIN_NO_DRIVER=1 STANDIN_NCCL_VERSION=22707")
    assert.equal(("no   rccl: this is RCCL 2.18.6; moongrid needs 2.19.0 or later (it was built with the headers of %s)")
      :format(doctor "STANDIN_DEVICES=8":match "headers of ([%d.]+)"), doctor "STANDIN_NCCL_VERSION=21806")
  end)

  it("all families of megatron on 16 ranks are made, proved and destroyed, strictly, and no CUDA is opened", function()
    local out, err, code = on(16, "build/moongrid run megatron tp=2 cp=2 pp=2 ep=2 etp=2 --backend rccl",
      "STANDIN_STRICT=1 STANDIN_DEVICES=16")
    assert.equal(0, code, err)
    assert.truthy(out:find("on all 16 ranks (208 memberships, rccl)", 1, true), out)
    assert.truthy(err:find("loaded as librccl.so.1", 1, true), err)
    assert.falsy(err:find("libnccl", 1, true), err)
  end)

  it("a family may ask for it by name, beside others on the CPU; its options count", function()
    local recipe = support.file [[return recipe { build = function(world)
      local g, t = grid(world, "a-b", { a = 2, b = fill }), topology(world)
      t.a = g "a":with { backend = "rccl", nccl = { max_ctas = 8 } }
      t.b = g "b":with { backend = "mpi" }
      return t
    end }]]
    local out, err, code = on(4, "build/moongrid run " .. recipe .. " --backend rccl", "STANDIN_DEVICES=4")
    assert.equal(0, code, err)
    assert.truthy(out:find("proved", 1, true), out)
    assert.falsy(err:find("without effect", 1, true), err)
    out, err, code = on(4, "build/moongrid run " .. recipe .. " --backend mpi")
    assert.equal("", out)
    assert.equal(1, code, err)
    assert.truthy(err:find("needs the backend 'rccl', and this job runs on mpi alone; start it with --backend rccl", 1, true), err)
  end)

  it("auto takes it where NCCL has no GPU", function()
    support.run "mkdir -p build/none && : > build/none/libnccl.so.2"
    local out, err, code = on(4, "env LD_LIBRARY_PATH=$PWD/build/none:$PWD/build/standin:$PWD/build/tests/rccl "
      .. "build/moongrid run examples/moe.lua tp=2", "STANDIN_DEVICES=4")
    assert.equal(0, code, err)
    assert.truthy(out:find("memberships, rccl)", 1, true), out)
  end)

  it("from Lua, over PMIx", function()
    local out, err, code = on(4, [[lua5.4 -e 'local j = assert(require "moongrid".rccl { carrier = "pmix" }) print(j.backend)']],
      "STANDIN_DEVICES=4")
    assert.equal(0, code, err)
    assert.equal(("rccl\n"):rep(4), out)
  end)

  it("what an RCCL lacks that follows an older NCCL is told", function()
    local recipe = support.file [[return recipe { build = function(world)
      local t = topology(world)
      t.a = grid(world, "a", { a = fill }) "a":with { windows = { kv = 4096 } }
      return t
    end }]]
    local _, err, code = on(2, "build/moongrid run " .. recipe .. " --backend rccl", "STANDIN_DEVICES=2 STANDIN_NCCL_VERSION=22105")
    assert.truthy(code ~= 0)
    assert.truthy(err:find("option 'windows' needs ncclCommWindowRegister, which came with NCCL 2.27.3; this is RCCL 2.21.5", 1, true), err)
  end)

  for mode, tests in pairs { use = 9, split = 6, shrink = 8, revoke = 2, blocking = 2, owners = 3 } do
    it("a C trainer: " .. mode, function()
      local out, err, code = on(8, "build/tests/nccl/trainer " .. mode, "STANDIN_STRICT=1")
      assert.equal(0, code, out .. err)
      assert.truthy(out:find(("1..%d\n"):format(tests), 1, true), out)
      assert.falsy(out:find "not ok", out)
    end)
  end

  it("moves carry tensors", function()
    local out, err, code = on(4, "build/tests/nccl/move", "STANDIN_STRICT=1")
    assert.equal(0, code, out .. err)
    assert.falsy(out:find "not ok", out)
  end)
end)
