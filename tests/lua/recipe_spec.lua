-- SPDX-License-Identifier: MIT
--
-- Recipes as users write them: files, loaded by `require "moongrid"` and planned. Refusals are
-- compared whole, with the recipe's own file and line.

local mg = require "moongrid"
local recipes = assert(loadfile("tests/lua/recipes.lua", "t", _ENV))() -- with busted's names
local write, recipe, plain, refusal = recipes.write, recipes.recipe, recipes.plain, recipes.refusal
local refuses, simple = recipes.refuses, recipes.simple

local options = {}
for i, option in ipairs((mg.options())) do options[i] = option.name end

-- A recipe whose build is this one line, the recipe's line 2.
local function build(line) return "return recipe { build = function(world)\n" .. line .. "\nend }\n" end

-- A recipe that builds nothing and has these parameters, which a query gives back.
local function echo(params)
  return "local params = {\n" .. params .. "\n} return recipe { params = params, build = function(world)\n"
    .. "return topology(world) end, queries = { all = function(_, _, p) local o = {}\n"
    .. "for k, v in pairs(p) do o[k] = v end return o end } }\n"
end

local function values(params, given)
  local r = recipe(echo(params))
  return r:ask(r:plan(8, given or {}):dry(0), "all", {})
end

describe("moongrid.recipes", function()
  it("gives the text of a bundled recipe as it was written, and the names of its parts", function()
    local text, parts = mg.recipes "megatron"
    assert.equal(io.open("lua/moongrid/recipes/megatron.lua"):read "a", text)
    assert.truthy(#parts > 3)
    for _, part in ipairs(parts) do
      local file = ("lua/moongrid/recipes/%s.lua"):format((part:gsub("%.", "/")))
      assert.equal(io.open(file):read "a", (mg.recipes(part)))
    end
    assert.same({ nil }, { mg.recipes "megatrn" })
  end)
end)

describe("a recipe's file", function()
  local support = dofile "tests/lua/support.lua"
  local text = "return recipe { base = 'picotron' }\n"

  it("may begin as a script does, or with a byte order mark", function()
    for _, before in ipairs { "#!/usr/bin/env moongrid\n", "\xEF\xBB\xBF", "\xEF\xBB\xBF# x\n", "" } do
      local path = support.file(before .. text)
      assert.equal(8, mg.load(path):plan(8).world)
    end
    local path = support.file "#!/usr/bin/env moongrid\nreturn 5 +"
    local ok, said = pcall(mg.load, path)
    assert.is_false(ok)
    assert.truthy(said:find(":2: ", 1, true), said)
  end)

  it("is not a pipe, which might never end", function()
    local path = os.tmpname() .. ".lua"
    local _, err, code = support.run(("mkfifo %s && timeout 10 build/moongrid plan %s --world 8"):format(path, path))
    os.remove(path)
    assert.equal(1, code)
    assert.equal(("moongrid: cannot read %s: it is not a regular file\n"):format(path), err)
  end)

  it("is a file, and not without end", function()
    local ok, said = pcall(mg.load, "/dev/zero")
    assert.is_false(ok)
    assert.truthy(said:find("cannot read /dev/zero: it is not a regular file", 1, true), said)
    ok, said = pcall(mg.load, "./lua")
    assert.is_false(ok)
    assert.truthy(said:find("cannot read lua: Is a directory", 1, true), said)
  end)
end)

describe("a recipe", function()
  it("makes the plan that its families say", function()
    local p = recipe(simple):plan(8, { tp = 2 })
    assert.are.same({ "tp" }, p.families)
    assert.are.same({ 2, 3 }, p:family("tp"):ranks(1))
    assert.are.equal(4, p:grid("grid").dp)
  end)

  it("may be planned without parameters", function()
    local r = recipe(simple)
    assert.are.equal(r:plan(8, {}), r:plan(8))
  end)

  it("survives a refused plan", function()
    local r = recipe(simple)
    assert.is_false(pcall(r.plan, r, 8, { tp = 3 }))
    assert.are.equal(4, r:plan(8, { tp = 2 }):family("tp").count)
  end)

  it("puts its parameters into the plan and its digest", function()
    local r = recipe(simple)
    local one, two = r:plan(8, { tp = 2 }), r:plan(8, { tp = 4 })
    assert.is_truthy(one:text():find("\nparam tp = 2\n", 1, true))
    assert.are_not.equal(one.digest, two.digest)
  end)

  it("means the same wherever the file is", function()
    local here = recipe(simple):plan(8, {})
    assert(os.execute("mkdir " .. recipes.folder .. "/sub"))
    assert.are.equal(here.digest, mg.load(write("sub/other.lua", simple)):plan(8, {}).digest)
  end)
end)

describe("a query", function()
  for answer, message in pairs {
    ["s.tp:buffer(1)"] = "r.lua:2: a query or policy cannot communicate: one rank asks it alone",
    ["function() end"] = "query 'q' returned a function; it can return plain values only",
    ["s.tp"] = "query 'q' returned a Group; it can return plain values only",
    ["{ s.tp }"] = "query 'q' returned a value that JSON does not have: a number that is not finite, text that is not UTF-8, or a "
      .. "table whose keys are neither those of a list nor names",
    ["(function() local t = {} t[1] = t return t end)()"] = "query 'q' returned a value of more than 262144 values or 4194304 "
      .. "bytes of text, or nested too deep",
  } do
    it("does not answer with " .. answer, function()
      local r = recipe("return recipe { base = 'picotron', queries = { q = function(s)\nreturn " .. answer .. " end } }")
      local ok, said = pcall(r.ask, r, r:plan(8, { tp = 2 }):dry(0), "q")
      assert.are.same({ false, message }, { ok, (said:gsub("^.*/r%.lua", "r.lua"):gsub("^%S+_spec.lua:%d+: ", "")) })
    end)
  end
end)

describe("parameters", function()
  local kinds = [[
    size = param.size(2), int = param.integer(-3), num = param.number(0.5), flag = param.flag(true),
    text = param.text("a-b"), list = param.list { 0, -1 }, none = param.size(nil, "left out"),
    named = param.table { a = 1 }, any = param.any("x"),
    plain = 4, yes = false, word = "w", ratio = 1.5, many = { 1, 2 }]]

  it("have their defaults", function()
    assert.are.same({ size = 2, int = -3, num = 0.5, flag = true, text = "a-b", list = { 0, -1 },
                      named = { a = 1 }, any = "x", plain = 4, yes = false, word = "w", ratio = 1.5, many = { 1, 2 } }, values(kinds))
  end)

  it("are read from the text of a command line", function()
    assert.are.same({ size = 8, int = -1, num = 0.25, flag = false, text = "7", list = { 3, -2 }, none = 5,
                      named = { b = { true } }, any = { 1, "y" }, plain = -9, yes = true, word = "true", ratio = 2, many = {} },
      values(kinds, { size = "8", int = "-1", num = "0.25", flag = "false", text = "7", list = "3,-2", none = "5",
                      named = '{"b": [true]}', any = '[1, "y"]', plain = "-9", yes = "1", word = "true", ratio = "2", many = "" }))
  end)

  it("are taken as values", function()
    local v = values(kinds, { size = 8, num = 2, flag = false, list = { 5 }, none = 1, word = "x" })
    assert.are.same({ 8, 2, false, { 5 }, 1, "x" }, { v.size, v.num, v.flag, v.list, v.none, v.word })
  end)

  it("keep the order in which they are declared; plain defaults follow by name", function()
    local names = {}
    for i, p in ipairs(recipe(echo(kinds)):info().params) do names[i] = p.name .. ":" .. p.kind end
    assert.are.equal("size:size int:integer num:number flag:flag text:text list:list none:size named:table any:any many:list plain:integer "
      .. "ratio:number word:text yes:flag", table.concat(names, " "))
  end)

  it("answer to their aliases", function()
    local r = recipe(simple)
    for _, name in ipairs { "tp", "t", "tensor_size" } do
      assert.are.equal(r:plan(8, { tp = 4 }), r:plan(8, { [name] = 4 }))
    end
  end)

  it("give nil where they are optional and left out", function()
    assert.is_nil(values("a = param.size(), b = param.text()").a)
    assert.is_nil(recipe(echo "a = param.size()"):info().params[1].default)
  end)

  local function bad(what, declared, given, message)
    refuses { { what, echo(declared), message, params = given } }
  end
  bad("size 0", "a = param.size(1)", { a = 0 },
    "r.lua:2: parameter 'a' is a size (an integer of 1 or more), not 0; nearest is 1")
  bad("size -2 as text", "a = param.size(1)", { a = "-2" },
    "r.lua:2: parameter 'a' is a size (an integer of 1 or more), not '-2'; nearest is 1")
  bad("a word as size", "a = param.size(1)", { a = "two" },
    "r.lua:2: parameter 'a' is a size (an integer of 1 or more), not 'two'")
  bad("half a size", "a = param.size(1)", { a = 1.5 },
    "r.lua:2: parameter 'a' is a size (an integer of 1 or more), not 1.5")
  bad("a size beyond 64 bits", "a = param.size(1)", { a = "99999999999999999999" },
    "r.lua:2: parameter 'a' is a size (an integer of 1 or more), not '99999999999999999999'")
  bad("a flag as integer", "a = param.integer(1)", { a = true }, "r.lua:2: parameter 'a' is an integer, not true")
  bad("a word as number", "a = param.number(1)", { a = "x" }, "r.lua:2: parameter 'a' is a number, not 'x'")
  bad("yes as flag", "a = param.flag(false)", { a = "yes" }, "r.lua:2: parameter 'a' is true or false (also 1 or 0), not 'yes'")
  bad("1 as flag", "a = param.flag(false)", { a = 1 }, "r.lua:2: parameter 'a' is true or false, not 1")
  bad("a number as text", "a = param.text('')", { a = 5 }, "r.lua:2: parameter 'a' is text, not 5")
  bad("a list with a hole", "a = param.list {}", { a = "1,,2" },
    "r.lua:2: parameter 'a' is a list of integers (0,-1), not '1,,2'")
  bad("a list of words", "a = param.list {}", { a = { "x" } },
    "r.lua:2: parameter 'a' is a list of integers (0,-1), not {x}")
  bad("a table by name as list", "a = param.list {}", { a = { x = 1 } },
    "r.lua:2: parameter 'a' is a list of integers (0,-1), not a table")
  bad("a list as table", "a = param.table {}", { a = { 1 } },
    "r.lua:2: parameter 'a' is a table with names as keys (JSON on a command line), not {1}")
  bad("text that is not JSON as table", "a = param.table {}", { a = "{x}" },
    "r.lua:2: parameter 'a' is a table with names as keys (JSON on a command line), not '{x}'")
  bad("a plain default's kind", "a = 'x'", { a = 5 }, "r.lua:3: parameter 'a' is text, not 5")
  bad("an unknown one", "ab = param.size(1, '', 'cd')", { ac = 1 },
    "r.lua:3: unknown parameter 'ac'; nearest is 'ab' (ab, cd)")
  bad("any where there are none", "", { a = 1 }, "r.lua:3: unknown parameter 'a'; there are none")
  bad("two names for one", "ab = param.size(1, '', 'cd')", { ab = 1, cd = 1 },
    "r.lua:2: parameter 'ab' is given twice, as 'ab' and as 'cd'")
  refuses {
    { "an alias in build", "return recipe { params = { size = param.size(2, '', 's') }, build = function(_, p)\nreturn p.s end }",
      "r.lua:2: parameter 's' has its full name here: size" },
    { "more names than a message has room for", "local p = {} for i = 1, 40 do p[('a_long_name'):rep(2) .. i] = i end\n"
      .. "return recipe { params = p, build = function(_, p)\nreturn p.zzz end }", "r.lua:3: unknown parameter 'zzz'; known: "
      .. "a_long_namea_long_name1, a_long_namea_long_name10, a_long_namea_long_name11, a_long_namea_long_name12, "
      .. "a_long_namea_long_name13, a_long_namea_long_name14, a_long_namea_long_name15, a_long_namea_long_name16, "
      .. "a_long_namea_long_name17, a_long_namea_long_name18, a_long_namea_long_name19, a_long_namea_long_name2, "
      .. "a_long_namea_long_name20, a_long_namea_long_name21, a_long_namea_long_name22, a_long_namea_long_name23, "
      .. "a_long_namea_long_name24, a_long_namea_long_name25, a_long_namea_long_name26, ..." },
    { "an alias of two", echo "a = param.size(1, '', 'x'),\nb = param.size(1, '', 'x')",
      "r.lua:3: parameters 'a' and 'b' both answer to 'x'" },
    { "an alias that is a name", echo "a = param.size(1, '', 'b'),\nb = param.size(1)",
      "r.lua:3: parameters 'a' and 'b' both answer to 'b'" },
    { "an unknown kind", echo "a = param.sise(1)",
      "r.lua:2: unknown kind of parameter 'sise'; nearest is 'size' (any, choice, file, flag, index, integer, list, names, number, order, size, table, text)" },
    { "a default of another kind", echo "a = param.size(0)",
      "r.lua:2: the default of a size parameter is a size (an integer of 1 or more)" },
    { "a default that is not a value", echo "a = topology",
      "r.lua:3: the default of parameter 'a' is a function; write a number, a string, a boolean, a list of integers or "
      .. "param.KIND(...); param.any takes every plain value" },
    { "parameters without names", echo "5", "r.lua:3: params are by name; a key is a number" },
    { "a typo in build", "return recipe { params = { tp = 1, pp = 1 }, build = function(world, p)\n"
      .. "return topology(world, p.tpp) end }", "r.lua:2: unknown parameter 'tpp'; nearest is 'tp' (pp, tp)" },
    { "a change in build", "return recipe { params = { tp = 1 }, build = function(world, p)\np.tp = 2\n"
      .. "return topology(world) end }", "r.lua:2: parameter 'tp' cannot be changed" },
  }
end)

describe("a recipe's argument", function()
  local function answer(expression)
    local r = recipe(("local arithmetic = ... return recipe { build = function(world) return topology(world) end, "
      .. "queries = { it = function() return %s end } }"):format(expression))
    return r:ask(r:plan(1):dry(0), "it")
  end

  it("is arithmetic on sizes", function()
    assert.are.same({ 4, 1, 6 }, answer "{ arithmetic.gcd(12, 8), arithmetic.gcd(3, 7), arithmetic.gcd(6, 0) }")
    assert.are.same({ true, false, false, false, true }, answer [[{ arithmetic.multiply_to(12, { 3, 4 }),
      arithmetic.multiply_to(12, { 3, 3 }), arithmetic.multiply_to(12, { 5 }), arithmetic.multiply_to(12, { 0 }),
      arithmetic.multiply_to(1, {}) }]])
    assert.are.same({ "4 or 6", 6, 1, "2 or 8", 2, false }, answer [[{ arithmetic.nearest(5, 12), arithmetic.nearest(9, 6),
      arithmetic.nearest(7, 1), arithmetic.nearest(4, 8), arithmetic.nearest(1, 8),
      arithmetic.nearest(2, 12, function(n) return n > 12 end) or false }]])
  end)

  it("refuses what is not there, and to be changed", function()
    local path = write("r.lua", "local arithmetic = ...\nreturn arithmetic.gdc(1, 2)")
    local ok, said = pcall(mg.load, path)
    assert.is_false(ok)
    assert.equal("r.lua:2: unknown function of arithmetic 'gdc'; nearest is 'gcd' (gcd, multiply_to, nearest)", plain(said))
    ok, said = pcall(mg.load, write("s.lua", "local arithmetic = ...\narithmetic.gcd = 1"))
    assert.is_false(ok)
    assert.equal("s.lua:2: function of arithmetic 'gcd' cannot be changed", plain(said))
  end)
end)

describe("build", function()
  refuses {
    { "sizes that do not divide", simple, "r.lua:2: tp 3 does not divide the 8 ranks; nearest: tp 2 or 4, or a world of 6 or 9 ranks",
      params = { tp = 3 } },
    { "a size larger than the world", simple, "r.lua:2: tp 16 does not divide the 8 ranks; nearest: tp 8, or a world of 16 ranks",
      params = { tp = 16 } },
    { "an unknown dim", build "local g = grid(world, 'tp', { tp = fill }) return g 'tpp'",
      "r.lua:2: unknown dim 'tpp'; nearest is 'tp' (tp)" },
    { "a family twice", build "local t, g = topology(world), grid(world, 'x', { x = fill })\nt.a = g 'x'\nt.a = g 'x'",
      "r.lua:4: 'a' is in the topology already, since r.lua:3; name yours otherwise, or assign nil first" },
    { "a rank out of range", build "return world:table { { 0, 1, 8 } }",
      "r.lua:2: rank 8 of group 0 is out of range; ranks are 0 to 7" },
    { "an empty pick", build "return grid(world, 'x', { x = fill }) 'x':pick()",
      "r.lua:2: pick: name at least one position of groups of 8" },
    { "lists that overlap", build "return world:table { { 0, 1, 2, 3 }, { 3, 4, 5, 6, 7 } }",
      "r.lua:2: rank 3 is in groups 0 and 1 of the table; declare a 'cover' if that is meant" },
    { "families that are not the same", build "local g = grid(world, 'x-y', { x = 2, y = 4 })\nsame(g 'x', g 'y')",
      "r.lua:3: the families are not the same: 4 groups (2:1) x (4:2), 2 groups (4:2) x (2:1)" },
    { "a wrong option", build "return grid(world, 'x', { x = 8 }) 'x':with { timout = 5 }",
      "r.lua:2: unknown option 'timout'; nearest is 'timeout' (" .. table.concat(options, ", ") .. ")" },
    { "nothing returned", build "topology(world)", "r.lua:1: build returned nothing; end it with 'return t', a topology" },
    { "a number returned", build "return 5", "r.lua:1: build returned a number; end it with 'return t', a topology" },
    { "a family returned", build "return grid(world, 'x', { x = 8 }) 'x'",
      "r.lua:1: build returned a Family; end it with 'return t', a topology" },
    { "its own error", build "error('tp must be even')", "r.lua:2: tp must be even" },
    { "an error with the caller's place", build "local function check() error('no', 2) end\ncheck()", "r.lua:3: no" },
    { "a failed assert", build "assert(1 > 2, 'one is not more')", "r.lua:2: one is not more" },
    { "a bare assert", build "assert(nil)", "r.lua:2: assertion failed" },
    { "a table as error", build "error { code = 7 }",
      'r.lua:2: error got a table, not a message such as "tp must be even"' },
    { "an error without a message", build "error()", 'r.lua:2: error got nil, not a message such as "tp must be even"' },
    { "an object as error", build "error(world)", 'r.lua:2: error got a World, not a message such as "tp must be even"' },
    { "a number as error", build "error(42)", "r.lua:2: 42" },
    { "a loop over a world", build "for r in world do end",
      "r.lua:2: a World is not an iterator; write for i = 0, world.size - 1 do; world:rank(i) is a rank" },
    { "a loop over a grid", build "for d in grid(world, 'x', { x = 8 }) do end",
      "r.lua:2: a Grid is not an iterator; write for _, dim in ipairs(grid:dims()) do; dim[1] is its name, dim[2] its size" },
    { "a loop over a family", build "for g in grid(world, 'x', { x = 8 }) 'x' do end",
      "r.lua:2: a Family is not an iterator; write for group, ranks in pairs(family) do; family:ranks(0) is the first group" },
    { "a loop over a topology", build "for f in topology(world) do end",
      "r.lua:2: a Topology is not an iterator; write for name, family in pairs(topology) do" },
    { "a loop over a list", build "for x in { 1, 2 } do end",
      "r.lua:2: a table is not an iterator; write for i, x in ipairs(list) do, or for name, x in pairs(table) do" },
    { "a loop over a number", build "for i in 8 do end", "r.lua:2: a number is not an iterator" },
    { "ipairs of a world", build "for _, r in ipairs(world) do end",
      "r.lua:2: a World is not a list; write for i = 0, world.size - 1 do; world:rank(i) is a rank" },
    { "pairs of a world", build "for _, r in pairs(world) do end",
      "r.lua:2: a World is not a list; write for i = 0, world.size - 1 do; world:rank(i) is a rank" },
    { "ipairs of a topology", build "for _, f in ipairs(topology(world)) do end",
      "r.lua:2: a Topology is not a list; write for name, family in pairs(topology) do" },
    { "an element of a number", build "return world.size[1]", "r.lua:2: a number is not a list" },
    { "a topology that nobody made", build "local t t.x = 1", "r.lua:2: attempt to index a nil value (local 't'); "
      .. "t = topology(world) makes a topology; in a recipe with a base, the third argument of build is the topology of the base" },
    { "a size that is called", build "return grid(world, 'tp', { tp = 8 }).tp(2)", "r.lua:2: attempt to call a number value "
      .. '(field \'tp\'); with a grid g, g.tp is the size of dim tp, and g "tp" is the family along this dim' },
    { "a grid in a text", build "return 'x' .. grid(world, 'x', { x = 8 })",
      "r.lua:2: attempt to concatenate a moongrid.Grid value; tostring makes text of it" },
    { "arithmetic on a grid", build "return 2 * grid(world, 'x', { x = 8 })", "r.lua:2: attempt to perform arithmetic on "
      .. "a moongrid.Grid value; #grid is the number of its ranks, grid.tp the size of dim tp" },
    { "a log of another kind", build "log('%d', 'x')", "r.lua:2: bad argument #2 to 'log' (number expected, got string)" },
    { "a log without its values", build "log('%d ranks')", "r.lua:2: bad argument #2 to 'log' (no value)" },
    { "a log without a format", build "log(world)",
      'r.lua:2: log takes a format first, such as "%d ranks", not a World; print takes any values' },
    { "a log of an address", build "log('%p', world)", "r.lua:2: log: %p prints an address, which differs between ranks" },
    { "a log in no format of Lua", build "log('%y', 1)", "r.lua:2: invalid conversion '%y' to 'log'" },
    { "a format in none of Lua", build "return string.format('%y', 1)", "r.lua:2: invalid conversion '%y' to 'string.format'" },
    { "an undefined global", build "return topolgy(world)", "r.lua:2: undefined global 'topolgy'; nearest is 'topology'" },
    { "an undefined global unlike all", build "return zzz", "r.lua:2: undefined global 'zzz': neither a word of recipes nor a function that this program has registered; "
      .. 'a dim is written g "zzz", a family t.zzz, a parameter p.zzz, a text "zzz"' },
    { "a size for a family", build "local t, g = topology(world), grid(world, 'tp', { tp = 8 })\nt.tp = g.tp",
      "r.lua:3: 'tp' is assigned a number; a topology holds families, grids and tensors: of a grid g, g.tp is a size, and "
      .. "g \"tp\" the family" },
    { "a method for the family of a dim of its name", build "local t, g = topology(world), grid(world, 'at', { at = 8 })\nt.at = g.at",
      "r.lua:3: 'at' is assigned a function; a topology holds families, grids and tensors" },
    { "a comma left out of a call", build "return grid(world 'x', { x = 8 })",
      "r.lua:2: attempt to call a moongrid.World value (local 'world'); a comma or operator may be missing after it" },
    { "a comma left out of a list", build "return world:table { { 0 } { 1 } }",
      "r.lua:2: '}' expected near '{'\n  return world:table { { 0 } { 1 } }\n                             ^" },
    { "a comma left out between texts", build "return g:ordered('a' 'b')",
      "r.lua:2: ')' expected near ''b''\n  return g:ordered('a' 'b')\n                       ^" },
    { "a comma left out between names", build "return topology(world p)",
      "r.lua:2: ')' expected near 'p'\n  return topology(world p)\n                        ^" },
    { "an assignment in a condition", build "if p = 1 then end", "r.lua:2: 'then' expected near '='; write == to compare\n  if p = 1 then end\n       ^" },
    { "two = for one", build "local t = topology(world) t.a == 1", "r.lua:2: syntax error near '=='\n  local t = topology(world) t.a == 1\n                                ^" },
    { "another language's unequal", build "if p != 1 then end", "r.lua:2: 'then' expected near '!'; write ~= for !=\n  if p != 1 then end\n       ^" },
    { "another language's increment", build "local n = 1\nn += 1", "r.lua:3: syntax error near '+'; write a = a + b for a += b\n  n += 1\n    ^" },
    { "a new global", build "tp = 2", "r.lua:2: assignment to global 'tp': use 'local'" },
    { "an overwritten global", build "grid = nil", "r.lua:2: assignment to global 'grid': use 'local'" },
    { "arithmetic on a family", build "return grid(world, 'x', { x = 8 }) 'x' + 1",
      "r.lua:2: attempt to perform arithmetic on a moongrid.Family value; #family is the number of its groups, family.size "
      .. "the number of ranks in each group" },
    { "the world's size", simple, "s.lua:1: a world has 1 to 2147483647 ranks, not 0", world = 0 },
  }
end)

describe("the file", function()
  refuses {
    { "nothing returned", "local x = 1", "s.lua:1: r.lua returned nothing; end it with 'return recipe { ... }'" },
    { "a number returned", "return 5", "s.lua:1: r.lua returned a number; end it with 'return recipe { ... }'" },
    { "a table returned", "return { build = 1 }", "s.lua:1: r.lua returned a table; end it with 'return recipe { ... }'" },
    { "syntax", "\nx = = 2", "r.lua:2: unexpected symbol near '='\n  x = = 2\n      ^" },
    { "an open block", "return recipe {\nbuild = function()\nlocal x = 1", "r.lua:3: 'end' expected "
      .. "(to close 'function' at line 2) near <eof>" },
    { "bytecode", string.dump(function() end), "s.lua:1: r.lua: a recipe is text, and this is a binary chunk" },
    { "an unknown field", "return recipe { parms = {}, build = function() end }", "r.lua:1: unknown field of a recipe "
      .. "'parms'; nearest is 'params' (doc, base, params, rest, build, concurrent, families, queries, getters, arguments, settings, policy, agreed, idle, names, step, machine, spares, traffic)" },
    { "a field of another type", "return recipe { doc = 5, build = function() end }",
      "r.lua:1: field 'doc' of a recipe is a string, not a number" },
    { "no build", "\nreturn recipe { doc = 'x' }",
      "r.lua:2: a recipe needs 'build', a function (world, p) that returns a topology" },
    { "a query that is none", "return recipe { build = function() end, queries = { x = 5 } }",
      "r.lua:1: query 'x' is not a function" },
    { "parts, which bundled recipes alone have", "local _, part = ...\nreturn part 'x'",
      "r.lua:2: attempt to call a nil value (local 'part')" },
    { "a part of a bundled recipe", "return recipe { base = 'megatron.releases' }",
      "s.lua:1: megatron.releases returned a table; end it with 'return recipe { ... }'" },
    { "recipe of a number", "\nreturn recipe(5)", "r.lua:2: recipe takes a table or a name, not 5" },
  }

  it("may be missing", function()
    local ok, message = pcall(load("local mg, path = ... return mg.load(path)", "@s.lua"), mg, recipes.folder .. "/none.lua")
    assert.is_false(ok)
    assert.are.equal("s.lua:1: cannot open none.lua: No such file or directory", plain(message))
  end)
end)

describe("a base", function()
  local derived = [[
return recipe { base = "BASE", params = { more = 2 }, build = function(world, p, t)
  t.more = t.grid "dp"
  return t
end }
]]

  it("keeps kind, doc and other names of a parameter whose default is changed, by any of its names", function()
    for _, name in ipairs { "tensor_model_parallel_size", "tp" } do
      local r = recipe(("return recipe { base = 'megatron', params = { %s = 4 } }"):format(name))
      assert.equal(4, r:plan(8):family "tp".size)
      assert.equal(2, r:plan(8, { tp = 2 }):family "tp".size)
    end
    local function refused(params)
      return refusal(("return recipe { base = 'megatron', params = { %s } }"):format(params))
    end
    assert.equal("r.lua:1: the default of parameter 'tp', a size of the base, is a size (an integer of 1 or more); "
      .. "param.text(...) declares another kind", refused "tp = 'x'")
    assert.equal("r.lua:1: parameters 'tensor_model_parallel_size' and 'tp' are names of one parameter of the base",
      refused "tp = 4, tensor_model_parallel_size = 2")
  end)

  it("may be a bundled recipe by name", function()
    local p = recipe((derived:gsub("BASE", "picotron"):gsub("t.grid \"dp\"", "t.grid('pp', 'tp')"))):plan(8, { tp = 2 })
    assert.are.same({ "tp", "cp", "pp", "dp", "cp_dp", "pp_dp", "world_group", "more" }, p.families)
    assert.are.equal("tp", p:shares "more")
  end)

  -- What a recipe on top of picotron, with this body of build, has of a family in its plan's text.
  local function on_picotron(body, family)
    local p = recipe("return recipe { base = 'picotron', build = function(world, p, t)\n" .. body .. "\nreturn t end }")
      :plan(8, { tp = 2 })
    return p, family and p:text():match("\nfamily " .. family .. "([^\n]*)")
  end

  it("has families whose options the recipe on top changes, in their place and on top of theirs", function()
    local same, before = on_picotron("", "tp")
    local p, tp = on_picotron("t.tp = t.tp:with { nccl = { max_ctas = 8 } } t.tp = t.tp:with { lazy = true }", "tp")
    assert.are.same(same.families, p.families)
    assert.is_truthy(tp:find("lazy", 1, true) and tp:find("max_ctas=8", 1, true), tp)
    assert.is_falsy(before:find("max_ctas", 1, true))
    assert.are_not.equal(same.digest, p.digest)
    assert.are.equal(same.digest, on_picotron("t.tp = t.tp").digest)
    assert.are.equal(same.digest, on_picotron("t.tp = t.tp:with { lazy = true } t.tp = t.tp:with { lazy = false }").digest)
  end)

  it("has families and grids that the recipe on top takes out", function()
    local p = on_picotron "t.cp = nil t.grid = nil t.pp_dp = nil"
    assert.are.same({ "tp", "pp", "dp", "cp_dp", "world_group" }, p.families)
    assert.are.same({}, p.grids)
    assert.are.same({ 0, 1 }, p:family("tp"):ranks(0))
    assert.are.same({ "cp", "pp", "dp", "cp_dp", "pp_dp", "world_group", "tp" }, on_picotron("local tp = t.tp t.tp = nil t.tp = tp").families)
    p = on_picotron "for name in pairs(t) do t[name] = nil end t.tp = t.grid 'tp'"
    assert.are.same({ { "tp" }, { "grid" } }, { p.families, p.grids })
    p = on_picotron [[
      local seen = ""
      for name in pairs(t) do
        seen = seen .. " " .. name
        if #name == 2 then t[name] = nil end
        if name == "tp" then t.cp_dp = nil end
      end
      assert(seen == " tp cp pp dp pp_dp world_group", seen)]]
    assert.are.same({ "pp_dp", "world_group" }, p.families)
  end)

  it("may be a file beside it, whatever the working directory", function()
    write("simple.lua", simple)
    for _, base in ipairs { "simple.lua", "./simple.lua", "none/../simple.lua" } do
      assert.are.same({ "tp", "more" }, recipe((derived:gsub("BASE", base))):plan(8, {}).families)
    end
  end)

  it("may be a recipe value, and be built by hand", function()
    write("simple.lua", simple)
    local p = recipe [[
      local simple = recipe "./simple.lua"
      return recipe { params = { tp = 2 }, build = function(world, p)
        local t = simple.build(world, { t = p.tp })
        t.all = t.grid("tp", "dp")
        return t
      end }]]:plan(8, {})
    assert.are.same({ "tp", "all" }, p.families)
    assert.are.equal(2, p:family("tp").size)
  end)

  it("gives its parameters first, and an own one takes the place of its namesake", function()
    write("simple.lua", simple)
    local info = recipe [[
      return recipe { base = "./simple.lua", params = { extra = 1, tp = param.size(4, "mine") } }]]:info()
    assert.are.same({ { "tp", "4", "mine" }, { "extra", "1", "" } },
      { { info.params[1].name, info.params[1].default, info.params[1].doc },
        { info.params[2].name, info.params[2].default, info.params[2].doc } })
    assert.are.equal("two dims", info.doc)
  end)

  it("may not be itself", function()
    for _, spelling in ipairs { "r.lua", "./r.lua" } do
      assert.are.equal(("r.lua:1: recipe '%s' is based on itself"):format(spelling),
        refusal(("return recipe { base = '%s' }"):format(spelling)))
    end
  end)

  it("may not go in a circle", function()
    write("other.lua", "return recipe { base = './r.lua' }")
    assert.are.equal("other.lua:1: recipe './r.lua' is based on itself", refusal "return recipe { base = './other.lua' }")
  end)

  it("that failed fails again in the same way", function()
    write("broken.lua", "error 'broken'")
    assert.are.equal("broken.lua:1: broken",
      refusal "pcall(recipe, './broken.lua')\nreturn recipe { base = './broken.lua' }")
  end)

  it("that is refused says so in its own file", function()
    write("simple.lua", simple)
    assert.are.equal("simple.lua:2: tp 3 does not divide the 8 ranks; nearest: tp 2 or 4, or a world of 6 or 9 ranks",
      refusal("return recipe { base = './simple.lua' }", { tp = 3 }))
  end)

  refuses {
    { "an unknown base", "return recipe { base = 'picotrn' }", "r.lua:1: no recipe 'picotrn': neither bundled nor a file; "
      .. "nearest is 'picotron' (" .. table.concat(mg.recipes(), ", ") .. ")" },
    { "a base that is not a recipe", "return recipe { base = 5 }", "r.lua:1: field 'base' is a recipe or the name of one" },
    { "a family of the base's again",
      "return recipe { base = 'picotron', build = function(_, _, t)\nt.tp = t.dp\nreturn t end }",
      "r.lua:2: 'tp' is in the topology already, since picotron:42; name yours otherwise, or assign nil first" },
    { "an unknown field of a recipe", "local base = recipe 'picotron'\nreturn base.biuld",
      "r.lua:2: unknown field of a recipe 'biuld'; nearest is 'build' (build, params, doc)" },
    { "a change of a recipe", "local base = recipe 'picotron'\nbase.build = nil",
      "r.lua:2: a recipe cannot be changed; make another one with this one as its base" },
  }
end)
