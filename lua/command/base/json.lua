-- SPDX-License-Identifier: MIT
--
-- json.put(value [, shape]): print a value as JSON, a line for each value. json.line(value): a text on one line.
--
-- A shape has the keys of an object in their order, and by their names the shapes of what is in them; a key without a
-- value is null. Elements of a list have the shape of the list. Where a shape has no list of keys, they are sorted;
-- without a shape, too, and an empty table is [].

local host = require "host"
local sorted = require "command.base.sorted"

local escaped = { ['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r",
                  ["\t"] = "\\t" }

local function text(s)
  if not utf8.len(s) then s = host.shown(s) end -- a path may be any bytes; JSON is UTF-8
  return '"' .. s:gsub('[%c"\\]', function(c)
    return escaped[c] or c < " " and ("\\u%04X"):format(c:byte()) or nil
  end) .. '"'
end

local function number(n)
  if math.type(n) == "integer" then return ("%d"):format(n) end
  local digits = ("%.17g"):format(n):gsub("e%+?(%-?)0*", "e%1")
  return digits:find "[.e]" and digits or digits .. ".0"
end

local function scalar(value)
  return type(value) == "number" and number(value) or type(value) == "boolean" and tostring(value) or "null"
end

local put -- (value, shape, indent)

-- Print what is between brackets: `each` returns the next key, "" in a list, with its value and shape.
local function put_all(open, close, indent, each)
  local before = open .. "\n" .. indent .. "  "
  for key, value, shape in each do
    io.stdout:write(before, key)
    put(value, shape, indent .. "  ")
    before = ",\n" .. indent .. "  "
  end
  io.stdout:write("\n", indent, close)
end

local function put_table(value, shape, indent)
  local list, at = #value > 0 or not shape and next(value) == nil, 0
  local keys = shape and shape[1] and shape or {}
  if list and #value == 0 then return io.stdout:write "[]" end
  if not list and not keys[1] then
    for key in sorted(value) do keys[#keys + 1] = key end
    if not keys[1] then return io.stdout:write "{}" end
  end
  put_all(list and "[" or "{", list and "]" or "}", indent, function()
    at = at + 1
    if list then
      if at <= #value then return "", value[at], shape end
    elseif keys[at] then
      local key = keys[at]
      return text(key) .. ": ", value[key], shape and shape[key]
    end
  end)
end

function put(value, shape, indent)
  if type(value) == "table" then return put_table(value, shape, indent) end
  io.stdout:write(type(value) == "string" and text(value) or scalar(value))
end

local M = {}

function M.put(value, shape)
  put(value, shape, "")
  io.stdout:write "\n"
end

-- Return a value on one line. Keys are sorted; what controls a terminal is escaped.
function M.line(value)
  if type(value) == "string" then
    return (text(value):gsub(utf8.charpattern, function(c)
      return host.shown(c) ~= c and ("\\u%04x"):format(utf8.codepoint(c)) or nil
    end))
  elseif type(value) ~= "table" then
    return scalar(value)
  end
  local all = {}
  for i, one in ipairs(value) do all[i] = M.line(one) end
  if #value > 0 or next(value) == nil then return "[" .. table.concat(all, ", ") .. "]" end
  for key, one in sorted(value) do all[#all + 1] = M.line(key) .. ": " .. M.line(one) end
  return "{" .. table.concat(all, ", ") .. "}"
end

return M
