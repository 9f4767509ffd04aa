/* SPDX-License-Identifier: MIT
**
** sending.c - methods of Machine about what a plan sends: how many bytes go between domains, their
** cost, and which nodes should run the ranks.
*/
#include "machine/assign.h"
#include "machine/count.h"
#include "machine/lua/machine_words.h"

#include <string.h>

/* Return the traffic of the text at i, which the caller frees; NULL: there is no text. */
static mgrid_traffic *sending_read_traffic(lua_State *L, int i, int64_t world) {
  const char *text = luaL_optstring(L, i, NULL);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_traffic *t = text ? mgrid_traffic_new(world, &e) : NULL;
  if (t) mgrid_traffic_parse(t, text, &e);
  if (!e.status) return t;
  mgrid_traffic_free(t);
  return mgrid_lua_raise_error(L, &e), NULL;
}

/* Return the plan that is argument 2. Raise if it does not fit the machine. */
static const mgrid_plan *check_plan(lua_State *L, const mgrid_machine_model *m) {
  const mgrid_plan *p = mgrid_lua_check_plan(L, 2);
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_machine_fits(m, mgrid_plan_world(p), &e)) mgrid_lua_raise_error(L, &e);
  return p;
}

static void set_levels(lua_State *L, const char *key, const mgrid_machine_model *m, size_t n,
                       const double *values) {
  lua_createtable(L, 0, (int)n);
  for (size_t l = 0; l < n; l++) mgrid_lua_set_number(L, m->tier[l].name, values[l]);
  lua_setfield(L, -2, key);
}

/* machine:cost(plan [, traffic [, timed]]) -> { bytes, bound, seconds } */
int mgrid_lua_machine_cost(lua_State *L) {
  const mgrid_machine_model *m = mgrid_lua_check_machine(L, 1);
  const mgrid_plan *p = check_plan(L, m);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_cost c;
  bool timed = lua_toboolean(L, 4);
  mgrid_traffic *t = sending_read_traffic(L, 3, mgrid_plan_world(p));
  mgrid_status s = mgrid_cost_of(m, p, t, timed, &c, &e);
  mgrid_traffic_free(t);
  if (s) return mgrid_lua_raise_error(L, &e);
  lua_createtable(L, 0, 3);
  set_levels(L, "bytes", m, c.n, c.bytes);
  set_levels(L, "bound", m, c.n, c.bound);
  if (timed) mgrid_lua_set_number(L, "seconds", c.seconds);
  return 1;
}

/* Push memory for n values, set to 0. */
static void *push_room(lua_State *L, int64_t n, size_t each) {
  size_t size = (size_t)(n + 1) * each;
  return memset(lua_newuserdatauv(L, size, 0), 0, size);
}

typedef struct leaving {
  const mgrid_content *c;
  bool *chosen;          /* [c->nentries]: the flows of this family are added */
  double *sum;           /* [c->nentries]: bytes of the family; -1: it sends nothing */
  const int32_t *domain; /* the domain of each rank */
  double *out;           /* [n]: bytes that leave each domain */
  int64_t n;
} leaving;

/* Choose the families of the list at i, or all families if it is nil. */
static void sending_choose(lua_State *L, int i, const leaving *x) {
  mgrid_error e = MGRID_ERROR_INIT;
  for (size_t k = 0; k < x->c->nentries; k++) x->chosen[k] = lua_isnil(L, i), x->sum[k] = -1;
  if (lua_isnil(L, i)) return;
  luaL_checktype(L, i, LUA_TTABLE);
  for (lua_Integer k = 1; lua_rawgeti(L, i, k) != LUA_TNIL; k++, lua_pop(L, 1)) {
    int at = mgrid_content_require(x->c, "", luaL_checkstring(L, -1), &e);
    if (at < 0) mgrid_lua_raise_error(L, &e);
    x->chosen[at] = true;
  }
  lua_pop(L, 1);
}

static mgrid_status add_flows(const leaving *x, const mgrid_traffic *t, mgrid_error *err) {
  for (const mgrid_flow *f = t->flow; f < t->flow + t->n; f++) {
    int at = mgrid_content_require(x->c, "", f->family, err);
    if (at < 0) return err->status;
    if (!x->chosen[at]) continue;
    double sum = mgrid_flow_leaving(f, x->c->entry[at].family, x->domain, x->n, x->out, err);
    if (sum < 0) return err->status;
    x->sum[at] = sum + (x->sum[at] < 0 ? 0 : x->sum[at]);
  }
  return MGRID_OK;
}

/* machine:leaving(plan, level, traffic [, families]) -> the bytes between domains by family, and a
** list of the bytes that leave each domain */
int mgrid_lua_machine_leaving(lua_State *L) {
  const mgrid_machine_model *m = mgrid_lua_check_machine(L, 1);
  const mgrid_plan *p = check_plan(L, m);
  const mgrid_content *c = &p->content;
  const char *name = luaL_checkstring(L, 3);
  int64_t world = mgrid_plan_world(p), level = mgrid_machine_find(m, name);
  mgrid_error e = MGRID_ERROR_INIT;

  if (level < 0) return mgrid_lua_unknown_level(L, m, name);
  luaL_checkstring(L, 4);
  lua_settop(L, 5);
  leaving x = { .c = c, .chosen = push_room(L, (int64_t)c->nentries, sizeof *x.chosen) };
  x.sum = push_room(L, (int64_t)c->nentries, sizeof *x.sum);
  sending_choose(L, 5, &x);
  int32_t *domain = push_room(L, world, sizeof *domain);
  x.domain = domain;
  x.n = mgrid_domains_of(m, (size_t)level, world, domain);
  x.out = push_room(L, x.n, sizeof *x.out);
  mgrid_traffic *t = sending_read_traffic(L, 4, world);
  mgrid_status s = add_flows(&x, t, &e);
  mgrid_traffic_free(t);
  if (s) return mgrid_lua_raise_error(L, &e);
  lua_newtable(L);
  for (size_t i = 0; i < c->nentries; i++)
    if (x.sum[i] >= 0) mgrid_lua_set_number(L, c->entry[i].name, x.sum[i]);
  MGRID_LUA_LIST(L, x.n, lua_pushnumber(L, x.out[i]));
  return 2;
}

/* machine:assignable(world) -> whether machine:assign can work */
int mgrid_lua_machine_assignable(lua_State *L) {
  const mgrid_machine_model *m = mgrid_lua_check_machine(L, 1);
  return lua_pushboolean(L, mgrid_assignable(m, mgrid_lua_check_integer(L, 2))), 1;
}

/* machine:assign(plan [, traffic]) -> the Machine with the ranks on the nodes that were found, and
** the Machine with the ranks in the order of places */
int mgrid_lua_machine_assign(lua_State *L) {
  const mgrid_machine_model *m = mgrid_lua_check_machine(L, 1);
  const mgrid_plan *p = check_plan(L, m);
  int64_t world = mgrid_plan_world(p);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_assignment a;
  lua_settop(L, 3);
  mgrid_machine_model **found = mgrid_lua_new_machine(L), **sorted = mgrid_lua_new_machine(L);
  mgrid_traffic *t = sending_read_traffic(L, 3, world);
  mgrid_status s = mgrid_assign(m, p, t, &a, &e);
  mgrid_traffic_free(t);
  if (s) return mgrid_lua_raise_error(L, &e);
  *found = mgrid_assigned(m, &a, a.node, world, &e);
  *sorted = mgrid_assigned(m, &a, NULL, world, &e);
  mgrid_assignment_free(&a);
  return *found && *sorted ? 2 : mgrid_lua_raise_error(L, &e);
}
