/* SPDX-License-Identifier: MIT
**
** nccl.c - the nccl backend: calls over all ranks, buffers, opening and closing.
*/
#include "comm/nccl/nccl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- over all ranks */

/* After a creation, a collective or an abort, some ranks arrive here at once, others only after the
** deadline of that call. So early ranks wait until that deadline, and LATE seconds more. The
** deadline of a creation counts from its start, when all ranks had met. A collective may take two
** deadlines: to begin, and to end. */
#define LATE 2.0

static mgrid_status over_allreduce(mgrid_backend *b, uint64_t *words, size_t count,
                                   mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  double seconds = b->longest > n->options.timeout ? b->longest : n->options.timeout;
  n->carrier->waited = n->creates ? fmin(mgrid_now() - n->begun, seconds) : 0;
  if (n->creates)
    seconds += LATE - n->carrier->waited;
  else if (n->used)
    seconds = 2 * seconds + NCCL_END_SECONDS + LATE;
  n->carry->deadline(n->carrier, seconds);
  mgrid_status s = n->carrier->ops->allreduce_min(n->carrier, words, count, err);
  /* phases with odd numbers are for use (mgrid_nccl_create) */
  if (n->after) n->carry->phase(n->carrier, 2 * b->epoch + 1);
  n->after = n->creates = n->used = false, n->carrier->waited = 0;
  return s;
}

static mgrid_status over_allgather(mgrid_backend *b, const void *mine, void *all, size_t bytes,
                                   mgrid_error *err) {
  mgrid_backend *carrier = ((nccl_backend *)b)->carrier;
  return carrier->ops->allgather(carrier, mine, all, bytes, err);
}

static mgrid_status over_bcast(mgrid_backend *b, void *data, size_t bytes, int64_t root,
                               mgrid_error *err) {
  mgrid_backend *carrier = ((nccl_backend *)b)->carrier;
  return carrier->ops->bcast(carrier, data, bytes, root, err);
}

/* ----------------------------------------------------------------------- buffers */

static void *nccl_buffer_new(mgrid_backend *b, const mgrid_descriptor *kind, size_t bytes,
                             mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  void *buffer = NULL;
  if (!mgrid_nccl_makes(kind)) return n->carrier->ops->buffer_new(n->carrier, kind, bytes, err);
  cudaError_t e = n->lib.cudaSetDevice(n->device);
  if (e == cudaSuccess) e = n->lib.cudaMalloc(&buffer, bytes ? bytes : 1);
  if (e == cudaSuccess) return buffer;
  mgrid_cuda_failed(n, err, e, GPU_CALL("Malloc"), "");
  return NULL;
}

/* After a failure keep the memory: cudaFree waits for kernels, and some may hang. */
static void nccl_buffer_free(mgrid_backend *b, const mgrid_descriptor *kind, void *buffer) {
  nccl_backend *n = (nccl_backend *)b;
  if (!mgrid_nccl_makes(kind))
    n->carrier->ops->buffer_free(n->carrier, kind, buffer);
  else if (buffer && !n->broken)
    n->lib.cudaFree(buffer);
}

/* -------------------------------------------------------------------------- life */

/* Check that the NCCL communicator of the host has all ranks, in order, and is on this rank's
** GPU. */
static mgrid_status check_parent(nccl_backend *n, mgrid_error *err) {
  ncclComm_t parent = n->options.parent;
  int count = -1, rank = -1, device = -1;
  ncclResult_t r = n->lib.CommCount(parent, &count);
  if (r == ncclSuccess) r = n->lib.CommUserRank(parent, &rank);
  if (r == ncclSuccess) r = n->lib.CommCuDevice(parent, &device);
  if (r != ncclSuccess) return mgrid_nccl_failed(n, err, r, "the parent that was handed over", "");
  if (count == n->base.world && rank == n->base.rank && device == n->device) return MGRID_OK;
  return mgrid_fail(err, MGRID_USAGE,
                    MAKER ": the parent makes this rank %d of %d on GPU %d; it is %" PRId64
                          " of %" PRId64 " on GPU %d here",
                    rank, count, device, n->base.rank, n->base.world, n->device);
}

/* Make the stream for copies and proofs, and the buffer for proofs. */
static mgrid_status prepare_proofs(nccl_backend *n, mgrid_error *err) {
  void *number = NULL;
  cudaError_t e = n->lib.cudaStreamCreateWithPriority(&n->stream, cudaStreamNonBlocking, 0);
  if (e == cudaSuccess) e = n->lib.cudaMalloc(&number, 2 * sizeof *n->number);
  n->number = number;
  return e == cudaSuccess ? MGRID_OK : mgrid_cuda_failed(n, err, e, GPU_CALL("Malloc"), "");
}

