/* SPDX-License-Identifier: MIT
**
** runtime.c - a Lua state of our own for one recipe. Everything that may raise runs under
** lua_pcall and a budget. The runtime outlives the load: queries are asked of it later.
*/
#include "script/runtime.h"

#include "script/budget.h"
#include "script/bundle.h"
#include "script/prelude.h"
#include "script/values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Registry keys: their addresses. asked: the State that the running query was given. */
const char        mg_recipe_key = 'r';
static const char asked_key = 'a';

mg_status mg_runtime_protected(mg_runtime *rt, lua_CFunction body, void *ud, mg_error *err) {
  lua_State *L = rt->L;
  mg_budget_start(L, &rt->budget);
  lua_settop(L, 0);
  lua_pushcfunction(L, body);
  lua_pushlightuserdata(L, ud);
  int rc = lua_pcall(L, 1, 0, 0);
  mg_budget_stop(L);
  mg_status s = mg_budget_verdict(L, &rt->budget, rc, err);
  lua_settop(L, 0);
  return s;
}

/* --------------------------------------------------------------------- life */

static int open_body(lua_State *L) {
  mg_budget_attach(L, lua_touserdata(L, 1));
  mg_prelude_open(L);
  return 0;
}

mg_runtime *mg_runtime_new(const mg_limits *given, mg_error *err) {
  if (given && (given->size < sizeof(size_t) || given->size > 4096))
    return mg_null(err, MG_USAGE, "limits without MG_LIMITS_INIT (size %zu)", given->size);
  mg_runtime *rt = calloc(1, sizeof *rt);
  if (!rt) return mg_null_oom(err);
  mg_limits *limits = &rt->budget.limits;
  *limits = (mg_limits)MG_LIMITS_INIT;
  if (given) memcpy(limits, given, given->size < sizeof *limits ? given->size : sizeof *limits);
  bool some = limits->memory > 0 && limits->instructions > 0 && limits->seconds > 0;
  rt->L = some ? lua_newstate(mg_budget_alloc, &rt->budget) : NULL;
  if (!some) mg_fail(err, MG_USAGE, "limits are above 0: memory %zu bytes, %" PRIu64 " instructions, %g seconds",
                     limits->memory, limits->instructions, limits->seconds);
  if (!rt->L) {
    free(rt);
    return some ? mg_null(err, MG_LIMIT, "no memory for a Lua state") : NULL;
  }
  if (mg_runtime_protected(rt, open_body, &rt->budget, err)) {
    mg_runtime_free(rt);
    return NULL;
  }
  return rt;
}

void mg_runtime_free(mg_runtime *rt) {
  if (!rt) return;
  lua_close(rt->L);
  free(rt->recipe);
  free(rt);
}

/* --------------------------------------------------------------------- use */

static int load_body(lua_State *L) {
  const char *recipe = lua_touserdata(L, 1);
  mg_prelude_push(L, "load");
  lua_pushstring(L, recipe);
  lua_call(L, 1, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &mg_recipe_key);
  return 0;
}

mg_status mg_runtime_load(mg_runtime *rt, const char *recipe, mg_error *err) {
  if (!rt) return MG_USAGE;
  if (rt->recipe) return mg_fail(err, MG_USAGE, "the runtime has a recipe already: %s", rt->recipe);
  mg_error  own;
  mg_error *e = err ? err : &own;
  mg_status s = mg_runtime_protected(rt, load_body, (void *)(uintptr_t)recipe, e);
  if (!s && !(rt->recipe = mg_strdup(recipe))) s = mg_oom(e);
  if (s) rt->unloaded = *e;
  return s;
}

mg_status mg_runtime_check_loaded(const mg_runtime *rt, mg_error *err) {
  if (!rt) return MG_USAGE; /* the error of what did not make it is the one to see */
  if (!rt->recipe && rt->unloaded.status) { /* the first error is the one to see */
    if (err) *err = rt->unloaded;
    return rt->unloaded.status;
  }
  return rt->recipe ? MG_OK : mg_fail(err, MG_USAGE, "the runtime has no recipe: call mg_runtime_load first");
}

typedef struct evaluation {
  const char   *recipe;
  int64_t       world;
  const json_t *args;
  mg_plan      *plan;
} evaluation;

