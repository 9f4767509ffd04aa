/* SPDX-License-Identifier: MIT
**
** key_order.c - the keys of a table in one order. lua_next has the order of a hash table, which
** differs between processes because of a seed and addresses. A recipe must not see that order: not
** in a message, not in which error comes first, and not in anything that is made from the table.
*/
#include "recipe/bind.h"

#include <string.h>

/* The classes of keys, in their order. Of two keys in OTHER, only the names of their types are
** compared, because addresses differ between processes. */
enum { NUMBER, STRING, BOOLEAN, OTHER };

enum { LONG = 1024 }; /* comparing two strings is charged if both have so many bytes */

static int key_order_class_of(lua_State *L, int i) {
  switch (lua_type(L, i)) {
  case LUA_TNUMBER: return NUMBER;
  case LUA_TSTRING: return STRING;
  case LUA_TBOOLEAN: return BOOLEAN;
  default: return OTHER;
  }
}

/* Return whether string a is before b. Compare bytes, because strcoll depends on the locale. */
static bool string_before(lua_State *L, int a, int b) {
  size_t la, lb;
  const char *sa = lua_tolstring(L, a, &la), *sb = lua_tolstring(L, b, &lb);
  if (sa == sb) return false;
  size_t len = la < lb ? la : lb;
  /* for short strings, a charge would take longer than the comparison */
  if (len >= LONG) mgrid_lua_charge(L, (int64_t)(len / 8));
  int c = memcmp(sa, sb, len);
  return c ? c < 0 : la < lb;
}

bool mgrid_lua_key_before(lua_State *L, int a, int b) {
  int ca = key_order_class_of(L, a), cb = key_order_class_of(L, b);
  if (ca != cb) return ca < cb;
  if (ca == NUMBER) return lua_compare(L, a, b, LUA_OPLT);
  if (ca == STRING) return string_before(L, a, b);
  if (ca == BOOLEAN) return lua_toboolean(L, a) < lua_toboolean(L, b);
  int top = lua_gettop(L);
  const char *ka = mgrid_lua_kind(L, a), *kb = mgrid_lua_kind(L, b);
  bool before = strcmp(ka, kb) < 0;
  lua_settop(L, top);
  return before;
}

/* Merge two sorted runs of the list at `from`, [lo, mid) and [mid, hi), into the list at `to`. */
static void key_order_merge(lua_State *L, int from, int to, lua_Integer lo, lua_Integer mid,
                            lua_Integer hi, mgrid_lua_before *before) {
  lua_Integer i = lo, j = mid;
  for (lua_Integer k = lo; k < hi; k++) {
    bool right = i >= mid;
    if (!right && j < hi) {
      lua_geti(L, from, j + 1);
      lua_geti(L, from, i + 1);
      /* only if it is strictly before, so that the sort is stable */
      right = before(L, lua_gettop(L) - 1, lua_gettop(L));
      lua_pop(L, 2);
    }
    lua_geti(L, from, (right ? j++ : i++) + 1);
    lua_seti(L, to, k + 1);
  }
}

/* Sort by merging, bottom up, into a second list and back. Charge `work` for each level. */
static void key_order_sort(lua_State *L, int list, lua_Integer n, lua_Integer work,
                           mgrid_lua_before *before) {
  lua_createtable(L, (int)n, 0);
  int from = list, to = lua_gettop(L);
  for (lua_Integer run = 1; run < n; run *= 2) {
    if (work) mgrid_lua_charge(L, work);
    for (lua_Integer lo = 0; lo < n; lo += 2 * run) {
      lua_Integer mid = lo + run < n ? lo + run : n, hi = lo + 2 * run < n ? lo + 2 * run : n;
      key_order_merge(L, from, to, lo, mid, hi, before);
    }
    int swap = from;
    from = to, to = swap;
  }
  if (from != list)
    for (lua_Integer i = 1; i <= n; i++) {
      lua_geti(L, from, i);
      lua_seti(L, list, i);
    }
  lua_pop(L, 1);
}

void mgrid_lua_sort(lua_State *L, int list, lua_Integer n, mgrid_lua_before *before) {
  mgrid_lua_charge(L, n < INT32_MAX ? 4 * n : n);
  key_order_sort(L, list, n, 4 * n, before);
}

