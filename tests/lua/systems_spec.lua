-- SPDX-License-Identifier: MIT
--
-- Every bundled recipe: each refusal in its text is provoked and compared whole, values that a refusal
-- suggests are tried, and layouts are planned, rehearsed and queried.

local mg = require "moongrid"
local fitting = (require "support").fitting

local loaded = {}

local function recipe(name)
  loaded[name] = loaded[name] or mg.load(name)
  return loaded[name]
end

-- The refusal of some parameters: nil if the recipe takes them, else position and message. A recipe can
-- be used again after a refusal, so each is loaded once.
local function refusal(name, params, world)
  local r = recipe(name)
  local ok, said = pcall(r.plan, r, world or 8, params)
  if ok then return nil end
  assert.is_string(said)
  local at, message = said:match "^([%w_.]+:%d+): (.*)$"
  assert.is_truthy(at, "no position: " .. said)
  return message, at
end

-- The same for a question at rank 0, a query or a getter. That there is no group is said without a position: it
-- is not the recipe that is wrong.
local function question_refusal(name, case)
  local r = recipe(name)
  local question = case.get and r.group or r.ask
  local ok, said = pcall(question, r, r:plan(8, case.params or {}):dry(0), case.get or case.ask, case.q or {})
  if ok then return nil end
  local at, message = tostring(said):match "^([%w_./]+:%d+): (.*)$"
  assert.is_truthy(at, "no position: " .. tostring(said))
  return message, at:find("_spec.lua", 1, true) and name or at
end

local function provoke(name, case)
  if case.ask or case.get then return question_refusal(name, case) end
  return refusal(name, case.params, case.world)
end

local none = {} -- as an override: the parameter is left out

local function changed(params, overrides)
  local copy = {}
  for key, value in pairs(params) do copy[key] = value end
  for key, value in pairs(overrides) do
    if value == none then copy[key] = nil else copy[key] = value end
  end
  return copy
end

local function accepts(name, params, world)
  local message = refusal(name, params, world)
  assert.is_nil(message, message and ("a suggestion is refused: " .. message))
end

