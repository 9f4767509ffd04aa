-- SPDX-License-Identifier: MIT
--
-- Texts of other tools' files for readers_spec.lua: { text, the words after the file's name, result }. The result is
-- the canonical text of the machine, or the message. The file is called "f". A case with a fourth value has notes.

local M = {}

M.hostfile = {
  { "n0 slots=4\nn1 slots=4 # two\n\n# none\nn2 slots=2\n", "", "node:3 gpu:2x4,2" },
  { "n0:4\nn1:4\n", "rail = gpu[50GB/s]", "node:2 gpu:4 rail = gpu[50GB/s]" },
  { "10.0.0.1\n10.0.0.2\r\n", "gpu:8", "node:2 gpu:8" },
  { "n0 slots=4\nn1\n", "", "node:2 gpu:4,1" },
  { "n0 slots=4 max_slots=8\n", "node[400GB/s]", "node:1[400GB/s] gpu:4" },
  { "n0\nn1\nn2\n", "nodes=n2,n0 gpu:2", "node:2 gpu:2" },
  { "n0\nn1\nn2\n", "gpu:2 nodes=n2,n0", "node:2 gpu:2" },
  { "n0 slots=4\nn1 slots=4\nn0 slots=2\n",
    "", "f:3: host 'n0' is there twice, first in line 1: slots= is for a host that has one line" },
  { "n0 slots=four\n", "", "f:1: 'four' is not a number of slots" },
  { "n0 8\n", "", "f:1: in a list of hosts 'slots=8' or nothing is expected after host 'n0', not '8'" },
  { "n0 slots=100000\n", "", "f:1: a host has at most 65536 slots, not 100000" },
  { "n0 slots=4\n", "gpu:8", "f: level 'gpu' is there twice" },
  { "n0 slots=4\n", "rail = gpus", "f: unknown level 'gpus'; nearest is 'gpu' (node, gpu)" },
  { "n0\n", "nodes=n1", "f: nodes= has host 'n1', which is not in the file" },
  { "n0\nn1\n", "nodes=n[0-1],n0", "f: nodes= has host 'n0' twice" },
  { "# none\n", "", "f: there is no host in it" },
  { "", "", "f: there is no host in it" },
  { "n0 lots=8\n", "", "f:1: in a list of hosts 'slots=8' or nothing is expected after host 'n0', not 'lots=8'" },
  { "n0 slots = 8\n", "", "node:1 gpu:8" },
  { "n0 slots=4 n1 slots=4\n", "", "f:1: in a list of hosts 'slots=8' or nothing is expected after host 'n0', not 'n1 slots=4'" },
  { "n0 count=2 user=me\nn1 max-slots=4\nn2 Slots=3 max_slots=9\n", "", "node:3 gpu:2,4,3" },
  { "n0 slots=0\n", "", "f: there is no host in it: host 'n0' gets no ranks: it has no slots" },
  { "n0:0\n", "", "f: there is no host in it: host 'n0' gets no ranks: it has no slots" },
  { "node[01-04] slots=2\n", "", "f:1: a host of a list expected, as 'n0 slots=8', not 'node[01-04]'" },
  { "rank 0=n0 slot=0\n", "", "node:1 gpu:1" },
  { "what is this?\n", "", "f:1: in a list of hosts 'slots=8' or nothing is expected after host 'what', not 'is this?'" },
}

local conf = "# a tree\nSwitchName=s0 Nodes=n[0-1]\nswitchname=s1 nodes=n[2-3] LinkSpeed=1\nSwitchName=s2 \\\n"
  .. "  Switches=s[0-1]\n"
