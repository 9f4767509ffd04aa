/* SPDX-License-Identifier: MIT
**
** values.c - plain values between C, JSON and Lua states.
*/
#include "recipe/values.h"

#include "base/field.h"
#include "recipe/budget.h"

#include <math.h>
#include <string.h>

enum { DEPTH = MGRID_VALUES_DEEP, ARGS_DEPTH = 16 };

/* How much more a value may contain. */
typedef struct room {
  mgrid_budget values, bytes;
  /* of the recipe that is charged for the walk; NULL: the values are a host's */
  mgrid_lua_budget *budget;
} room;

static room whole_room(mgrid_lua_budget *b) {
  if (b) mgrid_budget_go_on(b);
  return (room){ mgrid_budget_new(MGRID_VALUES_MAX, 0), mgrid_budget_new(MGRID_VALUES_TEXT_MAX, 0),
                 b };
}

/* Take the value itself, without its members, from the room. For each table check the clock: the
** walk through a large table takes long even after it was emptied. */
static bool values_fits(lua_State *L, int i, room *r) {
  enum { EACH = 8 };
  int type = lua_type(L, i);
  int64_t length = type == LUA_TSTRING ? (int64_t)lua_rawlen(L, i) : 0;
  if (!mgrid_spend(&r->values, 1) || !mgrid_spend(&r->bytes, length)) return false;
  if (!r->budget || (mgrid_spend(&r->budget->work, EACH + length / 8) && type != LUA_TTABLE))
    return true;
  return mgrid_budget_spend(r->budget, 0);
}

/* What a table becomes in JSON, by its keys. */
typedef enum shape { NEITHER, LIST, BY_NAME } shape;

static shape values_shape_of(lua_State *L, int i) {
  lua_Integer items = 0, names = 0, most = 0;
  for (lua_pushnil(L); mgrid_lua_next(L, i); lua_pop(L, 1))
    if (lua_isinteger(L, -2) && lua_tointeger(L, -2) > 0) {
      if (lua_tointeger(L, -2) > most) most = lua_tointeger(L, -2);
      items++;
    } else if (lua_type(L, -2) != LUA_TSTRING
               /* a zero byte would end the name in C and in JSON, and two names could become
               ** equal */
               || !mgrid_lua_is_whole(L, -2))
      return lua_pop(L, 2), NEITHER;
    else
      names++;
  if (names > 0) return items == 0 ? BY_NAME : NEITHER;
  return items == most ? LIST : NEITHER;
}

/* ---------------------------------------------------------------------- a walk */

/* Kinds of a walk beside those of mgrid_plain. AS_IS accepts all values; SHAPED the values of JSON,
** but with any texts. */
enum { AS_IS = -1, SHAPED = MGRID_AS_JSON + 1 };

/* A walk that checks a value of Lua and all members of its tables. `begin` and `member` make a
** result in `made`. Only these two may raise. */
typedef struct walk walk;
struct walk {
  lua_State *L;
  int plain; /* a value of mgrid_plain, or one of the above */
  room left;
  /* Make the value at i, for a table without its members. NULL: make nothing. */
  bool (*begin)(walk *w, int i, int depth, shape is);
  /* Put the value that was made last, one level deeper, into the table at this depth. */
  bool (*member)(walk *w, int key, int depth);
  void *made;
};

static walk walk_of(lua_State *L, mgrid_lua_budget *b, int plain) {
  return (walk){ .L = L, .plain = plain, .left = whole_room(b) };
}

/* Return whether the walk accepts a key, or a value that is not a table. */
static bool values_is_plain(const walk *w, int i) {
  size_t len;
  const char *s;
  switch (lua_type(w->L, i)) {
  case LUA_TNONE:
  case LUA_TNIL:
  case LUA_TBOOLEAN: return true;
  case LUA_TNUMBER:
    return w->plain < MGRID_AS_JSON || lua_isinteger(w->L, i) || isfinite(lua_tonumber(w->L, i));
  case LUA_TSTRING:
    return w->plain != MGRID_AS_JSON || (s = lua_tolstring(w->L, i, &len), mgrid_is_utf8(s, len));
  default: return w->plain == AS_IS;
  }
}

