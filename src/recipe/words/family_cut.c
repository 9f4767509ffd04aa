/* SPDX-License-Identifier: MIT
**
** family_cut.c - Family for Lua: groups cut into pieces, numbered in another order, or selected.
*/
#include "moongrid_lua.h"
#include "recipe/bind.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------- pick and map, by a function */

/* A Lua function as the callback of a C function. It is called by lua_pcall, because an error must
** not jump over the C function, which has memory to free. */
typedef struct callback {
  lua_State *L;
  int fn; /* index of the function on the stack */
  int64_t group;
  int64_t n;    /* members: before the call, of the group; after it, of the result */
  int64_t cap;  /* most members of the result */
  int64_t made; /* members of all calls so far */
  int64_t *positions;
  int64_t *ranks;
} callback;

/* Charge for the members of a result. */
static void count_made(callback *c, lua_State *L) {
  if (c->n > c->cap) return; /* the caller will refuse it */
  c->made += c->n;
  mgrid_lua_charge(L, 8 * c->n + 8);
  mgrid_lua_reserve(L, c->made, 24);
}

static int call_pick(lua_State *L) { /* function, call */
  callback *c = lua_touserdata(L, 2);
  lua_pushvalue(L, 1);
  lua_pushinteger(L, c->n);
  lua_call(L, 1, LUA_MULTRET);
  int results = lua_gettop(L) - 2;
  bool list = results == 1 && lua_istable(L, 3);
  c->n = list ? (int64_t)lua_rawlen(L, 3) : results;
  count_made(c, L);
  for (int64_t i = 0; i < c->n && i < c->cap; i++) {
    if (list)
      lua_rawgeti(L, 3, i + 1);
    else
      lua_pushvalue(L, (int)i + 3);
    if (!lua_isinteger(L, -1))
      return mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "pick: the function gave %s, not positions",
                                mgrid_lua_kind(L, -1));
    c->positions[i] = lua_tointeger(L, -1);
    lua_pop(L, 1);
  }
  return 0;
}

static int call_map(lua_State *L) { /* function, call */
  callback *c = lua_touserdata(L, 2);
  lua_pushvalue(L, 1);
  MGRID_LUA_LIST(L, c->n, lua_pushinteger(L, c->ranks[i]));
  lua_pushinteger(L, c->group);
  lua_call(L, 2, 1);
  if (!lua_istable(L, -1))
    return mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "map: the function gave %s, not a list of ranks",
                              mgrid_lua_kind(L, -1));
  c->n = (int64_t)lua_rawlen(L, -1);
  count_made(c, L);
  for (int64_t i = 0; i < c->n && i < c->cap; i++) {
    lua_rawgeti(L, -1, i + 1);
    int64_t rank = lua_tointeger(L, -1);
    if (!lua_isinteger(L, -1) || rank < 0 || rank > MGRID_WORLD_MAX)
      return mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "map: element %d of group %d is not a rank",
                                (int)i + 1, (int)c->group);
    c->ranks[i] = rank;
    lua_pop(L, 1);
  }
  return 0;
}

/* Call body(function, call). Return the number of members of the result. -1: an error; if the
** function has raised it, its message is on the top of the stack. */
static int64_t protected_call(callback *c, lua_CFunction body, mgrid_error *err) {
  if (!lua_checkstack(c->L, 8)) {
    mgrid_oom(err);
    return -1;
  }
  lua_pushcfunction(c->L, body);
  lua_pushvalue(c->L, c->fn);
  lua_pushlightuserdata(c->L, c);
  if (lua_pcall(c->L, 2, 0, 0) == LUA_OK) return c->n;
  mgrid_fail(err, MGRID_REFUSED, "the function failed");
  return -1;
}

static int64_t pick_callback(void *ud, int64_t size, int64_t *positions, int64_t cap,
                             mgrid_error *err) {
  callback *c = ud;
  c->n = size, c->cap = cap, c->positions = positions;
  return protected_call(c, call_pick, err);
}

static int64_t map_callback(void *ud, int64_t group, int64_t *ranks, int64_t n, int64_t cap,
                            mgrid_error *err) {
  callback *c = ud;
  c->group = group, c->n = n, c->cap = cap, c->ranks = ranks;
  return protected_call(c, call_map, err);
}

