/* SPDX-License-Identifier: MIT
**
** ask.c - questions to a state under the names of a system: queries, which functions of the recipe answer, and getters
** of groups.
*/
#include "recipe/entry.h"
#include "recipe/prelude.h"
#include "recipe/runtime.h"
#include "recipe/values.h"

#include <string.h>

/* Registry key, its address: the State that the running query was given. */
static const char asked_key = 'a';

typedef struct question {
  mgrid_state       *state;
  const char        *how, *name; /* "ask" a query of that name, or the "group" of a getter */
  const mgrid_given *args;
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
  return 1;
}

static int close_body(lua_State *L) {
  mgrid_lua_close_state(L, 1);
  return 0;
}

/* Close the State that a query was given, because the recipe may have kept it or a Group of it. Nothing here
** allocates, so the calls cannot fail. */
static void close_asked(lua_State *L) {
  int top = lua_gettop(L);
  lua_pushcfunction(L, close_body);
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &asked_key) == LUA_TUSERDATA) lua_pcall(L, 1, 0, 0);
  lua_settop(L, top);
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &asked_key);
}

/* Leave the answer on the top of rt->L. */
static mgrid_status ask(mgrid_runtime *rt, question *q, mgrid_error *err) {
  mgrid_status status = mgrid_runtime_check_state(rt, q->state, err);
  if (status) return status;
  status = mgrid_runtime_call(rt, ask_body, q, 1, err);
  close_asked(rt->L);
  return status;
}

mgrid_status mgrid_runtime_ask_with(mgrid_runtime *rt, mgrid_state *s, const char *query, const mgrid_given *args,
                                    mgrid_error *err) {
  return ask(rt, &(question){ s, "ask", query, args }, err);
}

/* Ask a query for its answer as JSON, a new reference. */
static mgrid_status answer_to(mgrid_runtime *rt, mgrid_state *s, const char *query, size_t n, const mgrid_arg *args,
                              json_t **answer, mgrid_error *err) {
  mgrid_status status = mgrid_args_check(n, args, NULL, err);
  if (!status) status = mgrid_runtime_ask_with(rt, s, query, &(mgrid_given){ .n = n, .args = args }, err);
  *answer = NULL;
  if (status) return status;
  *answer = mgrid_json_of(rt->L, -1);
  bool fits = *answer || mgrid_value_fits(rt->L, -1);
  if (!*answer) status = mgrid_budget_after(&rt->budget, err);
  if (!status && !fits)
    status = mgrid_fail(err, MGRID_BAD_VALUE, "query '%s' gave " MGRID_TOO_MUCH, query, MGRID_VALUES_MAX,
                        MGRID_VALUES_TEXT_MAX);
  else if (!status && !*answer)
    status = mgrid_fail(err, MGRID_BAD_VALUE, "query '%s' gave a %s", query, luaL_typename(rt->L, -1));
  lua_settop(rt->L, 0);
  return status;
}

/* As snprintf. */
static void copy_text(const char *text, char *buf, size_t len, size_t *length) {
  int whole = snprintf(buf, len, "%s", text);
  if (length) *length = (size_t)whole;
}

mgrid_status mgrid_script_ask(mgrid_runtime *rt, mgrid_state *s, const char *query, size_t n, const mgrid_arg *args,
                              char *buf, size_t len, size_t *length, mgrid_error *err) {
  json_t      *answer;
  mgrid_status status = answer_to(rt, s, query, n, args, &answer, err);
  if (status) return status;
  mgrid_text text = { 0 };
  mgrid_json_text(answer, JSON_COMPACT | JSON_SORT_KEYS, &text);
  json_decref(answer);
  if (text.failed)
    status = mgrid_oom(err);
  else
    copy_text(text.data, buf, len, length);
  mgrid_text_free(&text);
  return status;
}

mgrid_status mgrid_script_ask_text(mgrid_runtime *rt, mgrid_state *s, const char *query, size_t n,
                                   const mgrid_arg *args, char *buf, size_t len, size_t *length, mgrid_error *err) {
  json_t      *answer;
  mgrid_status status = answer_to(rt, s, query, n, args, &answer, err);
  if (status) return status;
  if (json_is_string(answer) || json_is_null(answer))
    copy_text(json_is_null(answer) ? "" : json_string_value(answer), buf, len, length);
  else
    status = mgrid_fail(err, MGRID_BAD_VALUE, "query '%s' does not answer with text", query);
  json_decref(answer);
  return status;
}

mgrid_status mgrid_script_ask_integer(mgrid_runtime *rt, mgrid_state *s, const char *query, size_t n,
                                      const mgrid_arg *args, int64_t *answer, mgrid_error *err) {
  json_t      *value;
  mgrid_status status = answer_to(rt, s, query, n, args, &value, err);
  if (status) return status;
  if (json_is_integer(value))
    *answer = json_integer_value(value);
  else if (json_is_boolean(value) || json_is_null(value))
    *answer = json_is_null(value) ? -1 : json_is_true(value);
  else
    status = mgrid_fail(err, MGRID_BAD_VALUE, "query '%s' does not answer with an integer", query);
  json_decref(value);
  return status;
}

mgrid_status mgrid_runtime_group_with(mgrid_runtime *rt, mgrid_state *s, const char *getter, const mgrid_given *args,
                                      const mgrid_group **group, mgrid_error *err) {
  mgrid_status status = ask(rt, &(question){ s, "group", getter, args }, err);
  *group = NULL;
  if (status) return status;
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
