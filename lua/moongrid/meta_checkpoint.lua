---@meta moongrid
-- SPDX-License-Identifier: MIT
--
-- Annotations of checkpoints: safetensors files, and their copies in the layout of a plan. meta.lua has the rest.

---Tensors in safetensors files.
---@class moongrid.Checkpoint
---@field tensors { name: string, type: string, shape: integer[] }[] in the order of the index
local Checkpoint = {}

---Start a copy in the layout of a plan: a file for each rank that has the first copy of a part, and an index. Raises if a
---tensor has no counterpart on the other side, a rule between names is wrong, or a rank would hold nothing of a tensor.
---`names` are rules between names, as `moongrid reshard` reads them, and `names_from` is what messages call them;
---`recipe_names` are those of the recipe (`names` of its info), and `recipe` is what messages call it.
---@param plan moongrid.Plan
---@param folder string there is none of this name yet
---@param options? { names?: string, names_from?: string, recipe?: string, recipe_names?: string, convert?: boolean, empty?: boolean, window?: integer } convert:
---between f64, f32, f16 and bf16; empty: ranks may hold nothing of a tensor; window: bytes of memory for elements, 1024 or more (64 MiB)
---@return moongrid.Resharding
function Checkpoint:reshard(plan, folder, options) end

---A copy that is written. The folder has its name when it is complete; one that is closed before, or collected, leaves
---nothing.
---@class moongrid.Resharding
---@field progress { tensors: integer, bytes: integer, files: integer, done: integer, made: integer } of the copy; done: bytes
---so far; made: files so far
local Resharding = {}

---Write the next elements, at most `window` bytes. Raises if something cannot be read or written; then the copy is ended.
---@return boolean more false: the copy is complete, or ended
function Resharding:step() end

---@class moongrid
local moongrid = {}

---Open a checkpoint: an index of safetensors files, a folder with one, or a single file. Raises unless its parts have each
---element once.
---@param path string
---@return moongrid.Checkpoint
function moongrid.checkpoint(path) end
