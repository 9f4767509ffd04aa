---@meta moongrid.recipe
-- SPDX-License-Identifier: MIT
--
-- Annotations for editors (LuaCATS) of the language of recipes: nothing here runs. meta.lua says which file has the
-- other annotations.
--
-- A recipe is Lua text that returns `recipe { ... }`. It can use the names in this file and these names of Lua. To read
-- another global name, or to assign a global, is an error.
--
--   globals  assert error ipairs pairs pcall print select tonumber tostring type
--   math     abs ceil floor fmod huge max maxinteger min mininteger sqrt tointeger type ult
--   string   byte char format len lower rep split sub upper
--   table    concat insert pack remove sort unpack
--
-- Some functions are changed, so that a recipe means the same in every process: `pairs` visits integers in order, then
-- strings in the order of their bytes, and refuses other keys; `table.sort` is stable; `tostring` and `string.format`
-- show no address, and %p is refused; `string.rep` makes at most 65536 bytes; `assert` puts the file and line before
-- its message.

local moongrid = require "moongrid"

---Split a text at each separator. A text without a separator gives a list of one text.
---@param text string
---@param separator string plain text, not empty
---@return string[]
function string.split(text, separator) end

---@class moongrid.RecipeWord
---@overload fun(what: moongrid.Definition|string): moongrid.Definition
local Word = {}

---Return the functions of another file, which several recipes may share. The file ends with
---`return { name = function, ... }`; it runs once, in the same sandbox. Raises inside `build`, for a file outside the
---folder of the recipe that the host has loaded, and for a file that imports itself or returns something else. To read
---a name that is not in the returned table is an error.
---@param path string relative to this file, ending with .lua: "./helpers.lua"
---@return table<string, function>
function Word.import(path) end

---`recipe { ... }` defines a recipe. `recipe "name"` returns another recipe: a bundled one, or with "./NAME.lua", a
---path relative to this file, the recipe of that file.
---@type moongrid.RecipeWord
recipe = nil

---@class moongrid.Definition
---@field doc? string one line for `moongrid recipes`
---@field base? string|moongrid.Definition a recipe, or its name, from which this one inherits parameters, families, queries and policies
---@field params? table<string, moongrid.Param|boolean|integer|number|string|integer[]> a declaration by `param`, or only a default, for each name of a parameter
---@field rest? string the name of a parameter of kind file or table; it gets all entries of a file of parameters whose names are not parameters
---@field build? fun(world: moongrid.World, p: table<string, any>, t: moongrid.Topology?): moongrid.Topology `p` is read-only; `t` is the topology of the base
---@field concurrent? string[]|string[][] families that are used at the same time, the most urgent first, or several such lists, in addition to those of the base; see `concurrent` below
---@field queries? table<string, fun(s: moongrid.State, q: table<string, any>, p: table<string, any>, set: table<string, any>): any>|fun(): table functions that answer questions of the modelled system, by its names. `set` has the settings of the state, read-only. A function that returns this table is called at the first question
---@field getters? table<string, string|fun(s: moongrid.State?, q: table<string, any>, p: table<string, any>, set: table<string, any>): string?>|fun(): table for each getter of the modelled system the name of the family whose group it returns, or a function that returns this name, or nil if there is no group (`s` is nil when the getters are listed)
---@field families? table<string, string>|fun(): table for each family that exists only with some parameters, a text that names these parameters; a * in the family's name stands for any characters
---@field arguments? table<string|integer, moongrid.Param|boolean|integer|number|string|integer[]>|fun(): table arguments of queries and getters, declared as in `params`; `q` has their values or defaults. A name that stands in the table as a list element accepts any value. Other arguments are refused, unless "..." is in the table
---@field settings? table<string, moongrid.Param|boolean|integer|number|string|integer[]> modes that a trainer switches while it runs, by Recipe:set or mgrid_runtime_set; declared as in `params`
---@field policy? table<string, fun(s: moongrid.State, q: table<string, any>, p: table<string, any>): any> functions that decide something for the trainer, which calls them by Recipe:call or mgrid_policy_call; they return plain values
---@field names? string rules for `moongrid reshard`, one on a line: which names of tensors in a checkpoint and in the recipe mean the same tensor
---@field idle? "allow" ranks may be in no group; without this field `moongrid plan`, `check` and `run` list the ranks without a group
---@field spares? integer|moongrid.SparesPer the number of spares: ranks that are in no family until they take the places of lost ranks. With a number, these are the last ranks of the world; with a table, the last ranks of each domain. build gets a World without the spares
---@field machine? string where ranks run: a text, "node:4 gpu:8 rail = gpu", or the name of a preset, "dgx-h100". A machine that the host gives (--machine) replaces it
---@field traffic? table<string, string> what each family sends in a training step, for `moongrid place`: tp = "2 GiB all_reduce x 96"
---@field step? false|fun(s: moongrid.Step, p: table<string, any>, base: fun(s: moongrid.Step)?) a function that makes the calls of one rank in a training step (src/step/README.md); its argument `base` is the step of the base recipe. false: no step, although the base recipe has one
---@field agreed? table<string, string|false> for the name of a policy, a family: all ranks of one of its groups must get the same result; or "world" for all ranks; false cancels an entry of the base

