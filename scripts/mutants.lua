-- SPDX-License-Identifier: MIT
--
-- mutants.lua FILE SEED COUNT LINE...: for scripts/mutants: choose COUNT random changes, each of one operator or
-- constant in one of these lines. For each print the number of the line, a tab, and the changed line.

local path, seed, count = arg[1], tonumber(arg[2]), tonumber(arg[3])

-- The replacements; blanks and frontiers in the patterns protect names, arrows and longer operators.
local CHANGES = {
  { " == ", path:find "%.lua$" and " ~= " or " != " }, { " [~!]= ", " == " }, { " < ", " <= " },
  { " <= ", " < " }, { " > ", " >= " }, { " >= ", " > " }, { " %+ ", " - " }, { " %- ", " + " }, { " %* ", " + " },
  { " / ", " * " }, { " // ", " * " }, { " %% ", " + " }, { " && ", " || " }, { " || ", " && " },
  { " and ", " or " }, { " or ", " and " }, { "%f[%w]not ", "" }, { "%f[!]!%f[^!=]", "" },
  { "%f[%w_]true%f[^%w_]", "false" }, { "%f[%w_]false%f[^%w_]", "true" },
  { "%f[%w_.]%d+%f[^%w_.]", function(digits) return tostring(math.tointeger(digits) + 1) end },
}

-- Return the line with blanks in place of texts and comments, which are not changed.
local function bare(line)
  local function blank(text) return (" "):rep(#text) end
  line = line:gsub("\\.", "__"):gsub('"[^"]*"', blank):gsub("'[^']*'", blank):gsub("/%*.*", blank)
  return (line:gsub(path:find "%.lua$" and "%-%-.*" or "//.*", blank))
end

local lines, wanted = {}, {}
for line in io.lines(path) do lines[#lines + 1] = line end
for i = 4, #arg do
  local at = tonumber(arg[i])
  local line = lines[at] and bare(lines[at]) or ""
  for _, change in ipairs(CHANGES) do
    local first, last = line:find(change[1])
    while first do
      local old, with = line:sub(first, last), change[2]
      local new = type(with) == "function" and with(old) or with
      wanted[#wanted + 1] = ("%d\t%s%s%s"):format(at, lines[at]:sub(1, first - 1), new, lines[at]:sub(last + 1))
      first, last = line:find(change[1], last + 1)
    end
  end
end
math.randomseed(seed)
for i = 1, math.min(count, #wanted) do
  local other = math.random(i, #wanted)
  wanted[i], wanted[other] = wanted[other], wanted[i]
  print(wanted[i])
end
