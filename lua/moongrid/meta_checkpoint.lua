---@meta moongrid
-- SPDX-License-Identifier: MIT
--
-- Annotations of checkpoints: safetensors files, and their copies in the layout of a plan. meta.lua says which file has
-- the other annotations.

---Tensors in safetensors files.
---@class moongrid.Checkpoint
---@field tensors { name: string, type: string, shape: integer[] }[] all tensors, in the order of the index
local Checkpoint = {}

---Start a copy in the layout of a plan: a file for each rank that has the first copy of a part, and an index. Raises if
---a tensor has no counterpart on the other side, a rule is wrong, or a rank would hold nothing of a tensor. Options:
---names: rules that say which names of tensors in the checkpoint and in the recipe mean the same tensor, as `moongrid
---reshard` reads them; names_from: where these rules come from, for messages; recipe_names: the recipe's own rules
---(`names` of `Recipe:info`), joined by newlines; recipe: the recipe's name, for messages; convert: convert between
---f64, f32, f16 and bf16; empty: ranks may hold nothing of a tensor; window: bytes of memory for elements, 1024 or more
---(64 MiB).
---@param plan moongrid.Plan
---@param folder string must not exist yet
---@param options? { names?: string, names_from?: string, recipe?: string, recipe_names?: string, convert?: boolean, empty?: boolean, window?: integer }
---@return moongrid.Resharding
function Checkpoint:reshard(plan, folder, options) end

---A copy that is being written. The folder gets its name when the copy is complete; a copy that is closed or collected
---before that leaves nothing.
---@class moongrid.Resharding
---@field progress { tensors: integer, bytes: integer, files: integer, done: integer, made: integer } tensors, bytes, files: of
---the complete copy; done: bytes written so far; made: files written so far
local Resharding = {}

---Write the next elements, at most `window` bytes. If reading or writing fails, this raises an error, and the copy has
---ended.
---@return boolean more false: the copy is complete, or has ended before
function Resharding:step() end

---@class moongrid
local moongrid = {}

---Open a checkpoint: an index of safetensors files, a folder with an index, or a single file. Raises unless each
---element of each tensor is in it exactly once.
---@param path string
---@return moongrid.Checkpoint
function moongrid.checkpoint(path) end
