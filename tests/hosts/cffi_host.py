# SPDX-License-Identifier: MIT
"""cffi_host.py HEADER LIBRARY: the host of ffi.lua, in Python over cffi."""
import re
import sys

import cffi

text = re.sub(r"__attribute__\(\(.*?\)\)\)?", "", open(sys.argv[1]).read())
text = re.sub(r"static inline ([^{;]*)\{.*?\n\}", r"\1;", text, flags=re.S)
ffi = cffi.FFI()
ffi.cdef(text)
mg = ffi.dlopen(sys.argv[2])


def new(type):
    x = ffi.new(type + " *")
    x.size = ffi.sizeof(type)
    return x


e = new("mgrid_error")
rt = mg.mgrid_runtime_new(new("mgrid_limits"), new("mgrid_hooks"), e)
mg.mgrid_runtime_load(rt, b"megatron", ffi.NULL, 0, e)
names = ffi.new("char[]", b"tp"), ffi.new("char[]", b"pp")
args = ffi.new("mgrid_arg[2]")  # libffi returns no unions
for arg, name in zip(args, names):
    arg.size, arg.name, arg.kind, getattr(arg, "as").integer = ffi.sizeof("mgrid_arg"), name, mg.MGRID_IS_INTEGER, 2
plan = mg.mgrid_runtime_plan_values(rt, 8, 2, args, e)
backend = mg.mgrid_backend_dry(8, 3, e)
state = mg.mgrid_materialize(plan, backend, b"job", e)
dp = mg.mgrid_state_group(state, b"dp", e)
print(ffi.string(mg.mgrid_version()).decode(), ffi.string(e.message).decode(), mg.mgrid_group_size(dp),
      mg.mgrid_group_position(dp), mg.mgrid_group_at(dp, 1), sep="\t")
found = new("mgrid_resources")
mg.mgrid_plan_resources(plan, 0, new("mgrid_site"), found, e)
print(found.communicators, ffi.string(e.message).decode(), sep="\t")
limits = new("mgrid_limits")
opening = new("mgrid_open_options")
opening.limits = limits
other = mg.mgrid_open(backend, b"picotron", 0, ffi.NULL, opening, e)
print("true" if other else "false", ffi.string(e.message).decode(), sep="\t")
mg.mgrid_state_free(other)
mg.mgrid_state_free(state)
mg.mgrid_backend_free(backend)
mg.mgrid_plan_free(plan)
mg.mgrid_runtime_free(rt)
