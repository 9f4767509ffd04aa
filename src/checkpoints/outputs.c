/* SPDX-License-Identifier: MIT
**
** outputs.c - which stored tensors make which tensors of the result: by layouts and rules of the user, by equal names,
** by those of the recipe, in this order.
*/
#include "checkpoints/outputs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static mgrid_status unknown(const outputs *o, const char *name, const char *where, mgrid_error *err) {
  enum { MOST = 128 };
  const char *known[MOST];
  char        tail[512];
  size_t      n = 0;
  for (; n < mgrid_plan_ntensors(o->plan) && n < MOST; n++) known[n] = mgrid_plan_tensor_name(o->plan, n);
  mgrid_suggest(tail, sizeof tail, name, known, n);
  return mgrid_fail(err, MGRID_UNKNOWN_NAME, "%s: no tensor '%.200s'%s", where, name, tail);
}

/* Return the length of the shortest beginning of a stored tensor's name, up to a dot, that several tensors have and none that
** is used; 0: there is none. *n: how many have it. */
static size_t unused_beginning(const outputs *o, const char *name, size_t *n) {
  for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
    size_t length = (size_t)(dot + 1 - name), used = 0;
    *n = 0;
    for (size_t i = 0; i < o->from->n; i++) {
      bool has = strncmp(o->from->tensor[i].name, name, length) == 0;
      *n += has, used += has && o->used[i];
    }
    if (!used && *n > 1) return length;
  }
  return 0;
}

/* Refuse a stored tensor that nothing needs, with the rule that leaves it out, and all of its kind. */
static mgrid_status not_needed(const outputs *o, const char *name, const char *where, mgrid_error *err) {
  enum { MOST = 128 };
  const char *known[MOST], *near;
  size_t      n = 0, several = 0, used = 0;
  for (size_t i = 0; i < o->from->n; i++) used += o->used[i];
  size_t length = unused_beginning(o, name, &several);
  if (!used || !mgrid_is_item_name(name)) return unknown(o, name, where, err);
  if (length)
    return mgrid_fail(err, MGRID_UNKNOWN_NAME,
                      "%s: no tensor '%.200s'; --names with the rule '%.*s(.+) -> -' leaves it out, and the %zu others "
                      "that begin so",
                      where, name, (int)length, name, several - 1);
  for (; n < mgrid_plan_ntensors(o->plan) && n < MOST; n++) known[n] = mgrid_plan_tensor_name(o->plan, n);
  near = mgrid_nearest(name, known, n);
  return mgrid_fail(err, MGRID_UNKNOWN_NAME,
                    "%s: no tensor '%.200s'%s%.200s%s; --names with the rule '%.255s -> -' leaves it out", where, name,
                    near ? "; nearest is '" : "", near ? near : "", near ? "'" : "", name);
}

static output *add(outputs *o, const char *name, size_t wanted, mgrid_error *err) {
  if (!MGRID_GROW(o->at, o->n, 1)) return mgrid_null_oom(err);
  output *x = &o->at[o->n++];
  *x = (output){ .of = mgrid_plan_tensor_name(o->plan, wanted) };
  x->name = name ? name : x->of;
  x->tensor = mgrid_plan_tensor(o->plan, x->of);
  o->made[wanted] = true;
  return x;
}

/* Make the output of a stored tensor that is the wanted one as it is. */
static mgrid_status same(outputs *o, size_t stored, size_t wanted, mgrid_error *err) {
  const shards_tensor *s = &o->from->tensor[stored];
  output              *x = add(o, s->name, wanted, err);
  if (!x) return err->status;
  form is = form_of_stored(s), want = form_of_tensor(x->of, x->tensor);
  bool alike = is.naxes == want.naxes && memcmp(is.shape, want.shape, is.naxes * sizeof *is.shape) == 0;
  o->used[stored] = true;
  if (alike && form_type(o, &is, &want, err) == MGRID_OK)
    return view_begin(&x->view, want.type, want.naxes, want.shape, s, err);
  if (err->status) return err->status;
  mgrid_text a = { 0 }, b = { 0 };
  form_put(&a, &is);
  form_put(&b, &want);
  if (a.failed || b.failed)
    mgrid_oom(err);
  else
    mgrid_fail(err, MGRID_REFUSED, "tensor '%.200s' is %s in the checkpoint, and '%.200s' of the recipe is %s", s->name,
               a.data, x->of, b.data);
  mgrid_text_free(&a), mgrid_text_free(&b);
  return err->status;
}

/* ------------------------------------------------------------------ layouts */

