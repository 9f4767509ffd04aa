-- SPDX-License-Identifier: MIT
--
-- fields.lua - check the values in a text of JSON or YAML, and refuse fields that the reader does not know. Messages
-- begin with the path of the value: items[3].status.

local file = ...
local M = {}

-- Return the path of a field, and of the i-th item of a list. Paths count items from 0.
function M.path(where, name) return where == "" and name or where .. "." .. name end
function M.item(where, i) return ("%s[%d]"):format(where, i - 1) end

-- Return the value if it is an object, else refuse it. All its fields must be in the text `known`, "a b", if that is
-- given.
function M.object(value, where, known)
  if type(value) ~= "table" or not value[0] then file.fault(where, "an object expected") end
  local names = {}
  if not known then return value end
  for name in known:gmatch "%S+" do names[#names + 1], names[name] = name, true end
  for _, name in ipairs(value[0]) do
    if not names[name] then
      file.fault(where, "unknown field '%.60s'%s", name, file.suggest(name, names))
    end
  end
  return value
end

function M.list(value, where, of)
  if type(value) ~= "table" or value[0] then file.fault(where, "a list of " .. of .. " expected") end
  return value
end

function M.text(value, where, of)
  if type(value) ~= "string" then
    file.fault(where, value and "%s expected, as text in quotes, not '%s'" or "%s expected", of, tostring(value))
  end
  return value
end

-- Return the value if it is a list of one or more integers from 0 to 2147483647, else refuse it.
function M.integers(value, where)
  M.list(value, where, "integers from 0")
  for i = 1, #value do
    if math.type(value[i]) ~= "integer" or value[i] < 0 or value[i] > 0x7fffffff then
      file.fault(M.item(where, i), "an integer from 0 to 2147483647 expected")
    end
  end
  if #value == 0 then file.fault(where, "a list of integers from 0 expected") end
  return value
end

return M
