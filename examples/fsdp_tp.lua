-- Weights between FSDP, which trains, and tensor parallelism, which generates. FSDP concatenates the weights of a layer
-- and gives each rank of dp a slice, which may start and end inside a tensor; tensor parallelism cuts each tensor along
-- one of its axes. This recipe makes either layout, or both at once: FSDP of the tensors that tp has cut.
--
--   moongrid move examples/fsdp_tp.lua --world 8 vs tp=4 fsdp=false
--   moongrid move examples/fsdp_tp.lua --world 8 tp=4 fsdp=false vs
--   mpirun -n 8 moongrid run examples/fsdp_tp.lua vs tp=4 fsdp=false --move

return recipe {
  doc = "The weights of a transformer under FSDP, tensor parallelism, or both",
  params = {
    tp = param.size(1, "tensor-parallel size"),
    fsdp = param.flag(true, "the ranks of dp share the weights as slices; false: each has a copy"),
    layers = param.size(1, "transformer layers"),
    hidden = param.size(512, "elements of a token"),
    head = param.size(64, "elements of a head"),
    ffn = param.size(1376, "elements between the two halves of a layer's MLP"),
    vocab = param.size(8000, "size of the vocabulary, in tokens"),
    pad = param.size(8, "the size of a slice is a multiple of pad elements"),
    type = param.text("bf16", "of the weights"),
  },
  build = function(world, p)
    local g = grid(world, "tp-dp", { tp = p.tp, dp = fill })
    local t = topology(world)
    t.grid = g
    t.tp = g "tp"
    t.dp = g "dp"

    -- Make tensors that FSDP shards together. list: their names, axes and cuts, in the order in which they are stored.
    local function unit(prefix, list)
      local made = { over = "dp", pad = p.pad }
      for i, one in ipairs(list) do made[i] = tensor { axes = one[2], cut = one[3], type = p.type } end
      if p.fsdp then made = table.pack(flat(made)) end
      for i, one in ipairs(list) do t[prefix .. one[1]] = made[i] end
    end

    local hidden, h, f = { "hidden", p.hidden }, p.hidden, p.ffn
    local heads = { "tp", unit = p.head }
    for i = 0, p.layers - 1 do
      unit("layer" .. i .. "_", {
        { "qkv", { { "qkv", 3 * h }, hidden }, { qkv = { "tp", parts = { h, h, h }, unit = p.head } } },
        { "attention", { hidden, { "q", h } }, { q = heads } },
        { "gate_up", { { "gate_up", 2 * f }, hidden }, { gate_up = { "tp", parts = { f, f } } } },
        { "down", { hidden, { "ffn", f } }, { ffn = "tp" } },
        { "norms", { { "norm", 2 }, hidden } },
      })
    end
    unit("", {
      { "embedding", { { "vocab", p.vocab }, hidden }, { vocab = "tp" } },
      { "last_norm", { hidden } },
      { "output", { { "vocab", p.vocab }, hidden }, { vocab = "tp" } },
    })
    return t
  end,
}
