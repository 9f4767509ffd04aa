/* SPDX-License-Identifier: MIT
**
** moongrid_lua.h - the Lua module for a host that has a state of Lua 5.4 of its own, or of 5.5:
**
**     luaL_requiref(L, "moongrid", mgrid_lua_open, 0);
**
** It is in libmoongrid_lua, which such a host links beside libmoongrid and the liblua5.4.so of its state (pkg-config
** moongrid_lua; for 5.5 it is built by make LUAV=5.5). Scripts find the same by `require "moongrid"`. Recipes never run in the host's state: each
** mgrid_runtime has one of its own.
*/
#ifndef MOONGRID_LUA_H
#define MOONGRID_LUA_H

#include "moongrid.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lua_State;

/* A lua_CFunction: pushes the table of the module, returns 1. Raises in L when memory is out. */
MGRID_API int mgrid_lua_open(struct lua_State *L);

/* Hand an object to scripts: push the userdata that they know, nil for NULL, and return 1. The userdata is one more owner, so
** host and script may let go in any order. These raise in L, and leak nothing, when memory is out or mgrid_lua_open has not
** run in L.
** A state: the script's owner goes with state:close(), which is collective if it is the last one; a State that Lua collects
** instead stays until the backend ends. A group holds its state. A backend is the Job of a script: `job:materialize(plan)`
** makes states over it. A family has no options; a topology or plan has those of its families. A topology may be changed on
** both sides. */
MGRID_API int mgrid_lua_push_grid(struct lua_State *L, const mgrid_grid *g);
MGRID_API int mgrid_lua_push_family(struct lua_State *L, const mgrid_family *f);
MGRID_API int mgrid_lua_push_topology(struct lua_State *L, mgrid_topology *t);
MGRID_API int mgrid_lua_push_plan(struct lua_State *L, const mgrid_plan *p);
MGRID_API int mgrid_lua_push_backend(struct lua_State *L, mgrid_backend *b);
MGRID_API int mgrid_lua_push_state(struct lua_State *L, mgrid_state *s);
MGRID_API int mgrid_lua_push_group(struct lua_State *L, const mgrid_group *g);
/* A runtime is the Recipe of a script, as that of mg.load, but with the limits, hooks and functions that the host gave it
** (mgrid_runtime_function). Raise for a runtime that another copy of libmoongrid_lua has made. */
MGRID_API int mgrid_lua_push_runtime(struct lua_State *L, mgrid_runtime *rt);

/* Take an object from a script: return that of the userdata at index i, NULL if the value is something else or closed. It is
** borrowed: the host takes a share of its own (mgrid_plan_ref) to keep it. They neither raise nor change the stack. */
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
