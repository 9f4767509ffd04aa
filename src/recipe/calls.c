/* SPDX-License-Identifier: MIT
**
** calls.c - what a host asks of a recipe: plans, answers, groups, settings, a description, a reload
** after a change, and requests of modules. libmoongrid calls these functions through the table at
** the end.
*/
#include "recipe/entry.h"

#include "recipe/bundle.h"
#include "recipe/function.h"
#include "recipe/prelude.h"
#include "recipe/value_file.h"
#include "recipe/result.h"
#include "recipe/runtime.h"
#include "recipe/module_row.h"
#include "recipe/values.h"

#include <inttypes.h>
#include <string.h>

/* -------------------------------------------------------------------- plans
** Parameters are C values, or "name=value" strings (the end of an argv) that override the values of
** a file.
*/

typedef struct evaluation {
  const char *recipe;
  int64_t world;
  const mgrid_given *params;
  json_t *file;          /* values of a file of parameters; NULL: none */
  mgrid_plan *plan;      /* the result */
  mgrid_runtime *trails; /* the runtime whose `trail` is to be set; NULL: none */
} evaluation;

static int plan_body(lua_State *L) {
  evaluation *e = lua_touserdata(L, 1);
  mgrid_prelude_push(L, "evaluate");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &mgrid_recipe_key);
  mgrid_lua_new_world(L)->window = mgrid_world(e->world);
  mgrid_push_given(L, e->params);
  if (e->file) mgrid_push_json(L, e->file);
  lua_call(L, e->file ? 4 : 3, 1);
  mgrid_topology *t = mgrid_lua_check_topology(L, -1);
  mgrid_error err = MGRID_ERROR_INIT;
  if (mgrid_topology_recipe(t, e->recipe, &err)) return mgrid_lua_raise_error(L, &err);
  mgrid_budget *budget = mgrid_lua_work(L);
  e->plan = mgrid_plan_make(t, budget, &err);
  mgrid_lua_charge(L, 0);
  if (e->plan && e->trails) {
    mgrid_lua_trail_push(L, lua_gettop(L));
    json_decref(e->trails->trail);
    e->trails->trail = mgrid_json_of(L, -1);
  }
  return e->plan ? 0 : mgrid_lua_raise_error(L, &err);
}

static int trail_body(lua_State *L) {
  mgrid_lua_trail_begin(L);
  return 0;
}

mgrid_status mgrid_runtime_trail(mgrid_runtime *rt, mgrid_error *err) {
  rt->trails = true;
  return mgrid_runtime_protected(rt, trail_body, NULL, err);
}

static mgrid_plan *plan_with(mgrid_runtime *rt, int64_t world, const mgrid_given *params,
                             json_t *file, mgrid_error *err) {
  if (mgrid_runtime_check_loaded(rt, err)) return NULL;
  if (world < 1 || world > MGRID_WORLD_MAX)
    return mgrid_null(err, MGRID_OUT_OF_RANGE, "a world has 1 to %" PRId64 " ranks, not %" PRId64,
                      MGRID_WORLD_MAX, world);
  evaluation e = { rt->recipe, world, params, file, NULL, rt->trails ? rt : NULL };
  if (mgrid_runtime_protected(rt, plan_body, &e, err)) {
    mgrid_plan_free(e.plan);
    return NULL;
  }
  mgrid_log(&rt->budget.hooks, MGRID_LOG_INFO,
            "recipe %s is planned for %" PRId64 " ranks: %zu families", rt->recipe, world,
            mgrid_plan_nfamilies(e.plan));
  return e.plan;
}

mgrid_plan *mgrid_runtime_plan_with(mgrid_runtime *rt, int64_t world, const mgrid_given *params,
                                    mgrid_error *err) {
  return plan_with(rt, world, params, NULL, err);
}

/* ------------------------------------------------------------------------ strings */

