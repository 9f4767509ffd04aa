/* SPDX-License-Identifier: MIT
**
** recover.c - lets the survivors of a loss go on together. A recovery has six steps, each a
** function: detect, agree, choose, rebuild, move, resume. `attempt` calls them in this order. A
** step changes only parameters that are not const.
*/

/* THE ATTEMPTS. Every attempt starts from the old backend, over which all survivors can agree, even
** after a failed attempt. So if another rank is lost meanwhile, that costs one more attempt. Two
** agreements keep all ranks in the same attempt: one on whether all have chosen, one on whether all
** have the new state. An agreement combines bits of all ranks by `and`.
**
** If the host finds the lost ranks itself, it passes their list and a backend of the survivors. The
** steps are the same then, without an agreement over the old backend.
*/

#include "comm/compare.h"
#include "comm/state.h"
#include "survive/next.h"

#include "moongrid.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The bits on which ranks agree. The result has the bits that all ranks passed.
**   COME     this rank is in mgrid_state_recover
**   SETTLES  this rank is in mgrid_state_settle. If a rank is lost then, other ranks may be in
**            mgrid_state_recover already. The agreements of the two calls meet, and the result has
**            neither COME nor SETTLES
**   DONE     this rank has done its part
**   AGAIN    this rank has no reason against another attempt: it has done its part, or it failed
**            only because of another loss
*/
enum { COME = 1, DONE = 2, AGAIN = 4, SETTLES = 8 };

/* What an attempt has made. */
typedef struct recovered {
  mgrid_loss *loss;
  mgrid_backend *rest; /* the backend of the survivors; owned, unless the host passed it */
  mgrid_state *now;
  mgrid_move *move;
} recovered;

/* Attempts that failed in their last agreement, in `resume`. */
typedef struct failures {
  size_t nlost; /* how many ranks were lost in the latest of these attempts */
  int alike;    /* how many of them directly before it had equally many lost ranks */
} failures;

/* ------------------------------------------------------------------ detect */

bool mgrid_state_hurt(const mgrid_state *s) {
  const mgrid_survival_ops *ops = s ? s->backend->ops->survival : NULL;
  return ops && ops->hurt(s->backend);
}

/* End all calls that wait on a state. */
static void end_calls(mgrid_state *s) {
  mgrid_error ignored = MGRID_ERROR_INIT;
  mgrid_pool_revoke(s->backend, s->view.ncomms, s->comm, &s->batch, &ignored);
}

/* Make all ranks notice the loss: end every call that waits on the old backend or on one of its
** states. After that their communicators cannot be used. This function waits for no rank. */
static void detect(mgrid_state *old, const mgrid_recover_options *o) {
  for (mgrid_state *s = old->backend->states; s; s = s->next) end_calls(s);
  if (!o->backend) old->backend->ops->survival->interrupt(old->backend);
}

/* ------------------------------------------------------------------- agree */

/* Combine the bits of all survivors by `and`, over the old backend, within the deadline. */
static mgrid_status all_bits(const mgrid_state *old, const mgrid_recover_options *o, uint64_t *bits,
                             mgrid_error *err) {
  return old->backend->ops->survival->agree_and(old->backend, bits, o->timeout, err);
}

/* Wait until all survivors are in mgrid_state_recover. If a rank is in mgrid_state_settle, the
** result lacks COME; its mgrid_state_settle then fails, and the rank comes to the next try. */
static mgrid_status come(const mgrid_state *old, const mgrid_recover_options *o, mgrid_error *err) {
  enum { TRIES = 4 };
  for (int i = 0; i < TRIES; i++) {
    uint64_t bits = COME;
    mgrid_status s = all_bits(old, o, &bits, err);
    if (s || bits & COME) return s;
  }
  return mgrid_fail(
      err, MGRID_DISAGREE,
      "state '%s': a survivor calls mgrid_state_settle instead of mgrid_state_recover", old->name);
}

