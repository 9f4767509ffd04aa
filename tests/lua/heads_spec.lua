-- SPDX-License-Identifier: MIT
--
-- Heads of attention in the recipe llama: each rank has the heads of keys and values that its heads of queries use. The
-- rows of random small models are followed to the ranks, through plans and through files. Models that cannot be cut so
-- are refused, and the sizes that the refusal offers are compared with all others.

local support = dofile "tests/lua/support.lua"
local files = dofile "tests/lua/safetensors.lua"
local mg = require "moongrid"
local json = require "dkjson"

local llama = mg.load "llama"
local seed = tonumber(os.getenv "MOONGRID_SEED") or 20261128
local cases = 2000

local forms = {
  hf = {}, fused = { names = "fused" }, phi3 = { model_type = "phi3" }, megatron = { names = "megatron" },
  qwen2 = { model_type = "qwen2" }, deepseek_v3 = { model_type = "deepseek_v3", qk_nope_head_dim = 2, qk_rope_head_dim = 1,
                                                    v_head_dim = 2, kv_lora_rank = 4 },
}
local names = { "hf", "fused", "phi3", "megatron", "qwen2", "deepseek_v3" }

local function params_of(c, tp)
  local all = { tp = tp, num_attention_heads = c.heads, num_key_value_heads = c.kv, head_dim = c.head, hidden_size = 4,
                intermediate_size = 24, vocab_size = 24, num_hidden_layers = 1 }
  for key, value in pairs(forms[c.form]) do all[key] = value end
  return all
end

