-- SPDX-License-Identifier: MIT
--
-- What the models share: groups of a grid by counting, without moongrid.

local M = {}

-- Put a list into any order, in its place.
function M.shuffled(list)
  for i = #list, 2, -1 do
    local j = math.random(i)
    list[i], list[j] = list[j], list[i]
  end
  return list
end

-- The coordinates of a rank; order: names, the first one fastest.
function M.coords(order, sizes, rank)
  local at = {}
  for _, name in ipairs(order) do at[name], rank = rank % sizes[name], rank // sizes[name] end
  return at
end

-- The groups along some dims: ranks of equal other coordinates, ascending, counted by their first ranks.
function M.groups(order, sizes, ...)
  local inside, world, by_key, list = {}, 1, {}, {}
  for _, name in ipairs { ... } do inside[name] = true end
  for _, name in ipairs(order) do world = world * sizes[name] end
  for rank = 0, world - 1 do
    local at, key = M.coords(order, sizes, rank), ""
    for _, name in ipairs(order) do key = key .. (inside[name] and "" or at[name] .. ",") end
    if not by_key[key] then
      by_key[key] = {}
      list[#list + 1] = by_key[key]
    end
    table.insert(by_key[key], rank)
  end
  return list
end

-- Runs of `size` members of each group, group by group.
function M.runs(groups, size)
  local list = {}
  for _, ranks in ipairs(groups) do
    for from = 1, #ranks, size do list[#list + 1] = table.move(ranks, from, from + size - 1, 1, {}) end
  end
  return list
end

-- The members at equal places of the runs, group by group.
function M.across(groups, size)
  local list = {}
  for _, ranks in ipairs(groups) do
    for place = 1, size do
      local own = {}
      for at = place, #ranks, size do own[#own + 1] = ranks[at] end
      list[#list + 1] = own
    end
  end
  return list
end

-- Some positions of each group, each rank once; negative ones count from the end.
function M.picked(groups, positions)
  local list = {}
  for i, ranks in ipairs(groups) do
    local own, seen = {}, {}
    for _, position in ipairs(positions) do
      local rank = ranks[position < 0 and #ranks + 1 + position or position + 1]
      if not seen[rank] then own[#own + 1], seen[rank] = rank, true end
    end
    list[i] = own
  end
  return list
end

-- The same groups as a set, whatever their order.
function M.as_set(groups)
  local keys = {}
  for i, ranks in ipairs(groups) do
    local own = table.move(ranks, 1, #ranks, 1, {})
    table.sort(own)
    keys[i] = table.concat(own, ",")
  end
  table.sort(keys)
  return table.concat(keys, ";")
end

-- Families that all exist in the CPU's copies too.
function M.with_cpu(families, suffix, names)
  for _, name in ipairs(names) do families[name .. suffix] = families[name] end
  return families
end

-- Draw one of these; an integer from 1 to n.
function M.one_of(list) return list[math.random(#list)] end
function M.divisor(n)
  local list = {}
  for k = 1, n do
    if n % k == 0 then list[#list + 1] = k end
  end
  return M.one_of(list)
end

-- Return n as a product of so many sizes, at random.
function M.product(n, count)
  local sizes = {}
  for i = 1, count - 1 do
    sizes[i] = M.divisor(n)
    n = n // sizes[i]
  end
  sizes[count] = n
  for i = count, 2, -1 do
    local j = math.random(i)
    sizes[i], sizes[j] = sizes[j], sizes[i]
  end
  return table.unpack(sizes)
end

return M
