-- SPDX-License-Identifier: MIT
--
-- Rewrite a checkpoint of safetensors files for a recipe, as `moongrid reshard` does. The tensors of the recipe must
-- have the names of the checkpoint.
--
--     lua5.4 examples/recut.lua CHECKPOINT RECIPE WORLD FOLDER [NAME=VALUE ...]

local mg = require "moongrid"

local path, recipe, world, folder = ...
assert(folder, "recut.lua CHECKPOINT RECIPE WORLD FOLDER [NAME=VALUE ...]")
local plan = mg.load(recipe):plan(math.tointeger(tonumber(world)), { select(5, ...) })
local checkpoint = mg.checkpoint(path)
for _, t in ipairs(checkpoint.tensors) do print(t.name, t.type, table.concat(t.shape, " x ")) end

local copy <close> = checkpoint:reshard(plan, folder, { recipe = recipe, window = 16 << 20 })
while copy:step() do io.stderr:write(("\r%d of %d bytes"):format(copy.progress.done, copy.progress.bytes)) end
print(("\n%d tensors in %d files"):format(copy.progress.tensors, copy.progress.files))
