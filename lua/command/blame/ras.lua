-- SPDX-License-Identifier: MIT
--
-- ras: read NCCL's report about communicators (ncclras -v: text of NCCL 2.24 and newer, JSON of 2.28.7 and newer), and
-- judge which ranks are at fault; logs.lua uses the same judgement. RAS counts calls when they are made, so with equal
-- counts no rank is late. It does not count sends, receives and all-to-alls.

local host = require "host"
local sorted = require "command.base.sorted"

local IN_PROGRESS = 7 -- ncclResult_t
local MOST = 1 << 20  -- ranks

local M = {}

local function list(value) return type(value) == "table" and value or {} end

-- Return an empty communicator. Its `counts` has for each operation { [number of the last call] = ranks }, `gone` and
-- `failed` have ranks, `what` has by rank the call that the rank is in.
function M.new(label, size)
  return { label = label, size = size, counts = {}, gone = {}, failed = {}, what = {} }
end

-- Record the number of a rank's last call of an operation. Without `rank` record only that ranks have this number.
function M.count(comm, op, number, rank)
  local by = comm.counts[op] or {}
  comm.counts[op] = by
  by[number] = by[number] or {}
  table.insert(by[number], rank)
end

-- Add findings: ranks that are gone, that failed, that are behind, or that are in another call than most.
function M.judge(comm, add, weight)
  local function say(more, kind, ranks, sure, words, settle)
    table.sort(ranks)
    add { weight = weight + more, kind = kind, ranks = ranks, sure = sure, label = comm.label, members = comm.members,
          words = words, settle = settle }
  end
  if #comm.gone > 0 then
    say(4, "gone", comm.gone, comm.dead == true, comm.absent or "they do not answer NCCL's RAS")
  end
  if #comm.failed > 0 then say(2, "inside", comm.failed, false, comm.why or "NCCL reports an error there") end
  for op, by in sorted(comm.counts) do
    local least, most, late, named = nil, 0, {}, {}
    for count, ranks in sorted(by) do
      least, most = least or count, count
      for _, rank in ipairs(ranks) do named[rank] = count end
    end
    -- the text of ncclras lists only the ranks of the minority; all others are in the majority
    local rest = by[least] and #by[least] == 0 and least or most
    for i = 0, least < most and math.min(comm.size, MOST) - 1 or -1 do
      local rank = comm.members and comm.members[i + 1] or i
      if (named[rank] or rest) < most then late[#late + 1] = rank end
    end
    if #late > 0 then
      local words = "%s: call %d is the last of %d of %d ranks, %d that of others%s"
      say(0, "stall", late, false, words:format(op, least, #late, comm.size, most, comm.more or ""),
          most - least == 1 and "a difference of one call is normal in a job that runs: look again, and compare" or nil)
    end
  end
  local kinds, by = {}, {}
  for rank, what in sorted(comm.what) do
    if not by[what] then kinds[#kinds + 1], by[what] = what, {} end
    table.insert(by[what], rank)
  end
  table.sort(kinds, function(a, b) return #by[a] ~= #by[b] and #by[a] < #by[b] or #by[a] == #by[b] and a < b end)
  if #kinds > 1 then
    local few, many = by[kinds[1]], by[kinds[#kinds]]
    say(1, "mismatch", few, #few < #many, ("%s there, %s on others"):format(kinds[1], kinds[#kinds]))
  end
end

-- Return a list of all ranks of a communicator: those that answer, then those that are missing.
local function members_of(one)
  local all = {}
  for _, what in ipairs { "ranks", "missing_ranks" } do
    local some = list(one[what])
    table.move(some, 1, #some, #all + 1, all)
  end
  return all
end

-- Return whether the numbers of a communicator are possible. If a process is missing, NCCL 2.26 to 2.29.7 list
-- communicators with impossible numbers.
local function sound(one)
  local size = math.tointeger(list(one).size)
  if not size or size < 1 or size > MOST or tostring(one.hash):find "^0?x?0*$" then return false end
  local all = members_of(one)
  for _, rank in ipairs(all) do
    local r = math.tointeger(list(rank).rank)
    if not r or r < 0 or r >= size then return false end
  end
  return #all <= size
end

-- Return the name of a process, "host pid GPU".
local function process(rank) return rank.host and ("%s %s %s"):format(rank.host, rank.pid, rank.cuda_dev) or "" end

-- Return a table with the rank in the job by the name of the process. `world` is the size of the largest communicator;
-- the rank in a communicator of this size counts as the rank in the job.
local function ranks_of_all(all, world)
  local found = {}
  for _, one in ipairs(all) do
    for _, rank in ipairs(sound(one) and one.size == world and members_of(one) or {}) do
      found[process(rank)] = rank.rank
    end
  end
  found[""] = nil
  return found
end

-- Replace the ranks in a communicator by ranks of the job, and return the list of its members; if a member is not
-- known, do nothing.
local function rename(one, global)
  local members, all = {}, members_of(one)
  for _, rank in ipairs(all) do members[rank.rank] = global[process(rank)] end
  for rank = 0, one.size - 1 do
    if not members[rank] then return end
  end
  for _, rank in ipairs(all) do rank.rank = members[rank.rank] end
  return (table.move(members, 0, one.size - 1, 1, {}))
end

local function of_json(one)
  local comm = M.new("communicator " .. tostring(one.hash), math.tointeger(one.size))
  for _, rank in ipairs(list(one.ranks)) do
    local status = list(rank.status)
    for op, count in sorted(list(rank.collective_counts)) do
      if math.tointeger(count) then M.count(comm, op, count, rank.rank) end
    end
    local bad = status.init_state or 0
    if bad == 0 and status.async_error ~= IN_PROGRESS then bad = status.async_error or 0 end
    if bad ~= 0 then
      table.insert(comm.failed, rank.rank)
      comm.why = bad == IN_PROGRESS and "they are in its creation" or ("NCCL reports error %s"):format(bad)
    end
  end
  for _, rank in ipairs(list(one.missing_ranks)) do
    table.insert(comm.gone, rank.rank)
    if list(rank.status).considered_dead then comm.dead, comm.absent = true, "NCCL considers them dead" end
  end
  return comm
end

-- Add a finding that names no rank, of a report with n communicators. `cut`: a message if the report is incomplete, or
-- has a fault without a rank; else nil.
local function nobody(add, n, cut)
  if n == 0 then cut = cut or "NCCL's RAS knows no communicator" end
  add { weight = 1, kind = cut and "stall" or "healthy", ranks = {}, sure = false,
        words = cut or ("NCCL's RAS knows %d communicators, and no rank of them is late"):format(n),
        settle = cut and "the whole output of ncclras -v, run while the job hangs"
                 or "look at the GPUs and the network, at sends and receives" }
end

-- Read the JSON of ncclras; return false if the text is something else.
function M.json(text, add)
  if not text:find '"communicators"' then return false end
  local is, all = host.json(text)
  if not is then is, all = host.json((text:gsub('(%d)(%s*"status")', "%1,%2"))) end -- 2.28.7 to 2.28.9 lack a comma
  if not is or type(list(all).communicators) ~= "table" then return false end
  local left, world = 0, 0
  for _, one in ipairs(all.communicators) do world = sound(one) and math.max(world, one.size) or world end
  local global = ranks_of_all(all.communicators, world)
  for _, one in ipairs(all.communicators) do
    if sound(one) then
      local members = rename(one, global)
      local comm = of_json(one)
      comm.members = members
      M.judge(comm, add, 70)
    else
      left = left + 1
    end
  end
  if left > 0 then
    local words = "%d communicators of NCCL's RAS have impossible numbers and are left out: a fault of NCCL 2.26-2.29.7"
    add { note = words:format(left) }
  end
  nobody(add, #all.communicators - left)
  return true
end

-- Read the text of ncclras; return false if the text is something else.
function M.text(text, add)
  if not (text:find "Job summary\n=" and text:find "Communicators%.%.%.") then return false end
  local comm, op, count, state, n, sizes = nil, nil, nil, nil, 0, {}
  for line in (text .. "\n#0-0 (0) END"):gmatch "[^\n]+" do
    local row, many, size = line:match "^%s+(%d+)%s+(%d+)%s+%d+%s+%S+%s+(%d+)%s+%d+%s+%u%S*%s+%S+"
    local group, hash, what = line:match "^#(%d+)%-%d+ %((%x+)%) (%u+)"
    local rank = tonumber(line:match "^%s+Rank (%d+)")
    if row then sizes[row], n = tonumber(size), n + tonumber(many) end
    if line:find "considered dead" then add { note = line:match "^%s*(.*)" } end
    if group then
      if comm then M.judge(comm, add, 70) end
      size, state, count = sizes[group] or 0, what, nil
      comm = size > 0 and not hash:find "^0+$" and M.new("communicator " .. hash, size) or nil
    elseif comm then
      op = line:match "different (%a*) ?operation counts" or op or "calls"
      local at = line:match "launched up to operation (%d+)" or line:find "not launched any" and "0"
      if at and rank then
        M.count(comm, op, tonumber(at), rank)
      elseif at then
        count = tonumber(at)
        M.count(comm, op, count)
      elseif rank and state == "ERROR" then
        table.insert(comm.failed, rank)
        comm.why = line:match "reported (.-) %-%-" or comm.why
      elseif rank and state == "INCOMPLETE" then
        table.insert(comm.gone, rank)
      elseif rank and count then
        M.count(comm, op, count, rank)
      end
    end
  end
  nobody(add, n, not text:find "\nWarnings\n=" and "the output of ncclras is cut short"
                 or text:find "\n#%d" and "NCCL's RAS reports a fault, and no rank that is late" or nil)
  return true
end

return M
