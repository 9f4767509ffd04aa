---@meta
-- SPDX-License-Identifier: MIT
--
-- Annotations for editors: the words of a recipe's step (src/step/README.md), and what the library says about steps.

---The argument `s` of a step, for one rank. A field with the name of a family is this rank's group in that family; nil
---if the rank is in none. A field with the name of a grid has this rank's coordinate in each dim of the grid, nil if
---the rank is outside the grid.
---@class moongrid.Step
---@field rank integer if a step reads this, each rank may have another program
---@field world integer
---@field [string] moongrid.StepGroup|table<string, integer>|nil
local Step = {}

---@class moongrid.StepOptions
---@field type? string type of the elements, "bf16"; all members of a call must give the same type
---@field root? integer|moongrid.StepPeer for broadcast, reduce, gather and scatter: a member, or its position (0)

---@param group moongrid.StepGroup
---@param bytes integer of the buffer
---@param options? moongrid.StepOptions
function Step:all_reduce(group, bytes, options) end

---@param group moongrid.StepGroup
---@param bytes integer that each rank has after the call
---@param options? moongrid.StepOptions
function Step:all_gather(group, bytes, options) end

---@param group moongrid.StepGroup
---@param bytes integer that each rank has before the call
---@param options? moongrid.StepOptions
function Step:reduce_scatter(group, bytes, options) end

---@param group moongrid.StepGroup
---@param bytes integer|integer[] that the rank sends in all, or a list: to each position
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
---@param bytes integer that the root has after the call
---@param options? moongrid.StepOptions|integer or the root alone
function Step:gather(group, bytes, options) end

---@param group moongrid.StepGroup
---@param bytes integer that the root has before the call
---@param options? moongrid.StepOptions|integer or the root alone
function Step:scatter(group, bytes, options) end

---@param group moongrid.StepGroup
function Step:barrier(group) end

---@param group moongrid.StepGroup
---@param to integer|moongrid.StepPeer a member, or its position
---@param bytes integer
---@param options? moongrid.StepOptions
function Step:send(group, to, bytes, options) end

---@param group moongrid.StepGroup
---@param from integer|moongrid.StepPeer a member, or its position
---@param bytes integer
---@param options? moongrid.StepOptions
function Step:recv(group, from, bytes, options) end

---Send and receive at once. If `to` is nil only receive, if `from` is nil only send.
---@param group moongrid.StepGroup
---@param to integer|moongrid.StepPeer|nil
---@param from integer|moongrid.StepPeer|nil
---@param bytes integer
---@param options? moongrid.StepOptions
function Step:sendrecv(group, to, from, bytes, options) end

---Start all operations that the function calls at the same time.
---@param f fun()
function Step:group(f) end

---Repeat the operations that the function calls n times. The function itself is called only once.
---@param n integer 0 or more
---@param f fun()
function Step:loop(n, f) end

---Return the same step for another stream, to which the operations then go: `s:on("grads"):all_reduce(...)`.
---@param stream string
---@return moongrid.Step
function Step:on(stream) end

---Return an event. It stands for all operations that were put on this stream before it.
---@return moongrid.StepEvent
function Step:event() end

---Let this stream wait for all operations so far on another stream, or for those of an event. Waiting for a stream
---without operations changes nothing.
---@param stream string|moongrid.StepEvent
function Step:wait(stream) end

---Let the host, and so all later operations, wait for all operations so far on a stream.
---@param stream string
function Step:host_wait(stream) end

---@param work { flops?: number, bytes?: number, seconds?: number, name?: string }
function Step:compute(work) end

---@param name string
---@param bytes integer
function Step:alloc(name, bytes) end

---@param name string as in the latest s:alloc of this name
function Step:free(name) end

---@param name string a name for the operations that follow
function Step:mark(name) end

---@param family string
---@return moongrid.StepGroup[] # this rank's groups of the family; several only if its groups share ranks
function Step:groups(family) end

---@param family string
---@return boolean # whether there is a family of that name
function Step:has(family) end

---This rank's group in a family.
---@class moongrid.StepGroup
---@field position integer
---@field size integer
---@field index integer number of the group in its family
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

---@param position integer a negative one counts from the end
---@return moongrid.StepPeer?
function StepGroup:at(position) end

---A member of a group.
---@class moongrid.StepPeer
---@field position integer
---@field rank integer in the world; a step that reads this has another program for each group

---@class moongrid.StepEvent

---What all ranks measured in `State:run_step`.
---@class moongrid.Measured
---@field steps integer
---@field ranks integer
---@field scale number
---@field seconds number of a step, on the median rank
---@field worst number of a step, on the slowest rank
---@field late integer? the rank that spends the shortest time in calls, because the others wait for it; nil if the ranks hardly
---differ
---@field families table<string, moongrid.MeasuredFamily>

---@class moongrid.MeasuredFamily
---@field calls number calls of all ranks in a step
---@field planned_calls number calls that the programs have
---@field bytes number bytes of all ranks in a step
---@field planned_bytes number bytes that the programs have
---@field seconds number time in the family's calls in a step, on the median rank
---@field worst number the same on the slowest rank
---@field worst_rank integer the slowest rank
---@field waiting number by how many seconds the slowest rank is longer in these calls than the fastest rank

---The step of a plan. A class is a set of ranks that the step cannot distinguish, so that they have the same program.
---tostring describes the step in two lines.
---@class moongrid.Programs
---@field classes integer number of classes
---@field programs integer number of different programs
---@field operations integer number of operations that communicate, of all ranks; each round of a loop counts
---@field digest string two steps have equal digests if all ranks have equal programs
---@field reads moongrid.StepRead[] values that the step reads and that differ between ranks
local Programs = {}