static bool is_plain_table(const walk *w, int i, shape *is) {
  *is = NEITHER;
  if (w->plain >= MGRID_AS_JSON) return (*is = values_shape_of(w->L, i)) != NEITHER;
  if (w->plain != MGRID_NO_VIEWS || !lua_getmetatable(w->L, i)) return true;
  lua_pop(w->L, 1);
  return false;
}

static bool values_visit(walk *w, int i, int depth);

/* Visit the value on the top; its key is below it. */
static bool visit_member(walk *w, int depth) {
  int key = lua_gettop(w->L) - 1, type = lua_type(w->L, key);
  bool named = type == LUA_TSTRING && values_fits(w->L, key, &w->left) && values_is_plain(w, key);
  if (!named && type == LUA_TSTRING) return false;
  if (!named && w->plain != AS_IS && !lua_isinteger(w->L, key)) return false;
  return values_visit(w, key + 1, depth + 1) && (!w->member || w->member(w, key, depth));
}

static bool values_visit(walk *w, int i, int depth) {
  lua_State *L = w->L;
  shape is = NEITHER;
  bool table = lua_type(L, i) == LUA_TTABLE, fine = true;
  if (depth > DEPTH || !values_fits(L, i, &w->left) || !lua_checkstack(L, 6)) return false;
  if (!(table ? is_plain_table(w, i, &is) : values_is_plain(w, i))) return false;
  if (w->begin && !w->begin(w, i, depth, is)) return false;
  const lua_Integer n = is == LIST ? (lua_Integer)lua_rawlen(L, i) : 0;
  for (lua_Integer k = 1; k <= n && fine; k++) {
    lua_pushinteger(L, k);
    lua_rawgeti(L, i, k);
    fine = visit_member(w, depth);
    lua_pop(L, 2);
  }
  if (!table || is == LIST) return fine;
  for (lua_pushnil(L); fine && mgrid_lua_next(L, i); lua_pop(L, 1)) fine = visit_member(w, depth);
  if (!fine) lua_pop(L, 1); /* pops the key at which the walk ended */
  return fine;
}

bool mgrid_value_fits(lua_State *L, int i) {
  walk w = walk_of(L, mgrid_budget_of(L), AS_IS);
  return values_visit(&w, lua_absindex(L, i), 0);
}

bool mgrid_has_json(lua_State *L, int i) {
  walk w = walk_of(L, mgrid_budget_of(L), MGRID_AS_JSON);
  return values_visit(&w, lua_absindex(L, i), 0);
}

/* ------------------------------------------------------------------------- JSON */

json_t *mgrid_json_parse(const char *s, size_t len, size_t flags, json_error_t *why) {
  if (!mgrid_json_deep(s, len, DEPTH)) return json_loadb(s, len, flags, why);
  *why = (json_error_t){ .line = 1, .text = MGRID_TOO_DEEP };
  return NULL;
}

/* The result of a walk. */
typedef struct json_made {
  json_t *at[DEPTH + 2]; /* at each depth, the value that is not yet a member of the one above */
  bool shown;            /* texts are as mgrid_shown writes them */
} json_made;

static json_t *json_string_of(const json_made *m, const char *s, size_t len) {
  char text[4096];
  if (!m->shown || mgrid_is_shown(s, len)) return json_stringn(s, len);
  return json_stringn(text, mgrid_shown(text, sizeof text, s, len));
}

