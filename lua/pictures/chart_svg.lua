-- SPDX-License-Identifier: MIT
--
-- chart_svg(chart, put): write a chart of time as SVG. A row is divided into columns that are one pixel wide. In a
-- column the kinds of bars are stacked; each is as high as its share of the column's time, so bars thinner than a pixel
-- count.

local chart = require "pictures.chart"
local words = require "pictures.words"

local WIDTH, TOP, RIGHT, ROWS = 1200, 102, 24, 512
local STEPS, BITS = 8, 5 -- a column has 8 parts, and is a number with BITS bits for the kind of each part

local HEAD = '<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img">\n'
local STYLE = "<defs><style type=\"text/css\">text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;fill:#1b1f24}"
  .. ".title{font-size:18px;font-weight:bold}.note{font-size:12px;fill:#374151}"
  .. ".row{font-size:%dpx;fill:#374151;text-anchor:end}.time{font-size:10px;fill:#4b5563;text-anchor:middle}"
  .. ".gap{font-size:13px;text-anchor:middle}.tick{stroke:#1b1f24;stroke-opacity:.18;stroke-width:1;fill:none}"
  .. ".paper{fill:#fff}.ground{fill:#f6f7f9}</style>\n"
  .. '<pattern id="gap" width="8" height="8" patternUnits="userSpaceOnUse"><rect width="8" height="8" '
  .. 'fill="#fff"/><path d="M-2,2l4,-4M0,8l8,-8M6,10l4,-4" stroke="#9aa1ad"/></pattern></defs>\n'

local function text(x, y, class, said)
  return ('<text x="%g" y="%g" class="%s">%s</text>\n'):format(x, y, class, words.xml(said))
end

-- Return the shares of a row's columns. The share of kind k in column x is at x * #c.kinds + k.
local function shares_of(c, row)
  local share, kinds, seconds, floor = {}, #c.kinds, c.seconds, math.floor
  local function spread(from, to, kind, weight)
    local a, b = from / chart.SECOND / seconds * WIDTH, to / chart.SECOND / seconds * WIDTH
    local x = floor(a)
    while x < b and x < WIDTH do
      local at = x * kinds + kind
      share[at] = (share[at] or 0) + ((b < x + 1 and b or x + 1) - (a > x and a or x)) * weight
      x = x + 1
    end
  end
  for _, i in ipairs(row.spans) do
    local began, from, to, said = c.bar(i)
    if began < from then spread(began, from, 1, 1) end
    for _, part in ipairs(c.texts[said].parts) do spread(from, to, part[1], part[2]) end
  end
  return share
end

-- Return a column as a number: the kind at the top in its lowest bits, 0 for nothing. Kind 1, waiting, is at the
-- bottom.
local function column_of(share, x, kinds)
  local sum, at, done, column = 0, 0, 0, 0
  for k = 1, kinds do sum = sum + (share[x * kinds + k] or 0) end
  if sum == 0 then return 0 end
  local scale = sum > 1 and 1 / sum or 1
  for k = kinds, 1, -1 do
    at = at + (share[x * kinds + k] or 0) * scale
    local now = math.floor(at * STEPS + 0.5)
    for eighth = done, now - 1 do column = column | k << BITS * eighth end
    done = now
  end
  return column
end

