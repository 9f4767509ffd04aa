/* SPDX-License-Identifier: MIT
**
** policy.c - decisions of the recipe, called by name with typed arguments. A policy is looked up
** once: its function, State and parameters stay in the registry of the runtime, so a call only
** makes a table of arguments. If an agreed policy fails on a rank, or returns another result there,
** every rank that compares its results gets an error, so these ranks cannot go on with different
** decisions.
*/
#include "comm/compare.h"
#include "recipe/entry.h"
#include "recipe/prelude.h"
#include "recipe/result.h"
#include "recipe/values.h"

#include <string.h>
#include <xxhash.h>

struct mgrid_policy {
  mgrid_made_by made_by;
  mgrid_runtime *rt;
  mgrid_state *state;
  /* references in the registry. box: the State that the recipe gets */
  int function, box, params, result;
  char name[64];
  /* "world", or the family in whose groups ranks compare results; "": they do not compare */
  char agreed[64];
  char where[256];   /* "file:line: " of the function */
  mgrid_peers peers; /* the ranks that compare the results */
};

/* ----------------------------------------------------------------------- look-up */

/* Find the peers. There are none if this rank is in no group of the family. */
static bool find_peers(mgrid_policy *p, mgrid_error *err) {
  if (strcmp(p->agreed, "world") != 0)
    return mgrid_peers_group(&p->peers, mgrid_state_group(p->state, p->agreed, NULL), err);
  p->peers = mgrid_peers_all(p->state->backend);
  return true;
}

static int new_body(lua_State *L) {
  mgrid_policy *p = lua_touserdata(L, 1);
  mgrid_prelude_push(L, "policy");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &mgrid_recipe_key);
  *mgrid_lua_new_state(L, false) = p->state;
  lua_pushvalue(L, -1);
  p->box = luaL_ref(L, LUA_REGISTRYINDEX);
  lua_pushstring(L, p->name);
  lua_call(L, 3, 4);
  snprintf(p->where, sizeof p->where, "%s", luaL_optstring(L, -1, ""));
  snprintf(p->agreed, sizeof p->agreed, "%s", luaL_optstring(L, -2, ""));
  lua_pop(L, 2);
  p->params = luaL_ref(L, LUA_REGISTRYINDEX);
  p->function = luaL_ref(L, LUA_REGISTRYINDEX);
  return 0;
}

mgrid_policy *mgrid_script_policy_new(mgrid_runtime *rt, mgrid_state *s, const char *name,
                                      mgrid_error *err) {
  if (mgrid_runtime_check_state(rt, s, err)) return NULL;
  if (strlen(name) >= sizeof((mgrid_policy *)0)->name)
    return mgrid_null(err, MGRID_UNKNOWN_NAME, "unknown policy '%s'", name);
  mgrid_policy *p = mgrid_zeroed(NULL, sizeof *p);
  if (!p) return mgrid_null_oom(err);
  p->made_by = rt->made_by, p->rt = mgrid_script_runtime_ref(rt), p->state = s;
  p->function = p->box = p->params = p->result = LUA_NOREF;
  snprintf(p->name, sizeof p->name, "%s", name);
  if (mgrid_runtime_call(rt, new_body, p, err) == MGRID_OK && (!*p->agreed || find_peers(p, err)))
    return p;
  mgrid_script_policy_free(p);
  return NULL;
}

void mgrid_script_policy_free(mgrid_policy *p) {
  if (!p) return;
  lua_State *L = p->rt->L;
  if (p->box != LUA_NOREF) { /* close the State, because the recipe may have kept it */
    lua_rawgeti(L, LUA_REGISTRYINDEX, p->box);
    mgrid_runtime_close_state(L);
  }
  luaL_unref(L, LUA_REGISTRYINDEX, p->function);
  luaL_unref(L, LUA_REGISTRYINDEX, p->box);
  luaL_unref(L, LUA_REGISTRYINDEX, p->params);
  luaL_unref(L, LUA_REGISTRYINDEX, p->result);
  mgrid_peers_close(&p->peers);
  mgrid_script_runtime_free(p->rt);
  mgrid_release(p);
}

