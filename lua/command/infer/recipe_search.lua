-- SPDX-License-Identifier: MIT
--
-- recipe_search: find the bundled recipes and the parameters that make given groups. Groups are compared as sets of
-- ranks.
--
-- The search knows only what a recipe declares. A state is a recipe with values for some parameters, and the groups of
-- its plan. The first state of a recipe has the defaults. Each step takes the most promising state, changes one
-- parameter to a value that the groups suggest, and so makes a new state. The recipes take turns; a recipe whose states
-- improve gets more turns.

local mg = require "moongrid"
local recipe = require "command.base.line_recipe"

-- The score of a state: the given groups that its plan makes, weighed by size, less the weight of other groups times
-- EXTRA, less LONG for each value, less TRIED for each change that was tried.
local EXTRA <const>, LONG <const>, TRIED <const> = 0.3, 0.01, 0.001
-- LISTS and POSITIONS: the most lists of sizes, and of positions. OPENED: a state with a single value goes first for so
-- many changes, if with this value parameters take effect that have no effect by default.
local LISTS <const>, POSITIONS <const>, OPENED <const> = 1000, 6, 24
-- The limit on the work of a search is WORK, and RANK more for each rank of the world. A unit of work is about 8 us: a
-- plan costs 10 units, each of its families 1, each 16 ranks of new groups 1.
local WORK <const>, RANK <const> = 200000, 350
-- Of equally good recipes the last in this list wins; a recipe that is not in it loses.
local LIKELY <const> = " llama jax_mesh deepspeed_topology deepspeed optimum_habana megatron_deepspeed sglang vllm "
  .. "accelerate torchtitan megatron "

local M = {}

local with = recipe.with

