/* SPDX-License-Identifier: MIT
**
** collectives.c - collectives on the library's own buffers, for proofs, self-tests and benchmarks. Every call has a
** deadline: the first use of a communicator connects its ranks, and NCCL waits forever for a rank that does not
** arrive.
*/
#include "comm/nccl/nccl.h"

#include <inttypes.h>
#include <stdlib.h>

static const ncclDataType_t types[] = { ncclInt32, ncclInt64, ncclFloat32, ncclFloat64 };
static const ncclRedOp_t    reductions[] = { ncclSum, ncclProd, ncclMin, ncclMax };
static const size_t         sizes[] = { 4, 8, 4, 8 };

/* ----------------------------------------------------------------------- buffers */

void *mgrid_nccl_buffer_new(mgrid_backend *b, const mgrid_descriptor *kind, size_t bytes, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  void         *buffer = NULL;
  if (!mgrid_nccl_makes(kind)) return n->carrier->ops->buffer_new(n->carrier, kind, bytes, err);
  cudaError_t e = n->lib.cudaSetDevice(n->device);
  if (e == cudaSuccess) e = n->lib.cudaMalloc(&buffer, bytes ? bytes : 1);
  if (e == cudaSuccess) return buffer;
  mgrid_cuda_failed(n, err, e, GPU_CALL("Malloc"), "");
  return NULL;
}

/* After a failure the memory is kept: cudaFree waits for kernels, and some may hang. */
void mgrid_nccl_buffer_free(mgrid_backend *b, const mgrid_descriptor *kind, void *buffer) {
  nccl_backend *n = (nccl_backend *)b;
  if (!mgrid_nccl_makes(kind))
    n->carrier->ops->buffer_free(n->carrier, kind, buffer);
  else if (buffer && !n->broken)
    n->lib.cudaFree(buffer);
}

mgrid_status mgrid_nccl_copy(mgrid_backend *b, const mgrid_descriptor *kind, void *to, const void *from, size_t bytes,
                             bool to_buffer, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  if (!mgrid_nccl_makes(kind)) return n->carrier->ops->copy(n->carrier, kind, to, from, bytes, to_buffer, err);
  cudaError_t e =
      n->lib.cudaMemcpyAsync(to, from, bytes, to_buffer ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, n->stream);
  if (e == cudaSuccess) e = n->lib.cudaStreamSynchronize(n->stream);
  return e == cudaSuccess ? MGRID_OK : mgrid_cuda_failed(n, err, e, GPU_CALL("MemcpyAsync"), "");
}

/* ------------------------------------------------------------------------- calls */

/* Send and receive in one NCCL group, because two ranks that both send first would wait for each other. */
static ncclResult_t send_recv(const nccl_library *lib, const nccl_comm *c, const mgrid_work *w) {
  ncclResult_t r = lib->GroupStart(), end;
  if (r == ncclSuccess && w->to >= 0) r = lib->Send(w->send, w->count, types[w->type], (int)w->to, c->comm, c->stream);
  if (r == ncclSuccess && w->from >= 0)
    r = lib->Recv(w->recv, w->count, types[w->type], (int)w->from, c->comm, c->stream);
  end = lib->GroupEnd();
  return r == ncclSuccess || r == ncclInProgress ? end : r;
}

/* NCCL has an all-to-all only since 2.28. So send one message to each member and receive one from each, in one NCCL
** group. */
static ncclResult_t all_to_all(const nccl_library *lib, const nccl_comm *c, const mgrid_work *w) {
  size_t       bytes = w->count * sizes[w->type];
  int          members = 0;
  ncclResult_t r = lib->CommCount(c->comm, &members), end;
  if (r == ncclSuccess) r = lib->GroupStart();
  if (r != ncclSuccess) return r;
  for (int i = 0; i < members && (r == ncclSuccess || r == ncclInProgress); i++) {
    r = lib->Send((const char *)w->send + (size_t)i * bytes, w->count, types[w->type], i, c->comm, c->stream);
    if (r == ncclSuccess || r == ncclInProgress)
      r = lib->Recv((char *)w->recv + (size_t)i * bytes, w->count, types[w->type], i, c->comm, c->stream);
  }
  end = lib->GroupEnd();
  return r == ncclSuccess || r == ncclInProgress ? end : r;
}

