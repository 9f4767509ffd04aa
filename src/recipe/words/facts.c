/* SPDX-License-Identifier: MIT
**
** facts.c - Plan for Lua: its parameters, its communicators, and the resources that NCCL needs for
** these.
*/
#include "recipe/words/facts.h"

#include "plan/backend_row.h"
#include "recipe/budget.h"

#include <inttypes.h>

int64_t mgrid_lua_opt_rank(lua_State *L, const mgrid_plan *p, int i) {
  if (lua_isnoneornil(L, i)) return -1;
  int64_t rank = mgrid_lua_check_integer(L, i);
  if (rank < 0 || rank >= p->content.world)
    mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                       "rank %" PRId64 " is out of range; ranks are 0 to %" PRId64, rank,
                       p->content.world - 1);
  return rank;
}

/* ------------------------------------------------------------------ fields */

static void push_param(lua_State *L, const mgrid_param *a) {
  char digits[40];
  lua_createtable(L, 0, 5);
  mgrid_lua_set_string(L, "name", a->name);
  mgrid_lua_set_string(L, "value", a->value);
  mgrid_lua_set_string(L, "short", mgrid_shortest(a->value, digits, sizeof digits));
  mgrid_lua_set_boolean(L, "usual", a->usual);
  mgrid_lua_set_boolean(L, "unread", a->unread);
}

/* plan.params -> a list of { name, value, short, usual, unread } */
int mgrid_lua_plan_params(lua_State *L) {
  const mgrid_content *c = &mgrid_lua_check_plan(L, 1)->content;
  MGRID_LUA_LIST(L, c->nparams, push_param(L, &c->param[i]));
  return 1;
}

