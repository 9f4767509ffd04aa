-- SPDX-License-Identifier: MIT
--
-- hostfile.lua - read a launcher's list of nodes. A line is a node, as "n0 slots=8" for mpirun (Open MPI 5.0, PRRTE's
-- src/util/hostfile/hostfile_lex.l and hostfile.c; 4.1, orte/util/hostfile) or "n0:8" for mpiexec (MPICH 4, Hydra's
-- utils/args/args.c). In $PBS_NODEFILE, $SLURM_HOSTFILE and the file of `place -o x.hosts`, a line is the node of a
-- rank.
--
-- Skipped, because they change no place: comments (#, //), user, port, ifname, binding, boards, sockets, cores, and
-- the maximum of slots if `slots` is given. Refused: nodes by number (+n1), excluded nodes (^n1), comments /* */.

local file = ...
local t = file.run "tree" "switch"

-- The keys of KEY=VALUE after a node, in lower case, with "_" for "-". `counts` are the keys of the number of slots,
-- `most` those of the maximum of slots.
local counts = { slots = true, count = true, cpu = true, cpus = true }
local most = { slots_max = true, max_slots = true, cpu_max = true, max_cpu = true, count_max = true, max_count = true }
local skipped = { username = true, user_name = true, user = true, port = true, ifname = true, binding = true,
  boards = true, sockets = true, sockets_per_board = true, cores = true, cores_per_socket = true }

-- Return the number of slots that the words after a node give. If they give only a maximum return that, else false.
local function slots_of(host, rest, where)
  local slots, at, limit = false, 1, false
  while at <= #rest do
    local key, value, behind = rest:match("^([%a_%-]+)%s*=%s*(%S+)%s*()", at)
    local word = key and key:lower():gsub("-", "_")
    if counts[word] and not slots then
      slots = t.count(value, where)
    elseif most[word] then
      limit = t.count(value, where)
    elseif not skipped[word] then
      file.fault(where, "in a list of hosts 'slots=8' or nothing is expected after host '%.40s', not '%.40s'", host,
        rest:sub(at))
    end
    at = behind
  end
  return slots or limit
end

-- Return the node in a word such as "user@n0:8", and its number of slots, or false if the word has no number.
local function host_of(word, where)
  local name, slots = word:match "^([^:]+):(%d+)$"
  local host = (name or word):match "@(.+)$" or name or word
  if host:find "[=,{}<>\"'()%[%]*^+]" or not host:find "^[%w_\x80-\xff]" then
    file.fault(where, "a host of a list expected, as 'n0 slots=8', not '%.40s'", word)
  end
  return host, name and t.count(slots, where) or false
end

-- Add the slots of a further line of a node: 1 if the line is only a name, 8 for "n0:8". Refuse a line with slots= or a
-- maximum.
local function again(i, slots, by_word, where)
  if by_word then
    file.fault(where, "host '%.60s' is there twice, first in line %d: slots= is for a host that has one line",
      t.name[i], t.line[i])
  end
  t.slots[i] = (t.slots[i] or 1) + (slots or 1)
  t.out[i] = t.slots[i] == 0 and t.out[i] or nil
end

local ranks, alone, known, comments, name = {}, true, { [""] = false }, file.has "#" or file.has "//", t.host
for where, host, rest in file.words() do
  if comments then
    local line = host .. " " .. rest
    local at = line:find("#", 1, true) or line:find("//", 1, true)
    if at then host, rest = line:sub(1, at - 1):match "^(%S*)%s*(.*)$" end
  end
  if host ~= "" then
    local by_colon, slots = false, known[rest]
    if not host:find "^[%w_][%w_.-]*$" then host, by_colon = host_of(host, where) end
    if slots == nil then
      slots = slots_of(host, rest, where)
      known[rest] = slots
    end
    local i, by_word = name[host], slots
    slots = slots or by_colon
    if i then
      again(i, slots, by_word, where)
    else
      i = t:add(host, where, slots or nil)
      if slots == 0 then t.out[i] = "it has no slots" end
    end
    if slots then alone = false end
    if alone then ranks[#ranks + 1] = i end
  end
end

-- If all lines are only names, and a name is there twice, then the lines are the nodes of ranks 0, 1, 2, ...
if alone and #ranks > t.nhosts then
  for _, i in ipairs(t.hosts) do t.slots[i] = t.slots[i] or 1 end
  t.ranks = ranks
end
return t
