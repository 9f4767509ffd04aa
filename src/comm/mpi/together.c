/* SPDX-License-Identifier: MIT
**
** together.c - calls that begin together, each without waiting, and end together: a step of a recipe, or a group in it.
*/
#include "comm/mpi/mpi.h"

enum { TAG = 1 };

static int begin(MPI_Comm comm, const mgrid_work *w, MPI_Request *request) {
  static const MPI_Datatype types[] = { MPI_INT32_T, MPI_INT64_T, MPI_FLOAT, MPI_DOUBLE };
  MPI_Datatype              type = types[w->type];
  int                       n = (int)w->count, root = (int)w->root;
  switch (w->call) {
  case MGRID_ALLREDUCE:
    return w->rooted ? MPI_Ireduce(w->send, w->recv, n, type, MPI_SUM, root, comm, request)
                     : MPI_Iallreduce(w->send, w->recv, n, type, MPI_SUM, comm, request);
  case MGRID_BROADCAST: return MPI_Ibcast(w->recv, n, type, root, comm, request);
  case MGRID_ALLGATHER:
    return w->rooted ? MPI_Igather(w->send, n, type, w->recv, n, type, root, comm, request)
                     : MPI_Iallgather(w->send, n, type, w->recv, n, type, comm, request);
  case MGRID_REDUCE_SCATTER: return MPI_Ireduce_scatter_block(w->send, w->recv, n, type, MPI_SUM, comm, request);
  case MGRID_SENDRECV: /* synchronous: a step may not rely on buffers */
    return w->to >= 0 ? MPI_Issend(w->send, n, type, (int)w->to, TAG, comm, request)
                      : MPI_Irecv(w->recv, n, type, (int)w->from, TAG, comm, request);
  case MGRID_BARRIER: return MPI_Ibarrier(comm, request);
  case MGRID_ALL_TO_ALL:
    return w->rooted ? MPI_Iscatter(w->send, n, type, w->recv, n, type, root, comm, request)
                     : MPI_Ialltoall(w->send, n, type, w->recv, n, type, comm, request);
  }
  return MPI_ERR_ARG;
}

typedef struct waiting {
  size_t       n;
  MPI_Request *request;
  int          rc;
} waiting;

/* An mgrid_look: have all ended? */
static mgrid_outcome have_ended(void *ud) {
  waiting *w = ud;
  int      flag = 0;
  w->rc = MPI_Testall((int)w->n, w->request, &flag, MPI_STATUSES_IGNORE);
  return w->rc ? MGRID_BACKEND : flag ? MGRID_OK : MGRID_NOT_YET;
}

mgrid_status mgrid_mpi_together(mgrid_backend *b, size_t n, const mgrid_together *calls, double seconds,
                                mgrid_error *err) {
  MPI_Request  request[MGRID_TOGETHER_MAX];
  mpi_backend *m = (mpi_backend *)b;
  mgrid_status s = mgrid_mpi_usable(m, err);
  waiting      w = { n, request, 0 };
  for (size_t i = 0; i < n && !s; i++) {
    mpi_comm *c = calls[i].native;
    if (c && c->stuck)
      s = mgrid_fail(err, MGRID_TIMED_OUT, "mpi: an earlier call over %s did not end; it cannot be used",
                     calls[i].spec->name);
    if (calls[i].work.count > INT32_MAX)
      s = mgrid_fail(err, MGRID_USAGE, "mpi: a call of %zu elements; at most %d", calls[i].work.count, INT32_MAX);
  }
  if (s) return s;
  mpi_comm *alone = n == 1 && calls[0].work.call != MGRID_SENDRECV ? calls[0].native : NULL;
  for (size_t i = 0; i < n && !s; i++) {
    mpi_comm      *c = calls[i].native;
    MPI_Comm       comm = c ? c->comm : MPI_COMM_SELF;
    MPI_Errhandler was = mgrid_mpi_quiet(comm);
    int            rc = begin(comm, &calls[i].work, &request[i]);
    mgrid_mpi_restore(comm, was);
    if (rc) s = mgrid_mpi_failed_in(m, err, rc, "a call of a step", calls[i].spec->name);
  }
  if (s) {
    m->pending = true;
    return s;
  }
  if (alone)
    return mgrid_mpi_finish_group(m, calls[0].spec, alone, (mpi_request){ .request = request[0] }, seconds, "a step",
                                  err);
  mgrid_outcome ended = mgrid_wait(have_ended, &w, mgrid_now() + seconds, NULL, NULL);
  if (ended == MGRID_OK) return MGRID_OK;
  m->hurry = m->pending = true;
  for (size_t i = 0; i < n; i++)
    if (calls[i].native) ((mpi_comm *)calls[i].native)->stuck = true;
  if (w.rc) return mgrid_mpi_failed_in(m, err, w.rc, "a call of a step", calls[0].spec->name);
  return mgrid_fail(err, MGRID_TIMED_OUT, "after %g seconds messages over %s had not met", seconds,
                    calls[0].spec->name);
}
