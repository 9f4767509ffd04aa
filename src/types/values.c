/* SPDX-License-Identifier: MIT
**
** values.c - plain values between Lua states.
*/
#include "types/values.h"

#include <lauxlib.h>

enum { DEPTH = 32 };

static json_t *convert(lua_State *L, int i, int depth);

static json_t *list_of(lua_State *L, int i, int depth) {
  json_t *list = json_array();
  for (lua_Integer k = 1, n = (lua_Integer)lua_rawlen(L, i); list && k <= n; k++) {
    lua_rawgeti(L, i, k);
    json_t *v = convert(L, lua_gettop(L), depth + 1);
    lua_pop(L, 1);
    if (json_array_append_new(list, v) != 0) { /* refuses NULL as well */
      json_decref(list);
      return NULL;
    }
  }
  return list;
}

static json_t *object_of(lua_State *L, int i, int depth) {
  json_t *object = json_object();
  lua_pushnil(L);
  while (object && lua_next(L, i)) {
    json_t *v = lua_type(L, -2) == LUA_TSTRING ? convert(L, lua_gettop(L), depth + 1) : NULL;
    if (!v || json_object_set_new(object, lua_tostring(L, -2), v) != 0) {
      json_decref(object);
      lua_pop(L, 2);
      return NULL;
    }
    lua_pop(L, 1);
  }
  return object;
}

static json_t *convert(lua_State *L, int i, int depth) {
  if (depth > DEPTH || !lua_checkstack(L, 6)) return NULL;
  switch (lua_type(L, i)) {
  case LUA_TNONE:
  case LUA_TNIL: return json_null();
  case LUA_TBOOLEAN: return json_boolean(lua_toboolean(L, i));
  case LUA_TNUMBER: return lua_isinteger(L, i) ? json_integer(lua_tointeger(L, i)) : json_real(lua_tonumber(L, i));
  case LUA_TSTRING: {
    size_t      len;
    const char *s = lua_tolstring(L, i, &len);
    return json_stringn(s, len);
  }
  case LUA_TTABLE: {
    lua_Integer items = 0, names = 0; /* a list, or by name? all keys have a say */
    lua_pushnil(L);
    while (lua_next(L, i)) {
      lua_pop(L, 1);
      if (lua_type(L, -1) == LUA_TSTRING)
        names++;
      else
        items++;
    }
    if (names > 0) return items == 0 ? object_of(L, i, depth) : NULL;
    return items == (lua_Integer)lua_rawlen(L, i) ? list_of(L, i, depth) : NULL;
  }
  default: return NULL;
  }
}

json_t *mgrid_json_of(lua_State *L, int i) { return convert(L, lua_absindex(L, i), 0); }

void mgrid_push_json(lua_State *L, const json_t *v) {
  luaL_checkstack(L, 6, "value nested too deep");
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

static bool copy(lua_State *from, int i, lua_State *to, bool views, int depth) {
  size_t      len;
  const char *s;
  if (depth > DEPTH || !lua_checkstack(from, 4)) return false;
  luaL_checkstack(to, 6, "value nested too deep");
  switch (lua_type(from, i)) {
  case LUA_TNONE:
  case LUA_TNIL: lua_pushnil(to); return true;
  case LUA_TBOOLEAN: lua_pushboolean(to, lua_toboolean(from, i)); return true;
  case LUA_TNUMBER:
    if (lua_isinteger(from, i))
      lua_pushinteger(to, lua_tointeger(from, i));
    else
      lua_pushnumber(to, lua_tonumber(from, i));
    return true;
  case LUA_TSTRING:
    s = lua_tolstring(from, i, &len);
    lua_pushlstring(to, s, len);
    return true;
  case LUA_TTABLE:
    if (views && lua_getmetatable(from, i)) {
      lua_pop(from, 1);
      return false;
    }
    lua_newtable(to);
    for (lua_pushnil(from); lua_next(from, i); lua_pop(from, 1)) {
      int  key = lua_gettop(from) - 1;
      bool plain = (lua_type(from, key) == LUA_TSTRING || lua_isinteger(from, key))
                   && copy(from, key, to, views, depth + 1) && copy(from, key + 1, to, views, depth + 1);
      if (!plain) {
        lua_pop(from, 2);
        return false;
      }
      lua_rawset(to, -3);
    }
    return true;
  default: return false;
  }
}

bool mgrid_copy_value(lua_State *from, int i, lua_State *to, bool views) {
  return copy(from, lua_absindex(from, i), to, views, 0);
}
