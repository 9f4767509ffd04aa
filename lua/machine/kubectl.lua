-- SPDX-License-Identifier: MIT
--
-- kubectl.lua - read the nodes of a cluster, `kubectl get nodes -o json` (the Node of Kubernetes' API, core/v1): the
-- allocatable devices, and the NVLink domain in the label nvidia.com/gpu.clique of NVIDIA's GPU feature discovery.
--
-- Skipped: metadata besides name and labels, other labels, conditions, addresses, images, volumes, nodeInfo, taints,
-- resources of processors, memory, storage, pods. Other resources are noted. Cordoned nodes get no ranks, nor do nodes
-- without devices if another node has devices; a note says so.

local file, _, all = ...
local fields = file.run "fields"
local t = file.run "tree" "clique"
local path = fields.path

-- Each rank gets one of these devices. GPUs that are cut by MIG, or time-shared, are refused.
local devices = { ["nvidia.com/gpu"] = true, ["amd.com/gpu"] = true, ["habana.ai/gaudi"] = true,
  ["google.com/tpu"] = true, ["gpu.intel.com/i915"] = true, ["gpu.intel.com/xe"] = true }
local usual = { "^cpu$", "^memory$", "^pods$", "^storage$", "^ephemeral%-storage$", "^hugepages%-",
  "^attachable%-volumes%-" }

local kind, others, found = nil, {}, {}

local function is_usual(name)
  for _, pattern in ipairs(usual) do
    if name:find(pattern) then return true end
  end
end

-- Return the number of devices of a node as the file writes it (nil: the node has none), and the name of the resource.
local function count(node, labels, where)
  if (tonumber(labels["nvidia.com/gpu.replicas"] or 1) or 2) > 1 then
    file.fault(path(where, "metadata.labels"),
      "the GPUs are time-shared (nvidia.com/gpu.replicas): a rank needs a GPU of its own")
  elseif (labels["nvidia.com/gpu.product"] or ""):find("MIG", 1, true) then
    file.fault(path(where, "metadata.labels"),
      "the GPUs are cut by MIG (nvidia.com/gpu.product): a rank needs a whole GPU")
  end
  if not node.status then return labels["nvidia.com/gpu.count"], "nvidia.com/gpu" end
  local at, n, of = path(where, "status.allocatable"), nil, nil
  local has = fields.object(node.status.allocatable or { [0] = {} }, at)
  for _, name in ipairs(has[0]) do
    local value = has[name]
    if devices[name] and value ~= "0" then
      if n then file.fault(at, "the node has devices of two kinds, %s and %s", of, name) end
      n, of = value, name
    elseif name:find "^nvidia%.com/mig%-" and value ~= "0" then
      file.fault(at, "'%.60s': GPUs that are cut by MIG are not read: a rank needs a whole GPU", name)
    elseif not devices[name] and not is_usual(name) and not others[name] then
      others[name], others[#others + 1] = at, name
    end
  end
  return n, of
end

local function node(of, where)
  fields.object(of, where, "apiVersion kind metadata spec status")
  if (of.kind or "Node") ~= "Node" then
    file.fault(path(where, "kind"), "a Node expected, not a '%.40s'", tostring(of.kind))
  end
  local spec = fields.object(of.spec or { [0] = {} }, path(where, "spec"),
    "podCIDR podCIDRs providerID unschedulable taints configSource externalID")
  local meta = fields.object(of.metadata or { [0] = {} }, path(where, "metadata"))
  if of.status then
    fields.object(of.status, path(where, "status"),
      "capacity allocatable phase conditions addresses daemonEndpoints nodeInfo images "
      .. "volumesInUse volumesAttached config runtimeHandlers features declaredFeatures")
  end
  local name = fields.text(meta.name, path(where, "metadata.name"), "the name of the node")
  local labels = fields.object(meta.labels or { [0] = {} }, path(where, "metadata.labels"))
  for _, label in ipairs { "gpu.replicas", "gpu.product", "gpu.count", "gpu.clique" } do
    label = "nvidia.com/" .. label
    fields.text(labels[label] or "", path(where, "metadata.labels"), "the text of " .. label)
  end
  local n, device = count(of, labels, where)
  local clique = labels["nvidia.com/gpu.clique"]
  local above = clique and t:node("switch", clique, where)
  local i = t:add(name, where, n and t.count(tostring(n), path(where, "status.allocatable")), above)
  if t.slots[i] == 0 then t.slots[i] = nil end
  if t.slots[i] then
    if kind and kind ~= device then
      file.fault(where, "the node has %s, and a node before it has %s: all nodes must have the same kind of devices",
        device, kind)
    end
    kind = device
  end
  if spec.unschedulable then t.out[i] = "it is cordoned" end
  found[#found + 1] = i
end

fields.object(all, "", all.items and "apiVersion kind metadata items" or "apiVersion kind metadata spec status")
if all.items then
  if not ({ List = true, NodeList = true })[all.kind or "List"] then
    file.fault("kind", "a list of nodes expected, not a '%.40s'", tostring(all.kind))
  end
  for i, of in ipairs(fields.list(all.items, "items", "nodes")) do node(of, fields.item("items", i)) end
  if #all.items == 0 then file.fault("items", "there is no node in it") end
else
  node(all, "")
end
if not kind and others[1] then
  file.fault(others[others[1]], "no node has devices of a kind that is read (nvidia.com/gpu, amd.com/gpu, "
    .. "habana.ai/gaudi, google.com/tpu, gpu.intel.com/i915, gpu.intel.com/xe); for '%.60s' give the machine's levels "
    .. "instead of a file, as 'node:4 gpu:8'", others[1])
end
for _, i in ipairs(found) do
  if kind and not t.slots[i] then t.out[i] = t.out[i] or "it has no " .. kind end
end
for _, name in ipairs(others) do t.notes[#t.notes + 1] = ("resource '%s' is not counted"):format(name) end
return t
