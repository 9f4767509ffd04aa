-- SPDX-License-Identifier: MIT
--
-- The part `place` of scripts/bench: how long placing, searching and reading machines take; and the bytes between
-- racks when hosts of random allocations take ranks: in the order of arrival, sorted by rack, by Scotch (scotch_gmap
-- of Debian's package scotch, on the same graph of blocks; where it overfills a rack, blocks are moved out at the least
-- cost), by us.

local json = require "dkjson"

local RECIPE = [[
return recipe {
  params = { order = "tp-cp-ep-dp-pp-vp", tp = 4, cp = 2, ep = 4, pp = 4, vp = 2 },
  build = function(world, p)
    local g = grid(world, p.order, { tp = p.tp, cp = p.cp, ep = p.ep, pp = p.pp, vp = p.vp, dp = fill })
    local t = topology(world)
    for _, dim in ipairs { "tp", "cp", "ep", "dp", "pp", "vp" } do t[dim] = g(dim) end
    return t
  end,
}
]]
local FLOWS = { -- bytes on an edge of a ring of n, or along a chain
  dp = { "4 GiB all_reduce", function(n) return 2 * (n - 1) / n * 4 * 1024 end },
  cp = { "1 GiB all_gather x 24", function(n) return (n - 1) / n * 24 * 1024 end },
  pp = { "256 MiB send x 32", function() return 8 * 1024 end, chain = true },
}

local function write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