static int plan_body(lua_State *L) {
  evaluation *e = lua_touserdata(L, 1);
  mg_prelude_push(L, "evaluate");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &mg_recipe_key);
  *mg_lua_new_world(L) = mg_world(e->world);
  mg_push_json(L, e->args);
  lua_call(L, 3, 1);
  mg_topology *t = mg_lua_check_topology(L, -1);
  if (t->content.world != e->world)
    return mg_lua_raise(L, "the recipe made a topology for %" PRId64 " ranks in a world of %" PRId64, t->content.world,
                        e->world);
  mg_error err;
  if (mg_topology_recipe(t, e->recipe, &err)) return mg_lua_raise_error(L, &err);
  e->plan = mg_plan_new(t, &err);
  return e->plan ? 0 : mg_lua_raise_error(L, &err);
}

mg_plan *mg_runtime_plan_json(mg_runtime *rt, int64_t world, const json_t *args, mg_error *err) {
  if (!rt || mg_runtime_check_loaded(rt, err)) return NULL;
  if (world < 1 || world > MG_WORLD_MAX)
    return mg_null(err, MG_REFUSED, "a world has 1 to %" PRId64 " ranks, not %" PRId64, MG_WORLD_MAX, world);
  evaluation e = { rt->recipe, world, args, NULL };
  if (mg_runtime_protected(rt, plan_body, &e, err) == MG_OK) return e.plan;
  mg_plan_free(e.plan);
  return NULL;
}

typedef struct question {
  mg_state     *state;
  const char   *query;
  const json_t *args;
  json_t       *answer;
} question;

static int ask_body(lua_State *L) {
  question *q = lua_touserdata(L, 1);
  mg_prelude_push(L, "ask");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &mg_recipe_key);
  mg_state **s = mg_lua_new_state(L, false);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &asked_key);
  *s = q->state;
  lua_pushstring(L, q->query);
  if (q->args)
    mg_push_json(L, q->args);
  else
    lua_newtable(L);
  lua_call(L, 4, 1);
  q->answer = mg_json_of(L, -1);
  if (!q->answer) return mg_lua_raise(L, "query '%s' gave a %s", q->query, luaL_typename(L, -1));
  return 0;
}

mg_status mg_runtime_check_state(const mg_runtime *rt, const mg_state *s, mg_error *err) {
  mg_status status = mg_runtime_check_loaded(rt, err);
  if (status || !s) return status ? status : MG_USAGE;
  const char *other = s->plan->content.recipe;
  if (strcmp(other, rt->recipe) == 0) return MG_OK;
  return mg_fail(err, MG_USAGE, "the state's plan is not of this recipe (%s) but %s%s", rt->recipe,
                 *other ? "of " : "of none", other);
}

