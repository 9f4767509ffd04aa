/* SPDX-License-Identifier: MIT
**
** load.c - turns the text of recipes into functions.
*/
#include "recipe/bundle.h"

#include "recipe/bind.h"
#include "recipe/budget.h"
#include "recipe/function.h"
#include "recipe/prelude.h"
#include "recipe/value_file.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* --------------------------------------------- files that a recipe may name
** A recipe may name files in the folder of the recipe that the host has loaded, and in folders
** below. It must not find out what exists elsewhere. So links are followed here, one by one, and a
** path that leaves the folder is refused before the system is asked about it.
*/

/* Most bytes of a path. This is less than the system's limit, so that a recipe cannot find out how
** long the path of the folder is. */
enum { LONGEST = 1024 };

typedef struct walk {
  const char *root;   /* the folder */
  bool inside;        /* so far, the path has not left the folder */
  char way[LONGEST];  /* the path from the root up to here, without links and dots */
  char rest[LONGEST]; /* the rest of the path */
  char path[PATH_MAX], link[PATH_MAX], step[LONGEST];
} walk;

/* Go one folder up. The root has no folder above it. */
static void folder_leave(walk *w) {
  char *last = strrchr(w->way, '/');
  w->inside = w->inside && *w->way;
  *(last ? last : w->way) = '\0';
}

/* Append to a text of the walk. A path that is too long counts as outside of the folder. */
static void folder_append(walk *w, char *text, size_t room, const char *more) {
  size_t n = strlen(text), len = strlen(more);
  if (n + len >= room)
    w->inside = false;
  else
    memcpy(text + n, more, len + 1);
}

/* If the path so far ends at a link, follow the link. */
static bool load_follow(walk *w) {
  size_t len = strlen(w->root);

  *w->path = '\0';
  folder_append(w, w->path, sizeof w->path, w->root);
  folder_append(w, w->path, sizeof w->path, "/");
  folder_append(w, w->path, sizeof w->path, w->way);
  ssize_t n = w->inside ? readlink(w->path, w->link, sizeof w->link - 1) : -1;
  if (n < 0) return false;
  w->link[n] = '\0';
  folder_leave(w);
  const char *to = w->link;
  if (*to == '/') {
    if (strncmp(to, w->root, len) != 0 || to[len] != '/')
      w->inside = false;
    else
      to += len, *w->way = '\0';
  }
  *w->path = '\0';
  folder_append(w, w->path, sizeof w->path, to);
  folder_append(w, w->path, sizeof w->path, "/");
  folder_append(w, w->path, sizeof w->path, w->rest);
  *w->rest = '\0';
  folder_append(w, w->rest, sizeof w->rest, w->path);
  return true;
}

/* Push the path from the folder `root` to a file that a recipe calls `path`, without links and
** dots. If `path` leads out of the folder, push nil and return NULL. */
static const char *folder_find(lua_State *L, const char *root, const char *path) {
  enum { LINKS = 40 };
  walk *w = lua_newuserdatauv(L, sizeof *w, 0); /* too large for a stack on which recipes nest */

  w->root = root;
  w->inside = *path != '/';
  *w->way = *w->rest = '\0';
  folder_append(w, w->rest, sizeof w->rest, path);
  for (int links = 0; w->inside && *w->rest;) {
    size_t len = strcspn(w->rest, "/"), next = len + (w->rest[len] == '/');
    memcpy(w->step, w->rest, len);
    w->step[len] = '\0';
    memmove(w->rest, w->rest + next, strlen(w->rest + next) + 1);
    if (len == 0 || strcmp(w->step, ".") == 0) continue;
    if (strcmp(w->step, "..") == 0) {
      folder_leave(w);
      continue;
    }
    if (*w->way) folder_append(w, w->way, sizeof w->way, "/");
    folder_append(w, w->way, sizeof w->way, w->step);
    if (w->inside && load_follow(w)) w->inside = w->inside && ++links <= LINKS;
  }
  if (w->inside)
    lua_pushstring(L, w->way);
  else
    lua_pushnil(L);
  lua_remove(L, -2);
  return lua_tostring(L, -1);
}

/* --------------------------------------------------------- files of recipes */

const char mgrid_env_key = 'e', mgrid_place_key = 'l';

