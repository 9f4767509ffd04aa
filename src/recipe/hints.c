/* SPDX-License-Identifier: MIT
**
** hints.c - hints for errors of Lua itself: errors that are not text, loops without pairs, calls that lack a comma,
** arithmetic on objects.
*/
#include "recipe/bind.h"
#include "recipe/budget.h"

#include <string.h>

/* Return how to visit the contents of a value, by its type or class. */
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

/* Push "a World is not a list; write ...". */
static const char *push_advice(lua_State *L, const char *type, const char *what) {
  const char *walk = walk_of(type);
  return lua_pushfstring(L, "a %s is not %s%s%s", short_name(type), what, walk ? "; " : "", walk ? walk : "");
}

int mgrid_lua_no_list(lua_State *L, const char *class) {
  return mgrid_lua_raise(L, "%s", push_advice(L, class, "a list"));
}

int mgrid_lua_no_iterator(lua_State *L, const char *class) {
  return mgrid_lua_raise(L, "%s", push_advice(L, class, "an iterator"));
}

#define IMPORT "recipe.import \"./x.lua\" gets functions of a file, recipe \"x\" another recipe"
#define COUNTS "a loop that counts is for i = 0, n - 1 do"
#define WRITES "tostring(x) makes text, tonumber(x) a number, and (\"%d ranks\"):format(n) writes one into a text"
#define APPEND "list[#list + 1] = x appends to a list"
#define GROUPS "a family holds groups, as in t.tp = g \"tp\""

const char *mgrid_lua_absent(const char *name) {
  static const struct {
    const char *name, *hint;
  } absent[] = {
    { "rank", "every rank evaluates the same recipe; queries and policies see state.rank" },
    { "require", IMPORT },
    { "dofile", IMPORT },
    { "loadfile", IMPORT },
    { "load", IMPORT },
    { "import", IMPORT },
    { "io", "a recipe reads no files; param.file gets the content of one" },
    { "open", "a recipe reads no files; param.file gets the content of one" },
    { "os", "a recipe sees no clock, environment or files; whoever plans gives it parameters" },
    { "sys", "a recipe sees no clock, environment or files; whoever plans gives it parameters" },
    { "setmetatable", "recipes have no metatables, whose finalizers run uncounted" },
    { "next", "pairs goes in the order of the keys" },
    { "coroutine", "a recipe is evaluated once, from top to bottom" },
    { "debug", "print and log tell the host what a recipe does" },
    { "xpcall", "pcall calls a function and gives back its error" },
    { "utf8", "string.split(s, \"-\") cuts a text at another one" },
    { "None", "Lua writes nil" },
    { "null", "Lua writes nil" },
    { "NULL", "Lua writes nil" },
    { "nullptr", "Lua writes nil" },
    { "undefined", "Lua writes nil" },
    { "True", "Lua writes true" },
    { "False", "Lua writes false" },
    { "len", "#x is the length of a list or text, #family the number of its groups" },
    { "range", COUNTS },
    { "xrange", COUNTS },
    { "enumerate", "a loop over a list is for i, x in ipairs(list) do" },
    { "reversed", "a loop that counts down is for i = #list, 1, -1 do" },
    { "sorted", "table.sort(list) sorts a list in its place" },
    { "sort", "table.sort(list) sorts a list in its place" },
    { "insert", "table.insert(list, x) appends to a list" },
    { "append", APPEND },
    { "str", WRITES },
    { "repr", WRITES },
    { "int", WRITES },
    { "float", WRITES },
    { "f", "(\"%d ranks\"):format(n) writes a number into a text" },
    { "r", "[[...]] is a text without escapes" },
    { "format", "(\"%d ranks\"):format(n) writes a number into a text" },
    { "printf", "log(\"%d ranks\", n) tells the host's log" },
    { "list", "a list is { 1, 2 }" },
    { "tuple", "a list is { 1, 2 }" },
    { "dict", "a table by name is { tp = 2 }" },
    { "set", "a set is a table: { [3] = true }, and s[3] asks it" },
    { "isinstance", "type(x) == \"number\" compares the type of a value" },
    { "hasattr", "a topology answers t:has \"x\", a table t.x ~= nil" },
    { "getattr", "t[name] is the field whose name is in a variable" },
    { "abs", "math.abs is the function" },
    { "max", "math.max is the function" },
    { "min", "math.min is the function" },
    { "floor", "math.floor is the function, and a // b divides integers" },
    { "ceil", "math.ceil is the function, and (a + b - 1) // b divides integers upwards" },
    { "round", "math.floor(x + 0.5) rounds" },
    { "sqrt", "math.sqrt is the function" },
    { "divmod", "a // b and a % b are the two" },
    { "sum", "a loop adds: for _, x in ipairs(list) do total = total + x end" },
    { "prod", "a loop multiplies: for _, x in ipairs(list) do total = total * x end" },
    { "any", "a loop asks each: for _, x in ipairs(list) do" },
    { "all", "a loop asks each: for _, x in ipairs(list) do" },
    { "map", "family:map(f) changes the groups of a family, a loop the members of a list" },
    { "filter", "family:where { pp = 0 } chooses groups, a loop members of a list" },
    { "self", "the arguments of build are world, p, t" },
    { "this", "the arguments of build are world, p, t" },
    { "raise", "error \"message\" raises one" },
    { "exit", "error \"message\" refuses the parameters" },
    { "Exception", "error \"message\" raises one" },
    { "ValueError", "error \"message\" raises one" },
    { "AssertionError", "assert(x, \"message\") raises one" },
    { "world_size", "world.size is the number of ranks" },
    { "get_world_size", "world.size is the number of ranks" },
    { "WORLD_SIZE", "world.size is the number of ranks" },
    { "nranks", "world.size is the number of ranks" },
    { "new_group", GROUPS },
    { "new_groups", GROUPS },
    { "dist", GROUPS },
    { "torch", GROUPS },
    { "np", "a recipe has Lua's own numbers and lists" },
    { "numpy", "a recipe has Lua's own numbers and lists" },
    { "itertools", "loops inside loops go through products" },
    { "continue", "goto next goes on, with ::next:: at the end of the loop" },
    { "pass", "an empty block needs no word" },
  };
  for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
    if (strcmp(name, absent[i].name) == 0) return absent[i].hint;
  return NULL;
}