static int close_body(lua_State *L) {
  mg_lua_close_state(L, 1);
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

mg_status mg_runtime_ask_json(mg_runtime *rt, mg_state *s, const char *query, const json_t *args, json_t **answer,
                         mg_error *err) {
  question  q = { s, query, args, NULL };
  mg_status status = mg_runtime_check_state(rt, s, err);
  if (!status) {
    status = mg_runtime_protected(rt, ask_body, &q, err);
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
static mg_status ask_text(mg_runtime *rt, mg_state *s, const char *query, const char *args, json_t **answer,
                          mg_error *err) {
  json_error_t why;
  json_t      *object = args ? json_loads(args, 0, &why) : NULL;
  *answer = NULL;
  if (args && !json_is_object(object)) {
    json_decref(object);
    return mg_fail(err, MG_USAGE, "the arguments of query '%s' are a JSON object, not '%.200s'", query, args);
  }
  mg_status status = mg_runtime_ask_json(rt, s, query, object, answer, err);
  json_decref(object);
  return status;
}

mg_status mg_runtime_ask(mg_runtime *rt, mg_state *s, const char *query, const char *args, char *buf, size_t len,
                         size_t *length, mg_error *err) {
  json_t   *answer;
  mg_status status = ask_text(rt, s, query, args, &answer, err);
  if (status) return status;
  char *text = json_dumps(answer, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
  json_decref(answer);
  if (!text) return mg_oom(err);
  int whole = snprintf(buf, len, "%s", text);
  if (length) *length = (size_t)whole;
  free(text);
  return MG_OK;
}

mg_status mg_runtime_ask_integer(mg_runtime *rt, mg_state *s, const char *query, const char *args, int64_t *answer,
                                 mg_error *err) {
  json_t   *value;
  mg_status status = ask_text(rt, s, query, args, &value, err);
  if (status) return status;
  if (json_is_integer(value))
    *answer = json_integer_value(value);
  else if (json_is_boolean(value) || json_is_null(value))
    *answer = json_is_null(value) ? -1 : json_is_true(value);
  else
    status = mg_fail(err, MG_REFUSED, "query '%s' does not answer with an integer", query);
  json_decref(value);
  return status;
}

static int info_body(lua_State *L) {
  json_t **info = lua_touserdata(L, 1);
  mg_prelude_push(L, "info");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &mg_recipe_key);
  lua_call(L, 1, 1);
  *info = mg_json_of(L, -1);
  return *info ? 0 : mg_lua_oom(L);
}

mg_status mg_runtime_info(mg_runtime *rt, json_t **info, mg_error *err) {
  mg_status s = mg_runtime_check_loaded(rt, err);
  *info = NULL;
  if (!s) s = mg_runtime_protected(rt, info_body, info, err);
  if (s) {
    json_decref(*info);
    *info = NULL;
  }
  return s;
}

static void describe_text(const char *name, const json_t *info, mg_text *t) {
  size_t        i;
  const json_t *p, *q;
  const char   *doc = json_string_value(json_object_get(info, "doc"));
  mg_text_add(t, "%s%s%s\n\nparameters\n", name, doc && *doc ? ": " : "", doc ? doc : "");
  json_array_foreach(json_object_get(info, "params"), i, p) {
    const char   *value = json_string_value(json_object_get(p, "default"));
    const json_t *aliases = json_object_get(p, "aliases"), *alias;
    size_t        k;
    mg_text_add(t, "  %-36s %-8s %-18s %s", json_string_value(json_object_get(p, "name")),
                json_string_value(json_object_get(p, "kind")), value ? value : "-",
                json_string_value(json_object_get(p, "doc")));
    json_array_foreach(aliases, k, alias)
      mg_text_add(t, "%s%s", k ? ", " : " (also ", json_string_value(alias));
    mg_text_add(t, "%s\n", json_array_size(aliases) ? ")" : "");
  }
  if (json_array_size(json_object_get(info, "params")) == 0) mg_text_add(t, "  none\n");
  if (json_array_size(json_object_get(info, "policies")) > 0) mg_text_add(t, "\npolicies\n");
  json_array_foreach(json_object_get(info, "policies"), i, q) {
    const char *policy = json_string_value(json_object_get(q, "name")), *by = json_string_value(json_object_get(q, "agreed"));
    if (by)
      mg_text_add(t, "  %-36s agreed by %s%s\n", policy, strcmp(by, "world") == 0 ? "the " : "", by);
    else
      mg_text_add(t, "  %s\n", policy);
  }
  if (json_array_size(json_object_get(info, "queries")) == 0) return;
  mg_text_add(t, "\nqueries");
  json_array_foreach(json_object_get(info, "arguments"), i, q)
    mg_text_add(t, "%s%s", i ? ", " : ", which take ", json_string_value(q));
  mg_text_add(t, "\n");
  json_array_foreach(json_object_get(info, "queries"), i, q) mg_text_add(t, "  %s\n", json_string_value(q));
}

mg_status mg_runtime_describe(mg_runtime *rt, bool json, mg_sink sink, void *ud, mg_error *err) {
  json_t   *info;
  mg_status s = mg_runtime_info(rt, &info, err);
  if (s) return s;
  mg_text t = { 0 };
  if (json) {
    json_object_set_new(info, "name", json_string(rt->recipe));
    char *text = json_dumps(info, JSON_INDENT(2) | JSON_SORT_KEYS);
    if (text) mg_text_add(&t, "%s\n", text);
    t.failed |= !text;
    free(text);
  } else {
    describe_text(rt->recipe, info, &t);
  }
  json_decref(info);
  if (t.failed)
    s = mg_oom(err);
  else if (sink(ud, t.data, t.len) != 0)
    s = mg_fail(err, MG_LIMIT, "the output could not be written");
  mg_text_free(&t);
  return s;
}

const char *const *mg_recipe_names(void) { return mg_bundled_names; }

const char *mg_lua_release(void) { return LUA_RELEASE; }
