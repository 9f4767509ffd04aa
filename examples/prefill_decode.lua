-- Separate engines for prefill and decode: one side reads prompts, the other generates, each with its own tensor
-- parallelism, and the KV cache moves from the first side to the second. Heads of keys and values are cut by tp; if tp
-- has more ranks than heads, neighbours hold the same head. `owners` assigns requests to the engines of a side.
--
--   moongrid move examples/prefill_decode.lua --world 16 vs first=8 tp=2 owners=0,0,1,2,3,1,2,3
--   mpirun -n 16 moongrid run examples/prefill_decode.lua vs first=8 tp=2 owners=0,0,1,2,3,1,2,3 --move

return recipe {
  doc = "The KV cache of some requests, on the engines that prefill or on those that decode",
  params = {
    first = param.index(0, "first rank of this side"),
    ranks = param.size(8, "ranks of this side"),
    tp = param.size(8, "tensor-parallel size of an engine"),
    owners = param.list({ 0, 0, 0, 0, 0, 0, 0, 0 }, "the engine of each request"),
    layers = param.size(4, "layers"),
    kv_heads = param.size(4, "heads of keys and values"),
    head = param.size(64, "elements of a head"),
    tokens = param.size(512, "tokens of a request"),
  },
  idle = "allow", -- ranks of the other side
  build = function(world, p)
    local g = grid(world:window(p.first, p.ranks), "tp-engine", { tp = p.tp, engine = fill })
    local t = topology(world)
    t.engines = g
    t.tp = g "tp"
    t.kv = tensor {
      axes = { { "request", #p.owners }, { "layer", p.layers }, { "kv", 2 }, { "heads", p.kv_heads * p.head },
               { "token", p.tokens } },
      type = "bf16",
      cut = { request = { "engine", owners = p.owners }, heads = { "tp", unit = p.head, copies = true } },
    }
    return t
  end,
}
