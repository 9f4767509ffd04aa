-- SPDX-License-Identifier: MIT
--
-- steps.transformer: one training step of a transformer with tensor, sequence, pipeline, context, expert and data
-- parallelism. Sources of the formulas:
--   [M]  Narayanan et al. 2021, arXiv 2104.04473: flops of a layer (section 5.1), the schedules (section 2.2)
--   [K]  Korthikanti et al. 2022, arXiv 2205.05198: activation memory (section 4), sequence parallelism (4.2.2)
--   [Z]  Rajbhandari et al. 2020, arXiv 1910.02054: what ZeRO shards, and its bytes (sections 5 and 7)
--   [R]  Liu et al. 2023, arXiv 2310.01889: ring attention, which sends keys and values around
--   [G]  Lepikhin et al. 2020, arXiv 2006.16668: two all-to-alls for each layer of experts
--   [B]  Qi et al. 2024, arXiv 2401.10241: ZB-H1, which delays the gradients of weights
--   Megatron-core: tensor_parallel/layers.py (calls over tp), pipeline_parallel/schedules.py (their order over pp)

local core, shared, arithmetic = ...

local bytes_of = { fp8 = 1, bf16 = 2, fp16 = 2, fp32 = 4 }
local kinds = { recompute = { none = 1, selective = 1, full = 1 },
                schedule = { ["1f1b"] = 1, gpipe = 1, zero_bubble = 1 }, weight_type = bytes_of, grad_type = bytes_of }
local usual = { layers = 32, hidden = 4096, heads = 32, vocab = 51200, seq = 2048, micro_batch = 1,
                recompute = "none", sequence_parallel = false, interleave = 1, schedule = "1f1b", zero = 0,
                overlap = false, weight_type = "bf16", grad_type = "fp32" }
local optional = { "global_batch", "experts", "kv_heads", "ffn", "moe_ffn", "topk" }

-- Return the values: those given, the recipe's defaults, then the usual ones.
local function read(p, defaults, refuse)
  local v = {}
  local function take(name)
    v[name] = p[name]
    if v[name] == nil then v[name] = defaults[name] end
    if v[name] == nil then v[name] = usual[name] end
  end
  for name in shared.sorted_pairs(usual) do take(name) end
  for _, name in ipairs(optional) do take(name) end
  for name, known in shared.sorted_pairs(kinds) do
    if not known[v[name]] then core.unknown(name .. " of steps.transformer", shared.word(v[name]), core.keys(known)) end
  end
  if v.experts then v.topk = v.topk or math.min(2, v.experts) end
  if v.zero > 3 then refuse("zero is 0 to 3, not %d; nearest is 3", v.zero) end
  return v
end

-- Return the groups by role; one of a single rank counts as none, as nothing travels over it.
local function groups_of(s, families)
  local g, size, position = {}, {}, {}
  for role, names in shared.sorted_pairs(families) do
    local group
    for _, name in ipairs(type(names) == "table" and names or { names or nil }) do
      if not group and s:has(name) then group = s[name] end
    end
    size[role], position[role] = group and group.size or 1, 0
    if size[role] > 1 then g[role] = group end
  end
  if g.pp then position.pp = g.pp.position end
  return g, size, position
end

local function multiple(refuse, what, n, of, words)
  if n % of ~= 0 then
    local below = n // of * of
    refuse("%s %d is no multiple of %s, %d; nearest: %s%d", what, n, words, of, below > 0 and below .. " or " or "",
      below + of)
  end
end

