-- SPDX-License-Identifier: MIT
--
-- moongrid in WebAssembly (make wasm): in node it gives the same bytes as lua/pictures/playground.lua with the library
-- of this machine.

package.path = "tests/golden/?.lua;lua/?.lua;" .. package.path
local json = require "dkjson"
local moongrid = require "moongrid"
local support = require "support"
local playground = require "pictures.playground"

-- The answers of the module, a line each; `before`: words before the command.
local function of_module(requests, before)
  local lines, path = {}, os.tmpname()
  for i, request in ipairs(requests) do lines[i] = json.encode(request) end
  support.write(path, table.concat(lines, "\n"))
  local out, err, code = support.run((before or "") .. "node tests/page/ask.js < " .. path)
  os.remove(path)
  assert.are.same({ "", 0 }, { err, code })
  local answers = {}
  for line in out:gmatch "[^\n]+" do answers[#answers + 1] = line end
  return answers
end

-- Both answer each request with the same bytes. Return the answers.
local function compare(requests)
  local answers = of_module(requests)
  for i, request in ipairs(requests) do
    local done, text = pcall(playground, json.decode(json.encode(request)))
    if not done then text = json.encode { error = text } end
    if answers[i] ~= text then
      local at = 1
      while answers[i] and answers[i]:byte(at) == text:byte(at) do at = at + 1 end
      error(("%s: here ...%s, the module ...%s"):format(json.encode(request):sub(1, 300),
        text:sub(math.max(at - 40, 1), at + 80), answers[i] and answers[i]:sub(math.max(at - 40, 1), at + 80)), 0)
    end
  end
  assert.equal(#requests, #answers)
  return answers
end

-- A request with more fields.
local function with(request, more)
  local all = {}
  for key, value in pairs(request) do all[key] = value end
  for key, value in pairs(more) do all[key] = value end
  return all
end

-- What the adapters of the recorded tables plan: { name, world, params }, each once.
local function recorded()
  local list, seen, load = {}, {}, moongrid.load
  local function note(recipe, name, world, params)
    local request = { name = name, world = world, params = params }
    local key = json.encode(request, { keyorder = { "name", "world", "params" } })
    if not seen[key] then list[#list + 1], seen[key] = request, true end
    return recipe:plan(world, params)
  end
  moongrid.load = function(name)
    local recipe = load(name)
    return setmetatable({ plan = function(_, world, params) return note(recipe, name, world, params) end },
                        { __index = function(_, key) return function(_, ...) return recipe[key](recipe, ...) end end })
  end
  local adapter, cases = require "adapter", require "cases"
  for _, system in ipairs(cases.tables "tests/golden") do
    local of = adapter.of(system)
    for _, case in ipairs(of and cases.read("tests/golden/" .. system .. ".json").cases or {}) do pcall(of.open, case) end
  end
  moongrid.load = load
  return list
end

-- The recipes in files that the documents show: { name, text, world }.
local function shown()
  local list = {}
  for path in io.popen "LC_ALL=C ls examples/*.lua examples/cookbook/*.lua examples/published/*.lua examples/steps/*.lua":lines() do
    for _, world in ipairs { 16, 2048, 1 << 30 } do
      list[#list + 1] = { name = path:match "[^/]+$", text = support.read(path), world = world }
    end
  end
  return list
end

-- Recipes of the specs of hostile ones, by their names, but for those that compute until a limit.
local function hostile(spec)
  local list = {}
  local function ends(cases)
    local names = {}
    for name in pairs(cases) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do
      local case = cases[name]
      local words = type(case[2]) == "table" and table.concat(case[2]) or case[2]
      if not (words:find "processor time" or words:find "instructions" or words:find "MiB") then
        list[#list + 1] = { name = "h.lua", text = case[1], world = case.world or 8 }
      end
    end
  end
  local env = setmetatable({ describe = function(_, body) body() end, it = function() end }, { __index = _G })
  local real = assert(loadfile("tests/lua/hostile.lua", "t", env))()
  env.loadfile = function() return function() return { building = real.building, outcome = real.outcome, ends = ends } end end
  assert(loadfile("tests/lua/" .. spec, "t", env))()
  return list
end

describe("moongrid in WebAssembly answers as here:", function()
  it("the plans of the recorded tables, of 30 of them pictures", function()
    local list, pictures = recorded(), {}
    assert.is_true(#list > 700, #list)
    for i, request in ipairs(list) do
      if i % (#list // 30) == 0 then pictures[#pictures + 1] = with(request, { give = "svg" }) end
      list[i] = with(request, { give = "json" })
    end
    compare(list)
    compare(pictures)
  end)

  it("what the page shows of the recipes in the documents, their pictures, their steps", function()
    local list, drawn, steps = {}, 0, 0
    for _, request in ipairs(shown()) do
      table.move({ request, with(request, { give = "svg" }), with(request, { prove = true }) }, 1, 3, #list + 1, list)
    end
    for i, answer in ipairs(compare(list)) do
      if i % 3 == 2 and answer:find("u003csvg", 1, true) then drawn = drawn + 1 end
      if i % 3 == 0 and answer:find '"step":{' and not answer:find "No step" then steps = steps + 1 end
    end
    assert.is_true(drawn >= 50 and steps >= 15, drawn .. " pictures, " .. steps .. " steps")
  end)

  for _, spec in ipairs { "hostile_spec.lua", "hostile_limits_spec.lua" } do
    it("hostile recipes of " .. spec, function()
      local refused = 0
      for _, answer in ipairs(compare(hostile(spec))) do
        if answer:find '"error":' then refused = refused + 1 end
      end
      assert.is_true(refused >= 10, refused)
    end)
  end

  it("a recipe that does not end, and one that takes too much memory", function()
    local answers = compare {
      { name = "x.lua", text = "while true do end", world = 8 },
      { name = "x.lua", text = "local t = {} for i = 1, 1 << 30 do t[i] = i end", world = 8 },
    }
    assert.truthy(answers[1]:find("the recipe runs for more than 200000000 instructions", 1, true), answers[1])
    assert.truthy(answers[2]:find("the recipe needs more than 64 MiB of memory", 1, true), answers[2])
  end)

  it("a recipe that takes too much time, by the clock of the page", function()
    local answer = of_module({ { name = "x.lua", text = "while true do end", world = 8 } }, "CLOCK=1000 ")[1]
    assert.truthy(answer:find('"line":1,"message":"the recipe takes more than 10 s of processor time"', 1, true), answer)
  end)

  it("what is not a request", function()
    assert.truthy(of_module { 7 }[1]:find '^{"error":')
  end)
end)

describe("moongrid draw --live", function()
  local path = os.tmpname() .. ".html"
  teardown(function() os.remove(path) end)

  -- What the page shows first.
  local function start(line)
    assert.are.same({ "", "", 0 }, { support.run(("build/moongrid draw %s --live -o %s"):format(line, path)) })
    local html = support.read(path)
    local text = html:match '<script type="application/json" id="start">(.-)</script>'
    assert.is_nil(html:find("@START@", 1, true))
    return json.decode(text)
  end

  it("puts a recipe, its world and its parameters into the page", function()
    local text = support.read "examples/moe.lua"
    assert.are.same({ name = "moe.lua", text = text, world = 16, params = { "tp=2", "tp.lazy=true" } },
                    start "examples/moe.lua --world 16 tp=2 --option tp.lazy=true")
    assert.are.same({ name = "stdin.lua", text = text, world = 8, params = {} }, start "- --world 8 < examples/moe.lua")
    assert.are.same({ name = "megatron", world = 64, params = { "tensor_model_parallel_size=2" } },
                    start "megatron --world 64 tp=2")
  end)

  it("finds the page where make install has put it", function()
    local folder = support.folder()
    local put, err = support.run(([[make -s install PREFIX=/usr DESTDIR=%s >&2 && ls %s/usr/share/moongrid
      %s/usr/bin/moongrid draw megatron --world 8 --live -o %s/x.html]]):format(
      folder, folder, folder, folder))
    assert.equal("playground.html\n", put, err)
    assert.truthy(support.read(folder .. "/x.html"):find('"start">{"name":"megatron"', 1, true))
    support.run(("make -s uninstall PREFIX=/usr DESTDIR=%s"):format(folder))
    assert.equal("", (support.run(("find %s/usr -name '*playground*'"):format(folder))))
    support.run("rm -r " .. folder)
  end)

  it("keeps a text from ending the script that holds it", function()
    local text = "-- </script><script>alert(1)</script><!-- \"\\ @WASM@ %1\n" .. support.read "examples/moe.lua"
    local file = support.file(text)
    assert.equal(text, start(file .. " --world 16").text)
    assert.is_nil(support.read(path):find("alert(1)</script>", 1, true))
  end)
end)
