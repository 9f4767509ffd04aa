-- SPDX-License-Identifier: MIT
--
-- The library embeds the files of lua/prelude/, lua/moongrid/recipes/ and its folders; scripts/make/embed.lua names a
-- missing file.

local support = dofile("tests/lua/support.lua")

-- embed.lua in a folder of its own, with this text as lua/prelude/recipe.lua.
local function embed(text)
  local folder = support.run("mktemp -d"):gsub("\n", "")
  support.run(("mkdir -p %s/lua/prelude %s/lua/machine %s/lua/moongrid/recipes/one; cp -r lua/pictures %s/lua")
    :format(folder, folder, folder, folder))
  for path, content in pairs { ["prelude/recipe"] = text, ["prelude/more"] = "return 1", ["machine/one"] = "return 4",
                               ["moongrid/recipes/one"] = "return 2",
                               ["moongrid/recipes/one/half"] = "return 3" } do
    local file = assert(io.open(("%s/lua/%s.lua"):format(folder, path), "w"))
    file:write(content)
    file:close()
  end
  local root = io.popen("pwd"):read "l"
  local _, err, code = support.run(("cd %s && lua5.4 %s/scripts/make/embed.lua out.c"):format(folder, root))
  local out = io.open(folder .. "/out.c")
  local made = out and out:read "a" or ""
  if out then out:close() end
  support.run("rm -rf " .. folder)
  return made, err, code
end

describe("scripts/make/embed.lua", function()
  it("takes every file of the folders, and names those of the prelude", function()
    local made, err, code = embed "local core = ... return core.library 'more'"
    assert.equal("", err)
    assert.equal(0, code)
    for _, name in ipairs { '{ "moongrid/recipe.lua", mgrid_prelude_text2', '{ "moongrid/more.lua", mgrid_prelude_text1',
                            '{ "one", mgrid_bundled_text2', '{ "one.half", mgrid_bundled_text1', 'mgrid_bundled_names[] = {\n  "one",\n  NULL' } do
      assert.truthy(made:find(name, 1, true), name)
    end
  end)

  it("keeps the meaning of what it shortens", function()
    local _, err, code = embed "local function f(core)\n  local x <close>, y <const> = nil, 1\n  local z <const> = y\n  return z\nend"
    assert.equal("", err)
    assert.equal(0, code)
  end)

  it("says which file of the prelude is missing", function()
    for _, call in ipairs { 'core.library("moer", core)', "core.library 'moer'" } do
      local _, err, code = embed("local core = ... return " .. call)
      assert.equal("lua/prelude/recipe.lua asks for 'moer', and there is no lua/prelude/moer.lua\n", err)
      assert.equal(1, code)
    end
  end)
end)
