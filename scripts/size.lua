-- SPDX-License-Identifier: MIT
--
-- size.lua [--record | --grown]: for scripts/size: count the tokens of the files that standard input names, and print
-- the counts by folder, record them, or list the folders that have grown.

-- Return the end of a comment or string that begins at a position of a text, or nil.
local function block(text, at) return text:match("^/%*.-%*/()", at) end

local function long_bracket(text, at)
  local level, after = text:match("^%[(=*)%[()", at)
  if not level then return end
  local _, last = text:find("]" .. level .. "]", after, true)
  return last and last + 1
end

local function quoted(text, at)
  local quote = text:match("^[\"']", at)
  if not quote then return end
  local char
  repeat
    at = text:find("[\\\n" .. quote .. "]", at + 1)
    char = at and text:sub(at, at)
    if char == "\\" then at = at + 1 end
  until char ~= "\\"
  return char == quote and at + 1
end

-- Comments and strings of a kind of file.
local C = { quoted, comment = function(text, at) return block(text, at) or text:match("^//[^\n]*()", at) end }
local HTML = { quoted, comment = function(text, at) return text:match("^<!%-%-.-%-%->()", at) or block(text, at) end }
local LUA = {
  function(text, at) return long_bracket(text, at) or quoted(text, at) end,
  comment = function(text, at)
    local rest = text:match("^%-%-()", at)
    return rest and (long_bracket(text, rest) or text:match("^[^\n]*()", rest))
  end,
}
local HASH = { quoted, comment = function(text, at)
  return (at == 1 or text:find("^%s", at - 1)) and text:match("^#[^\n]*()", at)
end }
local KINDS = { html = HTML, htm = HTML, lua = LUA }
for kind in ("c h js css cc cpp F90 inc cu"):gmatch "%S+" do KINDS[kind] = C end
local DATA = {}
for kind in ("json txt svg xml yaml yml csv conf"):gmatch "%S+" do DATA[kind] = true end

local OPERATORS = {}
for operator in ("<<= >>= ... -> ++ -- << >> += -= *= /= %= &= |= ^= != == <= >= ~= && || .. // ::"):gmatch "%S+" do
  OPERATORS[operator] = true
end

local function words(text) return select(2, text:gsub("%S+", "")) end

-- Letters beyond ASCII continue a name, but begin none; other characters are operators. Each becomes one byte.
local LETTER, OTHER = "\xFF", "\xFE"
local function plain(text)
  return (text:gsub("[\x1C-\x1F]", " "):gsub("[\xC2-\xF4][\x80-\xBF]+", function(char)
    local code = utf8.codepoint(char)
    if code == 0xA0 then return " " end
    local latin = code >= 0xC0 and code <= 0x2AF and code ~= 0xD7 and code ~= 0xF7
    return (latin or code >= 0x370 and code <= 0x1FFF) and LETTER or OTHER
  end))
end

-- A docstring of Python, which begins and ends a line, counts as a string.
local function without_docstrings(text)
  local parts, at = {}, 1
  for first, after in ("\n" .. text):gmatch '()\n%s*"""()' do
    if first >= at then
      local rest = text:match('^.-"""[ \t]*%f[\n\0]()', after - 1)
      if rest then
        parts[#parts + 1] = text:sub(at, first - 1) .. '\n""'
        at = rest
      end
    end
  end
  return table.concat(parts) .. text:sub(at)
end

local function tokens(text, kind)
  local comment, string = kind.comment, kind[1]
  local count, at = 0, text:find "%S"
  while at do
    local after = comment(text, at)
    if not after then
      after = string(text, at)
      if after then
        count = count + (after - at > 200 and words(text:sub(at, after - 1)) or 1)
      elseif text:sub(at, at) == LETTER then
        after = at + 1
      else
        after = text:match("^[%a_][%w_\xFF]*()", at) or text:match("^%d[%w_.\xFF]*()", at)
          or at + (OPERATORS[text:sub(at, at + 2)] and 3 or OPERATORS[text:sub(at, at + 1)] and 2 or 1)
        count = count + 1
      end
    end
    at = text:find("%S", after)
  end
  return count
end

local sizes, lines, names, documents = {}, {}, {}, 0
local function add(name, size, more)
  if not sizes[name] then
    sizes[name], lines[name] = 0, 0
    names[#names + 1] = name
  end
  sizes[name], lines[name] = sizes[name] + size, lines[name] + more
end

for path in io.lines() do
  local file = assert(io.open(path, "rb"))
  local text = file:read "a":gsub("\r\n?", "\n")
  file:close()
  local ending = path:match "%.(%w+)$"
  local is_text = utf8.len(text)
  if is_text and ending == "md" then
    documents = documents + words(text)
  elseif is_text and not DATA[ending] then
    local top, inner = path:match "^([^/]+)/([^/]+)/"
    local folder = top and ("src lua tests"):find(top, 1, true) and top .. "/" .. inner or path:match "^[^/]+"
    local code = ending == "py" and without_docstrings(text) or text
    add(folder, tokens(plain(code), KINDS[ending] or HASH), select(2, text:gsub("\n", "")))
  end
end

table.sort(names)

local RECORD, MOST = "scripts/lint.d/sizes.txt", 1.02
local IN_SUM = { src = true, lua = true, scripts = true, examples = true }

if arg[1] == "--record" then
  local record <close> = assert(io.open(RECORD, "w"))
  for _, name in ipairs(names) do
    if IN_SUM[name:match "^[^/]+"] then record:write(name, " ", sizes[name], "\n") end
  end
  return
elseif arg[1] == "--grown" then
  local parts, newest, was = 0, {}, {}
  for line in io.lines "src/CHANGES.md" do
    if line:find "^%*%*%d" then parts = parts + 1 end -- **1.2.3** (date)
    if parts == 1 then newest[#newest + 1] = line end
  end
  newest = table.concat(newest, "\n")
  for line in io.lines(RECORD) do
    local name, size = line:match "^(%S+) (%d+)$"
    was[name] = tonumber(size)
  end
  for _, name in ipairs(names) do
    local size, old = sizes[name], was[name] or 0
    if IN_SUM[name:match "^[^/]+"] and size > MOST * old and not newest:find("`" .. name .. "`", 1, true) then
      print(("%s has %d tokens, and had %d"):format(name, size, old))
    end
  end
  return
end

local function row(name, size, more) print(("%-28s %9d tokens %7d lines"):format(name, size, more)) end
for _, name in ipairs(names) do row(name, sizes[name], lines[name]) end
print()
local all, all_lines = 0, 0
for _, top in ipairs { "src", "lua", "scripts", "examples", "tests" } do
  local size, more = 0, 0
  for _, name in ipairs(names) do
    if name:match "^[^/]+" == top then size, more = size + sizes[name], more + lines[name] end
  end
  if top == "tests" then row("sum without tests", all, all_lines) end
  row(top, size, more)
  all, all_lines = all + size, all_lines + more
end
print(("%-28s %9d words"):format("documents (.md)", documents))
