/* SPDX-License-Identifier: MIT
**
** prelude.c - what recipe.lua gets from C (`core` there), among it the loading of recipes, and
** how a Lua state is furnished for recipes.
*/
#include "script/prelude.h"

#include "script/bundle.h"
#include "script/sandbox.h"
#include "types/values.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <lualib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Registry keys: their addresses. */
static const char prelude_key = 'p', env_key = 'e', place_key = 'l';

/* --------------------------------------------------------- messages, values */

static int core_raise(lua_State *L) { return mgrid_lua_raise(L, "%s", luaL_checkstring(L, 1)); }

static int core_raise_at(lua_State *L) {
  luaL_checkstring(L, 1);
  luaL_checkstring(L, 2);
  lua_settop(L, 2);
  lua_concat(L, 2);
  return lua_error(L);
}

static int core_where(lua_State *L) {
  mgrid_lua_where(L);
  return 1;
}

/* unknown(what, name, known names [, where]) */
static int core_unknown(lua_State *L) {
  enum { MAX = 128 };
  const char *known[MAX], *what = luaL_checkstring(L, 1), *name = luaL_checkstring(L, 2);
  size_t      n = 0;
  char        tail[512];
  mgrid_lua_stack(L, MAX + 4);
  lua_settop(L, 4);
  for (lua_Integer i = 1; n < MAX && lua_rawgeti(L, 3, i) == LUA_TSTRING; i++) known[n++] = lua_tostring(L, -1);
  if (lua_type(L, 4) != LUA_TSTRING) return mgrid_lua_unknown(L, what, name, known, n);
  mgrid_suggest(tail, sizeof tail, name, known, n);
  lua_pushfstring(L, "%sunknown %s '%s'%s", lua_tostring(L, 4), what, name, tail);
  return lua_error(L);
}

/* where_of(function) -> "file:line: " of its definition */
static int core_where_of(lua_State *L) {
  lua_Debug ar;
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  lua_getinfo(L, ">S", &ar);
  if (ar.linedefined > 0)
    lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.linedefined);
  else
    lua_pushliteral(L, "");
  return 1;
}

/* place() -> "file:line: " where the word `recipe` was last read: `return recipe {...}` is a
** tail call, which leaves no frame that would tell */
static int core_place(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &place_key);
  return 1;
}

typedef struct key {
  const char *name; /* NULL: a number, or what comes last */
  size_t      len;
  double      number;
  int         other; /* neither: its type, and which boolean; nobody tells tables apart */
  int         place; /* as lua_next gave it */
} key;

static int by_bytes(const void *a, const void *b) {
  const key *x = a, *y = b;
  if (!x->name != !y->name) return x->name ? -1 : 1;
  if (!x->name && x->number != y->number) return x->number < y->number ? -1 : 1;
  if (!x->name && x->other != y->other) return x->other - y->other;
  int c = x->name ? memcmp(x->name, y->name, x->len < y->len ? x->len : y->len) : 0;
  if (c) return c;
  if (x->len != y->len) return x->len < y->len ? -1 : 1;
  return x->place - y->place;
}

/* keys(table) -> list: names by their bytes (not by the locale), numbers, the rest */
static int core_keys(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  int n = 0;
  for (lua_pushnil(L); lua_next(L, 1); n++) lua_pop(L, 1);
  key *list = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *list, 0);
  lua_createtable(L, n, 0); /* in the order of lua_next, then sorted */
  int place = 0;
  for (lua_pushnil(L); lua_next(L, 1); place++) {
    lua_pop(L, 1);
    key *k = &list[place];
    *k = (key){ NULL, 0, 0, 0, place };
    if (lua_type(L, -1) == LUA_TSTRING)
      k->name = lua_tolstring(L, -1, &k->len);
    else if (lua_type(L, -1) == LUA_TNUMBER)
      k->number = lua_tonumber(L, -1);
    else
      k->number = HUGE_VAL, k->other = 2 * lua_type(L, -1) + lua_toboolean(L, -1);
    lua_pushvalue(L, -1);
    lua_rawseti(L, 3, place + 1);
  }
  qsort(list, (size_t)n, sizeof *list, by_bytes);
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, 3, list[i].place + 1);
    lua_rawseti(L, 4, i + 1);
  }
  return 1;
}

static int core_is_topology(lua_State *L) {
  lua_pushboolean(L, luaL_testudata(L, 1, MGRID_LUA_TOPOLOGY) != NULL);
  return 1;
}

static int core_note(lua_State *L) {
  mgrid_error e;
  if (mgrid_topology_param(mgrid_lua_check_topology(L, 1), luaL_checkstring(L, 2), luaL_checkstring(L, 3), &e))
    return mgrid_lua_raise_error(L, &e);
  return 0;
}

/* params(state) -> { name = text }: what the state's plan was evaluated with */
static int core_params(lua_State *L) {
  const mgrid_content *c = &mgrid_lua_check_state(L, 1)->plan->content;
  lua_createtable(L, 0, (int)c->nparams);
  for (size_t i = 0; i < c->nparams; i++) {
    lua_pushstring(L, c->param[i].value);
    lua_setfield(L, -2, c->param[i].name);
  }
  return 1;
}

