-- SPDX-License-Identifier: MIT
--
-- moongrid machine: print a machine; without an argument the machine of the running job, or the presets.

local jobs = require "command.base.job"
local json = require "command.base.json"
local line = require "command.base.line"
local mg = require "moongrid"
local text = require "command.base.text"

-- Print the levels of a machine, far to near: the number of domains, the places in each, and the link.
local function put_levels(machine)
  text.machine(machine:text())
  text.printf("\n%-16s %12s %12s  %s\n", "level", "domains", "places", "link")
  for _, level in ipairs(machine:levels()) do
    local places = level.places and (level.regular and "%12d" or "<=%10d"):format(level.places) or ("%12s"):format "*"
    local link = level.link ~= "" and "  " .. level.link or ""
    text.printf("%-16s %12s %s%s\n", level.name, level.domains or "*", places, link)
  end
  for i, note in ipairs(machine:notes()) do
    if i == 1 then text.put "\n" end
    text.wrap("note", note)
  end
end

local function put(of, machine, more)
  if not of.json then return put_levels(machine) end
  text.put((machine:json():gsub("\n}\n$", (more or "") .. "%0")))
end

local function put_presets(of)
  local presets, all = mg.presets(), {}
  for i, preset in ipairs(presets) do
    all[preset.name] = { text = preset.text, source = preset.source }
    if not of.json then
      text.printf("%s%-12s %s\n  %s\n", i > 1 and "\n" or "", preset.name, preset.text, preset.source)
    end
  end
  if of.json then json.put(all) end
end

-- Print the machine of the running job; JSON also has the boot ids of its nodes.
local function put_collected(of)
  local job = jobs.open()
  local machine, boots = jobs.need(job:machine())
  jobs.close(job)
  if text.rank ~= 0 then return end
  put(of, machine, (',\n  "boot_ids": ["%s"]'):format(table.concat(boots, '", "')))
end

local function run(of)
  local word, machine = of.words[1], of.machine
  if word and machine then text.usage("the machine is given twice, as '%s' and by --machine", word) end
  if word then machine = line.machine("the machine", word) end
  if machine then return put(of, machine) end
  if text.launcher then return put_collected(of) end
  put_presets(of)
end

return {
  name = "machine",
  place = 120,
  takes = "[M]",
  summary = "the levels of a machine, of the running job, or the presets",
  usage = "moongrid machine [M | --machine M] [--json]\n"
    .. "       mpirun -n N moongrid machine [--json]",
  about = "Show a machine, M: its levels from far to near, their domains, places and links. JSON also has the\n"
    .. "names of domains, and is a file for --machine. Without M: under a launcher, show the machine of the job (its\n"
    .. "nodes, the GPU of each rank by its PCI id, NVLink cliques if NVML reports them); otherwise, the presets.",
  example = 'moongrid machine "rack:4 node:18[400GB/s,3us] gpu:4 rail = gpu"',
  words = 1,
  options = {
    { "machine", "MACHINE", line.machine,
      help = 'levels, as "node:4 gpu:8", a preset, a file, or the number of ranks of a node' },
    { "json", help = "one JSON object" },
  },
  run = run,
}
