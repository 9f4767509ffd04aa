-- Mixtral 8x7B: Jiang et al. 2024, arXiv 2401.04088, table 1. The paper has no layout; this is for 2 nodes of 8 GPUs.

return recipe {
  base = "megatron",
  doc = "Mixtral 8x7B: tp 2, ep 8",
  params = {
    tp = 2, ep = 8, etp = 1, layers = 32, hidden = 4096, heads = 32, kv_heads = 8, head_dim = 128, ffn = 14336,
    gated = true, vocab = 32000, tied = false, bias = false, norm = "rms", positions = "rope", experts = 8, topk = 2,
    dropless = true, seq = 4096, global_batch = 256, sequence_parallel = true, zero = 1,
    recompute = "selective",
  },
}
