-- Megatron-Bridge's process groups without Megatron's global state (use_decentralized_pg): two grids of HyperCommGrid,
-- dense (tp, cp, dp, pp) and of experts (tp, ep, dp, pp), the first dim fastest. With vision_world_size the first ranks
-- have a collection of their own for the vision model (vision_...), and the other ranks that of the language model.
-- Source: NVIDIA-NeMo/Megatron-Bridge 0.6.2, megatron/bridge/training/initialize.py (_create_pg_collection,
-- _create_dist_train_pgs). With use_decentralized_pg=false the groups are `megatron`'s.
-- As in the source: if ep is above 1, experts are not cut by tensor parallelism unless etp is given; optimizer
-- instances cut only the data parallelism of experts.
-- Recorded: nothing. It follows the source; a second program agrees on random parameters:
-- tests/golden/models/megatron_bridge.lua.

local arithmetic = ...

-- Return the sizes of one model. `prefix` begins the names of its parameters: "vision_" or "".
local function sizes_of(p, prefix)
  local sizes = { cp = p[prefix .. "context_parallel_size"] }
  for dim, name in pairs { tp = "tensor", pp = "pipeline", ep = "expert" } do
    sizes[dim] = p[prefix .. name .. "_model_parallel_size"]
  end
  sizes.etp = p[prefix .. "expert_tensor_parallel_size"] or sizes.ep > 1 and 1 or sizes.tp
  return sizes
end

-- Return the dense grid of one model over its ranks, and that of its experts. Dims have the names of parameters.
local function grids_of(ranks, p, prefix)
  local sizes = sizes_of(p, prefix)
  local function grid_of(...)
    local order, own = {}, {}
    for i, dim in ipairs { ... } do order[i], own[prefix .. dim] = prefix .. dim, sizes[dim] or fill end
    return grid(ranks, order, own)
  end
  return grid_of("tp", "cp", "dp", "pp"), grid_of("etp", "ep", "dp", "pp")
end

-- Refuse instances that do not divide dp, which `what` names.
local function check_instances(n, dp, what)
  if dp % n == 0 then return end
  error(string.format("num_distributed_optimizer_instances %d does not divide %s, %d; %s would do", n, what, dp,
    arithmetic.nearest(n, dp)))
end

-- Add the families of one model.
local function add_collection(t, dense, expert, p, prefix)
  local n, expert_dp = p.num_distributed_optimizer_instances, expert[prefix .. "dp"]
  local function along(g, ...)
    local dims = { ... }
    for i, dim in ipairs(dims) do dims[i] = prefix .. dim end
    return g(table.unpack(dims))
  end
  local function add(name, g, ...) t[prefix .. name] = along(g, ...) end
  t[prefix .. "dense"] = dense
  t[prefix .. "expert"] = expert
  add("tp", dense, "tp")
  add("cp", dense, "cp")
  add("pp", dense, "pp")
  add("dp", dense, "dp")
  add("mp", dense, "tp", "pp")
  add("tp_cp", dense, "tp", "cp")
  add("tp_dp_cp", dense, "tp", "dp", "cp")
  add("dp_cp", dense, "dp", "cp")
  add("ep", expert, "ep")
  add("expt_tp", expert, "etp")
  add("tp_ep", expert, "etp", "ep")
  add("tp_ep_pp", expert, "etp", "ep", "pp")
  add("expt_dp", expert, "dp")
  t[prefix .. "embd"] = along(dense, "pp"):pick(p.get_embedding_ranks)
  t[prefix .. "pos_embd"] = along(dense, "pp"):pick(p.get_position_embedding_ranks)
  add("intra_dp_cp", dense, "dp", "cp")
  if n == 1 then return add("intra_expt_dp", expert, "dp") end
  local cut = { [prefix .. "inner"] = expert_dp // n, [prefix .. "outer"] = fill }
  local instances = expert:unflatten(prefix .. "dp", cut)
  add("intra_expt_dp", instances, "inner")
  add("inter_dist_opt", instances, "outer")
  add("intra_dist_opt", instances, "etp", "ep", "inner", "pp")
end

local function size(doc, alias) return param.size(1, doc, alias) end

return recipe {
  doc = "Megatron-Bridge's process-group collections: dense and expert grids, vision beside language",
  params = {
    tensor_model_parallel_size = size("tensor-parallel size", "tp"),
    pipeline_model_parallel_size = size("pipeline stages", "pp"),
    context_parallel_size = size("context-parallel size", "cp"),
    expert_model_parallel_size = size("expert-parallel size", "ep"),
    expert_tensor_parallel_size = param.size(nil, "tensor-parallel size of experts (1; if ep is 1, tp)", "etp"),
    num_distributed_optimizer_instances = size("instances, each with all shards of the experts", "instances"),
    get_embedding_ranks = param.list({ 0, -1 }, "stages of the embedding groups"),
    get_position_embedding_ranks = param.list({ 0 }, "stages of the position-embedding groups"),
    vision_world_size = param.size(nil, "ranks of the vision model, the first ones", "vision"),
    vision_tensor_model_parallel_size = size("tensor-parallel size of the vision model", "vision_tp"),
    vision_pipeline_model_parallel_size = size("pipeline stages of the vision model", "vision_pp"),
    vision_context_parallel_size = size("context-parallel size of the vision model", "vision_cp"),
    vision_expert_model_parallel_size = size("expert-parallel size of the vision model", "vision_ep"),
    vision_expert_tensor_parallel_size = param.size(nil, "of the vision model; by default as etp", "vision_etp"),
  },
  build = function(world, p)
    local t, vision = topology(world), p.vision_world_size
    if not vision then
      local dense, expert = grids_of(world, p, "")
      check_instances(p.num_distributed_optimizer_instances, expert.dp, "the data-parallel size of experts")
      add_collection(t, dense, expert, p, "")
      return t
    end
    if vision >= #world then
      error(string.format("vision_world_size %d leaves no rank of the %d for the language model; %d or less would do",
        vision, #world, #world - 1))
    end
    local seen, seen_expert = grids_of(world:window(0, vision), p, "vision_")
    local dense, expert = grids_of(world:window(vision), p, "")
    check_instances(p.num_distributed_optimizer_instances, arithmetic.gcd(seen_expert.vision_dp, expert.dp),
      "the common divisor of the data-parallel sizes of experts in both models")
    add_collection(t, seen, seen_expert, p, "vision_")
    add_collection(t, dense, expert, p, "")
    return t
  end,
  families = {
    ["vision_*"] = "vision_world_size", inter_dist_opt = "num_distributed_optimizer_instances above 1",
    intra_dist_opt = "num_distributed_optimizer_instances above 1",
  },
}
