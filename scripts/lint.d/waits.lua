-- SPDX-License-Identifier: MIT
--
-- waits.lua          list the public calls that wait for other ranks, as scripts/lab/faults strikes them:
--                    "c/mgrid_open", "lua/Group:allreduce", "python/State.prove", "run/step"
-- waits.lua check    print a line for each public function that reaches a wait and is not documented as
--                    collective, and for each collective call that no fault test reaches
--
-- The documentation is the comments of the public headers, the annotations of Lua, the docstrings of Python, and the
-- files of `moongrid run`. The tests are in the tables of tests/mpi/calls.c, calls.lua and calls.py; EXCUSED lists
-- calls without a test.

local headers = dofile "scripts/make/headers.lua"

local gpus = "needs GPUs: nccl_failures_spec, nccl_survivors_spec, rccl_spec"
local local_alone = "local: its text says that other functions are collective"
local recovers = "needs ranks that MPI reports lost: scripts/lab/survive, tests/mpi/survive.c"
local torch = "its waits and deadlines are those of torch.distributed"
local EXCUSED = {
  ["c/mgrid_mpi_backend_f"] = "mgrid_mpi_backend, by an INTEGER of Fortran",
  ["c/mgrid_backend_over"] = gpus,
  ["c/mgrid_state_shrink"] = gpus,
  ["c/mgrid_state_suspend"] = gpus .. "; over MPI it does nothing",
  ["c/mgrid_state_resume"] = gpus .. "; over MPI it does nothing",
  ["lua/State:suspend"] = gpus .. "; over MPI it does nothing",
  ["lua/State:resume"] = gpus .. "; over MPI it does nothing",
  ["c/mgrid_state_recover"] = recovers,
  ["c/mgrid_policy_agreed"] = local_alone,
  ["c/mgrid_mpi_native_f"] = local_alone,
  ["lua/moongrid.nccl"] = gpus,
  ["lua/moongrid.rccl"] = gpus,
  ["lua/moongrid.pmix"] = "carrier_spec stops ranks of PMIx",
  ["lua/State:recover"] = recovers,
  ["python/Policy.agreed"] = local_alone,
}
-- Functions that reach a wait in the code, but do not wait.
local LOCAL = {
  ["c/mgrid_losses_new"] = "uses a dry backend, which has one process",
  ["c/mgrid_losses_after"] = "likewise",
  ["c/mgrid_losses_free"] = "likewise",
  ["c/mgrid_state_leave"] = "frees what no other rank shares",
  ["lua/lose"] = "likewise",
  ["lua/losses"] = "likewise",
  ["lua/has_step"] = "evaluates the recipe here",
  ["lua/dry"] = "one process stands for a rank",
  ["python/dry"] = "likewise",
}

local function read(path)
  local file = assert(io.open(path))
  local text = file:read "a"
  file:close()
  return text
end

