---@meta moongrid
-- SPDX-License-Identifier: MIT
--
-- Annotations of tensors: how a recipe describes them, and what a plan says about them. meta.lua says which file has
-- the other annotations.

---How one axis is cut. The list elements are the dims that cut it, outermost first: each dim cuts the pieces of the dim
---before it. Give at most one of `sizes`, `cyclic`, `bounds` and `owners`; without them the sizes of pieces differ by
---at most one (with `unit` one unit), larger pieces first. A dim cuts at most one axis of a tensor.
---@class moongrid.Cut
---@field [integer] string dims
---@field sizes? "ceil"|integer[] "ceil", as torch.chunk: pieces have length / pieces elements, rounded up, until none are left,
---so the last pieces may be smaller or empty; or a list with the length of each piece
---@field cyclic? integer elements of a block, 1 or more; the pieces get the blocks in turn; at most 2^24 blocks
---@field bounds? integer[]|fun(pieces: integer, length: integer): integer[] where pieces begin: pieces + 1 ascending numbers from 0
---to the length; or a function that returns these numbers, or the length of each piece, as `policies.layers { embedding
---= 1 }` does
---@field parts? integer[] lengths of concatenated arrays, of which each is cut separately: fused QKV, gate and up
---@field owners? integer[] the piece of each element, from 0, or with `unit` of each run of `unit` elements: experts placed by
---their loads. A piece may have no elements
---@field copies? boolean if there are fewer units than pieces, neighbouring ranks get the same unit, as the heads of keys and
---values in grouped-query attention. The number of pieces must be a multiple of the number of units. Without `copies`
---the last ranks get nothing
---@field unit? integer the lengths of pieces are multiples of this number (the size of a head); it divides the length and each
---of `parts`

---@class moongrid.TensorTable
---@field axes table[] 1 to 8 axes, each { name, length }, slowest first, as in C order
---@field type string "bf16", "f16", "f32", "f64", "f8_e4m3", "f8_e5m2", "i8" to "i64", "u8" to "u64", "bool", "c64", "c128"
---@field over? string|moongrid.Grid the grid whose dims cut the tensor; default: the only grid of the topology
---@field cut? table<string, string|moongrid.Cut> for each axis that is cut: a dim, or a Cut. Other axes are not cut
---@field on? moongrid.Family the ranks that hold the tensor (default: all of `over`). They must be every combination of some
---coordinates of each dim, as in `g "pp":pick(0, -1)`. O(members of `on`)

---@class moongrid.FlatTable
---@field [integer] moongrid.Tensor the tensors, in the order of concatenation; none of them is flat itself
---@field over string|string[] the dims that cut the result, outermost first
---@field pad? integer slices are multiples of this number of elements, 1 or more (1); padding follows the last tensor

---The description of a tensor. The assignment `t.weights = tensor {...}` checks it, and raises if it is wrong.
---@class moongrid.Tensor
local Tensor = {} -- luacheck: ignore

---The part of a tensor that a rank holds.
---@class moongrid.TensorPart
---@field shape integer[] number of elements on each axis; for a flat tensor before it is cut into slices
---@field elements integer
---@field first? integer for a flat tensor: the index, in C order of `shape`, of the first of the rank's `elements`
---@field offset? integer for a flat tensor: where the rank's elements start in its slice
---@field slice? integer for a flat tensor: number of elements of the slice, padding included
---@field bytes integer
---@field copy integer number of this copy, 0 to copies - 1
---@field copies integer ranks that hold the same part
---@field nruns? integer[] the number of runs of each axis, if the argument `most` shortened `runs`
---@field runs integer[][][] for each axis a list of runs of consecutive indices, { start, length }, ascending. The part has every
---combination of these indices, in C order

---A tensor as all ranks have it.
---@class moongrid.WholeTensor
---@field axes string[] names, slowest first
---@field bytes integer
---@field largest integer bytes of the largest part
---@field copies integer ranks that hold the same part
---@field without integer ranks that hold nothing
---@field rule string how the tensor is cut, in words

