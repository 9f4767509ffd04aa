-- SPDX-License-Identifier: MIT
--
-- moongrid blame: find out which rank makes a job hang, and what it was doing.

local files = require "command.blame.files"
local host = require "host"
local job_of = require "command.blame.dumps"
local line = require "command.base.line"
local logs = require "command.blame.logs"
local propose = require "command.blame.propose"
local recipe = require "command.base.line_recipe"
local say = require "command.blame.say"
local sorted = require "command.base.sorted"
local text = require "command.base.text"
local verdict_of = require "command.blame.verdict"

local CERTAIN = 95 -- messages of launchers have this weight or more

-- Read --names, a file of JSON: {torch's name of a group: [ranks]}.
local function names_of(path)
  if not path then return end
  local all, why = host.read(path)
  if not all then text.refuse(1, "%s", why) end
  local is, names = host.json(all)
  is = is and type(names) == "table"
  for _, ranks in sorted(is and names or {}) do
    for _, rank in ipairs(type(ranks) == "table" and ranks or { false }) do is = is and math.tointeger(rank) end
  end
  if not is then
    text.refuse(1, '%s: expected JSON as {"3": [0, 1]}: each name that torch gives a group, and its ranks', path)
  end
  return names
end

-- Combine the verdict of the dumps with findings in logs and stacks. A finding of weight CERTAIN or more replaces an
-- unsure verdict. A finding of the same kind on the same rank gives its words to the verdict, and makes it sure if the
-- finding is sure. Without dumps the findings decide.
local function weigh(verdict, found, plan)
  local best = found[1]
  if not verdict or best and best.weight >= CERTAIN and not verdict.sure then
    if not best then return verdict end
    local candidates = best.others or {}
    for i = 2, #found do
      local one = found[i]
      local same = one.kind == best.kind and table.concat(one.ranks, " ") == table.concat(best.ranks, " ")
      if #candidates < 3 and one.kind ~= "healthy" and #one.ranks > 0 and not same then
        candidates[#candidates + 1] = { kind = one.kind, ranks = one.ranks }
      end
    end
    return { kind = best.kind, ranks = best.ranks, sure = best.sure, candidates = candidates, words = best.words,
             settle = best.settle, group = best.members and plan and job_of.named(plan, best)
                                           or best.label and { label = best.label } or verdict and verdict.group }
  end
  for _, one in ipairs(found) do -- if a rank is in no call, its stack shows what it does
    if verdict.kind == one.kind and #one.ranks == 1 and one.ranks[1] == verdict.ranks[1] then
      verdict.words, verdict.sure = one.words, verdict.sure or one.sure
    end
  end
  return verdict
end

local function run(of)
  if #of.words == 0 then text.usage "blame needs files of the job: dumps, logs, stacks, or a folder of them" end
  if of.recipe then line.needs(of, of.world) end
  if not of.recipe and #of.args > 0 then text.usage("'%s' is a parameter: it needs --recipe", of.args[1]) end
  if not of.recipe and of.world then
    text.usage "--world goes with --recipe; without --recipe the dumps tell the number of ranks"
  end
  local plan = of.recipe and recipe.plan(of)
  local about = { plan = plan, world = plan and plan.world, machine = of.recipe and recipe.machine(of, plan) }
  local job, rest, verdict = { ranks = {}, notes = {}, bad = {} }, {}, nil
  for _, file in ipairs(files(of.words)) do
    if not job_of.add(job, file) then rest[#rest + 1] = file end
  end
  local found, notes = logs(rest)
  table.move(job.bad, 1, #job.bad, #notes + 1, notes)
  if job.any then
    job_of.gather(job, plan, names_of(of.names))
    if #job.list == 1 and #found == 0 and (job.world > 1 or job.order[1].open) then
      text.refuse(1, "%s is the dump of rank %d alone%s: it tells who waits, not for whom; give the dumps of all ranks",
                  job.ranks[job.list[1]].path, job.list[1], job.world > 1 and ", of " .. job.world or "")
    end
    about.proposal = not plan and propose(job) or nil
    about.plan = plan or about.proposal and about.proposal.plan
    job_of.name(job, about.plan)
    verdict = verdict_of(job)
    about.step = plan and recipe.has_step(plan) and require "command.blame.in_step"(job) or nil
    for note in sorted(job.notes) do notes[#notes + 1] = note end
  elseif #found == 0 then
    if job.bad[1] then text.refuse(1, "%s", job.bad[1]) end
    if not rest[1] then
      text.refuse(1, "the dumps have no calls: torch keeps TORCH_FR_BUFFER_SIZE calls; set it above 0")
    end
    text.refuse(1, "%s: blame recognizes nothing in it: no dump of torch's flight recorder, no output of ncclras, no "
                .. "log of NCCL, of torch's watchdog or of a launcher, no stack", rest[1].path)
  end
  verdict = weigh(verdict, found, plan)
  job = job.any and job or nil
  if of.output then
    if not job then text.refuse(1, "a page draws the groups of dumps, and no file is a dump") end
    local head, rows = say.rows(about, job, verdict)
    host.write(of.output, function(put) require "command.blame.blame_page" (job, verdict, head, rows, put) end)
  elseif of.json then
    say.json(about, verdict)
  else
    say.text(about, job, verdict, notes)
  end
end

return {
  name = "blame",
  place = 185,
  takes = "FILE|FOLDER ...",
  summary = "a job hangs: which rank, and what it was doing (preview)",
  usage = "moongrid blame FILE|FOLDER ... [--recipe RECIPE --world N [NAME=VALUE ...]] [--names FILE] [--json]\n"
    .. "       [-o FILE.html]",
  about = "Say which rank of which group makes a job hang, and which ranks wait for which. It reads dumps of\n"
    .. "torch's flight recorder (torch 2.3 and newer; pickle or JSON; names end in the rank), the output of ncclras\n"
    .. "-v, logs of NCCL_DEBUG=INFO, messages of torch's watchdog, gloo and launchers, stacks of py-spy.\n"
    .. "A FILE may be a folder, a tar or tar.gz of one, or - for standard input; for the word ncclras, blame\n"
    .. "runs this program.",
  notes = "With the recipe of the job, groups and ranks have the names of its families. Without --recipe, for up to\n"
    .. "64 ranks, blame proposes a recipe that makes these groups and no others. If torch's own names of the groups\n"
    .. "are names of that recipe's families, the answer uses them. The files are data: nothing in them is executed.\n"
    .. "Where blame cannot be sure of a rank, it says \"unsure\" and names the candidates.",
  example = "moongrid blame DUMPS --recipe megatron --world 16 tp=2 pp=2",
  recipe = true,
  recipe_from = "recipe",
  words = 1 << 16,
  options = {
    { "recipe", "RECIPE", help = "the job's recipe; its parameters as NAME=VALUE" },
    line.world "with --recipe: the number of ranks of the job",
    { "names", "FILE", help = 'for dumps without the members of groups, as gloo writes: {"3": [0, 1], ...}, each '
                              .. "name that torch gives a group, and its ranks" },
    { "output", "FILE", letter = true,
      help = "a page that draws the groups; the colour of a rank says in which call it is, or in none" },
    { "json", help = "as JSON: kind, ranks, group, sure, candidates; recipe: the proposed recipe; step: where in the "
                      .. "recipe's step each rank is" },
  },
  run = run,
}
