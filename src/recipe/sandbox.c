/* SPDX-License-Identifier: MIT
**
** sandbox.c - the functions of Lua for recipes, some of them changed. Every rank evaluates the
** recipe and must get the same result. So there are no clock, randomness, addresses or files; pairs
** has the order of keys, and sort is stable. A recipe must also end, so its instructions are
** counted. Therefore there are no patterns (matching may take exponential time in C, uncounted) and
** no metatables (finalizers run uncounted), and string.rep makes only short strings.
*/
#include "recipe/sandbox.h"

#include "recipe/bind.h"
#include "recipe/prelude.h"
#include "recipe/values.h"

#include <math.h>
#include <string.h>

/* -------------------------------------------------------------------- texts */

/* limits of string.rep: bytes of its result; repetitions */
enum { STRING_CAP = 64 * 1024, REP_CAP = 65536 };

/* Charge a recipe for reading text: eight bytes count as one instruction. A short text is free,
** because a charge checks the clock, which takes longer than reading the text. */
static void charge_bytes(lua_State *L, size_t bytes) {
  if (bytes >= 1024) mgrid_lua_charge(L, (int64_t)(bytes / 8));
}

static int string_rep(lua_State *L) {
  size_t len, lsep;
  const char *s = luaL_checklstring(L, 1, &len), *sep = luaL_optlstring(L, 3, "", &lsep);
  lua_Integer n = luaL_checkinteger(L, 2);
  if (n <= 0) n = 0;
  if (n > REP_CAP || (lua_Integer)(len + lsep) * n > STRING_CAP)
    return mgrid_lua_raise(L, "string.rep makes strings of at most %d bytes", STRING_CAP);
  /* Make the text in a userdata, because at the limit of memory a luaL_Buffer would fail without
  ** collecting garbage first. */
  char *text = lua_newuserdatauv(L, (size_t)n * (len + lsep) + 1, 0), *end = text;
  for (lua_Integer i = 0; i < n; i++) {
    memcpy(end, s, len);
    end += len;
    if (i + 1 == n) break;
    memcpy(end, sep, lsep);
    end += lsep;
  }
  lua_pushlstring(L, text, (size_t)(end - text));
  return 1;
}

/* string.split("tp-cp-dp", "-") -> { "tp", "cp", "dp" }; the separator is not a pattern */
static int string_split(lua_State *L) {
  size_t rest, step;
  const char *s = luaL_checklstring(L, 1, &rest), *sep = luaL_checklstring(L, 2, &step);
  luaL_argcheck(L, step > 0, 2, "empty separator");
  charge_bytes(L, rest);
  lua_newtable(L);
  for (lua_Integer n = 1;; n++) {
    if (n % 1024 == 0) mgrid_lua_charge(L, 1024 * 4);
    const char *end = memmem(s, rest, sep, step);
    size_t len = end ? (size_t)(end - s) : rest;
    lua_pushlstring(L, s, len);
    lua_rawseti(L, -2, n);
    if (!end) return 1;
    s += len + step;
    rest -= len + step;
  }
}

/* If the value is NaN, push "nan", because on some processors C prints 0/0 as "-nan". */
static bool push_nan(lua_State *L, int i) {
  lua_Number n = lua_tonumber(L, i);
  if (lua_type(L, i) != LUA_TNUMBER || n == n) return false;
  lua_pushliteral(L, "nan");
  return true;
}

/* Return whether Lua's tostring would give the value's address. */
static bool shows_address(lua_State *L, int i) {
  int type = lua_type(L, i);
  return type == LUA_TTABLE || type == LUA_TFUNCTION || type == LUA_TLIGHTUSERDATA;
}

/* tostring without addresses: a table or function gives the name of its type. */
static int plain_tostring(lua_State *L) {
  luaL_checkany(L, 1);
  if (shows_address(L, 1))
    lua_pushstring(L, luaL_typename(L, 1));
  else if (!push_nan(L, 1))
    luaL_tolstring(L, 1, NULL);
  return 1;
}

