-- SPDX-License-Identifier: MIT
--
-- recorder: read a dump of torch's flight recorder: the calls of one rank, as pickle or JSON, in version 1.4 of the
-- format (torch 2.3) or 2.x (torch 2.4 and newer).
--
-- A dump becomes { whole, calls, groups, states }. `whole`: it is complete; `states`: it has the states of calls, as
-- NCCL's dumps have. `groups` has { name, desc, ranks } by torch's name of a group. A call is
--   { id, group, desc, seq, pair, p2p, op, peer, sizes, dtype, done, at, ended, place, fn }
-- id: its number among all calls of the rank; group, desc: torch's name and description of the group; seq: its number
-- among the collectives of the group, pair: among the sends and receives; peer: for send and recv, a position in the
-- group; sizes: of the input, of a recv the output, as "4x40"; at, ended: when it was made, and seen to have ended,
-- in seconds since 1970; place and fn: the file and line, and the functions, outside of torch, that made the call.

local host = require "host"
local pickle = require "command.blame.pickle"
local sorted = require "command.base.sorted"

local M = {}

local DEEP = 4 -- most frames of a stack to keep
local RANKS = 1 << 20
local FEW = 8  -- most tensors and dims in `sizes`

-- Operations that have another name in some backends and versions.
local same = { all_to_all_single = "all_to_all", alltoall_base = "all_to_all", alltoall = "all_to_all",
               allreduce = "all_reduce", allgather = "all_gather", reduce_scatter_tensor = "reduce_scatter",
               all_reduce_barrier = "barrier" }

local function operation(name)
  local op = name:match "([^:]*)$"
  op = op:gsub("^_", ""):gsub("_base$", ""):gsub("_oop$", ""):gsub("_into_tensor", ""):gsub("_coalesced$", "")
  local way, own, arrow, peer = op:match "^(%a+) ?(%d*)([<>%-]*)(%d*)"
  if (way == "send" or way == "recv") and arrow ~= "" then return way, tonumber(peer), tonumber(own) end
  if op:find "^recvAny" then return "recv" end
  return same[op] or op
end

local function list(value) return type(value) == "table" and value or {} end

