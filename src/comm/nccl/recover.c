/* SPDX-License-Identifier: MIT
**
** recover.c - the communicator of a group without its lost members. ncclCommShrink makes it from the old one only if
** that has no error: an error of the network stays with a communicator forever. So the survivors vote whether all of them
** can shrink. If not, or if the shrink fails, the old one is aborted and a new one is created from a fresh id. Messages go
** only between survivors.
*/
#include "comm/nccl/nccl.h"

#include <inttypes.h>

/* Ignore notices of earlier attempts: they name ranks that are known to be lost. Only those of this attempt and way count. */
typedef enum way { BY_SHRINK, FROM_ID } way;

static void begin_phase(nccl_backend *n, uint32_t attempt, way w) {
  n->attempt = attempt;
  n->carry->phase(n->carrier,
                  UINT64_C(1) << 63 | (uint64_t)attempt << 33 | (uint64_t)w << 32 | (n->base.epoch & UINT32_MAX));
}

static void end_phase(nccl_backend *n) {
  n->attempt = 0;
  n->carry->phase(n->carrier, 2 * n->base.epoch + 1);
}

/* Vote whether all remaining members say yes. */
static mgrid_outcome vote(nccl_backend *n, const mgrid_comm_spec *spec, uint32_t round, bool mine, bool *all,
                          mgrid_error *err) {
  uint64_t      least = 0;
  mgrid_outcome s = mgrid_nccl_vote(n, spec, round, mine, &least, "the survivors", err);
  *all = !s && least;
  return s;
}

