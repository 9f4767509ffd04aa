-- SPDX-License-Identifier: MIT
--
-- waits: who waits for whom. A rank waits in a call that has not ended, for the members of the group that have not made
-- it; in send and recv for its peer. Following the waits, somebody waits for nobody: there is the fault.

local program = require "command.blame.program"
local sorted = require "command.base.sorted"

local M = {}

-- The last collective of each group that each rank has made, and the calls of a group by number.
local function index(job)
  for _, group in sorted(job.groups) do group.made, group.by, group.times = {}, {}, {} end
  for _, rank in ipairs(job.list) do
    for _, call in ipairs(job.ranks[rank].calls) do
      local group = call.group
      if not call.p2p then
        group.made[rank] = math.max(group.made[rank] or 0, call.seq)
        group.times[call.seq] = math.min(group.times[call.seq] or call.at, call.at)
        if not call.done then
          local of = group.by[call.seq] or {}
          group.by[call.seq] = of
          of[rank] = call
        end
      end
    end
  end
end

-- The number of a group's last collective that all of its members with a dump have made. A rank whose dump begins after
-- it and has no call of the group has made those that others made before.
local function least(job)
  for _, group in sorted(job.groups) do
    group.least = math.maxinteger
    for _, rank in ipairs(group.ranks) do
      local one = job.ranks[rank]
      local first = one and one.calls[1]
      local made = group.made[rank] or 0
      for seq, at in sorted(made == 0 and first and first.id > 0 and group.times or {}) do
        if at < first.at then made = seq end
      end
      if first then group.least = math.min(group.least, made) end
      if one then group.made[rank] = made end
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

-- Whether sends and receives are in no dump, as with gloo, though there are pipeline stages.
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

local STEPS = 8 -- earlier ones that are looked at

-- How often ranks in the place of x, in other pipelines and earlier steps, made what comes `after` its last call (1; 0:
-- the last one itself) before those in the place of y made theirs; and how often not.
local function order(job, x, after_x, y, after_y)
  local first, later = 0, 0
  local function at(rank, one, after, steps)
    local other = job.ranks[rank]
    local call = other and other.class == one.class and program.at(other, one.last + after - steps)
    return call and call.at
  end
  local one, two = job.ranks[x], job.ranks[y]
  local _, place_x = job.pipelines:locate(x)
  local _, place_y = job.pipelines:locate(y)
  for _, ranks in job.pipelines:groups() do
    for steps = 0, one.class.period and STEPS or 0 do
      local back = steps * (one.class.period or 0)
      local a, b = at(ranks[place_x + 1], one, after_x, back), at(ranks[place_y + 1], two, after_y, back)
      if a and b and a < b then first = first + 1 elseif a and b then later = later + 1 end
    end
  end
  return first, later
end

-- Where sends and receives are in no dump, a rank in no call may wait for any of its pipeline in one: but for one that
-- waits for it, or that made its last call, in other pipelines and steps, after what this one made next.
local function find_hidden(job)
  for _, rank in ipairs(job.list) do
    local one = job.ranks[rank]
    local pipeline = M.state(job, rank) == "idle" and job.pipelines:locate(rank)
    local call = pipeline and { op = "a send or recv", group = { label = "pp " .. pipeline } }
    for _, peer in ipairs(pipeline and job.pipelines:ranks(pipeline) or {}) do
      local other = job.ranks[peer]
      local past = false
      for _, wait in ipairs(other and other.waits or {}) do past = past or wait.rank == rank and not wait.hidden end
      past = past or other and #other.calls > 0 and order(job, rank, 1, peer, 0) > 0
      if peer ~= rank and not past then
        table.insert(one.waits, { rank = peer, call = call, hidden = true })
      end
    end
  end
end

-- job.ranks[rank].pending: the calls that have not ended; .waits: { { for = rank, call } ... }; .old. job.waited[rank]:
-- the calls that wait for it: { rank, call }. job.absent: ranks without a usable dump.
function M.find(job)
  index(job)
  least(job)
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
  job.hidden = is_hidden(job)
  if job.hidden then find_hidden(job) end
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

-- The ranks that a rank waits for, and those that these wait for: in the order of the shortest chain to them, and by
-- rank how it is reached, { rank, call }.
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

-- The shortest chain of waits from a rank to one of some ranks: a list of { rank, call, next }.
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
local function due_at(job, rank)
  local one, times = job.ranks[rank], {}
  for _, other in ipairs(one.class or {}) do
    local call = other ~= one and program.at(other, one.last + 1)
    if call then times[#times + 1] = call.at end
  end
  table.sort(times)
  return times[(#times + 1) // 2] or math.huge
end

-- Which stages of a pipeline have the fault more often: those in the middle make twice as many sends and receives; a
-- send too many of the last one goes back, and nobody waits behind it.
local function oddness(job, rank)
  local _, place = job.pipelines:locate(rank)
  if place == 0 then return 1 end
  return place == job.pipelines.size - 1 and 2 or -place / job.pipelines.size
end

-- The ranks in no call that wait for nobody, or only for each other: the likeliest to have the fault first. What is due
-- on a victim comes after what is due on the rank that has it; where the last call was one of all of them, none was
-- first.
function M.roots(job, together)
  local all, due, victim = {}, {}, {}
  for _, rank in ipairs(job.list) do
    local closed = M.state(job, rank) == "idle" and (job.waited[rank] or job.hidden)
    for _, other in ipairs(closed and spread(job, rank) or {}) do
      closed = closed and (select(2, spread(job, other)))[rank] ~= nil
    end
    if closed then all[#all + 1], due[rank] = rank, due_at(job, rank) end
  end
  for _, rank in ipairs(job.hidden and not together(job, all) and all or {}) do
    for _, other in ipairs(all) do
      local first, later = order(job, other, 1, rank, 1)
      if first > 0 and later == 0 then victim[rank] = true end
    end
  end
  table.sort(all, function(a, b)
    if victim[a] ~= victim[b] then return victim[b] == true end
    local x, y = job.hidden and oddness(job, a) or due[a], job.hidden and oddness(job, b) or due[b]
    if x ~= y then return x < y end
    return a < b
  end)
  return all
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
