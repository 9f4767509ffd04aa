/* SPDX-License-Identifier: MIT
**
** recover.c - after a loss, let the survivors go on together. The file has the steps of a recovery
** in their order: detect, agree, choose, rebuild (and plan the move), resume. Each is a function
** whose comment says what it may change. Every attempt starts from the old backend, on which all
** survivors can agree even if the attempt before failed. So if another rank is lost meanwhile, it
** costs one more attempt. Two agreements keep all ranks in the same attempt: one after all have
** chosen, one after all have the new state. They combine bits by `and`. A host that finds the lost
** ranks itself passes their list and a backend of the survivors: recover_by_host. Hosts and Lua
** call mgrid_state_recover.
*/
#include "comm/compare.h"
#include "comm/state.h"
#include "survive/next.h"

#include "moongrid.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Ranks agree on these bits by `and`. AGAIN: this rank did not fail, or failed only because of
** another loss. A rank may still be in mgrid_state_settle when others recover; then it takes part
** in their agreement. It passes SETTLES and not COME, the others pass COME and not SETTLES. So each
** side sees that the other is in the other call. */
enum { COME = 1, DONE = 2, AGAIN = 4, SETTLES = 8 };

typedef struct attempt {
  mgrid_state *old;
  mgrid_losses *losses;
  const mgrid_recover_options *o;
  const mgrid_survival_ops *ops; /* of old->backend; NULL: the host gives the lost ranks */
  mgrid_backend *rest;           /* owned, unless it is the host's */
  mgrid_loss *loss;
  mgrid_state *now;
  mgrid_move *move;
  bool moves;   /* the host asks for a move */
  size_t nlost; /* lost ranks in the last attempt that found them */
  int alike;    /* attempts with the same lost ranks that failed at their end */
} attempt;

enum { ALIKE_MAX = 2 };

/* ------------------------------------------------------------------ detect */

bool mgrid_state_hurt(const mgrid_state *s) {
  const mgrid_survival_ops *ops = s ? s->backend->ops->survival : NULL;
  return ops && ops->hurt(s->backend);
}

/* End all calls that wait on the states of a backend. */
static void revoke_all(mgrid_backend *b) {
  for (mgrid_state *s = b->states; s; s = s->next) {
    mgrid_error ignored = MGRID_ERROR_INIT;
    mgrid_state_revoke(s, &ignored);
  }
}

/* Let all ranks notice the loss: end every call that waits, on the states of the old backend and on
** the backend itself. Change these communicators, which carry no call any more. Wait for nobody. */
static void detect(attempt *a) {
  revoke_all(a->old->backend);
  a->ops->interrupt(a->old->backend);
}

/* ------------------------------------------------------------------- agree */

/* Wait until all survivors are in mgrid_state_recover. A rank in mgrid_state_settle leaves it at
** the first try, and comes at the next. */
static mgrid_status come(const attempt *a, mgrid_error *err) {
  enum { TRIES = 4 };
  for (int i = 0; i < TRIES; i++) {
    uint64_t bits = COME;
    mgrid_status s = a->ops->agree_and(a->old->backend, &bits, a->o->timeout, err);
    if (s || bits & COME) return s;
  }
  return mgrid_fail(
      err, MGRID_DISAGREE,
      "state '%s': a survivor calls mgrid_state_settle instead of mgrid_state_recover",
      a->old->name);
}

/* Meet all survivors within the deadline, twice: a rank may have been stopped while it waited for
** the others, and what follows has no deadline. Change nothing. */
static mgrid_status recover_agree(const attempt *a, mgrid_error *err) {
  mgrid_status s = come(a, err);
  return s ? s : come(a, err);
}

/* Agree on whether all ranks have done a step. *again: the ranks that failed did so only because of
** another loss. */
static mgrid_status all_done(const attempt *a, mgrid_status mine, bool loses, bool *done,
                             bool *again, mgrid_error *err) {
  uint64_t bits = COME | (mine ? 0 : DONE) | (!mine || loses ? AGAIN : 0);
  mgrid_status s = a->ops->agree_and(a->old->backend, &bits, a->o->timeout, err);
  *done = !s && bits & DONE, *again = !s && bits & AGAIN;
  return s;
}

