-- SPDX-License-Identifier: MIT
--
-- slurm_job.lua - read the environment of a Slurm job: lines of `srun env` or `srun --label env`, or the environment of
-- this process. The variables (https://slurm.schedmd.com/srun.html, output environment variables) are
-- SLURM_JOB_NODELIST or SLURM_NODELIST, SLURM_TASKS_PER_NODE, and for each task SLURM_TOPOLOGY_ADDR (the switches above
-- its node from the top, then the node) and SLURM_TOPOLOGY_ADDR_PATTERN. All other variables are skipped.
--
-- The tasks of a node are its places, unless words after the file's name give levels.

local file, given = ...
local t = file.run "tree" "switch"

local once = { SLURM_JOB_NODELIST = "list", SLURM_NODELIST = "list", SLURM_TASKS_PER_NODE = "tasks" }
local read, line_of = {}, {}

-- Read "s0.s4.tux1": switches from the top, then the node.
local function address(value, where)
  local above
  for part, ends in value:gmatch "([^.]*)(%.?)" do
    if part == "" then
      if not above or ends ~= "" then file.fault(where, "SLURM_TOPOLOGY_ADDR= has an empty part") end
      return
    end
    local i = t:node(ends == "." and "switch" or "host", part, where)
    if above then t:below(i, above, where) end
    above = i
    if ends == "" then return end
  end
end

for where, line in file.lines() do
  local name, value = line:match "^%s*([%w_]+)=(.*)$"
  if not name then name, value = line:match "^%s*%d+:%s*([%w_]+)=(.*)$" end
  if name == "SLURM_TOPOLOGY_ADDR" then
    address(value, where)
  elseif name == "SLURM_TOPOLOGY_ADDR_PATTERN" then
    if value:find "^block" then t.above = "block" end
  elseif once[name] then
    name = once[name]
    if read[name] and read[name] ~= value then
      file.fault(where, "'%.60s' differs from line %d: the lines are of several jobs", value, line_of[name])
    end
    read[name], line_of[name] = value, line_of[name] or where
  end
end

if read.list and t.n == 0 then
  t:names(read.list, line_of.list, function(name) t:add(name, line_of.list) end)
elseif read.list then
  t:order(read.list, line_of.list, "the list of nodes") -- refuses nodes without an address
end

-- SLURM_TASKS_PER_NODE has the numbers of tasks of the nodes, in the order of the list: "8(x4),2".
if read.tasks and read.list and not given.levels then
  local hosts, n = t.chosen or t.hosts, 0
  for word in (read.tasks .. ","):gmatch "([^,]*)," do
    local count, times = word:match "^(%d+)%(x(%d+)%)$"
    count, times = t.count(count or word, line_of.tasks), tonumber(times or 1)
    if n + times > #hosts then n = -1 break end
    for i = n + 1, n + times do t.slots[hosts[i]] = count end
    n = n + times
  end
  if n ~= #hosts then
    file.fault(line_of.tasks, "SLURM_TASKS_PER_NODE of %d hosts expected, not '%.60s'", #hosts, read.tasks)
  end
end
return t
