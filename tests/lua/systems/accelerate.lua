-- SPDX-License-Identifier: MIT
--
-- Cases of the recipe accelerate for systems_spec.lua, which explains the fields.

-- Sizes that make the world, the last one dp_shard.
local function rest(params, left_out)
  return function(world)
    local all = {}
    for name, size in pairs(params) do all[name], world = size, world // size end
    all[left_out or "dp_shard_size"] = world
    return all
  end
end

return {
  refused = {
    { "nothing to shard over (ac-002)", {}, "FSDP has nothing to shard over: dp_shard_size and cp_size are 1; "
      .. "dp_shard_size 8, or is_fsdp2=false, would do", would = { { dp_shard_size = 8 }, { is_fsdp2 = false } } },
    { "sizes that leave ranks to shard over", { tp = 2 }, words = { "dp_shard_size 4," }, would = { { dp_shard = 4 } } },
    { "both ways to cut sequences (ac-012)", { cp = 2, sp = 4 },
      "cp_size 2 and sp_size 4 exclude each other; cp_size 1 or sp_size 1 would do",
      would = { { sp = 1, dp_shard = 4 }, { cp = 1, dp_shard = 2 } } },
    { "tensor parallelism in copies that are not sharded (ac-010)", { dp_replicate = 4, tp = 2 },
      "tp_size 2 and cp_size 1 do not go with dp_replicate_size 4 alone; dp_replicate_size 1, or a dp_shard_size above 1, would do",
      would = { { dp_replicate = 1, dp_shard = 4 }, { dp_replicate = 2, dp_shard = 2 } } },
    { "another world (ac-015)", { dp_shard = 16 }, "dp_shard 16 does not make the 8 ranks; nearest: dp_shard 8, or a world of 16 ranks",
      would = { { dp_shard = 8 } } },
    { "a question without its dim", params = { dp_shard = 8 }, ask = "get_local_rank",
      message = "mesh_dim is missing; a dim such as dp_shard would do" },
  },
  layouts = {
    rest { dp_replicate_size = 2, tp_size = 2 }, rest {}, rest { cp_size = 2, tp_size = 2 }, rest({ dp_shard_size = 2 }, "cp_size"),
    { is_fsdp2 = false }, { sp = 2, dp_shard = 2 }, rest({ dp_shard_size = 4 }, "dp_replicate_size"),
  },
  asks = { { { mesh_dim = "dp_shard" } } },
  values = {
    dp_replicate_size = { 2, { dp_shard = 4 }, { dp_shard = 8 } }, dp_shard_size = { 2, { cp = 4 }, { cp = 8 } },
    tp_size = { 2, { dp_shard = 4 }, { dp_shard = 8 } }, cp_size = { 2, { dp_shard = 4 }, { dp_shard = 8 } },
    sp_size = { 2, { dp_shard = 8 } }, is_fsdp2 = { false, { dp_shard = 8 } },
  },
}
