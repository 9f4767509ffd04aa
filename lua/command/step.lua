-- SPDX-License-Identifier: MIT
--
-- moongrid step: print what the step of a recipe sends, prove that every rank reaches its end, and estimate its time.

local chart = require "pictures.chart"
local host = require "host"
local json = require "command.base.json"
local line = require "command.base.line"
local mg = require "moongrid"
local overview = require "command.base.overview"
local recipe = require "command.base.line_recipe"
local reports = require "pictures.reports"
local sorted = require "command.base.sorted"
local text = require "command.base.text"

local EVERY = 400000 -- a picture of more operations shows the repeated rounds of a loop as one bar
local LIMIT = 300
local MOST_GROUPS = 512 -- check at most so many groups of a family

-- Pictures -------------------------------------------------------------------------

local PICTURES = {
  svg = function(c, put) require "pictures.chart_svg" (c, put) end,
  html = function(c, put) require "pictures.chart_page" (c, put) end,
  json = function(c, put) require "pictures.chart_trace" (c, put) end,
}

local function output(name, word)
  if PICTURES[word:match ".%.(%w+)$"] then return word end
  text.usage("%s is a file that ends with .svg, .html or .json, not '%s'", name, word)
end

-- Price the step and write the picture of --output. Return the price, or nil if there is no machine.
local function priced(of, plan, step, verdict)
  if not of.machine and plan.machine == "" then return end
  local done, price, timeline = pcall(step.price, step, {
    machine = of.machine, rules = of.rules, eager = of.eager, flops = of.flops, costs = of.calibration or of.costs,
    timeline = of.output and EVERY,
  })
  if not done and mg.status(price) == LIMIT then text.refuse(3, "the verdict is %s; %s", verdict, price) end
  if not done then error(price, 0) end
  if of.output then
    local c = chart.make(plan, step, price, timeline)
    host.write(of.output, function(put) PICTURES[of.output:match "%w+$"](c, put) end)
  end
  return price
end

-- JSON -----------------------------------------------------------------------------

local function put_json(all, price)
  for name, value in sorted(price or {}) do all[name] = value end
  local shape = overview.step_shape(all)
  if all.counterexample[1] then
    shape.counterexample = { "bytes", "family", "file", "line", "operation", "rank", "waits_for" }
  end
  json.put(all, shape)
end

-- Text -----------------------------------------------------------------------------