/* Push an empty error as a userdata, because recipes could nest calls with too many errors for the
** C stack. */
static mgrid_error *push_error(lua_State *L) {
  mgrid_error *e = lua_newuserdatauv(L, sizeof *e, 0);
  *e = (mgrid_error)MGRID_ERROR_INIT;
  return e;
}

/* Finish a method with a callback. The Family is at `at`, and its error above it. If the callback
** has raised, its message is on the top, and is raised again. */
static int done_callback(lua_State *L, mgrid_lua_family *box, int at, const mgrid_error *e) {
  if (box->f) {
    lua_settop(L, at);
    return mgrid_lua_made_family(L, box, e);
  }
  return lua_gettop(L) > at + 1 ? lua_error(L) : mgrid_lua_raise_error(L, e);
}

/* Replace the numbers from 2 on by a list of them. */
static void take_list(lua_State *L) {
  int n = lua_gettop(L) - 1;
  for (int i = 2; i <= n + 1; i++) mgrid_lua_check_integer(L, i);
  lua_createtable(L, n, 0);
  for (int i = 1; i <= n; i++) {
    lua_pushvalue(L, i + 1);
    lua_rawseti(L, -2, i);
  }
  lua_replace(L, 2);
}

/* Pick the positions in the list at 2. */
MGRID_APART static int pick_list(lua_State *L, const mgrid_lua_family *f) {
  mgrid_lua_family *box = mgrid_lua_derive_family(L, NULL);
  mgrid_error e = MGRID_ERROR_INIT;
  size_t n;
  mgrid_lua_reserve(L, (int64_t)mgrid_lua_charge_list(L, 2, 16), 64);
  int64_t *positions = mgrid_lua_check_integers(L, 2, &n);
  box->f = mgrid_family_pick(f->f, n, positions, &e);
  mgrid_release(positions);
  return mgrid_lua_made_family(L, box, &e);
}

/* family:pick(0, -1), family:pick{0, -1}, family:pick(function(size) return ... end) */
int mgrid_lua_family_pick(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1);
  if (f->f->form->listed)
    mgrid_lua_charge_lists(L, f->f);
  else
    mgrid_lua_charge_family(L, f->f);
  if (lua_isfunction(L, 2)) {
    lua_settop(L, 2);
    mgrid_lua_family *box = mgrid_lua_derive_family(L, NULL);
    callback c = { .L = L, .fn = 2 };
    mgrid_error *e = push_error(L);
    box->f = mgrid_family_pick_by(f->f, pick_callback, &c, e);
    return done_callback(L, box, 3, e);
  }
  if (lua_gettop(L) == 1)
    return mgrid_lua_raise(L, "pick: name at least one position of groups of %" PRId64,
                           f->f->max_size);
  if (!lua_istable(L, 2)) take_list(L);
  return pick_list(L, f);
}

/* family:map(function(ranks, group) return ranks end): the result has lists, O(world) */
int mgrid_lua_family_map(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1);
  mgrid_lua_charge_lists(L, f->f);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  mgrid_lua_family *box = mgrid_lua_derive_family(L, NULL);
  mgrid_error *e = push_error(L);
  callback c = { .L = L, .fn = 2 };
  box->f = mgrid_family_map(f->f, map_callback, &c, e);
  return done_callback(L, box, 3, e);
}

/* --------------------------------------------------------------------- cuts */

/* Return the value on the top for a message, without an address. */
static const char *by_row_word(lua_State *L) {
  return lua_isstring(L, -1) ? lua_tostring(L, -1) : luaL_typename(L, -1);
}

/* family:split(k [, { by = "row", table = true }]) -> inner, outer */
static int family_split(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1);
  int64_t k = mgrid_lua_check_integer(L, 2);
  bool lists = false, by_row = false;

  if (!lua_isnoneornil(L, 3)) {
    static const char *const options[] = { "by", "table" }, *const orders[] = { "row" };
    mgrid_lua_check_table(L, 3, "{ by = \"row\" }");
    mgrid_lua_check_keys(L, 3, "option", options, 2, false);
    lua_getfield(L, 3, "table");
    lists = lua_toboolean(L, -1);
    if (lua_getfield(L, 3, "by") != LUA_TNIL) {
      by_row = lua_type(L, -1) == LUA_TSTRING && strcmp(lua_tostring(L, -1), orders[0]) == 0;
      if (!by_row) mgrid_lua_unknown(L, "order of pieces", by_row_word(L), orders, 1);
    }
    lua_settop(L, 3);
  }
  if (f->f->form->listed || (lists && f->f->size < 0))
    mgrid_lua_charge_lists(L, f->f);
  else
    mgrid_lua_charge_family(L, f->f);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_lua_family *inner = mgrid_lua_derive_family(L, NULL),
                   *outer = mgrid_lua_derive_family(L, NULL);
  if (mgrid_family_split(f->f, k, lists, by_row, &inner->f, &outer->f, &e))
    return mgrid_lua_raise_error(L, &e);
  mgrid_lua_made_family(L, inner, &e);
  mgrid_lua_made_family(L, outer, &e);
  return 2;
}

