---@meta moongrid.recipe
-- SPDX-License-Identifier: MIT
--
-- Annotations for editors (LuaCATS) of the language of recipes: nothing here runs. meta.lua has the rest, or says which
-- file has it.
--
-- A recipe is Lua text that returns `recipe { ... }`. It can use the names below and these names of Lua (any other name
-- is an error, and so is the assignment of a global):
--
--   globals  assert error ipairs pairs pcall print select tonumber tostring type
--   math     abs ceil floor fmod huge max maxinteger min mininteger sqrt tointeger type ult
--   string   byte char format len lower rep split sub upper
--   table    concat insert pack remove sort unpack
--
-- Some functions are changed, so that a recipe means the same in every process: `pairs` visits integers in order, then
-- strings in the order of their bytes, and refuses other keys; `table.sort` is stable; `tostring` and `string.format`
-- show no address, and %p is refused; `string.rep` makes at most 65536 bytes; `assert` adds the position to its
-- message.

local moongrid = require "moongrid"

---Split a text at each separator; without a separator in it, return a list of the whole text.
---@param text string
---@param separator string plain text, not empty
---@return string[]
function string.split(text, separator) end

---@class moongrid.RecipeWord
---@overload fun(what: moongrid.Definition|string): moongrid.Definition
local Word = {}

---Return the functions of another file, `return { name = function, ... }`, which several recipes may share. The file
---runs once, in the same sandbox. Raises inside `build`, for a file outside the folder of the recipe that the host has
---loaded, and for a file that imports itself or returns something else. To use an unknown name of the result is an
---error.
---@param path string relative to this file, ending with .lua: "./helpers.lua"
---@return table<string, function>
function Word.import(path) end

---`recipe { ... }` defines a recipe. `recipe "name"` returns another recipe: a bundled one, or a file NAME.lua beside
---or below this one.
---@type moongrid.RecipeWord
recipe = nil

---@class moongrid.Definition
---@field doc? string one line for `moongrid recipes`
---@field base? string|moongrid.Definition a recipe whose parameters, families and queries this one inherits
---@field params? table<string, moongrid.Param|boolean|integer|number|string|integer[]> by name: declared, or just a default
---@field rest? string a parameter of kind file or table: it gets the entries of a file of parameters that are not parameters of the recipe
---@field build? fun(world: moongrid.World, p: table<string, any>, t: moongrid.Topology?): moongrid.Topology `p` is read-only; `t` is the topology of the base
---@field concurrent? string[]|string[][] families that are used at the same time, the most urgent first, or several such lists; added to the base's. See `concurrent` below
---@field queries? table<string, fun(s: moongrid.State, q: table<string, any>, p: table<string, any>, set: table<string, any>): any>|fun(): table `set`: the settings of the state, read-only; a function that returns the table is called at the first question
---@field getters? table<string, string|fun(s: moongrid.State?, q: table<string, any>, p: table<string, any>, set: table<string, any>): string?>|fun(): table getters of groups under the system's names: the family of each, or a function that returns its name, or nil for no group (`s` is nil when the getters are listed)
---@field families? table<string, string>|fun(): table for each family that exists only with some parameters (a * in a name stands for any part), a text that names these parameters
---@field arguments? table<string|integer, moongrid.Param|boolean|integer|number|string|integer[]>|fun(): table arguments of queries and getters: by name as in `params`, with their defaults in `q`; a name without a declaration accepts any value, "..." any name; unknown arguments are refused
---@field settings? table<string, moongrid.Param|boolean|integer|number|string|integer[]> modes that a trainer switches while it runs, by name as in `params`; Recipe:set, in C mgrid_runtime_set
---@field policy? table<string, fun(s: moongrid.State, q: table<string, any>, p: table<string, any>): any> functions that decide something for the trainer, which calls them by mgrid_policy_call in C; results are plain values
---@field names? string rules between names of tensors, one on a line, which `moongrid reshard` reads
---@field idle? "allow" ranks may be in no group; without it `moongrid plan`, `check` and `run` list ranks without a group
---@field spares? integer|moongrid.SparesPer how many ranks are in no family, and take the places of lost ranks: the last ones of the world, or of each node; build gets a World without them
---@field machine? string where ranks run, as text or a preset: "node:4 gpu:8 rail = gpu", "dgx-h100". The machine of the host (--machine) replaces it
---@field traffic? table<string, string> what each family sends in a step, for `moongrid place`: tp = "2 GiB all_reduce x 96"
---@field step? false|fun(s: moongrid.Step, p: table<string, any>, base: fun(s: moongrid.Step)?) the calls of one rank in a step (src/step/README.md); `base` is the step of the base; false: no step, although the base has one
---@field agreed? table<string, string|false> by name of a policy: the family whose groups compare its results, or "world"; false cancels the base's entry

