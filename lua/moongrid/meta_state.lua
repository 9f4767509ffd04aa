---@meta moongrid.state
-- SPDX-License-Identifier: MIT
--
-- Annotations for editors of jobs, states, their groups, and collectives on buffers; the remarks at the top of
-- meta.lua apply here, too.

-- Job -----------------------------------------------------------------------------

---A running job, of which this process is one rank.
---@class moongrid.Job
---@field rank integer
---@field world integer
---@field backend string the name of the backend, which is that of the function that opened the job
---@field ncomms integer communicators that all states of the job hold on this rank; a shared one counts once
---@field machine_ranks integer? ranks of a machine, if each has the same number of consecutive ranks (the last one may have
---fewer); else nil. Also nil with one machine, with one for each rank, and before the first `materialize` or `settle`
local Job = {}

---Compare the plan's digest between all ranks, then create this rank's communicators: all or
---nothing. Collective. Failures of the job are returned as values, on every rank.
---@param plan moongrid.Plan
---@param name? string part of the names of the communicators
---@return moongrid.State? state the caller closes it before the job
---@return string? message
---@return integer? status 400 to 499: the backend failed, 500: ranks disagree (moongrid.h has each)
function Job:materialize(plan, name) end

---Wait until every rank of the job has arrived. Collective.
---@param call? string all ranks must be in a barrier of this name; errors say it
---@return boolean? ok
---@return string? message
---@return integer? status
function Job:barrier(call) end

---Agree on whether all ranks of the job have done their part. A rank that has passes no arguments, or the results of a
---call: `job:settle(job:broadcast(...))`. All ranks get true, or all get the error of one rank. Collective.
---@param done? any nil or false: this rank failed, with the message and status that follow
---@param message? string
---@param status? integer
---@return true? settled nil on failure
---@return string? message
---@return integer? status
function Job:settle(done, message, status) end

---Compare a plan between all ranks. A rank without a plan passes its error instead, which all ranks get. Collective.
---@param call string what the ranks are about to do, the same on all, with options on which they must agree
---@param plan moongrid.Plan|nil
---@param message? string
---@param status? integer
---@return true? agreed nil on failure
---@return string? message
---@return integer? status 500: ranks disagree
function Job:agree(call, plan, message, status) end

---Send one rank's value to every rank: a plain value (lists or tables by name of finite numbers, booleans and UTF-8
---text), or the elements of a Buffer, if every rank gives a Buffer of the same size and type. It is for small values,
---such as a seed or a path. Collective; if one rank has an invalid value, all get nil, message, status. If the sent
---value is nil, only the message shows a failure.
---@generic T
---@param value T|nil only the root's is sent; of other ranks only whether it is a Buffer matters
---@param root? integer rank of the job that has the value, the same on all; 0 by default
---@return T? value the root's, or the Buffer that was given
---@return string? message
---@return integer? status
function Job:broadcast(value, root) end

---Return the machine that the job runs on: its nodes, the GPU of each rank by its PCI id, and NVLink cliques if NVML
---reports them. Collective.
---@return moongrid.MachineModel? machine nil, message, status if the job failed
---@return string[]|string boot_ids of its nodes, in their order; or the message
---@return integer? status
function Job:machine() end

---Leave the job, and finalize MPI where `mpi` has initialized it. Collective.
function Job:close() end

-- State and Group -----------------------------------------------------------------

---A plan whose communicators exist, seen from this rank. `state.tp` is this rank's Group of family tp, nil if it is in
---none; `state.dense` its Mesh, the coordinates in a grid of that name (nil outside the grid). The names below take
---precedence. `#state` is ngroups; `pairs(state)` visits each family's name with the Group, or false.
---`local s <close> = ...` closes it at the end of the block. `print(state)` gives an overview: this rank's groups, at
---most a screen of them.
---@class moongrid.State
---@field rank integer
---@field world integer
---@field plan moongrid.Plan
---@field machine moongrid.Machine
---@field ncomms integer communicators this state holds
---@field ngroups integer groups this rank belongs to, groups of one included
---@field [string] moongrid.Group|moongrid.Mesh|any
local State = {}

---Return all groups of a family that contain this rank, in index order: one of a partition,
---several of a cover, or none.
---@param family string
---@return moongrid.Group[]
function State:groups(family) end

---@param grid string
---@param dim string
---@return integer? coordinate nil outside the grid
function State:coord(grid, dim) end

