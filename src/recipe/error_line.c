/* SPDX-License-Identifier: MIT
**
** error_line.c - the line of a recipe that is at fault, "file:line: ". A recipe can see only a file's name from the recipe's
** own folder, wherever that is and however the host named it; the host gets a path of its own.
*/
#include "recipe/budget.h"

#include <stdlib.h>
#include <string.h>

/* Their addresses are registry keys; kept_key is that of the home that was kept: { name of the host's file, the path by
** which the host named it, the folder of that path with its slash }; false: the recipe is bundled or a text. */
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
  lua_pushboolean(L, 0); /* not nil: a key that is there costs no memory */
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
  size_t in = strlen(folder), cut = in + len < room ? 0 : in + len + 4 - room; /* and the dots */
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
  long  at = colon ? strtol(colon + 1, &end, 10) : 0;
  if (at <= 0 || *end != ':') return 0;
  size_t len = (size_t)(colon - text);
  if (memchr(text, ' ', len)) return 0;
  mgrid_budget_path(L, text, len, path, MGRID_PLACE_MAX);
  *line = (int)at;
  return len;
}

void mgrid_budget_position(lua_State *L, mgrid_error *err) {
  char   path[MGRID_PLACE_MAX];
  int    line;
  size_t len = mgrid_budget_place(L, err->message, path, &line);
  if (!len) return;
  mgrid_error_reword(err, "%s%s", path, err->message + len);
  snprintf(err->file, sizeof err->file, "%s", path);
  err->line = line;
}