local blocks = "BlockName=b0 Nodes=n[01-03]\nBlockName=b1 Nodes=n[04-06]\nBlockSizes=3\n"
M.slurm = {
  { conf, "", "switch2:1 switch:2 node:2" },
  { conf, "nodes=n3,n0,n2 gpu:2", "switch2:1 switch:2 node:2,1 gpu:2 ranks = 0..1,4..5,2..3" },
  { "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[0-1]\nSwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[2-3]\n"
    .. "SwitchName=s2 Level=1 LinkSpeed=1 Nodes=n[0-3] Switches=s[0-1]\n",
    "gpu:8", "switch2:1 switch:2 node:2 gpu:8" },
  { "SwitchName=s0 Nodes=n0\nSwitchName=s1 Switches=s0 \nSwitchName=top Switches=s1,s2\n"
    .. "SwitchName=s2 Nodes=n[1-2]\n",
    "", "switch3:1 switch2:2 switch:1 node:1,2" },
  { blocks, "gpu:4", "block:2 node:3 gpu:4" },
  { conf .. blocks, "topology=tree", "switch2:1 switch:2 node:2" },
  { conf .. blocks, "topology=block", "block:2 node:3" },
  { conf .. blocks, "", "f: it has both a tree of switches and blocks: write topology=tree or topology=block after the file's name" },
  { conf, "topology=ring", "f: unknown topology 'ring'; known: tree, block" },
  { "SwitchName=s0 Nodes=n[0-1]\nSwitchName=s1 Switches=s2,s0\nSwitchName=s2 Switches=s1\n",
    "", "f:2: switch 's1' is below itself: s1 < s2 < s1" },
  { "SwitchName=s0 Nodes=n0\nSwitchName=s1 Switches=s2\nSwitchName=s2 Switches=s1\n",
    "", "f:2: switch 's1' is below itself: s1 < s2 < s1" },
  { "SwitchName=s0 Nodes=n[0-1]\nSwitchName=s1 Nodes=n[1-2]\n",
    "", "f:2: host 'n1' is below switch 's1', and below 's0' already" },
  { "SwitchName=s0 Nodes=n0\nSwitchName=s0 Nodes=n1\n", "", "f:2: switch 's0' is there twice, first in line 1" },
  { "SwitchName=top Switches=s[0-1]\nSwitchName=s0 Nodes=n0\n",
    "", "f:1: switch 's1' is named here and has no line of its own: the file may be cut short" },
  { "SwitchName=s0 Nodes=n[0-\n", "", "f:1: a list of names, as n[1-4,08],m1, expected, not '[0-'" },
  { "SwitchName=s0 Nodes=n[5-1]\n", "", "f:1: a list of names, as n[1-4,08],m1, expected, not '-1]'" },
  { "SwitchName=s0\n", "", "f:1: switch 's0' has no Nodes= and no Switches=" },
  { "SwitchName=s0 Nodes=n0\nNodes=n1\n", "", "f:2: SwitchName= or BlockName= expected, not 'Nodes=n1'" },
  { "SwitchName=s0 Nodes= n[0-1]\n", "", "switch:1 node:2" },
  { "SwitchName=s0 Nodes =n[0-1]\n", "", "switch:1 node:2" },
  { 'SwitchName=s0 Nodes="n[0-1]"\n', "", "switch:1 node:2" },
  { "SwitchName=s0 Nodes=\n", "", "f:1: Key=value expected, not 'Nodes='" },
  { "SLURM_JOB_NODELIST=n[0-3]\n", "gpu:2", "node:4 gpu:2" },
  { "0: SLURM_JOB_NODELIST=n[0-3]\n0: SLURM_TOPOLOGY_ADDR=s2.s0.n0\n1: SLURM_TOPOLOGY_ADDR=s2.s1.n1\n"
    .. "2: SLURM_TOPOLOGY_ADDR=s2.s0.n2\n3: SLURM_TOPOLOGY_ADDR=s2.s1.n3\n",
    "", "switch2:1 switch:2 node:2 ranks = 0,2,1,3" },
  { "SLURM_TOPOLOGY_ADDR=b0.n0\nSLURM_TOPOLOGY_ADDR_PATTERN=block.node\nSLURM_TOPOLOGY_ADDR=b1.n1\n", "", "block:2 node:1" },
  { "SLURM_JOB_NODELIST=n[0-2]\nSLURM_TOPOLOGY_ADDR=s0.n0\nSLURM_TOPOLOGY_ADDR=s0.n1\n",
    "", "f:1: the list of nodes has host 'n2', which is not in the file" },
}

local fat = '---\n- topology: fat\n  cluster_default: true\n  tree:\n    switches:\n      - switch: sw_root\n'
  .. '        children: s[1-2]\n      - switch: s1\n        nodes: node[01-02]\n      - switch: s2\n'
  .. '        nodes: "node[03-04]"\n'
local nvl = "- topology: nvl\n  cluster_default: false\n  block:\n    block_sizes:\n      - 4\n      - 16\n"
  .. "    blocks:\n      - block: b1\n        nodes: node[01-03]\n      - block: b2\n"
  .. "        nodes: node04\n"
