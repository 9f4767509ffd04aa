/* SPDX-License-Identifier: MIT
**
** nccl_recover.c - the communicator of a group that lost members, or gets new members. The members
** vote, by messages among themselves with deadlines, whether the new communicator can be made from
** the old one. If all members can do so, they make it from the old one; else from a fresh id.
*/
#include "comm/nccl/nccl.h"

#include <inttypes.h>
#include <stdlib.h>

/* ================================================================== the vote */

typedef struct ballot {
  nccl_header header;
  uint64_t number;
} ballot;

/* Find the minimum of the numbers of all members, by messages up a binomial tree to the first
** member, and down again. The tree is that of the unique ids (create.c). A member may come two
** deadlines later than another, because it may have waited in two calls before. In a call over all
** ranks, which have met, it comes at most one deadline later. Votes of one creation have different
** rounds. whom: what the error calls the members. */
static mgrid_outcome least_of(nccl_backend *n, const mgrid_comm_spec *spec, uint32_t round,
                              uint64_t mine, uint64_t *least, const char *whom, mgrid_error *err) {
  int64_t at = spec->position, low = at & -at, step;
  size_t bytes = mgrid_nccl_message(n, spec);
  double left = mgrid_nccl_left(n, spec) + NCCL_END_SECONDS,
         seconds = (n->creates ? left : 2 * left) + 3;
  nccl_header header = mgrid_nccl_header(n, round);
  /* *got is large enough for any message that an earlier call has left */
  ballot own = { header, mine }, *got = malloc(bytes);
  mgrid_error why = MGRID_ERROR_INIT;
  mgrid_outcome s = got ? MGRID_OK : mgrid_oom(&why);

  if (at == 0)
    for (low = 1; low < spec->size;) low *= 2;
  for (step = 1; step < low && !s; step *= 2) {
    if (at + step >= spec->size) continue;
    s = mgrid_nccl_receive(n, spec->ranks[at + step], spec->tag, header, got, bytes, seconds, &why);
    if (!s && got->number < own.number) own.number = got->number;
  }
  if (!s && at > 0)
    s = n->carry->send(n->carrier, spec->ranks[at - low], spec->tag, &own, sizeof own, seconds,
                       &why);
  if (!s && at > 0)
    s = mgrid_nccl_receive(n, spec->ranks[at - low], spec->tag, header, got, bytes, seconds, &why);
  if (!s && at > 0) own = *got;
  for (step = low / 2; step > 0 && !s; step /= 2)
    if (at + step < spec->size)
      s = n->carry->send(n->carrier, spec->ranks[at + step], spec->tag, &own, sizeof own, seconds,
                         &why);
  free(got);
  *least = s ? 0 : own.number;
  if (s && s != MGRID_NO_MEMORY)
    mgrid_error_reword(&why, MAKER ": %s: among %s: %.600s", spec->name, whom, why.message);
  if (s) mgrid_error_pass(err, &why);
  return s;
}

/* ============================================================== lost members */

/* ncclCommShrink makes the smaller communicator only if the old one has no error, and an error of
** the network stays with a communicator forever. If not all survivors can shrink, or if the shrink
** fails, the old communicator is aborted and a new one is created from a fresh id. Only survivors
** exchange messages. */

typedef enum method { BY_SHRINK, FROM_ID } method;

/* Begin a phase for this attempt by this method. Notices of earlier attempts do not count in it,
** because they name ranks that are known to be lost. */
static void begin_phase(nccl_backend *n, uint32_t attempt, method how) {
  n->attempt = attempt;
  n->carry->phase(n->carrier, UINT64_C(1) << 63 | (uint64_t)attempt << 33 | (uint64_t)how << 32
                                  | (n->base.epoch & UINT32_MAX));
}

static void end_phase(nccl_backend *n) {
  n->attempt = 0;
  n->carry->phase(n->carrier, 2 * n->base.epoch + 1);
}

