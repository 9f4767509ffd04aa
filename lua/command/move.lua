-- SPDX-License-Identifier: MIT
--
-- moongrid move: print the messages that move the tensors of one plan to the layout of another.

local host = require "host"
local json = require "command.base.json"
local line = require "command.base.line"
local mg = require "moongrid"
local recipe = require "command.base.line_recipe"
local text = require "command.base.text"

local columns = { "stay", "sent", "minimum", "max_send", "max_receive", "peers", "rounds", "gather", "crossing" }
local heads = { "stays", "sent", "minimum", "max send", "max recv", "peers", "rounds", "by gather", "crossing" }
local TENSORS <const> = 12 -- the most tensors to list: those of which most bytes are sent
local counts = { peers = true, rounds = true } -- columns that are not bytes

-- Return the notes of both plans for the JSON, or nil if there are none.
local function notes_of(from, to)
  local notes = {}
  for _, note in ipairs(from.notes) do notes[#notes + 1] = "before: " .. note end
  for _, note in ipairs(to.notes) do notes[#notes + 1] = "after: " .. note end
  return #notes > 0 and notes or nil
end

-- All ranks ------------------------------------------------------------------------

-- Return a function that returns the next message; the messages that rank 0 sends are the first.
local function each_message(moves)
  local rank, list, at = -1, {}, 0
  return function()
    at = at + 1
    while not list[at] do
      rank, at = rank + 1, 1
      if rank == moves.ranks then return nil end
      list = moves:messages(rank)
    end
    return list[at]
  end
end

local function put_row(wide, name, of, format)
  local cells = {}
  for i, column in ipairs(columns) do
    cells[i] = of[column] and (counts[column] and "%7s" or "%10s"):format(format(of[column], column))
  end
  if not of.rounds then cells[7] = ("%7s"):format "-" end
  text.put(text.padded(name, wide), " ", table.concat(cells, " "), "\n")
end

local function put_sums(wide, tensors, all)
  local function number(value, column) return counts[column] and value or text.bytes(value) end
  local head = { crossing = all.crossing and heads[9] }
  for i = 1, 8 do head[columns[i]] = heads[i] end
  put_row(wide, "tensor", head, function(word) return word end)
  local shown, order = #tensors, {}
  for i in ipairs(tensors) do order[i] = i end
  if shown > TENSORS + 1 then
    shown = TENSORS
    table.sort(order, function(a, b)
      local more = tensors[a].sent - tensors[b].sent
      return more > 0 or more == 0 and a < b
    end)
  end
  for i = 1, shown do put_row(wide, tensors[order[i]].name, tensors[order[i]], number) end
  if shown < #tensors then
    text.printf("... %d more tensors, which send at most as much: --json lists all, --tensor NAME shows one\n",
                #tensors - shown)
  end
  if #tensors > 1 then put_row(wide, "in all", all, number) end
end

local function put_messages(wide, moves, has_rounds)
  local round = has_rounds and "round" or ""
  text.printf("\n%9s    %-9s %s %14s %7s\n", "from", "to", text.padded("tensor", wide), "bytes", round)
  if not text.is_terminal then host.progress(("writing the messages of %d ranks"):format(moves.ranks)) end
  for m in each_message(moves) do
    text.printf("%9d -> %-9d %s %14d", m.from, m.to, text.padded(m.tensor, wide), m.bytes)
    text.put(m.round and (" %7d\n"):format(m.round) or "\n")
  end
  host.progress()
end

local function put_json(of, moves, tensors, all, notes)
  local sums = { line = true, "minimum", "sent", "stay", "max_send", "max_receive", "peers", "rounds", "messages",
                 "busiest", "gather", all.crossing and "crossing" }
  local shape = { "tensors", "all", tensors = table.move(sums, 1, #sums, 2, { line = true, "name" }), all = sums,
                  messages = { line = true, "from", "to", "tensor", "bytes", "round" } }
  if notes then shape[#shape + 1] = "notes" end
  if of.list then shape[#shape + 1] = "messages" end
  if of.list and not text.is_terminal then host.progress(("writing the messages of %d ranks"):format(moves.ranks)) end
  json.put({ tensors = tensors, all = all, notes = notes, messages = each_message(moves) }, shape)
  host.progress()
end

local function show_all(of, from, to, options)
  local moves, wide = mg.moves(from, to, options), 16
  line.all_ranks("a move", moves.ranks)
  for _, name in ipairs(moves.tensors) do wide = math.max(wide, #name) end
  local tensors, all, why = moves:sums()
  host.progress()
  if of.json then return put_json(of, moves, tensors, all, notes_of(from, to)) end
  put_sums(wide, tensors, all)
  if why then text.put("no rounds: ", why, "\n") end
  if of.list then put_messages(wide, moves, not why) end
end

-- One rank -------------------------------------------------------------------------

local function show_rank(of, from, to, options)
  options.rank = of.rank
  local move = mg.move(from, to, options)
  host.progress()
  if of.json then
    local notes = notes_of(from, to)
    local shape = { "rank", "stay", "send", "receive", "peers", notes and "notes",
                    peers = { line = true, "rank", "send", "receive" } }
    return json.put({ rank = move.rank, stay = move.stay, send = move.send, receive = move.receive, peers = move.peers,
                      notes = notes }, shape)
  end
  text.printf("rank %d: %d bytes stay, %d are sent, %d received\n", move.rank, move.stay, move.send, move.receive)
  if #move.peers > 0 then text.printf("\n%9s %14s %14s\n", "peer", "sends", "receives") end
  for _, peer in ipairs(move.peers) do text.printf("%9d %14d %14d\n", peer.rank, peer.send, peer.receive) end
end

local function run(a, b)
  if a.list and a.rank then text.usage "--list prints the messages of all ranks; it takes no --rank" end
  host.progress(("planning the move of %d ranks"):format(math.max(a.world or 0, b.world or 0)))
  local from, to = recipe.plan(a), recipe.plan(b)
  line.beyond(a.rank or 0, math.max(from.world, to.world));
  (a.rank and show_rank or show_all)(a, from, to, {
    tensors = a.tensor and { a.tensor }, ranks = a.map and line.map(a.map, to.world), convert = a.convert,
    machine = recipe.node_size(a, from),
  })
  recipe.note(from, "before: ")
  recipe.note(to, "after: ")
end

return {
  name = "move",
  place = 70,
  takes = "A --world N [...] vs B [...]",
  summary = "which bytes go where when tensors change their layout",
  usage = "moongrid move A --world N [NAME=VALUE ...] vs [B] [--world M] [NAME=VALUE ...] [--tensor T] [--rank R]\n"
    .. "       [--json] [--list]",
  about = "Plan the move of the tensors of one plan to the layout of another. Every element that a rank needs and\n"
    .. "does not hold arrives once, so no fewer bytes can be sent. If B has no recipe, it has that of A. A world\n"
    .. "given on one side is that of both; parameters are not carried over. With --machine a rank receives from its\n"
    .. "own node what a rank of this node holds, and the table has the bytes between nodes (\"crossing\"); no fewer\n"
    .. "are possible if ranks do not pass on what they receive.",
  example = "moongrid move examples/fsdp_tp.lua --world 8 vs tp=4 fsdp=false",
  recipe = true,
  sides = true,
  options = {
    line.world "ranks in the world of that side",
    { "rank", "R", line.index, help = "what one rank sends and receives" },
    { "tensor", "T", help = "only this tensor" },
    { "map", "RANKS", help = "for each rank of B its number before the move, as 8..15,0..7; default: the same number. "
                             .. "Ranks beyond those of A only receive" },
    { "convert", help = "tensors may be f32 on one side and bf16 on the other; they are sent as bf16" },
    { "list", help = "every message, with its round" },
    { "json", help = "one JSON object" },
  },
  run = run,
}