M.slurm_yaml = {
  { fat, "gpu:4", "switch2:1 switch:2 node:2 gpu:4" },
  { nvl, "", "block:2 node:3,1" },
  { fat .. nvl, "topology=nvl", "block:2 node:3,1" },
  { fat .. nvl, "topology=fat", "switch2:1 switch:2 node:2" },
  { fat .. nvl, "", "f: it has 2 topologies (fat, nvl): topology=NAME after the file's name chooses one" },
  { fat .. nvl, "topology=nvm", "f: unknown topology 'nvm'; known: fat, nvl" },
  { "- topology: a\n  tree:\n    switches:\n      - switch: s\n        children: t\n",
    "", "f: [0].tree.switches[0]: switch 't' is named here and has no entry of its own: the file may be cut short" },
  { "- topology: a\n  tree:\n    switches:\n      - nodes: n1\n",
    "", "f: [0].tree.switches[0].switch: the name of the switch expected" },
  { "- topology: a\n  tree:\n    swithces:\n", "", "f: [0].tree: unknown field 'swithces'; nearest is 'switches' (switches)" },
  { "- topology: a\n  tree\n", "", "f:3: could not find expected ':'" },
}

M.json = {
  { '{"levels": [{"name": "node", "counts": [2], "bandwidth": 4e11, "domains": ["a", "b"]},\n'
    .. ' {"name": "gpu", "counts": [3, 4]}], "crossings": [{"name": "rail", "of": "gpu"}], "ranks": [6, 5, 0'
    .. ']}',
    "", "node:2[400GB/s] gpu:3,4 rail = gpu ranks = 6,5,0" },
  { '{"levels": [{"name": "node", "counts": [2]}, {"name": "gpu", "counts": [4]}], "crossings": [{"name": "rail", "of": "gpu"}]}',
    "rail[50GB/s] node[400GB/s]", "node:2[400GB/s] gpu:4 rail = gpu[50GB/s]" },
  { '{"levels": [{"name": "node"}]}', "", "f: levels[0].counts: a list of integers from 0 expected" },
  { '{"levels": [{"name": "node", "counts": [2], "domains": ["a"]}]}',
    "", "f: levels[0].domains: 2 names expected, as many as the level has domains, not 1" },
  { '{"levels": [{"name": "node", "counts": [2]', "", "f:1: '}' expected near end of file" },
  { '{"10.0.0.1": "sw-3", "10.0.0.2": "sw-4", "10.0.0.3": "sw-3"}', "gpu:2", "switch:2 node:2,1 gpu:2 ranks = 0..1,4..5,2..3" },
  { '{"10.0.0.1": "sw-3", "10.0.0.1": "sw-4"}', "", "f:1: duplicate object key near '\"10.0.0.1\"'" },
  { '{"10.0.0.1": 3}', "", 'f: JSON of a machine has levels (moongrid machine --json), items (kubectl), or the switch of each node, {"10.0.0.1": "sw-3"}' },
  { "[]", "", 'f: JSON of a machine has levels (moongrid machine --json), items (kubectl), or the switch of each node, {"10.0.0.1": "sw-3"}' },
  { '{"kind": "List", "items": [\n'
    .. '{"metadata": {"name": "a", "labels": {"nvidia.com/gpu.clique": "u.1"}}, "status": {"allocatable": {"'
    .. 'nvidia.com/gpu": "4"}}},\n'
    .. '{"metadata": {"name": "b", "labels": {"nvidia.com/gpu.clique": "u.1"}}, "status": {"allocatable": {"'
    .. 'nvidia.com/gpu": "4"}}},\n'
    .. '{"metadata": {"name": "c", "labels": {"nvidia.com/gpu.clique": "u.2", "nvidia.com/gpu.count": "4"}}}'
    .. ']}',
    "", "clique:2 node:2,1 gpu:4" },
  { '{"items": [{"metadata": {"name": "cp"}, "status": {"allocatable": {"cpu": "8"}}}, {"metadata": {"nam'
    .. 'e": "a"}, "status": {"allocatable": {"nvidia.com/gpu": "4"}}}, {"metadata": {"name": "b"}, "status":'
    .. ' {"allocatable": {"nvidia.com/gpu": "0"}}}]}',
    "", "node:1 gpu:4",
    "host 'cp' gets no ranks: it has no nvidia.com/gpu host 'b' gets no ranks: it has no nvidia.com/gpu" },
  { '{"items": [{"metadata": {"name": "cp"}, "status": {"allocatable": {"cpu": "8"}}}, {"metadata": {"nam'
    .. 'e": "a"}, "status": {"allocatable": {"nvidia.com/gpu": "4"}}}]}',
    "nodes=a,cp", "node:2 gpu:4,1" },
  { '{"items": [{"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "8", "google.com/tpu": "4"}'
    .. '}}]}',
    "", "node:1 gpu:4" },
  { '{"kind": "Node", "metadata": {"name": "a"}}', "", "node:1" },
  { '{"items": [{"metadata": {}}]}', "", "f: items[0].metadata.name: the name of the node expected" },
}

