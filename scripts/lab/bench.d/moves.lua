-- SPDX-License-Identifier: MIT
--
-- The part `moves`: plan a move and run it, compared with MPI_Alltoallw, an all-gather of the whole, ScaLAPACK's
-- pdgemr2d and torch's DTensor, all in one run.

local MEBI = 1048576

-- Return the Python with DTensor, or nil and a message.
local function dtensor(B)
  if not B.python then return nil, "there is no Python with torch (PYTHON)" end
  if not B.first_line(B.python .. " -c 'import torch.distributed.tensor as t; print(t.Shard)'") then
    return nil, ("torch %s has no torch.distributed.tensor"):format(B.torch)
  end
  return B.python .. " scripts/lab/bench.d/dtensor.py"
end

-- ------------------------------------------------------------------- planning

local function planning(B)
  local worlds, data = B.quick and { 1024 } or { 1024, 65536, 1048576 }, {}
  assert(B.samples(data, ("%s/moves time %d %s"):format(B.dir, B.quick and 3 or 7, table.concat(worlds, " "))))
  local t = B.table("one rank's messages of a move, two dims cut on both sides, for a tensor", "us")
  local kinds = {
    { "fits", "tp 8 pp 16 to tp 16 pp 8" }, { "window", "the same onto the other half of the world" },
    { "odd", "tp 6 pp 4 to tp 4 pp 6, whose dims do not fit" },
  }
  for _, kind in ipairs(kinds) do
    for _, world in ipairs(worlds) do
      t:row(("%s, world %d"):format(kind[2], world), data[("%s %d"):format(kind[1], world)],
        { remark = ("%.0f peers"):format(B.stat(data[("%s peers %d"):format(kind[1], world)]).median) })
    end
  end
  for _, kind in ipairs(kinds) do
    t:target(kind[2] .. ", us", B.stat(data[("%s %d"):format(kind[1], worlds[#worlds])]).median, 10)
  end
  t:note "16 tensors in one move"
end

-- awex's planner of weight sync, which loops over all pairs of shards, for the move onto the other half of the world.
local function beside_weight_sync(B)
  local data, world, rounds = {}, 1024, B.quick and 3 or 30
  local minimum = world / 2 // (8 * 16) * 2 * 96 * 12288 * 12288 -- each copy after the move gets all of a tensor
  local t = B.table(("planning one rank's messages onto the other half of %d ranks, for a tensor"):format(world), "us",
    { "moongrid" })
  local version = B.python and B.first_line(B.python .. [[ -c 'import importlib.metadata, awex.transfer.transfer_plan
print(importlib.metadata.version("awex"))']])
  if not version then return t:note "skipped: no Python with torch and awex (PYTHON; pip install awex transformers)" end
  assert(B.samples(data, ("%s/moves time %d %d"):format(B.dir, rounds, world)))
  assert(B.samples(data, ("%s scripts/lab/bench.d/weight_sync.py %d %d 2>/dev/null"):format(B.python, rounds, world)))
  t:row("moongrid", data["window " .. world])
  t:row("awex " .. version, data["awex " .. world], { remark = ("%.2f of the minimum goes"):format(
    data["awex bytes " .. world][1] / minimum) })
  t:target("awex's planner over moongrid's", t:times("awex " .. version, "moongrid"), 100, true)
end

-- Measure the plan of torch's planner for a square that changes both axes, and its time.
local function beside_planners(B)
  local command, why = dtensor(B)
  local meshes, data = B.quick and { { 8, 16 } } or { { 8, 16 }, { 32, 32 } }, {}
  local rounds = B.quick and 3 or 30
  for _, mesh in ipairs(meshes) do
    assert(B.samples(data, ("%s/moves mesh %d %d %d"):format(B.dir, rounds, mesh[1], mesh[2])))
    if command then
      assert(B.samples(data, ("%s plan 4096 %d %d %d 2>/dev/null"):format(command, rounds, mesh[1], mesh[2])))
    end
    local world = mesh[1] * mesh[2]
    local t = B.table(("planning (Shard0, Shard1) to (Shard1, Shard0) of 64 MiB on %d x %d ranks"):format(
      mesh[1], mesh[2]), "us", { "moongrid" })
    local function row(name, key)
      local bytes = data[key .. "bytes " .. world][1]
      local minimum = data["mesh bytes " .. world][1]
      t:row(name, data[key .. world], { bytes = bytes,
        remark = ("%.1f MiB go, %.2f of the minimum"):format(bytes / MEBI, bytes / minimum) })
    end
    row("moongrid", "mesh ")
    if command then
      row("DTensor, as it plans by itself", "greedy ")
      row("DTensor, use_min_cost_redistribution_plan", "least cost ")
      t:target("DTensor's planner over moongrid's", t:times("DTensor, as it plans by itself", "moongrid"), 100, true)
    else
      t:note("DTensor: skipped, %s", why)
    end
  end
end

-- ---------------------------------------------------------------- carried out

local MOVE, W = "mgrid_move_run", "MPI_Alltoallw"

local function launch(B, data, ranks, program, ...)
  return B.samples(data, ("LAUNCH_SECONDS=400 scripts/launch %d %s/%s %s 2>/dev/null"):format(ranks, B.dir, program,
    table.concat({ ... }, " ")))
end

local function rows(t, data, ways)
  for _, way in ipairs(ways) do
    if data[way[1]] then t:row(way[2], data[way[1]]) end
  end
end

local function carried(B, a, b)
  local ranks, edge, turns, data = a * b, B.quick and 256 or 4096, B.quick and 3 or 21, {}
  if not launch(B, data, ranks, "carry", edge, turns, a, b) then return end
  local t = B.table(("a square of f32, edge %d, %s, %d ranks"):format(edge,
    b == 1 and "from rows to columns" or ("(Shard0, Shard1) to (Shard1, Shard0) on %d x %d"):format(a, b), ranks),
    "ms", { W })
  rows(t, data, { { "move", MOVE }, { "alltoallw", W },
    { "types", "non-blocking messages of its datatypes" },
    { "persistent", "packed, persistent messages" }, { "gather", "all-gather of the whole, and a slice" } })
  t:note("%.1f MiB go, which is the minimum", data.bytes[1] / MEBI)
  if ranks >= 4 then t:target("over MPI_Alltoallw", t:times(MOVE, W), 1.1) end
  if ranks >= 8 then
    t:target("all-gather and slice over a move", t:times("all-gather of the whole, and a slice", MOVE), 10, true)
  end
  local command, why = dtensor(B)
  if b == 1 or ranks > 16 then return end
  if not command then return t:note("DTensor: skipped, %s", why) end
  local theirs = {}
  if not B.samples(theirs, ("%s carry %d %d %d %d 2>/dev/null"):format(command, edge, B.quick and 1 or 7, a, b)) then
    return t:note "DTensor: failed"
  end
  t:row("torch's DTensor over gloo", theirs.dtensor, { remark = ("%.1f MiB go, %.2f of the minimum"):format(
    theirs["dtensor bytes"][1] / MEBI, theirs["dtensor bytes"][1] / data.bytes[1]) })
end

-- Block-cyclic matrices on another grid of processes, with other blocks.
local function blocks(B)
  local libs = B.first_line "pkg-config --libs scalapack-openmpi"
  if not libs or not B.compile("blocks", "scripts/lab/bench.d/blocks.c", "mpi", libs) then
    B.table("block-cyclic matrices", "ms"):note "skipped: no ScaLAPACK (Debian's libscalapack-openmpi-dev)"
    return
  end
  for _, c in ipairs(B.quick and { { 2, "1 2 8 2 1 8" } } or {
    { 4, "2 2 64 4 1 64" }, { 8, "2 4 64 4 2 64" }, { 8, "2 4 64 8 1 32" }, { 16, "4 4 128 2 8 64" },
  }) do
    local edge, data = B.quick and 128 or 4096, {}
    local p, q, n, p2, q2, n2 = c[2]:match "(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)"
    if launch(B, data, c[1], "blocks", edge, B.quick and 3 or 11, c[2]) then
      local t = B.table(("f64, edge %d, blocks of %s on %s x %s to blocks of %s on %s x %s"):format(
        edge, n, p, q, n2, p2, q2), "ms", { W })
      rows(t, data, { { "move", MOVE }, { "scalapack", "pdgemr2d" }, { "alltoallw", W },
        { "types", "non-blocking messages of its datatypes" } })
      t:note("%.1f MiB go, which is the minimum; the same elements by each", data.bytes[1] / MEBI)
      if c[1] >= 4 then t:target("over MPI_Alltoallw", t:times(MOVE, W), 1.1) end
      if c[1] >= 8 then t:target("pdgemr2d over a move", t:times("pdgemr2d", MOVE), 10, true) end
    end
  end
end

return function(B)
  B.compile("moves", "scripts/lab/bench.d/moves.c")
  planning(B)
  beside_planners(B)
  beside_weight_sync(B)
  if not B.first_line "mpirun --version" or not B.compile("carry", "scripts/lab/bench.d/carry.c", "mpi") then return end
  local meshes = { { 2, 1 }, { 4, 1 }, { 8, 1 }, { 32, 1 }, { 2, 2 }, { 2, 4 }, { 4, 4 } }
  for _, mesh in ipairs(B.quick and { { 2, 1 }, { 2, 2 } } or meshes) do carried(B, mesh[1], mesh[2]) end
  blocks(B)
end
