/* SPDX-License-Identifier: MIT
**
** end.c - destroy communicators. Destroying a communicator that was used is a call over its members,
** so two of them destroyed in opposite order on two ranks wait for each other for ever. Therefore all
** of a state are ended together: wait for the streams, finalize every one, then destroy all in two NCCL
** groups, the non-blocking ones and the blocking ones. What failed is aborted, which waits for no rank.
*/
#include "comm/nccl/nccl.h"

#include <stdlib.h>

typedef struct stream_look {
  nccl_backend *n;
  nccl_comm    *comm;
} stream_look;

/* mgrid_look */
static mgrid_outcome is_dry(void *ud) {
  const stream_look *l = ud;
  cudaError_t        e = l->n->lib.cudaStreamQuery(l->comm->stream);
  return e == cudaErrorNotReady ? MGRID_NOT_YET : e == cudaSuccess ? MGRID_OK : MGRID_BACKEND;
}

/* Wait until all calls in the stream have ended; false: they failed, or not by the time `until`. */
static bool drained(nccl_backend *n, nccl_comm *c, double until) {
  stream_look l = { n, c };
  return mgrid_wait(is_dry, &l, until, NULL, NULL) == MGRID_OK;
}

typedef struct finalize_job {
  ncclComm_t comm;
} finalize_job;

static ncclResult_t run_finalize(const nccl_library *lib, void *ud) {
  return lib->CommFinalize(((finalize_job *)ud)->comm);
}

/* Finalize one communicator; false: it has to be aborted. For a blocking one this waits, until the time
** `until`; for the others it only begins. */
static bool finalize(nccl_backend *n, nccl_comm *c, double until) {
  double left = until - mgrid_now();
  if (!c->blocking) {
    ncclResult_t r = n->lib.CommFinalize(c->comm);
    return r == ncclSuccess || r == ncclInProgress;
  }
  bool          left_behind;
  finalize_job *job = malloc(sizeof *job);
  if (!job) return false;
  job->comm = c->comm;
  bool fine = mgrid_nccl_watch(n, left > 0.1 ? left : 0.1, false, run_finalize, job, "ncclCommFinalize", c->name,
                               &left_behind, NULL)
              == MGRID_OK;
  if (left_behind)
    c->comm = NULL; /* the thread still uses it: not even abort may be called */
  else
    free(job);
  return fine;
}

/* Destroy those that the carrier made, and leave those of NCCL in the list. */
static void destroy_carried(nccl_backend *n, size_t count, void **native) {
  for (size_t i = 0; i < count; i++) {
    if (!native[i] || mgrid_nccl_find(n, native[i])) continue;
    n->carrier->ops->destroy(n->carrier, 1, &native[i]);
    native[i] = NULL;
  }
}

/* Destroy all finalized ones, blocking or not. */
static void destroy_group(nccl_backend *n, size_t count, void **native, bool blocking) {
  n->lib.GroupStart();
  for (size_t i = 0; i < count; i++) {
    nccl_comm *c = native[i];
    if (!c || !c->comm || c->blocking != blocking) continue;
    ncclResult_t r = n->lib.CommDestroy(c->comm);
    if (r != ncclSuccess && r != ncclInProgress) n->lib.CommAbort(c->comm);
    c->comm = NULL;
  }
  n->lib.GroupEnd();
}

void mgrid_nccl_destroy(mgrid_backend *b, size_t count, void **native) {
  nccl_backend *n = (nccl_backend *)b;
  if (n->broken) {
    mgrid_nccl_abort(b, count, native);
    return;
  }
  destroy_carried(n, count, native);
  n->lib.cudaSetDevice(n->device);
  double until = mgrid_now() + n->options.timeout; /* for all of them */
  for (size_t i = 0; i < count; i++) {
    nccl_comm *c = native[i];
    if (!c) continue;
    bool clean = !c->lost && drained(n, c, until);
    n->lib.cudaStreamDestroy(c->stream);
    c->stream = NULL;
    if (!c->comm) continue; /* aborted by a failure of use */
    if (clean && finalize(n, c, until)) continue;
    if (c->comm) n->lib.CommAbort(c->comm);
    c->comm = NULL;
  }
  for (size_t i = 0; i < count; i++) { /* finalize has begun for all: they may end in any order */
    nccl_comm *c = native[i];
    double     left = until - mgrid_now();
    if (!c || !c->comm) continue;
    if (mgrid_nccl_wait(n, c, left > 0.1 ? left : 0.1, false, "ncclCommFinalize", c->name, NULL) == MGRID_OK) continue;
    n->lib.CommAbort(c->comm);
    c->comm = NULL;
  }
  destroy_group(n, count, native, false);
  destroy_group(n, count, native, true);
  for (size_t i = 0; i < count; i++)
    if (native[i]) mgrid_nccl_forget(n, native[i]);
}

void mgrid_nccl_abort(mgrid_backend *b, size_t count, void **native) {
  nccl_backend *n = (nccl_backend *)b;
  destroy_carried(n, count, native);
  for (size_t i = 0; i < count; i++) {
    nccl_comm *c = native[i];
    if (!c) continue;
    if (c->comm) n->lib.CommAbort(c->comm);
    if (c->stream) n->lib.cudaStreamDestroy(c->stream);
    mgrid_nccl_forget(n, c);
  }
}
