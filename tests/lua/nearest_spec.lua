-- SPDX-License-Identifier: MIT
--
-- The sizes that a refusal offers. Bundled recipes and their steps get random sizes. Each offered value is tried, and
-- so is every value between it and the refused one: the offered value is accepted, and no nearer value is.

local mg = require "moongrid"

local seed = tonumber(os.getenv "MOONGRID_SEED") or 20261128
local cases = tonumber(os.getenv "MOONGRID_CASES") or 120 -- of each recipe

-- Parameters that go with any others; dims in messages that have another name than their parameter.
local fixed = {
  deepspeed = { order = "tp-cp-sp-ep-dp-pp" }, llama = { num_hidden_layers = 2, vocab_size = 96, intermediate_size = 96, head_dim = 2 },
}
-- Parameters that are left out: a default that is not a size, or a size that another one must repeat.
local skipped = {
  deepspeed_moe = { data_parallel_size = true, model_parallel_size_ = true }, -- must be the rest of the world
  megatron = { local_world_size = true }, -- a window of the world
}
local dims = {
  megatron = { gtp_remat = "gtp_remat_size", egtp_remat = "expert_gtp_remat_size" }, deepspeed_moe = { mp = "mp_size" },
  llama = { etp = "etp" }, sglang = {},
}

local function template(message) return (message:gsub("%d+", "N")) end

-- The answer to some sizes: nil if they are accepted, else the message.
local function refusal(r, world, params, with_step)
  local ok, plan = pcall(r.plan, r, world, params)
  if ok and with_step then ok, plan = pcall(plan.step, plan) end
  if not ok then return (tostring(plan):gsub("^[%w_.]+:%d+: ", ""):gsub("^steps%.%w+: ", "")) end
end

