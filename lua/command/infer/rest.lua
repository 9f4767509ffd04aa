-- SPDX-License-Identifier: MIT
--
-- rest: what no recipe explains, as families, and as a recipe file.

local host = require "host"
local mg = require "moongrid"
local sorted = require "command.base.sorted"

local M = {}

-- Return the groups in families: those of one name, of those without a name the ones of one shape.
function M.families(groups)
  local families, by = {}, {}
  for _, group in ipairs(groups) do
    local steps = {}
    for i = 2, #group.ranks do steps[i - 1] = group.ranks[i] - group.ranks[i - 1] end
    local key = group.family ~= "" and "=" .. group.family or table.concat(steps, ",")
    if not by[key] then by[key], families[#families + 1] = { name = group.family }, key end
    table.insert(by[key], group.ranks)
  end
  for i, key in ipairs(families) do
    families[i] = by[key]
    table.sort(by[key], function(a, b) return a[1] < b[1] end)
  end
  return families
end

-- Return an expression that makes a family: its rule, or its lists if they follow none.
local function expression(world, family)
  local seen, kind, words = {}, "partial", {}
  for i, ranks in ipairs(family) do
    words[i] = "      { " .. table.concat(ranks, ", ") .. " },\n"
    for _, rank in ipairs(ranks) do kind, seen[rank] = seen[rank] and "cover" or kind, true end
  end
  local made = mg.world(world):table(family, kind)
  if made:modes() then return ("world:modes %q"):format((made:explain())) end
  return ("world:table({\n%s    }, %q)"):format(table.concat(words), kind)
end

-- Write a recipe: the state, which `words` describe, and what is left; or, if that is more than it explains, only this.
function M.write(path, world, state, words, left)
  local based, lines, taken = state.result.explained >= #left, {}, {}
  local function put(...) lines[#lines + 1] = string.format(...) end
  put("-- Written by moongrid infer, for %d ranks: %swhat is of no recipe.\nreturn recipe {", world,
      based and words .. ", and " or "")
  if based then
    put("  base = %q,\n  params = {", state.r.name)
    for name, value in sorted(state.values) do
      put("    %s = %s,", name, type(value) == "table" and "{ " .. table.concat(value, ", ") .. " }"
                                or type(value) == "string" and ("%q"):format(value) or tostring(value))
    end
    put "  },"
    for _, names in ipairs { state.plan.families, state.plan.grids } do
      for _, name in ipairs(names) do taken[name] = true end
    end
  end
  put("  idle = \"allow\",\n  build = function(world, _, t)")
  put("    if #world ~= %d then error(\"these groups are of %d ranks; that many would do\") end", world, world)
  if not based then put "    t = topology(world)" end
  for i, family in ipairs(M.families(left)) do
    local name = family.name:match "^[%a_][%w_]*$" or "left_" .. i
    while taken[name] do name = name .. "_left" end
    taken[name] = true
    put("    t[%q] = %s", name, expression(world, family))
  end
  put "    return t\n  end,\n}\n"
  host.write(path, table.concat(lines, "\n"))
end

return M
