-- SPDX-License-Identifier: MIT
--
-- moongrid blame: each format that it reads or refuses, and files with errors, on which no reader may fail.

local support = dofile "tests/lua/support.lua"
local command = dofile "tests/lua/blame_command.lua"
local json = require "dkjson"
local run, write = support.run, support.write
local blame, verdict, folder_of = command.blame, command.verdict, command.folder_of

-- The pickle of a dump, as torch 2.10 writes it, of calls { group, op, seq, done }.
local function dump(calls, top)
  local out, strings = { "\x80\x02}(" }, 0
  local function text(s)
    out[#out + 1] = "X" .. string.pack("<s4", s) .. "q" .. string.char(strings % 256)
    strings = strings + 1
  end
  local function item(value)
    if type(value) == "string" then
      text(value)
    elseif value == true or value == false then
      out[#out + 1] = value and "\x88" or "\x89"
    elseif type(value) == "number" then
      out[#out + 1] = "\x8a\x08" .. string.pack("<i8", value)
    elseif value.pair then
      text(value[1])
      text(value[2])
      out[#out + 1] = "\x86"
    elseif value[1] or value.list then
      out[#out + 1] = "]("
      for _, one in ipairs(value) do item(one) end
      out[#out + 1] = "e"
    else
      out[#out + 1] = "}("
      for _, pair in ipairs(value.items) do
        text(pair[1])
        item(pair[2])
      end
      out[#out + 1] = "u"
    end
  end
  local entries = { list = true }
  for i, call in ipairs(calls) do
    entries[i] = { items = {
      { "record_id", i - 1 }, { "process_group", { pair = true, call[1], "default_pg" } }, { "collective_seq_id", call[3] },
      { "profiling_name", "nccl:" .. call[2] }, { "time_created_ns", 1700000000000000000 + i }, { "input_sizes", { { 4, 8 } } },
      { "input_dtypes", { "Float" } }, { "state", call[4] and "completed" or "started" }, { "retired", call[4] } } }
  end
  text "version"
  text(top or "2.10")
  text "entries"
  item(entries)
  out[#out + 1] = "u."
  return table.concat(out)
end

local ended, pending = { "0", "all_reduce", 1, true }, { "0", "all_reduce", 2, false }

describe("moongrid blame reads", function()
  it("dumps that lack members: the ranks that call", function()
    local said = verdict(folder_of { rank_0 = dump { ended, pending }, rank_1 = dump { ended, pending }, rank_2 = dump { ended } })
    assert.same({ "stall", { 2 } }, { said.kind, said.ranks })
  end)

  it("a dump that is cut short, as far as it goes", function()
    local whole = dump { ended, pending }
    local said = verdict(folder_of { rank_0 = whole, rank_1 = whole:sub(1, -40), rank_2 = dump { ended } })
    assert.same({ "stall", { 2 } }, { said.kind, said.ranks })
  end)

  it("a damaged dump beside others, with a note", function()
    local folder = folder_of { rank_0 = dump { ended, pending }, rank_1 = "\x80\x02}\xff.", rank_2 = dump { ended } }
    local out, err = blame(folder)
    assert.truthy(out:find "^rank 2: in no call")
    assert.equal(("moongrid: note: %s/rank_1 is left out: byte 3: opcode 0xFF is in no dump\n"):format(folder), err)
  end)

  it("a tar, a tar.gz and a folder alike", function()
    local folder = folder_of { rank_0 = dump { ended, pending }, rank_1 = dump { ended } }
    run(("cd %s && tar cf ../%s.tar . && tar czf ../%s.tgz ."):format(folder, folder:match "[^/]*$", folder:match "[^/]*$"))
    local all = { (blame(folder)), (blame(folder .. ".tar")), (blame(folder .. ".tgz")) }
    assert.equal(all[1], all[2])
    assert.equal(all[1], all[3])
    assert.truthy(all[1]:find "^rank 1: in no call")
  end)

  local ras = [[
NCCL version 2.26.2 compiled with CUDA 12.6
Job summary
===========

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         4         8        8        8   RUNNING  MISMATCH

Errors
======

Warnings
========

#0-0 (fa93daea854b060b) MISMATCH
  Communicator ranks have different AllGather operation counts
  7 ranks have launched up to operation 640
  1 rank has launched up to operation 641
  Rank 3 has launched up to operation 637 -- GPU 4 managed by process 23032 on node 10.0.0.24
]]
  local json_ras = [[{"nccl_version": "2.28.7", "communicators_count": 2, "communicators": [
    {"hash": "0x93d7000200000001", "size": 0, "ranks_count": 1, "ranks": [{"rank": 1057455228}], "missing_ranks": []},
    {"hash": "0xab12", "size": 3, "ranks_count": 2, "missing_ranks_count": 1,
     "ranks": [{"rank": 0, "host": "a", "pid": 7, "cuda_dev": 0, "status": {"init_state": 0, "async_error": 0},
                "collective_counts": {"AllReduce": 9}},
               {"rank": 1, "host": "a", "pid": 8, "cuda_dev": 1, "status": {"init_state": 0, "async_error": 0},
                "collective_counts": {"AllReduce": 9}}],
     "missing_ranks": [{"rank": 2, "host": "b", "pid": 9, "cuda_dev": 0, "nvml_dev": 0
       "status": {"unresponsive": true, "considered_dead": true}}]}]}]]

  local function inspects(rank, n)
    return ('{"header":{"id":"0x9e","rank":%d,"n_ranks":4,"nnodes":2},"metadata":{"inspector_output_format_version":"v4.0"},'
            .. '"coll_perf":{"coll":"AllReduce","coll_sn":%d}}\n'):format(rank, n)
  end
  local function served(rank, body) return ("=== Rank %d: http://h%d:25999 ===\n%s\n"):format(rank, rank, body) end
  local function dump_json(n)
    local entries = {}
    for i = 1, n do
      entries[i] = { record_id = i - 1, process_group = { "0", "default_pg" }, collective_seq_id = i, profiling_name = "nccl:all_reduce",
                     time_created_ns = 1700000000000000000 + i, input_sizes = { { 4 } }, state = i == 1 and "completed" or "started" }
    end
    return json.encode { entries = entries, version = "2.10" }
  end
  -- The summary of torchrun; it lists the ranks below `n`.
  local function torchrun(rank, code, n)
    local out = {}
    for other = 0, (n or 0) - 1 do out[#out + 1] = ("  rank      : %d (local_rank: 0)\n"):format(other) end
    return table.concat(out) .. ("Root Cause (first observed failure):\n[0]:\n  time      : x\n  rank      : %d (local_rank: 3)\n"
                                 .. "  exitcode  : %d (pid: 5)\n"):format(rank, code)
  end
  local function fails(rank, error)
    return ("[rank%d]: Traceback (most recent call last):\n[rank%d]:   File \"t.py\", line 3\n[rank%d]: %s\n"):format(rank, rank, rank, error)
  end
  local late = "RuntimeError: [/x/unbound_buffer.cc:78] Timed out waiting 12000ms for recv operation to complete"
  local lost = "RuntimeError: [/x/pair.cc:561] Connection closed by peer [127.0.0.1]:3496. This is typically caused by a crash"
  local function watchdog(rank, n)
    return ("[rank%d]:[E1 x] [PG ID 1 PG GUID 7(tp) Rank %d]  failure detected by watchdog at work sequence id: %d PG status: last "
            .. "enqueued work: %d, last completed work: %d\n"):format(rank, rank, n, n + 1, n - 1)
  end
  local cases = {
    { "the ranks that RAS lists, where they are behind", ras, "stall", { 3 }, false },
    { "the ranks that RAS does not list, where those are ahead", (ras:gsub("operation 637", "operation 641")), "stall",
      { 0, 1, 2, 4, 5, 6, 7 }, false },
    { "RAS as JSON without its comma, and with a communicator that cannot be", json_ras, "gone", { 2 }, true },
    { "RAS in which nobody is late", ras:gsub("#0%-0.*", ""), "healthy", {}, false },
    { "the watchdog of several ranks, one in another call",
      "[rank0]:[E1 x] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, "
      .. "Timeout(ms)=1) ran\n[rank1]:[E1 x] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, "
      .. "NumelIn=8, NumelOut=8, Timeout(ms)=1) ran\n[rank2]:[E1 x] [Rank 2] Watchdog caught collective operation timeout: "
      .. "WorkNCCL(SeqNum=5, OpType=BROADCAST, NumelIn=4, NumelOut=4, Timeout(ms)=1) ran\n", "mismatch", { 2 }, true },
    { "the watchdog of ranks before torch 2.1, one behind",
      "[E P.cpp:1] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=961, OpType=ALLREDUCE, Timeout(ms)=1) ran\n"
      .. "[E P.cpp:1] [Rank 7] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=640, OpType=ALLREDUCE, Timeout(ms)=1) ran\n",
      "stall", { 7 }, false },
    { "torch's desync report", "\t     [7] finished collective #182, but didn't join collective #183 (count from 1)\n", "stall", { 7 }, true },
    { "monitoredBarrier", "[rank0]:[E1 x] [Rank 0]: Ranks 2, 3 failed to pass monitoredBarrier in 3000 ms\n", "stall", { 2, 3 }, true },
    { "two fingerprints, of which one is not an operation", "Detected mismatch between collectives on ranks. Rank 0 is running collective: "
      .. "CollectiveFingerPrint(SequenceNumber=3, OpType=ALLREDUCE, TensorShape=[20, 10]), but Rank 1 is running collective: "
      .. "CollectiveFingerPrint(SequenceNumber=0OpType=GATHER)", "mismatch", { 0 }, false },
    { "Gloo's timeout, whose speaker is the victim", "[/x/unbound_buffer.cc:78] Timed out waiting 25000ms for recv operation to complete\n",
      "stall", {}, false },
    { "mpirun", "mpirun noticed that process rank 3 with PID 0 on node n1 exited on signal 9 (Killed).\n", "gone", { 3 }, true },
    { "srun", "srun: error: n1: task 4: Killed\n", "gone", { 4 }, true },
    { "RAS cut short", (ras:gsub("Warnings.*", "")), "stall", {}, false },
    { "RAS cut short in its warnings", (ras:gsub("  Rank.*", "")), "stall", {}, false },
    { "RAS of no communicator", (ras:gsub("    0  .-\n", ""):gsub("#0%-0.*", "")), "stall", {}, false },
    { "RAS with the line ends of Windows", (ras:gsub("\n", "\r\n")), "stall", { 3 }, false },
    { "torchrun: a signal", torchrun(3, -9), "gone", { 3 }, true },
    { "torchrun: an exit code alone", torchrun(3, 1), "gone", { 3 }, false },
    { "torchrun: the error of the rank that failed first", fails(2, lost) .. fails(3, "ValueError: bad sample") .. torchrun(3, 1), "gone", { 3 },
      true },
    { "torchrun: victims, and the one rank that did not time out", fails(0, late) .. fails(1, lost) .. fails(3, late) .. torchrun(3, 1, 4), "stall",
      { 2 }, false },
    { "torchrun: victims, and ranks of which nothing is known", fails(0, late) .. fails(3, lost) .. torchrun(3, 1), "stall", {}, false },
    { "errors without a launcher", fails(0, late) .. fails(1, "ValueError: bad sample"), "gone", { 1 }, false },
    { "mpirun: an exit code", "   Process name: [[123,1],3]\n   Exit code:    1\n", "gone", { 3 }, false },
    { "mpirun 5: an exit code of a victim", fails(3, late) .. "   Process name: [prterun-host-9@1,3]\n   Exit code:    1\n", "stall", {}, false },
    { "srun: an exit code", "srun: error: n1: tasks 4,6: Exited with exit code 1\n", "gone", { 4 }, false },
    { "NCCL's log: a rank that never came",
      "a:1:2 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 3 cudaDev 0 nvmlDev 0 busId 1 commId 0xf - Init START\n"
      .. "b:1:2 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 2 nranks 3 cudaDev 0 nvmlDev 0 busId 1 commId 0xf - Init START\n",
      "gone", { 1 }, false },
    { "NCCL's log: calls",
      "a:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1 - Init COMPLETE\na:9:2 [0] NCCL INFO comm 0x1 rank 1 nranks 2 cudaDev 0 "
      .. "busId 1 - Init COMPLETE\na:1:2 [0] NCCL INFO AllReduce: opCount 1f sendbuff 0x1 recvbuff 0x1 count 8 datatype 7 op 0 root 0 comm 0x1 "
      .. "[nranks=2] stream 0x1\na:9:2 [0] NCCL INFO AllReduce: opCount 1e sendbuff 0x1 recvbuff 0x1 count 8 datatype 7 op 0 root 0 comm 0x1 "
      .. "[nranks=2] stream 0x1\n", "stall", { 1 }, false },
    { "NCCL's log: a warning, with its file and line", "n2:5:6 [0] NCCL INFO comm 0x1 rank 4 nranks 8 cudaDev 0 busId 1 commId 0x9 - Init "
      .. "COMPLETE\n\nn2:5:7 [0] ib_plugin.c:1105 NCCL WARN NET/IB : Got completion from peer 10.0.0.1<49189> with error 4, opcode 5\n",
      "inside", { 4 }, false },
    { "NCCL's log: a warning of 2.30.7 and its time", "[2026-01-01 10:00:00] n2:5:6 [0] NCCL INFO comm 0x1 rank 4 nranks 8 cudaDev 0 busId 1 "
      .. "commId 0x9 - Init COMPLETE\n[2026-01-01 10:00:00] n2:5:7 [0] net.cc:5 (send) NCCL WARN NET/IB: Got completion from peer "
      .. "10.0.0.1<9> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=0 vendor_err=81\n", "inside", { 4 }, false },
    { "NCCL's log: one rank twice", "a:1:2 [0] bootstrap.cc:9 NCCL WARN Bootstrap Root : rank 3 of 8 ranks has already checked in\n",
      "mismatch", { 3 }, true },
    { "NCCL's log: one GPU twice, from 2.30.3 on", "a:1:2 [0] init.cc:9 NCCL WARN Multiple ranks detected using the same GPU on this node\n",
      "mismatch", {}, false },
    { "NCCL's log: sizes that differ", "a:1:2 [0] NCCL WARN NET/Socket : peer b message truncated : receiving 8 bytes instead of 4\n",
      "mismatch", {}, false },
    { "NCCL's inspector: the last call that ended, of each rank", inspects(0, 4) .. inspects(1, 2) .. inspects(2, 4), "stall", { 1 }, false },
    { "NCCL's inspector, in which no rank is behind", inspects(0, 4) .. inspects(1, 4), "inside", {}, false },
    { "ncclras -m, which names no rank", "[2026-01-01 10:00:00] PEER_DEAD: process 3 on node n1\n", "gone", {}, false },
    { "what torch's fr_trace prints", "Not all ranks joining collective, sequence number: 4\ngroup info: 0:default_pg\n"
      .. "missing ranks: {2}\ncollective state: started\n", "stall", { 2 }, false },
    { "what torch's fr_trace prints, of sizes", "Collective sequence number: 5 has errors\nerror msg: Culprit rank 1; Error type: "
      .. "SIZE_OR_SYNTAX_MISMATCH\n", "stall", {}, false },
    { "the debug server of torch: dumps of all ranks in one text", served(0, dump_json(2)) .. served(1, dump_json(1)) .. served(2, "Error: 500"),
      "stall", { 1 }, true },
    { "the debug server of torch: stacks", served(0, 'Python v3.11.7 (/x)\n\nThread 1 (idle): "MainThread"\n    all_reduce (torch/c.py:9)\n')
      .. served(1, 'Python v3.11.7 (/x)\n\nThread 1 (idle): "MainThread"\n    load (t.py:3)\n'), "stall", { 1 }, true },
    { "the watchdog, stuck on the host", "[rank3]:[E1 x] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress\n",
      "stall", { 3 }, false },
    { "the watchdog of torch 2.6, one rank behind", watchdog(0, 9) .. watchdog(1, 7), "stall", { 1 }, false },
    { "the store of torch", "recvValueWithTimeout failed on SocketImpl(fd=1): Failed to recv, got 0 bytes.\n", "gone", {}, false },
    { "MPICH", "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 5 RUNNING AT h\n", "gone", {}, false },
    { "Open MPI 5", "prterun noticed that process rank 2 with PID 9 on node n1 exited on signal 11 (Segmentation fault).\n", "gone", { 2 }, true },
    { "MPI_ABORT", "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\n", "gone", { 2 }, true },
    { "NCCL's log: one GPU twice", "a:1:2 [0] init.cc:9 NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 42000\n",
      "mismatch", { 0, 1 }, true },
  }
  for _, case in ipairs(cases) do
    it(case[1], function()
      local out = blame(write(os.tmpname(), case[2]) .. " --json")
      local said = json.decode(out)
      assert.same({ case[3], case[4], case[5] }, { said.kind, said.ranks, said.sure })
    end)
  end

  it("RAS with the names of families, where it lists the communicator of all ranks", function()
    local function member(rank, global, calls)
      return ('{"rank": %d, "host": "n%d", "pid": %d, "cuda_dev": 0, "status": {}, "collective_counts": {"AllReduce": %d}}')
             :format(rank, global // 2, 100 + global, calls)
    end
    local path = write(os.tmpname(), '{"communicators": [{"hash": "0xa1", "size": 4, "ranks": [' .. member(0, 0, 5) .. "," .. member(1, 1, 5)
      .. "," .. member(2, 2, 5) .. "," .. member(3, 3, 5) .. ']}, {"hash": "0xa2", "size": 2, "ranks": [' .. member(0, 1, 9) .. ","
      .. member(1, 3, 7) .. "]}]}")
    local said = verdict(path .. " --recipe picotron --world 4 tp=2")
    assert.same({ "stall", { 3 }, { family = "dp", index = 1 } }, { said.kind, said.ranks, said.group })
    assert.truthy(blame(path):find "\n  group        communicator 0xa2\n")
  end)

  it("NCCL's logs with the names of families, where lines of all ranks tell the largest communicator", function()
    local lines = {}
    for rank = 0, 3 do
      local head = ("n%d:%d:7 [0] NCCL INFO "):format(rank // 2, 100 + rank)
      local function say(...) lines[#lines + 1] = head .. string.format(...) end
      say("ncclCommInitRank comm 0xa%d rank %d nranks 4 cudaDev 0 nvmlDev 0 busId 1 commId 0xf - Init COMPLETE", rank, rank)
      say("ncclCommSplit comm 0xb%d rank %d nranks 2 cudaDev 0 nvmlDev 0 busId 1 parent 0xa%d splitCount 1 color %d key 0 - "
        .. "Init COMPLETE", rank, rank // 2, rank, rank % 2)
      say("AllReduce: opCount %x sendbuff 0x1 recvbuff 0x1 count 8 datatype 7 op 0 root 0 comm 0xb%d [nranks=2]",
          rank == 3 and 30 or 31, rank)
    end
    local said = verdict(write(os.tmpname(), table.concat(lines, " ")) .. " --recipe picotron --world 4 tp=2")
    assert.same({ "stall", { 3 }, { family = "dp", index = 1 } }, { said.kind, said.ranks, said.group })
  end)

  it("stacks of py-spy and of faulthandler, which tell what the late rank does", function()
    local folder = folder_of {
      ["s-0.txt"] = 'Process 1: x\nPython v3.11.7 (/x)\n\nThread 1 (idle): "MainThread"\n    all_reduce (torch/distributed/c.py:9)\n    step (t.py:9)\n',
      ["s-1.txt"] = 'Thread 0x1 (most recent call first):\n  File "/x/threading.py", line 9 in wait\n  File "/x/t.py", line 6 in load_batch\n',
    }
    local out = blame(folder)
    assert.truthy(out:find "^rank 1: in no call: slow")
    assert.truthy(out:find "\n  why          is in load_batch %(/x/t.py:6%), not in a collective; 1 other stack%s+is in one\n")
    for i = 0, 1 do write(("%s/rank_%d"):format(folder, i), dump(i == 0 and { ended, pending } or { ended })) end
    assert.truthy(blame(folder):find "\n  why          is in load_batch")
  end)

  it("the folder of torchrun's logs: a folder without files stands for the one in it, or for those of its ranks", function()
    local folder = support.folder()
    for rank = 0, 3 do
      run(("mkdir -p %s/id/attempt_0/%d"):format(folder, rank))
      write(("%s/id/attempt_0/%d/stderr.log"):format(folder, rank), rank == 2 and "" or fails(rank, late))
    end
    assert.same({ "stall", { 2 } }, (function() local is = json.decode((blame(folder .. " --json"))) return { is.kind, is.ranks } end)())
    run(("mkdir %s/id/attempt_1"):format(folder))
    support.refuses("blame " .. folder, 1, ("moongrid: the folder %s/id holds 2 folders and no file: give one of them, as %s/id/attempt_0")
                                           :format(folder, folder))
  end)

  it("no candidate twice", function()
    local out = blame(write(support.folder() .. "/x", ras) .. " " .. write(support.folder() .. "/y", torchrun(3, 1)))
    assert.truthy(out:find "\n  confidence   unsure: or rank 3: dead, stopped, or cut off from the others\n", out)
    local same = write(support.folder() .. "/a", "missing ranks: {3}\n")
    assert.truthy(blame(write(support.folder() .. "/x", ras) .. " " .. same):find "\n  confidence   unsure\n")
  end)

  it("what ncclras prints, if it is there", function()
    local folder = folder_of { ncclras = "#!/bin/sh\n[ \"$3\" = json ] && exit 1\ncat <<'E'\n" .. ras .. "E\n" }
    local out = run(("chmod +x %s/ncclras; PATH=%s:$PATH build/moongrid blame ncclras"):format(folder, folder))
    assert.truthy(out:find "^rank 3: in no call")
    assert.truthy(run(("%s/ncclras -v | build/moongrid blame -"):format(folder)):find "^rank 3: in no call")
    local _, err, code = run "PATH=/bin build/moongrid blame ncclras"
    assert.equal("moongrid: ncclras cannot be run, or reaches no job; it comes with NCCL 2.24 and newer\n", err)
    assert.equal(1, code)
  end)
end)

describe("moongrid blame refuses", function()
  local function refused(files, message, words)
    local folder = folder_of(files)
    local out, err, code = blame(folder .. " " .. (words or ""))
    assert.equal("", out)
    assert.equal("moongrid: " .. message:gsub("@", folder) .. "\n", err)
    assert.equal(1, code)
  end

  it("an empty folder", function() refused({}, "the folder @ holds no file; give the folder with the dumps") end)
  it("a pickle with code", function()
    refused({ rank_0 = "\x80\x02cposix\nsystem\nq\0X\1\0\0\0xR.", rank_1 = dump { ended } },
            "@/rank_0: byte 2: the opcode GLOBAL runs code, and a dump has only data; nothing of it was executed")
  end)
  it("a rank twice", function()
    refused({ rank_1 = dump { ended }, other_1 = dump { ended } },
            "two dumps have a name that ends in rank 1, @/other_1 and @/rank_1: give the dumps of one job, taken at one time")
  end)
  it("one dump alone", function()
    local d = dump({ ended, pending }):gsub("u%.$", "X" .. string.pack("<s4", "pg_config") .. "}(X" .. string.pack("<s4", "0") .. "}(X"
      .. string.pack("<s4", "name") .. "X" .. string.pack("<s4", "0") .. "X" .. string.pack("<s4", "ranks") .. "X"
      .. string.pack("<s4", "[0, 1, 2]") .. "uuu.")
    refused({ rank_1 = d }, "@/rank_1 is the dump of rank 1 alone, of 3: it tells who waits, not for whom; give the dumps of all ranks")
  end)
  it("one dump of gloo alone, whose members are not told", function()
    refused({ rank_0 = dump { ended, pending } }, "@/rank_0 is the dump of rank 0 alone: it tells who waits, not for whom; give the dumps of all ranks")
  end)
  it("what another packer packed", function()
    refused({ ["dumps.zip"] = "PK\3\4rest" }, "@/dumps.zip is compressed by zip: give a tar, a tar.gz, or the folder")
  end)
  it("names of another job", function()
    local files = { rank_0 = dump { ended, pending }, rank_1 = dump { ended } }
    local function names(text) return "--names " .. write(os.tmpname(), text) end
    refused(files, "--names has none of the groups in which the dumps have calls, such as '0'", names '{"99": [0, 1]}')
    refused(files, "rank 0 calls in world, whose members are 4, 5: --names is of another job", names '{"0": [4, 5]}')
  end)
  it("a version that it does not know", function()
    refused({ rank_0 = dump({ ended }, "3.0"), rank_x = "" },
            "@/rank_0 is left out: a dump of version 3.0; versions 1.4 (torch 2.3) and 2.x (torch 2.4 and newer) are read")
  end)
  it("what says nothing", function()
    refused({ x = "hello\n" }, "@/x: blame recognizes nothing in it: no dump of torch's flight recorder, no output of ncclras, no log of NCCL, "
      .. "of torch's watchdog or of a launcher, no stack")
  end)
  it("an archive that names what is outside of it", function()
    local folder = folder_of { rank_0 = dump { ended } }
    run(("cd %s && tar -cPf a.tar --transform 's,^,../,' rank_0"):format(folder))
    support.refuses(("blame %s/a.tar"):format(folder), 1, ("moongrid: %s/a.tar holds '../rank_0', a name outside of the archive"):format(folder))
  end)
  it("4 GiB", function()
    local folder = support.folder()
    run(("truncate -s 4G %s/rank_0"):format(folder))
    support.refuses("blame " .. folder, 1, ("moongrid: %s/rank_0 has 4.00 GiB; 1.00 GiB at most are read"):format(folder))
    os.remove(folder .. "/rank_0")
  end)
  it("a recipe that does not fit", function()
    support.refuses("blame tests/blame/skip.tgz --recipe megatron --world 8 tp=8", 1, "moongrid: the recipe does not fit the dumps: group "
      .. "1 (DATA_PARALLEL_GROUP_WITH_CP) of ranks 0, 2, 4, 6 is in no family; give the parameters of the job")
    support.refuses("blame tests/blame/skip.tgz --recipe megatron --world 4 tp=2", 1, "moongrid: the dumps are of 8 ranks or more, the "
      .. "recipe of 4: give --world and the parameters of the job")
  end)
  it("a command line without its parts", function()
    support.refuses("blame", 2, "moongrid: blame needs files of the job: dumps, logs, stacks, or a folder of them")
    support.refuses("blame x --world 4", 2, "moongrid: --world goes with --recipe; without --recipe the dumps tell the number of ranks")
    support.refuses("blame x tp=4", 2, "moongrid: 'tp=4' is a parameter: it needs --recipe")
  end)
end)

-- Bent files ------------------------------------------------------------------------------

it("bent dumps and logs never fail in a reader", function() -- 3 s
  math.randomseed(11)
  local folder = support.folder()
  run(("tar xzf tests/blame/skip.tgz -C %s; tar xzf tests/blame/json.tgz -C %s"):format(folder, folder))
  local texts = { support.read(folder .. "/rank0"), support.read(folder .. "/rank1"), support.read(folder .. "/rank0.json") }
  for _ = 1, 60 do
    for i, text in ipairs(texts) do
      for _ = 1, math.random(4) do
        local at, how = math.random(#text), math.random(3)
        if how == 1 then
          text = text:sub(1, at - 1) .. string.char(math.random(0, 255)) .. text:sub(at + 1)
        elseif how == 2 then
          text = text:sub(1, at - 1) .. text:sub(at + math.random(40))
        else
          text = math.random(4) == 1 and text:sub(1, at) or text:sub(1, at) .. text:sub(math.random(#text)):sub(1, 50) .. text:sub(at + 1)
        end
        if text == "" then text = "x" end
      end
      write(("%s/rank%d"):format(folder, 10 + i), text)
    end
    local _, err, code = blame(("%s/rank11 %s/rank12 %s/rank2 %s/rank4"):format(folder, folder, folder, folder))
    assert.truthy(code == 0 or code == 1, err)
    assert.falsy(err:find "attempt to" or err:find "bad argument" or err:find "blame%.", err)
  end
end)
