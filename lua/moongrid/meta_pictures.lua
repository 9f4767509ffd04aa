---@meta moongrid
-- SPDX-License-Identifier: MIT
--
-- Annotations of pictures. meta.lua has the rest.

---Draw plans. A sink gets the picture piece by piece; without one it is returned as one string. Unknown options, and values
---that do not fit, raise. Local.
---@class moongrid.Pictures
local Pictures = {} -- luacheck: ignore

---@class moongrid.PictureOptions
---@field families? string[] these families alone, in this order; in text lines go between their groups
---@field all? boolean without `families`: every family, but those with the groups of another; else text has the grids, with
---all groups below, and SVG no panels
---@field rank? integer 0 to world - 1, whose groups stand out
---@field machine? moongrid.MachineModel draw ranks where they run
---@field columns? integer width of text, 1 or more; 80
---@field unicode? boolean lines of boxes, not of ASCII
---@field color? boolean colours of a terminal
---@field most? integer ranks of a grid that text draws, 1 or more; 4096

---@param plan moongrid.Plan
---@param options? moongrid.PictureOptions
---@param sink? fun(piece: string)
---@return string?
function Pictures.text(plan, options, sink) end

---@param plan moongrid.Plan
---@param options? moongrid.PictureOptions
---@param sink? fun(piece: string)
---@return string?
function Pictures.svg(plan, options, sink) end

---Explain how families were made: their rule, the lines of the recipe where it was loaded with `lines`, what shares
---communicators, what they cost.
---@param plan moongrid.Plan
---@param options? { families?: string[], columns?: integer, read?: fun(file: string): string? } read: the text of a recipe's file
---@param sink? fun(piece: string)
---@return string?
function Pictures.explain(plan, options, sink) end

---Write a page of HTML that needs no network, for each choice of values a plan, or the text of why there is none; the last
---axis varies fastest. Of worlds above 4096 ranks it draws a part.
---@param page { recipe: string, axes?: { name: string, values: string[] }[], frames: (moongrid.Plan|string)[], machine?: fun(plan: moongrid.Plan): moongrid.MachineModel? }
---@param sink fun(piece: string)
function Pictures.page(page, sink) end