/* Put "name=value" strings into the object. A name in two strings is an error. */
static mgrid_status add_strings(json_t *given, size_t n, const char *const *args,
                                mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  for (size_t i = 0; i < n && !s; i++) {
    const char *eq = args[i] ? strchr(args[i], '=') : NULL;
    char name[128];
    if (!args[i]) {
      s = mgrid_fail(err, MGRID_USAGE, "argument %zu of %zu is NULL", i + 1, n);
      break;
    }
    if (!eq || eq == args[i] || (size_t)(eq - args[i]) >= sizeof name) {
      s = mgrid_fail(err, MGRID_USAGE, "argument '%s' is not of the form NAME=VALUE", args[i]);
      break;
    }
    memcpy(name, args[i], (size_t)(eq - args[i]));
    name[eq - args[i]] = '\0';

    if (json_object_get(given, name))
      s = mgrid_fail(err, MGRID_USAGE, "parameter '%s' is given twice", name);
    else if (!mgrid_is_utf8(args[i], strlen(args[i])))
      s = mgrid_fail(err, MGRID_USAGE, "argument '%s' is not UTF-8 text", args[i]);
    else if (json_object_set_new(given, name, json_string(eq + 1)) != 0)
      s = mgrid_oom(err);
  }
  return s;
}

/* ---------------------------------------------------------------------- C values */

mgrid_plan *mgrid_script_plan_values(mgrid_runtime *rt, int64_t world, size_t n,
                                     const mgrid_arg *args, mgrid_error *err) {
  if (mgrid_args_check(n, args, "parameter", err)) return NULL;
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < i; k++)
      if (strcmp(mgrid_arg_at(args, i)->name, mgrid_arg_at(args, k)->name) == 0)
        return mgrid_null(err, MGRID_DUPLICATE, "a parameter is given twice");
  return mgrid_runtime_plan_with(rt, world, &(mgrid_given){ .n = n, .args = args }, err);
}

/* -------------------------------------------------------------------------- files */

typedef struct table_file {
  const char *path;
  json_t *values;
} table_file;

/* Run a file "return { tp = 2 }" as Lua in a recipe's sandbox. */
static int run_file(lua_State *L) {
  table_file *f = lua_touserdata(L, 1);
  mgrid_prelude_load(L, f->path);
  lua_call(L, 0, 1);
  f->values = lua_istable(L, -1) ? mgrid_json_of(L, -1) : NULL;
  if (!f->values) mgrid_lua_charge(L, 0); /* raises if the budget is exhausted */
  if (!json_is_object(f->values) && !(json_is_array(f->values) && json_array_size(f->values) == 0))
    return mgrid_lua_raise(
        L, "%s: a file of parameters returns a table such as { tp = 2 }, with plain values",
        f->path);
  return 0;
}

/* Return whether a text is Lua, and not JSON or YAML: it is empty, or starts with a comment of Lua
** or with `return` or `local`, if this word is not a key of YAML. */
static bool is_lua(const char *text) {
  text += strspn(text, " \t\r\n");
  if (strncmp(text, "---", 3) == 0) return text[3] == '-'; /* "---" begins a document of YAML */
  size_t word = strspn(text, "abcdefghijklmnopqrstuvwxyz");
  if (strncmp(text, "--", 2) == 0 || *text == '\0') return true;
  return ((word == 6 && strncmp(text, "return", 6) == 0)
          || (word == 5 && strncmp(text, "local", 5) == 0))
         && text[word + strspn(text + word, " ")] != ':';
}

/* Return whether a file is JSON or YAML rather than Lua. The ending of its name decides; if the
** ending is not known, the text decides. */
static bool is_table(const char *path, mgrid_status *s, mgrid_error *err) {
  const char *dot = strrchr(path, '.');
  if (dot && (strcmp(dot, ".json") == 0 || strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0))
    return true;
  if (dot && strcmp(dot, ".lua") == 0) return false;
  mgrid_text t = { 0 };
  *s = mgrid_read_file(path, &t, err);
  bool table = !*s && t.data && !is_lua(t.data);
  mgrid_text_free(&t);
  return table;
}

static mgrid_status params_read_file(mgrid_runtime *rt, const char *path, json_t **object,
                                     mgrid_error *err) {
  mgrid_error mine = MGRID_ERROR_INIT;
  mgrid_status s = MGRID_OK;
  bool table = is_table(path, &s, &mine);
  *object = NULL;
  if (!s && table && !(*object = mgrid_read_table(path, &mine))) s = mine.status;
  if (s || table) return s ? mgrid_error_pass(err, &mine) : MGRID_OK;
  table_file f = { path, NULL };
  mgrid_budget_keep_home(rt->L);
  s = mgrid_runtime_protected(rt, run_file, &f, err);
  mgrid_budget_back_home(rt->L);
  if (s || json_is_object(f.values)) {
    *object = s ? NULL : f.values;
    if (s) json_decref(f.values);
    return s;
  }
  json_decref(f.values); /* {} */
  *object = json_object();
  return *object ? MGRID_OK : mgrid_oom(err);
}

