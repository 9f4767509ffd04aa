/* SPDX-License-Identifier: MIT
**
** nccl_move.c - messages of moves on NCCL. The messages that a rank posts at once are one NCCL
** group of sends and receives, on a communicator of all ranks, which the first move creates. While
** a group is sent, rows of other groups are packed and unpacked in the backend's stream for copies.
** Events order the two streams, and show which group has ended.
*/
#include "comm/nccl/nccl.h"

#include <stdlib.h>
#include <string.h>

/* CTAs of the communicator of all ranks. More CTAs mean more channels, and more memory for each
** peer (comm/README.md). */
enum { MOVE_CTAS = 16 };

/* --------------------------------------------------------------- the begin */

static mgrid_backend *move_carrier(mgrid_backend *b) { return ((nccl_backend *)b)->carrier; }

/* Until move_close, all calls have the deadline of the move. */
static mgrid_status move_open(mgrid_backend *b, double *seconds, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  (void)err;
  n->move.before = n->options.timeout;
  if (*seconds > 0) n->options.timeout = *seconds;
  *seconds = n->options.timeout;
  return MGRID_OK;
}

static mgrid_comm_spec move_spec_of(const nccl_backend *n) {
  return (mgrid_comm_spec){ .name = "moves",
                            .backend = n->base.kind,
                            .options = n->move.options,
                            .ranks = n->move.ranks,
                            .size = n->base.world,
                            .position = n->base.rank };
}

/* Make the options and the ranks of the communicator of all ranks, for move_spec_of. */
static mgrid_status move_describe(nccl_backend *n, mgrid_error *err) {
  const mgrid_options usual = MGRID_OPTIONS_INIT;
  mgrid_nccl_values values = { 0 };
  if (n->move.ranks) return MGRID_OK;
  values.given[MGRID_NCCL_MAX_CTAS] = true;
  values.number[MGRID_NCCL_MAX_CTAS] = MOVE_CTAS;
  mgrid_status s = n->move.options ? MGRID_OK
                                   : mgrid_choice_make(&usual, &values, &n->move.options, err);
  if (s) return s;
  int32_t *ranks = malloc((size_t)n->base.world * sizeof *ranks);
  if (!ranks) return mgrid_oom(err);
  for (int64_t i = 0; i < n->base.world; i++) ranks[i] = (int32_t)i;
  n->move.ranks = ranks;
  return MGRID_OK;
}

static mgrid_status make_events(nccl_backend *n, mgrid_error *err) {
  cudaEvent_t *all[] = { &n->move.copied, &n->move.sent[0], &n->move.sent[1] };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    cudaError_t e = *all[i] ? cudaSuccess
                            : n->lib.cudaEventCreateWithFlags(all[i], cudaEventDisableTiming);
    if (e != cudaSuccess)
      return mgrid_cuda_failed(n, err, e, GPU_CALL("EventCreateWithFlags"), "a move");
  }
  return MGRID_OK;
}

static mgrid_status move_ready(mgrid_backend *b, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  if (n->broken)
    return mgrid_fail(err, MGRID_BACKEND,
                      MAKER ": the backend moves nothing after an earlier failure");
  /* the trainer may have set another device in this thread */
  cudaError_t e = n->lib.cudaSetDevice(n->device);
  if (e != cudaSuccess) return mgrid_cuda_failed(n, err, e, GPU_CALL("SetDevice"), "a move");
  mgrid_status s = move_describe(n, err);
  mgrid_comm_spec spec = move_spec_of(n);
  if (!s) s = make_events(n, err);
  if (!s && !n->move.comm && n->base.world > 1) s = mgrid_nccl_check(b, 1, &spec, err);
  n->move.posted = n->move.ended = 0;
  return s;
}

static mgrid_status move_reaches(mgrid_backend *b, const void *data, const char *what,
                                 mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  union { /* the struct has grown in CUDA 13 */
    struct cudaPointerAttributes is;
    char room[256];
  } of;
  memset(&of, 0, sizeof of);
  cudaError_t e = n->lib.cudaPointerGetAttributes(&of.is, data);
  if (e != cudaSuccess) return mgrid_cuda_failed(n, err, e, GPU_CALL("PointerGetAttributes"), what);
  if (of.is.type == cudaMemoryTypeManaged
      || (of.is.type == cudaMemoryTypeDevice && of.is.device == n->device))
    return MGRID_OK;
  if (of.is.type == cudaMemoryTypeDevice)
    return mgrid_fail(err, MGRID_REFUSED, "%s is in memory of GPU %d; the backend has GPU %d", what,
                      of.is.device, n->device);
  return mgrid_fail(err, MGRID_REFUSED,
                    "%s is in memory of the CPU; " MAKER " moves what is in that of the GPU", what);
}

