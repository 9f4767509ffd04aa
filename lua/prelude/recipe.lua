-- SPDX-License-Identifier: MIT
--
-- The first file of the prelude, which is the part of the recipe language that is written in Lua. It defines the words
-- `recipe`, `param`, `policies` and `steps`, and evaluates recipes. The prelude can use Lua's base, string,
-- table and math functions; a recipe gets only these four words from it.
--
-- `core` has functions written in C (src/recipe/core.c, load.c). A `where` is a text "file:line: ".
--   raise(message)             raise an error at the recipe's position; raise_at(where, message [, status]) elsewhere
--   unknown(what, name, known [, where])  raise an error that names the nearest known name
--   where(), place(), where_of(function)  the `where` of the line that runs, of the line that last read the word
--                              `recipe`, of a function's definition
--   load(name, from, by_host)  load a recipe -> path, chunk, key, hash of the text, path for the host, functions of the
--                              host that the text names ({ name = version } or nil)
--   library(name, ...)         run another file of this folder
--   is_topology(value)         whether it is a topology
--   note(topology, name, text, is_text, usual, unread)  record a parameter; params(state or plan) returns them, as text
--   fields()                   the fields of recipes that modules add (src/recipe/module_row.h), name -> type, or "any"
--   begin(world, values, where)  give the modules the values of their fields; returns the World for `build`
--   finish(topology, where, world)  let the modules finish after `build`
--   allow_idle(topology)       accept ranks that are in no group
--   digest(state or plan)      the digest of the plan
--   settings(state)            the settings that a host has set, by name
--   note_function(topology, name, version)  record a function of the host
--   note_policies(topology, hash)  make ranks compare the hash of the texts of the recipe and its base
--   kind(value)                "a table", "a Family", ...
--   message(error)             the message of an error with a hint (hints.lua), for xpcall
--   nearest(name, names)       the name that was probably meant, or nil
--   read(path)                 the table in a JSON or YAML file, or nil and why it cannot be read
--   choose(topology, family, option, value)  set an option of a family
--   concurrent(topology, lists, where)  let the families of each list share no communicator
--   keys(table)                a sorted list of the keys: numbers, names by their bytes, then others
--   encode(value), decode(text)  write and read JSON; decode returns nil for text that is not JSON, and nil with the
--                              reason for JSON that Lua cannot represent
--   words(), members(value)    the globals of recipes; the names of fields and methods of a value

local core = ...
local shared = core.library("shared", core)
local kinds = core.library("kinds", core, shared)
local parameters = core.library("parameters", core, shared, kinds)
local sorted_pairs, show, word, resolve = shared.sorted_pairs, shared.show, shared.word, parameters.resolve
local M = { param = parameters.param }

-- Policies ------------------------------------------------------------------

-- policies.NAME { settings } makes a bundled policy. policies.lua is loaded when a recipe first reads a field of
-- `policies`.
local makers, made, uncalled = nil, {}, function() end
M.policies = shared.vocabulary("bundled policy", function()
  if not makers then makers, made, uncalled = core.library("policies", core, shared, kinds) end
  return makers
end)

-- Recipes -------------------------------------------------------------------

local fields = { "doc", "base", "params", "rest", "build", "concurrent", "families", "queries", "getters", "arguments",
                 "settings", "policy", "agreed", "idle", "names", "step" }
-- The types of the fields that are not tables. `base` is a recipe or a recipe's name.
local types = { doc = "string", rest = "string", idle = "string", names = "string", build = "function",
                step = "function" }
