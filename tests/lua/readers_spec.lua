-- SPDX-License-Identifier: MIT
--
-- Machines from the files of other tools, read by the command: the result of each text, and the refusals (readers.lua).
-- A generator makes machines and writes them in random legal spellings of each tool, which are read back unchanged.
-- With one unknown word they are refused or noted; files with random errors never make a reader fail. If the tool is
-- installed, its own reading is compared. MOONGRID_SEED chooses the first random numbers, MOONGRID_CASES how many files
-- of each tool.

local support = dofile "tests/lua/support.lua"
local cases = dofile "tests/lua/readers.lua"
local run, write, read = support.run, support.write, support.read

local root = run("pwd"):gsub("\n", "")
local seed, count = tonumber(os.getenv "MOONGRID_SEED") or 1, tonumber(os.getenv "MOONGRID_CASES") or 8

-- Run the command on files { text, words } in a folder of their own each, where a file is called f. Each gets fields
-- out, err and code.
local function read_all(files, options)
  local folder = support.folder()
  for i, file in ipairs(files) do
    os.execute(("mkdir %s/%d"):format(folder, i))
    write(("%s/%d/f"):format(folder, i), file[1])
    write(("%s/%d/words"):format(folder, i), "f " .. (file[2] or ""))
  end
  run(("for i in %s/*/; do cd $i; timeout 60 %s/build/moongrid machine \"$(cat words)\" %s > out 2> err; echo $? > code; done")
    :format(folder, root, options or ""))
  for i, file in ipairs(files) do
    for _, name in ipairs { "out", "err", "code" } do file[name] = read(("%s/%d/%s"):format(folder, i, name)) end
    file.code = tonumber(file.code)
  end
  run("rm -r " .. folder)
  return files
end

