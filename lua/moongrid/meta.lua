---@meta moongrid
-- SPDX-License-Identifier: MIT
--
-- Annotations for editors (LuaCATS) of the module `require "moongrid"`: nothing here runs. Worlds, grids and
-- families are in meta_families.lua; jobs, states and their groups in meta_state.lua; the words that only recipes have
-- in meta_recipe.lua; plans, tensors, losses, steps, machines, checkpoints and pictures in meta_plan.lua, ...
--
-- Ranks, positions, coordinates and group numbers count from 0; a list of ranks is a Lua list. A function communicates
-- only if its text says "Collective". A wrong argument or an unknown name raises an error, which has the file and line
-- of the caller and the nearest valid name. Grids, families and plans never change. An object keeps alive the objects
-- from which it was made; Lua collects it like any other value. `==` compares contents.

-- options: written by make docs
---The options of a family for its communicators. Families with the same members share communicators only if their
---options are equal (except `first`, `lazy` and `single`).
---In parentheses: the backends that use the option, unless all do.
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
---Fields of ncclConfig_t, each with the first version of NCCL that has it. A flag is true, false, 1 or 0. A field that
---is left out has NCCL's default.
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

---Families, grids and tensors by name. `t.tp = family` adds a family, and `t.tp` returns it. The order of the
---assignments is the order of creation. A name is assigned once, but `t.tp = t.tp:with {...}` changes the options of
---the family, and `t.tp = nil` removes it. `#t` is the number of families, and `pairs(t)` visits the families in their
---order. A grid has no communicators; it gives the ranks coordinates. Assign a tensor after the grid whose dims cut it.
---`print(t)` shows at most a screen of families.
---@class moongrid.Topology
---@field [string] moongrid.Family|moongrid.Grid|moongrid.Tensor|any
local Topology = {}

---Return whether a family, grid or tensor of this name exists. To read an unknown name, as `t.x`, is an error.
---@param name string
---@return boolean
function Topology:has(name) end

-- Recipe and Job --------------------------------------------------------------------

---A recipe in its own Lua state. It may use 64 MiB of memory, 200 million instructions in a call, 10 seconds of
---processor time to load and plan, and 2 seconds in any other call. After a call that failed you can still use the
---recipe.
---@class moongrid.Recipe
local Recipe = {}

---Make the recipe's plan for a world. If the recipe refuses, this raises an error with the recipe's own file and line.
---@param world integer|moongrid.World number of ranks
---@param params? table<string, any>|string[] values, or texts as on a command line, by name or alias, or a list of "NAME=VALUE". A name with a dot sets an option of families: `["tp.max_ctas"] = 8`, `["*.timeout"] = 600`
---@param file? string a file of parameters: JSON, YAML, or Lua that returns a table. `params` must then be a list, whose values take the place of those in the file
---@return moongrid.Plan
function Recipe:plan(world, params, file) end

---Use this machine for all later plans, as `--machine` does. The recipe reads it as `machine`.
---@param machine moongrid.MachineModel? nil: no longer use a machine
function Recipe:on(machine) end

---Call one of the recipe's queries.
---@param state moongrid.State of a plan of this recipe
---@param query string
---@param arguments? table<string, any> plain values, which the query gets as `q`
---@return any answer nil, boolean, number, string, or a table of them
function Recipe:ask(state, query, arguments) end

---Return this rank's group for a getter of the modelled system, such as `get_tensor_and_data_parallel_group`. Call this
---once and keep the group. If the plan does not have the family, this raises an error, which names the parameters that
---make the family if the recipe names them. With the argument `check_initialized = false` it returns nil instead.
---Local.
---@param state moongrid.State of a plan of this recipe
---@param getter string
---@param arguments? table<string, any> plain values, which the getter gets as `q`
---@return moongrid.Group? group nil if this rank is in none
function Recipe:group(state, getter, arguments) end

