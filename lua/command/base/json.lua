-- SPDX-License-Identifier: MIT
--
-- json.put(value [, shape]): print a value as JSON, a line for each value. json.line(value): return one line of JSON.
--
-- A shape says how to print a table. Its list part has the keys of an object in their order, its fields the shapes
-- of these keys' values; a key without a value is printed as null. The shape of a list is that of its elements. The
-- field `line` puts an object on one line. Without a shape, or with the field `named`, keys are sorted. An empty
-- table is {} with `named`, else []. A value that is a function is printed as a list: it returns the next element,
-- at the end nil. A shape that is a function gets a value that is not a list, and returns the shape of this value.

local host = require "host"
local sorted = require "command.base.sorted"

local escaped = { ['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r",
                  ["\t"] = "\\t" }

local function text(s)
  if not utf8.len(s) then s = host.shown(s) end -- a path may be any bytes; JSON is UTF-8
  if not s:find '[%c"\\]' then return '"' .. s .. '"' end
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

local function is_list(value, shape) return #value > 0 or next(value) == nil and not (shape and shape.named) end

-- Return the keys of an object in their order.
local function keys_of(value, shape)
  if shape and not shape.named then return shape end
  local keys = {}
  for key in sorted(value) do keys[#keys + 1] = key end
  return keys
end

-- Return a value as one line of JSON; `quoted` converts a text.
local function flat(value, shape, quoted)
  if type(value) == "string" then return quoted(value) end
  if type(value) ~= "table" then return scalar(value) end
  local all = {}
  if is_list(value, shape) then
    for i, one in ipairs(value) do all[i] = flat(one, shape, quoted) end
    return "[" .. table.concat(all, ", ") .. "]"
  end
  for i, key in ipairs(keys_of(value, shape)) do
    all[i] = quoted(key) .. ": " .. flat(value[key], shape and shape[key], quoted)
  end
  return "{" .. table.concat(all, ", ") .. "}"
end

local put -- (value, shape, indent)

-- Print the elements between brackets. each() returns the next key ("" in a list), its value and its shape.
local function put_all(open, close, indent, each)
  local deeper, last = indent .. "  ", open
  local before, between, after = open .. "\n" .. deeper, ",\n" .. deeper, "\n" .. indent
  for key, value, shape in each do
    io.stdout:write(before, key)
    put(value, shape, deeper)
    before, last = between, after
  end
  io.stdout:write(last, close)
end

local function put_list(value, shape, indent)
  local at, call = 0, type(value) == "function"
  put_all("[", "]", indent, function()
    at = at + 1
    local one = call and value() or not call and value[at] or nil
    if one ~= nil then return "", one, shape end
  end)
end

local function put_object(value, shape, indent)
  local keys, at = keys_of(value, shape), 0
  put_all("{", "}", indent, function()
    at = at + 1
    local key = keys[at]
    if key then return text(key) .. ": ", value[key], shape and shape[key] end
  end)
end

function put(value, shape, indent)
  local kind, chooses = type(value), type(shape) == "function"
  if kind == "function" or kind == "table" and is_list(value, not chooses and shape) then
    return put_list(value, shape, indent)
  end
  if chooses then shape = shape(value) end
  if kind == "table" and not (shape and shape.line) then
    put_object(value, shape, indent)
  else
    io.stdout:write(flat(value, shape, text))
  end
end

local M = {}

function M.put(value, shape)
  put(value, shape, "")
  io.stdout:write "\n"
end

-- Convert a text to JSON, and escape what controls a terminal.
local function shown(s)
  return (text(s):gsub(utf8.charpattern, function(c)
    return host.shown(c) ~= c and ("\\u%04x"):format(utf8.codepoint(c)) or nil
  end))
end

-- Return a value as one line of JSON with sorted keys, in which characters that control a terminal are escaped.
function M.line(value) return flat(value, nil, shown) end

return M
