-- GPT-3 175B: Brown et al. 2020, arXiv 2005.14165, table 2.1. The layout and the padded vocabulary are those of
-- Narayanan et al. 2021, arXiv 2104.04473, table 2.

return recipe {
  base = "megatron",
  doc = "GPT-3 175B in Megatron's layout: tp 8, pp 12",
  params = {
    tp = 8, pp = 12, layers = 96, hidden = 12288, heads = 96, vocab = 51200, seq = 2048, global_batch = 1536,
    recompute = "full",
  },
}
