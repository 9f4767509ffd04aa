-- SPDX-License-Identifier: MIT
--
-- text: print text for people, folded to the width of the terminal, and messages on stderr.

local host = require "host"
local reports = require "pictures.reports"

local M = {}

local ROOM, DEEPER = 36, 4 -- least columns for a folded last column; more indent of words folded under a line's start

local is_terminal, columns, lines, unicode, stderr_is_terminal = host.terminal()
M.rank, M.ranks, M.launcher = host.launcher()
M.is_terminal, M.unicode, M.stderr_is_terminal = is_terminal, unicode, stderr_is_terminal
M.columns = columns == 0 and 80 or math.max(columns, 40)
M.lines = columns == 0 and 0 or lines == 0 and 24 or math.max(lines, 10) -- 0: stdout is not a terminal
M.fold = M.columns -- the column at which words are folded
M.on, M.off = "", "" -- codes that begin and end bold text

-- Choose colour by --color. Under a launcher "auto" means never: stdout of a rank may be a terminal there, even if the
-- launcher writes to a file.
function M.color(when)
  local shows = is_terminal and not M.launcher and not os.getenv "NO_COLOR"
  if when == "always" or when ~= "never" and shows then M.on, M.off = "\27[1m", "\27[0m" end
end

M.put = io.write

function M.printf(...) io.write(string.format(...)) end

M.shown = host.shown -- pictures.reports writes by `put`, `shown`, `fold`, `on` and `off` of this table
M.padded, M.plural, M.width = reports.padded, reports.plural, reports.width
M.bytes, M.seconds = reports.bytes, reports.seconds

local function put_words(words, column, indent) reports.put_words(M, words, column, indent) end

function M.head(plan, before, all) reports.head(M, plan, before, all) end

-- Print a label, and words after it, folded.
function M.wrap(label, words) reports.wrap(M, label, words) end

-- Print the text of a machine after a label; cut a text that is long, as one with a list of ranks.
function M.machine(all)
  local shown = 240
  if #all > shown then all = (all:sub(1, shown):match "^.*[, ]" or "") .. "..." end
  M.wrap("machine", all)
end

-- Return where the last column of a table's line starts, after a gap of two blanks or more, or nil if there is only one
-- column.
local function last_column(line)
  local at
  for i in line:gmatch "  ()[^ ]" do
    if i > #line:match "^ *" + 3 then at = i end
  end
  return at
end

-- Print a line. If the terminal is narrower, fold the words of the last column under this column; if that leaves too
-- little room, fold the line under its start.
local function put_line(line)
  if M.width(line) <= M.fold then return M.put(line, "\n") end
  local blanks, at = #line:match "^ *", last_column(line)
  if blanks > ROOM then -- the line continues the last column of the line above
    M.put((" "):rep(1 + DEEPER))
    return put_words(line:sub(blanks + 1), 1 + DEEPER, 2 + DEEPER)
  end
  if not at then
    local head = line:match "^ *[^ ]*"
    M.put(head)
    return put_words(line:sub(#head + 2), M.width(head), blanks + DEEPER)
  end
  local head, indent = line:sub(1, at - 2), M.width(line:sub(1, at - 1))
  if M.fold - indent >= ROOM then
    M.put(head)
    return put_words(line:sub(at), M.width(head), indent)
  end
  indent = blanks + DEEPER
  M.put(head:match "^(.-) *$", "\n", (" "):rep(indent - 1))
  put_words(line:sub(at), indent - 1, indent)
end

-- Print lines, each folded.
function M.put_lines(text)
  if text == "" then return end
  for line in text:gmatch "([^\n]*)\n?" do put_line(line) end
end

-- Print a message on stderr, on rank 0 only. With `own` every rank prints its message, since others may not have it.
-- If all ranks have it, the exit of rank 0 usually ends the job while the others pause, so it is printed once.
function M.say(message, own)
  if M.rank ~= 0 and not own then return end
  if M.rank ~= 0 then host.pause(0.3) end
  host.progress()
  local who = M.launcher and ("[rank %d/%d] "):format(M.rank, M.ranks) or ""
  io.stderr:write("moongrid: ", who, (message:gsub("[^\n]+", host.shown)), "\n")
end

function M.note(...)
  host.progress()
  if M.rank == 0 then io.stderr:write("moongrid: note: ", string.format(...), "\n") end
end

-- Refuse the command line: print the reason and end.
function M.usage(...)
  M.say(host.shown(string.format(...)), true)
  error(2, 0)
end

-- Raise an error that all ranks have, as the module raises its errors: rank 0 prints it. `code` is the exit code.
function M.refuse(code, ...) host.refuse(100 * code, host.shown(string.format(...))) end

return M
