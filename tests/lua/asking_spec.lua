-- SPDX-License-Identifier: MIT
--
-- Questions to a state: queries, getters of groups, their arguments, settings. Refusals are compared whole, with the
-- recipe's own file and line.

local mg = require "moongrid"
local recipes = assert(loadfile("tests/lua/recipes.lua", "t", _ENV))() -- with busted's names
local recipe, write, plain = recipes.recipe, recipes.write, recipes.plain
local refuses, simple = recipes.refuses, recipes.simple

-- A recipe on two dims with these fields more.
local function asked(fields)
  return recipe((simple:gsub("end }\n$", function() return "end, " .. fields .. " }\n" end)))
end

-- The refusal of a question, without the folder.
local function refused(fn, ...)
  local ok, message = pcall(fn, ...)
  assert.is_false(ok)
  return plain(message)
end

describe("queries", function()
  it("answers queries with the state, the question and the parameters", function()
    local r = recipe(simple:gsub("end }\n$", [[end, arguments = { "x" }, queries = {
      mine = function(s, q, p) return { s.tp.position, q.x, p.tp } end,
      nothing = function() end,
      half = function() return 0.5 end } }]]))
    local s = r:plan(8, { tp = 2 }):dry(3)
    assert.are.same({ 1, 7, 2 }, r:ask(s, "mine", { x = 7 }))
    assert.is_nil(r:ask(s, "nothing", {}))
    assert.are.equal(0.5, r:ask(s, "half", {}))
    assert.are.same({ doc = "two dims", queries = { "half", "mine", "nothing" }, policies = {}, settings = {}, getters = {}, families = {}, names = {},
                      arguments = { { name = "x", kind = "any", doc = "", aliases = {} } },
                      params = { { name = "tp", kind = "size", default = "1", doc = "tensor",
                                   aliases = { "t", "tensor_size" } } } }, r:info())
  end)

  it("of the base come along", function()
    local r = recipe [[return recipe { base = "picotron", queries = { tp_rank = function() return "mine" end } }]]
    local s = r:plan(8, { tp = 2 }):dry(1)
    assert.are.equal("mine", r:ask(s, "tp_rank", {}))
    assert.are.equal(2, r:ask(s, "tp_world_size", {}))
  end)

  it("may be what a function returns, called when somebody asks", function()
    local r = recipe [[return recipe { base = "megatron", queries = function()
      return { tensor_model_parallel_rank = function() return "mine" end } end }]]
    local s = r:plan(8, { tp = 2 }):dry(1)
    assert.are.equal("mine", r:ask(s, "tensor_model_parallel_rank", {}))
    assert.are.equal(2, r:ask(s, "tensor_model_parallel_world_size", {}))
    for made, message in pairs { ["nil"] = "queries returned nil; return a table, { NAME = ... }",
                                 ["{ x = 5 }"] = "query 'x' is not a function" } do
      r = recipe(("return recipe { base = 'picotron', queries = function() return %s end }"):format(made))
      s = r:plan(8, {}):dry(0)
      for _ = 1, 2 do
        local ok, said = pcall(r.ask, r, s, "str", {})
        assert.is_false(ok)
        assert.are.equal("r.lua:1: " .. message, plain(said))
      end
    end
  end)

  it("understand the arguments that are declared, the base's too", function()
    local r = recipe [[return recipe { base = "megatron_deepspeed", arguments = { "who" },
      queries = { hello = function(_, q) return q.who end } }]]
    local s = r:plan(8, { pp = 4, vpp = 2 }):dry(0)
    assert.are.equal("me", r:ask(s, "hello", { who = "me" }))
    assert.is_false(r:ask(s, "is_pipeline_first_stage", { virtual_rank = 1 }))
    local ok, message = pcall(r.ask, r, s, "is_pipeline_first_stage", { virtul_rank = 1 })
    assert.is_false(ok)
    assert.is_truthy(message:find("r.lua:1: unknown argument 'virtul_rank'; nearest is 'virtual_rank' "
      .. "(check_initialized, ignore_virtual, virtual_rank, who)", 1, true), message)
  end)

  refuses {
    { "a query that is none", "return recipe { base = 'picotron', queries = { x = 5 } }", "r.lua:1: query 'x' is not a function" },
    { "queries that are none", "return recipe { base = 'picotron', queries = 5 }",
      "r.lua:1: field 'queries' of a recipe is a table, not a number" },
  }
end)