/* Vote: *all is true if all remaining members pass true. */
static mgrid_outcome vote(nccl_backend *n, const mgrid_comm_spec *spec, uint32_t round, bool mine,
                          bool *all, mgrid_error *err) {
  uint64_t least = 0;
  mgrid_outcome s = least_of(n, spec, round, mine, &least, "the survivors", err);
  *all = !s && least;
  return s;
}

/* Return why this rank cannot shrink the old communicator. NULL: it can. */
static const char *why_not_shrink(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *old,
                                  char text[96]) {
  ncclResult_t state = ncclSuccess, r;
  char version[24];
  int device = n->device;
  if (!n->lib.CommShrink) {
    snprintf(text, 96, MAKER_TITLE " %s has no ncclCommShrink",
             mgrid_nccl_library_text(n->lib.version, version));
    return text;
  }
  if (!old->comm) return "the old communicator was aborted";
  r = n->lib.CommGetAsyncError(old->comm, &state);
  if (r == ncclSuccess) r = state;
  if (r == ncclSuccess) r = n->lib.CommCuDevice(old->comm, &device);
  if (r == ncclSuccess && old->blocking != mgrid_nccl_blocks(n, &spec->options->nccl))
    return "the old communicator and the backend differ in whether they block";
  if (r == ncclSuccess && device == n->device) return NULL;
  if (r == ncclSuccess)
    snprintf(text, 96, "it was on GPU %d, which this rank does not use now", device);
  else
    snprintf(text, 96, "the old communicator has an error: %.60s", n->lib.GetErrorString(r));
  return text;
}

/* Agree on whether all members can begin. mine: the outcome of this rank so far. Nobody waits
** inside NCCL yet, so a rank that has failed need not send notices. Its vote tells the others,
** because a member that is not in this phase yet would ignore a notice. */
static mgrid_outcome all_begin(nccl_backend *n, const mgrid_comm_spec *spec, uint32_t round,
                               mgrid_outcome mine, mgrid_error *err) {
  uint64_t first = 0;
  mgrid_error why = MGRID_ERROR_INIT;
  mgrid_outcome s = least_of(n, spec, round, mine ? (uint64_t)n->base.rank : UINT64_MAX, &first,
                             "the survivors", &why);
  if (!s && first != UINT64_MAX)
    s = mgrid_nccl_gave_up((int64_t)first, &why);
  else if (s && s != MGRID_GAVE_UP)
    mgrid_nccl_tell(n, spec);
  if (s && !mine) mgrid_error_pass(err, &why);
  mgrid_error_clear(&why);
  return mine ? mine : s;
}

/* Agree on whether all members have made the communicator, *made. If not, abort it on all of them,
** together with `old`, from which it was shrunk. mine: the outcome on this rank; after a failure
** this rank notifies the others, which wait for its vote. */
static mgrid_outcome recover_vote_on(nccl_backend *n, const mgrid_comm_spec *spec, uint32_t round,
                                     mgrid_outcome mine, nccl_comm *old, nccl_comm **made,
                                     mgrid_error *err) {
  bool all = false;
  nccl_comm *both[] = { old, *made };
  mgrid_outcome s = mine ? mine : vote(n, spec, round, true, &all, err);
  if (!s) return s;
  if (s != MGRID_GAVE_UP) mgrid_nccl_tell(n, spec);
  /* all members abort now, because an abort waits for the members of this node */
  mgrid_nccl_abort_all(n, 2, both);
  if (*made) mgrid_nccl_abort_one(n, *made);
  *made = NULL;
  return s;
}

/* Call ncclCommShrink if all members can. If a member cannot, or if the call fails, make nothing,
** and put the reason into *why. hinders: why this rank cannot; NULL: it can. A notice may overtake
** the first vote, if another member knew the result earlier and its ncclCommShrink failed. So a
** member that gives up in either vote does the same as the others: it goes on without a shrunk
** communicator. */
static void try_shrink(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *old, int nlost,
                       const int *lost, const char *hinders, nccl_comm **made, mgrid_text *why) {
  bool all = false;
  mgrid_error failed = MGRID_ERROR_INIT;
  mgrid_outcome s = vote(n, spec, 1, !hinders, &all, &failed);
  if (!s && !all) {
    mgrid_text_add(why, "%s",
                   hinders ? hinders : "another rank cannot shrink the old communicator");
    return;
  }
  if (!s) s = mgrid_nccl_derive(n, spec, old, nlost, lost, made, &failed);
  s = recover_vote_on(n, spec, 2, s, old, made, &failed);
  if (s) mgrid_text_add(why, "%s", failed.message);
  mgrid_error_clear(&failed);
}

