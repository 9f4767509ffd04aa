-- SGLang's diffusion runtime: xDiT's grid (tp, sp, pp, cfg, dp, the first one fastest) with other groups on it: Ulysses
-- and ring inside sp, the ranks of a replica that decode (vae_decode) and encode (encoder_dp) together. Equal
-- groups are one group there, too. Every group but ulysses, ring, dit and vae has a twin on the CPU (gloo there).
-- Source: sgl-project/sglang 0.5.23, sglang/multimodal_gen/runtime/distributed/parallel_state.py
-- (initialize_model_parallel), parallel_groups.py.
-- Not as there: sequence_parallel_degree is by default ulysses x ring; sizes that leave ranks over are refused; the
-- ranks of vae_parallel_size, for which the constructors there fail, have a group.
-- Recorded: nothing. It follows the source; a second program agrees on random parameters:
-- tests/golden/models/sglang_diffusion.lua.

local xdit = recipe "xdit"

-- Return a query for a field of this rank's group, which answers nil for a rank of the VAE.
local function field(family, name)
  return function(s) return s[family] and s[family][name] end
end

local queries = {
  get_world_size = function(s) return s.world end,
  get_world_rank = function(s) return s.rank end,
  model_parallel_is_initialized = function() return true end,
}
for name, family in pairs {
  tp = "tp", tensor_model_parallel = "tp", sequence_parallel = "sp", dp = "dp", data_parallel = "dp",
  ulysses_parallel = "ulysses", ring_parallel = "ring", classifier_free_guidance = "cfg",
  decode_parallel = "vae_decode",
} do
  queries["get_" .. name .. "_world_size"] = field(family, "size")
  queries["get_" .. name .. "_rank"] = field(family, "position")
end
queries.get_sp_world_size, queries.get_sp_parallel_rank = field("sp", "size"), field("sp", "position")

local function build(world, p)
  local sizes, vae = {}, p.vae_parallel_size
  for name, value in pairs(p) do sizes[name] = value end
  sizes.data_parallel_degree, sizes.data_parallel_size = p.data_parallel_size, nil
  local g = xdit.build(world, sizes).grid
  local t = topology(world)
  t.grid = g
  local function add(name, family)
    t[name] = family
    t[name .. "_cpu"] = family:with { backend = "mpi" }
  end
  add("world_group", grid(world, "all", { all = fill }) "all")
  add("dp", g "dp")
  add("cfg", g "cfg")
  add("pp", g "pp")
  local ulysses, ring = g "sp":split(p.ulysses_degree)
  t.ulysses = ulysses
  t.ring = ring
  add("sp", g "sp")
  if g.cfg > 1 and g.sp == 1 then add("cfg_sp", g "cfg") end -- sequences are cut over the ranks of cfg
  add("tp", g "tp")
  add("replica", g.dp == 1 and t.world_group or g:except "dp")
  local copies = g.tp == 1 and t.replica or g:except("tp", "dp")
  if g.tp == 1 or copies.size > 1 then add("encoder_dp", copies) end
  add("vae_decode", g:except "dp")
  if vae > 0 then t.vae = grid(world:window(#g, vae), "vae", { vae = vae }) "vae" end
  t.dit = g:except()
  return t
end

return recipe {
  doc = "SGLang's diffusion runtime: xDiT's grid, with groups that encode and decode",
  base = "xdit.coordinator",
  params = {
    tensor_parallel_degree = param.size(1, "tensor-parallel size", "tp_size", "tp"),
    sequence_parallel_degree = param.size(nil, "ulysses_degree x ring_degree, which is the default", "sp_size", "sp"),
    ulysses_degree = param.size(1, "ranks that exchange heads", "ulysses"),
    ring_degree = param.size(1, "ranks that pass keys and values around a ring", "ring"),
    pipeline_parallel_degree = param.size(1, "pipeline stages", "pp"),
    classifier_free_guidance_degree = param.size(1, "ranks that share the passes of guidance", "cfg_degree", "cfg"),
    data_parallel_size = param.size(1, "replicas", "dp_size", "dp"),
    vae_parallel_size = param.index(0, "ranks after those of the transformer, which decode", "vae"),
  },
  build = build,
  queries = queries,
  getters = {
    get_world_group = "world_group", get_tp_group = "tp", get_sp_group = "sp", get_cfg_group = "cfg",
    get_dp_group = "dp", get_replica_group = "replica", get_encoder_data_parallel_group = "encoder_dp",
    get_decode_parallel_group_coordinator = "vae_decode", get_dit_group = "dit",
    get_cfg_sequence_parallel_group = "cfg_sp",
  },
  families = {
    ["cfg_sp*"] = "classifier_free_guidance_degree above 1 without sequence parallelism", vae = "vae_parallel_size",
    ["encoder_dp*"] = "tensor_parallel_degree 1, or a sequence, pipeline or guidance degree above 1",
  },
}
