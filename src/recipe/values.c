/* SPDX-License-Identifier: MIT
**
** values.c - plain values between C, JSON and Lua states.
*/
#include "recipe/values.h"

#include "recipe/budget.h"

#include <math.h>
#include <string.h>

enum { DEPTH = MGRID_VALUES_DEEP, ARGS_DEPTH = 16 };

static int put_piece(const char *text, size_t len, void *out) {
  mgrid_text_put(out, text, len);
  return ((mgrid_text *)out)->failed ? -1 : 0;
}

void mgrid_json_text(const json_t *v, size_t flags, mgrid_text *t) {
  if (json_dump_callback(v, put_piece, t, flags | JSON_SORT_KEYS | JSON_ENCODE_ANY) != 0) t->failed = true;
}

/* What a value may have: a table that is in two others counts twice, as it is written. */
typedef struct room {
  int64_t       values, bytes;
  bool          shown;  /* of text alone: what is not UTF-8 is written out */
  mgrid_budget *budget; /* of the recipe that pays for the walk; NULL: the values are a host's */
  int64_t       unpaid;
} room;

static room whole_room(mgrid_budget *b) {
  if (b) mgrid_budget_resume(b);
  return (room){ MGRID_VALUES_MAX, MGRID_VALUES_TEXT_MAX, false, b, 0 };
}

static room room_in(lua_State *L) { return whole_room(mgrid_budget_of(L)); }

/* Take from the room what the value itself, without its members, needs. At each table there is a look at the clock: one
** that was emptied takes long to walk through, and no instruction is counted. */
static bool fits(lua_State *L, int i, room *r) {
  enum { EACH = 8, SOME = 2048 };
  int     type = lua_type(L, i);
  int64_t length = type == LUA_TSTRING ? (int64_t)lua_rawlen(L, i) : 0, work = r->unpaid + EACH + length / 8;
  bool    pays = r->budget && (type == LUA_TTABLE || work >= SOME);
  r->bytes -= length;
  r->unpaid = pays ? 0 : work;
  return --r->values >= 0 && r->bytes >= 0 && (!pays || mgrid_budget_spend(r->budget, work));
}

/* The form that the table at i has in JSON; every key must fit it. */
typedef enum shape { NEITHER, LIST, BY_NAME } shape;

static shape shape_of(lua_State *L, int i) {
  lua_Integer items = 0, names = 0, most = 0;
  for (lua_pushnil(L); mgrid_lua_next(L, i); lua_pop(L, 1))
    if (lua_isinteger(L, -2) && lua_tointeger(L, -2) > 0) {
      if (lua_tointeger(L, -2) > most) most = lua_tointeger(L, -2);
      items++;
    } else if (lua_type(L, -2) != LUA_TSTRING
               || !mgrid_lua_is_whole(L, -2)) /* names of C and of JSON would end there, and be one */
      return lua_pop(L, 2), NEITHER;
    else
      names++;
  if (names > 0) return items == 0 ? BY_NAME : NEITHER;
  return items == most ? LIST : NEITHER;
}

/* ------------------------------------------------------------------------- JSON */

/* Does the text nest lists and objects deeper than values may be? Jansson parses by recursion. */
static bool is_deep(const char *s, size_t len) {
  int depth = 0;
  for (size_t i = 0; i < len; i++) {
    if (s[i] == '"')
      for (i++; i < len && s[i] != '"'; i++) i += s[i] == '\\';
    else if (s[i] == '[' || s[i] == '{')
      depth++;
    else if (s[i] == ']' || s[i] == '}')
      depth--;
    if (depth > DEPTH) return true;
  }
  return false;
}

json_t *mgrid_json_parse(const char *s, size_t len, size_t flags, json_error_t *why) {
  if (!is_deep(s, len)) return json_loadb(s, len, flags, why);
  *why = (json_error_t){ .line = 1, .text = MGRID_TOO_DEEP };
  return NULL;
}

static json_t *convert(lua_State *L, int i, int depth, room *left);

