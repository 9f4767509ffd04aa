/* SPDX-License-Identifier: MIT
**
** machine_words.c - `machine` in recipes, whose fields (machine.node) are families; the laws
** within, aligned and spread about these families; and the methods of Machine. `machine` is one
** object for all plans of a Lua state; it stands for the machine of the plan that is being made.
** mgrid_lua_machine_begin puts that Machine into the registry, mgrid_lua_machine_end removes it.
** The call machine("node:4 gpu:8") makes another Machine.
*/
#include "machine/lua/machine_words.h"
#include "machine/readers.h"
#include "machine/traffic.h"
#include "moongrid_lua.h"
#include "recipe/budget.h"
#include "recipe/entry.h"

#include <inttypes.h>
#include <string.h>

/* ==================================================== what a Machine answers */

/* Methods for levels, ranks, text, JSON and presets. */

static const mgrid_machine_model *machine_words_check(lua_State *L) {
  return mgrid_lua_check_machine(L, 1);
}

static void set_text(lua_State *L, const char *key, mgrid_text *t) {
  mgrid_lua_push_text(L, t);
  lua_setfield(L, -2, key);
}

/* Set a field of the table on the top. A value below 0 is not known, and the field is left out. */
static void set_known(lua_State *L, const char *key, int64_t value) {
  if (value >= 0) mgrid_lua_set_integer(L, key, value);
}

/* Return the rank that is argument 2. */
static int64_t check_rank(lua_State *L, const mgrid_machine_model *m) {
  int64_t rank = mgrid_lua_check_integer(L, 2);
  int64_t most = m->at ? m->nranks : m->places; /* 0: the machine has any number of places */
  if (rank < 0 || (most && rank >= most))
    mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "the machine has no rank %" PRId64, rank);
  return rank;
}

