-- SPDX-License-Identifier: MIT
--
-- What the specs share: commands with their output, temporary files.

local M = {}

-- What is in a file.
function M.read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("a")
  file:close()
  return text
end

function M.exists(path)
  local file = io.open(path)
  return file ~= nil and file:close()
end

local read = M.read

-- run(command line) -> stdout, stderr, exit code. Never longer than 120 seconds.
function M.run(line)
  local out, err = os.tmpname(), os.tmpname()
  local file = assert(io.open(out .. ".sh", "w"))
  file:write(line, "\n")
  file:close()
  local _, _, code = os.execute(("timeout 120 bash %s.sh >%s 2>%s </dev/null"):format(out, out, err))
  local text, message = read(out), read(err)
  os.remove(out)
  os.remove(err)
  os.remove(out .. ".sh")
  return text, message, code
end

-- A command line of moongrid that is refused with one message, and nothing else.
function M.refuses(line, code, message)
  local assert = require "luassert"
  local out, err, got = M.run("build/moongrid " .. line)
  assert.equal(message .. "\n", err)
  assert.equal("", out)
  assert.equal(code, got)
end

-- Lines are as long as the terminal is wide: the words alone.
function M.flat(text) return (text:gsub("%s+", " ")) end

-- launch(ranks, command line): the same under mpirun, without the launcher's own words
function M.launch(ranks, line)
  local out, err, code = M.run(("scripts/launch %d %s"):format(ranks, line))
  local ours = {}
  for text in err:gmatch("[^\n]+") do
    if text:find("^moongrid:") then ours[#ours + 1] = text .. "\n" end
  end
  return out, table.concat(ours), code
end

-- A temporary file with a text; its path ends in .lua.
function M.file(text)
  local name = os.tmpname()
  os.remove(name)
  local file = assert(io.open(name .. ".lua", "wb"))
  file:write(text)
  file:close()
  return name .. ".lua"
end

-- The version, which src/moongrid.h says, and that of the interface, which is in the names of the libraries.
M.version = read "src/moongrid.h":match '#define MGRID_VERSION +"([%d.]+)"'
M.interface = M.version:match "^%d+%.%d+"

-- What a command line writes to a terminal, as lines; a line that is begun anew is one more. The exit code.
function M.on_terminal(columns, line, rows)
  local out, _, code = M.run(("script -qec 'stty cols %d rows %d; %s' /dev/null"):format(columns, rows or 0, line))
  local lines = {}
  for text in out:gsub("\r\n", "\n"):gsub("\r", "\n"):gmatch "[^\n]+" do lines[#lines + 1] = text end
  return lines, code
end

-- The backends with a library, in the order of their rows; makers: those that make communicators, carried: those that
-- stand on a carrier.
M.backends, M.makers, M.carried = {}, {}, {}
for name, row in read "src/comm/backend_table.h":gmatch "\nROW%((%w+)(.-)%)\n" do
  table.insert(M.backends, name)
  if row:find "%.native" then table.insert(M.makers, name) end
  if row:find "%.carried" then table.insert(M.carried, name) end
end

-- "mpi, nccl or rccl"
function M.either(names)
  return table.concat(names, ", ", 1, #names - 1) .. " or " .. names[#names]
end

return M
