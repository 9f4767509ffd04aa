-- SPDX-License-Identifier: MIT
--
-- man.lua 1|3 OUT: the manual pages: moongrid.1 from the command's own
-- --help, moongrid.3 from the header, whose comments are the manual.

local section, path = arg[1], arg[2]
local out = {}

local function put(...) out[#out + 1] = string.format(...) end

-- Escape text, so that nothing in it is a roff command.
local function plain(text)
  return (text:gsub("\\", "\\e"):gsub("%-", "\\-"):gsub("\n([.'])", "\n\\&%1"):gsub("^([.'])", "\\&%1"))
end

local function block(text)
  put ".nf"
  put("%s", plain(text))
  put ".fi"
end

local function read(name)
  local file = assert(io.open(name))
  local text = file:read "a"
  file:close()
  return text
end

local function output(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read "a"
  assert(pipe:close(), command)
  return (text:gsub("%s+$", ""))
end

local header, recipe, tensor = read "src/moongrid.h", read "src/moongrid_recipe.h", read "src/moongrid_tensor.h"
local version = header:match 'MGRID_VERSION "([%d.]+)"'
put('.\\" Made by scripts/man.lua; do not edit.')
put('.TH MOONGRID %s "" "moongrid %s" "moongrid"', section, version)
put ".SH NAME"

if section == "1" then
  put "moongrid \\- process groups of parallel training, from a recipe to communicators"
  local own = output "build/moongrid --help"
  put ".SH SYNOPSIS"
  block(own)
  for name in own:gmatch "\n  (%l+) " do
    put(".SH MOONGRID %s", name:upper())
    block(output("build/moongrid " .. name .. " --help"))
  end
  put ".SH SEE ALSO"
  put ".BR moongrid (3)"
else
  put "moongrid \\- the C library of moongrid"
  put ".SH SYNOPSIS"
  block "#include <moongrid.h>\n#include <moongrid_mpi.h>\n#include <moongrid_nccl.h>\n#include <moongrid_lua.h>"
  put ".SH DESCRIPTION"
  block((header:match "^/%*.-\n%*%*\n(.-)%*/":gsub("\n%*%* ?", "\n"):gsub("^%*%* ?", "")))
  -- sections are set off by lines of dashes with a name
  local title, body = nil, {}
  local function close()
    if title then
      put(".SH %s", title:upper())
      block((table.concat(body, "\n"):gsub("MGRID_API ", ""):gsub("^%s+", ""):gsub("%s+$", "")))
    end
    body = {}
  end
  -- moongrid_recipe.h and moongrid_tensor.h go on where moongrid.h ends, and begin with their first sections
  local function upto_end(text) return (text:gsub("\n#ifdef __cplusplus\n}.*", "\n")) end
  local whole = upto_end(header) .. upto_end(recipe:match "\n(/%* %-%-%-.*)$") .. tensor:match "\n(/%* %-%-%-.*)$"
  for line in whole:gmatch "([^\n]*)\n" do
    local name = line:match "^/%* %-%-%-%-+ ([%l ]+)"
    if line:find '^extern "C" {' then
      title, body = "version", {}
    elseif line:find "^#endif" and title == "version" then -- of the C++ bracket
      body = {}
    elseif name or line:find "^#ifdef __cplusplus" then
      close()
      title = name and name:gsub("%s+$", "")
      if name and not line:find "%*/$" then body[1] = "/*" end -- the comment goes on
    else
      body[#body + 1] = line
    end
  end
  for _, part in ipairs { "carrier", "elastic", "family", "resources", "mpi", "nccl", "lua" } do
    local name = "moongrid_" .. part .. ".h"
    put(".SH %s", name)
    block((read("src/" .. name):match('extern "C" {\n#endif\n\n(.-)\n#ifdef __cplusplus'):gsub("MGRID_API ", "")))
  end
  put ".SH SEE ALSO"
  put ".BR moongrid (1)"
end

local file = assert(io.open(path, "w"))
file:write(table.concat(out, "\n"), "\n")
file:close()
