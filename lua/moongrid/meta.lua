---@meta moongrid
-- SPDX-License-Identifier: MIT
--
-- Annotations for editors (LuaCATS) of the module `require "moongrid"`: nothing here runs. Worlds, grids and
-- families are in meta_families.lua; jobs, states and their groups in meta_state.lua; the words that only recipes have
-- in meta_recipe.lua; plans, tensors, losses, steps, machines, checkpoints and pictures in files of these names.
--
-- Ranks, positions, coordinates and group numbers are integers from 0; a list of them is a sequence. A function
-- communicates only if its text says "Collective". A wrong argument or an unknown name raises an error, which has the
-- file and line of the caller and the nearest valid name. Grids, families and plans never change. An object keeps alive
-- the objects from which it was made; Lua collects it like any other value. `==` compares contents.

-- options: written by make docs
---The options of a family for its communicators. Families with the same members share communicators only if these
---are equal (except `first`, `lazy` and `single`). In parentheses: the backends that use the option, if not all do.
---@class moongrid.Options
---@field unique? boolean never share with another family
---@field first? boolean create before the families that do not say so; excludes `lazy`
---@field lazy? boolean create when `state:create` asks, not before
---@field high_priority? boolean high priority for the stream of its calls (nccl, rccl)
---@field timeout? number seconds that its creation may take, above 0 and up to 1e9 (nccl, rccl); left out: the backend's
---@field backend? "mpi"|"nccl"|"rccl"|"none" which backend makes it: "mpi" keeps a family on the CPU, "none" makes no communicator; left out: the state's
---@field nccl? moongrid.Nccl fields of ncclConfig_t (nccl, rccl); left out: NCCL's
---@field cartesian? string dims of every group for MPI's Cartesian topology; `grid:cartesian` writes it (mpi); left out: no topology
---@field windows? string|table<string, integer|boolean> bytes of symmetric memory, by name, registered as windows of NCCL (nccl, rccl); left out: none
---@field device? string|table<string, integer|boolean> a device communicator of NCCL, and what it has (nccl, rccl); left out: none
---@field parent? string the family whose communicators are split to make its own (nccl, rccl); left out: none
---@field single? boolean a group of one rank has a communicator of its own, not MPI_COMM_SELF; `unique`, twins and `cartesian` imply it (mpi)
-- options: end

-- fields: written by make docs
---Fields of ncclConfig_t, and the first NCCL that has them; flags are true, false, 1 or 0. A field that is left out
---has NCCL's default.
---@class moongrid.Nccl
---@field blocking? boolean|integer calls return when they are done, not at once; NCCL 2.14.0
---@field cga_cluster_size? integer thread blocks in a cluster of a kernel; 0 to 8; NCCL 2.17.0
---@field collnet_enable? boolean|integer reductions inside the network (SHARP); NCCL 2.27.0
---@field cta_policy? integer 0: default, 1: efficiency, 2: no thread blocks where possible; from 2.30 on a sum of these; 0 to 7; NCCL 2.27.0
---@field graph_stream_ordering? boolean|integer calls captured into CUDA graphs keep their order; NCCL 2.30.7
---@field graph_usage_mode? integer 0: no CUDA graph, 1: one, 2: several, or graphs and calls; 0 to 2; NCCL 2.29.0
---@field host_cft_mode? integer Compute Fabric Transport: 1: required, 2: not used, 3: used where it works; 1 to 3; NCCL 2.31.0
---@field launch_order_implicit? boolean|integer kernels of several communicators run in the order of their calls; NCCL 2.31.0
---@field max_ctas? integer most channels, on which memory depends; 1 to 64; NCCL 2.17.0
---@field max_p2p_peers? integer peers that are sent to at a time; 1 or more; NCCL 2.30.0
---@field min_ctas? integer fewest channels; not above max_ctas; 1 to 64; NCCL 2.17.0
---@field n_channels_per_net_peer? integer channels to a peer on another machine; 1 to 64; NCCL 2.28.0
---@field net_name? string network plugin; "IB" and "Socket" are NCCL's own; NCCL 2.17.0
---@field num_rma_ctx? integer contexts for one-sided calls; 0 or more; NCCL 2.29.0
---@field num_rma_sig? integer signals of a context for one-sided calls; 0 or more; NCCL 2.31.0
---@field nvlink_centric_sched? boolean|integer schedule for NVLink first; NCCL 2.28.0
---@field nvls_ctas? integer thread blocks for NVLink SHARP; 1 or more; NCCL 2.27.0
---@field nvls_host_mode? integer NVLink SHARP: 0: used, 1: not as transport, 2: not by symmetric kernels, 3: neither; 0 to 3; NCCL 2.32.0
---@field optional? boolean|integer leave out what the running NCCL does not know, instead of refusing
---@field rma_eager_init? boolean|integer connect for one-sided calls at creation, not at first use; NCCL 2.31.0
---@field shrink_share? boolean|integer a communicator shrunk from it shares its resources; NCCL 2.27.0
---@field split_share? boolean|integer a communicator split from it shares its resources; NCCL 2.18.0
---@field traffic_class? integer quality of service, for the network plugin; 0 or more; NCCL 2.26.0
-- fields: end

