/* SPDX-License-Identifier: MIT
**
** result.c - values of Lua as C values: the arguments of a host's function, and the result of a
** query or policy, of which a path such as "layers[0].first" selects a part.
**
** Only raw accesses follow a path, so neither a scalar nor a refusal needs memory. The arrays of a
** list or table are userdata, which are kept in one table with the result. So they count as memory
** of the recipe, and live as long as the result.
*/
#include "recipe/result.h"

#include "recipe/prelude.h"
#include "recipe/values.h"

#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------------- C values */

/* Return the kind of the list at i: of integers, of numbers, or of any values. */
static mgrid_kind list_kind(lua_State *L, int i) {
  bool whole = true;
  for (lua_Integer k = 1, n = (lua_Integer)lua_rawlen(L, i); k <= n; k++) {
    int type = lua_rawgeti(L, i, k);
    whole &= lua_isinteger(L, -1) != 0;
    lua_pop(L, 1);
    if (type != LUA_TNUMBER) return MGRID_IS_LIST;
  }
  return whole ? MGRID_IS_INTEGERS : MGRID_IS_NUMBERS;
}

char *mgrid_arg_array(const mgrid_arg_maker *c, size_t n, size_t each) {
  char *array = lua_newuserdatauv(c->L, n * each + 1, 0);
  lua_rawsetp(c->L, c->kept, array);
  return array;
}

static void result_put(const mgrid_arg_maker *c, int i, mgrid_arg *a);

void mgrid_arg_put(const mgrid_arg_maker *c, char *array, size_t k, const char *name) {
  mgrid_arg a = MGRID_ARG_INIT;
  result_put(c, lua_gettop(c->L), &a);
  a.name = name, a.size = c->each;
  memset(array + k * c->each, 0, c->each);
  memcpy(array + k * c->each, &a, c->each < sizeof a ? c->each : sizeof a);
  lua_pop(c->L, 1);
}

/* Set *a to the n numbers in the list at i, as integers or as doubles. */
static void put_numbers(const mgrid_arg_maker *c, int i, size_t n, bool integers, mgrid_arg *a) {
  /* elements are int64_t or double, of equal size */
  void *array = mgrid_arg_array(c, n, sizeof(int64_t));
  int64_t *integer = array;
  double *number = array;
  for (size_t k = 0; k < n; k++, lua_pop(c->L, 1)) {
    lua_rawgeti(c->L, i, (lua_Integer)k + 1);
    if (integers)
      integer[k] = lua_tointeger(c->L, -1);
    else
      number[k] = lua_tonumber(c->L, -1);
  }
  if (integers)
    *a = mgrid_arg_integers(NULL, n, integer);
  else
    *a = mgrid_arg_numbers(NULL, n, number);
}

static void put_table(const mgrid_arg_maker *c, int i, mgrid_arg *a) {
  lua_State *L = c->L;
  size_t n = (size_t)lua_rawlen(L, i), k = 0;

  if (n > 0) {
    mgrid_kind is = list_kind(L, i);
    if (is != MGRID_IS_LIST) {
      put_numbers(c, i, n, is == MGRID_IS_INTEGERS, a);
      return;
    }
    char *array = mgrid_arg_array(c, n, c->each);
    for (; k < n; k++) lua_rawgeti(L, i, (lua_Integer)k + 1), mgrid_arg_put(c, array, k, NULL);
    *a = mgrid_arg_list(NULL, n, (const mgrid_arg *)array);
    return;
  }
  n = (size_t)mgrid_lua_keys(L, i);
  int keys = lua_gettop(L);
  char *array = mgrid_arg_array(c, n, c->each);
  for (lua_Integer at = 0; mgrid_lua_step(L, i, keys, &at);)
    if (lua_type(L, -2) == LUA_TSTRING)
      mgrid_arg_put(c, array, k++, lua_tostring(L, -2)), lua_pop(L, 1); /* pops the key */
    else
      lua_pop(L, 2);
  lua_settop(L, keys - 1);
  *a = mgrid_arg_table(NULL, k, (const mgrid_arg *)array);
}