/* encode(value) -> JSON text with sorted keys, equal for equal values */
static int core_encode(lua_State *L) {
  json_t *v = mgrid_json_of(L, 1);
  if (!v) return mgrid_lua_raise(L, "a value that is not plain: numbers, strings, booleans, lists, tables by name");
  char *text = json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
  json_decref(v);
  if (!text) return mgrid_lua_oom(L);
  mgrid_text t = { .data = text, .len = strlen(text) };
  mgrid_lua_push_text(L, &t);
  return 1;
}

static int push_decoded(lua_State *L) {
  mgrid_push_json(L, lua_touserdata(L, 1));
  return 1;
}

/* decode(JSON text) -> value | nil */
static int core_decode(lua_State *L) {
  json_t *v = json_loads(luaL_checkstring(L, 1), JSON_DECODE_ANY, NULL);
  if (!v) return 0;
  lua_pushcfunction(L, push_decoded);
  lua_pushlightuserdata(L, v);
  int rc = lua_pcall(L, 1, 1, 0);
  json_decref(v);
  return rc ? lua_error(L) : 1;
}

/* ----------------------------------------------------------- loading recipes */

static const mgrid_chunk *bundled(const char *name) {
  for (const mgrid_chunk *c = mgrid_bundled; c->name; c++)
    if (strcmp(c->name, name) == 0) return c;
  return NULL;
}

int mgrid_bundle_load(lua_State *L, const mgrid_chunk *c) {
  char name[64];
  snprintf(name, sizeof name, "=%s", c->name);
  if (strstr(lua_ident, mgrid_bundle_release)) {
    if (luaL_loadbufferx(L, (const char *)c->binary, c->binary_size, name, "b") == LUA_OK) return LUA_OK;
    lua_pop(L, 1); /* another number format, or no memory: the text will tell */
  }
  return luaL_loadbufferx(L, c->text, c->text_size, name, "t");
}

enum { RECIPE_MAX = 16 << 20 }; /* bytes; what is longer is no recipe */

static int file_failed(lua_State *L, const char *what, const char *path) {
  lua_pushfstring(L, "cannot %s %s: %s", what, path, strerror(errno));
  lua_remove(L, -2); /* the name of the chunk that is none */
  return LUA_ERRFILE;
}

/* Push a file as a function, as luaL_loadfilex does, and a hash of its text: ranks whose plans are equal
** may have policies that are not. It is read once, for it may be edited meanwhile. */
static int load_file(lua_State *L, const char *path, uint64_t *hash) {
  char       piece[4096];
  mgrid_text t = { 0 };
  lua_pushfstring(L, "@%s", path); /* may raise: before anything is held */
  FILE *file = fopen(path, "rb");
  if (!file) return file_failed(L, "open", path);
  for (size_t n; t.len <= RECIPE_MAX && (n = fread(piece, 1, sizeof piece, file)) > 0;) mgrid_text_put(&t, piece, n);
  int why = t.failed ? ENOMEM : ferror(file) ? errno : !feof(file) ? EFBIG : 0;
  fclose(file);
  if (why) {
    mgrid_text_free(&t);
    errno = why;
    return file_failed(L, "read", path);
  }
  const char *text = t.data ? t.data : "";
  size_t      skip = strncmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0; /* a byte order mark */
  if (text[skip] == '#') skip += strcspn(text + skip, "\n");        /* as of a script; the line break stays */
  *hash = XXH3_64bits(text, t.len);
  int rc = luaL_loadbufferx(L, text + skip, t.len - skip, lua_tostring(L, -1), "t");
  lua_remove(L, -2);
  mgrid_text_free(&t);
  return rc;
}

/* note_policies(topology, hash): it is of a recipe with policies */
static int core_note_policies(lua_State *L) {
  mgrid_lua_check_topology(L, 1)->content.policies = (uint64_t)luaL_checkinteger(L, 2);
  return 0;
}

static bool looks_like_path(const char *name) {
  size_t len = strlen(name);
  return strchr(name, '/') || (len > 4 && strcmp(name + len - 4, ".lua") == 0);
}

/* Push the path of a recipe named in another one: relative to the folder of that one, which
** is the file that is being run (`from`) or, in a build, whose function is running. */
static void push_path(lua_State *L, const char *name, const char *from) {
  lua_Debug ar;
  for (int level = 0; !from && lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "S", &ar);
    if (*ar.source == '@') from = ar.source + 1;
  }
  const char *slash = from ? strrchr(from, '/') : NULL;
  while (strncmp(name, "./", 2) == 0) name += 2;
  if (*name != '/' && slash) {
    lua_pushlstring(L, from, (size_t)(slash - from) + 1);
    lua_pushstring(L, name);
    lua_concat(L, 2);
  } else {
    lua_pushstring(L, name);
  }
}

