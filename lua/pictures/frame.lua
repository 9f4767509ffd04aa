-- SPDX-License-Identifier: MIT
--
-- frame: the data of a plan for the page, as tables that page.js reads as JSON: families, grids, steps of creation, and
-- where ranks are drawn.

local drawing = require "pictures.drawing"
local reports = require "pictures.reports"
local sheets = require "pictures.sheet"
local words = require "pictures.words"

-- The groups of a family without modes are listed if they have at most LISTED members in all. If the page draws at most
-- N ranks, this limit is 16 x N.
local LISTED = 1 << 18
local EACH = 1 << 16 -- in larger worlds do not ask each rank what it creates
local SEATS = 1 << 20 -- ask of at most so many ranks on which node they are

-- Return the groups of a family: its modes; or without modes the lists of its ranks, if these have at most `listed`
-- members in all.
local function groups_of(family, listed)
  local modes, lists = family:modes(), nil
  if not modes and family.count * family.largest <= listed then
    lists = {}
    for group = 0, family.count - 1 do lists[group + 1] = family:ranks(group) end
  end
  return { modes = modes, groups = lists, count = family.count, largest = family.largest, even = family.size ~= nil }
end

local function families_of(d, listed)
  local all = {}
  for i, entry in ipairs(d.entries) do
    all[i] = groups_of(entry.family, listed)
    all[i].name, all[i].same, all[i].shares = entry.name, entry.same, entry.shares
    if entry.same then all[i].groups = nil end -- the page takes the groups of the family `same`
  end
  return all
end

local function grids_of(plan)
  local all = {}
  for i, name in ipairs(plan.grids) do
    local grid, names = plan:grid(name), {}
    for k, dim in ipairs(grid:dims()) do names[k] = dim[1] end
    all[i] = { name = name, dims = grid:dims(), line = groups_of(grid:along(table.unpack(names)), LISTED) }
  end
  return all
end

-- Return the steps in which communicators are created, in order: { family, count, groups }. `groups` lists the groups
-- of the step if the family has more than these. In a world of more than EACH ranks a family has only one step, without
-- `groups`.
local function steps_of(plan)
  local steps, at, partial = {}, {}, false
  for line in plan:schedule():gmatch "[^\n]+" do
    local family, round, count = line:match "^%s*%d+%s+(%S+)%s+round (%d+): (%d+) communicator"
    if not family then family, count = line:match "^%s*%d+%s+(%S+)%s+(%d+) communicator" end
    if family and at[family] and plan.world > EACH then
      at[family].count = at[family].count + tonumber(count)
    elseif family then
      local step = { family = family, count = tonumber(count) }
      steps[#steps + 1], at[family], at[family .. " " .. (round or 0)] = step, step, step
      if step.count < plan:family(family).count and plan.world <= EACH then step.groups, partial = {}, true end
    end
  end
  local seen = {}
  for rank = 0, partial and plan.world - 1 or -1 do
    for _, made in ipairs(plan:creates(rank)) do
      local step = at[made.family .. " " .. made.round]
      local key = made.family .. " " .. made.group
      if step.groups and not seen[key] then seen[key], step.groups[#step.groups + 1] = true, made.group end
    end
  end
  return steps
end

-- Return the sheets on which ranks are drawn, the number of each family's sheet, and for the page's notes two texts or
-- nil: which ranks are drawn, and what the names of dims mean.
local function sheets_of(d, most)
  local all, of = sheets.make(d, most)
  if d.machine and all[1].parts[1].size ~= d.world then -- the page cannot draw a place without a rank
    d.machine = nil
    all, of = sheets.make(d, most)
  end
  local drawn, sheet_of, sampled = {}, {}, nil
  for i, sheet in ipairs(all) do
    drawn[i] = { parts = {} }
    for k, part in ipairs(sheet.parts) do
      local levels = {}
      for l, level in ipairs(part.levels) do
        local coords = {}
        for c = 0, level.shown - 1 do coords[c + 1] = sheets.label(level, c) end
        levels[l] = { level.name, (level.shown < level.size or level.base > 0) and coords or level.size }
      end
      drawn[i].parts[k] = { name = part.name, levels = levels, ranks = part.ranks }
    end
    if sheet.sampled and not sampled then
      sampled = ("%d of %d ranks are drawn: %s."):format(sheet.cells, d.world, sheets.sampled_text(sheet))
    end
  end
  for i, entry in ipairs(d.entries) do sheet_of[i] = of[entry.name].number end
  return drawn, sheet_of, sampled, sheets.dims_text(all)
end

-- Return how many consecutive ranks each node has; 0: nodes or levels differ, or ranks are not in the order of nodes.
-- Without a machine it is what the parameter gpus_per_node says, or 8.
local function node_size(plan, machine)
  if not machine then
    for _, param in ipairs(plan.params) do
      if param.name == "gpus_per_node" then return math.tointeger(tonumber(param.value)) or 8 end
    end
    return 8
  end
  for _, level in ipairs(machine:levels()) do
    if not level.regular and not level.crossing then return 0 end
  end
  local size = machine:node_size()
  for rank = 0, math.min(plan.world, SEATS) - 1 do
    local _, node = machine:seat(rank)
    if node ~= rank // size then return 0 end
  end
  return size
end

-- Return the frame of a plan. Without `machine` (nil), ranks are not drawn where they run. A sheet shows at most `most`
-- ranks; nil: the limits of sheet.lua.
return function(plan, machine, most)
  local d = drawing(plan, { machine = machine })
  local drawn, sheet_of, sampled, dims = sheets_of(d, most)
  local counts = plan:counts()
  return {
    plan = { world = plan.world, digest = plan.digest, communicators = counts.communicators, groups = counts.groups,
             machine = node_size(plan, machine or reports.machine(plan)),
             families = families_of(d, most and 16 * most or LISTED), grids = grids_of(plan) },
    given = words.given(plan), steps = steps_of(plan), sheets = drawn, sheet_of = sheet_of, sampled = sampled,
    dims = dims,
  }
end
