-- SPDX-License-Identifier: MIT
--
-- text: what is printed for people, fit to the terminal, and messages.

local host = require "host"

local M = {}

local LABEL, ROOM, DEEPER = 15, 36, 4 -- column of values; least room beside a first column; indent under it
local VALUE = 60 -- bytes of the value of a parameter

local is_terminal, columns, lines, unicode, told = host.terminal()
M.rank, M.ranks, M.launcher = host.launcher()
M.is_terminal, M.unicode, M.is_told = is_terminal, unicode, told -- told: stderr is a terminal
M.columns = columns == 0 and 80 or math.max(columns, 40)
M.lines = columns == 0 and 0 or lines == 0 and 24 or math.max(lines, 10) -- 0: stdout is no terminal
M.fold = M.columns -- where words are folded
M.on, M.off = "", "" -- around what is bold

-- Choose colour by --color. Under a launcher stdout of a rank is a terminal even if the launcher writes to a file.
function M.color(when)
  local shows = is_terminal and not M.launcher and not os.getenv "NO_COLOR"
  if when == "always" or when ~= "never" and shows then M.on, M.off = "\27[1m", "\27[0m" end
end

M.put = io.write

function M.printf(...) io.write(string.format(...)) end

-- The columns of a text; a character of UTF-8 has one.
local function width(text) return #text - select(2, text:gsub("[\x80-\xbf]", "")) end
M.width = width

-- A word of ASCII, as names are, and blanks up to a width: string.format has widths up to 99 only.
function M.padded(word, wide) return word .. (" "):rep(wide - #word) end

-- The end of a word for so many: "", or "s".
function M.plural(n) return n == 1 and "" or "s" end

-- Bytes for people: "1.50 GiB".
function M.bytes(n)
  local units, i = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" }, 1
  while n >= 1024 and i < 7 do n, i = n / 1024, i + 1 end
  return ((i == 1 and "%.0f" or n < 10 and "%.2f" or "%.1f") .. " %s"):format(n, units[i])
end

-- Seconds for people: "12.3 ms".
function M.seconds(s)
  if s <= 0 then return "0" end
  local unit, by = "ns", 1e9
  if s >= 1 then
    unit, by = "s", 1
  elseif s >= 1e-3 then
    unit, by = "ms", 1e3
  elseif s >= 1e-6 then
    unit, by = "us", 1e6
  end
  return (s * by >= 100 and "%.0f %s" or s * by >= 10 and "%.1f %s" or "%.2f %s"):format(s * by, unit)
end

-- Print words after text that ends at `column`, each after a blank; further lines start at `indent`.
local function put_words(words, column, indent)
  if words ~= "" and column + 1 + #words <= M.fold then
    M.put(" ", words)
  elseif words ~= "" then
    for word in words:gmatch "([^ ]*) ?" do
      local wide = width(word)
      if column + 1 + wide > M.fold and column > indent then
        M.put("\n", (" "):rep(indent - 1))
        column = indent - 1
      end
      M.put(" ", word)
      column = column + 1 + wide
    end
  end
  M.put "\n"
end

-- What is safe for a terminal of a value, in at most so many bytes; a longer one ends in "...".
local function at_most(most, value)
  if #value > most then most = most - 3 end
  local shown, ends = host.shown(value), #value > most and "..." or ""
  if #shown <= most then return shown .. ends end
  while shown:find("^[\x80-\xbf]", most + 1) do most = most - 1 end -- whole characters
  return shown:sub(1, most) .. ends
end

-- Print the first line of what is about a plan: "megatron over 8 ranks: tp=2", after other words, with the parameters
-- that differ from their defaults, or `all`.
function M.head(plan, before, all)
  local name = plan.recipe == "" and "plan" or host.shown(plan.recipe)
  local about = (" over %d rank%s"):format(plan.world, M.plural(plan.world))
  before = before or ""
  local column, colon = #before + #name + #about, ":"
  M.put(before, M.on, name, M.off, about)
  for _, param in ipairs(plan.params) do
    if all or not param.usual then
      local word = param.name .. "=" .. at_most(VALUE, param.short)
      M.put(colon)
      column, colon = column + #colon, ""
      if column + #word + 1 > M.fold and column > LABEL then
        M.put("\n", (" "):rep(LABEL - 1))
        column = LABEL - 1
      end
      M.put(" ", word)
      column = column + 1 + #word
    end
  end
  M.put "\n"
end

-- Print words after a label, folded.
function M.wrap(label, words)
  label = M.padded(label, LABEL - 1)
  M.put(label)
  put_words(words, #label, LABEL)
end

-- Print the text of a machine after its label; of a long list of ranks only the first ones.
function M.machine(all)
  local shown = 240
  if #all > shown then all = (all:sub(1, shown):match "^.*[, ]" or "") .. "..." end
  M.wrap("machine", all)
end

-- Where the last column of a line of a table starts, after a gap of two blanks or more; nil: there is only one.
local function last_column(line)
  local at
  for i in line:gmatch "  ()[^ ]" do
    if i > #line:match "^ *" + 3 then at = i end
  end
  return at
end

-- Print a line. If the terminal is narrower, fold the words of its last column under that column, or with too little
-- room there, under the line.
local function put_line(line)
  if width(line) <= M.fold then return M.put(line, "\n") end
  local blanks, at = #line:match "^ *", last_column(line)
  if blanks > ROOM then -- they belong to the last column
    M.put((" "):rep(1 + DEEPER))
    return put_words(line:sub(blanks + 1), 1 + DEEPER, 2 + DEEPER)
  end
  if not at then
    local head = line:match "^ *[^ ]*"
    M.put(head)
    return put_words(line:sub(#head + 2), width(head), blanks + DEEPER)
  end
  local head, indent = line:sub(1, at - 2), width(line:sub(1, at - 1))
  if M.fold - indent >= ROOM then
    M.put(head)
    return put_words(line:sub(at), width(head), indent)
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

-- Print a message on stderr. `own`: only this rank may have it, so every rank says it, rank 0 first, whose exit may end
-- the job before the others repeat it.
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

-- Refuse the command line: say why and end.
function M.usage(...)
  M.say(host.shown(string.format(...)), true)
  error(2, 0)
end

-- Refuse what all ranks refuse: rank 0 says why. `code` is the exit code. It is raised as what the module raises.
function M.refuse(code, ...) host.refuse(100 * code, host.shown(string.format(...))) end

return M
