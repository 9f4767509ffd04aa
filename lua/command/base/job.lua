-- SPDX-License-Identifier: MIT
--
-- job: the job of the ranks of a launcher. A rank that waits for ever in its start or end, or that the launcher ends,
-- says so (src/command/guard.c).

local host = require "host"
local mg = require "moongrid"
local text = require "command.base.text"

local M = {}

-- What mg.options tells of each backend, in a list and by name.
M.backends = select(3, mg.options())
for i = 1, #M.backends do M.backends[M.backends[i].name] = M.backends[i] end

M.timeout = M.backends[1].timeout -- seconds that a call over all ranks may take, by default

-- Their names: of all, or of those that have this ability.
function M.names(ability)
  local names = {}
  for _, b in ipairs(M.backends) do
    if not ability or b[ability] then names[#names + 1] = b.name end
  end
  return names
end

-- Join it by a backend, the usual one if none is named. Each rank says why it cannot.
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

-- Leave it, when what it was for is done, or has failed and been said.
function M.close(job, timeout)
  host.guard()
  host.alarm((timeout or M.timeout) + 0.75, "the job has not ended") -- if nobody has said who is missing
  job:close()
  host.alarm()
end

-- Return what a call over all ranks has returned, or raise what it has. M.missing: ranks that did not come, if known.
function M.need(result, ...)
  if result then return result, ... end
  local message, status
  message, status, M.missing = ...
  host.refuse(status, message)
end

-- Call a function that works for this rank alone. The others learn what it raises, and all raise it.
function M.settle(job, f, ...)
  local done, result = pcall(f, ...)
  M.need(job:settle(done, result, M.status(result)))
  return result
end

-- Return the status of what was raised.
function M.status(raised) return mg.status(raised) or raised == "not enough memory" and 300 or 100 end

return M