---Change one of the recipe's settings for a state; queries and getters see the new value. Each state has its own
---settings, at first the defaults, and they are not part of the plan. If the setting does not exist or has another
---kind, this raises an error and changes nothing. Local.
---@param state moongrid.State of a plan of this recipe
---@param name string of the setting, or an alias
---@param value any a plain value; nil restores the default
function Recipe:set(state, name, value) end

---Call one of the recipe's policies, as mgrid_policy_call does in C. If the recipe has the policy in `agreed`, the call
---is collective over the job, or over this rank's group of the family that `agreed` names; else it is local. If the
---policy fails, this raises the error. If the ranks get different results, all of them get nil, message, status.
---@param state moongrid.State of a plan of this recipe
---@param policy string
---@param arguments? table<string, any> plain values, which the policy gets as `q`
---@param kind? "any"|"number" the type that the answer must have (any); for another one this raises an error with the policy's line
---@return any answer nil, boolean, number, string, or a table of them
---@return string? message
---@return integer? status 400 to 499: the backend failed, 500: ranks disagree (moongrid.h has each)
function Recipe:call(state, policy, arguments, kind) end

---Run lines of Lua, as `moongrid shell` does, after at least one plan. The lines can use the words of recipes, and
---names from the last plan of the recipe: its families and grids, the topology `t`, `world` and the parameters `p`. A
---global name that the lines assign exists until the next plan.
---@param lines string
---@return string? text what the lines print and return; nil if the last statement is incomplete
function Recipe:run(lines) end

---Complete a line for `run`.
---@param line string up to the cursor
---@return string[] words that can complete the last word of the line
function Recipe:complete(line) end

---Return a description of the recipe, which `tostring` turns into a text. Control characters in it are escaped. `names`
---has the lines of the field `names`.
---@return { doc: string, params: moongrid.ParamInfo[], settings: moongrid.ParamInfo[], queries: string[], getters: moongrid.GetterInfo[], arguments: moongrid.ParamInfo[], families: moongrid.FamilyInfo[], policies: moongrid.PolicyInfo[], names: string[], functions: moongrid.FunctionInfo[]? }
function Recipe:info() end

---A function that the host has registered (mgrid_runtime_function) and that the recipe names. A recipe of mg.load has
---none.
---@class moongrid.FunctionInfo
---@field name string
---@field version string

---@class moongrid.PolicyInfo
---@field name string
---@field agreed string? the family whose groups compare its results, or "world"; nil: not compared

---@class moongrid.GetterInfo
---@field name string
---@field gives { arguments: string, family: string }[] the families that the getter returns with the default parameters: without `arguments`, and for each value of its flags that changes the family

---A family that exists only with some parameters.
---@class moongrid.FamilyInfo
---@field name string a * stands for any part of a name
---@field with string a text that names these parameters

---A parameter, a setting or an argument.
---@class moongrid.ParamInfo
---@field name string
---@field kind "size"|"index"|"integer"|"number"|"flag"|"text"|"order"|"choice"|"list"|"names"|"table"|"file"|"any"
---@field choices string[]? the choices of param.choice, or the list of orders of param.order, as text
---@field default string? as text; nil: the parameter is optional, and has no default
---@field doc string
---@field aliases string[]
---@field of_step true? the parameter belongs to the recipe's step, so no family depends on it

-- The module ----------------------------------------------------------------------

---@class moongrid
---@field machine moongrid.MachineModel
---@field pictures moongrid.Pictures
---@field fill lightuserdata stands for the size of at most one dim of a grid: the ranks divided by the sizes of the other dims
---@field _VERSION string "moongrid", a space and the version
local moongrid = {}

---@param size integer 1 to 2147483647
---@return moongrid.World
function moongrid.world(size) end

---Make a grid over a World. A name in the order that has no size has size 1. A dim of size 1 that is not in the order
---comes after the others. The product of the sizes must be the number of ranks; else this raises an error that names
---the nearest sizes that fit.
---@param world moongrid.World
---@param order string|string[] names fastest first, "tp-cp-dp" or a list; at most 64
---@param sizes table<string, integer|lightuserdata> by name; at most one is `fill`
---@param how? "slowest first": the last name of the order is the fastest dim, as in DeviceMesh, JAX and Paddle
---@return moongrid.Grid
function moongrid.grid(world, order, sizes, how) end

