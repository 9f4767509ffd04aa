/* SPDX-License-Identifier: MIT
**
** runtime.c - a Lua state of our own for one recipe. Everything that may raise runs under
** lua_pcall and a budget. The runtime outlives the load: queries are asked of it later.
*/
#include "script/runtime.h"

#include "types/budget.h"
#include "script/bundle.h"
#include "script/prelude.h"
#include "types/values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Registry keys: their addresses. asked: the State that the running query was given. */
const char        mgrid_recipe_key = 'r';
static const char asked_key = 'a';

mgrid_status mgrid_runtime_protected(mgrid_runtime *rt, lua_CFunction body, void *ud, mgrid_error *err) {
  lua_State *L = rt->L;
  mgrid_budget_start(L, &rt->budget);
  lua_settop(L, 0);
  lua_pushcfunction(L, body);
  lua_pushlightuserdata(L, ud);
  int rc = lua_pcall(L, 1, 0, 0);
  mgrid_budget_stop(L);
  mgrid_status s = mgrid_budget_verdict(L, &rt->budget, rc, err);
  lua_settop(L, 0);
  return s;
}

/* --------------------------------------------------------------------- life */

static int open_body(lua_State *L) {
  mgrid_budget_attach(L, lua_touserdata(L, 1));
  mgrid_prelude_open(L);
  return 0;
}

mgrid_runtime *mgrid_runtime_new(const mgrid_limits *given, mgrid_error *err) {
  if (given && (given->size < sizeof(size_t) || given->size > 4096))
    return mgrid_null(err, MGRID_USAGE, "limits without MGRID_LIMITS_INIT (size %zu)", given->size);
  mgrid_runtime *rt = calloc(1, sizeof *rt);
  if (!rt) return mgrid_null_oom(err);
  mgrid_limits *limits = &rt->budget.limits;
  *limits = (mgrid_limits)MGRID_LIMITS_INIT;
  if (given) memcpy(limits, given, given->size < sizeof *limits ? given->size : sizeof *limits);
  bool some = limits->memory > 0 && limits->instructions > 0 && limits->seconds > 0;
  rt->L = some ? lua_newstate(mgrid_budget_alloc, &rt->budget) : NULL;
  if (!some)
    mgrid_fail(err, MGRID_USAGE, "limits are above 0: memory %zu bytes, %" PRIu64 " instructions, %g seconds",
               limits->memory, limits->instructions, limits->seconds);
  if (!rt->L) {
    free(rt);
    return some ? mgrid_null(err, MGRID_LIMIT, "no memory for a Lua state") : NULL;
  }
  if (mgrid_runtime_protected(rt, open_body, &rt->budget, err)) {
    mgrid_runtime_free(rt);
    return NULL;
  }
  return rt;
}

void mgrid_runtime_free(mgrid_runtime *rt) {
  if (!rt) return;
  lua_close(rt->L);
  free(rt->recipe);
  free(rt);
}

/* --------------------------------------------------------------------- use */

static int load_body(lua_State *L) {
  const char *recipe = lua_touserdata(L, 1);
  mgrid_prelude_push(L, "load");
  lua_pushstring(L, recipe);
  lua_call(L, 1, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &mgrid_recipe_key);
  return 0;
}

mgrid_status mgrid_runtime_load(mgrid_runtime *rt, const char *recipe, mgrid_error *err) {
  if (!rt) return MGRID_USAGE;
  if (rt->recipe) return mgrid_fail(err, MGRID_USAGE, "the runtime has a recipe already: %s", rt->recipe);
  mgrid_error  own;
  mgrid_error *e = err ? err : &own;
  mgrid_status s = mgrid_runtime_protected(rt, load_body, (void *)(uintptr_t)recipe, e);
  if (!s && !(rt->recipe = mgrid_strdup(recipe))) s = mgrid_oom(e);
  if (s) rt->unloaded = *e;
  return s;
}

mgrid_status mgrid_runtime_check_loaded(const mgrid_runtime *rt, mgrid_error *err) {
  if (!rt) return MGRID_USAGE;              /* the error of what did not make it is the one to see */
  if (!rt->recipe && rt->unloaded.status) { /* the first error is the one to see */
    if (err) *err = rt->unloaded;
    return rt->unloaded.status;
  }
  return rt->recipe ? MGRID_OK
                    : mgrid_fail(err, MGRID_USAGE, "the runtime has no recipe: call mgrid_runtime_load first");
}

typedef struct evaluation {
  const char   *recipe;
  int64_t       world;
  const json_t *args;
  mgrid_plan   *plan;
} evaluation;