-- Topology ----------------------------------------------------------------------

---Named families and grids in one name space. `t.tp = family` adds a family (the order of the
---assignments is the order of creation), `t.tp` returns it. A name is assigned once, but
---`t.tp = t.tp:with {...}` changes the options of a family in its place, and `t.tp = nil` removes it.
---`#t` counts the families and `pairs(t)` visits them in that order. A grid has no communicators; it
---gives the ranks coordinates. Assign a tensor in the same way, after the grid that it names.
---`print(t)` shows an overview, with at most a screen of families.
---@class moongrid.Topology
---@field [string] moongrid.Family|moongrid.Grid|moongrid.Tensor|any
local Topology = {}

---Return whether a family, grid or tensor of this name exists. To read an unknown name, as `t.x`, is an error.
---@param name string
---@return boolean
function Topology:has(name) end

-- Recipe and Job --------------------------------------------------------------------

---A recipe in its own Lua state. It may use 64 MiB of memory, 200 million instructions per call, 10 seconds
---of processor time to load and plan, and 2 seconds for any other call. After a failed call you can still use it.
---@class moongrid.Recipe
local Recipe = {}

---Make the recipe's plan for a world. If the recipe refuses, this raises an error with the recipe's own file and line.
---@param world integer|moongrid.World number of ranks
---@param params? table<string, any>|string[] values, or texts as on a command line, by name or alias; a name with a dot is an option of families: `["tp.max_ctas"] = 8`, `["*.timeout"] = 600`. Or a list of "NAME=VALUE"
---@param file? string a file of parameters: JSON, YAML, or Lua that returns a table. `params` is then a list, and overrides it
---@return moongrid.Plan
function Recipe:plan(world, params, file) end

---Use this machine for all later plans, as `--machine` does. The recipe sees it as `machine`.
---@param machine moongrid.MachineModel? nil: none
function Recipe:on(machine) end

---Call one of the recipe's queries.
---@param state moongrid.State of a plan of this recipe
---@param query string
---@param arguments? table<string, any> plain values, which the query gets as `q`
---@return any answer nil, boolean, number, string, or a table of them
function Recipe:ask(state, query, arguments) end

---Return this rank's group for a getter of the modelled system, such as `get_tensor_and_data_parallel_group`. Call this
---once and keep the group. If the plan has no such family, this raises an error that names the parameter that would
---make the family. With `check_initialized = false`, if the getter takes it, this returns nil instead. Local.
---@param state moongrid.State of a plan of this recipe
---@param getter string
---@param arguments? table<string, any> plain values, which the getter gets as `q`
---@return moongrid.Group? group nil if this rank is in none
function Recipe:group(state, getter, arguments) end