-- Return those of `names` that are keys of the table `by`.
local function keys_in(by, names)
  local list = {}
  for _, name in ipairs(names) do
    if by[name] then list[#list + 1] = name end
  end
  return list
end

-- Return the names of the levels of the machine, far to near, then the names of levels that cross others, such as
-- rails.
local function levels_of(of, plan)
  local levels = {}
  for i, at in ipairs(recipe.machine(of, plan):where(0)) do levels[i] = at.level end
  return levels
end

local function put_share(what, part, all, meaning)
  text.printf("  %-10s %10s %5.1f%%  %s\n", what, text.seconds(part), all > 0 and 100 * part / all or 0, meaning)
end

local function put_price(of, plan, all, price)
  text.printf("\ntime of the step %s on %s", text.seconds(price.seconds), price.machine)
  if price.flops > 0 then text.printf(", %.4g TFLOP/s", price.flops / 1e12) end
  text.put(price.source ~= "" and (" (%s)"):format(price.source) or "", "\n", overview.estimate(price.estimate), "\n")
  local levels = levels_of(of, plan)
  for _, level in ipairs(keys_in(price.fits, levels)) do
    local fit = price.fits[level]
    text.printf("%s fitted to %d measured call%s: latency of a hop %s, %.3g of the bandwidth reached; error "
                .. "%.1f%% at the median, at most %.1f%%\n",
                level, fit.measured, text.plural(fit.measured), text.seconds(fit.latency), fit.share,
                100 * fit.median_error, 100 * fit.worst_error)
  end
  for _, words in ipairs(all.straddles) do text.put_lines(words .. "\n") end
  put_share("computes", price.compute, price.seconds, "of the mean rank")
  put_share("exposed", price.exposed, price.seconds, "bytes move, and nothing computes")
  put_share("bubble", price.bubble, price.seconds, "neither: the rank waits for others, or has ended")
  put_share("hidden", price.hidden, price.seconds, "bytes move while it computes; part of computes")
  text.printf("\n  %-24s %12s  %s\n", "family", "time", "bytes out of domains, of all ranks; algorithms")
  for _, name in ipairs(keys_in(price.families, plan.families)) do
    local family, out, used = price.families[name], {}, {}
    for _, level in ipairs(keys_in(family.levels, levels)) do
      local bytes = family.levels[level].bytes
      if bytes > 0 then out[#out + 1] = level .. " " .. text.bytes(bytes) end
    end
    for operation, algorithm in sorted(family.algorithms) do
      used[#used + 1] = operation .. " by " .. algorithm
    end
    if family.seconds > 0 then
      text.printf("  %-24s %12s  %s%s%s\n", name, text.seconds(family.seconds), table.concat(out, ", "),
                  used[1] and "; " or "", table.concat(used, ", "))
    end
  end
  local link = price.busiest
  if link then
    text.printf("\nbusiest link: out of %s %s, %s of the step at its bandwidth\n", link.link, text.bytes(link.bytes),
                text.seconds(link.seconds))
  end
end

-- Return "does not fit: 3.1 TiB of 80 GiB" if a rank holds more memory than its GPU has; nil if not, or if unknown.
local function excess(memory)
  local held = memory.peak + (memory.beside or 0)
  if held <= (memory.capacity or math.huge) then return end
  local words = ("%s of %s"):format(text.bytes(held), text.bytes(memory.capacity))
  return "does not fit: " .. words:gsub("(%d%.%d)%d ", "%1 "):gsub("%.0 ", " ")
end

-- Return a text if some groups of a family lie in two domains, although a domain is large enough and other groups lie
-- in one domain; else nil. Ranks fill the domains in order, so the groups after the first MOST_GROUPS repeat their
-- pattern.
local function straddles(family, machine, name)
  local levels, words = machine:levels(), nil
  for l, level in ipairs(levels) do
    local cut, whole, span = 0, 0, 0
    for group = 0, not level.crossing and level.places and math.min(family.count, MOST_GROUPS) - 1 or -1 do
      local first, last = family:member(group, 0), family:member(group, -1)
      if first < last and last - first < level.places then
        local is = machine:where(first)[l].domain == machine:where(last)[l].domain
        cut, whole, span = cut + (is and 0 or 1), whole + (is and 1 or 0), math.max(span, last - first + 1)
      end
    end
    local inner, fill = levels[l + 1], cut > 0 and whole > 0 and level.places // span * span
    if fill then
      local within = inner and not inner.crossing and inner.places or 1
      words = ("groups of %s straddle a %s: its %d ranks are not a whole number of groups of %d%s"):format(name,
        level.name, level.places, span, fill % within == 0 and inner
        and ("; add %s:%d to the machine, which then uses %d of them"):format(inner.name, fill // within, fill) or "")
    end
  end
  return words
end

local function straddling(of, plan, price)
  local machine, list = recipe.machine(of, plan), {}
  for _, name in ipairs(keys_in(price.families, plan.families)) do
    list[#list + 1] = straddles(plan:family(name), machine, name)
  end
  return list
end

local function put_memory(memory)
  local parts, by = {}, memory.by
  for name in sorted(by) do parts[#parts + 1] = name end
  table.sort(parts, function(a, b) return by[a] > by[b] or by[a] == by[b] and a < b end)
  for i, name in ipairs(parts) do parts[i] = name .. " " .. text.bytes(by[name]) end
  text.printf("\nmemory at most %s on rank %d%s%s%s\n", text.bytes(memory.peak), memory.rank,
              memory.at ~= "" and (", in '%s'"):format(memory.at) or "", parts[1] and ": " or "",
              table.concat(parts, ", "))
end

local function put_text(of, plan, all, price)
  if all.assumes then text.put_lines("proved, assuming that " .. reports.assumes(all.assumes) .. "\n\n") end
  text.head(plan, "step of ")
  text.printf("%d class%s of ranks%s%s, %d operation%s of all ranks\n", all.classes, all.classes == 1 and "" or "es",
              all.reads ~= "" and "; it reads " or "", all.reads, all.operations, text.plural(all.operations))
  if all.classes == plan.world and all.classes > 1 then
    text.printf("each rank is a class of its own: what the step reads differs on every rank; %d different program%s\n",
                all.programs, text.plural(all.programs))
  end
  text.printf("\n  %-24s %12s %12s  of the rank with the most\n", "family", "calls", "bytes")
  for _, name in ipairs(keys_in(all.families, plan.families)) do
    local sum = all.families[name]
    text.printf("  %-24s %12d %12s\n", name, sum.calls, text.bytes(sum.bytes))
  end
  if all.memory.peak > 0 then put_memory(all.memory) end
  if all.excess then text.put(all.excess, "\n") end
  if price then put_price(of, plan, all, price) end
  text.printf("\ndigest  %s\nverdict %s under the rules of %s: %s%s\n", all.digest, all.verdict, of.rules:upper(),
              reports.verdicts[all.verdict], all.assumes and ", under the assumptions of the first line" or "")
  if all.counterexample[1] then text.put_lines("  " .. all.message .. "\n") end
end

-- Run ------------------------------------------------------------------------------

local function reads_text(step)
  local list, seen = {}, {}
  for _, read in ipairs(step.reads) do
    local of = read.family or read.grid
    local word = read.what == "size" and of or (of and of .. "." or "") .. read.what
    if not seen[word] then list[#list + 1], seen[word] = word, true end -- a step may read one thing of several groups
  end
  return table.concat(list, ", ")
end

local function check(of)
  line.needs(of, of.world)
  if line.is_saved(of) then text.usage "a saved plan has no step; step takes the recipe" end
  line.beyond(of.rank or 0, of.world)
  of.rules = of.rules or "nccl"
  if of.calibration and of.costs then text.usage "--calibration is instead of --costs" end
  if of.eager and of.rules ~= "mpi" then text.usage "--eager is for --rules mpi" end
end

local function run(of)
  check(of)
  local plan = recipe.plan(of)
  local step = plan:step(of.step)
  if of.rank then return text.put(step:text(of.rank)) end
  local proved, verdict, message, counterexample = step:prove(of.rules, of.eager)
  local assumes = proved and verdict or nil
  if proved then verdict = "proved" end
  local sums = step:sums()
  local all = {
    verdict = verdict, classes = step.classes, programs = step.programs, operations = step.operations,
    digest = step.digest, reads = reads_text(step), rules = of.rules, families = sums.families,
    memory = sums.memory,
    counterexample = counterexample or {}, message = message or "", assumes = assumes,
  }
  local price
  if proved or verdict == "hazard" then
    price = priced(of, plan, step, verdict)
    if not price then
      recipe.unpriced(of.flops and "flops" or of.costs and "costs" or of.calibration and "calibration"
                      or of.output and "output")
    end
  elseif of.output then
    text.refuse(1, "a step that does not end has no picture: its verdict is %s", verdict)
  end
  if price then
    all.memory, all.excess, all.straddles = price.memory, excess(price.memory), straddling(of, plan, price)
  end
  if of.json then put_json(all, price) else put_text(of, plan, all, price) end
  return proved and not all.excess and 0 or 1
end

return {
  name = "step",
  place = 50,
  takes = "RECIPE --world N [NAME=VALUE ...]",
  summary = "what travels, the proof that no rank waits forever, and the price (preview)",
  usage = "moongrid step RECIPE --world N [NAME=VALUE ...] [--step FILE] [--rank R] [--rules nccl|mpi]\n"
    .. "       [--machine MACHINE [--flops X] [--costs|--calibration FILE] [-o FILE]] [--json]",
  about = "Evaluate the step of a recipe, once for each class of ranks with one program, and prove that\n"
    .. "every rank reaches its end. The verdict is proved; mismatch, if calls that meet differ; unmatched, if\n"
    .. "a call never meets its partner; cycle, if ranks wait for each other; hazard, if ranks may wait for\n"
    .. "each other when SMs of a GPU are short. The exit code is 1 unless the step is proved, and fits in the\n"
    .. "memory of the machine's GPUs, if that is known.",
  notes = "Under the rules of NCCL, streams run side by side. The calls of one stream run in order, and so do the\n"
    .. "calls on one communicator. Under those of MPI each call ends before the next begins. Sends wait for\n"
    .. "their receiver.\n"
    .. "\n"
    .. "With a machine the step is simulated, with one rank for each type and streams side by side. A call takes as\n"
    .. "long as its fastest algorithm over the links that its group crosses; the groups of a family share these\n"
    .. "links. src/step/README.md has the model and what it leaves out.",
  example = "moongrid step megatron --world 64 tp=8 pp=4 layers=32",
  recipe = true,
  options = {
    line.world "ranks in the world",
    { "step", "FILE", help = "a file that returns a step, function (s, p, base), to use instead of the recipe's" },
    { "rank", "R", line.index, help = "the program of one rank, with the lines of the recipe" },
    { "rules", "nccl|mpi", help = "the rules of the proof; default: nccl" },
    { "eager", "BYTES", line.size, help = "with --rules mpi: sends of at most this number of bytes do not wait" },
    { "flops", "X", line.flops,
      help = "flops of a GPU in a second, as 400e12 or 400T; default: the peak of its data sheet",
      head = "with --machine, the price" },
    { "costs", "FILE",
      help = 'JSON: flops, latencies, measured efficiencies; default: the key "costs" of a machine in JSON' },
    { "calibration", "FILE", help = "what moongrid calibrate wrote, instead of --costs" },
    { "output", "FILE", output, letter = true,
      help = "draw the step over time: .svg, by stage and stream; .html, a page with zoom that shows which "
        .. "rank waits for which; .json, events for Perfetto and chrome://tracing" },
    { "json", help = "one JSON object" },
  },
  run = run,
}
