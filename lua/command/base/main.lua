-- SPDX-License-Identifier: MIT
--
-- main(words): find the subcommand of a command line and run it. Return the exit code, and whether job.lua was loaded,
-- so that the subcommand may have opened a job.

local commands = require "command.base.commands"
local host = require "host"
local text = require "command.base.text"

-- Return the table of lua/command/NAME.lua, or nil. Loading makes little garbage, so the collector is stopped
-- meanwhile.
local function find(word)
  local name, tree = "command." .. word, host.source_tree()
  if not word:find "^%w+$" or tree and not host.kind(("%s/command/%s.lua"):format(tree, word)) then return end
  collectgarbage "stop"
  local loader = package.searchers[2](name) -- find_file of host_words.c: a function, or a message
  local there = type(loader) == "function"
  if there then package.preload[name] = loader end
  local command = there and require(name) or nil
  collectgarbage "restart"
  return command
end

-- Refuse a word that is not a subcommand, and name the nearest subcommand, or show the words in the right order.
local function unknown(words)
  local word, option, known = words[1], words[1]:match "^%-%-?(.*)", {}
  if word:find "^%-%-?[Vv]$" or word == "version" then
    text.usage("unknown %s '%s'; --version tells the version", option and "option" or "command", word)
  end
  local kind, general = option and "option" or "command", { "help", "version" }
  local _, near = host.nearest(option or word, option and general or require "moongrid".recipes())
  -- `belongs`: whether this word looks like one that should follow a subcommand
  local belongs = option and not near or not option and (near or word:find "[./=]")
  for i, row in ipairs(commands()) do
    known[i] = row.name
    if option == row.name then
      text.usage("unknown option '%s'; a command has no dashes: moongrid %s", word,
                 table.concat({ option, table.unpack(words, 2) }, " "))
    end
    for k = 2, belongs and #words or 0 do
      if words[k] == row.name then
        table.insert(words, 1, table.remove(words, k))
        text.usage("unknown %s '%s'; the command goes first: moongrid %s", kind, word, table.concat(words, " "))
      end
    end
  end
  if near == word or word:find "%.lua$" and host.kind(word) then
    text.usage("'%s' is a recipe; the command goes first: moongrid plan %s", word, table.concat(words, " "))
  end
  local verb = require "command.base.meant".verbs[word]
  if verb then
    text.usage("unknown command '%s'; write moongrid %s", word, table.concat({ verb, table.unpack(words, 2) }, " "))
  end
  local tail, meant = host.nearest(option or word, option and general or known)
  text.usage("unknown %s '%s'%s%s", kind, word, tail, option and "; other options go after a command"
             or not meant and near and ("; recipe '%s' goes after a command"):format(near)
             or not meant and "; moongrid --help says what each does" or "")
end

-- Raise the error of a subcommand again, with the line of the recipe that it names.
local function fail(raised)
  local status = type(raised) == "string" and require "moongrid".status(raised)
  if status then host.refuse(status, require "command.base.faults".quote(raised)) end
  error(raised, 0)
end

return function(words)
  local word = words[1] or "--help"
  if word == "--help" or word == "-h" or word == "help" and #words == 1 then
    if not words[1] then io.output(io.stderr) end
    require "command.base.help".all(commands())
    return words[1] and 0 or 2
  elseif word == "--version" then
    text.put(require "moongrid"._VERSION, "\n")
    return 0
  elseif word == "complete" then
    return require "command.base.complete"(commands(), table.move(words, 2, #words, 1, {}))
  end
  local help = word == "help"
  if help then word, words = words[2], { words[2], "--help" } end
  local command, code = find(word)
  if not command then unknown(words) end
  local reader = require "command.base.line"
  local rest = table.move(words, 2, #words, 1, {})
  local line, other = reader.read(command, rest)
  if line.help then
    require "command.base.help".one(command)
  else
    local done, raised = pcall(command.run, line, other)
    if not done then fail(raised) end
    code = raised
  end
  return code or 0, package.loaded["command.base.job"] ~= nil
end
