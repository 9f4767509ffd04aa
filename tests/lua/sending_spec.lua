-- SPDX-License-Identifier: MIT
--
-- What a plan sends on a machine, for every Lua program: machine:leaving and machine:cost, added up here again from the
-- groups; hosts; the functions that moongrid place is made of.

local support = dofile "tests/lua/support.lua"
local mg = require "moongrid"

local GB = 1e9
-- Of n members: the bytes of each edge, and which pairs have one.
local flows = {
  all_reduce = { "ring", function(n) return 2 * (n - 1) / n * GB end },
  all_gather = { "ring", function(n) return (n - 1) / n * GB end },
  reduce_scatter = { "ring", function(n) return (n - 1) / n * GB end },
  all_to_all = { "pairs", function(n) return 1 / n * GB end },
  broadcast = { "chain", function() return GB end },
  send = { "chain", function() return GB end },
}

-- Add what a group sends over an edge to the sum, and to what leaves the two domains.
local function edge(sum, leaving, domains, a, b, bytes)
  local from, to = domains[a + 1], domains[b + 1]
  if from == to then return sum end
  leaving[from + 1] = (leaving[from + 1] or 0) + bytes
  leaving[to + 1] = (leaving[to + 1] or 0) + bytes
  return sum + bytes
end

local function expected(family, flow, domains)
  local kind, of = flows[flow][1], flows[flow][2]
  local sum, leaving = 0, {}
  for g = 0, family.count - 1 do
    local ranks = family:ranks(g)
    local n = #ranks
    for i = 1, n - 1 do
      if kind == "pairs" then
        for k = i + 1, n do sum = edge(sum, leaving, domains, ranks[i], ranks[k], of(n)) end
      else
        sum = edge(sum, leaving, domains, ranks[i], ranks[i + 1], of(n))
      end
    end
    if kind == "ring" and n > 2 then sum = edge(sum, leaving, domains, ranks[n], ranks[1], of(n)) end
  end
  return kind == "pairs" and 2 * sum or sum, leaving -- a pair sends both ways; each leaves one domain
end

local function near(a, b, why) assert.is_true(math.abs(a - b) <= 1e-9 * math.max(a, b), ("%s: %g, %g"):format(why, a, b)) end

local machines = { "rack:2 node:3 gpu:4 rail = gpu", "rack:2[1GB/s] node:2,3[2GB/s] gpu:5,4,8,3,4",
                   "node:6[50GB/s] gpu:4 ranks = 12..23,0..11", "gpu:24" }

