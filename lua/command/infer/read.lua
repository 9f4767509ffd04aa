-- SPDX-License-Identifier: MIT
--
-- read(files) -> groups: each { family = its name or "", ranks = ... }, with `world` if the files say it. A file has
-- lists, or lists by the name of a family; or it is what moongrid plan --json prints, the JSON of torch's flight
-- recorder, or a log of NCCL_DEBUG=INFO, of which the largest communicator tells which rank of the world a GPU is.

local host = require "host"
local line = require "command.base.line"
local mg = require "moongrid"
local sorted = require "command.base.sorted"
local text = require "command.base.text"

local BYTES <const>, MEMBERS <const>, WORLD <const> = 1 << 24, 1 << 21, 1 << 20
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

-- Each rank's dump has the groups that this rank is in; the ranks are a list, or its text.
local function add_recorder(all, config, where)
  if type(config) ~= "table" then refuse(where, "groups by their names expected") end
  for name, group in sorted(config) do
    local at, of = ("%s.%.60s"):format(where, tostring(name)), type(group) == "table" and group.ranks and group or nil
    local ranks, desc = of and of.ranks or group, of and of.desc
    if type(ranks) == "string" then ranks = select(2, host.json(ranks)) end
    if name == "" then refuse(at, "Gloo writes only the group that was made last; NCCL writes all") end
    add(all, type(desc) == "string" and desc ~= "undefined" and desc or "", ranks, at)
  end
end

-- Read who is in which communicator. One that was split from another has no id from 2.23 on, but how often its parent
-- was split, and a colour.
local function add_log(all, log)
  local comms, ids = all.comms, all.ids
  for part in log:gsub("%S+:%d+:%d+ %[%d+%] NCCL ", "\n%0"):gmatch "[^\n]+" do
    local process, pointer, rank, size, bus, more =
      part:match "(%S+:%d+):%d+ %[%d+%] NCCL INFO .*comm (0x%x+) rank (%d+) nranks (%d+) .*busId (%x+)(.*)%- Init %u+"
    local gpu, id = (process or "") .. " " .. (bus or ""), (more or ""):match "commId (0x%x+)"
    local parent, count, color = (more or ""):match "parent (0x%x+) ?%l*C?o?u?n?t? ?(%d*) color (%-?%d+)"
    parent = parent and ids[gpu .. parent]
    id = id or parent and ("%s/%s/%s"):format(parent, count, color)
    if id then
      comms[id] = comms[id] or { size = math.tointeger(tonumber(size)) or 0, gpus = {} }
      comms[id].gpus[math.tointeger(tonumber(rank)) or 0], ids[gpu .. pointer] = gpu, id
    end
  end
end

local function add_comms(all, where)
  local world, rank_of, least = nil, {}, #all
  for _, comm in sorted(all.comms) do world = world and world.size >= comm.size and world or comm end
  if not world then
    refuse(where, "no groups: neither JSON, as [ [0, 1], [2, 3] ], nor communicators with their ids, as logs of "
           .. "NCCL_DEBUG=INFO have them from NCCL 2.16 on")
  end
  for rank, gpu in sorted(world.gpus) do rank_of[gpu] = rank end
  all.world = math.max(all.world or 0, world.size)
  for id, comm in sorted(all.comms) do
    local ranks = {}
    for _, gpu in sorted(comm.gpus) do ranks[#ranks + 1] = rank_of[gpu] end
    if #ranks == comm.size then add(all, "", ranks, "communicator " .. id) else all.partial = (all.partial or 0) + 1 end
  end
  if #all > least then return end
  refuse(where, "no communicator has lines of all of its ranks; the logs of all ranks together do")
end

local function contents(name)
  if line.from_stdin { recipe = name } then return line.stdin() end
  local kind = host.kind(name)
  if kind == "folder" or kind == "other" then refuse(name, "not a file; name the files in it") end
  local file, why = io.open(name, "rb")
  if not file then text.refuse(1, "cannot open %s", why) end
  local all = file:read(BYTES + 1) or ""
  file:close()
  if #all > BYTES then refuse(name, "more than %d bytes", BYTES) end
  return all
end

local function add_plan(all, plan)
  all.world = math.max(all.world or 0, plan.world)
  for _, family in ipairs(plan.families) do
    for group, ranks in plan:family(family):groups() do add(all, family, ranks, ("%s[%d]"):format(family, group)) end
  end
end

local function add_json(all, name, given, value)
  if type(value) ~= "table" or #value > 0 then return add_lists(all, "", value, "groups") end
  if value.pg_config then return add_recorder(all, value.pg_config, "pg_config") end
  if value.moongrid and value.rules then return add_plan(all, mg.saved(name, given)) end
  for family, groups in sorted(value) do add_lists(all, family, groups, ("%.60s"):format(family)) end
  if #all == 0 then refuse(name, LISTS) end
end

return function(names)
  local all, log = { members = 0, comms = {}, ids = {} }, nil
  for _, name in ipairs(names) do
    local given = contents(name)
    local starts, is_json, value = given:match "^%s*[%[{]", host.json(given)
    if is_json then
      add_json(all, name, given, value)
    elseif given:find "^\x80[\x02-\x05]" then
      refuse(name, "a pickle; infer reads the JSON of torch's _dump_fr_trace_json")
    elseif starts and not given:find(" NCCL ", 1, true) then
      refuse(name, "it starts as JSON does, and is none")
    else
      log = name
      add_log(all, given)
    end
  end
  if log then add_comms(all, log) end
  return all
end