-- Refuse sizes of the model that its trainers refuse: ranks of tp have whole heads, and as many each; a head of keys
-- and values is on one rank, or on neighbours as copies; the tokens of a sample are cut evenly, over cp into twice as
-- many pieces as ranks, so that causal attention is balanced.
local function check_model(v, tp, cp, refuse)
  local heads, kv, hidden = v.heads, v.kv_heads, v.hidden
  local function suits(n) return n % tp == 0 and n % (kv or 1) == 0 end
  local function refuse_heads(why, of)
    local near = arithmetic.nearest(heads, hidden, suits)
      or arithmetic.nearest(heads, hidden, function(n) return n % tp == 0 end)
    refuse("heads %d %s, %d%s", heads, why, of, near and "; nearest: " .. near or "")
  end
  if hidden % heads ~= 0 then refuse_heads("does not divide hidden", hidden) end
  if heads % tp ~= 0 then refuse_heads("is no multiple of tp", tp) end
  kv = kv or heads
  local function shares(n) return n % tp == 0 or tp % n == 0 end
  if heads % kv ~= 0 or not shares(kv) then
    refuse("kv_heads %d %s; nearest: %s", kv, heads % kv ~= 0 and "does not divide heads, " .. heads
      or "neither divides tp nor is a multiple of it, " .. tp, arithmetic.nearest(kv, heads, shares))
  end
  if not v.experts then multiple(refuse, "ffn", v.ffn or 4 * hidden, tp, "tp") end
  local by, words = 1, {}
  if cp > 1 then by, words = 2 * cp, { "2", "cp" } end
  if v.sequence_parallel and tp > 1 then
    if cp > 1 and tp % 2 == 0 then by, words = cp, { "cp" } end -- tp has the 2
    by, words[#words + 1] = by * tp, "tp"
  end
  multiple(refuse, "seq", v.seq, by, table.concat(words, " x "))
  if v.experts and v.topk > v.experts then
    refuse("topk %d is more than the %d experts; nearest is %d", v.topk, v.experts, v.experts)
  end
end

return function(s, p, families, defaults, where)
  local function refuse(message, ...) core.raise_at(where, string.format("steps.transformer: " .. message, ...)) end
  local v = read(p, defaults, refuse)
  local g, size, position = groups_of(s, families)
  local tp, pp, cp, ep = size.tp, size.pp, size.cp, size.ep
  local stage, chunks = position.pp, v.interleave
  multiple(refuse, "layers", v.layers, pp * chunks, chunks > 1 and "pp x interleave" or "pp")
  if chunks > 1 and (pp == 1 or v.schedule ~= "1f1b") then
    refuse("interleave %d needs pp of 2 or more and the schedule 1f1b", chunks)
  end
  local replicas = s.world // (tp * pp * cp)
  local samples = v.global_batch or 4 * pp * replicas * v.micro_batch
  multiple(refuse, "global_batch", samples, replicas * v.micro_batch * (chunks > 1 and pp or 1),
    chunks > 1 and "replicas x micro_batch x pp" or "replicas x micro_batch")
  local microbatches = samples // (replicas * v.micro_batch)
  local layers = v.layers // (pp * chunks) -- of a chunk
  if v.experts then multiple(refuse, "experts", v.experts, ep, "ep") end
  check_model(v, tp, cp, refuse)
  v.kv_heads, v.ffn = v.kv_heads or v.heads, v.ffn or 4 * v.hidden
  v.moe_ffn = v.moe_ffn or v.ffn

  local width, grad = bytes_of[v.weight_type], bytes_of[v.grad_type]
  local b, q, h = v.micro_batch, v.seq // cp, v.hidden
  local cut = v.sequence_parallel and tp or 1
  local act, kv = b * q * h * width, 2 * b * q * (h * v.kv_heads // v.heads) // tp * width
  local ffn = v.experts and v.moe_ffn * v.topk or v.ffn

  -- Flops of a layer forward on this rank: projections, attention over all tokens, feed-forward [M, for equal heads].
  local core_flops = 4 * b * q * v.seq * h // tp
  local flops = (2 * b * q * h * (2 * h + 2 * (h * v.kv_heads // v.heads)) + 4 * b * q * h * ffn) // tp + core_flops
  local again = v.recompute == "full" and flops or v.recompute == "selective" and core_flops or 0

  -- Weights of a layer on this rank: attention and feed-forward; experts are cut over ep.
  local dense = (2 * h * h + 2 * h * (h * v.kv_heads // v.heads) + (v.experts and 0 or 2 * h * v.ffn)) // tp
  local expert = v.experts and 2 * h * v.moe_ffn * (v.experts // ep) // tp or 0
  local ends = (stage == 0 or stage == pp - 1) and h * v.vocab // tp or 0
  local all_dense, all_expert = dense * layers * chunks + ends, expert * layers * chunks

  -- Bytes of activations of a layer for a microbatch, of 16 bits [K, equations 1 to 4, and 2sbh if all is recomputed].
  local sbh, scores = b * q * h, 5 * v.heads * v.seq
  local kept = v.recompute == "full" and 2 * sbh // cut
    or v.sequence_parallel and (34 * sbh + (v.recompute == "none" and sbh * scores // h or 0)) // tp
    or 10 * sbh + (24 * sbh + (v.recompute == "none" and sbh * scores // h or 0)) // tp

  local travel = v.overlap and s:on "data" or s
  local function together() if v.overlap then s:wait "data" end end
  local function after_computes() if v.overlap then travel:wait(s:event()) end end -- gradients travel once they exist

  -- Calls over tp around a matrix that is cut by columns and the next one by rows: all-reduces, or with the sequence
  -- cut an all-gather and a reduce-scatter [K]; backward gathers the input of the first again, and the gradient of the
  -- second's output (layers.py).
  local function over_tp(times, backward)
    if not g.tp then return end
    s:loop(times, function()
      if not v.sequence_parallel then
        s:all_reduce(g.tp, act)
      else
        s:all_gather(g.tp, act)
        if backward then s:all_gather(g.tp, act) end
        s:reduce_scatter(g.tp, act)
      end
    end)
  end
  local function around_ring(bytes)
    if not g.cp then return end
    s:loop(cp - 1, function() s:sendrecv(g.cp, g.cp:next "wrap", g.cp:prev "wrap", bytes) end)
  end
  local function to_experts()
    if v.experts and g.ep then s:loop(2, function() s:all_to_all(g.ep, act // cut * v.topk) end) end
  end
  -- ZeRO's third stage gathers the weights of a layer before they are used [Z, section 7.2.2].
  local function gather()
    if v.zero < 3 then return end
    if g.dp then travel:all_gather(g.dp, dense * width) end
    if g.expert_dp and expert > 0 then travel:all_gather(g.expert_dp, expert * width) end
    if g.dp or g.expert_dp and expert > 0 then together() end
  end
  local function scatter(bytes_dense, bytes_expert)
    after_computes()
    if g.dp and bytes_dense > 0 then travel:reduce_scatter(g.dp, bytes_dense * grad) end
    if g.expert_dp and bytes_expert > 0 then travel:reduce_scatter(g.expert_dp, bytes_expert * grad) end
  end

  local function forward()
    s:mark "forward"
    s:alloc("activations", kept * layers)
    s:loop(layers, function()
      gather()
      around_ring(kv)
      s:compute { name = "forward", flops = flops }
      over_tp(2)
      to_experts()
    end)
  end
  local split = v.schedule == "zero_bubble" -- gradients of weights apart from those of inputs [B]
  local function weights() s:compute { name = "weights", flops = flops * layers } end
  local function backward(later)
    s:mark "backward"
    s:loop(layers, function()
      gather()
      if again > 0 then s:compute { name = "recompute", flops = again } end
      if v.recompute == "full" then over_tp(2) to_experts() end
      around_ring(2 * kv)
      to_experts()
      s:compute { name = "backward", flops = split and flops or 2 * flops }
      over_tp(2, true)
      if v.zero == 3 then scatter(dense, expert) end
    end)
    if split and not later then weights() end
    s:free "activations"
  end

  -- The pipeline. A message has the activations between two layers.
  local line, message = g.pp, act // cut
  local first, last = stage == 0, stage == pp - 1
  local function up() if not last then s:send(line, stage + 1, message) end end
  local function from_below() if not first then s:recv(line, stage - 1, message) end end
  local function down() if not first then s:send(line, stage - 1, message) end end
  local function from_above() if not last then s:recv(line, stage + 1, message) end end
  local function both(a, c) s:group(function() a() c() end) end

  local schedules = {}
  function schedules.gpipe()
    s:loop(microbatches, function() from_below() forward() up() end)
    s:loop(microbatches, function() from_above() backward() down() end)
  end

  -- One forward, one backward [M]; as forward_backward_pipelining_without_interleaving.
  schedules["1f1b"] = function()
    local warm = math.min(pp - 1 - stage, microbatches)
    local steady, late = microbatches - warm, split and math.min(stage, microbatches) or 0
    s:loop(warm, function() from_below() forward() up() end)
    if steady > 0 then from_below() end
    local function one(later)
      forward()
      if not last then both(up, from_above) end
      backward(later)
    end
    -- ZB-H1: the first stages' worth of gradients of weights waits for the bubble at the end [B, section 2.3]
    for i = 1, math.min(late, steady - 1) do
      one(i <= late)
      if not first then both(down, from_below) end
    end
    s:loop(math.max(steady - 1 - late, 0), function()
      one()
      if not first then both(down, from_below) end
    end)
    if steady > 0 then one(late >= steady) down() end
    s:loop(warm, function() from_above() backward() down() end)
    s:loop(late, weights)
  end
  schedules.zero_bubble = schedules["1f1b"]

  -- Several chunks of layers on a stage; as forward_backward_pipelining_with_interleaving, whose messages go around:
  -- what the last stage makes of a chunk, the first one takes for the next.
  function schedules.interleaved()
    local total, round = microbatches * chunks, pp * chunks
    local warm = math.min((pp - stage - 1) * 2 + (chunks - 1) * pp, total)
    if microbatches == pp then warm = total end
    local function chunk(k, is_forward)
      local id = k % round // pp
      return is_forward and id or chunks - 1 - id
    end
    local next, prev = (stage + 1) % pp, (stage - 1) % pp
    local function exchange(t)
      if not (t.up or t.down or t.above or t.below) then return end
      s:group(function()
        if t.up then s:send(line, next, message) end
        if t.below then s:recv(line, prev, message) end
        if t.down then s:send(line, prev, message) end
        if t.above then s:recv(line, next, message) end
      end)
    end
    local function sends_up(k) return not (last and chunk(k, true) == chunks - 1) end
    local function sends_down(k) return not (first and chunk(k, false) == 0) end
    if not first then exchange { below = true } end
    for k = 0, warm - 1 do
      local takes = k < total - 1 and not (first and chunk(k + 1, true) == 0)
      forward()
      exchange { up = sends_up(k), below = takes, above = k == warm - 1 and warm < total and not last }
    end
    for k = 0, total - warm - 1 do
      local ahead = k + warm
      forward()
      backward()
      -- the first stage takes what the last one makes pp - 1 microbatches behind it, and the last what the first does
      local takes = k < total - warm - 1
      if first and takes then
        takes = chunk(ahead - (pp - 1), true) ~= chunks - 1
      end
      local given = true
      if last then given = chunk(k - (pp - 1), false) ~= 0 end
      exchange { up = sends_up(ahead), down = sends_down(k), below = takes, above = given }
    end
    if warm == total and not last then exchange { above = true } end
    for k = total - warm, total - 1 do
      backward()
      local given = k < total - 1
      if last and given then given = chunk(k + 1, false) ~= chunks - 1 end
      exchange { down = sends_down(k), above = given }
    end
  end

  -- Memory that is there all the time: weights, gradients, and for Adam 12 bytes a weight [Z, section 3.1].
  local d, e = size.dp, size.expert_dp
  local function held(each, from)
    local cut_dense, cut_expert = v.zero >= from and d or 1, v.zero >= from and e or 1
    return all_dense * each // cut_dense + all_expert * each // cut_expert
  end
  s:alloc("weights", held(width, 3))
  s:alloc("gradients", held(grad, 2))
  s:alloc("optimizer", held(12, 1))

  if pp == 1 then
    s:loop(microbatches, function() forward() backward() end)
  elseif chunks > 1 then
    schedules.interleaved()
  else
    schedules[v.schedule]()
  end

  -- Gradients over the replicas: an all-reduce, or with ZeRO a reduce-scatter, and the new weights back [Z, section 7].
  s:mark "optimizer"
  if v.zero == 0 then
    after_computes()
    if g.dp then travel:all_reduce(g.dp, all_dense * grad) end
    if g.expert_dp and all_expert > 0 then travel:all_reduce(g.expert_dp, all_expert * grad) end
  elseif v.zero < 3 then
    scatter(all_dense, all_expert)
    if g.dp then travel:all_gather(g.dp, all_dense * width) end
    if g.expert_dp and all_expert > 0 then travel:all_gather(g.expert_dp, all_expert * width) end
  end
  if v.overlap and (g.dp or g.expert_dp and all_expert > 0) then s:wait "data" end
  s:compute { name = "optimizer", bytes = held(12, 1) }
end