describe("what a plan sends on a machine", function()
  local plan = mg.load("picotron"):plan(24, { "tp=2", "pp=3", "cp=2" })

  it("is what its groups send, in all and out of each domain", function()
    local compared = 0
    for _, words in ipairs(machines) do
      local machine = mg.open_machine(words)
      for _, level in ipairs(machine:levels()) do
        local domains = machine:domains(level.name, 24)
        for flow in pairs(flows) do
          local bytes, leaving = machine:leaving(plan, level.name, ("cp_dp = 1 GB %s"):format(flow))
          local sum, out = expected(plan:family "cp_dp", flow, domains)
          local why = words .. " " .. level.name .. " " .. flow
          near(sum, bytes.cp_dp, why)
          for i, left in ipairs(leaving) do near(out[i] or 0, left, why) end
          compared = compared + 1
        end
      end
    end
    assert.equal(10 * 6, compared)
  end)

  it("adds up flows, and leaves out families that are not asked for", function()
    local machine = mg.open_machine(machines[1])
    local all = "tp = 1 GB all_reduce + 2 GB send x 3; dp = 1 GB all_reduce; tp = 1 GB send"
    local tp = machine:leaving(plan, "gpu", "tp = 1 GB all_reduce + 7 GB send")
    local dp, dp_leaves = machine:leaving(plan, "gpu", "dp = 1 GB all_reduce")
    local both, both_leave = machine:leaving(plan, "gpu", all)
    assert.same({ tp = tp.tp, dp = dp.dp }, both)
    local one, leaves = machine:leaving(plan, "gpu", all, { "dp", "pp" })
    assert.same({ dp = dp.dp }, one)
    assert.same(dp_leaves, leaves)
    assert.not_same(both_leave, leaves)
    assert.same({}, (machine:leaving(plan, "gpu", "")))
  end)

  it("costs that, and not less than the bound, at every level but that of places", function()
    local traffic = "tp = 1 GB all_reduce; dp = 2 GB all_to_all; cp_dp = 1 GB send x 2"
    for i, words in ipairs(machines) do
      local machine = mg.open_machine(words)
      local cost, seconds = machine:cost(plan, traffic, true), 0
      for k, level in ipairs(machine:levels()) do
        local bytes, leaving = machine:leaving(plan, level.name, traffic)
        local counts = not level.crossing and (level.name ~= "gpu" or i == 4 and k == 1)
        assert.equal(counts, cost.bytes[level.name] ~= nil)
        if counts then
          near(bytes.tp + bytes.dp + bytes.cp_dp, cost.bytes[level.name], words)
          assert.is_true(cost.bound[level.name] <= cost.bytes[level.name] * (1 + 1e-12))
          if level.bandwidth > 0 then seconds = seconds + math.max(table.unpack(leaving)) / level.bandwidth end
        end
      end
      near(seconds, cost.seconds, words)
      local untimed = machine:cost(plan, traffic)
      assert.is_nil(untimed.seconds)
      for level, bytes in pairs(cost.bytes) do near(bytes, untimed.bytes[level], words) end
    end
    local shared, own = mg.load("megatron"):plan(24, { "pp=3", "pp.backend=none" }), {} -- assumed: an all_reduce of each
    for _, name in ipairs(shared.families) do
      local makes = shared:communicators(name)
      if makes.made and not makes.shares then own[#own + 1] = name .. " = 1 GiB all_reduce" end
    end
    assert.is_true(#own > 3 and #own < #shared.families)
    local machine = mg.open_machine(machines[1])
    assert.same(machine:cost(shared, table.concat(own, "; ")), machine:cost(shared))
  end)

  it("is what the recipe says, or its step", function()
    assert.is_false(plan.traffic)
    local own = mg.load("own.lua", { text = [[return recipe {
      traffic = { a = "2 GiB all_reduce x 96" },
      build = function(world)
        local t = topology(world)
        t.a, t.b = grid(world, "a", { a = fill }) "a", grid(world, "b-a", { b = 2, a = fill }) "b"
        return t
      end,
      step = function(s)
        s:all_reduce(s.a, s.a.position == 0 and 128 or 64)
        s:all_gather(s.a, 80)
        s:broadcast(s.b, 7, 0)
      end }]] }):plan(4)
    assert.equal("a = 2147483648 B all_reduce x 96", own.traffic)
    assert.equal("b = 7 B broadcast; a = 80 B all_reduce + 80 B all_gather", own:step():traffic())
  end)

  it("refuses", function()
    local machine = mg.open_machine "node:4 gpu:8"
    for message, call in pairs {
      ["unknown family 'tpp'; nearest is 'tp' (tp, cp, pp, dp, cp_dp, pp_dp, world_group)"] = { "leaving", plan, "node", "tpp = 1 GB send" },
      ["unknown family 'x'; known: tp, cp, pp, dp, cp_dp, pp_dp, world_group"] = { "leaving", plan, "node", "tp = 1 GB send", { "x" } },
      ["unknown level of the machine 'nod'; nearest is 'node' (node, gpu)"] = { "leaving", plan, "nod", "tp = 1 GB send" },
      ["traffic is written as 'tp = 2 GiB all_reduce x 96; dp = ...', not 'tp'"] = { "cost", plan, "tp" },
      ["a world of 64 ranks does not fit the machine, which has 32 places"] = { "cost", mg.load("picotron"):plan(64) },
      ["no nodes to assign: they must have one size and lie in several domains, and the ranks must need several of them"] = { "assign", plan },
      ["the machine has no rank 32"] = { "seat", 32 },
    } do
      local done, why = pcall(machine[call[1]], machine, table.unpack(call, 2))
      assert.same({ false, message }, { done, (why:gsub("^tests/lua/sending_spec.lua:%d+: ", "")) })
    end
  end)
end)

describe("a machine", function()
  it("says where a rank sits, names of domains, and what NVLink connects", function()
    local path = support.file "SwitchName=s0 Nodes=n[0-2]\nSwitchName=s1 Nodes=n[3-4]\nSwitchName=top Switches=s[0-1]\n"
    local machine = mg.open_machine(path .. " nodes=n3,n0,n4,n1 gpu:2")
    local names = {}
    for rank = 0, 7 do
      local place, host, slot, name = machine:seat(rank)
      assert.same({ rank % 2, name }, { slot, machine:domain_name("node", host) })
      assert.equal(host, machine:domains("node", 8)[rank + 1])
      assert.equal(2 * host + slot, place)
      names[rank // 2 + 1] = name
    end
    assert.same({ "n3", "n0", "n4", "n1" }, names)
    assert.is_nil(mg.open_machine "node:2 gpu:2":domain_name("node", 1))
    for words, level in pairs { ["dgx-h100"] = { "node", 8 }, ["gb200-nvl72"] = { "rack", 72 }, ["clique:2 node:1 gpu:3,2"] = { "clique" },
                                ["node:2 gpu:4 ranks = 4..7,0..3"] = { "node" } } do
      assert.same(level, { mg.open_machine(words):nvlink_level() }, words)
    end
    assert.is_nil(machine:nccl_topology())
    assert.is_true(machine:assignable(8))
    assert.is_false(machine:assignable(2))
  end)

  it("gives ranks the nodes that cost least, as examples/cheapest_nodes.lua prints them", function()
    local path = support.file "SwitchName=s0 Nodes=n[0-1]\nSwitchName=s1 Nodes=n[2-3]\nSwitchName=top Switches=s[0-1]\n"
    local recipe = support.file [[return recipe {
      traffic = { dp = "1 GB all_reduce" },
      build = function(world)
        local t = topology(world)
        t.dp = grid(world, "dp-pp", { pp = 2, dp = fill }) "dp"
        return t
      end }]]
    local words = path .. " nodes=n0,n2,n1,n3 gpu:2"
    local machine, plan = mg.open_machine(words), mg.load(recipe):plan(8)
    local found, sorted = machine:assign(plan, plan.traffic)
    local costs, taken = {}, {}
    for i, one in ipairs { machine, sorted, found } do costs[i] = one:cost(plan, plan.traffic).bytes.switch end
    assert.same({ 2 * 2 * 1.5 * GB, 0, 0 }, costs)
    for rank = 0, 7 do taken[found:seat(rank) + 1] = true end
    assert.equal(8, #taken)
    local out, err = support.run("LUA_CPATH_5_4='build/?.so;;' lua5.4 examples/cheapest_nodes.lua " .. recipe .. " 8 '" .. words .. "'")
    assert.equal("", err)
    assert.truthy(out:find("switch: 6e+09 bytes, at least 0\n  6e+09 bytes leave s0; dp sends most\n", 1, true), out)
    assert.truthy(out:find("\nNVLink connects each node\non the nodes below 0 bytes\nn", 1, true), out)
  end)
end)

describe("recipe:call", function()
  it("refuses an answer that is not a number, with the line of the policy, if one is asked for", function()
    local loaded = mg.load("p.lua", { text = "return recipe { policy = { one = function() return 1 end,\nword = function() return 'a' end },"
      .. "\nbuild = function(world) return topology(world) end }" })
    local state <close> = loaded:plan(2):dry(0)
    assert.same({ 1, "a" }, { loaded:call(state, "one", nil, "number"), (loaded:call(state, "word", {}, "any")) })
    local done, why = pcall(loaded.call, loaded, state, "word", {}, "number")
    assert.same({ false, "p.lua:2: policy 'word' returned text, not a number" }, { done, why })
    assert.has_error(function() loaded:call(state, "one", {}, "text") end)
  end)
end)
