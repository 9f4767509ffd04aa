---@meta moongrid
-- SPDX-License-Identifier: MIT
--
-- Annotations of plans: nothing here runs. meta.lua has the rest.

---A topology made canonical for one world, with shared groups, an order of creation and a digest. Equal plans have
---equal digests. `#plan` counts the families, `pairs(plan)` visits name, Family. `print(plan)` gives an overview with
---at most a screen of families; `plan:text()` has everything.
---@class moongrid.Plan
---@field world integer ranks of the world
---@field digest string 32 hexadecimal digits, the same in every process and on every machine
---@field families string[] names in the order of the topology
---@field grids string[] names in the order of the topology
---@field tensors string[] names in the order of the topology
---@field machine string the text of the machine that the recipe read; "": none
---@field traffic string|false what each family sends in a step, "tp = 2 GiB all_reduce x 96"; false: the recipe does not say
---@field notes string[] possible mistakes: cuts that leave ranks without any element of a tensor
---@field laws string[]|false laws about the machine that held, "within(tp, machine.node)"; false: the recipe read no machine
---@field params moongrid.PlanParam[] its parameters
---@field functions moongrid.FunctionInfo[] functions of the host that its recipe names
---@field concurrent string[][] families that are used at the same time, the most urgent first
---@field spares integer[] ranks that are in no family, and take the places of lost ranks
---@field recipe string the name or path given to `load`; "" for a plan without a recipe
local Plan = {} -- luacheck: ignore

---@class moongrid.PlanParam
---@field name string
---@field value string as text; `short` is the same with the fewest digits that give the same number
---@field short string
---@field usual boolean the value is the default
---@field unread boolean build did not read it

-- Texts of a plan may grow with the world. A function `write` gets the text in pieces, as io.write does; without it the
-- call returns the text.

---Return the plan as one JSON object, or one rank's view of it. O(members that it lists).
---@param rank? integer nil: the whole plan
---@param write? fun(piece: string)
---@param site? moongrid.Site for `resources`
---@return string?
function Plan:json(rank, write, site) end

---Return the canonical text, a line for each part of the plan: for people and for comparison.
---@param write? fun(piece: string)
---@return string?
function Plan:text(write) end

---Return the plan as one JSON object with only its rules, which is small at any world: for `saved`.
---@param write? fun(piece: string)
---@return string?
function Plan:rules(write) end

---Return whether `step` returns a step: the recipe of the plan has one, and the world is not too large for it.
---@return boolean
function Plan:has_step() end

---Return the communicators that a rank creates, in order. Those of one round are created together.
---@param rank integer
---@return { family: string, group: integer, round: integer }[]
function Plan:creates(rank) end

---Return the step of the plan's recipe, evaluated once for each class of ranks. Raises if the recipe has none.
---@param file? string a file that returns the step, instead of the recipe's
---@return moongrid.Programs
function Plan:step(file) end

---Return the order of creation, a line per step: of the whole job, or of one rank.
---@param rank? integer
---@param write? fun(piece: string)
---@return string?
function Plan:schedule(rank, write) end

---@param name string
---@return moongrid.Family family without its options
function Plan:family(name) end

---@param name string
---@return moongrid.Grid
function Plan:grid(name) end

---Return a rank's part of a tensor; nil if it holds nothing. Local, O(dims + runs). Without a rank: the whole tensor.
---@param name string
---@param rank integer
---@param most? integer list only the first runs of each axis
---@return moongrid.TensorPart?
---@overload fun(self: moongrid.Plan, name: string): moongrid.WholeTensor
function Plan:tensor(name, rank, most) end

---Return how two ranks are connected: every group that has both, with their positions, the ranks between them, and the
---communicator with its step in the order of creation of each; and the first communicator that both create. Without a
---common group return the shortest chain of groups from a to b. Raises for a rank outside the world, and if the chain
---needs more than two groups in a world above 2^24 ranks; finding such a chain is O(members).
---@param a integer
---@param b integer
---@return { ranks: integer[], groups: table[], first: table?, chain: table[]? }
function Plan:why(a, b) end

---Count families, groups of two or more, groups of one, and communicators: of the job, or of
---one rank.
---@param rank? integer
---@return { families: integer, groups: integer, singles: integer, communicators: integer }
function Plan:counts(rank) end

---Simulate the schedule of every rank of the job in this process. Raises, naming rank,
---family and group, if a rank would wait forever. O(members).
---@return integer communicators
---@return integer memberships over all ranks
function Plan:rehearse() end

---Check the laws of every plan: each listed member is found at its group and position, a partition has each rank once,
---all ranks create their groups in one order. Raises if a law is broken, which would be a bug in moongrid; the error
---names family and group. Of worlds above 2^20 ranks only a sample is checked. O(members), in memory that does not grow
---with the world.
---@return integer members checked, over all families
---@return integer? communicators nil where the world is sampled
function Plan:check() end

