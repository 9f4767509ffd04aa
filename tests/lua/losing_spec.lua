-- SPDX-License-Identifier: MIT
--
-- Ranks are lost at a bad moment, or under a bad recipe, on real ranks of Open MPI 5 (--with-ft ulfm). In each case every
-- survivor goes on, or gets a clear error, in time. Each script runs on every rank; `say` prints a line with the rank in
-- front, and the test compares the lines of each survivor.

local support = dofile "tests/lua/support.lua"
local lacks = support.run("scripts/mpi --list"):match "openmpi5 %- ([^\n]*)"
if lacks then return it("ranks that are lost", function() pending("Open MPI 5 is absent: " .. lacks) end) end

-- A recipe: tp 2 x dp, and a tensor cut by each. `fields`: more fields of it; `before`: text in front of it.
local function recipe_of(fields, before)
  return support.file(([[%s
return recipe { %s params = { tp = 2, dp = param.size(nil) }, build = function(world, p)
  local g = grid(world, "tp-dp", { tp = p.tp, dp = p.dp or fill })
  local t = topology(world)
  t.g, t.tp, t.dp = g, g "tp", g "dp"
  t.more = g("tp", "dp"):with { lazy = true }
  t.w = tensor { over = "g", axes = { { "row", 16 } }, type = "f32", cut = { row = "tp" } }
  t.m = tensor { over = "g", axes = { { "row", 24 } }, type = "f32", cut = { row = "dp" } }
  return t
end }]]):format(before or "", fields or ""))
end

local prelude = [[
local mg = require "moongrid"
local recipe, seconds = mg.load(arg[1]), tonumber(arg[2])
local job = assert(mg.mpi { timeout = seconds })
local me, plan = job.rank, recipe:plan(job.world)
local state = assert(job:materialize(plan, "first"))
local function say(...)
  local words = table.pack(...)
  for i = 1, words.n do words[i] = tostring(words[i]) end
  io.write(("%d: %s\n"):format(me, table.concat(words, " ")))
  io.flush()
end
local function sleep(time) os.execute("sleep " .. time) end
local function strike(signal, ...)
  for _, rank in ipairs { ... } do if rank == me then os.execute(("kill -%s $PPID"):format(signal)) end end
end
assert(state:least(0))
sleep(.1) -- let all ranks get the state before one is lost: a rank without a state cannot recover
local function status(_, _, code) return code end
-- Recover, fill, settle and prove, and print the result.
local function go_on(options, from)
  local next, loss, move, rest = (from or state):recover(options)
  if not next then
    say(move, loss)
    if rest then say("missing", table.unpack(rest.ranks)) end
    return
  end
  say(loss.how, loss.layout, table.concat(loss.lost, ","), table.concat(loss.idle, ","), loss.bytes.missing)
  assert(next:settle(move:prove(rest)))
  assert(next:prove())
  state, job = next, rest
end
]]

