-- Reinforcement learning: weights are trained in one layout and used for generation in another, each on a window of one
-- world. Both layouts are this recipe with different values of its parameters. At every step the weights are sent from
-- the first layout to the second, as few bytes as possible.
--
--   moongrid move examples/rl_sync.lua --world 16 vs first=8 tp=2 pp=1
--   mpirun -n 16 rl_sync examples/rl_sync.lua vs first=8 tp=2 pp=1          (examples/rl_sync.c: 20 steps of it)

return recipe {
  doc = "The weights of a transformer on a window of the world, as they are trained or as they generate",
  params = {
    first = param.index(0, "first rank of the window"),
    ranks = param.size(8, "ranks of the window"),
    tp = param.size(4, "tensor-parallel size"),
    pp = param.size(2, "pipeline stages"),
    layers = param.size(4, "transformer layers"),
    hidden = param.size(384, "elements of a token"),
    heads = param.size(8, "attention heads"),
    kv_heads = param.size(4, "heads of keys and values"),
    head = param.size(48, "elements of a head"),
    ffn = param.size(1024, "elements between the two halves of a layer's MLP"),
    vocab = param.size(5000, "size of the vocabulary, in tokens"),
    tied = param.flag(false, "the last stage also has the embedding, in place of the tensor `output`"),
  },
  idle = "allow", -- ranks of the other window
  build = function(world, p)
    local g = grid(world:window(p.first, p.ranks), "tp-dp-pp", { tp = p.tp, pp = p.pp, dp = fill })
    local t = topology(world)
    t.grid = g
    t.tp = g "tp"
    t.dp = g "dp"
    t.pp = g "pp"
    local function weight(axes, cut, on) return tensor { axes = axes, type = "bf16", cut = cut, on = on } end
    local layer, hidden, vocab = { "layer", p.layers }, { "hidden", p.hidden }, { "vocab", p.vocab }
    local first, last = g "pp":pick(0), g "pp":pick(-1)
    local q, kv = p.heads * p.head, p.kv_heads * p.head

    t.embedding = weight({ vocab, hidden }, { vocab = "tp" }, p.tied and g "pp":pick(0, -1) or first)
    -- Heads are not cut. Queries, keys and values are cut separately, so all ranks must have equally many heads of keys
    -- and values, and equally many heads of the queries that use them.
    if p.heads % p.kv_heads > 0 or p.kv_heads % p.tp > 0 then
      error(("tp %d must divide kv_heads %d, and kv_heads must divide heads %d"):format(p.tp,
        p.kv_heads, p.heads))
    end
    t.qkv = weight({ layer, { "qkv", q + 2 * kv }, hidden },
      { layer = "pp", qkv = { "tp", parts = { q, kv, kv }, unit = p.head } })
    t.attention = weight({ layer, hidden, { "q", q } }, { layer = "pp", q = { "tp", unit = p.head } })
    t.gate_up = weight({ layer, { "gate_up", 2 * p.ffn }, hidden },
      { layer = "pp", gate_up = { "tp", parts = { p.ffn, p.ffn } } })
    t.down = weight({ layer, hidden, { "ffn", p.ffn } }, { layer = "pp", ffn = "tp" })
    t.norms = weight({ layer, { "norm", 2 }, hidden }, { layer = "pp" })
    t.last_norm = weight({ hidden }, {}, last)
    if not p.tied then t.output = weight({ vocab, hidden }, { vocab = "tp" }, last) end
    return t
  end,
}
