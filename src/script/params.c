/* SPDX-License-Identifier: MIT
**
** params.c - evaluates a recipe to a plan. Parameters come as "name=value" strings (the tail of an argv) on
** top of a file, or as C values.
*/
#include "script/runtime.h"

#include "script/prelude.h"
#include "types/values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct evaluation {
  const char *recipe;
  int64_t     world;
  mgrid_push *push;
  const void *params;
  mgrid_plan *plan;
} evaluation;

static int plan_body(lua_State *L) {
  evaluation *e = lua_touserdata(L, 1);
  mgrid_prelude_push(L, "evaluate");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &mgrid_recipe_key);
  *mgrid_lua_new_world(L) = mgrid_world(e->world);
  e->push(L, e->params);
  lua_call(L, 3, 1);
  mgrid_topology *t = mgrid_lua_check_topology(L, -1);
  if (t->content.world != e->world)
    return mgrid_lua_raise(L, "the recipe made a topology for %" PRId64 " ranks in a world of %" PRId64,
                           t->content.world, e->world);
  mgrid_error err = MGRID_ERROR_INIT;
  if (mgrid_topology_recipe(t, e->recipe, &err)) return mgrid_lua_raise_error(L, &err);
  e->plan = mgrid_plan_new(t, &err);
  return e->plan ? 0 : mgrid_lua_raise_error(L, &err);
}

mgrid_plan *mgrid_runtime_plan_with(mgrid_runtime *rt, int64_t world, mgrid_push *push, const void *params,
                                    mgrid_error *err) {
  if (!rt || mgrid_runtime_check_loaded(rt, err)) return NULL;
  if (world < 1 || world > MGRID_WORLD_MAX)
    return mgrid_null(err, MGRID_OUT_OF_RANGE, "a world has 1 to %" PRId64 " ranks, not %" PRId64, MGRID_WORLD_MAX,
                      world);
  evaluation e = { rt->recipe, world, push, params, NULL };
  if (mgrid_runtime_protected(rt, plan_body, &e, err)) {
    mgrid_plan_free(e.plan);
    return NULL;
  }
  mgrid_log(&rt->budget.hooks, MGRID_LOG_INFO, "recipe %s is planned for %" PRId64 " ranks: %zu families", rt->recipe,
            world, mgrid_plan_nfamilies(e.plan));
  return e.plan;
}

/* ------------------------------------------------------------------------ strings */

/* Put "name=value" strings into the object, over the values of the file; a name in two strings is an error. */
static mgrid_status add_strings(json_t *object, size_t n, const char *const *args, mgrid_error *err) {
  json_t      *given = json_object();
  mgrid_status s = given ? MGRID_OK : mgrid_oom(err);
  for (size_t i = 0; i < n && !s; i++) {
    const char *eq = strchr(args[i], '=');
    char        name[128];
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
  if (!s && json_object_update(object, given) != 0) s = mgrid_oom(err);
  json_decref(given);
  return s;
}

mgrid_plan *mgrid_runtime_plan(mgrid_runtime *rt, int64_t world, size_t n, const char *const *args, mgrid_error *err) {
  return mgrid_runtime_plan_file(rt, world, NULL, n, args, err);
}

/* ---------------------------------------------------------------------- C values */

typedef struct arguments {
  size_t           n;
  const mgrid_arg *at;
} arguments;

static void push_arguments(lua_State *L, const void *arguments_) {
  const arguments *a = arguments_;
  mgrid_push_args(L, a->n, a->at);
}

mgrid_plan *mgrid_runtime_plan_values(mgrid_runtime *rt, int64_t world, size_t n, const mgrid_arg *args,
                                      mgrid_error *err) {
  if (!rt || mgrid_args_check(n, args, err)) return NULL;
  if (!mgrid_args_are_sound(n, args))
    return mgrid_null(err, MGRID_USAGE, "a parameter has no name, no kind, or text that is not UTF-8");
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < i; k++)
      if (strcmp(mgrid_arg_at(args, i)->name, mgrid_arg_at(args, k)->name) == 0)
        return mgrid_null(err, MGRID_DUPLICATE, "a parameter is given twice");
  return mgrid_runtime_plan_with(rt, world, push_arguments, &(arguments){ n, args }, err);
}

/* -------------------------------------------------------------------------- files */

typedef struct table_file {
  const char *path;
  json_t     *values;
} table_file;

/* return { tp = 2 }: Lua as a recipe sees it. */
static int run_file(lua_State *L) {
  table_file *f = lua_touserdata(L, 1);
  mgrid_prelude_load(L, f->path);
  lua_call(L, 0, 1);
  f->values = lua_istable(L, -1) ? mgrid_json_of(L, -1) : NULL;
  if (!json_is_object(f->values) && !(json_is_array(f->values) && json_array_size(f->values) == 0))
    return mgrid_lua_raise(L, "%s: a file of parameters returns a table of plain values by name", f->path);
  return 0;
}

static mgrid_status read_file(mgrid_runtime *rt, const char *path, json_t **object, mgrid_error *err) {
  size_t len = strlen(path);
  *object = NULL;
  if (len > 5 && strcmp(path + len - 5, ".json") == 0) {
    json_error_t why;
    *object = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!*object && why.line <= 0) return mgrid_fail(err, MGRID_REFUSED, "%s: %s", path, why.text);
    if (json_is_object(*object)) return MGRID_OK;
    mgrid_error e = MGRID_ERROR_INIT;
    mgrid_fail(&e, MGRID_REFUSED, "%s:%d: %s", path, why.line > 0 ? why.line : 1,
               *object ? "a file of parameters is a JSON object" : why.text);
    e.line = why.line > 0 ? why.line : 1;
    snprintf(e.file, sizeof e.file, "%.199s", path);
    json_decref(*object);
    *object = NULL;
    return mgrid_error_pass(err, &e);
  }
  table_file   f = { path, NULL };
  mgrid_status s = mgrid_runtime_protected(rt, run_file, &f, err);
  if (s || json_is_object(f.values)) {
    *object = s ? NULL : f.values;
    if (s) json_decref(f.values);
    return s;
  }
  json_decref(f.values); /* {} */
  *object = json_object();
  return *object ? MGRID_OK : mgrid_oom(err);
}

static void push_object(lua_State *L, const void *object) { mgrid_push_json(L, object); }

mgrid_plan *mgrid_runtime_plan_file(mgrid_runtime *rt, int64_t world, const char *path, size_t n,
                                    const char *const *args, mgrid_error *err) {
  json_t     *object = NULL;
  mgrid_plan *p = NULL;
  if (!rt || mgrid_runtime_check_loaded(rt, err)) return NULL;
  mgrid_status s = path ? read_file(rt, path, &object, err) : MGRID_OK;
  if (!s && !object && !(object = json_object())) s = mgrid_oom(err);
  if (!s) s = add_strings(object, n, args, err);
  if (!s) p = mgrid_runtime_plan_with(rt, world, push_object, object, err);
  json_decref(object);
  return p;
}
