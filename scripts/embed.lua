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

-- A file without what no message shows: indentation, comments, blanks. The lines stay, so that their
-- numbers do, and a line with a string is left alone behind its indentation. (No long string here
-- spans lines; that is checked.)
local function read(path)
  local lines = {}
  for line in io.lines(path) do
    assert(not line:find("%[=*%["), path .. ": a long string would lose its indentation")
    line = line:gsub("^%s+", ""):gsub("^%-%-.*", ""):gsub("^([^\"']-)%s+%-%-%s.*$", "%1")
    if not line:find("[\"']") then
      line = line:gsub("%s+", " "):gsub("([,{]) ", "%1"):gsub(" }", "}"):gsub(" = ", "=")
    end
    lines[#lines + 1] = line
  end
  return table.concat(lines, "\n") .. "\n"
end

-- The release of the interpreter that runs this: "Lua 5.4.4 ", as lua_ident has it.
local function release()
  local said = io.popen(("'%s' -v 2>&1"):format(arg[-1])):read("a")
  return assert(said:match("^Lua %d+%.%d+%.%d+ "), "no release in: " .. said)
end

-- name in error messages, file
local prelude, recipes = {}, {}
for _, name in ipairs { "recipe", "shared", "parameters", "policies" } do
  prelude[#prelude + 1] = { "moongrid/" .. name .. ".lua", "lua/moongrid/" .. name .. ".lua" }
end
for path in io.popen("ls lua/moongrid/recipes/*.lua | LC_ALL=C sort"):lines() do
  recipes[#recipes + 1] = { path:match("([^/]+)%.lua$"), path }
end

local out = assert(io.open(arg[1], "wb"))
out:write('/* Made by scripts/embed.lua; do not edit. */\n#include "script/bundle.h"\n\n')
out:write(('const char mgrid_bundle_release[] = "%s";\n\n'):format(release()))

local count = 0
local function write_chunks(name, chunks)
  local entries = {}
  for _, chunk in ipairs(chunks) do
    count = count + 1
    local text = read(chunk[2])
    local binary = string.dump(assert(load(text, "=" .. chunk[1], "t"))) -- with its line numbers
    out:write(("static const char text%d[] =\n  %s;\n"):format(count, quoted(text)))
    out:write(("static const unsigned char binary%d[] = {\n  %s };\n\n"):format(count, numbers(binary)))
    entries[#entries + 1] = ('  { "%s", text%d, sizeof text%d - 1, binary%d, sizeof binary%d },\n')
      :format(chunk[1], count, count, count, count)
  end
  out:write(("const mgrid_chunk %s[] = {\n%s  { NULL, NULL, 0, NULL, 0 }\n};\n\n"):format(name, table.concat(entries)))
end

write_chunks("mgrid_prelude", prelude)
write_chunks("mgrid_bundled", recipes)
out:write("const char *const mgrid_bundled_names[] = {\n")
for _, recipe in ipairs(recipes) do out:write(('  "%s",\n'):format(recipe[1])) end
out:write("  NULL\n};\n")
out:close()
