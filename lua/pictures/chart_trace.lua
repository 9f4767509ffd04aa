-- SPDX-License-Identifier: MIT
--
-- chart_trace(chart, put): a chart of time as a trace: a process for each type of ranks, a thread for each stream.
-- Slices of a thread must not overlap: calls of a group, which travel at once, are on further threads of the stream.

local trace = require "pictures.trace"

local LANES = 8
local MICROSECOND = 1e6

local function put_row(t, c, i, names)
  local row, until_of, used = c.rows[i], {}, 0
  for lane = 1, LANES do until_of[lane] = 0 end
  for _, span in ipairs(row.spans) do
    local began, from, to, said, by = c.bar(span)
    local lane, arguments = 1, ""
    while lane < LANES and until_of[lane] > from do lane = lane + 1 end
    local thread = (i - 1) * LANES + lane - 1
    if by then
      arguments = ('"waited_for":%s,"waited_us":%.15g'):format(names.rows[by], (from - began) / MICROSECOND)
      if until_of[lane] <= began then
        t:slice('"waits"', '"wait"', row.type - 1, thread, began / MICROSECOND, (from - began) / MICROSECOND, arguments)
      end
    end
    t:slice(names.texts[said], names.kinds[said], row.type - 1, thread, from / MICROSECOND, (to - from) / MICROSECOND,
            arguments)
    until_of[lane], used = to, math.max(used, lane)
  end
  for lane = 1, used do
    t:name("thread_name", row.type - 1, (i - 1) * LANES + lane - 1,
           row.stream .. (lane > 1 and (" (%d)"):format(lane) or ""))
  end
end

-- Return the names that come many times, as JSON.
local function names_of(c)
  local names = { rows = {}, texts = {}, kinds = {} }
  for i, row in ipairs(c.rows) do names.rows[i] = trace.text(("%s (rank %d)"):format(row.label, row.rank)) end
  for i, said in ipairs(c.texts) do
    names.texts[i] = trace.text(said.text)
    names.kinds[i] = trace.text(#said.parts == 1 and c.kinds[said.parts[1][1]].name or "loop")
  end
  return names
end

return function(c, put)
  local t = trace.open({ title = c.title, settings = c.settings, about = c.about }, put)
  local names = names_of(c)
  for i, row in ipairs(c.rows) do
    if i == 1 or row.type ~= c.rows[i - 1].type then
      t:name("process_name", row.type - 1, (i - 1) * LANES,
             ("%s: %d rank%s from %d"):format(row.label, row.ranks, row.ranks == 1 and "" or "s", row.rank))
    end
    put_row(t, c, i, names)
  end
  for _, gap in ipairs(c.gaps) do
    t:mark(("the same %d times more"):format(gap.times), gap.from / MICROSECOND, (gap.to - gap.from) / MICROSECOND)
  end
  t:close()
end
