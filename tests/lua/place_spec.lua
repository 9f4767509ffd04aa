-- SPDX-License-Identifier: MIT
--
-- moongrid place: the domains that groups cross, and the bytes that they send, counted here again from the groups that
-- plan prints.

local support = dofile "tests/lua/support.lua"
local json = require "dkjson"
local run, file = support.run, support.file

local function moongrid(line) return run("build/moongrid " .. line) end
local function place(line) return json.decode((moongrid("place " .. line .. " --json"))) end

-- The domains of the places of "rack:R node:N gpu:G rail = gpu", as functions of the place.
local function regular(nodes, gpus)
  return {
    rack = function(place_) return place_ // (nodes * gpus) end,
    node = function(place_) return place_ // gpus end,
    gpu = function(place_) return place_ end,
    rail = function(place_) return place_ % gpus end,
  }
end

-- inside, crossing, edges, by the definition.
local function count(groups, domain)
  local c = { inside = 0, crossing = 0, edges = 0 }
  for _, group in ipairs(groups) do
    local same = true
    for i, rank in ipairs(group) do
      same = same and domain(rank) == domain(group[1])
      if i < #group and domain(rank) ~= domain(group[i + 1]) then c.edges = c.edges + 1 end
    end
    if #group > 2 and domain(group[1]) ~= domain(group[#group]) then c.edges = c.edges + 1 end
    local kind = same and "inside" or "crossing"
    c[kind] = c[kind] + 1
  end
  return c
end

