-- SPDX-License-Identifier: MIT
--
-- moongrid policy: call a policy of a recipe, without a program.

local asking = require "command.base.asking"

local function decide(loaded, state, name, arguments)
  local answer, message, status = loaded:call(state, name, arguments)
  if message and status then error(message, 0) end
  return answer
end

return {
  name = "policy",
  place = 150,
  takes = "RECIPE --world N --rank R NAME [...]",
  summary = "the decision of a policy of a recipe",
  usage = "moongrid policy RECIPE --world N [NAME=VALUE ...] --rank R POLICY [ARG=VALUE ...]",
  about = "Call a policy of a recipe as a rank would. The words before POLICY are parameters, those after it\n"
    .. "its arguments; a value is JSON, otherwise text. The answer is JSON. Ranks do not compare their answers\n"
    .. "here, even if the recipe declares the policy as agreed.",
  example = "moongrid policy examples/dynamic_context.lua --world 8 --rank 0 POLICY ARG=VALUE",
  recipe = true,
  words = 1,
  asks = "policies",
  options = asking.options,
  run = function(of) asking.run(of, "policy", decide) end,
}
