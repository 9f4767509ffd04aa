-- SPDX-License-Identifier: MIT
--
-- Helpers for the files of the prelude: iterate over a table in order, show a value in a message, give a recipe a
-- read-only table.

local core = ...

-- Iterate like pairs, but in the order of core.keys, because every rank must find the same first error.
local function sorted_pairs(t)
  local keys, i = core.keys(t), 0
  return function()
    i = i + 1
    local key = keys[i]
    return key, t[key]
  end
end

-- Return whether the value is a list for whose items is_item(item) is true; without is_item, a list of integers.
local function is_list(value, is_item)
  if type(value) ~= "table" then return false end
  local n, most = 0, 0
  for key, item in pairs(value) do -- not up to #value, which is unreliable in a table with gaps
    if math.type(key) ~= "integer" or key < 1 then return false end
    if is_item and not is_item(item) or not is_item and math.type(item) ~= "integer" then return false end
    n, most = n + 1, math.max(most, key)
  end
  return n == most
end

local function is_short(item) return math.type(item) == "integer" or type(item) == "string" end

-- Return a value as messages show it, without addresses, which differ between ranks.
local function show(value)
  if type(value) == "string" then return "'" .. value .. "'" end
  if is_list(value, is_short) then return "{" .. table.concat(value, ",") .. "}" end
  if type(value) == "number" or type(value) == "boolean" or value == nil then return tostring(value) end
  return core.kind(value)
end

-- Return a key as messages show it: a name without quotes, which the message adds. A table as a key is shown without
-- its contents: such keys have no order, so the first of them may differ between ranks, but messages must not.
local function word(key)
  if type(key) == "table" then return core.kind(key) end
  return type(key) == "string" and key or show(key)
end

-- Return whether a name matches a pattern, in which * stands for any part of a name.
local function fits(name, pattern)
  return string.find(name, "^" .. string.gsub(pattern, "%*", "[%%w_]*") .. "$") ~= nil
end

-- Return a read-only view of the table that all() returns. Only reading a name calls all(). Unknown names and
-- assignments are errors. If `call` is given, a call of the view calls this function.
local function vocabulary(what, all, call)
  return setmetatable({}, {
    __index = function(_, name) return all()[name] or core.unknown(what, word(name), core.keys(all())) end,
    __newindex = function(_, name) core.raise(string.format("%s '%s' cannot be changed", what, word(name))) end,
    __call = call and function(_, argument) return call(argument) end,
    __metatable = false,
  })
end

-- Return a table with the entries of a and b; entries of b win. If one of the two is nil, return the other.
local function joined(a, b)
  if not a or not b then return a or b end
  local all = {}
  for _, part in ipairs { a, b } do
    for name, value in pairs(part) do all[name] = value end
  end
  return all
end

return { sorted_pairs = sorted_pairs, is_list = is_list, show = show, word = word, fits = fits,
         vocabulary = vocabulary, joined = joined }
