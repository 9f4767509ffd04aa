/* SPDX-License-Identifier: MIT
**
** ask.c - questions to a state under the names of a system: queries, which functions of the recipe answer, and getters
** of groups.
*/
#include "recipe/entry.h"
#include "recipe/prelude.h"
#include "recipe/result.h"
#include "recipe/values.h"

#include <string.h>

/* Registry key, its address: the State that the running query was given. */
static const char asked_key = 'a';

typedef struct question {
  mgrid_runtime     *rt;
  mgrid_state       *state;
  const char        *how, *name; /* "ask" a query of that name, or the "group" of a getter */
  const mgrid_given *args;
  const char        *from; /* "query 'world_size'" */
} question;

static int ask_body(lua_State *L) {
  question *q = lua_touserdata(L, 1);
  mgrid_prelude_push(L, q->how);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &mgrid_recipe_key);
  mgrid_state **s = mgrid_lua_new_state(L, false);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &asked_key);
  *s = q->state;
  lua_pushstring(L, q->name);
  mgrid_push_given(L, q->args);
  lua_call(L, 4, 1);
  mgrid_result_keep(L, &q->rt->answer, q->from);
  return 0;
}

static int close_body(lua_State *L) {
  mgrid_lua_close_state(L, 1);
  return 0;
}

void mgrid_runtime_close_state(lua_State *L) {
  int top = lua_gettop(L);
  lua_pushcfunction(L, close_body);
  lua_pushvalue(L, top);
  if (lua_type(L, top) == LUA_TUSERDATA) lua_pcall(L, 1, 0, 0);
  lua_settop(L, top - 1);
}

/* Ask, and keep the answer as rt->answer. */
static mgrid_status ask(const question *q, mgrid_error *err) {
  lua_State   *L = q->rt->L;
  mgrid_status status = mgrid_runtime_check_state(q->rt, q->state, err);
  if (status) return status;
  status = mgrid_runtime_call(q->rt, ask_body, (void *)q, 0, err);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &asked_key);
  mgrid_runtime_close_state(L);
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &asked_key);
  return status;
}

mgrid_status mgrid_runtime_ask_with(mgrid_runtime *rt, mgrid_state *s, const char *query, const mgrid_given *args,
                                    const char *from, mgrid_error *err) {
  return ask(&(question){ rt, s, "ask", query, args, from }, err);
}

mgrid_status mgrid_script_ask(mgrid_runtime *rt, mgrid_state *s, const char *query, size_t n, const mgrid_arg *args,
                              mgrid_kind kind, mgrid_arg *answer, mgrid_error *err) {
  char         from[128];
  mgrid_given  given = { .n = n, .args = args };
  mgrid_status status = mgrid_args_check(n, args, NULL, err);
  snprintf(from, sizeof from, "query '%s'", query);
  if (!status) status = mgrid_runtime_ask_with(rt, s, query, &given, from, err);
  if (!status) status = mgrid_result_read(&(mgrid_reading){ rt, rt->answer, from, NULL, kind, true }, answer, err);
  return status;
}

mgrid_status mgrid_runtime_group_with(mgrid_runtime *rt, mgrid_state *s, const char *getter, const mgrid_given *args,
                                      const mgrid_group **group, mgrid_error *err) {
  mgrid_status status = ask(&(question){ rt, s, "group", getter, args, "a getter" }, err);
  *group = NULL;
  if (status) return status;
  mgrid_result_push(rt->L, rt->answer);
  const char *family = lua_tostring(rt->L, -1); /* nil: no group */
  if (family) *group = mgrid_state_group(s, family, NULL);
  lua_settop(rt->L, 0);
  return MGRID_OK;
}

const mgrid_group *mgrid_script_group(mgrid_runtime *rt, mgrid_state *s, const char *getter, size_t n,
                                      const mgrid_arg *args, mgrid_error *err) {
  const mgrid_group *group = NULL;
  if (!mgrid_args_check(n, args, NULL, err))
    mgrid_runtime_group_with(rt, s, getter, &(mgrid_given){ .n = n, .args = args }, &group, err);
  return group;
}
