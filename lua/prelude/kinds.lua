-- SPDX-License-Identifier: MIT
--
-- The kinds of values that parameters, and the settings and arguments of bundled policies, may have. A kind is a table
-- with `what`, its words in messages ("is an integer, not 'x'"), and check(value, p), which tells whether it has a
-- value. A kind of parameters, whose functions get the parameter's declaration as p, has parse(text, of_host, p), which
-- reads a value from text, or returns nil and perhaps a reason. It may have whats(p), which replaces `what`; `written`,
-- which replaces `what` for a value that was given as text; text(value, p), which writes a value in canonical form
-- (default: tostring); and nearest(value, p), which returns the nearest accepted value, or nil.

local core, shared = ...
local is_list = shared.is_list

-- Return the kind of integers from `least` to `most`.
local function whole(least, most, what)
  return { what = what, check = function(v) return math.type(v) == "integer" and v >= least and v <= most end }
end

local function one_of(...)
  local known = { ... }
  return { what = "'" .. table.concat(known, "', '") .. "'", check = function(v)
    for _, name in ipairs(known) do
      if name == v then return true end
    end
    return false
  end }
end

local function is_text(v) return type(v) == "string" end

local function integer_of(text)
  return type(text) == "string" and string.find(text, "^[+-]?%d+$") and math.tointeger(tonumber(text)) or nil
end

local function integers_of(text)
  if string.find(text, "^%[") then return core.decode(text) end
  local list = {}
  for item in string.gmatch(text .. ",", "([^,]*),") do
    if text == "" then break end
    list[#list + 1] = integer_of(item)
    if integer_of(item) == nil then return nil end
  end
  return list
end

local function is_table(v)
  if type(v) ~= "table" then return false end
  for key in pairs(v) do
    if type(key) ~= "string" then return false end
  end
  return true
end

local function text_of_table(v, p) return next(v) == nil and "{}" or core.encode(v, p) end

-- Return whether v is a text of different names with '-' between them, as tp-dp-pp.
local function is_order(v)
  if type(v) ~= "string" or not string.find(v, "^[%a_][%w_-]*$") then return false end
  local seen = {}
  for name in string.gmatch(v .. "-", "([^-]*)-") do
    if not string.find(name, "^[%a_][%w_]*$") or seen[name] then return false end
    seen[name] = true
  end
  return true
end

-- Return the names in a text, which is written as tp-dp, as tp,dp or as a JSON list.
local function names_of(text)
  if string.find(text, "^%[") then return core.decode(text) end
  local list = {}
  for name in string.gmatch(text, "[^,-]+") do list[#list + 1] = name end
  return list
end

-- Return whether v is a list of names, each once.
local function are_names(v)
  if not is_list(v, is_text) then return false end
  local seen = {}
  for _, name in ipairs(v) do
    if not string.find(name, "^[%a_][%w_]*$") or seen[name] then return false end
    seen[name] = true
  end
  return true
end

-- Return whether a list can be the choices of a parameter: only integers, or only texts that are not empty and have no
-- comma; each once.
local function are_choices(list)
  if type(list) ~= "table" or #list == 0 then return false end
  local seen, n = {}, 0
  for key in pairs(list) do
    if math.type(key) ~= "integer" then return false end
    n = n + 1
  end
  for i = 1, n do
    local v = list[i]
    local sound = math.type(v) == "integer" or type(v) == "string" and v ~= "" and not string.find(v, ",", 1, true)
    if not sound or seen[v] or type(v) ~= type(list[1]) then return false end
    seen[v] = true
  end
  return true
end

local function text_of_choices(list)
  local texts = {}
  for i, v in ipairs(list) do texts[i] = type(v) == "string" and "'" .. v .. "'" or tostring(v) end
  return table.concat(texts, ", ")
end

-- KIND of param.KIND -> kind.
local declared = {
  size = {
    what = "a size (an integer of 1 or more)",
    parse = integer_of,
    check = function(v) return math.type(v) == "integer" and v >= 1 end,
    nearest = function(v) return math.type(v) == "integer" and 1 or nil end,
  },
  index = {
    what = "an index (an integer of 0 or more)",
    parse = integer_of,
    check = function(v) return math.type(v) == "integer" and v >= 0 end,
    nearest = function(v) return math.type(v) == "integer" and 0 or nil end,
  },
  integer = { what = "an integer", parse = integer_of, check = function(v) return math.type(v) == "integer" end },
  number = {
    what = "a number",
    parse = function(text) return tonumber(text) end,
    check = function(v) return type(v) == "number" and v == v end,
    text = function(v) return string.format(math.type(v) == "integer" and "%d" or "%.17g", v) end,
  },
  flag = {
    what = "true or false",
    written = "true or false (also 1 or 0)", -- for a value given as text
    parse = function(text) return ({ ["true"] = true, ["1"] = true, ["false"] = false, ["0"] = false })[text] end,
    check = function(v) return type(v) == "boolean" end,
  },
  text = { what = "text", parse = function(text) return text end, check = is_text },
  order = { -- `place --search order` tries the parameter's `choices`, but other orders are allowed, too
    what = "an order of names with '-' between, each once, as tp-dp-pp",
    parse = function(text) return text end,
    check = is_order,
  },
  choice = {
    what = "one of its choices",
    whats = function(p) return "one of " .. text_of_choices(p.choices) end,
    parse = function(text, _, p)
      for _, v in ipairs(p.choices) do
        if tostring(v) == text then return v end
      end
      return integer_of(text) or text
    end,
    check = function(v, p)
      for _, one in ipairs(p.choices) do
        if math.type(one) == math.type(v) and one == v then return true end
      end
      return false
    end,
    nearest = function(v, p)
      local near = nil
      for _, one in ipairs(p.choices) do
        if math.type(v) ~= "integer" or math.type(one) ~= "integer" then return nil end
        if not near or math.ult(math.abs(one - v), math.abs(near - v)) then near = one end
      end
      return near
    end,
  },
  list = { what = "a list of integers (0,-1)", parse = integers_of, check = function(v) return is_list(v) end,
           text = core.encode },
  names = {
    what = "a list of names, each once (tp-dp)",
    parse = names_of,
    check = are_names,
    text = function(v) return table.concat(v, "-") end,
  },
  table = {
    what = "a table with names as keys (JSON on a command line)",
    parse = function(text) return core.decode(text) end,
    check = is_table,
    text = text_of_table,
  },
  file = { -- the plan gets the file's contents; only the host, not a recipe, can name a file
    what = "a table with names as keys, or the path of a JSON or YAML file with such a table",
    parse = function(text, of_host)
      if string.find(text, "^%s*{") or not of_host then return core.decode(text) end
      return core.read(text)
    end,
    check = is_table,
    text = text_of_table,
  },
  any = { -- the recipe checks the value
    what = "a plain value",
    parse = function(text)
      local value, why = core.decode(text)
      if value == nil and not why then return text end
      return value, why
    end,
    check = function(v) return v ~= nil end,
    text = function(v, p) return type(v) == "string" and v or core.encode(v, p) end,
  },
}

return { declared = declared, is_order = is_order, are_choices = are_choices,
         whole = whole, one_of = one_of, is_text = is_text }
