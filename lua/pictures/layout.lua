-- SPDX-License-Identifier: MIT
--
-- layout: place the cells of a sheet's part (sheet.lua) in an SVG. Rows and columns of ranks make tiles; tiles are
-- beside or below each other, so that the picture has about the shape of a page. Lengths are pixels.

local M = {}

local SHAPE = 1.5 -- width to height: a page in landscape
local SHORT, ROW, COLUMN, TITLE, PAD = 12, 32, 48, 15, 5

-- Return how many of n boxes of width x height to put in a row, so that all boxes together have about the shape SHAPE.
-- A number that leaves the last row partly empty is chosen only if its shape is much better.
local function side_by_side(n, width, height)
  local best, least = 1, math.huge
  for per = 1, n do
    local rows = (n + per - 1) // per
    local off = math.abs(math.log(per * width / (rows * height) / SHAPE)) + (n % per ~= 0 and 0.4 or 0)
    if off < least then least, best = off, per end
  end
  return best
end

local function text_width(level, font)
  return font * 0.58 * (#level.name + 1 + #tostring(level.base + level.size - 1))
end

-- Return the space between the boxes of a level, which grows from the inner to the outer levels.
function M.gap(l, level) return 8.0 + 6 * (level - l.tile - 1) end

-- Lay out a part of a sheet that has `cells` cells in all its parts. A layout has
--   part, cell_width, cell_height, font, width, height
--   tile    the number of levels of a tile: 1 or 2
--   frame   for each level: per, the number of entries in a row; dx and dy, the distances to the next entry of a row
--           and to the next row; x and y of the first entry; width and height of all entries, with x and y
function M.make(part, cells)
  local levels = part.levels
  local first, second = levels[1], levels[2]
  local many, l = cells > 512, { part = part, frame = {} }
  l.font = cells <= 64 and 12 or many and 9 or 11
  l.cell_width = l.font * 0.6 * #tostring(part.last) + l.font * (many and 0.9 or 1.6)
  if cells <= 64 then l.cell_width = math.max(38.0, l.cell_width) end
  l.cell_height = l.font * (cells <= 64 and 2.2 or many and 1.6 or 1.9)
  l.tile = not part.machine and second and first.shown <= ROW and second.shown <= COLUMN and 2 or 1

  local function put(k, per, dx, dy, x, y, gap)
    local rows = (levels[k].shown + per - 1) // per
    l.frame[k] = { per = per, dx = dx, dy = dy, x = x, y = y, width = x + per * dx - gap, height = y + rows * dy - gap }
  end
  if l.tile == 1 and first.shown > SHORT then -- a row would be too long: break it
    put(1, side_by_side(first.shown, l.cell_width, l.cell_height), l.cell_width, l.cell_height,
        text_width(first, 9) + PAD, 0, 0)
  else
    put(1, first.shown, l.cell_width, l.cell_height, 0, l.tile == 1 and TITLE or 0, 0)
  end
  if l.tile == 2 then put(2, 1, l.frame[1].width, l.cell_height, text_width(second, 9) + PAD, TITLE, 0) end
  for k = l.tile + 1, #levels do
    local inside, gap = l.frame[k - 1], M.gap(l, k)
    local width = math.max(inside.width, text_width(levels[k], 10) + PAD) + 2 * PAD
    local height = inside.height + TITLE + 2 * PAD
    put(k, side_by_side(levels[k].shown, width + gap, height + gap), width + gap, height + gap, 0, 0, gap)
  end
  l.width, l.height = l.frame[#levels].width, l.frame[#levels].height
  return l
end

-- Return x and y of an entry of a level, its upper left corner. index[k] is its index at level k, for k >= level.
function M.at(l, level, index)
  local x, y = 0.0, 0.0
  for k = #l.part.levels, level, -1 do
    local f = l.frame[k]
    x, y = x + (f.x + index[k] % f.per * f.dx), y + (f.y + index[k] // f.per * f.dy)
    if k > l.tile and k > level then x, y = x + PAD, y + TITLE + PAD end -- below the title of the box
  end
  return x, y
end

return M
