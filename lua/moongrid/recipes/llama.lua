-- The weights of Llama and its relatives, as Hugging Face's files name them, over tensor, pipeline, expert and data
-- parallelism. Parameters with long names are those of a model's config.json: --params config.json.
-- Source: huggingface/transformers 4.57, models/{llama,mistral,mixtral,qwen2,qwen3,qwen2_moe,qwen3_moe,phi3,
-- deepseek_v3}/modeling_*.py; NVIDIA/Megatron-LM, core 0.16, for its names.
-- Not as there: Hugging Face's code cuts nothing. Here heads stay whole, and sizes that would cut one are refused.
-- Recorded: nothing. The groups are not those of a system.

local arithmetic = ...
local types = { bfloat16 = "bf16", float16 = "f16", float32 = "f32", float64 = "f64" }

-- Differences between architectures: biases of q, k and v, norms of q and k, names of experts, fused tensors.
local kinds = {
  llama = {}, mistral = {},
  qwen2 = { qkv_bias = true }, qwen3 = { qk_norm = true },
  phi3 = { fused = true },
  mixtral = { block = "block_sparse_moe", gate = "w1", up = "w3", down = "w2" },
  qwen2_moe = { qkv_bias = true, shared = "shared_expert" }, qwen3_moe = { qk_norm = true },
  deepseek_v3 = { latent = true, shared = "shared_experts", correction = true },
}

