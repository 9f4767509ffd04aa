-- SPDX-License-Identifier: MIT
--
-- A recipe means the same in every process: nothing that it can see, such as a message that it catches, depends on the
-- order of a hash table, on addresses, on the process, or on the folder that it lies in.

local support = require "support"
local run = support.run

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

describe("a recipe", function()
  local folder

  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    os.execute(("mkdir -p %s/in/deep %s/on %s/out; touch %s/out/x.lua"):format(folder, folder, folder, folder))
  end)

  after_each(function() os.execute("rm -r " .. folder) end)

  -- Ways to start the recipe in/r.lua: by its path, where it lies, on standard input, and when its file is gone.
  local function ways()
    return { ("build/moongrid plan %s/in/r.lua --world 8"):format(folder),
      ("B=$PWD/build/moongrid; cd %s/in; $B plan r.lua --world 8"):format(folder),
      ("build/moongrid plan - --world 8 <%s/in/r.lua"):format(folder),
      ("cp %s/in/r.lua %s/lost.lua; exec 7<%s/lost.lua; rm %s/lost.lua; build/moongrid plan /dev/fd/7 --world 8"):format(
        folder, folder, folder, folder) }
  end

  it("learns from no answer what there is outside of its folder", function()
    os.execute(("cd %s/in; ln -s ../out/x.lua there.lua; ln -s ../out/y.lua gone.lua; ln -s ../out there; ln -s ../none gone; "
      .. "ln -s %s/out/x.lua deep/there.lua; ln -s /none/x.lua deep/gone.lua; ln -s round.lua round.lua; "
      .. "ln -s ../there deep/on"):format(folder, folder))
    for _, two in ipairs { { "there.lua", "gone.lua" }, { "there/x.lua", "gone/x.lua" }, { "there/../in/r.lua", "gone/../in/r.lua" },
      { "deep/there.lua", "deep/gone.lua" }, { "deep/on/x.lua", "deep/on/y.lua" }, { "../out/x.lua", "../out/y.lua" },
      { "../out/../in/r.lua", "../none/../in/r.lua" }, { "../in/r.lua", "../on/r.lua" }, { "./there", "./gone" },
      { folder .. "/out/x.lua", "/none/x.lua" }, { folder .. "/in/r.lua", "/none/r.lua" }, { "/etc", "/none" },
      { "/proc/self/status", "/proc/none/status" }, { "round.lua", "../x.lua" } } do
      local said = { "", "" }
      for i, name in ipairs(two) do
        write(folder .. "/in/r.lua", ("local _, m = pcall(recipe, %q) error(m, 0)"):format(name))
        for _, line in ipairs(ways()) do
          local _, err, code = run(line)
          assert.are.equal(1, code, err)
          said[i] = said[i] .. err:gsub("^[^']*'[^']*'", "NAME")
        end
      end
      assert.are.equal(said[1], said[2], two[1])
      assert.truthy(said[1]:find("is outside of the folder", 1, true), said[1])
      assert.truthy(said[1]:find("lies in no folder", 1, true), said[1])
    end
  end)

  it("names files by links that stay in its folder", function()
    write(folder .. "/in/b.lua", "return recipe { build = function(w) return topology(w) end, idle = 'allow' }")
    os.execute(("cd %s/in; ln -s b.lua c.lua; ln -s ../deep/./../c.lua deep/d.lua; ln -s %s/in/deep e; ln -s . f"):format(folder, folder))
    for _, name in ipairs { "b.lua", "./c.lua", "deep/d.lua", "e/d.lua", "f/f//b.lua", "none/../b.lua" } do
      write(folder .. "/in/r.lua", ("return recipe { base = %q }"):format(name))
      local _, err, code = run(ways()[1])
      assert.are.same({ 0, "" }, { code, err }, name)
    end
  end)

  it("sees the same messages in any folder, and the host the paths that it knows", function()
    write(folder .. "/in/deep/h.lua", "return { f = function(t) t.x = 5 end,\n g = function() error 'g' end }")
    write(folder .. "/in/b.lua", "error 'b'")
    write(folder .. "/in/r.lua", [[
      local h = recipe.import "deep/h.lua"
      local seen = ""
      local function see(fn, ...) seen = seen .. string.format("%s\n", select(2, pcall(fn, ...))) end
      return recipe { build = function(w)
        local t = topology(w)
        t.x = grid(w, "a", { a = fill }) "a"
        see(h.f, t) see(h.g) see(nil) see(function() return h.nome end) see(recipe, "./b.lua") see(recipe, "none.lua")
        see(recipe.import, "x.lua") see(error, "e") see(function() return t.y end) see(function() t.x = t.x:twin() end)
        print(seen)
        h.g()
      end }]])
    local wanted = [[
deep/h.lua:1: 'x' is assigned a number; a topology holds families, grids and tensors: of a grid g, g.tp is a size, and g "tp" the family
deep/h.lua:2: g
attempt to call a nil value
r.lua:7: unknown function of deep/h.lua 'nome'; known: f, g
b.lua:1: b
]]
    local all
    for i, line in ipairs { ways()[1], ways()[2], ("cp -r %s/in %s/on; build/moongrid plan %s/on/in/r.lua --world 8"):format(folder,
      folder, folder) } do
      local _, err, code = run(line)
      assert.are.equal(1, code)
      local at = ({ folder .. "/in/", "", folder .. "/on/in/" })[i]
      local print_at, seen, told = err:match("^([^\n:]*:%d+): (.*)\nmoongrid: ([^\n]*)\n$")
      assert.are.same({ at .. "r.lua:9", at .. "deep/h.lua:2: g" }, { print_at, told }, err)
      seen = seen:gsub("\\n", "\n") -- as a line of a terminal has them
      all = all or seen
      assert.are.equal(all, seen)
    end
    assert.truthy(all:find(wanted, 1, true), all)
    assert.falsy(all:find(folder, 1, true), all)
  end)
end)