describe("moongrid place", function()
  it("counts as the definition does, on many machines and recipes", function()
    local recipes = { "megatron --world 48 tp=2 pp=3", "picotron --world 48 tp=4 pp=2 cp=2", "nanotron --world 24 tp=2 pp=3",
                      "deepspeed_topology --world 16 axes=pipe-data-model dims=2,4,2", "megatron --world 32 tp=4 pp=2 ep=2" }
    local compared = 0
    for _, recipe in ipairs(recipes) do
      local plan = json.decode((moongrid("plan " .. recipe .. " --json")) or "")
      for _, shape in ipairs { { 2, 4 }, { 3, 4 }, { 2, 8 }, { 3, 5 }, { 1, 6 } } do
        local nodes, gpus = shape[1], shape[2]
        local machine = ("'rack:* node:%d gpu:%d rail = gpu'"):format(nodes, gpus)
        if plan then
          local placed = place(recipe .. " --machine " .. machine)
          for name, family in pairs(plan.families) do
            for level, domain in pairs(regular(nodes, gpus)) do
              local own, got = count(family.groups, domain), placed.families[name].levels[level]
              for key, value in pairs(own) do
                assert.are.equal(value, got[key], table.concat({ recipe, machine, name, level, key }, " "))
              end
              compared = compared + 1
            end
          end
        end
      end
    end
    assert.is_true(compared > 300)
  end)

  it("counts on unequal hosts, and where ranks are listed", function()
    local path = file [[return recipe { build = function(world)
      local g, t = grid(world, "tp-dp", { tp = 4, dp = fill }), topology(world)
      t.tp, t.dp, t.ring = g "tp", g "dp", g "dp":pairs "wrap"
      return t end }]]
    local of = place(path .. " --world 12 --machine 'rack:2 node:2,1 gpu:3,5,4'").families
    assert.are.same({ inside = 2, crossing = 1, edges = 2, members = 3 }, of.tp.levels.node)
    assert.are.same({ inside = 3, crossing = 0, edges = 0, members = 4 }, of.tp.levels.rack)
    of = place(path .. " --world 8 --machine 'node:2 gpu:4 ranks = 0,2,4,6,1,3,5,7'").families
    assert.are.same({ inside = 0, crossing = 2, edges = 4, members = 2 }, of.tp.levels.node)
    assert.are.same({ inside = 4, crossing = 0, edges = 0, members = 2 }, of.dp.levels.node)
    assert.are.same({ inside = 4, crossing = 0, edges = 0, members = 2 }, of.ring.levels.node)
  end)

  it("answers at a million ranks, and beyond", function()
    local of = place("megatron --world 1048576 tp=8 pp=16 --machine gb200-nvl72 --family tp,dp").families
    assert.are.same({ inside = 0, crossing = 131072, edges = 262144, members = 4 }, of.tp.levels.node)
    of = place("megatron --world 2147483520 tp=8 pp=16 --machine gb200-nvl72 --family tp").families
    assert.are.same({ inside = 0, crossing = 268435440, edges = 536870880, members = 4 }, of.tp.levels.node)
  end)

  it("says the bytes that families send between domains, and the busiest domain", function()
    local path = file [[return recipe {
      machine = "node:2[100GB/s] gpu:4", traffic = { tp = "8 GB all_reduce x 2", dp = "4 GB send + 2 GB all_to_all" },
      build = function(world)
        local g, t = grid(world, "dp-tp", { tp = 4, dp = fill }), topology(world)
        t.tp, t.dp = g "tp", g "dp"
        return t end }]]
    local all = place(path .. " --world 8")
    -- tp {0,2,4,6} and {1,3,5,7}: two edges of each cross, with 2 * 3/4 * 8 GB * 2
    assert.are.equal(4 * 24e9, all.families.tp.levels.node.bytes)
    assert.are.equal(0, all.families.dp.levels.node.bytes) -- {0,1} {2,3} {4,5} {6,7}
    assert.are.same({ bytes = 96e9, domain = 0, seconds = 0.96 }, all.busiest.node)
    -- 4 GB along each pair, and 1 GB each way
    assert.are.equal(4 * (4e9 + 2 * 1e9), all.families.dp.levels.gpu.bytes)
  end)

  it("says what follows for NCCL: NVLink domains, rails, variables", function()
    local placed = place "megatron --world 64 tp=8 pp=2 --machine dgx-h100 --family tp,pp,dp".nccl
    assert.are.same({ nvlink = { level = "node", ranks = 8, inside = { "tp" } }, rails = { rail = { "pp", "dp" } },
                      variables = { NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN = "8" } }, placed)
    placed = place "megatron --world 144 tp=8 pp=2 --machine gb200-nvl72 --family tp,pp,dp".nccl
    assert.are.same({ "rack", 72, { "tp", "dp" } }, { placed.nvlink.level, placed.nvlink.ranks, placed.nvlink.inside })
    placed = place "megatron --world 60 tp=2 pp=2 --machine 'clique:4 node:4 gpu:4' --family tp".nccl
    assert.are.same({ "clique", 16, {} }, { placed.nvlink.level, placed.nvlink.ranks, placed.variables }) -- the last has 12
    local path = file [[<system version="1"><cpu numaid="0" affinity="f" arch="x86_64" vendor="AuthenticAMD" familyid="1"
      modelid="1"><pci busid="0000:01:00.0" class="0x030200"><gpu dev="0" sm="90" rank="0" gdr="1"/></pci>
      <pci busid="0000:02:00.0" class="0x030200"><gpu dev="1" sm="90" rank="1" gdr="1"/></pci></cpu></system>]]
    placed = place("megatron --world 2 tp=2 --machine " .. path .. " --family tp").nccl
    assert.are.equal(path, placed.variables.NCCL_TOPO_FILE)
    local out = moongrid "place megatron --world 64 tp=8 pp=2 --machine dgx-h100 --family tp,pp,dp"
    assert.are.equal([[
nccl           inside one NVLink domain, a node, where NVLink SHARP can reduce:
               tp
               on one rail, whatever nodes they cross: pp, dp
               NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN=8
]], out:match "\n(nccl .*)")
  end)

  local function refuses(line, code, message)
    local out, err, status = moongrid("place " .. line)
    assert.are.same({ "", "moongrid: " .. message .. "\n", code }, { out, err, status })
  end

  it("refuses", function()
    refuses("picotron --world 8", 2, "place needs a machine: --machine \"node:4 gpu:8\", a preset as dgx-h100, or a file; or "
      .. "machine = in the recipe")
    refuses("picotron --world 9 --machine 'node:2 gpu:4'", 1, "picotron:30: a world of 9 ranks does not fit the machine, "
      .. "which has 8 places")
    refuses("picotron --world 8 --machine 4 --family tpp", 1, "unknown family 'tpp'; nearest is 'tp' (tp, cp, pp, dp, cp_dp, "
      .. "pp_dp, world_group)")
    refuses("picotron --world 8 --machine 4 --traffic tp", 1, "traffic is written as 'tp = 2 GiB all_reduce x 96; dp = "
      .. "...', not 'tp'")
    refuses("picotron --world 8 --machine 4 --traffic 'tp = 2 all_reduce'", 1, "traffic of tp, '2 all_reduce': a unit after "
      .. "the number, as GiB or GB, expected, not 'all_reduce'")
    refuses("picotron --world 8 --machine 4 --traffic 'tp = 2 GB al_reduce'", 1, "traffic of tp, '2 GB al_reduce': unknown "
      .. "collective 'al_reduce'; nearest is 'all_reduce' (all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, "
      .. "reduce, send)")
    refuses("picotron --world 8 --machine 4 --traffic 'tpp = 2 GB send'", 1, "unknown family 'tpp'; nearest is 'tp' (tp, cp, "
      .. "pp, dp, cp_dp, pp_dp, world_group)")
    refuses("picotron --world 8 --machine 4 --traffic 'tp = 2 GB send x 0'", 1, "traffic of tp, '2 GB send x 0': how many "
      .. "times, 1 or more, expected, not '0'")
  end)
end)