/* machine:where(rank) -> a list of { level, domain, text, link, crossing }: the rank's domain in
** each level */
static int where(lua_State *L) {
  const mgrid_machine_model *m = machine_words_check(L);
  int64_t rank = check_rank(L, m);
  lua_newtable(L);
  for (size_t l = 0; l < mgrid_machine_nlevels(m); l++) {
    int64_t domain = mgrid_place_domain(m, l, mgrid_machine_at(m, rank));
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

/* machine:seat(rank) -> place, node, slot in the node, name of the node */
static int seat(lua_State *L) {
  const mgrid_machine_model *m = machine_words_check(L);
  size_t node = mgrid_node_level(m);
  int64_t place = mgrid_machine_at(m, check_rank(L, m));
  int64_t host = mgrid_tier_domain(&m->tier[node], place);
  lua_pushinteger(L, place);
  lua_pushinteger(L, host);
  lua_pushinteger(L, place - mgrid_tier_start(&m->tier[node], host));
  lua_pushstring(L, mgrid_machine_domain_name(m, node, host)); /* NULL pushes nil */
  return 4;
}

/* machine:domain_name(level, domain) -> the name of the domain, nil if it has none */
static int domain_name(lua_State *L) {
  const mgrid_machine_model *m = machine_words_check(L);
  const char *name = luaL_checkstring(L, 2);
  int64_t level = mgrid_machine_find(m, name);
  if (level < 0) return mgrid_lua_unknown_level(L, m, name);
  lua_pushstring(L, mgrid_machine_domain_name(m, (size_t)level, mgrid_lua_check_integer(L, 3)));
  return 1;
}

/* machine:nvlink_level() -> the name of the level, and the number of ranks in each of its domains;
** nil if the numbers differ or the ranks of a domain are not consecutive */
static int nvlink_level(lua_State *L) {
  const mgrid_machine_model *m = machine_words_check(L);
  const mgrid_tier *t = &m->tier[mgrid_nvlink_level(m)];
  lua_pushstring(L, t->name);
  if (t->each && !m->at)
    lua_pushinteger(L, t->each);
  else
    lua_pushnil(L);
  return 2;
}

/* machine:nccl_topology() -> the file that made the machine if it is an NCCL topology, else nil */
static int nccl_topology(lua_State *L) {
  const mgrid_machine_model *m = machine_words_check(L);
  return lua_pushstring(L, m->topology ? m->source : NULL), 1;
}

/* machine:levels() -> a list of { name, crossing, domains, places, regular, link, bandwidth,
** latency } */
static int levels(lua_State *L) {
  const mgrid_machine_model *m = machine_words_check(L);
  lua_newtable(L);
  for (size_t i = 0; i < mgrid_machine_nlevels(m); i++) {
    mgrid_machine_level l = MGRID_MACHINE_LEVEL_INIT;
    mgrid_text link = { 0 };
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

/* machine:fits(world): raise if the machine has not enough places for the ranks */
static int machine_words_fits(lua_State *L) {
  mgrid_error e = MGRID_ERROR_INIT;
  return mgrid_machine_fits(machine_words_check(L), mgrid_lua_check_integer(L, 2), &e)
             ? mgrid_lua_raise_error(L, &e)
             : 0;
}

/* machine:node_size() -> the places of the largest node */
static int node_size(lua_State *L) {
  const mgrid_machine_model *m = machine_words_check(L);
  return lua_pushinteger(L, m->tier[mgrid_node_level(m)].most), 1;
}

/* machine:family(level, world) -> Family: as machine.node in a recipe, but for any world */
static int family(lua_State *L) {
  const char *level = luaL_checkstring(L, 2);
  int64_t world = mgrid_lua_check_integer(L, 3);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_lua_charge(L, 16 * world);
  mgrid_lua_family *f = mgrid_lua_new_family(L, NULL);
  f->f = mgrid_machine_family(machine_words_check(L), level, world, &e);
  return mgrid_lua_made_family(L, f, &e);
}

/* machine:domains(level, world) -> a list of the domains of the ranks 0 to world - 1 */
static int machine_words_domains(lua_State *L) {
  const mgrid_machine_model *m = machine_words_check(L);
  const char *name = luaL_checkstring(L, 2);
  int64_t world = mgrid_lua_check_integer(L, 3), level = mgrid_machine_find(m, name);
  mgrid_error e = MGRID_ERROR_INIT;
  if (level < 0) return mgrid_lua_unknown_level(L, m, name);
  if (world < 1)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "a world has 1 rank or more, not %" PRId64,
                              world);
  if (mgrid_machine_fits(m, world, &e)) return mgrid_lua_raise_error(L, &e);
  mgrid_lua_charge(L, 16 * world);
  mgrid_lua_reserve(L, world, 16);
  MGRID_LUA_LIST(L, world, lua_pushinteger(L, mgrid_machine_domain(m, (size_t)level, (int64_t)i)));
  return 1;
}

/* machine:counts(family, level) -> { inside, crossing, edges, touched, members } */
static int machine_words_counts(lua_State *L) {
  const mgrid_machine_model *m = machine_words_check(L);
  const mgrid_family *f = mgrid_lua_check_family(L, 2)->f;
  mgrid_machine_counts c = MGRID_MACHINE_COUNTS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_lua_charge(L, f->rule ? 256 : 4 * f->total);
  if (mgrid_machine_count(m, f, luaL_checkstring(L, 3), &c, &e))
    return mgrid_lua_raise_error(L, &e);
  lua_createtable(L, 0, 5);
  set_known(L, "inside", c.inside);
  set_known(L, "crossing", c.crossing);
  set_known(L, "edges", c.edges);
  set_known(L, "touched", c.touched);
  mgrid_lua_set_number(L, "members", c.touched ? (double)f->total / (double)c.touched : 0);
  return 1;
}

/* machine:text() -> the machine's text, without names of domains, as open_machine takes it */
static int machine_text(lua_State *L) {
  mgrid_text t = { 0 };
  mgrid_machine_text(machine_words_check(L), &t);
  mgrid_lua_push_text(L, &t);
  return 1;
}

/* machine:json() -> the machine's JSON, with names of domains; open_machine reads it from a file */
static int machine_words_json(lua_State *L) {
  mgrid_text t = { 0 };
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_machine_print_json(machine_words_check(L), mgrid_text_sink, &t, &e)) {
    mgrid_text_free(&t);
    return mgrid_lua_oom(L); /* nothing else can fail, because all names are UTF-8 */
  }
  mgrid_lua_push_text(L, &t);
  return 1;
}

/* machine:notes() -> lines about what the reader of the file left out */
static int machine_words_notes(lua_State *L) {
  const mgrid_machine_model *m = machine_words_check(L);
  mgrid_lua_push_lines(L, m->notes ? m->notes : "");
  return 1;
}

static const luaL_Reg questions[] = { { "where", where },
                                      { "levels", levels },
                                      { "fits", machine_words_fits },
                                      { "node_size", node_size },
                                      { "family", family },
                                      { "text", machine_text },
                                      { "json", machine_words_json },
                                      { "notes", machine_words_notes },
                                      { "domains", machine_words_domains },
                                      { "counts", machine_words_counts },
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
static int machine_presets(lua_State *L) {
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

/* ========================================================== words of recipes */

typedef struct machine_box {
  mgrid_machine_model *model; /* NULL: the machine of the plan, which is in the registry */
  int64_t world;
  bool current; /* the Machine stands for the machine of the plan */
  bool read;    /* the recipe has read the Machine */
} machine_box;

/* Keys of the registry. current: the Machine of the plan that is being made, or the plan's world if
** it has no machine. marks: a table from the families of machines to their Machine. laws: a list of
** { law, Family, level }, the laws that held. traffic: the field `traffic` of the recipe. */
static const char current_key = 'c', marks_key = 'm', laws_key = 'l', traffic_key = 't';

static void free_machine(void *box) { mgrid_machine_free(((machine_box *)box)->model); }

static machine_box *new_machine(lua_State *L) {
  machine_box *box = mgrid_lua_new_box(L, sizeof *box, 1, MGRID_LUA_MACHINE, free_machine);
  lua_newtable(L); /* by level: the families that were made before */
  lua_setiuservalue(L, -2, 1);
  return box;
}

/* Return the Machine at i. If it stands for the machine of the plan, replace it on the stack by
** that machine, and note that the recipe has read it. */
static machine_box *machine_at(lua_State *L, int i) {
  machine_box *box = mgrid_lua_check_box(L, i, MGRID_LUA_MACHINE);
  if (!box->current) return box;
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &current_key) != LUA_TUSERDATA)
    mgrid_lua_raise_as(L, MGRID_REFUSED,
                       "there is no machine: --machine FILE, TEXT or PRESET gives one, or machine "
                       "= \"dgx-h100\" in the recipe, or machine(\"node:4 gpu:8\", world)");
  lua_replace(L, i);
  box = mgrid_lua_check_box(L, i, MGRID_LUA_MACHINE);
  box->read = true;
  return box;
}

const mgrid_machine_model *mgrid_lua_check_machine(lua_State *L, int i) {
  return machine_at(L, i)->model;
}

mgrid_machine_model **mgrid_lua_new_machine(lua_State *L) { return &new_machine(L)->model; }

/* Make the machine from its text, or raise the error. */
static MGRID_APART void machine_words_parse(lua_State *L, machine_box *box, const char *text,
                                            const char *where) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_lua_charge(L, (int64_t)strlen(text));
  mgrid_budget *budget = mgrid_lua_work(L);
  if (strlen(text) > MGRID_MACHINE_TEXT)
    mgrid_machine_parse(text, &e); /* fails with the error about the length */
  else
    box->model = mgrid_machine_words(text, "machine", budget, &e);
  mgrid_lua_charge(L, 0);
  if (box->model) {
    mgrid_lua_weigh(L, box, sizeof *box + mgrid_machine_held(box->model));
    return;
  }
  mgrid_lua_note(L, e.status, e.message);
  if (!where) mgrid_lua_raise_error(L, &e);
  lua_pushfstring(L, "%s%s%s", where, e.message,
                  e.status == MGRID_UNKNOWN_NAME && (strchr(text, '/') || strchr(text, '.'))
                      ? "; a recipe reads no files: --machine FILE does"
                      : "");
  lua_error(L);
}

/* ------------------------------------------------------------------ families */

/* Charge for lists of ranks, if the machine or its domains are not described by modes. */
static void charge(lua_State *L, const machine_box *box, size_t level) {
  const mgrid_machine_model *m = box->model;
  if (level < m->ntiers && m->tier[level].each && !m->at) return;
  mgrid_lua_charge(L, 16 * box->world);
  mgrid_lua_reserve(L, box->world, 24);
}

static MGRID_APART int machine_words_push_family(lua_State *L, const machine_box *box,
                                                 int64_t level, const char *name) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_lua_family *f = mgrid_lua_new_family(L, NULL);
  charge(L, box, (size_t)level);
  f->f = mgrid_machine_family(box->model, name, box->world, &e);
  return mgrid_lua_made_family(L, f, &e);
}

