/* SPDX-License-Identifier: MIT
**
** loss.c - decides what the job becomes after one loss. The file is in the order of the decision:
** the lost ranks; parts without a copy; the answer of the caller, of the policy on_lost, or the
** default; the next plan; who takes which place; which communicators and bytes stay. A loss never
** changes once it is made. Ranks that decide with the same arguments get the same result. Nothing
** here sends anything.
*/
#include "comm/recipe.h"
#include "survive/next.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* -------------------------------------------------------------- who is lost */

static int loss_by_number(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static mgrid_status take_lost(mgrid_loss *x, size_t n, const int64_t *lost, mgrid_error *err) {
  if (mgrid_lacks_list(n, lost, "lost ranks", err)) return MGRID_USAGE;
  for (size_t i = 0; i < n; i++)
    if (lost[i] < 0 || lost[i] >= x->world)
      return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                        "rank %" PRId64 " is out of range (0 to %" PRId64 ")", lost[i],
                        x->world - 1);

  x->lost = malloc((n + 1) * sizeof *x->lost);
  x->is = malloc((size_t)x->world * sizeof *x->is);
  if (!x->lost || !x->is) return mgrid_oom(err);
  if (n > 0) memcpy(x->lost, lost, n * sizeof *lost);
  x->nlost = n;

  qsort(x->lost, n, sizeof *x->lost, loss_by_number);
  for (size_t i = 1; i < n; i++)
    if (x->lost[i] == x->lost[i - 1])
      return mgrid_fail(err, MGRID_DUPLICATE, "rank %" PRId64 " is lost twice", x->lost[i]);
  if ((int64_t)n == x->world)
    return x->world == 1 ? mgrid_fail(err, MGRID_REFUSED,
                                      "the only rank is lost, and nobody is left to go on")
                         : mgrid_fail(err, MGRID_REFUSED,
                                      "all %" PRId64 " ranks are lost, and nobody is left to go on",
                                      x->world);

  /* x->is until new ranks are given: -1 free, -2 lost */
  memset(x->is, -1, (size_t)x->world * sizeof *x->is);
  for (size_t i = 0; i < n; i++) x->is[lost[i]] = -2;
  x->survivors = x->world - (int64_t)n;
  return MGRID_OK;
}

/* ------------------------------------------------------ parts without a copy */

/* If a lost rank is the first holder of its shard, and all other holders are lost, too, note the
** shard as missing. */
static mgrid_status loss_look_at(mgrid_loss *x, const char *name, const mgrid_tensor *t,
                                 int64_t rank, mgrid_error *err) {
  mgrid_coords at;
  if (!mgrid_tensor_coords(t, rank, &at) || at.copy != 0) return MGRID_OK;
  int64_t bytes = mgrid_tensor_elements(t, &at) * t->width, n = 0;
  if (bytes == 0) return MGRID_OK;
  for (at.copy = 1; at.copy < t->copies; at.copy++)
    if (x->is[mgrid_tensor_rank(t, &at)] != -2) return MGRID_OK;
  int64_t *holders = malloc((size_t)t->copies * sizeof *holders);
  if (!holders || !MGRID_GROW(x->missing, x->nmissing, 1)) {
    free(holders);
    return mgrid_oom(err);
  }
  for (at.copy = 0; at.copy < t->copies; at.copy++) holders[n++] = mgrid_tensor_rank(t, &at);
  x->missing[x->nmissing++] = (mgrid_loss_missing_part){ name, bytes, (size_t)n, holders };
  x->sums.missing += bytes;
  return MGRID_OK;
}

static mgrid_status loss_find_missing(mgrid_loss *x, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  for (size_t i = 0; i < mgrid_plan_ntensors(x->old) && !s; i++) {
    const char *name = mgrid_plan_tensor_name(x->old, i);
    const mgrid_tensor *t = mgrid_plan_tensor(x->old, name);
    for (size_t k = 0; k < x->nlost && !s; k++) s = loss_look_at(x, name, t, x->lost[k], err);
  }
  return s;
}

/* -------------------------------------------------------------- the answer */

#define POLICY MGRID_LOSS_POLICY

