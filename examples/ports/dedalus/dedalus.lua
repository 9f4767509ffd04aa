-- The groups of Dedalus: a mesh of processes, and its parts along any choice of axes. dedalus/core/distributor.py and
-- arithmetic.py make them by MPI_Cart_create and MPI_Cart_sub. As in Dedalus, the last axis varies fastest.
return recipe {
  doc = "Dedalus: a mesh of processes, and its parts along its axes",
  params = { mesh = param.list({ 2, 2 }, "processes along each axis of the mesh") },
  build = function(world, p)
    local order, sizes = {}, {}
    for i = #p.mesh, 1, -1 do
      order[#order + 1] = "m" .. i - 1
      sizes[order[#order]] = p.mesh[i]
    end
    local t = topology(world)
    t.grid = grid(world, order, sizes)
    for some = 1, (1 << #p.mesh) - 1 do -- every choice of axes: along_0, along_1, along_01
      local name, axes = "along_", {}
      for i = 0, #p.mesh - 1 do
        if some >> i & 1 == 1 then
          name = name .. i
          table.insert(axes, 1, "m" .. i)
        end
      end
      t[name] = t.grid:cartesian(axes)
    end
    return t
  end,
}
