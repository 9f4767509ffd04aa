/* SPDX-License-Identifier: MIT
**
** spares_words.c - the field `spares` of recipe { ... }: `build` gets a World without the spares,
** which become an item of the plan.
*/
#include "families/grid.h"
#include "machine/lua/machine_words.h"
#include "recipe/runtime.h"
#include "survive/lua/survive_words.h"

#include <inttypes.h>
#include <string.h>

#define SPARES "moongrid.Spares"

/* a key of the registry: the spares of the plan that is being made, in a box */
static const char current_key = 's';

static void free_box(void *box) {
  mgrid_spares *x = *(mgrid_spares **)box;
  if (x) mgrid_spares_kind.free(x);
}

static MGRID_APART int spares_raise_at(lua_State *L, const char *where, mgrid_status status,
                                       const char *message) {
  mgrid_lua_note(L, status, message);
  lua_pushfstring(L, "%s%s", where, message);
  return lua_error(L);
}

/* Return the integer in a field of the table at i; `usual` if the field is nil, and -1 if its value
** is not an integer. */
static int64_t spares_count_of(lua_State *L, int i, const char *name, int64_t usual) {
  int type = lua_getfield(L, i, name);
  int64_t n = type == LUA_TNIL ? usual : lua_isinteger(L, -1) ? lua_tointeger(L, -1) : -1;
  lua_pop(L, 1);
  return n;
}

/* Refuse fields other than `per` and `count`. */
static void check_fields(lua_State *L, int i, const char *where) {
  static const char *const known[] = { "per", "count" };
  char tail[128], message[320];
  lua_Integer k = 0;
  mgrid_lua_keys(L, i);
  for (int keys = lua_gettop(L); mgrid_lua_step(L, i, keys, &k); lua_pop(L, 2)) {
    const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "1";
    if (strcmp(name, known[0]) == 0 || strcmp(name, known[1]) == 0) continue;
    mgrid_suggest(tail, sizeof tail, name, known, 2);
    snprintf(message, sizeof message, "unknown field of spares '%.100s'%s", name, tail);
    spares_raise_at(L, where, MGRID_UNKNOWN_NAME, message);
  }
  lua_pop(L, 1);
}

/* Make the last n ranks spares. */
static MGRID_APART mgrid_spares *last(int64_t world, int64_t n, mgrid_error *e) {
  int32_t *list = mgrid_realloc(NULL, NULL, 0, (size_t)(n + 1) * sizeof *list);
  for (int64_t i = 0; i < n && list; i++) list[i] = (int32_t)(world - n + i);
  return mgrid_spares_new(world, n, list, e);
}

/* Make the spares from the value of the field, which is at the top of the stack. NULL: there are
** none. Messages begin with `where`. */
static MGRID_APART mgrid_spares *spares_read_field(lua_State *L, int64_t world, const char *where) {
  static const char expected[] =
      "spares is a number of ranks, 2, or so many in each domain of the machine, "
      "{ per = \"node\", count = 1 }";
  mgrid_error e = MGRID_ERROR_INIT;
  int i = lua_gettop(L), type = lua_type(L, i);
  if (type == LUA_TNIL) return NULL;

  int64_t n = type == LUA_TTABLE    ? spares_count_of(L, i, "count", 1)
              : lua_isinteger(L, i) ? lua_tointeger(L, i)
                                    : -1;
  if (n < 0 || (type == LUA_TTABLE && n == 0)) {
    char message[256], shown[64];
    snprintf(shown, sizeof shown, "%s", mgrid_lua_kind(L, i));
    if (type == LUA_TTABLE)
      snprintf(message, sizeof message, "%s: its count is 1 or more", expected);
    else
      snprintf(message, sizeof message, "%s; not %s", expected,
               lua_isinteger(L, i) ? "less than 0" : shown);
    spares_raise_at(L, where, MGRID_BAD_VALUE, message);
  }

  mgrid_spares *x = NULL;
  if (type == LUA_TTABLE) {
    check_fields(L, i, where);
    const mgrid_machine_model *m = mgrid_lua_read_machine(L);
    const char *level = lua_getfield(L, i, "per") == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    if (!level)
      spares_raise_at(L, where, MGRID_BAD_VALUE,
                      "spares in each domain of the machine: per = \"node\" says which");
    if (!m)
      spares_raise_at(L, where, MGRID_REFUSED,
                      "spares by the machine, and there is none: --machine gives one, or machine = "
                      "\"node:4 gpu:8\" in the recipe");
    mgrid_lua_charge(L, 32 * world);
    x = mgrid_spares_per(m, level, n, world, &e);
  } else if (n >= world) {
    mgrid_fail(&e, MGRID_REFUSED,
               "%" PRId64 " spares in a world of %" PRId64
               ": at least one rank works, so at most %" PRId64,
               n, world, world - 1);
  } else if (n > 0) {
    mgrid_lua_charge(L, n);
    x = last(world, n, &e);
  }

  if (e.status) spares_raise_at(L, where, e.status, e.message);
  return x;
}

