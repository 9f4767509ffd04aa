-- SPDX-License-Identifier: MIT
--
-- moongrid place: print which domains of a machine the groups of a recipe cross, and the bytes that they send between
-- them; or find the values of parameters that cost least (place/search.lua).

local host = require "host"
local json = require "command.base.json"
local line = require "command.base.line"
local overview = require "command.base.overview"
local recipe = require "command.base.line_recipe"
local search = require "command.place.search"
local sending = require "command.place.sending"
local text = require "command.base.text"

local RANKS <const> = 65536 -- in a larger world count the traffic of a step only with --traffic

local named = { named = true } -- in JSON an object, even if it is empty

local function bytes(n) return n < 9e18 and text.bytes(n // 1) or "over 8 EiB" end

-- Files that tell a launcher where ranks run -----------------------------------------------------

-- Return the ending of a file's name, which chooses the format.
local function ending(path) return path:match "rankfile$" or path:match "%.%l+$" end

local FORMATS = {
  -- Open MPI: mpirun --rankfile FILE
  rankfile = function(rank, _, slot, name) return ("rank %d=%s slot=%d\n"):format(rank, name, slot) end,
  -- A line for each rank: SLURM_HOSTFILE with srun --distribution=arbitrary; MPICH's mpiexec -f FILE
  [".hosts"] = function(_, _, _, name) return name .. "\n" end,
  -- A line for each node, in the order of their first ranks: line i is torchrun's --node-rank i, and JAX's process i
  [".nodes"] = function(_, is_next, _, name) return is_next and name .. "\n" or "" end,
}

local function write_hosts(path, machine, world)
  local last, latest = nil, {} -- latest: by node, the highest rank so far
  for rank = 0, world - 1 do
    local _, index, _, name = machine:seat(rank)
    if not name then
      text.refuse(1, "%s: the nodes of the machine have no names; give --machine a file of hosts", path)
    end
    if ending(path) == ".nodes" and (latest[index] or rank - 1) < rank - 1 then
      text.refuse(1, "%s: in such a file each node has consecutive ranks, and %s has ranks %d and %d, but not those "
                  .. "between", path, host.shown(name), latest[index], rank)
    end
    latest[index] = rank
  end
  host.write(path, function(put)
    for rank = 0, world - 1 do
      local _, index, slot, name = machine:seat(rank)
      put(FORMATS[ending(path)](rank, index ~= last, slot, name))
      last = index
    end
  end)
end

-- Write world:order { ... }, for a launcher that numbers ranks in the order of places, node by node. Entry i (from 0)
-- is the place where rank i of the plan should run, which is also the launcher's rank there.
local function write_order(path, machine, world)
  local places = 0
  for _, level in ipairs(machine:levels()) do
    if not level.crossing then places = level.domains or 0 end
  end
  if places ~= world then
    text.refuse(1, "%s: a .lua file needs a rank on every place of the machine: %d places, %d ranks", path, places,
                world)
  end
  host.write(path, function(put)
    put "world:order {"
    for rank = 0, world - 1 do put((rank > 0 and ",%d" or " %d"):format((machine:seat(rank)))) end
    put " }\n"
  end)
end

local function write_ranks(path, machine, world)
  if ending(path) == ".json" then return host.write(path, machine:json()) end
  (ending(path) == ".lua" and write_order or write_hosts)(path, machine, world)
end

local function output(name, word)
  local format = ending(word)
  if FORMATS[format] or format == ".lua" or format == ".json" then return word end
  text.usage("%s is a file that ends with rankfile, .hosts, .nodes, .lua or .json, not '%s'", name, word)
end

-- What groups cross ------------------------------------------------------------------------------

-- Return the domain that most bytes leave, or nil if no bytes leave a domain.
local function busiest(domains)
  local most
  for i, sent in ipairs(domains) do
    if sent > (most and domains[most] or 0) then most = i end
  end
  return most and { domain = most - 1, bytes = domains[most] }
end

-- Return the names of families with groups of several ranks that all lie in one domain of a level.
local function inside(placed, level)
  local list = {}
  for _, name in ipairs(placed.names) do
    local family = placed.plan:family(name)
    if family.largest > 1 and placed.families[name].levels[level].crossing == 0 then list[#list + 1] = name end
  end
  return list
end

-- Return hints for NCCL: the families whose groups are inside one NVLink domain, where NVLink SHARP (NVLS) can reduce;
-- by rail level, the families whose groups are on one rail; and environment variables that NCCL and DeepEP read.
local function nccl_of(placed)
  local machine, level, each = placed.machine, placed.machine:nvlink_level()
  local rails, variables, ranks = {}, {}, 0
  for _, one in ipairs(placed.levels) do
    if one.crossing then rails[one.name] = inside(placed, one.name) end
    if one.name == level then ranks = one.places end
  end
  if each and each > 1 and placed.plan.world % each == 0 then
    variables.NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN = tostring(each)
  end
  variables.NCCL_TOPO_FILE = machine:nccl_topology()
  return { nvlink = { level = level, ranks = ranks, inside = inside(placed, level) }, rails = rails,
           variables = variables }
end

-- Count what the families cross at each level of a machine, and the bytes that they send there if `traffic` is given.
local function count(plan, machine, names, traffic)
  local placed = { plan = plan, machine = machine, names = names, levels = machine:levels(), families = {},
                   busiest = {} }
  for _, name in ipairs(names) do placed.families[name] = { levels = {} } end
  for _, level in ipairs(placed.levels) do
    local sent = {}
    if traffic then
      local domains
      sent, domains = machine:leaving(plan, level.name, traffic, names)
      local most = busiest(domains)
      if most then
        most.name = machine:domain_name(level.name, most.domain)
        most.seconds = not level.crossing and level.bandwidth > 0 and most.bytes / level.bandwidth or nil
      end
      placed.busiest[level.name] = most
    end
    for _, name in ipairs(names) do
      local counts = machine:counts(plan:family(name), level.name)
      counts.touched, counts.bytes = nil, sent[name]
      placed.families[name].levels[level.name] = counts
    end
  end
  placed.nccl = nccl_of(placed)
  return placed
end

local function put_json(placed, by)
  json.put({
    machine = placed.machine:text(), world = placed.plan.world, families = placed.families, busiest = placed.busiest,
    nccl = placed.nccl, traffic = by,
  }, { named = true, families = named, busiest = named,
       nccl = { named = true, rails = named, variables = named } })
end

local function put_families(placed, sends)
  local wide, wide_level = 6, 5
  for _, name in ipairs(placed.names) do wide = math.max(wide, #name) end
  for _, level in ipairs(placed.levels) do wide_level = math.max(wide_level, #level.name) end
  text.printf("\n%s  %s  %12s %12s %12s  %s%s\n", text.padded("family", wide), text.padded("level", wide_level),
              "inside", "crossing", "edges", "members a domain", sends and "      bytes" or "")
  for _, name in ipairs(placed.names) do
    for i, level in ipairs(placed.levels) do
      local counts = placed.families[name].levels[level.name]
      text.printf("%s  %s  %12d %12d %12d  %16.4g", text.padded(i == 1 and name or "", wide),
                  text.padded(level.name, wide_level), counts.inside, counts.crossing, counts.edges, counts.members)
      if sends then text.printf("  %9s", counts.bytes and bytes(counts.bytes) or "") end
      text.put "\n"
    end
  end
end

local function put_busiest(placed)
  local label = "busiest"
  for _, level in ipairs(placed.levels) do
    local most = placed.busiest[level.name]
    if most then
      local name, at = most.name and (" (%s)"):format(host.shown(most.name)) or "", ""
      if most.seconds then
        at = (", %.3g s at its link's %s"):format(most.seconds, level.link:match "^%[([^],]*)")
      end
      if label ~= "" then text.put "\n" end
      text.wrap(label, ("%s %d%s: %s cross its bounds%s"):format(level.name, most.domain, name, bytes(most.bytes), at))
      label = ""
    end
  end
end

local function put_nccl(placed)
  local nccl = placed.nccl
  local function names(list) return list[1] and table.concat(list, ", ") or "no family" end
  text.put "\n"
  text.wrap("nccl", ("inside one NVLink domain, a %s, where NVLink SHARP can reduce: %s"):format(
    nccl.nvlink.level, names(nccl.nvlink.inside)))
  for _, level in ipairs(placed.levels) do
    if level.crossing then
      text.wrap("", ("on one %s, whatever nodes they cross: %s"):format(level.name, names(nccl.rails[level.name])))
    end
  end
  for _, name in ipairs { "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN", "NCCL_TOPO_FILE" } do
    if nccl.variables[name] then text.wrap("", name .. "=" .. nccl.variables[name]) end
  end
end

local function show(of)
  local plan = recipe.plan(of)
  local machine = recipe.required_machine(of, plan)
  local sends, traffic = sending.new(of), nil
  -- counting the traffic of a step evaluates the step for every rank
  if of.traffic or plan.traffic or plan.world <= RANKS then traffic = sending.traffic(sends, plan) end
  local placed = count(plan, machine, of.family and recipe.families(plan, of.family) or plan.families, traffic)
  if of.json then
    put_json(placed, traffic and sends.by)
  else
    text.head(plan)
    text.machine(machine:text())
    if sends.by == "step" then
      text.wrap("traffic", sending.text(sends))
    elseif sends.why then
      text.wrap("traffic", ("not counted: the recipe's step is refused (%s)"):format(sends.why))
    end
    put_families(placed, traffic)
    put_busiest(placed)
    put_nccl(placed)
  end
  if of.output then write_ranks(of.output, machine, plan.world) end
end

-- The search -------------------------------------------------------------------------------------

-- Return the level whose bytes are compared: the farthest level that any of the best candidates crosses, or the first.
local function level_of(found)
  for _, level in ipairs(found.levels) do
    for _, candidate in ipairs(found.best) do
      if candidate.bytes[level] > 0 then return level end
    end
  end
  return found.levels[1]
end

-- Return the level at which orders of nodes are compared: the farthest level that groups cross with the nodes as
-- listed, or the last.
local function hosts_level(found)
  for _, level in ipairs(found.levels) do
    if found.hosts.arrival[level] > 0 then return level end
  end
  return found.levels[#found.levels]
end

-- Return for the JSON which node has which ranks: the nodes in the order of their ranks, the place of each rank, and
-- the costs of three orders of nodes.
local function hosts_json(found)
  local hosts, level, order, ranks = found.hosts, hosts_level(found), {}, {}
  for rank = 0, found.of.world - 1 do
    local place, index, _, name = hosts.machine:seat(rank)
    ranks[rank + 1] = place
    if rank % found.machine:node_size() == 0 then order[#order + 1] = name or index end
  end
  return { level = level, arrival = hosts.arrival[level], sorted = hosts.sorted[level], cost = hosts.cost.bytes[level],
           bound = hosts.cost.bound[level], order = order, ranks = ranks }
end

local function put_found_json(found)
  local level, best = level_of(found), {}
  for i, candidate in ipairs(found.best) do
    local parameters = {}
    for k, free in ipairs(found.free) do parameters[free.name] = free.value(candidate.at[k]) end
    local cost = candidate.value or found.objective == "time" and candidate.seconds or candidate.bytes[level]
    best[i] = { parameters = parameters, cost = cost + 0.0, levels = candidate.bytes, bound = candidate.bound,
                seconds = found.timed and candidate.seconds or nil,
                present = candidate == found.present or nil, alike = candidate.alike }
  end
  json.put({
    machine = found.machine:text(), world = found.of.world, objective = found.objective, level = level,
    evaluated = found.evaluated, refused = found.refused, exhaustive = found.whole, best = best,
    traffic = found.sending.by, assumed = found.sending.by == "assumed" and sending.text(found.sending) or nil,
    stopped = found.stopped or nil, step_seconds = found.step_seconds, pruned = found.pruned,
    estimate = found.sending.estimate, free_computes = found.sending.free or nil,
    bound = found.least and found.least[level], hosts = found.hosts and hosts_json(found),
  }, { named = true, best = { named = true, parameters = named } })
end

local function put_evaluated(found)
  local refused = found.refused > 0 and (" (%d of them refused)"):format(found.refused) or ""
  local words = ("%d combination%s%s"):format(found.evaluated, text.plural(found.evaluated), refused)
  if found.pruned then
    words = words .. ("; %.0f others are left out: with their sizes every order costs more"):format(found.pruned)
  elseif found.whole then
    words = words .. ", all there are"
  end
  if found.stopped then
    words = words .. (" of %.0f, stopped after %d s"):format(found.all, found.of.limit)
  elseif not found.whole then
    words = words .. (" of %.0f"):format(found.all)
            .. (found.least and ", with some orders for each choice of sizes" or ", by local search, several starts")
  end
  text.wrap("evaluated", words)
end

local function put_best(found)
  local policy = found.policy and found.objective
  for _, level in ipairs(found.levels) do text.printf("%12s", level) end
  if found.timed then text.printf("%12s", "seconds") end
  if policy then text.printf("%12.11s", policy) end
  text.put "  parameters\n"
  for _, candidate in ipairs(found.best) do
    for _, level in ipairs(found.levels) do text.printf("%12s", bytes(candidate.bytes[level])) end
    if found.timed then text.printf("%12.4g", candidate.seconds) end
    if policy then text.printf("%12.6g", candidate.value) end
    text.put " "
    for k, free in ipairs(found.free) do text.put(" ", free.name, "=", free.value(candidate.at[k])) end
    local notes, n = {}, candidate.alike
    if candidate == found.present then notes[1] = found.listed and "listed first" or "present" end
    if n then notes[#notes + 1] = ("%d more order%s the same"):format(n, n == 1 and " costs" or "s cost") end
    text.put(notes[1] and ("  (%s)"):format(table.concat(notes, "; ")) or "", "\n")
  end
end

local function put_found(found)
  local assumed = found.sending.by == "assumed" and "assumed: " or ""
  text.wrap("traffic", assumed .. sending.text(found.sending))
  text.machine(found.machine:text())
  put_evaluated(found)
  text.put "\n"
  put_best(found)
  local seconds, estimate = found.step_seconds, found.sending.estimate
  if estimate then
    text.put "\n"
    text.wrap("time", (seconds and ("moongrid step prices the first at %.4g s, and the present at %.4g s: an "):format(
      seconds.first, seconds.present) or "") .. overview.estimate(estimate, ", so it does not tell which is faster"))
  end
  if found.sending.free then
    text.wrap("computes", "take no time here: the machine does not have the flops of its GPUs; --flops 400T gives them")
  end
  local level, first = level_of(found), found.best[1]
  local bound = first.bound[level]
  text.put "\n"
  text.wrap("bound", ("with the best sizes every order of ranks sends at least %s across a %s%s%s"):format(
    bytes(bound), level, bound > 0 and (", the best plan %.3g times that"):format(first.bytes[level] / bound) or "",
    found.least and "; with any sizes at least " .. bytes(found.least[level]) or ""))
  local hosts = found.hosts
  if not hosts then return end
  level = hosts_level(found)
  local words = "%s across a %s, with the best parameters; %s as the nodes are listed, %s sorted by place"
  text.wrap("hosts", words:format(
    bytes(hosts.cost.bytes[level]), level, bytes(hosts.arrival[level]), bytes(hosts.sorted[level])))
end

local function show_search(of)
  local found = search(of)
  if of.output then write_ranks(of.output, found.hosts and found.hosts.machine or found.machine, of.world) end
  if of.json then put_found_json(found) else put_found(found) end
  if not found.stopped then return end
  text.refuse(3, "--limit %d: %d of %.0f combinations were evaluated; the table has the best of them", of.limit,
              found.evaluated, found.all)
end

local function run(of)
  line.needs(of, of.world)
  if of.objective and not of.search then text.usage "--objective is for --search order" end
  if of.search and of.search ~= "order" then text.usage("--search is order, not '%s'", of.search) end
  if of.limit and not of.search then text.usage "--limit is for --search order" end
  if of.flops and not of.search then text.usage "--flops is for --search order" end
  if of.search and of.family then text.usage "--search takes no --family: every family counts" end
  if of.search then show_search(of) else show(of) end
end

return {
  name = "place",
  place = 110,
  takes = "RECIPE --world N --machine M [NAME=VALUE ...]",
  summary = "what groups cross on a machine",
  usage = "moongrid place RECIPE --world N --machine M [NAME=VALUE ...] [--family F,G] [--traffic T] [--json]\n"
    .. "       moongrid place RECIPE --world N --machine M [NAME=A,B,... ...] --search order [--objective "
    .. "bytes|time|POLICY]",
  about = "For each family and level of the machine, count the groups inside one domain, the groups that cross, and\n"
    .. "the edges between two domains. An edge joins consecutive members of a group, and also the last and the\n"
    .. "first if the group has more than two. Ranks fill the machine in order, nearest level first, unless the\n"
    .. "machine lists their places. A machine may be larger than the world. On regular machines a formula gives the\n"
    .. "numbers, at any size.",
  notes = "With traffic (--traffic, else the recipe's field `traffic`, else that of its step) also count the bytes on\n"
    .. "these edges, and name for each level the domain whose bounds most bytes cross. Collectives run in rings:\n"
    .. "an all_reduce of n ranks puts 2 (n-1)/n of its bytes on each edge, an all_gather or reduce_scatter\n"
    .. "(n-1)/n. An all_to_all sends between all pairs.\n"
    .. "Hints for NCCL follow: families inside one NVLink domain, those on one rail, variables to set.",
  example = "moongrid place megatron --world 64 tp=8 pp=2 --machine dgx-h100",
  recipe = true,
  options = {
    line.world "ranks in the world",
    { "family", "F,G", help = "only these families" },
    { "traffic", "T",
      help = 'what families send in a step, as "tp = 2 GiB all_reduce x 96; dp = 4 GiB reduce_scatter"; or the word '
        .. "step, for what the recipe's step sends. Default: the recipe's traffic, else that of its step (up to 65536 "
        .. "ranks, or for a search). Without either a search assumes an all_reduce of 1 GiB for each communicator" },
    { "search", "order",
      help = "find the cheapest plan instead. Try all orders of a parameter that holds an order, or those listed "
        .. "(order=tp-dp-pp,dp-tp-pp), the listed values of sizes (tp=2,4,8), and what the recipe declares by "
        .. "param.order and param.choice. Print the best 10 and the present one; of orders that cost the same, one" },
    { "objective", "O",
      help = "what to minimize. bytes: those across the farthest level that groups cross, then across the next. time: "
        .. "the price of moongrid step; if the traffic is not the step's, the busiest link of each level, summed. Or a "
        .. "policy of the recipe, which gets q.bytes and q.bound by level, and q.seconds, and returns a number" },
    { "flops", "X", line.flops, help = "flops of a GPU in a second, as 400T, if the machine does not have them; "
                                       .. "if they are not known, computes take no time" },
    { "limit", "SECONDS", line.number,
      help = "end the search after this time, print the best found, and exit with code 3" },
    { "output", "FILE", output, letter = true,
      help = "write where ranks run: rankfile (Open MPI), .hosts (a line for each rank: SLURM_HOSTFILE, MPICH), .nodes "
        .. "(hosts by node rank: torchrun, JAX), .lua (world:order), .json (for --machine)" },
    { "json", help = "one JSON object" },
  },
  run = run,
}
