-- SPDX-License-Identifier: MIT
--
-- Kinds are dims of the mesh and flattened ones, which the families are named after.

local unsupported = { pipeline_parallel_rank = true, context_parallel_rank = true } -- accelerate raises for them

return {
  recipe = "accelerate",
  kinds = function(kind) return kind end,
  free = function(case, _, groups) return #groups == 1 and #groups[1] == case.world end, -- the world's own group
  ask = function(job, column, rank)
    if unsupported[column] then return nil end
    local dim = column:match "^rank in (.*)$"
    if dim then return job:query(rank, "get_local_rank", { mesh_dim = dim }) end
    return job:query(rank, column)
  end,
}
