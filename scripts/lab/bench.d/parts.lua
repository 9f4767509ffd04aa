-- SPDX-License-Identifier: MIT
--
-- The parts of the benchmark: each gets the driver B, runs programs, fills tables. Times are
-- measured by the programs; ratios are of medians of the same run.

local json = require "dkjson"

local parts = {}
local LARGEST = 2147483648 - 1048576

local function number(n) return n == LARGEST and "2^31-2^20" or ("%d"):format(n) end

-- ----------------------------------------------------------------------- plan

local function peers_plan(B, t)
  local data = {}
  local worlds = B.quick and { 64 } or { 64, 1024, 8192, 65536 }
  if not B.python then
    t:note "Megatron-core: skipped, there is no Python with torch"
  elseif not B.samples(data, ("PYTHONPATH=$MEGATRON %s scripts/lab/bench.d/mcore.py %d %s 2>/dev/null"):format(B.python,
    B.quick and 1 or 2, table.concat(worlds, " "))) then
    t:note "Megatron-core: skipped, neither installed nor MEGATRON=path"
  else
    for _, world in ipairs(worlds) do
      t:row(("Megatron-core %s, world %d"):format(B.megatron() or "", world), data["megatron " .. world],
        { remark = ("CPU, %d calls of a new_group that does nothing"):format(data["megatron calls " .. world][1]) })
    end
    t:note("Megatron's initialize_model_parallel enumerates the world because its group creation is collective: "
      .. "not the same work.")
  end
end

function parts.plan(B)
  local worlds = { 64, 1024, 65536, 1048576, LARGEST }
  if B.quick then worlds = { 64, 1048576 } end
  B.compile("plan", "scripts/lab/bench.d/plan.c")
  B.compile("plan-memory", "-DWITH_MEMORY scripts/lab/bench.d/plan.c scripts/lab/bench.d/memory.c")
  local data = {}
  for _, world in ipairs(worlds) do
    assert(B.samples({}, ("%s/plan check %d"):format(B.dir, world)), "the C layout is not the recipe's")
    for _, way in ipairs { "recipe", "c" } do
      assert(B.samples(data, ("%s/plan-memory once %s %d"):format(B.dir, way, world)))
    end
  end
  assert(B.samples(data, ("%s/plan time %d %s"):format(B.dir, B.quick and 5 or 200, table.concat(worlds, " "))))

  local least = "bare descriptors, world 1048576"
  local t = B.table("one rank's whole plan, megatron with 32 families", "us", { least })
  t:row(least, data["least 1048576"], { remark = "32 x (base, group, position), no names, no sharing" })
  for _, world in ipairs(worlds) do
    t:row("recipe, world " .. number(world), data["recipe " .. world],
      { remark = "new Lua state, compile, run, plan, view" })
  end
  for _, world in ipairs(worlds) do
    t:row("C, world " .. number(world), data["c " .. world], { remark = "the same families without Lua" })
  end
  for _, way in ipairs { "recipe", "c" } do
    t:row(way .. " without the 5 gloo families", data[way .. " nogloo 1048576"])
    for stage in (way == "c" and "build plan view close" or "open load plan view close"):gmatch "%a+" do
      t:row(("  %s: %s"):format(way, stage), data[("%s %s 1048576"):format(way, stage)],
        { remark = stage == "close" and "not in the whole" or nil })
    end
  end
  peers_plan(B, t)

  local function extremes(way)
    local low, high = math.huge, 0
    for _, world in ipairs(worlds) do
      local median = B.stat(data[("%s %d"):format(way, world)]).median
      low, high = math.min(low, median), math.max(high, median)
    end
    return high, high / low
  end
  local slowest, flatness = extremes "recipe"
  t:target("recipe evaluation included, us", slowest, 1000)
  t:target("flat from 64 ranks to 2^31 - 2^20: largest over smallest", flatness, 1.2)
  slowest, flatness = extremes "c"
  t:target("from C, us", slowest, 20)
  t:target("flat from 64 ranks to 2^31 - 2^20: largest over smallest, from C", flatness, 1.2)

  local m = B.table("heap of one rank's plan", "KiB")
  local function kib(list) return { list[1] / 1024 } end
  local most = 0
  for _, world in ipairs(worlds) do
    most = math.max(most, data["recipe peak " .. world][1] / 1024)
    m:row("recipe, world " .. number(world) .. ", at most", kib(data["recipe peak " .. world]),
      { remark = ("%d allocations"):format(data["recipe calls " .. world][1]) })
  end
  m:row("C, world 1048576, at most", kib(data["c peak 1048576"]),
    { remark = ("%d allocations"):format(data["c calls 1048576"][1]) })
  m:row("the plan that stays, world 1048576", kib(data["plan keeps 1048576"]))
  m:target("heap, KiB", most, 256)