static mgrid_status move_connect(mgrid_backend *b, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  void *native = NULL;
  mgrid_comm_spec spec = move_spec_of(n);
  /* each rank comes to the verdict when its own messages have ended, so others may be late */
  n->used = true;
  if (n->move.comm) return MGRID_OK;
  b->epoch = ++n->carrier->creations; /* no later creation may have this number */
  mgrid_outcome made = mgrid_nccl_create(b, 1, &spec, &native, err);
  mgrid_status s = mgrid_verdict(b, made, err, err);
  if (s && native) mgrid_nccl_abort(b, 1, &native);
  if (!s) n->move.comm = native;
  n->used = true;
  return s;
}

/* Keep the memory for the next move, because cudaFree would wait for everything that runs on the
** GPU. */
static void *move_memory(mgrid_backend *b, size_t bytes, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  if (n->move.bytes >= bytes) return n->move.memory;
  n->lib.cudaFree(n->move.memory);
  n->move.memory = NULL, n->move.bytes = 0;
  cudaError_t e = n->lib.cudaMalloc(&n->move.memory, bytes);
  if (e != cudaSuccess) {
    mgrid_cuda_failed(n, err, e, GPU_CALL("Malloc"), "the window of a move");
    return NULL;
  }
  n->move.bytes = bytes;
  return n->move.memory;
}

/* ------------------------------------------------------------------ copies */

/* Copy the rows of one plane. CUDA accepts no pitch of 2 GiB or more; rows with such a stride are
** copied one by one. */
static cudaError_t copy_plane(nccl_backend *n, const mgrid_slab *s, int64_t plane) {
  char *apart = s->apart + plane * s->plane_stride, *packed = s->packed + plane * s->count * s->row;
  char *to = s->pack ? packed : apart, *from = s->pack ? apart : packed;
  size_t row = (size_t)s->row, to_pitch = s->pack ? row : (size_t)s->stride;
  cudaError_t e = cudaSuccess;
  if (s->count > 1 && s->stride <= INT32_MAX)
    return n->lib.cudaMemcpy2DAsync(to, to_pitch, from, s->pack ? (size_t)s->stride : row, row,
                                    (size_t)s->count, cudaMemcpyDeviceToDevice, n->stream);
  for (int64_t i = 0; i < s->count && e == cudaSuccess; i++)
    e = n->lib.cudaMemcpyAsync(to + i * (s->pack ? s->row : s->stride),
                               from + i * (s->pack ? s->stride : s->row), row,
                               cudaMemcpyDeviceToDevice, n->stream);
  return e;
}

/* Copy all planes in one call. CUDA needs plane_stride to be a multiple of stride. */
static cudaError_t copy_planes(nccl_backend *n, const mgrid_slab *s) {
  size_t row = (size_t)s->row, count = (size_t)s->count, stride = (size_t)s->stride;
  struct cudaPitchedPtr apart = { s->apart, stride, row, (size_t)(s->plane_stride / s->stride) };
  struct cudaPitchedPtr packed = { s->packed, row, row, count };
  struct cudaMemcpy3DParms all = { .srcPtr = s->pack ? apart : packed,
                                   .dstPtr = s->pack ? packed : apart,
                                   .extent = { row, count, (size_t)s->planes },
                                   .kind = cudaMemcpyDeviceToDevice };
  return n->lib.cudaMemcpy3DAsync(&all, n->stream);
}

static mgrid_status move_copy(mgrid_backend *b, const mgrid_slab *s, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  bool even = s->planes > 1 && s->stride <= INT32_MAX && s->plane_stride % s->stride == 0;
  cudaError_t e = even ? copy_planes(n, s) : cudaSuccess;
  for (int64_t i = 0; i < s->planes && !even && e == cudaSuccess; i++) e = copy_plane(n, s, i);
  return e == cudaSuccess ? MGRID_OK : mgrid_cuda_failed(n, err, e, "a copy", "a move");
}

static mgrid_outcome move_copied(mgrid_backend *b, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  cudaError_t e = n->lib.cudaStreamQuery(n->stream);
  if (e == cudaErrorNotReady) return MGRID_NOT_YET;
  return e == cudaSuccess ? MGRID_OK
                          : (mgrid_outcome)mgrid_cuda_failed(n, err, e, "copies", "a move");
}

/* ---------------------------------------------------------------- messages */

/* Two NCCL groups may be on their way; each has half of n->move.slot. */
static mgrid_status move_prepare(mgrid_backend *b, size_t slots, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  int *more = realloc(n->move.slot, (slots + 2) * sizeof *more); /* at least 2 * half */
  if (!more) return mgrid_oom(err);
  n->move.slot = more;
  n->move.half = slots / 2 + 1;
  return MGRID_OK;
}

