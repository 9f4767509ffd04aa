-- SPDX-License-Identifier: MIT
--
-- weights.lua - tensors that a move sends to other ranks, for gpu-test.
return recipe {
  doc = "Weights cut over tp, and a flat optimizer state over dp",
  params = { tp = 1 },
  build = function(world, p)
    local g = grid(world, "tp-dp", { tp = p.tp, dp = fill })
    local t = topology(world)
    t.dense = g
    t.tp, t.dp = g "tp", g "dp"
    t.mlp = tensor { axes = { { "out", 4096 }, { "in", 1024 } }, type = "bf16", cut = { out = "tp" } }
    t.proj = tensor { axes = { { "out", 1024 }, { "in", 4096 } }, type = "bf16", cut = { ["in"] = "tp" } }
    t.moments = tensor { axes = { { "i", 1 << 20 } }, type = "f32", cut = { i = "dp" } }
    return t
  end,
}
