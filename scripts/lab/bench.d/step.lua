-- SPDX-License-Identifier: MIT
--
-- The part `step` of scripts/lab/bench: the CPU time of pricing a step, from fork to end; and, if SimGrid's SMPI is
-- installed (Debian: libsimgrid-dev), prices, compared with the time that 64 simulated ranks of a fat tree take for the
-- same steps: for each layout the messages of `moongrid run --steps`, with the algorithms that SMPI chooses for MPICH,
-- without computes. Kendall's tau compares the two orders of the layouts. No constant is fitted: prices follow from the
-- machine's data and from SMPI's factors for messages above 64 KiB (smpi/lat-factor 11.6, smpi/bw-factor 0.94).

local json = require "dkjson"

local MODEL = "layers=8 hidden=128 heads=16 vocab=1024 seq=1024 global_batch=64 "
local MACHINE = "switch:*[200GB/s,2us] core:16[12.5GB/s,1us]" -- what scripts/lab/simulate builds
local FACTORS = '{ "latency": { "switch": 11.6e-6, "core": 5.8e-6 }, "efficiency": { "*": { "*": [[1, 0.94]] } } }'

local LAYOUTS = {}
for _, tp in ipairs { 1, 2, 4, 8, 16 } do
  for _, pp in ipairs { 1, 2, 4, 8 } do
    for _, extra in ipairs { "", "sequence_parallel=true zero=1" } do
      if tp * pp <= 64 and (extra == "" or tp > 1) then -- up to four microbatches
        LAYOUTS[#LAYOUTS + 1] = ("tp=%d pp=%d micro_batch=%d %s"):format(tp, pp, math.max(1, tp * pp // 4), extra)
      end
    end
  end
end

-- Kendall's tau-b of two lists.
local function tau(a, b)
  local score, ties_a, ties_b, all = 0, 0, 0, 0
  for i = 1, #a do
    for k = 1, i - 1 do
      local x, y = a[i] - a[k], b[i] - b[k]
      all = all + 1
      if x == 0 then ties_a = ties_a + 1 end
      if y == 0 then ties_b = ties_b + 1 end
      score = score + (x * y > 0 and 1 or x * y < 0 and -1 or 0)
    end
  end
  return score / math.sqrt((all - ties_a) * (all - ties_b))
end

-- Return the milliseconds of CPU time that a command line takes, from fork to end.
local function timed(B, line)
  local five = "bash -c 'TIMEFORMAT=\"%%3U %%3S\"; time for i in 1 2 3 4 5; do %s >/dev/null; done' 2>&1"
  local text = B.run(five:format(line))
  local user, system = text:match "([%d.]+) ([%d.]+)%s*$"
  return 1e3 * ((tonumber(user) or error(line .. ": " .. text)) + tonumber(system)) / 5
end

local function speed(B)
  local t = B.table("pricing a step on dgx-h100, CPU time from fork to end", "ms", { "moongrid" })
  local points = {}
  for _, size in ipairs {
    { "1,024 ranks, 96 layers, 128 microbatches", "--world 1024 tp=8 pp=8 layers=96 global_batch=2048" },
    { "... with a stream for gradients", "--world 1024 tp=8 pp=8 layers=96 global_batch=2048 overlap=true zero=1" },
    { "... in 12 virtual stages", "--world 1024 tp=8 pp=8 layers=96 global_batch=2048 vpp=12" },
    { "64 stages, 512 microbatches", "--world 1024 tp=8 pp=64 layers=128 global_batch=1024" },
    { "1,048,576 ranks, 16 stages", "--world 1048576 tp=8 pp=16 layers=96" },
  } do
    local list, model = {}, "build/moongrid step megatron hidden=12288 heads=96 "
    for i = 1, B.quick and 1 or 5 do list[i] = timed(B, model .. size[2] .. " --machine dgx-h100") end
    local row = t:row(size[1], list)
    if row then points[#points + 1] = { size = size[1], ms = row.median } end
  end
  return points
end

local function price(B, step, costs)
  local line = "build/moongrid step %s --world 64 --rules mpi --flops 1e23 --machine '%s' %s --json"
  return json.decode((B.run(line:format(step, MACHINE, costs)))).seconds
end

local function simulated(B)
  if not B.first_line "command -v smpicc" then return { skipped = "no smpicc" } end
  local rows, file = {}, B.dir .. "/factors.json"
  local f <close> = assert(io.open(file, "w"))
  f:write(FACTORS):close()
  for i, layout in ipairs(LAYOUTS) do
    if not B.quick or i % 8 == 1 then
      local step = "megatron " .. MODEL .. layout
      local line = "SIMULATE_COLLECTIVES=mpich scripts/lab/simulate 64 run %s --steps 1 --json 2> /dev/null"
      local out = B.run(line:format(step))
      local run = json.decode(out and out:match "{.*}" or "")
      rows[#rows + 1] = run and run.seconds and { layout = layout, simulated = run.seconds, plain = price(B, step, ""),
        factors = price(B, step, "--costs " .. file) }
    end
  end
  return { rows = rows }
end

-- Return Kendall's tau and the errors of a column, compared with the simulated times.
local function compare(t, rows, column, what)
  local a, b, errors = {}, {}, {}
  for i, row in ipairs(rows) do
    a[i], b[i], errors[i] = row[column], row.simulated, math.abs(row[column] / row.simulated - 1)
  end
  table.sort(errors)
  local found = { tau = tau(a, b), median = errors[(#errors + 1) // 2], most = errors[#errors] }
  t:note("%s, %d layouts: Kendall's tau %.2f, error at the median %.0f%%, at most %.0f%%", what, #rows, found.tau,
    100 * found.median, 100 * found.most)
  return found
end

return function(B)
  local points, found = speed(B), simulated(B)
  local t = B.table("price of a step beside 64 simulated ranks", "ms")
  if found.skipped or #found.rows < 2 then
    t:note("skipped: %s (Debian: libsimgrid-dev)", found.skipped or "no run ended")
    return { points = points }
  end
  for _, row in ipairs(found.rows) do
    t:note("%-56s simulated %7.2f, priced %7.2f, with SMPI's factors %7.2f", row.layout, 1e3 * row.simulated,
      1e3 * row.plain, 1e3 * row.factors)
  end
  return { points = points, layouts = found.rows, plain = compare(t, found.rows, "plain", "by the machine's data"),
    factors = compare(t, found.rows, "factors", "with SMPI's factors") }
end
