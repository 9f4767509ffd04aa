/* SPDX-License-Identifier: MIT
**
** losses.c - plan:lose{ ranks = { 5, 13 } } for hosts: what a job becomes, as a table.
*/
#include "recipe/runtime.h"
#include "recipe/values.h"
#include "survive/lua/words.h"

#include <inttypes.h>
#include <string.h>

const char **mgrid_lua_push_changed(lua_State *L, const mgrid_content *c, size_t *n) {
  const char **args = lua_newuserdatauv(L, (c->nparams + 1) * sizeof *args, 1);
  lua_newtable(L); /* keeps the texts alive */
  *n = 0;
  for (size_t i = 0; i < c->nparams; i++) {
    if (c->param[i].usual) continue;
    args[(*n)++] = lua_pushfstring(L, "%s=%s", c->param[i].name, c->param[i].value);
    lua_rawseti(L, -2, (lua_Integer)*n);
  }
  lua_setiuservalue(L, -2, 1);
  return args;
}

int64_t *mgrid_lua_push_lost(lua_State *L, const char *call, const char *name, size_t *n) {
  if (lua_getfield(L, 2, name) != LUA_TTABLE)
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "%s: %s is a list of lost ranks, not %s", call, name, mgrid_lua_kind(L, -1));
  *n = lua_rawlen(L, -1);
  if (*n > (size_t)MGRID_WORLD_MAX)
    mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "%s: %s has more than %" PRId64 " elements", call, name, MGRID_WORLD_MAX);
  int64_t *ranks = lua_newuserdatauv(L, (*n + 1) * sizeof *ranks, 0);
  for (size_t i = 0; i < *n; i++) {
    lua_rawgeti(L, -2, (lua_Integer)i + 1);
    if (!lua_isinteger(L, -1))
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "%s: number %d of %s is %s, not a rank", call, (int)i + 1, name,
                         mgrid_lua_kind(L, -1));
    ranks[i] = lua_tointeger(L, -1);
    lua_pop(L, 1);
  }
  return ranks;
}

json_t *mgrid_lua_loss_json(const mgrid_loss *x, mgrid_plan **next, mgrid_error *err) {
  mgrid_text t = { 0 };
  json_t    *told = NULL;
  if (!mgrid_loss_print(x, true, mgrid_text_sink, &t, err)) {
    told = mgrid_json_parse(mgrid_text_chars(&t), t.len, 0, NULL);
    if (!told) mgrid_oom(err);
    if (told && mgrid_loss_plan(x)) *next = mgrid_plan_ref(mgrid_loss_plan(x));
  }
  mgrid_text_free(&t);
  return told;
}

/* Decide; nothing here raises. */
static MGRID_APART json_t *decide(mgrid_runtime *rt, const mgrid_plan *p, size_t nargs, const char *const *args,
                                  const char *how, size_t n, const int64_t *ranks, mgrid_plan **next,
                                  mgrid_error *err) {
  mgrid_losses_options o = MGRID_LOSSES_OPTIONS_INIT;
  o.how = how;
  mgrid_losses *l = mgrid_losses_new(rt, p, nargs, args, &o, err);
  mgrid_loss   *x = l ? mgrid_loss_new(l, n, ranks, err) : NULL;
  json_t       *told = x ? mgrid_lua_loss_json(x, next, err) : NULL;
  mgrid_loss_free(x);
  mgrid_losses_free(l);
  return told;
}

int mgrid_lua_raise_loss(lua_State *L, const mgrid_error *e) {
  if (!e->line) return mgrid_lua_raise_error(L, e);
  lua_pushstring(L, e->message);
  return lua_error(L);
}

/* plan:lose{ ranks = { 5, 13 } [, how = "shrink"] } -> table. The plan is of a Recipe, which is its user value. */
int mgrid_lua_plan_lose(lua_State *L) {
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  mgrid_error e = MGRID_ERROR_INIT;
  size_t      nargs, n;
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  lua_getiuservalue(L, 1, 1);
  mgrid_runtime **rt = luaL_testudata(L, 3, MGRID_LUA_RECIPE);
  if (!rt || !*rt)
    return mgrid_lua_raise_as(L, MGRID_NOT_NOW,
                              "what a job becomes is up to its recipe: recipe:plan(...) makes a plan that has one");
  const int64_t *ranks = mgrid_lua_push_lost(L, "lose", "ranks", &n);
  const char   **args = mgrid_lua_push_changed(L, &p->content, &nargs);
  lua_getfield(L, 2, "how");
  const char  *how = luaL_optstring(L, -1, NULL);
  mgrid_plan **next = mgrid_lua_new_plan(L);
  lua_pushvalue(L, 3);
  lua_setiuservalue(L, -2, 1);
  int     at = lua_gettop(L);
  json_t *told = decide(*rt, p, nargs, args, how, n, ranks, next, &e);
  if (!told) return mgrid_lua_raise_loss(L, &e);
  if (mgrid_take_json(L, told)) return lua_error(L);
  if (*next) {
    lua_pushvalue(L, at);
    lua_setfield(L, -2, "plan");
  }
  return 1;
}
