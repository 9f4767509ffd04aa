-- SPDX-License-Identifier: MIT
--
-- Versions of Megatron-core, and open pull requests, which are on top of one.
local core = require "systems.megatron_core"
local parse = require("adapter").query

local kinds = {
  data_parallel_group_with_cp_ag = "dp_cp_ag",
  tp_gtp_weight_remat_group = "tp_gtp_remat", expert_tp_gtp_weight_remat_group = "expt_tp_gtp_remat",
  inter_partial_data_parallel_group_with_cp = "inter_dp_cp", loss_group = "loss",
  engram_data_parallel_group = "engram_dp", engram_data_parallel_group_gloo = "engram_dp_gloo",
  engram_embedding_parallel_group = "engram_embedding_parallel",
  engram_embedding_parallel_group_gloo = "engram_embedding_parallel_gloo",
  engram_model_parallel_group = "engram_model_parallel",
}

local version_of = {
  ["0.16.1"] = "0.16", ["0.17.1"] = "0.17", dev = "dev", ["pr-6683"] = "0.19", ["pr-6197"] = "0.19",
  ["pr-5318"] = "dev", ["pr-5014"] = "0.17",
}

return {
  recipe = "megatron",
  unheld = core.unheld,
  kinds = function(kind)
    local size = kind:match "^dynamic_dp_cp_groups%[(%d+)%]$"
    return size and "dynamic_dp_cp_" .. size or kinds[kind] or core.kinds(kind)
  end,
  arguments = function(args, case)
    local all = { version = version_of[case.version], create_tp_gtp_remat_groups = case.version == "pr-6683" }
    for name, value in pairs(args) do all[name] = value end
    return all
  end,
  ask = function(job, column, rank) -- a getter of a group, or a query
    local family = kinds[column]
    if not family then return job:query(rank, parse(column)) end
    local state = job:state(rank)
    local group = state:has(family) and state[family]
    return group and { group = group.ranks } or nil
  end,
}
