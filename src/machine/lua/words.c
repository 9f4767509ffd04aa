/* SPDX-License-Identifier: MIT
**
** words.c - machine.node and its like, and within, aligned and spread of such families.
**
** `machine` is one value for all plans of a Lua state: the machine of the plan that is being made. Where it is, for which
** world, and whether the recipe has read it, is in a table of the registry, which begin() makes and end() empties. A Machine
** of its own, machine("node:4 gpu:8"), has all of that itself.
*/
#include "machine/lua/words.h"

#include "machine/readers.h"
#include "machine/traffic.h"
#include "moongrid_lua.h"
#include "recipe/budget.h"
#include "recipe/entry.h"

#include <inttypes.h>
#include <string.h>

typedef struct machine_box {
  mgrid_machine_model *model; /* NULL: that of the plan, in the registry */
  int64_t              world;
  bool                 current, read;
} machine_box;

/* Registry keys: the Machine of the plan that is made; marks: Family -> name of its level, of families of machines; the laws
** that held, a list of { law, Family, level }. */
static const char current_key = 'c', marks_key = 'm', laws_key = 'l',
                  traffic_key = 't'; /* the field `traffic`, a table */

static void free_machine(void *box) { mgrid_machine_free(((machine_box *)box)->model); }

static machine_box *new_machine(lua_State *L) {
  machine_box *box = mgrid_lua_new_box(L, sizeof *box, 1, MGRID_LUA_MACHINE, free_machine);
  lua_newtable(L); /* families made before, by level */
  lua_setiuservalue(L, -2, 1);
  return box;
}

/* Replace a Machine that stands for the plan's by that one. */
static machine_box *machine_at(lua_State *L, int i) {
  machine_box *box = mgrid_lua_check_box(L, i, MGRID_LUA_MACHINE);
  if (!box->current) return box;
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &current_key) != LUA_TUSERDATA)
    mgrid_lua_raise_as(
        L, MGRID_REFUSED,
        "there is no machine: --machine FILE, TEXT or PRESET gives one, or machine = \"dgx-h100\" in the "
        "recipe, or machine(\"node:4 gpu:8\", world)");
  lua_replace(L, i);
  box = mgrid_lua_check_box(L, i, MGRID_LUA_MACHINE);
  box->read = true;
  return box;
}

const mgrid_machine_model *mgrid_lua_check_machine(lua_State *L, int i) { return machine_at(L, i)->model; }

mgrid_machine_model **mgrid_lua_new_machine(lua_State *L) { return &new_machine(L)->model; }

/* Raise the error about a machine, or free it. */
static MGRID_APART void parse(lua_State *L, machine_box *box, const char *text, const char *where) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_lua_charge(L, (int64_t)strlen(text));
  mgrid_budget *budget = mgrid_lua_work(L);
  if (strlen(text) > MGRID_MACHINE_TEXT)
    mgrid_machine_parse(text, &e); /* its error */
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

/* Charge for lists: O(world) where the machine or its domains follow no modes. */
static void charge(lua_State *L, const machine_box *box, size_t level) {
  const mgrid_machine_model *m = box->model;
  if (level < m->ntiers && m->tier[level].each && !m->at) return;
  mgrid_lua_charge(L, 16 * box->world);
  mgrid_lua_reserve(L, box->world, 24);
}

static MGRID_APART int push_family(lua_State *L, const machine_box *box, int64_t level, const char *name) {
  mgrid_error       e = MGRID_ERROR_INIT;
  mgrid_lua_family *f = mgrid_lua_new_family(L, NULL);
  charge(L, box, (size_t)level);
  f->f = mgrid_machine_family(box->model, name, box->world, &e);
  return mgrid_lua_made_family(L, f, &e);
}

/* machine.node -> Family; machine.has */
static int machine_has(lua_State *L) {
  const machine_box *box = machine_at(L, 1);
  lua_pushboolean(L, mgrid_machine_find(box->model, luaL_checkstring(L, 2)) >= 0);
  return 1;
}

int mgrid_lua_unknown_level(lua_State *L, const mgrid_machine_model *m, const char *name) {
  const char *known[2 * MGRID_LEVELS_MAX];
  size_t      n = mgrid_machine_nlevels(m);
  for (size_t i = 0; i < n; i++) known[i] = mgrid_level_name(m, i);
  return mgrid_lua_unknown(L, "level of the machine", name, known, n);
}