/* machine.has(level), machine.node -> Family */
static int machine_has(lua_State *L) {
  const machine_box *box = machine_at(L, 1);
  lua_pushboolean(L, mgrid_machine_find(box->model, luaL_checkstring(L, 2)) >= 0);
  return 1;
}

int mgrid_lua_unknown_level(lua_State *L, const mgrid_machine_model *m, const char *name) {
  const char *known[2 * MGRID_LEVELS_MAX];
  size_t n = mgrid_machine_nlevels(m);
  for (size_t i = 0; i < n; i++) known[i] = mgrid_level_name(m, i);
  return mgrid_lua_unknown(L, "level of the machine", name, known, n);
}

static int machine_index(lua_State *L) {
  if (lua_type(L, 2) == LUA_TNUMBER) return mgrid_lua_no_list(L, MGRID_LUA_MACHINE);
  const char *name = luaL_checkstring(L, 2);
  machine_box *box = machine_at(L, 1);
  int64_t level = mgrid_machine_find(box->model, name);

  const luaL_Reg *method = questions;
  while (method->name && strcmp(name, method->name) != 0) method++;
  if (level < 0 && (method->name || strcmp(name, "has") == 0)) {
    lua_pushcfunction(L, method->name ? method->func : machine_has);
    return 1;
  }
  if (level < 0) return mgrid_lua_unknown_level(L, box->model, name);

  lua_getiuservalue(L, 1, 1);
  if (lua_getfield(L, -1, name) == LUA_TUSERDATA) return 1;
  lua_pop(L, 1);

  machine_words_push_family(L, box, level, name);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &marks_key);
  lua_pushvalue(L, -2);
  lua_pushvalue(L, 1); /* the Machine; the table by level says which level the family is */
  lua_rawset(L, -3);
  lua_pop(L, 1);
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, name);
  return 1;
}

