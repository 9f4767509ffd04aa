-- SPDX-License-Identifier: MIT
--
-- Moves over NCCL, on the stand-in libraries (tests/nccl/standin), which are not GPUs and say so in every line: every
-- element proved, the bytes that were sent counted, refusals, and ranks that fail or never come.

local support = dofile "tests/lua/support.lua"

local standin = io.open "build/standin/libnccl.so.2"
if not standin then return it("needs the stand-in libraries", function() end) end
standin:close()

-- out, err without the stand-in's names, code of a command on `ranks` ranks.
local function on(ranks, command, env)
  local out, err, code = support.on_standin(ranks, command, env)
  return out, err:gsub("[^\n]*: loaded as [^\n]*\n", ""), code
end

local recipe = support.file [[
local function random(seed) -- numbers from low to high
  return function(low, high)
    seed = (seed * 1103515245 + 12345) % 2147483648
    return low + seed // 256 % (high - low + 1)
  end
end

return recipe { params = { seed = 1, side = 0, type = "bf16", off = 0, n = 0, long = 1 }, build = function(world, p)
  local shape, cuts = random(p.seed), random(p.seed * 2 + p.side)
  local w = p.n > 0 and world:window(p.off, p.n) or world
  local size = p.n > 0 and p.n or #world
  local x = cuts(0, 1) == 1 and size % 2 == 0 and 2 or 1
  local y = cuts(0, 1) == 1 and size // x % 2 == 0 and 2 or 1
  local g = grid(w, "x-y-z", { x = x, y = y, z = fill })
  local t = topology(world)
  t.dense = g
  for k, type in ipairs { p.type, "f64", "f8_e4m3" } do
    local axes, cut, dims = {}, {}, { "x", "y", "z" }
    for i, name in ipairs { "i", "j", "k" } do
      axes[i] = { name, shape(1, 14) * (i == 2 and p.long or 1) }
      local dim = table.remove(dims, cuts(1, #dims))
      local how = cuts(0, 3)
      if how > 0 then cut[name] = how == 1 and dim or how == 2 and { dim, sizes = "ceil" } or { dim, cyclic = cuts(1, 4) } end
    end
    t["t" .. k] = tensor { axes = axes, type = type, cut = cut }
  end
  return t
end }
]]

describe("run A vs B --move --backend nccl", function()
  teardown(function()
    support.clean()
  end)

  for _, case in ipairs {
    { 1, "vs side=1" }, { 2, "vs side=1" }, { 4, "vs side=1", "NCCL_COMM_BLOCKING=0" }, { 6, "vs side=1 --rounds" },
    { 8, "seed=2 vs seed=2 side=1" }, { 8, "seed=3 vs seed=3 side=1 --rounds --window 1" },
    { 8, "seed=4 n=4 vs seed=4 side=1 off=4 n=4 --timeout 60" }, { 8, "seed=5 --world 4 vs seed=5 side=1" },
    { 4, "seed=6 long=900 vs seed=6 long=900 side=1 --window 1" }, { 4, "seed=6 long=900 vs seed=6 long=900 side=1 --rounds" },
    { 4, "seed=7 vs seed=7 side=1 --map 3,2,1,0 --tensor t2" },
  } do
    local ranks, line, env = table.unpack(case)
    it(("proves every element on %d ranks, and sends no byte more than planned: %s"):format(ranks, line), function()
      local trace = os.tmpname()
      local out, err, code = on(ranks, ("build/moongrid run %s %s --move --backend nccl"):format(recipe, line),
        ("%s STANDIN_STRICT=1 STANDIN_TRACE=%s"):format(env or "", trace))
      assert.are.same({ "", 0 }, { err, code })
      assert.truthy(out:find(("^moved +%%d tensors? on nccl: .* every element proved on %s\n$"):format(
        ranks == 1 and "1 rank" or ("all %d ranks"):format(ranks))), out)
      local sent = 0
      for rank = 0, ranks - 1 do
        local file = io.open(trace .. "." .. rank)
        for text in file and file:lines() or function() end do
          sent = sent + (tonumber(text:match "^ncclSend .- name=moves count=(%d+) type=1 ") or 0)
        end
        if file then file:close() end
      end
      os.execute("rm -f " .. trace .. "*")
      local plan = line:gsub("%-%-window %d+", ""):gsub("%-%-timeout %d+", ""):gsub("%-%-rounds", "")
      local before, after = plan:match "^(.-)vs(.*)$"
      local function world(side) return side:find "--world" and side or side .. " --world " .. ranks end
      local planned = assert(support.run(("build/moongrid move %s %s vs %s --json"):format(recipe, world(before), world(after))))
      local total = planned:match '.*"minimum": *(%d+)' -- the last: of all tensors
      assert.equal(tonumber(total), sent)
    end)
  end

  it("takes its window from the GPU's memory, and no more than that", function()
    local line = ("build/moongrid run %s seed=6 long=900 vs seed=6 long=900 side=1 --move --backend nccl"):format(recipe)
    local _, err, code = on(4, line, "STANDIN_MEMORY=120") -- the communicator has (3 x 16 + 2) x 2 MiB of it
    assert.equal(0, code, err)
    _, err, code = on(4, line, "STANDIN_MEMORY=90")
    assert.equal(4, code)
    assert.truthy(err:find("moongrid: %[rank 0/4%] rank %d: nccl: creation for moves: .-out of memory"), err)
  end)

  it("refuses to change types in memory of a GPU, and frees what it has there", function()
    local _, err, code = on(4, ("build/moongrid run %s vs type=f32 side=1 --move --convert --backend nccl"):format(recipe),
      "STANDIN_STRICT=1")
    assert.equal(4, code)
    assert.equal("moongrid: [rank 0/4] rank 0: tensor 't1' is bf16 before the move and f32 after it; a move in GPU memory "
      .. "cannot change types", err:match "^[^\n]*")
  end)

  it("refuses a budget that the communicator of all ranks does not fit into, before anything is made", function()
    local _, err, code = on(4, ("build/moongrid run %s vs side=1 --move --backend nccl --gpu-memory 90"):format(recipe))
    assert.are.same({ "moongrid: [rank 0/4] rank 0: moves would bring the communicators of rank 0 to 100 MiB of GPU memory, the "
      .. "budget is 90 MiB; a larger budget has room for it, or MPI moves, where it is CUDA-aware", 3 }, { err:match "^[^\n]*", code })
  end)

  it("proves 60 random moves on one backend, beside its states, and leaves nothing behind", function()
    local script = support.file(([[
      local mg = require "moongrid"
      local job, recipe = assert(mg.nccl()), mg.load %q
      local state = assert(job:materialize(recipe:plan(job.world), "beside"))
      for seed = 1, 60 do
        local half = job.world // 2
        local from = { seed = seed, long = seed %% 7 == 0 and 90 or 1, off = 0, n = seed %% 3 == 0 and half or 0 }
        local to = { seed = seed, side = seed %% 5 + 1, long = from.long, off = from.n, n = from.n }
        local move = mg.move(recipe:plan(job.world, from), recipe:plan(job.world, to), { rank = job.rank, rounds = seed %% 4 == 0 })
        assert(move:prove(job, { window = seed %% 2 == 0 and 1 << 14 or nil }))
      end
      if job.rank == 0 then print "fine" end
      state:close()
      job:close()
    ]]):format(recipe))
    local out, err, code = on(6, "lua5.4 " .. script, "STANDIN_STRICT=1")
    assert.are.same({ "fine\n", 0 }, { out, code }, err)
  end)
end)

describe("mgrid_move_run over NCCL", function()
  it("refuses memory that is not the GPU's on all ranks, and then goes again and again", function()
    local out, err, code = on(4, "build/tests/nccl/move", "STANDIN_STRICT=1")
    assert.equal(0, code, err .. out)
    assert.truthy(out:find "\n1%.%.6\n$", out)
  end)

  it("tells all ranks where NCCL fails on the way, and moves no more", function()
    local out, err, code = on(4, "build/tests/nccl/move failing", "STANDIN_SEND_ERROR=2")
    assert.equal(0, code, err .. out)
    assert.truthy(out:find "\n1%.%.2\n$", out)
    assert.truthy(err:find("gets ncclRemoteError (STANDIN_SEND_ERROR)", 1, true), err)
  end)

  it("goes over MPI where that is CUDA-aware, and is refused where it is not", function()
    local out, err, code = on(4, "build/tests/nccl/move mpi", "STANDIN_STRICT=1")
    assert.equal(0, code, err .. out)
    assert.truthy(out:find "\n1%.%.2\n$", out)
  end)

  it("leaves nothing in a store that a later creation takes for its own", function()
    local folder = support.folder()
    local out, err, code = on(4, "build/tests/nccl/move kept " .. folder, "STANDIN_STRICT=1")
    support.run("rm -r " .. folder)
    assert.equal(0, code, err .. out)
    assert.truthy(out:find "\n1%.%.2\n$", out)
  end)

  it("names a rank that never comes", function()
    local out = on(4, "build/tests/nccl/move absent")
    assert.equal("403: after 1 seconds not all ranks had come: rank 1 is not there, in call 1 over all ranks: a move of tensors\n", out)
  end)
end)
