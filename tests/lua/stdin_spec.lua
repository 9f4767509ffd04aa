-- SPDX-License-Identifier: MIT
--
-- A recipe on standard input: "-" and /dev/stdin. It is a recipe as any other, but lies in no folder.

local recipes = assert(loadfile("tests/lua/recipes.lua", "t", _ENV))() -- with busted's names
local support = dofile "tests/lua/support.lua"

local recipe = [[
return recipe {
  params = { tp = 2 },
  build = function(world, p)
    local g, t = grid(world, "tp-dp", { tp = p.tp, dp = fill }), topology(world)
    t.dp = g "dp" t.tp = g "tp"
    return t
  end,
}
]]

-- Run a command with a text on standard input, through a pipe or from a file.
local function piped(text, arguments)
  local path = recipes.write("in.lua", text)
  local out, err, code = support.run(("cat %s | timeout 60 build/moongrid %s"):format(path, arguments))
  return out, (err:gsub("^moongrid: ", ""):gsub("\n$", "")), code
end

describe("a recipe on standard input", function()
  it("is the recipe that a file is, through a pipe or from a file, by both names", function()
    local path = recipes.write("r.lua", recipe)
    local wanted = support.run("build/moongrid plan --text --world 8 tp=4 " .. path)
    assert.truthy(wanted:find("family tp: (4:1) x (2:4)\n", 1, true))
    for _, name in ipairs { "-", "/dev/stdin" } do
      assert.are.same({ wanted, "", 0 }, { piped(recipe, "plan --text --world 8 tp=4 " .. name) })
      assert.are.equal(wanted, (support.run(("build/moongrid plan --text --world 8 tp=4 %s <%s"):format(name, path))))
    end
  end)

  it("is read once for both sides of a difference, and for several worlds", function()
    local out = piped(recipe, "diff - --world 8 tp=2 vs tp=4")
    assert.truthy(out:find("~ family   tp: 4 groups (2:1) x (4:2) -> 2 groups (4:1) x (2:4)\n", 1, true), out)
    out = piped(recipe, "check - --world 8,16")
    assert.are.equal(2, select(2, out:gsub("  ok  ", "")))
  end)

  it("has its lines explained, and is printed", function()
    local out = piped(recipe, "explain - --world 8 tp")
    assert.truthy(out:find("  made by      stdin:5  t.dp = g \"dp\" t.tp = g \"tp\"\n", 1, true), out)
    assert.are.equal(recipe, (piped(recipe, "recipes --source -")))
  end)

  it("stands on bundled recipes", function()
    local out, err, code = piped("return recipe { base = 'picotron', params = { tp = 2 } }", "plan - --world 8 tp=4")
    assert.are.same({ "stdin over 8 ranks: tp_size=4", "", 0 }, { (out:match "^[^\n]*"), err, code })
  end)

  for what, case in pairs {
    ["that imports a file"] = { "\nlocal h = recipe.import './h.lua'",
      "stdin:2: './h.lua' is a file, and a recipe without a folder, such as one from standard input, cannot name files" },
    ["that stands on a file"] = { "return recipe { base = './in.lua' }",
      "stdin:1: './in.lua' is a file, and a recipe without a folder, such as one from standard input, cannot name files" },
    ["that names a folder that is there"] = { "local _, m = pcall(recipe, 'lua') error(string.sub(m, 1, 60))",
      "stdin:1: stdin:1: no recipe 'lua': neither bundled nor a file; known:" },
    ["that names itself"] = { "return recipe '/dev/stdin'",
      "stdin:1: '/dev/stdin' is a file, and a recipe without a folder, such as one from standard input, cannot name files" },
    ["without end"] = { "while true do end", "stdin:1: the recipe runs for more than 200000000 instructions", 3 },
    ["without memory"] = { "local t = {} while true do t = { t } end", "stdin:1: the recipe needs more than 64 MiB of memory", 3 },
    ["that is too long"] = { ("-- a line\n"):rep(110000), "cannot read standard input: it has more than 1048576 bytes" },
    ["that is empty"] = { "", "stdin returned nothing; end it with 'return recipe { ... }'" },
    ["with a mistake"] = { "return recipe {\n +", "stdin:2: unexpected symbol near '+'\n  +\n  ^" },
    ["that is not text"] = { "\27Lua", "stdin: a recipe is text, and this is a binary chunk" },
  } do
    it("is refused: one " .. what, function()
      local _, err, code = piped(case[1], "plan - --world 8")
      assert.are.same({ case[2], case[3] or 1 }, { err, code })
    end)
  end

  it("that is closed or a folder is told", function()
    assert.are.equal("moongrid: cannot read standard input: Bad file descriptor\n",
      (select(2, support.run "build/moongrid plan - --world 8 <&-")))
    assert.are.equal("moongrid: cannot read standard input: Is a directory\n",
      (select(2, support.run "build/moongrid plan - --world 8 </tmp")))
  end)

  it("is none under a launcher, which gives it to one rank", function()
    local _, err, code = support.launch(2, "build/moongrid run - </dev/null")
    assert.are.equal("moongrid: [rank 0/2] a launcher gives standard input to only one rank; write the recipe to a file\n", err)
    assert.are.equal(2, code)
  end)

  it("is not read by the Tab key", function()
    local out, err, code = piped(recipe, "complete plan - tp=")
    assert.are.same({ "", "", 0 }, { out, err, code })
  end)
end)