static int machine_index(lua_State *L) {
  if (lua_type(L, 2) == LUA_TNUMBER) return mgrid_lua_no_list(L, MGRID_LUA_MACHINE);
  const char     *name = luaL_checkstring(L, 2);
  machine_box    *box = machine_at(L, 1);
  int64_t         level = mgrid_machine_find(box->model, name);
  const luaL_Reg *method = mgrid_lua_machine_questions;
  while (method->name && strcmp(name, method->name) != 0) method++;
  if (level < 0 && (method->name || strcmp(name, "has") == 0)) {
    lua_pushcfunction(L, method->name ? method->func : machine_has);
    return 1;
  }
  if (level < 0) return mgrid_lua_unknown_level(L, box->model, name);
  lua_getiuservalue(L, 1, 1);
  if (lua_getfield(L, -1, name) == LUA_TUSERDATA) return 1;
  lua_pop(L, 1);
  push_family(L, box, level, name);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &marks_key);
  lua_pushvalue(L, -2);
  lua_pushvalue(L, 1); /* the Machine; its level is found by the family's name there */
  lua_rawset(L, -3);
  lua_pop(L, 1);
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, name);
  return 1;
}

/* machine("node:4 gpu:8" [, world]) -> Machine */
static int machine_call(lua_State *L) {
  const char *text = luaL_checkstring(L, 2);
  int64_t     world = 0;
  if (lua_isnoneornil(L, 3) && lua_rawgetp(L, LUA_REGISTRYINDEX, &current_key) == LUA_TNUMBER)
    world = lua_tointeger(L, -1);
  else if (lua_isnoneornil(L, 3) && lua_type(L, -1) == LUA_TUSERDATA)
    world = ((machine_box *)mgrid_lua_check_box(L, -1, MGRID_LUA_MACHINE))->world;
  else
    world = mgrid_lua_check_world(L, 3)->window.world;
  machine_box *box = new_machine(L);
  box->world = world;
  parse(L, box, text, NULL);
  mgrid_error e = MGRID_ERROR_INIT;
  return mgrid_machine_fits(box->model, world, &e) ? mgrid_lua_raise_error(L, &e) : 1;
}

static int machine_tostring(lua_State *L) {
  machine_box *box = mgrid_lua_check_box(L, 1, MGRID_LUA_MACHINE);
  mgrid_text   t = { 0 };
  if (box->current) return lua_pushliteral(L, "the machine"), 1;
  mgrid_text_str(&t, "Machine ");
  mgrid_machine_text(box->model, &t);
  mgrid_lua_push_text(L, &t);
  return 1;
}

/* ---------------------------------------------------------------------- laws */

/* Push the name of the level that the Family at i is of, and return its Machine; NULL, with nothing pushed: it is of none. */
static machine_box *level_of(lua_State *L, int i) {
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

static MGRID_APART void hold(lua_State *L, const mgrid_machine_law *law, const machine_box *box, const mgrid_family *f,
                             const char *level) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_lua_charge(L, f->rule ? 256 : 4 * f->total);
  if (f->world != box->world)
    mgrid_lua_raise(L, "%s: the family is of a world of %" PRId64 " ranks, the machine of %" PRId64, law->name,
                    f->world, box->world);
  if (!mgrid_machine_hold(law, box->model, f, "the family", level, &e)) return;
  mgrid_lua_raise_as(L, e.status, "%s(a, machine.%s): %s", law->name, level, e.message);
}

/* law(a, machine.node): raise with the first group that breaks it, or remember that it held. Upvalues: the name of the law,
** and the function for families of no machine, or nil. */
static int check_law(lua_State *L) {
  const char              *name = lua_tostring(L, lua_upvalueindex(1));
  const mgrid_machine_law *law = mgrid_machine_law_named(name);
  mgrid_lua_family        *f = mgrid_lua_check_family(L, 1);
  mgrid_lua_check_family(L, 2);
  lua_settop(L, 2);
  const machine_box *box = level_of(L, 2);
  if (!box && lua_isnil(L, lua_upvalueindex(2)))
    return mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "%s(a, b): b is a family of a machine, as machine.rack", name);
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
  mgrid_error         e = MGRID_ERROR_INIT;
  lua_pushinteger(L, world); /* for machine(text) where the plan has none */
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
  const char  *text = lua_tostring(L, -1);
  machine_box *box = new_machine(L);
  if (lent)
    box->model = mgrid_machine_ref(lent->model);
  else
    parse(L, box, text, where);
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

