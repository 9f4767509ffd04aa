/* SPDX-License-Identifier: MIT
**
** watch.c - calls of NCCL that block, with a deadline after all: they run in a thread, and we look
** at that. A call whose time is over cannot be ended; its thread is left behind with all it has.
*/
#include "comm/nccl/nccl.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct watch {
  nccl_library lib;
  int          device;
  ncclResult_t (*call)(const nccl_library *lib, void *ud);
  void        *ud;
  ncclResult_t result;
  atomic_int   done;
} watch;

static void *run(void *ud) {
  watch *w = ud;
  w->result = w->lib.cudaSetDevice(w->device) == cudaSuccess ? w->call(&w->lib, w->ud) : ncclUnhandledCudaError;
  atomic_store(&w->done, 1);
  return NULL;
}

mgrid_status mgrid_nccl_watch(nccl_backend *n, double seconds, bool listen,
                              ncclResult_t (*call)(const nccl_library *lib, void *ud), void *ud, const char *what,
                              const char *name, bool *left_behind, mgrid_error *err) {
  pthread_t thread;
  watch    *w = calloc(1, sizeof *w);
  *left_behind = false;
  if (!w) return mgrid_oom(err);
  w->lib = n->lib, w->device = n->device, w->call = call, w->ud = ud;
  if (pthread_create(&thread, NULL, run, w) != 0) {
    free(w);
    return mgrid_fail(err, MGRID_BACKEND, "nccl: no thread for %s of %s", what, name);
  }
  double  begun = mgrid_now();
  int64_t who = -1;
  for (int look = 0; !atomic_load(&w->done) && who < 0 && mgrid_now() - begun < seconds; look++) {
    if (listen) who = n->host->ops->heard(n->host);
    mgrid_pause(look);
  }
  if (!atomic_load(&w->done)) {
    *left_behind = true;
    pthread_detach(thread);
    if (who >= 0)
      mgrid_fail(err, MGRID_BACKEND, "nccl: rank %" PRId64 " gave up", who);
    else
      mgrid_fail(err, MGRID_BACKEND,
                 "nccl: %s of %s, which blocks, did not end within %.3g seconds; that cannot be undone, end "
                 "the process",
                 what, name, seconds);
    return who >= 0 ? MGRID_GAVE_UP : MGRID_BACKEND;
  }
  pthread_join(thread, NULL);
  ncclResult_t r = w->result;
  free(w);
  return r == ncclSuccess || r == ncclInProgress ? MGRID_OK : mgrid_nccl_failed(n, err, r, what, name);
}
