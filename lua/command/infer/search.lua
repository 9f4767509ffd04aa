-- SPDX-License-Identifier: MIT
--
-- search: which bundled recipes, with which parameters, make some groups. Groups are compared as sets of ranks.
--
-- Nothing is known of a recipe but what it declares. A state is a recipe with some values and what its plan makes. From
-- the defaults one parameter is changed at a time, to values that the groups suggest: always the next change of the
-- state that explains most. Recipes take turns; one whose states get better has more of them.

local mg = require "moongrid"
local recipe = require "command.base.recipe"
local sorted = require "command.base.sorted"

-- What a group too many counts, of one that is explained; what a value, and a change that was tried, takes from a
-- score.
local EXTRA <const>, LONG <const>, TRIED <const> = 0.3, 0.01, 0.001
-- Lists of sizes, and of positions, that are tried for a parameter; changes that are tried at once where a value makes
-- other parameters have an effect.
local LISTS <const>, POSITIONS <const>, OPENED <const> = 200, 6, 24
-- What is done at most, and that for each rank of the world, in units of about 5 us: one for a family of a plan, 10 for
-- a plan, one for 16 ranks of groups that are new.
local WORK <const>, RANK <const> = 260000, 350
local LIKELY <const> = " llama jax_mesh deepspeed_topology deepspeed optimum_habana megatron_deepspeed sglang vllm "
  .. "accelerate torchtitan megatron " -- of equal recipes the last one; others are before all

local M = {}

