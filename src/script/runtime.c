/* SPDX-License-Identifier: MIT
**
** runtime.c - a Lua state of our own for one recipe. Everything that may raise runs under lua_pcall and
** a budget. Other files use the recipe: params.c plans, ask.c answers queries, policy.c calls policies,
** describe.c tells what it has, reload.c takes a changed one.
*/
#include "script/runtime.h"

#include "script/bundle.h"
#include "script/prelude.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char mgrid_recipe_key = 'r';

static mgrid_status run(mgrid_runtime *rt, lua_CFunction body, void *ud, int results, mgrid_error *err) {
  lua_State *L = rt->L;
  mgrid_budget_start(L, &rt->budget);
  lua_settop(L, 0);
  lua_pushcfunction(L, body);
  lua_pushlightuserdata(L, ud);
  int rc = lua_pcall(L, 1, results, 0);
  mgrid_budget_stop(L);
  mgrid_status s = mgrid_budget_verdict(L, &rt->budget, rc, err);
  if (s) lua_settop(L, 0);
  return s;
}

mgrid_status mgrid_runtime_protected(mgrid_runtime *rt, lua_CFunction body, void *ud, mgrid_error *err) {
  return run(rt, body, ud, 0, err);
}

mgrid_status mgrid_runtime_value(mgrid_runtime *rt, lua_CFunction body, void *ud, mgrid_error *err) {
  return run(rt, body, ud, 1, err);
}

/* --------------------------------------------------------------------- life */

static int open_body(lua_State *L) {
  mgrid_budget_attach(L, lua_touserdata(L, 1));
  mgrid_prelude_open(L);
  return 0;
}

mgrid_runtime *mgrid_runtime_new(const mgrid_limits *given, mgrid_error *err) {
  if (given && (given->size < sizeof(size_t) || given->size > 4096))
    return mgrid_null(err, MGRID_USAGE, "limits without MGRID_LIMITS_INIT (size %zu)", given->size);
  mgrid_runtime *rt = calloc(1, sizeof *rt);
  if (!rt) return mgrid_null_oom(err);
  mgrid_limits *limits = &rt->budget.limits;
  *limits = (mgrid_limits)MGRID_LIMITS_INIT;
  if (given) memcpy(limits, given, given->size < sizeof *limits ? given->size : sizeof *limits);
  bool some = limits->memory > 0 && limits->instructions > 0 && limits->seconds > 0;
  rt->L = some ? lua_newstate(mgrid_budget_alloc, &rt->budget) : NULL;
  if (!some)
    mgrid_fail(err, MGRID_USAGE, "limits are above 0: memory %zu bytes, %" PRIu64 " instructions, %g seconds",
               limits->memory, limits->instructions, limits->seconds);
  if (!rt->L) {
    free(rt);
    return some ? mgrid_null(err, MGRID_LIMIT, "no memory for a Lua state") : NULL;
  }
  if (mgrid_runtime_protected(rt, open_body, &rt->budget, err)) {
    mgrid_runtime_free(rt);
    return NULL;
  }
  return rt;
}

void mgrid_runtime_free(mgrid_runtime *rt) {
  if (!rt) return;
  lua_close(rt->L);
  free(rt->recipe);
  free(rt);
}

/* --------------------------------------------------------------------- use */

static int load_body(lua_State *L) {
  const char *recipe = lua_touserdata(L, 1);
  mgrid_prelude_push(L, "load");
  lua_pushstring(L, recipe);
  lua_call(L, 1, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &mgrid_recipe_key);
  return 0;
}

mgrid_status mgrid_runtime_load(mgrid_runtime *rt, const char *recipe, mgrid_error *err) {
  if (!rt) return MGRID_USAGE;
  if (rt->recipe) return mgrid_fail(err, MGRID_USAGE, "the runtime has a recipe already: %s", rt->recipe);
  mgrid_error  own;
  mgrid_error *e = err ? err : &own;
  mgrid_status s = mgrid_runtime_protected(rt, load_body, (void *)(uintptr_t)recipe, e);
  if (!s && !(rt->recipe = mgrid_strdup(recipe))) s = mgrid_oom(e);
  if (s) rt->unloaded = *e;
  return s;
}

mgrid_status mgrid_runtime_check_loaded(const mgrid_runtime *rt, mgrid_error *err) {
  if (!rt) return MGRID_USAGE;              /* mgrid_runtime_new has told why, in the same err */
  if (!rt->recipe && rt->unloaded.status) { /* tell why the load failed */
    if (err) *err = rt->unloaded;
    return rt->unloaded.status;
  }
  return rt->recipe ? MGRID_OK
                    : mgrid_fail(err, MGRID_USAGE, "the runtime has no recipe: call mgrid_runtime_load first");
}

mgrid_status mgrid_runtime_check_state(const mgrid_runtime *rt, const mgrid_state *s, mgrid_error *err) {
  mgrid_status status = mgrid_runtime_check_loaded(rt, err);
  if (status || !s) return status ? status : MGRID_USAGE;
  const char *other = s->plan->content.recipe;
  if (strcmp(other, rt->recipe) == 0) return MGRID_OK;
  return mgrid_fail(err, MGRID_USAGE, "the state's plan is not of this recipe (%s) but %s%s", rt->recipe,
                    *other ? "of " : "of none", other);
}

const char *const *mgrid_recipe_names(void) { return mgrid_bundled_names; }

const char *mgrid_lua_release(void) { return LUA_RELEASE; }
