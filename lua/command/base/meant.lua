-- SPDX-License-Identifier: MIT
--
-- meant: refuse a word of a command line, and say what to type instead, if that is certain. This file is loaded only
-- when a word is refused.

local commands = require "command.base.commands"
local host = require "host"
local line_words = require "command.base.line"
local mg = require "moongrid"
local usage = require "command.base.text".usage

local M = {}

local SHOWN <const> = 4 -- if more subcommands have an option, they are not named

-- What a typed line has -----------------------------------------------------------

-- Return the names of the parameters of a line's recipe; nil if the recipe is not known, or if the subcommand takes no
-- parameters. The recipe may stand after the word that is refused, so also look for it among `words`.
local function parameters(line, words)
  local bundled, names = {}, {}
  for _, name in ipairs(mg.recipes()) do bundled[name] = true end
  local function is_recipe(word) return bundled[word] or word:find "%.lua$" and host.kind(word) == "file" end
  local path = line.recipe
  for _, word in ipairs(not path and words or {}) do path = path or is_recipe(word) and word end
  if line.command.bare or not path or not is_recipe(path) then return nil end
  local done, loaded = pcall(mg.load, path, { log = function() end })
  for _, one in ipairs(done and loaded:info().params or {}) do
    names[#names + 1] = one.name
    table.move(one.aliases or {}, 1, #(one.aliases or {}), #names + 1, names)
  end
  return done and names or nil
end

local function has(list, name)
  for _, one in ipairs(list) do
    if one == name then return true end
  end
  return false
end

-- Return the subcommands with an option for which holds(command, option) is true, as text: "check, diff"; and their
-- number.
local function with(holds)
  local found = {}
  for _, command in ipairs(commands()) do
    local holds_one = false
    for _, option in ipairs(line_words.options(command)) do holds_one = holds_one or holds(command, option) end
    if holds_one then found[#found + 1] = command.name end
  end
  return table.concat(found, ", "), #found
end

-- Options -------------------------------------------------------------------------

local unicode_dash = "^[\xE2][\x80\x88][\x90-\x95\x92][-\xE2\x80\x93\x94]*"

-- Return what to write instead of an unknown option of one dash; nil if that is not clear.
local function for_letter(line, options, word)
  local whole = {}
  if word:find "^%-%d" then return "ranks are 0 or more" end
  if word:find "^%-[nN]" and line.command.launched then return "mpirun -n N starts N ranks" end
  if word:find "^%-[nNw]" then return "--world N is the number of ranks" end
  if word == "-o" then return "> FILE writes the output to a file" end
  for _, option in ipairs(#word == 2 and options or {}) do
    if option[1] ~= "help" and option[1]:sub(1, 1) == word:sub(2) then whole[#whole + 1] = "--" .. option[1] end
  end
  return whole[1] and table.concat(whole, " and ") .. (whole[2] and " have" or " has") .. " no short form"
end

-- Return whether an option of a launcher is the number of ranks, or was meant so: --nproc_per_node, --ntasks, --ranks.
local function counts_ranks(word)
  return word:find "^nproc" or word:find "ranks$" or word:find "tasks$" or word:find "gpus$" or word:find "nodes$"
end

-- Refuse the option words[at], which has one dash or two.
function M.option(line, options, words, at)
  local typed, command, names = words[at], line.command, {}
  local word, value = typed:match "^%-+([^=]*)=?(.*)$"
  local shown = typed:match "^%-+[^=]*"
  local function refuse(...) usage("unknown option '%s' of %s%s", shown, command.name, string.format(...)) end
  local whole -- the option that begins with the typed letters
  for i, option in ipairs(options) do
    names[i] = option[1]
    whole = whole or #word > 0 and option[1]:sub(1, #word) == word and option[1]
    if option[1] == word and typed:find "^%-%-" then usage("option '--%s' takes no value", word) end
  end
  local letter = not typed:find "^%-%-" and not (whole and #word > 2) and for_letter(line, options, typed)
  if letter then refuse("; %s", letter) end
  if counts_ranks(word) and has(names, "world") then refuse "; --world N is the number of ranks" end
  local params, name = parameters(line, words), word:gsub("%-", "_")
  local following = words[at + 1] and not words[at + 1]:find "^%-" and words[at + 1]
  if value == "" then value = following or "VALUE" end
  if params and has(params, name) then refuse("; it is a parameter: %s=%s", name, value) end
  if following and has(names, "params") and (following:find "%.json$" or following:find "%.ya?ml$") then
    refuse("; --params %s reads parameters", following)
  end
  local others, n = with(function(_, option) return option[1] == word end)
  if n > SHOWN then others = "other commands" end
  local elsewhere = n > 0 and ("; %s %s it"):format(others, n > 1 and "have" or "has") or ""
  local tail, near = host.nearest(word, names)
  local _, param = host.nearest(name, params or {})
  param = param and (name:find "_" or name:sub(1, #param) == param) and param -- --tensor-parallel, --tp2
  if param and (not near or word:find("^" .. near .. "[-_]")) then
    refuse("; the nearest parameter is %s=%s", param, value)
  elseif not typed:find "^%-%-" and whole then
    refuse("; it has two dashes: --%s", whole)
  elseif near then
    refuse("%s%s", tail, elsewhere)
  elseif command.sides and word == "vs" then
    refuse "; 'vs' has no dashes"
  elseif #word > 1 and command.takes:find("%f[%w]" .. word:upper():gsub("%W", "%%%0") .. "%f[%W]") then
    refuse("; write %s without an option: moongrid %s %s", word:upper(), command.name, command.takes)
  end
  for _, option in ipairs(options) do
    if following == option[1] then refuse("; write --%s", following) end
    for _, known in ipairs(line_words.values(option) or {}) do -- --nccl, --dry-run
      if known == word:match "^%w+" then refuse("; write --%s %s", option[1], known) end
    end
  end
  if n > 0 then refuse("%s%s", tail, elsewhere) end
  if has(names, "output") and (word == "html" or word == "svg") then refuse("; write -o FILE.%s", word) end
  local open = command.recipe and not command.bare and not command.recipe_from and not params
  refuse("%s%s", tail, open and ("; parameters are written %s=VALUE"):format(name) or "")
end

-- Words that people type instead of the name of a subcommand, which is the value here.
M.verbs = {
  show = "plan", print = "plan", plot = "draw", view = "draw", visualize = "draw", render = "draw", validate = "check",
  verify = "check", lint = "check", test = "check", compare = "diff", launch = "run", exec = "run",
  list = "recipes", ls = "recipes", new = "init", cost = "step", price = "step",
}

-- Refuse a word whose dashes a word processor has replaced by one long dash.
function M.dash(word)
  local _, last = word:find(unicode_dash)
  if last then usage("'%s' begins with a dash of a word processor; write --%s", word, word:sub(last + 1)) end
end

-- Words ---------------------------------------------------------------------------

-- Refuse a word where the recipe is expected, if a recipe follows, and show the command line with the recipe first.
function M.recipe_first(line, word, words)
  words = table.move(words, 1, #words, 1, {})
  local bundled = mg.recipes()
  if has(bundled, word) then return end
  for i, one in ipairs(words) do
    if one:find "%.lua$" or one:find "%.json$" or has(bundled, one) then
      table.insert(words, 1, table.remove(words, i))
      -- If the subcommand takes no further words, `word` is the number of ranks.
      for at = 2, line.command.words and 1 or #words do
        if words[at] == word then
          table.remove(words, at)
          if not line.world then table.move({ "--world", word }, 1, 2, #words + 1, words) end
          break
        end
      end
      usage("the recipe goes before '%s': moongrid %s %s", word, line.command.name, table.concat(words, " "))
    end
  end
end

-- If words[at] continues the value of the option before it (a list or a machine with blanks), return how to write the
-- value as one word.
local function with_option(line, words, at)
  local before = words[at - 1] or ""
  local name, value, option = table.unpack(line.last or {})
  if type(value) ~= "string" or before:sub(-#value) ~= value then return nil end
  local kind = option[2] or ""
  if kind == "MACHINE" then
    return words[at]:find "[:=]" and ('quotes make one word: --machine "%s %s"'):format(value, words[at])
  end
  local list = kind:find "," or kind == "RANKS" or kind == "NODES"
  local fits = words[at]:find "^[%w_.,-]+$" and (value:find "^%d" == nil) == (words[at]:find "^%d" == nil)
  return list and fits and ("a list has no blanks: --%s %s,%s"):format(name, (value:gsub(",$", "")), words[at])
end

-- Return what to write for a word that belongs to no option and is not NAME=VALUE; nil if that is not clear.
local function for_word(line, words, at)
  local word, following, options = words[at], words[at + 1] or "", {}
  for _, option in ipairs(line_words.options(line.command)) do options[option[1]] = option end
  local name, value = word:match "^([%a_][%w_.]*):(%S*)$"
  local ranks = word:find "^%d[%d,.]*$" and (options.ranks and "ranks" or options.rank and "rank")
  if word:find "^[,;]$" then return "put only blanks between parameters" end
  if name then return ("write %s=%s"):format(name, value ~= "" and value or following) end
  if word:find "^%d+$" and options.world and not line.world then return "the number of ranks is --world " .. word end
  if ranks and not line[ranks] then return ("write --%s %s"):format(ranks, word) end
  if word:find "^[%a_][%w_.]*$" and (following:find "^[%d.]+$" or following == "true" or following == "false") then
    return ("write %s=%s"):format(word, following)
  end
  local is_output = options.output and word:find ".%.%a+$" and not word:find "%.lua$"
  return is_output and "a file is written by -o " .. word
end

-- Refuse words[at], which is not a parameter and follows the recipe.
function M.word(line, words, at)
  local command, word = line.command, words[at]
  if command.bare then usage("%s takes one recipe and no further word '%s'", command.name, word) end
  if word == "vs" then
    if line.other then usage "write 'vs' once, between the two sides" end
    usage("%s takes no 'vs'; %s take it", command.name, with(function(one) return one.sides end))
  end
  local blanks = (words[at + 1] or ""):find "^=" or (line.args[#line.args] or ""):find "=$" -- tp = 2 is three words
  local hint = not blanks and (with_option(line, words, at) or for_word(line, words, at))
  local sides = line.other and not blanks and "; write 'vs' between the two sides, unless both are saved plans"
  usage("argument '%s' is not of the form NAME=VALUE%s, and the recipe is '%s'%s", word,
        blanks and ", without blanks" or "", line.recipe, hint and "; " .. hint or sides or "")
end

return M
