-- SPDX-License-Identifier: MIT
--
-- A recipe declares with `param.KIND(default, doc, aliases...)` the parameters of its plans, the settings that a host
-- switches while a job runs, and the arguments of its queries. This file reads the declarations and the values.

local core, shared, made = ...
local kinds = made.declared
local sorted_pairs, is_list, show, word = shared.sorted_pairs, shared.is_list, shared.show, shared.word

local serial = 0 -- counts declarations, to list parameters in the order in which they are declared

local is_param, none = {}, {} -- the mark of a declaration; the aliases of a declaration without aliases

local function declare(kind, default, doc, ...)
  if doc ~= nil and type(doc) ~= "string" then
    core.raise(string.format("param.%s takes a default, a doc and other names, which are text; its doc is a %s", kind,
      type(doc)))
  end
  serial = serial + 1
  return {
    is_param = is_param, serial = serial, kind = kind, default = default, doc = doc or "",
    aliases = ... and { ... } or none, where = core.where(),
  }
end

-- Return whether a declaration is still valid: a recipe may have changed the table that param.KIND returned.
local function is_sound(p)
  local kind, aliases = kinds[p.kind], p.aliases
  if not kind or math.type(p.serial) ~= "integer" then return false end
  if type(p.doc) ~= "string" or type(p.where) ~= "string" then return false end
  if p.choices ~= nil and not made.are_choices(p.choices) or p.kind == "choice" and not p.choices then return false end
  if p.default ~= nil and not kind.check(p.default, p) then return false end
  if aliases == none then return next(none) == nil end
  if type(aliases) ~= "table" then return false end
  for i = 1, #aliases do
    if type(aliases[i]) ~= "string" then return false end
  end
  return true
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

-- param.order(default or { candidates }, ...), param.choice({ choices }, ...): the first item of a list is the default.
for _, kind in ipairs({ "order", "choice" }) do
  local plain = declaring[kind]
  declaring[kind] = function(first, ...)
    if kind == "order" and type(first) ~= "table" then
      if first ~= nil and not made.is_order(first) then
        core.raise("the default of an order parameter is " .. kinds.order.what)
      end
      return plain(first, ...)
    end
    local own, sound = {}, made.are_choices(first)
    for i, v in ipairs(sound and first or {}) do
      own[i] = v
      sound = sound and (kind == "choice" or made.is_order(v))
    end
    if not sound then
      core.raise(kind == "choice" and "param.choice takes a list of integers, or of texts without commas, each once: "
        .. "param.choice({ 1, 2, 4 }, doc)"
        or "param.order takes an order of names, as \"tp-dp-pp\", or a list of them")
    end
    local p = declare(kind, own[1], ...)
    p.choices = own
    return p
  end
end

local function what_of(p)
  local kind = kinds[p.kind]
  return kind.whats and kind.whats(p) or kind.what
end

local function kind_of(value)
  if type(value) == "boolean" then return "flag" end
  if type(value) == "string" then return "text" end
  if is_list(value) then return "list" end
  return math.type(value) == "integer" and "integer" or type(value) == "number" and "number" or nil
end

-- The word for a declaration in messages -> the field of a recipe that has these declarations.
local field_of = { parameter = "params", setting = "settings", argument = "arguments" }

