-- SPDX-License-Identifier: MIT
--
-- moongrid calibrate: fit the costs of a site to steps that were measured there.
--
-- The price of a step (src/step/operations.c) depends on a few numbers that are in no data sheet: the share of a GPU's
-- flops, the bytes that a GPU reads and writes in a second, the fixed time of each compute (the host starts its
-- kernels, and small kernels do not fill a GPU), and the share of the bandwidth of each level. Each number has a usual
-- value and a tolerance, as logarithms. The fit finds the most likely values (the Gauss-Newton method on the logarithms
-- of the seconds). The next layout to measure is the one whose predicted time has the highest variance (D-optimal
-- design, Fedorov 1972).

local host = require "host"
local json = require "command.base.json"
local line = require "command.base.line"
local mg = require "moongrid"
local recipe = require "command.base.line_recipe"
local sorted = require "command.base.sorted"
local text = require "command.base.text"

local LEAST <const>, MOST <const> = 2, 20
local NOISE <const> = 0.05  -- error of a measurement and of the model: a layout measured twice differed by 3 %
local NUDGE <const> = 0.1   -- change of a logarithm, for derivatives
local ROUNDS <const> = 6    -- most rounds of the fit
local NEAR <const> = 0.02   -- the fit ends when the logarithms change less
local KNOWN <const> = 0.9   -- runs determine a number if they reduce its error below this share of its tolerance
local MOST_ERROR <const> = 0.2 -- refuse a fit whose mean error for left-out runs is larger
local VARIED = { "tp", "pp", "micro_batch", "seq" } -- parameters to change in the layout to measure next
local USUAL = { tp = 1, pp = 1, micro_batch = 1 }   -- values of a run without these parameters

-- Read ---------------------------------------------------------------------------------

