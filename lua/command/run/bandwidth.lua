-- SPDX-License-Identifier: MIT
--
-- bandwidth: measure four collectives on every communicator, in the order of creation. All groups of a family run at
-- the same time, as in training.

local jobs = require "command.base.job"
local mg = require "moongrid"
local text = require "command.base.text"

local BYTES, FLOAT, WARM, TIMED = 4 << 20, 4, 2, 5
local TIMED_OUT = 403
local need = jobs.need

local CALLS = {
  function(row) return row.group:allreduce(row.all) end,
  function(row) return row.group:allgather(row.mine, row.all) end,
  function(row) return row.group:reduce_scatter(row.all, row.mine) end,
  function(row) return row.group:all_to_all(row.all, row.into) end,
}

-- Allocate the buffers of every communicator before the first collective, because the other ranks would wait in a
-- collective for a rank that fails.
local function prepare(state)
  local rows = {}
  for _, made in ipairs(state.plan:creates(state.rank)) do
    for _, group in ipairs(state:groups(made.family)) do
      local each = BYTES // FLOAT // group.size
      if group.index == made.group and group.backend ~= "" and each > 0 then
        local all = each * group.size
        rows[#rows + 1] = { group = group, bytes = all * FLOAT, all = need(group:buffer(all)),
                            mine = need(group:buffer(each)), into = need(group:buffer(all)) }
      end
    end
  end
  return rows
end

-- Return the median seconds of TIMED calls of a collective, after WARM calls that do not count.
local function seconds_of(call, row)
  local spent = {}
  for i = 1, WARM + TIMED do
    local begun = mg.now()
    need(call(row))
    spent[i - WARM] = mg.now() - begun
  end
  spent = table.move(spent, 1, TIMED, 1, {})
  table.sort(spent)
  return spent[(TIMED + 1) // 2]
end

-- Measure in GB/s per link of a ring. This is the "bus bandwidth" of nccl-tests, which can be compared between group
-- sizes.
local function measure(rows)
  for _, row in ipairs(rows) do
    local n = row.group.size
    for i, call in ipairs(CALLS) do
      local moved = (i == 1 and 2 or 1) * (n - 1) / n * row.bytes
      row[i] = moved / seconds_of(call, row) / 1e9
    end
  end
end

-- `carried`: the state's backend is opened over another one, which carries its messages.
return function(state, job, carried)
  local rows = jobs.settle(job, prepare, state)
  local done, raised = pcall(measure, rows)
  local status = jobs.status(raised)
  -- After a timeout over MPI each waiting rank knows the missing ranks; the ranks cannot agree any more.
  if done or carried or status ~= TIMED_OUT then need(job:settle(done, raised, status)) end
  if not done then error(raised, 0) end
  if job.rank == 0 then
    text.printf("\n%-24s %7s %8s %12s %12s %15s %12s   GB/s of the bus, %d MiB, rank 0's groups\n", "bandwidth",
                "ranks", "by", "all-reduce", "all-gather", "reduce-scatter", "all-to-all", BYTES >> 20)
    for _, row in ipairs(rows) do
      text.put(text.padded(row.group.name, 24))
      text.printf(" %7d %8s %12.3f %12.3f %15.3f %12.3f\n", row.group.size, row.group.backend, table.unpack(row, 1, 4))
    end
  end
  for _, row in ipairs(rows) do
    for _, name in ipairs { "all", "mine", "into" } do row[name]:close() end
  end
end
