/* SPDX-License-Identifier: MIT
**
** module.c - the module `moongrid` for stock Lua: the functions of recipes, and the class Recipe,
** whose objects have a runtime each. Also the exchange of objects between a C host and the scripts
** in its own Lua.
*/
#include "moongrid_lua.h"

#include "comm/backend_open.h"
#include "recipe/bind.h"
#include "recipe/bundle.h"
#include "recipe/entry.h"
#include "recipe/result.h"
#include "recipe/runtime.h"
#include "recipe/module_row.h"
#include "recipe/values.h"
#include "recipe/words/lookup.h"

#include <lualib.h>
#include <string.h>

/* -------------------------------------------------------- objects of a host
** An object that a C host and the scripts in its own Lua give each other has owners on both sides.
** Each function first makes the userdata, and then lets it become an owner, so an error in between
** leaks nothing.
*/

static void push_grid(lua_State *L, const void *g) {
  mgrid_grid **box = mgrid_lua_new_grid(L);
  *box = mgrid_grid_ref(g);
}
static void module_push_family(lua_State *L, const void *f) {
  mgrid_lua_family *box = mgrid_lua_new_family(L, NULL);
  box->f = mgrid_family_ref(f);
}
static void push_topology(lua_State *L, const void *t) {
  mgrid_topology **box = mgrid_lua_new_topology(L);
  *box = mgrid_topology_ref((void *)t);
}
static void push_plan(lua_State *L, const void *p) {
  mgrid_plan **box = mgrid_lua_new_plan(L);
  *box = mgrid_plan_ref(p);
}
static void module_push_backend(lua_State *L, const void *b) {
  mgrid_backend **box = mgrid_lua_new_job(L);
  *box = mgrid_backend_ref((void *)b);
}
static void push_state(lua_State *L, const void *s) {
  mgrid_state **box = mgrid_lua_new_state(L, true);
  *box = mgrid_state_ref((void *)s);
}

static void push_group(lua_State *L, const void *g) {
  push_state(L, ((const mgrid_group *)g)->state);
  mgrid_lua_push_group_of(L, -1, g);
  lua_remove(L, -2);
}

/* Push a Recipe. This library must have made the runtime, because mgrid_budget_of compares the
** address of a function of the library. */
static void push_runtime(lua_State *L, const void *object) {
  mgrid_runtime *rt = (void *)object;
  if (rt->made_by.entry != &mgrid_lua_entry)
    luaL_error(
        L, "the runtime was made by another libmoongrid_lua than the one that is open in this Lua");
  mgrid_runtime **box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = NULL;
  luaL_setmetatable(L, MGRID_LUA_RECIPE);
  *box = mgrid_script_runtime_ref(rt);
}

/* Return the object to which a userdata points. */
static void *pointed(lua_State *L, int i, const char *class) {
  void **box = luaL_testudata(L, i, class);
  return box ? *box : NULL;
}

/* Return the object to which the first member of a box points. */
static void *boxed(lua_State *L, int i, const char *class) {
  void **box = mgrid_lua_test_box(L, i, class);
  return box ? *box : NULL;
}

static void *state_at(lua_State *L, int i, const char *class) {
  (void)class;
  mgrid_state_box *box = mgrid_lua_test_own(L, i, &mgrid_lua_state_key);
  return box ? box->s : NULL;
}

static void *module_group_at(lua_State *L, int i, const char *class) {
  (void)class;
  return (void *)(uintptr_t)mgrid_lua_to_group(L, i);
}

static const mgrid_lua_handed classes[] = {
  { MGRID_LUA_GRID, push_grid, boxed },
  { MGRID_LUA_FAMILY, module_push_family, boxed },
  { MGRID_LUA_TOPOLOGY, push_topology, boxed },
  { MGRID_LUA_PLAN, push_plan, boxed },
  { MGRID_LUA_JOB, module_push_backend, pointed },
  { MGRID_LUA_STATE, push_state, state_at },
  { MGRID_LUA_GROUP, push_group, module_group_at },
  { MGRID_LUA_RECIPE, push_runtime, pointed },
};