describe("arguments", function()
  local function shows(arguments)
    local r = asked("arguments = { " .. arguments .. " }, queries = { show = function(_, q) local list = {}"
      .. " for name, value in pairs(q) do list[#list + 1] = name .. '=' .. tostring(value) end"
      .. " return table.concat(list, ' ') end }")
    local s = r:plan(8):dry(0)
    return function(q) return r:ask(s, "show", q) end, r
  end

  it("have their kinds, defaults and aliases", function()
    local show = shows "stage = param.index(0, 'of the pipeline', 's'), all = param.flag(false), size = param.size()"
    assert.are.equal("all=false stage=0", show {})
    assert.are.equal("all=true size=2 stage=3", show { s = 3, all = true, size = 2 })
  end)

  it("take any value where only their names are given, and any name after ...", function()
    assert.are.equal("x=a", (shows "'x'") { x = "a" })
    assert.are.equal("x=1 y=true", (shows "'x', '...'") { x = 1, y = true })
    assert.are.equal("n=2 y=true", (shows "n = 2, '...'") { y = true })
  end)

  it("are listed as parameters are", function()
    local _, r = shows "stage = param.index(0, 'of the pipeline', 's'), 'x'"
    assert.are.same({ { name = "stage", kind = "index", default = "0", doc = "of the pipeline", aliases = { "s" } },
                      { name = "x", kind = "any", doc = "", aliases = {} } }, r:info().arguments)
  end)

  for what, case in pairs {
    ["a negative index"] = { "stage = -1", "argument 'stage' is an index (an integer of 0 or more), not -1; nearest is 0" },
    ["text for an index"] = { "stage = '1'", "argument 'stage' is an index (an integer of 0 or more), not '1'" },
    ["a number for a flag"] = { "all = 1", "argument 'all' is true or false, not 1" },
    ["a size of 0"] = { "size = 0", "argument 'size' is a size (an integer of 1 or more), not 0; nearest is 1" },
    ["a wrong name"] = { "stag = 1", "unknown argument 'stag'; nearest is 'stage' (stage, all, size)" },
  } do
    it("refuse " .. what, function()
      local show = shows "stage = param.index(0), all = param.flag(false), size = param.size()"
      assert.are.equal((what == "a wrong name" and "r.lua:1: " or "r.lua:7: ") .. case[2], refused(show, load("return { " .. case[1] .. " }")()))
    end)
  end

  refuses {
    { "an argument without a name", "return recipe { base = 'picotron', arguments = { 5 } }",
      "r.lua:1: arguments of queries are names, not 5" },
    { "a default that is none", "return recipe { base = 'picotron', arguments = { x = param.index(-1) } }",
      "r.lua:1: the default of a index parameter is an index (an integer of 0 or more)" },
  }
end)

