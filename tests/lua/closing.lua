-- SPDX-License-Identifier: MIT
--
-- closing.lua - every method and field of every class, while a finalizer or a metamethod of an argument closes the
-- objects that it uses; and every method, ended at each allocation of Lua. No object may be used after it is freed, and
-- nothing may leak (../mpi/closing.c runs this under ASan); each call returns, or raises. Methods are those that the
-- sources register, so a new one is called, too.
--
-- Argument: a seed. Prints the number of calls, of those in which something was closed, and of those that were ended.

local mg = require "moongrid"
math.randomseed(tonumber((...)) or 1)

-- ------------------------------------------------------------------ objects

local text = [[return recipe { params = { tp = 2, odd = false }, build = function(world, p)
  local g, t = grid(world, 'tp-dp', { tp = p.tp, dp = fill }), topology(world)
  t.grid, t.tp, t.dp = g, g 'tp', g 'dp'
  t.w = tensor { axes = { { "a", 8 } }, type = "f32", cut = { a = "tp" } }
  return t end,
queries = { world_size = function(s) return s.world end }, settings = { training = param.flag(true) },
step = function(s, p) if not (p.odd and s.rank == 0) then s:all_reduce(s.tp, 8) end end,
getters = { one = 'tp' }, policy = { one = function(s, q) return { s.tp.size, q.a } end } }]]
local path = os.tmpname() .. ".lua"
local file = assert(io.open(path, "w"))
file:write(text)
file:close()

local recipe = mg.load(path)
local of_recipe = recipe:plan(4, { tp = 2 })
local unlike = recipe:plan(4, { odd = true }) -- its step cannot be proved
local alone = recipe:plan(1, { tp = 1 })
local open_job = _G.open_job or mg.mpi -- the host's, or the module's own; of one rank
local live = {}

-- What can be closed anew for each call; the rest lives on.
local function open()
  live.dry = of_recipe:dry(1)
  live.group = live.dry.tp
  if not live.job then live.job = assert(open_job()) end
  live.state = assert(live.job:materialize(alone, "x"))
  live.one = live.state.tp
  live.buffer, live.other = live.one:buffer(4, "double"), live.one:buffer(4, "double")
end

local function close()
  for _, name in ipairs { "buffer", "other", "dry", "state", "job" } do
    local object = live[name]
    live[name] = nil
    if object then object:close() end
  end
end

-- --------------------------------------------------------------- who closes

local closed = false
local function closes()
  if not closed then
    closed = true
    collectgarbage("incremental", 200, 100, 13)
    close()
    collectgarbage()
  end
end

-- A table whose every metamethod closes.
local evil = setmetatable({ tp = 2 }, {})
for _, event in ipairs { "index", "newindex", "len", "call", "pairs", "tostring", "eq", "lt", "le", "concat", "unm" } do
  getmetatable(evil)["__" .. event] = function(_, key)
    closes()
    if event == "pairs" then return next, {}, nil end
    if event == "tostring" then return "evil" end
    return key == "rank" and 0 or 1
  end
end

-- Garbage that closes in the k-th collection from now on. Each allocation that may collect does it whole.
local turn = 0 -- of a call: garbage of an earlier one closes nothing
local function arm(k, mine)
  if not mine then
    collectgarbage("incremental", 1, 1000, 30)
    collectgarbage() -- from its end the debt counts
    mine = turn
  end
  setmetatable({}, { __gc = function()
    if mine == turn then
      if k <= 0 then closes() else arm(k - 1, mine) end
    end
  end })
end

-- -------------------------------------------------------------------- calls