/* machine("node:4 gpu:8" [, world]) -> Machine */
static int machine_call(lua_State *L) {
  const char *text = luaL_checkstring(L, 2);
  int64_t world = 0;
  if (lua_isnoneornil(L, 3) && lua_rawgetp(L, LUA_REGISTRYINDEX, &current_key) == LUA_TNUMBER)
    world = lua_tointeger(L, -1);
  else if (lua_isnoneornil(L, 3) && lua_type(L, -1) == LUA_TUSERDATA)
    world = ((machine_box *)mgrid_lua_check_box(L, -1, MGRID_LUA_MACHINE))->world;
  else
    world = mgrid_lua_check_world(L, 3)->window.world;
  machine_box *box = new_machine(L);
  box->world = world;
  machine_words_parse(L, box, text, NULL);
  mgrid_error e = MGRID_ERROR_INIT;
  return mgrid_machine_fits(box->model, world, &e) ? mgrid_lua_raise_error(L, &e) : 1;
}

static int machine_tostring(lua_State *L) {
  machine_box *box = mgrid_lua_check_box(L, 1, MGRID_LUA_MACHINE);
  mgrid_text t = { 0 };
  if (box->current) return lua_pushliteral(L, "the machine"), 1;
  mgrid_text_str(&t, "Machine ");
  mgrid_machine_text(box->model, &t);
  mgrid_lua_push_text(L, &t);
  return 1;
}

/* ---------------------------------------------------------------------- laws */

/* If the Family at i is a level of some Machine, push the name of the level and return the Machine.
** Else push nothing and return NULL. */
static machine_box *machine_words_level_of(lua_State *L, int i) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &marks_key);
  lua_pushvalue(L, i);
  if (lua_rawget(L, -2) != LUA_TUSERDATA) return lua_pop(L, 2), NULL;
  machine_box *box = mgrid_lua_check_box(L, -1, MGRID_LUA_MACHINE);
  lua_getiuservalue(L, -1, 1);
  for (size_t k = 0; k < mgrid_machine_nlevels(box->model); k++) {
    lua_getfield(L, -1, mgrid_level_name(box->model, k));
    bool same = lua_rawequal(L, -1, i);
    lua_pop(L, 1);
    if (!same) continue;
    lua_pop(L, 3);
    lua_pushstring(L, mgrid_level_name(box->model, k));
    return box;
  }
  return lua_pop(L, 3), NULL;
}

