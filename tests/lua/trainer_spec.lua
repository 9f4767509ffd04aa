-- SPDX-License-Identifier: MIT
--
-- The calls that the example trainer makes, counted in MPI's profiling interface (tests/trainer/calls.c), are those of the
-- step of its recipe: the same operations over the same ranks with the same bytes, in the same order.

local support = dofile "tests/lua/support.lua"
local moongrid = require "moongrid"
local LAYOUT, STEPS = "examples/trainer/layout.lua", 3

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))
local library = folder .. "/calls.so"
local built, why = support.exists "build/trainer/trainer", "the trainer is not built: make -C examples/trainer"
if built then
  local _, err, code = support.run(("cc -shared -fPIC -O1 -o %s tests/trainer/calls.c $(pkg-config --cflags --libs $(scripts/mpi --module || echo mpi-c)) -ldl"):format(library))
  built, why = code == 0, err
end

-- The calls of a rank's program, one a line as calls.c has them; groups of one rank have none.
local function planned(plan, rank)
  local list, programs = {}, plan:step()
  local members = {}
  local function ranks(name)
    if not members[name] then
      local family = plan:family(name)
      local group = family:locate(rank)
      members[name] = family:ranks(group)
    end
    return members[name]
  end
  local function walk(entries)
    for _, e in ipairs(entries) do
      if e.body then
        for _ = 1, e.times or 1 do walk(e.body) end
      elseif e.family and #ranks(e.family) > 1 then
        list[#list + 1] = ("%s %s %d %d"):format(e.operation, table.concat(ranks(e.family), ","), e.bytes, e.root or e.to or e.from or -1)
      end
    end
  end
  walk(programs:program(rank))
  return list
end

-- What calls.c wrote. Rows of experts that come back are as many as were sent, so either side may be the planned one.
local function made(rank, expected)
  local list = {}
  for line in io.lines(("%s/calls.%d"):format(folder, rank)) do list[#list + 1] = line end
  for i, line in ipairs(list) do
    local head, sent, received, peer = line:match "^(.- )(%d+)/(%d+) (%-?%d+)$"
    local wanted = expected(i)
    if head then
      local other = head .. received .. " " .. peer
      list[i] = wanted == other and other or head .. sent .. " " .. peer
    end
  end
  return list
end

describe("the calls of the trainer", function()
  if not built then return it("are counted", function() pending(why) end) end
  teardown(function() os.execute("rm -rf " .. folder) end)

  local layouts = { "", "tp=2", "tp=2 pp=2", "pp=4", "pp=2 vpp=2", "ep=4", "tp=2 cp=2", "tp=2 cp=2 pp=2 ep=2", "zero=2", "tp=2 zero=4",
    "ep=4 zero=2", "pp=2 vpp=2 zero=2", "cp=2 ep=2 zero=4" }
  for _, layout in ipairs(layouts) do
    it("are those of its step, in their order: " .. (layout == "" and "dp=8" or layout), function()
      local _, err, code = support.run(("CALLS=%s/calls scripts/launch 8 env LD_PRELOAD=%s OPENBLAS_NUM_THREADS=1 build/trainer/trainer "
        .. "--progress never --steps %d %s %s"):format(folder, library, STEPS, LAYOUT, layout))
      assert.equal(0, code, err)
      local params = {}
      for name, value in layout:gmatch "(%w+)=(%d+)" do params[name] = tonumber(value) end
      local plan = moongrid.load(LAYOUT):plan(8, params)
      local all = 0
      for rank = 0, 7 do
        local one, expected = planned(plan, rank), {}
        for _ = 1, STEPS do table.move(one, 1, #one, #expected + 1, expected) end
        local got = made(rank, function(i) return expected[i] end)
        for i = 1, math.max(#expected, #got) do
          assert.equal(expected[i], got[i], ("call %d of rank %d"):format(i, rank))
        end
        all = all + #one
      end
      assert.is_true(all > 8)
      os.execute(("rm -f %s/calls.?"):format(folder))
    end)
  end
end)

-- Without ULFM, with any MPI: the job ends, and goes on from its checkpoint. Under MPICH's launcher the exit code is 9 both times,
-- that of the signal.
describe("a trainer that nobody can recover", function()
  if not built then return it("ends", function() pending(why) end) end
  local here = os.tmpname()
  os.remove(here)
  assert(os.execute(("mkdir %s && cp examples/trainer/step.lua %s"):format(here, here)))
  local file = assert(io.open(here .. "/layout.lua", "w"))
  file:write((support.read(LAYOUT):gsub("every = 50", "every = 2")))
  file:close()
  teardown(function() os.execute("rm -rf " .. here) end)

  local function train(ranks, words)
    local _, err, code = support.run(([[OPENBLAS_NUM_THREADS=1 scripts/launch %d build/trainer/trainer --progress never --steps 9
      --layers 4 --width 16 --hidden 32 --seq 16 %s %s/layout.lua]]):format(ranks, words, here):gsub("\n *", " "))
    return err, code
  end
  local function losses(curve)
    local all = {}
    for step, loss in support.read(here .. "/" .. curve):gmatch "\n(%d+) ([%d.e+-]+)" do all[tonumber(step)] = tonumber(loss) end
    return all
  end
  local function goes_on(saved)
    local err, code = train(2, ("--resume %s/%s --curve %s/again"):format(here, saved, here))
    assert.same({ "", 0 }, { err, code })
    local unhurt, again = losses "unhurt", losses "again"
    for step, loss in pairs(again) do assert.is_true(math.abs(loss / unhurt[step] - 1) < 1e-12) end
    assert.truthy(again[9] and not again[1])
  end
  it("trains without a fault", function() assert.same({ "", 0 }, { train(4, ("--curve %s/unhurt"):format(here)) }) end)

  for _, point in ipairs { "forward", "begin", "checkpoint" } do
    it("ends where a rank is stopped at " .. point .. ", names it, and goes on from the last checkpoint", function()
      local saved = "stopped." .. point
      local err, code = train(4, ("--deadline 4 --hang 2:5:%s --checkpoint %s/%s"):format(point, here, saved))
      assert.truthy(code == 4 or code == 9, err)
      local tail = ("; the job goes on from its last checkpoint by --resume %s/%s\n"):format(here, saved)
      local said = 0
      for line in err:gmatch "trainer: [^\n]*\n" do
        said = said + 1
        assert.equal(tail, line:sub(-#tail))
        assert.truthy(line:find(point == "forward" and "after 4 seconds in a call of MPI: it waits for rank 2;"
          or "after 4 seconds not all ranks had come: rank 2 is not there", 1, true), line)
      end
      assert.truthy(said > 0, err)
      goes_on(saved)
    end)
  end

  it("lets a spare wait for others that train longer than the deadline", function()
    local spare = assert(io.open(here .. "/spare.lua", "w"))
    spare:write((support.read(LAYOUT):gsub("return recipe {", "%0 spares = 1,")))
    spare:close()
    local _, err, code = support.run(([[OPENBLAS_NUM_THREADS=1 LAUNCH_SECONDS=5 scripts/launch 3 build/trainer/trainer
      --progress never --steps 1000000 --layers 2 --width 16 --hidden 32 --seq 16 --deadline 2 --curve %s/long %s/spare.lua]])
      :format(here, here):gsub("\n *", " "))
    assert.falsy(err:find("seconds", 1, true), err)
    assert.equal(124, code) -- it trains until the launch ends it
    assert.truthy(losses "long"[20])
  end)

  it("ends where a rank is killed, and goes on from the last checkpoint", function()
    local err, code = train(4, ("--die 2:5:forward --checkpoint %s/killed"):format(here))
    assert.truthy(code == 137 or code == 9, err)
    goes_on "killed"
  end)
end)

describe("a trainer whose ranks are killed, under Open MPI 5,", function()
  local lacks = not support.exists "build/trainer/trainer" and "the trainer is not built: make -C examples/trainer"
    or support.run("scripts/mpi --list"):match "openmpi5 %- ([^\n]*)"
  if lacks then return it("goes on or ends", function() pending(lacks) end) end

  local here, runs = os.tmpname(), 0
  os.remove(here)
  assert(os.execute(("mkdir %s && cp examples/trainer/step.lua %s"):format(here, here)))
  local function layout(name, change)
    local file = assert(io.open(here .. "/" .. name, "w"))
    file:write((support.read(LAYOUT):gsub("every = 50", "every = 2"):gsub("return recipe {", change)))
    file:close()
    return here .. "/" .. name
  end
  teardown(function() os.execute("rm -rf " .. here) end)

  -- Train for nine steps: what the trainer says without its times, its exit code, the curve's last loss, its steps.
  local function train(ranks, words)
    runs = runs + 1
    local curve = ("%s/%d.curve"):format(here, runs)
    local _, err, code = support.run(([[OPENBLAS_NUM_THREADS=1 LAUNCH_OPTIONS="--with-ft ulfm" scripts/mpi openmpi5 sh -c '
      make -s -C examples/trainer all > /dev/null && scripts/launch %d build/trainer/trainer --progress never --steps 9 --layers 4
      --width 16 --hidden 32 --seq 16 --deadline 20 --curve %s %s']]):format(ranks, curve, words):gsub("\n *", " "))
    local said, last, steps = {}, nil, 0
    for line in err:gmatch "trainer: [^\n]+" do
      line = line:gsub(", [%d.]+ s after.*", ""):gsub("^trainer: rank %d+: rank", "trainer: rank") -- each survivor says why it ends
      if not line:find("the next step took", 1, true) and line ~= said[#said] then said[#said + 1] = line end
    end
    for step, loss in support.read(curve):gmatch "\n(%d+) ([%d.e+-]+)" do last, steps = { step, tonumber(loss) }, steps + 1 end
    return said, code, last, steps
  end
  -- It says this, does all nine steps, and ends with the loss of the undisturbed run.
  local function goes_on(said, ranks, words, unhurt)
    local heard, code, last, steps = train(ranks, words)
    assert.same(said, heard)
    assert.same({ 0, "9", 9 }, { code, last[1], steps })
    assert.is_true(math.abs(last[2] / unhurt[2] - 1) < 1e-12, last[2] .. " and " .. unhurt[2])
  end

  it("goes on without a spare that dies, and with the spare that is left for a rank", function()
    local whole = layout("spares.lua", "%0 spares = 2,")
    local _, code, unhurt = train(6, whole)
    assert.same({ 0, "9" }, { code, unhurt[1] })
    goes_on({ "trainer: step 2: 1 of 6 ranks are lost; it goes on as tp1 cp1 pp1 dp4 ep1 on 5",
      "trainer: step 5: 1 of 5 ranks are lost; it goes on as tp1 cp1 pp1 dp4 ep1 on 4" }, 6,
      "--die 5:2:begin --die 1:5:forward " .. whole, unhurt)
  end)

  local both = "--die 0:3:forward --die 1:3:forward " -- all that have the first stage of pp 2 x dp 2
  it("ends on all ranks where every copy of a stage is lost and there is no checkpoint", function()
    local said, code, last = train(4, both .. layout("every.lua", "%0") .. " pp=2")
    assert.same({ "trainer: rank 0: position (rows 0..15): ranks 0, 1 held it; no copy is left, 282624 bytes in all, "
      .. "and there is no checkpoint (--checkpoint)" }, said)
    assert.same({ 1, "3" }, { code, last[1] })
  end)

  it("reads the stage from the last checkpoint, and does the steps since then again", function()
    local path = layout("every.lua", "%0")
    local _, _, unhurt = train(4, path .. " pp=2")
    goes_on({ "trainer: position (rows 0..15): ranks 0, 1 held it; no copy is left, 282624 bytes in all: it goes back to the last checkpoint",
      "trainer: step 2: 2 of 4 ranks are lost; it goes on as tp1 cp1 pp2 dp1 ep1 on 2" }, 4,
      ("%s--checkpoint %s/saved %s pp=2"):format(both, here, path), unhurt)
  end)

  it("goes on where the optimizer's state is shared, and another rank has the slice", function()
    local path = layout("every.lua", "%0")
    local _, _, unhurt = train(4, path)
    goes_on({ "trainer: step 3: 1 of 4 ranks are lost; it goes on as tp1 cp1 pp1 dp2 ep1 zero2 on 3" }, 4,
      "--die 1:3:gather " .. path .. " zero=2", unhurt)
  end)

  it("saves after a recovery what a lost rank kept from being saved, and starts over where nothing is saved yet", function()
    local path = layout("every.lua", "%0")
    local _, _, unhurt = train(4, path)
    goes_on({ "trainer: step 2: 1 of 4 ranks are lost; it goes on as tp1 cp1 pp1 dp2 ep1 zero2 on 3",
      "trainer: embedding (rows 0..15): rank 0 held it; no copy is left, 286080 bytes in all: it goes back to the last checkpoint",
      "trainer: step 2: 1 of 3 ranks are lost; it goes on as tp1 cp1 pp1 dp2 ep1 zero2 on 2" }, 4,
      ("--die 1:1:updated --die 0:3:forward --checkpoint %s/late %s zero=2"):format(here, path), unhurt)
    goes_on({ "trainer: embedding (rows 24..31): rank 3 held it; no copy is left, 143040 bytes in all: it goes back to the start",
      "trainer: step 0: 1 of 4 ranks are lost; it goes on as tp1 cp1 pp1 dp2 ep1 zero2 on 3" }, 4,
      ("--die 3:1:passed --checkpoint %s/none %s zero=4"):format(here, path), unhurt)
  end)

  it("halves the number of slices where the next layout has too few ranks, and reads them from the last checkpoint", function()
    local path = layout("every.lua", "%0")
    local _, _, unhurt = train(4, path)
    goes_on({ "trainer: embedding (rows 16..23): rank 2 held it; no copy is left, 143040 bytes in all: it goes back to the last checkpoint",
      "trainer: step 2: 1 of 4 ranks are lost; it goes on as tp1 cp1 pp1 dp2 ep1 zero2 on 3" }, 4,
      ("--die 2:3:bucket --checkpoint %s/slices %s zero=4"):format(here, path), unhurt)
    local said, code = train(4, "--die 2:3:bucket " .. path .. " zero=4")
    assert.same({ "trainer: rank 0: embedding (rows 16..23): rank 2 held it; no copy is left, 143040 bytes in all, "
      .. "and there is no checkpoint (--checkpoint)" }, said)
    assert.equal(1, code)
  end)
end)
