-- SPDX-License-Identifier: MIT
--
-- The bundled steps: `steps.NAME { settings }` makes the step of a recipe, and the recipe then also has the parameters
-- of this step. Each bundled step models one system. The file NAME.lua, which is loaded when the step first runs, has
-- it:
--   transformer  Megatron-core
--   picotron     picotron
--   fsdp2        torch's FSDP2 (fully_shard) around a Llama, with tensor parallelism as torchtitan plans it

local core, shared, parameters = ...
local param = parameters.param
local weak = { __mode = "k" }
local makers, params, lacks = {}, setmetatable({}, weak), setmetatable({}, weak) -- keys of params and lacks: steps

-- Return the parameters of the model and the batch. `layers` says the default of `layers`. Aliases are Megatron-LM's
-- arguments.
local function common(layers)
  return {
    layers = param.size(nil, ("layers of the model (%s)"):format(layers), "num_layers"),
    hidden = param.size(nil, "width of the model (4096)", "hidden_size"),
    heads = param.size(nil, "attention heads (32)", "num_attention_heads"),
    kv_heads = param.size(nil, "heads of keys and values (as heads)", "num_query_groups"),
    ffn = param.size(nil, "width of the feed-forward (4 x hidden)", "ffn_hidden_size"),
    vocab = param.size(nil, "words of the vocabulary (51200)", "padded_vocab_size"),
    seq = param.size(nil, "tokens of a sample (2048)", "seq_length"),
    causal = param.flag(nil, "a token attends to those before it, which halves attention's flops (true)"),
    micro_batch = param.size(nil, "samples of a microbatch (1)", "micro_batch_size"),
    global_batch = param.size(nil, "samples of a step (4 microbatches for each stage and replica)",
      "global_batch_size"),
    weight_type = param.text(nil, "type of weights and activations: fp8, bf16, fp16 or fp32 (bf16)"),
  }
end

local own = {}

