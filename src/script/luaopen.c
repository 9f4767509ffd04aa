/* SPDX-License-Identifier: MIT
**
** luaopen.c - moongrid.so: the name that `require "moongrid"` looks for.
*/
#include "moongrid_lua.h"

#include <lua.h>

MGRID_API int luaopen_moongrid(lua_State *L);

int luaopen_moongrid(lua_State *L) { return mgrid_lua_open(L); }
