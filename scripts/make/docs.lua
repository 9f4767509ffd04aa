-- SPDX-License-Identifier: MIT
--
-- docs.lua [--check]: write the tables of options, the functions that open backends, and how many cases are recorded,
-- in lua/moongrid/meta.lua, README.md, lua/README.md and src/command/README.md. It gets them from the built library, by
-- moongrid.options(), from the command's --help and from tests/golden, and replaces the lines between two markers in
-- each file; do not edit these by hand. With --check it writes nothing, names the files that would change and fails.
-- Run in the project's root by make docs.

local options, fields, backends = require "moongrid".options()
local check = arg[1] == "--check"
local write = dofile((arg[0]:match "^.*/" or "./") .. "whole.lua")

-- Return NCCL's number as text: 21700 is "2.17.0".
local function release(version)
  return ("%d.%d.%d"):format(version // 10000, version // 100 % 100, version % 100)
end

local function range(f)
  return f.high and ("%d to %d"):format(f.low, f.high) or ("%d or more"):format(f.low)
end

local function quoted(words)
  local list = {}
  for i, word in ipairs(words) do list[i] = '"' .. word .. '"' end
  return list
end

local function lines_of(list, each)
  local lines = {}
  for i, item in ipairs(list) do lines[i] = each(item) end
  return table.concat(lines, "\n")
end

-- Annotations ------------------------------------------------------------------

local option_types = {
  flag = function() return "boolean" end,
  seconds = function() return "number" end,
  word = function(o) return table.concat(quoted(o.words), "|") end,
  fields = function() return "moongrid.Nccl" end,
  shape = function() return "string" end,
  numbers = function() return "string|table<string, integer|boolean>" end,
  name = function() return "string" end,
}
local field_types = { flag = "boolean|integer", integer = "integer", text = "string" }

local function option_annotation(o)
  local unset = o.kind ~= "flag" and "; left out: " .. o.unset or ""
  local limits = o.kind == "seconds" and ", above 0 and up to 1e9" or ""
  local heeded = o.backends ~= "all" and (" (%s)"):format(o.backends) or ""
  return ("---@field %s? %s %s%s%s%s"):format(o.name, option_types[o.kind](o), o.doc, limits, heeded, unset)
end

local function field_annotation(f)
  local limits = f.kind == "integer" and "; " .. range(f) or ""
  local since = f.version > 0 and ("; NCCL %s"):format(release(f.version)) or ""
  return ("---@field %s? %s %s%s%s"):format(f.name, field_types[f.kind], f.doc, limits, since)
end

local function carriers()
  local names = {}
  for _, b in ipairs(backends) do if b.carries then names[#names + 1] = b.name end end
  return quoted(names)
end

-- The table that the function takes, and what its fields are.
local function opening(b)
  if b.carried then
    return ("{carrier?: %s|moongrid.Job, device?: integer|integer[], share_gpu?: boolean, timeout?: number, "):format(
      table.concat(carriers(), "|")) .. "budget?: integer, " .. ([[
ranks_per_id?: integer, blocking?: boolean}
---the carrier (%s), or a job to use as one; the GPU of this rank, or those of all ranks of a machine (by default its
---index among these); let ranks share one; seconds that a creation may take (%d); bytes of GPU memory for
---communicators; group size above which a group gets several unique ids (128); whether a trainer's calls on the
---communicators block, as on those of ncclCommInitRank (true)]]):format(carriers()[1], b.timeout)
  elseif b.makes then
    return [[{timeout?: number, threads?: "any"|"funneled"|"serialized"|"multiple", ]] .. ([[
on_deadline?: "error"|"abort", communicators?: integer, comm?: integer}|integer
---seconds that a call over all ranks may take (%d); the thread level to request from MPI (funneled), or that it must
---have; if MPI cannot return at the deadline: keep waiting (error), or end the process (abort); most communicators of
---the job on a rank; the Fortran handle of a host's communicator (MPI_Comm_c2f), in place of MPI_COMM_WORLD, also
---without a table: mpi(comm)]]):format(b.timeout)
  end
  return ("{timeout?: number} seconds that a call over all ranks may take (%d)"):format(b.timeout)
end

local over = [[
---The carrier sends their ids: %s. mpi also creates the communicators of families with backend "mpi".
---Collective. If one rank has no GPU, library or driver, every rank gets nil, message, status.]]

local function backend_function(b)
  return ([[
---%s.
%s
---@param options? %s
---@return moongrid.Job?
---@return string? message
---@return integer? status
function moongrid.%s(options) end
]]):format(b.doc, b.carried and over:format(table.concat(carriers(), " or "))
    or "---Collective. Returns nil, message, status if it is not available.", opening(b), b.name)
end

-- Tables for people --------------------------------------------------------------

local option_kinds = {
  flag = function() return "true or false" end,
  seconds = function() return "seconds, above 0 and up to 1e9" end,
  word = function(o) return table.concat(quoted(o.words), " or ") end,
  fields = function() return "table, below" end,
  shape = function() return '"x:4:periodic y:2"' end,
  numbers = function() return "table of numbers by name" end,
  name = function() return "name of a family" end,
}
local field_kinds = { flag = option_kinds.flag, integer = range, text = function() return "text" end }

local function option_row(o)
  return ("| `%s` | %s | %s | %s | %s | %s |"):format(o.name, option_kinds[o.kind](o), o.unset, o.backends,
    o.apart and "yes" or "no", o.doc)
end

local function field_row(f)
  local since = f.version > 0 and release(f.version) or "any"
  return ("| `%s` | %s | %s | %s |"):format(f.name, field_kinds[f.kind](f), since, f.doc)
end

-- The command --------------------------------------------------------------------

local function said(line)
  local pipe = assert(io.popen("build/moongrid " .. line))
  local text = pipe:read "a"
  assert(pipe:close(), line)
  return text
end

-- What help says an option is called: its line has that, two blanks or more, and a text.
local function option_heads(subcommand)
  local heads = {}
  for head in said(subcommand .. " --help"):gmatch "\n  (%-%S.-)  " do
    local every = false
    for _, name in ipairs { "params", "machine", "option", "color" } do
      every = every or head:find("--" .. name, 1, true)
    end
    if not every then heads[#heads + 1] = ("`%s`"):format(head:gsub("|", "\\|")) end
  end
  return table.concat(heads, ", ")
end

local function subcommand_rows()
  local rows = {}
  for name in said "--help":gmatch "\n  (%l+) " do
    rows[#rows + 1] = ("| `%s` | %s |"):format(name, option_heads(name))
  end
  return table.concat(rows, "\n")
end

-- The files ----------------------------------------------------------------------

-- Recorded cases --------------------------------------------------------------------

-- Tables and cases of systems with a recipe, and of those whose interface is copied instead (tests/golden/layers).
local function recorded()
  local with, without = { 0, 0 }, { 0, 0 }
  for path in io.popen "LC_ALL=C ls tests/golden/systems/*.lua":lines() do
    local name = path:match "([%w_]+)%.lua$"
    local file, cases = assert(io.open(path)), 0
    local text = file:read "a"
    file:close()
    for line in io.lines("tests/golden/" .. name .. ".json") do
      if line:find '^{"id"' then cases = cases + 1 end
    end
    local of = (text:find 'recipe = "' or text:find 'mg%.load "' or text:find 'require "systems%.') and with or without
    of[1], of[2] = of[1] + 1, of[2] + cases
  end
  return with, without
end

local with_recipe, without_recipe = recorded()
local match = ("Groups, their order, the order of their members, getters, lists and refusals match %d recorded cases "
  .. "of %d systems.\n"):format(with_recipe[2], with_recipe[1])

local texts = { -- file -> marker -> what stands between
  ["lua/moongrid/meta.lua"] = {
    options = [[
---What a family asks of its communicators. Families with the same members share one only where these are
---equal (`first` and `lazy` aside). In parentheses: the backend that heeds it, where not all do.
---@class moongrid.Options
]] .. lines_of(options, option_annotation),
    fields = [[
---Fields of ncclConfig_t, and the first NCCL that has them; flags are true, false, 1 or 0. Left out:
---NCCL's default.
---@class moongrid.Nccl
]] .. lines_of(fields, field_annotation),
    backends = lines_of(backends, backend_function),
  },
  ["lua/README.md"] = {
    recorded = match .. ("%d cases of %d more, which have no recipe, test the operations on grids and families through "
      .. "copies of\ntheir interfaces (`tests/golden/layers`): `scripts/golden tests/golden` ends with `%d passed, 0 "
      .. "failed`.\n"):format(without_recipe[2], without_recipe[1], with_recipe[2] + without_recipe[2]),
    options = [[

| option | what it is | left out | heeded by | keeps families apart | what for |
|---|---|---|---|---|---|
]] .. lines_of(options, option_row) .. "\n",
    fields = [[

| field of `nccl` | what it is | since NCCL | what for |
|---|---|---|---|
]] .. lines_of(fields, field_row) .. "\n",
  },
  ["README.md"] = { recorded = match },
  ["src/command/README.md"] = {
    subcommands = "\n| subcommand | its options |\n|---|---|\n" .. subcommand_rows() .. "\n",
  },
}

-- "-- options: written by make docs" (or in <!-- -->) to "-- options: end"
local function with(text, marker, between, path)
  local _, from = text:find("\n[^\n]*%f[%w]" .. marker .. ": written by make docs[^\n]*\n")
  local to = from and text:find("\n[^\n]*%f[%w]" .. marker .. ": end[^\n]*\n", from)
  assert(to, path .. " has lost the marker lines of " .. marker)
  return text:sub(1, from) .. between .. text:sub(to)
end

local stale = false
for path, blocks in pairs(texts) do
  local file = assert(io.open(path))
  local was = file:read "a"
  file:close()
  local is = was
  for marker, between in pairs(blocks) do is = with(is, marker, between, path) end
  if is ~= was and check then
    io.stderr:write(path, " is not what make docs writes\n")
    stale = true
  elseif is ~= was then
    write(path, is)
  end
end
os.exit(not stale)
