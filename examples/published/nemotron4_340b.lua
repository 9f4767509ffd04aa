-- Nemotron-4 340B: NVIDIA 2024, arXiv 2406.11704, tables 1 and 2: 64 replicas of 96 GPUs. The paper does not say into
-- how many chunks a stage is interleaved.

return recipe {
  base = "megatron",
  doc = "Nemotron-4 340B: 96 layers on 12 stages, tp 8",
  params = {
    tp = 8, pp = 12, layers = 96, hidden = 18432, heads = 96, kv_heads = 8, ffn = 73728, vocab = 256000, tied = false,
    bias = false, positions = "rope", seq = 4096, global_batch = 2304, sequence_parallel = true, zero = 1,
  },
}
