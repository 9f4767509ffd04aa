-- SPDX-License-Identifier: MIT
--
-- mpi.lua DIR: under mpirun, a sample of the recorded cases of every system whose world is the
-- launcher's: each rank checks the case against the table, then the plans become real
-- communicators and each of them is proved: its members, their order and numbering are the
-- plan's, and so the table's. TAP, from rank 0.

local adapter = require "adapter"
local cases = require "cases"
local mg = require "moongrid"

local job = assert(mg.mpi())
local SAMPLE = job.world > 8 and 2 or 4 -- cases of a system
local deviations = cases.read(arg[1] .. "/deviations.json")

-- Cases of this world that are not refused, spread evenly over the table.
local function sample(list, deviation)
  local fit, chosen = {}, {}
  for _, case in ipairs(list) do
    local refused = case.error or (deviation[case.id] or {}).expect == "refuse"
    if case.world == job.world and not refused then fit[#fit + 1] = case end
  end
  local n = math.min(SAMPLE, #fit)
  for i = 1, n do chosen[i] = fit[1 + (i - 1) * #fit // n] end
  return chosen
end

-- A configuration may ask for NCCL by name, which this job does not have.
local function on_mpi(plan) return not plan:text():find(" backend=nccl", 1, true) end

-- The members of this rank's groups, as the communicators have them.
local function prove(plan, name)
  local state, message = job:materialize(plan, name)
  if not state then return message end
  local proved
  proved, message = state:prove()
  local held = state.ncomms
  state:close()
  if not proved then return message end
  return proved ~= held and ("%d of %d communicators proved"):format(proved, held) or nil
end

local number, failed = 0, false
local function tell(problem, what)
  number = number + 1
  failed = failed or problem ~= nil
  if job.rank ~= 0 then return end
  print(("%s %d - %s on %d ranks"):format(problem and "not ok" or "ok", number, what, job.world))
  if problem then print("# " .. problem) end
end

for _, key in ipairs(cases.tables(arg[1])) do
  local system, deviation = adapter.of(key), deviations[key] or {}
  for _, case in ipairs(sample(cases.read(arg[1] .. "/" .. key .. ".json", job.world).cases, deviation)) do
    local verdict, problem, made = cases.check(system, case, deviation[case.id] or {})
    -- every rank has the same verdict, so none waits below for a rank that stopped
    for i, plan in ipairs(verdict == "pass" and (made.plans and made:plans() or { made.plan }) or {}) do
      problem = problem or on_mpi(plan) and prove(plan, ("%s/%s/%d"):format(key, case.id, i)) or nil
    end
    tell(problem, key .. " " .. case.id)
  end
end
if job.rank == 0 then print("1.." .. number) end
job:close()
os.exit(not failed)
