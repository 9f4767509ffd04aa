---@meta moongrid
-- SPDX-License-Identifier: MIT
--
-- Annotations for editors (LuaCATS) of the module `require "moongrid"`: nothing here runs. Worlds, grids and
-- families are in meta_families.lua, jobs, states and their groups in meta_state.lua, the words that only recipes have in
-- meta_recipe.lua; plans, tensors, losses, steps, machines, checkpoints and pictures in the files of their names.
--
-- Ranks, positions, coordinates and group numbers are integers from 0; a list of them is a
-- sequence. Everything is local (no communication) unless it says "Collective". A wrong
-- argument or an unknown name raises, with the file and line of the caller and the nearest
-- valid name. Grids, families and plans never change; objects keep alive what they were made from and are collected
-- like any value. `==` compares contents.

-- options: written by make docs
---What a family asks of its communicators. Families with the same members share one only where these are
---equal (`first` and `lazy` aside). In parentheses: the backend that heeds it, where not all do.
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
---Fields of ncclConfig_t, and the first NCCL that has them; flags are true, false, 1 or 0. Left out:
---NCCL's default.
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

---Named families and grids in one name space. `t.tp = family` adds one (the order of the
---assignments is the order of creation), `t.tp` returns it. A name is assigned once, but
---`t.tp = t.tp:with {...}` changes the options of a family in its place, and `t.tp = nil` removes it.
---`#t` counts the families and `pairs(t)` visits them in that order. Grids only serve
---coordinates. Tensors are assigned likewise, after the grids that they name. `print(t)` gives an
---overview, at most a screen of families.
---@class moongrid.Topology
---@field [string] moongrid.Family|moongrid.Grid|moongrid.Tensor|any
local Topology = {}

---Return whether a family, grid or tensor of this name exists. Reading an unknown one is an error.
---@param name string
---@return boolean
function Topology:has(name) end

-- Recipe and Job --------------------------------------------------------------------

---A recipe in its own Lua state, limited to 64 MiB, 200 million instructions per call, and 10 seconds
---of processor time to load and plan, 2 seconds for any other call. It survives a failed call.
---@class moongrid.Recipe
local Recipe = {}

---Plan the recipe for a world. If it refuses, raises with the recipe's own file and line.
---@param world integer|moongrid.World number of ranks
---@param params? table<string, any>|string[] by name or alias: values, or text as on a command line; options of families with a dot, `["tp.max_ctas"] = 8`, `["*.timeout"] = 600`. Or a list of "NAME=VALUE"
---@param file? string parameters below those of a list: JSON, YAML, or Lua that returns a table
---@return moongrid.Plan
function Recipe:plan(world, params, file) end

---Plan for a machine from now on, as `--machine` does: the recipe sees it as `machine`.
---@param machine moongrid.MachineModel? nil: none
function Recipe:on(machine) end

---Ask one of the recipe's queries.
---@param state moongrid.State of a plan of this recipe
---@param query string
---@param arguments? table<string, any> plain values, which the query gets as `q`
---@return any answer nil, boolean, number, string, or a table of them
function Recipe:ask(state, query, arguments) end

---Return this rank's group of a getter of the modelled system, such as `get_tensor_and_data_parallel_group`; look it up
---once. If the plan has no such family, raises and names the parameter that would make it; returns nil instead if
---the getter takes `check_initialized = false`. Local.
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

---Call one of the recipe's policies, as mgrid_policy_call does in C. Collective if the policy is
---agreed: over the job, or this rank's group of the family. An error in the policy
---raises; if results differ between ranks, all get nil, message, status.
---@param state moongrid.State of a plan of this recipe
---@param policy string
---@param arguments? table<string, any> plain values, which the policy gets as `q`
---@param kind? "any"|"number" raise, with the line of the policy, if the answer is of another kind ("any")
---@return any answer nil, boolean, number, string, or a table of them
---@return string? message
---@return integer? status 400 to 499: the backend failed, 500: ranks disagree (moongrid.h has each)
function Recipe:call(state, policy, arguments, kind) end

