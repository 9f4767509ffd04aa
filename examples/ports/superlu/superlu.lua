-- The groups of SuperLU_DIST: a grid of processes, its rows and its columns. SRC/superlu_grid.c makes them by
-- MPI_Comm_create and two MPI_Comm_split. As in that file, columns vary fastest; ranks outside the grid have no group.
return recipe {
  doc = "SuperLU_DIST: a grid of processes, its rows and columns",
  params = {
    nprow = param.size(1, "rows"),
    npcol = param.size(1, "columns"),
    ranks = param.list(nil, "the rank at each place, row by row; default: the first ranks in order"),
  },
  idle = "allow",
  build = function(world, p)
    local part = p.ranks and world:order(p.ranks) or world:window(0, p.nprow * p.npcol)
    local g = grid(part, "col-row", { col = p.npcol, row = p.nprow })
    local t = topology(world)
    -- unique: a grid of one row has the same ranks as the row, and both are used for messages
    t.grid = g("col", "row"):with { unique = true }
    t.row = (g "col"):with { unique = true }
    t.column = (g "row"):with { unique = true }
    return t
  end,
}