describe("getters", function()
  local text = [[getters = {
    get_tp_group = "tp",
    get_group = function(_, q) return q.twice and (q.more and "tp3" or "tp2") or "tp" end,
    get_named_group = function(_, q) return q.name end,
    get_larger_group = function(s) return s.tp.size > 1 and "tp" end,
    get_fast_group = "fast",
  },
  families = { tp2 = "tp above 1", ["fas*"] = "a faster network" },
  arguments = { twice = param.flag(false), more = param.flag(true), check_initialized = param.flag(true), "name" }]]

  it("give this rank's group of a family, the same that the state has", function()
    local r = asked(text)
    local s = r:plan(8, { tp = 2 }):dry(3)
    assert.are.equal(s.tp, r:group(s, "get_tp_group"))
    assert.are.equal(s.tp, r:group(s, "get_group", {}))
    assert.are.equal(s.tp, r:group(s, "get_named_group", { name = "tp" }))
    assert.are.equal(s.tp, r:group(s, "get_larger_group"))
  end)

  it("give nil to a rank that is in no group", function()
    local r = recipe [[return recipe { base = "megatron" }]]
    local plan = r:plan(8, { pp = 4 })
    assert.is_nil(r:group(plan:dry(2), "get_embedding_group"))
    assert.are.same({ 1, 7 }, r:group(plan:dry(1), "get_embedding_group").ranks)
  end)

  it("give nil without check_initialized where there is no such group", function()
    local r = asked(text)
    local s = r:plan(8):dry(0)
    assert.is_nil(r:group(s, "get_fast_group", { check_initialized = false }))
    assert.is_nil(r:group(s, "get_larger_group", { check_initialized = false }))
  end)

  it("of the base come along, and an own one takes the place of its namesake", function()
    local r = recipe [[return recipe { base = "picotron", getters = { tp_group = "dp", mine = "cp" } }]]
    local s = r:plan(8, { tp = 2 }):dry(0)
    assert.are.equal(s.dp, r:group(s, "tp_group"))
    assert.are.equal(s.cp, r:group(s, "mine"))
    assert.are.equal(s.pp, r:group(s, "pp_group"))
  end)

  it("are listed with their families, by the flags that they read", function()
    local gives = {}
    for i, getter in ipairs(asked(text):info().getters) do
      gives[i] = getter.name
      for _, one in ipairs(getter.gives) do gives[i] = gives[i] .. " | " .. one.arguments .. ": " .. one.family end
    end
    assert.are.same({ "get_fast_group | : fast", "get_group | : tp | twice=true: tp3 | twice=true more=false: tp2", "get_larger_group", "get_named_group",
                      "get_tp_group | : tp" }, gives)
    assert.are.same({ { name = "fas*", with = "a faster network" }, { name = "tp2", with = "tp above 1" } },
      asked(text):info().families)
  end)

  for what, case in pairs {
    ["a wrong name"] = { "get_tpp_group", {}, "unknown getter 'get_tpp_group'; nearest is 'get_tp_group' (get_fast_group, "
      .. "get_group, get_larger_group, get_named_group, get_tp_group)" },
    ["a family that is not there"] = { "get_named_group", { name = "dp" },
      "getter 'get_named_group': there is no family 'dp' in this plan" },
    ["one that another parameter would make"] = { "get_fast_group", {},
      "getter 'get_fast_group': there is no family 'fast' in this plan; it is there with a faster network" },
    ["no family"] = { "get_larger_group", {}, "getter 'get_larger_group': there is no such group with these parameters" },
  } do
    it("refuse " .. what, function()
      local r = asked(text)
      local s = r:plan(8):dry(0)
      assert.are.equal(case[3], (refused(r.group, r, s, case[1], case[2]):gsub("^tests/lua/[%w_]+.lua:%d+: ", "")))
    end)
  end

  it("are said how to write where there are none", function()
    local r = recipe(simple)
    local s = r:plan(8):dry(0)
    for how, want in pairs { group = "getter 'x'; the recipe has none: getters = { NAME = \"family\" } makes one",
      ask = "query 'x'; the recipe has none: queries = { NAME = function(state, q, p) ... end } makes one" } do
      assert.are.equal("r.lua:1: unknown " .. want .. ", and the bundled recipes have those of their systems",
        refused(r[how], r, s, "x", {}))
    end
  end)

  refuses {
    { "a getter that is none", "return recipe { base = 'picotron', getters = { x = 5 } }",
      "r.lua:1: getter 'x' is 5; write the name of a family, or a function that returns one" },
    { "a family without words", "return recipe { base = 'picotron', families = { x = true } }",
      "r.lua:1: families: 'x' has true; write a text that says when the family exists" },
  }
end)

describe("what queries get as p", function()
  local text = [[
return recipe { params = { n = 1, list = { 1, 2 } },
  build = function(world) return topology(world) end,
  queries = {
    drop = function(_, _, p) table.remove(p.list) return #p.list end,
    count = function(_, _, p) return #p.list end,
    n = function(_, _, p) return p.n end,
  } }]]

  it("is its own: a table that one changes is whole for the next", function()
    local r = recipe(text)
    local state = r:plan(8):dry(0)
    assert.equal(1, r:ask(state, "drop"))
    assert.equal(1, r:ask(state, "drop"))
    assert.equal(2, r:ask(state, "count"))
  end)

  it("is that of the state's plan, however many plans there are", function()
    local r, states = recipe(text), {}
    for n = 1, 40 do states[n] = r:plan(8, { n = n }):dry(0) end
    for _ = 1, 2 do
      for n = 1, 40 do assert.equal(n, r:ask(states[n], "n")) end
    end
  end)
end)

