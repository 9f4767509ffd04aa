-- SPDX-License-Identifier: MIT
--
-- Draw each family of a plan into a file of its own, FOLDER/FAMILY.svg, for documents that show families one by one:
--
--     lua5.4 examples/pictures/each.lua RECIPE WORLD FOLDER [NAME=VALUE ...]
--
-- A family with the same groups as an earlier family is left out.

local mg = require "moongrid"

local name, world, folder = table.unpack(arg)
assert(folder, "each.lua RECIPE WORLD FOLDER [NAME=VALUE ...]")
local plan = mg.load(name):plan(math.tointeger(tonumber(world)), { table.unpack(arg, 4) })

local drawn = {}
for _, family in ipairs(plan.families) do
  local new = true
  for _, other in ipairs(drawn) do new = new and plan:family(other) ~= plan:family(family) end
  if new then
    drawn[#drawn + 1] = family
    local file = assert(io.open(folder .. "/" .. family .. ".svg", "w"))
    mg.pictures.svg(plan, { families = { family } }, function(piece) file:write(piece) end)
    file:close()
    print(family)
  end
end
