-- SPDX-License-Identifier: MIT
--
-- circles.lua BUILD MODULE...: list the circles in which files of src call each other (nm shows the symbols that their
-- objects define and need), and the circles of folders by calls or by includes, a line for each circle. Also list each
-- call of a module by a folder of the core, or by a module before it.

-- The exceptions with their reasons: folders whose files may call in a circle, folders that may be in a circle, and
-- files.
local class = "a file defines a class with methods of other files, and these check that their argument is of that class"
local MAY = {
  ["recipe/words"] = class, ["machine/lua"] = class, ["step/lua"] = class,
  ["recipe"] = "a runtime loads the prelude, whose functions load and run recipes",
  ["recipe recipe/words"] = "one folder in two: recipe/ registers its words, which use its state",
  ["tensors/flat tensors/tensor"] = "a flat array is made of tensors, and a tensor may be cut as part of a flat array",
  ["step"] = "the executor calls the clock and the code that skips repeated positions, and these call the executor",
}

local build = ...
local place = {} -- module -> its index in MODULES
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

-- Report the circles of a graph (Tarjan's algorithm). targets(node) returns the nodes that a node needs.
local function circles(all, targets, report)
  local index, low, stack, on, count = {}, {}, {}, {}, 0
  local function visit(node)
    count = count + 1
    index[node], low[node] = count, count
    stack[#stack + 1], on[node] = node, true
    for _, to in ipairs(targets(node)) do
      if not index[to] then
        visit(to)
        low[node] = math.min(low[node], low[to])
      elseif on[to] then
        low[node] = math.min(low[node], index[to])
      end
    end
    if low[node] < index[node] then return end
    local circle = {}
    repeat
      local top = table.remove(stack)
      on[top] = nil
      circle[#circle + 1] = top
    until top == node
    table.sort(circle)
    if #circle > 1 then report(circle) end
  end
  for _, node in ipairs(all) do
    if not index[node] then visit(node) end
  end
end

local function called(file)
  local to = {}
  for _, name in ipairs(needed[file]) do to[#to + 1] = defined[name] ~= file and defined[name] or nil end
  return to
end
circles(files, called, function(circle)
  local apart = false
  for _, file in ipairs(circle) do apart = apart or folder(file) ~= folder(circle[1]) end
  local names = table.concat(circle, " ")
  if not MAY[names] and (apart or not MAY[folder(circle[1])]) then print(names) end
end)

-- Folders, by calls and by includes.
local folders, uses = {}, {}
local function use(from, to)
  if not uses[from] then folders[#folders + 1], uses[from] = from, {} end
  if to and to ~= from then table.insert(uses[from], to) end
end
for _, file in ipairs(files) do
  use(folder(file))
  for _, to in ipairs(called(file)) do use(folder(file), folder(to)) end
end
local included = io.popen [[grep -roE --include='*.[ch]' '^#include "[a-z_/]+/' src]]
for line in included:lines() do
  local from, to = line:match '^src/(.*)/[^/]*:#include "(.*)/$'
  if from then use(from, to) end
end
included:close()
circles(folders, function(from) return uses[from] end, function(circle)
  if not MAY[table.concat(circle, " ")] then print(table.concat(circle, " ")) end
end)
