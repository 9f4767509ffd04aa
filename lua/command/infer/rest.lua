-- SPDX-License-Identifier: MIT
--
-- rest: put the groups that no recipe makes into families, and write them into a recipe file.

local host = require "host"
local mg = require "moongrid"
local sorted = require "command.base.sorted"

local M = {}

-- Divide groups into families, and return a list of { name, lists, made = the Family }. Groups with the same name
-- are a family, and so are groups without a name that have the same differences between their ranks.
function M.families(world, groups)
  local families, by, ranks_of = {}, {}, mg.world(world)
  for _, group in ipairs(groups) do
    local shape = { "=" .. group.family }
    for i, rank in ipairs(group.family == "" and group.ranks or {}) do shape[i] = rank - group.ranks[1] end
    local key = table.concat(shape, ",")
    if not by[key] then by[key], families[#families + 1] = #families + 1, { name = group.family, lists = {} } end
    table.insert(families[by[key]].lists, group.ranks)
  end
  for _, family in ipairs(families) do
    table.sort(family.lists, function(a, b) return a[1] < b[1] end)
    local done, made = pcall(ranks_of.table, ranks_of, family.lists, "partial")
    family.made = done and made or ranks_of:table(family.lists, "cover")
  end
  return families
end

-- Return an expression of a recipe that makes a family: by the rule of the family, or by lists if it has no rule.
local function expression(family)
  if family.made:modes() then return ("world:modes %q"):format((family.made:explain())) end
  local lines = {}
  for i, ranks in ipairs(family.lists) do lines[i] = "      { " .. table.concat(ranks, ", ") .. " },\n" end
  return ("world:table({\n%s    }, %q)"):format(table.concat(lines), family.made.coverage)
end

-- Write a recipe that extends the recipe of the state by the groups that this recipe does not make. If these are more
-- than the given groups that it makes, write only these, without a base.
function M.write(path, world, state)
  local based, lines, taken = state.result.explained >= #state.left, {}, {}
  local function put(...) lines[#lines + 1] = string.format(...) end
  put("-- Written by moongrid infer, for %d ranks: %sgroups of no recipe.\nreturn recipe {", world,
      based and state.words .. ", and " or "")
  if based then
    put("  base = %q,\n  params = {", state.r.name)
    for name, value in sorted(state.values) do
      put("    %s = %s,", name, type(value) == "table" and "{ " .. table.concat(value, ", ") .. " }"
                                or type(value) == "string" and ("%q"):format(value) or tostring(value))
    end
    put "  },"
    for _, name in ipairs(state.plan.families) do taken[name] = true end
    for _, name in ipairs(state.plan.grids) do taken[name] = true end
  end
  put("  idle = \"allow\",\n  build = function(world, _, t)")
  put("    if #world ~= %d then error(\"these groups are of %d ranks; that many would do\") end", world, world)
  if not based then put "    t = topology(world)" end
  for i, family in ipairs(M.families(world, state.left)) do
    local name = family.name:match "^[%a_][%w_]*$" or "left_" .. i
    put("    t[%q] = %s", taken[name] and name .. "_left" or name, expression(family))
  end
  put "    return t\n  end,\n}\n"
  host.write(path, table.concat(lines, "\n"))
end

return M