static json_t *shown(const char *s, size_t len) {
  char text[4096];
  return mgrid_is_shown(s, len) ? json_stringn(s, len) : json_stringn(text, mgrid_shown(text, sizeof text, s, len));
}

/* Set a field, which takes the value also when that fails. */
static int set(json_t *object, const char *name, json_t *value, const room *left) {
  char text[4096];
  if (left->shown && !mgrid_is_shown(name, strlen(name)))
    mgrid_shown(text, sizeof text, name, strlen(name)), name = text;
  return json_object_set_new(object, name, value);
}

static json_t *list_of(lua_State *L, int i, int depth, room *left) {
  json_t *list = json_array();
  for (lua_Integer k = 1, n = (lua_Integer)lua_rawlen(L, i); list && k <= n; k++) {
    lua_rawgeti(L, i, k);
    json_t *v = convert(L, lua_gettop(L), depth + 1, left);
    lua_pop(L, 1);
    if (json_array_append_new(list, v) != 0) { /* fails for v NULL, too */
      json_decref(list);
      return NULL;
    }
  }
  return list;
}

static json_t *object_of(lua_State *L, int i, int depth, room *left) {
  json_t *object = json_object();
  lua_pushnil(L);
  while (object && mgrid_lua_next(L, i)) {
    json_t *v = lua_type(L, -2) == LUA_TSTRING && fits(L, -2, left) ? convert(L, lua_gettop(L), depth + 1, left) : NULL;
    if (!v || set(object, lua_tostring(L, -2), v, left) != 0) {
      json_decref(object);
      lua_pop(L, 2);
      return NULL;
    }
    lua_pop(L, 1);
  }
  return object;
}

static json_t *convert(lua_State *L, int i, int depth, room *left) {
  if (depth > DEPTH || !fits(L, i, left) || !lua_checkstack(L, 6)) return NULL;
  switch (lua_type(L, i)) {
  case LUA_TNONE:
  case LUA_TNIL: return json_null();
  case LUA_TBOOLEAN: return json_boolean(lua_toboolean(L, i));
  case LUA_TNUMBER: return lua_isinteger(L, i) ? json_integer(lua_tointeger(L, i)) : json_real(lua_tonumber(L, i));
  case LUA_TSTRING: {
    size_t      len;
    const char *s = lua_tolstring(L, i, &len);
    return left->shown ? shown(s, len) : json_stringn(s, len);
  }
  case LUA_TTABLE:
    switch (shape_of(L, i)) {
    case LIST: return list_of(L, i, depth, left);
    case BY_NAME: return object_of(L, i, depth, left);
    case NEITHER: return NULL;
    }
    return NULL;
  default: return NULL;
  }
}

static bool counted(lua_State *L, int i, int depth, room *left) {
  if (depth > DEPTH || !fits(L, i, left) || !lua_checkstack(L, 4)) return false;
  if (lua_type(L, i) != LUA_TTABLE) return true;
  for (lua_pushnil(L); mgrid_lua_next(L, i); lua_pop(L, 1))
    if ((lua_type(L, -2) == LUA_TSTRING && !fits(L, -2, left)) || !counted(L, lua_gettop(L), depth + 1, left)) {
      lua_pop(L, 2);
      return false;
    }
  return true;
}

bool mgrid_value_fits(lua_State *L, int i) {
  room left = room_in(L);
  return counted(L, lua_absindex(L, i), 0, &left);
}

/* Is there memory for the value as JSON? A recipe's limit is on that, too. */
static bool has_memory(lua_State *L, int i) {
  enum { EACH = 112 }; /* bytes of a field: jansson's block for its key, and the value */
  mgrid_budget *b = mgrid_budget_of(L);
  room          left = room_in(L);
  if (!b || lua_type(L, i) != LUA_TTABLE) return true;
  if (!counted(L, i, 0, &left)) return false;
  int64_t bytes = (MGRID_VALUES_MAX - left.values) * EACH + (MGRID_VALUES_TEXT_MAX - left.bytes);
  if (mgrid_budget_has(b, (size_t)bytes)) return true;
  mgrid_budget_lack(b);
  return false;
}

