-- Expert parallelism folded into the ranks of tensor and context parallelism: two grids with the same pipeline.
return recipe {
  params = { tp = 2, cp = 2, pp = 2, ep = 4, etp = 1 },
  build = function(world, p)
    local dense = grid(world, "tp-cp-dp-pp", { tp = p.tp, cp = p.cp, pp = p.pp, dp = fill })
    local expert = grid(world, "etp-ep-edp-pp", { etp = p.etp, ep = p.ep, pp = p.pp, edp = fill })
    same(dense "pp", expert "pp")    -- an error if the stages differ
    local t = topology(world)
    t.tp = dense "tp"
    t.cp = dense "cp"
    t.dp_cp = dense("cp", "dp")
    t.pp = dense "pp"
    t.ep = expert "ep"
    t.expert_data = expert "edp"
    return t
  end,
}
