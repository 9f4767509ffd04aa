/* SPDX-License-Identifier: MIT
**
** userdata.c - fuzz target: calls of everything that the Lua module gives to a host's interpreter,
** in any order and with any arguments, while garbage is collected at nearly every allocation, and
** allocations fail. userdata.lua does the calls.
*/
#include "fuzz.h"

#include "moongrid_lua.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "gen/userdata.h"

static void *allocate(void *ud, void *block, size_t was, size_t bytes) {
  (void)ud, (void)was;
  if (bytes > 0) return bytes > (size_t)64 << 20 ? NULL : realloc(block, bytes);
  free(block);
  return NULL;
}

/* Let an allocation fail from now on: the library's, or of Lua. */
static int fail(lua_State *L) {
  until_failure = (long)luaL_checkinteger(L, 1);
  return 0;
}

static int run(lua_State *L) {
  static const char recipe[] =
      "return recipe { params = { tp = 2 }, build = function(world, p)\n"
      "  local g, t = grid(world, 'tp-dp', { tp = p.tp, dp = fill }), topology(world)\n"
      "  t.grid, t.tp, t.dp = g, g 'tp', g 'dp' return t end,\n"
      "queries = { world_size = function(s) return s.world end }, settings = { training = "
      "param.flag(true) },\n"
      "getters = { one = 'tp' }, policy = { one = function(s, q) return { s.tp.size, q.a } end } "
      "}\n";
  const bytes *b = lua_touserdata(L, 1);
  luaL_openlibs(L);
  luaL_requiref(L, "moongrid", mgrid_lua_open, 0);
  luaL_loadbuffer(L, driver, sizeof driver, "=driver");
  lua_pushvalue(L, -2);
  lua_pushlstring(L, (const char *)b->at, (size_t)(b->end - b->at));
  lua_newtable(L);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    lua_pushstring(L, names[i]), lua_rawseti(L, -2, (lua_Integer)i + 1);
  lua_pushcfunction(L, fail);
  lua_pushstring(L, fuzz_file(".lua", recipe, sizeof recipe - 1));
  lua_call(L, 5, 0);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  bytes b = { data, data + size };
  lua_State *L = lua_newstate(allocate, NULL);
  if (!L) return 0;
  if (byte(&b) & 1) lua_gc(L, LUA_GCINC, 1, 1000, 5); /* a cycle begins when one has ended */
  lua_pushcfunction(L, run);
  lua_pushlightuserdata(L, &b);
  if (lua_pcall(L, 1, 0, 0) != LUA_OK) { /* the driver itself ends early only where memory does */
    const char *message = lua_tostring(L, -1);
    if (message && !strstr(message, "memory")) fprintf(stderr, "%s\n", message), abort();
  }
  until_failure = -1;
  lua_close(L);
  return 0;
}