/* Meet all survivors twice, each time within the deadline, because the next steps have no deadline.
** A rank may be stopped while it waits in the first meeting, unnoticed by the other ranks; the
** second meeting shows that all came out of the first. If the host passes a backend, the survivors
** meet over that backend instead, in `rebuild`. */
static mgrid_status agree(const mgrid_state *old, const mgrid_recover_options *o,
                          mgrid_error *err) {
  if (o->backend) return MGRID_OK;
  mgrid_status s = come(old, o, err);
  return s ? s : come(old, o, err);
}

/* Agree on whether all ranks have done their part (*done), and if not, whether each failure was due
** to another loss (*again). */
static mgrid_status all_done(const mgrid_state *old, const mgrid_recover_options *o,
                             mgrid_status mine, bool loses, bool *done, bool *again,
                             mgrid_error *err) {
  uint64_t bits = COME | (mine ? 0 : DONE) | (!mine || loses ? AGAIN : 0);
  mgrid_status s = all_bits(old, o, &bits, err);
  *done = !s && bits & DONE, *again = !s && bits & AGAIN;
  return s;
}

/* Make the error of a step that not all ranks have done. A rank that fails interrupts the others,
** which may take this for a loss. If no other attempt follows, they must not return
** MGRID_LOST_RANK, because their callers would then try again, alone. */
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

/* Find the lost ranks, and decide what the job becomes without them. */
static mgrid_loss *find_and_decide(mgrid_backend *b, mgrid_losses *losses, mgrid_error *err) {
  size_t n = 0;
  bool *is_lost = calloc((size_t)losses->world, sizeof *is_lost);
  int64_t *lost = calloc((size_t)losses->world, sizeof *lost);
  mgrid_status s = is_lost && lost ? b->ops->survival->find_lost(b, is_lost, err) : mgrid_oom(err);
  for (int64_t i = 0; i < losses->world && !s; i++)
    if (is_lost[i]) lost[n++] = i;
  /* n is 0 if a call failed although no rank is lost; all ranks then keep their places */
  mgrid_loss *x = s ? NULL : mgrid_loss_decide(losses, n, lost, err);
  free(is_lost), free(lost);
  return x;
}

/* Set *same to whether all survivors have the same digest. The backend combines 31 bits by `and`. A
** rank passes 15 bits of its digest, and their complement. If both come back unchanged, all ranks
** have these 15 bits: none has a 0 where this rank has a 1, or a 1 where this rank has a 0. Two
** parts of the digest are compared in this way. */
static mgrid_status compare(const mgrid_state *old, const mgrid_recover_options *o,
                            const char digest[33], bool *same, mgrid_error *err) {
  const uint64_t mask = (1 << 15) - 1;
  *same = true;
  for (int i = 0; i < 2; i++) {
    uint64_t half = strtoull((char[5]){ digest[4 * i], digest[4 * i + 1], digest[4 * i + 2],
                                        digest[4 * i + 3], 0 },
                             NULL, 16)
                    & mask;
    uint64_t both = half << 15 | (~half & mask);
    mgrid_status s = all_bits(old, o, &both, err);
    if (s) return s;
    *same &= both >> 15 == half && (both & mask) == (~half & mask);
  }
  return MGRID_OK;
}

/* Fail if the job stops. All ranks get the same result. */
static mgrid_status stops(const mgrid_loss *x, mgrid_error *err) {
  char who[96];
  if (x->how != MGRID_LOSS_STOP) return MGRID_OK;
  name_lost(x, who);
  return mgrid_fail(err, MGRID_REFUSED,
                    "%s %s lost, and the job stops: %.700s; go on from the last checkpoint", who,
                    x->nlost == 1 ? "is" : "are", mgrid_text_chars(&x->why));
}

