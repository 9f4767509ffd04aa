-- SPDX-License-Identifier: MIT
--
-- Functions that the bundled steps share: they read parameters, refuse sizes that trainers refuse, find groups by role,
-- count what a layer computes and stores, and make loops of which some rounds differ. Sources:
--   [M]  Narayanan et al. 2021, arXiv 2104.04473: flops of a layer (section 5.1)
--   [K]  Korthikanti et al. 2022, arXiv 2205.05198: activation memory (section 4)
--   [R]  Liu et al. 2023, arXiv 2310.01889: ring attention, which sends keys and values around
--   [Z]  Rajbhandari et al. 2020, arXiv 1910.02054: Adam holds 12 bytes a weight (section 3.1)

local core, shared, arithmetic = ...

local M = { gcd = arithmetic.gcd }

local bytes_of = { fp8 = 1, bf16 = 2, fp16 = 2, fp32 = 4 }

-- Return { a = "a", b = "b" } for the text "a b".
function M.words(text)
  local all = {}
  for word in string.gmatch(text, "%S+") do all[word] = word end
  return all
end
local types = M.words "fp8 bf16 fp16 fp32"
local common = { hidden = 4096, heads = 32, vocab = 51200, seq = 2048, micro_batch = 1, weight_type = "bf16" }

-- Return a table with the values of a step's parameters, and a function that raises an error. A value is that of p, the
-- plan's parameters; else that of `defaults`, the settings of the step in the recipe; else that of `usual`.
-- kinds[parameter] maps each accepted text to its meaning.
function M.read(name, p, defaults, own, usual, kinds, where)
  local v, known = {}, shared.joined({ weight_type = types, grad_type = types }, kinds)
  usual = shared.joined(common, usual)
  local function refuse(message, ...) core.raise_at(where, string.format("steps.%s: " .. message, name, ...)) end
  for key in shared.sorted_pairs(own) do
    v[key] = p[key]
    if v[key] == nil then v[key] = defaults[key] end
    if v[key] == nil then v[key] = usual[key] end
    local values = known[key]
    if values and v[key] ~= nil then
      if not values[v[key]] then core.unknown(key .. " of steps." .. name, shared.word(v[key]), core.keys(values)) end
      v[key] = values[v[key]]
    end
  end
  v.kv, v.width, v.grad = v.kv_heads or v.heads, bytes_of[v.weight_type], bytes_of[v.grad_type or "fp32"]
  if v.causal == nil then v.causal = true end
  v.ffn, v.head = v.ffn or 4 * v.hidden, v.head_dim or v.hidden // v.heads
  v.queries, v.keys_values = v.heads * v.head, 2 * v.kv * v.head -- elements for each token
  return v, refuse
end

-- Return two functions of a role. The first returns the role's group, or nil if there is no group or the group has only
-- this rank, so that nothing is sent. The second returns the size of the group, or 1 if there is no group.
function M.groups(s, families)
  local groups, sizes = {}, {}
  local function find(role)
    if sizes[role] then return end
    local names, group = families[role], nil
    for _, name in ipairs(type(names) == "table" and names or { names or nil }) do
      if not group and s:has(name) then group = s[name] end
    end
    sizes[role] = group and group.size or 1
    groups[role] = sizes[role] > 1 and group or nil
  end
  return function(role) find(role) return groups[role] end, function(role) find(role) return sizes[role] end
end

-- Return whether the plan has a family of a role. `names` is a name, a list of names, or false.
function M.has(s, names)
  for _, name in ipairs(type(names) == "table" and names or { names or nil }) do
    if s:has(name) then return true end
  end
  return false
end

-- Refuse n if n + plus is not a multiple of `of`. In the message, `what` says what n is, and `words` what `of` is.
function M.multiple(refuse, what, n, of, words, plus)
  local more = plus or 0
  local below = (n + more) // of * of - more
  if below ~= n then
    refuse("%s %d%s is not a multiple of %s, %d; nearest: %s%d", what, n, more > 0 and " + " .. more or "", words, of,
      below > 0 and below .. " or " or "", below + of)
  end
end

-- Refuse sizes unless tp divides the vocabulary, the heads of queries, and the heads of keys and values; without
-- head_dim, the heads divide `hidden`; and the heads of keys and values divide those of queries. With `copies`, tp may
-- be a multiple of the heads of keys and values, because several ranks may have a copy of a head.
function M.check(v, tp, refuse, copies)
  local heads, kv, hidden = v.heads, v.kv_heads, v.hidden
  local function suits(n) return n % tp == 0 and n % (kv or 1) == 0 end
  local function refuse_heads(why, of)
    local near = arithmetic.nearest(heads, hidden, suits)
      or arithmetic.nearest(heads, hidden, function(n) return n % tp == 0 end)
    refuse("heads %d %s, %d%s", heads, why, of, near and "; nearest: " .. near or "")
  end
  if tp > 1 then M.multiple(refuse, "vocab", v.vocab, tp, "tp") end
  if not v.head_dim and hidden % heads ~= 0 then refuse_heads("does not divide hidden", hidden) end
  if heads % tp ~= 0 then refuse_heads("is not a multiple of tp", tp) end
  if not kv then return end
  local function shares(n) return n % tp == 0 or copies and tp % n == 0 end
  if heads % kv ~= 0 or not shares(kv) then
    refuse("kv_heads %d %s; nearest: %s", kv, heads % kv ~= 0 and "does not divide heads, " .. heads
      or (copies and "neither divides tp nor is a multiple of it, " or "is not a multiple of tp, ") .. tp,
      arithmetic.nearest(kv, heads, shares))
  end
