-- SPDX-License-Identifier: MIT
--
-- moongrid plan: plan a recipe for any world size, without a launcher.

local doubts = require "command.base.doubts"
local groups = require "pictures.groups"
local host = require "host"
local line = require "command.base.line"
local mg = require "moongrid"
local overview = require "command.base.overview"
local recipe = require "command.base.line_recipe"
local text = require "command.base.text"

local RUNS = 8 -- the most runs of indices to list for an axis
local SOME, MANY = 8, 4096 -- the most groups of a family to list: if every family is listed, if families are named

-- Budgets -------------------------------------------------------------------------------

local FEWER = "fewer channels (nccl = { max_ctas = ... }) take less"
local LIMITS = {
  { "sms", "blocks", "SMs of a GPU at once",
    "fewer channels (nccl = { max_ctas = ... }) of concurrent families take less" },
  { "nvls-slots", "nvls_slots", "multicast slots of a node",
    "fewer communicators take fewer; with NCCL_NVLS_ENABLE=0 they take none" },
  { "files", "files", "file descriptors of a process", FEWER },
}

local function check_budgets(of, plan)
  local memory, asked = of["gpu-memory"], of["gpu-memory"] ~= nil
  for _, limit in ipairs(LIMITS) do asked = asked or of[limit[1]] ~= nil end
  if not asked then return end
  local r = plan:resources(of.rank, of.site)
  if memory and r.created > memory << 20 then
    text.refuse(3, "%d NCCL communicator%s may take %.0f MiB of a GPU, the budget is %d MiB; %s", r.communicators,
                text.plural(r.communicators), r.created / (1 << 20), memory, FEWER)
  end
  for _, limit in ipairs(LIMITS) do
    local budget, n = of[limit[1]], r[limit[2]]
    if budget and n > budget then
      text.refuse(3, "NCCL may need %d %s, the budget is %d; %s", n, limit[3], budget, limit[4])
    end
  end
end

-- A tensor ------------------------------------------------------------------------------

