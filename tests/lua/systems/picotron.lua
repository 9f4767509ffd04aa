-- SPDX-License-Identifier: MIT
--
-- Cases of the recipe picotron for systems_spec.lua, which explains the fields.

return {
  refused = {
    { "a size that does not divide", { tp = 3 }, "tp 3 does not divide the 8 ranks; nearest: tp 2 or 4, or a world of 6 or 9 ranks",
      would = { { tp = 2 }, { tp = 4 } } },
    { "sizes that make another world", { tp = 2, dp = 2 },
      "tp 2 x dp 2 = 4 does not make the 8 ranks; nearest: tp 4, or a world of 4 ranks", would = { { tp = 4 } } },
    { "a size larger than the world", { tp = 16 }, "tp 16 does not divide the 8 ranks; nearest: tp 8, or a world of 16 ranks",
      would = { { tp = 8 } } },
    { "a size of 1 that makes another world", { dp = 1 }, words = { "dp 1", "does not make the 8 ranks; nearest: tp 8" },
      would = { { tp = 8 } } },
  },
  layouts = { { tp_size = 2, pp_size = 2 }, {}, { tp_size = 8 }, { cp_size = 4 }, { pp_size = 4, cp_size = 2 },
              { tp_size = 2, cp_size = 2, pp_size = 2 } },
  values = { tp_size = { 2 }, cp_size = { 2 }, pp_size = { 2 }, dp_size = { 8 } },
}