end

-- --------------------------------------------------------------- instructions

local RECORD = "scripts/lab/bench.d/instructions.json"

function parts.instructions(B)
  local t = B.table("instructions of planning by callgrind", "thousands")
  if not B.first_line "valgrind --version" then
    t:note "skipped: valgrind is not installed"
    return { skipped = "valgrind is not installed" }
  end
  B.compile("plan", "scripts/lab/bench.d/plan.c")
  B.compile("moves", "scripts/lab/bench.d/moves.c")
  local counts, recorded = {}, {}
  local file = io.open(RECORD)
  if file then
    recorded = assert(json.decode(file:read "a"))
    file:close()
  end
  local programs = { -- the function that is counted, the program
    c = { "from_c", "plan once c" }, recipe = { "from_recipe", "plan once recipe" },
    move = { "one_move", "moves once fits" }, ["odd move"] = { "one_move", "moves once odd" },
  }
  for _, way in ipairs { "c", "recipe", "move", "odd move" } do
    for _, world in ipairs(way:find "move" and { 1024, 1048576 } or { 64, 1048576 }) do
      local name = ("%s %d"):format(way, world)
      local said = B.run(("LD_BIND_NOW=1 valgrind --tool=callgrind --callgrind-out-file=/dev/null --collect-atstart=no "
        .. "--toggle-collect=%s %s/%s %d 2>&1"):format(programs[way][1], B.dir, programs[way][2], world))
      counts[name] = assert(math.tointeger(tonumber(said:match "Collected : (%d+)")), said)
      local was = recorded.counts and recorded.counts[name]
      t:row(name, { counts[name] / 1000 }, { remark = was and ("recorded: %.0f"):format(was / 1000) or "not recorded" })
      if was then t:target(name .. " over the recorded count", counts[name] / was, recorded.bound) end
    end
  end
  if B.record then
    dofile "scripts/make/whole.lua" (RECORD, json.encode({ bound = 1.3, counts = counts, date = os.date "!%Y-%m-%d",
      valgrind = B.first_line "valgrind --version", compiler = B.first_line "${CC:-cc} --version",
      lua = B.first_line "lua5.4 -v" }, { indent = true, keyorder = { "bound", "counts", "date" } }) .. "\n")
    t:note("recorded in %s", RECORD)
  end
  return { counts = counts }
end

-- ---------------------------------------------------------------------- moves

parts.moves = require "moves"

-- ------------------------------------------------------------------ enumerate

