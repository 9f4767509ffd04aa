/* SPDX-License-Identifier: MIT
**
** nccl.c - the nccl backend: which GPU this rank has, messages, life.
*/
#include "comm/nccl/nccl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

mg_status nccl_failed(const nccl_backend *n, mg_error *err, ncclResult_t r, const char *call, const char *name) {
  const char *detail = n->lib.GetLastError ? n->lib.GetLastError(NULL) : "";
  return mg_fail(err, MG_BACKEND, "nccl: %s%s%s: %s%s%.300s%s", call, *name ? " for " : "", name,
                 n->lib.GetErrorString(r), detail && *detail ? " (" : "", detail ? detail : "",
                 detail && *detail ? ")" : "");
}

mg_status cuda_failed(const nccl_backend *n, mg_error *err, cudaError_t r, const char *call, const char *name) {
  return mg_fail(err, MG_BACKEND, "nccl: %s%s%s on GPU %d: %s (%s)", call, *name ? " for " : "", name, n->device,
                 n->lib.cudaGetErrorName(r), n->lib.cudaGetErrorString(r));
}

/* ---------------------------------------------------------------- over all ranks */

/* Who was done at once waits for those who come at their deadline, and some more. */
#define AFTER_CREATION 3.0

static mg_status over_allreduce(mg_backend *b, uint64_t *words, size_t count, mg_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  n->host->seconds = b->longest > n->options.timeout ? b->longest : n->options.timeout;
  if (n->used) n->host->seconds *= 2;
  if (n->after || n->used) n->host->seconds += AFTER_CREATION;
  mg_status s = n->host->ops->allreduce_min(n->host, words, count, err);
  if (n->after) n->host->epoch = 2 * b->epoch + 1; /* what was said in the creation is not heard any more */
  n->after = n->used = false;
  return s;
}

static mg_status over_allgather(mg_backend *b, const void *mine, void *all, size_t bytes, mg_error *err) {
  mg_backend *host = ((nccl_backend *)b)->host;
  return host->ops->allgather(host, mine, all, bytes, err);
}

static mg_status over_bcast(mg_backend *b, void *data, size_t bytes, int64_t root, mg_error *err) {
  mg_backend *host = ((nccl_backend *)b)->host;
  return host->ops->bcast(host, data, bytes, root, err);
}

/* -------------------------------------------------------------------------- GPUs */

static mg_status choose_device(nccl_backend *n, mg_error *err) {
  const mg_nccl_options *o = &n->options;
  int                    wanted = o->device;
  if (wanted < 0 && o->ndevices > 0) {
    if (n->local_rank >= o->ndevices)
      return mg_fail(err, MG_USAGE, "nccl: the list of GPUs has %d for the %d ranks of host %s", o->ndevices,
                     n->local_size, n->lib.host);
    wanted = o->devices[n->local_rank];
  }
  if (wanted >= n->lib.devices || (wanted < 0 && o->ndevices > 0))
    return mg_fail(err, MG_USAGE, "nccl: rank %" PRId64 " is to use GPU %d; host %s has GPUs 0 to %d", n->base.rank,
                   wanted, n->lib.host, n->lib.devices - 1);
  if (wanted < 0 && n->local_size > n->lib.devices && !o->share_gpu)
    return mg_fail(err, MG_BACKEND, "nccl: host %s has %d GPU%s for %d ranks; start fewer, or let ranks share one "
                   "(--share-gpu, mg_nccl_options.share_gpu)",
                   n->lib.host, n->lib.devices, n->lib.devices == 1 ? "" : "s", n->local_size);
  n->device = wanted < 0 ? n->local_rank % n->lib.devices : wanted;
  cudaError_t e = n->lib.cudaSetDevice(n->device);
  return e == cudaSuccess ? MG_OK : cuda_failed(n, err, e, "cudaSetDevice", "");
}

typedef struct seat { /* where a rank is */
  uint64_t machine;
  char     bus[32];
  bool     share;
} seat;

static mg_status find_seat(const nccl_backend *n, seat *p, mg_error *err) {
  memset(p, 0, sizeof *p);
  p->machine = mg_machine_id();
  p->share = n->options.share_gpu;
  cudaError_t e = n->lib.cudaDeviceGetPCIBusId(p->bus, sizeof p->bus, n->device);
  return e == cudaSuccess ? MG_OK : cuda_failed(n, err, e, "cudaDeviceGetPCIBusId", "");
}

