-- SPDX-License-Identifier: MIT
local adapter = require "adapter"

-- What a mode or setter of the file changes, for all ranks from then on; the first rank tells at once whether
-- it is refused.
local function set(job, name, value)
  job.recipe:set(job.plan:dry(0), name, value)
  job.set[#job.set + 1] = { name, value }
end

local function initialize(job, args)
  job.set = {}
  job:initialize(args)
end

local calls = {
  initialize_model_parallel = initialize,
  none = function(job, args) initialize(job, { initialize = false, version = args.version }) end,
  set_training_mode = function(job) set(job, "training", true) end,
  set_eval_mode = function(job) set(job, "training", false) end,
}
-- The calls of the table, with the size that is unset by None.
local function set_size(of)
  return function(job, args)
    if of == "sequence_parallel" then set(job, of .. "_world_size_none", args.world_size == nil) end
    set(job, of .. "_world_size", args.world_size)
  end
end

for _, of in ipairs { "sequence_parallel", "sequence_data_parallel" } do
  calls["set_" .. of .. "_world_size"] = set_size(of)
  calls["set_" .. of .. "_rank"] = function(job, args) set(job, of .. "_rank", args.rank) end
end

return {
  recipe = "optimum_habana",
  kinds = {
    tensor_model_parallel_group = "tp", pipeline_model_parallel_group = "pp", data_parallel_group = "dp",
    data_parallel_group_gloo = "dp_gloo", sequence_parallel_group = "sp", sequence_data_parallel_group = "sp_dp",
    model_parallel_group = "mp", embedding_group = "embd", position_embedding_group = "pos_embd",
    amax_reduction_group = "amax",
  },
  arguments = function(args, case)
    args.version = case.version or "f3e24ce9"
    return args
  end,
  calls = calls,
  -- "getter@training=False,sp_rank=1": with these settings, which the other columns do not have
  ask = function(job, column, rank)
    local query, settings = adapter.query(column)
    local state = job.plan:dry(rank)
    for _, done in ipairs(job.set) do job.recipe:set(state, done[1], done[2]) end
    for name, value in pairs(settings) do job.recipe:set(state, name, value) end
    return job.recipe:ask(state, query)
  end,
}
