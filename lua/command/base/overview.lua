-- SPDX-License-Identifier: MIT
--
-- overview: a plan on a screen, and the notes about it.

local groups = require "pictures.groups"
local host = require "host"
local recipe = require "command.base.line_recipe"
local reports = require "pictures.reports"
local sorted = require "command.base.sorted"
local text = require "command.base.text"

local M = {}

local EXACT, LEAST_GROUP = 4096, 12 -- most ranks to count one by one; least columns for a group
local SPARES, TENSORS = 16, 12 -- most spares and tensors to list
local SMS, SLOTS, RANKS = 132, 128, 8 -- SMs of an H100; multicast slots of 8 H200; ranks of a node

local plural, padded = text.plural, text.padded
local function mib(bytes) return ("%.0f"):format(bytes / (1 << 20)) end

-- Return a text about the source and the error of the seconds of a price; `e` is the field `estimate` of the price.
-- `unless` is appended if no calibration gives the error.
function M.estimate(e, unless)
  if e.error then return ("estimate from %s, with a mean error of %.1f%%"):format(e.from, 100 * e.error) end
  if unless then return M.estimate(e) .. unless end
  if not e.longer then return ("estimate from %s; its error is not known"):format(e.from) end
  return ("estimate from %s; published runs took %.4g to %.4g times as long"):format(e.from, e.longer[1], e.longer[2])
end

-- Return the shape for json.put of what a step sends and costs: tables by name are objects, even if they are empty.
function M.step_shape(all)
  local named = { named = true }
  local shape = { named = true, families = { named = true }, memory = { named = true, by = named }, fits = named }
  for name in sorted(all.families) do
    shape.families[name] = { named = true, levels = named, algorithms = named }
  end
  return shape
end

-- What NCCL needs ---------------------------------------------------------------------