/* Free the stream and the buffer. After a failure keep the buffer: cudaFree waits for kernels, and
** some may hang. */
static void drop_proofs(nccl_backend *n) {
  if (n->stream) n->lib.cudaStreamDestroy(n->stream);
  if (n->number && !n->broken) n->lib.cudaFree(n->number);
}

/* Open the library and the GPU. Local. */
static mgrid_status open_gpu(nccl_backend *n, mgrid_error *err) {
  mgrid_status s = mgrid_nccl_open(&n->lib, err);
  if (!s) s = mgrid_nccl_choose_gpu(n, err);
  if (!s) s = prepare_proofs(n, err);
  if (!s && n->options.parent) s = check_parent(n, err);
  return s;
}

static void nccl_close(mgrid_backend *b) {
  nccl_backend *n = (nccl_backend *)b;
  mgrid_backend *carrier = n->carrier;
  mgrid_nccl_move_end(n);
  drop_proofs(n);
  n->carry->deadline(carrier, 0);
  free(n);
  if (--carrier->users == 0) carrier->ops->close(carrier);
}

/* -------------------------------------------------------------- survivors of a loss
** The carrier opens a backend of the survivors. Over that backend NCCL's communicators are made
** again. */

static mgrid_status nccl_able(const mgrid_backend *b, mgrid_error *err) {
  const nccl_backend *n = (const nccl_backend *)b;
  if (n->options.parent)
    return mgrid_fail(
        err, MGRID_UNSUPPORTED,
        MAKER ": communicators that are split from one of the host end with its first lost rank");
  const mgrid_survival_ops *survival = n->carrier->ops->survival;
  if (survival) return survival->able(n->carrier, err);
  return mgrid_fail(
      err, MGRID_UNSUPPORTED,
      MAKER ": the carrier %s cannot find the lost ranks; if your program knows them, open a "
            "backend of the survivors, and pass it with the list of lost ranks "
            "(mgrid_recover_options)",
      n->carrier->kind->name);
}

static void nccl_interrupt(mgrid_backend *b) {
  mgrid_backend *carrier = ((nccl_backend *)b)->carrier;
  carrier->ops->survival->interrupt(carrier);
}

static bool nccl_hurt(mgrid_backend *b) {
  mgrid_backend *carrier = ((nccl_backend *)b)->carrier;
  return carrier->ops->survival->hurt(carrier);
}

static mgrid_status nccl_agree_and(mgrid_backend *b, uint64_t *mine, double seconds,
                                   mgrid_error *err) {
  mgrid_backend *carrier = ((nccl_backend *)b)->carrier;
  return carrier->ops->survival->agree_and(carrier, mine, seconds, err);
}

static mgrid_status nccl_find_lost(mgrid_backend *b, bool *lost, mgrid_error *err) {
  mgrid_backend *carrier = ((nccl_backend *)b)->carrier;
  return carrier->ops->survival->find_lost(carrier, lost, err);
}

static mgrid_backend *nccl_open_over(mgrid_backend *carrier, const mgrid_nccl_options *options,
                                     mgrid_error *err);

/* Open a backend over the carrier of the survivors. This rank keeps its GPU, even if its index on
** the node changes. */
static mgrid_backend *nccl_rest_of(mgrid_backend *b, int64_t rank, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  mgrid_nccl_options o = n->options;
  mgrid_backend *carrier = n->carrier->ops->survival->rest(n->carrier, rank, err);
  if (!carrier) return NULL;
  o.devices = &n->device, o.ndevices = 1;
  mgrid_backend *rest = nccl_open_over(carrier, &o, err);
  if (!rest) carrier->ops->survival->interrupt(carrier);
  /* leaks are counted for the whole process */
  if (rest) rest->hooks = b->hooks, ((nccl_backend *)rest)->leaks = n->leaks;
  if (--carrier->users == 0) carrier->ops->close(carrier);
  return rest;
}

static const mgrid_survival_ops nccl_survival = { .able = nccl_able,
                                                  .interrupt = nccl_interrupt,
                                                  .hurt = nccl_hurt,
                                                  .agree_and = nccl_agree_and,
                                                  .find_lost = nccl_find_lost,
                                                  .rest = nccl_rest_of };