/* Return the error of a step that not all ranks have done. A rank that fails interrupts the others,
** and they may take that for a loss. Do not return MGRID_LOST_RANK then: these ranks would try
** again alone. */
static mgrid_status not_all(mgrid_error *mine, bool again, mgrid_error *err) {
  if (mine->status == MGRID_LOST_RANK && !again) mine->status = MGRID_OTHER_RANK;
  if (mine->status) return mgrid_error_pass(err, mine);
  return mgrid_fail(err, again ? MGRID_LOST_RANK : MGRID_OTHER_RANK,
                    again ? "another rank was lost during the recovery"
                          : "another survivor cannot recover; its error says why");
}

/* ------------------------------------------------------------------ choose */

/* Write the lost ranks, such as "ranks 3, 5". */
static void name_lost(const mgrid_loss *x, char out[96]) {
  size_t at = (size_t)snprintf(out, 96,
                               x->nlost == 0   ? "no rank"
                               : x->nlost == 1 ? "rank"
                                               : "ranks");
  for (size_t i = 0; i < x->nlost && at < 96; i++)
    at += (size_t)snprintf(out + at, 96 - at, "%s %" PRId64, i ? "," : "", x->lost[i]);
  mgrid_text_ellipsis(out, 96, at);
}

static mgrid_status recover_decide(attempt *a, size_t n, const int64_t *lost, mgrid_error *err) {
  /* n is 0 if a call failed, but no rank is lost: all ranks keep their places */
  a->loss = mgrid_loss_decide(a->losses, n, lost, err);
  return a->loss ? MGRID_OK : err->status;
}

/* Find the lost ranks, and decide what the job becomes without them. */
static mgrid_status find_and_decide(attempt *a, mgrid_error *err) {
  mgrid_backend *b = a->old->backend;
  size_t n = 0;
  bool *is_lost = calloc((size_t)b->world, sizeof *is_lost);
  int64_t *lost = calloc((size_t)b->world, sizeof *lost);
  mgrid_status s = is_lost && lost ? a->ops->find_lost(b, is_lost, err) : mgrid_oom(err);
  for (int64_t i = 0; i < b->world && !s; i++)
    if (is_lost[i]) lost[n++] = i;
  if (!s) s = recover_decide(a, n, lost, err);
  free(is_lost), free(lost);
  return s;
}

/* Set *same to whether all survivors have the same digest. The backend gives the `and` of 31 bits.
** A rank passes a part of the digest and its complement. If both come back unchanged, no rank has a
** 0 where this rank has a 1, or a 1 where this rank has a 0: all have the same part. Compare two
** parts of 15 bits. */
static mgrid_status compare(const attempt *a, const char digest[33], bool *same, mgrid_error *err) {
  const uint64_t mask = (1 << 15) - 1;
  *same = true;
  for (int i = 0; i < 2; i++) {
    uint64_t half = strtoull((char[5]){ digest[4 * i], digest[4 * i + 1], digest[4 * i + 2],
                                        digest[4 * i + 3], 0 },
                             NULL, 16)
                    & mask;
    uint64_t both = half << 15 | (~half & mask);
    mgrid_status s = a->ops->agree_and(a->old->backend, &both, a->o->timeout, err);
    if (s) return s;
    *same &= both >> 15 == half && (both & mask) == (~half & mask);
  }
  return MGRID_OK;
}

/* Fail if the job stops. All ranks return the same result. */
static mgrid_status stops(const attempt *a, mgrid_error *err) {
  char who[96];
  if (a->loss->how != MGRID_LOSS_STOP) return MGRID_OK;
  name_lost(a->loss, who);
  return mgrid_fail(err, MGRID_REFUSED,
                    "%s %s lost, and the job stops: %.700s; go on from the last checkpoint", who,
                    a->loss->nlost == 1 ? "is" : "are", mgrid_text_chars(&a->loss->why));
}

/* Find the lost ranks, let each rank decide alone what the job becomes, and compare what all have
** decided. Change a->loss; ask the old backend, and do not change it. */
static mgrid_status recover_choose(attempt *a, bool *again, mgrid_error *err) {
  bool done = false, same = false;
  char digest[33] = "", who[96];
  mgrid_error mine = MGRID_ERROR_INIT;
  mgrid_status s = all_done(a, find_and_decide(a, &mine), false, &done, again, err);
  if (s) return s;
  if (!done) return not_all(&mine, *again, err);
  mgrid_loss_digest(a->loss, digest);
  if ((s = compare(a, digest, &same, err))) return s;
  *again = false;
  if (same) return stops(a, err);
  name_lost(a->loss, who);
  return mgrid_fail(err, MGRID_DISAGREE,
                    "survivors decide differently about the loss of %s: here the job %s (%.8s); "
                    "the policy on_lost "
                    "must give one answer on all",
                    who, a->loss->how == MGRID_LOSS_STOP ? "stops" : "goes on", digest);
}