/* Pair stored tensors with layouts, of which the first that fits counts. */
static mgrid_status by_layouts(outputs *o, const names *all, mgrid_error *err) {
  for (size_t k = 0; all && k < all->n; k++) {
    const names_rule *r = &all->rule[k];
    char              where[300];
    const json_t     *at = r->layout ? json_object_get(o->wanted, r->layout) : NULL;
    snprintf(where, sizeof where, "%.250s:%d", all->from, r->line);
    if (!r->layout) continue;
    if (!at) return unknown(o, r->layout, where, err);
    for (size_t i = 0; i < o->from->n && !err->status; i++) {
      bool fits = false;
      if (!o->used[i] && !names_laid_out(all, r, o->from->tensor[i].name, &fits, err) && fits)
        same(o, i, (size_t)json_integer_value(at), err);
    }
    if (err->status) break;
  }
  return err->status;
}

/* Pair stored tensors with those of the plan that have their name, up to dots and dashes, and that no rule made. */
static mgrid_status by_names(outputs *o, const bool *ruled, mgrid_error *err) {
  for (size_t i = 0; i < o->from->n && !err->status; i++) {
    const char   *name = o->from->tensor[i].name;
    const json_t *at = o->used[i] ? NULL : json_object_get(o->wanted, name);
    char         *plain = at || o->used[i] ? NULL : strdup(name);
    if (!at && !o->used[i] && !plain) return mgrid_oom(err);
    for (char *c = plain; c && *c; c++)
      if (*c == '.' || *c == '-') *c = '_';
    if (plain) at = json_object_get(o->wanted, plain);
    free(plain);
    if (at && !ruled[json_integer_value(at)]) same(o, i, (size_t)json_integer_value(at), err);
  }
  return err->status;
}

/* -------------------------------------------------------------------- rules */

/* Make the tensors of the plan that rules make. */
static mgrid_status by_rules(outputs *o, const names *all, mgrid_error *err) {
  size_t n = mgrid_plan_ntensors(o->plan);
  for (size_t k = 0; all && k < n && !err->status; k++) {
    view v = { 0 };
    if (o->made[k]) continue;
    if (rules_make(o, all, mgrid_plan_tensor_name(o->plan, k), &v, err) == MGRID_OK && v.n) {
      output *x = add(o, NULL, k, err);
      if (x) x->view = v, v = (view){ 0 };
    }
    view_free(&v);
  }
  return err->status;
}

/* Mark stored tensors that rules do not want. */
static mgrid_status drop(outputs *o, const names *all, mgrid_error *err) {
  for (size_t k = 0; all && k < all->n && !err->status; k++)
    for (size_t i = 0; i < o->from->n && !all->rule[k].layout && all->rule[k].side[1].n == 0 && !err->status; i++)
      if (!o->used[i]) names_fit(all, &all->rule[k], 0, 0, o->from->tensor[i].name, NULL, &o->used[i], err);
  return err->status;
}

mgrid_status outputs_find(outputs *o, mgrid_error *err) {
  size_t n = mgrid_plan_ntensors(o->plan);
  o->used = calloc(o->from->n + 1, sizeof *o->used);
  o->made = calloc(n + 1, sizeof *o->made);
  bool *ruled = calloc(n + 1, sizeof *ruled);
  o->stored = json_object(), o->wanted = json_object();
  bool ok = o->used && o->made && ruled;
  for (size_t i = 0; i < o->from->n && ok; i++)
    ok = !json_object_set_new(o->stored, o->from->tensor[i].name, json_integer((json_int_t)i));
  for (size_t k = 0; k < n && ok; k++)
    ok = !json_object_set_new(o->wanted, mgrid_plan_tensor_name(o->plan, k), json_integer((json_int_t)k));
  if (!ok) mgrid_oom(err);
  if (ok && !by_layouts(o, o->given, err) && !by_rules(o, o->given, err)) {
    for (size_t k = 0; k < n; k++) ruled[k] = o->made[k];
    if (!by_names(o, ruled, err) && !by_layouts(o, o->own, err)) by_rules(o, o->own, err);
    if (!err->status && !drop(o, o->given, err)) drop(o, o->own, err);
  }
  for (size_t i = 0; i < o->from->n && !err->status; i++)
    if (!o->used[i]) not_needed(o, o->from->tensor[i].name, o->given ? o->given->from : o->recipe, err);
  for (size_t k = 0; k < n && !err->status; k++)
    if (!o->made[k])
      mgrid_fail(err, MGRID_REFUSED, "the checkpoint has no tensor that is '%s' of the recipe",
                 mgrid_plan_tensor_name(o->plan, k));
  free(ruled);
  return err->status;
}

void outputs_free(outputs *o) {
  for (size_t i = 0; i < o->n; i++) view_free(&o->at[i].view);
  free(o->at), free(o->used), free(o->made);
  json_decref(o->stored), json_decref(o->wanted);
  o->at = NULL;
}
