-- SPDX-License-Identifier: MIT
--
-- texts.lua OUT NAME=FILE...: write files as C, for the command to print: the bundled recipes with their comments
-- (the library has them without), and what `init` writes. Run in the project's root by make.

local out = assert(io.open(arg[1], "wb"))
out:write('/* Made by scripts/texts.lua; do not edit. */\n#include "command/built_in_texts.h"\n\n')
local rows = {}
for i = 2, #arg do
  local name, path = arg[i]:match("^([^=]+)=(.*)$")
  local text = assert(io.open(path, "rb")):read("a")
  local quoted = text:gsub('[%c"\\?\x80-\xff]', function(c)
    return c == "\n" and '\\n"\n  "' or ("\\%03o"):format(c:byte())
  end)
  out:write(('static const char text_%d[] =\n  "%s";\n'):format(i, quoted))
  rows[#rows + 1] = ('  { "%s", text_%d },\n'):format(name, i)
end
out:write(("\nconst cli_file cli_files[] = {\n%s  { NULL, NULL }\n};\n"):format(table.concat(rows)))
out:close()