---Check a law of the plan, as "within(tp, mp)", "disjoint(a, b)", "same(a, b)", "covers(a)", or about a machine
---"within(tp, machine.node)". Raises for a text that is not a law, and for unknown names.
---@param law string
---@param machine? moongrid.MachineModel nil: the machine that the recipe read
---@return boolean holds
---@return string? why not, with the first counterexample
function Plan:law(law, machine) end

---@param family string
---@return string? other the earlier family whose communicators all its groups use; nil if there is none
function Plan:shares(family) end

---Return the State of one rank, without communicators, for questions about its groups.
---@param rank integer 0 to world - 1
---@return moongrid.State
function Plan:dry(rank) end

---Return how the communicators of a family are made. needed: it has groups of two or more ranks; made: needed, and its
---backend is not "none"; own: the number of groups whose communicator no earlier family makes; shares: as
---`Plan:shares`; options: as text; singles: the number of groups of one rank; twin: it was made by `twin`; created: the
---most bytes that an NCCL communicator takes on a member's GPU at creation; ring: further bytes at its first use in a
---ring (both 0 for other backends).
---@param family string
---@param site? moongrid.Site
---@return { needed: boolean, made: boolean, own: integer, shares: string?, options: string, singles: integer, twin: boolean, created: integer, ring: integer }
function Plan:communicators(family, site) end

---List the families whose communicators groups of this family use, and the number of these groups. The family itself is
---in the list if some of its own groups are equal.
---@param family string
---@return { family: string, groups: integer }[]
function Plan:leaders(family) end

---Return the lines of the recipe that made a family, "moe.lua:28", the first one first.
---@param family string
---@return string[]? lines nil: unknown, because `load` was called without `lines`
function Plan:lines(family) end

---Count the ranks that are in no group.
---@return integer? count nil: the world is too large to tell
---@return string which "6, 8 to 15, ..."
---@return boolean allowed the recipe has idle = "allow"
function Plan:idle() end

---Name the options of families that a backend does not support.
---@param backend? string the backend of families without the option `backend`; default: the one that jobs use without NCCL
---@return string options "timeout of 3 families, nccl of 1 family"; "": none
---@return string backend its name
function Plan:unheeded(backend) end

---The machines on which a plan will run, for the prediction of NCCL's memory.
---@class moongrid.Site
---@field machine_ranks? integer ranks of a machine, 1 to 4096; 8
---@field no_nvls? boolean GPUs of a machine lack NVLink SHARP
---@field min_ctas? integer of NCCL_MIN_CTAS, which overrides that of families
---@field max_ctas? integer of NCCL_MAX_CTAS

---Predict what the NCCL communicators of a rank take, or without a rank the maximum over ranks; lazy ones count, too
---(src/comm/README.md).
---@param rank? integer
---@param site? moongrid.Site
---@return moongrid.Resources
function Plan:resources(rank, site) end

---Numbers are bytes of GPU memory, unless the field says otherwise.
---@class moongrid.Resources
---@field machine_ranks integer of the site
---@field sampled boolean of a large world only some machines were counted
---@field communicators integer the number of communicators
---@field created integer at creation
---@field nvls_created integer in addition at creation, with NVLink SHARP
---@field ring integer in addition, when all are first used in rings
---@field tree integer in addition, when all are first used in trees
---@field nvls integer in addition, when all first use NVLink SHARP
---@field p2p integer in addition, for messages between all members
---@field blocks integer SMs that kernels take at the same time
---@field nvls_slots integer multicast objects, on the GPUs of a machine
---@field files integer file descriptors of the process

---List the families that share communicators, and the bytes that each would take with its own communicators.
---@param site? moongrid.Site
---@return { families: string[], created: integer, ring: integer }[]
function Plan:sharing(site) end

---Compare with another plan. `kept`, `created` and `dropped` count the communicators, except lazy ones, of a rank
---(default 0) when a trainer reloads from this plan to the other; they are nil for worlds of different sizes. tostring
---gives lines.
---@param other moongrid.Plan
---@param rank? integer
---@return { differ: boolean, changes: moongrid.PlanChange[], kept: integer?, created: integer?, dropped: integer? }
function Plan:diff(other, rank) end

---`from` is nil if the part is new, `to` if it is gone. A grid is { size, offset, dims }, a family { count, size, rule,
---options }, a world an integer, anything else a text.
---@class moongrid.PlanChange
---@field kind "+"|"-"|"~" new, gone, changed
---@field what string "family", "param", ...
---@field name string? nil: `what` has no more to say
---@field from any
---@field to any
