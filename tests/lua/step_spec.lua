-- SPDX-License-Identifier: MIT
--
-- The step of a recipe: its words and their refusals, classes, verdicts, and the command.

local support = dofile "tests/lua/support.lua"
local json = require "dkjson"
local run, refuses = support.run, support.refuses

-- A recipe with tp 2, pp 2 and a rest of dp, and with this step.
local function recipe(step)
  return support.file("return recipe { params = { tp = 2, pp = 2, n = 3 }, build = function(world, p)\n"
    .. "local g = grid(world, 'tp-pp-dp', { tp = p.tp, pp = p.pp, dp = fill })\n"
    .. "local t = topology(world)\n"
    .. "t.dense, t.tp, t.pp, t.dp = g, g 'tp', g 'pp', g 'dp'\n"
    .. "t.ends = g 'pp':pick(0)\n"
    .. "return t end,\n"
    .. "step = function(s, p)\n" .. step .. "\nend }")
end

local function step(text, world, arguments)
  local file = recipe(text)
  local out, err, code = run(("build/moongrid step %s --world %d %s --json"):format(file, world or 8, arguments or ""))
  os.remove(file)
  assert.equal("", err)
  return json.decode(out), code
end

describe("a step", function()
  it("is evaluated once for each class of ranks", function()
    local one = step "s:all_reduce(s.dp, 8)"
    assert.equal(1, one.classes)
    assert.equal("", one.reads)
    local stages = step("if s.pp.position == 0 then s:barrier(s.dp) end", 64, "pp=4")
    assert.equal(4, stages.classes)
    assert.equal(2, stages.programs)
    assert.equal("pp.position", stages.reads)
    assert.equal(64, step("s:mark(tostring(s.rank))", 64).classes)
    assert.equal(2, step("if s.ends then s:barrier(s.ends) end", 64, "pp=4").classes)
    assert.equal(3, step("s:mark(tostring(s.dense.pp))", 48, "pp=3").classes)
    assert.equal(1, step("s:mark(tostring(s.tp:at(0).position))", 64).classes)
    assert.equal(32, step("s:mark(tostring(s.tp:at(0).rank))", 64).classes)
  end)

  it("costs the same on a million ranks, with loops of any length", function()
    local big = step([[s:loop(10^12, function()
      if s.pp:prev() then s:recv(s.pp, s.pp:prev(), 8) end
      s:loop(10^5, function() s:all_reduce(s.tp, 8) end)
      if s.pp:next() then s:send(s.pp, s.pp:next(), 8) end
    end)]], 1048576, "tp=8 pp=16")
    assert.equal(16, big.classes)
    assert.equal("proved", big.verdict)
    assert.equal(10 ^ 17, big.families.tp.calls)
  end)

  it("has the fields of --json", function()
    local all, code = step [[s:alloc("weights", 100) s:mark "forward" s:alloc("act", 50) s:free "act"
      s:loop(3, function() s:all_reduce(s.tp, 8) end)
      s:on("grads"):reduce_scatter(s.dp, 16) s:wait "grads"]]
    assert.equal(0, code)
    assert.same({ verdict = "proved", classes = 1, programs = 1, operations = 32, digest = all.digest, reads = "", rules = "nccl",
      families = { tp = { calls = 3, bytes = 24 }, dp = { calls = 1, bytes = 16 } }, counterexample = {}, message = "",
      memory = { peak = 150, at = "forward", rank = 0, by = { weights = 100, act = 50 } } }, all)
  end)

  it("takes all operations", function()
    local all = step [[for _, o in ipairs { "all_reduce", "all_gather", "reduce_scatter", "all_to_all" } do s[o](s, s.tp, 8, { type = "bf16" }) end
      for _, o in ipairs { "broadcast", "reduce", "gather", "scatter" } do s[o](s, s.tp, 8, { root = 1 }) s[o](s, s.tp, 8, s.tp.last) end
      s:all_to_all(s.tp, { 4, 5 })
      s:barrier(s.tp)
      s:sendrecv(s.tp, s.tp:next(true), s.tp:prev(true), 8)
      s:group(function() s:send(s.tp, s.tp:next "wrap", 8) s:recv(s.tp, s.tp:prev "wrap", 8) s:barrier(s.dp) end)
      local e = s:on("side"):event()
      s:wait(e) s:host_wait "side"
      s:compute { flops = 1e12, bytes = 5, seconds = 0.5, name = "layer" }]]
    assert.equal("proved", all.verdict)
    assert.equal(8 * 18, all.operations)
  end)

  it("is inherited, wrapped, and read from a file", function()
    local base = recipe "s:loop(p.n, function() s:all_reduce(s.tp, 8) end)"
    local folder = base:match "^(.*)/"
    local name = base:match "[^/]*$"
    local function told(text, more)
      local file = support.file(text)
      local out = run(("build/moongrid step %s --world 8 --json %s"):format(file, more or ""))
      os.remove(file)
      return json.decode(out)
    end
    assert.truthy(folder)
    assert.equal(3, told(("return recipe { base = './%s' }"):format(name)).families.tp.calls)
    assert.equal(5, told(("return recipe { base = './%s', params = { n = 4 }, step = function(s, p, base) base(s) s:barrier(s.tp) end }")
      :format(name)).families.tp.calls)
    local own = support.file "return function(s, p, base) base(s) s:barrier(s.dp) end"
    assert.equal(1, told(("return recipe { base = './%s' }"):format(name), "--step " .. own).families.dp.calls)
    os.remove(own)
    os.remove(base)
  end)

  it("ends with the exit code 1, and the shortest counterexample, unless it is proved", function()
    local all, code = step [[if s.pp.position == 0 then
  s:all_reduce(s.tp, 8)
  s:send(s.pp, 1, 8)
else
  s:send(s.pp, 0, 8)
  s:all_reduce(s.tp, 8)
end
if s.pp.position == 0 then s:recv(s.pp, 1, 8) else s:recv(s.pp, 0, 8) end]]
    assert.equal(1, code)
    assert.equal("cycle", all.verdict)
    assert.equal("rank 0 (pp 0) waits in send(pp to 1) line 10 for rank 2 (pp 1), which waits in send(pp to 0) line 12 for rank 0",
      all.message)
    local file = all.counterexample[1].file
    assert.same({ { rank = 0, operation = "send", family = "pp", line = 10, file = file, waits_for = 2, bytes = 8 },
                  { rank = 2, operation = "send", family = "pp", line = 12, file = file, waits_for = 0, bytes = 8 } },
      all.counterexample)
  end)

  it("is proved by check, too", function()
    local bad = recipe "if s.pp.position == 0 then s:barrier(s.pp) end"
    local out, _, code = run("build/moongrid check " .. bad .. " --world 8,16 --json")
    assert.equal(1, code)
    assert.equal("the step is not proved (unmatched): rank 0 (pp 0) waits in barrier(pp) line 8 for rank 2 (pp 1), which does not "
      .. "make that call: it has ended", json.decode(out)[1].message)
    assert.equal(false, json.decode(out)[2].laws.step)
    os.remove(bad)
  end)

  it("is refused with one error at its line", function()
    local function refused(text, message, exit)
      local file = recipe(text)
      local name = file
      refuses(("step %s --world 8"):format(file), exit or 1, ("moongrid: %s:%s"):format(name, message))
      os.remove(file)
    end
    refused("s:all_reduce(s.tp, -1)", "8: all_reduce: bytes are a whole number of 0 or more, not -1.0")
    refused("s:all_reduce(s.tp, 2.5)", "8: all_reduce: bytes are a whole number of 0 or more, not 2.5; a // b divides whole numbers")
    refused("s:all_reduce(s.tp, 2^60)", "8: all_reduce: bytes are 9007199254740992 at most, not 1.1529215046068e+18")
    refused("s:all_reduce(s.tp)", "8: all_reduce: bytes are a whole number of 0 or more, not nil")
    refused("s:all_reduce(s.tpp, 8)", "8: unknown family or operation of a step 'tpp'; nearest is 'tp' (dp, pp, tp, ends, all_reduce, all_gather, "
      .. "reduce_scatter, all_to_all, broadcast, reduce, gather, scatter, barrier, send, recv, sendrecv, group, loop, compute, alloc, free, mark, "
      .. "event, wait, host_wait, on)")
    refused("s:all_reduce('tp', 8)", "8: all_reduce(group, bytes): the group is one of s, as s.tp, not a string")
    refused("s:all_reduce(s.ends, 8)", "8: all_reduce(group, bytes): the group is nil, so this rank is in none of that family; ask first: "
      .. "if s.tp then ...")
    refused("s:send(s.pp, 2, 8)", "8: send(pp): position 2 is none of its group of 2; nearest is 1")
    refused("s:send(s.pp, s.tp:at(0), 8)", "8: send: the member is one of tp, not of pp")
    refused("s:send(s.pp, s.pp:at(7), 8)", "8: send(pp): nil is no position; one of 0 to 1 would do")
    refused("s:all_to_all(s.tp, { 1 })", "8: all_to_all(tp): the list has 1 bytes, and the group 2 members: one for each")
    refused("s:all_to_all(s.tp, { 1, -2 })", "8: all_to_all: bytes are a whole number of 0 or more, not -2.0")
    refused("s:all_to_all(s.tp, { 2^52, 2^52 + 1 })", "8: all_to_all: bytes are 9007199254740992 at most, in all")
    refused("s:broadcast(s.tp, 8, { rot = 1 })", "8: unknown option of an operation 'rot'; nearest is 'root' (type, root)")
    refused("s:wait 'grads'", "8: wait: nothing was put on the stream 'grads' before; there are none")
    refused("s:on('grads'):barrier(s.tp)\ns:wait 'grad'", "9: wait: nothing was put on the stream 'grad' before; nearest is 'grads' (grads)")
    refused("local function f() s:loop(2, f) end\nf()", "8: loops of a step nest 16 deep at most; does one call itself?", 3)
    refused("s:loop(2^50, function() s:loop(2^50, function() s:mark 'x' end) end)",
      "8: up to here the step has more than 2^60 operations on one rank", 3)
    refused("local function f() return 1 + f() end f()", "8: the recipe needs more than 64 MiB of memory", 3)
    refused("s:loop(1e300, function() end)", "8: loop: iterations are 9007199254740992 at most, not 1e+300")
    refused("s:loop(0/0, function() end)", "8: loop: iterations are a whole number of 0 or more, not nan")
    refused("s:all_reduce(s.tp, 0/0)", "8: all_reduce: bytes are a whole number of 0 or more, not nan")
    refused("for i = 1, 100 do s:on('x' .. i):barrier(s.tp) end", "8: a step has 32 streams at most", 3)
    refused("s.step = 1", "8: a Step cannot be changed")
    refused("s:loop(3)", "8: loop(n, function): what it repeats is a function, not nil")
    refused("s:group { 1 }", "8: group(function): what starts together is called by a function, not a table")
    refused("s:loop(-1, function() end)", "8: loop: iterations are a whole number of 0 or more, not -1.0")
    refused("s:group(function() s:compute { flops = 1 } end)",
      "8: compute goes before or after a group, which has only operations that start together")
    refused("s:group(function() s:loop(2, function() end) end)",
      "8: a group has sends, receives and collectives in it, and no loops or groups")
    refused("s:compute { flops = -1 }", "8: compute: flops is a number of 0 or more, not -1.0")
    refused("s:compute { flop = 1 }", "8: unknown field of compute 'flop'; nearest is 'flops' (flops, bytes, seconds, name)")
    refused("s:alloc('a', 1) s:free 'b'", "8: unknown name of s:alloc 'b'; known: a")
    refused("pcall(function() s:loop(2, function() error 'x' end) end)", "8: an error left this block of the step, and was caught")
    refused("while true do end", "8: the recipe runs for more than 200000000 instructions", 3)
    refused("while true do s:barrier(s.tp) end", "8: the step has more than 2097152 entries; s:loop(n, function() ... end) keeps a loop as one", 3)
  end)

  it("may not change what its next evaluation sees", function()
    local file = support.file [[local n = 0
      return recipe { build = function(world) local t = topology(world) t.all = grid(world, "a", { a = fill }) "a" return t end,
      step = function(s) n = n + 1 s:mark(tostring(n)) end }]]
    refuses("step " .. file .. " --world 8", 1, "moongrid: the step made another program for rank 0 when it was evaluated again: it may "
      .. "not change anything that the next evaluation sees")
    os.remove(file)
    refuses("step examples/moe.lua --world 8", 1, "moongrid: the recipe examples/moe.lua has no step: step = function(s, p) ... end "
      .. "makes one, or a file of its own")
  end)
end)

