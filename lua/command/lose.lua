-- SPDX-License-Identifier: MIT
--
-- moongrid lose: print how a job goes on when ranks, or whole nodes, are lost.

local host = require "host"
local json = require "command.base.json"
local line = require "command.base.line"
local recipe = require "command.base.line_recipe"
local text = require "command.base.text"

local MOST_RANKS <const> = 1 << 24 -- most ranks of a world: a loss takes some 100 bytes of memory for each
local MOST_STEPS <const> = 1 << 27 -- most losses of a sweep (--all), times ranks: ten million take some seconds
local LEAST_LOSSES <const> = 16 -- count a sweep as at least so many losses: even one loss needs memory for all ranks

local loss_shape = {
  "lost", "how", "why", "layout", "params", "idle", "old_ranks", "digest", "communicators", "bytes", "uncounted",
  "missing",
  communicators = { "kept", "made", "dropped", "families", families = { named = true }, line = true },
  bytes = { "stay", "moved", "missing", line = true },
  missing = { "tensor", "range", "bytes", "holders", line = true },
}

-- Units, which are lost as a whole: a rank, or the ranks of a domain of the machine -------

-- Return the number and the text of the domain of a level in which a rank runs.
local function domain_of(machine, level, rank)
  for _, at in ipairs(machine:where(rank)) do
    if at.level == level then return at.domain, at.text end
  end
  return 0 -- the machine has no such level, which units_of refuses
end

-- Return what a unit is, "rank" or the level; the number of units; and a function that returns the ranks of a unit.
local function units_of(level, machine, world)
  if not level then return "rank", world, function(unit) return { unit } end end
  local domains = machine:family(level, world)
  return level, domains.count, function(unit) return domains:ranks(unit) end
end

