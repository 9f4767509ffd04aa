-- SPDX-License-Identifier: MIT
--
-- The recipe vocabulary that is written in Lua: `recipe`, `param` and `policies`, and how a recipe
-- is evaluated. Runs with Lua's whole library and hands only those three to recipes.
--
-- `core` comes from C: raise(message) at the recipe's position, raise_at(where, message),
-- unknown(what, name, known [, where]); where(), where_of(function) and place() (of the word
-- `recipe`) are texts "file:line: "; load(name, from) -> path, chunk, key, hash of the text; library(...) runs
-- policies.lua; is_topology(value);
-- note(topology, name, text) records a parameter, params(state) gives those back,
-- note_policies(topology, hash) has ranks compare the texts of the recipe and its base; keys(table)
-- lists them: names by their bytes, then numbers, then the rest;
-- encode(value) and decode(text) speak JSON.

local core = ...
local M = {}

-- Every rank must find the same first error: tables are walked by name.
local function sorted_pairs(t)
  local keys, i = core.keys(t), 0
  return function()
    i = i + 1
    return keys[i], t[keys[i]]
  end
end

-- Parameters ----------------------------------------------------------------

local function integer_of(text)
  return type(text) == "string" and string.find(text, "^[+-]?%d+$") and math.tointeger(tonumber(text)) or nil
end

local function is_list(value)
  if type(value) ~= "table" then return false end
  local n = 0
  for _, item in pairs(value) do
    n = n + 1
    if math.type(item) ~= "integer" then return false end
  end
  return n == #value
end

-- A value in a message: never an address, which differs between ranks.
local function show(value)
  if type(value) == "string" then return "'" .. value .. "'" end
  if is_list(value) then return "{" .. table.concat(value, ",") .. "}" end
  if type(value) == "number" or type(value) == "boolean" or value == nil then return tostring(value) end
  return "a " .. type(value)
end

-- A key in a message: names without quotes of their own.
local function word(key) return type(key) == "string" and key or show(key) end

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

-- What a recipe sees of the table that all() returns: names that are not there are errors, and
-- nothing is assigned to it.
local function vocabulary(what, all)
  return setmetatable({}, {
    __index = function(_, name) return all()[name] or core.unknown(what, word(name), core.keys(all())) end,
    __newindex = function(_, name) core.raise(string.format("%s '%s' cannot be changed", what, word(name))) end,
    __metatable = false,
  })
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
M.param = vocabulary("kind of parameter", function() return declaring end)

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

-- Policies ------------------------------------------------------------------

-- policies.NAME { settings }: bundled ones. Their file is loaded when a recipe first reads the word.
local makers, made, uncalled = nil, {}, function() end
M.policies = vocabulary("bundled policy", function()
  if not makers then makers, made, uncalled = core.library(core, show) end
  return makers
end)

-- Recipes -------------------------------------------------------------------

local fields = { "doc", "base", "params", "build", "queries", "arguments", "policy", "agreed" }
local types = { doc = "string", params = "table", build = "function", queries = "table", arguments = "table",
                policy = "table", agreed = "table" }

local Recipe = {} -- metatable of what `recipe` returns; a recipe reads its fields, no more
Recipe.__index = function(self, key)
  local body = rawget(self, Recipe)
  if key == "build" then return body.build end
  if key == "params" then
    local defaults = {}
    for _, p in ipairs(body.params) do defaults[p.name] = copy(p.default) end
    return defaults
  end
  if key == "doc" then return body.doc end
  return core.unknown("field of a recipe", word(key), { "build", "params", "doc" })
end
Recipe.__newindex = function() core.raise("a recipe cannot be changed; make one with base = it") end
Recipe.__metatable = false

local function body_of(value) return type(value) == "table" and rawget(value, Recipe) or nil end

-- Run a build function and see that a topology comes back.
local function run_build(build, world, p, base_topology)
  local t = build(world, p, base_topology)
  if not core.is_topology(t) then
    core.raise_at(core.where_of(build), string.format("build returned %s; end it with 'return t', a topology",
      t == nil and "nothing" or "a " .. type(t)))
  end
  return t
