-- SPDX-License-Identifier: MIT
--
-- sorted(table): as pairs, in the order of the keys. The order of pairs differs between processes, so nothing here but
-- this file uses it.

return function(of)
  local keys, at = {}, 0
  for key in pairs(of) do keys[#keys + 1] = key end
  table.sort(keys)
  return function()
    at = at + 1
    return keys[at], of[keys[at]]
  end
end
