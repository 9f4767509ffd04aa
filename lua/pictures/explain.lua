-- SPDX-License-Identifier: MIT
--
-- explain: describe how each family of a plan was made.

local groups = require "pictures.groups"
local moongrid = require "moongrid"
local reports = require "pictures.reports"
local shown = require "pictures.words".shown

-- Return a function that adds to a place, "moe.lua:28", the line of the recipe: "moe.lua:28  t.dp = dense". safe(text)
-- makes a text safe to print; read(file) returns the text of a file, or nil.
local function source_lines(safe, read)
  local sources = {}
  local function lines_of(source)
    local lines = {}
    for one in (moongrid.recipes(source) or read(source) or ""):gmatch "([^\n]*)\n?" do lines[#lines + 1] = one end
    return lines
  end
  return function(place)
    local source, n = place:match "^(.*):(%-?%d+)$"
    sources[source] = sources[source] or lines_of(source)
    local line = (sources[source][tonumber(n)] or ""):gsub("\r.*", ""):match "^[ \t]*(.-)[ \t]*$"
    return safe(place) .. "  " .. safe(line)
  end
end

local function put_lines(r, name)
  local last, label = nil, "  made by"
  for _, place in ipairs(r.plan:lines(name) or {}) do
    if place ~= last then
      r.wrap(label, r.words_of(place))
      last, label = place, ""
    end
  end
end

-- Return for every family, by its name, what plan:communicators returns, and also `family`; `leaders`, the families
-- that make its communicators; and `from`, the number of groups for each leader's name.
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

-- Describe the communicators that the family uses.
local function communicators(all, name)
  local one = all[name]
  local head, ones = all[one.shares], ""
  if one.singles > 0 then
    ones = ("; %d group%s of one rank need%s none"):format(one.singles, reports.plural(one.singles),
                                                           one.singles == 1 and "s" or "")
  end
  if not one.needed then return "none: a group of one rank needs none" end
  if not one.made then return "none: the recipe asks for none" end
  if head then
    local same, options = one.family == head.family, one.options == head.options and "the same options"
                                                     or "options that allow it"
    return ("those of %s, which is made before, has the same groups %s, and %s%s")
           :format(one.shares, same and "in the same order" or "among its own", options, same and "" or ones)
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
  local again = one.from[name]
  if again then add("; %d group%s", again, again == 1 and " repeats an earlier one" or "s repeat earlier ones") end
  return table.concat(words) .. ones
end

-- Write which other families use all or some of the family's communicators.
local function put_users(r, name)
  local plan, all = r.plan, r.all
  local one, users, options = all[name], {}, " and options"
  local head = one.shares or name
  for _, other in ipairs(plan.families) do
    local its = other == head or all[other].shares == head
    if its and other ~= name and other ~= one.shares and all[other].family == one.family then
      users[#users + 1] = other
      if all[other].options ~= one.options then options = "" end
    end
  end
  if #users > 0 then
    local s = #users == 1 and "s" or ""
    r.wrap("", ("%s ha%s the same groups%s, and share%s them")
                  :format(table.concat(users, ", "), #users == 1 and "s" or "ve", options, s))
  end
  for _, other in ipairs(plan.families) do
    local n = all[other].from[name]
    if n and other ~= name and all[other].family ~= one.family then
      r.wrap("", ("%s shares %d of them"):format(other, n))
    end
  end
end

-- Return why two families with the same groups do not share communicators, as plan:communicators describes them.
local function why_apart(one, its)
  local lane = "lane=%d+" -- families that are used at the same time have different lanes
  if one.twin or its.twin then return "a twin is meant to be separate" end
  if one.options:match(lane) ~= its.options:match(lane) then
    return "the recipe separates families that are used at the same time"
  end
  return one.options ~= its.options and "its options differ" or "a family with these options shares none"
end

-- Write which families have the same groups but other communicators.
local function put_apart(r, name)
  local plan, all = r.plan, r.all
  local one = all[name]
  for _, other in ipairs(plan.families) do
    local its = all[other]
    if other ~= (one.shares or name) and its.made and not its.shares and its.family == one.family then
      r.wrap("", ("%s has the same groups and communicators of its own: %s"):format(other, why_apart(one, its)))
    end
  end
end

local function put_cost(r, one)
  local function mib(bytes) return ("%.0f MiB"):format(bytes / (1 << 20)) end
  local words
  if one.created == 0 then
    words = "no memory of a GPU: NCCL does not make them"
  elseif one.shares then
    words = ("nothing more; separate communicators would take %s of each member's GPU"):format(mib(one.created))
  else
    words = ("with NCCL at most %s of each member's GPU, %s more with the first use"):format(mib(one.created),
                                                                                             mib(one.ring))
  end
  r.wrap("  cost", words)
end

local function put_family(r, name)
  local w, one = r.writer, r.all[name]
  local family = one.family
  local rule, words = family:explain()
  w.put(w.on .. name .. w.off .. ": " .. groups.count(family)
        .. (family.coverage == "cover" and " that share ranks" or "") .. "\n")
  r.wrap("  groups", groups.all(family, r.columns - 16))
  r.wrap("  rule", rule)
  if family.count > 0 then r.wrap("", words) end
  put_lines(r, name)
  if one.options ~= "" then r.wrap("  options", one.options) end
  r.wrap("  communicator", communicators(r.all, name))
  if not one.made then return end
  put_users(r, name)
  put_apart(r, name)
  put_cost(r, one)
end

-- Evaluate the recipe { name, text, args, file } of a plan again, and record the lines that make families.
local function again(plan, recipe)
  return moongrid.load(recipe.name, { text = recipe.text, lines = true }):plan(plan.world, recipe.args, recipe.file)
end

-- Explain the families in options.families; without it, write a line about the plan and explain all families. Other
-- options are columns, read and recipe; the command also gives `writer`, and `ranks`, the number of ranks of a node.
return function(plan, options, put)
  local recipe = options.recipe
  if recipe then plan = again(plan, recipe) end
  local read = options.read or function() end
  local w = options.writer or { put = put, fold = options.columns or 80, on = "", off = "", shown = shown }
  local r = { plan = plan, writer = w, columns = options.columns or 80,
              all = ask_all(plan, { machine_ranks = reports.machine_ranks(plan, options.ranks) }) }
  r.words_of = source_lines(w.shown, function(file)
    return recipe and recipe.text and file == recipe.name and recipe.text or read(file)
  end)
  function r.wrap(label, text) reports.wrap(w, label, text) end
  if not options.families then reports.head(w, plan) end
  for i, name in ipairs(options.families or plan.families) do
    plan:family(name) -- refuses an unknown name
    if i > 1 or not options.families then w.put "\n" end
    put_family(r, name)
  end
end
