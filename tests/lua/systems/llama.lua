-- SPDX-License-Identifier: MIT
--
-- Cases of the recipe llama for systems_spec.lua, which explains the fields.

local experts = { model_type = "mixtral", num_local_experts = 8, num_hidden_layers = 2 }
local function with(base, more)
  local all = {}
  for _, from in ipairs { base, more } do
    for key, value in pairs(from) do all[key] = value end
  end
  return all
end

return {
  refused = {
    { "a file of another kind", { config = { dim = 4096, n_heads = 32 } },
      "the file of parameters has no model_type, so it is not a config.json of Hugging Face; model_type=llama would do",
      would = { { model_type = "llama" } } },
    { "an unknown architecture", { model_type = "gpt_oss" },
      "model_type 'gpt_oss' is not among deepseek_v3, llama, mistral, mixtral, phi3, qwen2, qwen2_moe, qwen3, qwen3_moe; "
        .. "write its tensors as in this recipe (moongrid recipes llama --source)", would = { { model_type = "qwen3" } } },
    { "a quantized model", { config = { quantization_config = { quant_method = "fp8" } } },
      "the model is quantized; this recipe has only tensors of models that are not" },
    { "an unknown type", { torch_dtype = "float8" },
      "dtype 'float8' is not among bfloat16, float16, float32, float64; or give type", would = { { type = "f8_e4m3" } } },
    { "heads that are not a multiple", { num_key_value_heads = 5 },
      "num_attention_heads 32 is not a multiple of num_key_value_heads 5", would = { { num_key_value_heads = 8 } } },
    { "heads of no whole size", { num_attention_heads = 24 },
      "hidden_size 4096 is not a multiple of num_attention_heads 24; then head_dim is needed", would = { { head_dim = 128 } } },
    { "unknown names", { names = "nemo" }, "names is hf, fused or megatron, not 'nemo'",
      would = { { names = "hf" }, { names = "fused" }, { names = "megatron" } } },
    { "an ep that does not divide", with(experts, { ep = 4, num_local_experts = 6 }), "ep 4 does not divide the 6 experts",
      would = { { ep = 2 } } },
    { "an ep without experts", { ep = 2 }, "ep 2 needs a model with experts; leave ep out", would = { { ep = 1 } } },
    { "more stages than layers", { pp = 8, num_hidden_layers = 4 }, "pp 8 is more than the 4 layers", would = { { pp = 4 } } },
    { "groups of heads that tp would cut", { tp = 8, num_key_value_heads = 4, names = "megatron" },
      "tp 8 does not cut the 32 heads of queries and 4 of keys and values so that each rank has those that it uses, where q, k "
        .. "and v are one tensor; 4 would do", would = { { names = "hf" }, { tp = 4 } } },
    { "copies inside of one tensor", { tp = 8, num_key_value_heads = 4, names = "fused" },
      "tp 8 does not cut the 32 heads of queries and 4 of keys and values so that each rank has those that it uses, where q, k "
        .. "and v are one tensor; 4 would do", would = { { names = "hf" }, { tp = 4 } } },
    { "heads that ranks would have without their keys", { tp = 4, num_attention_heads = 6, num_key_value_heads = 2, head_dim = 64 },
      "tp 4 does not cut the 6 heads of queries and 2 of keys and values so that each rank has those that it uses; 2 would do",
      would = { { tp = 2 } } },
    { "more ranks than heads", { model_type = "deepseek_v3", tp = 8, num_attention_heads = 6, head_dim = 64 },
      "tp 8 is more than the 6 heads; 4 would do", would = { { tp = 4 } } },
    { "experts that are neither", with(experts, { experts = "both" }),
      "experts is each, or without names=megatron also stacked; not 'both'", would = { { experts = "each" }, { experts = "stacked" } } },
    { "too many experts", with(experts, { num_local_experts = 256, num_hidden_layers = 61 }),
      "61 layers of 256 experts are too many tensors to plan; experts=stacked has one for all experts of a layer",
      would = { { experts = "stacked" } } },
    { "tp that makes another world", { tp = 3 }, words = { "tp 3", "nearest" }, would = { { tp = 4 } } },
  },
  layouts = {
    { tp = 2, num_hidden_layers = 2 }, { num_hidden_layers = 1 }, { tp = 8, num_key_value_heads = 2, num_hidden_layers = 2 },
    { tp = 2, pp = 2, names = "megatron", num_hidden_layers = 3, tie_word_embeddings = true },
    { tp = 4, names = "fused", num_hidden_layers = 1, attention_bias = true, mlp_bias = true, model_type = "llama" },
    with(experts, { tp = 2, ep = 4, etp = 1, experts = "stacked" }), with(experts, { ep = 8, experts = "stacked" }),
    { model_type = "deepseek_v3", tp = 4, ep = 2, n_routed_experts = 8, n_shared_experts = 1, num_hidden_layers = 3,
      experts = "stacked",      q_lora_rank = 64, first_k_dense_replace = 1, moe_intermediate_size = 128 },
    { model_type = "qwen2_moe", tp = 2, num_experts = 4, num_hidden_layers = 2, shared_expert_intermediate_size = 64 },
  },
  values = {},
}
