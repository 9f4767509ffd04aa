/* SPDX-License-Identifier: MIT
**
** nccl.c - the nccl backend: the GPU of this rank, calls over all ranks, opening and closing.
*/
#include "comm/nccl/nccl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

mgrid_status mgrid_nccl_failed(const nccl_backend *n, mgrid_error *err, ncclResult_t r, const char *call,
                               const char *name) {
  const char *detail = n->lib.GetLastError ? n->lib.GetLastError(NULL) : "";
  return mgrid_fail(err, MGRID_BACKEND, "nccl: %s%s%s: %s%s%.300s%s", call, *name ? " for " : "", name,
                    n->lib.GetErrorString(r), detail && *detail ? " (" : "", detail ? detail : "",
                    detail && *detail ? ")" : "");
}

mgrid_status mgrid_cuda_failed(const nccl_backend *n, mgrid_error *err, cudaError_t r, const char *call,
                               const char *name) {
  return mgrid_fail(err, MGRID_BACKEND, "nccl: %s%s%s on GPU %d: %s (%s)", call, *name ? " for " : "", name, n->device,
                    n->lib.cudaGetErrorName(r), n->lib.cudaGetErrorString(r));
}

mgrid_outcome mgrid_nccl_gave_up(int64_t who, mgrid_error *err) {
  mgrid_fail(err, MGRID_OTHER_RANK, "nccl: rank %" PRId64 " gave up", who);
  return MGRID_GAVE_UP;
}

void mgrid_nccl_tell(nccl_backend *n, const mgrid_comm_spec *spec) {
  for (int64_t p = 0; p < spec->size; p++) n->carry->tell(n->carrier, spec->ranks[p]);
}

/* ---------------------------------------------------------------- over all ranks */

/* After a creation or a collective, ranks get here at different times: some at once, others only when a deadline
** has passed. Ranks that are early wait for that deadline and these seconds more. */
#define AFTER_DEADLINE 3.0

static mgrid_status over_allreduce(mgrid_backend *b, uint64_t *words, size_t count, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  double        seconds = b->longest > n->options.timeout ? b->longest : n->options.timeout;
  if (n->used) seconds *= 2;
  if (n->after || n->used) seconds += AFTER_DEADLINE;
  n->carry->deadline(n->carrier, seconds);
  mgrid_status s = n->carrier->ops->allreduce_min(n->carrier, words, count, err);
  if (n->after) n->carry->phase(n->carrier, 2 * b->epoch + 1); /* odd: use */
  n->after = n->used = false;
  return s;
}

static mgrid_status over_allgather(mgrid_backend *b, const void *mine, void *all, size_t bytes, mgrid_error *err) {
  mgrid_backend *carrier = ((nccl_backend *)b)->carrier;
  return carrier->ops->allgather(carrier, mine, all, bytes, err);
}

static mgrid_status over_bcast(mgrid_backend *b, void *data, size_t bytes, int64_t root, mgrid_error *err) {
  mgrid_backend *carrier = ((nccl_backend *)b)->carrier;
  return carrier->ops->bcast(carrier, data, bytes, root, err);
}

/* -------------------------------------------------------------------------- GPUs */

static mgrid_status choose_device(nccl_backend *n, mgrid_error *err) {
  const mgrid_nccl_options *o = &n->options;
  int                       wanted = o->device;
  if (wanted < 0 && o->ndevices > 0) {
    if (n->local_rank >= o->ndevices)
      return mgrid_fail(err, MGRID_USAGE, "nccl: the list of GPUs has %d for the %d ranks of host %s", o->ndevices,
                        n->local_size, n->lib.machine);
    wanted = o->devices[n->local_rank];
  }
  if (wanted >= n->lib.devices || (wanted < 0 && o->ndevices > 0))
    return mgrid_fail(err, MGRID_USAGE, "nccl: rank %" PRId64 " is to use GPU %d; host %s has GPUs 0 to %d",
                      n->base.rank, wanted, n->lib.machine, n->lib.devices - 1);
  if (wanted < 0 && n->local_size > n->lib.devices && !o->share_gpu)
    return mgrid_fail(err, MGRID_MISSING,
                      "nccl: host %s has %d GPU%s for %d ranks; start fewer, or let ranks share one "
                      "(--share-gpu, mgrid_nccl_options.share_gpu)",
                      n->lib.machine, n->lib.devices, n->lib.devices == 1 ? "" : "s", n->local_size);
  n->device = wanted < 0 ? n->local_rank % n->lib.devices : wanted;
  cudaError_t e = n->lib.cudaSetDevice(n->device);
  return e == cudaSuccess ? MGRID_OK : mgrid_cuda_failed(n, err, e, "cudaSetDevice", "");
}

