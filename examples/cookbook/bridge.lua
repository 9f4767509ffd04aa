-- An encoder of images before a language model: the encoder's output goes only to the first stage of the model.
return recipe {
  params = { encoder = param.size(4, "ranks of the encoder"), tp = 2, pp = 2 },
  build = function(world, p)
    local encoder = grid(world:window(0, p.encoder), "tp-dp", { tp = p.tp, dp = fill })
    local model = grid(world:window(p.encoder), "tp-dp-pp", { tp = p.tp, pp = p.pp, dp = fill })
    local t = topology(world)
    t.encoder = encoder
    t.model = model
    t.tp = union(encoder "tp", model "tp")
    t.dp = union(encoder "dp", model "dp")
    t.pp = model "pp"
    t.bridge = zip(encoder "tp", model "tp":where { pp = 0 }, "spread")
    return t
  end,
}
