-- Falcon-180B: Almazrouei et al. 2023, arXiv 2311.16867, tables 15 and 16: 64 replicas of 64 GPUs.

return recipe {
  base = "megatron",
  doc = "Falcon-180B: 80 layers on 8 stages, tp 8",
  params = {
    tp = 8, pp = 8, layers = 80, hidden = 14848, heads = 232, kv_heads = 8, head_dim = 64, ffn = 59392, vocab = 65024,
    tied = false, bias = false, positions = "rope", seq = 2048, global_batch = 2048, zero = 1,
  },
}
