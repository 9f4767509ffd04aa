-- SPDX-License-Identifier: MIT
--
-- moongrid doctor: print what works on this machine, and why other things do not.

local host = require "host"
local json = require "command.base.json"
local mg = require "moongrid"
local text = require "command.base.text"

local function examine()
  local parts = mg.probe()
  local function add(name, works, words) parts[#parts + 1] = { name = name, works = works, text = words } end
  add("launcher", text.launcher ~= nil, text.launcher and ("rank %d of %d"):format(text.rank, text.ranks)
      or "none: start with mpirun to run on several ranks")
  local enough, limits = host.limits(true)
  add("limits", enough, limits == "" and "none" or limits)
  return parts
end

local function run(of)
  local parts, all = examine(), {}
  if text.rank ~= 0 then return end
  for _, part in ipairs(parts) do
    local words = host.shown(part.text)
    all[part.name] = { works = part.works, text = words }
    if not of.json then text.printf("%-10s %-4s %s\n", part.name, part.works and "yes" or "no", words) end
  end
  if of.json then json.put(all) end
end

return {
  name = "doctor",
  place = 190,
  takes = "",
  summary = "what works on this machine",
  usage = "moongrid doctor [--json]",
  about = "Report what works here: planning, the backends, the launcher, and whether the limits on memory, threads\n"
    .. "and open files (ulimit, cgroup) are enough for this job's ranks.",
  example = "moongrid doctor --json",
  options = { { "json", help = "as JSON" } },
  run = run,
}
