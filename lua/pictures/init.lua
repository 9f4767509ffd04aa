-- SPDX-License-Identifier: MIT
--
-- pictures: what `moongrid.pictures` is: plans as text, as SVG, as a page. A sink gets the picture piece by piece.

local drawing = require "pictures.drawing"

local M = {}

-- Return a picture of a plan, or give it to a sink.
local function draw(how, plan, options, put)
  local pieces = {}
  require("pictures." .. how)(drawing(plan, options or {}), put or function(piece) pieces[#pieces + 1] = piece end,
                              (options or {}).most)
  return not put and table.concat(pieces) or nil
end

function M.text(plan, options, put) return draw("text", plan, options, put) end
function M.svg(plan, options, put) return draw("svg", plan, options, put) end

function M.page(page, put) require "pictures.page"(page, put) end

return M
