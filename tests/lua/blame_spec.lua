-- SPDX-License-Identifier: MIT
--
-- moongrid blame: recorded hangs with known causes (tests/blame), and jobs that hang in a simulation
-- (tests/blame/simulate.py). blame_formats_spec.lua has the formats.

local support = dofile "tests/lua/support.lua"
local command = dofile "tests/lua/blame_command.lua"
local json = require "dkjson"
local run, write = support.run, support.write
local blame, verdict, folder_of = command.blame, command.verdict, command.folder_of

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
