-- SPDX-License-Identifier: MIT
--
-- Cases of the recipe ms_swift for systems_spec.lua, which explains the fields.

return {
  refused = {
    { "no heads", { sp = 4 }, "sequence_parallel_size 4 needs num_attention_heads; the model's number of heads would do", would = { { heads = 4 } } },
    { "a ring with padding", { sp = 8, heads = 12 }, "sequence_parallel_size 8 with 12 heads needs a ring of 2 ranks, and a ring needs padding_free; "
      .. "sequence_parallel_size 4, or padding_free=true, would do", would = { { sp = 4 }, { padding_free = true } } },
    { "a size that does not divide", { sp = 3, heads = 6 }, "sequence_parallel_size 3 does not divide the 8 ranks; 2 or 4 would do",
      would = { { sp = 2 } } },
  },
  layouts = { { sp = 8, heads = 12, padding_free = true }, {}, { sp = 4, heads = 32 }, { sp = 2, heads = 1, padding_free = true },
              { sp = 8, heads = 28, padding_free = true } },
  values = { sequence_parallel_size = { 2, { heads = 4 } }, num_attention_heads = { 2, { sp = 4, padding_free = true }, { sp = 4, heads = 4 } } },
}
