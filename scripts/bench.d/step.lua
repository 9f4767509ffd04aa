-- SPDX-License-Identifier: MIT
--
-- The part `step` of scripts/bench: how long pricing a step takes, from fork to end; and, where SimGrid's SMPI is there
-- (Debian: libsimgrid-dev), prices beside the time that 64 simulated ranks of a fat tree take to execute the same steps:
-- for each layout the messages of `moongrid run --step`, with SMPI's choice of algorithms as MPICH's, and no computes.
-- Kendall's tau compares the two orders of the layouts. Nothing is fitted.

local json = require "dkjson"

local MODEL = "layers=8 hidden=128 heads=16 vocab=1024 seq=1024 global_batch=64 "
local MACHINE = "switch:*[200GB/s,2us] core:16[12.5GB/s,1us]" -- what scripts/simulate builds

local LAYOUTS = {}
for _, tp in ipairs { 1, 2, 4, 8, 16 } do
  for _, pp in ipairs { 1, 2, 4, 8 } do
    for _, extra in ipairs { "", "sequence_parallel=true zero=1" } do
      if tp * pp <= 64 and (extra == "" or tp > 1) then LAYOUTS[#LAYOUTS + 1] = ("tp=%d pp=%d %s"):format(tp, pp, extra) end
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

local function speed(B)
  local t = B.table("pricing a step on dgx-h100, from fork to end", "ms", { "moongrid" })
  local points = {}
  for _, size in ipairs {
    { "1,024 ranks, 96 layers, 128 microbatches", "--world 1024 tp=8 pp=8 layers=96 hidden=12288 heads=96 global_batch=2048" },
    { "the same, with a stream for gradients",
      "--world 1024 tp=8 pp=8 layers=96 hidden=12288 heads=96 global_batch=2048 overlap=true zero=1" },
    { "64 stages, 512 microbatches", "--world 1024 tp=8 pp=64 layers=128 hidden=12288 heads=96 global_batch=1024" },
    { "1,048,576 ranks, 16 stages", "--world 1048576 tp=8 pp=16 layers=96 hidden=12288 heads=96" },
  } do
    local data = {}
    B.samples(data, "build/moongrid step megatron " .. size[2] .. " --machine dgx-h100 > /dev/null")
    local row = t:row(size[1], data.cold)
    if row then points[#points + 1] = { size = size[1], ms = row.median } end
  end
  return points
end

local function simulated(B)
  if not B.first_line "command -v smpicc" then return { skipped = "no smpicc" } end
  local price, time, rows, errors = {}, {}, {}, {}
  for i, layout in ipairs(LAYOUTS) do
    if B.quick and i % 8 ~= 1 then goto next end
    local step = "megatron " .. MODEL .. layout
    local priced = json.decode((B.run(("build/moongrid step %s --world 64 --rules mpi --flops 1e23 --machine '%s' --json")
      :format(step, MACHINE))) or "")
    local run = json.decode((B.run(("SIMULATE_COLLECTIVES=mpich scripts/simulate 64 run %s --step 1 --json 2> /dev/null"):format(step))
      or ""):match "{.*}" or "")
    if priced and run and run.seconds then
      price[#price + 1], time[#time + 1] = priced.seconds, run.seconds
      errors[#errors + 1] = math.abs(priced.seconds / run.seconds - 1)
      rows[#rows + 1] = { layout = layout, priced = priced.seconds, simulated = run.seconds }
    end
    ::next::
  end
  return { rows = rows, tau = #price > 1 and tau(price, time) or nil, errors = errors }
end

return function(B)
  local points, found = speed(B), simulated(B)
  local t = B.table("price of a step beside 64 simulated ranks", "ms")
  if found.skipped then
    t:note("skipped: %s (Debian: libsimgrid-dev)", found.skipped)
    return { points = points }
  end
  for _, row in ipairs(found.rows) do
    t:note("%-36s priced %8.2f, simulated %8.2f: %.2f", row.layout, 1e3 * row.priced, 1e3 * row.simulated, row.priced / row.simulated)
  end
  table.sort(found.errors)
  t:note("%d layouts: Kendall's tau %.2f, error at the median %.0f%%, at most %.0f%%", #found.rows, found.tau or 0,
    100 * (found.errors[(#found.errors + 1) // 2] or 0), 100 * (found.errors[#found.errors] or 0))
  return { points = points, layouts = found.rows, tau = found.tau }
end