static MGRID_APART void hold(lua_State *L, const mgrid_machine_law *law, const machine_box *box,
                             const mgrid_family *f, const char *level) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_lua_charge(L, f->rule ? 256 : 4 * f->total);
  if (f->world != box->world)
    mgrid_lua_raise(L, "%s: the family is of a world of %" PRId64 " ranks, the machine of %" PRId64,
                    law->name, f->world, box->world);
  if (!mgrid_machine_hold(law, box->model, f, "the family", level, &e)) return;
  mgrid_lua_raise_as(L, e.status, "%s(a, machine.%s): %s", law->name, level, e.message);
}

/* law(a, machine.node): raise with the first group that breaks the law, or note that it held.
** Upvalues: the name of the law; the law of this name for other families, or nil. */
static int check_law(lua_State *L) {
  const char *name = lua_tostring(L, lua_upvalueindex(1));
  const mgrid_machine_law *law = mgrid_machine_law_named(name);
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1);

  mgrid_lua_check_family(L, 2);
  lua_settop(L, 2);
  const machine_box *box = machine_words_level_of(L, 2);
  if (!box && lua_isnil(L, lua_upvalueindex(2)))
    return mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                              "%s(a, b): b is a family of a machine, as machine.rack", name);
  if (!box) {
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_insert(L, 1);
    lua_call(L, 2, 0);
    return 0;
  }
  hold(L, law, box, f->f, lua_tostring(L, 3));
  bool plans = lua_rawgetp(L, LUA_REGISTRYINDEX, &current_key) == LUA_TUSERDATA
               && mgrid_lua_in_box(lua_touserdata(L, -1)) == box;
  if (!plans || lua_rawgetp(L, LUA_REGISTRYINDEX, &laws_key) != LUA_TTABLE) return 0;
  lua_createtable(L, 3, 0);
  for (int i = 1; i <= 3; i++) {
    if (i == 1) lua_pushstring(L, name);
    if (i > 1) lua_pushvalue(L, i == 2 ? 1 : 3);
    lua_rawseti(L, -2, i);
  }
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  return 0;
}

/* -------------------------------------------------------------- a plan's machine */

static void set_registry(lua_State *L, const char *key) { lua_rawsetp(L, LUA_REGISTRYINDEX, key); }

void mgrid_lua_machine_begin(lua_State *L, int64_t world, int values, const char *where) {
  mgrid_machine_item *lent = mgrid_lua_lent(L, &mgrid_machine_kind);
  mgrid_error e = MGRID_ERROR_INIT;

  lua_pushinteger(L, world); /* for machine(text), if the plan has no machine */
  set_registry(L, &current_key);
  lua_newtable(L);
  set_registry(L, &laws_key);
  lua_newtable(L);
  set_registry(L, &marks_key);
  lua_getfield(L, values, "traffic");
  set_registry(L, &traffic_key);
  int type = lua_getfield(L, values, "machine");
  if (!lent && type != LUA_TSTRING) {
    lua_pop(L, 1);
    return;
  }
  const char *text = lua_tostring(L, -1);
  machine_box *box = new_machine(L);
  if (lent)
    box->model = mgrid_machine_ref(lent->model);
  else
    machine_words_parse(L, box, text, where);
  box->world = world;
  if (mgrid_machine_fits(box->model, world, &e)) {
    mgrid_lua_note(L, e.status, e.message);
    lua_pushfstring(L, "%s%s", where, e.message);
    lua_error(L);
  }
  set_registry(L, &current_key);
  lua_pop(L, 1);
}

const mgrid_machine_model *mgrid_lua_read_machine(lua_State *L) {
  const mgrid_machine_model *m = NULL;
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &current_key) == LUA_TUSERDATA) {
    machine_box *box = mgrid_lua_check_box(L, -1, MGRID_LUA_MACHINE);
    box->read = true;
    m = box->model;
  }
  lua_pop(L, 1);
  return m;
}

