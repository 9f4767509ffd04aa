-- SPDX-License-Identifier: MIT
--
-- The prompt of `moongrid shell`. Its lines of Lua can use the words of recipes; t, world and p of the last evaluation;
-- and the names of its families and grids. `last` is { topology, world, params } of this evaluation.

local core, shared, last = ...
local words, scope, printed = core.words(), {}, nil

-- Values -----------------------------------------------------------------------

local SHOWN, WIDE, DEEP = 16, 16, 4 -- limits: groups of a family, elements of a list, depth of tables

local value_text

local function list_text(list, depth)
  local items = {}
  for i = 1, math.min(#list, WIDE) do items[i] = value_text(list[i], depth) end
  if #list > WIDE then items[#items + 1] = ("... %d more"):format(#list - WIDE) end
  return "{ " .. table.concat(items, ", ") .. " }"
end

local function table_text(t, depth)
  if depth > DEEP then return "{ ... }" end
  if shared.is_list(t, function() return true end) then return #t == 0 and "{}" or list_text(t, depth) end
  local items = {}
  for key, value in shared.sorted_pairs(t) do
    local plain = type(key) == "string" and string.find(key, "^[%a_][%w_]*$")
    local name = plain and key or "[" .. value_text(key, depth) .. "]"
    items[#items + 1] = name .. " = " .. value_text(value, depth)
  end
  return "{ " .. table.concat(items, ", ") .. " }"
end

-- Return the parameters that have a value, as text.
local function params_text()
  local items = {}
  for name, value in pairs(last.params) do
    if value ~= nil then items[#items + 1] = name .. " = " .. value_text(value, 0) end
  end
  return "{ " .. table.concat(items, ", ") .. " }"
end

function value_text(value, depth)
  if type(value) == "string" then return '"' .. value .. '"' end
  if value == last.params then return params_text() end
  if type(value) == "table" and getmetatable(value) == nil then return table_text(value, depth + 1) end
  if type(value) == "number" or type(value) == "boolean" or value == nil then return tostring(value) end
  return type(value) == "userdata" and tostring(value) or core.kind(value)
end

-- Return a value as text: a family with its groups, a topology with its families, other values in one line.
local function shown(value)
  local kind = core.kind(value)
  if type(value) == "string" then return value end
  if kind == "a Family" then
    local lines = { tostring(value) }
    for group = 0, math.min(value.count, SHOWN) - 1 do
      lines[#lines + 1] = ("%4d  %s"):format(group, list_text(value:ranks(group), 0))
    end
    if value.count > SHOWN then lines[#lines + 1] = ("      ... %d more"):format(value.count - SHOWN) end
    return table.concat(lines, "\n")
  end
  if kind == "a Topology" then
    local lines = { tostring(value) }
    for name, family in pairs(value) do lines[#lines + 1] = ("  %-24s %s"):format(name, tostring(family)) end
    return table.concat(lines, "\n")
  end
  return value_text(value, 0)
end

-- Names ------------------------------------------------------------------------

local own = {
  t = function() return last.topology end,
  world = function() return last.world end,
  p = function() return last.params end,
}

local function value_of(name)
  if scope[name] ~= nil then return scope[name] end
  if own[name] then return own[name]() end
  if words[name] ~= nil then return words[name] end -- a word hides a family of the same name, which t.NAME still finds
  if type(name) == "string" and last.topology:has(name) then return last.topology[name] end
end

local function names()
  local all = {}
  for _, part in ipairs { scope, own, words } do
    for name in pairs(part) do all[name] = true end
  end
  for _, name in ipairs(core.members(last.topology)) do
    if last.topology:has(name) then all[name] = true end
  end
  return core.keys(all)
end

local env = setmetatable({}, {
  __index = function(_, name)
    local value = value_of(name)
    if value ~= nil then return value end
    local hint = type(name) == "string" and core.hint("global", name)
    local near = not hint and type(name) == "string" and core.nearest(name, names())
    hint = hint or near and "nearest is '" .. near .. "'"
    core.raise(("unknown name '%s'%s"):format(shared.word(name), hint and "; " .. hint or ""))
  end,
  __newindex = function(_, name, value) scope[name] = value end,
  __metatable = false,
})

function scope.print(...)
  local items = table.pack(...)
  for i = 1, items.n do items[i] = type(items[i]) == "string" and items[i] or value_text(items[i], 0) end
  printed[#printed + 1] = table.concat(items, "  ")
end

-- Lines --------------------------------------------------------------------------

local function is_unfinished(why) return why:sub(-5) == "<eof>" end

-- Run lines of Lua. Return as text what they print and the values that they return, or nil if the lines are incomplete.
local function run(text)
  local chunk = load("return " .. text, "=line", "t", env)
  local why
  if not chunk then chunk, why = load(text, "=line", "t", env) end
  if not chunk and is_unfinished(why) then return nil end
  if not chunk then error((core.hint("syntax", why, text)), 0) end
  printed = {}
  local values = table.pack(chunk())
  for i = 1, values.n do
    if values[i] ~= nil or values.n > 1 then printed[#printed + 1] = shown(values[i]) end
  end
  return table.concat(printed, "\n")
end

-- Completion -----------------------------------------------------------------------

-- Return the value of a path such as t.tp, or nil if there is none.
local function reach(path)
  local value
  for name in string.gmatch(path, "[%w_]+") do
    local ok, inside = pcall(function() return value == nil and value_of(name) or value[name] end)
    if not ok or inside == nil then return nil end
    value = inside
  end
  return value
end

local function members(value)
  if type(value) == "userdata" then return core.members(value) end
  return type(value) == "table" and core.keys(value) or {}
end

-- Return a list of the words that can complete the last word of a line, with the path before it: "t.tp" for "t.t".
local function complete(line)
  local path, typed = string.match(line, "([%w_%.:]*)[%.:]([%w_]*)$")
  local head = path and string.match(line, "([%w_%.:]*[%.:])[%w_]*$") or ""
  typed = typed or string.match(line, "[%w_]*$")
  local all, found
  if path then
    local value = reach(path)
    all = value ~= nil and members(value) or {}
  else
    all = names()
  end
  found = {}
  for _, name in ipairs(all) do
    if type(name) == "string" and name:sub(1, #typed) == typed and string.find(name, "^[%a_][%w_]*$") then
      found[#found + 1] = head .. name
    end
  end
  return found
end

return run, complete
