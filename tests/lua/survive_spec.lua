-- SPDX-License-Identifier: MIT
--
-- Spares in recipes, the policy on_lost about a job, and what moongrid lose says, with the whole message of each refusal.

local json = require "dkjson"
local moongrid = require "moongrid"
local support = dofile "tests/lua/support.lua"
local run, refuses = support.run, support.refuses

-- A recipe over tp 2 x dp with a tensor that tp cuts and one that dp cuts; `fields` are more of its fields.
local function recipe_of(fields)
  return support.file(([[
return recipe { %s params = { tp = 2, dp = param.size(nil) }, build = function(world, p)
  local g = grid(world, "tp-dp", { tp = p.tp, dp = p.dp or fill })
  local t = topology(world)
  t.g = g
  t.tp = g "tp"
  t.dp = g "dp"
  t.w = tensor { over = "g", axes = { { "row", 16 } }, type = "f32", cut = { row = "tp" } }
  t.m = tensor { over = "g", axes = { { "row", 24 } }, type = "f32", cut = { row = "dp" } }
  return t
end }
]]):format(fields))
end

local paths = {}
local function recipe(fields)
  paths[fields] = paths[fields] or recipe_of(fields)
  return paths[fields]
end
teardown(function() for _, path in pairs(paths) do os.remove(path) end end)

local function lose(fields, words) return run("build/moongrid lose " .. recipe(fields) .. " " .. words) end

describe("spares", function()
  it("are the last ranks, in no family, named in the plan and its digest", function()
    local plan = moongrid.load(recipe "spares = 2,"):plan(10)
    assert.same({ 8, 9 }, plan.spares)
    assert.truthy(plan:text():find("\nspares spares: (2:1) x (1) + 8\n", 1, true))
    assert.truthy(plan:text():find("\nworld 10\n", 1, true))
    assert.same({}, moongrid.load(recipe "spares = 0,"):plan(8).spares)
    assert.are_not.equal(plan.digest, moongrid.load(recipe 'idle = "allow",'):plan(10).digest)
    local out, err = run("build/moongrid plan " .. recipe "spares = 2," .. " --world 10")
    assert.truthy(out:find("\nspares         2 ranks in no family, to take the place of a lost one: 8, 9\n", 1, true), out)
    assert.equal("", err) -- they are not ranks that somebody forgot
  end)

  it("are a list in JSON, and true for a spare", function()
    local line = "build/moongrid plan " .. recipe "spares = 2," .. " --world 10 --json"
    assert.same({ spares = { 8, 9 } }, json.decode((run(line))).spares)
    assert.same({ spares = true }, json.decode((run(line .. " --rank 9"))).spares)
    assert.same({ spares = false }, json.decode((run(line .. " --rank 7"))).spares)
  end)

  it("are in a plan that is read again", function()
    local saved = os.tmpname()
    for _, how in ipairs { "--json", "--rules" } do
      run(("build/moongrid plan %s --world 10 %s > %s"):format(recipe "spares = 2,", how, saved))
      local out = run("build/moongrid plan " .. saved)
      assert.truthy(out:find(moongrid.load(recipe "spares = 2,"):plan(10).digest, 1, true), how .. out)
    end
    os.remove(saved)
  end)

  it("are the last ones of each node", function()
    local path = recipe 'machine = "node:2 gpu:5", spares = { per = "node" },'
    local plan = moongrid.load(path):plan(10)
    assert.same({ 4, 9 }, plan.spares)
    local world
    local probe = support.file [[return recipe { machine = "node:2 gpu:5", spares = { per = "node", count = 2 },
      build = function(world) log("%d ranks, the last %d", world.size, world:rank(world.size - 1))
      local t = topology(world) t.all = grid(world, "dp", { dp = fill }) "dp" return t end }]]
    local _
    _, world = run("build/moongrid plan " .. probe .. " --world 10")
    assert.truthy(world:find("6 ranks, the last 7", 1, true), world)
    os.remove(probe)
  end)

  local whole = "spares is a number of ranks, 2, or so many in each domain of the machine, { per = \"node\", count = 1 }"
  for _, case in ipairs {
    { "spares = -1,", whole .. "; not less than 0" },
    { "spares = 'two',", whole .. "; not a string" },
    { "spares = { per = 'node', count = 0 },", whole .. ": its count is 1 or more" },
    { "spares = { count = 1 },", "spares in each domain of the machine: per = \"node\" says which" },
    { "spares = { per = 'node', cuont = 2 },", "unknown field of spares 'cuont'; nearest is 'count' (per, count)" },
    { "spares = { per = 'node' },", "spares by the machine, and there is none: --machine gives one, or machine = "
      .. "\"node:4 gpu:8\" in the recipe" },
    { "spares = { per = 'rack' }, machine = 'node:2 gpu:4',",
      "unknown level of the machine 'rack'; known: node, gpu" },
    { "spares = { per = 'node', count = 4 }, machine = 'node:2 gpu:4',",
      "4 spares in each node are all 8 ranks" },
    { "spares = 8,", "8 spares in a world of 8: at least one rank works, so at most 7" },
  } do
    it("refuses " .. case[1], function()
      refuses("plan " .. recipe(case[1]) .. " --world 8", 1, ("moongrid: %s:1: %s"):format(recipe(case[1]), case[2]))
    end)
  end

  it("are in no family", function()
    local path = support.file [[return recipe { spares = 1, machine = "node:2 gpu:4", build = function(world)
      local t = topology(world) t.node = machine.node return t end }]]
    refuses("plan " .. path .. " --world 8", 1, ("moongrid: %s:1: rank 7 is a spare, and in group 1 of family 'node'; "
      .. "families are made over the World that build gets"):format(path))
    os.remove(path)
  end)
end)