---A declared parameter.
---@class moongrid.Param

---The kinds of parameters. A default of nil makes a parameter optional: if it is not given, its value is nil. The
---arguments after `doc` are aliases. Parentheses show how to write a value on a command line.
---@class moongrid.Params
---@field size fun(default?: integer, doc?: string, ...: string): moongrid.Param 1 or more
---@field index fun(default?: integer, doc?: string, ...: string): moongrid.Param 0 or more
---@field integer fun(default?: integer, doc?: string, ...: string): moongrid.Param
---@field number fun(default?: number, doc?: string, ...: string): moongrid.Param
---@field flag fun(default?: boolean, doc?: string, ...: string): moongrid.Param (true, 1, false or 0)
---@field text fun(default?: string, doc?: string, ...: string): moongrid.Param
---@field order fun(default?: string|string[], doc?: string, ...: string): moongrid.Param an order of dims, as "tp-dp-pp". `place --search order` tries all orders of the names in the default. If you give a list of orders, it tries only these, and the first is the default
---@field choice fun(choices: (integer|string)[], doc?: string, ...: string): moongrid.Param one of `choices`; the first is the default. `place --search order` tries all of them
---@field list fun(default?: integer[], doc?: string, ...: string): moongrid.Param integers (0,-1)
---@field names fun(default?: string[], doc?: string, ...: string): moongrid.Param names, each once (tp-dp, or a JSON list)
---@field table fun(default?: table<string, any>, doc?: string, ...: string): moongrid.Param plain values by name (JSON)
---@field file fun(default?: table<string, any>, doc?: string, ...: string): moongrid.Param as `table`, or the path of a JSON or YAML file that has such a table. The plan has the contents of the file. A recipe that builds another one cannot give a path
---@field any fun(default?: any, doc?: string, ...: string): moongrid.Param any plain value (JSON; text that is not JSON stays text)

---@type moongrid.Params
param = {}

---Functions that make bundled policies, for the table `policy` of a recipe: `layers = policies.layers { loss = 1 }`. A
---setting is a value, or a function (state, q, p) that returns the value at each call of the policy. For a wrong
---setting or argument the error has the line of the recipe that made the policy. If a setting names a family that the
---topology does not have, the plan is refused; for a family that exists only sometimes, let a function return the name.
---Arguments that a policy does not know are ignored. Results are identical on every machine, so that ranks can agree on
---them.
---@class moongrid.Policies
local Policies = {}

---@class moongrid.LayersSettings
---@field first? integer layers of the first stage, 0 or more
---@field last? integer layers of the last stage, 0 or more
---@field embedding? number work of the embedding, in layers, 0 or more (0); not with `first`
---@field loss? number work of the loss, in layers, 0 or more (0); not with `last`

---Divide layers among pipeline stages. The settings `first` and `last` fix the layers of two stages. Each other layer
---goes to the stage with the least work so far, among equal stages to the first one. `embedding` counts as work of the
---first stage, `loss` as work of the last one. Arguments: q.layers (0 or more) and q.stages (1 or more; with an
---interleaved schedule the chunks of all ranks, in the order of the model). Returns the number of layers of each stage.
---@param settings? moongrid.LayersSettings
---@return function policy
function Policies.layers(settings) end

---@class moongrid.ScheduleSettings
---@field chunks? integer chunks of layers on each rank, 1 or more (1)
---@field order? "1f1b"|"gpipe"|"interleaved" with several chunks only "interleaved", which is then the default; else "1f1b"
---@field microbatch? integer samples of a microbatch, 1 or more; without it `per_rank` sets the number of microbatches
---@field per_rank? integer the number of microbatches is the largest that divides the samples and is at most `per_rank` x
---q.ranks; if that is less than q.ranks, the next larger number that divides the samples; 1 or more (2)

---Choose the pipeline schedule for the samples of one replica. Arguments: q.samples, and q.ranks, the ranks of the
---pipeline; each 1 or more. Returns { microbatches, order, chunks, bubble }. `microbatches` is their number, with
---"interleaved" a multiple of q.ranks. `bubble` is the idle time of a stage divided by its time of work:
---(q.ranks - 1) / (chunks x microbatches).
---@param settings? moongrid.ScheduleSettings
---@return function policy
function Policies.schedule(settings) end

