-- SPDX-License-Identifier: MIT
--
-- The passes and messages of a pipeline, in the order of its schedule. Sources:
--   [M]  Narayanan et al. 2021, arXiv 2104.04473, section 2.2; Megatron-core 0.19 and 0.16,
--        pipeline_parallel/schedules.py
--   [P]  picotron 59714b1, pipeline_parallel/pipeline_parallel.py: the same orders, 1f1b and afab (gpipe)
--   [B]  Qi et al. 2024, arXiv 2401.10241: ZB-H1, which delays the gradients of weights

local model = ...

-- Run the pipeline that t describes. t.line.send(position), .recv(position) and .together(function) make its messages;
-- t.forward(k, chunk) and t.backward(k, chunk) make the passes of microbatch k. If there is t.weights, t.backward
-- leaves out the gradients of weights, which t.weights() computes, and t.beside(messages, computes) makes messages
-- while computes() runs. t.apart lists, sorted, the microbatches whose passes differ from the others. t.like[chunk] is
-- the first chunk whose passes make the same calls as those of `chunk`; without t.like, all chunks make the same calls.
return function(s, t)
  local stage, pp, microbatches, chunks, line, apart = t.stage, t.pp, t.microbatches, t.chunks or 1, t.line, t.apart
  local like = t.like or {}
  -- Equal passes add equal entries to the step, except for microbatches in `apart`. So run one of them, and repeat its
  -- entries.
  local is_apart = {}
  for _, k in ipairs(apart) do is_apart[k] = true end
  local function passes(pass)
    local once = model.once(s)
    return function(k, chunk)
      if is_apart[k] then return pass(k, chunk) end
      once(like[chunk] or 0, pass, k, chunk)
    end
  end
  local forward, backward = passes(t.forward), passes(t.backward)
  local first, last = stage == 0, stage == pp - 1
  local function to_above() if not last then line.send(stage + 1) end end
  local function from_below() if not first then line.recv(stage - 1) end end
  local function to_below() if not first then line.send(stage - 1) end end
  local function from_above() if not last then line.recv(stage + 1) end end
  local function both(a, c) line.together(function() a() c() end) end

  -- Return the rounds that model.each must not put into a loop, because they run one of the passes in `given`. Round r
  -- runs the forward pass r + forth and the backward pass r + back; if one of the two is nil, rounds have no such pass.
  -- Include the round `more`, if it is given.
  local function alone(given, forth, back, more)
    local list = { more }
    for _, k in ipairs(given) do list[#list + 1], list[#list + 2] = k - (forth or back), k - (back or forth) end
    table.sort(list)
    return list
  end

  local schedules = {}
  function schedules.gpipe()
    model.each(s, 0, microbatches - 1, apart, function(k) from_below() forward(k, 0) to_above() end)
    model.each(s, 0, microbatches - 1, apart, function(k) from_above() backward(k, 0) to_below() end)
  end

  -- One forward pass, then one backward pass: forward_backward_pipelining_without_interleaving [M].
  schedules["1f1b"] = function()
    local warm = math.min(pp - 1 - stage, microbatches)
    local steady = microbatches - warm
    local late = t.weights and math.min(stage, steady) or 0 -- microbatches with delayed gradients of weights
    model.each(s, 0, warm - 1, apart, function(k) from_below() forward(k, 0) to_above() end)
    if steady > 0 then from_below() end
    local function one(k)
      forward(k + warm, 0)
      if not last then both(to_above, from_above) end
      backward(k, 0)
    end
    local function next_round() if not first then both(to_below, from_below) end end
    -- ZB-H1 delays the first microbatches' gradients of weights to the idle time at the end [B, section 2.3]
    local function after(messages, k)
      if t.weights and k >= late then t.beside(messages, t.weights) else messages() end
    end
    local lead = math.max(math.min(late, steady - 1), 0)
    for k = 0, lead - 1 do
      one(k)
      next_round()
    end
    model.each(s, lead, steady - 2, alone(apart, warm, 0), function(k)
      one(k)
      after(next_round, k)
    end)
    if steady > 0 then
      one(steady - 1)
      after(to_below, steady - 1)
    end
    model.each(s, steady, microbatches - 1, apart, function(k)
      from_above()
      backward(k, 0)
      after(to_below, k)
    end)
    if late > 0 then s:loop(late, t.weights) end
  end
  schedules.zero_bubble = schedules["1f1b"]

  -- Several chunks of layers on a stage: forward_backward_pipelining_with_interleaving [M]. Messages go around the
  -- stages: the last stage sends the result of a chunk to the first stage, which uses it for its next chunk.
  function schedules.interleaved()
    local total, round = microbatches * chunks, pp * chunks
    local warm = math.min((pp - stage - 1) * 2 + (chunks - 1) * pp, total)
    local differ = false
    for c = 0, chunks - 1 do differ = differ or like[c] > 0 end
    local function chunk(k, is_forward)
      local id = k % round // pp
      return is_forward and id or chunks - 1 - id
    end
    local function pass(one, k, is_forward) one(k // round * pp + k % pp, chunk(k, is_forward)) end
    local next, prev = (stage + 1) % pp, (stage - 1) % pp
    -- Send and receive in a batch. With t.one_by_one make one call after the other, in the order of _p2p_ops
    -- (p2p_communication.py): even stages send first, odd stages receive first.
    local function exchange(up, below, down, above)
      if not (up or below or down or above) then return end
      local late = t.one_by_one and stage % 2 == 1
      local function all()
        if up and not late then line.send(next) end
        if below then line.recv(prev) end
        if up and late then line.send(next) end
        if down and not late then line.send(prev) end
        if above then line.recv(next) end
        if down and late then line.send(prev) end
      end
      if t.one_by_one then all() else line.together(all) end
    end
    local function sends_up(k) return not (last and chunk(k, true) == chunks - 1) end
    local function sends_down(k) return not (first and chunk(k, false) == 0) end
    -- Each phase (warming, steady, cooling) has a function that returns whether the stage, after the passes of round k,
    -- sends up, receives from below, sends down, receives from above. In the steady phase, a stage in the middle does
    -- all four. In the forward pass the first stage receives what the last stage made pp - 1 rounds before; in the
    -- backward pass the last stage receives what the first stage made pp - 1 rounds before.
    local rest = total - warm
    local function warming(k)
      return sends_up(k), k < total - 1 and not (first and chunk(k + 1, true) == 0)
    end
    local function steady(k)
      local takes, given = k < rest - 1, true
      if first and takes then takes = chunk(k + warm - (pp - 1), true) ~= chunks - 1 end
      if last then given = chunk(k - (pp - 1), false) ~= 0 end
      return sends_up(k + warm), takes, sends_down(k), given
    end
    local function cooling(k)
      local given = k < total - 1
      if last and given then given = chunk(k + 1, false) ~= chunks - 1 end
      return false, false, sends_down(k), given
    end
    local passes_apart = {}
    for _, m in ipairs(apart) do
      for c = 0, chunks - 1 do passes_apart[#passes_apart + 1] = m // pp * round + c * pp + m % pp end
    end
    -- Call body(k) for the rounds of a phase; equal rounds become loops. The last round stands alone.
    local function each(from, to, forth, back, messages, body)
      local alike
      if differ then
        -- Return the distance to the next round in which this pass, or the pass after it, is of another chunk.
        local function left(k, distance)
          local at = distance and (k + distance) % pp or 0
          return at == pp - 1 and 1 or pp - 1 - at
        end
        function alike(k)
          local key = forth and like[chunk(k + forth, true)] or 0
          if back then key = key * chunks + like[chunk(k + back, false)] end
          local up, below, down, above = messages(k)
          key = key << 4 | (up and 8 or 0) | (below and 4 or 0) | (down and 2 or 0) | (above and 1 or 0)
          return key, k + math.min(left(k, forth), left(k, back))
        end
      end
      model.each(s, from, to, alone(passes_apart, forth, back, to), body, alike, round)
    end
    if not first then exchange(false, true) end
    each(0, warm - 1, 0, nil, warming, function(k)
      local up, below = warming(k)
      local turns = k == warm - 1 and warm < total and not last
      pass(forward, k, true)
      exchange(up, below, false, turns and not t.one_by_one)
      if t.one_by_one then exchange(false, false, false, turns) end
    end)
    each(0, rest - 1, warm, 0, steady, function(k)
      local up, below, down, above = steady(k)
      pass(forward, k + warm, true)
      if t.one_by_one then
        exchange(up, below)
        up, below = false, false
      end
      pass(backward, k, false)
      exchange(up, below, down, above)
    end)
    if warm == total and not last then exchange(false, false, false, true) end
    each(rest, total - 1, nil, 0, cooling, function(k)
      pass(backward, k, false)
      exchange(cooling(k))
    end)
  end

  if pp == 1 then
    model.each(s, 0, microbatches - 1, apart, function(k) forward(k, 0) backward(k, 0) end)
  else
    schedules[chunks > 1 and "interleaved" or t.schedule]()
  end
end
