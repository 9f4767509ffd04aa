-- SPDX-License-Identifier: MIT
--
-- The driver of scripts/lab/bench: arguments, compilation of the programs, tables, the JSON file. The
-- measurements are in parts.lua.

local json = require "dkjson"
local parts = require "parts"

local order = { "plan", "instructions", "moves", "enumerate", "create", "torch", "questions", "policies", "proofs",
  "start", "libraries", "simulated", "nccl", "place", "congestion", "step", "losses",
  "playground" }
local B = { quick = false, record = false, out = "build/bench.json", dir = "build/bench" }

local function fail(...)
  io.stderr:write("bench: ", string.format(...), "\n")
  os.exit(2)
end

-- ------------------------------------------------------------------ processes

-- Return the output of a command line and its exit code; pass its stderr through.
function B.run(line)
  local pipe = assert(io.popen(line))
  local text = pipe:read "a"
  local _, _, code = pipe:close()
  return text, code
end

local function first_line(command)
  return (B.run(command .. " 2>/dev/null"):match "[^\n]+")
end
B.first_line = first_line

-- Return the Python that has torch: $PYTHON, else the first in PATH, else the system's, or nil.
for _, python in ipairs { os.getenv "PYTHON" or "python3", not os.getenv "PYTHON" and "/usr/bin/python3" or nil } do
  local version = first_line(python .. " -c 'import torch; print(torch.__version__)'")
  if version and not B.python then B.python, B.torch = python, version end
end

-- Return the version of the Megatron-core that mcore.py would measure, or nil.
function B.megatron()
  return B.python and first_line(("PYTHONPATH=$MEGATRON %s -c 'import importlib.metadata as m; "
    .. "print(m.version(\"megatron-core\"))'"):format(B.python))
end

-- Return lines "KEY<tab>NUMBER" of a command's output as key -> list of numbers, or nil if the command fails.
function B.samples(into, line, prefix)
  local text, code = B.run(line)
  if code ~= 0 then return nil, text end
  for name, value in text:gmatch "([^\n\t]+)\t([^\n]+)" do
    local key = (prefix or "") .. name
    into[key] = into[key] or {}
    table.insert(into[key], tonumber(value))
  end
  return into
end

-- The plain C loops beside ours get -O3 as well.
local flags = "-std=c11 -D_GNU_SOURCE -Isrc -Iscripts/lab/bench.d -Wall -Wextra -Wpedantic -Wshadow -Wconversion "
  .. "-Wno-sign-conversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wwrite-strings -Werror -O3 -g "
local linked = " -Lbuild -lmoongrid -Wl,-rpath,'$ORIGIN/..' -Wl,-z,now"

-- Build a program of scripts/lab/bench.d, linked with the shared library as a trainer is, or with the library's
-- internals; `more`: further libraries.
function B.compile(name, source, how, more)
  local line = "${CC:-cc} " .. flags
  if how == "mpi" then
    local cflags = first_line "pkg-config --cflags $(scripts/mpi --module)"
    local libs = first_line "pkg-config --libs $(scripts/mpi --module)"
    if not cflags then return false end
    line = line .. cflags:gsub("%-I", "-isystem ") .. " " .. source .. " build/libmoongrid_mpi.a "
      .. "-Wl,-u,mgrid_lua_entry build/libmoongrid_lua.a build/libmoongrid.a "
      .. first_line "pkg-config --libs jansson libxxhash yaml-0.1 expat" .. " " .. (more or "") .. " " .. libs
      .. " -ldl -lm -pthread"
  else
    line = line .. source .. (how == "alone" and "" or linked)
  end
  local _, code = B.run(line .. " -o " .. B.dir .. "/" .. name)
  if code ~= 0 then fail("cannot build %s", name) end
  return true
end

-- --------------------------------------------------------------------- tables

