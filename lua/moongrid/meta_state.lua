---@meta moongrid.state
-- SPDX-License-Identifier: MIT
--
-- Annotations for editors of jobs, states, their groups, and collectives on buffers. The top of meta.lua has what holds
-- for all annotations.

-- Job -----------------------------------------------------------------------------

---A running job, of which this process is one rank.
---@class moongrid.Job
---@field rank integer
---@field world integer
---@field backend string the name of the backend: "mpi" for a job of moongrid.mpi
---@field ncomms integer communicators that all states of the job hold on this rank; a shared communicator counts once
---@field machine_ranks integer? ranks of each node, if all nodes have the same number of consecutive ranks (the last node may
---have fewer); else nil. Also nil if there is only one node, or one node for each rank, and before the first
---`materialize` or `settle`
local Job = {}

---Compare the plan's digest between all ranks, then create the communicators of this rank. Collective. If the job
---fails, every rank gets nil, message, status, and no communicator stays.
---@param plan moongrid.Plan
---@param name? string a text for the names of the communicators
---@return moongrid.State? state close it before the job
---@return string? message
---@return integer? status 400 to 499: the backend failed, 500: ranks disagree (moongrid.h has each)
function Job:materialize(plan, name) end

---Wait until every rank of the job has arrived. Collective.
---@param call? string a name, which must be the same on all ranks; errors show it
---@return boolean? ok
---@return string? message
---@return integer? status
function Job:barrier(call) end

---Agree on whether all ranks of the job have done their part. A rank that has done its part passes no arguments, or the
---results of a call: `job:settle(job:broadcast(...))`. All ranks get true, or all get the error of one rank.
---Collective.
---@param done? any nil or false: this rank failed, with the message and status that follow
---@param message? string
---@param status? integer
---@return true? settled nil on failure
---@return string? message
---@return integer? status
function Job:settle(done, message, status) end

---Compare a plan between all ranks. A rank without a plan passes its error instead, which all ranks get. Collective.
---@param call string what the ranks are about to do, with the options on which they must agree; the same on all ranks
---@param plan moongrid.Plan|nil
---@param message? string
---@param status? integer
---@return true? agreed nil on failure
---@return string? message
---@return integer? status 500: ranks disagree
function Job:agree(call, plan, message, status) end

---Send one rank's value to every rank: a plain value (finite numbers, booleans, UTF-8 text, lists and tables of them),
---or the elements of a Buffer, if every rank passes a Buffer of the same size and type. Use it for small values, such
---as a seed or a path. Collective; if a rank passes an invalid value, all get nil, message, status. If the value itself
---is nil, there was a failure only if there is a message.
---@generic T
---@param value T|nil the value of the root is sent; other ranks pass a Buffer if the root does, else any value
---@param root? integer the rank that has the value, the same on all ranks; 0 by default
---@return T? value the value of the root; for a Buffer the rank's own Buffer
---@return string? message
---@return integer? status
function Job:broadcast(value, root) end

---Return the machine on which the job runs: its nodes, the GPU of each rank by its PCI id, and NVLink cliques if NVML
---reports them. Collective.
---@return moongrid.MachineModel? machine nil on failure
---@return string[]|string boot_ids of the nodes, in the order of the nodes; on failure the message
---@return integer? status
function Job:machine() end

---Leave the job, and finalize MPI if moongrid.mpi has initialized it. Collective.
function Job:close() end

-- State and Group -----------------------------------------------------------------

---A plan whose communicators exist, seen from this rank. `state.tp` is this rank's Group of the family tp; nil if the
---rank is in no group of tp. `state.dense` is the Mesh of a grid `dense`, with this rank's coordinates; nil if the rank
---is outside the grid. The fields and methods below hide families and grids of the same names. `#state` is ngroups;
---`pairs(state)` visits the name of each family with this rank's Group, or with false. `local s <close> = ...` closes
---the state at the end of the block. `print(state)` shows this rank's groups, at most a screen of them.
---@class moongrid.State
---@field rank integer
---@field world integer
---@field plan moongrid.Plan
---@field machine moongrid.Machine
---@field ncomms integer communicators that this state holds on this rank
---@field ngroups integer groups that this rank is in, groups of one rank included
---@field [string] moongrid.Group|moongrid.Mesh|any
local State = {}

---Return all groups of a family that contain this rank, in the order of their numbers. Only in a cover can there be
---several.
---@param family string
---@return moongrid.Group[]
function State:groups(family) end

---@param grid string
---@param dim string
---@return integer? coordinate of this rank; nil if it is outside the grid
function State:coord(grid, dim) end

