---@meta moongrid
-- SPDX-License-Identifier: MIT
--
-- Annotations of plans: nothing here runs. meta.lua says which file has the other annotations.

---A topology made canonical for one world, with shared communicators, an order of creation and a digest. Equal plans
---have equal digests. `#plan` is the number of families, `pairs(plan)` visits the name and Family of each.
---`print(plan)` shows at most a screen of families; `plan:text()` has everything.
---@class moongrid.Plan
---@field world integer ranks of the world
---@field digest string 32 hexadecimal digits, the same in every process and on every machine
---@field families string[] names in the order of the topology
---@field grids string[] names in the order of the topology
---@field tensors string[] names in the order of the topology
---@field machine string the text of the machine for which the plan was made; "" if there was none
---@field traffic string|false what each family sends in a step, "tp = 2 GiB all_reduce x 96"; false: the recipe does not say
---@field notes string[] possible mistakes: cuts that leave ranks without any element of a tensor
---@field laws string[]|false laws about the machine that hold, "within(tp, machine.node)"; false: the recipe read no machine
---@field params moongrid.PlanParam[] parameters of the recipe and their values
---@field functions moongrid.FunctionInfo[] functions of the host that the recipe names
---@field concurrent string[][] lists of families that are used at the same time, the most urgent first
---@field spares integer[] ranks that are in no family, and take the places of lost ranks
---@field recipe string the name or path that moongrid.load got; "" for a plan without a recipe
local Plan = {} -- luacheck: ignore

---@class moongrid.PlanParam
---@field name string
---@field value string as text
---@field short string as `value`; for a number with the fewest digits that give the same number
---@field usual boolean the value is the default
---@field unread boolean build did not read the parameter, and the recipe has no step

-- The texts of a plan may grow with the world. If a method below gets a function `write`, it passes the text in pieces
-- to this function and returns nil; else it returns the text.

---Return the plan as one JSON object, or one rank's view of it. O(members that it lists).
---@param rank? integer nil: the whole plan
---@param write? fun(piece: string)
---@param site? moongrid.Site where the plan will run, as for `Plan:resources`
---@return string?
function Plan:json(rank, write, site) end

---Return the canonical text, with a line for each part of the plan, for people and for comparison.
---@param write? fun(piece: string)
---@return string?
function Plan:text(write) end

---Return the plan as one JSON object that has only the rules of families, so that it is small at any world.
---moongrid.saved reads it.
---@param write? fun(piece: string)
---@return string?
function Plan:rules(write) end

---Return whether the recipe of the plan has a step, and the world is not too large for it.
---@return boolean
function Plan:has_step() end

---Return the communicators that a rank creates, in order. Communicators of one round are created together.
---@param rank integer
---@return { family: string, group: integer, round: integer }[]
function Plan:creates(rank) end

---Return the step of the plan's recipe, evaluated once for each class of ranks. Raises if the recipe has none.
---@param file? string a file that returns the step to use instead of the recipe's
---@return moongrid.Programs
function Plan:step(file) end

---Return the order of creation as text: of the whole job, with a line for each round of a family; or of one rank, with
---a line for each communicator.
---@param rank? integer nil: the whole job
---@param write? fun(piece: string)
---@return string?
function Plan:schedule(rank, write) end

---@param name string
---@return moongrid.Family family without its options
function Plan:family(name) end

---@param name string
---@return moongrid.Grid
function Plan:grid(name) end

---Return a rank's part of a tensor; nil if the rank holds nothing of it. Without a rank return a description of the
---whole tensor. Local, O(dims + runs).
---@param name string
---@param rank integer
---@param most? integer list at most this number of runs of each axis
---@return moongrid.TensorPart?
---@overload fun(self: moongrid.Plan, name: string): moongrid.WholeTensor
function Plan:tensor(name, rank, most) end

---Return how two ranks are connected. `groups` has every group that has both ranks, with their positions, the ranks
---between them, the communicator, and the place of this communicator in the order of creation of each rank. `first` is
---the first communicator that both create. If no group has both, `chain` is the shortest chain of groups from a to b.
---Raises for a rank outside the world, and if the chain needs more than two groups in a world above 2^24 ranks. To find
---such a chain costs O(members).
---@param a integer
---@param b integer
---@return { ranks: integer[], groups: table[], first: table?, chain: table[]? }
function Plan:why(a, b) end

---Count families, groups of two ranks or more, groups of one rank (`singles`), and communicators.
---@param rank? integer count those of this rank; nil: of the whole job
---@return { families: integer, groups: integer, singles: integer, communicators: integer }
function Plan:counts(rank) end

---Simulate the creation of communicators by all ranks in this process. If a rank would wait forever, this raises an
---error that names rank, family and group. Raises for worlds above 2^20 ranks. O(members).
---@return integer communicators
---@return integer memberships communicators of a rank, added up over all ranks
function Plan:rehearse() end

---Check what holds for every plan: `Family:locate` finds each member at its group and position, a partition has each
---rank once, and all ranks create their communicators in one order. An error, which names family and group, would be a
---bug in moongrid. Of worlds above 2^20 ranks only a sample is checked. O(members), in memory that does not grow with
---the world.
---@return integer members the number of members checked, in all families
---@return integer? communicators nil if only a sample was checked
function Plan:check() end

