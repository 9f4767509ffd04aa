-- SPDX-License-Identifier: MIT
--
-- Subcommands that answer questions about a plan or a recipe: the output of print, how families are made, why two ranks
-- talk, queries and policies.

local support = dofile "tests/lua/support.lua"
local json = require "dkjson"
local run, refuses, flat = support.run, support.refuses, support.flat

local moe = "examples/moe.lua"

describe("print and log in a recipe", function()
  it("say it on stderr, once, with the line, and never on stdout", function()
    local recipe = support.file [[print("loaded", 1, true, nil, { 2, 3 }, { a = 1 }, print)
return recipe { params = { n = 1 }, build = function(world, p)
  local t = topology(world)
  log("%d ranks, %s", world.size, "\27[31mred\0 and on")
  for i = 1, p.n do print("line", i, "a\0b") end
  return t
end }]]
    local quiet, err = run("build/moongrid plan " .. recipe .. " --world 8 --text")
    assert.equal(":1: loaded 1 true nil [2,3] {\"a\":1} function\n:4: 8 ranks, \\x1b[31mred\\x00 and on\n"
      .. ":5: line 1 a\\x00b\n",
      (err:gsub("[^\n]*/lua_%w+%.lua", "")))
    assert.falsy(quiet:find("line", 1, true))
    err = select(2, run("build/moongrid check " .. recipe .. " --world 8,8,4"))
    assert.equal(1, select(2, err:gsub(": loaded", "")))
    assert.equal(1, select(2, err:gsub(":4: 8 ranks", "")))
    assert.equal(1, select(2, err:gsub(":4: 4 ranks", "")))
    err = select(2, run("build/moongrid plan " .. recipe .. " --world 8 n=2000"))
    assert.truthy(err:find(":5: line 999 a\\x00b\n[^\n]+:5: %.%.%. what is printed from here on is left out\n"
      .. "moongrid: note: parameter 'n' changes nothing here: [^\n]+\n$"), err)
    err = select(2, run("build/moongrid run " .. recipe .. " --world 8 --backend dry --print none"))
    assert.falsy(err:find("loaded", 1, true))
    refuses("run " .. recipe .. " --print 1", 2, "moongrid: --print is rank0, all or none, not '1'")
  end)
end)

describe("moongrid explain", function()
  it("says rule, lines of the recipe, sharing and cost of a family", function()
    assert.equal("dp: 4 groups of 4\n  groups       {0,2,4,6} {1,3,5,7} {8,10,12,14} {9,11,13,15}\n"
      .. "  rule         (4:2) x (2:1)(2:8)\n               a group is 4 ranks, 2 apart; the groups begin at 4 places: 2 that\n"
      .. "               are 1 apart, those 2 times, 8 apart, from rank 0 on\n"
      .. "  made by      examples/moe.lua:28  t.dp = dense \"dp\"\n  communicator 4 of its own\n"
      .. "               dp_cp has the same groups and options, and shares them\n"
      .. "               all_gather has the same groups and communicators of its own: a\n               twin is meant to be separate\n"
      .. "  cost         with NCCL at most 196 MiB of each member's GPU, 384 MiB more with\n               the first use\n",
      (run("build/moongrid explain " .. moe .. " --world 16 tp=2 pp=2 dp")))
    local all = flat(run "build/moongrid explain megatron --world 16 tp=2")
    assert.truthy(all:find("^megatron over 16 ranks: tensor_model_parallel_size=2 gtp_remat: 16 groups of 1 "), all)
    local line = 0
    for text in io.lines "lua/moongrid/recipes/megatron.lua" do
      line = line + 1
      if text:find("t.tp_dp = ", 1, true) then break end
    end
    assert.truthy(all:find("made by megatron:" .. line .. " t.tp_dp = dense(\"tp\", \"gtp_remat\", \"dp\"):with(o.tp_dp) communicator those "
      .. "of intra_dist_opt, which is made before", 1, true), all)
  end)

  it("says that a family has no groups", function()
    assert.truthy((run("build/moongrid explain " .. moe .. " --world 8 stages")):find(
      "^stages: 0 groups of 0\n  groups       none\n  rule         neighbours%(1%) of %[%(1%) x %(8:1%)%]"))
  end)

  it("names every line that a family went through, and forms without a rule", function()
    local recipe = support.file [[return recipe { build = function(world)
      local g, t = grid(world, "tp-dp", { tp = 2, dp = fill }), topology(world)
      local half = g "dp":split(2)
      t.halves = half
      t.ring = half:pairs()
      t.odd = world:table { { 0, 3, 4 }, { 1, 2, 5, 6, 7 } }
      return t
    end }]]
    local out = flat(run("build/moongrid explain " .. recipe .. " --world 8"))
    assert.truthy(out:find("made by " .. recipe .. ":3 local half = g \"dp\":split(2) communicator", 1, true), out)
    assert.truthy(out:find("lists of ranks, which follow no rule", 1, true), out)
    assert.truthy(out:find(recipe .. ":3 local half = g \"dp\":split(2) " .. recipe .. ":5 t.ring = half:pairs() comm", 1, true), out)
    refuses("explain " .. moe .. " --world 16 ddp", 1, "moongrid: unknown family 'ddp'; nearest is 'dp' (tp, cp, pp, dp, dp_cp, mp, embedding, position_embedding, amax, ep, etp, tp_ep, "
      .. "expert_data, all_gather, stages)")
    refuses("explain " .. moe, 2, "moongrid: explain needs --world N, the number of ranks")
  end)
end)

