---@meta
-- SPDX-License-Identifier: MIT
--
-- Annotations for editors: the words of a recipe's step (src/step/README.md), and the answers about steps.

---The argument `s` of a step, for one rank. Fields with the name of a family are this rank's group in it, or nil if it
---is in none; fields with the name of a grid have this rank's coordinate in each dim.
---@class moongrid.Step
---@field rank integer a step that reads it has another program for each rank
---@field world integer
---@field [string] moongrid.StepGroup|table<string, integer>|nil
local Step = {}

---@class moongrid.StepOptions
---@field type? string of the elements, "bf16"; all members of a call must give the same
---@field root? integer|moongrid.StepPeer for broadcast, reduce, gather and scatter: a position (0)

---@param group moongrid.StepGroup
---@param bytes integer of the buffer
---@param options? moongrid.StepOptions
function Step:all_reduce(group, bytes, options) end

---@param group moongrid.StepGroup
---@param bytes integer that a rank has after it
---@param options? moongrid.StepOptions
function Step:all_gather(group, bytes, options) end

---@param group moongrid.StepGroup
---@param bytes integer that a rank has before it
---@param options? moongrid.StepOptions
function Step:reduce_scatter(group, bytes, options) end

---@param group moongrid.StepGroup
---@param bytes integer|integer[] that a rank sends in all, or by position
---@param options? moongrid.StepOptions
function Step:all_to_all(group, bytes, options) end

---@param group moongrid.StepGroup
---@param bytes integer
---@param options? moongrid.StepOptions|integer or the root alone
function Step:broadcast(group, bytes, options) end

---@param group moongrid.StepGroup
---@param bytes integer
---@param options? moongrid.StepOptions|integer or the root alone
function Step:reduce(group, bytes, options) end

---@param group moongrid.StepGroup
---@param bytes integer that the root has after it
---@param options? moongrid.StepOptions|integer or the root alone
function Step:gather(group, bytes, options) end

---@param group moongrid.StepGroup
---@param bytes integer that the root has before it
---@param options? moongrid.StepOptions|integer or the root alone
function Step:scatter(group, bytes, options) end

---@param group moongrid.StepGroup
function Step:barrier(group) end

---@param group moongrid.StepGroup
---@param to integer|moongrid.StepPeer a position
---@param bytes integer
---@param options? moongrid.StepOptions
function Step:send(group, to, bytes, options) end

---@param group moongrid.StepGroup
---@param from integer|moongrid.StepPeer a position
---@param bytes integer
---@param options? moongrid.StepOptions
function Step:recv(group, from, bytes, options) end

---Send and receive at once. With nil for `to` or `from` only receive, or only send.
---@param group moongrid.StepGroup
---@param to integer|moongrid.StepPeer|nil
---@param from integer|moongrid.StepPeer|nil
---@param bytes integer
---@param options? moongrid.StepOptions
function Step:sendrecv(group, to, from, bytes, options) end

---Start the operations that the function calls together.
---@param f fun()
function Step:group(f) end

---Repeat the operations that the function calls. The function itself is called once.
---@param n integer 0 or more
---@param f fun()
function Step:loop(n, f) end

---Return the same step, whose operations go to this stream: `s:on("grads"):all_reduce(...)`.
---@param stream string
---@return moongrid.Step
function Step:on(stream) end

---Return an event, which stands for all operations that were put on this stream before.
---@return moongrid.StepEvent
function Step:event() end

---Let this stream wait for all operations on a stream, or before an event. An empty stream needs no wait.
---@param stream string|moongrid.StepEvent
function Step:wait(stream) end

---Let the host, and so all streams, wait for all operations on a stream, or before an event.
---@param stream string
function Step:host_wait(stream) end

---@param work { flops?: number, bytes?: number, seconds?: number, name?: string }
function Step:compute(work) end

---@param name string
---@param bytes integer
function Step:alloc(name, bytes) end

---@param name string of the latest s:alloc
function Step:free(name) end

---@param name string of the operations that follow
function Step:mark(name) end

---@param family string
---@return moongrid.StepGroup[] # several if the groups share ranks
function Step:groups(family) end

---@param family string
---@return boolean # whether there is a family of that name
function Step:has(family) end

---This rank's group in a family.
---@class moongrid.StepGroup
---@field position integer
---@field size integer
---@field index integer of the group in its family
---@field name string of the family
---@field first moongrid.StepPeer
---@field last moongrid.StepPeer
local StepGroup = {}

---@param wrap? boolean|"wrap"
---@return moongrid.StepPeer?
function StepGroup:next(wrap) end

---@param wrap? boolean|"wrap"
---@return moongrid.StepPeer?
function StepGroup:prev(wrap) end

---@param position integer from the end if negative
---@return moongrid.StepPeer?
function StepGroup:at(position) end

---A member of a group.
---@class moongrid.StepPeer
---@field position integer
---@field rank integer in the world; differs between groups

---@class moongrid.StepEvent

---What all ranks measured in `State:run_step`.
---@class moongrid.Measured
---@field steps integer
---@field ranks integer
---@field scale number
---@field seconds number of a step, on the median rank
---@field worst number of a step, on the slowest rank
---@field late integer? the rank that waits least: the others wait for it
---@field families table<string, moongrid.MeasuredFamily>

---@class moongrid.MeasuredFamily
---@field calls number of all ranks in a step
---@field planned_calls number
---@field bytes number
---@field planned_bytes number
---@field seconds number in the family's calls in a step, on the median rank
---@field worst number
---@field worst_rank integer
---@field waiting number how many seconds longer the slowest rank is in these calls than the fastest

