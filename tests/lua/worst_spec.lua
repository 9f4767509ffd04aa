-- SPDX-License-Identifier: MIT
--
-- What a recipe or a file costs is paid before it is done: every function that a recipe can call, with the worst values, and
-- every reader of files, with the worst files of 1 MiB, stay within 1.5 times the limits of processor time and memory
-- (tests/c/worst.c). Functions and files are not named here: names come from the annotations, which
-- annotations_spec.lua holds against the library, and files from the signs of each language.

local support = dofile "tests/lua/support.lua"
local read = support.read

local folder

lazy_setup(function()
  folder = support.folder()
end)
lazy_teardown(function() os.execute("rm -r " .. folder) end)

local function write(name, text) return support.write(folder .. "/" .. name, text) end

-- Every name that is annotated, and the globals of recipes.
local function annotated()
  local names, globals = {}, {}
  local env = setmetatable({}, {
    __index = function(_, name)
      return name == "string" and {} or name == "require" and function() return {} end or nil
    end,
    __newindex = function(_, name) globals[name] = true end,
  })
  for path in assert(io.popen "ls lua/moongrid/meta*.lua"):lines() do
    local meta = read(path)
    for name in meta:gmatch "%-%-%-@field ([%a_][%w_]*)" do names[name] = true end
    for name in meta:gmatch "\nfunction %w+[.:]([%w_]+)%(" do names[name] = true end
    for kind, list in meta:gmatch "\n%-%-   (%l+) +(%l[^\n]*)" do
      for name in list:gmatch "%w+" do
        names[name] = true
        if kind == "globals" then globals[name] = true end
      end
      if kind ~= "globals" then globals[kind] = true end
    end
    assert(loadfile(path, "t", env))()
  end
  return names, globals
end

