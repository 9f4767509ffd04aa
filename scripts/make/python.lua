-- SPDX-License-Identifier: MIT
--
-- python.lua VERSION HEADER...: write the public headers as a module of ctypes to stdout, so that the declarations of
-- src/python cannot differ from them. An unknown type ends the build.

local headers = dofile "scripts/make/headers.lua"
local trim, declared = headers.trim, headers.declared
local version = arg[1]

local function stop(...)
  io.stderr:write("python.lua: ", string.format(...), "\n")
  os.exit(1)
end

local function say(...) io.stdout:write(string.format(...), "\n") end

-- ------------------------------------------------------------- what the headers define

local api = headers.declarations(table.move(arg, 2, #arg, 1, {}))
local inits, kind, enums, structs, callbacks = api.inits, api.kind, api.enums, api.structs, api.callbacks
local constants, value_of = api.constants, {}
table.move(api.unnamed, 1, #api.unnamed, #constants + 1, constants)
for _, constant in ipairs(constants) do value_of[constant[1]] = constant[2] end

-- ------------------------------------------------------------------------- types

local plain = { int64_t = "c_int64", uint64_t = "c_uint64", size_t = "c_size_t", int = "c_int", bool = "c_bool",
  double = "c_double" }

-- Return the type of ctypes for a type of C. called: the type is that of a callback's argument, where a char * may have
-- no 0 at its end.
local function ctype(type, where, called)
  type = trim(type):gsub("^const ", "")
  local base, stars = type:match "^(%w[%w_]*) ?([*const ]*)$"
  local _, depth = (stars or ""):gsub("%*", "")
  local is = kind[base]
  if not base then stop("%s has the type '%s', which is unknown here", where, type) end
  if depth == 0 then
    return plain[base] or (is == "enum" and "c_int") or ((is == "struct" or is == "callback") and base)
      or (base == "void" and "None") or stop("%s has the type '%s', which is unknown here", where, type)
  end
  if is == "function" and depth == 1 then return base end
  if base == "void" or is == "handle" then return depth == 1 and "c_void_p" or "POINTER(c_void_p)" end
  if base == "char" then return called and "c_void_p" or depth == 1 and "c_char_p" or "POINTER(c_char_p)" end
  local of = plain[base] or (is == "enum" and "c_int") or (is == "struct" and base)
  if not of or depth > 1 then stop("%s has the type '%s', which is unknown here", where, type) end
  return ("POINTER(%s)"):format(of)
end

local function arguments(params, where, called)
  local found = {}
  params = params:sub(2, -2)
  if trim(params) == "void" then return "" end
  for param in (params .. ","):gmatch "%s*(.-)%s*," do
    local type, name, array = declared(param)
    if not type then stop("%s has the argument '%s'", where, param) end
    found[#found + 1] = ctype(array ~= "" and type .. "*" or type, where .. "." .. name, called)
  end
  return table.concat(found, ", ")
end

local function callback(ret, params, where)
  return ("CFUNCTYPE(%s, %s)"):format(ctype(ret, where), arguments(params, where, true))
end

local fields -- of a struct: { name, type }; structs inside it come first

-- Return the declarators of one declaration: "int64_t send, receive", "void *(*allocate)(...)", "union { ... } as"
local function field(declaration, of, into)
  declaration = trim(declaration)
  if declaration == "" then return end
  local how, body, name = declaration:match "^(%l+) (%b{}) ([%w_]+)$"
  if how then
    local inner = of .. "_" .. name
    say("class %s(%s):\n    _fields_ = [%s]\n", inner, how == "union" and "Union" or "Structure",
      fields(body:sub(2, -2), inner))
    into[#into + 1] = { name, inner }
    return
  end
  local ret, pointer, params = declaration:match "^(.-)%(%*([%w_]+)%)%s*(%b())$"
  if ret then
    into[#into + 1] = { pointer, callback(ret, params, of .. "." .. pointer) }
    return
  end
  local base = declaration:match "^const [%w_]+" or declaration:match "^[%w_]+"
  for one in (declaration:sub(#base + 1) .. ","):gmatch "%s*(.-)%s*," do
    local type, called, array = declared(base .. " " .. one)
    if not type then stop("%s has the field '%s'", of, declaration) end
    local found = type:match "^char $" and "c_char" or ctype(type, of .. "." .. called)
    if array ~= "" then
      found = found .. " * " .. (tonumber(array) or value_of[array] or stop("[%s] in %s", array, of))
    end
    into[#into + 1] = { called, found }
  end
end

function fields(body, of)
  local found, texts = {}, {}
  local rest = body
  while trim(rest) ~= "" do
    local at, depth = 0, 0
    repeat -- to the ; outside of braces
      at = at + 1
      local c = rest:sub(at, at)
      depth = depth + (c == "{" and 1 or c == "}" and -1 or 0)
      if c == "" then stop("%s ends within '%s'", of, rest) end
    until c == ";" and depth == 0
    field(rest:sub(1, at - 1), of, found)
    rest = rest:sub(at + 1)
  end
  for i, f in ipairs(found) do texts[i] = ('("%s", %s)'):format(f[1], f[2]) end
  return table.concat(texts, ", "), found
end

-- Return the values of an INIT macro that are not zero, by field.
local function defaults(struct, found)
  local values, n = {}, 1
  local init = inits[struct]
  if not init then return "" end
  values[1] = ('"size": sizeof(%s)'):format(struct)
  for value in (init .. ","):gmatch "%s*(.-)%s*," do
    n = n + 1
    local number = value:gsub("%(size_t%)", ""):gsub("UINT64_C(%b())", "%1"):gsub("%(int64_t%)", "")
      :gsub("MGRID_[%w_]+", function(name) return value_of[name] end)
    local zero = value == "" or value == "NULL" or value == '""' or value == "false" or value:find "^{"
      or value:find "^MGRID_[%w_]+$" and not value_of[value] -- the first of its enum
    if value:find "^sizeof%(mgrid_[%w_]+%)$" then
      values[#values + 1] = ('"%s": %s'):format(found[n][1], value)
    elseif value == "true" then
      values[#values + 1] = ('"%s": True'):format(found[n][1])
    elseif not zero and number ~= "0" and number ~= "0.0" then
      local number_is = load("return " .. number)
      if not number_is then stop("the default %s of %s", value, struct) end
      values[#values + 1] = ('"%s": %s'):format(found[n][1], number_is())
    elseif value == '""' then
      values[#values + 1] = found[n][2] == "c_char_p" and ('"%s": b""'):format(found[n][1]) or nil
    end
  end
  return table.concat(values, ", ")
end

-- ------------------------------------------------------------------------- output

say [==[
# Written by scripts/make/python.lua from the public headers; scripts/make/python.lua says how.
"""The types and functions of libmoongrid for ctypes, as its headers declare them."""
from __future__ import annotations

import enum
from ctypes import (CFUNCTYPE, POINTER, Structure, Union, c_bool, c_char, c_char_p, c_double, c_int, c_int64, c_size_t,
                    c_uint64, c_void_p, sizeof)
from typing import Any
]==]
say('VERSION = "%s"', version)
for _, constant in ipairs(constants) do say("%s = %d", constant[1]:gsub("^MGRID_", ""), constant[2]) end
for _, e in ipairs(enums) do
  local name = e.name:gsub("^mgrid_", "_"):gsub("_(%l)", string.upper)
  say('\n\nclass %s(enum.IntEnum):\n    """%s"""', name, e.name)
  for _, member in ipairs(e.members) do say("    %s = %d", member[1]:gsub("^MGRID_", ""), member[2]) end
end
say [==[


class Struct(Structure):
    """A struct that the host allocates: begins as its ..._INIT macro says."""

    def __init__(self, **values: Any) -> None:
        super().__init__(**{**_DEFAULTS.get(type(self).__name__, {}), **values})


_DEFAULTS: dict[str, dict[str, Any]] = {}
]==]
for _, s in ipairs(structs) do say("\nclass %s(Struct):\n    pass\n", s.name) end
for _, c in ipairs(callbacks) do say("%s = %s", c.name, callback(c.ret, c.params, c.name)) end
for _, s in ipairs(structs) do
  local texts, found = fields(s.body, s.name)
  say("%s._fields_ = [%s]", s.name, texts)
  local values = defaults(s.name, found)
  if values ~= "" then say('_DEFAULTS["%s"] = {%s}', s.name, values) end
end
say "\n# Name: result, arguments, their names.\nFUNCTIONS: dict[str, tuple[Any, list[Any], str]] = {"
for _, f in ipairs(api.functions) do
  local called = {}
  for param in (f.params:sub(2, -2) .. ","):gmatch "%s*(.-)%s*," do called[#called + 1] = select(2, declared(param)) end
  say('    "%s": (%s, [%s], "%s"),', f.name, ctype(f.ret, f.name), arguments(f.params, f.name),
    table.concat(called, " "))
end
say "}"
if #api.functions == 0 or #structs == 0 or #enums == 0 then stop "the headers declare nothing" end
