/* SPDX-License-Identifier: MIT
**
** params.c - evaluate a recipe to a plan. Parameters are "name=value" strings (the end of an argv) on top of a file, or
** C values.
*/
#include "recipe/runtime.h"

#include "recipe/entry.h"
#include "recipe/prelude.h"
#include "recipe/read.h"
#include "recipe/values.h"

#include <inttypes.h>
#include <string.h>

typedef struct evaluation {
  const char        *recipe;
  int64_t            world;
  const mgrid_given *params;
  json_t            *file; /* values of a file of parameters; NULL: none */
  mgrid_plan        *plan;
  mgrid_runtime     *trails; /* keeps the lines; NULL: none does */
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
  mgrid_error     err = MGRID_ERROR_INIT;
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

static mgrid_plan *plan_with(mgrid_runtime *rt, int64_t world, const mgrid_given *params, json_t *file,
                             mgrid_error *err) {
  if (mgrid_runtime_check_loaded(rt, err)) return NULL;
  if (world < 1 || world > MGRID_WORLD_MAX)
    return mgrid_null(err, MGRID_OUT_OF_RANGE, "a world has 1 to %" PRId64 " ranks, not %" PRId64, MGRID_WORLD_MAX,
                      world);
  evaluation e = { rt->recipe, world, params, file, NULL, rt->trails ? rt : NULL };
  if (mgrid_runtime_protected(rt, plan_body, &e, err)) {
    mgrid_plan_free(e.plan);
    return NULL;
  }
  mgrid_log(&rt->budget.hooks, MGRID_LOG_INFO, "recipe %s is planned for %" PRId64 " ranks: %zu families", rt->recipe,
            world, mgrid_plan_nfamilies(e.plan));
  return e.plan;
}

mgrid_plan *mgrid_runtime_plan_with(mgrid_runtime *rt, int64_t world, const mgrid_given *params, mgrid_error *err) {
  return plan_with(rt, world, params, NULL, err);
}

/* ------------------------------------------------------------------------ strings */

/* Put "name=value" strings into the object; a name in two strings is an error. */
static mgrid_status add_strings(json_t *given, size_t n, const char *const *args, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  for (size_t i = 0; i < n && !s; i++) {
    const char *eq = args[i] ? strchr(args[i], '=') : NULL;
    char        name[128];
    if (!args[i]) {
      s = mgrid_fail(err, MGRID_USAGE, "argument %zu of %zu is NULL", i, n);
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
    else if (json_object_set_new(given, name, json_string(eq + 1)) != 0)
      s = mgrid_fail(err, MGRID_USAGE, "argument '%s' is not UTF-8 text", args[i]);
  }
  return s;
}

/* ---------------------------------------------------------------------- C values */

mgrid_plan *mgrid_script_plan_values(mgrid_runtime *rt, int64_t world, size_t n, const mgrid_arg *args,
                                     mgrid_error *err) {
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
  json_t     *values;
} table_file;

/* Run a file "return { tp = 2 }" as Lua in a recipe's sandbox. */
static int run_file(lua_State *L) {
  table_file *f = lua_touserdata(L, 1);
  mgrid_prelude_load(L, f->path);
  lua_call(L, 0, 1);
  f->values = lua_istable(L, -1) ? mgrid_json_of(L, -1) : NULL;
  if (!f->values) mgrid_lua_charge(L, 0); /* raises if that is the reason */
  if (!json_is_object(f->values) && !(json_is_array(f->values) && json_array_size(f->values) == 0))
    return mgrid_lua_raise(L, "%s: a file of parameters returns a table of plain values by name", f->path);
  return 0;
}

/* Return whether a text is Lua, not JSON or YAML. It starts with a comment, or with a word that cannot be the first
** name of a table of values. */
static bool is_lua(const char *text) {
  text += strspn(text, " \t\r\n");
  if (strncmp(text, "---", 3) == 0) return text[3] == '-'; /* where a document of YAML begins */
  size_t word = strspn(text, "abcdefghijklmnopqrstuvwxyz");
  if (strncmp(text, "--", 2) == 0 || *text == '\0') return true;
  return ((word == 6 && strncmp(text, "return", 6) == 0) || (word == 5 && strncmp(text, "local", 5) == 0))
         && text[word + strspn(text + word, " ")] != ':';
}

/* Decide by the name, or, if that says nothing, by the text. */
static bool is_table(const char *path, mgrid_status *s, mgrid_error *err) {
  const char *dot = strrchr(path, '.');
  if (dot && (strcmp(dot, ".json") == 0 || strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0)) return true;
  if (dot && strcmp(dot, ".lua") == 0) return false;
  mgrid_text t = { 0 };
  *s = mgrid_read_file(path, &t, err);
  bool table = !*s && t.data && !is_lua(t.data);
  mgrid_text_free(&t);
  return table;
}

static mgrid_status read_file(mgrid_runtime *rt, const char *path, json_t **object, mgrid_error *err) {
  mgrid_error  mine = MGRID_ERROR_INIT;
  mgrid_status s = MGRID_OK;
  bool         table = is_table(path, &s, &mine);
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

mgrid_plan *mgrid_script_plan(mgrid_runtime *rt, int64_t world, const char *path, size_t n, const char *const *args,
                              mgrid_error *err) {
  json_t     *file = NULL, *given = json_object();
  mgrid_plan *p = NULL;
  if (mgrid_runtime_check_loaded(rt, err)) {
    json_decref(given);
    return NULL;
  }
  mgrid_status s = given ? MGRID_OK : mgrid_oom(err);
  if (!s && path) s = read_file(rt, path, &file, err);
  if (!s) s = add_strings(given, n, args, err);
  if (!s) p = plan_with(rt, world, &(mgrid_given){ .json = given }, file, err);
  json_decref(given);
  json_decref(file);
  return p;
}