---@class moongrid.BucketSettings
---@field least? integer bytes, 1 or more (160000000)
---@field per_rank? integer bytes, 0 or more (4000000)

---Choose the bytes of a bucket of gradients: the larger of `least` and `per_rank` x q.ranks. Argument: q.ranks, the
---ranks over which gradients are summed, 1 or more. Returns an integer. The defaults are Megatron-core's: max(40e6, 1e6
---x ranks) parameters of 4 bytes.
---@param settings? moongrid.BucketSettings
---@return function policy
function Policies.bucket_bytes(settings) end

---@class moongrid.GradientSettings
---@field dense? string the family for other parameters than those of experts ("dp_cp")
---@field expert? string the family for parameters of experts; by default the first of expert_data, expt_dp, ep_dp, efsdp
---and edp that the plan has; without these edp_size_N, if there is only one

---Return the name of the family over which to sum a parameter's gradient. Argument: q.expert, true for a parameter of
---an expert. Raises if the plan does not have the family.
---@param settings? moongrid.GradientSettings
---@return function policy
function Policies.gradient_family(settings) end

---@class moongrid.RateSettings
---@field peak number the rate at the end of the warm-up, 0 or more
---@field least? number the rate to which "cosine" and "linear" fall, which they reach after the last step; the lowest rate of
---"inverse_sqrt"; 0 to peak (0)
---@field warmup? integer steps of the warm-up, 0 or more (0)
---@field decay? integer the last steps, over which the rate falls; by default, and at most, all steps after the warm-up
---@field shape? "cosine"|"linear"|"constant"|"inverse_sqrt" how the rate falls ("cosine")

---Return the learning rate of a step. In the warm-up it is peak x (q.step + 1) / warmup. Then `shape` says how it
---falls: "constant" stays at `peak`, "inverse_sqrt" is peak x sqrt(warmup / q.step), at least `least`. With these two
---shapes `decay` is an error. Arguments: q.step, the number of the step, from 0, and q.steps, the number of all steps,
---1 or more.
---@param settings moongrid.RateSettings
---@return function policy
function Policies.learning_rate(settings) end

---@class moongrid.CheckpointSettings
---@field every? integer steps from one checkpoint to the next, 1 or more (1000)
---@field last? boolean write one after the last step, too (true)

---Return whether to write a checkpoint after this step. Arguments: q.step, the number of the step, from 0, and q.steps,
---the number of all steps, 1 or more.
---@param settings? moongrid.CheckpointSettings
---@return function policy
function Policies.checkpoint(settings) end

---@class moongrid.SparesPer
---@field per string a level of the machine, "node"
---@field count? integer spares in each domain of this level, 1 or more (1)

---@class moongrid.LostSettings
---@field keep? string[] families without which the trainer can go on: the answer about their groups is "keep"
---@field shrink? string[] families whose groups go on without the lost ranks: the answer about them is "shrink"
---@field least? integer "shrink" only if at least this number of ranks of the group, or of the job, is left; 1 or more (1)
---@field job? "replace"|"shrink"|"stop" the answer about the job; by default "replace" if there are enough spares, else
---"shrink" if `least` ranks are left, else "stop"
---@field params? table<string, any> for a job that shrinks: the parameters that change, { dp = 3 }
---@field majority? boolean the job goes on only if more than half of its ranks are left, or exactly half of them, with rank
---0. So if a network failure separates the ranks, only one side goes on (false)

---Choose what happens after ranks are lost. With q.family the question is about the group over which a call failed: the
---answer is "keep" (go on without the group), "shrink" or "stop". Without q.family it is about the job: the answer is
---"replace" (spares take the places), "shrink", "stop", or { how = "shrink", params = { ... } }. Arguments: q.family;
---q.ranks, the number of ranks of the group or job; q.lost, the number of lost ranks (1). About the job also: q.spares,
---the number of spares that are left (0); q.which, a list of the lost ranks, ascending; q.places, the number of lost
---ranks that were not spares (q.lost). A policy of your own also gets q.missing, the bytes of tensors whose last copy
---is lost. Only the remaining ranks call this policy, so do not declare it agreed.
---@param settings? moongrid.LostSettings
---@return function policy
function Policies.on_lost(settings) end

policies = Policies ---@type moongrid.Policies

---Functions that make bundled steps, for the field `step` of a recipe. A setting names the family with a role in the
---step, or is a list of names, of which the first in the plan counts; false means no family. In parentheses: the
---default.
---@class moongrid.Steps
local Steps = {}