M.gpus = {
  { "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\nGPU0\t X \tNV4\tSYS\tSYS\tPXB\t0-15\n"
    .. "GPU1\tNV4\t X \tSYS\tSYS\tPXB\t0-15\nGPU2\tSYS\tSYS\t X \tNV4\tSYS\t16-31\n"
    .. "GPU3\tSYS\tSYS\tNV4\t X \tSYS\t16-31\nNIC0\tPXB\tPXB\tSYS\tSYS\t X\n\nLegend:\n",
    "", "node:* nvlink:2 gpu:2" },
  { "\t\27[4mGPU0\tGPU1\tCPU Affinity\27[0m\nGPU0\t X \tNV18\t0-15\nGPU1\tNV18\t X \t0-15\nLegend:\n",
    "rail = gpu", "node:* nvlink:1 gpu:2 rail = gpu" },
  { "\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV18\t X \n", "node:8[50GB/s] gpu[450GB/s]", "node:8[50GB/s] nvlink:1 gpu:2[450GB/s]" },
  { "\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV18\t X \n", "nvlink:8", "f: level 'nvlink' is there twice" },
  { "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-15\n", "", "f:1: there are 1 rows for 2 GPUs: the text may be cut short" },
  { "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tWAT\nGPU1\tNV18\t X \n", "", "f:2: 'WAT' is not a link of two GPUs, as NV18 or SYS" },
  { "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tSYS\tNV2\nGPU1\tSYS\t X \tSYS\nGPU2\tNV2\tSYS\t X \n",
    "",
    "f: GPUs of an NVLink domain do not have consecutive numbers: GPU2 is in the domain of GPU0; CUDA_VISIBL"
    .. "E_DEVICES=0,2,1 would order them" },
  { "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\nGPU0\t X \tSYS\tSYS\tNV4\nGPU1\tSYS\t X \tNV4\tSYS\n"
    .. "GPU2\tSYS\tNV4\t X \tSYS\nGPU3\tNV4\tSYS\tSYS\t X \n",
    "",
    "f: GPUs of an NVLink domain do not have consecutive numbers: GPU3 is in the domain of GPU0; CUDA_VISIBL"
    .. "E_DEVICES=0,3,1,2 would order them" },
  { "==============NVSMI LOG==============\n\nAttached GPUs                             : 2\n"
    .. "GPU 00000000:01:00.0\n    Fabric\n        CliqueId                          : 1\n"
    .. "        ClusterUUID                       : 2e9b\nGPU 00000000:02:00.0\n    Fabric\n"
    .. "        CliqueId                          : 1\n        ClusterUUID                       : 2e9b\n"
    .. "==============NVSMI LOG==============\n\nAttached GPUs                             : 2\n"
    .. "GPU 00000000:01:00.0\n    Fabric\n        CliqueId                          : 1\n"
    .. "        ClusterUUID                       : 2e9b\nGPU 00000000:02:00.0\n    Fabric\n"
    .. "        CliqueId                          : 1\n        ClusterUUID                       : 2e9b\n"
    .. "==============NVSMI LOG==============\n\nAttached GPUs                             : 2\n"
    .. "GPU 00000000:01:00.0\n    Fabric\n        CliqueId                          : 2\n"
    .. "        ClusterUUID                       : 2e9b\nGPU 00000000:02:00.0\n    Fabric\n"
    .. "        CliqueId                          : 2\n        ClusterUUID                       : 2e9b\n",
    "", "clique:2 node:2,1 gpu:2" },
  { "==============NVSMI LOG==============\n\nAttached GPUs                             : 2\n"
    .. "GPU 00000000:01:00.0\n    Fabric\n        CliqueId                          : 0\n"
    .. "        ClusterUUID                       : 00000000-0000-0000-0000-000000000000\n"
    .. "GPU 00000000:02:00.0\n    Fabric\n        CliqueId                          : 0\n"
    .. "        ClusterUUID                       : 00000000-0000-0000-0000-000000000000\n",
    "", "node:1 gpu:2" },
  { "NVSMI LOG\nAttached GPUs  : 2\nGPU 00000000:01:00.0\n", "", "f:3: the node has 1 of 2 attached GPUs: the text may be cut short" },
  { '<system version="1"><cpu numaid="0"><pci><gpu dev="0"/></pci><pci><gpu dev="1"/></pci></cpu>\n'
    .. '<cpu numaid="1"><pci><gpu dev="2"/></pci><pci><gpu dev="3"></gpu></pci></cpu><cpu/></system>',
    "", "node:* cpu:2 gpu:2" },
  { "<system><cpu><pci><gpu/></pci></cpu><cpu><pci><gpu/></pci><pci><gpu/></pci></cpu></system>",
    "", "f: the cpus of the node hold different numbers of gpus" },
  { "<system><cpu><pci>\n", "", "f:2: no element found: the text may be cut short" },
  { "<system><cpu></system>", "", "f:1: mismatched tag" },
  { "<system></system>", "", "f: there is no gpu in it" },
  { '<?xml version="1.0"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
    .. '<topology version="2.0"><object type="Machine"><object type="Package"><object type="Core"/><object t'
    .. 'ype="Core"/><object type="OSDev" name="cuda0"/><object type="OSDev" name="nvml0"/></object><object t'
    .. 'ype="Package"><object type="OSDev" name="nvml1"/></object></object></topology>',
    "", "node:* package:2 gpu:1" },
  { "<system><cpu host_hash=\"0x1\"><pci><gpu/></pci></cpu><cpu host_hash=\"0x1\"><pci><gpu/></pci></cpu>"
    .. "\n<cpu host_hash='0x2'><pci><gpu/></pci></cpu></system>",
    "", "f:2: the CPUs are of several hosts, 0x1 and 0x2: only a topology of one node is read" },
  { '<system><cpu><pci><gpu dev="0"/></pci><pci><gpu dev="2"/></pci></cpu>\n'
    .. '<cpu><pci><gpu dev="1"/></pci><pci><gpu dev="3"/></pci></cpu></system>',
    "", "f:2: GPU 1 is listed after GPU 2: the GPUs of a part must have consecutive numbers" },
  { "<topology><object name=\"a type=x b\" type = \"Misc\"/><object name=\"a type=x b\" type=\"Package\">"
    .. "<object type=\"Core\"/></object><object name=' type=\"Core\" ' type='Package'><object type='Core'/><"
    .. "/object></topology>",
    "", "node:* package:2 core:1" },
  { '<topology><object type="Package"><object type="Core"/><object type="PCIDev"><object type="OSDev" nam'
    .. 'e="nvml0"/></object></object>\n'
    .. '<object type="Package"><object type="Core"/><object type="PCIDev"><object type="OSDev" name="nvml1"/'
    .. '></object></object><object type="PCIDev"><object type="OSDev" name="nvml2"/></object><object type="P'
    .. 'CIDev"><object type="OSDev" name="nvml3"/></object></topology>',
    "", "f:2: a GPU is outside the 2 packages, so its package is not known" },
  { '<topology><object type="Package"><object type="Core"/></object><object type="PCIDev"><object type="O'
    .. 'SDev" name="nvml0"/></object><object type="PCIDev"><object type="OSDev" name="nvml1"/></object></top'
    .. 'ology>',
    "", "node:* package:1 gpu:2" },
  { '<topology><object type="Package"><object type="Core"/><object type="PCIDev"><object type="OSDev" nam'
    .. 'e="ze0"/></object><object type="PCIDev"><object type="OSDev" name="ze0.0"/></object></object><object'
    .. ' type="Package"><object type="Core"/><object type="PCIDev"><object type="OSDev" name="ze1"/></object'
    .. '></object></topology>',
    "", "node:* package:2 gpu:1" },
  { '<topology><object type="Package"><object type="Core"/><object type="PCIDev"><object type="OSDev" nam'
    .. 'e="nvml0"/></object><object type="PCIDev"><object type="OSDev" name="nvml2"/></object></object><obje'
    .. 'ct type="Package"><object type="Core"/><object type="PCIDev"><object type="OSDev" name="nvml1"/></ob'
    .. 'ject><object type="PCIDev"><object type="OSDev" name="nvml3"/></object></object></topology>',
    "", "f:1: GPU 1 is listed after GPU 2: the GPUs of a part must have consecutive numbers" },
  { '<topology><object type="Machine"><object type="Package"><object type="Core"/><object type="Core"/></'
    .. 'object></object><!-- <broken --></topology>',
    "", "node:* package:1 core:2" },
}

