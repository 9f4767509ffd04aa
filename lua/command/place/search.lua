-- SPDX-License-Identifier: MIT
--
-- search: find the values of parameters with which a plan costs least on a machine. If there are at most WHOLE
-- combinations, all are evaluated. Otherwise, if bytes are compared, branch and bound leaves out a choice of sizes (the
-- values of all free parameters but the order) if its lower bound is above the best result; if too many remain, only
-- some orders are evaluated. For other costs, which have no bound, without a free order, and for more than WHOLE
-- choices of sizes a local search changes one value at a time, from several starts.
--
-- A candidate has `at`, the index of the value of each free parameter; the results of Machine:cost for its plan: bytes
-- and bound by level, and seconds; `value`, the number that a policy returned for it; and `alike`, the number of other
-- orders that cost the same.

local host = require "host"
local mg = require "moongrid"
local recipe = require "command.base.line_recipe"
local sending = require "command.place.sending"
local text = require "command.base.text"

local WHOLE <const> = 50000   -- evaluate all combinations if they are at most so many
local MANY <const> = 100000   -- branch and bound: after so many evaluations try only some orders
local SOME <const> = 2000     -- then so many orders for each choice of sizes
local LISTED <const> = 362880 -- try all orders of dims if they are at most so many (9!)
local DIMS <const>, FREE <const>, BEST <const> = 10, 16, 10 -- most dims of an order, free parameters, results
local STARTS <const>, ROUNDS <const>, STEPS <const> = 6, 200, 4096 -- limits of the local search

local STOPPED = {} -- the error that ends the search after --limit

-- Free parameters ------------------------------------------------------------------------------
-- A free parameter has its name, the number n of its values, and a function that returns a value by its number.