---Change one of the recipe's settings for a state; its queries see the new value. Each state has its own settings,
---with the defaults at first. They are not part of the plan. Raises, without a change, if the setting does not exist
---or the value is of another kind. Local.
---@param state moongrid.State of a plan of this recipe
---@param name string of the setting, or an alias
---@param value any a plain value; nil restores the default
function Recipe:set(state, name, value) end

---Call one of the recipe's policies, as mgrid_policy_call does in C. If the recipe declares the policy agreed, the call
---is collective over the job, or over this rank's group of the declared family; else it is local. Raises the error of a
---policy that fails. If the ranks get different results, this returns nil, message, status on all of them.
---@param state moongrid.State of a plan of this recipe
---@param policy string
---@param arguments? table<string, any> plain values, which the policy gets as `q`
---@param kind? "any"|"number" the kind that the answer must have (default any), else raise with the policy's line
---@return any answer nil, boolean, number, string, or a table of them
---@return string? message
---@return integer? status 400 to 499: the backend failed, 500: ranks disagree (moongrid.h has each)
function Recipe:call(state, policy, arguments, kind) end

---Run lines of Lua, as `moongrid shell` does. The lines can use the words of recipes, and names from the last plan of
---the recipe: its families and grids, the topology `t`, `world` and the parameters `p`. A name that the lines assign
---stays until the next plan.
---@param lines string
---@return string? text the lines' output and results; nil if the last statement is incomplete
function Recipe:run(lines) end

---Complete a line for `run`.
---@param line string up to the cursor
---@return string[] words that can complete its last word
function Recipe:complete(line) end

---Return a description of the recipe, which `tostring` turns into a text. A terminal can show its texts safely.
---@return { doc: string, params: moongrid.ParamInfo[], settings: moongrid.ParamInfo[], queries: string[], getters: moongrid.GetterInfo[], arguments: moongrid.ParamInfo[], families: moongrid.FamilyInfo[], policies: moongrid.PolicyInfo[], functions: moongrid.FunctionInfo[]? }
function Recipe:info() end

---A function of the C program that the recipe calls; a recipe of mg.load has none.
---@class moongrid.FunctionInfo
---@field name string
---@field version string

---@class moongrid.PolicyInfo
---@field name string
---@field agreed string? the family whose groups compare its results, or "world"; nil: not compared

---@class moongrid.GetterInfo
---@field name string
---@field gives { arguments: string, family: string }[] with the default parameters: the family for each setting of the flags that changes it

---A family that exists only with some parameters.
---@class moongrid.FamilyInfo
---@field name string a * stands for any part of a name
---@field with string a text that names these parameters

---A parameter, a setting or an argument.
---@class moongrid.ParamInfo
---@field name string
---@field kind "size"|"index"|"integer"|"number"|"flag"|"text"|"order"|"choice"|"list"|"names"|"table"|"file"|"any"
---@field choices string[]? those of param.choice, or the candidates of param.order, as text
---@field default string? as text; nil where the parameter may be left out
---@field doc string
---@field aliases string[]
---@field of_step true? the parameter is of the step: no family depends on it

-- The module ----------------------------------------------------------------------

---@class moongrid
---@field machine moongrid.MachineModel
---@field pictures moongrid.Pictures
---@field fill lightuserdata a size, for at most one dim of a grid: what the other dims leave
---@field _VERSION string "moongrid", a space and the version
local moongrid = {}

---@param size integer 1 to 2147483647
---@return moongrid.World
function moongrid.world(size) end

---Make a grid over a world or window. A name in the order that has no size has size 1. A dim of
---size 1 may be missing in the order; it goes last. The product of the sizes must be the number of
---ranks, else this raises and names the nearest sizes that fit.
---@param world moongrid.World
---@param order string|string[] names fastest first, "tp-cp-dp" or a list; at most 64
---@param sizes table<string, integer|lightuserdata> by name; at most one is `fill`
---@param how? "slowest first" of the order: the last name is the fastest, as in DeviceMesh, JAX and Paddle
---@return moongrid.Grid
function moongrid.grid(world, order, sizes, how) end

