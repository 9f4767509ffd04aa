-- SPDX-License-Identifier: MIT
--
-- How the command shows the errors of a recipe: the line with a caret, and several errors at once.

local support = dofile "tests/lua/support.lua"

local TOP = [[return recipe {
  params = { tp = param.size(2), pp = param.size(2, "stages", "pipeline") },
  build = function(world, p)
    local g = grid(world, "tp-dp-pp", { tp = p.tp, pp = p.pp, dp = fill })
    local t = topology(world)
]]

-- Plan a recipe with these lines in its build: return what it says, FILE for its name, and the exit code.
local function said(lines, arguments, words)
  local path = support.file(words and lines or TOP .. lines .. "\nreturn t end }")
  local out = os.tmpname()
  local _, _, code = os.execute(("build/moongrid %s --world 8 %s >/dev/null 2>%s"):format(words or "plan " .. path,
    arguments or "", out))
  local text = support.read(out):gsub(path:gsub("%p", "%%%0"), "FILE")
  os.remove(out)
  return (text:gsub(" %(count, [^)]*%)", "")), code
end

describe("an error of a recipe", function()
  for name, case in pairs {
    ["has its line, and a caret below what it names"] = { 't.tp = g "tq"', [[
moongrid: FILE:6: unknown dim 'tq'; nearest is 'tp' (tp, dp, pp)
  t.tp = g "tq"
            ^
]] },
    ["has a caret below a name as a whole word"] = { 't.pq = g "pp"; t.x = q', [[
moongrid: FILE:6: undefined global 'q': neither a word of recipes nor a function that this program has registered; a dim is written g "q", a family t.q, a parameter p.q, a text "q"
  t.pq = g "pp"; t.x = q
                       ^
]] },
    ["has a caret at its beginning if it names nothing in it"] = { 'error "no"', [[
moongrid: FILE:6: no
  error "no"
  ^
]] },
    ["shows what stands around the caret of a long line"] = { ("  "):rep(40) .. "local a, b = 1, 2; " .. ("a = a + b; "):rep(9) .. 't.x = g "tq" -- a comment', [[
moongrid: FILE:6: unknown dim 'tq'; nearest is 'tp' (tp, dp, pp)
  = a + b; a = a + b; a = a + b; t.x = g "tq" -- a comment
                                          ^
]] },
    ["shows no character that a terminal obeys"] = { 't["x\27[31m"] = g "tq" -- é', [[
moongrid: FILE:6: unknown dim 'tq'; nearest is 'tp' (tp, dp, pp)
  t["x [31m"] = g "tq" -- ?
                   ^
]] },
    ["keeps the caret of the parser"] = { "t.x = [1]", [[
moongrid: FILE:6: unexpected symbol near '['; write { 1, 2 } for a list
  t.x = [1]
        ^
]] },
    ["comes with those of other statements, in their order"] = { 't.tp = g "tq"\nt.dp = g "dp"\nt.pp = g "pq"\nt.x = t.dp:pick(9)', [[
moongrid: FILE:6: unknown dim 'tq'; nearest is 'tp' (tp, dp, pp)
  t.tp = g "tq"
            ^
FILE:8: unknown dim 'pq'; nearest is 'pp' (tp, dp, pp)
  t.pp = g "pq"
            ^
FILE:9: pick of position 9: groups of 2 have positions 0 to 1, or -1 to -2 from the end
  t.x = t.dp:pick(9)
  ^
]] },
    ["hides what follows from it"] = { 't.tp = g "tq"\nt.x = t.tp:twin()\nt.pp = g "pq"', [[
moongrid: FILE:6: unknown dim 'tq'; nearest is 'tp' (tp, dp, pp)
  t.tp = g "tq"
            ^
FILE:8: unknown dim 'pq'; nearest is 'pp' (tp, dp, pp)
  t.pp = g "pq"
            ^
]] },
    ["is alone where its statement goes on in the next line"] = { 't.tp = world:table {\n  { 0, 9 }\n}\nt.pp = g "pq"', [[
moongrid: FILE:6: rank 9 of group 0 is out of range; ranks are 0 to 7
  t.tp = world:table {
  ^
]] },
  } do
    it(name, function() assert.are.same({ case[2], 1 }, { said(case[1]) }) end)
  end

  it("is one of at most five", function()
    local text = said(('t.x = g "q"\n'):rep(9))
    assert.are.equal(5, select(2, text:gsub("unknown dim 'q'", "")))
    assert.truthy(text:find("FILE:10: ", 1, true))
    assert.falsy(text:find("FILE:11: ", 1, true))
  end)

  it("comes with those of other arguments", function()
    local text, code = said("", "tq=2 pq=3 pipeline=x")
    assert.are.equal(1, code)
    for _, word in ipairs { "unknown parameter 'tq'", "unknown parameter 'pq'", "parameter 'pp' is a size" } do
      assert.are.equal(1, select(2, text:gsub(word, "")), text)
    end
  end)

  it("of an argument that names a family says so, and what stands between arguments", function()
    local text = said('t.dp = g "dp"', "dp=4 tp=2,pq=2")
    assert.truthy(text:find("unknown parameter 'dp'; "
      .. "dp is a family, not a parameter: its size (2) follows from the parameters", 1,
      true), text)
    assert.truthy(text:find("not '2,pq=2'; put blanks between parameters", 1, true), text)
  end)

  it("comes with others on its machine, and leaves later worlds their prints", function()
    local lines = 't.x = g "tq"\nprint("world", world.size)\nt.y = machine.node\nt.z = g "pq"'
    local text = said(lines, '--machine "node:2 gpu:4"')
    assert.are.equal(2, select(2, text:gsub("unknown dim", "")), text)
    assert.falsy(text:find("\nworld", 1, true), text)
    local path = support.file(TOP .. 't.x = g(world.size == 8 and "tq" or "tp")\nprint("world", world.size)\nreturn t end }')
    local _, err = support.run(("build/moongrid check %s --world 8,16"):format(path))
    assert.truthy(err:find("world\t16", 1, true) or err:find("world 16", 1, true), err)
  end)

  it("on standard input has its line, too", function()
    local path = support.file "return recipe {\n  build = function(w) return w:nothing() end }"
    local text, code = said("", nil, ("plan - < %s"):format(path))
    assert.are.same({ 1, "\n  build = function(w) return w:nothing() end }\n                               ^\n" },
      { code, text:match "\n.*" })
  end)

  it("keeps its exit code", function()
    local _, code = said "while true do end"
    assert.are.equal(3, code)
  end)
end)
