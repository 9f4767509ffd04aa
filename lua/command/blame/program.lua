-- SPDX-License-Identifier: MIT
--
-- program: find the calls that each rank should have made. The ranks of one pipeline stage make the same calls in the
-- same order, and repeat them in each step. So the n-th call of a rank is compared with the n-th call of the others,
-- and with their calls one step earlier. A rank whose call differs is at fault; ranks that only stop wait for it.

local M = {}

local MANY = 24 -- a rank that makes more calls after the difference has a program of its own, and no fault

-- Operations whose sizes may differ between ranks and steps.
local uneven = { all_to_all = true, gather = true, scatter = true }

-- Return the distance from a rank to the peer of a send or recv, as " +1"; "" for other calls. The group may be a ring,
-- so the distance between its ends is 1.
local function distance(call, rank)
  local n, own = #call.group.ranks, call.group.position[rank]
  if not (call.peer and own) then return "" end
  local d = call.peer - own
  if n > 2 and math.abs(d) == n - 1 then d = d > 0 and -1 or 1 end
  return (" %+d"):format(d)
end

-- Give each call `token`, the text that is compared between ranks: family, operation, distance to a peer, sizes, type.
-- If the sizes vary in most calls, the token has no sizes and no type.
local function name_calls(job)
  local seen = {}
  for _, rank in ipairs(job.list) do
    for _, call in ipairs(job.ranks[rank].calls) do
      call.what = call.group.kind .. " " .. call.op .. distance(call, rank)
      local of = seen[call.what] or { n = 0, sizes = 0 }
      seen[call.what] = of
      of.n = of.n + 1
      if not of[call.sizes] then of[call.sizes], of.sizes = true, of.sizes + 1 end
    end
  end
  for _, rank in ipairs(job.list) do
    for _, call in ipairs(job.ranks[rank].calls) do
      local of = seen[call.what]
      local varies = of.sizes > 8 and of.sizes * 2 > of.n
      call.token = varies and call.what or call.what .. " " .. call.sizes .. " " .. call.dtype
    end
  end
end

local function at(one, id) return one.by[id] end

local function index(one)
  one.first, one.last, one.by = 0, -1, {}
  for i, call in ipairs(one.calls) do
    if i == 1 then one.first = call.id end
    one.last, one.by[call.id] = call.id, call
  end
end

local function agreement(a, b)
  local same, n = 0, 0
  for id = math.max(a.first, b.first), math.min(a.last, b.last) do
    local x, y = at(a, id), at(b, id)
    if x and y then
      n = n + 1
      if x.token == y.token then same = same + 1 end
    end
  end
  return n > 0 and same / n or 0
end

-- Return whether a rank has the sends and receives that another rank repeats: then both may be of one pipeline stage.
local function has_ends(one, other)
  local mine, theirs = {}, {}
  for _, call in ipairs(one.calls) do mine[call.p2p and call.what or ""] = true end
  for _, call in ipairs(other.calls) do
    if theirs[call.what] and call.p2p and not mine[call.what] then return false end
    theirs[call.what] = true
  end
  return true
end

