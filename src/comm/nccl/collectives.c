/* SPDX-License-Identifier: MIT
**
** collectives.c - calls on communicators: collectives that wait, on buffers of the library, for
** proofs, policies and hosts; and the calls of a step on streams, which begin without waiting.
** Every call that waits has a deadline, because the first use of a communicator connects its ranks,
** and NCCL would wait forever for a rank that does not arrive.
*/
#include "comm/nccl/nccl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

/* ================================================================== one call */

static const ncclDataType_t types[] = { ncclInt32, ncclInt64, ncclFloat32, ncclFloat64 };
static const ncclRedOp_t reductions[] = { ncclSum, ncclProd, ncclMin, ncclMax };
static const size_t sizes[] = { 4, 8, 4, 8 };

mgrid_status mgrid_nccl_copy(mgrid_backend *b, const mgrid_descriptor *kind, void *to,
                             const void *from, size_t bytes, bool to_buffer, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  if (!mgrid_nccl_makes(kind))
    return n->carrier->ops->copy(n->carrier, kind, to, from, bytes, to_buffer, err);
  cudaError_t e = n->lib.cudaMemcpyAsync(
      to, from, bytes, to_buffer ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, n->stream);
  if (e == cudaSuccess) e = n->lib.cudaStreamSynchronize(n->stream);
  return e == cudaSuccess ? MGRID_OK : mgrid_cuda_failed(n, err, e, GPU_CALL("MemcpyAsync"), "");
}

/* ------------------------------------------------------------------------- calls */

/* Send and receive in one NCCL group: two ranks that both send first would wait for each other. */
static ncclResult_t send_recv(const nccl_library *lib, const nccl_comm *c, const mgrid_work *w) {
  ncclResult_t r = lib->GroupStart();
  if (r == ncclSuccess && w->to >= 0)
    r = lib->Send(w->send, w->count, types[w->type], (int)w->to, c->comm, c->stream);
  if (r == ncclSuccess && w->from >= 0)
    r = lib->Recv(w->recv, w->count, types[w->type], (int)w->from, c->comm, c->stream);
  return mgrid_nccl_group_end(lib, r);
}

/* Send a message to each member and receive one from each, in one NCCL group. NCCL has an
** all-to-all only since 2.28. */
static ncclResult_t all_to_all(const nccl_library *lib, const nccl_comm *c, const mgrid_work *w) {
  size_t bytes = w->count * sizes[w->type];
  int members = 0;
  ncclResult_t r = lib->CommCount(c->comm, &members);
  if (r == ncclSuccess) r = lib->GroupStart();
  if (r != ncclSuccess) return r;
  for (int i = 0; i < members && !mgrid_nccl_is_error(r); i++) {
    r = lib->Send((const char *)w->send + (size_t)i * bytes, w->count, types[w->type], i, c->comm,
                  c->stream);
    if (!mgrid_nccl_is_error(r))
      r = lib->Recv((char *)w->recv + (size_t)i * bytes, w->count, types[w->type], i, c->comm,
                    c->stream);
  }
  return mgrid_nccl_group_end(lib, r);
}

/* NCCL has no gather and no scatter. So the root receives from all members, or sends to all,
** including itself. */
static ncclResult_t with_root(const nccl_library *lib, const nccl_comm *c, const mgrid_work *w,
                              bool gather) {
  size_t bytes = w->count * sizes[w->type];
  int members = 0, mine = 0, root = (int)w->root;
  ncclResult_t r = lib->CommCount(c->comm, &members);
  if (r == ncclSuccess) r = lib->CommUserRank(c->comm, &mine);
  if (r == ncclSuccess) r = lib->GroupStart();
  if (r != ncclSuccess) return r;
  r = gather ? lib->Send(w->send, w->count, types[w->type], root, c->comm, c->stream)
             : lib->Recv(w->recv, w->count, types[w->type], root, c->comm, c->stream);
  for (int i = 0; i < members && mine == root && !mgrid_nccl_is_error(r); i++)
    r = gather ? lib->Recv((char *)w->recv + (size_t)i * bytes, w->count, types[w->type], i,
                           c->comm, c->stream)
               : lib->Send((const char *)w->send + (size_t)i * bytes, w->count, types[w->type], i,
                           c->comm, c->stream);
  return mgrid_nccl_group_end(lib, r);
}

