-- SPDX-License-Identifier: MIT
--
-- Hints that are added to Lua's errors. They tell people who usually write another language what to type in Lua. This
-- file is loaded at the first error. If the cause of an error is not certain, there is no hint, because a wrong hint is
-- worse than none. nearest(name, list) returns the name in a list that was probably meant, or nil.

local nearest = ...
local find, match, gsub = string.find, string.match, string.gsub -- this Lua state has no s:find(pattern)
local M = {}

-- Names ------------------------------------------------------------------------

local import = 'recipe.import "./x.lua" gets functions of a file, recipe "x" another recipe'
local file = "a recipe reads no files; param.file gets the content of a file"
local sees = "a recipe sees no clock, environment or files; whoever plans gives it parameters"
local counts = "a loop that counts is for i = 0, n - 1 do"
local text = 'tostring(x) makes text, tonumber(x) a number, and ("%d ranks"):format(n) writes a number into a text'
local number_in_text = '("%d ranks"):format(n) writes a number into a text'
local append = "list[#list + 1] = x appends to a list"
local groups = 'a family holds groups, as in t.tp = g "tp"'
local fails = 'error "message" raises an error'
local case = "write if x == 1 then ... elseif x == 2 then ... end"
local call = "write pcall(f), which returns false and the error"
local build = "the arguments of build are world, p, t"
local write_function = "write local function f(x) return x end"
local new_name = "write local x = 1"
local list = "write { 1, 2 } for a list"
local walk_table = "for name, x in pairs(t) do goes through a table"