local function sorted(set)
  local list = {}
  for name in pairs(set) do list[#list + 1] = name end
  table.sort(list)
  return list
end

local seed = tonumber(os.getenv "MOONGRID_SEED") or os.time()
math.randomseed(seed)

-- Run them, and expect no fault: the whole output is told, with the seed.
local function stays_within(arguments, least)
  local out, err, code = support.run("build/tests/worst " .. arguments)
  out = ("MOONGRID_SEED=%d: %s%s"):format(seed, out, err)
  assert.are.equal(0, code, out)
  assert.is_true(tonumber(out:match "%l+ (%d+), longest") >= least, out)
end

describe("the worst values", function()
  local seconds = tonumber(os.getenv "WORST_SECONDS") or 6 -- of processor time; longer tries more
  for _, world in ipairs { "8", "1073741824" } do
    it("stay within the limits of any call: " .. world .. " ranks", function()
      local names, globals = annotated()
      local text = {}
      for _, name in ipairs(sorted(names)) do text[#text + 1] = ("%q"):format(name) end
      local given = {}
      for _, name in ipairs(sorted(globals)) do given[#given + 1] = ("%s = %s"):format(name, name) end
      local line = ("local NAMES, GLOBALS, SEED = { %s }, { %s }, %d"):format(
        table.concat(text, ", "), table.concat(given, ", "), seed)
      local recipe = read "tests/lua/worst.lua":gsub("local NAMES, GLOBALS, SEED = {}, {}, 1", function() return line end)
      stays_within(("recipe %s %s %d"):format(write("calls.lua", recipe), world, seconds), 100)
    end)
  end
end)

-- Files -------------------------------------------------------------------------------

-- What begins a text of each language, and its signs: %d is another number each time.
local languages = {
  json = {
    begins = { "", '{"x": ', '{"x": [', '{"x": {' },
    signs = { "[", "{", "]", "}", '"', ":", ",", "1", "-", "9", ".", "e", "\\u0000", "\\", "null", "a", " ", "\n", "\0", '"a%d": ',
              '{"a":', '[1,', '"a%d",', '"a":1,', "1,", "[],", "{}," },
  },
  yaml = {
    begins = { "", "x: ", "x:\n", "x: [", "x: {", "x: '", "x: |\n" },
    signs = { "[", "{", "]", "}", "- ", "? ", ": ", "a%d: ", "a: ", "&a%d ", "*a%d ", "&a%d x, ", " - &a%d y\n", " - *a0\n", "!t%d ", "!<x%d> ",
              "%%TAG !%d! y\n", "%%YAML 1.1\n", "'", '"', "|", ">", "#", "\n", " ", "\t", "x", "9", ",", "x, ", "\\0", "\0", "---\n", "...\n",
              "<<: ", "\n ", "- \n", "a%d: 1\n", "a%d: &a%d {b: 1}\n", "\xff", "@", "`" },
  },
  lua = {
    begins = { "", "return ", "local x = ", "return {", "recipe ", "return recipe { doc = " },
    signs = { "(", ")", "{", "}", "[", "]", "'", '"', "[[", "]]", "--", "\n", " ", "a", ".a", ":a()", "a%d = ", "a%d ", "1", "9", "..", "1 .. ", "-", "not ",
              "and ", "1 + ", "1 ^ ", "a and ", "::a%d:: ", "goto a%d ", "local a%d ", "local a%d = 1 ", "if 1 then ", "do ", "while 1 do ",
              "function() ", "end ", "return ", "{1,", "{}, ", "1, ", "a = {", "'a%d', ", "f'' ", "f{} ", ";", "break ", "\\", "\0", "\xff",
              "[=", "=", "0x", "e", "repeat ", "until 1 ", "for i=1,1 do " },
  },
}

local SIZE = 2 ^ 20 - 64

-- begin, and then a unit as often as there is room.
local function fill(begin, unit)
  if not unit:find "%%" then return begin .. unit:rep((SIZE - #begin) // #unit | 0) end
  local parts, size, n = { begin }, #begin, 0
  local _, numbers = unit:gsub("%%d", "")
  while size < SIZE - 2 * #unit - 16 do
    n = n + 1
    parts[n + 1] = unit:format(table.unpack({ n, n, n, n, n, n }, 1, numbers))
    size = size + #parts[n + 1]
  end
  return table.concat(parts)
end

-- Every sign alone behind a begin, and some pairs; the paths in a file, a line each.
local function files_of(language, count)
  local l, list = languages[language], {}
  local function add(begin, unit)
    list[#list + 1] = write(("%d.%s"):format(#list, language), fill(begin, unit))
  end
  local function any(of) return of[math.random(#of)] end
  for _, sign in ipairs(l.signs) do add(any(l.begins), sign) end
  for _ = 1, count do add(any(l.begins), any(l.signs) .. any(l.signs)) end
  return write(language, table.concat(list, "\n") .. "\n"), #list, list
end

describe("the worst files", function()
  local recipe = [[return recipe { params = { f = param.file({}, "a file") }, build = function(world)
    local t = topology(world)
    t.a = grid(world, "a", { a = fill }) "a"
    return t
  end }]]

  for _, language in ipairs { "json", "yaml" } do
    it("stay within the limits of a recipe: " .. language, function()
      local paths, n, list = files_of(language, 20)
      stays_within(("files %s <%s"):format(write("recipe.lua", recipe), paths), n)
      for _, path in ipairs(list) do os.remove(path) end
    end)
  end

  it("stay within the limits of a recipe: recipes", function()
    local paths, n, list = files_of("lua", 20)
    stays_within("texts <" .. paths, n)
    for _, path in ipairs(list) do os.remove(path) end
  end)

  it("are read by reshard in a moment", function()
    local _, _, list = files_of("json", 10)
    write("to.lua", recipe)
    for _, path in ipairs(list) do
      local _, err, code = support.run(("ulimit -t 3 -v 400000; build/moongrid reshard %s --to %s/to.lua --world 8 -o %s/out"):format(
        path, folder, folder))
      assert.are.equal(1, code, ("MOONGRID_SEED=%d: %s: %s"):format(seed, read(path):sub(1, 60), err))
      os.remove(path)
    end
  end)
end)