/* NCCL has no gather and no scatter: the root receives from all, or sends to all, itself included. */
static ncclResult_t with_root(const nccl_library *lib, const nccl_comm *c, const mgrid_work *w, bool gather) {
  size_t       bytes = w->count * sizes[w->type];
  int          members = 0, mine = 0, root = (int)w->root;
  ncclResult_t r = lib->CommCount(c->comm, &members), end;
  if (r == ncclSuccess) r = lib->CommUserRank(c->comm, &mine);
  if (r == ncclSuccess) r = lib->GroupStart();
  if (r != ncclSuccess) return r;
  r = gather ? lib->Send(w->send, w->count, types[w->type], root, c->comm, c->stream)
             : lib->Recv(w->recv, w->count, types[w->type], root, c->comm, c->stream);
  for (int i = 0; i < members && mine == root && (r == ncclSuccess || r == ncclInProgress); i++)
    r = gather ? lib->Recv((char *)w->recv + (size_t)i * bytes, w->count, types[w->type], i, c->comm, c->stream)
               : lib->Send((const char *)w->send + (size_t)i * bytes, w->count, types[w->type], i, c->comm, c->stream);
  end = lib->GroupEnd();
  return r == ncclSuccess || r == ncclInProgress ? end : r;
}

ncclResult_t mgrid_nccl_issue(const nccl_library *lib, const nccl_comm *c, const mgrid_work *w) {
  ncclDataType_t type = types[w->type];
  ncclRedOp_t    op = reductions[w->reduction];
  switch (w->call) {
  case MGRID_ALLREDUCE:
    if (w->rooted) return lib->Reduce(w->send, w->recv, w->count, type, op, (int)w->root, c->comm, c->stream);
    return lib->AllReduce(w->send, w->recv, w->count, type, op, c->comm, c->stream);
  case MGRID_BROADCAST: return lib->Broadcast(w->recv, w->recv, w->count, type, (int)w->root, c->comm, c->stream);
  case MGRID_ALLGATHER:
    if (w->rooted) return with_root(lib, c, w, true);
    return lib->AllGather(w->send, w->recv, w->count, type, c->comm, c->stream);
  case MGRID_REDUCE_SCATTER: return lib->ReduceScatter(w->send, w->recv, w->count, type, op, c->comm, c->stream);
  case MGRID_SENDRECV: return send_recv(lib, c, w);
  case MGRID_BARRIER: return lib->AllReduce(w->recv, w->recv, 1, ncclInt32, ncclSum, c->comm, c->stream);
  case MGRID_ALL_TO_ALL: return w->rooted ? with_root(lib, c, w, false) : all_to_all(lib, c, w);
  }
  return ncclInvalidArgument;
}

static const char *const names[] = { "ncclAllReduce",
                                     "ncclBroadcast",
                                     "ncclAllGather",
                                     "ncclReduceScatter",
                                     "ncclSend/Recv",
                                     "barrier (ncclAllReduce)",
                                     "all-to-all (ncclSend/Recv)" };

typedef struct stream_look {
  nccl_backend *n;
  nccl_comm    *comm;
  const char   *call, *name;
  mgrid_error  *err;
} stream_look;

/* mgrid_look: all calls in the stream have ended, or one failed. */
static mgrid_outcome in_stream(void *ud) {
  const stream_look  *l = ud;
  const nccl_backend *n = l->n;
  ncclResult_t        state = ncclSuccess;
  cudaError_t         e = n->lib.cudaStreamQuery(l->comm->stream);
  if (e == cudaSuccess) return MGRID_OK;
  if (e != cudaErrorNotReady) return mgrid_cuda_failed(n, l->err, e, l->call, l->name);
  if (n->lib.CommGetAsyncError(l->comm->comm, &state) == ncclSuccess && state != ncclSuccess && state != ncclInProgress)
    return mgrid_nccl_failed(n, l->err, state, l->call, l->name);
  return MGRID_NOT_YET;
}

static mgrid_outcome wait_stream(nccl_backend *n, nccl_comm *c, const char *call, const char *name, mgrid_error *err) {
  int64_t       who;
  stream_look   l = { n, c, call, name, err };
  mgrid_outcome outcome = mgrid_wait(in_stream, &l, mgrid_now() + n->options.timeout, n->carrier, &who);
  if (outcome == MGRID_GAVE_UP) return mgrid_nccl_gave_up(who, err);
  if (outcome == MGRID_LATE)
    return mgrid_fail(err, MGRID_TIMED_OUT, MAKER ": %s for %s did not end within %g seconds", call, name,
                      n->options.timeout);
  return outcome;
}

