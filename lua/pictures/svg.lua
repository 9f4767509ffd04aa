-- SPDX-License-Identifier: MIT
--
-- svg: write a plan as SVG 1.1, with a panel for each chosen family. The ranks of a group have one colour and pattern;
-- pairs that share ranks are arrows. The numbers, labels and frames of a sheet are written once and used by all its
-- panels, to keep the file small. The file has no script, and texts of users are escaped. Lengths are pixels.

local groups = require "pictures.groups"
local put_groups = require "pictures.svg_groups"
local sheets = require "pictures.sheet"
local svg = require "pictures.svg_base"
local svg_sheet = require "pictures.svg_sheet"
local words = require "pictures.words"

local MARGIN = 24         -- around the picture
local HEAD = 40           -- height of a panel's name and caption, above its sheet
local BETWEEN = 36        -- between panels
local PAGE, LEAST = 1180, 520 -- greatest width of a row of several panels; least width of a picture

-- Return the groups of a rank as "; rank 2: position 1 of group 0, 0 of group 1".
local function own_groups(family, rank)
  local all, list, shown = family:locate(rank, "all"), {}, 4
  for i = 1, math.min(#all, shown) do list[i] = ("%d of group %d"):format(all[i][2], all[i][1]) end
  if #all == 0 then return ("; rank %d is in none"):format(rank) end
  return ("; rank %d: position %s%s"):format(rank, table.concat(list, ", "),
                                             #all > shown and (" and %d more"):format(#all - shown) or "")
end

local function caption(d, entry)
  local family, said = entry.family, groups.count(entry.family)
  if family.coverage == "cover" then said = said .. " that share ranks" end
  if family.largest < 2 then
    said = said .. ", no communicator"
  elseif entry.shares then
    said = said .. ", shared with " .. entry.shares
  end
  return said .. (d.machine and d.machine:crossings(family) or "") .. (d.rank and own_groups(family, d.rank) or "")
end

-- Return lines with the names of the families that have the same groups and no panel. `width` is in pixels.
local function also(d, entry, width)
  local drawn, lines = {}, {}
  for _, chosen in ipairs(d.chosen) do drawn[chosen.name] = true end
  for _, other in ipairs(d.entries) do
    local same = (other.same or other.name) == (entry.same or entry.name)
    if same and not drawn[other.name] then
      local joint = lines[1] and ", " or ""
      lines[1] = lines[1] or "also "
      words.wrap(lines, joint, other.name, width // 6)
    end
  end
  return lines
end

-- Make a panel for each chosen family. The panel's text may be wider than its sheet.
local function make_panels(d, of, laid)
  local panels = {}
  for i, entry in ipairs(d.chosen) do
    local sheet, said = laid[of[entry.name]], caption(d, entry)
    local width = math.max(sheet.width, #entry.name * 8.5, #said * 6.0)
    panels[i] = { entry = entry, sheet = sheet, caption = said, width = width, also = also(d, entry, width) }
  end
  return panels
end

-- Put panels into rows. A row has the numbers of its first and last panel; its width; `head`, the greatest height of
-- the text above a sheet, so that all sheets of the row begin at one height; and `high`, the greatest height of a
-- sheet.
local function make_rows(panels)
  local rows, row = {}, nil
  for i, panel in ipairs(panels) do
    if row and row.width + BETWEEN + panel.width > PAGE then row = nil end
    if not row then
      row = { first = i, width = -BETWEEN, head = 0, high = 0 }
      rows[#rows + 1] = row
    end
    row.last, row.width = i, row.width + BETWEEN + panel.width
    row.head, row.high = math.max(row.head, HEAD + 14 * #panel.also), math.max(row.high, panel.sheet.height)
  end
  return rows
end

local function put_panel(d, panel, x, y, head, put)
  put(('<g transform="translate(%.1f,%.1f)">\n'):format(x, y))
  put(svg.text(0, 0, "family", panel.entry.name))
  put(svg.text(0, 15, "caption", panel.caption))
  svg.lines(0, 29, 14, "caption", panel.also, put)
  put(('<g transform="translate(0,%.1f)">\n<use xlink:href="#frames%d"/>\n'):format(head - 12, panel.sheet.number))
  put_groups(panel.sheet, d, panel.entry, put)
  put(('<use xlink:href="#ranks%d"/>\n</g>\n</g>\n'):format(panel.sheet.number))
end

-- Return a text that explains how to read the panels.
local function reading(d, all, columns)
  local lines = {}
  local function say(text) words.wrap(lines, " ", text, columns) end
  if d.machine then
    say "A box is a rank, where it runs; dashed: in no group."
    say "Grey groups cross no domain; the others have a colour and pattern,"
    say "with a red edge if they cross more than the nearest ones."
  else
    say "A box is a rank. The ranks of a group have one colour and pattern; dashed: in no group."
  end
  local arrows, parts, again = false, false, false
  for _, entry in ipairs(d.chosen) do
    local family, arrow = entry.family, groups.are_arrows(entry.family)
    arrows, parts = arrows or arrow, parts or not arrow and family.coverage == "cover"
    again = again or not arrow and family.count > svg.LOOKS
  end
  if again then say "After 40 groups their looks come again." end
  if parts then say "A rank of several groups has a part in the colour of each." end
  if arrows then say "An arrow goes from a member of a group to the next." end
  if d.rank then say(("The thick frame is rank %d."):format(d.rank)) end
  local dims = sheets.dims_text(all)
  if dims then say(dims) end
  for _, sheet in ipairs(all) do
    if sheet.sampled then
      say(("Only %d of %d ranks are drawn: %s."):format(sheet.cells, d.world, sheets.sampled_text(sheet)))
      break
    end
  end
  return lines
end

-- Write a drawing (drawing.lua) to a sink.
return function(d, put)
  local all, of = sheets.make(d)
  local laid = {}
  for _, sheet in ipairs(all) do laid[sheet] = svg_sheet.lay(sheet) end
  local panels = make_panels(d, of, laid)
  local rows = make_rows(panels)
  local title = ("%s over %d rank%s"):format(d.plan.recipe ~= "" and d.plan.recipe or "plan", d.world,
                                             d.world == 1 and "" or "s")
  local width = math.max(LEAST, 10.5 * (#d.plan.recipe + 24))
  for _, row in ipairs(rows) do width = math.max(width, row.width) end
  local columns, given = width // 6, {}
  for _, text in ipairs(words.given(d.plan)) do words.wrap(given, "  ", text, columns) end
  local notes = reading(d, all, columns)
  -- Write the lines of text, then the rows of panels.
  local top = MARGIN + 14
  local notes_at = top + 16 * #given + 17
  local y = notes_at + 16 * (#notes - 1) + 23
  local bottom = 0
  for _, row in ipairs(rows) do
    row.y, bottom = y, y + row.head + row.high
    y = bottom + BETWEEN
  end
  svg.open(width + 2 * MARGIN, bottom + MARGIN, put)
  put "<defs>\n"
  svg.style(put)
  for _, sheet in ipairs(all) do svg_sheet.put(laid[sheet], put) end
  put '</defs>\n<rect width="100%" height="100%" rx="8" fill="#ffffff"/>\n'
  put(svg.text(MARGIN, top, "title", title))
  svg.lines(MARGIN, top + 16, 16, "note", given, put)
  svg.lines(MARGIN, notes_at, 16, "note", notes, put)
  for _, row in ipairs(rows) do
    local x = MARGIN
    for i = row.first, row.last do
      put_panel(d, panels[i], x, row.y + 14, row.head, put)
      x = x + panels[i].width + BETWEEN
    end
  end
  put "</svg>\n"
end
