-- SPDX-License-Identifier: MIT
--
-- moongrid blame: recorded hangs with known causes (tests/blame), jobs that hang in a simulation
-- (tests/blame/simulate.py), each format that it reads or refuses, and files with errors, on which no reader may fail.

local support = dofile "tests/lua/support.lua"
local json = require "dkjson"
local run, write = support.run, support.write

local function blame(words) return run("build/moongrid blame " .. words) end

local function verdict(words)
  local out, err, code = blame(words .. " --json")
  assert.equal("", err)
  assert.equal(0, code)
  return json.decode(out)
end

-- A folder with files by name.
local function folder_of(files)
  local folder = support.folder()
  for name, text in pairs(files) do write(folder .. "/" .. name, text) end
  return folder
end

-- Recorded hangs ---------------------------------------------------------------------

-- The archive, kind, ranks, group, sure, and the words of the recipe.
local recorded = {
  { "skip", "skip", { 5 }, { "dp_cp", 1 }, false, "megatron --world 8 tp=2 cp=2" },
  { "stopped", "gone", { 5 }, { "tp", 2 }, false, "picotron --world 16 tp=2 cp=2 pp=2" },
  { "killed", "gone", { 1 }, { "pp", 1 }, false, "megatron --world 8 tp=2 pp=2" },
  { "slow", "stall", { 7 }, { "world", 0 }, false, "megatron --world 8 tp=2 cp=2" },
  { "wrong_size", "mismatch", { 3 }, { "world", 0 }, false, "megatron --world 8 tp=2 ep=4 etp=1" },
  { "wrong_dtype", "mismatch", { 6 }, { "tp", 3 }, true, "megatron --world 8 tp=2 cp=2" },
  { "other_op", "mismatch", { 1 }, { "world", 0 }, true, "deepspeed_moe --world 8 ep=4" },
  { "swap_one", "order", { 1 }, { "world", 0 }, false, "deepspeed_moe --world 8 ep=4" },
  { "swap_half", "order", { 0, 7 }, { "dp", 0 }, false, "megatron --world 8 pp=4" },
  { "send_no_recv", "peer", { 1 }, { "pp", 1 }, true, "megatron --world 8 pp=4" },
  { "recv_wrong_peer", "peer", { 10 }, { "pp", 2 }, true, "megatron --world 12 tp=2 pp=3" },
  { "exception_barrier", "elsewhere", { 1 }, { "expt_dp", 1 }, true, "megatron --world 8 tp=2 ep=4 etp=1" },
  { "group_ahead", "ahead", { 2, 3, 6, 7 }, { "mp", 1 }, false, "megatron --world 8 tp=2 pp=2" },
  { "loader_stall", "stall", { 0 }, { "tp", 0 }, true, "megatron --world 8 tp=2 pp=2" },
  { "healthy", "healthy", {}, nil, true, "torchtitan --world 8 tp=2" },
  { "harmless", "healthy", {}, nil, true, "megatron --world 8 tp=2 pp=2" },
  { "older_dump", "gone", { 1 }, { "pp", 1 }, false, "megatron --world 8 pp=4" },
  { "cut_short", "stall", { 4 }, { "world", 0 }, false, "megatron --world 8 pp=4" },
  { "json", "mismatch", { 0 }, { "world", 0 }, true, "deepspeed --world 4 tp=2" },
  { "gloo_extra", "extra", { 5 }, { "world", 0 }, true, "megatron --world 8 tp=2 ep=4 etp=1",
    '{"1": [0, 2, 4, 6], "3": [0, 4], "7": [0, 1], "11": [0, 1, 2, 3], "2": [1, 3, 5, 7], "4": [1, 5], "5": [2, 6], "8": [2, 3], '
    .. '"6": [3, 7], "9": [4, 5], "12": [4, 5, 6, 7], "10": [6, 7]}' },
  { "gloo_send", "peer", { 7 }, { "pp", 3 }, false, "megatron --world 12 tp=2 pp=3" },
  { "gloo_recv", "peer", { 10 }, { "pp", 2 }, false, "megatron --world 12 tp=2 pp=3" },
  { "gloo_killed", "gone", { 1 }, { "pp", 1 }, false, "megatron --world 8 pp=4" },
  { "gloo_alone", "mismatch", { 2 }, { "tp", 1 }, true, "deepspeed --world 4 tp=2" },
  { "gloo_running", "healthy", {}, nil, false, "torchtitan --world 8 tp=2",
    '{"1": [0, 1], "5": [0, 2, 4, 6], "6": [1, 3, 5, 7], "2": [2, 3], "3": [4, 5], "4": [6, 7]}' },
}

