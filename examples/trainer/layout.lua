-- SPDX-License-Identifier: MIT
--
-- The layout of the trainer in this folder: tensor, context, data and pipeline parallelism, and
-- experts that have a grid of their own over the same ranks.
--
--   moongrid plan examples/trainer/layout.lua --world 8 tp=2 pp=2
--   scripts/launch 8 build/trainer/trainer examples/trainer/layout.lua ep=4

return recipe {
  doc = "A dense and an expert grid that share tensor and pipeline parallelism",
  params = {
    tp = param.size(1, "ranks that share every matrix"),
    cp = param.size(1, "ranks that share every sequence"),
    pp = param.size(1, "pipeline stages"),
    ep = param.size(1, "ranks that share the experts of a layer; divides what tp and pp leave"),
  },
  build = function(world, p)
    local dense = grid(world, "tp-cp-dp-pp", { tp = p.tp, cp = p.cp, pp = p.pp, dp = fill })
    local expert = grid(world, "tp-ep-edp-pp", { tp = p.tp, ep = p.ep, pp = p.pp, edp = fill })
    same(dense "tp", expert "tp") -- an expert's matrices are cut as the dense ones are
    same(dense "pp", expert "pp") -- and the stages are the same

    local t = topology(world)
    t.dense = dense
    t.expert = expert
    t.tp = dense "tp"
    t.cp = dense "cp"
    t.dp = dense "dp"
    t.pp = dense "pp"
    t.dp_cp = dense("cp", "dp")           -- gradients of dense parameters
    t.ep = expert "ep"                    -- tokens to experts
    t.expert_data = expert "edp"          -- gradients of expert parameters
    t.embedding = dense "pp":pick(0, -1)  -- one matrix is the first stage's input and the last one's output
    return t
  end,
}