/* Send the text on the top of the stack to the host's log. A zero byte would end the text there, so
** it becomes \x00. */
static int sandbox_say(lua_State *L) {
  size_t len;
  const char *text = lua_tolstring(L, -1, &len), *end = text + len;
  mgrid_lua_charge(L, (int64_t)len + 100);
  if (memchr(text, 0, len)) {
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (const char *p = text; p < end; p++)
      if (*p)
        luaL_addchar(&b, *p);
      else
        luaL_addstring(&b, "\\x00");
    luaL_pushresult(&b);
  }
  mgrid_lua_say(L, lua_tostring(L, -1));
  return 0;
}

/* Most bytes of a line of print. mgrid_lua_say shows fewer bytes, and "..." at the end of a line
** that was cut here. */
enum { LINE = 1024 };

/* Append a text to a line, as much as fits. */
static int put_in_line(const char *text, size_t len, void *line) {
  mgrid_text *t = line;
  const size_t left = t->len < LINE ? LINE - t->len : 0;
  mgrid_text_put(t, text, len < left ? len : left);
  return t->failed || len > left ? -1 : 0;
}

/* print(...): send the values, with spaces between them, to the host's log. A table is printed as
** JSON if JSON has such a value, else as the word "table". */
static int recipe_print(lua_State *L) {
  int n = lua_gettop(L);
  mgrid_text t = { 0 };

  for (int i = 1; i <= n && t.len < LINE; i++) {
    json_t *v = lua_istable(L, i) ? mgrid_json_of(L, i) : NULL;
    lua_pushcfunction(L, plain_tostring);
    lua_pushvalue(L, i);
    /* by lua_pcall, because an error must not skip freeing t */
    if (lua_pcall(L, 1, 1, 0) != LUA_OK) lua_pop(L, 1), lua_pushnil(L);
    size_t len;
    const char *value = lua_tolstring(L, -1, &len);
    if (i > 1) mgrid_text_str(&t, " ");
    if (v)
      json_dump_callback(v, put_in_line, &t, JSON_COMPACT | JSON_SORT_KEYS);
    else if (value)
      put_in_line(value, len, &t);
    else
      mgrid_text_str(&t, luaL_typename(L, i));
    json_decref(v);
    lua_pop(L, 1);
  }
  mgrid_lua_push_text(L, &t);
  return sandbox_say(L);
}

/* Call Lua's string.format, which is the upvalue. Errors name `caller`. Refuse %p, which prints an
** address, and replace tables and functions by the names of their types. */
static int format_for(lua_State *L, const char *caller) {
  size_t len, bytes = 0;
  /* the text may have zero bytes */
  const char *fmt = luaL_checklstring(L, 1, &len), *end = fmt + len;

  for (const char *p = memchr(fmt, '%', len); p; p = memchr(p, '%', (size_t)(end - p))) {
    p++;
    p += strspn(p, "-+ #0123456789.");
    if (*p == 'p')
      return mgrid_lua_raise(L, "%s: %%p prints an address, which differs between ranks", caller);
    if (p < end) p++;
  }
  for (int i = 1; i <= lua_gettop(L); i++, bytes += len)
    if (lua_type(L, i) != LUA_TSTRING || !lua_tolstring(L, i, &len)) len = 8;
  charge_bytes(L, 4 * bytes);
  for (int i = 2; i <= lua_gettop(L); i++) /* "nan" without a sign */
    if (lua_type(L, i) == LUA_TNUMBER && lua_tonumber(L, i) != lua_tonumber(L, i)) {
      lua_pushnumber(L, (lua_Number)NAN);
      lua_replace(L, i);
    } else if (shows_address(L, i)) {
      lua_pushstring(L, luaL_typename(L, i));
      lua_replace(L, i);
    }
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  if (lua_pcall(L, lua_gettop(L) - 1, 1, 0) == LUA_OK) return 1;

  /* the error names 'string.format' or 'format': replace that by the caller */
  const char *name = lua_pushfstring(L, "'%s'", caller);
  luaL_gsub(L, luaL_gsub(L, lua_tostring(L, -2), "'string.format'", name), "'format'", name);
  return mgrid_lua_raise(L, "%s", lua_tostring(L, -1));
}

