-- SPDX-License-Identifier: MIT
--
-- moongrid diff: print the differences between two recipes, sets of parameters or worlds, and the communicators that a
-- running job would keep, create and destroy; or the changes of a step's bytes, memory and time.

local json = require "command.base.json"
local line = require "command.base.line"
local overview = require "command.base.overview"
local recipe = require "command.base.line_recipe"
local sorted = require "command.base.sorted"
local text = require "command.base.text"

-- Plans -----------------------------------------------------------------------------

local FAMILY = { "count", "options", "rule", "size" } -- `size` is null if groups differ in size

-- Return the shape of a value for json.put: FAMILY for a family, which is a table with a rule; nil for other values.
local function keys(value) return type(value) == "table" and value.rule and FAMILY or nil end
local function change(list) return list[1] and { named = true, from = keys, to = keys } or nil end

-- Return the lines of a difference, with one line for all tensors whose names differ only in numbers and that change in
-- the same way.
local function in_few_lines(words)
  local lines, known = {}, {}
  for one in words:gmatch "[^\n]*\n" do
    local head, name, rest = one:match "^(. tensor   )([^:]*)(.*)$"
    local like = head and name:gsub("%d+", "*")
    local key = head and head .. like .. rest
    if not key or not known[key] then
      lines[#lines + 1] = { one, n = 0 }
      known[key or one] = lines[#lines]
    end
    local line_of = known[key or one]
    line_of.n = line_of.n + 1
    if line_of.n > 1 and key then line_of[1] = ("%s%d of %s%s"):format(head, line_of.n, like, rest) end
  end
  for i, one in ipairs(lines) do lines[i] = one[1] end
  return table.concat(lines)
end

local function compare_plans(of, was, is)
  line.beyond(of.rank or 0, math.max(was.world, is.world))
  local diff = was:diff(is, of.rank)
  if of.json then
    json.put(diff, { named = true, changes = change })
  else
    if text.lines == 0 then text.fold = math.maxinteger end
    text.put_lines(in_few_lines(tostring(diff)))
  end
  return diff.differ
end

-- Steps -----------------------------------------------------------------------------

-- Return the step of a side: its families and memory, and with a machine its price; and the names in order.
local function side(of, plan)
  local step = plan:step()
  local proved, verdict, message = step:prove "nccl"
  if not proved and verdict ~= "hazard" then
    text.refuse(4, "the step of %s is not proved (%s): %s", of.recipe, verdict, message)
  end
  local all, machine = step:sums(), recipe.machine(of, plan)
  if not machine then recipe.unpriced(of.flops and "flops" or of.costs and "costs") end
  local order = { families = plan.families, by = {}, levels = {} }
  for name in sorted(all.memory.by) do order.by[#order.by + 1] = name end
  if machine then
    local price = step:price { machine = of.machine, flops = of.flops, costs = of.calibration or of.costs }
    price.memory = nil
    for name, value in sorted(price) do all[name] = value end
    for i, at in ipairs(machine:where(0)) do order.levels[i] = at.level end
  end
  return all, order
end

-- Call f once for each name in a or b, in the order of order_a, then of order_b.
local function each(a, b, order_a, order_b, f)
  local seen = {}
  for i, order in ipairs { order_a, order_b } do
    for _, name in ipairs(order) do
      local here = i == 1 and a or b
      if here[name] ~= nil and not seen[name] then
        seen[name] = true
        f(name, a[name], b[name])
      end
    end
  end
end

local function alike(a, b) return a == b or a > 0 and b > 0 and a / b < 1 + 1e-9 and b / a < 1 + 1e-9 end

-- Return the differences, a list of { of, name, what, from, to }.
local function compare(a, b, order_a, order_b)
  local rows = {}
  local function add(of, name, what, from, to)
    from, to = (from or 0) + 0.0, (to or 0) + 0.0
    if not alike(from, to) then rows[#rows + 1] = { of = of, name = name, what = what, from = from, to = to } end
  end
  for _, name in ipairs { "seconds", "compute", "exposed", "hidden", "bubble" } do
    add("time", name, "seconds", a[name], b[name])
  end
  each(a.families, b.families, order_a.families, order_b.families, function(name, x, y)
    x, y = x or {}, y or {}
    for _, what in ipairs { "calls", "bytes", "seconds" } do add("family", name, what, x[what], y[what]) end
    each(x.levels or {}, y.levels or {}, order_a.levels, order_b.levels, function(level, from, to)
      add("family", name, "bytes out of " .. level, from and from.bytes, to and to.bytes)
    end)
  end)
  add("memory", "peak", "bytes", a.memory.peak, b.memory.peak)
  each(a.memory.by, b.memory.by, order_a.by, order_b.by, function(name, from, to)
    add("memory", name, "bytes", from, to)
  end)
  return rows
end

local HEADS = {
  time = "time of the step (seconds), and how the mean rank spends it",
  memory = "memory of the rank with the most",
  family = "families: calls, bytes and time of the rank with the most; bytes out of domains, of all ranks",
}

local function shown(n, what)
  if what == "seconds" then return text.seconds(n) end
  if what:find "^bytes" then return text.bytes(n) end
  return ("%.0f"):format(n)
end

local function put_rows(rows, estimate)
  local last
  if #rows == 0 then text.put "the steps cost the same\n" end
  if estimate then
    text.wrap("times", overview.estimate(estimate, ", so they do not tell which step is faster"))
    text.put "\n"
  end
  for _, row in ipairs(rows) do
    local from, to = row.from, row.to
    if row.of ~= last then text.put(last and "\n" or "", HEADS[row.of], "\n") end
    last = row.of
    text.printf("%s %-16s %-20s %12s -> %-12s %s\n", from <= 0 and "+" or to <= 0 and "-" or "~", row.name, row.what,
                shown(from, row.what), shown(to, row.what),
                from > 0 and to > 0 and ("%+.1f%%"):format(100 * (to / from - 1)) or "")
  end
end

local function compare_steps(a, b, was, is)
  if line.is_saved(a) or line.is_saved(b) then text.refuse(2, "--step compares recipes: a saved plan has no step") end
  local from, from_order = side(a, was)
  local to, to_order = side(b, is)
  local rows = compare(from, to, from_order, to_order)
  if a.json then
    json.put({ differ = #rows > 0, changes = rows, from = from, to = to },
             { named = true, from = overview.step_shape(from), to = overview.step_shape(to) })
  else
    put_rows(rows, from.estimate and to.estimate)
  end
  return #rows > 0
end

-- ---------------------------------------------------------------------------------------

local function run(a, b)
  local was, is = recipe.plan(a), recipe.plan(b)
  local differ
  if a.step then differ = compare_steps(a, b, was, is) else differ = compare_plans(a, was, is) end
  return differ and a["exit-code"] and 1 or 0
end

return {
  name = "diff",
  place = 60,
  takes = "A --world N [...] vs B [...]",
  summary = "what changes from one plan to another",
  usage = "moongrid diff RECIPE --world N [NAME=VALUE ...] vs [RECIPE] [--world N] [NAME=VALUE ...] [--rank R]\n"
    .. "       [--json] [--exit-code]\n"
    .. "       moongrid diff SAVED SAVED [--rank R] ...\n"
    .. "       moongrid diff A --world N [...] vs B [...] --step [--machine MACHINE] [--flops X]\n"
    .. "       [--costs|--calibration FILE] "
    .. "[--json]",
  about = "Compare two plans: + new, - gone, ~ changed. The second recipe defaults to the\n"
    .. "first one, and a world given on one side is that of both; parameters are\n"
    .. "not carried over. If both worlds have the same size, also print the communicators that a rank (0, or R)\n"
    .. "keeps, creates and destroys when the trainer reloads (except lazy ones). The exit code is 0 even if the plans\n"
    .. "differ. Each side may be a plan that 'moongrid plan' saved.",
  example = "moongrid diff megatron --world 16 tp=2 vs tp=4",
  recipe = true,
  sides = true,
  options = {
    line.world "ranks in the world",
    { "rank", "R", line.index, help = "the rank whose communicators are listed" },
    { "json", help = "one object: changes, and the communicators of the rank" },
    { "exit-code", help = "exit with 1 if the plans differ" },
    { "step", help = "compare the steps instead: calls, bytes and memory, and with --machine time, by family (moongrid "
                     .. "step)" },
    { "flops", "X", line.flops, help = "with --step and --machine: flops of a GPU in a second, as 400T" },
    { "costs", "FILE", help = "... JSON: flops, latencies, measured efficiencies" },
    { "calibration", "FILE", help = "... what moongrid calibrate wrote, instead of --costs" },
  },
  run = run,
}
