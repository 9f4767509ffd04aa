-- SPDX-License-Identifier: MIT
--
-- chart_page(chart, put): write a chart of time as one HTML page that needs no network: chart.html with its script and
-- the data as JSON. The script puts texts only into text nodes; characters of markup are escaped in the JSON.

local words = require "pictures.words"

-- Return the bars of a row as JSON, a list with five numbers for each bar: the nanoseconds since the end of the bar
-- before, those of waiting, those of work; the number of its text; and of the row for which it waited, or -1. In the
-- page texts and rows are counted from 0.
local function bars_of(c, row)
  local bars, last = {}, 0
  for i, span in ipairs(row.spans) do
    local began, from, to, said, by = c.bar(span)
    began, from, to = (began + 500) // 1000, (from + 500) // 1000, (to + 500) // 1000
    bars[i] = ("%d,%d,%d,%d,%d"):format(began - last, from - began, to - from, said - 1, (by or 0) - 1)
    last = to
  end
  return "[" .. table.concat(bars, ",") .. "]"
end

-- Return the data of the page without the bars.
local function about(c)
  local data = { title = c.title, settings = c.settings, about = c.about, cut = c.cut, seconds = c.seconds, kinds = {},
                 texts = {}, rows = {}, gaps = {} }
  for i, kind in ipairs(c.kinds) do data.kinds[i] = { name = kind.name, colour = kind.colour, sort = kind.sort } end
  for i, said in ipairs(c.texts) do
    local parts = {}
    for k, part in ipairs(said.parts) do parts[k] = { part[1] - 1.0, part[2] } end
    data.texts[i] = { said.text, parts }
  end
  for i, row in ipairs(c.rows) do
    data.rows[i] = { label = row.label, stream = row.stream, type = row.type - 1, rank = row.rank, ranks = row.ranks }
  end
  for i, gap in ipairs(c.gaps) do data.gaps[i] = { gap.from / 1000, gap.to / 1000, gap.times } end
  return data
end

return function(c, put)
  local head, middle, tail = require "pictures.chart_html":match "^(.-)@TITLE@(.-)@DATA@(.*)$"
  put(head .. words.xml(c.title) .. middle .. '{"bars":[')
  for i, row in ipairs(c.rows) do
    put((i > 1 and ",\n" or "") .. bars_of(c, row))
  end
  put '],"about":'
  words.json(about(c), put)
  put("}" .. tail .. "\n")
end