/* Gives a text to Lua's parser in small pieces, at most a line each. The parser's work may grow
** with the square of the text, so it is charged to the budget between two pieces. An error that
** Lua raises without a position is in the line of the last piece. */
typedef struct reader {
  const char *at, *end;
  int line; /* of the last piece */
  bool ended;
} reader;

static const char *load_next_piece(lua_State *L, void *ud, size_t *size) {
  enum { PIECE = 512 };
  reader *r = ud;
  const char *piece = r->at;
  *size = r->end - r->at < PIECE ? (size_t)(r->end - r->at) : PIECE;
  const char *line = memchr(piece, '\n', *size);
  if (line) *size = (size_t)(line + 1 - piece);
  r->at += *size;
  r->line += r->ended;
  r->ended = line;
  mgrid_lua_charge(L, (int64_t)*size);
  return *size ? piece : NULL;
}

/* If the name of a file does not end with .lua, remove the words that Lua quotes from the syntax
** error on the top: the file may be a private one that was named by mistake. */
static void tell_the_line_alone(lua_State *L, const char *path) {
  size_t len = strlen(path);
  const char *message = lua_tostring(L, -1), *near = message ? strstr(message, " near ") : NULL;
  if (!near || (len > 4 && strcmp(path + len - 4, ".lua") == 0)) return;
  const char *line = strstr(message, path) == message ? message + len + 1 : "";
  lua_pushfstring(L, "%s:%d: this is not a recipe", path, (int)strtol(line, NULL, 10));
  lua_remove(L, -2);
}

/* Add to Lua's syntax error what is usually meant, and note the line of the recipe for the host. */
static void add_hint(lua_State *L, const char *text, size_t len) {
  if (lua_type(L, -1) != LUA_TSTRING) return;
  lua_pushlstring(L, text, len);
  mgrid_lua_hint(L, "syntax", 2, 2);
  mgrid_budget_quote(L, lua_tostring(L, -2), lua_tostring(L, -1));
  lua_pop(L, 1);
}

/* Load the text of a recipe, or of a file that it imports. *hash is the hash of the text, which
** ranks compare. */
static int load_text(lua_State *L, const mgrid_text *t, const char *source, uint64_t *hash) {
  const char *text = mgrid_text_chars(t);
  size_t skip = strncmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0; /* skip a byte order mark */
  /* a first line #!...; its newline stays, so that the numbers of lines are right */
  if (text[skip] == '#') skip += strcspn(text + skip, "\n");
  *hash = XXH3_64bits(text, t->len);
  mgrid_functions_note(L, text + skip, t->len - skip);
  reader r = { text + skip, text + t->len, 1, false };
  int rc = lua_load(L, load_next_piece, &r, source, "t");
  if (rc == LUA_ERRRUN && mgrid_budget_no_level(L)) { /* here Lua does not say where */
    lua_pushfstring(L, "%s:%d: " MGRID_NO_LEVEL, source + 1, r.line);
    lua_remove(L, -2);
  }
  if (rc == LUA_ERRSYNTAX) add_hint(L, text + skip, t->len - skip);
  return rc;
}

typedef struct loading {
  mgrid_text text;
  const char *source;
  uint64_t *hash;
  int rc;
} loading;

static int load_body(lua_State *L) {
  loading *x = lua_touserdata(L, 1);
  x->rc = load_text(L, &x->text, x->source, x->hash);
  return 1;
}

/* Push a file as a function, as luaL_loadfilex does. Messages about a line of the file call it
** `name`; the message about a file that cannot be read calls it `told`. The file is read once, so
** function and hash belong to one text, even if somebody edits the file meanwhile. */
static int load_file(lua_State *L, const char *path, const char *told, const char *name,
                     uint64_t *hash) {
  mgrid_error e = MGRID_ERROR_INIT;
  lua_pushfstring(L, "@%s", name); /* before the file is open, because this may raise */
  loading x = { .source = lua_tostring(L, -1), .hash = hash };
  if (mgrid_read_file_as(path, told, &x.text, &e)) {
    mgrid_text_free(&x.text);
    if (e.status == MGRID_NO_MEMORY) return mgrid_lua_oom(L);
    lua_pushstring(L, e.message);
    lua_remove(L, -2);
    return LUA_ERRFILE;
  }
  lua_pushcfunction(L, load_body);
  lua_pushlightuserdata(L, &x);
  int raised = lua_pcall(L, 1, 1, 0);
  mgrid_text_free(&x.text);
  if (raised) return lua_error(L);
  if (x.rc == LUA_ERRSYNTAX) tell_the_line_alone(L, name);
  lua_remove(L, -2);
  return x.rc;
}

