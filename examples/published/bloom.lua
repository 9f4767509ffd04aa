-- BLOOM 176B: BigScience 2022, arXiv 2211.05100, table 3 and section 3.4. The embedding and the loss count as layers,
-- so that each of the 12 stages has 6 of 72 layers. Positions are ALiBi's, which have no parameters.

return recipe {
  base = "megatron",
  doc = "BLOOM 176B: 70 layers on 12 stages, tp 4",
  params = {
    tp = 4, pp = 12, embedding_in_split = true, loss_in_split = true, layers = 70, hidden = 14336, heads = 112,
    vocab = 250880, positions = "none", seq = 2048, micro_batch = 2, global_batch = 2048, zero = 1, recompute = "full",
  },
}
