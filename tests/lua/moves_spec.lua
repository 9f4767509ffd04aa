-- SPDX-License-Identifier: MIT
--
-- Moves carried out: `moongrid run A vs B --move` under mpirun, its refusals, ranks that hang or never come.

local support = dofile "tests/lua/support.lua"
local launch = support.launch

local recipe = support.file [[
return recipe { doc = "three tensors", params = { tp = 2, pp = 2, off = 0, n = 0, wide = 4, flat = 0, type = "bf16" },
  build = function(world, p)
  local w = p.n > 0 and world:window(p.off, p.n) or world
  local g = grid(w, "tp-pp-dp", { tp = p.tp, pp = p.pp, dp = fill })
  local t = topology(world)
  t.dense = g
  t.qkv = tensor { axes = { { "layer", 8 }, { "qkv", 48 }, { "hidden", p.wide } }, type = p.type,
    cut = { layer = "pp", qkv = { "tp", parts = { 32, 8, 8 }, unit = 2 } } }
  local out = tensor { axes = { { "layer", 8 }, { "hidden", p.wide }, { "out", 96 } }, type = "f32",
    cut = { layer = "pp", out = "tp" } }
  t.out = p.flat > 0 and flat { out, over = "dp", pad = p.flat } or out
  t.deal = tensor { axes = { { "a", 100 }, { "b", 101 } }, type = "f64",
    cut = { a = { "tp", cyclic = 3 }, b = { "dp", cyclic = 2 } } }
  return t
end }
]]