/* A group of one rank has no communicator: copy the send buffer to the receive buffer. */
static mgrid_status alone(nccl_backend *n, const mgrid_work *w, mgrid_error *err) {
  if (w->call == MGRID_BARRIER || w->call == MGRID_BROADCAST || w->send == w->recv) return MGRID_OK;
  if (w->call == MGRID_SENDRECV && (w->to < 0 || w->from < 0)) return MGRID_OK;
  cudaError_t e =
      n->lib.cudaMemcpyAsync(w->recv, w->send, w->count * sizes[w->type], cudaMemcpyDeviceToDevice, n->stream);
  if (e == cudaSuccess) e = n->lib.cudaStreamSynchronize(n->stream);
  return e == cudaSuccess ? MGRID_OK : mgrid_cuda_failed(n, err, e, GPU_CALL("MemcpyAsync"), "a group of one rank");
}

/* A call on a blocking communicator: its first use blocks the thread until all ranks have arrived. */
typedef struct issue_job {
  nccl_comm  comm;
  mgrid_work work;
} issue_job;

static ncclResult_t run_issue(const nccl_library *lib, void *ud) {
  issue_job *job = ud;
  return mgrid_nccl_issue(lib, &job->comm, &job->work);
}

mgrid_outcome mgrid_nccl_call(nccl_backend *n, const nccl_comm *c, ncclResult_t (*call)(const nccl_library *, void *),
                              void *job, const char *what, const char *name, bool *stuck, mgrid_error *err) {
  if (!c->blocking) {
    ncclResult_t r = call(&n->lib, job);
    free(job);
    if (r == ncclInProgress) return mgrid_nccl_wait(n, c, n->options.timeout, true, what, name, err);
    return r == ncclSuccess ? MGRID_OK : mgrid_nccl_failed(n, err, r, what, name);
  }
  mgrid_outcome s = mgrid_nccl_watch(n, n->options.timeout, true, call, job, what, name, stuck, err);
  if (!*stuck) free(job); /* otherwise the thread still uses it, and the communicator */
  return s;
}

/* Make the call; the work then runs in the stream. */
static mgrid_outcome start(nccl_backend *n, const nccl_comm *c, const mgrid_work *w, const char *name, bool *stuck,
                           mgrid_error *err) {
  issue_job *job = malloc(sizeof *job);
  if (!job) return mgrid_oom(err);
  *job = (issue_job){ *c, *w };
  return mgrid_nccl_call(n, c, run_issue, job, names[w->call], name, stuck, err);
}

static mgrid_status suspended(const mgrid_comm_spec *spec, mgrid_error *err) {
  return mgrid_fail(err, MGRID_NOT_NOW, "%s is suspended; mgrid_state_resume takes its memory again", spec->name);
}

/* Make the call on a stream. After a failure the communicator is aborted later, together with all others. */
static mgrid_outcome call_on(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *c, cudaStream_t stream,
                             const mgrid_work *w, mgrid_error *err) {
  nccl_comm on = *c;
  bool      stuck = false;
  on.stream = stream;
  if (!c->comm || c->lost)
    return mgrid_fail(err, MGRID_BACKEND, MAKER ": %s cannot be used after a failure", spec->name);
  if (c->suspended) return suspended(spec, err);
  cudaError_t e = n->lib.cudaSetDevice(n->device);
  if (e != cudaSuccess) return mgrid_cuda_failed(n, err, e, GPU_CALL("SetDevice"), spec->name);
  mgrid_outcome s = start(n, &on, w, spec->name, &stuck, err);
  if (!s) s = wait_stream(n, &on, names[w->call], spec->name, err);
  n->used = true;
  if (!s) return MGRID_OK;
  mgrid_nccl_tell(n, spec); /* the other members wait in NCCL, which has no deadline */
  if (stuck) c->comm = NULL, c->stuck = true;
  c->lost = n->broken = true;
  return s;
}

