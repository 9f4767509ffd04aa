-- SPDX-License-Identifier: MIT
--
-- moongrid infer: find the bundled recipe and the parameters that make the groups of a list.

local host = require "host"
local json = require "command.base.json"
local job_of = require "command.blame.dumps"
local line = require "command.base.line"
local read = require "command.infer.observed"
local rest = require "command.infer.rest"
local search = require "command.infer.recipe_search"
local text = require "command.base.text"

local function groups_of(n, size)
  return ("%d group%s%s"):format(n, text.plural(n), size and (" of %d"):format(size) or "")
end

-- Return a row for each set of groups of the plan that has given groups: the names of its families, and how many of its
-- groups are given. Also return how many given groups the plan has only with their members in another order.
local function rows_of(x, state)
  local rows, by, ordered, turned = {}, {}, {}, 0
  for _, name in ipairs(state.plan.families) do
    local family = state.plan:family(name)
    local set, n = search.set(x, family), 0
    for _, ranks in family:groups() do ordered[table.concat(ranks, ",")] = true end
    for _, id in ipairs(x.sets[set]) do n = n + (id <= x.n and 1 or 0) end
    if by[set] then
      by[set].names = by[set].names .. ", " .. name
    elseif n > 0 then
      by[set] = { names = name, n = n, of = #x.sets[set], size = family.size }
      rows[#rows + 1] = by[set]
    end
  end
  for id, group in ipairs(x.given) do
    turned = turned + (state.result.holds[id] and not ordered[table.concat(group.ranks, ",")] and 1 or 0)
  end
  return rows, turned
end

-- Return how many of the given groups are in a family of the plan whose name is that of the group in the input.
local function names_alike(x, plan)
  local alike, n = {}, 0
  for _, group in ipairs(x.given) do
    local desc, found = group.family, false
    if desc ~= "" and not alike[desc] then
      alike[desc] = {}
      for _, name in ipairs(plan.families) do
        if job_of.alike(desc, name) then table.insert(alike[desc], plan:family(name)) end
      end
    end
    for _, family in ipairs(alike[desc] or {}) do found = found or search.has(family, group.ranks) end
    n = n + (found and 1 or 0)
  end
  return n
end

-- Of the candidates that are as good as the best one, put first the one in which the most groups are in a family of the
-- same name; of several such candidates, the likeliest. Return the number of these groups.
local function put_named_first(x, states)
  local first, best, most = states[1], 1, names_alike(x, states[1].plan)
  for i, state in ipairs(states) do
    local as_good = state.result.explained == first.result.explained and state.exact == first.exact
    local n = as_good and names_alike(x, state.plan) or 0
    local more = n > 0 and n == most and states[best].r.likely < state.r.likely
    if n > most or more then best, most = i, n end
  end
  table.insert(states, 1, table.remove(states, best))
  return most
end

-- Print the best recipe. Write "these groups are RECIPE" only if nothing differs; else write "are among those of
-- RECIPE", or, if only the order of members differs, "are those of RECIPE".
local function put_best(x, best, names)
  local rows, turned = rows_of(x, best)
  local extra, explained = best.result.extra, best.result.explained
  local partly = #best.left > 0 or extra > 0
  local how = partly and "among those of " or turned > 0 and "those of " or ""
  text.put_lines(("%s%s %s %s %s%s at %d ranks%s%s"):format(
    #best.left > 0 and ("%d of "):format(explained) or "", x.n == 1 and "this" or "these", groups_of(x.n),
    explained == 1 and "is" or "are", how,
    best.words, x.world, extra > 0 and ", which has " .. groups_of(extra) .. " more" or "",
    turned > 0 and not partly and ", except for the order of members" or ""))
  if names > 0 then text.printf("%s are in a family of the same name\n", groups_of(names)) end
  if turned > 0 then text.put(groups_of(turned), " with members in another order\n") end
  for _, row in ipairs(rows) do
    local some = row.n < row.of and ("%d of "):format(row.n) or ""
    text.put_lines(("  %-24s  %s"):format(some .. groups_of(row.of, row.size), row.names))
  end
  for _, family in ipairs(rest.families(x.world, best.left)) do
    local named = family.name ~= "" and host.shown(family.name) .. ", " or ""
    text.put_lines("left: " .. named .. tostring(family.made):gsub("^Family of ", ""))
  end
end

local function put_json(world, states)
  local candidates = {}
  for i, state in ipairs(states) do
    local left = {}
    for k, group in ipairs(state.left) do left[k] = group.ranks end
    candidates[i] = { recipe = state.r.name, params = state.values, explained = state.result.explained,
                      extra = state.result.extra, left = left }
  end
  local shape = { "recipe", "params", "explained", "extra", "left", params = { named = true } }
  json.put({ world = world, candidates = candidates }, { "world", "candidates", candidates = shape })
end

local function output(name, word)
  if word:find "%.lua$" then return word end
  text.usage("%s is a file that ends with .lua, not '%s'", name, word)
end

local function run(of)
  if #of.words == 0 then text.usage "infer needs groups: files, or - for standard input" end
  local groups = read(of.words)
  local world = of.world or groups.least
  if world < groups.least then text.refuse(1, "--world %d: the groups are of %d ranks or more", world, groups.least) end
  if groups.partial > 0 then
    text.note("%d communicators lack lines of some ranks, and are left out", groups.partial)
  end
  host.progress "looking for recipes that make these groups"
  local states, x = search.run(groups, world, 1)
  host.progress()
  local names = put_named_first(x, states)
  if of.output then rest.write(of.output, world, states[1]) end
  if of.json then return put_json(world, states) end
  put_best(x, states[1], names)
  for i = 2, math.min(#states, 5) do
    local result = states[i].result
    if result.explained > 0 then
      text.put_lines(("%salso %s: has %d of them, and %s more"):format(
        i == 2 and "\n" or "", states[i].words, result.explained, groups_of(result.extra)))
    end
  end
end

return {
  name = "infer",
  place = 175,
  takes = "FILE|FOLDER...|-",
  summary = "which recipe makes the groups of a list",
  usage = "moongrid infer FILE|FOLDER... [--world N] [--json] [-o FILE.lua]",
  about = "Find the bundled recipe and the parameters that make these groups, and print what is left. FILE, or - for\n"
    .. "standard input, has lists of ranks, as [ [0, 1], [2, 3] ] or {\"tp\": [ [0, 1], [2, 3] ]}; or it is what\n"
    .. "moongrid plan --json prints, dumps of torch's flight recorder, or logs of NCCL_DEBUG=INFO (with the files of\n"
    .. "all ranks); or a folder or tar.gz of these. Some of the groups are enough. They are compared as sets of\n"
    .. "ranks. Of recipes that make equally many, the one whose families have the names of the input comes first.",
  notes = "The answer is the best that was found in a few seconds; there may be a better one.",
  example = "moongrid infer GROUPS.json --world 64",
  words = 1 << 16,
  asks = "files",
  options = {
    line.world "ranks in the world; default: one more than the largest rank",
    { "json", help = "one object: the best values of each recipe, the best recipe first" },
    { "output", "FILE.lua", output, letter = true,
      help = "write a recipe: the best one, with rules or lists for what is left" },
  },
  run = run,
}