/* Sort a list of a few names, which most tables have: sort pointers to the names, and write the
** list once. False: nothing is done, because the list has more than FEW members, or a member that
** is not a short string. */
static bool sort_names(lua_State *L, int list, lua_Integer n) {
  enum { FEW = 64 };

  struct {
    const char *text;
    size_t len;
    lua_Integer at;
  } name[FEW];
  bool moved = false;
  if (n > FEW) return false;
  for (lua_Integer i = 0; i < n; i++) {
    if (lua_rawgeti(L, list, i + 1) != LUA_TSTRING) return lua_pop(L, 1), false;
    size_t len, k = (size_t)i;
    const char *text = lua_tolstring(L, -1, &len);
    lua_pop(L, 1);
    if (len >= LONG) return false;
    for (; k > 0; k--) {
      int c = memcmp(text, name[k - 1].text, len < name[k - 1].len ? len : name[k - 1].len);
      if (c > 0 || (c == 0 && len > name[k - 1].len)) break;
      name[k] = name[k - 1];
    }
    name[k].text = text, name[k].len = len, name[k].at = i + 1;
    moved |= k < (size_t)i;
  }
  if (!moved) return true;
  mgrid_lua_stack(L, (int)n);
  for (lua_Integer i = 0; i < n; i++) lua_rawgeti(L, list, name[i].at);
  for (lua_Integer i = n; i > 0; i--) lua_rawseti(L, list, i);
  return true;
}

static bool is_sorted(lua_State *L, int list, lua_Integer n) {
  for (lua_Integer i = 1; i < n; i++) {
    lua_rawgeti(L, list, i);
    lua_rawgeti(L, list, i + 1);
    bool after = mgrid_lua_key_before(L, lua_gettop(L), lua_gettop(L) - 1);
    lua_pop(L, 2);
    if (after) return false;
  }
  return true;
}

enum { SOME = 256 }; /* fewer keys are free, because messages sort their names */

lua_Integer mgrid_lua_keys(lua_State *L, int i) {
  lua_Integer n = 0;
  i = lua_absindex(L, i);
  mgrid_lua_charge(L, 1); /* check the clock: a large table takes long even after it was emptied */
  mgrid_lua_stack(L, 12);
  lua_newtable(L);
  int list = lua_gettop(L);
  for (lua_pushnil(L); lua_next(L, i);) {
    lua_pop(L, 1);
    if (n % SOME == SOME - 1) mgrid_lua_charge(L, 32 * SOME);
    lua_pushvalue(L, -1);
    lua_rawseti(L, list, ++n);
  }
  if (!sort_names(L, list, n) && !is_sorted(L, list, n))
    key_order_sort(L, list, n, n < SOME ? 0 : 4 * n, mgrid_lua_key_before);
  return n;
}

bool mgrid_lua_step(lua_State *L, int i, int keys, lua_Integer *k) {
  i = lua_absindex(L, i);
  if (lua_rawgeti(L, keys, ++*k) == LUA_TNIL) {
    lua_pop(L, 1);
    return false;
  }
  lua_pushvalue(L, -1);
  lua_rawget(L, i);
  return true;
}

size_t mgrid_lua_names(lua_State *L, int i, const char **names, size_t most) {
  size_t n = 0;
  lua_Integer k = 0;
  mgrid_lua_keys(L, i);
  for (int keys = lua_gettop(L); mgrid_lua_step(L, i, keys, &k); lua_pop(L, 2))
    if (n < most && lua_type(L, -2) == LUA_TSTRING) names[n++] = lua_tostring(L, -2);
  lua_pop(L, 1);
  return n;
}

int mgrid_lua_next(lua_State *L, int i) { return lua_next(L, i); }

lua_Integer mgrid_lua_length(lua_State *L, int i) {
  lua_Integer n = 0, most = 0;
  bool list = true;
  i = lua_absindex(L, i);
  mgrid_lua_charge(L, 1);
  for (lua_pushnil(L); lua_next(L, i); lua_pop(L, 1), n++) {
    lua_Integer key = lua_isinteger(L, -2) ? lua_tointeger(L, -2) : 0;
    list = list && key >= 1;
    if (key > most) most = key;
    if (n % SOME == SOME - 1) mgrid_lua_charge(L, 8 * SOME);
  }
  return list && most == n ? n : -1;
}