---The step of a plan: the programs of its classes of ranks. tostring describes it in two lines.
---@class moongrid.Programs
---@field classes integer number of classes; the step cannot distinguish the ranks of a class
---@field programs integer number of different programs
---@field operations integer operations that communicate, of all ranks, loops unrolled
---@field digest string equal for two steps if all ranks have equal programs
---@field reads moongrid.StepRead[] values that the step reads and that differ between ranks
local Programs = {}

---`what` is "size", "position" or "index" of a family's group (`nth`: which of the rank's groups), a dim of a grid, or
---"rank".
---@class moongrid.StepRead
---@field what string
---@field family string?
---@field nth integer?
---@field grid string?

---@param rank integer
---@return integer? class of the rank, from 0 on; nil: no such rank
---@return integer? ranks in this class
function Programs:class(rank) end

---Prove that every rank reaches the end of its program. Raises if the proof takes more than the limits of the recipe;
---the error says what is proved so far.
---@param rules? "nccl"|"mpi" the communication library whose rules count ("nccl")
---@param eager? integer under the rules of mpi: sends of at most this number of bytes do not wait (0)
---@return boolean proved
---@return "mismatch"|"unmatched"|"cycle"|"hazard"|string[][]? verdict for a proved step the pairs of families whose calls are assumed to fit on a GPU together, or to start in one order on all ranks; nil: no assumption
---@return string? counterexample
---@return moongrid.StepWaiting[]? ranks of the counterexample
function Programs:prove(rules, eager) end

---@class moongrid.StepWaiting
---@field rank integer
---@field waits_for integer? nil: it waits for no rank
---@field operation string? nil: the rank has ended; "create": creation of a lazy communicator, at its first call
---@field family string?
---@field file string?
---@field line integer?
---@field bytes integer?

---Return maxima over ranks: calls and bytes by family; memory, with the mark before its peak, and its parts by name.
---@return { families: table<string, { calls: integer, bytes: integer }>, memory: { peak: integer, at: string, rank: integer, by: table<string, integer> } }
function Programs:sums() end

---Return the program of a rank. Raises for a rank outside the world, as `entry` and `text` do.
---@param rank integer
---@return table[] # entries with their fields: operation, family, bytes, line, ...; a loop (`times`) or group has its entries in `body`
function Programs:program(rank) end

---Return one entry of the program of a rank, without its body. It has `file`, and `after`, the number of the next entry
---at its level. A loop or group comes before the entries inside it.
---@param rank integer
---@param number integer from 1 on; raises past the end
---@return table
function Programs:entry(rank, number) end

---Return the program of a rank as text, each entry on a line with its line of the recipe; without a rank the programs
---of the lowest ranks of all classes.
---@param rank? integer
---@return string
function Programs:text(rank) end

---Return what the families send, as the mean of all ranks, in the form for `machine:cost`: "tp = 12 B all_reduce + 3 B
---all_gather".
---@return string
function Programs:traffic() end

---Return the price of the step on a machine, a preview (src/stability.md): the fields that `moongrid step --json` has
---with --machine and without a verdict. `estimate.from` is the source of the seconds. If they come from data sheets,
---`longer` has the smallest and the largest factor by which published runs took longer; if they come from measured
---steps, `error` is the mean error. Seconds are means over ranks: compute + exposed + bubble = seconds. With the option
---`timeline` also return a timeline; up to about that number of operations it has each round of a loop. Raises without
---a machine, for a machine whose rates are unknown, if a rank does not reach the end of its program, and at the limits
---of the recipe.
---@param options? { machine: (string|moongrid.MachineModel)?, rules: ("nccl"|"mpi")?, eager: number?, flops: number?, costs: (table|string)?, timeline: number? } the machine as for --machine, else the recipe's; sends of up to `eager` bytes do not wait under the rules of mpi; flops of a GPU in a second; costs: a table or a file of JSON (src/step/README.md), else those in the file of the machine
---@return { seconds: number, compute: number, exposed: number, hidden: number, bubble: number, types: integer, machine: string, flops: number, source: string, estimate: { from: string, longer: number[]?, error: number? }, fits: table, families: table, memory: table, busiest: table? }
---@return moongrid.Timeline?
function Programs:price(options) end

---What each type of ranks did at which time, in whole picoseconds. #timeline is the number of spans. In a measured
---timeline each rank is a type, times count from the begin of its step, and spans have no waiting.
---@class moongrid.Timeline
---@field types { rank: integer, ranks: integer, program: integer, streams: string[] }[] the lowest rank of the type, its number of ranks, and a number that types with equal programs share
---@field repeats { from: integer, to: integer, times: integer }[] rounds like those before them, which have no spans of their own
---@field cut boolean there were too many spans; the end is missing
local Timeline = {}

---Return a span. Spans are in the order in which they began to work, those of a measured timeline in the order in which
---each rank ended them.
---@param number integer 1 to #timeline
---@return integer type of `types`
---@return integer stream of its `streams`
---@return integer entry of its program
---@return integer began to wait
---@return integer moved began to work
---@return integer ended
---@return integer? by the type that came last, so that this one waited for it; nil: it waited for none
function Timeline:span(number) end

---@param rank integer
---@return integer type its number in `types`
function Timeline:type(rank) end

---Return the planned seconds of one compute or call, without waiting; 0 for other entries, and in a measured timeline.
---@param type integer of `types`
---@param entry integer of its program
---@return number
function Timeline:seconds(type, entry) end

return { Step, StepGroup, Programs, Timeline }
