-- SPDX-License-Identifier: MIT
--
-- line: read the words of a command line by the table of its subcommand (lua/command/README.md).
--
-- A line has the values of options by their names, and
--   recipe  a file, a bundled name or "-"; nil: none          args    NAME=VALUE and values of --option, as typed
--   words   other words, after the recipe if there is one     before  how many of args stand before the last of `words`
--   command the table of the subcommand                       other   the line of the other side of "A vs B"
--   typed   all words, if the line has one side               given   values of options as typed, by their names

local host = require "host"
local mg = require "moongrid"
local text = require "command.base.text"

local M = {}

local WORLD_MAX, MACHINE_MAX, WORLDS_MAX = 2147483647, 4096, 64
local usage = text.usage

-- Values -------------------------------------------------------------------------
-- A reader gets the name of the option with its dashes, the word, the value so far if the option is repeated, and the
-- option; it returns the new value.

-- What an integer counts, by the word that stands for the value in the help ("--limit SECONDS").
local units = { S = "seconds", SECONDS = "seconds", MIB = "MiB", BYTES = "bytes" }

function M.integer(low, most)
  return function(name, word, _, option)
    local n = word:find "^%s*[+-]?%d+$" and math.tointeger(tonumber(word))
    if n and n >= low and n <= most then return n end
    local unit = option and units[option[2]]
    usage("%s is an integer from %d to %d%s, not '%s'", name, low, most, unit and (", the number of %s"):format(unit)
          or "", word)
  end
end

M.index = M.integer(0, WORLD_MAX)
M.number = M.integer(1, WORLD_MAX)
M.size = M.integer(1, 1 << 53) -- of bytes