static json_t *json_of(lua_State *L, int i, bool as_shown) {
  i = lua_absindex(L, i);
  if (!has_memory(L, i)) return NULL;
  room left = room_in(L);
  left.shown = as_shown;
  return convert(L, i, 0, &left);
}

json_t *mgrid_json_of(lua_State *L, int i) { return json_of(L, i, false); }
json_t *mgrid_json_shown(lua_State *L, int i) { return json_of(L, i, true); }

bool mgrid_json_has_gap(const json_t *v) {
  size_t      i;
  const char *key;
  json_t     *item;
  json_array_foreach(v, i, item) if (json_is_null(item) || mgrid_json_has_gap(item)) return true;
  json_object_foreach((json_t *)v, key, item) if (mgrid_json_has_gap(item)) return true;
  return false;
}

void mgrid_push_json(lua_State *L, const json_t *v) {
  mgrid_lua_stack(L, 6);
  switch (v ? json_typeof(v) : JSON_NULL) {
  case JSON_NULL: lua_pushnil(L); return;
  case JSON_TRUE:
  case JSON_FALSE: lua_pushboolean(L, json_is_true(v)); return;
  case JSON_INTEGER: lua_pushinteger(L, (lua_Integer)json_integer_value(v)); return;
  case JSON_REAL: lua_pushnumber(L, json_real_value(v)); return;
  case JSON_STRING: lua_pushlstring(L, json_string_value(v), json_string_length(v)); return;
  case JSON_ARRAY:
    lua_createtable(L, (int)json_array_size(v), 0);
    for (size_t i = 0; i < json_array_size(v); i++) {
      if (json_is_null(json_array_get(v, i))) mgrid_lua_raise_as(L, MGRID_BAD_VALUE, MGRID_GAP);
      mgrid_push_json(L, json_array_get(v, i));
      lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return;
  case JSON_OBJECT: {
    const char *key;
    json_t     *value;
    lua_newtable(L);
    json_object_foreach((json_t *)v, key, value) {
      mgrid_push_json(L, value);
      lua_setfield(L, -2, key);
    }
    return;
  }
  }
}

static int push_json(lua_State *L) {
  mgrid_push_json(L, lua_touserdata(L, 1));
  return 1;
}

int mgrid_take_json(lua_State *L, json_t *v) {
  lua_pushcfunction(L, push_json);
  lua_pushlightuserdata(L, v);
  int raised = lua_pcall(L, 1, 1, 0);
  json_decref(v);
  return raised;
}

/* ---------------------------------------------------------------------------- C */

static bool has_json(lua_State *L, int i, int depth) {
  size_t      len;
  const char *text;
  bool        has = true;
  if (depth > DEPTH || !lua_checkstack(L, 4)) return false;
  switch (lua_type(L, i)) {
  case LUA_TNONE:
  case LUA_TNIL:
  case LUA_TBOOLEAN: return true;
  case LUA_TNUMBER: return lua_isinteger(L, i) || isfinite(lua_tonumber(L, i));
  case LUA_TSTRING: return text = lua_tolstring(L, i, &len), mgrid_is_utf8(text, len);
  case LUA_TTABLE:
    if (shape_of(L, i) == NEITHER) return false;
    for (lua_pushnil(L); has && mgrid_lua_next(L, i); lua_pop(L, 1))
      has = has_json(L, lua_gettop(L) - 1, depth + 1) && has_json(L, lua_gettop(L), depth + 1);
    if (!has) lua_pop(L, 1); /* the key at which it ended */
    return has;
  default: return false;
  }
}

bool mgrid_has_json(lua_State *L, int i) { return mgrid_value_fits(L, i) && has_json(L, lua_absindex(L, i), 0); }

const mgrid_arg *mgrid_arg_at(const mgrid_arg *args, size_t i) {
  return (const mgrid_arg *)((const char *)args + i * args->size);
}

/* Take n values from the room, and the bytes of a text; a list that is not there has none. */
static mgrid_status take(size_t n, bool given, const char *text, room *left, mgrid_error *err) {
  if (mgrid_lacks_list(n, given, "the list of an argument", err)) return MGRID_USAGE;
  if (n > (size_t)left->values)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "arguments of more than %d values", MGRID_VALUES_MAX);
  size_t len = text ? strnlen(text, (size_t)left->bytes + 1) : 0;
  if (len > (size_t)left->bytes)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "arguments with texts of more than %d bytes", MGRID_VALUES_TEXT_MAX);
  left->values -= (int64_t)n;
  left->bytes -= (int64_t)len;
  return MGRID_OK;
}