/* Parameters that a shrink changes. */
typedef struct loss_set {
  size_t n;
  char **params; /* [n]: such as "dp=3"; owned */
} loss_set;
/* The answer to a loss. */
typedef struct loss_reply {
  mgrid_loss_answer how;
  const char *by; /* who answers, for messages: "the policy 'on_lost'" */
  bool usual;     /* it is the default answer */
  size_t nsets;
  loss_set *set; /* [nsets]: a shrink tries these in order; none: it changes no parameters */
} loss_reply;

static void free_reply(loss_reply *r) {
  for (size_t i = 0; i < r->nsets; i++) {
    for (size_t k = 0; k < r->set[i].n; k++) free(r->set[i].params[k]);
    free(r->set[i].params);
  }
  free(r->set);
  *r = (loss_reply){ .how = MGRID_LOSS_STOP };
}

/* Add an empty set with room for n parameters. */
static loss_set *add_set(loss_reply *r, size_t n, mgrid_error *err) {
  if (!MGRID_GROW(r->set, r->nsets, 1)) return mgrid_null_oom(err);
  loss_set *one = &r->set[r->nsets];
  *one = (loss_set){ 0, calloc(n + 1, sizeof *one->params) };
  if (!one->params) return mgrid_null_oom(err);
  r->nsets++;
  return one;
}

/* Append a parameter as an argument, such as dp=3. */
static mgrid_status value_text(const mgrid_arg *a, mgrid_text *t, mgrid_error *err) {
  mgrid_text_add(t, "%s=", a->name);
  switch (a->kind) {
  case MGRID_IS_INTEGER: mgrid_text_int(t, a->as.integer); break;
  case MGRID_IS_NUMBER: mgrid_text_add(t, "%.17g", a->as.number); break;
  case MGRID_IS_BOOLEAN: mgrid_text_str(t, a->as.boolean ? "true" : "false"); break;
  case MGRID_IS_TEXT: mgrid_text_str(t, a->as.text); break;
  case MGRID_IS_INTEGERS:
    for (size_t i = 0; i < a->as.integers.n; i++)
      mgrid_text_add(t, "%s%" PRId64, i ? "," : "", a->as.integers.at[i]);
    break;
  default:
    return mgrid_fail(err, MGRID_BAD_VALUE,
                      "policy '" POLICY
                      "': parameter '%s' is a number, text, a truth value or a list of integers",
                      a->name);
  }
  return MGRID_OK;
}

