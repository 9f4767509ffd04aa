-- SPDX-License-Identifier: MIT
--
-- A host whose numbers have a decimal comma: the tests of plans, steps, traffic and machines run under de_DE, which a
-- preloaded library sets before main. One process reads what another writes.

local support = require "support"
local run = support.run

local recipe = [[return recipe { params = { lr = 0.75 }, machine = "node:*[12.5GB/s,1.5us] gpu:4[333.25GB/s]",
  traffic = { a = "1.3 B all_reduce x 3", b = "0.1 GiB all_gather" },
  build = function(w, p)
    local g = grid(w, "a-b", { a = 2, b = fill }) local t = topology(w)
    t.a, t.b = g "a":with { timeout = 0.25 }, g "b"
    return t end,
  step = function(s) s:compute { seconds = 0.25, flops = 1.5e9 } s:all_reduce(s.b, 8) end,
  policy = { on_lost = function() return { how = "shrink", params = { lr = 0.125 } } end } }]]

-- What a host says of the recipe: all that other processes read or compare.
local host = [[
  package.cpath, package.path = "build/?.so;" .. package.cpath, "lua/?.lua;" .. package.path
  local mg = require "moongrid"
  local plan = mg.load(FILE):plan(8, { lr = "0.5" })
  print(plan.digest, plan:step().digest, plan:text())
  print(mg.pictures.svg(plan, { all = true, machine = mg.open_machine "node:4 gpu:2" }), mg.pictures.text(plan))
  mg.pictures.page({ recipe = "r", frames = { plan } }, io.write)
  io.open(OUT, "w"):write(plan:json())
]]

describe("under a decimal comma", function()
  local folder, under, file

  setup(function()
    folder = support.folder()
    local _, _, made = run(("localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8"):format(folder))
    support.write(folder .. "/comma.c", "#include <locale.h>\n#include <stdlib.h>\n__attribute__((constructor)) static void set(void) {"
      .. ' if (!setlocale(LC_ALL, "de_DE.UTF-8")) abort(); }\n')
    local _, why, built = run(("${CC:-cc} -shared -fPIC -o %s/comma.so %s/comma.c"):format(folder, folder))
    assert.equal(0, built, why)
    if made ~= 0 then return end
    under = ("LOCPATH=%s LD_PRELOAD=%s/comma.so "):format(folder, folder)
    assert.equal("1,5\n", (run(under .. "lua5.4 -e 'print(1.5)'")))
    file = folder .. "/r.lua"
    support.write(file, recipe)
  end)
  teardown(function() os.execute("rm -rf " .. folder) end)

  local function here() return under or pending "no locales here: localedef cannot make de_DE" end

  for _, test in ipairs { "test_structure", "test_machine", "test_price", "test_plan", "test_options", "test_saved test_tensors" } do
    it("passes " .. test, function()
      if not here() then return end
      local out, err, code = run(under .. "build/tests/" .. test)
      assert.equal(0, code, out .. err)
    end)
  end

  for _, spec in ipairs { "step_spec.lua", "step_price_spec.lua", "machine_spec.lua", "place_spec.lua --filter 'bytes.that.families'" } do
    it("passes " .. spec, function()
      if not here() then return end
      local out, err, code = run(under .. "busted tests/lua/" .. spec)
      assert.equal(0, code, out .. err)
    end)
  end

  it("a host says and saves the same, and each reads what the other saved", function()
    if not here() then return end
    local said, saved = {}, {}
    for i, before in ipairs { "", under } do
      saved[i] = folder .. "/" .. i .. ".json"
      support.write(folder .. "/host.lua", ("local FILE, OUT = %q, %q\n"):format(file, saved[i]) .. host)
      local out, err, code = run(before .. "lua5.4 " .. folder .. "/host.lua")
      assert.same({ 0, "" }, { code, err })
      said[i] = out
    end
    assert.equal(said[1], said[2])
    assert.equal(support.read(saved[1]), support.read(saved[2]))
    assert.truthy(said[1]:find("1.3 B all_reduce", 1, true), said[1])
    for i, before in ipairs { "", under } do
      local out, err, code = run(before .. "build/moongrid plan " .. saved[3 - i] .. " --text")
      assert.equal(0, code, err)
      assert.truthy(out:find("1.3 B all_reduce", 1, true) and out:find("timeout_us=250000", 1, true), out)
    end
  end)

  it("the command writes the same", function()
    if not here() then return end
    local MACHINE = " --machine 'node:*[12.5GB/s] gpu:4[333.25GB/s]'"
    for _, line in ipairs { "plan $F --world 8 --json", "plan $F --world 8 --gpu-memory 900", "step $F --world 8" .. MACHINE,
      "step $F --world 8 --json" .. MACHINE, "step $F --world 8 -o $O.svg" .. MACHINE, "step $F --world 8 -o $O.html" .. MACHINE,
      "step $F --world 8 -o $O.json" .. MACHINE, "draw $F --world 8 -o $O.svg", "draw $F --world 8 -o $O.html",
      "place $F --world 8", "place $F --world 8 --json", "lose $F --world 8 --ranks 1", "lose $F --world 8 --ranks 1 --json",
      "diff $F --world 8 lr=0.5 vs lr=0.25", "recipes $F" } do
      local said = {}
      for i, before in ipairs { "", under } do
        os.execute("rm -f " .. folder .. "/out.*")
        local out, err = run(before .. "build/moongrid " .. line:gsub("%$F", file):gsub("%$O", folder .. "/out") .. "; cat " .. folder
          .. "/out.* 2> /dev/null")
        said[i] = out .. err
      end
      assert.equal(said[1], said[2], line)
    end
  end)
end)