M.limits = {
  { "SwitchName=s1 Nodes=n[1-8000][1-8000]\n",
    "", "f:1: the lists of names have more than 262182 names, the limit for 38 bytes" },
  { "SLURM_JOB_NODELIST=n[0-99999999999]\n",
    "", "f:1: the lists of names have more than 262180 names, the limit for 36 bytes" },
  { "- topology: a\n  tree:\n    switches:\n    - switch: s\n      nodes: n[1-200000],n[1-200000]\n",
    "", "f: [0].tree.switches[0]: the lists of names have more than 262233 names, the limit for 89 bytes" },
  { "n0\n", "nodes=n0,n[0-999999]", "f: nodes= has host 'n0' twice" },
  { "SwitchName=s1 Nodes=n[1-200000]\n", "", "switch:1 node:200000" },
  { "SLURM_TOPOLOGY_ADDR=s1.s2.s3.s4.s5.s6.s7.s8.s9.s10.s11.s12.s13.s14.n0\n",
    "", "f: 14 levels of switches above a host are more than 13" },
  { "n0\n", "a:4194305x1", "f: character 4: at most 4194304 numbers in all levels expected, not '4194305x1'" },
  { "n0\n", "ranks = 0..16777216", "f: character 10: places from low to high, at most 16777216, expected, not '0..16777216'" },
}
table.insert(M.limits, { ("SwitchName=s Nodes=%s[0-200000]\n"):format(("n"):rep(800)), "",
  ("f:1: the name '%s...' has more than 255 bytes"):format(("n"):rep(60)) })
