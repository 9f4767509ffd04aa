-- SPDX-License-Identifier: MIT
--
-- pictures: the module `moongrid.pictures`: it writes plans as text, as SVG, as a page, or in words. A sink is a
-- function that gets the output piece by piece.

local drawing = require "pictures.drawing"

local M = {}

-- Pass the output of `write`, a function of a sink, to the sink `put`; or if that is nil, return the output.
local function gather(put, write)
  local pieces = {}
  write(put or function(piece) pieces[#pieces + 1] = piece end)
  return not put and table.concat(pieces) or nil
end

local function draw(how, plan, options, put)
  options = options or {}
  return gather(put, function(sink) require("pictures." .. how)(drawing(plan, options), sink, options.most) end)
end

function M.text(plan, options, put) return draw("boxes", plan, options, put) end
function M.svg(plan, options, put) return draw("svg", plan, options, put) end

function M.explain(plan, options, put)
  return gather(put, function(sink) require "pictures.explain"(plan, options or {}, sink) end)
end

function M.page(page, put) require "pictures.page"(page, put) end

return M
