-- SPDX-License-Identifier: MIT
--
-- moongrid doctor: what works on this machine, and why the rest does not.

local host = require "host"
local json = require "command.base.json"
local line = require "command.base.line"
local mg = require "moongrid"
local recipe = require "command.base.recipe"
local text = require "command.base.text"

local has_ras = rawget(mg, "ras") ~= nil

local function examine()
  local parts = mg.probe()
  local function add(name, works, words) parts[#parts + 1] = { name = name, works = works, text = words } end
  add("launcher", text.launcher ~= nil, text.launcher and ("rank %d of %d"):format(text.rank, text.ranks)
      or "none: start with mpirun to run on several ranks")
  local enough, limits = host.limits(true)
  add("limits", enough, limits == "" and "none" or limits)
  return parts
end

-- Of a job with NCCL. Every process of a launcher would ask the same one: only the first does.
local function ask_ras(of)
  if (of.recipe == nil) ~= (of.world == nil) then
    text.usage "doctor --ras needs a recipe together with --world N, the ranks of the job, or neither"
  end
  local address, plan = os.getenv "NCCL_RAS_ADDR", of.recipe and recipe.plan(of)
  if text.rank ~= 0 then return end
  address = (address or "") ~= "" and address or "localhost:28028"
  local list, told = mg.ras(address, plan or nil)
  if not list then
    return text.put("NCCL before 2.28.7 tells text alone, in which no communicator can be told from another:\n", told)
  end
  if of.json then return json.put(list) end
  local waiting = 0
  for _, one in ipairs(list) do waiting = waiting + (one.finding ~= "" and 1 or 0) end
  text.printf("NCCL %s at %s: %d communicators, of which %d wait\n", told, host.shown(address), #list, waiting)
  for _, one in ipairs(list) do
    local groups = one.groups ~= "" and one.groups or of.recipe and "of no family" or "-"
    text.printf("%-18s %-16s %4d ranks  %s\n", one.hash, groups, one.size,
                one.finding ~= "" and one.finding or "nobody waits")
  end
end

local function run(of)
  if of.ras then return ask_ras(of) end
  if of.recipe or of.world or #of.args > 0 then text.usage "doctor takes a recipe and --world only with --ras" end
  local parts, all = examine(), {}
  if text.rank ~= 0 then return end
  for _, part in ipairs(parts) do
    local words = host.shown(part.text)
    all[part.name] = { works = part.works, text = words }
    if not of.json then text.printf("%-10s %-4s %s\n", part.name, part.works and "yes" or "no", words) end
  end
  if of.json then json.put(all) end
end

local options = { { "json", help = "as JSON" } }
if has_ras then
  options[2] = { "ras", help = "of a job with NCCL that runs on this machine: its communicators, and who waits for "
                 .. "whom, as NCCL's RAS knows it (at localhost:28028, or where NCCL_RAS_ADDR says). With the job's "
                 .. "recipe and number of ranks they have the names of families; start it as the user of the job" }
  options[3] = line.world "the number of ranks of the job"
end

return {
  name = "doctor",
  place = 190,
  takes = has_ras and "[--ras [RECIPE --world N]]" or "",
  summary = "what works on this machine",
  usage = "moongrid doctor [--json]"
    .. (has_ras and "\n       moongrid doctor --ras [RECIPE --world N] [NAME=VALUE ...] [--json]" or ""),
  about = "Report what works here: planning, the backends, the launcher, and whether the limits on memory, threads\n"
    .. "and open files (ulimit, cgroup) are enough for this job's ranks.",
  example = "moongrid doctor --json",
  recipe = has_ras,
  options = options,
  run = run,
}