describe("plan:step", function()
  local moongrid = require "moongrid"

  it("has each rank's program, and the verdict", function()
    local file = recipe [[s:loop(p.n, function() s:all_reduce(s.tp, 8, { type = "bf16" }) end)
      if s.pp:next() then s:on("side"):send(s.pp, s.pp:next(), 16) else s:recv(s.pp, 0, 16) end]]
    local plan = moongrid.load(file):plan(8, { n = 5 })
    local programs = plan:step()
    assert.same({ 2, true }, { programs.classes, (programs:prove()) })
    assert.same({ 0, 1 }, { programs:class(0), programs:class(7) % 2 })
    assert.is_nil(programs:class(8))
    assert.same({ { operation = "loop", times = 5, line = 8, body = { { operation = "all_reduce", family = "tp", bytes = 8, type = "bf16", line = 8 } } },
                  { operation = "send", family = "pp", stream = "side", to = 1, bytes = 16, line = 9 } }, programs:program(0))
    assert.has_error(function() programs:program(8) end)
    os.remove(file)
    assert.same({ false, "mismatch", "rank 0 (all 0) is in all_to_all(all) of 1048576 bytes line 14, and rank 4 (all 4) in "
      .. "reduce_scatter(all) of 1048576 bytes line 16" }, { moongrid.load "examples/steps/all_to_all.lua":plan(8):step():prove() })
  end)

  it("has all that an entry says", function()
    local file = recipe [[s:compute { flops = 2e9, bytes = 64, seconds = 0.5, name = "layer" }
      s:on "side":all_to_all(s.tp, { 4, 5 })
      local e = s:on "side":event()
      s:wait "side" s:wait(e) s:host_wait "side"
      s:alloc("a", 5) s:free "a" s:mark "end"]]
    assert.same({
      { operation = "compute", flops = 2e9, bytes = 64, seconds = 0.5, name = "layer", line = 8 },
      { operation = "all_to_all", family = "tp", stream = "side", bytes = 9, by_position = "4,5", line = 9 },
      { operation = "event", stream = "side", line = 10 },
      { operation = "wait", waits_for = "side", line = 11 }, { operation = "wait", waits_for = "side", line = 11 },
      { operation = "host_wait", waits_for = "side", line = 11 },
      { operation = "alloc", name = "a", bytes = 5, line = 12 }, { operation = "free", name = "a", line = 12 },
      { operation = "mark", name = "end", line = 12 },
    }, moongrid.load(file):plan(8):step():program(0))
    os.remove(file)
  end)

  it("refuses a plan of no recipe, and a recipe without a step", function()
    local world = moongrid.world(4)
    local function message(f) return (select(2, pcall(f)):gsub("^.-:%d+: ", "")) end
    assert.equal("the step of a plan is its recipe's: recipe:plan(...) makes one that has it",
      message(function() moongrid.plan(moongrid.topology(world)):step() end))
    assert.equal("the recipe examples/moe.lua has no step: step = function(s, p) ... end makes one, or a file of its own",
      message(function() moongrid.load "examples/moe.lua":plan(8):step() end))
  end)
end)