/* family:levels{a, b, c} -> a family for each level, the innermost first */
static int family_levels(lua_State *L) {
  enum { MAX = 32 };
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1), *box[MAX];
  mgrid_family *out[MAX];
  size_t n = 0;
  mgrid_lua_check_table(L, 2, "{ 2, 4 }");
  if (lua_rawlen(L, 2) > MAX)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "levels: at most %d", MAX);
  mgrid_lua_stack(L, MAX + 4);
  lua_settop(L, 2);
  for (size_t i = 0; i < lua_rawlen(L, 2); i++) box[i] = mgrid_lua_derive_family(L, NULL);
  mgrid_error e = MGRID_ERROR_INIT;
  int64_t *sizes = mgrid_lua_check_integers(L, 2, &n);
  mgrid_status s = mgrid_family_levels(f->f, n, sizes, out, &e);
  mgrid_release(sizes);
  if (s) return mgrid_lua_raise_error(L, &e);
  for (size_t i = 0; i < n; i++) box[i]->f = out[i];
  for (size_t i = 0; i < n; i++) mgrid_lua_made_family(L, box[i], &e);
  return (int)n;
}

/* family:segments{5, 3}, family:segments{5, fill}: consecutive pieces of every group */
static int family_segments(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1), *box = mgrid_lua_derive_family(L, NULL);
  mgrid_error e = MGRID_ERROR_INIT;
  size_t n;
  mgrid_lua_charge_family(L, f->f);
  int64_t *sizes = mgrid_lua_check_sizes(L, 2, &n);
  box->f = mgrid_family_segments(f->f, n, sizes, &e);
  mgrid_release(sizes);
  return mgrid_lua_made_family(L, box, &e);
}

/* Replace the function at 2 by the list of its results for all groups. */
static void list_order(lua_State *L, int64_t count) {
  mgrid_lua_charge(L, count);
  mgrid_lua_reserve(L, count, 16);
  lua_createtable(L, count < INT32_MAX ? (int)count : 0, 0);
  for (int64_t i = 0; i < count; i++) {
    lua_pushvalue(L, 2);
    lua_pushinteger(L, i);
    lua_call(L, 1, 1);
    if (!lua_isinteger(L, -1))
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                         "renumber: the function gave %s for group %" PRId64 ", not a group",
                         luaL_typename(L, -1), i);
    lua_rawseti(L, -2, i + 1);
  }
  lua_replace(L, 2);
}

/* Push a Family of the groups of the Family at 1, in the order of the list at 2. */
MGRID_APART static int renumber(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1);
  mgrid_lua_check_table(L, 2, "{ 1, 0 }");
  mgrid_lua_charge_list(L, 2, 16);
  mgrid_lua_charge_family(L, f->f);
  mgrid_lua_family *box = mgrid_lua_derive_family(L, NULL);
  mgrid_error e = MGRID_ERROR_INIT;
  size_t n;
  int64_t *order = mgrid_lua_check_integers(L, 2, &n);
  box->f = mgrid_renumber_by_rule(f->f, n, order, &e);
  mgrid_release(order);
  if (box->f) return mgrid_lua_made_family(L, box, &e);
  if (e.status) return mgrid_lua_raise_error(L, &e);
  mgrid_lua_charge_lists(L, f->f); /* no rule has that order */
  order = mgrid_lua_check_integers(L, 2, &n);
  box->f = mgrid_family_renumber(f->f, n, order, &e);
  mgrid_release(order);
  return mgrid_lua_made_family(L, box, &e);
}

