-- SPDX-License-Identifier: MIT
--
-- Cases of the recipe mindspeed for systems_spec.lua, which explains the fields.

local megatron = loadfile "tests/lua/systems/megatron.lua"(...)

local own = {
  context_parallel_algo = { "kvallgather_cp_algo", { cp = 4 } },
  ulysses_degree_in_cp = { 2, { cp = 4, cp_algo = "hybrid_cp_algo" }, { cp = 4 } },
  cp_window_size = { 2, { cp = 4 } }, use_cp_send_recv_overlap = { true, { cp = 4 } },
  enable_overlap_ag_with_matmul = { true, { tp = 4, tp_2d = true, tp_x = 2, tp_y = 2 } },
  enable_backward_overlap_ag_with_matmul = { true, { tp = 4, tp_2d = true, tp_x = 2, tp_y = 2 } },
  optimize_send_recv_comm = { true, { pp = 2 } }, balanced_moe_experts = { true, { ep = 4 } },
  trans_hot_expert_group_num = { 2, { balanced_moe = true } }, balanced_moe_hot_expert_num = { 2, { balanced_moe = true } },
  gtp_remat_size = { 2, { version = "0.19" } }, expert_gtp_remat_size = { 2, { version = "0.19" } },
  rank_offset = { 4, { version = "0.19" } }, create_all_gather_groups = { true, { version = "0.19" } },
}
for name, value in pairs(megatron.values) do own[name] = own[name] or value end

return {
  base = "megatron",
  refused = {
    { "an unknown algorithm", { cp_algo = "ring" }, "context_parallel_algo 'ring' is unknown; megatron_cp_algo, ulysses_cp_algo, "
      .. "hybrid_cp_algo, adaptive_cp_algo, hybrid_adaptive_cp_algo or kvallgather_cp_algo would do",
      would = { { cp_algo = "ulysses_cp_algo" }, { cp_algo = "adaptive_cp_algo" } } },
    { "a hybrid without its Ulysses", { cp = 4, cp_algo = "hybrid_cp_algo" },
      "hybrid_cp_algo needs ulysses_degree_in_cp; 2 would do", would = { { ulysses = 2 } } },
    { "Ulysses without a ring", { cp = 8, cp_algo = "hybrid_cp_algo", ulysses = 8 },
      "ulysses_degree_in_cp 8 leaves no ring of 2 ranks or more in context_parallel_size 8; 4 would do", would = { { ulysses = 4 } } },
    { "windows that do not cut the ring", { cp = 8, window = 3 },
      "cp_window_size 3 does not cut a ring of 8 ranks into 2 windows or more; 2 or 4 would do",
      would = { { window = 2 }, { window = 4 } } },
    { "one window of the whole ring", { cp = 8, cp_algo = "hybrid_cp_algo", ulysses = 2, window = 4 },
      "cp_window_size 4 does not cut a ring of 4 ranks into 2 windows or more; 2 would do", would = { { window = 2 } } },
    { "dims that do not make tp", { tp = 8, tp_2d = true, tp_x = 2, tp_y = 2 },
      "tp_x 2 x tp_y 2 is not tensor_model_parallel_size 8; tp_x 2 with tp_y 4 would do", would = { { tp_y = 4 } } },
    { "experts in two dims", { tp = 2, tp_2d = true, tp_x = 2, ep = 2 },
      "tp_2d takes no experts; expert_model_parallel_size 1 would do instead of 2", would = { { ep = 1 } } },
    { "two dims beside a hybrid", { tp = 2, tp_2d = true, tp_x = 2, cp_algo = "hybrid_cp_algo" },
      "tp_2d does not go with context_parallel_algo 'hybrid_cp_algo'; megatron_cp_algo or ulysses_cp_algo would do",
      would = { { cp_algo = "megatron_cp_algo" } } },
  },
  layouts = {
    { cp = 8, cp_algo = "hybrid_cp_algo", ulysses = 2, window = 2, cp_overlap = true }, {}, { cp = 8, window = 4 },
    { tp = 4, cp = 2, tp_2d = true, tp_x = 2, tp_y = 2, ag_overlap = true, cp_overlap = true },
    { tp = 2, pp = 2, vpp = 2, ep = 2, balanced_moe = true, embd = "all", hybrid_cp = true, pp_overlap = true },
    { cp = 4, pp = 2, pp_overlap = true, cp_algo = "hybrid_adaptive_cp_algo", ulysses = 2, hcp = { 2, 2 } },
    { version = "dev", dynamic_cp = true, loss = { -2, -1 }, pp = 2, cp_algo = "kvallgather_cp_algo", instances = 2 },
    { version = "0.19", gtp = 2, egtp = 2 },
  },
  asks = megatron.asks,
  silent = megatron.silent,
  values = own,
}
