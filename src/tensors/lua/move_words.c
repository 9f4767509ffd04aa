/* SPDX-License-Identifier: MIT
**
** move_words.c - moves in Lua, for hosts: the messages of one rank (Move) or of all ranks (Moves),
** and the proof of a move.
*/
#include "moongrid_lua.h"

#include "tensors/lua/tensor_words.h"

#include "comm/state.h"
#include "tensors/between_plans.h"

#include <inttypes.h>

static mgrid_move *check_move(lua_State *L, int i) {
  return *(mgrid_move **)mgrid_lua_check_box(L, i, MGRID_LUA_MOVE);
}

/* Return the Plan at i, or the plan of the State at i. *state: this state, or NULL. */
static const mgrid_plan *move_check_side(lua_State *L, int i, const mgrid_state **state) {
  *state = NULL;
  if (!lua_isuserdata(L, i) || luaL_testudata(L, i, MGRID_LUA_PLAN))
    return mgrid_lua_check_plan(L, i);
  *state = mgrid_lua_check_state(L, i);
  return (*state)->plan;
}

/* Return the length of the list on the top. A list with holes may have any length. */
static size_t move_length(lua_State *L, const char *what) {
  luaL_checktype(L, -1, LUA_TTABLE);
  size_t n = lua_rawlen(L, -1);
  if (n > (size_t)MGRID_WORLD_MAX)
    mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "%s has more than %" PRId64 " elements", what,
                       MGRID_WORLD_MAX);
  return n;
}

/* Return the names in the list `tensors` of the table at i; NULL if the table has no such list. The
** array of names stays on the stack. So does a copy of the list, which keeps the names alive even
** if the caller's list changes. */
static const char **move_read_tensors(lua_State *L, int i, size_t *n) {
  if (lua_getfield(L, i, "tensors") == LUA_TNIL) return NULL;
  *n = move_length(L, "tensors");
  const char **names = lua_newuserdatauv(L, (*n + 1) * sizeof *names, 0);
  lua_newtable(L);
  for (size_t k = 0; k < *n; k++) {
    if (lua_rawgeti(L, -3, (lua_Integer)k + 1) != LUA_TSTRING)
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "tensors is a list of names; number %d is %s",
                         (int)k + 1, mgrid_lua_kind(L, -1));
    names[k] = lua_tostring(L, -1);
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
  return names;
}

/* Read the list `ranks` of the table at i, if the table has it. The array stays on the stack. */
static void move_read_ranks(lua_State *L, int i, mgrid_move_options *o) {
  if (lua_getfield(L, i, "ranks") == LUA_TNIL) return;
  o->nranks = move_length(L, "ranks");
  int64_t *ranks = lua_newuserdatauv(L, (o->nranks + 1) * sizeof *ranks, 0);
  for (size_t k = 0; k < o->nranks; k++) {
    int whole;
    lua_rawgeti(L, -2, (lua_Integer)k + 1);
    lua_Integer rank = lua_tointegerx(L, -1, &whole);
    if (!whole || rank < -1 || rank > INT32_MAX)
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "ranks is a list of ranks; number %d is not a rank",
                         (int)k + 1);
    ranks[k] = rank;
    lua_pop(L, 1);
  }
  o->ranks = ranks;
}

static void free_move(void *box) { mgrid_move_free(*(mgrid_move **)box); }

static void push_planned(lua_State *L, const void *m) {
  mgrid_move **box = mgrid_lua_new_box(L, sizeof *box, 0, MGRID_LUA_MOVE, free_move);
  *box = mgrid_move_ref((void *)m);
}

static void *to_move(lua_State *L, int i, const char *class) {
  mgrid_move **box = mgrid_lua_test_box(L, i, class);
  return box ? *box : NULL;
}

const mgrid_lua_handed mgrid_lua_move_handed = { MGRID_LUA_MOVE, push_planned, to_move };

/* The options of move and moves, argument 3. Arguments 1 and 2 are Plans or States. */
typedef struct asked {
  int64_t rank; /* of the State; -1: both sides are Plans */
  size_t n;
  const char **tensors;
  mgrid_move_options options;
} asked;