local function copy(list) return table.move(list, 1, #list, 1, {}) end

local function with(values, name, value)
  local new = {}
  for key, other in sorted(values) do new[key] = other end
  new[name] = value
  return new
end

-- Return the words of "tp-dp-pp", or of the names of a list as JSON has them; nil: it is no such text.
local function words_of(order)
  local words = {}
  for word in (order or ""):gsub('[%[%]"]', ""):gsub(",", "-"):gmatch "[^-]+" do
    if not word:find "^[%a_][%w_]*$" then return nil end
    words[#words + 1] = word
  end
  return #words > 1 and words or nil
end

-- What is searched for -------------------------------------------------------------------------
-- Each group has a number, those that are given the first ones. A rule of a family makes a set of groups, which has a
-- number, too; so a plan is told by the numbers of its sets.

local function number_of(x, ranks)
  ranks = copy(ranks)
  table.sort(ranks)
  local key = table.concat(ranks, ",")
  if not x.ids[key] then x.sizes[#x.sizes + 1], x.ids[key] = #ranks, #x.sizes + 1 end
  return x.ids[key]
end

-- Return the number of a family's set of groups. x.sets has their numbers, by that.
function M.set(x, family)
  local rule = family:explain()
  if x.rules[rule] then return x.rules[rule] end
  local ids, seen = {}, {}
  for _, ranks in family:groups() do
    local id = number_of(x, ranks)
    if not seen[id] then seen[id], ids[#ids + 1] = true, id end
  end
  x.work = x.work + family.count * family.size // 16
  table.sort(ids)
  local key = table.concat(ids, ",")
  if not x.sets[key] then x.sets[#x.sets + 1], x.sets[key] = ids, #x.sets + 1 end
  x.rules[rule] = x.sets[key]
  return x.sets[key]
end

-- Return which groups a plan `holds`, how many of those given and how many others.
local function result_of(x, plan)
  local sets, seen = {}, {}
  for _, name in ipairs(plan.families) do
    local set = M.set(x, plan:family(name))
    if not seen[set] then seen[set], sets[#sets + 1] = true, set end
  end
  table.sort(sets)
  local key = table.concat(sets, ",")
  local result, weight = x.results[key] or { key = key, holds = {}, explained = 0, extra = 0 }, 0
  for _, set in ipairs(x.results[key] and {} or sets) do
    for _, id in ipairs(x.sets[set]) do
      local count = result.holds[id] and 0 or 1
      local what = id <= x.n and "explained" or "extra"
      result.holds[id], result[what] = true, result[what] + count
      weight = weight + count * (id <= x.n and 1 or -EXTRA) * x.sizes[id]
    end
  end
  result.score = result.score or weight / x.weight
  x.results[key] = result
  return result
end

-- Return the sizes that dims may have: ratios of the strides in the groups, of their sizes and of the world.
local function sizes_of(x)
  local world, bounds, seen, ratios, list = mg.world(x.world), { [x.world] = true, [1] = true }, {}, {}, {}
  for _, group in ipairs(x.given) do
    local ranks, steps = copy(group.ranks), {}
    table.sort(ranks)
    for i = 2, #ranks do steps[i - 1] = ranks[i] - ranks[i - 1] end
    local key = table.concat(steps, ",")
    local modes = not seen[key] and world:table({ ranks }, "partial"):modes()
    seen[key], bounds[#ranks] = true, true
    for _, mode in ipairs(modes and modes.inside or {}) do bounds[mode[2]], bounds[mode[1] * mode[2]] = true, true end
  end
  for low in sorted(bounds) do
    for high in sorted(bounds) do
      if high % low == 0 and x.world % (high // low) == 0 then ratios[high // low] = true end
    end
  end
  for size in sorted(ratios) do list[#list + 1] = size end
  return list
end

-- Return lists of up to three such sizes.
local function lists_of(x)
  local lists = {}
  local function extend(list, rest)
    for _, size in ipairs(x.factors) do
      if size > 1 and rest % size == 0 and #lists < LISTS then
        lists[#lists + 1] = table.move(list, 1, #list, 1, { [#list + 1] = size })
        if #list < 2 then extend(lists[#lists], rest // size) end
      end
    end
  end
  extend({}, x.world)
  return lists
end

-- States ---------------------------------------------------------------------------------------

local changes -- (x, r, state)

-- Plan with these values. Return whether the recipe takes them, and what it says if not. Of states with the same
-- groups, on which the same parameters have no effect, the one with the fewest values stays.
local function try(x, r, values)
  local words = {}
  for name, value in sorted(values) do
    words[#words + 1] = name .. "=" .. (type(value) == "table" and table.concat(value, ",") or tostring(value))
  end
  local key, n = table.concat(words, " "), #words
  if r.tried[key] then return r.tried[key] == true, r.tried[key] end
  local taken, plan = pcall(r.loaded.plan, r.loaded, x.world, values)
  x.work = x.work + r.cost
  r.tried[key] = taken or tostring(plan)
  if not taken then return false, r.tried[key] end
  local result, unread = result_of(x, plan), { " " }
  for _, param in ipairs(plan.params) do unread[#unread + 1] = param.unread and param.name or nil end
  local same = result.key .. table.concat(unread, " ")
  local old = r.states[same]
  if old then
    if n < old.n then old.values, old.n, old.plan = values, n, plan end
    return true
  end
  local state = { r = r, values = values, n = n, plan = plan, result = result, tried = 0, unread = #unread }
  state.go = coroutine.wrap(function() changes(x, r, state) end)
  r.states[same], r.open[#r.open + 1], r.root = state, state, r.root or state
  if result.score > r.top then r.top, r.stale = result.score, 0 end
  if result.score > x.top then x.top, x.leads = result.score, state end
  x.exact = x.exact or M.is_exact(x, state) and (not x.accept or x.accept(plan))
  return true
end

-- The value that a parameter has if none is given, as text; nil: unknown.
local function usual(param) return param.default or param.doc:match "default ([^ ;,]+[^ ;]*)" end

-- Return the words of the parameter's documentation that the recipe accepts, unless it accepts any.
local function words_taken(x, r, state, param)
  local words = r.words[param.name] or {}
  if r.words[param.name] or try(x, r, with(state.values, param.name, "no-such-word")) then return words end
  r.words[param.name] = words
  for word in param.doc:gmatch "[^ ,;:()]+" do
    if word ~= param.default and try(x, r, with(state.values, param.name, word)) then words[#words + 1] = word end
  end
  return words
end

-- Return at which positions of a group of the plan given groups are that the plan lacks.
local function positions_of(x, state)
  local lists, seen, tried = {}, {}, 0
  for id, given in ipairs(x.given) do
    local wanted, sets = {}, {}
    if not state.result.holds[id] then tried = tried + 1 end
    for _, rank in ipairs(given.ranks) do wanted[rank] = true end
    for _, name in ipairs(state.result.holds[id] and {} or tried <= 4 * POSITIONS and state.plan.families or {}) do
      local family = state.plan:family(name)
      local set, group, at = M.set(x, family), family:locate(given.ranks[1]), {}
      local members = group and not sets[set] and family:ranks(group) or {}
      sets[set] = true
      for i, rank in ipairs(members) do at[#at + 1] = wanted[rank] and i - 1 or nil end
      local key = table.concat(at, ",")
      if #at == #given.ranks and #members > #at and not seen[key] and #lists < POSITIONS then
        seen[key], lists[#lists + 1] = true, at
      end
    end
  end
  return lists
end

-- Changes --------------------------------------------------------------------------------------
-- They are a coroutine, which yields values and is resumed with what `try` returns of them.

-- Give a value. If it is refused: what the message says that would do with it; or, where sizes have a fixed product,
-- the size of another that gives the factor.
local function give(r, state, param, value)
  local values = with(state.values, param.name, value)
  local taken, why = coroutine.yield(values)
  if taken or value == nil or type(value) == "table" then return end
  local would = (why or ""):match ";([^;]*) would do" or ""
  local was = math.tointeger(tonumber(state.values[param.name] or usual(param))) or 1
  for _, other in ipairs(r.params) do
    local size, word = state.values[other.name], would:match("%f[%w_]" .. other.name .. " ([%w_.]+)")
    if other == r.order and words_of(would:match "'([^']*)'$") then
      coroutine.yield(with(values, other.name, would:match "'([^']*)'$"))
    elseif other ~= param and math.type(size) == "integer" and math.type(value) == "integer" and value > 0 then
      if size * was % value == 0 then coroutine.yield(with(values, other.name, size * was // value)) end
    elseif other.kind == "text" and word then
      coroutine.yield(with(values, other.name, word))
    end
  end
end

-- Give other orders of the dims above 1: each at each other place; and each two exchanged, together with their sizes.
local function give_orders(r, state, param)
  local now = state.values[param.name]
  local words, sizes, places = words_of(now or usual(param)), {}, {}
  for _, name in ipairs(state.plan.grids) do
    for _, dim in ipairs(state.plan:grid(name):dims()) do sizes[dim[1]] = math.max(sizes[dim[1]] or 1, dim[2]) end
  end
  for i, word in ipairs(words) do places[#places + 1] = sizes[word] ~= 1 and i or nil end
  for _, i in ipairs(places) do
    for _, j in ipairs(places) do
      local list = copy(words)
      table.insert(list, j, table.remove(list, i))
      if i ~= j then give(r, state, param, table.concat(list, "-")) end
      list = copy(words)
      list[i], list[j] = words[j], words[i]
      local values = with(state.values, param.name, table.concat(list, "-"))
      for from, to in sorted { [i] = j, [j] = i } do
        local own = recipe.declared(r.params, words[from])
        local size = sizes[words[to]]
        if own then values[own.name] = size ~= math.tointeger(tonumber(own.default)) and size or nil end
      end
      if i < j then coroutine.yield(values) end
    end
  end
end

local function give_numbers(x, r, state, param)
  local now, default, values = state.values[param.name], math.tointeger(tonumber(usual(param))), copy(x.factors)
  for value = 0, param.kind == "size" and -1 or math.min(x.world - 1, 7) do values[#values + 1] = value end
  for _, value in ipairs(values) do
    if value ~= now and value ~= default then give(r, state, param, value) end
  end
end

function changes(x, r, state)
  local unread, later = {}, {}
  for _, param in ipairs(state.plan.params) do unread[param.name] = param.unread end -- nothing depends on these
  if r.order and not unread[r.order.name] then give_orders(r, state, r.order) end
  for _, param in ipairs(r.params) do
    local kind, default = param.kind, usual(param)
    local number = kind == "size" or kind == "integer" or kind == "index"
    local places = default ~= "[]" and (kind == "any" or kind == "list" and default)
    local read = not unread[param.name] and param ~= r.order
    if read and number then give_numbers(x, r, state, param) end
    for _, value in ipairs(read and places and positions_of(x, state) or {}) do give(r, state, param, value) end
    if read and kind == "flag" and state.values[param.name] == nil then give(r, state, param, default ~= "true") end
    if read and not number then later[#later + 1] = param end
    if state.values[param.name] ~= nil then give(r, state, param, nil) end
  end
  for _, param in ipairs(later) do
    local list = param.kind == "list" and x.lists or param.choices or {}
    if param.kind == "text" or param.kind == "any" then list = words_taken(x, r, state, param) end
    for _, value in ipairs(list) do give(r, state, param, value) end
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

-- Give the values of the best state to the other recipes that have parameters of these names.
local function share(x)
  local state = x.leads
  x.leads = nil
  for _, r in ipairs(state and x.recipes or {}) do
    local values = {}
    for _, param in ipairs(state.r.params) do
      for i = 0, #param.aliases do
        local own = recipe.declared(r.params, param.aliases[i] or param.name)
        if own and own.kind == param.kind then values[own.name] = state.values[param.name] end
      end
    end
    if r ~= state.r then try(x, r, values) end
  end
end

local function new_recipe(x, name)
  local loaded = mg.load(name)
  local r = { name = name, loaded = loaded, params = loaded:info().params, states = {}, open = {}, tried = {},
              words = {}, top = -1, stale = 0, took = 0, cost = 10 }
  for _, param in ipairs(r.params) do
    local orders = param.kind == "order" or param.kind == "text" or param.kind == "names"
    if orders and not r.order and words_of(usual(param)) then r.order = param end
  end
  if not try(x, r, {}) then
    for _, param in ipairs(r.params) do
      if param.kind == "size" then try(x, r, { [param.name] = x.world }) end
    end
  end
  if r.root then r.cost = 10 + #r.root.plan.families + (#r.root.plan.tensors > 0 and 500 or 0) end
  r.wide = r.root and #r.params + 2 - r.root.unread or 1
  return r
end

-- Let the recipe go on that has had least, for how many parameters it has and how much it explains. Return false: none.
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

-- Ten groups too many are as bad as one that is left.
local function better(a, b)
  local p, q = a.result.extra / 10 - a.result.explained, b.result.extra / 10 - b.result.explained
  if p ~= q then return p < q end
  if a.n ~= b.n then return a.n < b.n end
  local i, k = LIKELY:find(" " .. a.r.name .. " ", 1, true) or 0, LIKELY:find(" " .. b.r.name .. " ", 1, true) or 0
  return i > k or i == k and a.r.name < b.r.name
end

-- Return the recipe of a state, and its values, " tp=2 pp=4", under the shortest names.
function M.words(state)
  local words = {}
  for _, param in ipairs(state.r.params) do
    local value, name = state.values[param.name], param.name
    for _, alias in ipairs(param.aliases) do name = #alias < #name and alias or name end
    if type(value) == "table" then value = table.concat(value, ",") end
    if value ~= nil then words[#words + 1] = (" %s=%s"):format(name, value) end
  end
  return state.r.name, table.concat(words)
end

-- Whether it makes these groups and no others.
function M.is_exact(x, state) return state.result.explained == x.n and state.result.extra == 0 end

-- Search until a recipe makes these groups and no others, or a `part` of the work is done: all of it takes about a
-- second at 64 ranks. No clock is asked, so a loaded machine finds the same. `groups` have `ranks`. `accept`, if given,
-- refuses a plan by false. Return the best state of each recipe, best first; and what was searched for, with the groups
-- `given`, each once.
function M.run(groups, world, part, accept)
  local x = { world = world, ids = {}, sizes = {}, rules = {}, sets = {}, results = {}, given = {}, weight = 0,
              recipes = {}, top = -1, work = 0, accept = accept }
  for _, group in ipairs(groups) do
    local id = number_of(x, group.ranks)
    if not x.given[id] then x.given[id], x.weight = group, x.weight + #group.ranks end
  end
  x.n, x.factors = #x.given, sizes_of(x)
  x.lists = lists_of(x)
  local best = {}
  local function goes_on() return not x.exact and x.work < part * (WORK + RANK * world) end
  for i, name in ipairs(mg.recipes()) do x.recipes[i] = new_recipe(x, name) end
  for _, r in ipairs(x.recipes) do -- first each parameter alone, but of recipes of tensors, which take long
    while r.cost < 200 and r.root and r.open[1] == r.root and goes_on() do step(x, r) end
    r.stale = 0
  end
  while goes_on() and turn(x) do share(x) end
  share(x)
  for _, r in ipairs(x.recipes) do
    local first
    for _, state in sorted(r.states) do first = (not first or better(state, first)) and state or first end
    best[#best + 1] = first
  end
  table.sort(best, better)
  return best, x
end

return M