mgrid_outcome mgrid_nccl_shrink(mgrid_backend *b, const mgrid_comm_spec *spec, void *from,
                                int nlost, const int *lost, void **native, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  nccl_comm *old = from, *made = NULL;
  mgrid_text why = { 0 };
  char text[96];

  begin_phase(n, ++old->shrinks, BY_SHRINK);
  n->lib.cudaSetDevice(n->device);
  mgrid_outcome s = MGRID_OK;
  try_shrink(n, spec, old, nlost, lost, why_not_shrink(n, spec, old, text), &made, &why);
  if (!made) {
    begin_phase(n, old->shrinks, FROM_ID);
    /* all members abort now, because an abort waits for the members of this node */
    mgrid_nccl_abort_all(n, 1, &old);
    mgrid_outcome one = mgrid_nccl_idle(n, mgrid_nccl_patience(n, spec), spec->name, err);
    /* agree before NCCL is called, because a rank cannot give up inside NCCL */
    s = all_begin(n, spec, 3, one, err);
    if (!s) one = mgrid_nccl_create_one(n, spec, &made, err);
    if (!s) s = recover_vote_on(n, spec, 4, one, NULL, &made, err);
  }
  end_phase(n);
  if (!s) {
    mgrid_nccl_keep(n, made);
    *native = made;
    if (why.len)
      mgrid_log(&b->hooks, MGRID_LOG_WARN,
                "%s: created again with %" PRId64 " ranks, from a fresh id, because %s", spec->name,
                spec->size, why.data ? why.data : "ncclCommShrink failed");
    else
      mgrid_log(&b->hooks, MGRID_LOG_INFO, "%s: %" PRId64 " ranks, by ncclCommShrink", spec->name,
                spec->size);
  }
  mgrid_text_free(&why);
  return s;
}

/* Shrink a communicator of an older backend, but only once: NCCL computes the id of the new
** communicator from the old one alone, so a second attempt would get the same id. */
static void remake_one(nccl_backend *n, const mgrid_comm_spec *spec, mgrid_origin *o,
                       const char *hinders, nccl_comm **made) {
  enum { REMAKES = 1 << 28 }; /* higher than any attempt of mgrid_nccl_shrink */
  nccl_comm *old = o->native;
  mgrid_text why = { 0 };
  char text[96];
  if (old->shrinks++) hinders = "it was shrunk before";
  if (!hinders) hinders = why_not_shrink(n, spec, old, text);
  begin_phase(n, REMAKES | (uint32_t)spec->tag, BY_SHRINK);
  try_shrink(n, spec, old, o->nlost, o->lost, hinders, made, &why);
  if (*made) o->agreed = MGRID_SHRUNK;
  if (why.len) snprintf(o->why, sizeof o->why, "%s", why.data ? why.data : "ncclCommShrink failed");
  mgrid_text_free(&why);
}

void mgrid_nccl_remake(mgrid_backend *b, size_t nspecs, const mgrid_comm_spec *spec,
                       mgrid_origin *origin, void **native) {
  nccl_backend *n = (nccl_backend *)b;
  mgrid_error busy = MGRID_ERROR_INIT;
  const char *idle = NULL;
  n->begun = mgrid_now(), n->creates = true; /* one deadline for all */
  n->lib.cudaSetDevice(n->device);
  for (size_t i = 0; i < nspecs; i++) {
    nccl_comm *made = NULL;
    if (origin[i].can != MGRID_SHRUNK) continue;
    if (!idle)
      idle = mgrid_nccl_idle(n, mgrid_nccl_left(n, &spec[i]), spec[i].name, &busy)
                 ? "its GPU is busy"
                 : "";
    remake_one(n, &spec[i], &origin[i], *idle ? idle : NULL, &made);
    if (made) mgrid_nccl_keep(n, made);
    native[i] = made;
  }
  n->creates = false, n->used = true; /* other ranks may come a deadline later */
  end_phase(n);
  mgrid_error_clear(&busy);
}

