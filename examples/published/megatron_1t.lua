-- A trillion parameters: Narayanan et al. 2021, arXiv 2104.04473, table 1, the last row: 6 replicas of 512 GPUs.

return recipe {
  base = "megatron",
  doc = "A trillion parameters on Megatron-LM: 128 layers on 64 stages, tp 8",
  params = {
    tp = 8, pp = 64, layers = 128, hidden = 25600, heads = 160, vocab = 51200, seq = 2048, global_batch = 3072,
    recompute = "full",
  },
}