---Return all groups of all families, in the order of the arguments. The families must not share ranks.
---Example: `union(low "x", high "x")` is `{0,1} {2,3} {4,5} {6,7}`.
---@param ... moongrid.Family 1 to 64, of one world
---@return moongrid.Family
function moongrid.union(...) end

---Join group i of each family into group i of the result. The families must have equal numbers of groups and share no
---ranks. With "spread" as the last argument, the numbers of groups may differ: if the largest is n, group i of the
---result has group i * count // n of a family with `count` groups. For example `zip(actors, rollout, "spread")` puts a
---single group of actors before every group of rollout, and of two groups of actors the first one before the first half
---of the groups of rollout. If the numbers differ, the result is a cover of explicit lists, O(members).
---Example: `zip(low "x", high "x")` is `{0,1,4,5} {2,3,6,7}`.
---Example: `zip(low "x", high("x", "y"), "spread")` is `{0,1,4,5,6,7} {2,3,4,5,6,7}`.
---@param ... moongrid.Family|"spread" 1 to 64, of one world
---@return moongrid.Family
function moongrid.zip(...) end

---Join all groups that share a rank, directly or through other groups, into one group. The families may share ranks.
---Members ascend, and groups are in the order of their lowest ranks. A rank that is in no group of the families is in
---no group of the result. O(dims) for families with a rule over the same ranks, if their sizes divide each other; else
---O(members). The result has explicit lists if its groups follow no rule.
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

---Flatten tensors as ZeRO and FSDP do: concatenate each rank's parts of the tensors, and cut the result into slices by
---dims that do not cut the tensors themselves: `t.a, t.b = flat { tensor {...}, tensor {...}, over = "dp" }`. A slice
---may end inside a tensor. All tensors must have the same grid and type. If the ranks along a dim have parts of
---different sizes, that dim must cut all tensors. The assignment of one tensor checks all of them.
---@param flat moongrid.FlatTable
---@return moongrid.Tensor ... one for each tensor in `flat`, in the same order
function moongrid.flat(flat) end

---Renumber the new pieces of an axis that is cut by `owners`, so that as few elements (for example experts) as possible
---move to another piece. This permutes the numbers in `now` so that the sum of the weights of the elements that stay is
---the largest (Hungarian method). If several permutations are best, the result is always the same one.
---O(elements + pieces^3) at most.
---@param was integer[] the present piece of each element, from 0; an element whose piece no longer exists has to move
---@param now integer[] the new piece of each element, 0 to pieces - 1
---@param options? { pieces?: integer, weights?: integer[] } pieces: their number, 1 to 1024 (1 + the largest of `now`); weights: the
---weight of each element, 0 or more (1)
---@return integer[] owners `now` with its pieces renumbered
---@return integer kept the sum of the weights of the elements that stay
function moongrid.relabel(was, now, options) end

---Raise unless a == b; the error names the first difference. The cost does not depend on the size of the world, with
---two exceptions: lists of more than 1024 groups or runs, which are compared rank by rank, and modes whose sizes do not
---divide each other.
---@param a moongrid.Family
---@param b moongrid.Family
function moongrid.same(a, b) end

---Raise unless every group of a lies inside one group of b, for example experts inside NVLink domains. This costs as
---much as `same`, but O(members of a) if groups of b with more than two ranks share ranks.
---@param a moongrid.Family
---@param b moongrid.Family of the same world
function moongrid.within(a, b) end

---Raise unless every group of a uses the same rails in every node in which it has ranks, so that each member has a
---partner on its own rail in each of these nodes. b may be the family of any domains that cross levels. O(members of
---a).
---@param a moongrid.Family
---@param b moongrid.Family the domains of a machine that cross levels, as machine.rail
function moongrid.aligned(a, b) end

