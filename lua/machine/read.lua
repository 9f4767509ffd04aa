-- SPDX-License-Identifier: MIT
--
-- read.lua - read machines from the files of other tools: find the reader of a text, and read the words after the
-- file's name. A reader is a file of this folder. It gets `file` (src/machine/lua/file.c), the table `given`,
-- and the parsed text of JSON, XML or YAML; it returns a tree (tree.lua), or the table of a machine
-- (src/machine/lua/file.c). The head of a reader says what it skips; everything else that it does not know it refuses
-- or notes.

local file, words = ...

-- `given` has the words topology=NAME and nodes=LIST. The other words add levels to the machine (make_machine, file.c).
local given = {}
words = words:gsub("%f[^%s\0](%l+)=(%S*)", function(name, value)
  if name ~= "topology" and name ~= "nodes" then return nil end
  given[name] = value
  return ""
end)
given.levels = words:find(":", 1, true)

-- Return the first line that is neither blank nor a comment, and its number; or "" if there is none.
local function first_line()
  for number, line in file.lines() do
    if line:find "^%s*[^%s#]" then return line, number end
  end
  return ""
end

-- Return the name of the reader for the keys of a JSON text, and the parsed text.
local function of_json()
  local all = file.json()
  if all.levels then return "machine_json", all end
  if all.items or all.kind or all.metadata then return "kubectl", all end
  local switches = type(all[0]) == "table" and #all[0] > 0
  for _, host in ipairs(switches and all[0] or {}) do switches = switches and type(all[host]) == "string" end
  if switches then return "dlrover", all end
  file.fault(nil, "JSON of a machine has levels (moongrid machine --json), items (kubectl), or the switch of each "
    .. "node, {\"10.0.0.1\": \"sw-3\"}")
end

-- The name of a text's root element in XML -> the name of its reader.
local roots = { system = "nccl", graphs = "nccl_graph", topology = "hwloc" }

local function of_xml()
  local root = file.xml()
  if not roots[root.name] then
    file.fault(root.line,
      "<system> (NCCL_TOPO_DUMP_FILE), <graphs> (NCCL_GRAPH_DUMP_FILE) or <topology> (lstopo --of xml) "
        .. "expected, not <%s>", root.name)
  end
  return roots[root.name], root
end

-- Return the name of the reader, and the parsed text if it is JSON, XML or YAML.
local function reader()
  local line, number = first_line()
  if line:find "^%s*[{%[]" then return of_json() end
  if line:find "^%s*<" then return of_xml() end
  if (line .. " "):find "^%s*%-%s" or line:find "^%-%-%-" then return "slurm_yaml", file.yaml() end
  if file.has "NVSMI LOG" or file.has "Attached GPUs" then return "nvidia_q" end
  if file.has "GPU0" and (file.has "CPU Affinity" or file.has "Legend:" or file.has " X " or file.has "\tX") then
    return "nvidia_topo"
  end
  if file.has "SLURM_JOB_NODELIST=" or file.has "SLURM_TOPOLOGY_ADDR=" or file.has "SLURM_NODELIST=" then
    return "slurm_job"
  end
  if line:find "^%s*rank%s" then return "rankfile" end
  if line:find "^%s*%a+%s*=" then return "slurm" end
  if line:find "^GPU %d+:" or line:find "^[%w_.]+, " or file.has "NVIDIA-SMI" then
    file.fault(number, "only the output of nvidia-smi topo -m and nvidia-smi -q is read")
  end
  return "hostfile"
end

local name, parsed = reader()
local made = file.run(name, given, parsed)
if getmetatable(made) then
  made = made:machine(given.nodes)
elseif given.nodes then
  file.fault(nil, "nodes= is for files that list hosts")
end
return made, words