---Return all groups of all families, in the order given; the families must not share ranks.
---Example: `union(low "x", high "x")` is `{0,1} {2,3} {4,5} {6,7}`.
---@param ... moongrid.Family 1 to 64, of one world
---@return moongrid.Family
function moongrid.union(...) end

---Join group i of each family into group i of the result. The families have equal numbers of groups and share no ranks.
---With "spread" as the last argument, a family with fewer groups serves several groups of the others. For example
---`zip(actors, rollout, "spread")` puts a single group of actors before every group of rollout; if there are two groups
---of actors, each goes before one half of the groups of rollout. Each number of groups must divide the largest one. If
---the numbers differ, the result is a cover and costs O(members).
---Example: `zip(low "x", high "x")` is `{0,1,4,5} {2,3,6,7}`.
---Example: `zip(low "x", high("x", "y"), "spread")` is `{0,1,4,5,6,7} {2,3,4,5,6,7}`.
---@param ... moongrid.Family|"spread" 1 to 64, of one world
---@return moongrid.Family
function moongrid.zip(...) end

---Join all groups that share a rank, directly or through other groups, into one group. The families may share ranks.
---Members ascend, and groups are in the order of their lowest ranks. A rank in no group stays in none. O(dims) for
---families with a rule over the same ranks, if their sizes divide each other; else O(members). The result has explicit
---lists if its groups follow no rule.
---
---Example: `closure(g "tp", g "pp")` is `{0,1,4,5} {2,3,6,7}`.
---@param ... moongrid.Family 1 to 64, of one world
---@return moongrid.Family
function moongrid.closure(...) end

---Describe a tensor for a topology. This call checks only the names of the fields; the assignment to a topology checks
---the rest. Families, grids and tensors share one name space. A tensor needs no communicator.
---@param tensor moongrid.TensorTable
---@return moongrid.Tensor
function moongrid.tensor(tensor) end

---Flatten tensors as ZeRO and FSDP do: concatenate each rank's parts of the tensors, and cut the result by dims that do
---not cut the tensors themselves: `t.a, t.b = flat { tensor {...}, tensor {...}, over = "dp" }`. So a slice may end
---inside a tensor. All tensors have the same grid and type. If parts differ in size along a dim, that dim must cut all
---tensors. The assignment of one tensor checks all of them.
---@param flat moongrid.FlatTable
---@return moongrid.Tensor ... one for each given, in their order
function moongrid.flat(flat) end

---Renumber the pieces of an axis that is cut by `owners`, so that the fewest elements move. `was` has the present piece
---of each element (for example an expert), `now` its new piece. This permutes the numbers of the new pieces so that the
---elements that stay have the largest weight. The result is exact (Hungarian method); if several are best, it is always
---the same one. O(elements + pieces^3) at most.
---@param was integer[] from 0; an element of a piece that no longer exists has to move
---@param now integer[] of the same length, from 0, below pieces
---@param options? { pieces?: integer, weights?: integer[] } 1 to 1024 pieces, default 1 + the largest of `now`; the weight
---of each element, 0 or more, default 1
---@return integer[] owners `now` with its pieces renumbered
---@return integer kept the sum of the weights of the elements that stay
function moongrid.relabel(was, now, options) end

---Raise and name the first difference, unless a == b. The cost does not depend on the size of the world, with two
---exceptions: lists of more than 1024 groups or runs, which are compared rank by rank, and modes whose sizes do not
---divide each other.
---@param a moongrid.Family
---@param b moongrid.Family
function moongrid.same(a, b) end

---Raise unless every group of a lies inside one group of b, for example experts inside NVLink domains. This costs as
---much as `same`, but O(members of a) if groups of b with more than two ranks share ranks.
---@param a moongrid.Family
---@param b moongrid.Family of the same world
function moongrid.within(a, b) end

---Raise unless every group of a uses the same rails in every node that it is on. Then each member has a partner on its
---own rail in each of these nodes. The same holds for any domains b that cross levels. O(members of a).
---@param a moongrid.Family
---@param b moongrid.Family of a machine, whose domains cross levels: machine.rail
function moongrid.aligned(a, b) end

