-- SPDX-License-Identifier: MIT
--
-- help: moongrid --help, and moongrid NAME --help from the table of the subcommand and its options.

local line = require "command.base.line"
local text = require "command.base.text"

local M = {}

local COLUMN, WIDE = 20, 110 -- column of the options' texts; line length if stdout is not a terminal

function M.all(rows)
  text.put("usage: moongrid COMMAND ...\n\n",
           "Process groups of parallel training, from a recipe to communicators.\n\n")
  for _, row in ipairs(rows) do
    text.printf("  %s %-" .. 42 - #row.name .. "s  %s\n", row.name, row.takes, row.summary)
  end
  text.put("\n  RECIPE is a file, the name of a bundled recipe, or - for standard input.\n",
           "  COMMAND --help tells more; --version prints the version.\n\n",
           "Exit codes: 0 ok, 1 recipe or sizes refused, 2 usage, 3 limit hit, 4 backend failed,\n5 ranks disagree.\n")
end

local function option_line(option)
  local head = (option.letter and "-" .. option[1]:sub(1, 1) .. ", " or "") .. "--" .. option[1]
  if option[2] then head = head .. " " .. option[2] end
  if option.values then head = head .. " " .. table.concat(option.values(), "|") end
  return ("  %-" .. COLUMN - 4 .. "s  %s"):format(head, option.help)
end

function M.one(command)
  local lines, own = { "usage: " .. command.usage, "", command.about, "" }, #(command.options or {})
  local heads = false -- whether one of command.options has a head: then a blank line precedes the shared options
  for i, option in ipairs(line.options(command)) do
    if heads and i > own then lines[#lines + 1] = "" end
    heads = i <= own and (heads or option.head ~= nil)
    if option.head then lines[#lines + 1] = "\n" .. option.head end
    if option.help then lines[#lines + 1] = option_line(option) end
  end
  if command.notes then lines[#lines + 1] = "\n" .. command.notes end
  lines[#lines + 1] = "\nexample: " .. command.example
  if not text.is_terminal then text.fold = WIDE end
  text.put_lines(table.concat(lines, "\n") .. "\n")
end

return M