/* No two ranks on one GPU unless that is wanted: NCCL would refuse, some ranks sooner than others.
** Where it is, NCCL_HOSTID keeps it from noticing; it reads that once, before its first
** communicator. Every rank goes through the same calls, whatever it finds. */
static mg_status check_sharing(nccl_backend *n, mg_error *err) {
  seat      mine, *all = calloc((size_t)n->base.world, sizeof *all);
  mg_error  own = { 0 };
  mg_status found = all ? find_seat(n, &mine, &own) : mg_oom(&own);
  mg_status s = mg_verdict(n->host, found, &own, err);
  if (!s) s = n->host->ops->allgather(n->host, &mine, all, sizeof mine, err);
  for (int64_t r = 0; r < n->base.world && !s; r++) {
    const seat *other = &all[r];
    if (other->share != mine.share) {
      s = mg_fail(err, MG_USAGE, "nccl: rank %" PRId64 " %s ranks share a GPU, rank %" PRId64 " %s", n->base.rank,
                  mine.share ? "lets" : "does not let", r, other->share ? "does" : "does not");
    } else if (!mine.share && r != n->base.rank && memcmp(other, &mine, sizeof mine) == 0) {
      int64_t low = r < n->base.rank ? r : n->base.rank, high = r < n->base.rank ? n->base.rank : r;
      s = mg_fail(err, MG_BACKEND, "nccl: ranks %" PRId64 " and %" PRId64 " both are on GPU %s of host %s; give each one of "
                  "its own, or let them share it (--share-gpu, mg_nccl_options.share_gpu)",
                  low, high, mine.bus, n->lib.host);
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

/* The host's communicator is of all ranks, in their order, and on this rank's GPU. */
static mg_status check_parent(nccl_backend *n, mg_error *err) {
  ncclComm_t   parent = n->options.parent;
  int          count = -1, rank = -1, device = -1;
  ncclResult_t r = n->lib.CommSplit ? n->lib.CommCount(parent, &count) : ncclInvalidUsage;
  if (r == ncclSuccess) r = n->lib.CommUserRank(parent, &rank);
  if (r == ncclSuccess) r = n->lib.CommCuDevice(parent, &device);
  if (r != ncclSuccess) return nccl_failed(n, err, r, "the parent that was handed over", "");
  if (count == n->base.world && rank == n->base.rank && device == n->device) return MG_OK;
  return mg_fail(err, MG_USAGE, "nccl: the parent makes this rank %d of %d on GPU %d; it is %" PRId64 " of %" PRId64
                 " on GPU %d here",
                 rank, count, device, n->base.rank, n->base.world, n->device);
}

/* -------------------------------------------------------------------------- life */

static void nccl_close(mg_backend *b) {
  nccl_backend *n = (nccl_backend *)b;
  mg_backend   *host = n->host;
  bool          own = n->own_host;
  n->host->seconds = 0;
  free(n);
  if (own && --host->users == 0) host->ops->close(host);
}

MG_API mg_backend *mg_nccl_over(mg_backend *host, const mg_nccl_options *given, bool own_host, mg_error *err);
MG_API mg_status   mg_nccl_probe(char *buf, size_t len, mg_error *err);

mg_backend *mg_nccl_over(mg_backend *host, const mg_nccl_options *given, bool own_host, mg_error *err) {
  static const mg_backend_ops ops = {
    .name = "nccl", .lists = true,
    .allreduce_min = over_allreduce, .allgather = over_allgather, .bcast = over_bcast,
    .check = nccl_check, .create = nccl_create, .destroy = nccl_destroy, .abort = nccl_abort, .prove = nccl_prove,
    .shrink = nccl_shrink, .revoke = nccl_revoke, .lose = nccl_lose, .close = nccl_close,
    .buffer_new = nccl_buffer_new, .buffer_free = nccl_buffer_free, .copy = nccl_copy, .collective = nccl_collective,
  };
  nccl_backend *n = calloc(1, sizeof *n);
  mg_error      why = { 0 };
  if (!n) return mg_null_oom(err); /* the others see that this rank does not come */
  n->base = (mg_backend){ .ops = &ops, .rank = host->rank, .world = host->world, .users = 1 };
  n->host = host;
  n->own_host = own_host;
  n->options = (mg_nccl_options)MG_NCCL_OPTIONS_INIT;
  if (given) memcpy(&n->options, given, given->size < sizeof n->options ? given->size : sizeof n->options);
  if (n->options.ranks_per_id < 1) n->options.ranks_per_id = MG_NCCL_RANKS_PER_ID;
  n->base.whole = n->options.parent != NULL;
  if (!(n->options.timeout > 0)) n->options.timeout = MG_NCCL_TIMEOUT;
  mg_status s = host->ops->own(host, n->options.timeout, &n->local_rank, &n->local_size, &why);
  if (!s || s == MG_LIMIT) { /* all ranks find out together */
    if (!s) s = nccl_open(&n->lib, &why);
    if (!s) s = choose_device(n, &why);
    if (!s && n->options.parent) s = check_parent(n, &why);
    s = mg_verdict(host, s, &why, &why);
  }
  if (!s) {
    s = check_sharing(n, &why);
    s = mg_verdict(host, s, &why, &why);
  }
  n->base.place.gpus = n->lib.devices, n->base.place.gpu = n->device;
  if (!s) return &n->base;
  host->seconds = 0;
  free(n);
  if (err) *err = why;
  return NULL;
}

mg_status mg_nccl_probe(char *buf, size_t len, mg_error *err) {
  nccl_library lib;
  char         nccl[24], header[24];
  mg_status    s = nccl_open(&lib, err);
  if (s) return s;
  snprintf(buf, len, "NCCL %s (built with the headers of %s), CUDA %d.%d, driver %d.%d, %d GPU%s",
           nccl_version_text(lib.version, nccl), nccl_version_text(NCCL_VERSION_CODE, header), lib.runtime / 1000,
           lib.runtime % 1000 / 10, lib.driver / 1000, lib.driver % 1000 / 10, lib.devices, lib.devices == 1 ? "" : "s");
  return MG_OK;
}