mgrid_plan *mgrid_script_plan(mgrid_runtime *rt, int64_t world, const char *path, size_t n,
                              const char *const *args, mgrid_error *err) {
  json_t *file = NULL, *given = json_object();
  mgrid_plan *p = NULL;
  if (mgrid_runtime_check_loaded(rt, err)) {
    json_decref(given);
    return NULL;
  }
  mgrid_status s = given ? MGRID_OK : mgrid_oom(err);
  if (!s && path) s = params_read_file(rt, path, &file, err);
  if (!s) s = add_strings(given, n, args, err);
  if (!s) p = plan_with(rt, world, &(mgrid_given){ .json = given }, file, err);
  json_decref(given);
  json_decref(file);
  return p;
}

/* ------------------------------------------------------------------ answers
** Questions about a state that have the names of a modelled system's functions: a query returns a
** value, a getter a group.
*/

/* Its address is the registry key of the State that the running query or getter got. */
static const char asked_key = 'a';

typedef struct question {
  mgrid_runtime *rt;
  mgrid_state *state;
  const char *how;  /* "ask" for a query, "group" for a getter */
  const char *name; /* of the query or getter */
  const mgrid_given *args;
  const char *from; /* "query 'world_size'" */
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

/* Ask the question, and keep the answer as rt->answer. */
static mgrid_status calls_ask(const question *q, mgrid_error *err) {
  lua_State *L = q->rt->L;
  mgrid_status status = mgrid_runtime_check_state(q->rt, q->state, err);
  if (status) return status;
  status = mgrid_runtime_call(q->rt, ask_body, (void *)q, err);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &asked_key);
  mgrid_runtime_close_state(L);
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &asked_key);
  return status;
}

mgrid_status mgrid_runtime_ask_with(mgrid_runtime *rt, mgrid_state *s, const char *query,
                                    const mgrid_given *args, const char *from, mgrid_error *err) {
  return calls_ask(&(question){ rt, s, "ask", query, args, from }, err);
}

mgrid_status mgrid_script_ask(mgrid_runtime *rt, mgrid_state *s, const char *query, size_t n,
                              const mgrid_arg *args, mgrid_kind kind, mgrid_arg *answer,
                              mgrid_error *err) {
  char from[128];
  mgrid_given given = { .n = n, .args = args };
  mgrid_status status = mgrid_args_check(n, args, NULL, err);
  snprintf(from, sizeof from, "query '%s'", query);
  if (!status) status = mgrid_runtime_ask_with(rt, s, query, &given, from, err);
  if (!status)
    status =
        mgrid_result_read(&(mgrid_reading){ rt, rt->answer, from, NULL, kind, true }, answer, err);
  return status;
}

mgrid_status mgrid_runtime_group_with(mgrid_runtime *rt, mgrid_state *s, const char *getter,
                                      const mgrid_given *args, const mgrid_group **group,
                                      mgrid_error *err) {
  mgrid_status status = calls_ask(&(question){ rt, s, "group", getter, args, "a getter" }, err);
  *group = NULL;
  if (status) return status;
  mgrid_result_push(rt->L, rt->answer);
  const char *family = lua_tostring(rt->L, -1); /* nil: this rank is in no group */
  if (family) *group = mgrid_state_group(s, family, NULL);
  lua_settop(rt->L, 0);
  return MGRID_OK;
}

const mgrid_group *mgrid_script_group(mgrid_runtime *rt, mgrid_state *s, const char *getter,
                                      size_t n, const mgrid_arg *args, mgrid_error *err) {
  const mgrid_group *group = NULL;
  if (!mgrid_args_check(n, args, NULL, err))
    mgrid_runtime_group_with(rt, s, getter, &(mgrid_given){ .n = n, .args = args }, &group, err);
  return group;
}

/* ----------------------------------------------------------------- settings
** A host switches settings while it runs, and the recipe's queries see them. The recipe declares
** settings and their kinds; the state keeps the values.
*/

typedef struct new_setting {
  mgrid_state *state;
  const char *name;
  const mgrid_given *value;
} new_setting;