/* Missing file, bytecode, or a syntax error, whose message has its position already. */
static int load_failed(lua_State *L, int rc, const char *name, const char *path) {
  const char *message = lua_tostring(L, -1);
  if (rc == LUA_ERRSYNTAX && message && strncmp(message, "attempt to load", 15) == 0)
    return mgrid_lua_raise(L, "%s: a recipe is text, and this is a binary chunk", path);
  if (rc != LUA_ERRFILE) return lua_error(L);
  size_t n = 0;
  char   tail[512];
  while (mgrid_bundled_names[n]) n++;
  mgrid_suggest(tail, sizeof tail, name, mgrid_bundled_names, n);
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &place_key) != LUA_TSTRING) lua_pushliteral(L, ""); /* not in a recipe */
  if (looks_like_path(name))
    lua_pushfstring(L, "%s%s", lua_tostring(L, -1), message);
  else
    lua_pushfstring(L, "%sno recipe '%s': neither bundled nor a file%s", lua_tostring(L, -1), name, tail);
  return lua_error(L);
}

/* load(name [, path of the file that is being run]) -> path, chunk with the recipe environment,
** key: one for all spellings of a path, hash of its text (0: bundled) */
static int core_load(lua_State *L) {
  const char        *name = luaL_checkstring(L, 1);
  const mgrid_chunk *ours = looks_like_path(name) ? NULL : bundled(name);
  uint64_t           hash = 0;
  int                rc;
  if (ours) {
    lua_pushvalue(L, 1);
    rc = mgrid_bundle_load(L, ours);
  } else {
    push_path(L, name, luaL_optstring(L, 2, NULL));
    rc = load_file(L, lua_tostring(L, -1), &hash);
  }
  if (rc) return load_failed(L, rc, name, lua_tostring(L, -2));
  lua_rawgetp(L, LUA_REGISTRYINDEX, &env_key);
  lua_setupvalue(L, -2, 1);
  char real[PATH_MAX];
  lua_pushstring(L, ours || !realpath(lua_tostring(L, -2), real) ? lua_tostring(L, -2) : real);
  lua_pushinteger(L, (lua_Integer)hash);
  return 4;
}

/* library(name, ...): run another file of the prelude */
static int core_library(lua_State *L) {
  const mgrid_chunk *c = mgrid_prelude;
  char               name[64];
  snprintf(name, sizeof name, "moongrid/%s.lua", luaL_checkstring(L, 1));
  while (strcmp(c->name, name) != 0) c++; /* it is there: nobody else asks */
  if (mgrid_bundle_load(L, c)) return lua_error(L);
  lua_replace(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

static const luaL_Reg core[] = { { "raise", core_raise },       { "raise_at", core_raise_at },
                                 { "where", core_where },       { "unknown", core_unknown },
                                 { "where_of", core_where_of }, { "place", core_place },
                                 { "keys", core_keys },         { "is_topology", core_is_topology },
                                 { "note", core_note },         { "note_policies", core_note_policies },
                                 { "params", core_params },     { "encode", core_encode },
                                 { "decode", core_decode },     { "load", core_load },
                                 { "library", core_library },   { NULL, NULL } };

/* --------------------------------------------------------------- furnishing */

static void note_place(lua_State *L, const char *name) {
  if (strcmp(name, "recipe") != 0) return;
  mgrid_lua_where(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &place_key);
}

void mgrid_prelude_open(lua_State *L) {
  static const luaL_Reg libraries[] = { { LUA_GNAME, luaopen_base },
                                        { LUA_TABLIBNAME, luaopen_table },
                                        { LUA_STRLIBNAME, luaopen_string },
                                        { LUA_MATHLIBNAME, luaopen_math },
                                        { NULL, NULL } };
  for (const luaL_Reg *lib = libraries; lib->func; lib++) {
    luaL_requiref(L, lib->name, lib->func, 1);
    lua_pop(L, 1);
  }
  mgrid_sandbox_push(L);
  int env = lua_gettop(L);
  mgrid_lua_open_grid(L);
  mgrid_lua_open_family(L);
  mgrid_lua_open_topology(L);
  mgrid_lua_open_state(L);
  static const char *const not_for_recipes[] = { "world", "plan" };
  for (int i = 0; i < 2; i++) { /* build gets its world, and returns a topology */
    lua_pushnil(L);
    lua_setfield(L, env, not_for_recipes[i]);
  }
  if (mgrid_bundle_load(L, mgrid_prelude)) lua_error(L);
  luaL_newlib(L, core);
  lua_call(L, 1, 1);
  static const char *const from_prelude[] = { "recipe", "param", "policies" };
  for (int i = 0; i < 3; i++) {
    lua_getfield(L, -1, from_prelude[i]);
    lua_setfield(L, env, from_prelude[i]);
  }
  lua_rawsetp(L, LUA_REGISTRYINDEX, &prelude_key);
  mgrid_sandbox_seal(L, note_place);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &env_key);
}

void mgrid_prelude_push(lua_State *L, const char *name) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &prelude_key);
  lua_getfield(L, -1, name);
  lua_remove(L, -2);
}

void mgrid_prelude_load(lua_State *L, const char *path) {
  uint64_t hash;
  if (load_file(L, path, &hash)) lua_error(L); /* with its place, or why it cannot be read */
  lua_rawgetp(L, LUA_REGISTRYINDEX, &env_key);
  lua_setupvalue(L, -2, 1);
}