/* =============================================================== new members */

/* A communicator is kept, grown by ncclCommGrow, or created again. ncclCommGrow leaves the old
** ranks at their positions and appends the new ranks. The first member gets an id from the old
** communicator, and sends it to the new members. The old members need no id. */

enum { ROUND_VOTE = 5, ROUND_ID };

/* ------------------------------------------------------------------------ the vote */

/* Write why this rank can only create the communicator again. If it can grow or keep it, leave
** `why` as it is (""). */
static void why_not_grow(nccl_backend *n, const mgrid_comm_spec *spec, const mgrid_origin *o,
                         char why[96]) {
  const nccl_comm *old = o->native;
  ncclResult_t state = ncclSuccess, r = ncclSuccess;
  int device = n->device;
  mgrid_error e = MGRID_ERROR_INIT;
  char value[NCCL_SETTING];

  if (old && old->comm) r = n->lib.CommGetAsyncError(old->comm, &state);
  if (r == ncclSuccess) r = state;
  if (old && old->comm && r == ncclSuccess) r = n->lib.CommCuDevice(old->comm, &device);
  if (old && (!old->comm || old->lost || old->revoked || old->suspended)) {
    snprintf(why, 96, "the old communicator failed, or is suspended");
  } else if (r != ncclSuccess) {
    snprintf(why, 96, "the old communicator has an error: %.60s", n->lib.GetErrorString(r));
  } else if (device != n->device) {
    snprintf(why, 96, "it was on GPU %d, which this rank does not use now", device);
  } else if (!old && spec->position == 0) {
    snprintf(why, 96, "its first members had no communicator in their order");
  } else if (o->can == MGRID_KEPT && old
             && old->blocking != mgrid_nccl_blocks(n, &spec->options->nccl)) {
    snprintf(why, 96, "the old communicator and the backend differ in whether they block");
  } else if (o->can != MGRID_KEPT || !old) {
    if (MGRID_NCCL_HAS(&n->lib, CommGrow, "it", &e)) snprintf(why, 96, "%.95s", e.message);
    if (mgrid_nccl_setting("NCCL_COMM_ID", value)) snprintf(why, 96, "NCCL_COMM_ID is set");
  }
}

mgrid_outcome mgrid_nccl_growth(mgrid_backend *b, size_t nspecs, const mgrid_comm_spec *spec,
                                mgrid_origin *origin, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  mgrid_outcome s = MGRID_OK;
  uint64_t least;

  n->carry->phase(n->carrier, 2 * b->epoch);
  n->used = true; /* other ranks may be late by a deadline */
  n->lib.cudaSetDevice(n->device);
  for (size_t i = 0; i < nspecs && !s; i++) {
    mgrid_origin *o = &origin[i];
    if (!mgrid_nccl_makes(spec[i].backend)) continue;
    why_not_grow(n, &spec[i], o, o->why);
    mgrid_growth mine = *o->why ? MGRID_ANEW : o->native ? o->can : MGRID_GROWN;
    s = least_of(n, &spec[i], ROUND_VOTE, mine, &least, "its ranks", err);
    if (!s && least > mine)
      s = mgrid_cannot_be(err, "%" PRIu64 " is the least of votes of which one is %d", least,
                          (int)mine);
    o->agreed = s ? MGRID_ANEW : (mgrid_growth)least;
    if (!s && o->agreed == MGRID_ANEW && !*o->why)
      snprintf(o->why, sizeof o->why, "another of its ranks cannot grow it");
  }
  if (s && s != MGRID_GAVE_UP) mgrid_nccl_tell_world(n);
  return s;
}

/* ---------------------------------------------------------------------------- grow */