-- Names and operators that recipes do not have; some exist in Lua, but not in the sandbox (src/recipe/sandbox.c).
local names = {
  rank = "every rank evaluates the same recipe; queries and policies see state.rank",
  require = import, dofile = import, loadfile = import, load = import, import = import, from = import, include = import,
  io = file, open = file, os = sees, sys = sees,
  setmetatable = "recipes have no metatables",
  next = "pairs goes in the order of the keys",
  coroutine = "a recipe is evaluated once, from top to bottom",
  debug = "print and log tell the host what a recipe does",
  xpcall = "pcall calls a function and gives back its error",
  utf8 = 'string.split(s, "-") cuts s at each "-"',
  None = "Lua writes nil", null = "Lua writes nil", NULL = "Lua writes nil", nullptr = "Lua writes nil",
  undefined = "Lua writes nil", True = "Lua writes true", False = "Lua writes false",
  len = "#x is the length of a list or text, #family the number of its groups",
  range = counts, xrange = counts,
  enumerate = "a loop over a list is for i, x in ipairs(list) do",
  reversed = "a loop that counts down is for i = #list, 1, -1 do",
  sorted = "table.sort(list) sorts a list in its place", sort = "table.sort(list) sorts a list in its place",
  insert = "table.insert(list, x) appends to a list", append = append,
  str = text, repr = text, int = text, float = text,
  f = number_in_text, format = number_in_text,
  r = "[" .. "[...]] is a text without escapes",
  printf = 'log("%d ranks", n) tells the host\'s log',
  list = "a list is { 1, 2 }", tuple = "a list is { 1, 2 }", dict = "a table by name is { tp = 2 }",
  set = "a set is a table: { [3] = true }, and s[3] tells whether 3 is in it",
  isinstance = 'type(x) == "number" compares the type of a value',
  hasattr = 'for a topology write t:has "x", for a table t.x ~= nil',
  getattr = "t[name] is the field whose name is in a variable",
  abs = "math.abs is the function", max = "math.max is the function", min = "math.min is the function",
  floor = "math.floor is the function, and a // b divides integers",
  ceil = "math.ceil is the function, and (a + b - 1) // b divides integers upwards",
  round = "math.floor(x + 0.5) rounds", sqrt = "math.sqrt is the function",
  divmod = "a // b is the quotient, a % b the remainder",
  sum = "a loop adds: for _, x in ipairs(list) do total = total + x end",
  prod = "a loop multiplies: for _, x in ipairs(list) do total = total * x end",
  any = "a loop tests each x: for _, x in ipairs(list) do", all = "a loop tests each x: for _, x in ipairs(list) do",
  map = "family:map(f) changes the groups of a family, a loop changes the members of a list",
  filter = "family:where { pp = 0 } chooses groups, a loop chooses members of a list",
  self = build, this = build, module = "a file returns its recipe: return recipe { ... }",
  raise = fails, throw = fails, Exception = fails, ValueError = fails,
  exit = 'error "message" refuses the parameters',
  AssertionError = 'assert(x, "message") raises an error if x is false or nil',
  world_size = "world.size is the number of ranks", get_world_size = "world.size is the number of ranks",
  WORLD_SIZE = "world.size is the number of ranks", nranks = "world.size is the number of ranks",
  new_group = groups, new_groups = groups, dist = groups, torch = groups,
  np = "a recipe has Lua's own numbers and lists", numpy = "a recipe has Lua's own numbers and lists",
  itertools = "write loops inside loops for all combinations",
  continue = "write goto next, and ::next:: at the end of the loop", pass = "an empty block needs no word",
  -- operators
  ["!="] = "write ~= for !=", ["<>"] = "write ~= for <>", ["==="] = "write == for ===", ["!=="] = "write ~= for !==",
  ["!"] = 'write "not" for "!"', ["&&"] = 'write "and" for "&&"', ["||"] = 'write "or" for "||"',
  ["**"] = "write ^ for **",
  ["++"] = "write n = n + 1", ["+="] = "write a = a + b for a += b", ["-="] = "write a = a - b for a -= b",
  ["*="] = "write a = a * b for a *= b", ["/="] = "write a = a / b for a /= b", ["%="] = "write a = a % b for a %= b",
  ["//="] = "write a = a // b for a //= b", ["..="] = "write a = a .. b for a ..= b",
  ["=>"] = "write function(x) return x end for x => x",
  ["?"] = "write c and a or b for c ? a : b", ["/*"] = "write -- for /*, to begin a comment",
  ["*/"] = "write -- for /*, to begin a comment", ["@"] = "write f = g(f) for @g",
  ["\\"] = "leave out \\: a statement goes on in the next line", ["->"] = "write a.b for a->b",
  -- names that most recipes give to arguments and locals of `build`
  t = "local t = topology(world) makes a topology", p = build, world = build,
  g = 'local g = grid(world, "tp-dp", { tp = 2, dp = fill }) makes a grid',
}

-- Words that begin a statement or a block.
local words = {
  def = write_function, func = write_function, fn = write_function, ["function"] = "write function f(x) return x end",
  var = new_name, let = new_name, const = new_name, auto = new_name, global = new_name,
  nonlocal = "a function sees the locals around it", class = "a recipe has tables and functions, no classes",
  with = file, import = import, from = import, include = import, del = "write t.x = nil, which removes x",
  try = call, except = call, catch = call, finally = call, raise = fails, throw = fails,
  switch = case, match = case, case = case, print = "write print(x)", assert = 'write assert(x, "message")',
  yield = "there is no yield: collect the values in a list and return it", continue = names.continue, pass = names.pass,
  ["if"] = "write if x then ... end", ["elseif"] = "write elseif x then", ["while"] = "write while x do ... end",
  ["for"] = "write for i = 0, n - 1 do ... end", ["else"] = "write else without a colon, and end after the block",
}

-- Return what to write instead of a global that recipes do not have.
function M.global(name) return names[name] end