---Return whether the plan has a family of this name. This rank need not be in it. `state[name]` of an
---unknown name is an error. Local.
---@param family string
---@return boolean
function State:has(family) end

---Return the step of the recipe that made the state's plan. All ranks compare its digest. Raises for a plan without a
---recipe. Collective.
---@param file? string a file that returns the step, instead of the recipe's
---@return moongrid.Programs? step
---@return string? message
---@return integer? status 500: ranks have different steps
function State:step(file) end

---Execute the step on the ranks of the job. Every rank returns what all ranks measured. Collective. Options: compute:
---"sleep" for the time of computes, or, over MPI, a function that gets a number of flops, executes some of them and
---returns how many; it is called until all are done, and at the end of the step all ranks get its error. By default
---computes take no time. timeout: seconds without progress on any rank (with GPUs: seconds of a call), after which all
---ranks give up, and the error names the missing ranks. timeline: rank 0 also gets what each rank did in the last step.
---file: as in `step`. unproved: execute also a step that is not proved. After a failure all ranks get nil, message,
---status, and `moongrid.Missing` if ranks are missing; wrong options raise.
---@param options? { steps?: integer, scale?: number, compute?: "sleep"|fun(flops: number): number, timeout?: number, timeline?: boolean, file?: string, unproved?: boolean }
---@return moongrid.Measured? measured
---@return moongrid.Timeline|string|nil timeline or the message
---@return integer? status
function State:run_step(options) end

---Go on without lost ranks, under Open MPI 5 (`mpirun --with-ft ulfm`; src/survive/README.md). All survivors call it,
---including spares, when a call fails because a rank was lost (status 404), or when `hurt` is true. As in `plan:lose`,
---`how` or else the recipe's policy on_lost decides what the job becomes. Returns the State of the next plan, the Loss,
---the move that fills the new layout, and the Job of the survivors. This State stays. Fill the new State, then call
---`settle` on it. If that fails because of another loss, close the new State and recover from this one again; else
---close this one. If no rank is lost, all keep their places. After a failure start again from the last checkpoint.
---Options: lost, job: a host that finds the lost ranks itself gives their list, and a Job of the survivors.
---nccl_shrink: if true, NCCL makes groups that only lost members by ncclCommShrink where possible; if false, all groups
---get new ids. Raises for unknown options. Collective.
---@param options? { how?: "replace"|"shrink"|"stop", name?: string, timeout?: number, lost?: integer[], job?: moongrid.Job, nccl_shrink?: boolean }
---@return moongrid.State? next nil on failure
---@return moongrid.Loss|string loss or the message
---@return moongrid.Move|integer move or the status
---@return moongrid.Job? job
function State:recover(options) end

---Agree on whether all ranks of the state have done their part. A rank that has passes no arguments, or the results of
---a call: `next:settle(move:prove(job))`. All ranks get true, or all get one error. Collective, also for spares.
---@param done? any nil or false: this rank failed, with the message and status that follow
---@param message? string
---@param status? integer
---@return true? settled nil on failure
---@return string? message
---@return integer? status 404: a rank was lost
function State:settle(done, message, status) end

---Return the minimum of a number over all ranks, such as the last step that every rank has done. Collective, also for
---spares.
---@param number integer
---@return integer? least nil on failure
---@return string? message
---@return integer? status
function State:least(number) end

---Return whether a rank of the state is lost, or has begun to recover. Local.
---@return boolean
function State:hurt() end

---Prove each communicator by collectives that compare members and order. Collective over the
---job: every rank calls it and gets the same verdict.
---@return integer? proved communicators proved on this rank; nil on failure
---@return string? message
---@return integer? status 400 to 499: the backend failed, 500: ranks disagree (moongrid.h has each)
function State:prove() end

---Create the communicators of a `lazy` family; a second call is harmless. Collective over the job.
---@param family string
---@return true? created nil on failure
---@return string? message
---@return integer? status
function State:create(family) end

---Release the GPU memory of all NCCL communicators of the state, as far as NCCL can (NCCL 2.29.7). Nothing may use them
---until `resume`. Collective over the job. Does nothing with other backends.
---@return true? done nil on failure
---@return string? message
---@return integer? status
function State:suspend() end

---Allocate the memory released by `suspend` again. Collective over the job.
---@return true? done nil on failure
---@return string? message
---@return integer? status
function State:resume() end