/* Keep the value at i under this name; nil removes the setting. False: memory or the budget is
** exhausted. */
static bool settings_keep(lua_State *L, int i, mgrid_state *s, const char *name) {
  if (!s->settings && !(s->settings = json_object())) return false;
  if (!lua_isnil(L, i)) return json_object_set_new(s->settings, name, mgrid_json_of(L, i)) == 0;
  json_object_del(s->settings, name);
  return true;
}

static int set_body(lua_State *L) {
  new_setting *set = lua_touserdata(L, 1);
  mgrid_prelude_push(L, "set");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &mgrid_recipe_key);
  lua_pushstring(L, set->name);
  mgrid_push_given(L, set->value);
  lua_call(L, 3, 2);
  if (settings_keep(L, -1, set->state, lua_tostring(L, -2))) return 0;
  mgrid_lua_charge(L, 0); /* raises if the budget is exhausted */
  return mgrid_lua_oom(L);
}

mgrid_status mgrid_runtime_set_with(mgrid_runtime *rt, mgrid_state *s, const char *name,
                                    const mgrid_given *value, mgrid_error *err) {
  mgrid_status status = mgrid_runtime_check_state(rt, s, err);
  return status ? status : mgrid_runtime_call(rt, set_body, &(new_setting){ s, name, value }, err);
}

mgrid_status mgrid_script_set(mgrid_runtime *rt, mgrid_state *s, const mgrid_arg *setting,
                              mgrid_error *err) {
  mgrid_status status = mgrid_args_check(1, setting, "setting", err);
  return status
             ? status
             : mgrid_runtime_set_with(rt, s, setting->name,
                                      &(mgrid_given){ .n = 1, .args = setting, .one = true }, err);
}

/* -------------------------------------------------------------- description */

static int info_body(lua_State *L) {
  mgrid_prelude_push(L, "info");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &mgrid_recipe_key);
  lua_call(L, 1, 1);
  return 1;
}

mgrid_status mgrid_runtime_info_json(mgrid_runtime *rt, json_t **info, mgrid_error *err) {
  mgrid_status s = mgrid_runtime_check_loaded(rt, err);
  if (!s) s = mgrid_runtime_value(rt, info_body, NULL, err);
  *info = NULL;
  if (s) return s;
  *info = mgrid_json_shown(rt->L, -1);
  bool fits = *info || mgrid_value_fits(rt->L, -1);
  if (!*info) s = mgrid_budget_after(&rt->budget, err);
  if (!s && !fits)
    s = mgrid_fail(err, MGRID_OUT_OF_RANGE, "the recipe describes itself in " MGRID_TOO_MUCH,
                   MGRID_VALUES_MAX, MGRID_VALUES_TEXT_MAX);
  else if (!s && !*info)
    s = mgrid_oom(err);
  lua_settop(rt->L, 0);
  return s;
}

/* Append a line for each parameter or setting. */
static void describe_declared(const json_t *list, mgrid_text *t) {
  size_t i;
  const json_t *p;
  json_array_foreach(list, i, p) {
    const char *value = json_string_value(json_object_get(p, "default"));
    char digits[40];
    const json_t *aliases = json_object_get(p, "aliases"), *alias;
    size_t k;
    mgrid_text_add(t, "  %-36s %-8s %-18s %s", json_string_value(json_object_get(p, "name")),
                   json_string_value(json_object_get(p, "kind")),
                   value ? mgrid_shortest(value, digits, sizeof digits) : "-",
                   json_string_value(json_object_get(p, "doc")));
    json_array_foreach(aliases, k, alias)
        mgrid_text_add(t, "%s%s", k ? ", " : " (also ", json_string_value(alias));
    mgrid_text_add(t, "%s\n", json_array_size(aliases) ? ")" : "");
  }
}

/* Append a line for each family that a getter returns, with the arguments that select it. */
static void describe_getters(const json_t *list, mgrid_text *t) {
  size_t i, k;
  const json_t *getter, *one;
  json_array_foreach(list, i, getter) {
    const json_t *gives = json_object_get(getter, "gives");
    const char *name = json_string_value(json_object_get(getter, "name"));
    if (json_array_size(gives) == 0) mgrid_text_add(t, "  %s\n", name);
    json_array_foreach(gives, k, one) {
      const char *with = json_string_value(json_object_get(one, "arguments"));
      mgrid_text_add(t, "  %-50s %s%s%s%s\n", k ? "" : name,
                     json_string_value(json_object_get(one, "family")), *with ? " (" : "", with,
                     *with ? ")" : "");
    }
  }
}

