-- Qwen3-235B-A22B: Qwen team 2025, arXiv 2505.09388, table 2, and the model's config.json. The paper has no layout; the
-- layout here, 8 stages of 12 layers, but 11 on the first and the last, is NVIDIA's (Megatron-Bridge, recipes/qwen).

return recipe {
  base = "megatron",
  doc = "Qwen3-235B-A22B: 94 layers on 8 stages, tp 4, ep 8",
  params = {
    tp = 4, pp = 8, ep = 8, etp = 1, embedding_in_split = true, loss_in_split = true, layers = 94, hidden = 4096,
    heads = 64, kv_heads = 4, head_dim = 128, qk_norm = true, ffn = 12288, gated = true, vocab = 151936, tied = false,
    bias = false, norm = "rms", positions = "rope", experts = 128, topk = 8, moe_ffn = 1536, dropless = true,
    seq = 4096, global_batch = 512, sequence_parallel = true, zero = 1,
    recompute = "selective",
  },
}
