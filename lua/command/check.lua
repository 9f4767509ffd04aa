-- SPDX-License-Identifier: MIT
--
-- moongrid check: check the laws of a recipe's families at several world sizes.

local host = require "host"
local json = require "command.base.json"
local line = require "command.base.line"
local mg = require "moongrid"
local overview = require "command.base.overview"
local recipe = require "command.base.line_recipe"
local reports = require "pictures.reports"
local text = require "command.base.text"

local REFUSED, UNPROVED, USAGE = 100, 406, 200 -- statuses; a law that does not hold has REFUSED or UNPROVED
local EVERY = "positions, partitions, schedule" -- the laws of every plan, which no recipe needs to claim

local function is_broken(status) return status == REFUSED or status == UNPROVED end

-- Prove the step of a recipe under the rules of NCCL. Return true and the assumptions of the proof, false and a
-- message, or nil if the recipe has no step.
local function prove(plan)
  if not recipe.has_step(plan) then return nil end
  local proved, verdict, why = plan:step():prove()
  if proved then return true, verdict end
  return false, ("the step is not proved (%s): %s"):format(verdict, why:sub(1, 800))
end

-- Check a plan. Return the checked laws in order, { name, held }, with the counts of plan:check in fields; and the
-- message and status of the first law that does not hold, or cannot be checked.
local function check(of, plan)
  local laws, machine, message, status = {}, type(of.machine) == "userdata" and of.machine or nil, nil, nil
  -- Record the law that `ask` checks. `ask` returns whether the law holds, and a message; or nothing, if the plan has
  -- no such law; or it raises an error.
  local function note(name, ask, ...)
    local done, held, why = pcall(ask, ...)
    local is = REFUSED
    if not done then is, why, held = mg.status(held) or error(held, 0), held, false end
    if held ~= nil and is_broken(is) then laws[#laws + 1] = { name, held } end
    if held == false and not message then message, status = why, is end
  end
  note(EVERY, function()
    laws.members, laws.communicators = plan:check()
    return true
  end)
  for _, law in ipairs(of.law or {}) do note(law, plan.law, plan, law, machine) end
  note("step", function()
    local proved, why = prove(plan)
    if proved then laws.assumes = why end
    return proved, why
  end)
  -- laws claimed in `build` hold, or there would be no plan
  for _, law in ipairs(recipe.field(plan, "laws") or {}) do laws[#laws + 1] = { law, true } end
  return laws, message, status
end

-- One world ------------------------------------------------------------------------

local function put_line(world, plan, laws)
  local n, members, communicators = #plan, laws.members, laws.communicators
  text.printf("%10d  ok       %d famil%s, %d member%s %s, ", world, n, n == 1 and "y" or "ies", members,
              text.plural(members), communicators and "checked" or "sampled")
  if communicators then
    text.printf("%d communicator%s in order", communicators, text.plural(communicators))
  else
    text.put "schedule sampled"
  end
  text.put("  ", plan.digest, "\n")
end

local function json_line(world, plan, laws, message, status)
  local of = { world = world, ok = not message, status = status, message = message, laws = {} }
  for _, law in ipairs(laws) do of.laws[law[1]] = law[2] end
  if message then return of end
  of.families, of.members, of.digest = #plan, laws.members, plan.digest
  of.sampled, of.communicators, of.assumes = not laws.communicators, laws.communicators, laws.assumes
  of.notes = #plan.notes > 0 and plan.notes or nil
  return of
end

local function shape_of(one)
  if not one.ok then return { "laws", "message", "ok", "status", "world", laws = { named = true } } end
  local keys = { "communicators", "digest", "families", "laws", "members", "ok", "sampled", "world",
                 laws = { named = true } }
  if one.notes then table.insert(keys, 6, "notes") end
  if one.assumes then table.insert(keys, 1, "assumes") end
  return keys
end

-- All worlds -----------------------------------------------------------------------

-- Return the verdict on a law: the worlds in which the law held, and the worlds in which it did not. `verdicts` has all
-- verdicts in order, and by the name of the law.
local function verdict_on(verdicts, name)
  if not verdicts[name] then
    verdicts[name] = { name = name, held = {}, broken = {} }
    verdicts[#verdicts + 1] = verdicts[name]
  end
  return verdicts[name]
end

-- Record the laws of the nth world. A law that the command line names twice counts once in each world.
local function note_verdicts(verdicts, nth, world, laws)
  for _, law in ipairs(laws) do
    local one = verdict_on(verdicts, law[1])
    local list = law[2] and one.held or one.broken
    if one.last ~= nth then list[#list + 1] = world end
    one.last = nth
  end
end

local function put_verdicts(verdicts, nworlds)
  local width = 0
  for _, one in ipairs(verdicts) do width = math.max(width, #one.name) end
  for _, one in ipairs(verdicts) do
    local held, broken = table.concat(one.held, ", "), table.concat(one.broken, ", ")
    text.put(text.padded(one.name, width), " ")
    if #one.held == nworlds then
      text.put " held"
    elseif held ~= "" then
      text.put(" held at ", held, broken ~= "" and ";" or "")
    end
    if broken ~= "" then text.put(" BROKEN at ", broken) end
    text.put(held == "" and broken == "" and " not checked\n" or "\n")
  end
end

-- Return the plan for a world, or nil, a message and its status.
local function plan_for(of, loaded, saved, world)
  if saved and saved.world ~= world then return nil, recipe.other_world(of, saved, world), USAGE end
  if saved then return saved end
  local done, plan = pcall(recipe.plan, of, loaded, world)
  if done then return plan end
  return nil, plan, mg.status(plan) or error(plan, 0)
end

local function run(of)
  line.needs(of, true)
  local worlds, is_saved, verdicts, lines, worst, assumes = of.world, line.is_saved(of), {}, {}, nil, nil
  if not worlds and not is_saved then text.usage "check needs --world N[,N...], the numbers of ranks" end
  of.world = nil
  local saved, loaded = is_saved and recipe.plan(of), not is_saved and recipe.load(of)
  worlds = worlds or { saved.world }
  for _, law in ipairs { EVERY, table.unpack(of.law or {}) } do verdict_on(verdicts, law) end
  for i, world in ipairs(worlds) do
    host.progress(("checking %d ranks, world %d of %d"):format(world, i, #worlds))
    local laws, plan, message, status = {}, plan_for(of, loaded, saved, world)
    if plan then laws, message, status = check(of, plan) end
    host.progress()
    local broken = plan and is_broken(status)
    if i == 1 and message and plan and not broken then -- the law cannot be checked, for instance a misspelt law
      text.refuse(status // 100, "%s", message)
    end
    if not message then overview.notes(plan) end
    note_verdicts(verdicts, i, world, laws)
    assumes = assumes or laws.assumes
    if of.json then
      lines[i] = json_line(world, plan, laws, message, status)
    elseif message then
      text.printf("%10d  %-8s %s\n", world, broken and "BROKEN" or "refused", message)
    else
      put_line(world, plan, laws)
    end
    worst = worst or status
  end
  if of.json then
    json.put(lines, shape_of)
  else
    put_verdicts(verdicts, #worlds)
    if assumes then text.put_lines("the proof of the step assumes that " .. reports.assumes(assumes) .. "\n") end
  end
  return worst and worst // 100
end

return {
  name = "check",
  place = 40,
  takes = "RECIPE --world N,N,... [NAME=VALUE ...]",
  summary = "the laws of a recipe at several sizes",
  usage = "moongrid check RECIPE --world N[,N...] [NAME=VALUE ...] [--law LAW ...] [--json]",
  about = "Check a recipe at several world sizes: that looking a rank up gives the same groups and\n"
    .. "positions as listing the groups, that a family of all ranks has each rank once, and that no\n"
    .. "rank waits forever when groups are created. Of a world above 1048576 ranks only a sample is checked, and the\n"
    .. "output says so. It also checks the laws of the recipe and of --law, prints the sizes at which\n"
    .. "each law holds, and proves the step if the recipe has one (moongrid step). A saved plan has\n"
    .. "its world, so it needs no --world.",
  example = 'moongrid check megatron --world 16-64 tp=2 pp=2 --law "within(tp, mp)"',
  recipe = true,
  options = {
    { "world", "N,...", line.worlds, help = "worlds to check; 8-64 is 8, 16, 32, 64" },
    { "law", "LAW", function(_, law, laws) return table.move({ law }, 1, 1, #(laws or {}) + 1, laws or {}) end,
      help = "also check this law: within(a, b), every group of a inside one of b; disjoint(a, b), "
             .. "same(a, b), covers(a); may be given several times" },
    { "json", help = "an array with one object per world" },
  },
  run = run,
}