static mgrid_status check_args(size_t n, const mgrid_arg *args, int depth, room *left, mgrid_error *err);

static mgrid_status check_arg(const mgrid_arg *a, int depth, room *left, mgrid_error *err) {
  mgrid_status s = take(0, true, a->name, left, err);
  if (s) return s;
  switch (a->kind) {
  case MGRID_IS_INTEGERS: return take(a->as.integers.n, a->as.integers.at, NULL, left, err);
  case MGRID_IS_NUMBERS: return take(a->as.numbers.n, a->as.numbers.at, NULL, left, err);
  case MGRID_IS_TEXT: return take(0, true, a->as.text, left, err);
  case MGRID_IS_TABLE: return check_args(a->as.table.n, a->as.table.at, depth + 1, left, err);
  default: return MGRID_OK;
  }
}

static mgrid_status check_args(size_t n, const mgrid_arg *args, int depth, room *left, mgrid_error *err) {
  if (n == 0) return MGRID_OK;
  if (depth > ARGS_DEPTH) return mgrid_fail(err, MGRID_USAGE, "arguments are nested more than %d deep", ARGS_DEPTH);
  mgrid_status s = take(n, args, NULL, left, err);
  if (!s) s = mgrid_struct_check(args, sizeof *args, "mgrid_arg", err);
  for (size_t i = 0; i < n && !s; i++) {
    const mgrid_arg *a = mgrid_arg_at(args, i);
    if (a->size != args->size)
      return mgrid_fail(err, MGRID_BAD_STRUCT, "argument %zu has %zu bytes, the first one %zu", i, a->size, args->size);
    s = mgrid_struct_check(a, sizeof *a, "mgrid_arg", err);
    if (!s) s = check_arg(a, depth, left, err);
  }
  return s;
}

mgrid_status mgrid_args_check(size_t n, const mgrid_arg *args, mgrid_error *err) {
  room left = whole_room(NULL);
  return check_args(n, args, 0, &left, err);
}

static bool is_sound(const mgrid_arg *a) {
  bool finite = true;
  switch (a->kind) {
  case MGRID_IS_NONE:
  case MGRID_IS_BOOLEAN:
  case MGRID_IS_INTEGER:
  case MGRID_IS_INTEGERS: return true;
  case MGRID_IS_NUMBER: return isfinite(a->as.number);
  case MGRID_IS_NUMBERS:
    for (size_t i = 0; i < a->as.numbers.n; i++) finite &= isfinite(a->as.numbers.at[i]) != 0;
    return finite;
  case MGRID_IS_TEXT: return a->as.text && mgrid_is_utf8(a->as.text, strlen(a->as.text));
  case MGRID_IS_TABLE: return mgrid_args_are_sound(a->as.table.n, a->as.table.at);
  case MGRID_IS_LIST: return false;
  }
  return false;
}

bool mgrid_args_are_sound(size_t n, const mgrid_arg *args) {
  for (size_t i = 0; i < n; i++) {
    const mgrid_arg *a = mgrid_arg_at(args, i);
    if (!a->name || !mgrid_is_utf8(a->name, strlen(a->name)) || !is_sound(a)) return false;
  }
  return true;
}

