-- SPDX-License-Identifier: MIT
--
-- The parameters of a recipe: their kinds, how they are declared, and what values they get.

local core, shared = ...
local sorted_pairs, is_list, show, word = shared.sorted_pairs, shared.is_list, shared.show, shared.word

local function integer_of(text)
  return type(text) == "string" and string.find(text, "^[+-]?%d+$") and math.tointeger(tonumber(text)) or nil
end

-- Each kind: what it is called in messages, how a command line's text becomes a value
-- (nil: it does not), whether a value is one, how it is written canonically.
local kinds = {
  size = {
    what = "a size (an integer of 1 or more)",
    parse = integer_of,
    check = function(v) return math.type(v) == "integer" and v >= 1 end,
    nearest = function(v) return math.type(v) == "integer" and 1 or nil end,
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
    parse = function(text) return ({ ["true"] = true, ["1"] = true, ["false"] = false, ["0"] = false })[text] end,
    check = function(v) return type(v) == "boolean" end,
  },
  text = { what = "text", parse = function(text) return text end, check = function(v) return type(v) == "string" end },
  list = {
    what = "a list of integers (0,-1)",
    parse = function(text)
      if string.find(text, "^%[") then return core.decode(text) end
      local list = {}
      for item in string.gmatch(text .. ",", "([^,]*),") do
        if text == "" then break end
        list[#list + 1] = integer_of(item)
        if integer_of(item) == nil then return nil end
      end
      return list
    end,
    check = is_list,
    text = core.encode,
  },
}

kinds.table = {
  what = "a table by name (JSON on a command line)",
  parse = function(text) return core.decode(text) end,
  check = function(v)
    if type(v) ~= "table" then return false end
    for key in pairs(v) do
      if type(key) ~= "string" then return false end
    end
    return true
  end,
  text = function(v) return next(v) == nil and "{}" or core.encode(v) end,
}
kinds.any = { -- build looks at it itself
  what = "a plain value",
  parse = function(text)
    local value = core.decode(text)
    if value == nil then return text end
    return value
  end,
  check = function(v) return v ~= nil end,
  text = function(v) return type(v) == "string" and v or core.encode(v) end,
}

local serial = 0 -- fields of a table constructor are evaluated in order: so are parameters

local function declare(kind, default, doc, ...)
  serial = serial + 1
  return {
    is_param = declare, serial = serial, kind = kind, default = default, doc = doc or "", aliases = { ... },
    where = core.where(),
  }
end

-- param.size(default, doc, aliases...): a default of nil makes the parameter optional.
local declaring = {}
for kind in pairs(kinds) do
  declaring[kind] = function(default, doc, ...)
    if default ~= nil and not kinds[kind].check(default) then
      core.raise(string.format("the default of a %s parameter is %s", kind, kinds[kind].what))
    end
    return declare(kind, default, doc, ...)
  end
end
local function kind_of(value)
  if type(value) == "boolean" then return "flag" end
  if type(value) == "string" then return "text" end
  if is_list(value) then return "list" end
  return math.type(value) == "integer" and "integer" or type(value) == "number" and "number" or nil
end

-- {name = default or param} -> list of parameters: declared ones in the order of their
-- declaration, then plain defaults by name.
local function params_of(table_, where)
  local list, declared = {}, {} -- declared: serial -> what was made of that param
  for name, value in sorted_pairs(table_) do
    if type(name) ~= "string" then core.raise_at(where, "params are by name; a key is a " .. type(name)) end
    local p = value
    if not (type(value) == "table" and value.is_param == declare) then
      local kind = kind_of(value)
      if not kind then
        core.raise_at(where, string.format("the default of parameter '%s' is a %s; a number, a string, a boolean, a "
          .. "list of integers or param.KIND(...) would do", name, type(value)))
      end
      p = { kind = kind, default = value, doc = "", aliases = {}, where = where }
    end
    local made = { name = name, kind = p.kind, default = p.default, doc = p.doc, aliases = p.aliases, where = p.where }
    if p.serial then
      declared[p.serial] = declared[p.serial] or {}
      table.insert(declared[p.serial], made)
    else
      list[#list + 1] = made
    end
  end
  local all = {}
  for _, n in ipairs(core.keys(declared)) do table.move(declared[n], 1, #declared[n], #all + 1, all) end
  return table.move(list, 1, #list, #all + 1, all)
end

-- The base's parameters, then one's own; an own one of the same name takes its place.
local function merge_params(base, own)
  local list, at = {}, {}
  for _, from in ipairs({ base, own }) do
    for _, p in ipairs(from) do
      at[p.name] = at[p.name] or #list + 1
      list[at[p.name]] = p
    end
  end
  return list
end

local function by_any_name(params)
  local index, known = {}, {}
  for _, p in ipairs(params) do
    known[#known + 1] = p.name
    for i = 0, #p.aliases do
      local name = i == 0 and p.name or p.aliases[i]
      if index[name] then
        core.raise_at(p.where, string.format("parameters '%s' and '%s' both answer to '%s'",
          index[name].name, p.name, name))
      end
      index[name] = p
      if i > 0 then known[#known + 1] = name end
    end
  end
  return index, known
end

local function value_of(p, given)
  local kind, value = kinds[p.kind], given
  if type(given) == "string" and p.kind ~= "text" then value = kind.parse(given) end
  if value == nil or not kind.check(value) then
    local near = kind.nearest and kind.nearest(value)
    core.raise_at(p.where, string.format("parameter '%s' is %s, not %s%s", p.name, kind.what, show(given),
      near and "; nearest is " .. near or ""))
  end
  return value
end

-- A recipe may change the tables it gets; they are its own.
local function copy(value)
  if type(value) ~= "table" then return value end
  local own = {}
  for key, item in pairs(value) do own[key] = copy(item) end
  return own
end

local evaluated = setmetatable({}, { __mode = "k" }) -- the `p` of a running build -> its values

-- What build gets as `p`: read only, by name; an unknown name is an error.
local function frozen(values, params)
  local known, names = {}, {}
  for i, p in ipairs(params) do known[p.name], names[i] = true, p.name end
  local p = setmetatable({}, {
    __index = function(_, name)
      if not known[name] then core.unknown("parameter", word(name), names) end
      return values[name]
    end,
    __newindex = function(_, name) core.raise("parameter '" .. word(name) .. "' cannot be changed") end,
    __pairs = function()
      local i = 0
      return function()
        i = i + 1
        if names[i] then return names[i], values[names[i]] end
      end
    end,
  })
  evaluated[p] = values
  return p
end

-- given: name -> value or text. A `p` of another recipe may have more names than we know.
local function resolve(self, given)
  local lenient = evaluated[given]
  given = lenient or given
  local index, known = by_any_name(self.params)
  local values, from = {}, {}
  for name in sorted_pairs(given) do
    local p = index[name]
    if not p and not lenient then
      if type(name) ~= "string" then core.raise("parameters are given by name") end
      core.unknown("parameter", name, known, self.where)
    end
    if p then
      if from[p.name] then
        core.raise_at(p.where, string.format("parameter '%s' is given twice, as '%s' and as '%s'",
          p.name, from[p.name], name))
      end
      from[p.name], values[p.name] = name, value_of(p, given[name])
    end
  end
  for _, p in ipairs(self.params) do
    if values[p.name] == nil then values[p.name] = copy(p.default) end
  end
  return frozen(values, self.params)
end

local function text_of(p, value)
  local text = kinds[p.kind].text or tostring
  return text(value)
end

return {
  param = shared.vocabulary("kind of parameter", function() return declaring end),
  list_of = params_of, merge = merge_params, check_names = by_any_name, resolve = resolve, copy = copy,
  text_of = text_of,
  values_of = function(p) return evaluated[p] end,
}
