-- SPDX-License-Identifier: MIT
--
-- The part `place` of scripts/lab/bench: the time of placing, searching and reading machines; and the bytes between
-- racks for random allocations of hosts, which get ranks in the order of arrival, sorted by rack, by Scotch
-- (scotch_gmap of Debian's package scotch, on the same graph of blocks), or by moongrid.

local json = require "dkjson"

local placing = require "placing"
local write, traffic, graph_of, scotch = placing.write, placing.traffic, placing.graph_of, placing.scotch
local cut_of = placing.cut_of

-- Choose the hosts of an allocation at random in racks of 128 hosts, and write racks.conf, the file of their switches.
-- Return the hosts in the order of arrival, and the number of chosen hosts in each rack.
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
  local rows = { arrival = {}, sorted = {}, scotch = {}, ours = {}, jax = {}, megatron = {}, megatron_ours = {} }
  local meshed = B.first_line "${PYTHON:-python3} scripts/lab/bench.d/jax_mesh.py 2> /dev/null"
  for seed = 1, runs do
    local names, size = allocate(B, seed, hosts, racks)
    local line = ("build/moongrid place %s/place.lua --world %d %s --machine '%s/racks.conf nodes=%s gpu:8' "
      .. "--search order --json --traffic '%s'"):format(B.dir, world, order, B.dir, table.concat(names, ","), traffic())
    local found = assert(json.decode((B.run(line))), line).hosts
    local sizes = {}
    for r = 0, racks - 1 do if size[r] then sizes[#sizes + 1] = size[r] end end
    local rival = scotch(B, graph, hosts, sizes)
    local ours = found.cost / 1048576
    if meshed then
      local part, b = {}, 0
      for host in meshed:gmatch "%d+" do
        part[b], b = tonumber(names[tonumber(host) + 1]:match "%d+") // 128, b + 1
      end
      table.insert(rows.jax, cut_of(graph, part))
    end
    local usual = line:gsub(" order=%S+", " order=tp-cp-ep-dp-pp-vp", 1)
    usual = assert(json.decode((B.run(usual))), usual).hosts
    table.insert(rows.megatron, usual.arrival / 1048576)
    table.insert(rows.megatron_ours, usual.cost / 1048576)
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
  for _, row in ipairs { { "in the order of arrival", "arrival" }, { "by JAX's mesh_utils, a host a granule", "jax" },
                         { "sorted by rack", "sorted" }, { "by Scotch", "scotch" },
                         { "moongrid place --search order", "ours" },
                         { "Megatron's order of dims, in the order of arrival", "megatron" },
                         { "Megatron's order of dims, moongrid place --search order", "megatron_ours" } } do
    if #rows[row[2]] > 0 then
      t:row(row[1], rows[row[2]])
    else
      t:note("%s: skipped, there is no %s", row[1], row[2] == "jax" and "PYTHON with jax" or "scotch_gmap")
    end
  end
  table.sort(best)
  t:note("ours over the better of Scotch and sorted: median %.3f, at most 1 in %d of %d, largest %.3f; worse than "
    .. "arrival: %d", best[(runs + 1) // 2], beat, runs, best[runs], worse)
end

return function(B)
  write(B.dir .. "/place.lua", placing.RECIPE)
  B.compile("spawn", "scripts/lab/bench.d/spawn.c", "alone")
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