-- The rows of a tensor's axis that a rank has, each as what `meaning` says of it.
local function rows(plan, tensor, rank, axis, meaning)
  local list, part = {}, plan:tensor(tensor, rank)
  for _, run in ipairs(part and part.runs[axis] or {}) do
    for i = run[1], run[1] + run[2] - 1 do list[#list + 1] = meaning(i) end
  end
  return list
end

-- The heads of which all rows are in the list; nil: a part of a head is.
local function whole_heads(list, of, size)
  local count, heads = {}, {}
  for _, row in ipairs(list) do
    if row.of == of then count[row.head] = (count[row.head] or 0) + 1 end
  end
  for head, n in pairs(count) do
    if n ~= size then return nil end
    heads[#heads + 1] = head
  end
  table.sort(heads)
  return heads
end

local function of_head(what, size) return function(i) return { of = what, head = i // size } end end

-- The heads of queries, keys, values and of the output's columns that a rank has.
local function held(plan, c, rank)
  local at, out = "model.layers.0.self_attn.", nil
  local group, list = c.heads // c.kv, {}
  local function take(tensor, axis, meaning)
    local more = rows(plan, tensor, rank, axis, meaning)
    table.move(more, 1, #more, #list + 1, list)
  end
  if c.form == "deepseek_v3" then
    take(at .. "q_proj.weight", 1, of_head("q", 3))
    take(at .. "kv_b_proj.weight", 1, of_head("k", 4))
    out = rows(plan, at .. "o_proj.weight", rank, 2, of_head("o", 2))
    return whole_heads(list, "q", 3), whole_heads(list, "k", 4), whole_heads(list, "k", 4), whole_heads(out, "o", 2)
  elseif c.form == "megatron" then
    at = "decoder.layers.0.self_attention."
    take(at .. "linear_qkv.weight", 1, function(i) -- by groups: their queries, the keys, the values
      local g, row = i // ((group + 2) * c.head), i % ((group + 2) * c.head) // c.head
      return row < group and { of = "q", head = g * group + row } or { of = row == group and "k" or "v", head = g }
    end)
    out = rows(plan, at .. "linear_proj.weight", rank, 2, of_head("o", c.head))
  elseif c.form == "fused" or c.form == "phi3" then
    take(at .. "qkv_proj.weight", 1, function(i)
      local head = i // c.head
      if head < c.heads then return { of = "q", head = head } end
      return { of = head < c.heads + c.kv and "k" or "v", head = (head - c.heads) % c.kv }
    end)
  else
    take(at .. "q_proj.weight", 1, of_head("q", c.head))
    take(at .. "k_proj.weight", 1, of_head("k", c.head))
    take(at .. "v_proj.weight", 1, of_head("v", c.head))
    if c.form == "qwen2" then -- biases are cut as their weights
      for letter in ("qkv"):gmatch "." do
        assert.same(plan:tensor(at .. letter .. "_proj.weight", rank).runs[1], plan:tensor(at .. letter .. "_proj.bias", rank).runs[1])
      end
    end
  end
  out = out or rows(plan, at .. "o_proj.weight", rank, 2, of_head("o", c.head))
  return whole_heads(list, "q", c.head), whole_heads(list, "k", c.head), whole_heads(list, "v", c.head), whole_heads(out, "o", c.head)
end

local function shown(c, tp)
  return ("seed %d: %s, %d heads, %d of keys and values, head_dim %d, tp %d, %d ranks"):format(seed, c.form, c.heads, c.kv, c.head,
    tp, c.world)
end

local function check(plan, c)
  local had, group = {}, c.form == "deepseek_v3" and 1 or c.heads // c.kv
  for rank = 0, c.world - 1 do
    local q, k, v, o = held(plan, c, rank)
    local what = shown(c, c.tp) .. ", rank " .. rank
    assert.is_table(q and k and v and o, what .. ": a part of a head")
    assert.same(q, o, what)
    assert.same(k, v, what)
    assert.is_true(#q > 0, what .. ": no head")
    local has = {}
    for _, head in ipairs(k) do has[head] = true end
    for _, head in ipairs(q) do
      had[head] = true
      assert.is_true(has[head // group] or false, ("%s: head %d of queries lacks head %d of keys"):format(what, head, head // group))
    end
  end
  for head = 0, c.heads - 1 do assert.is_true(had[head] or false, shown(c, c.tp) .. ": no rank has head " .. head) end
end

-- Whether a cut of whole groups of heads exists, in which ranks of one tensor have as many rows.
local function can_be_cut(c, tp)
  if c.form == "deepseek_v3" then return tp <= c.heads end
  if c.kv % tp == 0 then return true end
  if c.form ~= "hf" and c.form ~= "qwen2" then return false end
  return tp <= c.kv or (tp % c.kv == 0 and c.heads // c.kv % (tp // c.kv) == 0)
end

local function nearest(c)
  local below, above
  for tp = 1, c.world do
    if c.world % tp == 0 and can_be_cut(c, tp) then
      if tp < c.tp then below = tp end
      if tp > c.tp then above = above or tp end
    end
  end
  return below and above and below .. " or " .. above or tostring(below or above)
end

it("are cut together, or refused with the nearest sizes, in 2,000 random models", function()
  math.randomseed(seed)
  local n = { taken = 0, refused = 0, copies = 0, uneven = 0 }
  for _ = 1, cases do
    local c = { form = names[math.random(#names)], kv = math.random(10), head = math.random(3), tp = math.random(12) }
    if math.random(4) == 1 then c.tp = c.kv * math.random(4) end
    c.heads = c.kv * math.random(6)
    c.world = c.tp * math.random(2)
    local ok, plan = pcall(llama.plan, llama, c.world, params_of(c, c.tp))
    assert.are.equal(can_be_cut(c, c.tp), ok, shown(c, c.tp) .. ": " .. tostring(plan))
    if ok then
      check(plan, c)
      n.taken = n.taken + 1
      if c.tp > c.kv and c.form ~= "deepseek_v3" then n.copies = n.copies + 1 end
      if c.tp < c.kv and c.kv % c.tp > 0 then n.uneven = n.uneven + 1 end
    else
      n.refused = n.refused + 1
      local near = plan:match "; ([%d or]+) would do"
      assert.are.equal(nearest(c), near, shown(c, c.tp) .. ": " .. plan)
      for tp in near:gmatch "%d+" do
        assert.is_true(pcall(llama.plan, llama, c.world, params_of(c, tonumber(tp))), shown(c, tp) .. " is offered, and refused")
      end
    end
  end
  for what, many in pairs(n) do assert.is_true(many > 50, what .. " " .. many) end
end)

it("arrive in files with the values of the original, and come back", function()
  math.randomseed(seed)
  local folder = support.folder()
  local function at(name) return folder .. "/" .. name end
  local done = 0
  while done < 8 do
    local c = { form = ({ "hf", "fused" })[done % 2 + 1], kv = math.random(5), head = math.random(3), tp = math.random(8) }
    c.heads, c.world = c.kv * math.random(4), c.tp
    if can_be_cut(c, c.tp) and c.tp > 1 and (done < 4 or c.kv % c.tp > 0 or c.form == "fused") then
      done = done + 1
      os.execute("rm -rf " .. folder .. "/*")
      local list, h = {}, c.head
      local function add(name, ...)
        local shape, elements, values = { ... }, 1, {}
        for _, size in ipairs(shape) do elements = elements * size end
        for i = 1, elements do values[i] = 10000 * #list + i end
        list[#list + 1] = { name, "F32", shape, values }
      end
      add("model.embed_tokens.weight", 24, 4) add("model.norm.weight", 4) add("lm_head.weight", 24, 4)
      local layer = "model.layers.0."
      for _, norm in ipairs { "input_layernorm", "post_attention_layernorm" } do add(layer .. norm .. ".weight", 4) end
      add(layer .. "self_attn.q_proj.weight", c.heads * h, 4) -- its values begin at 50001
      for _, name in ipairs { "k", "v" } do add(layer .. "self_attn." .. name .. "_proj.weight", c.kv * h, 4) end
      add(layer .. "self_attn.o_proj.weight", 4, c.heads * h)
      for _, name in ipairs { "gate", "up" } do add(layer .. "mlp." .. name .. "_proj.weight", 24, 4) end
      add(layer .. "mlp.down_proj.weight", 4, 24)
      os.execute("mkdir -p " .. at "hf")
      files.write(at "hf/model.safetensors", list)
      local config = params_of(c)
      config.tp, config.names, config.model_type, config.torch_dtype = nil, nil, "llama", "float32"
      local f = assert(io.open(at "hf/config.json", "w"))
      f:write(json.encode(config)):close()
      local _, err, code = support.run(("build/moongrid reshard %s --to llama tp=%d names=%s -o %s"):format(at "hf", c.tp, c.form, at "cut"))
      assert.same({ "", 0 }, { err, code }, shown(c, c.tp))
      -- what each head of queries has in its file, and the heads of keys that are there or on the rank whose copy it is
      local keys, mine = {}, {}
      for rank = 0, c.tp - 1 do
        local got = files.read(("%s/model-%05d-of-%05d.safetensors"):format(at "cut", rank + 1, c.tp))
        local function heads(name, base, size)
          local set = {}
          for i, value in ipairs(got[name] and got[name][3] or {}) do
            if i % (4 * h) == 1 or 4 * h == 1 then
              local head = (value - base - 1) // (4 * h)
              if head >= 0 and head < size then set[#set + 1] = math.tointeger(head) end
            end
          end
          return set
        end
        local name = layer .. (c.form == "fused" and "self_attn.qkv_proj.weight" or "self_attn.q_proj.weight")
        local key = c.form == "fused" and name or layer .. "self_attn.k_proj.weight"
        mine[rank] = heads(name, 50000, c.heads)
        keys[rank] = heads(key, 60000, c.kv)
        if #keys[rank] == 0 then keys[rank] = keys[rank - 1] end -- a copy of the rank before it
        local has = {}
        for _, head in ipairs(keys[rank]) do has[head] = true end
        assert.is_true(#mine[rank] > 0)
        for _, head in ipairs(mine[rank]) do assert.is_true(has[head // (c.heads // c.kv)] or false, shown(c, c.tp) .. ", rank " .. rank) end
      end
      _, err, code = support.run(("build/moongrid reshard %s --to llama --world 1 --params %s -o %s"):format(at "cut", at "hf/config.json", at "back"))
      assert.same({ "", 0 }, { err, code })
      assert.same(files.read(at "hf/model.safetensors"), files.read(at "back/model-00001-of-00001.safetensors"))
    end
  end
  os.execute("rm -rf " .. folder)
end)

it("of the models that others reported are refused", function()
  for _, case in ipairs { { 6, 2, 4, "hf", "2" }, { 14, 2, 4, "hf", "2" }, { 14, 2, 8, "hf", "2" }, { 40, 10, 4, "fused", "2" },
                          { 40, 10, 4, "phi3", "2" }, { 10, 5, 2, "fused", "1" }, { 28, 4, 8, "qwen2", "4" } } do
    local c = { heads = case[1], kv = case[2], head = 2, form = case[4], world = case[3], tp = case[3] }
    local ok, said = pcall(llama.plan, llama, c.world, params_of(c, c.tp))
    assert.is_false(ok, shown(c, c.tp))
    assert.are.equal(case[5], said:match "; ([%d or]+) would do", said)
  end
end)
