/* SPDX-License-Identifier: MIT
**
** times.c - step:price, state:run_step, and their Timeline: it says what each type of ranks, or
** each rank, did when. A Timeline may have hundreds of thousands of spans, so a host gets each span
** by a call, without a table.
*/
#include "machine/lua/machine_words.h"
#include "machine/readers.h"
#include "recipe/entry.h"
#include "recipe/runtime.h"
#include "recipe/values.h"
#include "step/lua/step_words.h"
#include "step/run.h"

#include <math.h>
#include <string.h>

/* ================================================================ timelines */

#define STEP_LUA_TIMELINE "moongrid.Timeline"

/* An executed or priced step, and the objects to which its parts point. */
typedef struct step_timeline {
  mgrid_step *step;
  mgrid_machine_model *machine;
  step_price price;
  step_records records;
} step_timeline;

static step_timeline *timeline_check(lua_State *L) {
  return mgrid_lua_check_box(L, 1, STEP_LUA_TIMELINE);
}

static void empty_timeline(step_timeline *t) {
  mgrid_step_records_free(&t->records);
  mgrid_step_price_free(&t->price);
}

static void free_timeline(void *box) {
  step_timeline *t = box;
  empty_timeline(t);
  mgrid_machine_free(t->machine);
  mgrid_step_free(t->step);
}

static step_timeline *new_timeline(lua_State *L, const mgrid_step *s) {
  step_timeline *t = mgrid_lua_new_box(L, sizeof *t, 0, STEP_LUA_TIMELINE, free_timeline);
  t->step = mgrid_step_ref(s);
  return t;
}

/* Return the type at i. Lua counts types from 1. */
static int32_t timeline_check_type(lua_State *L, const step_timeline *t, int i) {
  lua_Integer n = luaL_checkinteger(L, i);
  if (n < 1 || (uint64_t)n > t->price.by.types.n)
    mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "the timeline has types 1 to %zu",
                       t->price.by.types.n);
  return (int32_t)n - 1;
}

/* timeline:span(i) -> type, stream, entry, began, moved, ended, the type for which it waited (nil:
** it did not wait) */
static int timeline_span(lua_State *L) {
  const step_timeline *t = timeline_check(L);
  lua_Integer i = luaL_checkinteger(L, 2);
  if (i < 1 || (uint64_t)i > t->records.n)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "the timeline has spans 1 to %zu",
                              t->records.n);
  const step_record *r = &t->records.record[i - 1];
  lua_pushinteger(L, r->type + 1);
  lua_pushinteger(L, r->stream + 1);
  lua_pushinteger(L, (lua_Integer)r->node + 1);
  lua_pushinteger(L, r->began);
  lua_pushinteger(L, r->moved);
  lua_pushinteger(L, r->ended);
  r->began < r->moved ? lua_pushinteger(L, r->by + 1) : lua_pushnil(L);
  return 7;
}

/* timeline:seconds(type, entry) -> the seconds of a compute or call, without waiting; 0 for other
** entries, and in a measured timeline */
static int timeline_seconds(lua_State *L) {
  const step_timeline *t = timeline_check(L);
  int32_t type = timeline_check_type(L, t, 2);
  const step_program *p = mgrid_step_of_type(t->step, &t->price.by.types, type);
  lua_Integer i = luaL_checkinteger(L, 3);
  if (i < 1 || (uint64_t)i > p->n)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "the program has entries 1 to %zu", p->n);
  const step_node *n = &p->node[i - 1];
  lua_pushnumber(L, !t->machine               ? 0
                    : n->kind == STEP_COMPUTE ? mgrid_step_work_of(&t->price.by, n)
                    : n->slot >= 0 ? mgrid_step_way_of(&t->price.by, type, n, n->bytes).seconds
                                   : 0);
  return 1;
}

/* timeline:type(rank) -> the number of the rank's type in `types` */
static int timeline_type(lua_State *L) {
  const step_timeline *t = timeline_check(L);
  int64_t rank = mgrid_lua_check_integer(L, 2);
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_check_rank(rank, t->step->plan->content.world, &e)) return mgrid_lua_raise_error(L, &e);
  lua_pushinteger(L, (t->machine ? t->price.by.types.of[rank] : rank) + 1);
  return 1;
}