-- What a message offers: { parameter or "world", { values } }.
local function offers(message, parameter)
  local list = {}
  local function add(name, values)
    local of, known = {}, name == "world" and name or parameter(name)
    for value in values:gmatch "%d+" do of[#of + 1] = tonumber(value) end
    if known and #of > 0 then list[#list + 1] = { known, of, tonumber(message:match("^[^;]*"):match("%f[%w_]" .. name .. " (%d+)")) } end
  end
  local name, values = message:match "; nearest: ([%a_]+) ([%d or]+)"
  if name and name ~= "a" then add(name, values) end
  values = message:match "a world of ([%d or]+) ranks"
  if values then add("world", values) end
  name, values = message:match "[;,] ([%a_]+) ([%d or]+) would do"
  if name then add(name, values) end
  name, values = message:match "nearest is ([%a_]+) (%d+)"
  if name then add(name, values) end
  name = message:match "^([%a_]+) %d+"
  values = message:match "; ([%d or]+) would do" or message:match "; nearest: (%d[%d or]*)" or message:match "; nearest is (%d+)"
  if name and values then add(name, values) end
  return list
end

-- Try what a message offers, and everything nearer. Return how many values were tried.
local function try(what, r, world, params, message, offer, with_step)
  local name, tried = offer[1], 0
  local now = name == "world" and world or params[name] or offer[3] or 1
  local function with(value)
    if name == "world" then return refusal(r, value, params, with_step) end
    local changed = {}
    for key, old in pairs(params) do changed[key] = old end
    changed[name] = value
    return refusal(r, world, changed, with_step)
  end
  local below, above
  for _, value in ipairs(offer[2]) do
    assert.are_not.equal(now, value, what .. message)
    if value < now then below = value else above = value end
    local said = with(value)
    -- another reason may be behind this one, which then is the next to be told
    assert.is_true(said == nil or template(said) ~= template(message), ("%s%s: %s %d is offered, and refused: %s"):format(what, message, name, value, said))
    tried = tried + 1
  end
  for value = (below or 0) + 1, (above or 3 * math.max(now, 16)) - 1 do
    if value ~= now then
      local said = with(value)
      assert.is_truthy(said, ("%s%s: %s %d is nearer, and accepted"):format(what, message, name, value))
    end
  end
  return tried
end

local function shown(world, params)
  local words = {}
  for key, value in pairs(params) do words[#words + 1] = ("%s=%s"):format(key, value) end
  table.sort(words)
  return ("seed %d, --world %d %s: "):format(seed, world, table.concat(words, " "))
end

-- Parameters of kind size by their names, those of a bundled step apart.
local function sizes_of(r, name)
  local own, of_step, by_name = {}, {}, {}
  for _, p in ipairs(r:info().params) do
    local is_size = p.kind == "size" or p.kind == "index" and p.default == "1" -- 0 counts as 1
    if is_size and not (skipped[name] or {})[p.name] then
      local list = ("heads kv_heads hidden ffn seq layers experts topk micro_batch global_batch interleave vocab moe_ffn"):find("%f[%w_]" .. p.name
        .. "%f[^%w_]") and name ~= "llama" and of_step or own
      list[#list + 1] = p.name
      by_name[p.name] = p.name
      for _, alias in ipairs(p.aliases) do by_name[alias] = p.name end
    end
  end
  return own, of_step, function(word) return by_name[word] or by_name[(dims[name] or {})[word] or ""] end
end

local model_sizes = { -- in llama's parameters
  num_attention_heads = function() return math.random(24) end, num_key_value_heads = function() return math.random(8) end,
}

for _, name in ipairs(mg.recipes()) do
  if name ~= "jax_mesh" and name ~= "deepspeed_topology" then -- whose sizes are in lists
    it(name .. " offers values that it accepts, the nearest ones", function()
      math.randomseed(seed)
      local r, tried = mg.load(name), 0
      local own, _, parameter = sizes_of(r, name)
      for _ = 1, cases do
        local world, params = math.random(48), {}
        for key, value in pairs(fixed[name] or {}) do params[key] = value end
        for _, size in ipairs(own) do
          if name == "llama" and #size > 4 then
            if model_sizes[size] and math.random(2) == 1 then params[size] = model_sizes[size]() end
          elseif math.random(#own > 6 and 4 or 2) == 1 then
            params[size] = math.random(math.random(2) == 1 and 4 or 16)
          end
        end
        local message = refusal(r, world, params)
        for _, offer in ipairs(message and offers(message, parameter) or {}) do
          tried = tried + try(shown(world, params), r, world, params, message, offer)
        end
      end
      assert.is_true(tried >= 10, name .. ": only " .. tried .. " values were offered")
    end)
  end
end

local refused_kinds = { megatron = { "heads", "kv_heads", "layers", "seq", "topk", "ffn", "vocab", "global_batch" },
                        picotron = { "heads", "kv_heads", "seq", "ffn", "vocab", "global_batch" },
                        torchtitan = { "heads", "kv_heads", "seq", "ffn", "vocab", "global_batch" } }

for name, kinds_of in pairs(refused_kinds) do
  it("the step of " .. name .. " offers values that it accepts, the nearest ones", function()
    math.randomseed(seed)
    local r, tried, kinds = mg.load(name), 0, {}
    local _, _, parameter = sizes_of(r, name)
    local short = { megatron = { tp = "tensor_model_parallel_size", pp = "pipeline_model_parallel_size", cp = "context_parallel_size" },
                    picotron = { tp = "tp_size", pp = "pp_size", cp = "cp_size" }, torchtitan = { tp = "tp", pp = "pp", cp = "cp" } }
    for _ = 1, cases do
      local tp, pp, cp = math.random(8), name == "torchtitan" and 1 or math.random(3), math.random(2)
      local params = { [short[name].tp] = tp, [short[name].pp] = pp, [short[name].cp] = cp, hidden = 96 * math.random(3),
                       heads = math.random(3) == 1 and math.random(96) or tp * math.random(4), layers = math.random(2) == 1 and math.random(12) or pp * 2,
                       seq = math.random(2) == 1 and math.random(400) or tp * cp * 12, sequence_parallel = math.random(2) == 1 }
      if name == "picotron" then params.sequence_parallel = nil end
      if math.random(6) == 1 then params.hidden = math.random(400) end
      params.vocab = math.random(3) == 1 and math.random(400) or tp * 96
      if math.random(4) == 1 then params.global_batch, params.micro_batch = math.random(12), math.random(3) end
      if math.random(2) == 1 then params.kv_heads = math.random(math.random(2) == 1 and 4 or 24) end
      if name == "megatron" and math.random(4) == 1 then
        params.experts, params.topk = math.random(8), math.random(10)
        if cp > 1 then params.expert_model_parallel_size, params.expert_tensor_parallel_size = cp, tp end
      end
      if math.random(4) == 1 then params.ffn = math.random(400) end
      local world = tp * pp * cp
      local message = refusal(r, world, params, true)
      for _, offer in ipairs(message and offers(message, parameter) or {}) do
        tried = tried + try(shown(world, params), r, world, params, message, offer, true)
        kinds[offer[1]] = true
      end
    end
    for _, kind in ipairs(kinds_of) do assert.is_true(kinds[kind] or false, kind .. " was never refused") end
    assert.is_true(tried >= 10)
  end)
end

-- Verbs: a text that makes a family or a tensor of n, the number that it refuses.
local verbs = {
  bundle = { "t.x = g 'dp':bundle(p.n)", function(p) return p.a end },
  unit = { "t.x = tensor { axes = { { 'x', p.a * p.b + p.c } }, type = 'u8', cut = { x = { 'dp', unit = p.n, parts = { p.a * p.b, p.c } } }, over = g }",
           function(p) return p.a * p.b + p.c end },
  copies = { "t.x = tensor { axes = { { 'x', p.b } }, type = 'u8', cut = { x = { 'n', copies = true } }, over = grid(world:window(0, p.n), 'n', { n = p.n }) }",
             function(p) return p.a * p.c end },
}

for name, verb in pairs(verbs) do
  it("a refused " .. name .. " offers values that it accepts, the nearest ones", function()
    math.randomseed(seed)
    local path = os.tmpname() .. ".lua"
    local f = assert(io.open(path, "w"))
    f:write("return recipe { idle = 'allow', params = { a = 1, b = 1, c = 1, n = 1 }, build = function(world, p)\n"
      .. "local g, t = grid(world, 'dp-tp', { tp = p.a, dp = fill }), topology(world)\nt.dp = g 'dp'\n" .. verb[1] .. "\nreturn t end }"):close()
    local r, tried = mg.load(path), 0
    for _ = 1, cases do
      local p = { a = math.random(24), b = math.random(12), c = math.random(12) }
      p.n = math.random(30)
      local world = p.a * p.c
      local message = refusal(r, world, p)
      local values = message and message:match "; nearest: (%d[%d or]*)"
      if values then
        local of = {}
        for value in values:gmatch "%d+" do of[#of + 1] = tonumber(value) end
        if name ~= "copies" or math.max(p.n, of[#of]) <= world then
          tried = tried + try(shown(world, p), r, world, p, message, { "n", of })
        end
      end
    end
    os.remove(path)
    assert.is_true(tried >= 10, name .. " " .. tried)
  end)
end
