/* SPDX-License-Identifier: MIT
**
** runtime.c - moongrid's own Lua state for one recipe. Everything that may raise runs under
** lua_pcall and a budget. load.c passes a recipe's text to lua/prelude/recipe.lua, which evaluates
** it. calls.c answers questions about it; policy.c has its policies.
*/
#include "recipe/runtime.h"

#include "recipe/budget.h"
#include "recipe/bundle.h"
#include "recipe/entry.h"
#include "recipe/function.h"
#include "recipe/prelude.h"
#include "recipe/sandbox.h"
#include "recipe/module_row.h"

#include <dlfcn.h>
#include <lualib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------- the contents of a Lua state */

/* its address: the registry key of the table of functions that recipe.lua returns */
static const char prelude_key = 'p';

/* An mgrid_sandbox_read: keep the position of the word `recipe`. */
static void note_place(lua_State *L, const char *name) {
  if (strcmp(name, "recipe") != 0) return;
  mgrid_lua_where(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &mgrid_place_key);
}

/* Open Lua's libraries, the sandbox with moongrid's classes and functions, and the prelude. May
** raise. */
static int open_prelude(lua_State *L) {
  static const luaL_Reg libraries[] = { { LUA_GNAME, luaopen_base },
                                        { LUA_TABLIBNAME, luaopen_table },
                                        { LUA_STRLIBNAME, luaopen_string },
                                        { LUA_MATHLIBNAME, luaopen_math },
                                        { NULL, NULL } };

  for (const luaL_Reg *lib = libraries; lib->func; lib++) {
    luaL_requiref(L, lib->name, lib->func, 1);
    lua_pop(L, 1);
  }
  mgrid_budget_no_home(L);
  mgrid_sandbox_push(L);
  int env = lua_gettop(L);
  mgrid_lua_open_world(L);
  mgrid_lua_open_grid(L);
  mgrid_lua_open_family(L);
  mgrid_lua_open_topology(L);
  mgrid_lua_open_plan(L);
  mgrid_lua_open_state(L);
  for (const mgrid_lua_module *const *s = mgrid_lua_modules; *s; s++)
    if ((*s)->open) (*s)->open(L);
  static const char *const not_for_recipes[] = { "world", "plan" };
  for (int i = 0; i < 2; i++) { /* build gets a world, and makes no plan */
    lua_pushnil(L);
    lua_setfield(L, env, not_for_recipes[i]);
  }
  mgrid_bundle_push(L, "recipe");
  mgrid_core_push(L);
  lua_call(L, 1, 1);
  static const char *const from_prelude[] = { "recipe", "param", "policies", "steps" };
  for (int i = 0; i < 4; i++) {
    lua_getfield(L, -1, from_prelude[i]);
    lua_setfield(L, env, from_prelude[i]);
  }
  lua_rawsetp(L, LUA_REGISTRYINDEX, &prelude_key);
  mgrid_sandbox_seal(L, note_place);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &mgrid_env_key);
  return 0;
}

void mgrid_prelude_push(lua_State *L, const char *name) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &prelude_key);
  lua_getfield(L, -1, name);
  lua_remove(L, -2);
}

/* --------------------------------------------------------------------- calls */

const char mgrid_recipe_key = 'r';

static mgrid_status runtime_run(mgrid_runtime *rt, lua_CFunction body, void *ud, int results,
                                double seconds, double spent, mgrid_error *err) {
  lua_State *L = rt->L;
  if (rt->budget.step)
    return mgrid_fail(
        err, MGRID_NOT_NOW,
        "the runtime is running a hook or a function of the host, which must not call "
        "moongrid, nor leave by an exception (moongrid_cpp.h)");
  mgrid_locale host = mgrid_locale_plain();
  lua_settop(L, 0);
  mgrid_budget_start(L, &rt->budget, seconds, spent);
  lua_pushcfunction(L, mgrid_lua_message);
  lua_pushcfunction(L, body);
  lua_pushlightuserdata(L, ud);
  int rc = lua_pcall(L, 1, results, 1);
  lua_remove(L, 1);
  mgrid_budget_stop(&rt->budget);
  mgrid_status s = mgrid_budget_verdict(L, &rt->budget, rc, err);
  mgrid_locale_back(host);
  if (s) lua_settop(L, 0);
  return s;
}

mgrid_status mgrid_runtime_protected(mgrid_runtime *rt, lua_CFunction body, void *ud,
                                     mgrid_error *err) {
  return runtime_run(rt, body, ud, 0, rt->budget.limits.seconds, rt->loading, err);
}

mgrid_status mgrid_runtime_value(mgrid_runtime *rt, lua_CFunction body, void *ud,
                                 mgrid_error *err) {
  return runtime_run(rt, body, ud, 1, rt->budget.limits.seconds, rt->loading, err);
}

mgrid_status mgrid_runtime_call(mgrid_runtime *rt, lua_CFunction body, void *ud, mgrid_error *err) {
  return runtime_run(rt, body, ud, 0, rt->budget.limits.call_seconds, 0, err);
}

/* --------------------------------------------------------------------- life */