end

local running = {} -- { path, text } of the recipe files that are being run, the innermost last

local function define(def, where)
  for key in sorted_pairs(def) do
    local known = false
    for _, name in ipairs(fields) do known = known or name == key end
    if not known then core.unknown("field of a recipe", word(key), fields, where) end
  end
  for _, key in ipairs(fields) do
    local kind = types[key]
    if kind and def[key] ~= nil and type(def[key]) ~= kind then
      core.raise_at(where, string.format("field '%s' of a recipe is a %s, not a %s", key, kind, type(def[key])))
    end
  end
  local base = def.base
  if type(base) == "string" then base = M.recipe(base) end
  if base ~= nil and not body_of(base) then core.raise_at(where, "field 'base' is a recipe or the name of one") end
  base = body_of(base)
  if not def.build and not base then
    core.raise_at(where, "a recipe needs 'build', a function (world, p) that returns a topology")
  end

  local body = { where = where, doc = def.doc or base and base.doc or "", queries = {} }
  local file = running[#running] -- none where build makes a recipe
  body.text = (base and base.text or 0) * 31 + (file and file.text or 0)
  body.params = merge_params(base and base.params or {}, params_of(def.params or {}, where))
  by_any_name(body.params) -- refuses clashes where they are written
  for _, from in ipairs({ base and base.queries or {}, def.queries or {} }) do
    for name, fn in sorted_pairs(from) do
      if type(fn) ~= "function" then core.raise_at(where, "query '" .. word(name) .. "' is no function") end
      body.queries[name] = fn
    end
  end
  -- functions by name; by name: the family that compares results, or "world", and who says so
  body.policy, body.agreed, body.agreed_at = {}, {}, {}
  for _, from in ipairs({ base or {}, { policy = def.policy, agreed = def.agreed } }) do
    for name, fn in sorted_pairs(from.policy or {}) do
      if type(name) ~= "string" or type(fn) ~= "function" then
        core.raise_at(where, "policy '" .. word(name) .. "' is no function by name")
      end
      local what = uncalled(fn)
      if what then
        core.raise_at(where, string.format("policy '%s' is %s, not what that makes: write %s()", name, what, what))
      end
      body.policy[name] = fn
    end
    for name, family in sorted_pairs(from.agreed or {}) do
      if not body.policy[name] then core.unknown("policy", word(name), core.keys(body.policy), where .. "agreed: ") end
      if type(family) ~= "string" and family ~= false then
        core.raise_at(where, string.format("policy '%s' is agreed by a family, by \"world\", or false, not by %s", name,
          show(family)))
      end
      body.agreed[name], body.agreed_at[name] = family or nil, from.agreed_at and from.agreed_at[name] or where
    end
  end
  body.arguments = {} -- names that some query understands; a list with "..." stands for any
  for _, from in ipairs({ base and base.arguments or {}, def.arguments or {} }) do
    for _, name in ipairs(from) do
      if type(name) ~= "string" then core.raise_at(where, "arguments of queries are names, not " .. show(name)) end
      body.arguments[#body.arguments + 1] = name
    end
  end
  body.build = function(world, given)
    local p = resolve(body, given or {})
    local t = base and base.build(world, p)
    if not def.build then return t end
    return run_build(def.build, world, p, t)
  end
  return setmetatable({ [Recipe] = body }, Recipe)
end

local loaded, loading = {}, {}

-- recipe{...} defines one; recipe "name" is another one: bundled, or a file beside this one.
function M.recipe(what)
  local where = core.place() or ""
  if type(what) == "table" then return define(what, where) end
  if type(what) ~= "string" then core.raise_at(where, "recipe takes a table or a name, not " .. show(what)) end
  local from = running[#running]
  local path, chunk, key, text = core.load(what, from and from.path)
  if loaded[key] then return loaded[key] end
  if loading[key] then core.raise_at(where, "recipe '" .. what .. "' is based on itself") end
  loading[key], running[#running + 1] = true, { path = path, text = text }
  local ok, value = pcall(chunk) -- a recipe may catch the error and ask again
  loading[key], running[#running] = nil, nil
  if not ok then error(value, 0) end
  if not body_of(value) then
    core.raise_at("", string.format("%s returned %s; end it with 'return recipe { ... }'", path,
      value == nil and "nothing" or "a " .. type(value)))
  end
  loaded[key] = value
  return value
end

-- For C -----------------------------------------------------------------------

-- A load that hit a limit was left in the middle.
function M.load(name)
  loading, running = {}, {}
  return M.recipe(name)
end

local function text_of(p, value)
  local text = kinds[p.kind].text or tostring
  return text(value)
end

-- The families that policies name are in the topology, and those that agree have no rank twice.
local function check_policies(body, t)
  local families, known = {}, {}
  for name, family in pairs(t) do families[name], known[#known + 1] = family, name end
  for name, by in sorted_pairs(body.agreed) do
    local where = string.format("%spolicy '%s' is agreed: ", body.agreed_at[name], name)
    if by ~= "world" and not families[by] then core.unknown("family", by, known, where) end
    if by ~= "world" and families[by].coverage == "cover" then
      core.raise_at(where, string.format("the groups of '%s' share ranks; a family whose groups do not would do, or "
        .. "\"world\"", by))
    end
  end
  for _, fn in sorted_pairs(body.policy) do
    if made[fn] then made[fn].look(t) end
  end
end

-- Build the topology of a recipe and record its parameters there.
function M.evaluate(self, world, given)
  local body = body_of(self)
  local p = resolve(body, given)
  local t = body.build(world, p)
  if next(body.policy) then
    check_policies(body, t)
    core.note_policies(t, body.text | 1)
  end
  for _, param in ipairs(body.params) do
    local value = evaluated[p][param.name]
    if value ~= nil then core.note(t, param.name, text_of(param, value)) end
  end
  return t
end

-- A query is a function (state, q, p): q has the arguments, p what the plan was made with.
function M.ask(self, state, name, q)
  local body = body_of(self)
  local fn = body.queries[name]
  if not fn then
    local known = {}
    for query in pairs(body.queries) do known[#known + 1] = query end
    table.sort(known)
    return core.unknown("query", name, known)
  end
  for argument in sorted_pairs(q) do
    local known = false
    for _, understood in ipairs(body.arguments) do known = known or understood == argument or understood == "..." end
    if not known then core.unknown("argument of a query", word(argument), body.arguments, body.where) end
  end
  return fn(state, q, resolve(body, core.params(state)))
end

-- A policy is a function (state, q, p) as a query is, but called by a trainer, often, by name. What C
-- keeps of it: the function, p, who compares its results, where it is defined (a bundled one: where
-- the recipe made it).
function M.policy(self, state, name)
  local body = body_of(self)
  local fn = body.policy[name]
  if not fn then return core.unknown("policy", name, core.keys(body.policy), body.where) end
  local bundled = made[fn]
  return fn, resolve(body, core.params(state)), body.agreed[name], bundled and bundled.where or core.where_of(fn)
end

-- { doc, params = { {name, kind, default, doc, aliases} }, queries = { names }, arguments = { names },
--   policies = { { name, agreed = family or "world" } } }
function M.info(self)
  local body = body_of(self)
  local info = { doc = body.doc, params = {}, queries = {}, arguments = body.arguments, policies = {} }
  for i, p in ipairs(body.params) do
    info.params[i] = { name = p.name, kind = p.kind, doc = p.doc, aliases = p.aliases,
                       default = p.default ~= nil and text_of(p, p.default) or nil }
  end
  for name in pairs(body.queries) do info.queries[#info.queries + 1] = name end
  table.sort(info.queries)
  for i, name in ipairs(core.keys(body.policy)) do info.policies[i] = { name = name, agreed = body.agreed[name] } end
  return info
end

return M