typedef struct batch {
  ncclComm_t comm;
  cudaStream_t stream;
  size_t n;
  mgrid_post message[];
} batch;

static ncclResult_t run_batch(const nccl_library *lib, void *ud) {
  const batch *g = ud;
  ncclResult_t r = lib->GroupStart();
  for (const mgrid_post *p = g->message; p < g->message + g->n && !mgrid_nccl_is_error(r); p++)
    r = p->receive ? lib->Recv(p->data, p->bytes, ncclUint8, (int)p->peer, g->comm, g->stream)
                   : lib->Send(p->data, p->bytes, ncclUint8, (int)p->peer, g->comm, g->stream);
  return mgrid_nccl_group_end(lib, r);
}

static mgrid_outcome move_post(mgrid_backend *b, size_t count, const mgrid_post *message,
                               mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  nccl_comm *c = n->move.comm;
  bool stuck = false;
  batch *g = malloc(sizeof *g + count * sizeof *g->message);

  if (!g) return mgrid_oom(err);
  *g = (batch){ c->comm, c->stream, count };
  memcpy(g->message, message, count * sizeof *message);
  cudaError_t e = n->lib.cudaEventRecord(n->move.copied, n->stream);
  if (e == cudaSuccess) e = n->lib.cudaStreamWaitEvent(c->stream, n->move.copied, 0);
  if (e != cudaSuccess) {
    free(g);
    return mgrid_cuda_failed(n, err, e, GPU_CALL("StreamWaitEvent"), "a move");
  }
  mgrid_outcome s = mgrid_nccl_call(n, c, run_batch, g, "ncclSend/Recv", c->name, &stuck, err);
  if (stuck) c->comm = NULL, c->stuck = true;
  if (s) return s;
  size_t turn = n->move.posted % 2;
  for (size_t i = 0; i < count; i++) n->move.slot[turn * n->move.half + i] = (int)message[i].slot;
  n->move.nslots[turn] = count;
  n->move.posted++;
  e = n->lib.cudaEventRecord(n->move.sent[turn], c->stream);
  return e == cudaSuccess
             ? MGRID_OK
             : (mgrid_outcome)mgrid_cuda_failed(n, err, e, GPU_CALL("EventRecord"), "a move");
}

static mgrid_outcome move_look(mgrid_backend *b, bool news, size_t *count, int *ended,
                               mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  ncclResult_t state = ncclSuccess;
  size_t turn = n->move.ended % 2;
  (void)news;
  *count = 0;
  if (n->move.ended == n->move.posted) return MGRID_OK;
  cudaError_t e = n->lib.cudaEventQuery(n->move.sent[turn]);
  if (e == cudaErrorNotReady) {
    ncclResult_t r = n->lib.CommGetAsyncError(n->move.comm->comm, &state);
    if (r == ncclSuccess) r = state;
    return mgrid_nccl_is_error(r) ? mgrid_nccl_failed(n, err, r, "ncclSend/Recv", "moves")
                                  : MGRID_OK;
  }
  if (e != cudaSuccess) return mgrid_cuda_failed(n, err, e, "ncclSend/Recv", "moves");
  *count = n->move.nslots[turn];
  memcpy(ended, n->move.slot + turn * n->move.half, *count * sizeof *ended);
  n->move.ended++;
  return MGRID_OK;
}

/* ----------------------------------------------------------------- the end */

/* After a failure, kernels that use the memory may hang. They end with their communicator, when the
** backend ends. */
static bool move_close(mgrid_backend *b, bool failed) {
  nccl_backend *n = (nccl_backend *)b;
  n->options.timeout = n->move.before;
  if (!failed) return true;
  n->broken = true;
  if (n->move.comm) n->move.comm->lost = true;
  return false;
}

void mgrid_nccl_move_end(nccl_backend *n) {
  void *native = n->move.comm;
  cudaEvent_t *all[] = { &n->move.copied, &n->move.sent[0], &n->move.sent[1] };
  if (native) mgrid_nccl_destroy(&n->base, 1, &native);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (*all[i]) n->lib.cudaEventDestroy(*all[i]);
  if (n->move.memory && !n->broken) n->lib.cudaFree(n->move.memory);
  mgrid_choice_free(n->move.options);
  free(n->move.ranks);
  free(n->move.slot);
}

const mgrid_transport_ops mgrid_nccl_transport = { .together = true,
                                                   .carrier = move_carrier,
                                                   .open = move_open,
                                                   .ready = move_ready,
                                                   .reaches = move_reaches,
                                                   .connect = move_connect,
                                                   .memory = move_memory,
                                                   .copy = move_copy,
                                                   .copied = move_copied,
                                                   .prepare = move_prepare,
                                                   .post = move_post,
                                                   .look = move_look,
                                                   .close = move_close };
