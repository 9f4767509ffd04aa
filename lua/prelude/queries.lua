-- SPDX-License-Identifier: MIT
--
-- Questions to a state: queries, getters (which return groups), and their arguments. A recipe has for each of these a
-- table, or a function that returns the table, and inherits the entries of its base. The functions are called, and this
-- file is loaded, at the first question, so that planning takes no time for them. A table is checked when the recipe is
-- loaded, and this file with it.

local core, shared, parameters = ...
local sorted_pairs, show, word = shared.sorted_pairs, shared.show, shared.word

-- For each field: the message about a wrong value, and a function that tells whether a value is right.
local kinds = {
  queries = { "query '%s' is not a function", function(v) return type(v) == "function" end },
  getters = { "getter '%s' is %s; write the name of a family, or a function that returns one",
    function(v) return type(v) == "function" or type(v) == "string" end },
  families = { "families: '%s' has %s; write a text that says when the family exists",
    function(v) return type(v) == "string" end },
  arguments = { "arguments of queries are names, not %s" },
}

-- Refuse a field, whose table is `all`, if one of its values is wrong. `where` is the position of the recipe.
local function check(field, all, where)
  local message, is_valid = kinds[field][1], kinds[field][2]
  for name, value in sorted_pairs(all) do
    if not is_valid and type(name) ~= "string" and type(value) ~= "string" then
      core.raise_at(where, string.format(message, show(value)))
    elseif is_valid and not is_valid(value) then
      core.raise_at(where, string.format(message, word(name), show(value)))
    end
  end
end

-- Return the table of a field, without the entries of the base.
local function own(body, field)
  local said = body.asked[field]
  if type(said) ~= "function" then return said or {} end
  local all = said()
  if type(all) ~= "table" then
    core.raise_at(body.where, string.format("%s returned %s; return a table, { NAME = ... }", field, show(all)))
  end
  check(field, all, body.where)
  return all
end

-- Return all entries of a field, name -> entry. Entries of the recipe replace those of its base.
local function all_of(body, field)
  body.answers = body.answers or {}
  if not body.answers[field] then
    local all = {}
    if body.base then
      for name, value in pairs(all_of(body.base, field)) do all[name] = value end
    end
    for name, value in pairs(own(body, field)) do all[name] = value end
    body.answers[field] = all
  end
  return body.answers[field]
end

-- Return the declarations of the arguments. An argument that is declared only by its name accepts any value. If "..."
-- is declared, questions accept other names, too.
local function arguments_of(body)
  if body.arguments then return body.arguments end
  local base, declared = body.base and arguments_of(body.base), {}
  for name, value in sorted_pairs(own(body, "arguments")) do
    if type(name) == "string" then
      declared[name] = value
    elseif type(value) == "string" then
      declared[value] = parameters.param.any(nil)
    else
      core.raise_at(body.where, "arguments of queries are names, not " .. show(value))
    end
  end
  body.arguments = parameters.declared_in("argument", base, declared, body.where)
  return body.arguments
end

-- Return the arguments of a question under their full names, with the defaults. Refuse an unknown name, and a value of
-- another kind than declared.
local function checked(body, q)
  local arguments, full = arguments_of(body), {}
  for name, value in sorted_pairs(q) do
    if arguments.by_name[name] or not arguments.by_name["..."] then
      local whole, checked_value = parameters.value_for(arguments, name, value)
      full[whole] = checked_value
    else
      full[name] = value
    end
  end
  return parameters.with_defaults(arguments, full)
end

-- How a recipe defines a query or a getter, for messages.
local written = {
  query = "queries = { NAME = function(state, q, p) ... end }",
  getter = 'getters = { NAME = "family" }',
}

local function known(what, body, all, name)
  if not next(all) then
    core.raise_at(body.where, string.format("unknown %s '%s'; the recipe has none: %s makes one, and the bundled "
      .. "recipes have those of their systems", what, word(name), written[what]), "unknown name")
  end
  return all[name] or core.unknown(what, word(name), core.keys(all))
end

local function params_of(body, state) return parameters.resolve_plan(body.params, state) end
local function settings_of(body, state) return parameters.settings_of(body.settings, state) end

