/* SPDX-License-Identifier: MIT
**
** losses.c - for hosts: plan:lose{ ranks = { 5, 13 } }, whose result is a table (a Loss), and
** plan:losses(), whose result is an object with the methods lose and sums. Also plan:holders(...)
** and plan:together(...), which find the copies of a tensor's parts.
*/
#include "recipe/runtime.h"
#include "recipe/values.h"
#include "survive/lua/survive_words.h"

#include <inttypes.h>
#include <string.h>

/* the box of the C object; the Loss itself is a table, whose __tostring has the box as an
** upvalue */
#define LOSS   "moongrid.Loss"
#define LOSSES "moongrid.Losses" /* its user value is the Recipe */

/* ---------------------------------------------------------------- arguments */

const char **mgrid_lua_push_changed(lua_State *L, const mgrid_content *c, size_t *n) {
  const char **args = lua_newuserdatauv(L, (c->nparams + 1) * sizeof *args, 1);
  lua_newtable(L); /* keeps the strings alive */
  *n = 0;
  for (size_t i = 0; i < c->nparams; i++) {
    if (c->param[i].usual) continue;
    args[(*n)++] = lua_pushfstring(L, "%s=%s", c->param[i].name, c->param[i].value);
    lua_rawseti(L, -2, (lua_Integer)*n);
  }
  lua_setiuservalue(L, -2, 1);
  return args;
}

/* Push and return an array of the arguments with which the Plan at 1 was made, or if these are not
** known, of its parameters that differ from their defaults. *file: the file of parameters, or
** NULL. */
static const char **push_given(lua_State *L, const mgrid_plan *p, size_t *n, const char **file) {
  *file = NULL;
  if (lua_getiuservalue(L, 1, 2) != LUA_TTABLE) return mgrid_lua_push_changed(L, &p->content, n);
  *n = lua_rawlen(L, -1);
  const char **args = lua_newuserdatauv(L, (*n + 1) * sizeof *args, 0);
  for (size_t i = 0; i <= *n; i++) { /* the table stays on the stack, and keeps the strings alive */
    if (i == *n)
      lua_getfield(L, -2, "file");
    else
      lua_rawgeti(L, -2, (lua_Integer)i + 1);
    *(i == *n ? file : &args[i]) = lua_tostring(L, -1);
    lua_pop(L, 1);
  }
  return args;
}

int64_t *mgrid_lua_push_lost(lua_State *L, int i, const char *call, const char *name, size_t *n) {
  if (lua_type(L, i) != LUA_TTABLE)
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "%s: %s is a list of lost ranks, not %s", call, name,
                       mgrid_lua_kind(L, i));
  *n = lua_rawlen(L, i);
  if (*n > (size_t)MGRID_WORLD_MAX)
    mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "%s: %s has more than %" PRId64 " elements", call,
                       name, MGRID_WORLD_MAX);
  int64_t *ranks = lua_newuserdatauv(L, (*n + 1) * sizeof *ranks, 0);
  for (size_t k = 0; k < *n; k++) {
    lua_rawgeti(L, i, (lua_Integer)k + 1);
    if (!lua_isinteger(L, -1))
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "%s: number %d of %s is %s, not a rank", call,
                         (int)k + 1, name, mgrid_lua_kind(L, -1));
    ranks[k] = lua_tointeger(L, -1);
    lua_pop(L, 1);
  }
  return ranks;
}

int mgrid_lua_raise_loss(lua_State *L, const mgrid_error *e) {
  if (!e->line) return mgrid_lua_raise_error(L, e);
  mgrid_lua_note(L, e->status, e->message);
  lua_pushstring(L, e->message);
  return lua_error(L);
}

/* --------------------------------------------------------------------- Loss */

static void free_loss(void *box) { mgrid_loss_free(*(mgrid_loss **)box); }

mgrid_loss **mgrid_lua_new_loss(lua_State *L) {
  return mgrid_lua_new_box(L, sizeof(mgrid_loss *), 0, LOSS, free_loss);
}

static int loss_tostring(lua_State *L) { /* upvalue: the box */
  mgrid_loss **box = mgrid_lua_check_box(L, lua_upvalueindex(1), LOSS);
  mgrid_text t = { 0 };
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_loss_print(*box, false, mgrid_text_sink, &t, &e)) {
    mgrid_text_free(&t);
    return mgrid_lua_raise_error(L, &e);
  }
  if (t.len) t.data[--t.len] = '\0'; /* print adds the newline */
  mgrid_lua_push_text(L, &t);
  return 1;
}