/* its address: the registry key of the folder with files that recipes may name; nil: none */
static const char root_key = 'r';
/* its address: the registry key of the text that mgrid_prelude_give has stored */
static const char given_key = 'g';

void mgrid_prelude_give(lua_State *L, const mgrid_text *text) {
  lua_pushlightuserdata(L, (void *)(uintptr_t)text);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &given_key);
}

/* If the host has given the text of a recipe, push its name, in place of a path, and the function.
** Such a recipe is in no folder. */
static bool load_given(lua_State *L, const char *name, uint64_t *hash, int *rc) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &given_key);
  const mgrid_text *text = lua_touserdata(L, -1);
  lua_pop(L, 1);
  if (!text) return false;
  mgrid_prelude_give(L, NULL);
  lua_pushvalue(L, 1);
  lua_pushfstring(L, "=%s", name);
  *rc = load_text(L, text, lua_tostring(L, -1), hash);
  lua_remove(L, -2);
  return true;
}

/* Raise with the position of the word `recipe` that names the file, or without a position if the
** host names it. */
static int load_refuse(lua_State *L, mgrid_status status, const char *message) {
  bool placed = lua_rawgetp(L, LUA_REGISTRYINDEX, &mgrid_place_key) == LUA_TSTRING;
  return mgrid_lua_raise_at(L, placed ? lua_tostring(L, -1) : "", status, message);
}

static bool looks_like_path(const char *name) {
  size_t len = strlen(name);
  return strchr(name, '/') || (len > 4 && strcmp(name + len - 4, ".lua") == 0);
}

/* Push the path, from the root, of a recipe that a file names. The name is relative to the folder
** of the file. The file is `from`; NULL, inside of a build: the file of the running function. */
static void push_path(lua_State *L, const char *name, const char *from) {
  lua_Debug ar;
  for (int level = 0; !from && level < MGRID_FRAMES && lua_getstack(L, level, &ar); level++) {
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

/* Record that the host has named this file, for positions in messages. With `of_recipes`, also
** record its folder, in which recipes may name other files. A pipe or a removed file has no folder.
** Push the name of the file without its folder. */
static void set_home(lua_State *L, const char *path, bool of_recipes) {
  char real[PATH_MAX], *slash = realpath(path, real) ? strrchr(real, '/') : NULL;
  const char *base = strrchr(path, '/');
  lua_pushstring(L, slash ? slash + 1 : base ? base + 1 : path);
  if (slash) *slash = '\0';
  if (slash && of_recipes) {
    lua_pushstring(L, real);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &root_key);
  }
  /* for other files of the folder, messages use the folder of `path`, unless `path` is a link */
  if (slash && strcmp(lua_tostring(L, -1), base ? base + 1 : path) != 0)
    lua_pushfstring(L, "%s/", real);
  else
    lua_pushlstring(L, path, base ? (size_t)(base + 1 - path) : 0);
  mgrid_budget_home(L, lua_tostring(L, -2), path, lua_tostring(L, -1));
  lua_pop(L, 1);
}

static void forget_home(lua_State *L) {
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &root_key);
  mgrid_budget_no_home(L);
}

/* Check the path of a file that a recipe calls `name`. Push the path from the root, then the
** absolute path. Refuse a file outside of the folder, or with another ending than .lua. */
static void check_path(lua_State *L, const char *name, const char *path) {
  size_t len = strlen(name);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &root_key);
  const char *root = lua_tostring(L, -1);
  if (!root)
    load_refuse(L, MGRID_REFUSED,
                lua_pushfstring(L,
                                "'%s' is a file, and a recipe without a folder, such as one from "
                                "standard input, cannot name files",
                                name));

  const char *way = folder_find(L, root, path);
  if (!way)
    load_refuse(
        L, MGRID_REFUSED,
        lua_pushfstring(L, "recipe '%s' is outside of the folder of the recipe that names it%s",
                        name, *name == '/' ? "; a name is a path from there, as \"./x.lua\"" : ""));
  if (len < 5 || strcmp(name + len - 4, ".lua") != 0)
    load_refuse(
        L, MGRID_REFUSED,
        lua_pushfstring(L, "recipe '%s': the name of a recipe's file ends with .lua", name));
  lua_pushfstring(L, "%s/%s", root, way);
  lua_remove(L, -3);
}

