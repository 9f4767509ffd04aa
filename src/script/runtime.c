/* SPDX-License-Identifier: MIT
**
** runtime.c - a Lua state of our own for one recipe: capped in memory, instructions and
** time. Everything that may raise runs under lua_pcall; a spent budget cannot be caught by
** the recipe. The runtime outlives the load: queries are asked of it later.
*/
#include "script/runtime.h"

#include "script/bundle.h"
#include "script/sandbox.h"
#include "script/values.h"

#include <inttypes.h>
#include <limits.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct mg_runtime {
  lua_State *L;
  mg_limits  limits;
  size_t     used;      /* bytes of the Lua heap */
  uint64_t   count;     /* instructions of this call, in steps of HOOK_STEP */
  double     started;   /* of this call, seconds of the monotonic clock */
  char      *recipe;    /* as it was asked for */
  bool       over;      /* a budget is spent: every further instruction raises */
  bool       no_memory; /* the cap was hit in this call, also after a collection */
  size_t     refused;   /* size of the last block that was refused; Lua collects and asks again */
  mg_status  status;    /* of the last error that was raised from C */
  char       verdict[256]; /* what was said when the budget was spent; said again ever after */
};

enum { HOOK_STEP = 1000 };

/* Registry keys: their addresses. */
static const char prelude_key = 'p', env_key = 'e', recipe_key = 'r', runtime_key = 'u', place_key = 'l';

/* ------------------------------------------------------------------ limits */

static void *capped_alloc(void *ud, void *ptr, size_t osize, size_t nsize) {
  mg_runtime *rt = ud;
  size_t      old = ptr ? osize : 0; /* without a block osize is a type tag */
  if (nsize == 0) {
    rt->used -= old;
    free(ptr);
    return NULL;
  }
  bool  fits = nsize <= old || rt->used + (nsize - old) <= rt->limits.memory;
  void *block = fits ? realloc(ptr, nsize) : NULL;
  if (block) {
    rt->used = rt->used - old + nsize;
    if (nsize > old) rt->refused = 0;
  } else { /* the first time Lua collects its garbage and asks for the same once more */
    rt->no_memory |= rt->refused == nsize;
    rt->refused = nsize;
  }
  return block;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The runtime of a Lua state; NULL for a host's own. */
static mg_runtime *runtime_of(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &runtime_key);
  mg_runtime *rt = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return rt;
}

static void budget_hook(lua_State *L, lua_Debug *ar);

/* The instruction budget gives the same verdict on every rank; the clock only ever aborts. A
** spent budget cannot be caught: every following instruction raises again. */
static void spend(lua_State *L, mg_runtime *rt, uint64_t work) {
  rt->count += work;
  bool slow = now() - rt->started > rt->limits.seconds;
  if (!rt->over && !rt->no_memory && rt->count <= rt->limits.instructions && !slow) return;
  if (!rt->over) {
    rt->over = true;
    lua_sethook(L, budget_hook, LUA_MASKCOUNT, 1);
    mg_lua_where(L);
    const char *where = lua_tostring(L, -1);
    if (rt->no_memory)
      snprintf(rt->verdict, sizeof rt->verdict, "the recipe needs more than %zu MiB of memory", rt->limits.memory >> 20);
    else if (slow)
      snprintf(rt->verdict, sizeof rt->verdict, "%sthe recipe runs for more than %g seconds", where, rt->limits.seconds);
    else
      snprintf(rt->verdict, sizeof rt->verdict, "%sthe recipe runs for more than %" PRIu64 " instructions", where,
               rt->limits.instructions);
  }
  lua_pushstring(L, rt->verdict);
  lua_error(L);
}

static void budget_hook(lua_State *L, lua_Debug *ar) {
  (void)ar;
  mg_lua_charge(L, HOOK_STEP);
}

void mg_lua_charge(lua_State *L, int64_t work) {
  mg_runtime *rt = runtime_of(L);
  if (rt) spend(L, rt, (uint64_t)work);
}

void mg_lua_note(lua_State *L, mg_status status) {
  mg_runtime *rt = runtime_of(L);
  if (rt) rt->status = status;
}