local function put_row(c, row, left, y, high, put)
  local share, kinds, paths, x = shares_of(c, row), #c.kinds, {}, 0
  local top, tall = {}, {} -- coordinates as text, by eighths
  for eighth = 0, STEPS do
    top[eighth], tall[eighth] = ("%g"):format(y + high * eighth / STEPS), ("%g"):format(high * eighth / STEPS)
  end
  local column = column_of(share, 0, kinds)
  while x < WIDTH do
    local stop, after = x + 1, nil
    while stop < WIDTH do
      after = column_of(share, stop, kinds)
      if after ~= column then break end
      stop = stop + 1
    end
    local eighth = 0
    while column ~= 0 do -- each kind, from the top down
      local kind, above = column & (1 << BITS) - 1, eighth
      while kind == column & (1 << BITS) - 1 and column ~= 0 do column, eighth = column >> BITS, eighth + 1 end
      local path = paths[kind] or {}
      paths[kind] = path
      path[#path + 1] = ("M%g %sh%dv%sh-%dz"):format(left + x, top[above], stop - x, tall[eighth - above], stop - x)
    end
    x, column = stop, after
  end
  for k = kinds, 1, -1 do
    if paths[k] then put(('<path fill="%s" d="%s"/>\n'):format(c.kinds[k].colour, table.concat(paths[k]))) end
  end
end

local function put_axis(c, left, bottom, put)
  local raw = c.seconds / 8
  local unit = raw > 0 and 10.0 ^ math.floor(math.log(raw, 10)) or 1
  local tick = raw / unit > 5 and 10 * unit or raw / unit > 2 and 5 * unit or raw / unit > 1 and 2 * unit or unit
  local i = 0
  while tick * i <= c.seconds and c.seconds > 0 do
    local x = left + tick * i / c.seconds * WIDTH
    put(('<path class="tick" d="M%.1f %dV%.1f"/>'):format(x, TOP - 4, bottom + 4))
    put(text(x, bottom + 16, "time", chart.seconds(tick * i)))
    i = i + 1
  end
end

local function put_legend(c, left, put)
  local x = left
  for k = #c.kinds, 1, -1 do
    local kind = c.kinds[k]
    put(('<rect x="%g" y="76" width="12" height="12" fill="%s"/>'):format(x, kind.colour))
    put(text(x + 17, 86, "note", kind.name))
    x = x + 17 + 7 * #kind.name + 16
  end
end

local function put_gaps(c, left, bottom, put)
  local ticks = c.seconds * chart.SECOND
  for _, gap in ipairs(c.gaps) do
    local x, w = left + gap.from / ticks * WIDTH, (gap.to - gap.from) / ticks * WIDTH
    put(('<rect x="%.1f" y="%d" width="%.1f" height="%.1f" fill="url(#gap)"/>'):format(x, TOP, w, bottom - TOP))
    if w > 120 then
      put(text(x + w / 2, (TOP + bottom) / 2, "gap", ("the same %d times more"):format(gap.times)))
    end
  end
end

return function(c, put)
  local rows, widest = math.min(#c.rows, ROWS), 4
  for i = 1, rows do widest = math.max(widest, #chart.name(c.rows[i])) end
  local left = 20 + 6.2 * widest
  local step = rows <= 24 and 30 or rows <= 96 and 14 or rows <= 256 and 7 or 4
  local high = step - (step >= 14 and 3 or 1)
  local bottom = TOP + step * rows
  local width, height = left + WIDTH + RIGHT, bottom + ((c.cut or rows < #c.rows) and 44 or 28)
  put(HEAD:format(width, height, width, height))
  put(STYLE:format(step >= 14 and 11 or 9))
  put("<title>" .. words.xml(c.title) .. '</title>\n<rect class="paper" width="100%" height="100%"/>\n')
  put(text(16, 24, "title", c.title))
  put(text(16, 44, "note", c.settings))
  put(text(16, 62, "note", c.about))
  put_legend(c, left, put)
  put(('<rect class="ground" x="%g" y="%d" width="%d" height="%g"/>\n'):format(left, TOP, WIDTH, bottom - TOP))
  for i = 1, c.seconds > 0 and rows or 0 do put_row(c, c.rows[i], left, TOP + step * (i - 1), high, put) end
  put_gaps(c, left, bottom, put)
  for i = 1, rows, step >= 10 and 1 or math.ceil(10 / step) do -- labels, as many as there is room for
    put(text(left - 6, TOP + step * (i - 1) + high / 2 + 3.5, "row", chart.name(c.rows[i])))
  end
  put_axis(c, left, bottom, put)
  if rows < #c.rows then
    put(text(16, bottom + 34, "note", ("%d of %d rows"):format(rows, #c.rows)))
  elseif c.cut then
    put(text(16, bottom + 34, "note", "the end of the step is left out: it has too many operations"))
  end
  put "</svg>\n"
end
