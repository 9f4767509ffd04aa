-- SPDX-License-Identifier: MIT
--
-- What the layers in this folder share: errors at the position of whoever called into them, and
-- the arguments that they all take.

local mg = require "moongrid"

local M = {}

local FOLDER = debug.getinfo(1, "S").source:match("^(.*)layer%.lua$")

---Raise a formatted message with the position of the first caller outside this folder.
function M.refuse(...)
  local level, at = 2, debug.getinfo(2, "Sl")
  while at and (at.source:sub(1, #FOLDER) == FOLDER or at.currentline <= 0) do
    level, at = level + 1, debug.getinfo(level + 1, "Sl")
  end
  error(string.format(...), level)
end

---A call of moongrid whose refusal is the caller's, not a layer's: without our positions.
function M.attempt(what, fn, ...)
  local ok, value = pcall(fn, ...)
  if not ok then M.refuse("%s: %s", what, (tostring(value):gsub("^[^\n]-:%d+: ", ""):gsub(", since %S+$", ""))) end
  return value
end

---A World from a World or a number of ranks.
function M.world_of(world)
  if type(world) == "number" then return M.attempt("world", mg.world, world) end
  if type(world) ~= "userdata" then M.refuse("world is %s; it is a World or the number of ranks", type(world)) end
  return world
end

---The backend of an option by the names that torch has.
M.BACKENDS = { gloo = "mpi", mpi = "mpi", nccl = "nccl" }

return M
