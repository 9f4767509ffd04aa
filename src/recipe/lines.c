/* SPDX-License-Identifier: MIT
**
** lines.c - the lines of a recipe: the line of an error, and the lines from which families come.
*/
#include "recipe/budget.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- errors
** Messages of Lua start with "file:line: ". A recipe sees a file's name only relative to its own
** folder. In errors for the host, the path by which the host named the file replaces this name.
*/

/* Their addresses are registry keys. home: a list of the name of the host's file, the path that the
** host gave for it, and the folder of the file, with a slash at its end; or false, if the recipe is
** bundled or a text. kept: the home that mgrid_budget_keep_home has saved. */
static const char home_key = 'h', kept_key = 'k';
enum { NAME = 1, PATH, FOLDER };

void mgrid_budget_home(lua_State *L, const char *name, const char *path, const char *folder) {
  const char *const parts[] = { name, path, folder };
  lua_createtable(L, FOLDER, 0);
  for (int i = NAME; i <= FOLDER; i++) {
    lua_pushstring(L, parts[i - NAME]);
    lua_rawseti(L, -2, i);
  }
  lua_rawsetp(L, LUA_REGISTRYINDEX, &home_key);
}

void mgrid_budget_no_home(lua_State *L) {
  lua_pushboolean(L, 0); /* not nil: setting a key that exists needs no memory */
  lua_rawsetp(L, LUA_REGISTRYINDEX, &home_key);
  mgrid_budget_keep_home(L);
}

void mgrid_budget_keep_home(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &home_key);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &kept_key);
}

void mgrid_budget_back_home(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &kept_key);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &home_key);
}

void mgrid_budget_path(lua_State *L, const char *name, size_t len, char *path, size_t room) {
  const char *folder = "";
  lua_rawgetp(L, LUA_REGISTRYINDEX, &home_key);
  int home = lua_gettop(L);
  if (lua_istable(L, home)) {
    lua_rawgeti(L, home, NAME);
    lua_rawgeti(L, home, PATH);
    lua_rawgeti(L, home, FOLDER);
    const char *file = lua_tostring(L, -3);
    if (strlen(file) == len && memcmp(file, name, len) == 0)
      name = lua_tostring(L, -2), len = strlen(name);
    else if (len > 4 && memcmp(name + len - 4, ".lua", 4) == 0 && *name != '.')
      folder = lua_tostring(L, -1);
  }
  size_t in = strlen(folder), cut = in + len < room ? 0 : in + len + 4 - room; /* 4 for the dots */
  if (cut < in)
    snprintf(path, room, "%s%s%.*s", cut ? "..." : "", folder + cut, (int)len, name);
  else
    snprintf(path, room, "%s%.*s", cut ? "..." : "", (int)(len - (cut - in)), name + (cut - in));
  lua_settop(L, home - 1);
}

size_t mgrid_budget_place(lua_State *L, const char *text, char path[MGRID_PLACE_MAX], int *line) {
  const char *colon = strchr(text, ':');
  while (colon && !(colon[1] >= '0' && colon[1] <= '9')) colon = strchr(colon + 1, ':');
  char *end;
  long at = colon ? strtol(colon + 1, &end, 10) : 0;
  if (at <= 0 || *end != ':') return 0;
  size_t len = (size_t)(colon - text);
  if (memchr(text, ' ', len)) return 0;
  mgrid_budget_path(L, text, len, path, MGRID_PLACE_MAX);
  *line = (int)at;
  return len;
}

void mgrid_budget_position(lua_State *L, mgrid_error *err) {
  char path[MGRID_PLACE_MAX];
  int line;
  size_t len = mgrid_budget_place(L, err->message, path, &line);
  if (!len) return;
  mgrid_error_reword(err, "%s%s", path, err->message + len);
  snprintf(err->file, sizeof err->file, "%s", path);
  err->line = line;
}

/* ----------------------------------------------------------------- families
** The lines of a recipe that make families. They are recorded only on request (moongrid explain).
*/

/* its address: the registry key of a table, Family -> { source, line, number, Families from which it
** was made }. Numbers are in the order in which Families are made; `n` has the last one. */
static const char trail_key;
enum { SOURCE = 1, LINE, NUMBER, FAMILIES };

void mgrid_lua_trail_begin(lua_State *L) {
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "k"); /* weak keys, so that garbage families are forgotten */
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &trail_key);
}

