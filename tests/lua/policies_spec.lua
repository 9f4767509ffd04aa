-- SPDX-License-Identifier: MIT
--
-- The bundled policies, called from Lua; their refusals, with the recipe's line.

local support = dofile("tests/lua/support.lua")
local mg = require "moongrid"

-- A recipe with one policy `it`, made by the text; its last line but two is `it = ...`.
local function recipe_of(policy, more)
  return support.file(([[
return recipe {
  params = { tp = 2, chunks = 2 },
  build = function(world, p)
    local g, t = grid(world, "tp-dp", { tp = p.tp, dp = fill }), topology(world)
    t.tp, t.dp_cp = g "tp", g "dp"
    return t
  end,
  policy = {
    it = %s,
  }, %s
}]]):format(policy, more or ""))
end

-- -> ask(arguments) on a dry state of 8 ranks
local function asked(policy, params)
  local path = recipe_of(policy)
  local recipe = mg.load(path)
  local state = recipe:plan(8, params or {}):dry(3)
  return function(q) return recipe:call(state, "it", q) end
end

-- The message without the file's name, which changes: "recipe:9: ...". q nil: without asking it.
local function refusal(policy, q)
  local path = recipe_of(policy)
  local ok, message = pcall(function()
    local recipe = mg.load(path)
    local state = recipe:plan(8, {}):dry(3)
    return q and recipe:call(state, "it", q)
  end)
  assert.is_false(ok)
  return (message:gsub("^" .. path:gsub("%p", "%%%0"), "recipe"))
end

local function refused(cases)
  for _, case in ipairs(cases) do
    it("refuses " .. case[1] .. (case[2] and "" or " before it is asked"), function()
      assert.equal(("recipe:%d: %s"):format(case.line or 9, case[3]), refusal(case[1], case[2]))
    end)
  end
end

local function sum(list)
  local s = 0
  for _, n in ipairs(list) do s = s + n end
  return s
end