-- Turn {name = default or param.KIND(...)} into a list of declarations. Those of param.KIND come first, in the order of
-- their calls, then the plain defaults, sorted by name. A plain default under any name of a parameter of the base
-- changes only the default of this parameter. For `bundled` recipes, skip the check that declarations are valid.
local function list_of(what, table_, where, bundled, base)
  local list, declared = {}, {} -- declared: serial -> a parameter, or a list if several share a declaration
  local changed = {} -- full name of a parameter -> the name that the recipe uses for it
  for _, name in ipairs(core.keys(table_)) do -- most of the time to load a recipe is spent here
    local value = table_[name]
    if type(name) ~= "string" then
      core.raise_at(where, string.format("%s are by name; a key is a %s", field_of[what], type(name)))
    end
    local p, old = value, nil
    if not (type(value) == "table" and rawget(value, "is_param") == is_param) then
      old = base and base.by_name[name]
      local kind = kind_of(value)
      if not kind then
        core.raise_at(where, string.format("the default of %s '%s' is a %s; write a number, a string, a "
          .. "boolean, a list of integers or param.KIND(...); param.any takes every plain value", what, name,
          type(value)))
      end
      if old and not kinds[old.kind].check(value, old) then
        core.raise_at(where, string.format("the default of %s '%s', a %s of the base, is %s; param.%s(...) declares "
          .. "another kind", what, name, old.kind, what_of(old), kind))
      end
      p = { kind = old and old.kind or kind, default = value, doc = old and old.doc or "", where = where,
            aliases = old and old.aliases or none, choices = old and old.choices }
    elseif not bundled and not is_sound(p) then
      core.raise_at(where, string.format("%s '%s' was changed after param.KIND(...) made it: its doc and other names "
        .. "are text, and its default has its kind", what, word(name)))
    end
    local own_name = old and old.name or name
    if changed[own_name] then
      core.raise_at(where, string.format("%ss '%s' and '%s' are names of one %s of the base", what, changed[own_name],
        name, what))
    end
    changed[own_name] = name
    local one = { name = own_name, kind = p.kind, default = p.default, doc = p.doc, aliases = p.aliases,
                  where = p.where, choices = p.choices }
    local before = p.serial and declared[p.serial]
    if before then
      if not before[1] then declared[p.serial] = { before } end
      table.insert(declared[p.serial], one)
    elseif p.serial then
      declared[p.serial] = one
    else
      list[#list + 1] = one
    end
  end
  local all = {}
  for _, n in ipairs(core.keys(declared)) do
    local one = declared[n]
    if one[1] then table.move(one, 1, #one, #all + 1, all) else all[#all + 1] = one end
  end
  return table.move(list, 1, #list, #all + 1, all)
end

-- Return the base's parameters, then the recipe's own. If both have a name, the recipe's parameter replaces the base's.
local function merge(base, own)
  local list, index = {}, {}
  for _, from in ipairs({ base, own }) do
    for _, p in ipairs(from) do
      index[p.name] = index[p.name] or #list + 1
      list[index[p.name]] = p
    end
  end
  return list
end

-- Return a table, name or alias -> declaration. Refuse two declarations with one name.
local function by_any_name(what, list)
  local index = {}
  for _, p in ipairs(list) do
    local aliases = p.aliases
    for i = 0, #aliases do
      local name = i == 0 and p.name or aliases[i]
      if index[name] then
        core.raise_at(p.where, string.format("%ss '%s' and '%s' both answer to '%s'", what,
          index[name].name, p.name, name))
      end
      index[name] = p
    end
  end
  return index
end

-- Return the names and aliases of all declarations, for messages.
local function names_of(self)
  local names = {}
  for _, p in ipairs(self.list) do
    names[#names + 1] = p.name
    table.move(p.aliases, 1, #p.aliases, #names + 1, names)
  end
  return names
end

-- Return all declarations of a recipe in one field. `base` has those of the recipe's base, which come first.
local function declared_in(what, base, own, where, bundled)
  local self = { what = what, where = where }
  self.list = list_of(what, own or {}, where, bundled, base)
  if base then self.list = merge(base.list, self.list) end
  self.by_name = by_any_name(what, self.list)
  self.parsed, self.nparsed = {}, 0
  return self
end

-- Return the value if it has the kind of p, else refuse it. `given` is the value as it was given, perhaps as text.
local function checked(what, p, value, given)
  local kind = kinds[p.kind]
  if value == nil or not kind.check(value, p) then
    local near = kind.nearest and kind.nearest(value, p)
    local expected = type(given) == "string" and kind.written or what_of(p)
    core.raise_at(p.where, string.format("%s '%s' is %s, not %s%s", what, p.name, expected, show(given),
      near and "; nearest is " .. near or ""), near and "out of range" or "bad value")
  end
  return value
end

-- Return the value of a parameter, which may be given as text. of_host: whether the host, not a recipe, gave the value.
local function value_of(p, given, of_host)
  local value, why = given, nil
  if type(given) == "string" and p.kind ~= "text" then value, why = kinds[p.kind].parse(given, of_host, p) end
  if why then core.raise_at(p.where, string.format("parameter '%s': %s", p.name, why)) end
  return checked("parameter", p, value, given)
end

local function copy(value)
  if type(value) ~= "table" then return value end
  local own = {}
  for key, item in sorted_pairs(value) do own[key] = copy(item) end
  return own
end

local views = setmetatable({}, { __mode = "k" }) -- a view, such as the `p` of `build` -> its values
local reads = setmetatable({}, { __mode = "k" }) -- a view -> the names that were read through it or a view made from it

-- Make a view: the `p` of build, queries and policies, or the `set` of queries. A view is a read-only table of the
-- values by name, in which an unknown name is an error. It has its own copies of values that are tables, because a
-- recipe may change them. A view that is made from another view shares `read`, the set of the names that were read.
local function view(self, values, read)
  local own = {}
  read = read or {}
  local p = setmetatable({}, {
    __index = function(_, name)
      local value = values[name]
      read[name] = true
      if type(value) == "table" then
        own[name] = own[name] or copy(value)
        return own[name]
      end
      local param = value == nil and self.by_name[name]
      if value == nil and (not param or param.name ~= name) then
        local names = {}
        for i, known in ipairs(self.list) do names[i] = known.name end
        if param then core.raise(string.format("%s '%s' has its full name here: %s", self.what, name, param.name)) end
        core.unknown(self.what, word(name), names)
      end
      return value
    end,
    __newindex = function(_, name) core.raise(self.what .. " '" .. word(name) .. "' cannot be changed") end,
    __pairs = function(p)
      local i = 0
      return function()
        i = i + 1
        local param = self.list[i]
        if param then return param.name, p[param.name] end
      end
    end,
  })
  views[p], reads[p] = values, read
  return p
end

local function with_defaults(self, values)
  for _, p in ipairs(self.list) do
    if values[p.name] == nil then values[p.name] = p.default end
  end
  return values
end

-- Return the values of all parameters. `given` is a table, name -> value or text; or the `p` of another recipe, of
-- which only the names that this recipe knows are used.
local function values_of(self, given, of_host)
  local of_view = views[given] -- read the values, not the view, so that no name counts as read
  local values, from = {}, {}
  for name, value in sorted_pairs(of_view or given) do
    local p = self.by_name[name]
    if not p and not of_view then
      if type(name) ~= "string" then core.raise("parameters are given as { name = value }") end
      core.unknown("parameter", name, names_of(self), self.where)
    end
    if p then
      if from[p.name] then
        core.raise_at(p.where, string.format("parameter '%s' is given twice, as '%s' and as '%s'",
          p.name, from[p.name], name), "given twice")
      end
      from[p.name], values[p.name] = name, value_of(p, value, of_host)
    end
  end
  return with_defaults(self, values)
end

local function resolve(self, given, of_host) return view(self, values_of(self, given, of_host), reads[given]) end
local function inside(p) return views[p], reads[p] end

-- Make `p` from the parameters of a plan, or of a state's plan, where they are texts. Parse them once for each plan,
-- and cache the values under the plan's digest. When the cache has MOST plans, empty it, to bound memory.
local MOST = 16

local function resolve_plan(self, state)
  local digest = core.digest(state)
  local values = self.parsed[digest]
  if not values then
    if self.nparsed == MOST then self.parsed, self.nparsed = {}, 0 end
    values = values_of(self, core.params(state))
    self.parsed[digest], self.nparsed = values, self.nparsed + 1
  end
  return view(self, values)
end

-- Return the full name of a setting or an argument, and the value, which must have the declared kind, or be nil, which
-- stands for the default.
local function value_for(self, name, value)
  local p = self.by_name[name]
  if not p then core.unknown(self.what, name, names_of(self), self.where) end
  if value == nil then return p.name end
  return p.name, checked(self.what, p, value, value)
end

-- Return the settings of a state: the values that the host has set, else the defaults.
local function settings_of(self, state)
  return view(self, with_defaults(self, core.settings(state)))
end

local function text_of(p, value)
  local text = kinds[p.kind].text or tostring
  return text(value, p)
end

local function is_usual(p, value)
  if value == p.default then return true end
  return type(value) == "table" and type(p.default) == "table" and text_of(p, value) == text_of(p, p.default)
end

return {
  param = shared.vocabulary("kind of parameter", function() return declaring end),
  declared_in = declared_in, names_of = names_of, copy = copy, resolve = resolve, resolve_plan = resolve_plan,
  inside = inside, is_usual = is_usual, value_for = value_for, with_defaults = with_defaults, settings_of = settings_of,
  text_of = text_of,
}
