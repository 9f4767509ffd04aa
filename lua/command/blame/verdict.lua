-- SPDX-License-Identifier: MIT
--
-- verdict: find out from the dumps of the flight recorder which rank is at fault. A verdict is
--   { kind, ranks, group, sure, candidates = { { kind, ranks }, ... }, call, expected, due, words, settle }
-- call: the wrong call of the rank, or the call in which others wait for it; expected: the call that the others made
-- instead; due: the next call of the rank by its program; words: more facts, as text; settle: where to look to become
-- sure, as text (only logs.lua and ras.lua set it).
--
-- These questions are asked in turn, and the first yes decides: Does nothing hang? Did a rank make another call than
-- the others? Do the members of a group make one call with different operations, sizes or types? Is there a rank for
-- which others wait, and which waits for none?

local program = require "command.blame.program"
local sorted = require "command.base.sorted"
local waits = require "command.blame.waits"

-- The earlier step of a rank shows which call should be next. That is a proof only if the rank has repeated more than
-- FEW calls of the step; else only a majority of other ranks proves a call wrong.
local FEW = 8
local SOON = 1 -- seconds: if ranks made their last calls less than this before their dumps, nothing hangs

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

-- Return how long before its dump a rank made its last call, as the median over ranks, or nil if no dump has a time;
-- and the longest pause between two calls of a rank.
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

local ranks_in = waits.ranks_in

local function healthy(words, sure)
  return { kind = "healthy", ranks = {}, sure = sure, candidates = {}, words = words }
end

