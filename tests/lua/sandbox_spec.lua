-- SPDX-License-Identifier: MIT
--
-- Hostile recipes, and recipes that would differ between processes. Each runs as a
-- user would run it, `timeout 90 build/moongrid plan FILE --world 8`: it ends by itself with
-- 1 (refused) or 3 (limit hit), never by the timeout (124) or a signal (above 128).

local support = dofile "tests/lua/support.lua"
local folder

-- Every hostile recipe: name = { text, exit code, message after "FILE:" or a function of it }
local hostile = {}

local function endless(line) -- the clock may come first on a slow machine
  return { ("%d: the recipe runs for more than 200000000 instructions"):format(line),
           ("%d: the recipe takes more than 10 s of processor time"):format(line) }
end

local function memory(message) return message:find "^%d+: the recipe needs more than 64 MiB of memory$" end

-- time ---------------------------------------------------------------------------------
hostile.loop = { "local n = 0\nwhile true do n = n + 1 end", 3, endless(2) }
hostile.repeat_ = { "repeat until false", 3, endless(1) }
hostile.goto_ = { "::again:: goto again", 3, endless(1) }
hostile.for_ = { "for _ = 1, math.maxinteger do end", 3, endless(1) }
hostile.caught_loop = { "local function spin() while true do end end\nwhile true do pcall(spin) end", 3 }
hostile.caught_deep = { "local function f() pcall(f) while true do end end\nf()", 3 }
hostile.loop_in_build = { "return recipe { build = function()\nwhile true do end end }", 3, endless(2) }
hostile.loop_in_pick = { "return recipe { build = function(world) return grid(world, 'x', { x = 8 }) 'x':pick(function()\n"
  .. "while true do end end) end }", 3, endless(2) }
hostile.loop_in_map = { "return recipe { build = function(world) return grid(world, 'x', { x = 8 }) 'x':map(function()\n"
  .. "while true do end end) end }", 3, endless(2) }
hostile.loop_in_sort = { "table.sort({ 1, 2, 3 }, function()\nwhile true do end end)", 3, endless(2) }
hostile.base_loop = { "local own = ...\nreturn recipe { base = 'picotron', build = function(w, p, t) repeat until t == 1 end }",
  3, endless(2) }
-- few instructions, much work inside C
local million = "local t = {} for i = 1, 1000000 do t[i] = -i end "
hostile.long_sorts = { million .. "for _ = 1, 1000 do table.sort(t) end", 3 }
hostile.long_pairs = { million .. "for _ = 1, 1000 do for _ in pairs(t) do break end end", 3 }
hostile.long_inserts = { million .. "for _ = 1, 100000 do table.insert(t, 1, 0) end", 3 }
hostile.long_tables = { "local pair, t = { 0, 1 }, {}\nfor i = 1, 1000000 do t[i] = pair end\n"
  .. "return recipe { build = function(w) while true do w:table(t, 'cover') end end }", 3 }
hostile.long_upper = { "local s = ('x'):rep(60000) for _ = 1, 8 do s = s .. s end for _ = 1, 1e9 do s:upper() end", 3 }

hostile.long_prints = { "local a, l = {}, {} for i = 1, 2^18 + 1 do a[i] = i end for i = 1, 5000 do l[i] = a end\n"
  .. "print(table.unpack(l))", 3 }
hostile.emptied_tables = { "local a, l = {}, {} for i = 1, 2^20 do a[i] = i end for i = 1, 2^20 do a[i] = nil end\n"
  .. "for i = 1, 2^17 do l[i] = a end print(l)", 3 }
hostile.builds_in_builds = { "return recipe { build = function(w) local r\nr = recipe { build = function(v) "
  .. "return r.build(v) end } return r.build(w) end }", 3 }

