/* SPDX-License-Identifier: MIT
**
** luaopen.c - moongrid.so, which `require "moongrid"` loads. It does not contain Lua: it uses the
** functions of the interpreter that loads it. They are weak symbols (Makefile), so a function that
** the interpreter lacks is NULL.
*/
#include "moongrid_lua.h"

#include <lua.h>
#include <lauxlib.h>

#pragma weak lua_getglobal
#pragma weak lua_newuserdatauv

MGRID_API int luaopen_moongrid(lua_State *L);

/* Return the version of the interpreter, such as "Lua 5.1". This calls only functions that every
** Lua has since 5.1. */
static const char *luaopen_version(lua_State *L) {
  enum { GLOBALS_OF_5_1 = -10002 };
  if (lua_getglobal)
    lua_getglobal(L, "_VERSION");
  else
    lua_getfield(L, GLOBALS_OF_5_1, "_VERSION");
  const char *s = lua_tolstring(L, -1, NULL);
  return s ? s : "an unknown Lua";
}

int luaopen_moongrid(lua_State *L) {
  /* before 5.4, lua_version returns a pointer */
  bool ours = lua_newuserdatauv && lua_version(L) == LUA_VERSION_NUM;
  return ours ? mgrid_lua_open(L)
              : luaL_error(L, "moongrid is built for " LUA_VERSION ", and this is %s",
                           luaopen_version(L));
}