-- Return a list of the names that the machine gives the units of a level, and by name the number of the unit. Both are
-- empty if the machine gives none.
local function names_of(machine, level, count, ranks_of)
  local names, numbers = {}, {}
  for unit = 0, machine and count - 1 or -1 do
    local name = machine:domain_name(level, (domain_of(machine, level, ranks_of(unit)[1])))
    if name then names[#names + 1], numbers[name] = name, unit end
  end
  return names, numbers
end

-- Read "5,13" or "8..15" as a list of numbers below `count`; a unit may also be given by its name. Messages call a unit
-- `what`.
local function read_list(option, list, what, count, names, numbers)
  local found, seen = {}, {}
  for word in list:gmatch "[^,]+" do
    if word:find "^%a" and names[1] and not numbers[word] then
      text.refuse(1, "%s: the machine has no %s '%s'%s", option, what, word:sub(1, 100), (host.nearest(word, names)))
    end
  end
  for first, last, at in line.ranges((list:gsub("[^,]+", numbers))) do
    if not first then
      text.refuse(2, "%s '%s', character %d: expected %s, or a range such as 8..15", option,
                  list:sub(1, 100), at, what == "rank" and "a rank" or "the number of a " .. what)
    elseif last >= count then
      text.refuse(1, "%s: %s %d is out of range (0 to %d)", option, what, last, count - 1)
    end
    for unit = first, last do
      if seen[unit] then text.refuse(1, "%s: %s %d is given twice", option, what, unit) end
      found[#found + 1], seen[unit] = unit, true
    end
  end
  return found
end

-- Hints ----------------------------------------------------------------------------

-- Print a hint if the recipe has no on_lost, but a policy with a similar name.
local function hint_policy(loaded)
  local near
  for _, policy in ipairs(loaded:info().policies) do
    if policy.name == "on_lost" then return end
    if select(2, host.nearest(policy.name, { "on_lost" })) then near = policy.name end
  end
  if near then text.printf("hint           the recipe has a policy '%s', and none with the name on_lost\n", near) end
end

-- Return the ranks that hold the first part of a tensor.
local function first_holders(plan, tensor)
  for rank = 0, plan.world - 1 do
    local holders = plan:holders(tensor, rank)
    if holders then return holders end
  end
  return {}
end

-- Return the name of a family with a group of exactly these ranks, or nil.
local function family_of(plan, ranks)
  for _, name in ipairs(plan.families) do
    local family = plan:family(name)
    local group = family:locate(ranks[1])
    local all = group and (family.size or #family:ranks(group)) == #ranks
    for _, rank in ipairs(ranks) do all = all and family:locate(rank) == group end
    if all then return name end
  end
end

-- Print a hint if there is only one copy of the parts of some tensors, and a hint if one domain of the machine has all
-- copies of a part. The second hint names one tensor, because others are usually cut in the same way.
local function hint_copies(plan, machine, level)
  local single, tensors = 0, plan.tensors
  for _, name in ipairs(tensors) do
    if #first_holders(plan, name) == 1 then single = single + 1 end
  end
  if single > 0 then
    text.printf("hint           %d of %d tensors %s only one copy of each part: the parts of a lost rank are lost\n",
                single, #tensors, single == 1 and "has" or "have")
  end
  if not machine or not machine:has(level) then return end
  local domains = #tensors > 0 and machine:family(level, plan.world)
  for _, name in ipairs(tensors) do
    local _, rank = plan:together(name, domains)
    if rank then
      local holders, _, where = plan:holders(name, rank), domain_of(machine, level, rank)
      local family = family_of(plan, holders)
      text.printf("hint           all %d copies of a part of '%s' are in %s%s\n", #holders, name, where,
                  family and ("; spread(%s, machine.%s) in the recipe refuses such a layout"):format(family, level)
                  or "")
      return
    end
  end
end

-- One loss -------------------------------------------------------------------------

local function lose(of, plan, losses, units, machine)
  local level, count, ranks_of = table.unpack(units)
  local option, lost, shown = of.ranks and "--ranks" or "--nodes", {}, {}
  local names, numbers = names_of(of.nodes and machine, level, count, ranks_of)
  for _, unit in ipairs(read_list(option, of.ranks or of.nodes, level, count, names, numbers)) do
    for _, rank in ipairs(ranks_of(unit)) do lost[#lost + 1] = rank end
    shown[#shown + 1] = of.nodes and select(2, domain_of(machine, level, lost[#lost])) or nil
  end
  local loss = losses:lose(lost)
  host.progress()
  if of.json then return json.put(loss, loss_shape) end
  text.head(plan)
  if names[1] then text.wrap("where", table.concat(shown, ", ")) end
  text.put(tostring(loss), "\n")
end

-- All losses of one unit, or of two -------------------------------------------------

local function too_many(at_once, units, world)
  local losses = at_once == 1 and units or units * (units - 1.0) / 2
  return math.max(losses, LEAST_LOSSES) * world > MOST_STEPS
end

-- Refuse a sweep that takes too long, before anything is allocated.
local function check_sweep(of, machine)
  local at_once, world, units = of.all, of.world, of.world
  if of.level then units = 1 + domain_of(machine, of.level, world - 1) end
  if not too_many(at_once, units, world) then return end
  if of.level then
    text.refuse(3, "--all %d: %d %ss of %d ranks are too many to try in turn; lose those of interest, as --nodes 0,1, "
                .. "or take a smaller --world", at_once, units, of.level, world)
  end
  local fits, fails = 1, world -- a number of ranks that can be tried, and one that is too large
  while fails - fits > 1 do
    local middle = fits + (fails - fits) // 2
    if too_many(at_once, middle, middle) then fails = middle else fits = middle end
  end
  text.refuse(3, "--all %d: %d ranks are too many to try %s in turn; nearest: --world %d; or lose those of interest, "
              .. "as --ranks 5,13, or whole nodes, by --level node", at_once, world,
              at_once == 1 and "each" or "each pair", fits)
end

-- Count the loss of `ranks`, which are those of `units`, in the row of the losses with the same outcome.
local function count_loss(rows, losses, ranks, units)
  local sums = losses:sums(ranks)
  local becomes = sums.how == "stop" and sums.why or table.concat(sums.params, "\n")
  local key = sums.how .. " " .. sums.layout .. " " .. becomes
  local row = rows[key]
  if not row then
    row = { how = sums.how, layout = sums.layout, losses = 0, with_copies = 0, kept = math.maxinteger,
            moved = { bytes = -1 }, missing = { bytes = -1 }, text = becomes, order = #rows + 1 }
    rows[key], rows[#rows + 1] = row, row
  end
  row.losses = row.losses + 1
  if sums.missing == 0 then row.with_copies = row.with_copies + 1 end
  row.kept = math.min(row.kept, sums.kept)
  for _, name in ipairs { "moved", "missing" } do
    if sums[name] > row[name].bytes then row[name] = { bytes = sums[name], lost = units } end
  end
end

-- Return whether row a comes before row b: rows in which the job goes on come first, then those with more losses, then
-- those with larger layouts.
local function is_before(a, b)
  if (a.how == "stop") ~= (b.how == "stop") then return b.how == "stop" end
  if a.losses ~= b.losses then return a.losses > b.losses end
  if a.layout ~= b.layout then return a.layout > b.layout end
  return a.order < b.order
end

local function rows_of(losses, at_once, count, ranks_of)
  local rows = {}
  for a = 0, count - 1 do
    local ranks = ranks_of(a)
    if at_once == 1 then count_loss(rows, losses, ranks, { a }) end
    for b = a + 1, at_once == 2 and count - 1 or 0 do
      local both = table.move(ranks, 1, #ranks, 1, {})
      local more = ranks_of(b)
      count_loss(rows, losses, table.move(more, 1, #more, #both + 1, both), { a, b })
    end
  end
  table.sort(rows, is_before)
  return rows
end

-- Return the worst loss as "1.50 GiB (5, 13)": its bytes, and the units that were lost.
local function worst_text(worst)
  if worst.bytes <= 0 then return "0 B" end
  return ("%s (%s)"):format(text.bytes(worst.bytes), table.concat(worst.lost, ", "))
end

local function put_rows(rows, unit, at_once, has_tensors)
  local losses, fine, whole = 0, 0, 0
  text.printf("%-9s %10s %10s %10s  %-24s  %s\n", "outcome", "new ranks", "losses", "least kept",
              "most moved (lost)", "most without a copy (lost)")
  for _, row in ipairs(rows) do
    local stops = row.how == "stop"
    losses = losses + row.losses
    if not stops then fine, whole = fine + row.losses, whole + row.with_copies end
    text.printf("%-9s %10s %10d %10s  %-24s  %s\n", row.how, stops and "-" or row.layout, row.losses,
                stops and "-" or row.kept, stops and "-" or worst_text(row.moved), worst_text(row.missing))
    for one in row.text:gmatch "[^\n]+" do text.put("          ", one, "\n") end
  end
  text.printf("%d losses of %s %s%s: the job survives %d%s\n", losses, at_once == 1 and "one" or "two", unit,
              text.plural(at_once), fine,
              has_tensors and (", %d of them without a checkpoint"):format(whole) or "")
end

local function sweep(of, plan, losses, units)
  local unit, count, ranks_of = table.unpack(units)
  if count <= of.all then
    text.refuse(1, "--all %d: there %s only %d %s%s, and one must survive", of.all, count == 1 and "is" or "are", count,
                unit, text.plural(count))
  end
  local rows = rows_of(losses, of.all, count, ranks_of)
  host.progress()
  if not of.json then
    text.head(plan)
    return put_rows(rows, unit, of.all, #plan.tensors > 0)
  end
  for _, row in ipairs(rows) do
    if row.how == "stop" then row.kept, row.why = 0, row.text else row.params = row.text end
    row.text, row.order = nil, nil
  end
  json.put { of = unit, at_once = of.all, rows = rows }
end

-- --------------------------------------------------------------------------------

local function run(of)
  line.needs(of, of.world)
  if line.is_saved(of) then text.usage "a saved plan cannot be made for fewer ranks; lose takes the recipe" end
  if (of.ranks and 1 or 0) + (of.nodes and 1 or 0) + (of.all and 1 or 0) ~= 1 then
    text.usage "lose takes one of --ranks 5,13, --nodes 2 and --all 1"
  end
  if of.ranks and of.level then text.usage "--level is for --nodes and --all" end
  host.progress(("planning for losses of %d ranks"):format(of.world))
  local plan, loaded = recipe.plan(of)
  local level = of.level or of.nodes and "node"
  local machine = (level and recipe.required_machine or recipe.machine)(of, plan)
  if of.all then check_sweep(of, machine) end
  if of.world > MOST_RANKS then
    text.refuse(3, "a loss takes memory for each of %d ranks; nearest: --world %d", of.world, MOST_RANKS)
  end
  local units = { units_of(level, machine, of.world) }
  local losses = plan:losses { how = of.how };
  (of.all and sweep or lose)(of, plan, losses, units, machine)
  if of.json then return end
  if #plan.tensors == 0 then
    text.wrap("tensors", "none in this recipe: what weights move, or are lost, is not known")
  end
  if not of.how then hint_policy(loaded) end
  hint_copies(plan, machine, of.level or "node")
end

return {
  name = "lose",
  place = 90,
  takes = "RECIPE --world N [NAME=VALUE ...]",
  summary = "what the job becomes when ranks or nodes are lost",
  usage = "moongrid lose RECIPE --world N [NAME=VALUE ...] --ranks 5,13 | --nodes 2 | --all 1|2\n"
    .. "       [--level LEVEL] [--how HOW] [--machine M] [--json]",
  about = "Print what a job becomes when these ranks are lost: spares take their places (spares = 2 in a recipe), or\n"
    .. "the survivors get the largest layout that the recipe accepts, or the job stops. The recipe's policy on_lost\n"
    .. "chooses; without it, the first of these that is possible. Also print the communicators that stay, those that\n"
    .. "are made, the bytes that surviving copies send, and the parts that have no copy left.",
  notes = "--all tries each rank, or each pair, in turn, and prints a line for each outcome: how the job goes on, the\n"
    .. "number of ranks in the new layout, the number of losses with this outcome, the fewest communicators that\n"
    .. "stay, and of the worst losses the bytes that move and the bytes that have no copy, with what was lost.",
  example = "moongrid lose megatron --world 64 tp=4 pp=4 --ranks 5,13",
  recipe = true,
  options = {
    line.world "ranks in the world",
    { "ranks", "RANKS", help = "lose these, as 5,13 or 8..15" },
    { "nodes", "NODES", help = "lose all ranks of these nodes of the machine, by number from 0, or by name" },
    { "all", "1|2", line.number, help = "lose each rank, or each pair, in turn" },
    { "level", "LEVEL", help = "lose whole domains of this level of the machine at once, as rack" },
    { "how", "replace|shrink|stop", help = "what the job does, instead of the answer of the recipe's policy on_lost" },
    { "json", help = "one JSON object" },
  },
  run = run,
}