local names = {}
do
  local found = {}
  for source in io.popen("ls src/recipe/words/*.c src/recipe/module.c src/recipe/job.c src/*/lua/*.c"):lines() do
    for name in assert(io.open(source)):read("a"):gmatch '{ "([%w_]+)", *[%w_]+ }' do found[name] = true end
  end
  for _, starts in ipairs { "mpi", "nccl", "pmix", "rccl", "close", "__gc", "__close" } do found[starts] = nil end
  for name in pairs(found) do names[#names + 1] = name end
  table.sort(names)
  assert(#names > 150, "the sources register fewer methods than there are")
end

local world = mg.world(4)
local grid = of_recipe:grid "grid"
local topology = mg.topology(world)
topology.grid, topology.tp = grid, grid "tp"

-- The objects whose methods are called, by a function that finds them anew.
local selves = {
  function() return live.dry end, function() return live.group end, function() return live.dry and live.dry.grid end,
  function() return live.state end, function() return live.one end, function() return live.buffer end,
  function() return live.job end, function() return of_recipe end, function() return recipe end,
  function() return grid end, function() return topology end, function() return world end,
  function() return grid "tp" end, function() return mg end,
  function() return mg.move(of_recipe, of_recipe, { rank = 1 }) end, function() return of_recipe:step() end,
  function() return unlike:step() end,
}

local palette = {
  function() return nil end, function() return "tp" end, function() return 1 end, function() return 0 end,
  function() return evil end, function() return { rank = 0 } end, function() return live.dry end,
  function() return live.buffer end, function() return live.other end, function() return live.job end,
  function() return live.state end, function() return alone end, function() return "world_size" end,
  function() return { 1, 1 } end, function() return "grid" end, function() return "one" end,
  function() return "sum" end,
  function() return 12.0 end, -- as a string where one is wanted: that allocates
}

local calls, while_open, ended = 0, 0, 0
local function begin(self)
  turn, closed = turn + 1, false
  collectgarbage("incremental", 200, 100, 13)
  if not live.dry then open() end
  return self()
end

local function call(self, name, k)
  local object = begin(self)
  local good, method = pcall(function() return object[name] end)
  if not good then return end
  local given = {}
  for i = 1, 4 do given[i] = palette[math.random(#palette)]() end
  if k >= 0 then arm(k) end
  if object == mg then object = table.remove(given, 1) end
  pcall(method, object, table.unpack(given, 1, math.random(0, 4)))
  calls, while_open = calls + 1, while_open + (closed and 1 or 0)
end

-- Read a field or find a method.
local function read(self, name, k)
  local object = begin(self)
  arm(k)
  pcall(function() return object[name] end)
  calls, while_open = calls + 1, while_open + (closed and 1 or 0)
end

-- Call it with what it takes, if that is found soon, and end it at each allocation. `fail_after` is the host's.
local function starve(self, name)
  local given, n = {}, 0
  local function try(k)
    local object = begin(self)
    local good, method = pcall(function() return object[name] end)
    if not good then return end
    if k then _G.fail_after(k) end
    if object == mg then return pcall(method, table.unpack(given, 1, n)) end
    return pcall(method, object, table.unpack(given, 1, n))
  end
  for _ = 1, 8 do
    n = math.random(0, 4)
    for i = 1, n do
      given[i] = palette[math.random(#palette)]()
      if given[i] == evil then given[i] = nil end
    end
    if try() then break end
  end
  for k = 0, 1000 do
    try(k)
    if not _G.fail_after(-1) then break end
    ended = ended + 1
  end
end

local rounds = tonumber(os.getenv "CLOSING_ROUNDS") or 6
local events = { "__len", "__eq", "__tostring", "__pairs", "__index", "__gc" }
for i, self in ipairs(selves) do
  local methods, fields, before = {}, {}, calls
  for _, name in ipairs(names) do
    local object = begin(self)
    local good, method = pcall(function() return object[name] end)
    local to = type(method) == "function" and methods or fields
    if good and method ~= nil then to[#to + 1] = name end
  end
  for _, name in ipairs(fields) do
    for k = 0, 9 do read(self, name, k) end
  end
  for _ = 1, rounds do
    for _, name in ipairs(methods) do
      for k = -1, 4 do call(self, name, k) end
      if _G.fail_after then starve(self, name) end
    end
    for _, event in ipairs(events) do
      for k = -1, 2 do
        local object = begin(self)
        local method = object ~= nil and (debug.getmetatable(object) or {})[event]
        if type(method) == "function" then
          arm(k)
          pcall(method, object, palette[math.random(#palette)]())
          calls, while_open = calls + 1, while_open + (closed and 1 or 0)
        end
      end
    end
  end
  assert(calls > before, "no method of object " .. i .. " was called")
end
close()
os.remove(path)
print(("# %d calls, something was closed in %d, %d more ended at an allocation"):format(calls, while_open, ended))
assert(while_open > calls // 5, "too few calls close something")
