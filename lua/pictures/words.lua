-- SPDX-License-Identifier: MIT
--
-- words: functions that make text for pictures: they escape texts of users for XML and JSON, and wrap lines.

local M = {}

-- Return whether a character controls a terminal, changes the direction of text, or is not allowed in XML.
local function unsafe(code)
  return code < 0x20 or code >= 0x7f and code <= 0x9f or code >= 0x202a and code <= 0x202e
         or code >= 0x2066 and code <= 0x2069 or code == 0xfffe or code == 0xffff
end

local ESCAPES = { ["\n"] = "\\n", ["\t"] = "\\t" }
local function escaped(byte) return ESCAPES[byte] or ("\\x%02x"):format(byte:byte()) end

-- Return a text in which unsafe characters, and bytes that are not UTF-8, are escaped as "\x1b".
function M.shown(text)
  if not text:find "[^\x20-\x7e]" then return text end
  local out, at = {}, 1
  while at <= #text do
    local whole, after = utf8.len(text, at)
    local stop = whole and #text + 1 or after -- the text is UTF-8 up to here
    for i, code in utf8.codes(text:sub(at, stop - 1)) do
      local char = utf8.char(code)
      out[#out + 1] = unsafe(code) and char:gsub("[\0-\xff]", escaped) or i and char
    end
    if stop <= #text then out[#out + 1] = escaped(text:sub(stop, stop)) end
    at = stop + 1
  end
  return table.concat(out)
end

local ENTITIES = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }

-- Return a text, escaped for XML.
function M.xml(text) return (M.shown(text):gsub('[&<>"]', ENTITIES)) end

local function json_escape(c) return (c == "\\" or c == '"') and "\\" .. c or ("\\u%04x"):format(c:byte()) end

-- Return a text as JSON that is safe inside a <script>.
function M.quoted(text)
  return '"' .. text:gsub('[%c"\\<>&]', function(c) return ("\\u%04x"):format(c:byte()) end) .. '"'
end

-- Return the keys of a table, sorted.
function M.keys(value)
  local keys = {}
  for key in pairs(value) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

-- Write a value as JSON that is safe inside a <script>. A table without named keys is a list; keys are sorted.
function M.json(value, put)
  if type(value) == "string" then
    put('"' .. M.shown(value):gsub('[\\"<>&]', json_escape) .. '"')
  elseif type(value) ~= "table" then
    put(tostring(value))
  elseif math.type(value[1]) == "integer" then
    put("[" .. table.concat(value, ",") .. "]")
  elseif value[1] ~= nil or next(value) == nil then
    put "["
    for i, one in ipairs(value) do
      if i > 1 then put "," end
      M.json(one, put)
    end
    put "]"
  else
    for i, key in ipairs(M.keys(value)) do
      put((i > 1 and "," or "{") .. '"' .. key .. '":')
      M.json(value[key], put)
    end
    put "}"
  end
end

-- Return the parameters of a plan that differ from their defaults, as "tp=2".
function M.given(plan)
  local list = {}
  for _, param in ipairs(plan.params) do
    if not param.usual then list[#list + 1] = param.name .. "=" .. param.value end
  end
  return list
end

-- Add a word to a list of lines of at most `columns` columns. Between two words put `joint`, at the end of a line
-- without its trailing blanks.
function M.wrap(lines, joint, word, columns)
  local line = lines[#lines]
  if not line then
    lines[1] = word
  elseif #line + #joint + #word <= columns then
    lines[#lines] = line .. joint .. word
  else
    lines[#lines] = line .. joint:gsub(" +$", "")
    lines[#lines + 1] = word
  end
end

return M