/* Read a table of parameters, and add it to r as a set. Messages call the table `path`. */
static mgrid_status read_set(const mgrid_arg *params, const char *path, loss_reply *r,
                             mgrid_error *err) {
  enum { MOST = 64 };
  size_t n = params->kind == MGRID_IS_TABLE ? params->as.table.n : 0;
  if (n == 0 || n > MOST)
    return mgrid_fail(
        err, MGRID_BAD_VALUE,
        "policy '" POLICY
        "': '%s' is a table of parameters by name, { dp = 3 }, or a list of such, of 1 to %d "
        "parameters",
        path, MOST);
  loss_set *set = add_set(r, n, err);
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

static mgrid_status read_params(const mgrid_arg *params, loss_reply *r, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  char path[64];
  if (params->kind != MGRID_IS_LIST) return read_set(params, "params", r, err);
  for (size_t i = 0; i < params->as.table.n && !s; i++) {
    snprintf(path, sizeof path, "params[%zu]", i);
    s = read_set(&params->as.table.at[i], path, r, err);
  }
  return s;
}

/* Find `how` and `params` in the table that the policy returned. Refuse other keys. */
static mgrid_status read_keys(const mgrid_arg *all, const mgrid_arg *found[2], mgrid_error *err) {
  static const char *const known[] = { "how", "params" };
  char tail[128];
  for (size_t i = 0; i < all->as.table.n; i++) {
    const mgrid_arg *a = &all->as.table.at[i];
    int k = 0;
    while (k < 2 && strcmp(a->name, known[k]) != 0) k++;
    if (k < 2) {
      found[k] = a;
      continue;
    }
    mgrid_suggest(tail, sizeof tail, a->name, known, 2);
    return mgrid_fail(err, MGRID_UNKNOWN_NAME,
                      "policy '" POLICY "' returned a table with '%.100s'%s", a->name, tail);
  }
  return MGRID_OK;
}

static mgrid_status read_reply(mgrid_policy *p, loss_reply *r, mgrid_error *err) {
  mgrid_arg all = MGRID_ARG_INIT;
  const mgrid_arg *found[2] = { &all, NULL };
  char tail[128];
  int k = 0;

  if (mgrid_policy_result(p, NULL, MGRID_IS_NONE, &all, err)) return err->status;
  if (all.kind == MGRID_IS_TABLE && read_keys(&all, found, err)) return err->status;
  if (found[0]->kind != MGRID_IS_TEXT)
    return mgrid_fail(
        err, MGRID_BAD_VALUE,
        "policy '" POLICY
        "' returned no answer: \"replace\", \"shrink\", \"stop\", or a table, { how = "
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
                   "policy '" POLICY
                   "' returned parameters for '%s'; only a shrink changes parameters",
                   mgrid_loss_answers[k]);
  return s;
}

static mgrid_status ask_policy(mgrid_losses *l, const mgrid_loss *x, int64_t spares, int64_t gone,
                               loss_reply *r, mgrid_error *err) {
  const mgrid_arg q[] = { mgrid_arg_integer("ranks", l->world),
                          mgrid_arg_integer("lost", (int64_t)x->nlost),
                          mgrid_arg_integers("which", x->nlost, x->lost),
                          mgrid_arg_integer("spares", spares),
                          mgrid_arg_integer("places", gone),
                          mgrid_arg_integer("missing", x->sums.missing) };
  mgrid_status s = mgrid_policy_call(l->policy, sizeof q / sizeof *q, q, err);
  r->by = "the policy '" POLICY "'", r->usual = false;
  if (s || !(s = read_reply(l->policy, r, err))) return s;
  mgrid_lent_request where = { .policy = l->policy, .placed = err };
  mgrid_runtime_serve(l->rt, "survive", &where, NULL);
  return s;
}

/* Find the answer: of the caller, of the policy, or the default. `spares` are left, and `gone` ranks
** of the layout are lost. */
static mgrid_status loss_ask(mgrid_losses *l, const mgrid_loss *x, int64_t spares, int64_t gone,
                             loss_reply *out, mgrid_error *err) {
  mgrid_error why = MGRID_ERROR_INIT;
  mgrid_status s = MGRID_OK;

  *out = (loss_reply){ .by = "the default", .usual = true };
  out->how = spares >= gone ? MGRID_LOSS_REPLACE : MGRID_LOSS_SHRINK;

  /* no rank is lost, or only spares are, to which the caller's answer does not apply */
  if (x->nlost == 0 || (gone == 0 && l->how)) return MGRID_OK;
  if (l->how) {
    out->by = "the caller", out->usual = false;
    for (int i = 0; i < 3; i++)
      if (strcmp(l->how, mgrid_loss_answers[i]) == 0) out->how = (mgrid_loss_answer)i;
    loss_set *set = l->nchanged ? add_set(out, l->nchanged, &why) : NULL;
    for (size_t i = 0; set && i < l->nchanged; i++)
      if ((set->params[i] = mgrid_strdup(l->changed[i]))) set->n++;
    if (set && set->n < l->nchanged) mgrid_oom(&why);
  } else if (l->policy) {
    s = ask_policy(l, x, spares, gone, out, &why);
  }
  if (!s) s = why.status;

  /* If only spares are lost, a policy may still stop the job: this may be one half of a job that
  ** was cut in two. */
  if (!s && gone == 0 && out->how != MGRID_LOSS_STOP) {
    free_reply(out);
    *out = (loss_reply){ .how = MGRID_LOSS_REPLACE, .by = "the default", .usual = true };
  }
  if (s) free_reply(out);
  return s ? mgrid_error_pass(err, &why) : MGRID_OK;
}

/* ----------------------------------------------------------- the next plan */

static int64_t spares_left(const mgrid_losses *l, const mgrid_loss *x) {
  int64_t n = 0;
  for (int64_t r = 0; r < l->world; r++) n += l->place[r] < 0 && x->is[r] == -1;
  return n;
}

/* Write to x->why that the recipe accepts no layout. */
static void no_layout(const mgrid_losses *l, const loss_reply *reply, const mgrid_next *next,
                      mgrid_loss *x) {
  int64_t most = next->survivors < l->places ? next->survivors : l->places;
  mgrid_text_add(&x->why,
                 "the recipe accepts no layout of %s%" PRId64 " rank%s; of %" PRId64 ": %s",
                 most > 1 ? "1 to " : "", most, mgrid_s_of(most), most, next->why.message);
  if (!reply->nsets)
    mgrid_text_str(
        &x->why,
        "; the policy on_lost may change parameters, { how = \"shrink\", params = { dp = 3 } }");
}

/* Find the next plan. NULL without an error: the job stops, and x->why says why. */
static mgrid_next *decide_next(mgrid_losses *l, mgrid_loss *x, mgrid_error *err) {
  loss_reply reply;
  mgrid_next *next = NULL;
  int64_t spares = spares_left(l, x), gone = 0;

  for (size_t i = 0; i < x->nlost; i++) gone += l->place[x->lost[i]] >= 0;
  mgrid_status s = loss_ask(l, x, spares, gone, &reply, err);
  if (s) return NULL;
  x->how = reply.how;
  if (reply.how == MGRID_LOSS_STOP) {
    mgrid_text_add(&x->why, "%s says so", reply.by);
  } else if (reply.how == MGRID_LOSS_REPLACE && gone > spares) {
    mgrid_text_add(&x->why,
                   "%s says replace: %" PRId64 " rank%s of the layout %s lost, and %" PRId64
                   " spare%s left",
                   reply.by, gone, mgrid_s_of(gone), gone == 1 ? "is" : "are", spares,
                   spares == 1 ? " is" : "s are");
  } else if (reply.how == MGRID_LOSS_REPLACE) {
    next = mgrid_next_of(l, x, false, 0, NULL, err);
    if (next && !next->plan && !reply.usual)
      mgrid_text_add(&x->why, "the recipe does not accept its layout again: %s", next->why.message);
  }
  if (reply.how == MGRID_LOSS_SHRINK || (reply.usual && next && !next->plan && !err->status)) {
    x->how = MGRID_LOSS_SHRINK;
    loss_set none = { 0, NULL };
    for (size_t i = 0; !s && (i < reply.nsets || i == 0) && !(next && next->plan); i++) {
      loss_set *set = reply.nsets ? &reply.set[i] : &none;
      next = mgrid_next_of(l, x, true, set->n, set->params, err);
      s = next ? MGRID_OK : err->status;
      for (size_t k = 0; next && next->plan && k < set->n; k++)
        mgrid_text_add(&x->params, "%s\n", set->params[k]);
    }
    if (next && !next->plan) no_layout(l, &reply, next, x);
  }
  free_reply(&reply);
  return next && next->plan ? next : NULL;
}

/* ------------------------------------------ communicators and bytes that stay */

static mgrid_status count_comms(const mgrid_losses *l, const mgrid_next *next, mgrid_loss *x,
                                mgrid_error *err) {
  const mgrid_comm_list *c = &next->comms;
  int32_t *room = malloc((size_t)(next->places + 1) * sizeof *room);
  if (!room) return mgrid_oom(err);
  for (size_t i = 0; i < c->n; i++) {
    int64_t n = c->start[i + 1] - c->start[i];
    const mgrid_choice *choice = next->plan->content.entry[c->entry[i]].choice;
    for (int64_t k = 0; k < n; k++) room[k] = x->was[c->member[c->start[i] + k]];
    x->sums.kept += mgrid_comm_find(&l->comms, l->plan, room, n, mgrid_comm_hash(room, n), choice)
                    >= 0;
  }
  x->sums.made = (int64_t)c->n - x->sums.kept;
  x->sums.dropped = (int64_t)l->comms.n - x->sums.kept;
  free(room);
  return MGRID_OK;
}

/* Count the bytes of a missing shard that all places need. */
static int64_t needed_of(const mgrid_pair *p, const mgrid_loss_missing_part *m, int64_t places) {
  mgrid_coords shard, part;
  int64_t bytes = 0;
  if (!mgrid_tensor_coords(p->from, m->holders[0], &shard)) return 0;
  for (int64_t i = 0; i < places; i++)
    if (mgrid_tensor_coords(p->to, i, &part)) bytes += mgrid_common_bytes(p, &shard, &part);
  return bytes;
}

/* with more pairs of a place and an old rank, mgrid_next.bytes is not kept */
enum { FEW = 1 << 20 };

static mgrid_status count_bytes(mgrid_next *next, mgrid_loss *x, mgrid_error *err) {
  size_t n = next->paired ? next->pairs.n : 0;
  x->tensor = malloc((n + 1) * sizeof *x->tensor);
  if (!x->tensor) return mgrid_oom(err);
  x->sums.uncounted = next->uncounted;
  for (size_t i = 0; i < n; i++) x->tensor[x->ntensors++] = next->pairs.name[i];
  if (n > 0 && !next->bytes && next->places * x->world <= FEW)
    next->bytes = calloc((size_t)(next->places * x->world), sizeof *next->bytes);
  for (int64_t r = 0; r < next->places && n > 0; r++) {
    mgrid_next_bytes own = { 0, 0, false }, *at = &own;
    if (next->bytes) at = &next->bytes[r * x->world + x->was[r]];
    if (!at->known) at->need = mgrid_next_needs(next, r, x->was[r], &at->stay), at->known = true;
    x->sums.stay += at->stay;
    x->sums.moved += at->need - at->stay;
  }
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < x->nmissing; k++)
      if (strcmp(x->missing[k].tensor, next->pairs.name[i]) == 0)
        x->sums.moved -= needed_of(&next->pairs.pair[i], &x->missing[k], next->places);
  return MGRID_OK;
}