local function traffic()
  local list = {}
  for name, flow in pairs(FLOWS) do list[#list + 1] = name .. " = " .. flow[1] end
  table.sort(list)
  return table.concat(list, "; ")
end

-- The MiB between blocks of 8 ranks: graph[a][b].
local function graph_of(plan, blocks)
  local graph = {}
  for b = 0, blocks - 1 do graph[b] = {} end
  local function add(a, b, weight)
    a, b = a // 8, b // 8
    if a == b then return end
    graph[a][b], graph[b][a] = (graph[a][b] or 0) + weight, (graph[b][a] or 0) + weight
  end
  for name, flow in pairs(FLOWS) do
    for _, group in ipairs(plan.families[name].groups) do
      local n = #group
      for i = 1, n - 1 do add(group[i], group[i + 1], flow[2](n)) end
      if n > 2 and not flow.chain then add(group[n], group[1], flow[2](n)) end
    end
  end
  return graph
end

local function cut_of(graph, part)
  local sum = 0
  for a, row in pairs(graph) do
    for b, weight in pairs(row) do
      if a < b and part[a] ~= part[b] then sum = sum + weight end
    end
  end
  return sum
end

-- Blocks to racks by Scotch; nil without it.
local function scotch(B, graph, blocks, sizes)
  local edges, lines = 0, {}
  for b = 0, blocks - 1 do
    local row, n = {}, 0
    for other, weight in pairs(graph[b]) do
      n = n + 1
      row[n] = ("%d %d"):format(weight // 1, other)
    end
    edges = edges + n
    lines[#lines + 1] = n .. " " .. table.concat(row, " ")
  end
  write(B.dir .. "/blocks.grf", ("0\n%d %d\n0 010\n%s\n"):format(blocks, edges, table.concat(lines, "\n")))
  write(B.dir .. "/racks.tgt", ("cmpltw %d %s\n"):format(#sizes, table.concat(sizes, " ")))
  local _, code = B.run(("cd %s && scotch_gmap blocks.grf racks.tgt blocks.map >/dev/null 2>&1"):format(B.dir))
  if code ~= 0 then return end
  local part, load = {}, {}
  for line in io.lines(B.dir .. "/blocks.map") do
    local block, rack = line:match "^(%d+)%s+(%d+)$"
    if block then
      part[tonumber(block)] = tonumber(rack)
      load[tonumber(rack)] = (load[tonumber(rack)] or 0) + 1
    end
  end
  local function bytes_with(block, rack)
    local sum = 0
    for other, weight in pairs(graph[block]) do if part[other] == rack then sum = sum + weight end end
    return sum
  end
  for rack = 0, #sizes - 1 do
    while (load[rack] or 0) > sizes[rack + 1] do
      local least, block, to = math.huge, nil, nil
      for b = 0, blocks - 1 do
        for other = 0, #sizes - 1 do
          if part[b] == rack and (load[other] or 0) < sizes[other + 1] then
            local loss = bytes_with(b, rack) - bytes_with(b, other)
            if loss < least then least, block, to = loss, b, other end
          end
        end
      end
      part[block] = to
      load[rack], load[to] = load[rack] - 1, (load[to] or 0) + 1
    end
  end
  return cut_of(graph, part)
end

-- Hosts of an allocation, at random among racks of 128: the file of the switches, and the list in the order of arrival.
local function allocate(B, seed, hosts, racks)
  math.randomseed(seed)
  local all, size, lines = {}, {}, {}
  for i = 0, racks * 128 - 1 do all[i + 1] = i end
  for i = 1, hosts do
    local k = math.random(i, #all)
    all[i], all[k] = all[k], all[i]
    size[all[i] // 128] = (size[all[i] // 128] or 0) + 1
  end
  for r = 0, racks - 1 do
    lines[r + 1] = ("SwitchName=r%d Nodes=n[%d-%d]"):format(r, 128 * r, 128 * r + 127)
  end
  lines[#lines + 1] = ("SwitchName=top Switches=r[0-%d]"):format(racks - 1)
  write(B.dir .. "/racks.conf", table.concat(lines, "\n") .. "\n")
  local names = {}
  for i = 1, hosts do names[i] = "n" .. all[i] end
  return names, size
end

local function quality(B)
  local hosts, racks, runs = 256, 8, B.quick and 10 or 100
  local world = hosts * 8
  local order = " order=tp-ep-dp-cp-pp-vp "
  local planned = B.run(("build/moongrid plan %s/place.lua --world %d %s --json"):format(B.dir, world, order))
  local plan = json.decode(planned)
  local graph = graph_of(plan, hosts)
  local best, worse, beat = {}, 0, 0
  local rows = { arrival = {}, sorted = {}, scotch = {}, ours = {} }
  for seed = 1, runs do
    local names, size = allocate(B, seed, hosts, racks)
    local line = ("build/moongrid place %s/place.lua --world %d %s --machine '%s/racks.conf nodes=%s gpu:8' "
      .. "--search order --json --traffic '%s'"):format(B.dir, world, order, B.dir, table.concat(names, ","), traffic())
    local found = assert(json.decode((B.run(line))), line).hosts
    local sizes = {}
    for r = 0, racks - 1 do if size[r] then sizes[#sizes + 1] = size[r] end end
    local rival = scotch(B, graph, hosts, sizes)
    local ours = found.cost / 1048576
    table.insert(rows.arrival, found.arrival / 1048576)
    table.insert(rows.sorted, found.sorted / 1048576)
    table.insert(rows.ours, ours)
    if rival then table.insert(rows.scotch, rival) end
    best[seed] = ours / math.min(found.sorted / 1048576, rival or math.huge)
    beat = beat + (best[seed] <= 1.0000001 and 1 or 0)
    worse = worse + (found.cost > found.arrival and 1 or 0)
  end
  local t = B.table(("bytes between racks, %d hosts of %d racks of 128, %d random allocations"):format(hosts, racks,
    runs), "MiB")
  for _, row in ipairs { { "in the order of arrival", "arrival" }, { "sorted by rack", "sorted" },
                         { "by Scotch", "scotch" }, { "moongrid place --search order", "ours" } } do
    if #rows[row[2]] > 0 then
      t:row(row[1], rows[row[2]])
    else
      t:note("%s: skipped, there is no scotch_gmap", row[1])
    end
  end
  table.sort(best)
  t:note("ours over the better of Scotch and sorted: median %.3f, at most 1 in %d of %d, largest %.3f; worse than "
    .. "arrival: %d", best[(runs + 1) // 2], beat, runs, best[runs], worse)
end

return function(B)
  write(B.dir .. "/place.lua", RECIPE)
  B.compile("spawn", "scripts/bench.d/spawn.c", "alone")
  local hosts = {}
  for i = 1, B.quick and 100000 or 1000000 do hosts[i] = ("node%07d slots=8"):format(i) end
  write(B.dir .. "/hosts", table.concat(hosts, "\n") .. "\n")
  local names = allocate(B, 1, 1024, 24)
  os.rename(B.dir .. "/racks.conf", B.dir .. "/racks24.conf")
  local t, rounds = B.table("placing, from fork to end", "ms"), B.quick and 3 or 9
  for _, line in ipairs {
    { "place, 64 ranks, 17 families", "megatron --world 64 tp=8 pp=2 --machine dgx-h100" },
    { "place, 1048576 ranks, 17 families", "megatron --world 1048576 tp=8 pp=16 --machine gb200-nvl72" },
    { "720 orders at 1024 ranks", B.dir .. "/place.lua --world 1024 --machine dgx-h100 --search order" },
    { "8192 ranks on 1024 irregular hosts", ("%s/place.lua --world 8192 order=tp-cp-ep-dp-pp-vp --search order "
      .. "--machine %s/racks24.conf\\ nodes=%s\\ gpu:8"):format(B.dir, B.dir, table.concat(names, ",")) },
    { ("a hostfile of %d lines"):format(#hosts), ("picotron --world 8 --machine %s/hosts"):format(B.dir) },
  } do
    local data = {}
    local script = B.dir .. "/place.sh"
    write(script, "exec build/moongrid place " .. line[2] .. " > /dev/null\n")
    if B.samples(data, ("%s/spawn %d sh %s"):format(B.dir, rounds, script)) then t:row(line[1], data.ms) end
  end
  quality(B)
end
