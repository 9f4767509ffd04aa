-- SPDX-License-Identifier: MIT
--
-- commands() -> the tables of all subcommands, in the order of the help.

local host = require "host"

return function()
  local tree, rows = host.source_tree(), {}
  local pattern = tree and "^(%w+)%.lua$" or "^moongrid%.command%.(%w+)$"
  for _, file in ipairs(tree and host.folder(tree .. "/command") or host.text()) do
    local name = file:match(pattern)
    if name then rows[#rows + 1] = require("command." .. name) end
  end
  table.sort(rows, function(a, b) return a.place < b.place end)
  return rows
end
