-- The groups of one job. Commands to draw it, to check it, and to create it:
--
--     moongrid draw layout.lua --world 8
--     moongrid check layout.lua --world 8,64,4096
--     moongrid shell layout.lua --world 8        a prompt with the families below in scope
--     mpirun -n 8 moongrid run layout.lua        create the communicators over MPI
--
-- NAME=VALUE on a command line sets a parameter: moongrid plan layout.lua --world 64 tp=8.

return recipe {
  doc = "Tensor, pipeline and data parallelism",
  params = {
    tp = param.size(2, "ranks that share each layer"),
    pp = param.size(1, "pipeline stages"),
  },
  build = function(world, p)
    local g = grid(world, "tp-dp-pp", { tp = p.tp, pp = p.pp, dp = fill }) -- tp varies fastest
    local t = topology(world)
    t.tp = g "tp"
    t.dp = g "dp"
    t.pp = g "pp"
    t.grid = g
    return t
  end,
}