describe("moongrid run A vs B --move", function()
  local function run(ranks, line) return launch(ranks, ("build/moongrid run %s %s --move"):format(recipe, line)) end

  for _, case in ipairs {
    { 1, "tp=1 pp=1 vs tp=1 pp=1" }, { 2, "tp=2 pp=1 vs tp=1 pp=2" }, { 4, "vs tp=4 pp=1" }, { 6, "tp=3 vs tp=1 pp=6" },
    { 8, "vs tp=4 pp=1" }, { 8, "vs tp=4 pp=1 --rounds" }, { 8, "vs tp=1 pp=1 wide=4 --window 1" },
    { 8, "n=4 vs tp=1 off=4 n=4 --timeout 60" }, { 8, "--world 4 vs tp=4" }, { 8, "tp=8 pp=1 vs --world 4" },
    { 8, "vs tp=4 pp=1 flat=7" }, { 8, "flat=1000 pp=1 vs tp=4" }, { 8, "tp=1 flat=1 vs flat=64 pp=1 --window 4096" },
    { 4, "wide=4000 vs tp=4 pp=1 wide=4000 --window 1" }, { 4, "tp=4 pp=1 vs tp=4 pp=1 --map 3,2,1,0 --tensor qkv" },
    { 1, "type=f32 tp=1 pp=1 vs tp=1 pp=1 --convert" }, { 8, "vs type=f32 tp=4 pp=1 --convert" },
    { 4, "type=f32 wide=900 vs tp=4 pp=1 wide=900 --convert --window 1" }, { 6, "tp=3 vs tp=1 pp=6 type=f32 --convert --rounds" },
  } do
    it(("proves every element on %d ranks: %s"):format(case[1], case[2]), function()
      local out, err, code = run(case[1], case[2])
      assert.are.same({ "", 0 }, { err, code })
      assert.truthy(out:find(("^moved +%%d tensors? on mpi: .* every element proved on %s\n$"):format(
        case[1] == 1 and "1 rank" or ("all %d ranks"):format(case[1]))), out)
    end)
  end

  for line, wanted in pairs {
    ["vs type=f32"] = "tensor 'qkv' is bf16 on one side and f32 on the other",
    ["type=f16 vs type=f32 --convert"] = "tensor 'qkv' is f16 on one side and f32 on the other",
    ["vs wide=5"] = "tensor 'qkv': axis 2 is hidden 4 on one side and hidden 5 on the other",
    ["vs --tensor x"] = "unknown tensor 'x'; known: qkv, out, deal",
    ["vs tp=3"] = recipe .. ":2: tp 3 x pp 2 = 6 does not divide the 4 ranks; nearest: tp 2, or a world of 6 ranks",
    ["vs --map 0"] = "the map has 1 ranks, the world after the move 4",
    ["--world 2 tp=1 vs --world 2 tp=1"] = "the move is of 2 ranks, the communicator has 4",
    ["--json vs"] = "--move takes no --json and no --bandwidth",
    ["--backend dry vs"] = "--move needs a backend that moves data: "
      .. support.either(support.makers) .. ", not dry",
    [""] = "--move needs two sides with 'vs' between: moongrid run A vs B --move",
  } do
    it("refuses " .. (line == "" and "one side" or line), function()
      local out, err, code = run(4, line)
      assert.equal("", out)
      assert.truthy(code ~= 0)
      err = err:gsub("^moongrid: %[rank 0/4%] ", ""):gsub("^rank 0: ", ""):gsub("\n.*", ""):gsub(":%d+: tp", ":2: tp")
      assert.equal(wanted, err)
    end)
  end

  it("takes an option on either side for both, --print too", function()
    local loud = support.file [[return recipe { params = { side = 0 }, build = function(world, p)
      print("side " .. p.side)
      local t = topology(world)
      t.grid = grid(world, "x", { x = fill })
      t.w = tensor { axes = { { "a", 4 } }, type = "i32", cut = { a = "x" } }
      return t
    end }]]
    local function said(line)
      local _, err, code = support.run(("scripts/launch 2 build/moongrid run %s --move"):format(line:gsub("LOUD", loud)))
      assert.equal(0, code, err)
      local sides = {}
      for side in err:gmatch "side (%d)" do sides[#sides + 1] = side end
      table.sort(sides)
      return table.concat(sides)
    end
    assert.equal("01", said "LOUD vs side=1")
    for _, who in ipairs { { "none", "" }, { "all", "0011" } } do
      assert.equal(who[2], said(("LOUD --print %s vs side=1"):format(who[1])))
      assert.equal(who[2], said(("LOUD vs side=1 --print %s"):format(who[1])))
    end
  end)

  it("says so where two recipes are given without --move", function()
    local _, err = launch(2, ("build/moongrid run %s vs tp=1"):format(recipe))
    assert.truthy(err:find("run takes two recipes to --move tensors from one to the other", 1, true), err)
  end)
end)

describe("move:prove", function()
  it("proves a move between states, and tells all where ranks differ", function()
    local recipe_file = support.file [[return recipe { params = { tp = 2 }, build = function(world, p)
      local g = grid(world, "tp-dp", { tp = p.tp, dp = fill })
      local t = topology(world)
      t.grid, t.tp = g, g "tp"
      t.w = tensor { axes = { { "a", 30 }, { "b", 7 } }, type = "i32", cut = { a = "tp" } }
      return t
    end }]]
    local script = support.file(([[
      local mg = require "moongrid"
      local job = assert(mg.mpi())
      local recipe = mg.load %q
      local old = assert(job:materialize(recipe:plan(4), "old"))
      local new = assert(job:materialize(mg.load(%q):plan(4, { tp = 4 }), "new"))
      local move = mg.move(old, new)
      assert(move.rank == job.rank and move:prove(job, { window = 4096, timeout = 60 }))
      local other = job.rank == 3 and mg.move(old, old) or move
      local ok, message, status = other:prove(job)
      assert(not ok and status == 500 and message:find "^ranks differ: rank 0 moves plan .* rank 3 moves plan ", message)
      assert(not pcall(move.prove, move, job, { widow = 1 }))
      assert(move:prove(job))
      if job.rank == 0 then print("fine") end
      new:close()
      old:close()
      job:close()
    ]]):format(recipe_file, recipe_file))
    local out, err, code = support.run("scripts/launch 4 env LUA_CPATH_5_4=build/?.so lua5.4 " .. script)
    assert.are.same({ "fine\n", 0 }, { out, code }, err)
  end)
end)

describe("mgrid_move_run with a timeout", function()
  it("names a rank that hangs on the way, and goes no further", function()
    local out = launch(4, "build/tests/mpi/move late")
    assert.equal("403: after 1 seconds not all ranks had come: rank 1 is not there, in call 1 over all ranks: a move of tensors\n"
      .. "403: mpi: an earlier call over all ranks did not end; the job cannot go on\n", out)
  end)

  it("names nobody as missing where all are there and a message is lost", function()
    local out = launch(4, "build/tests/mpi/move lost")
    assert.truthy(out:find("^403: rank %d: nothing moved for 1 seconds: rank %d has not %l+ all, and %d+ messages are in transit\n"
      .. "403: mpi: an earlier call over all ranks did not end; the job cannot go on\n$"), out)
  end)

  it("tells nobody that he has all, of memory that was given up", function()
    local out = launch(4, "build/tests/mpi/move overtaken")
    assert.truthy(out:find("0 403: after 1 seconds not all ranks had come: rank 1 is not there, in call 2 over all ranks: a move "
      .. "of tensors\n", 1, true), out)
    assert.truthy(out:find("1 403: after 1 seconds not all ranks had come: rank 1 is not there", 1, true), out) -- it learns so itself
  end)

  it("names a rank that was killed on the way", function()
    local out = support.run("LAUNCH_OPTIONS=--enable-recovery scripts/launch 4 build/tests/mpi/move killed")
    assert.truthy(out:find("^0 403: after 1 seconds not all ranks had come: rank 1 is not there, in call 2 over all ranks: a "
      .. "move of tensors"), out)
  end)

  it("waits as long as any rank goes on", function()
    local out, err, code = launch(4, "build/tests/mpi/move slow")
    assert.equal(0, code, out .. err)
    assert.truthy(out:find "\n1%.%.2\n$", out)
  end)

  it("ends where a rank never comes", function()
    local out = launch(4, "build/tests/mpi/move absent")
    assert.equal("403: after 1 seconds not all ranks had come: rank 1 is not there, in call 1 over all ranks: a move of tensors\n"
      .. "403: mpi: an earlier call over all ranks did not end; the job cannot go on\n", out)
  end)
end)