/* --------------------------------------------------------------- all of it */

mgrid_loss *mgrid_loss_new(mgrid_losses *l, size_t n, const int64_t *lost, mgrid_error *err) {
  if (mgrid_lacks(l, "the losses of a plan", err)) return NULL;
  if (n == 0) return mgrid_null(err, MGRID_REFUSED, "no rank is lost");
  return mgrid_loss_decide(l, n, lost, err);
}

mgrid_loss *mgrid_loss_decide(mgrid_losses *l, size_t n, const int64_t *lost, mgrid_error *err) {
  mgrid_error why = MGRID_ERROR_INIT;
  mgrid_loss *x = calloc(1, sizeof *x);

  if (!x) return mgrid_null_oom(err);
  x->old = mgrid_plan_ref(l->plan);
  x->world = l->world;
  x->sums = (mgrid_loss_sums)MGRID_LOSS_SUMS_INIT;
  mgrid_status s = take_lost(x, n, lost, &why);
  if (!s) s = loss_find_missing(x, &why);
  mgrid_next *next = s ? NULL : decide_next(l, x, &why);
  s = why.status;
  x->sums.lost = (int64_t)x->nlost, x->sums.survivors = x->survivors;
  if (!s && next) {
    x->plan = mgrid_plan_ref(next->plan);
    x->sums.layout = next->places, x->sums.idle = x->survivors - next->places;
    s = x->was ? mgrid_loss_place_again(l, next, x, &why) : mgrid_loss_place(l, next, x, &why);
    if (!s) s = count_comms(l, next, x, &why);
    if (!s) s = count_bytes(next, x, &why);
  } else if (!s) {
    x->how = MGRID_LOSS_STOP;
    x->sums.dropped = (int64_t)l->comms.n;
    for (size_t i = 0; i < x->nlost; i++) x->is[x->lost[i]] = -1;
  }
  if (!s && (x->why.failed || x->params.failed)) s = mgrid_oom(&why);
  if (!s) return x;
  mgrid_loss_free(x);
  mgrid_error_pass(err, &why);
  return NULL;
}

