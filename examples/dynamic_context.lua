-- Dynamic context parallelism: how many ranks share a batch of sequences changes from step to step.
--
--   moongrid plan examples/dynamic_context.lua --world 16 tp=2
--   mpirun -n 16 moongrid run examples/dynamic_context.lua tp=2 pieces=5,3
--
-- `dp_cp` is created once. `pieces` cuts it into segments that every step may use. If a step needs other segments, the
-- trainer calls the policy `piece` with their sizes: the policy uses the group of dp_cp, and creates no communicator.

return recipe {
  doc = "Segments of the data and context parallel ranks, the same in all steps or chosen in each step",
  params = {
    tp = 2,
    pieces = param.list({}, "sizes of the segments for all steps; their sum is the size of dp_cp; empty: no family"),
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
    -- For segments of sizes q.sizes: this rank's segment, its position there, and its neighbours in a ring.
    piece = function(state, q)
      local piece = state.dp_cp:segment(q.sizes)
      return { index = piece.index, position = piece.position, size = piece.size, next = piece.next, prev = piece.prev }
    end,
  },
}
