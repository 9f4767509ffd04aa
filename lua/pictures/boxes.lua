-- SPDX-License-Identifier: MIT
--
-- boxes: draw a plan as text: grids are boxes of ranks, lines separate the groups. Covers (families in which a rank is
-- in several groups) are lists.
--
--       pp 0               pp 1
--             tp 0 tp 1          tp 0 tp 1
--            ┌─────────┐        ┌─────────┐
--       dp 0 │  0    1 │   dp 0 │  4    5 │
--       dp 1 │  2    3 │   dp 1 │  6    7 │
--            └─────────┘        └─────────┘
--
-- If lines cannot separate the groups of a family, because the ranks of a group are not next to each other, the number
-- of the group follows each rank: "4 g2".

local canvas = require "pictures.canvas"
local groups = require "pictures.groups"
local sheets = require "pictures.sheet"

local INDENT, GAP = 2, 3
local OUTSIDE, IDLE, ALONE = -2, -1, -3 -- keys of cells without a rank, without a group, and if no groups are drawn

-- A part of a sheet (sheet.lua) that is being drawn has
--   drawing, part, family   family: nil if no groups are drawn
--   group      the group of each cell, or IDLE; group[1] is that of cell 0
--   numbered   whether the number of the group follows each rank
--   open       whether no lines are between rows
--   n0, n1     drawn coordinates of the first and second level
--   per        ranks in a row of a box
--   chunks     rows that have the same coordinate of the second level
--   rows       rows of a box
--   cell, label, digits   columns of a rank with its mark and group, of a row's label, of the largest rank's number
--   keys       the results of keys_of, by box

local function boxes_of(part)
  local n = 1
  for k = 3, #part.levels do n = n * part.levels[k].shown end
  return n
end

-- Return the number of the cell in a row and column of a box, or nil if there is none.
local function cell_at(t, box, row, column)
  local n0, n1 = t.n0, t.n1
  local i0, i1 = row % t.chunks * t.per + column, row // t.chunks
  if row < 0 or column < 0 or column >= t.per or i0 >= n0 or i1 >= n1 then return nil end
  return (box * n1 + i1) * n0 + i0
end