/* Make a Lua state. Lua makes the seed of its hashes from addresses and the time; since 5.5 the
** host may choose the seed. */
lua_State *mgrid_runtime_new_lua(lua_Alloc allocate, void *ud) {
#if LUA_VERSION_NUM >= 505
  return lua_newstate(allocate, ud, 0);
#else
  return lua_newstate(allocate, ud);
#endif
}

/* Where the system could not bind libmoongrid_lua to its own Lua first (comm/recipe.c), the library
** is bound to the host's Lua. From its own Lua it then gets only the functions that the host's Lua
** lacks, such as lua_newuserdatauv if that is Lua 5.3. */
mgrid_status mgrid_runtime_check_lua(mgrid_error *err) {
  Dl_info of_any = { 0 }, of_ours = { 0 };
  dladdr((void *)(uintptr_t)lua_newstate, &of_any);
  dladdr((void *)(uintptr_t)lua_newuserdatauv, &of_ours);
  if (of_any.dli_fbase == of_ours.dli_fbase) return MGRID_OK;
  return mgrid_fail(err, MGRID_MISSING,
                    "recipes need " LUA_VERSION
                    ", and lua_newstate is that of %s: a sanitizer forbids to load a Lua apart "
                    "from the program's; link the archives (pkg-config moongrid_static), or run "
                    "without sanitizer",
                    of_any.dli_fname);
}

mgrid_runtime *mgrid_script_runtime_new(const mgrid_limits *limits, const mgrid_hooks *hooks,
                                        mgrid_error *err) {
  mgrid_limits l = MGRID_LIMITS_INIT;
  mgrid_hooks h = MGRID_HOOKS_INIT;

  if (mgrid_struct_read(&l, sizeof l, limits, "mgrid_limits", err)) return NULL;
  if (mgrid_struct_read(&h, sizeof h, hooks, "mgrid_hooks", err)) return NULL;
  if (!(l.seconds >= 0 && l.call_seconds >= 0))
    return mgrid_null(err, MGRID_OUT_OF_RANGE,
                      "limits are 0 (the default) or more, not seconds %g, call_seconds %g",
                      l.seconds, l.call_seconds);
  if (l.memory == 0) l.memory = (size_t)64 << 20;
  if (l.instructions == 0) l.instructions = UINT64_C(200000000);
  if (l.seconds == 0) l.seconds = 10;
  if (l.call_seconds == 0) l.call_seconds = 2;
  if (mgrid_runtime_check_lua(err)) return NULL;
  mgrid_runtime *rt = mgrid_zeroed(NULL, sizeof *rt);
  if (!rt) return mgrid_null_oom(err);
  rt->made_by.entry = &mgrid_lua_entry;
  rt->users = 1, rt->answer = LUA_NOREF;
  rt->budget.limits = l, rt->budget.hooks = h;

  /* set the default here, so that an allocation needs no test */
  if (!h.allocate) rt->budget.hooks.allocate = mgrid_allocate;
  rt->unloaded = (mgrid_error)MGRID_ERROR_INIT;
  rt->L = mgrid_runtime_new_lua(mgrid_budget_alloc, &rt->budget);
  if (!rt->L) {
    bool starved = rt->budget.starved;
    mgrid_release(rt);
    if (starved) return mgrid_null_oom(err);
    return mgrid_null(err, MGRID_LIMIT, "a Lua state needs more than %zu bytes of memory",
                      l.memory);
  }
  if (mgrid_runtime_protected(rt, open_prelude, NULL, err)) {
    mgrid_script_runtime_free(rt);
    return NULL;
  }
  return rt;
}

mgrid_status mgrid_runtime_apart(const mgrid_limits *limits, lua_CFunction body, void *ud,
                                 mgrid_error *err) {
  mgrid_runtime rt = { .budget = { .limits = *limits, .hooks = MGRID_HOOKS_INIT } };
  mgrid_status s = mgrid_runtime_check_lua(err);
  if (s) return s;
  rt.budget.hooks.allocate = mgrid_allocate;
  if (!(rt.L = mgrid_runtime_new_lua(mgrid_budget_alloc, &rt.budget))) return mgrid_oom(err);
  s = mgrid_runtime_protected(&rt, body, ud, err);
  lua_close(rt.L);
  mgrid_budget_release(&rt.budget);
  return s;
}

mgrid_runtime *mgrid_script_runtime_ref(mgrid_runtime *rt) {
  rt->users++;
  return rt;
}

void mgrid_script_runtime_free(mgrid_runtime *rt) {
  if (!rt || --rt->users > 0) return;
  lua_close(rt->L);
  mgrid_functions_free(rt);
  for (size_t i = 0; i < MGRID_LENT_MAX; i++)
    if (rt->lent[i].x) rt->lent[i].kind->free(rt->lent[i].x);
  mgrid_budget_release(&rt->budget);
  mgrid_text_free(&rt->text);
  json_decref(rt->trail);
  mgrid_release(rt->recipe);
  mgrid_release(rt);
}

/* --------------------------------------------------------------------- use */

