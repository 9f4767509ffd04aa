-- SPDX-License-Identifier: MIT
--
-- waits: who waits for whom. A rank waits in a call that has not ended, for the members of the group that have not made
-- it; in send and recv for its peer. Following the waits, somebody waits for nobody: there is the fault.

local program = require "command.blame.program"
local sorted = require "command.base.sorted"

local M = {}

-- The last collective of each group that each rank has made, and the calls of a group by number.
local function index(job)
  for _, group in sorted(job.groups) do group.made, group.by = {}, {} end
  for _, rank in ipairs(job.list) do
    for _, call in ipairs(job.ranks[rank].calls) do
      local group = call.group
      if not call.p2p then
        group.made[rank] = math.max(group.made[rank] or 0, call.seq)
        if not call.done then
          local of = group.by[call.seq] or {}
          group.by[call.seq] = of
          of[rank] = call
        end
      end
    end
  end
end

-- The number of a group's last collective that all of its members with a dump have made.
local function least(job)
  for _, group in sorted(job.groups) do
    group.least = math.maxinteger
    for _, rank in ipairs(group.ranks) do
      local one = job.ranks[rank]
      if one and #one.calls > 0 then group.least = math.min(group.least, group.made[rank] or 0) end
      if one then group.made[rank] = group.made[rank] or 0 end
    end
  end
end

-- Whether two ranks are in each other's send and recv.
local function meets(job, rank, call, peer)
  local other = job.ranks[peer]
  if not other then return false end
  for _, one in ipairs(other.pending) do
    local back = one.p2p and one.op ~= call.op and one.group == call.group and one.peer
    if back and one.group.ranks[back + 1] == rank then return true end
  end
  return false
end

-- Whether the dump of a rank was taken long before the others.
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

-- Operations that end on one rank only after all have made them.
local meeting = { all_reduce = true, all_gather = true, reduce_scatter = true, all_to_all = true, barrier = true }

-- job.moved: how many ranks with a dump lack calls that have ended on others: the dumps were taken while the job moved.
-- Gloo ends a call after an error, too: `broken` are ranks that are in no call, but whose last one cannot have ended
-- well, since a rank that is not there is one of its members, and no other has gone on.
local function judge_ends(job)
  local moved, broken, more = {}, {}, true
  for _, rank in ipairs(job.list) do
    for _, call in ipairs(job.ranks[rank].calls) do
      if call.done and meeting[call.op] and not call.p2p then
        for _, member in ipairs(call.seq > call.group.least and call.group.ranks or {}) do
          local other = job.ranks[member]
          local tells = other and #other.calls > 0 and other.whole and not other.old
          if tells and call.group.made[member] < call.seq then moved[member] = true end
        end
      end
    end
  end
  job.moved = 0
  for _ in sorted(moved) do job.moved = job.moved + 1 end
  local function gone(rank)
    local one = job.ranks[rank]
    return not one or #one.calls == 0 or one.old or broken[rank]
  end
  while more do
    more = false
    for _, rank in ipairs(job.list) do
      local one = job.ranks[rank]
      local call = one.calls[#one.calls]
      if call and not one.states and not gone(rank) and #one.pending == 0 and not call.p2p then
        local lacks, past = false, false
        for _, member in ipairs(call.group.ranks) do
          local other = job.ranks[member]
          if gone(member) then
            lacks = true
          elseif other ~= one and (other.calls[#other.calls].group ~= call.group or call.group.made[member] > call.seq)
            and (call.group.made[member] or 0) >= call.seq then
            past = true
          end
        end
        if lacks and not past then broken[rank], more = true, true end
      end
    end
  end
  job.broken = broken
end

-- job.ranks[rank].pending: the calls that have not ended; .waits: { { for = rank, call } ... }; .old. job.waited[rank]:
-- the calls that wait for it: { rank, call }. job.absent: ranks without a usable dump.
function M.find(job)
  index(job)
  least(job)
  job.waited, job.absent = {}, {}
  for _, rank in ipairs(job.list) do
    local one = job.ranks[rank]
    one.pending, one.waits = {}, {}
    one.old = is_old(job, one)
    for _, call in ipairs(one.calls) do
      if not call.done then one.pending[#one.pending + 1] = call end
    end
  end
  for rank = 0, job.world - 1 do
    local one = job.ranks[rank]
    if not one or one.whole and #one.calls == 0 then job.absent[#job.absent + 1] = rank end
  end
  judge_ends(job)
  local function wait(one, call, other)
    table.insert(one.waits, { rank = other, call = call })
    job.waited[other] = job.waited[other] or {}
    table.insert(job.waited[other], { rank = one.rank, call = call })
  end
  for _, rank in ipairs(job.list) do
    local one = job.ranks[rank]
    for _, call in ipairs(one.old and {} or one.pending) do
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
end

-- What a rank is in: "absent", "old", "cut" (its end is not in the dump), "idle" (in no call), "ready" (all are there,
-- it could go on), "waiting", "broken" (an error ended its last call).
function M.state(job, rank)
  local one = job.ranks[rank]
  if not one or one.whole and #one.calls == 0 then return "absent" end
  if one.old then return "old" end
  if not one.whole and one.pending[1] == nil then return "cut" end
  if job.broken[rank] then return "broken" end
  if #one.pending == 0 then return "idle" end
  return #one.waits > 0 and "waiting" or "ready"
end

-- The shortest chain of waits from a rank to one of some ranks: a list of { rank, call, next }.
function M.chain(job, from, to)
  local before, queue, at = { [from] = false }, { from }, 1
  while queue[at] do
    local rank = queue[at]
    if to[rank] and rank ~= from then
      local list = {}
      while before[rank] do
        table.insert(list, 1, { rank = before[rank].rank, call = before[rank].call, next = rank })
        rank = before[rank].rank
      end
      return list
    end
    for _, wait in ipairs(job.ranks[rank] and job.ranks[rank].waits or {}) do
      if before[wait.rank] == nil then
        before[wait.rank] = { rank = rank, call = wait.call }
        queue[#queue + 1] = wait.rank
      end
    end
    at = at + 1
  end
end

-- When ranks with the same program had what this call waits for.
local function usual(job, wait)
  local class, times = job.ranks[wait.rank].class or {}, {}
  for _, one in ipairs(class) do
    local call = one.rank ~= wait.rank and program.at(one, wait.call.id)
    if call and call.token == wait.call.token and call.done then
      times[#times + 1] = call.p2p and call.ended or call.at
    end
  end
  table.sort(times)
  return times[(#times + 1) // 2] or wait.call.at
end

-- When the ranks with its program made the call after its last one; math.huge: none has.
function M.due_at(job, rank)
  local one, times = job.ranks[rank], {}
  for _, other in ipairs(one.class or {}) do
    local call = other ~= one and program.at(other, one.last + 1)
    if call then times[#times + 1] = call.at end
  end
  table.sort(times)
  return times[(#times + 1) // 2] or math.huge
end

-- Whether sends and receives are in no dump, as with gloo, though there are pipeline stages.
function M.hidden(job)
  for _, rank in ipairs(job.list) do
    local one = job.ranks[rank]
    if one.states then return false end
    for _, call in ipairs(one.calls) do
      if call.p2p then return false end
    end
  end
  return job.stages
end

-- The call that a rank should have made and did not, on which others wait: by its program, or the one that came first
-- on other ranks. And what its program has there.
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
