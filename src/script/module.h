/* SPDX-License-Identifier: MIT
**
** module.h - the Lua module: `require "moongrid"`, or luaL_requiref from a host that has a
** Lua state of its own.
*/
#ifndef MG_MODULE_H
#define MG_MODULE_H

#include "moongrid.h"

#include <lua.h>

MG_API int mg_lua_open(lua_State *L); /* a lua_CFunction: pushes the module's table */

#endif