static int string_format(lua_State *L) { return format_for(L, "string.format"); }

/* log(format, ...): print(string.format(format, ...)) */
static int recipe_log(lua_State *L) {
  if (lua_type(L, 1) != LUA_TSTRING)
    return mgrid_lua_raise_as(
        L, MGRID_BAD_VALUE,
        "log takes a format first, such as \"%%d ranks\", not %s; print takes any values",
        mgrid_lua_kind(L, 1));
  format_for(L, "log");
  return sandbox_say(L);
}

/* Add the changed text functions to the globals on the top, and to their `string`. */
static void add_text(lua_State *L) {
  static const luaL_Reg strings[] = { { "rep", string_rep },
                                      { "split", string_split },
                                      { NULL, NULL } };
  static const luaL_Reg globals[] = { { "tostring", plain_tostring },
                                      { "print", recipe_print },
                                      { NULL, NULL } };
  luaL_setfuncs(L, globals, 0);
  lua_getfield(L, -1, "string");
  luaL_setfuncs(L, strings, 0);
  lua_getglobal(L, "string");
  lua_getfield(L, -1, "format");
  lua_pushvalue(L, -1);
  lua_pushcclosure(L, recipe_log, 1);
  lua_setfield(L, -5, "log");
  lua_pushcclosure(L, string_format, 1);
  lua_setfield(L, -3, "format");
  lua_pop(L, 2);
}

/* --------------------------------------------------------------- iteration */

/* Return the next key and its value. Upvalues: the list of keys, the table, the position in the
** list. */
static int next_pair(lua_State *L) {
  lua_Integer i = lua_tointeger(L, lua_upvalueindex(3)) + 1;
  lua_pushinteger(L, i);
  lua_replace(L, lua_upvalueindex(3));
  if (lua_rawgeti(L, lua_upvalueindex(1), i) == LUA_TNIL) return 1;
  lua_pushvalue(L, -1);
  lua_rawget(L, lua_upvalueindex(2));
  return 2;
}

/* pairs(table), in the order of mgrid_lua_keys */
static int ordered_pairs(lua_State *L) {
  luaL_checkany(L, 1);

  /* only values of moongrid have a metatable, because recipes cannot set one */
  if (luaL_getmetafield(L, 1, "__pairs") != LUA_TNIL) {
    lua_pushvalue(L, 1);
    lua_call(L, 1, 3);
    return 3;
  }
  if (luaL_getmetafield(L, 1, "__name") == LUA_TSTRING)
    return mgrid_lua_no_list(L, lua_tostring(L, -1));
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  lua_Integer n = mgrid_lua_keys(L, 1);
  for (lua_Integer k = 1; k <= n; k++, lua_pop(L, 1)) {
    lua_rawgeti(L, 2, k);
    if (!lua_isinteger(L, -1) && lua_type(L, -1) != LUA_TSTRING)
      return mgrid_lua_raise(L, "pairs: all keys must be integers or strings, but one is a %s",
                             luaL_typename(L, -1));
  }
  lua_pushvalue(L, 2);
  lua_pushvalue(L, 1);
  lua_pushinteger(L, 0);
  lua_pushcclosure(L, next_pair, 3);
  return 1;
}

/* ------------------------------------------------------------------- tables */

static lua_Integer list_length(lua_State *L, int i) {
  luaL_checktype(L, i, LUA_TTABLE);
  /* only read-only views have a metatable */
  if (lua_getmetatable(L, i)) return mgrid_lua_raise(L, "this table is read-only");
  return (lua_Integer)lua_rawlen(L, i);
}

static bool default_before(lua_State *L, int a, int b) {
  bool strings = lua_type(L, a) == LUA_TSTRING && lua_type(L, b) == LUA_TSTRING;
  return strings ? mgrid_lua_key_before(L, a, b) : lua_compare(L, a, b, LUA_OPLT);
}

static bool custom_before(lua_State *L, int a, int b) {
  lua_pushvalue(L, 2);
  lua_pushvalue(L, a);
  lua_pushvalue(L, b);
  lua_call(L, 2, 1);
  bool before = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return before;
}

