/* SPDX-License-Identifier: MIT
**
** run.c - state:step() and state:run_step() for hosts.
*/
#include "recipe/runtime.h"
#include "recipe/values.h"
#include "step/lua/words.h"
#include "step/run.h"

#include <math.h>
#include <string.h>

/* Return the runtime of the state's recipe: of its plan, or its own. It stays on the stack. NULL:
** none. */
static mgrid_runtime *recipe_of(lua_State *L, const mgrid_state *state) {
  mgrid_lua_push_recipe(L, 1);
  mgrid_runtime **rt = luaL_testudata(L, -1, MGRID_LUA_RECIPE);
  return rt && *rt ? *rt : mgrid_state_runtime(state);
}

/* Push the step of the State at 1, of a file at i or the recipe's; all ranks agree on it. NULL:
** they do not. */
static mgrid_step *push_step(lua_State *L, int i, mgrid_error *e) {
  mgrid_lua_check_state(L, 1);
  const char *file = luaL_optstring(L, i, NULL);
  mgrid_step **box = mgrid_step_lua_new(L);
  mgrid_state *state = mgrid_lua_check_state(L, 1);
  mgrid_runtime *rt = recipe_of(L, state);
  if (!rt)
    mgrid_lua_raise_as(
        L, MGRID_NOT_NOW,
        "the step of a state is its recipe's: recipe:plan(...) makes a plan that has it");
  *box = mgrid_state_step(rt, state, file, e);
  lua_pop(L, 1); /* the recipe */
  return *box;
}

/* state:step([file]) -> Programs; or nil, message, status, missing */
static int state_step(lua_State *L) {
  mgrid_error e = MGRID_ERROR_INIT;
  lua_settop(L, 2);
  return push_step(L, 2, &e) ? 1 : mgrid_lua_failure(L, &e);
}

static double positive(lua_State *L, const char *name, double usual) {
  lua_getfield(L, 2, name);
  double x = lua_isnil(L, -1) ? usual : lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : -1;
  if (!(x > 0) || !isfinite(x))
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "run_step: %s is a number above 0, not %s", name,
                       lua_type(L, -1) == LUA_TNUMBER ? luaL_tolstring(L, -1, NULL)
                                                      : mgrid_lua_kind(L, -1));
  lua_pop(L, 1);
  return x;
}

/* Where the function of the option `compute` runs. */
typedef struct working {
  lua_State *L; /* it is at 3 */
  mgrid_error broken;
} working;

/* A `work` of step_how: call it with so many flops. */
static double call_work(void *ud, double flops) {
  working *w = ud;
  lua_State *L = w->L;
  if (w->broken.status) return flops;
  lua_pushvalue(L, 3);
  lua_pushnumber(L, flops);
  int raised = lua_pcall(L, 1, 1, 0);
  double done = raised ? 0 : lua_tonumber(L, -1);
  const char *message = raised
                            ? lua_tostring(L, -1)
                            : "run_step: compute returns how many flops it has done, more than 0";
  if (raised == LUA_ERRMEM)
    mgrid_oom(&w->broken);
  else if (!message)
    mgrid_fail(&w->broken, MGRID_REFUSED, "run_step: compute raises an error that is a %s",
               luaL_typename(L, -1));
  else if (!(done > 0))
    mgrid_fail(&w->broken, MGRID_REFUSED, "%s", message);
  lua_pop(L, 1);
  return done > 0 ? done : flops;
}

/* Read "sleep" or a function, which goes to 3. */
static void read_compute(lua_State *L, step_how *how, working *w) {
  int kind = lua_getfield(L, 2, "compute");
  how->sleeps = kind == LUA_TSTRING && strcmp(lua_tostring(L, -1), "sleep") == 0;
  if (kind == LUA_TFUNCTION)
    how->work = call_work, how->ud = w, how->broken = &w->broken;
  else if (kind != LUA_TNIL && !how->sleeps)
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "run_step: compute is \"sleep\" or a function, not %s",
                       kind == LUA_TSTRING ? lua_pushfstring(L, "'%s'", lua_tostring(L, -1))
                                           : mgrid_lua_kind(L, -1));
}