/* plan.functions -> a list of { name, version } */
int mgrid_lua_plan_functions(lua_State *L) {
  const mgrid_content *c = &mgrid_lua_check_plan(L, 1)->content;
  lua_createtable(L, (int)c->ncalled, 0);
  for (size_t i = 0; i < c->ncalled; i++) {
    lua_createtable(L, 0, 2);
    mgrid_lua_set_string(L, "name", c->called[i].name);
    mgrid_lua_set_string(L, "version", c->called[i].version);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* plan.concurrent -> a list of lists of names */
int mgrid_lua_plan_concurrent(lua_State *L) {
  const mgrid_content *c = &mgrid_lua_check_plan(L, 1)->content;
  lua_createtable(L, (int)c->nconcurrent, 0);
  for (size_t k = 0; k < c->nconcurrent; k++) {
    MGRID_LUA_LIST(L, c->concurrent[k].n, lua_pushstring(L, c->concurrent[k].name[i]));
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
  return 1;
}

/* ----------------------------------------------------------- communicators */

/* plan:communicators(family [, site]) -> { needed, made, own, shares, options, singles, twin,
** created, ring }. `site` describes the machines on which the plan will run (mgrid_site) */
static int plan_communicators(lua_State *L) {
  const mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  int i = mgrid_lua_check_entry(L, p, 2);
  const mgrid_entry *e = &p->content.entry[i];
  const mgrid_family *f = e->family;
  bool needed = f->max_size > 1, made = needed && !e->choice->none;
  int64_t own = 0;
  mgrid_demand cost = { 0 };
  mgrid_site site = mgrid_lua_check_site(L, 3);
  mgrid_budget *budget = mgrid_lua_work(L);
  int64_t local = site.machine_ranks < f->max_size ? site.machine_ranks : f->max_size;

  if (made && p->shares[i] < 0) own = mgrid_plan_led(p, i, -1, budget);
  mgrid_lua_charge(L, 0);
  if (made) mgrid_entry_demand(e, f->max_size, local, &site, &cost);
  lua_createtable(L, 0, 9);
  mgrid_lua_set_boolean(L, "needed", needed);
  mgrid_lua_set_boolean(L, "made", made);
  mgrid_lua_set_integer(L, "own", own);
  mgrid_lua_set_string(L, "shares",
                       made && p->shares[i] >= 0 ? p->content.entry[p->shares[i]].name : NULL);
  mgrid_lua_set_string(L, "options", e->choice->text + (*e->choice->text == ' '));
  mgrid_lua_set_integer(L, "singles", mgrid_family_singles(f));
  mgrid_lua_set_boolean(L, "twin", f->twin);
  mgrid_lua_set_integer(L, "created", cost.created);
  mgrid_lua_set_integer(L, "ring", cost.ring);
  return 1;
}

/* plan:leaders(family) -> a list of { family, groups }: the families whose communicators some
** groups of this family share, and how many groups share them */
static int plan_leaders(lua_State *L) {
  const mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  int i = mgrid_lua_check_entry(L, p, 2);
  lua_Integer n = 0;
  mgrid_budget *budget = mgrid_lua_work(L);
  int64_t *groups = lua_newuserdatauv(L, p->content.nentries * sizeof *groups, 0);
  mgrid_plan_leaders(p, i, groups, budget);
  mgrid_lua_charge(L, 0);
  lua_newtable(L);
  for (size_t k = 0; k < p->content.nentries; k++) {
    if (groups[k] == 0) continue;
    lua_createtable(L, 0, 2);
    mgrid_lua_set_string(L, "family", p->content.entry[k].name);
    mgrid_lua_set_integer(L, "groups", groups[k]);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

/* plan:lines(family) -> a list of "source:line" | nil */
static int plan_lines(lua_State *L) {
  mgrid_lua_check_entry(L, mgrid_lua_check_plan(L, 1), 2);
  if (lua_getiuservalue(L, 1, 3) != LUA_TTABLE) return 0;
  lua_pushvalue(L, 2);
  lua_rawget(L, -2);
  return 1;
}

/* plan:idle() -> the number of ranks that are in no group (nil: not known), these ranks as text,
** whether the recipe allows such ranks */
static int plan_idle(lua_State *L) {
  const mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  mgrid_text which = { 0 };
  mgrid_lua_charge(L, p->content.world);
  int64_t n = mgrid_plan_idle(p, &which);
  mgrid_lua_push_text(L, &which);
  mgrid_lua_push_index(L, n);
  lua_insert(L, -2);
  lua_pushboolean(L, p->content.idle);
  return 3;
}

/* plan:unheeded([backend]) -> the options of the plan that the backend ignores, "timeout of 3
** families, nccl of 1 family"; the name of the backend */
static int plan_unheeded(lua_State *L) {
  const mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  const char *name = luaL_optstring(L, 2, NULL);
  const mgrid_descriptor *backend = name ? mgrid_backend_named(name) : mgrid_backend_usual();
  mgrid_text t = { 0 };
  if (!backend) return mgrid_lua_raise_as(L, MGRID_UNKNOWN_NAME, "unknown backend '%s'", name);
  mgrid_plan_unheeded(p, backend, &t);
  mgrid_lua_push_text(L, &t);
  lua_pushstring(L, backend->name);
  return 2;
}

/* -------------------------------------------------------------------- NCCL */

mgrid_site mgrid_lua_check_site(lua_State *L, int i) {
  static const char *const known[] = { "machine_ranks", "no_nvls", "min_ctas", "max_ctas" };
  mgrid_site site = MGRID_SITE_INIT;
  site.machine_ranks = MGRID_SITE_RANKS;
  if (lua_isnoneornil(L, i)) return site;
  mgrid_lua_check_table(L, i, "{ machine_ranks = 8 }");
  mgrid_lua_check_keys(L, i, "field of a site", known, 4, false);
  int64_t *const numbers[] = { &site.machine_ranks, NULL, &site.min_ctas, &site.max_ctas };
  for (int k = 0; k < 4; k++) {
    int type = lua_getfield(L, i, known[k]);
    if (k == 1)
      site.no_nvls = lua_toboolean(L, -1);
    else if (type != LUA_TNIL)
      *numbers[k] = mgrid_lua_check_integer(L, -1);
    lua_pop(L, 1);
  }
  return site;
}

/* plan:resources([rank [, site]]) -> a table with machine_ranks and the fields of mgrid_resources */
static int plan_resources(lua_State *L) {
  const mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  int64_t rank = mgrid_lua_opt_rank(L, p, 2);
  mgrid_site site = mgrid_lua_check_site(L, 3);
  mgrid_resources r = MGRID_RESOURCES_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_lua_charge(L, 4096 * ((int64_t)p->content.nentries + 1));
  if (mgrid_plan_resources(p, rank, &site, &r, &e)) return mgrid_lua_raise_error(L, &e);
  lua_createtable(L, 0, 12);
  mgrid_lua_set_integer(L, "machine_ranks", site.machine_ranks);
  mgrid_lua_set_boolean(L, "sampled", r.sampled);
  for (const mgrid_resources_row *row = mgrid_resources_rows; row->name; row++)
    mgrid_lua_set_integer(L, row->name, *mgrid_resources_number(&r, row));
  return 1;
}

/* plan:sharing([site]) -> a list of { families, created, ring } */
static int plan_sharing(lua_State *L) {
  const mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  const mgrid_content *c = &p->content;
  mgrid_site site = mgrid_lua_check_site(L, 2);
  lua_Integer n = 0;

  mgrid_lua_charge(L, (int64_t)(c->nentries * c->nentries));
  lua_newtable(L);
  for (size_t i = 0; i < c->nentries; i++) {
    int k = mgrid_plan_sharer(p, (int)i, (int)i + 1);
    lua_Integer families = 1;
    if (k < 0) continue;
    lua_newtable(L);
    lua_pushstring(L, c->entry[i].name);
    lua_rawseti(L, -2, families++);
    for (; k >= 0; k = mgrid_plan_sharer(p, (int)i, k + 1)) {
      lua_pushstring(L, c->entry[k].name);
      lua_rawseti(L, -2, families++);
    }
    mgrid_demand more;
    mgrid_entry_demand(&c->entry[i], c->entry[i].family->max_size, 1, &site, &more);
    lua_createtable(L, 0, 3);
    lua_insert(L, -2);
    lua_setfield(L, -2, "families");
    mgrid_lua_set_integer(L, "created", more.created);
    mgrid_lua_set_integer(L, "ring", more.ring);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

const luaL_Reg mgrid_lua_plan_facts[] = { { "communicators", plan_communicators },
                                          { "leaders", plan_leaders },
                                          { "lines", plan_lines },
                                          { "idle", plan_idle },
                                          { "unheeded", plan_unheeded },
                                          { "resources", plan_resources },
                                          { "sharing", plan_sharing },
                                          { "diff", mgrid_lua_plan_diff },
                                          { NULL, NULL } };
