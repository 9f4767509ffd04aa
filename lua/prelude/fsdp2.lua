-- SPDX-License-Identifier: MIT
--
-- steps.fsdp2: the calls of one training step of a Llama under torch's FSDP2, with torchtitan's tensor parallelism. The
-- calls equal those that were recorded with torch 2.15 (torch/distributed/fsdp/_fully_shard): tests/golden/steps.
-- fully_shard gathers the parameters of a unit, and reduces their gradients, in one call. Each block is a unit; the
-- embedding, the last norm and the head are one more unit.

local _, _, model = ...

local kinds = { recompute = model.words "none selective full", fp8 = model.words "e4m3" }
local usual = { layers = 32, recompute = "none", grad_type = "fp32", sequence_parallel = true, reshard = true,
                zero = 3 }

local M = {}

function M.step(s, p, families, defaults, own, where)
  local v, refuse = model.read("fsdp2", p, defaults, own, usual, kinds, where)
  local group, size = model.groups(s, families)
  local tp, cp, replicas = size "tp", size "cp", size "replicate"
  for _, role in ipairs { "pp", "ep" } do
    if size(role) > 1 then
      refuse("%s %d: a step of FSDP2 with it has not been recorded, so its calls are not known; %s 1 would do", role,
        size(role), role)
    end
  end
  if v.recompute ~= "none" and tp > 1 then
    refuse("recompute %s with tp %d has not been recorded, so its calls are not known; tp 1 would do", v.recompute, tp)
  end
  if v.zero ~= 3 then refuse("zero %d: FSDP2 shards weights, which is zero 3; leave out zero", v.zero) end
  -- The checks of torch's tensor parallelism, and of torchtitan's decoder.py, trainer.py and context_parallel/api.py.
  local h, w, ffn, kv = v.hidden, v.width, v.ffn, v.keys_values // 2
  model.check(v, tp, refuse, false)
  model.multiple(refuse, "ffn", ffn, tp, "tp")
  local by, words = 1, {}
  if cp > 1 then by, words = 2 * cp, { "2 x cp" } end
  if tp > 1 and v.sequence_parallel then by, words[#words + 1] = by * tp, "tp" end
  model.multiple(refuse, "seq", v.seq, by, table.concat(words, " x "))
  if cp > 1 and p.version == "main" and p.spmd_backend == "partial_dtensor" then
    refuse("cp %d needs spmd_backend=spmd_types, not partial_dtensor", cp)
  end
  local microbatches = model.microbatches(v, s.world // (tp * cp), 1, refuse)

  -- Weights are sharded over the ranks of dp_shard x cp, the role `shard`. If the plan has no family for this role, the
  -- family of the role `whole` has the same groups if there are no replicas, and that of `dp_shard` if cp is 1.
  local role = model.has(s, families.shard) and "shard" or replicas == 1 and "whole" or "dp_shard"
  if role == "dp_shard" and cp > 1 then
    refuse("cp %d with %d replicas: the plan has no family of the ranks that shard; spmd_backend=partial_dtensor of "
      .. "version 0.3.0 has one", cp, replicas)
  end
  local shards, over, tensor = size(role), group(role), group "tp"
  if shards == 1 and replicas > 1 then
    refuse("%d replicas of whole models: torchtitan does not use FSDP2 there, and its calls are not known; 2 shards or "
      .. "more would do", replicas)
  end

  -- Count the elements of a unit: `size` with each matrix padded to equal rows on all ranks (_fsdp_collectives.py),
  -- `bare` without padding.
  local function padded(list)
    local n, bare = 0, 0
    for _, matrix in ipairs(list) do
      n = n + (matrix[1] + shards - 1) // shards * shards * matrix[2]
      bare = bare + matrix[1] * matrix[2]
    end
    return { size = n, bare = bare }
  end
  local block = padded { { h, 1 }, { h, 1 }, { h // tp, h }, { kv // tp, h }, { kv // tp, h }, { h, h // tp },
                         { ffn // tp, h }, { ffn // tp, h }, { h, ffn // tp } }
  local root = padded { { v.vocab // tp, h }, { h, 1 }, { v.vocab // tp, h } }
  local function gather(unit) if over then s:all_gather(over, unit.size * w) end end
  local function reduce(unit)
    if over then s:reduce_scatter(over, unit.size * v.grad) end
    if group "replicate" then s:all_reduce(group "replicate", unit.size * v.grad // shards) end
  end

  -- torch/distributed/tensor/parallel/style.py: with sequence parallelism, attention and feed-forward each gather their
  -- input and scatter their result, forward and backward. Without it, a matrix cut by rows sums its result in the
  -- forward pass, and each matrix cut by columns sums the gradient of its input in the backward pass.
  local b, q = v.micro_batch, v.seq // cp
  local act, sp = b * q * h * w, v.sequence_parallel
  local function enter() if tensor and sp then s:all_gather(tensor, act) end end
  local function leave() if tensor then s[sp and "reduce_scatter" or "all_reduce"](s, tensor, act) end end
  local function enter_back(matrices)
    if not tensor then return end
    if sp then return s:reduce_scatter(tensor, act) end
    s:loop(matrices, function() s:all_reduce(tensor, act) end)
  end
  local function norm_back() if tensor and sp then s:all_reduce(tensor, h * 4) end end
  local keys_values = b * q * v.keys_values // tp * w -- bytes sent around cp; no recording has these messages
  local cost = model.costs(v, tp, sp and tp or 1, b * q)
  local flops, kept, again = cost.layer(3, ffn), cost.kept(v.recompute), 0
  if v.recompute == "full" then
    again = flops
  elseif v.recompute == "selective" then
    -- torchtitan's distributed/activation_checkpoint.py, SelectiveAC: the backward pass computes every second product
    -- again (k, wo and w3). The input of a block, attention and the other products (q, v, w1 and w2) are kept.
    again = 2 * b * q * h * (kv + v.queries + ffn) // (v.fp8 and 2 or 1)
    kept = 2 * b * q * (2 * h + 2 * v.queries + kv + ffn)
  end
  local function forward()
    s:mark "forward"
    s:alloc("activations", kept * v.layers + cost.logits)
    gather(root)
    leave() -- the embedding
    s:loop(v.layers, function()
      gather(block)
      s:compute { name = "forward", flops = flops }
      model.around_ring(s, group "cp", keys_values)
      enter() leave() enter() leave()
    end)
    enter()
    s:compute { name = "head", flops = cost.head }
    if tensor then s:all_gather(tensor, b * q * v.vocab * w) end -- logits
  end
  local function backward()
    s:mark "backward"
    local function ahead() if v.reshard then gather(block) end end
    ahead()
    s:compute { name = "head", flops = 2 * cost.head }
    enter_back(1)
    local function one(next)
      if next then ahead() end -- gather the next block first: _fsdp_param_group.py, _backward_prefetch
      if again > 0 then s:compute { name = "recompute", flops = again } end
      s:compute { name = "backward", flops = 2 * flops }
      model.around_ring(s, group "cp", 2 * keys_values)
      enter()
      enter_back(2) -- w1, w3
      enter()
      enter_back(3) -- q, k, v
      norm_back() norm_back()
      reduce(block)
    end
    s:loop(v.layers - 1, function() one(true) end)
    one(false)
    enter() -- the embedding
    norm_back()
    reduce(root)
    s:free "activations"
  end

  local held = (block.bare * v.layers + root.bare) // shards
  model.hold(s, held * 4, held * v.grad, held * 8)
  s:loop(microbatches, function() forward() backward() end)
  s:mark "optimizer"
  if v.clip and over then s:all_reduce(over, 4 * (9 * v.layers + 3)) end -- a norm of each parameter: clip_grad_norm_
  s:compute { name = "optimizer", bytes = held * 12 }
end

return M