local IGNORED = { "NCCL_BUFFSIZE", "NCCL_LL_BUFFSIZE", "NCCL_LL128_BUFFSIZE", "NCCL_NVLS_CHUNKSIZE",
                  "NCCL_NVLS_NCHANNELS", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_CUMEM_ENABLE" }

-- Read a number as NCCL does with C's functions: 010 is 8, and text after the digits is ignored.
local function number(word)
  local sign, digits = word:match "^%s*([+-]?)(.*)$"
  local n
  if digits:find "^0[xX]%x" then
    n = tonumber(digits:match "^..(%x+)", 16)
  elseif digits:find "^0" then
    n = tonumber(digits:match "^[0-7]+", 8)
  else
    n = math.tointeger(tonumber(digits:match "^%d+" or "0")) or math.maxinteger
  end
  return sign == "-" and -n or n
end

-- Return the options of families that NCCL's environment variables override, for plan:resources. Print a note for each
-- variable that changes what NCCL needs. Recipes cannot see the environment.
function M.site()
  local site = { machine_ranks = RANKS }
  local function note(name, what) text.note("%s=%s in the environment %s", name, os.getenv(name), what) end
  for _, option in ipairs { "min_ctas", "max_ctas" } do
    local name = "NCCL_" .. option:upper()
    local n = number(os.getenv(name) or "")
    if n > 0 then
      site[option] = math.min(n, 64)
      note(name, ("overrides %s of every family; the numbers for NCCL include that"):format(option))
    end
  end
  local sharp = os.getenv "NCCL_NVLS_ENABLE"
  if sharp and number(sharp) == 0 then
    site.no_nvls = true
    note("NCCL_NVLS_ENABLE", "turns NVLink SHARP off; the numbers for NCCL include that")
  end
  for _, name in ipairs(IGNORED) do
    if os.getenv(name) then note(name, "changes what NCCL needs; the numbers for NCCL ignore that") end
  end
  return site
end

-- Return the number of ranks of a node: from --machine, from the machine that the recipe read, from a parameter, else
-- 8.
function M.machine_ranks(of, plan) return reports.machine_ranks(plan, recipe.node_size(of, plan)) end

local function put_resources(plan, of)
  local r = plan:resources(nil, of.site)
  local n, ranks, sharp = r.communicators, r.machine_ranks, ""
  local function wrap(label, format, ...) text.wrap(label, format:format(...)) end
  wrap("GPU memory", "with NCCL at most %s MiB a rank for %d communicator%s, %s MiB more with their first use",
       mib(r.created), n, plural(n), mib(r.ring))
  if n == 0 then return end
  if r.nvls_created > 0 then
    sharp = (", NVLink SHARP %s (and %s when they are made)"):format(mib(r.nvls), mib(r.nvls_created))
  end
  wrap("", "then trees %s MiB, messages between all members %s%s", mib(r.tree), mib(r.p2p), sharp)
  wrap("NCCL takes", "%d of %d SMs at once, %d of %d multicast slots, %d file descriptors, with %d rank%s a node%s",
       r.blocks, of.sms or SMS, r.nvls_slots, of["nvls-slots"] or SLOTS, r.files, ranks, plural(ranks),
       r.sampled and " (of three nodes)" or "")
end

-- Families ------------------------------------------------------------------------------

-- Describe how the communicators of a family are made, or with which family it shares them.
local function describe(plan, name, family)
  local c, words = plan:communicators(name), "own"
  if not c.needed then
    words = "none needed"
  elseif not c.made then
    words = "none made"
  elseif c.shares then
    words = "shared with " .. c.shares
  elseif c.own < family.count and family.size and family.size > 1 then
    words = ("%d own, %d shared"):format(c.own, family.count - c.own)
  end
  return c.options == "" and words or words .. ", " .. c.options
end

local function right(word, width) return (" "):rep(width - #word) .. word end

-- Print a line for each family; put a text that is too long for the column of communicators on a line of its own.
local function put_families(plan)
  local rows, name, count, size, group = {}, 6, 6, 4, 11 -- the columns, and their widths
  for i, called in ipairs(plan.families) do
    local family = plan:family(called)
    local row = { of = family, name = called, count = tostring(family.count),
                  size = (family.size and "" or "<=") .. family.largest,
                  first = family.count > 0 and groups.one(family, 0, text.columns // 2) or "-" }
    name, count, size = math.max(name, #called), math.max(count, #row.count), math.max(size, #row.size)
    group = math.max(group, #row.first)
    rows[i] = row
  end
  local room = text.fold - name - count - size - 26 -- less the gaps and the usual width of the last column
  if group > room then group = math.max(room, LEAST_GROUP) end
  local function columns(a, b, c, d)
    return padded(a, name) .. "  " .. right(b, count) .. "  " .. right(c, size) .. "  " .. padded(d, group)
  end
  text.put("\n", text.on, columns("family", "groups", "size", "first group"), "  communicator", text.off, "\n")
  if #rows == 0 then text.put "none: the recipe makes no groups with these parameters\n" end
  for _, row in ipairs(rows) do
    local first = #row.first > group and groups.one(row.of, 0, group) or row.first
    local line, words = columns(row.name, row.count, row.size, first), describe(plan, row.name, row.of)
    if #first > group or #line + 2 + #words > text.fold then -- right-aligned on the next line
      text.put(line, "\n", (" "):rep(math.max(name + 2, text.fold - #words)), words, "\n")
    else
      text.put(line, "  ", words, "\n")
    end
  end
end

-- What else is in a plan -----------------------------------------------------------------

-- Print a line for each of the first tensors: its bytes, the bytes of the largest part, the copies of each part, and
-- the number of ranks without a part.
local function put_tensors(plan)
  local tensors, wide = recipe.field(plan, "tensors") or {}, 16
  local shown = #tensors <= TENSORS + 1 and #tensors or TENSORS
  for i = 1, shown do wide = math.max(wide, #tensors[i]) end
  for i = 1, shown do
    local name = tensors[i]
    if i == 1 then
      text.printf("\n%s%s %14s %14s %9s %9s  %s%s\n", text.on, padded("tensor", wide), "bytes", "of a rank", "copies",
                  "without", "rule", text.off)
    end
    local t = plan:tensor(name)
    text.printf("%s %14d %14d %9d %9d  %s\n", padded(name, wide), t.bytes, t.largest, t.copies, t.without, t.rule)
  end
  if shown < #tensors then
    text.printf("... %d more tensors: --json lists them, --tensor NAME shows one\n", #tensors - shown)
  end
end

-- Print the machine that the recipe has read, and the laws about it that held.
local function put_machine(plan)
  local machine, laws = recipe.field(plan, "machine"), recipe.field(plan, "laws")
  if not laws then return end
  text.put "\n"
  text.machine(machine)
  for i, law in ipairs(laws) do text.wrap(i == 1 and "laws" or "", law .. " held") end
end

local function put_spares(plan)
  local spares = recipe.field(plan, "spares") or {}
  if #spares == 0 then return end
  text.put "\n"
  text.wrap("spares", ("%d rank%s in no family, to take the place of a lost one: %s%s")
                      :format(#spares, plural(#spares), table.concat(spares, ", ", 1, math.min(#spares, SPARES)),
                              #spares > SPARES and ", ..." or ""))
end

-- Print which families share communicators, what separate communicators would cost, and which families are used at the
-- same time.
local function put_sharing(plan, site)
  local some = false
  for _, one in ipairs(plan:sharing(site)) do
    if one.created > 0 then -- only NCCL's communicators have a cost
      if not some then text.put "\n" end
      text.wrap(some and "" or "sharing", ("%s: %s MiB"):format(table.concat(one.families, " "), mib(one.created)))
      some = true
    end
  end
  if some then
    text.wrap("", "with NCCL, calls on families of one line wait for each other; separate communicators need that much "
                  .. "more memory: concurrent = { ... } in a recipe separates those that are used at the same time")
  end
  for i, list in ipairs(plan.concurrent) do
    if i == 1 then text.put "\n" end
    text.wrap(i == 1 and "concurrent" or "", table.concat(list, ", ") .. ", launched in this order")
  end
end

-- Print the numbers of communicators and groups: of the plan, and the least and most of a rank; in a world of more than
-- EXACT ranks, of rank 0 instead.
local function put_counts(plan)
  local all, communicators, members = plan:counts(), {}, {}
  local function range(list) return list[1] == list[2] and list[1] or ("%d to %d"):format(list[1], list[2]) end
  local function add(list, n) list[1], list[2] = math.min(list[1] or n, n), math.max(list[2] or n, n) end
  local shown = plan.world <= EXACT and plan.world or 1
  for rank = 0, shown - 1 do
    local n = plan:counts(rank)
    add(communicators, n.communicators)
    add(members, n.groups + n.singles)
  end
  text.put "\n"
  text.wrap("in all", ("%d communicator%s for %d group%s; %d group%s of one rank need%s none")
                      :format(all.communicators, plural(all.communicators), all.groups, plural(all.groups), all.singles,
                              plural(all.singles), all.singles == 1 and "s" or ""))
  text.wrap(shown == plan.world and "each rank" or "rank 0",
            ("%s communicator%s for %s group%s"):format(range(communicators), plural(communicators[2]), range(members),
                                                        plural(members[2])))
end

local function put_idle(plan)
  local n, which = plan:idle()
  if n and n > 0 then text.wrap("idle", ("%d rank%s in no group: %s"):format(n, plural(n), which)) end
end

local function put_functions(plan)
  local names = {}
  for i, f in ipairs(plan.functions) do names[i] = f.name .. " = " .. f.version end
  if #names > 0 then text.wrap("functions", table.concat(names, ", ") .. ", of the host that made the plan") end
end

-- Print an overview of a plan. `of` may have `site`, `all` (print every parameter), and budgets.
function M.put(plan, of)
  text.head(plan, "", of.all)
  for i, name in ipairs(plan.grids) do
    if i == 1 then text.put "\n" end
    text.wrap(name, (tostring(plan:grid(name)):sub(6)))
  end
  if #plan.grids > 0 then text.wrap("", "dims are listed fastest-varying first") end
  put_families(plan)
  put_tensors(plan)
  put_machine(plan)
  put_spares(plan)
  put_sharing(plan, of.site)
  put_counts(plan)
  put_idle(plan)
  put_functions(plan)
  put_resources(plan, of)
  text.wrap("digest", plan.digest)
end

-- Print the plan, or the view of a rank, as JSON.
function M.json(plan, rank, site)
  if not text.is_terminal then host.progress(("writing the groups of %d ranks"):format(plan.world)) end
  plan:json(rank, host.put, site)
  host.progress()
end

-- Notes ---------------------------------------------------------------------------------

-- Print a note on options of families that have no effect on a backend (nil: the one that jobs use without NCCL).
function M.unheeded(plan, backend)
  local options, name = plan:unheeded(backend)
  if options ~= "" then text.note("without effect on %s: %s", name, options) end
end

-- Print notes on possible mistakes in a plan.
function M.notes(plan)
  local n, which, allowed = plan:idle()
  if not allowed and n and n > 0 then
    text.note('%d of %d ranks %s in no group: %s; idle = "allow" in a recipe says that this is meant', n, plan.world,
              n == 1 and "is" or "are", which)
  end
  for _, param in ipairs(plan.params) do
    if param.unread and not param.usual then
      text.note("build does not read parameter '%s', so no group depends on it", param.name)
    end
  end
  recipe.note(plan, "")
end

function M.show(plan, json)
  if json then M.json(plan, nil, M.site()) else M.put(plan, { site = M.site() }) end
end

return M
