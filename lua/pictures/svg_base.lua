-- SPDX-License-Identifier: MIT
--
-- svg_base: the common parts of every SVG: first line, style sheet, text, and the colours and patterns of groups.

local words = require "pictures.words"

local M = { LOOKS = 40 } -- combinations of a colour and a pattern: groups 0 to 39 all look different

-- Light colours that differ in lightness or between blue and yellow, so that colour-blind people can tell them apart
-- (after Paul Tol's light scheme). Black text on each has a contrast above 9 to 1. The darker ones are for arrows.
local LIGHT = { [0] = "#8db8e3", "#f3b08f", "#eedd88", "#7fd1b9", "#f7b6c6", "#a8e2f5", "#cdd46a", "#c9b7e4" }
local DARK = { [0] = "#0b5394", "#b45309", "#7a6000", "#00664f", "#a8244f", "#00708f", "#5f6a00", "#5b3a9b" }
-- Lines and dots over a colour, faint enough to read numbers on.
local PATTERN = { [0] = "", '<path d="M-2,2l4,-4M0,8l8,-8M6,10l4,-4"/>', '<path d="M0,2h8M0,6h8"/>',
                  '<path d="M-2,6l4,4M0,0l8,8M6,-2l4,4"/>',
                  '<path d="M1,1h2v2h-2zM5,5h2v2h-2z" fill="#000" stroke="none"/>' }

local STYLE = table.concat({
  '<style type="text/css">',
  "text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;fill:#1b1f24}",
  '.title{font-size:18px;font-weight:bold}.note{font-size:11px;fill:#4b5563}',
  '.family{font-size:14px;font-weight:bold}.caption{font-size:11px;fill:#4b5563}',
  '.part{font-size:12px;font-weight:bold;fill:#374151}',
  '.tile{font-size:10px;font-weight:bold;fill:#374151}',
  '.row{font-size:9px;fill:#4b5563;text-anchor:end}.column{font-size:9px;fill:#4b5563;text-anchor:middle}',
  '.rank text{text-anchor:middle}',
  '.box{fill:#f6f7f9;stroke:#c3c9d2;stroke-width:1}',
  '.idle{fill:#ffffff;stroke:#c3c9d2;stroke-dasharray:2,2}',
  '.back{opacity:.38}.raised{stroke:#111111;stroke-width:1.6}.shadow{fill:#000000;opacity:.28}',
  '.chosen{fill:none;stroke:#111111;stroke-width:3.2}',
  '.arrow{stroke-width:1.5}.own{stroke-width:2.6}',
  '</style>',
}, "\n") .. "\n"

-- Return the number of a group's colour and of its pattern. Consecutive groups differ in both.
local function colour(group) return (group + group // 8) % 8 end
local function pattern(group) return (2 * (group // 8 % 5) + colour(group)) % 5 end

-- Return the attribute that fills the cells of a group, and the colour of its arrows.
function M.fill(group) return ('fill="url(#c%dp%d)" '):format(colour(group), pattern(group)) end
function M.ink(group) return DARK[colour(group)] end

-- Write the lines before <defs>.
function M.open(width, height, put)
  put(('<?xml version="1.0" encoding="UTF-8"?>\n'
       .. '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" version="1.1" '
       .. 'width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f">\n'):format(width, height, width, height))
end

-- Return a text, which may be a user's, in a class of the style sheet.
function M.text(x, y, class, text)
  return ('<text x="%.1f" y="%.1f" class="%s">%s</text>\n'):format(x, y, class, words.xml(text))
end

-- Write lines below each other, from y on.
function M.lines(x, y, step, class, lines, put)
  for i, line in ipairs(lines) do put(M.text(x, y + (i - 1) * step, class, line)) end
end

-- Write the style sheet and the patterns of groups.
function M.style(put)
  put(STYLE)
  for i = 0, M.LOOKS - 1 do
    put(('<pattern id="c%dp%d" width="8" height="8" patternUnits="userSpaceOnUse">'
         .. '<rect width="8" height="8" fill="%s"/>'
         .. '<g stroke="#000" fill="none" stroke-opacity=".16" fill-opacity=".16">%s</g></pattern>\n')
      :format(i % 8, i // 8, LIGHT[i % 8], PATTERN[i // 8]))
  end
end

return M
