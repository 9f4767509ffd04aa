-- SPDX-License-Identifier: MIT
--
-- embed.lua DRIVER [SOURCE...]: C for a fuzz target on stdout: the text of the driver; for userdata.c also the names
-- of all functions and methods that the sources register.

local driver = io.open(arg[1]):read "a"
local found, names = {}, {}
for i = 2, #arg do
  for name in io.open(arg[i]):read("a"):gmatch '{ "([%w_]+)", *[%w_]+ }' do found[name] = true end
end
for _, not_here in ipairs { "mpi", "nccl", "pmix" } do found[not_here] = nil end -- would start MPI
for name in pairs(found) do names[#names + 1] = ('"%s"'):format(name) end
table.sort(names)
if #arg > 1 then io.write("static const char *const names[] = { ", table.concat(names, ", "), " };\n") end
io.write "static const char driver[] = {"
for i = 1, #driver do io.write(i % 20 == 1 and "\n" or "", driver:byte(i), ",") end
io.write "\n};\n"
