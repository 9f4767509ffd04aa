-- An encoder and a decoder on different ranks: two grids over two windows of one world, each with its own
-- tensor parallelism, and families that join the two.
--
--   moongrid plan examples/encoder_decoder.lua --world 12 encoder=4 encoder_tp=1 decoder_tp=2 pp=2

return recipe {
  doc = "Encoder and decoder on windows of one world, joined by pipeline and embeddings",
  params = {
    encoder = param.size(4, "ranks of the encoder, the first of the world"),
    encoder_tp = param.size(1, "tensor-parallel size of the encoder"),
    decoder_tp = param.size(2, "tensor-parallel size of the decoder"),
    pp = param.size(2, "pipeline stages of the decoder"),
  },
  build = function(world, p)
    local enc = grid(world:window(0, p.encoder), "tp-dp", { tp = p.encoder_tp, dp = fill })
    local dec = grid(world:window(p.encoder), "tp-dp-pp", { tp = p.decoder_tp, pp = p.pp, dp = fill })
    local t = topology(world)
    t.encoder = enc
    t.decoder = dec
    t.tp = union(enc "tp", dec "tp") -- a family has the groups of both windows
    t.dp = union(enc "dp", dec "dp")

    -- A group is one encoder rank, then one pipeline of the decoder. (enc() makes a group of each rank.)
    t.pp = zip(enc(), dec "pp")
    t.embedding = t.pp:pick(0, 1) -- shared by the encoder and the decoder's first stage
    return t
  end,
}
