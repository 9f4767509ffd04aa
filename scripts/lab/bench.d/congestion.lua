-- SPDX-License-Identifier: MIT
--
-- The part `congestion` of scripts/lab/bench: is a placement that costs less also faster? 512 ranks run on 64 hosts, on
-- a fat tree and on a dragonfly. SimGrid's SMPI (Debian: libsimgrid-dev) simulates the messages of the families
-- (traffic.c), with a 1024th of the bytes, and the congestion of each link. For 10 random orders of the hosts there are
-- three placements: the order itself, Scotch's, and moongrid's. Kendall's tau compares the order of these 30 placements
-- by the seconds of `place` (busiest link of each level) with their order by the simulated seconds.

local json = require "dkjson"
local placing = require "placing"

local SIZES = { tp = 4, cp = 2, dp = 16, pp = 4 }
local NETWORKS = {
  { name = "a fat tree", sizes = { 8, 8 },
    machine = "leaf:8[50GB/s] node:8[12.5GB/s] gpu:8",
    cluster = [[topology="FAT_TREE" topo_parameters="2;8,8;1,4;1,1"]] },
  { name = "a dragonfly", sizes = { 4, 16 },
    machine = "group:4[37.5GB/s] chassis:2[100GB/s] router:4[50GB/s] node:2[12.5GB/s] gpu:8",
    cluster = [[topology="DRAGONFLY" topo_parameters="4,1;2,2;4,1;2"]] },
}