/* Set *a to the plain value at i. Its texts point to the strings of Lua. */
static void result_put(const mgrid_arg_maker *c, int i, mgrid_arg *a) {
  mgrid_lua_stack(c->L, 8);

  switch (lua_type(c->L, i)) {
  case LUA_TBOOLEAN: *a = mgrid_arg_boolean(NULL, lua_toboolean(c->L, i)); return;
  case LUA_TNUMBER:
    if (lua_isinteger(c->L, i))
      *a = mgrid_arg_integer(NULL, lua_tointeger(c->L, i));
    else
      *a = mgrid_arg_number(NULL, lua_tonumber(c->L, i));
    return;
  case LUA_TSTRING:
    if (c->function && !mgrid_lua_is_whole(c->L, i))
      mgrid_lua_raise_as(c->L, MGRID_BAD_VALUE, "%s: a text has a zero byte in it", c->function);
    *a = mgrid_arg_text(NULL, lua_tostring(c->L, i));
    return;
  case LUA_TTABLE:
    if (lua_getmetatable(c->L, i))
      mgrid_lua_raise_as(c->L, MGRID_BAD_VALUE,
                         "%s%sa read-only table, such as p, is not a plain value",
                         c->function ? c->function : "", c->function ? ": " : "");
    put_table(c, i, a);
    return;
  default: return;
  }
}

/* -------------------------------------------------------------------------- path */

/* A step of a path: a key; or an index, if the key is NULL. */
typedef struct step {
  const char *key;
  size_t length;
  int64_t index;
} step;

/* Read the first step of *path, and move *path after it. False: it is malformed. */
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
  size_t length = 0;
  const char *key = lua_type(L, at) == LUA_TSTRING ? lua_tolstring(L, at, &length) : NULL;
  return key && length == s->length && memcmp(key, s->key, length) == 0;
}

/* Replace the table on the top by its value at a step, or by nil. */
static void result_enter(lua_State *L, const step *s) {
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

/* ------------------------------------------------------------------------- results */

/* A result is a table in the registry. It has the value at VALUE, and the JSON text that was last
** made at TEXT. For C values it also has the mgrid_arg of a table, with that table as the key, and
** their arrays, with the arrays' addresses as keys. */
enum { VALUE = 1, TEXT = 2 };

void mgrid_result_keep(lua_State *L, int *result, const char *from) {
  int type = lua_type(L, -1);
  if (type == LUA_TFUNCTION || type == LUA_TUSERDATA || type == LUA_TTHREAD
      || type == LUA_TLIGHTUSERDATA)
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "%s returned %s; it can return plain values only", from,
                       mgrid_lua_kind(L, -1));
  lua_createtable(L, 1, 0);
  lua_insert(L, -2);
  lua_rawseti(L, -2, VALUE);
  if (*result == LUA_NOREF)
    *result = luaL_ref(L, LUA_REGISTRYINDEX);
  else
    lua_rawseti(L, LUA_REGISTRYINDEX, *result);
}

void mgrid_result_forget(lua_State *L, int result) {
  if (result == LUA_NOREF) return;
  lua_pushnil(L);
  lua_rawseti(L, LUA_REGISTRYINDEX, result);
}

void mgrid_result_push(lua_State *L, int result) {
  if (result == LUA_NOREF)
    lua_pushnil(L);
  else if (lua_rawgeti(L, LUA_REGISTRYINDEX, result) == LUA_TTABLE)
    lua_rawgeti(L, -1, VALUE), lua_remove(L, -2);
}

void mgrid_result_copy(mgrid_runtime *rt, int result, mgrid_plain plain, const char *from,
                       lua_State *to) {
  mgrid_error e = MGRID_ERROR_INIT;
  lua_settop(rt->L, 0);
  mgrid_result_push(rt->L, result);
  if (mgrid_copy_value(rt->L, 1, to, plain)) return;
  if (mgrid_budget_after(&rt->budget, &e)) mgrid_lua_raise_error(to, &e);
  if (!mgrid_value_fits(rt->L, 1))
    mgrid_fail(&e, MGRID_BAD_VALUE, "%s returned " MGRID_TOO_MUCH, from, MGRID_VALUES_MAX,
               MGRID_VALUES_TEXT_MAX);
  else if (plain == MGRID_AS_JSON)
    mgrid_fail(&e, MGRID_BAD_VALUE, "%s returned a value that JSON does not have: " MGRID_NO_JSON,
               from);
  else
    mgrid_fail(
        &e, MGRID_BAD_VALUE,
        "%s returned a value that is not plain: a function, a state, or a table with one in it",
        from);
  mgrid_budget_position(rt->L, &e);
  luaL_error(to, "%s", e.message);
}