describe("moongrid place --search order", function()
  local recipe = [[
return recipe {
  params = { order = "tp-cp-dp-pp", tp = 2, cp = 2, pp = 2, refuse = "" },
  build = function(world, p)
    if p.refuse ~= "" and p.order:sub(1, #p.refuse) == p.refuse then error("not this order") end
    local g, t = grid(world, p.order, { tp = p.tp, cp = p.cp, pp = p.pp, dp = fill }), topology(world)
    for _, dim in ipairs { "tp", "cp", "dp", "pp" } do t[dim] = g(dim) end
    t.tp_cp = g("tp", "cp")
    return t
  end,
}]]
  local traffic = "tp = 3 GB all_reduce x 7; cp = 2 GB all_gather x 5; dp = 4 GB reduce_scatter; pp = 1 GB send x 3; "
    .. "tp_cp = 1 GB all_to_all x 2"
  local path
  before_each(function() path = file(recipe) end)

  local function permutations(list)
    if #list == 1 then return { list[1] } end
    local all = {}
    for i, first in ipairs(list) do
      local rest = {}
      for k, other in ipairs(list) do if k ~= i then rest[#rest + 1] = other end end
      for _, tail in ipairs(permutations(rest)) do all[#all + 1] = first .. "-" .. tail end
    end
    return all
  end

  local function bytes(words, level)
    local sum = 0
    for _, family in pairs(place(path .. " " .. words .. (" --traffic %q"):format(traffic)).families) do
      sum = sum + (family.levels[level].bytes or 0)
    end
    return sum
  end

  it("finds the best of all orders, as place counts each of them", function()
    for _, machine in ipairs { "rack:* node:2 gpu:3", "node:* gpu:4", "rack:2 node:3,2 gpu:7,5,4,8,8" } do
      local words = ("--world 32 --machine '%s'"):format(machine)
      local level = machine:match "^%l+"
      local least, n = math.huge, 0
      for _, order in ipairs(permutations { "tp", "cp", "dp", "pp" }) do
        least = math.min(least, bytes(words .. " order=" .. order, level))
        n = n + 1
      end
      local found = json.decode((moongrid(("place %s %s --search order --json --traffic %q"):format(path, words, traffic))))
      assert.are.equal(n, found.evaluated)
      assert.is_true(found.exhaustive)
      assert.are.equal(level, found.level)
      assert.is_true(math.abs(found.best[1].cost - least) <= 1e-9 * least, machine)
      assert.are.equal(found.best[1].cost, bytes(words .. " order=" .. found.best[1].parameters.order, level))
      for i, one in ipairs(found.best) do
        assert.is_true(one.bound[level] <= one.cost * (1 + 1e-12))
        assert.is_true(i == 1 or one.cost >= found.best[i - 1].cost)
      end
    end
  end)

  it("takes listed orders and sizes, leaves out what the recipe refuses, and names it if nothing is left", function()
    local words = "place " .. path .. " --world 32 --machine 'node:* gpu:8' --search order --json "
    local found = json.decode((moongrid(words .. "order=tp-cp-dp-pp,pp-dp-cp-tp tp=2,4,5 refuse=pp")))
    assert.are.same({ 6, 4, true }, { found.evaluated, found.refused, found.exhaustive })
    assert.are.equal(2, #found.best)
    for _, one in ipairs(found.best) do assert.are.equal("tp-cp-dp-pp", one.parameters.order) end
    local out, err, status = moongrid(words .. "order=tp-cp-dp-pp,tp-dp-cp-pp refuse=tp")
    assert.are.same({ "", 1 }, { out, status })
    assert.is_truthy(err:find("the recipe refuses all 2 combinations; the first: ", 1, true))
    assert.is_truthy(err:find("not this order", 1, true))
  end)

  local declared = [[
return recipe {
  params = { order = param.order(%s, "of dims"), tp = param.choice({ 2, 4, 8 }, "tensor"), cp = param.choice({ 1, 2 }),
             pp = 2, mode = param.choice({ "fast", "slow" }), text = "a-b" },
  policy = { odd = function(state, q, p) return (p.order == "dp-tp-cp-pp" and p.tp == 4) and -1 or q.bytes.node + q.seconds end,
             word = function() return "no number" end, nan = function() return 0 / 0 end },
  build = function(world, p)
    local g, t = grid(world, p.order, { tp = p.tp, cp = p.cp, pp = p.pp, dp = fill }), topology(world)
    for _, dim in ipairs { "tp", "cp", "dp", "pp" } do t[dim] = g(dim) end
    return t
  end,
}]]

  it("takes what the recipe declares by param.order and param.choice, and a policy", function()
    local own = file(declared:format '"tp-cp-dp-pp"')
    local words = "place " .. own .. " --world 64 --machine 'node:*[400GB/s] gpu:8' --search order --json "
    local found = json.decode((moongrid(words)))
    assert.are.same({ 24 * 3 * 2 * 2, 0, true, "bytes" }, { found.evaluated, found.refused, found.exhaustive, found.objective })
    found = json.decode((moongrid(words .. "mode=slow tp=2 order=tp-dp-cp-pp"))) -- what is given is not free
    assert.are.same({ 2, { cp = "1" } }, { found.evaluated, found.best[1].parameters })
    found = json.decode((moongrid(words .. "--objective odd mode=fast")))
    assert.are.same({ "odd", -1, "dp-tp-cp-pp", "4" }, { found.objective, found.best[1].cost, found.best[1].parameters.order,
      found.best[1].parameters.tp })
    local third = found.best[3]
    assert.are.equal(third.levels.node + third.seconds, third.cost)
    own = file(declared:format '{ "tp-cp-dp-pp", "dp-pp-tp-cp" }')
    found = json.decode((moongrid("place " .. own .. " --world 64 --machine 8 --search order --json tp=2 cp=1 mode=fast")))
    assert.are.same({ 2, "tp-cp-dp-pp" }, { found.evaluated, found.best[1].parameters.order })
    local plan = json.decode((moongrid("plan " .. own .. " --world 64 order=pp-tp-dp-cp --json"))) -- others are allowed
    assert.are.equal("pp-tp-dp-cp", plan.params.order)
  end)

  it("refuses values, declarations and policies", function()
    local own = file(declared:format '"tp-cp-dp-pp"')
    local function refuses(line, code, message)
      local out, err, status = moongrid(line)
      assert.are.same({ "", "moongrid: " .. message .. "\n", code }, { out, err, status })
    end
    local at = own .. ":2: parameter "
    refuses("plan " .. own .. " --world 64 tp=3", 1, at .. "'tp' is one of 2, 4, 8, not '3'; nearest is 2")
    refuses("plan " .. own .. " --world 64 tp=70", 1, at .. "'tp' is one of 2, 4, 8, not '70'; nearest is 8")
    refuses("plan " .. own .. " --world 64 mode=fats", 1, at:gsub(":2:", ":3:") .. "'mode' is one of 'fast', 'slow', not 'fats'")
    refuses("plan " .. own .. " --world 64 order=tp-tp", 1, at .. "'order' is an order of names with '-' between, each once, "
      .. "as tp-dp-pp, not 'tp-tp'")
    local place_ = "place " .. own .. " --world 64 --machine 8 --search order tp=2 cp=1 "
    refuses(place_ .. "--objective od", 2, "--objective is bytes, time or a policy of the recipe, not 'od'; nearest is 'odd' "
      .. "(bytes, time, nan, odd, word)")
    refuses(place_ .. "--objective nan", 1, "policy 'nan' returns nan")
    local _, err, status = moongrid(place_ .. "--objective word")
    assert.are.same({ "moongrid: " .. own .. ":5: policy 'word' returned text, not a number\n", 1 }, { err, status })
    for text, message in pairs {
      ["param.choice({})"] = "param.choice takes a list of integers, or of texts without commas, each once: "
        .. "param.choice({ 1, 2, 4 }, doc)",
      ["param.choice({ 1, 'a' })"] = "param.choice takes a list of integers, or of texts without commas, each once: "
        .. "param.choice({ 1, 2, 4 }, doc)",
      ["param.choice({ 1, 2, 1 })"] = "param.choice takes a list of integers, or of texts without commas, each once: "
        .. "param.choice({ 1, 2, 4 }, doc)",
      ["param.order({ 'a-b', 'b--a' })"] = "param.order takes an order of names, as \"tp-dp-pp\", or a list of them",
      ["param.order('a-a')"] = "the default of an order parameter is an order of names with '-' between, each once, as tp-dp-pp",
    } do
      own = file("return recipe { params = { a = " .. text .. " }, build = function(world) return topology(world) end }")
      refuses("plan " .. own .. " --world 4", 1, own .. ":1: " .. message)
    end
  end)

  it("leaves out sizes whose bound is above the best, where combinations are many, and finds the same", function()
    local own = file [[return recipe {
      params = { order = "a-b-c-d-e-f-g", a = 2, b = 2, c = 2 },
      build = function(world, p)
        local g, t = grid(world, p.order, { a = p.a, b = p.b, c = p.c, d = 2, e = 2, f = 2, g = fill }), topology(world)
        for _, dim in ipairs { "a", "b", "c", "g" } do t[dim] = g(dim) end
        return t
      end }]]
    local words = "place " .. own .. " --world 256 --machine 'node:* gpu:4' --search order --json "
      .. "--traffic 'b = 40 GB all_reduce; a = 3 GB all_gather; g = 1 GB all_reduce' a=1,2,4 b=2,4,8 c=1,2 "
    local found = json.decode((moongrid(words)))
    local most = 3 * 3 * 2 * 5040
    assert.is_true(found.exhaustive)
    assert.is_true(found.pruned > 0 and found.evaluated + found.pruned >= most and found.evaluated < most)
    local least = math.huge
    for _, sizes in ipairs { "a=1,2,4 b=2,4 c=1", "a=1,2,4 b=8 c=1", "a=1,2,4 b=2,4 c=2", "a=1,2,4 b=8 c=2" } do
      local part = json.decode((moongrid((words:gsub("a=1.*", "")) .. sizes)))
      assert.are.same({ true, nil }, { part.exhaustive, part.pruned })
      least = math.min(least, part.best[1].levels.node)
    end
    assert.are.equal(least, found.best[1].levels.node)
  end)

  it("refuses", function()
    local function refuses(line, code, message)
      local out, err, status = moongrid("place " .. line)
      assert.are.same({ "", "moongrid: " .. message .. "\n", code }, { out, err, status })
    end
    refuses("picotron --world 8 --machine 4 --search orders", 2, "--search is order, not 'orders'")
    refuses("picotron --world 8 --machine 4 --search order", 2, "--search order: nothing is free: the recipe has no text "
      .. "parameter with an order of dims, as \"tp-dp-pp\", and none has a list of values, as tp=2,4,8")
    refuses("picotron --world 8 --machine 4 --objective bytes", 2, "--objective is for --search order")
    refuses("megatron --world 8 --machine 4 --search order --objective time", 2, "--objective time needs bandwidths, as in "
      .. "node:4[400GB/s]")
  end)
end)

describe("moongrid place and what families send", function()
  local without = [[
return recipe { params = { order = "a-b-c-d-e-h" }, build = function(world, p)
  local n = 0
  for i = 1, %d do n = n + i end
  local g, t = grid(world, p.order, { a = 2, b = 2, c = 2, d = 1, e = 1, h = fill }), topology(world)
  t.a, t.b, t.c, t.h = g "a", g "b", g "c", g "h"
  return t end%s }]]

  it("is the traffic given, else the recipe's, else that of its step, else an assumption that is said first", function()
    local function source(words)
      local out = moongrid("place " .. words .. " --world 16 --machine 'node:*[50GB/s] gpu:4[300GB/s]' --search order")
      local all = json.decode((moongrid("place " .. words .. " --world 16 --machine 'node:*[50GB/s] gpu:4[300GB/s]' --search order --json")))
      return all.traffic, out:gsub("\n +", " "):match "^traffic +([^\n]*)\n", all.assumed
    end
    local plain, own = file(without:format(1, "")), file(without:format(1, ', traffic = { a = "1 GB send" }'))
    local list = " order=a-b-c-d-e-h,h-a-b-c-d-e"
    local name, text, assumed = source(plain .. list)
    assert.are.same({ "assumed", "assumed: " .. assumed }, { name, text })
    assert.is_truthy(assumed:find("all_reduce of 1 GiB, because the recipe has neither traffic nor a step", 1, true), assumed)
    assert.are.same({ "recipe", "that of the recipe" }, { source(own .. list) })
    assert.are.same({ "given", "as --traffic says" }, { source(own .. list .. " --traffic 'b = 1 GB send'") })
    assert.are.same({ "step", "that of the recipe's step" }, { source "megatron tp=2" })
    assert.are.same({ "step", "that of the recipe's step" }, { source "megatron tp=2 --traffic step" })
    name, text = source "megatron tp=2 layers=3 pp=2"
    assert.are.equal("assumed", name)
    assert.is_truthy(text:find("layers 3 is not a multiple of pp, 2; nearest: 2 or 4", 1, true), text)
    for _, words in ipairs { plain, plain .. " --search order" .. list } do
      local out, err, status = moongrid("place " .. words .. " --world 16 --machine 4 --traffic step")
      assert.are.same({ "", 2 }, { out, status })
      assert.is_truthy(err:find "^moongrid: %-%-traffic step: there is no step to count; .* would do", err)
    end
    local _, err, status = moongrid "place megatron --world 16 tp=2 layers=3 pp=2 --machine 4 --traffic step"
    assert.are.equal(1, status)
    assert.is_truthy(err:find("layers 3 is not a multiple", 1, true), err)
  end)

  it("is the mean of what the programs of the ranks send", function()
    local path = file [[return recipe {
      build = function(world)
        local g, t = grid(world, "tp-pp", { tp = 4, pp = fill }), topology(world)
        t.tp, t.pp = g "tp", g "pp"
        return t end,
      step = function(s)
        local at = s.pp.position
        s:loop(3, function() s:all_reduce(s.tp, at == 0 and 5000 or 1000) end)
        s:all_gather(s.tp, 80)
        if at > 0 then s:recv(s.pp, at - 1, 700) end
        if at < s.pp.size - 1 then s:send(s.pp, at + 1, 700) end
        s:sendrecv(s.tp, s.tp:next "wrap", s.tp:prev "wrap", 90)
      end }]]
    local all = place(path .. " --world 16 --machine 'node:8 gpu:2' --traffic step")
    assert.are.equal("step", all.traffic)
    -- 4 groups of tp over 2 nodes each: 2 edges, with 2 * 3/4 * 3 * the mean of 5000, 1000, 1000, 1000; 3/4 * 80; 90
    assert.are.equal(4 * 2 * (1.5 * 3 * 2000 + 60 + 90), all.families.tp.levels.node.bytes)
    assert.are.equal(4 * 3 * 700, all.families.pp.levels.node.bytes)
  end)

  it("never recommends what moongrid step prices slower than the present order, and its seconds are those of step", function()
    local compared = 0
    for _, words in ipairs {
      "megatron --world 64 tp=8 pp=4 layers=32 --machine dgx-h100", "megatron --world 64 tp=4 pp=2 cp=2 layers=4 --machine dgx-h100",
      "megatron --world 64 ep=8 experts=8 layers=4 --machine 'node:*[50GB/s] gpu:4[300GB/s]'",
      "megatron --world 32 tp=4 pp=2 order=tp-cp-ep-dp-pp,dp-tp-cp-ep-pp layers=4 zero=1 --machine dgx-h100",
      "megatron --world 32 tp=4 cp=2 order=cp-tp-ep-dp-pp,tp-cp-dp-ep-pp,tp-dp-ep-cp-pp,dp-tp-ep-cp-pp layers=4 --machine dgx-h100",
      "picotron --world 32 tp=2,4,8 pp=1,2 layers=4 --machine dgx-h100",
      "torchtitan --world 32 tp=1,2,8 dp_replicate=1,4 layers=4 --machine 'rack:2[25GB/s] node:2[50GB/s] gpu:8[300GB/s]'",
    } do
      local name, rest = words:match "^(%S+ %S+ %S+)(.*)$"
      local flops = words:find "dgx" and "" or " --flops 1e20" -- not known: computes take no time in a search
      local function price(row)
        local given = name
        for word in rest:gmatch "%S+=%S+" do
          local key = word:match "^([^=]+)="
          if key:find "^%l" and not word:find "," and not word:find "'" then given = given .. " " .. word end
        end
        for key, value in pairs(row.parameters) do given = given .. (" %s=%s"):format(key, value) end
        return json.decode((moongrid("step " .. given .. rest:match " %-%-machine.*" .. flops .. " --json"))).seconds
      end
      local found = json.decode((moongrid("place " .. words .. " --search order --objective time --json")))
      assert.are.equal("step", found.traffic)
      local present
      for i, row in ipairs(found.best) do
        if row.present then present = { i, row } end
      end
      assert.is_table(present, words .. ": the present order is not a row")
      local best, now = price(found.best[1]), price(present[2])
      assert.is_true(best <= now and (best < now or present[1] == 1), words)
      assert.is_true(math.abs(best - found.best[1].cost) <= 1e-9 * best and math.abs(now - present[2].seconds) <= 1e-9 * now, words)
      compared = compared + 1
    end
    assert.are.equal(7, compared)
  end)

  it("says that fewer bytes between the farthest domains take longer", function()
    local words = "megatron --world 64 tp=8 pp=4 layers=8 --machine 'rack:2[100GB/s] node:8[50GB/s] gpu:4[300GB/s]' "
    local found = json.decode((moongrid("place " .. words .. "--search order --json")))
    local function price(order) return json.decode((moongrid("step " .. words .. "--flops 1e20 --json order=" .. order))).seconds end
    local first, now = price(found.best[1].parameters.order), price "tp-cp-ep-dp-pp"
    assert.are.same({ true, true }, { math.abs(found.step_seconds.first - first) <= 1e-9 * first,
      math.abs(found.step_seconds.present - now) <= 1e-9 * now })
    assert.is_true(first > now)
    local out = moongrid("place " .. words .. "--search order"):gsub("\n +", " ")
    assert.is_truthy(out:find("and the present at [%d.]+ s: an estimate from data sheets; published runs took 1.3 to 3 times as long, so it does not tell which is faster\n"), out)
  end)

  it("shows the present values though ten others are better, and first where nothing is", function()
    local path = file(without:format(1, ""))
    local words = "place " .. path .. " --world 64 --machine 'pod:* rack:2 node:2 gpu:2' --search order "
    local all = "--traffic 'h = 1 GB all_reduce; a = 1 MB all_reduce; b = 2 MB all_reduce; c = 4 MB all_reduce'"
    local rows = json.decode((moongrid(words .. "--json " .. all))).best
    assert.are.same({ 11, true, "a-b-c-d-e-h", 29 }, { #rows, rows[11].present, rows[11].parameters.order, rows[11].alike })
    assert.is_true(rows[10].cost < rows[11].cost)
    rows = json.decode((moongrid(words .. "--json --traffic 'a = 1 GB all_reduce'"))).best
    assert.is_true(rows[1].present)
    local out = moongrid("place megatron --world 16 --machine 4 --search order tp=2,4 order=tp-cp-ep-dp-pp")
    assert.is_truthy(out:find("tensor_model_parallel_size=2  (listed first)\n", 1, true), out)
  end)

  it("shows orders that cost the same once: those of dims of size 1 hide no other sizes", function()
    local words = "place " .. file(without:format(1, "")) .. " --world 64 --machine 'node:* gpu:8' --search order --traffic 'h = 1 GB all_reduce'"
    local rows = json.decode((moongrid(words .. " --json"))).best
    local n = 0
    for i, row in ipairs(rows) do
      n = n + 1 + row.alike
      assert.is_true(i == 1 or row.cost > rows[i - 1].cost)
    end
    assert.are.same({ 4, 720 }, { #rows, n })
    local out = moongrid(words)
    assert.is_truthy(out:find("order=a-b-c-d-e-h  (present; 179 more orders cost the same)\n", 1, true), out)
  end)

  it("says where computes take no time, and takes --flops as moongrid step does", function()
    local words = "megatron --world 16 tp=2,4 pp=2 layers=4 --machine 'node:*[50GB/s] gpu:4[300GB/s]'"
    local place_ = "place " .. words .. " order=tp-cp-ep-dp-pp --search order --objective time"
    assert.is_truthy((moongrid(place_)):find "\ncomputes +take no time here: the machine does not have the flops")
    local out = moongrid(place_ .. " --flops 400T")
    assert.is_falsy(out:find "\ncomputes ")
    for _, row in ipairs(json.decode((moongrid(place_ .. " --flops 400T --json"))).best) do
      local tp = "tp=" .. row.parameters.tensor_model_parallel_size
      local step = json.decode((moongrid("step " .. words:gsub("tp=2,4", tp) .. " --flops 400T --json")))
      assert.is_true(math.abs(row.seconds - step.seconds) <= 1e-9 * step.seconds)
    end
    support.refuses("place " .. words .. " --flops 400T", 2, "moongrid: --flops is for --search order")
  end)

  it("ends a search after --limit seconds, with the best so far", function()
    local words = "place " .. file(without:format(3000000, "")) .. " --world 64 --machine 'node:* gpu:8' --search order --limit 1 "
    local out, err, status = moongrid(words .. "--json")
    local found = json.decode(out)
    assert.are.same({ 3, true, false }, { status, found.stopped, found.exhaustive })
    assert.is_true(found.evaluated >= 1 and found.evaluated < 720 and #found.best >= 1)
    assert.is_truthy(err:find "^moongrid: %-%-limit 1: %d+ of 720 combinations were evaluated", err)
    out, err, status = moongrid "place megatron --world 8 --machine 4 --limit 1"
    assert.are.same({ "", "moongrid: --limit is for --search order\n", 2 }, { out, err, status })
  end)
end)

describe("moongrid place on irregular hosts", function()
  local recipe = [[
return recipe { params = { order = "dp-pp" }, build = function(world, p)
  local g, t = grid(world, p.order, { pp = 3, dp = fill }), topology(world)
  t.dp, t.pp = g "dp", g "pp"
  return t end }]]
  local conf = "SwitchName=s0 Nodes=n[0-2]\nSwitchName=s1 Nodes=n[3-4]\nSwitchName=s2 Nodes=n5\nSwitchName=top Switches=s[0-2]\n"
  local path, switches
  before_each(function() path, switches = file(recipe), file(conf) end)
  after_each(function() os.remove(path) os.remove(switches) end)

  it("says which host takes which ranks, and writes it for launchers", function()
    local machine = ("--world 12 --machine '%s nodes=n5,n3,n0,n4,n1,n2 gpu:2'"):format(switches)
    local words = path .. " " .. machine .. " order=dp-pp,dp-pp --traffic 'dp = 1 GB all_reduce'"
    local out = os.tmpname()
    local found = json.decode((moongrid("place " .. words .. " --search order --json -o " .. out .. ".json")))
    -- groups of four ranks, on two hosts each: one group is apart whatever one does
    assert.are.same({ "switch", 2 * 1.5e9 }, { found.hosts.level, found.hosts.cost })
    assert.is_true(found.hosts.cost <= found.hosts.arrival and found.hosts.cost <= found.hosts.sorted)
    assert.are.equal(6, #found.hosts.order)
    local again = place(("%s --world 12 --machine %s.json --traffic 'dp = 1 GB all_reduce' --family dp"):format(path, out))
    assert.are.equal(found.hosts.cost, again.families.dp.levels.switch.bytes)
    for ending, first in pairs { rankfile = "rank 0=%s slot=0\nrank 1=%s slot=1\n", [".hosts"] = "%s\n%s\n" } do
      moongrid("place " .. words .. " --search order -o " .. out .. ending)
      assert.are.equal(first:gsub("%%s", found.hosts.order[1]), support.read(out .. ending):sub(1, #first:gsub("%%s", found.hosts.order[1])))
      os.remove(out .. ending)
    end
    moongrid("place " .. words .. " --search order -o " .. out .. ".nodes")
    assert.are.equal(table.concat(found.hosts.order, "\n") .. "\n", support.read(out .. ".nodes"))
    moongrid("place " .. path .. " " .. machine .. " -o " .. out .. ".nodes") -- as they are listed
    assert.are.equal("n5\nn3\nn0\nn4\nn1\nn2\n", support.read(out .. ".nodes"))
    local _, err, code = moongrid(("place %s --world 6 --machine '%s nodes=n5,n3,n0 gpu:2 ranks = 0,2,1,3..5' -o x.nodes"):format(
      path, switches))
    assert.same({ "moongrid: x.nodes: in such a file each node has consecutive ranks, and n5 has ranks 0 and 2, but not "
      .. "those between\n", 1 }, { err, code })
    os.remove(out .. ".nodes")
    os.remove(out .. ".json")
    os.remove(out)
  end)

  it("refuses outputs", function()
    local _, err, status = moongrid("place " .. path .. " --world 12 --machine 2 -o x.txt")
    assert.are.same({ "moongrid: --output is a file that ends with rankfile, .hosts, .nodes, .lua or .json, not 'x.txt'\n", 2 },
      { err, status })
    _, err, status = moongrid("place " .. path .. " --world 12 --machine 'node:6 gpu:2' -o x.hosts")
    assert.are.same({ "moongrid: x.hosts: the nodes of the machine have no names; give --machine a file of hosts\n", 1 },
      { err, status })
  end)
end)
