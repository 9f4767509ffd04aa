---@meta moongrid
-- SPDX-License-Identifier: MIT
--
-- Annotations of tensors: how a recipe describes them, and the answers of a plan. meta.lua has the rest.

---How one axis is cut: a dim, "tp", or a list of dims, outermost first, in which each dim cuts the pieces of the dim
---before it; and the fields below. Give at most one of `sizes`, `cyclic`, `bounds` and `owners`; without them the sizes
---of pieces differ by at most one, larger pieces first. A dim cuts at most one axis.
---@class moongrid.Cut
---@field [integer] string dims
---@field sizes? "ceil"|integer[] "ceil": all but the last have length / pieces rounded up, trailing ones may be empty
---(torch.chunk); a list: the length of each piece
---@field cyclic? integer elements of a block, 1 or more; blocks are assigned to the pieces in turn; at most 2^24 blocks
---@field bounds? integer[]|fun(pieces: integer, length: integer): integer[] pieces + 1 ascending numbers from 0 to the
---length; or a function that returns them, or the length of each piece, as `policies.layers { embedding = 1 }` does
---@field parts? integer[] lengths of concatenated arrays, each cut separately: fused QKV, gate and up
---@field owners? integer[] the piece of each element, from 0, or with `unit` of each run of `unit` elements: experts
---placed by their loads. A piece may have none
---@field copies? boolean with fewer units than ranks, neighbouring ranks get the same unit, as the heads of keys and
---values of grouped-query attention. The pieces must be a multiple of the units. Without it the last ranks get nothing
---@field unit? integer pieces are multiples of it; it divides the length and each of `parts`: whole heads

---@class moongrid.TensorTable
---@field axes table[] { name, length } each, slowest first, as stored in C order; 1 to 8
---@field type string "bf16", "f16", "f32", "f64", "f8_e4m3", "f8_e5m2", "i8" to "i64", "u8" to "u64", "bool", "c64", "c128"
---@field over? string|moongrid.Grid the grid whose dims are named; default: the only grid of the topology
---@field cut? table<string, string|moongrid.Cut> by axis; an axis without a cut is whole on every rank of the grid
---@field on? moongrid.Family the ranks that hold the tensor (default: all of `over`): every combination of some
---coordinates of each dim, as `g "pp":pick(0, -1)`. O(its members)

---@class moongrid.FlatTable
---@field [integer] moongrid.Tensor in the order of concatenation, none of them flat
---@field over string|string[] the dims that cut the result, outermost first
---@field pad? integer slices are multiples of this number of elements, 1 or more (1); padding follows the last tensor

---The description of a tensor: the assignment `t.weights = tensor {...}` checks it, and raises if it is wrong.
---@class moongrid.Tensor
local Tensor = {} -- luacheck: ignore

---The part of a tensor that a rank holds.
---@class moongrid.TensorPart
---@field shape integer[] elements on each axis; of a flat tensor before it is cut into slices
---@field elements integer
---@field first? integer of a flat tensor: the rank holds `elements` in C order of that shape, from this index on
---@field offset? integer of a flat tensor: where these elements start in the rank's slice
---@field slice? integer of a flat tensor: elements of the slice, padding included
---@field bytes integer
---@field copy integer which of the copies this is, 0 to copies - 1
---@field copies integer ranks that hold the same part
---@field nruns? integer[] the number of runs of each axis, if `runs` was limited
---@field runs integer[][][] for each axis { start, length } of each run, ascending; the part is every combination, in C order

---A tensor as all ranks have it.
---@class moongrid.WholeTensor
---@field axes string[] names, slowest first
---@field bytes integer
---@field largest integer bytes of the largest part
---@field copies integer ranks that hold the same part
---@field without integer ranks that hold nothing
---@field rule string how it is cut, in words

---What one rank sends and receives when tensors move from one layout to another. Each element that a rank needs and
---does not hold is sent to it once.
---@class moongrid.Move
---@field rank integer whose view this is
---@field stay integer bytes that it needs and already holds
---@field send integer bytes
---@field receive integer bytes
---@field rounds? integer of the job; nil unless requested
---@field tensors string[]
---@field peers moongrid.MovePeer[] by rank
local Move = {}

---Test a move: fill the parts of every rank with numbers that encode the index of the element, run the move over the
---job's backend, and check every element that arrives. Collective: each rank calls its own move.
---@param job moongrid.Job
---@param options? { window?: integer, timeout?: number } bytes of memory for packing, 64 MiB; seconds
---without progress
---@return true? ok nil, message, status if an element is wrong, ranks differ, or the job failed
---@return string? message
---@return integer? status
function Move:prove(job, options) end

---Return the sums over all ranks, as `Moves:sums` does, without rounds. Local, O(messages of all ranks).
---@return moongrid.MoveSums[] tensors
---@return moongrid.MoveSums all
function Move:sums() end

---@class moongrid.MovePeer
---@field rank integer
---@field send integer bytes, all tensors in one message; 0: none
---@field receive integer bytes
---@field send_round? integer
---@field receive_round? integer

---A move of tensors, for all ranks.
---@class moongrid.Moves
---@field ranks integer ranks that take part, of both plans
---@field tensors string[]
local Moves = {}

---Return the sums of a move over all ranks. O(messages of all ranks).
---@return moongrid.MoveSums[] tensors
---@return moongrid.MoveSums all
---@return string? why the reason if there are no rounds: too many messages
function Moves:sums() end

---Return the messages that a rank sends, by receiver, then tensor. The first call puts those of all ranks into rounds.
---@param rank integer 0 to ranks - 1
---@return { from: integer, to: integer, tensor: string, bytes: integer, round?: integer }[]
function Moves:messages(rank) end

---Numbers are bytes, unless the field says otherwise.
---@class moongrid.MoveSums
---@field name? string of the tensor
---@field stay integer that ranks need and already hold
---@field sent integer
---@field minimum integer that ranks need and do not hold
---@field max_send integer by one rank
---@field max_receive integer
---@field peers integer the most ranks with which one rank exchanges messages
---@field messages integer number of messages; all tensors between two ranks are one message
---@field busiest integer the most messages that one rank sends, or receives
---@field rounds? integer number of rounds, in which each rank sends and receives at most one message; nil: too many messages
---@field gather integer that would be sent if each rank gathered the whole tensor
---@field crossing? integer sent between machines; nil without `machine`

---@class moongrid
local moongrid = {}

---Plan the move of tensors between two plans or states for one rank: this rank with a State, else `rank`. Raises if a
---tensor is in only one of the plans, or its axes or type differ. Local.
---@param from moongrid.Plan|moongrid.State
---@param to moongrid.Plan|moongrid.State
---@param options? { rank?: integer, tensors?: string[], rounds?: boolean, ranks?: integer[], convert?: boolean, machine?: integer } tensors: only these;
---rounds: put messages into rounds, in which a rank sends and receives at most one (time and memory grow with the job);
---ranks: for each rank of `to` its rank in the move; convert: a tensor may be f32 on one side and bf16 on the other;
---machine: the number of consecutive ranks on a machine; a rank then receives elements from its own machine if a rank
---there holds them; default between two states: the job's machines
---@return moongrid.Move
function moongrid.move(from, to, options) end

---Plan the move for all ranks: sums, and every message. Raises as `move`.
---@param from moongrid.Plan|moongrid.State
---@param to moongrid.Plan|moongrid.State
---@param options? { tensors?: string[], ranks?: integer[], convert?: boolean, machine?: integer }
---@return moongrid.Moves
function moongrid.moves(from, to, options) end
