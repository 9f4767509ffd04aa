-- SPDX-License-Identifier: MIT
--
-- recipe.import: the functions of a file, under the rules of recipe files.

local recipes = assert(loadfile("tests/lua/recipes.lua", "t", _ENV))() -- with busted's names
local write, recipe, plain = recipes.write, recipes.recipe, recipes.plain
local mg = require "moongrid"

-- A recipe whose one family is what the expression gives.
local function using(names, family, path)
  return ("%s return recipe { build = function(world)\n local t = topology(world) t.x = %s return t end }"):format(
    ('local h = recipe.import "%s"'):format(path or "./h.lua") .. (names or ""), family)
end

describe("recipe.import", function()
  it("gives the functions of a file beside the recipe", function()
    write("h.lua", "return { tp = function(world) return grid(world, 'tp-dp', { tp = 2, dp = fill }) 'tp' end }")
    assert.are.equal("Family of 4 groups of 2: (2:1) x (4:2)", tostring(recipe(using(nil, "h.tp(world)")):plan(8):family "x"))
    assert.are.equal("Family of 4 groups of 2: (2:1) x (4:2)",
      tostring(recipe(using(nil, "h.tp(world)", "h.lua")):plan(8):family "x"))
  end)

  it("takes paths relative to the file that names them, and runs a file once", function()
    os.execute("mkdir " .. recipes.folder .. "/sub")
    write("h.lua", "print 'once' return { two = function() return 2 end }")
    write("sub/more.lua", "local h = recipe.import '../h.lua' return { tp = function(w) "
      .. "return grid(w, 'tp-dp', { tp = h.two(), dp = fill }) 'tp' end }")
    local text = using(" local more = recipe.import 'sub/more.lua'", "more.tp(world)")
    local path = write("r.lua", text)
    local support = dofile "tests/lua/support.lua"
    local out, err, code = support.run("build/moongrid plan --text --world 8 " .. path)
    assert.are.equal(0, code, err)
    assert.is_truthy(out:find("family x: (2:1) x (4:2)\n", 1, true))
    assert.are.equal("h.lua:1: once\n", plain(err))
  end)

  it("counts where the texts of recipes are compared", function()
    local text = "local h = recipe.import './h.lua' return recipe { build = function(world) return topology(world) end, "
      .. "policy = { one = function() return h.one() end } }"
    local support = dofile "tests/lua/support.lua"
    for i, folder in ipairs { "/a", "/b", "/c" } do
      os.execute("mkdir " .. recipes.folder .. folder)
      write(folder .. "/h.lua", ("return { one = function() return %d end }"):format(i == 3 and 2 or 1))
      write(folder .. "/r.lua", text)
    end
    local function diff(a, b)
      return (support.run(("build/moongrid diff %s/%s/r.lua --world 8 vs %s/%s/r.lua"):format(recipes.folder, a, recipes.folder, b)))
    end
    assert.is_falsy(diff("a", "b"):find("policies may differ", 1, true))
    assert.is_truthy(diff("a", "c"):find("policies may differ: the text of the recipe has changed", 1, true))
  end)

  local one = "return { one = function() return 1 end }"
  for what, case in pairs {
    ["an unknown function"] = { one, using(nil, "h.ome()"), "r.lua:2: unknown function of h.lua 'ome'; nearest is 'one' (one)" },
    ["a change"] = { one, using(" h.one = 5", "5"), "r.lua:1: function of h.lua 'one' cannot be changed" },
    ["a file that is not there"] = { one, using(nil, "h.one()", "./x.lua"), "r.lua:1: cannot open x.lua: No such file or directory" },
    ["a file outside"] = { one, using(nil, "h.one()", "../../etc/x.lua"), nil },
    ["a name of no file"] = { one, using(nil, "h.one()", "h"), "r.lua:1: recipe.import takes the path of a file that ends with "
      .. [[.lua, as in "./helpers.lua", not 'h']] },
    ["a bundled recipe"] = { one, using(nil, "h.one()", "megatron"), "r.lua:1: recipe.import takes the path of a file that ends "
      .. [[with .lua, as in "./helpers.lua", not 'megatron']] },
    ["no name"] = { one, "recipe.import()", "r.lua:1: recipe.import takes the path of a file that ends with .lua, as in "
      .. [["./helpers.lua", not nil]] },
    ["another word"] = { one, "recipe.imprt './h.lua'", "r.lua:1: unknown word of recipe 'imprt'; nearest is 'import' (import)" },
    ["a file that returns nothing"] = { "local x = 5", using(nil, "5"), "r.lua:1: h.lua returned nothing; end it with "
      .. "'return { name = function, ... }'" },
    ["a recipe"] = { "return recipe { build = function(w) return topology(w) end }", using(nil, "5"), nil },
    ["a table with more than functions"] = { "return { n = 5 }", using(nil, "5"),
      "r.lua:1: h.lua returned a table where 'n' is not a name with a function" },
    ["a list"] = { "return { function() end }", using(nil, "5"), "r.lua:1: h.lua returned a table where '1' is not a name with a function" },
    ["a file that imports itself"] = { "return recipe.import './h.lua'", using(nil, "5"), "h.lua:1: './h.lua' imports itself" },
    ["an error in it"] = { "local x = undefinde return {}", using(nil, "5"), "h.lua:1: undefined global 'undefinde': neither a word of recipes nor a function that this program has registered; "
      .. "a dim is written g \"undefinde\", a family t.undefinde, a parameter p.undefinde, a text \"undefinde\"" },
    ["a mistake in its text"] = { "return {", using(nil, "5"), "h.lua:1: unexpected symbol near <eof>; write } to close the { of line 1" },
    ["what recipes may not do"] = { "return { now = os.time }", using(nil, "5"), "h.lua:1: undefined global 'os': a recipe sees no clock, environment or files; whoever plans gives it parameters" },
    ["an import inside of build"] = { one, "return recipe { build = function(w)\n return recipe.import './h.lua' end }",
      "r.lua:2: call recipe.import at the top of a file, outside of build" },
  } do
    it("refuses " .. what, function()
      write("h.lua", case[1])
      local path = write("r.lua", case[2])
      local ok, said = pcall(function() return mg.load(path):plan(8) end)
      assert.is_false(ok)
      if case[3] then assert.are.equal(case[3], plain(said)) end
    end)
  end

  it("refuses a file outside of the folder, also by a link", function()
    os.execute(("mkdir %s/inner && echo 'return {}' > %s/out.lua && ln -s ../out.lua %s/inner/link.lua"):format(recipes.folder,
      recipes.folder, recipes.folder))
    for _, name in ipairs { "../out.lua", "./link.lua", recipes.folder .. "/out.lua" } do
      local path = write("inner/r.lua", using(nil, "5", name))
      local ok, said = pcall(mg.load, path)
      assert.is_false(ok)
      assert.is_truthy(said:find("is outside of the folder of the recipe that names it", 1, true), said)
    end
  end)

  it("refuses what is not a regular file", function()
    os.execute(("mkfifo %s/h.lua"):format(recipes.folder))
    local ok, said = pcall(mg.load, write("r.lua", using(nil, "5")))
    assert.is_false(ok)
    assert.are.equal("r.lua:1: cannot read h.lua: it is not a regular file", plain(said))
  end)
end)
