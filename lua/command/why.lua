-- SPDX-License-Identifier: MIT
--
-- moongrid why: print the groups that two ranks have in common, or a chain of groups between them.

local json = require "command.base.json"
local line = require "command.base.line"
local recipe = require "command.base.line_recipe"
local text = require "command.base.text"

local communicator = { "family", "group", "steps" }
local shape = {
  "ranks", "groups", "first", "chain",
  groups = { "family", "group", "size", "positions", "pair", "between", "communicator", communicator = communicator },
  first = communicator,
  chain = { "from", "to", "family", "group" },
}

-- Print the smallest domain that has both ranks, and the domains of a and b on the next level. Then print the links
-- that messages between a and b use, those of this next level and of the levels inside it. For each level that crosses
-- others, such as rails, print whether a and b are in one of its domains.
local function put_machine(machine, a, b)
  local x, y, words, l = machine:where(a), machine:where(b), {}, 1
  while x[l] and not x[l].crossing and x[l].domain == y[l].domain do l = l + 1 end
  if l > 1 then words[1] = "both in " .. x[l - 1].text end
  if x[l] and not x[l].crossing then
    words[#words + 1] = ("rank %d in %s, rank %d in %s"):format(a, x[l].text, b, y[l].text)
  end
  for i = l, #x do
    local level, here, there = x[i].level, x[i].domain, y[i].domain
    if x[i].crossing then
      words[#words + 1] = here == there and ("on one %s, %d"):format(level, here)
                          or ("on different %ss, %d and %d"):format(level, here, there)
    elseif x[i].link ~= "" then
      words[#words + 1] = ("link of a %s %s"):format(level, x[i].link)
    end
  end
  text.put "\n"
  text.wrap("machine", table.concat(words, "; "))
end

local function run(of)
  line.needs(of, of.world)
  if #of.words ~= 2 then text.usage "why needs two ranks: moongrid why RECIPE --world N A B" end
  local a, b = line.index("a rank", of.words[1]), line.index("a rank", of.words[2])
  line.beyond(a, of.world)
  line.beyond(b, of.world)
  local plan = recipe.plan(of)
  local why, machine = plan:why(a, b), recipe.machine(of, plan)
  if of.json then return json.put(why, shape) end
  text.put(tostring(why), "\n")
  if machine then put_machine(machine, a, b) end
end

return {
  name = "why",
  place = 100,
  takes = "RECIPE --world N [...] A B",
  summary = "what two ranks have in common",
  usage = "moongrid why RECIPE --world N [NAME=VALUE ...] A B [--json]",
  about = "Print why rank A talks to rank B: every group with both, the smallest first, their positions in it and the\n"
    .. "ranks between, its communicator, and the first communicator that both ranks create. For ranks without a\n"
    .. "common group, print the shortest chain of groups from one to the other.",
  example = "moongrid why megatron --world 16 tp=2 pp=2 0 9",
  recipe = true,
  words = 2,
  options = { line.world "ranks in the world", { "json", help = "one JSON object" } },
  run = run,
}