/* ------------------------------------------------------------ error messages */

/* Split "file:line: text" for the struct; the message keeps the whole. */
static void fill_position(mg_error *err) {
  const char *colon = strchr(err->message, ':');
  while (colon && !(colon[1] >= '0' && colon[1] <= '9')) colon = strchr(colon + 1, ':');
  char *end;
  long  line = colon ? strtol(colon + 1, &end, 10) : 0;
  if (line <= 0 || *end != ':') return;
  size_t len = (size_t)(colon - err->message);
  if (len >= sizeof err->file || memchr(err->message, ' ', len)) return;
  memcpy(err->file, err->message, len);
  err->line = (int)line;
}

/* luaL_Buffer, below table.concat, raises this as a string. */
static bool is_out_of_memory(lua_State *L) {
  return lua_type(L, -1) == LUA_TSTRING && strcmp(lua_tostring(L, -1), "not enough memory") == 0;
}

/* A position in our own Lua helps nobody: "moongrid/recipe.lua:265: text" -> "text". */
static const char *without_prelude(const char *message) {
  const char *text = strncmp(message, "moongrid/", 9) == 0 ? strstr(message, ": ") : NULL;
  return text ? text + 2 : message;
}

/* Run body(udata) under pcall with a fresh budget. */
static mg_status protected(mg_runtime *rt, lua_CFunction body, void *ud, mg_error *err) {
  lua_State *L = rt->L;
  rt->count = 0, rt->started = now();
  rt->over = rt->no_memory = false;
  rt->refused = 0;
  rt->status = MG_OK;
  lua_sethook(L, budget_hook, LUA_MASKCOUNT, HOOK_STEP);
  lua_settop(L, 0);
  lua_pushcfunction(L, body);
  lua_pushlightuserdata(L, ud);
  int rc = lua_pcall(L, 1, 0, 0);
  lua_sethook(L, NULL, 0, 0);
  if (rc == LUA_OK && !rt->no_memory) return MG_OK;
  mg_status s = rt->over || rt->status == MG_LIMIT ? MG_LIMIT : MG_REFUSED;
  if (rc == LUA_OK || rc == LUA_ERRMEM || is_out_of_memory(L)) /* also when the recipe caught it */
    s = mg_fail(err, MG_LIMIT, "the recipe needs more than %zu MiB of memory", rt->limits.memory >> 20);
  else if (lua_isstring(L, -1))
    mg_fail(err, s, "%s", without_prelude(lua_tostring(L, -1)));
  else /* never call a script's __tostring */
    mg_fail(err, s, "(error object is a %s value)", luaL_typename(L, -1));
  lua_settop(L, 0);
  if (err) fill_position(err);
  return s;
}

/* --------------------------------------------------------- core for the prelude */

static int core_raise(lua_State *L) { return mg_lua_raise(L, "%s", luaL_checkstring(L, 1)); }

static int core_raise_at(lua_State *L) {
  luaL_checkstring(L, 1);
  luaL_checkstring(L, 2);
  lua_settop(L, 2);
  lua_concat(L, 2);
  return lua_error(L);
}

static int core_where(lua_State *L) {
  mg_lua_where(L);
  return 1;
}

