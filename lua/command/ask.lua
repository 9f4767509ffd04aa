-- SPDX-License-Identifier: MIT
--
-- moongrid ask: call a query or a getter of a recipe, without a program.

local asking = require "command.base.asking"
local recipe = require "command.base.line_recipe"
local text = require "command.base.text"

-- Return whether the name is that of a getter, or looks like one although no query has it. A query NAME may also be
-- called by get_NAME, as in the modelled system.
local function is_getter(info, name)
  if recipe.declared(info.getters, name) then return true end
  if not name:find "^get_" or #info.getters == 0 then return false end
  for _, query in ipairs(info.queries) do
    if query == name or query == name:sub(5) then return false end
  end
  return true
end

-- Refuse a family, unless a query has its name.
local function refuse_family(state, name, info)
  for _, query in ipairs(info.queries) do
    if query == name then return end
  end
  local is_family = pcall(function() return state[name] end)
  if not is_family then return end
  text.usage("%s is a family, not a query: moongrid plan --rank %d shows its group", name, state.rank)
end

local function ask(loaded, state, name, arguments, info)
  if not is_getter(info, name) then
    if not name:find "^get_" then refuse_family(state, name, info) end
    return loaded:ask(state, name, arguments)
  end
  local group = loaded:group(state, name, arguments)
  return group and group.ranks
end

return {
  name = "ask",
  place = 140,
  takes = "RECIPE --world N --rank R QUERY [ARG=VALUE]",
  summary = "the answer of a recipe to a query",
  usage = "moongrid ask RECIPE --world N [NAME=VALUE ...] --rank R QUERY [ARG=VALUE ...]",
  about = "Call a query or a getter of a recipe as a rank would ('moongrid recipes RECIPE' lists both). The answer is\n"
    .. "JSON: of a query its result, of a getter the ranks of the group, and null if this rank has none. The words\n"
    .. "before QUERY are parameters and settings, those after it its arguments; a value is JSON, otherwise text.",
  example = "moongrid ask megatron --world 16 tp=2 --rank 3 context_parallel_rank",
  recipe = true,
  words = 1,
  asks = "queries",
  options = asking.options,
  run = function(of) asking.run(of, "query or getter", ask) end,
}
