/* SPDX-License-Identifier: MIT
**
** recover_words.c - state:recover, :settle, :least and :hurt for hosts (survive/recover.c).
*/
#include "comm/state.h"
#include "moongrid_lua.h"
#include "recipe/runtime.h"
#include "recipe/values.h"
#include "survive/lua/survive_words.h"

#include <string.h>

/* The results of a recovery. State and Loss go straight into the boxes of their Lua objects, so that
** an error leaks neither. */
typedef struct made {
  mgrid_state **state;
  mgrid_loss **loss;
  mgrid_backend *backend; /* of the state; borrowed */
  mgrid_move *move;
  bool mistake; /* this rank's arguments are wrong, so it has not called the other ranks */
} made;

/* Recover. Nothing in this function raises. */
static MGRID_APART bool recover(mgrid_runtime *rt, mgrid_state *s, size_t nargs,
                                const char *const *args, const char *how,
                                const mgrid_recover_options *o, made *m, mgrid_error *err) {
  mgrid_losses_options lo = MGRID_LOSSES_OPTIONS_INIT;
  lo.how = how;
  mgrid_losses *l = mgrid_losses_new(rt, s->plan, nargs, args, &lo, err);
  m->mistake = !l;
  bool done = l && !mgrid_state_recover(s, l, o, m->state, m->loss, &m->move, err);
  if (done) m->backend = mgrid_state_backend(*m->state);
  mgrid_losses_free(l);
  return done;
}

/* Read { how, name, timeout, lost, job, nccl_shrink } at 2, and return `how`. The values stay on
** the stack. *job: the stack index of the Job, unchanged if none is given. */
static const char *recover_read_options(lua_State *L, mgrid_recover_options *o, int *job) {
  static const char *const known[] = { "how", "job", "lost", "name", "nccl_shrink", "timeout" };

  mgrid_lua_check_keys(L, 2, "option of recover", known, sizeof known / sizeof *known, false);
  if (lua_getfield(L, 2, "timeout") != LUA_TNIL) {
    if (lua_type(L, -1) != LUA_TNUMBER)
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "recover: timeout is a number of seconds, not %s",
                         mgrid_lua_kind(L, -1));
    o->timeout = lua_tonumber(L, -1);
  }
  if (lua_getfield(L, 2, "nccl_shrink") != LUA_TNIL) {
    if (lua_type(L, -1) != LUA_TBOOLEAN)
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "recover: nccl_shrink is true or false, not %s",
                         mgrid_lua_kind(L, -1));
    o->nccl_shrink = lua_toboolean(L, -1);
  }
  const char **texts[] = { &o->name, &(const char *){ NULL } };
  for (int i = 0; i < 2; i++)
    if (lua_getfield(L, 2, i ? "how" : "name") != LUA_TNIL) {
      if (lua_type(L, -1) != LUA_TSTRING)
        mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "recover: %s is a string, not %s",
                           i ? "how" : "name", mgrid_lua_kind(L, -1));
      *texts[i] = lua_tostring(L, -1);
    }
  bool given = lua_getfield(L, 2, "job") != LUA_TNIL;
  if (given) mgrid_lua_check_job(L, *job = lua_gettop(L));
  if ((lua_getfield(L, 2, "lost") != LUA_TNIL) != given)
    mgrid_lua_raise_as(
        L, MGRID_USAGE,
        "recover: give both or neither: job, the Job of the survivors, and lost, the lost ranks");
  if (given) o->lost = mgrid_lua_push_lost(L, lua_gettop(L), "recover", "lost", &o->nlost);
  return *texts[1];
}

static int recover_push_move(lua_State *L) {
  return mgrid_lua_push(L, "Move", lua_touserdata(L, 1));
}