---Run lines of Lua, as `moongrid shell` does, about the last plan of the recipe: they see the words of recipes, the
---families and grids of that plan by name, its topology `t`, `world` and the parameters `p`. A name that is assigned stays
---until the next plan.
---@param lines string
---@return string? text what they print and return; nil: they are unfinished
function Recipe:run(lines) end

---Complete a line for `run`.
---@param line string up to the cursor
---@return string[] words that its last one may become
function Recipe:complete(line) end

---Describe the recipe; `tostring` makes a text of it. Texts and names in it are safe for a terminal.
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
---@field gives { arguments: string, family: string }[] at the default parameters, by the flags that matter

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

-- The module ----------------------------------------------------------------------

---@class moongrid
---@field machine moongrid.MachineModel
---@field pictures moongrid.Pictures
---@field fill lightuserdata the size of the one dim that takes what the others leave over
---@field _VERSION string "moongrid", a space and the version
local moongrid = {}

---@param size integer 1 to 2147483647
---@return moongrid.World
function moongrid.world(size) end

---Make a grid over a world or window. A name of the order without a size has size 1; a dim of
---size 1 may be missing in the order and goes last. The product must be the number of ranks;
---else raises and names the nearest sizes that fit.
---@param world moongrid.World
---@param order string|string[] names fastest first, "tp-cp-dp" or a list; at most 64
---@param sizes table<string, integer|lightuserdata> by name; at most one is `fill`
---@return moongrid.Grid
function moongrid.grid(world, order, sizes) end

---Return all groups of all families, in the order given; the families must not share ranks.
---@param ... moongrid.Family 1 to 64, of one world
---@return moongrid.Family
function moongrid.union(...) end

---Join group i of each family into group i of the result. The families have equal numbers of groups and share no ranks.
---With "spread" after them, families with fewer groups serve several groups of the others: `zip(actors, rollout,
---"spread")` puts the only group of actors before each group of rollout, or, of two groups of actors, each before one
---half of them. The numbers of groups divide the largest. If they differ, the result is a cover and costs O(members).
---@param ... moongrid.Family|"spread" 1 to 64, of one world
---@return moongrid.Family
function moongrid.zip(...) end

---Describe a tensor for a topology. This call checks only the names of the fields, the assignment to a topology checks
---the rest. Families, grids and tensors share one name space. A tensor needs no communicator.
---@param tensor moongrid.TensorTable
---@return moongrid.Tensor
function moongrid.tensor(tensor) end

---Flatten tensors as ZeRO and FSDP do: concatenate each rank's parts of them, and cut the result by dims that cut none
---of them, so a slice may end inside a tensor: `t.a, t.b = flat { tensor {...}, tensor {...}, over = "dp" }`. The
---tensors have one grid and type; a dim along which parts differ in size cuts all of them. The assignment of one of
---them checks all.
---@param flat moongrid.FlatTable
---@return moongrid.Tensor ... one for each given, in their order
function moongrid.flat(flat) end

---Renumber the pieces of an axis cut by `owners`, so that the fewest elements move. `was` has the present piece of each
---element (for example an expert), `now` its new piece. The numbers of the new pieces are free: they are permuted so
---that the largest weight stays. Exact, by the Hungarian method; deterministic if several are best.
---O(elements + pieces^3) at most.
---@param was integer[] from 0; an element of a piece that no longer exists has to move
---@param now integer[] of the same length, from 0, below pieces
---@param options? { pieces?: integer, weights?: integer[] } 1 to 1024 pieces, default 1 + the largest of `now`; the weight
---of each element, 0 or more, default 1
---@return integer[] owners `now` with its pieces renumbered
---@return integer kept the sum of the weights of the elements that stay
function moongrid.relabel(was, now, options) end

---Raise, naming the first difference, unless a == b. The cost does not depend on the size of the world, except for
---lists of more than 1024 groups or runs, which are compared rank by rank, and for modes whose sizes do not divide each
---other.
---@param a moongrid.Family
---@param b moongrid.Family
function moongrid.same(a, b) end

