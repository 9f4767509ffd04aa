/* SPDX-License-Identifier: MIT
**
** comm.c - one communicator: the deadline of its creation, whether anything is in progress on it, whether it is as
** planned. And the list of all communicators of the backend.
*/
#include "comm/nccl/nccl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

double mgrid_nccl_patience(const nccl_backend *n, const mgrid_comm_spec *spec) {
  return spec->options->asked.timeout > 0 ? spec->options->asked.timeout : n->options.timeout;
}

double mgrid_nccl_left(const nccl_backend *n, const mgrid_comm_spec *spec) {
  double seconds = mgrid_nccl_patience(n, spec);
  return n->creates ? fmax(n->begun + seconds - mgrid_now(), 0.1) : seconds;
}

mgrid_status mgrid_nccl_new(const nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm **made, ncclConfig_t *config,
                            mgrid_error *err) {
  const mgrid_nccl_values *v = &spec->options->nccl;
  nccl_comm               *c = *made = calloc(1, sizeof *c);
  if (!c) return mgrid_oom(err);
  snprintf(c->name, sizeof c->name, "%s", spec->name);
  c->options = mgrid_choice_ref(spec->options);
  c->bytes = mgrid_nccl_memory(v, spec->size);
  c->blocking = mgrid_nccl_blocks(n, v);
  mgrid_status s = mgrid_nccl_config(n, spec, c->name, config, err);
  if (!s) s = mgrid_nccl_allocate(n, spec, c, err);
  if (!s) return MGRID_OK;
  mgrid_nccl_drop(c);
  *made = NULL;
  return s;
}

void mgrid_nccl_drop(nccl_comm *made) {
  if (!made || made->stuck) return;
  mgrid_nccl_free_memory(made);
  mgrid_choice_free(made->options);
  free(made);
}

typedef struct progress {
  nccl_backend    *n;
  const nccl_comm *comm;
  const char      *call, *name;
  bool             listen;
  mgrid_error     *err;
} progress;

/* mgrid_look */
static mgrid_outcome in_progress(void *ud) {
  const progress *p = ud;
  ncclResult_t    state = ncclSuccess, r = p->n->lib.CommGetAsyncError(p->comm->comm, &state);
  if (r == ncclSuccess) r = state;
  if (r == ncclInProgress) return p->listen && mgrid_nccl_lost(p->n, p->name, p->err) ? MGRID_LOST_RANK : MGRID_NOT_YET;
  return r == ncclSuccess ? MGRID_OK : mgrid_nccl_failed(p->n, p->err, r, p->call, p->name);
}

mgrid_outcome mgrid_nccl_wait(nccl_backend *n, const nccl_comm *c, double seconds, bool listen, const char *call,
                              const char *name, mgrid_error *err) {
  int64_t       who;
  progress      p = { n, c, call, name, listen, err };
  mgrid_outcome outcome = mgrid_wait(in_progress, &p, mgrid_now() + seconds, listen ? n->carrier : NULL, &who);
  if (outcome == MGRID_GAVE_UP) return mgrid_nccl_gave_up(who, err);
  if (outcome == MGRID_LATE)
    return mgrid_fail(err, MGRID_TIMED_OUT, MAKER ": %s for %s did not end within %.3g seconds", call, name, seconds);
  return outcome;
}

mgrid_outcome mgrid_nccl_settle(nccl_backend *n, nccl_comm *c, double until, const char *call, mgrid_error *err) {
  mgrid_error   why = MGRID_ERROR_INIT;
  double        left = until - mgrid_now();
  mgrid_outcome s = mgrid_nccl_wait(n, c, left > 0.1 ? left : 0.1, false, call, c->name, &why);
  if (s == MGRID_TIMED_OUT) return mgrid_error_pass(err, &why);
  mgrid_error_clear(&why);
  return MGRID_OK;
}

mgrid_status mgrid_nccl_finish(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *made, mgrid_error *err) {
  const nccl_library *lib = &n->lib;
  int                 count = -1, rank = -1, device = -1, low = 0, high = 0;
  ncclResult_t        r = lib->CommCount(made->comm, &count);
  if (r == ncclSuccess) r = lib->CommUserRank(made->comm, &rank);
  if (r == ncclSuccess) r = lib->CommCuDevice(made->comm, &device);
  if (r != ncclSuccess) return mgrid_nccl_failed(n, err, r, "ncclCommCount", spec->name);
  if (count != spec->size || rank != spec->position || device != n->device)
    return mgrid_fail(err, MGRID_UNPROVED,
                      MAKER ": %s made rank %" PRId64 " %d of %d on GPU %d instead of %" PRId64 " of %" PRId64
                            " on GPU %d",
                      spec->name, n->base.rank, rank, count, device, spec->position, spec->size, n->device);
  cudaError_t e = lib->cudaDeviceGetStreamPriorityRange(&low, &high);
  if (e == cudaSuccess)
    e = lib->cudaStreamCreateWithPriority(&made->stream, cudaStreamNonBlocking,
                                          spec->options->asked.high_priority ? high : low);
  return e == cudaSuccess ? MGRID_OK : mgrid_cuda_failed(n, err, e, GPU_CALL("StreamCreateWithPriority"), spec->name);
}

/* ------------------------------------------------------------------------ the list */

void mgrid_nccl_keep(nccl_backend *n, nccl_comm *made) {
  made->next = n->made;
  n->made = made;
  n->bytes += made->bytes;
}

nccl_comm *mgrid_nccl_find(nccl_backend *n, const void *native) {
  nccl_comm *c = n->made;
  while (c && c != native) c = c->next;
  return c;
}

void mgrid_nccl_forget(nccl_backend *n, nccl_comm *c) {
  nccl_comm **at = &n->made;
  while (*at && *at != c) at = &(*at)->next;
  if (*at) *at = c->next;
  n->bytes -= c->bytes;
  mgrid_nccl_drop(c);
}
