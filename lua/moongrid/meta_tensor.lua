---@meta moongrid
-- SPDX-License-Identifier: MIT
--
-- Annotations of tensors: how a recipe says them, what a plan answers. meta.lua has the rest.

---How one axis is cut: a dim, "tp", or a list of dims, outermost first, each of which cuts the pieces of the one
---before, and what follows by name. Of `sizes`, `cyclic`, `bounds` and `owners` one at most; without them sizes differ by one at
---most, larger ones first. A dim cuts one axis.
---@class moongrid.Cut
---@field [integer] string dims
---@field sizes? "ceil"|integer[] "ceil": all but the last have length / pieces rounded up, trailing ones may be empty
---(torch.chunk); a list: the length of each piece
---@field cyclic? integer blocks of that many elements, 1 or more, dealt to the pieces in turn; at most 2^24 blocks
---@field bounds? integer[]|fun(pieces: integer, length: integer): integer[] pieces + 1 ascending numbers from 0 to the
---length; or a function that returns them, or the length of each piece: `policies.layers { embedding = 1 }` is one
---@field parts? integer[] lengths of arrays that lie side by side, each cut by itself: fused QKV, gate and up
---@field owners? integer[] the piece of each element, from 0, or with `unit` of each run of so many elements: experts that
---were placed by their loads. A piece may have none
---@field unit? integer pieces are multiples of it, which divides the length and each part: whole heads

---@class moongrid.TensorTable
---@field axes table[] { name, length } each, slowest first, as stored in C order; 1 to 8
---@field type string "bf16", "f16", "f32", "f64", "f8_e4m3", "f8_e5m2", "i8" to "i64", "u8" to "u64", "bool", "c64", "c128"
---@field over? string|moongrid.Grid whose dims are named; left out, the only grid of the topology
---@field cut? table<string, string|moongrid.Cut> by axis; what is not cut is there on every rank of the grid
---@field on? moongrid.Family the ranks that hold it at all, every combination of some coordinates of each dim, as
---`g "pp":pick(0, -1)`. O(its members)

---@class moongrid.FlatTable
---@field [integer] moongrid.Tensor in the order in which they lie, none of them flat
---@field over string|string[] the dims that cut the array, outermost first
---@field pad? integer slices are multiples of that many elements, 1 or more (1); padding is behind the last tensor

---A tensor that waits for its topology: `t.weights = tensor {...}` reads it, and raises what is wrong with it.
---@class moongrid.Tensor
local Tensor = {} -- luacheck: ignore

---The part of a tensor that a rank holds.
---@class moongrid.TensorPart
---@field shape integer[] elements on each axis; of a flat tensor those before it is cut into slices
---@field elements integer
---@field first? integer of a flat tensor: of the part of that shape, in C order, the rank has `elements` from this one on
---@field offset? integer of a flat tensor: where they begin in the rank's slice
---@field slice? integer of a flat tensor: elements of the slice, padding included
---@field bytes integer
---@field copy integer which of the copies this is, 0 to copies - 1
---@field copies integer ranks that hold the same part
---@field runs integer[][][] of each axis, ascending: { start, length } each; the part is every combination, in C order

---What one rank does in a move of tensors from one layout to another. Each element that a rank needs and does not have is
---sent to it once.
---@class moongrid.Move
---@field rank integer whose view this is
---@field stay integer bytes that it needs and has
---@field send integer bytes
---@field receive integer bytes
---@field rounds? integer of the job; nil where they were not asked for
---@field tensors string[]
---@field peers moongrid.MovePeer[] by rank
local Move = {}

---Every rank fills its parts with numbers that say which element they are, the move is carried out over the job's
---backend, and every element is checked where it arrives. Collective: each rank calls its own move.
---@param job moongrid.Job
---@param options? { window?: integer, timeout?: number, messages?: boolean } bytes of memory for packing, 64 MiB; seconds without
---progress; by messages alone, though ranks of one host may read each other's memory
---@return true? ok nil, message, status where an element is wrong, ranks differ, or the job failed
---@return string? message
---@return integer? status
function Move:prove(job, options) end

---@class moongrid.MovePeer
---@field rank integer
---@field send integer bytes, all tensors in one message; 0: none
---@field receive integer bytes
---@field send_round? integer
---@field receive_round? integer