---Return the GPU memory that the NCCL communicators of the state hold on this rank, as NCCL counts it (NCCL 2.29.7).
---Local.
---@return moongrid.HeldMemory? memory nil on failure
---@return string? message
---@return integer? status
function State:held_memory() end

---@class moongrid.HeldMemory
---@field communicators integer of NCCL
---@field suspended integer of these
---@field total integer bytes
---@field suspendable integer bytes that `State:suspend` releases
---@field persistent integer bytes that it keeps

---Release the communicators; the groups of the state are unusable after that. Collective over
---the job, in the same order on all ranks. A second call is harmless.
function State:close() end

---A grid as one rank sees it: `mesh.tp` is the rank's coordinate in dim tp, and `pairs(mesh)` visits only coordinates.
---A dim hides a field below of the same name. A mesh may outlive its state.
---@class moongrid.Mesh
---@field position integer of this rank in the grid's order, 0 to size - 1
---@field size integer ranks of the grid
---@field shape integer[] size of each dim, fastest first
---@field ranks integer[] global ranks in the grid's order, first dim fastest; O(size)
---@field grid moongrid.Grid
---@field [string] integer
local Mesh = {}

---Return the slice of the grid along some dims that contains this rank: the other dims stay at the rank's coordinates.
---The dims keep the grid's order for any order of the names, as in `grid("tp", "dp")`, whose group of this rank has
---the same ranks. Local.
---@param ... string names of dims, each once; none: only this rank
---@return moongrid.Mesh
function Mesh:submesh(...) end

---Where this rank runs, and how the job is spread over machines (nodes). Machines are identified by host name and boot
---id, and numbered by their lowest rank. Read-only; `pairs` visits the fields that have a value. A dry state has the
---values of a job that runs on this machine alone. An agreed policy may read only fields that are identical on all
---ranks.
---@class moongrid.Machine
---@field name string its host name
---@field machines integer of the job
---@field index integer of this machine, 0 to machines - 1
---@field local_size integer ranks of the job on this machine
---@field local_rank integer index of this rank among them, 0 to local_size - 1
---@field cores integer logical processors online
---@field usable_cores integer cores that this process is bound to; some launchers bind to one
---@field memory integer bytes of the machine
---@field gpus integer visible to this process with the NCCL backend; 0 with another backend
---@field gpu integer? index of this rank's GPU; nil without one

---This rank's group of a family. It keeps its state alive. `#group` is its size; two groups are equal if they have the
---same list of ranks and the same position of this rank.
---@class moongrid.Group
---@field position integer of this rank in the group, 0 to size - 1; `rank` always means the rank in the world
---@field size integer
---@field index integer which group of the family
---@field first integer global rank at position 0
---@field last integer global rank at the last position
---@field ranks integer[] global ranks in order
---@field name string of the family
---@field backend string the backend that made its communicator; "": it has none
---@field launch_order integer order of calls on this rank's groups: of several used at a time launch the lowest first.
---Identical on all members, different for each group of a rank
local Group = {}

---@param wrap? "wrap"|boolean go around at the end
---@return integer? rank global rank one position on; nil past the end
function Group:next(wrap) end

---@param wrap? "wrap"|boolean go around at the start
---@return integer? rank global rank one position back; nil before the start
function Group:prev(wrap) end

---@param position integer negative ones count from the end
---@return integer? rank global rank there; nil if there is no such position
function Group:at(position) end

---@param rank integer global rank
---@return integer? position nil for a rank outside the group
function Group:position_of(rank) end

---@param rank integer global rank
---@return boolean
function Group:contains(rank) end

---In a group with a Cartesian shape (`grid:cartesian`), return the positions from which this rank receives and to which
---it sends if all members send some steps along a dim, as MPI_Cart_shift does; nil past an end that is not periodic.
---@param dim string
---@param displacement? integer default 1; negative: the opposite direction
---@return integer? source position
---@return integer? dest position
function Group:shift(dim, displacement) end

---Return the segment of this group that contains this rank, for segments that change from step to step. Creates no
---communicator. Local. `Family:segments` makes families of fixed segments.
---@param sizes integer[] of all segments in order, 1 or more; they sum to the group's size, or one is `fill`
---@return moongrid.Segment
function Group:segment(sizes) end

---Return a window that the option `windows` names: memory of this rank that all members have registered with NCCL. nil
---if the group has no NCCL communicator. Local.
---@param name string
---@return moongrid.Window?
function Group:window(name) end

