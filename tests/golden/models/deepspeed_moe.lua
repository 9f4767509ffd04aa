-- SPDX-License-Identifier: MIT
--
-- DeepSpeed's groups.py and parallel_state_sp.py, function by function.

local ranks = require "models.ranks"

local function range(from, to, step)
  local list = {}
  for rank = from, to - 1, step or 1 do list[#list + 1] = rank end
  return list
end

-- _create_expert_and_data_parallel
local function experts_and_data(world, p, ep)
  local mp, stage = p.mp or 1, world // (p.pp_size or 1)
  if world % (p.pp_size or 1) > 0 or stage % ep > 0 or stage % mp > 0 then return nil end
  if mp > 1 and p.use_data_before_expert_parallel_ then return nil end
  local experts, data = {}, {}
  for start = 0, world - 1, stage do
    local own = range(start, start + stage)
    if mp > 1 and (p.mp_mode or "tp") == "tp" then
      own = {}
      for lane = 0, mp - 1 do
        for block = 0, stage // mp - 1 do own[#own + 1] = start + block * mp + lane end
      end
    end
    if p.use_data_before_expert_parallel_ then
      for i = 0, ep - 1 do data[#data + 1] = range(start + i * (stage // ep), start + (i + 1) * (stage // ep)) end
      for i = 0, stage // ep - 1 do experts[#experts + 1] = range(start + i, start + stage, stage // ep) end
    else
      for from = 1, stage, ep do experts[#experts + 1] = table.move(own, from, from + ep - 1, 1, {}) end
      for position = 1, ep do
        local group = {}
        for at = position, stage, ep do group[#group + 1] = own[at] end
        data[#data + 1] = group
      end
    end
  end
  return experts, data
end

-- _create_expert_data_and_model_parallel: _get_expert_parallel_ranks
local function experts_data_and_model(world, p, ep)
  local tp, pp = p.mp or 1, p.pp_size or 1
  if world % (tp * pp) > 0 or world // (tp * pp) % ep > 0 then return nil end
  local dp, lanes = world // (tp * pp), {}
  for start = 0, world - 1, world // pp do
    for lane = 0, tp - 1 do
      local own = {}
      if p.use_data_before_expert_parallel_ then
        for block = 0, dp // ep - 1 do
          local part = range(start + lane + block * tp, start + world // pp, dp // ep * tp)
          table.move(part, 1, #part, #own + 1, own)
        end
      else
        own = range(start + lane, start + world // pp, tp)
      end
      lanes[#lanes + 1] = own
    end
  end
  return ranks.runs(lanes, ep), ranks.across(lanes, ep)
end

local calls = {}

function calls.experts(world)
  local p = { expert_parallel_size_ = {}, mp = ranks.one_of { 1, 1, 2, 4 }, pp_size = ranks.one_of { 1, 1, 2 } }
  for i = 1, math.random(2) do p.expert_parallel_size_[i] = ranks.divisor(world) end
  p.mp_mode = ranks.one_of { "tp", "sp" }
  p.use_data_before_expert_parallel_ = math.random(4) == 1
  p.enable_expert_tensor_parallelism = math.random(3) == 1
  return p
end

function calls.tensor(world) return { tensor_model_parallel_size = math.random(world + 1) } end
function calls.model(world) return { model_parallel_size_ = math.random(world + 1) } end
function calls.sequence(world) return { sequence_parallel_size = math.random(world + 1) } end
function calls.zero(world) return { group_size = math.random(world + 1) } end
function calls.nodes(world) return { device_count = math.random(world + 2) } end

local function families(world, p)
  local made = {}
  for _, ep in ipairs(p.expert_parallel_size_ or {}) do
    local create = p.enable_expert_tensor_parallelism and experts_data_and_model or experts_and_data
    made["ep_size_" .. ep], made["edp_size_" .. ep] = create(world, p, ep)
    if not made["ep_size_" .. ep] then return nil, "experts do not fit" end
  end
  local size = p.tensor_model_parallel_size or p.model_parallel_size_ or p.sequence_parallel_size or p.group_size
    or math.min(p.device_count or 1, world)
  if size > world or world % size > 0 or p.sequence_parallel_size == 1 then return nil, "the size does not fit" end
  local runs = ranks.runs({ range(0, world) }, size)
  local strided = ranks.across({ range(0, world) }, size)
  if p.tensor_model_parallel_size then made.tp, made.mp, made.dp = runs, runs, strided end
  if p.model_parallel_size_ then made.mp, made.dp = runs, strided end
  if p.sequence_parallel_size then made.sp, made.sp_dp = runs, { range(0, world) } end
  if p.group_size then made.zero_param_intra = runs end
  if p.device_count then made.all_to_all_local, made.all_to_all_global = runs, size < world and strided or nil end
  return made
end

return {
  draw = function()
    local world = math.random(24)
    local call = { "experts", "experts", "experts", "tensor", "model", "sequence", "zero", "nodes" }
    return world, calls[ranks.one_of(call)](world)
  end,
  families = families,
}
