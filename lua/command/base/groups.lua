-- SPDX-License-Identifier: MIT
--
-- groups: groups in the width of a terminal, as pictures have them, and the families that --family names.

local groups = require "pictures.groups"
local text = require "command.base.text"

local M = { one = groups.one, all = groups.all, count = groups.count }

-- Return the names in a list "F,G", each once.
function M.named(plan, list)
  local names, seen = {}, {}
  for name in list:gmatch "[^,]+" do
    plan:family(name) -- raises if it is unknown
    if not seen[name] then names[#names + 1] = name end
    seen[name] = true
  end
  if #names == 0 then text.refuse(2, "--family is a list of families, F,G; not '%s'", list) end
  return names
end

return M
