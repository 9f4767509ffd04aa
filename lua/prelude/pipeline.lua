-- SPDX-License-Identifier: MIT
--
-- The order of a pipeline's passes and messages. Sources:
--   [M]  Narayanan et al. 2021, arXiv 2104.04473, section 2.2; Megatron-core 0.19 and 0.16, in pipeline_parallel
--        schedules.py
--   [P]  picotron 59714b1, pipeline_parallel/pipeline_parallel.py: the same orders, 1f1b and afab (gpipe)
--   [B]  Qi et al. 2024, arXiv 2401.10241: ZB-H1, which delays the gradients of weights

local model = ...

-- Run a pipeline. `line` has send(position), recv(position) and together(function), which make its messages;
-- forward(k, chunk) and backward(k, chunk) the passes of microbatch k. weights(), if it is there, computes gradients of
-- weights, which backward then leaves out, and beside(messages, computes) makes messages next to it. `apart` are the
-- microbatches whose passes differ from the others, sorted.
return function(s, t)
  local stage, pp, microbatches, chunks, line, apart = t.stage, t.pp, t.microbatches, t.chunks or 1, t.line, t.apart
  local forward, backward = t.forward, t.backward
  local first, last = stage == 0, stage == pp - 1
  local function up() if not last then line.send(stage + 1) end end
  local function from_below() if not first then line.recv(stage - 1) end end
  local function down() if not first then line.send(stage - 1) end end
  local function from_above() if not last then line.recv(stage + 1) end end
  local function both(a, c) line.together(function() a() c() end) end

  -- The rounds that stand alone where round k has the forward pass of microbatch k + ahead and the backward pass of k.
  local function rounds(ahead)
    local list = {}
    for _, k in ipairs(apart) do list[#list + 1], list[#list + 2] = k - ahead, ahead > 0 and k or nil end
    table.sort(list)
    return list
  end

  local schedules = {}
  function schedules.gpipe()
    model.each(s, 0, microbatches - 1, apart, function(k) from_below() forward(k, 0) up() end)
    model.each(s, 0, microbatches - 1, apart, function(k) from_above() backward(k, 0) down() end)
  end

  -- One forward, one backward; as forward_backward_pipelining_without_interleaving [M].
  schedules["1f1b"] = function()
    local warm = math.min(pp - 1 - stage, microbatches)
    local steady = microbatches - warm
    local late = t.weights and math.min(stage, steady) or 0 -- microbatches whose gradients of weights wait
    model.each(s, 0, warm - 1, apart, function(k) from_below() forward(k, 0) up() end)
    if steady > 0 then from_below() end
    local function one(k)
      forward(k + warm, 0)
      if not last then both(up, from_above) end
      backward(k, 0)
    end
    local function next_round() if not first then both(down, from_below) end end
    -- ZB-H1: the gradients of weights of the first microbatches wait for the bubble at the end [B, section 2.3]
    local function after(messages, k)
      if t.weights and k >= late then t.beside(messages, t.weights) else messages() end
    end
    local lead = math.max(math.min(late, steady - 1), 0)
    for k = 0, lead - 1 do
      one(k)
      next_round()
    end
    model.each(s, lead, steady - 2, rounds(warm), function(k)
      one(k)
      after(next_round, k)
    end)
    if steady > 0 then
      one(steady - 1)
      after(down, steady - 1)
    end
    model.each(s, steady, microbatches - 1, apart, function(k)
      from_above()
      backward(k, 0)
      after(down, k)
    end)
    if late > 0 then s:loop(late, t.weights) end
  end
  schedules.zero_bubble = schedules["1f1b"]

  -- Several chunks of layers on a stage; as forward_backward_pipelining_with_interleaving [M], whose messages go
  -- around: what the last stage makes of a chunk, the first one takes for the next.
  function schedules.interleaved()
    local total, round = microbatches * chunks, pp * chunks
    local warm = math.min((pp - stage - 1) * 2 + (chunks - 1) * pp, total)
    if microbatches == pp then warm = total end
    local function chunk(k, is_forward)
      local id = k % round // pp
      return is_forward and id or chunks - 1 - id
    end
    local function pass(one, k, is_forward) one(k // round * pp + k % pp, chunk(k, is_forward)) end
    local next, prev = (stage + 1) % pp, (stage - 1) % pp
    -- Send and receive next to each other; with overlap one by one, in the order of _p2p_ops (p2p_communication.py),
    -- in which even stages send first.
    local function exchange(x)
      if not (x.up or x.down or x.above or x.below) then return end
      local list = { { x.up, line.send, next }, { x.below, line.recv, prev }, { x.down, line.send, prev },
                     { x.above, line.recv, next } }
      if t.one_by_one and stage % 2 == 1 then list = { list[2], list[1], list[4], list[3] } end
      local function all()
        for _, m in ipairs(list) do
          if m[1] then m[2](m[3]) end
        end
      end
      if t.one_by_one then all() else line.together(all) end
    end
    local function sends_up(k) return not (last and chunk(k, true) == chunks - 1) end
    local function sends_down(k) return not (first and chunk(k, false) == 0) end
    if not first then exchange { below = true } end
    for k = 0, warm - 1 do
      local takes = k < total - 1 and not (first and chunk(k + 1, true) == 0)
      local turns = k == warm - 1 and warm < total and not last
      pass(forward, k, true)
      exchange { up = sends_up(k), below = takes, above = turns and not t.one_by_one }
      if t.one_by_one then exchange { above = turns } end
    end
    for k = 0, total - warm - 1 do
      local ahead = k + warm
      pass(forward, ahead, true)
      -- the first stage takes what the last one makes pp - 1 microbatches behind it, and the last what the first does
      local takes = k < total - warm - 1
      if first and takes then
        takes = chunk(ahead - (pp - 1), true) ~= chunks - 1
      end
      if t.one_by_one then exchange { up = sends_up(ahead), below = takes } end
      pass(backward, k, false)
      local given = true
      if last then given = chunk(k - (pp - 1), false) ~= 0 end
      exchange { up = not t.one_by_one and sends_up(ahead), down = sends_down(k),
                 below = not t.one_by_one and takes, above = given }
    end
    if warm == total and not last then exchange { above = true } end
    for k = total - warm, total - 1 do
      pass(backward, k, false)
      local given = k < total - 1
      if last and given then given = chunk(k + 1, false) ~= chunks - 1 end
      exchange { down = sends_down(k), above = given }
    end
  end

  if pp == 1 then
    model.each(s, 0, microbatches - 1, apart, function(k) forward(k, 0) backward(k, 0) end)
  else
    schedules[chunks > 1 and "interleaved" or t.schedule]()
  end
end