-- The type of a value -> how to write a loop over what is in the value.
local walks = {
  table = "write for i, x in ipairs(list) do, or for name, x in pairs(table) do",
  World = "write for i = 0, world.size - 1 do; world:rank(i) is a rank",
  Grid = "write for _, dim in ipairs(grid:dims()) do; dim[1] is its name, dim[2] its size",
  Family = "write for group, ranks in pairs(family) do; family:ranks(0) is the first group",
  Topology = "write for name, family in pairs(topology) do",
  Plan = "write for name, family in pairs(plan) do",
  State = "write for name, group in pairs(state) do",
}

function M.walk(type_name, what)
  local class = match(type_name, "[^.]*$")
  return ("a %s is not %s%s"):format(class, what, walks[class] and "; " .. walks[class] or "")
end

-- Messages of a running recipe --------------------------------------------------

local methods = {
  append = append, extend = append, push = append, items = walk_table, keys = walk_table,
  values = "for _, x in pairs(t) do goes through a table", get = "t.x or 1 is t.x, or 1 if t has no x",
  join = 'table.concat(list, ", ") joins texts',
}
local choice = "f:where(function(ranks) return ranks[1] < 4 end) keeps the groups for which the function returns true, "
  .. "f:groups { 0, 3 } keeps groups 0 and 3"
local mesh = 'grid(world, "tp-dp", { tp = 2, dp = fill }) makes a grid'
local adds, chain = 't.dp = g "dp" adds a family', "write 0 < x and x < 8 for 0 < x < 8"
local from_1, as_number = "lists count from 1", "tonumber(x) makes a number of a text"

local kinds = { -- of parameters
  int = "integer", float = "number", str = "text", string = "text", bool = "flag", boolean = "flag", enum = "choice",
  path = "file", dict = "table", array = "list",
}

local said = { -- { a pattern of a message, the hint }
  { "nil value %(local 't'%)", "t = topology(world) makes a topology; in a recipe with a base, "
    .. "the third argument of build is the topology of the base" },
  { "nil value %(local 'p'%)", build },
  { "nil value %(field '%?'%)", from_1 }, { "nil value %(field 'integer index'%)", from_1 },
  { "attempt to call a moongrid%.", "a comma or operator may be missing after it" },
  { "call a number value %([fm]%a+ 'size'%)", "the number is world.size, without ()" },
  { "call a number value %([fm]",
    'with a grid g, g.tp is the size of dim tp, and g "tp" is the family along this dim' },
  { "unknown field of a Family 'filter'", choice }, { "unknown field of a Family 'select'", choice },
  { "concatenate a [mb]o", "tostring makes text of it" }, -- a moongrid.Grid, a boolean
  { "concatenate a table", 'table.concat(list, ", ") makes text of it' },
  { "arithmetic on a string", 'texts join with .., and ("%d ranks"):format(n) writes a number into a text' },
  { "arithmetic on a table", "a loop goes through a list: for i, x in ipairs(list) do" },
  { "arithmetic on a moongrid%.Family",
    "#family is the number of its groups, family.size the number of ranks in each group" },
  { "arithmetic on a moongrid%.Grid", "#grid is the number of its ranks, grid.tp the size of dim tp" },
  { "unknown field of a World 'grid'", mesh }, { "unknown field of a World 'reshape'", mesh },
  { "unknown family 'add'", adds }, { "unknown family 'append'", adds }, { "unknown family 'insert'", adds },
  { "dim '[%w_]+' has size %-1;", "fill takes what the other dims leave" },
  { "is a string, not an integer or fill", "write fill, or a number, without quotes" },
  { "bad argument #[34] to 'grid'", 'the sizes are one table, as in grid(world, "tp-dp", { tp = 2, dp = fill })' },
  { "compare boolean with number", chain }, { "compare number with boolean", chain },
  { "compare number with string", as_number }, { "compare string with number", as_number },
}

