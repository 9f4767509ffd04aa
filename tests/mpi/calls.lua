-- SPDX-License-Identifier: MIT
--
-- calls.lua NAME KIND DEADLINE FOLDER: as calls.c, for the calls of Lua that wait for other ranks.
-- scripts/lint.d/waits.lua compares the names in the table with the annotations.

local moongrid = require "moongrid"
local name, kind, deadline, folder = arg[1], arg[2], tonumber(arg[3]), arg[4]

local job = assert(moongrid.mpi { timeout = deadline, on_deadline = "abort" })
local me = job.rank

local function say(text)
  io.stdout:write(text, "\n")
  io.stdout:flush()
end

local function need(ok, message, status)
  if ok ~= nil and ok ~= false then return ok, message, status end
  say(("told %d %d %s"):format(me, status or 0, message))
  job:close()
  os.exit(0)
end

local path = ("%s/recipe.%d.lua"):format(folder, me)
local file = assert(io.open(path, "w"))
file:write [[return recipe { params = { tp = 2 }, build = function(world, p)
  local g = grid(world, "tp-dp", { tp = p.tp, dp = fill }) local t = topology(world) t.grid = g
  t.tp, t.dp, t.all, t.late = g "tp", g "dp", g { "tp", "dp" }, g "tp":with { lazy = true, unique = true }
  t.w = tensor { axes = { { "r", 512 }, { "c", 512 } }, type = "f32", cut = { r = "tp", c = "dp" } } return t end,
policy = { of_all = function() return 1 end, of_group = function() return 2 end },
agreed = { of_all = "world", of_group = "dp" },
step = function(s) s:loop(20, function() s:all_reduce(s.tp, 8) s:all_reduce(s.dp, 4000)
  s:sendrecv(s.dp, s.dp:next(true), s.dp:prev(true), 64) s:compute { seconds = 0.01 } end) end }]]
file:close()
local recipe = moongrid.load(path)
local plan, other = recipe:plan(job.world), recipe:plan(job.world, { tp = 1 })
local state = need(job:materialize(plan, "train"))

local function over(use)
  local n = 512
  local buffers = {}
  for family in pairs { tp = 1, dp = 1, all = 1 } do
    local g = state[family]
    buffers[family] = { need(g:buffer(n * g.size)), need(g:buffer(n)), need(g:buffer(n * g.size)) }
  end
  return function()
    for _, family in ipairs { "tp", "dp", "all", "dp" } do need(use(state[family], table.unpack(buffers[family]))) end
  end
end

local calls = {
  ["Job:materialize"] = function() need(job:materialize(plan, "more")):close() end,
  ["Job:barrier"] = function() need(job:barrier()) end,
  ["Job:settle"] = function() need(job:settle(true)) end,
  ["Job:agree"] = function() need(job:agree("try this plan", plan)) end,
  ["moongrid.auto"] = function() need(moongrid.auto { carrier = job }):close() end,
  ["MachineModel:meets"] = function() need(moongrid.open_machine "gpu:*":meets(job)) end,
  ["Job:machine"] = function() need(job:machine()) end,
  ["Job:broadcast"] = function() need(job:broadcast("a seed", 1)) end,
  ["Job:close"] = function() need(moongrid.mpi { timeout = deadline, on_deadline = "abort" }):close() end,
  ["moongrid.mpi"] = function() need(moongrid.mpi { timeout = deadline, on_deadline = "abort" }):close() end,
  ["State:step"] = function() need(state:step()) end,
  ["State:run_step"] = function() need(state:run_step { timeout = deadline, compute = "sleep" }) end,
  ["State:settle"] = function() need(state:settle()) end,
  ["State:least"] = function() need(state:least(me)) end,
  ["State:prove"] = function() need(state:prove()) end,
  ["State:create"] = function()
    local more = need(job:materialize(plan, "more"))
    need(more:create "late")
    more:close()
  end,
  ["State:close"] = function() need(job:materialize(other, "more")):close() end,
  ["Recipe:call"] = function()
    need(recipe:call(state, "of_all"))
    need(recipe:call(state, "of_group"))
  end,
  ["Move:prove"] = function() need(moongrid.move(plan, other, { rank = me }):prove(job)) end,
  ["Group:allreduce"] = over(function(g, all) return g:allreduce(all) end),
  ["Group:broadcast"] = over(function(g, all) return g:broadcast(all, 0) end),
  ["Group:allgather"] = over(function(g, all, mine) return g:allgather(mine, all) end),
  ["Group:reduce_scatter"] = over(function(g, all, mine) return g:reduce_scatter(all, mine) end),
  ["Group:all_to_all"] = over(function(g, all, _, into) return g:all_to_all(all, into) end),
  ["Group:sendrecv"] = over(function(g, all, _, into)
    return g:sendrecv(all, (g.position + 1) % g.size, into, (g.position - 1) % g.size)
  end),
  ["Group:barrier"] = over(function(g) return g:barrier() end),
}

local function begin()
  local began = assert(io.open(("%s/begun.%d"):format(folder, me), "w"))
  began:close()
end

-- Return whether to go on, the same on all ranks: if a rank only pauses, for some seconds after that.
local since
local function goes_on()
  local hit = kind == "pause" and io.open(folder .. "/hit")
  if hit then
    hit:close()
    since = since or os.time()
  end
  return kind ~= "pause" or need(job:broadcast(since and os.time() > since + deadline and "ends" or "goes")) == "goes"
end

need(job:barrier())
begin()
repeat calls[name]() until not goes_on()
state:close()
job:close()