---Raise unless every group of a lies inside one group of b, for example experts inside NVLink domains. Costs as
---`same`; O(members of a) if groups of b with more than two ranks share some.
---@param a moongrid.Family
---@param b moongrid.Family of the same world
function moongrid.within(a, b) end

---Raise unless every group of a uses, in each domain around b (its node), the same domains of b: then each member has a
---partner on its own rail in every node that the group is on. O(members of a).
---@param a moongrid.Family
---@param b moongrid.Family of a machine, whose domains cross levels: machine.rail
function moongrid.aligned(a, b) end

---Raise if two ranks of a group of a are in one domain of b, for example two replicas in one rack.
---@param a moongrid.Family
---@param b moongrid.Family of a machine: machine.rack
function moongrid.spread(a, b) end

---Raise if a rank is in groups of both. Costs as `same`.
---@param a moongrid.Family
---@param b moongrid.Family
function moongrid.disjoint(a, b) end

---Raise unless every rank of the world is in a group. Costs as `same`.
---@param f moongrid.Family
function moongrid.covers(f) end

---@param world moongrid.World
---@return moongrid.Topology empty
function moongrid.topology(world) end

---Declare families that are used at the same time: as the word `concurrent` of recipes, in meta_recipe.lua.
---@param topology moongrid.Topology
---@param names string[]|string[][]
function moongrid.concurrent(topology, names) end

---@param topology moongrid.Topology not changed; you may add to it afterwards
---@return moongrid.Plan
function moongrid.plan(topology) end

---@param recipe string a file (with "/" or ".lua" in its name) or the name of a bundled one
---@param options? { text?: string, log?: fun(message: string), lines?: boolean } text: the recipe itself, which `recipe`
---then only names; log: gets what the recipe prints, which is lost otherwise; lines: its plans have `Plan:lines`
---@return moongrid.Recipe
function moongrid.load(recipe, options) end

---Return whether a file, or the text instead of it, is a saved plan (`moongrid plan --rules`, `--json`). It may still be
---broken.
---@param path string
---@param text? string
---@return boolean
function moongrid.is_saved(path, text) end

---Return the plan that a file, or the text instead of it, has saved. Raises unless it is whole and has the saved digest.
---@param path string
---@param text? string
---@return moongrid.Plan
function moongrid.saved(path, text) end

---Open a machine: text as "node:4 gpu:8", a preset as "dgx-h100", a file and more words, or "slurm", the job of this
---process (src/machine/README.md). Raises what is wrong with it, of a file with its line.
---@param source string
---@return moongrid.MachineModel
function moongrid.open_machine(source) end

---Return the machines that have names, in the order of these.
---@return { name: string, text: string, source: string }[] source: where its figures are from
function moongrid.presets() end

---Return the status of an error that was caught: of the last message that this module raised. Its hundreds digit is the
---exit code of the command: 1 recipe or sizes refused, 2 usage, 3 limit hit, 4 backend failed, 5 ranks disagree.
---@param message any what `pcall` returned
---@return integer? status nil: the message is another one
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

---Take the first of the backends of GPUs that every rank has, in the order of `options`, else the carrier itself. Takes the
---options of `nccl`. Collective.
---@param options? table
---@return moongrid.Job?
---@return string? message
---@return integer? status
function moongrid.auto(options) end

---Return seconds of a clock that never goes back, to measure with.
---@return number
function moongrid.now() end

---Return the names of the bundled recipes; or the text of one, or of a part of one, `"megatron.grids"`, and the names of its
---parts; nil: none has that name.
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
---@field makes boolean it makes communicators, and a family may ask for it
---@field carries boolean it carries the messages of others
---@field carried boolean it needs one that carries
---@field exchanges boolean its proof includes an all-to-all
---@field timeout integer seconds that a call over all ranks may take, if none are asked for

---@class moongrid.PartInfo
---@field name string "planning", or of a backend
---@field works boolean
---@field text string releases, or why it does not work

---What works on this machine: planning, and each backend. It loads their libraries.
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
