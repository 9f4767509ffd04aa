-- SPDX-License-Identifier: MIT
--
-- moongrid reshard on checkpoints with one or two wrong numbers, in the index or in the header of a file. The result is
-- compared with that of a reader in this file, which finds for each element of a tensor the parts that have it. Either
-- the checkpoint is refused and nothing is written, or every byte is the reader's. Memory that the command allocates is
-- first filled with a random byte (MALLOC_PERTURB_), so that bytes that were never written show. MOONGRID_SEED tries
-- other numbers, MOONGRID_ROUNDS more of them.

local support = dofile "tests/lua/support.lua"
local json = require "dkjson"
local run, write = support.run, support.write

local seed = tonumber(os.getenv "MOONGRID_SEED" or 1)
local rounds = tonumber(os.getenv "MOONGRID_ROUNDS" or 240)
local folder = support.folder()
local function at(name) return folder .. "/" .. name end

local INDEX = "model.safetensors.index.json"
local width = { F32 = 4, BF16 = 2, U8 = 1 }
local named = { f32 = "F32", bf16 = "BF16", u8 = "U8" }

-- the layout that bent checkpoints are written in: by two ranks, each with its own rows
local recipe = [[
return recipe { doc = "tensors", params = { tp = 1, dp = 1, flat = 0, cut = "even" }, build = function(world, p)
  local t, how = topology(world), { even = { "tp" }, cyclic = { "tp", cyclic = 1 } }
  t.g = grid(world, "tp-dp", { tp = p.tp, dp = fill })
  t.w = tensor { axes = { { "x", 6 }, { "y", 8 } }, type = "f32", cut = { y = how[p.cut] } }
  local v = tensor { axes = { { "x", 4 }, { "y", 3 }, { "z", 4 } }, type = "u8", cut = { x = how[p.cut] } }
  t.v = p.flat > 0 and flat { v, over = "dp", pad = p.flat } or v
  t.b = tensor { axes = { { "n", 7 } }, type = "bf16" }
  return t
end }
]]

-- ---------------------------------------------------------------- the reader
-- It raises where a checkpoint is none.

local function integer(x, least)
  assert(math.type(x) == "integer" and x >= (least or 0), "no number")
  return x
end