int mgrid_lua_push_loss(lua_State *L, int box, int plan) {
  const mgrid_loss *x = *(mgrid_loss **)mgrid_lua_check_box(L, box, LOSS);
  json_t *told = mgrid_loss_json(x);
  if (!told) return mgrid_lua_oom(L);
  if (mgrid_take_json(L, told)) return lua_error(L);
  if (mgrid_loss_plan(x)) {
    *(mgrid_plan **)mgrid_lua_in_box(lua_touserdata(L, plan)) = mgrid_plan_ref(mgrid_loss_plan(x));
    lua_pushvalue(L, plan);
    lua_setfield(L, -2, "plan");
  }
  lua_createtable(L, 0, 1);
  lua_pushvalue(L, box);
  lua_pushcclosure(L, loss_tostring, 1);
  lua_setfield(L, -2, "__tostring");
  lua_setmetatable(L, -2);
  return 1;
}

/* ------------------------------------------------------------------- Losses */

static void free_losses(void *box) { mgrid_losses_free(*(mgrid_losses **)box); }

/* Push the Losses of the Plan at 1. A Recipe must have made the Plan. `how` is the answer to every
** loss, or NULL. */
static void push_losses(lua_State *L, const char *how) {
  mgrid_losses_options o = MGRID_LOSSES_OPTIONS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  size_t n;
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  lua_getiuservalue(L, 1, 1);
  mgrid_runtime **rt = luaL_testudata(L, -1, MGRID_LUA_RECIPE);
  if (!rt || !*rt)
    mgrid_lua_raise_as(
        L, MGRID_NOT_NOW,
        "what a job becomes is up to its recipe: recipe:plan(...) makes a plan that has one");
  const char **args = push_given(L, p, &n, &o.params);
  o.how = how;
  mgrid_losses **box = mgrid_lua_new_box(L, sizeof *box, 1, LOSSES, free_losses);
  lua_getiuservalue(L, 1, 1);
  lua_setiuservalue(L, -2, 1);
  *box = mgrid_losses_new(*rt, p, n, args, &o, &e);
  if (!*box) mgrid_lua_raise_loss(L, &e);
}

/* Decide about the loss of these ranks, by the Losses at i, and push the Loss. */
static int push_loss_of(lua_State *L, int i, size_t n, const int64_t *ranks) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_loss **box = mgrid_lua_new_loss(L);
  int at = lua_gettop(L);
  mgrid_lua_new_plan(L);
  lua_getiuservalue(L, i, 1);
  lua_setiuservalue(L, -2, 1);
  *box = mgrid_loss_new(*(mgrid_losses **)mgrid_lua_check_box(L, i, LOSSES), n, ranks, &e);
  return *box ? mgrid_lua_push_loss(L, at, at + 1) : mgrid_lua_raise_loss(L, &e);
}

