/* SPDX-License-Identifier: MIT
**
** moongrid_lua.h - the Lua module, for a host that has its own state of Lua 5.4 or 5.5:
**
**     luaL_requiref(L, "moongrid", mgrid_lua_open, 0);
**
** The module is in libmoongrid_lua, which such a host links beside libmoongrid and the liblua5.4.so
** of its state (pkg-config moongrid_lua; for 5.5 build it with make LUAV=5.5). Scripts get the same
** module by `require "moongrid"`. Recipes never run in the host's state: each mgrid_runtime has a
** Lua state of its own.
*/
#ifndef MOONGRID_LUA_H
#define MOONGRID_LUA_H

#include "moongrid.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lua_State;

/* A lua_CFunction: push the table of the module, return 1. Raise in L if out of memory. */
MGRID_API int mgrid_lua_open(struct lua_State *L);

/* Hand an object to scripts: push its userdata, nil for NULL, and return 1. The classes are
**     "Grid" of an mgrid_grid
**     "Family" of an mgrid_family
**     "Topology" of an mgrid_topology
**     "Plan" of an mgrid_plan
**     "Move" of an mgrid_move
**     "State" of an mgrid_state
**     "Group" of an mgrid_group
**     "Job" of an mgrid_backend
**     "Recipe" of an mgrid_runtime
** `object` must be of the type of the class. The userdata is one more owner, so host and script may
** give up their owners in any order. The call raises in L, and leaks nothing, if memory runs out,
** for another class, or before mgrid_lua_open in L.
**
** A script gives up a State by state:close(), which is collective if the script is the last owner.
** If Lua collects the State instead, the state stays until the backend ends. A group keeps its
** state. Over a backend `job:materialize(plan)` makes states. A Family has no options; a Topology
** or Plan has the options of its families. Host and script may both change a topology. A runtime
** becomes a Recipe as mg.load returns it, with the limits, hooks and functions
** (mgrid_runtime_function) of the runtime. The call raises for a runtime that another copy of
** libmoongrid_lua made. */
MGRID_API int mgrid_lua_push(struct lua_State *L, const char *class_name, const void *object);
/* Return the object of the userdata at index i. NULL: the value is not of that class, or closed.
** The object is borrowed: to keep it, the host adds an owner (mgrid_plan_ref). This neither raises
** nor changes the stack. */
MGRID_API void *mgrid_lua_to(struct lua_State *L, int i, const char *class_name);

#ifdef __cplusplus
}
#endif
#endif