/* Return why this rank cannot shrink the old communicator; NULL: it can. */
static const char *hindrance(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *old, char text[96]) {
  ncclResult_t state = ncclSuccess, r;
  char         version[24];
  int          device = n->device;
  if (!n->lib.CommShrink) {
    snprintf(text, 96, MAKER_TITLE " %s has no ncclCommShrink", mgrid_nccl_library_text(n->lib.version, version));
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

/* Agree on whether all members can begin (mine). Nobody waits in NCCL, so one that cannot votes: its notice could come to a member
** that is not in this phase yet, and be ignored there. */
static mgrid_outcome all_begin(nccl_backend *n, const mgrid_comm_spec *spec, uint32_t round, mgrid_outcome mine,
                               mgrid_error *err) {
  uint64_t      first = 0;
  mgrid_error   why = MGRID_ERROR_INIT;
  mgrid_outcome s =
      mgrid_nccl_vote(n, spec, round, mine ? (uint64_t)n->base.rank : UINT64_MAX, &first, "the survivors", &why);
  if (!s && first != UINT64_MAX)
    s = mgrid_nccl_gave_up((int64_t)first, &why);
  else if (s && s != MGRID_GAVE_UP)
    mgrid_nccl_tell(n, spec);
  if (s && !mine) mgrid_error_pass(err, &why);
  mgrid_error_clear(&why);
  return mine ? mine : s;
}

/* Agree on whether all members have *made. If not, abort it on all of them, with `old` from which it was shrunk. A member that
** failed notifies the others, which wait for its vote. */
static mgrid_outcome settle(nccl_backend *n, const mgrid_comm_spec *spec, uint32_t round, mgrid_outcome mine,
                            nccl_comm *old, nccl_comm **made, mgrid_error *err) {
  bool          all = false;
  nccl_comm    *both[] = { old, *made };
  mgrid_outcome s = mine ? mine : vote(n, spec, round, true, &all, err);
  if (!s) return s;
  if (s != MGRID_GAVE_UP) mgrid_nccl_tell(n, spec);
  mgrid_nccl_abort_all(n, 2, both); /* on all members now: an abort waits for those of this machine */
  if (*made) mgrid_nccl_abort_one(n, *made);
  *made = NULL;
  return s;
}

/* Call ncclCommShrink if all members can. If not, or if it fails, make nothing, and put the reason in *why. `hinders`: why this
** rank cannot. A notice may overtake the first vote: another member then knew its result, called ncclCommShrink, and that failed.
** So a member that gives up in either vote goes on like all others: without a shrunk communicator. */
static void try_shrink(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *old, int nlost, const int *lost,
                       const char *hinders, nccl_comm **made, mgrid_text *why) {
  bool          all = false;
  mgrid_error   failed = MGRID_ERROR_INIT;
  mgrid_outcome s = vote(n, spec, 1, !hinders, &all, &failed);
  if (!s && !all) {
    mgrid_text_add(why, "%s", hinders ? hinders : "another rank cannot shrink the old communicator");
    return;
  }
  if (!s) s = mgrid_nccl_derive(n, spec, old, nlost, lost, made, &failed);
  s = settle(n, spec, 2, s, old, made, &failed);
  if (s) mgrid_text_add(why, "%s", failed.message);
  mgrid_error_clear(&failed);
}

mgrid_outcome mgrid_nccl_shrink(mgrid_backend *b, const mgrid_comm_spec *spec, void *from, int nlost, const int *lost,
                                void **native, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  nccl_comm    *old = from, *made = NULL;
  mgrid_text    why = { 0 };
  char          text[96];
  begin_phase(n, ++old->shrinks, BY_SHRINK);
  n->lib.cudaSetDevice(n->device);
  mgrid_outcome s = MGRID_OK;
  try_shrink(n, spec, old, nlost, lost, hindrance(n, spec, old, text), &made, &why);
  if (!made) {
    begin_phase(n, old->shrinks, FROM_ID);
    mgrid_nccl_abort_all(n, 1, &old); /* on all members now: an abort waits for those of this machine */
    mgrid_outcome one = mgrid_nccl_idle(n, mgrid_nccl_patience(n, spec), spec->name, err);
    s = all_begin(n, spec, 3, one, err); /* before NCCL is called, where a rank cannot give up */
    if (!s) one = mgrid_nccl_create_one(n, spec, &made, err);
    if (!s) s = settle(n, spec, 4, one, NULL, &made, err);
  }
  end_phase(n);
  if (!s) {
    mgrid_nccl_keep(n, made);
    *native = made;
    if (why.len)
      mgrid_log(&b->hooks, MGRID_LOG_WARN, "%s: created again with %" PRId64 " ranks, from a fresh id, because %s",
                spec->name, spec->size, why.data ? why.data : "ncclCommShrink failed");
    else
      mgrid_log(&b->hooks, MGRID_LOG_INFO, "%s: %" PRId64 " ranks, by ncclCommShrink", spec->name, spec->size);
  }
  mgrid_text_free(&why);
  return s;
}

/* Shrink a communicator of an older backend. Do so once: NCCL computes the number of the new one from the old one alone, so a
** second attempt would have the number of the first. */
static void remake_one(nccl_backend *n, const mgrid_comm_spec *spec, mgrid_origin *o, const char *hinders,
                       nccl_comm **made) {
  enum { REMAKES = 1 << 28 }; /* above all attempts of mgrid_nccl_shrink */
  nccl_comm *old = o->native;
  mgrid_text why = { 0 };
  char       text[96];
  if (old->shrinks++) hinders = "it was shrunk before";
  if (!hinders) hinders = hindrance(n, spec, old, text);
  begin_phase(n, REMAKES | (uint32_t)spec->tag, BY_SHRINK);
  try_shrink(n, spec, old, o->nlost, o->lost, hinders, made, &why);
  if (*made) o->agreed = MGRID_SHRUNK;
  if (why.len) snprintf(o->why, sizeof o->why, "%s", why.data ? why.data : "ncclCommShrink failed");
  mgrid_text_free(&why);
}

void mgrid_nccl_remake(mgrid_backend *b, size_t nspecs, const mgrid_comm_spec *spec, mgrid_origin *origin,
                       void **native) {
  nccl_backend *n = (nccl_backend *)b;
  mgrid_error   busy = MGRID_ERROR_INIT;
  const char   *idle = NULL;
  n->begun = mgrid_now(), n->creates = true; /* one deadline for all of them */
  n->lib.cudaSetDevice(n->device);
  for (size_t i = 0; i < nspecs; i++) {
    nccl_comm *made = NULL;
    if (origin[i].can != MGRID_SHRUNK) continue;
    if (!idle) idle = mgrid_nccl_idle(n, mgrid_nccl_left(n, &spec[i]), spec[i].name, &busy) ? "its GPU is busy" : "";
    remake_one(n, &spec[i], &origin[i], *idle ? idle : NULL, &made);
    if (made) mgrid_nccl_keep(n, made);
    native[i] = made;
  }
  n->creates = false, n->used = true; /* other ranks may come a deadline later */
  end_phase(n);
  mgrid_error_clear(&busy);
}

/* ------------------------------------------------------------------ the job goes on
** The carrier survives. NCCL's communicators are made again over the carrier of the survivors. */

static mgrid_status able(const mgrid_backend *b, mgrid_error *err) {
  const nccl_backend *n = (const nccl_backend *)b;
  if (n->options.parent)
    return mgrid_fail(err, MGRID_UNSUPPORTED,
                      MAKER ": communicators that are split from one of the host end with its first lost rank");
  const mgrid_survival_ops *survival = n->carrier->ops->survival;
  if (survival) return survival->able(n->carrier, err);
  return mgrid_fail(err, MGRID_UNSUPPORTED,
                    MAKER
                    ": the carrier %s cannot find the lost ranks; a host that can opens a backend of the survivors, "
                    "and passes it with the list (mgrid_recover_options)",
                    n->carrier->kind->name);
}

static void interrupt(mgrid_backend *b) {
  mgrid_backend *carrier = ((nccl_backend *)b)->carrier;
  carrier->ops->survival->interrupt(carrier);
}

static bool hurt(mgrid_backend *b) {
  mgrid_backend *carrier = ((nccl_backend *)b)->carrier;
  return carrier->ops->survival->hurt(carrier);
}

static mgrid_status settle_all(mgrid_backend *b, uint64_t *mine, double seconds, mgrid_error *err) {
  mgrid_backend *carrier = ((nccl_backend *)b)->carrier;
  return carrier->ops->survival->settle(carrier, mine, seconds, err);
}

static mgrid_status find(mgrid_backend *b, bool *lost, mgrid_error *err) {
  mgrid_backend *carrier = ((nccl_backend *)b)->carrier;
  return carrier->ops->survival->find(carrier, lost, err);
}

/* A rank keeps its GPU, even if its number on the machine changes. */
static mgrid_backend *rest_of(mgrid_backend *b, int64_t rank, mgrid_error *err) {
  nccl_backend      *n = (nccl_backend *)b;
  mgrid_nccl_options o = n->options;
  mgrid_backend     *carrier = n->carrier->ops->survival->rest(n->carrier, rank, err);
  if (!carrier) return NULL;
  o.devices = &n->device, o.ndevices = 1;
  mgrid_backend *rest = mgrid_nccl_over(carrier, &o, err);
  if (!rest) carrier->ops->survival->interrupt(carrier);
  if (rest) rest->hooks = b->hooks, ((nccl_backend *)rest)->leaks = n->leaks; /* leaks are counted for the process */
  if (--carrier->users == 0) carrier->ops->close(carrier);
  return rest;
}

const mgrid_survival_ops mgrid_nccl_survival = {
  .able = able, .interrupt = interrupt, .hurt = hurt, .settle = settle_all, .find = find, .rest = rest_of
};

void mgrid_nccl_lose(mgrid_backend *b, void *native) {
  nccl_comm *c = mgrid_nccl_find((nccl_backend *)b, native);
  if (c) c->lost = true;
}
