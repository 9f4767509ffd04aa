-- SPDX-License-Identifier: MIT
--
-- comments.lua FILE...: list parts of C files that are hard to read: a head of more than six sentences (longer texts
-- can follow in another comment), a comment about several functions, "_new: ... _free: ...", and a function of more
-- than 20 lines without a blank line.

local SENTENCES, LINES = 6, 20
local MANUAL = "src/moongrid.h" -- its head is the manual

for _, path in ipairs(arg) do
  local file <close> = assert(io.open(path))
  local text = file:read "a"
  local function complain(at, what)
    local _, before = text:sub(1, at):gsub("\n", "")
    print(("%s:%d: %s"):format(path, before + 1, what))
  end

  for at, comment in text:gmatch "()/%*(.-)%*/" do
    local plain = comment:gsub("\n%s*%*%*", "\n"):gsub("%s+", " ")
    if at == 1 and path ~= MANUAL then
      local _, more = plain:gsub("[.?!] %f[%u`\"(]", "")
      if more >= SENTENCES then complain(at, ("the head has %d sentences"):format(more + 1)) end
    end
    local short = path ~= MANUAL and plain:match "%f[%w_`\"]_%l[%w_]*"
    if short then complain(at, short .. ": each function has its own comment, or its whole name") end
  end

  for at, body in text:gmatch "()\n[%a ][^\n;=#]*%) {\n(.-)\n}\n" do
    local _, lines = body:gsub("\n", "")
    if lines >= LINES and not body:find "\n\n" then complain(at + 1, "no blank line between the phases") end
  end
end
