-- SPDX-License-Identifier: MIT
--
-- fortran.lua TEXT VERSION HEADER...: write the public headers as the Fortran module `moongrid` to stdout, followed by
-- the Fortran functions in the file TEXT. An unknown type ends the build.
--
-- A struct mgrid_x is type(mgrid_x_t), because Fortran ignores case and a function may have the name of a struct. A
-- pointer to an object is type(c_ptr). A text is an array of characters that ends with c_null_char. To pass NULL for a
-- struct or for a result, leave out the argument.

local headers = dofile "scripts/make/headers.lua"
local trim, declared = headers.trim, headers.declared
local version = arg[2]

local function stop(...)
  io.stderr:write("fortran.lua: ", string.format(...), "\n")
  os.exit(1)
end

-- Write a statement, with continuation lines if it is too long.
local function say(depth, format, ...)
  local line = format:format(...)
  while #line > 120 do
    local at = 118
    while not line:sub(at, at):find "[ ,]" do at = at - 1 end
    io.write(("  "):rep(depth), line:sub(1, at), "&\n")
    line = "    " .. line:sub(at + 1)
  end
  io.write(("  "):rep(depth), line, "\n")
end

-- ------------------------------------------------------------- what the headers define

local api = headers.declarations(table.move(arg, 3, #arg, 1, {}))
local inits, kind, structs, functions = api.inits, api.kind, api.structs, {}
local constants, value_of = api.constants, {}
for _, enum in ipairs(api.enums) do table.move(enum.members, 1, #enum.members, #constants + 1, constants) end
table.move(api.unnamed, 1, #api.unnamed, #constants + 1, constants)
for _, constant in ipairs(constants) do value_of[constant[1]] = constant[2] end
for _, callback in ipairs(api.callbacks) do kind[callback.name] = "callback" end
for _, f in ipairs(api.functions) do
  -- a function with an MPI_Comm has a variant with an INTEGER
  if not f.params:find "MPI_Comm " then functions[#functions + 1] = f end
end

-- ------------------------------------------------------------------------- types

local plain = { int64_t = "integer(c_int64_t)", uint64_t = "integer(c_int64_t)", size_t = "integer(c_size_t)",
  int = "integer(c_int)", bool = "logical(c_bool)", double = "real(c_double)", MPI_Fint = "integer(c_int)" }

-- Return the parts of a type of C: its name, the number of stars, and the type in Fortran without the stars.
local function parts(type, where)
  local base, stars = trim(type):gsub("^const ", ""):match "^(%w[%w_]*) ?([*const ]*)$"
  if not base then stop("%s has the type '%s', which is unknown here", where, type) end
  local depth = select(2, stars:gsub("%*", ""))
  local is = kind[base]
  return base, depth, plain[base] or is == "enum" and "integer(c_int)" or is == "struct" and "type(" .. base .. "_t)"
    or is == "callback" and "type(c_funptr)" or nil
end

-- Return a name that is allowed in Fortran.
local function plain_name(name) return (name:gsub("^_", "x_")) end

-- Return the declaration of an argument. `counted`: the argument before it is the number of its elements.
local function argument(type, name, array, counted, where)
  local base, depth, of = parts(type, where)
  local constant = trim(type):find "^const " ~= nil
  if array then depth = depth + 1 end
  if base == "char" then
    local intent = constant and "in" or "inout"
    if depth == 1 then return ("character(kind=c_char), intent(%s) :: %s(*)"):format(intent, name) end
    return ("type(c_ptr), intent(%s) :: %s(*)"):format(trim(type):find "%*const" and "in" or "inout", name)
  end
  if depth == 0 then return ("%s, value :: %s"):format(of or stop("%s: %s", where, type), name) end
  if base == "void" or kind[base] == "handle" or kind[base] == "callback" then
    if depth == 1 then return ("type(c_ptr), value :: %s"):format(name) end
    return ("type(c_ptr), intent(inout) :: %s(*)"):format(name)
  end
  if not of or depth > 1 then stop("%s has the type '%s', which is unknown here", where, type) end
  if counted then return ("%s, intent(%s) :: %s(*)"):format(of, constant and "in" or "inout", name) end
  return ("%s, intent(%s), optional :: %s"):format(of, constant and "in" or "inout", name)
end

-- Return the components of a struct, with the defaults of its INIT macro.
local function components(struct)
  local list, values, rest = {}, {}, struct.body:gsub("union (%b{}) ([%w_]+);", "int64_t %2[2];") -- two words at most
  for value in ((inits[struct.name] or "") .. ","):gmatch "%s*(.-)%s*," do values[#values + 1] = value end
  for declaration in rest:gmatch "%s*([^;]-)%s*;" do
    local pointer = declaration:match "%(%*([%w_]+)%)"
    local base = declaration:match "^const [%w_]+" or declaration:match "^[%w_]+"
    if pointer then
      list[#list + 1] = { pointer, "type(c_funptr)", "" }
    else
      for one in (declaration:sub(#base + 1) .. ","):gmatch "%s*(.-)%s*," do
        local type, name, array = declared(base .. " " .. one)
        local word, depth, of = parts(type, struct.name .. "." .. name)
        if word == "char" and depth == 0 then of = "character(kind=c_char)" end
        if depth > 0 or kind[word] == "handle" then of = "type(c_ptr)" end
        local length = array ~= "" and (tonumber(array) or value_of[array] or stop("[%s] in %s", array, struct.name))
        list[#list + 1] = { name, of or stop("%s.%s", struct.name, name), length and ("(%d)"):format(length) or "" }
      end
    end
  end
  for i, c in ipairs(list) do
    local given = i == 1 and "size" or values[i - 1] or "" -- values begin after `size`
    local number = given:gsub("%(size_t%)", ""):gsub("UINT64_C(%b())", "%1"):gsub("%(int64_t%)", "")
      :gsub("MGRID_[%w_]+", function(name) return value_of[name] and tostring(value_of[name]) end)
    local value = load("return " .. number)
    local ok, result = pcall(value or error)
    value = ok and tonumber(result) or nil
    if c[2] == "type(c_ptr)" then
      c[4] = " = c_null_ptr"
    elseif c[2] == "type(c_funptr)" then
      c[4] = " = c_null_funptr"
    elseif c[2] == "logical(c_bool)" then
      c[4] = given == "true" and " = .true." or " = .false."
    elseif c[2]:find "^integer" then
      c[4] = (" = %d"):format(i > 1 and inits[struct.name] and value and math.tointeger(value) or 0)
      c[4] = c[4] .. (c[2]:match "%((c_int64_t)%)" and "_c_int64_t" or "")
    elseif c[2]:find "^real" then
      c[4] = (" = %s_c_double"):format(value and tostring(value + 0.0) or "0.0")
    elseif c[2]:find "^character" then
      c[4] = " = c_null_char"
    else
      c[4] = ""
    end
  end
  return list
end

-- ------------------------------------------------------------------------- output

io.write(([[
! moongrid.f90 - the functions of libmoongrid in Fortran, by iso_c_binding: version %s. fortran.lua writes it
! from the headers, which are the manual. Compile it with your compiler, and link -lmoongrid_mpi -lmoongrid.
module moongrid
  use, intrinsic :: iso_c_binding
  implicit none
  private :: c_string

]]):format(version))
for _, constant in ipairs(constants) do say(1, "integer(c_int), parameter :: %s = %d", constant[1], constant[2]) end

local bytes = { ["integer(c_int)"] = 4, ["logical(c_bool)"] = 1, ["character(kind=c_char)"] = 1 }
local laid = {}

-- Return the bytes of a struct and its alignment, on 64 bits.
local function lay_out(list)
  local size, widest = 0, 1
  for _, c in ipairs(list) do
    local inner = laid[c[2]:match "^type%((mgrid_[%w_]+)_t%)$"] or {}
    local each, align = inner[1] or bytes[c[2]] or 8, inner[2] or bytes[c[2]] or 8
    size = (size + align - 1) // align * align + each * (tonumber(c[3]:match "%d+") or 1)
    widest = math.max(widest, align)
  end
  return { (size + widest - 1) // widest * widest, widest }
end

-- Structs that are inside others come first.
local done = {}
local function put(struct)
  if done[struct.name] then return end
  done[struct.name] = true
  local list = components(struct)
  for _, c in ipairs(list) do
    local inner = c[2]:match "^type%((mgrid_[%w_]+)_t%)$"
    for _, other in ipairs(structs) do
      if other.name == inner then put(other) end
    end
  end
  laid[struct.name] = lay_out(list)
  if inits[struct.name] then list[1][4] = (" = %d_c_size_t"):format(laid[struct.name][1]) end
  io.write "\n"
  say(1, "type, bind(c) :: %s_t", struct.name)
  for _, c in ipairs(list) do say(2, "%s :: %s%s%s", c[2], plain_name(c[1]), c[3], c[4]) end
  say(1, "end type")
end
for _, struct in ipairs(structs) do put(struct) end

io.write "\n"
say(1, "interface")
for _, f in ipairs(functions) do
  local names, lines, counted = {}, {}, false
  for param in (f.params:sub(2, -2) .. ","):gmatch "%s*(.-)%s*," do
    if param ~= "void" and param ~= "" then
      local type, name, array = declared(param)
      local is_array = param:find("%[") ~= nil
      local where = f.name .. "." .. (name or param)
      names[#names + 1] = plain_name(name)
      lines[#lines + 1] = argument(type, plain_name(name), is_array or array ~= "", counted or is_array, where)
      counted = trim(type) == "size_t"
    end
  end
  local base, depth, of = parts(f.ret, f.name)
  local result = depth > 0 and "type(c_ptr)" or base == "void" and nil or of
  local word = result and "function" or "subroutine"
  say(2, '%s %s(%s) bind(c, name="%s")%s', word, f.name, table.concat(names, ", "), f.name,
    result and " result(is)" or "")
  say(3, "import")
  for _, line in ipairs(lines) do say(3, "%s", line) end
  if result then say(3, "%s :: is", result) end
  say(2, "end %s", word)
end
say(1, "end interface")
io.write("\n", io.open(arg[1]):read "a", "end module\n")