typedef struct gpu_use { /* of one rank: its GPU, and whether ranks may share it */
  uint64_t machine;
  char     bus[32];
  bool     share;
} gpu_use;

static mgrid_status find_use(const nccl_backend *n, gpu_use *u, mgrid_error *err) {
  memset(u, 0, sizeof *u);
  u->machine = mgrid_machine_id();
  u->share = n->options.share_gpu;
  cudaError_t e = n->lib.cudaDeviceGetPCIBusId(u->bus, sizeof u->bus, n->device);
  return e == cudaSuccess ? MGRID_OK : mgrid_cuda_failed(n, err, e, "cudaDeviceGetPCIBusId", "");
}

/* Refuse two ranks on one GPU, as NCCL does, but on all ranks at once. If ranks may share, set NCCL_HOSTID
** before the first communicator, so that NCCL takes them for ranks on different machines. Collective: every
** rank makes the same calls here, whatever it finds. */
static mgrid_status check_sharing(nccl_backend *n, mgrid_error *err) {
  gpu_use      mine, *all = calloc((size_t)n->base.world, sizeof *all);
  mgrid_error  own = MGRID_ERROR_INIT;
  mgrid_status found = all ? find_use(n, &mine, &own) : mgrid_oom(&own);
  mgrid_status s = mgrid_verdict(n->carrier, found, &own, err);
  if (!s) s = n->carrier->ops->allgather(n->carrier, &mine, all, sizeof mine, err);
  for (int64_t r = 0; r < n->base.world && !s; r++) {
    const gpu_use *other = &all[r];
    if (other->share != mine.share) {
      s = mgrid_fail(err, MGRID_USAGE, "nccl: rank %" PRId64 " %s ranks share a GPU, rank %" PRId64 " %s", n->base.rank,
                     mine.share ? "lets" : "does not let", r, other->share ? "does" : "does not");
    } else if (!mine.share && r != n->base.rank && memcmp(other, &mine, sizeof mine) == 0) {
      int64_t low = r < n->base.rank ? r : n->base.rank, high = r < n->base.rank ? n->base.rank : r;
      s = mgrid_fail(err, MGRID_BACKEND,
                     "nccl: ranks %" PRId64 " and %" PRId64 " both are on GPU %s of host %s; give each one of "
                     "its own, or let them share it (--share-gpu, mgrid_nccl_options.share_gpu)",
                     low, high, mine.bus, n->lib.machine);
    }
  }
  if (!s && mine.share) {
    char host_id[32];
    snprintf(host_id, sizeof host_id, "moongrid-%" PRId64, n->base.rank);
    setenv("NCCL_HOSTID", host_id, 0);
  }
  free(all);
  return s;
}

/* Check that the communicator of the host has all ranks, in their order, and is on this rank's GPU. */
static mgrid_status check_parent(nccl_backend *n, mgrid_error *err) {
  ncclComm_t   parent = n->options.parent;
  int          count = -1, rank = -1, device = -1;
  ncclResult_t r = n->lib.CommSplit ? n->lib.CommCount(parent, &count) : ncclInvalidUsage;
  if (r == ncclSuccess) r = n->lib.CommUserRank(parent, &rank);
  if (r == ncclSuccess) r = n->lib.CommCuDevice(parent, &device);
  if (r != ncclSuccess) return mgrid_nccl_failed(n, err, r, "the parent that was handed over", "");
  if (count == n->base.world && rank == n->base.rank && device == n->device) return MGRID_OK;
  return mgrid_fail(err, MGRID_USAGE,
                    "nccl: the parent makes this rank %d of %d on GPU %d; it is %" PRId64 " of %" PRId64
                    " on GPU %d here",
                    rank, count, device, n->base.rank, n->base.world, n->device);
}