---Raise if two ranks of a group of a are in one domain of b, for example two replicas in one rack.
---@param a moongrid.Family
---@param b moongrid.Family the domains of a level of a machine, as machine.rack
function moongrid.spread(a, b) end

---Raise if a rank is in a group of a and in a group of b. This costs as much as `same`.
---@param a moongrid.Family
---@param b moongrid.Family
function moongrid.disjoint(a, b) end

---Raise unless every rank of the world is in a group of f. This costs as much as `same`.
---@param f moongrid.Family
function moongrid.covers(f) end

---@param world moongrid.World
---@return moongrid.Topology empty
function moongrid.topology(world) end

---Declare families that are used at the same time, like the word `concurrent` of recipes (meta_recipe.lua).
---@param topology moongrid.Topology
---@param names string[]|string[][]
function moongrid.concurrent(topology, names) end

---@param topology moongrid.Topology it does not change, and you may add to it afterwards
---@return moongrid.Plan
function moongrid.plan(topology) end

---@param recipe string the name of a file, which has "/" or ".lua" in it, or the name of a bundled recipe
---@param options? { text?: string, log?: fun(message: string), lines?: boolean } text: the text of the recipe, if
---`recipe` is only its name; log: a function that gets the texts that the recipe prints, which are lost without it;
---lines: record the lines that make families, for `Plan:lines`
---@return moongrid.Recipe
function moongrid.load(recipe, options) end

---Return whether a file looks like a saved plan (`moongrid plan --rules`, `--json`). The plan may still be broken.
---@param path string
---@param text? string the content of the file, which is then not read
---@return boolean
function moongrid.is_saved(path, text) end

---Return the plan in a file. Raises unless the plan is complete and has the digest in the file.
---@param path string
---@param text? string the content of the file, which is then not read
---@return moongrid.Plan
function moongrid.saved(path, text) end

---Open a machine: a text such as "node:4 gpu:8", a preset such as "dgx-h100", the name of a file, or "slurm" for the
---Slurm job of this process (src/machine/README.md). After a preset, a file or "slurm" more words of a text may
---follow, as in "hosts.txt gpu:8". An error in a file names the line.
---@param source string
---@return moongrid.MachineModel
function moongrid.open_machine(source) end

---Return the machines that are presets, in the order of their names.
---@return { name: string, text: string, source: string }[] source: where its numbers come from
function moongrid.presets() end

---Return the status of a caught error. Only the last error that this module raised has a status. Its hundreds digit is
---the exit code of the command: 1 recipe or sizes refused, 2 usage, 3 limit hit, 4 backend failed, 5 ranks disagree.
---@param message any what `pcall` returned
---@return integer? status nil for any other message
function moongrid.status(message) end

-- backends: written by make docs
---Join the MPI job this process was started in: a duplicate of MPI_COMM_WORLD; initializes MPI if needed.
---Collective. Returns nil, message, status if it is not available.
---@param options? {timeout?: number, threads?: "any"|"funneled"|"serialized"|"multiple", on_deadline?: "error"|"abort", communicators?: integer, comm?: integer}|integer
---timeout: seconds that a call over all ranks may take (120); threads: the thread level to request from MPI, or that a
---running MPI must have (funneled); on_deadline: if a call of MPI does not return at the deadline, keep waiting (error)
---or end the process (abort); communicators: the most that the job may have on a rank; comm: the Fortran handle
---(MPI_Comm_c2f) of the communicator to use in place of MPI_COMM_WORLD; also mpi(handle)
---@return moongrid.Job?
---@return string? message
---@return integer? status
function moongrid.mpi(options) end

