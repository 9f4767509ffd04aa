-- One writer of checkpoints on each node, which gathers from the node, and a group of all writers for the index.
return recipe {
  params = { node = param.size(4, "ranks of a node") },
  build = function(world, p)
    local g = grid(world, "gpu-node", { gpu = p.node, node = fill })
    local t = topology(world)
    t.nodes = g
    t.node = g "gpu":with { backend = "mpi" }    -- data for a disk is in the memory of the CPU
    t.writers = g "node":where { gpu = 0 }:with { backend = "mpi" }
    return t
  end,
}
