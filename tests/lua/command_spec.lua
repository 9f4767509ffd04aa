-- SPDX-License-Identifier: MIT
--
-- The command as a user sees it: output, exit codes, whole messages.

local support = dofile("tests/lua/support.lua")
local json = require "dkjson"
local mg = require "moongrid"
local run, refuses = support.run, support.refuses

local moe = "examples/moe.lua"

describe("moongrid", function()
  it("has help on stdout for itself and each command", function()
    for _, line in ipairs { "--help", "help", "plan --help", "run --help", "check -h", "help recipes", "doctor --help" } do
      local out, err, code = run("build/moongrid " .. line)
      assert.truthy(out:find("^usage: "))
      assert.equal("", err)
      assert.equal(0, code)
    end
  end)

  it("has a help for each command that names each of its options", function()
    local commands = 0
    for name in run("build/moongrid --help"):gmatch "\n  (%l+) " do
      local _, message = run("build/moongrid " .. name .. " --no-such-option-anywhere")
      local options = message:match "known: ([%l%-, ]+), color, help" or "" -- of its own
      local help = run("build/moongrid " .. name .. " --help")
      for option in options:gmatch "[%l-]+" do
        assert.truthy(help:find("--" .. option, 1, true), name .. " --" .. option)
      end
      local _, err, code = run("build/moongrid " .. name .. " --help > /dev/full")
      assert.equal("moongrid: the output could not be written\n", err)
      assert.equal(3, code)
      commands = commands + 1
    end
    assert.truthy(commands > 0)
  end)

  it("tells its version", function()
    assert.equal("moongrid " .. support.version .. "\n", (run "build/moongrid --version"))
  end)

  it("refuses what it does not know, naming the nearest", function()
    local _, err, code = run "build/moongrid"
    assert.truthy(err:find("^usage: "))
    assert.equal(2, code)
    local commands = {}
    for name in run("build/moongrid --help"):gmatch "\n  (%l+) " do commands[#commands + 1] = name end
    refuses("plam moe", 2, ("moongrid: unknown command 'plam'; nearest is 'plan' (%s)"):format(table.concat(commands, ", ")))
    refuses("plan " .. moe .. " --wrold 8", 2,
      "moongrid: unknown option '--wrold' of plan; nearest is 'world' (world, rank, family, groups, all, json, rules, schedule, text, "
        .. "tensor, gpu-memory, sms, nvls-slots, files, machine, params, option, color, help)")
    refuses("doctor --wrld 8", 2, "moongrid: unknown option '--wrld' of doctor; known: json, color, help")
    refuses("doctor -x", 2, "moongrid: unknown option '-x' of doctor; known: json, color, help")
    refuses("plan " .. moe .. " --world", 2, "moongrid: option '--world' needs a value: N")
    refuses("doctor moe", 2, "moongrid: doctor takes no argument 'moe'")
  end)
end)

describe("the README", function()
  it("shows a recipe that makes what it says", function()
    local file = assert(io.open("README.md"))
    local recipe = support.file(file:read("a"):match("```lua\n(return recipe {.-\n}\n)```"))
    file:close()
    local plan = json.decode((run("build/moongrid plan " .. recipe .. " --world 8 --json")))
    assert.same({ { 0, 1 }, { 2, 3 }, { 4, 5 }, { 6, 7 } }, plan.families.tp.groups)
    assert.same({ { 0, 2 }, { 1, 3 }, { 4, 6 }, { 5, 7 } }, plan.families.dp.groups)
    assert.same({ { 0, 4 }, { 1, 5 }, { 2, 6 }, { 3, 7 } }, plan.families.pp.groups)
    assert.same({ { 0, 1, 2, 3 }, { 4, 5, 6, 7 } }, plan.families.amax.groups)
    assert.equal("pp", plan.families.embedding.shares)
    assert.equal(18, plan.communicators.groups)
  end)
end)

describe("numbers", function()
  it("are shown in the fewest digits that give them back; the text of the digest has 17", function()
    local file = support.file [[return recipe { params = { lr = 0.2, eps = 1e-8, third = 1 / 3, whole = 0.5, n = 3 },
      build = function(w, p)
        local t = topology(w)
        t.all = grid(w, "x", { x = fill })()
        return t, p.lr, p.eps, p.third, p.whole, p.n
      end }]]
    local words = file .. " --world 8 lr=0.3 eps=1e-5"
    assert.truthy(run("build/moongrid plan " .. words):find("over 8 ranks: eps=1e-05 lr=0.3\n", 1, true))
    assert.truthy(run("build/moongrid plan " .. words .. " --text"):find("\nparam lr = 0.29999999999999999\n", 1, true))
    assert.truthy(run("build/moongrid diff " .. words .. " vs lr=0.1 eps=1e-5"):find("lr: 0.3 -> 0.1\n", 1, true))
    local defaults = run("build/moongrid recipes " .. file)
    for name, text in pairs { lr = "0.2", eps = "1e%-08", third = "0.3333333333333333", whole = "0.5" } do
      local line = name .. " +number +" .. text .. "\n"
      assert.truthy(defaults:gsub(" +\n", "\n"):find(line), defaults)
    end
  end)
end)

describe("moongrid check", function()
  it("tells of each world that is refused its own reason", function()
    local out, _, code = run "build/moongrid check picotron --world 6,8,10 tp=4"
    assert.equal(1, code)
    assert.truthy(out:find("^ +6  refused [^\n]* tp 4 does not divide the 6 ranks[^\n]*\n +8  ok [^\n]*\n"
      .. " +10  refused [^\n]* tp 4 does not divide the 10 ranks[^\n]*\npositions, partitions, schedule  held at 8\nstep +held at 8\n$"), out)
  end)

  it("checks several worlds and keeps going after a refusal", function()
    local out, _, code = run("build/moongrid check " .. moe .. " --world 8,12,64,1048576,2147483640 tp=4 pp=2")
    assert.equal(1, code)
    assert.truthy(out:find("^ +8  ok +15 families, 116 members checked, 7 communicators in order  %x+\n"), out)
    assert.truthy(out:find("\n        12  refused  examples/moe.lua:18: tp 4 x pp 2 = 8 does not divide the 12 ranks; "
      .. "nearest: tp 3 or 6, or a world of 8 or 16 ranks\n", 1, true), out)
    assert.truthy(out:find("\n *2147483640  ok +15 families, %d+ members sampled, schedule sampled  %x+\n"))
  end)

  it("gives JSON", function()
    local out, _, code = run("build/moongrid check picotron --world 4,5 tp=2 --json")
    local lines = json.decode(out)
    assert.equal(1, code)
    assert.is_true(lines[1].ok)
    assert.is_false(lines[2].ok)
    assert.equal("picotron:39: tp 2 does not divide the 5 ranks; nearest: tp 1 or 5, or a world of 4 or 6 ranks", lines[2].message)
    assert.same({ { ["positions, partitions, schedule"] = true, step = true }, {} }, { lines[1].laws, lines[2].laws })
    lines = json.decode((run "build/moongrid check picotron --world 4 tp=2 --law 'within(dp, tp)' --law 'covers(tp)' --json"))
    assert.same({ ["positions, partitions, schedule"] = true, ["within(dp, tp)"] = false, ["covers(tp)"] = true, step = true }, lines[1].laws)
    assert.is_false(lines[1].ok)
  end)

  it("checks laws between families", function()
    local nvl = "build/moongrid check examples/nvl72.lua --world 144 "
    local out, _, code = run(nvl .. "--law 'within(ep, domain)' --law 'disjoint(leaders,leaders)'")
    assert.equal(1, code)
    assert.equal("       144  BROKEN   law disjoint(leaders,leaders) does not hold: rank 0 is in group 0 of leaders and in group 0 of leaders\n"
      .. "positions, partitions, schedule  held\nwithin(ep, domain)               held\n"
      .. "disjoint(leaders,leaders)        BROKEN at 144\n", out)
    out = run("build/moongrid check picotron --world 4-16,18 tp=2 --law 'within(tp, tp)' --law 'same(cp, dp)' --law 'within(x, tp)'")
    assert.truthy(out:find("\npositions, partitions, schedule  held\nwithin(tp, tp)                   held\n"
      .. "same(cp, dp)                     BROKEN at 4, 8, 16, 18\nwithin(x, tp)                    not checked\n", 1, true), out)
    out = run("build/moongrid check picotron --world 2-16 tp=2 --law 'same(cp, dp)'")
    assert.truthy(out:find("\nsame(cp, dp)                     held at 2; BROKEN at 4, 8, 16\n", 1, true), out)
    for law, message in pairs {
      ["within(dp, domain)"] = "law within(dp, domain) does not hold: group 0 of dp has ranks 0 and 72, and no group of domain has both",
      ["within(tp, leaders)"] = "law within(tp, leaders) does not hold: group 0 of tp has ranks 0 and 1, and no group of leaders has both",
      ["covers(leaders)"] = "law covers(leaders) does not hold: rank 1 is in no group",
      ["same(tp, tp)"] = false, ["covers(ep)"] = false, ["within(leaders, tp)"] = false,
      ["same(tp, ep)"] = "law same(tp, ep) does not hold: the families are not the same: 36 groups (4:1) x (36:4), 8 groups (18:4) x (4:1)(2:72)",
      ["within(dpp, domain)"] = "law within(dpp, domain): unknown family 'dpp'; nearest is 'dp' (tp, ep, domain, rail, dp, leaders)",
      ["whithin(dp, domain)"] = "unknown law 'whithin'; nearest is 'within' (same, within, disjoint, covers)",
      ["within(dp)"] = "law 'within' needs two families", ["covers(dp, tp)"] = "law 'covers' needs one family",
      ["within dp"] = "a law is within(a, b), disjoint(a, b), same(a, b) or covers(a), not 'within dp'",
      [""] = "a law is within(a, b), disjoint(a, b), same(a, b) or covers(a), not ''",
    } do
      local err
      out, err, code = run(nvl .. "--law '" .. law .. "'")
      assert.equal(message and 1 or 0, code, law)
      if message and message:find "does not hold" then
        assert.equal(("       144  BROKEN   %s\n%-31s  held\n%-31s  BROKEN at 144\n"):format(message,
          "positions, partitions, schedule", law), out)
      elseif message then -- misspelt: said once, whatever the sizes
        assert.are.same({ "", "moongrid: " .. message .. "\n" }, { out, err })
      end
    end
  end)

  it("checks laws that a recipe claims", function()
    local function claims(law)
      local file = support.file(([[return recipe { build = function(world)
        local g, t = grid(world, "gpu-node", { gpu = 4, node = fill }), topology(world)
        t.gpu = g "gpu" t.node = g "node" t.first = g "gpu":pick(0)
        %s
        return t
      end }]]):format(law))
      local _, err = run("build/moongrid plan " .. file .. " --world 16")
      return (err:gsub("^moongrid: [^:]*:", ""))
    end
    assert.equal("", claims "within(t.first, t.gpu) within(t.gpu, t.gpu) covers(t.node) disjoint(t.first, t.gpu:pick(1))")
    assert.equal("4: within: group 0 of the first family has ranks 0 and 4, and no group of the second has both\n", claims "within(t.node, t.gpu)")
    assert.equal("4: within: rank 1 of group 0 of the first family is in no group of the second\n", claims "within(t.gpu:pick(1), t.first)")
    assert.equal("4: disjoint: rank 0 is in group 0 of the first family and in group 0 of the second\n", claims "disjoint(t.gpu, t.first)")
    assert.equal("4: covers: rank 1 is in no group\n", claims "covers(t.first)")
  end)

  it("needs worlds", function()
    refuses("check picotron", 2, "moongrid: check needs --world N[,N...], the numbers of ranks")
    refuses("check picotron --world 4,x", 2, "moongrid: --world is an integer from 1 to 2147483647, a list as 8,16 without blanks, or a range as 8-64; not 'x'")
  end)
end)

describe("moongrid diff", function()
  it("tells what changes, and what a rank keeps", function()
    local out, err, code = run("build/moongrid diff " .. moe .. " --world 64 tp=2 pp=2 ep=4 vs tp=2 pp=4 ep=4 --rank 5")
    assert.equal(0, code, err)
    assert.truthy(out:find("^~ param    pp: 2 %-> 4\n"), out)
    assert.truthy(out:find("\n~ family   pp: 32 groups (2:32) x (32:1) -> 16 groups (4:16) x (16:1)\n", 1, true), out)
    assert.truthy(out:find("\n5 of 15 families as before\nrank 5 keeps 2 communicators, creates 8, destroys 6\n$"), out)
    out = run "build/moongrid diff picotron --world 8 tp=2 vs"
    assert.equal("~ param    tp_size: 2 -> 1\n", out:match "^[^\n]*\n")
    out = run "build/moongrid diff picotron --world 8 tp=2 vs tp=2"
    assert.equal("no difference\n7 of 7 families as before\nrank 0 keeps 2 communicators, creates 0, destroys 0\n", out)
    out = run "build/moongrid diff picotron --world 8 vs nanotron"
    assert.truthy(out:find("\n+ family   world_pg: 1 group (8:1) x (1)\n", 1, true), out)
    assert.equal((run "build/moongrid diff picotron --world 8 vs nanotron"), (run "build/moongrid diff picotron vs nanotron --world 8"))
    local lazy = support.file [[return recipe { build = function(world)
      local g, t = grid(world, "tp-dp", { tp = 2, dp = fill }), topology(world)
      t.tp = g "tp"
      t.dp = g "dp":with { lazy = true }
      return t
    end }]]
    assert.equal("no difference\n2 of 2 families as before\nrank 0 keeps 1 communicator, creates 0, destroys 0\n",
      (run("build/moongrid diff " .. lazy .. " --world 8 vs")))
    local a = support.file(("return recipe { base = 'picotron', policy = { n = function() return %d end } }"):format(1))
    local b = support.file(("return recipe { base = 'picotron', policy = { n = function() return %d end } }"):format(2))
    out = run(("build/moongrid diff %s --world 8 vs %s"):format(a, b))
    assert.truthy(out:find("^~ policies may differ: the text of the recipe has changed\n7 of 7 families as before\n"), out)
    assert.truthy((run(("build/moongrid diff %s --world 8 vs"):format(a))):find "^no difference\n")
    out = run "build/moongrid diff picotron --world 8 vs --world 16"
    assert.truthy(out:find("^~ world    size: 8 %-> 16 ranks\n"), out)
    assert.falsy(out:find "keeps")
    local lists = support.file [[return recipe { params = { x = 3 }, build = function(world, p)
      local t = topology(world)
      t.e = world:table({ { 0, 1, 4 }, { 1, 2, p.x }, { 4, 5, 6, 7 } }, "cover")
      return t
    end }]]
    out = run("build/moongrid diff " .. lists .. " --world 8 vs x=5") -- of lists the first group that changes
    assert.truthy(out:find("\n~ family   e: 3 groups by list, group 1 {1,2,3} -> 3 groups by list, group 1 {1,2,5}\n", 1, true), out)
  end)

  it("shows tensors that change alike in one line", function()
    local out = run "build/moongrid diff llama --world 8 tp=2 vs tp=4"
    assert.truthy(out:find("\n~ tensor   32 of model.layers.*.self_attn.q_proj.weight: bf16 q 4096 by tp unit 128, hidden 4096 over tp 2 x "
      .. "dp 4 x pp 1 over ranks 0..7 -> ", 1, true), out)
    assert.truthy(out:find "\n~ tensor   model.norm.weight: ")
    local n = select(2, out:gsub("~ tensor ", ""))
    assert.equal(9 + 3, n)
  end)

  it("needs two sides", function()
    refuses("diff picotron --world 8", 2,
      "moongrid: diff needs two sides with 'vs' between: moongrid diff A --world N vs B")
    refuses("diff picotron vs nanotron", 2, "moongrid: diff needs --world N, the number of ranks")
    refuses("diff picotron --world 8 tp=3 vs", 1,
      "moongrid: picotron:39: tp 3 does not divide the 8 ranks; nearest: tp 2 or 4, or a world of 6 or 9 ranks")
  end)
end)

describe("moongrid recipes and doctor", function()
  it("lists what is bundled", function()
    local out = run "build/moongrid recipes"
    assert.truthy(out:find("for training\n.*\n  picotron +picotron's ProcessGroupManager"))
    local all = json.decode((run "build/moongrid recipes --json"))
    local first = {}
    for _, recipe in ipairs(all) do first[recipe.name] = recipe.params[1].name end
    assert.equal("tensor_model_parallel_size", first.megatron_deepspeed)
    assert.equal("tp_size", first.picotron)
  end)

  it("describes one, bundled or a file", function()
    local out, _, code = run "build/moongrid recipes picotron"
    assert.equal(0, code)
    assert.truthy(out:find("  tp_size +size +1\n +tensor%-parallel size %(also tp%)\n"))
    assert.truthy(out:find("\n  pp_next_rank\n"))
    assert.truthy(out:find("\n  tp cp pp dp cp_dp pp_dp world_group\n$"))
    assert.truthy((run "build/moongrid recipes optimum_habana"):find(
      "\nsettings\n  training +flag +%-\n +true: [^\n]+\n +are groups\n  sequence_parallel_world_size +size +%-\n[^\n]- %(also sp_world_size%)\n"))
    assert.falsy(out:find "settings")
    assert.truthy((run "build/moongrid recipes examples/custom_group.lua"):find("\n  leaders +flag +true\n +a ring of "))
    refuses("recipes picotron tp=2", 2, "moongrid: recipes takes one recipe and no NAME=VALUE")
  end)

  it("finds its backend however it is called", function()
    for _, line in ipairs { "PATH=$PWD/build:$PATH moongrid doctor",
      "at=$(mktemp -d) && ln -s $PWD/build/moongrid $at/link && $at/link doctor; rm -r $at" } do
      assert.truthy(run(line):find("\nmpi +yes "), line)
    end
  end)

  it("believes no launcher whose numbers cannot be", function()
    for _, variables in ipairs { "PMI_RANK=9 PMI_SIZE=4", "PMI_RANK=-1 PMI_SIZE=4",
      "PMI_RANK=0 PMI_SIZE=0", "PMI_RANK=0 PMI_SIZE=99999999999999999999", "PMI_RANK=' 0' PMI_SIZE=1", "PMIX_RANK=4294967295" } do
      assert.truthy(run("env " .. variables .. " build/moongrid doctor"):find("\nlauncher +no +none"), variables)
    end
  end)

  it("says what works", function()
    local found = json.decode((run "build/moongrid doctor --json"))
    assert.is_true(found.planning.works)
    assert.is_false(found.launcher.works)
    assert.truthy(found.nccl.works or found.nccl.text:find "^nccl: " or found.nccl.text:find "^the nccl backend is not here: ")
    for _, part in ipairs(mg.probe()) do
      assert.same({ part.works, part.text }, { found[part.name].works, found[part.name].text })
    end
    assert.truthy((run "build/moongrid doctor"):find("^planning +yes  moongrid " .. support.version .. ", Lua 5.4"))
  end)
end)

describe("moongrid run without a launcher", function()
  it("plays every rank with --backend dry", function()
    local out, _, code = run("build/moongrid run " .. moe .. " --backend dry --world 64 tp=2 pp=4 ep=4")
    assert.equal(0, code)
    assert.truthy(out:find("64 ranks went through 640 creations of 172 communicators; no rank waits forever\n", 1, true))
    out = run("build/moongrid run picotron --backend dry --world 2 tp=2")
    assert.truthy(out:find("2 ranks went through 2 creations of 1 communicator; no rank waits forever\n", 1, true))
    out = run("build/moongrid run picotron --backend dry --world 1")
    assert.truthy(out:find("1 rank went through 0 creations of 0 communicators; no rank waits forever\n", 1, true))
  end)

  it("refuses unknown backends", function()
    refuses("run " .. moe .. " --backend mpl", 2, "moongrid: unknown backend 'mpl'; nearest is 'mpi' (auto, "
      .. table.concat(support.backends, ", ") .. ", dry)")
    refuses("run " .. moe .. " --backend dry", 2, "moongrid: --backend dry needs --world N, the number of ranks to play")
    refuses("run " .. moe .. " --world 4,8", 2, "moongrid: --world is one number of ranks, in digits, not '4,8'; moongrid check takes several")
    refuses("run", 2, "moongrid: run needs a recipe: a file, or one that 'moongrid recipes' lists")
  end)
end)
