-- verl's hybrid engine with FSDP: on the same ranks the mesh of FSDP (ddp x fsdp), that of Ulysses (dp x sp), and that
-- of the rollout (dp x infer_tp x infer_pp, the last one fastest). Trainers with Megatron have `megatron`'s groups.
-- Source: volcengine/verl 0.9.1, verl/workers/engine/fsdp/transformer_impl.py (_init_device_mesh) and utils.py
-- (create_device_mesh), verl/workers/engine_workers.py (the rollout).
-- Not as there: sizes that leave ranks out of a mesh are refused.
-- Recorded: nothing. It follows the source; a second program agrees on random parameters: tests/golden/models/verl.lua.

local roles = { "actor", "rollout", "ref", "actor_rollout", "actor_rollout_ref" }

local function check_role(role)
  for _, known in ipairs(roles) do
    if role == known then return end
  end
  error(string.format("role '%s' is unknown; %s would do", role, table.concat(roles, ", ")))
end

-- Return this rank's index in data parallelism. Ranks with the same index get the same data.
local function data_rank(s) return s:has "sp" and s.dp.position or s.rank end
local function is_source(s) return not s:has "sp" or s.sp.position == 0 end

return recipe {
  doc = "verl's hybrid engine: FSDP, Ulysses and the rollout's mesh on the same ranks",
  params = {
    role = param.text("actor_rollout_ref", "actor, rollout, ref, actor_rollout or actor_rollout_ref"),
    fsdp_size = param.integer(-1, "ranks that shard; -1, or a number not below the world: all", "fsdp"),
    ulysses_sequence_parallel_size = param.size(1, "ranks that share a sequence", "sp"),
    tensor_model_parallel_size = param.size(2, "tensor-parallel size of the rollout", "tp"),
    data_parallel_size = param.size(1, "data-parallel size inside infer_tp, which is tp x this", "rollout_dp_size"),
    pipeline_model_parallel_size = param.size(1, "pipeline stages of the rollout (vllm, sglang, trtllm: 1)", "pp"),
  },
  build = function(world, p)
    check_role(p.role)
    local t = topology(world)
    local words = string.split(p.role, "_")
    local trains, serves = words[1] ~= "rollout", words[1] == "rollout" or words[2] == "rollout"
    if trains then
      local sp, size = p.ulysses_sequence_parallel_size, p.fsdp_size
      if size == 0 then error "fsdp_size is 0; a size, or -1 for all ranks, would do" end
      local g = grid(world, "fsdp-ddp", { fsdp = size > 0 and size < #world and size or #world, ddp = fill })
      t.mesh = g:squeeze "ddp"
      if g.ddp > 1 then t.ddp = g "ddp" end
      t.fsdp = g "fsdp"
      if sp > 1 then
        local ulysses = grid(world, "sp-dp", { sp = sp, dp = fill })
        t.ulysses_mesh = ulysses
        t.dp = ulysses "dp"
        t.sp = ulysses "sp"
      end
    end
    if serves then
      local rollout = grid(world, "infer_pp-infer_tp-dp", {
        infer_pp = p.pipeline_model_parallel_size, infer_tp = p.tensor_model_parallel_size * p.data_parallel_size,
        dp = fill,
      })
      t.rollout_mesh = rollout
      t.rollout_dp = rollout "dp"
      t.infer_tp = rollout "infer_tp"
      t.infer_pp = rollout "infer_pp"
    end
    t.world_group = grid(world, "all", { all = fill }) "all":with { lazy = true } -- torch's default group
    return t
  end,
  queries = {
    data_parallel_rank = data_rank,
    data_parallel_size = function(s, _, p) return s.world // p.ulysses_sequence_parallel_size end,
    is_mp_src_rank_with_outputs = is_source,
    rollout_dp_rank = function(s) return s:has "rollout_dp" and s.rollout_dp.position or nil end,
    rollout_is_collect = function(s)
      if not s:has "infer_tp" then return nil end
      return s.infer_tp.position == 0 and s.infer_pp.position == 0
    end,
  },
  getters = {
    get_data_parallel_group = function(_, _, p)
      return p.ulysses_sequence_parallel_size > 1 and "dp" or "world_group"
    end,
    ulysses_parallel_group = "sp",
  },
  families = {
    ddp = "fsdp_size below the world", dp = "ulysses_sequence_parallel_size above 1, and a role that trains",
    sp = "ulysses_sequence_parallel_size above 1, and a role that trains", fsdp = "a role that trains",
    rollout_dp = "a role with rollout", ["infer_*"] = "a role with rollout",
  },
}
