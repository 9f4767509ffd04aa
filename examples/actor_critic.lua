-- Two models with different layouts in one job, as in reinforcement learning: each has its own
-- state. Groups of both that have the same members and options share one communicator. The
-- states are closed independently.
--
--   mpirun -n 8 lua5.4 examples/actor_critic.lua

local mg = require "moongrid"

local job = assert(mg.mpi())
local megatron = mg.load "megatron"
local layouts = { actor = { tp = 2, pp = 2 }, critic = { tp = 4 } }

local function say(...)
  if job.rank == 0 then print(string.format(...)) end
end

local states = {}
for _, name in ipairs { "actor", "critic" } do
  local plan = megatron:plan(job.world, layouts[name])
  states[name] = assert(job:materialize(plan, name))
  say("%-7s tp %d x pp %d x dp %d: %d communicators for %d groups on rank 0", name, states[name].tp.size,
    states[name].pp.size, states[name].dp.size, states[name].ncomms, states[name].ngroups)
end
say("together they hold %d communicators, %d of them shared", job.ncomms,
  states.actor.ncomms + states.critic.ncomms - job.ncomms)

states.actor:close()
local proved = assert(states.critic:prove())
say("the actor is gone; all %d communicators of the critic still work", proved)
states.critic:close()
say("%d communicators are left", job.ncomms)
job:close()