static void read_asked(lua_State *L, asked *a, size_t n, const char *const *known) {
  const mgrid_state *old, *new;
  *a = (asked){ .rank = -1, .options = MGRID_MOVE_OPTIONS_INIT };
  lua_settop(L, 3);
  mgrid_lua_stack(L, 16);
  move_check_side(L, 2, &new), move_check_side(L, 1, &old);
  if (old || new) a->rank = old ? old->view.rank : new->view.rank;
  if (old && new) a->options.machine = mgrid_states_machine(old, new);
  if (lua_isnil(L, 3)) return;
  luaL_checktype(L, 3, LUA_TTABLE);
  mgrid_lua_check_keys(L, 3, "option of a move", known, n, false);
  lua_getfield(L, 3, "convert");
  a->options.convert = lua_toboolean(L, -1);
  if (lua_getfield(L, 3, "machine") != LUA_TNIL)
    a->options.machine = mgrid_lua_check_integer(L, -1);
  a->tensors = move_read_tensors(L, 3, &a->n);
  move_read_ranks(L, 3, &a->options);
}

/* move(from, to [, { rank, tensors, rounds, ranks, convert, machine }]) -> Move */
static int new_move(lua_State *L) {
  static const char *const known[] = { "rank", "tensors", "rounds", "ranks", "convert", "machine" };
  mgrid_error e = MGRID_ERROR_INIT;
  const mgrid_state *state;
  asked a;
  read_asked(L, &a, sizeof known / sizeof known[0], known);
  if (!lua_isnil(L, 3)) {
    if (lua_getfield(L, 3, "rank") != LUA_TNIL) a.rank = mgrid_lua_check_integer(L, -1);
    lua_getfield(L, 3, "rounds");
    a.options.rounds = lua_toboolean(L, -1);
  }
  if (a.rank < 0)
    mgrid_lua_raise_as(L, MGRID_USAGE,
                       "a move between plans needs the rank that it is seen from: { rank = r }");
  mgrid_move **box = mgrid_lua_new_box(L, sizeof *box, 0, MGRID_LUA_MOVE, free_move);
  const mgrid_plan *to = move_check_side(L, 2, &state), *from = move_check_side(L, 1, &state);
  *box = mgrid_move_new(from, to, a.rank, a.n, a.tensors, &a.options, &e);
  return *box ? 1 : mgrid_lua_raise_error(L, &e);
}

static int move_rank(lua_State *L) { return lua_pushinteger(L, check_move(L, 1)->rank), 1; }
static int move_stay(lua_State *L) { return lua_pushinteger(L, check_move(L, 1)->sums.stay), 1; }
static int move_send(lua_State *L) { return lua_pushinteger(L, check_move(L, 1)->sums.send), 1; }
static int move_receive(lua_State *L) {
  return lua_pushinteger(L, check_move(L, 1)->sums.receive), 1;
}

/* move.rounds -> integer | nil: the move has no rounds */
static int move_rounds(lua_State *L) {
  int64_t rounds = check_move(L, 1)->sums.rounds;
  return rounds ? lua_pushinteger(L, rounds) : lua_pushnil(L), 1;
}

static int move_tensors(lua_State *L) {
  const mgrid_move *m = check_move(L, 1);
  MGRID_LUA_LIST(L, m->pairs.n, lua_pushstring(L, m->pairs.name[i]));
  return 1;
}