static bool json_begin(walk *w, int i, int depth, shape is) {
  json_made *m = w->made;
  json_t **v = &m->at[depth];
  lua_State *L = w->L;
  size_t len;
  const char *s;
  switch (lua_type(L, i)) {
  case LUA_TBOOLEAN: *v = json_boolean(lua_toboolean(L, i)); break;
  case LUA_TNUMBER:
    *v = lua_isinteger(L, i) ? json_integer(lua_tointeger(L, i)) : json_real(lua_tonumber(L, i));
    break;
  case LUA_TSTRING: s = lua_tolstring(L, i, &len), *v = json_string_of(m, s, len); break;
  case LUA_TTABLE: *v = is == LIST ? json_array() : json_object(); break;
  default: *v = json_null(); break;
  }
  return *v;
}

/* Jansson's functions take over the member even if they fail. */
static bool json_member(walk *w, int key, int depth) {
  json_made *m = w->made;
  json_t *in = m->at[depth], *member = m->at[depth + 1];
  const char *name = json_is_object(in) ? lua_tostring(w->L, key) : NULL;
  char text[4096];
  m->at[depth + 1] = NULL;
  if (!name) return json_array_append_new(in, member) == 0;
  if (m->shown && !mgrid_is_shown(name, strlen(name)))
    mgrid_shown(text, sizeof text, name, strlen(name)), name = text;
  return json_object_set_new(in, name, member) == 0;
}

/* Return whether the recipe has enough memory left for the value as JSON. */
static bool has_memory(lua_State *L, int i) {
  enum { EACH = 112 }; /* bytes of a field: Jansson's block for its key, and the value */
  mgrid_lua_budget *b = mgrid_budget_of(L);
  walk w = walk_of(L, b, AS_IS);
  if (!b || lua_type(L, i) != LUA_TTABLE) return true;
  if (!values_visit(&w, i, 0)) return false;
  int64_t bytes = (int64_t)(w.left.values.used * EACH + w.left.bytes.used);
  if (mgrid_budget_has(b, (size_t)bytes)) return true;
  mgrid_budget_lack(b);
  return false;
}

static json_t *json_of(lua_State *L, int i, bool shown) {
  json_made made = { .shown = shown };
  walk w = walk_of(L, mgrid_budget_of(L), shown ? SHAPED : MGRID_AS_JSON);
  i = lua_absindex(L, i);
  if (!has_memory(L, i)) return NULL;
  w.begin = json_begin, w.member = json_member, w.made = &made;
  if (values_visit(&w, i, 0)) return made.at[0];
  for (int k = 0; k <= DEPTH + 1; k++) json_decref(made.at[k]);
  return NULL;
}

json_t *mgrid_json_of(lua_State *L, int i) { return json_of(L, i, false); }
json_t *mgrid_json_shown(lua_State *L, int i) { return json_of(L, i, true); }

bool mgrid_json_has_gap(const json_t *v) {
  size_t i;
  const char *key;
  json_t *item;
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
    json_t *value;
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

const mgrid_arg *mgrid_arg_at(const mgrid_arg *args, size_t i) {
  return (const mgrid_arg *)((const char *)args + i * args->size);
}

/* Take n values and the bytes of a text from the room. Fail if their list is missing (!given). */
static mgrid_status values_take(size_t n, bool given, const char *text, room *left,
                                mgrid_error *err) {
  if (mgrid_lacks_list(n, given, "values of an argument", err)) return MGRID_USAGE;
  if (!mgrid_spend(&left->values, (int64_t)n))
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "arguments of more than %d values",
                      MGRID_VALUES_MAX);
  size_t len = text ? strnlen(text, left->bytes.limit - left->bytes.used + 1) : 0;
  if (!mgrid_spend(&left->bytes, (int64_t)len))
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "arguments with texts of more than %d bytes",
                      MGRID_VALUES_TEXT_MAX);
  return MGRID_OK;
}