/* -------------------------------------------------------------------- move */

/* Plan the move of this rank from the old plan to the next one; nothing is sent before the host
** runs it. Fail if the job stops, or if the backend of the survivors has this rank in another
** place. Change a->move. */
static void recover_plan_move(attempt *a, mgrid_error *mine) {
  const mgrid_backend *b = a->rest;
  const int64_t was = a->old->view.rank, rank = mgrid_loss_rank(a->loss, was);
  char who[96];
  if (stops(a, mine)) return;
  if (b->world != a->loss->survivors || b->rank != rank) {
    name_lost(a->loss, who);
    mgrid_fail(mine, MGRID_REFUSED,
               "after the loss of %s rank %" PRId64 " is rank %" PRId64 " of %" PRId64
               "; the backend has it as rank %" PRId64 " of %" PRId64,
               who, was, rank, a->loss->survivors, b->rank, b->world);
  } else if (a->moves) {
    a->move = mgrid_loss_move(a->loss, rank, 0, NULL, NULL, mine);
  }
}

/* ----------------------------------------------------------------- rebuild */

/* Make the state of the next plan over the new backend, on all ranks together. *mine is an earlier
** error of this rank; if there is one, all ranks get it before anything is made. Change a->now. */
static mgrid_status recover_make(attempt *a, mgrid_error *mine, mgrid_error *err) {
  mgrid_backend *b = a->rest;
  mgrid_error unlike = MGRID_ERROR_INIT;
  const char *name = a->o->name ? a->o->name : a->old->name;
  const bool shrinks = a->o->nccl_shrink;
  mgrid_grown grown = { .from = a->old };
  char who[96] = "", digest[33] = "";
  if (a->loss) name_lost(a->loss, who), mgrid_loss_digest(a->loss, digest);
  /* The name of this call has the lost ranks: if two lists differ, the error shows both. */
  mgrid_status s = mgrid_meet(b,
                              mgrid_meet_call(b, false, "recover from the loss of %.60s (%.8s)%s",
                                              who, digest, shrinks ? ", by ncclCommShrink" : ""),
                              &unlike);
  if (s) return mgrid_error_pass(err, &unlike);
  s = mgrid_verdict(b, mine->status, mine, mine);
  if (!s) grown.now = a->loss->is;
  if (!s)
    a->now =
        mgrid_state_make(mgrid_loss_plan(a->loss), b, name, NULL, shrinks ? &grown : NULL, mine);
  return a->now ? MGRID_OK : mgrid_error_pass(err, mine);
}

/* Open a backend of the survivors, each with its rank in the next plan, and make the state on it;
** then agree that all have it. Change a->rest, a->move and a->now. */
static mgrid_status rebuild(attempt *a, bool *again, mgrid_error *err) {
  bool done = false;
  mgrid_error planned = MGRID_ERROR_INIT, ours = MGRID_ERROR_INIT;
  mgrid_status s, mine = MGRID_OK;
  a->rest = a->ops->rest(a->old->backend, mgrid_loss_rank(a->loss, a->old->view.rank), &ours);
  if (a->rest) recover_plan_move(a, &planned), mine = recover_make(a, &planned, &ours);
  if (!a->rest) mine = ours.status;
  bool loses = !a->rest || mine == MGRID_LOST_RANK || a->rest->ops->survival->hurt(a->rest);
  if (mine && a->rest) a->rest->ops->survival->interrupt(a->rest); /* others may wait there */
  if ((s = all_done(a, mine, loses, &done, again, err)) || done) return s;
  /* Another loss makes the list longer. If it stays the same, a rank fails for a reason of its own,
  ** and all stop. */
  a->alike = a->loss->nlost == a->nlost ? a->alike + 1 : 0;
  a->nlost = a->loss->nlost;
  *again &= a->alike < ALIKE_MAX;
  return not_all(&ours, *again, err);
}

