/* SPDX-License-Identifier: MIT
**
** memory.c - the GPU memory of communicators while they live: report it, give it back for a while, take it again.
*/
#include "comm/nccl/nccl.h"

enum { SUSPEND_MEMORY = 1, STAT_SUSPENDABLE = 0, STAT_PERSISTENT = 2, STAT_TOTAL = 3 }; /* of nccl.h since 2.29.7 */

static ncclResult_t run_suspend(const nccl_library *lib, void *ud) { return lib->CommSuspend(ud, SUSPEND_MEMORY); }
static ncclResult_t run_resume(const nccl_library *lib, void *ud) { return lib->CommResume(ud); }

/* Make one call, over the members. */
static mgrid_outcome one(nccl_backend *n, nccl_comm *c, bool resume, mgrid_error *err) {
  const char   *what = resume ? "ncclCommResume" : "ncclCommSuspend";
  double        seconds = c->options->asked.timeout > 0 ? c->options->asked.timeout : n->options.timeout;
  bool          left_behind = false;
  mgrid_outcome s =
      mgrid_nccl_watch(n, seconds, true, resume ? run_resume : run_suspend, c->comm, what, c->name, &left_behind, err);
  if (left_behind) c->comm = NULL, c->stuck = true;
  if (s)
    c->lost = n->broken = true;
  else
    c->suspended = !resume;
  return s;
}

mgrid_outcome mgrid_nccl_resume_one(nccl_backend *n, nccl_comm *c, mgrid_error *err) { return one(n, c, true, err); }

mgrid_outcome mgrid_nccl_suspend(mgrid_backend *b, size_t count, void **native, bool resume, bool dry,
                                 mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  mgrid_outcome s = MGRID_OK;
  n->used = true;
  for (size_t i = 0; i < count && !s; i++) {
    nccl_comm *c = mgrid_nccl_find(n, native[i]);
    if (!c || c->suspended != resume) continue;
    if (dry) {
      s = resume ? MGRID_NCCL_HAS(&n->lib, CommResume, "to resume a state", err)
                 : MGRID_NCCL_HAS(&n->lib, CommSuspend, "to suspend a state", err);
      if (!s && (!c->comm || c->lost))
        s = mgrid_fail(err, MGRID_BACKEND, MAKER ": %s cannot be used after a failure", c->name);
    } else {
      s = one(n, c, resume, err);
    }
  }
  if (!dry && s && s != MGRID_GAVE_UP) mgrid_nccl_tell_world(n);
  return s;
}

mgrid_status mgrid_nccl_held(mgrid_backend *b, size_t count, void **native, mgrid_held_memory *sum, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  const struct {
    int      stat;
    int64_t *to;
  } stats[] = { { STAT_TOTAL, &sum->total },
                { STAT_SUSPENDABLE, &sum->suspendable },
                { STAT_PERSISTENT, &sum->persistent } };
  for (size_t i = 0; i < count; i++) {
    const nccl_comm *c = mgrid_nccl_find(n, native[i]);
    if (!c || !c->comm) continue;
    mgrid_status s = MGRID_NCCL_HAS(&n->lib, CommMemStats, "the GPU memory that a state holds", err);
    if (s) return s;
    for (size_t k = 0; k < sizeof stats / sizeof *stats; k++) {
      uint64_t     value = 0;
      ncclResult_t r = n->lib.CommMemStats(c->comm, stats[k].stat, &value);
      if (r != ncclSuccess) return mgrid_nccl_failed(n, err, r, "ncclCommMemStats", c->name);
      *stats[k].to += (int64_t)value;
    }
    sum->communicators++;
    sum->suspended += c->suspended;
  }
  return MGRID_OK;
}
