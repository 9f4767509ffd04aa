-- SPDX-License-Identifier: MIT
--
-- dlrover.lua - read the switch of each node, {"10.0.0.1": "sw-3"}, as dlrover's topology querier knows it
-- (dlrover/python/master/elastic_training/net_topology.py, NodeTopologyMeta.asw). Nothing is skipped.

local file, _, all = ...
local fields = file.run "fields"
local t = file.run "tree" "switch"

for _, host in ipairs(all[0]) do
  local switch = fields.text(all[host] or false, host, "the name of its switch")
  t:add(host, host, nil, t:node("switch", switch, host))
end
return t