static void undo(attempt *a) {
  if (a->rest && a->ops && a->rest->ops->survival) a->rest->ops->survival->interrupt(a->rest);
  mgrid_move_free(a->move);
  mgrid_state_free(a->now);
  if (a->ops) mgrid_backend_free(a->rest);
  mgrid_loss_free(a->loss);
  a->move = NULL, a->now = NULL, a->rest = NULL, a->loss = NULL;
}

/* ------------------------------------------------------------------ resume */

/* Let the old state abort its communicators where freeing them would wait for lost members. */
static void recover_lose_all(mgrid_state *s) {
  for (size_t i = 0; i < s->ncomms; i++) mgrid_pool_lose(s->backend, s->comm[i]);
}

/* Put the new state in the place of the old one: it gets the old one's runtime and settings, and
** the old one waits for nobody. Change both. */
static void resume(attempt *a) {
  char who[96];
  mgrid_loss_sums sums = MGRID_LOSS_SUMS_INIT;
  recover_lose_all(a->old);
  if (a->ops) mgrid_backend_free(a->rest); /* the state owns it, too */
  a->now->runtime = mgrid_runtime_ref(a->old->runtime);
  a->now->settings = json_incref(a->old->settings);
  name_lost(a->loss, who);
  mgrid_loss_describe(a->loss, &sums, NULL);
  mgrid_log(&a->now->backend->hooks, MGRID_LOG_WARN,
            "state '%s' goes on%s %s%s: %" PRId64 " ranks, %" PRId64
            " of them idle; all communicators are made again, "
            "%" PRId64 " of them without a lost member",
            a->now->name, a->loss->nlost ? " without" : ";", who, a->loss->nlost ? "" : " is lost",
            sums.survivors, sums.idle, sums.kept);
}

/* ------------------------------------------------------ the whole recovery */

/* Make attempts, as long as each one fails because of another loss. */
static mgrid_status by_backend(attempt *a, mgrid_error *err) {
  mgrid_status s = a->ops->able(a->old->backend, err);
  if (s) return s;
  for (int64_t left = a->old->backend->world;; left--) {
    bool again = false;
    mgrid_error mine = MGRID_ERROR_INIT;
    detect(a);
    s = recover_agree(a, &mine);
    if (!s) s = recover_choose(a, &again, &mine);
    if (!s) s = rebuild(a, &again, &mine);
    if (!s) return MGRID_OK;
    undo(a);
    mgrid_log(&a->old->backend->hooks, MGRID_LOG_WARN, "state '%s' is not recovered%s: %s",
              a->old->name, again ? ", and tries again" : "", mine.message);
    if (!again || left <= 0) return mgrid_error_pass(err, &mine);
    mgrid_error_clear(&mine);
  }
}

/* Recover with the host's list of lost ranks, and its backend of the survivors. */
static mgrid_status recover_by_host(attempt *a, mgrid_error *err) {
  mgrid_error mine = MGRID_ERROR_INIT;
  if (a->o->backend == a->old->backend)
    return mgrid_fail(err, MGRID_USAGE,
                      "the survivors need a backend of their own, not the state's");
  if (mgrid_layout_check(a->o->backend->layout, "the backend's library", err))
    return err ? err->status : MGRID_USAGE;
  a->rest = a->o->backend;
  if (!mgrid_lacks_list(a->o->nlost, a->o->lost, "lost ranks", &mine)
      && !recover_decide(a, a->o->nlost, a->o->lost, &mine))
    revoke_all(a->old->backend), recover_plan_move(a, &mine);
  mgrid_error own = MGRID_ERROR_INIT;
  mgrid_status s = recover_make(a, &mine, &own);
  if (!s) return MGRID_OK;
  undo(a);
  return mgrid_error_pass(err, &own);
}

