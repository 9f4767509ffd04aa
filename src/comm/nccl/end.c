/* SPDX-License-Identifier: MIT
**
** end.c - the end of communicators. Destroying a communicator that was used is a call over its
** members: two of them destroyed in opposite order on two ranks wait for each other for ever. So
** all of a state go together: streams first, then every one is finalized, then all are destroyed in
** NCCL groups, the non-blocking ones and the blocking ones. What failed is aborted, which waits for
** nobody.
*/
#include "comm/nccl/nccl.h"

#include <inttypes.h>
#include <stdlib.h>

nccl_comm *mgrid_nccl_find(nccl_backend *n, const void *native) {
  nccl_comm *c = n->made;
  while (c && c != native) c = c->next;
  return c;
}

static void forget(nccl_backend *n, nccl_comm *c) {
  nccl_comm **at = &n->made;
  while (*at && *at != c) at = &(*at)->next;
  if (*at) *at = c->next;
  n->bytes -= c->bytes;
  mgrid_nccl_drop(c);
}

mgrid_status mgrid_nccl_settle(nccl_backend *n, nccl_comm *c, double seconds, bool listen, const char *call,
                               const char *name, mgrid_error *err) {
  double begun = mgrid_now();
  for (int look = 0;; look++) {
    int64_t      who = listen ? n->host->ops->heard(n->host) : -1;
    ncclResult_t state = ncclSuccess, r = n->lib.CommGetAsyncError(c->comm, &state);
    if (r != ncclSuccess || (state != ncclSuccess && state != ncclInProgress))
      return mgrid_nccl_failed(n, err, r != ncclSuccess ? r : state, call, name);
    if (state == ncclSuccess) return MGRID_OK;
    if (who >= 0) {
      mgrid_fail(err, MGRID_BACKEND, "nccl: rank %" PRId64 " gave up", who);
      return MGRID_GAVE_UP;
    }
    if (mgrid_now() - begun > seconds)
      return mgrid_fail(err, MGRID_BACKEND, "nccl: %s for %s did not end within %.3g seconds", call, name, seconds);
    mgrid_pause(look);
  }
}

/* The stream ran dry before that time. */
static bool drained(nccl_backend *n, nccl_comm *c, double until) {
  for (int look = 0;; look++) {
    cudaError_t e = n->lib.cudaStreamQuery(c->stream);
    if (e != cudaErrorNotReady) return e == cudaSuccess;
    if (mgrid_now() > until) return false;
    mgrid_pause(look);
  }
}

typedef struct finalize_job {
  ncclComm_t comm;
} finalize_job;

static ncclResult_t run_finalize(const nccl_library *lib, void *ud) {
  return lib->CommFinalize(((finalize_job *)ud)->comm);
}

/* Begin the end of one communicator, within the time; false: it has to be aborted. One that blocks
** ends here, others go on by themselves. */
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
    c->comm = NULL; /* the thread is in it: not even abort may be called */
  else
    free(job);
  return fine;
}

static void split(nccl_backend *n, size_t count, void **native, void (*on_host)(mgrid_backend *, size_t, void **)) {
  for (size_t i = 0; i < count; i++) {
    if (!native[i] || mgrid_nccl_find(n, native[i])) continue;
    on_host(n->host, 1, &native[i]);
    native[i] = NULL;
  }
}

/* All that are finalized, of one kind. */
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
  split(n, count, native, n->host->ops->destroy);
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
  for (size_t i = 0; i < count; i++) { /* every one has begun: now they can end in any order */
    nccl_comm *c = native[i];
    double     left = until - mgrid_now();
    if (!c || !c->comm) continue;
    if (mgrid_nccl_settle(n, c, left > 0.1 ? left : 0.1, false, "ncclCommFinalize", c->name, NULL) == MGRID_OK)
      continue;
    n->lib.CommAbort(c->comm);
    c->comm = NULL;
  }
  destroy_group(n, count, native, false);
  destroy_group(n, count, native, true);
  for (size_t i = 0; i < count; i++)
    if (native[i]) forget(n, native[i]);
}

void mgrid_nccl_abort(mgrid_backend *b, size_t count, void **native) {
  nccl_backend *n = (nccl_backend *)b;
  split(n, count, native, n->host->ops->destroy);
  for (size_t i = 0; i < count; i++) {
    nccl_comm *c = native[i];
    if (!c) continue;
    if (c->comm) n->lib.CommAbort(c->comm);
    if (c->stream) n->lib.cudaStreamDestroy(c->stream);
    forget(n, c);
  }
}
