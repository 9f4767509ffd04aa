-- SPDX-License-Identifier: MIT
--
-- step: execute the step of a recipe on real ranks, and compare the planned with the measured values.

local chart = require "pictures.chart"
local host = require "host"
local jobs = require "command.base.job"
local json = require "command.base.json"
local mg = require "moongrid"
local overview = require "command.base.overview"
local text = require "command.base.text"

local EVERY = 20000  -- a picture of more operations shows the repeated rounds of a loop as one bar
local FLOPS = 1e14   -- flops in a second for the price, if the machine has none; --compute sleep assumes as many
local REFUSED = 100
local plural = text.plural

-- Multiply small matrices. Return the number of floating-point operations.
local function gemm()
  local n, a, b = 24, {}, {}
  for i = 1, n * n do a[i], b[i] = i, 1 / i end
  for i = 0, n - 1 do
    for j = 1, n do
      local sum = 0
      for k = 1, n do sum = sum + a[i * n + k] * b[(k - 1) * n + j] end
      a[i * n + j] = sum
    end
  end
  return 2 * n ^ 3
end

-- Price the step on the machine of the line or of the plan. If the rate of computes is unknown, use FLOPS.
local function price(of, step, carried)
  local options = { machine = of.machine, rules = carried and "nccl" or "mpi", timeline = of.output and EVERY }
  local done, priced, timeline = pcall(step.price, step, options)
  if not done and mg.status(priced) == REFUSED then
    options.flops = FLOPS
    return step:price(options)
  end
  if not done then error(priced, 0) end
  return priced, timeline
end

-- Return what rank 0 needs in addition to the measurement: the step, its price, and the timeline of the price.
local function plan_of(of, plan, carried)
  local planned, has_machine = {}, type(of.machine) == "userdata" or plan.machine ~= ""
  if of.output or has_machine and not of.unproved then planned.step = plan:step() end
  if has_machine and not of.unproved then planned.price, planned.timeline = price(of, planned.step, carried) end
  return planned
end

-- Execute the step on all ranks. Return the measured values. Rank 0 writes the trace; it opens the file before the run,
-- so that a wrong name is an error before the step is executed.
local function execute(of, plan, state, job, planned)
  local opened, measured, timeline = false, nil, nil
  local function go(put)
    opened = true
    jobs.need(job:settle())
    host.progress "executing the step"
    measured, timeline = jobs.need(state:run_step {
      steps = of.steps, scale = of.scale, timeout = of.timeout, unproved = of.unproved, timeline = of.output ~= nil,
      compute = of.compute == "gemm" and gemm or of.compute,
    })
    host.progress()
    if put then
      local beside = planned.price and chart.make(plan, planned.step, planned.price, planned.timeline)
      require "pictures.chart_trace" (chart.make(plan, planned.step, nil, timeline), put, beside)
    end
  end
  if not of.output or job.rank ~= 0 then
    go()
    if of.output then jobs.need(job:settle()) end
    return measured
  end
  local done, raised = pcall(host.write, of.output, go)
  -- after an error of the step itself all ranks have raised: nothing to settle
  if measured or not opened then jobs.need(job:settle(done, raised, jobs.status(raised))) end
  if not done then error(raised, 0) end
  return measured
end

-- Print the measured values with the fields that moongrid calibrate reads.
local function put_json(of, plan, measured)
  local shape = { "recipe", "machine", "world", "params", "families", "late", "ranks", "scale", "seconds", "steps",
                  "worst", families = { named = true }, params = { named = true } }
  measured.recipe, measured.world, measured.params = plan.recipe, plan.world, {}
  measured.machine = of.given.machine or plan.machine
  for _, param in ipairs(plan.params) do
    if not param.usual then measured.params[param.name] = param.value end
  end
  if measured.planned then table.insert(shape, 7, "planned") end
  json.put(measured, shape)
end

local function put_text(of, plan, measured, planned)
  text.printf("\nstep           %d time%s on %d ranks: %.3g ms each (median), %.3g ms on the slowest rank\n\n",
              of.steps, plural(of.steps), measured.ranks, 1e3 * measured.seconds, 1e3 * measured.worst)
  text.printf("  %-22s %12s %12s %12s %12s %12s %12s %6s %12s   of all ranks, a step\n", "family", "calls", "planned",
              "bytes", "planned", "median ms", "worst ms", "rank", "waiting ms")
  for _, name in ipairs(plan.families) do
    local f = measured.families[name]
    if f then
      text.put("  ", text.padded(name, 22))
      text.printf(" %12.0f %12.0f %12s %12s %12.3f %12.3f %6d %12.3f\n", f.calls, f.planned_calls, text.bytes(f.bytes),
                  text.bytes(f.planned_bytes), 1e3 * f.seconds, 1e3 * f.worst, f.worst_rank, 1e3 * f.waiting)
    end
  end
  if measured.planned then
    text.printf("\nplanned        %.3g ms a step on the machine that was given, at scale 1: %s\n",
                1e3 * measured.planned, overview.estimate(planned.price.estimate))
  end
  if measured.late then
    text.printf("\nlate           rank %d: it waits the least, so the others wait for it\n", measured.late)
  end
  if of.output then
    text.printf("\ntrace          %s, of the last step: opens in Perfetto (ui.perfetto.dev)\n", of.output)
  end
end

-- `carried`: another backend carries the messages of this one (NCCL, RCCL), so calls are on streams.
return function(of, plan, state, job, carried)
  local planned = jobs.settle(job, function() return job.rank == 0 and plan_of(of, plan, carried) end)
  local measured = execute(of, plan, state, job, planned)
  if job.rank ~= 0 then return end
  measured.planned = planned.price and planned.price.seconds
  for _, name in ipairs(planned.price and plan.families or {}) do
    local f = measured.families[name]
    if f then f.planned_seconds = planned.price.families[name].seconds end
  end
  if of.json then put_json(of, plan, measured) else put_text(of, plan, measured, planned) end
  io.stdout:flush()
end