/* Find a class by its name without "moongrid.". NULL: there is none. */
static const mgrid_lua_handed *module_class_of(const char *name) {
  const size_t before = sizeof "moongrid." - 1;
  for (size_t i = 0; name && i < sizeof classes / sizeof *classes; i++)
    if (strcmp(classes[i].class + before, name) == 0) return &classes[i];
  for (const mgrid_lua_module *const *s = mgrid_lua_modules; name && *s; s++)
    if ((*s)->handed && strcmp((*s)->handed->class + before, name) == 0) return (*s)->handed;
  return NULL;
}

int mgrid_lua_push(lua_State *L, const char *class_name, const void *object) {
  const mgrid_lua_handed *c = module_class_of(class_name);
  luaL_checkstack(L, 8, "moongrid");
  if (!c)
    return luaL_error(L, "'%s' is not a class of objects for scripts",
                      class_name ? class_name : "NULL");
  if (!object) return lua_pushnil(L), 1;
  if (luaL_getmetatable(L, c->class) == LUA_TNIL)
    luaL_error(
        L, "open moongrid in this Lua first: luaL_requiref(L, \"moongrid\", mgrid_lua_open, 0)");
  lua_pop(L, 1);
  c->push(L, object);
  return 1;
}

void *mgrid_lua_to(lua_State *L, int i, const char *class_name) {
  const mgrid_lua_handed *c = module_class_of(class_name);
  return c ? c->to(L, i, c->class) : NULL;
}

/* ------------------------------------------------------------- this machine */