/* unknown(what, name, known names [, where]) */
static int core_unknown(lua_State *L) {
  enum { MAX = 128 };
  const char *known[MAX], *what = luaL_checkstring(L, 1), *name = luaL_checkstring(L, 2);
  size_t      n = 0;
  char        tail[512];
  mg_lua_stack(L, MAX + 4);
  lua_settop(L, 4);
  for (lua_Integer i = 1; n < MAX && lua_rawgeti(L, 3, i) == LUA_TSTRING; i++) known[n++] = lua_tostring(L, -1);
  if (lua_type(L, 4) != LUA_TSTRING) return mg_lua_unknown(L, what, name, known, n);
  mg_suggest(tail, sizeof tail, name, known, n);
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

static int core_is_topology(lua_State *L) {
  lua_pushboolean(L, luaL_testudata(L, 1, MG_LUA_TOPOLOGY) != NULL);
  return 1;
}

static int core_note(lua_State *L) {
  mg_error e;
  if (mg_topology_param(mg_lua_check_topology(L, 1), luaL_checkstring(L, 2), luaL_checkstring(L, 3), &e))
    return mg_lua_raise_error(L, &e);
  return 0;
}

/* params(state) -> { name = text }: what the state's plan was evaluated with */
static int core_params(lua_State *L) {
  const mg_content *c = &mg_lua_check_state(L, 1)->plan->content;
  lua_createtable(L, 0, (int)c->nparams);
  for (size_t i = 0; i < c->nparams; i++) {
    lua_pushstring(L, c->param[i].value);
    lua_setfield(L, -2, c->param[i].name);
  }
  return 1;
}

/* encode(value) -> JSON text with sorted keys, equal for equal values */
static int core_encode(lua_State *L) {
  json_t *v = mg_json_of(L, 1);
  if (!v) return mg_lua_raise(L, "a value that is not plain: numbers, strings, booleans, lists, tables by name");
  char *text = json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
  json_decref(v);
  if (!text) return mg_lua_oom(L);
  mg_text t = { .data = text, .len = strlen(text) };
  mg_lua_push_text(L, &t);
  return 1;
}

static int push_decoded(lua_State *L) {
  mg_push_json(L, lua_touserdata(L, 1));
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

static const char *bundled_text(const char *name) {
  for (size_t i = 0; mg_bundled_names[i]; i++)
    if (strcmp(mg_bundled_names[i], name) == 0) return mg_bundled_texts[i];
  return NULL;
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
    return mg_lua_raise(L, "%s: a recipe is text, and this is a binary chunk", path);
  if (rc != LUA_ERRFILE) return lua_error(L);
  size_t n = 0;
  char   tail[512];
  while (mg_bundled_names[n]) n++;
  mg_suggest(tail, sizeof tail, name, mg_bundled_names, n);
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &place_key) != LUA_TSTRING) lua_pushliteral(L, ""); /* not in a recipe */
  if (looks_like_path(name))
    lua_pushfstring(L, "%s%s", lua_tostring(L, -1), message);
  else
    lua_pushfstring(L, "%sno recipe '%s': neither bundled nor a file%s", lua_tostring(L, -1), name, tail);
  return lua_error(L);
}

/* load(name [, path of the file that is being run]) -> path, chunk with the recipe environment,
** key: one for all spellings of a path */
static int core_load(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  const char *text = looks_like_path(name) ? NULL : bundled_text(name);
  int         rc;
  if (text) {
    lua_pushfstring(L, "=%s", name);
    lua_pushvalue(L, 1);
    rc = luaL_loadbufferx(L, text, strlen(text), lua_tostring(L, -2), "t");
  } else {
    push_path(L, name, luaL_optstring(L, 2, NULL));
    rc = luaL_loadfilex(L, lua_tostring(L, -1), "t");
  }
  if (rc) return load_failed(L, rc, name, lua_tostring(L, -2));
  lua_rawgetp(L, LUA_REGISTRYINDEX, &env_key);
  lua_setupvalue(L, -2, 1);
  char real[PATH_MAX];
  lua_pushstring(L, text || !realpath(lua_tostring(L, -2), real) ? lua_tostring(L, -2) : real);
  return 3;
}

static const luaL_Reg core[] = { { "raise", core_raise },
                                 { "raise_at", core_raise_at },
                                 { "where", core_where },
                                 { "unknown", core_unknown },
                                 { "where_of", core_where_of },
                                 { "place", core_place },
                                 { "is_topology", core_is_topology },
                                 { "note", core_note },
                                 { "params", core_params },
                                 { "encode", core_encode },
                                 { "decode", core_decode },
                                 { "load", core_load },
                                 { NULL, NULL } };

/* --------------------------------------------------------------------- life */

static void note_place(lua_State *L, const char *name) {
  if (strcmp(name, "recipe") != 0) return;
  mg_lua_where(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &place_key);
}

