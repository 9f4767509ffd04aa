-- SPDX-License-Identifier: MIT
--
-- luajit ffi.lua HEADER LIBRARY: a host of LuaJIT, which has the header without its macros (cc -E) and the library, and
-- no C compiler. Structs are cleared, and their size set.

local ffi = require "ffi"
local text = io.open(arg[1]):read("*a"):gsub("static inline ([^{;]*)%b{}", "%1;")
ffi.cdef(text)
local mg = ffi.load(arg[2])

local function new(type)
  local x = ffi.new(type)
  x.size = ffi.sizeof(type)
  return x
end

local e = new "mgrid_error"
local rt = mg.mgrid_runtime_new(new "mgrid_limits", new "mgrid_hooks", e)
mg.mgrid_runtime_load(rt, "megatron", nil, 0, e)
local args = ffi.new("mgrid_arg[2]")
args[0] = mg.mgrid_arg_integer("tp", 2)
args[1] = mg.mgrid_arg_integer("pp", 2)
local plan = mg.mgrid_runtime_plan_values(rt, 8, 2, args, e)
local backend = mg.mgrid_backend_dry(8, 3, e)
local state = mg.mgrid_materialize(plan, backend, "job", e)
local dp = mg.mgrid_state_group(state, "dp", e)
print(ffi.string(mg.mgrid_version()), ffi.string(e.message), tonumber(mg.mgrid_group_size(dp)),
  tonumber(mg.mgrid_group_position(dp)), tonumber(mg.mgrid_group_at(dp, 1)))
local found = new "mgrid_resources"
mg.mgrid_plan_resources(plan, 0, new "mgrid_site", found, e)
print(tonumber(found.communicators), ffi.string(e.message))
local opening = new "mgrid_open_options"
opening.limits = new "mgrid_limits"
local other = mg.mgrid_open(backend, "picotron", 0, nil, opening, e)
print(other ~= nil, ffi.string(e.message))
mg.mgrid_state_free(other)
mg.mgrid_state_free(state)
mg.mgrid_backend_free(backend)
mg.mgrid_plan_free(plan)
mg.mgrid_runtime_free(rt)
