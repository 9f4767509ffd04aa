-- SPDX-License-Identifier: MIT
--
-- Cases of the recipe torchtitan for systems_spec.lua, which explains the fields.

return {
  refused = {
    { "shards of size 0", { dp_shard = 0 }, words = { "dp_shard 0", "-1 would do" }, would = { { dp_shard = -1 } } },
    { "an unknown version", { version = "0.2" }, "version '0.2' is unknown; 'main' or '0.3.0' would do",
      would = { { version = "main" }, { version = "0.3.0" } } },
    { "a backend of the release", { spmd_backend = "full_dtensor" },
      "spmd_backend 'full_dtensor' is not in version main; 'spmd_types' or 'partial_dtensor' would do",
      would = { { spmd_backend = "spmd_types" }, { version = "0.3.0" } } },
    { "another backend", { spmd_backend = "dtensor" },
      "spmd_backend 'dtensor' is unknown; 'spmd_types' or 'partial_dtensor' would do",
      would = { { spmd_backend = "spmd_types" }, { spmd_backend = "partial_dtensor" } } },
    { "experts that do not divide (tt-037)", { ep = 3, tp = 2, dp_replicate = 2 },
      "ep 3 x dp_replicate 2 = 6 does not divide the 8 ranks; nearest: ep 2 or 4, or a world of 6 or 12 ranks", would = { { ep = 2 }, { ep = 4 } } },
    { "more experts than ranks", { ep = 16, pp = 2 }, "ep 16 x pp 2 = 32 does not divide the 8 ranks; nearest: ep 4, or a world of 32 ranks",
      would = { { ep = 4 } } },
    { "sizes that make another world", { dp_shard = 2, tp = 2 },
      "tp 2 x dp_shard 2 = 4 does not make the 8 ranks; nearest: tp 4, or a world of 4 ranks", would = { { tp = 4 } } },
    { "a mesh there is not", params = { cp = 2, tp = 2 }, ask = "get_optional_mesh", q = { dims = { "tp", "cp" } },
      message = "dims 'tp-cp' are in no mesh together, in this order; axes of one of pp-batch-cp-tp, "
        .. "pp-dp_replicate-dp_shard-cp-tp, pp-dp_replicate-fsdp-tp, pp-dp-cp-tp, pp-dp_replicate-efsdp-ep would do" },
    { "a question without its axis", ask = "size", message = "mesh_dim is missing; an axis such as tp would do" },
    { "the group of several axes", get = "get_mesh", q = { dims = { "pp", "tp" } },
      message = "dims of a group is one axis, such as \"tp\"; a mesh of several has no group" },
    { "the group of an axis that is off", get = "get_mesh", q = { dims = "tp" },
      message = "getter 'get_mesh': there is no such group with these parameters" },
    { "the mesh of an axis that is off", params = { tp = 2 }, ask = "get_mesh", q = { dims = { "cp", "tp" } }, words = { "'cp'" } },
  },
  layouts = { { tp = 2, cp = 2, dp_replicate = 2 }, {}, { tp = 4, pp = 2 }, { dp_replicate = 2, ep = 4 },
              { ep = 8, spmd_backend = "partial_dtensor" }, { cp = 2, ep = 2, pp = 2, dp_shard = -1 },
              { cp = 2, tp = 2, version = "0.3.0", spmd_backend = "full_dtensor" } },
  asks = { { { mesh_dim = "tp", dims = { "cp", "tp" } }, { mesh_dim = "efsdp", dims = "tp" } } },
  values = {},
}