/* state:recover([{ how, name, timeout, lost, job, nccl_shrink }]) -> State, Loss, Move, Job | nil,
** message, status. Collective. */
static int state_recover(lua_State *L) {
  mgrid_recover_options o = MGRID_RECOVER_OPTIONS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  made m = { 0 };
  size_t nargs;

  mgrid_lua_check_host_state(L);
  lua_settop(L, 2);
  mgrid_lua_stack(L, 32);
  if (lua_isnil(L, 2)) lua_newtable(L), lua_replace(L, 2);
  luaL_checktype(L, 2, LUA_TTABLE);
  int survivors = 0; /* index of the Job of the survivors; 0: none is given */
  const char *how = recover_read_options(L, &o, &survivors);
  if (strcmp(mgrid_lua_check_host_state(L)->backend->kind->name, "dry") == 0)
    return mgrid_lua_raise_as(L, MGRID_NOT_NOW,
                              "recover: a dry state has only this rank, and loses none");
  mgrid_lua_push_recipe(L, 1);
  int recipe = lua_gettop(L);
  mgrid_runtime **rt = luaL_testudata(L, recipe, MGRID_LUA_RECIPE);
  mgrid_plan **old = mgrid_lua_new_plan(L);
  *old = mgrid_plan_ref(mgrid_lua_check_host_state(L)->plan);
  const char **args = mgrid_lua_push_changed(L, &(*old)->content, &nargs);
  mgrid_lua_new_plan(L);
  int plan = lua_gettop(L);
  if (rt && *rt) lua_pushvalue(L, recipe), lua_setiuservalue(L, plan, 1);
  m.state = mgrid_lua_new_state(L, true);
  mgrid_lua_keep_recipe(L, plan);
  int state = lua_gettop(L);
  mgrid_backend **job = mgrid_lua_new_job(L);
  m.loss = mgrid_lua_new_loss(L);
  if (survivors) o.backend = mgrid_lua_check_job(L, survivors);
  mgrid_state *s = mgrid_lua_check_host_state(L);
  mgrid_runtime *asked = rt && *rt ? *rt : mgrid_state_runtime(s);
  if (!asked)
    return mgrid_lua_raise_as(
        L, MGRID_NOT_NOW,
        "what a job becomes is up to its recipe: recipe:plan(...) makes a plan that has one");
  bool done = recover(asked, s, nargs, args, how, &o, &m, &e);
  if (m.backend) *job = mgrid_backend_ref(m.backend);
  if (!done) {
    mgrid_move_free(m.move);
    return m.mistake ? mgrid_lua_raise_loss(L, &e) : mgrid_lua_failure(L, &e);
  }
  lua_pushcfunction(L, recover_push_move);
  lua_pushlightuserdata(L, m.move);
  int raised = lua_pcall(L, 1, 1, 0);
  mgrid_move_free(m.move); /* the Move is an owner now */
  if (raised) return lua_error(L);
  lua_pushvalue(L, state);
  mgrid_lua_push_loss(L, state + 2, plan);
  lua_pushvalue(L, -3); /* the Move */
  lua_pushvalue(L, state + 1);
  return 4;
}

/* state:settle([done [, message, status]]) -> true | nil, message, status. The arguments are the
** results of a call such as move:prove(job). Collective. */
static int state_settle(lua_State *L) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_lua_check_host_state(L);
  mgrid_lua_read_failure(L, 2, "settle", &e);
  if (mgrid_state_settle(mgrid_lua_check_host_state(L), e.status, &e))
    return mgrid_lua_failure(L, &e);
  return lua_pushboolean(L, true), 1;
}

/* state:least(number) -> integer | nil, message, status. Collective. */
static int state_least(lua_State *L) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_state *s = mgrid_lua_check_host_state(L);
  int64_t number = mgrid_lua_check_integer(L, 2);
  if (mgrid_state_least(s, &number, &e)) return mgrid_lua_failure(L, &e);
  return lua_pushinteger(L, number), 1;
}

/* state:hurt() -> boolean */
static int state_hurt(lua_State *L) {
  return lua_pushboolean(L, mgrid_state_hurt(mgrid_lua_check_state(L, 1))), 1;
}

const luaL_Reg mgrid_lua_survive_state[] = { { "recover", state_recover },
                                             { "settle", state_settle },
                                             { "least", state_least },
                                             { "hurt", state_hurt },
                                             { NULL, NULL } };