local function of_list(name, list)
  return { name = name, n = #list, value = function(k) return list[k] end }
end

-- Return the free parameter of all orders of the words in "tp-dp-pp", or of an even sample if there are too many.
local function of_orders(name, order)
  local words, all = recipe.dims_of(order), 1
  if #words > DIMS then
    text.refuse(3, "order '%.60s' has more than %d dims; list orders: %s=A,B,C", order, DIMS, name)
  end
  for i = 2, #words do all = all * i end
  local step = math.max(all // LISTED, 1)
  local function value(k)
    local left, rest, chosen = (k - 1) * step, table.move(words, 1, #words, 1, {}), {}
    while rest[1] do
      chosen[#chosen + 1] = table.remove(rest, left % #rest + 1)
      left = left // (#rest + 1)
    end
    return table.concat(chosen, "-")
  end
  return { name = name, n = (all + step - 1) // step, value = value, sampled = step > 1 }
end

local function holds_order(param)
  return param.kind == "order" or param.kind == "text" and recipe.dims_of(param.default) ~= nil
end

-- Choose the free parameters: those with a list on the command line, those with choices, and one that holds an order.
-- Other parameters on the line are fixed.
local function choose_free(x, params)
  local of, given, ordered = x.of, {}, false
  local function add(param, free)
    if #x.free == FREE then text.refuse(3, "at most %d parameters are free", FREE) end
    x.free[#x.free + 1] = free
    if holds_order(param) then x.order = x.order or #x.free end
    if free.sampled then x.sampled = true end
  end
  for _, argument in ipairs(of.args) do
    local name, value = argument:match "^([^=]*)=(.*)$"
    local param = name and recipe.declared(params, name)
    if param then given[param], ordered = true, ordered or holds_order(param) end
    if param and value:find "," and param.kind ~= "list" and not value:find "^[{[]" then
      local list = {}
      for one in value:gmatch "[^,]*" do list[#list + 1] = one end
      add(param, of_list(param.name, list))
    else
      x.fixed[#x.fixed + 1] = argument
    end
  end
  for _, param in ipairs(params) do
    if param.choices and not given[param] then
      ordered = ordered or holds_order(param)
      add(param, of_list(param.name, param.choices))
    end
  end
  for _, kind in ipairs { "order", "text" } do -- a param.order comes before a text that looks like an order
    for _, param in ipairs(params) do
      if not ordered and param.kind == kind and holds_order(param) and (param.default or "") ~= "" then
        ordered = true
        add(param, of_orders(param.name, param.default))
      end
    end
  end
end

-- Find the index of the present value of each free parameter: of its default, or 1 if the default is not listed.
local function find_now(x, params)
  x.all, x.now = 1.0, {}
  for i, free in ipairs(x.free) do
    local usual, k = recipe.declared(params, free.name).default or "", 1
    while k <= free.n and free.value(k) ~= usual do k = k + 1 end
    x.now[i], x.listed = k <= free.n and k or 1, x.listed or k > free.n
    x.all = x.all * free.n
  end
end

-- Evaluation -----------------------------------------------------------------------------------

local function same(a, b)
  for i = 1, #a do
    if a[i] ~= b[i] then return false end
  end
  return true
end

-- Compare bytes by level at the farthest level at which a and b differ. Return -1 if a has fewer, 1 if b has, else 0.
local function compare_bytes(x, a, b)
  for _, level in ipairs(x.levels) do
    if a[level] ~= b[level] then return a[level] < b[level] and -1 or 1 end
  end
  return 0
end

local function compare(x, a, b)
  local first, second = a.value, b.value
  if x.objective == "time" then first, second = a.seconds, b.seconds end
  if first ~= second then return first < second and -1 or 1 end
  return compare_bytes(x, a.bytes, b.bytes)
end

-- Return whether two candidates differ only in their order and cost the same, for instance because a dim has size 1.
local function alike(x, a, b)
  for i = 1, #a.at do
    if i ~= x.order and a.at[i] ~= b.at[i] then return false end
  end
  return compare(x, a, b) == 0 and compare_bytes(x, a.bytes, b.bytes) == 0
end

-- Insert a candidate into the list of the best, if it is good enough. Equal candidates stay in the order found. Of
-- candidates that are alike, the list keeps the first, and counts the others.
local function keep(x, candidate)
  local best, now = x.best, x.present
  for i = now and 0 or 1, #best do -- 0: compare with the present candidate, too
    local other = best[i] or now
    if same(other.at, candidate.at) then return end
    if alike(x, other, candidate) then
      other.alike = (other.alike or 0) + 1
      return
    end
  end
  local at = #best
  while at > 0 and compare(x, candidate, best[at]) < 0 do at = at - 1 end
  if at == BEST then return end
  table.insert(best, at + 1, candidate)
  best[BEST + 1] = nil
end

local function plan_of(x, at)
  local args = table.move(x.fixed, 1, #x.fixed, 1, {})
  for i, free in ipairs(x.free) do args[#args + 1] = free.name .. "=" .. free.value(at[i]) end
  return x.loaded:plan(x.of.world, args, x.of.params)
end

-- Return what the policy named by --objective returns for a plan and its cost, on rank 0 of a state without
-- communicators.
local function value_of(x, plan, cost)
  local state <close> = plan:dry(0)
  local value, message = x.loaded:call(state, x.objective, cost, "number")
  if message then error(message, 0) end
  if value ~= value then error(("policy '%s' returns nan"):format(x.objective), 0) end
  return value
end

-- Make the candidate of a plan. With the objective `time` the seconds of a step are its price.
local function candidate_of(x, plan, at)
  local traffic, seconds = sending.traffic(x.sending, plan, x.objective == "time")
  local cost = x.machine:cost(plan, traffic, x.timed)
  local value = x.policy and value_of(x, plan, cost) or nil
  return { at = at, bytes = cost.bytes, bound = cost.bound, seconds = seconds or cost.seconds, value = value }
end

-- Evaluate the recipe with these values. Return the candidate, or nil if the recipe refuses the plan or its step. The
-- candidate of the present values is kept, not evaluated again.
local function evaluate(x, at)
  local is_now = same(at, x.now)
  if is_now and x.looked then return x.present end
  if x.stop and x.looked and mg.now() > x.stop then error(STOPPED, 0) end
  at = table.move(at, 1, #at, 1, {})
  local decided = x.sending.by
  local planned, plan = pcall(plan_of, x, at)
  local done, candidate = planned, plan
  if planned then done, candidate = pcall(candidate_of, x, plan, at) end
  x.evaluated = x.evaluated + 1
  if not done then
    local refused = (mg.status(candidate) or 0) // 100 == 1 and (not planned or decided == "step")
    if not refused then error(candidate, 0) end
    x.refused, x.refusal = x.refused + 1, x.refusal or candidate
    return nil
  end
  keep(x, candidate)
  if is_now then x.present = candidate end
  return candidate
end

-- All, or a local search -----------------------------------------------------------------------

-- Set `at` to the next combination of all parameters except `fixed`. Return false after the last one.
local function next_values(x, at, fixed)
  for i, free in ipairs(x.free) do
    if i ~= fixed then
      at[i] = at[i] + 1
      if at[i] <= free.n then return true end
      at[i] = 1
    end
  end
  return false
end

local function first_values(x)
  local at = {}
  for i = 1, #x.free do at[i] = 1 end
  return at
end

local function search_whole(x)
  local at = first_values(x)
  repeat evaluate(x, at) until not next_values(x, at)
end

-- From a start, repeat the best change of one parameter as long as it improves the result.
local function climb(x, at)
  local best = evaluate(x, at)
  for _ = 1, ROUNDS do
    local better = false
    for i, free in ipairs(x.free) do
      local own = at[i]
      for k = 1, free.n, math.max(free.n // STEPS, 1) do
        at[i] = k
        local candidate = k ~= own and evaluate(x, at)
        if candidate and (not best or compare(x, candidate, best) < 0) then best, better = candidate, true end
      end
      at[i] = own
    end
    if not better then return end
    at = table.move(best.at, 1, #at, 1, {})
  end
end

local function search_some(x)
  for start = 0, STARTS - 1 do
    local at = {}
    for i, free in ipairs(x.free) do at[i] = start * free.n // STARTS + 1 end
    climb(x, at)
  end
end

-- Branch and bound -----------------------------------------------------------------------------
-- The sizes alone, without the order, give a lower bound on the bytes of every order. So the sizes are taken in the
-- order of their bounds, and all orders of each are evaluated, until the next bound is above the best result.

-- Return the candidate with the first order that the recipe accepts for these sizes, or nil. Its bound holds for every
-- order.
local function first_order(x, at)
  for k = 1, x.free[x.order].n do
    at[x.order] = k
    local candidate = evaluate(x, at)
    if candidate then return candidate end
  end
end

-- Return the sizes that the recipe accepts with some order, sorted by their bounds.
local function branches_of(x)
  local branches, at = {}, first_values(x)
  repeat
    local branch = first_order(x, table.move(at, 1, #at, 1, {}))
    if branch then branches[#branches + 1] = { at = branch.at, bound = branch.bound, order = #branches } end
  until not next_values(x, at, x.order)
  table.sort(branches, function(a, b)
    local order = compare_bytes(x, a.bound, b.bound)
    return order < 0 or order == 0 and a.order < b.order
  end)
  return branches
end

local function search_branches(x)
  local branches, orders = branches_of(x), x.free[x.order].n
  x.whole = not x.sampled
  for i, branch in ipairs(branches) do
    if x.best[1] and compare_bytes(x, branch.bound, x.best[1].bytes) > 0 then
      x.pruned = (#branches - i + 1.0) * orders
      return
    end
    local all = x.evaluated + orders <= MANY
    local at = table.move(branch.at, 1, #branch.at, 1, {})
    for k = 1, orders, all and 1 or math.max(orders // SOME, 1) do
      at[x.order] = k
      evaluate(x, at)
    end
    if not all or x.sampled then x.least = x.least or branch.bound end -- branches are sorted by bound
    x.whole = x.whole and all
  end
end

-- The best -------------------------------------------------------------------------------------

local function search(x)
  evaluate(x, x.now) -- first, so that the present values come before others of the same cost
  x.looked = true
  if x.whole then
    search_whole(x)
  elseif x.order and not x.policy and x.objective ~= "time" and x.all / x.free[x.order].n <= WHOLE then
    search_branches(x)
  else
    search_some(x)
  end
end

-- Price the step with the first and with the present values, because fewer bytes between the farthest domains may take
-- longer, if more bytes go between nearer ones.
local function compare_times(x)
  local now, first = x.present, x.best[1]
  if x.timed or x.sending.by ~= "step" or not now or x.stopped or same(now.at, first.at) then return end
  local _, first_seconds = sending.traffic(x.sending, plan_of(x, first.at), true)
  local _, now_seconds = sending.traffic(x.sending, plan_of(x, now.at), true)
  x.step_seconds = now_seconds and { first = first_seconds or -1, present = now_seconds }
end

-- Assign nodes to the best plan. Find the cost of the plan on these nodes, on the nodes as listed, and on the nodes
-- sorted by place.
local function assign_hosts(x)
  if not x.machine:assignable(x.of.world) then return end
  local plan = plan_of(x, x.best[1].at)
  local traffic = sending.traffic(x.sending, plan)
  local found, sorted = x.machine:assign(plan, traffic)
  x.hosts = { machine = found, cost = found:cost(plan, traffic), arrival = x.machine:cost(plan, traffic).bytes,
              sorted = sorted:cost(plan, traffic).bytes }
end

local function prepare(x, info)
  local of, policies = x.of, { "bytes", "time" }
  for _, policy in ipairs(info.policies) do policies[#policies + 1] = policy.name end
  x.policy = x.objective ~= "bytes" and x.objective ~= "time"
  local known = not x.policy
  for _, name in ipairs(policies) do known = known or name == x.objective end
  if not known then
    text.refuse(2, "--objective is bytes, time or a policy of the recipe, not '%s'%s", x.objective,
                (host.nearest(x.objective, policies)))
  end
  choose_free(x, info.params)
  find_now(x, info.params)
  local done, plan = false, nil
  if not of.machine then done, plan = pcall(x.loaded.plan, x.loaded, of.world, x.fixed, of.params) end
  x.machine = recipe.required_machine(of, done and plan or nil)
  x.machine:fits(of.world)
  if #x.free == 0 and not x.machine:assignable(of.world) then
    text.refuse(2, "--search order: nothing is free: the recipe has no text parameter with an order of dims, as "
                .. '"tp-dp-pp", and none has a list of values, as tp=2,4,8')
  end
  x.timed = x.objective ~= "bytes"
  local linked, levels = false, x.machine:levels()
  for i, level in ipairs(levels) do
    -- skip levels that cross others, and the last level before them, whose domains are single places
    if not level.crossing and (i == 1 or levels[i + 1] and not levels[i + 1].crossing) then
      x.levels[#x.levels + 1], linked = level.name, linked or level.bandwidth > 0
    end
  end
  if x.objective == "time" and not linked then
    text.refuse(2, "--objective time needs bandwidths, as in node:4[400GB/s]")
  end
end

-- Search as a line says, and return what was found:
--   best       candidates, the best first; if the present candidate is not among the best, it is the last
--   present    the candidate with the present values; nil: it is refused. `listed`: the list of values of
--              some parameter lacks its default, so its first value counts as present
--   free       the free parameters. machine, levels: costs are computed for them
--   all, evaluated, refused   numbers of combinations. `whole`: no other combination can be better; `pruned`: how many
--              were left out because they can only cost more
--   least      bytes by level: a lower bound of all combinations; nil: not known
--   stopped    --limit ended the search
--   timed      candidates have seconds. step_seconds: of the first and the present candidate, if bytes were compared
--   hosts      the nodes chosen for the ranks: machine, cost, and bytes by level of two other orders; nil: no choice
return function(of)
  local loaded = recipe.load(of)
  local x = { of = of, loaded = loaded, objective = of.objective or "bytes", sending = sending.new(of), free = {},
              fixed = {}, levels = {}, best = {}, evaluated = 0, refused = 0 }
  prepare(x, loaded:info())
  x.stop = of.limit and mg.now() + of.limit
  x.whole = x.all <= WHOLE and not x.sampled
  host.progress(("evaluating %.0f combinations"):format(x.all))
  local done, why = pcall(search, x)
  host.progress()
  if not done and why ~= STOPPED then error(why, 0) end
  x.stopped = not done
  x.whole = x.whole and done
  if not x.best[1] and x.stopped then
    text.refuse(3, "--limit %d: %d of %.0f combinations were evaluated, and the recipe refuses them all; the first: %s",
                of.limit, x.evaluated, x.all, x.refusal)
  elseif not x.best[1] then
    text.refuse(1, "the recipe refuses all %d combinations; the first: %s", x.evaluated, x.refusal)
  end
  local there = not x.present
  for _, candidate in ipairs(x.best) do there = there or candidate == x.present end
  if not there then x.best[#x.best + 1] = x.present end
  compare_times(x)
  assign_hosts(x)
  return x
end
