/* SPDX-License-Identifier: MIT
**
** family_cut.c - Family for Lua: groups cut into pieces, counted in another order, and selected.
*/
#include "moongrid_lua.h"

#include "recipe/bind.h"

#include <inttypes.h>
#include <string.h>

/* Return the word on the top, for a message: never an address. */
static const char *by_row_word(lua_State *L) {
  return lua_isstring(L, -1) ? lua_tostring(L, -1) : luaL_typename(L, -1);
}

/* family:split(k [, { by = "row", table = true }]) -> inner, outer */
static int family_split(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1);
  int64_t           k = mgrid_lua_check_integer(L, 2);
  bool              lists = false, by_row = false;
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
  mgrid_error       e = MGRID_ERROR_INIT;
  mgrid_lua_family *inner = mgrid_lua_derive_family(L, NULL), *outer = mgrid_lua_derive_family(L, NULL);
  if (mgrid_family_split(f->f, k, lists, by_row, &inner->f, &outer->f, &e)) return mgrid_lua_raise_error(L, &e);
  mgrid_lua_made_family(L, inner, &e);
  mgrid_lua_made_family(L, outer, &e);
  return 2;
}

/* family:levels{a, b, c} -> a family per level, innermost first */
static int family_levels(lua_State *L) {
  enum { MAX = 32 };
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1), *box[MAX];
  mgrid_family     *out[MAX];
  size_t            n = 0;
  mgrid_lua_check_table(L, 2, "{ 2, 4 }");
  if (lua_rawlen(L, 2) > MAX) return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "levels: at most %d", MAX);
  mgrid_lua_stack(L, MAX + 4);
  lua_settop(L, 2);
  for (size_t i = 0; i < lua_rawlen(L, 2); i++) box[i] = mgrid_lua_derive_family(L, NULL);
  mgrid_error  e = MGRID_ERROR_INIT;
  int64_t     *sizes = mgrid_lua_check_integers(L, 2, &n);
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
  mgrid_error       e = MGRID_ERROR_INIT;
  size_t            n;
  mgrid_lua_charge_family(L, f->f);
  int64_t *sizes = mgrid_lua_check_sizes(L, 2, &n);
  box->f = mgrid_family_segments(f->f, n, sizes, &e);
  mgrid_release(sizes);
  return mgrid_lua_made_family(L, box, &e);
}

/* Replace the function at 2 with the list of its results for each group. */
static void list_order(lua_State *L, int64_t count) {
  mgrid_lua_charge(L, count);
  mgrid_lua_reserve(L, count, 16);
  lua_createtable(L, count < INT32_MAX ? (int)count : 0, 0);
  for (int64_t i = 0; i < count; i++) {
    lua_pushvalue(L, 2);
    lua_pushinteger(L, i);
    lua_call(L, 1, 1);
    if (!lua_isinteger(L, -1))
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "renumber: the function gave %s for group %" PRId64 ", not a group",
                         luaL_typename(L, -1), i);
    lua_rawseti(L, -2, i + 1);
  }
  lua_replace(L, 2);
}

/* Push the groups of the Family at 1 in the order of the list at 2. */
MGRID_APART static int renumber(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1);
  mgrid_lua_check_table(L, 2, "{ 1, 0 }");
  mgrid_lua_charge_list(L, 2, 16);
  mgrid_lua_charge_family(L, f->f);
  mgrid_lua_family *box = mgrid_lua_derive_family(L, NULL);
  mgrid_error       e = MGRID_ERROR_INIT;
  size_t            n;
  int64_t          *order = mgrid_lua_check_integers(L, 2, &n);
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

/* family:renumber{2, 0, 1}, family:renumber(function(i) return group end) */
static int family_renumber(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1);
  lua_settop(L, 2);
  if (lua_isfunction(L, 2)) list_order(L, f->f->count);
  return renumber(L);
}

/* Push the groups of the Family at 1 whose numbers are in the list at 2. */
MGRID_APART static int some_groups(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1);
  mgrid_lua_check_table(L, 2, "{ 0, 3 }");
  const int64_t listed = (int64_t)mgrid_lua_charge_list(L, 2, 64), most = f->f->max_size;
  mgrid_lua_charge_family(L, f->f);
  mgrid_lua_family *box = mgrid_lua_derive_family(L, NULL);
  mgrid_error       e = MGRID_ERROR_INIT;
  size_t            n;
  int64_t          *groups = mgrid_lua_check_integers(L, 2, &n);
  box->f = mgrid_select_by_rule(f->f, n, groups, &e);
  mgrid_release(groups);
  if (box->f || e.status) return mgrid_lua_made_family(L, box, &e);
  mgrid_lua_charge(L, 16 * listed * most); /* no rule has them: both are below 2^31 */
  mgrid_lua_reserve(L, listed * (most + 1), 24);
  groups = mgrid_lua_check_integers(L, 2, &n);
  box->f = mgrid_family_select(f->f, n, groups, &e);
  mgrid_release(groups);
  return mgrid_lua_made_family(L, box, &e);
}