/* Append { name, works, text } to the list on the top. */
static void push_part(lua_State *L, const char *name, bool works, const char *text) {
  lua_createtable(L, 0, 3);
  mgrid_lua_set_string(L, "name", name);
  mgrid_lua_set_boolean(L, "works", works);
  lua_pushlstring(L, text, strcspn(text, "\n"));
  lua_setfield(L, -2, "text");
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* moongrid.probe() -> a list of { name, works, text }: planning, and each backend */
static int probe(lua_State *L) {
  enum { WORDS = 1100 };
  char words[WORDS];
  mgrid_error e = MGRID_ERROR_INIT;
  lua_newtable(L);
  snprintf(words, sizeof words, "moongrid %s, %s", mgrid_version(), mgrid_lua_release());
  push_part(L, "planning", true, words);
  for (const mgrid_descriptor *d = mgrid_backends; d->name; d++) {
    if (!d->library) continue;
    mgrid_error_clear(&e);
    bool works = mgrid_backend_probe(d, words, sizeof words, &e) == MGRID_OK;
    push_part(L, d->name, works, works ? words : e.message);
  }
  return 1;
}

/* ------------------------------------------------------------------ Recipe */

static mgrid_runtime *check_recipe(lua_State *L, int i) {
  return *(mgrid_runtime **)luaL_checkudata(L, i, MGRID_LUA_RECIPE);
}

/* Call the log function of the script, at 1, with the message at 2. */
static int call_log(lua_State *L) {
  lua_pushstring(L, lua_touserdata(L, 2));
  lua_replace(L, 2);
  lua_call(L, 1, 0);
  return 0;
}

/* The `log` of mgrid_hooks: pass what the recipe prints to the script's function, the only value on
** the stack of `thread`. An error of the function is lost, because the recipe goes on. */
static void log_to_script(void *thread, mgrid_level level, const char *message) {
  lua_State *L = thread;
  if (level != MGRID_LOG_RECIPE || !lua_checkstack(L, 4)) return;
  lua_pushcfunction(L, call_log);
  lua_pushvalue(L, 1);
  lua_pushlightuserdata(L, (void *)(uintptr_t)message);
  lua_pcall(L, 2, 0, 0);
  lua_settop(L, 1);
}

/* moongrid.load(name or path [, { text, log, lines }]) -> Recipe */
static int module_load(lua_State *L) {
  static const char *const known[] = { "text", "log", "lines" };
  const char *name = luaL_checkstring(L, 1), *text = NULL;
  bool lines = false;
  size_t length = 0;
  mgrid_hooks hooks = MGRID_HOOKS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;

  lua_settop(L, 2);
  mgrid_runtime **box = lua_newuserdatauv(L, sizeof *box, 1);
  *box = NULL;
  luaL_setmetatable(L, MGRID_LUA_RECIPE);
  if (!lua_isnil(L, 2)) {
    luaL_checktype(L, 2, LUA_TTABLE);
    mgrid_lua_check_keys(L, 2, "option of load", known, 3, false);
    if (lua_getfield(L, 2, "log") != LUA_TNIL) {
      luaL_checktype(L, -1, LUA_TFUNCTION);
      hooks.ud = lua_newthread(L), hooks.log = log_to_script;
      lua_setiuservalue(L, 3, 1);
      lua_xmove(L, hooks.ud, 1);
    }
    if (lua_getfield(L, 2, "text") != LUA_TNIL) text = luaL_checklstring(L, -1, &length);
    lua_getfield(L, 2, "lines");
    lines = lua_toboolean(L, -1);
  }
  *box = mgrid_script_runtime_new(NULL, &hooks, &e);
  if (!*box || mgrid_script_load(*box, name, text, length, &e))
    return mgrid_lua_raise_runtime(L, &e);
  if (lines && mgrid_runtime_trail(*box, &e)) return mgrid_lua_raise_runtime(L, &e);
  lua_settop(L, 3);
  return 1;
}

/* Make a plan from the texts NAME=VALUE in the list at 3, which override the file at 4. The Plan at
** 5 keeps the list and the path of the file, for plans of fewer ranks. */
static mgrid_plan *plan_texts(lua_State *L, mgrid_runtime *rt, int64_t world, mgrid_error *e) {
  if (lua_isnil(L, 3)) lua_newtable(L), lua_replace(L, 3);
  luaL_checktype(L, 3, LUA_TTABLE);
  size_t n = lua_rawlen(L, 3);
  if (n == 0) {
    lua_pushnil(L);
    if (mgrid_lua_next(L, 3))
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                         "beside a file, parameters are a list of strings, as { \"tp=2\" }");
  }

  const char **args = lua_newuserdatauv(L, (n + 1) * sizeof *args, 0);
  mgrid_lua_check_keys(L, 3, "parameter that is not text NAME=VALUE", NULL, 0, true);
  lua_createtable(L, (int)n, 0); /* a copy, because the list may change while the recipe runs */
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, 3, (lua_Integer)i + 1);
    args[i] = luaL_checkstring(L, -1);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }

  const char *file = luaL_optstring(L, 4, NULL);
  lua_pushvalue(L, 4);
  lua_setfield(L, -2, "file");
  lua_setiuservalue(L, 5, 2);
  return mgrid_script_plan(rt, world, file, n, args, e);
}

