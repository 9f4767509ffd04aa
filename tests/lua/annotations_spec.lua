-- SPDX-License-Identifier: MIT
--
-- The editor annotations match the library: every name that an object, the module or a recipe has is
-- annotated in lua/moongrid/meta*.lua, and every annotated name exists. Objects do not list their names, so each
-- is tried with every word in the binary of the library.

local support = dofile "tests/lua/support.lua"
local read = support.read
local moongrid = require "moongrid"

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

-- What is annotated ----------------------------------------------------------------

local files, meta = {}, ""
for path in io.popen("LC_ALL=C ls lua/moongrid/meta*.lua"):lines() do
  files[#files + 1], meta = path, meta .. read(path)
end

-- name of a class -> { fields and methods }, by reading line by line
local annotated, called, lines = {}, {}, {} -- called["Family.split"]: a method
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
      called[owner .. "." .. member] = true
    end
  end
end

-- What is there --------------------------------------------------------------------

-- The words in the constants of the libraries: a name that C compares with is one of them, or the
-- end of one, since the linker keeps "ranks" inside "nranks".
local words = {}
for line in assert(io.popen "ls build/*.so"):lines() do
  local constants = os.tmpname()
  assert(os.execute(("objcopy -O binary --only-section=.rodata %s %s"):format(line, constants)))
  for word in read(constants):gmatch "[%a_][%w_]+" do
    for from = 1, #word - 1 do
      if word:find("^[%a_]", from) then words[word:sub(from)] = true end
    end
  end
  os.remove(constants)
end
for _, names in pairs(annotated) do
  for name in pairs(names) do words[name] = true end
end

-- The words that are names of a value.
local function answered(value)
  local set = {}
  for word in pairs(words) do
    local ok, answer = pcall(function() return value[word] end)
    if ok and answer ~= nil then set[word] = true end
  end
  return set
end

-- The methods of a class of which there is no value here; its fields fail without one.
local function methods(class)
  local set, index = {}, debug.getregistry()["moongrid." .. class].__index
  for word in pairs(words) do
    local ok, answer = pcall(index, nil, word)
    if ok and type(answer) == "function" then set[word] = true end
  end
  return set
end

-- The names in the message that a wrong name gets.
local function listed(message)
  local set = {}
  for name in assert(message:match "known: ([^;]*)", message):gmatch "[%w_]+" do set[name] = true end
  return set
end

local function refusal(fn, ...)
  local ok, message = pcall(fn, ...)
  assert(not ok)
  return message
end

local unknown = "zz_unknown" -- no word, and near none

local live = {}
do
  live.World = moongrid.world(4)
  live.Grid = moongrid.grid(live.World, "zz_inner-zz_outer", { zz_inner = 2, zz_outer = 2 })
  live.Family = live.Grid "zz_inner"
  live.Topology = moongrid.topology(live.World)
  live.Topology.zz_family = live.Family
  live.Topology.zz_grid = live.Grid
  live.Tensor = moongrid.tensor { axes = { { "zz_axis", 4 } }, type = "f32", cut = { zz_axis = "zz_inner" } }
  live.Topology.zz_tensor = live.Tensor
  live.Plan = moongrid.plan(live.Topology)
  live.State = live.Plan:dry(0)
  live.Move = moongrid.move(live.Plan, live.State, { rounds = true, ranks = { 1, 0, 3, 2 } })
  live.Group = live.State.zz_family
  live.Mesh = live.State.zz_grid
  live.Machine = live.State.machine
  live.Recipe = moongrid.load "picotron"
end

-- What a chunk answers that runs as a recipe: it returns a text.
local function in_recipe(chunk, ...)
  local path = support.file(("local function ask(...) %s end\n"):format(chunk)
    .. ("return recipe { doc = ask(%s), build = function(world) return topology(world) end }"):format(
      table.concat({ ... }, ", ")))
  local doc = moongrid.load(path):info().doc
  return doc
end

-- The words that a value has in a recipe, `_ENV` or a library.
local function answered_in_recipe(value)
  local list = {}
  for _, word in ipairs(sorted(words)) do list[#list + 1] = ("%q"):format(word) end
  for _, library in ipairs { _G, math, string, table } do
    for name in pairs(library) do list[#list + 1] = ("%q"):format(name) end
  end
  local set = {}
  local answer = in_recipe(([[
    local found = {}
    for _, word in ipairs { %s } do
      local ok, value = pcall(function() return %s[word] end)
      if ok and value ~= nil then found[#found + 1] = word end
    end
    return table.concat(found, " ")]]):format(table.concat(list, ", "), value))
  for name in answer:gmatch "%S+" do set[name] = true end
  return set
end

local function refusal_in_recipe(expression)
  return in_recipe(("local _, message = pcall(function() return %s end) return message"):format(expression))
end

describe("meta.lua", function()
  it("is for editors alone", function()
    assert.are.equal("---@meta moongrid", lines[1])
  end)

  it("is Lua", function()
    for _, path in ipairs(files) do assert.is_truthy(loadfile(path, "t")) end
  end)

  it("has the functions and values of the module", function()
    assert.are.same(sorted(moongrid), sorted(annotated.moongrid))
  end)

  for _, class in ipairs { "World", "Grid", "Family", "Topology", "Plan", "State", "Group", "Mesh", "Recipe", "Move" } do
    it("has every method and field of a " .. class, function()
      assert.are.same(sorted(answered(live[class])), sorted(annotated["moongrid." .. class]))
    end)

    it("has methods of a " .. class .. " as functions, and fields as none", function()
      for name in pairs(annotated["moongrid." .. class]) do
        assert.are.equal(called[class .. "." .. name] or false, type(live[class][name]) == "function", name)
      end
    end)
  end

  it("has every method of a Buffer", function()
    assert.are.same(sorted(methods "Buffer"), sorted(annotated["moongrid.Buffer"]))
  end)

  it("has every method and field of a Job", function()
    local list = {}
    for _, word in ipairs(sorted(words)) do list[#list + 1] = ("%q"):format(word) end
    local path = support.file(([[
      local job <close> = assert(require "moongrid".mpi())
      for _, word in ipairs { %s } do
        if pcall(function() return job[word] end) then print("has " .. word) end
      end
      print(select(2, pcall(function() return job.%s end)))]]):format(table.concat(list, ", "), unknown))
    local out, err = support.run("LUA_CPATH_5_4='build/?.so;;' scripts/launch 1 lua5.4 " .. path)
    local set = {}
    for name in out:gmatch "has ([%w_]+)\n" do set[name] = true end
    assert.are.same(sorted(set), sorted(annotated["moongrid.Job"]), err)
    assert.are.same(sorted(set), sorted(listed(out:match "[^\n]*\n$")))
  end)

  it("has the options of families", function()
    local message = refusal(live.Family.with, live.Family, { [unknown] = 1 })
    assert.are.same(sorted(listed(message)), sorted(annotated["moongrid.Options"]))
  end)

  it("has NCCL's fields", function()
    local message = refusal(live.Family.with, live.Family, { nccl = { [unknown] = 1 } })
    assert.are.same(sorted(listed(message)), sorted(annotated["moongrid.Nccl"]))
  end)

  it("has the fields of the machine", function()
    local known = listed(refusal(function() return live.Machine[unknown] end))
    assert.are.same(sorted(known), sorted(annotated["moongrid.Machine"]))
    for name in pairs(answered(live.Machine)) do assert.is_true(known[name], name) end
  end)

  it("has the fields of a recipe", function()
    assert.are.same(sorted(listed(refusal_in_recipe(("recipe { %s = 1 }"):format(unknown)))),
      sorted(annotated["moongrid.Definition"]))
  end)

  it("has the kinds of parameters", function()
    local kinds = sorted(listed(refusal_in_recipe("param." .. unknown)))
    assert.are.same(kinds, sorted(answered_in_recipe "param"))
    assert.are.same(kinds, sorted(annotated["moongrid.Params"]))
    assert.are.same(kinds, sorted(strings_in(meta:match "%-%-%-@field kind ([^\n]*)")))
  end)

  it("has what a recipe sees of Lua, and defines what it sees besides", function()
    local besides = answered_in_recipe "_ENV"
    for _, library in ipairs { "globals", "math", "string", "table" } do
      local names = {}
      for name in assert(meta:match("\n%-%-   " .. library .. " +([^\n]*)")):gmatch "%w+" do names[name] = true end
      if library ~= "globals" then
        assert.are.same(sorted(answered_in_recipe(library)), sorted(names))
        names = { [library] = true }
      end
      for name in pairs(names) do
        assert.is_true(besides[name], name)
        besides[name] = nil
      end
    end
    local defined = {} -- every global that the annotations assign to, `fill` = nil too
    local env = setmetatable({}, {
      __index = function(_, name)
        return name == "string" and {} or name == "require" and function() return {} end or nil
      end,
      __newindex = function(_, name) defined[name] = true end,
    })
    for _, path in ipairs(files) do assert(loadfile(path, "t", env))() end
    assert.are.same(sorted(besides), sorted(defined))

    local listed_globals = strings_in(read ".luacheckrc":match "read_globals = (%b{})")
    listed_globals.split = nil -- of string
    assert.are.same(sorted(besides), sorted(listed_globals))
  end)

  it("has the bundled policies and their settings", function()
    local settings_of, last = {}, nil
    for _, line in ipairs(lines) do
      last = line:match "^%-%-%-@param settings%?? (moongrid%.%w+)" or last
      settings_of[line:match "^function Policies%.([%w_]+)%(" or ""] = last
    end
    local names = listed(refusal_in_recipe("policies." .. unknown))
    for name in pairs(names) do
      local wanted = listed(refusal_in_recipe(("policies.%s { %s = 1 }"):format(name, unknown)))
      assert.are.same(sorted(wanted), sorted(annotated[settings_of[name]]))
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
  for _, class in ipairs { "World", "Family", "Plan", "Group", "Recipe" } do
    it("name every method and field of a " .. class, function()
      local message = refusal(function() return live[class][unknown] end)
      local known, all = listed(message), answered(live[class])
      if message:find ", %.%.%.$" then -- a message has 32 names at most
        assert.are.equal(32, #sorted(known))
        for name in pairs(all) do known[name] = true end
      end
      assert.are.same(sorted(all), sorted(known))
    end)
  end

  it("name the words that a State answers itself, which no family can have", function()
    for name in pairs(annotated["moongrid.State"]) do
      local message = refusal(function() moongrid.topology(live.World)[name] = live.Family end)
      assert.is_truthy(message:find("is a field or method of a State", 1, true), message)
    end
  end)
end)
