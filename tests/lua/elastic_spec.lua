-- SPDX-License-Identifier: MIT
--
-- States that change while the job runs, and the resources that families request from NCCL besides communicators:
-- windows, device communicators, communicators split out of others. On the stand-in libraries (tests/nccl/standin),
-- which are not GPUs.

local support = dofile "tests/lua/support.lua"
local exists = support.exists
local on = support.on_standin

local function recipe_of(body)
  return support.file("return recipe { build = function(world)\n"
    .. "  local g, t = grid(world, 'tp-dp', { tp = 2, dp = fill }), topology(world)\n" .. body .. "\n  return t\nend }\n")
end

local function traced(path, rank)
  local file = assert(io.open(path .. "." .. rank))
  local lines = {}
  for line in file:lines() do
    local call, name = line:match "^(%l+) .-name=(%S+)"
    if not call then call, name = line:match "^(%l+) ", "" end
    if call and (name:find "^run/" or call == "unwindow" or call == "undevice") then
      lines[#lines + 1] = name == "" and call or call .. " " .. name
    end
  end
  file:close()
  return lines
end

describe("options that name other things", function()
  local cases = {
    ["t.tp = g 'tp':with { windows = { kv = 0 } }"] = "'kv' in option 'windows' is 1 to 1099511627776, not '0'",
    ["t.tp = g 'tp':with { windows = { kv = 1.5 } }"] = "'kv' of option 'windows' is a whole number, not a number",
    ["t.tp = g 'tp':with { windows = { 64 } }"] = "each number of option 'windows' needs a name as its key, not a number",
    ["t.tp = g 'tp':with { windows = 'kv' }"] = "option 'windows' is names and numbers such as \"kv=1048576\", not 'kv'",
    ["t.tp = g 'tp':with { windows = 'kv=1 kv=2' }"] = "'kv' is given twice in option 'windows'",
    ["t.tp = g 'tp':with { windows = '9=1' }"] = "'9' in option 'windows' is not a name: a letter or _, then letters, digits or _",
    ["t.tp = g 'tp':with { device = { barrier = 1 } }"] = "unknown number 'barrier' of option 'device'; nearest is 'barriers' "
      .. "(barriers, gin_connection, gin_counters, gin_signals, lsa_barriers, multimem, rail_barriers)",
    ["t.tp = g 'tp':with { device = { multimem = 2 } }"] = "'multimem' in option 'device' is 0 to 1, not '2'",
    ["t.tp = g 'tp':with { device = true }"] = "option 'device' is a table such as { name = number }, not a boolean",
    ["t.tp = g 'tp':with { parent = 5 }"] = "option 'parent' is the name of a family, not a number",
    ["t.tp = g 'tp':with { parent = 'a b' }"] = "option 'parent' is the name of a family, not 'a b'",
    ["t.tp = g 'tp':with { parent = 'dq' } t.dp = g 'dp'"] = "family 'tp': unknown parent 'dq'; nearest is 'dp' (dp)",
    ["t.tp = g 'tp':with { parent = 'tp' }"] = "family 'tp': its parent 'tp' is the family itself",
    ["t.tp = g 'tp':with { parent = 'all' } t.all = g('tp', 'dp')"] = "family 'tp': its parent 'all' is made later; put the parent before the family",
    ["t.all = g('tp', 'dp') t.tp = g 'tp':with { parent = 'all', lazy = true }"] =
      "family 'tp': its parent 'all' is made in the same call, so neither can be 'lazy'",
    ["t.all = g('tp', 'dp'):with { backend = 'none' } t.tp = g 'tp':with { parent = 'all' }"] =
      "family 'tp': its parent 'all' or the family itself has no communicators: its backend is 'none'",
    ["t.all = g('tp', 'dp'):with { backend = 'mpi' } t.tp = g 'tp':with { parent = 'all' }"] =
      "family 'tp': its parent 'all' has another backend",
    ["t.all = g('tp', 'dp'):pairs() t.tp = g 'tp':with { parent = 'all' }"] =
      "family 'tp': its parent 'all' or the family itself has groups that share ranks",
  }
  for body, message in pairs(cases) do
    it("refuses " .. body, function()
      local path = recipe_of(body)
      local out, err, code = support.run("build/moongrid plan " .. path .. " --world 8")
      assert.equal("", out)
      assert.equal(1, code)
      assert.truthy(err:find(message .. "\n", 1, true), err)
    end)
  end

  it("refuses a group that is not within one of its parent, on all ranks", function()
    local path = recipe_of "t.dp = g 'dp' t.all = g('tp', 'dp'):with { parent = 'dp' }"
    local _, err, code = support.run("scripts/launch 4 build/moongrid run " .. path .. " --backend mpi")
    assert.equal(1, code)
    assert.truthy(err:find("family 'all': group 0 is not within one group of its parent 'dp': rank 1 is outside\n", 1, true), err)
  end)

  it("counts windows as GPU memory, in whole allocations", function()
    local function memory(body)
      local path = recipe_of(body)
      local out = support.run("build/moongrid plan " .. path .. " --world 8 --json")
      return tonumber(out:match '"created": ?(%d+)')
    end
    local plain = memory "t.tp = g 'tp'"
    assert.equal(plain + 3 * 2097152, memory "t.tp = g 'tp':with { windows = { a = 1, b = 2097153 } }")
  end)
end)

local built = exists "build/libmoongrid_nccl.so" and exists "build/standin/libnccl.so.2"
if not built then return describe("elastic states", function() pending "no headers of NCCL" end) end

describe("on the stand-in", function()
  teardown(support.clean)

  -- mode = { tests, environment }
  local grown = "STANDIN_NCCL_VERSION=22907 STANDIN_STRICT=1"
  for name, case in pairs {
    ["windows are there, and gone before their communicator"] = { "windows", 7, "STANDIN_STRICT=1" },
    ["so is a device communicator"] = { "device", 3, "STANDIN_STRICT=1" },
    ["a device communicator of NCCL 2.29 has other requirements"] = { "device", 3, grown },
    ["memory is told, given back and taken again"] = { "suspend", 10, grown },
    ["an NCCL without that says so"] = { "old", 3, "STANDIN_STRICT=1" },
    ["a state grows"] = { "grow", 10, grown },
    ["before NCCL 2.29 it is made anew, and that is told"] = { "grow", 10,
      "STANDIN_STRICT=1 GROWN_SAYS='created again, because it needs ncclCommGrow, which came with NCCL 2.29.2; this is NCCL 2.28.9'" },
    ["with NCCL_COMM_ID, too"] = { "grow", 10, grown .. " NCCL_COMM_ID=localhost:1 GROWN_SAYS='created again, because NCCL_COMM_ID is set'" },
    ["a group whose old members come in another order is made anew"] = { "reordered", 10, grown .. " GROWN_SAYS='created again, because '" },
    ["a growth that fails is undone"] = { "failing", 5, "STANDIN_NCCL_VERSION=22907 NCCL_COMM_BLOCKING=0 STANDIN_FAIL_INIT=6:2" },
    ["but not what blocks inside of NCCL"] = { "failing", 5, "STANDIN_NCCL_VERSION=22907 STANDIN_FAIL_INIT=6:2" },
  } do
    it(name, function()
      local out, err, code = on(8, "build/tests/nccl/elastic " .. case[1], case[3])
      assert.truthy(out:find(("1..%d\n"):format(case[2]), 1, true), out .. err)
      assert.falsy(out:find "not ok", out .. err)
      if case[3]:find "STRICT" then assert.equal(0, code, out .. err) end
    end)
  end

  for name, case in pairs {
    ["NCCL without windows"] = { "kv=64", "", "STANDIN_NCCL_VERSION=22602", "option 'windows' needs "
      .. "ncclCommWindowRegister, which came with NCCL 2.27.3; this is NCCL 2.26.2" },
    ["NCCL without device communicators"] = { "", "barriers=1", "STANDIN_NCCL_VERSION=22803", "option "
      .. "'device' needs ncclDevCommCreate, which came with NCCL 2.28.7; this is NCCL 2.28.3" },
    ["NCCL whose network is to be asked for"] = { "", "gin_signals=1", "STANDIN_NCCL_VERSION=22907", "'gin_signals' of "
      .. "option 'device' uses the network since NCCL 2.29.7, for which gin_connection is 1 (between all members) or 2 "
      .. "(along rails); this is NCCL 2.29.7" },
    ["NCCL whose barriers use the network"] = { "", "barriers=1", "STANDIN_NCCL_VERSION=22907", "'barriers' of option "
      .. "'device' uses the network since NCCL 2.29.7, for which gin_connection is 1 (between all members) or 2 (along "
      .. "rails); within NVLink's reach, lsa_barriers do without; this is NCCL 2.29.7" },
    ["NCCL that connects its network unasked"] = { "", "gin_connection=1", "STANDIN_NCCL_VERSION=22809", "'gin_connection' "
      .. "of option 'device' came with NCCL 2.29.7; this is NCCL 2.28.9" },
    ["a machine on which NCCL registers nothing"] = { "kv=64", "", "STANDIN_NO_WINDOWS=1", "nccl: "
      .. "ncclCommWindowRegister gave no window for 'kv' of train/dp[" },
  } do
    it(name .. " is told on all ranks", function()
      local env = ("%s REFUSED_WINDOWS='%s' REFUSED_DEVICE='%s' REFUSED_SAYS=\"%s\""):format(case[3], case[1], case[2], case[4])
      local out, err = on(8, "build/tests/nccl/elastic refused", env)
      assert.truthy(out:find("1..2\n", 1, true), out .. err)
      assert.falsy(out:find "not ok", out .. err)
    end)
  end

  it("communicators are split out of that of their parent, and all are freed in reverse", function()
    local path = recipe_of [[
      t.all = g("tp", "dp"):with { nccl = { split_share = 1 } }
      t.tp = g "tp":with { parent = "all", windows = { kv = 65536, act = 4096 }, device = { lsa_barriers = 1 } }
      t.few = world:table({ { 1, 3 } }, "partial"):with { parent = "all" }]]
    local trace = os.tmpname()
    local out, err, code = on(8, "build/moongrid run " .. path .. " --backend nccl --timeout 5",
      "STANDIN_STRICT=1 STANDIN_TRACE=" .. trace)
    assert.equal(0, code, err)
    assert.truthy(out:find("proved +every communicator on all 8 ranks %(18 memberships, nccl%)"), out)
    local calls = {}
    for _, call in ipairs(traced(trace, 1)) do if not call:find "^%l+%-" then calls[#calls + 1] = call end end
    local wanted = { "init run/all[0]", "made run/tp[0]", "window run/tp[0]", "window run/tp[0]", "device run/tp[0]",
      "made run/few[0]", "undevice", "unwindow", "unwindow" }
    local at = 1
    for _, call in ipairs(calls) do if call == wanted[at] then at = at + 1 end end
    assert.equal(#wanted + 1, at, table.concat(calls, "\n"))
    for r = 0, 7 do os.remove(trace .. "." .. r) end
    os.remove(trace)
  end)

  it("a split that fails is an error on all ranks", function()
    local path = recipe_of 't.all = g("tp", "dp") t.tp = g "tp":with { parent = "all" }'
    local _, err, code = on(8, "build/moongrid run " .. path .. " --backend nccl --timeout 4",
      "NCCL_COMM_BLOCKING=0 STANDIN_FAIL_INIT=5:2")
    assert.equal(4, code, err)
    assert.truthy(err:find("moongrid: [rank 0/8] rank 5: nccl: ncclCommSplit for run/tp[2]: ", 1, true), err)
  end)

  it("scripts get windows, device communicators and memory", function()
    local path = support.file [[
      local mg = require "moongrid"
      local job = assert(mg.nccl())
      local world = mg.world(job.world)
      local t = mg.topology(world)
      t.dp = mg.grid(world, "dp", { dp = mg.fill }) "dp":with { windows = { kv = 4096 }, device = { lsa_barriers = 1 } }
      t.one = mg.grid(world, "x", { x = mg.fill }) ():with { windows = { kv = 4096 } }
      local state = assert(job:materialize(mg.plan(t), "train"))
      local w = state.dp:window "kv"
      local device, version = state.dp:device()
      local ok, why = pcall(state.dp.window, state.dp, "kw")
      local held = assert(state:held_memory())
      assert(state:suspend() and state:held_memory().suspended == 1 and state:resume())
      if state.rank == 0 then
        print(type(w.buffer), type(w.handle), w.bytes, type(device), version, why:match "family.*", state.one:window "kv",
          state.one:device(), held.total == held.suspendable + held.persistent, held.communicators)
      end
      state:close()]]
    local out, err, code = support.run(("export LUA_CPATH_5_4='build/?.so;;' LUA_PATH_5_4='lua/?.lua;;'; "
      .. "LD_LIBRARY_PATH=build/standin STANDIN_TAG=%s STANDIN_STRICT=1 STANDIN_NCCL_VERSION=22907 scripts/launch 4 lua5.4 %s"):format(
      support.tag, path))
    assert.equal(0, code, err)
    assert.equal("userdata\tuserdata\t4096\tuserdata\t22907\tfamily 'dp' has no window 'kw'; nearest is 'kv' (kv)\tnil\tnil\t"
      .. "true\t1\n", out)
  end)
end)
