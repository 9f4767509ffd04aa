-- SPDX-License-Identifier: MIT
--
-- hwloc.lua - read the topology of one node, `lstopo --of xml` (hwloc/hwloc2.dtd of hwloc 2.11, hwloc.dtd of 1.11):
-- packages, and the GPUs in each, or the cores if there are no GPUs. GPUs are the devices of NVML or RSMI; if
-- there are none, the devices of CUDA or Level Zero; if there are none either, the PCI devices that are 3D controllers,
-- accelerators, or graphics of NVIDIA or AMD.
--
-- Skipped: all other objects, infos, page types, distances, memory attributes, kinds of CPU, supports.

local file, _, root = ...
local elements = file.run "elements"

local grammar = {
  topology = { "object distances2 distances2hetero support memattr cpukind info", "version" },
  object = { "object info page_type userdata distances",
    "type subtype os_index id gp_index name local_memory cache_size cache_linesize cache_associativity cache_type "
    .. "cpuset complete_cpuset allowed_cpuset online_cpuset nodeset complete_nodeset allowed_nodeset depth kind "
    .. "subkind dont_merge bridge_type bridge_pci pci_busid pci_type pci_link_speed osdev_type os_level "
    .. "huge_page_size_kB huge_page_free memory_kB" },
  info = { "", "name value" },
  userdata = { "", "name length encoding" },
  page_type = { "", "size count" },
  support = { "", "name value" },
  memattr = { "memattr_value", "name flags" },
  memattr_value = { "",
    "target_obj_gp_index target_obj_type value initiator_cpuset initiator_obj_gp_index initiator_obj_type" },
  cpukind = { "info", "cpuset forced_efficiency" },
  distances = { "latency", "nbobjs relative_depth latency_base" },
  latency = { "", "value" },
  distances2 = { "indexes u64values", "type nbobjs indexing kind name" },
  distances2hetero = { "indexes u64values", "nbobjs kind name" },
  indexes = { "", "length" },
  u64values = { "", "length" },
}
local types = elements.names("Machine System Misc Group NUMANode MemCache Package Socket Die Cache L1Cache L2Cache "
  .. "L3Cache L4Cache L5Cache L1iCache L2iCache L3iCache Core PU Bridge PCIDev OSDev")

-- Libraries that manage GPUs, and libraries that run programs on them. nvml0 and cuda0 may be the same GPU, so devices
-- of the libraries that run programs count only if there is no device of the others.
local kinds = { nvml = "managed", rsmi = "managed", cuda = "run", ze = "run" }
local order = { "managed", "run", "pci", "core" }
local held, last, outside, packages, open = {}, {}, nil, 0, 0
for _, kind in ipairs(order) do held[kind] = { n = 0 } end

local function is_gpu(pci_type)
  local class, vendor = (pci_type or ""):match "^(%x%x%x%x) %[(%x%x%x%x):"
  local graphics = class == "0300" or class == "0380"
  return class == "0302" or class == "1200" or graphics and (vendor == "10de" or vendor == "1002")
end

local function add(kind, e)
  local of = held[kind]
  of.n = of.n + 1
  if open == 0 and kind ~= "core" then outside = outside or e.line end
  if packages > 0 then of[packages] = of[packages] + 1 end
end

local notes = {}
elements.walk(root, grammar, notes, function(e)
  local kind = e.name == "object" and e.of.type
  if e.name == "object" and not types[kind] then
    file.fault(e.line, "unknown type '%.40s' of an object%s", kind or "", file.suggest(kind or "", types))
  end
  if kind == "Package" or kind == "Socket" then
    packages, open = packages + 1, open + 1
    for _, of in pairs(held) do of[packages] = 0 end
  elseif kind == "Core" then
    add("core", e)
  elseif kind == "PCIDev" and is_gpu(e.of.pci_type) then
    add("pci", e)
  elseif kind == "OSDev" then
    local library, number = (e.of.name or ""):match "^(%l+)(%d%d?%d?%d?)$" -- not ze0.0, a tile
    local by = kinds[library]
    if by then
      add(by, e)
      last[by] = elements.in_order(last[by], tonumber(number), e.line)
    end
  end
end, function(e)
  if e.of.type == "Package" or e.of.type == "Socket" then open = open - 1 end
end)

local found = "core"
for i = #order, 1, -1 do
  if held[order[i]].n > 0 then found = order[i] end
end
if found ~= "core" and outside and packages ~= 1 then
  file.fault(outside, "a GPU is outside the %d packages, so its package is not known", packages)
end
if found ~= "core" and packages == 1 then held[found][1] = held[found].n end
return elements.parts(held[found], "package", found == "core" and "core" or "gpu", notes)