-- Put ranks with the same program together.
local function classes(job)
  local all = {}
  for _, rank in ipairs(job.list) do
    local one, best, most = job.ranks[rank], nil, 0.7
    for _, class in ipairs(all) do
      local alike = has_ends(one, class[1]) and has_ends(class[1], one)
      local share = alike and agreement(one, class[1]) or 0
      if share > most or share == most and not best then best, most = class, share end
    end
    if #one.calls > 0 then
      if not best then
        best = {}
        all[#all + 1] = best
      end
      best[#best + 1] = one
      one.class = best
    end
  end
  return all
end

-- Return the number of calls in a step, or nil. After this number the calls repeat, and some of them occur only once in
-- it. The last calls of a rank do not count, because they may be the fault.
local function period(class)
  local longest = 0
  for _, one in ipairs(class) do
    longest, one.times = math.max(longest, #one.calls), {}
    for _, call in ipairs(one.calls) do one.times[call.token] = (one.times[call.token] or 0) + 1 end
  end
  for p = 1, longest - 3 do
    local n, wrong, once = 0, 0, false
    for _, one in ipairs(class) do
      for i = #one.calls - 2, p + 1, -1 do
        local token = one.calls[i].token
        n = n + 1
        if token ~= one.calls[i - p].token then
          wrong = wrong + 1
          if wrong > 2 and wrong * 8 > #class * longest then break end
        elseif one.times[token] <= #one.calls // p + 1 then
          once = true
        end
      end
    end
    if n >= 2 and once and wrong * 12 <= n then return p end
  end
end

-- Let the ranks of a class vote on the token of call `id`: with `now` by this call (`without` does not vote), with
-- `before` by the same call of earlier steps. Return the token with most votes, { n, call }, and whether another token
-- has as many votes at this call.
local function votes(class, id, without, before, now)
  local all, best = {}, nil
  local function count(one, k)
    local call = at(one, k)
    if not call then return end
    local of = all[call.token] or { n = 0, call = call }
    all[call.token] = of
    of.n = of.n + 1
    if not best or of.n > best.n then best = of end
  end
  for _, one in ipairs(class) do
    if now and one ~= without and not (one.left and one.left < id) then count(one, id) end
    if before and class.period then
      for k = id - class.period, one.first, -class.period do
        if not one.left or k < one.left then count(one, k) end
      end
    end
  end
  local second = 0
  for _, one in ipairs(class) do -- with equal votes there is no majority
    local call = at(one, id)
    local of = now and call and all[call.token]
    if of and of ~= best then second = math.max(second, of.n) end
  end
  return best, best and second == best.n
end

-- Return the call that the rank should have made at this number, by the votes of the others and of its earlier steps;
-- nil if there are no votes.
function M.expected(one, id)
  if not one.class then return end
  local best = votes(one.class, id, one, true, true)
  return best and best.call
end

-- Return whether a rank went on from its different call and made the next calls as the others did: then its program
-- differs there without a fault.
local function goes_on(class, one, id)
  local same = 0
  for k = id + 1, at(one, id).done and id + 3 or id do
    local best, call = votes(class, k, one, true, true), at(one, k)
    if best and call and best.call.token == call.token then same = same + 1 end
  end
  return same >= 2
end

-- If a call of a rank differs from the calls of the others, set `left` of the rank to the number of its first such
-- call, and append the rank to `found` unless it goes on for long, with a program of its own.
local function leave(class, found)
  local low, high = math.maxinteger, -1
  for _, one in ipairs(class) do low, high = math.min(low, one.first), math.max(high, one.last) end
  for id = low, high do
    local token, unlike, n
    n = 0
    for _, one in ipairs(class) do
      local call = not one.left and at(one, id)
      if call then
        n, token = n + 1, token or call.token
        unlike = unlike or call.token ~= token
      end
    end
    if unlike or n == 1 then
      local best, tie = votes(class, id, nil, true, unlike)
      for _, one in ipairs(class) do
        local call = not one.left and at(one, id)
        if call and best and call.token ~= best.call.token and (unlike or best.n > 1 or #class == 1)
          and not goes_on(class, one, id) then
          one.left, one.tie = id, tie
          if one.last - id <= math.max(MANY, class.period or 0) then found[#found + 1] = one end
        end
      end
    end
  end
end

-- Set job.classes, and `left` of each rank with a different call. Return the ranks whose different call is a fault.
function M.find(job)
  name_calls(job)
  for _, rank in ipairs(job.list) do index(job.ranks[rank]) end
  local found = {}
  job.classes = classes(job)
  for _, class in ipairs(job.classes) do
    class.period = period(class)
    leave(class, found)
  end
  return found
end

-- Return the number of the first call of the first step, after the calls that set up the job, if a dump has it.
local function start(class)
  for _, one in ipairs(class) do
    local id = one.last - class.period
    if one.first == 0 and not one.left then
      while id >= 0 and at(one, id).token == at(one, id + class.period).token do id = id - 1 end
      return id + 1
    end
  end
  return 0
end

-- Return the rank's group of the family of a call.
function M.group_of(job, rank, call)
  if call.group.position[rank] then return call.group end
  local one = job.ranks[rank]
  if one then
    for i = #one.calls, 1, -1 do
      if one.calls[i].group.kind == call.group.kind then return one.calls[i].group end
    end
  end
  for _, group in ipairs(job.order) do
    if group.kind == call.group.kind and group.position[rank] then return group end
  end
end

local function fewer(call) return call.sizes:gsub("[^x,]", "") end

-- Return whether two calls differ only in operation, only in sizes, or only in type. Sizes of uneven operations may
-- differ together with the type.
local function altered(call, other)
  if call.op ~= other.op then return call.sizes == other.sizes and call.dtype == other.dtype end
  if uneven[call.op] and call.sizes ~= other.sizes then return true end
  return (call.sizes == other.sizes) ~= (call.dtype == other.dtype) and fewer(call) == fewer(other)
end

-- Return the fault of a rank with a different call: { kind, rank, group, call, expected, sure, others }.
function M.fault(job, one)
  local id = one.left
  local is, after = at(one, id), at(one, id + 1)
  local e0, e1, e2 = M.expected(one, id), M.expected(one, id + 1), M.expected(one, id + 2)
  local function fault(kind, group, sure, ...)
    return { kind = kind, rank = one.rank, group = M.group_of(job, one.rank, group), call = is, expected = e0,
             sure = sure and not one.tie, others = { ... } }
  end
  local same_group = e0.group.kind == is.group.kind
  local function token(call) return call and call.token end
  local missed = false -- whether others wait in the call that the rank should have made
  for _, wait in ipairs(job.waited[one.rank] or {}) do missed = missed or wait.call.group.kind == e0.group.kind end
  if e1 and is.token == e1.token then
    if is.p2p and missed and not e0.p2p then return fault("skip", e0, false, "peer", "order") end
    if is.p2p then return fault("peer", is, token(after) == e0.token and token(after) ~= token(e2), "skip", "order") end
    if after and token(after) == e0.token and token(after) == token(e2) then -- "a b a": the third call decides
      local third, e3 = token(at(one, id + 2)), token(M.expected(one, id + 3))
      if third and third == e2.token and third ~= e3 then return fault("order", e0, true) end
      return fault("skip", e0, third ~= nil and third == e3, "order")
    end
    if token(after) == e0.token then return fault("order", e0, true) end -- "b a" for "a b"
    if after and token(after) == token(e2) then return fault("skip", e0, true) end
    if after and same_group and token(after) == e1.token then return fault("mismatch", is, true) end
    if after and not same_group and e2 and after.group.kind ~= e0.group.kind then
      return fault("skip", e0, false, "order")
    end
    if same_group and e1.token ~= e0.token then return fault("skip", e0, not altered(is, e0), "mismatch") end
    if e0.p2p then return fault("skip", e0, false, "peer", "order") end
    local p = one.class.period
    if p and (id + 1 - start(one.class)) % p == 0 then return fault("skip", e0, false, "order") end
    return fault("order", e0, false, "skip")
  end
  if is.p2p then return fault("peer", is, e0.p2p or token(after) == e0.token or not after) end
  if is.op == "barrier" then return fault("elsewhere", e0, true) end
  if same_group and not e0.p2p then
    local from = is.fn and e0.fn
    if from and is.fn == e0.fn then return fault("mismatch", is, true) end
    if not from and altered(is, e0) then return fault("mismatch", is, is.sizes == e0.sizes, "extra") end
    if token(after) == token(e1) and after then return fault("mismatch", is, true) end
    local unlike = is.op ~= e0.op or from ~= nil or fewer(is) ~= fewer(e0) or is.dtype ~= e0.dtype
    return fault("extra", is, e1 ~= nil and unlike, "mismatch", "skip")
  end
  local alike = is.op == e0.op and is.sizes == e0.sizes and is.dtype == e0.dtype
  if not is.p2p and (alike or is.fn and is.fn == e0.fn) then return fault("other_group", e0, true) end
  for k = 2, one.class.period or 0 do -- a later call of the step
    local later = M.expected(one, id + k)
    if later and later.token == is.token then return fault("skip", e0, false, "elsewhere") end
  end
  return fault("elsewhere", e0, false, "extra")
end

M.at, M.altered = at, altered

return M
