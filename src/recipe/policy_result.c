/* SPDX-License-Identifier: MIT
**
** policy_result.c - read the result of a policy by path: "layers[0].first". Nothing here allocates or raises in Lua:
** only raw accesses are used, and keys are compared with the path, not created.
*/
#include "recipe/policy.h"

#include "recipe/entry.h"

#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = { "nothing",           "a boolean",      "an integer",
                                          "a number",          "text",           "a list of integers",
                                          "a list of numbers", "a table by key", "a list" };

/* -------------------------------------------------------------------------- path */

/* One step of a path: a key, or an index where key is NULL. */
typedef struct step {
  const char *key;
  size_t      length;
  int64_t     index;
} step;

/* Read the first step of *path and move *path after it; false if it is malformed. */
static bool next_step(const char **path, bool first, step *out) {
  const char *at = *path;
  *out = (step){ NULL, 0, 0 };
  if (*at == '[' && at[1] == '"') { /* ["a key that is not a name"] */
    const char *end = strstr(at + 2, "\"]");
    if (!end) return false;
    *out = (step){ at + 2, (size_t)(end - at - 2), 0 };
    *path = end + 2;
  } else if (*at == '[') {
    char *end;
    if (at[1] < '0' || at[1] > '9') return false;
    out->index = strtoll(at + 1, &end, 10);
    if (*end != ']') return false;
    *path = end + 1;
  } else {
    if (!first && *at++ != '.') return false;
    *out = (step){ at, strcspn(at, ".["), 0 };
    if (out->length == 0) return false;
    *path = at + out->length;
  }
  return true;
}

static bool is_key(lua_State *L, int at, const step *s) {
  size_t      length = 0;
  const char *key = lua_type(L, at) == LUA_TSTRING ? lua_tolstring(L, at, &length) : NULL;
  return key && length == s->length && memcmp(key, s->key, length) == 0;
}

/* Replace the table on the top by its value at one step; nil if there is none. */
static void enter(lua_State *L, const step *s) {
  int table = lua_gettop(L);
  if (lua_type(L, table) != LUA_TTABLE) {
    lua_pushnil(L);
  } else if (!s->key) {
    lua_rawgeti(L, table, s->index < INT64_MAX ? s->index + 1 : 0);
  } else {
    for (lua_pushnil(L); mgrid_lua_next(L, table); lua_pop(L, 1))
      if (is_key(L, -2, s)) break;
    if (lua_gettop(L) == table) lua_pushnil(L);
  }
  lua_replace(L, table);
  lua_settop(L, table);
}

/* Return the kind of the list on the top: integers, numbers, or any. */
static mgrid_kind list_kind(lua_State *L) {
  bool whole = true;
  for (lua_Integer i = 1, n = (lua_Integer)lua_rawlen(L, -1); i <= n; i++) {
    int type = lua_rawgeti(L, -1, i);
    whole &= lua_isinteger(L, -1) != 0;
    lua_pop(L, 1);
    if (type != LUA_TNUMBER) return MGRID_IS_LIST;
  }
  return whole ? MGRID_IS_INTEGERS : MGRID_IS_NUMBERS;
}

/* Push the value at the path (nil if there is none) and return its kind. */
static mgrid_kind push_at(const mgrid_policy *p, const char *path) {
  lua_State  *L = p->rt->L;
  const char *at = path ? path : "";
  step        s;
  if (p->result == LUA_NOREF)
    lua_pushnil(L);
  else
    lua_rawgeti(L, LUA_REGISTRYINDEX, p->result);
  while (*at) {
    if (!next_step(&at, at == path, &s)) {
      lua_pop(L, 1);
      lua_pushnil(L);
      break;
    }
    enter(L, &s);
  }
  switch (lua_type(L, -1)) {
  case LUA_TBOOLEAN: return MGRID_IS_BOOLEAN;
  case LUA_TNUMBER: return lua_isinteger(L, -1) ? MGRID_IS_INTEGER : MGRID_IS_NUMBER;
  case LUA_TSTRING: return MGRID_IS_TEXT;
  case LUA_TTABLE: return lua_rawlen(L, -1) > 0 ? list_kind(L) : MGRID_IS_TABLE;
  default: return MGRID_IS_NONE;
  }
}

mgrid_kind mgrid_script_policy_kind(const mgrid_policy *p, const char *path) {
  mgrid_kind k = push_at(p, path);
  lua_settop(p->rt->L, 0);
  return k;
}

static mgrid_status wrong_kind(const mgrid_policy *p, const char *path, mgrid_kind is, mgrid_kind wanted,
                               mgrid_error *err) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_fail(&e, MGRID_BAD_VALUE, "%spolicy '%s' returned %s%s%s%s, not %s", p->where, p->name, kind_names[is],
             path && *path ? " at '" : "", path ? path : "", path && *path ? "'" : "", kind_names[wanted]);
  mgrid_budget_position(p->rt->L, &e);
  return mgrid_error_pass(err, &e);
}

/* ------------------------------------------------------------------------ values */

mgrid_status mgrid_script_policy_boolean(const mgrid_policy *p, const char *path, bool *out, mgrid_error *err) {
  mgrid_kind is = push_at(p, path);
  if (is == MGRID_IS_BOOLEAN) *out = lua_toboolean(p->rt->L, -1);
  lua_settop(p->rt->L, 0);
  return is == MGRID_IS_BOOLEAN ? MGRID_OK : wrong_kind(p, path, is, MGRID_IS_BOOLEAN, err);
}

