-- SPDX-License-Identifier: MIT
--
-- job: open and close the job of the ranks that a launcher started. src/command/guard.c prints a message if a rank
-- waits forever when the job starts or ends, or if the launcher ends a rank.

local host = require "host"
local mg = require "moongrid"
local text = require "command.base.text"

local M = {}

-- The facts of mg.options about each backend, in a list and by name.
M.backends = select(3, mg.options())
for i = 1, #M.backends do M.backends[M.backends[i].name] = M.backends[i] end

M.timeout = M.backends[1].timeout -- seconds that a call over all ranks may take, by default

-- Return the names of all backends, or of those for which the fact `ability`, such as "carries", is true.
function M.names(ability)
  local names = {}
  for _, b in ipairs(M.backends) do
    if not ability or b[ability] then names[#names + 1] = b.name end
  end
  return names
end

-- Open the job over the backend `name` (nil: the default one). Each rank prints its own error.
function M.open(name, timeout)
  name, timeout = name or M.names "carries"[1], timeout or M.timeout
  host.guard "the start of the job"
  host.alarm(timeout, "the job has not started")
  local job, message, status = mg[name] { timeout = timeout, on_deadline = M.backends[name].makes and "abort" or nil }
  host.alarm()
  host.guard(job)
  if job then return job end
  text.say(message, true)
  error(status // 100, 0)
end

-- Close the job after its work is done, or has failed and the error is printed.
function M.close(job, timeout)
  host.guard()
  -- 0.75 s after the deadline of calls: an error of a call names the missing rank, so it should come first
  host.alarm((timeout or M.timeout) + 0.75, "the job has not ended")
  job:close()
  host.alarm()
end

-- Return the results of a call over all ranks, or raise its error. Then M.missing has the ranks that were missing in
-- the call, if they are known.
function M.need(result, ...)
  if result then return result, ... end
  local message, status
  message, status, M.missing = ...
  host.refuse(status, message)
end

-- Call a function that works without other ranks. If it raises an error on one rank, all ranks raise this error.
function M.settle(job, f, ...)
  local done, result = pcall(f, ...)
  M.need(job:settle(done, result, M.status(result)))
  return result
end

function M.status(raised) return mg.status(raised) or raised == "not enough memory" and 300 or 100 end

return M