#define SIZES  "; of a grid g, g.tp is the size of dim tp, and g \"tp\" the family"
#define CHOICE "; f:where(function(ranks) return true end) keeps groups, f:groups { 0, 3 } those of these numbers"

/* Lua's message about an operation on a value, and what is usually meant. */
static const char *hint_for(const char *message) {
  static const struct {
    const char *said, *hint;
  } hints[] = {
    { "attempt to index a nil value (local 't')",
      "; t = topology(world) makes one, and the third argument of build is that of `base`" },
    { "attempt to index a nil value (field '?')", "; lists count from 1" },
    { "attempt to index a nil value (field 'integer index')", "; lists count from 1" },
    { "arithmetic on a nil value (field 'integer index')", "; lists count from 1" },
    { "arithmetic on a nil value (field '?')", "; lists count from 1" },
    { "attempt to call a moongrid.", "; a comma may be missing after it" },
    { "attempt to call a number value (field 'size')", "; the number is world.size, without ()" },
    { "attempt to call a number value (field", SIZES },
    { "attempt to call a number value (method", SIZES },
    { "attempt to call a nil value (field 'append')", "; list[#list + 1] = x appends to a list" },
    { "attempt to call a nil value (method 'append')", "; list[#list + 1] = x appends to a list" },
    { "attempt to call a nil value (field 'extend')", "; list[#list + 1] = x appends to a list" },
    { "attempt to call a nil value (field 'push')", "; list[#list + 1] = x appends to a list" },
    { "attempt to call a nil value (field 'items')", "; for name, x in pairs(t) do goes through a table" },
    { "attempt to call a nil value (method 'items')", "; for name, x in pairs(t) do goes through a table" },
    { "attempt to call a nil value (field 'keys')", "; for name in pairs(t) do goes through a table" },
    { "attempt to call a nil value (field 'values')", "; for _, x in pairs(t) do goes through a table" },
    { "attempt to call a nil value (field 'get')", "; t.x or 1 is x where there is one, else 1" },
    { "unknown field of a Family 'filter'", CHOICE },
    { "unknown field of a Family 'select'", CHOICE },
    { "attempt to concatenate a moongrid.", "; tostring makes text of it" },
    { "attempt to concatenate a boolean", "; tostring makes text of it" },
    { "attempt to concatenate a table", "; table.concat(list, \", \") makes text of it" },
    { "arithmetic on a string value", "; texts join with .., and (\"%d ranks\"):format(n) writes a number into one" },
    { "attempt to compare number with string", "; tonumber(x) makes a number of a text" },
    { "attempt to compare string with number", "; tonumber(x) makes a number of a text" },
    { "arithmetic on a table value", "; a loop goes through a list: for i, x in ipairs(list) do" },
    { "arithmetic on a moongrid.Family", "; #family is the number of its groups, family.size that of ranks in each" },
    { "arithmetic on a moongrid.Grid", "; #grid is the number of its ranks, grid.tp the size of dim tp" },
  };
  for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
    if (strstr(message, hints[i].said)) return hints[i].hint;
  return NULL;
}