local deep = { "SwitchName=s0 Nodes=n[1-200000]\n" } -- as many levels as there may be, in a moment
for i = 1, 12 do deep[#deep + 1] = ("SwitchName=s%d Switches=s%d\n"):format(i, i - 1) end
table.insert(M.limits, { table.concat(deep), "", "switch13:1 switch12:1 switch11:1 switch10:1 switch9:1 switch8:1 switch7:1 "
  .. "switch6:1 switch5:1 switch4:1 switch3:1 switch2:1 switch:1 node:200000" })

-- Misreadings: what public reports hit, and their kind.
M.rows = {
  { "n0 slots=0\nn1 slots=4\n", "", "node:1 gpu:4", "host 'n0' gets no ranks: it has no slots" },
  { "n0 slots = 8\nn1 count=2\nn2 cpu=2\n", "", "node:3 gpu:8,2x2" },
  { "node[01-04]\n", "", "f:1: a host of a list expected, as 'n0 slots=8', not 'node[01-04]'" },
  { "n0\nn0\nn0\nn0\nn1\nn1\nn1\nn1\n", "", "node:2 gpu:4" }, -- $PBS_NODEFILE
  { "n0\nn1\nn0\nn1\n", "", "node:2 gpu:2 ranks = 0,2,1,3" },
  { "rank 0=n0 slot=0:0\nrank 1=n0 slot=0:1\nrank 2=n1 slot=0:0\nrank 3=n1 slot=0:1\n", "", "node:2 gpu:2" },
  { "rank 1=n0 slot=1\nrank 0=n1 slot=0\nrank 2=n1 slot=7\n", "", "node:2 gpu:2,1 ranks = 0,2,1" },
  { "rank 0=n0 slot=0\nrank 2=n0 slot=1\n", "", "f: rank 1 is missing, and the file has 2 ranks: it may be cut short" },
  { "rank 0=n0 slot=0\nrank 0=n0 slot=1\n", "", "f:2: rank 0 is there twice, first in line 1" },
  { "rank 0=n0\n", "", "f:1: a line 'rank 0=n0 slot=0' expected, not 'rank 0=n0'" },
  { "SwitchName=s1 Nodes= n[1-2]\nSwitchName=s2 Nodes=n[3-4]\n", "", "switch:2 node:2" }, -- s1 vanished
  { 'SwitchName="leaf1" Nodes="n[1-4]"\nSwitchName="leaf2" Nodes="n[5-8]"\nSwitchName="top" Switches="leaf1,leaf2"\n',
    "gpu:8", "switch2:1 switch:2 node:4 gpu:8" },
  { 'SwitchName="leaf1" Nodes="n[1-4]"\n', "nodes=n[1-2] gpu:8", "switch:1 node:2 gpu:8" },
  { "SwitchName=s1 \\\n \\\n Nodes=n[1-2]\n", "", "switch:1 node:2" },
  { "SwitchName=s1 Nodes+=n1\n", "", "f:1: Key=value expected, not 'Nodes+=n1'" },
  { "SwitchName=s1 Node=n1\n", "", "f:1: unknown key 'Node' in a line of SwitchName=" },
  { "Include other.conf\nSwitchName=s1 Nodes=n1\n", "",
    "f:1: in a list of hosts 'slots=8' or nothing is expected after host 'Include', not 'other.conf'" },
  { "- topology: t\n  tree:\n    switches:\n    - {nodes: 'n[1-2]', switch: s1}\n    - switch: s2\n      nodes: >-\n"
    .. "        n[3-4]\n", "", "switch:2 node:2" }, -- flow style, and a folded text
  { "- cluster_default: true\n  topology: a\n  tree:\n    switches:\n    - children: s[1-2]\n      switch: root\n"
    .. "    - nodes: n[1-2]\n      switch: s1\n    - nodes: n[3-6]\n      switch: s2\n", "", "switch2:1 switch:2 node:2,4" },
  { '- "topology": "a"\n  "tree":\n    "switches":\n      -\n        "switch": "s1"\n        "nodes": "n[1-2]"\n', "",
    "switch:1 node:2" },
  { "- topology: a\n  ring:\n    rings: []\n", "",
    "f: [0]: one tree or one block expected in topology 'a'" },
  { "- topology: a\n  tree:\n    switches:\n    - switch: s\n      nodes: 1234\n", "",
    "f: [0].tree.switches[0].nodes: a list of names expected, as text in quotes, not '1234'" },
  { '{"levels": [{"name": "node", "counts": [2]}], "costs": {"flops": 4e14}}', "", "node:2" }, -- of a step's price
  { '{"levels": [{"name": "node", "counts": [2]}], "cost": 1}', "", "f: unknown field 'cost'; nearest is 'costs' "
    .. "(levels, crossings, ranks, boot_ids, costs, notes)" },
  { '{"items": []}', "", "f: items: there is no node in it" },
  { '{"kind": "PodList", "items": []}', "", "f: kind: a list of nodes expected, not a 'PodList'" },
  { '{"kind": "PodList", "metadata": {}}', "", "f: kind: a Node expected, not a 'PodList'" },
  { '{"items": [{"metadata": {"name": "a"}, "states": {}}]}', "",
    "f: items[0]: unknown field 'states'; nearest is 'status' (apiVersion, kind, metadata, spec, status)" },
  { '{"items": [{"metadata": {"name": "a"}, "status": {"allocatable": {"habana.ai/gaudi": "8"}}}]}', "", "node:1 gpu:8" },
  { '{"items": [{"metadata": {"name": "a"}, "status": {"allocatable": {"google.com/tpu": "4"}}}]}', "", "node:1 gpu:4" },
  { '{"items": [{"metadata": {"name": "a"}, "status": {"allocatable": {"nvidia.com/mig-1g.5gb": "7"}}}]}', "",
    "f: items[0].status.allocatable: 'nvidia.com/mig-1g.5gb': GPUs that are cut by MIG are not read: a rank needs a whole GPU" },
  { '{"items": [{"metadata": {"name": "a", "labels": {"nvidia.com/gpu.replicas": "4"}}, "status": {"allocatable": '
    .. '{"nvidia.com/gpu": "8"}}}]}', "", "f: items[0].metadata.labels: the GPUs are time-shared "
    .. "(nvidia.com/gpu.replicas): a rank needs a GPU of its own" },
  { '{"items": [{"metadata": {"name": "a"}, "status": {"allocatable": {"x.com/new": "7"}}}]}', "",
    "f: items[0].status.allocatable: no node has devices of a kind that is read (nvidia.com/gpu, amd.com/gpu, "
    .. "habana.ai/gaudi, google.com/tpu, gpu.intel.com/i915, gpu.intel.com/xe); for 'x.com/new' give the machine's levels instead of a file, as "
    .. "'node:4 gpu:8'" },
  { '{"items": [{"metadata": {"name": "a"}, "status": {"allocatable": {"x.com/new": "7", "amd.com/gpu": "2"}}}]}', "",
    "node:1 gpu:2", "resource 'x.com/new' is not counted" },
  { '{"items": [{"metadata": {"name": "a"}, "status": {"allocatable": {"amd.com/gpu": "2", "nvidia.com/gpu": "2"}}}]}', "",
    "f: items[0].status.allocatable: the node has devices of two kinds, amd.com/gpu and nvidia.com/gpu" },
  { '{"items": [{"metadata": {"name": "a"}, "spec": {"unschedulable": true}, "status": {"allocatable": {"amd.com/gpu": "2"}}},'
    .. '{"metadata": {"name": "b"}, "status": {"allocatable": {"amd.com/gpu": "2"}}},{"metadata": {"name": "c"}}]}', "",
    "node:1 gpu:2", "host 'a' gets no ranks: it is cordoned host 'c' gets no ranks: it has no amd.com/gpu" },
  { '<system version="1"><cpu host_hash="0x1"><pci><gpu dev="0"/></pci></cpu>\n<cpu host_hash="0x2"><pci><gpu dev="1"/></pci>'
    .. "</cpu></system>", "", "f:2: the CPUs are of several hosts, 0x1 and 0x2: only a topology of one node is read" },
  { '<system version="1"><cpu new="1"><pci><gpu dev="0"/></pci></cpu></system>', "", "node:* cpu:1 gpu:1",
    "line 1: attribute 'new' of <cpu> is not read" },
  { '<system version="2"><cpu/></system>', "", "f:1: a topology of version 1 is read, not 2" },
  { '<graphs version="1"><graph id="0"><channel><net dev="0"/><gpu dev="1"/><gpu dev="0"/></channel><channel><gpu dev="0"/>'
    .. '<gpu dev="1"/></channel></graph></graphs>', "", "node:* gpu:2" },
  { '<graphs version="1"><graph id="0"><channel><gpu dev="1"/><gpu dev="0"/></channel>\n<channel><gpu dev="0"/></channel>'
    .. "</graph></graphs>", "", "f:2: this channel has 1 GPUs, and the channels before it have 2" },
  { '<!DOCTYPE a [<!ENTITY b "c">]><system/>', "", "f:1: entities are not read: b" },
  { '<topology><object type="Package"/>\n<object type="Package"/><object type="OSDev" name="nvml0"/></topology>', "",
    "f:2: a GPU is outside the 2 packages, so its package is not known" },
  { '<topology><object type="Package"><object type="Core"/><object type="PCIDev" pci_type="0302 [10de:2330] [10de:1] a1">'
    .. '<object type="OSDev" name="card1"/></object><object type="PCIDev" pci_type="0300 [1a03:2000] [1a03:2000] 41">'
    .. '<object type="OSDev" name="card0"/></object></object></topology>', "", "node:* package:1 gpu:1" }, -- card0 alone
  { "GPU 0: NVIDIA A100 (UUID: GPU-1)\n", "", "f:1: only the output of nvidia-smi topo -m and nvidia-smi -q is read" },
  { "index, name, uuid\n0, A100, GPU-1\n", "", "f:1: only the output of nvidia-smi topo -m and nvidia-smi -q is read" },
  { "NVSMI LOG\nAttached GPUs : 1\nGPU 0:1\n    MIG Mode\n        Current : Enabled\n", "",
    "f:5: MIG is on: a rank needs a whole GPU" },
  { "SLURM_JOB_NODELIST=n[0-3]\nSLURM_TASKS_PER_NODE=8(x4)\n", "", "node:4 gpu:8" },
  { "SLURM_JOB_NODELIST=n[0-3]\nSLURM_TASKS_PER_NODE=8(x4)\n", "gpu:2", "node:4 gpu:2" },
  { "SLURM_JOB_NODELIST=n[0-3]\nSLURM_TASKS_PER_NODE=8(x2),4\n", "",
    "f:2: SLURM_TASKS_PER_NODE of 4 hosts expected, not '8(x2),4'" },
  { "SLURM_JOB_NODELIST=n[0-3]\nSLURM_JOB_NODELIST=n[0-1]\n", "", "f:2: 'n[0-1]' differs from line 1: the lines are of several jobs" },
  { "\xEF\xBB\xBFn0 slots=2\n", "nodes=n0", "node:1 gpu:2" }, -- a byte order mark
  { '\xEF\xBB\xBF{"n0": "s0"}', "", "switch:1 node:1" },
  { "n0\0\n", "", "f: byte 3 is zero: this is not text" },
  { "\xEF\xBB\xBFn0\0\n", "", "f: byte 6 is zero: this is not text" },
}

return M