describe("moongrid explain, where some groups are shared", function()
  local recipe = support.file [[return recipe { build = function(world)
    local t, g = topology(world), grid(world, "tp-dp", { tp = 2, dp = fill })
    t.tp = g "tp"
    t.stage = world:table({ { 0, 1 }, { 2, 3, 4 }, { 5 }, { 6, 7 } }, "partition")
    t.again = world:table({ { 2, 3, 4 }, { 0, 1 } }, "partial")
    t.ties = world:table({ { 0, 1 }, { 2, 3, 4 }, { 0, 7 }, { 5, 6 }, { 0, 7 } }, "cover")
    t.timed = t.again:with { timeout = 5 }
    return t
  end }]]

  for family, want in pairs {
    tp = "communicator 4 of its own stage shares 2 of them ties shares 1 of them cost",
    stage = "communicator 1 of its own; 2 groups are those of tp, made before; 1 group of one rank needs none again shares 2 of "
      .. "them ties shares 1 of them cost",
    again = "communicator those of stage, which is made before, has the same groups among its own, and the same options timed "
      .. "has the same groups and communicators of its own: its options differ cost",
    ties = "communicator 2 of its own; 1 group is that of tp, 1 that of stage, made before; 1 group repeats an earlier one cost",
    timed = "communicator 2 of its own cost",
  } do
    it(family, function()
      local out = flat(run("build/moongrid explain " .. recipe .. " --world 8 " .. family))
      assert.equal(want, out:match "communicator .- cost")
    end)
  end
end)

describe("moongrid recipes", function()
  it("prints the source of a recipe, as it was written, and of its parts", function()
    local function text(path) return io.open(path):read("a") end
    assert.equal(text "lua/moongrid/recipes/picotron.lua", (run "build/moongrid recipes picotron --source"))
    assert.equal(text(moe), (run("build/moongrid recipes " .. moe .. " --source")))
    local all = run "build/moongrid recipes megatron --source"
    assert.truthy(all:find("\n-- megatron.grids\n" .. text "lua/moongrid/recipes/megatron/grids.lua", 1, true))
    refuses("recipes --source", 2, "moongrid: --source needs a recipe: a file, or one that 'moongrid recipes' lists")
    assert.truthy((select(2, run "build/moongrid recipes nothing --source")):find(
      "moongrid: no recipe 'nothing': neither bundled nor a file", 1, true))
  end)

  it("prints which family each getter of a system gives", function()
    local out = run "build/moongrid recipes megatron --getters"
    assert.truthy(out:find("\nget_tensor_and_data_parallel_group(with_context_parallel=true) -> tp_dp_cp\n", 1, true), out)
    assert.truthy(out:find("(partial_data_parallel=true, with_context_parallel=true, with_gtp_remat=false) -> intra_dp_cp\n",
      1, true), out)
    assert.truthy(out:find("\nfamilies that exist with\n", 1, true))
    assert.equal("tp_group() -> tp", (run "build/moongrid recipes picotron --getters"):match "tp_group%(%) %-> tp")
    assert.equal("get_amax_reduction_group", json.decode((run "build/moongrid recipes megatron --getters --json"))[1].name)
    refuses("recipes " .. moe .. " --getters", 1, "moongrid: recipe 'examples/moe.lua' models no getters of groups; its "
      .. "families have only their names")
  end)
end)

