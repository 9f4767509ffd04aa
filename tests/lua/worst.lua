-- SPDX-License-Identifier: MIT
--
-- worst.lua - a recipe whose query `try` calls what a recipe can call, with the worst values that fit its memory. It
-- finds these functions itself: worst_spec.lua puts all names of the annotations in place of NAMES, and each name is
-- looked up in each value. worst.c calls the query again and again, and each call goes on where the last one ended.

local NAMES, GLOBALS, SEED = {}, {}, 1

-- The worst values -------------------------------------------------------------------

local function long(text)
  local s = text:rep(65536 // #text)
  while #s < 2^19 - 2^10 do s = s .. s end
  return s .. s:sub(1, 2^20 - 2^12 - #s)
end

local function deep(n)
  local t = { 1 }
  for _ = 1, n do t = { t } end
  return t
end

local x, emptied, bush, itself = long "x", {}, { 1, 2 }, {}
for _ = 1, 24 do bush = { bush, bush } end
itself[1] = itself

local many = { -- name, the value; then of a list its length, and what its elements are
  { "x 2^20", x }, { "%s 2^20", long "%s " }, { "a- 2^20", long "a-" }, { "zeros 2^20", long "\0" },
  { "9 2^20", long "9" }, { "[ 2^20", long "[" }, { "(2:1) 2^20", long "(2:1) " }, { "\\xff 2^20", long "\xff" },
  { "900000 integers", {}, 900000, function(i) return i - 1 end },
  { "900000 ''", {}, 900000, function() return "" end },
  { "10^5 backwards", {}, 100000, function(i) return 100000 - i end },
  { "10^4 texts", {}, 10000, function(i) return "t" .. i end },
  { "10^5 long texts", {}, 100000, function() return x end },
  { "10^4 pairs", {}, 10000, function(i) return { i - 1, i } end },
  { "10^4 empty", {}, 10000, function() return {} end },
  { "10^4 names", {}, 10000, function(i) return i, "name" .. i end },
  { "an emptied table", emptied, 2^18, function(i) return i end },
  { "10^5 emptied", {}, 100000, function() return emptied end },
  { "1000 deep", deep(1000) }, { "in itself", itself }, { "2^24 leaves", bush },
}

local few = {
  { "0", 0 }, { "1", 1 }, { "2", 2 }, { "-1", -1 }, { "65536", 65536 }, { "2^20", 2^20 | 0 },
  { "2^31-1", 2^31 - 1 | 0 },
  { "maxinteger", math.maxinteger }, { "mininteger", math.mininteger }, { "0.5", 0.5 }, { "huge", math.huge },
  { "nan", 0 / 0 }, { "true", true }, { "''", "" }, { "'a'", "a" }, { "'wrap'", "wrap" }, { "'cover'", "cover" },
  { "'a-b-c'", "a-b-c" }, { "'%99.99f'", "%99.99f" }, { "{}", {} }, { "{ 2, fill }", { 2, fill } },
  { "{ a = 2 }", { a = 2 } },
  { "fill", fill }, { "identity", function(...) return ... end }, { "fails", function() error(x) end },
  { "one more", function(n) return { 0, n } end }, { "late", function() return function() return x end end },
}

local results = {} -- objects of the library, for methods

-- What there is to call ----------------------------------------------------------------

local subjects = {} -- { name, function }

local function subject(name, f) subjects[#subjects + 1] = { name, f } end

subject("concat", function(a, b) return a .. b end)
subject("==", function(a, b) return a == b end)
subject("<", function(a, b) return a < b end)
subject("+", function(a, b) return a + b end)
subject("//", function(a, b) return a // b end)
subject("#", function(a) return #a end)
subject("-", function(a) return -a end)
subject("index", function(a, b) return a[b] end)
subject("assign", function(a, b, c) a[b] = c end)
subject("call", function(a, ...) return a(...) end)
subject("pairs", function(a) for _ in pairs(a) do a() end end)
subject("for in", function(a) for _ in a do a() end end)

-- f(...) of each name that a value has; of an object f(object, ...), too.
local function look_into(name, value, is_object)
  for _, word in ipairs(NAMES) do
    local ok, f = pcall(function() return value[word] end)
    if ok and type(f) == "function" then
      subject(name .. "." .. word, f)
      if is_object then subject(name .. ":" .. word, function(...) return f(value, ...) end) end
    elseif ok and f ~= nil then
      subject(name .. "[" .. word .. "]", function() return value[word] end)
    end
  end
end

for name, value in pairs(GLOBALS) do
  if type(value) == "function" then subject(name, value) end
  if type(value) ~= "number" and type(value) ~= "function" then look_into(name, value, false) end
end

-- One field of a table by name, of those that the function knows.
local function with_fields(f)
  local known
  return function(value, second)
    if not known then
      known = {}
      for _, word in ipairs(NAMES) do
        local ok, message = pcall(f, { [word] = print })
        if ok or not string.split(message, "unknown")[2] then known[#known + 1] = word end
      end
      if #known == #NAMES then known = { "a" } end -- it takes any
    end
    for _, word in ipairs(known) do
      pcall(f, { [word] = value })
      if second ~= nil then pcall(f, second, { [word] = value }) end
    end
  end
end

for i = 1, #subjects do
  local name, f = subjects[i][1], subjects[i][2]
  subject(name .. "{}", with_fields(f))
  subject(name .. "...", function(t) return f(table.unpack(t)) end)
end

local function add_object(name, value)
  if value == nil then return end
  results[#results + 1] = { name, value }
  local first = #subjects + 1
  look_into(name, value, true)
  for i = first, #subjects do
    local called, f = subjects[i][1], subjects[i][2]
    if called:sub(1, #name + 1) == name .. ":" then
      subject(called .. "{}", with_fields(f))
      subject(called .. "...", function(t) return f(table.unpack(t)) end)
    end
  end
end

-- The steps ------------------------------------------------------------------------------

-- Each call makes some of the values; then they are tried in an order that the seed gives: one alone, again and again,
-- since what takes long has to be paid also if it is done often, or two and three.
local values
local made, done, seed = 1, 0, SEED

local function random(n)
  seed = (seed * 6364136223846793005 + 1442695040888963407) & math.maxinteger
  return (seed >> 33) % n + 1
end

-- Some elements more.
local function make()
  local _, t, n, value = table.unpack(many[made], 1, 4)
  for _ = 1, 50000 do
    if done >= (n or 0) then
      for e = 1, t == emptied and n or 0 do t[e] = nil end
      made, done = made + 1, 0
      return
    end
    done = done + 1
    local v, name = value(done)
    t[name or done] = v
  end
end

local function try(state)
  if made <= #many then
    make()
    return "made"
  end
  if not values then
    add_object("state", state)
    add_object("group", state.a)
    add_object("mesh", state.g)
    add_object("machine", state.machine)
    values = {}
    for _, from in ipairs { many, few, results } do
      for _, v in ipairs(from) do values[#values + 1] = v end
    end
  end
  for _ = 1, 900 do
    local f, i = subjects[random(#subjects)], random(#values)
    local a, b, c = values[i], values[random(#values)], values[random(#values)]
    if random(3) > 1 then
      log("%s (%s)", f[1], a[1])
      local times = i > #many and 2 or f[1]:sub(-1) == "." and 5 or 400 -- unpacking takes long itself
      for _ = 1, times do pcall(f[2], a[2]) end
    else
      log("%s (%s, %s, %s)", f[1], a[1], b[1], c[1])
      pcall(f[2], a[2], b[2])
      pcall(f[2], a[2], b[2], c[2])
    end
  end
  return "tried"
end

return recipe {
  params = { a = param.any(), f = param.file({}, "") },
  build = function(world)
    local t, g = topology(world), grid(world, "a-b-c", { a = 2, b = 2, c = fill })
    t.g, t.a, t.b = g, g "a", g "b"
    t.w = tensor { axes = { { "x", 32 } }, type = "f32", cut = { x = "a" } }
    add_object("world", world)
    add_object("grid", g)
    add_object("strided", g("a", "c"))
    add_object("pairs", g("b", "c"):pairs "wrap")
    add_object("lists", world:table({ { 0, 3 }, { 1, 2, 7 } }, "partial"))
    add_object("union", union(world:table({ { 0, 3 } }, "partial"), world:table({ { 1, 2 } }, "partial")))
    add_object("topology", topology(world))
    add_object("tensor", t.w)
    return t
  end,
  queries = { try = function(state) return try(state) end },
}
