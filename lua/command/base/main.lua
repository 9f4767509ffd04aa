-- SPDX-License-Identifier: MIT
--
-- main(words) -> exit code, whether it joined a job: find the subcommand of a command line, and run it.

local host = require "host"
local text = require "command.base.text"

-- The names of the files of lua/command: those built in, or those of the source tree.
local function names()
  local tree, list = host.source_tree(), {}
  local pattern = tree and "^(%w+)%.lua$" or "^moongrid%.command%.(%w+)$"
  for _, file in ipairs(tree and host.folder(tree .. "/command") or host.text()) do
    list[#list + 1] = file:match(pattern)
  end
  return list
end

-- The subcommands, in the order of the help.
local function all()
  local rows = {}
  for _, name in ipairs(names()) do rows[#rows + 1] = require("command." .. name) end
  table.sort(rows, function(a, b) return a.place < b.place end)
  return rows
end

-- The table of lua/command/NAME.lua, or nil. Loading makes no garbage, so the collector stops meanwhile.
local function find(word)
  local name, tree = "command." .. word, host.source_tree()
  if not word:find "^%w+$" or tree and not host.kind(("%s/command/%s.lua"):format(tree, word)) then return end
  collectgarbage "stop"
  local loader = package.searchers[2](name) -- find_file of host_words.c: a function, or why there is none
  local there = type(loader) == "function"
  if there then package.preload[name] = loader end
  local command = there and require(name) or nil
  collectgarbage "restart"
  return command
end

-- Refuse a word that is not a subcommand: with the nearest one, or the words in their order.
local function unknown(words)
  local word, option, known = words[1], words[1]:match "^%-%-(.*)", {}
  if word:find "^%-[Vv]$" or word == "version" then
    text.usage("unknown %s '%s'; --version tells the version", word:find "^%-" and "option" or "command", word)
  end
  local kind, general = option and "option" or "command", { "help", "version" }
  local _, near = host.nearest(option or word, option and general or require "moongrid".recipes())
  local belongs = option and not near or not option and (near or word:find "[./=]") -- to a subcommand
  for i, row in ipairs(all()) do
    known[i] = row.name
    for k = 2, belongs and #words or 0 do
      if words[k] == row.name then
        table.insert(words, 1, table.remove(words, k))
        text.usage("unknown %s '%s'; the command goes first: moongrid %s", kind, word, table.concat(words, " "))
      end
    end
  end
  if near == word then text.usage("'%s' is a recipe; the command goes first: moongrid plan %s", word, word) end
  local tail = host.nearest(option or word, option and general or known)
  text.usage("unknown %s '%s'%s%s", kind, word, tail,
             option and "; other options go after a command" or "")
end

-- Raise what a subcommand raised: a message with the line of the recipe that it speaks of.
local function fail(raised)
  local status = type(raised) == "string" and require "moongrid".status(raised)
  if status then host.refuse(status, require "command.base.faults".quote(raised)) end
  error(raised, 0)
end

return function(words)
  local word = words[1] or "--help"
  if word == "--help" or word == "-h" or word == "help" and #words == 1 then
    if not words[1] then io.output(io.stderr) end
    require "command.base.help".all(all())
    return words[1] and 0 or 2
  elseif word == "--version" then
    text.put(require "moongrid"._VERSION, "\n")
    return 0
  elseif word == "complete" then
    return require "command.base.complete"(all(), table.move(words, 2, #words, 1, {}))
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