---Raise if two ranks of a group of a are in one domain of b, for example two replicas in one rack.
---@param a moongrid.Family
---@param b moongrid.Family of a machine: machine.rack
function moongrid.spread(a, b) end

---Raise if a rank is in groups of both. This costs as much as `same`.
---@param a moongrid.Family
---@param b moongrid.Family
function moongrid.disjoint(a, b) end

---Raise unless every rank of the world is in a group. This costs as much as `same`.
---@param f moongrid.Family
function moongrid.covers(f) end

---@param world moongrid.World
---@return moongrid.Topology empty
function moongrid.topology(world) end

---Declare families that are used at the same time, like the word `concurrent` of recipes (meta_recipe.lua).
---@param topology moongrid.Topology
---@param names string[]|string[][]
function moongrid.concurrent(topology, names) end

---@param topology moongrid.Topology not changed; you may add to it afterwards
---@return moongrid.Plan
function moongrid.plan(topology) end

---@param recipe string a file (with "/" or ".lua" in its name) or the name of a bundled one
---@param options? { text?: string, log?: fun(message: string), lines?: boolean } text: the text of the recipe, if
---`recipe` is only its name; log: gets the messages that the recipe prints, which are lost without it; lines: record
---the lines that make families, for `Plan:lines`
---@return moongrid.Recipe
function moongrid.load(recipe, options) end

---Return whether a file looks like a saved plan (`moongrid plan --rules`, `--json`). The plan may still be broken.
---@param path string
---@param text? string the content, so that the file is not read
---@return boolean
function moongrid.is_saved(path, text) end

---Return the plan in a file. Raises unless the plan is whole and has the saved digest.
---@param path string
---@param text? string the content, so that the file is not read
---@return moongrid.Plan
function moongrid.saved(path, text) end

---Open a machine: a text such as "node:4 gpu:8", a preset such as "dgx-h100", the name of a file, or "slurm" for the
---Slurm job of this process (src/machine/README.md). Words of a text may follow, as in "hosts.txt gpu:8". An error in a
---file names the line.
---@param source string
---@return moongrid.MachineModel
function moongrid.open_machine(source) end

---Return the machines that are presets, in the order of their names.
---@return { name: string, text: string, source: string }[] source: the origin of its figures
function moongrid.presets() end

---Return the status of a caught error. Only the last message that this module raised has one. Its hundreds digit is the
---exit code of the command: 1 recipe or sizes refused, 2 usage, 3 limit hit, 4 backend failed, 5 ranks disagree.
---@param message any what `pcall` returned
---@return integer? status nil for any other message
function moongrid.status(message) end

-- backends: written by make docs
---Join the MPI job this process was started in: a duplicate of MPI_COMM_WORLD; initializes MPI if needed.
---Collective. Returns nil, message, status if it is not available.
---@param options? {timeout?: number, threads?: "any"|"funneled"|"serialized"|"multiple", on_deadline?: "error"|"abort", communicators?: integer, comm?: integer}|integer
---seconds that a call over all ranks may take (120); the thread level to request from MPI (funneled), or that it must
---have; if MPI cannot return at the deadline: keep waiting (error), or end the process (abort); most communicators of
---the job on a rank; the Fortran handle of a host's communicator (MPI_Comm_c2f), in place of MPI_COMM_WORLD, also
---without a table: mpi(comm)
---@return moongrid.Job?
---@return string? message
---@return integer? status
function moongrid.mpi(options) end

---Create NCCL communicators on the GPUs of the ranks.
---The carrier sends their ids: "mpi" or "pmix". mpi also creates the communicators of families with backend "mpi".
---Collective. If one rank has no GPU, library or driver, every rank gets nil, message, status.
---@param options? {carrier?: "mpi"|"pmix"|moongrid.Job, device?: integer|integer[], share_gpu?: boolean, timeout?: number, budget?: integer, ranks_per_id?: integer, blocking?: boolean}
---the carrier ("mpi"), or a job to use as one; the GPU of this rank, or those of all ranks of a machine (by default its
---index among these); let ranks share one; seconds that a creation may take (120); bytes of GPU memory for
---communicators; group size above which a group gets several unique ids (128); whether a trainer's calls on the
---communicators block, as on those of ncclCommInitRank (true)
---@return moongrid.Job?
---@return string? message
---@return integer? status
function moongrid.nccl(options) end