static int setup(lua_State *L) {
  lua_pushvalue(L, 1); /* the runtime */
  lua_rawsetp(L, LUA_REGISTRYINDEX, &runtime_key);
  static const luaL_Reg libraries[] = { { LUA_GNAME, luaopen_base },
                                        { LUA_TABLIBNAME, luaopen_table },
                                        { LUA_STRLIBNAME, luaopen_string },
                                        { LUA_MATHLIBNAME, luaopen_math },
                                        { NULL, NULL } };
  for (const luaL_Reg *lib = libraries; lib->func; lib++) {
    luaL_requiref(L, lib->name, lib->func, 1);
    lua_pop(L, 1);
  }
  mg_sandbox_push(L);
  int env = lua_gettop(L);
  mg_lua_open_grid(L);
  mg_lua_open_family(L);
  mg_lua_open_topology(L);
  mg_lua_open_state(L);
  static const char *const not_for_recipes[] = { "world", "plan" };
  for (int i = 0; i < 2; i++) { /* build gets its world, and returns a topology */
    lua_pushnil(L);
    lua_setfield(L, env, not_for_recipes[i]);
  }
  if (luaL_loadbufferx(L, mg_prelude, strlen(mg_prelude), "=moongrid/recipe.lua", "t")) return lua_error(L);
  luaL_newlib(L, core);
  lua_call(L, 1, 1);
  static const char *const from_prelude[] = { "recipe", "param" };
  for (int i = 0; i < 2; i++) {
    lua_getfield(L, -1, from_prelude[i]);
    lua_setfield(L, env, from_prelude[i]);
  }
  lua_rawsetp(L, LUA_REGISTRYINDEX, &prelude_key);
  mg_sandbox_seal(L, note_place);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &env_key);
  return 0;
}

mg_runtime *mg_runtime_new(const mg_limits *given, mg_error *err) {
  mg_runtime *rt = calloc(1, sizeof *rt);
  if (!rt) return mg_null_oom(err);
  rt->limits = (mg_limits)MG_LIMITS_INIT;
  if (given) memcpy(&rt->limits, given, given->size < sizeof rt->limits ? given->size : sizeof rt->limits);
  rt->L = lua_newstate(capped_alloc, rt);
  if (!rt->L) {
    free(rt);
    return mg_null(err, MG_LIMIT, "no memory for a Lua state");
  }
  if (protected(rt, setup, rt, err)) {
    mg_runtime_free(rt);
    return NULL;
  }
  return rt;
}

void mg_runtime_free(mg_runtime *rt) {
  if (!rt) return;
  lua_close(rt->L);
  free(rt->recipe);
  free(rt);
}

/* --------------------------------------------------------------------- use */

/* Push function `name` of the prelude and the loaded recipe. */
static void push_prelude(lua_State *L, const char *name) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &prelude_key);
  lua_getfield(L, -1, name);
  lua_remove(L, -2);
}

static int load_body(lua_State *L) {
  const char *recipe = lua_touserdata(L, 1);
  push_prelude(L, "recipe");
  lua_pushstring(L, recipe);
  lua_call(L, 1, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &recipe_key);
  return 0;
}

mg_status mg_runtime_load(mg_runtime *rt, const char *recipe, mg_error *err) {
  if (!rt) return MG_USAGE;
  if (rt->recipe) return mg_fail(err, MG_USAGE, "the runtime has a recipe already: %s", rt->recipe);
  mg_status s = protected(rt, load_body, (void *)(uintptr_t)recipe, err);
  if (s) return s;
  rt->recipe = mg_strdup(recipe);
  return rt->recipe ? MG_OK : mg_oom(err);
}

static mg_status check_loaded(const mg_runtime *rt, mg_error *err) {
  return rt->recipe ? MG_OK : mg_fail(err, MG_USAGE, "the runtime has no recipe: call mg_runtime_load first");
}

typedef struct evaluation {
  int64_t       world;
  const json_t *args;
  mg_plan      *plan;
  mg_status     status;
  mg_error     *err;
} evaluation;