local function list(x)
  assert(type(x) == "table", "no list")
  local n = 0
  for _ in pairs(x) do n = n + 1 end
  assert(n == #x, "no list")
  return x
end

local function elements(shape)
  local n = 1
  for _, length in ipairs(list(shape)) do
    if integer(length) > 0 then assert(n <= 4096 // length, "many") end
    n = n * length
  end
  return n
end

-- dkjson takes 007, which is not a number of JSON.
local function decode(text)
  local bare = text:gsub('"[^"]*"', "")
  assert(not bare:find "%f[%w.]0%d", "no number of JSON")
  return assert(json.decode(text))
end

-- tensors(PATH): name -> { dtype, shape, bytes }, of a file whose tensors lie one behind the other
local function tensors(path)
  local text = support.read(path)
  local n = string.unpack("<I8", text)
  assert(n >= 0 and n <= #text - 8, "short")
  local data, places, out = text:sub(9 + n), {}, {}
  for name, t in pairs(decode(text:sub(9, 8 + n))) do
    if name ~= "__metadata__" then
      assert(#list(t.data_offsets) == 2, "offsets")
      local from, to = integer(t.data_offsets[1]), integer(t.data_offsets[2])
      assert(to <= #data and to - from == elements(t.shape) * assert(width[t.dtype], "type"), "size")
      places[#places + 1] = { from, to }
      out[name] = { t.dtype, t.shape, data:sub(from + 1, to) }
    end
  end
  table.sort(places, function(a, b) return a[1] < b[1] or a[1] == b[1] and a[2] < b[2] end)
  local last = 0
  for _, p in ipairs(places) do
    assert(p[1] == last, "places")
    last = p[2]
  end
  assert(last == #data, "rest")
  return out
end

-- The numbers, in C order over the whole tensor, of the elements that the runs on each axis make.
local function combined(shape, runs)
  local all = { 0 }
  assert(#list(runs) == #shape, "axes")
  for axis, length in ipairs(shape) do
    local mine, last, more = {}, 0, {}
    assert(#list(runs[axis]) % 2 == 0, "odd")
    for i = 1, #runs[axis], 2 do
      local start, n = integer(runs[axis][i], last), integer(runs[axis][i + 1], 1)
      assert(start <= length and n <= length - start, "run")
      for k = start, start + n - 1 do mine[#mine + 1] = k end
      last = start + n
    end
    for _, before in ipairs(all) do
      for _, k in ipairs(mine) do more[#more + 1] = before * length + k end
    end
    all = more
  end
  return all
end

-- The bytes of a tensor that the index has in parts.
local function joined(name, about, file_of)
  local n, bytes, has = elements(about.shape), {}, {}
  local dtype, used = assert(named[about.type], "type"), {}
  assert(n > 0 and #about.shape > 0)
  for _, part in ipairs(list(about.parts)) do
    local mine = combined(about.shape, part.runs)
    local first, count = integer(part.first or 0), integer(part.elements or #mine)
    assert(first <= #mine and count <= #mine - first, "slice")
    local stored = assert(file_of(part.file)[name], "no tensor")
    assert(stored[1] == dtype and not used[part.file], "type")
    used[part.file] = true
    if count < #mine then
      assert(#stored[2] == 1 and stored[2][1] == count, "shape")
    else
      assert(#stored[2] == #about.shape, "shape")
      for axis, runs in ipairs(part.runs) do
        local sum = 0
        for i = 2, #runs, 2 do sum = sum + runs[i] end
        assert(stored[2][axis] == sum, "shape")
      end
    end
    for i = 1, count do
      local e, w = mine[first + i] + 1, width[dtype]
      assert(not has[e], "twice")
      has[e] = true
      bytes[e] = stored[3]:sub((i - 1) * w + 1, i * w)
    end
  end
  assert(#bytes == n, "not all")
  return { dtype, about.shape, table.concat(bytes) }
end

local shapes = { w = "6 8", v = "4 3 4", b = "7" }

-- checkpoint(FOLDER): name -> { dtype, shape, bytes }, of the shapes that the recipe has
local function checkpoint(where, small)
  local index, files, out = decode(support.read(where .. "/" .. INDEX)), {}, {}
  local function file_of(name)
    assert(type(name) == "string" and name:find "^[^./][^/]*$", "name")
    files[name] = files[name] or tensors(where .. "/" .. name)
    return files[name]
  end
  for name, file in pairs(index.weight_map) do
    local about = index.parts and index.parts[name]
    out[name] = about and joined(name, about, file_of) or assert(file_of(file)[name], "no tensor")
    assert(table.concat(out[name][2], " ") == (small or shapes[name]), "other shape")
  end
  return out
end

-- ------------------------------------------------------------------- bending

-- Where a text has numbers, those in names too: a list of { first, last }.
local function numbers(text)
  local places, from = {}, 1
  while true do
    local a, b = text:find("%-?%d+", from)
    if not a then return places end
    places[#places + 1] = { a, b }
    from = b + 1
  end
end

local function bent(text, places)
  local p = places[math.random(#places)]
  local was = text:sub(p[1], p[2])
  local n = tonumber(was)
  local other = places[math.random(#places)]
  local to = ({
    function() return ("%d"):format(n + 1) end,
    function() return ("%d"):format(n - 1) end,
    function() return ("%d"):format(math.random(0, 9)) end,
    function() return text:sub(other[1], other[2]) end,
    function() return ("%d"):format(-n) end,
    function() return ("%d"):format(2 * n) end,
    function() return ({ "0", "-1", "1.0", "9223372036854775807", "4294967296", "9223372036854775808", "1e3",
      "null", "[]", '"1"' })[math.random(10)] end,
    function() return ("%s, %s"):format(was, text:sub(other[1], other[2])) end, -- one more, in a list
  })[math.random(text:sub(1, p[1] - 1):find "[%[,]%s*$" and 8 or 7)]()
  return text:sub(1, p[1] - 1) .. to .. text:sub(p[2] + 1)
end

-- Two numbers change by the same amount, one up and one down, so that sums stay.
local function shifted(text, places)
  local a, b = math.random(#places), math.random(#places)
  if a == b then return text end
  local low, high = math.min(a, b), math.max(a, b)
  local by = math.random(2) == 1 and 1 or -1
  for _, k in ipairs { high, low } do
    local p = places[k]
    local n = tonumber(text:sub(p[1], p[2])) + (k == high and by or -by)
    text = text:sub(1, p[1] - 1) .. ("%d"):format(n) .. text:sub(p[2] + 1)
  end
  return text
end

-- Two numbers change places.
local function swapped(text, places)
  local a, b = math.random(#places), math.random(#places)
  local p, q = places[math.min(a, b)], places[math.max(a, b)]
  if a == b then return text end
  return text:sub(1, p[1] - 1) .. text:sub(q[1], q[2]) .. text:sub(p[2] + 1, q[1] - 1) .. text:sub(p[1], p[2])
    .. text:sub(q[2] + 1)
end

local function bend(text)
  local new = ({ bent, shifted, swapped })[math.random(3)](text, numbers(text))
  if math.random(3) == 1 then new = bent(new, numbers(new)) end
  return new
end

local function files(where)
  local names = {}
  for name in io.popen("ls " .. where):lines() do names[#names + 1] = name end
  return names
end

local function reshard(from, to, line)
  return run(("MALLOC_PERTURB_=%d build/moongrid reshard %s --to %s -o %s %s"):format(math.random(255), from,
    at "recipe.lua", to, line))
end

-- "refused" or "read": what both the command and the reader above say of a checkpoint
local function compare(from, how, what)
  local readable, wanted = pcall(checkpoint, from)
  local to = at "out"
  local _, err, code = reshard(from, to, how)
  if readable then
    assert.same({ "", 0 }, { err, code }, what)
    local got = checkpoint(to)
    for name, t in pairs(wanted) do
      assert.equal(t[1], got[name][1], what)
      assert.is_true(t[3] == got[name][3], what .. ": bytes of " .. name)
    end
  else
    assert.equal(1, code, what .. "\n" .. err)
    assert.truthy(err:find "^moongrid: [^\n]+\n$", what)
    assert.is_nil((io.open(to)), what)
    assert.is_nil((io.open(to .. ".part")), what)
  end
  os.execute("rm -rf " .. to)
  return readable and "read" or "refused"
end

describe("a bent checkpoint is refused or read right:", function()
  setup(function()
    math.randomseed(seed)
    write(at "recipe.lua", recipe)
    local noise, header, n = {}, {}, 0
    for _, t in ipairs { { "w", "F32", { 6, 8 } }, { "v", "U8", { 4, 3, 4 } }, { "b", "BF16", { 7 } } } do
      local bytes = width[t[2]]
      for _, length in ipairs(t[3]) do bytes = bytes * length end
      header[t[1]] = { dtype = t[2], shape = t[3], data_offsets = { n, n + bytes } }
      n = n + bytes
    end
    for i = 1, n do noise[i] = string.char(math.random(0, 255)) end
    header = json.encode(header, { keyorder = { "w", "v", "b", "dtype", "shape", "data_offsets" } })
    os.execute("mkdir " .. at "whole")
    write(at "whole/a.safetensors", string.pack("<I8", #header) .. header .. table.concat(noise))
    write(at("whole/" .. INDEX), json.encode { weight_map = { w = "a.safetensors", v = "a.safetensors", b = "a.safetensors" } })
    for name, line in pairs { even = "--world 2 tp=2", cyclic = "--world 4 tp=4 cut=cyclic", flat = "--world 6 tp=2 dp=3 flat=1" } do
      assert.equal(0, select(3, reshard(at "whole", at(name), line)))
    end
  end)
  teardown(function() os.execute("rm -rf " .. folder) end)

  for _, name in ipairs { "whole", "even", "cyclic", "flat" } do
    it(("written %s"):format(name), function()
      math.randomseed(seed, #name)
      assert.equal("read", compare(at(name), "--world 2 tp=2", "as it is"))
      local says = { read = 0, refused = 0 }
      for round = 1, rounds // 4 do
        local names = files(at(name))
        local file = name ~= "whole" and math.random(2) == 1 and INDEX or names[math.random(#names - 1)] -- the index is last
        os.execute(("rm -rf %s; cp -r %s %s"):format(at "bent", at(name), at "bent"))
        local text = support.read(at("bent/" .. file))
        local n = file ~= INDEX and string.unpack("<I8", text)
        local head = bend(n and text:sub(9, 8 + n) or text)
        write(at("bent/" .. file), n and string.pack("<I8", #head) .. head .. text:sub(9 + n) or head)
        local how = ({ "--world 1", "--world 2 tp=2", "--world 4 tp=4 cut=cyclic", "--world 4 tp=2 flat=3" })[math.random(4)]
        local what = ("seed %d, %s, round %d, %s of %s to %s: %s"):format(seed, name, round, file, name, how, head)
        local said = compare(at "bent", how, what)
        says[said] = says[said] + 1
      end
      assert.truthy(says.refused > 0)
    end)
  end

  it("every number of a small index, and every pair of them", function()
    os.execute("mkdir " .. at "small")
    local header = json.encode { w = { dtype = "U8", shape = { 4 }, data_offsets = { 0, 4 } } }
    for i, name in ipairs { "a", "b" } do
      write(at("small/" .. name), string.pack("<I8", #header) .. header .. ("%d"):rep(4):format(i, i + 2, i + 4, i + 6))
    end
    write(at "small.lua", [[return recipe { idle = "allow", build = function(world)
      local t = topology(world)
      t.g = grid(world, "a", { a = fill })
      t.w = tensor { axes = { { "n", 8 } }, type = "u8" }
      return t
    end }]])
    local says = { read = 0, refused = 0 }
    local function try(...)
      local index = ('{"weight_map": {"w": "a"}, "parts": {"w": {"type": "u8", "shape": [8], "parts": ['
        .. '{"file": "a", "runs": [[%d, %d, %d, %d]]}, {"file": "b", "runs": [[%d, %d, %d, %d]]}]}}}'):format(...)
      write(at("small/" .. INDEX), index)
      local readable, wanted = pcall(checkpoint, at "small", "8")
      local _, err, code = run(("MALLOC_PERTURB_=%d build/moongrid reshard %s --to %s --world 1 -o %s"):format(
        math.random(255), at "small", at "small.lua", at "out"))
      assert.equal(readable and 0 or 1, code, index .. err)
      assert.equal(readable, (io.open(at "out")) ~= nil, index)
      if readable then assert.same(wanted, checkpoint(at "out", "8"), index) end
      os.execute("rm -rf " .. at "out")
      says[readable and "read" or "refused"] = says[readable and "read" or "refused"] + 1
    end
    local base = { 0, 2, 4, 2, 2, 2, 6, 2 }
    try(table.unpack(base))
    for i = 1, #base do
      for k = i, #base do
        for _, by in ipairs { 1, -1, 2 } do
          local mine = { table.unpack(base) }
          mine[i] = mine[i] + by
          if k > i then mine[k] = mine[k] - by end
          try(table.unpack(mine))
        end
      end
    end
    assert.truthy(says.read > 1 and says.refused > 50)
  end)
end)