local added = core.fields() -- the fields of modules
for name, type_of in sorted_pairs(added) do fields[#fields + 1], types[name] = name, type_of end
-- The fields for questions. Each may also be a function that returns its table; it is called at the first question.
local asked = { families = true, queries = true, getters = true, arguments = true }

local Recipe = {} -- metatable of the results of `recipe`, which are read-only
Recipe.__index = function(self, key)
  local body = rawget(self, Recipe)
  if key == "build" then return body.build end
  if key == "params" then
    local defaults = {}
    for _, p in ipairs(body.params.list) do defaults[p.name] = parameters.copy(p.default) end
    return defaults
  end
  if key == "doc" then return body.doc end
  return core.unknown("field of a recipe", word(key), { "build", "params", "doc" })
end
Recipe.__newindex = function() core.raise("a recipe cannot be changed; make another one with this one as its base") end
Recipe.__metatable = false

local function body_of(value) return type(value) == "table" and rawget(value, Recipe) or nil end

-- Run a build function; raise unless it returns a topology.
local function run_build(build, world, p, base_topology)
  local t = build(world, p, base_topology)
  if not core.is_topology(t) then
    local instead = type(t) == "table" and "a topology begins with local t = topology(world)"
      or "end it with 'return t', a topology"
    core.raise_at(core.where_of(build),
      ("build returned %s; %s"):format(t == nil and "nothing" or core.kind(t), instead))
  end
  return t
end

local by_host = false -- whether the host, not a recipe, named the recipe to load next
local running = {} -- { path, text, called } of the recipe files that are running, the innermost last
local last -- { topology, world, params } of the last evaluation, for a prompt
local called -- { name = version } of the host's functions that the recipes of this evaluation name in their text

-- Questions: queries, getters and their arguments. queries.lua is loaded at the first question, or when a recipe has a
-- table in one of the fields `asked`.
local answerer
local function answers()
  answerer = answerer or core.library("queries", core, shared, parameters)
  return answerer
end

-- Bundled steps: steps.transformer { settings } makes a step that has its own parameters. steps.lua is loaded when a
-- recipe first reads a field of `steps`.
local steps
M.steps = shared.vocabulary("bundled step", function()
  steps = steps or core.library("steps", core, shared, parameters)
  return steps.makers
end)

-- Return the declared parameters of a recipe with those of its bundled step, and the set of the names of the step's
-- parameters. All parameters of the step are optional, so that a plan has only those that were given. A parameter of
-- the recipe or its base replaces the parameter of the step that has its name or one of its aliases.
local function with_step(def, base)
  local own = steps and def.step and steps.params[def.step]
  if not own then return def.params, base and base.of_step or {} end
  local all, of_step = {}, shared.joined({}, base and base.of_step)
  for name, p in sorted_pairs(own) do
    if not (base and base.params.by_name[name]) then all[name], of_step[name] = p, true end
  end
  for name, p in sorted_pairs(def.params or {}) do
    all[name], of_step[name] = p, nil
    for _, alias in ipairs(type(p) == "table" and p.aliases or {}) do all[alias], of_step[alias] = nil, nil end
  end
  return all, of_step
end

local recipe -- defined below

local function define(def, where)
  for key in sorted_pairs(def) do
    local known = false
    for _, name in ipairs(fields) do known = known or name == key end
    if not known then core.unknown("field of a recipe", word(key), fields, where) end
  end
  for _, key in ipairs(fields) do
    local expected, actual = key ~= "base" and not (key == "step" and def.step == false) and (types[key] or "table"),
      type(def[key])
    if expected and expected ~= "any" and actual ~= "nil" and actual ~= expected
      and not (asked[key] and actual == "function") then
      core.raise_at(where, string.format("field '%s' of a recipe is a %s, not a %s", key, expected, actual))
    end
  end
  local base = def.base
  if type(base) == "string" then base = recipe(base) end
  if base ~= nil and not body_of(base) then core.raise_at(where, "field 'base' is a recipe or the name of one") end
  base = body_of(base)
  if not def.build and not base then
    core.raise_at(where, "a recipe needs 'build', a function (world, p) that returns a topology")
  end

  local body = { where = where, doc = def.doc or base and base.doc or "", base = base }
  local file = running[#running] -- nil inside `build`, which may also define recipes
  body.text = (base and base.text or 0) * 31 + (file and file.text or 0)
  body.called = shared.joined(base and base.called, file and file.called)
  local bundled = file and file.text == 0 -- the text of a bundled recipe has no hash
  body.step = def.step -- false removes the base's step
  body.has_step = def.step or def.step == nil and base and base.has_step
  local params, of_step = with_step(def, base)
  body.params = parameters.declared_in("parameter", base and base.params, params, where, bundled)
  body.of_step = of_step -- the names of the step's parameters
  body.names = def.names or base and base.names -- rules between names of tensors, for checkpoints
  body.rest = def.rest or base and base.rest -- the name of the parameter that gets unknown names of a file
  if body.rest and not body.params.by_name[body.rest] then
    core.unknown("parameter", body.rest, parameters.names_of(body.params), where .. "rest: ")
  end
  body.settings = parameters.declared_in("setting", base and base.settings, def.settings, where, bundled)
  body.idle = def.idle or base and base.idle
  if body.idle and body.idle ~= "allow" then
    core.raise_at(where, 'idle is "allow", for ranks that are in no group, or left out; not ' .. show(body.idle))
  end
  body.added = {}
  for name in sorted_pairs(added) do
    body.added[name] = def[name]
    if def[name] == nil and base then body.added[name] = base.added[name] end
  end
  body.asked = {}
  for field in sorted_pairs(asked) do
    body.asked[field] = def[field]
    if type(def[field]) == "table" then answers().check(field, def[field], where) end
  end
  -- For each policy: its function; the family over which its results are compared, "world", or nil; and the position of
  -- the recipe that names this family.
  body.policy, body.agreed, body.agreed_at = {}, {}, {}
  for _, from in ipairs({ base or {}, { policy = def.policy, agreed = def.agreed } }) do
    for name, fn in sorted_pairs(from.policy or {}) do
      if type(name) ~= "string" or type(fn) ~= "function" then
        core.raise_at(where, "policy '" .. word(name) .. "' is not a name with a function")
      end
      local what = uncalled(fn)
      if what then
        core.raise_at(where, string.format("policy '%s' is %s, which makes one: write %s()", name, what, what))
      end
      body.policy[name] = fn
    end
    for name, family in sorted_pairs(from.agreed or {}) do
      if not body.policy[name] then core.unknown("policy", word(name), core.keys(body.policy), where .. "agreed: ") end
      if type(family) ~= "string" and family ~= false then
        core.raise_at(where, string.format("agreed: policy '%s' has the name of a family, \"world\" or false, not %s",
          name, show(family)))
      end
      body.agreed[name], body.agreed_at[name] = family or nil, from.agreed_at and from.agreed_at[name] or where
    end
  end
  body.build = function(world, given)
    called = shared.joined(called, body.called)
    local p = resolve(body.params, given or {})
    local t = base and base.build(world, p)
    if def.build then t = run_build(def.build, world, p, t) end
    if def.concurrent then core.concurrent(t, def.concurrent, where) end
    return t
  end
  return setmetatable({ [Recipe] = body }, Recipe)
end

local loaded, loading = {}, {}

-- The first argument of a recipe's file. arithmetic.lua is loaded when a recipe first reads one of its functions.
local functions
local arithmetic = shared.vocabulary("function of arithmetic", function()
  functions = functions or core.library "arithmetic"
  return functions
end)

-- A bundled recipe may be in several files: in megatron, part "grids" returns the result of recipes/megatron/grids.lua.
-- Such a file runs once, with the same arguments as the recipe's file.
local parts = {}

local function parts_of(owner)
  local function part(name)
    local key = owner .. "." .. name
    if parts[key] == nil then
      local _, chunk = core.load(key)
      parts[key] = chunk(arithmetic, part)
    end
    return parts[key]
  end
  return part
end

-- recipe{...} defines a recipe; recipe "name" returns a bundled recipe, or the recipe of a file, whose path is relative
-- to this file.
function recipe(what)
  local where = core.place() or ""
  if type(what) == "table" then return define(what, where) end
  if type(what) ~= "string" then core.raise_at(where, "recipe takes a table or a name, not " .. show(what)) end
  local from = running[#running]
  local path, chunk, key, text, told, names = core.load(what, from and from.path, by_host)
  by_host = false
  if loaded[key] then return loaded[key] end
  if loading[key] then core.raise_at(where, "recipe '" .. what .. "' is based on itself") end
  loading[key], running[#running + 1] = true, { path = path, text = text, called = names }
  local part = text == 0 and parts_of(path) or nil -- only for a bundled recipe, whose text has no hash
  -- after an error reset `loading` and `running`, too, because the calling recipe may catch the error
  local ok, value = xpcall(chunk, core.message, arithmetic, part)
  loading[key], running[#running] = nil, nil
  if not ok then error(value, 0) end
  if not body_of(value) then
    core.raise_at("", string.format("%s returned %s; end it with 'return recipe { ... }'", told,
      value == nil and "nothing" or core.kind(value)))
  end
  loaded[key] = value
  return value
end

-- recipe.import "./helpers.lua" returns the functions of a file. import.lua is loaded at the first call.
local import
local function import_file(name)
  import = import or core.library("import", core, shared)
  return import(name, running, core.place())
end
M.recipe = shared.vocabulary("word of recipe", function() return { import = import_file } end, recipe)

-- For C -----------------------------------------------------------------------

-- Load the recipe that the host names. Clear `loading` and `running` first: a load that hits a limit leaves them set.
function M.load(name)
  loading, running, by_host = {}, {}, true
  return recipe(name)
end

-- Refuse a policy if the family over which it is agreed is not in the topology or has a rank in two groups, and a
-- bundled policy if a family in its settings is not in the topology.
local function check_policies(body, t)
  local families, known = {}, {}
  for name, family in pairs(t) do families[name], known[#known + 1] = family, name end
  known[#known + 1] = "world"
  for name, by in sorted_pairs(body.agreed) do
    local where = string.format("%spolicy '%s' is agreed: ", body.agreed_at[name], name)
    if by ~= "world" and not families[by] then core.unknown("family", by, known, where) end
    if by ~= "world" and families[by].coverage == "cover" then
      core.raise_at(where, string.format("the groups of '%s' share ranks; name a family whose groups share none, or "
        .. "\"world\"", by))
    end
  end
  for _, fn in sorted_pairs(body.policy) do
    if made[fn] then made[fn].look(t) end
  end
end

-- Add the parameters of a file to `given`; parameters that are there already win. If the recipe has a field `rest`, the
-- parameter that the field names gets all names of the file that are not parameters. But refuse a likely typing error:
-- a name of 8 bytes or more that is similar to that of a parameter, with a value that fits this parameter. Parameters
-- of the step do not count, because files of other systems do not have them. If `rest` names a parameter of kind table,
-- accept all names, because such a parameter is for files with many other names.
local function add_file(body, given, file)
  local by_name, taken, names, rest = body.params.by_name, {}, {}, nil
  for name in pairs(given) do taken[by_name[name] or name] = true end
  for _, p in ipairs(body.params.list) do
    if not body.of_step[p.name] then names[#names + 1] = p.name end
  end
  local careful = body.rest and by_name[body.rest].kind ~= "table"
  for name, value in sorted_pairs(file) do
    if by_name[name] or not body.rest or string.find(name, ".", 1, true) then
      if not taken[by_name[name] or name] then given[name] = value end
    else
      local near = careful and #name > 7 and by_name[core.nearest(name, names) or ""]
      if near and kinds.declared[near.kind].check(value, near) then
        core.unknown("parameter", name, names, body.where)
      end
      rest = rest or {}
      rest[name] = value
    end
  end
  if not rest then return end
  if given[body.rest] ~= nil then
    core.raise_at(body.where, string.format("parameter '%s' is given, and the file has names for it: '%s'", body.rest,
      core.keys(rest)[1]), "given twice")
  end
  given[body.rest] = rest
end

-- Move the options of families, whose names have a dot, from the given parameters to a table, and return this table; or
-- return nil if there are no options.
local function options_in(given)
  local options
  for name, value in pairs(given) do
    if type(name) == "string" and string.find(name, ".", 1, true) then
      options = options or {}
      options[name], given[name] = value, nil
    end
  end
  return options
end

-- Build the topology of a recipe, and record the parameters in it. `file` has the values of a file of parameters, or is
-- nil.
function M.evaluate(self, world, given, file)
  local body = body_of(self)
  if file then add_file(body, given, file) end
  local options = options_in(given)
  local p = resolve(body.params, given, true)
  called, last = nil, nil
  local t = body.build(core.begin(world, body.added, body.where), p)
  last = { topology = t, world = world, params = p }
  for name, version in sorted_pairs(called or {}) do core.note_function(t, name, version) end
  if options then core.library("options", core, shared)(t, options) end
  if next(body.policy) then check_policies(body, t) end
  if next(body.policy) or body.has_step and body.text ~= 0 then core.note_policies(t, body.text | 1) end
  if body.idle then core.allow_idle(t) end
  core.finish(t, body.where, world)
  local values, read = parameters.inside(p)
  for _, param in ipairs(body.params.list) do
    local name, value = param.name, values[param.name]
    if value ~= nil then
      local is_text = type(value) == "string" or param.kind == "names" -- names are written as tp-dp
      core.note(t, name, parameters.text_of(param, value), is_text, parameters.is_usual(param, value),
        not (read[name] or body.has_step))
    end
  end
  return t
end

-- M.ask returns a query's answer. M.group returns the name of the family whose group a getter returns, or nil.
function M.ask(self, state, name, q) return answers().ask(body_of(self), state, name, q) end
function M.group(self, state, name, q) return answers().group(body_of(self), state, name, q) end

-- Return the full name and the value of a setting that a host changes; C stores them in the state.
function M.set(self, name, value) return parameters.value_for(body_of(self).settings, name, value) end

-- Prepare a policy, a function (state, q, p), for many calls. Return what C keeps: the function; p; the family over
-- which results are compared, "world" or nil; and the line that defines the policy, or that makes a bundled policy.
function M.policy(self, state, name)
  local body = body_of(self)
  local fn = body.policy[name]
  if not fn and not next(body.policy) then
    core.raise_at(body.where, string.format("unknown policy '%s'; the recipe has none: "
      .. "policy = { NAME = function(state, q, p) ... end } makes one, "
      .. "policy = { layers = policies.layers() } uses a bundled one", name), "unknown name")
  end
  if not fn then return core.unknown("policy", name, core.keys(body.policy), body.where) end
  local bundled = made[fn]
  return fn, parameters.resolve_plan(body.params, state), body.agreed[name],
    bundled and bundled.where or core.where_of(fn)
end

-- The prompt (shell.lua): run lines, and list the words that can complete the last word of a line.
local run, complete, about
local function prompt()
  if not last then core.raise("a prompt works on the last plan of the recipe, and there is none") end
  if about ~= last then run, complete = core.library("shell", core, shared, last) end
  about = last
end
function M.run(text) prompt() return run(text) end
function M.complete(line) prompt() return complete(line) end

-- Return the recipe's step as a function of s, or nil if there is none. In a recipe, a step is a function (s, p, base):
-- base(s) runs the base's step with the parameters of this recipe; base is nil if the base has no step.
local function step_of(body, p, own)
  local base = body.base and body.step ~= false and step_of(body.base, parameters.resolve(body.base.params, p))
  local fn = own or body.step
  if not fn then return base or nil end
  return function(s) fn(s, p, base) end
end

-- Return the step of a plan, or nil; and whether it is a bundled step whose calls are not known with these parameters.
-- If `own` is given, this function is the step, and the recipe's step is its base.
function M.step(self, plan, own)
  local body = body_of(self)
  local p = parameters.resolve_plan(body.params, plan)
  if own then body = { base = body } end
  local of = body
  while of.base and of.step == nil do of = of.base end
  return step_of(body, p, own), steps and not own and steps.is_unknown(of.step, p)
end

local function info_of(declared, of_step)
  local list = {}
  for i, p in ipairs(declared.list) do
    list[i] = { name = p.name, kind = p.kind, doc = p.doc, aliases = p.aliases, of_step = of_step and of_step[p.name],
                default = p.default ~= nil and parameters.text_of(p, p.default) or nil }
    if p.choices then
      list[i].choices = {}
      for k, v in ipairs(p.choices) do list[i].choices[k] = tostring(v) end
    end
  end
  return list
end

-- Return { doc, params = { {name, kind, default, doc, aliases, choices, of_step} }, settings and arguments = likewise,
--   queries = { names }, getters = { { name, gives = { {arguments, family} } } }, families = { { name, with } },
--   policies = { { name, agreed = family or "world" } }, names = { lines }, functions = nil or { { name, version } }
--   of the host }
function M.info(self)
  local body = body_of(self)
  local queries, arguments, getters, families = answers().lists_of(body)
  local info = { doc = body.doc, params = info_of(body.params, body.of_step), settings = info_of(body.settings),
                 queries = queries, arguments = info_of(arguments), getters = getters, families = families,
                 policies = {}, names = {} }
  for line in string.gmatch(body.names and body.names .. "\n" or "", "([^\n]*)\n") do -- blank lines count, too
    info.names[#info.names + 1] = line
  end
  for i, name in ipairs(core.keys(body.called or {})) do
    info.functions = info.functions or {}
    info.functions[i] = { name = name, version = body.called[name] }
  end
  for i, name in ipairs(core.keys(body.policy)) do info.policies[i] = { name = name, agreed = body.agreed[name] } end
  return info
end

return M
