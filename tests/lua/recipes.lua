-- SPDX-License-Identifier: MIT
--
-- Recipes as texts, for the specs of the language: files in a folder of each test, loaded and planned. Loaded
-- with busted's names.

local mg = require "moongrid"
local support = require "support"

local M = { folder = nil } -- of the running test

-- Write a recipe into the folder of this test; its path.
function M.write(name, text)
  return support.write(M.folder .. "/" .. name, text)
end

before_each(function()
  M.folder = support.folder()
end)

after_each(function() os.execute("rm -r " .. M.folder) end)

function M.recipe(text) return mg.load(M.write("r.lua", text)) end

-- A message without the folder.
function M.plain(message) return (message:gsub((M.folder .. "/"):gsub("%p", "%%%0"), "")) end

-- The message that a program "s.lua" gets when a recipe is refused, without the folder. The position is
-- that of the recipe; a message without one has that of the program.
function M.refusal(text, params, world)
  local script = assert(load("local mg, path, world, params = ... return mg.load(path):plan(world, params)", "@s.lua"))
  local ok, message = pcall(script, mg, M.write("r.lua", text), world or 8, params or {})
  assert.is_false(ok)
  assert.is_string(message)
  return M.plain(message)
end

-- Each case: { what, text, message, params = {}, world = 8 }
function M.refuses(cases)
  for _, case in ipairs(cases) do
    it("refuses " .. case[1], function()
      assert.are.equal(case[3], M.refusal(case[2], case.params, case.world))
    end)
  end
end

-- One grid of two dims, for most cases.
M.simple = [[
return recipe { doc = "two dims", params = { tp = param.size(1, "tensor", "t", "tensor_size") }, build = function(world, p)
  local g = grid(world, "tp-dp", { tp = p.tp, dp = fill })
  local t = topology(world)
  t.grid = g
  t.tp = g "tp"
  return t
end }
]]

return M
