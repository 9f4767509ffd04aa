-- SPDX-License-Identifier: MIT
--
-- Habits from Python and C in the text of a recipe: each is refused at its line, in the words of Lua, and if it is
-- certain with the text to write instead. A syntax error is shown with a caret below its place.

local recipes = assert(loadfile("tests/lua/recipes.lua", "t", _ENV))() -- with busted's names
local support = require "support"
local refusal = recipes.refusal

-- A recipe with these lines, from line 6 on, in its build.
local before = [[
local n = 2
local build = function(world, p, t)
  t = topology(world)
  local g = grid(world, "tp-pp", { tp = 2, pp = fill })
  t.tp = g "tp"
]]
local after = "\n  return t\nend\nreturn recipe { params = { tp = 2 }, build = build }\n"

-- The line of a recipe that a refusal quotes, and the column of the caret below it; "": it quotes none.
local function quoted(text, line, column)
  local count = 0
  for written in (text .. "\n"):gmatch "([^\n]*)\n" do
    count = count + 1
    if count == line and column then return ("\n  %s\n  %s^"):format(written:match "^%s*(.*)$", (" "):rep(column - 1)) end
  end
  return ""
end

-- Each case: { the text, the line of the message, the message [, the column of the caret in that line, without its
-- indentation] }
local function refuses(cases, first, last)
  for _, case in ipairs(cases) do
    it(case[1], function()
      local text = first .. case[1] .. last
      assert.are.equal(("r.lua:%d: %s"):format(case[2], case[3]) .. quoted(text, case[2], case[4]), refusal(text))
    end)
  end
end

