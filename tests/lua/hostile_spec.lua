-- SPDX-License-Identifier: MIT
--
-- Hostile input by kind: what takes long inside one call, what holds memory outside of the Lua heap, what is nested
-- deep, what differs between processes or locales, what a terminal obeys. Each runs as a user would, in 1 GiB of address
-- space and with a time limit, and ends with its own message.

local support = require "support"
local run, file = support.run, support.file

local clock = "the recipe takes more than 10 s of processor time"
local count = "the recipe runs for more than 200000000 instructions"
local memory = "the recipe needs more than 64 MiB of memory"
local text = "the recipe makes a text of more than 1048576 bytes"

-- A recipe whose build has g, a grid of all ranks along x, and f, its family.
local function building(body)
  return "return recipe { build = function(w) local t, g = topology(w), grid(w, 'x', { x = fill }) local f = g 'x'\n"
    .. body .. "\nreturn t end }"
end

-- The exit code and the message of a recipe, without "moongrid: " and the file's name.
local function outcome(recipe, world, more)
  local path = file(recipe)
  local out, err, code = run(("ulimit -v 1048576; timeout 110 build/moongrid plan %s --world %d %s"):format(path, world or 8,
    more or ""))
  os.remove(path)
  local message = err:gsub("\n$", ""):gsub("^moongrid: ", "")
  if message:sub(1, #path) == path then message = message:sub(#path + 1):gsub("^:%d+: ", "") end
  return code, message, out
end

local function ends(cases)
  for name, case in pairs(cases) do
    it(name, function()
      local code, message = outcome(case[1], case.world)
      local words = type(case[2]) == "table" and case[2] or { case[2] }
      for _, one in ipairs(words) do
        if message == one then message = words[1] end
      end
      assert.are.same({ case[3] or 3, words[1] }, { code, message })
    end)
  end
end

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
      "a family of more than 4096 parts, counting nested ones", 1 },
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
      os.remove(path)
      assert.are.same({ 0, "" }, { code, err })
    end
  end)
end)

describe("a limit is where the table says:", function()
  local function written(name, of) -- a file beside a recipe that takes it
    local folder = os.tmpname()
    os.remove(folder)
    os.execute("mkdir " .. folder)
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
    os.remove(path)
    assert.are.same({ "", "moongrid: query 'more' gave a value of more than 262144 values or 4194304 bytes of text, or nested too deep\n", 1 },
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
    assert.are.equal("11: the text has more than 1048576 bytes; a recipe's have no more\n1", said(200000))
    os.remove(path)
  end)

  it("what a recipe says of itself", function()
    local function said(params)
      local path = file(([[
        local s, params = ("x"):rep(65536), {}
        for _ = 1, 4 do s = s .. s end
        for i = 1, %d do params["p" .. i] = param.size(1, s) end
        return recipe { params = params, build = function(w) return topology(w) end }]]):format(params))
      local _, err, code = run(("build/moongrid recipes %s"):format(path))
      os.remove(path)
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
      assert.are.same({ 1, ("a rehearsal goes through every rank, at most 1048576 of them, not %d; the check of a plan samples larger "
        .. "worlds"):format(world) }, { with_file("a.lua", small, line .. world) })
    end
  end)

  it("and a check of the largest world is quick", function()
    local out, err, code = run "timeout 60 build/moongrid check megatron --world 2146435072"
    assert.are.same({ 0, "" }, { code, err })
    assert.is_truthy(out:find("sampled", 1, true), out)
  end)
end)

