-- SPDX-License-Identifier: MIT
--
-- The names that the programs of vocabulary_spec and states_spec see, made anew for each program.

local mg = require "moongrid"

-- ranks 0..7 as tp 2 (fastest) x dp 2 x pp 2; T and p have a family of each kind, s is rank 5
local function scene()
  local w = mg.world(8)
  local g = mg.grid(w, "tp-dp-pp", { tp = 2, dp = 2, pp = 2 })
  local T = mg.topology(w)
  T.grid, T.tp = g, g "tp"
  T.again = g "tp"
  T.dp = g "dp"
  T.edge = g("tp", "pp"):pick(0, -1)
  T.ring = g("tp", "pp"):pairs("wrap")
  T.one = g()
  local p = mg.plan(T)
  return { mg = mg, w = w, g = g, tp = g "tp", four = g("tp", "dp"), all = g("tp", "dp", "pp"), T = T,
                        t = mg.topology(w), small = mg.grid(mg.world(4), "x-y", { x = 2, y = 2 }), p = p, s = p:dry(5),
                        picotron = mg.load "picotron", text = tostring }
end

return scene
