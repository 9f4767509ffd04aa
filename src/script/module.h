/* SPDX-License-Identifier: MIT
**
** module.h - the Lua module: `require "moongrid"`, or luaL_requiref from a host that has a
** Lua state of its own.
*/
#ifndef MGRID_MODULE_H
#define MGRID_MODULE_H

#include "moongrid.h"

#include <lua.h>

MGRID_API int mgrid_lua_open(lua_State *L); /* a lua_CFunction: pushes the module's table */

#endif
