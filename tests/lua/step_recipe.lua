-- SPDX-License-Identifier: MIT
--
-- Shared by the specs of steps: a recipe with a step, and the output of `moongrid step --json` for it.

local support = dofile "tests/lua/support.lua"
local json = require "dkjson"
local assert = require "luassert"

-- A recipe with tp 2, pp 2 and a rest of dp, and with this step.
local function recipe(step)
  return support.file("return recipe { params = { tp = 2, pp = 2, n = 3 }, build = function(world, p)\n"
    .. "local g = grid(world, 'tp-pp-dp', { tp = p.tp, pp = p.pp, dp = fill })\n"
    .. "local t = topology(world)\n"
    .. "t.dense, t.tp, t.pp, t.dp = g, g 'tp', g 'pp', g 'dp'\n"
    .. "t.ends = g 'pp':pick(0)\n"
    .. "return t end,\n"
    .. "step = function(s, p)\n" .. step .. "\nend }")
end

-- What the command says of this step, and its exit code.
local function step(text, world, arguments)
  local file = recipe(text)
  local line = ("build/moongrid step %s --world %d %s --json"):format(file, world or 8, arguments or "")
  local out, err, code = support.run(line)
  assert.equal("", err)
  return json.decode(out), code
end

return { recipe = recipe, step = step }
