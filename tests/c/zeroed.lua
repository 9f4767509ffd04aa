-- SPDX-License-Identifier: MIT
--
-- zeroed.lua HEADER...: C for test_structs.c on stdout: a row for every struct with an INIT macro that a call takes,
-- but does not write to. A host without C macros (LuaJIT's FFI, cffi, ctypes) clears such a struct and sets its size.

local inits, taken = {}, {}
for _, header in ipairs(arg) do
  local text = io.open(header):read("a"):gsub("/%*.-%*/", " ")
  for name in text:gmatch "#define MGRID_([A-Z_]+)_INIT" do inits[#inits + 1] = name end
  for name in text:gmatch "const (mgrid_[a-z_]+) *%*" do taken[name] = true end
end

io.write "/* Made by tests/c/zeroed.lua; do not edit. */\n"
for _, name in ipairs(inits) do
  local type = "mgrid_" .. name:lower()
  if taken[type] then
    io.write(("static const %s whole_%s = MGRID_%s_INIT;\n"):format(type, type, name))
  end
end
io.write "static const struct {\n  const char *name;\n  const void *init;\n  size_t      size;\n} zeroed[] = {\n"
for _, name in ipairs(inits) do
  local type = "mgrid_" .. name:lower()
  if taken[type] then io.write(('  { "%s", &whole_%s, sizeof whole_%s },\n'):format(type, type, type)) end
end
io.write "};\n"
