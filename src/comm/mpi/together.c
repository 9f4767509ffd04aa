/* SPDX-License-Identifier: MIT
**
** together.c - calls over groups, each begun without waiting: one of the host, or those of a step, which end together. MPI
** cannot cancel a call, so one that does not end in time stays in progress, its memory is leaked, and MPI is not finalized.
*/
#include "comm/mpi/mpi.h"

#include <math.h>

enum { TAG = 1 };

/* whole: in a step, which may not rely on buffers, a message ends when it is received. */
static int begin(MPI_Comm comm, const mgrid_work *w, bool whole, MPI_Request *request) {
  static const MPI_Datatype types[] = { MPI_INT32_T, MPI_INT64_T, MPI_FLOAT, MPI_DOUBLE };
  static const MPI_Op       ops[] = { MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX };
  MPI_Datatype              type = types[w->type];
  MPI_Op                    op = ops[w->reduction];
  int                       n = (int)w->count, root = (int)w->root;
  const void               *from = w->send == w->recv ? MPI_IN_PLACE : w->send;
  switch (w->call) {
  case MGRID_ALLREDUCE:
    return w->rooted ? MPI_Ireduce(w->send, w->recv, n, type, op, root, comm, request)
                     : MPI_Iallreduce(from, w->recv, n, type, op, comm, request);
  case MGRID_BROADCAST: return MPI_Ibcast(w->recv, n, type, root, comm, request);
  case MGRID_ALLGATHER:
    return w->rooted ? MPI_Igather(w->send, n, type, w->recv, n, type, root, comm, request)
                     : MPI_Iallgather(from, n, type, w->recv, n, type, comm, request);
  case MGRID_REDUCE_SCATTER: return MPI_Ireduce_scatter_block(from, w->recv, n, type, op, comm, request);
  case MGRID_SENDRECV:
    return w->to < 0 ? MPI_Irecv(w->recv, n, type, (int)w->from, TAG, comm, request)
           : whole   ? MPI_Issend(w->send, n, type, (int)w->to, TAG, comm, request)
                     : MPI_Isend(w->send, n, type, (int)w->to, TAG, comm, request);
  case MGRID_BARRIER: return MPI_Ibarrier(comm, request);
  case MGRID_ALL_TO_ALL:
    return w->rooted ? MPI_Iscatter(w->send, n, type, w->recv, n, type, root, comm, request)
                     : MPI_Ialltoall(w->send, n, type, w->recv, n, type, comm, request);
  }
  return MPI_ERR_ARG;
}

static mgrid_status check(const mgrid_comm_spec *spec, const mpi_comm *c, const mgrid_work *w, mgrid_error *err) {
  if (c && c->stuck)
    return mgrid_fail(err, MGRID_TIMED_OUT, "mpi: an earlier call over %s did not end; it cannot be used", spec->name);
  if (w->count > INT32_MAX)
    return mgrid_fail(err, MGRID_USAGE, "mpi: a call of %zu elements over %s; at most %d", w->count, spec->name,
                      INT32_MAX);
  return MGRID_OK;
}

/* ------------------------------------------------------------------ of a host */

static const char *const names[] = { "an all-reduce", "a broadcast", "an all-gather", "a reduce-scatter",
                                     "a message",     "a barrier",   "an all-to-all" };

/* One side of a message, or another call. */
static mgrid_status call_one(mpi_backend *m, const mgrid_comm_spec *spec, mpi_comm *c, const mgrid_work *w,
                             double seconds, mgrid_error *err) {
  mpi_comm    alone = { .comm = MPI_COMM_SELF }, *on = c ? c : &alone;
  mpi_request call = { 0 };
  const char *name = w->ours ? m->base.doing : names[w->call];
  int64_t     other = w->to >= 0 ? w->to : w->from;
  call.rc = begin(on->comm, w, false, &call.request);
  if (call.rc) return mgrid_mpi_failed_in(m, err, call.rc, name, spec->name);
  if (w->call == MGRID_SENDRECV) return mgrid_mpi_finish_message(m, spec, on, call, other, seconds, name, err);
  return mgrid_mpi_finish_group(m, spec, on, call, seconds, name, err);
}

