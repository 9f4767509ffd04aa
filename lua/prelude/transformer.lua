-- SPDX-License-Identifier: MIT
--
-- steps.transformer makes the calls of one training step of Megatron-core. They equal the calls in tests/golden/steps,
-- which were recorded with 0.19.2, or with 0.16.1 for latent attention and multi-token prediction. The comments name
-- the files of megatron/core that make the calls. Compute, memory, ZeRO 2 and 3 and attention over cp were not
-- recorded; here they follow the papers that model.lua names, and
--   [Z]  Rajbhandari et al. 2020, arXiv 1910.02054: what ZeRO shards, and its bytes (sections 5 and 7)

local core, shared, model, run_pipeline = ...
local multiple, words, new_replicas, parameters_of = model.multiple, model.words, core.library("replicas", model)

local norms = { layer = "layer", rms = "rms", LayerNorm = "layer", RMSNorm = "rms" }
local positions = { learned = "learned", rope = "rope", none = "none", learned_absolute = "learned" }
local kinds = { norm = norms, positions = positions, recompute = words "none selective full",
                schedule = words "1f1b gpipe zero_bubble", transformer_impl = words "local transformer_engine",
                fp8 = words "e4m3 hybrid", dispatcher = words "alltoall allgather" }
local usual = { tied = true, gated = false, norm = "layer", positions = "learned", dispatcher = "alltoall",
                moe_every = 1, load = 1, qk_pos_emb_head_dim = 64, recompute = "none", schedule = "1f1b",
                grad_type = "fp32", mtp_num_layers = 0, transformer_impl = "transformer_engine" }

-- Apply arguments of Megatron-LM that mean the opposite of a parameter, or set a part of it; and the default of `zero`.
local function read_arguments(v, instances, refuse)
  v.zero = v.zero or instances > 1 and 1 or 0 -- only the distributed optimizer has instances
  if v.untie_embeddings_and_output_weights then v.tied = false end
  if v.disable_bias_linear then v.bias = false end
  if v.use_distributed_optimizer then v.zero = math.max(v.zero, 1) end
  local given, all = v.overlap, { gradients = v.overlap_grad_reduce, weights = v.overlap_param_gather }
  if given == true then given = { "gradients", v.zero > 0 and "weights" or nil } end
  if given and type(given) ~= "table" then given = { given } end
  for _, list in ipairs(given or {}) do
    for word in string.gmatch(tostring(list), "[^,]+") do
      if word ~= "gradients" and word ~= "weights" then
        refuse("overlap is gradients, weights, or both with a comma, not %s", shared.show(list))
      end
      all[word] = true
    end
  end
  v.overlap = all
end