---Return whether the plan has a family of this name, whether or not this rank is in one of its groups. To read
---`state[name]` for an unknown name is an error. Local.
---@param family string
---@return boolean
function State:has(family) end

---Return the step of the recipe that made the state's plan. All ranks must have steps of the same digest. Raises for a
---plan without a recipe. Collective.
---@param file? string a file that returns the step to use instead of the recipe's
---@return moongrid.Programs? step
---@return string? message
---@return integer? status 500: ranks have different steps
function State:step(file) end

---Execute the step on the ranks of the job. Every rank gets what all ranks measured. Collective. Options: steps: how
---often to execute the step. scale: a factor for bytes and computes. compute: with "sleep", an s:compute sleeps for its
---time; with a function (only over MPI), an s:compute calls it with a number of flops, of which it executes some and
---returns how many, until all are done, and all ranks get its error at the end of the step; by default an s:compute
---takes no time. timeout: if no rank makes progress for this number of seconds (with GPUs: if a call takes longer), all
---ranks give up, and the error names the missing ranks. timeline: rank 0 also gets what each rank did in the last step.
---file: as in `State:step`. unproved: also execute a step that is not proved. After a failure all ranks get nil,
---message, status, and a `moongrid.Missing` if ranks are missing; wrong options raise.
---@param options? { steps?: integer, scale?: number, compute?: "sleep"|fun(flops: number): number, timeout?: number, timeline?: boolean, file?: string, unproved?: boolean }
---@return moongrid.Measured? measured
---@return moongrid.Timeline|string|nil timeline or the message
---@return integer? status
function State:run_step(options) end

---Go on without lost ranks, under Open MPI 5 (`mpirun --with-ft ulfm`; src/survive/README.md). All survivors, including
---spares, call this when a call fails because a rank was lost (status 404), or when `hurt` is true. The option `how`,
---or without it the recipe's policy on_lost, decides what the job becomes, as in `plan:lose`. If no rank is lost, all
---keep their places. Run the returned move to fill the new State, then call `settle` on the new State. If that fails
---because of another loss, close the new State and call `recover` of this State again; else close this State. If
---`recover` fails, start again from the last checkpoint. Options: lost, job: a host that finds the lost ranks itself
---passes their list, and a Job of the survivors. nccl_shrink: if true, NCCL makes a group that only lost members by
---ncclCommShrink where possible; if false, all groups get new ids. Raises for unknown options. Collective.
---@param options? { how?: "replace"|"shrink"|"stop", name?: string, timeout?: number, lost?: integer[], job?: moongrid.Job, nccl_shrink?: boolean }
---@return moongrid.State? next the State of the new plan; nil on failure
---@return moongrid.Loss|string loss or, on failure, the message
---@return moongrid.Move|integer move that fills the new layout or, on failure, the status
---@return moongrid.Job? job of the survivors
function State:recover(options) end

---Agree on whether all ranks of the state have done their part. A rank that has done its part passes no arguments, or
---the results of a call: `next:settle(move:prove(job))`. All ranks get true, or all get one error. Collective, also for
---spares.
---@param done? any nil or false: this rank failed, with the message and status that follow
---@param message? string
---@param status? integer
---@return true? settled nil on failure
---@return string? message
---@return integer? status 404: a rank was lost
function State:settle(done, message, status) end

---Return the smallest number that a rank passes, for example to find the last step that every rank has done.
---Collective, also for spares.
---@param number integer this rank's number
---@return integer? least nil on failure
---@return string? message
---@return integer? status
function State:least(number) end

---Return whether a rank of the state is lost, or has begun to recover. Local.
---@return boolean
function State:hurt() end

---Prove by collectives that each communicator has the members of its group, in their order. Collective over the job;
---all ranks get a failure if one has it.
---@return integer? proved the number of communicators proved on this rank; nil on failure
---@return string? message
---@return integer? status 400 to 499: the backend failed, 500: ranks disagree (moongrid.h has each)
function State:prove() end

---Create the communicators of a `lazy` family. A second call for the family does nothing. Collective over the job.
---@param family string
---@return true? created nil on failure
---@return string? message
---@return integer? status
function State:create(family) end

---Release as much GPU memory of the state's NCCL communicators as NCCL can (from NCCL 2.29.7 on). Nothing may use these
---communicators until `resume`. With other backends this does nothing. Collective over the job.
---@return true? done nil on failure
---@return string? message
---@return integer? status
function State:suspend() end

---Allocate the memory released by `suspend` again. Collective over the job.
---@return true? done nil on failure
---@return string? message
---@return integer? status
function State:resume() end

