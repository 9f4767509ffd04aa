-- SPDX-License-Identifier: MIT
--
-- A kind is the global of a GroupCoordinator, KIND.cpu_group its twin; a column is KIND.PROPERTY.

local function family(kind)
  local device = kind:match "^(.*)%.cpu_group$"
  local name = (device or kind):gsub("^world$", "world_group"):gsub("_prefill_tp_group$", "_prefill_tp")
  return device and name .. "_cpu" or name
end

return {
  recipe = "vllm",
  backend = "nccl",
  kinds = family,
  query = function(column)
    local kind, property = column:match "^(.*)%.([%w_]+)$"
    return property, { group = family(kind) }
  end,
}
