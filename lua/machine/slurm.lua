-- SPDX-License-Identifier: MIT
--
-- slurm.lua - read Slurm's topology.conf or the output of `scontrol show topology`: a tree of switches, or blocks of
-- nodes. The grammar is that of Slurm 24.11, src/common/parse_config.c (Key=Value, where blanks may be around = and
-- quotes around the value; comments; a line goes on after a backslash) and src/plugins/topology/{tree,block}.
--
-- Skipped, because they change no place: LinkSpeed, Level, BlockIndex, BlockSizes, BlockSize, and lines of
-- AggregatedBlock, which repeat the blocks.

local file, given = ...

-- The first key of a line -> the keys that may be in this line. All keys are in lower case; the value false means that
-- the key is skipped.
local kinds = {
  switchname = { switchname = true, nodes = true, switches = true, linkspeed = false, level = false },
  blockname = { blockname = true, nodes = true, blockindex = false, blocksize = false },
  blocksizes = { blocksizes = false },
  linkspeed = { linkspeed = false },
  aggregatedblock = { aggregatedblock = false, nodes = false, blocksize = false, blockindex = false },
}

-- Return a line without its comment. If the next line continues it, because it ends with an odd number of backslashes
-- (blanks may follow them), also return true.
local function content(line)
  if line:find("#", 1, true) then
    local at = 1
    while true do
      local skip = line:match("^[^#\\]*()", at)
      if line:sub(skip, skip) == "#" then line = line:sub(1, skip - 1) end
      if skip >= #line then break end
      at = skip + 2
    end
  end
  local last = #line
  while last > 0 and line:find("^%s", last) do last = last - 1 end
  local from = last
  while from > 0 and line:byte(from) == 92 do from = from - 1 end
  if (last - from) % 2 == 1 then return line:sub(1, last - 1) .. " ", true end
  return line
end

-- Return the values of a line by their keys in lower case; element 1 is the first key as written.
local function pairs_of(line, where)
  local all, at, known = {}, line:match "^%s*()", nil
  while at <= #line do
    local key, from = line:match("^([%w_.]+)%s*=%s*()", at)
    local value, behind
    if key then
      value, behind = line:match('^"([^"]*)"()', from)
      if not value then value, behind = line:match("^([^%s\"]+)()", from) end
    end
    if not value or not line:find("^%s", behind) and behind <= #line then
      file.fault(where, "Key=value expected, not '%.40s'", line:sub(at))
    end
    local name = key:lower()
    known = known or kinds[name]
    if not known then file.fault(where, "SwitchName= or BlockName= expected, not '%.40s'", line:sub(at)) end
    if known[name] == nil then
      file.fault(where, "unknown key '%.40s' in a line of %s=", key, all[1])
    end
    if all[name] then file.fault(where, "key '%.40s' is there twice", key) end
    all[1] = all[1] or key
    all[name] = value ~= "(null)" and value or ""
    at = line:match("^%s*()", behind)
  end
  return all
end

local entries, has, parts, length, first = {}, {}, {}, 0, nil
for where, line in file.lines() do
  local text, goes_on = content(line)
  first, length, parts[#parts + 1] = first or where, length + #text, text
  if length > 1 << 20 then file.limit(first, "a line of more than 1048576 bytes") end
  if not goes_on then
    local entry = pairs_of((table.concat(parts):gsub("\\(.?)", "%1")), first)
    if entry[1] then
      entries[#entries + 1], entry.line = entry, first
      has.tree = has.tree or entry.switchname
      has.block = has.block or entry.blockname
    end
    parts, length, first = {}, 0, nil
  end
end
if first then file.fault(first, "its last line ends with a backslash: the text may be cut short") end

local choice = given.topology or has.block and not has.tree and "block" or "tree"
if choice ~= "tree" and choice ~= "block" then
  file.fault(nil, "unknown topology '%.60s'; known: tree, block", choice)
elseif has.tree and has.block and not given.topology then
  file.fault(nil,
    "it has both a tree of switches and blocks: write topology=tree or topology=block after the file's name")
end

local t = file.run "tree" (choice == "tree" and "switch" or "block")
for _, entry in ipairs(entries) do
  local name = entry[choice == "tree" and "switchname" or "blockname"]
  local nodes, switches = entry.nodes or "", entry.switches or ""
  if name then
    if name == "" then file.fault(entry.line, "%s= has no name", entry[1]) end
    if nodes == "" and switches == "" then
      local either = choice == "tree" and " and no Switches=" or ""
      file.fault(entry.line, "%s '%.60s' has no Nodes=%s", t.above, name, either)
    end
    local i = t:describe(name, entry.line)
    if switches ~= "" then -- in scontrol's output Nodes= has all nodes below the switch
      t:put("switch", switches, i, entry.line)
    else
      t:put("host", nodes, i, entry.line)
    end
  end
end
t:whole "line"
return t
