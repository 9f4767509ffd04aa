/* SPDX-License-Identifier: MIT
**
** ask.c - who decides about a loss: the caller, else the recipe's policy `on_lost`, else the default.
*/
#include "comm/recipe.h"
#include "survive/next.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define POLICY "on_lost"

const char *const mgrid_loss_answers[] = { "stop", "replace", "shrink" };

void mgrid_loss_reply_free(mgrid_loss_reply *r) {
  for (size_t i = 0; i < r->nsets; i++) {
    for (size_t k = 0; k < r->set[i].n; k++) free(r->set[i].params[k]);
    free(r->set[i].params);
  }
  free(r->set);
  *r = (mgrid_loss_reply){ .how = MGRID_LOSS_STOP };
}

/* Add a set with room for n parameters, none yet. */
static mgrid_loss_set *add_set(mgrid_loss_reply *r, size_t n, mgrid_error *err) {
  if (!MGRID_GROW(r->set, r->nsets, 1)) return mgrid_null_oom(err);
  mgrid_loss_set *one = &r->set[r->nsets];
  *one = (mgrid_loss_set){ 0, calloc(n + 1, sizeof *one->params) };
  if (!one->params) return mgrid_null_oom(err);
  r->nsets++;
  return one;
}

/* ----------------------------------------------------------- the policy */

/* Look the policy up in a dry state of rank 0, so that it answers the same on all ranks. */
static mgrid_status find_policy(mgrid_losses *l, mgrid_error *err) {
  mgrid_error why = MGRID_ERROR_INIT;
  if (l->asked) return MGRID_OK;
  mgrid_backend *b = l->state ? NULL : mgrid_backend_dry(l->world, 0, err);
  if (b) l->state = mgrid_materialize(l->plan, b, "", err);
  mgrid_backend_free(b);
  if (!l->state) return err->status;
  l->policy = mgrid_policy_new(l->rt, l->state, POLICY, &why);
  if (why.status && why.status != MGRID_UNKNOWN_NAME) return mgrid_error_pass(err, &why);
  l->asked = true;
  return MGRID_OK;
}

/* Append a value, written as a parameter: dp=3. */
static mgrid_status value_text(const mgrid_arg *a, mgrid_text *t, mgrid_error *err) {
  mgrid_text_add(t, "%s=", a->name);
  switch (a->kind) {
  case MGRID_IS_INTEGER: mgrid_text_int(t, a->as.integer); break;
  case MGRID_IS_NUMBER: mgrid_text_add(t, "%.17g", a->as.number); break;
  case MGRID_IS_BOOLEAN: mgrid_text_str(t, a->as.boolean ? "true" : "false"); break;
  case MGRID_IS_TEXT: mgrid_text_str(t, a->as.text); break;
  case MGRID_IS_INTEGERS:
    for (size_t i = 0; i < a->as.integers.n; i++) mgrid_text_add(t, "%s%" PRId64, i ? "," : "", a->as.integers.at[i]);
    break;
  default:
    return mgrid_fail(err, MGRID_BAD_VALUE,
                      "policy '" POLICY "': parameter '%s' is a number, text, a truth value or a list of integers",
                      a->name);
  }
  return MGRID_OK;
}

/* Read a table of parameters as one more set; `path` names it. */
static mgrid_status read_set(const mgrid_arg *params, const char *path, mgrid_loss_reply *r, mgrid_error *err) {
  enum { MOST = 64 };
  size_t n = params->kind == MGRID_IS_TABLE ? params->as.table.n : 0;
  if (n == 0 || n > MOST)
    return mgrid_fail(err, MGRID_BAD_VALUE,
                      "policy '" POLICY
                      "': '%s' is a table of parameters by name, { dp = 3 }, or a list of such, of 1 to %d "
                      "parameters",
                      path, MOST);
  mgrid_loss_set *set = add_set(r, n, err);
  for (size_t i = 0; set && i < n; i++) {
    mgrid_text t = { 0 };
    if (!value_text(&params->as.table.at[i], &t, err))
      set->params[i] = t.failed ? NULL : mgrid_strdup(mgrid_text_chars(&t));
    mgrid_text_free(&t);
    if (err->status) break;
    if (!set->params[i]) return mgrid_oom(err);
    set->n++;
  }
  return err->status;
}

static mgrid_status read_params(const mgrid_arg *params, mgrid_loss_reply *r, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  char         path[64];
  if (params->kind != MGRID_IS_LIST) return read_set(params, "params", r, err);
  for (size_t i = 0; i < params->as.table.n && !s; i++) {
    snprintf(path, sizeof path, "params[%zu]", i);
    s = read_set(&params->as.table.at[i], path, r, err);
  }
  return s;
}

