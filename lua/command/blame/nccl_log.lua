-- SPDX-License-Identifier: MIT
--
-- nccl_log: read logs of NCCL_DEBUG=INFO: the communicators, their ranks, and the last calls.
--
--   local all = nccl.new(); nccl.read(all, text)
--   all.comms[id]    { id, size, partial, gpus, start, done, calls }, the last four by rank; partial: the log has no id
--   all.lost         a list of { who, peer, rank }: the process `who` lost its peer

local sorted = require "command.base.sorted"

local M = {}

function M.new() return { comms = {}, ids = {}, who = {}, last = {}, lost = {} } end

local function integer(text, base) return math.tointeger(tonumber(text, base)) or 0 end

-- Return the id of a communicator. NCCL 2.23 and newer print no id of a communicator that was split from another one.
-- Here the parent's id, the number of the split and the color make its id.
local function id_of(all, gpu, rest)
  local id = rest:match "commId (0x%x+)"
  local parent, count, color = rest:match "parent (0x%x+) ?%l*C?o?u?n?t? ?(%d*) color (%-?%d+)"
  parent = parent and all.ids[gpu .. parent]
  return id or parent and ("%s/%s/%s"):format(parent, count, color)
end

local function one_line(all, who, rest)
  local pointer, rank, size = rest:match "comm (0x%x+) rank (%d+) nranks (%d+)"
  if pointer then
    local gpu = who .. " " .. (rest:match "busId (%x+)" or "")
    local id = id_of(all, gpu, rest)
    local key = id or "of " .. size
    local comm = all.comms[key] or { id = key, size = integer(size), partial = not id, gpus = {}, start = {},
                                     done = {}, calls = {} }
    all.comms[key], rank = comm, integer(rank)
    all.ids[gpu .. pointer], comm.gpus[rank] = id, gpu
    all.who[who .. pointer], all.last[who] = { rank = rank, comm = comm }, rank
    if rest:find "Init START" then comm.started, comm.start[rank] = true, true end
    if rest:find "Init COMPLETE" then comm.done[rank] = true end
  end
  local op, count, many, kind = rest:match "(%a+): opCount (%x+) .-count (%d+) datatype (%d+)"
  local of = op and all.who[who .. (rest:match "comm (0x%x+)" or "")]
  if of then
    of.comm.calls[of.rank] = { n = integer(count, 16), what = ("%s of %s, type %s"):format(op, many, kind) }
  end
  local peer = rest:match "NET/IB ?: Got completion from peer (%S+)"
               or rest:match "Connection closed by remote peer (%S+)"
  if peer then all.lost[#all.lost + 1] = { who = who, peer = peer, rank = all.last[who] } end
end

-- Read a log. Several processes may write one file, so a line may begin inside another one.
function M.read(all, text)
  for part in text:gsub("%S+:%d+:%d+ %[%-?%d+%] ", "\n%0"):gmatch "[^\n]+" do
    local who, rest = part:match "^(%S+:%d+):%d+ %[%-?%d+%] .-NCCL (%u.*)" -- FILE:LINE NCCL WARN
    if who then one_line(all, who, rest) end
  end
end

-- Return the size of the largest communicator (nil: none has an id); by the id of each communicator with lines of all
-- its ranks, its members in order, as ranks of the largest communicator; and how many communicators lack lines of some
-- ranks.
function M.groups(all)
  local world, rank_of, groups, partial = nil, {}, {}, 0
  for _, comm in sorted(all.comms) do
    if not comm.partial and (not world or comm.size > world.size) then world = comm end
  end
  for rank, gpu in sorted(world and world.gpus or {}) do rank_of[gpu] = rank end
  for id, comm in sorted(all.comms) do
    local ranks = {}
    for _, gpu in sorted(comm.partial and {} or comm.gpus) do ranks[#ranks + 1] = rank_of[gpu] end
    if #ranks == comm.size then groups[id] = ranks else partial = partial + 1 end
  end
  return world and world.size, groups, partial
end

return M