---A declared parameter.
---@class moongrid.Param

---Each kind takes (default, doc, aliases...). A default of nil makes the parameter optional:
---build sees nil if it is not given. In brackets: the form on a command line.
---@class moongrid.Params
---@field size fun(default?: integer, doc?: string, ...: string): moongrid.Param 1 or more
---@field index fun(default?: integer, doc?: string, ...: string): moongrid.Param 0 or more
---@field integer fun(default?: integer, doc?: string, ...: string): moongrid.Param
---@field number fun(default?: number, doc?: string, ...: string): moongrid.Param
---@field flag fun(default?: boolean, doc?: string, ...: string): moongrid.Param (true, 1, false or 0)
---@field text fun(default?: string, doc?: string, ...: string): moongrid.Param
---@field order fun(default?: string|string[], doc?: string, ...: string): moongrid.Param an order of dims, as "tp-dp-pp": `place --search order` tries all orders of these names, or those in a list, whose first is the default
---@field choice fun(choices: (integer|string)[], doc?: string, ...: string): moongrid.Param one of these integers or texts, the first by default: `place --search order` tries all
---@field list fun(default?: integer[], doc?: string, ...: string): moongrid.Param integers (0,-1)
---@field names fun(default?: string[], doc?: string, ...: string): moongrid.Param names, each once (tp-dp, or a list of JSON)
---@field table fun(default?: table<string, any>, doc?: string, ...: string): moongrid.Param plain values by name (JSON)
---@field file fun(default?: table<string, any>, doc?: string, ...: string): moongrid.Param as `table`, or the path of a JSON or YAML file with such values (only the caller of plan, not a recipe, can give a path); the plan has the contents of the file
---@field any fun(default?: any, doc?: string, ...: string): moongrid.Param a plain value (JSON, else text)

---@type moongrid.Params
param = {}

---A bundled policy, for the table `policy` of a recipe: `layers = policies.layers { loss = 1 }`. Each setting is a
---value, or a function (state, q, p) that returns the value in each call of the policy. A wrong setting or argument is
---an error at the line of the recipe that made the policy. A family that the topology does not have is an error when
---the recipe is planned; to name a family that exists only sometimes, use a function. Unknown arguments are ignored.
---Results are identical on every machine, so that ranks can agree on them.
---@class moongrid.Policies
local Policies = {}

---@class moongrid.LayersSettings
---@field first? integer layers of the first stage, 0 or more
---@field last? integer layers of the last stage, 0 or more
---@field embedding? number additional work of the first stage, in layers; 0 or more (0); not with `first`
---@field loss? number additional work of the last stage, in layers; 0 or more (0); not with `last`

---Divide layers among pipeline stages as evenly as possible, the larger ones first.
---Arguments: q.layers (0 or more) and q.stages (1 or more; with an interleaved schedule those of all
---ranks, in the order of the model). Returns a list of q.stages integers whose sum is q.layers.
---@param settings? moongrid.LayersSettings
---@return function policy
function Policies.layers(settings) end

---@class moongrid.ScheduleSettings
---@field chunks? integer runs of layers per rank, 1 or more (1); more than 1 is interleaved
---@field order? "1f1b"|"gpipe"|"interleaved" by default "1f1b", with several chunks "interleaved"
---@field microbatch? integer samples of a microbatch, 1 or more; without it `per_rank` decides
---@field per_rank? integer most microbatches for each rank of the pipeline (2); more if no divisor of the samples up to this number gives every rank one

---Choose the pipeline schedule for the samples of one replica.
---Arguments: q.samples and q.ranks (of the pipeline), each 1 or more. Returns { microbatches, order,
---chunks, bubble }: microbatches divide the samples, and with "interleaved" are a multiple of the
---ranks; bubble is idle time over ideal time of a stage, (ranks - 1) / (chunks x microbatches).
---@param settings? moongrid.ScheduleSettings
---@return function policy
function Policies.schedule(settings) end

---@class moongrid.BucketSettings
---@field least? integer bytes, 1 or more (160000000)
---@field per_rank? integer bytes, 0 or more (4000000)