-- Refuse what Megatron-core and Megatron-LM's training/arguments.py refuse. tests/lua/step_refusals_spec.lua has the
-- file and line of each check.
local function check(v, tp, pp, cp, ep, etp, refuse)
  model.check(v, tp, refuse, true)
  if v.latent and v.kv_heads and v.kv_heads ~= v.heads then
    refuse("kv_heads %d with kv_lora_rank: latent attention has no groups of queries; leave out kv_heads or "
      .. "kv_lora_rank", v.kv_heads)
  end
  for _, down in ipairs(v.latent and v.latent.is_cut and v.latent.downs or {}) do
    multiple(refuse, down.rank, down.kept, tp, "tp", down.width - down.kept)
  end
  if v.mtp_num_layers > 0 and v.positions == "learned" then
    refuse("positions learned with mtp_num_layers %d: the layers that predict more tokens have no learned ones; "
      .. "positions=rope would do", v.mtp_num_layers)
  end
  if v.mtp_num_layers > 0 and v.tied and pp > 1 and v.overlap.gradients then
    refuse("tied with mtp_num_layers %d, pp %d and overlap of gradients: the last stage has a head beside its "
      .. "embedding, without gradients, for which the overlap waits; tied=false would do", v.mtp_num_layers, pp)
  end
  if v.grad < v.width then
    refuse("grad_type %s with weight_type %s: gradients have the type of the weights, or fp32; grad_type=fp32 would do",
      v.grad_type, v.weight_type)
  end
  if v.zero > 3 then refuse("zero is 0 to 3, not %d; nearest is 3", v.zero) end
  if v.load <= 0 then refuse("load is above 0, not %.14g; 1 would do", v.load) end
  if not v.experts or v.moe_every > 1 or v.dense_layers then multiple(refuse, "ffn", v.ffn, tp, "tp") end
  local by, of = 1, {}
  if cp > 1 then by, of = 2 * cp, { "2", "cp" } end -- each rank has two pieces, to balance causal attention
  if v.sequence_parallel and tp > 1 then
    if cp > 1 and tp % 2 == 0 then by, of = cp, { "cp" } end -- tp has the factor 2
    by, of[#of + 1] = by * tp, "tp"
  end
  multiple(refuse, "seq", v.seq, by, table.concat(of, " x "))
  if v.experts then
    multiple(refuse, "experts", v.experts, ep, "ep")
    if v.topk > v.experts then
      refuse("topk %d is more than the %d experts; nearest is %d", v.topk, v.experts, v.experts)
    end
    multiple(refuse, "moe_ffn", v.moe_ffn, etp, "etp")
    if v.shared_ffn then multiple(refuse, "shared_ffn", v.shared_ffn, tp, "tp") end
    if v.bias and (etp > 1 or v.shared_ffn) then
      refuse("bias with %s: experts have biases only if etp is 1, shared experts never; bias=false would do",
        v.shared_ffn and "shared_ffn" or "experts and etp " .. etp)
    end
    if tp > 1 and not v.sequence_parallel then
      refuse("sequence_parallel is false with experts and tp %d; true would do", tp)
    end
  else
    for _, name in ipairs { "topk", "moe_ffn", "shared_ffn", "dense_layers" } do
      if v[name] then refuse("%s %d needs experts; give experts, or leave out %s", name, v[name], name) end
    end
  end
end

-- Return a table with the number of layers of each chunk of each stage, at the index chunk x pp + stage. Sources:
-- transformer/transformer_block.py, get_num_layers_to_build; for stage_layers, pipeline_parallel_layer_layout.py.
local function split_layers(v, pp, chunks, refuse)
  local of, virtual = {}, pp * chunks
  local first, last, list, counted = v.first_stage_layers, v.last_stage_layers, v.stage_layers, 0
  if v.embedding_in_split then counted = counted + 1 end
  if v.loss_in_split then counted = counted + 1 end
  if list and (first or last or counted > 0) or (first or last) and counted > 0 then
    refuse("give only stage_layers, or only first_stage_layers and last_stage_layers, or only embedding_in_split and "
      .. "loss_in_split")
  end
  if list then
    local sum = 0
    for i, n in ipairs(list) do
      if n < 0 then refuse("stage_layers has %d layers for a stage; 0 is the least", n) end
      of[i - 1], sum = n, sum + n
    end
    if #list ~= virtual then
      refuse("stage_layers has %d numbers, and there are %d stages%s", #list, virtual,
        chunks > 1 and ", pp x interleave" or "")
    end
    v.layers = v.layers or sum
    if sum ~= v.layers then refuse("stage_layers has %d layers in all, and the model has %d", sum, v.layers) end
    return of
  end
  v.layers = v.layers or (32 + virtual - 1) // virtual * virtual - counted
  if not first and not last then
    multiple(refuse, "layers", v.layers, virtual, chunks > 1 and "pp x interleave" or "pp", counted)
    for i = 0, virtual - 1 do of[i] = (v.layers + counted) // virtual end -- 1 or more
    if v.embedding_in_split then of[0] = of[0] - 1 end
    if v.loss_in_split then of[virtual - 1] = of[virtual - 1] - 1 end
    return of
  end
  if pp == 1 then refuse("first_stage_layers and last_stage_layers need pp of 2 or more") end
  if first then multiple(refuse, "first_stage_layers", first, chunks, "interleave") end
  if last then multiple(refuse, "last_stage_layers", last, chunks, "interleave") end
  local ends, stages = (first or 0) + (last or 0), pp - (first and 1 or 0) - (last and 1 or 0)
  if stages == 0 and chunks > 1 then
    refuse("first_stage_layers and last_stage_layers with interleave %d need a stage between these two; pp=3 would do",
      chunks)
  end
  local each = stages * chunks -- the layers of the other stages are a multiple of this; 0 if there are no others
  local rest = v.layers - ends
  if stages == 0 and rest ~= 0 or stages > 0 and (rest < each or rest % each ~= 0) then
    local below = ends + rest // math.max(each, 1) * each
    local near = stages == 0 and ends or rest < each and ends + each or below .. " or " .. below + each
    refuse("layers %d are not %d, those of the first and last stage, plus a multiple of %d, the other stages' chunks; "
      .. "nearest: %s", v.layers, ends, each, near)
  end
  for i = 0, virtual - 1 do
    local stage = i % pp
    of[i] = (stage == 0 and first or stage == pp - 1 and last or rest // stages) // chunks
  end
  return of
end

-- Add to v the values that follow from the parameters of the model.
local function complete(v, tp, etp)
  if v.experts then
    v.topk, v.moe_ffn = v.topk or math.min(2, v.experts), v.moe_ffn or v.ffn
    if v.sequence_parallel == nil then v.sequence_parallel = tp > 1 end
  end
  if v.bias == nil then v.bias = not (v.experts and (etp > 1 or v.shared_ffn)) end
  function v.has_experts(i) -- a layer of multi-token prediction has experts if the model's last layer has
    i = math.min(i, v.layers - 1)
    return v.experts and i >= (v.dense_layers or 0) and i % v.moe_every == 0
  end
  if not v.kv_lora_rank then return end
  local h, heads, latent = v.hidden, v.heads, v.kv_lora_rank -- multi_latent_attention.py, MLASelfAttention
  local content, value, rotated = v.qk_head_dim or v.head, v.v_head_dim or v.head, v.qk_pos_emb_head_dim
  local query = content + rotated
  if v.qk_norm == nil then v.qk_norm = true end
  -- `downs` are the matrices that make the input narrow, `ups` the matrices that make it wide again. With Transformer
  -- Engine the `downs` are whole on each rank of tp (TELinear, "duplicated"), and the norm is a part of `ups`.
  local downs, ups = {}, {}
  v.latent = { downs = downs, ups = ups, query = query, value = value, is_cut = v.transformer_impl == "local" }
  v.keys_values = heads * (query + value)
  local function pair(name, kept, rest, to)
    downs[#downs + 1] = { key = name .. "_down", size = h * (kept + rest), width = kept + rest, kept = kept,
                          rank = name .. "_lora_rank" }
    ups[#ups + 1] = { key = name .. "_up", size = kept * to, width = kept, norm = kept }
  end
  if v.q_lora_rank then
    pair("q", v.q_lora_rank, 0, heads * query)
  else
    ups[1] = { key = "q_up", size = h * heads * query, width = h }
  end
  pair("kv", latent, rotated, heads * (content + value))
end

-- Return the flops of layer i in the forward pass. Of its experts, only those that a token uses count.
local function flops_of(v, cost, i)
  local width = v.has_experts(i) and v.moe_ffn * v.topk + (v.shared_ffn or 0) or v.ffn
  return cost.layer(v.gated and 3 or 2, width) + (i >= v.layers and cost.joined or 0)
end

local M = {}

-- Return the size of the model: `parameters`; `active`, the parameters that a token uses; `flops` of a token, forward
-- and backward; and `attention`, the part of these flops that is attention among tokens.
function M.size(p, own, where)
  local v = model.read("transformer", p, {}, own, usual, kinds, where)
  if v.disable_bias_linear then v.bias = false end
  local tp = p.tensor_model_parallel_size or 1
  complete(v, tp, p.expert_tensor_parallel_size or tp)
  v.tied, v.fp8, v.layers = v.tied and not v.untie_embeddings_and_output_weights, nil, v.layers or 32
  local function whole() return true end
  local list = parameters_of({ v = v, tp = 1, pp = 1, ep = 1, etp = 1, apart = true, is_first = whole, is_last = whole,
                               has_norm = whole, begin = function() return 0 end,
                               layers_of = function() return v.layers end }, 0)
  local function sum(kind)
    local n = 0
    for _, one in ipairs(list[kind]) do n = n + one.size end
    return n
  end
  local dense, expert, cost = sum "dense", sum "expert", model.costs(v, 1, 1, 1)
  local flops, all = 3 * cost.head * (1 + v.mtp_num_layers), v.layers + v.mtp_num_layers
  for i = 0, all - 1 do flops = flops + 3 * flops_of(v, cost, i) end
  return { parameters = dense + expert, active = dense + (v.experts and expert // v.experts * v.topk or 0),
           flops = flops, attention = 3 * all * cost.core }
end

function M.step(s, p, families, defaults, own, where)
  local v, refuse = model.read("transformer", p, defaults, own, usual, kinds, where)
  local group, size = model.groups(s, families)
  read_arguments(v, size "instances", refuse)
  local tp, pp, cp, ep = size "tp", size "pp", size "cp", size "ep"
  local etp = model.has(s, families.expert_tp) and size "expert_tp" or tp
  local vpp = p.virtual_pipeline_model_parallel_size
  if vpp and v.interleave and vpp ~= v.interleave then
    refuse("interleave %d is not vpp, %d; leave out interleave or vpp", v.interleave, vpp)
  end
  local chunks = v.interleave or vpp or 1
  if chunks > 1 and (pp == 1 or v.schedule ~= "1f1b") then
    refuse("%s %d needs pp of 2 or more and the schedule 1f1b", v.interleave and "interleave" or "vpp", chunks)
  end
  if v.overlap_p2p and chunks == 1 then refuse("overlap_p2p needs interleave of 2 or more, as in schedules.py") end
  if size "instances" > 1 and v.zero == 0 then
    refuse("zero 0 has no distributed optimizer, but %d instances of it are given; zero 1 would do", size "instances")
  end
  if v.overlap.weights and v.zero == 0 then refuse("overlap of weights needs zero=1, the distributed optimizer") end
  if v.overlap.weights and v.zero == 1 and not v.overlap.gradients then
    refuse("overlap of weights needs that of gradients; overlap=gradients,weights would do")
  end
  complete(v, tp, etp)
  local virtual_layers = split_layers(v, pp, chunks, refuse)
  local dp = s.world // (tp * pp * cp)
  local microbatches = model.microbatches(v, dp, pp, refuse, chunks > 1 and pp or nil)
  check(v, tp, pp, cp, ep, etp, refuse)

  local stage = pp > 1 and group "pp".position or 0
  local sp, h, w, grad = v.sequence_parallel and tp > 1, v.hidden, v.width, v.grad
  local b, q, has_experts, deeper = v.micro_batch, v.seq // cp, v.has_experts, v.mtp_num_layers
  local cut, act = sp and tp or 1, b * q * h * w
  local function layers_of(chunk) return virtual_layers[chunk * pp + stage] end
  local function is_first(chunk) return stage == 0 and chunk == 0 end
  local function is_last(chunk) return stage == pp - 1 and chunk == chunks - 1 end
  -- begin(chunk) is the index of the chunk's first layer in the model.
  local before = { [0] = 0 }
  for i = 1, pp * chunks - 1 do before[i] = before[i - 1] + virtual_layers[i - 1] end
  local function begin(chunk) return before[chunk * pp + stage] end

  local function has_norm(chunk) -- the last norm: transformer/transformer_block.py, has_final_layernorm_in_this_stage
    if deeper == 0 then return is_last(chunk) end
    return layers_of(chunk) > 0 and begin(chunk) + layers_of(chunk) == v.layers
  end

  -- Find for each chunk the first chunk that has equal modules, and so makes the same calls.
  local first_of, like = {}, {}
  for c = 0, chunks - 1 do
    local kind = (is_first(c) and "first" or "") .. (is_last(c) and "last" or "") .. (has_norm(c) and "norm" or "")
    for i = begin(c), begin(c) + layers_of(c) - 1 do kind = kind .. (has_experts(i) and "e" or "d") end
    first_of[kind] = first_of[kind] or c
    like[c] = first_of[kind]
  end

  local sharded, instances = v.zero > 0, size "instances"
  local beside = (v.overlap.gradients or v.overlap.weights) and "data" -- the stream of calls that overlap with computes
  local travel = beside and s:on(beside) or s
  local replicas = new_replicas {
    s = s, v = v, group = group, size = size, tp = tp, pp = pp, ep = ep, etp = etp, apart = ep > 1, chunks = chunks,
    replicas = dp,
    layers_of = layers_of, begin = begin, is_first = is_first, is_last = is_last, has_norm = has_norm,
    sharded = sharded, instances = instances, travel = travel, sp = sp, like = like,
  }
  local function nothing() end
  local use, ready = nothing, nothing

  -------------------------------------------------------------------------------------------------- the model

  -- column() is a ColumnParallelLinear, whose input has `bytes`; row() is a RowParallelLinear; region() is the pair:
  -- tensor_parallel/layers.py. The backward pass gathers the input of the ColumnParallelLinear again.
  local tensor = group "tp"
  local function call(over, op, bytes) if over then s[op](s, over, bytes) end end
  local function gather(bytes) if sp then s:all_gather(tensor, bytes or act) end end
  local function sum(bytes) call(tensor, sp and "reduce_scatter" or "all_reduce", bytes or act) end
  local function column(key, bytes)
    use(key)
    gather(bytes)
  end
  local function column_back(key, bytes)
    gather(bytes)
    sum(bytes)
    ready(key)
  end
  local function row(key)
    use(key)
    sum()
  end
  local function row_back(key)
    ready(key .. ".bias")
    gather()
    ready(key)
  end
  local function region(first, second)
    column(first)
    row(second)
  end
  local function region_back(first, second)
    row_back(second)
    column_back(first)
  end

  -- Latent attention: transformer/multi_latent_attention.py, get_query_key_value_tensors. If the `downs` are cut by tp,
  -- ranks of tp gather all columns of the latent vectors; otherwise each rank makes all columns, and with sequence
  -- parallelism they gather only the rotary part of the keys.
  local latent, wide = v.latent, b * q * w
  local function narrow(i)
    for _, down in ipairs(latent.downs) do
      if latent.is_cut then
        column(i .. down.key)
        call(tensor, "all_gather", wide * down.width)
      else
        use(i .. down.key)
      end
    end
    if not latent.is_cut then gather(wide * v.qk_pos_emb_head_dim) end
    for _, up in ipairs(latent.ups) do column(i .. up.key, wide * up.width) end
  end
  local function narrow_back(i)
    for k = #latent.ups, 1, -1 do column_back(i .. latent.ups[k].key, wide * latent.ups[k].width) end
    if sp and not latent.is_cut then sum(wide * v.qk_pos_emb_head_dim) end
    for k = #latent.downs, 1, -1 do
      local down = latent.downs[k]
      if latent.is_cut then
        gather(wide * down.kept)
        column_back(i .. down.key)
      else
        ready(i .. down.key)
      end
    end
  end

  -- If tp has more ranks than there are heads of keys, several ranks need the same head. So all ranks gather the
  -- queries, keys and values of all ranks: transformer/attention.py, get_query_key_value_tensors.
  local copies = not latent and v.kv < tp and b * q * (v.queries + v.keys_values) * w
  local function attention(i)
    use(i .. "norm")
    if latent then
      narrow(i)
    else
      column(i .. "qkv")
      if copies then s:all_gather(tensor, copies) end
      use(i .. "qk")
    end
    row(i .. "proj")
  end
  local function attention_back(i)
    row_back(i .. "proj")
    if latent then
      narrow_back(i)
    else
      ready(i .. "qk")
      if copies then s:reduce_scatter(tensor, copies) end
      column_back(i .. "qkv")
    end
    ready(i .. "norm")
  end

  -- Experts: transformer/moe/token_dispatcher.py, MoEAlltoAllTokenDispatcher and MoEAllGatherTokenDispatcher. The
  -- router's counts: router.py. With dropless experts `load` scales the bytes after the first exchange.
  local tokens, over_ep, over_etp, over_both = b * q // cut, group "ep", group "expert_tp", group "tp_ep"
  local routed = v.experts and tokens * v.topk
  -- round up, because all experts have the same capacity: transformer/moe/moe_utils.py, get_capacity
  if routed and not v.dropless then routed = (routed + v.experts - 1) // v.experts * v.experts end
  local loaded = routed and (v.dropless and math.floor(routed * v.load) or routed)
  local all = size "tp_ep"
  local function experts(i, again)
    use(i .. "router")
    if v.aux_loss and (again or v.recompute ~= "full") then -- with full recompute, only in the second run
      call(group "tp_cp", "all_reduce", 8 * v.experts)
    end
    if v.dispatcher == "alltoall" then
      if v.dropless then call(over_both, "all_gather", 8 * v.experts * all) end
      call(over_ep, "all_to_all", routed * h * w)
      call(over_ep, "all_to_all", routed * w) -- probabilities
      call(over_etp, "all_gather", loaded * h * w * etp)
      call(over_etp, "all_gather", loaded * w * etp)
      use(i .. "experts")
      call(over_etp, "reduce_scatter", loaded * h * w * etp)
      call(over_ep, "all_to_all", loaded * h * w)
    else
      call(over_both, "all_gather", tokens * v.experts * all) -- to which experts each token goes
      call(over_both, "all_gather", tokens * v.experts * w * all)
      call(over_both, "all_gather", tokens * h * w * all)
      use(i .. "experts")
      call(over_both, "reduce_scatter", tokens * h * w * all)
    end
  end
  local function experts_back(i)
    if v.dispatcher == "alltoall" then
      call(over_ep, "all_to_all", routed * h * w)
      call(over_etp, "all_gather", loaded * h * w * etp)
      ready(i .. "experts")
      call(over_etp, "reduce_scatter", loaded * w * etp)
      call(over_etp, "reduce_scatter", loaded * h * w * etp)
      call(over_ep, "all_to_all", loaded * w)
      call(over_ep, "all_to_all", loaded * h * w)
    else
      call(over_both, "all_gather", tokens * h * w * all)
      ready(i .. "experts")
      call(over_both, "reduce_scatter", tokens * h * w * all)
      call(over_both, "reduce_scatter", tokens * v.experts * w * all)
    end
    ready(i .. "router")
  end

  local cost = model.costs(v, tp, cut, b * q)
  local kv = b * q * v.keys_values // tp * w -- bytes sent around cp; Transformer Engine's calls are not recorded

  -- ZeRO 3 gathers the weights of a layer before they are used [Z, section 7.2.2].
  local function gather_layer(c, i)
    if v.zero < 3 then return end
    replicas.each_shard(c, i, function(shard) replicas.gather(shard, travel) end)
    if v.overlap.weights then s:wait(beside) end
  end

  local function layer(c, i, again)
    gather_layer(c, i)
    model.around_ring(s, group "cp", kv)
    s:compute { name = "forward", flops = flops_of(v, cost, i) }
    s:compute { name = "norms", bytes = cost.traffic }
    attention(i)
    use(i .. "norm2")
    if not has_experts(i) then return region(i .. "fc1", i .. "fc2") end
    if v.shared_ffn then region(i .. "shared1", i .. "shared2") end
    experts(i, again)
  end
  local delayed = v.schedule == "zero_bubble" and pp > 1 -- gradients of weights are separate computes
  local function layer_back(c, i, pass)
    if v.recompute == "full" then
      local now = use
      use = nothing
      pass = pass or layer
      pass(c, i, true)
      use = now
    else
      gather_layer(c, i)
      if v.recompute == "selective" then s:compute { name = "recompute", flops = cost.core } end
    end
    model.around_ring(s, group "cp", 2 * kv)
    s:compute { name = "backward", flops = (delayed and 1 or 2) * flops_of(v, cost, i) }
    s:compute { name = "norms", bytes = 2 * cost.traffic }
    ready(i .. "last norm")
    if has_experts(i) then
      experts_back(i)
      if v.shared_ffn then region_back(i .. "shared1", i .. "shared2") end
    else
      region_back(i .. "fc1", i .. "fc2")
    end
    ready(i .. "norm2")
    attention_back(i)
    if v.zero == 3 then
      if v.overlap.gradients then travel:wait(s:event()) end
      replicas.each_shard(c, i, function(shard) replicas.reduce(shard, travel) end)
    end
  end

  -- Call pass(c, i) for each layer i of chunk c. Consecutive equal layers become a loop, but not if weights or
  -- gradients travel beside them, because then some layers start the calls of buckets.
  local function each_layer(c, beside_them, backward, pass)
    local from, left, once = begin(c), layers_of(c), model.once(s)
    if backward then from = from + left - 1 end
    local step, k = backward and -1 or 1, 0
    while k < left do
      local i, n = from + step * k, 1
      if beside_them and replicas.is_apart(c, i) then
        pass(c, i)
      elseif beside_them then
        once(has_experts(i) or false, pass, c, i)
      else
        while k + n < left and has_experts(i + step * n) == has_experts(i) do n = n + 1 end
        s:loop(n, function() pass(c, i) end)
      end
      k = k + n
    end
  end

  -- Multi-token prediction shifts tokens, positions, labels and mask by one. Neighbours in cp exchange the values at
  -- the ends of their two pieces, over the default group: transformer/multi_token_prediction.py, roll_tensor.
  local function roll(...)
    local ring = deeper > 0 and group "cp"
    if not ring then return end
    local over = group "world" or refuse("mtp_num_layers with cp needs a family of the whole world")
    for _, bytes in ipairs { ... } do
      local function swap(op, to)
        local position = ring.position + to
        if position >= 0 and position < ring.size then s[op](s, over, over:at(ring:at(position).rank), b * bytes) end
      end
      swap("send", -1)
      swap("recv", -1)
      swap("recv", 1)
      swap("send", 1)
    end
  end

  -- The embedding: tensor_parallel/layers.py, VocabParallelEmbedding, and language_model_embedding.py. The head:
  -- ColumnParallelLinear. The loss: tensor_parallel/cross_entropy.py, fusions/fused_cross_entropy.py.
  local loss = b * q * 4
  local function embed()
    use "word"
    if v.positions == "learned" then call(tensor, "all_reduce", act) else sum() end
    use "positions"
  end
  local function head(is_deeper)
    column "head"
    s:compute { name = "head", flops = cost.head }
    if is_deeper then roll(8, 4) end
    if tensor and v.fused_loss then
      s:all_reduce(tensor, loss)
      s:all_reduce(tensor, 2 * loss)
    elseif tensor then
      s:loop(3, function() s:all_reduce(tensor, loss) end)
    end
  end
  local function head_back()
    s:compute { name = "head", flops = 2 * cost.head }
    gather()
    sum()
  end

  -- Multi-token prediction, on the last stage: transformer/multi_token_prediction.py, MultiTokenPredictionLayer.
  local function joined_layer(c, i, again)
    use(i .. "join norm")
    column(i .. "join", 2 * act)
    call(tensor, "all_gather", act)
    layer(c, i, again)
    use(i .. "last norm")
  end
  local function predict(c)
    for i = v.layers, v.layers + deeper - 1 do
      roll(8, 8)
      embed()
      joined_layer(c, i)
    end
    for _ = 1, deeper do head(true) end
  end
  local function predict_back(c)
    for _ = 1, deeper do head_back() end
    ready "head"
    for i = v.layers + deeper - 1, v.layers, -1 do
      layer_back(c, i, joined_layer)
      gather() -- because the forward pass cut the sequence after `join`
      column_back(i .. "join", 2 * act)
      ready(i .. "join norm")
      gather()
    end
    if deeper > 0 and not is_first(c) then ready "word" end
  end

  local function forward(k, c)
    s:mark "forward"
    local ends = is_last(c) and 1 or 0
    s:alloc("activations", cost.kept(v.recompute) * (layers_of(c) + ends * deeper) + ends * (1 + deeper) * cost.logits)
    use = k == 0 and v.overlap.weights and sharded and v.zero < 3 and replicas.gathering(c) or nothing
    if is_first(c) then embed() end
    each_layer(c, use ~= nothing, false, layer)
    if has_norm(c) then use "last norm" end
    if is_last(c) then
      predict(c)
      head()
    end
  end
  local function weights()
    local function one(_, i) s:compute { name = "weights", flops = flops_of(v, cost, i) } end
    if is_last(0) then s:loop(deeper, function() one(0, v.layers) end) end
    each_layer(0, false, true, one)
  end
  local function backward(k, c)
    s:mark "backward"
    ready = k == microbatches - 1 and v.overlap.gradients and v.zero < 3 and replicas.reducing(c) or nothing
    if is_last(c) then
      head_back()
      predict_back(c)
    end
    if has_norm(c) then ready "last norm" end
    each_layer(c, ready ~= nothing, true, layer_back)
    if is_first(c) then
      gather()
      ready "positions"
      ready "word"
    end
    s:free "activations"
  end

  -- Messages: pipeline_parallel/p2p_communication.py. They are sent in a batch, or with overlap_p2p one by one. With
  -- overlap_p2p and two stages, the odd stage sends over the default group, so that no direction waits for the other.
  local via, line, message = s, {}, act // cut
  function line.together(body) via:group(body) end
  local function next_to(messages, computes)
    via = s:on "messages"
    via:wait(s:event())
    messages()
    via = s
    computes()
    s:wait "messages"
  end
  local function sender(op, odd)
    return function(to)
      local over = group "pp"
      if v.overlap_p2p and pp == 2 and stage % 2 == odd then
        over = group "world" or refuse("overlap_p2p with pp 2 needs a family of the whole world")
        to = over:at(group "pp":at(to).rank)
      end
      via[op](via, over, to, message)
    end
  end
  line.send, line.recv = sender("send", 1), sender("recv", 0)

  local function held(each, from)
    local d, e = v.zero >= from and size "dp" or 1, v.zero >= from and size "expert_dp" or 1
    return replicas.dense * each // d + replicas.expert * each // e
  end
  model.hold(s, held(w, 3), held(grad, 2), held(12, 1))

  local apart = {}
  if v.zero < 3 and v.overlap.weights and sharded then apart[1] = 0 end
  if v.zero < 3 and v.overlap.gradients then apart[#apart + 1] = microbatches - 1 end
  run_pipeline(s, { stage = stage, pp = pp, microbatches = microbatches, chunks = chunks, schedule = v.schedule,
                    line = line, forward = forward, backward = backward, weights = delayed and weights,
                    beside = next_to, apart = apart, one_by_one = v.overlap_p2p, like = like })

  -- After the last backward pass: distributed/finalize_model_grads.py.
  s:mark "optimizer"
  if v.overlap.gradients then
    s:wait(beside)
  elseif v.zero < 3 then
    replicas.each_bucket(function(one) replicas.reduce(one, s) end)
  end
  if replicas.whole > 0 then call(tensor, "all_reduce", replicas.whole * grad) end
  if (v.tied or deeper > 0) and pp > 1 and (stage == 0 or stage == pp - 1) then
    call(group "embeddings", "all_reduce", v.vocab // tp * h * grad)
  end
  if v.experts and v.expert_bias then
    local n = 0
    for c = 0, chunks - 1 do
      local ends = begin(c) + layers_of(c) - 1 + (is_last(c) and deeper or 0)
      for i = begin(c), ends do n = n + (has_experts(i) and 1 or 0) end
    end
    if n > 0 then call(group "tp_dp_cp", "all_reduce", n * v.experts * w) end
  end
  if v.per_token_loss then
    if pp > 1 then s:broadcast(group "pp", 4, { root = pp - 1 }) end
    call(group "dp", "all_reduce", 4)
  end

  -- With fp16, first check that the gradients are finite: optimizer/optimizer.py. Compute their norm:
  -- optimizer/clip_grads.py. Then the distributed optimizer gathers the new weights: distrib_optimizer.py. With ep
  -- above 1 there are two optimizers, and each of them gathers all buckets.
  local function sum_norm()
    if sharded then return call(group "optimizer", "all_reduce", 4) end
    call(group "model", "all_reduce", 4)
    if ep > 1 then call(group "expert_model", "all_reduce", 4) end
  end
  local checks = v.weight_type ~= "fp16" and 0 or sharded and ep > 1 and 2 or 1 -- one for each optimizer
  for _ = 1, checks do sum_norm() end
  sum_norm()
  s:compute { name = "optimizer", bytes = held(12, 1) }
  if sharded and not v.overlap.weights then
    for _ = 1, ep > 1 and 2 or 1 do
      replicas.each_bucket(function(one) replicas.gather(one, s) end)
    end
  end
  if v.training_loop then -- Megatron-LM's training/training.py, train_step: success, the norm, the logged loss
    call(group "model", "all_reduce", 4)
    call(group "model", "all_reduce", 4)
    if stage == pp - 1 then call(group "dp", "all_reduce", 8) end
  end
end

return M
