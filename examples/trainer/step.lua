-- SPDX-License-Identifier: MIT
--
-- What travels in a step of the trainer, in double precision and with its default sizes (CONFIG_INIT, model.h): the
-- calls of parallel.c in their order, in the words of src/step/README.md. layout.lua imports this file.
-- tests/lua/trainer_spec.lua compares the step with the calls that MPI gets.

local c = { layers = 4, width = 32, heads = 4, hidden = 64, seq = 32, experts = 8, moe_every = 2, batch = 16,
            vocab = 32 }
local REAL, INT = 8, 4

-- A send starts together with the receive that follows it, if no call comes between them. (The trainer's own sends do
-- not wait at all. Only the interleaved schedule needs that: its step is proved only with --rules mpi --eager 16384.)
local function messages(s)
  local waiting
  local function flush()
    if waiting then s:send(s.pp, waiting.to, waiting.bytes) end
    waiting = nil
  end
  local function send(to, bytes)
    flush()
    waiting = { to = to, bytes = bytes }
  end
  local function receive(from, bytes)
    local sent = waiting
    waiting = nil
    if not sent then return s:recv(s.pp, from, bytes) end
    s:group(function()
      s:send(s.pp, sent.to, sent.bytes)
      s:recv(s.pp, from, bytes)
    end)
  end
  return flush, send, receive
end

