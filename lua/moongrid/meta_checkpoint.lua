---@meta moongrid
-- SPDX-License-Identifier: MIT
--
-- Annotations of checkpoints: safetensors files, and their copies in the layout of a plan. meta.lua has the rest.

---Tensors in safetensors files.
---@class moongrid.Checkpoint
---@field tensors { name: string, type: string, shape: integer[] }[] in the order of the index
local Checkpoint = {}

---Start a copy in the layout of a plan: a file for each rank that has the first copy of a part, and an index. Raises if
---a tensor has no counterpart on the other side, a rule between names is wrong, or a rank would hold nothing of a
---tensor. Options: names: rules between names, as `moongrid reshard` reads them; names_from: the source of these rules,
---for messages; recipe_names: the rules of the recipe (`names` of its info); recipe: the recipe's name, for messages.
---@param plan moongrid.Plan
---@param folder string must not exist yet
---@param options? { names?: string, names_from?: string, recipe?: string, recipe_names?: string, convert?: boolean, empty?: boolean, window?: integer } convert:
---between f64, f32, f16 and bf16; empty: ranks may hold nothing of a tensor; window: bytes of memory for elements, 1024 or more (64 MiB)
---@return moongrid.Resharding
function Checkpoint:reshard(plan, folder, options) end

---A copy that is being written. The folder gets its name when the copy is complete; a copy that is closed or collected
---before leaves nothing.
---@class moongrid.Resharding
---@field progress { tensors: integer, bytes: integer, files: integer, done: integer, made: integer } the totals of the copy;
---done: bytes written so far; made: files written so far
local Resharding = {}

---Write the next elements, at most `window` bytes. Raises an error of reading or writing; then the copy has ended.
---@return boolean more false: the copy is complete, or has ended
function Resharding:step() end

---@class moongrid
local moongrid = {}

---Open a checkpoint: an index of safetensors files, a folder with an index, or a single file. Raises unless its parts
---have each element once.
---@param path string
---@return moongrid.Checkpoint
function moongrid.checkpoint(path) end
