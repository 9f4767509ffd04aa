-- SPDX-License-Identifier: MIT
--
-- A program with a prompt for questions about the plan of a recipe:
--
--     lua5.4 examples/prompt.lua RECIPE WORLD [NAME=VALUE ...]
--
-- It runs each line of standard input, such as `#tp`, and prints the result. For a line that ends in ?, such as
-- `tp:lo?`, it prints completions.

local mg = require "moongrid"

local name, world = ...
assert(world, "prompt.lua RECIPE WORLD [NAME=VALUE ...]")
local recipe = mg.load(name)
recipe:plan(math.tointeger(tonumber(world)), { select(3, ...) })

local typed = ""
for line in io.lines() do
  local begun = line:match "^(.*)%?$"
  if begun then
    print(table.concat(recipe:complete(begun), " "))
  else
    typed = typed .. line .. "\n"
    local done, answer = pcall(recipe.run, recipe, typed)
    if answer then print(answer) end
    if not done or answer then typed = "" end -- the answer is nil while the statement is incomplete
  end
end