---Return the GPU memory that the NCCL communicators of the state hold on this rank, as NCCL counts it (from NCCL 2.29.7
---on). Local.
---@return moongrid.HeldMemory? memory nil on failure
---@return string? message
---@return integer? status
function State:held_memory() end

---@class moongrid.HeldMemory
---@field communicators integer number of NCCL communicators
---@field suspended integer how many of them are suspended
---@field total integer bytes
---@field suspendable integer bytes that `State:suspend` releases
---@field persistent integer bytes that `State:suspend` does not release

---Release the communicators of the state. Its groups cannot be used after that. Collective over the job; all ranks must
---close their states in the same order. A second call does nothing.
function State:close() end

---A grid as one rank sees it: `mesh.tp` is the rank's coordinate in dim tp, and `pairs(mesh)` visits only coordinates.
---If a dim has the name of a field below, `mesh.NAME` is the coordinate. A mesh may outlive its state.
---@class moongrid.Mesh
---@field position integer of this rank in the grid's order, 0 to size - 1
---@field size integer ranks of the grid
---@field shape integer[] size of each dim, fastest first
---@field ranks integer[] ranks of the grid in its order, first dim fastest; O(size)
---@field grid moongrid.Grid
---@field [string] integer
local Mesh = {}

---Return the part of the grid along some dims that contains this rank: the other dims are fixed at the rank's
---coordinates. The dims keep the grid's order, whatever the order of the names. `mesh:submesh("tp", "dp")` has the
---ranks of this rank's group of `grid("tp", "dp")`. Local.
---@param ... string names of dims, each once; without names: only this rank
---@return moongrid.Mesh
function Mesh:submesh(...) end

---The node on which this rank runs, and how the job is spread over nodes. A node is identified by host name and boot
---id; nodes are numbered by their lowest ranks. Read-only; `pairs` visits the fields that have a value. In a dry state
---the values are those of a job that runs on this node alone. An agreed policy may read only fields that are identical
---on all ranks.
---@class moongrid.Machine
---@field name string the node's host name
---@field machines integer number of nodes of the job
---@field index integer number of this node, 0 to machines - 1
---@field local_size integer ranks of the job on this node
---@field local_rank integer index of this rank among the ranks on this node, 0 to local_size - 1
---@field cores integer logical processors online
---@field usable_cores integer logical processors to which this process is bound; some launchers bind it to one
---@field memory integer bytes of memory of the node
---@field gpus integer GPUs that this process sees with the NCCL backend; 0 with another backend
---@field gpu integer? index of this rank's GPU; nil if it has none

