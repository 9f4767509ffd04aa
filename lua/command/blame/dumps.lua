-- SPDX-License-Identifier: MIT
--
-- dumps: put the dumps of all ranks together in a table `job`: the ranks with their calls, and the groups with their
-- members and the names of the recipe's families.
--
--   job.ranks[rank]    { rank, path, at, json, calls, whole, states }; job.list: these ranks in order
--   job.listed         the groups that each dump lists, { name, desc, ranks }
--   job.groups[key]    { key, name, desc, ranks, seen, open, family, index, kind, title, label, position };
--                      position[rank] is the position of a member
--   job.order          the groups in the order of their keys

local host = require "host"
local recorder = require "command.blame.recorder"
local sorted = require "command.base.sorted"
local text = require "command.base.text"

local HOUR = 3600

local M = {}

-- Return the rank at the end of a dump's name, which torch writes nowhere else. No rank: return nil or false.
local function rank_of(path)
  local n = path:gsub("%.%a+$", ""):match "(%d+)$"
  return n and #n < 10 and math.tointeger(tonumber(n))
end

-- Add the dump in a file; return false if the file is not a dump.
function M.add(job, file)
  local done, dump = pcall(recorder.read, file.text)
  if done and not dump then return false end
  local rank = rank_of(file.path)
  if not done then
    if type(dump) ~= "table" then dump = { "it is damaged" } end
    if dump.code or not rank then text.refuse(1, "%s: %s", file.path, dump[1]) end
    job.bad[#job.bad + 1] = ("%s is left out: %s"):format(file.path, dump[1])
    dump = { whole = false, calls = {}, groups = {}, states = true }
  end
  if not rank then text.refuse(1, "%s: the name of a dump ends in its rank, as nccl_trace_rank_3", file.path) end
  local was, json = job.ranks[rank], file.text:byte() ~= 0x80
  if was and was.json == json then
    text.refuse(1, "two dumps have a name that ends in rank %d, %s and %s: give the dumps of one job, taken at one "
                .. "time", rank, was.path, file.path)
  end
  if was then -- the dump is there as pickle and as JSON: keep the pickle, which has the stacks
    job.notes[("rank %d has its dump as JSON, too"):format(rank)] = true
    if json then return true end
  end
  dump.rank, dump.path, dump.at, dump.json = rank, file.path, file.at, json
  job.ranks[rank], job.any = dump, job.any or #dump.calls > 0
  return true
end

-- Return the size of a group and the differences between its ranks, as text. Without a recipe, groups with the same
-- text count as one family.
local function pattern(ranks)
  local all = {}
  for i = 2, #ranks do all[i - 1] = ranks[i] - ranks[i - 1] end
  return #ranks .. ":" .. table.concat(all, ",", 1, math.min(#all, 8))
end

-- Find the groups of all calls, and their members in --names or in the dumps; a group without known members is open,
-- and `seen` has the ranks that call in it. If two dumps give a name different members, these are two groups.
local function gather(job, names)
  local seen = {}
  for _, rank in ipairs(job.list) do
    local one, of = job.ranks[rank], {}
    for _, call in ipairs(one.calls) do
      local group = of[call.group]
      if not group then
        local said = one.groups[call.group] or {}
        local ranks = names and names[call.group] or said.ranks
        local key = call.group .. (ranks and " " .. table.concat(ranks, ",") or "")
        group = job.groups[key] or { key = key, name = call.group, desc = said.desc or call.desc, ranks = ranks }
        job.groups[key], of[call.group] = group, group
        seen[key] = seen[key] or {}
        table.insert(seen[key], rank)
      end
      call.group = group
    end
    for name, said in sorted(one.groups) do
      table.insert(job.listed, { name = name, desc = said.desc, ranks = names and names[name] or said.ranks })
    end
    one.groups = nil
  end
  local any, unknown
  for key, group in sorted(job.groups) do
    group.seen, group.open = seen[key], not group.ranks
    if names and names[group.name] then any = true else unknown = unknown or group.name end
  end
  if names and not any then
    text.refuse(1, "--names has none of the groups in which the dumps have calls, such as '%s'", host.shown(unknown))
  end
  job.named = names ~= nil
end

function M.is_world(group) return group.name == "0" or group.desc == "default_pg" end

-- What to replace in a system's name of a group to get a recipe's name of a family.
local synonyms = { { "_?group$", "" }, { "^mesh_", "" }, { "_with_", "_" }, { "tensor_model_parallel", "tp" },
                   { "pipeline_model_parallel", "pp" }, { "expert_model_parallel", "ep" }, { "model_parallel", "mp" },
                   { "context_parallel", "cp" }, { "expert_data_parallel", "expt_dp" }, { "data_parallel", "dp" } }

function M.alike(desc, family)
  desc = desc:lower()
  for _, one in ipairs(synonyms) do desc = desc:gsub(one[1], one[2]) end
  return desc == family
end

-- Return a table with the name of each dim of a plan's grids as a key.
local function dims_of(plan)
  local dims = {}
  for _, name in ipairs(plan.grids) do
    for _, dim in ipairs(plan:grid(name):dims()) do dims[dim[1]] = true end
  end
  return dims
end

-- Name a group after the family that fits it best. A family fits if it has a group with the same members, or, for an
-- open group, one with all ranks that call in the open group. It fits better if torch's description of the given group
-- means the family, or if a dim has the family's name. It fits an open group worse, the more other members the family's
-- group has, above all members with a dump. A family's group of one rank counts as one with many others.
local function name_group(job, plan, group, dims)
  local known, own, best, index, score = group.ranks or group.seen, {}, nil, nil, nil
  for _, rank in ipairs(known) do own[rank] = true end
  for _, name in ipairs(plan.families) do
    local family = plan:family(name)
    local at = known[1] < plan.world and family:locate(known[1])
    if at then
      local ranks, fits, dumped = family:ranks(at), 0, 0
      for _, rank in ipairs(ranks) do
        if own[rank] then fits = fits + 1 elseif job.ranks[rank] then dumped = dumped + 1 end
      end
      local points = (M.alike(group.desc or "", name) and 4 or 0) + (dims[name] and 2 or 0) + 1
      if group.open then points = points - (#ranks == 1 and 1 or (4 * dumped + #ranks - fits) / #ranks) end
      if fits == #known and (group.open or fits == #ranks) and (not score or points > score) then
        best, index, score = name, at, points
      end
    end
  end
  group.family, group.index = best, index
  if best and group.open then group.ranks = plan:family(best):ranks(index) end
end

-- Refuse dumps of two jobs, which give the group of all ranks two sizes. If the last calls are hours apart, add only a
-- note, because clocks may differ by hours.
local function check_job(job)
  local first, early, late
  for _, group in ipairs(job.order) do
    if group.ranks and M.is_world(group) then
      if first and #first.ranks ~= #group.ranks then
        text.refuse(1, "the dumps are of two jobs: in the dump of rank %d the job has %d ranks, in the dump of rank %d "
                    .. "it has %d", first.seen[1], #first.ranks, group.seen[1], #group.ranks)
      end
      first = first or group
    end
  end
  for _, rank in ipairs(job.list) do
    local last = job.ranks[rank].calls[#job.ranks[rank].calls]
    if last then early, late = math.min(early or last.at, last.at), math.max(late or last.at, last.at) end
  end
  if early and late - early > HOUR then
    job.apart = "the last calls of ranks are %.1f hours apart: their clocks differ, or the dumps are of two runs"
    job.notes[job.apart:format((late - early) / HOUR)] = true
  end
end

-- Return the group of a family whose members are the ranks finding.members, which logs name, or nil. Its label has the
-- family, its index, and the label of the finding.
function M.named(plan, finding)
  local group = { ranks = finding.members }
  local last = 0
  for _, rank in ipairs(finding.members) do last = math.max(last, rank) end
  if last < plan.world then name_group({ ranks = {} }, plan, group, dims_of(plan)) end
  if group.family then
    group.label = ("%s %d, %s"):format(group.family, group.index, finding.label)
    return group
  end
end

-- Fill the table `job`. plan and names may be nil.
function M.gather(job, plan, names)
  job.list, job.groups, job.order, job.listed = {}, {}, {}, {}
  local last = -1
  for rank in sorted(job.ranks) do job.list[#job.list + 1], last = rank, rank end
  gather(job, names)
  job.world = plan and plan.world
  for _, group in sorted(job.groups) do
    local ranks = group.ranks or group.seen
    for _, rank in ipairs(ranks) do last = math.max(last, rank) end
  end
  job.world = job.world or last + 1
  if last >= job.world then
    text.refuse(1, "the dumps are of %d ranks or more, the recipe of %d: give --world and the parameters of the job",
                last + 1, job.world)
  end
  for _, group in sorted(job.groups) do job.order[#job.order + 1] = group end
  check_job(job)
end

-- Name the groups after the families of a plan. Without a plan (nil), name them as torch does.
function M.name(job, plan)
  job.plan = plan
  local stray, strays, kept, dims = nil, 0, 0, plan and dims_of(plan) or {}
  for _, group in sorted(job.groups) do
    if M.is_world(group) then
      group.family, group.index = "world", 0
      group.ranks = group.ranks or {}
      if group.open then
        for rank = 0, job.world - 1 do group.ranks[rank + 1] = rank end
      end
    elseif plan then
      name_group(job, plan, group, dims)
      if group.family then kept = kept + 1 else stray, strays = stray or group, strays + 1 end
    end
    group.ranks = group.ranks or group.seen
    local desc = group.desc ~= "undefined" and group.desc
    job.guessed = job.guessed or group.open and not group.family
    group.kind = group.family or desc or pattern(group.ranks)
    group.title = group.family or desc or ("a group of %d ranks"):format(#group.ranks)
    group.label = group.family == "world" and "world" or group.family and ("%s %d"):format(group.family, group.index)
                  or ("group %s%s"):format(group.name, desc and " (" .. desc .. ")" or "")
    group.position = {}
    for i, rank in ipairs(group.ranks) do group.position[rank] = i - 1 end
  end
  if strays > kept then
    text.refuse(1, "the recipe does not fit the dumps: %s of ranks %s is in no family; give the parameters of the job",
                host.shown(stray.label), table.concat(stray.ranks, ", ", 1, math.min(#stray.ranks, 8)))
  end
  job.pipelines = dims.pp and plan:grid(plan.grids[1]).pp > 1 and plan:family "pp" or nil
  if stray then job.notes[("%s is in no family of the recipe"):format(host.shown(stray.label))] = true end
  for _, rank in ipairs(job.list) do
    for _, group in sorted(job.groups) do
      if not group.position[rank] then
        for _, one in ipairs(group.seen) do
          if one == rank then
            text.refuse(1, "rank %d calls in %s, whose members are %s: %s", rank, host.shown(group.label),
                        table.concat(group.ranks, ", ", 1, math.min(#group.ranks, 8)),
                        job.named and "--names is of another job" or "the dumps are of two jobs")
          end
        end
      end
    end
  end
end

return M
