-- One writer of checkpoints on each node, which gathers from the node, and a group of all writers for the index.
return recipe {
  params = { host = param.size(4, "ranks of a host") },
  build = function(world, p)
    local g = grid(world, "gpu-host", { gpu = p.host, host = fill })
    local t = topology(world)
    t.hosts = g
    t.host = g "gpu":with { backend = "mpi" }    -- bytes for a disk are on the CPU
    t.writers = g "host":where { gpu = 0 }:with { backend = "mpi" }
    return t
  end,
}