---@class moongrid.Window
---@field buffer lightuserdata on the GPU; freed with the communicator
---@field handle lightuserdata its ncclWindow_t
---@field bytes integer

---Return the ncclDevComm that the option `device` asks for. nil if there is none. Local.
---@return lightuserdata? device
---@return integer? version of the NCCL whose ncclDevComm it is, 22809 for 2.28.9
function Group:device() end

---@class moongrid.Segment
---@field index integer which segment of the group
---@field start integer position in the group of its first member
---@field size integer
---@field position integer of this rank in it
---@field first integer global rank at its position 0
---@field last integer global rank at its last position
---@field next integer global rank one position on; after the last the first
---@field prev integer global rank one position back; before the first the last
---@field ranks integer[] global ranks in order

---Ranks that did not come to a call over several ranks in time, or are lost. It is the fourth result of a call that
---fails with status 403 or 404, if the library knows these ranks.
---@class moongrid.Missing
---@field n integer how many
---@field ranks integer[] the first 8 of them
---@field seconds number that this rank waited for them
---@field call string the call over all ranks in which it waited, as "prove 'train'"; or ""

---Allocate a buffer in the memory that the group's communicator uses: on the GPU for NCCL. Local. It is for the calls
---below, which are for self-tests and benchmarks. These calls return when they are complete. If the job fails they
---return nil, message, status; at the timeout of the job the status is 403, and the fourth result `moongrid.Missing`.
---In a query, which runs on one rank only, they raise an error.
---@param n integer elements, 1 or more; zeros at first
---@param type? "float"|"double"|"int32"|"int64" default "float"
---@return moongrid.Buffer? buffer closed by the caller, or garbage collected
---@return string? message
---@return integer? status
function Group:buffer(n, type) end

---Replace every element by its reduction over all members. Collective over the group.
---@param buffer moongrid.Buffer of equal size and type on all members
---@param op? "sum"|"prod"|"min"|"max"
---@return boolean? ok
---@return string? message
---@return integer? status
function Group:allreduce(buffer, op) end

---Copy one member's buffer to all members. Collective over the group.
---@param buffer moongrid.Buffer the source on that member, overwritten on the others
---@param position integer|{ rank: integer } of that member; or its rank in the world
---@return boolean? ok
---@return string? message
---@return integer? status
function Group:broadcast(buffer, position) end

---Gather the elements of all members on every member. Collective over the group.
---@param mine moongrid.Buffer n elements
---@param all moongrid.Buffer receives those of every member in group order: n times the group's size
---@return boolean? ok
---@return string? message
---@return integer? status
function Group:allgather(mine, all) end

---Reduce over all members, and scatter the result by position. Collective over the group.
---@param all moongrid.Buffer n times the group's size elements
---@param mine moongrid.Buffer receives the n of this member's position, reduced over all members
---@param op? "sum"|"prod"|"min"|"max"
---@return boolean? ok
---@return string? message
---@return integer? status
function Group:reduce_scatter(all, mine, op) end

---Send a block from each member to each: block i of `out` goes to position i, block i of `into` comes from there.
---Collective over the group.
---@param out moongrid.Buffer a multiple of the group's size elements, the same number on all members
---@param into moongrid.Buffer a different buffer, of the same size and type
---@return boolean? ok
---@return string? message
---@return integer? status
function Group:all_to_all(out, into) end

---Send and receive at once, without deadlock; with nil for one side only send or only receive. Collective over the
---members that send and receive.
---@param out moongrid.Buffer? the elements to send
---@param to integer|{ rank: integer }? position to send to, or its rank in the world
---@param into moongrid.Buffer? for the received elements, of the same size and type as the sender's
---@param from integer|{ rank: integer }? position to receive from, or its rank in the world
---@return boolean? ok
---@return string? message
---@return integer? status
function Group:sendrecv(out, to, into, from) end

---Wait until every member has arrived. Collective over the group.
---@return boolean? ok
---@return string? message
---@return integer? status
function Group:barrier() end

---Made by `group:buffer`. `#buffer` is the number of elements.
---@class moongrid.Buffer
local Buffer = {}

---Fill the buffer.
---@param value number|number[] one number for all elements, or a list for the first ones
---@return moongrid.Buffer? self
---@return string? message
---@return integer? status
function Buffer:set(value) end

---Return the first elements.
---@param n? integer how many; default: all
---@return number[]? values
---@return string? message
---@return integer? status
function Buffer:get(n) end

---Release the memory now.
function Buffer:close() end
