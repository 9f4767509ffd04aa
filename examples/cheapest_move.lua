-- SPDX-License-Identifier: MIT
--
-- A job must change its layout. Find the layout for which the busiest rank sends the fewest bytes of tensors.
--
--     lua5.4 examples/cheapest_move.lua RECIPE WORLD "tp=8" "tp=4 pp=2" "tp=2"      from tp=8 to one of the other two

local mg = require "moongrid"

local recipe_name, world = ...
assert(select("#", ...) > 3, "cheapest_move.lua RECIPE WORLD LAYOUT LAYOUT ...")
local recipe, best = mg.load(recipe_name), nil
local function plan(layout)
  local params = {}
  for word in layout:gmatch "%S+" do params[#params + 1] = word end
  return recipe:plan(math.tointeger(tonumber(world)), params)
end

local from = plan((select(3, ...)))
for i = 4, select("#", ...) do
  local layout = select(i, ...)
  local to = plan(layout)
  local _, all = mg.moves(from, to):sums()
  print(("%-20s %d bytes sent, %d by the busiest rank, in %s rounds"):format(layout, all.sent, all.max_send,
                                                                             all.rounds or "?"))
  for _, note in ipairs(to.notes) do print("  " .. note) end
  if not best or all.max_send < best.most then best = { layout = layout, most = all.max_send } end
end
print("cheapest: " .. best.layout)
