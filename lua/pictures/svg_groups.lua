-- SPDX-License-Identifier: MIT
--
-- svg_groups: draw the groups of a family on a sheet: cells of one colour and pattern, cut into parts if a rank is in
-- several groups. Pairs that share ranks are arrows.

local groups = require "pictures.groups"
local svg = require "pictures.svg_base"

local TITLED = 256 -- the groups of a family with more groups have no <title>
local MANY = 256   -- the arrows of a family with more groups are faint

-- Return the outline of a cell as a path.
local function outline(v, spot)
  if not spot.outline then
    local w, h = v.cell_width - 1.5, v.cell_height - 1.5
    spot.outline = ("M%.1f,%.1fh%.1fv%.1fh%.1fz"):format(spot.x + 0.75, spot.y + 0.75, w, h, -w)
  end
  return spot.outline
end

-- Return the outline of part i of n of a cell.
local function part_of(v, spot, i, n)
  if n == 1 then return outline(v, spot) end
  local w, h = (v.cell_width - 1.5) / n, v.cell_height - 1.5
  return ("M%.1f,%.1fh%.1fv%.1fh%.1fz"):format(spot.x + 0.75 + (i - 1) * w, spot.y + 0.75, w, h, -w)
end

local function put_cells(look, outlines, put) put("<path " .. look .. ' d="' .. table.concat(outlines) .. '"/>\n') end

-- Colours --------------------------------------------------------------------------

local function put_group(d, entry, class, group, outlines, put)
  local family, reach = entry.family, d.machine and d.machine:group_reach(entry.family, group) or 1
  local fill = reach > 0 and svg.fill(group) or 'fill="#e4e7ec" '
  local edge = reach > 1 and 'stroke="#b00020" stroke-width="2" ' or ""
  put("<path " .. class .. fill .. edge .. 'd="' .. table.concat(outlines))
  if family.count > TITLED then return put '"/>\n' end
  put(('"><title>%s %d: %s</title></path>\n'):format(entry.name, group, groups.one(family, group, 120)))
end

-- Return the groups of a rank: { group = true }.
local function groups_of(family, rank)
  local all = {}
  for _, place in ipairs(rank and family:locate(rank, "all") or {}) do all[place[1]] = true end
  return all
end

-- Draw the cells sorted by their groups, first those without a group.
local function put_groups(v, d, entry, put)
  local family = entry.family
  local own, idle, by_group, order = groups_of(family, d.rank), {}, {}, {}
  for _, spot in ipairs(v.by_rank) do
    local places = family:locate(spot.rank, "all")
    if not places[1] then idle[#idle + 1] = outline(v, spot) end
    for i, place in ipairs(places) do
      local list = by_group[place[1]]
      if not list then
        list = {}
        by_group[place[1]], order[#order + 1] = list, place[1]
      end
      list[#list + 1] = part_of(v, spot, i, #places)
    end
  end
  table.sort(order)
  if #idle > 0 then put_cells('class="idle"', idle, put) end
  for _, group in ipairs(order) do
    if own[group] then -- highlight it by a shadow and a dark edge
      put_cells('class="shadow" transform="translate(2.5,2.5)"', by_group[group], put)
    end
    local class = own[group] and 'class="raised" ' or d.rank and 'class="back" ' or ""
    put_group(d, entry, class, group, by_group[group], put)
  end
end

-- Arrows ---------------------------------------------------------------------------

-- Draw a bent arrow from one cell to another. It is left of the straight line, beside the numbers, so that the arrows
-- of the two directions do not cover each other.
local function put_arrow(v, a, b, class, colour, put)
  local w, h = v.cell_width, v.cell_height
  local dx, dy = b.x - a.x, b.y - a.y
  local length = math.sqrt(dx * dx + dy * dy)
  if length < 1 then return end
  local nx, ny = dy / length, -dx / length -- perpendicular to the straight line
  local x0, y0 = a.x + w / 2 + nx * w * 0.33, a.y + h / 2 + ny * h * 0.34
  local x1, y1 = b.x + w / 2 + nx * w * 0.33, b.y + h / 2 + ny * h * 0.34
  local bend = 3 + 0.08 * length
  local cx, cy = (x0 + x1) / 2 + nx * bend, (y0 + y1) / 2 + ny * bend
  local ux, uy = x1 - cx, y1 - cy -- the direction at its end
  local u = math.sqrt(ux * ux + uy * uy)
  ux, uy = ux / u, uy / u
  put(('<path class="%s" stroke="%s" fill="none" d="M%.1f,%.1fQ%.1f,%.1f %.1f,%.1f"/>\n')
    :format(class, colour, x0, y0, cx, cy, x1 - ux * 5, y1 - uy * 5))
  put(('<path class="%s" fill="%s" d="M%.1f,%.1fL%.1f,%.1fL%.1f,%.1fz"/>\n')
    :format(class, colour, x1, y1, x1 - ux * 7 - uy * 3.5, y1 - uy * 7 + ux * 3.5, x1 - ux * 7 + uy * 3.5,
            y1 - uy * 7 - ux * 3.5))
end

-- Return whether an arrow passes several cells.
local function is_far(v, a, b)
  return math.abs(a.x - b.x) > 4 * v.cell_width or math.abs(a.y - b.y) > 4 * v.cell_height
end

local function put_arrows(v, d, entry, put)
  local family, own, spot_of = entry.family, groups_of(entry.family, d.rank), {}
  local usual = (d.rank or family.count > MANY) and "arrow back" or "arrow"
  local outlines = {}
  for i, spot in ipairs(v.spots) do outlines[i] = outline(v, spot) end
  put_cells('fill="#e4e7ec"', outlines, put)
  for _, spot in ipairs(v.spots) do spot_of[spot.rank] = spot end
  for _, spot in ipairs(v.by_rank) do
    for _, place in ipairs(family:locate(spot.rank, "all")) do
      local group, position = place[1], place[2]
      local _, size = family:member(group, 0)
      local after = position + 1 < size and spot_of[family:member(group, position + 1)]
      if after then
        local class = own[group] and "arrow own" or is_far(v, spot, after) and "arrow back" or usual
        local inside = d.machine and d.machine:reach(spot.rank, after.rank) == 0
        put_arrow(v, spot, after, class, inside and "#8a93a0" or svg.ink(group), put)
      end
    end
  end
end

-- Write the groups of a family, between the frames and the numbers of its sheet. The groups of the drawing's rank are
-- highlighted.
return function(v, d, entry, put)
  if not v.by_rank then
    v.by_rank = table.move(v.spots, 1, #v.spots, 1, {})
    table.sort(v.by_rank, function(a, b) return a.rank < b.rank end)
  end
  local draw = groups.are_arrows(entry.family) and put_arrows or put_groups
  draw(v, d, entry, put)
  for _, spot in ipairs(d.rank and v.spots or {}) do -- a thick frame around the rank
    if spot.rank == d.rank then put_cells('class="chosen"', { outline(v, spot) }, put) end
  end
end
