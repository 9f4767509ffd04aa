-- SPDX-License-Identifier: MIT
--
-- Hostile recipes and limits: calls that take long, memory outside of the Lua heap, deep nesting, and values larger
-- than the table of limits allows. Each ends with its own message.

local support = require "support"
local hostile = assert(loadfile("tests/lua/hostile.lua", "t", _ENV))() -- with busted's names
local run, file = support.run, support.file
local building, outcome, ends = hostile.building, hostile.outcome, hostile.ends

local clock = "the recipe takes more than 10 s of processor time"
local count = "the recipe runs for more than 200000000 instructions"
local memory = "the recipe needs more than 64 MiB of memory"
local text = "the recipe makes a text of more than 1048576 bytes"

local long = "local s = ('\\1'):rep(60000) for i = 1, 4 do s = s .. s end "

describe("one call that takes long ends:", function()
  ends {
    ["a sort of long texts"] = { long .. "local o = ('\\1'):rep(60000) for i = 1, 4 do o = o .. o end "
      .. "local t = {} for i = 1, 500000 do t[i] = i % 2 == 0 and s or o end table.sort(t)", { count, clock } },
    ["format %q"] = { long .. "local f = ('%q'):rep(5) while true do pcall(string.format, f, s, s, s, s, s) end", { text, count, clock } },
    ["comparisons"] = { "local s = ('\\0'):rep(60000) for i = 1, 4 do s = s .. s end local o = s:sub(1, -2) .. 'x' "
      .. "local b while true do b = s < o end", { clock, count } },
    ["tonumber with a base"] = { "local s = ('z'):rep(60000) for i = 1, 4 do s = s .. s end while true do tonumber(s, 36) end",
      { clock, count } },
    ["a list that only seems to have members"] = { "local t = {} for i = 0, 61 do t[1 << i] = 1 end table.sort(t)", "attempt to compare number with nil", 1 },
    ["a list that seems to have the most members"] = { "local l = {" .. (function() local t = {} for i = 0, 62 do t[i + 1] = ("[%d]=1"):format(1 << i) end return table.concat(t, ",") end)()
      .. ",[math.maxinteger]=1} table.insert(l, 1)", count },
    ["ranks of a wide group"] = { building "while true do f:ranks(0) end", { count, clock }, world = 3500000 },
    ["same() of unions over all ranks"] = { building [[
      local h = w.size // 2
      local a = grid(w:window(0, h), "a-b", { a = 2, b = fill }) "a"
      local b = grid(w:window(h, h), "a-b", { a = 2, b = fill }) "a"
      local c = grid(w:window(h, h), "b-a", { a = 2, b = fill }) "a"
      same(union(a, b), union(a, c))]],
      "the families are not the same: position 1 of group 536870911 is rank 1073741823 in union[(2:1) x (536870911:2) | "
      .. "(2:1) x (536870911:2) + 1073741822] and rank 1610612733 in union[(2:1) x (536870911:2) | (2:536870911) x "
      .. "(536870911:1) + 1073741822]", 1, world = 2147483644 },
    ["planning families that only a comparison of all members can tell apart"] = { building [[
      local half = w.size // 2
      local list = {} for i = 1, 2000 do list[i] = (i * 7) % 4096 end
      for i = 1, 4000 do t["f" .. i] = grid(w, "a-b", { a = 4096, b = fill }) "a":pick(list) end]], { count, memory, clock },
      world = 4096 * 500 },
    ["lists of concurrent families"] = { "local l = {} for i = 1, 4096 // 2 do l[i] = { 'f' .. i, 'f' .. i + 1 } end\n"
      .. "return recipe { concurrent = l, build = function(w) local t, g = topology(w), grid(w, 'a-b', { a = 2, b = fill })\n"
      .. "for i = 1, 20000 do t['f' .. i] = g 'a' end return t end }", { count, clock } },
    ["a tensor held by the largest world"] = { building "t.g = g t.x = tensor { axes = { { 'a', 8 } }, type = 'i8', cut = { a = 'x' }, on = f }",
      count, world = 2147483647 },
    ["a question that reads a pipe"] = { "return recipe '/dev/stdin'",
      "recipe '/dev/stdin' is outside of the folder of the recipe that names it; a name is a path from there, as \"./x.lua\"", 1 },
  }

  it("the parser, with what it does in the square of the text", function()
    for _, body in ipairs { "if x then " .. ("elseif x then "):rep(70000) .. "end", "local a = " .. ("x and "):rep(170000) .. "x" } do
      local code, message = outcome("local x " .. body .. " return 1")
      assert.is_true(code == 1 or code == 3, message)
    end
  end)
end)