function own.transformer()
  return shared.joined(common "32, or the next multiple of the stages", {
    tied = param.flag(nil, "the embedding is the head's matrix, too (true)"),
    untie_embeddings_and_output_weights = param.flag(nil, "Megatron-LM's tied=false"),
    gated = param.flag(nil, "the feed-forward has a gate, a third matrix (false)", "swiglu"),
    bias = param.flag(nil, "linear layers have biases (true; with shared experts, or experts and etp above 1, false)",
      "add_bias_linear"),
    disable_bias_linear = param.flag(nil, "Megatron-LM's bias=false"),
    norm = param.text(nil, "layer or rms (layer)", "normalization"),
    qk_norm = param.flag(nil, "norms of queries and keys (false; with latent attention true)", "qk_layernorm"),
    positions = param.text(nil, "learned, rope or none (learned)", "position_embedding_type"),
    head_dim = param.size(nil, "width of a head (hidden / heads)", "kv_channels"),
    kv_lora_rank = param.size(nil, "latent attention (MLA), with this width of keys and values (without it: none)"),
    q_lora_rank = param.size(nil, "of latent attention: width of queries (without it they are made from the input)"),
    qk_head_dim = param.size(nil, "of latent attention: width of a head's query (head_dim)"),
    qk_pos_emb_head_dim = param.size(nil, "of latent attention: width of the part of a query that has positions (64)"),
    v_head_dim = param.size(nil, "of latent attention: width of a head's value (head_dim)"),
    transformer_impl = param.text(nil, "of latent attention: local, whose first matrices are cut by tp, or "
      .. "transformer_engine (transformer_engine)"),
    mtp_num_layers = param.index(nil, "layers that predict more tokens (MTP), with a loss each, on the last stage (0)",
      "mtp", "num_nextn_predict_layers"),
    fp8 = param.text(nil, "layers' matrices are multiplied in FP8, twice as fast: e4m3 or hybrid", "fp8_format"),
    experts = param.size(nil, "experts of a layer (without it the model is dense)", "num_experts"),
    topk = param.size(nil, "experts that a token goes to (2)", "moe_router_topk"),
    moe_ffn = param.size(nil, "width of an expert (as ffn)", "moe_ffn_hidden_size"),
    moe_every = param.size(nil, "one layer of this many has experts, from the first one on (1)", "moe_layer_freq"),
    dense_layers = param.size(nil, "number of first layers, which have no experts (0)", "first_k_dense_replace"),
    shared_ffn = param.size(nil, "width of experts that all tokens go to", "moe_shared_expert_intermediate_size"),
    dispatcher = param.text(nil, "alltoall or allgather (alltoall)", "moe_token_dispatcher_type"),
    dropless = param.flag(nil, "no expert has a capacity: counts of tokens travel first (false)"),
    load = param.number(nil, "of dropless experts: tokens that a rank's experts get, divided by the mean (1)"),
    aux_loss = param.flag(nil, "a loss balances experts: the router's counts are summed (false)"),
    expert_bias = param.flag(nil, "biases balance experts: their counts are summed (false)",
      "moe_router_enable_expert_bias"),
    first_stage_layers = param.size(nil, "layers of the first stage (as the others)",
      "decoder_first_pipeline_num_layers", "num_layers_in_first_pipeline_stage"),
    last_stage_layers = param.size(nil, "layers of the last stage (as the others)", "decoder_last_pipeline_num_layers",
      "num_layers_in_last_pipeline_stage"),
    stage_layers = param.list(nil, "layers of each stage, with interleave of each chunk, in the order of the model"),
    embedding_in_split = param.flag(nil, "the embedding counts as a layer when stages get their layers (false)",
      "account_for_embedding_in_pipeline_split"),
    loss_in_split = param.flag(nil, "the loss counts as a layer when stages get their layers (false)",
      "account_for_loss_in_pipeline_split"),
    recompute = param.text(nil, "what the backward pass computes again: none, selective or full (none)",
      "recompute_granularity"),
    sequence_parallel = param.flag(nil, "activations between tensor-parallel regions are cut by the sequence (with "
      .. "experts true, else false)"),
    interleave = param.size(nil, "chunks of layers of a stage (1, or the recipe's vpp)"),
    schedule = param.text(nil, "of the pipeline: 1f1b, gpipe or zero_bubble (1f1b)"),
    zero = param.index(nil, "data parallelism shards: 1 the optimizer, 2 gradients, 3 weights (0; with instances 1)"),
    use_distributed_optimizer = param.flag(nil, "Megatron-LM's zero=1"),
    overlap = param.any(nil, "what travels beside computes: gradients, weights, or both with a comma (none)"),
    overlap_grad_reduce = param.flag(nil, "Megatron-LM's overlap=gradients"),
    overlap_param_gather = param.flag(nil, "Megatron-LM's overlap=weights"),
    overlap_p2p = param.flag(nil, "messages of the interleaved schedule go one by one (false)",
      "overlap_p2p_communication", "overlap_p2p_comm"),
    bucket = param.size(nil, "elements of a bucket, with overlap of gradients (the larger of 40e6 and 1e6 x dp)",
      "ddp_bucket_size"),
    per_token_loss = param.flag(nil, "the loss is a mean over tokens, whose number is summed (false)",
      "calculate_per_token_loss"),
    fused_loss = param.flag(nil, "cross entropy makes two calls instead of three (false)", "cross_entropy_loss_fusion"),
    training_loop = param.flag(nil, "calls of Megatron-LM's loop: success and norm over mp, the logged loss (false)"),
    grad_type = param.text(nil, "type of gradients that are summed over replicas (fp32)"),
  })
end

function own.picotron()
  return shared.joined(common "32, or the number of stages if that is more", {
    schedule = param.text(nil, "of the pipeline: 1f1b or gpipe, which picotron calls afab (1f1b)"),
  })
end

function own.fsdp2()
  return shared.joined(common "32", {
    sequence_parallel = param.flag(nil, "activations between tensor-parallel regions are cut by the sequence (true)"),
    reshard = param.flag(nil, "weights are freed after the forward pass, and gathered again (true)",
      "reshard_after_forward"),
    recompute = param.text(nil, "what the backward pass computes again: none, selective (every second matrix product) "
      .. "or full (each block) (none)"),
    fp8 = param.text(nil, "layers' matrices are multiplied in FP8, twice as fast, and travel as before: e4m3"),
    clip = param.flag(nil, "gradients are clipped: their norms are summed (false)"),
    zero = param.index(nil, "3, since FSDP2 shards weights"),
    grad_type = param.text(nil, "type of gradients that are summed over replicas (fp32)"),
  })
end

