-- Reinforcement learning: an actor trains, engines generate, and every engine gets the actor's weights.
return recipe {
  params = { actor = param.size(4, "ranks of the actor, the first of the world"), tp = 2, engine = 2 },
  build = function(world, p)
    local actor = grid(world:window(0, p.actor), "tp-dp", { tp = p.tp, dp = fill })
    local engines = grid(world:window(p.actor), "tp-engine", { tp = p.engine, engine = fill })
    local t = topology(world)
    t.tp = union(actor "tp", engines "tp")
    t.dp = actor "dp"
    -- each engine with the first replica of the actor, which has all weights
    t.sync = zip(actor "tp":where { dp = 0 }, engines "tp", "spread")
    return t
  end,
}