end

-- Return the number of microbatches of a replica. Refuse a global batch if the number is not an integer, or not a
-- multiple of `rounds`, if that is given.
function M.microbatches(v, replicas, stages, refuse, rounds)
  local each, words = replicas * v.micro_batch, "replicas x micro_batch"
  local samples = v.global_batch or 4 * stages * each
  M.multiple(refuse, "global_batch", samples, each * (rounds or 1), rounds and words .. " x pp" or words)
  return samples // each
end

-- Return the costs of a microbatch of `tokens` on one of tp ranks. With sequence parallelism, which cuts also the
-- activations between matrices, `cut` is tp, else 1. Flops of a forward pass: layer(matrices, width), of a layer with
-- so many matrices of this width in its feed-forward [M]; core, of attention among tokens; head, of the output; joined,
-- of the matrix that joins a state with the next token (multi-token prediction). Bytes: kept(recompute), of a layer's
-- activations in 16 bits; traffic, to write and read each activation once; logits. The bytes follow [K, equations 1 to
-- 4] without the scores of attention, which fused attention does not store (Dao and others 2022, arXiv 2205.14135). The
-- bytes of the feed-forward and the logits follow Megatron-LM's training/theoretical_memory_usage.py.
function M.costs(v, tp, cut, tokens)
  local h, sbh = v.hidden, tokens * v.hidden
  local projections = h * (2 * v.queries + v.keys_values)
  local per_pair = 2 * v.queries + 2 * v.queries -- flops: a query with a key, then the score with a value
  if v.latent then
    projections, per_pair = h * v.heads * v.latent.value, 2 * v.heads * (v.latent.query + v.latent.value)
    for _, up in ipairs(v.latent.ups) do projections = projections + up.size end
    local times = v.latent.is_cut and 1 or tp // cut -- without sequence parallelism each rank makes all latents
    for _, down in ipairs(v.latent.downs) do projections = projections + times * down.size end
  end
  local inner = 8 * sbh + 4 * tokens * v.ffn
  local stored = cut > 1 and (10 * sbh + inner) // tp or 10 * sbh + inner // tp
  local cost = { core = tokens * v.seq * per_pair // (v.causal and 2 or 1) // tp, head = 2 * sbh * v.vocab // tp,
                 traffic = 2 * stored, logits = 4 * tokens * (h + v.vocab) // tp,
                 joined = 4 * sbh * h // tp // (v.fp8 and 2 or 1) }
  function cost.layer(matrices, width)
    return 2 * tokens * (projections + h * matrices * width) // tp // (v.fp8 and 2 or 1) + cost.core
  end
  function cost.kept(recompute) return recompute == "full" and 2 * sbh // cut or stored end
  return cost
end

-- Send `bytes` of keys and values around the ring of cp [R]; if there is no ring, send nothing.
function M.around_ring(s, ring, bytes)
  if ring then
    s:loop(ring.size - 1, function() s:sendrecv(ring, ring:next "wrap", ring:prev "wrap", bytes) end)
  end
end

-- Allocate the memory that a rank holds for the whole step: weights, gradients and Adam's state.
function M.hold(s, weights, gradients, optimizer)
  s:alloc("weights", weights)
  s:alloc("gradients", gradients)
  s:alloc("optimizer", optimizer)
end

-- Return a function once(key, body, ...). With a new key it calls body(...). With a key that it had before, it adds the
-- entries of that first call to the step again.
function M.once(s)
  local from, to = {}, {}
  return function(key, body, ...)
    if to[key] then return s:again(from[key], to[key]) end
    from[key] = s:again(0, 0)
    body(...)
    to[key] = s:again(0, 0)
  end
end

-- Make the rounds from `from` to `to` by body(k), where k is a round. Consecutive rounds that make the same calls
-- become one loop, for which body is called once; but rounds in the sorted list `apart` stand alone. alike(k) returns
-- the round's key (equal rounds have equal keys), and the next round whose key may differ. Keys repeat after `period`
-- rounds. Without `alike`, all rounds are equal.
function M.each(s, from, to, apart, body, alike, period)
  local function loops(k, last)
    local key, next = nil, last + 1
    if alike then key, next = alike(k) end
    while k <= last do
      local first, same = k, key
      repeat
        k = next
        if k <= last then key, next = alike(k) end
      until k > last or key ~= same
      s:loop(math.min(k, last + 1) - first, function() body(first) end)
    end
  end
  local function run(last)
    local periods = alike and (last - from + 1) // period or 0
    if periods > 1 then
      s:loop(periods, function() loops(from, from + period - 1) end)
      from = from + periods * period
    end
    loops(from, last)
  end
  for _, k in ipairs(apart) do
    if k >= from and k <= to then
      run(k - 1)
      body(k)
      from = k + 1
    end
  end
  run(to)
end

return M