-- Print which part of a tensor each rank holds; with --rank, only the part of that rank.
local function put_tensor(of, plan)
  local name, first, last = of.tensor, of.rank or 0, of.rank or plan.world - 1
  line.all_ranks("a list of parts", last - first + 1)
  local axes = plan:tensor(name).axes
  for rank = first, last do
    local part = plan:tensor(name, rank, RUNS)
    if not part then
      text.printf("%9d  nothing\n", rank)
    else
      local words = {}
      for i, axis in ipairs(axes) do
        local runs = {}
        for k, run in ipairs(part.runs[i]) do runs[k] = (" %d..%d"):format(run[1], run[1] + run[2] - 1) end
        if part.nruns[i] == 0 then runs[1] = " none" end
        if part.nruns[i] > RUNS then runs[#runs + 1] = (" ... (%d runs)"):format(part.nruns[i]) end
        words[i] = axis .. table.concat(runs)
      end
      text.printf("%9d %14d bytes, copy %d: %s", rank, part.bytes, part.copy, table.concat(words, ", "))
      if (part.slice or 0) > 0 then
        text.printf("; of these only %d elements, from element %d on; in the rank's slice of %d elements they "
                    .. "begin at %d",
                    part.elements, part.first, part.slice, part.offset)
      end
      text.put "\n"
    end
  end
end

-- A rank --------------------------------------------------------------------------------

local function longest(names)
  local width = 6
  for _, name in ipairs(names) do width = math.max(width, #name) end
  return width
end

-- Print the coordinates of a rank in each grid, as "dp 0, pp 1", or "-" if the rank is outside the grid.
local function put_coordinates(plan, rank)
  local width = longest(plan.grids)
  for i, name in ipairs(plan.grids) do
    local grid = plan:grid(name)
    local dims, column = grid:dims(), width
    text.put(i == 1 and "\n" or "", text.padded(name, width))
    if not grid:coords(rank) then text.put "  -" end
    for d = 1, grid:coords(rank) and #dims or 0 do
      local word = ("%s %d%s"):format(dims[d][1], grid:coord(rank, dims[d][1]), d < #dims and "," or "")
      if column + #word + 2 > text.fold then
        text.put("\n", (" "):rep(width))
        column = width
      end
      word = (d == 1 and "  " or " ") .. word
      text.put(word)
      column = column + #word
    end
    text.put "\n"
  end
end

local function put_members(plan, rank)
  local width = longest(plan.families)
  local row = "%s  %7s  %8s  %6s  %6s  %s"
  text.put("\n", text.on, row:format(text.padded("family", width), "group", "position", "before", "after", "ranks"),
           text.off, "\n")
  for _, name in ipairs(plan.families) do
    local family = plan:family(name)
    local places = family:locate(rank, "all")
    if #places == 0 then text.printf("%s  %7s\n", text.padded(name, width), "-") end
    for _, place in ipairs(places) do
      local group, position = place[1], place[2]
      local _, size = family:member(group, position)
      local before = position > 0 and family:member(group, position - 1) or "-"
      local after = position + 1 < size and family:member(group, position + 1) or "-"
      text.put(row:format(text.padded(name, width), group, ("%d of %d"):format(position, size), before, after,
                          groups.one(family, group, text.columns - width - 37)), "\n")
    end
  end
end

local function put_rank(of, plan)
  local schedule = plan:schedule(of.rank)
  text.head(plan, ("rank %d of "):format(of.rank), of.all)
  put_coordinates(plan, of.rank)
  put_members(plan, of.rank)
  text.put(schedule == "" and "\ncreates no communicator\n" or "\ncreates, in this order\n")
  text.put_lines(schedule)
end

-- Groups --------------------------------------------------------------------------------

local function put_family(name, family, most)
  local count = family.count
  local wide = #tostring(count)
  text.put(text.on, name, text.off, ": ", groups.count(family),
           family.coverage == "cover" and " that share ranks" or "", "\n")
  local function put(group)
    text.printf("  %" .. wide .. "d  %s\n", group, groups.one(family, group, text.columns - wide - 4))
  end
  local whole = count <= most + 2
  for group = 0, (whole and count or most) - 1 do put(group) end
  if whole then return end
  text.printf("  %" .. wide .. "s  %d more\n", "...", count - most - 1)
  put(count - 1)
end

local function put_groups(plan, list)
  for i, name in ipairs(list ~= "" and recipe.families(plan, list) or plan.families) do
    if i > 1 then text.put "\n" end
    put_family(name, plan:family(name), list ~= "" and MANY or SOME)
  end
end

-- ---------------------------------------------------------------------------------------

local FORMATS = { "json", "rules", "schedule", "text" }

-- Refuse options that exclude each other.
local function check(of)
  local formats = {}
  for _, name in ipairs(FORMATS) do formats[#formats + 1] = of[name] and name end
  if of.groups and (#formats > 0 or of.rank) then
    text.usage "--family and --groups take no --rank, --json, --rules, --schedule or --text"
  end
  if of.groups and of.tensor then text.usage "--family and --groups take no --tensor" end
  if #formats > 1 then text.usage "--json, --rules, --schedule and --text exclude each other" end
  if of.rank and (of.text or of.rules) then
    text.usage("--%s prints the whole plan; it takes no --rank", of.text and "text" or "rules")
  end
  if of.tensor and #formats > 0 then text.usage "--tensor is shown as lines; --json has all tensors" end
  line.beyond(of.rank or 0, of.world)
end

local function show(of, plan)
  if of.tensor then return put_tensor(of, plan) end
  if of.json then return overview.json(plan, of.rank, of.site) end
  if of.rules then return plan:rules(host.put) end
  if of.schedule then return plan:schedule(of.rank, host.put) end
  if of.text then return plan:text(host.put) end
  if of.groups then return put_groups(plan, of.groups) end
  if of.rank then return put_rank(of, plan) end
  overview.put(plan, of)
end

local function run(of)
  line.needs(of, of.world)
  of.groups = of.family or of.groups
  check(of)
  if text.lines == 0 then text.fold = math.maxinteger end -- in a pipe each family is on one line, for grep and pagers
  local plan, loaded = recipe.plan(of)
  of.site = overview.site()
  of.site.machine_ranks = overview.machine_ranks(of, plan)
  check_budgets(of, plan)
  show(of, plan)
  overview.unheeded(plan)
  overview.notes(plan)
  if loaded then doubts.note(of, plan, loaded) end
end

local tensor = rawget(mg, "tensor") and {
  usage = "\n       moongrid plan RECIPE --world N [NAME=VALUE ...] --tensor T [--rank R]",
  option = { "tensor", "T", help = "which elements of a tensor each rank holds (with --rank: only that rank)" },
}

local options = {
  line.world "ranks in the world, 1 to 2147483647",
  { "rank", "R", line.index, help = "what one rank has: its coordinates, groups and neighbours, and what it creates" },
  { "family", "F,G", help = "all groups of these families; of very many, the first 4096 and the last" },
  { "groups", maybe = true, help = "the first 8 groups of every family, and the last" },
  { "all", help = "also show the parameters that have their default values" },
  { "json", help = "one JSON object with all groups (with --rank: the groups of that rank)" },
  { "rules", help = "save the plan: one JSON object with only its rules, small at any world size" },
  { "schedule", help = "the order in which communicators are created" },
  { "text", help = "the canonical text: a line for each thing in the plan" },
  { "gpu-memory", "MIB", line.number,
    help = "refuse a plan whose NCCL communicators may take more GPU memory than this when they are made" },
  { "sms", "N", line.number, help = "... whose NCCL kernels may run on more SMs than this at once (an H100 has 132)" },
  { "nvls-slots", "N", line.number,
    help = "... that may take more multicast slots of a node than this (8 H200 have 128)" },
  { "files", "N", line.number, help = "... that may take more file descriptors of a process than this" },
}
if tensor then table.insert(options, 10, tensor.option) end

return {
  name = "plan",
  place = 10,
  takes = "RECIPE --world N [NAME=VALUE ...]",
  summary = "what groups a recipe makes",
  usage = "moongrid plan RECIPE --world N [NAME=VALUE ...] [--rank R] [--family F,G | --groups]\n"
    .. "       [--json | --rules | --schedule | --text]\n"
    .. "       moongrid plan SAVED ..." .. (tensor and tensor.usage or ""),
  about = "Evaluate a recipe (a file, a bundled recipe by its name, or - for standard input) for a world\n"
    .. "of N ranks and show its groups. Nothing is created and no launcher is needed. Or show a plan\n"
    .. "that --json or --rules saved (a file, or -), which has its own world and parameters.",
  notes = "\"GPU memory\" is the most that NCCL itself allocates on the GPU of one rank: some when it makes\n"
    .. "a communicator, more when the communicator first runs a ring, as most collectives do. Trees, all-to-all,\n"
    .. "and reduction in the switch (NVLink SHARP) take more each. This memory depends on the number of ranks on a\n"
    .. "node: that of the machine (--machine, or the recipe's), else the recipe's parameter gpus_per_node, else 8.\n"
    .. "With 1 rank on a node there is no NVLink.",
  example = "moongrid plan megatron --world 16 tp=2 pp=2",
  recipe = true,
  options = options,
  run = run,
}
