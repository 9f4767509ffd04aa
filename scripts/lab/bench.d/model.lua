-- SPDX-License-Identifier: MIT
--
-- The model of scripts/lab/model: compare the model of MPI (estimate.lua) with measurements, and estimate larger
-- worlds.

local estimate = require "estimate"
local json = require "dkjson"

-- Constants: all are printed.
local nccl = { -- NCCL 2.28.9: read in its source, or measured in its CPU code without a GPU
  ring_step = 50e-6,    -- a step of the bootstrap ring; it is walked in both directions
  gathers = 3,          -- all-gathers of one creation: addresses, peers, graph
  fixed = 0.15,         -- topology detection of one communicator, 0.15 to 0.5
  channels = 32,
  copy = 4e-6,          -- a tiny copy, one per member and channel
  per_root = 7000,      -- ranks per second that one root lets in, above 256
  pairs = 42 / 1e5 ^ 2, -- seconds per pair of ranks in the loop over all peers
}
local python = 75e-6    -- Megatron-core's own enumeration, per rank of the world (scripts/lab/bench plan)

local function printf(...) print((string.format(...):gsub(" +$", ""))) end

-- ------------------------------------------------- MPI, against what was measured

-- Fit by least squares of relative errors: time = (ranks / cores)^e x (communicators x a + steps x b). The
-- exponent e, the best of a list, is for caches: the more processes share a core, the colder they are for each.
local function fit(points, cores)
  local rows, best = {}, nil
  for _, p in ipairs(points) do
    local n, hops = estimate.steps(p.way, estimate.creations(p.layout, p.ranks), p.ranks)
    if n then rows[#rows + 1] = { p = p, n = n, hops = hops } end
  end
  for e = 1, 2, 0.05 do
    local aa, ab, bb, at, bt = 0, 0, 0, 0, 0
    for _, r in ipairs(rows) do
      local share, time = (r.p.ranks / cores) ^ e, r.p.min / 1e3
      local x, y = share * r.n / time, share * r.hops / time
      aa, ab, bb, at, bt = aa + x * x, ab + x * y, bb + y * y, at + x, bt + y
    end
    local det = aa * bb - ab * ab
    if #rows < 3 or det <= 0 then return nil end
    local a, b = (at * bb - bt * ab) / det, (bt * aa - at * ab) / det
    if a < 0 then a, b = 0, bt / bb end
    local error = 0
    for _, r in ipairs(rows) do
      r.model = (r.p.ranks / cores) ^ e * (r.n * a + r.hops * b)
      error = error + (r.model / (r.p.min / 1e3) - 1) ^ 2
    end
    if not best or error < best.error then best = { a = a, b = b, e = e, error = error } end
  end
  for _, r in ipairs(rows) do r.model = (r.p.ranks / cores) ^ best.e * (r.n * best.a + r.hops * best.b) end
  return best, rows
end

local function check(path)
  local file = io.open(path)
  if not file then return printf("not checked: %s is not there; scripts/lab/bench create writes it", path) end
  local bench = json.decode(file:read "a")
  file:close()
  local points = bench and bench.parts and bench.parts.create and bench.parts.create.values
    and bench.parts.create.values.points
  if not points then return printf("not checked: %s has no part create", path) end
  local cores = bench.machine.cores
  local best, rows = fit(points, cores)
  if not best then return printf("not checked: too few measurements in %s", path) end
  printf("check: least times of %s (%s), %d cores for all ranks", path, bench.date, cores)
  printf("  time = (ranks / cores)^%.2f x (communicators x %.1f us + steps x %.2f us), three numbers fitted", best.e,
    1e6 * best.a, 1e6 * best.b)
  printf("  %-9s %5s %-6s %9s %6s %11s %11s %6s", "layout", "ranks", "way", "held", "steps", "measured ms",
    "model ms", "ratio")
  local logs, worst, low, high = 0, 1, math.huge, 0
  for _, r in ipairs(rows) do
    local model = 1e3 * r.model
    local ratio = model / r.p.min
    low, high = math.min(low, r.p.min), math.max(high, r.p.min)
    logs, worst = logs + math.log(ratio) ^ 2, math.max(worst, ratio, 1 / ratio)
    printf("  %-9s %5d %-6s %9d %6d %11.2f %11.2f %6.2f", r.p.layout, r.p.ranks, r.p.way, r.n, r.hops, r.p.min, model,
      ratio)
  end
  printf("  typical error %.2fx, worst %.2fx over a range of %.0fx", math.exp((logs / #rows) ^ 0.5), worst, high / low)
end

-- -------------------------------------------------------------------- estimates

-- Return the seconds of one ncclCommInitRankConfig over n ranks; `scalable`: with as many roots as necessary.
local function nccl_init(n, scalable)
  local time = nccl.fixed + nccl.gathers * n / 2 * nccl.ring_step + n * nccl.channels * nccl.copy + nccl.pairs * n * n
  if n > 256 and not scalable then time = time + n / nccl.per_root end
  return time
end

local function nccl_times(c, world)
  local gather = world / 2 * nccl.ring_step
  local serial, longest = 0, 0
  for _, size in ipairs(c.led) do
    serial = serial + nccl_init(size, true)
    longest = math.max(longest, nccl_init(size, true))
  end
  local each = 0
  for _, size in ipairs(c.families) do each = each + (size > 1 and nccl_init(size) or 0) end
  local parent = nccl_init(world)
  return {
    serial = serial, longest = longest, lazy = each + python * world,
    split = parent + each + #c.families * gather, world = parent + each + c.groups * gather + python * world,
  }
end

local function seconds(t)
  if t < 1e-3 then return ("%.0f us"):format(1e6 * t) end
  if t < 1 then return ("%.1f ms"):format(1e3 * t) end
  return t < 7200 and ("%.1f s"):format(t) or ("%.1f h"):format(t / 3600)
end

local function constants(name, t)
  local keys, list = {}, {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys)
  for _, key in ipairs(keys) do list[#list + 1] = ("%s %g"):format(key, t[key]) end
  printf("  %-5s %s", name, table.concat(list, ", "))
end

print "moongrid: a model of creating communicators, megatron tp8 cp2 pp8 ep8 etp1, dp the rest"
print "\nassumptions (seconds, bytes per second, ranks)"
constants("mpi", estimate.constants)
constants("nccl", nccl)
print "  a rank has a core and a network of its own; nobody is late; a creation is rounds x 2 log2(n) messages one"
print "  after the other, and so are a rank's creations; moongrid also duplicates the host's communicator, reduces"
print "  over the world three times, and its members meet ahead of each creation"
printf("  Megatron's Python takes %g s per rank of the world", python)
print "  NCCL's numbers come from one node and from its source: right to a factor, not to a digit\n"
check(arg[1])

local worlds = { 1024, 4096, 16384, 65536, 100352 }
local known = {}
for _, world in ipairs(worlds) do known[world] = estimate.creations("megatron", world) end
local function table_of(title, rows)
  printf("\n%-58s %9s %9s %9s %9s %9s", title, table.unpack(worlds))
  for _, row in ipairs(rows) do
    local cells = {}
    for i, world in ipairs(worlds) do cells[i] = row[2](known[world], world) end
    printf("%-58s %9s %9s %9s %9s %9s", row[1], table.unpack(cells))
  end
end

local function by_mpi(way)
  return function(c, world) return seconds(estimate.time(way, c, world)) end
end

local function by_nccl(what)
  return function(c, world) return seconds(nccl_times(c, world)[what]) end
end

table_of("MPI, ranks", {
  { "moongrid: what is led, members only", by_mpi "ours" },
  { "  creations of a rank", function(c) return #c.led end },
  { "a create_group per family, nothing shared", by_mpi "group" },
  { "a split of the world per family", by_mpi "split" },
  { "Megatron's way: every group by everybody", by_mpi "world" },
  { "  calls of a rank", function(c) return c.groups end },
})
table_of("NCCL, ranks", {
  { "moongrid's schedule, one after the other", by_nccl "serial" },
  { "moongrid's schedule, all in flight", by_nccl "longest" },
  { "a split of the world per family", by_nccl "split" },
  { "Megatron, lazy: own groups at first use, Python's lists", by_nccl "lazy" },
  { "Megatron, device_id: every group a split of the world", by_nccl "world" },
})
