-- SPDX-License-Identifier: MIT
--
-- Cases of the recipe nanotron for systems_spec.lua, which explains the fields.

return {
  refused = {
    { "a question without its group", ask = "get_rank", message = "group is missing; a family such as tp would do" },
    { "expert parallelism (nt-040)", { ep = 2 }, "expert_parallel_size 2: nanotron's grid counts it, its size check does not, so "
      .. "no world would fit; 1 would do", would = { { ep = 1 } } },
    { "another backend (nt-045)", { backend = "gloo" }, "backend 'gloo': nanotron runs on nccl only; 'nccl' would do",
      would = { { backend = "nccl" } } },
    { "nodes that do not divide (nt-042)", { LOCAL_WORLD_SIZE = 3 },
      "local_world_size 3 does not divide the 8 ranks; nearest: local_world_size 2 or 4, or a world of 6 or 9 ranks",
      would = { { LOCAL_WORLD_SIZE = 2 }, { LOCAL_WORLD_SIZE = 4 } } },
    { "a world that is not a multiple of 8 (nt-043)", {},
      "local_world_size 8 does not divide the 12 ranks; nearest: local_world_size 6 or 12, or a world of 8 or 16 ranks", world = 12,
      would = { { local_world_size = 6 }, { local_world_size = 12 } } },
    { "sizes that make another world", { tp = 3, dp = 2 }, "tp 3 x dp 2 = 6 does not make the 8 ranks; nearest: tp 4, or a world of 6 ranks",
      would = { { tp = 4 } } },
  },
  layouts = { { tp = 2, cp = 2, pp = 2 }, {}, { tp = 8 }, { pp = 4, LOCAL_WORLD_SIZE = 4 }, { cp = 4, tp = 2 }, { cp = 2, ep = 1 } },
  asks = { { {} }, get_rank = { { group = "tp" }, { group = "world_pg" }, { group = "tp_and_ep" } }, get_size = { { group = "local_pg" } },
           get_local_ranks = { {}, { world_rank = 7 } }, get_global_rank = { {}, { tp_rank = 1, pp_rank = 0 } } },
  values = { tensor_parallel_size = { 2 }, pipeline_parallel_size = { 2 }, data_parallel_size = { 4, { tp = 2 } },
             context_parallel_size = { 2 }, expert_parallel_size = { 1 }, local_world_size = { 4 } },
}