/* Make the order of all ranks that are not spares. */
static MGRID_APART mgrid_family *others(const mgrid_spares *x, mgrid_error *e) {
  int64_t n = 0, group, position;
  int32_t *list = mgrid_realloc(NULL, NULL, 0, (size_t)x->world * sizeof *list);
  for (int64_t r = 0; r < x->world && list; r++)
    if (!mgrid_family_locate(x->f, r, 0, &group, &position)) list[n++] = (int32_t)r;
  return mgrid_order_list(mgrid_world(x->world), n, list, e);
}

bool mgrid_lua_spares_world(lua_State *L, int world, int values, const char *where) {
  const mgrid_lua_world *w = mgrid_lua_check_world(L, world);
  mgrid_spares *lent = mgrid_lua_lent(L, &mgrid_spares_kind), *x = lent;
  mgrid_error e = MGRID_ERROR_INIT;
  int64_t all = w->window.world;
  mgrid_spares **box = mgrid_lua_new_box(L, sizeof *box, 0, SPARES, free_box);

  lua_rawsetp(L, LUA_REGISTRYINDEX, &current_key);
  lua_getfield(L, values, "spares");
  if (lent)
    *box = mgrid_spares_kind.ref(lent);
  else
    *box = x = spares_read_field(L, all, where);
  lua_pop(L, 1);
  if (!x || !x->f) return false;
  if (x->world != all) spares_raise_at(L, where, MGRID_REFUSED, "the spares are of another world");
  mgrid_lua_world *rest = mgrid_lua_new_world(L);
  rest->window = (mgrid_window){ all, 0, all - x->f->total };
  if (x->f->rule && x->f->low == all - x->f->total) return true; /* the spares are the last ranks */
  mgrid_lua_charge(L, 32 * all);
  mgrid_lua_reserve(L, all, 24);
  bool plain;
  mgrid_family *order = others(x, &e);
  if (!order) return mgrid_lua_raise_error(L, &e);
  rest->window = mgrid_order_window(order, &plain);
  if (plain)
    mgrid_family_free(order);
  else
    rest->order = order;
  return true;
}

void mgrid_lua_spares_end(lua_State *L, int topology, const char *where) {
  mgrid_topology *t = mgrid_lua_check_topology(L, topology);
  mgrid_error e = MGRID_ERROR_INIT;

  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &current_key) != LUA_TUSERDATA) {
    lua_pop(L, 1);
    return;
  }
  const mgrid_spares *x = *(mgrid_spares **)mgrid_lua_check_box(L, -1, SPARES);
  if (x && x->f) {
    mgrid_lua_charge(L, x->f->total * (int64_t)t->content.nentries);
    if (t->content.world != x->world)
      mgrid_fail(&e, MGRID_REFUSED,
                 "build returned a topology of %" PRId64 " ranks; with %" PRId64
                 " spares it is topology(world), of all %" PRId64,
                 t->content.world, x->f->total, x->world);
    else if (!mgrid_spares_check(x, &t->content, &e))
      mgrid_topology_put_item(t, MGRID_SPARES_NAME, &mgrid_spares_kind, x, &e);
  }
  if (e.status) spares_raise_at(L, where, e.status, e.message);
  lua_pop(L, 1);
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &current_key);
}

/* plan.spares -> list of ranks */
int mgrid_lua_plan_spares(lua_State *L) {
  const mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  int64_t n = mgrid_plan_nspares(p);
  lua_createtable(L, (int)n, 0);
  for (int64_t i = 0; i < n; i++) {
    lua_pushinteger(L, mgrid_plan_spare(p, i));
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

mgrid_status mgrid_lua_serve_lent(mgrid_runtime *rt, void *request, mgrid_error *err) {
  mgrid_lent_request *r = request;
  (void)err;
  if (r->policy) mgrid_policy_place(r->policy, r->placed);
  for (int i = 0; i < MGRID_LENT_MAX; i++)
    if (rt->lent[i].kind == r->kind && rt->lent[i].x) r->x = r->kind->ref(rt->lent[i].x);
  return MGRID_OK;
}

void mgrid_lua_open_spares(lua_State *L) {
  static const luaL_Reg meta[] = { { "__gc", mgrid_lua_free_box }, { NULL, NULL } };
  static const mgrid_lua_class class = { SPARES, NULL, NULL, NULL, meta };
  mgrid_lua_open_class(L, &class);
}
