/* SPDX-License-Identifier: MIT
**
** watch.c - a deadline for calls that block: they run in a thread, and the caller waits for it. A call whose deadline
** has passed cannot be ended, so the memory that it uses is never freed; its thread ends if the call does.
*/
#include "comm/nccl/nccl.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { RUNS, DONE, LEFT };
#define GRACE_SECONDS 0.2

typedef struct watch {
  nccl_library lib;
  int          device;
  ncclResult_t (*call)(const nccl_library *lib, void *ud);
  void        *ud;
  ncclResult_t result;
  atomic_int   state; /* the thread sets DONE, the waiting rank sets LEFT: the later one frees */
} watch;

static void *run(void *ud) {
  watch *w = ud;
  w->result = w->lib.cudaSetDevice(w->device) == cudaSuccess ? w->call(&w->lib, w->ud) : ncclUnhandledCudaError;
  if (atomic_exchange(&w->state, DONE) == LEFT) free(w);
  return NULL;
}

typedef struct watching {
  watch        *w;
  nccl_backend *n; /* NULL: only the end of the call counts */
  const char   *name;
  mgrid_error  *err;
} watching;

/* mgrid_look */
static mgrid_outcome has_returned(void *ud) {
  const watching *x = ud;
  if (atomic_load(&x->w->state) == DONE) return MGRID_OK;
  return x->n && mgrid_nccl_lost(x->n, x->name, x->err) ? MGRID_LOST_RANK : MGRID_NOT_YET;
}

mgrid_outcome mgrid_nccl_watch(nccl_backend *n, double seconds, bool listen,
                               ncclResult_t (*call)(const nccl_library *lib, void *ud), void *ud, const char *what,
                               const char *name, bool *left_behind, mgrid_error *err) {
  pthread_t thread;
  watch    *w = calloc(1, sizeof *w);
  *left_behind = false;
  if (!w) return mgrid_oom(err);
  w->lib = n->lib, w->device = n->device, w->call = call, w->ud = ud;
  if (pthread_create(&thread, NULL, run, w) != 0) {
    char why[MGRID_ALLOWED];
    free(w);
    return mgrid_fail(err, MGRID_BACKEND, MAKER ": no thread for %s of %s%s", what, name,
                      mgrid_allowed(MGRID_SCARCE_THREADS, why));
  }
  int64_t       who;
  watching      x = { w, listen ? n : NULL, name, err };
  mgrid_outcome outcome = mgrid_wait(has_returned, &x, mgrid_now() + seconds, listen ? n->carrier : NULL, &who);
  x.n = NULL;
  if (outcome == MGRID_GAVE_UP
      || outcome == MGRID_LOST_RANK) /* if the call is about to return, do not leave it behind */
    mgrid_wait(has_returned, &x, mgrid_now() + GRACE_SECONDS, NULL, NULL);
  if (outcome != MGRID_OK) pthread_detach(thread);
  if (outcome != MGRID_OK && atomic_exchange(&w->state, LEFT) == RUNS) {
    *left_behind = true;
    n->leaks++;
    if (outcome == MGRID_GAVE_UP) return mgrid_nccl_gave_up(who, err);
    if (outcome == MGRID_LOST_RANK) return outcome;
    return mgrid_fail(err, MGRID_TIMED_OUT,
                      MAKER ": %s of %s, which blocks, did not end within %.3g seconds; that cannot be undone, end "
                            "the process",
                      what, name, seconds);
  }
  if (outcome == MGRID_OK) pthread_join(thread, NULL);
  ncclResult_t r = w->result;
  free(w);
  if (outcome == MGRID_GAVE_UP) return mgrid_nccl_gave_up(who, err); /* the notice arrives only once */
  if (outcome == MGRID_LOST_RANK) return outcome;
  return r == ncclSuccess || r == ncclInProgress ? MGRID_OK : mgrid_nccl_failed(n, err, r, what, name);
}

/* mgrid_look */
static mgrid_outcome never(void *ud) {
  (void)ud;
  return MGRID_NOT_YET;
}

/* A creation may have failed here because another rank gave up and its notice has not arrived yet. So a rank that fails
** listens for a moment before it notifies others. If no notice arrives, it is the one that failed first. */
mgrid_outcome mgrid_nccl_whose(nccl_backend *n, mgrid_outcome s) {
  const double listen = 0.1;
  int64_t      who;
  if (s / 100 != MGRID_BACKEND / 100) return s;
  return mgrid_wait(never, NULL, mgrid_now() + listen, n->carrier, &who) == MGRID_GAVE_UP ? MGRID_GAVE_UP : s;
}
