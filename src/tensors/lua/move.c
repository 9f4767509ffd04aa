/* SPDX-License-Identifier: MIT
**
** move.c - moves in Lua, for hosts: what a rank sends and receives when tensors change their layout, and the proof.
*/
#include "moongrid_lua.h"

#include "tensors/lua/words.h"

#include "comm/state.h"
#include "tensors/between_plans.h"

#include <inttypes.h>

static mgrid_move *check_move(lua_State *L, int i) { return *(mgrid_move **)mgrid_lua_check_box(L, i, MGRID_LUA_MOVE); }

/* Return the plan at i. It may be that of a State, which is put into *state. */
static const mgrid_plan *check_side(lua_State *L, int i, const mgrid_state **state) {
  *state = NULL;
  if (!lua_isuserdata(L, i) || luaL_testudata(L, i, MGRID_LUA_PLAN)) return mgrid_lua_check_plan(L, i);
  *state = mgrid_lua_check_state(L, i);
  return (*state)->plan;
}

/* Return the length of the list on the top. With holes it may seem to have any length. */
static size_t length(lua_State *L, const char *what) {
  luaL_checktype(L, -1, LUA_TTABLE);
  size_t n = lua_rawlen(L, -1);
  if (n > (size_t)MGRID_WORLD_MAX)
    mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "%s has more than %" PRId64 " elements", what, MGRID_WORLD_MAX);
  return n;
}

/* Return the names in the list `tensors` of the table at i. The array stays on the stack, and a list of the names: the
** caller's may change. */
static const char **read_tensors(lua_State *L, int i, size_t *n) {
  if (lua_getfield(L, i, "tensors") == LUA_TNIL) return NULL;
  *n = length(L, "tensors");
  const char **names = lua_newuserdatauv(L, (*n + 1) * sizeof *names, 0);
  lua_newtable(L);
  for (size_t k = 0; k < *n; k++) {
    if (lua_rawgeti(L, -3, (lua_Integer)k + 1) != LUA_TSTRING)
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "tensors is a list of names; number %d is %s", (int)k + 1,
                         mgrid_lua_kind(L, -1));
    names[k] = lua_tostring(L, -1);
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
  return names;
}

/* Read the list `ranks` in the same way. */
static void read_ranks(lua_State *L, int i, mgrid_move_options *o) {
  if (lua_getfield(L, i, "ranks") == LUA_TNIL) return;
  o->nranks = length(L, "ranks");
  int64_t *ranks = lua_newuserdatauv(L, (o->nranks + 1) * sizeof *ranks, 0);
  for (size_t k = 0; k < o->nranks; k++) {
    int whole;
    lua_rawgeti(L, -2, (lua_Integer)k + 1);
    lua_Integer rank = lua_tointegerx(L, -1, &whole);
    if (!whole || rank < -1 || rank > INT32_MAX)
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "ranks is a list of ranks; number %d is not a rank", (int)k + 1);
    ranks[k] = rank;
    lua_pop(L, 1);
  }
  o->ranks = ranks;
}

static void free_move(void *box) { mgrid_move_free(*(mgrid_move **)box); }

int mgrid_lua_push_move(lua_State *L, mgrid_move *m) {
  if (mgrid_lua_push_nothing(L, m, MGRID_LUA_MOVE)) return 1;
  *(mgrid_move **)mgrid_lua_new_box(L, sizeof m, 0, MGRID_LUA_MOVE, free_move) = mgrid_move_ref(m);
  return 1;
}

mgrid_move *mgrid_lua_to_move(lua_State *L, int i) {
  mgrid_move **box = mgrid_lua_test_box(L, i, MGRID_LUA_MOVE);
  return box ? *box : NULL;
}

/* move(from, to [, { rank, tensors, rounds, ranks, convert, machine }]) -> Move */
static int new_move(lua_State *L) {
  static const char *const known[] = { "rank", "tensors", "rounds", "ranks", "convert", "machine" };
  mgrid_move_options       o = MGRID_MOVE_OPTIONS_INIT;
  mgrid_error              e = MGRID_ERROR_INIT;
  const mgrid_state       *old, *new;
  size_t                   n = 0;
  const char             **tensors = NULL;
  lua_settop(L, 3);
  mgrid_lua_stack(L, 16);
  check_side(L, 2, &new), check_side(L, 1, &old);
  int64_t rank = old ? old->view.rank : new ? new->view.rank : -1;
  if (old && new) o.machine = mgrid_states_machine(old, new);
  if (!lua_isnil(L, 3)) {
    luaL_checktype(L, 3, LUA_TTABLE);
    mgrid_lua_check_keys(L, 3, "option of a move", known, sizeof known / sizeof known[0], false);
    if (lua_getfield(L, 3, "rank") != LUA_TNIL) rank = mgrid_lua_check_integer(L, -1);
    lua_getfield(L, 3, "rounds");
    o.rounds = lua_toboolean(L, -1);
    lua_getfield(L, 3, "convert");
    o.convert = lua_toboolean(L, -1);
    if (lua_getfield(L, 3, "machine") != LUA_TNIL) o.machine = mgrid_lua_check_integer(L, -1);
    tensors = read_tensors(L, 3, &n);
    read_ranks(L, 3, &o);
  }
  if (rank < 0)
    mgrid_lua_raise_as(L, MGRID_USAGE, "a move between plans needs the rank that it is seen from: { rank = r }");
  mgrid_move      **box = mgrid_lua_new_box(L, sizeof *box, 0, MGRID_LUA_MOVE, free_move);
  const mgrid_plan *to = check_side(L, 2, &new), *from = check_side(L, 1, &old);
  *box = mgrid_move_new(from, to, rank, n, tensors, &o, &e);
  return *box ? 1 : mgrid_lua_raise_error(L, &e);
}

