-- SPDX-License-Identifier: MIT
--
-- How the tables of a system speak about our recipe of it. Per system:
--   recipe    name of the bundled recipe; its parameters carry the system's argument names
--   kinds     recorded name of a kind of group -> family
--   query     recorded column -> name of the query and its arguments (default: the column's)

local systems = {}

local function suffixed(names)
  local kinds = {}
  for _, name in ipairs(names) do kinds[name .. "_group"] = name end
  return kinds
end

systems.picotron = {
  recipe = "picotron",
  kinds = suffixed { "tp", "cp", "pp", "dp", "cp_dp", "pp_dp" },
}

systems.megatron_deepspeed = {
  recipe = "megatron_deepspeed",
  kinds = {
    tensor_model_parallel_group = "tp", pipeline_model_parallel_group = "pp", data_parallel_group = "dp",
    data_parallel_group_gloo = "dp_gloo", sequence_parallel_group = "sp", sequence_data_parallel_group = "sp_dp",
    model_parallel_group = "mp", embedding_group = "embd", position_embedding_group = "pos_embd",
    amax_reduction_group = "amax",
  },
}

-- "getter(flag=True)@virtual_rank=1" -> "getter", { flag = true, virtual_rank = 1 }
local function default_query(column)
  local name, args = column:match("^[%w_]+"), {}
  for key, value in column:gmatch("([%w_]+)=([%w_]+)") do
    if value == "True" or value == "False" then
      args[key] = value == "True"
    else
      args[key] = math.tointeger(tonumber(value)) or value
    end
  end
  return name, args
end

for _, system in pairs(systems) do system.query = system.query or default_query end

return systems