/* recipe:plan(world, { tp = 2 } or { "tp=2" } [, file]) -> Plan */
static int recipe_plan(lua_State *L) {
  mgrid_runtime *rt = check_recipe(L, 1);
  mgrid_lua_world *given = mgrid_lua_test_box(L, 2, MGRID_LUA_WORLD);
  mgrid_window w = given ? given->window : mgrid_world(mgrid_lua_check_integer(L, 2));

  if (given && given->order)
    return mgrid_lua_raise(
        L, "a recipe is planned for a world in its own order; a recipe on top of it may order the "
           "world that it gives to build");
  if (w.size != w.world)
    return mgrid_lua_raise(L, "a recipe is planned for a whole world, not for a window of it");
  lua_settop(L, 4);
  mgrid_plan **box = mgrid_lua_new_plan(L);
  mgrid_error e = MGRID_ERROR_INIT;
  bool texts = !lua_isnil(L, 4) || (lua_istable(L, 3) && lua_rawlen(L, 3) > 0);
  *box = texts ? plan_texts(L, rt, w.world, &e)
               : mgrid_runtime_plan_with(
                   rt, w.world, &(mgrid_given){ .from = L, .at = 3, .what = "parameters" }, &e);
  if (!*box) return mgrid_lua_raise_runtime(L, &e);
  lua_settop(L, 5);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1); /* the Recipe of the Plan, for queries and policies */
  json_t *trail = rt->trail;
  rt->trail = NULL;
  if (trail && mgrid_take_json(L, trail)) return lua_error(L);
  if (trail) lua_setiuservalue(L, 5, 3); /* for plan:lines */
  return 1;
}

/* recipe:ask(state, query [, { virtual_rank = 1 }]) -> value */
static int recipe_ask(lua_State *L) {
  mgrid_runtime *rt = check_recipe(L, 1);
  mgrid_lua_check_state(L, 2);
  const char *query = luaL_checkstring(L, 3);
  mgrid_error e = MGRID_ERROR_INIT;
  lua_settop(L, 4);
  mgrid_given args = { .from = L, .at = 4, .what = "arguments of a query" };
  const char *from = lua_pushfstring(L, "query '%s'", query);
  mgrid_state *s = mgrid_state_ref(mgrid_lua_check_state(L, 2));
  mgrid_runtime_ask_with(rt, s, query, &args, from, &e);
  mgrid_state_free(s);
  if (e.status) return mgrid_lua_raise_runtime(L, &e);
  mgrid_result_copy(rt, rt->answer, MGRID_AS_JSON, from, L);
  return 1;
}

/* recipe:group(state, getter [, { with_context_parallel = true }]) -> Group | nil */
static int recipe_group(lua_State *L) {
  mgrid_runtime *rt = check_recipe(L, 1);
  mgrid_lua_check_state(L, 2);
  const char *getter = luaL_checkstring(L, 3);
  const mgrid_group *g;
  mgrid_error e = MGRID_ERROR_INIT;
  lua_settop(L, 4);
  mgrid_given args = { .from = L, .at = 4, .what = "arguments of a getter" };
  mgrid_state *s = mgrid_state_ref(mgrid_lua_check_state(L, 2));
  mgrid_runtime_group_with(rt, s, getter, &args, &g, &e);
  mgrid_state_free(s);
  if (e.status) return mgrid_lua_raise_runtime(L, &e);
  /* reading the arguments may have closed the state, and freed the group */
  mgrid_lua_check_state(L, 2);
  return mgrid_lua_push_group_of(L, 2, g);
}

/* recipe:set(state, name, value) */
static int recipe_set(lua_State *L) {
  mgrid_runtime *rt = check_recipe(L, 1);
  mgrid_lua_check_state(L, 2);
  const char *name = luaL_checkstring(L, 3);
  mgrid_error e = MGRID_ERROR_INIT;
  luaL_checkany(L, 4);
  mgrid_given value = { .from = L, .at = 4, .what = "a setting", .one = true };
  mgrid_state *s = mgrid_state_ref(mgrid_lua_check_state(L, 2));
  mgrid_runtime_set_with(rt, s, name, &value, &e);
  mgrid_state_free(s);
  return e.status ? mgrid_lua_raise_runtime(L, &e) : 0;
}

static int push_result(lua_State *L) {
  mgrid_policy_push_result(lua_touserdata(L, 1), L);
  return 1;
}