/* Raise why a recipe cannot be loaded: there is no such file, it is a binary chunk, or it has a
** syntax error. */
static int load_failed(lua_State *L, int rc, const char *name, const char *path) {
  const char *message = lua_tostring(L, -1);
  if (rc == LUA_ERRSYNTAX && message && strncmp(message, "attempt to load", 15) == 0)
    return mgrid_lua_raise(L, "%s: a recipe is text, and this is a binary chunk", path);
  if (rc != LUA_ERRFILE) return lua_error(L);
  if (looks_like_path(name)) return load_refuse(L, MGRID_REFUSED, message);
  size_t n = 0;
  char tail[512];
  mgrid_error e = MGRID_ERROR_INIT;
  while (mgrid_bundled_names[n]) n++;
  mgrid_lua_charge_nearest(L, name, n);
  mgrid_suggest(tail, sizeof tail, name, mgrid_bundled_names, n);
  mgrid_fail(&e, MGRID_UNKNOWN_NAME, "no recipe '%s': neither bundled nor a file%s", name, tail);
  return load_refuse(L, e.status, e.message);
}

/* Push the name and the function of a file that the host names. */
static int load_home(lua_State *L, const char *path, uint64_t *hash) {
  mgrid_lua_charge(L, 1000); /* about the time for which the system looks for a file */
  set_home(L, path, true);
  return load_file(L, path, path, lua_tostring(L, -1), hash);
}

/* Push the name and the function of a file that the recipe `from` names. */
static int load_beside(lua_State *L, const char *name, const char *from, uint64_t *hash) {
  int rc = LUA_ERRFILE;
  push_path(L, name, from);
  if (!looks_like_path(name)) return rc;
  mgrid_lua_charge(L, 1000);
  check_path(L, name, lua_tostring(L, -1));
  const char *way = lua_tostring(L, -2);
  rc = load_file(L, lua_tostring(L, -1), way, way, hash);
  lua_remove(L, -2); /* removes the absolute path */
  return rc;
}

int mgrid_core_load(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  const mgrid_chunk *ours = looks_like_path(name) ? NULL : mgrid_bundle_find(mgrid_bundled, name);
  uint64_t hash = 0;
  int rc;

  mgrid_functions_note(L, NULL, 0);
  lua_settop(L, 3); /* an absent argument is nil, not the value that is pushed next */
  bool by_host = lua_toboolean(L, 3);
  if (by_host) forget_home(L);
  const char *path = name;
  while (by_host && strncmp(path, "./", 2) == 0) path += 2;
  if (by_host && load_given(L, name, &hash, &rc))
    ours = NULL;
  else if (ours)
    lua_pushvalue(L, 1), rc = mgrid_bundle_load(L, ours);
  else if (by_host)
    rc = load_home(L, path, &hash);
  else
    rc = load_beside(L, name, luaL_optstring(L, 2, NULL), &hash);
  if (rc) return load_failed(L, rc, name, by_host ? path : lua_tostring(L, -2));
  lua_rawgetp(L, LUA_REGISTRYINDEX, &mgrid_env_key);
  lua_setupvalue(L, -2, 1);

  /* the key; its slash distinguishes a file from a bundled recipe of the same name */
  lua_pushfstring(L, ours ? "%s" : "/%s", lua_tostring(L, -2));
  lua_pushinteger(L, (lua_Integer)hash);
  lua_pushstring(L, by_host ? path : lua_tostring(L, -4));
  mgrid_functions_push(L);
  return 6;
}

int mgrid_core_library(lua_State *L) {
  mgrid_bundle_push(L, luaL_checkstring(L, 1));
  lua_replace(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

void mgrid_prelude_load(lua_State *L, const char *path) {
  uint64_t hash;
  set_home(L, path, false);
  if (load_file(L, path, path, lua_tostring(L, -1), &hash)) lua_error(L);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &mgrid_env_key);
  lua_setupvalue(L, -2, 1);
}
