-- SPDX-License-Identifier: MIT
--
-- bindings.lua FILE...: lint of the Lua bindings. Prints a line for each fault, and fails if there is one.
--
-- A pointer to an object that a program can close (a State, Group, Job or Buffer) must not be used after a call that
-- may run Lua: a finalizer or a metamethod may have closed the object. Get the pointer again, or hold a reference
-- (mgrid_state_ref).
--
-- A reference, JSON or a text that C must free must not be held during a call of Lua that may raise an error, even if
-- only for lack of memory: it would leak. Make the userdata first, in its own statement, or call by lua_pcall.

local ASKS = { "mgrid_lua_check_state", "mgrid_lua_check_host_state", "mgrid_lua_check_group",
  "mgrid_lua_check_group_of_host", "mgrid_lua_check_job", "mgrid_lua_to", "mgrid_lua_to_group", "check_use" }

-- Calls that run no Lua code: they allocate nothing (or without collecting garbage) and read no table of the program,
-- or they do not return.
local QUIET = {}
for name in ([[
  lua_pushinteger lua_pushboolean lua_pushnumber lua_pushnil lua_pushvalue lua_pushlightuserdata lua_pushcfunction
  lua_settop lua_gettop lua_pop lua_insert lua_remove lua_replace lua_absindex lua_checkstack lua_type lua_isnil
  lua_isnone lua_isnoneornil lua_istable lua_isinteger lua_isfunction lua_isuserdata lua_isstring lua_toboolean
  lua_tointeger lua_tointegerx lua_tonumber lua_touserdata lua_rawlen lua_rawget lua_rawgeti lua_rawgetp
  lua_rawset lua_rawseti lua_rawsetp lua_getiuservalue lua_setiuservalue lua_getmetatable lua_upvalueindex
  lua_error luaL_typename luaL_checktype luaL_checkany luaL_checkudata luaL_testudata luaL_typeerror luaL_Reg
  lua_State lua_Integer lua_CFunction mgrid_lua_raise mgrid_lua_raise_as mgrid_lua_raise_error mgrid_lua_oom
  mgrid_lua_failure mgrid_lua_unknown mgrid_lua_kind mgrid_lua_check_integer mgrid_lua_opt_integer
  mgrid_lua_check_plan mgrid_lua_check_own mgrid_lua_test_own mgrid_lua_check_box mgrid_lua_test_box
  mgrid_lua_in_box mgrid_lua_push_recipe mgrid_lua_state_class mgrid_lua_group_key mgrid_lua_state_key
  ]]):gmatch "%S+" do
  QUIET[name] = true
end
for _, name in ipairs(ASKS) do QUIET[name] = true end

local function runs(line)
  for name in line:gmatch "%f[%w_](lua[L]?_[%w_]+)%s*%(" do if not QUIET[name] then return name end end
  for name in line:gmatch "%f[%w_](mgrid_lua_[%w_]+)%s*%(" do if not QUIET[name] then return name end end
  return line:match "%f[%w_](MGRID_LUA_[%w_]+)%s*%("
end

local function asks(line)
  for _, name in ipairs(ASKS) do if line:find("%f[%w_]" .. name .. "%(") then return name end end
end

