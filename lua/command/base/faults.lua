-- SPDX-License-Identifier: MIT
--
-- faults: the errors of a recipe, each with its line and a caret below the wrong word. The evaluation of a recipe ends
-- at its first error. To show further errors at once, this file removes the wrong statement or argument and evaluates
-- the recipe again; it leaves out errors that only the removal caused.

local line = require "command.base.line"

local M = {}

local MOST = 5                -- errors to show at once
local WIDTH, BEFORE = 76, 60 -- columns of a line to show; a caret beyond column BEFORE shifts the part that is shown

-- Return the text of a recipe from a file or from standard input, or nil if it cannot be read.
local function read(path)
  if path == "stdin" then return line.stdin() end
  local file = io.open(path, "r")
  local text = file and file:read(1 << 20)
  if file then file:close() end
  return text
end

local function rows_of(text)
  local rows = {}
  for row in (text .. "\n"):gmatch "([^\n]*)\n" do rows[#rows + 1] = row end
  return rows
end

-- Return FILE, LINE and WHAT of a message "FILE:LINE: WHAT" of one line.
local function parts(message)
  local path, number, what = message:match "^([^\n]-):(%d+): ([^\n]+)$"
  return path, tonumber(number), what
end

-- Return the column at which a word that the message quotes stands in a row, or nil. Only whole words of the row count:
-- 'p' does not match the p of "pp".
local function column(row, what)
  for word in what:gmatch "'([^']+)'" do
    local assigned = word:find "^[%w_]+$" and row:find("%f[%w_]" .. word .. "%s*=[^=]")
    if assigned then return assigned end
    local at, to = row:find(word, 1, true)
    while at do
      if not row:find("^[%w_]", to + 1) and not row:sub(1, at - 1):find "[%w_]$" then return at end
      at, to = row:find(word, to + 1, true)
    end
  end
end

-- Return a message, followed by the line of the recipe that it names and a caret below the wrong word. A message of
-- Lua's parser, which quotes its line already, is returned unchanged.
function M.quote(message)
  local path, number, what = parts(message)
  local text = path and read(path)
  local row = text and rows_of(text)[number]
  if not row or not row:find "%S" then return message end
  row = row:gsub("[\xC2-\xF4][\x80-\xBF]*", "?"):gsub("[^\x20-\x7e]", " ")
  local at = column(row, what)
  if not at and row:find "^%s*return recipe%f[%W]" then return message end -- the error concerns the whole recipe
  at = at or row:find "%S"
  local first = at > BEFORE and at - 40 or row:find "%S"
  return ("%s\n  %s\n  %s^"):format(message, row:sub(first, first + WIDTH - 1):gsub(" +$", ""), (" "):rep(at - first))
end

-- Return the name of the field that a row assigns by a statement of one line, as t.tp = g "tp", else nil. Also return
-- nil if the statement makes a grid, because most later errors would be due to its removal.
local function assigned(row)
  local name, value = row:match "^%s*[%a_][%w_]*[%.%[]\"?([%a_][%w_]*)\"?%]?%s*=%s*([^=].*)$"
  if not name or value:find "[%[%]]=*[%[%]]" or value:find "%f[%w_]function%f[^%w_]" then return nil end
  if value:find "%f[%w_]grid%s*%(" then return nil end
  local depth = 0
  for bracket in value:gsub("%-%-.*", ""):gmatch "[%(%)%[%]{}]" do
    depth = depth + (bracket:find "[%(%[{]" and 1 or -1)
  end
  return depth == 0 and name or nil
end

-- Return a list of `message` and the errors of later lines. plan(text) evaluates the recipe with another text.
local function of_lines(message, path, plan)
  local at, number = parts(message)
  local text = at == path and read(path)
  local rows, found, gone = text and rows_of(text) or {}, { message }, {}
  while #found < MOST and rows[number] and assigned(rows[number]) do
    gone[#gone + 1], rows[number] = assigned(rows[number]), ""
    local done, next_message = pcall(plan, table.concat(rows, "\n"))
    if done or type(next_message) ~= "string" then break end
    local before, where, behind, what = number, parts(next_message)
    if where ~= path or behind <= before then break end
    number = behind
    local caused = false -- by the removal of a statement
    for _, name in ipairs(gone) do caused = caused or what:find("'" .. name .. "'", 1, true) ~= nil end
    if not caused then found[#found + 1] = next_message end
  end
  return found
end

-- Return the message. If it refuses an argument that has the name of a family, put another end in place of the nearest
-- parameter: that the size of the family follows from the parameters.
local function of_family(message, plan)
  local name = message:match "unknown parameter '([^']+)'"
  local there, family = pcall(plan.family, plan, name or "")
  if not there then return message end
  local size = family.size == family.largest and family.size or "up to " .. family.largest
  return ("%s; %s is a family, not a parameter: its size (%s) follows from the parameters"):format(
    message:gsub("; nearest.*", ""):gsub("; known.*", ""), name, size)
end

-- Mistakes in a value that was refused: the pattern of the mistake, and what to write instead.
local written = {
  { "[,; ][%a_][%w_]*%s*=", "put blanks between parameters, and no quotes around several" },
  { "^=", "write one = only" }, { "[,;]$", "put only blanks between parameters" },
  { "^%-?%d+,[%d,-]*%d$", "several values are for draw -o FILE.html and place --search order" },
}

-- Return a list of `message`, which refuses an argument, and the errors of other arguments. named(alias) returns the
-- parameter's own name; plan(arguments) evaluates the recipe with other arguments.
local function of_arguments(message, arguments, named, plan)
  local found, left = { message }, table.move(arguments, 1, #arguments, 1, {})
  while true do
    local name, wrong = found[#found]:match "parameter '([^']+)'", nil
    for i, argument in ipairs(left) do wrong = wrong or name and named(argument:match "^[^=]*") == name and i end
    if not wrong then return found end
    local value = table.remove(left, wrong):match "=(.*)"
    for _, one in ipairs(written) do
      if value:find(one[1]) then
        found[#found] = found[#found] .. "; " .. one[2]
        break
      end
    end
    local done, planned = pcall(plan, left)
    if done then
      for i = 1, #found do found[i] = of_family(found[i], planned) end
      return found
    end
    if #found == MOST or type(planned) ~= "string" or not planned:find "parameter '" then return found end
    found[#found + 1] = planned
  end
end

-- Return one text with `message` and further errors that do not depend on it. named(alias) returns the parameter's own
-- name; plan(text, arguments) evaluates the recipe again, with another text or other arguments.
function M.all(message, path, arguments, named, plan)
  local found = of_lines(message, path, function(text) return plan(text, arguments) end)
  if #found == 1 then found = of_arguments(message, arguments, named, function(left) return plan(nil, left) end) end
  for i = 1, #found do found[i] = #found > 1 and M.quote(found[i]) or found[i] end
  return table.concat(found, "\n")
end

return M
