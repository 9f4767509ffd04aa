-- SPDX-License-Identifier: MIT
--
-- steps.picotron: the calls of one training step of picotron (commit 59714b1), as recorded in tests/golden/steps. The
-- comments name the files of picotron/ that make the calls.

local _, _, model, run_pipeline, arithmetic = ...

local kinds = { schedule = { ["1f1b"] = "1f1b", gpipe = "gpipe", afab = "gpipe" } }
local usual = { schedule = "1f1b" }
local cap = 25 * 1024 * 1024 // 4 -- limit of a bucket's elements: data_parallel/data_parallel.py

-- The order of events in the backward pass of a layer. A number is the gradient of a parameter, by its index in norm 1,
-- norm 2, q, k, v, out, up, gate, down; "sum" is a sum over tp, and "ring" stands for the messages around cp.
local layer_back = { 9, 7, "sum", 8, "sum", 2, 6, "ring", 5, "sum", 4, "sum", 3, "sum", 1 }

local M = {}

function M.step(s, p, families, defaults, own, where)
  local v, refuse = model.read("picotron", p, defaults, own, usual, kinds, where)
  local group, size = model.groups(s, families)
  local tp, pp, cp, dp = size "tp", size "pp", size "cp", size "dp"
  local h, w, ffn = v.hidden, v.width, v.ffn
  -- The checks of model.py, tensor_parallel/tensor_parallel.py, checkpoint.py and train.py.
  model.check(v, tp, refuse, false)
  if v.head % 2 ~= 0 then
    local near = arithmetic.nearest(v.heads, h, function(n)
      return n % tp == 0 and n % (v.kv_heads or 1) == 0 and h // n % 2 == 0
    end)
    refuse("hidden %d / heads %d is odd, and rotary positions need pairs%s", h, v.heads,
      near and "; nearest heads: " .. near or "")
  end
  v.layers = v.layers or math.max(32, pp)
  if v.layers < pp - 1 then -- the last stage may have no layer
    refuse("layers %d are fewer than the %d stages before the last; nearest is %d", v.layers, pp - 1, pp - 1)
  end
  model.multiple(refuse, "ffn", ffn, tp, "tp")
  model.multiple(refuse, "seq", v.seq, cp, "cp")
  local microbatches = model.microbatches(v, dp, pp, refuse)

  -- The first stages have one layer more if pp does not divide the layers: pipeline_parallel.py, distribute_layers.
  local stage = pp > 1 and group "pp".position or 0
  local layers = v.layers // pp + (stage < v.layers % pp and 1 or 0)
  local first, last = stage == 0, stage == pp - 1
  local b, q, kv = v.micro_batch, v.seq // cp, v.keys_values // 2
  local act, tensor, ring = b * q * h * w, group "tp", group "cp"

  -- tensor_parallel/tp_communications.py: a matrix cut by rows sums its result in the forward pass; a matrix cut by
  -- columns sums the gradient of its input in the backward pass.
  local function sums(n) if tensor and n > 0 then s:loop(n, function() s:all_reduce(tensor, act) end) end end
  -- context_parallel/cp_communications.py: send the keys and values of all heads, as one batch, to the next rank.
  local function around_ring(n)
    if not ring then return end
    s:loop(n, function()
      s:group(function()
        for _ = 1, 2 do s:sendrecv(ring, ring:next "wrap", ring:prev "wrap", act // tp) end
      end)
    end)
  end

  -- Buckets of gradients are filled in the order of parameters: data_parallel/bucket.py. of[unit][i] is the bucket of
  -- the unit's i-th parameter; unit 0 is the embedding, the next are the layers, the last is norm and head.
  local buckets, held, of, waiting = {}, 0, {}, 0
  local function add(unit, ...)
    of[unit] = {}
    for i, n in ipairs { ... } do
      local now = buckets[#buckets]
      if not now or now.size + n > cap then
        now = { size = 0, left = 0 }
        buckets[#buckets + 1] = now
      end
      now.size, now.left, held, of[unit][i] = now.size + n, now.left + 1, held + n, now
    end
  end
  if first then add(0, v.vocab // tp * h) end
  for i = 1, layers do
    add(i, h, h, h * h // tp, h * kv // tp, h * kv // tp, h * h // tp, h * ffn // tp, h * ffn // tp, h * ffn // tp)
  end
  local head, norm = v.vocab // tp * h, h
  if last and pp == 1 then add(layers + 1, head, norm) end -- model.py
  if last and pp > 1 then add(layers + 1, norm, head) end -- pipeline_parallel.py
  local function flush()
    sums(waiting)
    waiting = 0
  end
  -- The gradient of a parameter is ready. When all gradients of its bucket are ready, reduce the bucket.
  local function ready(unit, i)
    local bucket = of[unit][i]
    bucket.left = bucket.left - 1
    if bucket.left > 0 or dp == 1 then return end -- with dp 1 picotron does not sum the gradients over cp
    flush()
    s:all_reduce(group "cp_dp", bucket.size * 4)
  end

  local cost = model.costs(v, tp, 1, b * q)
  local flops = cost.layer(3, ffn)
  local function forward()
    s:mark "forward"
    s:alloc("activations", cost.kept "none" * layers + (last and cost.logits or 0))
    if first then sums(1) end
    s:loop(layers, function()
      s:compute { name = "forward", flops = flops }
      around_ring(cp - 1)
      sums(2)
    end)
    if last then
      s:compute { name = "head", flops = cost.head }
      if tensor then s:all_gather(tensor, b * q * v.vocab * w) end
    end
  end
  local function backward(k)
    s:mark "backward"
    local travels = k == microbatches - 1
    local apart = travels and #buckets > 1 -- several buckets are reduced, between other calls
    if last then
      s:compute { name = "head", flops = 2 * cost.head }
      if apart then ready(layers + 1, pp > 1 and 2 or 1) end
      sums(1)
      if apart then ready(layers + 1, pp > 1 and 1 or 2) end
    end
    local function layer(unit)
      s:compute { name = "backward", flops = 2 * flops }
      for _, what in ipairs(layer_back) do
        if what == "sum" then
          waiting = waiting + 1
        elseif what == "ring" then
          flush()
          around_ring(2 * cp - 1)
        elseif unit then
          ready(unit, what)
        end
      end
      flush()
    end
    if apart then
      for i = layers, 1, -1 do layer(i) end
      if first then ready(0, 1) end
    else
      s:loop(layers, layer)
      if travels and dp > 1 then s:all_reduce(group "cp_dp", buckets[1].size * 4) end
    end
    s:free "activations"
  end

  -- pipeline_parallel/pp_communications.py: messages name no group, so they go over the default group.
  local line = { together = function(body) s:group(body) end }
  for _, op in ipairs { "send", "recv" } do
    line[op] = function(to) s[op](s, group "world", group "world":at(group "pp":at(to).rank), act) end
  end

  model.hold(s, held * w, held * 4, held * 12)
  run_pipeline(s, { stage = stage, pp = pp, microbatches = microbatches, schedule = v.schedule, line = line,
                    forward = forward, backward = backward, apart = { microbatches - 1 } })
  s:mark "optimizer"
  if last and group "cp_dp" then s:all_reduce(group "cp_dp", 4) end -- utils.py, average_loss_across_dp_cp_ranks
  s:compute { name = "optimizer", bytes = held * 12 }
end

return M
