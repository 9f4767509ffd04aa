-- SPDX-License-Identifier: MIT
--
-- moongrid run: create a recipe's communicators on the ranks that a launcher started, and prove each of them.

local host = require "host"
local jobs = require "command.base.job"
local line = require "command.base.line"
local mg = require "moongrid"
local overview = require "command.base.overview"
local recipe = require "command.base.line_recipe"
local text = require "command.base.text"

local TIMED_OUT, DIFFERS, USAGE = 403, 100, 200
local DEVICES, GPUS = 64, 1024 -- most ranks of a node; numbers of GPUs are below 1024

local need, plural = jobs.need, text.plural

-- Return a value that calls a function when it is closed.
local function finally(f) return setmetatable({}, { __close = f }) end

-- Print ------------------------------------------------------------------------------

local function rehearse(of)
  local loaded = not line.is_saved(of) and recipe.load(of) or nil
  if loaded and not of.world then
    text.refuse(2, "--backend dry needs --world N, the number of ranks to play")
  end
  local plan = recipe.plan(of, loaded)
  host.progress(("rehearsing %d ranks"):format(plan.world))
  local communicators, memberships = plan:rehearse()
  host.progress()
  overview.notes(plan)
  overview.show(plan, of.json)
  if of.json then return end
  text.printf("\nrehearsed      %d rank%s went through %d creation%s of %d communicator%s; no rank waits forever\n",
              plan.world, plural(plan.world), memberships, plural(memberships), communicators, plural(communicators))
end

local function tell(of, job, plan)
  local world, backend = job.world, jobs.backends[job.backend]
  local all, _, held = world == 1 and "" or "all ", plan:rehearse()
  overview.show(plan, of.json)
  if not of.json and not backend.makes then
    text.printf("\nagreed         %s%d rank%s the same plan; %s makes no communicators\n", all, world,
                world == 1 and " has" or "s have", backend.name)
  elseif not of.json then
    text.printf("\nproved         every communicator on %s%d rank%s (%d membership%s, %s): members and\n"
                .. "               order, sum, broadcast from every position, ring%s\n", all, world, plural(world),
                held, plural(held), backend.name, backend.exchanges and ", all-to-all" or "")
  end
  io.stdout:flush()
end

-- Print an error that all ranks have. Rank 0 prints it; the others do so if rank 0 is missing. Ranks reach a deadline
-- at different times, and the launcher ends all ranks when the first one ends; so the others pause, to let rank 0
-- print.
local function say(message, status)
  local alone = status == TIMED_OUT and jobs.missing and jobs.missing.ranks[1] == 0
  text.say(message, alone)
  if status == TIMED_OUT and not alone and text.rank ~= 0 then host.pause(0.5) end
end

-- Plan -------------------------------------------------------------------------------

-- Return the result of a function, or nil, its error and the status. The error must not end this rank at once, because
-- other ranks wait for this rank.
local function attempt(f, ...)
  local done, result = pcall(f, ...)
  if done then return result end
  return nil, result, jobs.status(result)
end

-- Load the recipe of a side before the job starts. Return { loaded } or { nil, message, status }; for a saved plan
-- `loaded` is true.
local function load(of) return { attempt(function() return line.is_saved(of) or recipe.load(of) end) } end

-- Return the plan of a side, for the world of the side or of the job; or nil, a message and its status.
local function plan_of(of, side, world)
  if not side[1] then return nil, side[2], side[3] end
  of.world = of.world or world
  return attempt(recipe.plan, of, side[1] ~= true and side[1] or nil)
end

local function other_world(of, world)
  if text.launcher then
    return ("--world %d was asked for, the launcher started %d rank%s"):format(of.world, world, plural(world))
  end
  return ("--world %d was asked for, and this is one rank; mpirun -n %d moongrid run starts as many, --backend dry "
          .. "rehearses them"):format(of.world, of.world)
end

