-- SPDX-License-Identifier: MIT
--
-- A tensor as torch's DTensor places it: `place` says of each dim of the mesh which axis it shards, -1 where it
-- replicates. Pieces are torch.chunk's; dims that shard one axis are nested, the first outermost.
return recipe {
  params = { mesh = param.list { 2, 4 }, shape = param.list { 8, 8 }, place = param.list { 0, 1 } },
  build = function(world, p)
    local sizes, order, axes, cut = {}, {}, {}, {}
    for i, size in ipairs(p.mesh) do
      sizes["m" .. i] = size
      table.insert(order, 1, "m" .. i) -- grids have the fastest dim first
    end
    for i, length in ipairs(p.shape) do axes[i] = { "x" .. i, length } end
    for i, axis in ipairs(p.place) do
      local name = "x" .. axis + 1
      if axis >= 0 then
        cut[name] = cut[name] or { sizes = "ceil" }
        table.insert(cut[name], "m" .. i)
      end
    end
    local t = topology(world)
    t.mesh = grid(world, table.concat(order, "-"), sizes)
    t.w = tensor { axes = axes, type = "i64", cut = cut }
    return t
  end,
}
