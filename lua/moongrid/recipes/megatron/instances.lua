-- Instances of the distributed optimizer: each cuts the optimizer's state into shards over its own ranks. Families
-- between the instances, called links here, join the replicas of a shard. Experts may have another number of instances.

local arithmetic = ...

-- Check that n instances divide a data-parallel size. A suggested number divides `other`, too, if it is given.
local function check_count(p, parameter, n, size, what, other)
  local gtp, egtp = p.gtp_remat_size, p.expert_gtp_remat_size
  if n > 1 and gtp * egtp > 1 then
    error(string.format("%s %d excludes gtp_remat_size %d and expert_gtp_remat_size %d; set it to 1, or both of them",
      parameter, n, gtp, egtp))
  end
  if size % n ~= 0 then
    error(string.format("%s %d does not divide the %d rank%s of %s; %s would do", parameter, n, size,
      size == 1 and "" or "s", what, arithmetic.nearest(n, size, function(k) return (other or size) % k == 0 end)))
  end
end

local function check(p, n, expert_n, dense, expert)
  local own, for_dense = p.expert_num_distributed_optimizer_instances, "num_distributed_optimizer_instances"
  check_count(p, for_dense, n, dense, "dp x cp", not own and expert)
  local for_experts = own and "expert_" .. for_dense or for_dense
  check_count(p, for_experts, expert_n, expert, "expert data parallel", not own and dense)
end

-- Return whether two families link the same replicas. Shifted copies of one group cover a window in only one way, so it
-- is enough to compare group 0.
local function same_replicas(a, b)
  local ranks = b:ranks(0)
  for i, rank in ipairs(a:ranks(0)) do
    if rank ~= ranks[i] then return false end
  end
  return true
end

-- Return the shards inside an instance, of dense layers and of experts, and the links of replicas between instances.
-- data, expert_data: the families that n and expert_n instances cut.
return function(p, n, expert_n, data, expert_data)
  check(p, n, expert_n, data.size, expert_data.size)
  local expert_shards, expert_replicas = expert_data:split(expert_data.size // expert_n)
  if n ~= expert_n then
    local shards, replicas = data:split(data.size // n, { table = true }) -- perhaps without a rule
    return shards, expert_shards, replicas, expert_replicas
  end
  -- With one number, dense layers and experts must have the same instances. Those of experts follow a rule, so a dense
  -- family without a rule does not fit.
  local fits, shards, replicas = pcall(data.split, data, data.size // n)
  if not (fits and same_replicas(replicas, expert_replicas)) then
    error(string.format("order '%s' cuts other optimizer instances out of the dense grid than out of the expert "
      .. "grid; num_distributed_optimizer_instances 1 would do instead of %d", p.order, n))
  end
  return shards, expert_shards, replicas, expert_replicas
end
