-- SPDX-License-Identifier: MIT
--
-- chart_trace(chart, put [, planned]): write a chart of time as a trace, with a process for each type of ranks and a
-- thread for each stream. Slices of a thread must not overlap, so calls that run at the same time are on several
-- threads of the stream. `planned` is another chart; in each rank's process its rows follow the rows of `chart`.

local trace = require "pictures.trace"

local MICROSECOND = 1e6

-- Write a row of a chart into a process, beginning with thread `first`. Return the thread after its last one.
local function put_row(t, c, row, names, process, first, name)
  local until_of = {}
  for _, span in ipairs(row.spans) do
    local began, from, to, said, by = c.bar(span)
    local lane, arguments = 1, names.arguments[said]
    while (until_of[lane] or 0) > from do lane = lane + 1 end
    local thread = first + lane - 1
    if by then
      arguments = ('"waited_for":%s,"waited_us":%.15g'):format(names.rows[by], (from - began) / MICROSECOND)
      if (until_of[lane] or 0) <= began then
        t:slice('"waits"', '"wait"', process, thread, began / MICROSECOND, (from - began) / MICROSECOND, arguments)
      end
    end
    t:slice(names.texts[said], names.kinds[said], process, thread, from / MICROSECOND, (to - from) / MICROSECOND,
            arguments)
    until_of[lane] = to
  end
  for lane = 1, #until_of do
    t:name("thread_name", process, first + lane - 1, name .. (lane > 1 and (" (%d)"):format(lane) or ""))
  end
  return first + #until_of
end

local function kind_of(c, said)
  local e = said.entry
  if #said.parts == 1 then return c.kinds[said.parts[1][1]].name end
  return e.operation
end

-- Return the bytes of a measured entry and its line in the recipe, as members of a JSON object.
local function planned_of(said)
  local e = said.entry
  local bytes = said.bytes and ('"bytes":%d'):format(said.bytes)
  local at = e.line and ('"file":%s,"line":%d'):format(trace.text(e.file or ""), e.line)
  return (bytes or "") .. (bytes and at and "," or "") .. (at or "")
end

-- Return as JSON what occurs in many slices: names of rows, of texts and of kinds, and the arguments of slices.
local function names_of(c)
  local names = { rows = {}, texts = {}, kinds = {}, arguments = {} }
  for i, row in ipairs(c.rows) do names.rows[i] = trace.text(("%s (rank %d)"):format(row.label, row.rank)) end
  for i, said in ipairs(c.texts) do
    names.texts[i] = trace.text(said.text)
    names.kinds[i] = trace.text(kind_of(c, said))
    names.arguments[i] = c.measured and planned_of(said) or ""
  end
  return names
end

-- Write the planned rows of each rank into its process, beginning with thread `first`.
local function put_planned(t, c, world, first)
  local names, of_type = names_of(c), {}
  for i, row in ipairs(c.rows) do
    of_type[row.type] = of_type[row.type] or {}
    table.insert(of_type[row.type], i)
  end
  for rank = 0, world - 1 do
    local thread = first
    for _, i in ipairs(of_type[c.timeline:type(rank)] or {}) do
      thread = put_row(t, c, c.rows[i], names, rank, thread, c.rows[i].stream .. ", planned")
    end
  end
end

local function name_of(c, row)
  if not c.measured then
    return ("%s: %d rank%s from %d"):format(row.label, row.ranks, row.ranks == 1 and "" or "s", row.rank)
  end
  local rank = "rank " .. row.rank
  return row.label == rank and rank or rank .. ": " .. row.label
end

return function(c, put, planned)
  local t = trace.open({ title = c.title, settings = c.settings, about = c.about }, put)
  local names, thread = names_of(c), 0
  for i, row in ipairs(c.rows) do
    if i == 1 or row.type ~= c.rows[i - 1].type then t:name("process_name", row.type - 1, thread, name_of(c, row)) end
    thread = put_row(t, c, row, names, row.type - 1, thread, row.stream)
  end
  if planned then put_planned(t, planned, #c.types, thread) end
  for _, gap in ipairs((planned or c).gaps) do
    t:mark(("the same %d times more"):format(gap.times), gap.from / MICROSECOND, (gap.to - gap.from) / MICROSECOND)
  end
  t:close()
end
