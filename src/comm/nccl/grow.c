/* SPDX-License-Identifier: MIT
**
** grow.c - communicators in a larger world. The members of each group vote whether its communicator is kept, grown by
** ncclCommGrow, or created again. ncclCommGrow leaves the old ranks their positions and appends new ones. The first
** member gets an id from the old communicator and sends it to the new members; the old ones learn it inside NCCL.
*/
#include "comm/nccl/nccl.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ROUND_VOTE = 5, ROUND_ID };

/* ------------------------------------------------------------------------ the vote */

/* Write why this rank can only create it again; "": it can do better. */
static void hindrance(nccl_backend *n, const mgrid_comm_spec *spec, const mgrid_origin *o, char why[96]) {
  const nccl_comm *old = o->native;
  ncclResult_t     state = ncclSuccess, r = ncclSuccess;
  int              device = n->device;
  mgrid_error      e = MGRID_ERROR_INIT;
  char             value[NCCL_SETTING];
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
  } else if (o->can == MGRID_KEPT && old && old->blocking != mgrid_nccl_blocks(n, &spec->options->nccl)) {
    snprintf(why, 96, "the old communicator and the backend differ in whether they block");
  } else if (o->can != MGRID_KEPT || !old) {
    if (MGRID_NCCL_HAS(&n->lib, CommGrow, "it", &e)) snprintf(why, 96, "%.95s", e.message);
    if (mgrid_nccl_setting("NCCL_COMM_ID", value)) snprintf(why, 96, "NCCL_COMM_ID is set");
  }
}

mgrid_outcome mgrid_nccl_growth(mgrid_backend *b, size_t nspecs, const mgrid_comm_spec *spec, mgrid_origin *origin,
                                mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  mgrid_outcome s = MGRID_OK;
  uint64_t      least;
  n->carry->phase(n->carrier, 2 * b->epoch);
  n->used = true; /* other ranks may be late by a deadline */
  n->lib.cudaSetDevice(n->device);
  for (size_t i = 0; i < nspecs && !s; i++) {
    mgrid_origin *o = &origin[i];
    if (!mgrid_nccl_makes(spec[i].backend)) continue;
    hindrance(n, &spec[i], o, o->why);
    mgrid_growth mine = *o->why ? MGRID_ANEW : o->native ? o->can : MGRID_GROWN;
    s = mgrid_nccl_vote(n, &spec[i], ROUND_VOTE, mine, &least, "its ranks", err);
    if (!s && least > mine)
      s = mgrid_cannot_be(err, "%" PRIu64 " is the least of votes of which one is %d", least, (int)mine);
    o->agreed = s ? MGRID_ANEW : (mgrid_growth)least;
    if (!s && o->agreed == MGRID_ANEW && !*o->why)
      snprintf(o->why, sizeof o->why, "another of its ranks cannot grow it");
  }
  if (s && s != MGRID_GAVE_UP) mgrid_nccl_tell_world(n);
  return s;
}

/* ---------------------------------------------------------------------------- grow */

typedef struct grow_job { /* one call; leaked if it does not end, because its thread still uses it */
  ncclComm_t   from;      /* NULL: this rank is new */
  int          size, rank;
  bool         has_id;
  ncclUniqueId id;
  nccl_comm   *made;
  ncclConfig_t config;
} grow_job;

static ncclResult_t run_id(const nccl_library *lib, void *ud) {
  grow_job *j = ud;
  return lib->CommGetUniqueId(j->from, &j->id);
}

static ncclResult_t run_grow(const nccl_library *lib, void *ud) {
  grow_job *j = ud;
  return lib->CommGrow(j->from, j->size, j->has_id ? &j->id : NULL, j->from ? -1 : j->rank, &j->made->comm, &j->config);
}

typedef struct parcel {
  nccl_header  header;
  ncclUniqueId id;
} parcel;

/* Send the id from the first member to the new members. */
static mgrid_outcome pass_id(nccl_backend *n, const mgrid_comm_spec *spec, grow_job *j, bool *keep, mgrid_error *err) {
  parcel        p = { mgrid_nccl_header(n, ROUND_ID), j->id }, *got;
  double        seconds = mgrid_nccl_patience(n, spec);
  size_t        bytes = mgrid_nccl_message(n, spec);
  int           had = 0;
  mgrid_outcome s = MGRID_OK;
  if (spec->position > 0 && j->from) return MGRID_OK;
  j->has_id = true;
  if (spec->position > 0) {
    got = malloc(bytes > sizeof *got ? bytes : sizeof *got);
    if (!got) return mgrid_oom(err);
    s = mgrid_nccl_receive(n, spec->ranks[0], spec->tag, p.header, got, bytes > sizeof *got ? bytes : sizeof *got,
                           seconds, err);
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

mgrid_outcome mgrid_nccl_grow(mgrid_backend *b, const mgrid_comm_spec *spec, const mgrid_origin *origin, void **native,
                              mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  nccl_comm    *old = origin->native;
  grow_job     *j = calloc(1, sizeof *j);
  double        seconds = mgrid_nccl_patience(n, spec), until = mgrid_now() + seconds;
  bool          keep = false;
  mgrid_outcome s = j ? mgrid_nccl_new(n, spec, &j->made, &j->config, err) : mgrid_oom(err);
  if (!s) {
    j->from = old ? old->comm : NULL;
    j->size = (int)spec->size, j->rank = (int)spec->position;
    s = mgrid_nccl_idle(n, seconds, spec->name, err);
  }
  if (!s) s = pass_id(n, spec, j, &keep, err);
  if (!s) s = mgrid_nccl_watch(n, until - mgrid_now(), true, run_grow, j, "ncclCommGrow", spec->name, &keep, err);
  if (keep && old) old->comm = NULL, old->stuck = true; /* the thread still uses it */
  if (keep && j->made) j->made->stuck = true;
  if (!s) s = mgrid_nccl_wait(n, j->made, until - mgrid_now(), true, "ncclCommGrow", spec->name, err);
  if (!s) s = mgrid_nccl_finish(n, spec, j->made, err);
  if (!s) s = mgrid_nccl_furnish(n, spec, j->made, err);
  if (s) s = mgrid_nccl_whose(n, s);
  if (s && s != MGRID_GAVE_UP) mgrid_nccl_tell_world(n);
  if (!s) {
    mgrid_nccl_keep(n, j->made);
    *native = j->made;
  } else if (j && j->made && !keep) {
    if (spec->position == 0) n->leaks++; /* the thread that serves the id */
    mgrid_nccl_abort_one(n, j->made);
  }
  if (!keep) free(j);
  return s;
}

void mgrid_nccl_adopt(mgrid_backend *b, mgrid_backend *from, void *native) {
  nccl_backend *n = (nccl_backend *)b, *was = (nccl_backend *)from;
  nccl_comm    *c = native, **at = &was->made;
  while (*at && *at != c) at = &(*at)->next;
  if (*at) *at = c->next;
  was->bytes -= c->bytes;
  mgrid_nccl_keep(n, c);
}
