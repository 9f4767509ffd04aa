-- Dynamic context parallelism: how many ranks share a batch of sequences changes from step to step.
--
--   moongrid plan examples/dynamic_context.lua --world 16 tp=2
--   mpirun -n 16 moongrid run examples/dynamic_context.lua tp=2 pieces=5,3
--
-- `dp_cp` is made once, and `pieces` cuts it the same way in every step. Where a step wants other pieces, the trainer
-- calls the policy `piece` with their sizes: it answers from dp_cp alone, and nothing is created.

return recipe {
  doc = "Pieces of the data and context parallel ranks, fixed or of a step",
  params = {
    tp = 2,
    pieces = param.list({}, "sizes of fixed pieces, which sum to the ranks of dp_cp; none: only those of a step"),
  },
  build = function(world, p)
    local g = grid(world, "tp-dpcp", { tp = p.tp, dpcp = fill })
    local t = topology(world)
    t.tp, t.dp_cp = g "tp", g "dpcp"
    if #p.pieces > 0 then t.pieces = t.dp_cp:segments(p.pieces) end
    t.loss = t.dp_cp:with { backend = "none" } -- asked for its numbers, never for a communicator
    return t
  end,
  policy = {
    -- Where this rank is in a step with pieces of these sizes: which one, its position, and whom a ring sends to.
    piece = function(state, q)
      local piece = state.dp_cp:segment(q.sizes)
      return { index = piece.index, position = piece.position, size = piece.size, next = piece.next, prev = piece.prev }
    end,
  },
}
