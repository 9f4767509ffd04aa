-- SPDX-License-Identifier: MIT
--
-- sorted(table): iterate as pairs does, but in the order of the keys. The order of pairs differs between processes, so
-- in lua/command only this file uses pairs.

return function(of)
  local keys, at = {}, 0
  for key in pairs(of) do keys[#keys + 1] = key end
  table.sort(keys)
  return function()
    at = at + 1
    return keys[at], of[keys[at]]
  end
end
