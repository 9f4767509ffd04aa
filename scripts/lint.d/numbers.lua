-- SPDX-License-Identifier: MIT
--
-- numbers.lua FILE...: list calls in C that print or read floating point in the locale of the host. mgrid_vformat and
-- mgrid_read_double (src/base/chars.c) do not depend on the locale. The command sets the locale first, so it may use
-- printf.

local FLOATING = "%%[-+ #0']*[%d*]*%.?[%d*]*l?[aAeEfFgG]"
local follows = { snprintf = true, sprintf = true, vsnprintf = true, dprintf = true, sscanf = true,
  lua_pushfstring = true, luaL_error = true, st_fail = true }
local reads = { "strtod", "strtof", "strtold", "atof" }

-- Return the name of the call of which the text at this position is an argument, or "".
local function caller(text, at)
  local depth = 0
  for i = at - 1, 1, -1 do
    local c = text:sub(i, i)
    if c == ")" then depth = depth + 1 end
    if c == "(" and depth > 0 then
      depth = depth - 1
    elseif c == "(" then
      local name = text:sub(1, i - 1):match "([%a_][%w_]*)%s*$"
      if name then return name end -- else it is a bracket of an expression
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