/* Return whether a plan or a state can keep the value: it has a name, a kind other than a list of
** any values, text in UTF-8, and finite numbers. */
static bool is_sound(const mgrid_arg *a) {
  bool finite = true;
  bool text = a->kind == MGRID_IS_TEXT || a->kind == MGRID_IS_JSON;
  if (!a->name || !mgrid_is_utf8(a->name, strlen(a->name)) || a->kind == MGRID_IS_LIST
      || a->kind > MGRID_IS_JSON)
    return false;
  if (a->kind == MGRID_IS_NUMBER) return isfinite(a->as.number);
  for (size_t i = 0; a->kind == MGRID_IS_NUMBERS && i < a->as.numbers.n; i++)
    finite &= isfinite(a->as.numbers.at[i]) != 0;
  return finite && (!text || (a->as.text && mgrid_is_utf8(a->as.text, strlen(a->as.text))));
}

static mgrid_status check_args(size_t n, const mgrid_arg *args, const char *kept, int depth,
                               room *left, mgrid_error *err);

static mgrid_status check_arg(const mgrid_arg *a, const char *kept, int depth, room *left,
                              mgrid_error *err) {
  mgrid_status s = values_take(0, true, a->name, left, err);
  if (!s && a->kind == MGRID_IS_INTEGERS)
    s = values_take(a->as.integers.n, a->as.integers.at, NULL, left, err);
  if (!s && a->kind == MGRID_IS_NUMBERS)
    s = values_take(a->as.numbers.n, a->as.numbers.at, NULL, left, err);
  if (!s && (a->kind == MGRID_IS_TEXT || a->kind == MGRID_IS_JSON))
    s = values_take(0, true, a->as.text, left, err);
  if (!s && kept && !is_sound(a))
    s = mgrid_fail(err, MGRID_USAGE, "a %s needs a name, a kind, text in UTF-8, and finite numbers",
                   kept);
  bool in = a->kind == MGRID_IS_TABLE || a->kind == MGRID_IS_LIST;
  return s || !in ? s : check_args(a->as.table.n, a->as.table.at, kept, depth + 1, left, err);
}

static mgrid_status check_args(size_t n, const mgrid_arg *args, const char *kept, int depth,
                               room *left, mgrid_error *err) {
  if (n == 0) return MGRID_OK;
  if (depth > ARGS_DEPTH)
    return mgrid_fail(err, MGRID_USAGE, "arguments are nested more than %d deep", ARGS_DEPTH);
  mgrid_status s = values_take(n, args, NULL, left, err);
  if (!s) s = mgrid_struct_check(args, sizeof *args, "mgrid_arg", err);
  for (size_t i = 0; i < n && !s; i++) {
    const mgrid_arg *a = mgrid_arg_at(args, i);
    if (a->size != args->size)
      return mgrid_fail(err, MGRID_BAD_STRUCT, "argument %zu has %zu bytes, the first one %zu", i,
                        a->size, args->size);
    s = mgrid_struct_check(a, sizeof *a, "mgrid_arg", err);
    if (!s) s = check_arg(a, kept, depth, left, err);
  }
  return s;
}

mgrid_status mgrid_args_check(size_t n, const mgrid_arg *args, const char *kept, mgrid_error *err) {
  room left = whole_room(NULL);
  return check_args(n, args, kept, 0, &left, err);
}

static void push_args(lua_State *L, size_t n, const mgrid_arg *args);
static void values_push_member(lua_State *L, const mgrid_arg *a);