/* Return the name in the topology of the Family on the top; NULL: it is not there under any. */
static const char *name_of(const mgrid_content *c, const mgrid_family *f) {
  for (size_t i = 0; i < c->nentries; i++)
    if (c->entry[i].family == f) return c->entry[i].name;
  return NULL;
}

/* Append the laws that held of families in the topology, each once. */
static void list_laws(lua_State *L, const mgrid_content *c, mgrid_text *out) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &laws_key);
  for (lua_Integer i = 1; lua_rawgeti(L, -1, i) == LUA_TTABLE; i++, lua_pop(L, 1)) {
    char line[160];
    lua_rawgeti(L, -1, 1);
    lua_rawgeti(L, -2, 2);
    lua_rawgeti(L, -3, 3);
    const char *family = name_of(c, mgrid_lua_check_family(L, -2)->f);
    snprintf(line, sizeof line, "%s(%s, machine.%s)\n", lua_tostring(L, -3), family ? family : "", lua_tostring(L, -1));
    if (family && !strstr(mgrid_text_chars(out), line)) mgrid_text_str(out, line);
    lua_pop(L, 3);
  }
  lua_pop(L, 2);
}

static MGRID_APART void put_item(lua_State *L, int topology, const machine_box *box) {
  mgrid_topology     *t = mgrid_lua_check_topology(L, topology);
  mgrid_error         e = MGRID_ERROR_INIT;
  mgrid_machine_item *item = mgrid_machine_item_new(box->model, box->world, &e);
  if (item) list_laws(L, &t->content, &item->laws);
  if (item && item->laws.failed) mgrid_oom(&e);
  if (item) item->unread = !box->read;
  mgrid_status s = e.status ? e.status : mgrid_topology_put_item(t, MGRID_MACHINE_NAME, &mgrid_machine_kind, item, &e);
  if (item) mgrid_machine_kind.free(item);
  if (s) mgrid_lua_raise_error(L, &e);
}

/* Read the field traffic = { tp = "2 GiB all_reduce x 96" }, whose keys are on the top. Nothing here raises. */
static MGRID_APART mgrid_status read_traffic(lua_State *L, int table, const mgrid_content *c, mgrid_traffic *t,
                                             mgrid_error *e) {
  lua_Integer k = 0;
  for (int keys = lua_gettop(L); !e->status && mgrid_lua_step(L, table, keys, &k); lua_pop(L, 2)) {
    if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
      return mgrid_fail(e, MGRID_BAD_VALUE, "traffic has texts by family, tp = \"2 GiB all_reduce x 96\"");
    const char *family = lua_tostring(L, -2);
    if (mgrid_content_require(c, "traffic: ", family, e) < 0) return e->status;
    mgrid_traffic_add(t, family, lua_tostring(L, -1), e);
  }
  return e->status;
}

static MGRID_APART void put_traffic(lua_State *L, int topology, int table, const char *where) {
  mgrid_topology *t = mgrid_lua_check_topology(L, topology);
  mgrid_error     e = MGRID_ERROR_INIT;
  int             top = lua_gettop(L);
  mgrid_lua_keys(L, table); /* may raise, so before the traffic is made */
  mgrid_traffic *traffic = mgrid_traffic_new(t->content.world, &e);
  if (traffic && !read_traffic(L, table, &t->content, traffic, &e))
    mgrid_topology_put_item(t, MGRID_TRAFFIC_NAME, &mgrid_traffic_kind, traffic, &e);
  mgrid_traffic_free(traffic);
  lua_settop(L, top);
  if (!e.status) return;
  mgrid_lua_note(L, e.status, e.message);
  lua_pushfstring(L, "%s%s", where, e.message);
  lua_error(L);
}