-- Return the calls of a family's groups as lines for traffic.c, with a 1024th of the bytes.
local function messages(plan)
  local lines = {}
  for name, flow in pairs(placing.FLOWS) do
    local ranks, n = {}, SIZES[name]
    for _, group in ipairs(plan.families[name].groups) do
      for _, rank in ipairs(group) do ranks[#ranks + 1] = rank end
    end
    local kib, calls, way = flow.mib // 1, flow.calls, flow.way
    local steps = ({ all_reduce = 2 * (n - 1), all_gather = n - 1, send = 1 })[way]
    local bytes = way == "send" and kib * 1024 * calls or kib * 1024 * calls // n
    lines[#lines + 1] = ("%s %d %d %d %s"):format(way == "send" and "chain" or "ring", bytes, steps, n,
      table.concat(ranks, " "))
  end
  table.sort(lines)
  return table.concat(lines, "\n") .. "\n"
end

local function platform(network)
  return ([[<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-63" speed="1Gf" bw="12.5GBps" lat="250ns" %s
           loopback_bw="50GBps" loopback_lat="50ns"/>
</platform>
]]):format(network.cluster)
end

-- Return Kendall's tau-b of two lists.
local function tau(a, b)
  local same, other, ties_a, ties_b, all = 0, 0, 0, 0, 0
  for i = 1, #a do
    for k = 1, i - 1 do
      local x, y = a[i] - a[k], b[i] - b[k]
      if math.abs(x) < 1e-12 then x = 0 end
      all = all + 1
      if x == 0 then ties_a = ties_a + 1 end
      if y == 0 then ties_b = ties_b + 1 end
      if x * y > 0 then same = same + 1 elseif x * y < 0 then other = other + 1 end
    end
  end
  return (same - other) / math.sqrt((all - ties_a) * (all - ties_b))
end

-- Return the text of a machine whose block b of ranks is on host[b].
local function on(network, host)
  local ranks = {}
  for b = 1, 64 do ranks[b] = ("%d..%d"):format(8 * host[b], 8 * host[b] + 7) end
  return ("%s ranks = %s"):format(network.machine, table.concat(ranks, ","))
end

local function shuffled(seed)
  local host = {}
  math.randomseed(seed)
  for i = 1, 64 do host[i] = i - 1 end
  for i = 64, 2, -1 do
    local k = math.random(i)
    host[i], host[k] = host[k], host[i]
  end
  return host
end

-- Return the host of each block from its rack: any free host of the rack.
local function in_racks(part, each)
  local host, taken = {}, {}
  for b = 0, 63 do
    local rack = part[b]
    host[b + 1] = rack * each + (taken[rack] or 0)
    taken[rack] = (taken[rack] or 0) + 1
  end
  return host
end

local function simulate(B, host, file)
  local list = {}
  for b = 1, 64 do for _ = 1, 8 do list[#list + 1] = "n" .. host[b] end end
  placing.write(B.dir .. "/hosts.sim", table.concat(list, "\n") .. "\n")
  local line = ("timeout -k 5 900 smpirun -np 512 -platform %s/net.xml -hostfile %s/hosts.sim "
    .. "--cfg=smpi/simulate-computation:no --cfg=smpi/display-timing:yes --log=root.thres:critical "
    .. "--log=smpi_utils.thres:info %s/traffic %s 2>&1"):format(B.dir, B.dir, B.dir, file)
  local out = B.run(line)
  return assert(tonumber(out:match "Simulated time: ([%d.e+-]+) seconds"), out)
end

return function(B)
  if not B.first_line "command -v smpicc" then
    return B.table("simulated placements", "ms"):note "skipped: no smpicc (Debian: libsimgrid-dev)"
  end
  assert(os.execute(("smpicc -O2 -o %s/traffic scripts/lab/bench.d/traffic.c"):format(B.dir)))
  placing.write(B.dir .. "/place.lua", placing.RECIPE)
  local traffic, sizes = placing.traffic(), "tp=4 cp=2 ep=1 pp=4 vp=1 order=tp-cp-ep-dp-pp-vp"
  local planned = B.run(("build/moongrid plan %s/place.lua --world 512 %s --json"):format(B.dir, sizes))
  local plan = json.decode(planned)
  placing.write(B.dir .. "/messages", messages(plan))
  local graph = placing.graph_of(plan, 64)
  for _, network in ipairs(NETWORKS) do
    placing.write(B.dir .. "/net.xml", platform(network))
    local t = B.table(("the traffic of 512 ranks on %s, simulated"):format(network.name), "ms")
    local rows, ours, theirs = { arrival = {}, scotch = {}, ours = {} }, {}, {}
    local racks = {}
    for i = 1, network.sizes[1] do racks[i] = network.sizes[2] end
    for seed = 1, B.quick and 2 or 10 do
      local way, arrival = {}, shuffled(seed)
      way.arrival = arrival
      local found = json.decode((B.run(("build/moongrid place %s/place.lua --world 512 %s --machine '%s' "
        .. "--search order --json --traffic '%s'"):format(B.dir, sizes, on(network, arrival), traffic))))
      way.ours = {}
      for b = 1, 64 do way.ours[b] = found.hosts.ranks[8 * b - 7] // 8 end
      local _, part = placing.scotch(B, graph, 64, racks)
      way.scotch = part and in_racks(part, network.sizes[2])
      for _, name in ipairs { "arrival", "scotch", "ours" } do
        if way[name] then
          local placed = json.decode((B.run(("build/moongrid place %s/place.lua --world 512 %s --machine '%s' --json "
            .. "--traffic '%s'"):format(B.dir, sizes, on(network, way[name]), traffic))))
          local estimate = 0
          for _, link in pairs(placed.busiest) do estimate = estimate + (link.seconds or 0) end
          local seconds = simulate(B, way[name], B.dir .. "/messages")
          table.insert(rows[name], seconds * 1e3)
          table.insert(ours, estimate)
          table.insert(theirs, seconds)
        end
      end
    end
    for _, row in ipairs { { "in the order of arrival", "arrival" }, { "by Scotch", "scotch" },
                           { "moongrid place --search order", "ours" } } do
      if #rows[row[2]] > 0 then t:row(row[1], rows[row[2]]) end
    end
    t:note("Kendall's tau of the seconds of place and the simulated ones, over %d placements: %.2f", #ours,
      tau(ours, theirs))
  end
end
