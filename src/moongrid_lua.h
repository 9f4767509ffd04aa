/* SPDX-License-Identifier: MIT
**
** moongrid_lua.h - the Lua module for a host that has a Lua 5.4 state of its own:
**
**     luaL_requiref(L, "moongrid", mgrid_lua_open, 0);
**
** It is in libmoongrid_lua, which such a host links beside libmoongrid and the liblua5.4.so of its state (pkg-config
** moongrid_lua). Scripts find the same by `require "moongrid"`. Recipes never run in the host's state: each
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

#ifdef __cplusplus
}
#endif
#endif