function parts.enumerate(B)
  B.compile("enumerate", "scripts/lab/bench.d/enumerate.c")
  B.compile("spawn", "scripts/lab/bench.d/spawn.c", "alone")
  local world, data = B.quick and 65536 or 1048576, {}
  assert(B.samples(data, ("%s/enumerate %d %d"):format(B.dir, B.quick and 3 or 30, world)))
  local ranks = data.ranks[1]
  local t = B.table(("every group of all 32 families at %d ranks, a warm buffer"):format(world), "ms",
    { "plain C loops" })
  local function rate(list) return { remark = ("%.2f ns a rank"):format(1e6 * B.stat(list).median / ranks) } end
  t:row("plain C loops", data.plain, rate(data.plain))
  t:row("mgrid_family_members", data.ours, rate(data.ours))
  t:row("memcpy of the same bytes", data.copy, rate(data.copy))
  for _, name in ipairs { "tp_dp_cp", "dp_cp", "tp", "embd", "cp", "gtp_remat" } do
    local ours, plain = data["ours " .. name][1], data["plain " .. name][1]
    t:row("  " .. name .. ", least time", { ours }, { remark = ("%.2f of plain C"):format(ours / plain) })
  end
  t:note("%.1f million ranks written", ranks / 1e6)
  t:target("over plain C loops", t:times("mgrid_family_members", "plain C loops"), 1.5)

  -- The command writes groups as it lists them, so its memory must not grow with the world.
  local s = B.table("moongrid plan --json and check: resident set", "KiB")
  local most, least = { 0, 0 }, { math.huge, math.huge }
  for _, w in ipairs(B.quick and { 1024, 65536 } or { 1024, 65536, 1048576 }) do
    for i, line in ipairs { "plan megatron --world %d --json", "check megatron --world %d" } do
      local used = {}
      local command = ("build/moongrid " .. line .. " tp=8 cp=2 pp=8 ep=8 etp=1"):format(w)
      if B.samples(used, ("%s/spawn 1 %s"):format(B.dir, command)) then
        s:row(line:format(w), used.KiB, { remark = ("%.0f ms"):format(B.stat(used.ms).median) })
        most[i], least[i] = math.max(most[i], used.KiB[1]), math.min(least[i], used.KiB[1])
      else
        s:note("%s: failed", command)
      end
    end
  end
  s:target("plan --json: resident set of the largest world over the smallest", most[1] / least[1], 1.2)
  s:target("check: resident set of the largest world over the smallest", most[2] / least[2], 1.2)
end

-- --------------------------------------------------------------------- create

local ways = { -- name of the program's way, what it is
  { "ours", "moongrid" },
  { "best", "plain C create_group, the same communicators" },
  { "world", "(a) MPI_Comm_create per group over the world" },
  { "split", "(b) MPI_Comm_split per family" },
  { "group", "(c) MPI_Comm_create_group per family, nothing shared" },
  { "world_kind", "MPI_Comm_create per family over the world" },
  { "split_best", "plain C, the same by a split of the world each" },
  { "by_size", "plain C create_group, small groups first" },
  { "idup", "plain C, equal members duplicated, all in flight" },
  { "threads", "plain C create_group, all at once, a thread each" },
  { "dup", "MPI_Comm_dup of the world" },
}

-- BENCH_WAYS="ours best": these alone
local chosen = {}
for _, way in ipairs(ways) do
  local wanted = (" %s "):format(os.getenv "BENCH_WAYS" or way[1])
  if wanted:find((" %s "):format(way[1]), 1, true) then table.insert(chosen, way) end
end

local OPENING, MAKING = "moongrid: opening a backend", "moongrid: creating, with one open"
local GLOO = "(d) torch gloo new_group, no store barrier"

local function torch_rows(B, t, layout, ranks, launches)
  if not B.python then return t:note "(d) torch.distributed on gloo: skipped, there is no Python with torch" end
  if layout ~= "facts" or ranks > 32 then return t:note "(d) torch.distributed on gloo: not run for this one" end
  local plan = B.dir .. "/facts.json"
  B.run(("build/moongrid plan scripts/lab/bench.d/facts.lua --world %d --json > %s"):format(ranks, plan))
  for i, mode in ipairs { "free", "barrier" } do
    local data = {}
    for launch = 1, math.min(launches, 3) do
      B.samples(data, ("LAUNCH_SECONDS=200 scripts/launch %d %s " ..
        "scripts/lab/bench.d/gloo.py %s %d %s 2>/dev/null"):format(ranks, B.python, plan,
        29400 + 100 * i + 16 * launch + ranks, mode))
    end
    t:row(mode == "free" and GLOO or "torch gloo new_group, stock", data.cold, data.calls and {
      calls = data.calls[1], comms = data.comms[1],
      remark = ("%d calls, %d groups, %d threads"):format(data.calls[1], data.comms[1], data["threads added"][1]),
    })
  end
  t:note "(d) is another transport: TCP between all pairs and three threads per group."
end

