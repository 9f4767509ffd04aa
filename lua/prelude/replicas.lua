-- SPDX-License-Identifier: MIT
--
-- For steps.transformer: the parameters of Megatron-core, their buckets, and the calls over replicas that reduce
-- gradients and gather weights (megatron/core/distributed). The comments name files of megatron/core, which are the
-- same in 0.16.1 and 0.19.2.

local model = ...

-- Divide parameters, from the last to the first, into buckets, each of which ends with the parameter that brings it to
-- `limit` elements (nil: no limit). If `to` is given, for the distributed optimizer, parameters begin at multiples of
-- 64, buckets end at multiples of `to`, and a shared embedding has a bucket of its own:
-- distributed/param_and_grad_buffer.py, _ParamAndGradBuffer.
local function cut(parameters, limit, to)
  local list, at, now = {}, 0, nil
  local function up(n, of) return (n + of - 1) // of * of end
  local function close()
    if to then at = up(at, to) end
    if now then now.size, now, list[#list + 1] = at - now.from, nil, now end
  end
  for i = #parameters, 1, -1 do
    local p = parameters[i]
    if p.alone and to then close() end
    if to then at = up(at, 64) end
    now = now or { from = at, parameters = {} }
    now.parameters[#now.parameters + 1] = p
    at = at + p.size
    if p.alone and to or limit and at - now.from >= limit then close() end
  end
  close()
  return list
end

-- Return the parameters of a chunk in two lists, `dense` and `expert`, in the order in which modules register them.
-- Also return `whole`, the number of elements that are not cut by tp and whose gradients are summed over tp. With
-- sequence parallelism these are norms, biases after matrices cut by rows, the router, and the first matrices of latent
-- attention; without sequence parallelism, only norms of queries and keys. Parameters that a module uses together have
-- one key.
local function parameters_of(x, chunk)
  local v, h, tp, layer = x.v, x.v.hidden, x.tp, nil
  local dense, whole = {}, 0
  local expert = x.apart and {} or dense -- with ep 1 experts count as dense ("allreduce" in tensor_parallel/layers.py)
  local ffn, moe_ffn, matrices, qkv = v.ffn, v.moe_ffn, v.gated and 2 or 1, v.queries + v.keys_values
  local function add(list, key, n)
    list[#list + 1] = { key = key, size = n, layer = layer }
  end
  local function bias(list, key, n) if v.bias then add(list, key, n) end end
  local function row_bias(key, list)
    bias(list or dense, key, h)
    whole = whole + (v.bias and x.sp and h or 0)
  end
  local function norm(key, n, is_summed)
    for _ = 1, v.norm == "layer" and 2 or 1 do
      add(dense, key, n or h)
      whole = whole + ((x.sp or is_summed) and (n or h) or 0)
    end
  end
  local deeper = x.is_last(chunk) and v.mtp_num_layers or 0
  if x.is_first(chunk) or deeper > 0 then -- models/common/embeddings/language_model_embedding.py
    add(dense, "word", v.vocab // tp * h)
    dense[1].alone = (v.tied or v.mtp_num_layers > 0) and x.pp > 1
    if v.positions == "learned" then add(dense, "positions", v.seq * h) end
  end
  local function latent(l) -- transformer/multi_latent_attention.py
    add(dense, "proj", v.heads * l.value * h // tp)
    row_bias "proj.bias"
    local function narrow(key, n)
      if n and v.qk_norm then norm(key, n, l.is_cut and key == "q_up" and tp > 1) end
    end
    for k, up in ipairs(l.ups) do
      local down = l.downs[#l.downs - #l.ups + k]
      if down then
        add(dense, down.key, down.size // (l.is_cut and tp or 1))
        whole = whole + (x.sp and not l.is_cut and down.size or 0)
      end
      if not l.is_cut then narrow(up.key, up.norm) end
      add(dense, up.key, up.size // tp)
    end
    for _, up in ipairs(l.is_cut and l.ups or {}) do narrow(up.key, up.norm) end
  end
  local function add_layer(i)
    norm "norm" -- transformer/transformer_layer.py
    if v.latent then
      latent(v.latent)
    else -- transformer/attention.py
      add(dense, "proj", h * v.queries // tp)
      row_bias "proj.bias"
      add(dense, "qkv", h * qkv // tp)
      bias(dense, "qkv", qkv // tp)
      if v.qk_norm then norm("qk", v.head, true) norm("qk", v.head, true) end
    end
    norm "norm2"
    if v.has_experts(i) then -- transformer/moe: router.py, experts.py, shared_experts.py
      add(dense, "router", v.experts * h)
      bias(dense, "router", v.experts)
      whole = whole + (x.sp and v.experts * (h + (v.bias and 1 or 0)) or 0)
      for _ = 1, v.experts // x.ep do
        add(expert, "experts", h * moe_ffn * matrices // x.etp)
        bias(expert, "experts", moe_ffn * matrices // x.etp)
        add(expert, "experts", moe_ffn * h // x.etp)
        row_bias("experts", expert)
      end
      if v.shared_ffn then
        add(dense, "shared1", h * v.shared_ffn * matrices // tp)
        add(dense, "shared2", v.shared_ffn * h // tp)
      end
    else -- transformer/mlp.py
      add(dense, "fc1", h * ffn * matrices // tp)
      bias(dense, "fc1", ffn * matrices // tp)
      add(dense, "fc2", ffn * h // tp)
      row_bias "fc2.bias"
    end
  end
  for i = x.begin(chunk), x.begin(chunk) + x.layers_of(chunk) - 1 do
    layer = i - x.begin(chunk)
    add_layer(i)
  end
  layer = nil
  if x.has_norm(chunk) then norm "last norm" end
  for i = v.layers, v.layers + deeper - 1 do -- transformer/multi_token_prediction.py
    layer = i - x.begin(chunk)
    norm "join norm"
    norm "join norm"
    add(dense, "join", 2 * h * h // tp)
    add_layer(i)
    norm "last norm"
  end
  layer = nil
  if x.is_last(chunk) and (not x.is_first(chunk) or not v.tied) then -- models/gpt/gpt_model.py
    add(dense, "head", v.vocab // tp * h)
    dense[#dense].alone = v.tied and v.mtp_num_layers == 0 and x.pp > 1
  end
  return { dense = dense, expert = x.apart and expert or {} }, whole
end

-- Return the numbers of the rank's parameters (dense, expert, whole), and functions that make its calls over replicas.
-- x is the table that transformer.lua passes.
local function new_replicas(x)
  local s, v, group, size, travel, sharded = x.s, x.v, x.group, x.size, x.travel, x.sharded
  local several = sharded and x.instances > 1
  local roles = { dense = several and "shards" or "dp", expert = several and "expert_shards" or "expert_dp" }
  local out, chunk = { whole = 0, dense = 0, expert = 0 }, {}

  -- Return the parameters and buckets of a chunk. A bucket counts in `left` the parameters that it waits for. Buckets
  -- have a limit only in the first chunk of the first stage. All buckets of one kind in a later chunk of a stage are
  -- reduced together (DDP's disable_bucketing). The gradients of the first layer in a bucket are ready last, so only
  -- such a layer starts calls; `apart` has these layers.
  local function describe(c)
    local parameters, whole = parameters_of(x, c)
    local one = { parameters = parameters, buckets = {}, of = {}, apart = {}, whole = whole, dense = 0, expert = 0 }
    local cuts = x.is_first(c) and v.overlap.gradients
    local limit = cuts and (v.bucket or math.max(40000000, 1000000 * x.replicas)) or nil
    for _, kind in ipairs { "dense", "expert" } do
      for _, p in ipairs(parameters[kind]) do one[kind] = one[kind] + p.size end
      local role, last = roles[kind], nil
      local to = sharded and 128 // model.gcd(128, size(role)) * size(role) or nil
      for _, part in ipairs(cut(parameters[kind], limit, to)) do
        if c == 0 or not last then
          last = { role = role, sizes = {}, after = last, left = 0, parameters = {} }
          table.insert(one.buckets, last)
        end
        table.insert(last.sizes, part.size)
        table.move(part.parameters, 1, #part.parameters, #last.parameters + 1, last.parameters)
        local layer = part.parameters[#part.parameters].layer
        if layer then one.apart[layer] = true end
      end
    end
    for _, bucket in ipairs(travel ~= s and one.buckets or {}) do -- only for calls that overlap with computes
      for _, p in ipairs(bucket.parameters) do
        if not p.layer or one.apart[p.layer] then
          local key = (p.layer and x.begin(c) + p.layer or "") .. p.key
          one.of[key] = one.of[key] or {}
          table.insert(one.of[key], bucket)
          bucket.left = bucket.left + 1
        end
      end
    end
    return one
  end
  for c = 0, x.chunks - 1 do
    local one = travel == s and chunk[x.like[c]] or describe(c) -- with overlap, each chunk has counts of its own
    chunk[c] = one
    for _, what in ipairs { "whole", "dense", "expert" } do out[what] = out[what] + one[what] end
  end
  function out.is_apart(c, i) return chunk[c].apart[i - x.begin(c)] end

  -- Make the calls of a bucket, one for each size in it: out.reduce sums the gradients over the replicas, out.gather
  -- gathers the new weights (start_grad_sync, start_param_sync).
  local function each(bucket, on, over, op, width)
    for _, n in ipairs(over and bucket.sizes or {}) do on[op](on, over, n * width) end
  end
  function out.reduce(bucket, on)
    each(bucket, on, group(bucket.role), sharded and "reduce_scatter" or "all_reduce", v.grad)
    for _, n in ipairs(several and bucket.sizes or {}) do
      on:all_reduce(group "instances", n * v.grad // size(bucket.role))
    end
  end
  function out.gather(bucket, on) each(bucket, on, group(bucket.role), "all_gather", v.width) end
  function out.each_bucket(body)
    for c = 0, x.chunks - 1 do
      for _, bucket in ipairs(chunk[c].buckets) do body(bucket) end
    end
  end

  -- Return a function to call before a module uses its parameters. It waits until the bucket of these parameters is
  -- gathered, and starts to gather the next bucket: distributed/distributed_data_parallel.py, _make_forward_pre_hook.
  function out.gathering(c)
    local function start(bucket)
      if bucket.started then return end
      out.gather(bucket, travel)
      bucket.started, bucket.event = true, group(bucket.role) and travel:event()
    end
    return function(key)
      local list = chunk[c].of[key] or {}
      for i = #list, 1, -1 do -- the first parameters are in the last bucket
        local bucket = list[i]
        if not bucket.waited then
          start(bucket)
          bucket.waited = true
          if bucket.event then s:wait(bucket.event) end
          if bucket.after then start(bucket.after) end
        end
      end
    end
  end
  -- Return a function to call when the gradients of a module are ready. If a bucket waits for no others, it reduces the
  -- bucket: _make_backward_post_hook.
  function out.reducing(c)
    return function(key)
      for _, bucket in ipairs(chunk[c].of[key] or {}) do
        bucket.left = bucket.left - 1
        if bucket.left == 0 then
          if group(bucket.role) then travel:wait(s:event()) end
          out.reduce(bucket, travel)
        end
      end
    end
  end

  -- ZeRO 3: call body(shard) for the parameters of layer i that are sharded over dp, then for those over expert_dp.
  function out.each_shard(c, i, body)
    for _, kind in ipairs { "dense", "expert" } do
      local n = 0
      for _, p in ipairs(chunk[c].parameters[kind]) do n = n + (p.layer == i - x.begin(c) and p.size or 0) end
      if n > 0 and group(roles[kind]) then body { role = roles[kind], sizes = { n } } end
    end
  end
  return out
end

return new_replicas, parameters_of