describe("run --step", function()
  local file

  before_each(function()
    file = recipe [[s:loop(p.n, function() s:all_reduce(s.tp, 4096) end)
      s:sendrecv(s.dp, s.dp:next(true), s.dp:prev(true), 64)]]
  end)
  after_each(function() os.remove(file) end)

  it("executes the step on every rank, and measures it", function()
    local out, err, code = run(("scripts/launch 8 build/moongrid run %s --step 3 --json"):format(file))
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
    local out, err, code = run(("scripts/launch 8 build/moongrid run %s pp=1 --step 2 --json"):format(own))
    assert.equal(0, code, err)
    local all = json.decode(out)
    assert.same({ 24, 24, 3 * (4 * 4000 + 100000) }, { all.families.dp.calls, all.families.dp.planned_calls, all.families.dp.bytes })
    os.remove(own)
  end)

  it("writes what each rank did, as a trace", function()
    local trace = os.tmpname()
    local out, err, code = run(("scripts/launch 8 build/moongrid run %s --step 2 -o %s"):format(file, trace))
    assert.equal(0, code, err)
    assert.truthy(out:find("trace          " .. trace .. ", of the last step: opens in Perfetto", 1, true), out)
    local calls, names = {}, {}
    for _, e in ipairs(json.decode(support.read(trace)).traceEvents) do
      if e.ph == "X" then
        calls[e.cat] = (calls[e.cat] or 0) + 1
        assert.is_true(e.dur >= 0 and e.ts >= 0 and e.pid < 8 and e.tid == 0)
        assert.equal(e.cat == "tp" and 8 or 9, e.args.line)
        assert.equal(e.cat == "tp" and 4096 or 64, e.args.planned[1].bytes)
      elseif e.name == "process_name" then
        names[#names + 1] = e.args.name
      end
    end
    assert.same({ tp = 24, sendrecv = 8 }, calls)
    assert.equal(8, #names)
    os.remove(trace)
    local _, why, failed = run(("scripts/launch 2 build/moongrid run %s tp=1 pp=1 --step 1 -o /nowhere/trace"):format(file))
    assert.equal(1, failed)
    assert.truthy(why:find("rank 0: /nowhere/trace: No such file or directory", 1, true), why)
  end)

  it("has what was planned beside it, on a machine", function()
    local trace = os.tmpname()
    local command = ("scripts/launch 8 build/moongrid run %s --step 2 --machine 'node:2[50GB/s] gpu:4[100GB/s]'"):format(file)
    local out, err, code = run(command .. " --json -o " .. trace)
    assert.equal(0, code, err)
    local all = json.decode(out)
    local price = json.decode((run(("build/moongrid step %s --world 8 --rules mpi --machine 'node:2[50GB/s] gpu:4[100GB/s]' --json"):format(file))))
    assert.near(price.seconds, all.planned, 1e-12)
    assert.near(price.families.tp.seconds, all.families.tp.planned_seconds, 1e-12)
    local planned, names = 0, {}
    for _, e in ipairs(json.decode(support.read(trace)).traceEvents) do
      if e.ph == "X" and e.tid == 100 then planned = planned + 1 end
      if e.name == "thread_name" and e.pid == 3 then names[#names + 1] = e.args.name end
    end
    assert.same({ 8 * (3 + 2), "main", "main, planned" }, { planned, names[1], names[2] }) -- a sendrecv travels both ways
    os.remove(trace)
  end)

  it("is state:run_step, and state:step in Lua", function()
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
      local function refused(message, options)
        local ok, told = pcall(state.run_step, state, options)
        assert(not ok and told:gsub("^.-:%%d+: ", "") == message, told)
      end
      refused("unknown option of run_step 'step'; nearest is 'steps' (steps, scale, compute, timeout, unproved, trace, file)", { step = 3 })
      refused("run_step: steps is a number above 0, not -3", { steps = -3 })
      refused("run_step: steps is a whole number, not 2.5", { steps = 2.5 })
      refused("run_step: scale is a number above 0, not a string", { scale = "1" })
      refused("run_step: compute is sleep or gemm, not 'now'", { compute = "now" })
      refused("run_step: trace is a string, not a boolean", { trace = true })
      refused("rank 0: /nowhere/trace: No such file or directory", { trace = "/nowhere/trace" })
      refused("rank 0: cannot open /nowhere.lua: No such file or directory", { file = "/nowhere.lua" })
      -- ranks whose steps differ
      local path = os.tmpname()
      local own = assert(io.open(path, "w"))
      own:write(("return function(s) s:all_reduce(s.tp, %%d) end"):format(job.rank == 2 and 16 or 8))
      own:close()
      local ok, told = pcall(state.step, state, path)
      assert(not ok and told:find "ranks differ: rank 0 has the step %%x+, rank 2 has the step %%x+", told)
      os.remove(path)
      local other = assert(job:materialize(mg.plan(mg.topology(mg.world(job.world)))))
      ok, told = pcall(other.step, other)
      assert(not ok and told:find("the step of a state is its recipe's: recipe:plan(...) makes a plan that has it", 1, true), told)
      other:close()
      state:close()
      job:close()
      print "good"]]):format(file))
    local out, err, code = run(("LUA_CPATH_5_4='build/?.so;;' scripts/launch 4 lua5.4 %s"):format(script))
    assert.equal(0, code, err)
    assert.equal(4, select(2, out:gsub("good", "")), out)
    os.remove(script)
  end)

  it("refuses what is not proved, and with --unproved names the call that does not end", function()
    local _, err, code = run "scripts/launch 4 build/moongrid run examples/steps/family_order.lua --step 1"
    assert.equal(1, code)
    assert.truthy(err:find("the step is not proved under the rules of MPI (cycle), --unproved runs it: rank 0 (dp 0, node 0) waits in "
      .. "reduce_scatter(dp) line 15 for rank 2", 1, true), err)
    _, err, code = run "scripts/launch 4 build/moongrid run examples/steps/family_order.lua --step 1 --unproved --timeout 2"
    assert.equal(4, code)
    assert.truthy(err:find("after 2 seconds not all ranks had come: rank 2 is not there, in a step over run/dp[0]: rank 0 in "
      .. "reduce_scatter(dp) examples/steps/family_order.lua:15 of the step", 1, true), err)
  end)

  it("refuses bad options", function()
    for arguments, message in pairs {
      ["--step 0"] = "--step is an integer from 1 to 2147483647, not '0'",
      ["--step 1 --scale 0"] = "--scale is a number above 0, as 0.01, not '0'",
      ["--step 1 --compute now"] = "sleep",
    } do
      local _, err, code = run(("scripts/launch 1 build/moongrid run %s tp=1 pp=1 %s"):format(file, arguments))
      assert.equal(2, code, arguments)
      assert.truthy(err:find(message, 1, true), err)
    end
  end)
