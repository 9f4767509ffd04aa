-- A user's script for lua_host.c, which passes a job over its own communicator. The script returns a plan and a state.
local mg = require "moongrid"
local job = ...
local world = mg.world(job.world)
local g = mg.grid(world, "tp-dp", { tp = 2, dp = mg.fill })
local t = mg.topology(world)
t.grid = g
t.tp = g "tp"
t.dp = g "dp"
local plan = mg.plan(t)
return plan, assert(job:materialize(plan, "script"))