/* -------------------------------------------------------------------------- life */

static void nccl_close(mgrid_backend *b) {
  nccl_backend  *n = (nccl_backend *)b;
  mgrid_backend *carrier = n->carrier;
  n->carry->deadline(carrier, 0);
  free(n);
  if (--carrier->users == 0) carrier->ops->close(carrier);
}

static mgrid_backend *nccl_over(mgrid_backend *carrier, const mgrid_nccl_options *options, mgrid_error *err) {
  static const mgrid_backend_ops ops = {
    .allreduce_min = over_allreduce,
    .allgather = over_allgather,
    .bcast = over_bcast,
    .check = mgrid_nccl_check,
    .create = mgrid_nccl_create,
    .destroy = mgrid_nccl_destroy,
    .abort = mgrid_nccl_abort,
    .prove = mgrid_nccl_prove,
    .shrink = mgrid_nccl_shrink,
    .revoke = mgrid_nccl_revoke,
    .lose = mgrid_nccl_lose,
    .close = nccl_close,
    .buffer_new = mgrid_nccl_buffer_new,
    .buffer_free = mgrid_nccl_buffer_free,
    .copy = mgrid_nccl_copy,
    .collective = mgrid_nccl_collective,
  };
  nccl_backend own = { 0 }, *n = &own, *made = malloc(sizeof *made);
  mgrid_error  why = MGRID_ERROR_INIT;
  n->base = (mgrid_backend){ .layout = MGRID_LAYOUT,
                             .kind = &mgrid_backends[MGRID_NATIVE_NCCL],
                             .ops = &ops,
                             .rank = carrier->rank,
                             .world = carrier->world,
                             .users = 1 };
  n->carrier = carrier;
  n->carry = carrier->ops->carrier;
  n->options = *options;
  if (n->options.ranks_per_id < 1) n->options.ranks_per_id = MGRID_NCCL_RANKS_PER_ID;
  n->base.whole = n->options.parent != NULL;
  if (!(n->options.timeout > 0)) n->options.timeout = MGRID_NCCL_TIMEOUT;
  mgrid_status s = n->carry->start(carrier, n->options.timeout, &n->local_rank, &n->local_size, &why);
  if (!s || s == MGRID_NO_MEMORY) { /* the carrier works: what fails on one rank fails on all */
    if (!s && !made) s = mgrid_oom(&why);
    if (!s) s = mgrid_nccl_open(&n->lib, &why);
    if (!s) s = choose_device(n, &why);
    if (!s && n->options.parent) s = check_parent(n, &why);
    s = mgrid_verdict(carrier, s, &why, &why);
  }
  if (!s) {
    s = check_sharing(n, &why);
    s = mgrid_verdict(carrier, s, &why, &why);
  }
  if (!s) {
    n->base.place.gpus = n->lib.devices, n->base.place.gpu = n->device;
    *made = own;
    carrier->users++;
    return &made->base;
  }
  n->carry->deadline(carrier, 0);
  free(made);
  mgrid_error_pass(err, &why);
  return NULL;
}

static mgrid_status nccl_probe(char *buf, size_t len, mgrid_error *err) {
  nccl_library lib;
  char         nccl[24], header[24];
  mgrid_status s = mgrid_nccl_open(&lib, err);
  if (s) return s;
  snprintf(buf, len, "NCCL %s (built with the headers of %s), CUDA %d.%d, driver %d.%d, %d GPU%s",
           mgrid_nccl_library_text(lib.version, nccl), mgrid_nccl_library_text(NCCL_VERSION_CODE, header),
           lib.runtime / 1000, lib.runtime % 1000 / 10, lib.driver / 1000, lib.driver % 1000 / 10, lib.devices,
           lib.devices == 1 ? "" : "s");
  return MGRID_OK;
}

MGRID_ENTRY(nccl) = { MGRID_LAYOUT, .over = nccl_over, .probe = nccl_probe };