---This rank's group of a family. It keeps its state alive. `#group` is its size; two groups are equal if they have the
---same list of ranks and the same position of this rank.
---@class moongrid.Group
---@field position integer of this rank in the group, 0 to size - 1 (the rank in the world is the state's `rank`)
---@field size integer
---@field index integer number of the group in its family, from 0
---@field first integer rank in the world of the first member
---@field last integer rank in the world of the last member
---@field ranks integer[] ranks in the world of all members, in order
---@field name string of the family
---@field backend string the backend that made the group's communicator; "" if it has none
---@field launch_order integer if the trainer uses several groups at the same time, it launches the call on the group with the
---lowest number first. The number is identical on all members, and different for each group of a rank
local Group = {}

---@param wrap? "wrap"|boolean go around at the end
---@return integer? rank of the member at the next position; nil past the end
function Group:next(wrap) end

---@param wrap? "wrap"|boolean go around at the start
---@return integer? rank of the member at the previous position; nil before the start
function Group:prev(wrap) end

---@param position integer 0 to size - 1, or -1 to -size from the end
---@return integer? rank of the member at this position; nil if there is no such position
function Group:at(position) end

---@param rank integer of the world
---@return integer? position nil for a rank outside the group
function Group:position_of(rank) end

---@param rank integer of the world
---@return boolean
function Group:contains(rank) end

---In a group of `grid:cartesian`, return the positions from which this rank receives and to which it sends if all
---members send by `displacement` steps along a dim, as MPI_Cart_shift does. A position past the end of a dim that is
---not periodic is nil.
---@param dim string
---@param displacement? integer steps, default 1; negative: in the opposite direction
---@return integer? source position
---@return integer? dest position
function Group:shift(dim, displacement) end

---Return the segment of this group that contains this rank, for segments that change from step to step. Creates no
---communicator. Local. `Family:segments` makes families of fixed segments.
---@param sizes integer[] sizes of all segments in order, each 1 or more; they sum to the group's size, or one is `fill`
---@return moongrid.Segment
function Group:segment(sizes) end

---Return a window that the option `windows` names: memory of this rank, which all members have registered with NCCL.
---Returns nil if the group has no NCCL communicator. Local.
---@param name string
---@return moongrid.Window?
function Group:window(name) end

---@class moongrid.Window
---@field buffer lightuserdata the memory on the GPU; it is freed with the communicator
---@field handle lightuserdata the ncclWindow_t
---@field bytes integer

---Return the ncclDevComm that the option `device` asks for. Local.
---@return lightuserdata? device nil if the group has none
---@return integer? version of the NCCL whose ncclDevComm this is, 22809 for 2.28.9
function Group:device() end

---@class moongrid.Segment
---@field index integer number of the segment in the group, from 0
---@field start integer position in the group of the segment's first member
---@field size integer
---@field position integer of this rank in the segment
---@field first integer rank in the world of the first member
---@field last integer rank in the world of the last member
---@field next integer rank in the world of the next member; for the last member that of the first
---@field prev integer rank in the world of the previous member; for the first member that of the last
---@field ranks integer[] ranks in the world of all members, in order

---Ranks that did not come to a call over several ranks in time, or are lost. It is the fourth result of a call that
---fails with status 403 or 404, if the library knows these ranks.
---@class moongrid.Missing
---@field n integer number of missing ranks
---@field ranks integer[] the first 8 missing ranks
---@field seconds number how long this rank waited for them
---@field call string the call over all ranks in which this rank waited, as "prove 'train'"; or ""

---Allocate a buffer for the calls below, in the memory that the group's communicator uses: for NCCL on the GPU. Local.
---The calls are for self-tests and benchmarks. They return when they are complete. If the job fails, they return nil,
---message, status; at the timeout of the job the status is 403, and the fourth result a `moongrid.Missing`. In a query
---or policy they raise an error.
---@param n integer number of elements, 1 or more, which are 0 at first
---@param type? "float"|"double"|"int32"|"int64" default "float"
---@return moongrid.Buffer? buffer close it, or let Lua collect it
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
---@param position integer|{ rank: integer } the position of that member, or { rank = r } with its rank in the world
---@return boolean? ok
---@return string? message
---@return integer? status
function Group:broadcast(buffer, position) end

---Gather the elements of all members on every member. Collective over the group.
---@param mine moongrid.Buffer n elements
---@param all moongrid.Buffer receives the elements of all members in group order: n times the group's size
---@return boolean? ok
---@return string? message
---@return integer? status
function Group:allgather(mine, all) end

---Reduce over all members, and scatter the result by position. Collective over the group.
---@param all moongrid.Buffer elements for all members in group order: n times the group's size
---@param mine moongrid.Buffer receives the n elements of this member's position, reduced over all members
---@param op? "sum"|"prod"|"min"|"max"
---@return boolean? ok
---@return string? message
---@return integer? status
function Group:reduce_scatter(all, mine, op) end

---Send a part of `out` from each member to each: cut `out` and `into` into as many equal parts as there are members;
---part i of `out` goes to position i, and part i of `into` comes from position i. Collective over the group.
---@param out moongrid.Buffer its number of elements is a multiple of the group's size, and the same on all members
---@param into moongrid.Buffer a different buffer, of the same size and type
---@return boolean? ok
---@return string? message
---@return integer? status
function Group:all_to_all(out, into) end

---Send and receive at once, without deadlock. If `out` is nil only receive, if `into` is nil only send. Collective over
---the members that send and receive.
---@param out moongrid.Buffer? the elements to send
---@param to integer|{ rank: integer }? position of the member to send to, or { rank = r } with its rank in the world
---@param into moongrid.Buffer? for the received elements, of the same size and type as the sender's buffer
---@param from integer|{ rank: integer }? position of the member to receive from, or { rank = r }
---@return boolean? ok
---@return string? message
---@return integer? status
function Group:sendrecv(out, to, into, from) end

---Wait until every member has arrived. Collective over the group.
---@return boolean? ok
---@return string? message
---@return integer? status
function Group:barrier() end

---A buffer of `group:buffer`. `#buffer` is the number of elements.
---@class moongrid.Buffer
local Buffer = {}

---Write elements.
---@param value number|number[] one number for all elements, or a list for the first elements
---@return moongrid.Buffer? self
---@return string? message
---@return integer? status
function Buffer:set(value) end

---Return the first elements.
---@param n? integer number of elements, 0 or more; default: all
---@return number[]? values
---@return string? message
---@return integer? status
function Buffer:get(n) end

---Release the memory now.
function Buffer:close() end