-- Return a hint about a field that is nil, "'p' has 'batch'", if a given table has a field with a similar name. The
-- arguments after `field` are pairs of a table's name and the table.
local function nearly(field, name, fields, ...)
  if not name then return nil end
  local known, n = {}, 0
  for key in next, fields do
    n = n + 1
    if n > 32 then return nearly(field, ...) end -- a search in large tables would slow a recipe with many errors
    known[#known + 1] = type(key) == "string" and key or nil
  end
  table.sort(known)
  local near = field and nearest(field, known)
  if near and near ~= field then return ("'%s' has '%s'"):format(name, near) end
  return nearly(field, ...)
end

-- Return the message of an error with a hint. `how` is the field namewhat (debug.getinfo) of the function that raised
-- the error. The other arguments are the names and tables of this function's first locals.
function M.message(message, how, ...)
  if #message > 1000 then return message end
  local before, type_name = match(message, "^(.*)attempt to call a (%S+) value %(for iterator 'for iterator'%)$")
  if before then return before .. M.walk(type_name, "an iterator") end
  local hint = methods[match(message, "call a nil value %([fm]%a+ '(%w+)'%)$")]
  for i = 1, #said do
    if hint then break end
    hint = find(message, said[i][1]) and said[i][2]
  end
  local kind = kinds[match(message, "unknown kind of parameter '(%w+)'")]
  hint = hint or kind and ("write param.%s"):format(kind)
  hint = hint or nearly(match(message, "a nil value %(field '([^']*)'"), ...)
  local method = how == "field" and match(message, "bad argument #1 to '(%w+)' %(moongrid%.")
  hint = hint or method and ("a method is called with a colon, :%s(...)"):format(method)
  return hint and not find(message, hint, 1, true) and message .. "; " .. hint or message
end

-- Texts that Lua's parser refuses ------------------------------------------------

-- Patterns of lines that are not Lua, and what to write instead. Before a line is matched, bare() changes it, and a `
-- is put before the token that the parser refuses. In a hint, %1 stands for the capture of the pattern. If a row has
-- `words` instead of a hint, the hint is words[capture].
local slashes = "write -- for //, to begin a comment"
local lines = {
  { "`#", "write -- for #, to begin a comment" },
  { "^%s*`?//", slashes },
  { "`\xE2\x80[\x98\x99\x9C\x9D]", 'write " for the quotation marks of a word processor' },
  { "([\"'])%1%1", "write [" .. "[...]] for a text of several lines, and -- for a comment" },
  { "%]%]%s*`%]", "write [==" .. "[...]==] around a text that has ]] in it" },
  { "%f[%w]lambda[%w_,%s`]*:", "write function(x) return x end for lambda x: x" },
  { "function%s*[%w_.]*%([^)]*`:", "leave out the type" },
  { "=%s*function%s*%([^)]*%)%s*`[:{]", "the body of a function begins after ), and ends with end" },
  { "%([%w_%s,`]*%)%s*=>", names["=>"] },
  { "%f[%w]def%s+`?build%f[^%w_]", "write build = function(world, p, t) ... end," },
  { "^%s*(%l+)%f[%W].*:%s", words }, { "^%s*(%l+)%s*:`?%s", words },
  { "^%s*(%l+)%f[%W].*%)%s*`?{", words }, { "^%s*(%l+)%f[%W].*`{", words },
  { "%f[%w]is%s+`?not%f[%W]", 'write ~= instead of "is not"' },
  { "^%s*[%a_][%w_.]*%s*`==", "write = to assign" },
  { "[%w_]`::", "write a.b for a::b" }, { "[%w_]:[%w_]+%s*`=", "write t.x = ..., with a point" },
  { "[%w_]%.`[\"']", 'write t.x or t["x"]' },
  { "[%a_][%w_]*`%.%d", 'write t["1"], or a name that begins with a letter' },
  { "^%s*([%a_][%w_.:]*)%s*[\"'][^\"']*[\"']%s*`,", "write %1(...) around several arguments" },
  { "^%s*function%s+`([%a_][%w_]*)", "write %1 = function(world, p, t) in a table" },
  { "%f[%w]els?if%f[%W]", "write elseif x then" },
  { "[%w_)%]\"'}]%s+if%s.*`else%f[%W]", "write c and a or b for a if c else b" },
  { "%f[%w]if%s.*`%l*%s?in%s", 'write t:has "x", or t.x ~= nil' },
  { "%f[%w]if%s[^=]*`=[^=]", "write == to compare" },
  { "^%s*[%w_.]+`%-[%a_]", "write _ for -: a name has letters, digits and _" },
  { "^%s*local%s+[%w_]+%s*`:", "leave out the type" },
  { "`%[?[^%]]*%f[%w]for%s.*%sin%s", "write for i = 0, n - 1 do list[#list + 1] = i end" },
  { "for%s.*`%d+%.%.", "write for i = 0, n - 1 do" },
  { "%([%d%s-]*`:[%d%s-]*%)", "write a comma for :, as in pick(0, -1)" },
  { "[%[][%w_%s-]*`?:+[%w_%s-]*`?%]", "write { table.unpack(list, 1, 2) } for a part of a list" },
  { "[{,]%s*[\"']([%a_][%w_]*)[\"']%s*`[:=]", "write %1 = ..., without quotes" },
  { "^%s*[\"']([%a_][%w_]*)[\"']%s*`[:=]", "write %1 = ..., without quotes" },
  { "%f[%w_]([%a_][%w_]*)%s*:[%s`]", "write %1 = ..." },
  { "%([^{)]*[%a_][%w_]*%s*`=[^=]", "write f { tp = 2 }, with braces around values by name" },
  { "[=,({n]%s*`%[", list }, { "[={,]%s*%([^()]*`,", list },
  { "[(,]%s*`%*", "write table.unpack(list) for *list" },
  { "[%w_%])\"']%s*%[[^%]{}]*`,", "write one index, or pick(0, -1) for positions of groups" },
  { "[\"']`[.:]", 'write ("a"):upper(), with parentheses around the text' },
}