-- Return the name of the first call over all ranks. It contains the options that must be equal on all ranks.
local function call_of(of)
  local words = "run"
  for _, option in ipairs(line.options(of.command)) do
    local value = option.agreed and of.given[option[1]]
    if value then words = words .. " --" .. option[1] .. (value == true and "" or " " .. value) end
  end
  return words
end

-- Print a note if the job differs from --machine. (If the plan has read the machine, a difference is refused when the
-- state is made; otherwise only figures depend on it, such as multicast slots.)
local function compare_machine(of, job, plan)
  if type(of.machine) ~= "userdata" or plan.laws then return end
  local alike, message, status = of.machine:meets(job)
  if status == DIFFERS then text.note("%s", message) else need(alike, message, status) end
end

-- GPUs -------------------------------------------------------------------------------

-- Return the GPUs in the recipe's parameter `devices`, or nil.
local function devices_of(plan)
  for _, param in ipairs(plan.params) do
    local list = {}
    for word in (param.name == "devices" and param.value:match "^%[?([^%]]*)" or ""):gmatch "[^,]+" do
      local n = math.tointeger(tonumber(word))
      if not n or #list == DEVICES then
        text.refuse(1, "parameter 'devices' is a list of GPUs, not '%s'", param.value)
      end
      list[#list + 1] = n
    end
    if list[1] then return list end
  end
end

local function devices(name, list, all)
  all = all or {}
  for word in (list .. ","):gmatch "([^,]*)," do
    local n = word:find "^%s*[+-]?%d+$" and math.tointeger(tonumber(word))
    if not n or n < 0 or n >= GPUS or #all == DEVICES then
      text.usage("%s is a list of GPUs, one for each rank of a node, as 0,1,2,3; not '%s'", name, list)
    end
    all[#all + 1] = n
  end
  return all
end

-- Return the backend of --backend. For a backend of GPUs, whose messages go over the backend of `job`, also return a
-- value that closes the backend of GPUs when the value itself is closed.
local function choose(of, job, plan)
  local list, wanted = of.devices or devices_of(plan), jobs.backends[of.backend]
  if of.backend ~= "auto" and not wanted.carried then return job end
  local budget = of["gpu-memory"] and of["gpu-memory"] << 20
  local chosen = need(mg[of.backend] { carrier = job, device = list, share_gpu = of["share-gpu"], timeout = of.timeout,
                                       budget = budget })
  host.guard(chosen)
  return chosen, finally(function()
    host.guard(job)
    chosen:close()
  end)
end

-- Run --------------------------------------------------------------------------------

local function materialize(of, job, chosen, plan)
  local carried = chosen.backend ~= job.backend
  host.progress(("creating and proving the communicators of %d ranks"):format(job.world))
  local state <close> = need(chosen:materialize(plan, "run"))
  need(state:prove())
  host.progress()
  overview.unheeded(plan, chosen.backend)
  overview.notes(plan)
  local function tell_first()
    if job.rank == 0 and not (of.steps and of.json) then tell(of, chosen, plan) end
  end
  -- if rank 0 cannot print, all ranks must know before they measure
  if of.bandwidth or of.steps then jobs.settle(chosen, tell_first) else tell_first() end
  if of.bandwidth then require "command.run.bandwidth"(state, chosen, carried) end
  if of.steps then require "command.run.step"(of, plan, state, chosen, carried) end
end

local function prove_plan(of, job, side)
  local plan, message, status
  if of.world and of.world ~= job.world then
    message, status = other_world(of, job.world), USAGE
  else
    plan, message, status = plan_of(of, side, job.world)
  end
  need(job:agree(call_of(of), plan, message, status))
  compare_machine(of, job, plan)
  local chosen, back <close> = choose(of, job, plan) -- luacheck: ignore
  materialize(of, job, chosen, plan)
end

-- Move tensors from the layout of the plan of one side to the layout of the other side.
local function prove_move(of, other, job, side, other_side)
  local to
  local from, message, status = plan_of(of, side, job.world)
  if from then to, message, status = plan_of(other, other_side, job.world) end
  need(job:barrier(call_of(of)))
  need(job:settle(to, message, status))
  local chosen, back <close> = choose(of, job, from) -- luacheck: ignore
  require "command.run.move"(of, chosen, from, to, job.machine_ranks)
end

local function run_on_ranks(of, other)
  local wanted = jobs.backends[of.backend]
  local first = wanted and not wanted.carried and of.backend or of.carrier or jobs.names "carries"[1]
  local side, other_side = load(of), other and load(other)
  local enough, low = host.limits(false)
  if not enough then
    io.stderr:write(("moongrid: [rank %d/%d] note: %s\n"):format(text.rank, text.ranks, low))
  end
  local job = jobs.open(first, of.timeout)
  local done, raised = pcall(function()
    if other then prove_move(of, other, job, side, other_side) else prove_plan(of, job, side) end
    if jobs.backends[first].makes then need(job:barrier "the end of the job") end
  end)
  local status = done and 0 or jobs.status(raised)
  host.guard()
  -- Print now, not after MPI_Finalize, because the launcher kills all ranks when the first exits with an error.
  if not done then say(raised, status) end
  jobs.close(job, of.timeout)
  return status // 100
end

local function list_of(ability)
  local names = jobs.names(ability)
  local last = table.remove(names)
  return #names == 0 and last or table.concat(names, ", ") .. " or " .. last
end

local function check(of, other)
  local mode = of.move and "move" or of.steps and "steps"
  local wanted = of.backend ~= "auto" and (jobs.backends[of.backend] or {})
  if not other then line.needs(of, true) end
  if of.move and not other then
    text.usage "--move needs two sides with 'vs' between: moongrid run A vs B --move"
  elseif other and mode == "steps" then
    text.usage "--steps takes one recipe"
  elseif other and not of.move then
    text.usage "run takes two recipes to --move tensors from one to the other"
  elseif of.move and (of.json or of.bandwidth) then
    text.usage "--move takes no --json and no --bandwidth"
  elseif mode and wanted and not wanted.makes then
    text.usage("--%s needs a backend that moves data: %s, not %s", mode, list_of "makes", of.backend)
  elseif of.bandwidth and wanted and not wanted.makes then
    text.usage("--bandwidth needs a backend that makes communicators: %s, not %s", list_of "makes", of.backend)
  elseif of.carrier and wanted and not wanted.carried then
    text.usage("--carrier %s is for %s; --backend %s has none", of.carrier, list_of "carried", of.backend)
  elseif mode == "steps" and line.is_saved(of) then
    text.usage "--steps needs the recipe: a saved plan has no step"
  end
end

local function run(of, other)
  of.backend = of.backend or "auto"
  of.given.backend = of.backend
  check(of, other)
  if of.backend == "dry" then return rehearse(of) end
  local code = run_on_ranks(of, other)
  if not text.launcher and code <= 1 then -- a failed backend has its own message
    text.note "this is one rank, because no launcher started it: mpirun -n N moongrid run ..."
  end
  return code
end

-- Options ----------------------------------------------------------------------------

local function scale(name, word)
  local x = word:find "^[%d.eE+-]+$" and tonumber(word)
  if x and x > 0 and x < math.huge then return x + 0.0 end
  text.usage("%s is a number above 0, as 0.01, not '%s'", name, word)
end

local function backends()
  local names = jobs.names()
  table.insert(names, 1, "auto")
  names[#names + 1] = "dry"
  return names
end

local options = {
  line.world "refuse to run on another number of ranks; with two sides: the ranks of that side, which may be fewer",
  { "backend", nil, values = backends, agreed = true,
    help = "auto: a backend of GPUs if every rank has its own GPU, else MPI. With a backend that only carries "
           .. "messages (--carrier) the ranks agree on the plan and create nothing. dry: no launcher; one process "
           .. "plays every rank of --world N and checks that the creation schedule is consistent" },
  { "carrier", nil, values = function() return jobs.names "carries" end, agreed = true,
    help = "what carries the messages of a backend of GPUs: MPI, or a launcher without MPI (prterun, srun --mpi=pmix). "
           .. "--backend auto without GPUs uses it as the backend" },
  { "timeout", "S", line.number, agreed = true,
    help = "seconds that a call over all ranks may take; default: " .. jobs.timeout .. "; with GPUs also a creation, "
           .. "unless its family has a timeout; with two sides: seconds without progress after which a rank gives up" },
  { "json", help = "print the plan as JSON when all is proved" },
  { "print", "rank0|all|none", help = "ranks that print what the recipe prints, on stderr; default: rank0" },
  { "bandwidth", agreed = true,
    help = "also measure all-reduce, all-gather, reduce-scatter and all-to-all of every family" },
}
local general = #options
local usages = { "mpirun -n N moongrid run RECIPE [NAME=VALUE ...] [--backend B] [--world N] [--json]" }

local function add(usage, more)
  usages[#usages + 1] = usage
  table.move(more, 1, #more, #options + 1, options)
end

if rawget(mg, "move") then
  add("mpirun -n N moongrid run A [NAME=VALUE ...] vs [B] [NAME=VALUE ...] --move [--tensor T] [--window MIB]", {
    { "move", agreed = true,
      help = "move the tensors of A to the layout of B (see moongrid move), with a number in each element that "
             .. "identifies it, and prove every element where it arrives; a rank receives from its own node what a "
             .. "rank of this node holds, if all nodes have the same number of ranks, in order" },
    { "tensor", "T", help = "only this tensor", head = "with --move" },
    { "map", "RANKS", help = "for each rank of B its number before the move, as 8..15,0..7" },
    { "convert", help = "tensors may be f32 on one side and bf16 on the other; they are sent as bf16" },
    { "rounds", help = "in rounds: a rank sends one message at a time and receives one" },
    { "window", "MIB", line.number, help = "memory for packing on a rank; default: 64" },
  })
end
if recipe.field(mg.plan(mg.topology(mg.world(1))), "step") then
  table.insert(options, general + 1, {
    "steps", "N", line.number, agreed = true,
    help = "then execute the step of the recipe that many times, over MPI or on streams of GPUs: every call with its "
           .. "bytes; and compare planned with measured values, by family (moongrid step)" })
  add("mpirun -n N moongrid run RECIPE [NAME=VALUE ...] --steps N [--scale X] [--compute sleep|gemm] [--unproved]", {
    { "scale", "X", scale, agreed = true, head = "with --steps",
      help = "multiply the bytes and the compute of a step by X; default: 1" },
    { "compute", "sleep|gemm", agreed = true,
      help = "spend the time of computes: asleep (their seconds, and their flops at 100 TFLOP/s), or by multiplying "
             .. "matrices; default: none is spent" },
    { "output", "FILE.json", letter = true, agreed = true,
      help = "write what each rank did in the last step, in the trace event format of Chrome" },
    { "unproved", agreed = true,
      help = "execute even a step that is not proved and may wait forever: each call has a deadline, --timeout" },
  })
end
table.move({
  { "devices", "0,1,...", devices, head = "with GPUs",
    help = "the GPU of each rank of a node (or the recipe's parameter `devices`); default: rank i of a node has "
           .. "GPU i" },
  { "share-gpu", agreed = true, help = "let several ranks use one GPU; slow, for tests" },
  { "gpu-memory", "MIB", line.number, agreed = true,
    help = "refuse a plan whose communicators would need more on a GPU" },
}, 1, 3, #options + 1, options)

return {
  name = "run",
  place = 30,
  takes = "RECIPE [NAME=VALUE ...]",
  summary = "create and prove a recipe's communicators, under mpirun",
  usage = table.concat(usages, "\n       "),
  about = "Create the recipe's communicators on the ranks of the launcher, prove each of them by\n"
    .. "collectives (members and order, a sum, a broadcast from every position, a ring, with MPI\n"
    .. "an all-to-all), and destroy them. Rank 0 prints.",
  example = "mpirun -n 8 moongrid run megatron tp=2 pp=2",
  recipe = true,
  sides = rawget(mg, "move") ~= nil,
  launched = true,
  options = options,
  run = run,
}
