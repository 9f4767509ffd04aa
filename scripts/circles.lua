-- SPDX-License-Identifier: MIT
--
-- circles.lua BUILD SLICE...: list files of src that call each other in a circle, from the symbols that their objects
-- define and need (nm): a line for each circle of files in different folders, or inside a room with an internal order;
-- and a line for each call of a slice by a room of the way, or by a slice before it.

local ORDERED = { families = true }

local build = ...
local place = {} -- of each slice, in their order
for i = 2, select("#", ...) do place[select(i, ...)] = i end
local defined, needed, files = {}, {}, {}

local list = io.popen "find src -name '*.c' | sort"
for path in list:lines() do
  local file = path:match "^src/(.*)%.c$"
  local object = io.open(("%s/%s.o"):format(build, file))
  if object then
    object:close()
    files[#files + 1], needed[file] = file, {}
    local names = io.popen(("nm '%s/%s.o'"):format(build, file))
    for line in names:lines() do
      local kind, name = line:match "(%a) (%S+)$"
      if kind == "U" then
        table.insert(needed[file], name)
      elseif kind and kind:find "[TDBRV]" then
        defined[name] = file
      end
    end
    names:close()
  end
end
list:close()

for _, file in ipairs(files) do
  for _, name in ipairs(needed[file]) do
    local to = defined[name]
    if to and (place[to:match "^%w+"] or 0) > (place[file:match "^%w+"] or 0) then
      print(("%s calls %s of %s"):format(file, name, to))
    end
  end
end

local function folder(file) return file:match "^(.*)/" end

-- Tarjan's strongly connected components.
local index, low, stack, on, count = {}, {}, {}, {}, 0
local function visit(file)
  count = count + 1
  index[file], low[file] = count, count
  stack[#stack + 1], on[file] = file, true
  for _, name in ipairs(needed[file]) do
    local to = defined[name]
    if to and to ~= file then
      if not index[to] then
        visit(to)
        low[file] = math.min(low[file], low[to])
      elseif on[to] then
        low[file] = math.min(low[file], index[to])
      end
    end
  end
  if low[file] == index[file] then
    local circle, apart = {}, false
    repeat
      local top = table.remove(stack)
      on[top] = nil
      circle[#circle + 1] = top
      apart = apart or folder(top) ~= folder(circle[1])
    until top == file
    table.sort(circle)
    if apart or (#circle > 1 and ORDERED[folder(file)]) then print(table.concat(circle, " ")) end
  end
end
for _, file in ipairs(files) do
  if not index[file] then visit(file) end
end
