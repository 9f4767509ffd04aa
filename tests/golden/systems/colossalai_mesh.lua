-- SPDX-License-Identifier: MIT
--
-- The recorded operations through layers/process_group_mesh.lua; groups and membership are read
-- from the plan of its topology.

local mg = require "moongrid"
local adapter = require "adapter"
local json = require "dkjson"
local ProcessGroupMesh = require "layers.process_group_mesh"

local function ask(job, column, rank)
  if column == "coordinate" then
    local coord = job.mesh:coordinate(rank)
    assert(json.encode(job.mesh.unravel(rank, job.mesh.shape)) == json.encode(coord))
    return coord
  end
  local name = job.names[column:match("^result of (.*)$")]
  return job.plan:dry(rank)[name] and "member"
end

-- Calls with what they return, the last value.
local function list(_, name, want)
  assert(name == "ravel", "unknown list")
  local calls = {}
  for i, call in ipairs(want) do
    calls[i] = { call[1], call[2], call[3], ProcessGroupMesh.ravel(call[1], call[2], call[3]) }
  end
  return calls
end

local function open(case)
  local names = {} -- recorded kind -> family
  local mesh = ProcessGroupMesh.new(case.world, case.args.size)
  local job = adapter.job({ kinds = names, ask = ask, list = list }, { names = names, mesh = mesh })
  for i, op in ipairs(case.args.ops) do
    local family = job.mesh[op.call](job.mesh, op.axis, op.indices_at_axis, op.backend)
    local args = {}
    for _, name in ipairs { "axis", "indices_at_axis", "backend" } do
      if op[name] then args[#args + 1] = name .. "=" .. json.encode(op[name]) end
    end
    job.names[("%d:%s(%s)"):format(i - 1, op.call, table.concat(args, ","))] = job.mesh:name(family)
  end
  job.plan = mg.plan(job.mesh:topology())
  job.plan:rehearse()
  return job
end

return { open = open }
