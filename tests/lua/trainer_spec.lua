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

  local layouts = { "", "tp=2", "tp=2 pp=2", "pp=4", "pp=2 vpp=2", "ep=4", "tp=2 cp=2", "tp=2 cp=2 pp=2 ep=2" }
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
