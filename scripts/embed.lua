-- SPDX-License-Identifier: MIT
--
-- embed.lua OUT: writes the prelude and the bundled recipes as C, so that the library needs no
-- files beside it: as text, and compiled by this Lua, which is ten times faster to load. The
-- library takes the compiled form only under the very release that made it; see bundle.h.
-- Run in the project's root by make.

local function quoted(bytes)
  local text = bytes:gsub('[%c"\\?\x80-\xff]', function(c)
    if c == "\n" then return '\\n"\n  "' end
    return ("\\%03o"):format(c:byte())
  end)
  return '"' .. text .. '"'
end

local function numbers(bytes)
  local list = {}
  for i = 1, #bytes, 24 do
    list[#list + 1] = table.concat({ bytes:byte(i, math.min(i + 23, #bytes)) }, ",")
  end
  return table.concat(list, ",\n  ")
end

-- A file without what no message shows: indentation and comments (those behind a string stay, in
-- case they are in it). The lines stay, so that their numbers do. (No long string here spans lines;
-- that is checked.)
local function read(path)
  local lines = {}
  for line in io.lines(path) do
    assert(not line:find("%[=*%["), path .. ": a long string would lose its indentation")
    lines[#lines + 1] = line:gsub("^%s+", ""):gsub("^%-%-.*", ""):gsub("^([^\"']-)%s+%-%-%s.*$", "%1")
  end
  return table.concat(lines, "\n") .. "\n"
end

-- The release of the interpreter that runs this: "Lua 5.4.4 ", as lua_ident has it.
local function release()
  local said = io.popen(("'%s' -v 2>&1"):format(arg[-1])):read("a")
  return assert(said:match("^Lua %d+%.%d+%.%d+ "), "no release in: " .. said)
end

-- name in error messages, file
local chunks = {
  { "moongrid/recipe.lua", "lua/moongrid/recipe.lua" },
  { "moongrid/policies.lua", "lua/moongrid/policies.lua" },
}
for path in io.popen("ls lua/moongrid/recipes/*.lua | LC_ALL=C sort"):lines() do
  chunks[#chunks + 1] = { path:match("([^/]+)%.lua$"), path }
end

local out = assert(io.open(arg[1], "wb"))
out:write('/* Made by scripts/embed.lua; do not edit. */\n#include "script/bundle.h"\n\n')
out:write(('const char mg_bundle_release[] = "%s";\n\n'):format(release()))
for i, chunk in ipairs(chunks) do
  local name, text = chunk[1], read(chunk[2])
  local binary = string.dump(assert(load(text, "=" .. name, "t"))) -- with its line numbers
  out:write(("static const char text%d[] =\n  %s;\n"):format(i, quoted(text)))
  out:write(("static const unsigned char binary%d[] = {\n  %s };\n\n"):format(i, numbers(binary)))
end
local function entry(i)
  return ('{ "%s", text%d, sizeof text%d - 1, binary%d, sizeof binary%d }'):format(chunks[i][1], i, i, i, i)
end
out:write("const mg_chunk mg_prelude = ", entry(1), ";\n\nconst mg_chunk mg_policies = ", entry(2))
out:write(";\n\nconst mg_chunk mg_bundled[] = {\n")
for i = 3, #chunks do out:write("  ", entry(i), ",\n") end
out:write("  { NULL, NULL, 0, NULL, 0 }\n};\n\nconst char *const mg_bundled_names[] = {\n")
for i = 3, #chunks do out:write(('  "%s",\n'):format(chunks[i][1])) end
out:write("  NULL\n};\n")
out:close()
