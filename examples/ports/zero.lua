-- SPDX-License-Identifier: MIT
--
-- Sharded optimizer state, as in ZeRO: `shards` ranks together hold one copy of the state; all copies are equal. With
-- as many shards as ranks this is llm.c's ZeRO stage 1. With as many shards as a node has ranks it is FSDP's hybrid
-- sharding: shards inside a node, copies on other nodes.

return recipe {
  doc = "Optimizer state in shards, and copies of them",
  params = { shards = param.size(nil, "ranks that share one copy; left out: all") },
  build = function(world, p)
    local g = grid(world, "shard-copy", { shard = p.shards or #world, copy = fill })
    local t = topology(world)
    t.shard = g "shard" -- gradients are scattered and parameters gathered here
    t.copy = g "copy"   -- equal shards are summed here
    return t
  end,
}
