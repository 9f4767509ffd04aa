-- SPDX-License-Identifier: MIT
--
-- chart.make(plan, step, price, timeline) returns a chart of time, from which pictures of a step are drawn, with a row
-- for each stream of each type of ranks. Without a price the timeline is measured. The chart has
--   title, settings   of the plan
--   seconds, about    of the price: the time of the step, and a sentence about it; measured: nil and "measured"
--   kinds   what bars show: { name, sort, colour }, from the bottom to the top of a column of chart_svg.lua
--   texts   for each entry of a program: { text, parts, entry, bytes }; parts: { kind, share }, several if a loop was
--           taken as one operation, or if calls begin together
--   rows    { label, stream, type, rank, ranks, spans }; rank, ranks: the lowest rank of the type, and their number
--   gaps    { from, to, times }: rounds of loops that were not executed one by one
--   cut     whether the end is left out
--   measured   whether times are measured, so that each rank is a type of its own
-- Times of spans and gaps are integers, picoseconds; kinds, texts and rows are counted from 1.

local words = require "pictures.words"

local M = { SECOND = 1e12 }

local KINDS = 24 -- most kinds; all further names get the kind that was made last
local WAITS, GREY = "waits", "#d4d7dd"
-- Colours that differ in lightness or between blue and yellow (after Paul Tol's schemes): computes are blue and green,
-- calls warm, waiting grey.
local COLOURS = {
  computes = { "#4477aa", "#66ccee", "#228833", "#aaddcc", "#334488", "#88aa55", "#99bbff", "#117766" },
  moves = { "#ee6677", "#ccbb44", "#ee8866", "#aa3377", "#ffaabb", "#ddaa33", "#bb5566", "#997700" },
}

-- Return a time with a unit, "12.3 ms".
function M.seconds(s)
  local a = math.abs(s)
  if a >= 1 or a == 0 then return ("%.4g s"):format(s) end
  if a >= 1e-3 then return ("%.4g ms"):format(s * 1e3) end
  if a >= 1e-6 then return ("%.4g us"):format(s * 1e6) end
  return ("%.4g ns"):format(s * 1e9)
end

local UNITS = { "KiB", "MiB", "GiB", "TiB", "PiB" }
local function bytes_text(n)
  if n < 1024 then return ("%d bytes"):format(n) end
  local x, unit = n / 1024, 1
  while x >= 1024 and UNITS[unit + 1] do x, unit = x / 1024, unit + 1 end
  return ("%.3g %s"):format(x, UNITS[unit])
end

-- Return "all_reduce(tp)", "recv(pp from 3)", or the name of a compute.
local function call_text(e)
  if e.operation == "compute" then return e.name or "compute" end
  local peer = e.to and " to " .. e.to or e.from and " from " .. e.from or ""
  return e.family and e.operation ~= "sendrecv" and ("%s(%s%s)"):format(e.operation, e.family, peer) or e.operation
end

-- Texts and kinds ----------------------------------------------------------------

-- Return the kind of an entry that computes or moves bytes.
local function kind_of(c, e)
  local sort = e.operation == "compute" and "computes" or "moves"
  local name = sort == "computes" and (e.name or "compute") or e.family
  local known = c.known[sort]
  if not known[name] then
    if #c.kinds < KINDS then
      local i = known.n % 8 + 1
      known.n, c.kinds[#c.kinds + 1] = known.n + 1, { name = name, sort = sort, colour = COLOURS[sort][i] }
    end
    known[name] = c.kinds[#c.kinds]
  end
  return known[name]
end

local function add_part(c, parts, e, seconds)
  local kind = kind_of(c, e)
  for _, part in ipairs(parts) do
    if part[1] == kind then
      part[2] = part[2] + seconds
      return
    end
  end
  parts[#parts + 1] = { kind, seconds }
end

-- Add to `parts` the entries from `at` on of `loop`, a loop that was taken as one operation or calls that begin
-- together; each entry runs `times` times. Add the first calls to `names`, and their bytes to names.bytes.
local function add_parts(c, type, loop, at, times, parts, names)
  local rank = c.types[type].rank
  local last = loop.after
  while at < last do
    local e = c.step:entry(rank, at)
    if e.operation == "loop" then add_parts(c, type, e, at + 1, times * e.times, parts, names) end
    if e.stream == loop.stream and (e.operation == "compute" or e.family) then
      add_part(c, parts, e, times * c.timeline:seconds(type, at))
      names.bytes = names.bytes + (e.bytes or 0)
      if names.long <= 160 then
        names[#names + 1] = call_text(e)
        names.long = names.long + #names[#names] + 2
      end
    end
    at = e.after
  end
end

local function make_text(c, type, at)
  local e, parts = c.step:entry(c.types[type].rank, at), {}
  local line, said, bytes = e.line, call_text(e), e.bytes
  if e.operation ~= "compute" and not e.family then -- a loop, or calls that begin together
    local names = { long = -2, bytes = 0 }
    add_parts(c, type, e, at + 1, 1, parts, names)
    bytes = names.bytes
    said = ("%s: %s"):format(e.times and e.times .. " times" or said, table.concat(names, ", "))
    line = line or c.step:entry(c.types[type].rank, at + 1).line
  else
    add_part(c, parts, e, 1)
    if e.operation == "compute" then
      if e.flops > 0 then said = said .. (" of %.3g flops"):format(e.flops) end
    elseif e.bytes then
      said = said .. " of " .. bytes_text(e.bytes)
    end
  end
  local sum = 0
  for _, part in ipairs(parts) do sum = sum + part[2] end
  for _, part in ipairs(parts) do part[2] = sum > 0 and part[2] / sum or 1 / #parts end
  if line then said = said .. ", line " .. line end
  return { text = said, parts = parts, entry = e, bytes = bytes }
end

-- Sort the kinds (waiting, then calls, then computes), and replace the kinds of parts by their numbers.
local function sort_kinds(c)
  local sorted = {}
  for _, sort in ipairs { WAITS, "moves", "computes" } do
    for _, kind in ipairs(c.kinds) do
      if kind.sort == sort then
        sorted[#sorted + 1] = kind
        kind.number = #sorted
      end
    end
  end
  c.kinds = sorted
  for _, text in ipairs(c.texts) do
    for _, part in ipairs(text.parts) do part[1] = part[1].number end
  end
end

-- Rows ---------------------------------------------------------------------------

local function answer(plan, read, rank)
  local group, position = plan:family(read.family):locate(rank, read.nth)
  if read.what == "index" then return group or -1 end
  return position or -1
end

-- Return the positions and indexes that the step reads and that differ between types. They make the labels of rows.
local function find_differences(plan, reads, types)
  local differ = {}
  for _, read in ipairs(reads) do
    if read.family and (read.what == "position" or read.what == "index") then
      local first = answer(plan, read, types[1].rank)
      for i = 2, #types do
        if answer(plan, read, types[i].rank) ~= first then
          differ[#differ + 1] = read
          break
        end
      end
    end
  end
  return differ
end

local function label(plan, differ, rank)
  local said = ""
  for _, read in ipairs(differ) do
    if #said <= 40 then
      said = said .. (said ~= "" and ", " or "") .. ("%s %d"):format(read.family, answer(plan, read, rank))
    end
  end
  return said ~= "" and said or "rank " .. rank
end

-- Return the label of each type of ranks; equal labels also get the first rank of the type.
local function labels(plan, differ, types)
  local all, times = {}, {}
  for i, type in ipairs(types) do
    all[i] = label(plan, differ, type.rank)
    times[all[i]] = (times[all[i]] or 0) + 1
  end
  for i, said in ipairs(all) do
    if times[said] > 1 then all[i] = ("%s, rank %d"):format(said, types[i].rank) end
  end
  return all
end

-- Make the rows that have spans, and the texts in the order of their first spans.
local function make_rows(c, plan)
  local timeline, by_type, text_of = c.timeline, {}, {}
  for i = 1, #timeline do
    local type, stream, entry = timeline:span(i)
    local streams = by_type[type] or {}
    by_type[type], streams[stream] = streams, streams[stream] or {}
    local spans = streams[stream]
    spans[#spans + 1] = i
    local program = c.types[type].program
    local texts = text_of[program] or {}
    text_of[program] = texts
    if not texts[entry] then
      c.texts[#c.texts + 1] = make_text(c, type, entry)
      texts[entry] = #c.texts
    end
  end
  local said, first = labels(plan, find_differences(plan, c.step.reads, c.types), c.types), {}
  for number, type in ipairs(c.types) do
    first[number] = #c.rows + 1
    for stream, name in ipairs(type.streams) do
      local spans = by_type[number] and by_type[number][stream]
      if spans then
        c.rows[#c.rows + 1] = { label = said[number], stream = name, type = number, rank = type.rank,
                                ranks = type.ranks, spans = spans }
      end
    end
  end
  local texts = {}
  for number, type in ipairs(c.types) do texts[number] = text_of[type.program] end
  -- Return the times when span i began to wait, began to work, and ended; the number of its text; and the number of the
  -- row for which it waited, or nil.
  function c.bar(i)
    local type, _, entry, began, from, to, by = timeline:span(i)
    return began, from, to, texts[type][entry], by and first[by]
  end
end

local function about(price)
  local all = price.seconds > 0 and price.seconds or 1
  return ("%s: computes %.1f%%, exposed %.1f%%, bubble %.1f%% of the mean rank; on %s"):format(
    M.seconds(price.seconds), 100 * price.compute / all, 100 * price.exposed / all, 100 * price.bubble / all,
    price.machine)
end

function M.make(plan, step, price, timeline)
  local c = {
    step = step, timeline = timeline, types = timeline.types,
    seconds = price and price.seconds, cut = timeline.cut, measured = not price,
    title = ("step of %s over %d rank%s"):format(plan.recipe ~= "" and plan.recipe or "a recipe", plan.world,
                                                 plan.world == 1 and "" or "s"),
    settings = table.concat(words.given(plan), " "),
    about = price and about(price) or "measured",
    kinds = { { name = "waits for others", sort = WAITS, colour = GREY } },
    known = { computes = { n = 0 }, moves = { n = 0 } },
    texts = {}, rows = {}, gaps = timeline.repeats,
  }
  make_rows(c, plan)
  sort_kinds(c)
  return c
end

-- Return the name of a row in pictures.
function M.name(row) return row.label .. (row.stream ~= "main" and " " .. row.stream or "") end

return M
