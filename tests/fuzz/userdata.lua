-- SPDX-License-Identifier: MIT
--
-- userdata.lua - what userdata.c runs: bytes say which method of which value is called with what, also with another
-- `self`, with metamethods by hand, in coroutines, and with garbage collected in between. Whatever is raised is fine.

local moongrid, bytes, names, fail, recipe = ...
local at, slots, SLOTS = 1, {}, 12
local debug_metatable, collect = debug.getmetatable, collectgarbage

local function byte()
  at = at + 1
  return bytes:byte(at - 1) or 0
end

local words = { "a", "b", "tp", "dp", "pp", "a-b", "tp-dp-pp", "x", "grid", "", "one", "wrap", "(2:1)",
  "picotron", recipe, "a=2", "f32", "world_size", "tp=2", "\xff\n",
  "none", "training", "dry", "tp:2 dp:2", "max_ctas=2" }
local numbers = { 8, 16, 12, 1, 0, -1, 2, 3, 4, 0.5, 1e300, 2^53, math.maxinteger, math.mininteger, 24, 64, 0 / 0, 7 }

local value

-- A table whose metamethods, or whose finalizer, close what is in the slots.
local function closer()
  local function close()
    for i = 1, SLOTS do pcall(function() slots[i]:close() end) end
    collect()
  end
  local events = { "__index", "__len", "__pairs", "__call", "__tostring", "__eq", "__newindex" }
  local meta = { __gc = byte() % 2 == 0 and close or nil }
  for _, event in ipairs(events) do
    meta[event] = function()
      close()
      if event == "__pairs" then return next, {} end
      return event == "__tostring" and "x" or 1
    end
  end
  return setmetatable({}, meta)
end

local function list(depth)
  local t = {}
  for i = 1, byte() % 5 do t[i] = value(depth) end
  return t
end

local function record(depth)
  local t = {}
  for _ = 1, byte() % 4 do t[words[byte() % #words + 1]] = value(depth) end
  return t
end

-- Functions that moongrid calls back: for pick, map, order, and by name.
local function callback()
  local how, result = byte() % 6, value(3)
  if how == 0 then return function() error "no" end end
  if how == 1 then return function(...) return ... end end
  if how == 2 then return function() collect() return result end end
  if how == 3 then return function(x) slots[1] = x return result end end
  if how == 4 then return coroutine.wrap(function(...) while true do coroutine.yield(result, ...) end end) end
  return function(n) return { 0, type(n) == "number" and n - 1 or nil } end
end

function value(depth)
  local k = byte() % 20
  if k < 9 then return slots[byte() % SLOTS + 1] end
  if k < 12 then return numbers[byte() % #numbers + 1] end
  if k < 14 then return words[byte() % #words + 1] end
  if k == 14 then return moongrid.fill end
  if k == 15 then return byte() % 2 == 0 end
  if k == 18 then return closer() end
  if k > 17 or (depth or 0) > 2 then return nil end
  if k == 16 then return byte() % 2 == 0 and list((depth or 0) + 1) or record((depth or 0) + 1) end
  return callback()
end

local function values()
  local n, t = byte() % 4, {}
  for i = 1, n do t[i] = value() end
  return table.unpack(t, 1, n)
end

local function name() return names[byte() % #names + 1] end

local function keep(...)
  for i = 1, math.min(select("#", ...), 3) do
    local v = select(i, ...)
    if v ~= nil then slots[byte() % SLOTS + 1] = v end
  end
end

local steps = {
  function() keep(moongrid[name()](values())) end,
  function() local v = value() keep(v[name()](v, values())) end,
  function() local v = value() keep(v[name()](v, values())) end,
  function() keep(value()[name()]) end,
  function() keep(value()[name()](values())) end, -- another self, or none
  function() keep(value()(values())) end,
  function() tostring(value()) end,
  function() keep(#value(), value() == value()) end,
  function()
    local n = 0
    for k, v in pairs(value()) do
      n = n + 1
      keep(v, k)
      if n > 8 then break end
    end
  end,
  function() value()[name()] = value() end,
  function() value()[words[byte() % #words + 1]] = value() end,
  function() local _ <close> = value() end,
  function() slots[byte() % SLOTS + 1] = nil collect() end,
  function() closer() end, -- garbage that closes in the middle of a later call
  function() collect(byte() % 2 == 0 and "generational" or "incremental") end,
  function() keep(coroutine.wrap(function(v, ...) return v[name()](v, ...) end)(value(), values())) end,
  function() -- metamethods by hand: __gc twice, __index of another kind, __close of a value that is used further
    local methods = { "__gc", "__close", "__index", "__newindex", "__len", "__eq", "__tostring", "__pairs", "__call" }
    keep(debug_metatable(value())[methods[byte() % #methods + 1]](values()))
  end,
  function() fail(byte()) local v = value() keep(v[name()](v, values())) end,
  function() fail(byte()) keep(moongrid[name()](values())) end,
}

-- Something to begin with.
local w = moongrid.world(8)
local g = moongrid.grid(w, "tp-dp-pp", { tp = 2, dp = 2, pp = 2 })
local t = moongrid.topology(w)
t.grid, t.tp, t.dp = g, g "tp", g "dp"
local p = moongrid.plan(t)
slots = { w, g, t, p, t.tp, p:dry(3), g "pp" }
if byte() % 4 == 0 then slots[8] = moongrid.load(recipe) end -- takes the most time

for _ = 1, 60 do
  if at > #bytes then break end
  pcall(steps[byte() % #steps + 1])
  fail(-1)
end
