-- SPDX-License-Identifier: MIT
--
-- furnish.lua - test everything that a family may request from NCCL besides a communicator, for gpu-test.
return recipe {
  doc = "Windows, a device communicator, and communicators split out of a parent",
  build = function(world)
    local g = grid(world, "tp-dp", { tp = 2, dp = fill })
    local t = topology(world)
    t.all = g("tp", "dp"):with { nccl = { split_share = 1 } }
    t.tp = g "tp":with { parent = "all" }
    t.kv = g("tp", "dp"):with { windows = { kv = 1 << 20, grads = 4096 } }
    t.kernels = g("tp", "dp"):with { device = { lsa_barriers = 2 } }
    return t
  end,
}