static int table_sort(lua_State *L) {
  lua_Integer n = list_length(L, 1);
  bool custom = !lua_isnoneornil(L, 2);
  if (custom) luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  mgrid_lua_sort(L, 1, n, custom ? custom_before : default_before);
  return 0;
}

static int table_insert(lua_State *L) {
  lua_Integer n = list_length(L, 1);
  if (n > INT32_MAX) mgrid_lua_charge(L, n); /* a list with holes may have any length */
  lua_Integer at = ++n;
  int value = 2;
  if (lua_gettop(L) == 3) {
    at = luaL_checkinteger(L, 2);
    value = 3;
    luaL_argcheck(L, at >= 1 && at <= n, 2, "position out of bounds");
  } else if (lua_gettop(L) != 2) {
    return mgrid_lua_raise(L, "table.insert takes a list, maybe a position, and a value");
  }
  mgrid_lua_charge(L, n - at);
  for (lua_Integer i = n; i > at; i--) {
    lua_rawgeti(L, 1, i - 1);
    lua_rawseti(L, 1, i);
  }
  lua_pushvalue(L, value);
  lua_rawseti(L, 1, at);
  return 0;
}

static int table_remove(lua_State *L) {
  lua_Integer n = list_length(L, 1), at = luaL_optinteger(L, 2, n);
  if (n == 0) return 0;
  luaL_argcheck(L, at >= 1 && at <= n, 2, "position out of bounds");
  mgrid_lua_charge(L, n - at);
  lua_rawgeti(L, 1, at);
  for (lua_Integer i = at; i < n; i++) {
    lua_rawgeti(L, 1, i + 1);
    lua_rawseti(L, 1, i);
  }
  lua_pushnil(L);
  lua_rawseti(L, 1, n);
  return 1;
}

/* Call Lua's own function, which is the upvalue. */
static int call_own(lua_State *L) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

/* table.concat(list, separator, from, to). Charge for each element, because empty elements make no
** text that the allocator would charge. */
static int table_concat(lua_State *L) {
  enum { MOST = 1 << 24 }; /* more elements than fit in memory */
  lua_Integer from = luaL_optinteger(L, 3, 1);
  lua_Integer to = lua_istable(L, 1) && lua_isnoneornil(L, 4) ? (lua_Integer)lua_rawlen(L, 1)
                                                              : luaL_optinteger(L, 4, 0);
  uint64_t n = to >= from ? (uint64_t)to - (uint64_t)from : 0;
  mgrid_lua_charge(L, 2 * (int64_t)(n < MOST ? n : MOST));
  return call_own(L);
}

/* math.max and math.min. Charge for reading texts, because these functions also compare texts. */
static int compare_all(lua_State *L) {
  for (int i = lua_gettop(L); i > 0; i--)
    if (lua_type(L, i) == LUA_TSTRING) charge_bytes(L, lua_rawlen(L, i));
  return call_own(L);
}

/* Replace a function of a library in the table on the top by `pays`, which charges the recipe and
** then calls the function, its upvalue. */
static void sandbox_pay_for(lua_State *L, const char *library, const char *name,
                            lua_CFunction pays) {
  lua_getfield(L, -1, library);
  lua_getfield(L, -1, name);
  lua_pushcclosure(L, pays, 1);
  lua_setfield(L, -2, name);
  lua_pop(L, 1);
}

/* ---------------------------------------------------------- the environment */

/* assert, with the recipe's line in the error */
static int checked_assert(lua_State *L) {
  if (lua_toboolean(L, 1)) return lua_gettop(L);
  luaL_checkany(L, 1);
  if (lua_type(L, 2) == LUA_TSTRING) return mgrid_lua_raise(L, "%s", lua_tostring(L, 2));
  return mgrid_lua_raise(L, "assertion failed");
}

