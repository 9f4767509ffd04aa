-- SPDX-License-Identifier: MIT
--
-- nccl.lua - read the topology of one node that NCCL writes to NCCL_TOPO_DUMP_FILE (src/graph/xml.cc and xml.h of NCCL
-- 2.28): the CPUs, and the GPUs below each CPU.
--
-- Skipped: attributes besides `dev`, `host_hash` and `version`; NVLinks, network cards, PCI links.

local file, _, root = ...
local elements = file.run "elements"

local grammar = {
  system = { "cpu", "version name" },
  cpu = { "pci nic", "numaid affinity arch vendor familyid modelid host_hash" },
  pci = { "pci gpu nic pcilink", "busid class vendor device subsystem_vendor subsystem_device link_speed link_width" },
  gpu = { "nvlink c2c", "dev sm rank gdr gcn arch busid mnnvl" },
  nic = { "net", "" },
  net = { "", "name dev latency speed port guid maxconn gdr coll keep railId planeId" },
  nvlink = { "", "target count tclass" },
  c2c = { "", "bw count" },
  pcilink = { "", "target" },
}

local gpus, notes, last, host = {}, {}, nil, nil
if (root.of.version or "1") ~= "1" then
  file.fault(root.line, "a topology of version 1 is read, not %.40s", root.of.version)
end
elements.walk(root, grammar, notes, function(e)
  if e.name == "cpu" then
    gpus[#gpus + 1] = 0
    local hash = e.of.host_hash
    if hash and host and hash ~= host then
      file.fault(e.line, "the CPUs are of several hosts, %.40s and %.40s: only a topology of one node is read", host,
        hash)
    end
    host = host or hash
  elseif e.name == "gpu" then
    gpus[#gpus] = gpus[#gpus] + 1
    local dev = e.of.dev
    if dev then
      if not dev:find "^%d%d?%d?%d?$" then file.fault(e.line, "dev=\"%.40s\" is not a number of a GPU", dev) end
      last = elements.in_order(last, tonumber(dev), e.line)
    end
  end
end)
local made = elements.parts(gpus, "cpu", "gpu", notes)
made.nccl = true
return made
