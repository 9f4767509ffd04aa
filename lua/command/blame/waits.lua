-- SPDX-License-Identifier: MIT
--
-- waits: find which rank waits for which others. A rank in a collective that has not ended waits for the members of the
-- group that have not made it; a rank in a send or recv waits for its peer. The chains of waits end at ranks that wait
-- for no other rank: these are at fault.

local program = require "command.blame.program"
local sorted = require "command.base.sorted"

local M = {}

-- Set for each group `made`, by rank the number of its last collective; `times`, by number the time at which the first
-- rank made the collective; and `open_calls`, by number and rank the calls that have not ended.
local function index(job)
  for _, group in sorted(job.groups) do group.made, group.open_calls, group.times = {}, {}, {} end
  for _, rank in ipairs(job.list) do
    for _, call in ipairs(job.ranks[rank].calls) do
      local group = call.group
      if not call.p2p then
        group.made[rank] = math.max(group.made[rank] or 0, call.seq)
        group.times[call.seq] = math.min(group.times[call.seq] or call.at, call.at)
        if not call.done then
          group.open_calls[call.seq] = group.open_calls[call.seq] or {}
          group.open_calls[call.seq][rank] = call
        end
      end
    end
  end
end

-- If a rank's dump has no call of a group, assume that the rank made the calls that others made before its dump begins.
-- `least` is the last call of the group that all ranks with a dump have made.
local function complete(job)
  for _, group in sorted(job.groups) do
    group.least = math.maxinteger
    for _, rank in ipairs(group.ranks) do
      local first = job.ranks[rank] and job.ranks[rank].calls[1]
      if first and not group.made[rank] and first.id > 0 then
        for seq, at in sorted(group.times) do
          if at < first.at then group.made[rank] = seq end
        end
      end
      group.made[rank] = group.made[rank] or 0
      if first then group.least = math.min(group.least, group.made[rank]) end
    end
  end
end

-- Return whether `peer` is in the recv or send that matches a rank's call.
local function meets(job, rank, call, peer)
  for _, one in ipairs(job.ranks[peer] and job.ranks[peer].pending or {}) do
    local back = one.p2p and one.op ~= call.op and one.group == call.group and one.peer
    if back and one.group.ranks[back + 1] == rank then return true end
  end
  return false
end

