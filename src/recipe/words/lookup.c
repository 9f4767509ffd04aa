/* SPDX-License-Identifier: MIT
**
** lookup.c - userdata whose fields cost no more than those of a Lua table.
*/
#include "recipe/words/lookup.h"

const char mgrid_lua_state_key = 's', mgrid_lua_group_key = 'g';

void mgrid_lua_own_metatable(lua_State *L, const char *class, const char *key, lua_CFunction missing) {
  int box = lua_gettop(L);
  lua_createtable(L, 0, 12);
  luaL_getmetatable(L, class);
  for (lua_pushnil(L); mgrid_lua_next(L, box + 2);) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, box + 1);
  }
  lua_pop(L, 1);
  lua_pushboolean(L, 1);
  lua_rawsetp(L, box + 1, key);
  lua_createtable(L, 0, 12); /* the answers */
  lua_createtable(L, 0, 1);
  lua_pushvalue(L, box);
  lua_pushcclosure(L, missing, 1);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
  lua_pushvalue(L, -1);
  lua_setiuservalue(L, box, MGRID_ANSWERS);
  lua_setfield(L, box + 1, "__index");
  lua_setmetatable(L, box);
}

void *mgrid_lua_test_own(lua_State *L, int i, const char *key) {
  if (lua_type(L, i) != LUA_TUSERDATA || !lua_getmetatable(L, i)) return NULL;
  bool own = lua_rawgetp(L, -1, key) == LUA_TBOOLEAN;
  lua_pop(L, 2);
  return own ? lua_touserdata(L, i) : NULL;
}

void *mgrid_lua_check_own(lua_State *L, int i, const char *class, const char *key) {
  void *box = mgrid_lua_test_own(L, i, key);
  if (!box) luaL_typeerror(L, i, class);
  return box;
}

void mgrid_lua_keep_answer(lua_State *L, int answers, const char *name) {
  answers = lua_absindex(L, answers);
  lua_pushstring(L, name);
  lua_pushvalue(L, -2);
  lua_rawset(L, answers);
}
