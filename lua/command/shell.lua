-- SPDX-License-Identifier: MIT
--
-- moongrid shell: a prompt for Lua, in which the recipe's topology and the words of recipes are defined.

local host = require "host"
local commands = require "command.base.commands"
local line = require "command.base.line"
local mg = require "moongrid"
local recipe = require "command.base.line_recipe"
local text = require "command.base.text"

local WORDS_MAX <const> = 64

local help = table.concat({
  "tp                a family with its groups, by its name; t has all families, p the parameters, world the ranks",
  "tp:ranks(0)       the ranks of a group; Tab after tp: or t. shows what there is",
  "x = #tp           any Lua; a name that is assigned stays",
  ":why 0 1          a subcommand for this recipe, as :draw --family tp; :help why is its help",
  "reload            read the recipe again, which forgets assigned names",
  "exit              end, as Ctrl-D does",
}, "\n") .. "\n"

-- Return the path of the history file, and make its folder; or nil if there is no folder for it.
local function history()
  local state, home = os.getenv "XDG_STATE_HOME" or "", os.getenv "HOME" or ""
  local folder = state:find "^/" and state or home:find "^/" and home .. "/.local/state"
  if not folder then return nil end
  for stop in (folder .. "/moongrid/"):gmatch "()/" do
    if stop > 1 then pcall(host.make_folder, (folder .. "/moongrid"):sub(1, stop - 1), true) end
  end
  return folder .. "/moongrid/shell"
end

-- Load and plan the recipe. Return the loaded recipe, whose `run` evaluates lines, and the plan.
local function begin(of)
  local loaded = recipe.load(of)
  return loaded, recipe.plan(of, loaded)
end

local words = {
  help = function() text.put(help) end,
  exit = function(shell) shell.ended = true end,
  reload = function(shell)
    local loaded, plan = begin(shell.of)
    shell.loaded = loaded
    if shell.asks then text.head(plan) end
  end,
}
words.quit = words.exit

-- Run a line such as ":why 0 8" as `moongrid why` for this recipe, with the parameters of the command line.
local function start(of, typed)
  local name, rest = typed:match "^[ \t]*([^ \t]*)(.*)$"
  local all = { name }
  if name == "" then text.usage "a colon takes a subcommand of moongrid for this recipe, as :why 0 1" end
  if name == of.command.name then text.usage "this is a shell already" end
  for _, word in ipairs(name == "help" and {} or of.typed) do
    if word ~= "--" then all[#all + 1] = word end
  end
  for word in rest:gmatch "[^ \t]+" do all[#all + 1] = word end
  if select(2, rest:gsub("[^ \t]+", "")) >= WORDS_MAX then text.usage("a line has at most %d words", WORDS_MAX) end
  local code = host.start(all)
  if code ~= 0 then error(code, 0) end
end

-- Run the typed text. Return whether it is incomplete.
local function run(shell, typed)
  local word = typed:match "^%s*:?(%a+)%s*%(?%s*%)?%s*$" or typed:find "^%s*:?%?%s*$" and "help"
  local subcommand = typed:match "^%s*:([^:].*)$" or typed:match "^%s*:$" and ""
  if words[word] then
    words[word](shell)
  elseif subcommand then
    start(shell.of, subcommand)
  elseif typed:find "%S" then
    local out = shell.loaded:run(typed)
    if out and out ~= "" then text.put((out:gsub("[^\n]+", host.shown)), "\n") end
    return not out
  end
end

-- Print an error without its line number, since the line is on the screen. Return its exit code.
local function say(raised, typed)
  if math.type(raised) == "integer" then return raised end
  local code = (mg.status(raised) or 100) // 100
  local word, hint = typed:match "^%s*(%l+)%f[%s\0]", ""
  for _, command in ipairs(word and commands() or {}) do
    if command.name == word then hint = ("; a subcommand has a colon: :%s"):format(typed:match "^%s*(.-)%s*$") end
  end
  text.say(raised:gsub("^line:%d+: ", "") .. hint)
  return code
end

-- Run lines up to the end of input. At a terminal an error is printed and the prompt goes on; otherwise the first error
-- ends the shell.
local function converse(shell)
  local asks, typed, code = shell.asks, "", 0
  local function complete(before) return shell.loaded:complete(before) end
  local function plain(prompt)
    if asks then text.put(prompt) io.stdout:flush() end
    return io.read()
  end
  local read = asks and host.editor(complete, history()) or plain
  while not shell.ended and (asks or code == 0) do
    local next_line = read(typed == "" and "> " or ">> ")
    if not next_line then break end
    if typed ~= "" and next_line == "" and asks then typed = "" end -- an empty line drops the incomplete text
    typed = typed .. (typed == "" and "" or "\n") .. next_line
    local done, more = pcall(run, shell, typed)
    code = done and 0 or say(more, typed)
    io.stdout:flush()
    if not done or not more then typed = "" end
  end
  if asks then
    text.put(shell.ended and "" or "\n")
    return 0
  end
  if code == 0 and typed ~= "" then text.usage("the last lines are unfinished: %s", typed) end
  return code
end

return {
  name = "shell",
  place = 160,
  takes = "RECIPE --world N [...]",
  summary = "a prompt for Lua with a recipe's families",
  usage = "moongrid shell RECIPE --world N [NAME=VALUE ...]",
  about = "Read lines of Lua and print what they return. The names are the words of recipes, the families and grids\n"
    .. "of this recipe, its topology t, the world, and the parameters p. A name that is assigned stays.\n"
    .. "A line that begins with a colon is a subcommand for this recipe: ':why 0 8', ':draw --family tp',\n"
    .. "':diff vs tp=4'. help, reload and exit are lines, too; reload reads the recipe again.\n"
    .. "At a terminal lines are edited, completed by Tab and kept in a history, if libedit or readline is here; in a\n"
    .. "pipe the first error ends the shell.",
  example = "moongrid shell megatron --world 16 tp=2 pp=2",
  recipe = true,
  options = { line.world "ranks in the world" },
  run = function(of)
    line.needs(of, of.world)
    if text.ranks > 1 then text.usage "shell is for one process, without a launcher" end
    if line.from_stdin(of) then
      text.usage "shell reads its lines from standard input; write the recipe to a file"
    end
    local loaded, plan = begin(of)
    local shell = { of = of, loaded = loaded, asks = text.is_terminal and select(6, host.terminal()) }
    if shell.asks then
      text.head(plan)
      text.put "t is its topology, world its ranks, p its parameters; families and grids have their own names.\n"
      text.put ":why 0 1, :draw and other subcommands use this recipe. Tab completes, help tells more, Ctrl-D ends.\n"
    end
    return converse(shell)
  end,
}