mgrid_status mgrid_script_policy_integer(const mgrid_policy *p, const char *path, int64_t *out, mgrid_error *err) {
  mgrid_kind is = push_at(p, path);
  int        whole = 0;
  if (is == MGRID_IS_INTEGER || is == MGRID_IS_NUMBER) *out = lua_tointegerx(p->rt->L, -1, &whole);
  lua_settop(p->rt->L, 0);
  return whole ? MGRID_OK : wrong_kind(p, path, is, MGRID_IS_INTEGER, err);
}

mgrid_status mgrid_script_policy_number(const mgrid_policy *p, const char *path, double *out, mgrid_error *err) {
  mgrid_kind is = push_at(p, path);
  bool       number = is == MGRID_IS_INTEGER || is == MGRID_IS_NUMBER;
  if (number) *out = lua_tonumber(p->rt->L, -1);
  lua_settop(p->rt->L, 0);
  return number ? MGRID_OK : wrong_kind(p, path, is, MGRID_IS_NUMBER, err);
}

mgrid_status mgrid_script_policy_text(const mgrid_policy *p, const char *path, const char **out, mgrid_error *err) {
  mgrid_kind is = push_at(p, path);
  if (is == MGRID_IS_TEXT) *out = lua_tostring(p->rt->L, -1); /* lives as long as the result */
  lua_settop(p->rt->L, 0);
  return is == MGRID_IS_TEXT ? MGRID_OK : wrong_kind(p, path, is, MGRID_IS_TEXT, err);
}

/* ------------------------------------------------------------------------- lists */

/* Copy the list on the top into one of the arrays; an empty table is an empty list. */
static mgrid_status copy_list(const mgrid_policy *p, const char *path, mgrid_kind is, mgrid_kind wanted,
                              int64_t *integers, double *numbers, size_t room, size_t *length, mgrid_error *err) {
  lua_State *L = p->rt->L;
  size_t     n = lua_type(L, -1) == LUA_TTABLE ? lua_rawlen(L, -1) : 0;
  bool       empty = is == MGRID_IS_TABLE && n == 0 && (lua_pushnil(L), mgrid_lua_next(L, -2) == 0);
  int        fits = is == MGRID_IS_INTEGERS || is == MGRID_IS_NUMBERS || empty;
  bool       all = wanted == MGRID_IS_INTEGERS; /* also those beyond `room` must be whole numbers */
  for (size_t i = 0; fits && i < n && (i < room || all); i++) {
    lua_rawgeti(L, -1, (lua_Integer)i + 1);
    int64_t whole = all ? lua_tointegerx(L, -1, &fits) : 0;
    if (all && i < room) integers[i] = whole;
    if (!all) numbers[i] = lua_tonumber(L, -1);
    lua_pop(L, 1);
  }
  lua_settop(L, 0);
  if (length) *length = fits ? n : 0;
  return fits ? MGRID_OK : wrong_kind(p, path, is, wanted, err);
}

mgrid_status mgrid_script_policy_integers(const mgrid_policy *p, const char *path, size_t cap, int64_t *out,
                                          size_t *length, mgrid_error *err) {
  mgrid_kind is = push_at(p, path);
  return copy_list(p, path, is, MGRID_IS_INTEGERS, out, NULL, cap, length, err);
}

mgrid_status mgrid_script_policy_numbers(const mgrid_policy *p, const char *path, size_t cap, double *out,
                                         size_t *length, mgrid_error *err) {
  mgrid_kind is = push_at(p, path);
  return copy_list(p, path, is, MGRID_IS_NUMBERS, NULL, out, cap, length, err);
}

/* ------------------------------------------------------------------------ tables */

static bool is_table(mgrid_kind k) {
  return k == MGRID_IS_TABLE || k == MGRID_IS_LIST || k == MGRID_IS_INTEGERS || k == MGRID_IS_NUMBERS;
}

mgrid_status mgrid_script_policy_length(const mgrid_policy *p, const char *path, size_t *out, mgrid_error *err) {
  lua_State *L = p->rt->L;
  mgrid_kind is = push_at(p, path);
  if (is == MGRID_IS_TABLE)
    for (lua_pushnil(L); mgrid_lua_next(L, -2); lua_pop(L, 1)) ++*out;
  else if (is_table(is))
    *out = lua_rawlen(L, -1);
  lua_settop(L, 0);
  return is_table(is) ? MGRID_OK : wrong_kind(p, path, is, MGRID_IS_TABLE, err);
}

/* Insert a key into the sorted list of the `room` smallest keys so far. */
static size_t insert(const char **keys, size_t n, size_t room, const char *key) {
  size_t at = n;
  while (at > 0 && strcmp(keys[at - 1], key) > 0) at--;
  if (at == room) return n;
  size_t last = n < room ? n : room - 1;
  memmove(keys + at + 1, keys + at, (last - at) * sizeof *keys);
  keys[at] = key;
  return last + 1;
}

mgrid_status mgrid_script_policy_keys(const mgrid_policy *p, const char *path, size_t cap, const char **out,
                                      size_t *length, mgrid_error *err) {
  lua_State *L = p->rt->L;
  mgrid_kind is = push_at(p, path);
  size_t     n = 0, all = 0;
  if (is == MGRID_IS_TABLE)
    for (lua_pushnil(L); mgrid_lua_next(L, -2); lua_pop(L, 1)) {
      if (lua_type(L, -2) != LUA_TSTRING) continue;
      n = insert(out, n, cap, lua_tostring(L, -2)); /* lives as long as the result */
      all++;
    }
  lua_settop(L, 0);
  if (length) *length = all;
  return is == MGRID_IS_TABLE ? MGRID_OK : wrong_kind(p, path, is, MGRID_IS_TABLE, err);
}