static int plan_body(lua_State *L) {
  evaluation *e = lua_touserdata(L, 1);
  push_prelude(L, "evaluate");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &recipe_key);
  *mg_lua_new_world(L) = mg_world(e->world);
  mg_push_json(L, e->args);
  lua_call(L, 3, 1);
  mg_topology *t = mg_lua_check_topology(L, -1);
  if (t->content.world != e->world)
    return mg_lua_raise(L, "the recipe made a topology for %" PRId64 " ranks in a world of %" PRId64, t->content.world,
                        e->world);
  mg_error err;
  if (mg_topology_recipe(t, runtime_of(L)->recipe, &err)) return mg_lua_raise_error(L, &err);
  e->plan = mg_plan_new(t, &err);
  return e->plan ? 0 : mg_lua_raise_error(L, &err);
}

mg_plan *mg_runtime_plan_json(mg_runtime *rt, int64_t world, const json_t *args, mg_error *err) {
  if (!rt || check_loaded(rt, err)) return NULL;
  if (world < 1 || world > MG_WORLD_MAX)
    return mg_null(err, MG_REFUSED, "a world has 1 to %" PRId64 " ranks, not %" PRId64, MG_WORLD_MAX, world);
  evaluation e = { world, args, NULL, MG_OK, err };
  if (protected(rt, plan_body, &e, err) == MG_OK) return e.plan;
  mg_plan_free(e.plan);
  return NULL;
}

mg_plan *mg_runtime_plan(mg_runtime *rt, int64_t world, size_t n, const char *const *args, mg_error *err) {
  json_t *object = json_object();
  if (!object) return mg_null_oom(err);
  for (size_t i = 0; i < n; i++) {
    const char *eq = strchr(args[i], '=');
    char        name[128];
    if (!eq || eq == args[i] || (size_t)(eq - args[i]) >= sizeof name) {
      json_decref(object);
      return mg_null(err, MG_USAGE, "argument '%s' is not of the form NAME=VALUE", args[i]);
    }
    memcpy(name, args[i], (size_t)(eq - args[i]));
    name[eq - args[i]] = '\0';
    if (json_object_get(object, name)) {
      json_decref(object);
      return mg_null(err, MG_USAGE, "parameter '%s' is given twice", name);
    }
    if (json_object_set_new(object, name, json_string(eq + 1)) != 0) {
      json_decref(object);
      return mg_null(err, MG_USAGE, "argument '%s' is not UTF-8 text", args[i]);
    }
  }
  mg_plan *p = mg_runtime_plan_json(rt, world, object, err);
  json_decref(object);
  return p;
}

typedef struct question {
  mg_state     *state;
  const char   *query;
  const json_t *args;
  json_t       *answer;
} question;

static int ask_body(lua_State *L) {
  question *q = lua_touserdata(L, 1);
  push_prelude(L, "ask");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &recipe_key);
  mg_state **s = mg_lua_new_state(L, false);
  *s = q->state;
  lua_pushstring(L, q->query);
  if (q->args)
    mg_push_json(L, q->args);
  else
    lua_newtable(L);
  lua_call(L, 4, 1);
  q->answer = mg_json_of(L, -1);
  if (!q->answer) return mg_lua_raise(L, "query '%s' gave a %s", q->query, luaL_typename(L, -1));
  *s = NULL; /* the recipe may have kept it */
  return 0;
}

mg_status mg_runtime_ask_json(mg_runtime *rt, mg_state *s, const char *query, const json_t *args, json_t **answer,
                         mg_error *err) {
  question  q = { s, query, args, NULL };
  mg_status status = check_loaded(rt, err);
  if (!status) status = protected(rt, ask_body, &q, err);
  if (status) {
    json_decref(q.answer);
    q.answer = NULL;
  }
  *answer = q.answer;
  return status;
}

/* The same with arguments as JSON text. */
static mg_status ask_text(mg_runtime *rt, mg_state *s, const char *query, const char *args, json_t **answer,
                          mg_error *err) {
  json_error_t why;
  json_t      *object = args ? json_loads(args, 0, &why) : NULL;
  *answer = NULL;
  if (args && !json_is_object(object)) {
    json_decref(object);
    return mg_fail(err, MG_USAGE, "the arguments of query '%s' are a JSON object, not '%.200s'", query, args);
  }
  mg_status status = mg_runtime_ask_json(rt, s, query, object, answer, err);
  json_decref(object);
  return status;
}