/* Begin the receive, send, and wait for both. */
static mgrid_status exchange(mpi_backend *m, const mgrid_comm_spec *spec, mpi_comm *c, const mgrid_work *w,
                             mgrid_error *err) {
  mgrid_work  in = *w, out = *w;
  mpi_request call = { 0 };
  double      until = mgrid_now() + m->seconds;
  in.to = out.from = -1;
  call.rc = begin(c ? c->comm : MPI_COMM_SELF, &in, false, &call.request);
  if (call.rc) return mgrid_mpi_failed_in(m, err, call.rc, names[w->call], spec->name);
  mgrid_status s = call_one(m, spec, c, &out, m->seconds, err);
  m->pending |= s != MGRID_OK; /* the receive stays in progress */
  if (s) return s;
  mpi_comm alone = { .comm = MPI_COMM_SELF };
  return mgrid_mpi_finish_message(m, spec, c ? c : &alone, call, in.from, until - mgrid_now(), names[w->call], err);
}

mgrid_outcome mgrid_mpi_collective(mgrid_backend *b, const mgrid_comm_spec *spec, void *native, const mgrid_work *w,
                                   mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mpi_comm    *c = native; /* NULL: a group of one rank */
  mgrid_status s = mgrid_mpi_usable(m, err);
  if (!s) s = check(spec, c, w, err);
  if (s) return s;
  MPI_Comm       comm = c ? c->comm : MPI_COMM_SELF;
  MPI_Errhandler was = mgrid_mpi_quiet(comm);
  bool           both = w->call == MGRID_SENDRECV && w->to >= 0 && w->from >= 0;
  s = both ? exchange(m, spec, c, w, err) : call_one(m, spec, c, w, m->seconds, err);
  mgrid_mpi_restore(comm, was);
  m->hurry = false; /* no verdict follows */
  return s;
}

/* ------------------------------------------------------------------ of a step */

typedef struct waiting {
  mpi_backend *m;
  size_t       n;
  MPI_Request *request;
  int          rc;
  mgrid_error *err;
} waiting;

/* An mgrid_look: have all ended? In a step of all ranks: are ranks missing, or does nothing move? */
static mgrid_outcome have_ended(void *ud) {
  waiting *w = ud;
  int      flag = 0;
  w->rc = MPI_Testall((int)w->n, w->request, &flag, MPI_STATUSES_IGNORE);
  if (w->rc) return MGRID_BACKEND;
  mgrid_outcome on = mgrid_mpi_goes_on(w->m, flag ? w->n : 0, w->err);
  return on ? on : flag ? MGRID_OK : MGRID_NOT_YET;
}

static mgrid_outcome wait_for_all(mpi_backend *m, size_t n, const mgrid_together *calls, MPI_Request *request,
                                  double seconds, mgrid_error *err) {
  waiting   w = { m, n, request, 0, err };
  double    until = m->moving.on ? INFINITY : mgrid_now() + seconds;
  mpi_comm *alone = n == 1 && calls[0].work.call != MGRID_SENDRECV ? calls[0].native : NULL;
  if (alone && !m->moving.on)
    return mgrid_mpi_finish_group(m, calls[0].spec, alone, (mpi_request){ .request = request[0] }, seconds, "a step",
                                  err);
  mgrid_outcome ended = mgrid_wait(have_ended, &w, until, NULL, NULL);
  if (ended == MGRID_OK) return MGRID_OK;
  m->pending = true;
  for (size_t i = 0; i < n; i++)
    if (calls[i].native) ((mpi_comm *)calls[i].native)->stuck = true;
  if (w.rc) return mgrid_mpi_failed_in(m, err, w.rc, "a call of a step", calls[0].spec->name);
  if (ended == MGRID_GAVE_UP) return ended;
  return mgrid_fail(err, MGRID_TIMED_OUT, "after %g seconds %s over %s had not met, and nothing moved", seconds,
                    alone ? "the members" : "messages", calls[0].spec->name);
}

mgrid_outcome mgrid_mpi_together(mgrid_backend *b, size_t n, const mgrid_together *calls, double seconds,
                                 mgrid_error *err) {
  MPI_Request  request[MGRID_TOGETHER_MAX];
  mpi_backend *m = (mpi_backend *)b;
  mgrid_status s = mgrid_mpi_usable(m, err);
  for (size_t i = 0; i < n && !s; i++) s = check(calls[i].spec, calls[i].native, &calls[i].work, err);
  if (s) return s;
  for (size_t i = 0; i < n && !s; i++) {
    mpi_comm      *c = calls[i].native;
    MPI_Comm       comm = c ? c->comm : MPI_COMM_SELF;
    MPI_Errhandler was = mgrid_mpi_quiet(comm);
    int            rc = begin(comm, &calls[i].work, true, &request[i]);
    mgrid_mpi_restore(comm, was);
    if (rc) s = mgrid_mpi_failed_in(m, err, rc, "a call of a step", calls[i].spec->name);
  }
  if (!s) return wait_for_all(m, n, calls, request, seconds, err);
  m->pending = true;
  return s;
}
