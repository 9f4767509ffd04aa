-- SPDX-License-Identifier: MIT
--
-- rankfile.lua - read Open MPI's rankfile, "rank 0=n0 slot=0" (mpirun --rankfile; PRRTE's
-- src/mca/rmaps/rank_file/rmaps_rank_file_lex.l). A node has a place for each of its ranks. The places are in the order
-- of the slots if all slots of the node are different numbers, else in the order of the ranks. `place -o rankfile`
-- writes such a file. Skipped: the processors of a slot (0:1, 0-3, *). Refused: nodes by number (+n1).

local file = ...
local t = file.run "tree" "switch"

local host_of, line_of, slot_of, n = {}, {}, {}, 0
for where, word, rest in file.words() do
  local line = (word .. " " .. rest):match "^[^#]*"
  local comment = line:find("//", 1, true)
  if comment then line = line:sub(1, comment - 1) end
  if line ~= "" and line ~= " " then
    local rank, host, slot = line:match "^rank%s+(%d+)%s*=%s*([^%s=]+)%s+slots?%s*=%s*(.-)%s*$"
    if not rank or slot == "" or #rank > 9 then
      file.fault(where, "a line 'rank 0=n0 slot=0' expected, not '%.40s'", line)
    end
    rank, host = tonumber(rank), host:match "@(.+)$" or host
    if not host:find "^[%w_][%w_.-]*$" then file.fault(where, "'%.60s' is not a name of a host", host) end
    if not slot:find "^\"?[%d:*,%-]+\"?$" then file.fault(where, "slot=%.40s: slots expected, as 0 or 0:1-3", slot) end
    if line_of[rank] then
      file.fault(where, "rank %d is there twice, first in line %d", rank, line_of[rank])
    end
    line_of[rank], host_of[rank], n = where, host, n + 1
    slot_of[rank] = slot:find "^%d+$" and #slot < 10 and tonumber(slot)
  end
end

-- Add the nodes in the order of their first ranks. ranks[i] lists the ranks of node i of the tree.
local ranks = {}
for rank = 0, n - 1 do
  if not line_of[rank] then
    file.fault(nil, "rank %d is missing, and the file has %d ranks: it may be cut short", rank, n)
  end
  local i = t.host[host_of[rank]] or t:add(host_of[rank], line_of[rank], 0)
  t.slots[i] = t.slots[i] + 1
  ranks[i] = ranks[i] or {}
  table.insert(ranks[i], rank)
end
t.ranks, t.slot = {}, {}
for i, list in pairs(ranks) do
  local by_slot, seen, order = true, {}, {}
  for k, rank in ipairs(list) do
    local slot = slot_of[rank]
    by_slot = by_slot and slot and not seen[slot]
    if slot then seen[slot] = true end
    order[k] = rank
  end
  if by_slot then table.sort(order, function(a, b) return slot_of[a] < slot_of[b] end) end
  for k, rank in ipairs(order) do t.ranks[rank + 1], t.slot[rank + 1] = i, k - 1 end
end
return t
