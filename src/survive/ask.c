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

/* Append the value at a path, written as a parameter: dp=3. */
static mgrid_status value_text(const mgrid_policy *p, const char *path, const char *name, mgrid_text *t,
                               mgrid_error *err) {
  enum { MOST = 4096 };
  int64_t     integer, list[MOST];
  double      number;
  bool        flag;
  const char *text;
  size_t      n;
  mgrid_text_add(t, "%s=", name);
  switch (mgrid_policy_kind(p, path)) {
  case MGRID_IS_INTEGER:
    if (!mgrid_policy_integer(p, path, &integer, err)) mgrid_text_int(t, integer);
    break;
  case MGRID_IS_NUMBER:
    if (!mgrid_policy_number(p, path, &number, err)) mgrid_text_add(t, "%.17g", number);
    break;
  case MGRID_IS_BOOLEAN:
    if (!mgrid_policy_boolean(p, path, &flag, err)) mgrid_text_str(t, flag ? "true" : "false");
    break;
  case MGRID_IS_TEXT:
    if (!mgrid_policy_text(p, path, &text, err)) mgrid_text_str(t, text);
    break;
  case MGRID_IS_INTEGERS:
    if (!mgrid_policy_integers(p, path, MOST, list, &n, err) && n <= MOST)
      for (size_t i = 0; i < n; i++) mgrid_text_add(t, "%s%" PRId64, i ? "," : "", list[i]);
    else if (!err->status)
      mgrid_fail(err, MGRID_LIMIT, "policy '" POLICY "': parameter '%s' has more than %d values", name, MOST);
    break;
  default:
    mgrid_fail(err, MGRID_BAD_VALUE,
               "policy '" POLICY "': parameter '%s' is a number, text, a truth value or a list of integers", name);
  }
  return err->status;
}

/* Read the table of parameters at a path as one more set. */
static mgrid_status read_set(const mgrid_policy *p, const char *path, mgrid_loss_reply *r, mgrid_error *err) {
  enum { MOST = 64 };
  const char *keys[MOST];
  char        name[MOST][256], at[512];
  size_t      n = 0;
  if (mgrid_policy_kind(p, path) == MGRID_IS_TABLE && mgrid_policy_keys(p, path, MOST, keys, &n, err))
    return err->status;
  if (n == 0 || n > MOST)
    return mgrid_fail(err, MGRID_BAD_VALUE,
                      "policy '" POLICY
                      "': '%s' is a table of parameters by name, { dp = 3 }, or a list of such, of 1 to %d "
                      "parameters",
                      path, MOST);
  for (size_t i = 0; i < n; i++) snprintf(name[i], sizeof name[i], "%s", keys[i]); /* keys end with the next call */
  mgrid_loss_set *set = add_set(r, n, err);
  for (size_t i = 0; set && i < n; i++) {
    mgrid_text t = { 0 };
    snprintf(at, sizeof at, "%s[\"%s\"]", path, name[i]);
    if (!value_text(p, at, name[i], &t, err)) set->params[i] = t.failed ? NULL : mgrid_strdup(mgrid_text_chars(&t));
    mgrid_text_free(&t);
    if (err->status) break;
    if (!set->params[i]) return mgrid_oom(err);
    set->n++;
  }
  return err->status;
}

static mgrid_status read_params(const mgrid_policy *p, mgrid_loss_reply *r, mgrid_error *err) {
  size_t n = 0;
  char   path[64];
  if (mgrid_policy_kind(p, "params") == MGRID_IS_NONE) return MGRID_OK;
  if (mgrid_policy_kind(p, "params") != MGRID_IS_LIST) return read_set(p, "params", r, err);
  mgrid_status s = mgrid_policy_length(p, "params", &n, err);
  for (size_t i = 0; i < n && !s; i++) {
    snprintf(path, sizeof path, "params[%zu]", i);
    s = read_set(p, path, r, err);
  }
  return s;
}

/* Refuse other keys than these of the table that the policy returned. */
static mgrid_status check_keys(const mgrid_policy *p, mgrid_error *err) {
  static const char *const known[] = { "how", "params" };
  const char              *keys[8];
  size_t                   n = 0;
  char                     tail[128];
  mgrid_status             s = mgrid_policy_keys(p, NULL, 8, keys, &n, err);
  for (size_t i = 0; i < n && i < 8 && !s; i++) {
    if (strcmp(keys[i], known[0]) == 0 || strcmp(keys[i], known[1]) == 0) continue;
    mgrid_suggest(tail, sizeof tail, keys[i], known, 2);
    s = mgrid_fail(err, MGRID_UNKNOWN_NAME, "policy '" POLICY "' returned a table with '%.100s'%s", keys[i], tail);
  }
  return s;
}

static mgrid_status read_reply(const mgrid_policy *p, mgrid_loss_reply *r, mgrid_error *err) {
  const char *word = NULL, *path = NULL;
  char        tail[128];
  int         k = 0;
  if (mgrid_policy_kind(p, NULL) == MGRID_IS_TABLE) {
    if (check_keys(p, err)) return err->status;
    path = "how";
  }
  if (mgrid_policy_kind(p, path) != MGRID_IS_TEXT || mgrid_policy_text(p, path, &word, err))
    return mgrid_fail(err, MGRID_BAD_VALUE,
                      "policy '" POLICY "' returned no answer: \"replace\", \"shrink\", \"stop\", or a table, { how = "
                      "\"shrink\", params = { dp = 3 } }");
  while (k < 3 && strcmp(word, mgrid_loss_answers[k]) != 0) k++;
  if (k == 3) {
    mgrid_suggest(tail, sizeof tail, word, mgrid_loss_answers, 3);
    return mgrid_fail(err, MGRID_BAD_VALUE, "policy '" POLICY "' returned '%.100s'%s", word, tail);
  }
  r->how = (mgrid_loss_answer)k;
  if (!path) return MGRID_OK;
  mgrid_status s = read_params(p, r, err);
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