mgrid_status mgrid_state_recover(mgrid_state *s, mgrid_losses *losses,
                                 const mgrid_recover_options *options, mgrid_state **now,
                                 mgrid_loss **loss, mgrid_move **move, mgrid_error *err) {
  mgrid_recover_options o = MGRID_RECOVER_OPTIONS_INIT;
  if (now) *now = NULL;
  if (loss) *loss = NULL;
  if (move) *move = NULL;
  if (!s) return MGRID_USAGE;
  if (mgrid_lacks(losses, "the losses of the state's plan", err)
      || mgrid_lacks(now, "a place for the new state", err))
    return MGRID_USAGE;
  if (mgrid_struct_read(&o, sizeof o, options, "mgrid_recover_options", err))
    return err ? err->status : MGRID_USAGE;
  if (mgrid_timeout_check(o.timeout, "recover", err)) return MGRID_OUT_OF_RANGE;
  if (memcmp(losses->plan->digest, s->plan->digest, sizeof s->plan->digest) != 0)
    return mgrid_fail(err, MGRID_REFUSED, "the losses are of another plan than that of state '%s'",
                      s->name);
  attempt a = { .old = s,
                .losses = losses,
                .o = &o,
                .ops = o.backend ? NULL : s->backend->ops->survival,
                .moves = move,
                .nlost = SIZE_MAX };
  if (!o.backend && !a.ops)
    return mgrid_fail(err, MGRID_UNSUPPORTED,
                      "the %s backend cannot find the lost ranks; a host that can opens a backend "
                      "of the survivors, "
                      "and passes it with the list (mgrid_recover_options)",
                      s->backend->kind->name);
  mgrid_status status = a.ops ? by_backend(&a, err) : recover_by_host(&a, err);
  if (status) return status;
  resume(&a);
  *now = a.now;
  if (loss)
    *loss = a.loss;
  else
    mgrid_loss_free(a.loss);
  if (move) *move = a.move;
  return MGRID_OK;
}

/* ------------------------------------------ settle, and queries of a state */

/* End the calls of all ranks that wait on the state, so that freeing it does not wait. */
static void recover_leave(mgrid_state *s) {
  mgrid_error ignored = MGRID_ERROR_INIT;
  mgrid_state_revoke(s, &ignored);
  s->backend->ops->survival->interrupt(s->backend);
  recover_lose_all(s);
}

mgrid_status mgrid_state_settle(mgrid_state *s, mgrid_status mine, mgrid_error *err) {
  if (!s) return MGRID_USAGE;
  mgrid_backend *b = s->backend;
  const mgrid_survival_ops *ops = b->ops->survival;
  mgrid_error why = MGRID_ERROR_INIT;
  /* all ranks return the same error */
  if (mine && err) mgrid_error_pass(&why, err), mgrid_error_clear(err);
  if (mine && !why.status) mgrid_fail(&why, mine, "this rank could not do its part");
  if (ops && !ops->able(b, NULL)) {
    const bool loses = ops->hurt(b) || mine == MGRID_LOST_RANK;
    uint64_t bits = MGRID_ALL_LIVE | SETTLES | (mine || loses ? 0 : DONE) | (loses ? 0 : AGAIN);
    mgrid_error late = MGRID_ERROR_INIT;
    if (loses) recover_leave(s);
    mgrid_status settled = ops->agree_and(b, &bits, 0, &late);
    if (settled) return mgrid_error_pass(err, &late);
    const bool all = bits & MGRID_ALL_LIVE && bits & SETTLES;
    if (all && bits & DONE) return MGRID_OK;
    if (!all || !(bits & AGAIN)) {
      recover_leave(s);
      return mgrid_fail(err, MGRID_LOST_RANK,
                        "state '%s': a rank was lost before all had done their part", s->name);
    }
  }
  mgrid_error told = MGRID_ERROR_INIT;
  mgrid_status met = mgrid_meet(b, mgrid_meet_call(b, false, "settle '%s'", s->name), &told);
  if (!met) met = mgrid_verdict(b, mine, &why, &told);
  return met ? mgrid_error_pass(err, &told) : MGRID_OK;
}

mgrid_status mgrid_state_least(mgrid_state *s, int64_t *number, mgrid_error *err) {
  if (!s || mgrid_lacks(number, "a number", err)) return MGRID_USAGE;
  uint64_t word = (uint64_t)*number ^ UINT64_C(1) << 63;
  mgrid_status st =
      mgrid_meet(s->backend, mgrid_meet_call(s->backend, false, "least of '%s'", s->name), err);
  if (!st) st = s->backend->ops->allreduce_min(s->backend, &word, 1, err);
  if (!st) *number = (int64_t)(word ^ UINT64_C(1) << 63);
  return st;
}

mgrid_backend *mgrid_state_backend(const mgrid_state *s) { return s ? s->backend : NULL; }
