-- SPDX-License-Identifier: MIT
--
-- Shared by the specs: commands with their output, temporary files.

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

-- Messages without the line of the recipe that the command quotes below them (faults_spec has those). The parser's own
-- stay: they are part of what a host sees.
function M.unquoted(messages)
  return (messages:gsub("([^\n]+)(\n  [^\n]*\n *%^)", function(message)
    return not message:find " near '" and message or nil
  end))
end

-- run(command line) -> stdout, stderr (unquoted), exit code. Never longer than 300 seconds.
function M.run(line)
  local out, err = os.tmpname(), os.tmpname()
  M.write(out .. ".sh", line .. "\n")
  local _, _, code = os.execute(("timeout 300 bash %s.sh >%s 2>%s </dev/null"):format(out, out, err))
  local text, message = read(out), M.unquoted(read(err))
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

-- Write a text to a file; its path.
function M.write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
  return path
end

-- A new empty folder.
function M.folder()
  local name = os.tmpname()
  os.remove(name)
  M.run("mkdir " .. name)
  return name
end

-- Removed when this process ends; the registry of Lua keeps them until then, whatever specs do.
local temporary = setmetatable({}, { __gc = function(paths) for _, path in ipairs(paths) do os.remove(path) end end })
debug.getregistry()[temporary] = true

function M.removed(path) table.insert(temporary, path) end

-- A temporary file with a text; its path ends in .lua.
function M.file(text)
  local name = os.tmpname()
  os.remove(name)
  M.removed(name .. ".lua")
  return M.write(name .. ".lua", text)
end

-- A command on ranks over the stand-in for NCCL, with `env` in front. M.tag names its objects in shared memory, since
-- other tests may run on this machine; M.clean removes those of processes that were killed.
M.tag = os.tmpname():match "[%w]+$"
function M.clean() M.run("rm -f /dev/shm/mg-standin-" .. M.tag .. "-*") end
function M.on_standin(ranks, command, env)
  M.clean()
  return M.run(("export LUA_CPATH_5_4='build/?.so;;' LUA_PATH_5_4='lua/?.lua;;'; LD_LIBRARY_PATH=build/standin "
    .. "STANDIN_TAG=%s STANDIN_DEADLINE=30 %s scripts/launch %d %s"):format(M.tag, env or "", ranks, command))
end

-- What rank 0 says on stderr, without its name.
function M.of_rank_0(err)
  local list = {}
  for text in err:gmatch "moongrid: %[rank 0/%d+%] ([^\n]*)" do list[#list + 1] = text end
  return table.concat(list, "\n")
end

-- The version, which src/moongrid.h says, and that of the interface, which is in the names of the libraries.
M.version = read "src/moongrid.h":match '#define MGRID_VERSION +"([%d.]+)"'
M.interface = M.version:match "^%d+"

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
for name, row in read "src/plan/backend_table.h":gmatch "\nROW%((%w+)(.-)%)\n" do
  table.insert(M.backends, name)
  if row:find "%.native" then table.insert(M.makers, name) end
  if row:find "%.carried" then table.insert(M.carried, name) end
end

-- "mpi, nccl or rccl"
function M.either(names)
  return table.concat(names, ", ", 1, #names - 1) .. " or " .. names[#names]
end

-- What 8 ranks need of bundled recipes whose sizes must make the world, and whose defaults do not.
M.fitting = {
  accelerate = { dp_shard_size = 8 }, xdit = { data_parallel_degree = 8 },
  sglang_diffusion = { data_parallel_size = 8 },
}

return M
