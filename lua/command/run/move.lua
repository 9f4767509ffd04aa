-- SPDX-License-Identifier: MIT
--
-- move: move the tensors of one plan to the layout of another on real ranks, and check every element.

local jobs = require "command.base.job"
local line = require "command.base.line"
local mg = require "moongrid"
local text = require "command.base.text"

-- Print "moved 2 tensors on mpi: 1.50 GiB sent, 512 MiB stayed, in 0.52 s; every element proved on all 8 ranks".
local function tell(job, move, seconds)
  local n, _, all = #move.tensors, move:sums()
  local crossing = all.crossing and (", %s between nodes"):format(text.bytes(all.crossing)) or ""
  text.printf("moved          %d tensor%s on %s: %s sent%s, %s stayed, in %.3g s; every element proved on ", n,
              text.plural(n), job.backend, text.bytes(all.sent), crossing, text.bytes(all.stay), seconds)
  text.printf("%s%d rank%s\n", job.world == 1 and "" or "all ", job.world, text.plural(job.world))
  io.stdout:flush()
end

-- `machine`: the number of ranks of a node; nil: it does not matter on which node a rank is.
return function(of, job, from, to, machine)
  local ranks = math.max(from.world, to.world)
  if ranks ~= job.world then text.refuse(1, "the move is of %d ranks, the communicator has %d", ranks, job.world) end
  local move = jobs.settle(job, function()
    return mg.move(from, to, {
      rank = job.rank, tensors = of.tensor and { of.tensor }, ranks = of.map and line.map(of.map, to.world),
      rounds = of.rounds, convert = of.convert, machine = machine,
    })
  end)
  local begun = mg.now()
  jobs.need(move:prove(job, { window = of.window and of.window << 20, timeout = of.timeout }))
  if job.rank == 0 then tell(job, move, mg.now() - begun) end
end
