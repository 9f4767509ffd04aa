-- Racks in which 72 GPUs share one NVLink domain: tensor and expert parallelism stay inside a rack. A rail joins the
-- GPUs at the same position of all racks.
--
--   moongrid plan examples/nvl72.lua --world 144
--   moongrid draw examples/nvl72.lua --world 144 -o nvl72.svg

return recipe {
  doc = "Experts inside NVLink domains of 72 GPUs, and rails between the domains",
  params = {
    domain = param.size(72, "GPUs of one NVLink domain"),
    tp = param.size(4, "tensor-parallel size"),
  },
  build = function(world, p)
    local g = grid(world, "tp-ep-rack", { tp = p.tp, ep = p.domain // p.tp, rack = fill })
    local t = topology(world)
    t.mesh = g
    t.tp = g "tp"
    t.ep = g "ep"                 -- tokens to experts
    t.domain = g("tp", "ep")
    t.rail = g "rack"             -- gradients of the experts
    t.dp = g("ep", "rack")        -- gradients of the dense layers
    within(t.ep, t.domain)        -- an error if experts would communicate across racks
    t.leaders = t.domain:pick(0)
    return t
  end,
}
