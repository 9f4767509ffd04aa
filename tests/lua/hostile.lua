-- SPDX-License-Identifier: MIT
--
-- What the specs of hostile recipes share: each recipe runs as a user would, in 1 GiB of address space and with a time
-- limit.

local support = require "support"
local run, file = support.run, support.file

-- A recipe whose build has g, a grid of all ranks along x, and f, its family.
local function building(body)
  return "return recipe { build = function(w) local t, g = topology(w), grid(w, 'x', { x = fill }) local f = g 'x'\n"
    .. body .. "\nreturn t end }"
end

-- The exit code and the message of a recipe, without "moongrid: " and the file's name.
local function outcome(recipe, world, more)
  local path = file(recipe)
  local out, err, code = run(("ulimit -v 1048576; timeout 110 build/moongrid plan %s --world %d %s"):format(
    path, world or 8, more or ""))
  local message = err:gsub("\n$", ""):gsub("^moongrid: ", "")
  if message:sub(1, #path) == path then message = message:sub(#path + 1):gsub("^:%d+: ", "") end
  return code, message, out
end

-- A test of each recipe: { text, message or several of which one comes, exit code (3), world = (8) }.
local function ends(cases)
  for name, case in pairs(cases) do
    it(name, function()
      local code, message = outcome(case[1], case.world)
      local words = type(case[2]) == "table" and case[2] or { case[2] }
      for _, one in ipairs(words) do
        if message == one then message = words[1] end
      end
      assert.are.same({ case[3] or 3, words[1] }, { code, message })
    end)
  end
end

return { building = building, outcome = outcome, ends = ends }