function parts.create(B)
  local points = {}
  if not B.first_line "mpirun --version" or not B.compile("create", "scripts/lab/bench.d/create.c", "mpi") then
    B.table("creating communicators", "ms"):note "skipped: no MPI"
    return { skipped = "no MPI" }
  end
  local launches = tonumber(os.getenv "BENCH_LAUNCHES" or (B.quick and 1 or 9))
  for _, layout in ipairs { "pencil", "grid3d", "small", "facts", "megatron" } do
    for _, ranks in ipairs(B.quick and { 8 } or { 8, 16, 32, 64 }) do
      local data, unit = {}, {}
      for _ = 1, launches do -- in turn, so that other load on the machine affects all of them
        for _, way in ipairs(chosen) do
          local one = {}
          if B.samples(one, ("LAUNCH_SECONDS=60 scripts/launch %d %s/create %s %s 2>/dev/null"):format(ranks, B.dir,
            layout, way[1])) then
            for key, list in pairs(one) do
              local all = data[way[1] .. " " .. key] or {}
              data[way[1] .. " " .. key] = table.move(list, 1, #list, #all + 1, all)
            end
            table.move(one.allreduce, 1, #one.allreduce, #unit + 1, unit)
          end
        end
      end
      local shown = { pencil = "two families of pencils", grid3d = "a 3D grid", small = "4 families",
        facts = "17 families", megatron = "megatron" }
      local t = B.table(("creating the communicators of %s, %d ranks on %s cores, cold"):format(
        shown[layout], ranks, B.first_line "nproc"), "ms", { "moongrid" })
      for _, way in ipairs(chosen) do
        local name, calls, comms = way[1], data[way[1] .. " calls"], data[way[1] .. " comms"]
        t:row(way[2], data[name .. " cold"], calls and { way = name, calls = calls[1], comms = comms[1],
          warm = B.stat(data[name .. " warm"]).median,
          remark = ("%d calls, %d communicators a rank; again: %.2f"):format(calls[1], comms[1],
            B.stat(data[name .. " warm"]).median) })
      end
      t:row(OPENING, data["ours cold opening"])
      t:row(MAKING, data["ours cold making"])
      if layout == "facts" and #chosen == #ways then torch_rows(B, t, layout, ranks, launches) end
      t:row("one MPI_Allreduce over the world", unit)
      t:row("planning on every rank at once, from C", data["ours plan"])
      if data["ours recipe"] then t:row("planning on every rank at once, from the recipe", data["ours recipe"]) end
      t:note("median of %d launches each, the ways in turn; %d thread added by the MPI backend", launches,
        data["ours threads added"] and data["ours threads added"][1] or -1)
      local best = ways[2][2]
      t:target("opening over a duplicate", t:times(OPENING, ways[11][2]), 2)
      t:target("creating over plain C", t:times(MAKING, best), 1.3)
      if layout ~= "facts" and layout ~= "megatron" then
        t:target("opening and creating over (b)", t:times("moongrid", ways[4][2]), 1.5)
        t:target("the same again, with what is kept", B.stat(data["ours warm"] or { 0 }).median
          / B.stat(data["split warm"] or { 0 / 0 }).median, 1.5)
      end
      if ranks == 64 and (layout == "facts" or layout == "megatron") then
        t:target("(a) over ours", t:times(ways[3][2], "moongrid"), 15, true)
        t:target("(b) over ours", t:times(ways[4][2], "moongrid"), 2, true)
        t:target("(c) over ours", t:times(ways[5][2], "moongrid"), 2, true)
      end
      if ranks == 32 then t:target("(d) over ours", t:times(GLOO, "moongrid"), 50, true) end
      for _, row in ipairs(t.rows) do
        if row.way then
          table.insert(points, { layout = layout, ranks = ranks, way = row.way, median = row.median, min = row.min,
            calls = row.calls, comms = row.comms })
        end
      end
    end
  end
  return { points = points }
end

parts.libraries = require "libraries"
parts.place = require "place"
parts.congestion = require "congestion"
parts.step = require "step"
parts.losses = require "losses"
parts.playground = require "playground"
parts.simulated = require "simulated"
parts.nccl = require "nccl"

-- ---------------------------------------------------------------------- torch

local MEGATRON = "Megatron-core's initialize_model_parallel"

function parts.torch(B)
  local version = B.megatron()
  if not version then
    B.table("process groups in torch", "ms"):note "skipped: no Python with torch and megatron-core (PYTHON, MEGATRON)"
    return { skipped = "no torch and megatron-core" }
  end
  for _, ranks in ipairs(B.quick and { 8 } or { 8, 16, 32 }) do
    local data, launches = {}, tonumber(os.getenv "BENCH_LAUNCHES" or (B.quick and 1 or 9))
    local t = B.table(("process groups of megatron %s, tp 2 cp 2 pp 2, in torch %s: %d ranks on %s cores"):format(
      version, B.torch, ranks, B.first_line "nproc"), "ms", { "moongrid" })
    assert(B.samples(data, ("PYTHONPATH=$MEGATRON %s scripts/lab/bench.d/torch_groups.py %d %d 2>/dev/null"):format(
      B.python, ranks, launches)), "torch_groups.py failed")
    for _, way in ipairs {
      { "moongrid", "moongrid" }, { "megatron", MEGATRON }, { "stock", "moongrid's by new_group on all ranks" },
    } do
      local function count(key) return data[way[1] .. " " .. key][1] end
      t:row(way[2], data[way[1] .. " cold"], { groups = count "groups", calls = count "calls",
        remark = ("%d calls, %d groups and %d threads a rank"):format(count "calls", count "groups", count "threads") })
    end
  end
end

-- ------------------------------------------------------------------ questions

local FUNCTION = "a library's function that reads a struct"

function parts.questions(B)
  B.compile("libplain.so", "-fPIC -shared scripts/lab/bench.d/plain.c", "alone")
  local sources = "scripts/lab/bench.d/questions.c scripts/lab/bench.d/memory.c"
  B.compile("questions", sources .. " -Wl,-rpath,'$ORIGIN' -lplain -L" .. B.dir)
  local data, rounds = {}, B.quick and 3 or 50
  assert(B.samples(data, ("%s/questions %d"):format(B.dir, rounds)))
  local t = B.table("questions in C (megatron at 1048576 ranks; the loop is not taken off)", "ns", { FUNCTION })
  for _, line in ipairs {
    { "loop", "the empty loop" }, { "struct", "a struct read in place" },
    { "function", "a function of the program that reads a struct" }, { "library", FUNCTION },
    { "handle rank", "mgrid_group_position" }, { "handle size", "mgrid_group_size" },
    { "handle next", "mgrid_group_beside, wrap" }, { "handle at", "mgrid_group_at" },
    { "handle position", "mgrid_group_position_of" },
    { "name first", "mgrid_state_group, first of 32 families" }, { "name tp", "mgrid_state_group, 21st: tp" },
    { "name last", "mgrid_state_group, last of 32" }, { "coord", "mgrid_state_coord" },
  } do t:row(line[2], data[line[1]]) end
  t:note "no allocation in any of them: counted"
  t:target("handle read over " .. FUNCTION, t:times("mgrid_group_position", FUNCTION), 1.5)
  t:target("by name, ns", t:find "mgrid_state_group, last of 32".median, 25)

  local lua = {}
  local l = B.table("questions in Lua", "ns", { "table.tp.position of plain tables" })
  if not B.samples(lua, ("lua5.4 scripts/lab/bench.d/questions.lua %d"):format(rounds)) then return l:note "failed" end
  for _, line in ipairs {
    { "lua loop", "the empty loop" }, { "lua table", "table.tp.position of plain tables" },
    { "lua handle", "tp.position" },
    { "lua state", "state.tp" }, { "lua both", "state.tp.position" }, { "lua next", "tp:next 'wrap'" },
  } do
    l:row(line[2], lua[line[1]], { remark = ("%.0f bytes"):format(lua[line[1] .. " bytes"][1]) })
  end
  l:target("state.tp.position, ns", l:find "state.tp.position".median, 60)
  l:target("state.tp.position, bytes allocated", lua["lua both bytes"][1], 0)
end

-- -------------------------------------------------------------------- policies

function parts.policies(B)
  B.compile("policies", "$(pkg-config --cflags lua5.4) scripts/lab/bench.d/policies.c $(pkg-config --libs lua5.4)")
  local data = {}
  assert(B.samples(data, ("%s/policies %d"):format(B.dir, B.quick and 3 or 50)))
  local t = B.table("a policy of one line, called from C with one argument", "ns", { "Lua's own call" })
  t:row("Lua's own call", data.lua, { remark = "the table of arguments, lua_pcall, the number" })
  t:row("mgrid_policy_call and mgrid_policy_result", data.policy)
  t:row("beyond Lua's own", data.beyond)
  t:row("policies.learning_rate, cosine", data.bundled)
  t:row("a query of megatron, mgrid_runtime_ask", data.query)
  t:target("beyond Lua's own, ns", t:find("beyond Lua's own").median, 1000)
end

-- ----------------------------------------------------------------------- proofs

function parts.proofs(B)
  B.compile("proofs", "scripts/lab/bench.d/proofs.c")
  local data = {}
  assert(B.samples(data, ("%s/proofs %d"):format(B.dir, B.quick and 3 or 50)))
  local t = B.table("mgrid_step_expect of the next call", "ns")
  t:row("in a loop, one of four", data.expect)
  t:target("a call, ns", t:find "in a loop, one of four".median, 20)
  t = B.table("a proof where 512 ranks have 512 programs", "operations a second")
  t:row("executed", data.executed)
  t = B.table("steps of megatron evaluated in one process, 96 layers", "ms")
  for _, row in ipairs {
    { "1f1b", "1,024 ranks, 8 stages, 1f1b" }, { "interleaved", "12 virtual stages" },
    { "overlap", "gradients on a stream of their own" }, { "million", "1,048,576 ranks, 16 stages" },
  } do
    t:row(row[2], data[row[1]])
    t:row("  proved", data[row[1] .. " proved"])
  end
  local plain = t:find "1,024 ranks, 8 stages, 1f1b".median
  t:target("1f1b evaluated, ms", plain, 3)
  t:target("12 virtual stages evaluated, times 1f1b", t:find "12 virtual stages".median / plain, 1.5)
end

-- ---------------------------------------------------------------------- start

function parts.start(B)
  B.compile("spawn", "scripts/lab/bench.d/spawn.c", "alone")
  B.compile("embed", "scripts/lab/bench.d/embed.c")
  local t = B.table("size", "KiB")
  for _, name in ipairs { "libmoongrid.so", "libmoongrid_lua.so", "libmoongrid_mpi.so", "moongrid" } do
    B.run(("strip -o %s/stripped build/%s 2>/dev/null"):format(B.dir, name))
    local size = tonumber(B.first_line(("stat -c %%s %s/stripped"):format(B.dir)))
    os.remove(B.dir .. "/stripped")
    if size then t:row(name .. ", stripped", { size / 1024 }) end
    if name == "libmoongrid.so" then t:target("library without Lua and backends, KiB", size / 1024, 400) end
  end
  local p = B.table("a process from fork to its end", "ms", { "lua5.4 that does nothing" })
  local rounds, resident = B.quick and 3 or 50, {}
  for _, line in ipairs {
    { "the command `true`", "true" }, { "lua5.4 that does nothing", "lua5.4 -e 'local x'" },
    { "moongrid plan, 64 ranks", "build/moongrid plan megatron --world 64 tp=4 cp=2 pp=4 ep=4 etp=1" },
    { "moongrid plan, 1048576 ranks", "build/moongrid plan megatron --world 1048576 tp=8 cp=2 pp=8 ep=8 etp=1" },
    { "a C host, a runtime and the same plan", B.dir .. "/embed" }, { "a C host, no runtime", B.dir .. "/embed alone" },
    { "moongrid plan --rank 5", "build/moongrid plan megatron --world 1048576 tp=8 cp=2 pp=8 ep=8 etp=1 --rank 5" },
  } do
    local data = {}
    if B.samples(data, ("%s/spawn %d %s"):format(B.dir, rounds, line[2])) then
      resident[line[1]] = B.stat(data.KiB).median
      p:row(line[1], data.ms, { remark = ("%d KiB resident"):format(resident[line[1]]) })
    end
  end
  p:target("moongrid plan, ms", p:find "moongrid plan, 1048576 ranks".median, 10)
  p:target("moongrid plan, MiB resident", resident["moongrid plan, 1048576 ranks"] / 1024, 8)

  local data = {}
  if not B.first_line "mpirun --version" or not B.compile("create", "scripts/lab/bench.d/create.c", "mpi")
    or not B.samples(data, ("scripts/launch 8 %s/create megatron ours 2>/dev/null"):format(B.dir)) then
    return p:note "threads of the MPI backend: skipped, no MPI"
  end
  p:target("threads that the MPI backend adds", data["threads added"][1], 0)
end

return parts
