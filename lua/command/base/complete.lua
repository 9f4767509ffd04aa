-- SPDX-License-Identifier: MIT
--
-- complete(rows, words): moongrid complete WORD ..., which shells call (scripts/make/complete). Print candidates for
-- the last WORD of a command line, which may be incomplete or empty.
--
-- Each candidate is a line: the whole word, and after a tab a short description, if there is one. Shells put no blank
-- after a candidate that ends in "=" or "/". With --world a size is a candidate if the recipe accepts it together with
-- the arguments before it; after 40 ms of processor time sizes are candidates without this check. Wrong words, and a
-- recipe that does not load, only leave fewer candidates; no message is printed.

local host = require "host"
local line = require "command.base.line"
local mg = require "moongrid"
local recipe = require "command.base.line_recipe"

local POWERS, MOST = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096 }, 64
local SECONDS = 0.04 -- of processor time since the start: after that no more plans are tried

local function starts(text, begin) return text:sub(1, #begin) == begin end

-- Candidates: `l.last` is the incomplete part of the last word, `l.head` the part before it, as "--color=" ----------

-- Offer a word that starts with the typed letters. Leave out a word, such as the name of a file, that would control the
-- terminal.
local function offer(l, word, about)
  if not starts(word, l.last) or host.shown(word) ~= word then return end
  about = about and about:match "^[^\n\t]*" or ""
  io.write(l.head, word, about ~= "" and "\t" or "", about, "\n")
end

local function offer_each(l, words)
  for _, word in ipairs(words) do offer(l, word) end
end

-- Offer folders, and files whose names end in `ending` (nil: all files).
local function offer_files(l, ending)
  local folder, begin = l.last:match "^(.-)([^/]*)$"
  local names = host.folder(folder == "" and "." or folder) or {}
  table.sort(names)
  for _, name in ipairs(names) do
    local path = folder .. name
    if name:sub(1, 1) ~= "." or starts(begin, ".") then
      if host.folder(path) then
        offer(l, path .. "/")
      elseif not ending or #path >= #ending and path:sub(-#ending) == ending then
        offer(l, path)
      end
    end
  end
end

local function offer_recipes(l)
  for _, name in ipairs(mg.recipes()) do
    if starts(name, l.last) then offer(l, name, mg.load(name):info().doc) end
  end
  offer_files(l, ".lua")
end

-- Names and values of a recipe -------------------------------------------------------

-- Return the plan of the line in a world, with one more argument, or nil if the recipe refuses it.
local function plan(l, world, argument)
  local args = table.move(l.args, 1, #l.args, 1, {})
  args[#args + 1] = argument
  local done, made = pcall(l.loaded.plan, l.loaded, world, args, l.params)
  return done and made or nil
end

local function late() return os.clock() > SECONDS end

-- Return a plan in the world of the line, else in the smallest power of two that the recipe accepts; or nil.
local function any_plan(l)
  if l.world then return plan(l, l.world) end
  for _, world in ipairs(POWERS) do
    local made = plan(l, world)
    if made or late() then return made end
  end
end

-- Offer the divisors of the world that the recipe accepts. If it accepts none, as when other parameters are missing,
-- offer all divisors. Without a world, offer powers of two.
local function offer_sizes(l, name)
  local offered, all = 0, false
  repeat
    local tried = 0
    for n = 1, math.min(l.world or 64, 1 << 20) do
      if tried == MOST then break end
      if l.world and l.world % n == 0 or not l.world and n & (n - 1) == 0 then
        tried = tried + 1
        if not l.world or all or late() or plan(l, l.world, name .. "=" .. n) then
          offer(l, tostring(n))
          offered = offered + 1
        end
      end
    end
    all = not all
  until offered > 0 or not all
end

-- Offer the default of a text parameter, and the words in its documentation that the recipe accepts, unless the recipe
-- accepts any word.
local function offer_choices(l, param)
  local made, usual = any_plan(l), param.default or ""
  if usual ~= "" then offer(l, usual, "default") end
  if not made or plan(l, made.world, param.name .. "=no-such-word") then return end
  for word in param.doc:gmatch "[^ ,;()]+" do
    if late() then return end
    if word ~= usual and #word < 64 and plan(l, made.world, param.name .. "=" .. word) then offer(l, word) end
  end
end

local function offer_values_of(l, param)
  if param.kind == "flag" then return offer_each(l, { "true", "false" }) end
  if param.kind == "size" then return offer_sizes(l, param.name) end
  if param.kind == "file" then return offer_files(l) end
  if param.choices and #param.choices > 0 then
    for i, choice in ipairs(param.choices) do offer(l, choice, i == 1 and "default" or nil) end
  elseif param.kind == "text" then
    offer_choices(l, param)
  else
    offer(l, param.default or "", "default")
  end
end

-- Offer the values of NAME=.
local function offer_values(l, params)
  local name, value = l.last:match "^([^=]*)=(.*)$"
  local param = recipe.declared(params, name)
  if param then
    l.head, l.last = name .. "=", value
    offer_values_of(l, param)
  end
end

-- Offer NAME= for all parameters that are not on the line yet, and for their aliases.
local function offer_names(l, params)
  local given = {}
  for _, argument in ipairs(l.args) do
    local param = recipe.declared(params, argument:match "^[^=]*")
    if param then given[param] = true end
  end
  for _, param in ipairs(params) do
    if not given[param] then
      offer(l, param.name .. "=", param.doc)
      for _, alias in ipairs(param.aliases) do offer(l, alias .. "=", param.doc) end
    end
  end
end

local function offer_families(l)
  for _, name in ipairs((any_plan(l) or { families = {} }).families) do offer(l, name) end
end

-- Offer names, or objects with a name.
local function offer_named(l, list)
  for _, one in ipairs(list) do
    if type(one) == "string" then offer(l, one) else offer(l, one.name, one.doc) end
  end
end

-- Offer what may follow the recipe: the words that the subcommand takes, "vs", parameters and their values.
local function offer_of_recipe(l)
  local info, command, asks = l.loaded:info(), l.command, l.command.asks
  local params = asks == "queries" and #l.words > 0 and info.arguments or info.params
  if command.bare then return end
  if l.last:find "=" then return offer_values(l, params) end
  if #l.words < (command.words or 0) then
    if asks == "families" then offer_families(l) end
    if asks == "queries" then offer_named(l, info.queries) offer_named(l, info.getters) end
    if asks == "policies" then offer_named(l, info.policies) end
  end
  if command.sides and not l.vs then offer(l, "vs", "the other side") end
  if asks ~= "policies" or #l.words == 0 then offer_names(l, params) end
end

-- Options ------------------------------------------------------------------------------

-- Offer the values of an option: the listed values, or what the word for the value in the help means, as FILE.
local function offer_option_values(l, option)
  local kind = option[2]
  offer_each(l, line.values(option) or {})
  if kind == "RECIPE" then offer_recipes(l) end
  if kind == "FILE" or kind == "FOLDER" then offer_files(l) end
  if kind == "F,G" and l.loaded then offer_families(l) end
  if kind == "T" and l.loaded then offer_named(l, (any_plan(l) or {})[option[1] .. "s"] or {}) end
end

-- Return the option that a word such as "-o", "--output" or "--output=VALUE" names.
local function option_of(command, word)
  for _, option in ipairs(line.options(command)) do
    local letter = option.letter and "-" .. option[1]:sub(1, 1)
    if word:match "^%-%-([^=]*)" == option[1] or word == letter then return option end
  end
end

-- The line -----------------------------------------------------------------------------

local function read_value(l, option, value)
  local name = option[1]
  if name == "world" then l.world = math.tointeger(tonumber(value:match "^%d+")) end
  if name == "params" then l.params = value end
  if name == l.command.recipe_from then l.recipe = value end
  if name == "option" then l.args[#l.args + 1] = value end
end

local function read_word(l, word)
  local option = word:find "^%-" and option_of(l.command, word)
  if l.awaited then
    read_value(l, l.awaited, word)
    l.awaited = nil
  elseif option and word:find "=" then
    read_value(l, option, word:match "=(.*)$")
  elseif option then
    l.awaited = (option[2] or option.values) and not option.maybe and option or nil
  elseif word == "vs" then
    l.vs, l.earlier, l.recipe, l.args = true, l.recipe, nil, {}
  elseif word:find "^[^/=]*=" then
    l.args[#l.args + 1] = word
  elseif not word:find "^%-." and not l.recipe and not l.command.recipe_from then
    l.recipe = word
  elseif not word:find "^%-" and #l.words < (l.command.words or 0) then
    l.words[#l.words + 1] = word
  end
end

local function complete_command(l)
  local command, option = l.command, l.last:find "^%-" and option_of(l.command, l.last)
  if option and l.last:find "=" and not l.awaited then
    l.awaited = option
    l.head, l.last = l.last:match "^(.-=)(.*)$"
  end
  if l.last:find "^%-" and not l.awaited then
    for _, one in ipairs(line.options(command)) do offer(l, "--" .. one[1], one.help) end
    return
  end
  local bare = not l.recipe and not command.recipe_from
  local file = (command.recipe_from or command.asks == "files") and #l.words < (command.words or 0)
  if bare then l.recipe = l.earlier end -- side B without a recipe has that of A
  if l.recipe and not line.from_stdin(l) and not line.is_saved(l) then
    local done, loaded = pcall(mg.load, l.recipe)
    l.loaded = done and loaded or nil
  end
  if l.awaited then return offer_option_values(l, l.awaited) end
  if file and not l.last:find "=" then
    offer_files(l)
  elseif bare and command.recipe and not l.last:find "=" then
    offer_recipes(l)
  end
  if l.loaded then offer_of_recipe(l) end
end

return function(rows, words)
  local l = { last = words[#words] or "", head = "", args = {}, words = {} }
  local name = #words > 1 and words[1] ~= "help" and words[1]
  if not name then
    if #words < 3 then
      for _, row in ipairs(rows) do offer(l, row.name, row.summary) end
    end
    if #words < 2 then offer_each(l, { "help", "--help", "--version" }) end
    return 0
  end
  for _, row in ipairs(rows) do
    if row.name == name then
      l.command = row
      for i = 2, #words - 1 do read_word(l, words[i]) end
      complete_command(l)
    end
  end
  return 0
end