---Create RCCL communicators (NCCL for AMD) on the GPUs of the ranks.
---The carrier sends their ids: "mpi" or "pmix". mpi also creates the communicators of families with backend "mpi".
---Collective. If one rank has no GPU, library or driver, every rank gets nil, message, status.
---@param options? {carrier?: "mpi"|"pmix"|moongrid.Job, device?: integer|integer[], share_gpu?: boolean, timeout?: number, budget?: integer, ranks_per_id?: integer, blocking?: boolean}
---the carrier ("mpi"), or a job to use as one; the GPU of this rank, or those of all ranks of a machine (by default its
---index among these); let ranks share one; seconds that a creation may take (120); bytes of GPU memory for
---communicators; group size above which a group gets several unique ids (128); whether a trainer's calls on the
---communicators block, as on those of ncclCommInitRank (true)
---@return moongrid.Job?
---@return string? message
---@return integer? status
function moongrid.rccl(options) end

---Join the job of a launcher with PMIx, without MPI, and agree on plans; it creates no communicators.
---Collective. Returns nil, message, status if it is not available.
---@param options? {timeout?: number} seconds that a call over all ranks may take (120)
---@return moongrid.Job?
---@return string? message
---@return integer? status
function moongrid.pmix(options) end

-- backends: end

---Open the first GPU backend that every rank has, in the order of `moongrid.options`. If there is none, return the job
---of the carrier. Takes the options of `nccl`. Collective.
---@param options? table
---@return moongrid.Job?
---@return string? message
---@return integer? status
function moongrid.auto(options) end

---Return the seconds of a clock that never goes back, to measure times.
---@return number
function moongrid.now() end

---Return the names of the bundled recipes. With a name, return the text of this recipe and the names of its parts, or
---nil if there is no such recipe. "megatron.grids" is the name of a part.
---@return string[]
---@overload fun(name: string): string?, string[]?
function moongrid.recipes() end

---Return the options of `family:with`, from the library's own table: for messages, documents and tools.
---@return moongrid.OptionInfo[] options in the order in which they are printed
---@return moongrid.FieldInfo[] fields of the option `nccl`, by name
---@return moongrid.BackendInfo[] backends that are opened by name, each by a function of its name
function moongrid.options() end

---@class moongrid.OptionInfo
---@field name string
---@field kind "flag"|"seconds"|"word"|"fields"|"shape"|"numbers"|"name"
---@field words string[]? the possible words
---@field apart boolean families that differ in it do not share a communicator
---@field backends string names of the backends that use it, or "all"
---@field unset string the default
---@field doc string

---@class moongrid.BackendInfo
---@field name string
---@field doc string
---@field makes boolean it makes communicators, and the option `backend` of a family may name it
---@field carries boolean it can be the carrier of another backend
---@field carried boolean it needs a carrier
---@field exchanges boolean `prove` also makes an all-to-all
---@field timeout integer seconds that a call over all ranks may take, by default

---@class moongrid.PartInfo
---@field name string "planning", or the name of a backend
---@field works boolean
---@field text string versions of its libraries, or why it does not work

---Return what works on this machine: planning, and each backend. This loads the libraries of the backends.
---@return moongrid.PartInfo[]
function moongrid.probe() end

---@class moongrid.FieldInfo
---@field name string
---@field kind "flag"|"integer"|"text"
---@field low integer? the least number; flags are 0 or 1
---@field high integer? nil: NCCL has no upper bound
---@field version integer the first NCCL that reads it, 21800 is 2.18.0; 0: moongrid's own
---@field doc string

return moongrid
