/* SPDX-License-Identifier: MIT
**
** questions.c - what a Machine of Lua answers: its levels, where ranks are, itself as text and as JSON; presets.
*/
#include "machine/lua/words.h"

#include <inttypes.h>
#include <string.h>

static const mgrid_machine_model *check(lua_State *L) { return mgrid_lua_check_machine(L, 1); }

static void set_text(lua_State *L, const char *key, mgrid_text *t) {
  mgrid_lua_push_text(L, t);
  lua_setfield(L, -2, key);
}

/* A number below 0 is not known. */
static void set_known(lua_State *L, const char *key, int64_t value) {
  if (value >= 0) mgrid_lua_set_integer(L, key, value);
}

/* Return the rank at 2. */
static int64_t check_rank(lua_State *L, const mgrid_machine_model *m) {
  int64_t rank = mgrid_lua_check_integer(L, 2);
  int64_t most = m->at ? m->nranks : m->places; /* 0: as many as there are */
  if (rank < 0 || (most && rank >= most))
    mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "the machine has no rank %" PRId64, rank);
  return rank;
}

/* machine:where(rank) -> a list of { level, domain, text, link, crossing }, the domain of each level that has the rank */
static int where(lua_State *L) {
  const mgrid_machine_model *m = check(L);
  int64_t                    rank = check_rank(L, m);
  lua_newtable(L);
  for (size_t l = 0; l < mgrid_machine_nlevels(m); l++) {
    int64_t    domain = mgrid_place_domain(m, l, mgrid_machine_at(m, rank));
    mgrid_text name = { 0 }, link = { 0 };
    lua_createtable(L, 0, 5);
    mgrid_lua_set_string(L, "level", mgrid_level_name(m, l));
    set_known(L, "domain", domain);
    mgrid_lua_set_boolean(L, "crossing", l >= m->ntiers);
    mgrid_domain_text(m, l, domain, &name);
    set_text(L, "text", &name);
    if (l < m->ntiers) mgrid_link_text(m->tier[l].link, &link);
    set_text(L, "link", &link);
    lua_rawseti(L, -2, (lua_Integer)l + 1);
  }
  return 1;
}

/* machine:seat(rank) -> place, host, slot in the host, name of the host */
static int seat(lua_State *L) {
  const mgrid_machine_model *m = check(L);
  size_t                     node = mgrid_node_level(m);
  int64_t                    place = mgrid_machine_at(m, check_rank(L, m));
  int64_t                    host = mgrid_tier_domain(&m->tier[node], place);
  lua_pushinteger(L, place);
  lua_pushinteger(L, host);
  lua_pushinteger(L, place - mgrid_tier_start(&m->tier[node], host));
  lua_pushstring(L, mgrid_machine_domain_name(m, node, host)); /* nil: NULL */
  return 4;
}

/* machine:domain_name(level, domain) -> its name, nil if it has none */
static int domain_name(lua_State *L) {
  const mgrid_machine_model *m = check(L);
  const char                *name = luaL_checkstring(L, 2);
  int64_t                    level = mgrid_machine_find(m, name);
  if (level < 0) return mgrid_lua_unknown_level(L, m, name);
  lua_pushstring(L, mgrid_machine_domain_name(m, (size_t)level, mgrid_lua_check_integer(L, 3)));
  return 1;
}

/* machine:nvlink_level() -> its name; the ranks of each domain, nil if these differ or do not follow each other */
static int nvlink_level(lua_State *L) {
  const mgrid_machine_model *m = check(L);
  const mgrid_tier          *t = &m->tier[mgrid_nvlink_level(m)];
  lua_pushstring(L, t->name);
  if (t->each && !m->at)
    lua_pushinteger(L, t->each);
  else
    lua_pushnil(L);
  return 2;
}

/* machine:nccl_topology() -> the file that it was read from, if that is one of NCCL, too */
static int nccl_topology(lua_State *L) {
  const mgrid_machine_model *m = check(L);
  return lua_pushstring(L, m->topology ? m->source : NULL), 1;
}