-- Remove the comment of a line, and replace punctuation inside its strings by _, so that all columns stay the same.
local function bare(line)
  local plain = gsub(gsub(line, "\\[\\\"']", "__"), "([\"'])(.-)%1",
    function(quote, s) return quote .. gsub(s, "[^%w_]", "_") .. quote end)
  return (gsub(plain, "%-%-.*", "")) .. " "
end

local function by_pattern(line)
  for i = 1, #lines do
    local found = match(line, lines[i][1])
    local hint = found and lines[i][2]
    if hint == words then hint = words[found] end
    if hint then return (gsub(hint, "%%1", found)) end
  end
end

-- Return the hint for the first operator in the line that has a hint. With `column`, only the operator at this column
-- counts.
local function by_operator(line, column)
  for from, operator, to in string.gmatch(line, "()([!&|<>=*+/?@\\.%%-]+)()") do
    if names[operator] and (not column or (from <= column and column < to)) then return names[operator] end
  end
end

-- Return the hint for the token `is` or `to`, or for the word before the token if this word begins a statement.
local function by_word(before, rest)
  local token, start, word = match(rest, "^%a+"), match(before, "^(.-)([%a_][%w_]*)%s*$")
  if token == "is" then return 'write == instead of "is"' end
  if token == "to" then return counts end
  local begins = start and not find(rest, "^[.,=]") and (find(start, "^%s*$") or find(start, "[;{]%s*$")
    or find(start, "%f[%w]then%s*$") or find(start, "%f[%w]do%s*$"))
  return begins and (find(rest, "^[%a_][%w_]*%s*=[^=]") and new_name or words[word]) or nil
end