describe("policies.layers", function()
  it("is even, and gives what does not divide to the front", function()
    local ask = asked "policies.layers()"
    assert.are.same({ 3, 3, 2, 2 }, ask { layers = 10, stages = 4 })
    assert.are.same({ 8 }, ask { layers = 8, stages = 1 })
    assert.are.same({ 1, 1, 0 }, ask { layers = 2, stages = 3 })
    assert.are.same({ 0, 0 }, ask { layers = 0, stages = 2 })
  end)

  it("leaves no stage with more work than it must have", function()
    for _, costs in ipairs { { 0, 0 }, { 1, 1 }, { 0, 1.5 }, { 2.5, 0.5 }, { 0, 40 } } do
      local ask = asked(("policies.layers { embedding = %g, loss = %g }"):format(costs[1], costs[2]))
      for stages = 1, 9 do
        for layers = 0, 40 do
          local each = ask { layers = layers, stages = stages }
          assert.equal(stages, #each)
          assert.equal(layers, sum(each))
          local work = { table.unpack(each) }
          work[1] = work[1] + costs[1]
          work[stages] = work[stages] + costs[2]
          for from = 1, stages do -- moving one layer would not make the larger of two smaller
            for to = 1, stages do
              assert.is_true(each[from] == 0 or from == to or work[to] + 1 >= work[from])
            end
          end
        end
      end
    end
  end)

  it("gives the ends what they are to have", function()
    assert.are.same({ 4, 7, 7, 6 }, asked "policies.layers { first = 4, last = 6 }" { layers = 24, stages = 4 })
    assert.are.same({ 1, 4, 3 }, asked "policies.layers { first = 1 }" { layers = 8, stages = 3 })
    assert.are.same({ 5, 3 }, asked "policies.layers { first = 5, last = 3 }" { layers = 8, stages = 2 })
    assert.are.same({ 8 }, asked "policies.layers { last = 8 }" { layers = 8, stages = 1 })
    assert.are.same({ 0, 3 }, asked "policies.layers { embedding = 1e17, loss = 1e17 - 32 }" { layers = 3, stages = 2 })
    assert.are.same({ 2, 1 }, asked "policies.layers { embedding = 1e17, loss = 1e17 }" { layers = 3, stages = 2 })
    local many = asked "policies.layers { last = 0 }" { layers = 2147483647, stages = 3 }
    assert.are.same({ 1073741824, 1073741823, 0 }, many)
  end)

  refused {
    { "policies.layers { first = 4, last = 6 }", { layers = 8, stages = 4 },
      "policies.layers: 8 layers do not fit 4 stages, of which the first has 4 and the last 6" },
    { "policies.layers { first = 4, last = 3 }", { layers = 8, stages = 2 },
      "policies.layers: 8 layers do not fit 2 stages, of which the first has 4 and the last 3" },
    { "policies.layers { first = 4 }", { layers = 8, stages = 1 },
      "policies.layers: 8 layers do not fit 1 stages, of which the first has 4 and the last any" },
    { "policies.layers { first = 4, last = 4 }", { layers = 8, stages = 1 },
      "policies.layers: one stage is both the first and the last" },
    { "policies.layers()", { layers = 8 }, "policies.layers: argument 'stages', an integer of 1 to 2147483647, is missing; given: layers" },
    { "policies.layers()", { layers = 8, stages = "4" }, "policies.layers: argument 'stages' is an integer of 1 to 2147483647, not '4'" },
    { "policies.layers()", { layers = 2.5, stages = 4 }, "policies.layers: argument 'layers' is an integer of 0 to 2147483647, not 2.5" },
    { "policies.layers { loss = -1 }", nil, "policies.layers: setting 'loss' is a number of 0 or more, not -1" },
    { "policies.layers { first = 1, embedding = 1 }", nil,
      "policies.layers: 'first' and 'embedding' both say what the first stage gets" },
    { "policies.layers { last = function() return 1 end, loss = 2 }", { layers = 8, stages = 2 },
      "policies.layers: 'last' and 'loss' both say what the last stage gets" },
    { "policies.layers { first = policies.layers }", nil,
      "policies.layers: setting 'first' is an integer of 0 to 2147483647, not policies.layers" },
    { "policies.layers", nil, "policy 'it' is policies.layers, which makes one: write policies.layers()", line = 1 },
    { "function(s) return policies.layers()(s) end", {}, "policies.layers: a policy takes (state, q, p), and q is nil" },
    { "policies.layers { [{}] = 1 }", nil,
      "unknown setting of policies.layers 'a table'; known: first, last, embedding, loss" },
    { "policies.layers { [coroutine or {}] = 1 }", nil, "undefined global 'coroutine': a recipe is evaluated once, from top to bottom" },
    { "policies.layers { [function() end] = 1, [{}] = 1, [true] = 1 }", nil,
      "unknown setting of policies.layers 'true'; known: first, last, embedding, loss" },
    { "policies.layers { los = 1 }", nil,
      "unknown setting of policies.layers 'los'; nearest is 'loss' (first, last, embedding, loss)" },
    { "policies.layers { 1 }", nil, "unknown setting of policies.layers '1'; known: first, last, embedding, loss" },
    { "policies.layers(4)", nil, "policies.layers takes a table of settings, not 4" },
    { "policies.layers { last = function() return 'x' end }", { layers = 8, stages = 2 },
      "policies.layers: setting 'last' is an integer of 0 to 2147483647, not 'x'" },
    { "policies.layer()", nil, "unknown bundled policy 'layer'; nearest is 'layers' (bucket_bytes, checkpoint, "
      .. "gradient_family, layers, learning_rate, on_lost, schedule)" },
  }
end)

describe("policies.schedule", function()
  it("takes the most microbatches that divide, up to two for each rank, and keeps all ranks busy", function()
    local ask = asked "policies.schedule()"
    assert.are.same({ microbatches = 8, order = "1f1b", chunks = 1, bubble = 3 / 8 }, ask { samples = 16, ranks = 4 })
    for samples = 1, 60 do
      for ranks = 1, 6 do
        local n, best = ask { samples = samples, ranks = ranks }.microbatches, 0
        for k = 1, math.min(samples, 2 * ranks) do best = samples % k == 0 and k or best end
        for k = ranks, best < ranks and samples or 0 do -- too few for the ranks: the next larger one
          if samples % k == 0 then
            best = k
            break
          end
        end
        assert.equal(best, n)
      end
    end
  end)

  it("takes more than that, where fewer would leave ranks idle", function()
    local ask = asked "policies.schedule()"
    assert.equal(13, ask { samples = 13, ranks = 4 }.microbatches)
    assert.equal(11, ask { samples = 22, ranks = 4 }.microbatches)
    assert.equal(3, ask { samples = 3, ranks = 4 }.microbatches)
    assert.equal(2147483647, ask { samples = 2147483647, ranks = 4 }.microbatches)
    assert.equal(7 * (2147483647 // 7), asked "policies.schedule { chunks = 2, per_rank = 1 << 30 }"
      { samples = 7 * (2147483647 // 7), ranks = 2147483647 // 7 }.microbatches)
  end)

  it("interleaves in whole rounds", function()
    local ask = asked "policies.schedule { chunks = function(_, _, p) return p.chunks end }"
    assert.are.same({ microbatches = 8, order = "interleaved", chunks = 2, bubble = 3 / 16 }, ask { samples = 16, ranks = 4 })
    assert.are.same({ microbatches = 6, order = "interleaved", chunks = 2, bubble = 2 / 12 }, ask { samples = 12, ranks = 3 })
    assert.equal("1f1b", asked("policies.schedule { chunks = function(_, _, p) return p.chunks end }", { chunks = 1 })
      { samples = 4, ranks = 2 }.order)
  end)

  it("takes microbatches of a size", function()
    local ask = asked "policies.schedule { microbatch = 2, order = 'gpipe' }"
    assert.are.same({ microbatches = 8, order = "gpipe", chunks = 1, bubble = 0.125 }, ask { samples = 16, ranks = 2 })
  end)

  refused {
    { "policies.schedule { microbatch = 4 }", { samples = 10, ranks = 2 },
      "policies.schedule: 10 samples do not divide into microbatches of 4; nearest: 8 or 12" },
    { "policies.schedule { microbatch = 4 }", { samples = 3, ranks = 2 },
      "policies.schedule: 3 samples do not divide into microbatches of 4; nearest: 4" },
    { "policies.schedule { microbatch = 2, chunks = 2 }", { samples = 12, ranks = 4 },
      "policies.schedule: 12 samples do not divide into rounds of 4 microbatches of 2; nearest: 8 or 16" },
    { "policies.schedule { chunks = 2 }", { samples = 10, ranks = 4 },
      "policies.schedule: 10 samples do not divide into rounds of 4 microbatches; nearest: 8 or 12" },
    { "policies.schedule { order = '1f1b', chunks = 2 }", nil,
      "policies.schedule: the order '1f1b' with 2 chunks per rank; only 'interleaved' has several" },
    { "policies.schedule { order = 'interleaved' }", nil,
      "policies.schedule: the order 'interleaved' with 1 chunk per rank; only 'interleaved' has several" },
    { "policies.schedule { order = '1b1f' }", nil,
      "policies.schedule: setting 'order' is '1f1b', 'gpipe', 'interleaved', not '1b1f'" },
  }
end)

describe("policies.bucket_bytes", function()
  it("is Megatron-core's where nothing is said", function()
    local ask = asked "policies.bucket_bytes()"
    for _, ranks in ipairs { 1, 8, 40, 41, 4096 } do
      assert.equal(4 * math.max(40000000, 1000000 * ranks), ask { ranks = ranks, family = "dp_cp" })
    end
  end)

  it("is what the recipe says", function()
    assert.equal(1024, asked "policies.bucket_bytes { least = 1024, per_rank = 0 }" { ranks = 64 })
    assert.equal(6400, asked "policies.bucket_bytes { least = 1024, per_rank = 100 }" { ranks = 64 })
  end)

  refused {
    { "policies.bucket_bytes { least = 0 }", nil, "policies.bucket_bytes: setting 'least' is an integer of 1 to 2^53, not 0" },
    { "policies.bucket_bytes()", {}, "policies.bucket_bytes: argument 'ranks', an integer of 1 to 2147483647, is missing; given: none" },
  }
end)

describe("policies.gradient_family", function()
  it("is one for dense and one for expert parameters", function()
    local ask = asked "policies.gradient_family { expert = 'tp' }"
    assert.equal("dp_cp", ask { expert = false })
    assert.equal("tp", ask { expert = true, parameter = "w" })
  end)

  refused {
    { "policies.gradient_family()", { expert = true },
      "policies.gradient_family: no family of experts' data parallelism (expert_data, expt_dp, ep_dp, efsdp, edp); name it "
      .. "in the setting 'expert': one of dp_cp, tp" },
    { "policies.gradient_family { dense = 'dp' }", nil,
      "policies.gradient_family: unknown family 'dp'; known: dp_cp, tp" },
    { "policies.gradient_family()", {}, "policies.gradient_family: argument 'expert', true or false, is missing; given: none" },
  }
end)

describe("policies.gradient_family of a bundled recipe", function()
  -- by recipe: parameters, and the family of its experts; false: none with a name that the policy knows
  local expected = {
    megatron = { { ep = 2 }, "expt_dp" }, deepspeed = { { ep = 2 }, "ep_dp" }, deepspeed_moe = { { ep = { 4 } }, "edp_size_4" },
    torchtitan = { { ep = 2 }, "efsdp" }, llama = { { ep = 2, num_local_experts = 4 }, "edp" }, nanotron = false, sglang = false,
    megatron_bridge = { { ep = 2 }, "expt_dp" }, mindspeed = { { ep = 2 }, "expt_dp" }, paddle_fleet = false, -- moe_sharding
  }

  local function ask(base, params)
    local path = support.file(("return recipe { base = %q,\n  policy = { it = policies.gradient_family() } }"):format(base))
    local recipe = mg.load(path)
    return recipe:call(recipe:plan(8, params):dry(3), "it", { expert = true })
  end

  for _, name in ipairs(mg.recipes()) do
    local takes_experts = false
    for _, p in ipairs(mg.load(name):info().params) do
      for _, alias in ipairs(p.aliases) do takes_experts = takes_experts or alias == "ep" end
      takes_experts = takes_experts or p.name == "ep"
    end
    if takes_experts then
      it("finds the experts' family of " .. name, function()
        local case = expected[name]
        assert.not_nil(case, "say which it is")
        if case then assert.equal(case[2], ask(name, case[1])) end
      end)
    end
  end

  it("must be told which, where there are several", function()
    local ok, told = pcall(ask, "deepspeed_moe", { ep = { 2, 4 } })
    assert.is_false(ok)
    assert.truthy(told:find(":2: policies.gradient_family: the setting 'expert' is one of edp_size_2, edp_size_4", 1, true), told)
  end)
end)

describe("policies.learning_rate", function()
  local function rates(settings, steps)
    local ask, list = asked("policies.learning_rate { " .. settings .. " }"), {}
    for step = 0, steps - 1 do list[step] = ask { step = step, steps = steps } end
    return list, ask
  end

  it("warms up by a line, and falls along half a cosine", function()
    local list, ask = rates("peak = 0.5, least = 0.25, warmup = 10", 110)
    for step = 0, 9 do assert.equal(0.5 * (step + 1) / 10, list[step]) end
    for step = 10, 109 do
      local exact = 0.25 + 0.25 * (1 + math.cos(math.pi * (step - 10) / 100)) / 2
      assert.is_true(math.abs(list[step] - exact) < 1e-16 * 4, step)
    end
    assert.equal(0.5, list[10])
    assert.equal(0.375, list[60])
    assert.equal(0.25, ask { step = 110, steps = 110 })
    assert.equal(0.25, ask { step = 10000, steps = 110 })
  end)

  it("falls by a line, over the last steps alone", function()
    local list = rates("peak = 1, shape = 'linear', warmup = 2, decay = 4", 12)
    assert.are.same({ [0] = 0.5, 1, 1, 1, 1, 1, 1, 1, 1, 0.75, 0.5, 0.25 }, list)
  end)

  it("stays, or falls by the root", function()
    assert.are.same({ [0] = 0.5, 1, 1, 1 }, (rates("peak = 1, warmup = 2, shape = 'constant'", 4)))
    local list = rates("peak = 1, warmup = 4, shape = 'inverse_sqrt', least = 0.4", 40)
    assert.equal(1, list[3])
    assert.equal(1, list[4])
    assert.equal(0.5, list[16])
    assert.equal(0.4, list[30])
    assert.equal(1, rates("peak = 1, shape = 'inverse_sqrt'", 4)[0])
  end)

  it("never rises after the warm-up, and never leaves its bounds", function()
    for _, shape in ipairs { "cosine", "linear", "constant", "inverse_sqrt" } do
      for _, warmup in ipairs { 0, 1, 7, 50, 60 } do
        local list = rates(("peak = 3e-3, least = 1e-4, shape = '%s', warmup = %d"):format(shape, warmup), 50)
        for step = 0, 49 do
          assert.is_true(list[step] > 0 and list[step] <= 3e-3)
          assert.is_true(step < warmup or list[step] >= 1e-4)
          assert.is_true(step <= warmup or list[step] <= list[step - 1])
        end
      end
    end
  end)

  refused {
    { "policies.learning_rate()", nil, "policies.learning_rate needs 'peak', a number of 0 or more" },
    { "policies.learning_rate { peak = '3e-3' }", nil, "policies.learning_rate: setting 'peak' is a number of 0 or more, not '3e-3'" },
    { "policies.learning_rate { peak = 1 / 0 }", nil, "policies.learning_rate: setting 'peak' is a number of 0 or more, not inf" },
    { "policies.learning_rate { peak = 1, least = 2 }", nil, "policies.learning_rate: 'least', 2, is above 'peak', 1" },
    { "policies.learning_rate { peak = 1, decay = 2, shape = 'constant' }", nil,
      "policies.learning_rate: 'decay' says when 'cosine' and 'linear' begin to fall, not 'constant'" },
    { "policies.learning_rate { peak = 1 }", { step = -1, steps = 1 },
      "policies.learning_rate: argument 'step' is an integer of 0 to 2147483647, not -1" },
    { "policies.learning_rate { peak = function() end }", { step = 0, steps = 1 },
      "policies.learning_rate: setting 'peak' is a number of 0 or more, not nil" },
  }
end)

describe("policies.checkpoint", function()
  it("is every so many steps, and the last", function()
    local ask, at = asked "policies.checkpoint { every = 4 }", {}
    for step = 0, 9 do
      if ask { step = step, steps = 10 } then at[#at + 1] = step end
    end
    assert.are.same({ 3, 7, 9 }, at)
    assert.is_false(asked "policies.checkpoint { every = 4, last = false }" { step = 9, steps = 10 })
    assert.is_true(asked "policies.checkpoint()" { step = 999, steps = 5000 })
  end)

  refused { { "policies.checkpoint { last = 1 }", nil, "policies.checkpoint: setting 'last' is true or false, not 1" } }
end)

describe("policies.on_lost", function()
  it("keeps, shrinks or stops by the family", function()
    local ask = asked "policies.on_lost { keep = { 'tp' }, shrink = { 'dp_cp' }, least = 2 }"
    assert.equal("keep", ask { family = "tp", ranks = 2 })
    assert.equal("shrink", ask { family = "dp_cp", ranks = 4, lost = 2 })
    assert.equal("stop", ask { family = "dp_cp", ranks = 4, lost = 3 })
    assert.equal("stop", ask { family = "dp_cp", ranks = 2 })
    assert.equal("stop", asked "policies.on_lost()" { family = "dp_cp", ranks = 4 })
  end)

  it("lets one of two halves go on", function()
    local ask = asked "policies.on_lost { majority = true }"
    assert.equal("shrink", ask { ranks = 7, lost = 3, which = { 0, 1, 2 } })
    assert.equal("stop", ask { ranks = 7, lost = 4, which = { 3, 4, 5, 6 } })
    assert.equal("shrink", ask { ranks = 8, lost = 4, which = { 4, 5, 6, 7 } })
    assert.equal("stop", ask { ranks = 8, lost = 4, which = { 0, 1, 2, 3 } })
    assert.equal("stop", ask { ranks = 8, lost = 4, spares = 4, which = { 0, 5, 6, 7 } })
    assert.equal("stop", ask { ranks = 8, lost = 4 })
    assert.equal("shrink", asked "policies.on_lost()" { ranks = 8, lost = 7, which = { 0, 1, 2, 3, 4, 5, 6 } })
  end)

  refused {
    { "policies.on_lost()", { family = "zz", ranks = 2 }, "policies.on_lost: unknown family 'zz'; known: dp_cp, tp" },
    { "policies.on_lost()", { family = "tp", ranks = 2, lost = 3 }, "policies.on_lost: 3 lost ranks are more than the 2 ranks there are" },
    { "policies.on_lost { keep = { 'dq_cp' } }", nil,
      "policies.on_lost: unknown family 'dq_cp'; nearest is 'dp_cp' (dp_cp, tp)" },
    { "policies.on_lost { shrink = 'dp_cp' }", nil, "policies.on_lost: setting 'shrink' is a list of names of families, not 'dp_cp'" },
    { "policies.on_lost { majority = 5 }", nil, "policies.on_lost: setting 'majority' is true or false, not 5" },
    { "policies.on_lost { keep = { tp = 'tp' } }", nil, "policies.on_lost: setting 'keep' is a list of names of families, not a table" },
  }
end)

describe("a bundled policy", function()
  it("is one function among others, and is asked by them", function()
    local ask = asked "function(s, q, p) return #policies.layers()(s, { layers = q.n, stages = s.tp.size }, p) end"
    assert.equal(2, ask { n = 4 })
  end)

  it("keeps the settings it was made with", function()
    local ask = asked [[(function() local s = { first = 1 } local made = policies.layers(s) s.first = 5 return made end)()]]
    assert.are.same({ 1, 7 }, ask { layers = 8, stages = 2 })
  end)

  it("cannot be changed, nor its table", function()
    assert.equal("recipe:9: bundled policy 'layers' cannot be changed",
      refusal "(function() policies.layers = 5 end)()")
    assert.equal("recipe:9: kind of parameter 'size' cannot be changed", refusal "(function() param.size = 5 end)()")
  end)

  it("sees the machine through its settings", function()
    local ask = asked "policies.bucket_bytes { least = function(s) return s.machine.local_size end, per_rank = 0 }"
    assert.equal(8, ask { ranks = 2 })
  end)
end)

describe("agreed", function()
  local function plan(base, text)
    local b = support.file(base)
    local d = support.file(text:gsub("BASE", "./" .. b:match "[^/]*$"))
    local ok, said = pcall(function() return mg.load(d):plan(8) end)
    local info = ok and mg.load(d):info().policies
    return ok and info or (said:gsub(b:gsub("%p", "%%%0"), "base"):gsub(d:gsub("%p", "%%%0"), "derived"))
  end
  local base = [[
return recipe {
  build = function(world) local t = topology(world) t.tp = grid(world, "tp", { tp = fill }) "tp" return t end,
  policy = { r = function() end },
  agreed = { r = "tp" },
}]]
  local other = [[return recipe { base = "BASE", build = function(world) return topology(world) end%s }]]

  it("is inherited, and may be another or taken back", function()
    assert.are.same({ { name = "r", agreed = "tp" } }, plan(base, 'return recipe { base = "BASE" }'))
    assert.are.same({ { name = "r", agreed = "world" } }, plan(base, 'return recipe { base = "BASE", agreed = { r = "world" } }'))
    assert.are.same({ { name = "r" } }, plan(base, 'return recipe { base = "BASE", agreed = { r = false } }'))
    assert.are.same({ { name = "r" } }, plan(base, other:format(", agreed = { r = false }")))
  end)

  it("is missed by the recipe that says it", function()
    assert.equal("base:1: policy 'r' is agreed: unknown family 'tp'; known: world", plan(base, other:format ""))
    assert.equal("derived:1: policy 'r' is agreed: unknown family 'tpp'; nearest is 'tp' (tp, world)",
      plan(base, 'return recipe { base = "BASE", agreed = { r = "tpp" } }'))
  end)
end)

describe("recipe:call", function()
  it("refuses what is neither a policy nor a table", function()
    local path = recipe_of "policies.layers()"
    local recipe = mg.load(path)
    local state = recipe:plan(8, {}):dry(0)
    assert.has_error(function() recipe:call(state, "its") end, "unknown policy 'its'; nearest is 'it' (it)")
    assert.has_error(function() recipe:call(state, "it", 5) end, "bad argument #3 to 'call' (table expected, got number)")
    assert.has_error(function() recipe:call(state, "it", { layers = print }) end)
    assert.has_error(function() recipe:call(mg.load("picotron"):plan(8, {}):dry(0), "it") end)
  end)

  it("has its policies told by recipe:info and by the command", function()
    local path = recipe_of("policies.layers()", "agreed = { it = 'tp' }")
    assert.are.same({ { name = "it", agreed = "tp" } }, mg.load(path):info().policies)
    local out = support.run("build/moongrid recipes " .. path)
    assert.truthy(out:find("\npolicies\n  it +agreed by tp\n"), out)
  end)

  it("refuses what is not a plain value, however deep", function()
    local told = "recipe:9: policy 'it' returned a value that is not plain: a function, a state, or a table with one in it"
    assert.equal(told, refusal("function() return { f = function() end } end", {}))
    assert.equal("recipe:9: policy 'it' returned a value of more than 262144 values or 4194304 bytes of text, or nested too deep",
      refusal("function() local t = {} t.t = t return t end", {}))
    assert.equal(told, refusal("function(s) return { s = s } end", {}))
    assert.equal(told, refusal("function(_, _, p) return { p = p } end", {}))
    assert.equal(told, refusal("function() return { [1.5] = 1 } end", {}))
    assert.are.same({ a = { 1, 2.5, { b = false } }, c = 1 / 0 },
      asked "function() return { a = { 1, 2.5, { b = false } }, c = 1 / 0 } end" {})
  end)

  it("gives nothing for nothing", function()
    assert.is_nil(asked "function() end" {})
  end)

  it("compares what is agreed over the job", function()
    local path = recipe_of("function(s, q) return s.rank // q.each end", "agreed = { it = 'world' }")
    local script = support.file(([[
      local mg = require "moongrid"
      local job = assert(mg.mpi())
      local recipe = mg.load %q
      local state <close> = assert(job:materialize(recipe:plan(job.world)))
      local same, message = recipe:call(state, "it", { each = 4 })
      assert(same == 0, message)
      local value, why, status = recipe:call(state, "it", { each = 1 })
      assert(value == nil and status == 500)
      -- the argument of one rank is wrong: it raises there, and the others get an error
      local ok, got, told = pcall(recipe.call, recipe, state, "it", { each = state.rank == 1 and print or 4 })
      assert(ok == (state.rank ~= 1) and (ok and told or got):find("policy 'it': an argument is not a plain value", 1, true), got)
      assert(recipe:call(state, "it", { each = state.rank == 1 and 8.0 or 8 }) == nil) -- 0.0 is not 0
      assert(why:find("policy 'it' is agreed by the world, and ranks differ: rank 0 returned 0, rank 1 returned 1", 1, true), why)
      if state.rank == 0 then print "agreed" end
    ]]):format(path))
    local out, err, code = support.launch(4, "env LUA_CPATH_5_4=build/?.so lua5.4 " .. script)
    assert.equal("agreed\n", out, err)
    assert.equal(0, code)
  end)
end)
