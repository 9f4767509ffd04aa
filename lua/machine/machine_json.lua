-- SPDX-License-Identifier: MIT
--
-- machine_json.lua - read the output of `moongrid machine --json` (src/machine/machine_item.c). Skipped: boot_ids,
-- which the machine of a running job has, and costs, which src/step/costs.c reads to price a step.

local file, _, all = ...
local fields = file.run "fields"
local path, item = fields.path, fields.item

local function check_rate(value, where)
  if value and not (type(value) == "number" and value >= 0 and value < math.huge) then
    file.fault(where, "a number from 0 on expected")
  end
end

local function link(of, where)
  check_rate(of.bandwidth, path(where, "bandwidth"))
  check_rate(of.latency, path(where, "latency"))
end

-- Check a level, and return the number of its domains. `above` is the number of domains of the level above it.
local function level(of, where, above)
  fields.object(of, where, "name counts bandwidth latency domains")
  fields.text(of.name, path(where, "name"), "the name of the level")
  local counts, sum = fields.integers(of.counts, path(where, "counts")), 0
  link(of, where)
  for i = 1, #counts do sum = sum + counts[i] end
  if #counts == 1 then sum = sum * above end
  if of.domains and #fields.list(of.domains, path(where, "domains"), "names") ~= sum then
    file.fault(path(where, "domains"), "%d names expected, as many as the level has domains, not %d", sum, #of.domains)
  end
  for i, name in ipairs(of.domains or {}) do
    if name then fields.text(name, item(path(where, "domains"), i), "a name or null") end
  end
  return sum
end

local function crossing(of, where)
  fields.object(of, where, "name of share in bandwidth latency")
  fields.text(of.name, path(where, "name"), "the name of the crossing")
  fields.text(of.of, path(where, "of"), "the name of a level")
  if of["in"] then fields.text(of["in"], path(where, "in"), "the name of a level") end
  if of.share then fields.integers({ of.share }, path(where, "share")) end
  link(of, where)
end

fields.object(all, "", "levels crossings ranks boot_ids costs notes")
local above = 1
for i, of in ipairs(fields.list(all.levels, "levels", "levels")) do above = level(of, item("levels", i), above) end
for i, of in ipairs(fields.list(all.crossings or {}, "crossings", "crossings")) do
  crossing(of, item("crossings", i))
end
if all.ranks then fields.integers(all.ranks, "ranks") end
for i, note in ipairs(fields.list(all.notes or {}, "notes", "lines")) do
  fields.text(note, item("notes", i), "a line")
end
return { levels = all.levels, crossings = all.crossings, ranks = all.ranks, notes = all.notes }