void mgrid_lua_machine_end(lua_State *L, int topology, const char *where) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &traffic_key) == LUA_TTABLE) put_traffic(L, topology, lua_gettop(L), where);
  lua_pop(L, 1);
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &current_key) == LUA_TUSERDATA) {
    const machine_box *box = mgrid_lua_check_box(L, -1, MGRID_LUA_MACHINE);
    put_item(L, topology, box);
  }
  lua_pop(L, 1);
  static const char *const keys[] = { &current_key, &laws_key };
  for (int i = 0; i < 2; i++) {
    lua_pushnil(L);
    set_registry(L, keys[i]);
  }
}

/* plan.machine -> the text of the machine that its recipe read, "" for none */
int mgrid_lua_plan_machine(lua_State *L) {
  const mgrid_machine_model *m = mgrid_plan_machine(mgrid_lua_check_plan(L, 1));
  mgrid_text                 t = { 0 };
  if (m) mgrid_machine_text(m, &t);
  mgrid_lua_push_text(L, &t);
  return 1;
}

/* plan.traffic -> what its recipe says that families send, false if nothing does */
int mgrid_lua_plan_traffic(lua_State *L) {
  const mgrid_traffic *own = mgrid_plan_traffic(mgrid_lua_check_plan(L, 1));
  mgrid_text           t = { 0 };
  if (!own) return lua_pushboolean(L, false), 1;
  mgrid_traffic_kind.text(own, &t);
  mgrid_lua_push_text(L, &t);
  return 1;
}

/* plan.laws -> the laws about that machine that held, a list of "within(tp, machine.node)"; false if build did not read it */
int mgrid_lua_plan_laws(lua_State *L) {
  const mgrid_machine_item *item = mgrid_content_machine(&mgrid_lua_check_plan(L, 1)->content);
  if (!item || item->unread) return lua_pushboolean(L, false), 1;
  mgrid_lua_push_lines(L, mgrid_text_chars(&item->laws));
  return 1;
}

mgrid_status mgrid_lua_machine_law(lua_State *L, int about, const mgrid_plan *p, const char *law, bool *mine,
                                   mgrid_error *err) {
  if (!(*mine = mgrid_machine_is_law(law))) return MGRID_OK;
  const mgrid_machine_model *m = lua_isnil(L, about) ? mgrid_plan_machine(p) : mgrid_lua_check_machine(L, about);
  return mgrid_machine_check_law(m, p, law, err);
}

/* ----------------------------------------------------------- for hosts alone */

/* moongrid.open_machine(text, preset or file) -> Machine */
static int open_machine(lua_State *L) {
  const char  *source = luaL_checkstring(L, 1);
  machine_box *box = new_machine(L);
  mgrid_error  e = MGRID_ERROR_INIT;
  box->model = mgrid_machine_open_by(&mgrid_lua_entry, source, &e);
  return box->model ? 1 : mgrid_lua_raise_error(L, &e);
}

/* recipe:on(machine): plan for it, as --machine does; nil: for none again */
int mgrid_lua_recipe_on(lua_State *L) {
  luaL_checkudata(L, 1, MGRID_LUA_RECIPE);
  luaL_checkany(L, 2);
  const mgrid_machine_model *m = lua_isnil(L, 2) ? NULL : machine_at(L, 2)->model;
  mgrid_error                e = MGRID_ERROR_INIT;
  return mgrid_runtime_machine(mgrid_lua_to(L, 1, "Recipe"), m, &e) ? mgrid_lua_raise_error(L, &e) : 0;
}

void mgrid_lua_open_machine_host(lua_State *L) {
  lua_pushcfunction(L, open_machine);
  lua_setfield(L, -2, "open_machine");
  lua_pushcfunction(L, mgrid_lua_machine_presets);
  lua_setfield(L, -2, "presets");
}

/* ------------------------------------------------------------------- opening */

static const luaL_Reg        machine_meta[] = { { "__index", machine_index },
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
  for (int i = 0; i < 3; i++) { /* what `within` did for other families, it still does */
    lua_pushstring(L, laws[i]);
    lua_getfield(L, -2, laws[i]);
    lua_pushcclosure(L, check_law, 2);
    lua_setfield(L, -2, laws[i]);
  }
  new_machine(L)->current = true;
  lua_setfield(L, -2, "machine");
}