describe("moongrid blame names the rank of a recorded hang:", function()
  for _, case in ipairs(recorded) do
    it(case[1], function()
      local names = case[7] and "--names " .. write(os.tmpname(), case[7]) or ""
      local said = verdict(("tests/blame/%s.tgz --recipe %s %s"):format(case[1], case[6], names))
      assert.equal(case[2], said.kind)
      assert.same(case[3], said.ranks)
      assert.equal(case[5], said.sure)
      local group = said.group ~= json.null and said.group or nil
      assert.same(case[4], group and { group.family, group.index })
    end)
  end

  it("without the recipe, by the names that torch gives groups", function()
    local out = blame "tests/blame/wrong_dtype.tgz"
    assert.truthy(out:find("^rank 6: made a call of another size, type or operation than the others\n  confidence   sure\n"
      .. "  group        group 10 %(TENSOR_MODEL_PARALLEL_GROUP%): ranks 6, 7\n"))
  end)

  it("in words on one screen, with where ranks are", function()
    local out = blame "tests/blame/group_ahead.tgz --recipe megatron --world 8 tp=2 pp=2 --machine 'node:2 gpu:4'"
    assert.truthy(out:find "^ranks 2, 3, 6, 7: not in the step that the others are in")
    assert.truthy(out:find "\n  pattern      all at dp 1\n")
    assert.truthy(support.flat(out):find " waits rank %d %(tp %d, dp %d, pp %d; node %d gpu %d%) waits for %d in ")
    assert.truthy(select(2, out:gsub("\n", "\n")) <= 24)
  end)

  it("as the page on hangs shows it", function()
    local words, shown = support.read "examples/cookbook/hangs.md":match "\n%$ moongrid (blame [^\n]*)\n(.-)```"
    assert.equal(shown, (run("build/moongrid " .. words)))
  end)

  it("on a page", function()
    local page = os.tmpname()
    assert.equal("", (blame("tests/blame/skip.tgz --recipe megatron --world 8 tp=2 cp=2 -o " .. page)))
    local text = support.read(page)
    assert.truthy(text:find('<span class="r waiting culprit" title="[^"]*">5</span>'))
    assert.truthy(text:find('<span class="r absent" title="no dump">3</span>'))
    assert.truthy(text:find "</html>\n$")
  end)
end)

it("moongrid blame is right of jobs that hang in a simulation, and never sure of what is wrong", function() -- 5 s
  if select(3, run "command -v python3") ~= 0 then pending "no python3" return end
  for _, form in ipairs { "50", "30 gloo" } do
    local out, err = run("python3 tests/blame/simulate.py 1 " .. form)
    local right, n, wrong = out:match "(%d+) right of (%d+), (%d+) wrong and sure\n$"
    assert.truthy(right, err)
    assert.truthy(right / n >= (form == "50" and 0.9 or 0.75), out)
    assert.equal("0", wrong, out)
  end
end)