---Check whether a law holds for the plan. Raises for a text that is not a law, and for unknown names.
---@param law string "within(tp, mp)", "disjoint(a, b)", "same(a, b)", "covers(a)", or about a machine "within(tp, machine.node)"
---@param machine? moongrid.MachineModel nil: the machine that the recipe read
---@return boolean holds
---@return string? counterexample if the law does not hold: the first counterexample, as a message
function Plan:law(law, machine) end

---@param family string
---@return string? other the earlier family whose communicators all groups of this family use; nil if there is none
function Plan:shares(family) end

---Return the State of one rank, without communicators, for questions about its groups.
---@param rank integer 0 to world - 1
---@return moongrid.State
function Plan:dry(rank) end

---Return how the communicators of a family are made. needed: it has groups of two ranks or more; made: needed, and its
---backend is not "none"; own: the number of groups whose communicator no earlier family makes; shares: as
---`Plan:shares`; options: the options of the family, as text; singles: the number of groups of one rank; twin: the
---family was made by `twin`; created: bytes that the NCCL communicator of a largest group takes on a member's GPU at
---creation; ring: further bytes at its first use in a ring (both 0 for other backends).
---@param family string
---@param site? moongrid.Site
---@return { needed: boolean, made: boolean, own: integer, shares: string?, options: string, singles: integer, twin: boolean, created: integer, ring: integer }
function Plan:communicators(family, site) end

---List the families whose communicators this family uses, each with the number of groups of this family that use them.
---The family itself is in the list if some of its groups are equal to each other.
---@param family string
---@return { family: string, groups: integer }[]
function Plan:leaders(family) end

---Return the lines of the recipe that made a family, in the order in which they ran: "moe.lua:28".
---@param family string
---@return string[]? lines nil if moongrid.load was called without `lines`
function Plan:lines(family) end

---Count the ranks that are in no group.
---@return integer? count nil if the world is too large to count them
---@return string which the ranks, "6, 8 to 15, ..."
---@return boolean allowed the recipe has idle = "allow"
function Plan:idle() end

---Name the options of families that a backend does not support.
---@param backend? string the backend of families without the option `backend`; default: the backend of jobs without NCCL
---@return string options "timeout of 3 families, nccl of 1 family"; "" if there are none
---@return string backend the name of that backend
function Plan:unheeded(backend) end

---The nodes on which a plan will run, for the prediction of NCCL's memory.
---@class moongrid.Site
---@field machine_ranks? integer ranks of a node, 1 to 4096 (8)
---@field no_nvls? boolean the GPUs of a node lack NVLink SHARP
---@field min_ctas? integer the value of NCCL_MIN_CTAS, which takes the place of the option min_ctas of families
---@field max_ctas? integer the value of NCCL_MAX_CTAS, likewise

---Predict the resources that NCCL communicators take on a rank, lazy communicators included (src/comm/README.md).
---@param rank? integer nil: the maximum over all ranks
---@param site? moongrid.Site
---@return moongrid.Resources
function Plan:resources(rank, site) end

---Numbers are bytes of GPU memory, unless the field says otherwise.
---@class moongrid.Resources
---@field machine_ranks integer as in the site
---@field sampled boolean the world is large, so only some nodes were counted
---@field communicators integer number of communicators
---@field created integer at creation
---@field nvls_created integer in addition at creation, with NVLink SHARP
---@field ring integer in addition, when all are first used in rings
---@field tree integer in addition, when all are first used in trees
---@field nvls integer in addition, when all first use NVLink SHARP
---@field p2p integer in addition, for messages between all members
---@field blocks integer number of SMs that kernels use at the same time
---@field nvls_slots integer number of multicast objects on the GPUs of a node
---@field files integer number of file descriptors of the process

---List the families that share communicators. `created` and `ring` are the bytes that each of them would take with
---communicators of its own, at creation and at its first use in a ring.
---@param site? moongrid.Site
---@return { families: string[], created: integer, ring: integer }[]
function Plan:sharing(site) end

---Return the changes from this plan to another. `kept`, `created` and `dropped` count the communicators of a rank,
---except lazy ones, when a trainer reloads from this plan to the other; they are nil for worlds of different sizes.
---tostring of the result writes a change on a line.
---@param other moongrid.Plan
---@param rank? integer for `kept`, `created` and `dropped`; default 0
---@return { differ: boolean, changes: moongrid.PlanChange[], kept: integer?, created: integer?, dropped: integer? }
function Plan:diff(other, rank) end

---A change from one plan to another. In `from` and `to` a grid is { size, offset, dims }, a family { count, size, rule,
---options }, a world an integer, anything else a text.
---@class moongrid.PlanChange
---@field kind "+"|"-"|"~" the part is new, gone or changed
---@field what string the kind of part: "family", "param", ...
---@field name string? name of the part; nil if a plan has only one such part
---@field from any nil if the part is new
---@field to any nil if the part is gone
