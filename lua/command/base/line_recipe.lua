-- SPDX-License-Identifier: MIT
--
-- line_recipe: load the recipe of a line, and plan it.

local host = require "host"
local line = require "command.base.line"
local mg = require "moongrid"
local reports = require "pictures.reports"
local sorted = require "command.base.sorted"
local text = require "command.base.text"

local M = {}

-- Return a function that writes to stderr what a recipe prints, on the ranks of `which`, the value of --print. It
-- writes equal lines once, because a recipe may be evaluated again for another world, and nothing while M.quiet is set.
local said = {}
local function printer(which)
  return function(message)
    if M.quiet or said[message] or which == "none" or text.rank ~= 0 and which ~= "all" then return end
    said[message] = true
    io.stderr:write(which == "all" and text.ranks > 1 and ("rank %d: "):format(text.rank) or "", host.shown(message),
                    "\n")
  end
end

-- Return the end of the message that refuses a recipe: that `path` is a folder; or the bundled recipe whose name with
-- ".lua" is `path`, the file `path`.lua, or the Lua file with the nearest name in the same folder; else "".
local function nearest_file(path)
  local folder, name = path:match "^(.-)([^/]*)$"
  if host.kind(path) == "folder" then return ("; %s is a folder, a recipe is a file"):format(path) end
  if host.kind(path) then return "" end
  for _, bundled in ipairs(mg.recipes()) do
    if path == bundled .. ".lua" then return ("; the bundled recipe is '%s'"):format(bundled) end
  end
  local known = {}
  for _, other in ipairs(host.folder(folder == "" and "." or folder) or {}) do
    if other:find ".%.lua$" then known[#known + 1] = other end
  end
  table.sort(known)
  local near = host.kind(path .. ".lua") and name .. ".lua" or select(2, host.nearest(name, known))
  return near and ("; nearest is '%s%s'"):format(folder, near) or ""
end

-- Load the recipe of a line for the machine of the line. `options` are those of mg.load.
function M.load(of, options)
  if line.is_saved(of) then
    text.refuse(1, "%s is a saved plan, which has no queries and policies; %s needs the recipe", of.recipe,
                of.command.name)
  end
  local name = of.recipe
  options = options or {}
  options.log = printer(of.print)
  if line.from_stdin(of) then
    options.text, name = options.text or line.stdin(), "stdin"
    if #options.text > 1 << 20 then text.refuse(1, "cannot read standard input: it has more than %d bytes", 1 << 20) end
  end
  local done, loaded = pcall(mg.load, name, options)
  if not done then
    local refused = mg.status(loaded) == 101 or mg.status(loaded) == 100 -- no such name, no such file
    local open = refused and not line.from_stdin(of) and not loaded:find("; nearest is", 1, true)
    local near = open and nearest_file(name) or ""
    if near == "" then error(loaded, 0) end
    text.refuse(1, "%s%s", loaded, near)
  end
  if type(of.machine) == "userdata" then loaded:on(of.machine) end
  return loaded
end

-- Return the message that refuses a saved plan in another world than its own.
function M.other_world(of, plan, world)
  return ("%s is a saved plan of %d ranks, not of %d"):format(of.recipe, plan.world, world)
end

local function read_saved(of)
  if #of.args > 0 or of.params then
    text.refuse(2, "%s is a saved plan; it takes no parameters and options of families", of.recipe)
  end
  local plan
  if line.from_stdin(of) then plan = mg.saved("stdin", line.stdin()) else plan = mg.saved(of.recipe) end
  if of.world and of.world ~= plan.world then text.refuse(2, "%s", M.other_world(of, plan, of.world)) end
  return plan
end

-- Plan a recipe. An error lists further errors of the recipe that do not depend on the first.
local function planned(of, loaded, world)
  local done, plan = pcall(loaded.plan, loaded, world, of.args, of.params)
  if done then return plan end
  local status = mg.status(plan)
  if not status or status // 100 ~= 1 then error(plan, 0) end
  local function again(changed, arguments)
    return (changed and M.load(of, { text = changed }) or loaded):plan(world, arguments, of.params)
  end
  local function named(alias)
    local one = M.declared(loaded:info().params, alias)
    return one and one.name or alias
  end
  local path = line.from_stdin(of) and "stdin" or of.recipe
  M.quiet = true -- the repeated evaluations print nothing
  local message = require "command.base.faults".all(plan, path, of.args, named, again)
  M.quiet = false
  host.refuse(status, message)
end

-- Return the plan of a line, and its recipe unless the line names a saved plan. `loaded` is the recipe if it is loaded
-- already; `world` replaces the world of the line.
function M.plan(of, loaded, world)
  loaded = loaded or not line.is_saved(of) and M.load(of) or nil
  local plan = loaded and planned(of, loaded, world or of.world) or read_saved(of)
  if type(of.machine) == "userdata" then of.machine:fits(plan.world) end
  return plan, loaded
end

-- Return a field of a plan that a module adds, or nil if this build does not have the module.
function M.field(plan, name)
  local done, value = pcall(function() return plan[name] end)
  return done and value or nil
end

-- Return whether the plan has a step; without the module for steps, false.
function M.has_step(plan)
  local has_step = M.field(plan, "has_step")
  return has_step ~= nil and has_step(plan)
end

-- Return the machine of --machine, or the machine that the recipe of the plan has read, or nil.
function M.machine(of, plan)
  return type(of.machine) == "userdata" and of.machine or reports.machine(plan)
end

-- Return the machine of the line, and refuse a line without a machine.
function M.required_machine(of, plan)
  local machine = M.machine(of, plan)
  if machine then return machine end
  text.refuse(2, '%s needs a machine: --machine "node:4 gpu:8", a preset as dgx-h100, or a file; or machine = in the '
              .. "recipe", of.command.name)
end

-- Refuse an option for the price of a step (nil: none was given), because there is no machine.
function M.unpriced(option)
  if not option then return end
  text.refuse(2, "--%s needs a machine: --machine dgx-h100, or levels, as 'node:*[50GB/s] gpu:8[300GB/s]'", option)
end

-- Return the number of ranks of a node of the machine, or nil if it is not known.
function M.node_size(of, plan)
  local machine = M.machine(of, plan)
  return machine and machine:node_size() or of.machine
end

-- Return the element of a recipe's declarations that has this name or alias, or nil.
function M.declared(list, name)
  for _, one in ipairs(list) do
    if one.name == name then return one end
    for _, alias in ipairs(one.aliases or {}) do
      if alias == name then return one end
    end
  end
end

-- Return a copy of a table of parameters by name, in which one has another value, or is removed if `value` is nil.
function M.with(params, name, value)
  local copy = {}
  for key, other in sorted(params) do copy[key] = other end
  copy[name] = value
  return copy
end

-- Return the dims in an order "tp-dp-pp" or in a JSON list of names; nil if the text is neither, or has only one dim.
function M.dims_of(order)
  local dims = {}
  for dim in (order or ""):gsub('[%[%]"]', ""):gsub(",", "-"):gmatch "[^-]+" do
    if not dim:find "^[%a_][%w_]*$" then return nil end
    dims[#dims + 1] = dim
  end
  return #dims > 1 and dims or nil
end

-- Return the names of the families in a list "F,G", each once.
function M.families(plan, list)
  local names, seen = {}, {}
  for name in list:gmatch "[^,]+" do
    plan:family(name) -- raises if it is unknown
    if not seen[name] then names[#names + 1] = name end
    seen[name] = true
  end
  if #names == 0 then text.refuse(2, "--family is a list of families, F,G; not '%s'", list) end
  return names
end

-- Print the notes of a plan on stderr, each after a prefix such as "before: ".
function M.note(plan, prefix)
  local notes, shown = plan.notes, 8
  for i = 1, math.min(#notes, shown) do text.note("%s%s", prefix, notes[i]) end
  if #notes > shown then text.note("%s%d more such cuts; --json lists all", prefix, #notes - shown) end
end

return M