void mgrid_loss_free(mgrid_loss *x) {
  if (!x) return;
  for (size_t i = 0; i < x->nmissing; i++) free((void *)(uintptr_t)x->missing[i].holders);
  free(x->missing);
  free(x->tensor);
  free(x->was);
  free(x->is);
  free(x->lost);
  mgrid_text_free(&x->why);
  mgrid_text_free(&x->params);
  mgrid_plan_free(x->plan);
  mgrid_plan_free(x->old);
  free(x);
}

/* --------------------------------------------------------------- questions */

const mgrid_plan *mgrid_loss_plan(const mgrid_loss *x) { return x ? x->plan : NULL; }

int64_t mgrid_loss_old(const mgrid_loss *x, int64_t rank) {
  return x && x->plan && rank >= 0 && rank < x->survivors ? x->was[rank] : -1;
}

int64_t mgrid_loss_rank(const mgrid_loss *x, int64_t old) {
  return x && x->plan && old >= 0 && old < x->world ? x->is[old] : -1;
}

void mgrid_loss_digest(const mgrid_loss *x, char out[33]) {
  if (!out) return;
  snprintf(out, 33, "%032d", 0);
  if (!x) return;
  XXH128_hash_t h = XXH3_128bits_withSeed(x->lost, x->nlost * sizeof *x->lost, (uint64_t)x->how);
  if (x->plan) {
    uint64_t all[] = { h.high64, h.low64, x->plan->digest[0], x->plan->digest[1],
                       XXH3_64bits(x->was, (size_t)x->survivors * sizeof *x->was) };
    h = XXH3_128bits(all, sizeof all);
  }
  snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, (uint64_t)h.high64, (uint64_t)h.low64);
}