-- Return a list of the groups of the cells of a box, with a border of OUTSIDE around them, and its `width`, the entries
-- of a row: the cell of row 0 and column 0 is at width + 2. A line separates neighbours that differ.
local function keys_of(t, box)
  local width, keys = t.per + 2, t.keys[box]
  if keys then return keys, width end
  keys = {}
  for row = -1, t.rows do
    for column = -1, t.per do
      local cell = cell_at(t, box, row, column)
      local key = OUTSIDE
      if cell and t.part.ranks[cell + 1] >= 0 then key = t.family and t.group[cell + 1] or ALONE end
      keys[#keys + 1] = key
    end
  end
  t.keys[box] = keys
  return keys, width
end

-- Measures -------------------------------------------------------------------------

-- Return the number of areas in which neighbouring cells have the same group, in all boxes. It counts upper left
-- corners, so an area that is not a rectangle may count more than once.
local function pieces(t)
  local n = 0
  for box = 0, boxes_of(t.part) - 1 do
    local keys, width = keys_of(t, box)
    for row = 1, t.rows do
      for at = row * width + 2, row * width + 1 + t.per do
        local is = keys[at]
        if is >= 0 and is ~= keys[at - 1] and is ~= keys[at - width] then n = n + 1 end
      end
    end
  end
  return n
end

local function rows_are_open(t)
  for box = 0, boxes_of(t.part) - 1 do
    local keys, width = keys_of(t, box)
    for row = 2, t.rows do
      for at = row * width + 2, row * width + 1 + t.per do
        if keys[at] ~= keys[at - width] then return false end
      end
    end
  end
  return true
end

local function widest(level) return #level.name + 1 + #tostring(level.base + level.size - 1) end

-- Set column widths, and how many ranks fit into a row.
local function measure(t)
  local first, second = t.part.levels[1], t.part.levels[2]
  local head, n0 = widest(first), first.shown
  t.n0, t.n1 = n0, second and second.shown or 1
  t.digits = #tostring(t.part.top)
  t.cell = t.digits + 2
  if t.numbered then t.cell = t.cell + 2 + #tostring(t.family.count - 1) end
  if t.drawing.rank then t.cell = t.cell + 1 end -- a mark before a rank
  t.label = second and widest(second) + 1 or 0
  local room = t.drawing.columns - INDENT - t.label - 1
  if t.cell < head + 1 and n0 * (head + 2) <= room then t.cell = head + 1 end
  t.per = n0
  if n0 * (t.cell + 1) > room then -- divide the first level into rows; a row's label has its first coordinate
    t.label = t.label + head + 1
    room = t.drawing.columns - INDENT - t.label - 1
    t.per = 1
    while 2 * t.per * (t.cell + 1) <= room do t.per = t.per * 2 end
  end
  t.chunks = (n0 + t.per - 1) // t.per
  t.rows, t.keys = t.chunks * t.n1, {}
end

-- Drawing --------------------------------------------------------------------------

-- Return the colour of a group. On a machine: none if it crosses no level, yellow if it crosses one, red if more.
local function colour_of(t, group)
  if not t.part.machine then return 1 + group % 6 end
  local reach = t.part.machine:group_reach(t.family, group)
  return reach == 0 and 0 or reach == 1 and 3 or 1
end

local function write_rank(t, c, x, y, cell, own)
  local rank, group, chosen = t.part.ranks[cell + 1], t.family and t.group[cell + 1] or ALONE, t.drawing.rank
  if rank < 0 then return end
  local mine = chosen and (rank == chosen or group >= 0 and group == own)
  local mark = not chosen and "" or rank == chosen and ">" or mine and "*" or " "
  local style = group >= 0 and colour_of(t, group) or 0
  local text
  if t.numbered and group >= 0 then
    text = ("%s%d g%d"):format(mark, rank, group)
  else
    text = mark .. (" "):rep(t.digits - #tostring(rank)) .. rank .. (group == IDLE and " -" or "")
  end
  if mine then style = style | canvas.BOLD end
  if group == IDLE or chosen and not mine then style = style | canvas.FAINT end
  local blank = t.cell - #text
  c:put(x + ((t.numbered or chosen) and blank - 1 or (blank + 1) // 2), y, text, style)
end

-- Draw lines around and between ranks wherever the groups on the two sides differ.
local function draw_lines(t, c, x0, y0, box)
  local high, keys, width = t.open and 1 or 2, keys_of(t, box)
  for row = 0, t.rows do
    local y, edge = y0 + row * 2, not t.open or row == 0 or row == t.rows
    if t.open then y = y0 + (row == 0 and 0 or t.rows + 1) end
    for column = 0, t.per do
      local x, at = x0 + column * (t.cell + 1), row * width + column + 1
      local nw, ne, sw, se = keys[at], keys[at + 1], keys[at + width], keys[at + width + 1]
      if edge then
        c:line(x, y, (nw ~= ne and canvas.UP or 0) | (sw ~= se and canvas.DOWN or 0) | (nw ~= sw and canvas.LEFT or 0)
                     | (ne ~= se and canvas.RIGHT or 0))
        for i = 1, ne ~= se and t.cell or 0 do c:line(x + i, y, canvas.LEFT | canvas.RIGHT) end
      end
      if sw ~= se then c:line(x, y0 + 1 + row * high, canvas.UP | canvas.DOWN) end
    end
  end
end

-- Return the title of a box: its coordinates in the other dims, the slowest last.
local function title_of(part, box)
  local words = {}
  for k = 3, #part.levels do
    local level = part.levels[k]
    words[#words + 1] = level.name .. " " .. sheets.label(level, box % level.shown)
    box = box // level.shown
  end
  return table.concat(words, ", ")
end

local function draw_box(t, c, x0, y, box, own)
  local first, second = t.part.levels[1], t.part.levels[2]
  local x = x0 + t.label
  if #t.part.levels > 2 then
    c:put(x0, y, title_of(t.part, box), canvas.BOLD)
    y = y + 1
  end
  if t.chunks == 1 then -- names of the columns, or their numbers if names do not fit
    for column = 0, t.per - 1 do
      local text = (widest(first) <= t.cell and first.name .. " " or "") .. sheets.label(first, column)
      c:put(x + 1 + column * (t.cell + 1) + math.max(0, (t.cell - #text + 1) // 2), y, text, canvas.FAINT)
    end
    y = y + 1
  end
  draw_lines(t, c, x, y, box)
  for row = 0, t.rows - 1 do
    local line, label = y + 1 + row * (t.open and 1 or 2), {}
    if second and row % t.chunks == 0 then
      label[1] = second.name .. " " .. sheets.label(second, row // t.chunks) .. (t.chunks > 1 and "," or "")
    end
    if t.chunks > 1 then label[#label + 1] = first.name .. " " .. sheets.label(first, row % t.chunks * t.per) end
    local text = table.concat(label, " ")
    c:put(x - 1 - #text, line, text, canvas.FAINT)
    for column = 0, t.per - 1 do
      local cell = cell_at(t, box, row, column)
      if cell then write_rank(t, c, x + 1 + column * (t.cell + 1), line, cell, own) end
    end
  end
end

-- Return how many boxes to draw side by side: if they fit, all boxes of the third level once or several times.
local function abreast(t, width)
  local fit, third = math.max(1, (t.drawing.columns - INDENT + GAP) // (width + GAP)), t.part.levels[3]
  local n2 = third and third.shown or 1
  if fit >= n2 then return fit // n2 * n2 end
  while n2 % fit ~= 0 do fit = fit - 1 end
  return fit
end

local function draw_part(t, put)
  local d, own = t.drawing, IDLE
  if t.family and d.rank then own = t.family:locate(d.rank) or IDLE end
  local width, boxes = t.label + 1 + t.per * (t.cell + 1), boxes_of(t.part)
  local heads = (#t.part.levels > 2 and 1 or 0) + (t.chunks == 1 and 1 or 0)
  local height = heads + (t.open and t.rows + 2 or 2 * t.rows + 1)
  local side = math.min(boxes, abreast(t, width))
  for box = 0, boxes - 1, side do
    local c = canvas.new(INDENT + side * (width + GAP), height)
    for i = 0, math.min(side, boxes - box) - 1 do draw_box(t, c, INDENT + i * (width + GAP), 0, box + i, own) end
    c:write(d.unicode, d.color, put)
  end
end

-- Write which ranks a sampled sheet has.
local function say_sampled(d, sheet, put)
  local text = ("%d of %d ranks are drawn: %s"):format(sheet.cells, d.world, sheets.sampled_text(sheet))
  local line = (" "):rep(INDENT - 1)
  for word in text:gmatch "%S+" do
    if #line + 1 + #word > d.columns then
      put(line .. "\n")
      line = (" "):rep(2 * INDENT - 1)
    end
    line = line .. " " .. word
  end
  put(line .. "\n")
end

-- Return the parts of a sheet, ready to be drawn: with the groups of their cells, and whether lines can show these.
local function prepare(d, sheet, family)
  local all, found, different, seen = {}, 0, 0, {}
  for i, part in ipairs(sheet.parts) do
    local t = { drawing = d, part = part, family = family, group = {} }
    for k, rank in ipairs(family and part.ranks or {}) do
      local group = rank >= 0 and family:locate(rank) or IDLE
      t.group[k] = group
      if group >= 0 and not seen[group] then seen[group], different = true, different + 1 end
    end
    measure(t)
    if family then found = found + pieces(t) end
    all[i] = t
  end
  for _, t in ipairs(all) do
    t.numbered = found ~= different
    measure(t)
    t.open = rows_are_open(t)
  end
  return all
end

local function draw_sheet(d, sheet, family, put)
  for _, t in ipairs(prepare(d, sheet, family)) do
    if #sheet.parts > 1 then put((" "):rep(INDENT) .. t.part.name .. "\n") end
    draw_part(t, put)
  end
  if sheet.sampled then say_sampled(d, sheet, put) end
end

-- Covers ---------------------------------------------------------------------------

-- Write a rank in `columns` columns, and each of its groups on a line:
--  12 ──┬── 0 {0,12}
--       └── 3 {12,15}
local function list_groups(d, family, rank, columns, left, put)
  local dash, fork, tee, stop = "-", "+", "+", "+"
  if d.unicode then dash, fork, tee, stop = "─", "┬", "├", "└" end
  local head, all = (" "):rep(INDENT) .. ("%" .. columns .. "d"):format(rank), family:locate(rank, "all")
  if #all == 0 then return put(head .. "       -\n") end
  for nth, place in ipairs(all) do
    local more, group = nth < #all, place[1]
    local branch = nth == 1 and (" %s%s%s"):format(dash, dash, more and fork or dash) or "   " .. (more and tee or stop)
    put(("%s%s%s%s %d %s\n"):format(head, branch, dash, dash, group, groups.one(family, group, left)))
    head = (" "):rep(INDENT + columns)
  end
end

-- Write each rank, or only the rank of the drawing, with its groups in a cover.
local function list_cover(d, sheet, family, put)
  local digits = #tostring(d.world - 1)
  local columns = math.max(4, digits)
  put((" "):rep(INDENT) .. ("%" .. columns .. "s"):format("rank") .. "       groups\n")
  for _, part in ipairs(sheet.parts) do
    for _, rank in ipairs(part.ranks) do
      if rank >= 0 and (not d.rank or rank == d.rank) then
        list_groups(d, family, rank, columns, d.columns - digits - 20, put)
      end
    end
  end
end

-- All --------------------------------------------------------------------------------

local function draw_family(d, entry, sheet, put)
  local family, name = entry.family, d.color and "\27[1m" .. entry.name .. "\27[0m" or entry.name
  local said = d.machine and d.machine:crossings(family) or ""
  if d.rank and not family:locate(d.rank) then said = said .. ("; rank %d is in none"):format(d.rank) end
  put(("%s: %s%s\n"):format(name, groups.count(family), said))
  if family.coverage == "cover" then return list_cover(d, sheet, family, put) end
  draw_sheet(d, sheet, family, put)
end

local function list_families(d, put)
  local width = 0
  for _, entry in ipairs(d.entries) do width = math.max(width, #entry.name) end
  for _, entry in ipairs(d.entries) do
    local said = entry.same and "the same groups as " .. entry.same
                 or groups.all(entry.family, d.columns - INDENT - width - 2)
    put(("%s%-" .. width .. "s  %s\n"):format((" "):rep(INDENT), entry.name, said))
  end
end

-- Write a drawing (drawing.lua) to a sink: the chosen families; or if none is chosen, the sheets, and below them a list
-- of the groups of all families. `most` is the largest number of ranks to draw of a sheet; nil: the limits of
-- sheet.lua.
return function(d, put, most)
  local all, of = sheets.make(d, most)
  for i, entry in ipairs(d.chosen) do
    if i > 1 then put "\n" end
    draw_family(d, entry, of[entry.name], put)
  end
  if #d.chosen > 0 then return end
  for _, sheet in ipairs(all) do
    local name = sheet.parts[1].name
    if #all > 1 and #sheet.parts == 1 then put((" "):rep(INDENT) .. (name ~= "" and name or "ranks") .. "\n") end
    draw_sheet(d, sheet, nil, put)
    put "\n"
  end
  list_families(d, put)
end