---Choose the bytes of a bucket of gradients: the larger of `least` and `per_rank` times the ranks.
---Argument: q.ranks (1 or more) of the family that sums. Returns an integer. The defaults are
---Megatron-core's: max(40e6, 1e6 x ranks) parameters, of 4 bytes.
---@param settings? moongrid.BucketSettings
---@return function policy
function Policies.bucket_bytes(settings) end

---@class moongrid.GradientSettings
---@field dense? string family ("dp_cp")
---@field expert? string family; by default the first of expert_data, expt_dp, ep_dp, efsdp, edp that the plan has, else
---its only edp_size_N

---Return the family over which to sum a parameter's gradient.
---Argument: q.expert, true for a parameter of an expert. Returns a name; a family that the plan does
---not have is an error.
---@param settings? moongrid.GradientSettings
---@return function policy
function Policies.gradient_family(settings) end

---@class moongrid.RateSettings
---@field peak number after the warm-up, 0 or more
---@field least? number after the last step, 0 to peak (0)
---@field warmup? integer steps, 0 or more (0); with q.steps or more `peak` is not reached
---@field decay? integer steps at the end over which the rate falls; at most, and by default, all after the warm-up
---@field shape? "cosine"|"linear"|"constant"|"inverse_sqrt" how the rate falls ("cosine")

---Return the learning rate of a step: a line from 0 up to `peak`, then down to `least`. "inverse_sqrt" is
---peak x sqrt(warmup / step), not below `least`, and ignores `decay`; "constant" stays at `peak`.
---Arguments: q.step (0 or more, counted from 0) and q.steps (1 or more). Returns a number.
---@param settings moongrid.RateSettings
---@return function policy
function Policies.learning_rate(settings) end

---@class moongrid.CheckpointSettings
---@field every? integer steps, 1 or more (1000)
---@field last? boolean also after the last step (true)

---Return whether to write a checkpoint after this step.
---Arguments: q.step (0 or more, counted from 0) and q.steps (1 or more). Returns a boolean.
---@param settings? moongrid.CheckpointSettings
---@return function policy
function Policies.checkpoint(settings) end

---@class moongrid.SparesPer
---@field per string a level of the machine, "node"
---@field count? integer ranks of each of its domains, 1 or more (1)

---@class moongrid.LostSettings
---@field keep? string[] families that the trainer can do without
---@field shrink? string[] families whose groups continue without the lost ranks
---@field least? integer ranks of a group, or of the job, that must remain for a shrink, 1 or more (1)
---@field job? "replace"|"shrink"|"stop" the only answer about the job; left out: "replace" if enough spares are left,
---else "shrink" if `least` ranks are left, else "stop"
---@field params? table<string, any> parameters of the smaller layout, in place of those of the plan: { dp = 3 }
---@field majority? boolean stop the job unless more than half of its ranks are left, or half of them with rank 0: so after a
---cut link only one side goes on (false)

---Choose the reaction to lost ranks: of a group over which a call failed (q.family), or of the job. Arguments: q.family
---(left out: the job), q.ranks (number of ranks of the group, or of the job), q.lost (how many of them are lost, 0 to
---q.ranks; default 1), and for the job q.spares (how many are left; default 0), q.which (the lost ranks, ascending),
---q.places (how many of the lost ranks had a place in the layout; default q.lost) and q.missing (bytes of tensors of
---which every copy is lost). Returns "keep", "shrink" or "stop" about a group; "replace", "shrink", "stop" or { how =
---"shrink", params = { ... } } about the job (`params` may also be a list of such tables, tried in this order). Only
---the remaining ranks call it, so do not declare it agreed.
---@param settings? moongrid.LostSettings
---@return function policy
function Policies.on_lost(settings) end

policies = Policies ---@type moongrid.Policies

---A bundled step, for the field `step` of a recipe.
---@class moongrid.Steps
local Steps = {}