local function lines_of(command)
  local pipe, all = assert(io.popen(command)), {}
  for line in pipe:lines() do all[#all + 1] = line end
  pipe:close()
  return all
end

local function says_so(text)
  return text:find "Collective" or text:find "is collective" or text:find "collective over"
end

-- Functions that are documented as collective --------------------------------------

local listed, public, order = {}, {}, {}

local function put(id)
  if not listed[id] then order[#order + 1] = id end
  listed[id] = true
end

for _, name in ipairs(headers.names) do
  if name == "moongrid_lua" then break end -- it pushes values
  local _, text = headers.header_of(name)
  for _, item in ipairs(headers.items_of(text or "")) do
    local comment = table.concat(item.comment or {}, " ")
    for _, row in ipairs(item.code) do
      local called = row.code:match "([%w_]+)%(" -- not of a function type: those begin with typedef
      if called and called:find "^mgrid_" and not row.code:find "^typedef" then
        public[called] = true
        if says_so(comment .. " " .. (row.comment or "")) then put("c/" .. called) end
      end
    end
  end
end

for _, path in ipairs(lines_of "LC_ALL=C ls lua/moongrid/meta*.lua") do
  local block = ""
  for line in (read(path) .. "\n"):gmatch "([^\n]*)\n" do
    local called = line:match "^function ([%w_.:]+)%("
    if called and says_so(block) then put("lua/" .. called) end
    block = line:find "^%-%-%-" and block .. " " .. line:sub(4) or ""
  end
end

local python = {} -- id -> the text of the function
for _, path in ipairs(lines_of "LC_ALL=C ls src/python/moongrid/*.py") do
  local module, class = path:match "([%w_]+)%.py$", nil
  local of = module:find "^torch" and "torch." or ""
  local id
  for line in (read(path) .. "\n"):gmatch "([^\n]*)\n" do
    if line:find "^%S" and not line:find "^def" then class = line:match "^class ([%w_]+)" end
    local indent, name = line:match "^(%s*)def ([%w_]+)%("
    if name and #indent <= 4 then id = "python/" .. of .. (#indent > 0 and class and class .. "." or "") .. name end
    if line:find "^%S" and not name and not line:find "^%)" then id = nil end
    if id then python[id] = (python[id] or "") .. line .. "\n" end
  end
end
local sorted = {}
for id in pairs(python) do sorted[#sorted + 1] = id end
table.sort(sorted)
for _, id in ipairs(sorted) do
  local doc = python[id]:match '"""(.-)"""'
  if doc and says_so(doc) then put(id) end
  if listed[id] and id:find "^python/torch%." then EXCUSED[id] = torch end
end

put "run/recipe"
for _, path in ipairs(lines_of "LC_ALL=C ls lua/command/run/*.lua") do -- the options of `run` beside creation
  put("run/" .. path:match "(%w+)%.lua$")
end

-- What is tested -------------------------------------------------------------------

local tested = {}
for name in read "tests/mpi/calls.c":gmatch '{ "(mgrid_[%w_]+)", ' do tested["c/" .. name] = true end
for name in read "tests/mpi/calls.lua":gmatch '%["([%w.:_]+)"%] = ' do tested["lua/" .. name] = true end
for name in read "tests/mpi/calls.py":gmatch '"([%w._]+)": ' do tested["python/" .. name] = true end
for name in read "scripts/lab/faults":gmatch "\n *run/([%w-]+)%)" do tested["run/" .. name] = true end

-- What reaches a wait --------------------------------------------------------------

-- The operations of backends that wait, and the function with the waiting loop.
local WAITS = { "mgrid_wait%(" }
for of, names in pairs {
  ops = "allreduce_min allgather bcast create prove collective together suspend growth grow remake shrink close "
    .. "connect",
  carrier = "start send recv", transport = "connect", survival = "settle find rest", watch = "connect"
} do
  for name in names:gmatch "%S+" do WAITS[#WAITS + 1] = "%f[%w]" .. of .. "%->" .. name .. "%(" end
end

-- file -> name -> text of a function; name -> file; methods of Lua
local bodies, globals, methods = {}, {}, {}
for _, path in ipairs(lines_of "find src -name '*.c' | LC_ALL=C sort") do
  local own, name, text = {}, nil, nil
  for line in (read(path) .. "\n"):gmatch "([^\n]*)\n" do
    local opened = line:match "^[%a].-([%w_]+)%(" or (name and not text and "")
    if text and line == "}" then
      own[name], name, text = text, nil, nil
    elseif text then
      text = text .. line .. "\n"
    elseif opened then
      if opened ~= "" then
        name = opened
        if not line:find "^static" then globals[name] = path end
      end
      if line:find "{$" then text = "" end
      if line:find ";$" then name = nil end
      if line:find "{.*}$" then own[name or ""], name, text = line:match "{(.*)}$", nil, nil end
    end
  end
  bodies[path] = own
  if path:find "/words/" or path:find "/lua/" then
    for method, called in read(path):gmatch '{ "([%w_]+)", ([%w_]+) }' do
      methods[#methods + 1] = { method = method, called = called, path = path }
    end
  end
end

local reaches = {}
local function does(path, name)
  local key = path .. ":" .. name
  if reaches[key] ~= nil then return reaches[key] end
  reaches[key] = false -- until it is known; this also ends circles
  local text = bodies[path][name] or ""
  for _, wait in ipairs(WAITS) do
    if text:find(wait) then reaches[key] = true end
  end
  for called in text:gmatch "[%a_][%w_]+" do
    if reaches[key] then break end
    local to = bodies[path][called] and path or globals[called]
    if to and called ~= name and does(to, called) then
      reaches[key] = true
    end
  end
  return reaches[key]
end

-- ----------------------------------------------------------------------------------

if arg[1] ~= "check" then
  for _, id in ipairs(order) do
    if not EXCUSED[id] then print(id) end
  end
  return
end

for _, id in ipairs(order) do
  if not tested[id] and not EXCUSED[id] then
    print(id .. " waits for other ranks, and no fault test reaches it: add it to tests/mpi/calls.*, or to EXCUSED")
  end
end
local function all_of(set)
  local list = {}
  for name in pairs(set) do list[#list + 1] = name end
  table.sort(list)
  return list
end
for _, id in ipairs(all_of(EXCUSED)) do
  if not listed[id] then print(id .. " is in EXCUSED of waits.lua, but is not documented as collective") end
end
local used = {}
local function complain(id, text)
  used[id] = true
  if not LOCAL[id] then print(text) end
end
for _, name in ipairs(all_of(public)) do
  if globals[name] and not listed["c/" .. name] and does(globals[name], name) then
    complain("c/" .. name, name .. " reaches a wait for other ranks, and its comment does not say so: Collective")
  end
end
for _, m in ipairs(methods) do
  local found = false
  for id in pairs(listed) do found = found or id:match "^lua/.*[.:]([%w_]+)$" == m.method end
  local to = bodies[m.path][m.called] and m.path or globals[m.called]
  if not found and not m.method:find "^__" and to and does(to, m.called) then
    complain("lua/" .. m.method, ("%s of %s reaches a wait for other ranks, and its annotation does not say so: "
      .. "Collective"):format(m.method, m.path))
  end
end
for _, id in ipairs(all_of(python)) do
  for name in python[id]:gmatch "mgrid_[%w_]+" do
    if listed["c/" .. name] and not listed[id] then
      complain(id, ("%s calls %s, and its docstring does not say that it is collective"):format(id, name))
      break
    end
  end
end
for _, id in ipairs(all_of(LOCAL)) do
  if not used[id] then
    print(id .. " is in LOCAL of scripts/lint.d/waits.lua, but reaches no wait, or is documented as collective")
  end
end