/* Return a list of the description. Append its title if it has items. */
static const json_t *describe_list(const json_t *info, const char *key, const char *title,
                                   mgrid_text *t) {
  const json_t *list = json_object_get(info, key);
  if (json_array_size(list) > 0) mgrid_text_add(t, "\n%s\n", title);
  return list;
}

static void describe_text(const char *name, const json_t *info, mgrid_text *t) {
  size_t i;
  const json_t *q, *list;
  const char *doc = json_string_value(json_object_get(info, "doc"));

  mgrid_text_shown(t, name);
  mgrid_text_add(t, "%s%s\n\nparameters\n", doc && *doc ? ": " : "", doc ? doc : "");
  describe_declared(json_object_get(info, "params"), t);
  if (json_array_size(json_object_get(info, "params")) == 0) mgrid_text_add(t, "  none\n");
  describe_declared(describe_list(info, "settings", "settings", t), t);
  list = describe_list(info, "policies", "policies", t);
  json_array_foreach(list, i, q) {
    const char *policy = json_string_value(json_object_get(q, "name")),
               *by = json_string_value(json_object_get(q, "agreed"));
    if (by)
      mgrid_text_add(t, "  %-36s agreed by %s%s\n", policy, strcmp(by, "world") == 0 ? "the " : "",
                     by);
    else
      mgrid_text_add(t, "  %s\n", policy);
  }
  list = describe_list(info, "functions", "functions of the host", t);
  json_array_foreach(list, i, q)
      mgrid_text_add(t, "  %-36s version %s\n", json_string_value(json_object_get(q, "name")),
                     json_string_value(json_object_get(q, "version")));
  list = describe_list(info, "queries", "queries", t);
  json_array_foreach(list, i, q) mgrid_text_add(t, "  %s\n", json_string_value(q));
  list = describe_list(info, "getters", "getters of groups, and their families at the defaults", t);
  describe_getters(list, t);
  describe_declared(describe_list(info, "arguments", "arguments of these", t), t);
  list = describe_list(info, "families", "families that exist with", t);
  json_array_foreach(list, i, q)
      mgrid_text_add(t, "  %-36s %s\n", json_string_value(json_object_get(q, "name")),
                     json_string_value(json_object_get(q, "with")));
}

mgrid_status mgrid_script_describe(mgrid_runtime *rt, bool json, mgrid_sink sink, void *ud,
                                   mgrid_error *err) {
  json_t *info;
  mgrid_status s = mgrid_runtime_info_json(rt, &info, err);
  if (s) return s;
  mgrid_text t = { 0 };
  if (json) {
    char name[4096];
    mgrid_shown(name, sizeof name, rt->recipe, strlen(rt->recipe));
    json_object_set_new(info, "name", json_string(name));
    mgrid_json_text(info, JSON_INDENT(2) | JSON_SORT_KEYS, &t);
    mgrid_text_str(&t, "\n");
  } else {
    describe_text(rt->recipe, info, &t);
  }
  json_decref(info);
  s = mgrid_text_flush(&t, sink, ud, err);
  mgrid_text_free(&t);
  return s;
}

/* ------------------------------------------------------------------- reload
** Load a changed recipe while the trainer runs. This makes a new runtime and a new state beside the
** old ones, so a failure on any rank changes nothing.
*/

/* Do all that is local: load the recipe (NULL: that of rt again), make its plan, and find what
** changes on this rank. Return NULL after an error. */
static mgrid_plan *calls_evaluate(mgrid_runtime *fresh, const mgrid_runtime *rt,
                                  const mgrid_state *s, const char *recipe, size_t n,
                                  const char *const *args, mgrid_change *what, mgrid_error *err) {
  mgrid_plan *plan = NULL;
  if (err->status || mgrid_functions_copy(fresh, rt, err)) return NULL;
  for (size_t i = 0; i < MGRID_LENT_MAX; i++)
    if (rt->lent[i].x && mgrid_script_lend(fresh, rt->lent[i].kind, rt->lent[i].x, err))
      return NULL;
  /* the host may have given the text of rt's recipe */
  const char *text = recipe ? NULL : rt->text.data;
  if (!mgrid_script_load(fresh, recipe ? recipe : rt->recipe, text, rt->text.len, err))
    plan = mgrid_script_plan(fresh, mgrid_plan_world(s->plan), NULL, n, args, err);
  if (!plan || mgrid_plan_diff(s->plan, plan, s->view.rank, what, NULL, NULL, err) == MGRID_OK)
    return plan;
  mgrid_plan_free(plan);
  return NULL;
}

