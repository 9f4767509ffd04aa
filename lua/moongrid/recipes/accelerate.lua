-- Hugging Face accelerate's ParallelismConfig, which Trainer, TRL and axolotl use: one DeviceMesh of the dims with a
-- size above 1 (tp is the fastest, then sp, cp, dp_shard, dp_replicate), and three dims that are flattened from these.
-- Source: huggingface/accelerate 1.15.0, accelerate/parallelism_config.py (build_device_mesh, _validate_accelerator),
-- accelerate/accelerator.py (the ranks).
-- As in the source: plain data parallelism (all sizes 1) makes no groups, since DDP uses the group of all ranks.
-- sp_size above 1 makes no groups, since DeepSpeed makes its own; then the product of the sizes need not be the world.
-- Recorded: 55 cases of 1 to 33 ranks, 15 of them refused: tests/golden/accelerate.json.

local dims = { "dp_replicate", "dp_shard", "cp", "sp", "tp" } -- slowest first

-- Return the size of each dim, and their product. As in accelerate, if all sizes are 1 each rank is a replica.
local function sizes_of(p, world)
  local sizes, total = {}, 1
  for _, dim in ipairs(dims) do
    sizes[dim] = p[dim .. "_size"]
    total = total * sizes[dim]
  end
  if total == 1 then sizes.dp_replicate, total = world, world end
  return sizes, total
end

local function has_mesh(p)
  return p.sp_size == 1 and p.tp_size * p.cp_size * p.dp_shard_size * p.dp_replicate_size > 1
end

-- Return the dims of the list `some` whose sizes are above 1.
local function enabled(p, world, some)
  local sizes, names = sizes_of(p, world), {}
  for _, dim in ipairs(some) do
    if sizes[dim] > 1 then names[#names + 1] = dim end
  end
  return names
end

local function check(p, world)
  if p.cp_size > 1 and p.sp_size > 1 then
    error(string.format("cp_size %d and sp_size %d exclude each other; cp_size 1 or sp_size 1 would do", p.cp_size,
      p.sp_size))
  end
  if p.tp_size * p.cp_size > 1 and p.dp_replicate_size > 1 and p.dp_shard_size == 1 then
    error(string.format("tp_size %d and cp_size %d do not go with dp_replicate_size %d alone; dp_replicate_size 1, or "
      .. "a dp_shard_size above 1, would do", p.tp_size, p.cp_size, p.dp_replicate_size))
  end
  local _, total = sizes_of(p, world)
  if p.is_fsdp2 and p.dp_shard_size * p.cp_size == 1 then
    error(string.format("FSDP has nothing to shard over: dp_shard_size and cp_size are 1; dp_shard_size %d, or "
      .. "is_fsdp2=false, would do", math.max(2, world // math.min(world, total == world and 1 or total))))
  end
end

-- Return a query that lists the given dims whose sizes are above 1, in the given order.
local function names_of(...)
  local all = { ... }
  return function(s, _, p) return enabled(p, s.world, all) end
end

-- Return a query for this rank's coordinate in a dim: 0 if the dim has size 1, nil if there is no mesh.
local function rank_in(dim)
  return function(s, _, p)
    if sizes_of(p, s.world)[dim] == 1 then return 0 end
    return s:has(dim) and s[dim].position or nil
  end
end

local function dim_of(q) return q.mesh_dim or error "mesh_dim is missing; a dim such as dp_shard would do" end

local queries = {
  total_size = function(s, _, p) return select(2, sizes_of(p, s.world)) end,
  non_data_parallel_size = function(_, _, p) return p.tp_size * p.cp_size * p.sp_size end,
  data_parallel_size = function(s, _, p)
    local sizes = sizes_of(p, s.world)
    return sizes.dp_replicate * sizes.dp_shard
  end,
  dp_dim_names = names_of("dp_replicate", "dp_shard"),
  non_dp_dim_names = names_of("tp", "cp", "sp"),
  dp_shard_cp_dim_names = names_of("dp_shard", "cp"),
  dp_cp_dim_names = names_of("dp_replicate", "dp_shard", "cp"),
  fsdp_dim_names = function(s, _, p)
    local names = enabled(p, s.world, { "dp_replicate" })
    names[#names + 1] = "dp_shard_cp"
    return names
  end,
  active_mesh_dims = names_of("dp_replicate", "dp_shard", "tp", "cp", "sp"),
  sizes = function(s, _, p) return (sizes_of(p, s.world)) end,
  mesh = function(s, _, p) -- shape and names, slowest first; nil if there is no mesh
    local names, sizes, shape = enabled(p, s.world, dims), sizes_of(p, s.world), {}
    for i, name in ipairs(names) do shape[i] = sizes[name] end
    return has_mesh(p) and { shape, names } or nil
  end,
  coordinate = function(s, _, p)
    local at = {}
    for i, name in ipairs(enabled(p, s.world, dims)) do at[i] = has_mesh(p) and s.mesh[name] or nil end
    return has_mesh(p) and at or nil
  end,
  get_local_rank = function(s, q) return s[dim_of(q)].position end,
  tensor_parallel_rank = rank_in "tp",
  data_parallel_rank = rank_in "dp_replicate",
  data_parallel_shard_rank = rank_in "dp_shard",
  should_save_model = function() return true end,
}
for _, dim in ipairs(dims) do
  queries[dim .. "_enabled"] = function(s, _, p) return sizes_of(p, s.world)[dim] > 1 end
end

return recipe {
  doc = "accelerate's ParallelismConfig (Trainer, TRL, axolotl): FSDP and HSDP, context, tensor",
  params = {
    dp_replicate_size = param.size(1, "copies of the model", "dp_replicate"),
    dp_shard_size = param.size(1, "ranks that shard the parameters", "dp_shard"),
    tp_size = param.size(1, "tensor-parallel size", "tp"),
    cp_size = param.size(1, "context-parallel size", "cp"),
    sp_size = param.size(1, "DeepSpeed's sequence-parallel size; then there are no groups here", "sp"),
    is_fsdp2 = param.flag(true, "FSDP 2 shards the model; needs dp_shard_size or cp_size above 1", "fsdp2"),
  },
  idle = "allow",
  build = function(world, p)
    check(p, #world)
    local t = topology(world)
    if not has_mesh(p) then return t end
    local g = grid(world, dims, (sizes_of(p, #world)), "slowest first")
    t.mesh = g:squeeze()
    local function add(name, family)
      if family.size > 1 then t[name] = family end
    end
    for _, dim in ipairs(dims) do add(dim, g(dim)) end
    add("dp", g("dp_shard", "dp_replicate"))
    add("dp_cp", g("cp", "dp_shard", "dp_replicate"))
    add("dp_shard_cp", g("cp", "dp_shard"))
    return t
  end,
  queries = queries,
  getters = { get_group = function(_, q) return q.mesh_dim end },
  families = {
    tp = "tp_size above 1", cp = "cp_size above 1", dp_shard = "dp_shard_size above 1",
    dp_replicate = "dp_replicate_size above 1", dp = "dp_shard_size or dp_replicate_size above 1",
    dp_shard_cp = "dp_shard_size or cp_size above 1", dp_cp = "dp_shard_size, dp_replicate_size or cp_size above 1",
  },
  arguments = { mesh_dim = param.text(nil, "a dim, or a flattened dim: dp, dp_shard_cp or dp_cp") },
}
