-- SPDX-License-Identifier: MIT
--
-- A recipe means the same in every process: no value that it can see, such as a message that it catches, depends on the
-- order of a hash table, on addresses, on the process, or on the recipe's folder.

local support = require "support"
local run, write = support.run, support.write

describe("a recipe", function()
  local folder

  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    os.execute(("mkdir -p %s/in/deep %s/on %s/out; touch %s/out/x.lua"):format(folder, folder, folder, folder))
  end)

  after_each(function() os.execute("rm -r " .. folder) end)

  -- Ways to start the recipe in/r.lua: by its path, where it lies, on standard input, and when its file is gone.
  local function ways()
    return { ("build/moongrid plan %s/in/r.lua --world 8"):format(folder),
      ("B=$PWD/build/moongrid; cd %s/in; $B plan r.lua --world 8"):format(folder),
      ("build/moongrid plan - --world 8 <%s/in/r.lua"):format(folder),
      ("cp %s/in/r.lua %s/lost.lua; exec 7<%s/lost.lua; rm %s/lost.lua; build/moongrid plan /dev/fd/7 --world 8"):format(
        folder, folder, folder, folder) }
  end

  it("learns from no answer what there is outside of its folder", function()
    os.execute(("cd %s/in; ln -s ../out/x.lua there.lua; ln -s ../out/y.lua gone.lua; ln -s ../out there; ln -s ../none gone; "
      .. "ln -s %s/out/x.lua deep/there.lua; ln -s /none/x.lua deep/gone.lua; ln -s round.lua round.lua; "
      .. "ln -s ../there deep/on"):format(folder, folder))
    for _, two in ipairs { { "there.lua", "gone.lua" }, { "there/x.lua", "gone/x.lua" }, { "there/../in/r.lua", "gone/../in/r.lua" },
      { "deep/there.lua", "deep/gone.lua" }, { "deep/on/x.lua", "deep/on/y.lua" }, { "../out/x.lua", "../out/y.lua" },
      { "../out/../in/r.lua", "../none/../in/r.lua" }, { "../in/r.lua", "../on/r.lua" }, { "./there", "./gone" },
      { folder .. "/out/x.lua", "/none/x.lua" }, { folder .. "/in/r.lua", "/none/r.lua" }, { "/etc", "/none" },
      { "/proc/self/status", "/proc/none/status" }, { "round.lua", "../x.lua" } } do
      local said = { "", "" }
      for i, name in ipairs(two) do
        write(folder .. "/in/r.lua", ("local _, m = pcall(recipe, %q) error(m, 0)"):format(name))
        for _, line in ipairs(ways()) do
          local _, err, code = run(line)
          assert.are.equal(1, code, err)
          said[i] = said[i] .. err:gsub("^[^']*'[^']*'", "NAME")
        end
      end
      assert.are.equal(said[1], said[2], two[1])
      assert.truthy(said[1]:find("is outside of the folder", 1, true), said[1])
      assert.truthy(said[1]:find("a recipe without a folder", 1, true), said[1])
    end
  end)

  it("names files by links that stay in its folder", function()
    write(folder .. "/in/b.lua", "return recipe { build = function(w) return topology(w) end, idle = 'allow' }")
    os.execute(("cd %s/in; ln -s b.lua c.lua; ln -s ../deep/./../c.lua deep/d.lua; ln -s %s/in/deep e; ln -s . f"):format(folder, folder))
    for _, name in ipairs { "b.lua", "./c.lua", "deep/d.lua", "e/d.lua", "f/f//b.lua", "none/../b.lua" } do
      write(folder .. "/in/r.lua", ("return recipe { base = %q }"):format(name))
      local _, err, code = run(ways()[1])
      assert.are.same({ 0, "" }, { code, err }, name)
    end
  end)

  it("sees the same messages in any folder, and the host the paths that it knows", function()
    write(folder .. "/in/deep/h.lua", "return { f = function(t) t.x = 5 end,\n g = function() error 'g' end }")
    write(folder .. "/in/b.lua", "error 'b'")
    write(folder .. "/in/r.lua", [[
      local h = recipe.import "deep/h.lua"
      local seen = ""
      local function see(fn, ...) seen = seen .. string.format("%s\n", select(2, pcall(fn, ...))) end
      local function names(t) local l = {} for name in pairs(t) do l[#l + 1] = name end return l end
      return recipe { build = function(w)
        local t = topology(w)
        t.x = grid(w, "a", { a = fill }) "a"
        see(h.f, t) see(h.g) see(nil) see(function() return h.nome end) see(recipe, "./b.lua") see(recipe, "none.lua")
        see(recipe, "\xff.lua")
        see(recipe.import, "x.lua") see(error, "e") see(function() return t.y end) see(function() t.x = t.x:twin() end)
        print(seen)
        for _, n in ipairs { 1000, 1050, 4000, 4060, 4080, 4090 } do -- a path of the system has at most 4096 bytes
          local _, m = pcall(recipe, string.rep("x/", n // 2) .. ".lua")
          t["g" .. n .. "_" .. #m] = t.x
        end
        print(table.concat(names(t), " "))
        h.g()
      end }]])
    local wanted = [[
deep/h.lua:1: 'x' is assigned a number; a topology holds families, grids and tensors: of a grid g, g.tp is a size, and g "tp" the family
deep/h.lua:2: g
attempt to call a nil value
r.lua:8: unknown function of deep/h.lua 'nome'; known: f, g
b.lua:1: b
]]
    local all
    for i, line in ipairs { ways()[1], ways()[2], ("cp -r %s/in %s/on; build/moongrid plan %s/on/in/r.lua --world 8"):format(folder,
      folder, folder) } do
      local _, err, code = run(line)
      assert.are.equal(1, code)
      local at = ({ folder .. "/in/", "", folder .. "/on/in/" })[i]
      local print_at, seen, told = err:match("^([^\n:]*:%d+): (.*)\nmoongrid: ([^\n]*)\n$")
      assert.are.same({ at .. "r.lua:11", at .. "deep/h.lua:2: g" }, { print_at, told }, err)
      seen = seen:gsub("\\n", "\n"):gsub("\n" .. at:gsub("%p", "%%%0") .. "r", "\nr") -- as a line of a terminal has them
      all = all or seen
      assert.are.equal(all, seen)
    end
    assert.truthy(all:find(wanted, 1, true), all)
    assert.falsy(all:find(folder, 1, true), all)
  end)
end)


-- Every function and every field with wrong values of several kinds at once, in processes that differ in all that a
-- recipe must not see. MOONGRID is the command to try, another build for example.
local command = os.getenv "MOONGRID" or "build/moongrid"

-- What the annotations say that there is: functions by class.
local function annotated()
  local found = {}
  for _, file in ipairs { "meta", "meta_families", "meta_recipe", "meta_state", "meta_tensor" } do
    for class, name in support.read("lua/moongrid/" .. file .. ".lua"):gmatch "\nfunction ([%w_]+)[.:]([%w_]+)" do
      found[class] = found[class] or {}
      table.insert(found[class], name)
    end
  end
  return found
end

-- The recipe: `see` calls a function, and takes what that says or gives into a sum. Each line of calls prints its own.
local before = [[
local sum, total = 0, ""
local function take(text)
  for i = 1, #text do sum = (sum * 31 + string.byte(text, i)) & 0xffffffff end
end
local function see(fn, ...)
  local ok, value = pcall(fn, ...)
  take(type(value) == "table" and "table" or tostring(value))
end
local function said(what)
  print(what .. " " .. sum)
  total, sum = total .. sum, 0
end
return recipe { idle = "allow", build = function(w)
local g, h, t = grid(w, "a-b", { a = 2, b = fill }), grid(w, "c", { c = fill }), topology(w)
local f = g "a"
t.g, t.f, t.h = g, f, h "c"
local x = tensor { axes = { { "r", 8 } }, type = "f32", cut = { r = "a" } }
local gone = { 1, 2, 3, 4, zz = 1, yy = 2, xx = 3 } gone[4] = nil gone.zz = nil gone.yy = nil
local wrong = { true, -1, 2.5, "x", "a-b", print, {}, { 1, 2 }, f, g, w, t, x, fill, gone, { f, g }, { "f", "g", 3 },
  { zz = 1.5, yy = "x", xx = {}, ww = print, a = 2.5, b = "y" }, { zz = fill, yy = 3, a = fill, c = 1 },
  { [{}] = 1, [{ 1 }] = 2, [{ 2 }] = 3, [1.5] = 4, [true] = 5, [false] = 6, [print] = 7, [f] = 8, [g] = 9, b = 10, c = 11 },
  { [{ "k" }] = "x", [{ "l" }] = {}, [0] = 1, [-1] = 2 }, { [4] = 4, [3] = 3, [2] = 2, [1] = 1 }, { { zz = 1, yy = 2 }, { xx = 3 } } }
local function calls(what, fn)
  for _, v in ipairs(wrong) do
    see(fn, v) see(fn, v, v) see(fn, "a", v) see(fn, w, v) see(fn, w, "a-b", v) see(fn, t, v) see(fn, f, v) see(fn, g, "a", v)
  end
  said(what)
end
local function methods(what, object, names)
  for _, name in ipairs(string.split(names, " ")) do
    local ok, fn = pcall(function() return object[name] end)
    if ok then for _, v in ipairs(wrong) do see(fn, object, v) see(fn, object, "a", v) see(fn, object, v, v) see(fn, object, "a", "b-c", v) end end
    said(what .. name)
  end
  for _, v in ipairs(wrong) do
    see(function() return object[v] end) see(function() object[v] = v end) see(function() return object(v, v) end)
    see(function() for _ in pairs(object) do end end) see(function() return object .. v end) see(function() return object < v end)
  end
  said(what)
end
-- one of the names, and others, are v
local function fields(what, fn, names, more)
  for _, name in ipairs(string.split(names, " ")) do
    for _, v in ipairs(wrong) do
      for _, others in ipairs { {}, { zz = 1, yy = 2, xx = 3 }, { [name] = v } } do
        local value = { [name] = v }
        for key, one in pairs(more or {}) do value[key] = value[key] or one end
        for key, one in pairs(others) do value[key] = one end
        see(fn, value)
      end
      see(fn, { [name] = { [name] = v, zz = v, yy = v, xx = v } })
    end
    said(what .. " " .. name)
  end
end
]]

local function corpus()
  local mg, known, parts = require "moongrid", annotated(), {}
  local function add(text, ...) parts[#parts + 1] = text:format(...) end
  for _, name in ipairs(known.moongrid) do add("pcall(function() calls('%s', %s) end)", name, name) end
  for _, library in ipairs { "string", "table", "math" } do
    for name in pairs(_G[library]) do add("pcall(function() calls('%s.%s', %s.%s) end)", library, name, library, name) end
  end
  for _, name in ipairs { "tostring", "tonumber", "ipairs", "pairs", "select", "type", "assert", "error", "pcall", "recipe" } do
    add("calls('%s', %s)", name, name)
  end
  table.sort(parts)
  add("calls('import', recipe.import)")
  for class, object in pairs { World = "w", Grid = "g", Family = "f", Topology = "t" } do
    add("methods('%s ', %s, '%s')", class, object, table.concat(known[class], " "))
  end
  add("methods('Tensor ', x, 'none') methods('param ', param, 'none') methods('policies ', policies, 'none')")
  local options, nccl = mg.options()
  local function names(rows)
    local list = {}
    for i, row in ipairs(rows) do list[i] = row.name end
    return table.concat(list, " ")
  end
  add("fields('with', function(v) return f:with(v) end, '%s')", names(options))
  add("fields('nccl', function(v) return f:with { nccl = v } end, '%s')", names(nccl))
  add("fields('recipe', recipe, '%s', { build = topology })", "doc base params rest build concurrent families queries getters "
    .. "arguments settings policy agreed idle")
  add("fields('tensor', function(v) t.made = tensor(v) t.made = nil end, 'axes type cut on over copies part none', "
    .. "{ axes = { { 'r', 8 } }, type = 'f32', cut = { r = 'a' }, over = 'g' })")
  add("fields('flat', flat, 'tensors over cut type pad align none')")
  for _, kind in ipairs { "size", "index", "integer", "number", "flag", "text", "list", "table", "file", "any" } do
    add("calls('param.%s', param.%s)", kind, kind)
    add("fields('params %s', function(v) return recipe { params = { q = param.%s() }, build = function(w) return topology(w) end }"
      .. ".build(w, v) end, 'q r')", kind, kind)
  end
  for _, name in ipairs(known.Policies) do
    add("calls('policies.%s', policies.%s)", name, name)
    add("fields('policies.%s', policies.%s, 'first last embedding loss chunks order microbatch per_rank least dense expert "
      .. "peak warmup decay every families none')", name, name)
  end
  for _, name in ipairs(mg.recipes()) do
    add("fields('%s', function(v) return recipe '%s'.build(w, v) end, 'tp tensor_model_parallel_size none')", name, name)
  end
  return parts
end

describe("what a recipe sees", function()
  local folder

  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    os.execute("mkdir -p " .. folder .. "/other/place")
  end)

  after_each(function() os.execute("rm -r " .. folder) end)

  -- What a command says of FILE, r.lua, in several processes.
  local function compare(file, line, what)
    local whole = folder .. "/" .. file
    os.execute(("cp %s %s/other/place/%s"):format(whole, folder, file))
    line = line:gsub("COMMAND", command:sub(1, 1) == "/" and command or "$PWD/" .. command)
    local first
    for i, way in ipairs { (line:gsub("FILE", whole)), (line:gsub("FILE", whole)),
      ("C=$PWD; cd %s/other/place; env -i A=b LC_ALL=C.UTF-8 LANG=de_DE setarch -R %s"):format(folder,
        (line:gsub("%$PWD", "$C"):gsub("FILE", file))),
      ("TZ=Asia/Tokyo HOME=/none bash -c '%s'"):format((line:gsub("FILE", folder .. "/other/place/" .. file))),
      (line:gsub("FILE", whole)), (line:gsub("FILE", whole)) } do
      local out, err = run(way)
      local said = (out .. err):gsub(folder .. "/", ""):gsub("other/place/", ""):gsub(command:gsub("%p", "%%%0"), "moongrid")
      first = first or said
      if said ~= first then -- the line that differs
        local lines = said:gmatch "[^\n]*"
        for old in first:gmatch "[^\n]*" do assert.are.equal(old, lines() or "", what .. ", process " .. i) end
      end
    end
    return first
  end

  it("of wrong calls is the same in every process", function()
    local parts, n, PART = corpus(), 0, 24
    for from = 1, #parts, PART do
      local path = ("r%d.lua"):format(from)
      write(folder .. "/" .. path, before .. table.concat(parts, "\n", from, math.min(from + PART - 1, #parts))
        .. "\nt['g' .. string.sub(total, 1, 30)] = g 'b' return t end }")
      local text = compare(path, "COMMAND plan --text --world 8 FILE", path)
      assert.truthy(text:find("\nfamily f: ", 1, true), text:sub(-600))
      for _ in text:gmatch "\n[^\n]*:%d+: [^\n]* %d+" do n = n + 1 end
    end
    assert.is_true(n > 200, n .. " lines")
  end)

  it("of options, which names a first wrong one, has one digest", function()
    for i, text in ipairs { "f:with{ windows = { a = 1.5, bbbbbbbbb = 2.5 } }", "f:with{ [{}] = 1, [1.5] = 2, [true] = 3 }",
      "grid(w, 'a', { [{}] = 1, [1.5] = 2, b = 'x' })", "for k in pairs { [{}] = 1, [1.5] = 2 } do end" } do
      write(folder .. "/r.lua", ([[return recipe { build = function(w) local t = topology(w)
        local f = grid(w, "a", {a=fill})"a"
        local _, m = pcall(function() %s end)
        t["g" .. #m] = f return t end }]]):format(text))
      compare("r.lua", "COMMAND plan --text --world 8 FILE", "text " .. i)
    end
  end)

  it("of bundled recipes is the same in every process", function()
    write(folder .. "/r.lua", "")
    for _, name in ipairs(require "moongrid".recipes()) do
      local text = compare("r.lua", ("COMMAND plan --text --world 8 %s; COMMAND recipes %s; COMMAND plan %s --world 8 zz=1 yy=2 "
        .. "tp.zz=1 tp.yy=2"):format(name, name, name), name)
      assert.truthy(text:find("\nparameters\n", 1, true), text)
    end
  end)
end)
