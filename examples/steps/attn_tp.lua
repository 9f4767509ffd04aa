-- An all-reduce over tp that only some members of the group make: attention runs in groups attn_tp inside tp. Ranks
-- whose attention has no tokens in this step skip the layer, and with it the all-reduce over tp.
-- Reported as sglang#34442 and sglang#36802. With `fixed=true` they skip only the attention.
return recipe {
  params = { tp = 8, attn_tp = 4, layers = 4, fixed = false },
  build = function(world, p)
    local g = grid(world, "attn_tp-attn_dp-dp", { attn_tp = p.attn_tp, attn_dp = p.tp // p.attn_tp, dp = fill })
    local t = topology(world)
    t.dp = g "dp" t.tp = g("attn_tp", "attn_dp") t.attn_dp = g "attn_dp" t.attn_tp = g "attn_tp"
    return t
  end,
  step = function(s, p)
    local bytes = 2 * 4096 * 1024
    local has_tokens = s.attn_dp.position == 0
    s:loop(p.layers, function()
      if has_tokens then
        s:all_reduce(s.attn_tp, bytes)
        if not p.fixed then s:all_reduce(s.tp, bytes) end
      end
      if p.fixed then s:all_reduce(s.tp, bytes) end
    end)
  end,
}
