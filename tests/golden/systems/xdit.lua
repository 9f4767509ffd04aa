-- SPDX-License-Identifier: MIT
--
-- xDiT's GroupCoordinator is vLLM's, with two groups of each kind for a pipeline of two stages.
local vllm = require "systems.vllm"

local own = {
  ["pp.device_groups[1]"] = "pp_back", ["pp.cpu_groups[1]"] = "pp_back_cpu", ["pp.skip_device_group"] = "pp_skip",
  ["sp.ulysses_group"] = "ulysses", ["sp.ring_group"] = "ring",
}

return {
  recipe = "xdit",
  backend = function(_, kind, backend) -- yunchang names none
    return backend or kind ~= "sp.ulysses_group" and kind ~= "sp.ring_group" and "nccl" or nil
  end,
  kinds = function(kind) return own[kind] or vllm.kinds(kind) end,
  query = function(column)
    if column:find(".", 1, true) then return vllm.query(column) end
    return column, {}
  end,
}