-- Recorded hangs of which a dump is cut short, or has but its last calls: no verdict is sure of another rank.
it("moongrid blame is never sure of what is wrong where a dump is cut short", function() -- 2 s
  for _, case in ipairs(recorded) do
    local folder = support.folder()
    run(("tar xzf tests/blame/%s.tgz -C %s"):format(case[1], folder))
    local path
    for rank = 7, 0, -1 do
      local one = folder .. "/rank" .. rank
      if rank ~= case[3][1] and io.open(one) then path = one end
    end
    local whole = path and support.read(path)
    local names = case[7] and "--names " .. write(os.tmpname(), case[7]) or ""
    for part = 4, path and 9 or 0, 5 do
      write(path, whole:sub(1, #whole * part // 10))
      local out, err = blame(("%s --json --recipe %s %s"):format(folder, case[6], names))
      local said = json.decode(out)
      assert.truthy(said, err)
      if said.sure then assert.same({ case[2], case[3] }, { said.kind, said.ranks }, case[1] .. " " .. part) end
    end
  end
end)

-- The step of the recipe -------------------------------------------------------------------

-- Run the calls of each rank, { group, op, peer }, of which some ranks stop after so many, until nothing moves: their dumps.
-- A send ends at once.
local function hang(world, groups, calls_of, stops)
  local at, seq, log, begun, moved = {}, {}, {}, {}, true
  local function key(rank, call, n)
    if not call.peer then return call.group .. " " .. n end
    return call.group .. (call.op == "send" and (" %d %d "):format(rank, call.peer) or (" %d %d "):format(call.peer, rank)) .. n
  end
  local function ended(one)
    return one.call.op == "send" or begun[one.key] == (one.call.peer and 2 or #groups[one.call.group])
  end
  for rank = 0, world - 1 do at[rank], seq[rank], log[rank] = 0, {}, {} end
  while moved do
    moved = false
    for rank = 0, world - 1 do
      local last = log[rank][at[rank]]
      if (not last or ended(last)) and at[rank] < (stops[rank] or math.huge) then
        local call = calls_of(rank, at[rank] + 1)
        local side = call.group .. (call.peer and call.op .. call.peer or "")
        seq[rank][side] = (seq[rank][side] or 0) + 1
        at[rank], moved = at[rank] + 1, true
        log[rank][at[rank]] = { call = call, seq = seq[rank][side], key = key(rank, call, seq[rank][side]) }
        begun[log[rank][at[rank]].key] = (begun[log[rank][at[rank]].key] or 0) + 1
      end
    end
  end
  local files = {}
  for rank = 0, world - 1 do
    local entries, config = {}, {}
    for i, one in ipairs(log[rank]) do
      local ranks, call, place = groups[one.call.group], one.call, {}
      for k, member in ipairs(ranks) do place[member] = k - 1 end
      local to = call.peer and (" %d%s%d"):format(place[rank], call.op == "send" and "->" or "<-", place[call.peer]) or ""
      entries[i] = { record_id = i - 1, process_group = { call.group, "undefined" }, collective_seq_id = call.peer and 0 or one.seq,
                     is_p2p = call.peer ~= nil, profiling_name = "nccl:" .. call.op .. to, input_sizes = { { call.size } },
                     output_sizes = { { call.size } }, input_dtypes = { "Float" }, output_dtypes = { "Float" },
                     time_created_ns = 1700000000000000000 + i * 1000000, state = ended(one) and "completed" or "started", retired = ended(one) }
    end
    for name, ranks in pairs(groups) do config[name] = { name = name, desc = "undefined", ranks = json.encode(ranks) } end
    files["rank_" .. rank] = json.encode { version = "2.10", pg_config = config, entries = entries }
  end
  return folder_of(files)
end

describe("moongrid blame tells where in the step of the recipe each rank is", function()
  it("of recorded calls of Megatron-core", function()
    local case
    for _, one in ipairs(json.decode(support.read "tests/golden/steps/megatron.json").cases) do
      if one.id == "tp2-pp2-dp2" then case = one end
    end
    local groups, programs = {}, {}
    for i, group in ipairs(case.groups) do groups[tostring(i - 1)] = group[2] end
    for rank = 0, 7 do
      local list = {}
      local function unroll(part)
        for _, one in ipairs(part) do
          if type(one) == "table" then
            for _ = 1, one[1] do unroll(one[2]) end
          else
            local call = case.calls[one + 1]
            local p2p = call[1] == "send" or call[1] == "recv"
            list[#list + 1] = { op = call[1], group = tostring(call[2]), size = call[3] // 4, peer = p2p and call[4] or nil }
          end
        end
      end
      unroll(case.ranks[tostring(rank)])
      programs[rank] = list
    end
    local folder = hang(8, groups, function(rank, n) return programs[rank][(n - 1) % #programs[rank] + 1] end,
                        { [5] = #programs[5] + 12 })
    local said = verdict(folder .. " --recipe megatron --world 8 tp=2 pp=2 layers=8 hidden=64 heads=8 vocab=512 seq=64 tied=true gated=false "
      .. "bias=true norm=LayerNorm positions=learned_absolute micro_batch=1")
    assert.same({ "stall", { 5 } }, { said.kind, said.ranks })
    local of = {}
    for _, one in ipairs(said.step) do
      for _, rank in ipairs(one.ranks) do of[rank] = one.at .. ", next " .. one.next end
    end
    local update = "all_reduce on dp_cp in 'optimizer', next all_reduce on embd in 'optimizer'"
    local first = "recv on pp in 'forward', next all_reduce on tp in 'backward'"
    assert.same({ [0] = first, first, update, update, "all_reduce on tp in 'backward', next all_reduce on tp in 'backward'",
                  "all_reduce on tp in 'forward', next all_reduce on tp in 'backward'", update, update }, of)
  end)

  it("with its lines, and after the fault of one what was due", function()
    local path = write(os.tmpname() .. ".lua", [[
return recipe {
  build = function(world)
    local mesh = grid(world, "tp-dp", { tp = 2, dp = fill })
    local t = topology(world)
    t.pair = mesh "tp"
    t.all = mesh "dp"
    return t
  end,
  step = function(s)
    s:loop(3, function() s:all_reduce(s.pair, 64) end)
    s:all_gather(s.all, 64)
    s:barrier(s.pair)
  end,
}
]])
    local program = { "all_reduce", "all_reduce", "all_reduce", "all_gather", "barrier" }
    local groups = { pair0 = { 0, 1 }, pair1 = { 2, 3 }, all0 = { 0, 2 }, all1 = { 1, 3 } }
    local folder = hang(4, groups, function(rank, n)
      local op = program[(n - 1) % 5 + 1]
      return { op = op, group = op == "all_gather" and "all" .. rank % 2 or "pair" .. rank // 2, size = 16 }
    end, { [3] = 13 })
    local words = ("%s --recipe %s --world 4"):format(folder, path)
    local name = path:match "[^/]*$"
    assert.same({ { ranks = { 0, 2 }, at = ("barrier on pair (%s:12)"):format(name), next = ("all_reduce on pair (%s:10)"):format(name) },
                  { ranks = { 1 }, at = ("all_gather on all (%s:11)"):format(name), next = ("barrier on pair (%s:12)"):format(name) },
                  { ranks = { 3 }, at = ("all_reduce on pair (%s:10)"):format(name), next = ("all_gather on all (%s:11)"):format(name) } },
                verdict(words).step)
    assert.truthy(support.flat(blame(words)):find(("step rank 3 at all_reduce on pair (%s:10), next all_gather on all (%s:11); "
      .. "ranks 0, 2 at barrier on pair"):format(name, name), 1, true))
  end)
end)

-- Without a recipe -------------------------------------------------------------------------

describe("moongrid blame without a recipe proposes the one that makes the groups", function()
  local mg = require "moongrid"
  local own = { tp = "TENSOR_MODEL_PARALLEL_GROUP", pp = "PIPELINE_MODEL_PARALLEL_GROUP", world = "default_pg" }
  local function described(name) return own[name] or name:upper() .. "_GROUP" end

  -- The dumps of a job whose ranks wait in a group of tp for rank 5. `more`: the ranks of a further group.
  local function job(recipe, params, desc, more)
    local plan, files = mg.load(recipe):plan(8, params), {}
    for rank = 0, 7 do
      local config, tp, id = { more = more and { name = "more", ranks = more } }, nil, 0
      for _, name in ipairs(plan.families) do
        local family = plan:family(name)
        for index, ranks in family:groups() do
          local one = { name = tostring(id), desc = desc and desc(name) or "undefined", ranks = json.encode(ranks) }
          local mine = family:locate(rank) == index
          if mine then config[one.name] = one end
          if mine and name == "tp" then tp = one end
          id = id + 1
        end
      end
      local entries = {}
      for seq = 1, rank == 5 and 1 or 2 do
        entries[seq] = { record_id = seq - 1, process_group = { tp.name, tp.desc }, collective_seq_id = seq,
                         profiling_name = "nccl:all_reduce", time_created_ns = 1700000000000000000 + seq,
                         input_sizes = { { 4, 8 } }, input_dtypes = { "Float" },
                         state = seq == 1 and "completed" or "started" }
      end
      files["rank_" .. rank] = json.encode { version = "2.10", pg_config = config, entries = entries }
    end
    return folder_of(files)
  end

  it("and names groups by it where torch has these names, too", function()
    local folder = job("megatron", { tp = 2, pp = 2 }, described)
    local said = verdict(folder)
    assert.same({ "stall", { 5 }, { family = "tp", index = 2 }, "megatron --world 8 tp=2 pp=2" },
                { said.kind, said.ranks, said.group, said.recipe })
    local out = blame(folder)
    assert.truthy(out:find "^rank 5 %(tp 1, dp 0, pp 1%): in no call")
    assert.truthy(support.flat(out):find("recipe these groups are those of megatron tp=2 pp=2, and have its names: --recipe megatron --world 8 "
      .. "tp=2 pp=2", 1, true))
    os.remove(folder .. "/rank_3") -- its groups of itself alone are in no other dump
    assert.equal("megatron --world 8 tp=2 pp=2", verdict(folder).recipe)
  end)

  it("and does not name them by it where torch has no names", function()
    local folder = job("picotron", { tp = 2, pp = 2 })
    local said = verdict(folder)
    assert.same({ "stall", { 5 } }, { said.kind, said.ranks, said.group })
    local words = said.recipe:gsub(" %-%-world 8", "")
    assert.truthy(support.flat(blame(folder)):find(("recipe these groups are %s: --recipe %s names them"):format(words, said.recipe), 1, true))
    assert.truthy(run(("build/moongrid infer %s"):format(folder)):find("^these %d+ groups are " .. words:gsub("%p", "%%%0") .. " at"))
    assert.equal("", (select(2, blame(("%s --recipe %s"):format(folder, said.recipe)))))
  end)

  it("and none where there is a difference, or where torch's names are others", function()
    assert.falsy(verdict(job("megatron", { tp = 2, pp = 2 }, described, { 1, 2, 4 })).recipe)
    assert.falsy(verdict(job("megatron", { tp = 2, pp = 2 }, function(name)
      return described(name == "tp" and "pp" or name == "pp" and "tp" or name)
    end)).recipe)
  end)
end)

-- What is read and what is refused ---------------------------------------------------------

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