-- The text of the machine, or the message; and the notes.
local function made(file)
  local text = file.out:match "^machine%s+(.-)\n\n" or file.err:gsub("^moongrid: ", "")
  local notes = {}
  for note in file.out:gsub("\n%s+", " "):gmatch "note%s+([^\n]+)" do notes[#notes + 1] = note end
  return (text:gsub("\n%s+", " "):gsub("\n$", "")), table.concat(notes, " ")
end

describe("a reader of machines makes of each text what it should", function()
  for _, name in ipairs { "hostfile", "slurm", "slurm_yaml", "json", "gpus", "limits", "rows" } do
    it(name, function()
      for i, file in ipairs(read_all(cases[name])) do
        local text, notes = made(file)
        assert.are.equal(file[3], text, ("%s, case %d"):format(name, i))
        assert.are.equal(file[4] or "", notes, ("%s, case %d"):format(name, i))
        assert.are.equal(file.err == "" and 0 or file[3]:find "more than" and 3 or 1, file.code, ("%s, case %d"):format(name, i))
      end
    end)
  end

  it("a chain of switches with a host at each, however long", function() -- 0.5 s; from switch to switch for each host, minutes
    local lines = {}
    for i = 0, 49999 do
      lines[#lines + 1] = ("SwitchName=s%d Switches=s%d,t%d\nSwitchName=t%d Nodes=n%d\n"):format(i, i + 1, i, i, i)
    end
    lines[#lines + 1] = "SwitchName=s50000 Nodes=n\n"
    local file = read_all({ { table.concat(lines) } })[1]
    assert.are.equal("f: 14 levels of switches above a host are more than 13", (made(file)))
    assert.are.equal(3, file.code)
  end)

  it("the job that this process is in, with a place for each task", function()
    local line = "SLURM_JOB_NODELIST='n[0-3]' SLURM_TASKS_PER_NODE='8(x4)' build/moongrid machine slurm"
    assert.is_truthy(run(line):find("^machine +node:4 gpu:8\n"))
    assert.is_truthy(run(line:gsub("slurm$", "'slurm gpu:2'")):find("^machine +node:4 gpu:2\n"))
    assert.is_truthy(run(line:gsub("slurm$", "'slurm gpu:2 nodes=n2'")):find("^machine +node:1 gpu:2\n"))
  end)

  it("one line where libmoongrid_lua is missing", function()
    local folder = support.folder()
    write(folder .. "/host.c", [[
#include <moongrid.h>
#include <stdio.h>
int main(void) {
  mgrid_error          e = MGRID_ERROR_INIT;
  mgrid_machine_model *m = mgrid_machine_parse("node:4 gpu:8", &e);
  printf("%d\n", (int)mgrid_machine_places(m));
  mgrid_machine_free(m);
  m = mgrid_machine_read("n0 slots=4", 10, "f", NULL, &e);
  printf("%d %d %s\n", m != NULL, e.status == MGRID_MISSING, e.message);
  return 0;
}
]])
    local _, err, code = run(("cp build/libmoongrid.so.* %s && cc -Isrc %s/host.c -o %s/host %s/libmoongrid.so.* -Wl,-rpath,%s"):format(
      folder, folder, folder, folder, folder))
    assert.are.same({ "", 0 }, { err, code })
    local out = run(folder .. "/host")
    assert.is_truthy(out:find("^32\n0 1 f: without libmoongrid_lua only machines as words, 'node:4 gpu:8', are read: what recipes need "
      .. "is not here: libmoongrid_lua.so[^\n]*\n$"), out)
    run("rm -r " .. folder)
  end)

  it("the same in the module for Lua, which needs no libmoongrid_lua", function()
    local folder = support.folder()
    run(("cp build/moongrid.so build/libmoongrid.so.* %s; echo 'n0 slots=4' > %s/f"):format(folder, folder))
    local out, err = run(("LUA_CPATH_5_4='%s/?.so' lua5.4 -e 'print(require \"moongrid\".open_machine \"%s/f\")'"):format(folder, folder))
    assert.are.same({ "Machine node:1 gpu:4\n", "" }, { out, err })
    run("rm -r " .. folder)
  end)

  it("what place writes", function()
    local hosts = support.file "n0 slots=4\nn1 slots=4\n"
    for _, name in ipairs { "x.hosts", "rankfile", "x.json" } do
      local folder = support.folder()
      local _, err, code = run(("build/moongrid place megatron --world 8 tp=2 pp=2 --machine %s --search order -o %s/%s"):format(
        hosts, folder, name))
      assert.are.same({ "", 0 }, { err, code })
      local out = run(("build/moongrid machine %s/%s"):format(folder, name))
      assert.is_truthy(out:find("^machine +node:2 gpu:4[\n ]"), name .. ": " .. out)
    end
  end)
end)

-- ------------------------------------------------------------------------------------------------ random spellings

local function between(a, b) return math.random(a, b) end
local function one_of(list) return list[math.random(#list)] end
local function chance(percent) return math.random(100) <= percent end
local function shuffled(list)
  local all = { table.unpack(list) }
  for i = #all, 2, -1 do
    local k = math.random(i)
    all[i], all[k] = all[k], all[i]
  end
  return all
end
local function blanks() return one_of { "", "", " ", "  ", "\t" } end

-- A machine: hosts in order, their slots, and the switch of each; switches may have one above them.
local function draw(options)
  local m = { hosts = {}, slots = {}, of = {} }
  local n, width = between(1, 9), one_of { 1, 2, 3 }
  for i = 1, n do
    m.hosts[i] = ("%s%0" .. width .. "d"):format(options.prefix or "n", i - 1)
    m.slots[i] = options.equal and (m.slots[1] or between(1, 8)) or between(1, 8)
  end
  m.switches = between(1, n)
  for i = 1, n do m.of[i] = (i - 1) * m.switches // n + 1 end
  return m
end

local function list_of(numbers) return "[" .. table.concat(numbers, ", ") .. "]" end

-- The same machine as JSON, which the reader `json` reads.
local function json_of(m, options)
  local levels, domains, counts = {}, {}, {}
  for i = 1, #m.hosts do
    domains[i] = ('"%s"'):format(m.hosts[i])
    counts[m.of[i]] = (counts[m.of[i]] or 0) + 1
  end
  if options.above then
    local names = {}
    for s = 1, m.switches do names[s] = ('"%s%d"'):format(options.named or "s", s) end
    if options.root then levels[1] = '{"name": "switch2", "counts": [1], "domains": ["top"]}' end
    levels[#levels + 1] = ('{"name": "%s", "counts": [%d], "domains": %s}'):format(options.above, m.switches, list_of(names))
  else
    counts = { #m.hosts }
  end
  levels[#levels + 1] = ('{"name": "node", "counts": %s, "domains": %s}'):format(list_of(counts), list_of(domains))
  if options.slots then levels[#levels + 1] = ('{"name": "gpu", "counts": %s}'):format(list_of(m.slots)) end
  return ('{"levels": %s}'):format(list_of(levels))
end

local function lines_of(lines, ends)
  return table.concat(lines, ends or one_of { "\n", "\n", "\r\n" }) .. "\n"
end

-- Names as Slurm's list, with some runs of them as ranges.
local function hostlist(names)
  local all, i = {}, 1
  while i <= #names do
    local k = i
    while k < #names and chance(70) do k = k + 1 end
    local prefix, first = names[i]:match "^(%a+)(%d+)$"
    local numbers = {}
    for j = i, k do numbers[#numbers + 1] = names[j]:match "%d+$" end
    if not first or k == i and chance(50) then
      for j = i, k do all[#all + 1] = names[j] end
    elseif k > i and chance(70) then
      all[#all + 1] = ("%s[%s-%s]"):format(prefix, first, numbers[#numbers])
    else
      all[#all + 1] = ("%s[%s]"):format(prefix, table.concat(numbers, ","))
    end
    i = k + 1
  end
  return table.concat(all, ",")
end

local function below(m, s)
  local names = {}
  for i, of in ipairs(m.of) do
    if of == s then names[#names + 1] = m.hosts[i] end
  end
  return names
end

-- JSON in random layout, from text of it.
local function spaced(json)
  local gap = one_of { "", " ", "\n  ", "\t" }
  return (json:gsub("([,:{%[]) ?", function(sign) return sign .. (sign == ":" and " " or gap) end))
end

-- Insert something before a random match of a pattern.
local function insert(text, pattern, what)
  local at = {}
  for position in text:gmatch("()" .. pattern) do at[#at + 1] = position end
  local position = one_of(at)
  return text:sub(1, position - 1) .. what .. text:sub(position)
end

local function xml_of(element, attributes, inside)
  local words = {}
  for _, pair in ipairs(shuffled(attributes)) do
    local quote = one_of { '"', "'" }
    words[#words + 1] = (" %s%s=%s%s%s%s"):format(pair[1], blanks(), blanks(), quote, pair[2], quote)
  end
  local tag = element .. table.concat(words)
  if not inside then return chance(50) and ("<%s/>"):format(tag) or ("<%s></%s>"):format(tag, element) end
  local comment = chance(20) and "<!-- <net -->" or ""
  return ("<%s>%s%s%s</%s>"):format(tag, comment, blanks(), inside, element)
end

local formats = {}

formats.hostfile = { slots = true,
  write = function(m)
    local lines = {}
    for i, host in ipairs(m.hosts) do
      if chance(20) then lines[#lines + 1] = one_of { "", "# nothing", "  ", "// slots=9" } end
      local key = one_of { "slots", "count", "cpu", "SLOTS" }
      local line = chance(25) and ("%s:%d"):format(host, m.slots[i])
        or ("%s %s%s=%s%d"):format(chance(10) and "me@" .. host or host, key, blanks(), blanks(), m.slots[i])
      if not line:find ":" and chance(20) then line = line .. one_of { " max_slots=99", " port=22", " # eight", " max-slots = 64" } end
      lines[#lines + 1] = blanks() .. line .. blanks()
    end
    return lines_of(lines)
  end,
  spoil = function(text) return text .. "x" .. one_of { " frob=1", " frob", " slots=1 lots = 3" } .. "\n" end }

formats.lines = { slots = true, -- $PBS_NODEFILE
  write = function(m)
    local lines = {}
    m.slots[1] = math.max(m.slots[1], 2)
    for i, host in ipairs(m.hosts) do
      for _ = 1, m.slots[i] do lines[#lines + 1] = host .. blanks() end
    end
    return lines_of(lines)
  end,
  spoil = function(text) return insert(text, "\r?\n", " frob") end }

formats.rankfile = { slots = true,
  write = function(m)
    local lines, rank = {}, 0
    for i, host in ipairs(m.hosts) do
      for slot = 0, m.slots[i] - 1 do
        lines[#lines + 1] = ("rank%s %d%s=%s%s slot%s=%s%d%s"):format(blanks(), rank, blanks(), blanks(), host, blanks(), blanks(),
          slot, chance(20) and " # here" or "")
        rank = rank + 1
      end
    end
    return lines_of(shuffled(lines))
  end,
  spoil = function(text) return insert(text, "\r?\n", "\nfrob 3") end }

formats.slurm = { above = "switch", root = true,
  write = function(m)
    local lines, switches = { "# a tree" }, {}
    local function pair(key, value)
      key = one_of { key, key:lower(), key:upper() }
      return key .. blanks() .. "=" .. blanks() .. one_of { value, ('"%s"'):format(value) }
    end
    for s = 1, m.switches do
      switches[s] = "s" .. s
      local words = { pair("SwitchName", "s" .. s), pair("Nodes", hostlist(below(m, s))) }
      if chance(30) then words[#words + 1] = "LinkSpeed=100" end
      lines[#lines + 1] = table.concat(words, chance(20) and " \\\n  " or one_of { " ", "\t" }) .. blanks()
        .. (chance(20) and "# leaf" or "")
    end
    lines[#lines + 1] = pair("SwitchName", "top") .. " " .. pair("Switches", hostlist(switches))
    return lines_of(lines)
  end,
  spoil = function(text)
    return chance(50) and insert(text, "[Ss][Ww][Ii][Tt][Cc][Hh][Nn]", "Frob=1 ") or text .. one_of { "Frob=1\n", "SwitchName=t Frob=1\n" }
  end }

formats.slurm_yaml = { above = "block",
  write = function(m)
    local blocks, flow = {}, chance(40)
    for s = 1, m.switches do
      local name, list = "s" .. s, hostlist(below(m, s))
      list = one_of { ('"%s"'):format(list), ("'%s'"):format(list) }
      local pairs_ = shuffled { one_of { "block: ", '"block": ' } .. name, "nodes: " .. list }
      blocks[s] = flow and ("      - {%s}\n"):format(table.concat(pairs_, ", ")) or ("      - %s\n        %s\n"):format(pairs_[1], pairs_[2])
    end
    local body = "  block:\n" .. table.concat(shuffled { "    blocks:\n" .. table.concat(blocks), "    block_sizes: [4, 16] # two\n" })
    return (chance(50) and "---\n" or "# topologies\n") .. "-\n" .. table.concat(shuffled { "  topology: a\n", "  cluster_default: true\n", body })
  end,
  spoil = function(text) return insert(text, "    block_sizes", "    frob: 1\n") end }

formats.kubectl = { slots = true, above = "clique",
  write = function(m)
    local items = {}
    local function node(name, labels, spec, gpus)
      local allocatable = shuffled { '"cpu": "64"', '"memory": "100Gi"', '"hugepages-1Gi": "0"', table.unpack(gpus) }
      local status = shuffled { ('"allocatable": {%s}'):format(table.concat(allocatable, ", ")), '"conditions": [{"type": "Ready", "new": 1}]',
        '"capacity": {"cpu": "64"}' }
      local parts = shuffled { ('"metadata": {"name": "%s", "labels": {%s}, "uid": "1"}'):format(name, labels), ('"spec": {%s}'):format(spec),
        ('"status": {%s}'):format(table.concat(status, ", ")), '"kind": "Node"', '"apiVersion": "v1"' }
      return ("{%s}"):format(table.concat(parts, ", "))
    end
    for i, host in ipairs(m.hosts) do
      if chance(20) then items[#items + 1] = node("cp" .. i, '"role": "master"', '"taints": []', {}) end
      if chance(20) then items[#items + 1] = node("bad" .. i, "", '"unschedulable": true', { '"nvidia.com/gpu": "8"' }) end
      items[#items + 1] = node(host, ('"nvidia.com/gpu.clique": "s%d"'):format(m.of[i]), "", { ('"nvidia.com/gpu": "%d"'):format(m.slots[i]) })
    end
    return spaced(('{"kind": "List", "apiVersion": "v1", "items": [%s], "metadata": {"resourceVersion": ""}}'):format(table.concat(items, ", ")))
  end,
  spoil = function(text)
    return chance(50) and insert(text, '"conditions"', '"frob": 1, ') or insert(text, '"memory"', '"x.com/frob": "1", ')
  end }

formats.dlrover = { above = "switch",
  write = function(m)
    local pairs_ = {}
    for i, host in ipairs(m.hosts) do pairs_[i] = ('"%s": "s%d"'):format(host, m.of[i]) end
    return spaced(("{%s}"):format(table.concat(pairs_, ", ")))
  end,
  spoil = function(text) return insert(text, "}", ', "frob": 1') end }

formats.json = { slots = true, above = "switch", root = true,
  write = function(m) return spaced(json_of(m, formats.json)) end,
  spoil = function(text) return insert(text, '"name"', '"frob": 1, ') end }

formats.slurm_job = { slots = true, above = "switch",
  write = function(m)
    local lines, tasks, i, list = {}, {}, 1, hostlist(m.hosts)
    while i <= #m.slots do
      local k = i
      while m.slots[k + 1] == m.slots[i] do k = k + 1 end
      tasks[#tasks + 1] = m.slots[i] .. (k > i and ("(x%d)"):format(k - i + 1) or "")
      i = k + 1
    end
    for task, host in ipairs(m.hosts) do
      local label = chance(50) and task .. ": " or ""
      lines[#lines + 1] = label .. one_of { "PATH=/bin", "A=b=c", "_=x" }
      lines[#lines + 1] = label .. "SLURM_JOB_NODELIST=" .. list
      lines[#lines + 1] = label .. "SLURM_TASKS_PER_NODE=" .. table.concat(tasks, ",")
      lines[#lines + 1] = ("%sSLURM_TOPOLOGY_ADDR=s%d.%s"):format(label, m.of[task], host)
      lines[#lines + 1] = label .. "SLURM_TOPOLOGY_ADDR_PATTERN=switch.node"
    end
    return lines_of(shuffled(lines))
  end }

-- Of one node, which stands for all: parts that hold as many each.
local function levels_of(part, parts, held)
  local middle = part and ('{"name": "%s", "counts": [%d]}, '):format(part, parts) or ""
  return ('{"levels": [{"name": "node", "counts": [0]}, %s{"name": "gpu", "counts": [%d]}]}'):format(middle, held)
end

formats.nvidia_topo = { node = "nvlink",
  write = function(parts, held)
    local n, nics, names = parts * held, between(0, 2), {}
    for i = 1, n do names[i] = "GPU" .. i - 1 end
    for i = 1, nics do names[n + i] = "NIC" .. i - 1 end
    local lines = { (chance(30) and "\27[4m\t" or "\t") .. table.concat(names, "\t") .. "\tCPU Affinity\tNUMA Affinity\27[0m" }
    local link, far = "NV" .. between(1, 18), one_of { "SYS", "NODE", "PHB", "PXB", "PIX" }
    for i = 1, n + nics do
      local row = { names[i] }
      for k = 1, n + nics do
        row[#row + 1] = i == k and " X " or (i > n or k > n) and "PXB" or (i - 1) // held == (k - 1) // held and link or far
      end
      lines[#lines + 1] = table.concat(row, "\t") .. "\t0-15\t0"
    end
    lines[#lines + 1] = "\nLegend:\n\n  X    = Self"
    return (chance(30) and "Versions:\nGPU models and configuration: many\n" or "") .. lines_of(lines)
  end,
  spoil = function(text) return (text:gsub("\t X \t", "\tFROB\t", 1)) end }

formats.nvidia_q = { slots = true, above = "clique", named = "2e9b.",
  write = function(m)
    local lines = {}
    for i in ipairs(m.hosts) do
      lines[#lines + 1] = "==============NVSMI LOG==============\n\nDriver Version : 570"
      lines[#lines + 1] = ("Attached GPUs                             : %d"):format(m.slots[i])
      for gpu = 1, m.slots[i] do
        lines[#lines + 1] = ("GPU 00000000:%02d:00.0\n    Product Name : H100\n    MIG Mode\n        Current : Disabled\n    Fabric"):format(gpu)
        for _, line in ipairs(shuffled { ("        CliqueId     : %d"):format(m.of[i]), "        ClusterUUID  : 2e9b",
          "        State : Completed" }) do lines[#lines + 1] = line end
      end
      m.hosts[i] = tostring(i - 1)
    end
    return (lines_of(lines))
  end }

formats.nccl = { node = "cpu",
  write = function(parts, held)
    local cpus, dev = {}, 0
    for c = 1, parts do
      local inside = { xml_of("nic", {}, xml_of("net", { { "name", "mlx5_0" }, { "dev", c } })) }
      for _ = 1, held do
        local gpu = xml_of("gpu", { { "dev", dev }, { "sm", 90 }, { "rank", dev } }, chance(50) and xml_of("nvlink", { { "count", 18 } }) or nil)
        local pci = xml_of("pci", { { "busid", "0000:1a:00.0" }, { "class", "0x030200" } }, gpu)
        inside[#inside + 1] = chance(50) and xml_of("pci", {}, pci) or pci
        dev = dev + 1
      end
      cpus[c] = xml_of("cpu", { { "numaid", c - 1 }, { "arch", "x86_64" }, { "host_hash", "0x1" } }, table.concat(inside, blanks()))
    end
    return (chance(30) and '<?xml version="1.0"?>\n' or "") .. xml_of("system", { { "version", 1 } }, table.concat(cpus, "\n"))
  end,
  spoil = function(text) return chance(50) and insert(text, "</cpu>", "<frob/>") or (text:gsub("<gpu", "<gpu frob='1'", 1)) end }

formats.nccl_graph = { node = false,
  write = function(parts, held)
    local channels = {}
    for c = 1, between(1, 4) do
      local gpus = {}
      for i = 1, parts * held do gpus[i] = xml_of("gpu", { { "dev", i - 1 } }) end
      channels[c] = xml_of("channel", {}, table.concat(shuffled(gpus), blanks()) .. xml_of("net", { { "dev", 0 } }))
    end
    return xml_of("graphs", { { "version", 1 } }, xml_of("graph", { { "id", 0 }, { "pattern", 4 }, { "nchannels", #channels } },
      table.concat(channels, "\n")))
  end,
  spoil = function(text) return chance(50) and insert(text, "</graph>", "<frob/>") or (text:gsub("<gpu", "<gpu frob='1'", 1)) end }

formats.hwloc = { node = "package",
  write = function(parts, held)
    local packages, gpu = {}, 0
    local function object(kind, more, inside)
      local attributes = { { "type", kind }, { "gp_index", between(1, 99) }, table.unpack(more) }
      return xml_of("object", attributes, inside)
    end
    local library = one_of { "nvml", "rsmi", "cuda", "ze" }
    for p = 1, parts do
      local inside = { object("NUMANode", { { "os_index", p } }), object("Core", {}, object("PU", {})),
        xml_of("info", { { "name", "type=Core" }, { "value", "x" } }) }
      for _ = 1, held do
        local devices = object("OSDev", { { "name", library .. gpu } }) .. (chance(50) and object("OSDev", { { "name", "card" .. gpu } }) or "")
        inside[#inside + 1] = object("Bridge", {}, object("PCIDev", { { "pci_type", "0302 [10de:2330] [10de:1] a1" } }, devices))
        gpu = gpu + 1
      end
      packages[p] = object("Package", { { "os_index", p - 1 } }, table.concat(inside, "\n"))
    end
    return '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
      .. xml_of("topology", { { "version", "2.0" } }, object("Machine", {}, table.concat(packages)) .. xml_of("support", { { "name", "x" } }))
  end,
  spoil = function(text)
    return chance(50) and insert(text, "</object>", one_of { "<frob/>", "<object type='Frob'/>" }) or (text:gsub("<object", "<object frob='1'", 1))
  end }

-- A text of which a piece is cut out, is there twice, or is replaced.
local function bent(text)
  for _ = 1, between(1, 3) do
    local from = between(1, #text)
    local to = math.min(#text, from + between(0, 12))
    text = text:sub(1, from - 1) .. one_of { "", text:sub(from, to):rep(2), "1", "{}", "[]", "null", '"a"', "%d", " ", "\n", "<", "0" } .. text:sub(to + 1)
    if text == "" then text = "x" end
  end
  return text
end

local names = {}
for name in pairs(formats) do names[#names + 1] = name end
table.sort(names)

describe("a machine in any legal spelling", function()
  for _, name in ipairs(names) do
    local format = formats[name]
    it("of " .. name .. " is read back as it is, and one unknown word is refused or noted", function()
      local written, wanted, spoiled = {}, {}, {}
      for i = 1, count do
        math.randomseed(seed * 1000 + i)
        if format.node ~= nil then
          local parts, held = between(1, 4), between(1, 4)
          if not format.node then parts, held = 1, parts * held end
          written[i], wanted[i] = { format.write(parts, held) }, { levels_of(format.node, parts, held) }
        else
          local m = draw { prefix = name == "nvidia_q" and "" }
          written[i] = { format.write(m) }
          wanted[i] = { json_of(m, format) }
        end
        spoiled[i] = format.spoil and { format.spoil(written[i][1]) }
      end
      read_all(written, "--json")
      read_all(wanted, "--json")
      for i, file in ipairs(written) do
        local told = ("MOONGRID_SEED=%d, case %d: %s\n%s"):format(seed, i, file.err, file[1])
        assert.are.equal("", file.err, told)
        assert.are.equal("", wanted[i].err, wanted[i][1])
        assert.are.equal(wanted[i].out, (file.out:gsub(',\n  "notes": %b[]', "")), told)
      end
      local broken = {}
      for i, file in ipairs(written) do broken[i] = { bent(file[1]) } end
      for i, file in ipairs(read_all(broken)) do -- whatever it is, no reader fails by an error of its own
        local told = ("MOONGRID_SEED=%d, case %d: %s\n%s"):format(seed, i, file.err, file[1])
        assert.is_true(file.code <= 1 and not file.err:find "attempt to " and not file.err:find "bad argument ", told)
      end
      for i, file in ipairs(format.spoil and read_all(spoiled) or {}) do
        local told = ("MOONGRID_SEED=%d, case %d:\n%s"):format(seed, i, file[1])
        local _, notes = made(file)
        assert.is_true(file.code ~= 0 and file.err:find "^moongrid: f:" ~= nil or notes:find("frob", 1, true) ~= nil, told .. file.out .. file.err)
      end
    end)
  end
end)

-- ------------------------------------------------------------------------------------------------------- the tools

describe("a tool reads its file as we do:", function()
  local function has(tool) return (select(3, run("command -v " .. tool))) == 0 end

  it("mpirun of Open MPI 4, hostfiles and a line for each slot", function()
    local version = run "mpirun.openmpi --allow-run-as-root --version"
    if not version:find "%) 4%." then return pending "mpirun.openmpi 4 is not here" end
    for i, name in ipairs { "hostfile", "lines", "hostfile" } do
      math.randomseed(seed * 1000 + i)
      local m = draw {}
      local text = formats[name].write(m):gsub("\r", ""):gsub("me@", ""):gsub("SLOTS", "slots"):gsub("(%w+):(%d+)", "%1 slots=%2"):gsub("port=22", "")
      if i == 3 then text = text .. "empty slots=0\n" end
      local path, ours, sum = support.file(text), {}, 0
      for _, slots in ipairs(m.slots) do sum = sum + slots end
      local out = run(("timeout 60 mpirun.openmpi --allow-run-as-root --hostfile %s -n %d --do-not-launch --display-map true 2>&1"):format(path, sum))
      for host, slots in out:gmatch "Data for node: (%S+)%s+Num slots: (%d+)" do ours[#ours + 1] = host .. " " .. slots end
      local theirs = {}
      for k, host in ipairs(m.hosts) do theirs[k] = ("%s %d"):format(host, m.slots[k]) end
      assert.are.same(theirs, ours, text .. out) -- theirs is the machine as the spec above reads it back
      assert.are.equal(0, (select(3, run("build/moongrid machine " .. path))), text)
    end
    for _, text in ipairs { "n0 lots=8\n", "node[01-04]\n" } do
      local path = support.file(text)
      local theirs = run("timeout 60 mpirun.openmpi --allow-run-as-root --hostfile " .. path .. " -n 1 --do-not-launch true 2>&1")
      local _, _, ours = run("build/moongrid machine " .. path)
      assert.is_true(theirs:find "parse error" ~= nil and ours == 1, text .. theirs)
    end
  end)

  it("scontrol of Slurm, lists of hosts", function()
    if not has "scontrol" then return pending "scontrol is not here" end
    local conf = support.file "ClusterName=a\nSlurmctldHost=b\n"
    for _, list in ipairs { "n[1-3,07],m[1-2]x[0-1]", "a,b[08-11]", "n[1-2][5,7-8]", "tux[0-1,3][0-2],x", "n[9-11]" } do
      local theirs = run(("SLURM_CONF=%s scontrol show hostnames '%s'"):format(conf, list))
      local file, ours = read_all({ { ("SwitchName=s Nodes=%s\n"):format(list) } }, "--json")[1], {}
      for name in file.out:match('"node".-"domains": (%b[])'):gmatch '"([^"]+)"' do ours[#ours + 1] = name .. "\n" end
      assert.are.equal(theirs, table.concat(ours), list)
    end
    for _, list in ipairs { "n[001-003]e", "n[2-1]", "n[a]", "n[1,]", "n[]" } do
      local _, theirs = run(("SLURM_CONF=%s scontrol show hostnames '%s'"):format(conf, list))
      assert.are.same({ true, 1 }, { theirs ~= "", read_all({ { ("SwitchName=s Nodes=%s\n"):format(list) } })[1].code }, list)
    end
  end)

  it("lstopo of hwloc, synthetic nodes", function()
    if not has "lstopo-no-graphics" then return pending "lstopo-no-graphics is not here" end
    for _, of in ipairs { { 1, 4 }, { 2, 3 }, { 4, 8 } } do
      local xml = run(("lstopo-no-graphics --if synthetic --input 'pack:%d numa:1 l3:1 core:%d pu:2' --of xml"):format(of[1], of[2]))
      assert.are.equal(("node:* package:%d core:%d"):format(of[1], of[2]), (made(read_all({ { xml } })[1])))
    end
    assert.are.equal("", read_all({ { (run "lstopo-no-graphics --of xml") } })[1].err)
  end)

  it("PyYAML, topology.yaml in every style that it writes", function()
    local _, _, code = run "python3 -c 'import yaml'"
    if code ~= 0 then return pending "PyYAML is not here" end
    local files = {}
    for i, options in ipairs { "", "default_flow_style=True", "sort_keys=False", "default_style='\"'", "indent=8, width=10",
      "canonical=True", "explicit_start=True, default_style='>'", "default_flow_style=None" } do
      files[i] = { (run(([[python3 -c "
import yaml
print(yaml.dump([{'topology': 'a', 'cluster_default': True, 'tree': {'switches': [{'switch': 'top', 'children': 's[1-2]'},
  {'switch': 's1', 'nodes': 'n[1-2],m1'}, {'switch': 's2', 'nodes': 'n3'}]}}], %s))"]]):format(options))) }
    end
    for i, file in ipairs(read_all(files)) do
      if i == 2 or i == 4 or i == 6 then -- JSON's brackets begin it, or tags say the types
        assert.is_true(file.err:find "^moongrid: f:" ~= nil or made(file) == "switch2:1 switch:2 node:3,1", file[1] .. file.err)
      else
        assert.are.equal("switch2:1 switch:2 node:3,1", (made(file)), file[1])
      end
    end
  end)
end)