mgrid_status mgrid_script_reload(const mgrid_runtime *rt, mgrid_state *s, const char *recipe,
                                 size_t n, const char *const *args, mgrid_state **new_s,
                                 mgrid_change *change, mgrid_error *err) {
  mgrid_error mine = MGRID_ERROR_INIT;
  mgrid_change what = MGRID_CHANGE_INIT;
  mgrid_runtime *fresh = NULL;

  if (change) mgrid_struct_check(change, sizeof what, "mgrid_change", &mine);
  if (recipe || mgrid_runtime_check_loaded(rt, &mine) == MGRID_OK)
    fresh = mgrid_script_runtime_new(&rt->budget.limits, &rt->budget.hooks, &mine);
  mgrid_plan *plan = calls_evaluate(fresh, rt, s, recipe, n, args, &what, &mine);

  /* From here on the calls are collective. A rank without a plan takes part, too, so that all ranks
  ** get its error. */
  mgrid_state *state = mgrid_state_make(plan, s->backend, s->name, s, NULL, &mine);
  mgrid_plan_free(plan);
  if (!state) {
    mgrid_script_runtime_free(fresh);
    return mgrid_error_pass(err, &mine);
  }
  mgrid_struct_write(change, &what, sizeof what);
  mgrid_log(&rt->budget.hooks, MGRID_LOG_INFO,
            "recipe %s is loaded again: %" PRId64 " communicators kept, %" PRId64
            " created, %" PRId64 " dropped",
            fresh->recipe, what.kept, what.created, what.dropped);
  state->runtime = fresh;
  *new_s = state;
  return MGRID_OK;
}

/* -------------------------------------------------------------------- shell
** lua/prelude/shell.lua runs lines that a user types, in the sandbox and within the limits of the
** recipe.
*/

typedef struct typed {
  const char *what, *text; /* the name of a function of the prelude; its argument */
  size_t len;
} typed;

static int typed_body(lua_State *L) {
  const typed *t = lua_touserdata(L, 1);
  mgrid_prelude_push(L, t->what);
  lua_pushlstring(L, t->text, t->len);
  lua_call(L, 1, 1);
  return 1;
}

int mgrid_lua_typed(lua_State *L, mgrid_runtime *rt, const char *what) {
  mgrid_error e = MGRID_ERROR_INIT;
  typed t = { .what = what };
  t.text = luaL_checklstring(L, 2, &t.len);
  if (mgrid_runtime_value(rt, typed_body, &t, &e)) return mgrid_lua_raise_runtime(L, &e);
  t.text = lua_tolstring(rt->L, -1, &t.len);
  if (t.text) return lua_pushlstring(L, t.text, t.len), 1;
  if (mgrid_copy_value(rt->L, -1, L, MGRID_AS_JSON)) return 1;
  return mgrid_budget_after(&rt->budget, &e) ? mgrid_lua_raise_error(L, &e)
                                             : mgrid_lua_raise(L, "too many words");
}

/* ------------------------------------------------------------------- modules */

mgrid_status mgrid_script_serve(mgrid_runtime *rt, const char *module, void *request,
                                mgrid_error *err) {
  for (const mgrid_lua_module *const *s = mgrid_lua_modules; *s; s++)
    if ((*s)->serve && strcmp((*s)->name, module) == 0) return (*s)->serve(rt, request, err);
  return mgrid_fail(err, MGRID_MISSING, "this libmoongrid_lua was built without %s", module);
}

/* -------------------------------------------------------------------- entry */

const mgrid_recipe_entry mgrid_lua_entry = { .layout = MGRID_LAYOUT,
                                             .names = mgrid_bundled_names,
#define X(name, type) .name = mgrid_script_##name,
                                             MGRID_RECIPE_FUNCTIONS(X)
#undef X
};
