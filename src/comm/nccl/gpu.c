/* SPDX-License-Identifier: MIT
**
** gpu.c - the GPU of this rank, whether other ranks use it, and waiting until it is idle.
*/
#include "comm/nccl/nccl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

mgrid_status mgrid_nccl_choose_gpu(nccl_backend *n, mgrid_error *err) {
  const mgrid_nccl_options *o = &n->options;
  int                       wanted = -1, at = o->ndevices == 1 ? 0 : n->local_rank;
  if (o->ndevices > 0) {
    if (at >= o->ndevices)
      return mgrid_fail(err, MGRID_USAGE, MAKER ": the list of GPUs has %d for the %d ranks of host %s", o->ndevices,
                        n->local_size, n->lib.machine);
    wanted = o->devices[at];
  }
  if (wanted >= n->lib.devices || (wanted < 0 && o->ndevices > 0))
    return mgrid_fail(err, MGRID_USAGE, MAKER ": rank %" PRId64 " is to use GPU %d; host %s has GPUs 0 to %d",
                      n->base.rank, wanted, n->lib.machine, n->lib.devices - 1);
  n->device = wanted < 0 ? n->local_rank % n->lib.devices : wanted;
  cudaError_t e = n->lib.cudaSetDevice(n->device);
  if (e == cudaSuccess)
    e = n->lib.cudaFree(NULL); /* creates the context, which cudaSetDevice does only since CUDA 12 */
  return e == cudaSuccess ? MGRID_OK : mgrid_cuda_failed(n, err, e, GPU_CALL("SetDevice"), "");
}

/* -------------------------------------------------------------- one GPU, several ranks */

typedef struct gpu_use { /* of one rank: its GPU, and whether ranks may share it */
  uint64_t machine;
  char     bus[32];
  uint8_t  share,
      chosen; /* not bool, because received bytes may be no valid bool. chosen: by its index on the machine */
} gpu_use;

static mgrid_status find_use(const nccl_backend *n, gpu_use *u, mgrid_error *err) {
  memset(u, 0, sizeof *u);
  u->machine = mgrid_machine_id();
  u->share = n->options.share_gpu;
  u->chosen = n->options.ndevices == 0;
  cudaError_t e = n->lib.cudaDeviceGetPCIBusId(u->bus, sizeof u->bus, n->device);
  return e == cudaSuccess ? MGRID_OK : mgrid_cuda_failed(n, err, e, GPU_CALL("DeviceGetPCIBusId"), "");
}

static bool same_gpu(const gpu_use *a, const gpu_use *b) {
  return a->machine == b->machine && strcmp(a->bus, b->bus) == 0;
}

static mgrid_status refuse(const nccl_backend *n, const gpu_use *mine, int64_t other, mgrid_error *err) {
  int64_t low = other < n->base.rank ? other : n->base.rank, high = other < n->base.rank ? n->base.rank : other;
  if (mine->chosen && n->local_size > n->lib.devices)
    return mgrid_fail(err, MGRID_MISSING,
                      MAKER ": host %s has %d GPU%s for %d ranks; start fewer, or let ranks share one "
                            "(--share-gpu, mgrid_nccl_options.share_gpu)",
                      n->lib.machine, n->lib.devices, mgrid_s_of(n->lib.devices), n->local_size);
  return mgrid_fail(err, MGRID_BACKEND,
                    MAKER ": ranks %" PRId64 " and %" PRId64 " both are on GPU %s of host %s; give each one of "
                          "its own, or let them share it (--share-gpu, mgrid_nccl_options.share_gpu)",
                    low, high, mine->bus, n->lib.machine);
}

/* NCCL refuses two ranks of one host on one GPU. So the second ranks on all GPUs of a machine become another host, and
** so on; the first ones keep their host. NVLink works among the ranks of each. */
static void set_host_id(uint64_t machine, int64_t nth) {
  char host_id[64];
  if (nth == 0) return;
  snprintf(host_id, sizeof host_id, "moongrid-%016" PRIx64 "-%" PRId64, machine, nth);
  setenv("NCCL_HOSTID", host_id, 0);
}

mgrid_status mgrid_nccl_check_sharing(nccl_backend *n, mgrid_error *err) {
  gpu_use      mine, *all = calloc((size_t)n->base.world, sizeof *all);
  mgrid_error  own = MGRID_ERROR_INIT;
  mgrid_status found = all ? find_use(n, &mine, &own) : mgrid_oom(&own);
  mgrid_status s = mgrid_verdict(n->carrier, found, &own, err);
  int64_t      nth = 0; /* index among the ranks on this GPU */
  if (!s) s = n->carrier->ops->allgather(n->carrier, &mine, all, sizeof mine, err);
  for (int64_t r = 0; r < n->base.world && !s; r++) {
    gpu_use *other = &all[r];
    mgrid_show(other->bus, sizeof other->bus);
    bool same = r != n->base.rank && same_gpu(other, &mine);
    if (other->share != mine.share)
      s = mgrid_fail(err, MGRID_USAGE, MAKER ": rank %" PRId64 " %s ranks share a GPU, rank %" PRId64 " %s",
                     n->base.rank, mine.share ? "lets" : "does not let", r, other->share ? "does" : "does not");
    else if (same && !mine.share)
      s = refuse(n, &mine, r, err);
    nth += same && r < n->base.rank;
  }
  if (!s) set_host_id(mine.machine, nth);
  free(all);
  return s;
}

/* ------------------------------------------------------------------------------ idle */

static ncclResult_t run_synchronize(const nccl_library *lib, void *ud) {
  (void)ud;
  return lib->cudaDeviceSynchronize() == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

mgrid_outcome mgrid_nccl_idle(nccl_backend *n, double seconds, const char *name, mgrid_error *err) {
  bool          left_behind;
  mgrid_error   why = MGRID_ERROR_INIT;
  mgrid_outcome s = mgrid_nccl_watch(n, seconds, true, run_synchronize, NULL, GPU_CALL("DeviceSynchronize"), name,
                                     &left_behind, &why);
  if (left_behind) n->leaks--; /* it ends with the kernels */
  if (s == MGRID_TIMED_OUT)
    mgrid_error_reword(&why,
                       MAKER
                       ": GPU %d was not idle within %.3g seconds, before %s: communicators are not created beside "
                       "running kernels, because NCCL may wait for these (mgrid_state_revoke ends those that wait for "
                       "lost ranks)",
                       n->device, seconds, name);
  if (s) mgrid_error_pass(err, &why);
  return s;
}