/* Push the value at the path, or nil if there is none. Return its kind. */
static mgrid_kind push_at(lua_State *L, int result, const char *path) {
  const char *at = path ? path : "";
  step s;
  mgrid_result_push(L, result);
  while (*at) {
    if (!next_step(&at, at == path, &s)) {
      lua_pop(L, 1);
      lua_pushnil(L);
      break;
    }
    result_enter(L, &s);
  }
  switch (lua_type(L, -1)) {
  case LUA_TBOOLEAN: return MGRID_IS_BOOLEAN;
  case LUA_TNUMBER: return lua_isinteger(L, -1) ? MGRID_IS_INTEGER : MGRID_IS_NUMBER;
  case LUA_TSTRING: return MGRID_IS_TEXT;
  case LUA_TTABLE: return lua_rawlen(L, -1) > 0 ? list_kind(L, lua_gettop(L)) : MGRID_IS_TABLE;
  default: return MGRID_IS_NONE;
  }
}

/* Return whether all numbers in the list on the top have integer values, such as 2.0. */
static bool all_whole(lua_State *L) {
  int whole = 1;
  for (lua_Integer i = 1, n = (lua_Integer)lua_rawlen(L, -1); i <= n && whole; i++, lua_pop(L, 1)) {
    lua_rawgeti(L, -1, i);
    lua_tointegerx(L, -1, &whole);
  }
  return whole;
}

/* Return whether the value on the top, which has kind `is`, can be read as kind `wanted`. */
static bool suits(lua_State *L, mgrid_kind is, mgrid_kind wanted) {
  int whole = 0;
  if (wanted == is || wanted == MGRID_IS_NONE || wanted == MGRID_IS_JSON) return true;
  switch (wanted) {
  case MGRID_IS_NUMBER: return is == MGRID_IS_INTEGER;
  case MGRID_IS_INTEGER: return is == MGRID_IS_NUMBER && (lua_tointegerx(L, -1, &whole), whole);
  case MGRID_IS_NUMBERS:
  case MGRID_IS_INTEGERS:
  case MGRID_IS_LIST:
    if (is == MGRID_IS_NUMBERS && wanted == MGRID_IS_INTEGERS) return all_whole(L);
    if (is == MGRID_IS_INTEGERS && wanted == MGRID_IS_NUMBERS) return true;
    if (is != MGRID_IS_TABLE || (lua_pushnil(L), mgrid_lua_next(L, -2) == 0))
      return is == MGRID_IS_TABLE;
    lua_pop(L, 2);
    return false;
  default: return false;
  }
}

typedef struct reading {
  const mgrid_reading *r;
  mgrid_kind is;
  size_t each; /* bytes of an mgrid_arg in the build of the host */
  mgrid_arg *value;
} reading;

/* Make a C value of the value on the top as JSON. The text lives until the next JSON text of the
** result is made. */
static void make_json(const reading *g, int kept) {
  lua_State *L = g->r->rt->L;
  json_t *v = mgrid_json_of(L, -1);
  bool has = v || mgrid_has_json(L, -1);
  mgrid_text text = { .failed = !v };
  if (!v) mgrid_lua_charge(L, 0); /* raises if the budget is exhausted */
  if (!has)
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                       "%s returned a value that JSON does not have: " MGRID_NO_JSON, g->r->from);
  if (v) mgrid_json_text(v, JSON_COMPACT | JSON_SORT_KEYS, &text);
  json_decref(v);
  mgrid_lua_push_text(L, &text);
  *g->value = mgrid_arg_of(NULL, MGRID_IS_JSON);
  g->value->as.text = lua_tostring(L, -1);
  lua_rawseti(L, kept, TEXT);
}