-- The files of a recipe: itself, and its parts.
local function files_of(name)
  local files = { { name, "lua/moongrid/recipes/" .. name .. ".lua" } }
  for path in io.popen(("ls lua/moongrid/recipes/%s/*.lua 2> /dev/null"):format(name)):lines() do
    files[#files + 1] = { name .. "." .. path:match "([^/]+)%.lua$", path }
  end
  return files
end

-- The places of a recipe's text where it refuses, as messages have them; second, the last line of its own file.
local function refusing_places(name)
  local places, last = {}, nil
  for _, file in ipairs(files_of(name)) do
    local n = 0
    for line in io.lines(file[2]) do
      n = n + 1
      local refuses = line:find '%f[%w_]error ?[("]' or line:find '%f[%w_]refuse ?[("]'
      if refuses and not line:find "local function refuse" and not line:find "^%s*%-%-" then
        places[#places + 1] = file[1] .. ":" .. n
      end
    end
    last = last or n
  end
  return places, last
end

-- Systems -------------------------------------------------------------------------
--
-- A file each in systems/, which is given { none = none }:
-- refused: { what, params, message, world = 8, would = { what the message suggests } }, or
--   { what, ask = query or get = getter, q, message } for a question; `words` instead of a message: all of them
--   must be in it; `at`: the recipe that refuses, where it is another
-- layouts: fit any power of two from 8 on, or functions of the world that return them; the first is the typical one
-- silent: queries that never have an answer
-- base: the recipe that it extends
-- asks: a query's arguments, several of them; `asks[1]` for all others
-- values: a parameter's value beside its default, what it needs besides, and what its default needs, where that is other

local systems = {}
for _, name in ipairs(mg.recipes()) do
  local chunk = loadfile("tests/lua/systems/" .. name .. ".lua")
  systems[name] = chunk and chunk { none = none }
end

-- By kind: values that are not of that kind.
local wrong = {
  size = { 0, "a size (an integer of 1 or more), not 0; nearest is 1" },
  integer = { "x", "an integer, not 'x'" },
  number = { "x", "a number, not 'x'" },
  flag = { "yes", "true or false (also 1 or 0), not 'yes'" },
  text = { 5, "text, not 5" },
  list = { "x", "a list of integers (0,-1), not 'x'" },
  names = { { "a", "a" }, "a list of names, each once (tp-dp), not {a,a}" },
  table = { "x", "a table with names as keys (JSON on a command line), not 'x'" },
  file = { 5, "a table with names as keys, or the path of a JSON or YAML file with such a table, not 5" },
  index = { -1, "an index (an integer of 0 or more), not -1; nearest is 0" },
}

-- A layout of so many ranks.
local function fitted(layout, world)
  if type(layout) == "function" then return layout(world) end
  return layout
end

local function shown(params)
  local words = {}
  for key, value in pairs(params) do
    words[#words + 1] = key .. "=" .. (type(value) == "table" and "{...}" or tostring(value))
  end
  table.sort(words)
  return "{" .. table.concat(words, " ") .. "}"
end

it("all bundled recipes are here", function()
  for _, name in ipairs(mg.recipes()) do assert.is_table(systems[name], name) end
end)

for _, name in ipairs(mg.recipes()) do
  local system = systems[name] or { refused = {}, layouts = {}, values = {} }

  describe(name .. " refuses", function()
    for _, case in ipairs(system.refused) do
      case.params, case.message = case.params or case[2], case.message or case[3]
      it(case[1], function()
        local message, at = provoke(name, case)
        assert.is_truthy(message, "accepted")
        assert.are.equal(case.at or name, at:match "^[%w_]+")
        if case.message then assert.are.equal(case.message, message) end
        for _, word in ipairs(case.words or {}) do
          assert.is_truthy(message:find(word, 1, true), ("'%s' lacks: %s"):format(message, word))
        end
      end)
      if case.would then
        it(case[1] .. ", and takes what it suggests", function()
          for _, overrides in ipairs(case.would) do accepts(name, changed(case.params, overrides), case.world) end
        end)
      end
    end

    it("in every place of its text that refuses", function()
      local provoked, missing = {}, {}
      for _, case in ipairs(system.refused) do
        local _, at = provoke(name, case)
        provoked[at or ""] = true
      end
      for _, place in ipairs((refusing_places(name))) do
        if not provoked[place] then missing[#missing + 1] = place end
      end
      assert.are.equal("", table.concat(missing, ", "), "places that no case provokes")
    end)

    it("values of another kind", function()
      for _, p in ipairs(recipe(name):info().params) do
        if p.kind ~= "any" then
          local message, at = refusal(name, { [p.name] = wrong[p.kind][1] })
          assert.are.equal(("parameter '%s' is %s"):format(p.name, wrong[p.kind][2]), message)
          local declared, line = at:match "^([%w_]+):(%d+)$" -- here, or in the base
          assert.is_true(declared == name or declared == system.base, at)
          assert.is_true(tonumber(line) <= select(2, refusing_places(declared)))
        end
      end
    end)
  end)

  describe(name, function()
    local defaults = fitting[name] or {}
    for _, layout in ipairs(system.layouts) do
      local params = fitted(layout, 8)
      it("plans " .. shown(params) .. " at once, for any world", function()
        local digests = {}
        for _, world in ipairs { 8, 64, 1024, 1048576 } do
          local start = os.clock()
          local plan = recipe(name):plan(world, fitted(layout, world))
          assert.is_true(os.clock() - start < 0.5, world .. " ranks took long")
          assert.are.equal(world, plan.world)
          assert.is_nil(digests[plan.digest])
          digests[plan.digest] = true
        end
      end)

      it("plays " .. shown(params), function()
        for _, world in ipairs { 8, 64 } do
          local plan = recipe(name):plan(world, fitted(layout, world))
          local communicators = plan:rehearse()
          assert.are.equal(plan:counts().communicators, communicators)
        end
      end)
    end

    it("has five layouts or more here", function() assert.is_true(#system.layouts >= 5) end)

    -- values of the parameters of bundled steps that have other names, which are Megatron-LM's
    local of_step = {
      layers = 4, hidden = 64, heads = 4, kv_heads = 2, ffn = 96, vocab = 512, seq = 64, micro_batch = 2, global_batch = 64,
      gated = true, bias = false, norm = "rms", qk_norm = true, positions = "rope", experts = 4, topk = 1, moe_ffn = 96,
      moe_every = 2, shared_ffn = 32, head_dim = 32, fp8 = "e4m3", dense_layers = 1, embedding_in_split = true, loss_in_split = true,
      dispatcher = "allgather", expert_bias = true, first_stage_layers = 1,
      last_stage_layers = 1, recompute = "full", overlap_p2p = true, bucket = 1000, per_token_loss = true, fused_loss = true,
      schedule = "gpipe", reshard = false, mtp_num_layers = 1,
    }
    it("answers to every alias as to the name", function()
      local r = recipe(name)
      for _, p in ipairs(r:info().params) do
        local value = system.values[p.name] or of_step[p.name] ~= nil and { of_step[p.name] }
        if p.aliases[1] then assert.is_table(value, "no value here for " .. p.name) end
        for _, alias in ipairs(p.aliases) do
          local base = value[2] or {}
          local by_name = r:plan(8, changed(base, { [p.name] = value[1] }))
          assert.are.equal(by_name.digest, r:plan(8, changed(base, { [alias] = value[1] })).digest, alias)
          if tostring(value[1]) ~= p.default then assert.are_not.equal(r:plan(8, value[3] or base).digest, by_name.digest, alias) end
        end
      end
    end)

    it("answers every query on every rank", function()
      local r, asks, silent = recipe(name), system.asks or { { {} } }, {}
      for _, query in ipairs(r:info().queries) do silent[query] = true end
      for i, layout in ipairs(system.layouts) do
        local typical = i == 1
        local plan = r:plan(8, fitted(layout, 8))
        for rank = 0, 7 do
          local state = plan:dry(rank)
          for _, query in ipairs(r:info().queries) do
            for _, q in ipairs(asks[query] or asks[1]) do
              local ok, answer = pcall(r.ask, r, state, query, q)
              if typical then assert.is_true(ok, ("%s of rank %d: %s"):format(query, rank, answer)) end
              if ok and answer ~= nil then silent[query] = nil end
            end
          end
        end
      end
      for _, query in ipairs(system.silent or {}) do
        assert.is_true(silent[query], query .. " has an answer")
        silent[query] = nil
      end
      assert.is_nil(next(silent), "a query that never has an answer: " .. tostring(next(silent)))
    end)

    it("says what a question lacks", function()
      local r = recipe(name)
      local state = r:plan(8, fitted(system.layouts[1], 8)):dry(0)
      for _, query in ipairs(r:info().queries) do
        local ok, said = pcall(r.ask, r, state, query, {})
        local own = ok or not (said:find("bad argument", 1, true) or said:find("attempt to", 1, true))
        assert.is_true(own, ("%s: %s"):format(query, said))
      end
    end)

    it("has for each getter the group of the family that it lists", function()
      local r = recipe(name)
      local state = r:plan(8, defaults):dry(0)
      for _, getter in ipairs(r:info().getters) do
        for _, given in ipairs(getter.gives) do
          local q = {}
          for argument, value in given.arguments:gmatch "([%w_]+)=(%w+)" do q[argument] = value == "true" end
          local ok, group = pcall(r.group, r, state, getter.name, q)
          if state:has(given.family) then
            assert.is_true(ok, group)
            assert.are.equal(state[given.family], group)
          else
            assert.is_truthy(group:find("there is no family '" .. given.family .. "' in this plan; it is there with ", 1, true), group)
          end
        end
      end
    end)

    it("says of each family that is not always there when it is", function()
      local r, always = recipe(name), {}
      local info = r:info()
      for _, family in ipairs(r:plan(8, defaults).families) do always[family] = true end
      local function is_listed(family)
        for _, one in ipairs(info.families) do
          if family:find("^" .. one.name:gsub("%*", "[%%w_]*") .. "$") then return true end
        end
      end
      for _, layout in ipairs(system.layouts) do
        for _, family in ipairs(r:plan(8, fitted(layout, 8)).families) do
          if name ~= "jax_mesh" and name ~= "deepspeed_topology" then -- whose families are the user's axes
            assert.is_true(always[family] or is_listed(family), family)
          end
        end
      end
    end)

    it("has ranks that are smaller than sizes", function()
      local r, asks, known = recipe(name), system.asks or { { {} } }, {}
      local plan = r:plan(8, fitted(system.layouts[1], 8))
      for _, query in ipairs(r:info().queries) do known[query] = true end
      for rank = 0, 7 do
        local state = plan:dry(rank)
        for query in pairs(known) do
          local stem = query:match "^(.*)_rank$"
          if stem and known[stem .. "_world_size"] then
            for _, q in ipairs(asks[query] or asks[1]) do
              local at, size = r:ask(state, query, q), r:ask(state, stem .. "_world_size", q)
              if at and size then assert.is_true(at >= 0 and at < size, query) end
            end
          end
        end
      end
    end)
  end)
end

describe("megatron's SHARP", function()
  it("serves the replicas of dense layers, whether experts have instances of their own or not", function()
    for expert_instances, family in pairs { [2] = "inter_dist_opt", [4] = "inter_dp_cp", [1] = "inter_dp_cp" } do
      local plan = recipe("megatron"):plan(8, { use_sharp = true, sharp_enabled_group = "dp_replica", instances = 2,
        expert_instances = expert_instances })
      local first = {}
      for line in plan:text():gmatch "[^\n]+" do
        if line:find("first nccl{collnet_enable=1}", 1, true) then first[#first + 1] = line:match "^family ([%w_]+)" end
      end
      assert.are.same({ family }, first)
    end
  end)
end)

-- What refusals suggest, tried -------------------------------------------------------

-- Calls fn for every choice of one value for each name.
local function choices(domains, fn)
  local names = {}
  for key in pairs(domains) do names[#names + 1] = key end
  table.sort(names)
  local function choose(i, params)
    if i > #names then return fn(params) end
    for _, value in ipairs(domains[names[i]]) do choose(i + 1, changed(params, { [names[i]] = value })) end
  end
  choose(1, {})
end

-- A refusal that suggests a value by this pattern: the parameters with it are accepted.
local function suggests(name, params, world, pattern, with)
  local message = refusal(name, params, world)
  local found = message and message:match(pattern)
  if not found then return 0 end
  local again = refusal(name, changed(params, with(found)), world)
  assert.is_nil(again, ("%s at %d ranks: '%s', but then '%s'"):format(shown(params), world, message, again))
  return 1
end

describe("a suggestion", function()
  it("of a grid fits", function()
    local some = { 1, 2, 3, 5, 16 }
    local tried = 0
    for _, world in ipairs { 8, 12 } do
      choices({ tp = some, cp = some, pp = { 1, 2, 7 }, dp = { none, 1, 2, 6 } }, function(params)
        local message = refusal("picotron", params, world)
        if not message then return end
        local dim, sizes, worlds = message:match "nearest: (%w+) ([%d or]+), or a world of ([%d or]+) ranks$"
        if not dim then
          worlds = message:match "nearest: a world of ([%d or]+) ranks$" -- no size of one dim would do
          assert.is_truthy(worlds, message)
        end
        for size in (sizes or ""):gmatch "%d+" do
          accepts("picotron", changed(params, { [dim] = tonumber(size) }), world)
          tried = tried + 1
        end
        for other in worlds:gmatch "%d+" do
          accepts("picotron", params, tonumber(other))
          tried = tried + 1
        end
      end)
    end
    assert.is_true(tried > 500)
  end)

  for _, name in ipairs { "megatron", "deepspeed" } do
    it("of " .. name .. "'s order is whole", function()
      local tried = 0
      local orders = { "tp-dp-pp", "tp-pp", "dp-pp", "ep-dp-pp", "tp-dp", "dp", "cp-ep-pp", "pp" }
      choices({ order = orders, tp = { 1, 2 }, cp = { 1, 2 }, ep = { 1, 2 }, pp = { 1, 2 } }, function(params)
        tried = tried + suggests(name, params, 16, "'([%a-]+)' would do$", function(order) return { order = order } end)
      end)
      assert.is_true(tried > 50)
    end)
  end

  it("of megatron's optimizer instances fits dense and expert layers", function()
    local tried = 0
    for n = 2, 16 do
      choices({ tp = { 1, 2 }, cp = { 1, 2 }, ep = { 1, 2, 4 }, pp = { 1, 2 }, instances = { n } }, function(params)
        tried = tried + suggests("megatron", params, 8, " (%d+) would do$", function(x) return { instances = tonumber(x) } end)
      end)
    end
    assert.is_true(tried > 50)
  end)

  it("of megatron's optimizer instances of experts fits", function()
    local tried = 0
    for n = 1, 16 do
      choices({ ep = { 1, 2, 4 }, pp = { 1, 2 }, instances = { 1, 2 }, expert_instances = { n } }, function(params)
        tried = tried + suggests("megatron", params, 8, "expert_num.* (%d+) would do$",
          function(x) return { expert_instances = tonumber(x) } end)
      end)
    end
    assert.is_true(tried > 50)
  end)

  it("of deepspeed's optimizer instances fits dense and expert layers", function()
    local tried = 0
    for n = 2, 16 do
      choices({ tp = { 1, 2 }, ep = { 1, 2, 4 }, pp = { 1, 2 }, instances = { n } }, function(params)
        tried = tried + suggests("deepspeed", params, 8, " (%d+) would do$",
          function(x) return { instances = tonumber(x) } end)
      end)
    end
    assert.is_true(tried > 50)
  end)

  it("of deepspeed without experts is the grid that its generator of expert ranks makes", function()
    -- coordinates of the dims that the grid has, the first one of the order the fastest
    local function groups(order, sizes, dims)
      local stride, at = {}, 1
      for _, dim in ipairs(order) do
        if sizes[dim] then stride[dim], at = at, at * sizes[dim] end
      end
      local by_key, list = {}, {}
      for rank = 0, at - 1 do
        local key = rank
        for _, dim in ipairs(dims) do key = key - rank // stride[dim] % sizes[dim] * stride[dim] end
        if not by_key[key] then
          by_key[key] = {}
          list[#list + 1] = by_key[key]
        end
        table.insert(by_key[key], rank)
      end
      return list
    end
    local tried = 0
    for _, order in ipairs { "cp-sp-pp-ep-tp-dp", "tp-cp-ep-dp-pp", "pp-cp-tp-ep-dp", "tp-pp-cp-dp-ep", "cp-dp-pp-tp-ep", "dp-cp-pp-tp-sp-ep" } do
      choices({ tp = { 1, 2 }, cp = { 1, 2 }, pp = { 2, 4 }, order = { order } }, function(params)
        local plan = recipe "deepspeed":plan(16, params)
        local names = {}
        for name in order:gmatch "%a+" do names[#names + 1] = name end
        local sizes = { tp = params.tp, pp = params.pp, dp = 16 // (params.tp * params.pp) }
        for family, dims in pairs { tp_ep_pp = { "tp", "pp" }, ep_dp = { "dp" }, ep_tp = { "tp" } } do
          local got = {}
          for g, ranks in plan:family(family):groups() do
            table.sort(ranks)
            got[g + 1] = ranks
          end
          table.sort(got, function(a, b) return a[1] < b[1] end)
          assert.are.same(groups(names, sizes, dims), got, shown(params) .. " " .. family)
          tried = tried + 1
        end
      end)
    end
    assert.are.equal(6 * 8 * 3, tried)
  end)

  it("of megatron's hybrid blocks is a size of dp x cp", function()
    for n = 1, 70 do
      local message = refusal("megatron", { hybrid_cp = true }, n)
      for would in (message and message:match "; ([%d or]+) would do$" or ""):gmatch "%d+" do
        accepts("megatron", { hybrid_cp = true }, tonumber(would))
      end
    end
  end)

  it("of megatron's dynamic blocks is a size of dp x cp", function()
    for n = 1, 70 do
      for _, least in ipairs { 1, 3, 8 } do
        local params = { version = "dev", dynamic_cp = true, min_dynamic_cp = least }
        local message = refusal("megatron", params, n)
        for would in (message and message:match "; ([%d or]+) would do$" or ""):gmatch "%d+" do
          accepts("megatron", params, tonumber(would))
        end
      end
    end
  end)

  it("of megatron_deepspeed's stages divides the world", function()
    for _, world in ipairs { 8, 12, 16, 64 } do
      for _, pp in ipairs { 1, 2 } do
        local tried = suggests("megatron_deepspeed", { vpp = 2, pp = pp }, world, "pp (%d+)$", function(x) return { pp = tonumber(x) } end)
        assert.are.equal(1, tried)
      end
    end
  end)

  it("of torchtitan's experts divides them", function()
    local tried = 0
    for ep = 2, 20 do
      choices({ ep = { ep }, tp = { 1, 2, 3 }, cp = { 1, 2 }, dp_replicate = { 1, 2 }, pp = { 1, 2 } }, function(params)
        tried = tried + suggests("torchtitan", params, 24, "nearest: ep (%d+)", function(x) return { ep = tonumber(x) } end)
      end)
    end
    assert.is_true(tried > 100)
  end)

  it("of torchtitan's shards fits, each of them", function()
    for _, shard in ipairs { 0, -2, -8 } do
      for _, tp in ipairs { 1, 2, 8 } do
        local would = refusal("torchtitan", { dp_shard = shard, tp = tp }):match "; ([%d or-]+) would do$"
        for value in would:gmatch "-?%d+" do accepts("torchtitan", { dp_shard = tonumber(value), tp = tp }) end
      end
    end
  end)

  it("of deepspeed_moe's tensor-parallel size makes the world", function()
    for dp = 1, 16 do
      local message = refusal("deepspeed_moe", { data_parallel_size = dp })
      local tp = message:match "; (%d+) would do$" -- where dp divides the world
      local other = message:match "data_parallel_size (%d+) would do$" or message:match "nearest: dp (%d+)"
      assert.is_truthy(tp or other, message)
      accepts("deepspeed_moe", { data_parallel_size = other and tonumber(other) or dp, tp = tp and tonumber(tp) or 8 // other })
    end
  end)

  it("of deepspeed_moe's sequence-parallel size divides the world", function()
    for _, world in ipairs { 8, 9, 15 } do
      local tried = suggests("deepspeed_moe", { sp = 1 }, world, "nearest is (%d+)$", function(x) return { sp = tonumber(x) } end)
      assert.are.equal(1, tried)
    end
  end)

  it("of deepspeed_moe's folding spec agrees with every size of experts", function()
    local params = { ep = { 2, 4 }, folding_spec = { ep_size = 2 } }
    suggests("deepspeed_moe", params, 8, " (%d+) would do$", function(x) return { folding_spec = { ep_size = tonumber(x) } } end)
  end)

  it("of deepspeed_topology's axes is whole", function()
    for _, axes in ipairs { "a-b", "data-b", "pipe-b" } do
      local message = refusal("deepspeed_topology", { axes = axes, dims = { 2, 4 } })
      local whole = message:match "'([%a-]+)' would do"
      local dims = {}
      for axis in whole:gmatch "%a+" do dims[#dims + 1] = ({ [axes:match "^%a+"] = 2, [axes:match "%a+$"] = 4 })[axis] or 1 end
      accepts("deepspeed_topology", { axes = whole, dims = dims })
    end
  end)
end)