/* Find the lost ranks, and decide on each rank what the job becomes. Then all ranks compare their
** decisions. `losses` keeps the plans that are made on the way. *mine: this rank's error. If it is
** about the host's list, `rebuild` passes it to the others. */
static mgrid_status choose(const mgrid_state *old, const mgrid_recover_options *o,
                           mgrid_losses *losses, mgrid_loss **out, mgrid_error *mine, bool *again,
                           mgrid_error *err) {
  bool done = false, same = false;
  char digest[33] = "", who[96];

  if (o->backend) {
    if (!mgrid_lacks_list(o->nlost, o->lost, "lost ranks", mine)
        && (*out = mgrid_loss_decide(losses, o->nlost, o->lost, mine)))
      stops(*out, mine);
    return MGRID_OK;
  }
  *out = find_and_decide(old->backend, losses, mine);
  mgrid_status s = all_done(old, o, mine->status, false, &done, again, err);
  if (s) return s;
  if (!done) return not_all(mine, *again, err);
  mgrid_loss_digest(*out, digest);
  if ((s = compare(old, o, digest, &same, err))) return s;
  *again = false;
  if (same) return stops(*out, err);
  name_lost(*out, who);
  return mgrid_fail(err, MGRID_DISAGREE,
                    "survivors decide differently about the loss of %s: here the job %s (%.8s); "
                    "the policy on_lost "
                    "must give the same answer on all ranks",
                    who, (*out)->how == MGRID_LOSS_STOP ? "stops" : "goes on", digest);
}

/* ----------------------------------------------------------------- rebuild */

/* Fail if the host's backend does not give this rank the number that it has in the next plan. */
static void check_place(const mgrid_backend *b, int64_t was, const mgrid_loss *x,
                        mgrid_error *mine) {
  const int64_t rank = mgrid_loss_rank(x, was);
  char who[96];
  if (b->world == x->survivors && b->rank == rank) return;
  name_lost(x, who);
  mgrid_fail(mine, MGRID_REFUSED,
             "this rank is rank %" PRId64 " of %" PRId64
             " in the backend of the survivors; after the loss of %s the old rank %" PRId64
             " must be rank %" PRId64 " of %" PRId64,
             b->rank, b->world, who, was, rank, x->survivors);
}

/* Open a backend of the survivors, each with its rank in the next plan, and make the state of that
** plan on it. *mine may hold an error of `choose`; after a failure it holds the error of this rank
** or of another rank. */
static void rebuild(const mgrid_state *old, const mgrid_recover_options *o, const mgrid_loss *x,
                    mgrid_backend **rest, mgrid_state **now, mgrid_error *mine) {
  const int64_t was = old->view.rank;
  mgrid_error unlike = MGRID_ERROR_INIT;
  char who[96] = "", digest[33] = "";
  mgrid_backend *b = o->backend;

  if (!b) b = old->backend->ops->survival->rest(old->backend, mgrid_loss_rank(x, was), mine);
  *rest = b;
  if (!b) return;
  if (x) name_lost(x, who), mgrid_loss_digest(x, digest);

  /* The name of this call contains the lost ranks. So if two lists differ, the error shows both. */
  uint64_t call = mgrid_meet_call(b, false, "recover from the loss of %.60s (%.8s)%s", who, digest,
                                  o->nccl_shrink ? ", by ncclCommShrink" : "");
  if (mgrid_meet(b, call, &unlike)) {
    mgrid_error_replace(mine, &unlike);
    return;
  }
  if (o->backend) {
    if (!mine->status) check_place(b, was, x, mine);
    if (mgrid_verdict(b, mine->status, mine, mine)) return;
  }
  mgrid_grown grown = { .from = old, .now = x->is };
  *now = mgrid_state_make(mgrid_loss_plan(x), b, o->name ? o->name : old->name, NULL,
                          o->nccl_shrink ? &grown : NULL, mine);
}

/* -------------------------------------------------------------------- move */