describe("moongrid lose", function()
  it("gives a place to a spare", function()
    assert.equal(([[
%s over 6 ranks
lost           1 of 6 ranks: 1
becomes        replace: a layout of 4 ranks, 1 idle: 5
communicators  2 kept (tp 1, dp 1)
               2 made (tp 1, dp 1)
               2 end
moved          80 B; 240 B stay where they are
]]):format(recipe "spares = 2,"), (lose("spares = 2,", "--world 6 --ranks 1")))
  end)

  it("drops the replica that lost a rank, and names what has no copy", function()
    -- of m each of dp 4 had 6 rows, and each of dp 3 gets 8: only ranks 6 and 7 get two of them from others, 16 and 17
    local out = lose("", "--world 8 --ranks 2,3")
    assert.equal(([[
%s over 8 ranks
lost           2 of 8 ranks: 2, 3
becomes        shrink: a layout of 6 ranks
communicators  3 kept (tp 3)
               2 made (dp 2)
               3 end
moved          16 B; 320 B stay where they are
no copy        24 B in 1 part, for a checkpoint to give back
               m row 6..11: 24 B, ranks 2, 3 had it
]]):format(recipe ""), out)
  end)

  it("stops if the recipe accepts no smaller layout, and says why", function()
    local out = lose("", "--world 8 --ranks 2 dp=4")
    assert.truthy(out:find("becomes        stop: the recipe accepts no layout of 1 to 7 ranks; of 7: " .. recipe ""
      .. ":2: ", 1, true), out)
    assert.truthy(out:find('; the policy on_lost may change parameters, { how = "shrink", params = { dp = 3 } }\n', 1,
      true), out)
  end)

  it("does what the policy says about parameters", function()
    local fields = [[policy = { on_lost = function(s, q, p)
      return { how = "shrink", params = { { dp = p.dp - q.lost }, { dp = 1 } } } end },]]
    local out = lose(fields, "--world 8 --ranks 2,4 dp=4")
    assert.truthy(out:find("becomes        shrink: a layout of 4 ranks dp=2, 2 idle: 3, 5\n", 1, true), out)
  end)

  it("asks the bundled policy", function()
    local fields = "spares = 1, policy = { on_lost = policies.on_lost { least = 6 } },"
    assert.truthy(lose(fields, "--world 9 --ranks 0"):find("becomes        replace: ", 1, true))
    assert.truthy(lose(fields, "--world 9 --ranks 0,1"):find("becomes        shrink: a layout of 6 ranks", 1, true))
    assert.truthy(lose(fields, "--world 9 --ranks 0..3"):find("becomes        stop: the policy 'on_lost' says so", 1,
      true))
    local want = "spares = 1, policy = { on_lost = policies.on_lost { job = 'replace' } },"
    assert.truthy(lose(want, "--world 9 --ranks 0,1"):find("becomes        stop: the policy 'on_lost' says replace: "
      .. "2 ranks of the layout are lost, and 1 spare is left\n", 1, true))
    assert.truthy(lose(want, "--world 9 --ranks 8"):find("becomes        replace: a layout of 8 ranks\n", 1, true))
  end)

  it("stops the smaller half of a job that is cut in two, also where only spares are lost", function()
    local fields = "spares = 5, policy = { on_lost = policies.on_lost { majority = true } },"
    local goes, stops = "becomes        replace: a layout of 4 ranks", "becomes        stop: the policy 'on_lost' says so"
    assert.truthy(lose(fields, "--world 9 --ranks 0..3"):find(goes, 1, true))
    assert.truthy(lose(fields, "--world 9 --ranks 5..8"):find(goes, 1, true))
    assert.truthy(lose(fields, "--world 9 --ranks 0..4"):find(stops, 1, true))
    assert.truthy(lose(fields, "--world 9 --ranks 4..8"):find(stops, 1, true))
    assert.truthy(lose("spares = 5,", "--world 9 --ranks 4..8"):find(goes, 1, true))
  end)

  it("gives the policy what is lost", function()
    local fields = [[spares = 1, policy = { on_lost = function(s, q)
      log("%d %d %s %d %d %d", q.ranks, q.lost, table.concat(q.which, ","), q.spares, q.places, q.missing)
      return "stop" end },]]
    local _, err = lose(fields, "--world 9 --ranks 3,2")
    assert.truthy(err:find("9 2 2,3 1 2 24\n", 1, true), err)
    _, err = lose(fields, "--world 9 --ranks 3,8")
    assert.truthy(err:find("9 2 3,8 0 1 0\n", 1, true), err)
  end)

  it("counts a lost spare among the lost, and no spare for it", function()
    for _, fields in ipairs { "spares = 2,", "spares = 2, policy = { on_lost = policies.on_lost {} }," } do
      assert.truthy(lose(fields, "--world 10 --ranks 0,9"):find("becomes        replace: a layout of 8 ranks\n", 1, true))
      assert.truthy(lose(fields, "--world 10 --ranks 0,1,9"):find("becomes        shrink: a layout of 6 ranks, 1 idle: 8\n", 1,
        true))
    end
  end)

  it("shrinks to the largest layout, also where idle ranks suffice for the present one", function()
    local out = lose("spares = 2,", "--world 10 --ranks 0 --how shrink")
    assert.truthy(out:find("becomes        shrink: a layout of 8 ranks, 1 idle: 9\n", 1, true), out)
    local job = moongrid.load(recipe ""):plan(8):lose { ranks = { 7 } } -- 6 and an idle one
    local again = job.plan:lose { ranks = { 2 }, how = "shrink" }
    assert.same({ "shrink", 6, { 0, 1, 6, 3, 4, 5 } }, { again.how, again.layout, again.old_ranks })
    assert.same({ "shrink", 4 }, { again.plan:lose({ ranks = { 0 }, how = "shrink" }).how,
      again.plan:lose({ ranks = { 0 }, how = "shrink" }).layout })
  end)

  it("loses whole nodes, and hints where one has all copies", function()
    local out = lose("", "--world 8 --nodes 1 --machine 'node:4 gpu:2'")
    assert.truthy(out:find("lost           2 of 8 ranks: 2, 3\n", 1, true), out)
    assert.truthy(out:find("hint           all 2 copies of a part of 'm' are in node 0; spread(tp, machine.node) in the "
      .. "recipe refuses such a layout\n", 1, true), out)
  end)

  it("loses racks and rows, and each node of a machine whose ranks are dealt out", function()
    local four = "--machine 'row:2 rack:2 node:2 gpu:1'"
    for _, case in ipairs { { "row", "4..7" }, { "rack", "2, 3" }, { "node", "1" } } do
      local out = lose("", ("--world 8 --nodes 1 --level %s %s"):format(case[1], four))
      assert.truthy(out:find(("lost           %d of 8 ranks: %s\n"):format(case[1] == "row" and 4 or case[1] == "rack" and 2 or 1,
        case[2]), 1, true), out)
    end
    assert.truthy(lose("", "--world 8 --all 1 --level rack " .. four):find("\n4 losses of one rack: the job survives 4, 0 of "
      .. "them without a checkpoint\n", 1, true))
    assert.truthy(lose("", "--world 8 --all 2 --level node " .. four):find("\n28 losses of two nodes: the job survives 28, 24 "
      .. "of them without a checkpoint\n", 1, true))
    local out = lose("", "--world 8 --nodes 1 --machine 'node:2 gpu:4 ranks = 0,4,1,5,2,6,3,7'")
    assert.truthy(out:find("lost           4 of 8 ranks: 1, 3, 5, 7\n", 1, true), out)
    assert.truthy(out:find("no copy        32 B in 1 part, for a checkpoint to give back\n               w row 8..15: 32 B, ranks "
      .. "1, 3, 5, 7 had it\n", 1, true), out)
    assert.truthy(out:find("hint           all 4 copies of a part of 'w' are in node 0; spread(dp, machine.node) in the recipe "
      .. "refuses such a layout\n", 1, true), out)
  end)

  it("gives hints that a recipe can follow: the law refuses the layout, and takes one that has a copy elsewhere", function()
    local path = support.file [[return recipe { params = { order = "tp-dp" }, build = function(world, p)
      local t = topology(world)
      t.g = grid(world, p.order, { tp = 2, dp = 4 })
      t.tp, t.dp = t.g "tp", t.g "dp"
      spread(t.tp, machine.node)
      t.m = tensor { over = "g", axes = { { "row", 24 } }, type = "f32", cut = { row = "dp" } }
      return t end }]]
    local words = "lose " .. path .. " --world 8 --all 1 --level node --machine 'node:4 gpu:2' order="
    local _, err, code = run("build/moongrid " .. words .. "tp-dp")
    assert.equal(1, code)
    assert.truthy(err:find(path .. ":5: spread(a, machine.node): 4 of 4 groups of the family are not spread: ", 1, true), err)
    local out = run("build/moongrid " .. words .. "dp-tp")
    assert.truthy(out:find("4 losses of one node: the job ", 1, true), out)
    assert.falsy(out:find("hint", 1, true), out)
    os.remove(path)
  end)

  it("hints at a policy whose name is nearly on_lost", function()
    local near = 'policy = { on_lots = function() return "stop" end },'
    local hint = "hint           the recipe has a policy 'on_lots', and none with the name on_lost\n"
    assert.truthy(lose(near, "--world 8 --ranks 2"):find(hint, 1, true))
    assert.falsy(lose(near, "--world 8 --ranks 2 --how shrink"):find("hint", 1, true))
    local both = 'policy = { on_lots = function() end, on_lost = function() return "stop" end },'
    assert.falsy(lose(both, "--world 8 --ranks 2"):find("hint", 1, true))
  end)

  it("loses each rank, and every two of them", function()
    local out = lose("", "--world 8 --all 1")
    assert.truthy(out:find("shrink             6          8          3  ", 1, true), out)
    assert.truthy(out:find("\n8 losses of one rank: the job survives 8, 8 of them without a checkpoint\n", 1, true), out)
    local two = json.decode((lose("", "--world 8 --all 2 --json")))
    local losses, worst, whole = 0, 0, 0
    for _, row in ipairs(two.rows) do
      losses, worst, whole = losses + row.losses, math.max(worst, row.missing.bytes), whole + row.with_copies
      assert.equal("shrink", row.how)
    end
    assert.same({ "rank", 2, 28, 24 }, { two.of, two.at_once, losses, worst })
    assert.equal(24, whole) -- all but the two of a tp group, which have the same rows of m
  end)

  it("takes nodes by the names that a file gives them, and says which", function()
    local conf = support.file("SwitchName=s0 Nodes=n[1-2]\nSwitchName=s1 Nodes=n[3-4]\n")
    local words = ("--world 8 --machine '%s gpu:2' --nodes "):format(conf)
    local out = lose("", words .. "n3")
    assert.truthy(out:find("\nwhere          node 2 (n3)\nlost           2 of 8 ranks: 4, 5\n", 1, true), out)
    assert.truthy(lose("", words .. "1,n4"):find("\nwhere          node 1 (n2), node 3 (n4)\nlost           4 of 8 ranks: 2, 3, 6, 7\n", 1, true))
    assert.equal("moongrid: --nodes: the machine has no node 'n5'; nearest is 'n1' (n1, n2, n3, n4)\n", (select(2, lose("", words .. "n5"))))
    -- where rank 0 is in node 1, the node with the name is lost
    assert.truthy(lose("", words:gsub("gpu:2", "gpu:2 ranks = 2..7,0..1") .. "n1"):find("lost           2 of 8 ranks: 6, 7\n", 1, true))
  end)

  it("says that weights are not known where a recipe has no tensors", function()
    local words = "tensors        none in this recipe: what weights move, or are lost, is not known\n"
    assert.truthy(run("build/moongrid lose megatron --world 8 --ranks 3"):find(words, 1, true))
    assert.truthy(run("build/moongrid lose megatron --world 8 --all 1"):find(words, 1, true))
    assert.falsy(lose("", "--world 8 --ranks 3"):find(words, 1, true))
  end)

  it("is JSON", function()
    local x = json.decode((lose("", "--world 8 --ranks 2,3 --json")))
    assert.same({ 2, 3 }, x.lost)
    assert.same({ 0, 1, 4, 5, 6, 7 }, x.old_ranks)
    assert.same({ "shrink", "", 6, 0 }, { x.how, x.why, x.layout, #x.idle })
    assert.same({ { tensor = "m", range = "row 6..11", bytes = 24, holders = { 2, 3 } } }, x.missing)
    assert.same({ kept = 3, made = 2, dropped = 3,
                  families = { tp = { kept = 3, made = 0 }, dp = { kept = 0, made = 2 } } }, x.communicators)
    assert.equal(moongrid.load(recipe ""):plan(6).digest, x.digest)
    local stop = lose("", "--world 8 --ranks 2 --how stop --json")
    assert.truthy(stop:find('"families": {}', 1, true) and stop:find('"missing": []', 1, true), stop)
  end)

  local policy = "policy = { on_lost = function(s, q) %s end },"
  for _, case in ipairs {
    { "--ranks 8", "", 1, "--ranks: rank 8 is out of range (0 to 7)" },
    { "--ranks 3,3", "", 1, "--ranks: rank 3 is given twice" },
    { "--ranks 0..7", "", 1, "all 8 ranks are lost, and nobody is left to go on" },
    { "--ranks 5x", "", 2, "--ranks '5x', character 2: expected a rank, or a range such as 8..15" },
    { "--ranks 4..2", "", 2, "--ranks '4..2', character 4: expected a rank, or a range such as 8..15" },
    { "--ranks 2,", "", 2, "--ranks '2,', character 3: expected a rank, or a range such as 8..15" },
    { "--world 2147483640 --ranks 5", "", 3, "a loss takes memory for each of 2147483640 ranks; nearest: --world 16777216" },
    { "--ranks a", "", 2, "--ranks 'a', character 1: expected a rank, or a range such as 8..15" },
    { "", "", 2, "lose takes one of --ranks 5,13, --nodes 2 and --all 1" },
    { "--ranks 1 --all 1", "", 2, "lose takes one of --ranks 5,13, --nodes 2 and --all 1" },
    { "--all 3", "", 2, "--all is 1 or 2, not '3'" },
    { "--world 4096 --all 2", "", 3, "--all 2: 4096 ranks are too many to try each pair in turn; nearest: --world 645; or lose "
      .. "those of interest, as --ranks 5,13, or whole nodes, by --level node" },
    { "--world 2147483646 --all 1", "", 3, "--all 1: 2147483646 ranks are too many to try each in turn; nearest: --world 11585; "
      .. "or lose those of interest, as --ranks 5,13, or whole nodes, by --level node" },
    { "--world 2147483646 --all 1 --level node --machine 'node:1073741823 gpu:2'", "", 3, "--all 1: 1073741823 nodes of "
      .. "2147483646 ranks are too many to try in turn; lose those of interest, as --nodes 0,1, or take a smaller --world" },
    { "--ranks 1 --level node", "", 2, "--level is for --nodes and --all" },
    { "--nodes 0", "", 2, 'lose needs a machine: --machine "node:4 gpu:8", a preset as dgx-h100, or a file; or '
      .. "machine = in the recipe" },
    { "--nodes 4 --machine 'node:4 gpu:2'", "", 1, "--nodes: node 4 is out of range (0 to 3)" },
    { "--all 1 --level node --machine 'node:1 gpu:8'", "", 1, "--all 1: there is only 1 node, and one must survive" },
    { "--ranks 1", 'return "shrik"', 1,
      "policy 'on_lost' returned 'shrik'; nearest is 'shrink' (stop, replace, shrink)" },
    { "--ranks 1", "return 7", 1, "policy 'on_lost' returned no answer: \"replace\", \"shrink\", \"stop\", or a "
      .. 'table, { how = "shrink", params = { dp = 3 } }' },
    { "--ranks 1", 'return { how = "shrink", prams = {} }', 1,
      "policy 'on_lost' returned a table with 'prams'; nearest is 'params' (how, params)" },
    { "--ranks 1", 'return { how = "stop", params = { dp = 3 } }', 1,
      "policy 'on_lost' returned parameters for 'stop'; only a shrink changes parameters" },
    { "--ranks 1", 'return { how = "shrink", params = { dp = {} } }', 1,
      "policy 'on_lost': parameter 'dp' is a number, text, a truth value or a list of integers" },
    { "--ranks 1", 'return { how = "shrink", params = "dp" }', 1, "policy 'on_lost': 'params' is a table of parameters "
      .. "by name, { dp = 3 }, or a list of such, of 1 to 64 parameters" },
  } do
    it("refuses " .. case[1] .. " " .. case[2], function()
      local fields = case[2] == "" and "" or policy:format(case[2])
      local where = case[4]:find("^policy") and recipe(fields) .. ":1: " or ""
      local world = case[1]:find("--world", 1, true) and "" or "--world 8 "
      refuses("lose " .. recipe(fields) .. " " .. world .. case[1], case[3], "moongrid: " .. where .. case[4])
    end)
  end

  it("ends a policy that loops or fails", function()
    local _, err, code = lose(policy:format "while true do end", "--world 8 --ranks 1")
    assert.equal(3, code) -- a limit
    assert.truthy(err:find("the recipe runs for more than 200000000 instructions\n", 1, true), err)
    _, err, code = lose(policy:format 'error("not today")', "--world 8 --ranks 1")
    assert.equal(1, code)
    assert.truthy(err:find(":1: not today\n", 1, true), err)
  end)
end)

describe("a recipe that reads the machine", function()
  local path = support.file [[return recipe { machine = "node:4 gpu:4", spares = { per = "node" },
    build = function(world)
      local g = grid(world, "tp-dp", { tp = 3, dp = fill })
      local t = topology(world)
      t.tp = g "tp"
      within(t.tp, machine.node)
      t.dp = g "dp"
      return t
    end }]]
  local plan = moongrid.load(path):plan(16)
  teardown(function() os.remove(path) end)

  it("gets the spare of the same node", function()
    local x = plan:lose { ranks = { 5 } }
    assert.same({ "replace", { 0, 1, 2, 4, 7, 6, 8, 9, 10, 12, 13, 14, 3, 11, 15 } }, { x.how, x.old_ranks })
    -- the survivors run where they ran: rank 3 of the plan was rank 4, at place 4
    assert.equal("node:4 gpu:4 ranks = 0..2,4,7,6,8..10,12..14,3,11,15", x.plan.machine)
  end)

  it("shrinks where no spare of the node is left, as its law asks", function()
    for _, lost in ipairs { { 5, 7 }, { 5, 6 }, { 4, 5, 6, 7 } } do
      local x = plan:lose { ranks = lost }
      assert.same({ "shrink", 9, 0 }, { x.how, x.layout, x.communicators.families.tp.made })
      for tp = 0, 2 do
        local node = x.old_ranks[3 * tp + 1] // 4
        for i = 1, 3 do assert.equal(node, x.old_ranks[3 * tp + i] // 4) end
      end
    end
  end)

  it("stops where the law lets nobody go on", function()
    local x = plan:lose { ranks = { 0, 1, 4, 5, 8, 9, 12, 13 } }
    assert.equal("stop", x.how)
    assert.truthy(x.why:find("the recipe accepts no layout of 1 to 8 ranks; of 8: ", 1, true), x.why)
  end)

  it("does not keep the machine of the survivors", function()
    local recipe_ = moongrid.load(path)
    local again = recipe_:plan(16)
    again:lose { ranks = { 5 } }
    assert.equal(again.digest, recipe_:plan(16).digest)
    assert.equal(plan.digest, again.digest)
  end)
end)

describe("experts with owners", function()
  -- ep 4 x dp 2: each of 8 experts is on two ranks. With rank 2 the layout loses one of the four pieces, so pieces 0, 1, 3
  -- become 0, 1, 2, and the experts of the lost one are dealt to them.
  local path = support.file [[
local was = { 0, 0, 1, 1, 2, 2, 3, 3 }
local now = { 1, 1, 2, 2, 2, 1, 0, 0 } -- as loads ask for, in any numbering
return recipe {
  params = { ep = 4, owners = param.list(was), relabels = true },
  build = function(world, p)
    local t = topology(world)
    t.g = grid(world, "ep-dp", { ep = p.ep, dp = fill })
    t.ep = t.g "ep"
    t.w = tensor { over = "g", axes = { { "expert", 8 }, { "row", 4 } }, type = "f32",
                   cut = { expert = { "ep", owners = p.owners } } }
    return t
  end,
  policy = { on_lost = function(_, q, p)
    local lost, from = q.which[1] % 4, {}
    for i, piece in ipairs(p.owners) do from[i] = piece == lost and 3 or piece > lost and piece - 1 or piece end
    return { how = "shrink", params = { ep = 3, owners = p.relabels and relabel(from, now) or now } }
  end } }]]
  teardown(function() os.remove(path) end)

  it("are numbered by on_lost so that the fewest move", function()
    local moved = {}
    for i, relabels in ipairs { true, false } do
      local x = moongrid.load(path):plan(8, { relabels = relabels }):lose { ranks = { 2 } }
      assert.same({ "shrink", 6, 0 }, { x.how, x.layout, x.bytes.missing })
      moved[i] = x.bytes.moved
    end
    -- in both replicas the two experts of the lost piece move, 16 bytes each, and nothing else
    assert.equal(2 * 2 * 16, moved[1])
    assert.is_true(moved[2] > 3 * moved[1])
  end)
end)

describe("plan:lose", function()
  it("returns what the job becomes, and its plan", function()
    local plan = moongrid.load(recipe "spares = 1,"):plan(9)
    local x = plan:lose { ranks = { 3, 2 } }
    assert.same({ "shrink", 6, 24 }, { x.how, x.layout, x.bytes.missing })
    assert.same({ 0, 1, 4, 5, 6, 7, 8 }, x.old_ranks)
    assert.same({ 7, { 6 } }, { x.plan.world, x.plan.spares })
    assert.equal(x.digest, x.plan.digest)
    local again = x.plan:lose { ranks = { 0 } } -- the job goes on, and loses another one: the idle one replaces it
    assert.same({ "replace", { 6, 1, 2, 3, 4, 5 } }, { again.how, again.old_ranks })
    assert.same({ "stop", "the caller says so" }, { plan:lose({ ranks = { 0 }, how = "stop" }).how,
      plan:lose({ ranks = { 0 }, how = "stop" }).why })
  end)

  it("keeps the parameters of the plan", function()
    local plan = moongrid.load(recipe ""):plan(8, { tp = 4 })
    assert.equal(4, plan:lose({ ranks = { 7 } }).layout)
  end)

  it("keeps the options that the plan was given", function()
    local plan = moongrid.load(recipe ""):plan(8, { "tp.timeout=7" })
    assert.truthy(plan:lose({ ranks = { 7 } }).plan:text():find("timeout_us=7000000", 1, true))
  end)

  it("is text, as the command prints it", function()
    local plan = moongrid.load(recipe ""):plan(8)
    local out = lose("", "--world 8 --ranks 2,3")
    assert.equal(out:match "\n(lost .*)$", tostring(plan:lose { ranks = { 3, 2 } }) .. "\n")
  end)

  it("is one of many, whose sums are asked alone", function()
    local plan = moongrid.load(recipe ""):plan(8)
    local losses = plan:losses()
    for rank = 0, 7 do
      local one, sums = losses:lose { rank }, losses:sums { rank }
      assert.same(plan:lose({ ranks = { rank } }).old_ranks, one.old_ranks)
      assert.same({ how = one.how, why = one.why, params = one.params, layout = one.layout, idle = #one.idle,
                    kept = one.communicators.kept, made = one.communicators.made, dropped = one.communicators.dropped,
                    stay = one.bytes.stay, moved = one.bytes.moved, missing = one.bytes.missing,
                    uncounted = one.uncounted }, sums)
    end
    assert.equal("stop", plan:losses({ how = "stop" }):sums({ 1 }).how)
    local _, message = pcall(function() losses:sums(3) end)
    assert.equal("sums: the argument is a list of lost ranks, not a number", (message:gsub("^[^ ]*:%d+: ", "")))
  end)

  it("is asked by examples/worst_loss.lua as by moongrid lose --all 1", function()
    local machine = "'node:4 gpu:2'"
    local out, err = run(("LUA_CPATH_5_4='build/?.so;;' lua5.4 examples/worst_loss.lua %s 8 %s"):format(recipe "", machine))
    assert.equal("", err)
    for _, level in ipairs { "node", "gpu" } do
      local row = json.decode((lose("", ("--world 8 --machine %s --all 1 --level %s --json"):format(machine, level)))).rows[1]
      assert.truthy(out:find(("%s %d: %s to %d ranks, %d bytes moved, %d without a copy\n"):format(level, row.missing.lost[1],
        row.how, row.layout, row.moved.bytes, row.missing.bytes), 1, true), out)
    end
    assert.truthy(out:find("  node 0 has all 2 copies of some of m\n", 1, true), out)
  end)

  it("goes with who holds the parts of a tensor", function()
    local plan = moongrid.load(recipe ""):plan(8)
    assert.same({ 1, 3, 5, 7 }, plan:holders("w", 5))
    assert.same({ 4, 5 }, plan:holders("m", 4))
    assert.same({ 0, 0 }, { plan:together("m", plan:family "tp") }) -- tp pairs have the same rows of m
    assert.same({}, { plan:together("w", plan:family "tp") })
    assert.same({ 0, 0 }, { plan:together("w", plan:family "dp") })
    for _, ask in ipairs { "holders", "together" } do
      local _, message = pcall(plan[ask], plan, "mm", ask == "holders" and 0 or plan:family "tp")
      assert.equal("unknown tensor 'mm'; nearest is 'm' (w, m)", (message:gsub("^[^ ]*:%d+: ", "")))
    end
  end)

  for _, case in ipairs {
    { { ranks = { 8 } }, "rank 8 is out of range (0 to 7)" },
    { { ranks = { 1, 1 } }, "rank 1 is lost twice" },
    { { ranks = {} }, "no rank is lost" },
    { { ranks = { "1" } }, "lose: number 1 of ranks is a string, not a rank" },
    { {}, "lose: ranks is a list of lost ranks, not nil" },
    { { ranks = { 1 }, how = "shrik" }, "unknown answer to a loss 'shrik'; nearest is 'shrink' (stop, replace, shrink)" },
  } do
    it("refuses: " .. case[2], function()
      local ok, message = pcall(function() moongrid.load(recipe ""):plan(8):lose(case[1]) end)
      assert.same({ false, case[2] }, { ok, (tostring(message):gsub("^[^ ]*:%d+: ", "")) })
    end)
  end

  it("needs the recipe", function()
    local world = moongrid.world(4)
    local t = moongrid.topology(world)
    t.all = moongrid.grid(world, "dp", { dp = 4 }) "dp"
    local ok, message = pcall(function() moongrid.plan(t):lose { ranks = { 1 } } end)
    assert.same({ false, "what a job becomes is up to its recipe: recipe:plan(...) makes a plan that has one" },
      { ok, (tostring(message):gsub("^[^ ]*:%d+: ", "")) })
  end)
end)

-- Run a script of each rank, with the path of the recipe as its argument; `before` is what comes before scripts/launch.
local function script(before, ranks, text)
  local path = support.file(text)
  local out, err, code = run(("%s scripts/launch %d env 'LUA_CPATH_5_4=build/?.so' lua5.4 %s %s"):format(before, ranks, path,
    recipe ""))
  os.remove(path)
  return out, err, code
end

describe("state:recover", function()
  it("refuses what it cannot do, and changes nothing", function()
    local out, err = script("", 2, [[
      local mg = require "moongrid"
      local job = assert(mg.mpi { timeout = 20 })
      local state = assert(job:materialize(mg.load(arg[1]):plan(job.world), "here"))
      local function say(ok, a, b, c) if job.rank == 0 then print((tostring(b or a):gsub("^[^ ]*:%d+: ", "")), c) end end
      say(pcall(state.recover, state, { timeuot = 3 }))
      say(pcall(state.recover, state, { timeout = "3" }))
      say(pcall(state.recover, state, { nccl_shrink = "yes" }))
      say(pcall(state.recover, state, { timeout = -1 }))
      say(pcall(state.recover, state, { how = 3 }))
      say(pcall(state.recover, state, { how = "shrik" }))
      say(pcall(state.recover, state, { lost = { 1 } }))
      say(pcall(state.recover, state, { job = job }))
      say(pcall(state.recover, state, { job = job, lost = { "1" } }))
      say(pcall(state.recover, state, { job = job, lost = { 1 } }))
      local dry = state.plan:dry(0)
      say(pcall(dry.recover, dry))
      local world = mg.world(2)
      local t = mg.topology(world)
      t.all = mg.grid(world, "dp", { dp = 2 }) "dp"
      local alone = assert(job:materialize(mg.plan(t)))
      say(pcall(alone.recover, alone))
      say(pcall(state.recover, state))
      say(pcall(state.settle, state, false, "no", 0))
      say(pcall(state.settle, state, job.rank == 0 or nil, "mine alone", 100))
      say(pcall(state.least, state, "two"))
      say(true, tostring(state:settle()), nil, state:least(7 - job.rank))
      say(true, tostring(state:hurt()), nil, state:prove())
      alone:close() state:close() job:close()
    ]])
    local lines = {}
    for line in out:gmatch "[^\n]+" do lines[#lines + 1] = line end
    local ends = lines[13]
    table.remove(lines, 13)
    assert.same({
      "unknown option of recover 'timeuot'; nearest is 'timeout' (how, job, lost, name, nccl_shrink, timeout)\tnil",
      "recover: timeout is a number of seconds, not a string\tnil",
      "recover: nccl_shrink is true or false, not a string\tnil",
      "recover: a timeout is 0 (the default) seconds or more, not -1\t103",
      "recover: how is a string, not a number\tnil",
      "unknown answer to a loss 'shrik'; nearest is 'shrink' (stop, replace, shrink)\tnil",
      "recover: give both or neither: job, the Job of the survivors, and lost, the lost ranks\tnil",
      "recover: give both or neither: job, the Job of the survivors, and lost, the lost ranks\tnil",
      "recover: number 1 of lost is a string, not a rank\tnil",
      "the survivors need a backend of their own, not the state's\t200",
      "recover: a dry state has only this rank, and loses none\tnil",
      "what a job becomes is up to its recipe: recipe:plan(...) makes a plan that has one\tnil",
      "settle: 0 is not the status of an error\tnil",
      "rank 1: mine alone\t100",
      "bad argument #2 to '?' (number expected, got string)\tnil",
      "true\t6",
      "false\t1",
    }, lines, err)
    local five = ends:find("this job", 1, true) -- Open MPI 5, without --with-ft ulfm
    assert.equal((five and "mpi: this job ends with its first lost rank; it goes on if it is started by mpirun --with-ft "
      .. "ulfm; else start it again from its last checkpoint\t"
      or "mpi: this MPI ends with its first lost rank; Open MPI goes on, since 5.0, under mpirun --with-ft ulfm; else start "
      .. "the job again from its last checkpoint\t") .. "402", ends)
  end)

  it("goes on without a rank that kills itself, and without another, under Open MPI 5", function()
    local lacks = run("scripts/mpi --list"):match "openmpi5 %- ([^\n]*)"
    if lacks then return pending("Open MPI 5 is absent: " .. lacks) end
    local out, err, code = script('LAUNCH_OPTIONS="--with-ft ulfm" scripts/mpi openmpi5', 6, [[
      local mg = require "moongrid"
      local job = assert(mg.mpi { timeout = 20 })
      local state = assert(job:materialize(mg.load(arg[1]):plan(job.world), "first"))
      local function lose(rank) if state.rank == rank then os.execute "kill -9 $PPID" end end
      local function go_on()
        local _, message, status = state:prove()
        local next, loss, move, rest = assert(state:recover { name = "next" })
        assert(next:settle(move:prove(rest)))
        local proved, least = assert(next:prove()), assert(next:least(next.rank + 10))
        if next.rank == 0 then
          io.write(table.concat({ status, message:match "^rank %d is lost", loss.how, loss.layout, loss.plan.world,
            table.concat(loss.lost, ","), table.concat(loss.idle, ","), rest.world, least, tostring(next:hurt()) }, " "), "\n")
        end
        assert(loss.plan.digest == next.plan.digest and proved >= 0)
        state:close()
        state, job = next, rest
      end
      lose(3)
      go_on() -- tp 2 x dp 2 and an idle one
      lose(0)
      go_on() -- which takes the place of the next that is lost
      state:close() job:close()
    ]])
    assert.same({ "404 rank 3 is lost shrink 4 5 3 2 5 10 false\n404 rank 0 is lost replace 4 4 0  4 10 false\n", 0 },
      { out, code }, err)
  end)
end)
