-- SPDX-License-Identifier: MIT
--
-- headers.lua: read the public headers: their comments, which are the manual, for the manual page (man3.lua) and the
-- site (site.lua); their declarations for the modules of Python (python.lua) and Fortran (fortran.lua).

local headers = { names = {} }
for _, part in ipairs { "", "_families", "_plan", "_backend", "_carrier", "_state", "_recipe", "_tensor", "_machine",
  "_step", "_survive", "_mpi", "_nccl", "_lua" } do
  headers.names[#headers.names + 1] = "moongrid" .. part
end

-- Return the rows of some lines of a header: { code, comment }, one row for each declaration of any number of lines.
local function rows_of(lines)
  local rows, open, depth, body = {}, nil, 0, false -- open: in a comment; depth: of parentheses
  for _, line in ipairs(lines) do
    local last = rows[#rows]
    if body then -- of an inline function, whose declaration is enough
      body = line ~= "}"
    elseif open then
      last.comment = last.comment .. " " .. line:gsub("%*/", ""):gsub("^%s*%*%*", "")
      open = not line:find("*/", 1, true)
    else
      local code, comment = line:match "^(.-)%s*/%*(.*)$"
      code = code or line
      open = comment and not comment:find("*/", 1, true)
      comment = comment and comment:gsub("%*/%s*", "")
      local goes_on = last and (depth > 0 or last.code:find "\\$")
      local indent = line:match "^%s*"
      code = code:gsub("^%s+", ""):gsub("%s+$", ""):gsub("%s+", " "):gsub("^MGRID_API ", "")
      local _, opened = code:gsub("%(", "")
      local _, closed = code:gsub("%)", "")
      depth = depth + opened - closed
      if goes_on then
        last.code, last.comment = last.code:gsub("%s*\\$", "") .. " " .. code, comment or last.comment
      else
        rows[#rows + 1] = { code = indent .. code, comment = comment }
      end
      last = rows[#rows]
      body = last.code:find "^MGRID_INLINE.*{$" ~= nil
      if body then last.code = last.code:gsub("^MGRID_INLINE ", ""):gsub(" {$", ";") end
    end
  end
  return rows
end

-- Return the items of a part of a header: { comment = lines of text, code = rows }; either may be missing.
function headers.items_of(text)
  local items, comment, code = {}, nil, {}
  local function close()
    if comment or #code > 0 then items[#items + 1] = { comment = comment, code = rows_of(code) } end
    comment, code = nil, {}
  end
  local inside, deep = false, false -- in a comment that begins a line; in braces
  for written in (text .. "\n"):gmatch "([^\n]*)\n" do
    local line = written
    if not inside and line:find "^/%*" then
      close()
      comment, inside = {}, true
      line = "** " .. line:gsub("^/%*%s*", "")
    end
    if inside then
      inside = not line:find("*/", 1, true)
      comment[#comment + 1] = line:gsub("%s*%*/.*$", ""):gsub("^%*%* ?", "")
    elseif line == "" and not deep then
      close()
    else
      code[#code + 1] = line
      deep = deep and not line:find "^}" or line:find "{$" ~= nil
    end
  end
  close()
  return items
end

-- Return the comment at the top of a header, and its declarations.
function headers.header_of(name)
  local file = assert(io.open("src/" .. name .. ".h"))
  local text = file:read "a"
  file:close()
  local lines, words = {}, {}
  for line in (text:match "^/%*(.-)%*/" .. "\n"):gmatch "([^\n]*)\n" do
    lines[#lines + 1] = line:gsub("^%*%* ?", "")
  end
  for i = 3, #lines do words[#words + 1] = lines[i]:gsub("^moongrid[%w_]*%.h %- ", "") end
  words[1] = words[1]:gsub("^%l", string.upper)
  return words, text:match 'extern "C" {\n#endif\n(.*)\n#ifdef __cplusplus\n}'
end

function headers.trim(s) return (s:gsub("%s+", " "):gsub("^ ", ""):gsub(" $", "")) end

-- Return for "const char *const *names" its type, its name, and an array's length.
function headers.declared(declaration)
  return headers.trim(declaration):match "^(.-[ *])([%a_][%w_]*)%s*%[?([%w_]*)%]?$"
end

-- Return the members of an enum: { name, value }.
local function members(body)
  local found, following = {}, 0
  for member in (body:sub(2, -2) .. ","):gmatch "%s*(.-)%s*," do
    local name, value = member:match "^(MGRID_[%w_]+)%s*=%s*(%-?%d+)$"
    if member ~= "" then
      following = value and math.tointeger(tonumber(value)) or following
      found[#found + 1] = { name or member, following }
      following = following + 1
    end
  end
  return found
end

-- Return the declarations of these headers as lists: constants (macros) and unnamed (members of enums without a name),
-- { name, value }; enums, { name, members }; structs, { name, body }; callbacks and functions, { name, ret, params }.
-- And inits: the values of a struct's INIT macro, by its name; kind: "enum", "struct", "handle", "callback" (a pointer
-- to a function) or "function", by the name of a type.
function headers.declarations(paths)
  local text = ""
  for _, path in ipairs(paths) do
    local file <close> = assert(io.open(path))
    text = text .. file:read "a":gsub("/%*.-%*/", " "):gsub("//[^\n]*", " "):gsub("\\\n", " ") .. "\n"
  end
  local found = { constants = {}, unnamed = {}, inits = {}, enums = {}, structs = {}, callbacks = {}, functions = {},
    kind = {} }
  local kind = found.kind
  local function add(list, name, what, item)
    kind[name], list[#list + 1] = what, item
  end

  for name, value in text:gmatch "#define (MGRID_[%w_]+)%s+([^\n]+)" do
    local struct, values = value:match "^{%s*sizeof%((mgrid_[%w_]+)%),?(.*)}"
    if struct then found.inits[struct] = headers.trim(values) end
    if value:match "^%(?%-?%d+%)?%s*$" then
      table.insert(found.constants, { name, math.tointeger(tonumber((value:gsub("[()%s]", "")))) })
    end
  end
  text = text:gsub("\n#[^\n]*", "\n"):gsub("^#[^\n]*", "")
  text = text:gsub("MGRID_INLINE [^{;]*%b{}", ""):gsub('extern "C" {', "")

  for name, body in text:gmatch "typedef enum (mgrid_[%w_]+)%s*(%b{})" do
    add(found.enums, name, "enum", { name = name, members = members(body) })
  end
  for body in text:gmatch "\nenum%s*(%b{})" do
    for _, member in ipairs(members(body)) do table.insert(found.unnamed, member) end
  end
  for before, name, body in text:gmatch "([^\n]*)struct (mgrid_[%w_]+)%s*(%b{})" do
    assert(before == "" or before == "typedef ", name)
    add(found.structs, name, "struct", { name = name, body = body:sub(2, -2) })
  end
  for name in text:gmatch "typedef struct (mgrid_[%w_]+) +mgrid_[%w_]+;" do kind[name] = kind[name] or "handle" end
  for ret, name, params in text:gmatch "typedef ([%w_ *]-)%(%*(mgrid_[%w_]+)%)%s*(%b())" do
    add(found.callbacks, name, "callback", { name = name, ret = ret, params = params })
  end
  for ret, name, params in text:gmatch "typedef ([%w_ *]-)%s(mgrid_[%w_]+)(%b())%s*;" do
    add(found.callbacks, name, "function", { name = name, ret = ret, params = params })
  end
  for ret, name, params in text:gmatch "MGRID_API%s+([^;(]-)%s*(mgrid_[%w_]+)(%b())%s*;" do
    table.insert(found.functions, { name = name, ret = headers.trim(ret), params = params })
  end
  return found
end

return headers