/* machine:levels() -> a list of { name, crossing, domains, places, regular, link, bandwidth, latency } */
static int levels(lua_State *L) {
  const mgrid_machine_model *m = check(L);
  lua_newtable(L);
  for (size_t i = 0; i < mgrid_machine_nlevels(m); i++) {
    mgrid_machine_level l = MGRID_MACHINE_LEVEL_INIT;
    mgrid_text          link = { 0 };
    mgrid_machine_describe_level(m, i, &l, NULL);
    lua_createtable(L, 0, 8);
    mgrid_lua_set_string(L, "name", l.name);
    mgrid_lua_set_boolean(L, "crossing", l.crosses);
    mgrid_lua_set_boolean(L, "regular", l.regular);
    set_known(L, "domains", l.domains);
    set_known(L, "places", l.most);
    mgrid_link_text((mgrid_link){ l.bandwidth, l.latency }, &link);
    set_text(L, "link", &link);
    mgrid_lua_set_number(L, "bandwidth", l.bandwidth);
    mgrid_lua_set_number(L, "latency", l.latency);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* machine:fits(world): raise unless it has a place for every rank */
static int fits(lua_State *L) {
  mgrid_error e = MGRID_ERROR_INIT;
  return mgrid_machine_fits(check(L), mgrid_lua_check_integer(L, 2), &e) ? mgrid_lua_raise_error(L, &e) : 0;
}

/* machine:node_size() -> ranks of a node */
static int node_size(lua_State *L) {
  const mgrid_machine_model *m = check(L);
  return lua_pushinteger(L, m->tier[mgrid_node_level(m)].most), 1;
}

/* machine:family(level, world) -> Family: machine.node for any world */
static int family(lua_State *L) {
  const char *level = luaL_checkstring(L, 2);
  int64_t     world = mgrid_lua_check_integer(L, 3);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_lua_charge(L, 16 * world);
  mgrid_lua_family *f = mgrid_lua_new_family(L, NULL);
  f->f = mgrid_machine_family(check(L), level, world, &e);
  return mgrid_lua_made_family(L, f, &e);
}

/* machine:domains(level, world) -> a list of the domains of the ranks 0 to world - 1 */
static int domains(lua_State *L) {
  const mgrid_machine_model *m = check(L);
  const char                *name = luaL_checkstring(L, 2);
  int64_t                    world = mgrid_lua_check_integer(L, 3), level = mgrid_machine_find(m, name);
  mgrid_error                e = MGRID_ERROR_INIT;
  if (level < 0) return mgrid_lua_unknown_level(L, m, name);
  if (world < 1) return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "a world has 1 rank or more, not %" PRId64, world);
  if (mgrid_machine_fits(m, world, &e)) return mgrid_lua_raise_error(L, &e);
  mgrid_lua_charge(L, 16 * world);
  mgrid_lua_reserve(L, world, 16);
  MGRID_LUA_LIST(L, world, lua_pushinteger(L, mgrid_machine_domain(m, (size_t)level, (int64_t)i)));
  return 1;
}

/* machine:counts(family, level) -> { inside, crossing, edges, touched, members } */
static int counts(lua_State *L) {
  const mgrid_machine_model *m = check(L);
  const mgrid_family        *f = mgrid_lua_check_family(L, 2)->f;
  mgrid_machine_counts       c = MGRID_MACHINE_COUNTS_INIT;
  mgrid_error                e = MGRID_ERROR_INIT;
  mgrid_lua_charge(L, f->rule ? 256 : 4 * f->total);
  if (mgrid_machine_count(m, f, luaL_checkstring(L, 3), &c, &e)) return mgrid_lua_raise_error(L, &e);
  lua_createtable(L, 0, 5);
  set_known(L, "inside", c.inside);
  set_known(L, "crossing", c.crossing);
  set_known(L, "edges", c.edges);
  set_known(L, "touched", c.touched);
  mgrid_lua_set_number(L, "members", c.touched ? (double)f->total / (double)c.touched : 0);
  return 1;
}

/* machine:text() -> its text, from which open_machine makes it again, without names of domains */
static int text(lua_State *L) {
  mgrid_text t = { 0 };
  mgrid_machine_text(check(L), &t);
  mgrid_lua_push_text(L, &t);
  return 1;
}

/* machine:json() -> its text as JSON, with names of domains: a file for open_machine */
static int json(lua_State *L) {
  mgrid_text  t = { 0 };
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_machine_print_json(check(L), mgrid_text_sink, &t, &e)) {
    mgrid_text_free(&t);
    return mgrid_lua_oom(L); /* nothing else can fail: its names are UTF-8 */
  }
  mgrid_lua_push_text(L, &t);
  return 1;
}

/* machine:notes() -> lines about what the reader of its file left out */
static int notes(lua_State *L) {
  const mgrid_machine_model *m = check(L);
  mgrid_lua_push_lines(L, m->notes ? m->notes : "");
  return 1;
}

const luaL_Reg mgrid_lua_machine_questions[] = { { "where", where },
                                                 { "levels", levels },
                                                 { "fits", fits },
                                                 { "node_size", node_size },
                                                 { "family", family },
                                                 { "text", text },
                                                 { "json", json },
                                                 { "notes", notes },
                                                 { "domains", domains },
                                                 { "counts", counts },
                                                 { "meets", mgrid_lua_machine_meets },
                                                 { "seat", seat },
                                                 { "domain_name", domain_name },
                                                 { "nvlink_level", nvlink_level },
                                                 { "nccl_topology", nccl_topology },
                                                 { "cost", mgrid_lua_machine_cost },
                                                 { "leaving", mgrid_lua_machine_leaving },
                                                 { "assignable", mgrid_lua_machine_assignable },
                                                 { "assign", mgrid_lua_machine_assign },
                                                 { NULL, NULL } };

/* moongrid.presets() -> a list of { name, text, source } */
int mgrid_lua_machine_presets(lua_State *L) {
  const char *name, *words, *source;
  lua_newtable(L);
  for (size_t i = 0; mgrid_machine_preset(i, &name, &words, &source); i++) {
    lua_createtable(L, 0, 3);
    mgrid_lua_set_string(L, "name", name);
    mgrid_lua_set_string(L, "text", words);
    mgrid_lua_set_string(L, "source", source);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}