local function stat(list)
  local sorted = table.move(list, 1, #list, 1, {})
  table.sort(sorted)
  local n = #sorted
  local median = n % 2 == 1 and sorted[n // 2 + 1] or (sorted[n // 2] + sorted[n // 2 + 1]) / 2
  return { median = median, min = sorted[1], max = sorted[n], n = n }
end
B.stat = stat

local function short(x)
  if math.type(x) == "integer" or x == math.floor(x) and math.abs(x) >= 1000 then return ("%d"):format(x) end
  local size = math.abs(x)
  return (size >= 100 and "%.0f" or size >= 10 and "%.1f" or size >= 1 and "%.2f" or "%.3f"):format(x)
end

local Table = {}
Table.__index = Table

-- Make a table with the `unit` of its numbers, and the names of the rows with which others are compared.
function B.table(title, unit, baselines)
  local t = { title = title, unit = unit, baselines = baselines or {}, rows = {}, notes = {}, targets = {} }
  setmetatable(t, Table)
  table.insert(B.tables, t)
  return t
end

function Table:row(name, list, more)
  if not list or #list == 0 then return self:note("%s: not measured", name) end
  local row = stat(list)
  row.name = name
  for key, value in pairs(more or {}) do row[key] = value end
  table.insert(self.rows, row)
  return row
end

function Table:note(...) table.insert(self.notes, (string.format(...))) end

-- Check a required bound; `value` is nil if it could not be measured.
function Table:target(text, value, bound, at_least)
  if not value then return end
  local met = at_least and value >= bound or not at_least and value <= bound
  table.insert(self.targets, { text = text, value = value, bound = bound, at_least = at_least or false, met = met })
end

function Table:find(name)
  for _, row in ipairs(self.rows) do
    if row.name == name then return row end
  end
end

-- Return the median of one row divided by that of another.
function Table:times(name, of)
  local a, b = self:find(name), self:find(of)
  return a and b and a.median / b.median
end

function Table:print()
  local lines = { { self.title .. ", " .. self.unit, "median", "min", "max" } }
  for _, name in ipairs(self.baselines) do table.insert(lines[1], "x " .. name) end
  for _, row in ipairs(self.rows) do
    local line = { row.name, short(row.median), short(row.min), short(row.max) }
    row.ratio = {}
    for _, name in ipairs(self.baselines) do
      local base = self:find(name)
      if base then row.ratio[name] = row.median / base.median end
      table.insert(line, base and short(row.median / base.median) or "-")
    end
    if row.remark then table.insert(line, row.remark) end
    table.insert(lines, line)
  end
  local width = {}
  for _, line in ipairs(lines) do
    for i, cell in ipairs(line) do width[i] = math.max(width[i] or 0, utf8.len(cell)) end
  end
  print()
  for _, line in ipairs(lines) do
    local text = {}
    for i, cell in ipairs(line) do
      local pad = (" "):rep(width[i] - utf8.len(cell))
      local left = i == 1 or i > 4 + #self.baselines
      text[i] = left and cell .. pad or pad .. cell
    end
    print((table.concat(text, "  "):gsub(" +$", "")))
  end
  for _, note in ipairs(self.notes) do print("  " .. note) end
  for _, t in ipairs(self.targets) do
    print(("  target: %s: %s (%s %s): %s"):format(t.text, short(t.value), t.at_least and "at least" or "at most",
      short(t.bound), t.met and "met" or "MISSED"))
  end
  io.stdout:flush()
end

-- ----------------------------------------------------------------------- main

local wanted = {}
local i = 1
while i <= #arg do
  local a = arg[i]
  if a == "--quick" then
    B.quick = true
  elseif a == "--record" then
    B.record = true
  elseif a == "-o" then
    i = i + 1
    B.out = arg[i] or fail "-o takes a file"
  elseif parts[a] then
    wanted[a] = true
  else
    fail("unknown part '%s'; there are %s, and --quick, --record, -o FILE", a, table.concat(order, ", "))
  end
  i = i + 1
end
if not next(wanted) then
  -- each takes as long as all others together, or measures one command
  local long = { libraries = true, simulated = true, nccl = true, place = true, congestion = true,
    step = true, losses = true, playground = true }
  for _, name in ipairs(order) do wanted[name] = not long[name] end
end
os.execute("mkdir -p " .. B.dir)

local function cpu()
  for line in io.lines "/proc/cpuinfo" do
    local name = line:match "^model name%s*:%s*(.*)"
    if name then return name end
  end
  return "?"
end

local function memory()
  local total = first_line "sed -n 's/^MemTotal: *\\([0-9]*\\).*/\\1/p' /proc/meminfo"
  return tonumber(total) // 1048576
end

local result = {
  date = os.date "!%Y-%m-%dT%H:%M:%SZ",
  quick = B.quick,
  command = "scripts/lab/bench " .. table.concat(arg, " "),
  machine = {
    cpu = cpu(), cores = tonumber(first_line "nproc"), memory_gib = memory(), kernel = first_line "uname -sr",
    system = first_line "sed -n 's/^PRETTY_NAME=\"\\(.*\\)\"/\\1/p' /etc/os-release",
    load = first_line "cut -d' ' -f1-3 /proc/loadavg",
  },
  versions = {
    moongrid = first_line "build/moongrid --version" or "?",
    commit = first_line "git describe --always --dirty" or "?",
    compiler = first_line "${CC:-cc} --version" or "?",
    lua = first_line "lua5.4 -v" or "?",
    mpi = first_line "mpirun --version" or "none",
    torch = B.torch or "none",
    megatron = B.megatron() or os.getenv "MEGATRON" and "of unknown version" or "none",
    valgrind = first_line "valgrind --version" or "none",
  },
  parts = {},
}
print(("%s · %s · %d cores · %d GiB · %s"):format(result.date, result.machine.cpu, result.machine.cores,
  result.machine.memory_gib, result.machine.system))
for _, name in ipairs { "moongrid", "commit", "compiler", "lua", "mpi", "torch", "megatron", "valgrind" } do
  print(("%-9s %s"):format(name, result.versions[name]))
end

for _, name in ipairs(order) do
  if wanted[name] then
    B.tables = {}
    local keep = parts[name](B)
    local written = { tables = {}, values = keep }
    for _, t in ipairs(B.tables) do
      t:print()
      table.insert(written.tables, { title = t.title, unit = t.unit, baselines = t.baselines, rows = t.rows,
        notes = t.notes, targets = t.targets })
    end
    result.parts[name] = written
  end
end

dofile "scripts/make/whole.lua" (B.out, json.encode(result, { indent = true }) .. "\n")
print(("\nwritten: %s"):format(B.out))
