-- Mixture of experts: a dense and an expert grid over the same ranks that share their
-- pipeline stages, with the extra groups that real training needs.
--
--   moongrid plan examples/moe.lua --world 8 tp=2 pp=2 ep=2
--   mpirun -n 8 moongrid run examples/moe.lua tp=2 pp=2 ep=2

return recipe {
  doc = "Dense and expert grids that share pipeline stages",
  params = {
    tp = param.size(1, "tensor-parallel size of the dense layers"),
    cp = param.size(1, "context-parallel size"),
    pp = param.size(1, "pipeline stages"),
    ep = param.size(1, "expert-parallel size"),
    etp = param.size(1, "tensor-parallel size of the experts"),
    order = param.text("tp-cp-ep-dp-pp", "dims of both grids, fastest first"),
  },
  build = function(world, p)
    local dense = grid(world, p.order, { tp = p.tp, cp = p.cp, pp = p.pp, dp = fill })
    local expert = grid(world, p.order, { tp = p.etp, ep = p.ep, pp = p.pp, dp = fill })
    same(dense "pp", expert "pp") -- an error unless they are equal

    local t = topology(world)
    t.dense = dense
    t.expert = expert
    t.tp = dense "tp"
    t.cp = dense "cp"
    t.pp = dense "pp"
    t.dp = dense "dp"
    t.dp_cp = dense("dp", "cp")                -- gradients of the dense layers
    t.mp = dense("tp", "pp")                   -- gradient norm
    t.embedding = dense "pp":pick(0, -1)       -- tied input and output embedding
    t.position_embedding = dense "pp":pick(0)
    t.amax = dense("tp", "dp", "cp")           -- FP8 scaling factors
    t.ep = expert "ep"                         -- tokens to experts
    t.etp = expert "tp"
    t.tp_ep = expert("tp", "ep")
    t.expert_data = expert "dp"                -- gradients of the experts
    t.all_gather = dense("dp", "cp"):twin()    -- overlaps with reduce-scatter on dp_cp
    t.stages = dense "pp":pairs()              -- activations between neighbouring stages
    return t
  end,
}
