-- SPDX-License-Identifier: MIT
--
-- logs: read logs and stacks: torch's watchdog and its desync report, ProcessGroupWrapper, monitoredBarrier, Gloo's
-- timeouts, torchrun, mpirun and srun, NCCL_DEBUG=INFO, NCCL's inspector, ncclras, stacks of py-spy, faulthandler and
-- gdb. Return a list of findings about ranks, { weight, kind, ranks, sure, words, label, members, settle }, the highest
-- weight first, and a list of notes.

local host = require "host"
local nccl = require "command.blame.nccl_log"
local ras = require "command.blame.ras"
local sorted = require "command.base.sorted"

local ABSURD = 1 << 40 -- ignore larger numbers of calls: torch 2.2 and 2.3 print uninitialized ones

local function number(text)
  local n = math.tointeger(tonumber(text))
  return n and n < ABSURD and n or nil
end

local function numbers(text)
  local all = {}
  for n in text:gmatch "%d+" do all[#all + 1] = number(n) end
  return all
end

-- Lines that name ranks: a part of the line, a pattern that captures the ranks and more, weight, kind, and the meaning.
local said = {
  { "exited on signal", "process rank (%d+) with PID %d+ on node (%S+) exited on signal (%d+)", 100, "gone",
    "on %s, ended by signal %s (9 is SIGKILL, often sent when memory is short)" },
  { "MPI_ABORT", "invoked on rank (%d+)", 98, "gone", "called MPI_Abort" },
  { "srun: error:", "srun: error: %S+: tasks? ([%d,]+): ([KS]%a+)", 96, "gone", "%s (srun)" },
  { "monitoredBarrier", "Ranks? ([%d, ]+) failed to pass", 95, "stall", "not at the monitoredBarrier in time" },
  { "monitoredBarrier", "Rank%(s%) ([%d, ]+) failed to pass", 95, "stall", "not at the monitoredBarrier in time" },
  { "Duplicate GPU", "(rank %d+ and rank %d+) both on", 94, "mismatch", "both use one GPU" },
  { "already checked in", "Root : rank (%d+) of %d+ ranks has already", 94, "mismatch",
    "two processes have this rank" },
  { "watchdog got stuck", "%[rank(%d+)%].-got stuck for (%d+) seconds", 60, "stall",
    "stuck on the host for %s s, outside of collectives: Python's lock, or a call of CUDA" },
  { "missing ranks: {", "missing ranks: {([%d, ]+)}", 30, "stall", "not in the collective (torch's fr_trace)" },
  { "Mismatched NCCL", "(rank %d+) version (%d+) rank %d+ version (%d+)", 94, "mismatch",
    "has NCCL %s, another rank %s" },
  { "didn't join collective", "%[([%d, ]+)%] finished collective #(%d+), but didn't join collective #(%d+)", 92,
    "stall", "ended collective %s and never joined %s (torch's desync report)" },
  { "lagging ranks", "%[([%d, ]+)%] are the lagging ranks", 92, "stall",
    "joined no collective (torch's desync report)" },
}

-- Lines that name no rank at fault: a part of the line, weight, kind, the meaning, and how to find out more.
local vague = {
  { "Timed out waiting", 20, "stall", "a rank waited for others in vain, and gloo does not name them",
    "give the logs or stacks of the other ranks" },
  { " has errors", 5, "stall", "dumps were read by torch's fr_trace", "give the dumps themselves" },
  { "the same GPU", 50, "mismatch", "two ranks use one GPU", "look at CUDA_VISIBLE_DEVICES of each rank" },
  { "essage truncated", 50, "mismatch", "sizes differ between ranks, or NCCL_PROTO does", "give the dumps" },
  { "collective mismatch error", 50, "mismatch", "sizes differ between ranks", "give the dumps" },
  { "recvValueWithTimeout failed", 10, "gone", "the process with the store, usually rank 0, is gone",
    "give its log" },
  { "BAD TERMINATION", 10, "gone", "a process ended, and MPICH does not name its rank", "give the log of its host" },
  { "] EVENT: ", 5, "stall", "ncclras -m prints only events", "run ncclras -v" },
  { "PEER_DEAD", 10, "gone", "NCCL's RAS lost a process", "run ncclras -v: it names the ranks" },
}

local function one_line(line, add)
  for _, one in ipairs(said) do
    local ranks, a, b = nil, nil, nil
    if line:find(one[1], 1, true) then ranks, a, b = line:match(one[2]) end
    if ranks then
      add { weight = one[3], kind = one[4], ranks = numbers(ranks), sure = one[3] > 90, words = one[5]:format(a, b) }
    end
  end
  for _, one in ipairs(vague) do
    if line:find(one[1], 1, true) then
      add { weight = one[2], kind = one[3], ranks = {}, sure = false, words = one[4], settle = one[5] }
    end
  end
end

-- Read ProcessGroupWrapper's message about two calls. If their numbers of dims differ, it wrongly prints the length of
-- the second call's record as its operation.
local function fingerprints(line, add)
  local print = "Rank (%d+) is running collective: CollectiveFingerPrint%("
  local a, one, b, other = line:match(print .. "(.-)%), but " .. print .. "(.*)")
  if not a then return end
  local function words(text)
    return (text:match "OpType=([%w_]+)" or "?") .. (text:match "TensorShape=(%[.-%])" or "")
  end
  other = other:find "^SequenceNumber=0OpType" and "one with tensors of other dims" or words(other)
  add { weight = 93, kind = "mismatch", ranks = { number(a) }, sure = false,
        others = { { kind = "mismatch", ranks = { number(b) } } },
        words = ("rank %s makes %s, rank %s %s"):format(a, words(one), b, other),
        settle = "the fingerprints name two ranks; a third tells which is the odd one" }
end

-- Fill `how` with how each rank ended. It has three tables by rank: `failed`, the exit code that a launcher reports;
-- `errors`, the last error that the rank printed; `heard`, true if a launcher names the rank or its log is there. In
-- torchrun's summary a rank with exit code -6 was usually ended by the watchdog, and a rank with -15 by the launcher;
-- these ranks are rarely at fault.
local function how_ranks_end(how, file, add)
  local text = file.text
  local block = text:match "Root Cause %(first observed failure%):(.*)" or ""
  local rank, code = block:match "rank%s*: (%d+) %(local_rank: %d+%).-exitcode%s*: (%-?%d+)"
  rank, code = number(rank), number(code) or 0
  if rank and code == -6 then
    add { weight = 30, kind = "gone", ranks = { rank }, sure = false, words = "failed first, by signal 6" }
  elseif rank and code < 0 and code ~= -15 then
    add { weight = 96, kind = "gone", ranks = { rank }, sure = true,
          words = "failed first, by signal " .. -code .. (code == -9 and ", often sent when memory is short" or "") }
  elseif rank and code > 0 then
    how.failed[rank] = code
    add { known = true }
  end
  local function heard(one, error)
    one = number(one)
    if not one then return end
    how.heard[one], how.errors[one] = true, error or how.errors[one]
    add { known = true }
  end
  local function failed(list, exit)
    for _, one in ipairs(numbers(list)) do how.failed[one] = number(exit) or 1 end
    add { known = true }
  end
  for one in text:gmatch "rank%s*: (%d+) %(local_rank: " do heard(one) end
  heard(file.path:match "/(%d+)/std%a+%.log$") -- torchrun --log-dir
  for one, error in ("\n" .. text):gmatch "\n%[rank(%d+)%]: ([%w_.]+: [^\n]+)" do heard(one, error) end
  for one, exit in text:gmatch "Process name: %[.-,(%d+)%]%s+Exit code:%s+(%d+)" do failed(one, exit) end
  for list, exit in text:gmatch "srun: error: %S+: tasks? ([%d,]+): Exited with exit code (%d+)" do
    failed(list, exit)
  end
end

-- Patterns of errors with which a rank ends because another rank failed or is late.
local victims = { "[Tt]imed out", "[Tt]imeout", "[Cc]onnection closed", "[Cc]onnection re", "[Bb]roken pipe",
                  "was aborted", "ncclRemoteError", "ncclSystemError", "DistBackendError", "DistNetworkError",
                  "DistStoreError" }

local function ended(how, add)
  local own, hurt, silent, failed = {}, 0, {}, false
  for rank, words in sorted(how.errors) do
    local victim = false
    for _, pattern in ipairs(victims) do victim = victim or words:find(pattern) ~= nil end
    if victim then hurt, how.failed[rank] = hurt + 1, nil else own[#own + 1] = rank end
  end
  for rank, code in sorted(how.failed) do
    local words = how.errors[rank]
    failed = true
    add { weight = words and 96 or 60, kind = "gone", ranks = { rank }, sure = words ~= nil,
          words = words and "failed first: " .. words or ("failed first, with exit code %d"):format(code),
          settle = "its log: did the rank itself fail, or a call that waited for others?" }
  end
  if failed then return end
  if #own > 0 then
    return add { weight = 80, kind = "gone", ranks = own, sure = false, words = "ended by " .. how.errors[own[1]] }
  end
  local n = 0
  for rank in sorted(how.heard) do
    if not how.errors[rank] then silent[#silent + 1] = rank end
    n = math.max(n, rank + 1)
  end
  local few = #silent > 0 and #silent <= 3 and #silent < hurt and n == hurt + #silent -- the logs lack no rank
  if hurt > 0 then
    add { weight = few and 62 or 21, kind = "stall", ranks = few and silent or {}, sure = false,
          settle = not few and "give the logs or stacks of the other ranks" or nil,
          words = ("%d ranks waited in vain, or lost a peer%s"):format(hurt, few and "; others print no error" or "") }
  end
end

-- Read a line of the watchdog: keep for each rank the first call that timed out, and the last call that it enqueued.
local function watch(ranks, line)
  local global = number(line:match "%[rank(%d+)%]:")
  local seq, op, more = line:match "WorkNCCL%(SeqNum=(%d+), OpType=([%w_]+),?(.-)Timeout"
  local work, last = line:match "work sequence id: (%d+).-last enqueued work: (%-?%d+)"
  if not work then work, last = line:match "work: (%d+), last enqueued NCCL work: (%-?%d+)" end
  local rank = global or number(line:match "%[Rank (%d+)%] Watchdog" or line:match "Rank (%d+)%]")
  if not rank or not (seq or work) then return end
  local one = ranks[rank] or {}
  ranks[rank] = one
  if seq and (not one.op or number(seq) < one.seq) then
    local size = more:match "NumelIn=(%d+)" or more:match "TensorShape=(%[.-%])" or "?"
    one.seq, one.op = number(seq), ("%s of %s elements"):format(op, size)
  end
  one.seq = one.seq or number(work)
  one.last = number(last) or one.last
  one.group = line:match "PG GUID ([^%]]-) Rank" or line:match "%[PG ([^%]]-) Rank" or one.group
end

local function watched(ranks, add)
  local groups = {}
  for rank, one in sorted(ranks) do
    local name = "group " .. (one.group or "of all ranks")
    local comm = groups[name] or ras.new(name, 0)
    groups[name], comm.n = comm, (comm.n or 0) + 1
    ras.count(comm, "the watchdog", one.seq or 0, rank)
    comm.what[rank] = one.op
    comm.low, comm.high = math.min(comm.low or one.seq, one.seq), math.max(comm.high or one.seq, one.seq)
    comm.size = 0 -- so ranks without a line do not count as missing
  end
  for name, comm in sorted(groups) do
    if comm.low < comm.high then
      add { weight = 88, kind = "stall", ranks = comm.counts["the watchdog"][comm.low], sure = false, label = name,
            words = ("call %d timed out there; others are at call %d"):format(comm.low, comm.high) }
    else
      ras.judge(comm, add, 89)
      add { weight = 40, kind = "inside", ranks = {}, sure = false, label = name,
            words = ("call %d timed out on the %d ranks with a message"):format(comm.low, comm.n),
            settle = "a rank without a message is the first suspect: give the logs of all ranks, or their dumps" }
    end
  end
end

-- Add the findings from logs of NCCL. They name the ranks of a communicator by their numbers in the largest
-- communicator, or, if the logs lack lines of some of its ranks, by their numbers in the communicator itself.
local function communicators(all, add)
  for _, one in ipairs(all.lost) do
    add { weight = 85, kind = "inside", ranks = { one.rank }, sure = false,
          words = ("NCCL on %s lost its peer %s: the network between them, or the peer died")
                  :format(one.who, one.peer) }
  end
  local _, ranks_of = nccl.groups(all)
  for _, one in sorted(all.comms) do
    local comm, members = ras.new("communicator " .. one.id, one.size), ranks_of[one.id]
    local ends, alike, first = true, true, nil
    local function rank_of(rank) return members and members[rank + 1] or rank end
    for rank = 0, one.started and math.min(one.size, 1 << 16) - 1 or -1 do
      if not one.start[rank] then
        table.insert(comm.gone, rank_of(rank))
      elseif not one.done[rank] then
        ends = false
        table.insert(comm.failed, rank_of(rank))
      end
    end
    if ends then comm.gone = {} end -- all that began have finished, so only lines of the others are missing
    comm.members = members
    comm.absent = "they did not begin to create the communicator"
    comm.why = "they began to create the communicator, and did not finish"
    for _, call in sorted(one.calls) do first, alike = first or call.n, alike and (not first or call.n == first) end
    local silent = one.size
    if first then comm.size = 0 end
    for rank, call in sorted(one.calls) do
      silent = silent - 1
      ras.count(comm, "calls", call.n, rank_of(rank))
      if alike then comm.what[rank_of(rank)] = call.what end
      comm.size = rank + 1
    end
    if silent > 0 then comm.more = ("; %d of its %d ranks have no call here"):format(silent, one.size) end
    ras.judge(comm, add, 76)
  end
end

-- For stacks: names of functions that wait in a collective, and files of Python in which a program waits for something
-- else.
local inside = { "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier", "broadcast", "Work::wait",
                 "c10d::", "synchronize", "Synchronize", "ncclGroupEnd", "MPI_", "batch_isend_irecv", "recv (",
                 "send (" }
local of_python = {}
for name in ("threading queue selectors socket subprocess connection popen_fork asyncio runners"):gmatch "%S+" do
  of_python[name .. ".py"] = true
end

-- Return the frames of the main thread, innermost first, as "func (file:line)".
local function main_thread(text)
  local frames, take = {}, false
  for line in text:gmatch "[^\n]+" do
    if line:find "^Thread" or line:find "^Current thread" then
      local main = line:find "MainThread" or line:find "^Thread 1 %(" or line:find "^Current"
                   or line:find "most recent call first"
      take = main and (#frames == 0 or not line:find "^Thread 0x.*most recent")
      if take then frames = {} end
    elseif take then
      local name, where = line:match "^%s+([%w_<>.:~]+) %(([^)]+:%d+)%)"
      if not name then
        local file, at, func = line:match '^  File "([^"]+)", line (%d+) in (%S+)'
        name, where = func or line:match "^#%d+ .- in ([%w_:~<>]+)", file and file .. ":" .. at or "native"
      end
      if name then frames[#frames + 1] = ("%s (%s)"):format(name, where) end
    end
  end
  return frames
end

local function stack(stacks, file, add)
  local text = file.text
  local is = text:find "Python v[%d.]+ %(" or text:find "most recent call first" or text:find "%f[^\n\0]Thread %d+ %("
  if not is then return end
  local rank, frames = number(file.path:gsub("%.%a+$", ""):match "(%d+)$"), main_thread(text)
  if not rank then
    return add { note = file.path .. " has a stack, but its name does not end in the rank, as stack-3.txt" }
  elseif #frames == 0 then
    return add { note = file.path .. " has a stack without frames of the main thread" }
  end
  local words, calls, own = table.concat(frames, "\n"), false, nil
  for _, name in ipairs(inside) do calls = calls or words:find(name, 1, true) ~= nil end
  for _, frame in ipairs(frames) do
    local path, name = frame:match "%((.-([^/]*)):%d+%)$"
    if path and not own and not of_python[name] and not path:find "torch/" and not frame:find "^<" then own = frame end
  end
  stacks[rank] = { calls = calls, top = own or frames[1] }
  add { known = true }
end

local function stacked(stacks, add)
  local out, n, top = {}, 0, nil
  for rank, one in sorted(stacks) do
    n = n + 1
    if not one.calls then out[#out + 1], top = rank, one.top end
  end
  if #out > 0 and #out < n then
    add { weight = 65, kind = "stall", ranks = out, sure = #out == 1,
          words = ("is in %s, not in a collective; %d other stack%s in one"):format(top, n - #out,
                                                                               n - #out == 1 and " is" or "s are") }
  elseif n > 0 then
    add { weight = 15, kind = "stall", ranks = {}, sure = false, settle = "give the stacks of all ranks",
          words = #out == 0 and "all stacks are in a collective" or "no stack is in a collective" }
  end
end

-- Read NCCL's inspector, which writes a line of JSON for each call that has ended. A rank whose last call has a lower
-- number than those of other ranks may be late.
local function inspector(comms, text, add)
  for line in text:gmatch '{"header":[^\n]+' do
    local is, one = host.json(line)
    local head, call = is and one.header or {}, is and one.coll_perf or {}
    local rank, n, size = math.tointeger(head.rank), math.tointeger(call.coll_sn), math.tointeger(head.n_ranks)
    if rank and n and size and head.id then
      local comm = comms[head.id] or ras.new("communicator " .. head.id, size)
      comms[head.id], comm.last = comm, comm.last or {}
      comm.last[rank] = math.max(comm.last[rank] or 0, n)
    end
    add { weight = 1, kind = "inside", ranks = {}, sure = false,
          words = "NCCL's inspector lists only calls that have ended",
          settle = "ncclras -v, or the dumps of torch" }
  end
end

local function inspected(comms, add)
  for _, comm in sorted(comms) do
    for rank, last in sorted(comm.last) do ras.count(comm, "collectives that ended", last, rank) end
    ras.judge(comm, add, 50)
  end
end

return function(files)
  local found, notes, ranks, stacks, inspects, all = {}, {}, {}, {}, {}, nccl.new()
  local how = { failed = {}, errors = {}, heard = {} }
  for _, file in ipairs(files) do
    local known = false
    file.text = file.text:gsub("\r\n", "\n")
    local function add(one)
      known = true
      if one.note then notes[#notes + 1] = one.note elseif one.weight then found[#found + 1] = one end
    end
    if file.text:find '^%s*{"header"' then
      inspector(inspects, file.text, add)
    elseif file.text:find "^%s*{" then
      ras.json(file.text, add)
    else
      ras.text(file.text, add)
      for line in file.text:gmatch "[^\n]+" do
        line = line:gsub("\27%[%d*;?%d*;?%d*m", "")
        one_line(line, add)
        fingerprints(line, add)
        local watches = line:find "WorkNCCL%(" or line:find "last enqueued"
        local writes = line:find(" NCCL ", 1, true)
        if watches then watch(ranks, line) end
        if writes then nccl.read(all, line) end
        known = known or watches or writes
      end
      how_ranks_end(how, file, add)
      stack(stacks, file, add)
    end
    if not known then notes[#notes + 1] = file.path .. ": blame recognizes nothing in it" end
  end
  local function add(one) found[#found + 1] = one end
  ended(how, add)
  watched(ranks, add)
  communicators(all, add)
  inspected(inspects, add)
  stacked(stacks, add)
  table.sort(found, function(a, b)
    if a.weight ~= b.weight then return a.weight > b.weight end
    if #a.ranks ~= #b.ranks then return #a.ranks < #b.ranks end
    return (a.ranks[1] or -1) < (b.ranks[1] or -1)
  end)
  return found, notes
end