/* -------------------------------------------------------------------------- call */

enum {
  MGRID_POLICY_FROM = sizeof((mgrid_policy *)0)->where + sizeof((mgrid_policy *)0)->name + 16
};

/* Write the policy's position and name for messages. */
static const char *policy_name_of(const mgrid_policy *p, char from[MGRID_POLICY_FROM]) {
  snprintf(from, MGRID_POLICY_FROM, "%spolicy '%s'", p->where, p->name);
  return from;
}

typedef struct call {
  mgrid_policy *p;
  mgrid_given args; /* from a Lua state: a table with any keys */
} call;

static int call_body(lua_State *L) {
  call *c = lua_touserdata(L, 1);
  char from[MGRID_POLICY_FROM];
  policy_name_of(c->p, from);
  lua_rawgeti(L, LUA_REGISTRYINDEX, c->p->function);
  lua_rawgeti(L, LUA_REGISTRYINDEX, c->p->box);
  if (!c->args.from)
    mgrid_push_given(L, &c->args);
  else if (!mgrid_copy_value(c->args.from, c->args.at, L, MGRID_ANY_KEYS))
    return luaL_error(L, "%s: an argument is not a plain value", from);
  lua_rawgeti(L, LUA_REGISTRYINDEX, c->p->params);
  lua_call(L, 3, 1);
  if (lua_istable(L, -1) && lua_getmetatable(L, -1)) /* a Mesh, or a read-only view */
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                       "%s returned a read-only table, such as p; it can return plain values only",
                       from);
  mgrid_result_keep(L, &c->p->result, from);
  return 0;
}

void mgrid_policy_place(const mgrid_policy *p, mgrid_error *err) {
  if (err->line || !*p->where) return;
  mgrid_error_reword(err, "%s%.800s", p->where, err->message);
  mgrid_budget_position(p->rt->L, err);
}

/* Add the name and position of the policy to an error without a line of the recipe, such as a limit
** that was reached in a function of moongrid. */
static void place(const mgrid_policy *p, mgrid_error *err) {
  if (err->line || !*p->where) return;
  mgrid_error_reword(err, "policy '%s': %.800s", p->name, err->message);
  mgrid_policy_place(p, err);
}

/* --------------------------------------------------------------------- agreement */

/* Write the result as canonical JSON, which is equal for equal values on every rank.
** MGRID_BAD_VALUE: JSON does not have the value. MGRID_LIMIT, MGRID_NO_MEMORY: *err is set, too. */
static mgrid_status policy_canonical(const mgrid_policy *p, mgrid_text *text, mgrid_error *err) {
  lua_State *L = p->rt->L;
  mgrid_result_push(L, p->result);
  json_t *v = mgrid_json_of(L, -1);
  bool has = v || mgrid_has_json(L, -1);
  lua_settop(L, 0);
  if (v) mgrid_json_text(v, JSON_COMPACT | JSON_SORT_KEYS, text);
  bool written = v && !text->failed;
  json_decref(v);
  mgrid_status s = v ? MGRID_OK : mgrid_budget_after(&p->rt->budget, err);
  return s ? s : !has ? MGRID_BAD_VALUE : written ? MGRID_OK : mgrid_oom(err);
}

/* Digests of calls without a canonical result. The digest of a result has the bit VALUE. */
enum { FAILED = 0, INCOMPARABLE = 1, VALUE = 2 };

