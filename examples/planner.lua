-- SPDX-License-Identifier: MIT
--
-- Plan a recipe as the command does, and print the plan's digest and, for each rank, its domains of the machine:
--
--     lua5.4 examples/planner.lua RECIPE WORLD MACHINE [NAME=VALUE ...]
--
-- On stderr it prints the memory that NCCL takes, the ranks in no group, and whether the step of the recipe is proved.
-- For each family it prints the rule, the first line of the recipe that made it, other families whose communicators it
-- uses, and the machine's farthest level if each group stays inside one of its domains.
-- With MOONGRID_WAS=FILE, a saved plan, it also prints the changes from that plan. RECIPE may be a saved plan, too.
-- After an error the exit code is that of the command.

local mg = require "moongrid"

local function plan(name, world, machine, parameters)
  if mg.is_saved(name) then
    local saved = mg.saved(name)
    machine:fits(saved.world)
    return saved
  end
  local recipe = mg.load(name, { lines = true, log = function(message) io.stderr:write(message, "\n") end })
  recipe:on(machine)
  return recipe:plan(world, parameters)
end

local function explain(made, name, machine)
  local lines, makers = made:lines(name) or {}, {}
  for i, leader in ipairs(made:leaders(name)) do makers[i] = ("; %s makes %d"):format(leader.family, leader.groups) end
  local level = machine:where(0)[1].level
  if made:law(("within(%s, machine.%s)"):format(name, level), machine) then makers[#makers + 1] = "; in a " .. level end
  io.stderr:write(name, ": ", (made:family(name):explain()), "  ", lines[1] or "", table.concat(makers), "\n")
end

local function main(name, world, machine, ...)
  assert(machine, "planner.lua RECIPE WORLD MACHINE [NAME=VALUE ...]")
  machine = mg.open_machine(machine)
  local made = plan(name, math.tointeger(tonumber(world)), machine, { ... })
  print(made.digest)
  local nccl = made:resources(nil, { machine_ranks = machine:node_size() })
  io.stderr:write(("%d communicators of NCCL take %d bytes of a GPU\n"):format(nccl.communicators, nccl.created))
  local idle, which = made:idle()
  if idle and idle > 0 then io.stderr:write("idle: ", which, "\n") end
  local was = os.getenv "MOONGRID_WAS"
  if was then io.stderr:write(tostring(mg.saved(was):diff(made))) end
  for _, family in ipairs(made.families) do explain(made, family, machine) end
  if made:has_step() then io.stderr:write("the step: ", made:step():prove() and "proved" or "not proved", "\n") end
  for rank = 0, made.world - 1 do
    local domains = {}
    for i, at in ipairs(machine:where(rank)) do domains[i] = at.level .. "=" .. at.domain end
    print(rank, table.concat(domains, " "))
  end
end

local done, message = pcall(main, ...)
if not done then
  io.stderr:write(message, "\n")
  os.exit((mg.status(message) or 200) // 100)
end
