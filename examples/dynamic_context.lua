-- Dynamic context parallelism: how many ranks share a batch of sequences changes from step to step.
--
--   moongrid plan examples/dynamic_context.lua --world 16 tp=2
--   mpirun -n 16 moongrid run examples/dynamic_context.lua tp=2 pieces=5,3
--
-- `dp_cp` is created once, and `pieces` cuts it into the same segments in every step. If a step needs other segments,
-- the trainer calls the policy `piece` with their sizes; the policy needs only dp_cp, and creates nothing.

return recipe {
  doc = "Pieces of the data and context parallel ranks, fixed or of a step",
  params = {
    tp = 2,
    pieces = param.list({}, "sizes of fixed pieces, which sum to the ranks of dp_cp; none: only those of a step"),
  },
  build = function(world, p)
    local g = grid(world, "tp-dpcp", { tp = p.tp, dpcp = fill })
    local t = topology(world)
    t.dp_cp = g "dpcp" t.tp = g "tp"
    if #p.pieces > 0 then t.pieces = t.dp_cp:segments(p.pieces) end
    t.loss = t.dp_cp:with { backend = "none" } -- only its sizes and positions are used
    return t
  end,
  policy = {
    -- This rank's segment in a step with segments of these sizes, its position, and the next rank of a ring.
    piece = function(state, q)
      local piece = state.dp_cp:segment(q.sizes)
      return { index = piece.index, position = piece.position, size = piece.size, next = piece.next, prev = piece.prev }
    end,
  },
}
