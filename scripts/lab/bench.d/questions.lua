-- SPDX-License-Identifier: MIT
--
-- The cost of a question in Lua, in nanoseconds, and the bytes of garbage that it makes.
-- Uses a dry state, since no question calls MPI. questions.lua ROUNDS

local mg = require "moongrid"

local state = mg.load "megatron":plan(1048576, { tp = 8, cp = 2, pp = 8, ep = 8, etp = 1 }):dry(524293)
local tp = state.tp
local plain = { tp = { position = 0 } }

local TURNS = 100000
local questions = {
  { "lua loop", function() for _ = 1, TURNS do end end },
  { "lua table", function() for _ = 1, TURNS do local _ = plain.tp.position end end },
  { "lua handle", function() for _ = 1, TURNS do local _ = tp.position end end },
  { "lua state", function() for _ = 1, TURNS do local _ = state.tp end end },
  { "lua both", function() for _ = 1, TURNS do local _ = state.tp.position end end },
  { "lua next", function() for _ = 1, TURNS do local _ = tp:next "wrap" end end },
}
for round = 0, tonumber(arg[1]) do
  for _, question in ipairs(questions) do
    collectgarbage()
    collectgarbage "stop"
    local before, t0 = collectgarbage "count", os.clock()
    question[2]()
    local spent, left = os.clock() - t0, collectgarbage "count" - before
    collectgarbage "restart"
    if round > 0 then
      print(("%s\t%.9g"):format(question[1], 1e9 * spent / TURNS))
      print(("%s bytes\t%.9g"):format(question[1], 1024 * left / TURNS))
    end
  end
end
