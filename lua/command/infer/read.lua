-- SPDX-License-Identifier: MIT
--
-- read(words) -> groups: each { family = its name or "", ranks = ... }, with `world` if the files say it. A file has
-- lists, or lists by the name of a family; or it is what moongrid plan --json prints, a dump of torch's flight
-- recorder, or a log of NCCL_DEBUG=INFO, of which the largest communicator tells which rank of the world a GPU is.

local files = require "command.blame.files"
local host = require "host"
local mg = require "moongrid"
local nccl = require "command.blame.nccl"
local pickle = require "command.blame.pickle"
local recorder = require "command.blame.recorder"
local sorted = require "command.base.sorted"
local text = require "command.base.text"

local MEMBERS <const>, WORLD <const> = 1 << 21, 1 << 20
local LISTS <const> = "a list of groups expected, as [ [0, 1], [2, 3] ]"

local function refuse(where, ...) text.refuse(1, "%s: %s", where, string.format(...)) end

-- Add a group; `where` is its path, for messages.
local function add(all, family, ranks, where)
  local seen = {}
  if type(ranks) ~= "table" or #ranks == 0 then refuse(where, "a list of ranks expected, as [0, 1]") end
  for i, rank in ipairs(ranks) do
    local at = ("%s[%d]"):format(where, i - 1)
    if math.type(rank) ~= "integer" or rank < 0 or rank >= WORLD then
      local what = type(rank) == "table" and "a list" or tostring(rank)
      refuse(at, "a rank from 0 to %d expected, not %s", WORLD - 1, what)
    end
    if seen[rank] then refuse(at, "rank %d is in the group twice", rank) end
    seen[rank] = true
  end
  all.members = all.members + #ranks
  if all.members > MEMBERS then refuse(where, "the groups have more than %d ranks in all", MEMBERS) end
  all[#all + 1] = { family = family, ranks = ranks }
end

local function add_lists(all, family, groups, where)
  if type(groups) ~= "table" or #groups == 0 then refuse(where, LISTS) end
  for i, ranks in ipairs(groups) do add(all, family, ranks, ("%s[%d]"):format(where, i - 1)) end
end

-- Each rank's dump has the groups that this rank is in.
local function add_recorder(all, config, where)
  local before = #all
  for name, group in sorted(recorder.groups(config)) do
    local desc = type(group.desc) == "string" and group.desc ~= "undefined" and group.desc or ""
    add(all, desc, group.ranks, ("%s: pg_config.%.60s"):format(where, name))
  end
  if #all > before then return end
  refuse(where, "the dump tells no groups: Gloo writes only the group that was made last; NCCL writes all")
end

local function add_pickle(all, given, where)
  local done, top = pcall(pickle, given, function(dict) return dict.record_id and true or nil end)
  if not done then refuse(where, "%s", type(top) == "table" and top[1] or "it is damaged") end
  add_recorder(all, type(top) == "table" and top.pg_config, where)
end

local function add_comms(all, logs, where)
  local world, members_of = nccl.world(logs)
  local before = #all
  if not world then
    refuse(where, "no groups: neither JSON, as [ [0, 1], [2, 3] ], nor communicators with their ids, as logs of "
           .. "NCCL_DEBUG=INFO have them from NCCL 2.16 on")
  end
  all.world = math.max(all.world or 0, world)
  for id, comm in sorted(logs.comms) do
    local ranks = members_of(comm)
    if ranks then add(all, "", ranks, "communicator " .. id) else all.partial = (all.partial or 0) + 1 end
  end
  if #all > before then return end
  refuse(where, "no communicator has lines of all of its ranks; the logs of all ranks together do")
end

local function add_plan(all, plan)
  all.world = math.max(all.world or 0, plan.world)
  for _, family in ipairs(plan.families) do
    for group, ranks in plan:family(family):groups() do add(all, family, ranks, ("%s[%d]"):format(family, group)) end
  end
end

local function add_json(all, name, given, value)
  if type(value) ~= "table" or #value > 0 then return add_lists(all, "", value, "groups") end
  if value.pg_config then return add_recorder(all, value.pg_config, name) end
  if value.moongrid and value.rules then return add_plan(all, mg.saved(name, given)) end
  for family, groups in sorted(value) do add_lists(all, family, groups, ("%.60s"):format(family)) end
  if #all == 0 then refuse(name, LISTS) end
end

return function(words)
  local all, logs, log = { members = 0 }, nccl.new(), nil
  for _, file in ipairs(files(words)) do
    local name, given = file.path, file.text
    local is_json, value = host.json(given)
    if is_json then
      add_json(all, name, given, value)
    elseif given:byte() == 0x80 then
      add_pickle(all, given, name)
    elseif given:find "^%s*[%[{]" and not given:find(" NCCL ", 1, true) then
      refuse(name, "it starts as JSON does, and is none")
    else
      log = name
      nccl.read(logs, given)
    end
  end
  if log then add_comms(all, logs, log) end
  return all
end
