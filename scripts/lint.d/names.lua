-- SPDX-License-Identifier: MIT
--
-- names.lua FILE.c ...: list functions of C that several files define, since a search for a name should find one
-- function. Also list names that repeat a word.

local files, names = {}, {}
for _, path in ipairs(arg) do
  local head
  for line in io.lines(path) do
    -- a definition may continue in the next lines; a declaration ends in ';'
    head = line:match "^%a[%w_ *]* %**[%w_]+%(.*" or head and head .. line
    local name = head and head:find "{%s*$" and head:match "([%w_]+)%("
    if name and not files[name] then names[#names + 1], files[name] = name, path end
    if name and files[name]:sub(-#path) ~= path then files[name] = files[name] .. " " .. path end
    if head and head:find "[;{]%s*$" then head = nil end
  end
end
table.sort(names)
for _, name in ipairs(names) do
  if ("_" .. name .. "_"):find "_(%l+)_%1_" then print(name .. ": " .. files[name] .. ": a word twice") end
  if files[name]:find " " then print(name .. ": " .. files[name]) end
end