int mgrid_lua_some_groups(lua_State *L) {
  if (!lua_istable(L, 2)) mgrid_lua_listed(L);
  lua_settop(L, 2);
  return some_groups(L);
}

/* family:where(function(ranks, group) return true end): the groups for which it returns true */
static int where_it_says(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1);
  const int64_t     count = f->f->count;
  lua_Integer       n = 0;
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
                                "where: the function gave %s for group %" PRId64 ", not true or false",
                                mgrid_lua_kind(L, -1), g);
    bool kept = lua_toboolean(L, -1);
    lua_pop(L, 1);
    if (!kept) continue;
    lua_pushinteger(L, g);
    lua_rawseti(L, 3, ++n);
  }
  if (n == 0) return mgrid_lua_raise(L, "where: the function is true for none of the %" PRId64 " groups", count);
  lua_replace(L, 2);
  return some_groups(L);
}

/* family:where{ pp = 0 }, family:where(grid, { pp = 0 }): the groups whose ranks are all there */
MGRID_APART static int where_there(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1);
  int64_t           coords[MGRID_DIMS_MAX];
  if (!mgrid_lua_test_box(L, 2, MGRID_LUA_GRID)) {
    mgrid_lua_check_table(L, 2, "{ pp = 0 }");
    if (lua_getiuservalue(L, 1, 1) != LUA_TUSERDATA)
      return mgrid_lua_raise(L,
                             "where: the family is of no one grid; name that of the coordinates: where(g, { pp = 0 })");
    lua_insert(L, 2);
  }
  mgrid_grid *g = mgrid_lua_check_grid(L, 2);
  mgrid_lua_check_coords(L, 3, g, -1, coords);
  mgrid_lua_family *box = mgrid_lua_derive_family(L, NULL);
  mgrid_error       e = MGRID_ERROR_INIT;
  if ((box->f = mgrid_where_by_rule(f->f, g, coords, &e)) || e.status) return mgrid_lua_made_family(L, box, &e);
  mgrid_lua_charge_lists(L, f->f); /* no rule selects them */
  mgrid_lua_charge(L, f->f->total > INT64_MAX / MGRID_DIMS_MAX ? INT64_MAX : f->f->total * (int64_t)g->n);
  box->f = mgrid_family_where(f->f, g, coords, &e);
  return mgrid_lua_made_family(L, box, &e);
}

static int family_where(lua_State *L) { return lua_isfunction(L, 2) ? where_it_says(L) : where_there(L); }

/* group:segment{5, 3} -> { index = 0, start = 0, size = 5, position = 2, ... }: this rank's piece of the group */
int mgrid_lua_group_segment(lua_State *L) {
  mgrid_segment s = MGRID_SEGMENT_INIT;
  mgrid_error   e = MGRID_ERROR_INIT;
  size_t        n;
  mgrid_lua_check_group(L, 1);
  int64_t           *sizes = mgrid_lua_check_sizes(L, 2, &n);
  const mgrid_group *g = mgrid_lua_to_group(L, 1);
  mgrid_status       status = g ? mgrid_group_segment(g, n, sizes, &s, &e) : MGRID_OK;
  mgrid_release(sizes);
  mgrid_lua_check_group(L, 1); /* reading the sizes may have closed its state */
  if (status) return mgrid_lua_raise_error(L, &e);
  const struct {
    const char *name;
    int64_t     value;
  } fields[] = { { "index", s.index }, { "start", s.start }, { "size", s.members }, { "position", s.position },
                 { "first", s.first }, { "last", s.last },   { "next", s.next },    { "prev", s.prev } };
  enum { FIELDS = sizeof fields / sizeof *fields };
  mgrid_lua_charge(L, s.members);
  lua_createtable(L, 0, FIELDS + 1);
  for (int i = 0; i < FIELDS; i++) {
    lua_pushinteger(L, fields[i].value);
    lua_setfield(L, -2, fields[i].name);
  }
  lua_createtable(L, s.members < INT32_MAX ? (int)s.members : 0, 0);
  g = mgrid_lua_check_group(L, 1);
  for (int64_t p = 0; p < s.members; p++) {
    lua_pushinteger(L, mgrid_group_at(g, s.start + p));
    lua_rawseti(L, -2, p + 1);
  }
  lua_setfield(L, -2, "ranks");
  return 1;
}

const luaL_Reg mgrid_lua_family_pieces[] = { { "split", family_split },       { "levels", family_levels },
                                             { "segments", family_segments }, { "renumber", family_renumber },
                                             { "where", family_where },       { NULL, NULL } };