mgrid_status mgrid_loss_describe(const mgrid_loss *x, mgrid_loss_sums *out, mgrid_error *err) {
  if (!x) return MGRID_USAGE;
  mgrid_status s = mgrid_struct_check(out, sizeof *out, "mgrid_loss_sums", err);
  mgrid_loss_sums sums = x->sums;
  sums.how = x->how, sums.why = mgrid_text_chars(&x->why);
  if (!s) mgrid_struct_write(out, &sums, sizeof sums);
  return s;
}

/* Return whether a group of an old family has exactly the members of the new group, in the same
** order. Compare old ranks. */
static bool loss_same_members(const mgrid_loss *x, const mgrid_family *f, int64_t group,
                              const mgrid_family *old, int64_t at) {
  int64_t n = mgrid_family_size(f, group);
  if (mgrid_family_size(old, at) != n) return false;
  for (int64_t i = 0; i < n; i++)
    if (x->was[mgrid_family_rank(f, group, i)] != mgrid_family_rank(old, at, i)) return false;
  return true;
}

bool mgrid_loss_kept(const mgrid_loss *x, const char *family, int64_t group,
                     const char **old_family, int64_t *old_group) {
  int entry = x && x->plan && family ? mgrid_content_find(&x->plan->content, family) : -1;
  if (entry < 0) return false;
  const mgrid_entry *e = &x->plan->content.entry[entry];
  if (group < 0 || group >= e->family->count || mgrid_family_size(e->family, group) < 2)
    return false;
  int64_t first = x->was[mgrid_family_rank(e->family, group, 0)], at, position;
  for (size_t i = 0; i < x->old->content.nentries; i++) {
    const mgrid_entry *o = &x->old->content.entry[x->old->order[i]];
    if (!mgrid_choice_shares(o->choice, e->choice)) continue;
    for (int64_t nth = 0; mgrid_family_locate(o->family, first, nth, &at, &position); nth++) {
      if (position != 0 || !loss_same_members(x, e->family, group, o->family, at)) continue;
      if (old_family) *old_family = o->name;
      if (old_group) *old_group = at;
      return true;
    }
  }
  return false;
}

const mgrid_loss_missing_part *mgrid_loss_missing(const mgrid_loss *x, size_t i) {
  return x && i < x->nmissing ? &x->missing[i] : NULL;
}

mgrid_move *mgrid_loss_move(const mgrid_loss *x, int64_t rank, size_t n, const char *const *tensors,
                            const mgrid_move_options *given, mgrid_error *err) {
  mgrid_move_options options = MGRID_MOVE_OPTIONS_INIT;
  if (!x || mgrid_struct_read(&options, sizeof options, given, "mgrid_move_options", err))
    return NULL;
  if (!x->plan)
    return mgrid_null(err, MGRID_REFUSED, "the job stops after this loss: nothing moves");
  if (n == 0 && x->ntensors == 0)
    return mgrid_null(err, MGRID_REFUSED,
                      "the plans before and after the loss have no tensor in common");
  int64_t *old = malloc((size_t)x->world * sizeof *old);
  if (!old) return mgrid_null_oom(err);
  for (int64_t r = 0; r < x->world; r++) old[r] = x->is[r];
  options.nranks = 0, options.ranks = NULL;
  options.nold = (size_t)x->world, options.old = old;
  mgrid_move *m = mgrid_move_new(x->old, x->plan, rank, n ? n : x->ntensors,
                                 n ? tensors : x->tensor, &options, err);
  free(old);
  return m;
}
