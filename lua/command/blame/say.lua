-- SPDX-License-Identifier: MIT
--
-- say: print a verdict as text, on at most one screen, or as JSON.

local host = require "host"
local json = require "command.base.json"
local sorted = require "command.base.sorted"
local text = require "command.base.text"
local waits = require "command.blame.waits"

local FEW = 8 -- most ranks, candidates and notes to list

local M = {}

-- For each kind of verdict, the words that follow the ranks.
local verbs = {
  skip = "left out a call",
  gone = "dead, stopped, or cut off from the others",
  stall = "in no call: slow, stuck in its own code, waiting for data, or out of its loop",
  mismatch = "made a call of another size, type or operation than the others",
  order = "made two calls in another order than the others",
  extra = "made a call that the others do not make",
  peer = "in a send or recv that its peer does not answer",
  elsewhere = "left the step for another call, as after an exception",
  ahead = "not in the step that the others are in: a step ahead, or done",
  other_group = "made its call on another group",
  inside = "in a call that all have made and that does not end: its root, the GPUs or the network",
}

-- Return where a rank is, as "tp 1, pp 2, dp 4; node 17 (host17) gpu 1".
local function place(of, rank)
  local words, levels = {}, {}
  for _, name in ipairs(of.plan and of.plan.grids or {}) do
    local grid = of.plan:grid(name)
    local coords = #words == 0 and rank < of.plan.world and grid:coords(rank) or {}
    for _, dim in ipairs(grid:dims()) do
      if dim[2] > 1 and coords[dim[1]] then words[#words + 1] = dim[1] .. " " .. coords[dim[1]] end
    end
  end
  for _, one in ipairs(of.machine and of.machine:where(rank) or {}) do
    if not one.crossing then levels[#levels + 1] = one.text end
  end
  local all = table.concat(words, ", ")
  if #levels > 0 then all = all .. (all ~= "" and "; " or "") .. table.concat(levels, " ") end
  return all
end

local function rank_words(of, rank)
  local words = place(of, rank)
  return words == "" and tostring(rank) or ("%d (%s)"):format(rank, words)
end

local function ranks(of, list)
  local all = {}
  for i = 1, math.min(#list, FEW) do all[i] = #list > 3 and tostring(list[i]) or rank_words(of, list[i]) end
  return table.concat(all, ", ") .. (#list > FEW and (" and %d more"):format(#list - FEW) or "")
end

-- Describe a call. `other`: the call is of another rank, so leave out its group and number.
local function call_words(call, other)
  local sizes = call.sizes ~= "" and (" [%s]"):format(call.sizes:gsub(",", "] [")) or ""
  local place_words = call.place and (", at %s in %s"):format(call.place, call.fn) or ""
  local peer = call.peer and not other and call.group.ranks[call.peer + 1]
  local to = peer and (call.op == "send" and " to rank %d" or " from rank %d"):format(peer) or ""
  return host.shown(("%s%s%s%s on %s%s%s"):format(
    call.op, to, sizes, call.dtype ~= "" and " " .. call.dtype or "", other and call.group.title or call.group.label,
    call.seq > 0 and not other and (", its call %d"):format(call.seq) or "", place_words))
end

-- Return what several ranks have in common and others have not, as "all in node 3 (n3)", or nil.
local function pattern(of, list, world)
  if #list < 2 then return end
  local found = {}
  local function share(name, value_of)
    local value, others = value_of(list[1]), false
    for _, rank in ipairs(list) do
      if value_of(rank) ~= value then return end
    end
    for rank = 0, math.min(world, 4096) - 1 do others = others or value_of(rank) ~= value end
    if value and others then found[#found + 1] = name:format(value) end
  end
  for i, level in ipairs(of.machine and of.machine:levels() or {}) do
    share("all in %s", function(rank) return of.machine:where(rank)[i].text end)
    if level.crossing and #found > 0 then break end
  end
  local grid = of.plan and of.plan.grids[1] and of.plan:grid(of.plan.grids[1])
  for _, dim in ipairs(grid and grid:dims() or {}) do
    if dim[2] > 1 then share("all at " .. dim[1] .. " %d", function(rank) return grid:coord(rank, dim[1]) end) end
  end
  return found[1] and table.concat(found, ", ")
end

-- Say where in the step of the recipe the named ranks are, and where most others are.
local function at_step(of, verdict)
  local named, list, all = {}, table.move(of.step, 1, #of.step, 1, {}), {}
  for _, rank in ipairs(verdict.ranks) do named[rank] = true end
  local function order(one) return named[one.ranks[1]] and -math.huge or -#one.ranks end
  table.sort(list, function(a, b)
    if order(a) ~= order(b) then return order(a) < order(b) end
    return a.ranks[1] < b.ranks[1]
  end)
  for i = 1, math.min(#list, 3) do
    local one = list[i]
    all[i] = ("rank%s %s at %s, next %s"):format(#one.ranks == 1 and "" or "s", ranks({}, one.ranks), one.at, one.next)
  end
  return host.shown(table.concat(all, "; "))
end

-- Count the ranks in each state, as "1 rank in no call, 7 waiting".
local function count(job)
  local words = { absent = "gave no dump", old = "gave an older dump", cut = "gave a dump that is cut short",
                  idle = "in no call", broken = "ended by an error", ready = "in a call that all have made",
                  waiting = "waiting" }
  local n, all = {}, {}
  for rank = 0, job.world - 1 do
    local state = waits.state(job, rank)
    n[state] = (n[state] or 0) + 1
  end
  for state, many in sorted(n) do
    all[#all + 1] = ("%d %s%s"):format(many, all[1] and "" or many == 1 and "rank " or "ranks ", words[state])
  end
  return table.concat(all, ", ")
end

-- Return the chain of waits from the rank that has waited longest to the ranks at fault.
local function chain(of, job, verdict)
  local to, longest = {}, nil
  for _, rank in ipairs(verdict.ranks) do to[rank] = true end
  for _, rank in ipairs(job.list) do
    local call = job.ranks[rank].pending[1]
    if call and not to[rank] and (not longest or call.at < longest.at) then
      local found = waits.chain(job, rank, to)
      if found then longest = { at = call.at, found = found } end
    end
  end
  local words = {}
  for i, link in ipairs(longest and longest.found or {}) do
    if i > 4 then
      words[#words + 1] = "..."
      break
    end
    local who = i == 1 and "rank " .. rank_words(of, link.rank) or tostring(link.rank)
    words[#words + 1] = ("%s waits for %d in %s of %s"):format(who, link.next, link.call.op, link.call.group.label)
  end
  return host.shown(table.concat(words, "; "))
end

local function unsure(verdict)
  if verdict.sure then return "sure" end
  local all, seen = {}, {}
  for _, one in ipairs(verdict.candidates) do
    local list = table.concat(one.ranks, ", ", 1, math.min(#one.ranks, FEW))
    local verb = one.kind ~= verdict.kind and ": " .. verbs[one.kind] or ""
    local words = ("rank%s %s%s"):format(#one.ranks == 1 and "" or "s", list, verb)
    if not seen[words] and #all < 3 then all[#all + 1], seen[words] = words, true end
  end
  return #all > 0 and "unsure: or " .. table.concat(all, "; or ") or "unsure"
end

-- For each kind of verdict, where to look to become sure.
local settle = {
  gone = "look whether the process lives, and at its log: a missing dump is not a proof",
  stall = "py-spy dump of that process: moongrid blame reads it, too",
  ahead = "py-spy dump of one of them",
  inside = "the root that each rank passes is in no dump; ncclras and the log of NCCL_DEBUG=INFO tell of the network",
  healthy = "a second dump a minute later tells whether it moves",
  order = "the code around the two calls", skip = "the code around the call", peer = "the code of both ends",
  mismatch = "the code of the call on both sides", extra = "the stack of the call", elsewhere = "the log of that rank",
}

-- Return the verdict in words: the first line, and a list of { label, words }.
function M.rows(of, job, verdict)
  local rows = {}
  local function put(label, words)
    if words and words ~= "" then rows[#rows + 1] = { label, words } end
  end
  local hangs, head = verdict.kind ~= "healthy", "no rank can be named"
  if not hangs then
    head = "nothing hangs" .. (verdict.sure and "" or ", as far as these files tell")
  elseif #verdict.ranks > 0 then
    head = ("rank%s %s: %s"):format(#verdict.ranks == 1 and "" or "s", ranks(of, verdict.ranks), verbs[verdict.kind])
  end
  put("confidence", hangs and unsure(verdict))
  put("why", verdict.words and host.shown(verdict.words))
  local group, expected = verdict.group, verdict.expected
  local members = group and group.ranks or {}
  local list = #members > 0 and ": ranks " .. table.concat(members, ", ", 1, math.min(#members, 2 * FEW)) or ""
  put("group", group and host.shown(group.label .. list))
  put(expected and "made" or "others wait in", verdict.call and call_words(verdict.call))
  put(expected and "others made" or "is due", (expected or verdict.due) and call_words(expected or verdict.due, true))
  if job then
    put("waits", hangs and chain(of, job, verdict))
    put("in all", count(job))
  end
  if of.step then put("step", at_step(of, verdict)) end
  put("pattern", pattern(of, verdict.ranks, job and job.world or of.world or 0))
  local found = of.proposal
  put("recipe", found and (found.plan and "these groups are those of %s, and have its names: --recipe %s"
                           or "these groups are %s: --recipe %s names them"):format(found.recipe, found.words))
  put("to settle it", not verdict.sure and (verdict.settle or settle[verdict.kind]))
  return head, rows
end

function M.text(of, job, verdict, notes)
  local head, rows = M.rows(of, job, verdict)
  text.put(text.on, head, text.off, "\n")
  for _, row in ipairs(rows) do text.wrap("  " .. row[1], row[2]) end
  for i = 1, math.min(#notes, FEW) do text.note("%s", host.shown(notes[i])) end
  if #notes > FEW then text.note("%d more notes", #notes - FEW) end
end

function M.json(about, verdict)
  local of = verdict.group
  local group = of and of.family and { family = of.family, index = of.index } or nil
  local candidates = {}
  for i = 1, math.min(#verdict.candidates, 3) do
    candidates[i] = { kind = verdict.candidates[i].kind, ranks = verdict.candidates[i].ranks }
  end
  local keys = { "kind", "ranks", "group", "sure", "candidates", group = { "family", "index", line = true },
                 candidates = { "kind", "ranks", line = true } }
  if about.proposal then keys[#keys + 1] = "recipe" end
  if about.step then keys[#keys + 1], keys.step = "step", { "ranks", "at", "next", line = true } end
  json.put({ kind = verdict.kind, ranks = verdict.ranks, group = group, sure = verdict.sure, candidates = candidates,
             recipe = about.proposal and about.proposal.words, step = about.step }, keys)
end

return M
