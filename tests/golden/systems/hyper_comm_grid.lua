-- SPDX-License-Identifier: MIT
--
-- The recorded operations through layers/hyper_comm_grid.lua; groups are read from the plan of
-- what they leave in the topology.

local mg = require "moongrid"
local adapter = require "adapter"
local HyperCommGrid = require "layers.hyper_comm_grid"

-- Read the plan before its groups are forgotten, and at the end.
local function look(job)
  job.plan = mg.plan(job.grid:topology())
  job.plan:rehearse()
end

local calls = {}

function calls.create_pg(job, op, kind)
  job.grid:create_pg(op.dims, { view = op.view })
  job.names[kind] = job.grid:name(op.dims, { view = op.view })
end

function calls.get_pg(job, op, kind)
  assert(job.grid:get_pg(op.dims, { view = op.view }) == job.grid:family(op.dims, { view = op.view }))
  job.names["get:" .. kind] = job.grid:name(op.dims, { view = op.view })
end

function calls.get_rank_enum(job, op, kind)
  job.listed["get_rank_enum:" .. kind] = job.grid:get_rank_enum(op.dims, { view = op.view })
end

function calls.register_view(job, op) job.grid:register_view(op.name, op.shape, op.dim_names, op.shared_dims) end

function calls.destroy(job)
  look(job)
  job.grid:destroy()
  assert(#job.grid:topology() == 0, "destroy left groups in the topology")
end

local function ask(job, column, rank)
  if column == "is_current_rank_in_grid" then return job.grid:is_current_rank_in_grid(rank) end
  assert(column == "destroyed", "unknown column")
  return job.plan:dry(rank).ngroups
end

-- To create groups again is harmless here; see deviations.json.
local function again(op, message)
  return op.call == "create_pg" and message:find("has already been created", 1, true) ~= nil
end

local function open(case)
  local a = case.args
  local names = {} -- recorded kind -> family
  local job = adapter.job({ kinds = names, ask = ask }, { names = names })
  job.grid = HyperCommGrid.new(case.world, a.shape, a.dim_names, a.rank_offset, a.backend)
  adapter.perform(a.ops, case.lists or {}, function(op)
    local dims = type(op.dims) == "table" and table.concat(op.dims, "-") or op.dims
    calls[op.call](job, op, (op.view and op.view .. ":" or "") .. (dims or ""))
  end, again)
  job.listed.refused = (case.lists or {}).refused -- performed so
  if not job.plan then look(job) end
  return job
end

return { open = open }
