/* SPDX-License-Identifier: MIT
**
** params.c - a plan's parameters in the forms that hosts have them: "name=value" strings (the tail
** of an argv), C values, a file. All become one JSON object, and one evaluation.
*/
#include "script/runtime.h"

#include "script/prelude.h"
#include "types/values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* "name=value" strings into the object; what it had of a file is replaced, what it had of the
** strings is a mistake. */
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

static json_t *value_of(const mgrid_arg *a, int depth);

static json_t *table_of(size_t n, const mgrid_arg *args, int depth) {
  json_t *object = depth > 16 ? NULL : json_object();
  for (size_t i = 0; i < n && object; i++)
    if (!args[i].name || json_object_set_new(object, args[i].name, value_of(&args[i], depth + 1)) != 0) {
      json_decref(object);
      return NULL;
    }
  return object;
}

static json_t *value_of(const mgrid_arg *a, int depth) {
  json_t *list;
  switch (a->kind) {
  case MGRID_IS_NONE: return json_null();
  case MGRID_IS_BOOLEAN: return json_boolean(a->as.boolean);
  case MGRID_IS_INTEGER: return json_integer(a->as.integer);
  case MGRID_IS_NUMBER: return json_real(a->as.number);
  case MGRID_IS_TEXT: return json_string(a->as.text);
  case MGRID_IS_INTEGERS:
    list = json_array();
    for (size_t i = 0; i < a->as.integers.n; i++) json_array_append_new(list, json_integer(a->as.integers.at[i]));
    return list;
  case MGRID_IS_NUMBERS:
    list = json_array();
    for (size_t i = 0; i < a->as.numbers.n; i++) json_array_append_new(list, json_real(a->as.numbers.at[i]));
    return list;
  case MGRID_IS_TABLE: return table_of(a->as.table.n, a->as.table.at, depth + 1);
  }
  return NULL;
}

mgrid_plan *mgrid_runtime_plan_values(mgrid_runtime *rt, int64_t world, size_t n, const mgrid_arg *args,
                                      mgrid_error *err) {
  json_t *object = table_of(n, args, 0);
  if (!object) return mgrid_null(err, MGRID_USAGE, "a parameter has no name, no kind, or text that is not UTF-8");
  if (json_object_size(object) != n) {
    json_decref(object);
    return mgrid_null(err, MGRID_USAGE, "a parameter is given twice");
  }
  mgrid_plan *p = mgrid_runtime_plan_json(rt, world, object, err);
  json_decref(object);
  return p;
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
    mgrid_fail(err, MGRID_REFUSED, "%s:%d: %s", path, why.line > 0 ? why.line : 1,
               *object ? "a file of parameters is a JSON object" : why.text);
    if (err) err->line = why.line > 0 ? why.line : 1;
    if (err) snprintf(err->file, sizeof err->file, "%.199s", path);
    json_decref(*object);
    *object = NULL;
    return MGRID_REFUSED;
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

mgrid_plan *mgrid_runtime_plan_file(mgrid_runtime *rt, int64_t world, const char *path, size_t n,
                                    const char *const *args, mgrid_error *err) {
  json_t     *object = NULL;
  mgrid_plan *p = NULL;
  if (!rt || mgrid_runtime_check_loaded(rt, err)) return NULL;
  mgrid_status s = path ? read_file(rt, path, &object, err) : MGRID_OK;
  if (!s && !object && !(object = json_object())) s = mgrid_oom(err);
  if (!s) s = add_strings(object, n, args, err);
  if (!s) p = mgrid_runtime_plan_json(rt, world, object, err);
  json_decref(object);
  return p;
}