---@class moongrid.TransformerSettings
---@field tp? string|string[]|false the family, or a list, of which the first family in the plan counts; false: none ("tp")
---@field pp? string|string[]|false ("pp")
---@field dp? string|string[]|false over which gradients are summed (dp_cp, dp)
---@field cp? string|string[]|false ("cp")
---@field ep? string|string[]|false ("ep")
---@field expert_dp? string|string[]|false over which gradients of experts are summed (expt_dp, expert_data)
---@field expert_tp? string|string[]|false tensor parallelism of experts (expt_tp); without it tp
---@field tp_ep? string|string[]|false tensor and expert parallelism of experts together ("tp_ep")
---@field tp_cp? string|string[]|false for the router's counts ("tp_cp")
---@field tp_dp_cp? string|string[]|false for the counts of biases of experts ("tp_dp_cp")
---@field embeddings? string|string[]|false the stages that share a tied embedding ("embd")
---@field model? string|string[]|false for the norm of gradients ("mp")
---@field expert_model? string|string[]|false for the norm of gradients of experts ("tp_ep_pp")
---@field optimizer? string|string[]|false for the norm of gradients with the distributed optimizer ("intra_dist_opt")
---@field shards? string|string[]|false the ranks of an instance of the distributed optimizer ("intra_dp_cp")
---@field expert_shards? string|string[]|false the same for experts ("intra_expt_dp")
---@field instances? string|string[]|false ranks with the same shard in all instances ("inter_dist_opt")
---@field world? string|string[]|false all ranks, for overlap_p2p with two stages, and for multi-token prediction with cp ("default_pg")
---@field [string] any defaults of the step's parameters

---@class moongrid.PicotronSettings
---@field tp? string|string[]|false ("tp")
---@field pp? string|string[]|false ("pp")
---@field cp? string|string[]|false ("cp")
---@field dp? string|string[]|false ("dp")
---@field cp_dp? string|string[]|false over which gradients are summed ("cp_dp")
---@field world? string|string[]|false all ranks, for messages between stages ("world_group")
---@field [string] any defaults of the step's parameters

---@class moongrid.Fsdp2Settings
---@field tp? string|string[]|false ("tp")
---@field cp? string|string[]|false ("cp")
---@field pp? string|string[]|false refused if it has several ranks ("pp")
---@field ep? string|string[]|false refused if it has several ranks ("ep")
---@field shard? string|string[]|false the ranks that shard weights ("fsdp")
---@field whole? string|string[]|false used if the plan has no `shard`, and there are no replicas ("loss")
---@field dp_shard? string|string[]|false used if the plan has no `shard`, there are replicas, and cp is 1 ("dp_shard")
---@field replicate? string|string[]|false the replicas ("dp_replicate")
---@field [string] any defaults of the step's parameters

---Return one training step of Megatron-core. Its parameters, layers, hidden, ..., become parameters of the recipe
---(`moongrid recipes megatron` lists them; src/step/README.md explains them).
---@param settings? moongrid.TransformerSettings
---@return fun(s: moongrid.Step, p: table<string, any>) step
function Steps.transformer(settings) end

---Return one training step of picotron, likewise.
---@param settings? moongrid.PicotronSettings
---@return fun(s: moongrid.Step, p: table<string, any>) step
function Steps.picotron(settings) end

---Return one training step of a Llama under torch's FSDP2, likewise.
---@param settings? moongrid.Fsdp2Settings
---@return fun(s: moongrid.Step, p: table<string, any>) step
function Steps.fsdp2(settings) end

steps = Steps ---@type moongrid.Steps

grid, topology, same = moongrid.grid, moongrid.topology, moongrid.same
within, disjoint, covers = moongrid.within, moongrid.disjoint, moongrid.covers
machine, aligned, spread = moongrid.machine, moongrid.aligned, moongrid.spread
union, zip, closure, fill = moongrid.union, moongrid.zip, moongrid.closure, moongrid.fill
tensor, flat, relabel = moongrid.tensor, moongrid.flat, moongrid.relabel

---Declare families that a trainer uses at the same time, the most urgent first. They never share a communicator,
---neither in a state nor between states, even if their groups and options are equal: NCCL runs the calls on one
---communicator in sequence, on any streams. `group.launch_order` follows the order of the names. The first family with
---communicators gets `high_priority`, unless families of the list have that option already. A family in no list still
---shares communicators with a listed family of equal groups. Raises for an unknown name, for a name that occurs twice,
---for a list of one name, and for an order that contradicts an earlier list. The field `concurrent` of a recipe does
---this after build; call it in `build` if the families depend on parameters.
---@param topology moongrid.Topology
---@param names string[]|string[][] one list, or several
function concurrent(topology, names) end

---In a recipe `log(format, ...)` is `print(string.format(format, ...))`. Both write to the host's log (`mgrid_hooks`),
---with the line of the recipe in front, never to stdout. The command writes the log to stderr, in a job only that of
---rank 0. At most 1000 lines of a call are written, 800 bytes of each.
---@param format string
---@param ... any
function log(format, ...) end
