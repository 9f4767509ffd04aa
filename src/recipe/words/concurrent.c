/* SPDX-License-Identifier: MIT
**
** concurrent.c - for Lua: which families of a topology are used at the same time.
*/
#include "recipe/budget.h"

/* Raise at the position in the third argument, "file:line: ", if there is one; else at that of Lua. */
static int fail(lua_State *L, mgrid_status status, const char *text) {
  if (lua_type(L, 3) != LUA_TSTRING) return mgrid_lua_raise_as(L, status, "%s", text);
  mgrid_lua_note(L, status, text);
  lua_pushvalue(L, 3);
  lua_pushstring(L, text);
  lua_concat(L, 2);
  return lua_error(L);
}

static int no_list(lua_State *L, const char *what) {
  char text[160];
  snprintf(text, sizeof text, "concurrent is a list of families' names, or a list of such lists; this %s", what);
  return fail(L, MGRID_BAD_VALUE, text);
}

/* Check that the table at i is a list of values of one type, and return its length. */
static lua_Integer check_list(lua_State *L, int i, int type) {
  lua_Integer n = (lua_Integer)lua_rawlen(L, i);
  mgrid_lua_charge(L, n < INT64_MAX / 16 ? 16 * n : n);
  n = mgrid_lua_length(L, i);
  if (n < 0) no_list(L, "has names for its values, or gaps");
  for (lua_Integer k = 1; k <= n; k++) {
    if (lua_rawgeti(L, i, k) != type) no_list(L, lua_pushfstring(L, "has %s in it", mgrid_lua_kind(L, -1)));
    lua_pop(L, 1);
  }
  return n;
}

static void put_list(lua_State *L, int i, mgrid_topology *t) {
  size_t       n = (size_t)check_list(L, i, LUA_TSTRING);
  const char **names = lua_newuserdatauv(L, (n + 1) * sizeof *names, 0);
  mgrid_error  e = MGRID_ERROR_INIT;
  for (size_t k = 0; k < n; k++) {
    lua_rawgeti(L, i, (lua_Integer)k + 1);
    names[k] = lua_tostring(L, -1); /* the list holds it */
    lua_pop(L, 1);
  }
  mgrid_budget *budget = mgrid_lua_work(L);
  mgrid_status  s = mgrid_concurrent_add(t, n, names, budget, &e);
  mgrid_lua_charge(L, 0);
  if (s) fail(L, e.status, e.message);
  mgrid_lua_weigh_topology(L, 1);
  lua_pop(L, 1);
}

int mgrid_lua_concurrent_at(lua_State *L) {
  mgrid_topology *t = mgrid_lua_check_topology(L, 1);
  lua_settop(L, 3);
  if (lua_type(L, 2) != LUA_TTABLE) return no_list(L, lua_pushfstring(L, "is %s", mgrid_lua_kind(L, 2)));
  int first = lua_rawgeti(L, 2, 1);
  if (first == LUA_TSTRING) {
    put_list(L, 2, t);
    return 0;
  }
  lua_Integer n = check_list(L, 2, LUA_TTABLE); /* an empty list: nothing is used at the same time */
  for (lua_Integer k = 1; k <= n; k++) {
    lua_rawgeti(L, 2, k);
    put_list(L, lua_gettop(L), t);
    lua_pop(L, 1);
  }
  return 0;
}

int mgrid_lua_concurrent(lua_State *L) {
  if (lua_type(L, 2) == LUA_TSTRING)
    return mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "concurrent takes a list of names: concurrent(t, { \"%s\", ... })",
                              lua_tostring(L, 2));
  lua_settop(L, 2);
  return mgrid_lua_concurrent_at(L);
}