-- Add the buckets in which gradients are summed over the ranks that share the parameters, from the last parameter to
-- the first. A bucket ends before the parameter that would make it too large, and starts when the gradients from `from`
-- on are final. `each`: bytes of the shards of a rank.
local function cut(buckets, over, params, most)
  local one = { values = 0, each = 0 }
  if over.all.size == 1 then return end
  for i = #params, 1, -1 do
    local p = params[i]
    if p.over == over then
      if one.values > 0 and one.values + p.values > most // 8 then
        buckets[#buckets + 1] = one
        one = { values = 0, each = 0 }
      end
      one.over, one.from, one.values = over, i, one.values + p.values
      one.each = one.each + (p.values + over.shard.size - 1) // over.shard.size * 8
    end
  end
  if one.over then buckets[#buckets + 1] = one end
end

local function step(s, p, policy)
  local tp, pp, ep = s.tp.size, s.pp.size, s.ep.size
  local samples = c.batch // s.dp.size
  local schedule = policy.schedule(s, { samples = samples, ranks = pp }, p)
  local microbatches, chunks = schedule.microbatches, schedule.chunks
  local stages, total = pp * chunks, microbatches * chunks
  local each = policy.layers(s, { layers = c.layers, stages = stages }, p)
  local T = samples // microbatches * (c.seq // s.cp.size) -- tokens of a microbatch on this rank
  local x = T * c.width * REAL
  local flush, send, receive = messages(s)

  -- before[stage]: the number of layers before a stage; stages count from 1
  local before = {}
  for stage = 1, stages do before[stage] = stage == 1 and 0 or before[stage - 1] + each[stage - 1] end
  local function has_experts(layer) return layer % c.moe_every == 0 end

  local function over(operation, group, bytes)
    flush()
    if group.size > 1 then s[operation](s, group, bytes) end
  end

  -- Tokens go to the ranks with their experts, and come back. How many tokens a rank gets depends on the data.
  local function experts(forward)
    if forward then over("all_to_all", s.ep, c.experts // ep * ep * INT) end -- numbers of rows
    over("all_to_all", s.ep, x)
    over("all_to_all", s.ep, x)
    over("all_reduce", s.tp, x)
  end
  local function mlp(layer, forward)
    if has_experts(layer) then return experts(forward) end
    over("all_reduce", s.tp, x)
  end
  local function attention(forward)
    local keys = T * 2 * (c.width // tp) * s.cp.size * REAL -- keys and values of all positions
    over(forward and "all_gather" or "reduce_scatter", s.cp, keys)
    over("all_reduce", s.tp, x)
  end

  -- This rank's parameters in the order of weights.c, with their sizes and the ranks that share them; and the indices
  -- of the first parameters of a layer's attention and MLP.
  local D, H, V, rows = c.width, c.hidden // tp, c.vocab // tp, c.width // tp
  local params, attention_of, mlp_of = {}, {}, {}
  local dense = { all = s.dp_cp, shard = s.shard, copies = s.copies }
  local expert = { all = s.expert_data, shard = s.expert_shard, copies = s.expert_copies }
  local function declare(shared, ...)
    for _, v in ipairs { ... } do params[#params + 1] = { over = shared, values = v } end
  end
  local first, last = s.pp.position == 0, s.pp.position == pp - 1
  if first or last then declare(dense, V * D) end
  if first then declare(dense, c.seq * D) end
  for stage = s.pp.position + 1, stages, pp do
    for layer = before[stage] + 1, before[stage] + each[stage] do
      attention_of[layer] = #params + 1
      declare(dense, D, D, rows * D, rows * D, rows * D, D * rows)
      mlp_of[layer] = #params + 1
      declare(dense, D, D)
      if has_experts(layer) then
        declare(dense, c.experts * D)
        for _ = 1, 2 * (c.experts // ep) do declare(expert, H * D) end
      else
        declare(dense, H * D, D * H)
      end
    end
  end
  if last then declare(dense, D, D) end
  local buckets, started = {}, 0
  cut(buckets, dense, params, policy.bucket_bytes(s, { ranks = dense.all.size }, p))
  cut(buckets, expert, params, policy.bucket_bytes(s, { ranks = expert.all.size }, p))
  table.sort(buckets, function(a, b) return a.from > b.from end)
  -- The shards are summed over their copies when the next bucket starts.
  local grads = s:on "grads"
  local function go_on()
    local b = buckets[started]
    if b and b.over.shard.size > 1 and b.over.copies.size > 1 then grads:all_reduce(b.over.copies, b.each) end
  end
  -- The gradients of parameters from `from` on are final: start the sums of their buckets.
  local function start_buckets(from)
    while started < #buckets and buckets[started + 1].from >= from do
      flush()
      go_on()
      started = started + 1
      local b = buckets[started]
      local n = b.over.shard.size
      if n > 1 then grads:reduce_scatter(b.over.shard, n * b.each) else grads:all_reduce(b.over.copies, b.each) end
    end
  end
  -- The step begins by gathering whole weights.
  for _, b in ipairs(buckets) do
    if b.over.shard.size > 1 then s:all_gather(b.over.shard, b.over.shard.size * b.each) end
  end

  local previous, following = (s.pp.position - 1) % pp, (s.pp.position + 1) % pp
  -- Return the stage of this rank's n-th pass.
  local function stage_of(n, back)
    local turn = n // pp % chunks
    return (back and chunks - 1 - turn or turn) * pp + s.pp.position + 1
  end
  local function forward(n)
    local stage = stage_of(n, false)
    if stage == 1 then over("all_reduce", s.tp, x) else receive(previous, x) end -- the embedding
    for i = 1, each[stage] do
      attention(true)
      mlp(before[stage] + i, true)
    end
    if stage < stages then return send(following, x) end
    over("all_reduce", s.tp, T * REAL) -- the output: largest scores; then sums and targets
    over("all_reduce", s.tp, 2 * T * 8)
  end
  local function backward(n)
    local stage = stage_of(n, true)
    if stage == stages then over("all_reduce", s.tp, x) else receive(following, x) end
    local ends = n // pp // chunks * pp + n % pp == microbatches - 1
    for layer = before[stage] + each[stage], before[stage] + 1, -1 do
      mlp(layer, false)
      if ends then start_buckets(mlp_of[layer]) end
      attention(false)
      if ends then start_buckets(attention_of[layer]) end
    end
    if stage > 1 then send(previous, x) end
  end

  local early = pp - 1 - s.pp.position
  if chunks > 1 then early = 2 * early + (chunks - 1) * pp end
  if schedule.order == "gpipe" then early = total end
  early = math.min(early, total)
  for n = 0, early - 1 do forward(n) end
  for n = early, total - 1 do
    forward(n)
    backward(n - early)
  end
  for n = total - early, total - 1 do backward(n) end
  flush()

  start_buckets(1)
  go_on()
  s:wait "grads"
  if s.embedding then -- this rank's slice
    local slice, n = (V * D + s.shard.size - 1) // s.shard.size, V * D
    if n % slice > 0 then n = math.max(0, math.min(slice, n - s.shard.position * slice)) else n = slice end
    over("all_reduce", s.embedding, n * REAL)
  end
  over("all_reduce", s.dp_cp, 8) -- the loss
  if pp > 1 then s:broadcast(s.pp, 8, { root = pp - 1 }) end
  over("all_reduce", s.job, 8) -- whether all ranks have their gradients, before the first one updates
end

return { step = step }