/* recipe:call(state, policy [, { stages = 4 } [, "number"]]) -> value. If the policy is agreed, the
** call is collective; it returns nil, message, status if ranks differ or are missing */
static int recipe_call(lua_State *L) {
  mgrid_runtime *rt = check_recipe(L, 1);

  mgrid_lua_check_state(L, 2);
  static const char *const kinds[] = { "any", "number", NULL };
  const char *name = luaL_checkstring(L, 3);
  bool number = luaL_checkoption(L, 5, "any", kinds) == 1;
  mgrid_arg answer = MGRID_ARG_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  lua_settop(L, 4);
  if (lua_isnil(L, 4)) lua_newtable(L), lua_replace(L, 4);
  luaL_checktype(L, 4, LUA_TTABLE);
  mgrid_state *s = mgrid_state_ref(mgrid_lua_check_state(L, 2));
  mgrid_policy *p = mgrid_script_policy_new(rt, s, name, &e);
  mgrid_status status = p ? mgrid_policy_call_from(p, L, 4, &e) : e.status;
  if (!status && number) status = mgrid_script_policy_result(p, NULL, MGRID_IS_NUMBER, &answer, &e);
  lua_pushcfunction(L, push_result);
  lua_pushlightuserdata(L, p);
  int raised = status ? 0 : lua_pcall(L, 1, 1, 0); /* free the policy before raising */
  mgrid_script_policy_free(p);
  mgrid_state_free(s);
  if (status >= MGRID_BACKEND) return mgrid_lua_failure(L, &e);
  return status ? mgrid_lua_raise_runtime(L, &e) : raised ? lua_error(L) : 1;
}

/* tostring of a result of recipe:info. Upvalue: the Recipe */
static int info_tostring(lua_State *L) {
  mgrid_text t = { 0 };
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_script_describe(check_recipe(L, lua_upvalueindex(1)), false, mgrid_text_sink, &t, &e)) {
    mgrid_text_free(&t);
    return mgrid_lua_raise_error(L, &e);
  }
  if (t.len) t.data[--t.len] = '\0'; /* print adds the newline */
  mgrid_lua_push_text(L, &t);
  return 1;
}

/* recipe:info() -> { doc, params, settings, queries, getters, arguments, families, policies, names,
** functions }; tostring gives the description as text */
static int recipe_info(lua_State *L) {
  mgrid_runtime *rt = check_recipe(L, 1);
  mgrid_error e = MGRID_ERROR_INIT;
  json_t *info;
  if (mgrid_runtime_info_json(rt, &info, &e)) return mgrid_lua_raise_error(L, &e);
  if (mgrid_take_json(L, info)) return lua_error(L);
  lua_createtable(L, 0, 1);
  lua_pushvalue(L, 1);
  lua_pushcclosure(L, info_tostring, 1);
  lua_setfield(L, -2, "__tostring");
  lua_setmetatable(L, -2);
  return 1;
}

/* recipe:run(lines) -> the text that the lines print and return, or nil if they are unfinished */
static int recipe_run(lua_State *L) { return mgrid_lua_typed(L, check_recipe(L, 1), "run"); }
/* recipe:complete(line) -> a list of words that complete the line's last word */
static int recipe_complete(lua_State *L) {
  return mgrid_lua_typed(L, check_recipe(L, 1), "complete");
}

static int recipe_gc(lua_State *L) {
  mgrid_runtime **box = luaL_checkudata(L, 1, MGRID_LUA_RECIPE);
  if (!mgrid_lua_collected(L)) return 0;
  mgrid_script_runtime_free(*box);
  *box = NULL;
  return 0;
}

static int recipe_tostring(lua_State *L) {
  check_recipe(L, 1);
  lua_pushliteral(L, "Recipe");
  return 1;
}

/* ------------------------------------------------------------------- module */

/* moongrid.status(message) -> the status of the error with this message, if moongrid raised it
** last; else nil */
static int status(lua_State *L) {
  mgrid_status s = lua_type(L, 1) == LUA_TSTRING ? mgrid_lua_status(L, lua_tostring(L, 1))
                                                 : MGRID_OK;
  luaL_checkany(L, 1);
  if (s)
    lua_pushinteger(L, s);
  else
    lua_pushnil(L);
  return 1;
}

