-- SPDX-License-Identifier: MIT
--
-- For the parts `place` and `congestion` of scripts/lab/bench: a recipe, the traffic of its families, this traffic as a
-- graph of blocks of 8 ranks, and Scotch's placement of the graph.

local placing = {}

placing.RECIPE = [[
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
placing.FLOWS = { -- bytes on an edge of a ring of n, or along a chain
  dp = { "4 GiB all_reduce", function(n) return 2 * (n - 1) / n * 4 * 1024 end,
         mib = 4096, calls = 1, way = "all_reduce" },
  cp = { "1 GiB all_gather x 24", function(n) return (n - 1) / n * 24 * 1024 end,
         mib = 1024, calls = 24, way = "all_gather" },
  pp = { "256 MiB send x 32", function() return 8 * 1024 end, chain = true,
         mib = 256, calls = 32, way = "send" },
}

function placing.write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

function placing.traffic()
  local list = {}
  for name, flow in pairs(placing.FLOWS) do list[#list + 1] = name .. " = " .. flow[1] end
  table.sort(list)
  return table.concat(list, "; ")
end

-- Return the MiB between blocks of 8 ranks: graph[a][b].
function placing.graph_of(plan, blocks)
  local graph = {}
  for b = 0, blocks - 1 do graph[b] = {} end
  local function add(a, b, weight)
    a, b = a // 8, b // 8
    if a == b then return end
    graph[a][b], graph[b][a] = (graph[a][b] or 0) + weight, (graph[b][a] or 0) + weight
  end
  for name, flow in pairs(placing.FLOWS) do
    for _, group in ipairs(plan.families[name].groups) do
      local n = #group
      for i = 1, n - 1 do add(group[i], group[i + 1], flow[2](n)) end
      if n > 2 and not flow.chain then add(group[n], group[1], flow[2](n)) end
    end
  end
  return graph
end

function placing.cut_of(graph, part)
  local sum = 0
  for a, row in pairs(graph) do
    for b, weight in pairs(row) do
      if a < b and part[a] ~= part[b] then sum = sum + weight end
    end
  end
  return sum
end

-- Assign blocks to racks by Scotch; return nil without Scotch. If Scotch overfills a rack, move blocks out at the least
-- cost.
function placing.scotch(B, graph, blocks, sizes)
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
  placing.write(B.dir .. "/blocks.grf", ("0\n%d %d\n0 010\n%s\n"):format(blocks, edges, table.concat(lines, "\n")))
  placing.write(B.dir .. "/racks.tgt", ("cmpltw %d %s\n"):format(#sizes, table.concat(sizes, " ")))
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
  return placing.cut_of(graph, part), part
end

return placing
