-- SPDX-License-Identifier: MIT
--
-- The part `simulated` of scripts/lab/bench: creation on simulated ranks (scripts/lab/simulate), compared with the
-- messages of the model of scripts/lab/model. A simulated rank has its own core and link; its computing takes no
-- time.

local estimate = require "estimate"

local WAYS = { -- of create.c
  { "ours", "moongrid" },
  { "best", "plain C create_group, the same communicators" },
  { "split", "(b) MPI_Comm_split per family" },
  { "world", "(a) MPI_Comm_create per group over the world" },
}

return function(B)
  local points = {}
  if not B.first_line "command -v smpicc" then
    B.table("simulated creation", "ms"):note "skipped: no smpicc (Debian: libsimgrid-dev)"
    return { skipped = "no smpicc" }
  end
  for _, ranks in ipairs(B.quick and { 16 } or { 64, 128, 256, 512 }) do
    local t = B.table(("creating the communicators of 17 families, %d simulated ranks"):format(ranks), "ms",
      { "moongrid" })
    local c = estimate.creations("facts", ranks)
    for _, way in ipairs(WAYS) do
      local data = {}
      local program = "scripts/lab/bench.d/create.c facts " .. way[1]
      B.samples(data, ("SIMULATE_SECONDS=3000 scripts/lab/simulate %d %s 2> /dev/null"):format(ranks, program))
      local model = 1e3 * estimate.messages(way[1], c, ranks)
      local row = t:row(way[2], data.cold, { model = model, remark = ("the model: %.3g"):format(model) })
      if row then table.insert(points, { ranks = ranks, way = way[1], ms = row.median, model = model }) end
    end
  end
  return { points = points }
end