-- For each role: the name of its family; a list of names, of which the first in the plan counts; or false for no
-- family.
local roles = {
  transformer = { tp = "tp", pp = "pp", dp = { "dp_cp", "dp" }, cp = "cp", ep = "ep",
                  expert_dp = { "expt_dp", "expert_data" }, expert_tp = "expt_tp", tp_ep = "tp_ep", tp_cp = "tp_cp",
                  tp_dp_cp = "tp_dp_cp", embeddings = "embd", model = "mp", expert_model = "tp_ep_pp",
                  optimizer = "intra_dist_opt", shards = "intra_dp_cp", expert_shards = "intra_expt_dp",
                  instances = "inter_dist_opt", world = "default_pg" },
  picotron = { tp = "tp", pp = "pp", cp = "cp", dp = "dp", cp_dp = "cp_dp", world = "world_group" },
  fsdp2 = { tp = "tp", pp = "pp", cp = "cp", ep = "ep", shard = "fsdp", whole = "loss", dp_shard = "dp_shard",
            replicate = "dp_replicate" },
}

local libraries = {}
local function library(name)
  if not libraries[name] then
    local arithmetic = core.library "arithmetic"
    local model = core.library("model", core, shared, arithmetic)
    libraries[name] = core.library(name, core, shared, model, core.library("pipeline", model), arithmetic)
  end
  return libraries[name]
end

-- For each bundled step: a function that returns why its calls are not known with a plan's parameters, or nil if they
-- are known. If there is a reason, the step refuses the parameters, and `moongrid check` does not try to prove the
-- step.
local unknown = {}

-- Return such a function for a system. Its reason is a parameter with another value than in the recordings. `recorded`
-- is { parameter = recorded value }; false means that the parameter was left out.
local function unrecorded(system, recorded)
  return function(p)
    for name, value in shared.sorted_pairs(recorded) do
      local given = p[name] or false
      if type(given) == "table" then given = #given > 0 and table.concat(given, ",") end
      if p[name] ~= nil and given ~= value then
        return string.format("%s %s: a step of %s with it has not been recorded, so its calls are not known; %s",
          name, tostring(given), system, value and string.format("%s %s would do", name, value) or "leave it out")
      end
    end
  end
end

local others = unrecorded("Megatron-core", {
  gtp_remat_size = 1, expert_gtp_remat_size = 1, engram_embedding_parallel_size = false,
  hierarchical_context_parallel_sizes = false, hybrid_context_parallel = false, dynamic_context_parallel = false,
  get_embedding_ranks = "0,-1", rank_offset = 0, local_world_size = false,
})
function unknown.transformer(p, defaults)
  local ep, instances = p.expert_model_parallel_size or 1, p.expert_num_distributed_optimizer_instances
  if ep > 1 and not (p.experts or defaults.experts) then -- transformer_config.py
    return string.format("ep %d needs experts; experts=%d would do", ep, ep)
  end
  if instances and instances ~= p.num_distributed_optimizer_instances then
    return string.format("expert_instances %d is not instances, %d: a step with both has not been recorded; leave one "
      .. "out", instances, p.num_distributed_optimizer_instances)
  end
  return others(p)
end
function unknown.picotron() end
unknown.fsdp2 = unrecorded("FSDP2", { pp = 1, ep = 1 })

local function is_text(v) return type(v) == "string" end

local function maker(name)
  return function(settings)
    local where = core.where()
    settings = settings == nil and {} or settings
    if type(settings) ~= "table" then
      core.raise_at(where, string.format("steps.%s takes a table of settings, not %s", name, shared.show(settings)))
    end
    local mine, families, defaults = own[name](), shared.joined({}, roles[name]), {}
    for key, value in shared.sorted_pairs(settings) do
      if roles[name][key] then
        if not is_text(value) and value ~= false and not shared.is_list(value, is_text) then
          core.raise_at(where, string.format("steps.%s: '%s' is the name of a family, a list of names or false, not %s",
            name, key, shared.show(value)))
        end
        families[key] = value
      elseif mine[key] then
        defaults[key] = value
      else
        local known = core.keys(mine)
        for _, role in ipairs(core.keys(roles[name])) do known[#known + 1] = role end
        core.unknown("setting of steps." .. name, shared.word(key), known, where)
      end
    end
    local function step(s, p)
      local why = unknown[name](p, defaults)
      if why then core.raise_at(where, string.format("steps.%s: %s", name, why)) end
      library(name).step(s, p, families, defaults, mine, where)
    end
    params[step], lacks[step] = mine, function(p) return unknown[name](p, defaults) end
    return step
  end
end

for name in pairs(own) do makers[name] = maker(name) end
-- Answer the query `model_size`: the parameters and flops of the model of steps.transformer.
function makers.model_size(_, _, p) return library "transformer".size(p, own.transformer(), core.where()) end

-- Return whether a step is a bundled step whose calls are not known with these parameters.
local function is_unknown(step, p) return lacks[step] ~= nil and lacks[step](p) ~= nil end

return { makers = makers, params = params, is_unknown = is_unknown }
