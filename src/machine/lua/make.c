/* SPDX-License-Identifier: MIT
**
** make.c - the machine of a table, as readers in Lua return it and machine/json.c writes it:
**   { levels = { { name, counts = { 2, 3 }, bandwidth, latency, domains = { "n0", false } }, ... },
**     crossings = { { name, of, share, in, bandwidth, latency }, ... }, ranks = { 8, 9 } }
** and besides: hosts, the domains of the level with the index `node` in the order of ranks, where it is not that of places;
** notes, lines; nccl, a topology that NCCL reads, too. lua/machine/json.lua checks tables that files hold.
*/
#include "machine/lua/read.h"

#include <string.h>

typedef struct making {
  lua_State           *L;
  mgrid_machine_file  *file;
  mgrid_machine_model *m;
  mgrid_error          why;
} making;

/* Raise what a function of machines refused. */
static void check(making *k) {
  if (!k->why.status) return;
  mgrid_error_reword(&k->why, "%s: %s", k->file->name, k->why.message);
  mgrid_error_pass(&k->file->why, &k->why);
  mgrid_lua_refused(k->L);
}

static const char *text(lua_State *L, const char *field) {
  lua_getfield(L, -1, field);
  const char *t = lua_tostring(L, -1);
  lua_pop(L, 1); /* the table keeps it */
  return t;
}

static double number(lua_State *L, const char *field) {
  lua_getfield(L, -1, field);
  double n = lua_tonumber(L, -1);
  lua_pop(L, 1);
  return n;
}

static mgrid_link link_of(lua_State *L) { return (mgrid_link){ number(L, "bandwidth"), number(L, "latency") }; }

/* Name the domains by the list on the top. */
static void name_domains(making *k) {
  const size_t tier = k->m->ntiers - 1;
  for (int64_t d = 0; d < k->m->tier[tier].domains; d++) {
    if (lua_rawgeti(k->L, -1, d + 1) == LUA_TSTRING)
      mgrid_machine_name_domain(k->m, tier, d, lua_tostring(k->L, -1), &k->why);
    lua_pop(k->L, 1);
    check(k);
  }
}

/* Add the level on the top. */
static void add_level(making *k) {
  const char      *name = text(k->L, "name");
  const mgrid_link link = link_of(k->L);
  size_t           n;
  lua_getfield(k->L, -1, "counts");
  int64_t *counts = mgrid_lua_check_integers(k->L, lua_gettop(k->L), &n);
  lua_pop(k->L, 1);
  mgrid_machine_add(k->m, name, n, counts, link, &k->why);
  mgrid_release(counts);
  check(k);
  if (lua_getfield(k->L, -1, "domains") == LUA_TTABLE) name_domains(k);
  lua_pop(k->L, 1);
}

static void add_crossing(making *k) {
  int64_t share = (int64_t)number(k->L, "share");
  mgrid_machine_add_crossing(k->m, text(k->L, "name"), text(k->L, "of"), share ? share : 1, text(k->L, "in"),
                             link_of(k->L), &k->why);
  check(k);
}

static void each(making *k, int table, const char *list, void (*add)(making *k)) {
  if (lua_getfield(k->L, table, list) == LUA_TTABLE)
    for (lua_Integer i = 1; lua_rawgeti(k->L, -1, i) == LUA_TTABLE; i++, lua_pop(k->L, 1)) add(k);
  lua_settop(k->L, table);
}

/* Give the places of the ranks: those listed, or those of the hosts listed. */
static void add_ranks(making *k, int table) {
  size_t  n = 0;
  int64_t node = -1, places = 0, r = 0;
  if (lua_getfield(k->L, table, "ranks") == LUA_TNIL && lua_getfield(k->L, table, "hosts") == LUA_TTABLE) {
    lua_getfield(k->L, table, "node");
    node = lua_tointeger(k->L, -1);
    lua_pop(k->L, 1);
  }
  int64_t *list = lua_istable(k->L, -1) ? mgrid_lua_check_integers(k->L, lua_gettop(k->L), &n) : NULL;
  lua_settop(k->L, table);
  if (!list) return;
  const mgrid_tier *tier = &k->m->tier[node < 0 ? 0 : node];
  for (size_t i = 0; i < n; i++)
    places += node < 0 ? 1 : mgrid_tier_start(tier, list[i] + 1) - mgrid_tier_start(tier, list[i]);
  int32_t *at = mgrid_allocate(NULL, NULL, 0, (size_t)(places + 1) * sizeof *at);
  if (!at) mgrid_oom(&k->why);
  for (size_t i = 0; i < n && at; i++) {
    const int64_t first = node < 0 ? list[i] : mgrid_tier_start(tier, list[i]);
    const int64_t last = node < 0 ? list[i] + 1 : mgrid_tier_start(tier, list[i] + 1);
    for (int64_t place = first; place < last; place++) at[r++] = (int32_t)place;
  }
  mgrid_release(list);
  if (at) mgrid_machine_set_ranks(k->m, places, at, &k->why);
  check(k);
}

static void add_notes(making *k, int table) {
  mgrid_text t = { 0 };
  if (lua_getfield(k->L, table, "notes") == LUA_TTABLE)
    for (lua_Integer i = 1; lua_rawgeti(k->L, -1, i) == LUA_TSTRING; i++, lua_pop(k->L, 1))
      mgrid_text_add(&t, "%s\n", lua_tostring(k->L, -1));
  lua_settop(k->L, table);
  if (t.failed || (t.len && !(k->m->notes = mgrid_strdup(t.data)))) mgrid_oom(&k->why);
  mgrid_text_free(&t);
  check(k);
}

void mgrid_lua_make_machine(lua_State *L, int i, const char *words, mgrid_machine_file *f) {
  making k = { L, f, f->made = mgrid_machine_alloc(&f->why), MGRID_ERROR_INIT };
  if (!k.m) mgrid_lua_refused(L);
  lua_pushvalue(L, i);
  i = lua_gettop(L);
  each(&k, i, "levels", add_level);
  if (lua_getfield(L, i, "crossings") == LUA_TTABLE) mgrid_machine_finish(k.m, &k.why);
  check(&k);
  each(&k, i, "crossings", add_crossing);
  add_notes(&k, i);
  mgrid_machine_more(k.m, words, &k.why);
  check(&k);
  if (!k.m->at) add_ranks(&k, i);
  lua_getfield(L, i, "nccl");
  k.m->topology = lua_toboolean(L, -1);
}