---What one rank sends and receives when tensors move from one layout to another. Each element that a rank needs and
---does not hold is sent to it once.
---@class moongrid.Move
---@field rank integer
---@field stay integer bytes that the rank needs and already holds
---@field send integer bytes
---@field receive integer bytes
---@field rounds? integer number of rounds of the move over all ranks; nil without the option `rounds`, or if there are none
---@field tensors string[] names of the tensors that move
---@field peers moongrid.MovePeer[] the ranks with which the rank exchanges messages, ascending
local Move = {}

---Test a move: fill the parts of every rank with numbers that encode the index of the element, run the move over the
---job's backend, and check every element that arrives. Collective: each rank calls its own move.
---@param job moongrid.Job
---@param options? { window?: integer, timeout?: number } window: bytes of memory for packing (64 MiB); timeout: seconds without
---progress
---@return true? ok nil if an element is wrong, the moves of the ranks do not fit together, or the job failed
---@return string? message
---@return integer? status
function Move:prove(job, options) end

---Return the sums over all ranks as `Moves:sums` does, but without `rounds`. Local, O(messages of all ranks).
---@return moongrid.MoveSums[] tensors
---@return moongrid.MoveSums all
function Move:sums() end

---@class moongrid.MovePeer
---@field rank integer
---@field send integer bytes of the one message with all tensors; 0: no message
---@field receive integer bytes
---@field send_round? integer
---@field receive_round? integer

---A move of tensors, for all ranks.
---@class moongrid.Moves
---@field ranks integer number of ranks that take part, from both plans
---@field tensors string[] names of the tensors that move
local Moves = {}

---Return the sums of a move over all ranks. O(messages of all ranks).
---@return moongrid.MoveSums[] tensors
---@return moongrid.MoveSums all
---@return string? why if there are no rounds, the reason: too many messages
function Moves:sums() end

---Return the messages that a rank sends, sorted by receiver, then by tensor. The first call puts the messages of all
---ranks into rounds.
---@param rank integer 0 to ranks - 1
---@return { from: integer, to: integer, tensor: string, bytes: integer, round?: integer }[]
function Moves:messages(rank) end

---Numbers are bytes, unless the field says otherwise.
---@class moongrid.MoveSums
---@field name? string of the tensor; nil for the sums of all tensors
---@field stay integer that ranks need and already hold
---@field sent integer by all ranks
---@field minimum integer that ranks need and do not hold
---@field max_send integer the most that one rank sends
---@field max_receive integer the most that one rank receives
---@field peers integer number of ranks with which one rank exchanges messages, at most
---@field messages integer number of messages; all tensors between two ranks are one message
---@field busiest integer number of messages that one rank sends, or receives, at most
---@field rounds? integer number of rounds, in which each rank sends and receives at most one message; nil: too many messages
---@field gather integer that would be sent if each rank gathered the whole tensor
---@field crossing? integer sent between nodes; nil if the ranks of a node are not known (option `machine`)

---@class moongrid
local moongrid = {}

---Plan the move of tensors from one plan or state to another, for one rank: with a State for this rank, else for
---`rank`. Raises if a tensor is in only one of the plans, or if its axes or type differ. Local.
---@param from moongrid.Plan|moongrid.State
---@param to moongrid.Plan|moongrid.State
---@param options? { rank?: integer, tensors?: string[], rounds?: boolean, ranks?: integer[], convert?: boolean, machine?: integer } tensors: move only
---these; rounds: put messages into rounds, in which a rank sends and receives at most one (time and memory grow with
---the job); ranks: for each rank of `to` its rank in the move; convert: a tensor may be f32 on one side and bf16 on the
---other; machine: the number of consecutive ranks on a node: a rank then receives elements from its own node if a rank
---there holds them. Between two states the default is that of the job
---@return moongrid.Move
function moongrid.move(from, to, options) end

---Plan the move for all ranks. Raises as moongrid.move.
---@param from moongrid.Plan|moongrid.State
---@param to moongrid.Plan|moongrid.State
---@param options? { tensors?: string[], ranks?: integer[], convert?: boolean, machine?: integer }
---@return moongrid.Moves
function moongrid.moves(from, to, options) end
