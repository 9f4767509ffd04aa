-- SPDX-License-Identifier: MIT
--
-- Habits from Python and C in the text of a recipe: each is refused at its line, in one line that says what Lua writes.

local recipes = assert(loadfile("tests/lua/recipes.lua", "t", _ENV))() -- with busted's names
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

-- Each case: { the text, the line of the message, the message }
local function refuses(cases, first, last)
  for _, case in ipairs(cases) do
    it(case[1], function()
      local said = refusal(first .. case[1] .. last)
      assert.are.equal(("r.lua:%d: %s"):format(case[2], case[3]), said)
      assert.is_nil(said:find("\n", 1, true))
    end)
  end
end

describe("in build,", function()
  refuses({
    { [[local x = g "pp".pick(0, -1)]], 6,
      "bad argument #1 to 'pick' (moongrid.Family expected, got number); a method is called with a colon,"
        .. " :pick(...)" },
    { "local x = None", 6, "undefined global 'None': Lua writes nil" },
    { "local x = True", 6, "undefined global 'True': Lua writes true" },
    { "local x = False", 6, "undefined global 'False': Lua writes false" },
    { "local x = null", 6, "undefined global 'null': Lua writes nil" },
    { "local x = len(t)", 6,
      "undefined global 'len': #x is the length of a list or text, #family the number of its groups" },
    { "for i in range(4) do t.x = 1 end", 6, "undefined global 'range': a loop that counts is for i = 0, n - 1 do" },
    { "for i, x in enumerate({ 1 }) do end", 6,
      "undefined global 'enumerate': a loop over a list is for i, x in ipairs(list) do" },
    { "if p.tp == 1 then n = 1 elif p.tp == 2 then n = 2 end", 6, "syntax error near 'p'; Lua writes elseif" },
    { "# a note", 6, "unexpected symbol near '#'; -- begins a comment" },
    { "n = 2  # a note", 6, "unexpected symbol near '#'; -- begins a comment" },
    { "n = 2  # don't", 6, "unexpected symbol near '#'; -- begins a comment" },
    { "n = 2 // a note", 7, "syntax error near 'return'; -- begins a comment, // divides" },
    { "// a note", 7, "syntax error near 'return'; -- begins a comment, // divides" },
    { "/* a note */", 6, "unexpected symbol near '*'; -- begins a comment" },
    { [[t.h = grid(world, "tp", { "tp": 2 })]], 6,
      "'}' expected near ':'; a field is written tp = 2, without quotes" },
    { [[t.h = grid(world, "tp", { tp: 2 })]], 6,
      "<name> expected near '2'; a field is written tp = 2, without quotes" },
    { [[t.h = grid(world, "tp", { tp: p.tp })]], 6,
      "function arguments expected near '.'; a field is written tp = 2, without quotes" },
    { [[t.h = grid(world, "tp", { tp: fill })]], 6,
      "function arguments expected near '}'; a field is written tp = 2, without quotes" },
    { [[t.h = grid(world, "tp", { "tp" = 2 })]], 6,
      "'}' expected near '='; a field is written tp = 2, without quotes" },
    { [[t.h = grid(world, "tp", tp=2)]], 6, "')' expected near '='; values by name stand in braces: f { tp = 2 }" },
    { "if p.tp == 2:\n    n = 3", 6, "'then' expected near ':'; if x then ... end" },
    { "if p.tp:\n    t.x = 3", 7, "function arguments expected near '.'; if x then ... end" },
    { "if p.tp == 2:\n    n = 3\n  else:\n    n = 4", 6, "'then' expected near ':'; if x then ... end" },
    { "if p.tp == 2 then\n    n = 3\n  else:\n    n = 4\n  end", 8,
      "unexpected symbol near ':'; else has no colon, and the block ends with end" },
    { "while n < 3:\n    n = 4", 6, "'do' expected near ':'; while x do ... end" },
    { "for i in range(3):\n    n = 4", 7, "function arguments expected near '='; for i = 0, n - 1 do ... end" },
    { "for i in range(3):\n    t.x = 4", 7, "function arguments expected near '.'; for i = 0, n - 1 do ... end" },
    { [[n = "x" + n]], 6,
      [[attempt to perform arithmetic on a string value (constant 'x'); texts join with .., and ("%d]]
        .. [[ ranks"):format(n) writes a number into one]] },
    { [[n = "x%d" % 3]], 6,
      [[attempt to perform arithmetic on a string value (constant 'x%d'); texts join with .., and ("%d]]
        .. [[ ranks"):format(n) writes a number into one]] },
    { [[n = "x" * 3]], 6,
      [[attempt to perform arithmetic on a string value (constant 'x'); texts join with .., and ("%d]]
        .. [[ ranks"):format(n) writes a number into one]] },
    { [[n = f"x{n}"]], 6, [[undefined global 'f': ("%d ranks"):format(n) writes a number into a text]] },
    { [[n = r"x"]], 6, "undefined global 'r': [[...]] is a text without escapes" },
    { "n = 2 ** 3", 6, "unexpected symbol near '*'; ^ is the power" },
    { "n = [1, 2]", 6, "unexpected symbol near '['; a list is { 1, 2 }" },
    { "n = [i for i in range(3)]", 6,
      "unexpected symbol near '['; a loop fills a list: for i = 0, n - 1 do list[#list + 1] = i end" },
    { "n = { i for i in range(3) }", 6,
      "'}' expected near 'for'; a loop fills a list: for i = 0, n - 1 do list[#list + 1] = i end" },
    { "n = (i for i in x)", 6,
      "')' expected near 'for'; a loop fills a list: for i = 0, n - 1 do list[#list + 1] = i end" },
    { "n = (1, 2)", 6, "')' expected near ','; a list is { 1, 2 }" },
    { "def f(x):\n    return x", 6, "syntax error near 'f'; a function is local function f(x) return x end" },
    { "import numpy", 6, [[syntax error near 'numpy'; recipe.import "./x.lua" gets functions of a file]] },
    { "from a import b", 6, [[syntax error near 'a'; recipe.import "./x.lua" gets functions of a file]] },
    { "n = len(world)", 6,
      "undefined global 'len': #x is the length of a list or text, #family the number of its groups" },
    { "if p.tp != 2 then n = 1 end", 6, "'then' expected near '!'; Lua writes ~= for !=, and the word not for !" },
    { "if p.tp <> 2 then n = 1 end", 6, "unexpected symbol near '>'; Lua writes ~=" },
    { "if p.tp === 2 then n = 1 end", 6, "unexpected symbol near '='; == compares" },
    { "if p.tp = 2 then n = 1 end", 6, "'then' expected near '='; == compares" },
    { "n += 1", 6, "syntax error near '+'; Lua has no +=: a = a + 1" },
    { "n -= 1", 6, "syntax error near '-'; Lua has no -=: a = a - 1" },
    { "n *= 2", 6, "syntax error near '*'; Lua has no *=: a = a * 2" },
    { "n /= 2", 6, "syntax error near '/'; Lua has no /=: a = a / 2" },
    { "n //= 2", 6, "syntax error near '//'; Lua has no //=: a = a // 2, and -- begins a comment" },
    { "n %= 2", 6, "syntax error near '%'; Lua has no %=: a = a % 2" },
    { "n ++", 6, "syntax error near '+'; Lua has no +=: a = a + 1" },
    { "n = world_size", 6, "undefined global 'world_size': world.size is the number of ranks" },
    { "n = world.size()", 6, "attempt to call a number value (field 'size'); the number is world.size, without ()" },
    { "if p.tp not in t then n = 1 end", 6,
      [['then' expected near 'not'; a topology answers t:has "x", a table t.x ~= nil]] },
    { [[if "tp" in t then n = 1 end]], 6,
      [['then' expected near 'in'; a topology answers t:has "x", a table t.x ~= nil]] },
    { "if p.tp is None then n = 1 end", 6, "'then' expected near 'is'; == compares, also with nil" },
    { "if p.tp == 1 && n == 2 then n = 1 end", 6, "unexpected symbol near '&'; Lua writes and" },
    { "if p.tp == 1 || n == 2 then n = 1 end", 6, "unexpected symbol near '|'; Lua writes or" },
    { "if !p.tp then n = 1 end", 6, "unexpected symbol near '!'; Lua writes ~= for !=, and the word not for !" },
    { "if p.tp == 1 then n = 1 else if p.tp == 2 then n = 3 end", 10,
      "'end' expected (to close 'function' at line 2) near <eof>; the else if of line 6 opens a block of"
        .. " its own; Lua writes elseif" },
    { "if p.tp == 1 then\n    n = 1\n  else if p.tp == 2 then\n    n = 3\n  end", 14,
      "'end' expected (to close 'function' at line 2) near <eof>; the else if of line 8 opens a block of"
        .. " its own; Lua writes elseif" },
    { "print n", 6, "syntax error near 'n'; a call is print(x)" },
    { [[print "a", n]], 6, "syntax error near ','; a call is print(x)" },
    { "local x = { 1 }; n = 1 + x[0]", 6,
      "attempt to perform arithmetic on a nil value (field 'integer index'); lists count from 1" },
    { "local x = {} ; n = x[0].y", 6, "attempt to index a nil value (field 'integer index'); lists count from 1" },
    { "local f = lambda x: x", 7, "function arguments expected near 'return'; a function is function(x)"
        .. " return x end" },
    { "local f = lambda: 3", 6, "<name> expected near '3'; a function is function(x) return x end" },
    { "local f = x => x", 6, "unexpected symbol near '='; a function is function(x) return x end" },
    { "try:\n    n = 3\n  except E:\n    n = 4", 7,
      "function arguments expected near '='; pcall(f) gives false and the error" },
    { "with open(\"x\") as f:\n    n = 1", 6,
      "syntax error near 'open'; Lua has no with, and a recipe opens no files" },
    { "with open(\"x\"):\n    n = 1", 6, "syntax error near 'open'; Lua has no with, and a recipe opens no files" },
    { "class X:\n    pass", 6, "syntax error near 'X'; a recipe has tables and functions, no classes" },
    { "n = self.tp", 6, "undefined global 'self': the arguments of build are world, p, t" },
    { "n = 1 if p.tp else 2", 6, "'then' expected near 'else'; a choice is c and a or b" },
    { "n = p.tp ? 1 : 2", 6, "unexpected symbol near '?'; a choice is c and a or b" },
    { "if p.tp == 1 then pass end", 6, "syntax error near 'end'; an empty block needs no word" },
    { "for i = 0, 3 do continue end", 6,
      "syntax error near 'end'; goto next goes on, with ::next:: at the end of the loop" },
    { [[assert n, "x"]], 6, [[syntax error near 'n'; a call is assert(x, "message")]] },
    { [[raise ValueError("x")]], 6, [[syntax error near 'ValueError'; error "message" raises one]] },
    { [[raise(ValueError("x"))]], 6, [[undefined global 'raise': error "message" raises one]] },
    { "del t.tp", 6, "syntax error near 't'; t.x = nil takes x out" },
    { "local x: int = 3", 6, "unexpected symbol near ':'; Lua has no types" },
    { "var x = 3", 6, "syntax error near 'x'; a new name is local x = 1" },
    { "let x = 3", 6, "syntax error near 'x'; a new name is local x = 1" },
    { "const x = 3", 6, "syntax error near 'x'; a new name is local x = 1" },
    { "int x = 3", 6, "syntax error near 'x'; a new name is local x = 1" },
    { "for (int i = 0; i < 3; i++) { n = 1 }", 6,
      "<name> expected near '('; a loop that counts is for i = 0, n - 1 do" },
    { "if (p.tp == 1) { n = 2 }", 7, "'then' expected near 'return'; a block is if x then ... end" },
    { "while (n < 3) { n = 4 }", 7, "'do' expected near 'return'; a block is for i = 0, n - 1 do ... end" },
    { "function f() { return 1 }", 6, "unexpected symbol near '{'; a block ends with end, without braces" },
    { [[local x = """a note"""]], 6,
      "unexpected symbol near '\"a note\"'; -- begins a comment, and [[...]] is a text of several lines" },
    { [[local x = "a" "b"]], 6, [[unexpected symbol near '"b"'; texts join with ..]] },
    { "t.x = g 'tp':filter(function() return true end)", 6,
      "unknown field of a Family 'filter'; known: count, size, coverage, pick, bundle, pairs, neighbours, map, without, lists, "
        .. "twin, with, ranks, locate, groups, split, levels, segments, renumber, where; f:where(function(ranks) return true end) "
        .. "keeps groups, f:groups { 0, 3 } those of these numbers" },
    { "local x = {} ; x.append(3)", 6,
      "attempt to call a nil value (field 'append'); list[#list + 1] = x appends to a list" },
    { "local x = {} ; for k, v in pairs(x.items()) do end", 6,
      "attempt to call a nil value (field 'items'); for name, x in pairs(t) do goes through a table" },
    { [[local x = ",".join({ "a" })]], 6,
      [[unexpected symbol near '.'; a method of a text is ("a"):upper(), and table.concat(list, ", ") joins texts]] },
    { "local x = { 1, 2 } ; n = x[1:2]", 6,
      "']' expected near ':'; Lua has no slices; a loop copies a part of a list" },
    { "local x = { 1, 2 } ; n = x[:2]", 6,
      "unexpected symbol near ':'; Lua has no slices; a loop copies a part of a list" },
    { "local x = { 1, 2 } ; n = x[n:p]", 6,
      "function arguments expected near ']'; Lua has no slices; a loop copies a part of a list" },
    { "local x = { 1, 2 } ; n = x[::2]", 6,
      "unexpected symbol near '::'; Lua has no slices; a loop copies a part of a list" },
    { "for i in 0..8 do n = i end", 6, "malformed number near '0..8'; a loop that counts is for i = 0, n - 1 do" },
    { "for i = 0 to 8 do n = i end", 6, "',' expected near 'to'; a loop that counts is for i = 0, n - 1 do" },
    { "n = 1_000", 6, "malformed number near '1_'; digits stand side by side: 1000" },
    { "n = str(3)", 6,
      [[undefined global 'str': tostring(x) makes text, tonumber(x) a number, and ("%d ranks"):format(n)]]
        .. [[ writes one into a text]] },
    { [[n = int("3")]], 6,
      [[undefined global 'int': tostring(x) makes text, tonumber(x) a number, and ("%d ranks"):format(n)]]
        .. [[ writes one into a text]] },
    { "n = max(1, 2)", 6, "undefined global 'max': math.max is the function" },
    { "n = sum({ 1 })", 6, "undefined global 'sum': a loop adds: for _, x in ipairs(list) do total = total + x end" },
    { "n = sorted({ 1 })", 6, "undefined global 'sorted': table.sort(list) sorts a list in its place" },
    { [[n = "a" < 1]], 6, "attempt to compare string with number; tonumber(x) makes a number of a text" },
    { [[n = "a" .. { 1 }]], 6, [[attempt to concatenate a table value; table.concat(list, ", ") makes text of it]] },
    { [[n = "a" .. true]], 6, "attempt to concatenate a boolean value; tostring makes text of it" },
    { "n = g.tp()", 6,
      [[attempt to call a number value (field 'tp'); of a grid g, g.tp is the size of dim tp, and g "tp"]]
        .. [[ the family]] },
    { "n = g:tp()", 6,
      [[attempt to call a number value (method 'tp'); of a grid g, g.tp is the size of dim tp, and g "tp"]]
        .. [[ the family]] },
    { "x = 3", 6, "assignment to global 'x': use 'local'" },
    { "@cached", 6, "unexpected symbol near '@'; Lua has no decorators: f = g(f)" },
    { "n = 1 + \\\n   2", 6, "unexpected symbol near '\\'; a statement goes on in the next line by itself" },
    { "return t\n  t.x = g \"pp\"", 7,
      "'end' expected (to close 'function' at line 2) near 't'; return is the last statement of a block" },
    { "n = (1 + 2", 7, "')' expected (to close '(' at line 6) near 'return'" },
    { [[t.x = g("tp"]], 7, "')' expected (to close '(' at line 6) near 'return'" },
    { "yield n", 6, "syntax error near 'n'; a function returns a table of all" },
    { "switch (n) { case 1: n = 2 }", 6, "'}' expected near '1'; if x == 1 then ... elseif x == 2 then ... end" },
    { "local x = dist.new_group({ 0, 1 })", 6,
      [[undefined global 'dist': a family holds groups, as in t.tp = g "tp"]] },
    { "t.x = new_group({ 0, 1 })", 6, [[undefined global 'new_group': a family holds groups, as in t.tp = g "tp"]] },
    { "global n", 6, "syntax error near 'n'; a new name is local x = 1" },
    { "n = torch.arange(3)", 6, [[undefined global 'torch': a family holds groups, as in t.tp = g "tp"]] },
    { "if isinstance(n, int) then end", 6,
      [[undefined global 'isinstance': type(x) == "number" compares the type of a value]] },
    { "n = math.pow(2, 3)", 6, "recipes have no math.pow; they mean the same in every process, and end" },
    { "t.x = {{0, 1}, {2, 3}}", 6,
      "'x' is assigned a table; a topology holds families, grids and tensors: world:table{ {0, 1}, {2, 3} }"
        .. " makes groups of lists" },
    { "t.x = g[\"tp\"]", 6,
      [['x' is assigned a number; a topology holds families, grids and tensors: of a grid g, g.tp is a]]
        .. [[ size, and g "tp" the family]] },
    { "t.x = g.tp", 6,
      [['x' is assigned a number; a topology holds families, grids and tensors: of a grid g, g.tp is a]]
        .. [[ size, and g "tp" the family]] },
    { "n = 1 // don't", 6, "unfinished string near ''t'; -- begins a comment" },
  }, before, after)

  it("the lines around are a recipe", function() assert.equal(8, recipes.recipe(before .. after):plan(8).world) end)
end)

describe("in a recipe,", function()
  refuses({
    { "return recipe {\n  build = function(world, p, t)\n    t = topology(world)\n    for i = 0, 3 do\n    "
        .. "  t.x = 1\n    return t\n  end\n}", 8,
      "unexpected symbol near '}'; the 'for' of line 4 lacks its end" },
    { "return recipe {\n  build = function(world, p, t)\n    t = topology(world)\n    if p.x then\n     "
        .. " t.x = 1\n    t.y = 2\n  end,\n  params = { tp = 1 },\n}", 7,
      "unexpected symbol near ','; the 'if' of line 4 lacks its end" },
    { "return recipe {\n  build = function(world, p, t)\n    t = topology(world)\n    t.x = f(\"x\")\n}", 5,
      "unexpected symbol near '}'; the 'function' of line 2 lacks its end" },
    { "return recipe {\n  build = function(world, p, t)\n    t = topology(world)\n    while t\n      and"
        .. " t.x do\n      t.x = f(\"x\")\n    end\n    return t\n  end\n  end\n}", 10,
      "'}' expected (to close '{' at line 1) near 'end'; this end closes no block" },
    { "local function f(x)\n  if x then\n    return 1\n  return 2\nend\nreturn recipe { build = function(w)"
        .. " return topology(w) end }", 4,
      "'end' expected (to close 'if' at line 2) near 'return'; return is the last statement of a block" },
    { "return recipe {\n  build = function(world, p, t)\n    return topology(world)\n  params = { tp = 2 },\n}", 4,
      "'end' expected (to close 'function' at line 2) near 'params'; return is the last statement of a block" },
    { "return recipe {\n  function build(world, p, t)\n    return topology(world)\n  end\n}", 2,
      "'(' expected near 'build'; in a table write build = function(world, p, t)" },
    { "return recipe {\n  build: function(world, p, t)\n    return topology(world)\n  end\n}", 2,
      "<name> expected near 'function'; a field is written tp = 2, without quotes" },
    { "return recipe(\n  build = function(world, p, t)\n    return topology(world)\n  end\n)", 2,
      "')' expected (to close '(' at line 1) near '='; values by name stand in braces: f { tp = 2 }" },
    { "return recipe {\n  params = { tp = 2 }\n  build = function(world, p, t)\n    return"
        .. " topology(world)\n  end\n}", 3,
      "'}' expected (to close '{' at line 1) near 'build'; a comma may be missing before it" },
    { "import moongrid\nreturn recipe {}", 1,
      [[syntax error near 'moongrid'; recipe.import "./x.lua" gets functions of a file]] },
    { "def build(world, p):\n  return topology(world)", 1,
      "syntax error near 'build'; a function is local function f(x) return x end" },
    { "return recipe {}\nlocal x = 3", 2, "<eof> expected near 'local'; return is the last statement of a block" },
  }, "", "")
end)

-- Recipes with a letter taken out, or with a word put in, are refused in one line or taken.
it("hints are for any text", function()
  local text = before .. "  for i = 0, 3 do\n    if i == 2 then t.x = g \"pp\" --[=[ a ]=]\n"
        .. "    else n = [[b]] end\n  end" .. after
  for at = 1, #text do
    for _, put in ipairs { "", ":", " end ", "[=", "\"", "//", "(", "}" } do
      local done, said = pcall(recipes.recipe, text:sub(1, at - 1) .. put .. text:sub(at + 1))
      assert.is_true(done or not recipes.plain(said):find("\n.*; "), said)
    end
    pcall(recipes.recipe, text:sub(1, at))
  end
end)