void mgrid_lua_trail_add(lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &trail_key) != LUA_TTABLE) {
    lua_pop(L, 1);
    return;
  }
  lua_Debug ar;
  bool found = mgrid_lua_caller(L, &ar);
  int own = lua_gettop(L) - 1; /* the family; the table is above it */
  lua_getfield(L, -1, "n");
  lua_Integer n = lua_tointeger(L, -1) + 1;
  lua_pop(L, 1);
  mgrid_lua_set_integer(L, "n", n);

  lua_pushvalue(L, own);
  lua_createtable(L, FAMILIES, 0);
  lua_pushstring(L, found ? ar.source : "");
  lua_rawseti(L, -2, SOURCE);
  lua_pushinteger(L, found ? ar.currentline : 0);
  lua_rawseti(L, -2, LINE);
  lua_pushinteger(L, n);
  lua_rawseti(L, -2, NUMBER);
  for (int i = 1; i < own && luaL_testudata(L, i, MGRID_LUA_FAMILY); i++) {
    lua_pushvalue(L, i);
    lua_rawseti(L, -2, FAMILIES + i - 1);
  }
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

/* Pop a family. If it is in the trail, append its entry to the list `found`, which has each once. */
static void find_entry(lua_State *L, int trail, int found) {
  enum { MOST = 64 };
  if (lua_rawget(L, trail) == LUA_TTABLE) {
    lua_Unsigned n = lua_rawlen(L, found);
    lua_pushvalue(L, -1);
    if (lua_rawget(L, found) == LUA_TNIL && n < MOST) {
      lua_pushvalue(L, -2);
      lua_rawseti(L, found, (lua_Integer)n + 1);
      lua_pushvalue(L, -2);
      lua_pushboolean(L, true);
      lua_rawset(L, found);
    }
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

/* Push the entry of the list `found` with the lowest number above *last, and set *last to this
** number. Return false if there is none. */
static bool push_next(lua_State *L, int found, lua_Integer *last) {
  lua_Integer least = 0, at = 0;
  for (lua_Integer k = 1; lua_rawgeti(L, found, k) == LUA_TTABLE; k++, lua_pop(L, 2)) {
    lua_rawgeti(L, -1, NUMBER);
    lua_Integer n = lua_tointeger(L, -1);
    if (n > *last && (at == 0 || n < least)) least = n, at = k;
  }
  lua_pop(L, 1);
  *last = least;
  return at && lua_rawgeti(L, found, at) == LUA_TTABLE;
}

/* Pop a family, and append the lines that made it to the list below, the first line first. */
static void places(lua_State *L) {
  int list = lua_gettop(L) - 1, trail = list + 2, found = list + 3;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &trail_key);
  lua_newtable(L);
  lua_pushvalue(L, list + 1);
  find_entry(L, trail, found);
  for (lua_Integer k = 1; lua_rawgeti(L, found, k) == LUA_TTABLE; k++, lua_pop(L, 2))
    for (lua_Integer i = FAMILIES; lua_rawgeti(L, -1, i) != LUA_TNIL; i++)
      find_entry(L, trail, found);
  lua_pop(L, 1);
  for (lua_Integer last = 0; push_next(L, found, &last); lua_settop(L, found)) {
    lua_rawgeti(L, -1, SOURCE);
    lua_rawgeti(L, -2, LINE);
    const char *source = lua_tostring(L, -2);
    char path[PATH_MAX];
    bool named = *source == '@' || *source == '=';
    mgrid_budget_path(L, source + named, strlen(source + named), path, sizeof path);
    lua_pushfstring(L, "%s:%d", path, (int)lua_tointeger(L, -1));
    lua_rawseti(L, list, (lua_Integer)lua_rawlen(L, list) + 1);
  }
  lua_settop(L, list);
}

void mgrid_lua_trail_push(lua_State *L, int topology) {
  lua_newtable(L);
  lua_getiuservalue(L, topology, 1);
  for (lua_pushnil(L); mgrid_lua_next(L, -2);) { /* the stack: all, held, name, what */
    if (!luaL_testudata(L, -1, MGRID_LUA_FAMILY)) {
      lua_pop(L, 1);
      continue;
    }
    lua_newtable(L);
    lua_insert(L, -2);
    places(L);
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, -5);
  }
  lua_pop(L, 1);
}
