-- SPDX-License-Identifier: MIT
--
-- canvas: a rectangle of characters to draw on: ASCII text with a style, and lines. A text must not overlap another
-- text or a line, and must not end with a blank.

-- A style is a colour from 1 to 6, or 0, to which BOLD and FAINT may be added. The other four are the arms of lines.
local M = { BOLD = 64, FAINT = 128, UP = 1, DOWN = 2, LEFT = 4, RIGHT = 8 }

local LINES = { [0] = " ", "│", "│", "│", "─", "┘", "┐", "┤", -- index: the sum of the arms
                "─", "└", "┌", "├", "─", "┴", "┬", "┼" }

local Canvas = {}
Canvas.__index = Canvas

function M.new(width, height)
  return setmetatable({ width = width, height = height, what = {}, style = {} }, Canvas)
end

-- Write text at (x, y). What is below or to the right of the canvas is left out.
function Canvas:put(x, y, text, style)
  if y >= self.height or text == "" then return end
  local at = y * self.width + x
  self.what[at], self.style[at] = text:sub(1, self.width - x), style
end

-- Add arms of lines (UP, DOWN, LEFT, RIGHT) to a character.
function Canvas:line(x, y, arms)
  local at = y * self.width + x
  if arms ~= 0 then self.what[at] = (self.what[at] or 0) | arms end
end

local function line_of(arms, unicode)
  if unicode then return LINES[arms] end
  local across, down = arms & (M.LEFT | M.RIGHT) ~= 0, arms & (M.UP | M.DOWN) ~= 0
  return across and down and "+" or across and "-" or "|"
end

local function style_text(style)
  return "\27[0" .. (style & M.BOLD ~= 0 and ";1" or "") .. (style & M.FAINT ~= 0 and ";2" or "")
         .. (style % 8 ~= 0 and ";" .. 30 + style % 8 or "") .. "m"
end

-- Write the lines, without trailing blanks.
function Canvas:write(unicode, color, put)
  local all, styles = self.what, self.style
  for y = 0, self.height - 1 do
    local line, n, style, at, last = {}, 0, 0, y * self.width, (y + 1) * self.width - 1
    while last >= at and not all[last] do last = last - 1 end
    while at <= last do
      local what = all[at]
      if color and (styles[at] or 0) ~= style then
        style, n = styles[at] or 0, n + 1
        line[n] = style_text(style)
      end
      n = n + 1
      if type(what) == "string" then
        line[n], at = what, at + #what
      else
        line[n], at = what and line_of(what, unicode) or " ", at + 1
      end
    end
    if style ~= 0 then line[#line + 1] = style_text(0) end
    line[#line + 1] = "\n"
    put(table.concat(line))
  end
end

return M
