-- SPDX-License-Identifier: MIT
--
-- svg_sheet: draw a sheet in an SVG: its parts side by side, labels and boxes around tiles, and the numbers of ranks.

local layout = require "pictures.layout"
local sheets = require "pictures.sheet"
local svg = require "pictures.svg_base"

local M = {}

local PARTS_GAP, PART_HEAD = 28, 18

-- Lay out a sheet. `spots` lists the cells with a rank, { rank, x, y, part }: x and y of the cell's upper left corner,
-- and the layout of its part.
function M.lay(sheet)
  local v = { sheet = sheet, number = sheet.number, parts = {}, top = #sheet.parts > 1 and PART_HEAD or 0, spots = {} }
  local right, height = 0, 0
  for i, part in ipairs(sheet.parts) do
    local l = layout.make(part, sheet.cells)
    l.left, v.parts[i] = right, l
    right, height = right + l.width + PARTS_GAP, math.max(height, l.height)
    for cell = 0, part.cells - 1 do
      local rank = part.ranks[cell + 1]
      if rank >= 0 then
        local x, y = layout.at(l, 1, sheets.index(part, cell))
        v.spots[#v.spots + 1] = { rank = rank, x = x + l.left, y = y + v.top, part = l }
      end
    end
  end
  v.width, v.height = right - PARTS_GAP, height + v.top
  v.cell_width, v.cell_height, v.font = v.parts[1].cell_width, v.parts[1].cell_height, v.parts[1].font
  return v
end

local function named(name, n) return name ~= "" and name .. " " .. n or tostring(n) end

-- Write the labels and frames of the tile and of the boxes that start at a cell, the outermost first.
local function put_frames(v, l, cell, put)
  local part, index = l.part, sheets.index(l.part, cell)
  local inside = part.cells
  for k = #part.levels, 1, -1 do
    local level, f = part.levels[k], l.frame[k]
    inside = inside // level.shown -- cells in an entry of this level
    if cell % inside == 0 then
      local coord, x, y = sheets.label(level, index[k]), layout.at(l, k, index)
      x, y = x + l.left, y + v.top
      if k > l.tile and k > 1 then
        local gap = layout.gap(l, k)
        put(('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="4" class="box"/>\n')
          :format(x, y, f.dx - gap, f.dy - gap))
        put(svg.text(x + 6, y + 12, "tile", named(level.name, coord)))
      elseif k == 2 or f.per < level.shown and index[1] % f.per == 0 then
        put(svg.text(x - 5, y + l.cell_height / 2 + 3, "row", named(level.name, coord)))
      elseif k == 1 and f.per == level.shown and (l.tile == 1 or index[2] == 0) then
        local fits = l.font * 0.55 * (#level.name + 3) < l.cell_width
        put(svg.text(x + l.cell_width / 2, y - 4, "column", named(fits and level.name or "", coord)))
      end
    end
  end
end

-- Return whether a cell is in neither the first row nor the first column of a tile, so that it has no label.
local function is_plain(l, cell)
  local first, second = l.part.levels[1], l.part.levels[2]
  return l.tile == 2 and l.frame[1].per == first.shown and cell % first.shown > 0
         and cell // first.shown % second.shown > 0
end

-- Write the common parts of all panels of a sheet: #framesN has labels and boxes, #ranksN the numbers of ranks.
function M.put(v, put)
  put(('<g id="frames%d">\n'):format(v.number))
  for _, l in ipairs(v.parts) do
    if #v.parts > 1 then put(svg.text(l.left, 11, "part", l.part.name)) end
    for cell = 0, l.part.cells - 1 do
      if not is_plain(l, cell) then put_frames(v, l, cell, put) end
    end
  end
  put(('</g>\n<g id="ranks%d" class="rank" font-size="%g">\n'):format(v.number, v.font))
  for _, spot in ipairs(v.spots) do
    local l = spot.part
    put(('<text x="%.1f" y="%.1f">%d</text>\n')
      :format(spot.x + l.cell_width / 2, spot.y + l.cell_height / 2 + l.font * 0.36, spot.rank))
  end
  put "</g>\n"
end

return M
