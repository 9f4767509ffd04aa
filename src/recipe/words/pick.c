/* SPDX-License-Identifier: MIT
**
** pick.c - family:pick and family:map, for which a function of the recipe may return positions or ranks.
*/
#include "recipe/bind.h"

#include <inttypes.h>

/* A Lua function as a C callback. It is called through lua_pcall: an error must not jump over the
** algebra's C functions, which free what they hold. */
typedef struct lua_call {
  lua_State *L;
  int        fn;                  /* stack index of the function */
  int64_t    group, n, cap, made; /* made: members so far */
  int64_t   *positions;
  int64_t   *ranks;
} lua_call;

/* Charge for the result of a callback, which is work and memory of the recipe. */
static void count_made(lua_call *c, lua_State *L) {
  if (c->n > c->cap) return; /* the caller refuses it */
  c->made += c->n;
  mgrid_lua_charge(L, 8 * c->n + 8);
  mgrid_lua_reserve(L, c->made, 24);
}

static int call_pick(lua_State *L) { /* function, call */
  lua_call *c = lua_touserdata(L, 2);
  lua_pushvalue(L, 1);
  lua_pushinteger(L, c->n);
  lua_call(L, 1, LUA_MULTRET);
  int  results = lua_gettop(L) - 2;
  bool list = results == 1 && lua_istable(L, 3);
  c->n = list ? (int64_t)lua_rawlen(L, 3) : results;
  count_made(c, L);
  for (int64_t i = 0; i < c->n && i < c->cap; i++) {
    if (list)
      lua_rawgeti(L, 3, i + 1);
    else
      lua_pushvalue(L, (int)i + 3);
    if (!lua_isinteger(L, -1))
      return mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "pick: the function gave %s, not positions", mgrid_lua_kind(L, -1));
    c->positions[i] = lua_tointeger(L, -1);
    lua_pop(L, 1);
  }
  return 0;
}

static int call_map(lua_State *L) { /* function, call */
  lua_call *c = lua_touserdata(L, 2);
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
      return mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "map: element %d of group %d is no rank", (int)i + 1,
                                (int)c->group);
    c->ranks[i] = rank;
    lua_pop(L, 1);
  }
  return 0;
}

/* Call body(function, call); -1 on an error, whose message is then on the top of the stack. */
static int64_t protected_call(lua_call *c, lua_CFunction body, mgrid_error *err) {
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

static int64_t pick_callback(void *ud, int64_t size, int64_t *positions, int64_t cap, mgrid_error *err) {
  lua_call *c = ud;
  c->n = size, c->cap = cap, c->positions = positions;
  return protected_call(c, call_pick, err);
}

static int64_t map_callback(void *ud, int64_t group, int64_t *ranks, int64_t n, int64_t cap, mgrid_error *err) {
  lua_call *c = ud;
  c->group = group, c->n = n, c->cap = cap, c->ranks = ranks;
  return protected_call(c, call_map, err);
}

/* Push an error, to fill while a function of the recipe runs. On the C stack recipes could nest many of them. */
static mgrid_error *push_error(lua_State *L) {
  mgrid_error *e = lua_newuserdatauv(L, sizeof *e, 0);
  *e = (mgrid_error)MGRID_ERROR_INIT;
  return e;
}

/* Finish a call: the family is on the stack at `at`, its error above. If the callback raised, its message is on the
** top: raise that. */
static int done_callback(lua_State *L, mgrid_lua_family *box, int at, const mgrid_error *e) {
  if (box->f) {
    lua_settop(L, at);
    return mgrid_lua_made_family(L, box, e);
  }
  return lua_gettop(L) > at + 1 ? lua_error(L) : mgrid_lua_raise_error(L, e);
}

void mgrid_lua_listed(lua_State *L) {
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
  mgrid_error       e = MGRID_ERROR_INIT;
  size_t            n;
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
    lua_call          c = { .L = L, .fn = 2 };
    mgrid_error      *e = push_error(L);
    box->f = mgrid_family_pick_by(f->f, pick_callback, &c, e);
    return done_callback(L, box, 3, e);
  }
  if (lua_gettop(L) == 1)
    return mgrid_lua_raise(L, "an empty pick: name at least one position of groups of %" PRId64, f->f->max_size);
  if (!lua_istable(L, 2)) mgrid_lua_listed(L);
  return pick_list(L, f);
}

/* family:map(function(ranks, group) return ranks end): a table, O(world) */
int mgrid_lua_family_map(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1);
  mgrid_lua_charge_lists(L, f->f);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  mgrid_lua_family *box = mgrid_lua_derive_family(L, NULL);
  mgrid_error      *e = push_error(L);
  lua_call          c = { .L = L, .fn = 2 };
  box->f = mgrid_family_map(f->f, map_callback, &c, e);
  return done_callback(L, box, 3, e);
}
