-- SPDX-License-Identifier: MIT
--
-- moongrid infer: find the recipe that makes the groups of a list. scripts/golden --infer measures how often it finds
-- one.

local support = dofile "tests/lua/support.lua"
local json = require "dkjson"
local mg = require "moongrid"
local run, refuses, write = support.run, support.refuses, support.write

local folder = run "mktemp -d":gsub("\n", "")
local function file(name, text) return write(folder .. "/" .. name, text) end

local function key_of(ranks)
  local sorted = table.move(ranks, 1, #ranks, 1, {})
  table.sort(sorted)
  return table.concat(sorted, ",")
end

-- The groups of a plan, each once, and a set of them.
local function groups_of(plan)
  local list, set = {}, {}
  for _, family in pairs(plan) do
    for _, ranks in family:groups() do
      if not set[key_of(ranks)] then set[key_of(ranks)], list[#list + 1] = true, ranks end
    end
  end
  return list, set
end

local function plan(recipe, world, params) return mg.load(recipe):plan(world, params) end

-- Infer groups; return the first candidate, and the world. What it claims is checked against its plan.
local function infer(groups, options)
  local path = file("groups.json", json.encode(groups))
  local out, err, code = run(("build/moongrid infer %s --json %s"):format(path, options or ""))
  assert.equal("", err)
  assert.equal(0, code)
  local answer = json.decode(out)
  for _, candidate in ipairs(answer.candidates) do
    local all, has = groups_of(plan(candidate.recipe, answer.world, candidate.params))
    local left = {}
    for _, ranks in ipairs(groups) do left[#left + 1] = not has[key_of(ranks)] and ranks or nil end
    assert.same(left, candidate.left)
    assert.equal(#groups - #left, candidate.explained)
    assert.equal(#all - candidate.explained, candidate.extra)
  end
  for i = 3, #answer.candidates do -- the names of the input may have chosen the first
    local a, b = answer.candidates[i - 1], answer.candidates[i]
    assert.truthy(a.extra / 10 - a.explained <= b.extra / 10 - b.explained)
  end
  return answer.candidates[1], answer.world
end

describe("moongrid infer", function()
  teardown(function() run("rm -r " .. folder) end)

  for _, row in ipairs {
    { "megatron", 32, { tp = 2, pp = 4, cp = 2, ep = 4, etp = 1 } },
    { "megatron", 12, { tp = 2, pp = 3, order = "tp-pp-dp" } }, -- another order with the sizes exchanged
    { "megatron", 16, { tp = 2, pp = 4, embd = "[0,2,-1]" } }, -- positions that the groups say
    { "megatron", 16, { tp = 4, create_all_gather_groups = true, instances = 2 } },
    { "torchtitan", 32, { tp = 2, cp = 2, pp = 2, dp_replicate = 2, ep = 4 } },
    { "vllm", 48, { tp = 3, pcp = 4, dcp = 6, dp = 2 } },
    { "sglang", 24, { tp = 6, pp = 4, attn_dp = 2, ep = 2, moe_dp = 3 } },
    { "deepspeed_moe", 8, { sp = 2 } },
    { "jax_mesh", 16, { mesh_shape = "4,2,2" } }, -- a list whose product is the world
  } do
    it(("finds what makes the groups of %s at %d ranks"):format(row[1], row[2]), function()
      local best, world = infer((groups_of(plan(table.unpack(row)))))
      assert.equal(row[2], world)
      assert.same({}, best.left)
      assert.equal(0, best.extra)
    end)
  end

  it("finds a recipe whose sizes have to multiply to the world", function()
    local groups = groups_of(plan("xdit", 16, { dp = 2, tp = 2, ulysses = 2, pp = 2 }))
    local best = infer(groups)
    assert.same({ {}, 0 }, { best.left, best.extra })
  end)

  it("prefers the recipe with the names of the input, of those that make as many of the groups", function()
    local out = run "build/moongrid infer tests/blame/loader_stall.tgz" -- torch's names; two recipes have fewer groups more
    assert.truthy(support.flat(out):find("^these 15 groups are among those of megatron tp=2 pp=2 at 8 ranks, which has 10 groups more 14 "
      .. "groups are in a family of the same name "), out)
    local lists = { tp = { { 0, 1 }, { 2, 3 }, { 4, 5 }, { 6, 7 } }, pp = { { 0, 4 }, { 1, 5 }, { 2, 6 }, { 3, 7 } } }
    local path = file("named.json", json.encode(lists))
    assert.truthy(run("build/moongrid infer " .. path):find "\n8 groups are in a family of the same name\n")
    path = file("plain.json", json.encode { lists.tp[1], lists.tp[2], lists.tp[3], lists.tp[4] })
    assert.falsy(run("build/moongrid infer " .. path):find "same name")
    assert.truthy(run(("echo '[[0, 1, 2, 3]]' | build/moongrid infer -")):find "^this 1 group is ")
  end)

  it("needs some of the groups only, and takes the world that it is told", function()
    local groups, some = groups_of(plan("megatron", 32, { tp = 4, pp = 2 })), {}
    for _, ranks in ipairs(groups) do some[#some + 1] = ranks[1] < 8 and #ranks > 1 and ranks or nil end
    local best, world = infer(some, "--world 32")
    assert.equal(32, world)
    assert.same({}, best.left)
    refuses(("infer %s --world 8"):format(file("groups.json", json.encode(some))), 1,
            "moongrid: --world 8: the groups are of 32 ranks or more")
  end)

  it("says what is left, never that groups are what they differ from, and writes a recipe that makes all", function()
    local groups = groups_of(plan("picotron", 24, { tp = 4, pp = 2 }))
    local odd = { { 1, 3, 5 }, { 7, 9, 11 }, { 0, 5, 6, 23 }, { 2, 5 } }
    table.move(odd, 1, #odd, #groups + 1, groups)
    local path = file("groups.json", json.encode(groups))
    local out, err, code = run(("build/moongrid infer %s -o %s/found.lua"):format(path, folder))
    assert.same({ "", 0 }, { err, code })
    assert.truthy(out:find(("^%d of these %d groups are among those of %%l+ "):format(#groups - 4, #groups)), out)
    assert.truthy(out:find("left: 2 groups of 3: (3:2) x (2:6) + 1\n", 1, true), out)
    assert.truthy(out:find("left: 1 group of 4: {0,5,6,23}\n", 1, true), out)
    local text = support.read(folder .. "/found.lua")
    assert.truthy(text:find('= world:modes "(3:2) x (2:6) + 1"\n', 1, true), text) -- strided, a rule
    assert.truthy(text:find('world:table({\n      { 0, 5, 6, 23 },\n    }, "partial")', 1, true), text) -- not
    local _, has = groups_of(plan(folder .. "/found.lua", 24))
    for _, ranks in ipairs(groups) do assert.truthy(has[key_of(ranks)], key_of(ranks)) end
    assert.equal(1, select(3, run(("build/moongrid plan %s/found.lua --world 48"):format(folder))))
  end)

  it("writes a recipe for groups of no recipe, under the names that they have", function()
    local groups = { ring = { { 5, 1, 6 }, { 3, 2 } }, ["a b"] = { { 0, 1, 2, 3, 4, 5, 6 }, { 0, 4, 5 } } }
    local path = file("named.json", json.encode(groups))
    local out, _, code = run(("build/moongrid infer %s --world 9 -o %s/named.lua"):format(path, folder))
    assert.equal(0, code)
    assert.falsy(out:find("these 4 groups", 1, true) == 1, out)
    assert.truthy(out:find("left: ring, 2 groups of up to 3: {3,2}{5,1,6}\n", 1, true), out)
    local made = plan(folder .. "/named.lua", 9)
    assert.same({ { 3, 2 }, { 5, 1, 6 } }, { made:family "ring":ranks(0), made:family "ring":ranks(1) })
  end)

  it("does not say that groups are those of a recipe whose members are in another order", function()
    local groups = {}
    for i, ranks in ipairs((groups_of(plan("picotron", 8, { tp = 2, pp = 2 })))) do
      groups[i] = {}
      for k = #ranks, 1, -1 do groups[i][#ranks + 1 - k] = ranks[k] end
    end
    local out = run("build/moongrid infer " .. file("groups.json", json.encode(groups)))
    assert.truthy(out:find("^these %d+ groups are those of %l.-, except for the%s+order of members\n"), out)
    assert.truthy(out:find("\n%d+ groups with members in another order\n"), out)
  end)

  it("reads lists by name, saved plans, and standard input", function()
    local expected = run "build/moongrid plan picotron --world 8 tp=2 pp=2 --json | build/moongrid infer - --json"
    local lists = {}
    for name, family in pairs(plan("picotron", 8, { tp = 2, pp = 2 })) do
      lists[name] = {}
      for group, ranks in family:groups() do lists[name][group + 1] = ranks end
    end
    local best = json.decode(expected).candidates[1]
    assert.same({ {}, 0 }, { best.left, best.extra })
    local out = run("build/moongrid infer --json " .. file("named.json", json.encode(lists)))
    local named = json.decode(out).candidates[1]
    assert.same({ {}, 0, best.explained }, { named.left, named.extra, named.explained })
  end)

  -- Dumps of torch's flight recorder: each rank has the groups that it is in.
  it("reads the groups of torch's flight recorder, of old and of new releases", function()
    for _, old in ipairs { true, false } do
      local paths = {}
      for rank = 0, 3 do
        local config, id = {}, 0
        for name, family in pairs(plan("picotron", 4, { tp = 2 })) do
          local ranks = family:ranks(family:locate(rank))
          config[tostring(id)] = old and ranks or { name = tostring(id), desc = name, ranks = json.encode(ranks) }
          id = id + 1
        end
        paths[rank + 1] = file("dump" .. rank, json.encode { version = old and "1.4" or "2.10", pg_config = config })
      end
      local answer = json.decode((run("build/moongrid infer --json " .. table.concat(paths, " "))))
      assert.equal(4, answer.world)
      local best = answer.candidates[1]
      assert.same({ {}, 0, 9 }, { best.left, best.extra, best.explained })
    end
  end)

  it("reads a folder and an archive of dumps that are pickles", function()
    local dumps = run "mktemp -d":gsub("\n", "")
    run(("tar xzf tests/blame/stopped.tgz -C %s"):format(dumps))
    for _, path in ipairs { dumps, "tests/blame/stopped.tgz" } do
      local out = run("build/moongrid infer " .. path)
      assert.truthy(out:find "^these 29 groups are among those of picotron tp=2 cp=2 pp=2 at 16 ranks", out)
    end
  end)

  -- Lines of NCCL's logs: the first communicator is the world's, the others are split from it, with and without an id.
  local function nccl_log(split)
    local lines = {}
    for rank = 0, 3 do
      local head = ("host%d:%d:77 [%d] NCCL INFO "):format(rank // 2, 100 + rank, rank % 2)
      local function say(...) lines[#lines + 1] = "[1," .. rank .. "]<stdout>:" .. head .. string.format(...) end
      say("ncclCommInitRank comm 0xa%d rank %d nranks 4 cudaDev %d nvmlDev %d busId 1%d000 commId 0xbeef - Init COMPLETE",
          rank, 3 - rank, rank % 2, rank % 2, rank % 2) -- ranks of the world run from the last host to the first
      say(split, rank, rank % 2, rank % 2, rank % 2, rank % 2, rank, rank // 2, rank // 2)
    end
    return table.concat(lines, "\n")
  end

  it("reads NCCL's logs: ranks are those of the largest communicator", function()
    local head = " comm 0xb%d rank %d nranks 2 cudaDev %d nvmlDev %d busId 1%d000 "
    for _, split in ipairs {
      "ncclCommSplit" .. head .. "parent 0xa%d splitCount 1 color %d key 0- Init START",
      "ncclCommInitRank" .. head .. "commId 0xc%.0s%d - Init COMPLETE",
    } do
      local out, err, code = run("build/moongrid infer --json " .. file("log", nccl_log(split)))
      assert.same({ "", 0 }, { err, code })
      local answer = json.decode(out)
      assert.equal(4, answer.world)
      assert.same({ {}, 3 }, { answer.candidates[1].left, answer.candidates[1].explained }) -- {0,1,2,3} {0,1} {2,3}
    end
    refuses("infer " .. file("log", nccl_log("none"):gsub("nranks 4", "nranks 8")), 1, "moongrid: " .. folder
      .. "/log: no communicator has lines of all of its ranks; give the logs of all ranks")
  end)

  it("refuses what holds no groups, with the place", function()
    local lists = "PATH: a list of groups expected, as [ [0, 1], [2, 3] ]"
    local gloo = "PATH: the dump has no groups: gloo writes only the group that was made last; NCCL writes all"
    for text, message in pairs {
      ["[[0, 1], [2, -3]]"] = "PATH: rank -3 of group 1 is out of range; ranks are 0 to 1048575",
      ["[[0, 1], [2, 3.5]]"] = "PATH: group 1 of the table holds a number, not a rank",
      ["[[0, 1], [2, 1048576]]"] = "PATH: rank 1048576 of group 1 is out of range; ranks are 0 to 1048575",
      ["[[0, 1], [[2], 3]]"] = "PATH: group 1 of the table holds a table, not a rank",
      ["[[0, 1], []]"] = "PATH: group 1 of the table is empty",
      ["[[0, 1], 7]"] = "PATH: group 1 of the table is a number, not a list of ranks",
      ["[[0, 1, 0]]"] = "PATH: rank 0 occurs twice in group 0 of the table",
      ["[]"] = lists,
      ["{}"] = lists,
      ["7"] = lists,
      ['{"tp": 4}'] = lists:gsub("PATH:", "%0 tp:"),
      ['{"tp": [[0, 1], [2, true]]}'] = "PATH: tp: group 1 of the table holds a boolean, not a rank",
      ['{"version": "2.10", "pg_config": {"": {"name": "", "desc": "", "ranks": "[0, 1]"}}}'] = gloo,
      ['{"version": "2.10", "pg_config": {"3": {"ranks": "[0, 1"}}}'] = lists:gsub("PATH:", "%0 pg_config.3:"),
      ['{"version": "2.10", "pg_config": 5}'] = gloo,
      ['{"version": "3.1", "pg_config": 5}'] = "PATH: a dump of version 3.1; versions 1.4 (torch 2.3) and 2.x (torch 2.4 "
        .. "and newer) are read",
      ["[[0, 1]"] = "PATH: it begins like JSON, but is not one whole value, as [ [0, 1], [2, 3] ]",
      ["\x80\x02}q\0."] = "PATH: a pickle, but not a dump of torch's flight recorder: it has no entries",
      ["\x80\x02cposix\nsystem\n."] = "PATH: byte 2: the opcode GLOBAL runs code, and a dump has only data; nothing of it was "
        .. "executed",
      ["no groups\n"] = "PATH: no groups: neither JSON, as [ [0, 1], [2, 3] ], nor communicators with their ids, as "
        .. "logs of NCCL_DEBUG=INFO have them from NCCL 2.16 on",
    } do
      local path = file("wrong", text)
      refuses("infer " .. path, 1, "moongrid: " .. message:gsub("PATH", path))
    end
    refuses("infer", 2, "moongrid: infer needs groups: files, or - for standard input")
    refuses("infer " .. folder .. "/none", 1, "moongrid: cannot read " .. folder .. "/none: No such file or directory")
    refuses('infer "[[0,1]]"', 1, "moongrid: cannot read [[0,1]]: No such file or directory; give the path of a file, or - and this text "
      .. "on standard input")
    refuses("infer /dev/zero", 1, "moongrid: /dev/zero is neither a file nor a folder")
    run(("truncate -s 4G %s/large"):format(folder))
    refuses(("infer %s/large"):format(folder), 1, "moongrid: " .. folder .. "/large has 4.00 GiB; 1.00 GiB at most are read")
    local groups = file("groups.lua", "[[0, 1]]")
    refuses(("infer %s -o %s"):format(groups, groups), 1, ("moongrid: %s would be written over %s, which is read; "
      .. "take another name"):format(groups, groups))
    refuses(("infer %s -o found"):format(groups), 2, "moongrid: --output is a file that ends with .lua, not 'found'")
  end)
end)