/* plan:lose{ ranks = { 5, 13 } [, how = "shrink"] } -> Loss */
int mgrid_lua_plan_lose(lua_State *L) {
  size_t n;
  mgrid_lua_check_plan(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  lua_getfield(L, 2, "how");
  lua_getfield(L, 2, "ranks");
  const int64_t *ranks = mgrid_lua_push_lost(L, 4, "lose", "ranks", &n);
  push_losses(L, luaL_optstring(L, 3, NULL));
  return push_loss_of(L, lua_gettop(L), n, ranks);
}

/* plan:losses([{ how = "shrink" }]) -> Losses */
int mgrid_lua_plan_losses(lua_State *L) {
  static const char *const known[] = { "how" };
  mgrid_lua_check_plan(L, 1);
  lua_settop(L, 2);
  if (lua_isnil(L, 2)) lua_newtable(L), lua_replace(L, 2);
  luaL_checktype(L, 2, LUA_TTABLE);
  mgrid_lua_check_keys(L, 2, "option of losses", known, 1, false);
  lua_getfield(L, 2, "how");
  push_losses(L, luaL_optstring(L, 3, NULL));
  return 1;
}

/* losses:lose{ 5, 13 } -> Loss */
static int losses_lose(lua_State *L) {
  size_t n;
  mgrid_lua_check_box(L, 1, LOSSES);
  const int64_t *ranks = mgrid_lua_push_lost(L, 2, "lose", "the argument", &n);
  return push_loss_of(L, 1, n, ranks);
}

/* losses:sums{ 5, 13 } -> { how, why, params, layout, ... } */
static int losses_sums(lua_State *L) {
  mgrid_error e = MGRID_ERROR_INIT;
  size_t n;

  mgrid_lua_check_box(L, 1, LOSSES);
  const int64_t *ranks = mgrid_lua_push_lost(L, 2, "sums", "the argument", &n);
  mgrid_loss **box = mgrid_lua_new_loss(L), *x;
  *box = x = mgrid_loss_new(*(mgrid_losses **)mgrid_lua_check_box(L, 1, LOSSES), n, ranks, &e);
  if (!x) return mgrid_lua_raise_loss(L, &e);
  const struct {
    const char *name;
    int64_t value;
  } sums[] = { { "layout", x->sums.layout },      { "idle", x->sums.idle },
               { "kept", x->sums.kept },          { "made", x->sums.made },
               { "dropped", x->sums.dropped },    { "stay", x->sums.stay },
               { "moved", x->sums.moved },        { "missing", x->sums.missing },
               { "uncounted", x->sums.uncounted } };
  lua_createtable(L, 0, 12);
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
    mgrid_lua_set_integer(L, sums[i].name, sums[i].value);
  mgrid_lua_set_string(L, "how", mgrid_loss_answers[x->how]);
  mgrid_lua_set_string(L, "why", mgrid_text_chars(&x->why));
  mgrid_lua_push_lines(L, mgrid_text_chars(&x->params));
  lua_setfield(L, -2, "params");

  /* free it at once: `lose --all` makes many, and the collector does not know how large they are */
  mgrid_loss_free(x);
  *box = NULL;
  return 1;
}

/* plan:together(tensor, family) -> group, rank: a group of the family that has all copies of a
** part, and the first holder of this part. Return nil if no group has, or if the tensor has no
** copies */
int mgrid_lua_plan_together(lua_State *L) {
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  mgrid_error e = MGRID_ERROR_INIT;
  const mgrid_tensor *t = mgrid_plan_require_tensor(p, luaL_checkstring(L, 2), &e);
  const mgrid_family *f = mgrid_lua_check_family(L, 3)->f;
  int64_t world = p->content.world, group, other, position;

  if (!t) return mgrid_lua_raise_error(L, &e);
  if (f->world != world)
    return mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                              "together: the family is of %" PRId64 " ranks, the plan of %" PRId64,
                              f->world, world);
  mgrid_lua_charge(L, 16 * world);
  for (int64_t r = 0; r < world && t->copies > 1; r++) {
    mgrid_coords at;
    if (!mgrid_tensor_coords(t, r, &at) || at.copy != 0 || mgrid_tensor_elements(t, &at) == 0)
      continue;
    bool all = mgrid_family_locate(f, r, 0, &group, &position);
    for (at.copy = 1; at.copy < t->copies && all; at.copy++)
      all = mgrid_family_locate(f, mgrid_tensor_rank(t, &at), 0, &other, &position)
            && other == group;
    if (!all) continue;
    lua_pushinteger(L, group);
    lua_pushinteger(L, r);
    return 2;
  }
  return lua_pushnil(L), 1;
}

/* plan:holders(tensor, rank) -> list of the ranks that hold the same part as `rank`, including
** `rank`; nil if it holds no part */
int mgrid_lua_plan_holders(lua_State *L) {
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  const mgrid_tensor *t = mgrid_plan_tensor(p, luaL_checkstring(L, 2));
  int64_t rank = mgrid_lua_check_integer(L, 3);
  mgrid_coords at;
  mgrid_tensor_part part = MGRID_TENSOR_PART_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_tensor_local(p, lua_tostring(L, 2), rank, &part, &e))
    return mgrid_lua_raise_error(L, &e);
  if (!part.held || !mgrid_tensor_coords(t, rank, &at)) return lua_pushnil(L), 1;
  mgrid_lua_charge(L, 16 * t->copies);
  lua_createtable(L, (int)t->copies, 0);
  for (at.copy = 0; at.copy < t->copies; at.copy++) {
    lua_pushinteger(L, mgrid_tensor_rank(t, &at));
    lua_rawseti(L, -2, at.copy + 1);
  }
  return 1;
}

void mgrid_lua_open_losses(lua_State *L) {
  static const luaL_Reg meta[] = { { "__gc", mgrid_lua_free_box }, { NULL, NULL } };
  static const luaL_Reg methods[] = { { "lose", losses_lose },
                                      { "sums", losses_sums },
                                      { NULL, NULL } };
  static const mgrid_lua_class loss = { LOSS, NULL, NULL, NULL, meta },
                               losses = { LOSSES, NULL, methods, NULL, meta };
  mgrid_lua_open_class(L, &loss);
  mgrid_lua_open_class(L, &losses);
}
