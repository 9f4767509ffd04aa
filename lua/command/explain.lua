-- SPDX-License-Identifier: MIT
--
-- moongrid explain: how each family was made, in words and numbers.

local groups = require "pictures.groups"
local host = require "host"
local line = require "command.base.line"
local mg = require "moongrid"
local overview = require "command.base.overview"
local recipe = require "command.base.recipe"
local text = require "command.base.text"

-- Return a function that returns the words of a place of the recipe, "moe.lua:28  t.dp = dense".
local function source_lines(of)
  local sources = {}
  local function lines_of(source)
    local all, lines = nil, {}
    if source == "stdin" and line.from_stdin(of) then all = line.stdin() end
    all = all or mg.recipes(source) or host.read(source) or ""
    for one in all:gmatch "([^\n]*)\n?" do lines[#lines + 1] = one end
    return lines
  end
  return function(place)
    local source, n = place:match "^(.*):(%-?%d+)$"
    sources[source] = sources[source] or lines_of(source)
    local words = (sources[source][tonumber(n)] or ""):gsub("\r.*", ""):match "^[ \t]*(.-)[ \t]*$"
    return host.shown(place) .. "  " .. host.shown(words)
  end
end

local function put_lines(plan, name, words_of)
  local last, label = nil, "  made by"
  for _, place in ipairs(plan:lines(name) or {}) do
    if place ~= last then
      text.wrap(label, words_of(place))
      last, label = place, ""
    end
  end
end

-- Return what is asked of other families, too: of each its communicators and the families that make them, by its name.
local function ask_all(plan, site)
  local all = {}
  for _, name in ipairs(plan.families) do
    local one = plan:communicators(name, site)
    one.family, one.leaders, one.from = plan:family(name), plan:leaders(name), {}
    for _, leader in ipairs(one.leaders) do one.from[leader.family] = leader.groups end
    all[name] = one
  end
  return all
end

-- Which communicators the family uses.
local function communicators(all, name)
  local one = all[name]
  local head = all[one.shares]
  if not one.needed then return "none: a group of one rank needs none" end
  if not one.made then return "none: the recipe asks for none" end
  if head then
    return ("those of %s, which is made before, has the same groups %s, and the same options")
           :format(one.shares, one.family == head.family and "in the same order" or "among its own")
  end
  local words, said = { one.own > 0 and one.own .. " of its own" or "none of its own" }, false
  local function add(...) words[#words + 1] = string.format(...) end
  for _, leader in ipairs(one.leaders) do
    local single = leader.groups == 1
    if leader.family ~= name then
      local verb = said and (single and ", %d that of %s" or ", %d those of %s")
                   or single and "; %d group is that of %s" or "; %d groups are those of %s"
      add(verb, leader.groups, leader.family)
      said = true
    end
  end
  if said then add ", made before" end
  local again, ones = one.from[name], one.singles
  if again then add("; %d group%s there before", again, again == 1 and " was" or "s were") end
  if ones > 0 then
    add("; %d group%s of one rank need%s none", ones, text.plural(ones), ones == 1 and "s" or "")
  end
  return table.concat(words)
end

-- Which families use them too, in full or in part.
local function put_users(plan, all, name)
  local one, users = all[name], {}
  local head = one.shares or name
  for _, other in ipairs(plan.families) do
    local its = other == head or all[other].shares == head
    if its and other ~= name and other ~= one.shares and all[other].family == one.family then
      users[#users + 1] = other
    end
  end
  if #users > 0 then
    local s = #users == 1 and "s" or ""
    text.wrap("", ("%s ha%s the same groups and options, and share%s them")
                  :format(table.concat(users, ", "), #users == 1 and "s" or "ve", s))
  end
  for _, other in ipairs(plan.families) do
    local n = all[other].from[name]
    if n and other ~= name and all[other].family ~= one.family then
      text.wrap("", ("%s shares %d of them"):format(other, n))
    end
  end
end

-- Which families have the same groups but other communicators.
local function put_apart(plan, all, name)
  local one = all[name]
  for _, other in ipairs(plan.families) do
    local its = all[other]
    if other ~= (one.shares or name) and its.made and not its.shares and its.family == one.family then
      text.wrap("", ("%s has the same groups and communicators of its own: %s"):format(
        other, (one.twin or its.twin) and "a twin is meant to be separate"
               or one.options ~= its.options and "its options differ"
               or "the recipe separates families that are used at the same time"))
    end
  end
end

local function put_cost(one)
  local function mib(bytes) return ("%.0f MiB"):format(bytes / (1 << 20)) end
  local words
  if one.created == 0 then
    words = "nothing of a GPU: they are not NCCL's"
  elseif one.shares then
    words = ("nothing more; separate communicators would be %s of each member's GPU"):format(mib(one.created))
  else
    words = ("with NCCL at most %s of each member's GPU, %s more with the first use"):format(mib(one.created),
                                                                                             mib(one.ring))
  end
  text.wrap("  cost", words)
end

local function put_family(plan, all, name, words_of)
  local one = all[name]
  local family = one.family
  local rule, words = family:explain()
  text.put(text.on, name, text.off, ": ", groups.count(family),
           family.coverage == "cover" and " that share ranks" or "", "\n")
  text.wrap("  groups", groups.all(family, text.columns - 16))
  text.wrap("  rule", rule)
  if family.count > 0 then text.wrap("", words) end
  put_lines(plan, name, words_of)
  if one.options ~= "" then text.wrap("  options", one.options) end
  text.wrap("  communicator", communicators(all, name))
  if not one.made then return end
  put_users(plan, all, name)
  put_apart(plan, all, name)
  put_cost(one)
end

local function run(of)
  line.needs(of, of.world)
  local loaded = not line.is_saved(of) and recipe.load(of, { lines = true }) or nil
  local plan, list = recipe.plan(of, loaded), of.family or of.words[1]
  local names = list and recipe.families(plan, list) or plan.families
  local all = ask_all(plan, { machine_ranks = overview.machine_ranks(of, plan) })
  local words_of = source_lines(of)
  if not list then text.head(plan) end
  for i, name in ipairs(names) do
    if i > 1 or not list then text.put "\n" end
    put_family(plan, all, name, words_of)
  end
end

return {
  name = "explain",
  place = 130,
  takes = "RECIPE --world N [...] [FAMILY]",
  summary = "how each family was made",
  usage = "moongrid explain RECIPE --world N [NAME=VALUE ...] [--family F,G]",
  about = "How each family was made, or one of them: its rule in words, the lines of the recipe that made it, with "
    .. "which\nfamilies it shares communicators and why, and what they cost.",
  example = "moongrid explain megatron --world 16 tp=2 pp=2 --family dp",
  recipe = true,
  words = 1,
  asks = "families",
  options = { line.world "ranks in the world",
              { "family", "F,G", help = "only these; FAMILY without the option is one" } },
  run = run,
}
