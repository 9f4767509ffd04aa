/* SPDX-License-Identifier: MIT
**
** hints.c - what is meant where Lua itself says what is wrong: errors that are no text, loops without pairs, calls
** that lack a comma, arithmetic on objects.
*/
#include "recipe/bind.h"
#include "recipe/budget.h"

#include <string.h>

/* How to visit what a value has, by its type or class. */
static const char *walk_of(const char *type) {
  static const struct {
    const char *type, *how;
  } walks[] = {
    { "table", "write for i, x in ipairs(list) do, or for name, x in pairs(table) do" },
    { MGRID_LUA_WORLD, "write for i = 0, world.size - 1 do; world:rank(i) is a rank" },
    { MGRID_LUA_GRID, "write for _, dim in ipairs(grid:dims()) do; dim[1] is its name, dim[2] its size" },
    { MGRID_LUA_FAMILY, "write for group, ranks in pairs(family) do; family:ranks(0) is the first group" },
    { MGRID_LUA_TOPOLOGY, "write for name, family in pairs(topology) do" },
    { MGRID_LUA_PLAN, "write for name, family in pairs(plan) do" },
    { MGRID_LUA_STATE, "write for name, group in pairs(state) do" },
  };
  for (size_t i = 0; i < sizeof walks / sizeof *walks; i++)
    if (strcmp(type, walks[i].type) == 0) return walks[i].how;
  return NULL;
}

static const char *short_name(const char *type) {
  const char *dot = strrchr(type, '.');
  return dot ? dot + 1 : type;
}

/* Push "a World is no list; write ...". */
static const char *push_advice(lua_State *L, const char *type, const char *what) {
  const char *walk = walk_of(type);
  return lua_pushfstring(L, "a %s is no %s%s%s", short_name(type), what, walk ? "; " : "", walk ? walk : "");
}

int mgrid_lua_no_list(lua_State *L, const char *class) {
  return mgrid_lua_raise(L, "%s", push_advice(L, class, "list"));
}

int mgrid_lua_no_iterator(lua_State *L, const char *class) {
  return mgrid_lua_raise(L, "%s", push_advice(L, class, "iterator"));
}

/* What Lua says of an operation on a value, and what is meant most often. */
static const char *hint_for(const char *message) {
  static const struct {
    const char *said, *hint;
  } hints[] = {
    { "attempt to index a nil value (local 't')",
      "; t = topology(world) makes one, and the third argument of build is that of `base`" },
    { "attempt to call a moongrid.", "; a comma may be missing after it" },
    { "attempt to call a number value (field", "; of a grid g, g.tp is the size of dim tp, and g \"tp\" the family" },
    { "attempt to concatenate a moongrid.", "; tostring makes text of it" },
    { "arithmetic on a moongrid.Family", "; #family is the number of its groups, family.size that of ranks in each" },
    { "arithmetic on a moongrid.Grid", "; #grid is the number of its ranks, grid.tp the size of dim tp" },
  };
  for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
    if (strstr(message, hints[i].said)) return hints[i].hint;
  return NULL;
}

/* "FILE:LINE: attempt to call a TYPE value (for iterator 'for iterator')" -> which type, where in the message. */
static const char *iterator_type(const char *message, char *type, size_t size) {
  static const char said[] = "attempt to call a ", end[] = " value (for iterator 'for iterator')";
  const char       *at = strstr(message, said), *tail = at ? strstr(at, end) : NULL;
  size_t            n = tail ? (size_t)(tail - at) - strlen(said) : size;
  if (n >= size || tail[strlen(end)]) return NULL;
  memcpy(type, at + strlen(said), n);
  type[n] = '\0';
  return at;
}

int mgrid_lua_message(lua_State *L) {
  char        type[64];
  const char *message, *at, *hint;
  mgrid_budget_message(L);
  if (lua_type(L, -1) == LUA_TNUMBER) {
    mgrid_lua_where(L);
    if (lua_isinteger(L, -2))
      lua_pushvalue(L, -2);
    else
      lua_pushnumber(L, mgrid_lua_number(L, -2));
  } else if (lua_type(L, -1) != LUA_TSTRING) {
    const char *kind = mgrid_lua_kind(L, -1);
    mgrid_lua_where(L);
    lua_pushfstring(L, "error got %s, not a message such as \"tp must be even\"", kind);
  } else if ((at = iterator_type(message = lua_tostring(L, -1), type, sizeof type))) {
    lua_pushlstring(L, message, (size_t)(at - message));
    push_advice(L, type, "iterator");
  } else if ((hint = hint_for(message))) {
    lua_pushvalue(L, -1);
    lua_pushstring(L, hint);
  } else {
    return 1;
  }
  lua_concat(L, 2);
  return 1;
}