local function copy(list) return table.move(list, 1, #list, 1, {}) end
local function longer(list, item) return table.move(list, 1, #list, 1, { [#list + 1] = item }) end

-- Return a recipe and its values as words with the shortest names, "megatron tp=2 pp=4"; and the number of values.
local function words_of(r, values)
  local words = { r.name }
  for _, param in ipairs(r.params) do
    local value = values[param.name]
    if type(value) == "table" then value = table.concat(value, ",") end
    if value ~= nil then words[#words + 1] = param.short .. "=" .. tostring(value) end
  end
  return table.concat(words, " "), #words - 1
end

-- Return whether the family has a group with these members.
function M.has(family, ranks)
  local at = family:locate(ranks[1])
  if not at or #family:ranks(at) ~= #ranks then return false end
  for _, rank in ipairs(ranks) do
    if family:locate(rank) ~= at then return false end
  end
  return true
end

-- Groups ---------------------------------------------------------------------------------------
-- Each group has a number; the given groups have the first numbers. The rule of a family makes a set of groups, which
-- has a number, too. So a plan is identified by the numbers of its sets.

local function number_of(x, ranks)
  ranks = copy(ranks)
  table.sort(ranks)
  local key = table.concat(ranks, ",")
  if not x.ids[key] then x.sizes[#x.sizes + 1], x.ids[key] = #ranks, #x.sizes + 1 end
  return x.ids[key]
end

-- Return the number of a family's set of groups. x.sets[number] has the numbers of its groups.
function M.set(x, family)
  local rule = family:explain()
  if x.rules[rule] then return x.rules[rule] end
  local ids = {}
  for _, ranks in family:groups() do ids[#ids + 1] = number_of(x, ranks) end
  x.work = x.work + family.count * family.size // 16
  table.sort(ids)
  local key = table.concat(ids, ",")
  if not x.sets[key] then x.sets[#x.sets + 1], x.sets[key] = ids, #x.sets + 1 end
  x.rules[rule] = x.sets[key]
  return x.sets[key]
end

-- Return the result of a plan: `holds`, the groups that it makes; `explained`, how many of them are given groups; and
-- `extra`, how many are not.
local function result_of(x, plan)
  local sets, seen = {}, {}
  for _, name in ipairs(plan.families) do
    local set = M.set(x, plan:family(name))
    if not seen[set] then seen[set], sets[#sets + 1] = true, set end
  end
  table.sort(sets)
  local key = table.concat(sets, ",")
  if x.results[key] then return x.results[key] end
  local result, weight = { key = key, holds = {}, explained = 0, extra = 0 }, 0
  for _, set in ipairs(sets) do
    for _, id in ipairs(x.sets[set]) do
      local count = result.holds[id] and 0 or 1
      local what = id <= x.n and "explained" or "extra"
      result.holds[id], result[what] = true, result[what] + count
      weight = weight + count * (id <= x.n and 1 or -EXTRA) * x.sizes[id]
    end
  end
  result.score = weight / x.weight
  x.results[key] = result
  return result
end

-- Find the possible sizes of dims, which divide the world (x.factors), and lists of sizes (x.lists). A list has one
-- size, or several whose product is the world.
local function find_sizes(x)
  local open, rest = { {} }, { x.world }
  for size = 1, x.world do x.factors[#x.factors + 1] = x.world % size == 0 and size or nil end
  for i, list in ipairs(open) do -- the loop appends to `open`
    if rest[i] == 1 or #list == 1 then x.lists[#x.lists + 1] = list end
    for _, size in ipairs(x.factors) do
      if size > 1 and rest[i] % size == 0 and #open < LISTS then
        open[#open + 1] = longer(list, size)
        rest[#open] = rest[i] // size
      end
    end
  end
end

-- States ---------------------------------------------------------------------------------------

local changes -- (x, r, state)

-- Return whether state a is better than b. Ten groups too many are as bad as one given group that is missing.
local function better(a, b)
  local p, q = a.result.extra / 10 - a.result.explained, b.result.extra / 10 - b.result.explained
  if p ~= q then return p < q end
  if a.n ~= b.n then return a.n < b.n end
  if a.r.likely ~= b.r.likely then return a.r.likely > b.r.likely end
  return a.r.name < b.r.name
end

-- Plan with these values. Return whether the recipe accepts them, and its message if not. Two states are the same if
-- they have the same groups and the same parameters without effect; the state with fewer values is kept.
local function try(x, r, values)
  local words, n = words_of(r, values)
  if r.tried[words] then return r.tried[words] == true, r.tried[words] end
  local taken, plan = pcall(r.loaded.plan, r.loaded, x.world, values)
  x.work = x.work + r.cost
  r.tried[words] = taken or tostring(plan)
  if not taken then return false, r.tried[words] end
  local result, unread = result_of(x, plan), { " " }
  for _, param in ipairs(plan.params) do unread[#unread + 1] = param.unread and param.name or nil end
  local same = result.key .. table.concat(unread, " ")
  local state = r.states[same]
  if not state then
    state = { r = r, result = result, unread = #unread, tried = 0, n = math.huge, left = {},
              exact = result.explained == x.n and result.extra == 0 }
    state.go = coroutine.wrap(function() changes(x, r, state) end)
    r.states[same], r.open[#r.open + 1], r.root = state, state, r.root or state
    if result.score > r.top then r.top, r.stale = result.score, 0 end
    x.top = math.max(x.top, result.score)
    x.found = x.found or state.exact and (not x.accept or x.accept(plan)) and state
  end
  if n < state.n then state.values, state.words, state.n, state.plan = values, words, n, plan end
  if not r.best or better(state, r.best) then r.best = state end
  return true
end

-- Return the words in a parameter's documentation that the recipe accepts; no words if the recipe accepts any word.
local function texts_of(x, r, state, param)
  local words = r.words[param.name] or {}
  if r.words[param.name] or try(x, r, with(state.values, param.name, "no-such-word")) then return words end
  r.words[param.name] = words
  for word in param.doc:gmatch "[^ ,;:()]+" do
    if word ~= param.default and try(x, r, with(state.values, param.name, word)) then words[#words + 1] = word end
  end
  return words
end

-- Return, for given groups that the plan does not have, the positions of their members in a larger group of the plan.
local function positions_of(x, state)
  local lists, seen, missing = {}, {}, 0
  for id, given in ipairs(x.given) do
    local held = state.result.holds[id]
    missing = missing + (held and 0 or 1)
    for _, name in ipairs(not held and missing <= 4 * POSITIONS and state.plan.families or {}) do
      local family, at = state.plan:family(name), {}
      local group = family:locate(given.ranks[1])
      for _, rank in ipairs(given.ranks) do
        local own, position = family:locate(rank)
        at[#at + 1] = own == group and position or nil
      end
      table.sort(at)
      local key = table.concat(at, ",")
      if #at == #given.ranks and #at < family.size and not seen[key] and #lists < POSITIONS then
        seen[key], lists[#lists + 1] = true, at
      end
    end
  end
  return lists
end

-- Changes --------------------------------------------------------------------------------------
-- The changes of a state are a coroutine, which yields values, and is resumed with the results of `try`.

-- Yield the values of a state with one value changed. If the recipe refuses them, also yield them with another value
-- that the message suggests, or with another size changed so that the product of the two sizes stays the same.
local function give(r, state, param, value)
  local values = with(state.values, param.name, value)
  local taken, why = coroutine.yield(values)
  if taken or value == nil or type(value) == "table" then return end
  local would = (why or ""):match ";([^;]*) would do" or ""
  local was = math.tointeger(tonumber(state.values[param.name] or param.usual)) or 1
  for _, other in ipairs(r.params) do
    local size, also = state.values[other.name], nil
    if other == r.order then
      also = would:match "'([%w_]+%-[%w_-]+)'$"
    elseif math.type(size) == "integer" and math.type(value) == "integer" and value > 0 then
      also = size * was % value == 0 and size * was // value
    elseif other.kind == "text" then
      also = would:match("%f[%w_]" .. other.name .. " ([%w_.]+)")
    end
    if also and other ~= param then coroutine.yield(with(values, other.name, also)) end
  end
end

-- Yield other orders of the dims with sizes above 1: with one dim moved to another index, and with two dims exchanged
-- together with their sizes.
local function give_orders(r, state, param)
  local dims, sizes, moved = recipe.dims_of(state.values[param.name] or param.usual), {}, {}
  for _, name in ipairs(state.plan.grids) do
    for _, dim in ipairs(state.plan:grid(name):dims()) do sizes[dim[1]] = math.max(sizes[dim[1]] or 1, dim[2]) end
  end
  for i, dim in ipairs(dims) do moved[#moved + 1] = sizes[dim] ~= 1 and i or nil end
  for _, i in ipairs(moved) do
    for _, j in ipairs(moved) do
      local order = copy(dims)
      table.insert(order, j, table.remove(order, i))
      if i ~= j then give(r, state, param, table.concat(order, "-")) end
      order = copy(dims)
      order[i], order[j] = dims[j], dims[i]
      local values = with(state.values, param.name, table.concat(order, "-"))
      local one, other = recipe.declared(r.params, dims[i]), recipe.declared(r.params, dims[j])
      if one then values[one.name] = sizes[dims[j]] end
      if other then values[other.name] = sizes[dims[i]] end
      if i < j then coroutine.yield(values) end
    end
  end
end

-- Return the values to try for a parameter.
local function values_of(x, r, state, param)
  local kind, now, usual = param.kind, state.values[param.name], param.usual
  local values = copy(param.choices or {})
  local function add(list) table.move(list, 1, #list, #values + 1, values) end
  if kind == "size" or kind == "integer" or kind == "index" then
    add(x.factors)
    for value = 0, kind == "size" and -1 or math.min(x.world - 1, 7) do values[#values + 1] = value end
  elseif kind == "flag" then
    values[1] = usual ~= "true"
  elseif kind == "text" or kind == "any" then
    add(texts_of(x, r, state, param))
  elseif kind == "list" then
    add(x.lists)
    for _, size in ipairs(now and x.factors or {}) do values[#values + 1] = longer(now, size) end
  end
  if usual ~= "[]" and (kind == "any" or kind == "list" and usual) then add(positions_of(x, state)) end
  return values
end

-- Yield all changes of a state; those of texts and lists come last, because they are many.
function changes(x, r, state)
  local unread, few = {}, { size = true, integer = true, index = true, flag = true, any = true }
  for _, param in ipairs(state.plan.params) do unread[param.name] = param.unread end -- without effect
  if r.order and not unread[r.order.name] then give_orders(r, state, r.order) end
  for _, first in ipairs { true, false } do
    for _, param in ipairs(r.params) do
      local now = first == (few[param.kind] or false)
      if now and state.values[param.name] ~= nil then give(r, state, param, nil) end
      local values = now and not unread[param.name] and param ~= r.order and values_of(x, r, state, param)
      for _, value in ipairs(values or {}) do
        if tostring(value) ~= param.usual then give(r, state, param, value) end
      end
    end
  end
end

-- Turns ----------------------------------------------------------------------------------------

-- Try the next change of the most promising state of a recipe.
local function step(x, r)
  local best, at, top
  for i, state in ipairs(r.open) do
    local opens = state.n == 1 and state.unread < r.root.unread and state.tried < OPENED
    local worth = (state == r.root or opens) and math.huge or state.result.score - LONG * state.n - TRIED * state.tried
    if not top or worth > top then best, at, top = state, i, worth end
  end
  if not best then return end
  local values = best.go(best.taken, best.why)
  best.tried = best.tried + 1
  if values then best.taken, best.why = try(x, r, values) else table.remove(r.open, at) end
end

local function new_recipe(x, name)
  local loaded = mg.load(name)
  local r = { name = name, loaded = loaded, params = {}, states = {}, open = {}, tried = {},
              words = {}, top = -1, stale = 0, took = 0, cost = 10,
              likely = (LIKELY:find(" " .. name .. " ", 1, true) or 0) / #LIKELY }
  for _, param in ipairs(loaded:info().params) do
    param.usual = param.default or param.doc:match "default ([^ ;,]+[^ ;]*)" -- as text; nil: unknown
    param.short = param.name
    for _, alias in ipairs(param.aliases) do param.short = #alias < #param.short and alias or param.short end
    r.params[#r.params + 1] = not param.of_step and param or nil
    r.order = r.order or recipe.dims_of(param.usual) and param
  end
  for _, param in ipairs(try(x, r, {}) and {} or r.params) do -- if the defaults are refused, try large sizes
    if param.kind == "size" then try(x, r, { [param.name] = x.world }) end
  end
  if r.root then r.cost = 10 + #r.root.plan.families + (#r.root.plan.tensors > 0 and 500 or 0) end
  r.wide = r.root and #r.params + 2 - r.root.unread or 1
  return r
end

-- Try the values of a state in all recipes with parameters of the same names, since one of them may be more likely.
local function share(x, state)
  for _, r in ipairs(x.recipes) do
    local values = {}
    for _, param in ipairs(state.r.params) do
      local own = recipe.declared(r.params, param.short)
      if own then values[own.name] = state.values[param.name] end
    end
    try(x, r, values)
  end
end

-- Give a turn to the recipe for which this sum is least: its work since its score rose, and a fifth of all its work. A
-- recipe with more parameters, or with a better score, may do more. Return false if no recipe has a change left.
local function turn(x)
  local best, least, before = nil, nil, x.work
  for _, r in ipairs(x.recipes) do
    local had = (r.stale + 0.2 * r.took) * (1 + 2 * (x.top - r.top)) / r.wide
    if r.open[1] and (not least or had < least) then best, least = r, had end
  end
  for _ = 1, best and 8 or 0 do step(x, best) end
  if best then best.stale, best.took = best.stale + x.work - before, best.took + x.work - before end
  return best ~= nil
end

-- Search until a recipe makes these groups and no others, or until `part` (0 to 1) of the limit on work is used. The
-- whole limit takes about two seconds at 64 ranks. Work is counted, not timed, so the result does not depend on the
-- load of the computer. Each of `groups` has `ranks`. `accept`, if given, returns false to reject a plan. Return the
-- best state of each recipe, the best recipe first; the field `left` of a state lists the given groups that its plan
-- does not make. Also return the search; its field `given` lists the given groups, each once.
function M.run(groups, world, part, accept)
  local x = { world = world, ids = {}, sizes = {}, rules = {}, sets = {}, results = {}, given = {}, weight = 0,
              factors = {}, lists = {}, recipes = {}, top = -1, work = 0, accept = accept }
  for _, group in ipairs(groups) do
    local id = number_of(x, group.ranks)
    if not x.given[id] then x.given[id], x.weight = group, x.weight + #group.ranks end
  end
  x.n = #x.given
  find_sizes(x)
  local best = {}
  local function goes_on() return not x.found and x.work < part * (WORK + RANK * world) end
  for i, name in ipairs(mg.recipes()) do x.recipes[i] = new_recipe(x, name) end
  for _, r in ipairs(x.recipes) do -- first change each parameter alone, except in recipes with tensors, which are slow
    while r.cost < 200 and r.root and r.open[1] == r.root and goes_on() do step(x, r) end
    r.stale = 0
  end
  while goes_on() and turn(x) do end
  if x.found then share(x, x.found) end
  for _, r in ipairs(x.recipes) do
    best[#best + 1] = r.best
    for id, group in ipairs(r.best and x.given or {}) do
      if not r.best.result.holds[id] then table.insert(r.best.left, group) end
    end
  end
  table.sort(best, better)
  return best, x
end

return M