static int plan_body(lua_State *L) {
  evaluation *e = lua_touserdata(L, 1);
  mgrid_prelude_push(L, "evaluate");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &mgrid_recipe_key);
  *mgrid_lua_new_world(L) = mgrid_world(e->world);
  mgrid_push_json(L, e->args);
  lua_call(L, 3, 1);
  mgrid_topology *t = mgrid_lua_check_topology(L, -1);
  if (t->content.world != e->world)
    return mgrid_lua_raise(L, "the recipe made a topology for %" PRId64 " ranks in a world of %" PRId64,
                           t->content.world, e->world);
  mgrid_error err;
  if (mgrid_topology_recipe(t, e->recipe, &err)) return mgrid_lua_raise_error(L, &err);
  e->plan = mgrid_plan_new(t, &err);
  return e->plan ? 0 : mgrid_lua_raise_error(L, &err);
}

mgrid_plan *mgrid_runtime_plan_json(mgrid_runtime *rt, int64_t world, const json_t *args, mgrid_error *err) {
  if (!rt || mgrid_runtime_check_loaded(rt, err)) return NULL;
  if (world < 1 || world > MGRID_WORLD_MAX)
    return mgrid_null(err, MGRID_REFUSED, "a world has 1 to %" PRId64 " ranks, not %" PRId64, MGRID_WORLD_MAX, world);
  evaluation e = { rt->recipe, world, args, NULL };
  if (mgrid_runtime_protected(rt, plan_body, &e, err) == MGRID_OK) return e.plan;
  mgrid_plan_free(e.plan);
  return NULL;
}

typedef struct question {
  mgrid_state  *state;
  const char   *query;
  const json_t *args;
  json_t       *answer;
} question;

static int ask_body(lua_State *L) {
  question *q = lua_touserdata(L, 1);
  mgrid_prelude_push(L, "ask");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &mgrid_recipe_key);
  mgrid_state **s = mgrid_lua_new_state(L, false);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &asked_key);
  *s = q->state;
  lua_pushstring(L, q->query);
  if (q->args)
    mgrid_push_json(L, q->args);
  else
    lua_newtable(L);
  lua_call(L, 4, 1);
  q->answer = mgrid_json_of(L, -1);
  if (!q->answer) return mgrid_lua_raise(L, "query '%s' gave a %s", q->query, luaL_typename(L, -1));
  return 0;
}

mgrid_status mgrid_runtime_check_state(const mgrid_runtime *rt, const mgrid_state *s, mgrid_error *err) {
  mgrid_status status = mgrid_runtime_check_loaded(rt, err);
  if (status || !s) return status ? status : MGRID_USAGE;
  const char *other = s->plan->content.recipe;
  if (strcmp(other, rt->recipe) == 0) return MGRID_OK;
  return mgrid_fail(err, MGRID_USAGE, "the state's plan is not of this recipe (%s) but %s%s", rt->recipe,
                    *other ? "of " : "of none", other);
}

static int close_body(lua_State *L) {
  mgrid_lua_close_state(L, 1);
  return 0;
}

/* Whatever of its State the query has kept is closed now. Nothing here allocates, so the calls
** cannot fail. */
static void close_asked(lua_State *L) {
  lua_pushcfunction(L, close_body);
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &asked_key) == LUA_TUSERDATA) lua_pcall(L, 1, 0, 0);
  lua_settop(L, 0);
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &asked_key);
}

mgrid_status mgrid_runtime_ask_json(mgrid_runtime *rt, mgrid_state *s, const char *query, const json_t *args,
                                    json_t **answer, mgrid_error *err) {
  question     q = { s, query, args, NULL };
  mgrid_status status = mgrid_runtime_check_state(rt, s, err);
  if (!status) {
    status = mgrid_runtime_protected(rt, ask_body, &q, err);
    close_asked(rt->L);
  }
  if (status) {
    json_decref(q.answer);
    q.answer = NULL;
  }
  *answer = q.answer;
  return status;
}

/* The same with arguments as JSON text. */
static mgrid_status ask_text(mgrid_runtime *rt, mgrid_state *s, const char *query, const char *args, json_t **answer,
                             mgrid_error *err) {
  json_error_t why;
  json_t      *object = args ? json_loads(args, 0, &why) : NULL;
  *answer = NULL;
  if (args && !json_is_object(object)) {
    json_decref(object);
    return mgrid_fail(err, MGRID_USAGE, "the arguments of query '%s' are a JSON object, not '%.200s'", query, args);
  }
  mgrid_status status = mgrid_runtime_ask_json(rt, s, query, object, answer, err);
  json_decref(object);
  return status;
}

