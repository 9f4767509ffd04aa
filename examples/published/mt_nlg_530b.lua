-- Megatron-Turing NLG 530B: Smith et al. 2022, arXiv 2201.11990, sections 2.3 and 3.1: 8 replicas of 280 GPUs.

return recipe {
  base = "megatron",
  doc = "Megatron-Turing NLG 530B: 105 layers on 35 stages, tp 8",
  params = {
    tp = 8, pp = 35, layers = 105, hidden = 20480, heads = 128, vocab = 51200, seq = 2048, global_batch = 1920,
    recompute = "full",
  },
}
