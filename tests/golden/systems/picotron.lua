-- SPDX-License-Identifier: MIT
return {
  recipe = "picotron",
  unrecorded = { world_group = true }, -- torch's own group of all ranks
  kinds = {
    tp_group = "tp", cp_group = "cp", pp_group = "pp", dp_group = "dp", cp_dp_group = "cp_dp", pp_dp_group = "pp_dp",
  },
}
