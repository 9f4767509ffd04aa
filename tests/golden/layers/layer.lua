-- SPDX-License-Identifier: MIT
--
-- Helpers for the layers in this folder: errors at the position of the caller, checks of arguments.
-- Messages show no address, which would differ between ranks.

local mg = require "moongrid"

local M = {}

local FOLDER = debug.getinfo(1, "S").source:match("^(.*)layer%.lua$")

---Raise a formatted message with the position of the first caller outside this folder.
function M.refuse(...)
  local level, caller = 2, debug.getinfo(2, "Sl")
  while caller and (caller.source:sub(1, #FOLDER) == FOLDER or caller.currentline <= 0) do
    level, caller = level + 1, debug.getinfo(level + 1, "Sl")
  end
  error(string.format(...), level)
end

-- Return moongrid's error message without positions inside this folder and advice for recipes.
local function refusal(value)
  return (tostring(value):gsub("^[^\n]-:%d+: ", ""):gsub(", since [^;%s]+", ""):gsub(", or assign nil first$", ""))
end

---Call moongrid; if it refuses, raise the refusal at the position of the caller.
function M.attempt(what, fn, ...)
  local said = table.pack(pcall(fn, ...))
  if not said[1] then M.refuse("%s: %s", what, refusal(said[2])) end
  return table.unpack(said, 2, said.n)
end

---Add to a topology, which must not have the name. If refused, the message ends with the hint.
function M.add(topology, name, value, hint)
  for known in pairs(topology) do -- moongrid would take the same family, with other options
    if known == name then M.refuse("%s: '%s' is in the topology already; name yours otherwise", hint, name) end
  end
  local ok, said = pcall(function() topology[name] = value end)
  if ok then return end
  said = refusal(said)
  M.refuse("%s: %s", said:find("'" .. name .. "'", 1, true) == 1 and hint or "topology", said)
end

---Return a value as messages show it.
function M.shown(value) return (tostring(value):gsub(":? %(?0x%x+%)?$", "")) end

---Return a value as text, identical for equal values.
function M.text(value)
  if type(value) ~= "table" then return M.shown(value) end
  local fields = {}
  for key, field in pairs(value) do fields[#fields + 1] = M.shown(key) .. " = " .. M.text(field) end
  table.sort(fields)
  return "{" .. table.concat(fields, ", ") .. "}"
end

-- Return World, Topology, State, ... for moongrid's values, Lua's type for others.
local function kind_of(value) return type(value) == "userdata" and tostring(value):match "^%a+" or type(value) end

---Refuse an argument of another kind.
function M.check(what, value, kind, takes)
  if kind_of(value) ~= kind then M.refuse("%s is %s; it takes %s", what, kind_of(value), takes) end
end

---Return a copy of a list.
function M.list(what, value, takes)
  M.check(what, value, "table", takes or "a list")
  return table.move(value, 1, #value, 1, {})
end

---Refuse a value that is not a size of a dim or axis.
function M.check_size(size, owner)
  if math.type(size) ~= "integer" or size < 1 then
    M.refuse("size %s of %s is not a size; sizes are integers of 1 or more", M.shown(size), owner)
  end
end

function M.check_rank(rank)
  if math.type(rank) ~= "integer" then M.refuse("rank is %s; say which rank of the world asks", M.shown(rank)) end
end

---Return a World from a World or a number of ranks.
function M.world_of(world)
  if math.type(world) == "integer" then return M.attempt("world", mg.world, world) end
  if kind_of(world) ~= "World" then
    M.refuse("world is %s; it is a World or the number of ranks", math.type(world) and world or kind_of(world))
  end
  return world
end

local BACKENDS = { gloo = "mpi", mpi = "mpi", nccl = "nccl" }

---Return the backend for one of torch's names; nil for nil.
function M.backend_of(name)
  if name and not BACKENDS[name] then
    M.refuse("backend '%s' is not known; there are nccl, gloo and mpi", M.shown(name))
  end
  return BACKENDS[name]
end

---Return a new topology of a world, or `into`; and a function that adds to it under a prefix.
function M.topology(world, into, prefix)
  into, prefix = into or mg.topology(world), prefix or ""
  M.check("into", into, "Topology", "a topology")
  M.check("prefix", prefix, "string", "a string")
  return into, function(name, value) M.add(into, prefix .. name, value, "choose another prefix") end
end

---Close a state, if one is given.
function M.close(state)
  if not state then return end
  M.check("state", state, "State", "a state")
  state:close()
end

return M
