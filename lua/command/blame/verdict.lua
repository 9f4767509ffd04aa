-- SPDX-License-Identifier: MIT
--
-- verdict: what the dumps of the flight recorder say together. A verdict is
--   { kind, ranks, group, sure, candidates = { { kind, ranks }, ... }, call, expected, due, words, settle }
-- The order of evidence: nothing hangs; a rank made another call than the others; members of one call differ; a rank
-- that others wait for waits for nobody.

local program = require "command.blame.program"
local sorted = require "command.base.sorted"
local waits = require "command.blame.waits"

local FEW = 8  -- calls that repeat those of a step before: of so few nothing follows
local SOON = 1 -- seconds from its last call to a dump in which nothing hangs

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

-- How long nothing was called before the dumps, and the longest pause between calls; nil: the files do not tell.
local function quiet(job)
  local since, pause = {}, 0
  for _, rank in ipairs(job.list) do
    local one = job.ranks[rank]
    local last = one.calls[#one.calls]
    if one.at and last and not one.old then since[#since + 1] = one.at - last.at end
    for i = 2, #one.calls do pause = math.max(pause, one.calls[i].at - one.calls[i - 1].at) end
  end
  return median(since), pause
end

local function ranks_in(job, state)
  local list = {}
  for rank = 0, job.world - 1 do
    if waits.state(job, rank) == state then list[#list + 1] = rank end
  end
  return list
end

local function healthy(words, sure)
  return { kind = "healthy", ranks = {}, sure = sure, candidates = {}, words = words }
end

-- Faults of one kind at one call belong together.
local function join(job, faults)
  local first = faults[1]
  for _, one in ipairs(faults) do
    local same = one.kind == first.kind and one.expected.token == first.expected.token
    if same and one.rank < first.rank then first = one end
  end
  local all = { kind = first.kind, ranks = {}, group = first.group, sure = first.sure, candidates = {},
                call = first.call, expected = first.expected }
  for _, one in ipairs(faults) do
    if one.kind == first.kind and one.expected.token == first.expected.token then
      all.ranks[#all.ranks + 1] = one.rank
      all.sure = all.sure and one.sure
    end
  end
  local class = job.ranks[first.rank].class
  local repeated = class.period and #job.ranks[first.rank].calls - class.period or 0
  all.sure = all.sure and (repeated > FEW or 2 * #all.ranks < #class) -- else nobody tells who is odd
  table.sort(all.ranks)
  for _, kind in ipairs(first.others) do all.candidates[#all.candidates + 1] = { kind = kind, ranks = all.ranks } end
  for _, one in ipairs(faults) do
    if one.kind ~= first.kind then all.candidates[#all.candidates + 1] = { kind = one.kind, ranks = { one.rank } } end
  end
  return all
end

-- A rank that left the others.
local function of_program(job, found)
  local faults = {}
  for _, one in ipairs(found) do
    if not one.old then faults[#faults + 1] = program.fault(job, one) end
  end
  table.sort(faults, function(a, b)
    if a.call.at ~= b.call.at then return a.call.at < b.call.at end
    return a.rank < b.rank
  end)
  return faults[1] and join(job, faults)
end

-- Members of one call that made different ones of it.
local function of_members(job)
  local best
  for _, group in sorted(job.groups) do
    for _, calls in sorted(group.by) do
      local by, kinds, n = {}, {}, 0
      for rank, call in sorted(calls) do
        local what = call.op .. " " .. call.sizes .. " " .. call.dtype
        if call.op == "gather" or call.op == "scatter" or call.op == "all_to_all" then what = call.op end
        if not by[what] then
          by[what] = {}
          kinds[#kinds + 1] = what
        end
        table.insert(by[what], rank)
        n = n + 1
      end
      if #kinds > 1 then
        table.sort(kinds, function(a, b) return #by[a] < #by[b] end)
        local few = by[kinds[1]]
        local call = calls[few[1]]
        if not best or call.at < best.call.at then
          best = { kind = "mismatch", ranks = few, group = group, call = call, expected = calls[by[kinds[2]][1]],
                   sure = #kinds == 2 and #few < #by[kinds[2]] and #few * 3 <= n, candidates = {} }
          if not program.altered(call, best.expected) then -- a rank that left out a call looks so, too
            best.sure, best.candidates = false, { { kind = "skip", ranks = few }, { kind = "extra", ranks = few } }
          elseif not best.sure then
            best.candidates[1] = { kind = "mismatch", ranks = by[kinds[2]] }
          end
        end
      end
    end
  end
  return best
end

local function is_group(job, ranks)
  for _, group in ipairs(job.order) do
    if #group.ranks == #ranks and group.family ~= "world" then
      local all = true
      for _, rank in ipairs(ranks) do all = all and group.position[rank] end
      if all then return group end
    end
  end
end

-- Whether the last call of all these ranks is one that they made together.
local function together(job, ranks)
  local first = ranks[1] and job.ranks[ranks[1]].calls
  for _, rank in ipairs(ranks) do
    local calls = job.ranks[rank].calls
    if calls[#calls].group ~= first[#first].group or calls[#calls].seq ~= first[#first].seq then return false end
  end
  return true
end

local function one_candidate(kind, rank) return { kind = kind, ranks = { rank } } end

-- The ranks that others wait for and that wait for nobody.
local function of_waits(job)
  local hidden, idle = job.hidden, waits.roots(job, together)
  local absent, old, cut = {}, {}, {}
  local unknown = { absent = absent, old = old, cut = cut }
  for rank = 0, job.world - 1 do
    local list = unknown[waits.state(job, rank)]
    if list and (job.waited[rank] or hidden and list ~= cut) then list[#list + 1] = rank end
  end
  local candidates = {}
  local function add(kind, ranks, from)
    for i = from or 1, #ranks do candidates[#candidates + 1] = one_candidate(kind, ranks[i]) end
  end
  local function verdict(kind, ranks, sure)
    local call, due = waits.owed(job, ranks[1])
    local index = hidden and (kind == "peer" or not call) and job.pipelines:locate(ranks[1])
    local stage = index and { family = "pp", index = index, ranks = job.pipelines:ranks(index), label = "pp " .. index }
    return { kind = kind, ranks = ranks, group = stage or call and call.group, call = call, due = due, sure = sure,
             candidates = candidates }
  end
  if #idle > 0 and not (#old > 0 and not hidden) then
    local group = #idle > 1 and is_group(job, idle)
    if group and (not hidden or together(job, idle)) then
      local all = verdict("ahead", idle, false)
      table.sort(idle)
      all.group = group
      add("stall", idle)
      return all
    end
    local kind = hidden and #idle > 1 and "peer" or "stall"
    if hidden then add(kind == "peer" and "stall" or "peer", { idle[1] }) end
    add(kind, idle, 2)
    add("gone", absent)
    return verdict(kind, { idle[1] }, #idle == 1 and #job.absent == 0 and job.whole and not hidden)
  end
  if #old > 0 then
    add("stall", old)
    add("gone", old, 2)
    return verdict("gone", { old[1] }, false)
  end
  if #absent > 0 then
    table.sort(absent, function(a, b)
      local x, y = waits.owed(job, a), waits.owed(job, b)
      local m, n = #(job.waited[a] or {}), #(job.waited[b] or {})
      if m ~= n then return m > n end
      return (x and x.at or 0) < (y and y.at or 0)
    end)
    add("gone", absent, 2)
    if hidden and #absent > 1 then add("peer", { ranks_in(job, "idle")[1] }) end
    add("mismatch", { absent[1] })
    add("extra", { absent[1] })
    return verdict("gone", { absent[1] }, false)
  end
  if #cut > 0 then
    add("stall", cut)
    return verdict("gone", { cut[1] }, false)
  end
end

-- All members of a call are in it, and it does not end: or all wait in a circle. Of a call from one to all, it is the
-- first that waits without reason; what a call sends to whom is in no dump.
local function of_rest(job)
  local ready = ranks_in(job, "ready")
  if #ready == 0 then
    local waiting = ranks_in(job, "waiting")
    local call = waiting[1] and job.ranks[waiting[1]].pending[1]
    return call and { kind = "order", ranks = #waiting <= 3 and waiting or {}, group = call.group, call = call,
                      sure = false, candidates = {} }
  end
  local first
  for _, rank in ipairs(ready) do
    local call = job.ranks[rank].pending[1]
    if not first or call.at < first.at then first = call end
  end
  local list, candidates = {}, {}
  for _, rank in ipairs(first.group.ranks) do
    for _, call in ipairs(job.ranks[rank] and job.ranks[rank].pending or {}) do
      if call.group == first.group and call.seq == first.seq and call.p2p == first.p2p then list[#list + 1] = rank end
    end
  end
  local kind = first.p2p and "peer" or first.op == "all_to_all" and "mismatch" or "inside"
  for i = 2, math.min(#list, 4) do candidates[i - 1] = one_candidate(kind, list[i]) end
  return { kind = kind, ranks = { list[1] }, group = first.group, call = first, sure = false, candidates = candidates }
end

-- Ranks that could go on, at more than one place: it moves.
local function moves(job)
  local places, n = {}, 0
  for _, state in ipairs { "idle", "ready" } do
    for _, rank in ipairs(ranks_in(job, state)) do
      local last = job.ranks[rank].last
      if not places[last] then
        places[last], n = true, n + 1
      end
    end
  end
  return n
end

return function(job)
  local found = program.find(job)
  waits.find(job)
  local since, pause = quiet(job)
  local pending = #ranks_in(job, "waiting") + #ranks_in(job, "ready")
  if pending == 0 and #job.absent == 0 then
    return healthy(job.hidden and "all calls have ended, but sends and receives are in no dump of gloo"
                   or "all calls have ended", not job.hidden)
  end
  if since and since < math.max(SOON, 1.5 * pause) then
    return healthy(("the last calls were made %.1f s before the dumps"):format(math.max(since, 0)), true)
  end
  local verdict = of_program(job, found) or of_members(job)
  if verdict then
    verdict.sure = verdict.sure and not job.apart
    return verdict
  end
  if #job.absent == 0 and (job.moved > 0 or moves(job) > 2) then
    return healthy("ranks can go on at several places", false)
  end
  return of_waits(job) or of_rest(job) or healthy("nobody waits", false)
end