mgrid_status mgrid_runtime_ask(mgrid_runtime *rt, mgrid_state *s, const char *query, const char *args, char *buf,
                               size_t len, size_t *length, mgrid_error *err) {
  json_t      *answer;
  mgrid_status status = ask_text(rt, s, query, args, &answer, err);
  if (status) return status;
  char *text = json_dumps(answer, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
  json_decref(answer);
  if (!text) return mgrid_oom(err);
  int whole = snprintf(buf, len, "%s", text);
  if (length) *length = (size_t)whole;
  free(text);
  return MGRID_OK;
}

mgrid_status mgrid_runtime_ask_integer(mgrid_runtime *rt, mgrid_state *s, const char *query, const char *args,
                                       int64_t *answer, mgrid_error *err) {
  json_t      *value;
  mgrid_status status = ask_text(rt, s, query, args, &value, err);
  if (status) return status;
  if (json_is_integer(value))
    *answer = json_integer_value(value);
  else if (json_is_boolean(value) || json_is_null(value))
    *answer = json_is_null(value) ? -1 : json_is_true(value);
  else
    status = mgrid_fail(err, MGRID_REFUSED, "query '%s' does not answer with an integer", query);
  json_decref(value);
  return status;
}

static int info_body(lua_State *L) {
  json_t **info = lua_touserdata(L, 1);
  mgrid_prelude_push(L, "info");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &mgrid_recipe_key);
  lua_call(L, 1, 1);
  *info = mgrid_json_of(L, -1);
  return *info ? 0 : mgrid_lua_oom(L);
}

mgrid_status mgrid_runtime_info(mgrid_runtime *rt, json_t **info, mgrid_error *err) {
  mgrid_status s = mgrid_runtime_check_loaded(rt, err);
  *info = NULL;
  if (!s) s = mgrid_runtime_protected(rt, info_body, info, err);
  if (s) {
    json_decref(*info);
    *info = NULL;
  }
  return s;
}

static void describe_text(const char *name, const json_t *info, mgrid_text *t) {
  size_t        i;
  const json_t *p, *q;
  const char   *doc = json_string_value(json_object_get(info, "doc"));
  mgrid_text_add(t, "%s%s%s\n\nparameters\n", name, doc && *doc ? ": " : "", doc ? doc : "");
  json_array_foreach(json_object_get(info, "params"), i, p) {
    const char   *value = json_string_value(json_object_get(p, "default"));
    const json_t *aliases = json_object_get(p, "aliases"), *alias;
    size_t        k;
    mgrid_text_add(t, "  %-36s %-8s %-18s %s", json_string_value(json_object_get(p, "name")),
                   json_string_value(json_object_get(p, "kind")), value ? value : "-",
                   json_string_value(json_object_get(p, "doc")));
    json_array_foreach(aliases, k, alias) mgrid_text_add(t, "%s%s", k ? ", " : " (also ", json_string_value(alias));
    mgrid_text_add(t, "%s\n", json_array_size(aliases) ? ")" : "");
  }
  if (json_array_size(json_object_get(info, "params")) == 0) mgrid_text_add(t, "  none\n");
  if (json_array_size(json_object_get(info, "policies")) > 0) mgrid_text_add(t, "\npolicies\n");
  json_array_foreach(json_object_get(info, "policies"), i, q) {
    const char *policy = json_string_value(json_object_get(q, "name")),
               *by = json_string_value(json_object_get(q, "agreed"));
    if (by)
      mgrid_text_add(t, "  %-36s agreed by %s%s\n", policy, strcmp(by, "world") == 0 ? "the " : "", by);
    else
      mgrid_text_add(t, "  %s\n", policy);
  }
  if (json_array_size(json_object_get(info, "queries")) == 0) return;
  mgrid_text_add(t, "\nqueries");
  json_array_foreach(json_object_get(info, "arguments"), i, q)
      mgrid_text_add(t, "%s%s", i ? ", " : ", which take ", json_string_value(q));
  mgrid_text_add(t, "\n");
  json_array_foreach(json_object_get(info, "queries"), i, q) mgrid_text_add(t, "  %s\n", json_string_value(q));
}

mgrid_status mgrid_runtime_describe(mgrid_runtime *rt, bool json, mgrid_sink sink, void *ud, mgrid_error *err) {
  json_t      *info;
  mgrid_status s = mgrid_runtime_info(rt, &info, err);
  if (s) return s;
  mgrid_text t = { 0 };
  if (json) {
    json_object_set_new(info, "name", json_string(rt->recipe));
    char *text = json_dumps(info, JSON_INDENT(2) | JSON_SORT_KEYS);
    if (text) mgrid_text_add(&t, "%s\n", text);
    t.failed |= !text;
    free(text);
  } else {
    describe_text(rt->recipe, info, &t);
  }
  json_decref(info);
  if (t.failed)
    s = mgrid_oom(err);
  else if (sink(ud, t.data, t.len) != 0)
    s = mgrid_fail(err, MGRID_LIMIT, "the output could not be written");
  mgrid_text_free(&t);
  return s;
}

const char *const *mgrid_recipe_names(void) { return mgrid_bundled_names; }

const char *mgrid_lua_release(void) { return LUA_RELEASE; }