local function shape(sizes)
  local one = type(sizes) == "table" and sizes[1]
  if type(one) == "table" and #sizes == 1 and #one <= FEW then return table.concat(one, "x") end
  local all = {}
  for i, dims in ipairs(list(sizes)) do
    if i > FEW then break end
    all[i] = table.concat(table.move(list(dims), 1, math.min(#list(dims), FEW), 1, {}), "x")
  end
  return table.concat(all, ",")
end

-- Return a list of two texts: the file and line of the innermost frame outside of torch, and the functions of the
-- frames outside of torch, as "call < reduce_grads < step".
local function where(frames, known)
  if known[frames] then return known[frames] end
  local place, names = nil, {}
  for _, frame in ipairs(list(frames)) do
    local file = type(frame) == "table" and frame.filename
    if type(file) == "string" and not file:find "/torch/" and not file:find "^<" and #names < DEEP then
      place = place or ("%s:%s"):format(file:match "[^/]*$", math.tointeger(frame.line) or "?")
      names[#names + 1] = tostring(frame.name)
    end
  end
  known[frames] = { place, place and table.concat(names, " < ") }
  return known[frames]
end

-- Convert an entry to a call, or return nil if the entry is not a call.
local function call_of(e, known)
  local group, name, id = e.process_group, e.profiling_name, math.tointeger(e.record_id)
  if not id or type(name) ~= "string" then return end
  local said = known.names[name] or { operation(name) }
  known.names[name] = said
  local op, peer = said[1], said[2]
  local p2p = e.is_p2p == true or op == "send" or op == "recv"
  local sizes = op == "recv" and e.output_sizes or e.input_sizes
  local dtypes = op == "recv" and e.output_dtypes or e.input_dtypes
  local place = e.frames and where(e.frames, known.frames)
  return {
    id = id, group = tostring(list(group)[1] or e.pg_id), desc = list(group)[2],
    seq = math.tointeger(not p2p and e.collective_seq_id or e.seq_id) or 0, p2p = p2p, op = op, peer = peer,
    sizes = shape(sizes), dtype = tostring(list(dtypes)[1] or ""), state = e.state, done = e.retired == true,
    at = (tonumber(e.time_created_ns) or 0) / 1e9, place = place and place[1], fn = place and place[2],
    pair = e.p2p_seq_id,
    ended = tonumber(e.time_discovered_completed_ns) and e.time_discovered_completed_ns / 1e9,
  }
end

-- Return the ranks in "[0, 1, 4]" or in a list, or nil.
local function members(ranks)
  local all = {}
  if type(ranks) == "string" then ranks = select(2, host.json(ranks)) end
  for i, n in ipairs(list(ranks)) do
    local rank = math.tointeger(n)
    if not rank or rank < 0 or rank >= RANKS then return end
    all[i] = rank
  end
  return #all > 0 and all or nil
end

-- Return the groups in pg_config, by name. Groups without a name are left out; a dump of gloo has only such groups.
function M.groups(config)
  local all = {}
  for key, one in sorted(list(config)) do
    if type(one) == "table" then
      local name = tostring(one.name or key)
      if name ~= "" then
        all[name] = { name = name, desc = one.desc, ranks = members(one.ranks or one) }
      end
    end
  end
  return all
end

-- Set `done` of each call: whether it has ended. With NCCL its state tells this, with gloo `retired`. The calls of a
-- batch have ended if the entry that closes the batch has ended, and a collective if a later collective of its group
-- has ended. Return whether the dump has states.
local function find_ended(calls)
  local states, later = false, {}
  for _, one in ipairs(calls) do states = states or one.state ~= "scheduled" end
  for i = #calls, 1, -1 do
    local one = calls[i]
    if states then one.done = one.state == "completed" end
    if one.op == "coalesced" then
      for k = i - 1, 1, -1 do
        if calls[k].group ~= one.group or calls[k].pair ~= one.pair or calls[k].seq ~= one.seq then break end
        calls[k].closed = one.done
      end
    elseif one.closed ~= nil then
      one.done, one.closed = one.closed, nil
    end
    if not one.p2p then
      if later[one.group] then one.done = true end
      later[one.group] = one.done
    end
    one.state = nil
  end
  return states
end

-- Drop calls whose number is far from those of the others, because the dump is wrong there.
local function near(calls)
  local middle, kept = calls[(#calls + 1) // 2], {}
  for _, call in ipairs(calls) do
    if math.abs(call.id - middle.id) <= 4 * #calls + 1000 then kept[#kept + 1] = call end
  end
  return kept
end

-- Cut an incomplete JSON text after the last entry that another entry follows, and close its brackets. The keys of a
-- dump are sorted, so only the list of entries and the dump itself are open there. Return nil if no entry is complete.
local function mend(text)
  local last
  for at in text:gmatch '()},%s*{"coll' do last = at end
  return last and text:sub(1, last) .. "]}"
end

-- Read a dump; return nil if the text is not a dump. Raise { message } if the dump is damaged, or has another version.
function M.read(text)
  local calls, whole = {}, true
  local known = { names = {}, frames = setmetatable({}, { __mode = "k" }) }
  local function made(e)
    local one = e.record_id and call_of(e, known)
    if one then calls[#calls + 1] = one end
    return one
  end
  local top
  if text:byte() == 0x80 then
    top, whole = pickle(text, made)
  else
    local is, value = host.json(text)
    if not is and text:find '"entries"' then
      text = mend(text)
      is, whole = text and true, false
      if text then is, value = host.json(text) end
    end
    if not is or type(value) ~= "table" or not (value.entries or value.pg_config) then return end
    top = value
    for _, e in ipairs(list(top.entries)) do
      if type(e) == "table" then made(e) end
    end
  end
  if type(top) ~= "table" or whole and not (top.entries or top.pg_config) then
    error({ "a pickle, but not a dump of torch's flight recorder: it has no entries" }, 0)
  end
  local version = tostring(top.version or (whole and "none" or "2"))
  if not (version:find "^1%.4$" or version:find "^2") then
    local words = "a dump of version %s; versions 1.4 (torch 2.3) and 2.x (torch 2.4 and newer) are read"
    error({ words:format(version) }, 0)
  end
  table.sort(calls, function(a, b) return a.id < b.id end)
  calls = near(calls)
  return { whole = whole, calls = calls, groups = M.groups(top.pg_config), states = find_ended(calls) }
end

return M