-- Run a script; return the lines of each rank, by rank: a list of lists, [0] for rank 0.
local function run(ranks, script, options)
  options = options or {}
  local path, recipe = support.file(prelude .. script), recipe_of(options.fields, options.before)
  local out, err = support.run(('LAUNCH_SECONDS=90 LAUNCH_OPTIONS="--with-ft ulfm" scripts/mpi openmpi5 scripts/launch %d env '
    .. "'LUA_CPATH_5_4=build/?.so' lua5.4 %s %s %g"):format(ranks, path, recipe, options.seconds or 20))
  os.remove(path)
  os.remove(recipe)
  local lines = {}
  for rank = 0, ranks - 1 do lines[rank] = {} end
  for rank, line in out:gmatch "(%d+): ([^\n]*)\n" do
    rank = tonumber(rank)
    lines[rank][#lines[rank] + 1] = line:gsub(recipe:gsub("%W", "%%%0"), "R")
  end
  return lines, err
end

-- Check that all ranks but these printed these lines.
local function all_said(want, lines, err, lost)
  for rank = 0, #lines do
    local gone = false
    for _, other in ipairs(lost) do gone = gone or other == rank end
    if not gone then assert.same(want, lines[rank], ("rank %d: %s"):format(rank, err)) end
  end
end

describe("a spare", function()
  local spares = { fields = "spares = 2," }

  it("moves no rank when it dies, nor does a second one; then a rank is lost without spares", function()
    local lines, err = run(8, [[
      for _, rank in ipairs { 7, 6, 2 } do
        if state.rank == rank then strike(9, me) end
        state:prove()
        go_on()
      end]], spares)
    all_said({ "replace 6 7 6 0", "replace 6 6  0", "shrink 4 2 3 0" }, lines, err, { 7, 6, 2 })
    assert.same({ { "replace 6 7 6 0" }, { "replace 6 7 6 0", "replace 6 6  0" } }, { lines[6], lines[2] })
  end)

  it("dies with another, or with a rank: the remaining spare takes the place", function()
    local lines, err = run(8, "strike(9, 6, 7) state:prove() go_on()", spares)
    all_said({ "replace 6 6,7  0" }, lines, err, { 6, 7 })
    lines, err = run(8, "strike(9, 1, 7) state:prove() go_on()", spares)
    all_said({ "replace 6 1,7  0" }, lines, err, { 1, 7 })
  end)

  it("dies while the others recover", function()
    local lines, err = run(8, [[
      strike(9, 1)
      if me == 7 then sleep(.4) strike(9, 7) end
      state:prove()
      go_on()]], spares)
    all_said({ "replace 6 1,7  0" }, lines, err, { 1, 7 })
  end)

  it("that was given a place dies before all settle: they recover from the old state again", function()
    local lines, err = run(8, [[
      strike(9, 1)
      state:prove()
      local next, loss = assert(state:recover())
      if next.rank == 1 then sleep(.4) strike(9, me) end
      say(next:settle(true))
      next:close()
      go_on()]], spares)
    all_said({ "nil state 'first': a rank was lost before all had done their part 404", "replace 6 1,6  0" }, lines, err,
      { 1, 6 })
  end)
end)

describe("ranks that are lost", function()
  it("end every wait of the others: a proof, a sum, a barrier, a creation, the least, and a computation", function()
    local lines, err = run(8, [[
      local buffer = state.dp:buffer(4, "double")
      strike(9, 3)
      if me == 0 then say(status(job:materialize(plan, "more")))
      elseif me == 1 then say(status(state:least(3)))
      elseif me == 2 then say(status(state:settle(true)))
      elseif me == 4 then say(status(state:create "more"))
      elseif me == 5 then say(status(state.dp:allreduce(buffer, "sum")))
      elseif me == 6 then say(status(state:prove()))
      else while not state:hurt() do end say "hurt" end
      go_on()]])
    local went = "shrink 6 3 2 0"
    for rank = 0, 6 do
      if rank ~= 3 then assert.same({ "404", went }, lines[rank], ("rank %d: %s"):format(rank, err)) end
    end
    assert.same({ "hurt", went }, lines[7], err)
  end)

  -- Ranks that recover agree that all have come. A rank in settle takes part in that agreement, and must not take it for its own.
  it("do not let one rank settle while the others recover", function()
    local lines, err = run(6, [[
      strike(9, 5)
      if me == 0 then say(state:settle(true)) end
      go_on()]])
    all_said({ "shrink 4 5 4 0" }, { [0] = { lines[0][2] }, table.unpack(lines) }, err, { 5 })
    assert.equal("nil state 'first': a rank was lost before all had done their part 404", lines[0][1])
  end)

  it("are lost again in a second recovery from the old state", function()
    local lines, err = run(8, [[
      strike(9, 3)
      state:prove()
      local next, _, move, rest = assert(state:recover())
      go_on()
      say(next:settle(move:prove(rest)), next:prove() >= 0)]])
    all_said({ "shrink 6 3 2 0", "true true" }, lines, err, { 3 })
  end)

  it("with every copy of a part are reported, with the part", function()
    local lines, err = run(8, [[
      strike(9, 2, 3)
      state:prove()
      local next, loss, move, rest = assert(state:recover())
      say(loss.bytes.missing, loss.missing[1].tensor, loss.missing[1].range, table.concat(loss.missing[1].holders, ","))
      say(next:settle(false, "there is no checkpoint", 100))
      say(next:prove() >= 0)]])
    all_said({ "24 m row 6..11 2,3", "nil rank 0: there is no checkpoint 100", "true" }, lines, err, { 2, 3 })
  end)

  it("leave too few for any layout", function()
    local lines, err = run(4, "strike(9, 1, 2, 3) state:prove() go_on()")
    assert.same({ "100 ranks 1, 2, 3 are lost, and the job stops: the recipe accepts no layout of 1 rank; of 1: R:3: tp 2 does "
      .. "not divide the 1 rank; nearest: tp 1, or a world of 2 ranks; the policy on_lost may change parameters, { how = "
      .. '"shrink", params = { dp = 3 } }; go on from the last checkpoint' }, lines[0], err)
  end)

  it("are none: all go on with new communicators, as often as they like, and then without a lost one", function()
    local lines, err = run(4, "go_on() sleep(.5) go_on() sleep(.5) strike(9, 3) state:prove() go_on()")
    all_said({ "replace 4   0", "replace 4   0", "shrink 2 3 2 0" }, lines, err, { 3 })
  end)

  it("are none, and the recipe would stop: its policy is not asked", function()
    local lines, err = run(4, "go_on()", { fields = 'policy = { on_lost = function() return "stop" end },' })
    all_said({ "replace 4   0" }, lines, err, {})
  end)

  it("are many of many", function()
    local lines, err = run(24, [[
      if me % 3 == 1 then strike(9, me) end
      state:prove()
      go_on()]])
    local lost = { 1, 4, 7, 10, 13, 16, 19, 22 }
    all_said({ "shrink 16 1,4,7,10,13,16,19,22  0" }, lines, err, lost)
  end)
end)

describe("on_lost", function()
  local function fields(body) return "policy = { on_lost = function(s, q) " .. body .. " end }," end
  local struck = "strike(9, 3) state:prove() go_on { timeout = 10 }"
  for _, case in ipairs {
    { "stops", 'return "stop"', "100 rank 3 is lost, and the job stops: the policy 'on_lost' says so; go on from the last checkpoint" },
    { "wants a spare that there is not", 'return "replace"', "100 rank 3 is lost, and the job stops: the policy 'on_lost' says "
      .. "replace: 1 rank of the layout is lost, and 0 spares are left; go on from the last checkpoint" },
    { "returns no answer", 'return "shrik"', "102 R:2: policy 'on_lost' returned 'shrik'; nearest is 'shrink' (stop, replace, shrink)" },
    { "fails", 'error "not today"', "100 R:2: not today" },
    { "asks for what the recipe refuses", 'return { how = "shrink", params = { tp = 5 } }', "100 rank 3 is lost, and the job "
      .. "stops: the recipe accepts no layout of 1 to 3 ranks; of 3: R:3: tp 5 does not divide the 3 ranks; nearest: tp 3, or a "
      .. "world of 5 ranks; go on from the last checkpoint" },
    { "loops", "while true do end", "300 R:2: the recipe runs for more than 200000000 instructions" },
  } do
    it(case[1] .. ": all get the same error", function()
      local lines, err = run(4, struck, { fields = fields(case[2]) })
      all_said({ case[3] }, lines, err, { 3 })
    end)
  end

  -- The policy has a memory, and was called on rank 0 before.
  local ask = "if me == 0 then plan:lose { ranks = { 3 } } end " .. struck
  it("differs between ranks", function()
    local lines, err = run(4, ask, { before = "local calls = 0", fields = fields 'calls = calls + 1 return calls > 1 and "stop" or "shrink"' })
    for rank = 0, 2 do
      assert.truthy(lines[rank][1]:match(("^500 survivors decide differently about the loss of rank 3: here the job %s "
        .. "%%(%%x+%%); the policy on_lost must give the same answer on all ranks$"):format(rank == 0 and "stops" or "goes on")),
        lines[rank][1] .. err)
    end
  end)

  it("fails on one rank alone", function()
    local lines, err = run(4, ask, { before = "local calls = 0", fields = fields 'calls = calls + 1 if calls > 1 then error "again" end return "shrink"' })
    assert.same({ "100 R:2: again" }, lines[0], err)
    for rank = 1, 2 do assert.same({ "405 another survivor cannot recover; its error says why" }, lines[rank]) end
  end)
end)

describe("a rank that does not come to the recovery", function()
  -- The deadline comes before any detector: no rank waits longer than its own deadline.
  local function late(rank, seconds)
    return ("403 after %s seconds not all survivors had come: rank %d is not there; go on from the last checkpoint"):format(
      seconds or "1.5", rank)
  end

  -- The rank `who` is missing in a call, and then in the recovery. `how` it goes.
  local function named_twice(how)
    local lines, err = run(6, ([[
      if me == 3 then %s end
      local _, message, code, missing = state:prove()
      say(code, code == 403 and ("rank %%d is not there"):format(missing.ranks[1]) or message)
      local began = os.time()
      go_on { timeout = 1.5 }
      say(os.time() - began <= 4 and "in time" or "late")
      sleep(2)
      os.exit(0, false) -- MPI_Finalize would wait for the stopped rank ]]):format(how), { seconds = 2 })
    for rank = 0, 5 do
      if rank == 0 then assert.same({ "403 rank 3 is not there", late(3), "missing 3", "in time" }, lines[0], err) end
      if rank ~= 3 then -- a rank may begin to recover before the others know the stopped rank
        local first = table.remove(lines[rank], 1)
        assert.truthy(first == "403 rank 3 is not there" or first == "404 another rank left agreement to recover from a loss that "
          .. "this one does not see, in call 3 over all ranks: prove 'first'" or rank == 0 and first == late(3), first)
        if rank > 0 then assert.same({ late(3), "missing 3", "in time" }, lines[rank], err) end
      end
    end
  end

  it("because it is stopped is named at both deadlines", function()
    named_twice 'os.execute "(sleep 9; kill -9 $PPID) & kill -STOP $PPID"'
  end)

  it("because it has ended by itself is named at both deadlines, though MPI does not call it lost", function()
    named_twice "os.exit(3, false)"
  end)

  it("delays the others no longer than their deadline, and is named, not the lost one", function()
    local lines, err = run(6, [[
      strike(9, 3)
      if me == 5 then sleep(5) os.exit(0, false) end
      state:prove()
      go_on { timeout = 1.5 }
      os.exit(0, false)]])
    all_said({ late(5), "missing 5" }, lines, err, { 3, 5 })
  end)

  it("because it is stopped in it is named, not one that comes later, nor those that have given up since", function()
    local lines, err = run(6, [[
      if me == 3 then os.execute "(sleep .7; kill -STOP $PPID; sleep 9; kill -9 $PPID) &" end
      if me == 5 then sleep(2) end
      go_on { timeout = 4 }
      os.exit(0, false)]])
    all_said({ late(3, "4"), "missing 3" }, lines, err, { 3 })
  end)
end)

-- tests/mpi/moments.c: three times a rank is lost, and another before one of its calls of MPI in the recovery.
describe("another rank that is lost in the recovery", function()
  for first = 0, 30, 15 do
    it(("before call %d, %d or %d: the others go on"):format(first, first + 5, first + 10), function()
      local out, err = support.run(("LAUNCH_SECONDS=90 LAUNCH_OPTIONS='--with-ft ulfm' scripts/mpi openmpi5 sh -c 'make -s "
        .. "build/tests/mpi/moments && scripts/launch 8 build/tests/mpi/moments 1 %d 5'"):format(first))
      assert.falsy(out:find "not ok", out .. err)
      assert.truthy(out:find "\n1%.%.%d+\n", out .. err)
    end)
  end
end)

-- tests/mpi/moments.c: MPI tells one rank alone that a creation failed; and some survivors what all agreed on, and one of them not.
it("a rank that alone hears of a loss, or does not hear what all agreed on, ends with the others", function()
  local out, err = support.run("LAUNCH_SECONDS=90 LAUNCH_OPTIONS='--with-ft ulfm' scripts/mpi openmpi5 sh -c 'make -s "
    .. "build/tests/mpi/moments && scripts/launch 6 build/tests/mpi/moments 1 deaf'")
  assert.falsy(out:find "not ok", out .. err)
  assert.truthy(out:find "\n1%.%.4\n", out .. err)
end)

-- tests/mpi/moments.c: a rank is stopped in one of the calls of MPI that have no deadline. The watchdog ends the others.
describe("a rank that is stopped while the others make", function()
  for _, case in ipairs {
    { "a communicator of the survivors", "MPIX_Comm_shrink" },
    { "a communicator of the survivors", "MPI_Comm_split" },
    { "the groups of the next plan", "MPI_Comm_create" }, -- of each rank another
  } do
    it(case[1] .. " by " .. case[2] .. " is named when they end", function()
      local out, err = support.run(("LAUNCH_SECONDS=60 LAUNCH_OPTIONS='--with-ft ulfm' scripts/mpi openmpi5 sh -c 'make -s "
        .. "build/tests/mpi/moments && scripts/launch 6 build/tests/mpi/moments 1 %s'"):format(case[2]))
      local n = 0
      for line in err:gmatch "moongrid: ([^\n]*)" do
        n = n + 1
        assert.equal(("after 3 seconds %s has not made %s: rank 1 is not there; this process ends"):format(case[2], case[1]),
          (line:gsub("^%[rank %d/%d%] ", ""):gsub("train/%a+%[%d%]", case[1]):gsub("groups of other ranks", case[1])))
      end
      assert.equal(4, n, out .. err)
    end)
  end
end)