-- Return the statements of a function with their lines. The body of a loop is in the list twice, because its second
-- iteration follows the first.
local function unrolled(lines, first, last)
  local out, i = {}, first
  while i <= last do
    local indent, loop = lines[i]:match "^(%s*)(%w*)"
    out[#out + 1] = i
    if loop == "for" or loop == "while" then
      local to = i
      while to < last and #lines[to + 1]:match "^%s*" > #indent do to = to + 1 end
      for _ = 1, 2 do table.move(unrolled(lines, i + 1, to), 1, to * 2, #out + 1, out) end
      i = to
    end
    i = i + 1
  end
  return out
end

local faults = {}

-- Calls whose result must be freed, and calls that free their argument or take it over.
local MAKES = { "^mgrid_[%w_]+_ref$", "^mgrid_[%w_]+_alloc$", "^mgrid_[%w_]+_new$", "^mgrid_realloc$",
  "^mgrid_allocate$",
  "^mgrid_zeroed$", "^mgrid_strdup$", "^mgrid_lua_check_integers$", "^mgrid_lua_check_sizes$", "^mgrid_json_of$",
  "^mgrid_json_shown$", "^mgrid_json_parse$", "^mgrid_json_pack$", "^json_object$", "^json_array$" }
local FREES = { "free", "release", "decref", "finish", "push_text", "set_text", "take" }
local CATCHES = { lua_pcall = true, lua_load = true, lua_close = true, mgrid_lua_is_fill = true }

local function makes(call)
  for _, pattern in ipairs(MAKES) do if call:find(pattern) and not call:find "_lua_new" then return true end end
end

local function frees(line, name)
  for _, word in ipairs(FREES) do
    if line:find(word .. "[%w_]*%([^;]*%f[%w_]" .. name .. "%f[^%w_]") then return true end
  end
  return line:find("[=n] " .. name .. "[;,]") -- it has another owner, or is returned
end

local function check_owned(path, lines, first, last)
  local held, texts, without = {}, {}, nil -- without: a block that runs only if nothing was made
  for at = first, last do
    local line = lines[at]:gsub("/%*.-%*/", ""):gsub('"[^"]*"', '""')
    if without and line:find("^" .. without .. "}") then without = nil end
    local by = runs(line)
    for name in pairs(held) do
      if frees(line, name) then
        held[name] = nil
      elseif by and not CATCHES[by] and not without and not line:find("!" .. name .. "%f[^%w_]") then
        faults[("%s:%d: '%s' is to be freed, and %s may raise"):format(path, at, name, by)] = true
      elseif line:find("if %(!" .. name .. "%f[^%w_].*{$") then
        without = line:match "^%s*"
      end
    end
    local whole = line:find "=$" and line .. " " .. lines[at + 1]:gsub("^ +", "") or line
    if whole:find "new_[%w_]+%(L.*%)[%w>-]* = [%w_]+_ref%(" then
      faults[("%s:%d: no order is promised for the sides of =; make the userdata before"):format(path, at)] = true
    end
    for from, before, name, call in line:gmatch "()([^=;]-)([%w_]+) = ([%w_]+)%(" do
      local owned = line:sub(from - 1, from - 1) ~= "=" and (before:find "[%w_]%s+%*+$" or before:find "[^%w_][ (]+$")
      if owned and makes(call) and not frees(line, name) then held[name] = true end
    end
    for name in line:gmatch "%f[%w_]([%w_]+) = { 0 }" do texts[name] = line:find "mgrid_text" and true or nil end
    for name in pairs(texts) do
      if line:find("&" .. name .. "%f[^%w_]") and not frees(line, name) then held[name] = true end
    end
  end
end

local function check(path, lines, first, last)
  local held, stale = {}, {}
  for _, at in ipairs(unrolled(lines, first, last)) do
    local line = lines[at]:gsub("/%*.-%*/", ""):gsub('"[^"]*"', '""')
    for name, by in pairs(stale) do
      if line:find("%f[%w_]" .. name .. "%f[^%w_]") and not line:find("%f[%w_]" .. name .. " = ") then
        faults[("%s:%d: '%s' is used after %s, which may run Lua that closes it"):format(path, at, name, by)] = true
      end
    end
    if asks(line) and line:find "luaL_[co][hp][et]" then
      faults[("%s:%d: read the other arguments before %s"):format(path, at, asks(line))] = true
    end
    local by = runs(line)
    if by then for name in pairs(held) do stale[name] = by end end
    for name, call in line:gmatch "([%w_]+) = ([%w_]+)%(" do
      if asks(call .. "(") then held[name], stale[name] = true, nil else held[name], stale[name] = nil, nil end
    end
  end
end

for _, path in ipairs(arg) do
  local lines, first = {}, nil
  for line in io.lines(path) do lines[#lines + 1] = line end
  for i, line in ipairs(lines) do
    if line:find "^[%w_].*%)%s*{%s*$" then first = i end
    if line:find "^[%w_].*{.*}$" then check_owned(path, lines, i, i) end
    if line == "}" and first then
      check(path, lines, first, i)
      check_owned(path, lines, first, i)
      first = nil
    end
  end
end

local told = {}
for fault in pairs(faults) do told[#told + 1] = fault end
table.sort(told)
for _, fault in ipairs(told) do print(fault) end
os.exit(#told == 0)