/* Return whether the running call reports "bad argument #1 to 'pick' (moongrid.Family expected, got number)" for a
** method that was called with a dot. */
static bool lacks_colon(lua_State *L, const char *message, char *name, size_t size) {
  static const char said[] = "bad argument #1 to '";
  const char       *at = strstr(message, said), *end = at ? strstr(at, "' (moongrid.") : NULL;
  lua_Debug         ar;
  if (!end || !lua_getstack(L, 1, &ar) || !lua_getinfo(L, "n", &ar) || strcmp(ar.namewhat, "field") != 0) return false;
  at += strlen(said);
  snprintf(name, size, "%.*s", (int)(end - at), at);
  return true;
}

/* Find the type in "FILE:LINE: attempt to call a TYPE value (for iterator 'for iterator')". Return its position in the
** message. */
static const char *iterator_type(const char *message, char *type, size_t size) {
  static const char said[] = "attempt to call a ", end[] = " value (for iterator 'for iterator')";
  const char       *at = strstr(message, said), *tail = at ? strstr(at, end) : NULL;
  size_t            n = tail ? (size_t)(tail - at) - strlen(said) : size;
  if (n >= size || tail[strlen(end)]) return NULL;
  memcpy(type, at + strlen(said), n);
  type[n] = '\0';
  return at;
}

/* For "... a nil value (field 'batch')": return the name in a table of the running function that is nearest to the one
** it read, for example of an argument that the caller spelled differently; *local is the name of that table. */
static const char *near_field(lua_State *L, const char *message, const char **local) {
  enum { MOST = 32, LOCALS = 4 }; /* few: a recipe may cause many errors */
  static const char said[] = "a nil value (field '";
  const char       *at = strstr(message, said), *end = at ? strchr(at + strlen(said), '\'') : NULL, *near = NULL;
  char              field[64];
  const int         top = lua_gettop(L);
  lua_Debug         ar;
  if (!end || !lua_getstack(L, 1, &ar)) return NULL;
  snprintf(field, sizeof field, "%.*s", (int)(end - at - (int)strlen(said)), at + strlen(said));
  for (int i = 1; i <= LOCALS && !near && (*local = lua_getlocal(L, &ar, i)); i++) {
    const char *names[MOST];
    size_t      n = 0;
    bool        table = lua_istable(L, -1) && **local != '(';
    for (lua_pushnil(L); table && n < MOST && mgrid_lua_next(L, -2); lua_pop(L, 1))
      if (lua_type(L, -2) == LUA_TSTRING) names[n++] = lua_tostring(L, -2);
    if (n == MOST) n = 0; /* which ones were seen differs between processes */
    mgrid_sort_names(names, n);
    near = mgrid_nearest(field, names, n);
    if (near && strcmp(near, field) == 0) near = NULL; /* it holds something else in it */
    lua_settop(L, top);
  }
  return near;
}

int mgrid_lua_message(lua_State *L) {
  char        type[64];
  const char *message, *at, *hint, *near, *local;
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
    push_advice(L, type, "an iterator");
  } else if ((hint = hint_for(message))) {
    lua_pushvalue(L, -1);
    lua_pushstring(L, hint);
  } else if ((near = near_field(L, message, &local))) {
    lua_pushvalue(L, -1);
    lua_pushfstring(L, "; '%s' has '%s'", local, near);
  } else if (lacks_colon(L, message, type, sizeof type)) {
    lua_pushvalue(L, -1);
    lua_pushfstring(L, "; a method is called with a colon, :%s(...)", type);
  } else {
    return 1;
  }
  lua_concat(L, 2);
  return 1;
}