-- The rules of the field `names`: the tensors on both sides of a rule have the same elements, so a checkpoint with one
-- side can be resharded to the other. hf "x.y" is model.layers.N.x.y, mg "x.y" decoder.layers.N.x.y.
local rules = {}
local function rule(from, to, how) rules[#rules + 1] = from .. " -> " .. to .. (how or "") end
local function hf(first, ...)
  local text = "model.layers.(%d+)." .. first
  for _, name in ipairs { ... } do text = text .. " + model.layers.%1." .. name end
  return text
end
local function mg(name) return "decoder.layers.%1." .. name end

for _, what in ipairs { "weight", "bias" } do
  local at = "self_attn."
  local qkv = hf(at .. "q_proj." .. what, at .. "k_proj." .. what, at .. "v_proj." .. what)
  local both = hf("mlp.gate_proj." .. what, "mlp.up_proj." .. what)
  rule(qkv, "model.layers.%1.self_attn.qkv_proj." .. what)
  rule(both, "model.layers.%1.mlp.gate_up_proj." .. what)
  rule(qkv, mg "self_attention.linear_qkv." .. what, " by num_key_value_heads or num_attention_heads")
  rule(both, mg "mlp.linear_fc1." .. what)
  rule(hf(at .. "o_proj." .. what), mg "self_attention.linear_proj." .. what)
  rule(hf("mlp.down_proj." .. what), mg "mlp.linear_fc2." .. what)
end
rule("model.embed_tokens.weight", "embedding.word_embeddings.weight")
rule("model.norm.weight", "decoder.final_layernorm.weight")
rule("lm_head.weight", "output_layer.weight")
rule(hf "input_layernorm.weight", mg "input_layernorm.weight")
rule(hf "post_attention_layernorm.weight", mg "pre_mlp_layernorm.weight")
for from, to in pairs {
  q_norm = "q_layernorm.weight", k_norm = "k_layernorm.weight", q_proj = "linear_q_proj.weight",
  q_a_proj = "linear_q_down_proj.weight", q_a_layernorm = "linear_q_up_proj.layer_norm_weight",
  q_b_proj = "linear_q_up_proj.weight", kv_a_proj_with_mqa = "linear_kv_down_proj.weight",
  kv_a_layernorm = "linear_kv_up_proj.layer_norm_weight", kv_b_proj = "linear_kv_up_proj.weight",
} do
  rule(hf("self_attn." .. from .. ".weight"), mg "self_attention." .. to)
end
rule(hf "mlp.gate.weight", mg "mlp.router.weight")
rule(hf "block_sparse_moe.gate.weight", mg "mlp.router.weight")
rule(hf "mlp.gate.e_score_correction_bias", mg "mlp.router.expert_bias")
rule(hf "mlp.shared_expert_gate.weight", mg "mlp.shared_experts.gate_weight")
for _, shared in ipairs { "mlp.shared_expert.", "mlp.shared_experts." } do
  rule(hf(shared .. "gate_proj.weight", shared .. "up_proj.weight"), mg "mlp.shared_experts.linear_fc1.weight")
  rule(hf(shared .. "down_proj.weight"), mg "mlp.shared_experts.linear_fc2.weight")
end
for block, words in pairs { mlp = { "gate_proj", "up_proj", "down_proj" }, block_sparse_moe = { "w1", "w3", "w2" } } do
  local first, other = block .. ".experts.(%d+).", block .. ".experts.%2."
  local mine = "mlp.experts.local_experts.%2."
  rule(hf(first .. words[1] .. ".weight", other .. words[2] .. ".weight"), mg(mine .. "linear_fc1.weight"))
  rule(hf(first .. words[3] .. ".weight"), mg(mine .. "linear_fc2.weight"))
  for _, word in ipairs(words) do
    rule(hf(first .. word .. ".weight"), "model.layers.%1." .. block .. ".experts." .. word .. ".weight[%2]")
  end
end
rule(hf "self_attn.rotary_emb.inv_freq", "-")

local function refuse(format, ...) error(string.format(format, ...), 2) end

-- Return the stage of each layer. Numbers of layers differ by at most one; the first stages have more.
local function stages(layers, n)
  local of, layer = {}, 0
  for stage = 0, n - 1 do
    for _ = 1, layers // n + (stage < layers % n and 1 or 0) do of[layer], layer = stage, layer + 1 end
  end
  return of
end

-- Return how many experts a layer has, and a function that returns whether layer i has experts.
local function experts_of(p)
  local n = p.num_local_experts or p.num_experts or p.n_routed_experts or 0
  local dense = {}
  for _, i in ipairs(p.mlp_only_layers) do dense[i] = true end
  return n, function(i)
    return n > 0 and i >= p.first_k_dense_replace and i % p.moe_layer_freq == 0 and (i + 1) % p.decoder_sparse_step == 0
      and not dense[i]
  end
end

-- Refuse a tp with which some rank lacks heads of keys and values that its heads of queries use. `joined`: q, k and v
-- are one tensor, so each rank needs equally many heads of keys and values.
local function check_heads(p, ranks, heads, kv, latent, joined)
  local function cuts(tp)
    if latent then return tp <= heads end
    return kv % tp == 0 or not joined and (tp < kv or tp % kv == 0 and heads % tp == 0)
  end
  if cuts(p.tp) then return end
  local per_stage = ranks // p.pp
  local near = arithmetic.nearest(p.tp, per_stage, function(tp)
    return cuts(tp) and (p.etp ~= nil or per_stage % (tp * p.ep) == 0)
  end)
  if latent then refuse("tp %d is more than the %d heads; %s would do", p.tp, heads, near) end
  refuse("tp %d does not cut the %d heads of queries and %d of keys and values so that each rank has those that it "
    .. "uses%s; %s would do", p.tp, heads, kv, joined and ", where q, k and v are one tensor" or "", near)
end

local function build(world, p)
  if p.config.quantization_config then
    refuse("the model is quantized; this recipe has only tensors of models that are not")
  end
  local others = false
  for _ in pairs(p.config) do others = true end
  if others and not p.model_type then
    refuse("the file of parameters has no model_type, so it is not a config.json of Hugging Face; "
      .. "model_type=llama would do")
  end
  local kind = kinds[p.model_type or "llama"]
  if not kind then
    local known = {}
    for name in pairs(kinds) do known[#known + 1] = name end
    refuse("model_type '%s' is not among %s; write its tensors as in this recipe (moongrid recipes llama --source)",
      p.model_type, table.concat(known, ", "))
  end
  local dtype = p.torch_dtype or p.dtype
  local kept = p.type or types[dtype or "bfloat16"]
  if not kept then refuse("dtype '%s' is not among bfloat16, float16, float32, float64; or give type", dtype) end
  local heads, kv = p.num_attention_heads, p.num_key_value_heads or p.num_attention_heads
  if heads % kv > 0 then refuse("num_attention_heads %d is not a multiple of num_key_value_heads %d", heads, kv) end
  local hidden, vocab = { "hidden", p.hidden_size }, { "vocab", p.vocab_size }
  if not p.head_dim and p.hidden_size % heads > 0 then
    refuse("hidden_size %d is not a multiple of num_attention_heads %d; then head_dim is needed", p.hidden_size, heads)
  end
  local head = p.head_dim or p.hidden_size // heads
  local megatron, fused = p.names == "megatron", p.names == "fused" or kind.fused
  if p.names ~= "hf" and p.names ~= "fused" and not megatron then
    refuse("names is hf, fused or megatron, not '%s'", p.names)
  end

  local g = grid(world, "tp-dp-pp", { tp = p.tp, pp = p.pp, dp = fill })
  local t = topology(world)
  t.dense = g
  for _, dim in ipairs { "tp", "dp", "pp" } do t[dim] = g(dim) end
  local nexperts, sparse = experts_of(p)
  local e
  if nexperts > 0 then
    e = grid(world, "etp-ep-edp-pp", { etp = p.etp or p.tp, ep = p.ep, pp = p.pp, edp = fill })
    t.expert = e
    for _, dim in ipairs { "etp", "ep", "edp" } do t[dim] = e(dim) end
    if nexperts % p.ep > 0 then refuse("ep %d does not divide the %d experts", p.ep, nexperts) end
  elseif p.ep > 1 then
    refuse("ep %d needs a model with experts; leave ep out", p.ep)
  end
  if p.num_hidden_layers < p.pp then refuse("pp %d is more than the %d layers", p.pp, p.num_hidden_layers) end
  check_heads(p, world.size, heads, kv, kind.latent, megatron or fused)
  local each = p.experts == "each"
  if not each and (p.experts ~= "stacked" or megatron) then
    refuse("experts is each, or without names=megatron also stacked; not '%s'", p.experts)
  end
  if each and p.num_hidden_layers * nexperts > 2000 then
    refuse("%d layers of %d experts are too many tensors to plan; experts=stacked has one for all experts of a layer",
      p.num_hidden_layers, nexperts)
  end

  -- The grids of each stage, whose ranks are consecutive.
  local ranks, dense, expert_grid, nth_experts = world.size // p.pp, {}, {}, {}
  local function dense_of(stage)
    if p.pp == 1 then return g end
    dense[stage] = dense[stage] or grid(world:window(stage * ranks, ranks), "tp-dp", { tp = p.tp, dp = fill })
    return dense[stage]
  end
  local function experts_grid(stage)
    if p.pp == 1 then return e end
    expert_grid[stage] = expert_grid[stage]
      or grid(world:window(stage * ranks, ranks), "etp-ep-edp", { etp = p.etp or p.tp, ep = p.ep, edp = fill })
    return expert_grid[stage]
  end
  local function held_by_expert(stage, nth) -- the ranks with the expert's coordinate of ep
    local at = nth // (nexperts // p.ep)
    if p.ep == 1 then return nil end
    nth_experts[stage * p.ep + at] = nth_experts[stage * p.ep + at] or experts_grid(stage) "ep":pick(at)
    return nth_experts[stage * p.ep + at]
  end

  -- Add a weight of a stage, with its axes and the dims that cut them.
  local function add(name, stage, axes, cut, type)
    t[name] = tensor { axes = axes, type = type or kept, cut = cut, over = dense_of(stage) }
  end

  local of, last = stages(p.num_hidden_layers, p.pp), p.pp - 1
  -- The cut into whole heads. A rank has heads of keys and values with all heads of queries that use them; if tp has
  -- more ranks than heads of keys and values, several ranks have copies of the same head.
  local whole = { "tp", unit = p.tp < kv and kv % p.tp > 0 and heads // kv * head or head }
  local keys = { "tp", unit = head, copies = true }

  local embedding = megatron and "embedding.word_embeddings.weight" or "model.embed_tokens.weight"
  if p.tie_word_embeddings and last > 0 then
    t[embedding] = tensor { axes = { vocab, hidden }, type = kept, cut = { vocab = "tp" }, on = g "pp":pick(0, -1),
      over = g }
  else
    add(embedding, 0, { vocab, hidden }, { vocab = "tp" })
  end

  -- Add the matrices of an MLP, cut by `dim`.
  local function mlp(width, dim, names, put)
    local ffn, bias = { "ffn", width }, p.mlp_bias and names.bias
    if names.gate_up then
      local both = { "gate_up", 2 * width }
      put(names.gate_up .. ".weight", { both, hidden }, { gate_up = { dim, parts = { width, width } } })
      if bias then put(names.gate_up .. ".bias", { both }, { gate_up = { dim, parts = { width, width } } }) end
    else
      for _, name in ipairs { names.gate, names.up } do
        put(name .. ".weight", { ffn, hidden }, { ffn = dim })
        if bias then put(name .. ".bias", { ffn }, { ffn = dim }) end
      end
    end
    put(names.down .. ".weight", { hidden, ffn }, { ffn = dim })
    if bias then put(names.down .. ".bias", { hidden }) end
  end

  local function attention(i, stage)
    local at = megatron and "decoder.layers." .. i .. ".self_attention." or "model.layers." .. i .. ".self_attn."
    local function put(name, axes, cut) add(at .. name, stage, axes, cut) end
    if kind.latent then
      local query, value = p.qk_nope_head_dim + p.qk_rope_head_dim, p.qk_nope_head_dim + p.v_head_dim
      local q, all = { "q", heads * query }, { "tp", unit = query }
      if p.q_lora_rank then
        local rank = { "q_rank", p.q_lora_rank }
        put(megatron and "linear_q_down_proj.weight" or "q_a_proj.weight", { rank, hidden })
        put(megatron and "linear_q_up_proj.layer_norm_weight" or "q_a_layernorm.weight", { rank })
        put(megatron and "linear_q_up_proj.weight" or "q_b_proj.weight", { q, rank }, { q = all })
      else
        put(megatron and "linear_q_proj.weight" or "q_proj.weight", { q, hidden }, { q = all })
      end
      local rank = { "kv_rank", p.kv_lora_rank }
      put(megatron and "linear_kv_down_proj.weight" or "kv_a_proj_with_mqa.weight",
        { { "kv", p.kv_lora_rank + p.qk_rope_head_dim }, hidden })
      put(megatron and "linear_kv_up_proj.layer_norm_weight" or "kv_a_layernorm.weight", { rank })
      put(megatron and "linear_kv_up_proj.weight" or "kv_b_proj.weight", { { "kv", heads * value }, rank },
        { kv = { "tp", unit = value } })
      put(megatron and "linear_proj.weight" or "o_proj.weight", { hidden, { "v", heads * p.v_head_dim } },
        { v = { "tp", unit = p.v_head_dim } })
      return
    end
    local biased = kind.qkv_bias or p.attention_bias
    if megatron or fused then
      local group = megatron and { "tp", unit = (heads // kv + 2) * head }
        or { "tp", unit = head, parts = { heads * head, kv * head, kv * head } }
      local name, qkv = megatron and "linear_qkv" or "qkv_proj", { "qkv", (heads + 2 * kv) * head }
      put(name .. ".weight", { qkv, hidden }, { qkv = group })
      if biased then put(name .. ".bias", { qkv }, { qkv = group }) end
    else
      local q, k = { "q", heads * head }, { "kv", kv * head }
      put("q_proj.weight", { q, hidden }, { q = whole })
      for _, name in ipairs { "k_proj", "v_proj" } do put(name .. ".weight", { k, hidden }, { kv = keys }) end
      if biased then
        put("q_proj.bias", { q }, { q = whole })
        for _, name in ipairs { "k_proj", "v_proj" } do put(name .. ".bias", { k }, { kv = keys }) end
      end
    end
    if kind.qk_norm then
      for _, name in ipairs { "q", "k" } do
        put(name .. (megatron and "_layernorm" or "_norm") .. ".weight", { { "head", head } })
      end
    end
    local out = megatron and "linear_proj" or "o_proj"
    put(out .. ".weight", { hidden, { "q", heads * head } }, { q = whole })
    if p.attention_bias and not kind.qkv_bias then put(out .. ".bias", { hidden }) end
  end

  local function experts(i, stage)
    local at = megatron and "decoder.layers." .. i .. ".mlp."
      or "model.layers." .. i .. "." .. (kind.block or "mlp") .. "."
    local width = p.moe_intermediate_size or p.intermediate_size
    local expert = { "expert", nexperts }
    add(at .. (megatron and "router.weight" or "gate.weight"), stage, { expert, hidden }, nil, p.router_type)
    if kind.correction then
      t[at .. (megatron and "router.expert_bias" or "gate.e_score_correction_bias")] = tensor {
        axes = { expert }, type = "f32", over = dense_of(stage) }
    end
    local names = { gate = kind.gate or "gate_proj", up = kind.up or "up_proj", down = kind.down or "down_proj" }
    if megatron then names = { gate_up = "linear_fc1", down = "linear_fc2" } end
    if each then
      for nth = 0, nexperts - 1 do
        mlp(width, "etp", names, function(name, axes, cut)
          t[at .. (megatron and "experts.local_experts." or "experts.") .. nth .. "." .. name] = tensor {
            axes = axes, type = kept, cut = cut, on = held_by_expert(stage, nth), over = experts_grid(stage) }
        end)
      end
    else
      mlp(width, "etp", names, function(name, axes, cut)
        cut.expert = "ep"
        t[at .. "experts." .. name] = tensor {
          axes = { expert, table.unpack(axes) }, type = kept, cut = cut, over = experts_grid(stage) }
      end)
    end
    local shared = p.shared_expert_intermediate_size or width * (p.n_shared_experts or 0)
    if not kind.shared or shared == 0 then return end
    mlp(shared, "tp", names, function(name, axes, cut)
      add(at .. (megatron and "shared_experts" or kind.shared) .. "." .. name, stage, axes, cut)
    end)
    if kind.shared == "shared_expert" then
      add(at .. (megatron and "shared_experts.gate_weight" or "shared_expert_gate.weight"), stage,
        { { "one", 1 }, hidden })
    end
  end

  for i = 0, p.num_hidden_layers - 1 do
    local stage, at = of[i], (megatron and "decoder" or "model") .. ".layers." .. i .. "."
    add(at .. "input_layernorm.weight", stage, { hidden })
    attention(i, stage)
    add(at .. (megatron and "pre_mlp_layernorm.weight" or "post_attention_layernorm.weight"), stage, { hidden })
    if sparse(i) then
      experts(i, stage)
    else
      local names = { gate = "gate_proj", up = "up_proj", down = "down_proj", bias = true }
      if megatron then names = { gate_up = "linear_fc1", down = "linear_fc2", bias = true } end
      if fused then names = { gate_up = "gate_up_proj", down = "down_proj", bias = true } end
      mlp(p.intermediate_size, "tp", names, function(name, axes, cut) add(at .. "mlp." .. name, stage, axes, cut) end)
    end
  end

  add(megatron and "decoder.final_layernorm.weight" or "model.norm.weight", last, { hidden })
  if not p.tie_word_embeddings then
    add(megatron and "output_layer.weight" or "lm_head.weight", last, { vocab, hidden }, { vocab = "tp" })
  end
  return t
end

return recipe {
  doc = "Weights of Llama, Mistral, Mixtral, Qwen, Phi and DeepSeek models: --params config.json",
  params = {
    tp = param.size(1, "tensor-parallel size"),
    pp = param.size(1, "pipeline stages"),
    ep = param.size(1, "expert-parallel size"),
    etp = param.size(nil, "tensor-parallel size of experts; left out, tp"),
    names = param.text("hf", "names of tensors: hf; fused, with q, k, v in one tensor, and gate, up; megatron"),
    experts = param.text("each", "each: a tensor for each expert; stacked: one for all experts of a layer"),
    type = param.text(nil, "type of the elements; left out, that of the config, or bf16"),
    router_type = param.text(nil, "type of the elements of routers; left out, as for other tensors"),
    model_type = param.text(nil, "the architecture, as the config says; without a config llama"),
    hidden_size = param.size(4096, "elements of a token"),
    intermediate_size = param.size(11008, "elements between the two halves of an MLP"),
    num_hidden_layers = param.size(32, "layers"),
    num_attention_heads = param.size(32, "heads of queries"),
    num_key_value_heads = param.size(nil, "heads of keys and values; left out, as many as heads of queries"),
    head_dim = param.size(nil, "elements of a head; left out, hidden_size / heads"),
    vocab_size = param.size(32000, "tokens"),
    tie_word_embeddings = param.flag(false, "the output layer uses the weights of the embedding"),
    attention_bias = param.flag(false, "attention has biases"),
    mlp_bias = param.flag(false, "MLPs have biases"),
    torch_dtype = param.text(nil, "type of the elements, by torch's name"),
    dtype = param.text(nil, "the same under the new name of the field"),
    num_local_experts = param.size(nil, "experts of a layer (Mixtral)"),
    num_experts = param.size(nil, "the same (Qwen)"),
    n_routed_experts = param.size(nil, "the same (DeepSeek)"),
    moe_intermediate_size = param.size(nil, "intermediate_size of an expert"),
    shared_expert_intermediate_size = param.index(nil, "intermediate_size of the expert that all tokens use (Qwen)"),
    n_shared_experts = param.index(nil, "experts that all tokens use, stored as one (DeepSeek)"),
    first_k_dense_replace = param.index(0, "number of first layers without experts"),
    moe_layer_freq = param.size(1, "one layer of this many has experts, from layer 0 on"),
    decoder_sparse_step = param.size(1, "one layer of this many has experts: the last one (Qwen)"),
    mlp_only_layers = param.list({}, "layers without experts"),
    q_lora_rank = param.size(nil, "rank of the queries (DeepSeek)"),
    kv_lora_rank = param.size(512, "rank of keys and values (DeepSeek)"),
    qk_nope_head_dim = param.size(128, "elements of a head without position (DeepSeek)"),
    qk_rope_head_dim = param.size(64, "elements of a head with position (DeepSeek)"),
    v_head_dim = param.size(128, "elements of a head of values (DeepSeek)"),
    config = param.table({}, "the other fields of config.json"),
  },
  rest = "config",
  build = build,
  families = { ep = "a model with experts", etp = "a model with experts", edp = "a model with experts" },
  names = table.concat(rules, "\n"),
}