---@class moongrid.TransformerSettings
---@field tp? string|string[]|false tensor parallelism ("tp")
---@field pp? string|string[]|false pipeline parallelism ("pp")
---@field dp? string|string[]|false the ranks over which gradients are summed ({ "dp_cp", "dp" })
---@field cp? string|string[]|false context parallelism ("cp")
---@field ep? string|string[]|false expert parallelism ("ep")
---@field expert_dp? string|string[]|false the ranks over which gradients of experts are summed ({ "expt_dp", "expert_data" })
---@field expert_tp? string|string[]|false tensor parallelism of experts ("expt_tp"); if the plan has no such family, its size is that of `tp`
---@field tp_ep? string|string[]|false tensor and expert parallelism of experts together ("tp_ep")
---@field tp_cp? string|string[]|false the ranks that sum the router's counts for aux_loss ("tp_cp")
---@field tp_dp_cp? string|string[]|false the ranks that sum the counts for expert_bias ("tp_dp_cp")
---@field embeddings? string|string[]|false the stages that share a tied embedding ("embd")
---@field model? string|string[]|false the ranks that sum the norm of gradients ("mp")
---@field expert_model? string|string[]|false the same for the gradients of experts ("tp_ep_pp")
---@field optimizer? string|string[]|false the same with the distributed optimizer, for all gradients ("intra_dist_opt")
---@field shards? string|string[]|false the ranks of an instance of the distributed optimizer ("intra_dp_cp")
---@field expert_shards? string|string[]|false the same for experts ("intra_expt_dp")
---@field instances? string|string[]|false the ranks that have the same shard in all instances ("inter_dist_opt")
---@field world? string|string[]|false all ranks, for overlap_p2p with two stages, and for multi-token prediction with cp ("default_pg")
---@field [string] any the default of a parameter of the step

---@class moongrid.PicotronSettings
---@field tp? string|string[]|false tensor parallelism ("tp")
---@field pp? string|string[]|false pipeline parallelism ("pp")
---@field cp? string|string[]|false context parallelism ("cp")
---@field dp? string|string[]|false data parallelism ("dp")
---@field cp_dp? string|string[]|false the ranks over which gradients are summed ("cp_dp")
---@field world? string|string[]|false all ranks, for messages between stages ("world_group")
---@field [string] any the default of a parameter of the step

---@class moongrid.Fsdp2Settings
---@field tp? string|string[]|false tensor parallelism ("tp")
---@field cp? string|string[]|false context parallelism ("cp")
---@field pp? string|string[]|false pipeline parallelism, which the step refuses if the group has several ranks ("pp")
---@field ep? string|string[]|false expert parallelism, likewise refused ("ep")
---@field shard? string|string[]|false the ranks that shard weights ("fsdp")
---@field whole? string|string[]|false takes the place of `shard` if the plan has neither this family nor replicas ("loss")
---@field dp_shard? string|string[]|false takes the place of `shard` if the plan does not have this family, but has replicas ("dp_shard")
---@field replicate? string|string[]|false the replicas ("dp_replicate")
---@field [string] any the default of a parameter of the step

---Return one training step of Megatron-core. The parameters of the step (layers, hidden, ...) become parameters of the
---recipe: `moongrid recipes megatron` lists them, src/step/README.md explains them.
---@param settings? moongrid.TransformerSettings
---@return fun(s: moongrid.Step, p: table<string, any>) step
function Steps.transformer(settings) end

---Return one training step of picotron. The parameters of the step become parameters of the recipe.
---@param settings? moongrid.PicotronSettings
---@return fun(s: moongrid.Step, p: table<string, any>) step
function Steps.picotron(settings) end

---Return one training step of a Llama under torch's FSDP2. The parameters of the step become parameters of the recipe.
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
---communicator in sequence, whatever their streams. `group.launch_order` follows the order of the names. The first
---family of a list that has communicators gets `high_priority`, unless a family of the list has this option already. A
---family that is in no list still shares communicators with a listed family of equal groups and options. Raises for an
---unknown name, for a name that is twice in a list, for a list of one name, and for an order that contradicts an
---earlier list. The field `concurrent` of a recipe does the same after `build`; call this function in `build` if the
---lists depend on parameters.
---@param topology moongrid.Topology
---@param names string[]|string[][] one list, or several
function concurrent(topology, names) end

---The same as `print(string.format(format, ...))`. In a recipe both write to the log of the host (`mgrid_hooks`), never
---to stdout, and put the file and line before each text. The command writes the log to stderr, in a job only that of
---rank 0. While the host plans, asks a query or calls a policy, at most 1000 texts are written, each cut at 800 bytes.
---@param format string
---@param ... any
function log(format, ...) end
