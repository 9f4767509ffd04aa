-- SPDX-License-Identifier: MIT
--
-- read(words): read the groups in files. Return a list of { family = its name or "", ranks = ... }, whose field `least`
-- is the least number of ranks of the world. A file has lists of ranks, or lists by the name of a family; or it is the
-- output of moongrid plan --json, a dump of torch's flight recorder, or a log of NCCL_DEBUG=INFO. In a log the largest
-- communicator gives the rank of each GPU.

local files = require "command.blame.files"
local host = require "host"
local mg = require "moongrid"
local nccl = require "command.blame.nccl_log"
local recorder = require "command.blame.recorder"
local sorted = require "command.base.sorted"
local text = require "command.base.text"

local WORLD <const> = 1 << 20

local function refuse(where, ...) text.refuse(1, "%s: %s", where, string.format(...)) end

-- Add the groups of a family: lists of ranks, or a Family. `where` names their source in messages.
local function add(all, name, groups, where)
  if type(groups) ~= "userdata" then
    local lists = type(groups) == "table" and #groups > 0
    if not lists then refuse(where, "a list of groups expected, as [ [0, 1], [2, 3] ]") end
    local done, made = pcall(all.ranks.table, all.ranks, groups, "cover")
    if not done then refuse(where, "%s", made) end
    groups = made
  end
  for _, ranks in groups:groups() do
    all[#all + 1] = { family = name, ranks = ranks }
    for _, rank in ipairs(ranks) do all.least = math.max(all.least, rank + 1) end
  end
end

-- Add the groups in the dump of one rank, which lists the groups of this rank.
local function add_dump(all, given, where)
  local before, done, dump = #all, pcall(recorder.read, given)
  if not done then refuse(where, "%s", type(dump) == "table" and dump[1] or "it is damaged") end
  for name, group in sorted(dump.groups) do
    local desc = type(group.desc) == "string" and group.desc ~= "undefined" and group.desc or ""
    add(all, desc, { group.ranks }, ("%s: pg_config.%.60s"):format(where, name))
  end
  if #all > before then return end
  refuse(where, "the dump has no groups: gloo writes only the group that was made last; NCCL writes all")
end

local function add_logs(all, logs, where)
  local before, world, groups, partial = #all, nccl.groups(logs)
  if not world then
    refuse(where, "no groups: neither JSON, as [ [0, 1], [2, 3] ], nor communicators with their ids, as logs of "
           .. "NCCL_DEBUG=INFO have them from NCCL 2.16 on")
  end
  all.least, all.partial = math.max(all.least, world), partial
  for id, ranks in sorted(groups) do add(all, "", { ranks }, "communicator " .. id) end
  if #all > before then return end
  refuse(where, "no communicator has lines of all of its ranks; give the logs of all ranks")
end

local function add_json(all, value, given, where)
  if type(value) ~= "table" or #value > 0 then
    add(all, "", value, where)
  elseif value.moongrid and value.rules then
    local plan = mg.saved(where, given)
    all.least = math.max(all.least, plan.world)
    for _, name in ipairs(plan.families) do add(all, name, plan:family(name), name) end
  else
    for name, groups in sorted(value) do add(all, name, groups, ("%s: %.60s"):format(where, name)) end
    if #all == 0 then add(all, "", value, where) end -- refuses an object without fields
  end
end

return function(words)
  local all, logs, log = { least = 1, partial = 0, ranks = mg.world(WORLD) }, nccl.new(), nil
  for _, file in ipairs(files(words)) do
    local is_json, value = host.json(file.text)
    if file.text:byte() == 0x80 or is_json and type(value) == "table" and value.pg_config then
      add_dump(all, file.text, file.path)
    elseif is_json then
      add_json(all, value, file.text, file.path)
    elseif file.text:find "^%s*[%[{]" and not file.text:find(" NCCL ", 1, true) then
      refuse(file.path, "it begins like JSON, but is not one whole value, as [ [0, 1], [2, 3] ]")
    else
      log = file.path
      nccl.read(logs, file.text)
    end
  end
  if log then add_logs(all, logs, log) end
  return all
end
