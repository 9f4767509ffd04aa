-- Engram's embeddings (pull request 5014): a third grid, in which embedding parallel replaces tensor parallel, and data
-- parallel has the remaining ranks.

local part = select(2, ...)
local grids = part "grids"

-- Add the families of this grid. If there are `on_cpu`, options for communicators on the CPU, also add twins with these
-- options.
return function(t, window, p, o, on_cpu)
  local g = grids.engram(window, p)
  grids.check_stages(p, t.dense, g, "engram")
  t.engram = g
  t.engram_dp = g "engram_dp":with(o.engram_dp)
  t.engram_embedding_parallel = g "engram":with(o.engram_embedding_parallel)
  t.engram_model_parallel = g("engram", "pp"):with(o.engram_model_parallel)
  if on_cpu then
    t.engram_dp_gloo = g "engram_dp":with(on_cpu)
    t.engram_embedding_parallel_gloo = g "engram":with(on_cpu)
  end
end
