-- SPDX-License-Identifier: MIT
--
-- moongrid plan as a user sees it: output, exit codes, whole messages.

local support = dofile("tests/lua/support.lua")
local json = require "dkjson"
local run, refuses, flat = support.run, support.refuses, support.flat

local moe = "examples/moe.lua"

describe("moongrid plan", function()
  it("shows grids, families, sharing, counts and the digest", function()
    local out, err, code = run("build/moongrid plan " .. moe .. " --world 8 tp=2 pp=2 ep=2")
    assert.equal("", err)
    assert.equal(0, code)
    for _, part in ipairs {
      "^examples/moe.lua over 8 ranks: tp=2 pp=2 ep=2\n",
      "\ndense +tp 2 x cp 1 x ep 1 x dp 2 x pp 2 over ranks 0%.%.7\n",
      "\nexpert +tp 1 x cp 1 x ep 2 x dp 2 x pp 2 over ranks 0%.%.7\n",
      "\ntp +4 +2 +{0,1} +own\n", "\nembedding +4 +2 +{0,4} +shared with pp\n", "\netp +8 +1 +{0} +none needed\n",
      "\nall_gather +4 +2 +{0,2} +own, unique\n",
      "\nin all +20 communicators for 44 groups; 20 groups of one rank need none\n",
      "\neach rank +6 communicators for 14 to 15 groups\n", "\ndigest +%x+\n$",
    } do
      assert.truthy(out:find(part), part)
    end
  end)

  it("is a summary at a million ranks", function()
    local out, _, code = run("build/moongrid plan " .. moe .. " --world 1048576 tp=8 cp=2 pp=8 ep=8")
    assert.equal(0, code)
    assert.truthy(out:find("\nrank 0 +10 communicators for 15 groups\n"))
    assert.truthy(#out < 4000)
  end)

  it("lists few of many tensors", function()
    local out = run "build/moongrid plan llama --world 8"
    local rows = select(2, out:gsub("\nmodel%.", "\nmodel."))
    assert.equal(12, rows)
    assert.truthy(out:find("\n... 279 more tensors: --json lists them, --tensor NAME shows one\n", 1, true))
  end)

  it("prints all groups as one JSON object", function()
    local out, err, code = run("build/moongrid plan " .. moe .. " --world 8 tp=2 pp=2 ep=2 --json")
    local plan = json.decode(out)
    assert.equal("", err)
    assert.equal(0, code)
    assert.equal(moe, plan.recipe)
    assert.equal(8, plan.world)
    assert.equal(2, plan.params.tp)
    assert.equal("tp-cp-ep-dp-pp", plan.params.order)
    assert.same({ { 0, 4 }, { 1, 5 }, { 2, 6 }, { 3, 7 } }, plan.families.pp.groups)
    assert.same({ { 0, 1, 4, 5 }, { 2, 3, 6, 7 } }, plan.families.mp.groups)
    assert.equal("pp", plan.families.embedding.shares)
    assert.equal("partial", plan.families.embedding.count and plan.families.position_embedding.coverage)
    assert.equal(20, plan.communicators.total)
    assert.equal(32, #plan.digest)
    assert.same({ { "tp", 2 }, { "cp", 1 }, { "ep", 1 }, { "dp", 2 }, { "pp", 2 } }, plan.grids.dense.dims)
  end)

  it("prints one rank's view", function()
    local plan = json.decode((run("build/moongrid plan " .. moe .. " --world 8 tp=2 pp=4 --json --rank 2")))
    assert.equal(2, plan.rank)
    assert.equal(1, plan.grids.dense.coords.pp)
    assert.same({ 0, 2, 4, 6 }, plan.families.pp.ranks)
    assert.equal(1, plan.families.pp.position)
    assert.is_nil(plan.families.embedding) -- null: a middle stage
    assert.same({ { 0, 2 }, { 2, 4 } }, { plan.families.stages[1].ranks, plan.families.stages[2].ranks })
    local out, _, code = run("build/moongrid plan " .. moe .. " --world 8 tp=2 pp=4 --rank 2")
    assert.equal(0, code)
    assert.truthy(out:find("\nembedding +%-\n"))
    assert.truthy(out:find("\npp +0 +1 of 4 +0 +4 +{0,2,4,6}\n"))
    assert.truthy(out:find("\nstages +0 +1 of 2 +0 +%- +{0,2}\nstages +1 +0 of 2 +%- +4 +{2,4}\n"))
    assert.truthy(out:find("^rank 2 of examples/moe.lua over 8 ranks: tp=2 pp=4\n\ndense   tp 0, cp 0, ep 0, dp 0, pp 1\n"), out)
    assert.truthy(run("build/moongrid plan " .. moe .. " --world 8 tp=2 --rank 2 --all"):find(": tp=2 cp=1 pp=1 ep=1 etp=1 order=tp-cp-ep-dp-pp\n", 1, true))
    assert.truthy(run "build/moongrid plan examples/encoder_decoder.lua --world 12 --rank 5":find "\n\nencoder  %-\ndecoder  tp 1, dp 0, pp 0\n")
  end)

  it("lists the groups of one family or of all, with how many are left out", function()
    assert.equal("stages: 6 groups of 2 that share ranks\n  0  {0,2}\n  1  {2,4}\n  2  {4,6}\n  3  {1,3}\n  4  {3,5}\n"
      .. "  5  {5,7}\n", (run("build/moongrid plan " .. moe .. " --world 8 tp=2 pp=4 --groups stages")))
    local out = run("build/moongrid plan picotron --world 64 --groups")
    assert.truthy(out:find("^tp: 64 groups of 1\n   0  {0}\n"), out)
    assert.truthy(out:find("\n   7  {7}\n  ...  55 more\n  63  {63}\n\ncp: 64 groups of 1\n", 1, true), out)
    assert.truthy(out:find("\ndp: 1 group of 64\n  0  {0,1,", 1, true), out)
    assert.equal((run("build/moongrid plan picotron --world 8 --groups=dp")), (run("build/moongrid plan picotron --groups dp --world 8")))
    refuses("plan picotron --world 8 --groups ddp", 1,
      "moongrid: unknown family 'ddp'; nearest is 'dp' (tp, cp, pp, dp, cp_dp, pp_dp, world_group)")
    refuses("plan picotron --world 8 --tensor x --json", 2, "moongrid: --tensor is shown as lines; --json has all tensors")
    refuses("plan picotron --world 8 --groups --rank 1", 2,
      "moongrid: --family and --groups take no --rank, --json, --rules, --schedule or --text")
  end)

  it("has numbers that agree with their nouns", function()
    local out = run "build/moongrid plan picotron --world 2 tp=2"
    assert.truthy(out:find("\neach rank      1 communicator for 7 groups\n", 1, true), out)
    assert.truthy(out:find("\nin all         1 communicator for 2 groups; 10 groups of one rank need none\n", 1, true), out)
    assert.truthy(run("build/moongrid plan picotron --world 1"):find("^picotron over 1 rank\n"))
  end)

  it("tells which ranks are in no group, unless the recipe allows it, and what build never read", function()
    local function recipe(more)
      return support.file(([[return recipe { params = { tp = 2, pp = 1, list = { 1 } }, %s
        build = function(world, p)
          local t = topology(world)
          t.tp = grid(world:window(0, 6), "tp-dp", { tp = p.tp, dp = fill })("tp")
          return t
        end }]]):format(more))
    end
    local strict, spare = recipe "", recipe [[idle = "allow",]]
    local idle = "moongrid: note: 2 of 8 ranks are in no group: 6, 7; idle = \"allow\" in a recipe says that this is meant\n"
    for _, command in ipairs { "plan %s --world 8", "check %s --world 8", "run %s --world 8 --backend dry" } do
      assert.equal(idle, (select(2, run("build/moongrid " .. command:format(strict)))))
      assert.equal("", (select(2, run("build/moongrid " .. command:format(spare)))))
    end
    assert.truthy(run(("build/moongrid plan %s --world 8"):format(spare)):find("\nidle           2 ranks in no group: 6, 7\n", 1, true))
    local unread = "moongrid: note: build does not read parameter 'pp', so no group depends on it\n"
    assert.equal(unread, (select(2, run(("build/moongrid plan %s --world 8 pp=2 tp=3"):format(spare)))))
    assert.equal("", (select(2, run(("build/moongrid plan %s --world 8 pp=1 list=1"):format(spare)))))
    local over = support.file(("return recipe { base = %q, build = function(_, _, t) return t end }"):format(spare:match "[^/]*$"))
    assert.equal(unread, (select(2, run(("build/moongrid plan %s --world 8 pp=2"):format(over)))))
    for _, file in ipairs { strict, spare, over } do os.remove(file) end
    local wrong = recipe [[idle = "yes",]]
    refuses(("plan %s --world 8"):format(wrong), 1, ("moongrid: %s:1: idle is \"allow\", for ranks that are in no group, "
      .. "or left out; not 'yes'"):format(wrong))
    os.remove(wrong)
  end)

  it("notes sizes that change nothing here: no group, query or step depends on them", function()
    local file = support.file [[return recipe {
      params = { tp = 2, pp = param.size(2, "stages"), many = false, asked = param.size(1, "of a query"), n = param.integer(-1, "") },
      build = function(world, p)
        print("pp " .. p.pp)
        local t = topology(world)
        t.tp = grid(world, "tp-pp-dp", { tp = p.tp, pp = p.many and p.pp or p.pp > 0 and 2, dp = p.asked and fill }) "tp"
        t.n = grid(world, "n-rest", { n = p.n > 0 and math.min(p.n, #world) or #world, rest = fill }) "n"
        return t
      end,
      queries = { asked = function(_, _, p) return p.asked end } }]]
    local function noted(params)
      local _, err, code = run(("build/moongrid plan %s --world 8 %s"):format(file, params))
      assert.equal(0, code, err)
      local rest, printed = err:gsub("[^\n]*: pp %d\n", "")
      assert.equal(1, printed, err) -- planned again, it prints nothing
      return rest
    end
    assert.equal("moongrid: note: parameter 'pp' changes nothing here: no group, query or step depends on it\n", noted "pp=4")
    for _, params in ipairs { "pp=4 many=true", "pp=2", "asked=3", "tp=4", "n=8", "n=4 tp=1" } do assert.equal("", noted(params)) end
    os.remove(file)
    for args, name in pairs { ["ms_swift heads=4"] = "num_attention_heads", ["megatron vpp=2 pp=2"] = false, ["verl fsdp=8"] = false } do
      local _, err = run("build/moongrid plan " .. args .. " --world 8")
      assert.equal(name and ("moongrid: note: parameter '%s' changes nothing here: no group, query or step depends on it\n")
        :format(name) or "", err)
    end
  end)

  it("notes a line that names families in another order than they are created in", function()
    local file = support.file [[return recipe { build = function(world)
      local g, t = grid(world, "tp-dp", { tp = 2, dp = fill }), topology(world)
      t.grid, t.tp, t.dp = g, g "tp", g "dp"
      t.a = g "tp" t.b = g "dp"
      t.x, t.mesh = g(), g
      for _, dim in ipairs { "dp", "tp" } do t[dim .. "2"] = g(dim) end -- t.tp2, t.dp2 = in a comment
      return t
    end }]]
    local said = "moongrid: note: line 3: Lua assigns the last name first, so 'dp' is created before 'tp'; write a line for each\n"
    assert.equal(said, (select(2, run(("build/moongrid plan %s --world 8"):format(file)))))
    assert.equal(said, (select(2, run(("build/moongrid plan - --world 8 < %s"):format(file)))))
    os.remove(file)
  end)

  it("notes once which options have no effect on MPI", function()
    local _, err, code = run "build/moongrid plan picotron --world 8 tp=2 tp.max_ctas=8 '*.timeout=60' tp.high_priority=true"
    assert.equal("moongrid: note: without effect on mpi: high_priority of 1 family, timeout of 7 families, nccl of 1 family\n", err)
    assert.equal(0, code)
    assert.equal("", (select(2, run "build/moongrid plan picotron --world 8 tp.unique=true tp.lazy=true")))
  end)

  it("prints the canonical text and the schedule", function()
    local out = run "build/moongrid plan picotron --world 4 tp=2 --text"
    assert.equal("moongrid 1\nworld 4\nparam tp_size = 2\nparam cp_size = 1\nparam pp_size = 1\n"
      .. "grid grid: tp 2 x cp 1 x pp 1 x dp 2 over ranks 0..3\nfamily tp: (2:1) x (2:2)\nfamily cp: (1) x (4:1)\n"
      .. "family pp: (1) x (4:1)\nfamily dp: (2:2) x (2:1)\nfamily cp_dp: (2:2) x (2:1)\nfamily pp_dp: (2:2) x (2:1)\n"
      .. "family world_group: (4:1) x (1) lazy\n", out)
    out = run "build/moongrid plan picotron --world 4 tp=2 --schedule"
    assert.truthy(out:find("    0  tp               2 communicators at once, 2 ranks each\n", 1, true))
    assert.truthy(out:find("       cp_dp            shares with dp\n", 1, true))
  end)

  it("has one digest in many processes, and another for any change", function()
    local function digest(args) return json.decode((run("build/moongrid plan " .. moe .. " --json " .. args))).digest end
    local first = digest "--world 8 tp=2"
    for _ = 1, 8 do assert.equal(first, digest "--world 8 tp=2") end
    for _, other in ipairs { "--world 8 tp=4", "--world 16 tp=2", "--world 8 tp=2 order=tp-cp-dp-ep-pp" } do
      assert.not_equal(first, digest(other))
    end
  end)

  it("refuses bad input with one line", function()
    refuses("plan", 2, "moongrid: plan needs a recipe: a file, or one that 'moongrid recipes' lists")
    refuses("plan " .. moe, 2, "moongrid: plan needs --world N, the number of ranks")
    refuses("plan " .. moe .. " --world 0", 2, "moongrid: --world is an integer from 1 to 2147483647, not '0'")
    refuses("plan " .. moe .. " --world eight", 2, "moongrid: --world is an integer from 1 to 2147483647, not 'eight'")
    refuses("plan " .. moe .. " --world 4,8", 2, "moongrid: --world is one number of ranks, in digits, not '4,8'; moongrid check takes several")
    refuses("plan " .. moe .. " --world 8 --rank 8", 2, "moongrid: rank 8 is out of range; ranks are 0 to 7")
    refuses("plan " .. moe .. " --world 8 --json --text", 2,
      "moongrid: --json, --rules, --schedule and --text exclude each other")
    refuses("plan " .. moe .. " --world 8 tp", 2,
      "moongrid: argument 'tp' is not of the form NAME=VALUE, and the recipe is 'examples/moe.lua'")
    refuses("plan " .. moe .. " --world 8 tp=2 tp=4", 2, "moongrid: parameter 'tp' is given twice")
    refuses("plan " .. moe .. " --world 8 tpp=2", 1,
      "moongrid: examples/moe.lua:7: unknown parameter 'tpp'; nearest is 'tp' (tp, cp, pp, ep, etp, order)")
    refuses("plan " .. moe .. " --world 8 tp=two", 1,
      "moongrid: examples/moe.lua:10: parameter 'tp' is a size (an integer of 1 or more), not 'two'")
    refuses("plan " .. moe .. " --world 8 tp=0", 1,
      "moongrid: examples/moe.lua:10: parameter 'tp' is a size (an integer of 1 or more), not '0'; nearest is 1")
    refuses("plan " .. moe .. " --world 8 tp=3", 1,
      "moongrid: examples/moe.lua:18: tp 3 does not divide the 8 ranks; nearest: tp 2 or 4, or a world of 6 or 9 ranks")
    refuses("plan " .. moe .. " --world 8 cp=2 order=tp-dp-pp", 1,
      "moongrid: examples/moe.lua:18: dim 'cp' of size 2 is not in the order \"tp-dp-pp\"; known: tp, dp, pp")
    refuses("plan " .. moe .. " --world 8 order=tp-tp-dp-pp", 1,
      "moongrid: examples/moe.lua:18: dim 'tp' occurs twice in the grid")
    local here = run "pwd":gsub("\n", "") -- a job may have been started elsewhere
    refuses("plan nope.lua --world 8", 1, "moongrid: cannot open nope.lua: No such file or directory, in " .. here)
    refuses("plan examples/nodse.lua --world 8", 1, "moongrid: cannot open examples/nodse.lua: No such file or directory, in " .. here .. "; "
      .. "nearest is 'examples/nodes.lua'")
    refuses("plan nowhere/nodes.lua --world 8", 1, "moongrid: cannot open nowhere/nodes.lua: No such file or directory, in " .. here)
    local bundled = {}
    for name in (run "build/moongrid recipes"):gmatch "\n  ([%w_]+)" do bundled[#bundled + 1] = name end
    table.sort(bundled)
    refuses("plan picatron --world 8", 1, "moongrid: no recipe 'picatron': neither bundled nor a file; "
      .. "nearest is 'picotron' (" .. table.concat(bundled, ", ") .. ")")
    for _, name in ipairs { "examples/nodes", "examples/nodes.lau" } do
      refuses("plan " .. name .. " --world 8", 1, ("moongrid: cannot open %s: No such file or directory, in %s; "
        .. "nearest is 'examples/nodes.lua'"):format(name, here))
    end
    for _, name in ipairs { "nodes", "nodes.lau" } do
      local _, err, code = run(("cd examples && ../build/moongrid plan %s --world 8"):format(name))
      assert.equal(("moongrid: no recipe '%s': neither bundled nor a file; known: %s; nearest is 'nodes.lua'\n"):format(name,
        table.concat(bundled, ", ")), err)
      assert.equal(1, code)
    end
  end)

  it("takes text alone, never bytecode", function()
    local binary = support.file(string.dump(function() return 1 end))
    refuses("plan " .. binary .. " --world 8", 1,
      ("moongrid: %s: a recipe is text, and this is a binary chunk"):format(binary))
  end)

  it("says so once when its output cannot be written", function()
    for _, line in ipairs { " --world 65536 --json", " --world 8 --json" } do
      local _, err, code = run("build/moongrid plan " .. moe .. line .. " > /dev/full")
      assert.equal("moongrid: the output could not be written\n", err)
      assert.equal(3, code)
    end
  end)

  it("is plain text unless asked", function()
    assert.is_nil((run("build/moongrid plan " .. moe .. " --world 8")):find("\027"))
    assert.truthy((run("build/moongrid plan " .. moe .. " --world 8 --color always")):find("\027"))
    refuses("plan " .. moe .. " --world 8 --color red", 2, "moongrid: --color is auto, always or never, not 'red'")
  end)
end)

describe("--params", function()
  local function file(name, text)
    local path = os.tmpname() .. name
    support.write(path, text)
    return path
  end

  it("takes JSON or Lua, and NAME=VALUE overrides it", function()
    for _, path in ipairs { file(".json", '{"tp": 2, "pp": 2}'), file(".lua", "local n = 2 return { tp = n, pp = n }") } do
      local out, err = run(("build/moongrid plan %s --world 8 --params %s"):format(moe, path))
      assert.truthy(out:find("^examples/moe.lua over 8 ranks: tp=2 pp=2\n"), out .. err)
      out = run(("build/moongrid plan %s --world 8 --params %s pp=4"):format(moe, path))
      assert.truthy(out:find("^examples/moe.lua over 8 ranks: tp=2 pp=4\n"), out)
      os.remove(path)
    end
  end)

  it("takes a list of records (jax_mesh's devices)", function()
    local path = file(".json", [[{ "devices": [ { "device_kind": "TPU v4 lite", "coords": [0, 0, 0] }, { "coords": [1, 0, 0] },
      { "coords": [0, 1, 0] }, { "device_kind": "TPU v4 lite", "coords": [1, 1, 0] } ] }]])
    local out, err = run(("build/moongrid plan jax_mesh --world 4 --params %s --json"):format(path))
    assert.truthy(out:find('"groups": [[0,1,3,2]]', 1, true), out .. err)
  end)

  it("says what is wrong with the file, and where", function()
    for _, case in ipairs {
      { ".json", '{"tp": 2,\n', "%s:2: string or '}' expected near end of file" },
      { ".json", "[1]", "%s:1: a JSON object is expected" },
      { ".lua", "return 3", "%s: a file of parameters returns a table such as { tp = 2 }, with plain values" },
      { ".lua", "return { tp = }", "%s:1: unexpected symbol near '}'\n  return { tp = }\n                ^" },
      { ".lua", "return { tpp = 3 }", "examples/moe.lua:7: unknown parameter 'tpp'; nearest is 'tp' (tp, cp, pp, ep, etp, order)" },
      { ".lua", "return { tp = io }", nil },
    } do
      local path = file(case[1], case[2])
      local _, err, code = run(("build/moongrid plan %s --world 8 --params %s"):format(moe, path))
      assert.equal(1, code, case[2])
      if case[3] then assert.equal("moongrid: " .. case[3]:format(path) .. "\n", err) end
    end
    local _, err, code = run(("build/moongrid plan %s --world 8 --params /nowhere.json"):format(moe))
    assert.equal(1, code)
    assert.truthy(err:find("cannot open /nowhere.json: No such file or directory", 1, true), err)
  end)
end)

describe("moongrid plan and the memory of NCCL", function()
  it("says what a rank would need, and refuses more than it may", function()
    local plan = "build/moongrid plan picotron --world 8 tp=2"
    local out = run(plan)
    assert.truthy(out:find("\nGPU memory     with NCCL at most 588 MiB a rank for 3 communicators, 1152 MiB more "
      .. "with their first use\n", 1, true), out)
    assert.same({ communicators = 3, created = 588 << 20, first_use = 1152 << 20 },
      json.decode((run(plan .. " --json"))).communicators.gpu_memory)
    local _, err, code = run(plan .. " --gpu-memory 300")
    assert.equal(3, code)
    assert.equal("moongrid: 3 NCCL communicators may take 588 MiB of a GPU, the budget is 300 MiB; fewer channels "
      .. "(nccl = { max_ctas = ... }) take less\n", err)
    assert.equal(0, (select(3, run(plan .. " --gpu-memory 588"))))
    refuses("plan picotron --world 8 --gpu-memory much", 2,
      "moongrid: --gpu-memory is an integer from 1 to 2147483647, the number of MiB, not 'much'")
  end)
end)

describe("moongrid plan and what else NCCL takes", function()
  local plan = "build/moongrid plan picotron --world 8 tp=2"

  it("is said, for machines of as many ranks as are asked for", function()
    local out = flat(run(plan))
    assert.truthy(out:find("their first use then trees 768 MiB, messages between all members 4224, "
      .. "NVLink SHARP 448 (and 102 when they are made) NCCL takes 32 of 132 SMs at once, 14 of 128 multicast slots, "
      .. "42 file descriptors, with 8 ranks a node ", 1, true), out)
    out = flat(run(plan .. " --machine 1 --sms 80 --nvls-slots 64"))
    assert.truthy(out:find("then trees 3200 MiB, messages between all members 384 NCCL takes 32 of 80 SMs at once, "
      .. "0 of 64 multicast slots, 426 file descriptors, with 1 rank a node ", 1, true), out)
    local r = json.decode((run(plan .. " --json"))).resources
    assert.same({ machine_ranks = 8, sampled = false, communicators = 3, created = 588 << 20, nvls_created = 102 << 20,
      ring = 1152 << 20, tree = 768 << 20, nvls = 448 << 20, p2p = 4224 << 20, blocks = 32, nvls_slots = 14, files = 42 }, r)
    local mine = json.decode((run(plan .. " --rank 3 --machine 4 --json"))).resources
    assert.same({ 4, 3, 10 }, { mine.machine_ranks, mine.communicators, mine.nvls_slots })
  end)

  it("does not add up families of other ranks", function()
    local recipe = support.file [[return recipe { build = function(world)
      local t = topology(world)
      t.a = grid(world:window(0, 4), "x", { x = fill }) "x"
      t.b = grid(world:window(4, 4), "x", { x = fill }) "x"
      return t
    end }]]
    local out = flat(run("build/moongrid plan " .. recipe .. " --world 8 --gpu-memory 196"))
    assert.truthy(out:find("with NCCL at most 196 MiB a rank for 1 communicator, 384 MiB more", 1, true), out)
    refuses("plan " .. recipe .. " --world 8 --gpu-memory 195", 3, "moongrid: 1 NCCL communicator may take 196 MiB of a "
      .. "GPU, the budget is 195 MiB; fewer channels (nccl = { max_ctas = ... }) take less")
  end)

  it("is refused above a budget", function()
    refuses("plan picotron --world 8 tp=2 --sms 31", 3, "moongrid: NCCL may need 32 SMs of a GPU at once, the budget is 31; "
      .. "fewer channels (nccl = { max_ctas = ... }) of concurrent families take less")
    refuses("plan picotron --world 8 tp=2 --nvls-slots 13", 3, "moongrid: NCCL may need 14 multicast slots of a node, the "
      .. "budget is 13; fewer communicators take fewer; with NCCL_NVLS_ENABLE=0 they take none")
    refuses("plan picotron --world 8 tp=2 --machine 1 --files 425", 3, "moongrid: NCCL may need 426 file descriptors of a "
      .. "process, the budget is 425; fewer channels (nccl = { max_ctas = ... }) take less")
    assert.equal(0, (select(3, run(plan .. " --sms 32 --nvls-slots 14 --files 42"))))
    refuses("plan picotron --world 8 --sms 0", 2, "moongrid: --sms is an integer from 1 to 2147483647, not '0'")
    refuses("plan picotron --world 8 --machine 5000", 2, "moongrid: --machine is an integer from 1 to 4096, not '5000'")
    refuses("plan picotron --world 8 --machine x", 2, "moongrid: unknown machine 'x': it is neither a file "
      .. "nor a preset; known: dgx-a100, dgx-b200, dgx-h100, dgx-h200, gb200-nvl72, mi300x; levels are written as "
      .. "'node:4 gpu:8'")
  end)

  it("heeds the environment of the command, which recipes do not see", function()
    local digest = "\ndigest +(%x+)\n"
    local plain_out = run(plan)
    local out, err = run("NCCL_MAX_CTAS=4 NCCL_NVLS_ENABLE=0 NCCL_BUFFSIZE=8388608 " .. plan)
    assert.equal("moongrid: note: NCCL_MAX_CTAS=4 in the environment overrides max_ctas of every family; the numbers for NCCL "
      .. "include that\nmoongrid: note: NCCL_NVLS_ENABLE=0 in the environment turns NVLink SHARP off; the numbers for NCCL include that\n"
      .. "moongrid: note: NCCL_BUFFSIZE=8388608 in the environment changes what NCCL needs; the numbers for NCCL ignore that\n",
      err)
    assert.truthy(out:find("with NCCL at most 84 MiB a rank for 3 communicators", 1, true), out)
    assert.truthy(out:find("4 of 132 SMs at once, 0 of 128 multicast slots", 1, true), out)
    assert.equal(plain_out:match(digest), out:match(digest))
    for _, value in ipairs { "0", "-3", "none" } do -- NCCL ignores them, too
      local same, quiet = run("NCCL_MAX_CTAS=" .. value .. " " .. plan)
      assert.equal("", quiet)
      assert.equal(plain_out, same)
    end
    out, err = run("NCCL_MIN_CTAS=100 " .. plan .. " --json") -- 64 at most
    assert.truthy(err:find("NCCL_MIN_CTAS=100", 1, true))
    assert.equal(64, json.decode(out).resources.blocks)
    assert.equal(json.decode(out).resources.created, json.decode(out).communicators.gpu_memory.created)
  end)
end)

describe("moongrid plan and families used at the same time", function()
  local recipe = support.file [[return recipe { params = { apart = false }, build = function(world, p)
    local g, t = grid(world, "tp-dp", { tp = 2, dp = fill }), topology(world)
    t.tp = g "tp"
    t.dp = g "dp"
    t.ep = g "dp"
    t.cpu = g "dp":with { backend = "mpi" }
    t.cpu_too = g "dp":with { backend = "mpi" }
    if p.apart then concurrent(t, { { "ep", "dp" }, { "ep", "tp" } }) end
    return t
  end }]]

  it("says who shares and what that costs, or in which order they are launched", function()
    local out = run("build/moongrid plan " .. recipe .. " --world 8")
    assert.truthy(flat(out):find(" sharing dp ep: 196 MiB with NCCL, calls on families of one line wait for each other; "
      .. "separate communicators need that much more memory: concurrent = { ... } in a recipe separates those that are used at the same "
      .. "time in all", 1, true), out)
    out = run("build/moongrid plan " .. recipe .. " --world 8 apart=true")
    assert.truthy(out:find("\n\nconcurrent     ep, dp, launched in this order\n               ep, tp, launched in this order"
      .. "\n\nin all", 1, true), out)
    assert.truthy(out:find("64 of 132 SMs at once", 1, true), out)
    assert.falsy(out:find("sharing", 1, true))
    local sharing = json.decode((run("build/moongrid plan " .. recipe .. " --world 8 --json"))).sharing
    assert.same({ families = { "dp", "ep" }, apart_created = 196 << 20, apart_ring = 640 << 20 }, sharing[1])
    assert.same({ "cpu", "cpu_too" }, sharing[2].families)
    local diff = run(("build/moongrid diff %s --world 8 vs apart=true"):format(recipe))
    assert.truthy(diff:find("+ concurrent ep, dp\n+ concurrent ep, tp\n", 1, true), diff)
  end)
end)

describe("families of every form", function()
  local recipe = support.file [[return recipe { build = function(world)
    local t, half = topology(world), world.size // 2
    local g = grid(world, "tp-dp", { tp = 4, dp = fill })
    local low = grid(world:window(0, half), "a-b", { a = 2, b = fill })
    local high = grid(world:window(half), "a-b", { a = half // 2, b = fill })
    t.dp = g "dp"
    t.some = g "tp":pick(0, 1, 3)
    t.ring = g "tp":neighbours(1, "wrap")
    t.cut = g "tp":segments { 3, 1 }
    t.both = union(low "a", high "a")
    t.joined = zip(low "a", high "b")
    t.asked = g "tp":with { backend = "none" }
    t.first = low "a"
    t.star = world:table({ { 0, 1 }, { 0, 2 }, { 0, 3 }, { 0, 4 }, { 0, 5 } }, "cover")
    return t
  end }]]

  for family, want in pairs {
    some = "rule pick{0,1,3} of (4:1) x (4:4) some positions of the groups of a rule, in an irregular order made by",
    ring = "rule neighbours(1, wrap) of [(4:1) x (4:4)] pairs: each position of a group of a rule with the one 1 further, also "
      .. "around the end made by",
    cut = "rule segments{3,1} of [(4:1) x (4:4)] 2 pieces of each group of a rule made by",
    both = "rule union[(2:1) x (4:2) | (4:1) x (2:4) + 8] the groups of 2 rules, one rule after the other made by",
    joined = "rule zip[(2:1) x (4:2) | (2:4) x (4:1) + 8] group i of each of 2 rules, joined to one made by",
    asked = "options backend=none communicator none: the recipe asks for none ",
    first = "communicator those of ring, which is made before, has the same groups among its own, and the same options cost "
      .. "nothing more; separate communicators would take ",
    star = "communicator 4 of its own; 1 group is that of ring, made before cost",
  } do
    it("explain " .. family, function()
      local out = flat(run("build/moongrid explain " .. recipe .. " --world 16 " .. family))
      assert.truthy(out:find(want, 1, true), out)
    end)
  end

  it("bring two ranks together", function()
    assert.equal([[
ranks 0 and 1 are together in 8 groups
  ring[0]: positions 0 and 1 of 2, a pair
  both[0]: positions 0 and 1 of 2, a pair; communicator of ring[0]
  first[0]: positions 0 and 1 of 2, a pair; communicator of ring[0]
  star[0]: positions 0 and 1 of 2, a pair; communicator of ring[0]
  some[0]: positions 0 and 1 of 3, neighbours
  cut[0]: positions 0 and 1 of 3, neighbours
  joined[0]: positions 0 and 1 of 4, neighbours
  asked[0]: positions 0 and 1 of 4, neighbours; no communicator
they first meet when some[0] is created: creation 1 of rank 0, creation 1 of rank 1
]], (run("build/moongrid why " .. recipe .. " --world 16 0 1")))
  end)

  it("are made in an order that check proves, round by round, and that the schedule tells", function()
    local out, _, code = run("build/moongrid check " .. recipe .. " --world 16")
    assert.truthy(code == 0 and out:find("^ +16  ok +9 families, 142 members checked, 38 communicators in order "), out)
    out = run("build/moongrid plan " .. recipe .. " --world 16 --schedule")
    local rounds = {} -- {0,1} is ring's
    for round in out:gmatch "star +round (%d): 1 communicator at once, 2 ranks each\n" do rounds[#rounds + 1] = round end
    assert.are.same({ "1", "2", "3", "4" }, rounds)
  end)
end)
