/* SPDX-License-Identifier: MIT
**
** loss.c - one loss: the decision, the next plan, who takes which place, and the bytes moved.
*/
#include "survive/next.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* -------------------------------------------------------------- who is lost */

static int by_number(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static mgrid_status take_lost(mgrid_loss *x, size_t n, const int64_t *lost, mgrid_error *err) {
  if (mgrid_lacks_list(n, lost, "lost ranks", err)) return MGRID_USAGE;
  for (size_t i = 0; i < n; i++)
    if (lost[i] < 0 || lost[i] >= x->world)
      return mgrid_fail(err, MGRID_OUT_OF_RANGE, "rank %" PRId64 " is out of range (0 to %" PRId64 ")", lost[i],
                        x->world - 1);
  x->lost = malloc((n + 1) * sizeof *x->lost);
  x->is = malloc((size_t)x->world * sizeof *x->is);
  if (!x->lost || !x->is) return mgrid_oom(err);
  if (n > 0) memcpy(x->lost, lost, n * sizeof *lost);
  x->nlost = n;
  qsort(x->lost, n, sizeof *x->lost, by_number);
  for (size_t i = 1; i < n; i++)
    if (x->lost[i] == x->lost[i - 1])
      return mgrid_fail(err, MGRID_DUPLICATE, "rank %" PRId64 " is lost twice", x->lost[i]);
  if ((int64_t)n == x->world)
    return x->world == 1 ? mgrid_fail(err, MGRID_REFUSED, "the only rank is lost, and nobody is left to go on")
                         : mgrid_fail(err, MGRID_REFUSED, "all %" PRId64 " ranks are lost, and nobody is left to go on",
                                      x->world);
  memset(x->is, -1, (size_t)x->world * sizeof *x->is); /* free */
  for (size_t i = 0; i < n; i++) x->is[lost[i]] = -2;
  x->survivors = x->world - (int64_t)n;
  return MGRID_OK;
}

/* ----------------------------------------------------------------- decide */

static int64_t spares_left(const mgrid_losses *l, const mgrid_loss *x) {
  int64_t n = 0;
  for (int64_t r = 0; r < l->world; r++) n += l->place[r] < 0 && x->is[r] == -1;
  return n;
}

/* Say why no layout is accepted. */
static void no_layout(const mgrid_losses *l, const mgrid_loss_reply *reply, const mgrid_next *next, mgrid_loss *x) {
  int64_t most = next->survivors < l->places ? next->survivors : l->places;
  mgrid_text_add(&x->why, "the recipe accepts no layout of %s%" PRId64 " rank%s; of %" PRId64 ": %s",
                 most > 1 ? "1 to " : "", most, mgrid_s_of(most), most, next->why.message);
  if (!reply->nsets)
    mgrid_text_str(&x->why, "; the policy on_lost may change parameters, { how = \"shrink\", params = { dp = 3 } }");
}

/* Find the next plan. NULL without an error: the job stops, for the reason in x->why. */
static mgrid_next *decide(mgrid_losses *l, mgrid_loss *x, mgrid_error *err) {
  mgrid_loss_reply reply;
  mgrid_next      *next = NULL;
  int64_t          spares = spares_left(l, x), gone = 0;
  for (size_t i = 0; i < x->nlost; i++) gone += l->place[x->lost[i]] >= 0;
  mgrid_status s = mgrid_loss_ask(l, x, spares, &reply, err);
  if (s) return NULL;
  x->how = reply.how;
  if (reply.how == MGRID_LOSS_STOP) {
    mgrid_text_add(&x->why, "%s says so", reply.by);
  } else if (reply.how == MGRID_LOSS_REPLACE && gone > spares) {
    mgrid_text_add(&x->why, "%s says replace: %" PRId64 " rank%s of the layout %s lost, and %" PRId64 " spare%s left",
                   reply.by, gone, mgrid_s_of(gone), gone == 1 ? "is" : "are", spares, spares == 1 ? " is" : "s are");
  } else if (reply.how == MGRID_LOSS_REPLACE) {
    next = mgrid_next_of(l, x, false, 0, NULL, err);
    if (next && !next->plan && !reply.usual)
      mgrid_text_add(&x->why, "the recipe does not accept its layout again: %s", next->why.message);
  }
  if (reply.how == MGRID_LOSS_SHRINK || (reply.usual && next && !next->plan && !err->status)) {
    x->how = MGRID_LOSS_SHRINK;
    mgrid_loss_set none = { 0, NULL };
    for (size_t i = 0; !s && (i < reply.nsets || i == 0) && !(next && next->plan); i++) {
      mgrid_loss_set *set = reply.nsets ? &reply.set[i] : &none;
      next = mgrid_next_of(l, x, true, set->n, set->params, err);
      s = next ? MGRID_OK : err->status;
      for (size_t k = 0; next && next->plan && k < set->n; k++) mgrid_text_add(&x->params, "%s\n", set->params[k]);
    }
    if (next && !next->plan) no_layout(l, &reply, next, x);
  }
  mgrid_loss_reply_free(&reply);
  return next && next->plan ? next : NULL;
}

static mgrid_status count_comms(const mgrid_losses *l, const mgrid_next *next, mgrid_loss *x, mgrid_error *err) {
  const mgrid_comm_list *c = &next->comms;
  int32_t               *room = malloc((size_t)(next->places + 1) * sizeof *room);
  if (!room) return mgrid_oom(err);
  for (size_t i = 0; i < c->n; i++) {
    int64_t             n = c->start[i + 1] - c->start[i];
    const mgrid_choice *choice = next->plan->content.entry[c->entry[i]].choice;
    for (int64_t k = 0; k < n; k++) room[k] = x->was[c->member[c->start[i] + k]];
    x->sums.kept += mgrid_comm_find(&l->comms, l->plan, room, n, mgrid_comm_hash(room, n), choice) >= 0;
  }
  x->sums.made = (int64_t)c->n - x->sums.kept;
  x->sums.dropped = (int64_t)l->comms.n - x->sums.kept;
  free(room);
  return MGRID_OK;
}

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
  if (!s) s = mgrid_loss_find_missing(x, &why);
  mgrid_next *next = s ? NULL : decide(l, x, &why);
  s = why.status;
  x->sums.lost = (int64_t)x->nlost, x->sums.survivors = x->survivors;
  if (!s && next) {
    x->plan = mgrid_plan_ref(next->plan);
    x->sums.layout = next->places, x->sums.idle = x->survivors - next->places;
    s = x->was ? mgrid_loss_place_again(l, next, x, &why) : mgrid_loss_place(l, next, x, &why);
    if (!s) s = count_comms(l, next, x, &why);
    if (!s) s = mgrid_loss_count_bytes(next, x, &why);
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
  mgrid_status    s = mgrid_struct_check(out, sizeof *out, "mgrid_loss_sums", err);
  mgrid_loss_sums sums = x->sums;
  sums.how = x->how, sums.why = mgrid_text_chars(&x->why);
  if (!s) mgrid_struct_write(out, &sums, sizeof sums);
  return s;
}

/* Return whether a group of an old family has exactly the members of the new one, by their old ranks. */
static bool same_members(const mgrid_loss *x, const mgrid_family *f, int64_t group, const mgrid_family *old,
                         int64_t at) {
  int64_t n = mgrid_family_size(f, group);
  if (mgrid_family_size(old, at) != n) return false;
  for (int64_t i = 0; i < n; i++)
    if (x->was[mgrid_family_rank(f, group, i)] != mgrid_family_rank(old, at, i)) return false;
  return true;
}

bool mgrid_loss_kept(const mgrid_loss *x, const char *family, int64_t group, const char **old_family,
                     int64_t *old_group) {
  int entry = x && x->plan && family ? mgrid_content_find(&x->plan->content, family) : -1;
  if (entry < 0) return false;
  const mgrid_entry *e = &x->plan->content.entry[entry];
  if (group < 0 || group >= e->family->count || mgrid_family_size(e->family, group) < 2) return false;
  int64_t first = x->was[mgrid_family_rank(e->family, group, 0)], at, position;
  for (size_t i = 0; i < x->old->content.nentries; i++) {
    const mgrid_entry *o = &x->old->content.entry[x->old->order[i]];
    if (!mgrid_choice_shares(o->choice, e->choice)) continue;
    for (int64_t nth = 0; mgrid_family_locate(o->family, first, nth, &at, &position); nth++) {
      if (position != 0 || !same_members(x, e->family, group, o->family, at)) continue;
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
  if (!x || mgrid_struct_read(&options, sizeof options, given, "mgrid_move_options", err)) return NULL;
  if (!x->plan) return mgrid_null(err, MGRID_REFUSED, "the job stops after this loss: nothing moves");
  if (n == 0 && x->ntensors == 0)
    return mgrid_null(err, MGRID_REFUSED, "the plans before and after the loss have no tensor in common");
  int64_t *old = malloc((size_t)x->world * sizeof *old);
  if (!old) return mgrid_null_oom(err);
  for (int64_t r = 0; r < x->world; r++) old[r] = x->is[r];
  options.nranks = 0, options.ranks = NULL;
  options.nold = (size_t)x->world, options.old = old;
  mgrid_move *m = mgrid_move_new(x->old, x->plan, rank, n ? n : x->ntensors, n ? tensors : x->tensor, &options, err);
  free(old);
  return m;
}