/* One call; not freed if it does not end, because its thread still uses it. */
typedef struct grow_job {
  ncclComm_t from; /* NULL: this rank is new */
  int size, rank;
  bool has_id;
  ncclUniqueId id;
  nccl_comm *made;
  ncclConfig_t config;
} grow_job;

static ncclResult_t run_id(const nccl_library *lib, void *ud) {
  grow_job *j = ud;
  return lib->CommGetUniqueId(j->from, &j->id);
}

static ncclResult_t run_grow(const nccl_library *lib, void *ud) {
  grow_job *j = ud;
  return lib->CommGrow(j->from, j->size, j->has_id ? &j->id : NULL, j->from ? -1 : j->rank,
                       &j->made->comm, &j->config);
}

typedef struct parcel {
  nccl_header header;
  ncclUniqueId id;
} parcel;

/* Send the id from the first member to the new members. */
static mgrid_outcome pass_id(nccl_backend *n, const mgrid_comm_spec *spec, grow_job *j, bool *keep,
                             mgrid_error *err) {
  parcel p = { mgrid_nccl_header(n, ROUND_ID), j->id }, *got;
  double seconds = mgrid_nccl_patience(n, spec);
  size_t bytes = mgrid_nccl_message(n, spec); /* not less than a parcel has */
  int had = 0;
  mgrid_outcome s = MGRID_OK;

  if (spec->position > 0 && j->from) return MGRID_OK;
  j->has_id = true;
  if (spec->position > 0) {
    got = malloc(bytes);
    if (!got) return mgrid_oom(err);
    s = mgrid_nccl_receive(n, spec->ranks[0], spec->tag, p.header, got, bytes, seconds, err);
    if (!s) j->id = got->id;
    free(got);
    return s;
  }
  s = mgrid_nccl_watch(n, seconds, true, run_id, j, "ncclCommGetUniqueId", spec->name, keep, err);
  if (s) return s;
  p.id = j->id;
  n->lib.CommCount(j->from, &had);
  for (int64_t i = had; i < spec->size && !s; i++)
    s = n->carry->send(n->carrier, spec->ranks[i], spec->tag, &p, sizeof p, seconds, err);
  return s;
}

mgrid_outcome mgrid_nccl_grow(mgrid_backend *b, const mgrid_comm_spec *spec,
                              const mgrid_origin *origin, void **native, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  nccl_comm *old = origin->native;
  grow_job *j = calloc(1, sizeof *j);
  double seconds = mgrid_nccl_patience(n, spec), until = mgrid_now() + seconds;
  bool keep = false;
  mgrid_outcome s = j ? mgrid_nccl_new(n, spec, &j->made, &j->config, err) : mgrid_oom(err);

  if (!s) {
    j->from = old ? old->comm : NULL;
    j->size = (int)spec->size, j->rank = (int)spec->position;
    s = mgrid_nccl_idle(n, seconds, spec->name, err);
  }
  if (!s) s = pass_id(n, spec, j, &keep, err);
  if (!s)
    s = mgrid_nccl_watch(n, until - mgrid_now(), true, run_grow, j, "ncclCommGrow", spec->name,
                         &keep, err);
  if (keep && old) old->comm = NULL, old->stuck = true; /* the thread still uses it */
  if (keep && j->made) j->made->stuck = true;
  if (!s)
    s = mgrid_nccl_wait(n, j->made, until - mgrid_now(), true, "ncclCommGrow", spec->name, err);
  if (!s) s = mgrid_nccl_finish(n, spec, j->made, err);
  if (!s) s = mgrid_nccl_register_windows(n, spec, j->made, err);
  if (s) s = mgrid_nccl_whose(n, s);
  if (s && s != MGRID_GAVE_UP) mgrid_nccl_tell_world(n);
  if (!s) {
    mgrid_nccl_keep(n, j->made);
    *native = j->made;
  } else if (j && j->made && !keep) {
    if (spec->position == 0) n->leaks++; /* the thread of NCCL that serves the id stays */
    mgrid_nccl_abort_one(n, j->made);
  }
  if (!keep) free(j);
  return s;
}
