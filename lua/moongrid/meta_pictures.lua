---@meta moongrid
-- SPDX-License-Identifier: MIT
--
-- Annotations of pictures. meta.lua says which file has the other annotations.

---Functions that draw plans. If you pass a function `sink`, it gets the picture piece by piece, and the result is nil;
---else the picture is returned as one string. Unknown options and wrong values raise. Local.
---@class moongrid.Pictures
local Pictures = {} -- luacheck: ignore

---@class moongrid.PictureOptions
---@field families? string[] draw only these families, in this order; a text has lines between their groups
---@field all? boolean without `families`: draw every family, except families with the groups of another one. If `all` is false, a
---text has the grids and a list of all groups, and SVG has no panels
---@field rank? integer the rank whose groups are highlighted, 0 to world - 1
---@field machine? moongrid.MachineModel draw ranks where they run
---@field columns? integer width of a text, 1 or more (80)
---@field unicode? boolean draw lines with box characters instead of ASCII
---@field color? boolean use the colours of a terminal
---@field most? integer of a grid with more ranks than this a text draws only a part, 1 or more (4096)

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
---with which these families share communicators, and their cost.
---@param plan moongrid.Plan
---@param options? { families?: string[], columns?: integer, read?: fun(file: string): string? } read: returns the text of a recipe's file
---@param sink? fun(piece: string)
---@return string?
function Pictures.explain(plan, options, sink) end

---Write a page of HTML that needs no network. `axes` are the parameters that the reader of the page can change.
---`frames` has for each combination of their values, with the last axis fastest, a plan or the message that refuses it.
---Of a world above 4096 ranks the page draws only a part.
---@param page { recipe: string, axes?: { name: string, values: string[] }[], frames: (moongrid.Plan|string)[], machine?: fun(plan: moongrid.Plan): moongrid.MachineModel? }
---@param sink fun(piece: string)
function Pictures.page(page, sink) end