/* Replace argument 2 by the list of the groups of f in the order of their first members. */
static void list_firsts(lua_State *L, const mgrid_family *f) {
  mgrid_lua_charge(L,
                   f->count < INT64_MAX / (16 * f->nodes) ? 16 * f->nodes * f->count : INT64_MAX);
  mgrid_lua_reserve(L, f->count, 24);
  uint64_t *key = lua_newuserdatauv(L, (size_t)f->count * sizeof *key + 1, 0);
  for (int64_t g = 0; g < f->count; g++)
    key[g] = (uint64_t)mgrid_family_rank(f, g, 0) << 32 | (uint64_t)g;
  qsort(key, (size_t)f->count, sizeof *key, mgrid_key_order);
  MGRID_LUA_LIST(L, f->count, lua_pushinteger(L, (lua_Integer)(key[i] & UINT32_MAX)));
  lua_replace(L, 2);
  lua_settop(L, 2);
}

/* Push a Family of the groups of f, which has a rule, in the order of their first members. To order
** the groups, sort the modes of the index by stride. */
static int rule_by_first(lua_State *L, const mgrid_family *f) {
  const mgrid_modes *own = &f->rule->index;
  mgrid_mode at[MGRID_MODES_MAX];
  MGRID_MODES(index);
  mgrid_error e = MGRID_ERROR_INIT;
  for (int i = 0, k; i < own->n; i++) {
    for (k = i; k > 0 && at[k - 1].stride > own->at[i].stride; k--) at[k] = at[k - 1];
    at[k] = own->at[i];
  }
  for (int i = 0; i < own->n; i++) mgrid_modes_push(&index, at[i].size, at[i].stride);
  mgrid_lua_family *box = mgrid_lua_derive_family(L, NULL);
  box->f = mgrid_strided_new(f->world, f->rule->offset, &f->rule->inside, &index, &e);
  return mgrid_lua_made_family(L, box, &e);
}

/* family:renumber{2, 0, 1}, family:renumber(function(i) return group end),
** family:renumber "first" */
static int family_renumber(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1);
  lua_settop(L, 2);
  if (lua_isfunction(L, 2)) list_order(L, f->f->count);
  if (lua_type(L, 2) == LUA_TSTRING) {
    static const char *const known[] = { "first" };
    const char *word = lua_tostring(L, 2);
    if (strcmp(word, known[0]) != 0) mgrid_lua_unknown(L, "order of groups", word, known, 1);
    if (f->f->rule) return rule_by_first(L, f->f);
    list_firsts(L, f->f);
  }
  return renumber(L);
}

/* Push a Family of the groups of the Family at 1 whose numbers are in the list at 2. */
MGRID_APART static int some_groups(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1);
  mgrid_lua_check_table(L, 2, "{ 0, 3 }");
  const int64_t listed = (int64_t)mgrid_lua_charge_list(L, 2, 64), most = f->f->max_size;
  mgrid_lua_charge_family(L, f->f);
  mgrid_lua_family *box = mgrid_lua_derive_family(L, NULL);
  mgrid_error e = MGRID_ERROR_INIT;
  size_t n;
  int64_t *groups = mgrid_lua_check_integers(L, 2, &n);
  box->f = mgrid_select_by_rule(f->f, n, groups, &e);
  mgrid_release(groups);
  if (box->f || e.status) return mgrid_lua_made_family(L, box, &e);
  /* no rule has these groups, so they become lists; both factors are below 2^31 */
  mgrid_lua_charge(L, 16 * listed * most);
  mgrid_lua_reserve(L, listed * (most + 1), 24);
  groups = mgrid_lua_check_integers(L, 2, &n);
  box->f = mgrid_family_select(f->f, n, groups, &e);
  mgrid_release(groups);
  return mgrid_lua_made_family(L, box, &e);
}

int mgrid_lua_some_groups(lua_State *L) {
  if (!lua_istable(L, 2)) take_list(L);
  lua_settop(L, 2);
  return some_groups(L);
}