describe("in build,", function()
  refuses({
    { [[local x = g "pp".pick(0, -1)]], 6,
      "bad argument #1 to 'pick' (moongrid.Family expected, got number); a method is called with a colon, :pick(...)" },
    { "local x = None", 6, "undefined global 'None': Lua writes nil" },
    { "local x = True", 6, "undefined global 'True': Lua writes true" },
    { "local x = False", 6, "undefined global 'False': Lua writes false" },
    { "local x = null", 6, "undefined global 'null': Lua writes nil" },
    { "local x = len(t)", 6,
      "undefined global 'len': #x is the length of a list or text, #family the number of its groups" },
    { "for i in range(4) do t.x = 1 end", 6, "undefined global 'range': a loop that counts is for i = 0, n - 1 do" },
    { "for i, x in enumerate({ 1 }) do end", 6,
      "undefined global 'enumerate': a loop over a list is for i, x in ipairs(list) do" },
    { "if p.tp == 1 then n = 1 elif p.tp == 2 then n = 2 end", 6, "syntax error near 'p'; write elseif x then", 30 },
    { "# a note", 6, "unexpected symbol near '#'; write -- for #, to begin a comment", 1 },
    { "n = 2  # a note", 6, "unexpected symbol near '#'; write -- for #, to begin a comment", 8 },
    { "n = 2  # don't", 6, "unexpected symbol near '#'; write -- for #, to begin a comment", 8 },
    { "n = 2 // a note", 7, "syntax error near 'return'; write -- for //, to begin a comment", 1 },
    { "// a note", 7, "syntax error near 'return'; write -- for //, to begin a comment", 1 },
    { "/* a note */", 6, "unexpected symbol near '*'; write -- for /*, to begin a comment", 2 },
    { [[t.h = grid(world, "tp", { "tp": 2 })]], 6, "'}' expected near ':'; write tp = ..., without quotes", 31 },
    { [[t.h = grid(world, "tp", { tp: 2 })]], 6, "<name> expected near '2'; write tp = ...", 31 },
    { [[t.h = grid(world, "tp", { tp: p.tp })]], 6, "function arguments expected near '.'; write tp = ...", 32 },
    { [[t.h = grid(world, "tp", { tp: fill })]], 6, "function arguments expected near '}'; write tp = ...", 36 },
    { [[t.h = grid(world, "tp", { "tp" = 2 })]], 6, "'}' expected near '='; write tp = ..., without quotes", 32 },
    { [[t.h = grid(world, "tp", tp=2)]], 6,
      "')' expected near '='; write f { tp = 2 }, with braces around values by name", 27 },
    { "if p.tp == 2:\n    n = 3", 6, "'then' expected near ':'; write if x then ... end", 13 },
    { "if p.tp:\n    t.x = 3", 7, "function arguments expected near '.'; write if x then ... end", 2 },
    { "if p.tp == 2:\n    n = 3\n  else:\n    n = 4", 6, "'then' expected near ':'; write if x then ... end", 13 },
    { "if p.tp == 2 then\n    n = 3\n  else:\n    n = 4\n  end", 8,
      "unexpected symbol near ':'; write else without a colon, and end after the block", 5 },
    { "while n < 3:\n    n = 4", 6, "'do' expected near ':'; write while x do ... end", 12 },
    { "for i in range(3):\n    n = 4", 7,
      "function arguments expected near '='; write for i = 0, n - 1 do ... end", 3 },
    { "for i in range(3):\n    t.x = 4", 7,
      "function arguments expected near '.'; write for i = 0, n - 1 do ... end", 2 },
    { [[n = "x" + n]], 6,
      [[attempt to perform arithmetic on a string value (constant 'x'); texts join with .., and ("%d ranks"):format(n)]]
        .. " writes a number into a text" },
    { [[n = "x%d" % 3]], 6,
      [[attempt to perform arithmetic on a string value (constant 'x%d'); texts join with .., and ("%d]]
        .. [[ ranks"):format(n) writes a number into a text]] },
    { [[n = "x" * 3]], 6,
      [[attempt to perform arithmetic on a string value (constant 'x'); texts join with .., and ("%d ranks"):format(n)]]
        .. " writes a number into a text" },
    { [[n = f"x{n}"]], 6, [[undefined global 'f': ("%d ranks"):format(n) writes a number into a text]] },
    { [[n = r"x"]], 6, "undefined global 'r': [[...]] is a text without escapes" },
    { "n = 2 ** 3", 6, "unexpected symbol near '*'; write ^ for **", 8 },
    { "n = [1, 2]", 6, "unexpected symbol near '['; write { 1, 2 } for a list", 5 },
    { "n = [i for i in range(3)]", 6,
      "unexpected symbol near '['; write for i = 0, n - 1 do list[#list + 1] = i end", 5 },
    { "n = { i for i in range(3) }", 6,
      "'}' expected near 'for'; write for i = 0, n - 1 do list[#list + 1] = i end", 9 },
    { "n = (i for i in x)", 6, "')' expected near 'for'; write for i = 0, n - 1 do list[#list + 1] = i end", 8 },
    { "n = (1, 2)", 6, "')' expected near ','; write { 1, 2 } for a list", 7 },
    { "def f(x):\n    return x", 6, "syntax error near 'f'; write local function f(x) return x end", 5 },
    { "import numpy", 6,
      [[syntax error near 'numpy'; recipe.import "./x.lua" gets functions of a file, recipe "x" another recipe]], 8 },
    { "from a import b", 6,
      [[syntax error near 'a'; recipe.import "./x.lua" gets functions of a file, recipe "x" another recipe]], 6 },
    { "n = len(world)", 6,
      "undefined global 'len': #x is the length of a list or text, #family the number of its groups" },
    { "if p.tp != 2 then n = 1 end", 6, "'then' expected near '!'; write ~= for !=", 9 },
    { "if p.tp <> 2 then n = 1 end", 6, "unexpected symbol near '>'; write ~= for <>", 10 },
    { "if p.tp === 2 then n = 1 end", 6, "unexpected symbol near '='; write == for ===", 11 },
    { "if p.tp = 2 then n = 1 end", 6, "'then' expected near '='; write == to compare", 9 },
    { "n += 1", 6, "syntax error near '+'; write a = a + b for a += b", 3 },
    { "n -= 1", 6, "syntax error near '-'; write a = a - b for a -= b", 3 },
    { "n *= 2", 6, "syntax error near '*'; write a = a * b for a *= b", 3 },
    { "n /= 2", 6, "syntax error near '/'; write a = a / b for a /= b", 3 },
    { "n //= 2", 6, "syntax error near '//'; write a = a // b for a //= b", 3 },
    { "n %= 2", 6, "syntax error near '%'; write a = a % b for a %= b", 3 },
    { "n ++", 6, "syntax error near '+'; write n = n + 1", 3 },
    { "n = world_size", 6, "undefined global 'world_size': world.size is the number of ranks" },
    { "n = world.size()", 6, "attempt to call a number value (field 'size'); the number is world.size, without ()" },
    { "if p.tp not in t then n = 1 end", 6, [['then' expected near 'not'; write t:has "x", or t.x ~= nil]], 9 },
    { [[if "tp" in t then n = 1 end]], 6, [['then' expected near 'in'; write t:has "x", or t.x ~= nil]], 9 },
    { "if p.tp is None then n = 1 end", 6, "'then' expected near 'is'; write == instead of \"is\"", 9 },
    { "if p.tp == 1 && n == 2 then n = 1 end", 6, "unexpected symbol near '&'; write \"and\" for \"&&\"", 15 },
    { "if p.tp == 1 || n == 2 then n = 1 end", 6, "unexpected symbol near '|'; write \"or\" for \"||\"", 15 },
    { "if !p.tp then n = 1 end", 6, "unexpected symbol near '!'; write \"not\" for \"!\"", 4 },
    { "if p.tp == 1 then n = 1 else if p.tp == 2 then n = 3 end", 10,
      "'end' expected (to close 'function' at line 2) near <eof>; write elseif for the \"else if\" of line 6" },
    { "if p.tp == 1 then\n    n = 1\n  else if p.tp == 2 then\n    n = 3\n  end", 14,
      "'end' expected (to close 'function' at line 2) near <eof>; write elseif for the \"else if\" of line 8" },
    { "print n", 6, "syntax error near 'n'; write print(x)", 7 },
    { [[print "a", n]], 6, "syntax error near ','; write print(...) around several arguments", 10 },
    { "local x = { 1 }; n = 1 + x[0]", 6,
      "attempt to perform arithmetic on a nil value (field 'integer index'); lists count from 1" },
    { "local x = {} ; n = x[0].y", 6, "attempt to index a nil value (field 'integer index'); lists count from 1" },
    { "local f = lambda x: x", 7,
      "function arguments expected near 'return'; write function(x) return x end for lambda x: x", 1 },
    { "local f = lambda: 3", 6, "<name> expected near '3'; write function(x) return x end for lambda x: x", 19 },
    { "local f = x => x", 6, "unexpected symbol near '='; write function(x) return x end for x => x", 13 },
    { "try:\n    n = 3\n  except E:\n    n = 4", 7,
      "function arguments expected near '='; write pcall(f), which returns false and the error", 3 },
    { "with open(\"x\") as f:\n    n = 1", 6,
      "syntax error near 'open'; a recipe reads no files; param.file gets the content of a file", 6 },
    { "with open(\"x\"):\n    n = 1", 6,
      "syntax error near 'open'; a recipe reads no files; param.file gets the content of a file", 6 },
    { "class X:\n    pass", 6, "syntax error near 'X'; a recipe has tables and functions, no classes", 7 },
    { "n = self.tp", 6, "undefined global 'self': the arguments of build are world, p, t" },
    { "n = 1 if p.tp else 2", 6, "'then' expected near 'else'; write c and a or b for a if c else b", 15 },
    { "n = p.tp ? 1 : 2", 6, "unexpected symbol near '?'; write c and a or b for c ? a : b", 10 },
    { "if p.tp == 1 then pass end", 6, "syntax error near 'end'; an empty block needs no word", 24 },
    { "for i = 0, 3 do continue end", 6,
      "syntax error near 'end'; write goto next, and ::next:: at the end of the loop", 26 },
    { [[assert n, "x"]], 6, [[syntax error near 'n'; write assert(x, "message")]], 8 },
    { [[raise ValueError("x")]], 6, [[syntax error near 'ValueError'; error "message" raises an error]], 7 },
    { [[raise(ValueError("x"))]], 6, [[undefined global 'raise': error "message" raises an error]] },
    { "del t.tp", 6, "syntax error near 't'; write t.x = nil, which removes x", 5 },
    { "local x: int = 3", 6, "unexpected symbol near ':'; leave out the type", 8 },
    { "var x = 3", 6, "syntax error near 'x'; write local x = 1", 5 },
    { "let x = 3", 6, "syntax error near 'x'; write local x = 1", 5 },
    { "const x = 3", 6, "syntax error near 'x'; write local x = 1", 7 },
    { "int x = 3", 6, "syntax error near 'x'; write local x = 1", 5 },
    { "for (int i = 0; i < 3; i++) { n = 1 }", 6, "<name> expected near '('; write for i = 0, n - 1 do ... end", 5 },
    { "if (p.tp == 1) { n = 2 }", 7, "'then' expected near 'return'; write if x then ... end", 1 },
    { "while (n < 3) { n = 4 }", 7, "'do' expected near 'return'; write while x do ... end", 1 },
    { "function f() { return 1 }", 6, "unexpected symbol near '{'; write function f(x) return x end", 14 },
    { [[local x = """a note"""]], 6,
      "unexpected symbol near '\"a note\"'; write [[...]] for a text of several lines, and -- for a comment", 13 },
    { [[local x = "a" "b"]], 6, [[unexpected symbol near '"b"']], 15 },
    { "t.x = g 'tp':filter(function() return true end)", 6,
      "unknown field of a Family 'filter'; known: count, size, largest, coverage, low, high, pick, bundle, pairs,"
        .. " neighbours, map, without, lists, twin, with, ranks, locate, member, modes, groups, explain, split, levels,"
        .. " segments, renumber, where;"
        .. " f:where(function(ranks) return ranks[1] < 4 end) keeps the groups for which the function returns true, f:groups { 0, 3 } keeps"
        .. " groups 0 and 3" },
    { "local x = {} ; x.append(3)", 6,
      "attempt to call a nil value (field 'append'); list[#list + 1] = x appends to a list" },
    { "local x = {} ; for k, v in pairs(x.items()) do end", 6,
      "attempt to call a nil value (field 'items'); for name, x in pairs(t) do goes through a table" },
    { [[local x = ",".join({ "a" })]], 6,
      [[unexpected symbol near '.'; write ("a"):upper(), with parentheses around the text]], 14 },
    { "local x = { 1, 2 } ; n = x[1:2]", 6,
      "']' expected near ':'; write { table.unpack(list, 1, 2) } for a part of a list", 29 },
    { "local x = { 1, 2 } ; n = x[:2]", 6,
      "unexpected symbol near ':'; write { table.unpack(list, 1, 2) } for a part of a list", 28 },
    { "local x = { 1, 2 } ; n = x[n:p]", 6,
      "function arguments expected near ']'; write { table.unpack(list, 1, 2) } for a part of a list", 31 },
    { "local x = { 1, 2 } ; n = x[::2]", 6,
      "unexpected symbol near '::'; write { table.unpack(list, 1, 2) } for a part of a list", 28 },
    { "for i in 0..8 do n = i end", 6, "malformed number near '0..8'; write for i = 0, n - 1 do", 10 },
    { "for i = 0 to 8 do n = i end", 6, "',' expected near 'to'; a loop that counts is for i = 0, n - 1 do", 11 },
    { "n = 1_000", 6, "malformed number near '1_'", 5 },
    { "n = str(3)", 6,
      [[undefined global 'str': tostring(x) makes text, tonumber(x) a number, and ("%d ranks"):format(n) writes a]]
        .. " number into a text" },
    { [[n = int("3")]], 6,
      [[undefined global 'int': tostring(x) makes text, tonumber(x) a number, and ("%d ranks"):format(n) writes a]]
        .. " number into a text" },
    { "n = max(1, 2)", 6, "undefined global 'max': math.max is the function" },
    { "n = sum({ 1 })", 6, "undefined global 'sum': a loop adds: for _, x in ipairs(list) do total = total + x end" },
    { "n = sorted({ 1 })", 6, "undefined global 'sorted': table.sort(list) sorts a list in its place" },
    { [[n = "a" < 1]], 6, "attempt to compare string with number; tonumber(x) makes a number of a text" },
    { [[n = "a" .. { 1 }]], 6, [[attempt to concatenate a table value; table.concat(list, ", ") makes text of it]] },
    { [[n = "a" .. true]], 6, "attempt to concatenate a boolean value; tostring makes text of it" },
    { "n = g.tp()", 6,
      [[attempt to call a number value (field 'tp'); with a grid g, g.tp is the size of dim tp, and g "tp" is the family along this dim]] },
    { "n = g:tp()", 6,
      [[attempt to call a number value (method 'tp'); with a grid g, g.tp is the size of dim tp, and g "tp" is the family along this dim]] },
    { "x = 3", 6, "assignment to global 'x': use 'local'" },
    { "recipe = {}", 6, "assignment to global 'recipe': write return recipe { ... }" },
    { "world:reshape(2, -1)", 6, "unknown field of a World 'reshape'; known: size, offset, window, order, table, rank, modes; "
      .. 'grid(world, "tp-dp", { tp = 2, dp = fill }) makes a grid' },
    { "param.size(2, { min = 1 })", 6, "param.size takes a default, a doc and other names, which are text; its doc is a table" },
    { "@cached", 6, "unexpected symbol near '@'; write f = g(f) for @g", 1 },
    { "n = 1 + \\\n   2", 6, "unexpected symbol near '\\'; leave out \\: a statement goes on in the next line", 9 },
    { "return t\n  t.x = g \"pp\"", 7,
      "'end' expected (to close 'function' at line 2) near 't'; return is the last statement of its block", 1 },
    { "n = (1 + 2", 7, "')' expected (to close '(' at line 6) near 'return'", 1 },
    { [[t.x = g("tp"]], 7, "')' expected (to close '(' at line 6) near 'return'", 1 },
    { "yield n", 6, "syntax error near 'n'; there is no yield: collect the values in a list and return it", 7 },
    { "switch (n) { case 1: n = 2 }", 6,
      "'}' expected near '1'; write if x == 1 then ... elseif x == 2 then ... end", 19 },
    { "local x = dist.new_group({ 0, 1 })", 6,
      [[undefined global 'dist': a family holds groups, as in t.tp = g "tp"]] },
    { "t.x = new_group({ 0, 1 })", 6, [[undefined global 'new_group': a family holds groups, as in t.tp = g "tp"]] },
    { "global n", 6, "syntax error near 'n'; write local x = 1", 8 },
    { "n = torch.arange(3)", 6, [[undefined global 'torch': a family holds groups, as in t.tp = g "tp"]] },
    { "if isinstance(n, int) then end", 6,
      [[undefined global 'isinstance': type(x) == "number" compares the type of a value]] },
    { "n = math.pow(2, 3)", 6, "recipes have no math.pow, because a recipe must mean the same in every process, and must end" },
    { "t.x = {{0, 1}, {2, 3}}", 6,
      "'x' is assigned a table; a topology holds families, grids and tensors: world:table{ {0, 1}, {2, 3} } makes"
        .. " groups of lists" },
    { "t.x = g[\"tp\"]", 6,
      [['x' is assigned a number; a topology holds families, grids and tensors: of a grid g, g.tp is a size, and g "tp"]]
        .. " the family" },
    { "t.x = g.tp", 6,
      [['x' is assigned a number; a topology holds families, grids and tensors: of a grid g, g.tp is a size, and g "tp"]]
        .. " the family" },
    { "n = 1 // don't", 6, "unfinished string near ''t'", 13 },
  }, before, after)

  it("the lines around are a recipe", function() assert.equal(8, recipes.recipe(before .. after):plan(8).world) end)
end)

describe("in a recipe,", function()
  refuses({
    { "return recipe {\n  build = function(world, p, t)\n    t = topology(world)\n    for i = 0, 3 do\n      t.x = 1\n   "
        .. " return t\n  end\n}", 8,
      "unexpected symbol near '}'; write end before this: a block above is open", 1 },
    { "return recipe {\n  build = function(world, p, t)\n    t = topology(world)\n    if p.x then\n      t.x = 1\n    t.y ="
        .. " 2\n  end,\n  params = { tp = 1 },\n}", 7,
      "unexpected symbol near ','; write end before this: a block above is open", 4 },
    { "return recipe {\n  build = function(world, p, t)\n    t = topology(world)\n    t.x = f(\"x\")\n}", 5,
      "unexpected symbol near '}'; write end before this: a block above is open", 1 },
    { "return recipe {\n  build = function(world, p, t)\n    t = topology(world)\n    while t\n      and t.x do\n      t.x"
        .. " = f(\"x\")\n    end\n    return t\n  end\n  end\n}", 10,
      "'}' expected (to close '{' at line 1) near 'end'", 1 },
    { "local function f(x)\n  if x then\n    return 1\n  return 2\nend\nreturn recipe { build = function(w) return"
        .. " topology(w) end }", 4,
      "'end' expected (to close 'if' at line 2) near 'return'; return is the last statement of its block", 1 },
    { "return recipe {\n  build = function(world, p, t)\n    return topology(world)\n  params = { tp = 2 },\n}", 4,
      "'end' expected (to close 'function' at line 2) near 'params'; return is the last statement of its block", 1 },
    { "return recipe {\n  function build(world, p, t)\n    return topology(world)\n  end\n}", 2,
      "'(' expected near 'build'; write build = function(world, p, t) in a table", 10 },
    { "return recipe {\n  build: function(world, p, t)\n    return topology(world)\n  end\n}", 2,
      "<name> expected near 'function'; write build = ...", 8 },
    { "return recipe(\n  build = function(world, p, t)\n    return topology(world)\n  end\n)", 2,
      "')' expected (to close '(' at line 1) near '='", 7 },
    { "return recipe {\n  params = { tp = 2 }\n  build = function(world, p, t)\n    return topology(world)\n  end\n}", 3,
      "'}' expected (to close '{' at line 1) near 'build'; write a comma at the end of the line before", 1 },
    { "import moongrid\nreturn recipe {}", 1,
      [[syntax error near 'moongrid'; recipe.import "./x.lua" gets functions of a file, recipe "x" another recipe]], 8 },
    { "def build(world, p):\n  return topology(world)", 1,
      "syntax error near 'build'; write build = function(world, p, t) ... end,", 5 },
    { "return recipe {}\nlocal x = 3", 2, "<eof> expected near 'local'; return is the last statement of its block", 1 },
  }, "", "")
end)

-- What newcomers typed: the message says what to type. { the text in build, a part of the message }
describe("a newcomer", function()
  for text, part in pairs {
    ["if not p.tp: return t"] = "; write if x then ... end\n",
    ["try: x = 1"] = "; write pcall(f), which returns false and the error\n",
    ['for i in range(p.tp): t["x%d" % i] = g "tp"'] = "; write for i = 0, n - 1 do ... end\n",
    ['t.data-parallel = g "dp"'] = "; write _ for -: a name has letters, digits and _\n",
    ['t.x = g "pp":pick(0:-1)'] = "; write a comma for :, as in pick(0, -1)\n",
    ["local x = '''x'''"] = "; write [[...]] for a text of several lines, and -- for a comment\n",
    ["t.x = world:table [[\n[[0 1]\n [2 3]] ]]"] = "; write [==[...]==] around a text that has ]] in it\n",
    ["t.x = pp:pick(0, -1)"] = '; a dim is written g "pp", a family t.pp, a parameter p.pp, a text "pp"',
    ["t.x = grid(world, 'x', { x = math.sqrt(world.size + 1) })"] = "; a // b and math.floor(x) are integers",
    ["local t = {}"] = "build returned a table; a topology begins with local t = topology(world)",
  } do
    it("is told: " .. text, function() assert.truthy(refusal(before .. text .. after):find(part, 1, true), refusal(before .. text .. after)) end)
  end

  it("is told of the brace that none closes", function()
    assert.equal("r.lua:5: unexpected symbol near <eof>; write } to close the { of line 2",
      refusal "local x = { '{' } -- {\nreturn recipe {\n  params = { tp = 1 }, -- {\n  build = topology,\n")
  end)

  it("is told the arguments of build", function()
    assert.equal("r.lua:1: attempt to index a nil value (local 'p'); the arguments of build are world, p, t",
      refusal "return recipe { build = function(self, world, t, p) return p.tp end }")
  end)

  it("is told the name that is nearly the one of a table", function()
    assert.equal("r.lua:6: attempt to perform arithmetic on a nil value (field 'batsh'); 'sizes' has 'batch'",
      refusal(before .. "local function f(sizes) n = sizes.batsh + 1 end f { batch = 2, seq = 3 }" .. after))
  end)

  it("need not write the brackets that Lua took", function()
    local plan = recipes.recipe(before .. "t.x = world:table [[0, 4], [1, 5], [2, 6], [3, 7]]" .. after):plan(8)
    assert.equal("1,5", table.concat(plan:family "x":ranks(1), ","))
    assert.truthy(refusal(before .. "t.x = world:table [[0 4\n1 5]]" .. after):find "'%[' expected")
  end)
end)

-- A row that matches a line without a mark has to be none of Lua: it is tried on all Lua here, most of it without errors.
it("no hint is for a line of Lua", function()
  local file = assert(io.open "lua/prelude/hints.lua")
  local inside = assert(load((file:read("a"):gsub("return M%s*$", "return { by_pattern, bare }"))))
  file:close()
  local by_pattern, bare = table.unpack(inside {})
  local seen = 0
  for path in io.popen("git ls-files 'lua/*.lua' 'examples/*.lua'"):lines() do
    for line in io.lines(path) do
      seen = seen + 1
      assert.is_nil(by_pattern(bare(line)), path .. ": " .. line)
    end
  end
  assert.is_true(seen > 9000, seen)
end)

-- The same texts under each Lua that is here: another release has the same hints, whatever it says of the text.
it("the hints are those of every release of Lua", function()
  local script = support.file [[
    local hints = loadfile("lua/prelude/hints.lua") {}
    for _, text in ipairs { "n = [1]", "if a != b then end", "n += 1", "if x:\n y = 1", "def f(x):", "x = { 'a': 1 }", "f(a=1)",
        "# a", "x = a ? b : c", "if x then\n y = 1\nelse if y then\n y = 2\nend", "local x: int", "return recipe {\n a = 1,", "t.a-b = 1", "x = 1 if y else 2" } do
      local _, why = load(text, "=x")
      print((hints.syntax(why, text):match "; .*"))
    end
  ]]
  local first = support.run("lua5.4 " .. script)
  assert.equal(14, select(2, first:gsub("; [^\n]+\n", "")), first)
  if select(3, support.run "command -v lua5.5") ~= 0 then return pending "no lua5.5 here" end
  assert.equal(first, (support.run("lua5.5 " .. script)))
end)

-- Recipes with a letter taken out, or with a word put in, are refused or taken; a refusal has one line, or three.
it("hints are for any text", function()
  local text = before .. "  for i = 0, 3 do\n    if i == 2 then t.x = g \"pp\" --[=[ a ]=]\n"
        .. "    else n = [[b]] end\n  end" .. after
  for at = 1, #text do
    for _, put in ipairs { "", ":", " end ", "[=", "\"", "//", "(", "}" } do
      local done, said = pcall(recipes.recipe, text:sub(1, at - 1) .. put .. text:sub(at + 1))
      assert.is_true(done or not said:find "\n" or said:find "^[^\n]*near '[^\n]*\n  [^\n]*\n *^$" ~= nil, said)
    end
    pcall(recipes.recipe, text:sub(1, at))
  end
end)