static void set_integer(lua_State *L, const char *name, int64_t value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, name);
}

static int move_rank(lua_State *L) { return lua_pushinteger(L, check_move(L, 1)->rank), 1; }
static int move_stay(lua_State *L) { return lua_pushinteger(L, check_move(L, 1)->sums.stay), 1; }
static int move_send(lua_State *L) { return lua_pushinteger(L, check_move(L, 1)->sums.send), 1; }
static int move_receive(lua_State *L) { return lua_pushinteger(L, check_move(L, 1)->sums.receive), 1; }

/* nil if they were not asked for */
static int move_rounds(lua_State *L) {
  int64_t rounds = check_move(L, 1)->sums.rounds;
  return rounds ? lua_pushinteger(L, rounds) : lua_pushnil(L), 1;
}

static int move_tensors(lua_State *L) {
  const mgrid_move *m = check_move(L, 1);
  MGRID_LUA_LIST(L, m->pairs.n, lua_pushstring(L, m->pairs.name[i]));
  return 1;
}

/* { { rank, send, receive, send_round, receive_round }, ... } by rank */
static int move_peers(lua_State *L) {
  const mgrid_move *m = check_move(L, 1);
  lua_createtable(L, (int)m->npeers, 0);
  for (size_t i = 0; i < m->npeers; i++) {
    const mgrid_move_peer *p = &m->peer[i];
    lua_createtable(L, 0, 5);
    set_integer(L, "rank", p->rank);
    set_integer(L, "send", p->send);
    set_integer(L, "receive", p->receive);
    if (p->send_round >= 0) set_integer(L, "send_round", p->send_round);
    if (p->receive_round >= 0) set_integer(L, "receive_round", p->receive_round);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* move:prove(job [, { window, timeout, messages }]) -> true | nil, message, status. Collective. */
static int move_prove(lua_State *L) {
  static const char *const known[] = { "window", "timeout", "messages" };
  mgrid_move              *m = check_move(L, 1);
  mgrid_move_run_options   o = MGRID_MOVE_RUN_OPTIONS_INIT;
  mgrid_error              e = MGRID_ERROR_INIT;
  mgrid_lua_check_job(L, 2);
  lua_settop(L, 3);
  if (!lua_isnil(L, 3)) {
    luaL_checktype(L, 3, LUA_TTABLE);
    mgrid_lua_check_keys(L, 3, "option of a proof", known, sizeof known / sizeof known[0], false);
    if (lua_getfield(L, 3, "window") != LUA_TNIL) o.window = mgrid_lua_check_integer(L, -1);
    if (lua_getfield(L, 3, "timeout") != LUA_TNIL) o.timeout = luaL_checknumber(L, -1);
    lua_getfield(L, 3, "messages");
    o.messages = lua_toboolean(L, -1);
  }
  if (mgrid_move_prove(m, mgrid_lua_check_job(L, 2), &o, &e)) return mgrid_lua_failure(L, &e);
  return lua_pushboolean(L, true), 1;
}

static int move_tostring(lua_State *L) {
  const mgrid_move *m = check_move(L, 1);
  lua_pushfstring(L, "Move of %d tensors: rank %I sends %I bytes, receives %I", (int)m->pairs.n, (lua_Integer)m->rank,
                  (lua_Integer)m->sums.send, (lua_Integer)m->sums.receive);
  return 1;
}

static const luaL_Reg move_fields[] = { { "rank", move_rank },     { "stay", move_stay },
                                        { "send", move_send },     { "receive", move_receive },
                                        { "rounds", move_rounds }, { "tensors", move_tensors },
                                        { "peers", move_peers },   { NULL, NULL } };
static const luaL_Reg move_methods[] = { { "prove", move_prove }, { NULL, NULL } };
static const luaL_Reg move_meta[] = { { "__tostring", move_tostring }, { "__gc", mgrid_lua_free_box }, { NULL, NULL } };
static const mgrid_lua_class move_class = { MGRID_LUA_MOVE, move_fields, move_methods, NULL, move_meta };

void mgrid_lua_open_move(lua_State *L) {
  static const luaL_Reg functions[] = { { "move", new_move }, { NULL, NULL } };
  mgrid_lua_open_class(L, &move_class);
  luaL_setfuncs(L, functions, 0);
}