describe("a recipe means the same:", function()
  local sums = [[
    local names = { "zebra", "Apfel", "\xC3\xA4rger", "apfel", "\xC3\x96l", "ich", "Ich", "1.5" }
    table.sort(names)
    local said = table.concat(names, ","):upper() .. ("I"):lower() .. tostring("a" < "B") .. tostring("\xC3\xA4" < "z")
      .. tostring(0.5) .. string.format("%.3f", 1 / 3) .. tostring(tonumber "0.25") .. tostring(0 / 0) .. tostring(-(0 / 0))
    return recipe { params = { r = 0.5, s = param.text(said) }, build = function(w, p)
      local t = topology(w) t[p.r < 0.6 and "half" or "whole"] = grid(w, "x", { x = fill }) "x" return t end }]]

  it("whatever the locale of the host", function()
    local folder, path = os.tmpname(), file(sums)
    os.remove(folder)
    os.execute("mkdir " .. folder)
    local made = { "C" }
    for _, name in ipairs { "de_DE", "tr_TR", "sv_SE" } do
      local _, _, code = run(("localedef -i %s -f UTF-8 %s/%s.UTF-8"):format(name, folder, name))
      if code == 0 then made[#made + 1] = name .. ".UTF-8" end
    end
    local first
    for _, name in ipairs(made) do
      local out, err, code = run(([[LOCPATH=%s lua5.4 -e 'assert(os.setlocale("%s"))
        package.cpath, package.path = "build/?.so;" .. package.cpath, "lua/?.lua;" .. package.path
        local plan = require("moongrid").load("%s"):plan(8, { r = "0.5" })
        assert(os.setlocale() == "%s", "the locale of the host was changed") print(plan.digest, plan:text())']]):format(
        folder, name, path, name))
      assert.are.same({ 0, "" }, { code, err })
      first = first or out
      assert.are.equal(first, out)
    end
    os.execute("rm -r " .. folder)
    os.remove(path)
    assert.is_truthy(first:find("truefalse0.50.3330.25nannan", 1, true) or first:find("falsefalse0.50.3330.25nannan", 1, true), first)
    if #made == 1 then pending "no locales here: localedef cannot make de_DE" end
  end)

  local with_q = " return recipe { params = { x = q }, build = type }"
  local changed = "parameter 'x' is no longer what param.KIND(...) made: a kind, its doc and other names, which are text, "
    .. "and a default of that kind"
  ends {
    ["%p after a zero byte"] = { "local _ = string.format('\\0%p', 'x')",
      "string.format: %p prints an address, which differs between ranks", 1 },
    ["a parameter whose serial was changed"] = { "local q = param.size(1) q.serial = {}" .. with_q, changed, 1 },
    ["a parameter without a kind"] = { "local q = param.size(1) q.kind = nil" .. with_q, changed, 1 },
    ["a parameter with another default"] = { "local q = param.size(1) q.default = type" .. with_q, changed, 1 },
    ["the doc of a parameter"] = { "local q = param.size(1, {})" .. with_q, changed, 1 },
    ["another name of a parameter"] = { "local q = param.size(1, '', 2)" .. with_q, changed, 1 },
    ["a changed list of other names"] = { "local q = param.size(1) q.aliases[1] = {}" .. with_q, changed, 1 },
    ["an address in a message"] = { building "f:split(2, { by = {} })", "unknown order of pieces 'table'; known: row", 1 },
  }

  it("whatever the order of keys of which C sees a part alone", function()
    local table_ = "{ ['a\\0x'] = 1, ['a\\0y'] = 2 }"
    local none = "a value that is not plain: numbers, strings, booleans, lists, tables by name"
    local code, message = outcome("return recipe { params = { t = param.any(" .. table_ .. ") }, build = topology }")
    assert.are.same({ 1, "parameter 't': " .. none }, { code, message })
    local path = file("return recipe { build = topology, queries = { q = function() return " .. table_ .. " end } }")
    local out, err, rc = run(("build/moongrid ask %s --world 8 --rank 0 q"):format(path))
    os.remove(path)
    assert.are.same({ "", "moongrid: query 'q' gave a table\n", 1 }, { out, err, rc })
  end)

  ends {
    ["the name of a family, of which C sees a part"] = { building "t['a\\0b'] = f",
      "'a\\x00b' is not a family name (a letter or _, then letters, digits or _; at most 31)", 1 },
    ["the name of a parameter, of which C sees a part"] = { "return recipe { params = { ['a\\0x'] = 1, ['a\\0y'] = 2 }, build = topology }",
      "the name of a parameter is one line of text", 1 },
    ["a text, of which C sees a part"] = { "return recipe { params = { a = 'b\\0c' }, build = topology }",
      "the value of parameter 'a' is one line of text in UTF-8, without control characters", 1 },
    ["0/0, which has a sign on some processors"] = { "error(0/0)", "nan", 1 },
    ["0/0 with the other sign"] = { "error(-(0/0))", "nan", 1 },
    ["0/0 for a time"] = { building "f:with { timeout = 0/0 }", "option 'timeout' is a number of seconds above 0, not nan", 1 },
  }

  it("and sees no file but recipes of its own folder", function()
    for _, name in ipairs { "/proc/sys/kernel/random/uuid", "/proc/self/maps", "/etc/hostname", "../../etc/hostname" } do
      local code, message = outcome(("local _, m = pcall(recipe, %q) error(m, 0)"):format(name))
      assert.are.equal(1, code)
      assert.are.equal(("recipe '%s' is outside of the folder of the recipe that names it%s"):format(name,
        name:sub(1, 1) == "/" and "; a name is a path from there, as \"./x.lua\"" or ""), message)
    end
  end)

  it("and a message shows nothing of a file that is no recipe", function()
    local folder = os.tmpname()
    os.remove(folder)
    run(("mkdir %s; echo 'secret: 5' > %s/notes; ln -s /etc/hostname %s/link.lua; echo 'local _, m = pcall(recipe, \"./notes\") error(m, 0)' "
      .. "> %s/a.lua; echo 'return recipe \"./link.lua\"' > %s/b.lua"):format(folder, folder, folder, folder, folder))
    local function said(name)
      local _, err = run(("build/moongrid plan %s/%s --world 8"):format(folder, name))
      return (err:gsub(folder .. "/", ""))
    end
    assert.are.equal("moongrid: a.lua:1: recipe './notes': the name of a recipe's file ends with .lua\n", said "a.lua")
    assert.are.equal("moongrid: b.lua:1: recipe './link.lua' is outside of the folder of the recipe that names it\n", said "b.lua")
    assert.are.equal("moongrid: notes:1: this is not a recipe\n", said "notes")
    os.execute("rm -r " .. folder)
  end)
end)

describe("what a terminal would obey is written out", function()
  it("in messages", function()
    for code, shown in pairs { ["error('\\27[2Jproved\\nfine\\0x', 0)"] = "\\x1b[2Jproved\\nfine\\x00x", ["error('', 0)"] = "an error without a message",
                               ["error('\\xC2\\x9B31m\\xFF caf\\xC3\\xA9', 0)"] = "\\xc2\\x9b31m\\xff caf\xC3\xA9" } do
      local rc, message = outcome(code)
      assert.are.same({ 1, shown }, { rc, message })
    end
  end)

  it("in what the recipe says of itself", function()
    local path = file "return recipe { doc = '\\27]0;x\\7 \\xFF', params = { ['a\\27'] = 1 }, build = type }"
    local out = run("build/moongrid recipes " .. path)
    assert.are.equal(path .. ": \\x1b]0;x\\x07 \\xff\n\nparameters\n  a\\x1b                                integer  1                  \n", out)
    local json = require("dkjson").decode((run("build/moongrid recipes --json " .. path)))
    assert.are.equal("\\x1b]0;x\\x07 \\xff", json.doc)
    os.remove(path)
  end)

  it("in answers, which stay the same JSON", function()
    local path = file "return recipe { build = topology, queries = { q = function() return '\\u{9B}31m\\u{7F}\\u{202E}\\u{E4}\\u{1F600}\\n' end } }"
    local out, err, code = run(("build/moongrid ask %s --world 8 --rank 0 q"):format(path))
    os.remove(path)
    assert.are.same({ '"\\u009b31m\\u007f\\u202e\u{E4}\u{1F600}\\n"\n', "", 0 }, { out, err, code })
    assert.are.equal("\u{9B}31m\u{7F}\u{202E}\u{E4}\u{1F600}\n", (require("dkjson").decode(out)))
  end)

  it("in the names of a file of tensors, and of files beside a recipe", function()
    local header = '{"a\\u001b[2J":{"dtype":"F99\\u001b[31m","shape":[1],"data_offsets":[0,4]}}'
    local path = file(("<I8"):pack(#header) .. header .. "\0\0\0\0")
    os.rename(path, path .. ".safetensors")
    local to = file("return recipe { build = function(w) local t = topology(w) t.g = grid(w, 'x', { x = fill }) t.x = t.g 'x' t.w = tensor { axes = { { 'r', 8 } }, type = 'f32' } return t end }")
    local _, err, code = run(("build/moongrid reshard %s.safetensors --to %s --world 1 -o %s.out"):format(path, to, path))
    assert.are.same({ 1, "moongrid: " .. path .. ".safetensors: tensor 'a\\x1b[2J' has the dtype 'F99\\x1b[31m', which is not known\n" },
      { code, err })
    os.remove(path .. ".safetensors")
    os.remove(to)
    local folder = run("mktemp -d"):gsub("%s+$", "")
    assert(io.open(folder .. "/reci\27pe.lua", "w")):close()
    _, err = run(("build/moongrid plan %s/recipe.lua --world 8"):format(folder))
    assert.is_truthy(err:find("/reci\\x1bpe.lua'", 1, true), err)
    run("rm -r " .. folder)
  end)

  it("in the lines that made a family, and in the source on a terminal", function()
    local folder = os.tmpname()
    os.remove(folder)
    local odd = folder .. "/\27[31m.lua"
    os.execute("mkdir " .. folder)
    local recipe = "return recipe { build = function(w)\nlocal t = topology(w)\n\tt.x = grid(w, 'x', { x = fill }) 'x' -- \27[2J\u{E4}\nreturn t end }\n"
    local to = assert(io.open(odd, "wb"))
    to:write(recipe)
    to:close()
    local out = run(("build/moongrid explain '%s' --world 8"):format(odd))
    assert.is_truthy(out:find("/\\x1b[31m.lua:3 ", 1, true) and out:find("'x' -- \\x1b[2J\u{E4}", 1, true), out)
    assert.is_nil(out:find("\27", 1, true))
    assert.are.equal(recipe, (run(("build/moongrid recipes --source '%s'"):format(odd))))
    out = run(('script -qec "build/moongrid recipes --source %s/*" /dev/null'):format(folder))
    assert.are.equal((recipe:gsub("\27", "\\x1b")), (out:gsub("\r\n", "\n")))
    assert.are.equal("", (run(("build/moongrid complete plan %s/"):format(folder))))
    os.execute("rm -r " .. folder)
  end)

  it("in paths", function()
    local path, odd = file(building "t.x = f"), os.tmpname() .. "\27\xFF.lua"
    os.rename(path, odd)
    local out, err, code = run(("build/moongrid plan '%s' --world 8"):format(odd))
    assert.are.same({ 0, "" }, { code, err })
    assert.is_truthy(out:find("\\x1b\\xff.lua over 8 ranks", 1, true), out)
    out, err, code = run(("build/moongrid plan '%s' --world 8 --json"):format(odd))
    assert.are.same({ 0, "" }, { code, err })
    assert.is_truthy(require("dkjson").decode(out).recipe:find("\\x1b\\xff.lua", 1, true))
    os.remove(odd)
  end)
end)

describe("a function of the recipe that changes what is being read changes nothing of it:", function()
  -- Freed texts of the length of the one that was there are given out again, with other letters.
  local churn = "local kept = {} for i = 1, 100 do local _ = ('y'):rep(60000) .. i end\n"
    .. "for i = 1, 3000 do kept[i] = ('y'):rep(16) .. 1000 + i end "
  local ones = "return { 1, 1, 1, 1, 1, 1, 1, 1 }"

  -- The rules of the tensors of a plan, by name.
  local function rules(body)
    local code, message, out = outcome(building(body))
    assert.are.same({ 0, "" }, { code, message })
    local found = {}
    for name, rule in out:gmatch "\n(%w+) +%d+ +%d+ +%d+ +%d+  (i8 [^\n]*)" do found[name] = rule end
    return found
  end

  it("axes", function()
    assert.are.same({ w = "i8 aaaaaaaaaaaaaaaa1001 8 by x bounds 0,1,2,3,4,5,6,7,8 over x 8 over ranks 0..7" }, rules([==[
      local axes, cut = { { ("a"):rep(16) .. 1001, 8 } }, {}
      cut[axes[1][1]] = { "x", bounds = function() axes[1][1] = nil for name in pairs(cut) do cut[name] = nil end ]==] .. churn .. ones .. [==[ end }
      t.g = g t.w = tensor { axes = axes, type = "i8", cut = cut }]==]))
  end)

  it("dims", function()
    assert.are.same({ w = "i8 a 4 by dddddddddddddddd1001, b 4 by eeeeeeeeeeeeeeee1001 bounds 0,1,4 over dddddddddddddddd1001 4 x "
      .. "eeeeeeeeeeeeeeee1001 2 over ranks 0..7" }, rules([[
      local d, e, cut = ("d"):rep(16) .. 1001, ("e"):rep(16) .. 1001, {}
      t.g = grid(w, { d, e }, { [d] = 4, [e] = fill })
      cut.a, cut.b = { d }, { e, bounds = function() d, e, cut.a[1], cut.b[1] = nil, nil, nil, nil ]] .. churn .. [[ return { 1, 3 } end }
      t.w = tensor { axes = { { "a", 4 }, { "b", 4 } }, type = "i8", cut = cut }]]))
  end)

  it("the grid", function()
    assert.are.same({ w = "i8 a 8 by x bounds 0,1,2,3,4,5,6,7,8 over x 8 over ranks 0..7" }, rules([[
      t.g = g g, f = nil, nil
      t.w = tensor { axes = { { "a", 8 } }, type = "i8", cut = { a = { "x", bounds = function()
        t.g = nil t.g = grid(w, "y-x", { x = 2, y = fill }) ]] .. churn .. ones .. " end } } }"))
  end)

  it("a flat, which is read by it once more", function()
    local flat = [[
      local reads, a, b = 0, nil, nil
      local function bounds(n)
        reads = reads + 1
        if reads == %d then t.again = b end
        return n == 2 and { 1, 7 } or { 8 }
      end
      t.g = grid(w, "x-y", { x = 2, y = fill })
      local function one() return tensor { axes = { { "a", 8 } }, type = "i8", cut = { a = { "x", bounds = bounds } } } end
      a, b = flat { one(), one(), over = "y" }
      t.a = a t.b = b]]
    for reads = 1, 3 do
      local found = rules(flat:format(reads))
      assert.are.equal((found.a:gsub("flat 1", "flat 2")), found.b)
      if reads < 3 then assert.are.equal(found.b, found.again) end
    end
  end)

  it("a flat, which is read by it for ever", function()
    local code, message = outcome(building [[
      t.g = grid(w, "x-y", { x = 2, y = fill })
      local a, b
      local function bounds() t.b = b return { 8 } end
      a, b = flat { tensor { axes = { { "a", 8 } }, type = "i8", cut = { a = { "x", bounds = bounds } } },
                    tensor { axes = { { "a", 8 } }, type = "i8" }, over = "y" }
      t.a = a]])
    assert.are.same({ 1, "the recipe nests too deep: brackets, blocks, .. in a row and functions called back have 44 levels" }, { code, message })
  end)
end)

describe("numbers near 2^63 make no other ones:", function()
  -- What the command says of a recipe with a tensor w, of one axis that dim x cuts.
  local function said(cut, line, copies)
    local path = file(building(([[t.g = grid(w, "y-x", { y = %d, x = fill })
      t.w = tensor { axes = { { "a", math.maxinteger } }, type = "i8", cut = { a = { %s } } }]]):format(copies or 1, cut)))
    local out, err, code = run(("timeout 20 build/moongrid " .. line:gsub("FILE", path)))
    os.remove(path)
    return code == 0 and out:match "a (%S+)\n" or code .. err:gsub("^[^\n]*:%d+: ", "")
  end

  it("the last piece of an axis", function()
    for cut, piece in pairs {
      ['"x"'] = "8070450532247928832..9223372036854775806", ['"x", sizes = "ceil"'] = "8070450532247928832..9223372036854775806",
      ['"x", cyclic = 1 << 60'] = "8070450532247928832..9223372036854775806", ['"x", cyclic = 1 << 61'] = "none",
      ['"x", cyclic = math.maxinteger'] = "none", ['"x", unit = math.maxinteger'] = "none",
      ['"x", parts = { math.maxinteger - 9, 9 }, cyclic = 1 << 61'] = "none",
    } do
      assert.are.equal(piece, said(cut, "plan FILE --world 8 --tensor w --rank 7"), cut)
    end
  end)

  it("the bytes of a move", function()
    local all = "1moongrid: the bytes that all ranks hold after the move overflow 64 bits at tensor 'w'\n"
    assert.are.equal(all, said('"x"', "move FILE --world 8 vs", 2))
    assert.are.equal(all, said('"x"', "move FILE --world 8 vs --rank 7", 2))
    local path = file(building [[t.g = grid(w, "y-x", { y = 1, x = fill })
      t.w = tensor { axes = { { "a", math.maxinteger } }, type = "i8", cut = { a = "x" } }]])
    local out, err, code = run(("build/moongrid move %s --world 8 vs --json"):format(path))
    os.remove(path)
    assert.are.same({ "", 0 }, { err, code })
    local tally = require("dkjson").decode(out).all
    assert.are.same({ math.maxinteger, 0, math.maxinteger }, { tally.stay, tally.sent, tally.gather })
  end)

  it("parts of all ranks of a large world", function()
    assert.are.equal("1moongrid: a list of parts goes through every rank, at most 1048576 of them, not 2097152; --rank R asks for one\n",
      said('"x"', "plan FILE --world 2097152 --tensor w"))
  end)

  ends {
    ["a list that seems to have the most members"] = { "local l = {" .. (function() local t = {} for i = 0, 62 do t[i + 1] = ("[%d]=1"):format(1 << i) end return table.concat(t, ",") end)()
      .. ",[math.maxinteger]=1} table.insert(l, 1)", count },
  }
end)
