-- SPDX-License-Identifier: MIT
--
-- Cases of the recipe sglang_diffusion for systems_spec.lua, which explains the fields.

local function rest(params, ...)
  local dims = { ... }
  return function(world)
    local all, taken = {}, 1
    for name, value in pairs(params) do all[name], taken = value, taken * (name ~= "vae" and value or 1) end
    all[dims[1] or "dp"] = (world - (params.vae or 0)) // taken
    return all
  end
end

return {
  refused = {
    { "ranks that nobody has", { ring = 4 }, words = { "does not make the 8 ranks" }, at = "xdit", would = { { ring = 8 }, { dp = 2 } } },
    { "another size of sequence parallelism", { ulysses = 2, sp = 3, dp = 4 },
      "sequence_parallel_degree 3 is not ulysses_degree 2 x ring_degree 1; 2 would do", at = "xdit", would = { { sp = 2 } } },
    { "a VAE on all ranks", { vae = 8 }, "vae_parallel_size 8 leaves no rank of the 8 for the transformer; 7 or less would do",
      at = "xdit", would = { { vae = 7 } } },
    { "a question without its group", params = { dp = 8 }, ask = "first_rank", message = "group is missing; a family such as tp would do", at = "xdit" },
    { "a question about a group without this rank", params = { dp = 6, vae = 2 }, ask = "first_rank", q = { group = "vae" },
      message = "rank 0 is in no group of 'vae'", at = "xdit" },
  },
  layouts = {
    rest { tp = 2, ulysses = 2 }, rest {}, rest({ cfg = 2 }, "tp"), rest { cfg = 2, pp = 2, tp = 2 }, rest({ cfg = 2, vae = 4 }, "ring"),
    rest({ ulysses = 4 }, "tp"), rest({}, "cfg"),
  },
  asks = { { { group = "sp" } } },
  values = {
    tensor_parallel_degree = { 2, { dp = 4 }, { dp = 8 } }, sequence_parallel_degree = { 2, { dp = 4, ulysses = 2 } },
    ulysses_degree = { 2, { dp = 4 }, { dp = 8 } }, ring_degree = { 2, { dp = 4 }, { dp = 8 } },
    pipeline_parallel_degree = { 2, { dp = 4 }, { dp = 8 } }, classifier_free_guidance_degree = { 2, { dp = 4 }, { dp = 8 } },
    data_parallel_size = { 8, nil, { tp = 8 } }, vae_parallel_size = { 4, { dp = 4 }, { dp = 8 } },
  },
}