describe("memory that is not of the Lua heap counts:", function()
  ends {
    ["picks"] = { building "local p, k = {}, {} for i = 1, 20000 do p[i] = i * 7919 % 1000003 end\nfor i = 1, 20000 do k[i] = f:pick(p) end",
      memory, world = 1000003 },
    ["explicit lists"] = { building "f:lists()", memory, world = 12000000 },
    ["grids"] = { building "local k = {} for i = 1, 1e7 do k[i] = grid(w, 'x', { x = fill }) end", memory },
    ["twins"] = { building "local k = {} for i = 1, 1e7 do k[i] = f:twin() end", memory },
    ["unions"] = { building [[
      local a, b, k = grid(w:window(0, 4), "x", { x = 4 }) "x", grid(w:window(4, 4), "x", { x = 4 }) "x", {}
      for i = 1, 1e7 do k[i] = union(a, b) end]], memory },
    ["what a function gives for each group"] = { building [[
      local l = {} for i = 1, 1024 do l[i] = i - 1 end
      grid(w, "x-y", { x = 1, y = fill }) "x":map(function() return l end)]], { memory, count }, world = 1000000 },
    ["tensors"] = { building "t.g = g for i = 1, 1e6 do t['w' .. i] = tensor { axes = { { 'a', 8 } }, type = 'i8', cut = { a = 'x' } } end",
      memory },
    ["bounds of a tensor, a list that only seems to have members"] = { building [[
      t.g = g local b = {} for i = 0, 61 do b[1 << i] = 1 end
      t.x = tensor { axes = { { "a", 8 } }, type = "i8", cut = { a = { "x", bounds = b } } }]],
      "tensor 'x': axis 'a': element 3 of 'bounds' is a nil, not an integer", 1 },
    ["topologies"] = { building "local k = {} for i = 1, 1e7 do k[i] = topology(w) end", memory },
    ["families whose finalizer Lua skips"] = { building [[
      local k = {}
      local function deep(n) if n > 0 then return pcall(deep, n - 1) end for i = 1, 1e7 do f:lists() end end
      deep(40)]], { memory, count, clock }, world = 100000 },
    ["a parameter of tables that are shared"] = { "local t = { 1 } for i = 1, 24 do t = { t, t } end\n"
      .. "return recipe { params = { t = param.any(t) }, build = function(w) return topology(w) end }",
      "parameter 't': a value of more than 262144 values or 4194304 bytes of text, or nested too deep", 1 },
  }

  it("garbage does not", function()
    local code, message = outcome(building "for i = 1, 100 do f:lists() end t.x = f", 100000)
    assert.are.same({ 0, "" }, { code, message })
  end)
end)

describe("depth has an end:", function()
  local deep = "families are nested more than 64 deep"
  ends {
    ["zip"] = { building "for i = 1, 200000 do f = zip(f) end t.x = f", deep, 1 },
    ["union"] = { building "for i = 1, 200000 do f = union(f) end t.x = f", deep, 1 },
    ["pieces"] = { building "f = zip(f) for i = 1, 200000 do f = f:segments { 1, fill }:lists() end t.x = f",
      "segments: the groups must have one size; their sizes vary, up to 7", 1 },
    ["parts"] = { building "local e = f:pick(0):pairs() for i = 1, 40 do e = union(e, e) end",
      "a family has at most 4096 parts, counting nested ones", 1 },
    ["rounds of a cover"] = { building "local l = {} for i = 1, w.size - 1 do l[i] = { 0, i } end w:table(l, 'cover')",
      "group 1024 of the table shares ranks with 1024 others or more; at most 1023", 1, world = 20000 },
  }

  it("twins of twins have none", function()
    local code, message = outcome(building "for i = 1, 400000 do f = f:twin() end t.x = f")
    assert.are.same({ 0, "" }, { code, message })
  end)

  it("and all of it fits 256 KiB of stack", function()
    for _, body in ipairs { "for i = 1, 64 do f = zip(f) end t.x = f", "local function d(n) return n == 0 or pcall(d, n - 1) end d(250) t.x = f",
                            "for i = 1, 64 do f = union(f) end t.x = f tostring(f)" } do
      local path = file(building(body))
      local _, err, code = run(("ulimit -s 256; build/moongrid plan %s --world 8"):format(path))
      assert.are.same({ 0, "" }, { code, err })
    end
  end)
end)