/* move.peers -> { { rank, send, receive, send_round, receive_round }, ... }, by rank */
static int move_peers(lua_State *L) {
  const mgrid_move *m = check_move(L, 1);
  lua_createtable(L, (int)m->npeers, 0);
  for (size_t i = 0; i < m->npeers; i++) {
    const mgrid_move_peer *p = &m->peer[i];
    lua_createtable(L, 0, 5);
    mgrid_lua_set_integer(L, "rank", p->rank);
    mgrid_lua_set_integer(L, "send", p->send);
    mgrid_lua_set_integer(L, "receive", p->receive);
    if (p->send_round >= 0) mgrid_lua_set_integer(L, "send_round", p->send_round);
    if (p->receive_round >= 0) mgrid_lua_set_integer(L, "receive_round", p->receive_round);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* move:prove(job [, { window, timeout }]) -> true | nil, message, status. Collective. */
static int move_prove(lua_State *L) {
  static const char *const known[] = { "window", "timeout" };
  mgrid_move *m = check_move(L, 1);
  mgrid_move_run_options o = MGRID_MOVE_RUN_OPTIONS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_lua_check_job(L, 2);
  lua_settop(L, 3);
  if (!lua_isnil(L, 3)) {
    luaL_checktype(L, 3, LUA_TTABLE);
    mgrid_lua_check_keys(L, 3, "option of a proof", known, sizeof known / sizeof known[0], false);
    if (lua_getfield(L, 3, "window") != LUA_TNIL) o.window = mgrid_lua_check_integer(L, -1);
    if (lua_getfield(L, 3, "timeout") != LUA_TNIL) o.timeout = luaL_checknumber(L, -1);
  }
  if (mgrid_move_prove(m, mgrid_lua_check_job(L, 2), &o, &e)) return mgrid_lua_failure(L, &e);
  return lua_pushboolean(L, true), 1;
}

static void push_tally(lua_State *L, const mgrid_tally *t, int64_t machine) {
  lua_createtable(L, 0, 12);
  mgrid_lua_set_integer(L, "stay", t->stay);
  mgrid_lua_set_integer(L, "sent", t->sent);
  mgrid_lua_set_integer(L, "minimum", t->minimum);
  mgrid_lua_set_integer(L, "max_send", t->max_send);
  mgrid_lua_set_integer(L, "max_receive", t->max_receive);
  mgrid_lua_set_integer(L, "peers", t->peers);
  mgrid_lua_set_integer(L, "messages", t->messages);
  mgrid_lua_set_integer(L, "busiest", t->busiest);
  mgrid_lua_set_integer(L, "gather", t->gather);
  if (t->rounds >= 0) mgrid_lua_set_integer(L, "rounds", t->rounds);
  if (machine) mgrid_lua_set_integer(L, "crossing", t->crossing);
}

/* Push a list of the sums over all ranks for each tensor, and the sums for all tensors. */
static void push_sums(lua_State *L, const mgrid_pairs *p, const mgrid_schedule *s) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_tally *tally = lua_newuserdatauv(L, (p->n + 1) * sizeof *tally, 0);
  if (mgrid_pairs_tally(p, s, tally, &e)) mgrid_lua_raise_error(L, &e);
  lua_createtable(L, (int)p->n, 0);
  for (size_t i = 0; i < p->n; i++) {
    push_tally(L, &tally[i], p->machine);
    mgrid_lua_set_string(L, "name", p->name[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  push_tally(L, &tally[p->n], p->machine);
}

/* move:sums() -> { { name, stay, sent, ... }, ... } by tensor, { stay, sent, ... } of all tensors:
** sums over all ranks */
static int move_sums(lua_State *L) {
  push_sums(L, &check_move(L, 1)->pairs, NULL);
  return 2;
}

static int move_tostring(lua_State *L) {
  const mgrid_move *m = check_move(L, 1);
  lua_pushfstring(L, "Move of %d tensors: rank %I sends %I bytes, receives %I", (int)m->pairs.n,
                  (lua_Integer)m->rank, (lua_Integer)m->sums.send, (lua_Integer)m->sums.receive);
  return 1;
}

static const luaL_Reg move_fields[] = { { "rank", move_rank },     { "stay", move_stay },
                                        { "send", move_send },     { "receive", move_receive },
                                        { "rounds", move_rounds }, { "tensors", move_tensors },
                                        { "peers", move_peers },   { NULL, NULL } };
static const luaL_Reg move_methods[] = { { "prove", move_prove },
                                         { "sums", move_sums },
                                         { NULL, NULL } };
static const luaL_Reg move_meta[] = { { "__tostring", move_tostring },
                                      { "__gc", mgrid_lua_free_box },
                                      { NULL, NULL } };
static const mgrid_lua_class move_class = { MGRID_LUA_MOVE, move_fields, move_methods, NULL,
                                            move_meta };

/* -------------------------------------------------------- moves of all ranks */

typedef struct moves {
  mgrid_pairs pairs;
  mgrid_schedule schedule;
  bool scheduled;      /* the schedule was made, or could not be */
  mgrid_error why;     /* why it could not be made */
  mgrid_messages list; /* the messages of one rank */
} moves;

static void free_moves(void *box) {
  moves *m = box;
  mgrid_release(m->list.at);
  mgrid_schedule_free(&m->schedule);
  mgrid_pairs_free(&m->pairs);
}

static moves *check_moves(lua_State *L) { return mgrid_lua_check_box(L, 1, MGRID_LUA_MOVES); }

/* moves(from, to [, { tensors, ranks, convert, machine }]) -> Moves */
static int new_moves(lua_State *L) {
  static const char *const known[] = { "tensors", "ranks", "convert", "machine" };
  mgrid_error e = MGRID_ERROR_INIT;
  const mgrid_state *state;
  asked a;
  read_asked(L, &a, sizeof known / sizeof known[0], known);
  moves *m = mgrid_lua_new_box(L, sizeof *m, 0, MGRID_LUA_MOVES, free_moves);
  const mgrid_plan *to = move_check_side(L, 2, &state), *from = move_check_side(L, 1, &state);
  m->why = (mgrid_error)MGRID_ERROR_INIT;
  return mgrid_pairs_init(&m->pairs, from, to, a.n, a.tensors, &a.options, &e)
             ? mgrid_lua_raise_error(L, &e)
             : 1;
}

/* Return the schedule of the messages, or NULL if there are too many messages. */
static const mgrid_schedule *schedule_of(lua_State *L, moves *m) {
  if (!m->scheduled && mgrid_schedule_make(&m->schedule, &m->pairs, &m->why)
      && m->why.status != MGRID_LIMIT)
    mgrid_lua_raise_error(L, &m->why);
  m->scheduled = true;
  return m->why.status ? NULL : &m->schedule;
}

/* moves:sums() -> the two results of move:sums(); nil, or a message that says why there are no
** rounds */
static int moves_sums(lua_State *L) {
  moves *m = check_moves(L);
  const mgrid_schedule *s = schedule_of(L, m);
  push_sums(L, &m->pairs, s);
  lua_pushstring(L, s ? NULL : m->why.message);
  return 3;
}

/* moves:messages(rank) -> { { from, to, tensor, bytes, round }, ... }: what the rank sends, by
** receiver, then by tensor */
static int moves_messages(lua_State *L) {
  moves *m = check_moves(L);
  int64_t rank = mgrid_lua_check_integer(L, 2);
  const mgrid_schedule *s = schedule_of(L, m);
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_check_rank(rank, m->pairs.ranks, &e)) return mgrid_lua_raise_error(L, &e);
  if (!mgrid_pairs_messages(&m->pairs, rank, true, &m->list)) return mgrid_lua_oom(L);
  lua_createtable(L, (int)m->list.n, 0);
  for (size_t i = 0; i < m->list.n; i++) {
    const mgrid_message *x = &m->list.at[i];
    lua_createtable(L, 0, 5);
    mgrid_lua_set_integer(L, "from", x->from);
    mgrid_lua_set_integer(L, "to", x->to);
    mgrid_lua_set_integer(L, "bytes", x->bytes);
    if (s) mgrid_lua_set_integer(L, "round", mgrid_schedule_round(s, x->from, x->to));
    mgrid_lua_set_string(L, "tensor", m->pairs.name[x->tensor]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

static int moves_ranks(lua_State *L) { return lua_pushinteger(L, check_moves(L)->pairs.ranks), 1; }

static int moves_tensors(lua_State *L) {
  const mgrid_pairs *p = &check_moves(L)->pairs;
  MGRID_LUA_LIST(L, p->n, lua_pushstring(L, p->name[i]));
  return 1;
}

static int moves_tostring(lua_State *L) {
  const mgrid_pairs *p = &check_moves(L)->pairs;
  lua_pushfstring(L, "Moves of %d tensors between %I ranks", (int)p->n, (LUAI_UACINT)p->ranks);
  return 1;
}

static const luaL_Reg moves_fields[] = { { "ranks", moves_ranks },
                                         { "tensors", moves_tensors },
                                         { NULL, NULL } };
static const luaL_Reg moves_methods[] = { { "sums", moves_sums },
                                          { "messages", moves_messages },
                                          { NULL, NULL } };
static const luaL_Reg moves_meta[] = { { "__tostring", moves_tostring },
                                       { "__gc", mgrid_lua_free_box },
                                       { NULL, NULL } };
static const mgrid_lua_class moves_class = { MGRID_LUA_MOVES, moves_fields, moves_methods, NULL,
                                             moves_meta };

void mgrid_lua_open_move(lua_State *L) {
  static const luaL_Reg functions[] = { { "move", new_move },
                                        { "moves", new_moves },
                                        { NULL, NULL } };
  mgrid_lua_open_class(L, &move_class);
  mgrid_lua_open_class(L, &moves_class);
  luaL_setfuncs(L, functions, 0);
}
