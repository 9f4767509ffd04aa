-- SPDX-License-Identifier: MIT
--
-- docs.lua [--check]: write the options of families and the functions that open backends into lua/moongrid/meta.lua,
-- and the number of recorded cases into README.md. It gets them from the built library, by moongrid.options(), and from
-- tests/golden, and replaces the lines between two markers in each file; do not edit these lines by hand. With --check
-- it writes nothing, names the files that would change, and fails if there are any. make docs runs it in the root.

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

-- Return the options in which families may differ and still share communicators.
local function free()
  local names = {}
  for _, o in ipairs(options) do if not o.apart then names[#names + 1] = "`" .. o.name .. "`" end end
  return table.concat(names, ", ", 1, #names - 1) .. " and " .. names[#names]
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

-- Return the annotation of the table that the function takes, with its fields.
local function opening(b)
  if b.carried then
    return ("{carrier?: %s|moongrid.Job, device?: integer|integer[], share_gpu?: boolean, timeout?: number, "):format(
      table.concat(carriers(), "|")) .. "budget?: integer, " .. ([[
ranks_per_id?: integer, blocking?: boolean}
---carrier: its name (%s), or an open job that serves as carrier; device: the GPU of this rank, or a list of the GPUs
---of all ranks of this node (by default each rank takes the GPU of its index on the node); share_gpu: several ranks
---may use one GPU; timeout: seconds that a creation may take (%d); budget: most bytes of GPU memory for communicators;
---ranks_per_id: a group of more ranks gets several unique ids (128); blocking: the trainer's calls on communicators
---block, as with ncclCommInitRank (true)]]):format(carriers()[1], b.timeout)
  elseif b.makes then
    return [[{timeout?: number, threads?: "any"|"funneled"|"serialized"|"multiple", ]] .. ([[
on_deadline?: "error"|"abort", communicators?: integer, comm?: integer}|integer
---timeout: seconds that a call over all ranks may take (%d); threads: the thread level to request from MPI, or that a
---running MPI must have (funneled); on_deadline: if a call of MPI does not return at the deadline, keep waiting (error)
---or end the process (abort); communicators: the most that the job may have on a rank; comm: the Fortran handle
---(MPI_Comm_c2f) of the communicator to use in place of MPI_COMM_WORLD; also mpi(handle)]]):format(b.timeout)
  end
  return ("{timeout?: number} seconds that a call over all ranks may take (%d)"):format(b.timeout)
end

local over = [[
---The carrier (%s) sends their ids. mpi also creates the communicators of families with backend "mpi".
---Collective. If a rank has no GPU, library or driver, every rank gets nil, message, status.]]

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

-- Recorded cases --------------------------------------------------------------------

-- Count the tables of systems with a recipe, and their cases. (tests/golden/layers has copied interfaces, not cases.)
local function recorded()
  local tables, cases = 0, 0
  for path in io.popen "LC_ALL=C ls tests/golden/systems/*.lua":lines() do
    local file = assert(io.open(path))
    local text = file:read "a"
    file:close()
    if text:find 'recipe = "' or text:find 'mg%.load "' or text:find 'require "systems%.' then
      tables = tables + 1
      for line in io.lines("tests/golden/" .. path:match "([%w_]+)%.lua$" .. ".json") do
        if line:find '^{"id"' then cases = cases + 1 end
      end
    end
  end
  return tables, cases
end

local tables, cases = recorded()
local match = ("In %d recorded cases (%d tables) the recipes agree with the systems: in groups, members, their order,\n"
  .. "what the systems' own functions return, and what they refuse.\n"):format(cases, tables)

local texts = { -- file -> marker -> the text between its lines
  ["lua/moongrid/meta.lua"] = {
    options = [[
---The options of a family for its communicators. Families with the same members share communicators only if their
---options are equal (except ]] .. free() .. [[).
---In parentheses: the backends that use the option, unless all do.
---@class moongrid.Options
]] .. lines_of(options, option_annotation),
    fields = [[
---Fields of ncclConfig_t, each with the first version of NCCL that has it. A flag is true, false, 1 or 0. A field that
---is left out has NCCL's default.
---@class moongrid.Nccl
]] .. lines_of(fields, field_annotation),
    backends = lines_of(backends, backend_function),
  },
  ["README.md"] = { recorded = match },
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