/* Find `how` and `params` of the table that the policy returned, and refuse other keys. */
static mgrid_status read_keys(const mgrid_arg *all, const mgrid_arg *found[2], mgrid_error *err) {
  static const char *const known[] = { "how", "params" };
  char                     tail[128];
  for (size_t i = 0; i < all->as.table.n; i++) {
    const mgrid_arg *a = &all->as.table.at[i];
    int              k = 0;
    while (k < 2 && strcmp(a->name, known[k]) != 0) k++;
    if (k < 2) {
      found[k] = a;
      continue;
    }
    mgrid_suggest(tail, sizeof tail, a->name, known, 2);
    return mgrid_fail(err, MGRID_UNKNOWN_NAME, "policy '" POLICY "' returned a table with '%.100s'%s", a->name, tail);
  }
  return MGRID_OK;
}

static mgrid_status read_reply(mgrid_policy *p, mgrid_loss_reply *r, mgrid_error *err) {
  mgrid_arg        all = MGRID_ARG_INIT;
  const mgrid_arg *found[2] = { &all, NULL };
  char             tail[128];
  int              k = 0;
  if (mgrid_policy_result(p, NULL, MGRID_IS_NONE, &all, err)) return err->status;
  if (all.kind == MGRID_IS_TABLE && read_keys(&all, found, err)) return err->status;
  if (found[0]->kind != MGRID_IS_TEXT)
    return mgrid_fail(err, MGRID_BAD_VALUE,
                      "policy '" POLICY "' returned no answer: \"replace\", \"shrink\", \"stop\", or a table, { how = "
                      "\"shrink\", params = { dp = 3 } }");
  const char *word = found[0]->as.text;
  while (k < 3 && strcmp(word, mgrid_loss_answers[k]) != 0) k++;
  if (k == 3) {
    mgrid_suggest(tail, sizeof tail, word, mgrid_loss_answers, 3);
    return mgrid_fail(err, MGRID_BAD_VALUE, "policy '" POLICY "' returned '%.100s'%s", word, tail);
  }
  r->how = (mgrid_loss_answer)k;
  mgrid_status s = found[1] ? read_params(found[1], r, err) : MGRID_OK;
  if (!s && r->nsets && r->how != MGRID_LOSS_SHRINK)
    s = mgrid_fail(err, MGRID_BAD_VALUE,
                   "policy '" POLICY "' returned parameters for '%s'; a shrink alone changes some",
                   mgrid_loss_answers[k]);
  return s;
}

static mgrid_status ask_policy(mgrid_losses *l, const mgrid_loss *x, int64_t spares, int64_t gone, mgrid_loss_reply *r,
                               mgrid_error *err) {
  const mgrid_arg q[] = { mgrid_arg_integer("ranks", l->world),
                          mgrid_arg_integer("lost", (int64_t)x->nlost),
                          mgrid_arg_integers("which", x->nlost, x->lost),
                          mgrid_arg_integer("spares", spares),
                          mgrid_arg_integer("places", gone),
                          mgrid_arg_integer("missing", x->sums.missing) };
  mgrid_status    s = mgrid_policy_call(l->policy, sizeof q / sizeof *q, q, err);
  r->by = "the policy '" POLICY "'", r->usual = false;
  if (s || !(s = read_reply(l->policy, r, err))) return s;
  mgrid_lent_request where = { .policy = l->policy, .placed = err };
  mgrid_runtime_serve(l->rt, "survive", &where, NULL);
  return s;
}

/* -------------------------------------------------------------- all of it */

mgrid_status mgrid_loss_ask(mgrid_losses *l, const mgrid_loss *x, int64_t spares, mgrid_loss_reply *out,
                            mgrid_error *err) {
  mgrid_error  why = MGRID_ERROR_INIT;
  mgrid_status s = MGRID_OK;
  int64_t      gone = 0;
  *out = (mgrid_loss_reply){ .by = "the default", .usual = true };
  for (size_t i = 0; i < x->nlost; i++) gone += l->place[x->lost[i]] >= 0;
  out->how = spares >= gone ? MGRID_LOSS_REPLACE : MGRID_LOSS_SHRINK;
  if (x->nlost == 0 || (gone == 0 && l->how)) return MGRID_OK; /* nobody is lost, or only spares are */
  if (l->how) {
    out->by = "the caller", out->usual = false;
    for (int i = 0; i < 3; i++)
      if (strcmp(l->how, mgrid_loss_answers[i]) == 0) out->how = (mgrid_loss_answer)i;
    mgrid_loss_set *set = l->nchanged ? add_set(out, l->nchanged, &why) : NULL;
    for (size_t i = 0; set && i < l->nchanged; i++)
      if ((set->params[i] = mgrid_strdup(l->changed[i]))) set->n++;
    if (set && set->n < l->nchanged) mgrid_oom(&why);
  } else if (!(s = find_policy(l, &why)) && l->policy) {
    s = ask_policy(l, x, spares, gone, out, &why);
  }
  if (!s) s = why.status;
  /* Only spares are lost: a policy may still stop the job, such as one half of a job that is cut in two. */
  if (!s && gone == 0 && out->how != MGRID_LOSS_STOP) {
    mgrid_loss_reply_free(out);
    *out = (mgrid_loss_reply){ .how = MGRID_LOSS_REPLACE, .by = "the default", .usual = true };
  }
  if (s) mgrid_loss_reply_free(out);
  return s ? mgrid_error_pass(err, &why) : MGRID_OK;
}
