/* SPDX-License-Identifier: MIT
**
** relabel_words.c - relabel(was, now [, { pieces, weights }]) for Lua (mgrid_relabel).
*/
#include "tensors/lua/tensor_words.h"

#include <inttypes.h>

/* Push the list of integers at i as an array, and return the array. If *n is 0, set *n to the
** length of the list; otherwise the list must have length *n. Messages call the list `what`. */
static int64_t *relabel_read_list(lua_State *L, int i, const char *what, size_t *n) {
  if (lua_type(L, i) != LUA_TTABLE)
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "relabel: %s are %s, not a list of integers", what,
                       mgrid_lua_kind(L, i));

  size_t len = mgrid_lua_charge_list(L, i, 8);
  if (*n == 0) *n = len;
  if (len == 0) mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "relabel: %s are an empty table", what);
  if (len > (size_t)MGRID_WORLD_MAX)
    mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "relabel: %s are more than %" PRId64 " numbers", what,
                       MGRID_WORLD_MAX);
  if (len != *n)
    mgrid_lua_raise_as(L, MGRID_REFUSED,
                       "relabel: %s are %" PRId64 " numbers, the owners before %" PRId64, what,
                       (int64_t)len, (int64_t)*n);

  mgrid_lua_reserve(L, (int64_t)len, sizeof(int64_t));
  int64_t *list = lua_newuserdatauv(L, len * sizeof *list, 0);
  for (size_t k = 0; k < len; k++) {
    if (lua_rawgeti(L, i, (lua_Integer)k + 1) != LUA_TNUMBER || !lua_isinteger(L, -1))
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                         "relabel: element %" PRId64 " of %s is %s, not an integer", (int64_t)k + 1,
                         what, mgrid_lua_kind(L, -1));
    list[k] = lua_tointeger(L, -1);
    lua_pop(L, 1);
  }
  return list;
}

/* Return the new owners, and the sum of the weights of the elements that stay. */
int mgrid_lua_relabel(lua_State *L) {
  static const char *const known[] = { "pieces", "weights" };
  mgrid_error e = MGRID_ERROR_INIT;
  size_t n = 0;
  int64_t pieces = 0, kept, *weights = NULL;

  lua_settop(L, 3);
  mgrid_lua_stack(L, 16);
  int64_t *was = relabel_read_list(L, 1, "the owners before", &n),
          *now = relabel_read_list(L, 2, "the new owners", &n);
  for (size_t i = 0; i < n; i++)
    if (now[i] >= pieces && now[i] < INT64_MAX) pieces = now[i] + 1;
  if (!lua_isnil(L, 3)) {
    luaL_checktype(L, 3, LUA_TTABLE);
    mgrid_lua_check_keys(L, 3, "option of relabel", known, 2, false);
    if (lua_getfield(L, 3, "pieces") != LUA_TNIL) pieces = mgrid_lua_check_integer(L, -1);
    if (lua_getfield(L, 3, "weights") != LUA_TNIL)
      weights = relabel_read_list(L, lua_gettop(L), "the weights", &n);
  }
  /* charge an eighth of the greatest number of steps, because most sets take fewer */
  if (pieces > 0 && pieces <= INT32_MAX) {
    int64_t shares = (int64_t)n < pieces ? (int64_t)n : pieces;
    mgrid_lua_charge(L, shares < 4096 ? shares * shares * pieces / 8 : INT64_MAX);
    mgrid_lua_reserve(L, 7 * pieces + (int64_t)n, sizeof(int64_t));
  }
  if (mgrid_relabel(n, was, now, weights, pieces, now, &kept, &e))
    mgrid_lua_raise_as(L, e.status, "relabel: %s", e.message);
  MGRID_LUA_LIST(L, n, lua_pushinteger(L, now[i]));
  lua_pushinteger(L, kept);
  return 2;
}
