-- SPDX-License-Identifier: MIT
--
-- The step of a recipe: its words and their refusals, classes, verdicts, the examples, and steps.transformer.

local support = dofile "tests/lua/support.lua"
local json = require "dkjson"
local shared = dofile "tests/lua/step_recipe.lua"
local run, refuses = support.run, support.refuses
local recipe, step = shared.recipe, shared.step

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
    assert.same({ verdict = "proved", assumes = { { "dp", "tp" } }, classes = 1, programs = 1, operations = 32, digest = all.digest, reads = "", rules = "nccl",
      families = { tp = { calls = 3, bytes = 24 }, dp = { calls = 1, bytes = 16 } }, counterexample = {}, message = "",
      memory = { peak = 150, at = "forward", rank = 0, by = { weights = 100, act = 50 } } }, all)
  end)

  it("does not wait for a stream on which nothing is", function()
    local all = step([[if s.pp.position == 0 then s:on("side"):barrier(s.tp) end
      s:wait "side" s:host_wait "side" s:wait "none" s:all_reduce(s.tp, 8)]], 8, "tp=4 pp=2")
    assert.equal("proved", all.verdict)
    assert.equal(8 + 4, all.operations)
  end)

  it("says what its proof assumes, and what removes that", function()
    local text = [[s:on("side"):all_reduce(s.dp, 8) %s s:all_reduce(s.tp, 8) s:wait "side"]]
    for between, assumes in pairs { [""] = { { "dp", "tp" } }, ['s:wait "side"'] = false, ['s:host_wait "side"'] = false,
                                    ['s:wait(s:on("side"):event())'] = false } do
      local all, code = step(text:format(between))
      assert.same({ 0, "proved", assumes or nil }, { code, all.verdict, all.assumes }, between)
    end
    for more in pairs { ['concurrent = { "dp", "tp" },'] = true, ['options'] = true } do
      local own = support.file(([[return recipe { params = { tp = 4 }, %s
        build = function(world, p)
          local g, t = grid(world, "tp-dp", { tp = p.tp, dp = fill }), topology(world)
          local o = { nccl = { launch_order_implicit = %s } }
          t.dp, t.tp = g "dp":with(o), g "tp":with(o)
          return t
        end, step = function(s) %s end }]]):format(more ~= "options" and more or "", tostring(more == "options"), text:format ""), ".lua")
      assert.is_nil(json.decode((run(("build/moongrid step %s --world 8 --json"):format(own)))).assumes, more)
    end
    local out = run(("build/moongrid step %s --world 8"):format(recipe(text:format "")))
    assert.equal("proved, assuming that calls of dp and tp fit on a GPU together, or start in one\n", out:match "^.-\n")
    assert.truthy(out:find("verdict proved under the rules of NCCL: every rank reaches the end of its program, under the assumptions of the first line", 1, true))
    assert.truthy((run "build/moongrid check megatron --world 16 tp=2 overlap=true"):find("\nthe proof of the step assumes that calls of dp_cp and tp", 1, true))
    assert.is_nil((run "build/moongrid check megatron --world 16 tp=2"):find "assumes")
    assert.same({ { "tp_dp", "cp_dp" }, { "tp_dp", "tp_cp" }, { "cp_dp", "tp_cp" } },
      json.decode((run "build/moongrid step examples/steps/three_communicators.lua --world 16 ordered=true --json")).assumes)
  end)

  it("creates lazy communicators at their first calls, with all members", function() -- PiPPy#969
    local function told(lazy, rest, arguments)
      local file = support.file(([[return recipe { build = function(world)
        local g, t = grid(world, "pp", { pp = fill }), topology(world)
        t.all = g "pp":twin()
        t.pp = g "pp":with { lazy = %s }
        return t
      end, step = function(s)
        local at = s.pp.position
        if at == 0 then s:send(s.pp, 1, 8) elseif at == 1 then s:recv(s.pp, 0, 8) end
        %s
      end }]]):format(lazy, rest), ".lua")
      local all = json.decode((run(("build/moongrid step %s --world 4 %s --json"):format(file, arguments or ""))))
      os.remove(file)
      return all
    end
    local hurried = "s:all_reduce(s.all, 8) if at == 2 then s:send(s.pp, 3, 8) elseif at == 3 then s:recv(s.pp, 2, 8) end"
    assert.equal("proved", told("true", hurried).verdict) -- the host goes on
    assert.equal("cycle", told("true", hurried, "--rules mpi").verdict)
    local rest = "s:all_reduce(s.all, 8) s:host_wait 'main' if at == 2 then s:send(s.pp, 3, 8) elseif at == 3 then s:recv(s.pp, 2, 8) end"
    for _, rules in ipairs { "", "--rules mpi" } do
      assert.equal("proved", told("false", rest, rules).verdict)
      local all = told("true", rest, rules)
      assert.equal("cycle", all.verdict)
      assert.equal("rank 0 (pp 0, all 0) waits in the creation of pp at its first call, send(pp to 1) line 8 for rank 2 (pp 2, all 2), which "
        .. "waits in all_reduce(all) line 9 for rank 0", all.message)
      assert.equal("create", all.counterexample[1].operation)
      assert.equal("proved", told("true", "s:barrier(s.pp) " .. rest, rules).verdict)
    end
    local all = told("true", "")
    assert.equal("unmatched", all.verdict)
    assert.equal("rank 0 (pp 0) waits in the creation of pp at its first call, send(pp to 1) line 8 for rank 2 (pp 2), which does not make "
      .. "that call: it has ended", all.message)
    assert.equal("proved", told("true", "s:on('side'):all_reduce(s.all, 8) s:barrier(s.pp) s:host_wait 'side'").verdict)
    assert.equal("cycle", told("true", "s:on('side'):all_reduce(s.all, 8) s:host_wait 'side' s:barrier(s.pp)").verdict)
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
      return json.decode(out)
    end
    assert.truthy(folder)
    assert.equal(3, told(("return recipe { base = './%s' }"):format(name)).families.tp.calls)
    assert.equal(5, told(("return recipe { base = './%s', params = { n = 4 }, step = function(s, p, base) base(s) s:barrier(s.tp) end }")
      :format(name)).families.tp.calls)
    local own = support.file "return function(s, p, base) base(s) s:barrier(s.dp) end"
    assert.equal(1, told(("return recipe { base = './%s' }"):format(name), "--step " .. own).families.dp.calls)
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

  it("ends with the exit code 3 at a limit, and says what is proved", function()
    local file = recipe [[local function nest(d)
      if d > 0 then return s:loop(3, function() nest(d - 1) end) end
      for i = 1, 4000 do s:mark "m" end
      s:barrier(s.tp)
    end
    nest(16)]]
    for _, command in ipairs { "step", "check" } do
      local out, err, code = run(("build/moongrid %s %s --world 8"):format(command, file))
      assert.equal(3, code, out .. err)
      local says = "the proof of the step takes more than 200000000 instructions; proved so far: "
        .. "all ranks get to operation %d+ of %d+ or further, rank 0 is last, in line %d+"
      assert.truthy((out .. err):gsub("%s+", " "):find(says), out .. err)
    end
    os.remove(file)
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

  it("lets sends of any number of bytes go on", function()
    local file = recipe "local g = s.pp if g:next() then s:send(g, g:next(), 4 << 30) end if g:prev() then s:recv(g, g:prev(), 4 << 30) end"
    for _, bytes in ipairs { "4294967296", "9007199254740992" } do
      local _, err, code = run(("build/moongrid step %s --world 8 --rules mpi --eager %s"):format(file, bytes))
      assert.same({ "", 0 }, { err, code })
    end
    refuses(("step %s --world 8 --rules mpi --eager 9007199254740993"):format(file), 2,
      "moongrid: --eager is an integer from 1 to 9007199254740992, the number of bytes, not '9007199254740993'")
    os.remove(file)
  end)

  it("is refused with one error at its line", function()
    local function refused(text, message, exit)
      local file = recipe(text)
      local name = file
      refuses(("step %s --world 8"):format(file), exit or 1, ("moongrid: %s:%s"):format(name, message))
    end
    refused("s:all_reduce(s.tp, -1)", "8: all_reduce: bytes are a whole number of 0 or more, not -1")
    refused("s:all_reduce(s.tp, 2.5)", "8: all_reduce: bytes are a whole number of 0 or more, not 2.5; a // b divides whole numbers")
    refused("s:all_reduce(s.tp, 2^60)", "8: all_reduce: bytes are 9007199254740992 at most, not 1.1529215046068e+18")
    refused("s:all_reduce(s.tp)", "8: all_reduce: bytes are a whole number of 0 or more, not nil")
    refused("s:all_reduce(s.tpp, 8)", "8: unknown family or operation of a step 'tpp'; nearest is 'tp' (dp, pp, tp, ends, all_reduce, all_gather, "
      .. "reduce_scatter, all_to_all, broadcast, reduce, gather, scatter, barrier, send, recv, sendrecv, group, loop, compute, alloc, free, mark, "
      .. "event, wait, host_wait, on)")
    refused("s:all_reduce('tp', 8)", "8: all_reduce(group, bytes): the group is a group of s, as s.tp, not a string")
    refused("s:all_reduce(s.ends, 8)", "8: all_reduce(group, bytes): the group is nil, because this rank is in no group of the family; ask first: "
      .. "if s.tp then ...")
    refused("s:send(s.pp, 2, 8)", "8: send(pp): position 2 is not in the group of 2; nearest is 1")
    refused("s:send(s.pp, s.tp:at(0), 8)", "8: send: the member is one of tp, not of pp")
    refused("s:send(s.pp, s.pp:at(7), 8)", "8: send(pp): nil is not a position; positions are 0 to 1")
    refused("s:all_to_all(s.tp, { 1 })", "8: all_to_all(tp): the list has length 1, and needs one number for each of the 2 members of the group")
    refused("s:all_to_all(s.tp, { 1, -2 })", "8: all_to_all: bytes are a whole number of 0 or more, not -2")
    refused("s:all_to_all(s.tp, { 2^52, 2^52 + 1 })", "8: all_to_all: bytes are 9007199254740992 at most, in all")
    refused("s:broadcast(s.tp, 8, { rot = 1 })", "8: unknown option of an operation 'rot'; nearest is 'root' (type, root)")
    refused("local function f() s:loop(2, f) end\nf()", "8: loops of a step nest 16 deep at most; does one call itself?", 3)
    refused("s:loop(2^50, function() s:loop(2^50, function() s:mark 'x' end) end)",
      "8: up to here the step has more than 2^60 operations on one rank", 3)
    refused("local function f() return 1 + f() end f()", "8: the recipe needs more than 64 MiB of memory", 3)
    refused("s:loop(1e300, function() end)", "8: loop: iterations are 9007199254740992 at most, not 1e+300")
    refused("s:loop(0/0, function() end)", "8: loop: iterations are a whole number of 0 or more, not nan")
    refused("s:all_reduce(s.tp, 0/0)", "8: all_reduce: bytes are a whole number of 0 or more, not nan")
    refused("for i = 1, 100 do s:on('x' .. i):barrier(s.tp) end", "8: a step has 32 streams at most", 3)
    refused("s.step = 1", "8: a Step cannot be changed")
    refused("s:loop(3)", "8: loop(n, function): the loop repeats a function, not nil")
    refused("s:group { 1 }", "8: group(function): the operations that start together are made by a function, not a table")
    refused("s:loop(-1, function() end)", "8: loop: iterations are a whole number of 0 or more, not -1")
    refused("s:group(function() s:compute { flops = 1 } end)",
      "8: compute goes before or after a group, which has only operations that start together")
    refused("s:group(function() s:loop(2, function() end) end)",
      "8: a group has sends, receives and collectives in it, and no loops or groups")
    refused("s:compute { flops = -1 }", "8: compute: flops is a number of 0 or more, not -1")
    refused("s:compute { flop = 1 }", "8: unknown field of compute 'flop'; nearest is 'flops' (flops, bytes, seconds, name)")
    refused("s:alloc('a', 1) s:free 'b'", "8: unknown name of s:alloc 'b'; known: a")
    refused("pcall(function() s:loop(2, function() error 'x' end) end)", "8: an error left this block of the step, and was caught")
    refused("while true do end", "8: the recipe runs for more than 200000000 instructions", 3)
  end)

  it("may not change what its next evaluation sees", function()
    local file = support.file [[local n = 0
      return recipe { build = function(world) local t = topology(world) t.all = grid(world, "a", { a = fill }) "a" return t end,
      step = function(s) n = n + 1 s:mark(tostring(n)) end }]]
    refuses("step " .. file .. " --world 8", 1, "moongrid: the step made another program for rank 0 when it was evaluated again: it may "
      .. "not change anything that the next evaluation sees")
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
    local file_name = "examples/steps/all_to_all.lua"
    assert.same({ false, "mismatch", "rank 0 (all 0) is in all_to_all(all) of 1048576 bytes line 14, and rank 4 (all 4) in "
      .. "reduce_scatter(all) of 1048576 bytes line 16",
      { { rank = 0, waits_for = 4, operation = "all_to_all", family = "all", file = file_name, line = 14, bytes = 1048576 },
        { rank = 4, waits_for = 0, operation = "reduce_scatter", family = "all", file = file_name, line = 16, bytes = 1048576 } } },
      { moongrid.load(file_name):plan(8):step():prove() })
  end)

  it("has what moongrid step prints", function()
    local file = recipe [[s:mark "a" s:alloc("w", 16) s:alloc("x", 8) s:free "x"
      s:loop(p.n, function() s:all_reduce(s.tp, 8) end)
      if s.pp.position == 0 then s:send(s.pp, 1, 16) else s:recv(s.pp, 0, 16) end]]
    local made = moongrid.load(file):plan(8, { tp = 4, pp = 2, n = 5 }):step()
    assert.same({ 2, 2, 48 }, { made.classes, made.programs, made.operations })
    assert.same({ { family = "pp", what = "position", nth = 0 } }, made.reads)
    assert.same({ 1, 4 }, { made:class(7) })
    assert.same({ families = { tp = { calls = 5, bytes = 40 }, pp = { calls = 1, bytes = 16 } },
                  memory = { peak = 24, at = "a", rank = 0, by = { w = 16, x = 8 } } }, made:sums())
    assert.equal("Step of 8 ranks: 2 classes, 2 programs, 48 operations; it reads pp.position\ndigest " .. made.digest, tostring(made))
    assert.same({ operation = "loop", times = 5, line = 9, file = file, after = 7 }, made:entry(0, 5))
    assert.same({ operation = "all_reduce", family = "tp", bytes = 8, line = 9, file = file, after = 7 }, made:entry(0, 6))
    assert.has_error(function() made:entry(0, 8) end)
    assert.equal(run(("build/moongrid step %s --world 8 tp=4 pp=2 n=5 --rank 5"):format(file)), made:text(5))
    assert.equal(made:text(0) .. made:text(4), made:text())
    local own = recipe "if s.pp.position == 0 then s:recv(s.pp, 1, 16) s:send(s.pp, 1, 16) else s:recv(s.pp, 0, 16) s:send(s.pp, 0, 16) end"
    local both = moongrid.load(own):plan(2, { tp = 1, pp = 2 }):step()
    assert.is_false((both:prove()))
    local swap = recipe "s:send(s.pp, 1 - s.pp.position, 16) s:recv(s.pp, 1 - s.pp.position, 16)"
    local sent = moongrid.load(swap):plan(2, { tp = 1, pp = 2 }):step()
    assert.same({ false, true, false }, { (sent:prove "mpi"), (sent:prove("mpi", 16)), (sent:prove("mpi", 15)) })
    assert.equal("eager is a number of bytes, not -1", (select(2, pcall(sent.prove, sent, "mpi", -1)):gsub("^.-:%d+: ", "")))
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
  end)

  it("refuses a plan of no recipe, and a recipe without a step", function()
    local world = moongrid.world(4)
    local function message(f) return (select(2, pcall(f)):gsub("^.-:%d+: ", "")) end
    assert.equal("the plan has no recipe, and so no step: recipe:plan(...) makes a plan with its recipe",
      message(function() moongrid.plan(moongrid.topology(world)):step() end))
    assert.equal("the recipe examples/moe.lua has no step: step = function(s, p) ... end makes one, or a file of its own",
      message(function() moongrid.load "examples/moe.lua":plan(8):step() end))
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
      assert.is_nil(json.decode(out).assumes)
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

  it("has loops in place of microbatches, in virtual stages, too", function()
    for _, arguments in ipairs { "", "overlap=true", "overlap_p2p=true", "experts=8 moe_every=2" } do
      for rank = 0, 24, 8 do -- of each stage
        local lines = {}
        for i, rounds in ipairs { 6, 600 } do
          local line = "build/moongrid step megatron --world 32 pp=4 layers=32 vpp=4 global_batch=%d %s --rank %d"
          lines[i] = select(2, run(line:format(rounds * 4 * 8, arguments, rank)):gsub("\n", "\n"))
        end
        assert.equal(lines[1], lines[2], arguments .. " of rank " .. rank)
        assert.is_true(lines[1] > 20)
      end
    end
  end)

  it("is carried by the systems' recipes, and ends under MPI's rules, too", function()
    for name, arguments in pairs { megatron = "tp=2 pp=2 cp=2", picotron = "tp=2 pp=2 cp=2",
                                   torchtitan = "tp=2 cp=2 dp_replicate=2 spmd_backend=partial_dtensor version=0.3.0" } do
      assert.equal("proved", told(name, 32, arguments .. " --rules mpi").verdict, name)
    end
    local apart = told("torchtitan", 8, "dp_shard=4 dp_replicate=2")
    assert.is_true(apart.digest ~= told("torchtitan", 8, "dp_shard=8").digest)
    assert.same({ 1 + 32 + 32 + 33, 33 }, { -- gathers forward and backward, and gradients
      apart.families.dp_shard.calls / 4, apart.families.dp_replicate.calls / 4 })
    local _, before = support.read("lua/moongrid/recipes/torchtitan.lua"):match("^(.*)steps%.fsdp2"):gsub("\n", "")
    refuses("step torchtitan --world 16 pp=2", 1, "moongrid: torchtitan:" .. before + 1 .. ": steps.fsdp2: pp 2: a step of FSDP2 with it has not "
      .. "been recorded, so its calls are not known; pp 1 would do")
    for _, words in ipairs { "torchtitan --world 16 pp=2", "megatron --world 16 ep=2", "mindspeed --world 16 tp=2" } do
      local out, err = run("build/moongrid check " .. words)
      assert.same({ "", nil }, { err, out:find "step" }, words)
    end
    refuses("step mindspeed --world 16", 1, "moongrid: the recipe mindspeed has no step: step = function(s, p) ... end makes one, or a file "
      .. "of its own")
  end)

  it("counts what its formulas say", function()
    local all = told("megatron", 1024, "tp=8 pp=8 layers=96 hidden=12288 heads=96 seq=2048 global_batch=512")
    local act = 2048 * 12288 * 2
    -- of the last stage: microbatches x (layers x (2 forward, 2 backward), the head, 3 of cross entropy)
    assert.equal(512 // 16 * (12 * 4 + 1 + 3), all.families.tp.calls)
    assert.equal(512 // 16 * ((12 * 4 + 1) * act + 3 * 2048 * 4), all.families.tp.bytes)
    assert.equal(512 // 16 * 4, all.families.pp.calls)
    assert.equal(8, all.classes)
    local h = 12288
    local layer = (12 * h ^ 2 + 7 * h) / 8 + 6 * h -- matrices and their biases; two norms and the biases of rows
    assert.equal((12 * layer + h * 51200 / 8 + h * 2048) * 4, all.families.dp_cp.bytes) -- the first stage has positions
    assert.same({ 1, h * 51200 / 8 * 4 }, { all.families.embd.calls, all.families.embd.bytes })
    assert.same({ 1, 4 }, { all.families.mp.calls, all.families.mp.bytes })
    -- layers x (4 forward, 6 backward), the head 3, 3 of cross entropy; once the norms
    assert.equal(512 // 16 * (12 * 10 + 6) + 1,
      told("megatron", 1024, "tp=8 pp=8 layers=96 global_batch=512 sequence_parallel=true").families.tp.calls)
  end)

  it("makes what megatron-core 0.16.1 was seen to make beyond the recorded cases", function()
    local small = "layers=2 hidden=64 heads=8 vocab=512 seq=64 bias=false global_batch=8 tp=2 "
    -- the router's counts are summed only where gradients are on: not in the pass before the one that is computed again
    local experts = small .. "ep=2 sequence_parallel=true experts=4 moe_ffn=128 shared_ffn=128 aux_loss=true "
    assert.equal(4, told("megatron", 8, experts).families.tp_cp.calls)
    assert.equal(4, told("megatron", 8, experts .. "recompute=full").families.tp_cp.calls)
    -- without sequence parallelism only gradients of the norms of queries and keys are summed over tp: 2 layers x 2 norms
    -- x (weight, bias) x 8, and without those none
    local norms = small .. "recompute=none qk_norm=true"
    assert.equal(2 * 2 * 2 * 8 * 4, told("megatron", 8, norms).families.tp.bytes - told("megatron", 8, small).families.tp.bytes)
    -- buckets of new weights of experts arrive in the order in which experts use them
    local text = run("build/moongrid step megatron --world 8 " .. experts .. "zero=1 overlap=gradients,weights bucket=9000 --rank 0")
    local sizes = {}
    for n in text:gmatch "all_gather%(expt_dp%) (%d+) bytes" do sizes[#sizes + 1] = math.tointeger(tonumber(n)) end
    assert.same({ 16384, 24576, 24576 }, table.move(sizes, 1, 3, 1, {}))
  end)

  it("takes the arguments of Megatron-LM, and what the plan has", function()
    local function digest(arguments) return told("megatron", 16, arguments).digest end
    assert.equal(digest "layers=8 hidden=64 heads=8 gated=true norm=rms positions=rope tied=false bias=false zero=1 overlap=gradients",
      digest("num_layers=8 hidden_size=64 num_attention_heads=8 swiglu=true normalization=RMSNorm position_embedding_type=rope "
        .. "untie_embeddings_and_output_weights=true disable_bias_linear=true use_distributed_optimizer=true overlap_grad_reduce=true"))
    assert.equal(digest "pp=2 vpp=2", digest "pp=2 interleave=2")
    assert.are_not.equal(digest "pp=2 vpp=2", digest "pp=2")
    assert.equal(digest "instances=2", digest "instances=2 zero=1")
    assert.are_not.equal(digest "tp=2 ep=2 experts=4 etp=1", digest "tp=2 ep=2 experts=4 etp=2")
    refuses("step megatron --world 64 pp=4 vpp=2 interleave=4", 1, ("moongrid: megatron:%d: steps.transformer: interleave 4 is not vpp, 2; leave "
      .. "out interleave or vpp"):format(select(2, support.read("lua/moongrid/recipes/megatron.lua"):match("^(.*)steps%.transformer"):gsub("\n", "")) + 1))
  end)

  it("takes the first family of a list that the plan has, for every role", function()
    local function digest(base, made)
      local text = ('return recipe { base = "%s", step = steps.%s }'):format(base, made)
      return require "moongrid".load("listed.lua", { text = text }):plan(8, { tp = 2 }):step().digest
    end
    assert.equal(digest("megatron", "transformer()"), digest("megatron", "transformer { expert_tp = { 'none', 'expt_tp' } }"))
    assert.equal(digest("torchtitan", "fsdp2()"), digest("torchtitan", "fsdp2 { shard = { 'none', 'fsdp' } }"))
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
    refused("pp=4 layers=30", at "steps.transformer: layers 30 is not a multiple of pp, 4; nearest: 28 or 32")
    refused("zero=4", at "steps.transformer: zero is 0 to 3, not 4; nearest is 3")
    refused("schedule=2f2b", "moongrid: unknown schedule of steps.transformer '2f2b'; known: 1f1b, gpipe, zero_bubble")
    refused("weight_type=fp4", "moongrid: unknown weight_type of steps.transformer 'fp4'; nearest is 'fp8' (bf16, fp16, fp32, fp8)")
  end)
end)
