-- SPDX-License-Identifier: MIT

return {
  recipe = "paddle_fleet",
  kinds = {
    pipe_parallel_group = "pp", data_parallel_group = "dp", model_parallel_group = "mp",
    sharding_parallel_group = "sharding", sep_parallel_group = "sep", expert_parallel_group = "ep",
    moe_sharding_parallel_group = "moe_sharding",
    context_parallel_group = "cp", cp_sharding_parallel_group = "cp_sharding", cp_mp_parallel_group = "cp_mp",
    dp_sep_parallel_group = "dp_sep", pp_mp_parallel_group = "pp_mp", check_parallel_group = "check",
    ["check_parallel_group(sharding=True)"] = "sharding_check",
  },
  unrecorded = { p2p_next = true, p2p_prev = true, p2p_next_back = true, p2p_prev_back = true }, -- only in columns
}