/* Return the digest of this rank's result, and write a text about the result for the other ranks.
** If the memory or budget for the digest runs out, set *status and *failed: the call has failed. */
static uint64_t outcome(const mgrid_policy *p, mgrid_status *status, mgrid_error *failed,
                        char told[MGRID_TOLD]) {
  mgrid_text text = { 0 };
  uint64_t digest = FAILED;
  mgrid_status s = *status ? MGRID_OK : policy_canonical(p, &text, failed);
  if (s && s != MGRID_BAD_VALUE) *status = s;
  if (*status) {
    snprintf(told, MGRID_TOLD, "failed (%.200s)", failed->message);
  } else if (s) {
    digest = INCOMPARABLE;
    snprintf(told, MGRID_TOLD, "returned a value that ranks cannot compare");
  } else {
    digest = XXH3_64bits(text.data, text.len) | VALUE;
    snprintf(told, MGRID_TOLD, "returned %.200s", text.data);
  }
  mgrid_text_free(&text);
  return digest;
}

/* Compare the outcome of this rank's call, a failure (`status` and *err) or a result, with the
** outcomes of the peers. Collective over the peers. */
static mgrid_status policy_agree(const mgrid_policy *p, mgrid_status status, mgrid_error *err) {
  char told[MGRID_TOLD], name[sizeof p->name + 16], from[MGRID_POLICY_FROM];
  mgrid_error why = MGRID_ERROR_INIT;
  mgrid_brought mine = { outcome(p, &status, err, told), told, name };
  snprintf(name, sizeof name, "policy '%s'", p->name);
  mgrid_status s = mgrid_compare(&p->peers, &mine, &why);
  if (status && s / 100 != MGRID_BACKEND / 100) return status; /* this rank reports its own error */
  policy_name_of(p, from);
  if (s == MGRID_DISAGREE)
    mgrid_fail(err, s, "%s is agreed by %s%s, and %s", from, p->peers.group ? "" : "the ",
               p->agreed, why.message);
  else if (s)
    mgrid_error_replace(err, &why);
  else if (mine.digest == INCOMPARABLE)
    s = mgrid_fail(err, MGRID_BAD_VALUE,
                   "%s is agreed, and returned a value that ranks cannot compare: " MGRID_NO_JSON,
                   from);
  if (s) mgrid_budget_position(p->rt->L, err);
  return s;
}

/* -------------------------------------------------------------------------- calls */

static mgrid_status policy_run(call *c, mgrid_error *err) {
  mgrid_error e = MGRID_ERROR_INIT; /* of this call alone; the peers get its text */
  mgrid_status s = MGRID_OK;
  if (!c->args.from && mgrid_lacks_list(c->args.n, c->args.args, "arguments", &e)) s = e.status;
  if (!s) s = mgrid_args_check(c->args.n, c->args.args, NULL, &e);
  if (!s) s = mgrid_runtime_call(c->p->rt, call_body, c, &e);
  if (s) place(c->p, &e);
  if (*c->p->agreed) s = policy_agree(c->p, s, &e);
  if (!s) return MGRID_OK;
  place(c->p, &e);
  /* keep no result of an earlier call, and none that was not agreed */
  mgrid_result_forget(c->p->rt->L, c->p->result);
  return mgrid_error_pass(err, &e);
}

const char *mgrid_script_policy_agreed(const mgrid_policy *p) { return p->agreed; }

mgrid_status mgrid_script_policy_call(mgrid_policy *p, size_t n, const mgrid_arg *args,
                                      mgrid_error *err) {
  return policy_run(&(call){ p, { .n = n, .args = args } }, err);
}

mgrid_status mgrid_script_policy_result(mgrid_policy *p, const char *path, mgrid_kind kind,
                                        mgrid_arg *result, mgrid_error *err) {
  char from[MGRID_POLICY_FROM];
  return mgrid_result_read(
      &(mgrid_reading){ p->rt, p->result, policy_name_of(p, from), path, kind, false }, result,
      err);
}

mgrid_status mgrid_policy_call_from(mgrid_policy *p, lua_State *from, int at, mgrid_error *err) {
  return policy_run(&(call){ p, { .from = from, .at = at } }, err);
}

void mgrid_policy_push_result(const mgrid_policy *p, lua_State *to) {
  char from[MGRID_POLICY_FROM];
  mgrid_result_copy(p->rt, p->result, MGRID_NO_VIEWS, policy_name_of(p, from), to);
}
