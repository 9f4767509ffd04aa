-- SPDX-License-Identifier: MIT
--
-- A model of the time to create communicators by MPI: a creation is three small all-reduces over some ranks and some
-- local work; the ways differ in the number of creations and in their ranks. Used by scripts/lab/model, and by the part
-- `simulated` of scripts/lab/bench, which compares the messages of the model with simulated ones.

local mg = require "moongrid"

-- Constants: all are printed.
local mpi = {
  rounds = 3,       -- allreduces of one creation (Open MPI 4.1: id MAX, check MIN, activate)
  latency = 2e-6,   -- a small message between two nodes
  locally = 7e-6,   -- object and choice of collectives (measured with 2 ranks, Open MPI 4.1.4)
  bandwidth = 10e9, -- bytes per second into a rank, for the allgather of a split
  sort = 2e-9,      -- per rank and comparison, for the sort of a split
}

local function log2(n)
  local steps = 0
  while 1 << steps < n do steps = steps + 1 end
  return steps
end

-- Return the number of levels of the tree, with 16 children for each node, by which members meet before a creation
-- (src/comm/mpi/communicators.c).
local function levels(n)
  local deep, reached, row = 0, 1, 1
  while reached < n do deep, row, reached = deep + 1, 16 * row, reached + 16 * row end
  return deep
end

local layouts = {
  facts = function(world) return mg.load "scripts/lab/bench.d/facts.lua":plan(world) end,
  megatron = function(world)
    local small = world <= 64
    return mg.load "megatron":plan(world, small and { tp = 2, cp = 2, pp = 2, ep = 2, etp = 2 }
      or { tp = 8, cp = 2, pp = 8, ep = 8, etp = 1 })
  end,
}

-- Return the sizes of the groups of one rank: of all families, and of the families that share with no earlier one
-- (led); and the number of groups in the world.
local function creations(layout, world)
  local plan = layouts[layout](world)
  local families, led, groups = {}, {}, 0
  for _, name in ipairs(plan.families) do
    local f = plan:family(name)
    families[#families + 1] = f.size
    groups = groups + f.count
    if f.size > 1 and not plan:shares(name) then led[#led + 1] = f.size end
  end
  return { families = families, led = led, groups = groups }
end

-- Return the number of communicators that one rank gets, and of message steps in which it takes part. A rank that is
-- not a member of a group takes part in the rounds over the world, but makes nothing.
local function steps(way, c, world)
  local n, hops = 0, 0
  local function creation(size, extra)
    n = n + (extra ~= "rounds" and 1 or 0)
    if extra == "rounds" or not extra then extra = 0 end
    hops = hops + 2 * mpi.rounds * log2(size) + extra
  end
  if way == "ours" or way == "best" then
    for _, size in ipairs(c.led) do
      creation(size)
      if way == "ours" then hops = hops + 2 * levels(size) end
    end
    if way == "ours" then
      creation(world)                   -- the duplicate of the host's communicator
      hops = hops + 3 * 2 * log2(world) -- did the backend open, is it one plan, did all succeed
    end
  elseif way == "group" then
    for _, size in ipairs(c.families) do creation(size) end
  elseif way == "split" then
    for _ = 1, #c.families do creation(world, log2(world)) end
  elseif way == "world" then
    for i = 1, c.groups do creation(world, i > #c.families and "rounds" or 0) end
  else
    return nil
  end
  return n, hops
end

-- Return the seconds that a rank's messages take.
local function messages(way, c, world)
  local n, hops = steps(way, c, world)
  return hops * mpi.latency + (way == "split" and n * 8 * world / mpi.bandwidth or 0)
end

-- Return the seconds that all creations take on a rank.
local function time(way, c, world)
  local n = steps(way, c, world)
  local sorting = way == "split" and n * world * log2(world) * mpi.sort or 0
  return messages(way, c, world) + n * mpi.locally + sorting
end

return { constants = mpi, creations = creations, steps = steps, messages = messages, time = time }