-- memory -------------------------------------------------------------------------------
hostile.shared_prints = { "local s, a, l = ('x'):rep(65536), {}, {} for i = 1, 60 do a[i] = s end\n"
  .. "for i = 1, 600 do l[i] = a end print(table.unpack(l)) error 'printed'", 1,
  function(message) return #message < 1200 and message:find "%.%.%.\nmoongrid: [^\n]*:2: printed$" end }
hostile.big_table = { "local t = {} for i = 1, 1000000000 do t[i] = ('x'):rep(1000) .. i end", 3, memory }
hostile.nested_table = { "local t = {} while true do t = { t } end", 3, memory }
hostile.doubled_text = { "local s = 'x' while true do s = s .. s end", 3, "1: the recipe makes a text of more than 1048576 bytes" }
hostile.concat = { "local s, t = ('x'):rep(65536), {} for i = 1, 2000 do t[i] = s end table.concat(t)", 3, memory }
hostile.recursion = { "local function f() return f() + 1 end f()", 3, memory }
hostile.many_families = { "return recipe { build = function(w) local g, t = grid(w, 'x', { x = 8 }), {}\n"
  .. "while true do t[#t + 1] = g 'x' end end }", 3, memory }
-- a recipe cannot catch the limit
hostile.caught_memory = { "local t = {}\npcall(function() while true do t[#t + 1] = ('x'):rep(60000) .. #t end end)\nt = nil\n"
  .. "return recipe { build = function(world) return topology(world) end }", 3, memory }
-- much garbage is not an error: a later refusal has its own reason
hostile.garbage = { "local s, t = ('x'):rep(60000), {} for i = 1, 700 do t[i] = s .. i end\n"
  .. "for i = 1, 3000 do local _ = s .. i end\nerror 'my own reason'", 1, "3: my own reason" }

-- C stack --------------------------------------------------------------------------------
hostile.deep_parens = { "return " .. ("("):rep(300) .. "1" .. (")"):rep(300), 1 }
hostile.deep_tables = { "return " .. ("{"):rep(300) .. ("}"):rep(300), 1 }
hostile.deep_picks = { "return recipe { build = function(w) local x, f = grid(w, 'x', { x = 8 }) 'x'\n"
  .. "f = function() return x:pick(f) end return x:pick(f) end }", 1 }
hostile.deep_sorts = { "local function f(a, b) table.sort({ 2, 1 }, f) return a < b end table.sort({ 2, 1 }, f)", 1 }
hostile.deep_value = { "local a = {} for _ = 1, 100 do a = { a } end\nreturn recipe { params = { a = a }, "
  .. "build = function(w) return topology(w) end }", 1, "2: the default of parameter 'a' is a table; write a number, a string, a "
  .. "boolean, a list of integers or param.KIND(...); param.any takes every plain value" }

-- strings ----------------------------------------------------------------------------------
local rep = "1: string.rep makes strings of at most 65536 bytes"
hostile.rep_long = { "local _ = ('x'):rep(1 << 40)", 1, rep }
hostile.rep_empty = { "local _ = (''):rep(1 << 62)", 1, rep }
hostile.rep_separator = { "local _ = (''):rep(60000, 'ab')", 1, rep }
hostile.rep_negative = { "error('<' .. ('x'):rep(-5) .. '>')", 1, "1: <>" }
hostile.wide_format = { "local _ = string.format('%99.99f', 1e308) .. string.format('%100d', 1)", 1,
  "1: invalid conversion specification: '%100d'" }
hostile.bad_format = { "local _ = string.format('%d', 'x')", 1,
  "1: bad argument #2 to 'string.format' (number expected, got string)" }
hostile.pointer = { "local _ = string.format('%p', {})", 1,
  "1: string.format: %p prints an address, which differs between ranks" }

-- escapes --------------------------------------------------------------------------------
-- A name that recipes do not have: whole message but for the nearest name.
local function absent(name) return function(message) return message:find("^1: undefined global '" .. name .. "'") end end
for _, name in ipairs { "io", "os", "load", "loadstring", "loadfile", "dofile", "require", "package", "debug", "coroutine",
                        "setmetatable", "getmetatable", "rawget", "rawset", "rawequal", "rawlen", "next",
                        "collectgarbage", "utf8", "warn", "xpcall", "_G", "_VERSION", "arg", "world", "plan", "mpi" } do
  hostile["global_" .. name] = { "local _ = " .. name, 1, absent(name) }
end
local function no_pattern(name)
  return ('1: recipes have no string.%s, because patterns may take forever; string.split(s, "-") cuts s at each "-"'):format(name)
end
for _, name in ipairs { "find", "match", "gmatch", "gsub" } do
  hostile["string_" .. name] = { ("error(tostring(string.%s))"):format(name), 1, no_pattern(name) }
end
for library, names in pairs {
  string = { "dump", "reverse", "pack", "unpack", "packsize" },
  table = { "move" }, math = { "random", "randomseed", "sin", "exp", "log", "pi" },
} do
  for _, name in ipairs(names) do
    hostile[library .. "_" .. name] = { ("error(tostring(%s.%s))"):format(library, name), 1,
      ("1: recipes have no %s.%s, because a recipe must mean the same in every process, and must end"):format(library, name) }
  end
end
hostile.view_inserted = { "table.insert(policies, 5)", 1, "1: this table is read-only" }
hostile.view_removed = { "table.remove(param)", 1, "1: this table is read-only" }
hostile.view_sorted = { "table.sort(math)", 1, "1: this table is read-only" }
hostile.address_by_policies = { "local _, m = pcall(policies.layers, { [{}] = 1 }) error(m, 0)", 1,
  "1: unknown setting of policies.layers 'a table'; known: first, last, embedding, loss" }
hostile.order_by_recipe = { "local _, m = pcall(recipe, { [{}] = 1, [function() end] = 1, [true] = 1 }) error(m, 0)", 1,
  "1: unknown field of a recipe 'true'; known: doc, base, params, rest, build, concurrent, families, queries, getters, "
    .. "arguments, settings, policy, agreed, idle, names, step, machine, spares, traffic" }
hostile.string_method = { "local _ = ('x'):find('x')", 1, no_pattern "find" }
hostile.string_method_dump = { "local _ = ('x').dump", 1, "1: recipes have no string.dump, because a recipe must mean the same in every process, and must end" }
hostile.string_method_unknown = { "local _ = ('x'):uper()", 1,
  "1: unknown function of string 'uper'; nearest is 'upper' (byte, char, format, len, lower, rep, split, sub, upper)" }
hostile.field_unknown = { "local _ = math.flor(2.5)", 1, "1: unknown function of math 'flor'; nearest is 'floor' "
  .. "(abs, ceil, floor, fmod, huge, max, maxinteger, min, mininteger, sqrt, tointeger, type, ult)" }
hostile.field_number = { "local _ = table[1]", 1, "1: unknown function of table '?'; known: concat, insert, pack, remove, sort, unpack" }
hostile.number_indexed = { "local _ = (5).split", 1,
  "1: a number has no 'split'; with a grid g, g.tp is the size of dim tp, and g \"tp\" is the family along this dim" }
hostile.number_metatable = { "error(tostring(getmetatable and 1 or #{}))", 1, absent "getmetatable" }
for name, hint in pairs {
  rank = "every rank evaluates the same recipe; queries and policies see state.rank",
  require = 'recipe.import "./x.lua" gets functions of a file, recipe "x" another recipe',
  dofile = 'recipe.import "./x.lua" gets functions of a file, recipe "x" another recipe',
  loadfile = 'recipe.import "./x.lua" gets functions of a file, recipe "x" another recipe',
  io = "a recipe reads no files; param.file gets the content of a file",
  os = "a recipe sees no clock, environment or files; whoever plans gives it parameters",
  setmetatable = "recipes have no metatables", next = "pairs goes in the order of the keys",
  coroutine = "a recipe is evaluated once, from top to bottom", debug = "print and log tell the host what a recipe does",
  load = 'recipe.import "./x.lua" gets functions of a file, recipe "x" another recipe',
  xpcall = "pcall calls a function and gives back its error", utf8 = 'string.split(s, "-") cuts s at each "-"',
} do
  hostile["hint_" .. name] = { "local _ = " .. name, 1, ("1: undefined global '%s': %s"):format(name, hint) }
end
hostile.environment = { "_ENV.os = 1", 1, "1: assignment to global 'os': use 'local'" }
hostile.own_environment = { "local _ENV = {} tostring(1)", 1, "1: attempt to call a nil value (global 'tostring')" }
hostile.change_world = { "return recipe { build = function(w)\nw.size = 1 end }", 1,
  "2: a World cannot be changed" }
hostile.bytecode = { string.dump(function() return 1 end), 1, " a recipe is text, and this is a binary chunk" }
hostile.read_a_file = { "recipe '/etc/passwd'", 1 }
hostile.empty = { "", 1, function(message) return message:find "^ ?returned nothing; end it with" end }
hostile.error_object = { "error { code = 7 }", 1, '1: error got a table, not a message such as "tp must be even"' }
hostile.error_nil = { "error()", 1, '1: error got nil, not a message such as "tp must be even"' }
hostile.error_recipe = { "error(recipe 'picotron')", 1, '1: error got a table, not a message such as "tp must be even"' }
hostile.error_world = { "return recipe { build = function(w) error(w) end }", 1, '1: error got a World, not a message such as "tp must be even"' }
hostile.error_number = { "error(5)", 1, "1: 5" }
hostile.error_half = { "error(5.5)", 1, "1: 5.5" }
hostile.odd_key = { "for _ in pairs { [true] = 1 } do end", 1, "1: pairs: all keys must be integers or strings, but one is a boolean" }
hostile.insert_nothing = { "table.insert {}", 1, "1: table.insert takes a list, maybe a position, and a value" }

-- addresses: none may be shown, in whatever way a recipe asks for it
for name, code in pairs {
  table = "tostring {}", function_ = "tostring(error)", format = "string.format('%s %s %5.2s', {}, type, fill)",
  fill = "tostring(fill)", recipe = "tostring(recipe 'picotron')", kinds = "tostring(param)",
  bad_parameter = "select(2, pcall(recipe('picotron').build, 1, { tp = error }))",
  bad_list = "select(2, pcall(recipe('picotron').build, 1, { tp = { {} } }))",
  bad_name = "select(2, pcall(recipe('picotron').build, 1, { [{}] = 1 }))",
  bad_field = "select(2, pcall(recipe, { [{}] = 1 }))", bad_query = "select(2, pcall(recipe, { build = error, "
    .. "queries = { [{}] = 1 } }))",
  recipe_field = "select(2, pcall(function() return recipe('picotron')[{}] end))",
  concat = "select(2, pcall(function() return {} .. '' end))", index = "select(2, pcall(function() return recipe[{}] end))",
} do
  hostile["address_" .. name] = { "error(" .. code .. ")", 1, function(message) return not message:find "0x%x" end }
end
hostile.address_p = { "return recipe { params = { a = 1 }, build = function(_, p) return p[{}] end }", 1,
                      function(message) return not message:find "0x%x" end }

-- the same in every process ----------------------------------------------------------------
local same_everywhere = {
  pairs_order = { [[
local t = { alpha = 1, beta = 2, [3] = "z", [1] = "x", gamma = 3, delta = 4, [-7] = 0, eps = 5, zeta = 6, tp = 7, ["a b"] = 8 }
local o = {}
for k, v in pairs(t) do o[#o + 1] = k .. "=" .. v end
error(table.concat(o, " "), 0)]], "-7=0 1=x 3=z a b=8 alpha=1 beta=2 delta=4 eps=5 gamma=3 tp=7 zeta=6" },
  sort_stable = { [[
local t, o = {}, {}
for i = 1, 300 do t[i] = { key = i * 7919 % 5, at = i } end
table.sort(t, function(a, b) return a.key < b.key end)
for i = 2, #t do if t[i - 1].key == t[i].key and t[i - 1].at > t[i].at then o[#o + 1] = i end end
error(#o .. " out of order, first " .. t[1].at .. ", last " .. t[300].at, 0)]], "0 out of order, first 5, last 296" },
  sort_nonsense = { [[
local t = {}
for i = 1, 300 do t[i] = i * 7919 % 1009 end
table.sort(t, function() return true end)
error(t[1] .. " " .. t[2] .. " " .. t[150] .. " " .. t[300], 0)]] },
  undefined_name = { "local _ = prnt" },
  two_faults = { "return recipe { dc = 1, parms = 2, buld = 3, polcy = 4, querys = 5 }" },
  two_defaults = { "return recipe { params = { a = error, b = error, c = error, d = error, e = error }, build = error }" },
  two_queries = { "return recipe { build = error, queries = { a = 1, b = 2, c = 3, d = 4, e = 5 } }" },
  two_dims = { "return recipe { build = function(w) grid(w, 'x', { aq = 2, bq = 2, cq = 2, dq = 2, eq = 2 }) end }" },
  two_options = { "return recipe { build = function(w) grid(w, 'x', { x = 8 }) 'x':with { aq = 1, bq = 2, cq = 3, dq = 4 } end }" },
  two_nccl = { "return recipe { build = function(w) grid(w, 'x', { x = 8 }) 'x':with { nccl = { aq = 1, bq = 2, cq = 3 } } end }" },
  two_coords = { "return recipe { build = function(w) grid(w, 'x', { x = 8 }):rank { aq = 1, bq = 2, cq = 3, dq = 4 } end }" },
}

-- Run all of them, some at a time; each leaves NAME.rc, NAME.err beside its file.
local function run_all()
  folder = support.folder()
  local jobs = assert(io.open(folder .. "/jobs", "w"))
  local function job(name, text, out)
    local file = assert(io.open(("%s/%s.lua"):format(folder, name), "wb"))
    file:write(text)
    file:close()
    jobs:write(("ulimit -t 60; build/moongrid plan %s/%s.lua --world 8 >/dev/null 2>%s.err; echo $? >%s.rc\n"):format(
      folder, name, out, out))
  end
  for name, case in pairs(hostile) do job(name, case[1], folder .. "/" .. name) end
  for name, case in pairs(same_everywhere) do
    for i = 1, 20 do job(name, case[1], ("%s/%s.%d"):format(folder, name, i)) end
  end
  jobs:close()
  assert(os.execute(("xargs -a %s/jobs -d '\\n' -P 4 -I LINE sh -c LINE"):format(folder)))
end

local read = support.read

-- Exit code and message of a run, without "moongrid: " and the file's name.
local function outcome(name, run)
  local base = folder .. "/" .. name .. (run and "." .. run or "")
  local message = support.unquoted(read(base .. ".err")):gsub("\n$", ""):gsub("^moongrid: ", "")
  local path = folder .. "/" .. name .. ".lua"
  if message:sub(1, #path) == path then message = message:sub(#path + 1):gsub("^:", "") end
  return tonumber(read(base .. ".rc")), message
end

lazy_setup(run_all)
lazy_teardown(function() os.execute("rm -r " .. folder) end)

describe("a hostile recipe", function()
  for name, case in pairs(hostile) do
    it("ends: " .. name, function()
      local rc, message = outcome(name)
      assert.are.equal(case[2], rc)
      if type(case[3]) == "string" then
        assert.are.equal(case[3], message)
      elseif type(case[3]) == "table" then
        assert.is_true(message == case[3][1] or message == case[3][2], message)
      elseif case[3] then
        assert.is_truthy(case[3](message), message)
      else
        assert.are_not.equal("", message)
      end
    end)
  end
end)

describe("in twenty processes", function()
  for name, case in pairs(same_everywhere) do
    it("the same comes out: " .. name, function()
      local rc, first = outcome(name, 1)
      assert.are.equal(1, rc)
      assert.are_not.equal("", first)
      if case[2] then assert.are.equal(case[2], first) end
      for run = 2, 20 do assert.are.same({ rc, first }, { outcome(name, run) }) end
    end)
  end

  it("and nothing is read that nobody wrote", function()
    local run = support.run
    if select(3, run "command -v valgrind") ~= 0 then return pending "valgrind is not installed" end
    local _, err, code = run "valgrind -q --error-exitcode=9 build/moongrid plan megatron --world 8"
    assert.are.same({ "", 0 }, { err, code })
  end)
end)

describe("the string library of recipes", function()
  local mg = require "moongrid"

  -- the message that a line of a recipe raises, without the position
  local function says(line)
    local path = support.file("error('<' .. tostring(" .. line .. ") .. '>', 0)")
    local _, message = pcall(mg.load, path)
    return message:match "<(.*)>" or message
  end

  it("splits at plain text", function()
    assert.are.equal("tp|cp|dp", says "table.concat(string.split('tp-cp-dp', '-'), '|')")
    assert.are.equal("a||b|", says "table.concat(('a..b.'):split('.'), '|')")
    assert.are.equal("1", says "#(''):split('-')")
    assert.are.equal("2", says "#('a\\0b-c'):split('-')") -- a zero does not end the text
    assert.are.equal("bad argument #2 to 'split' (empty separator)", (says "string.split('a', '')":gsub("^.-:1: ", "")))
  end)

  it("does not give the host's own strings away", function()
    says "(function() string.upper = function() return 'mine' end return ('x'):upper() end)()"
    assert.are.equal("X", ("x"):upper())
    assert.are.equal("2", says "('xy'):len()")
  end)
end)
