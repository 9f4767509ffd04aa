-- SPDX-License-Identifier: MIT
--
-- A self-test: run every collective on every group of this rank, with values that show which ranks took
-- part. The same code runs over MPI and over NCCL:
--
--     mpirun -n 4 lua5.4 examples/self_test.lua mpi
--     mpirun -n 4 lua5.4 examples/self_test.lua nccl

local mg = require "moongrid"

local open = assert(({ mpi = mg.mpi, nccl = mg.nccl })[arg[1] or "mpi"], "self_test.lua mpi|nccl")
local job, why = open()
if not job then -- print what works on this machine
  for _, part in ipairs(mg.probe()) do io.stderr:write(("%s: %s\n"):format(part.name, part.text)) end
  error(why, 0)
end
local plan = mg.load("picotron"):plan(job.world, { tp = job.world % 2 == 0 and 2 or 1 })
assert(job:agree("self_test of picotron", plan)) -- materialize does so, too; a rank without a plan passes its error
local state = assert(job:materialize(plan, "self_test"))

-- two calls over the whole job, without a group: a broadcast of a value, then a barrier
local settings = job:broadcast(job.rank == 0 and { steps = 3, rates = { 0.5, 0.25 } } or nil)
assert(settings.steps == 3 and settings.rates[2] == 0.25, "broadcast of a value")
assert(job:barrier())

local function test(group)
  local one = group:buffer(4, "int64"):set(job.rank)
  assert(group:allreduce(one)) -- nil, message, status if it fails
  local sum = 0
  for _, rank in ipairs(group.ranks) do sum = sum + rank end
  assert(one:get(1)[1] == sum, "all-reduce")

  for position = 0, group.size - 1 do
    assert(group:broadcast(one:set(job.rank), position))
    assert(one:get()[4] == group:at(position), "broadcast")
  end

  local mine, all = group:buffer(2, "double"):set { job.rank, 0.5 }, group:buffer(2 * group.size, "double")
  assert(group:allgather(mine, all))
  local got = all:get()
  for i, rank in ipairs(group.ranks) do assert(got[2 * i - 1] == rank and got[2 * i] == 0.5, "all-gather") end

  assert(group:reduce_scatter(all, mine, "max"))
  assert(mine:get()[1] == group:at(group.position), "reduce-scatter")

  local to, from = group:buffer(group.size, "int32"), group:buffer(group.size, "int32")
  local blocks = {}
  for i in ipairs(group.ranks) do blocks[i] = 100 * job.rank + i end
  assert(group:all_to_all(to:set(blocks), from))
  for i, value in ipairs(from:get()) do
    assert(value == 100 * group:at(i - 1) + group.position + 1, "all-to-all")
  end

  local into = group:buffer(4, "int64")
  assert(group:sendrecv(one:set(job.rank), (group.position + 1) % group.size, into, (group.position - 1) % group.size))
  assert(into:get()[1] == group:prev "wrap", "ring")
  assert(group:barrier())
end

for _, family in ipairs(plan.families) do assert(state:create(family)) end -- lazy families

local last = job.world - 1
for _, group in pairs(state) do -- a buffer lies in the memory of its group's backend; all ranks have these groups
  local own = group:buffer(3, "float"):set(job.rank)
  assert(job:broadcast(own, last) == own and own:get()[3] == last, "broadcast of a buffer")
end

local groups, begun = 0, mg.now()
for _, group in pairs(state) do -- in the order of the plan, which is identical on all ranks
  if group then
    test(group)
    groups = groups + 1
  end
end
assert(job:settle(mg.now() - begun < 60, "this rank took a minute")) -- an error of one rank is raised on all ranks
if job.rank == 0 then print(("%s: %d ranks, %d groups of rank 0 tested"):format(job.backend, job.world, groups)) end
state:close()
job:close()
