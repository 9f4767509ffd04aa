-- SPDX-License-Identifier: MIT
--
-- slurm_yaml.lua - read a topology of Slurm's topology.yaml (https://slurm.schedmd.com/topology.yaml.html, of Slurm
-- 25.05), which has topologies with names. It may be a tree of switches, or blocks of nodes; other kinds are refused.
-- Skipped, because they change no place: cluster_default, block_sizes.

local file, given, all = ...
local fields = file.run "fields"
local path, item = fields.path, fields.item

local names, taken, at = {}, nil, nil
for i, one in ipairs(fields.list(all, nil, "topologies")) do
  local where = item("", i)
  fields.object(one, where, "topology cluster_default tree block flat ring torus3d")
  local name = fields.text(one.topology, path(where, "topology"), "the name of the topology")
  names[#names + 1] = name
  if (given.topology or name) == name and not taken then taken, at = one, where end
end
if not names[1] then file.fault(nil, "there is no topology in it") end
if not taken then
  file.fault(nil, "unknown topology '%.60s'; known: %s", given.topology, table.concat(names, ", "))
elseif #names > 1 and not given.topology then
  file.fault(nil, "it has %d topologies (%.99s): topology=NAME after the file's name chooses one", #names,
    table.concat(names, ", "))
end

local kind, plural, one = "tree", "switches", "switch"
if taken.block then kind, plural, one = "block", "blocks", "block" end
if not taken[kind] or taken.tree and taken.block then
  file.fault(at, "one tree or one block expected in topology '%.60s'", taken.topology)
end
for _, other in ipairs { "flat", "ring", "torus3d" } do
  if taken[other] then file.fault(path(at, other), "a topology has one kind, a tree or a block") end
end

local t, where = file.run "tree" (one), path(at, kind)
fields.object(taken[kind], where, kind == "tree" and "switches" or "blocks block_sizes")
local list = fields.list(taken[kind][plural], path(where, plural), plural)
for i, of in ipairs(list) do
  local place = item(path(where, plural), i)
  fields.object(of, place, kind == "tree" and "switch children nodes" or "block nodes")
  local node = t:describe(fields.text(of[one], path(place, one), "the name of the " .. one), place)
  if not of.children and not of.nodes then
    file.fault(place, kind == "tree" and "it has no nodes and no children" or "it has no nodes")
  end
  local function put(is, name)
    if of[name] then t:put(is, fields.text(of[name], path(place, name), "a list of names"), node, place) end
  end
  put("switch", "children")
  put("host", "nodes")
end
t:whole "entry"
return t
