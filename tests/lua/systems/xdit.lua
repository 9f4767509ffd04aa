-- SPDX-License-Identifier: MIT
--
-- Cases of the recipe xdit for systems_spec.lua, which explains the fields.

local function rest(params)
  return function(world)
    local all, taken = {}, 1
    for name, value in pairs(params) do
      all[name] = value
      taken = taken * (math.type(value) == "integer" and name ~= "fs" and name ~= "vae" and value or 1)
    end
    all.dp = (world - (params.vae or 0)) // taken
    return all
  end
end

return {
  refused = {
    { "ranks that nobody has (xd-008)", { ring = 4 }, words = { "does not make the 8 ranks" }, would = { { ring = 8 }, { dp = 2 } } },
    { "another size of sequence parallelism (xd-051)", { ulysses = 2, sp = 3, dp = 4 },
      "sequence_parallel_degree 3 is not ulysses_degree 2 x ring_degree 1; 2 would do", would = { { sp = 2 } } },
    { "shards that do not divide (xd-006)", { ulysses = 4, dp = 2, fs = 3 },
      "fully_shard_degree 3 does not divide the 8 ranks of the transformer; 2 or 4 would do", would = { { fs = 2 }, { fs = 4 } } },
    { "a VAE on all ranks", { vae = 8 }, "vae_parallel_size 8 leaves no rank of the 8 for the transformer; 7 or less would do",
      would = { { vae = 7 } } },
    { "a question without its group", params = { dp = 8 }, ask = "first_rank", message = "group is missing; a family such as tp would do" },
    { "a question about a group without this rank", params = { dp = 6, vae = 2 }, ask = "first_rank", q = { group = "vae" },
      message = "rank 0 is in no group of 'vae'" },
  },
  layouts = {
    rest { ulysses = 2, ring = 2, parallel_vae = true }, rest {}, rest { pp = 2, ulysses = 2, vae = 4 }, rest { tp = 2, ulysses = 2 },
    rest { cfg = 2, pp = 4 }, rest { ring = 4, fs = 2, long_ctx_attn = false },
  },
  asks = { { { group = "pp" } } },
  values = {
    data_parallel_degree = { 8, nil, { tp = 8 } }, classifier_free_guidance_degree = { 2, { dp = 4 }, { dp = 8 } },
    sequence_parallel_degree = { 2, { dp = 4, ulysses = 2 } }, ulysses_degree = { 2, { dp = 4 }, { dp = 8 } },
    ring_degree = { 2, { dp = 4 }, { dp = 8 } }, tensor_parallel_degree = { 2, { dp = 4 }, { dp = 8 } },
    pipeline_parallel_degree = { 2, { dp = 4 }, { dp = 8 } }, fully_shard_degree = { 2, { dp = 8 } },
    vae_parallel_size = { 4, { dp = 4 }, { dp = 8 } }, use_parallel_vae = { true, { dp = 8 } }, long_ctx_attn = { false, { dp = 8 } },
  },
}
