-- SPDX-License-Identifier: MIT
--
-- The module for Lua 5.5, built by `make LUAV=5.5` where pkg-config has a lua5.5 and its interpreter is here: the same
-- plans as under 5.4, jobs over MPI, a C host of its own Lua, and what 5.5 refuses.

local support = dofile "tests/lua/support.lua"
local run = support.run

local here = select(3, run "pkg-config --exists lua5.5 && command -v lua5.5") == 0
if here then
  local _, err, code = run "make -s LUAV=5.5 lua build/lua5.5/moongrid build/lua5.5/tests/test_lua_host build/lua5.5/tests/test_functions"
  assert(code == 0, err)
end

local paths = { ["5.4"] = "build/?.so", ["5.5"] = "build/lua5.5/?.so" }

-- Run a script of stock Lua of this version.
local function script(version, text, launcher)
  local file = support.file(text)
  local out, err, code = run(("LUA_CPATH='%s' LUA_PATH='lua/?.lua' %s lua%s %s"):format(paths[version], launcher or "", version, file))
  return out, err, code
end

local function with_it(name, body)
  it(name, function()
    if not here then return pending "no Lua 5.5 here (pkg-config lua5.5, lua5.5)" end
    return body()
  end)
end

describe("under Lua 5.5", function()
  with_it("all bundled recipes have the plans that they have under 5.4", function()
    local digests = [[
      local mg = require "moongrid"
      for _, name in ipairs(mg.recipes()) do print(name, select(2, pcall(function() return mg.load(name):plan(64).digest end))) end
    ]]
    local old, err = script("5.4", digests)
    assert.equal("", err)
    local new, said, code = script("5.5", digests)
    assert.equal("", said)
    assert.equal(0, code)
    assert.equal(old, new)
    assert.truthy(select(2, new:gsub("\n", "")) >= 12, new)
  end)

  with_it("modules in Lua load, and a mesh of torch's is the same", function()
    local mesh = [[
      local mesh = require "layers.device_mesh".init(8, { 2, 4 }, { "dp", "tp" })
      local layout = require "layers.mesh_layout".new("(2,2):(4,1)")
      print(_VERSION:match "5", layout:complement(8), mesh ~= nil)
      for _, name in ipairs { "hyper_comm_grid", "process_group_mesh", "jax_mesh" } do require("layers." .. name) end
    ]]
    local old, err, code = script("5.4", mesh)
    local new, said, again = script("5.5", mesh)
    assert.same({ old, code }, { new, again }, err .. said)
  end)

  with_it("scripts have jobs over MPI", function()
    if select(3, run "scripts/mpi --module") ~= 0 then return pending "no MPI here" end
    local out, err, code = script("5.5", [[
      local mg = require "moongrid"
      local job = assert(mg.mpi())
      local state = assert(job:materialize(mg.load("picotron"):plan(job.world, { tp = 2 }), "actor"))
      assert(state:prove() >= 1)
      if job.rank == 0 then print(_VERSION, state.tp.size, state.dp.size) end
      state:close()
      job:close()
    ]], "scripts/launch 4")
    assert.equal(0, code, err)
    assert.equal("Lua 5.5\t2\t2\n", out)
  end)

  for _, program in ipairs { "lua_host", "functions" } do
    with_it("the C tests pass: " .. program, function()
      local out, err, code = run("build/lua5.5/tests/test_" .. program)
      assert.equal(0, code, out .. err)
    end)
  end

  with_it("the command plans, and refuses to assign to the variable of a loop, as this Lua does", function()
    assert.equal(run "build/moongrid plan megatron --world 64 tp=4 --text", (run "build/lua5.5/moongrid plan megatron --world 64 tp=4 --text"))
    local file = support.file "for i = 1, 2 do i = 3 end return recipe {}"
    local _, err, code = run("build/lua5.5/moongrid plan " .. file .. " --world 8")
    assert.equal(("moongrid: %s:1: attempt to assign to const variable 'i'\n"):format(file), err)
    assert.equal(1, code)
  end)

  with_it("the module of the other Lua is refused", function()
    local other = { ["5.4"] = "5.5", ["5.5"] = "5.4" }
    for version, built in pairs(other) do
      local _, err = run(("LUA_CPATH='%s' lua%s -e 'require \"moongrid\"'"):format(paths[built], version))
      assert.truthy(err:find(("moongrid is built for Lua %s, and this is Lua %s"):format(built, version), 1, true), err)
    end
  end)
end)
