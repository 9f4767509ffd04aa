-- DeepSeek-V3: DeepSeek-AI 2024, arXiv 2412.19437, section 4.2: 61 layers on 16 stages, experts over 64 ranks. The
-- paper does not give the layers of each stage; they are those of NVIDIA's recipe (NeMo 2.3, recipes/deepseek_v3.py).
-- Multi-token prediction, which the paper counts separately, is left out: mtp_num_layers=1 adds it.

return recipe {
  base = "megatron",
  doc = "DeepSeek-V3: 61 layers on 16 stages, ep 64, latent attention",
  params = {
    pp = 16, ep = 64, first_stage_layers = 3, last_stage_layers = 2, layers = 61, hidden = 7168, heads = 128,
    head_dim = 128, q_lora_rank = 1536, kv_lora_rank = 512, ffn = 18432, gated = true, vocab = 129280, tied = false,
    bias = false, norm = "rms", positions = "rope", experts = 256, topk = 8, moe_ffn = 2048, shared_ffn = 2048,
    dense_layers = 3, expert_bias = true, dropless = true, fp8 = "e4m3", seq = 4096, global_batch = 15360, zero = 1,
    recompute = "selective",
  },
}