describe("a limit is where the table says:", function()
  local function written(name, of) -- a file beside a recipe that takes it
    local folder = support.folder()
    local out = assert(io.open(folder .. "/" .. name, "wb"))
    out:write(of)
    out:close()
    return folder, folder .. "/" .. name
  end

  -- The exit code and the message of a plan of `recipe` with these arguments, of which one names the file.
  local function with_file(name, of, line)
    local folder, path = written(name, of)
    local _, err, code = run((line:gsub("FILE", path)))
    os.execute("rm -r " .. folder)
    return code, (err:gsub(folder .. "/", ""):gsub("\n$", ""):gsub("^moongrid: ", ""))
  end

  it("the text of a recipe", function()
    local recipe = building "t.x = f"
    local function of(bytes) return recipe .. (" "):rep(bytes - #recipe) end
    assert.are.same({ 0, "" }, { with_file("a.lua", of(1 << 20), "build/moongrid plan FILE --world 8") })
    assert.are.same({ 1, "cannot read a.lua: it has more than 1048576 bytes" },
      { with_file("a.lua", of((1 << 20) + 1), "build/moongrid plan FILE --world 8") })
  end)

  it("a file of values", function()
    local function of(bytes) return '{"order": "tp-cp-ep-dp-pp"' .. (" "):rep(bytes - 27) .. "}" end
    local line = "build/moongrid plan megatron --world 8 --params FILE"
    assert.are.same({ 0, "" }, { with_file("a.json", of(1 << 20), line) })
    assert.are.same({ 1, "cannot read a.json: it has more than 1048576 bytes" }, { with_file("a.json", of((1 << 20) + 1), line) })
    for name, deep in pairs { ["a.json"] = '{"a": ' .. ("["):rep(40) .. ("]"):rep(40) .. "}", ["b.json"] = '{"a": ' .. ("["):rep(500000),
                              ["a.yaml"] = "a: " .. ("["):rep(1000000), ["b.yaml"] = "a: " .. ("{a: "):rep(250000),
                              ["c.yaml"] = ("- "):rep(500000) } do
      assert.are.same({ 1, name .. ":1: nested too deep" }, { with_file(name, deep, "timeout 10 " .. line) })
    end
    for name, gap in pairs { ["a.json"] = '{"order": [null]}', ["a.yaml"] = "order: [1, ~]" } do
      assert.are.same({ 1, name .. ":1: a list has null in it" }, { with_file(name, gap, line) })
    end
  end)

  it("a value of a command line", function()
    local recipe = "return recipe { params = { a = param.any({}), l = param.list({}), t = param.table({}) }, build = function(w, p) return topology(w, p.a, p.l, p.t) end }"
    local function said(value) return select(2, outcome(recipe, 8, "'" .. value .. "'")) end
    assert.are.equal("", said("a=" .. ("["):rep(31) .. "1" .. ("]"):rep(31)))
    assert.are.equal("parameter 'a': nested too deep", said("a=" .. ("["):rep(33) .. "1" .. ("]"):rep(33)))
    for _, value in ipairs { "a=[null]", "a=[[1,null]]", "l=[null]", 't={"x":[null]}' } do
      assert.are.equal(("parameter '%s': a list has null in it"):format(value:sub(1, 1)), said(value))
    end
  end)

  it("a text in a recipe", function()
    local function of(more) return "local s = ('x'):rep(65536) for i = 1, 4 do s = s .. s end local _ = s" .. more .. " error('enough', 0)" end
    assert.are.same({ 1, "enough" }, { (outcome(of "")), (select(2, outcome(of ""))) })
    assert.are.same({ 3, text }, { (outcome(of " .. ('x'):rep(128)")), (select(2, outcome(of " .. ('x'):rep(128)"))) })
  end)

  it("the values of a value", function()
    local function of(n) return "local l = {} for i = 1, " .. n .. " do l[i] = 1 end return recipe { params = { l = param.any(l) }, build = "
      .. "function(w) return topology(w) end }" end
    local code, message = outcome(of((1 << 18) - 1))
    assert.are.same({ 0, "" }, { code, message })
    code, message = outcome(of(1 << 18))
    assert.are.same({ 1, "parameter 'l': a value of more than 262144 values or 4194304 bytes of text, or nested too deep" }, { code, message })
  end)

  it("the values of a file", function()
    local recipe = "return recipe { params = { l = param.list({}) }, build = function(w, p) return topology(w, p.l) end }"
    for name, form in pairs { ["a.json"] = '{"l":[%s]}', ["a.yaml"] = "l: [%s]" } do
      local function said(n)
        local folder, path = written(name, form:format(("1,"):rep(n - 1) .. "1"))
        local code, message = outcome(recipe, 8, "--params " .. path)
        os.execute("rm -r " .. folder)
        return code .. message:gsub(folder .. "/", "")
      end
      assert.are.equal("0", said((1 << 18) - 2)) -- and the list, and the table that it is in
      local one_more = said(name == "a.json" and 1 << 18 or (1 << 18) - 1)
      assert.are.equal(name == "a.json" and "1parameter 'l': a value of more than 262144 values or 4194304 bytes of text, "
        .. "or nested too deep" or "1a.yaml:1: too many values", one_more)
    end
  end)

  it("the text of a value", function()
    local recipe = [[
      local s = ("x"):rep(65536)
      for _ = 1, 4 do s = s .. s end
      return recipe {
        build = function(w) return topology(w) end,
        queries = { whole = function() return { s, s, s, s } end, more = function() return { s, s, s, s, "x" } end } }]]
    local path = file(recipe)
    local out, err, code = run(("build/moongrid ask %s --world 8 --rank 0 whole | wc -c"):format(path))
    assert.are.same({ "4194321\n", "", 0 }, { out, err, code }) -- 4 MiB with quotes, commas, brackets
    out, err, code = run(("build/moongrid ask %s --world 8 --rank 0 more"):format(path))
    assert.are.same({ "", "moongrid: query 'more' returned a value of more than 262144 values or 4194304 bytes of text, or nested too deep\n", 1 },
      { out, err, code })
  end)

  it("the text of a plan in a recipe", function()
    local path = file [[
      return recipe {
        build = function(w)
          local t, groups = topology(w), {}
          for i = 1, 10 do groups[i] = {} end
          for r = 0, w.size - 1 do table.insert(groups[r * r % 10 + 1], r) end
          local some = {}
          for _, group in ipairs(groups) do if #group > 0 then table.insert(some, group) end end
          t.squares = w:table(some)
          return t
        end,
        queries = { text = function(state) return #state.plan:text() end } }]]
    local function said(world)
      local out, err, code = run(("build/moongrid ask %s --world %d --rank 0 text"):format(path, world))
      return out .. err:gsub("^.*/[^:]*:", "") .. code
    end
    assert.is_truthy(said(100000):find("^%d+\n0$"))
    assert.are.equal("11: the text has more than 1048576 bytes, the limit of texts in a recipe\n1", said(200000))
  end)

  it("what a recipe says of itself", function()
    local function said(params)
      local path = file(([[
        local s, params = ("x"):rep(65536), {}
        for _ = 1, 4 do s = s .. s end
        for i = 1, %d do params["p" .. i] = param.size(1, s) end
        return recipe { params = params, build = function(w) return topology(w) end }]]):format(params))
      local _, err, code = run(("build/moongrid recipes %s"):format(path))
      return code .. err
    end
    assert.are.equal("0", said(3))
    assert.are.equal("1moongrid: the recipe describes itself in a value of more than 262144 values or 4194304 bytes of text, "
      .. "or nested too deep\n", said(5))
  end)

  it("the depth of a value", function()
    local function said(value)
      local code, message = outcome("return recipe { params = { l = param.any(" .. value .. ") }, build = topology }")
      return code .. message
    end
    local too_much = "1parameter 'l': a value of more than 262144 values or 4194304 bytes of text, or nested too deep"
    assert.are.equal("0", said(("{"):rep(32) .. "1" .. ("}"):rep(32)))
    assert.are.equal(too_much, said(("{"):rep(33) .. "1" .. ("}"):rep(33)))
  end)

  it("the ranks of a rehearsal", function()
    local line = "build/moongrid run FILE --backend dry --world "
    local small = building "t.x = grid(w, 'a-b', { a = 2, b = fill }) 'a'"
    assert.are.same({ 0, "" }, { with_file("a.lua", small, line .. (1 << 20)) })
    for _, world in ipairs { (1 << 20) + 2, 2147483646 } do
      assert.are.same({ 1, ("a rehearsal plays every rank of a world of at most 1048576 ranks, and this one has %d; the check of a plan takes samples of larger "
        .. "worlds"):format(world) }, { with_file("a.lua", small, line .. world) })
    end
  end)

  it("and a check of the largest world is quick", function()
    local out, err, code = run "timeout 60 build/moongrid check megatron --world 2146435072"
    assert.are.same({ 0, "" }, { code, err })
    assert.is_truthy(out:find("sampled", 1, true), out)
  end)
end)
