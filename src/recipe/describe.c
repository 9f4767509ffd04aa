/* SPDX-License-Identifier: MIT
**
** describe.c - the doc, parameters, settings, policies and queries of a recipe, as text and as JSON.
*/
#include "recipe/entry.h"
#include "recipe/prelude.h"
#include "recipe/runtime.h"
#include "recipe/values.h"

#include <string.h>

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
    s = mgrid_fail(err, MGRID_OUT_OF_RANGE, "the recipe describes itself in " MGRID_TOO_MUCH, MGRID_VALUES_MAX,
                   MGRID_VALUES_TEXT_MAX);
  else if (!s && !*info)
    s = mgrid_oom(err);
  lua_settop(rt->L, 0);
  return s;
}

/* Append a line for each parameter or setting. */
static void describe_declared(const json_t *list, mgrid_text *t) {
  size_t        i;
  const json_t *p;
  json_array_foreach(list, i, p) {
    const char   *value = json_string_value(json_object_get(p, "default"));
    char          digits[40];
    const json_t *aliases = json_object_get(p, "aliases"), *alias;
    size_t        k;
    mgrid_text_add(t, "  %-36s %-8s %-18s %s", json_string_value(json_object_get(p, "name")),
                   json_string_value(json_object_get(p, "kind")),
                   value ? mgrid_shortest(value, digits, sizeof digits) : "-",
                   json_string_value(json_object_get(p, "doc")));
    json_array_foreach(aliases, k, alias) mgrid_text_add(t, "%s%s", k ? ", " : " (also ", json_string_value(alias));
    mgrid_text_add(t, "%s\n", json_array_size(aliases) ? ")" : "");
  }
}

/* Append a line for each family that a getter gives, with the arguments that select it. */
static void describe_getters(const json_t *list, mgrid_text *t) {
  size_t        i, k;
  const json_t *getter, *one;
  if (json_array_size(list) > 0) mgrid_text_add(t, "\ngetters of groups, and their families at the defaults\n");
  json_array_foreach(list, i, getter) {
    const json_t *gives = json_object_get(getter, "gives");
    const char   *name = json_string_value(json_object_get(getter, "name"));
    if (json_array_size(gives) == 0) mgrid_text_add(t, "  %s\n", name);
    json_array_foreach(gives, k, one) {
      const char *with = json_string_value(json_object_get(one, "arguments"));
      mgrid_text_add(t, "  %-50s %s%s%s%s\n", k ? "" : name, json_string_value(json_object_get(one, "family")),
                     *with ? " (" : "", with, *with ? ")" : "");
    }
  }
}

static void describe_text(const char *name, const json_t *info, mgrid_text *t) {
  size_t        i;
  const json_t *q, *settings = json_object_get(info, "settings");
  const char   *doc = json_string_value(json_object_get(info, "doc"));
  mgrid_text_shown(t, name);
  mgrid_text_add(t, "%s%s\n\nparameters\n", doc && *doc ? ": " : "", doc ? doc : "");
  describe_declared(json_object_get(info, "params"), t);
  if (json_array_size(json_object_get(info, "params")) == 0) mgrid_text_add(t, "  none\n");
  if (json_array_size(settings) > 0) mgrid_text_add(t, "\nsettings\n");
  describe_declared(settings, t);
  if (json_array_size(json_object_get(info, "policies")) > 0) mgrid_text_add(t, "\npolicies\n");
  json_array_foreach(json_object_get(info, "policies"), i, q) {
    const char *policy = json_string_value(json_object_get(q, "name")),
               *by = json_string_value(json_object_get(q, "agreed"));
    if (by)
      mgrid_text_add(t, "  %-36s agreed by %s%s\n", policy, strcmp(by, "world") == 0 ? "the " : "", by);
    else
      mgrid_text_add(t, "  %s\n", policy);
  }
  if (json_array_size(json_object_get(info, "functions")) > 0) mgrid_text_add(t, "\nfunctions of the host\n");
  json_array_foreach(json_object_get(info, "functions"), i, q)
      mgrid_text_add(t, "  %-36s version %s\n", json_string_value(json_object_get(q, "name")),
                     json_string_value(json_object_get(q, "version")));
  if (json_array_size(json_object_get(info, "queries")) > 0) mgrid_text_add(t, "\nqueries\n");
  json_array_foreach(json_object_get(info, "queries"), i, q) mgrid_text_add(t, "  %s\n", json_string_value(q));
  describe_getters(json_object_get(info, "getters"), t);
  if (json_array_size(json_object_get(info, "arguments")) > 0) mgrid_text_add(t, "\narguments of these\n");
  describe_declared(json_object_get(info, "arguments"), t);
  if (json_array_size(json_object_get(info, "families")) > 0) mgrid_text_add(t, "\nfamilies that exist with\n");
  json_array_foreach(json_object_get(info, "families"), i, q) mgrid_text_add(
      t, "  %-36s %s\n", json_string_value(json_object_get(q, "name")), json_string_value(json_object_get(q, "with")));
}

mgrid_status mgrid_script_describe(mgrid_runtime *rt, bool json, mgrid_sink sink, void *ud, mgrid_error *err) {
  json_t      *info;
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