/* Let a timeline tell of each rank as of a type of its own. */
static bool tell_ranks(step_timeline *t) {
  const mgrid_step *s = t->step;
  size_t world = (size_t)s->plan->content.world;
  step_types *types = &t->price.by.types;
  if (!(types->type = mgrid_zeroed(NULL, world * sizeof *types->type))) return false;
  types->n = world;
  for (size_t i = 0; i < world; i++)
    types->type[i] = (step_type){ .class = s->of[i], .first = (int64_t)i, .ranks = 1 };
  return true;
}

/* Return the text of an option, which stays on the stack; NULL: nil. */
static const char *run_text_of(lua_State *L, const char *name) {
  lua_getfield(L, 2, name);
  if (!lua_isnil(L, -1) && lua_type(L, -1) != LUA_TSTRING)
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "run_step: %s is a string, not %s", name,
                       mgrid_lua_kind(L, -1));
  return lua_tostring(L, -1);
}

static void run_check_names(lua_State *L) {
  static const char *const known[] = { "steps",    "scale",    "compute", "timeout",
                                       "unproved", "timeline", "file" };
  for (lua_pushnil(L); mgrid_lua_next(L, 2); lua_pop(L, 1)) {
    size_t i = 0, n = sizeof known / sizeof *known;
    if (lua_type(L, -2) != LUA_TSTRING)
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "run_step: options have names");
    while (i < n && strcmp(known[i], lua_tostring(L, -2)) != 0) i++;
    if (i == n) mgrid_lua_unknown(L, "option of run_step", lua_tostring(L, -2), known, n);
  }
}

/* state:run_step{ steps, scale, compute, timeout, unproved, timeline, file } -> what all ranks
** measured, on all ranks; on rank 0 the Timeline; or nil, message, status, missing */
static int state_run_step(lua_State *L) {
  step_how how = STEP_HOW_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  json_t *measured = NULL;
  working w = { L, MGRID_ERROR_INIT };
  mgrid_lua_check_state(L, 1);
  lua_settop(L, 2);
  if (lua_isnil(L, 2)) lua_newtable(L), lua_replace(L, 2);
  luaL_checktype(L, 2, LUA_TTABLE);
  run_check_names(L);
  double steps = positive(L, "steps", 1);
  if (steps != floor(steps) || steps > INT32_MAX)
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "run_step: steps is a whole number, not %.14g", steps);
  how.steps = (int64_t)steps, how.scale = positive(L, "scale", how.scale),
  how.timeout = positive(L, "timeout", how.timeout);
  lua_getfield(L, 2, "unproved");
  how.unproved = lua_toboolean(L, -1);
  lua_settop(L, 2);
  read_compute(L, &how, &w);
  lua_settop(L, 3);
  lua_getfield(L, 2, "timeline");
  bool tells = lua_toboolean(L, -1);
  run_text_of(L, "file");
  const mgrid_step *s = push_step(L, lua_gettop(L), &e);
  if (!s) return mgrid_lua_failure(L, &e);
  step_timeline *t = mgrid_step_lua_new_timeline(L, s);
  int at = lua_gettop(L);
  mgrid_lua_stack(L, 8);
  if (mgrid_step_measure(s, mgrid_lua_check_state(L, 1), &how, tells ? &t->records : NULL,
                         &measured, &e))
    return mgrid_lua_failure(L, &e);
  if (mgrid_take_json(L, measured)) return lua_error(L);
  mgrid_lua_weigh(L, t, sizeof *t + t->records.room * sizeof *t->records.record);
  if (!tells || mgrid_lua_check_state(L, 1)->view.rank != 0) return 1;
  if (!tell_ranks(t)) return mgrid_lua_oom(L);
  lua_pushvalue(L, at);
  return 2;
}

const luaL_Reg mgrid_step_lua_state_methods[] = { { "step", state_step },
                                                  { "run_step", state_run_step },
                                                  { NULL, NULL } };
