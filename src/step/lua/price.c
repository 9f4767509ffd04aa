/* SPDX-License-Identifier: MIT
**
** price.c - programs:price(...): the price of a step on a machine, as the table that --json prints.
*/
#include "machine/readers.h"
#include "recipe/entry.h"
#include "recipe/values.h"
#include "step/lua/words.h"

#include <string.h>

/* Price and parse what is printed. NULL with *err. Nothing here raises. */
static json_t *price_of(const mgrid_step *s, const char *machine, const mgrid_step_price_options *o, mgrid_error *err) {
  mgrid_machine_model       *own = machine ? mgrid_machine_open_by(&mgrid_lua_entry, machine, err) : NULL;
  mgrid_text                 t = { 0 };
  json_error_t               why;
  json_t                    *all = NULL;
  const mgrid_machine_model *m = machine ? own : mgrid_plan_machine(s->plan);
  if (!m && !machine)
    mgrid_fail(err, MGRID_USAGE, "a price needs a machine: price { machine = \"dgx-h100\" }, or a recipe that has one");
  if (m && mgrid_step_print_price(s, m, o, mgrid_text_sink, &t, err) == MGRID_OK) {
    all = t.failed ? NULL : mgrid_json_parse(mgrid_text_chars(&t), t.len, 0, &why);
    if (!all) mgrid_oom(err);
  }
  mgrid_text_free(&t);
  mgrid_machine_free(own);
  return all;
}

static double number_of(lua_State *L, const char *name) {
  lua_getfield(L, 2, name);
  double x = lua_isnil(L, -1) ? 0 : luaL_checknumber(L, -1);
  if (!(x >= 0)) mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "%s of a price is a number from 0 on", name);
  return x;
}

/* Write the costs as JSON text; nothing if there are none. */
static void read_costs(lua_State *L, mgrid_text *t) {
  if (lua_getfield(L, 2, "costs") == LUA_TNIL) return;
  json_t *v = mgrid_json_of(L, -1);
  if (!v) mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "costs of a price are a table, as { flops = 4e14 }");
  mgrid_json_text(v, JSON_SORT_KEYS, t);
  json_decref(v);
}

/* programs:price { machine = "dgx-h100", rules = "nccl" | "mpi", eager = 0, flops = 0, costs = {} } -> table */
int mgrid_step_lua_price(lua_State *L, const mgrid_step *s) {
  static const char *const known[] = { "machine", "rules", "eager", "flops", "costs" };
  static const char *const rules[] = { "nccl", "mpi" };
  mgrid_step_price_options o = MGRID_STEP_PRICE_OPTIONS_INIT;
  mgrid_error              e = MGRID_ERROR_INIT;
  const char              *machine = NULL, *by = rules[0];
  lua_settop(L, 2);
  mgrid_lua_stack(L, 8);
  if (lua_isnil(L, 2)) lua_newtable(L), lua_replace(L, 2);
  luaL_checktype(L, 2, LUA_TTABLE);
  mgrid_lua_check_keys(L, 2, "option of a price", known, sizeof known / sizeof *known, false);
  if (lua_getfield(L, 2, "rules") != LUA_TNIL) by = luaL_checkstring(L, -1);
  if (strcmp(by, rules[0]) != 0 && strcmp(by, rules[1]) != 0)
    return mgrid_lua_unknown(L, "rules of a step", by, rules, 2);
  o.blocking = strcmp(by, rules[1]) == 0;
  o.flops = number_of(L, "flops");
  double eager = number_of(L, "eager");
  o.eager = eager < 9e15 ? (int64_t)eager : INT64_C(9000000000000000);
  if (lua_getfield(L, 2, "machine") != LUA_TNIL) machine = luaL_checkstring(L, -1);
  mgrid_text costs = { 0 };
  read_costs(L, &costs);
  o.costs = mgrid_text_chars(&costs);
  json_t *all = costs.failed ? (mgrid_oom(&e), NULL) : price_of(s, machine, &o, &e);
  mgrid_text_free(&costs);
  if (!all) return mgrid_lua_raise_error(L, &e);
  return mgrid_take_json(L, all) == LUA_OK ? 1 : lua_error(L);
}
