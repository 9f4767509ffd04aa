-- Llama 3 405B: Grattafiori et al. 2024, arXiv 2407.21783, tables 3 and 4, section 3.3: the first and the last of 16
-- stages have 7 layers, the others 8.

return recipe {
  base = "megatron",
  doc = "Llama 3 405B: 126 layers on 16 stages, tp 8",
  params = {
    tp = 8, pp = 16, first_stage_layers = 7, last_stage_layers = 7, layers = 126, hidden = 16384, heads = 128,
    kv_heads = 8, ffn = 53248, gated = true, vocab = 128256, tied = false, bias = false, norm = "rms",
    positions = "rope", seq = 8192, global_batch = 2048, sequence_parallel = true, zero = 1,
    recompute = "selective",
  },
}