-- Return whether the dump of a rank was taken while this rank made calls, and before most others made their last call.
local function is_old(job, one)
  local at = {}
  for _, rank in ipairs(job.list) do
    local other = job.ranks[rank]
    if other ~= one and #other.calls > 0 then at[#at + 1] = other.calls[#other.calls].at end
  end
  table.sort(at)
  local last = one.calls[#one.calls]
  local middle = at[(#at + 1) // 2]
  return one.at and last and middle and one.at < middle + 0.5 and one.at - last.at < 1 and last.at < middle
end

-- Operations that end on a rank only after all members have made them.
M.meeting = { all_reduce = true, all_gather = true, reduce_scatter = true, all_to_all = true, barrier = true }

-- Return whether a call has ended although, by its dump, a member has not made it: then the dumps were taken while the
-- job made progress.
local function is_moving(job)
  for _, rank in ipairs(job.list) do
    for _, call in ipairs(job.ranks[rank].calls) do
      local of_all = call.done and M.meeting[call.op] and not call.p2p and call.seq > call.group.least
      for _, member in ipairs(of_all and call.group.ranks or {}) do
        local other = job.ranks[member]
        local tells = other and #other.calls > 0 and other.whole and not other.old
        if tells and call.group.made[member] < call.seq then return true end
      end
    end
  end
  return false
end

-- Set `broken` of ranks whose last call ended by an error, which gloo does not record. The last call of a rank that is
-- in no call cannot have succeeded if a member of the group is gone or broken, and no other member went on.
local function find_broken(job)
  local function is_gone(rank)
    local one = job.ranks[rank]
    return not one or #one.calls == 0 or one.old or one.broken
  end
  local function broke(one)
    local call = one.calls[#one.calls]
    local lacks = false
    for _, member in ipairs(call.group.ranks) do
      local other = job.ranks[member]
      if is_gone(member) then
        lacks = true
      elseif other ~= one and call.group.made[member] >= call.seq
        and (call.group.made[member] > call.seq or other.calls[#other.calls].group ~= call.group) then
        return false
      end
    end
    return lacks
  end
  local more = true
  while more do
    more = false
    for _, rank in ipairs(job.list) do
      local one = job.ranks[rank]
      local ended = not one.states and not is_gone(rank) and #one.pending == 0
      if ended and not one.calls[#one.calls].p2p and broke(one) then one.broken, more = true, true end
    end
  end
end

-- Return whether the dumps have no sends and receives, as with gloo, although there are pipeline stages.
local function is_hidden(job)
  for _, rank in ipairs(job.pipelines and job.list or {}) do
    local one = job.ranks[rank]
    if one.states then return false end
    for _, call in ipairs(one.calls) do
      if call.p2p then return false end
    end
  end
  return job.pipelines ~= nil
end

local STEPS <const> = 8 -- how many earlier steps to compare

-- Return whether the rank `one` can make its next call before the rank `other` makes its call `id`, because in another
-- pipeline or an earlier step the ranks at the same two stages made the two calls in this order.
local function is_free(job, one, other, id)
  local _, place = job.pipelines:locate(one.rank)
  local _, other_place = job.pipelines:locate(other.rank)
  local function at(rank, of, number)
    local like = job.ranks[rank]
    local call = like and like.class == of.class and program.at(like, number)
    return call and call.at
  end
  local period = one.class and one.class.period
  for _, ranks in job.pipelines:groups() do
    for back = 0, period and STEPS * period or 0, period or 1 do
      local due = at(ranks[place + 1], one, one.last + 1 - back)
      local last = at(ranks[other_place + 1], other, id - back)
      if due and last and due < last then return true end
    end
  end
  return false
end

-- If the dumps have no sends and receives, assume that a rank in no call waits for all ranks of its pipeline, except
-- for those that wait for it.
local function find_hidden(job)
  for _, rank in ipairs(M.ranks_in(job, "idle")) do
    local one, pipeline = job.ranks[rank], job.pipelines:locate(rank)
    local call = { op = "a send or recv", group = { label = "pp " .. pipeline } }
    for _, peer in ipairs(job.pipelines:ranks(pipeline)) do
      local other = job.ranks[peer]
      local free = peer == rank or other and #other.calls > 0 and is_free(job, one, other, other.last)
      for _, wait in ipairs(other and other.waits or {}) do free = free or wait.rank == rank and not wait.hidden end
      if not free then table.insert(one.waits, { rank = peer, call = call, hidden = true }) end
    end
  end
end

-- Set job.ranks[rank].pending, the calls that have not ended; .waits, a list of { rank for which it waits, call }; .old
-- and .broken; job.waited[rank], a list of { rank that waits for it, call }; job.absent, ranks without a usable dump;
-- job.whole, no dump is cut short; job.states, a dump has states; job.moving and job.hidden.
function M.find(job)
  index(job)
  complete(job)
  job.waited, job.absent, job.whole = {}, {}, true
  for _, rank in ipairs(job.list) do
    local one = job.ranks[rank]
    one.pending, one.waits = {}, {}
    one.old = is_old(job, one)
    job.whole, job.states = job.whole and one.whole, job.states or one.states
    for _, call in ipairs(one.calls) do
      if not call.done then one.pending[#one.pending + 1] = call end
    end
  end
  for rank = 0, job.world - 1 do
    local one = job.ranks[rank]
    if not one or one.whole and #one.calls == 0 then job.absent[#job.absent + 1] = rank end
  end
  find_broken(job)
  local function wait(one, call, other)
    table.insert(one.waits, { rank = other, call = call })
    job.waited[other] = job.waited[other] or {}
    table.insert(job.waited[other], { rank = one.rank, call = call })
  end
  for _, rank in ipairs(job.list) do
    local one = job.ranks[rank]
    local last = one.broken and one.calls[#one.calls]
    for _, call in ipairs(one.old and {} or one.broken and { last } or one.pending) do
      if call.p2p then
        local peer = call.peer and call.group.ranks[call.peer + 1]
        if peer and not meets(job, rank, call, peer) then wait(one, call, peer) end
      else
        for _, member in ipairs(call.group.ranks) do
          if (call.group.made[member] or 0) < call.seq then wait(one, call, member) end
        end
      end
    end
  end
  job.moving, job.hidden = is_moving(job), is_hidden(job)
  if job.hidden then find_hidden(job) end
end

-- Return the state of a rank: "absent", "old", "cut" (the end of the dump is missing), "idle" (in no call), "ready"
-- (all members have made its call), "waiting", "broken" (an error ended its last call).
function M.state(job, rank)
  local one = job.ranks[rank]
  if not one or one.whole and #one.calls == 0 then return "absent" end
  if one.old then return "old" end
  if not one.whole and one.pending[1] == nil then return "cut" end
  if one.broken then return "broken" end
  if #one.pending == 0 then return "idle" end
  return #one.waits > 0 and "waiting" or "ready"
end

function M.ranks_in(job, state)
  local list = {}
  for rank = 0, job.world - 1 do
    if M.state(job, rank) == state then list[#list + 1] = rank end
  end
  return list
end

-- Return a list of the rank and of those for which it waits, directly or through others, the shortest chains first; and
-- by rank the last link of the chain to it, { rank that waits for it, call }.
local function spread(job, from)
  local before, queue = { [from] = false }, { from }
  for _, rank in ipairs(queue) do
    for _, wait in ipairs(job.ranks[rank] and job.ranks[rank].waits or {}) do
      if before[wait.rank] == nil then
        before[wait.rank] = { rank = rank, call = wait.call }
        queue[#queue + 1] = wait.rank
      end
    end
  end
  return queue, before
end

-- Return the shortest chain of waits from a rank to one of several others, a list of { rank, call, next }.
function M.chain(job, from, to)
  local queue, before = spread(job, from)
  for _, rank in ipairs(queue) do
    if to[rank] and rank ~= from then
      local list = {}
      while before[rank] do
        table.insert(list, 1, { rank = before[rank].rank, call = before[rank].call, next = rank })
        rank = before[rank].rank
      end
      return list
    end
  end
end

-- Return whether a rank of the pipeline waits in a send or recv that comes before this call: then the send or recv is
-- the call for which the others wait.
function M.is_before(job, rank, call)
  for _, wait in ipairs(job.waited[rank] or {}) do
    for _, peer in ipairs(wait.call == call and job.pipelines:ranks(job.pipelines:locate(rank)) or {}) do
      local idle = M.state(job, peer) == "idle" and job.ranks[peer]
      if idle and is_free(job, idle, job.ranks[wait.rank], call.id) then return true end
    end
  end
end

-- Return the ranks in no call for which others wait (if the dumps hide sends and receives: may wait), and that wait for
-- none, or only for each other.
function M.roots(job)
  local all = {}
  for _, rank in ipairs(M.ranks_in(job, "idle")) do
    local closed = job.waited[rank] or job.hidden
    for _, other in ipairs(closed and spread(job, rank) or {}) do
      closed = closed and (select(2, spread(job, other)))[rank] ~= nil
    end
    if closed then all[#all + 1] = rank end
  end
  return all
end

-- Return the median of the times at which ranks with the same program made the call of a wait, or, if the call is a
-- send or recv, ended it.
local function usual(job, wait)
  local times = {}
  for _, one in ipairs(job.ranks[wait.rank].class or {}) do
    local call = one.rank ~= wait.rank and program.at(one, wait.call.id)
    if call and call.token == wait.call.token and call.done then
      times[#times + 1] = call.p2p and call.ended or call.at
    end
  end
  table.sort(times)
  return times[(#times + 1) // 2] or wait.call.at
end

-- Return the call in which others wait for a rank: the next call of its program, or else the call that is usually made
-- first; nil if no rank waits for it. Also return the next call of its program.
function M.owed(job, rank)
  local first, when
  local one = job.ranks[rank]
  local due = one and #one.calls > 0 and program.expected(one, one.last + 1)
  local group = due and program.group_of(job, rank, due)
  for _, wait in ipairs(job.waited[rank] or {}) do
    if group and wait.call.group == group then return wait.call, due end
    local at = usual(job, wait)
    if not first or at < when then first, when = wait.call, at end
  end
  return first, due
end

return M