/* Make a call on c->stream, without waiting for its end. */
static ncclResult_t issue_one(const nccl_library *lib, const nccl_comm *c, const mgrid_work *w) {
  ncclDataType_t type = types[w->type];
  ncclRedOp_t op = reductions[w->reduction];
  switch (w->call) {
  case MGRID_ALLREDUCE:
    if (w->rooted)
      return lib->Reduce(w->send, w->recv, w->count, type, op, (int)w->root, c->comm, c->stream);
    return lib->AllReduce(w->send, w->recv, w->count, type, op, c->comm, c->stream);
  case MGRID_BROADCAST:
    return lib->Broadcast(w->recv, w->recv, w->count, type, (int)w->root, c->comm, c->stream);
  case MGRID_ALLGATHER:
    if (w->rooted) return with_root(lib, c, w, true);
    return lib->AllGather(w->send, w->recv, w->count, type, c->comm, c->stream);
  case MGRID_REDUCE_SCATTER:
    return lib->ReduceScatter(w->send, w->recv, w->count, type, op, c->comm, c->stream);
  case MGRID_SENDRECV: return send_recv(lib, c, w);
  case MGRID_BARRIER:
    return lib->AllReduce(w->recv, w->recv, 1, ncclInt32, ncclSum, c->comm, c->stream);
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
  nccl_comm *comm;
  const char *call, *name;
  mgrid_error *err;
} stream_look;

/* An mgrid_look: whether all calls in the stream have ended, or a call has failed. */
static mgrid_outcome in_stream(void *ud) {
  const stream_look *l = ud;
  const nccl_backend *n = l->n;
  ncclResult_t state = ncclSuccess;
  cudaError_t e = n->lib.cudaStreamQuery(l->comm->stream);
  if (e == cudaSuccess) return MGRID_OK;
  if (e != cudaErrorNotReady) return mgrid_cuda_failed(n, l->err, e, l->call, l->name);
  if (n->lib.CommGetAsyncError(l->comm->comm, &state) == ncclSuccess && mgrid_nccl_is_error(state))
    return mgrid_nccl_failed(n, l->err, state, l->call, l->name);
  return MGRID_NOT_YET;
}

static mgrid_outcome wait_stream(nccl_backend *n, nccl_comm *c, const char *call, const char *name,
                                 mgrid_error *err) {
  int64_t who;
  stream_look l = { n, c, call, name, err };
  mgrid_outcome outcome =
      mgrid_wait(in_stream, &l, mgrid_now() + n->options.timeout, n->carrier, &who);
  if (outcome == MGRID_GAVE_UP) return mgrid_nccl_gave_up(who, err);
  if (outcome == MGRID_LATE)
    return mgrid_fail(err, MGRID_TIMED_OUT, MAKER ": %s for %s did not end within %g seconds", call,
                      name, n->options.timeout);
  return outcome;
}

/* Do the work of a call over a group of one rank, which has no communicator: copy the send buffer
** to the receive buffer. */
static mgrid_status alone(nccl_backend *n, const mgrid_work *w, mgrid_error *err) {
  if (w->call == MGRID_BARRIER || w->call == MGRID_BROADCAST || w->send == w->recv) return MGRID_OK;
  if (w->call == MGRID_SENDRECV && (w->to < 0 || w->from < 0)) return MGRID_OK;
  cudaError_t e = n->lib.cudaMemcpyAsync(w->recv, w->send, w->count * sizes[w->type],
                                         cudaMemcpyDeviceToDevice, n->stream);
  if (e == cudaSuccess) e = n->lib.cudaStreamSynchronize(n->stream);
  return e == cudaSuccess
             ? MGRID_OK
             : mgrid_cuda_failed(n, err, e, GPU_CALL("MemcpyAsync"), "a group of one rank");
}

typedef struct several { /* calls on communicators, for a thread that may outlive the caller */
  size_t n;
  struct {
    nccl_comm comm;
    mgrid_work work;
  } call[];
} several;

static ncclResult_t run_several(const nccl_library *lib, void *ud) {
  several *all = ud;
  ncclResult_t r = all->n > 1 ? lib->GroupStart() : ncclSuccess;
  for (size_t i = 0; i < all->n && !mgrid_nccl_is_error(r); i++)
    r = issue_one(lib, &all->call[i].comm, &all->call[i].work);
  return all->n > 1 ? mgrid_nccl_group_end(lib, r) : r;
}

mgrid_outcome mgrid_nccl_call(nccl_backend *n, const nccl_comm *c,
                              ncclResult_t (*call)(const nccl_library *, void *), void *job,
                              const char *what, const char *name, bool *stuck, mgrid_error *err) {
  if (!c->blocking) {
    ncclResult_t r = call(&n->lib, job);
    free(job);
    if (r == ncclInProgress)
      return mgrid_nccl_wait(n, c, n->options.timeout, true, what, name, err);
    return r == ncclSuccess ? MGRID_OK : mgrid_nccl_failed(n, err, r, what, name);
  }
  mgrid_outcome s =
      mgrid_nccl_watch(n, n->options.timeout, true, call, job, what, name, stuck, err);
  if (!*stuck) free(job); /* otherwise the thread still uses it */
  return s;
}

/* Make the call; the work then runs in the stream. */
static mgrid_outcome collectives_start(nccl_backend *n, const nccl_comm *c, const mgrid_work *w,
                                       const char *name, bool *stuck, mgrid_error *err) {
  several *one = malloc(sizeof *one + sizeof *one->call);
  if (!one) return mgrid_oom(err);
  one->n = 1;
  one->call[0].comm = *c, one->call[0].work = *w;
  return mgrid_nccl_call(n, c, run_several, one, names[w->call], name, stuck, err);
}

static mgrid_status suspended(const mgrid_comm_spec *spec, mgrid_error *err) {
  return mgrid_fail(err, MGRID_NOT_NOW,
                    "%s is suspended; mgrid_state_resume takes its memory again", spec->name);
}

static mgrid_status comm_usable(const mgrid_comm_spec *spec, const nccl_comm *c, mgrid_error *err) {
  if (!c->comm || c->lost)
    return mgrid_fail(err, MGRID_BACKEND, MAKER ": %s cannot be used after a failure", spec->name);
  return c->suspended ? suspended(spec, err) : MGRID_OK;
}

/* Make the call on a stream, and wait for its end. After a failure the communicator is aborted
** later, in one call with all others. */
static mgrid_outcome call_on(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *c,
                             cudaStream_t stream, const mgrid_work *w, mgrid_error *err) {
  nccl_comm on = *c;
  bool stuck = false;
  on.stream = stream;
  mgrid_outcome s = comm_usable(spec, c, err);
  if (s) return s;
  cudaError_t e = n->lib.cudaSetDevice(n->device);
  if (e != cudaSuccess) return mgrid_cuda_failed(n, err, e, GPU_CALL("SetDevice"), spec->name);
  s = collectives_start(n, &on, w, spec->name, &stuck, err);
  if (!s) s = wait_stream(n, &on, names[w->call], spec->name, err);
  n->used = true;
  if (!s) return MGRID_OK;
  mgrid_nccl_tell(n, spec); /* the other members wait inside NCCL, which has no deadline */
  if (stuck) c->comm = NULL, c->stuck = true;
  c->lost = n->broken = true;
  return s;
}

mgrid_outcome mgrid_nccl_collective(mgrid_backend *b, const mgrid_comm_spec *spec, void *native,
                                    const mgrid_work *w, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  nccl_comm *c = native;
  if (!mgrid_nccl_makes(spec->backend))
    return n->carrier->ops->collective(n->carrier, spec, native, w, err);
  if (!c) return alone(n, w, err);
  return call_on(n, spec, c, c->stream, w, err);
}

/* ------------------------------------------------------------------------- proof */

/* The proof of one communicator. */
typedef struct proof {
  nccl_backend *n;
  const mgrid_comm_spec *spec;
  nccl_comm *comm;
} proof;

/* The value of the receive buffer until a kernel writes to it: neither a rank nor a sum of
** ranks. */
#define UNTOUCHED INT64_MIN

/* Make one call with a number as input and a number as output. */
static mgrid_outcome collectives_exchange(const proof *p, mgrid_call call, int64_t mine,
                                          int64_t root, int64_t *got, mgrid_error *err) {
  int64_t size = p->spec->size, at = p->spec->position;
  int64_t *send = p->n->number, *recv = send + 1;
  mgrid_work w = {
    call,  MGRID_INT64, MGRID_SUM, send, recv, 1, root, (at + 1) % size, (at + size - 1) % size,
    false, false
  };
  int64_t input[] = { mine, call == MGRID_BROADCAST ? mine : UNTOUCHED };
  mgrid_outcome s =
      mgrid_nccl_copy(&p->n->base, p->spec->backend, send, input, sizeof input, true, err);
  if (!s) s = call_on(p->n, p->spec, p->comm, p->n->stream, &w, err);
  if (!s) s = mgrid_nccl_copy(&p->n->base, p->spec->backend, got, recv, sizeof *got, false, err);
  return s;
}

static mgrid_outcome collectives_prove(const proof *p, mgrid_error *err) {
  const mgrid_comm_spec *spec = p->spec;
  int64_t got = -1, want = 0, mine = p->n->base.rank;
  for (int64_t i = 0; i < spec->size; i++) want += spec->ranks[i];

  mgrid_outcome s = collectives_exchange(p, MGRID_ALLREDUCE, mine, 0, &got, err);
  /* no kernel runs on any member, so no member goes on to the next call */
  if (!s && got == UNTOUCHED)
    return mgrid_fail(err, MGRID_NO_KERNEL,
                      MAKER
                      ": %s is not proved: no kernel ran (ncclAllReduce ended and wrote nothing)",
                      spec->name);
  if (!s && got != want)
    s = mgrid_fail(err, MGRID_UNPROVED, MAKER ": the ranks of %s sum to %" PRId64 ", not %" PRId64,
                   spec->name, got, want);

  for (int64_t root = 0; root < spec->size && !s; root++) {
    s = collectives_exchange(p, MGRID_BROADCAST, root == spec->position ? mine : -1, root, &got,
                             err);
    if (!s && got != spec->ranks[root])
      s = mgrid_fail(err, MGRID_UNPROVED,
                     MAKER ": position %" PRId64 " of %s is rank %" PRId64 ", not %" PRId32, root,
                     spec->name, got, spec->ranks[root]);
  }

  if (!s) s = collectives_exchange(p, MGRID_SENDRECV, mine, 0, &got, err);
  if (!s && got != spec->ranks[(spec->position + spec->size - 1) % spec->size])
    s = mgrid_fail(err, MGRID_UNPROVED, MAKER ": the ring of %s brought rank %" PRId64, spec->name,
                   got);
  return s;
}

mgrid_outcome mgrid_nccl_prove(mgrid_backend *b, const mgrid_comm_spec *spec, void *native,
                               mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  if (!mgrid_nccl_makes(spec->backend))
    return n->carrier->ops->prove(n->carrier, spec, native, err);

  if (n->broken) { /* the other members wait for this rank */
    mgrid_nccl_tell(n, spec);
    mgrid_fail(err, MGRID_UNPROVED, MAKER ": %s is not proved after an earlier failure",
               spec->name);
    return MGRID_GAVE_UP;
  }

  proof p = { n, spec, native };
  /* the communicator is suspended on all members or on none */
  if (p.comm->suspended) return suspended(spec, err);
  mgrid_outcome s = collectives_prove(&p, err);
  p.comm->idle = s == MGRID_NO_KERNEL;
  n->used = true;

  /* if the call itself failed, call_on has set `broken` and notified the members */
  if (s && s != MGRID_NO_KERNEL && !n->broken) {
    mgrid_nccl_tell(n, spec);
    n->broken = true;
  }
  return s;
}

/* ========================================================== calls on streams */

/* Each call stands between two events, which tell when it ended, and how long the GPU was in it. */

typedef struct timed { /* a call in a stream, or a sleep */
  uint64_t tag;
  cudaEvent_t begin, end;
  nccl_comm *comm; /* communicator of the first call, if it is one of NCCL; else NULL */
} timed;

typedef struct lane { /* a stream and the calls in it, in a ring buffer */
  cudaStream_t stream;
  timed *call; /* [room] */
  size_t room, first, n;
} lane;

typedef struct nccl_streams {
  int n;
  lane *lane; /* [n] */
  size_t nmarks, nfree, free_room;
  cudaEvent_t *mark; /* [nmarks]: NULL until the mark is put */
  cudaEvent_t *free; /* [nfree]: events for calls to come */
  cudaEvent_t zero;
} nccl_streams;

static mgrid_status cuda_failed(const nccl_backend *n, cudaError_t e, const char *call,
                                mgrid_error *err) {
  return mgrid_cuda_failed(n, err, e, call, "a step");
}

/* -------------------------------------------------------------------- events */

static cudaError_t take_event(nccl_backend *n, cudaEvent_t *event) {
  nccl_streams *s = n->streams;
  if (s->nfree == 0) return n->lib.cudaEventCreateWithFlags(event, 0);
  *event = s->free[--s->nfree];
  return cudaSuccess;
}

/* Keep an event for later use, or destroy it if there is no room. */
static void give_event(nccl_backend *n, cudaEvent_t event) {
  nccl_streams *s = n->streams;
  if (MGRID_ROOM(s->free, s->free_room, s->nfree + 1))
    s->free[s->nfree++] = event;
  else
    n->lib.cudaEventDestroy(event);
}

static timed *at(const lane *l, size_t i) { return &l->call[(l->first + i) % l->room]; }

static bool make_room(lane *l) {
  if (l->n < l->room) return true;
  size_t room = l->room ? 2 * l->room : 64;
  timed *more = malloc(room * sizeof *more);
  if (!more) return false;
  for (size_t i = 0; i < l->n; i++) more[i] = *at(l, i);
  free(l->call);
  l->call = more, l->room = room, l->first = 0;
  return true;
}

/* Record the first of the two events of a call. */
static mgrid_status collectives_enter(nccl_backend *n, lane *l, timed *t, uint64_t tag,
                                      mgrid_error *err) {
  *t = (timed){ .tag = tag };
  if (!make_room(l)) return mgrid_oom(err);
  /* the trainer may have set another device in this thread */
  cudaError_t e = n->lib.cudaSetDevice(n->device);
  if (e == cudaSuccess) e = take_event(n, &t->begin);
  if (e == cudaSuccess && (e = take_event(n, &t->end)) != cudaSuccess) give_event(n, t->begin);
  if (e == cudaSuccess && (e = n->lib.cudaEventRecord(t->begin, l->stream)) != cudaSuccess)
    give_event(n, t->begin), give_event(n, t->end);
  return e == cudaSuccess ? MGRID_OK : cuda_failed(n, e, GPU_CALL("EventRecord"), err);
}

static mgrid_status collectives_leave(nccl_backend *n, lane *l, const timed *t, mgrid_error *err) {
  cudaError_t e = n->lib.cudaEventRecord(t->end, l->stream);
  /* add the call even if the event is missing, because it is in the stream */
  l->call[(l->first + l->n++) % l->room] = *t;
  return e == cudaSuccess ? MGRID_OK : cuda_failed(n, e, GPU_CALL("EventRecord"), err);
}

/* ----------------------------------------------------------- begin calls */

/* Begin the calls, and wait until all are in the stream. */
static mgrid_outcome issue_all(nccl_backend *n, cudaStream_t stream, size_t count,
                               const mgrid_together *calls, double seconds, mgrid_error *err) {
  several *all = malloc(sizeof *all + count * sizeof *all->call);
  bool stuck = false;
  if (!all) return mgrid_oom(err);

  all->n = count;
  for (size_t i = 0; i < count; i++) {
    all->call[i].comm = *(nccl_comm *)calls[i].native;
    all->call[i].comm.stream = stream;
    all->call[i].work = calls[i].work;
  }

  double before = n->options.timeout, until = mgrid_now() + seconds;
  nccl_comm *first = calls[0].native;
  n->options.timeout = seconds;
  mgrid_outcome s = mgrid_nccl_call(n, first, run_several, all, "a call of a step",
                                    calls[0].spec->name, &stuck, err);
  n->options.timeout = before;

  for (size_t i = 1; i < count && !s && !first->blocking; i++)
    if (calls[i].native != calls[i - 1].native)
      s = mgrid_nccl_wait(n, calls[i].native, until - mgrid_now(), true, "a call of a step",
                          calls[i].spec->name, err);

  for (size_t i = 0; i < count && stuck; i++) {
    nccl_comm *c = calls[i].native;
    c->comm = NULL, c->stuck = true;
  }
  return s;
}

static mgrid_status collectives_usable(size_t count, const mgrid_together *calls,
                                       mgrid_error *err) {
  for (size_t i = 0; i < count; i++) {
    if (!mgrid_nccl_makes(calls[i].spec->backend))
      return mgrid_fail(
          err, MGRID_UNSUPPORTED,
          MAKER
          ": %s is a communicator of %s, whose calls cannot begin together with those of " MAKER,
          calls[i].spec->name, calls[i].spec->backend->name);
    mgrid_status s = comm_usable(calls[i].spec, calls[i].native, err);
    if (s) return s;
  }
  return MGRID_OK;
}

typedef struct idle_look {
  const nccl_backend *n;
  cudaStream_t stream;
  mgrid_error *err;
} idle_look;

static mgrid_outcome collectives_is_idle(void *ud) {
  idle_look *l = ud;
  cudaError_t e = l->n->lib.cudaStreamQuery(l->stream);
  if (e == cudaErrorNotReady) return MGRID_NOT_YET;
  return e == cudaSuccess ? MGRID_OK
                          : (mgrid_outcome)cuda_failed(l->n, e, GPU_CALL("StreamQuery"), l->err);
}

/* Make calls on communicators of the carrier. This rank waits for all earlier calls in the stream,
** and then for these calls. */
static mgrid_outcome carried(nccl_backend *n, lane *l, size_t count, const mgrid_together *calls,
                             double seconds, mgrid_error *err) {
  int64_t who;
  idle_look look = { n, l->stream, err };
  mgrid_outcome s = mgrid_wait(collectives_is_idle, &look, mgrid_now() + seconds, n->carrier, &who);
  if (s == MGRID_GAVE_UP) return mgrid_nccl_gave_up(who, err);
  if (s == MGRID_LATE)
    return mgrid_fail(err, MGRID_TIMED_OUT,
                      MAKER ": the calls before %s in its stream did not end within %g seconds",
                      calls[0].spec->name, seconds);
  if (!s && !n->carrier->ops->together)
    return mgrid_fail(err, MGRID_UNSUPPORTED, "%s begins no calls together",
                      n->carrier->kind->name);
  return s ? s : (mgrid_outcome)n->carrier->ops->together(n->carrier, count, calls, seconds, err);
}

static mgrid_outcome streams_begin(mgrid_backend *b, int stream, size_t count,
                                   const mgrid_together *calls, uint64_t tag, double seconds,
                                   mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  lane *l = &n->streams->lane[stream];
  timed t;
  bool ours = mgrid_nccl_makes(calls[0].spec->backend);

  n->used = true;
  mgrid_outcome s = MGRID_OK;
  for (size_t i = 1; i < count && !ours; i++) ours = mgrid_nccl_makes(calls[i].spec->backend);
  if (ours) s = collectives_usable(count, calls, err);
  if (!s) s = collectives_enter(n, l, &t, tag, err);
  if (s) return s;

  if (ours) t.comm = calls[0].native;
  s = ours ? issue_all(n, l->stream, count, calls, seconds, err)
           : carried(n, l, count, calls, seconds, err);
  if (!s) return collectives_leave(n, l, &t, err);

  give_event(n, t.begin), give_event(n, t.end);
  n->broken = true;
  /* the other members wait inside NCCL, which has no deadline */
  for (size_t i = 0; i < count; i++) {
    if (ours) ((nccl_comm *)calls[i].native)->lost = true;
    mgrid_nccl_tell(n, calls[i].spec);
  }
  return s;
}

static void sleep_then_free(void *ud) {
  struct timespec t = *(struct timespec *)ud;
  free(ud);
  nanosleep(&t, NULL);
}

static mgrid_status streams_sleep(mgrid_backend *b, int stream, double seconds, uint64_t tag,
                                  mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  lane *l = &n->streams->lane[stream];
  timed t;
  struct timespec *how = malloc(sizeof *how);
  if (!how) return mgrid_oom(err);
  *how = (struct timespec){ (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
  mgrid_status s = collectives_enter(n, l, &t, tag, err);
  if (s) return free(how), s;
  cudaError_t e = n->lib.cudaLaunchHostFunc(l->stream, sleep_then_free, how);
  if (e == cudaSuccess) return collectives_leave(n, l, &t, err);
  free(how);
  give_event(n, t.begin), give_event(n, t.end);
  return cuda_failed(n, e, GPU_CALL("LaunchHostFunc"), err);
}

/* --------------------------------------------------------------------- order */

static mgrid_status streams_mark(mgrid_backend *b, int stream, size_t mark, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  cudaEvent_t *event = &n->streams->mark[mark];
  cudaError_t e = *event ? cudaSuccess
                         : n->lib.cudaEventCreateWithFlags(event, cudaEventDisableTiming);
  if (e == cudaSuccess) e = n->lib.cudaEventRecord(*event, n->streams->lane[stream].stream);
  return e == cudaSuccess ? MGRID_OK : cuda_failed(n, e, GPU_CALL("EventRecord"), err);
}

static mgrid_status streams_after(mgrid_backend *b, int stream, size_t mark, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  if (!n->streams->mark[mark]) return MGRID_OK; /* nothing came before the mark */
  cudaError_t e =
      n->lib.cudaStreamWaitEvent(n->streams->lane[stream].stream, n->streams->mark[mark], 0);
  return e == cudaSuccess ? MGRID_OK : cuda_failed(n, e, GPU_CALL("StreamWaitEvent"), err);
}

/* While a call is in progress, check whether its communicator has an error. */
static mgrid_status asynchronous(const nccl_backend *n, const timed *t, mgrid_error *err) {
  ncclResult_t state = ncclSuccess;
  if (!t->comm || !t->comm->comm || n->lib.CommGetAsyncError(t->comm->comm, &state) != ncclSuccess)
    return MGRID_OK;
  return mgrid_nccl_is_error(state)
             ? mgrid_nccl_failed(n, err, state, "a call of a step", t->comm->name)
             : MGRID_OK;
}

static mgrid_status streams_look(mgrid_backend *b, int stream, size_t most, mgrid_timed_call *ended,
                                 size_t *count, uint64_t *in, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  lane *l = &n->streams->lane[stream];
  *count = 0;
  for (; l->n > 0; l->first = (l->first + 1) % l->room, l->n--) {
    timed *t = at(l, 0);
    float begun = 0, took = 0;
    cudaError_t e = n->lib.cudaEventQuery(t->end);
    *in = t->tag;
    if (e == cudaSuccess && *count == most) return MGRID_OK;
    /* cudaErrorNotReady: `zero` is not recorded yet */
    if (e == cudaSuccess) e = n->lib.cudaEventElapsedTime(&begun, n->streams->zero, t->begin);
    if (e == cudaErrorNotReady) return asynchronous(n, t, err);
    if (e == cudaSuccess) e = n->lib.cudaEventElapsedTime(&took, t->begin, t->end);
    if (e != cudaSuccess) return cuda_failed(n, e, GPU_CALL("EventElapsedTime"), err);
    ended[(*count)++] = (mgrid_timed_call){ t->tag, 1e-3 * (double)begun, 1e-3 * (double)took };
    give_event(n, t->begin), give_event(n, t->end);
  }
  *in = UINT64_MAX;
  return MGRID_OK;
}

/* ----------------------------------------------------------------------- life */

static mgrid_status streams_zero(mgrid_backend *b, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  cudaError_t e = n->lib.cudaSetDevice(n->device);
  if (e == cudaSuccess && !n->streams->zero)
    e = n->lib.cudaEventCreateWithFlags(&n->streams->zero, 0);
  if (e == cudaSuccess) e = n->lib.cudaEventRecord(n->streams->zero, n->streams->lane[0].stream);
  return e == cudaSuccess ? MGRID_OK : cuda_failed(n, e, GPU_CALL("EventRecord"), err);
}

static void destroy_events(nccl_backend *n, size_t count, cudaEvent_t *event) {
  for (size_t i = 0; i < count; i++)
    if (event[i]) n->lib.cudaEventDestroy(event[i]);
}

/* End the streams. After a failure calls may hang in the streams; such calls end with their
** communicators. */
static void streams_close(mgrid_backend *b, bool failed) {
  nccl_backend *n = (nccl_backend *)b;
  nccl_streams *s = n->streams;
  if (!s) return;

  if (failed) n->broken = true;
  for (int i = 0; i < s->n && s->lane; i++) {
    lane *l = &s->lane[i];
    for (size_t k = 0; k < l->n; k++) {
      if (failed && at(l, k)->comm) at(l, k)->comm->lost = true;
      destroy_events(n, 2, (cudaEvent_t[]){ at(l, k)->begin, at(l, k)->end });
    }
    if (l->stream) n->lib.cudaStreamDestroy(l->stream);
    free(l->call);
  }

  destroy_events(n, s->mark ? s->nmarks : 0, s->mark);
  destroy_events(n, s->nfree, s->free);
  destroy_events(n, 1, &s->zero);
  free(s->lane);
  free(s->mark);
  free(s->free);
  free(s);
  n->streams = NULL;
}

static mgrid_status streams_open(mgrid_backend *b, int count, size_t marks, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  if (n->broken)
    return mgrid_fail(err, MGRID_BACKEND,
                      MAKER ": the backend executes nothing after an earlier failure");
  if (n->streams) return mgrid_fail(err, MGRID_NOT_NOW, MAKER ": a step is executed already");
  nccl_streams *s = n->streams = calloc(1, sizeof *s);
  if (!s) return mgrid_oom(err);
  s->lane = calloc((size_t)count, sizeof *s->lane);
  s->mark = calloc(marks + 1, sizeof(cudaEvent_t));
  s->n = count, s->nmarks = marks;
  cudaError_t e = s->lane && s->mark ? n->lib.cudaSetDevice(n->device) : cudaSuccess;
  mgrid_status status = s->lane && s->mark ? MGRID_OK : mgrid_oom(err);
  for (int i = 0; i < count && !status && e == cudaSuccess; i++)
    e = n->lib.cudaStreamCreateWithPriority(&s->lane[i].stream, cudaStreamNonBlocking, 0);
  if (!status && e != cudaSuccess)
    status = cuda_failed(n, e, GPU_CALL("StreamCreateWithPriority"), err);
  if (!status) status = streams_zero(b, err);
  if (status) streams_close(b, false);
  return status;
}

const mgrid_streams_ops mgrid_nccl_streams = { .open = streams_open,
                                               .begin = streams_begin,
                                               .sleep = streams_sleep,
                                               .mark = streams_mark,
                                               .after = streams_after,
                                               .look = streams_look,
                                               .zero = streams_zero,
                                               .close = streams_close };
