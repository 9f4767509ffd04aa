-- SPDX-License-Identifier: MIT
--
-- nccl_graph.lua - read the graphs of one node that NCCL writes to NCCL_GRAPH_DUMP_FILE (src/graph/search.cc and xml.cc
-- of NCCL 2.28). Each channel goes through all GPUs of the node; the CPUs are not in this file.
--
-- Skipped: attributes besides `dev` of <gpu>; network cards.

local file, _, root = ...
local elements = file.run "elements"

local grammar = {
  graphs = { "graph", "version name" },
  graph = { "channel",
    "id pattern crossnic nchannels speedintra speedinter latencyinter typeintra typeinter samechannels" },
  channel = { "gpu net", "" },
  gpu = { "", "dev" },
  net = { "", "dev" },
}

local notes, all, n, channels, seen = {}, {}, 0, 0, nil
elements.walk(root, grammar, notes, function(e)
  if e.name == "channel" then
    seen, channels = {}, channels + 1
  elseif e.name == "gpu" then
    local dev = e.of.dev or ""
    if not dev:find "^%d%d?%d?%d?$" then file.fault(e.line, "dev=\"%.40s\" is not a number of a GPU", dev) end
    if seen[dev] then file.fault(e.line, "GPU %s is in the channel twice", dev) end
    if channels > 1 and not all[dev] then file.fault(e.line, "GPU %s is not in the channels before this one", dev) end
    n = all[dev] and n or n + 1
    seen[dev], all[dev], seen.n = true, true, (seen.n or 0) + 1
  end
end, function(e)
  if e.name == "channel" and (seen.n or 0) ~= n then
    file.fault(e.line, "this channel has %d GPUs, and the channels before it have %d", seen.n or 0, n)
  end
end)
if n == 0 then file.fault(nil, "there is no gpu in it") end
return elements.node({ { "gpu", n } }, notes)