-- Append a size to `sizes`, or the sizes of a range: 8-64 is 8, 16, 32, 64.
local function put_range(sizes, name, word)
  local first, last = word:match "^(%d+)%-?(%d*)$"
  if not first or word:find "%-$" then
    usage("%s is an integer from 1 to %d, a list as 8,16 without blanks, or a range as 8-64; not '%s'", name, WORLD_MAX,
          word)
  end
  first = M.number(name, first)
  last = last ~= "" and M.number(name, last) or first
  if last < first then usage("%s %d-%d ends before it starts", name, first, last) end
  local size = first
  while size <= last do
    if #sizes == WORLDS_MAX then usage("%s takes at most %d sizes", name, WORLDS_MAX) end
    sizes[#sizes + 1], size = size, 2 * size
  end
  if sizes[#sizes] ~= last then
    text.note("%s %d-%d takes doubled sizes, the last of them %d; to include %d, write %d-%d,%d",
              name, first, last, sizes[#sizes], last, first, last, last)
  end
end

-- Read a list of sizes, "8,64-4096".
function M.worlds(name, list, sizes)
  sizes = sizes or {}
  for word in (list .. ","):gmatch "([^,]*)," do put_range(sizes, name, word == "" and list or word) end
  return sizes
end

-- Read the flops of --flops: "400e12", "400T".
function M.flops(name, word)
  local number, unit = word:match "^%s*([%d.eE+]+)([kMGTPE]?)"
  local tail = number and word:match("^%s*" .. number:gsub("%p", "%%%0") .. unit .. "(.*)$")
  local x = tonumber(number)
  local n = x and x * 1000.0 ^ (("kMGTPE"):find(unit, 1, true) or 0) or 0
  if unit == "" then n = x or 0 end
  if (tail == "" or tail == "FLOP/s" or tail == "flops") and n > 0 and n < 1e24 then return n end
  usage("%s is the number of operations of a GPU in a second, as 400e12 or 400T, not '%s'", name, word)
end

local function world(name, word)
  if word:find "^%d+[%-,.:]+%d" and not tonumber(word) then
    usage("%s is one number of ranks, in digits, not '%s'; moongrid check takes several", name, word)
  end
  return M.number(name, word)
end

-- Read --machine. Return a Machine; in a moongrid without the module for machines, the number of ranks of a node.
function M.machine(name, word)
  local ranks = (word:find "^%d+$" or not rawget(mg, "open_machine")) and M.integer(1, MACHINE_MAX)(name, word)
  if not rawget(mg, "open_machine") then return ranks end
  local done, model = pcall(mg.open_machine, word)
  if done then return model end
  if model == "not enough memory" then model = "out of memory" end -- Lua's own message
  text.say(model, true)
  if model:find "^out of memory" then error(3, 0) end
  error(host.kind(word:match "^[^ ]*") and (mg.status(model) or 200) // 100 or 2, 0)
end

function M.world(help) return { "world", "N", world, help = help, side = true } end

local function params(name, word)
  if word:find "[={]" and not host.kind(word) then
    usage("%s is a file, JSON, YAML or Lua, not '%s'; a parameter is written tp=2, without %s", name, word, name)
  end
  return word
end

local recipe_options = {
  { "machine", "MACHINE", M.machine, agreed = true,
    help = 'where ranks run: levels, as "node:4 gpu:8", a preset, a file, or the number of ranks of a node' },
  { "params", "FILE", params, side = true,
    help = "parameters: JSON, YAML, or Lua that returns a table; NAME=VALUE overrides them" },
  { "option", "FAMILY.OPTION=VALUE", side = true,
    help = "an option of a family, as tp.max_ctas=8; * matches any: '*.timeout=600'" },
}
local color = { "color", "auto|always|never",
                help = "when to use colour; every command accepts it, even if it prints none" }
local help = { "help" } -- no help lists this option

-- Return all options of a subcommand, its own first.
function M.options(command)
  local all = table.move(command.options or {}, 1, #(command.options or {}), 1, {})
  if command.recipe and not command.bare then table.move(recipe_options, 1, #recipe_options, #all + 1, all) end
  all[#all + 1], all[#all + 2] = color, help
  return all
end

-- Return the list of the values that an option accepts, or nil if there is no such list.
function M.values(option)
  if option.values then return option.values() end
  if not (option[2] or ""):find "|" then return end
  local list = {}
  for word in option[2]:gmatch "[^|]+" do list[#list + 1] = word end
  return list
end

-- Options ------------------------------------------------------------------------

local function check_value(option, value)
  local known = M.values(option)
  if not known then return end
  for _, word in ipairs(known) do
    if word == value then return end
  end
  if option.values then usage("unknown %s '%s'%s", option[1], value, (host.nearest(value, known))) end
  local last = table.remove(known)
  usage("--%s is %s or %s, not '%s'", option[1], table.concat(known, ", "), last, value)
end

-- Read an option, for both sides of "A vs B" unless it has `side`. `value` is nil if the option is a flag, or if it has
-- `maybe` and is typed without a value.
local function read_option(line, option, value)
  local name, read = option[1], option[3]
  if value and not option.maybe then check_value(option, value) end
  if name == "option" then
    if not value:find "^[^=]-%..*=" then
      usage("--option is FAMILY.OPTION=VALUE, as tp.max_ctas=8, not '%s'", value)
    end
    line.args[#line.args + 1] = value
    return
  end
  value = value or option.maybe and "" or value == nil and true
  local was = line.given[name]
  line[name] = read and read("--" .. name, value, line[name], option) or value
  if was ~= nil and was ~= value and type(line[name]) ~= "table" then
    local list = (option[2] or ""):find "," and ("; a list is one word: --%s %s,%s"):format(name, was, value)
    usage("--%s is given twice, '%s' and '%s'%s", name, was, value, list or "")
  end
  line.given[name], line.last = value, { name, value, option }
  if name == line.command.recipe_from then line.recipe = value end
  if line.other and not option.side then line.other[name], line.other.given[name] = line[name], value end
end

-- Return the option that a word names, and the value after "=", if there is one. The word may have only the beginning
-- of the name, if the name of no other option begins so.
local function find_option(options, word)
  local name, value = word:match "^%-%-([^=]+)=?(.*)$"
  local found, many
  for _, option in ipairs(options) do
    if option[1] == name then
      found, many = option, false
      break
    end
    if name and option[1]:sub(1, #name) == name then found, many = option, found ~= nil end
  end
  if found and not many then return found, word:find "=" and value or nil end
end

-- Return the option that a word such as "-o" names by one letter, and the value that follows the letter in this word;
-- nil if there is no such option.
local function find_letter(options, word)
  if word == "-h" then return help end
  for _, option in ipairs(options) do
    local whole = #word > 3 and option[1]:sub(1, #word - 1) == word:sub(2) -- -out is not -o with the value "ut"
    if option.letter and not whole and word:sub(2, 2) == option[1]:sub(1, 1) then
      return option, #word > 2 and word:sub(3) or nil
    end
  end
end

-- Words --------------------------------------------------------------------------

-- Return whether a word is NAME=VALUE, and not a path with a "=".
local function is_argument(word) return word:find "^[^/=]*=" ~= nil end

-- Return meant.lua. It is loaded here and not at the top, because it requires this file.
local function meant() return require "command.base.meant" end

local function read_word(line, words, at)
  local command, word = line.command, words[at]
  if word:byte() == 0xE2 then meant().dash(word) end
  if word == "help" and #words == 1 and not host.kind(word) then
    line.help = true
  elseif not command.recipe and #line.words < (command.words or 0) then
    line.words[#line.words + 1] = word
  elseif not command.recipe then
    local levels = word:find ":" and line.words[1]
    usage("%s takes no argument '%s'%s", command.name, word,
          levels and ('; quotes make one word: moongrid %s "%s %s"'):format(command.name, levels, word) or "")
  elseif is_argument(word) then
    if #line.args == 256 then usage "more than 256 arguments" end
    line.args[#line.args + 1] = word
  elseif not line.recipe and not command.recipe_from and word ~= "vs" then
    if word:find "^%d+$" and not host.kind(word) then meant().recipe_first(line, word, words) end
    line.recipe = word
  elseif #line.words < (command.words or 0) then
    line.words[#line.words + 1], line.before = word, #line.args
  elseif command.words then
    usage("unexpected argument '%s': moongrid %s %s", word, command.name, command.takes)
  else
    meant().word(line, words, at)
  end
end

-- Read the words from `at` to `last`. `alone`: a line of two sides has no 'vs', which only two saved plans may leave
-- out; then stop before the second plan and return its index.
local function read_words(line, words, at, last, alone)
  local options = M.options(line.command)
  while at <= last do
    local word, option, value = words[at], nil, nil
    if word == "--" then
      for i = at + 1, last do read_word(line, words, i) end
      return
    elseif word:find "^%-%-" then
      option, value = find_option(options, word)
      local takes = option and (option[2] or option.values or option.maybe)
      if not option or value and not takes then meant().option(line, options, words, at) end
    elseif word:find "^%-." then
      option, value = find_letter(options, word)
      if not option then meant().option(line, options, words, at) end
    elseif alone and line.recipe and M.is_saved(line) and M.is_saved { recipe = word } then
      return at
    else
      read_word(line, words, at)
    end
    -- "--groups tp" means "--groups=tp", unless tp can be the recipe or a parameter
    if option and option.maybe and not value and line.recipe and at < last and not words[at + 1]:find "[-=./]" then
      at, value = at + 1, words[at + 1]
    elseif option and (option[2] or option.values) and not option.maybe and not value then
      if at == last then usage("option '%s' needs a value%s", word, option[2] and ": " .. option[2] or "") end
      at, value = at + 1, words[at + 1]
    end
    if option then read_option(line, option, value) end
    at = at + 1
  end
end

local function new(command) return { command = command, args = {}, words = {}, given = {}, before = 0 } end

-- Return whether the recipe is a saved plan. A saved plan has its own world and takes no parameters.
function M.is_saved(line)
  if not line.recipe then return false end
  if M.from_stdin(line) then
    return text.ranks == 1 and mg.is_saved("stdin", M.stdin())
  end
  return mg.is_saved(line.recipe)
end

function M.from_stdin(line) return line.recipe == "-" or line.recipe == "/dev/stdin" end

local typed -- the text of standard input, kept because `diff - vs tp=2` loads it twice
function M.stdin()
  if text.ranks > 1 then
    text.refuse(2, "a launcher gives standard input to only one rank; write the recipe to a file")
  end
  typed = typed or host.stdin()
  return typed
end

-- Refuse an output that is an input of the command line, that contains an input, or that lies in a folder among
-- `line.words`. Refuse also to replace a Lua file that is not empty, because people edit recipes. All other files are
-- replaced.
local function check_output(line, words)
  local output = line.output
  if not output then return end
  local function check(input, tree)
    local done, message = pcall(host.apart, output, input, tree)
    if not done then
      text.say(message, true)
      error((mg.status(message) or 300) // 100, 0)
    end
  end
  check "/dev/stdin"
  for _, word in ipairs(line.words) do check(word, true) end
  local own = false
  for _, word in ipairs(words) do
    local is_output = not own and word:sub(-#output) == output
    own = own or is_output
    if not is_output then
      for _, input in ipairs { word, word:match "^[^ ]*", word:match "=(.*)$" } do check(input) end
    end
  end
  local kind, bytes = host.kind(output)
  if output:find "%.lua$" and kind ~= "folder" and (bytes or 0) > 0 then
    text.refuse(1, "%s is there already; no Lua file is written over: take it away, or take another name", output)
  end
end

-- Refuse options that stand below a head such as "with --steps" in the help, if that option is not given.
local function check_heads(line)
  local needed
  for _, option in ipairs(line.command.options or {}) do
    if option.head then needed = option.head:match "^with %-%-([%w-]+)$" end
    if needed and line[option[1]] ~= nil and not line[needed] then
      usage("--%s is for --%s", option[1], needed)
    end
  end
end

local function read(command, words)
  local line = new(command)
  line.typed = words
  read_words(line, words, 1, #words)
  text.color(line.color)
  local recipe = not line.help and line.words[1] and line.recipe
  if recipe and recipe:find "^%w+$" and not host.kind(recipe) then meant().recipe_first(line, recipe, words) end
  if not line.help then check_output(line, words) check_heads(line) end
  return line
end

-- Refuse a line without a recipe, or without a world unless the recipe is a saved plan. `size` is the world of the
-- line, or true if the subcommand needs no world.
function M.needs(line, size)
  local name = line.command.name
  if not line.recipe then usage("%s needs a recipe: a file, or one that 'moongrid recipes' lists", name) end
  if size or M.is_saved(line) then return end
  local hint = ""
  for _, argument in ipairs(line.args) do
    if argument:find "^world=" then hint = "; world=N means a parameter of the recipe" end
  end
  if line.recipe:find "%.json$" and host.kind(line.recipe) == "file" then
    hint = (": %s is not a saved plan"):format(line.recipe)
  elseif not M.from_stdin(line) then
    require "command.base.line_recipe".load(line) -- if the recipe does not exist, that is the error
  end
  usage("%s needs --world N, the number of ranks%s", name, hint)
end

function M.rank_or_all(name, word) return word == "all" and word or M.index(name, word) end

-- Refuse a rank outside a world of `size` ranks. Accept every rank if `size` is nil, because a saved plan that is not
-- read yet has the world.
function M.beyond(rank, size)
  if size and rank >= size then usage("rank %d is out of range; ranks are 0 to %d", rank, size - 1) end
end

-- Return an iterator over a list such as "5,8..15". It returns the first and the last number of each range, and the
-- index of the text after the range; where the list is wrong it returns false, nil and the index of the wrong text.
function M.ranges(list)
  local at, ended = 1, false
  local function number(from)
    local digits, after = list:match("^%s*%+?(%d+)()", from)
    return digits and (math.tointeger(tonumber(digits)) or math.maxinteger), after
  end
  return function()
    if ended then return nil end
    local first, after = number(at)
    local last = first
    if first and list:find("^%.%.", after) then
      at = after + 2
      last, after = number(at)
    end
    ended = not last or last < first or list:sub(after, after) ~= ","
    if not last or last < first then return false, nil, at end
    if ended and after <= #list then return false, nil, after end
    at = after + 1
    return first, last, after
  end
end

-- Read --map, as "8..15,0..7". Return a list: for each rank of the layout after a move, its rank before the move.
-- `size` is the number of ranks after the move.
function M.map(map, size)
  local ranks = {}
  for first, last, at in M.ranges(map) do
    if not first or last > WORLD_MAX then
      text.refuse(1, "--map '%s', character %d: expected a rank, or a range such as 8..15", map:sub(1, 100), at)
    elseif last - first >= size - #ranks then
      text.refuse(1, "the map has more than the %d ranks of the world after the move", size)
    end
    for rank = first, last do ranks[#ranks + 1] = rank end
  end
  return ranks
end

-- Refuse output that lists every rank, if there are too many ranks.
function M.all_ranks(what, ranks)
  if ranks <= 1 << 20 then return end
  text.refuse(1, "%s lists every rank, which is possible up to %d ranks, not for %d; --rank R asks for one", what,
              1 << 20, ranks)
end

-- Read "A ... vs B ..." into two lines. Without a recipe of its own B has the recipe of A; a side without a world has
-- the world of the other side.
local function sides(command, words)
  local a, b, vs = new(command), new(command), 1
  a.other, b.other = b, a
  while words[vs] and words[vs] ~= "vs" do vs = vs + 1 end
  local second = read_words(a, words, 1, vs - 1, vs > #words)
  if not a.help then
    if vs > #words and not second then
      usage("%s needs two sides with 'vs' between: moongrid %s A --world N vs B", command.name, command.name)
    elseif vs == #words and M.is_saved(a) then -- if A is a recipe, an empty B is A with its defaults
      usage("nothing follows 'vs', and %s is a saved plan, which has no parameters to change", a.recipe)
    end
    read_words(b, words, second or vs + 1, #words)
  end
  text.color(a.color)
  if a.help then return a, b end
  check_output(a, words)
  check_heads(a)
  b.recipe = b.recipe or a.recipe
  if not command.launched then a.world, b.world = a.world or b.world, b.world or a.world end
  M.needs(a, command.launched or a.world)
  M.needs(b, command.launched or b.world)
  return a, b
end

-- Read the words of a subcommand's command line, into two lines if it has two sides.
function M.read(command, words)
  local two = command.sides
  if command.launched then
    two = false
    for _, word in ipairs(words) do two = two or word == "vs" and command.sides end
  end
  return (two and sides or read)(command, words)
end

return M