mg_status mg_runtime_ask(mg_runtime *rt, mg_state *s, const char *query, const char *args, char *buf, size_t len,
                         size_t *length, mg_error *err) {
  json_t   *answer;
  mg_status status = ask_text(rt, s, query, args, &answer, err);
  if (status) return status;
  char *text = json_dumps(answer, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
  json_decref(answer);
  if (!text) return mg_oom(err);
  int whole = snprintf(buf, len, "%s", text);
  if (length) *length = (size_t)whole;
  free(text);
  return MG_OK;
}

mg_status mg_runtime_ask_integer(mg_runtime *rt, mg_state *s, const char *query, const char *args, int64_t *answer,
                                 mg_error *err) {
  json_t   *value;
  mg_status status = ask_text(rt, s, query, args, &value, err);
  if (status) return status;
  if (json_is_integer(value))
    *answer = json_integer_value(value);
  else if (json_is_boolean(value) || json_is_null(value))
    *answer = json_is_null(value) ? -1 : json_is_true(value);
  else
    status = mg_fail(err, MG_REFUSED, "query '%s' does not answer with an integer", query);
  json_decref(value);
  return status;
}

static int info_body(lua_State *L) {
  json_t **info = lua_touserdata(L, 1);
  push_prelude(L, "info");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &recipe_key);
  lua_call(L, 1, 1);
  *info = mg_json_of(L, -1);
  return *info ? 0 : mg_lua_oom(L);
}

mg_status mg_runtime_info(mg_runtime *rt, json_t **info, mg_error *err) {
  mg_status s = check_loaded(rt, err);
  *info = NULL;
  if (!s) s = protected(rt, info_body, info, err);
  if (s) {
    json_decref(*info);
    *info = NULL;
  }
  return s;
}

static void describe_text(const char *name, const json_t *info, mg_text *t) {
  size_t        i;
  const json_t *p, *q;
  const char   *doc = json_string_value(json_object_get(info, "doc"));
  mg_text_add(t, "%s%s%s\n\nparameters\n", name, doc && *doc ? ": " : "", doc ? doc : "");
  json_array_foreach(json_object_get(info, "params"), i, p) {
    const char   *value = json_string_value(json_object_get(p, "default"));
    const json_t *aliases = json_object_get(p, "aliases"), *alias;
    size_t        k;
    mg_text_add(t, "  %-36s %-8s %-18s %s", json_string_value(json_object_get(p, "name")),
                json_string_value(json_object_get(p, "kind")), value ? value : "-",
                json_string_value(json_object_get(p, "doc")));
    json_array_foreach(aliases, k, alias)
      mg_text_add(t, "%s%s", k ? ", " : " (also ", json_string_value(alias));
    mg_text_add(t, "%s\n", json_array_size(aliases) ? ")" : "");
  }
  if (json_array_size(json_object_get(info, "params")) == 0) mg_text_add(t, "  none\n");
  if (json_array_size(json_object_get(info, "queries")) == 0) return;
  mg_text_add(t, "\nqueries\n");
  json_array_foreach(json_object_get(info, "queries"), i, q) mg_text_add(t, "  %s\n", json_string_value(q));
}

mg_status mg_runtime_describe(mg_runtime *rt, bool json, mg_sink sink, void *ud, mg_error *err) {
  json_t   *info;
  mg_status s = mg_runtime_info(rt, &info, err);
  if (s) return s;
  mg_text t = { 0 };
  if (json) {
    json_object_set_new(info, "name", json_string(rt->recipe));
    char *text = json_dumps(info, JSON_INDENT(2) | JSON_SORT_KEYS);
    if (text) mg_text_add(&t, "%s\n", text);
    t.failed |= !text;
    free(text);
  } else {
    describe_text(rt->recipe, info, &t);
  }
  json_decref(info);
  if (t.failed)
    s = mg_oom(err);
  else if (sink(ud, t.data, t.len) != 0)
    s = mg_fail(err, MG_LIMIT, "the output could not be written");
  mg_text_free(&t);
  return s;
}

const char *const *mg_recipe_names(void) { return mg_bundled_names; }