/* Plan the move of this rank from the old plan to the next one; the host runs it later. out NULL:
** the host did not ask for a move. If one rank fails, all get its error. */
static void move(const mgrid_loss *x, mgrid_backend *rest, mgrid_move **out, mgrid_error *mine) {
  if (out) *out = mgrid_loss_move(x, rest->rank, 0, NULL, NULL, mine);
  mgrid_verdict(rest, mine->status, mine, mine);
}

/* ------------------------------------------------------------------ resume */

/* Tell the state to abort its communicators instead of freeing them: freeing one is a call over all
** its members, and some ranks are lost. */
static void recover_lose_all(mgrid_state *s) {
  for (size_t i = 0; i < s->ncomms; i++) mgrid_pool_lose(s->backend, s->comm[i]);
}

/* Agree on whether all survivors have the new state and the move. */
static mgrid_status all_have(const mgrid_state *old, const mgrid_recover_options *o,
                             const recovered *r, failures *f, mgrid_error *mine, bool *again,
                             mgrid_error *err) {
  const mgrid_survival_ops *ops = r->rest ? r->rest->ops->survival : NULL;
  bool done = false, loses = !ops || mine->status == MGRID_LOST_RANK || ops->hurt(r->rest);
  if (mine->status && ops) ops->interrupt(r->rest); /* other ranks may wait on it */
  mgrid_status s = all_done(old, o, mine->status, loses, &done, again, err);
  if (s || done) return s;
  /* Another loss makes the list of lost ranks longer. If the list stays the same, a rank fails for
  ** a reason of its own, and all ranks stop. */
  enum { ALIKE_MAX = 2 };
  f->alike = r->loss->nlost == f->nlost ? f->alike + 1 : 0;
  f->nlost = r->loss->nlost;
  *again &= f->alike < ALIKE_MAX;
  return not_all(mine, *again, err);
}

/* If all survivors have the new state and the move, give the new state the runtime and settings of
** the old state. After that, freeing the old state waits for no rank. */
static mgrid_status resume(mgrid_state *old, const mgrid_recover_options *o, const recovered *r,
                           failures *f, mgrid_error *mine, bool *again, mgrid_error *err) {
  char who[96];
  mgrid_loss_sums sums = MGRID_LOSS_SUMS_INIT;
  mgrid_status s = o->backend ? mgrid_error_pass(err, mine)
                              : all_have(old, o, r, f, mine, again, err);
  if (s) return s;
  recover_lose_all(old);
  if (!o->backend) mgrid_backend_free(r->rest); /* the state owns it, too */
  r->now->runtime = mgrid_runtime_ref(old->runtime);
  r->now->settings = json_incref(old->settings);
  name_lost(r->loss, who);
  mgrid_loss_describe(r->loss, &sums, NULL);
  mgrid_log(&r->now->backend->hooks, MGRID_LOG_WARN,
            "state '%s' goes on%s %s%s: %" PRId64 " ranks, %" PRId64
            " of them idle; all communicators are made again, also the "
            "%" PRId64 " that had no lost member",
            r->now->name, r->loss->nlost ? " without" : ";", who, r->loss->nlost ? "" : " is lost",
            sums.survivors, sums.idle, sums.kept);
  return MGRID_OK;
}

/* ------------------------------------------------------ the whole recovery */

/* Go through the six steps once. *again: the attempt failed because of another loss. */
static mgrid_status attempt(mgrid_state *old, const mgrid_recover_options *o, mgrid_losses *losses,
                            bool moves, recovered *r, failures *f, bool *again, mgrid_error *err) {
  mgrid_error mine = MGRID_ERROR_INIT;
  detect(old, o);
  mgrid_status s = agree(old, o, err);
  if (!s) s = choose(old, o, losses, &r->loss, &mine, again, err);
  if (s) return s;
  rebuild(old, o, r->loss, &r->rest, &r->now, &mine);
  if (r->now) move(r->loss, r->rest, moves ? &r->move : NULL, &mine);
  return resume(old, o, r, f, &mine, again, err);
}