static int now(lua_State *L) { return lua_pushnumber(L, mgrid_now()), 1; }

/* moongrid.recipes() -> the names of the bundled recipes. moongrid.recipes(name of a recipe or of a
** part) -> its text, the names of its parts | nil */
static int recipes(lua_State *L) {
  size_t n = 0;
  if (!lua_isnoneornil(L, 1)) {
    const mgrid_chunk *c = mgrid_bundle_find(mgrid_bundled, luaL_checkstring(L, 1));
    if (!c) return lua_pushnil(L), 1;
    lua_pushlstring(L, (const char *)c->text, c->text_size);
    lua_newtable(L);
    size_t len = strlen(c->name);
    for (const mgrid_chunk *part = mgrid_bundled; part->name; part++) {
      if (strncmp(part->name, c->name, len) != 0 || part->name[len] != '.') continue;
      lua_pushstring(L, part->name);
      lua_rawseti(L, -2, (lua_Integer)++n);
    }
    return 2;
  }
  while (mgrid_bundled_names[n]) n++;
  MGRID_LUA_LIST(L, n, lua_pushstring(L, mgrid_bundled_names[i]));
  return 1;
}

static int module_missing(lua_State *L) {
  const char *known[64];
  luaL_checktype(L, 1, LUA_TTABLE);
  size_t n = mgrid_lua_names(L, 1, known, sizeof known / sizeof *known);
  return mgrid_lua_unknown(L, "field of moongrid", luaL_checkstring(L, 2), known, n);
}

static const luaL_Reg recipe_methods[] = {
  { "plan", recipe_plan }, { "ask", recipe_ask },           { "group", recipe_group },
  { "set", recipe_set },   { "call", recipe_call },         { "info", recipe_info },
  { "run", recipe_run },   { "complete", recipe_complete }, { NULL, NULL }
};
static const luaL_Reg recipe_meta[] = { { "__gc", recipe_gc },
                                        { "__tostring", recipe_tostring },
                                        { NULL, NULL } };
static const mgrid_lua_class recipe_class = { MGRID_LUA_RECIPE, NULL, recipe_methods, NULL,
                                              recipe_meta };

int mgrid_lua_open(lua_State *L) {
  static const luaL_Reg functions[] = { { "load", module_load }, { "recipes", recipes },
                                        { "status", status },    { "now", now },
                                        { "probe", probe },      { NULL, NULL } };
  static const luaL_Reg module_meta[] = { { "__index", module_missing }, { NULL, NULL } };

  luaL_checkversion(L);
  mgrid_lua_open_class(L, &recipe_class);
  lua_newtable(L);
  luaL_setfuncs(L, functions, 0);
  mgrid_lua_open_job(L);
  mgrid_lua_open_world(L);
  mgrid_lua_open_grid(L);
  mgrid_lua_open_family(L);
  mgrid_lua_open_options(L);
  mgrid_lua_open_topology(L);
  mgrid_lua_open_plan(L);
  mgrid_lua_open_saved(L);
  mgrid_lua_open_state(L);
  mgrid_lua_open_use(L);
  mgrid_lua_open_pictures(L);
  for (const mgrid_lua_module *const *s = mgrid_lua_modules; *s; s++) {
    if ((*s)->open) (*s)->open(L);
    if ((*s)->open_host) (*s)->open_host(L);
  }
  lua_pushliteral(L, "moongrid " MGRID_VERSION);
  lua_setfield(L, -2, "_VERSION");
  luaL_newlib(L, module_meta);
  lua_setmetatable(L, -2);
  return 1;
}

void mgrid_lua_open_whole(lua_State *L) {
  luaL_openlibs(L);
  luaL_requiref(L, "moongrid", mgrid_lua_open, 0);
}
