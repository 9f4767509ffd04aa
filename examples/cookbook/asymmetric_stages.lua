-- Pipeline stages with different tensor parallelism: a wide first stage for a large embedding, then narrow ones.
return recipe {
  params = { stages = param.list({ 4, 2, 2 }, "tensor-parallel size of each stage"), dp = 2 },
  build = function(world, p)
    local t, tp, from, entry = topology(world), {}, 0, {}
    for i, size in ipairs(p.stages) do
      local stage = grid(world:window(from, size * p.dp), "tp-dp", { tp = size, dp = p.dp })
      tp[i], from = stage "tp", from + size * p.dp
      entry[i] = stage "tp":pick(0)
    end
    t.tp = union(table.unpack(tp))
    t.pipe = zip(table.unpack(entry)) -- the first rank of a tp group sends to the next stage, where tp broadcasts
    t.stages = t.pipe:pairs()
    covers(t.tp)
    return t
  end,
}
