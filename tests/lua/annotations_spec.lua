-- SPDX-License-Identifier: MIT
--
-- The editor annotations and the sources say the same: every name that C or the prelude
-- exports is annotated in lua/moongrid/meta.lua or meta_recipe.lua, and every annotated name exists.

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("a")
  file:close()
  return text
end

local function lines_of(command)
  local pipe = assert(io.popen(command))
  local list = {}
  for line in pipe:lines() do list[#list + 1] = line end
  pipe:close()
  return list
end

local function sorted(set)
  local list = {}
  for name in pairs(set) do list[#list + 1] = name end
  table.sort(list)
  return list
end

local function strings_in(text)
  local set = {}
  for name in text:gmatch('"([%w_]+)"') do set[name] = true end
  return set
end

-- What the sources export --------------------------------------------------------

local source = {}
for _, path in ipairs(lines_of "ls src/script/*.c") do source[#source + 1] = read(path) end
source = table.concat(source, "\n")
local prelude = read "lua/moongrid/recipe.lua"

-- Names of all `static const luaL_Reg NAME[] = { { "x", ... }, ... };`
local function registered(name)
  local set, found = {}, 0
  for body in source:gmatch("luaL_Reg +" .. name .. "%[%] = (%b{})") do
    found = found + 1
    for entry in body:gmatch('{ "([%w_]+)",') do set[entry] = true end
  end
  return set, found
end

-- The list of words in `static const char *const NAME[] = { ... };`
local function words(text, name)
  local body = assert(text:match("%*const " .. name .. "%[%] = (%b{})"), name)
  return strings_in(body)
end

-- Of a class: the fields its __index compares with, and its list for messages.
local function index_of(class)
  local body = source:match("\nstatic int " .. class .. "_index%(lua_State %*L%) (%b{})")
    or source:match("\nstatic int " .. class .. "_missing%(lua_State %*L%) (%b{})")
  if not body then return {} end
  local set = {}
  for name in body:gmatch('strcmp%(key, "([%w_]+)"%)') do set[name] = true end
  return set, body:find("known[]", 1, true) and words(body, "known") or nil
end

local function exported(class)
  local set = registered(class .. "_methods")
  if class == "group" then -- and its collectives
    for name in pairs((registered "mgrid_lua_group_use")) do set[name] = true end
  end
  for name in pairs((index_of(class))) do set[name] = true end
  return set
end

local function module_names()
  local set, found = registered "functions"
  assert(found >= 3) -- one array per file that has functions
  local literal = source:match "int mgrid_lua_open%(lua_State %*L%) (%b{})"
  for name in literal:gmatch 'lua_setfield%(L, %-2, "([%w_]+)"%)' do set[name] = true end
  if source:find 'fill_key%);\n  lua_setfield%(L, %-2, "fill"%)' then set.fill = true end
  return set
end

-- What is annotated ----------------------------------------------------------------

local files = { "lua/moongrid/meta.lua", "lua/moongrid/meta_recipe.lua" }
local meta = read(files[1]) .. read(files[2])

-- name of a class -> { fields and methods }, by reading line by line
local annotated, lines = {}, {}
do
  local class, variable = nil, {}
  for line in meta:gmatch "([^\n]*)\n" do
    lines[#lines + 1] = line
    local opened = line:match "^%-%-%-@class ([%w_.]+)"
    local field = line:match "^%-%-%-@field ([%w_]+)"
    local name = line:match "^local (%w+) = {}"
    local owner, member = line:match "^function (%w+)[.:]([%w_]+)%("
    if opened then
      class = opened
      annotated[class] = annotated[class] or {}
    elseif field then
      annotated[class][field] = true
    elseif name then
      variable[name] = class
    elseif owner and variable[owner] then
      annotated[variable[owner]][member] = true
    end
  end
end

describe("meta.lua", function()
  it("is for editors alone", function()
    assert.are.equal("---@meta moongrid", lines[1])
  end)

  it("is Lua", function()
    for _, path in ipairs(files) do assert.is_truthy(loadfile(path, "t")) end
  end)

  it("has the functions and values of the module", function()
    assert.are.same(sorted(module_names()), sorted(annotated.moongrid))
  end)

  it("has what the module has when it is loaded", function()
    assert.are.same(sorted(require "moongrid"), sorted(annotated.moongrid))
  end)

  for _, class in ipairs { "World", "Grid", "Family", "Plan", "State", "Group", "Buffer", "Recipe", "Job" } do
    it("has every method and field of " .. class, function()
      local names = sorted(exported(class:lower()))
      assert.is_true(#names > 0)
      assert.are.same(names, sorted(annotated["moongrid." .. class]))
    end)
  end

  it("has no method or field of a Topology: all its names are families", function()
    assert.are.same({}, sorted(annotated["moongrid.Topology"]))
  end)

  it("has the options of families", function()
    local with = source:match "\nstatic int family_with%(lua_State %*L%) (%b{})"
    assert.are.same(sorted(words(with, "known")), sorted(annotated["moongrid.Options"]))
  end)

  it("has the fields of the machine", function()
    assert.are.same(sorted(words(read "src/script/machine.c", "fields")), sorted(annotated["moongrid.Machine"]))
  end)

  it("has NCCL's fields", function()
    local body = read "src/plan/nccl.c":match "mgrid_nccl_fields%[MGRID_NCCL_FIELDS%] = (%b{})"
    assert.are.same(sorted(strings_in(body)), sorted(annotated["moongrid.Nccl"]))
  end)

  it("has the fields of a recipe", function()
    assert.are.same(sorted(strings_in(prelude:match "\nlocal fields = (%b{})")), sorted(annotated["moongrid.Definition"]))
  end)

  it("has the kinds of parameters", function()
    local kinds = {}
    local declared = read "lua/moongrid/parameters.lua"
    for kind in declared:match("\nlocal kinds = (%b{})"):gmatch "\n  (%l+) = {" do kinds[kind] = true end
    for kind in declared:gmatch "\nkinds%.(%l+) = {" do kinds[kind] = true end
    assert.are.same(sorted(kinds), sorted(annotated["moongrid.Params"]))
    assert.are.same(sorted(kinds), sorted(strings_in(meta:match "%-%-%-@field kind ([^\n]*)")))
  end)

  it("has what a recipe sees of Lua", function()
    local sandbox = read "src/script/sandbox.c"
    local function allowed(list, changed)
      local set = words(sandbox, list)
      for name in pairs((registered(changed))) do set[name] = true end
      return set
    end
    local lists = { globals = allowed("globals", "changed"), math = allowed("maths", "none"),
                    string = allowed("strings", "new_strings"), table = allowed("tables", "new_tables") }
    lists.string.format = true -- set by hand, over the real one
    for library, names in pairs(lists) do
      local listed = {}
      for name in assert(meta:match("\n%-%-   " .. library .. " +([^\n]*)")):gmatch "%w+" do listed[name] = true end
      assert.are.same(sorted(names), sorted(listed))
    end
  end)

  it("defines what recipes have besides, and the three from the prelude", function()
    local hidden = strings_in(source:match "not_for_recipes%[%] = (%b{})")
    local globals = strings_in(source:match "from_prelude%[%] = (%b{})")
    for name in pairs(module_names()) do
      if not hidden[name] and not strings_in('"load" "mpi" "nccl" "recipes" "_VERSION"')[name] then globals[name] = true end
    end
    local defined = {} -- every global that the annotations assign to, `fill` = nil too
    local env = setmetatable({}, {
      __index = function(_, name)
        return name == "string" and {} or name == "require" and function() return {} end or nil
      end,
      __newindex = function(_, name) defined[name] = true end,
    })
    for _, path in ipairs(files) do assert(loadfile(path, "t", env))() end
    assert.are.same(sorted(globals), sorted(defined))
  end)

  it("has the bundled policies and their settings", function()
    local library, settings_of, last = read "lua/moongrid/policies.lua", {}, nil
    for _, line in ipairs(lines) do
      last = line:match "^%-%-%-@param settings%?? (moongrid%.%w+)" or last
      settings_of[line:match "^function Policies%.([%w_]+)%(" or ""] = last
    end
    local names = {}
    for name, settings in library:gmatch "\nlibrary%.([%w_]+) = {\n  settings = (%b{})" do
      local wanted = {}
      for setting in settings:gmatch '{ "([%w_]+)",' do wanted[setting] = true end
      assert.are.same(sorted(wanted), sorted(annotated[settings_of[name]]))
      names[name] = true
    end
    assert.are.same(sorted(names), sorted(annotated["moongrid.Policies"]))
  end)

  it("describes each parameter of each function", function()
    local block = {}
    for _, line in ipairs(lines) do
      if line:find "^%-%-%-" then
        block[line:match "^%-%-%-@param ([%w_.]+)" or line] = true
      else
        for name in (line:match "^function [%w_.:]+%((.-)%)" or ""):gmatch "[%w_.]+" do
          assert.is_true(block[name], line .. ": " .. name)
        end
        block = {}
      end
    end
  end)
end)

describe("the lists in messages", function()
  for _, class in ipairs { "World", "Family", "Plan", "Group", "Recipe", "Job" } do
    it("name every method and field of " .. class, function()
      local _, known = index_of(class:lower())
      assert.are.same(sorted(exported(class:lower())), sorted(known))
    end)
  end
end)

describe("luacheck's list of globals", function()
  it("is the vocabulary", function()
    local listed = strings_in(read ".luacheckrc":match "read_globals = (%b{})")
    listed.split = nil -- of string
    local globals = strings_in(source:match "from_prelude%[%] = (%b{})")
    for _, name in ipairs { "grid", "topology", "same", "union", "zip", "fill" } do globals[name] = true end
    assert.are.same(sorted(globals), sorted(listed))
  end)
end)