-- Answer a query, a function (state, q, p, set): q has the arguments, p the parameters of the plan, set the settings of
-- the state. The name get_NAME, which many systems use, also finds the query NAME.
local function ask(body, state, name, q)
  local all = all_of(body, "queries")
  local plain = all[name] == nil and type(name) == "string" and name:sub(1, 4) == "get_" and name:sub(5)
  local query = plain and all[plain] or known("query", body, all, name)
  return query(state, checked(body, q), params_of(body, state), settings_of(body, state))
end

-- Return the recipe's text that says when a family exists, or nil. The text is under the family's name, or under a
-- pattern with a *.
local function condition_of(body, family)
  local all = all_of(body, "families")
  if all[family] then return all[family] end
  for pattern, words in sorted_pairs(all) do
    if shared.fits(family, pattern) then return words end
  end
end

-- Return the name of a getter's family. A getter is the name, or a function (state, q, p, set) that returns the name,
-- or nil if there is no group.
local function family_of(getter, ...)
  if type(getter) == "string" then return getter end
  return getter(...)
end

-- Return the name of a getter's family; C looks up the group. If the family does not exist, raise an error; but return
-- nil if check_initialized, an argument in many systems, is false.
local function group(body, state, name, q)
  local getter = known("getter", body, all_of(body, "getters"), name)
  q = checked(body, q)
  local family = family_of(getter, state, q, params_of(body, state), settings_of(body, state))
  if family and state:has(family) then return family end
  if q.check_initialized == false then return nil end
  local when = family and condition_of(body, family)
  core.raise(string.format("getter '%s': %s%s", name,
    family and "there is no family '" .. family .. "' in this plan" or "there is no such group with these parameters",
    when and "; it is there with " .. when or ""))
end

-- Call a getter with these flags, and the defaults of other flags. Return its family, or nil if it raises an error, for
-- example because it needs a state. Also return the first flag that it read and that `flags` does not have, or nil.
local function given(body, getter, flags, p, set)
  local by_name, undecided = arguments_of(body).by_name, nil
  local q = setmetatable({}, { __index = function(_, name)
    local argument = by_name[name]
    if not argument or argument.kind ~= "flag" then return nil end
    if flags[name] == nil then undecided = undecided or name end
    return (flags[name] == nil and argument.default or flags[name]) or false
  end })
  local ok, family = pcall(family_of, getter, nil, q, p, set)
  return ok and family or nil, undecided
end

-- Return a list of { arguments, family }: the families of a getter for all values of the flags that it reads.
-- `arguments` has the flags to set for this family, "expert=true"; the case without flags comes first. A case is left
-- out if the family is the same without one of its flags.
local function cases_of(body, getter, p, set)
  local by_name, cases = arguments_of(body).by_name, {}
  local function explore(flags, other) -- other: the flags with another value than their default
    local family, undecided = given(body, getter, flags, p, set)
    if undecided then
      local usual = by_name[undecided].default or false
      flags[undecided] = usual
      explore(flags, other)
      flags[undecided], other[#other + 1] = not usual, undecided
      explore(flags, other)
      flags[undecided], other[#other] = nil, nil
    elseif family then
      local said, matters = {}, true
      for i, name in ipairs(other) do
        said[i] = name .. "=" .. tostring(flags[name])
        flags[name] = not flags[name]
        matters = matters and given(body, getter, flags, p, set) ~= family
        flags[name] = not flags[name]
      end
      if matters then cases[#cases + 1] = { arguments = table.concat(said, " "), family = family } end
    end
  end
  explore({}, {})
  return cases
end

local function lists_of(body)
  local queries, getters, families = core.keys(all_of(body, "queries")), {}, {}
  local p, set = parameters.resolve(body.params, {}), parameters.resolve(body.settings, {})
  for name, getter in sorted_pairs(all_of(body, "getters")) do
    getters[#getters + 1] = { name = name, gives = cases_of(body, getter, p, set) }
  end
  for name, when in sorted_pairs(all_of(body, "families")) do
    families[#families + 1] = { name = name, with = when }
  end
  return queries, arguments_of(body), getters, families
end

return { check = check, ask = ask, group = group, lists_of = lists_of }