/* Return the name of a family in the topology; NULL: none. */
static const char *machine_words_name_of(const mgrid_content *c, const mgrid_family *f) {
  for (size_t i = 0; i < c->nentries; i++)
    if (c->entry[i].family == f) return c->entry[i].name;
  return NULL;
}

/* Append the laws that held, each once, for families that are in the topology. */
static void list_laws(lua_State *L, const mgrid_content *c, mgrid_text *out) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &laws_key);
  for (lua_Integer i = 1; lua_rawgeti(L, -1, i) == LUA_TTABLE; i++, lua_pop(L, 1)) {
    char line[160];
    lua_rawgeti(L, -1, 1);
    lua_rawgeti(L, -2, 2);
    lua_rawgeti(L, -3, 3);
    const char *family = machine_words_name_of(c, mgrid_lua_check_family(L, -2)->f);
    snprintf(line, sizeof line, "%s(%s, machine.%s)\n", lua_tostring(L, -3), family ? family : "",
             lua_tostring(L, -1));
    if (family && !strstr(mgrid_text_chars(out), line)) mgrid_text_str(out, line);
    lua_pop(L, 3);
  }
  lua_pop(L, 2);
}

static MGRID_APART void machine_words_put_item(lua_State *L, int topology, const machine_box *box) {
  mgrid_topology *t = mgrid_lua_check_topology(L, topology);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_machine_item *item = mgrid_machine_item_new(box->model, box->world, &e);
  if (item) list_laws(L, &t->content, &item->laws);
  if (item && item->laws.failed) mgrid_oom(&e);
  if (item) item->unread = !box->read;
  mgrid_status s =
      e.status ? e.status
               : mgrid_topology_put_item(t, MGRID_MACHINE_NAME, &mgrid_machine_kind, item, &e);
  if (item) mgrid_machine_kind.free(item);
  if (s) mgrid_lua_raise_error(L, &e);
}

/* Read the field traffic = { tp = "2 GiB all_reduce x 96" }; the keys are on the top of the stack.
** Nothing here raises, so the traffic can be freed. */
static MGRID_APART mgrid_status machine_words_read_traffic(lua_State *L, int table,
                                                           const mgrid_content *c, mgrid_traffic *t,
                                                           mgrid_error *e) {
  lua_Integer k = 0;
  for (int keys = lua_gettop(L); !e->status && mgrid_lua_step(L, table, keys, &k); lua_pop(L, 2)) {
    if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
      return mgrid_fail(e, MGRID_BAD_VALUE,
                        "traffic has texts by family, tp = \"2 GiB all_reduce x 96\"");
    const char *family = lua_tostring(L, -2);
    if (mgrid_content_require(c, "traffic: ", family, e) < 0) return e->status;
    mgrid_traffic_add(t, family, lua_tostring(L, -1), e);
  }
  return e->status;
}

static MGRID_APART void put_traffic(lua_State *L, int topology, int table, const char *where) {
  mgrid_topology *t = mgrid_lua_check_topology(L, topology);
  mgrid_error e = MGRID_ERROR_INIT;
  int top = lua_gettop(L);
  mgrid_lua_keys(L, table); /* this may raise, so it comes before the traffic is made */
  mgrid_traffic *traffic = mgrid_traffic_new(t->content.world, &e);
  if (traffic && !machine_words_read_traffic(L, table, &t->content, traffic, &e))
    mgrid_topology_put_item(t, MGRID_TRAFFIC_NAME, &mgrid_traffic_kind, traffic, &e);
  mgrid_traffic_free(traffic);
  lua_settop(L, top);
  if (!e.status) return;
  mgrid_lua_note(L, e.status, e.message);
  lua_pushfstring(L, "%s%s", where, e.message);
  lua_error(L);
}

void mgrid_lua_machine_end(lua_State *L, int topology, const char *where) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &traffic_key) == LUA_TTABLE)
    put_traffic(L, topology, lua_gettop(L), where);
  lua_pop(L, 1);
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &current_key) == LUA_TUSERDATA) {
    const machine_box *box = mgrid_lua_check_box(L, -1, MGRID_LUA_MACHINE);
    machine_words_put_item(L, topology, box);
  }
  lua_pop(L, 1);
  static const char *const keys[] = { &current_key, &laws_key };
  for (int i = 0; i < 2; i++) {
    lua_pushnil(L);
    set_registry(L, keys[i]);
  }
}

