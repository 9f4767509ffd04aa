/* SPDX-License-Identifier: MIT
**
** sandbox_text.c - text functions of recipes: strings stay short and are the same in every process; and output to the
** host's log.
*/
#include "recipe/sandbox.h"

#include "recipe/bind.h"
#include "recipe/values.h"

#include <math.h>
#include <string.h>

enum { STRING_CAP = 64 * 1024, REP_CAP = 65536 };

/* Short texts are not worth a check of the clock. */
void mgrid_sandbox_charge_bytes(lua_State *L, size_t bytes) {
  if (bytes >= 1024) mgrid_lua_charge(L, (int64_t)(bytes / 8));
}

static int string_rep(lua_State *L) {
  size_t      len, lsep;
  const char *s = luaL_checklstring(L, 1, &len), *sep = luaL_optlstring(L, 3, "", &lsep);
  lua_Integer n = luaL_checkinteger(L, 2);
  if (n <= 0) n = 0;
  if (n > REP_CAP || (lua_Integer)(len + lsep) * n > STRING_CAP)
    return mgrid_lua_raise(L, "string.rep: a recipe's strings have at most %d bytes", STRING_CAP);
  /* not a luaL_Buffer: at the limit of memory that fails without collecting garbage first */
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

/* string.split("tp-cp-dp", "-") -> { "tp", "cp", "dp" }; the separator is plain text */
static int string_split(lua_State *L) {
  size_t      rest, step;
  const char *s = luaL_checklstring(L, 1, &rest), *sep = luaL_checklstring(L, 2, &step);
  luaL_argcheck(L, step > 0, 2, "empty separator");
  mgrid_sandbox_charge_bytes(L, rest);
  lua_newtable(L);
  for (lua_Integer n = 1;; n++) {
    if (n % 1024 == 0) mgrid_lua_charge(L, 1024 * 4);
    const char *end = memmem(s, rest, sep, step);
    size_t      len = end ? (size_t)(end - s) : rest;
    lua_pushlstring(L, s, len);
    lua_rawseti(L, -2, n);
    if (!end) return 1;
    s += len + step;
    rest -= len + step;
  }
}

/* 0/0 is "nan" on one processor and "-nan" on another. */
static bool push_nan(lua_State *L, int i) {
  lua_Number n = lua_tonumber(L, i);
  if (lua_type(L, i) != LUA_TNUMBER || n == n) return false;
  lua_pushliteral(L, "nan");
  return true;
}

/* tostring without addresses: a table or function becomes the name of its type. */
static int plain_tostring(lua_State *L) {
  luaL_checkany(L, 1);
  int type = lua_type(L, 1);
  if (type == LUA_TTABLE || type == LUA_TFUNCTION || type == LUA_TLIGHTUSERDATA || type == LUA_TTHREAD)
    lua_pushstring(L, luaL_typename(L, 1));
  else if (!push_nan(L, 1))
    luaL_tolstring(L, 1, NULL);
  return 1;
}

/* Send the text on the top of the stack to the host's log. A zero byte, which would end it, becomes \x00. */
static int say(lua_State *L) {
  size_t      len;
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

/* Most bytes of a printed line; mgrid_lua_say shows fewer, so that the cut is visible. */
enum { LINE = 1024 };

/* Append a value, at most as much as fits in the line. */
static int put_in_line(const char *text, size_t len, void *line) {
  mgrid_text  *t = line;
  const size_t left = t->len < LINE ? LINE - t->len : 0;
  mgrid_text_put(t, text, len < left ? len : left);
  return t->failed || len > left ? -1 : 0;
}

/* print(...): send the values, separated by blanks, to the host's log. A table is written as JSON if possible. */
static int recipe_print(lua_State *L) {
  int        n = lua_gettop(L);
  mgrid_text t = { 0 };
  for (int i = 1; i <= n && t.len < LINE; i++) {
    json_t *v = lua_istable(L, i) ? mgrid_json_of(L, i) : NULL;
    lua_pushcfunction(L, plain_tostring);
    lua_pushvalue(L, i);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK) lua_pop(L, 1), lua_pushnil(L); /* the text is to be freed */
    size_t      len;
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
  return say(L);
}

/* Pass the arguments to the real string.format, the upvalue, for `caller`. %p prints addresses, and %s those of
** tables. */
static int format_for(lua_State *L, const char *caller) {
  size_t      len, bytes = 0;
  const char *fmt = luaL_checklstring(L, 1, &len), *end = fmt + len; /* a zero byte does not end it */
  for (const char *p = memchr(fmt, '%', len); p; p = memchr(p, '%', (size_t)(end - p))) {
    p++;
    p += strspn(p, "-+ #0123456789.");
    if (*p == 'p') return mgrid_lua_raise(L, "%s: %%p prints an address, which differs between ranks", caller);
    if (p < end) p++;
  }
  for (int i = 1; i <= lua_gettop(L); i++, bytes += len)
    if (lua_type(L, i) != LUA_TSTRING || !lua_tolstring(L, i, &len)) len = 8;
  mgrid_sandbox_charge_bytes(L, 4 * bytes);
  for (int i = 2; i <= lua_gettop(L); i++)
    if (lua_type(L, i) == LUA_TNUMBER && lua_tonumber(L, i) != lua_tonumber(L, i)) { /* "nan" whatever its sign */
      lua_pushnumber(L, (lua_Number)NAN);
      lua_replace(L, i);
    } else if (lua_type(L, i) == LUA_TTABLE || lua_type(L, i) == LUA_TFUNCTION
               || lua_type(L, i) == LUA_TLIGHTUSERDATA) {
      lua_pushstring(L, luaL_typename(L, i));
      lua_replace(L, i);
    }
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  if (lua_pcall(L, lua_gettop(L) - 1, 1, 0) == LUA_OK) return 1;
  /* Lua names its own function: 'string.format' or 'format' */
  const char *name = lua_pushfstring(L, "'%s'", caller);
  luaL_gsub(L, luaL_gsub(L, lua_tostring(L, -2), "'string.format'", name), "'format'", name);
  return mgrid_lua_raise(L, "%s", lua_tostring(L, -1));
}

static int string_format(lua_State *L) { return format_for(L, "string.format"); }

/* log(format, ...): print(string.format(format, ...)) */
static int recipe_log(lua_State *L) {
  if (lua_type(L, 1) != LUA_TSTRING)
    return mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                              "log takes a format first, such as \"%%d ranks\", not %s; print takes any values",
                              mgrid_lua_kind(L, 1));
  format_for(L, "log");
  return say(L);
}

void mgrid_sandbox_add_text(lua_State *L) {
  static const luaL_Reg strings[] = { { "rep", string_rep }, { "split", string_split }, { NULL, NULL } };
  static const luaL_Reg globals[] = { { "tostring", plain_tostring }, { "print", recipe_print }, { NULL, NULL } };
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
