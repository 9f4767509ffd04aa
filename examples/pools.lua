-- The levels of a plane-wave code such as Quantum ESPRESSO: images, pools of k-points, groups of bands. The ranks of a
-- band group share the plane waves. The ranks of an image, of a pool and of a band group are consecutive.
--
--   moongrid draw examples/pools.lua --world 16 nimage=2 npool=2 nband=2

return recipe {
  doc = "Images, pools of k-points, groups of bands, plane waves",
  params = {
    nimage = param.size(1, "images", "ni"),
    npool = param.size(1, "pools of an image", "nk"),
    nband = param.size(1, "groups of bands of a pool", "nb"),
  },
  build = function(world, p)
    local g = grid(world, "bgrp-band-pool-image", { bgrp = fill, band = p.nband, pool = p.npool, image = p.nimage })
    local t = topology(world)
    t.mesh = g
    t.intra_image = g("bgrp", "band", "pool")
    t.inter_image = g "image"
    t.intra_pool = g("bgrp", "band")
    t.inter_pool = g "pool"
    t.intra_bgrp = g "bgrp"
    t.inter_bgrp = g "band"
    return t
  end,
}
