-- Data-parallel attention with tensor-parallel experts, as in inference engines for models with latent attention, whose
-- KV cache cannot be cut by heads. Attention is cut over attn_tp ranks, and each group of attn_tp ranks has its own
-- requests. Experts are cut over all tp ranks of an engine. The two grids are over the same ranks.
--
--   moongrid plan examples/dp_attention.lua --world 16 tp=8 attn_tp=2 ep=4
--   moongrid move examples/dp_attention.lua --world 16 tp=8 ep=8 vs tp=8 ep=4      when ranks of ep become ranks of tp

return recipe {
  doc = "Attention over attn_tp ranks with its own requests, experts over ep x moe_tp, both in an engine of tp ranks",
  params = {
    tp = param.size(8, "ranks of an engine"),
    attn_tp = param.size(1, "ranks of an engine that share the heads of attention"),
    ep = param.size(1, "pieces of the experts in an engine; tp / ep ranks share each expert"),
    experts = param.size(16, "experts of a layer"),
    layers = param.size(4, "layers"),
    hidden = param.size(512, "elements of a token"),
    heads = param.size(16, "heads of queries"),
    width = param.size(256, "elements between the two halves of an expert"),
  },
  build = function(world, p)
    local attention = grid(world, "attn_tp-attn_dp-replica",
      { attn_tp = p.attn_tp, attn_dp = p.tp // p.attn_tp, replica = fill })
    local moe = grid(world, "moe_tp-ep-replica", { moe_tp = p.tp // p.ep, ep = p.ep, replica = fill })
    local t = topology(world)
    t.attention = attention
    t.moe = moe
    t.attn_tp = attention "attn_tp"                -- all-reduce of attention
    t.attn_dp = attention "attn_dp"                -- tokens are gathered over it before the experts
    t.tp = attention("attn_tp", "attn_dp")         -- the engine: the same ranks as moe_tp x ep
    t.moe_tp = moe "moe_tp"
    t.ep = moe "ep"
    same(t.tp, moe("moe_tp", "ep"))
    t.query = tensor { axes = { { "layer", p.layers }, { "q", p.heads * 64 }, { "hidden", p.hidden } }, type = "bf16",
      over = "attention", cut = { q = { "attn_tp", unit = 64 } } }
    t.up = tensor {
      axes = { { "layer", p.layers }, { "expert", p.experts }, { "width", p.width }, { "hidden", p.hidden } },
      type = "bf16", over = "moe", cut = { expert = "ep", width = "moe_tp" },
    }
    return t
  end,
}
