/* SPDX-License-Identifier: MIT
**
** diff_step.c - moongrid diff --step: where bytes, memory and time of a step change from one layout to another.
*/
#include "machine/command/given.h"
#include "plan/json.h"
#include "step/command/priced.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

mgrid_status cli_diff_step(const cli *a, mgrid_runtime *const rt[2], const mgrid_plan *const plan[2], bool json,
                           bool *differ, mgrid_error *err);

/* The step of a side as an object: its families and memory; with a machine its price. NULL with *err. */
static json_t *side(const cli *c, mgrid_runtime *rt, const mgrid_plan *p, mgrid_error *err) {
  step_priced  o = { cli_added_text(c, "flops"), cli_added_text(c, "costs") };
  step_price   price;
  step_verdict v;
  bool         priced = false;
  mgrid_step  *s = mgrid_step_new(rt, p, NULL, err);
  mgrid_status status = s ? mgrid_step_conclude(s, STEP_NCCL, 0, &v, err) : err->status;
  if (!status && v.told != STEP_PROVED && v.told != STEP_HAZARD) {
    mgrid_text why = { 0 };
    mgrid_step_verdict_text(s, &v, &why);
    status = mgrid_fail(err, MGRID_UNPROVED, "the step of %s is not proved (%s): %.700s", c->recipe,
                        mgrid_step_told_names[v.told], mgrid_text_chars(&why));
    mgrid_text_free(&why);
  }
  if (!status) status = cli_price(c, &o, s, &price, &priced, err);
  json_t *all = status ? NULL : mgrid_step_report(s, priced ? &price : NULL, err);
  if (priced) mgrid_step_price_free(&price);
  mgrid_step_free(s);
  return all;
}

/* -------------------------------------------------------------------- rows */

typedef struct rows {
  json_t *list; /* [{ "of", "name", "what", "from", "to" }]: what differs */
} rows;

static double number_at(const json_t *x, const char *key) {
  const json_t *v = json_object_get(x, key);
  return json_is_number(v) ? json_number_value(v) : 0;
}

static bool alike(double a, double b) { return a == b || (a > 0 && b > 0 && a / b < 1 + 1e-9 && b / a < 1 + 1e-9); }

static void add(rows *r, const char *of, const char *name, const char *what, double from, double to) {
  if (alike(from, to)) return;
  json_array_append_new(r->list,
                        mgrid_json_pack("{sssssssfsf}", "of", of, "name", name, "what", what, "from", from, "to", to));
}

/* The keys of two objects, each once, in the order of the first, then of the second. */
static json_t *keys_of(const json_t *a, const json_t *b) {
  json_t     *keys = json_object(), *v;
  const char *key;
  json_object_foreach((json_t *)(uintptr_t)a, key, v) json_object_set_new(keys, key, json_true());
  json_object_foreach((json_t *)(uintptr_t)b, key, v) json_object_set_new(keys, key, json_true());
  return keys;
}

static void compare_families(rows *r, const json_t *a, const json_t *b) {
  static const char *const fields[] = { "calls", "bytes", "seconds" };
  json_t                  *names = keys_of(a, b), *v, *w;
  const char              *name, *level;
  json_object_foreach(names, name, v) {
    const json_t *x = json_object_get(a, name), *y = json_object_get(b, name);
    for (size_t i = 0; i < 3; i++) add(r, "family", name, fields[i], number_at(x, fields[i]), number_at(y, fields[i]));
    const json_t *from = json_object_get(x, "levels"), *to = json_object_get(y, "levels");
    json_t       *levels = keys_of(from, to);
    json_object_foreach(levels, level, w) {
      mgrid_text what = { 0 };
      mgrid_text_add(&what, "bytes out of %s", level);
      add(r, "family", name, mgrid_text_chars(&what), number_at(json_object_get(from, level), "bytes"),
          number_at(json_object_get(to, level), "bytes"));
      mgrid_text_free(&what);
    }
    json_decref(levels);
  }
  json_decref(names);
}

static json_t *compare(const json_t *a, const json_t *b) {
  static const char *const times[] = { "seconds", "compute", "exposed", "hidden", "bubble" };
  rows                     r = { json_array() };
  const json_t            *was = json_object_get(a, "memory"), *is = json_object_get(b, "memory");
  json_t                  *names = keys_of(json_object_get(was, "by"), json_object_get(is, "by")), *v;
  const char              *name;
  for (size_t i = 0; i < sizeof times / sizeof *times; i++)
    add(&r, "time", times[i], "seconds", number_at(a, times[i]), number_at(b, times[i]));
  compare_families(&r, json_object_get(a, "families"), json_object_get(b, "families"));
  add(&r, "memory", "peak", "bytes", number_at(was, "peak"), number_at(is, "peak"));
  json_object_foreach(names, name, v) add(&r, "memory", name, "bytes", number_at(json_object_get(was, "by"), name),
                                          number_at(json_object_get(is, "by"), name));
  json_decref(names);
  return r.list;
}

/* -------------------------------------------------------------------- text */

static const char *shown(double x, const char *what, char *buf, size_t len) {
  if (strcmp(what, "seconds") == 0) return cli_seconds(x, buf, len);
  if (strncmp(what, "bytes", 5) == 0) return cli_bytes(x < 9e18 ? (int64_t)x : INT64_MAX, buf, len);
  mgrid_format(buf, len, "%.0f", x);
  return buf;
}

static void print_rows(const json_t *list) {
  size_t        i;
  const json_t *row;
  const char   *last = "";
  if (json_array_size(list) == 0) printf("the steps cost the same\n");
  json_array_foreach((json_t *)(uintptr_t)list, i, row) {
    const char *of = json_string_value(json_object_get(row, "of")),
               *name = json_string_value(json_object_get(row, "name")),
               *what = json_string_value(json_object_get(row, "what"));
    double from = number_at(row, "from"), to = number_at(row, "to");
    char   a[32], b[32], by[32] = "";
    if (from > 0 && to > 0) mgrid_format(by, sizeof by, "%+.1f%%", 100 * (to / from - 1));
    if (strcmp(of, last) != 0)
      printf("%s%s\n", i ? "\n" : "",
             strcmp(of, "time") == 0 ? "time of the step, and of the mean rank in it"
             : *of == 'm'            ? "memory of the rank with the most"
                          : "families: calls, bytes and time of the rank with the most; bytes out of domains, of all");
    printf("%s %-16s %-20s %12s -> %-12s %s\n",
           from <= 0 ? "+"
           : to <= 0 ? "-"
                     : "~",
           name, what, shown(from, what, a, sizeof a), shown(to, what, b, sizeof b), by);
    last = of;
  }
}

mgrid_status cli_diff_step(const cli *a, mgrid_runtime *const rt[2], const mgrid_plan *const plan[2], bool json,
                           bool *differ, mgrid_error *err) {
  mgrid_status status = MGRID_OK;
  if (!rt[0] || !rt[1]) return mgrid_fail(err, MGRID_USAGE, "--step compares recipes: a saved plan has no step");
  json_t *was = side(a, rt[0], plan[0], err), *is = was ? side(a->other ? a->other : a, rt[1], plan[1], err) : NULL;
  json_t *list = is ? compare(was, is) : NULL;
  if (!list) status = err->status;
  *differ = json_array_size(list) > 0;
  if (list && json) {
    json_t *all = mgrid_json_pack("{sbsOsOsO}", "differ", *differ, "changes", list, "from", was, "to", is);
    status = cli_put_json(all, err);
    json_decref(all);
  } else if (list) {
    print_rows(list);
  }
  json_decref(was);
  json_decref(is);
  json_decref(list);
  return status;
}
