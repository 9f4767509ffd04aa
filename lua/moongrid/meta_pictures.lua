---@meta moongrid
-- SPDX-License-Identifier: MIT
--
-- Annotations of pictures. meta.lua has the rest.

---Draw plans. A sink is a function that gets the picture piece by piece; without a sink the picture is returned as one
---string. Unknown options and wrong values raise. Local.
---@class moongrid.Pictures
local Pictures = {} -- luacheck: ignore

---@class moongrid.PictureOptions
---@field families? string[] draw only these families, in this order; in text, lines separate their groups
---@field all? boolean without `families`: draw every family, except those with the groups of another one; otherwise text has
---the grids, with all groups below, and SVG has no panels
---@field rank? integer 0 to world - 1, whose groups are highlighted
---@field machine? moongrid.MachineModel draw ranks where they run
---@field columns? integer width of text, 1 or more; 80
---@field unicode? boolean draw lines with box characters instead of ASCII
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

---Explain how families were made: their rules, the lines of the recipe (if it was loaded with `lines`), the families
---with which they share communicators, and their cost.
---@param plan moongrid.Plan
---@param options? { families?: string[], columns?: integer, read?: fun(file: string): string? } read: the text of a recipe's file
---@param sink? fun(piece: string)
---@return string?
function Pictures.explain(plan, options, sink) end

---Write a page of HTML that needs no network. `frames` has, for each choice of values, the last axis fastest, a plan or
---the message that refuses it. Of worlds above 4096 ranks the page draws a part.
---@param page { recipe: string, axes?: { name: string, values: string[] }[], frames: (moongrid.Plan|string)[], machine?: fun(plan: moongrid.Plan): moongrid.MachineModel? }
---@param sink fun(piece: string)
function Pictures.page(page, sink) end