/* family:where(function(ranks, group) return true end): the groups for which it returns true */
static int where_it_says(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1);
  const int64_t count = f->f->count;
  lua_Integer n = 0;

  lua_settop(L, 2);
  mgrid_lua_charge_lists(L, f->f);
  lua_newtable(L);
  for (int64_t g = 0; g < count; g++) {
    lua_pushvalue(L, 2);
    mgrid_lua_push_ranks(L, f->f, g);
    lua_pushinteger(L, g);
    lua_call(L, 2, 1);
    if (!lua_isboolean(L, -1) && !lua_isnil(L, -1))
      return mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                                "where: the function gave %s for group %" PRId64
                                ", not true or false",
                                mgrid_lua_kind(L, -1), g);
    bool kept = lua_toboolean(L, -1);
    lua_pop(L, 1);
    if (!kept) continue;
    lua_pushinteger(L, g);
    lua_rawseti(L, 3, ++n);
  }
  if (n == 0)
    return mgrid_lua_raise(L, "where: the function is true for none of the %" PRId64 " groups",
                           count);
  lua_replace(L, 2);
  return some_groups(L);
}

/* family:where{ pp = 0 }, family:where(grid, { pp = 0 }): the groups whose ranks all have these
** coordinates */
MGRID_APART static int where_there(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1);
  int64_t coords[MGRID_DIMS_MAX];
  if (!mgrid_lua_test_box(L, 2, MGRID_LUA_GRID)) {
    mgrid_lua_check_table(L, 2, "{ pp = 0 }");
    if (lua_getiuservalue(L, 1, 1) != LUA_TUSERDATA)
      return mgrid_lua_raise(L,
                             "where: the family was not made from one grid; give the grid of the "
                             "coordinates, too: where(g, { pp = 0 })");
    lua_insert(L, 2);
  }

  mgrid_grid *g = mgrid_lua_check_grid(L, 2);
  mgrid_lua_check_coords(L, 3, g, -1, coords);
  mgrid_lua_family *box = mgrid_lua_derive_family(L, NULL);
  mgrid_error e = MGRID_ERROR_INIT;
  if ((box->f = mgrid_where_by_rule(f->f, g, coords, &e)) || e.status)
    return mgrid_lua_made_family(L, box, &e);
  mgrid_lua_charge_lists(L, f->f); /* no rule selects these groups */
  mgrid_lua_charge(L, f->f->total > INT64_MAX / MGRID_DIMS_MAX ? INT64_MAX
                                                               : f->f->total * (int64_t)g->n);
  box->f = mgrid_family_where(f->f, g, coords, &e);
  return mgrid_lua_made_family(L, box, &e);
}

static int family_where(lua_State *L) {
  return lua_isfunction(L, 2) ? where_it_says(L) : where_there(L);
}

/* group:segment{5, 3} -> { index = 0, start = 0, size = 5, position = 2, ... }: this rank's piece
** of the group */
int mgrid_lua_group_segment(lua_State *L) {
  mgrid_segment s = MGRID_SEGMENT_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  size_t n;

  mgrid_lua_check_group(L, 1);
  int64_t *sizes = mgrid_lua_check_sizes(L, 2, &n);
  const mgrid_group *g = mgrid_lua_to_group(L, 1);
  mgrid_status status = g ? mgrid_group_segment(g, n, sizes, &s, &e) : MGRID_OK;
  mgrid_release(sizes);
  mgrid_lua_check_group(L, 1); /* reading the sizes may have closed its state */
  if (status) return mgrid_lua_raise_error(L, &e);
  mgrid_lua_charge(L, s.members);
  lua_createtable(L, 0, 9);
  mgrid_lua_set_integer(L, "index", s.index);
  mgrid_lua_set_integer(L, "start", s.start);
  mgrid_lua_set_integer(L, "size", s.members);
  mgrid_lua_set_integer(L, "position", s.position);
  mgrid_lua_set_integer(L, "first", s.first);
  mgrid_lua_set_integer(L, "last", s.last);
  mgrid_lua_set_integer(L, "next", s.next);
  mgrid_lua_set_integer(L, "prev", s.prev);
  lua_createtable(L, s.members < INT32_MAX ? (int)s.members : 0, 0);
  g = mgrid_lua_check_group(L, 1);
  for (int64_t p = 0; p < s.members; p++) {
    lua_pushinteger(L, mgrid_group_at(g, s.start + p));
    lua_rawseti(L, -2, p + 1);
  }
  lua_setfield(L, -2, "ranks");
  return 1;
}

const luaL_Reg mgrid_lua_family_pieces[] = {
  { "split", family_split },       { "levels", family_levels }, { "segments", family_segments },
  { "renumber", family_renumber }, { "where", family_where },   { NULL, NULL }
};