/* Free what an attempt has made. */
static void undo(const mgrid_recover_options *o, recovered *r) {
  if (r->rest && !o->backend) r->rest->ops->survival->interrupt(r->rest);
  mgrid_move_free(r->move);
  mgrid_state_free(r->now);
  if (!o->backend) mgrid_backend_free(r->rest);
  mgrid_loss_free(r->loss);
  *r = (recovered){ 0 };
}

/* Refuse wrong arguments before any call that waits for other ranks. */
static mgrid_status recover_check(const mgrid_state *old, const mgrid_recover_options *o,
                                  const mgrid_losses *losses, mgrid_error *err) {
  const mgrid_survival_ops *ops = old->backend->ops->survival;
  if (mgrid_timeout_check(o->timeout, "recover", err)) return MGRID_OUT_OF_RANGE;
  if (memcmp(losses->plan->digest, old->plan->digest, sizeof old->plan->digest) != 0)
    return mgrid_fail(err, MGRID_REFUSED, "the losses are of another plan than that of state '%s'",
                      old->name);
  if (o->backend == old->backend)
    return mgrid_fail(err, MGRID_USAGE,
                      "the survivors need a backend of their own, not the state's");
  if (o->backend) return mgrid_layout_check(o->backend->layout, "the backend's library", err);
  if (ops) return ops->able(old->backend, err);
  return mgrid_fail(err, MGRID_UNSUPPORTED,
                    "the %s backend cannot find the lost ranks; if your program knows them, open a "
                    "backend of the survivors, and pass it with the list of lost ranks "
                    "(mgrid_recover_options)",
                    old->backend->kind->name);
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
  mgrid_status status = mgrid_struct_read(&o, sizeof o, options, "mgrid_recover_options", err);
  if (status) return status;
  recovered r = { 0 };
  failures f = { .nlost = SIZE_MAX };
  if ((status = recover_check(s, &o, losses, err))) return status;

  /* try as long as each attempt fails because of another loss */
  for (int64_t left = s->backend->world;; left--) {
    bool again = false;
    mgrid_error mine = MGRID_ERROR_INIT;
    if (!attempt(s, &o, losses, move, &r, &f, &again, &mine)) break;
    undo(&o, &r);
    mgrid_log(&s->backend->hooks, MGRID_LOG_WARN, "state '%s' is not recovered%s: %s", s->name,
              again ? "; the survivors try again" : "", mine.message);
    if (!again || left <= 0) return mgrid_error_pass(err, &mine);
    mgrid_error_clear(&mine);
  }
  *now = r.now;
  if (loss)
    *loss = r.loss;
  else
    mgrid_loss_free(r.loss);
  if (move) *move = r.move;
  return MGRID_OK;
}

/* ------------------------------------------ settle, and queries of a state */

/* End the calls of all ranks that wait on the state, so that freeing it does not wait. */
static void recover_leave(mgrid_state *s) {
  end_calls(s);
  s->backend->ops->survival->interrupt(s->backend);
  recover_lose_all(s);
}

mgrid_status mgrid_state_settle(mgrid_state *s, mgrid_status mine, mgrid_error *err) {
  if (!s) return MGRID_USAGE;
  mgrid_backend *b = s->backend;
  const mgrid_survival_ops *ops = b->ops->survival;
  mgrid_error why = MGRID_ERROR_INIT;

  /* take this rank's error out of *err, because all ranks must return the same error */
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
  /* with the sign bit flipped, unsigned words have the order of the signed numbers */
  uint64_t word = (uint64_t)*number ^ UINT64_C(1) << 63;
  mgrid_status st =
      mgrid_meet(s->backend, mgrid_meet_call(s->backend, false, "least of '%s'", s->name), err);
  if (!st) st = s->backend->ops->allreduce_min(s->backend, &word, 1, err);
  if (!st) *number = (int64_t)(word ^ UINT64_C(1) << 63);
  return st;
}

mgrid_backend *mgrid_state_backend(const mgrid_state *s) { return s ? s->backend : NULL; }
