/* SPDX-License-Identifier: MIT
**
** price.c - step:price(...): the price of a step on a machine, as the table that --json prints.
*/
#include "machine/lua/machine_words.h"
#include "machine/readers.h"
#include "recipe/entry.h"
#include "recipe/values.h"
#include "step/lua/words.h"

/* Return the machine of the options at 2: a MachineModel, a text, or else that of the plan. The
** timeline owns it. */
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

/* Push the costs as JSON text: those of a table, of a file, or in the file of the machine; "":
** none. */
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
** timeline = 400000 } -> table, and the Timeline if it is asked for */
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
  step_timeline *t = mgrid_step_lua_new_timeline(L, s);
  int at = lua_gettop(L);
  o.costs = push_costs(L, price_read_machine(L, t));
  t->records.every = every < 1e9 ? (size_t)every : 1000000000;
  if (mgrid_step_price_with(s, t->machine, &o, every > 0 ? &t->records : NULL, &t->price, &e))
    return mgrid_lua_raise_error(L, &e);
  json_t *all = mgrid_step_report(s, &t->price, &e);
  if (!all) return mgrid_lua_raise_error(L, &e);
  if (mgrid_take_json(L, all)) return lua_error(L);
  if (!(every > 0)) {
    mgrid_step_lua_empty_timeline(t);
    return 1;
  }
  mgrid_lua_weigh(L, t, sizeof *t + t->records.room * sizeof *t->records.record);
  lua_pushvalue(L, at);
  return 2;
}
