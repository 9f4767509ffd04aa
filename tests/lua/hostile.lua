-- SPDX-License-Identifier: MIT
--
-- Shared by the specs of hostile recipes: each recipe runs as a user would run it, in 1 GiB of address space and with a
-- time limit.

local support = require "support"
local run, file = support.run, support.file

-- A recipe whose build has g, a grid of all ranks along x, and f, its family.
local function building(body)
  return "return recipe { build = function(w) local t, g = topology(w), grid(w, 'x', { x = fill }) local f = g 'x'\n"
    .. body .. "\nreturn t end }"
end

-- What ends by the limit of processor time has a clock that runs ten times as fast.
local fast
local function fast_clock()
  if not fast then
    fast = os.tmpname()
    local made = "cc -shared -fPIC -O1 -D_GNU_SOURCE -o %s tests/lua/fast_clock.c -ldl"
    assert.same({ "", "", 0 }, { run(made:format(fast)) })
    support.removed(fast)
  end
  return "LD_PRELOAD=" .. fast
end

-- The exit code and the message of a recipe, without "moongrid: " and the file's name.
local function outcome(recipe, world, more, env)
  local path = file(recipe)
  local out, err, code = run(("ulimit -v 1048576; %s timeout 110 build/moongrid plan %s --world %d %s"):format(
    env or "", path, world or 8, more or ""))
  local message = err:gsub("\n$", ""):gsub("^moongrid: ", "")
  if message:sub(1, #path) == path then message = message:sub(#path + 1):gsub("^:%d+: ", "") end
  return code, message, out
end

-- A test of each recipe: { text, message or several of which one comes, exit code (3), world = (8) }.
local function ends(cases)
  for name, case in pairs(cases) do
    it(name, function()
      local words = type(case[2]) == "table" and case[2] or { case[2] }
      local clock = table.concat(words):find("processor time", 1, true)
      local code, message = outcome(case[1], case.world, nil, clock and fast_clock())
      for _, one in ipairs(words) do
        if message == one then message = words[1] end
      end
      assert.are.same({ case[3] or 3, words[1] }, { code, message })
    end)
  end
end

return { building = building, outcome = outcome, ends = ends }