static const mgrid_backend_ops nccl_ops = {
  .allreduce_min = over_allreduce,
  .allgather = over_allgather,
  .bcast = over_bcast,
  .check = mgrid_nccl_check,
  .create = mgrid_nccl_create,
  .destroy = mgrid_nccl_destroy,
  .abort = mgrid_nccl_abort,
  .prove = mgrid_nccl_prove,
  .shrink = mgrid_nccl_shrink,
  .remake = mgrid_nccl_remake,
  .revoke = mgrid_nccl_revoke,
  .lose = mgrid_nccl_lose,
  .close = nccl_close,
  .buffer_new = nccl_buffer_new,
  .buffer_free = nccl_buffer_free,
  .copy = mgrid_nccl_copy,
  .collective = mgrid_nccl_collective,
  .suspend = mgrid_nccl_suspend,
  .held = mgrid_nccl_held,
  .growth = mgrid_nccl_growth,
  .grow = mgrid_nccl_grow,
  .adopt = mgrid_nccl_adopt,
  .window = mgrid_nccl_read_window,
  .device = mgrid_nccl_read_device,
  .transport = &mgrid_nccl_transport,
  .survival = &nccl_survival,
  .streams = &mgrid_nccl_streams,
};

/* Return whether the carrier makes a communicator for groups of one rank of this family. */
static bool carried_wants(const mgrid_backend *b, const mgrid_choice *options) {
  const mgrid_backend *carrier = ((const nccl_backend *)b)->carrier;
  return carrier->wants_single(carrier, options);
}

static mgrid_status carried_single(mgrid_backend *b, const mgrid_comm_spec *spec, void **native,
                                   mgrid_error *err) {
  mgrid_backend *carrier = ((nccl_backend *)b)->carrier;
  return carrier->single(carrier, spec, native, err);
}

static mgrid_backend *nccl_open_over(mgrid_backend *carrier, const mgrid_nccl_options *options,
                                     mgrid_error *err) {
  nccl_backend own = { 0 }, *n = &own, *made = malloc(sizeof *made);
  mgrid_error why = MGRID_ERROR_INIT;

  n->base = (mgrid_backend){ .layout = MGRID_LAYOUT,
                             .kind = mgrid_backend_named(MAKER),
                             .ops = &nccl_ops,
                             .rank = carrier->rank,
                             .world = carrier->world,
                             .carrier = carrier,
                             .epoch = carrier->creations,
                             .users = 1,
                             .wants_single = carrier->single ? carried_wants : NULL,
                             .single = carrier->single ? carried_single : NULL };
  n->carrier = carrier;
  n->carry = carrier->ops->carrier;
  n->options = *options;
  if (n->options.ranks_per_id < 1) n->options.ranks_per_id = MGRID_NCCL_RANKS_PER_ID;
  n->base.whole = n->options.parent != NULL;
  n->options.timeout = mgrid_timeout_of(n->options.timeout);
  mgrid_status s =
      n->carry->start(carrier, n->options.timeout, &n->local_rank, &n->local_size, &why);
  if (!s || s == MGRID_NO_MEMORY) { /* the carrier works, so a verdict can tell all ranks */
    if (!s && !made) s = mgrid_oom(&why);
    if (!s) s = open_gpu(n, &why);
    s = mgrid_verdict(carrier, s, &why, &why);
  }
  if (!s) {
    s = mgrid_nccl_check_sharing(n, &why);
    s = mgrid_verdict(carrier, s, &why, &why);
  }
  if (!s) {
    n->base.spread.gpus = n->lib.devices, n->base.spread.gpu = n->device;
    *made = own;
    carrier->users++;
    return &made->base;
  }
  drop_proofs(n);
  n->carry->deadline(carrier, 0);
  free(made);
  mgrid_error_pass(err, &why);
  return NULL;
}

static mgrid_status nccl_probe(char *buf, size_t len, mgrid_error *err) {
  nccl_library lib;
  mgrid_text overridden = { 0 };
  char nccl[24], header[24];
  mgrid_status s = mgrid_nccl_open(&lib, err);
  if (s) return s;
  mgrid_nccl_overridden(&overridden);
  snprintf(buf, len,
           MAKER_TITLE " %s (built with the headers of %s), " GPU_TITLE
                       " %d.%d, driver %d.%d, %d GPU%s%s%s",
           mgrid_nccl_library_text(lib.version, nccl),
           mgrid_nccl_library_text(NCCL_VERSION_CODE, header), GPU_MAJOR(lib.runtime),
           GPU_MINOR(lib.runtime), GPU_MAJOR(lib.driver), GPU_MINOR(lib.driver), lib.devices,
           mgrid_s_of(lib.devices), overridden.len ? "; the environment overrides options: " : "",
           overridden.len ? overridden.data : "");
  mgrid_text_free(&overridden);
  return MGRID_OK;
}

MAKER_ENTRY = { MGRID_LAYOUT, .over = nccl_open_over, .probe = nccl_probe };
