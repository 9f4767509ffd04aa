-- xDiT's parallel state for diffusion transformers. One grid has the dims tp (the fastest), sp (Ulysses inside ring),
-- pp (PipeFusion), cfg (classifier-free guidance) and dp. Ranks after the grid may decode (vae). Most groups have a
-- twin on the CPU, which is gloo in xDiT.
-- Source: xdit-project/xDiT, xfuser 0.7.0, xfuser/core/distributed/parallel_state.py (initialize_model_parallel) and
-- group_coordinator.py; yunchang 0.6.4, yunchang/globals.py (set_seq_parallel_pg).
-- Not as there: yunchang assumes that the ranks of sp are neighbours, so with tp its Ulysses and ring groups cross
-- those of sp; here they lie inside. xDiT fails for the ranks of the VAE; here they have a group. Ranks left over are
-- refused.
-- Recorded: 51 cases of 1 to 64 ranks, 8 of them refused: tests/golden/xdit.json.

local arithmetic = ...

-- Return a query for a field of this rank's group, which answers nil for the ranks of the VAE.
local function field(family, name)
  return function(s) return s:has(family) and s[family] and s[family][name] or nil end
end

-- Return such a query for Ulysses or ring. Without yunchang there are no such groups, and the answer is `without`.
local function of_long_context(family, name, without)
  return function(s) if s:has(family) then return s[family] and s[family][name] end return without end
end

local function is_last(s, family) return s[family].position == s[family].size - 1 end

local queries = {
  ulysses_parallel_world_size = of_long_context("ulysses", "size", 1),
  ulysses_parallel_rank = of_long_context("ulysses", "position", 0),
  ring_parallel_world_size = of_long_context("ring", "size", 1),
  ring_parallel_rank = of_long_context("ring", "position", 0),
  is_pipeline_first_stage = function(s) return s.pp and s.pp.position == 0 end,
  is_pipeline_last_stage = function(s) return s.pp and is_last(s, "pp") end,
  is_dp_last_group = function(s) return s.pp and is_last(s, "sp") and is_last(s, "cfg") and is_last(s, "pp") end,
  dit_world_size = function(s) return #s.plan:grid "grid" end,
  model_parallel_is_initialized = function() return true end,
}
for name, family in pairs {
  tensor_model_parallel = "tp", sequence_parallel = "sp", pipeline_parallel = "pp", data_parallel = "dp",
  classifier_free_guidance = "cfg", fully_shard = "fs", vae_parallel = "vae",
} do
  queries[name .. "_world_size"] = field(family, "size")
  queries[name .. "_rank"] = field(family, "position")
end

local function build(world, p)
  local u, r, vae, fs = p.ulysses_degree, p.ring_degree, p.vae_parallel_size, p.fully_shard_degree
  if p.sequence_parallel_degree and p.sequence_parallel_degree ~= u * r then
    error(string.format("sequence_parallel_degree %d is not ulysses_degree %d x ring_degree %d; %d would do",
      p.sequence_parallel_degree, u, r, u * r))
  end
  if vae >= #world then
    error(string.format("vae_parallel_size %d leaves no rank of the %d for the transformer; %d or less would do", vae,
      #world, #world - 1))
  end
  local g = grid(world:window(0, #world - vae), "tp-sp-pp-cfg-dp", {
    tp = p.tensor_parallel_degree, sp = u * r, pp = p.pipeline_parallel_degree,
    cfg = p.classifier_free_guidance_degree, dp = p.data_parallel_degree,
  })
  if #g % fs > 0 then
    error(string.format("fully_shard_degree %d does not divide the %d ranks of the transformer; %s would do", fs, #g,
      arithmetic.nearest(fs, #g)))
  end
  local t = topology(world)
  t.grid = g
  local function add(name, family)
    t[name] = family
    t[name .. "_cpu"] = family:with { backend = "mpi" }
  end
  local all, replica = g:except(), g:except "dp"
  add("world_group", grid(world, "all", { all = fill }) "all")
  add("model_replica", replica)
  add("dp", g "dp")
  add("cfg", g "cfg")
  add("pp", g "pp")
  if g.pp == 2 then -- one communicator for each direction
    t.pp_back = g "pp":twin()
    t.pp_back_cpu = g "pp":twin { backend = "mpi" }
  end
  t.pp_skip = g "pp":twin() -- skip connections, between mirrored stages
  if p.long_ctx_attn then
    local ulysses, ring = g "sp":split(u)
    t.ulysses = ulysses
    t.ring = ring
  end
  add("sp", g "sp")
  add("tp", g "tp")
  add("fs", (all:split(fs)))
  if vae > 0 then
    t.vae = grid(world:window(#g, vae), "vae", { vae = vae }) "vae"
  elseif p.use_parallel_vae then
    add("vae", replica)
  end
  t.dit = all
  return t
end

return recipe {
  doc = "xDiT's parallel state: CFG, PipeFusion, Ulysses, ring, tensor parallelism, and ranks of the VAE",
  base = "xdit.coordinator",
  params = {
    data_parallel_degree = param.size(1, "data-parallel size", "dp"),
    classifier_free_guidance_degree = param.size(1, "ranks that share the passes of classifier-free guidance", "cfg"),
    sequence_parallel_degree = param.size(nil, "ulysses_degree x ring_degree, which is the default", "sp"),
    ulysses_degree = param.size(1, "ranks that exchange heads", "ulysses"),
    ring_degree = param.size(1, "ranks that pass keys and values around a ring", "ring"),
    tensor_parallel_degree = param.size(1, "tensor-parallel size", "tp"),
    pipeline_parallel_degree = param.size(1, "PipeFusion stages", "pp"),
    fully_shard_degree = param.size(1, "ranks that shard the weights (FSDP); divides the ranks of dit", "fs"),
    vae_parallel_size = param.index(0, "ranks after those of the transformer, which decode", "vae"),
    use_parallel_vae = param.flag(false, "the ranks of each replica decode", "parallel_vae"),
    long_ctx_attn = param.flag(true, "yunchang is installed: make the groups of Ulysses and ring"),
  },
  build = build,
  queries = queries,
  getters = {
    get_world_group = "world_group", get_tp_group = "tp", get_sp_group = "sp", get_pp_group = "pp",
    get_cfg_group = "cfg", get_dp_group = "dp", get_fs_group = "fs", get_dit_group = "dit",
    get_vae_parallel_group = "vae", get_model_replica_group = "model_replica",
  },
  families = {
    ["pp_back*"] = "pipeline_parallel_degree 2", ulysses = "long_ctx_attn", ring = "long_ctx_attn",
    ["vae*"] = "vae_parallel_size above 0, or use_parallel_vae",
  },
}