describe("settings", function()
  local text = [[
return recipe { base = "picotron",
  settings = {
    training = param.flag(true, "training or evaluation", "train"),
    steps = param.size(nil, "how many"),
    scale = 1.5,
    order = { 1, 2 },
  },
  queries = {
    training = function(_, _, _, set) return set.training end,
    steps = function(_, _, _, set) return set.steps end,
    scale = function(_, _, _, set) return set.scale end,
    order = function(_, _, _, set) table.remove(set.order) return #set.order end,
    all = function(_, _, _, set)
      local names = {}
      for name in pairs(set) do names[#names + 1] = name end
      return names
    end,
    typo = function(_, _, _, set) return set.trainin end,
    change = function(_, _, _, set) set.training = false end,
    tp = function(_, _, p, set) return set.training and p.tp_size or 0 end,
  },
}]]

  it("have their defaults until they are set, and after nil", function()
    local r = recipe(text)
    local s = r:plan(8, { tp = 2 }):dry(0)
    assert.is_true(r:ask(s, "training"))
    assert.is_nil(r:ask(s, "steps"))
    r:set(s, "train", false)
    r:set(s, "steps", 3)
    r:set(s, "scale", 2)
    assert.are.same({ false, 3, 2 }, { r:ask(s, "training"), r:ask(s, "steps"), r:ask(s, "scale") })
    assert.are.equal(0, r:ask(s, "tp"))
    r:set(s, "training", nil)
    r:set(s, "steps", nil)
    assert.is_true(r:ask(s, "training"))
    assert.is_nil(r:ask(s, "steps"))
    assert.are.equal(2, r:ask(s, "tp"))
  end)

  it("are each state's own, and no part of its plan", function()
    local r = recipe(text)
    local plan = r:plan(8, {})
    local digest, a, b = plan.digest, plan:dry(0), plan:dry(0)
    r:set(a, "training", false)
    assert.is_false(r:ask(a, "training"))
    assert.is_true(r:ask(b, "training"))
    assert.are.equal(digest, a.plan.digest)
    assert.are.equal(digest, r:plan(8, {}).digest)
  end)

  it("are copies, that a query may change", function()
    local r = recipe(text)
    local s = r:plan(8, {}):dry(0)
    r:set(s, "order", { 7, 8, 9 })
    assert.are.same({ 2, 2 }, { r:ask(s, "order"), r:ask(s, "order") })
    assert.are.same({ "training", "steps", "order", "scale" }, r:ask(s, "all"))
  end)

  it("come along with the base, and an own one takes the place of its namesake", function()
    write("base.lua", text)
    local r = recipe [[return recipe { base = "./base.lua", settings = { training = false, more = 1 },
      queries = { more = function(_, _, _, set) return set.more end } }]]
    local s = r:plan(8, {}):dry(0)
    assert.is_false(r:ask(s, "training"))
    assert.are.equal(1, r:ask(s, "more"))
    local names = {}
    for i, setting in ipairs(r:info().settings) do names[i] = setting.name end
    assert.are.same({ "training", "steps", "order", "scale", "more" }, names)
  end)

  it("are checked, and stay as they are when one is refused", function()
    local r = recipe(text)
    local s = r:plan(8, {}):dry(0)
    r:set(s, "steps", 3)
    assert.are.equal("r.lua:1: unknown setting 'trainin'; nearest is 'training' (training, train, steps, order, scale)",
      refused(r.set, r, s, "trainin", false))
    assert.are.equal("r.lua:3: setting 'training' is true or false (also 1 or 0), not 'false'", refused(r.set, r, s, "train", "false"))
    assert.are.equal("r.lua:4: setting 'steps' is a size (an integer of 1 or more), not 0; nearest is 1",
      refused(r.set, r, s, "steps", 0))
    assert.is_truthy(refused(r.set, r, s, "steps", print):find(": a setting is a plain value, not a function$"))
    assert.are.equal(3, r:ask(s, "steps"))
    local other = mg.load "picotron"
    assert.are.equal("picotron:30: unknown setting 'steps'; there are none",
      refused(other.set, other, other:plan(8, {}):dry(0), "steps", 1))
    assert.is_truthy(refused(r.set, r, other:plan(8, {}):dry(0), "steps", 1):find(
      "the state's plan is not of this recipe (r.lua) but of picotron", 1, true))
    assert.is_truthy(refused(function() r:set(s, "steps") end):find("bad argument #3 to 'set' (value expected)", 1, true))
  end)

  it("are read only for queries", function()
    local r = recipe(text)
    local s = r:plan(8, {}):dry(0)
    assert.are.equal("r.lua:18: unknown setting 'trainin'; nearest is 'training' (training, steps, order, scale)",
      refused(r.ask, r, s, "typo"))
    assert.are.equal("r.lua:19: setting 'training' cannot be changed", refused(r.ask, r, s, "change"))
  end)

  refuses {
    { "an alias of two", "return recipe { base = 'picotron', settings = {\na = param.size(1, '', 'x'),\n"
      .. "b = param.size(1, '', 'x') } }", "r.lua:3: settings 'a' and 'b' both answer to 'x'" },
    { "a default that is not a value", "return recipe { base = 'picotron', settings = { a = topology } }",
      "r.lua:1: the default of setting 'a' is a function; write a number, a string, a boolean, a list of integers or "
      .. "param.KIND(...); param.any takes every plain value" },
    { "settings without names", "return recipe { base = 'picotron', settings = { 5 } }",
      "r.lua:1: settings are by name; a key is a number" },
    { "settings that are not a table", "return recipe { base = 'picotron', settings = 5 }",
      "r.lua:1: field 'settings' of a recipe is a table, not a number" },
  }
end)