/* plan.machine -> the text of the machine for which the plan was made; "" if there was none */
int mgrid_lua_plan_machine(lua_State *L) {
  const mgrid_machine_model *m = mgrid_plan_machine(mgrid_lua_check_plan(L, 1));
  mgrid_text t = { 0 };
  if (m) mgrid_machine_text(m, &t);
  mgrid_lua_push_text(L, &t);
  return 1;
}

/* plan.traffic -> what the recipe says that the families send, or false */
int mgrid_lua_plan_traffic(lua_State *L) {
  const mgrid_traffic *own = mgrid_plan_traffic(mgrid_lua_check_plan(L, 1));
  mgrid_text t = { 0 };
  if (!own) return lua_pushboolean(L, false), 1;
  mgrid_traffic_kind.text(own, &t);
  mgrid_lua_push_text(L, &t);
  return 1;
}

/* plan.laws -> the laws about the machine that held, a list of "within(tp, machine.node)"; false if
** build did not read the machine */
int mgrid_lua_plan_laws(lua_State *L) {
  const mgrid_machine_item *item = mgrid_content_machine(&mgrid_lua_check_plan(L, 1)->content);
  if (!item || item->unread) return lua_pushboolean(L, false), 1;
  mgrid_lua_push_lines(L, mgrid_text_chars(&item->laws));
  return 1;
}

mgrid_status mgrid_lua_machine_law(lua_State *L, int about, const mgrid_plan *p, const char *law,
                                   bool *mine, mgrid_error *err) {
  if (!(*mine = mgrid_machine_is_law(law))) return MGRID_OK;
  const mgrid_machine_model *m = lua_isnil(L, about) ? mgrid_plan_machine(p)
                                                     : mgrid_lua_check_machine(L, about);
  return mgrid_machine_check_law(m, p, law, err);
}

/* ----------------------------------------------------------- for hosts alone */

/* moongrid.open_machine(text, preset or file) -> Machine */
static int open_machine(lua_State *L) {
  const char *source = luaL_checkstring(L, 1);
  machine_box *box = new_machine(L);
  mgrid_error e = MGRID_ERROR_INIT;
  box->model = mgrid_machine_open_by(&mgrid_lua_entry, source, &e);
  return box->model ? 1 : mgrid_lua_raise_error(L, &e);
}

/* recipe:on(machine): make plans for this machine, as --machine does; nil: for no machine */
int mgrid_lua_recipe_on(lua_State *L) {
  luaL_checkudata(L, 1, MGRID_LUA_RECIPE);
  luaL_checkany(L, 2);
  const mgrid_machine_model *m = lua_isnil(L, 2) ? NULL : machine_at(L, 2)->model;
  mgrid_error e = MGRID_ERROR_INIT;
  return mgrid_runtime_machine(mgrid_lua_to(L, 1, "Recipe"), m, &e) ? mgrid_lua_raise_error(L, &e)
                                                                    : 0;
}

void mgrid_lua_open_machine_host(lua_State *L) {
  lua_pushcfunction(L, open_machine);
  lua_setfield(L, -2, "open_machine");
  lua_pushcfunction(L, machine_presets);
  lua_setfield(L, -2, "presets");
}

/* ------------------------------------------------------------------- opening */

static const luaL_Reg machine_meta[] = { { "__index", machine_index },
                                         { "__call", machine_call },
                                         { "__tostring", machine_tostring },
                                         { "__gc", mgrid_lua_free_box },
                                         { NULL, NULL } };
static const mgrid_lua_class machine_class = { MGRID_LUA_MACHINE, NULL, NULL, NULL, machine_meta };

void mgrid_lua_open_machine(lua_State *L) {
  static const char *const laws[] = { "within", "aligned", "spread" };
  mgrid_lua_open_class(L, &machine_class);
  lua_newtable(L);
  set_registry(L, &marks_key);
  for (int i = 0; i < 3; i++) { /* `within` is a law about other families, too: keep that one */
    lua_pushstring(L, laws[i]);
    lua_getfield(L, -2, laws[i]);
    lua_pushcclosure(L, check_law, 2);
    lua_setfield(L, -2, laws[i]);
  }
  new_machine(L)->current = true;
  lua_setfield(L, -2, "machine");
}