/* Store the lent item in the registry; the key is the address of its kind. */
static int lend_body(lua_State *L) {
  const mgrid_lent *lent = lua_touserdata(L, 1);
  lua_pushlightuserdata(L, lent->x);
  lua_rawsetp(L, LUA_REGISTRYINDEX, lent->kind);
  return 0;
}

mgrid_status mgrid_script_lend(mgrid_runtime *rt, const mgrid_item_kind *kind, const void *x,
                               mgrid_error *err) {
  mgrid_lent *at = rt->lent, more = { kind, NULL };
  while (at < rt->lent + MGRID_LENT_MAX && at->kind && at->kind != kind) at++;
  if (at == rt->lent + MGRID_LENT_MAX)
    return mgrid_fail(err, MGRID_LIMIT, "a host lends a runtime at most %d items", MGRID_LENT_MAX);
  if (x) more.x = kind->ref(x);
  mgrid_status s = mgrid_runtime_protected(rt, lend_body, &more, err);
  if (s) {
    if (more.x) kind->free(more.x);
    return s;
  }
  if (at->x) kind->free(at->x);
  *at = more;
  return MGRID_OK;
}

void *mgrid_lua_lent(lua_State *L, const mgrid_item_kind *kind) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, kind);
  void *x = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return x;
}

typedef struct loading {
  const char *recipe;
  const mgrid_text *text; /* NULL: the recipe is a file, or bundled */
} loading;

static int runtime_load_body(lua_State *L) {
  const loading *l = lua_touserdata(L, 1);
  mgrid_prelude_give(L, l->text);
  mgrid_prelude_push(L, "load");
  lua_pushstring(L, l->recipe);
  lua_call(L, 1, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &mgrid_recipe_key);
  return 0;
}

/* Keep a copy of the text, which mgrid_reload loads again. */
static mgrid_status take_text(mgrid_runtime *rt, const char *name, const char *text, size_t length,
                              mgrid_error *err) {
  mgrid_text_free(&rt->text);
  if (!text) return MGRID_OK;
  if (length > MGRID_TEXT_MAX)
    return mgrid_fail(err, MGRID_REFUSED, "recipe %s has %zu bytes; a recipe has at most %d", name,
                      length, MGRID_TEXT_MAX);
  mgrid_text_put(&rt->text, text, length);
  return rt->text.failed ? mgrid_oom(err) : MGRID_OK;
}

/* If a relative path could not be opened, add the current folder to the error, because the
** processes of a job may run in different folders. */
static void tell_folder(const char *recipe, mgrid_error *err) {
  char folder[300];
  if (*recipe != '/' && strncmp(err->message, "cannot open ", 12) == 0
      && getcwd(folder, sizeof folder))
    mgrid_error_reword(err, "%s, in %s", err->message, folder);
}

mgrid_status mgrid_script_load(mgrid_runtime *rt, const char *recipe, const char *text,
                               size_t length, mgrid_error *err) {
  if (rt->recipe)
    return mgrid_fail(err, MGRID_NOT_NOW, "the runtime has a recipe already: %s", rt->recipe);
  mgrid_error *why = &rt->unloaded;
  mgrid_error_clear(why);
  double began = mgrid_processor_now();
  loading l = { recipe, text ? &rt->text : NULL };
  mgrid_status s = take_text(rt, recipe, text, length, why);
  if (!s) s = mgrid_runtime_protected(rt, runtime_load_body, &l, why);
  rt->loading = mgrid_processor_now() - began;
  if (!s && !(rt->recipe = mgrid_strdup(recipe))) s = mgrid_oom(why);
  if (s && !text) tell_folder(recipe, why);
  if (s) return mgrid_error_pass(err, why);
  mgrid_log(&rt->budget.hooks, MGRID_LOG_DEBUG, "recipe %s is loaded", recipe);
  return MGRID_OK;
}

mgrid_status mgrid_runtime_check_loaded(const mgrid_runtime *rt, mgrid_error *err) {
  /* the Recipe was garbage-collected */
  if (!rt) return mgrid_fail(err, MGRID_NOT_NOW, "the recipe is closed");
  if (!rt->recipe && rt->unloaded.status)
    return mgrid_error_pass(err, &rt->unloaded); /* the error of the load that failed */
  return rt->recipe ? MGRID_OK
                    : mgrid_fail(err, MGRID_NOT_NOW,
                                 "the runtime has no recipe: call mgrid_runtime_load first");
}

mgrid_status mgrid_runtime_check_state(const mgrid_runtime *rt, const mgrid_state *s,
                                       mgrid_error *err) {
  mgrid_status status = mgrid_runtime_check_loaded(rt, err);
  if (status || !s) return status ? status : MGRID_USAGE;
  const char *other = s->plan->content.recipe;
  if (strcmp(other, rt->recipe) == 0) return MGRID_OK;
  return mgrid_fail(err, MGRID_NOT_NOW, "the state's plan is not of this recipe (%s) but %s%s",
                    rt->recipe, *other ? "of " : "of none", other);
}

const char *mgrid_lua_release(void) { return LUA_RELEASE; }
