-- Experts of one NVLink domain in two levels: dispatch inside a tray first, then between the trays of the domain.
return recipe {
  params = { domain = param.size(72, "GPUs of one NVLink domain"), tray = param.size(4, "GPUs of one tray") },
  build = function(world, p)
    local g = grid(world, "gpu-tray-rack", { gpu = p.tray, tray = p.domain // p.tray, rack = fill })
    local t = topology(world)
    t.mesh = g
    t.experts = g("gpu", "tray")
    t.dispatch_inside = g "gpu"        -- to the GPU of this tray at the expert's position
    t.dispatch_between = g "tray"      -- and from there to the tray that has the expert
    t.expert_data = g "rack"
    within(t.dispatch_between, t.experts)
    return t
  end,
}
