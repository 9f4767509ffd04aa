-- SPDX-License-Identifier: MIT
--
-- sending: choose the traffic that `moongrid place` counts: the traffic on the command line, of the recipe, of the
-- recipe's step, or an assumed one.
--
-- A Sending has
--   by    "given", "recipe", "step" or "assumed"; nil: no plan has been seen yet, and the first one decides
--   why   the message that refuses the step of the recipe; nil: the step is accepted, or there is none
--   free  computes take no time, because their rate is unknown

local mg = require "moongrid"
local recipe = require "command.base.line_recipe"
local text = require "command.base.text"

local REFUSED = 100

local M = {}

local ORIGIN = { given = "as --traffic says", recipe = "that of the recipe", step = "that of the recipe's step" }

function M.new(of)
  return { of = of, by = of.traffic and of.traffic ~= "step" and "given" or nil }
end

-- Return the seconds of a step, or nil if a bandwidth is unknown. If the rate of computes is unknown, they take no
-- time.
local function price(sending, step)
  local of = sending.of
  local done, priced = pcall(step.price, step, { machine = of.machine, flops = of.flops })
  if not done and mg.status(priced) == REFUSED then
    done, priced = pcall(step.price, step, { machine = of.machine, flops = 1e20 })
    sending.free = done
  end
  if done then
    sending.estimate = priced.estimate
    return priced.seconds
  end
  if mg.status(priced) ~= REFUSED then error(priced, 0) end
end

local function of_step(sending, plan, priced)
  local step = plan:step()
  return step:traffic(), priced and price(sending, step) or nil
end

local function decide(sending, plan, priced)
  local asked, has = sending.of.traffic == "step", recipe.has_step(plan)
  if asked and not has then
    text.refuse(2, "--traffic step: there is no step to count; step = steps.transformer() in the recipe would do, or "
                .. '--traffic "tp = 2 GiB all_reduce x 96; ..."')
  end
  local done, traffic, seconds = false, nil, nil
  if has then done, traffic, seconds = pcall(of_step, sending, plan, priced) end
  if has and not done and (asked or (mg.status(traffic) or 0) // 100 ~= 1) then error(traffic, 0) end
  sending.by = done and "step" or "assumed"
  if done then return traffic, seconds end
  sending.why = traffic
end

-- Return as text what the families of a plan send, or nil if an assumption is made. With `priced` also return the
-- seconds of the plan's step, if the traffic is that of the step and the seconds are known.
function M.traffic(sending, plan, priced)
  if not sending.by then
    if not plan.traffic or sending.of.traffic == "step" then return decide(sending, plan, priced) end
    sending.by = "recipe"
  end
  if sending.by == "step" then return of_step(sending, plan, priced) end
  if sending.by == "given" then return sending.of.traffic end
  return sending.by == "recipe" and plan.traffic or nil
end

-- Return a text that says where the traffic comes from, or what is assumed.
function M.text(sending)
  if ORIGIN[sending.by] then return ORIGIN[sending.by] end
  return "every family that has its own communicators does an all_reduce of 1 GiB, because "
         .. (sending.why and ("the recipe's step is refused (%s)"):format(sending.why)
             or "the recipe has neither traffic nor a step") .. "; --traffic says what they send"
end

return M
