-- Options of Megatron's families: options of NCCL by Megatron's keys of groups, its timeout, its streams of high
-- priority, and the family whose reductions run in the network (SHARP).

local function seconds(minutes)
  local most = 1e9 // 60
  if minutes and not (minutes > 0 and minutes <= most) then
    error(string.format("distributed_timeout_minutes is more than 0 and at most %d, not %s", most, tostring(minutes)))
  end
  return minutes and 60 * minutes
end

-- Return the options of a key: fields of NCCL, and torch's field for the priority. They are tried on `family`, so that
-- an error can name the key.
local function choice_of(family, key, fields)
  if type(fields) ~= "table" then
    error(string.format("nccl_communicator_config has %s for '%s'; a table such as {\"max_ctas\":8} would do",
      tostring(fields), key))
  end
  local urgent = fields.is_high_priority_stream
  if urgent ~= nil and type(urgent) ~= "boolean" then
    error(string.format("nccl_communicator_config for '%s': is_high_priority_stream is %s; true or false would do", key,
      tostring(urgent)))
  end
  local choice = { nccl = {}, high_priority = urgent }
  for field, value in pairs(fields) do
    if field ~= "is_high_priority_stream" then choice.nccl[field] = value end
  end
  local ok, said = pcall(family.with, family, choice)
  if not ok then
    local message = table.concat(string.split(said, ": "), ": ", 2) -- without its position
    error(string.format("nccl_communicator_config for '%s': %s", key, message))
  end
  return choice
end

-- Return the NCCL options by key, given as a table or in a file.
local function nccl_config(p)
  local given, of_file = p.nccl_communicator_config, p.nccl_communicator_config_path
  for _ in pairs(of_file and given or {}) do
    error "nccl_communicator_config and nccl_communicator_config_path are both given; one of them would do"
  end
  return of_file or given
end

-- Refuse a wrong group of SHARP.
local function check_sharp(sharp, p)
  if sharp and sharp ~= "dp" and sharp ~= "dp_replica" then
    error("sharp_enabled_group is 'dp' or 'dp_replica', not '" .. sharp .. "'")
  end
  if sharp and not p.use_sharp then error("sharp_enabled_group '" .. sharp .. "' needs use_sharp=true") end
  if sharp == "dp_replica" and p.num_distributed_optimizer_instances == 1 then
    error("sharp_enabled_group 'dp_replica' needs num_distributed_optimizer_instances of 2 or more, not 1")
  end
end

local function copy(options)
  local own = {}
  for name, value in pairs(options) do own[name] = value end
  return own
end

-- Megatron's keys of NCCL options, which for some families differ from the families' names.
local keys = string.split("gtp_remat dp_cp intra_dp_cp gtp_remat_dp gtp_remat_dp_cp dp cp hcp mp tp pp embd pos_embd "
  .. "tp_dp tp_dp_cp tp_cp expt_gtp_remat ep ep_tp tp_ep_mp tp_ep_pp tp_ep_gtp_remat_pp ep_dp intra_ep_dp inter_ep_dp "
  .. "ep_gtp_remat_dp intra_dist_opt_instance tp_gtp_remat expt_tp_gtp_remat engram_dp engram_embedding_parallel "
  .. "engram_model_parallel", " ")

-- Return for each key the options of its families; inter_dp_cp has those of inter_ep_dp, except SHARP. Options are
-- tried on the family `all`. The keys in the list `urgent` get a high priority.
return function(all, p, urgent)
  local o, common = {}, { timeout = seconds(p.distributed_timeout_minutes) }
  for _, key in ipairs(keys) do o[key] = common end
  local function own(key) -- a copy that other keys do not share
    o[key] = copy(o[key])
    return o[key]
  end
  local function options_of(key, parameter)
    if o[key] then return own(key) end
    error(string.format("%s names '%s', which is not a key of groups; there are %s", parameter, tostring(key),
      table.concat(keys, ", ")))
  end
  for key, fields in pairs(nccl_config(p)) do
    local chosen = options_of(key, "nccl_communicator_config")
    for option, value in pairs(choice_of(all, key, fields)) do chosen[option] = value end
  end
  for _, key in ipairs(urgent) do options_of(key, "high_priority_stream_groups").high_priority = true end
  o.inter_dp_cp = o.inter_ep_dp

  local sharp = p.sharp_enabled_group
  check_sharp(sharp, p)
  if p.use_sharp then -- the network serves only the first communicator that is created
    local n = p.num_distributed_optimizer_instances
    local shared = n == (p.expert_num_distributed_optimizer_instances or n) -- by dense layers and experts
    local chosen = own(sharp ~= "dp_replica" and "dp_cp" or shared and "inter_ep_dp" or "inter_dp_cp")
    local nccl = { collnet_enable = true }
    for field, value in pairs(chosen.nccl or {}) do nccl[field] = value end
    chosen.first, chosen.nccl = true, nccl
  end
  return o
end
