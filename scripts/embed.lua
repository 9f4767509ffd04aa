-- SPDX-License-Identifier: MIT
--
-- embed.lua OUT: writes the prelude and the bundled recipes as C strings, so that the
-- library needs no files beside it. Run in the project's root by make.

local function quoted(text)
  return (text:gsub('[%c"\\?]', function(c)
    if c == "\n" then return '\\n"\n  "' end
    return ("\\%03o"):format(c:byte())
  end))
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("a")
  file:close()
  return text
end

local names = {}
for path in io.popen("ls lua/moongrid/recipes/*.lua | LC_ALL=C sort"):lines() do
  names[#names + 1] = path:match("([^/]+)%.lua$")
end

local out = assert(io.open(arg[1], "wb"))
out:write('/* Made by scripts/embed.lua; do not edit. */\n#include "script/bundle.h"\n\n')
out:write('const char mg_prelude[] =\n  "', quoted(read("lua/moongrid/recipe.lua")), '";\n\n')
out:write("const char *const mg_bundled_names[] = {\n")
for _, name in ipairs(names) do out:write('  "', name, '",\n') end
out:write("  NULL\n};\n\nconst char *const mg_bundled_texts[] = {\n")
for _, name in ipairs(names) do out:write('  "', quoted(read("lua/moongrid/recipes/" .. name .. ".lua")), '",\n') end
out:write("  NULL\n};\n")
out:close()
