/* SPDX-License-Identifier: MIT
**
** moongrid_lua.h - the Lua module for a host that has a state of Lua 5.4 of its own, or of 5.5:
**
**     luaL_requiref(L, "moongrid", mgrid_lua_open, 0);
**
** It is in libmoongrid_lua, which such a host links beside libmoongrid and the liblua5.4.so of its state (pkg-config
** moongrid_lua; for 5.5 build it with make LUAV=5.5). Scripts find the same by `require "moongrid"`. Recipes never run
** in the host's state: each mgrid_runtime has one of its own.
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

/* Hand an object to scripts: push its userdata, nil for NULL, and return 1. The userdata is one more owner, so host and
** script may free theirs in any order. If out of memory, or before mgrid_lua_open in L, they raise in L and leak
** nothing.
**
** A state: the script gives up its owner by state:close(), which is collective if it is the last one. If Lua collects
** the State instead, the state stays until the backend ends. A group keeps its state. A backend is the Job of a script:
** `job:materialize(plan)` makes states over it. A family has no options; a topology or plan has those of its families.
** Host and script may both change a topology. */
MGRID_API int mgrid_lua_push_grid(struct lua_State *L, const mgrid_grid *g);
MGRID_API int mgrid_lua_push_family(struct lua_State *L, const mgrid_family *f);
MGRID_API int mgrid_lua_push_topology(struct lua_State *L, mgrid_topology *t);
MGRID_API int mgrid_lua_push_plan(struct lua_State *L, const mgrid_plan *p);
MGRID_API int mgrid_lua_push_backend(struct lua_State *L, mgrid_backend *b);
MGRID_API int mgrid_lua_push_state(struct lua_State *L, mgrid_state *s);
MGRID_API int mgrid_lua_push_group(struct lua_State *L, const mgrid_group *g);
/* A runtime is the Recipe of a script, as mg.load returns, but with the limits, hooks and functions that the host gave
** it (mgrid_runtime_function). Raise for a runtime that another copy of libmoongrid_lua has made. */
MGRID_API int mgrid_lua_push_runtime(struct lua_State *L, mgrid_runtime *rt);

/* Take an object from a script: return that of the userdata at index i; NULL if the value is something else or closed.
** Borrowed: to keep it, the host adds an owner (mgrid_plan_ref). These neither raise nor change the stack. */
MGRID_API mgrid_grid        *mgrid_lua_to_grid(struct lua_State *L, int i);
MGRID_API mgrid_family      *mgrid_lua_to_family(struct lua_State *L, int i);
MGRID_API mgrid_topology    *mgrid_lua_to_topology(struct lua_State *L, int i);
MGRID_API mgrid_plan        *mgrid_lua_to_plan(struct lua_State *L, int i);
MGRID_API mgrid_backend     *mgrid_lua_to_backend(struct lua_State *L, int i);
MGRID_API mgrid_state       *mgrid_lua_to_state(struct lua_State *L, int i);
MGRID_API const mgrid_group *mgrid_lua_to_group(struct lua_State *L, int i);
MGRID_API mgrid_runtime     *mgrid_lua_to_runtime(struct lua_State *L, int i);

#ifdef MOONGRID_TENSOR_H /* the same for moves */
MGRID_API int         mgrid_lua_push_move(struct lua_State *L, mgrid_move *m);
MGRID_API mgrid_move *mgrid_lua_to_move(struct lua_State *L, int i);
#endif

#ifdef __cplusplus
}
#endif
#endif