/* __index of the globals. Upvalues: the table behind the view; the function to call at each read */
static int read_global(lua_State *L) {
  const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";

  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) {
    mgrid_sandbox_read **on_read = lua_touserdata(L, lua_upvalueindex(2));
    (*on_read)(L, name);
    return 1;
  }
  lua_pushstring(L, name);
  mgrid_lua_hint(L, "global", 1, 1);
  const char *hint = lua_tostring(L, -1);
  if (hint)
    return mgrid_lua_raise_as(L, MGRID_UNKNOWN_NAME, "undefined global '%s': %s", name, hint);
  const char *known[128];
  const size_t n = mgrid_lua_names(L, lua_upvalueindex(1), known, 128);
  mgrid_lua_charge_nearest(L, name, n);
  const char *near = mgrid_nearest(name, known, n);
  if (near)
    return mgrid_lua_raise_as(L, MGRID_UNKNOWN_NAME, "undefined global '%s'; nearest is '%s'", name,
                              near);
  return mgrid_lua_raise_as(
      L, MGRID_UNKNOWN_NAME,
      "undefined global '%s': neither a word of recipes nor a function that this program has "
      "registered; a dim is written g \"%s\", a family t.%s, a parameter p.%s, a text \"%s\"",
      name, name, name, name, name);
}

static int no_new_global(lua_State *L) {
  const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";
  return mgrid_lua_raise(L, "assignment to global '%s': %s", name,
                         strcmp(name, "recipe") ? "use 'local'" : "write return recipe { ... }");
}

static int no_new_field(lua_State *L) {
  return mgrid_lua_raise(L, "assignment to field '%s' of a library",
                         lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?");
}

/* __index of the table behind the view of a library, for a missing name. If Lua itself has the
** name, the error says why recipes do not. Upvalue: the name of the library */
static int missing_field(lua_State *L) {
  static const char *const patterns[] = { "find", "gmatch", "gsub", "match" };
  const char *library = lua_tostring(L, lua_upvalueindex(1)), *known[64];
  const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";
  lua_getglobal(L, library);
  if (lua_getfield(L, -1, name) == LUA_TNIL) {
    char what[32];
    snprintf(what, sizeof what, "function of %s", library);
    return mgrid_lua_unknown(L, what, name, known, mgrid_lua_names(L, 1, known, 64));
  }
  for (size_t i = 0; strcmp(library, "string") == 0 && i < sizeof patterns / sizeof *patterns; i++)
    if (strcmp(name, patterns[i]) == 0)
      return mgrid_lua_raise(L,
                             "recipes have no string.%s, because patterns may take forever; "
                             "string.split(s, \"-\") cuts s at each \"-\"",
                             name);
  return mgrid_lua_raise(L,
                         "recipes have no %s.%s, because a recipe must mean the same in every "
                         "process, and must end",
                         library, name);
}

/* Replace the library on the top by a read-only view of it. */
static void freeze_library(lua_State *L, const char *name) {
  lua_createtable(L, 0, 1);
  lua_pushstring(L, name);
  lua_pushcclosure(L, missing_field, 1);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
  lua_newtable(L);
  lua_createtable(L, 0, 3);
  lua_pushvalue(L, -3);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, no_new_field);
  lua_setfield(L, -2, "__newindex");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, -2);
  lua_replace(L, -2);
}

/* Copy functions by name into the table on the top, from the global table `library` (NULL: from the
** globals). */
static void allow(lua_State *L, const char *library, const char *const *names) {
  lua_pushglobaltable(L);
  if (library) {
    lua_getfield(L, -1, library);
    lua_remove(L, -2);
  }
  for (; *names; names++) {
    lua_getfield(L, -1, *names);
    lua_setfield(L, -3, *names);
  }
  lua_pop(L, 1);
}

static void allow_library(lua_State *L, const char *library, const char *const *names,
                          const luaL_Reg *changed) {
  lua_newtable(L);
  allow(L, library, names);
  luaL_setfuncs(L, changed, 0);
  lua_setfield(L, -2, library);
}