end)

describe("the examples of steps", function()
  local told = {
    attn_tp = { "unmatched", "rank 0 (tp 0) waits in all_reduce(tp) line 18 for rank 4 (tp 4), which does not make that call: it has ended" },
    family_order = { "cycle", "rank 0 (dp 0, node 0) waits in reduce_scatter(dp) line 15 for rank 2 (dp 1, node 0), which waits in "
      .. "all_to_all(node) line 18 for rank 3 (dp 1, node 1), which waits in reduce_scatter(dp) line 15 for rank 1 (dp 0, node 1), which "
      .. "waits in all_to_all(node) line 18 for rank 0" },
    all_to_all = { "mismatch", "rank 0 (all 0) is in all_to_all(all) of 1048576 bytes line 14, and rank 8 (all 8) in reduce_scatter(all) "
      .. "of 1048576 bytes line 16" },
    side_stream = { "hazard", "rank 0 (pp 0, model 0) waits in broadcast(model) line 14 for rank 8 (pp 1, model 8), which waits in "
      .. "recv(pp from 0) line 15 for rank 0" },
    three_communicators = { "hazard", "rank 1 (tp_cp 1, cp_dp 0) waits in all_reduce(cp_dp) line 14 for rank 3 (tp_cp 3, cp_dp 1), which "
      .. "waits in all_reduce(tp_cp) line 13 for rank 1" },
  }
  for name, expected in pairs(told) do
    it("explain " .. name, function()
      local out, _, code = run(("build/moongrid step examples/steps/%s.lua --world 16 --json"):format(name))
      assert.equal(1, code)
      assert.same(expected, { json.decode(out).verdict, json.decode(out).message })
      out, _, code = run(("build/moongrid step examples/steps/%s.lua --world 16 fixed=true --json"):format(name))
      assert.equal(0, code)
      assert.equal("proved", json.decode(out).verdict)
    end)
  end
end)
describe("steps.transformer", function()
  local function told(name, world, arguments)
    local out, err, code = run(("build/moongrid step %s --world %d %s --json"):format(name, world, arguments))
    assert.equal("", err)
    assert.equal(0, code, arguments)
    return json.decode(out)
  end

  it("is proved for every schedule, recompute, ZeRO stage and kind of parallelism", function()
    local n = 0
    for _, schedule in ipairs { "1f1b", "gpipe", "zero_bubble" } do
      for _, pp in ipairs { 1, 2, 4, 8 } do
        for zero = 0, 3 do
          local all = told("megatron", 64, ("tp=%d pp=%d schedule=%s zero=%d overlap=%s recompute=%s sequence_parallel=%s"):format(
            2, pp, schedule, zero, tostring(zero % 2 == 1), ({ "none", "selective", "full", "none" })[zero + 1], tostring(zero > 1)))
          assert.equal("proved", all.verdict)
          n = n + 1
        end
      end
    end
    assert.equal(48, n)
    for _, arguments in ipairs { "pp=2 interleave=2", "pp=4 interleave=2", "pp=4 interleave=4 layers=64", "pp=8 interleave=2 global_batch=64",
                                 "pp=4 interleave=2 global_batch=8 tp=8", "cp=2 pp=2", "ep=4 experts=16 pp=2", "ep=2 etp=2 experts=8 tp=2" } do
      assert.equal("proved", told("megatron", 64, arguments).verdict, arguments)
    end
  end)

  it("is carried by the systems' recipes, and ends under MPI's rules, too", function()
    for name, arguments in pairs { megatron = "tp=2 pp=2 cp=2", deepspeed = "tp=2 pp=2", picotron = "tp=2 pp=2 cp=2",
                                   torchtitan = "tp=2 pp=2 cp=2 dp_replicate=2" } do
      assert.equal("proved", told(name, 32, arguments .. " --rules mpi").verdict, name)
    end
  end)

  it("counts what its formulas say", function()
    local all = told("megatron", 1024, "tp=8 pp=8 layers=96 hidden=12288 heads=96 seq=2048 global_batch=512")
    local act = 2048 * 12288 * 2
    assert.equal(512 // 16 * 12 * 4, all.families.tp.calls) -- microbatches x layers x (2 forward, 2 backward)
    assert.equal(512 // 16 * 12 * 4 * act, all.families.tp.bytes)
    assert.equal(512 // 16 * 4, all.families.pp.calls)
    assert.equal(8, all.classes)
    local layer = 12 * 12288 ^ 2 / 8
    assert.equal((12 * layer + 12288 * 51200 / 8) * 4, all.families.dp_cp.bytes)
    assert.equal(512 // 16 * 12 * 10, told("megatron", 1024, "tp=8 pp=8 layers=96 global_batch=512 sequence_parallel=true").families.tp.calls)
  end)

  it("leaves plans as they are unless a parameter is given", function()
    local plan = json.decode((run "build/moongrid plan picotron --world 8 --json"))
    assert.is_nil(plan.params.layers)
    assert.equal(64, json.decode((run "build/moongrid plan picotron --world 8 layers=64 --json")).params.layers)
  end)

  it("refuses what does not fit", function()
    local function refused(arguments, message, exit) refuses("step megatron --world 64 " .. arguments, exit or 1, message) end
    local line = 0
    for text in io.lines "lua/moongrid/recipes/megatron.lua" do
      line = line + 1
      if text:find("steps.transformer", 1, true) then break end
    end
    local function at(message) return ("moongrid: megatron:%d: %s"):format(line, message) end
    refused("pp=4 layers=30", at "steps.transformer: layers 30 is no multiple of pp, 4; nearest: 28 or 32")
    refused("tp=8 global_batch=9", at "steps.transformer: global_batch 9 is no multiple of replicas x micro_batch, 8; nearest: 8 or 16")
    refused("interleave=2", at "steps.transformer: interleave 2 needs pp of 2 or more and the schedule 1f1b")
    refused("zero=4", at "steps.transformer: zero is 0 to 3, not 4; nearest is 3")
    refused("experts=6 ep=4", at "steps.transformer: experts 6 is no multiple of ep, 4; nearest: 4 or 8")
    refused("schedule=2f2b", "moongrid: unknown schedule of steps.transformer '2f2b'; known: 1f1b, gpipe, zero_bubble")
    refused("weight_type=fp4", "moongrid: unknown weight_type of steps.transformer 'fp4'; nearest is 'fp8' (bf16, fp16, fp32, fp8)")
  end)
end)

describe("the price of a step", function()
  local nodes = "'node:*[50GB/s,2us] gpu:4[300GB/s,1us]'"
  local text = "s:alloc('weights', 8) s:compute { name = 'layer', flops = 4e9 } s:all_gather(s.tp, 3e9) "
    .. "if s.pp.position == 0 then s:send(s.pp, 1, 10^9) else s:recv(s.pp, 0, 10^9) end"
  local costs = support.file '{ "call": 0, "flops": 4e12, "source": "a test" }'

  it("has the fields of --json", function()
    local all, code = step(text, 8, "tp=4 pp=2 --machine " .. nodes .. " --costs " .. costs)
    local seconds = 1e-3 + (3e-6 + 0.0075) + (2e-6 + 0.08)
    assert.equal(0, code)
    assert.near(seconds, all.seconds, 1e-12)
    assert.near(1e-3, all.compute, 1e-12)
    assert.near(seconds - 1e-3, all.exposed, 1e-12)
    assert.near(0, all.bubble, 1e-12)
    assert.same({ "node:*[50GB/s,2us] gpu:4[300GB/s,1us]", 4e12, "a test", 2, 0 },
      { all.machine, all.flops, all.source, all.types, all.hidden })
    assert.same({ link = "node 0", level = "node", domain = 0, bytes = 4e9, seconds = 0.08 }, all.busiest)
    assert.near(0.080002, all.families.pp.seconds, 1e-12)
    all.families.pp.seconds = nil
    assert.same({ calls = 1, bytes = 10 ^ 9, algorithms = { send = "direct", recv = "direct" },
      levels = { node = { calls = 4, bytes = 4e9 }, gpu = { calls = 4, bytes = 4e9 } } }, all.families.pp)
    assert.same({ gpu = { calls = 2, bytes = 8 * 3e9 * 3 / 4 } }, all.families.tp.levels)
    assert.same({ all_gather = "ring" }, all.families.tp.algorithms)
    local without = step(text, 8, "tp=4 pp=2")
    assert.same({ calls = 1, bytes = 10 ^ 9 }, without.families.pp)
    for _, name in ipairs { "seconds", "exposed", "bubble", "busiest", "machine" } do assert.is_nil(without[name]) end
  end)

  it("takes costs from a machine's JSON, and flops from the command line", function()
    local machine = support.file('{ "levels": [{ "name": "node", "counts": [2], "bandwidth": 50e9, "latency": 2e-6 },'
      .. ' { "name": "gpu", "counts": [4], "bandwidth": 300e9, "latency": 1e-6 }], "costs": { "call": 0, "flops": 4e12 } }')
    local all = step(text, 8, "tp=4 pp=2 --machine " .. machine)
    assert.near(0.088505, all.seconds, 1e-12)
    assert.near(0.088505 - 0.5e-3, step(text, 8, "tp=4 pp=2 --flops 8T --machine " .. machine).seconds, 1e-12)
    os.remove(machine)
  end)

  it("says to what it was fitted, and the error", function()
    local file = support.file('{ "call": 0, "flops": 4e12, "measured": [["send", "node", 2, 1e9, 0.025], '
      .. '["send", "node", 2, 1e9, 0.025], ["send", "node", 2, 2e9, 0.055]] }')
    local line = "build/moongrid step %s --world 8 tp=4 pp=2 --machine %s --costs %s"
    local recipe_file = recipe(text)
    local out = run(line:format(recipe_file, nodes, file))
    assert.equal("node fitted to 3 measured calls: a hop takes 0, 0.777 of the bandwidth; error 2.9% at the median, at most 6.4%",
      out:match "node fitted[^\n]*")
    local fit = json.decode((run(line:format(recipe_file, nodes, file) .. " --json"))).fits.node
    assert.same({ 3, 0 }, { fit.measured, fit.latency })
    assert.near(1 - 0.0514623 / 0.055, fit.worst_error, 1e-4)
    os.remove(file)
    os.remove(recipe_file)
  end)

  it("is the same from Lua", function()
    local file = recipe(text)
    local moongrid = require "moongrid"
    local plan = moongrid.load(file):plan(8, { tp = 4, pp = 2 })
    local all = plan:step():price { machine = nodes:sub(2, -2), costs = { call = 0, flops = 4e12 } }
    assert.near(0.088505, all.seconds, 1e-12)
    assert.same({ peak = 8, at = "", rank = 0, by = { weights = 8 } }, all.memory)
    local mpi = plan:step():price { machine = nodes:sub(2, -2), costs = { call = 0 }, flops = 4e12, rules = "mpi" }
    assert.same({ all_gather = "doubling" }, mpi.families.tp.algorithms)
    assert.near(0.088504, mpi.seconds, 1e-12)
    local function message(...) return (select(2, pcall(plan:step().price, plan:step(), ...)):gsub("^.-:%d+: ", "")) end
    assert.equal('a price needs a machine: price { machine = "dgx-h100" }, or a recipe that has one', message {})
    assert.equal("unknown option of a price 'machin'; nearest is 'machine' (machine, rules, eager, flops, costs)", message { machin = "" })
    assert.equal("flops of a price is a number from 0 on", message { machine = "dgx-h100", flops = -1 })
    assert.equal("costs of a price are a table, as { flops = 4e14 }", message { machine = "dgx-h100", costs = print })
    os.remove(file)
  end)

  it("is printed", function()
    local out = run("build/moongrid step megatron --world 64 tp=8 pp=4 layers=32 --machine dgx-h100")
    local price = out:match "time of the step.-\n\ndigest"
    assert.equal([[time of the step 112 ms on node:*[400GB/s] gpu:8[450GB/s] rail = gpu[50GB/s], 989 TFLOP/s
  computes      44.1 ms  39.2%  of the mean rank
  exposed       51.6 ms  45.9%  bytes move, and nothing computes
  bubble        16.7 ms  14.8%  neither: it waits for other ranks, or has ended
  hidden              0   0.0%  bytes move next to computes, as part of these

  family                           time  bytes out of domains, of all ranks; algorithms
  dp_cp                         18.2 ms  node 51.1 GiB, gpu 51.1 GiB; all_reduce by ring
  tp                            25.2 ms  gpu 512.0 GiB; all_reduce by nvls
  pp                            21.9 ms  node 24.0 GiB, gpu 24.0 GiB; send by direct, recv by direct

busiest link: out of node 2 10.0 GiB, 26.8 ms of the step at its bandwidth

digest]], price)
  end)

  it("is refused with what is missing", function()
    local file = recipe(text)
    local function refused(arguments, message, code)
      local _, err, got = run(("build/moongrid step %s --world 8 tp=4 pp=2 %s"):format(file, arguments))
      assert.equal("moongrid: " .. message .. "\n", (err:gsub("\nmoongrid step %-%-help.-\n", "\n")))
      assert.equal(code, got)
    end
    refused("--flops 4T", "--flops needs a machine: --machine dgx-h100, or levels, as 'node:*[50GB/s] gpu:8[300GB/s]'", 2)
    refused("-o x.svg", "--output needs a machine: --machine dgx-h100, or levels, as 'node:*[50GB/s] gpu:8[300GB/s]'", 2)
    refused("--machine dgx-h100 -o x.pdf", "--output is a file that ends with .svg, .html or .json, not 'x.pdf'", 2)
    refused("--machine dgx-h100 --flops fast", "--flops is what a GPU does in a second, as 400e12 or 400T, not 'fast'", 2)
    refused("--machine dgx-h100 -o /none/x.svg", "cannot write /none/x.svg: No such file or directory", 3)
    refused("--machine " .. nodes, "compute 'layer', line 8, has flops, and what a GPU of the machine does in a second is not known: "
      .. "flops, as in --flops 400T", 1)
    os.remove(file)
  end)

  it("is compared by diff --step", function()
    local out, err, code = run "build/moongrid diff megatron --world 64 tp=8 pp=4 layers=32 vs tp=8 pp=4 layers=32 zero=1 --step --exit-code"
    assert.same({ "", 1 }, { err, code })
    assert.equal([[
families: calls, bytes and time of the rank with the most; bytes out of domains, of all
~ dp_cp            calls                           1 -> 2            +100.0%
~ dp_cp            bytes                   868.0 MiB -> 1.27 GiB     +50.0%

memory of the rank with the most
~ peak             bytes                    9.56 GiB -> 8.29 GiB     -13.3%
~ optimizer        bytes                    2.54 GiB -> 1.27 GiB     -50.0%
]], out)
    out = run "build/moongrid diff megatron --world 64 tp=8 pp=4 vs tp=8 pp=1 --step --machine dgx-h100 --json"
    local all, of = json.decode(out), {}
    for _, row in ipairs(all.changes) do of[row.name .. " " .. row.what] = row end
    assert.is_true(all.differ)
    assert.equal(all.from.seconds, of["seconds seconds"].from)
    assert.equal(all.to.seconds, of["seconds seconds"].to)
    assert.same({ all.from.families.pp.seconds, 0 }, { of["pp seconds"].from, of["pp seconds"].to })
    assert.same({ all.from.families.pp.levels.node.bytes, 0 }, { of["pp bytes out of node"].from, of["pp bytes out of node"].to })
    assert.equal("the steps cost the same\n", (run "build/moongrid diff megatron --world 64 tp=8 vs tp=8 --step"))
    assert.equal("", select(2, run "build/moongrid diff picotron --world 8 vs tp=2 --step"))
    local _, refused, failed = run "build/moongrid diff examples/moe.lua --world 8 vs examples/moe.lua --step"
    assert.same({ "moongrid: the recipe examples/moe.lua has no step: step = function(s, p) ... end makes one, or a file of its own\n", 1 },
      { refused, failed })
  end)

  describe("is drawn", function()
    local function picture(ending, arguments)
      local name = os.tmpname() .. ending
      local out, err, code = run(("build/moongrid step megatron --world 64 tp=8 %s --machine dgx-h100 -o %s"):format(arguments or "pp=4", name))
      assert.same({ "", 0 }, { err, code })
      assert.is_truthy(out:find("verdict proved", 1, true))
      local all = support.read(name)
      os.remove(name)
      return all
    end

    it("as SVG with a row for each stage and stream", function()
      local svg = picture ".svg"
      local rows = {}
      for row in svg:gmatch 'class="row">(.-)</text>' do rows[#rows + 1] = row end
      assert.same({ "pp 0", "pp 1", "pp 2", "pp 3" }, rows)
      for _, kind in ipairs { "forward", "backward", "optimizer", "tp", "pp", "dp_cp", "waits for others" } do
        assert.is_truthy(svg:find('class="note">' .. kind .. "</text>", 1, true), kind)
      end
      local two = picture(".svg", "pp=4 overlap=true zero=1")
      assert.is_truthy(two:find('class="row">pp 3 data</text>', 1, true))
      -- no column holds more than the height of its row, and none is outside the chart
      for x, width in svg:gmatch "M([%d.]+) [%d.]+h(%d+)" do assert.is_true(tonumber(x) + width <= 1200 + 60) end
      local big = picture(".svg", "pp=8 layers=64 global_batch=4096")
      assert.is_true(#big < 2e6)
    end)

    it("as a page without network, whose data are escaped", function()
      local page = picture ".html"
      assert.is_nil(page:find "https?://")
      local data = json.decode((page:match('<script type="application/json" id="data">(.-)</script>')))
      assert.equal(4, #data.rows)
      assert.equal("pp 3", data.rows[4].label)
      local last, waited = 0, 0
      for i, bars in ipairs(data.bars) do
        local at = 0
        assert.equal(0, #bars % 5)
        for k = 1, #bars, 5 do
          at = at + bars[k] + bars[k + 1] + bars[k + 2]
          assert.is_true(bars[k + 1] >= 0 and bars[k + 2] >= 0 and bars[k + 3] < #data.texts and bars[k + 4] < #data.rows)
          if bars[k + 4] >= 0 then waited = waited + 1 end
          if bars[k + 1] > 0 then assert.is_true(bars[k + 4] >= 0 and bars[k + 4] ~= i - 1) end
        end
        last = math.max(last, at)
      end
      assert.near(data.seconds * 1e9, last, 1)
      assert.is_true(waited > 0)
    end)

    it("with names of any characters", function()
      local file = recipe [[s:compute { name = '</script><b>&"\1', seconds = 1 } s:all_reduce(s.dp, 8)]]
      for _, ending in ipairs { ".svg", ".html", ".json" } do
        local name = os.tmpname() .. ending
        local _, err, code = run(("build/moongrid step %s --world 8 --machine dgx-h100 -o %s"):format(file, name))
        assert.same({ "", 0 }, { err, code })
        local all = support.read(name)
        if ending == ".json" then
          assert.equal(4, #json.decode(all).traceEvents) -- names of a process and a thread, two slices
        else
          assert.is_nil(all:find("<b>", 1, true))
        end
        os.remove(name)
      end
      os.remove(file)
    end)

    it("as events, whose slices do not overlap", function()
      local all = json.decode(picture ".json")
      local until_of, names, waits = {}, {}, 0
      for _, e in ipairs(all.traceEvents) do
        if e.ph == "M" and e.name == "process_name" then names[e.pid] = e.args.name end
        if e.ph == "X" then
          local thread = e.pid * 1000 + e.tid
          assert.is_true(e.ts >= (until_of[thread] or 0) - 1e-6)
          until_of[thread] = e.ts + e.dur
          if e.name == "waits" then waits = waits + 1 end
        end
      end
      assert.same({ [0] = "pp 0: 16 ranks from 0", "pp 1: 16 ranks from 16", "pp 2: 16 ranks from 32", "pp 3: 16 ranks from 48" }, names)
      assert.is_true(waits > 0)
    end)
  end)
end)
