-- SPDX-License-Identifier: MIT
--
-- What a refused law says is true: random families on random machines. The groups that break a law are counted from
-- lists, the ranks that the message names are looked up, and each remedy that it proposes is applied.

local support = dofile "tests/lua/support.lua"
local mg = require "moongrid"

local seed = tonumber(os.getenv "MOONGRID_SEED") or 20261129
local cases = tonumber(os.getenv "MOONGRID_CASES") or 250
local path = support.file("", ".lua")

local function any(list) return list[math.random(#list)] end

local function divisor(n)
  local list = {}
  for d = 1, n do
    if n % d == 0 then list[#list + 1] = d end
  end
  return any(list)
end

-- A machine: its text; the number of places; `at`, for each place its domain of each level; regular: all nodes are
-- equal; node: the places of one.
local function random_machine()
  local m = { places = 0, at = {}, regular = true, racks = math.random(0, 3), share = math.random(2) }
  local nodes, per, equal = math.random(4), {}, math.random(3) > 1 and math.random(8)
  m.ends = m.racks > 0 and math.random(3) == 1 -- rails end at the rack
  m.nodes = nodes * math.max(1, m.racks)
  for n = 1, m.nodes do per[n] = equal or math.random(8) end
  local width = (math.max(table.unpack(per)) + m.share - 1) // m.share
  for n, gpus in ipairs(per) do
    m.regular = m.regular and gpus == per[1]
    for gpu = 0, gpus - 1 do
      local rack = m.racks > 0 and (n - 1) // nodes or nil
      m.at[m.places] = { gpu = m.places, node = n - 1, rack = rack,
                         rail = gpu // m.share + (m.ends and rack * width or 0) }
      m.places = m.places + 1
    end
  end
  m.node = per[1]
  m.text = ("%snode:%d gpu:%s rail = gpu / %d%s"):format(m.racks > 0 and ("rack:%d "):format(m.racks) or "", nodes,
    m.regular and m.node or table.concat(per, ","), m.share, m.ends and " in rack" or "")
  return m
end

-- Return whether the law holds for the family of `dims` on a grid; the message, and the groups.
local function try(law, machine, world, order, sizes, dims)
  support.write(path, ([[return recipe { idle = "allow", build = function(world)
    local t = topology(world)
    t.f = grid(world, "%s", { a = %d, b = %d, c = %d })("%s")
    return t end }]]):format(order, sizes[1], sizes[2], sizes[3], table.concat(dims, '", "')))
  local plan = mg.load(path):plan(world)
  local holds, why = plan:law(law, machine)
  return holds, why, plan:family "f"
end

-- Return the order with `dims` at one end.
local function order_of(dims, first)
  local is, list = {}, {}
  for _, dim in ipairs(dims) do is[dim] = true end
  for _, part in ipairs { first, not first } do
    for _, dim in ipairs { "a", "b", "c" } do
      if (is[dim] or false) == part then list[#list + 1] = dim end
    end
  end
  return table.concat(list, "-")
end

local breaks = {}
function breaks.within(ranks, level, m)
  for _, rank in ipairs(ranks) do
    if m.at[rank][level] ~= m.at[ranks[1]][level] then return true end
  end
end
function breaks.spread(ranks, level, m)
  local seen = {}
  for _, rank in ipairs(ranks) do
    if seen[m.at[rank][level]] then return true end
    seen[m.at[rank][level]] = true
  end
end
local function rails_of(ranks, node, m)
  local on = {}
  for _, rank in ipairs(ranks) do
    if m.at[rank].node == node then on[m.at[rank].rail] = true end
  end
  return on
end
function breaks.aligned(ranks, _, m)
  for _, rank in ipairs(ranks) do
    for _, other in ipairs(ranks) do
      if not rails_of(ranks, m.at[other].node, m)[m.at[rank].rail] then return true end
    end
  end
end

-- The ranks that a message names, and where it says that they run.
local FACTS <const> = {
  within = "^its rank (%d+) is in %a+ (%d+) and rank (%d+) in %a+ (%d+); (.*)$",
  spread = "^its ranks (%d+) and (%d+) are both in %a+ (%d+); (.*)$",
  aligned = "^its rank (%d+) in node (%d+) is on rail (%d+), and its rank (%d+) in node (%d+) is on rail (%d+); (.*)$",
}

-- Return what is wrong with the facts of a message, or nil; and the advice.
local function facts_fault(kind, level, text, ranks, m)
  local got = { text:match(FACTS[kind]) }
  if not got[1] then return "no facts" end
  for i = 1, #got - 1 do got[i] = math.tointeger(tonumber(got[i])) end
  local has = {}
  for _, rank in ipairs(ranks) do has[rank] = true end
  local one, other = got[1], kind == "within" and got[3] or kind == "spread" and got[2] or got[4]
  local where, there = m.at[one], m.at[other]
  local advice = got[#got]
  if not has[one] or not has[other] or one == other then return "no such ranks", advice end
  if kind == "within" then
    return not (where[level] == got[2] and there[level] == got[4] and got[2] ~= got[4]) and "domains", advice
  elseif kind == "spread" then
    return not (where[level] == got[3] and there[level] == got[3]) and "domain", advice
  end
  local differ = not rails_of(ranks, got[5], m)[got[3]] or not rails_of(ranks, got[2], m)[got[6]]
  return not (where.node == got[2] and where.rail == got[3] and there.node == got[5] and there.rail == got[6]
    and got[2] ~= got[5] and differ) and "rails", advice
end

-- Return how many domains of a level the first places fill, and touch.
local function filled(level, world, m)
  local all, here, full, touched = {}, {}, 0, 0
  for place = 0, m.places - 1 do
    local d = m.at[place][level]
    all[d] = (all[d] or 0) + 1
    if place < world then here[d] = (here[d] or 0) + 1 end
  end
  for d, n in pairs(here) do full, touched = full + (n == all[d] and 1 or 0), touched + 1 end
  local most, domains = 0, 0
  for _, n in pairs(all) do most, domains = math.max(most, n), domains + 1 end
  return { full = full, touched = touched, most = most, domains = domains }
end

-- Return what is wrong with an advice, or nil. `again(order, machine)` tries the law once more.
local function advice_fault(level, advice, c, again)
  local m, size, fill = c.m, c.family.largest, filled(level, c.world, c.m)
  local number = math.tointeger(tonumber(advice:match "at most (%d+)$"))
  if number then
    if size <= number then return "the group is not larger" end
    if number ~= (advice:find "^the largest" and fill.most or advice:find "^there" and fill.domains
                  or advice:find " are in " and fill.touched or advice:find " fill " and fill.full) then
      return "the number"
    end
    if advice:find " fill " and size * fill.most <= c.world then return "there is room" end
  elseif advice:find "^its members" or advice:find "^groups of" then
    local first, divide = advice:find "put its dims first", advice:match "groups of %d+ do not divide.*"
    local apart = math.tointeger(tonumber(advice:match "^its members are (%d+) apart"))
    if apart and c.ranks[2] - c.ranks[1] ~= apart then return "how far apart" end
    if first and not divide and not again(order_of(c.dims, true)) then return "not if its dims are first" end
    if not divide then return nil end
    local group, places, below = divide:match "of (%d+) do not divide the (%d+) places of a %a+: use groups of (%d+)"
    local above, idle = divide:match " or (%d+)", divide:match "leave (%d+) place"
    if places % group == 0 or places % below ~= 0 or tonumber(places) ~= fill.most or tonumber(group) ~= size then
      return "the divisor"
    end
    if above and places % above ~= 0 then return "the divisor above" end
    if not idle then return nil end
    local ranks, d = {}, {}
    for place = 0, m.places - 1 do
      local n = m.at[place][level]
      d[n] = (d[n] or 0) + 1
      if d[n] <= fill.most - idle and #ranks < c.world then ranks[#ranks + 1] = place end
    end
    if #ranks < c.world then return "too few places" end
    return not again(order_of(c.dims, true), m.text .. " ranks = " .. table.concat(ranks, ",")) and "not with idle places"
  elseif advice:find "^move its dims later" then
    return not again(order_of(c.dims, false)) and "not if its dims are last"
  elseif advice:find "^put its members whole nodes apart" then
    return not again "whole nodes apart" and "not if they are whole nodes apart"
  elseif advice:find "^a rail ends at its rack" then
    return not (m.ends and breaks.within(c.crossing, "rack", m)) and "the group is in one rack"
  elseif not advice:find "^use another order of dims, other sizes, or another order of " then
    return "unknown"
  end
end

it("what a refused law says about a family and a machine is true", function()
  math.randomseed(seed)
  local n = { held = 0, within = 0, spread = 0, aligned = 0 }
  for case = 1, cases do
    local m = random_machine()
    local machine, world = mg.open_machine(m.text), math.random(2) == 1 and m.places or math.random(m.places)
    local one = divisor(world)
    local two = divisor(world // one)
    local sizes = { one, two, world // one // two }
    local dims = any { { "a" }, { "b" }, { "c" }, { "a", "b" }, { "b", "c" }, { "a", "c" } }
    for _, which in ipairs { "within node", "within rail", "within rack", "spread node", "spread rail", "spread rack",
                             "aligned rail" } do
      local kind, level = which:match "(%a+) (%a+)"
      local law = ("%s(f, machine.%s)"):format(kind, level)
      local holds, why, family
      if m.at[0][level] then holds, why, family = try(law, machine, world, "a-b-c", sizes, dims) end
      local broken, first, crossing = 0, nil, nil
      for group = 0, family and family.count - 1 or -1 do
        if breaks[kind](family:ranks(group), level, m) then broken, first = broken + 1, first or group end
        if m.racks > 0 and breaks.within(family:ranks(group), "rack", m) then crossing = family:ranks(group) end
      end
      local what = ("seed %d, case %d: %s, world %d, sizes %s, dims %s, %s: %s"):format(seed, case, m.text, world,
        table.concat(sizes, " "), table.concat(dims, " "), law, why)
      if family then assert.equal(broken == 0, holds, what) end
      if broken == 0 then
        n.held = n.held + 1
      else
        n[kind] = n[kind] + 1
        local told, of, group, rest = why:match ": (%d+) of (%d+) groups? of f .-: the first is group (%d+): (.*)$"
        assert.same({ broken, family.count, first }, { tonumber(told), tonumber(of), tonumber(group) }, what)
        local ranks = family:ranks(first)
        local fault, advice = facts_fault(kind, level, rest, ranks, m)
        local function again(order, text)
          if order == "whole nodes apart" then -- a dim of a node's places, and one of the nodes, of a rack if rails end there
            local nodes = m.ends and m.nodes // m.racks or m.nodes
            return (try(law, machine, m.places, "a-b-c", { m.node, nodes, m.nodes // nodes }, { "b" }))
          end
          return (try(law, text and mg.open_machine(text) or machine, world, order, sizes, dims))
        end
        fault = fault or advice_fault(level, advice, { m = m, world = world, family = family, dims = dims, ranks = ranks,
                                                       crossing = crossing or ranks }, again)
        assert.is_falsy(fault, ("%s\n%s"):format(what, fault))
      end
    end
  end
  for kind, many in pairs(n) do assert.is_true(many >= cases // 20, kind .. " " .. many) end
end)

it("what a refused law says about two families is true", function()
  math.randomseed(seed)
  local kinds = {}
  for case = 1, cases do
    local world, text, lists = math.random(12), {}, {}
    for f = 1, 2 do
      lists[f], text[f] = {}, {}
      for g = 1, math.random(4) do
        local list, has = {}, {}
        for _ = 1, math.random(5) do
          local rank = math.random(0, world - 1)
          if not has[rank] then list[#list + 1], has[rank] = rank, true end
        end
        lists[f][g], text[f][g] = has, "{" .. table.concat(list, ",") .. "}"
      end
    end
    support.write(path, ([[return recipe { idle = "allow", build = function(world)
      local t = topology(world)
      t.a = world:table({ %s }, "cover")
      t.b = world:table({ %s }, "cover")
      return t end }]]):format(table.concat(text[1], ","), table.concat(text[2], ",")))
    local holds, why = mg.load(path):plan(world):law "within(a, b)"
    local function together(...)
      for _, has in ipairs(lists[2]) do
        local all = true
        for _, rank in ipairs { ... } do all = all and has[math.tointeger(tonumber(rank))] end
        if all then return true end
      end
    end
    local first
    for g, has in ipairs(lists[1]) do
      local ranks = {}
      for rank in pairs(has) do ranks[#ranks + 1] = rank end
      if not first and not together(table.unpack(ranks)) then first = g - 1 end
    end
    local what = ("seed %d, case %d: %s vs %s: %s"):format(seed, case, table.concat(text[1]), table.concat(text[2]), why)
    assert.equal(first == nil, holds, what)
    if first then
      local group, one, other = why:match "group (%d+) of a has ranks (%d+) and (%d+), and no group of b has both"
      local alone, whose = why:match "rank (%d+) of group (%d+) of a is in no group of b"
      local whole = why:match "no group of b has all ranks of group (%d+) of a"
      assert.equal(first, tonumber(group or whose or whole), what)
      for _, rank in ipairs { one, other, alone } do assert.is_true(lists[1][first + 1][math.tointeger(tonumber(rank))], what) end
      assert.is_falsy(one and together(one, other) or alone and together(alone), what)
      local kind = one and "pair" or alone and "alone" or "whole"
      kinds[kind] = (kinds[kind] or 0) + 1
    end
  end
  for _, kind in ipairs { "pair", "alone", "whole" } do assert.is_true((kinds[kind] or 0) >= 1, kind) end
end)
