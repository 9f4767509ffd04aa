-- SPDX-License-Identifier: MIT
--
-- numbers.lua FILE...: where C prints or reads floating point by a function that follows the locale of the host, a line
-- each. What goes through mgrid_vformat and mgrid_read_double (src/base/chars.c) does not; the command sets its own
-- locale first, so it may use printf. scripts/lint runs it.

local FLOATING = "%%[-+ #0']*[%d*]*%.?[%d*]*l?[aAeEfFgG]"
local follows = { snprintf = true, sprintf = true, vsnprintf = true, dprintf = true, sscanf = true,
  lua_pushfstring = true, luaL_error = true, st_fail = true }
local reads = { "strtod", "strtof", "strtold", "atof" }

-- The name of the call that the text at this place is an argument of, "" if there is none.
local function caller(text, at)
  local depth = 0
  for i = at - 1, 1, -1 do
    local c = text:sub(i, i)
    if c == ")" then depth = depth + 1 end
    if c == "(" and depth > 0 then
      depth = depth - 1
    elseif c == "(" then
      local name = text:sub(1, i - 1):match "([%a_][%w_]*)%s*$"
      if name then return name end -- else a bracket of an expression
    end
    if depth == 0 and (c == ";" or c == "}") then return "" end
  end
  return ""
end

local function blank(s) return (s:gsub("[^\n]", " ")) end

for _, file in ipairs(arg) do
  local f = assert(io.open(file, "rb"))
  local text = f:read "a":gsub("/%*.-%*/", blank)
  f:close()
  local bare = text:gsub("\\.", "  "):gsub('"[^"\n]*"', blank):gsub("'[^'\n]*'", blank)
  local function complain(at, what)
    local _, line = text:sub(1, at):gsub("\n", "")
    print(("%s:%d: %s"):format(file, line + 1, what))
  end
  local command = file:find "/command/"
  for at, literal in text:gsub("\\.", "  "):gmatch '()"([^"\n]*)"' do
    if literal:gsub("%%%%", ""):find(FLOATING) then
      local name = caller(bare, at)
      local prints = (name == "printf" or name == "fprintf") and not command
      if follows[name] or prints then complain(at, name .. " of floating point") end
    end
  end
  for _, name in ipairs(reads) do
    for at in bare:gmatch("%f[%w_]()" .. name .. "%s*%(") do complain(at, name) end
  end
end