void mgrid_sandbox_push(lua_State *L) {
  static const char *const globals[] = { "error",    "ipairs", "pcall", "select",
                                         "tonumber", "type",   NULL };
  static const char *const maths[] = { "abs",       "ceil",       "floor", "fmod",       "huge",
                                       "max",       "maxinteger", "min",   "mininteger", "sqrt",
                                       "tointeger", "type",       "ult",   NULL };
  static const char *const strings[] = { "byte", "char", "len", "lower", "sub", "upper", NULL };
  static const char *const tables[] = { "concat", "pack", "unpack", NULL };
  static const luaL_Reg none[] = { { NULL, NULL } };
  static const luaL_Reg new_tables[] = {
    { "insert", table_insert }, { "remove", table_remove }, { "sort", table_sort }, { NULL, NULL }
  };
  static const luaL_Reg changed[] = { { "assert", checked_assert },
                                      { "pairs", ordered_pairs },
                                      { NULL, NULL } };

  lua_newtable(L);
  allow(L, NULL, globals);
  luaL_setfuncs(L, changed, 0);
  allow_library(L, "math", maths, none);
  allow_library(L, "string", strings, none);
  allow_library(L, "table", tables, new_tables);
  sandbox_pay_for(L, "table", "concat", table_concat);
  sandbox_pay_for(L, "math", "max", compare_all);
  sandbox_pay_for(L, "math", "min", compare_all);
  add_text(L);
}

/* __index of numbers. In a recipe g.tp is a number, and its author may take it for a family. */
static int index_number(lua_State *L) {
  if (lua_type(L, 2) != LUA_TSTRING) return mgrid_lua_no_list(L, "number");
  return mgrid_lua_raise(L,
                         "a number has no '%s'; with a grid g, g.tp is the size of dim tp, and g "
                         "\"tp\" is the family along this dim",
                         lua_tostring(L, 2));
}

void mgrid_sandbox_seal(lua_State *L, mgrid_sandbox_read *on_read) {
  static const char *const libraries[] = { "math", "string", "table" };

  lua_pushinteger(L, 0);
  lua_createtable(L, 0, 2);
  lua_pushcfunction(L, index_number);
  lua_setfield(L, -2, "__index");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, -2);
  lua_pop(L, 1);

  /* Let methods of strings come from the recipe's `string`. Otherwise ("x"):find would reach Lua's
  ** whole library through the metatable of strings. */
  lua_pushliteral(L, "");
  lua_createtable(L, 0, 2);
  lua_getfield(L, -3, "string");
  lua_setfield(L, -2, "__index");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, -2);
  lua_pop(L, 1);
  for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
    lua_getfield(L, -1, libraries[i]);
    freeze_library(L, libraries[i]);
    lua_setfield(L, -2, libraries[i]);
  }
  lua_newtable(L); /* empty, so that every read and assignment goes through the metatable */
  lua_createtable(L, 0, 3);
  lua_pushvalue(L, -3);
  mgrid_sandbox_read **told = lua_newuserdatauv(L, sizeof *told, 0);
  *told = on_read;
  lua_pushcclosure(L, read_global, 2);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, no_new_global);
  lua_setfield(L, -2, "__newindex");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, -2);
  lua_replace(L, -2);
}

void mgrid_sandbox_words(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &mgrid_env_key);
  lua_getmetatable(L, -1);
  lua_getfield(L, -1, "__index");
  lua_getupvalue(L, -1, 1); /* of read_global */
  lua_replace(L, -4);
  lua_pop(L, 2);
}

bool mgrid_sandbox_is_taken(lua_State *L, const char *name) {
  const int top = lua_gettop(L);
  mgrid_sandbox_words(L);
  bool taken = strcmp(name, "_ENV") == 0 || lua_getfield(L, -1, name) != LUA_TNIL
               || lua_getglobal(L, name) != LUA_TNIL;
  const char *local = lua_pushfstring(L, "local %s", name);
  /* a keyword of Lua is taken, too */
  if (!taken) taken = luaL_loadbufferx(L, local, strlen(local), "name", "t") == LUA_ERRSYNTAX;
  lua_settop(L, top);
  return taken;
}

void mgrid_sandbox_add(lua_State *L, const char *name) {
  mgrid_sandbox_words(L);
  lua_insert(L, -2);
  lua_setfield(L, -2, name);
  lua_pop(L, 1);
}
