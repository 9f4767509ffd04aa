/* SPDX-License-Identifier: MIT
**
** bundled.c - load Lua that is embedded in the library, and ask lua/prelude/hints.lua, which is loaded by need.
*/
#include "recipe/bind.h"
#include "recipe/bundle.h"

#include <string.h>

const mgrid_chunk *mgrid_bundle_find(const mgrid_chunk *list, const char *name) {
  while (list->name && strcmp(list->name, name) != 0) list++;
  return list->name ? list : NULL;
}

int mgrid_bundle_load(lua_State *L, const mgrid_chunk *c) {
  char name[64];
  snprintf(name, sizeof name, "=%s", c->name);
  if (c->binary && strstr(lua_ident, mgrid_bundle_release)) {
    if (luaL_loadbufferx(L, (const char *)c->binary, c->binary_size, name, "b") == LUA_OK) return LUA_OK;
    lua_pop(L, 1); /* binary for another number format, or no memory: try the text */
  }
  return luaL_loadbufferx(L, (const char *)c->text, c->text_size, name, "t");
}

void mgrid_bundle_push(lua_State *L, const char *name) {
  char path[64];
  snprintf(path, sizeof path, "moongrid/%s.lua", name);
  const mgrid_chunk *c = mgrid_bundle_find(mgrid_prelude, path);
  if (!c) mgrid_lua_raise(L, "there is no %s in the prelude", path);
  if (mgrid_bundle_load(L, c)) lua_error(L);
}

/* nearest(name, list of at most 32 names) -> the one that may be meant | nil */
static int nearest(lua_State *L) {
  const char *known[32];
  size_t      n = 0;
  lua_settop(L, 2);
  mgrid_lua_stack(L, 32);
  while (n < 32 && lua_rawgeti(L, 2, (lua_Integer)n + 1) == LUA_TSTRING) known[n++] = lua_tostring(L, -1);
  lua_pushstring(L, mgrid_nearest(luaL_checkstring(L, 1), known, n));
  return 1;
}

static const char hints_key = 'h'; /* its address: what hints.lua returned, once there was an error */

void mgrid_lua_hint(lua_State *L, const char *question, int given, int answers) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &hints_key) != LUA_TTABLE) {
    lua_pop(L, 1);
    mgrid_bundle_push(L, "hints");
    lua_pushcfunction(L, nearest);
    lua_call(L, 1, 1);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &hints_key);
  }
  lua_getfield(L, -1, question);
  lua_replace(L, -2);
  lua_insert(L, -given - 1);
  lua_call(L, given, answers);
}