static void push_arg(lua_State *L, const mgrid_arg *a) {
  mgrid_lua_stack(L, 8);
  switch (a->kind) {
  case MGRID_IS_NONE: lua_pushnil(L); return;
  case MGRID_IS_BOOLEAN: lua_pushboolean(L, a->as.boolean); return;
  case MGRID_IS_INTEGER: lua_pushinteger(L, a->as.integer); return;
  case MGRID_IS_NUMBER: lua_pushnumber(L, a->as.number); return;
  case MGRID_IS_TEXT: lua_pushstring(L, a->as.text); return;
  case MGRID_IS_INTEGERS:
    lua_createtable(L, (int)a->as.integers.n, 0);
    for (size_t i = 0; i < a->as.integers.n; i++) {
      lua_pushinteger(L, a->as.integers.at[i]);
      lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return;
  case MGRID_IS_NUMBERS:
    lua_createtable(L, (int)a->as.numbers.n, 0);
    for (size_t i = 0; i < a->as.numbers.n; i++) {
      lua_pushnumber(L, a->as.numbers.at[i]);
      lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return;
  case MGRID_IS_TABLE: mgrid_push_args(L, a->as.table.n, a->as.table.at); return;
  case MGRID_IS_LIST: break;
  }
  mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "argument '%s' has no kind (%d)", a->name, (int)a->kind);
}

void mgrid_push_args(lua_State *L, size_t n, const mgrid_arg *args) {
  lua_createtable(L, 0, (int)n);
  for (size_t i = 0; i < n; i++) {
    const mgrid_arg *a = mgrid_arg_at(args, i);
    if (!a->name) mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "an argument has no name");
    push_arg(L, a);
    lua_setfield(L, -2, a->name);
  }
}

/* ------------------------------------------------------------------- other Lua */

static bool is_plain_table(lua_State *L, int i, mgrid_plain plain) {
  if (plain == MGRID_AS_JSON) return shape_of(L, i) != NEITHER;
  if (plain == MGRID_ANY_KEYS || !lua_getmetatable(L, i)) return true;
  lua_pop(L, 1);
  return false;
}

static bool copy(lua_State *from, int i, lua_State *to, mgrid_plain plain, int depth, room *left) {
  size_t      len;
  const char *s;
  if (depth > DEPTH || !fits(from, i, left) || !lua_checkstack(from, 4)) return false;
  mgrid_lua_stack(to, 6);
  switch (lua_type(from, i)) {
  case LUA_TNONE:
  case LUA_TNIL: lua_pushnil(to); return true;
  case LUA_TBOOLEAN: lua_pushboolean(to, lua_toboolean(from, i)); return true;
  case LUA_TNUMBER:
    if (lua_isinteger(from, i))
      lua_pushinteger(to, lua_tointeger(from, i));
    else if (plain == MGRID_AS_JSON && !isfinite(lua_tonumber(from, i)))
      return false;
    else
      lua_pushnumber(to, lua_tonumber(from, i));
    return true;
  case LUA_TSTRING:
    s = lua_tolstring(from, i, &len);
    if (plain == MGRID_AS_JSON && !mgrid_is_utf8(s, len)) return false;
    lua_pushlstring(to, s, len);
    return true;
  case LUA_TTABLE:
    if (!is_plain_table(from, i, plain)) return false;
    lua_newtable(to);
    for (lua_pushnil(from); mgrid_lua_next(from, i); lua_pop(from, 1)) {
      int  key = lua_gettop(from) - 1;
      bool copied = (lua_type(from, key) == LUA_TSTRING || lua_isinteger(from, key))
                    && copy(from, key, to, plain, depth + 1, left) && copy(from, key + 1, to, plain, depth + 1, left);
      if (!copied) {
        lua_pop(from, 2);
        return false;
      }
      lua_rawset(to, -3);
    }
    return true;
  default: return false;
  }
}

bool mgrid_copy_value(lua_State *from, int i, lua_State *to, mgrid_plain plain) {
  mgrid_budget *b = mgrid_budget_of(from);
  room          left = whole_room(b ? b : mgrid_budget_of(to));
  return copy(from, lua_absindex(from, i), to, plain, 0, &left);
}