---Create NCCL communicators on the GPUs of the ranks.
---The carrier ("mpi" or "pmix") sends their ids. mpi also creates the communicators of families with backend "mpi".
---Collective. If a rank has no GPU, library or driver, every rank gets nil, message, status.
---@param options? {carrier?: "mpi"|"pmix"|moongrid.Job, device?: integer|integer[], share_gpu?: boolean, timeout?: number, budget?: integer, ranks_per_id?: integer, blocking?: boolean}
---carrier: its name ("mpi"), or an open job that serves as carrier; device: the GPU of this rank, or a list of the GPUs
---of all ranks of this node (by default each rank takes the GPU of its index on the node); share_gpu: several ranks
---may use one GPU; timeout: seconds that a creation may take (120); budget: most bytes of GPU memory for communicators;
---ranks_per_id: a group of more ranks gets several unique ids (128); blocking: the trainer's calls on communicators
---block, as with ncclCommInitRank (true)
---@return moongrid.Job?
---@return string? message
---@return integer? status
function moongrid.nccl(options) end

---Create RCCL communicators (NCCL for AMD) on the GPUs of the ranks.
---The carrier ("mpi" or "pmix") sends their ids. mpi also creates the communicators of families with backend "mpi".
---Collective. If a rank has no GPU, library or driver, every rank gets nil, message, status.
---@param options? {carrier?: "mpi"|"pmix"|moongrid.Job, device?: integer|integer[], share_gpu?: boolean, timeout?: number, budget?: integer, ranks_per_id?: integer, blocking?: boolean}
---carrier: its name ("mpi"), or an open job that serves as carrier; device: the GPU of this rank, or a list of the GPUs
---of all ranks of this node (by default each rank takes the GPU of its index on the node); share_gpu: several ranks
---may use one GPU; timeout: seconds that a creation may take (120); budget: most bytes of GPU memory for communicators;
---ranks_per_id: a group of more ranks gets several unique ids (128); blocking: the trainer's calls on communicators
---block, as with ncclCommInitRank (true)
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

---Open the first GPU backend, in the order in which `moongrid.options` returns the backends, that works on every rank.
---If none does, return the job of the carrier. Collective.
---@param options? table the options of `nccl`
---@return moongrid.Job?
---@return string? message
---@return integer? status
function moongrid.auto(options) end

---Return the time of a clock that never goes back, in seconds, for measurements.
---@return number
function moongrid.now() end

---Return the names of the bundled recipes. With the name of a recipe or of a part ("megatron.grids") return its text
---and the names of its parts; nil if there is no such recipe or part.
---@return string[]
---@overload fun(name: string): string?, string[]?
function moongrid.recipes() end

---Return the tables from which the library's messages and references are made.
---@return moongrid.OptionInfo[] options of `family:with`, in the order in which they are printed
---@return moongrid.FieldInfo[] fields of the option `nccl`, sorted by name
---@return moongrid.BackendInfo[] backends, each opened by the function of its name
function moongrid.options() end

---@class moongrid.OptionInfo
---@field name string
---@field kind "flag"|"seconds"|"word"|"fields"|"shape"|"numbers"|"name"
---@field words string[]? the possible words
---@field apart boolean families that differ in this option do not share a communicator
---@field backends string names of the backends that use the option, or "all"
---@field unset string the default
---@field doc string

---@class moongrid.BackendInfo
---@field name string
---@field doc string
---@field makes boolean it makes communicators, so the option `backend` of a family may name it
---@field carries boolean it can be the carrier of another backend
---@field carried boolean it needs a carrier
---@field exchanges boolean `State:prove` also makes an all-to-all
---@field timeout integer seconds that a call over all ranks may take, by default

---@class moongrid.PartInfo
---@field name string "planning", or the name of a backend
---@field works boolean
---@field text string the versions of its libraries, or the reason why it does not work

---Return which parts work on this computer: planning, and each backend. This loads the libraries of the backends.
---@return moongrid.PartInfo[]
function moongrid.probe() end

---@class moongrid.FieldInfo
---@field name string
---@field kind "flag"|"integer"|"text"
---@field low integer? the least number (of a flag 0)
---@field high integer? the largest number (of a flag 1); nil: NCCL has no upper bound
---@field version integer the first version of NCCL that has the field, 21800 for 2.18.0; 0: moongrid's own field
---@field doc string

return moongrid
