-- SPDX-License-Identifier: MIT
--
-- asking: the common part of `moongrid ask` and `moongrid policy`, which call a query or a policy of a recipe as one
-- rank or as each rank of the world.

local host = require "host"
local json = require "command.base.json"
local line = require "command.base.line"
local recipe = require "command.base.line_recipe"
local sorted = require "command.base.sorted"
local text = require "command.base.text"

local M = {}

M.options = {
  line.world "ranks in the world",
  { "rank", "R", line.rank_or_all, help = "the rank that asks; all: a line for each rank" },
  { "json", help = "with --rank all: one list with the answers, in the order of the ranks" },
}

local function near_declared(list, name)
  local names = {}
  for i, one in ipairs(list) do names[i] = one.name end
  return select(2, host.nearest(name, names))
end

-- Put the value of NAME=VALUE into a table: JSON, otherwise text.
local function put_value(into, argument)
  local name, typed = argument:match "^([^=]*)=(.*)$"
  local is_json, value = host.json(typed)
  if is_json then into[name] = value else into[name] = typed end
end

-- Divide the NAME=VALUE of the line. Return the parameters of the plan, the settings of states, and the arguments of
-- the query or policy.
local function sort_arguments(of, info)
  local params, settings, arguments = {}, {}, {}
  for i, argument in ipairs(of.args) do
    local name = argument:match "^[^=]*"
    local is_param = recipe.declared(info.params, name)
    local near = not is_param and not near_declared(info.params, name) and near_declared(info.settings, name)
    if i > of.before then
      if is_param and not recipe.declared(info.arguments or {}, name) then
        text.usage("%s is a parameter: write it before %s; what follows is an argument of %s", name, of.words[1],
                   of.words[1])
      end
      put_value(arguments, argument)
    elseif not is_param and recipe.declared(info.settings, name) then
      put_value(settings, argument)
    elseif near then
      text.refuse(1, "unknown setting '%s'; nearest is '%s'", name, near)
    else
      params[#params + 1] = argument
    end
  end
  return params, settings, arguments
end

-- Print the answer of a rank as JSON: with --rank all in a line of a table, with --rank all --json as an element of a
-- list.
local function put_answer(of, rank, world, answer)
  if of.rank ~= "all" then return text.put(json.line(answer), "\n") end
  if of.json then
    return text.put(rank == 0 and "[" or ",\n ", json.line(answer), rank + 1 == world and "]\n" or "")
  end
  if rank == 0 then text.printf("%8s  %s\n", "rank", of.words[1]) end
  text.printf("%8d  %s\n", rank, json.line(answer))
end

-- Print the answers of the ranks of --rank. `ask(loaded, state, name, arguments, info)` returns an answer; `kind` is
-- "query or getter" or "policy".
function M.run(of, kind, ask)
  local name = of.command.name
  line.needs(of, of.world)
  local loaded = recipe.load(of)
  if #of.words == 0 then
    text.usage("%s needs the name of a %s; 'moongrid recipes %s' lists them", name, kind, of.recipe)
  end
  if not of.rank then text.usage("%s needs --rank R, or --rank all", name) end
  if of.rank ~= "all" then line.beyond(of.rank, of.world) end
  local info = loaded:info()
  local params, settings, arguments = sort_arguments(of, info)
  local plan = loaded:plan(of.world, params, of.params)
  local first, last = of.rank, of.rank
  if of.rank == "all" then first, last = 0, of.world - 1 end
  for rank = first, last do
    local state <close> = plan:dry(rank)
    for setting, value in sorted(settings) do loaded:set(state, setting, value) end
    put_answer(of, rank, of.world, ask(loaded, state, of.words[1], arguments, info))
  end
end

return M