-- Make one verdict of all faults. The ranks with the same kind of fault as the first, at the same call, are the ranks
-- of the verdict; faults of other kinds become candidates.
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
      all.sure = all.sure and one.sure and job.ranks[one.rank].whole
    end
  end
  local class = job.ranks[first.rank].class
  local repeated = class.period and #job.ranks[first.rank].calls - class.period or 0
  all.sure = all.sure and (repeated > FEW or 2 * #all.ranks < #class) -- else nothing shows which ranks are wrong
  table.sort(all.ranks)
  for _, kind in ipairs(first.others) do all.candidates[#all.candidates + 1] = { kind = kind, ranks = all.ranks } end
  for _, one in ipairs(faults) do
    if one.kind ~= first.kind then all.candidates[#all.candidates + 1] = { kind = one.kind, ranks = { one.rank } } end
  end
  return all
end

-- Return the verdict on ranks that made another call than the others.
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

-- Return the verdict on members that made one call in different ways. It is used if comparing the programs of ranks
-- found nothing, because there are few steps, or because no two ranks have the same program.
local function of_members(job)
  local best
  for _, group in sorted(job.groups) do
    for _, calls in sorted(group.open_calls) do
      local by, kinds = {}, {}
      for rank, call in sorted(calls) do
        local alike = call.op == "gather" or call.op == "scatter" or call.op == "all_to_all"
        local what = alike and call.op or call.op .. " " .. call.sizes .. " " .. call.dtype
        if not by[what] then kinds[#kinds + 1], by[what] = what, {} end
        table.insert(by[what], rank)
      end
      table.sort(kinds, function(a, b) return #by[a] < #by[b] end)
      local few, many = by[kinds[1]], by[kinds[2]]
      if many and not (best and best.call.at <= calls[few[1]].at) then
        local call, expected = calls[few[1]], calls[many[1]]
        -- If two calls differ in more than one of operation, size and type, a rank may have left out a call.
        local changed = program.altered(call, expected)
        best = { kind = "mismatch", ranks = few, group = group, call = call, expected = expected,
                 sure = changed and #kinds == 2 and #few * 2 <= #many, candidates = {} }
        for i, kind in ipairs(changed and { "mismatch" } or { "skip", "extra" }) do
          best.candidates[i] = { kind = kind, ranks = changed and many or few }
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

local function one_candidate(kind, rank) return { kind = kind, ranks = { rank } } end

-- Dumps without sends and receives only show which ranks of a pipeline are in no call, and for which of these ranks
-- other ranks of the stage wait. A root is a rank for which others wait, and which waits for none. Choose the pipeline
-- with the most roots for which other ranks of their stage wait. Return { roots, held, idle }: the roots of this
-- pipeline, by stage; the roots for which other ranks of their stage wait, the longest wait first; and how many ranks
-- of the pipeline are in no call.
local function find_pipeline(job, roots)
  local stage, is_root = job.world // job.pipelines.size, {}
  for _, rank in ipairs(roots) do is_root[rank] = true end
  local best, most = nil, -1
  for _, ranks in job.pipelines:groups() do
    local mine, held, at, idle = {}, {}, {}, 0
    for _, rank in ipairs(ranks) do
      idle = idle + (waits.state(job, rank) == "idle" and 1 or 0)
      if is_root[rank] then
        mine[#mine + 1] = rank
        local call, due = waits.owed(job, rank)
        local next = call and due and call.group.kind == due.group.kind
        if next and #call.group.ranks < stage then held[#held + 1], at[rank] = rank, call.at end
      end
    end
    local n = 1000 * #held + #mine
    table.sort(held, function(a, b) return at[a] < at[b] end)
    if n > most then best, most = { roots = mine, held = held, idle = idle }, n end
  end
  return best
end

-- Return pairs of a kind and a rank, the likeliest first, for dumps without sends and receives. A rank for which its
-- stage waits is slow ("stall"), or in a send or recv without a partner ("peer"). If a rank sends once too often, the
-- next recv of its partner takes this message, and the pipeline hangs later; in recorded hangs this rank was the only
-- root, or the last root but one. Otherwise stages in the middle are the likeliest, because they make the most sends
-- and receives.
local function likely(job, all)
  local size, found = job.pipelines.size, find_pipeline(job, all)
  local roots, held = found.roots, found.held
  local n, last, _, place = #roots, roots[#roots], job.pipelines:locate(roots[#roots])
  if #held > 0 and found.idle < #ranks_in(job, "idle") then
    local wrong = #held > 1 or n > 2 and held[1] == last
    return wrong and "peer" or "stall", held[1], "peer", held[2] or held[1], "stall", held[1]
  end
  if n == 1 and (place == 0 or found.idle > 1) then return "stall", last, "peer", last end
  if n == 1 then return "peer", last, "stall", last end
  if place < size - 1 then return "peer", roots[n - 1], "stall", last, "peer", last end
  local due = select(2, waits.owed(job, roots[1]))
  -- If the next call of the first root is in a group inside its stage, the root may hang in a send or recv before it.
  local bound = due and #due.group.ranks < job.world // size
  if bound then return "peer", roots[1], "stall", last, "stall", roots[1] end
  if size == 2 then return "stall", last, "stall", roots[1], "peer", roots[1] end
  local middle = n // 2 + 1
  return "peer", roots[middle], "peer", roots[middle + 1], "stall", last, "peer", roots[middle - 1]
end

-- Return whether the last call of all these ranks is the same collective.
local function together(job, ranks)
  local first = ranks[1] and job.ranks[ranks[1]].calls
  for _, rank in ipairs(ranks) do
    local calls = job.ranks[rank].calls
    if calls[#calls].group ~= first[#first].group or calls[#calls].seq ~= first[#first].seq then return false end
  end
  return true
end

-- Return the verdict on ranks for which others wait, and which wait for none.
local function of_waits(job)
  local hidden, idle = job.hidden, waits.roots(job)
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
    local index = hidden and (kind == "peer" or not call or waits.is_before(job, ranks[1], call))
                  and job.pipelines:locate(ranks[1])
    local stage = index and { family = "pp", index = index, ranks = job.pipelines:ranks(index), label = "pp " .. index }
    return { kind = kind, ranks = ranks, group = stage or call and call.group, call = call, due = due, sure = sure,
             candidates = candidates }
  end
  if #idle > 0 and (#old == 0 or hidden) then
    local group = #idle > 1 and is_group(job, idle)
    if group and (not hidden or together(job, idle)) then
      local all = verdict("ahead", idle, false)
      table.sort(idle)
      all.group = group
      add("stall", idle)
      return all
    end
    if hidden then
      local list = { likely(job, idle) }
      for i = 3, #list, 2 do add(list[i], { list[i + 1] }) end
      add("gone", absent)
      return verdict(list[1], { list[2] }, false)
    end
    add("stall", idle, 2)
    add("gone", absent)
    return verdict("stall", { idle[1] }, #idle == 1 and #job.absent == 0 and job.whole and not job.guessed)
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

-- Return the verdict if all members have made a call that does not end, or if all ranks wait in a circle. In a circle
-- no rank is the first: name all of its ranks, if they are at most three. For a call that does not end, name the first
-- member, and the next ones as candidates: a guess, because dumps do not show which member has not sent its bytes.
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

-- Return whether the job still makes progress: a call that all members made has ended only on some ranks. With gloo two
-- different open calls show it, too, because a rank has one open call at a time; with NCCL it may have several.
local function is_busy(job)
  local first
  for _, rank in ipairs(ranks_in(job, "ready")) do
    for _, call in ipairs(job.ranks[rank].pending) do
      first = first or call
      if not job.states and (call.group ~= first.group or call.seq ~= first.seq) then return true end
    end
  end
  local n = 0
  for _ in sorted(first and not first.p2p and first.group.open_calls[first.seq] or {}) do n = n + 1 end
  return n > 0 and waits.meeting[first.op] and n < #first.group.ranks
end

return function(job)
  local found = program.find(job)
  waits.find(job)
  local since, pause = quiet(job)
  local pending = #ranks_in(job, "waiting") + #ranks_in(job, "ready")
  if pending == 0 and #job.absent == 0 and #ranks_in(job, "old") == 0 then
    return healthy(job.hidden and "all calls have ended, but gloo's dumps have no sends and receives"
                   or "all calls have ended", not job.hidden)
  end
  if since and since < math.max(SOON, 1.5 * pause) then
    return healthy(("the last calls were made %.1f s before the dumps"):format(math.max(since, 0)), true)
  end
  local verdict = of_program(job, found) or of_members(job)
  if verdict then
    verdict.sure = verdict.sure and not job.apart and not job.guessed
    return verdict
  end
  if #job.absent == 0 and (job.moving or is_busy(job)) then
    return healthy("several calls can still end: the job may be making progress", false)
  end
  return of_waits(job) or of_rest(job) or healthy("nobody waits", false)
end
