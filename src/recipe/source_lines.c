/* SPDX-License-Identifier: MIT
**
** source_lines.c - the lines of a recipe that families come from, kept only on request (moongrid explain).
*/
#include "recipe/budget.h"

#include <limits.h>
#include <string.h>

static const char
    trail_key; /* its address: the registry key of the table Family -> { source, line, the Family it is of } */

void mgrid_lua_trail_begin(lua_State *L) {
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "k"); /* families that are gone are not needed */
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &trail_key);
}

void mgrid_lua_trail_add(lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &trail_key) != LUA_TTABLE) {
    lua_pop(L, 1);
    return;
  }
  lua_Debug ar;
  bool      found = mgrid_lua_caller(L, &ar);
  lua_pushvalue(L, -2); /* the family; below it the table */
  lua_createtable(L, 3, 0);
  lua_pushstring(L, found ? ar.source : "");
  lua_rawseti(L, -2, 1);
  lua_pushinteger(L, found ? ar.currentline : 0);
  lua_rawseti(L, -2, 2);
  if (luaL_testudata(L, 1, MGRID_LUA_FAMILY)) {
    lua_pushvalue(L, 1);
    lua_rawseti(L, -2, 3);
  }
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

/* Append the lines that the family on the top comes from to the list below it, the first one first. Pop the family. */
static void places(lua_State *L) {
  enum { DEEP = 64 };
  int list = lua_gettop(L) - 1, depth = 0;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &trail_key);
  int trail = lua_gettop(L);
  mgrid_lua_stack(L, 2 * DEEP + 8);
  for (lua_pushvalue(L, list + 1); depth < DEEP && lua_rawget(L, trail) == LUA_TTABLE; depth++) lua_rawgeti(L, -1, 3);
  for (lua_pop(L, 1); lua_gettop(L) > trail; lua_pop(L, 1)) {
    lua_rawgeti(L, -1, 1);
    lua_rawgeti(L, -2, 2);
    const char *source = lua_tostring(L, -2);
    char        path[PATH_MAX];
    bool        named = *source == '@' || *source == '=';
    mgrid_budget_path(L, source + named, strlen(source + named), path, sizeof path);
    lua_pushfstring(L, "%s:%d", path, (int)lua_tointeger(L, -1));
    lua_rawseti(L, list, (lua_Integer)lua_rawlen(L, list) + 1);
    lua_pop(L, 2);
  }
  lua_settop(L, list);
}

void mgrid_lua_trail_push(lua_State *L, int topology) {
  lua_newtable(L);
  lua_getiuservalue(L, topology, 1);
  for (lua_pushnil(L); mgrid_lua_next(L, -2);) { /* all, held, name, what */
    if (!luaL_testudata(L, -1, MGRID_LUA_FAMILY)) {
      lua_pop(L, 1);
      continue;
    }
    lua_newtable(L);
    lua_insert(L, -2);
    places(L);
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, -5);
  }
  lua_pop(L, 1);
}