describe("moongrid why", function()
  it("names every group that has both ranks", function()
    local out, err, code = run("build/moongrid why " .. moe .. " --world 16 tp=2 pp=4 4 12")
    assert.equal("", err)
    assert.equal(0, code)
    assert.equal("ranks 4 and 12 are together in 2 groups\n  pp[0]: positions 1 and 3 of 4; between them 8\n"
      .. "  mp[0]: positions 2 and 6 of 8; between them 5, 8, 9\nthey first meet when pp[0] is created: creation 1 of rank 4, creation 1 of rank 12\n",
      out)
  end)

  it("finds a shortest chain where there is none", function()
    assert.equal("ranks 0 and 15 are together in no group; a shortest way from one to the other\n  0 to 12 in pp[0]\n"
      .. "  12 to 15 in amax[3]\n", (run("build/moongrid why " .. moe .. " --world 16 tp=2 pp=4 0 15")))
    local apart = support.file [[return recipe { build = function(world)
      local t = topology(world)
      t.a = grid(world:window(0, 4), "x", { x = fill })("x")
      t.b = grid(world:window(4), "x", { x = fill })("x")
      return t
    end }]]
    assert.equal("ranks 1 and 6 are together in no group, and no chain of groups connects them\n",
      (run("build/moongrid why " .. apart .. " --world 8 1 6")))
  end)

  it("tells pairs, neighbours, and whose communicator it is; in JSON and in Lua the same", function()
    local out = run("build/moongrid why " .. moe .. " --world 8 tp=2 pp=2 0 4")
    assert.truthy(out:find("\n  embedding[0]: positions 0 and 1 of 2, a pair; communicator of pp[0]\n", 1, true), out)
    assert.truthy(out:find("\n  stages[0]: positions 0 and 1 of 2, a pair; communicator of pp[0]\n", 1, true), out)
    local why = json.decode((run("build/moongrid why " .. moe .. " --world 8 tp=2 pp=2 0 4 --json")))
    local plan = json.decode((run("build/moongrid plan " .. moe .. " --world 8 tp=2 pp=2 --json")))
    local expected = {} -- by the plan's own lists
    for name, family in pairs(plan.families) do
      for i, group in ipairs(family.groups) do
        local at = {}
        for k, rank in ipairs(group) do at[rank] = k - 1 end
        if at[0] and at[4] then expected[name .. i - 1] = { at[0], at[4] } end
      end
    end
    local got = {}
    for _, group in ipairs(why.groups) do got[group.family .. group.group] = group.positions end
    assert.same(expected, got)
    assert.equal("pp", why.first.family)
    local code = ("local mg = require 'moongrid' local p = mg.load('%s'):plan(mg.world(8), { tp = 2, pp = 2 }) "
      .. "local w = p:why(0, 4) print(#w.groups, w.first.family, w.chain) print(pcall(p.why, p, 0, 0))"):format(moe)
    assert.equal(#why.groups .. "\tpp\tnil\nfalse\t(command line):1: both ranks are 0; two different ranks are needed\n",
      (run(([[LUA_CPATH="build/?.so" lua5.4 -e "%s"]]):format(code))))
  end)

  it("is text for print in Lua", function()
    local line = [[LUA_CPATH='build/?.so;;' lua5.4 -e 'local p = require("moongrid").load("picotron"):plan(8, { tp = 2 })
      print(p:why(0, 1)) print(select(2, pcall(function() return p.tp end)))']]
    assert.equal((run("build/moongrid why picotron --world 8 tp=2 0 1"))
      .. '(command line):2: a Plan has no field \'tp\'; plan:family "tp" is its family\n', (run(line)))
  end)

  it("refuses what are not two ranks", function()
    refuses("why picotron --world 8 3", 2, "moongrid: why needs two ranks: moongrid why RECIPE --world N A B")
    refuses("why picotron --world 8 3 4 5", 2, "moongrid: unexpected argument '5': moongrid why RECIPE --world N [...] A B")
    refuses("why picotron --world 8 3 x", 2, "moongrid: a rank is an integer from 0 to 2147483647, not 'x'")
    refuses("why picotron --world 8 3 8", 2, "moongrid: rank 8 is out of range; ranks are 0 to 7")
    refuses("why picotron --world 8 3 3", 1, "moongrid: both ranks are 3; two different ranks are needed")
    refuses("why picotron 3 4", 2, "moongrid: why needs --world N, the number of ranks")
    refuses("why", 2, "moongrid: why needs a recipe: a file, or one that 'moongrid recipes' lists")
  end)
end)

describe("moongrid ask and moongrid policy", function()
  it("answer as a rank, or for all in a table", function()
    assert.equal("2\n", (run "build/moongrid ask picotron --world 8 tp=2 pp=2 --rank 0 pp_next_rank"))
    assert.equal("    rank  pp_next_rank\n       0  2\n       1  3\n       2  null\n       3  null\n",
      (run "build/moongrid ask picotron --world 4 tp=2 pp=2 --rank all pp_next_rank"))
  end)

  it("answer as one list with --json", function()
    local line = "build/moongrid ask picotron --world 4 tp=2 pp=2 --json --rank "
    assert.equal("[2,\n 3,\n null,\n null]\n", (run(line .. "all pp_next_rank")))
    assert.equal("3\n", (run(line .. "1 pp_next_rank")))
    local out = run("build/moongrid policy examples/trainer/layout.lua --world 2 --json --rank all layers layers=4 stages=1")
    local one = run("build/moongrid policy examples/trainer/layout.lua --world 2 --rank 0 layers layers=4 stages=1")
    assert.equal("[" .. one:gsub("\n", "") .. ",\n " .. one:gsub("\n", "") .. "]\n", out)
  end)

  it("write no head of a table without an answer", function()
    for _, form in ipairs { "", "--json " } do
      local out, err, code = run("build/moongrid policy examples/trainer/layout.lua --world 2 " .. form .. "--rank all layrs")
      assert.same({ "", 1 }, { out, code })
      assert.equal("moongrid: examples/trainer/layout.lua:33: unknown policy 'layrs'; nearest is 'layers' (bucket_bytes, "
        .. "checkpoint, gradient_family, layers, learning_rate, on_lost, schedule)\n", err)
    end
  end)

  it("take the systems' own names for queries", function()
    local line = "build/moongrid ask megatron --world 8 tp=4 --rank 6 "
    assert.equal("2\n", (run(line .. "get_tensor_model_parallel_rank")))
    assert.equal((run(line .. "data_parallel_world_size")), (run(line .. "get_data_parallel_world_size")))
    local _, err = run "build/moongrid ask megatron --world 8 --rank 0 get_get_data_parallel_world_size"
    assert.truthy(err:find("^moongrid: unknown getter 'get_get_data_parallel_world_size'; known: "), err)
  end)

  it("take every getter that is listed, where the plan has its family", function()
    for name in (run "build/moongrid recipes"):gmatch "\n  ([%w_]+)" do
      local sizes = ""
      for size, value in pairs(support.fitting[name] or {}) do sizes = size .. "=" .. value end
      for getter in run("build/moongrid recipes " .. name .. " --getters"):gmatch "([%w_]+)%([^\n]*%) %->" do
        local _, err, code = run(("build/moongrid ask %s --world 8 %s --rank 3 %s"):format(name, sizes, getter))
        assert.truthy(code == 0 or err:find("getter '" .. getter .. "': there is no ", 1, true), name .. " " .. err)
      end
    end
  end)

  it("take settings beside the parameters", function()
    local line = "build/moongrid ask optimum_habana --world 8 sp=2 %s --rank 3 get_sequence_parallel_world_size"
    assert.equal("2\n", (run(line:format "")))
    assert.equal("2\n", (run(line:format "training=false")))
    assert.equal("1\n", (run(line:format "version=f3e24ce9 training=false")))
    assert.equal("5\n", (run(line:format "sp_world_size=5")))
    assert.equal("7\n", (run("build/moongrid ask deepspeed --world 8 mpu_tensor_model_parallel_world_size=7 --rank 0 "
      .. "get_model_parallel_world_size")))
    local ds = "build/moongrid ask deepspeed --world 8 %s --rank 5 %s"
    for query, want in pairs { get_model_parallel_world_size = "1\n", get_model_parallel_rank = "0\n" } do -- whatever is set
      assert.equal(want, (run(ds:format("sp=2 order=sp-dp mpu_tensor_model_parallel_world_size=4 mpu_tensor_model_parallel_rank=3", query))))
    end
    assert.equal("4\n", (run(ds:format("tp=4", "get_tensor_model_parallel_src_rank"))))
    assert.equal("3\n", (run(ds:format("tp=4 mpu_tensor_model_parallel_rank=2", "get_tensor_model_parallel_src_rank"))))
    for query, want in pairs { -- the lists that ParallelState keeps
      pipeline_global_ranks = "[1, 5]\n", tensor_model_parallel_global_ranks = "[4, 5]\n", model_parallel_global_ranks = "[0, 1, 4, 5]\n",
      context_parallel_global_ranks = "[5]\n", data_parallel_global_ranks = "[5, 7]\n", data_parallel_global_ranks_with_cp = "[5, 7]\n",
      embedding_global_ranks = "[1, 5]\n", position_embedding_global_ranks = "null\n",
    } do
      assert.equal(want, (run(ds:format("tp=2 pp=2", query))), query)
    end
    assert.equal("[4, 5]\n", (run(ds:format("sp=2 order=sp-dp", "get_sequence_parallel_group"))))
    local _, said = run(ds:format("tp=2", "get_sequence_parallel_group"))
    assert.truthy(said:find("there is no such group with these parameters", 1, true), said)
    _, said = run(line:format "trainign=false")
    assert.equal("moongrid: unknown setting 'trainign'; nearest is 'training'\n", said)
    _, said = run(line:format "squence_parallel_size=4")
    assert.truthy(said:find("unknown parameter 'squence_parallel_size'; nearest is 'sequence_parallel_size'", 1, true), said)
    local _, err, code = run "build/moongrid ask optimum_habana --world 8 training=5 --rank 3 is_training_mode"
    assert.truthy(err:find "^moongrid: optimum_habana:%d+: setting 'training' is true or false, not 5\n$", err)
    assert.equal(1, code)
  end)

  it("take getters, with arguments behind the name and parameters before it", function()
    local line = "build/moongrid ask megatron --world 8 tp=2 cp=2 --rank 5 get_data_parallel_group"
    assert.equal("[1, 3, 5, 7]\n", (run(line .. " with_context_parallel=true")))
    assert.equal("[1, 5]\n", (run(line)))
  end)

  it("call policies", function()
    local layout = "examples/trainer/layout.lua"
    local out, err = run("build/moongrid policy " .. layout .. " --world 8 pp=2 --rank 0 layers layers=32 stages=2")
    assert.truthy(out:find "16", out .. err)
    local file = support.file [[return recipe { params = { k = 3 }, build = function(world) return topology(world) end,
      policy = { twice = function(_, q, p) return { q.n * 2, q.word, p.k } end } }]]
    assert.equal('[8, "a b", 5]\n', (run("build/moongrid policy " .. file .. " --world 2 k=5 --rank 1 twice n=4 'word=a b'")))
  end)

  it("say what a recipe writes that has none", function()
    local hpz = "examples/cookbook/hpz.lua --world 16 --rank 0 "
    refuses("ask " .. hpz .. "next_rank", 1, "moongrid: examples/cookbook/hpz.lua:2: unknown query 'next_rank'; the recipe "
      .. "has none: queries = { NAME = function(state, q, p) ... end } makes one, and the bundled recipes have those of "
      .. "their systems")
    refuses("policy " .. hpz .. "layers", 1, "moongrid: examples/cookbook/hpz.lua:2: unknown policy 'layers'; the recipe has "
      .. "none: policy = { NAME = function(state, q, p) ... end } makes one, policy = { layers = policies.layers() } uses "
      .. "a bundled one")
  end)

  it("refuse what is not there", function()
    refuses("ask picotron --world 8 --rank 0", 2,
      "moongrid: ask needs the name of a query or getter; 'moongrid recipes picotron' lists them")
    refuses("ask picotron --world 8 pp_next_rank", 2, "moongrid: ask needs --rank R, or --rank all")
    refuses("ask picotron --world 8 --rank some pp_next_rank", 2,
      "moongrid: --rank is an integer from 0 to 2147483647, not 'some'")
    refuses("ask picotron --world 8 --rank 8 pp_next_rank", 2, "moongrid: rank 8 is out of range; ranks are 0 to 7")
    refuses("policy picotron --rank 0 x", 2, "moongrid: policy needs --world N, the number of ranks")
    local _, err, code = run "build/moongrid ask picotron --world 8 --rank 0 pp_nxt_rank"
    assert.truthy(err:find("^moongrid: unknown query 'pp_nxt_rank'; nearest is 'pp_next_rank' "), err)
    assert.equal(1, code)
    _, err = run "build/moongrid ask megatron --world 8 --rank 0 get_data_parallel_grp"
    assert.truthy(err:find("^moongrid: unknown getter 'get_data_parallel_grp'; nearest is 'get_data_parallel_group' "), err)
    _, err = run "build/moongrid policy examples/trainer/layout.lua --world 8 --rank 0 layer"
    assert.truthy(err:find "unknown policy 'layer'; nearest is 'layers'", err)
  end)
end)