local FIELDS = { "recipe", "machine", "world", "seconds", "memory", "flops" } -- all other columns are parameters
-- The keys of a run in JSON: FIELDS, and what else moongrid run --steps prints.
local KEYS = { "params", "scale", "families", "late", "planned", "ranks", "steps", "worst" }
table.move(FIELDS, 1, #FIELDS, #KEYS + 1, KEYS)

local function read_csv(path, all)
  local names, runs, number = nil, {}, 0
  for row in all:gmatch "([^\n]*)\n?" do
    number = number + 1
    local cells = {}
    for cell in (row:gsub("\r$", "") .. ","):gmatch "([^,]*)," do cells[#cells + 1] = cell:match "^%s*(.-)%s*$" end
    local is_data = not row:find "^%s*#" and not row:find "^%s*$"
    if is_data and not names then
      names = cells
      if #names == 1 then text.refuse(1, "%s:%d: only one column; a CSV has commas between columns", path, number) end
    elseif is_data then
      if #cells ~= #names then
        text.refuse(1, "%s:%d: %d cells, but the head has %d; write values with commas in JSON", path, number, #cells,
                    #names)
      end
      local run = { params = {}, where = ("%s:%d"):format(path, number) }
      for i, name in ipairs(names) do run.params[name] = cells[i] ~= "" and cells[i] or nil end
      for _, name in ipairs(FIELDS) do run[name], run.params[name] = run.params[name], nil end
      runs[#runs + 1] = run
    end
  end
  return runs
end

-- Read the runs in JSON: a list, or objects one after the other, as several runs of the command write them.
local function read_json(path, all)
  local is, list = host.json("[" .. all:gsub("}%s*{", "},{") .. "]")
  if not is then is, list = host.json(all) end
  if not is then text.refuse(1, "%s is neither JSON nor CSV whose first line has the names of columns", path) end
  if type(list[1]) == "table" and #list == 1 and #list[1] > 0 then list = list[1] end
  for i, run in ipairs(list) do
    if type(run) ~= "table" then text.refuse(1, "%s: run %d is not an object", path, i) end
    for key in sorted(run) do
      local known = false
      for _, name in ipairs(KEYS) do known = known or name == key end
      if not known then
        text.refuse(1, "%s: run %d: unknown key '%s'%s; parameters go into params", path, i, key,
                    (host.nearest(tostring(key), KEYS)))
      end
    end
    run.where, run.params = ("%s: run %d"):format(path, i), run.params or {}
    if type(run.params) ~= "table" then text.refuse(1, "%s: params is an object, { \"tp\": 2 }", run.where) end
  end
  return list
end

local function positive(run, name, needed)
  local x = tonumber(run[name])
  if x and x > 0 and x < math.huge or run[name] == nil and not needed then return x end
  text.refuse(1, "%s: %s is a number above 0%s, not '%s'", run.where, name, name == "memory" and ", in bytes" or "",
              run[name] == nil and "" or tostring(run[name]))
end

local function arguments(params)
  local args = {}
  for name, value in sorted(params) do args[#args + 1] = name .. "=" .. tostring(value) end
  return args
end

local function evaluate(run, args)
  local loaded = mg.load(run.recipe)
  loaded:on(run.on)
  return loaded:plan(run.world, args):step()
end

local function read(of)
  local path = of.words[1] or text.usage "calibrate needs measured steps: a file of JSON or CSV"
  local all, why = host.read(path)
  if not all then text.refuse(1, "%s", why) end
  local runs = all:find "^%s*[%[{]" and read_json(path, all) or read_csv(path, all)
  if #runs < LEAST or #runs > MOST then
    text.refuse(1, "%s has %d run%s; a fit takes %d to %d", path, #runs, text.plural(#runs), LEAST, MOST)
  end
  for i, run in ipairs(runs) do
    host.progress(("reading run %d of %d"):format(i, #runs))
    run.seconds, run.memory, run.flops = positive(run, "seconds", true), positive(run, "memory"), positive(run, "flops")
    run.world = math.tointeger(positive(run, "world", true))
    run.recipe = run.recipe or "megatron"
    if not run.world then text.refuse(1, "%s: world is an integer", run.where) end
    if (run.scale or 1) ~= 1 then text.refuse(1, "%s: its bytes were scaled; measure without --scale", run.where) end
    if not of.machine and type(run.machine) ~= "string" then
      text.refuse(1, "%s has no machine: a column of that name, or --machine, as dgx-h100", run.where)
    end
    run.on = of.machine or i > 1 and run.machine == runs[1].machine and runs[1].on or mg.open_machine(run.machine)
    if tostring(run.on) ~= tostring(runs[1].on) or run.flops ~= runs[1].flops then
      text.refuse(1, "%s has another machine, or other flops, than the first run; a calibration is of one site",
                  run.where)
    end
    local done, step = pcall(evaluate, run, arguments(run.params))
    if not done then error(("%s: %s"):format(run.where, step), 0) end
    run.program = step
  end
  host.progress()
  return runs
end

-- The numbers --------------------------------------------------------------------------
-- A number has a name; and as logarithms its value, the usual value, the tolerance of the usual value, and the largest
-- possible value.

local function numbers_of(runs)
  local flops, peak, used = runs[1].flops, nil, {}
  for _, run in ipairs(runs) do
    local done, price = pcall(run.program.price, run.program, { machine = run.on, flops = flops })
    if not done then error(("%s: %s"):format(run.where, price), 0) end
    peak = flops or price.flops
    for _, family in sorted(price.families) do
      for level in sorted(family.levels or {}) do used[level] = true end
    end
  end
  local all = {
    { name = "flops", usual = math.log(0.55 * peak), tolerance = 0.5, most = math.log(peak), peak = peak },
    { name = "memory", usual = math.log(1e12), tolerance = 0.7, most = math.log(1e14) },
    { name = "start", usual = math.log(5e-4), tolerance = 1.2, most = math.log(1) },
  }
  for level in sorted(used) do
    all[#all + 1] = { name = level, level = true, usual = math.log(0.75), tolerance = 0.7, most = math.log(8) }
  end
  for _, number in ipairs(all) do number.value = number.usual end
  return all
end

local function costs_of(numbers)
  local costs, levels = {}, {}
  for _, number in ipairs(numbers) do
    local x = math.exp(number.value)
    if number.level then levels[number.name] = { { 1, math.min(x, 8) } } else costs[number.name] = x end
  end
  if #numbers > 3 then costs.efficiency = { ["*"] = levels } end
  return costs
end

local function priced(run, numbers)
  return run.program:price { machine = run.on, costs = costs_of(numbers) }
end

-- Return the logarithm of a run's predicted seconds, and its derivatives by the numbers.
local function slopes(run, numbers)
  local at, d = math.log(priced(run, numbers).seconds), {}
  for k, number in ipairs(numbers) do
    local was = number.value
    local by = was + NUDGE <= number.most and NUDGE or -NUDGE
    number.value = was + by
    d[k] = (math.log(priced(run, numbers).seconds) - at) / by
    number.value = was
  end
  return at, d
end

-- Linear algebra -----------------------------------------------------------------------

-- Solve a x = b for several b, by elimination; a is symmetric and positive definite.
local function solve(a, b)
  local n, m = #a, {}
  for i = 1, n do m[i] = table.move(b[i], 1, #b[i], n + 1, table.move(a[i], 1, n, 1, {})) end
  for i = 1, n do
    for j = 1, n do
      local by = j ~= i and m[j][i] / m[i][i] or 0
      if by ~= 0 then
        for k = i, #m[i] do m[j][k] = m[j][k] - by * m[i][k] end
      end
    end
  end
  local x = {}
  for i = 1, n do
    x[i] = {}
    for k = 1, #b[i] do x[i][k] = m[i][n + k] / m[i][i] end
  end
  return x
end

-- Return the covariance of the numbers, and the changes that lead to their most likely values. A row has `rest`, the
-- logarithm of measured by predicted seconds, and `d`, the derivatives.
local function likely(numbers, rows)
  local a, b = {}, {}
  for j, number in ipairs(numbers) do
    a[j], b[j] = {}, {}
    local weight = number.held and 1e12 or number.tolerance ^ -2
    b[j][1] = weight * (number.usual - number.value)
    for k = 1, #numbers do
      a[j][k], b[j][1 + k] = j == k and weight or 0, j == k and 1 or 0
    end
  end
  for _, row in ipairs(rows) do
    for j = 1, #numbers do
      b[j][1] = b[j][1] + row.d[j] * row.rest / NOISE ^ 2
      for k = 1, #numbers do a[j][k] = a[j][k] + row.d[j] * row.d[k] / NOISE ^ 2 end
    end
  end
  local x, away = solve(a, b), {}
  for j = 1, #numbers do away[j] = table.remove(x[j], 1) end
  return x, away
end

-- Fit --------------------------------------------------------------------------------

-- Change the numbers towards the most likely values, at most by a factor of e. Return the largest change.
local function move(numbers, away)
  local most = 0
  for k, number in ipairs(numbers) do
    local value = math.min(number.value + math.max(-1, math.min(1, away[k])), number.most)
    most, number.value = math.max(most, math.abs(value - number.value)), value
  end
  return most
end

local function fit(runs, numbers)
  local rows
  for round = 1, ROUNDS do
    host.progress(("fitting: round %d of at most %d"):format(round, ROUNDS))
    rows = {}
    for i, run in ipairs(runs) do
      local at, d = slopes(run, numbers)
      rows[i] = { rest = math.log(run.seconds) - at, d = d }
    end
    local values = {}
    for k, number in ipairs(numbers) do values[k] = number.value end
    if move(numbers, select(2, likely(numbers, rows))) < NEAR then break end
    if round == ROUNDS then
      for k, number in ipairs(numbers) do number.value = values[k] end -- the values at which the rows were computed
    end
  end
  return rows
end

-- Fit all numbers, then again without those that the runs do not determine. Return the covariance of the first fit.
local function fit_determined(runs, numbers)
  local covariance, held = likely(numbers, fit(runs, numbers)), false
  for k, number in ipairs(numbers) do
    number.deviation = covariance[k][k] ^ 0.5
    number.held = number.deviation > KNOWN * number.tolerance
    if number.held then number.value, held = number.usual, true end
  end
  if held then fit(runs, numbers) end
  return covariance
end

-- Return for each run the error of its prediction by a fit to the other runs; set `predicted` of the run. This fit
-- begins at the fit to all runs, and chooses again which numbers the other runs determine.
local function leave_out(runs, numbers)
  local values, errors = {}, {}
  for k, number in ipairs(numbers) do values[k] = { number.value, number.held, number.deviation } end
  for i, run in ipairs(runs) do
    local others = table.move(runs, i + 1, #runs, i, table.move(runs, 1, i - 1, 1, {}))
    for _, number in ipairs(numbers) do number.held = false end
    fit_determined(others, numbers)
    run.predicted = priced(run, numbers).seconds
    errors[i] = run.predicted / run.seconds - 1
    for k, number in ipairs(numbers) do number.value, number.held, number.deviation = table.unpack(values[k], 1, 3) end
  end
  return errors
end

-- Runs with these values equal do the same work.
local SAME = { "world", "layers", "hidden", "seq", "global_batch" }
local function same_work(a, b)
  for _, name in ipairs(SAME) do
    if tostring(a.params[name] or a[name]) ~= tostring(b.params[name] or b[name]) then return false end
  end
  return true
end

-- Compute how well the prices order the layouts: Kendall's tau over pairs of runs that do the same work, else over all.
local function tau_of(runs)
  local sums = { [true] = { 0, 0 }, [false] = { 0, 0 } }
  for i, a in ipairs(runs) do
    for j = 1, i - 1 do
      local b, sum = runs[j], sums[same_work(a, runs[j])]
      local agree = (a.seconds - b.seconds) * (a.predicted - b.predicted)
      sum[1], sum[2] = sum[1] + (agree > 0 and 1 or agree < 0 and -1 or 0), sum[2] + 1
    end
  end
  local same = sums[true][2] > 0
  local sum = sums[same]
  return { tau = sum[1] / sum[2], pairs = sum[2], same = same }
end

local function mean(list)
  local sum = 0
  for _, x in ipairs(list) do sum = sum + math.abs(x) end
  return sum / #list
end

-- Return the bytes that a rank holds beside the step, nil, and the mean error of left-out runs; or nil and a message if
-- these bytes cannot be fitted.
local function memory_beside(runs)
  local rests, errors = {}, {}
  for _, run in ipairs(runs) do
    if run.memory then
      run.peak = run.program:sums().memory.peak
      rests[#rests + 1] = { run.memory - run.peak, run }
    end
  end
  if #rests < LEAST then return nil, ("memory: %d of %d runs have it; a fit takes %d"):format(#rests, #runs, LEAST) end
  local sum = 0
  for _, rest in ipairs(rests) do sum = sum + rest[1] end
  for i, rest in ipairs(rests) do
    errors[i] = (rest[2].peak + math.max(0, (sum - rest[1]) / (#rests - 1))) / rest[2].memory - 1
  end
  if sum <= 0 then
    return nil, ("memory: on average the steps need %s more than was measured; no memory beside them"):format(
      text.bytes(-sum / #rests))
  end
  return sum / #rests, nil, mean(errors)
end

-- The next measurement -----------------------------------------------------------------

-- Return the layout to measure next, or nil. The layouts of two runs are tried, with one parameter doubled or halved;
-- the layout whose seconds are the least certain is returned.
local function next_measurement(runs, numbers, covariance)
  local best
  local function try(run, name, value)
    if not value then return end
    local done, program = pcall(evaluate, run, arguments(recipe.with(run.params, name, value)))
    if not done or not program:prove() then return end
    host.progress(("trying %s=%d"):format(name, value))
    local _, d = slopes({ program = program, on = run.on }, numbers)
    local variance = 0
    for j = 1, #numbers do
      for k = 1, #numbers do variance = variance + d[j] * d[k] * covariance[j][k] end
    end
    if not best or variance > best.variance then
      best = { variance = variance, run = run, name = name, value = value }
    end
  end
  for _, run in ipairs { runs[1], runs[(#runs + 1) // 2] } do
    for _, name in ipairs(VARIED) do
      local value = tonumber(run.params[name]) or USUAL[name]
      try(run, name, value and math.tointeger(2 * value))
      try(run, name, value and math.tointeger(value / 2))
    end
  end
  return best
end

-- Print --------------------------------------------------------------------------------

local MEANS = {
  flops = "of a GPU in a second", memory = "bytes that a GPU reads and writes in a second, for norms and the like",
  start = "seconds of each compute beside its flops",
}

local function put_numbers(numbers)
  for _, number in ipairs(numbers) do
    local value = math.exp(number.value)
    text.printf("  %-10s %10.4g  %s", number.name, value,
                MEANS[number.name] or "of the bandwidth of its links; above 1: calls travel beside computes")
    if number.peak then text.printf(", %.3g%% of the peak", 100 * value / number.peak) end
    text.put(number.held and "; NOT DETERMINED by these runs: the usual value\n"
             or ("; within a factor of %.2f\n"):format(math.exp(number.deviation)))
  end
end

local function put_runs(runs, errors)
  text.printf("\n  %-24s %12s %12s %9s\n", "run", "measured", "left out", "error")
  for i, run in ipairs(runs) do
    text.printf("  %-24s %12s %12s %+8.1f%%\n", run.where:match "[^/]*$", text.seconds(run.seconds),
                text.seconds(run.predicted), 100 * errors[i])
  end
end

local function run(of)
  local runs = read(of)
  local numbers = numbers_of(runs)
  local covariance = fit_determined(runs, numbers)
  if numbers[1].held then
    text.refuse(1, "these runs do not determine the flops of a GPU, because computes take too little of their time; "
                .. "measure a step with more flops for each byte, as with a larger micro_batch")
  end
  local errors = leave_out(runs, numbers)
  local tau, at = tau_of(runs), 1
  for i, e in ipairs(errors) do at = math.abs(e) > math.abs(errors[at]) and i or at end
  local worst = math.abs(errors[at])
  local beside, why, memory_error = memory_beside(runs)
  text.printf("%d measured steps on %s\n\n", #runs, tostring(runs[1].on):match "^Machine ([^\n]*)")
  put_numbers(numbers)
  if beside then
    text.printf("  %-10s %10s  of memory that a rank holds beside the step; error of left-out runs %.1f%%\n", "beside",
                text.bytes(beside), 100 * memory_error)
  end
  put_runs(runs, errors)
  text.printf("\nerror of left-out runs %.1f%% in the mean, at most %.1f%%\n"
              .. "Kendall's tau %.2f over %d pair%s of runs%s\n",
              100 * mean(errors), 100 * worst, tau.tau, tau.pairs, text.plural(tau.pairs),
              tau.same and " that do the same work" or "; none do the same work, so it says little")
  if why then text.put_lines(why .. "\n") end
  if mean(errors) > MOST_ERROR then
    text.refuse(1, "the error of left-out runs is %.1f%% in the mean, above %.0f%%: these runs are not of one site, "
                .. "release and kind of model, do not say all parameters, or are too few; the largest error is that of "
                .. "%s%s",
                100 * mean(errors), 100 * MOST_ERROR, runs[at].where:match "[^/]*$",
                of.output and ("; '%s' is not written"):format(of.output) or "")
  end
  local best = next_measurement(runs, numbers, covariance)
  if best then
    text.put_lines(("measure next: %s with %s=%d; its seconds are the least certain, within a factor of %.2f\n"):format(
      best.run.where:match "[^/]*$", best.name, best.value, math.exp(best.variance ^ 0.5)))
  end
  host.progress()
  if not of.output then return end
  local costs = costs_of(numbers)
  costs.beside, costs.error = beside, mean(errors)
  costs.source = ("%d measured steps"):format(#runs)
  host.write(of.output, json.line(costs) .. "\n")
end

return {
  name = "calibrate",
  place = 55,
  takes = "MEASURED",
  summary = "fit the costs of a site to measured steps (preview)",
  usage = "moongrid calibrate MEASURED.json|MEASURED.csv [--machine MACHINE] [-o SITE.json]",
  about = "Fit numbers that are in no data sheet to 2 to 20 measured steps of one site: the share of a GPU's flops,\n"
    .. "the rate of norms and the like, the fixed time of each compute, the share of each level's bandwidth, the\n"
    .. "memory that a rank holds beside the step. Each run is also predicted from the others: the mean error is\n"
    .. "printed here and with each price. A number that the runs do not determine keeps its usual value, and the\n"
    .. "layout whose measurement would determine most is named.",
  notes = "A CSV has a line of names, then a line for each run: recipe, machine, world, seconds, memory (bytes of\n"
    .. "the rank with the most; may be empty), flops (the peak of the GPU, if not that of the machine), and\n"
    .. 'parameters. JSON has { "recipe", "machine", "world", "seconds", "memory", "flops", "params": {} } for each\n'
    .. "run, in a list or one after the other, as moongrid run --steps --json prints.",
  example = "moongrid calibrate MEASURED.csv -o site.json",
  words = 1,
  asks = "files",
  options = {
    { "machine", "MACHINE", line.machine, help = "the machine of all runs, instead of their own" },
    { "output", "FILE", letter = true, help = "costs for moongrid step --calibration" },
  },
  run = run,
}
