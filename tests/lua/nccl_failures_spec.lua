-- SPDX-License-Identifier: MIT
--
-- Failures under the nccl backend, on the stand-in libraries (tests/nccl/standin): ranks that are late, die or never
-- come; creations, collectives, shrinks and aborts that fail or do not end.

local support = dofile "tests/lua/support.lua"
local on, messages = support.on_standin, support.of_rank_0

if not support.exists "build/standin/libnccl.so.2" then return it("needs the stand-in libraries", function() end) end

describe("on the stand-in", function()
  teardown(support.clean)

  it("a rank that never joins a creation that blocks is told, in time; its thread stays until the process ends", function()
    local started = os.time()
    local _, err, code = on(8, "build/moongrid run examples/moe.lua tp=2 pp=2 ep=2 --backend nccl --timeout 3",
      "STANDIN_MISSING=3:2")
    assert.equal(4, code, err)
    -- creations go on side by side, so that the one that rank 3 never joins may be that of any of its groups
    local of = messages(err):match("^rank %d: nccl: run/[%w_]+%[%d%] was not made within 3 seconds: rank %d of it waits for "
      .. "some of its %d ranks: ([%d ]+)$")
    assert.truthy(of and (" " .. of .. " "):find(" 3 ", 1, true), err)
    assert.is_true(os.time() - started < 20)
  end)

  it("a rank that dies ends the job", function()
    local started = os.time()
    local _, err, code = on(8, "build/moongrid run examples/moe.lua tp=2 pp=2 --backend nccl --timeout 3", "STANDIN_DIE=2:1")
    assert.is_true(code ~= 0, err)
    assert.is_true(os.time() - started < 20)
    support.clean() -- left by the process that died
  end)

  it("a rank that is late is waited for", function()
    local _, err, code = on(8, "build/moongrid run examples/moe.lua tp=2 pp=2 --backend nccl --timeout 20",
      "STANDIN_LATE=3:1 STANDIN_STRICT=1")
    assert.equal(0, code, err)
  end)

  it("what a failed collective leaves is of no use, nor can its memory be given back", function()
    local script = support.file [[
      local mg = require "moongrid"
      local job = assert(mg.nccl { timeout = 5 })
      local t = mg.topology(mg.world(4))
      t.all = mg.grid(mg.world(4), "a", { a = 4 }) "a"
      local state = assert(job:materialize(mg.plan(t)))
      local buffer = state.all:buffer(1)
      local lost = "nccl: all[0] cannot be used after a failure"
      assert(not state.all:allreduce(buffer))
      local done, why = state.all:allreduce(buffer)
      assert(not done and why == lost, why)
      done, why = state:suspend()
      assert(not done and why == "rank 0: " .. lost, why)
      io.write("fine\n"):flush()
      os.execute "sleep 0.5" -- the launcher ends all when the first one exits without finalizing
      os.exit(true)
    ]]
    local out, err = on(4, "env LUA_CPATH_5_4=build/?.so lua5.4 " .. script, "STANDIN_NCCL_VERSION=22907 STANDIN_ASYNC_ERROR=1:1")
    assert.equal(("fine\n"):rep(4), out, err)
  end)

  it("a failed creation leaves nothing behind that the next one stumbles over", function()
    local out, err, code = on(8, "build/tests/nccl/trainer failing", "STANDIN_FAIL_INIT=3:3")
    assert.equal(0, code, out .. err)
    assert.truthy(out:find("1..3\n", 1, true), out)
  end)

  -- mode = { tests, environment, all ranks end as they should }
  for mode, case in pairs {
    latched = { 7 }, nonblocking = { 7 }, gone = { 3 }, mixed = { 3, "STANDIN_ASYNC_ERROR=4:1" },
    shrunk = { 1, "STANDIN_STRICT=1", true }, host = { 3, "STANDIN_STRICT=1", true },
    beside = { 3, "STANDIN_STRICT=1", true }, busy = { 3 }, retries = { 1, "STANDIN_FAIL_INIT=3:0" },
  } do
    it("where NCCL is hard: " .. mode, function()
      local out, err, code = on(8, "build/tests/nccl/recovery " .. mode, case[2])
      assert.truthy(out:find(("1..%d\n"):format(case[1]), 1, true), out .. err)
      assert.falsy(out:find "not ok", out .. err)
      if case[3] then assert.equal(0, code, out .. err) end
    end)
  end

  it("a shrink that fails is made good, and a new communicator that fails is told at once", function()
    for _, env in ipairs { "STANDIN_FAIL_INIT=4:3", "STANDIN_FAIL_INIT=4:3 STANDIN_ASYNC_ERROR=4:1",
      -- on one host an abort waits for the others, so that rank 6 cannot fail before rank 4 begins
      "MOONGRID_TEST_HOSTS=8 SLOW=0:4 STANDIN_ASYNC_ERROR=4:1 CUDARIG_FAIL=6:cudaDeviceSynchronize:2" } do
      local out, err = on(8, "build/tests/nccl/recovery worse", env)
      assert.truthy(out:find("ok 2 - in time\n1..2\n", 1, true), out .. err)
      assert.falsy(out:find "not ok", out .. err)
    end
  end)

  it("before NCCL 2.22 each abort has a thread", function()
    local out, err = on(8, "build/tests/nccl/recovery latched", "STANDIN_NCCL_VERSION=22105")
    assert.truthy(out:find("ok 7 - and all ends in time\n1..7\n", 1, true), out .. err)
    assert.falsy(out:find "not ok", out .. err)
  end)

  it("an abort that waits for ever has a deadline, and is told", function()
    local out, err = on(8, "build/tests/nccl/recovery stays")
    assert.truthy(out:find("ok 2 - what does not end is left behind, and told\n1..2\n", 1, true), out .. err)
    assert.falsy(out:find "not ok", out .. err)
  end)

  it("a rank that does not come to a creation is named on every other one", function()
    local out, err = on(4, "build/tests/nccl/trainer late")
    assert.truthy(out:find("ok 1 - all come\nok 2 - who does not come is named on every other rank\n1..2\n", 1, true),
      out .. err)
  end)
end)
