-- Reinforcement learning on one world: an actor that is trained, and rollout engines that generate, each with its
-- own layout, and the groups over which new weights are sent from one to the other.
--
--   moongrid plan examples/rollout.lua --world 16
--   moongrid draw examples/rollout.lua --world 16 -o rollout.svg

return recipe {
  doc = "An actor and its rollout engines on windows of one world, and the groups that synchronize weights",
  params = {
    actor = param.size(8, "ranks of the actor, the first of the world"),
    tp = param.size(2, "tensor-parallel size of the actor"),
    pp = param.size(2, "pipeline stages of the actor"),
    engine = param.size(4, "ranks of one rollout engine, which are tensor parallel"),
  },
  build = function(world, p)
    local actor = grid(world:window(0, p.actor), "tp-dp-pp", { tp = p.tp, pp = p.pp, dp = fill })
    local rollout = grid(world:window(p.actor), "tp-engine", { tp = p.engine, engine = fill })
    local t = topology(world)
    t.actor = actor
    t.rollout = rollout
    t.tp = union(actor "tp", rollout "tp")
    t.dp = actor "dp"
    t.pp = actor "pp"
    -- The ranks of one replica of the actor, which together have all weights, and of the engine that gets them.
    t.sync = zip(actor("tp", "pp"), rollout "tp")
    -- In each group of sync the first rank of the replica and the first of the engine, for prompts and rewards.
    t.control = t.sync:pick(0, p.tp * p.pp)
    return t
  end,
}