-- Return a hint about the line before a token that begins its line or follows an `end`.
local function by_line_before(line, head, rest, message)
  if not find(line, "[%w_)%]}\"']%s*$") then return nil end -- the line before is not complete
  if find(rest, "^[,)}]") and find(head .. rest, "^%s*e?n?d?%s*[,)}]") then
    return not find(message, "' expected", 1, true) and "write end before this: a block above is open" or nil
  end
  local second = match(line, "//%s+%a+%s+(%a+)%s*$") -- "a // b and" has a division, not a comment
  if second and not find(" and or then do else end ", " " .. second .. " ", 1, true) then return slashes end
  if not find(head, "^%s*$") or find(rest, "^e[nl][ds]") or find(rest, "^until") then return nil end -- a block ends
  if find(rest, "^[%a_]") and find(line, "^%s*return%f[%W]") then return "return is the last statement of its block" end
  if find(rest, "^[%a_][%w_]*%s*=") and find(message, "'}' expected", 1, true) then
    return "write a comma at the end of the line before"
  end
end

-- Return a hint for a missing `end` or `}`, or nil or false: about the first `else if`, which opens a block of its own;
-- or if there is none, about the first brace that is not closed.
local function by_end(source, message)
  local number, open = 0, {} -- open: the line numbers of open braces
  for line in string.gmatch(source .. "\n", "([^\n]*)\n") do
    number = number + 1
    local plain = bare(line)
    if find(plain, "%f[%w]else%s+if%f[%W]") then
      return ('write elseif for the "else if" of line %d'):format(number)
    end
    for brace in string.gmatch(plain, "[{}]") do
      if brace == "{" then open[#open + 1] = number else open[#open] = nil end
    end
  end
  local named = find(message, "(to close ", 1, true) -- the message has the line already
  return open[1] and not named and ("write } to close the { of line %d"):format(open[1])
end

-- Parse the text again, a byte at a time, to find where the parser stops. Return three parts of the text: the token's
-- line before the token, this line from the token on, and the last line before this line that is not blank; or nil if
-- the token is not found.
local function stop(source, token, message)
  local at, from, written, before = 0, 1, false, ""
  local _, why = load(function()
    at = at + 1
    local letter = source:sub(at, at)
    if source:sub(at - 1, at - 1) == "\n" then
      if written then before = source:sub(math.max(from, at - 500), at - 2) end
      from, written = at, false
    end
    written = written or find(letter, "%S") ~= nil
    return letter
  end, "=")
  local first = at - #token -- the parser has read one byte after the token
  if not why or message:sub(-#why) ~= why or first < from or source:sub(first, at - 1) ~= token then return nil end
  return source:sub(from, first - 1), match(source, "^[^\n]*", first), before
end

-- Return the parser's message, with a hint if there is one; and a text that shows the line where the parser stopped,
-- and a caret below the token, or "" if the token is not found.
function M.syntax(message, source)
  local token, hint = match(message, " near '(.*)'$"), nil
  if not token then
    hint = find(message, "near <eof>$") and by_end(source, message)
    return hint and message .. "; " .. hint or message, ""
  end
  token = gsub(token, "^<\\(%d+)>$", string.char) -- Lua writes an unknown byte as <\226>
  local before, rest, last = stop(source, token, message)
  if not before then return message, "" end
  if #before + #rest < 500 then -- the time to match grows with the square of the length
    local line = bare(before .. rest)
    local head, tail = line:sub(1, #before), line:sub(#before + 1)
    local statement = match(head, ".*;(.*)") or head
    last = bare(last)
    hint = by_operator(line, #before + 1) or by_pattern(statement .. "`" .. tail) or by_operator(line)
      or by_word(head, tail) or by_line_before(last, head, tail, message) or by_pattern(last)
  end
  local function shown(part) return (gsub(gsub(part, "[\xC2-\xF4][\x80-\xBF]*", "?"), "[^\x20-\x7e]", " ")) end
  local start = shown(before:sub(#before > 60 and -40 or #match(before, "^%s*") + 1))
  return hint and message .. "; " .. hint or message,
    "  " .. start .. shown(rest:sub(1, 76 - #start)) .. "\n  " .. (" "):rep(#start) .. "^"
end

return M