/* Make a C value of the table on the top, or take the one that was made before. It lives as long as
** the result. */
static void make_table(const reading *g, int kept) {
  lua_State *L = g->r->rt->L;
  int table = lua_gettop(L);
  bool numbers = g->is == MGRID_IS_INTEGERS || g->is == MGRID_IS_NUMBERS;
  mgrid_kind kind = g->r->wanted == MGRID_IS_NONE ? g->is : g->r->wanted;

  lua_pushvalue(L, table);
  lua_rawget(L, kept);
  const mgrid_arg *known = lua_touserdata(L, -1);
  lua_settop(L, table);
  if (known && known->kind == kind && known->size == g->each) {
    *g->value = *known;
    return;
  }
  mgrid_arg_maker c = { L, kept, g->each, NULL };
  if (!mgrid_value_fits(L, table)) {
    mgrid_lua_charge(L, 0);
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "%s returned " MGRID_TOO_MUCH, g->r->from,
                       MGRID_VALUES_MAX, MGRID_VALUES_TEXT_MAX);
  }
  if (numbers)
    put_numbers(&c, table, (size_t)lua_rawlen(L, table), kind == MGRID_IS_INTEGERS, g->value);
  else
    result_put(&c, table, g->value);
  g->value->kind = kind; /* an empty table is also an empty list */
  g->value->size = g->each;
  lua_pushvalue(L, table);
  mgrid_arg *own = lua_newuserdatauv(L, sizeof *own, 0);
  *own = *g->value;
  lua_rawset(L, kept);
}

static int make_body(lua_State *L) {
  const reading *g = lua_touserdata(L, 1);
  lua_rawgeti(L, LUA_REGISTRYINDEX, g->r->result);
  push_at(L, g->r->result, g->r->path);
  if (g->r->wanted == MGRID_IS_JSON)
    make_json(g, lua_gettop(L) - 1);
  else
    make_table(g, lua_gettop(L) - 1);
  return 0;
}

/* Read the scalar on the top, or nothing. False: the value needs memory. */
static bool read_scalar(lua_State *L, mgrid_kind is, mgrid_kind wanted, mgrid_arg *value) {
  if (wanted == MGRID_IS_JSON) return false;
  switch (wanted == MGRID_IS_NONE ? is : wanted) {
  case MGRID_IS_NONE: return true;
  case MGRID_IS_BOOLEAN: *value = mgrid_arg_boolean(NULL, lua_toboolean(L, -1)); return true;
  case MGRID_IS_INTEGER: *value = mgrid_arg_integer(NULL, lua_tointeger(L, -1)); return true;
  case MGRID_IS_NUMBER: *value = mgrid_arg_number(NULL, lua_tonumber(L, -1)); return true;
  case MGRID_IS_TEXT: *value = mgrid_arg_text(NULL, lua_tostring(L, -1)); return true;
  default: return false;
  }
}

static mgrid_status wrong_kind(const mgrid_reading *r, mgrid_kind is, mgrid_error *err) {
  static const char *const kinds[] = { "nothing",           "a boolean",      "an integer",
                                       "a number",          "text",           "a list of integers",
                                       "a list of numbers", "a table by key", "a list" };
  mgrid_error e = MGRID_ERROR_INIT;
  bool inside = r->path && *r->path;
  if (r->wanted > MGRID_IS_JSON)
    return mgrid_fail(err, MGRID_USAGE, "%d is not a kind of values", (int)r->wanted);
  mgrid_fail(&e, MGRID_BAD_VALUE, "%s returned %s%s%s%s, not %s", r->from, kinds[is],
             inside ? " at '" : "", inside ? r->path : "", inside ? "'" : "", kinds[r->wanted]);
  mgrid_budget_position(r->rt->L, &e);
  return mgrid_error_pass(err, &e);
}

mgrid_status mgrid_result_read(const mgrid_reading *r, mgrid_arg *out, mgrid_error *err) {
  lua_State *L = r->rt->L;
  mgrid_arg value = MGRID_ARG_INIT;
  reading g = { r, push_at(L, r->result, r->path), out->size, &value };
  bool none = r->may_lack && g.is == MGRID_IS_NONE && r->wanted != MGRID_IS_JSON;
  bool fits = none || suits(L, g.is, r->wanted),
       made = none || !fits || read_scalar(L, g.is, r->wanted, &value);
  lua_settop(L, 0);
  if (none && r->wanted == MGRID_IS_INTEGER) value.as.integer = -1;
  if (none && r->wanted == MGRID_IS_TEXT) value.as.text = "";
  mgrid_status s = fits ? MGRID_OK : wrong_kind(r, g.is, err);
  if (!made) s = mgrid_runtime_call(r->rt, make_body, &g, err);
  if (!s) mgrid_struct_write(out, &value, sizeof value);
  return s;
}