static int timeline_types(lua_State *L) {
  const step_timeline *t = timeline_check(L);
  lua_createtable(L, (int)t->price.by.types.n, 0);
  for (size_t i = 0; i < t->price.by.types.n; i++) {
    const step_type *type = &t->price.by.types.type[i];
    const step_program *p = mgrid_step_of_type(t->step, &t->price.by.types, (int32_t)i);
    lua_createtable(L, 0, 4);
    mgrid_lua_set_integer(L, "rank", type->first);
    mgrid_lua_set_integer(L, "ranks", type->ranks);
    mgrid_lua_set_integer(L, "program", p - t->step->program + 1);
    lua_createtable(L, p->nstreams, 0);
    for (int k = 0; k < p->nstreams; k++)
      lua_pushstring(L, t->step->word[p->stream[k]]), lua_rawseti(L, -2, k + 1);
    lua_setfield(L, -2, "streams");
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

static int timeline_repeats(lua_State *L) {
  const step_records *r = &timeline_check(L)->records;
  lua_createtable(L, (int)r->nrepeats, 0);
  for (size_t i = 0; i < r->nrepeats; i++) {
    lua_createtable(L, 0, 3);
    mgrid_lua_set_integer(L, "from", r->repeat[i].from);
    mgrid_lua_set_integer(L, "to", r->repeat[i].to);
    mgrid_lua_set_integer(L, "times", r->repeat[i].times);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

static int timeline_cut(lua_State *L) {
  return lua_pushboolean(L, timeline_check(L)->records.full), 1;
}
static int timeline_len(lua_State *L) {
  return lua_pushinteger(L, (lua_Integer)timeline_check(L)->records.n), 1;
}

static int timeline_tostring(lua_State *L) {
  const step_timeline *t = timeline_check(L);
  lua_pushfstring(L, "Timeline of %I spans of %I types of ranks", (LUAI_UACINT)t->records.n,
                  (LUAI_UACINT)t->price.by.types.n);
  return 1;
}

static const luaL_Reg fields[] = { { "types", timeline_types },
                                   { "repeats", timeline_repeats },
                                   { "cut", timeline_cut },
                                   { NULL, NULL } };
static const luaL_Reg methods[] = { { "span", timeline_span },
                                    { "seconds", timeline_seconds },
                                    { "type", timeline_type },
                                    { NULL, NULL } };
static const luaL_Reg meta[] = { { "__len", timeline_len },
                                 { "__tostring", timeline_tostring },
                                 { "__gc", mgrid_lua_free_box },
                                 { NULL, NULL } };
const mgrid_lua_class mgrid_step_lua_timeline_class = { STEP_LUA_TIMELINE, fields, methods, NULL,
                                                        meta };

/* =================================================================== prices */

/* Return the machine of the options at 2: a MachineModel, or text. If `machine` is nil, return the
** machine of the plan. The timeline owns the result. */
static const mgrid_machine_model *price_read_machine(lua_State *L, step_timeline *t) {
  mgrid_error e = MGRID_ERROR_INIT;
  lua_getfield(L, 2, "machine");
  if (lua_isuserdata(L, -1))
    t->machine = mgrid_machine_ref(mgrid_lua_check_machine(L, lua_gettop(L)));
  else if (!lua_isnil(L, -1))
    t->machine = mgrid_machine_open_by(&mgrid_lua_entry, luaL_checkstring(L, -1), &e);
  else if (mgrid_plan_machine(t->step->plan))
    t->machine = mgrid_machine_ref(mgrid_plan_machine(t->step->plan));
  else
    mgrid_lua_raise_as(
        L, MGRID_USAGE,
        "a price needs a machine: price { machine = \"dgx-h100\" }, or a recipe that has one");
  if (!t->machine) mgrid_lua_raise_error(L, &e);
  lua_pop(L, 1);
  return t->machine;
}

static double price_number_of(lua_State *L, const char *name) {
  lua_getfield(L, 2, name);
  double x = lua_isnil(L, -1) ? 0 : luaL_checknumber(L, -1);
  if (!(x >= 0))
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "%s of a price is a number from 0 on", name);
  return x;
}

/* Push the costs as JSON text: from a table, from a file, or from the file of the machine; "" if
** there are none. */
static const char *push_costs(lua_State *L, const mgrid_machine_model *m) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_text t = { 0 };
  mgrid_status s = MGRID_OK;
  int kind = lua_getfield(L, 2, "costs");
  json_t *v = kind == LUA_TTABLE ? mgrid_json_of(L, -1) : NULL;

  if (kind == LUA_TSTRING)
    s = mgrid_step_costs_file(lua_tostring(L, -1), false, &t, &e);
  else if (kind == LUA_TNIL && m->source)
    s = mgrid_step_costs_file(m->source, true, &t, &e);
  else if (kind != LUA_TNIL && !v)
    return mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                              "costs of a price are a table, as { flops = 4e14 }, or a file"),
           "";
  if (v) mgrid_json_text(v, JSON_SORT_KEYS, &t);
  json_decref(v);
  if (s) {
    mgrid_text_free(&t);
    mgrid_lua_raise_error(L, &e);
  }
  mgrid_lua_push_text(L, &t);
  return lua_tostring(L, -1);
}

/* step:price { machine = "dgx-h100", rules = "nccl" | "mpi", eager = 0, flops = 0, costs = {},
** timeline = 400000 } -> table; the Timeline, if it is asked for */
int mgrid_step_lua_price(lua_State *L, const mgrid_step *s) {
  static const char *const known[] = { "machine", "rules", "eager", "flops", "costs", "timeline" };
  mgrid_step_price_options o = MGRID_STEP_PRICE_OPTIONS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;

  lua_settop(L, 2);
  mgrid_lua_stack(L, 12);
  if (lua_isnil(L, 2)) lua_newtable(L), lua_replace(L, 2);
  luaL_checktype(L, 2, LUA_TTABLE);
  mgrid_lua_check_keys(L, 2, "option of a price", known, sizeof known / sizeof *known, false);
  lua_getfield(L, 2, "rules");
  o.blocking = mgrid_step_lua_rules(L, lua_gettop(L)) == STEP_BLOCKING;
  o.flops = price_number_of(L, "flops");
  double eager = price_number_of(L, "eager"), every = price_number_of(L, "timeline");
  o.eager = eager < 9e15 ? (int64_t)eager : INT64_C(9000000000000000);
  step_timeline *t = new_timeline(L, s);
  int at = lua_gettop(L);
  o.costs = push_costs(L, price_read_machine(L, t));
  t->records.every = every < 1e9 ? (size_t)every : 1000000000;
  if (mgrid_step_price_with(s, t->machine, &o, every > 0 ? &t->records : NULL, &t->price, &e))
    return mgrid_lua_raise_error(L, &e);
  json_t *all = mgrid_step_report(s, &t->price, &e);
  if (!all) return mgrid_lua_raise_error(L, &e);
  if (mgrid_take_json(L, all)) return lua_error(L);
  if (!(every > 0)) {
    empty_timeline(t);
    return 1;
  }
  mgrid_lua_weigh(L, t, sizeof *t + t->records.room * sizeof *t->records.record);
  lua_pushvalue(L, at);
  return 2;
}

/* ===================================================================== runs */

/* Return the runtime of the recipe: of the state's plan, or of the state itself; NULL: there is
** none. The recipe stays on the stack. */
static mgrid_runtime *recipe_of(lua_State *L, const mgrid_state *state) {
  mgrid_lua_push_recipe(L, 1);
  mgrid_runtime **rt = luaL_testudata(L, -1, MGRID_LUA_RECIPE);
  return rt && *rt ? *rt : mgrid_state_runtime(state);
}

/* Push the step of the State at 1: from the file at i, or of the recipe. Return NULL if a rank has
** failed or has another step. Collective. */
static mgrid_step *push_step(lua_State *L, int i, mgrid_error *e) {
  mgrid_lua_check_state(L, 1);
  const char *file = luaL_optstring(L, i, NULL);
  mgrid_step **box = mgrid_step_lua_new(L);
  mgrid_state *state = mgrid_lua_check_state(L, 1);
  mgrid_runtime *rt = recipe_of(L, state);
  if (!rt)
    mgrid_lua_raise_as(
        L, MGRID_NOT_NOW,
        "the state has no recipe, and so no step: recipe:plan(...) makes a plan with its recipe");
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

/* The function of the option `compute`, and its error. */
typedef struct working {
  lua_State *L; /* the function is at index 3 */
  mgrid_error broken;
} working;

/* The function `work` of step_how: call the Lua function with so many flops. */
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

/* Read the option compute: "sleep", or a function, which is put at index 3. */
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

/* Make the timeline one of ranks: each rank gets a type of its own. */
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

/* Return the text of an option; NULL: it is nil. The text stays on the stack. */
static const char *run_text_of(lua_State *L, const char *name) {
  lua_getfield(L, 2, name);
  if (!lua_isnil(L, -1) && lua_type(L, -1) != LUA_TSTRING)
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "run_step: %s is a string, not %s", name,
                       mgrid_lua_kind(L, -1));
  return lua_tostring(L, -1);
}

/* state:run_step { steps, scale, compute, timeout, unproved, timeline, file } -> what all ranks
** measured, on all ranks; on rank 0 also the Timeline. Or nil, message, status, missing */
static int state_run_step(lua_State *L) {
  static const char *const known[] = { "steps",    "scale",    "compute", "timeout",
                                       "unproved", "timeline", "file" };
  step_how how = STEP_HOW_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  json_t *measured = NULL;
  working w = { L, MGRID_ERROR_INIT };

  mgrid_lua_check_state(L, 1);
  lua_settop(L, 2);
  if (lua_isnil(L, 2)) lua_newtable(L), lua_replace(L, 2);
  luaL_checktype(L, 2, LUA_TTABLE);
  mgrid_lua_check_keys(L, 2, "option of run_step", known, sizeof known / sizeof *known, false);
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
  step_timeline *t = new_timeline(L, s);
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