static void push_json_text(lua_State *L, const mgrid_arg *a) {
  json_error_t why = { 0 };
  const char *text = a->as.text ? a->as.text : "";
  json_t *v = mgrid_json_parse(text, strlen(text), JSON_DECODE_ANY, &why);
  if (!v && !*why.text) mgrid_lua_oom(L);
  if (v && !mgrid_json_has_gap(v)) {
    if (mgrid_take_json(L, v)) lua_error(L);
    return;
  }
  bool gap = v;
  json_decref(v);
  mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "%s%s%s is not JSON that Lua can have: %s",
                     a->name ? "argument '" : "a value", a->name ? a->name : "", a->name ? "'" : "",
                     gap ? MGRID_GAP : why.text);
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
    MGRID_LUA_LIST(L, a->as.integers.n, lua_pushinteger(L, a->as.integers.at[i]));
    return;
  case MGRID_IS_NUMBERS:
    MGRID_LUA_LIST(L, a->as.numbers.n, lua_pushnumber(L, a->as.numbers.at[i]));
    return;
  case MGRID_IS_TABLE: push_args(L, a->as.table.n, a->as.table.at); return;
  case MGRID_IS_JSON: push_json_text(L, a); return;
  case MGRID_IS_LIST:
    MGRID_LUA_LIST(L, a->as.table.n, values_push_member(L, mgrid_arg_at(a->as.table.at, i)));
    return;
  }

  mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "%s%s%s has no kind (%d)",
                     a->name ? "argument '" : "a value", a->name ? a->name : "", a->name ? "'" : "",
                     (int)a->kind);
}

static void values_push_member(lua_State *L, const mgrid_arg *a) {
  if (a->kind == MGRID_IS_NONE)
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "a list has nothing (MGRID_IS_NONE) in it");
  push_arg(L, a);
}

/* Push the n values as a table by name. */
static void push_args(lua_State *L, size_t n, const mgrid_arg *args) {
  lua_createtable(L, 0, (int)n);
  for (size_t i = 0; i < n; i++) {
    const mgrid_arg *a = mgrid_arg_at(args, i);
    if (!a->name) mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "an argument has no name");
    push_arg(L, a);
    lua_setfield(L, -2, a->name);
  }
}

/* ------------------------------------------------------------------- other Lua */

/* Push the value at i to the other Lua state; for a table, an empty one. */
static bool copy_begin(walk *w, int i, int depth, shape is) {
  lua_State *from = w->L, *to = w->made;
  (void)depth, (void)is;
  mgrid_lua_stack(to, 6);
  switch (lua_type(from, i)) {
  case LUA_TBOOLEAN: lua_pushboolean(to, lua_toboolean(from, i)); break;
  case LUA_TNUMBER:
    if (lua_isinteger(from, i))
      lua_pushinteger(to, lua_tointeger(from, i));
    else
      lua_pushnumber(to, lua_tonumber(from, i));
    break;
  case LUA_TSTRING: lua_pushlstring(to, lua_tostring(from, i), lua_rawlen(from, i)); break;
  case LUA_TTABLE: lua_newtable(to); break;
  default: lua_pushnil(to); break;
  }
  return true;
}

/* The table and, above it, the member are on the stack of the other Lua state. */
static bool copy_member(walk *w, int key, int depth) {
  copy_begin(w, key, depth, NEITHER);
  lua_insert(w->made, -2);
  lua_rawset(w->made, -3);
  return true;
}

bool mgrid_copy_value(lua_State *from, int i, lua_State *to, mgrid_plain plain) {
  mgrid_lua_budget *b = mgrid_budget_of(from);
  walk w = walk_of(from, b ? b : mgrid_budget_of(to), (int)plain);
  w.begin = copy_begin, w.member = copy_member, w.made = to;
  return values_visit(&w, lua_absindex(from, i), 0);
}

void mgrid_push_given(lua_State *L, const mgrid_given *g) {
  bool from = g->from && (g->one || !lua_isnoneornil(g->from, g->at));
  bool copied = from && !g->json && mgrid_copy_value(g->from, g->at, L, MGRID_AS_JSON);
  if (g->json)
    mgrid_push_json(L, g->json);
  else if (from && g->one && !copied)
    luaL_error(L, "%s is a plain value, not a %s", g->what, luaL_typename(g->from, g->at));
  else if (from && !g->one && (!copied || !lua_istable(L, -1) || lua_rawlen(L, -1) > 0))
    luaL_error(L, "%s are a table such as { name = value }, with plain values", g->what);
  else if (!from && g->one)
    push_arg(L, g->args);
  else if (!from)
    push_args(L, g->n, g->args);
}
