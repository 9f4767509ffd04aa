-- SPDX-License-Identifier: MIT
--
-- doubts: notes about probable mistakes in a recipe or its parameters: sizes that change nothing, and families that are
-- created in another order than they are written.

local host = require "host"
local json = require "command.base.json"
local line = require "command.base.line"
local recipe = require "command.base.line_recipe"
local text = require "command.base.text"

local M = {}

local SIZES = { size = true, index = true, integer = true } -- kinds of parameters
local MOST = 4096 -- most ranks of a world in which a recipe is planned again

-- Functions that describe a plan as text, the quickest first: its groups, its step, and the answers of its first and
-- last rank to queries without arguments. A parameter matters if it changes one of these texts.
local ANSWERS = {
  function(plan) return (plan:text():gsub("\nparam [^\n]*", "")) end,
  function(plan) return recipe.has_step(plan) and plan:step().digest or "none" end,
  function(plan, loaded, queries)
    local answers = {}
    for _, rank in ipairs { 0, plan.world - 1 } do
      local state = plan:dry(rank)
      for _, name in ipairs(queries) do
        local done, answer = pcall(loaded.ask, loaded, state, name)
        answers[#answers + 1] = done and json.line { answer } or "refused"
      end
    end
    return table.concat(answers, "\n")
  end,
}

-- Print a note for each given size, index or integer that changes nothing: all ANSWERS are the same with twice its
-- value (one more if it is below 1), with half of it (unless it is below 2), and with the default.
local function note_sizes(plan, loaded)
  local values, own, given = {}, {}, {}
  for _, param in ipairs(plan.params) do
    if not param.usual then values[param.name], own[#own + 1] = param.value, param end
  end
  if #own == 0 then return end
  local info, kinds = loaded:info(), {}
  for _, param in ipairs(info.params) do kinds[param.name] = param.kind end
  for _, param in ipairs(own) do
    if SIZES[kinds[param.name]] and not param.unread then given[#given + 1] = param.name end
  end
  recipe.quiet = true
  local here = {}
  local function text_of(of, i)
    local done, answer = pcall(ANSWERS[i], of, loaded, info.queries)
    return done and answer or "refused"
  end
  for _, name in ipairs(given) do
    local value = math.tointeger(tonumber(values[name]))
    local function same(other)
      local done, changed = pcall(loaded.plan, loaded, plan.world, recipe.with(values, name, other))
      for i = 1, done and #ANSWERS or 0 do
        here[i] = here[i] or text_of(plan, i)
        if text_of(changed, i) ~= here[i] then return false end
      end
      return done
    end
    if same(value > 0 and 2 * value or value + 1) and (value < 2 or same(value // 2)) and same(nil) then
      text.note("parameter '%s' changes nothing here: no group, query or step depends on it", name)
    end
  end
  recipe.quiet = false
end

-- Print a note for a line of the recipe such as t.a, t.b = x, y, since Lua assigns t.b before t.a.
local function note_order(of, plan)
  local place = {}
  for i, name in ipairs(plan.families) do place[name] = i end
  local n = 0
  for source in ((line.from_stdin(of) and line.stdin() or host.read(of.recipe) or "") .. "\n"):gmatch "([^\n]*)\n" do
    local last
    n = n + 1
    for name in (source:match "^%s*([%a_][%w_]*%.[%w_]+%s*,[%w_%s.,]*)=[^=]" or ""):gmatch "%.([%w_]+)" do
      if place[last] and place[name] and place[last] > place[name] then
        text.note("line %d: Lua assigns the last name first, so '%s' is created before '%s'; write a line for each", n,
                  name, last)
        break
      end
      last = name
    end
  end
end

-- Print the notes for the command line `of`, its plan and its recipe.
function M.note(of, plan, loaded)
  if plan.world <= MOST then note_sizes(plan, loaded) end
  if host.kind(of.recipe) == "file" or line.from_stdin(of) then note_order(of, plan) end
end

return M