mgrid_outcome mgrid_nccl_collective(mgrid_backend *b, const mgrid_comm_spec *spec, void *native, const mgrid_work *w,
                                    mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  nccl_comm    *c = native;
  if (!mgrid_nccl_makes(spec->backend)) return n->carrier->ops->collective(n->carrier, spec, native, w, err);
  if (!c) return alone(n, w, err);
  return call_on(n, spec, c, c->stream, w, err);
}

/* ------------------------------------------------------------------------- proof */

/* What a proof of one communicator needs. */
typedef struct proof {
  nccl_backend          *n;
  const mgrid_comm_spec *spec;
  nccl_comm             *comm;
} proof;

/* No sum of ranks, and no rank: what the receive buffer holds until a kernel writes to it. */
#define UNTOUCHED INT64_MIN

/* Make one call with a number as input and a number as output. */
static mgrid_outcome exchange(const proof *p, mgrid_call call, int64_t mine, int64_t root, int64_t *got,
                              mgrid_error *err) {
  int64_t       size = p->spec->size, at = p->spec->position;
  int64_t      *send = p->n->number, *recv = send + 1;
  mgrid_work    w = { call,  MGRID_INT64, MGRID_SUM, send, recv, 1, root, (at + 1) % size, (at + size - 1) % size,
                      false, false };
  int64_t       input[] = { mine, call == MGRID_BROADCAST ? mine : UNTOUCHED };
  mgrid_outcome s = mgrid_nccl_copy(&p->n->base, p->spec->backend, send, input, sizeof input, true, err);
  if (!s) s = call_on(p->n, p->spec, p->comm, p->n->stream, &w, err);
  if (!s) s = mgrid_nccl_copy(&p->n->base, p->spec->backend, got, recv, sizeof *got, false, err);
  return s;
}

static mgrid_outcome prove(const proof *p, mgrid_error *err) {
  const mgrid_comm_spec *spec = p->spec;
  int64_t                got = -1, want = 0, mine = p->n->base.rank;
  for (int64_t i = 0; i < spec->size; i++) want += spec->ranks[i];
  mgrid_outcome s = exchange(p, MGRID_ALLREDUCE, mine, 0, &got, err);
  if (!s && got == UNTOUCHED) /* on all members alike, so none of them waits for a further call */
    return mgrid_fail(err, MGRID_NO_KERNEL,
                      MAKER ": %s is not proved: no kernel ran (ncclAllReduce ended and wrote nothing)", spec->name);
  if (!s && got != want)
    s = mgrid_fail(err, MGRID_UNPROVED, MAKER ": the ranks of %s sum to %" PRId64 ", not %" PRId64, spec->name, got,
                   want);
  for (int64_t root = 0; root < spec->size && !s; root++) {
    s = exchange(p, MGRID_BROADCAST, root == spec->position ? mine : -1, root, &got, err);
    if (!s && got != spec->ranks[root])
      s = mgrid_fail(err, MGRID_UNPROVED, MAKER ": position %" PRId64 " of %s is rank %" PRId64 ", not %" PRId32, root,
                     spec->name, got, spec->ranks[root]);
  }
  if (!s) s = exchange(p, MGRID_SENDRECV, mine, 0, &got, err);
  if (!s && got != spec->ranks[(spec->position + spec->size - 1) % spec->size])
    s = mgrid_fail(err, MGRID_UNPROVED, MAKER ": the ring of %s brought rank %" PRId64, spec->name, got);
  return s;
}

mgrid_outcome mgrid_nccl_prove(mgrid_backend *b, const mgrid_comm_spec *spec, void *native, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  if (!mgrid_nccl_makes(spec->backend)) return n->carrier->ops->prove(n->carrier, spec, native, err);
  if (n->broken) { /* the other members wait for this rank */
    mgrid_nccl_tell(n, spec);
    mgrid_fail(err, MGRID_UNPROVED, MAKER ": %s is not proved after an earlier failure", spec->name);
    return MGRID_GAVE_UP;
  }
  if (((nccl_comm *)native)->suspended) return suspended(spec, err); /* all of its members find the same */
  proof         p = { n, spec, native };
  mgrid_outcome s = prove(&p, err);
  p.comm->idle = s == MGRID_NO_KERNEL;
  n->used = true;
  if (s && s != MGRID_NO_KERNEL && !n->broken) { /* failed before any call of NCCL: no other rank knows yet */
    mgrid_nccl_tell(n, spec);
    n->broken = true;
  }
  return s;
}