---A value that a step reads.
---@class moongrid.StepRead
---@field what string "size", "position" or "index" of a group, the name of a dim, or "rank"
---@field family string? the family of the group
---@field nth integer? which of the rank's groups of the family, from 0
---@field grid string? the grid of the dim

---@param rank integer
---@return integer? class of the rank, from 0 on; nil: no such rank
---@return integer? ranks number of ranks in this class
function Programs:class(rank) end

---Prove that every rank reaches the end of its program. Raises if the proof takes more than the limits of the recipe;
---the error says what is proved so far.
---@param rules? "nccl"|"mpi" the communication library whose rules hold ("nccl")
---@param eager? integer with the rules of mpi: a send of at most this number of bytes does not wait for the receiver (0)
---@return boolean proved
---@return "mismatch"|"unmatched"|"cycle"|"hazard"|string[][]? verdict the kind of error. For a proved step: pairs of families; the proof assumes that calls of the two fit on a GPU together, or start in one order on all ranks; nil: it assumes nothing
---@return string? counterexample
---@return moongrid.StepWaiting[]? waiting the ranks of the counterexample
function Programs:prove(rules, eager) end

---@class moongrid.StepWaiting
---@field rank integer
---@field waits_for integer? the rank for which it waits; nil: for none
---@field operation string? the operation in which it waits; "create": the creation of a lazy communicator, at its first call; nil:
---the rank has ended
---@field family string?
---@field file string?
---@field line integer?
---@field bytes integer?

---Return maxima over ranks. families: calls and bytes of each family. memory: `peak` bytes on the rank `rank`, after
---the mark `at`, and by name of an s:alloc its bytes then.
---@return { families: table<string, { calls: integer, bytes: integer }>, memory: { peak: integer, at: string, rank: integer, by: table<string, integer> } }
function Programs:sums() end

---Return the program of a rank. Raises for a rank outside the world.
---@param rank integer
---@return table[] # entries with fields such as operation, family, bytes and line; a loop (with `times`) or a group has its entries in `body`
function Programs:program(rank) end

---Return one entry of the program of a rank, without `body`. It also has `file`, and `after`, the number of the next
---entry at its level. A loop or group has a lower number than the entries inside it. Raises for a rank or number that
---does not exist.
---@param rank integer
---@param number integer from 1 on
---@return table
function Programs:entry(rank, number) end

---Return the program of a rank as text. Each entry is on a line, with the line of the recipe that made it.
---@param rank? integer nil: the programs of the lowest ranks of all classes
---@return string
function Programs:text(rank) end

---Return what the families send, as the mean of all ranks, as text for `machine:cost`: "tp = 12 B all_reduce + 3 B
---all_gather".
---@return string
function Programs:traffic() end

---Return the price of the step on a machine, a preview (src/stability.md): the fields that `moongrid step --json`
---prints for a machine, without the verdict. Seconds are means over ranks: compute + exposed + bubble = seconds.
---`estimate.from` says where the seconds come from. For data sheets, `estimate.longer` has the smallest and the largest
---factor by which published runs took longer; for measured steps, `estimate.error` is the mean error. Raises without a
---machine, if the rates of the machine are unknown, if a rank does not reach the end of its program, and at the limits
---of the recipe. Options: machine: as for `--machine`; default: that of the recipe. rules, eager: as for `prove`.
---flops: of a GPU in a second. costs: a table, or a file of JSON (src/step/README.md); default: those in the file of
---the machine. timeline: also return a timeline, which has each round of a loop up to about this number of operations.
---@param options? { machine: (string|moongrid.MachineModel)?, rules: ("nccl"|"mpi")?, eager: number?, flops: number?, costs: (table|string)?, timeline: number? }
---@return { seconds: number, compute: number, exposed: number, hidden: number, bubble: number, types: integer, machine: string, flops: number, source: string, estimate: { from: string, longer: number[]?, error: number? }, fits: table, families: table, memory: table, busiest: table? }
---@return moongrid.Timeline?
function Programs:price(options) end

---What each type of ranks did at which time, in whole picoseconds. The ranks of a type did the same at the same times.
---A span is one entry of a program at one time; #timeline is the number of spans. In a measured timeline each rank is a
---type, times count from the begin of its step, and spans have no waiting.
---@class moongrid.Timeline
---@field types { rank: integer, ranks: integer, program: integer, streams: string[] }[] rank: the lowest rank of the type; ranks: their number; program: a number that types with equal programs share; streams: names
---@field repeats { from: integer, to: integer, times: integer }[] between the times `from` and `to` there are no spans, because there the round of a loop that ends at `from` happens `times` times
---@field cut boolean the last spans are missing, because there were too many
local Timeline = {}

---Return a span. Spans are sorted by `moved`; in a measured timeline the spans of each rank are sorted by `ended`.
---@param number integer 1 to #timeline
---@return integer type index in `types`
---@return integer stream index in `streams` of the type
---@return integer entry number of an entry in the program of the type
---@return integer began when it began to wait
---@return integer moved when it began to work
---@return integer ended when it ended
---@return integer? by the type for which it waited, because that type came last; nil: it did not wait
function Timeline:span(number) end

---@param rank integer
---@return integer type index in `types`
function Timeline:type(rank) end

---Return the planned seconds of one compute or call, without waiting; 0 for other entries, and in a measured timeline.
---@param type integer index in `types`
---@param entry integer number of an entry in the program of the type
---@return number
function Timeline:seconds(type, entry) end

return { Step, StepGroup, Programs, Timeline }
