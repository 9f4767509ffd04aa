-- SPDX-License-Identifier: MIT
--
-- nvidia_q.lua - read `nvidia-smi -q` of one node, or of several one after the other. ClusterUUID and CliqueId
-- (nvidia-smi's manual, "Fabric") are equal on nodes of one NVLink domain. The nodes get the names 0, 1, 2, ...
--
-- Skipped: all other output. GPUs that are cut by MIG are refused.

local file = ...
local t = file.run "tree" "clique"

local nodes, mig = 0, false
-- The node that is being read: `line`, the number of its first line; `attached`, the number of GPUs that the text
-- states, or nil; and for each GPU { line, ClusterUUID, CliqueId }.
local node

-- Return the name of a GPU's clique, or "" if NVLink ends in the node or the text has no clique.
local function clique_of(gpu)
  local known = gpu.ClusterUUID and gpu.ClusterUUID ~= "N/A" and gpu.ClusterUUID:find "[^0-]" and gpu.CliqueId
  return known and gpu.ClusterUUID .. "." .. gpu.CliqueId or ""
end

local function end_node(where)
  if not node then return end
  local n, clique = #node, node[1] and clique_of(node[1])
  if node.attached and n < node.attached then
    file.fault(where, "the node has %d of %d attached GPUs: the text may be cut short", n, node.attached)
  end
  for i = 2, n do
    if clique_of(node[i]) ~= clique then
      file.fault(node[i].line, "GPUs of one node are in two NVLink domains, '%.99s' and '%.99s'", clique,
        clique_of(node[i]))
    end
  end
  if n > 0 then
    t:add(tostring(nodes), node.line, n, clique ~= "" and t:node("switch", clique, node.line) or nil)
    nodes = nodes + 1
  end
end

local last = 1
for where, line in file.lines() do
  last = where
  local key, value = line:match "^%s*(%a[%w ]-)%s*:%s*(.*)$"
  if key == "Attached GPUs" then
    end_node(where)
    node = { line = where, attached = #value < 10 and tonumber(value:match "^%d+$") or nil }
  elseif line:find "^GPU " then
    node = node or { line = where }
    node[#node + 1] = { line = where }
  elseif node and #node > 0 and (key == "CliqueId" or key == "ClusterUUID") then
    node[#node][key] = value
  elseif line:find "^%s*MIG Mode%s*$" then
    mig = true
  elseif mig and key == "Current" then
    if value == "Enabled" then file.fault(where, "MIG is on: a rank needs a whole GPU") end
    mig = false
  end
end
end_node(last)
return t
